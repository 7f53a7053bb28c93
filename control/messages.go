package control

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Every text that control says stands in this file, so that a catalogue can take its place. Sentences are plain English
// and end with a full stop; messages of errors are lower case without one. Keys, states and commands are machine words
// and never translated.

// Texts about payloads.
const (
	msgNoPayload     = "it was made without a payload"
	msgPayloadPruned = "the payload it was made with is no longer kept, only its fingerprint, which differs"
)

func differs(name, was, is string) string {
	return fmt.Sprintf("%s: %s, now %s", name, value(was), value(is))
}

func value(v string) string {
	if v == "" {
		return "absent"
	}
	return daybook.Clip(v, 60)
}

func moreDifferences(n int) string { return fmt.Sprintf("and %d more", n) }

// Errors.

func noJob(name string, names []string) *daybook.Error {
	e := daybook.NotFound("there is no job %s", quoted(name, daybook.MaxNameBytes))
	if near := daybook.Nearest(strings.ToLower(name), names); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	if len(names) == 0 {
		return e.WithHint("the ledger knows no job yet: daybook serve makes the jobs of daybook.yaml known")
	}
	return e.WithHint("daybook job list shows all %d", len(names))
}

// quoted writes a name as it is when it is harmless.
func quoted(s string, limit int) string {
	if s != "" && len(s) <= limit && daybook.CheckName(s) == nil {
		return s
	}
	return fmt.Sprintf("%q", daybook.Clip(s, limit))
}

func noKey(k daybook.Key) *daybook.Error {
	return daybook.NotFound("there is no run %s", k).WithHint("daybook key show %s tells what is known about it", k)
}

func noHold(name string, names []string) *daybook.Error {
	e := daybook.NotFound("there is no hold %s", quoted(name, 40))
	if near := daybook.Nearest(name, names); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	if len(names) > 0 {
		return e.WithHint("there is: %s", strings.Join(names, ", "))
	}
	return e.WithHint("nothing is held")
}

func noWindow(k known) *daybook.Error {
	name := k.job.Name
	if k.kind() == daybook.PerEvent {
		return daybook.Invalid("job %s is started by events: which one?", name).WithHint("name the event by its id: --window ID")
	}
	_, err := k.schedule.WindowOf("?")
	return daybook.Invalid("job %s has no schedule that names a window: which one?", name).
		WithHint("add --window: %s", daybook.HintOf(err))
}

func noDate(job string, kind daybook.WindowKind, hint string) *daybook.Error {
	return daybook.Invalid("job %s has windows of kind %s: a date does not name one", job, kind).WithHint("%s", hint)
}

func badResolution(as daybook.Resolution) *daybook.Error {
	words := []string{string(daybook.AsDone), string(daybook.AsNotDone), string(daybook.AsAsk)}
	e := daybook.Invalid("%q is not one of %s", daybook.Clip(string(as), 40), strings.Join(words, ", "))
	if near := daybook.Nearest(string(as), words); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	return e
}

func badState(state daybook.State) *daybook.Error {
	words := make([]string, len(daybook.States))
	for i, s := range daybook.States {
		words[i] = string(s)
	}
	e := daybook.Invalid("%q is not one of %s", daybook.Clip(string(state), 40), strings.Join(words, ", "))
	if near := daybook.Nearest(string(state), words); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	return e
}

func badStep(step string) *daybook.Error {
	if step == "" {
		return daybook.Invalid("no step is named").WithHint("--step %s is the whole run as one effect", daybook.StepRun)
	}
	return daybook.Invalid("there is no step %q", daybook.Clip(step, 40)).WithHint("--step %s is the whole run as one effect", daybook.StepRun)
}

func letterClosed(r *daybook.Run) *daybook.Error {
	l := r.Letter
	e := daybook.Conflict("%s has no open letter: it was %s %s by %s", r.Key, l.State, clock(l.ClosedAt, time.Time{}, location(r.Zone)), whoever(l.ClosedBy))
	if l.State == daybook.LetterDismissed {
		return e.WithHint("daybook run reopen %s --reason … opens it again", r.Key)
	}
	return e
}

