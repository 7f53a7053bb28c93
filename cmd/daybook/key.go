package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/lang"
)

func newKey(a *app) *cobra.Command {
	return noun("key", textKey, newKeyShow(a), newKeyFind(a))
}

func newKeyShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show KEY", Short: textKeyShow, Long: textKeyShowLong, Args: exactly("KEY"), ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.keyShow(cmd.Context(), daybook.Key(args[0]))
		},
	}
}

// storyJSON is daybook/key.v1.
type storyJSON struct {
	Schema   string          `json:"schema"`
	Key      daybook.Key     `json:"key"`
	Message  string          `json:"message"`
	Absence  control.Absence `json:"absence,omitempty"`
	Opens    time.Time       `json:"opens,omitzero"`
	Span     *spanJSON       `json:"span,omitempty"`
	Run      *runJSON        `json:"run,omitempty"`
	Cover    *runJSON        `json:"cover,omitempty"`
	Further  []daybook.Key   `json:"further,omitempty"`
	Triggers []triggerJSON   `json:"triggers"`
	Attempts []attemptJSON   `json:"attempts"`
	Letters  []*letterJSON   `json:"letters"`
	Alert    string          `json:"alert,omitempty"`
	Activity []activityJSON  `json:"activity"`
	Timeline []entryJSON     `json:"timeline"`
}

type spanJSON struct {
	From   string         `json:"from"`
	To     string         `json:"to"`
	Count  int            `json:"count"`
	Reason daybook.Reason `json:"reason"`
}

type entryJSON struct {
	At   time.Time    `json:"at"`
	What string       `json:"what"`
	Text daybook.Text `json:"text"`
	Note string       `json:"note,omitempty"`
}

func newStoryJSON(s control.Story) storyJSON {
	j := storyJSON{Schema: "daybook/key.v1", Key: s.Key, Message: s.Line(), Absence: s.Absence, Opens: s.Opens, Run: control.Nested(s.Run), Cover: control.Nested(s.Cover), Further: s.Further, Alert: s.Alert,
		Triggers: []triggerJSON{}, Attempts: []attemptJSON{}, Letters: []*letterJSON{}, Activity: []activityJSON{}, Timeline: []entryJSON{}}
	if j.Run != nil {
		j.Run.Lock, j.Run.WaitsFor = control.NewLockJSON(s.Lock), control.NewObstaclesJSON(s.Waits)
	}
	if s.Span != nil {
		j.Span = &spanJSON{s.Span.FromLabel, s.Span.ToLabel, s.Span.Count, s.Span.Reason}
	}
	for _, t := range s.Triggers {
		j.Triggers = append(j.Triggers, triggerJSON{t.At, t.Source, t.Actor, t.Outcome, t.Fire, t.Note})
	}
	for _, t := range s.Attempts {
		j.Attempts = append(j.Attempts, newAttemptJSON(t))
	}
	for _, l := range s.Letters {
		letter := control.NewLetterJSON(l)
		letter.Schema = ""
		j.Letters = append(j.Letters, letter)
	}
	for _, t := range s.Acts {
		act := newActivityJSON(t)
		act.Schema = ""
		j.Activity = append(j.Activity, act)
	}
	for _, e := range s.Timeline {
		j.Timeline = append(j.Timeline, entryJSON{e.At, e.What, e.Text, cmp.Or(e.Note, e.Why.String())})
	}
	return j
}

func (a *app) keyShow(ctx context.Context, key daybook.Key) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		s, err := c.Key(ctx, key)
		if err != nil {
			return err
		}
		if a.flags.json {
			if err := a.printJSON(newStoryJSON(s)); err != nil {
				return err
			}
			if s.Run == nil && s.Absence != control.AbsentSpan {
				return a.noKey(ctx, c, s, true)
			}
			return nil
		}
		zone, err := a.storyZone(ctx, c, s)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(a.Stdout)
		a.tellStory(w, s, zone)
		if err := w.Flush(); err != nil {
			return err
		}
		if s.Run == nil && s.Absence != control.AbsentSpan {
			return a.noKey(ctx, c, s, false)
		}
		if do := s.Undoing.WaitsFor(); !do.IsZero() {
			a.nextText(do)
		} else {
			a.next(storyNext(s))
		}
		return nil
	})
}

