package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Differences of two payloads.

func noPayload() daybook.Text { return daybook.Say("it was made without a payload") }

func payloadPruned() daybook.Text {
	return daybook.Say("the payload it was made with is no longer kept, only its fingerprint, which differs")
}

func payloadDiffers(was, is string) daybook.Text {
	return daybook.Say("the payload: %s, now %s", value(was), value(is))
}

func differs(name, was, is string) daybook.Text {
	return daybook.Say("%s: %s, now %s", name, value(was), value(is))
}

func value(v string) daybook.Text {
	if v == "" {
		return daybook.Say("absent")
	}
	return daybook.Say("%s", daybook.Clip(v, 60))
}

func moreDifferences(n int) daybook.Text { return daybook.Say("and %d more", n) }

// Line is Text in English.
func (a Answer) Line() string { return a.Text().String() }

// Text says in one sentence, or a few, what became of a trigger. It begins with the key.
func (a Answer) Text() daybook.Text { return daybook.Say("%s  %s", a.Key, a.Said()) }

// Said is Text without the key.
func (a Answer) Said() daybook.Text {
	said := a.sentence()
	if a.Cover != nil && a.Because != daybook.BecauseCovered {
		said = daybook.Say("is covered by %s: %s", a.Cover.Key, said)
	}
	held, waits := daybook.Text{}, daybook.Text{}
	if r := a.run(); a.Outcome == daybook.Started && r.Hold != "" && a.Act != daybook.ActCreateHeld {
		held = heldText(r, a.At)
	}
	switch {
	case a.NobodyExecutes:
		waits = nobodyExecutes(a.About())
	case a.forOnce():
		waits = onceOnly(a.ByLine)
	}
	return daybook.Join(said, held, waits)
}

func heldText(r *daybook.Run, now time.Time) daybook.Text {
	return daybook.Say("It is held: %s.", holdOf(r, now))
}

// holdOf says why a run is held, and until when where that is known.
func holdOf(r *daybook.Run, now time.Time) daybook.Text {
	if r.Hold == daybook.ReasonFrozen {
		loc := location(r.Zone)
		return daybook.Say("frozen until %s %s, it starts at %s", clock(r.FrozenUntil, now, loc), loc, clock(r.Due, now, loc))
	}
	return daybook.Say("%s", r.Hold)
}

// doerText says which program a node is, and where.
func doerText(n daybook.Node) daybook.Text {
	program := n.Role
	if program == daybook.HomeOnce {
		program = "daybook once"
	}
	return daybook.Say("%s on %s", oneLine(program), oneLine(n.Host))
}

// onceOnly says who alone does a run.
func onceOnly(j *daybook.Job) daybook.Text {
	if j != nil && j.Command.IsZero() {
		return daybook.Say("No file defines its job: only the program that claims it does it.")
	}
	return daybook.Say("No file defines its job: only daybook once runs it.")
}

// nobodyExecutes says that whoever would do a run is not there.
func nobodyExecutes(r *daybook.Run) daybook.Text {
	if doneBy(r) == "" {
		return daybook.Say("Nobody executes now: no serve was seen in the last 30 s.")
	}
	return daybook.Say("Nobody executes now: the application %s was not seen in the last 30 s.", r.Home)
}

// executor is what a person starts so that a run is done.
func executor(r *daybook.Run) daybook.Text {
	if doneBy(r) == "" {
		return command("daybook serve")
	}
	return daybook.Say("start %s", r.Home)
}

// forOnce reports whether the run waits for `daybook once`, and another door asked.
func (a Answer) forOnce() bool {
	r := a.run()
	return doneBy(r) == daybook.HomeOnce && (r.State == daybook.Scheduled || r.State == daybook.Retryable) && !a.doesItself()
}

// doesItself reports whether who asked does the work.
func (a Answer) doesItself() bool { return a.Ask.Source == daybook.SourceOnce || a.Ask.Take != nil }