func changesAllTheTime(k daybook.Key) *daybook.Error {
	return &daybook.Error{Code: daybook.CodeStale, Message: fmt.Sprintf("%s changes all the time: nothing was done", k), Hint: "look at it again and repeat the command"}
}

// withHint tells what can be done instead of an act that a rule refused.
func withHint(err error, r *daybook.Run) error {
	e, ok := err.(*daybook.Error)
	if !ok || e.Hint != "" {
		return err
	}
	switch {
	case r.State == daybook.Dead && r.Letter != nil && r.Letter.State == daybook.LetterOpen && r.Letter.Kind == daybook.LetterUnknown:
		e.Hint = resolveCommand(r.Key)
	case r.State == daybook.Dead && r.Letter != nil && r.Letter.State == daybook.LetterOpen:
		e.Hint = fmt.Sprintf("daybook dead replay %s, or daybook dead dismiss %s --reason …", r.Key, r.Key)
	case r.State == daybook.Dead && r.Letter != nil && r.Letter.State == daybook.LetterDismissed, r.State == daybook.Cancelled:
		e.Hint = fmt.Sprintf("daybook run reopen %s --reason …", r.Key)
	case r.State.Live():
		e.Hint = fmt.Sprintf("daybook run watch %s follows it", r.Key)
	default:
		e.Hint = fmt.Sprintf("daybook run show %s tells what happened", r.Key)
	}
	return e
}

func resolveCommand(k daybook.Key) string {
	return fmt.Sprintf("daybook run resolve %s --step %s --as done|not-done|ask --reason …", k, daybook.StepRun)
}

// Line says in one sentence, or a few, what became of a trigger. It begins with the key.
func (a Answer) Line() string {
	text := a.sentence()
	if a.Cover != nil && a.Because != daybook.BecauseCovered {
		text = fmt.Sprintf("is covered by %s: %s", a.Cover.Key, text)
	}
	if r := a.run(); a.Outcome == daybook.Started && r.Hold != "" && a.Act != daybook.ActCreateHeld {
		text += fmt.Sprintf(" It is held: %s.", r.Hold)
	}
	switch {
	case a.NobodyExecutes:
		text += " " + nobodyExecutes(a.About())
	case a.forOnce():
		text += " " + msgOnceOnly
	}
	return fmt.Sprintf("%s  %s", a.Key, text)
}

const (
	msgNobody   = "Nobody executes now: no serve was seen in the last 30 s."
	msgOnceOnly = "No file defines its job: only daybook once runs it."
)

// nobodyExecutes says that whoever would do a run is not there.
func nobodyExecutes(r *daybook.Run) string {
	if r.Home == "" {
		return msgNobody
	}
	return fmt.Sprintf("Nobody executes now: the application %s was not seen in the last 30 s.", r.Home)
}

// executor is what a person starts so that a run is done.
func executor(r *daybook.Run) string {
	if r.Home == "" {
		return "daybook serve"
	}
	return "start " + r.Home
}

// forOnce reports whether the run waits for `daybook once`, and another door asked.
func (a Answer) forOnce() bool {
	r := a.run()
	return r.Home == daybook.HomeOnce && (r.State == daybook.Scheduled || r.State == daybook.Retryable) && a.Ask.Source != daybook.SourceOnce
}

