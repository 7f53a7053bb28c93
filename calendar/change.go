package calendar

import (
	"time"

	"github.com/daybook-run/daybook"
)

// Risk is why a change of definition must be seen before it counts.
type Risk string

// Risks.
const (
	RiskNewKeys    Risk = "new_keys"    // the same business gets other keys: it may be done twice
	RiskLeftOut    Risk = "left_out"    // windows are left without a run
	RiskOtherHours Risk = "other_hours" // a key stands for other hours than before: some are done twice, or not at all
	RiskForgets    Risk = "forgets"     // what stands under an earlier name is not looked up any more
)

// Definition is a completed job with its schedule.
type Definition struct {
	Job      *daybook.Job
	Schedule *Schedule
}

// Consequence is a risk that a change of definition brings, in words.
type Consequence struct {
	Risk    Risk
	Why     daybook.Text
	Windows []string // of RiskLeftOut: the first labels, maxNamed at most
	Count   int      // of RiskLeftOut: how many in the next days, maxCompared at most; 0 without end
}

// How far a change is looked into: a leap year and some days, so that every day of the year is among them.
const (
	comparedDays = 400
	maxCompared  = 1000
	maxNamed     = 3
)

// Consequences says what a change of a job's definition at an instant does to what its keys promise: that one window of
// business has one key, and that every window has its run. A nil after is a job that nothing defines any more. A job that was
// renamed, and carries on what stood under its old name, has no new keys for that alone.
func Consequences(before, after *Definition, now time.Time) []Consequence {
	if after == nil {
		if len(before.Schedule.lines) == 0 {
			return nil
		}
		return []Consequence{{Risk: RiskLeftOut, Why: daybook.Say("nothing defines it any more: its windows are left out")}}
	}
	c := &comparing{before: before.Schedule, after: after.Schedule, now: now}
	if was := before.Job.Formerly; was != "" && before.Job.Name == after.Job.Name && was != after.Job.Formerly {
		c.tell(RiskForgets, daybook.Say("formerly: %s is gone: what was done under that name is not looked up any more", was))
	}
	switch {
	case c.before.kind != c.after.kind:
		c.tell(RiskNewKeys, daybook.Say("window %s instead of %s: the same business gets other keys", c.after.kind, c.before.kind))
	case c.before.kind == daybook.PerEvent:
	case len(c.before.lines) > 0 && len(c.after.lines) == 0:
		c.tell(RiskLeftOut, daybook.Say("it has no schedule any more: its windows are left out"))
	default:
		c.windows()
	}
	return c.found
}

type comparing struct {
	before, after *Schedule
	now           time.Time
	found         []Consequence
}

func (c *comparing) tell(risk Risk, why daybook.Text) {
	c.found = append(c.found, Consequence{Risk: risk, Why: why})
}

// windows compares the windows to come of two schedules with one kind of window.
func (c *comparing) windows() {
	left, moved, end := c.left()
	switch added := c.before.kind == daybook.PerFire && len(left) > 0 && c.adds(end); {
	case added:
		c.tell(RiskNewKeys, daybook.Say("it fires at other times, and each time is a key: the same business gets other keys"))
	case len(left) > 0:
		named := left[:min(len(left), maxNamed)]
		why := daybook.Count(len(left), "%d window to come is left out: %s", "%d windows to come are left out, the first %s", daybook.Words(named))
		c.found = append(c.found, Consequence{Risk: RiskLeftOut, Why: why, Windows: named, Count: len(left)})
	}
	if !moved && dated(c.before.kind) { // also of what is asked for by hand
		w := c.before.Current(c.now)
		moved = c.moves(w)
	}
	if moved {
		c.tell(RiskOtherHours, daybook.Say("a key stands for other hours than before, in %s instead of %s: some hours would be done twice, or not at all", c.after.zone.loc, c.before.zone.loc))
	}
}

// left returns the windows to come that only the old schedule runs, whether one of the others is at other hours, and the end
// of what was looked at.
func (c *comparing) left() (labels []string, moved bool, end time.Time) {
	end = c.now.AddDate(0, 0, comparedDays)
	compared := 0
	for d := range c.before.Due(c.now, end) {
		if compared++; compared > maxCompared {
			return labels, moved, d.Fires[0].At
		}
		if first, ok := c.before.firstRun(d.Window); d.Skip != "" || !ok || !first.After(c.now) {
			continue // it never runs, or its run was made already
		}
		w, err := c.after.WindowOf(d.Window.Label)
		if err == nil {
			if last, ok := c.after.lastRun(w); ok && last.After(c.now) {
				moved = moved || c.moves(d.Window)
				continue
			}
		}
		labels = append(labels, d.Window.Label)
	}
	return labels, moved, end
}

// moves reports whether the new schedule means other hours by the label of a window.
func (c *comparing) moves(w daybook.Window) bool {
	other, err := c.after.WindowOf(w.Label)
	return err == nil && (!other.Start.Equal(w.Start) || dated(c.before.kind) && !other.End.Equal(w.End))
}

// adds reports whether the new schedule has a fire up to an instant that the old one has not.
func (c *comparing) adds(end time.Time) bool {
	compared := 0
	for f := range c.after.Between(c.now, end) {
		if compared++; compared > maxCompared {
			break
		}
		if _, ok := c.before.runOf(f.Window); f.Skip == "" && !ok {
			return true
		}
	}
	return false
}