// onceCommand is the line that runs a key of a job that no file defines.
func onceCommand(j *daybook.Job, r *daybook.Run) daybook.Text {
	if j != nil && j.Command.IsZero() {
		return daybook.Say("start the program that claims %s", r.Key)
	}
	if j == nil || r.Subject != "" || r.Window.Date == "" || j.Window == daybook.PerFire || r.Key.Parts().N > 1 {
		return daybook.Say("the line of %s, which begins daybook once --job %s", r.Job, r.Job)
	}
	date := r.Window.Date
	if strings.HasPrefix(string(j.Window), "previous-") { // named by the day it is run on
		date = r.Window.End.In(location(r.Zone)).Format(time.DateOnly)
	}
	words := []string{"daybook once --job", r.Job, "--tz", r.Zone}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, shellWord(value))
		}
	}
	add("--schedule", j.Schedule)
	add("--window", string(j.Window))
	add("--date", date)
	if j.Effects == daybook.Once {
		add("--effects", string(j.Effects))
	}
	add("--probe", j.Probe.Shell)
	switch {
	case j.Remembers == daybook.Forever:
		add("--remembers", "forever")
	case j.Remembers > 0:
		add("--remembers", j.Remembers.String())
	}
	words = append(words, "--")
	for _, arg := range j.Command.Argv {
		words = append(words, shellWord(arg))
	}
	return command("%s", strings.Join(words, " "))
}

// Next is Do in English.
func (a Answer) Next() string { return a.Do().String() }

// Do is the command that a person is likely to want after the answer; zero when there is none.
func (a Answer) Do() daybook.Text {
	key := a.Key
	if a.Cover != nil {
		key = a.Cover.Key
	}
	again := fmt.Sprintf("daybook job trigger %s --window %s", a.Key.Job(), a.label())
	if a.NobodyExecutes && a.Outcome != daybook.Refused {
		return executor(a.About())
	}
	if a.forOnce() {
		return onceCommand(a.ByLine, a.run())
	}
	switch a.Because {
	case daybook.BecauseNotListed:
		if a.Near != "" {
			return daybook.Say("did you mean %s?", a.Near)
		}
		return command("%s --confirm=%s", again, a.Key)
	case daybook.BecauseNoKey, daybook.BecauseNothingToReplay:
		switch {
		case a.Near != "":
			return daybook.Say("did you mean %s?", a.Near)
		case a.Key.Parts().Subject != "" && a.Span == nil && a.Run == nil: // a slip must not become a command that does it
			return command("daybook key find %s:%s", a.Key.Job(), a.Key.Parts().Window)
		}
		if a.run().State == daybook.Skipped || a.Span != nil {
			return command("%s --run-skipped", again)
		}
		return command("%s", again)
	case daybook.BecauseNotOpen:
		return command("%s --early --reason …", again)
	case daybook.BecausePaused:
		return command("daybook job resume %s", a.Key.Job())
	case daybook.BecauseOnce, daybook.BecauseFinal:
		return daybook.Say("daybook job trigger %s --window %s~N --reason …, with the next free number, if a further effect is wanted", a.Key.Job(), a.Window.Label)
	case daybook.BecauseUndoing:
		if do := a.Undoing.WaitsFor(); !do.IsZero() {
			return do
		}
		return command("daybook run show %s", key.Undo())
	case daybook.BecauseLetter:
		return command("daybook dead replay %s", key)
	case daybook.BecauseSubjects:
		if a.Subjects != nil && a.Subjects.Letters == 0 {
			return command("daybook dead list")
		}
		return command("daybook dead replay %s", key)
	case daybook.BecauseUnknown:
		return resolveDo(key, a.About(), a.asks)
	case daybook.BecauseDismissed, daybook.BecauseCancelled:
		return command("daybook run reopen %s --reason …", key)
	case daybook.BecauseSkipped:
		return command("%s --run-skipped", again)
	case daybook.BecauseCovered, daybook.BecausePayload:
		return command("daybook run show %s", key)
	case daybook.BecauseDone:
		return command("daybook key show %s", key)
	case string(daybook.ReasonClock), string(daybook.ReasonFrozen), string(daybook.ReasonRestored):
		return command("daybook freeze list")
	}
	if a.Outcome == daybook.Started || a.Outcome == daybook.Joined {
		return command("daybook run watch %s", key)
	}
	return command("daybook key show %s", key)
}