// onceCommand is the line that runs a key of a job that no file defines.
func onceCommand(st daybook.JobState, r *daybook.Run) string {
	j, err := daybook.JobFromCanonical(st.Definition)
	if err != nil || r.Subject != "" || r.Window.Date == "" || j.Window == daybook.PerFire || r.Key.Parts().N > 1 {
		return fmt.Sprintf("the line of %s, which begins daybook once --job %s", r.Job, r.Job)
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
	return strings.Join(words, " ")
}

// Next is the command that a person is likely to want after the answer; empty when there is none.
func (a Answer) Next() string {
	key := a.Key
	if a.Cover != nil {
		key = a.Cover.Key
	}
	again := fmt.Sprintf("daybook job trigger %s --window %s", a.Key.Job(), a.label())
	if a.NobodyExecutes && a.Outcome != daybook.Refused {
		return executor(a.About())
	}
	if a.forOnce() {
		return onceCommand(a.Job, a.run())
	}
	switch a.Because {
	case daybook.BecauseNoKey, daybook.BecauseNothingToReplay:
		if a.run().State == daybook.Skipped || a.Span != nil {
			return again + " --run-skipped"
		}
		return again
	case daybook.BecauseNotOpen:
		return again + " --early --reason …"
	case daybook.BecausePaused:
		return "daybook job resume " + a.Key.Job()
	case daybook.BecauseOnce, daybook.BecauseFinal:
		return fmt.Sprintf("daybook job trigger %s --window %s~N --reason …, with the next free number, if a further effect is wanted", a.Key.Job(), a.Window.Label)
	case daybook.BecauseLetter:
		return "daybook dead replay " + string(key)
	case daybook.BecauseUnknown:
		return resolveCommand(key)
	case daybook.BecauseDismissed, daybook.BecauseCancelled:
		return fmt.Sprintf("daybook run reopen %s --reason …", key)
	case daybook.BecauseSkipped:
		return again + " --run-skipped"
	case daybook.BecauseCovered, daybook.BecausePayload:
		return "daybook run show " + string(key)
	case daybook.BecauseDone:
		return "daybook key show " + string(key)
	case string(daybook.ReasonClock):
		return "daybook freeze list"
	}
	if a.Outcome == daybook.Started || a.Outcome == daybook.Joined {
		return "daybook run watch " + string(key)
	}
	return "daybook key show " + string(key)
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

func (a Answer) when(t time.Time) string { return clock(t, a.At, a.zone()) }

func (a Answer) zone() *time.Location { return location(a.run().Zone) }

func (a Answer) sentence() string {
	r := a.run()
	switch a.Because {
	case daybook.BecauseNew:
		return a.started()
	case daybook.BecauseAgain:
		return "started: one further attempt under the same key. It stays done if this attempt fails."
	case daybook.BecauseReplayed:
		return "started again under the same key, failures reset."
	case daybook.BecauseRunSkipped:
		return "started: the window had been skipped."
	case daybook.BecauseNoKey:
		return "does not exist: nothing to replay."
	case daybook.BecauseNotOpen:
		return fmt.Sprintf("is not open yet: its window opens at %s. Nothing was started.", longClock(a.Opens, a.jobZone()))
	case daybook.BecausePaused:
		return a.paused()
	case string(daybook.ReasonClock), string(daybook.ReasonFrozen):
		return fmt.Sprintf("recorded and held: %s. It starts when that ends.", a.Because)
	case daybook.BecauseScheduled:
		return a.scheduled()
	case daybook.BecauseRunning:
		return fmt.Sprintf("is running: attempt %d since %s on %s. Nothing was started beside it.", r.Attempts, a.when(r.ClaimedAt), whoever(r.Node))
	case daybook.BecauseRetryable:
		return a.retryable()
	case daybook.BecauseDone:
		return fmt.Sprintf("already done at %s by %s%s. Nothing was repeated.", a.when(r.EndedAt), byWhom(r.FirstSource, r.FirstActor), counted(r.Counts))
	case daybook.BecauseOnce:
		return fmt.Sprintf("was done at %s by %s%s, and its job has effects: once: it is not repeated under this key.",
			a.when(r.EndedAt), byWhom(r.FirstSource, r.FirstActor), counted(r.Counts))
	case daybook.BecauseLetter:
		return fmt.Sprintf("is dead%s: %s. It is not started beside its open letter: replay it.", a.since(), lastError(r))
	case daybook.BecauseUnknown:
		return fmt.Sprintf("is dead%s, and whether it happened is unknown: %s. Settle that first.", a.since(), lastError(r))
	case daybook.BecauseDismissed:
		return a.closed("was dismissed") + a.refusal(" Open it again first.")
	case daybook.BecauseFinal:
		if r.Reason == daybook.ReasonUndone {
			return fmt.Sprintf("was done and undone. That is final.%s", a.refusal(" Nothing was started."))
		}
		return a.closed("was compensated") + " That is final." + a.refusal(" Nothing was started.")
	case daybook.BecauseSkipped:
		return fmt.Sprintf("was skipped%s: nothing ran.%s", a.skipReason(), a.refusal(" It runs only if you say so."))
	case daybook.BecauseNothingToReplay:
		return fmt.Sprintf("was skipped%s: nothing ran, so there is nothing to replay.", a.skipReason())
	case daybook.BecauseCovered:
		return a.covered()
	case daybook.BecauseCancelled:
		return fmt.Sprintf("was cancelled at %s. It is not started again by itself.", a.when(r.EndedAt))
	case daybook.BecausePayload:
		return fmt.Sprintf("was made with another payload: %s. Nothing was started or changed.", strings.Join(a.Difference, "; "))
	}
	return string(a.Because) + "."
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

// refusal adds a sentence that is true of refused triggers only.
func (a Answer) refusal(s string) string {
	if a.Outcome == daybook.Refused {
		return s
	}
	return " Nothing was started."
}

func (a Answer) started() string {
	if a.Ask.NotOpen && a.Ask.Early {
		return fmt.Sprintf("started early: its window opens at %s.", longClock(a.Opens, a.jobZone()))
	}
	if p := a.Key.Parts(); p.N > 1 {
		return fmt.Sprintf("started: a deliberate further effect for %s.", p.Window)
	}
	return "started."
}

func (a Answer) paused() string {
	why := ""
	if a.Job.PausedNote != "" {
		why = fmt.Sprintf(" (%s)", a.Job.PausedNote)
	}
	if a.Outcome == daybook.Started {
		return fmt.Sprintf("recorded and held: job %s is paused%s.", a.Key.Job(), why)
	}
	by := ""
	if a.Job.PausedBy != "" {
		by = " by " + a.Job.PausedBy
	}
	return fmt.Sprintf("was not started: job %s is paused%s%s.", a.Key.Job(), by, why)
}

func (a Answer) scheduled() string {
	r := a.run()
	switch {
	case r.Hold != "":
		return fmt.Sprintf("is scheduled already, and held: %s.", r.Hold)
	case r.Due.After(a.At):
		return fmt.Sprintf("is scheduled already, for %s.", a.when(r.Due))
	}
	return "is scheduled already and due: it starts when its turn comes."
}

func (a Answer) retryable() string {
	r := a.run()
	next := "now"
	if r.Due.After(a.At) {
		next = fmt.Sprintf("at %s (in %s)", a.when(r.Due), short(r.Due.Sub(a.At)))
	}
	switch {
	case r.Hold != "":
		return fmt.Sprintf("is under way: attempt %d ended, and the next is held: %s.", r.Attempts, r.Hold)
	case r.Reason == daybook.ReasonSettling:
		return fmt.Sprintf("is under way: whether attempt %d happened is being asked for, next %s.", r.Attempts, next)
	case r.Reason == daybook.ReasonReplayed:
		return fmt.Sprintf("is under way: it was replayed, next try %s.", next)
	case r.LastError != "":
		return fmt.Sprintf("is under way: attempt %d failed (%s), next try %s.", r.Attempts, daybook.Clip(oneLine(r.LastError), 120), next)
	}
	return fmt.Sprintf("is under way: next try %s.", next)
}

func (a Answer) since() string {
	if l := a.run().Letter; l != nil {
		return " since " + a.when(l.OpenedAt)
	}
	return ""
}

func (a Answer) closed(what string) string {
	l := a.run().Letter
	if l == nil {
		return what + "."
	}
	s := fmt.Sprintf("%s at %s by %s", what, a.when(l.ClosedAt), whoever(l.ClosedBy))
	if l.Note != "" {
		return s + ": " + strings.TrimSuffix(oneLine(l.Note), ".") + "."
	}
	return s + "."
}

func (a Answer) skipReason() string {
	reason := a.run().Reason
	if a.Span != nil {
		return fmt.Sprintf(" (%s, with the %d windows %s to %s)", a.Span.Reason, a.Span.Count, a.Span.FromLabel, a.Span.ToLabel)
	}
	if reason != "" {
		return fmt.Sprintf(" (%s)", reason)
	}
	return ""
}

func (a Answer) covered() string {
	if a.Cover == nil {
		return "is covered by another run. Nothing was started."
	}
	return fmt.Sprintf("is covered by %s, which is %s. Ask for that key.", a.Cover.Key, a.Cover.State)
}

// Line says in one sentence what became of an act. It begins with the key.
func (a Acted) Line() string {
	text := ""
	loc := location(a.Run.Zone)
	switch {
	case a.AskedBefore != "":
		text = fmt.Sprintf("was asked to end by %s already: its executor ends it.", a.AskedBefore)
	case a.Asked:
		text = "is running: its executor was asked to end it. If it has begun an effect, whether that happened is settled first."
	case a.Act == "dismiss":
		text = "dismissed."
	case a.Act == "cancel" && a.Run.State == daybook.Done:
		text = "the further attempt was cancelled; it stays done."
	case a.Act == "cancel":
		text = "cancelled."
	case a.Act == "reopen" && a.Run.State == daybook.Dead:
		text = "its letter is open again."
	case a.Act == "reopen":
		text = "scheduled again."
	case a.Run.State == daybook.Done:
		text = "done, as you said: its effect is never begun again."
	case a.Run.Reason == daybook.ReasonSettling:
		text = "the far side is asked again."
	case a.Act == "resolve":
		text = fmt.Sprintf("not done, as you said: tried again at %s, with the next wire key.", clock(a.Run.Due, a.At, loc))
	default:
		text = string(a.Run.State) + "."
	}
	if a.Run.Hold != "" {
		text += fmt.Sprintf(" It is held: %s.", a.Run.Hold)
	}
	if a.NobodyExecutes {
		text += " " + nobodyExecutes(a.Run)
	}
	if a.Run.State.Live() && a.Run.Home == daybook.HomeOnce && !a.Asked {
		text += " " + msgOnceOnly
	}
	return fmt.Sprintf("%s  %s", a.Key, text)
}

// Next is the command that a person is likely to want after the act.
func (a Acted) Next() string {
	switch {
	case a.Run.State.Live() && a.Run.Home == daybook.HomeOnce && !a.Asked:
		return onceCommand(daybook.JobState{}, a.Run)
	case a.NobodyExecutes:
		return executor(a.Run)
	case a.Run.State.Live():
		return "daybook run watch " + string(a.Key)
	case a.Run.State == daybook.Dead && a.Run.Letter != nil && a.Run.Letter.State == daybook.LetterOpen:
		return "daybook dead show " + string(a.Key)
	}
	return "daybook key show " + string(a.Key)
}

// Line says in one sentence what became of a pause or a resume.
func (p PauseChange) Line() string {
	name := p.Job.Name
	switch {
	case p.Job.Paused && p.Changed:
		return fmt.Sprintf("job %s is paused: nothing new starts, and windows that become due are skipped: paused.", name)
	case p.Job.Paused:
		return fmt.Sprintf("job %s was paused already at %s by %s. Nothing changed.", name, longClock(p.Job.PausedAt, zoneOf(p.Job)), whoever(p.Job.PausedBy))
	case p.Changed:
		return fmt.Sprintf("job %s is resumed: what was held may start.", name)
	}
	return fmt.Sprintf("job %s was not paused. Nothing changed.", name)
}

// Next is the command that a person is likely to want after it.
func (p PauseChange) Next() string {
	if p.Job.Paused {
		return "daybook job resume " + p.Job.Name
	}
	return "daybook job next " + p.Job.Name
}

// Stories.

const msgPruned = "the log was emptied: attempts, output, payload and result are gone, the key stays"

func triggerText(t daybook.Trigger) string {
	who := string(t.Source)
	if t.Actor != "" {
		who += ", " + oneLine(t.Actor)
	}
	text := fmt.Sprintf("%s → %s", who, t.Outcome)
	if t.Fire != "" {
		text += " (fire " + t.Fire + ")"
	}
	return text
}

func attemptText(a daybook.Attempt) string {
	text := fmt.Sprintf("attempt %d → %s", a.Number, strings.ReplaceAll(string(a.Result), "_", " "))
	if a.Detail != "" {
		text += " (" + oneLine(a.Detail) + ")"
	}
	begun := a.BegunAt
	if begun.IsZero() {
		begun = a.ClaimedAt
	}
	if took := a.EndedAt.Sub(begun); !begun.IsZero() && took > 0 {
		text += " after " + short(took)
	}
	if a.Node != "" {
		text += " on " + oneLine(a.Node)
	}
	return text
}

func runningText(r *daybook.Run) string {
	text := fmt.Sprintf("attempt %d is running on %s", r.Attempts, whoever(r.Node))
	if r.CancelledBy != "" {
		text += ", asked to end by " + oneLine(r.CancelledBy)
	}
	return text
}

func questionText(a daybook.Attempt) string {
	return fmt.Sprintf("asked about %s → %s", a.WireKey, strings.ReplaceAll(string(a.Result), "_", " "))
}

func lateText(a daybook.Attempt) string {
	if a.LateTaken {
		return fmt.Sprintf("attempt %d reported late: %s, taken", a.Number, a.LateResult)
	}
	return fmt.Sprintf("attempt %d reported late: %s, kept as evidence only", a.Number, a.LateResult)
}

func letterOpenedText(l daybook.Letter) string {
	if l.Kind == daybook.LetterUnknown {
		return "dead letter: whether it happened is unknown"
	}
	return "dead letter"
}

func letterClosedText(l daybook.Letter) string {
	return fmt.Sprintf("letter %s by %s", l.State, whoever(oneLine(l.ClosedBy)))
}

func actText(a daybook.Activity) string {
	text := fmt.Sprintf("%s by %s", a.Action, whoever(oneLine(a.Actor)))
	if a.Before != "" && a.After != "" && a.Before != a.After {
		text += fmt.Sprintf(": %s → %s", a.Before, a.After)
	}
	return text
}

// Line says in one sentence what is known about a key.
func (s Story) Line() string {
	text := ""
	switch {
	case s.Run != nil:
		text = string(s.Run.State)
		if s.Run.Reason != "" {
			text += fmt.Sprintf(" (%s)", s.Run.Reason)
		}
		if s.Cover != nil {
			text += fmt.Sprintf(", covered by %s, which is %s", s.Cover.Key, s.Cover.State)
		}
		if !s.Run.EndedAt.IsZero() && !s.Run.State.Live() {
			text += " " + clock(s.Run.EndedAt, s.At, location(s.Run.Zone))
		}
		text += "."
	case s.Absence == AbsentSpan:
		text = fmt.Sprintf("was skipped (%s), with the %d windows %s to %s: nothing ran.", s.Span.Reason, s.Span.Count, s.Span.FromLabel, s.Span.ToLabel)
	case s.Absence == AbsentNotOpen:
		text = fmt.Sprintf("is not open yet: its window opens at %s.", longClock(s.Opens, location(s.Zone)))
	case s.Absence == AbsentNoWindow:
		text = "names no window: " + s.Why + "."
	default:
		text = "has no record: nothing ran, and nobody asked for it."
	}
	return fmt.Sprintf("%s  %s", s.Key, text)
}

// Status.

const (
	msgNoReconcile = "there is no reconcile job"
	msgNoJobs      = "no job is defined"
)

func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func lettersText(n int) string { return many(n, "open dead letter", "open dead letters") }

func oldLettersText(n int) string {
	return many(n, "dead letter is", "dead letters are") + " open for more than 24 h"
}

func silentText(v JobView, now time.Time) string {
	if v.LastGood.Key == "" {
		return "has no good window since it is known"
	}
	return fmt.Sprintf("has had no good window since %s (%s ago)", v.LastGood.Key, short(now.Sub(v.LastGood.EndedAt)))
}

func lateRunText(l LateRun, now time.Time) string {
	text := "is late by " + short(now.Sub(l.Since))
	switch {
	case l.Run == nil:
		return text + ": no scheduler has decided it"
	case l.Run.Hold != "":
		return text + ": held, " + string(l.Run.Hold)
	case l.Run.State == daybook.Running:
		return text + fmt.Sprintf(": attempt %d is running", l.Run.Attempts)
	case l.Run.State == daybook.Retryable && l.Run.LastError != "":
		return text + ": " + daybook.Clip(oneLine(l.Run.LastError), 120)
	}
	return text + ": " + string(l.Run.State)
}

func faultText(v JobView) string { return "cannot be planned: " + oneLine(v.Fault) }

func holdText(h daybook.Hold) string {
	if h.Name == daybook.HoldClock {
		return "held: the clock is not confirmed: " + oneLine(h.Detail)
	}
	return "held: " + h.Name + ": " + oneLine(h.Detail)
}

func endHoldCommand(h daybook.Hold) string {
	return fmt.Sprintf("daybook freeze end %s --reason …", h.Name)
}

func nobodyText(seen, now time.Time) string {
	if seen.IsZero() {
		return "nobody executes: no serve was ever seen"
	}
	return fmt.Sprintf("nobody executes: a serve was seen last %s ago", short(now.Sub(seen)))
}

func idleText(n daybook.Node, now time.Time) string {
	if n.SeenAt.IsZero() {
		return fmt.Sprintf("nobody executes the jobs of the application %s: it was never seen", n.Role)
	}
	return fmt.Sprintf("nobody executes the jobs of the application %s: it was seen last %s ago", n.Role, short(now.Sub(n.SeenAt)))
}

// Doctor.

const (
	msgNoHolds   = "nothing is held"
	msgNoLetters = "no dead letter is open"
	msgWALDo     = "look for a reader that keeps a transaction open; daybook serve folds the log in when it can"
	msgServeDo   = "daybook serve"
	msgQueueDo   = "raise slots, or look at what is running: daybook run list --state running"
	msgOffsetDo  = "set the clock of that machine: a node that is off by more than 5 s claims nothing"
	msgTZDataDo  = "give all machines the same zone data, so that they agree on coming windows"
	msgVersionDo = "run one version everywhere"
	msgNoJobsDo  = "daybook init writes a first daybook.yaml, daybook serve makes its jobs known"
	msgRetiredDo = "daybook run cancel KEY --reason …, or define the job again"
	msgHorizonDo = "add the days off of the coming year: beyond that date only weekends are known"
	msgHolesDo   = "daybook serve decides them at its next scan; daybook job trigger JOB --window LABEL runs one now"
)

func ledgerText(i daybook.LedgerInfo) string {
	return fmt.Sprintf("ledger %s, schema %d, %s", i.Database, i.Schema, bytesText(i.Bytes))
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (n+1023)/1024)
}

func walText(n int64) string { return "the write-ahead log has grown to " + bytesText(n) }

func waitingText(c daybook.Counts, now time.Time) string {
	n := c.Live[daybook.Scheduled] + c.Live[daybook.Retryable]
	if n == 0 {
		return ""
	}
	text := ", and " + many(n, "run waits", "runs wait")
	if !c.OldestDue.IsZero() && c.OldestDue.Before(now) {
		text += ", the oldest for " + short(now.Sub(c.OldestDue))
	}
	return text
}

func queueText(late time.Duration) string { return "the oldest due run waits for " + short(late) }

func offsetText(n daybook.Node) string {
	return fmt.Sprintf("node %s: its clock is off by %s", whoever(n.Host), n.Offset.Round(time.Millisecond))
}

func tzdataText(n daybook.Node, here string) string {
	return fmt.Sprintf("node %s has zone data %s, this program has %s", whoever(n.Host), n.TZData, here)
}

func versionText(n, other daybook.Node) string {
	return fmt.Sprintf("node %s runs %s, node %s runs %s", whoever(n.Host), n.Version, whoever(other.Host), other.Version)
}

func nodesText(alive []daybook.Node, tzdata string) string {
	return many(len(alive), "serve is", "serves are") + " alive, version " + alive[0].Version + ", zone data " + tzdata
}

func jobsText(n int) string {
	return many(n, "job: its", "jobs: their") + " schedules work, and every window of the last 7 days is accounted for"
}

func retiredText(job string, keys []string) string {
	return fmt.Sprintf("job %s is defined by no file any more and has open runs: %s", job, listed(keys))
}

func horizonText(name, last string) string { return fmt.Sprintf("calendar %s ends %s", name, last) }

func behindText(job string, f daybook.Fire, now time.Time) string {
	return fmt.Sprintf("job %s: no scheduler has decided the fire %s, %s ago", job, f.Nominal, short(now.Sub(f.At)))
}

func holesText(keys []string) string {
	return many(len(keys), "window has", "windows have") + " neither a run nor a reason: " + listed(keys)
}

// listed names a few of many.
func listed(keys []string) string {
	const few = 5
	if len(keys) <= few {
		return strings.Join(keys, ", ")
	}
	return strings.Join(keys[:few], ", ") + fmt.Sprintf(" and %d more", len(keys)-few)
}

// Words.

// byWhom names a door, and the person who came by it.
func byWhom(source daybook.Source, actor string) string {
	switch {
	case source == "" && actor == "":
		return "somebody"
	case actor == "":
		return string(source)
	case source == "":
		return actor
	}
	return fmt.Sprintf("%s (%s)", actor, source)
}

func whoever(name string) string {
	if name == "" {
		return "nobody known"
	}
	return name
}

// counted writes counts as (20 charges, 1 mails), in the order of their names.
func counted(counts map[string]int64) string {
	if len(counts) == 0 {
		return ""
	}
	words := make([]string, 0, len(counts))
	for _, name := range sortedKeys(counts) {
		words = append(words, fmt.Sprintf("%d %s", counts[name], name))
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func lastError(r *daybook.Run) string {
	text := r.LastError
	if r.Letter != nil && r.Letter.Error != "" {
		text = r.Letter.Error
	}
	if text == "" {
		return "it did not say why"
	}
	return strings.TrimSuffix(daybook.Clip(oneLine(text), 200), ".")
}

// oneLine keeps a text from breaking the line it stands in.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return ' '
		}
		return r
	}, s)
}

