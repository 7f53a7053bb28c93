package daybook

import (
	"fmt"
	"time"
)

// JobState is what the ledger keeps about a job.
type JobState struct {
	Name       string
	Home       string    // who plans and runs it: see Run.Home
	Revision   int64     // current, from 1
	Since      time.Time // from when it counts
	Definition []byte    // canonical
	Cursor     time.Time // every fire up to here is decided
	Next       time.Time // the next fire as it was worked out last: a cache, to tell when zone data moves it
	NextFire   string    // its nominal time
	FirstSeen  time.Time
	ScannedAt  time.Time
	Paused     bool
	PausedAt   time.Time
	PausedBy   string
	PausedNote string
	Fault      string // why its schedule cannot be worked out; empty: it can
	FaultAt    time.Time
	RetiredAt  time.Time // no definition names it any more
	Formerly   []string  // names under which it stood before, newest first: their rows are its own
	RenamedTo  string    // the job that carries on what stands under this name; empty: none does
}

// Names returns the name of the job and those under which its rows may stand as well.
func (s JobState) Names() []string { return append([]string{s.Name}, s.Formerly...) }

// PlannedWindow is a window with at least one fire in the span of a plan.
type PlannedWindow struct {
	Window Window
	Fires  []string  // nominal fires in the span, oldest first: each is a trigger
	FireAt time.Time // the first of them
	Last   time.Time // the last fire of the window overall
	Missed bool      // Last is further back than missed_after
	TooOld bool      // Last is further back than the look-back
	Skip   Reason    // clock gap, day off: decided by the calendar
}

// Plan is what became due for one job in (From, To], not yet decided against the ledger. The store moves the cursor from
// From to To by compare-and-set, only while Revision is current, and writes what Rows decides in the same transaction.
// A scan has From equal to To and brings windows behind the cursor that have no row.
type Plan struct {
	Job      *Job
	Home     string // of the job, and so of the runs
	Revision int64
	Source   Source // schedule; catchup for a scan
	From, To time.Time
	Windows  []PlannedWindow // in the order of their first fires
	Next     time.Time       // the first fire after To; zero: none
	NextFire string          // its nominal time
	TZData   string
}

// Facts is what the ledger knows that matters to a plan, read in the transaction that writes it.
type Facts struct {
	Paused   bool
	Formerly []string         // earlier names of the job, newest first
	Existing map[Key]Standing // of the plan's keys; spans of skipped windows count as existing
	LiveRun  bool             // a run of the job, not among the plan's, is live
	Waiting  Key              // a run of the job that is scheduled and was never begun; empty: none
}

// Span is one row for several windows in a row that were skipped for one reason. Look-ups of keys consult it.
type Span struct {
	Job       string
	FromLabel string
	ToLabel   string
	From, To  time.Time // fires of the first and the last window
	Count     int
	Reason    Reason
	Revision  int64
	DecidedAt time.Time
}

// Rows is a decided plan.
type Rows struct {
	Runs     []*Run // new: scheduled, skipped or coalesced
	Triggers []*Trigger
	Spans    []Span
	Extend   Key    // a waiting run that takes in windows; empty: none
	ExtendBy Bounds // from the start of the first of them to the end of the last
	Alerts   []*Alert
}

// NewRun prepares the run of a key. Due is set by the caller.
func NewRun(j *Job, revision int64, w Window, n int, subject string, now time.Time) *Run {
	r := &Run{
		Key: KeyParts{Job: j.Name, Window: w.Label, N: n, Subject: subject}.Key(), Job: j.Name, Window: w, Subject: subject,
		Priority: j.Priority, Lane: LaneLive, Effects: j.Effects, Work: j.Work, Steps: j.Steps, Revision: revision, Zone: j.Timezone,
		State: Scheduled, CreatedAt: now,
	}
	switch {
	case j.Fans() && subject != "":
		r.Parent = KeyParts{Job: j.Name, Window: w.Label, N: n}.Key()
	case j.Overlap == OverlapWait && j.Work != Event:
		r.Line = j.Name
	}
	if !j.Fans() || subject != "" { // a listing is of no object: its subjects are
		r.Serial = r.SerialKey(j.Serial)
	}
	return r
}

// LineUp puts a run that waits for the others of its job into one line with those that stand under earlier names, newest
// first.
func (r *Run) LineUp(formerly []string) {
	if r.Line != "" && len(formerly) > 0 {
		r.Line = formerly[len(formerly)-1]
	}
}

// Rows decides the plan: which windows run, when, which are skipped or covered, and how each fire is answered. It is
// pure.
func (p *Plan) Rows(f Facts, now time.Time) Rows {
	d := planning{plan: p, facts: f, now: now}
	fresh := d.known()
	if f.Paused {
		d.skip(fresh, ReasonPaused)
		return d.rows
	}
	fresh = d.skipped(fresh)
	switch {
	case p.Job.Missed == Coalesce:
		d.coalesce(fresh)
	default:
		d.each(fresh)
	}
	return d.rows
}

type planning struct {
	plan  *Plan
	facts Facts
	now   time.Time
	rows  Rows
}

// known answers the fires of windows that the ledger knows, and returns the others.
func (d *planning) known() []PlannedWindow {
	fresh := make([]PlannedWindow, 0, len(d.plan.Windows))
	for _, w := range d.plan.Windows {
		s, ok := d.facts.Existing[d.key(w)]
		if !ok {
			fresh = append(fresh, w)
			continue
		}
		known := Decide(Ask{Source: d.source(w)}, s).Outcome
		key := s.Key
		if key == "" {
			key = d.key(w)
		}
		d.triggers(key, w, known, known)
	}
	return fresh
}