// storyZone is the zone of the run, or of its job where the key has no record.
func (a *app) storyZone(ctx context.Context, c *control.Control, s control.Story) (*time.Location, error) {
	if s.Run != nil {
		return a.zoneOf(s.Run.Zone), nil
	}
	v, err := c.Job(ctx, s.Key.Job())
	if err != nil || v.Job == nil {
		return a.zoneOf(""), err
	}
	return a.zoneOf(v.Job.Timezone), nil
}

// noKey is the error of a key without a record, with the nearest one that has.
func (a *app) noKey(ctx context.Context, c *control.Control, s control.Story, told bool) error {
	e := daybook.NotFound("%s", s.Text())
	if s.Near != "" {
		return withSilence(e.WithHint("did you mean %s?", s.Near), told)
	}
	runs, err := c.Runs(ctx, daybook.Filter{Job: s.Key.Job(), Limit: 500})
	if err != nil {
		return err
	}
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = string(r.Key)
	}
	switch near := daybook.Nearest(string(s.Key), names); {
	case near != "":
		e = e.WithHint("did you mean %s? daybook key find %s: lists what there is", near, s.Key.Job())
	case len(names) > 0:
		e = e.WithHint("the newest is %s; daybook key find %s: lists all", names[0], s.Key.Job())
	default:
		e = e.WithHint("job %s has no run yet", s.Key.Job())
	}
	return withSilence(e, told)
}

// withSilence is the error of a key without a record; silent when it was told already.
func withSilence(e error, told bool) error {
	if told {
		return &coded{code: daybook.ExitNotFound, err: e, silent: true}
	}
	return e
}

// tellStory writes the head of a key and its story, line by line, in the order of time.
func (a *app) tellStory(w *bufio.Writer, s control.Story, loc *time.Location) {
	if s.Run != nil {
		head, window := a.storyHead(s, loc), a.lang.F("window %s", bounds(s.Run.Window, a.zoneOf(s.Run.Zone)))
		sep := "  "
		if displayWidth(head)+2+displayWidth(window) > a.columns() {
			sep = "\n  "
		}
		fmt.Fprintf(w, "%s%s%s\n", head, sep, window)
	} else if s.Absence == control.AbsentSpan {
		a.wrapped(w, "", a.lang.Say(s.Text()))
	}
	if r := s.Run; r != nil {
		if r.State.Live() && r.State != daybook.Running {
			fmt.Fprintln(w, a.lang.F("  due %s", stamp(r.Due, loc)))
		}
		if r.Serial != "" {
			fmt.Fprintln(w, a.lang.F("  serial key %s%s", r.Serial, lockText(r, s.Lock, loc)))
		}
		for _, o := range s.Waits {
			if said := o.Text(loc); o.Serial != r.Serial && !said.IsZero() {
				fmt.Fprintln(w, a.lang.F("  waits for %s", said))
			}
			if o.Person {
				fmt.Fprintln(w, a.lang.F("  needs you  %s: %s", o.Why, o.Do))
			}
		}
		for _, e := range r.Marked() {
			if e.Plain {
				fmt.Fprintln(w, a.lang.F("  step %s  %s", e.Step, effectText(e.State)))
				continue
			}
			fmt.Fprintln(w, a.lang.F("  effect %s  %s  wire key %s%s", e.Step, effectText(e.State), e.WireKey(), daybook.Say("%s%s%s", twiceText(e), settledBy(e), takenText(s, e))))
		}
		if left := s.Undoing.Left(); !left.IsZero() {
			fmt.Fprintln(w, a.lang.F("  undo  %s", left))
		}
		if n := r.Subjects; n != nil && n.States[daybook.Done] != n.Of { // else the head says it
			fmt.Fprintln(w, a.lang.F("  subjects  %s", control.SubjectsText(r)))
		}
		if len(r.Counts) > 0 {
			fmt.Fprintln(w, a.lang.F("  reported  %s", counts(r.Counts)))
		}
	}
	if len(s.Further) > 0 {
		fmt.Fprintln(w, a.lang.F("  see also  %s", daybook.Words(texts(s.Further))))
	}
	format := time.TimeOnly
	if !oneDay(s, loc) {
		format = time.DateTime
	}
	widest := 0
	said, notes := make([]string, len(s.Timeline)), make([]string, len(s.Timeline))
	for i, e := range s.Timeline {
		said[i], notes[i] = oneLine(a.lang.Say(e.Text)), oneLine(cmp.Or(a.lang.Stored(lang.Local(e.Note, loc)), a.lang.Say(e.Why)))
		if n := displayWidth(said[i]); notes[i] != "" && n <= 48 {
			widest = max(widest, n)
		}
	}
	for i, e := range s.Timeline {
		line := said[i]
		if notes[i] != "" {
			line = pad(line, widest) + "  " + notes[i]
		}
		fmt.Fprintf(w, "  %s  %s\n", e.At.In(loc).Format(format), line)
	}
	if s.Untold {
		fmt.Fprintln(w, "  "+a.lang.F("… and of further subjects: daybook key find %s/", s.Key))
	}
}