// notListed says that a subject is none of those that the listing named.
func (a Answer) notListed() daybook.Text {
	if a.Listing == nil {
		return daybook.Say("is not listed: the subjects of its window were not listed yet. Nothing was started.")
	}
	return daybook.Say("is not in the listing of %d. Nothing was started.", a.Listing.Of)
}

// label is that of the key, with ~n and subject as flags take them.
func (a Answer) label() string {
	p := a.Key.Parts()
	s := p.Window
	if p.N > 1 {
		s = fmt.Sprintf("%s~%d", s, p.N)
	}
	if p.Subject != "" {
		subject, err := daybook.DecodeSubject(p.Subject)
		if err != nil {
			subject = p.Subject
		}
		s += " --subject " + shellWord(subject)
	}
	return s
}

// shellWord quotes a word for a shell where that is needed.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._@+=:,/-", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// run is the run the answer is about, never nil.
func (a Answer) run() *daybook.Run {
	if r := a.About(); r != nil {
		return r
	}
	return &daybook.Run{}
}

func (a Answer) when(t time.Time) daybook.Text { return clock(t, a.At, a.zone()) }

func (a Answer) zone() *time.Location { return location(a.run().Zone) }

// sentence is the answer without the key.
func (a Answer) sentence() daybook.Text {
	r := a.run()
	switch a.Because {
	case daybook.BecauseSubjects:
		return daybook.Say("has %s. None is started beside its letter: replay it.", subjectsOfText(a.run(), a.Subjects))
	case daybook.BecauseNew:
		return a.started()
	case daybook.BecauseAgain:
		return daybook.Say("started: one further attempt under the same key. It stays done if this attempt fails.")
	case daybook.BecauseReplayed:
		if a.Act == daybook.ActReplaySubjects {
			return a.subjectsReplayed()
		}
		return daybook.Say("started again under the same key, failures reset.")
	case daybook.BecauseRunSkipped:
		return daybook.Say("started: the window had been skipped.")
	case daybook.BecauseNoKey:
		return daybook.Say("does not exist: nothing to replay.")
	case daybook.BecauseNotListed:
		return a.notListed()
	case daybook.BecauseNotOpen:
		return daybook.Say("is not open yet: its window opens at %s. Nothing was started.", longClock(a.Opens, a.jobZone()))
	case daybook.BecausePaused:
		return a.paused()
	case string(daybook.ReasonFrozen):
		if r.Hold == daybook.ReasonFrozen {
			return daybook.Say("recorded and held: %s.", holdOf(r, a.At))
		}
		return daybook.Say("recorded and held: %s. It starts when that ends.", daybook.Reason(a.Because))
	case string(daybook.ReasonClock), string(daybook.ReasonRestored):
		return daybook.Say("recorded and held: %s. It starts when that ends.", daybook.Reason(a.Because))
	case daybook.BecauseScheduled:
		return a.scheduled()
	case daybook.BecauseRunning:
		if r.FannedOut() && a.Subjects != nil {
			return daybook.Say("is under way: %s. Nothing was started beside it.", subjectsOfText(a.run(), a.Subjects))
		}
		return daybook.Say("is running: attempt %d since %s on %s. Nothing was started beside it.", r.Attempts, a.when(r.ClaimedAt), whoever(oneLine(a.Host)))
	case daybook.BecauseRetryable:
		return a.retryable()
	case daybook.BecauseDone, daybook.BecauseOnce:
		return a.done()
	case daybook.BecauseLetter, daybook.BecauseUnknown:
		return a.dead()
	case daybook.BecauseDismissed, daybook.BecauseFinal:
		return a.closed()
	case daybook.BecauseUndoing:
		if !a.Undoing.WaitsFor().IsZero() {
			return daybook.Say("is being undone, and that waits for a person: %s. Nothing was started.", stored(strings.TrimSuffix(oneLine(a.Undoing.Run.Letter.Error), "."), a.Undoing.Run))
		}
		return daybook.Say("is being undone: only that goes on. Nothing was started.")
	case daybook.BecauseSkipped:
		if a.Outcome == daybook.Refused {
			return daybook.Say("was skipped%s: nothing ran. It runs only if you say so.", a.skipReason())
		}
		return daybook.Say("was skipped%s: nothing ran. Nothing was started.", a.skipReason())
	case daybook.BecauseNothingToReplay:
		return daybook.Say("was skipped%s: nothing ran, so there is nothing to replay.", a.skipReason())
	case daybook.BecauseCovered:
		if a.Cover == nil {
			return daybook.Say("is covered by another run. Nothing was started.")
		}
		return daybook.Say("is covered by %s, which is %s. Ask for that key.", a.Cover.Key, a.Cover.State)
	case daybook.BecauseCancelled:
		if a.Subjects != nil {
			return daybook.Say("was cancelled at %s: %s. It is not started again by itself.", a.when(r.EndedAt), subjectsOfText(r, a.Subjects))
		}
		return daybook.Say("was cancelled at %s. It is not started again by itself.", a.when(r.EndedAt))
	case daybook.BecausePayload:
		return daybook.Say("was made with another payload: %s. Nothing was started or changed.", a.Difference)
	}
	return daybook.Say("%s.", a.Because)
}

