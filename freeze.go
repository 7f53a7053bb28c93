package daybook

import (
	"slices"
	"time"
)

// Freeze is a span in which nothing starts, no retry lands, and no probe or undo is sent. What runs goes on, and a report that
// arrives is taken. It always has an end.
type Freeze struct {
	Name   string
	Only   Priority  // what it holds; empty: everything
	From   time.Time // it begins
	Until  time.Time // it is over
	Actor  string    // who began it; empty: it is of a file
	Note   string    // why
	OfFile bool
}

// FreezeRule is a freeze of a file: it comes with each fire of a schedule.
type FreezeRule struct {
	Name     string
	Schedule string
	For      time.Duration
	Only     Priority
}

// Limits of freezes.
const (
	MaxFreeze    = 24 * time.Hour
	FreezeSpread = time.Minute // what was held starts within it after the end, each key at its own instant
)

// Holds reports whether runs of a priority do not start at an instant.
func (f Freeze) Holds(p Priority, at time.Time) bool {
	return (f.Only == "" || f.Only == p) && !at.Before(f.From) && at.Before(f.Until)
}

// FrozenUntil returns until when runs of a priority do not start at an instant: to the end of the last of several freezes that
// follow each other. The zero time: nothing holds them.
func FrozenUntil(list []Freeze, p Priority, at time.Time) time.Time {
	var until time.Time
	for again := true; again; {
		again = false
		for _, f := range list {
			if f.Holds(p, at) {
				at, until, again = f.Until, f.Until, true
			}
		}
	}
	return until
}

// Thaw returns when the run of a key starts that a freeze holds at an instant: at its end, spread by the key, and outside of
// the others. The zero times: nothing holds it.
func Thaw(list []Freeze, k Key, p Priority, at time.Time) (due, until time.Time) {
	for end := FrozenUntil(list, p, at); !end.IsZero(); end = FrozenUntil(list, p, due) {
		until, due = end, end.Add(StartDelay(k, FreezeSpread))
	}
	return due, until
}

// HeldAt returns what holds a run at an instant. A freeze holds it until it is due again.
func (r *Run) HeldAt(now time.Time) Reason {
	if r.Hold == ReasonFrozen && !now.Before(r.Due) {
		return ""
	}
	return r.Hold
}

// FrozenSpans returns the spans within freezes of a priority, by time, none of them touching another.
func FrozenSpans(list []Freeze, p Priority) []Bounds {
	list = slices.DeleteFunc(slices.Clone(list), func(f Freeze) bool { return f.Only != "" && f.Only != p })
	slices.SortFunc(list, func(a, b Freeze) int { return a.From.Compare(b.From) })
	var spans []Bounds
	for _, f := range list {
		switch last := len(spans) - 1; {
		case last < 0 || spans[last].End.Before(f.From):
			spans = append(spans, Bounds{Start: f.From, End: f.Until})
		case spans[last].End.Before(f.Until):
			spans[last].End = f.Until
		}
	}
	return spans
}
