// Package scheduler turns due and missed windows into run rows. It runs nothing and holds no lock: two schedulers meet
// in the unique index and in the cursor, which only moves forward. It is called by the loop, and by engine when
// definitions are loaded.
package scheduler

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// Limits of one piece of work.
const (
	plansPerTick   = 1000 // jobs planned in one piece of work
	plansPerWrite  = 500  // and in one transaction of those; the transactions of a piece of work are written side by side
	windowsPerPlan = 5000 // windows of one job decided in one transaction; what is left comes next
	scanEvery      = 24 * time.Hour
	scanPause      = time.Minute // before a scan that could not be finished is tried again
	faultPause     = time.Minute // between tries of a schedule that cannot be worked out
)

// Schedule is what the scheduler asks of a compiled schedule; *calendar.Schedule is one.
type Schedule interface {
	Next(after time.Time) (daybook.Fire, bool)
	Due(from, to time.Time) iter.Seq[calendar.Due]
	MissedAfter(f daybook.Fire, configured time.Duration) time.Duration
}

// Job is a completed definition with its schedule.
type Job struct {
	*daybook.Job
	Schedule Schedule
}

// Store is what the scheduler needs of the ledger.
type Store interface {
	daybook.Planner
	Alert(ctx context.Context, a *daybook.Alert) error
	Note(ctx context.Context, a daybook.Activity) error
}

// Options of New.
type Options struct {
	// Compile completes an earlier definition, to decide what fell under it.
	Compile func(daybook.Job) (Job, error)
	TZData  string // version of the zone data, stored with each run
	Home    string // of the jobs that Load brings; empty: those of a file
	Log     *slog.Logger
	// Freezes returns those of a file that end after one instant and begin before another. May be nil.
	Freezes func(ends, begins time.Time) []daybook.Freeze
	// Woke is called after runs were made that can be claimed. May be nil.
	Woke func()
}

// Scheduler plans. Its methods are called by one goroutine at a time.
type Scheduler struct {
	store Store
	o     Options
	jobs  map[string]*entry
	queue queue
	scans []*entry // by when their look-back is compared next

	gone []string // jobs that Load retires

	behind  atomic.Int64     // jobs that are planned here no more: another process loaded another definition
	freezes []daybook.Freeze // that ended lately, or stand: see frozen

	held   []*entry // due, but nothing of their kind starts now
	heldAt time.Time
}

// entry is one job as this process plans it.
type entry struct {
	Job
	home      string
	revision  int64
	cursor    time.Time
	since     time.Time // first seen
	counts    time.Time // from when the definition counts
	next      time.Time // when it must be looked at again; zero: never
	scan      time.Time // when its look-back is compared next
	fault     string
	overtaken bool // another process plans it by another definition
	index     int  // in the queue; -1: not in it
}

// New returns a scheduler without jobs; Load brings them.
func New(store Store, o Options) *Scheduler {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Woke == nil {
		o.Woke = func() {}
	}
	return &Scheduler{store: store, o: o, jobs: make(map[string]*entry)}
}

// Load makes jobs the ones that this process plans, and their definitions the current ones. Before a changed or removed
// definition ends, it decides everything up to now. retireOthers says that jobs not in the list are defined nowhere any
// more.
func (s *Scheduler) Load(ctx context.Context, jobs []Job, retireOthers bool, now time.Time) error {
	states, err := s.store.JobStates(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]daybook.JobState, len(states))
	for _, st := range states {
		known[st.Name] = st
	}
	changes := make([]daybook.Revision, 0, len(jobs))
	named := make(map[string]bool, len(jobs)) // also those that another name carries on
	for _, j := range jobs {
		named[j.Name] = true
		change := daybook.Revision{Job: j.Job, Home: s.o.Home}
		if st, ok := known[j.Name]; !ok || !st.RetiredAt.IsZero() {
			change.Left = s.begunElsewhere(j, now)
		}
		for _, name := range []string{j.Name, j.Formerly} {
			named[name] = true
			if st, ok := known[name]; ok && s.ends(st) && string(st.Definition) != string(j.Canonical()) {
				change.Left = append(change.Left, s.endRevision(ctx, st, &j, now)...)
			}
		}
		if _, ok := known[j.Formerly]; !ok && j.Formerly != "" {
			s.o.Log.Warn("nothing is carried over: the ledger knows no job of that name", "job", j.Name, "formerly", j.Formerly)
		}
		changes = append(changes, change)
	}
	for _, st := range states {
		if retireOthers && st.Home == "" && !named[st.Name] && st.RetiredAt.IsZero() {
			s.endRevision(ctx, st, nil, now)
		}
	}
	for _, name := range s.gone {
		if st, ok := known[name]; ok && !named[name] && st.Home == s.o.Home && st.RetiredAt.IsZero() {
			s.endRevision(ctx, st, nil, now)
			changes = append(changes, daybook.Revision{Job: &daybook.Job{Name: name}, Home: s.o.Home, Gone: true})
		}
	}
	if states, err = s.store.TakeRevisions(ctx, changes, retireOthers, now); err != nil {
		return err
	}
	for _, st := range states {
		known[st.Name] = st
	}
	s.jobs, s.queue, s.scans, s.held = make(map[string]*entry, len(jobs)), nil, nil, nil
	s.behind.Store(0)
	for _, j := range jobs {
		s.enter(ctx, j, known[j.Name], now)
	}
	slices.SortStableFunc(s.scans, func(a, b *entry) int { return a.scan.Compare(b.scan) })
	return nil
}

