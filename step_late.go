package daybook

import (
	"strings"
	"time"
)

// What a report of a step is worth that comes when its attempt is long over. Its rules for a run as a whole are LateStep, LateStepBefore and
// LateBefore.

// Twice is an effect of which a report that settles nothing any more says that it was done under a wire key before the one that counts.
type Twice struct {
	Step    string
	WireKey string // the one before
	Alert   *Alert
}

// DoneTwice returns what is noted, and what people are told, when a try of an effect under wireKey is reported as done and settles
// nothing any more, since the effect has happened, or may have, under a later one. Nil: it did not happen twice.
func (r *Run) DoneTwice(step, wireKey string, now time.Time) *Twice {
	e := r.StepRecord(step)
	if e == nil || !e.happened() {
		return nil
	}
	if g := e.generationOf(wireKey); g == 0 || g == e.Generation {
		return nil
	}
	return &Twice{step, wireKey, NewAlert(AlertDoneTwice, r.Key, r.Job, r.Priority,
		"a late report says that it is done under "+wireKey+", and it was begun again under "+e.WireKey(), "", now)}
}

// generationOf returns that of a wire key under which e may have been tried, 0 for any other.
func (e *StepRecord) generationOf(wireKey string) int {
	for g := 1; g <= e.Generation; g++ {
		if e.Key.WireKey(e.Step, g) == wireKey {
			return g
		}
	}
	return 0
}

// happenedOnce returns e as it is when it happened under a wire key before, as a late report said, and then not once more under the one
// that counts: it is done. Nil: that is not so.
func (e *StepRecord) happenedOnce() *StepRecord {
	if e.Twice == "" || e.State != EffectNotDone && e.State != EffectRefused {
		return nil
	}
	first, others, _ := strings.Cut(e.Twice, ", ")
	c := *e
	c.State, c.SettledBy, c.Generation, c.Twice, c.Open, c.Error = EffectDone, "late report", e.generationOf(first), others, false, ""
	return &c
}

// HappenedBefore returns the record of an effect as it stands once a report of an earlier try says that it is done, whatever was believed
// of that try meanwhile: nothing of it is under way, so it is not begun again. False: the report says nothing that could still be taken.
func (r *Run) HappenedBefore(s StepEnd, now time.Time) (*StepRecord, bool) {
	e := r.StepRecord(s.Step)
	if e == nil || e.Plain || s.Outcome.Result != ResultDone || e.State == EffectDone || e.State == EffectBegun {
		return nil, false
	}
	g := e.generationOf(s.WireKey)
	untried := g == e.Generation && e.FirstAt.IsZero()
	if g == 0 || untried || e.State == EffectUnknown && g < e.Generation { // then the later try may have happened, too
		return nil, false
	}
	next := r.StepEnded(e, s.Outcome, now)
	next.Generation, next.SettledBy = g, "late report"
	return next, true
}