// skipped takes out what does not run: days off and gaps, what is too old, and what was missed where missed windows are
// skipped. Neighbours with one reason become one span.
func (d *planning) skipped(fresh []PlannedWindow) []PlannedWindow {
	var left, run []PlannedWindow
	var reason Reason
	flush := func() {
		d.skip(run, reason)
		if len(run) > 0 && (reason == ReasonMissed || reason == ReasonTooOld) {
			d.tell(run, reason)
		}
		run = nil
	}
	for _, w := range fresh {
		why := w.Skip
		switch {
		case why != "":
		case w.TooOld:
			why = ReasonTooOld
		case w.Missed && d.plan.Job.Missed == SkipMissed:
			why = ReasonMissed
		}
		if why != reason {
			flush()
			reason = why
		}
		if why == "" {
			left = append(left, w)
		} else {
			run = append(run, w)
		}
	}
	flush()
	return left
}

// each runs every window, oldest first; missed ones are spaced so that catching up never floods.
func (d *planning) each(fresh []PlannedWindow) {
	live := d.facts.LiveRun
	caught := 0
	for _, w := range fresh {
		if d.plan.Job.Overlap == OverlapSkip && live {
			d.skip([]PlannedWindow{w}, ReasonOverlap)
			continue
		}
		live = true
		r := d.run(w)
		if w.Missed {
			r.Reason = ReasonMissed
			r.Due = later(r.Due, d.now.Add(time.Duration(caught)*max(d.plan.Job.CatchupGap, 0)))
			caught++
		}
		d.add(r, w, Started)
	}
}

// coalesce lets the newest window cover the others, or a run that waits take them all in.
func (d *planning) coalesce(fresh []PlannedWindow) {
	if len(fresh) == 0 {
		return
	}
	newest := len(fresh) - 1
	if d.plan.Job.Overlap == OverlapSkip && d.facts.LiveRun {
		d.skip(fresh, ReasonOverlap)
		return
	}
	cover := d.facts.Waiting
	if cover != "" {
		d.rows.Extend, d.rows.ExtendBy = cover, Bounds{Start: fresh[0].Window.Start, End: fresh[newest].Window.End}
		newest = len(fresh)
	} else {
		cover = d.key(fresh[newest])
	}
	for _, w := range fresh[:newest] {
		r := d.run(w)
		r.State, r.Reason, r.CoveredBy = Coalesced, ReasonCovered, cover
		d.add(r, w, Joined)
	}
	if newest == len(fresh) {
		return
	}
	r := d.run(fresh[newest])
	r.Cover = Bounds{Start: fresh[0].Window.Start, End: fresh[newest].Window.End}
	if fresh[newest].Missed {
		r.Reason = ReasonMissed
		r.Due = later(r.Due, d.now)
	}
	d.add(r, fresh[newest], Started)
}

// skip writes one window as a run, and several as a span.
func (d *planning) skip(windows []PlannedWindow, reason Reason) {
	switch len(windows) {
	case 0:
	case 1:
		r := d.run(windows[0])
		r.State, r.Reason = Skipped, reason
		d.add(r, windows[0], Refused)
	default:
		first, last := windows[0], windows[len(windows)-1]
		d.rows.Spans = append(d.rows.Spans, Span{Job: d.plan.Job.Name, FromLabel: first.Window.Label, ToLabel: last.Window.Label,
			From: first.FireAt, To: last.Last, Count: len(windows), Reason: reason, Revision: d.plan.Revision, DecidedAt: d.now})
	}
}

// tell alerts that windows were left out because they were missed.
func (d *planning) tell(windows []PlannedWindow, reason Reason) {
	last := windows[len(windows)-1]
	what := fmt.Sprintf("window %s skipped: %s", last.Window.Label, reason)
	if len(windows) > 1 {
		what = fmt.Sprintf("%d windows skipped, %s to %s: %s", len(windows), windows[0].Window.Label, last.Window.Label, reason)
	}
	d.rows.Alerts = append(d.rows.Alerts, NewAlert(AlertJobLate, d.key(last), d.plan.Job.Name, d.plan.Job.Priority, what, "", d.now))
}

func (d *planning) run(w PlannedWindow) *Run {
	r := NewRun(d.plan.Job, d.plan.Revision, w.Window, 1, "", d.now)
	r.LineUp(d.facts.Formerly)
	r.Fire, r.TZData, r.Home = w.Fires[0], d.plan.TZData, d.plan.Home
	r.FirstSource, r.Triggers = d.source(w), len(w.Fires)
	r.Cover = Bounds{Start: w.Window.Start, End: w.Window.End}
	r.Due = w.FireAt.Add(StartDelay(r.Key, d.plan.Job.Jitter))
	r.NotBefore = r.Due
	return r
}

func (d *planning) add(r *Run, w PlannedWindow, first TriggerOutcome) {
	d.rows.Runs = append(d.rows.Runs, r)
	d.triggers(r.Key, w, first, Decide(Ask{Source: d.source(w)}, Standing{Exists: true, State: r.State}).Outcome)
}

// triggers records the fires of a window: the first is answered as told, later ones by Decide from what stands then.
func (d *planning) triggers(key Key, w PlannedWindow, first, then TriggerOutcome) {
	for i, fire := range w.Fires {
		outcome := first
		if i > 0 {
			outcome = then
		}
		d.rows.Triggers = append(d.rows.Triggers, &Trigger{Key: key, Job: d.plan.Job.Name, Source: d.source(w),
			Outcome: outcome, Fire: fire, At: d.now})
	}
}

func (d *planning) source(w PlannedWindow) Source {
	if w.Missed {
		return SourceCatchup
	}
	return d.plan.Source
}

func (d *planning) key(w PlannedWindow) Key {
	return KeyParts{Job: d.plan.Job.Name, Window: w.Window.Label}.Key()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