// ends reports whether a definition of the ledger is this process's to end.
func (s *Scheduler) ends(st daybook.JobState) bool {
	return st.RetiredAt.IsZero() && (st.Home == s.o.Home || st.Home == daybook.HomeOnce)
}

// Overtaken counts the jobs that this process plans no more, as another one loaded another definition. Any goroutine may ask.
func (s *Scheduler) Overtaken() int { return int(s.behind.Load()) }

// Retire says which jobs of its home are done nowhere any more, for the next Load.
func (s *Scheduler) Retire(names ...string) { s.gone = append(s.gone, names...) }

// endRevision lets the definition in force decide everything up to now, and returns the windows that the one after it
// leaves out. One that cannot be worked out any more (its calendar is gone) decides nothing, and that is said.
func (s *Scheduler) endRevision(ctx context.Context, st daybook.JobState, after *Job, now time.Time) []daybook.Window {
	definition, err := daybook.JobFromCanonical(st.Definition)
	var before Job
	if err == nil {
		before, err = s.o.Compile(definition)
	}
	if err != nil {
		s.o.Log.Warn("the definition before cannot be worked out: what it owed is not decided", "job", st.Name, "err", err)
		return nil
	}
	e := &entry{Job: before, home: st.Home, revision: st.Revision, cursor: st.Cursor, since: st.FirstSeen, counts: st.Since, index: -1}
	for e.cursor.Before(now) && st.Home == s.o.Home { // what `daybook once` did was planned by nobody
		at := e.cursor
		if _, _, err := s.plan(ctx, []*entry{e}, now); err != nil || !e.cursor.After(at) {
			s.o.Log.Warn("what the definition before owed is not decided", "job", st.Name, "err", err)
			return nil
		}
	}
	if after == nil {
		return nil
	}
	old, ok1 := before.Schedule.(*calendar.Schedule)
	fresh, ok2 := after.Schedule.(*calendar.Schedule)
	if !ok1 || !ok2 {
		return nil
	}
	return calendar.LeftOut(old, fresh, now)
}

// begunElsewhere returns the windows that a job with zones, which is new here, comes too late for: they have begun where dates
// begin first, and not yet where they begin last. They are left out, as any window is that began before its job came, and that is
// told: for most subjects their hour is still to come.
func (s *Scheduler) begunElsewhere(j Job, now time.Time) []daybook.Window {
	first, ok := j.Schedule.(*calendar.Schedule)
	if j.Zone != daybook.ZoneOfSubject || !ok {
		return nil
	}
	there := *j.Job
	there.Zone, there.Timezone = "", calendar.LastZone
	last, err := s.o.Compile(there)
	if err != nil {
		s.o.Log.Warn("which windows have begun in other time zones cannot be worked out", "job", j.Name, "err", err)
		return nil
	}
	if last, ok := last.Schedule.(*calendar.Schedule); ok {
		return calendar.LeftOut(last, first, now)
	}
	return nil
}

// enter takes a job in, at the ledger's cursor.
func (s *Scheduler) enter(ctx context.Context, j Job, st daybook.JobState, now time.Time) {
	e := &entry{Job: j, home: st.Home, revision: st.Revision, cursor: st.Cursor, since: st.FirstSeen, counts: st.Since, fault: st.Fault, scan: now, index: -1}
	s.jobs[j.Name] = e
	if j.Job.Schedule == "" {
		return
	}
	if !e.since.Before(now.Truncate(time.Microsecond)) { // it is new: it has no look-back yet
		e.scan = now.Add(scanEvery)
	}
	s.scans = append(s.scans, e)
	s.requeue(ctx, e, now)
	if !st.Next.IsZero() {
		s.tellMoved(ctx, e, st, now)
	}
}