// takenText says whether an effect was taken back.
func takenText(s control.Story, e *daybook.StepRecord) daybook.Text {
	if s.Undoing == nil || s.Key.IsUndo() {
		return daybook.Text{}
	}
	for _, t := range s.Undoing.Effects {
		if t.Step == e.Step {
			return daybook.Say("  %s", t.Text())
		}
	}
	return daybook.Text{}
}

// twiceText names the other wire keys under which the far side has an effect.
func twiceText(e *daybook.StepRecord) daybook.Text {
	if e.Twice == "" {
		return daybook.Text{}
	}
	return daybook.Say("  done twice: the far side has it under %s as well", e.Twice)
}

func settledBy(e *daybook.StepRecord) daybook.Text {
	if e.SettledBy == "" {
		return daybook.Text{}
	}
	return daybook.Say("  settled by %s", oneLine(e.SettledBy))
}

// lockText says who has the serial key of a run.
func lockText(r *daybook.Run, l *daybook.Lock, loc *time.Location) daybook.Text {
	switch {
	case l == nil:
		return daybook.Text{}
	case l.Key != r.Key:
		return daybook.Say("  held by %s since %s", l.Key, stamp(l.Since, loc))
	case l.Waiting > 0:
		return daybook.Say("  held since %s, others wait: %d", stamp(l.Since, loc), l.Waiting)
	}
	return daybook.Say("  held since %s", stamp(l.Since, loc))
}

// effectText is the word for where an effect stands.
func effectText(s daybook.EffectState) daybook.Text {
	switch s {
	case daybook.EffectNotDone:
		return daybook.Say("not done")
	case daybook.EffectBegun:
		return daybook.Say("begun")
	case daybook.EffectUnknown:
		return daybook.Say("unknown")
	case daybook.EffectDone:
		return daybook.Say("done")
	case daybook.EffectRefused:
		return daybook.Say("refused")
	}
	return daybook.Say("%s", strings.ReplaceAll(string(s), "_", " ")) // of a later version
}

// counts are what a run reported, under the names that are its own.
func counts(m map[string]int64) daybook.Words {
	var list daybook.Words
	for _, name := range sortedNames(m) {
		list = append(list, oneLine(fmt.Sprintf("%d %s", m[name], name)))
	}
	return list
}

