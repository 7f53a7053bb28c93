package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// Absence says why a key has no record.
type Absence string

// Absences. The zero value: the key has a record.
const (
	AbsentSpan     Absence = "skipped"        // it lies in a span of windows that were skipped together
	AbsentNotOpen  Absence = "not open"       // its window's first fire, or its start, lies ahead
	AbsentNoWindow Absence = "no such window" // its label names no window of the job as it is defined now
	AbsentNothing  Absence = "nothing known"  // the window is past and nobody asked for it
)

// Story is all that is known about a key, in the order of time.
type Story struct {
	Key     daybook.Key
	Run     *daybook.Run // with its effect and newest letter; nil: the key has no record, and Absence says why
	Absence Absence
	Span    *daybook.Span // with AbsentSpan
	Opens   time.Time     // with AbsentNotOpen
	Why     error         // with AbsentNoWindow
	Near    daybook.Key   // without a record: the key of the nearest subject of the window; empty: there is none
	Zone    string        // in which times are shown

	Cover    *daybook.Run  // the run that covers a coalesced one
	Further  []daybook.Key // deliberate further effects for the same window and subject
	Triggers []daybook.Trigger
	Attempts []daybook.Attempt // tries, and questions to the far side
	Letters  []daybook.Letter
	// Lock is the serial key of the run as it is held, by it or by another; nil: it has none, or nobody holds it.
	Lock *daybook.Lock
	// Waits are what keeps the run from going on.
	Waits   []Obstacle
	Undoing *Undoing // of what the run did, or of what it takes back; nil: there is none
	Alert   string   // the id of the open alert about its open letter; empty: there is none
	// Acts are what people did about it, as far as the newest 1,000 acts since it was made hold them.
	Acts     []daybook.Activity
	Timeline []Entry
	At       time.Time
	Untold   bool // there is more to tell of the subjects of the run than the timeline has

	troubled []Story      // of the subjects
	shared   []notice.Row // of the story of a subject: the alerts about it and others
	hosts    hosts
}

// Entry is one line of a story.
type Entry struct {
	At   time.Time
	What string // trigger, attempt, question, late report, letter, act, pruned; of a subject also settled
	Text daybook.Text
	Note string       // what explains it in the words of others: a reason, an error; may be empty
	Why  daybook.Text // likewise in ours
}

// Key tells all that is known about a key. A key without a record is an answer: Absence says why. Errors: CodeInvalid for
// what is no key; CodeNotFound, no such job, with the nearest name.
func (c *Control) Key(ctx context.Context, key daybook.Key) (Story, error) {
	now := c.now()
	s := Story{Key: key, At: now}
	parts, err := checkKey(key)
	if err != nil {
		return s, err
	}
	switch s.Run, err = c.runOf(ctx, key); {
	case daybook.CodeOf(err) == daybook.CodeNotFound:
		s.Run = nil
		if err := c.absence(ctx, &s, parts, now); err != nil {
			return s, err
		}
		if s.Near, err = c.nearest(ctx, key); err != nil {
			return s, err
		}
	case err != nil:
		return s, err
	default: // perhaps under an earlier name of the job
		key, parts = s.Run.Key, s.Run.Key.Parts()
		s.Key, s.Zone = key, s.Run.Zone
	}
	if s.Cover, err = c.cover(ctx, s.Run); err != nil {
		return s, err
	}
	if err := c.readAround(ctx, s.Run); err != nil {
		return s, err
	}
	highest, err := c.s.HighestN(ctx, parts.Job, parts.Window, parts.Subject)
	if err != nil {
		return s, err
	}
	for n := 1; n <= min(highest, maxListed); n++ {
		other := parts
		if other.N = n; other.N != parts.N {
			s.Further = append(s.Further, other.Key())
		}
	}
	if s.Triggers, err = c.s.Triggers(ctx, key); err != nil || s.Run == nil {
		s.Timeline = s.timeline()
		return s, err
	}
	if s.Attempts, err = c.s.Attempts(ctx, key); err != nil {
		return s, err
	}
	nodes, err := c.s.Nodes(ctx)
	if err != nil {
		return s, err
	}
	s.hosts = hostsOf(nodes)
	if s.Run.Serial != "" {
		if s.Lock, err = c.s.Lock(ctx, s.Run.Serial); err != nil {
			return s, err
		}
	}
	if s.Waits, err = c.Obstacles(ctx, s.Run); err != nil {
		return s, err
	}
	if s.Letters, err = c.s.LettersOf(ctx, key); err != nil {
		return s, err
	}
	if slices.ContainsFunc(s.Letters, func(l daybook.Letter) bool { return l.State == daybook.LetterOpen }) {
		ids, err := c.alertIDs(ctx)
		if err != nil {
			return s, err
		}
		s.Alert = ids[key]
	}
	if s.Undoing, err = c.Undoing(ctx, s.Run); err != nil {
		return s, err
	}
	acts, err := c.s.Activities(ctx, s.Run.CreatedAt, "", maxListed)
	for i := len(acts) - 1; i >= 0; i-- { // oldest first
		if acts[i].Key == key {
			s.Acts = append(s.Acts, acts[i])
		}
	}
	if err == nil {
		err = c.tellSubjects(ctx, &s)
	}
	s.Timeline = s.timeline()
	return s, err
}

