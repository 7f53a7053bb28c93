package daybook

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Drill is the record of asking for a done key again, by several doors and several times, to see that nothing comes of it.
type Drill struct {
	ID     string
	Key    Key
	Job    string
	Actor  string
	At     time.Time
	Ended  time.Time
	Doors  []Source
	Times  int // that each door was knocked at
	Knocks []Knock
	Before Tally
	After  Tally
	// Counted says that somebody counted on the far side too, before and after: CountBefore and CountAfter are what was said.
	Counted                 bool
	CountBefore, CountAfter string
	// Seen is what came of it, for people; empty: nothing did.
	Seen string
}

// Knock is how many of a drill's triggers by one door were answered alike.
type Knock struct {
	Door    Source         `json:"door"`
	Outcome TriggerOutcome `json:"outcome"`
	Times   int            `json:"times"`
}

// Tally counts what is recorded of the work of a key, and of the keys of its subjects.
type Tally struct {
	Runs     int64 `json:"runs"`
	Attempts int64 `json:"attempts"`
	Effects  int64 `json:"effects"` // tries of effects that were begun
}

// Bounds of a drill.
const (
	MaxDrillTimes = 20
	MaxCountBytes = 4096 // of what a count says
	// DrillEvery is how often a job that touches money is to be drilled.
	DrillEvery = 90 * 24 * time.Hour
)

// DrillDoors are the doors that a drill can come by, and DefaultDrillDoors those that it comes by unless it is told.
var (
	DrillDoors        = []Source{SourceSchedule, SourceCatchup, SourceManual, SourceAPI, SourceEvent, SourceOnce, SourceReplay, SourceBackfill}
	DefaultDrillDoors = []Source{SourceSchedule, SourceManual, SourceReplay}
)

// CheckDrill refuses a drill of a run that is not done: only of what is done is nothing to come.
func (r *Run) CheckDrill() error {
	switch {
	case r.Key.IsUndo():
		return Conflict("%s is the key of an undo, and is not asked for", r.Key).WithHint("drill the key of what is done: %s", r.Key.Base())
	case r.State != Done:
		return Conflict("%s is %s: only a key that is done is drilled, since asking for another may start its work", r.Key, r.State).
			WithHint("daybook run show %s", r.Key)
	case r.Reason == ReasonUndone || r.Reason == ReasonUndoing:
		return Conflict("%s was done and is taken back: it answers for nothing any more", r.Key).WithHint("drill another window")
	}
	return nil
}

// Passed reports whether nothing came of a drill.
func (d *Drill) Passed() bool { return d.Seen == "" }

// NewEffects is how many more effects are recorded than before; where the work marks none, how many more attempts.
func (d *Drill) NewEffects() int64 {
	return max(d.After.Effects-d.Before.Effects, d.After.Attempts-d.Before.Attempts, d.After.Runs-d.Before.Runs)
}

// Judge sets what came of a drill, from what was answered and counted.
func (d *Drill) Judge() {
	var seen []string
	for _, k := range d.Knocks {
		if k.Outcome != Reused {
			seen = append(seen, strconv.Itoa(k.Times)+" × "+string(k.Door)+" was "+string(k.Outcome))
		}
	}
	for _, t := range []struct {
		what          string
		before, after int64
	}{{"runs", d.Before.Runs, d.After.Runs}, {"attempts", d.Before.Attempts, d.After.Attempts}, {"effects begun", d.Before.Effects, d.After.Effects}} {
		if t.before != t.after {
			seen = append(seen, t.what+": "+strconv.FormatInt(t.before, 10)+", now "+strconv.FormatInt(t.after, 10))
		}
	}
	if d.Counted && d.CountBefore != d.CountAfter {
		seen = append(seen, "counted: "+strconv.Quote(Clip(d.CountBefore, 80))+", now "+strconv.Quote(Clip(d.CountAfter, 80)))
	}
	d.Seen = Clip(strings.Join(seen, "; "), MaxErrorBytes)
}

// Heard adds the answer to one of its triggers.
func (d *Drill) Heard(door Source, outcome TriggerOutcome) {
	i := slices.IndexFunc(d.Knocks, func(k Knock) bool { return k.Door == door && k.Outcome == outcome })
	if i < 0 {
		d.Knocks, i = append(d.Knocks, Knock{Door: door, Outcome: outcome}), len(d.Knocks)
	}
	d.Knocks[i].Times++
}

// DrillDue is the instant by which a job that touches money is to be drilled: some time after its last drill, or, when there
// was none, after its first done run. Zero: nothing is due of a job that was never done.
func DrillDue(last, firstDone time.Time) time.Time {
	if last.IsZero() {
		last = firstDone
	}
	if last.IsZero() {
		return last
	}
	return last.Add(DrillEvery)
}