func (a Answer) jobZone() *time.Location {
	if a.Run != nil {
		return location(a.Run.Zone)
	}
	return zoneOf(a.Job)
}

// zoneOf returns the zone of a job for showing times.
func zoneOf(st daybook.JobState) *time.Location {
	j, err := daybook.JobFromCanonical(st.Definition)
	if err != nil {
		return time.UTC
	}
	return location(j.Timezone)
}

func (a Answer) started() daybook.Text {
	if a.Ask.NotOpen && a.Ask.Early {
		return daybook.Say("started early: its window opens at %s.", longClock(a.Opens, a.jobZone()))
	}
	if p := a.Key.Parts(); p.N > 1 {
		return daybook.Say("started: a deliberate further effect for %s.", p.Window)
	}
	return daybook.Say("started.")
}

func (a Answer) paused() daybook.Text {
	job, by, why := a.Key.Job(), a.Job.PausedBy, inBrackets(a.Job.PausedNote)
	switch {
	case a.Outcome == daybook.Started:
		return daybook.Say("recorded and held: job %s is paused%s.", job, why)
	case by == "":
		return daybook.Say("was not started: job %s is paused%s.", job, why)
	}
	return daybook.Say("was not started: job %s is paused by %s%s.", job, by, why)
}

// inBrackets adds what explains a word, if there is anything.
func inBrackets(note string) daybook.Text {
	if note == "" {
		return daybook.Text{}
	}
	return daybook.Say(" (%s)", note)
}

func (a Answer) scheduled() daybook.Text {
	r := a.run()
	switch {
	case r.Hold != "":
		return daybook.Say("is scheduled already, and held: %s.", holdOf(r, a.At))
	case r.Due.After(a.At):
		return daybook.Say("is scheduled already, for %s.", a.when(r.Due))
	}
	return daybook.Say("is scheduled already and due: it starts when its turn comes.")
}

func (a Answer) retryable() daybook.Text {
	r := a.run()
	next := daybook.Say("now")
	if r.Due.After(a.At) {
		next = daybook.Say("at %s (in %s)", a.when(r.Due), short(r.Due.Sub(a.At)))
	}
	switch {
	case r.FannedOut() && a.Subjects != nil:
		return daybook.Say("is under way: %s. It is listed once more %s.", subjectsOfText(a.run(), a.Subjects), next)
	case r.Hold != "":
		return daybook.Say("is under way: attempt %d ended, and the next is held: %s.", r.Attempts, holdOf(r, a.At))
	case r.Reason == daybook.ReasonSettling:
		return daybook.Say("is under way: whether attempt %d happened is being asked for, next %s.", r.Attempts, next)
	case r.Reason == daybook.ReasonReplayed:
		return daybook.Say("is under way: it was replayed, next try %s.", next)
	case r.LastError != "":
		return daybook.Say("is under way: attempt %d failed (%s), next try %s.", r.Attempts, stored(daybook.Clip(oneLine(r.LastError), 120), r), next)
	}
	return daybook.Say("is under way: next try %s.", next)
}