// tellMoved says that a fire which was announced comes at another instant, since zone or calendar data changed.
func (s *Scheduler) tellMoved(ctx context.Context, e *entry, st daybook.JobState, now time.Time) {
	f, ok, err := s.nextFire(e)
	if err != nil || !ok || f.Nominal != st.NextFire || f.At.Equal(st.Next) {
		return
	}
	note := fmt.Sprintf("fire %s moved from %s to %s: zone data is now %s", f.Nominal, st.Next.Format(time.RFC3339), f.At.Format(time.RFC3339), s.o.TZData)
	s.o.Log.Warn("a fire moved", "job", e.Name, "note", note)
	if err := s.store.Note(ctx, daybook.Activity{At: now, Actor: "daybook", Action: "fire moved", Job: e.Name, Note: note}); err != nil {
		s.o.Log.Warn("note a moved fire", "job", e.Name, "err", err)
	}
}

// requeue works out when a job is to be looked at next.
func (s *Scheduler) requeue(ctx context.Context, e *entry, now time.Time) {
	f, ok, err := s.nextFire(e)
	switch {
	case err != nil:
		s.faulty(ctx, e, err, now)
		return
	case ok:
		e.next = f.At
	default:
		e.next = time.Time{}
	}
	s.queue.put(e)
}

// nextFire guards the one call into a schedule that every job makes: a fault of one stays its own.
func (s *Scheduler) nextFire(e *entry) (f daybook.Fire, ok bool, err error) {
	err = guarded(func() { f, ok = e.Schedule.Next(e.cursor) })
	return f, ok, err
}

func guarded(call func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the schedule cannot be worked out: %v", p)
		}
	}()
	call()
	return nil
}

// faulty marks one job, leaves its cursor where it is, and goes on with the others.
func (s *Scheduler) faulty(ctx context.Context, e *entry, cause error, now time.Time) {
	if text := cause.Error(); text != e.fault {
		s.o.Log.Error("faulty schedule", "job", e.Name, "err", cause)
		if err := s.store.Fault(ctx, e.Name, e.Priority, text, now); err != nil {
			s.o.Log.Error("record a faulty schedule", "job", e.Name, "err", err)
		} else {
			e.fault = text
		}
	}
	e.next = now.Add(faultPause)
	s.queue.put(e)
}

// Tick implements daybook.Service: it decides what became due, else compares the look-back of some jobs with their rows.
func (s *Scheduler) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	s.releaseHeld(ctx, now)
	var due []*entry
	for len(due) < plansPerTick && len(s.queue) > 0 && !s.queue[0].next.After(now) {
		due = append(due, heap.Pop(&s.queue).(*entry))
	}
	if len(due) > 0 {
		full := len(due) == plansPerTick
		again, left, err := s.plan(ctx, due, now)
		for _, e := range left {
			s.queue.put(e)
		}
		return again || full, err
	}
	return s.scanSome(ctx, now)
}

// heldPause is how often what is held is looked at again.
const heldPause = time.Second

// releaseHeld puts what was held back into the queue, by its next fire: the clock may have gone back since.
func (s *Scheduler) releaseHeld(ctx context.Context, now time.Time) {
	if since := now.Sub(s.heldAt); len(s.held) == 0 || since >= 0 && since < heldPause {
		return
	}
	held := s.held
	s.held = nil
	for _, e := range held {
		s.requeue(ctx, e, now)
	}
}

// Wait implements loop.Waiter.
func (s *Scheduler) Wait(now time.Time) time.Duration {
	switch {
	case len(s.held) > 0:
		return heldPause
	case len(s.queue) == 0:
		return time.Hour
	}
	return s.queue[0].next.Sub(now)
}

// Next returns when the next fire is to be decided, if there is one.
func (s *Scheduler) Next() (at time.Time, ok bool) {
	if len(s.queue) == 0 {
		return at, false
	}
	return s.queue[0].next, true
}

// plan decides entries up to now and puts each back into the queue. again says that one of them has windows left. Entries that are
// left could not be decided.
func (s *Scheduler) plan(ctx context.Context, due []*entry, now time.Time) (again bool, left []*entry, err error) {
	if err := s.frozen(ctx, now); err != nil {
		return false, due, err
	}
	plans := make([]*daybook.Plan, 0, len(due))
	entries := make([]*entry, 0, len(due))
	for _, e := range due {
		var p *daybook.Plan
		if err := guarded(func() { p = s.prepare(e, now) }); err != nil {
			s.faulty(ctx, e, err, now)
			continue
		}
		plans, entries = append(plans, p), append(entries, e)
	}
	started, at := 0, 0
	for _, w := range s.write(ctx, plans, now) {
		part := entries[at : at+len(w.plans)]
		at += len(part)
		if w.err != nil {
			left, err = append(left, part...), errors.Join(err, w.err)
			continue
		}
		for i, e := range part {
			started += w.done[i].Started
			again = s.planned(ctx, e, w.done[i], now) || again
		}
	}
	if started > 0 {
		s.o.Woke()
	}
	return again, left, err
}