// absence finds out why a key has no record.
func (c *Control) absence(ctx context.Context, s *Story, parts daybook.KeyParts, now time.Time) error {
	k, err := c.lookUp(ctx, parts.Job, false, now)
	if err != nil {
		return err
	}
	s.Absence = AbsentNothing
	if k.job != nil {
		s.Zone = k.job.Timezone
	}
	if k.schedule == nil {
		return nil
	}
	if _, err := k.schedule.WindowOf(parts.Window); err != nil {
		s.Absence, s.Why = AbsentNoWindow, err
		return nil
	}
	t := target{known: k}
	c.place(&t, parts)
	if s.Span, err = c.spanAt(ctx, k.state.Names(), t.ask.FireAt); err != nil {
		return err
	}
	switch {
	case s.Span != nil:
		s.Absence = AbsentSpan
	case t.opens.After(now):
		s.Absence, s.Opens = AbsentNotOpen, t.opens
	}
	return nil
}

// timeline puts everything in the order of time.
func (s *Story) timeline() []Entry {
	var list []Entry
	add := func(at time.Time, what string, text daybook.Text, note string) {
		if !at.IsZero() {
			list = append(list, Entry{At: at, What: what, Text: text, Note: oneLine(note)})
		}
	}
	for _, t := range s.Triggers {
		if gap := s.gap(t); !gap.IsZero() {
			t.Fire = ""
			list = append(list, Entry{At: t.At, What: "trigger", Text: triggerText(t), Why: gap})
			continue
		}
		if why := s.refusal(t); !why.IsZero() {
			list = append(list, Entry{At: t.At, What: "trigger", Text: triggerText(t), Why: why})
			continue
		}
		add(t.At, "trigger", triggerText(t), t.Note)
	}
	for _, a := range s.Attempts {
		switch {
		case s.fans() && a.Result == daybook.ResultDone: // it listed them: the head says how many
		case a.Probe:
			add(a.EndedAt, "question", questionText(a), a.Error)
		case a.Result != "":
			add(a.EndedAt, "attempt", attemptText(a, s.hosts.of(a.Node)), a.Error)
		}
		if a.LateResult != "" {
			add(a.LateAt, "late report", lateText(a), a.LateError)
		}
	}
	if r := s.Run; r != nil && r.State == daybook.Running && !r.FannedOut() {
		add(r.ClaimedAt, "attempt", runningText(r, s.hosts.of(r.Node)), "")
	}
	for _, l := range s.Letters {
		add(l.OpenedAt, "letter", letterOpenedText(l, s.Alert), l.Error)
		add(l.ClosedAt, "letter", letterClosedText(l), l.Note)
	}
	if d := s.Undoing; d != nil && d.Run.Key != s.Key {
		for _, l := range d.Letters {
			add(l.OpenedAt, "letter", daybook.Say("undo: %s", letterOpenedText(l, "")), l.Error)
			add(l.ClosedAt, "letter", daybook.Say("undo: %s", letterClosedText(l)), l.Note)
		}
		if d.Run.State == daybook.Done {
			add(d.Run.EndedAt, "act", daybook.Say("undo: done"), "")
		}
	}
	for _, a := range s.Acts {
		switch a.Action {
		case "replay", "dismiss", "trigger": // the trigger, or the letter, says so already
		default:
			add(a.At, "act", actText(a), a.Note)
		}
	}
	if s.Run != nil {
		add(s.Run.PrunedAt, "pruned", prunedText(), "")
	}
	for i := range s.troubled {
		s.troubled[i].subjectLines(func(e Entry) { list = append(list, e) })
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Compare(a.At.UnixMicro(), b.At.UnixMicro()) })
	return list
}

// gap says why a fire came later than its time, where the wall clock leapt over that.
func (s *Story) gap(t daybook.Trigger) daybook.Text {
	const label = "2006-01-02T15:04"
	nominal, err := time.ParseInLocation(label, t.Fire, location(s.Zone))
	if err != nil || t.Source != daybook.SourceSchedule || nominal.Format(label) == t.Fire {
		return daybook.Text{}
	}
	return daybook.Say("%s does not exist, fired at the end of the gap", t.Fire[len(t.Fire)-5:])
}