func (a Answer) done() daybook.Text {
	r := a.run()
	at, by, counts := a.when(r.EndedAt), byWhom(r.FirstSource, r.FirstActor), counted(r.Counts)
	if a.Subjects != nil && len(r.Counts) == 0 {
		counts = daybook.Say(" (%s)", subjectsOfText(a.run(), a.Subjects))
	}
	if a.Because == daybook.BecauseOnce {
		return daybook.Say("was done at %s by %s%s, and its job has effects: once: it is not repeated under this key.", at, by, counts)
	}
	return daybook.Say("already done at %s by %s%s. Nothing was repeated.", at, by, counts)
}

func (a Answer) dead() daybook.Text {
	r := a.run()
	if l := r.Letter; l != nil && a.Because == daybook.BecauseLetter {
		return daybook.Say("is dead since %s: %s. It is not started beside its open letter: replay it.", a.when(l.OpenedAt), lastError(r))
	} else if l != nil {
		return daybook.Say("is dead since %s, and whether it happened is unknown: %s. Settle that first.", a.when(l.OpenedAt), lastError(r))
	}
	if a.Because == daybook.BecauseLetter {
		return daybook.Say("is dead: %s. It is not started beside its open letter: replay it.", lastError(r))
	}
	return daybook.Say("is dead, and whether it happened is unknown: %s. Settle that first.", lastError(r))
}

// closed tells of a letter that a person closed, or of what was undone, and that nothing was started.
func (a Answer) closed() daybook.Text {
	nothing := daybook.Say("Nothing was started.")
	r := a.run()
	switch {
	case a.Because == daybook.BecauseFinal && r.Reason == daybook.ReasonUndone:
		if left := a.Undoing.Left(); !left.IsZero() {
			return daybook.Join(daybook.Say("was done: %s. That is final.", left), nothing)
		}
		return daybook.Join(daybook.Say("was done and undone. That is final."), nothing)
	case a.Because == daybook.BecauseFinal:
		if left := a.Undoing.Left(); !left.IsZero() {
			return daybook.Join(a.letterClosed(), daybook.Say("%s.", left), daybook.Say("That is final."), nothing)
		}
		return daybook.Join(a.letterClosed(), daybook.Say("That is final."), nothing)
	case a.Outcome == daybook.Refused:
		return daybook.Join(a.letterClosed(), daybook.Say("Open it again first."))
	}
	return daybook.Join(a.letterClosed(), nothing)
}

func (a Answer) letterClosed() daybook.Text {
	compensated := a.Because == daybook.BecauseFinal
	l := a.run().Letter
	switch {
	case l == nil && compensated:
		return daybook.Say("was compensated.")
	case l == nil:
		return daybook.Say("was dismissed.")
	}
	at, by, note := a.when(l.ClosedAt), whoever(l.ClosedBy), daybook.Text{}
	if l.Note != "" {
		note = daybook.Say(": %s", strings.TrimSuffix(oneLine(l.Note), "."))
	}
	if compensated {
		return daybook.Say("was compensated at %s by %s%s.", at, by, note)
	}
	return daybook.Say("was dismissed at %s by %s%s.", at, by, note)
}

// skipReason says, in brackets, why a window was skipped.
func (a Answer) skipReason() daybook.Text {
	if a.Span != nil {
		return daybook.Say(" (%s, with the %d windows %s to %s)", a.Span.Reason, a.Span.Count, a.Span.FromLabel, a.Span.ToLabel)
	}
	if reason := a.run().Reason; reason != "" {
		return daybook.Say(" (%s)", reason)
	}
	return daybook.Text{}
}