// planned takes in what became of a plan.
func (s *Scheduler) planned(ctx context.Context, e *entry, p daybook.Planned, now time.Time) (again bool) {
	switch {
	case p.Stale && p.Revision != e.revision:
		s.overtaken(ctx, e, p, now)
		return false
	case p.Held != "":
		s.held, s.heldAt = append(s.held, e), now
		return false
	}
	e.cursor = p.Cursor
	if e.fault != "" && !p.Stale {
		if err := s.store.Fault(ctx, e.Name, e.Priority, "", now); err == nil {
			e.fault = ""
		}
	}
	if s.jobs[e.Name] == e {
		s.requeue(ctx, e, now)
	}
	return !e.next.IsZero() && !e.next.After(now)
}

// overtaken stops planning a job that another process loaded with another definition.
func (s *Scheduler) overtaken(ctx context.Context, e *entry, p daybook.Planned, now time.Time) {
	text := fmt.Sprintf("this process planned with definition %d, the ledger's is %d: it plans %s no more; load the newer file here", e.revision, p.Revision, e.Name)
	if p.Revision == 0 {
		text = fmt.Sprintf("the ledger has no definition of %s any more: this process plans it no more", e.Name)
	}
	s.o.Log.Error("overtaken", "job", e.Name, "err", text)
	if err := s.store.Alert(ctx, daybook.NewAlert(daybook.AlertOvertaken, "", e.Name, e.Priority, text, "", now)); err != nil {
		s.o.Log.Error("alert that a job was overtaken", "job", e.Name, "err", err)
	}
	if !e.overtaken {
		s.behind.Add(1)
	}
	e.next, e.overtaken = time.Time{}, true
}

// prepare asks the calendar for the windows in (cursor, now], at most windowsPerPlan of them.
func (s *Scheduler) prepare(e *entry, now time.Time) *daybook.Plan {
	p := &daybook.Plan{Job: e.Job.Job, Home: e.home, Revision: e.revision, Source: daybook.SourceSchedule, From: e.cursor, To: calendar.Later(now, e.cursor), TZData: s.o.TZData}
	for d := range e.Schedule.Due(s.owes(e, now), now) {
		if len(p.Windows) == windowsPerPlan {
			// What comes is left for the next plan; the cursor stops behind the fires that are in this one.
			p.To = d.Fires[0].At.Add(-time.Microsecond)
			break
		}
		p.Windows = append(p.Windows, s.window(e, d, now))
	}
	if p.To.Before(now) {
		p.Windows = until(p.Windows, p.To)
	}
	if f, ok := e.Schedule.Next(p.To); ok {
		p.Next, p.NextFire = f.At, f.Nominal
	}
	return p
}

// owes is from when on a plan decides: from the cursor, and not before the definition counts. What the one before it owed
// and could not decide is found by the scan, which asks each definition for its own time.
func (s *Scheduler) owes(e *entry, now time.Time) time.Time {
	if e.counts.After(e.cursor) && !e.counts.After(now) { // a definition from the future was taken by a clock that was wrong
		s.scanAt(e, now)
		return e.counts
	}
	return e.cursor
}

// frozenBack is how far back a freeze still matters: a window whose fire fell into it is not missed before the freeze is over.
const frozenBack = 2 * daybook.MaxFreeze

// frozen reads the freezes that a plan must know of.
func (s *Scheduler) frozen(ctx context.Context, now time.Time) (err error) {
	s.freezes, err = s.store.Freezes(ctx, now.Add(-frozenBack))
	if s.o.Freezes != nil {
		s.freezes = append(s.freezes, s.o.Freezes(now.Add(-frozenBack), now)...)
	}
	return err
}

// until drops windows whose first fire lies behind the cursor's stop.
func until(windows []daybook.PlannedWindow, to time.Time) []daybook.PlannedWindow {
	kept := windows[:0]
	for _, w := range windows {
		if !w.FireAt.After(to) {
			kept = append(kept, w)
		}
	}
	return kept
}

// window says how a window stands at now.
func (s *Scheduler) window(e *entry, d calendar.Due, now time.Time) daybook.PlannedWindow {
	w := daybook.PlannedWindow{Window: d.Window, FireAt: d.Fires[0].At, Last: d.Last, Skip: d.Skip}
	for _, f := range d.Fires {
		w.Fires = append(w.Fires, f.Nominal)
	}
	last := d.Fires[len(d.Fires)-1]
	last.At = d.Last
	since := calendar.Later(d.Last, daybook.FrozenUntil(s.freezes, e.Priority, d.Last)) // it could not start before
	w.Missed = now.Sub(since) > e.Schedule.MissedAfter(last, e.MissedAfter)
	w.TooOld = now.Sub(d.Last) >= e.CatchupWindow
	return w
}
