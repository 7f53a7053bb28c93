package control

import (
	"context"

	"github.com/daybook-run/daybook"
)

// SubjectsText says how the subjects of a run stand; zero where they were not counted.
func SubjectsText(r *daybook.Run) daybook.Text {
	if r.Subjects == nil {
		return daybook.Text{}
	}
	return subjectsOfText(r, r.Subjects)
}

// subjectsOfText is subjectsText of a run: once it is done, some may have been asked for by themselves.
func subjectsOfText(r *daybook.Run, n *daybook.SubjectCounts) daybook.Text {
	said := subjectsText(n)
	if n == nil || r == nil || r.State != daybook.Done {
		return said
	}
	if later := n.UnderWay() + min(n.States[daybook.Dead], n.ForPerson()); later > 0 {
		return daybook.Say("%s; %s", said, daybook.Count(int(later), "%d of them came after it was done", "%d of them came after it was done"))
	}
	return said
}

// DoneText says of how many subjects the work is done, and how many were cancelled.
func DoneText(n *daybook.SubjectCounts) daybook.Text {
	done, cancelled := n.States[daybook.Done], n.States[daybook.Cancelled]
	switch {
	case cancelled > 0:
		return daybook.Say("%d of %d subjects done, %d cancelled", done, n.Of, cancelled)
	case done < n.Of:
		return daybook.Say("%d of %d subjects done", done, n.Of)
	}
	return daybook.Say("%d of %d subjects", done, n.Of)
}

// StateText is the state of a run with a glyph and the reason: of one that only letters keep from its end, these; of one whose undo
// does not go on by itself, that.
func StateText(glyph string, r *daybook.Run) daybook.Text {
	state := daybook.Say("%s %s", glyph, r.State)
	switch {
	case r.WaitsForPerson():
		return daybook.Say("%s (waits for you: %s)", state, daybook.Count(int(r.Subjects.ForPerson()), "%d letter", "%d letters"))
	case r.UndoWaits:
		return daybook.Say("%s (its undo waits for you)", state)
	case r.Hold != "":
		return daybook.Say("%s (%s)", state, r.Hold)
	case r.Reason != "" && r.Reason != daybook.ReasonCovered: // the state says that
		return daybook.Say("%s (%s)", state, r.Reason)
	}
	return state
}

// UnderWayText says where the subjects are that are not settled; zero: all are.
func UnderWayText(n *daybook.SubjectCounts) daybook.Text {
	if n.UnderWay() == 0 {
		return daybook.Text{}
	}
	said := daybook.Say("%d running, %d to be tried again, %d wait for their turn", n.States[daybook.Running], n.States[daybook.Retryable], n.Waiting)
	if n.Held > 0 {
		said = daybook.Say("%s, %d for a serial key that another run has", said, n.Held)
	}
	return said
}

// TurnText says what the subjects of a run wait for that wait for their turn; zero: none does.
func TurnText(r *daybook.Run) daybook.Text {
	n := r.Subjects
	switch {
	case n == nil || n.Waiting == 0 && n.Breaker == nil:
		return daybook.Text{}
	case r.State == daybook.Dead:
		return daybook.Say("comes when %s is replayed", r.Key)
	case !r.State.Live():
		return daybook.Text{}
	case n.Breaker != nil && n.Breaker.Trial != "":
		return daybook.Say("comes when %s has succeeded, which is tried now", n.Breaker.Trial)
	case n.Breaker != nil:
		return daybook.Say("comes when one has succeeded: the next is tried at %s", longClock(n.Breaker.Next, location(r.Zone)))
	case !n.Won:
		return daybook.Say("comes when one has succeeded: until then %d are tried", daybook.BreakerSubjects)
	}
	return daybook.Say("comes as others end")
}

// Turn says what the run of a subject waits for that its parent has not let go; zero: it does not wait for that.
func (c *Control) Turn(ctx context.Context, r *daybook.Run) (daybook.Text, error) {
	if r.Hold != daybook.HoldTurn && r.Hold != daybook.ReasonBreaker || r.SubjectOf() == "" {
		return daybook.Text{}, nil
	}
	parent, err := c.Run(ctx, r.SubjectOf())
	if daybook.CodeOf(err) == daybook.CodeNotFound {
		return daybook.Text{}, nil
	}
	if err != nil {
		return daybook.Text{}, err
	}
	return TurnText(parent), nil
}

// namedLetters is how many letters of subjects are named where a run waits for a person.
const namedLetters = 20

// OpenLetters returns the first keys of the subjects of a run whose letters stand open, those of unknown outcomes first.
func (c *Control) OpenLetters(ctx context.Context, k daybook.Key) ([]daybook.Key, error) {
	unknown, err := c.s.SubjectLetters(ctx, k, true, namedLetters)
	if err != nil {
		return nil, err
	}
	others, err := c.s.SubjectLetters(ctx, k, false, namedLetters)
	return append(unknown, others[:min(len(others), namedLetters-len(unknown))]...), err
}

// UndoneText names the subjects of a run of which what was done is taken back, or was; zero: there is none.
func (c *Control) UndoneText(ctx context.Context, r *daybook.Run) (daybook.Text, error) {
	if r == nil || !r.Fans {
		return daybook.Text{}, nil
	}
	keys, err := c.s.UndoneSubjects(ctx, r.Key, namedLetters+1)
	if err != nil || len(keys) == 0 {
		return daybook.Text{}, err
	}
	names := make(daybook.Words, 0, len(keys))
	for _, k := range keys {
		names = append(names, oneLine(k.Parts().Subject))
	}
	if len(names) > namedLetters {
		return daybook.Say("%s and more: daybook key find %s/ lists all", names[:namedLetters], r.Key), nil
	}
	return daybook.Say("%s", names), nil
}

// subjectsText says how the subjects of a run stand: "1 open letter, 19 done, 0 unknown of 20 subjects".
func subjectsText(n *daybook.SubjectCounts) daybook.Text {
	if n == nil {
		n = &daybook.SubjectCounts{}
	}
	letters := daybook.Say("%d open letters", n.Letters)
	switch n.Letters {
	case 0:
		letters = daybook.Text{}
	case 1:
		letters = daybook.Say("1 open letter")
	}
	said := daybook.Say("%d done, %d unknown of %d subjects", n.States[daybook.Done], n.Unknown, n.Of)
	if n.Letters > 0 {
		said = daybook.Say("%s, %s", letters, said)
	}
	if closed := n.States[daybook.Dead] - n.ForPerson(); closed > 0 {
		said = daybook.Say("%s; %s", said, daybook.Count(int(closed), "%d letter closed", "%d letters closed"))
	}
	if n := n.States[daybook.Cancelled]; n > 0 {
		said = daybook.Say("%s; %s", said, daybook.Count(int(n), "%d cancelled", "%d cancelled"))
	}
	if n.Breaker != nil {
		said = daybook.Say("%s; they fail alike (%s), so one is tried at a time", said, daybook.Stored(daybook.Clip(oneLine(n.Breaker.Error), 120)))
	}
	return said
}

// subjectsReplayed says which letters of subjects were replayed with a run, and which were not.
func (a Answer) subjectsReplayed() daybook.Text {
	said := daybook.Say("started again: the %d subjects whose letters were open, each under the same key.", a.Replayed)
	if a.Replayed == 1 {
		said = daybook.Say("started again: the subject whose letter was open, under the same key.")
	}
	if a.Subjects == nil || a.Subjects.Unknown == 0 {
		return said
	}
	return daybook.Join(said, daybook.Say("Of %d it is unknown whether they happened: they are settled first, by daybook run resolve.", a.Subjects.Unknown))
}