// storyHead is the first line: key, priority, state.
func (a *app) storyHead(s control.Story, loc *time.Location) string {
	r := s.Run
	text := fmt.Sprintf("%s  %s  %s %s", r.Key, r.Priority, a.mark(glyphs[r.State]), a.lang.State(r.State))
	switch {
	case r.WaitsForPerson():
		text += a.lang.F(" (waits for you: %s)", daybook.Count(int(r.Subjects.ForPerson()), "%d letter", "%d letters"))
	case r.UndoWaits:
		text += a.lang.F(" (its undo waits for you)")
	case r.Reason != "" && r.Reason != daybook.ReasonCovered:
		text += a.lang.F(" (%s)", r.Reason)
	}
	if r.Hold != "" {
		text += a.lang.F(" (held: %s)", r.Hold)
	}
	if !r.EndedAt.IsZero() && !r.State.Live() {
		text += " " + stamp(r.EndedAt, loc)
	}
	if r.Subjects != nil {
		text += "  " + a.lang.Say(control.DoneText(r.Subjects))
	}
	if s.Cover != nil {
		text += "  " + a.lang.F("covered by %s, which is %s", s.Cover.Key, s.Cover.State)
	}
	return text
}

// bounds writes a window: 2026-03-29 00:00→24:00 Europe/Berlin (23 h).
func bounds(w daybook.Window, loc *time.Location) daybook.Text {
	if w.Start.IsZero() || !w.End.After(w.Start) {
		return daybook.Say("%s", w.Label)
	}
	from, to := w.Start.In(loc), w.End.In(loc)
	y, m, d := from.Date()
	nextDay := time.Date(y, m, d+1, 0, 0, 0, 0, loc)
	if from.Format("15:04:05") == "00:00:00" && w.End.Equal(nextDay) {
		text := from.Format(time.DateOnly) + " 00:00→24:00 " + loc.String()
		if hours := w.End.Sub(w.Start).Hours(); hours != 24 {
			return daybook.Say("%s (%g h)", text, hours)
		}
		return daybook.Say("%s", text)
	}
	return daybook.Say("%s → %s %s", from.Format("2006-01-02 15:04"), to.Format("2006-01-02 15:04"), loc)
}

// oneDay reports whether everything of a story happened on one date, and that date is the one its head names.
func oneDay(s control.Story, loc *time.Location) bool {
	date := s.At.In(loc).Format(time.DateOnly)
	if s.Run != nil && !s.Run.EndedAt.IsZero() {
		date = s.Run.EndedAt.In(loc).Format(time.DateOnly)
	}
	for _, e := range s.Timeline {
		if e.At.In(loc).Format(time.DateOnly) != date {
			return false
		}
	}
	return s.Run != nil && !s.Run.EndedAt.IsZero()
}

// storyNext is the command that a person is likely to want after reading a story.
func storyNext(s control.Story) string {
	switch r := s.Run; {
	case s.Cover != nil:
		return "daybook key show " + string(s.Cover.Key)
	case r == nil:
		return fmt.Sprintf("daybook job trigger %s --window %s --run-skipped", s.Key.Job(), s.Key.Parts().Window)
	case r.State.Live():
		return "daybook run watch " + string(r.Key)
	case r.Letter != nil && r.Letter.State == daybook.LetterOpen:
		return "daybook dead show " + string(r.Key)
	case r.Attempts > 0 && r.PrunedAt.IsZero():
		return "daybook run logs " + string(r.Key)
	}
	return ""
}

func newKeyFind(a *app) *cobra.Command {
	var o listFlags
	cmd := &cobra.Command{
		Use: "find PREFIX", Short: textKeyFind, Args: exactly("PREFIX"), ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runsByFilter(cmd.Context(), daybook.Filter{Prefix: args[0]}, o, daybook.Say("no key begins with %s", args[0]))
		},
	}
	o.flags(cmd)
	return cmd
}
