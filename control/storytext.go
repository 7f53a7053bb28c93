package control

import (
	"slices"
	"strings"

	"github.com/daybook-run/daybook"
)

func prunedText() daybook.Text {
	return daybook.Say("the log was emptied: attempts and output are gone, payload and result too unless they may be needed again, the key stays")
}

func triggerText(t daybook.Trigger) daybook.Text {
	who := daybook.Say("%s", t.Source)
	if t.Actor != "" {
		who = daybook.Say("%s, %s", t.Source, oneLine(t.Actor))
	}
	if t.Fire != "" {
		return daybook.Say("%s → %s (fire %s)", who, t.Outcome, t.Fire)
	}
	return daybook.Say("%s → %s", who, t.Outcome)
}

// attemptText tells of an attempt that has ended on a machine.
func attemptText(a daybook.Attempt, host string) daybook.Text {
	begun := a.BegunAt
	if begun.IsZero() {
		begun = a.ClaimedAt
	}
	detail := daybook.Text{}
	if a.Detail != "" {
		detail = daybook.Say(" (%s)", daybook.Stored(oneLine(a.Detail)))
	}
	took := a.EndedAt.Sub(begun)
	switch timed := !begun.IsZero() && took > 0; {
	case timed && host != "":
		return daybook.Say("attempt %d → %s%s after %s on %s", a.Number, ResultText(a.Result), detail, short(took), oneLine(host))
	case timed:
		return daybook.Say("attempt %d → %s%s after %s", a.Number, ResultText(a.Result), detail, short(took))
	case host != "":
		return daybook.Say("attempt %d → %s%s on %s", a.Number, ResultText(a.Result), detail, oneLine(host))
	}
	return daybook.Say("attempt %d → %s%s", a.Number, ResultText(a.Result), detail)
}

func runningText(r *daybook.Run, host string) daybook.Text {
	if r.CancelledBy != "" {
		return daybook.Say("attempt %d is running on %s, asked to end by %s", r.Attempts, whoever(oneLine(host)), oneLine(r.CancelledBy))
	}
	return daybook.Say("attempt %d is running on %s", r.Attempts, whoever(oneLine(host)))
}

func questionText(a daybook.Attempt) daybook.Text {
	return daybook.Say("asked about %s → %s", a.WireKey, ResultText(a.Result))
}

func lateText(a daybook.Attempt) daybook.Text {
	if a.LateTaken {
		return daybook.Say("attempt %d reported late: %s, taken", a.Number, ResultText(a.LateResult))
	}
	return daybook.Say("attempt %d reported late: %s, kept as evidence only", a.Number, ResultText(a.LateResult))
}

// ResultText is the word for a result.
func ResultText(r daybook.Result) daybook.Text {
	switch r {
	case daybook.ResultDone:
		return daybook.Say("done")
	case daybook.ResultNotDone:
		return daybook.Say("not done")
	case daybook.ResultPermanent:
		return daybook.Say("permanent")
	case daybook.ResultUnclear:
		return daybook.Say("unclear")
	case daybook.ResultBusy:
		return daybook.Say("busy")
	case daybook.ResultUnknown:
		return daybook.Say("unknown")
	case daybook.ResultLost:
		return daybook.Say("lost")
	case daybook.ResultInterrupted:
		return daybook.Say("interrupted")
	}
	return daybook.Say("%s", strings.ReplaceAll(string(r), "_", " ")) // of a later version
}

// letterOpenedText tells of a letter, with the id of the open alert about it, if there is one.
func letterOpenedText(l daybook.Letter, alert string) daybook.Text {
	if l.State != daybook.LetterOpen {
		alert = ""
	}
	switch unknown := l.Kind == daybook.LetterUnknown; {
	case unknown && alert != "":
		return daybook.Say("dead letter: whether it happened is unknown, alert %s", alert)
	case unknown:
		return daybook.Say("dead letter: whether it happened is unknown")
	case alert != "":
		return daybook.Say("dead letter, alert %s", alert)
	}
	return daybook.Say("dead letter")
}

func letterClosedText(l daybook.Letter) daybook.Text {
	return daybook.Say("letter %s by %s", l.State, whoever(oneLine(l.ClosedBy)))
}

// ChangeText says what an act changed: where what it was about stood before, if that is another, and where it stands since; zero: it does
// not say.
func ChangeText(a daybook.Activity) daybook.Text {
	switch {
	case a.Before != "" && a.Before != a.After:
		return daybook.Say("%s → %s", standingText(a.Before), standingText(a.After))
	case a.After != "":
		return standingText(a.After)
	}
	return daybook.Text{}
}

// standingText is what an act has as the standing of something: a state, what a trigger was answered, or a word of its own.
func standingText(word string) daybook.Text {
	switch {
	case slices.Contains(daybook.States, daybook.State(word)):
		return daybook.Say("%s", daybook.State(word))
	case slices.Contains([]daybook.TriggerOutcome{daybook.Started, daybook.Joined, daybook.Reused, daybook.Refused}, daybook.TriggerOutcome(word)):
		return daybook.Say("%s", daybook.TriggerOutcome(word))
	}
	return daybook.Say("%s", oneLine(word))
}

func actText(a daybook.Activity) daybook.Text {
	if a.Before != "" && a.After != "" && a.Before != a.After {
		return daybook.Say("%s by %s: %s → %s", a.Action, whoever(oneLine(a.Actor)), standingText(a.Before), standingText(a.After))
	}
	return daybook.Say("%s by %s", a.Action, whoever(oneLine(a.Actor)))
}

// Line is Text in English.
func (s Story) Line() string { return s.Text().String() }

// Text says in one sentence what is known about a key.
func (s Story) Text() daybook.Text { return daybook.Say("%s  %s", s.Key, s.sentence()) }

func (s Story) sentence() daybook.Text {
	switch {
	case s.Run != nil:
		return s.standing()
	case s.Absence == AbsentSpan:
		return daybook.Say("was skipped (%s), with the %d windows %s to %s: nothing ran.", s.Span.Reason, s.Span.Count, s.Span.FromLabel, s.Span.ToLabel)
	case s.Absence == AbsentNotOpen:
		return daybook.Say("is not open yet: its window opens at %s.", longClock(s.Opens, location(s.Zone)))
	case s.Absence == AbsentNoWindow:
		return daybook.Say("names no window: %s.", s.Why)
	}
	return daybook.Say("has no record: nothing ran, and nobody asked for it.")
}

// standing says how a run stands: its state, why, what covers it, and since when it is over.
func (s Story) standing() daybook.Text {
	state := daybook.Say("%s", s.Run.State)
	switch {
	case s.Run.UndoWaits:
		state = daybook.Say("%s (its undo waits for you)", s.Run.State)
	case s.Run.Reason != "" && s.Run.Reason != daybook.ReasonCovered:
		state = daybook.Say("%s (%s)", s.Run.State, s.Run.Reason)
	}
	if s.Cover != nil {
		state = daybook.Say("%s, covered by %s, which is %s", state, s.Cover.Key, s.Cover.State)
	}
	if !s.Run.EndedAt.IsZero() && !s.Run.State.Live() {
		return daybook.Say("%s %s.", state, clock(s.Run.EndedAt, s.At, location(s.Run.Zone)))
	}
	return daybook.Say("%s.", state)
}