// clock writes an instant in a zone: the time of the day, with its date unless that is the date of now.
func clock(t, now time.Time, loc *time.Location) string {
	if t.IsZero() {
		return "an unknown time"
	}
	t = t.In(loc)
	if t.Format(time.DateOnly) == now.In(loc).Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// longClock writes an instant with date and zone.
func longClock(t time.Time, loc *time.Location) string {
	return t.In(loc).Format("2006-01-02 15:04") + " " + loc.String()
}

// short writes a duration with its two largest units.
func short(d time.Duration) string {
	d = d.Round(time.Second)
	days, hours, minutes, seconds := d/(24*time.Hour), d%(24*time.Hour)/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second
	var parts []string
	for _, p := range []struct {
		n    time.Duration
		unit string
	}{{days, "d"}, {hours, "h"}, {minutes, "m"}, {seconds, "s"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.unit))
		} else if len(parts) > 0 {
			break
		}
	}
	switch len(parts) {
	case 0:
		return "0 s"
	case 1:
		return parts[0]
	}
	return parts[0] + " " + parts[1]
}

func sortedKeys[K ~string, V any](m map[K]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, string(k))
	}
	sort.Strings(keys)
	return keys
}

func noChannelText(jobs int) string {
	return fmt.Sprintf("no channel is told of P0 alerts, and %s money: they stand in daybook alert list and nowhere else", touchesText(jobs))
}

func touchesText(jobs int) string {
	if jobs == 1 {
		return "1 job touches"
	}
	return fmt.Sprintf("%d jobs touch", jobs)
}

const msgNoChannelDo = "name one in the file, under channels and alerts: P0, and try it: daybook alert test"

func channelsText(channels []string) string {
	return "P0 alerts are told on " + strings.Join(channels, ", ")
}
