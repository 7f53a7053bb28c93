package sim

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/fanout"
	"github.com/daybook-run/daybook/pruner"
	"github.com/daybook-run/daybook/scheduler"
)

// process is one life of a node: its rooms, its clock, and what it knows of the jobs.
type process struct {
	w      *World
	name   string // of its node, with a number for each life
	ledger Ledger
	ctx    context.Context
	dead   bool          // guarded by World.mu
	died   chan struct{} // closed with it
	until  time.Time     // stopped until then; guarded by World.mu
	twin   string        // or until another process is at this run
	offset time.Duration // of its clock

	cutUntil time.Time        // it does not reach the ledger until then
	well     time.Time        // since when nothing is wrong with it
	told     map[attempt]bool // what the ledger told it that it does not hold any more

	exec     *executor.Executor
	fans     *fanout.Fanout
	schedule *scheduler.Scheduler
	control  *control.Control

	version  int // of the definitions that it goes by
	work     map[string]executor.Work
	services []*service
	planner  *service
	claims   *service
	ends     *service
}

// attempt is one try of a run.
type attempt struct {
	run   string
	fence int64
}

// service is one loop of a process.
type service struct {
	name  string
	tick  func(ctx context.Context, now time.Time) (bool, error)
	turns chan time.Time // one for each call; nil before the first
	calls int
	busy  bool // the rest is guarded by World.mu
	more  bool
	fails int // in a row
	idle  int // in a row, and nothing came of them
	last  time.Time
}

func (p *process) paused(t time.Time) bool { return t.Before(p.until) }

// unwell says that something is wrong with a process until an instant, whatever else is wrong with it for longer.
func (p *process) unwell(until time.Time) { p.well = calendar.Later(p.well, until) }

// now is the time by the clock of this process.
func (p *process) now() time.Time {
	p.w.mu.Lock()
	o := p.offset
	p.w.mu.Unlock()
	return p.w.now().Add(o).Truncate(time.Microsecond)
}

// person makes a process that only carries out what people ask for.
func (w *World) person(name string) *process {
	p := w.life(name)
	p.control = control.New(p.ledger, p.desk(nil))
	return p
}

func (w *World) life(name string) *process {
	w.lives++
	p := &process{w: w, name: fmt.Sprintf("%s.%d", name, w.lives), ctx: w.ctx, died: make(chan struct{}), well: now(), told: map[attempt]bool{}, offset: w.span(-1200*time.Millisecond, 1200*time.Millisecond)}
	p.ledger = &gated{Ledger: w.planted, p: p}
	return p
}

func (p *process) desk(wake func()) control.Options {
	return control.Options{Clock: p.now, Defined: p.defined, Wake: wake, NewID: p.w.newID, NewSecret: p.w.newID}
}

func (p *process) defined(job string) (*daybook.Job, bool) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	k, ok := p.work[job]
	return k.Job, ok
}

func (p *process) workOf(job string) (executor.Work, bool) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	k, ok := p.work[job]
	return k, ok
}

// node starts a process with all rooms of a serve.
func (w *World) node(name string) *process {
	p := w.life(name)
	p.fans = fanout.New(p.ledger, fanout.Options{Portion: func() int { return 6 }, Woke: func() { p.exec.Wake() }, Log: w.log})
	p.exec = executor.New(p.ledger, executor.Options{Node: p.name, Slots: map[daybook.Lane]int{daybook.LaneLive: 1 + w.rng.IntN(4), daybook.LaneBackfill: 1},
		Lease: lease, NewID: w.newID, Clock: p.now, Work: p.workOf, InZone: inZone, Ended: p.fans.Wake, Log: w.log})
	p.schedule = scheduler.New(p.ledger, scheduler.Options{Compile: compile, TZData: "sim", Log: w.log, Woke: p.exec.Wake})
	p.control = control.New(p.ledger, p.desk(func() { p.exec.Wake(); p.fans.Wake() }))
	prune := pruner.New(p.ledger, pruner.Options{Retention: daybook.Retention{Log: 36 * time.Hour}, Every: 6 * time.Hour, Batch: 5})
	p.claims = &service{name: "claims", tick: executor.Claims{Executor: p.exec}.Tick}
	p.ends = &service{name: "ends", tick: executor.Ends{Executor: p.exec}.Tick}
	p.planner = &service{name: "scheduler", tick: p.plan}
	p.services = []*service{p.planner, p.ends, p.claims,
		{name: "leases", tick: executor.Leases{Executor: p.exec}.Tick},
		{name: "rescue", tick: (&executor.Rescue{Executor: p.exec}).Tick},
		{name: "fanout", tick: p.fans.Tick},
		{name: "pruner", tick: prune.Tick}}
	w.tracef("%s starts with definitions %d", p.name, w.version)
	return p
}

// compile completes an earlier definition.
func compile(j daybook.Job) (scheduler.Job, error) {
	j, s, err := calendar.Complete(j, nil)
	return scheduler.Job{Job: &j, Schedule: s}, err
}

// plan loads the definitions of the day, then plans.
func (p *process) plan(ctx context.Context, now time.Time) (bool, error) {
	p.w.mu.Lock()
	want := p.w.version
	p.w.mu.Unlock()
	if p.version == want {
		return p.schedule.Tick(ctx, now)
	}
	defs := p.w.definitions(p, want)
	jobs := make([]scheduler.Job, len(defs))
	work := make(map[string]executor.Work, len(defs))
	for i, d := range defs {
		jobs[i], work[d.Job.Name] = scheduler.Job{Job: d.Job, Schedule: d.schedule}, d.Work
	}
	if err := p.schedule.Load(ctx, jobs, true, now); err != nil {
		return false, err
	}
	p.w.mu.Lock()
	p.version, p.work = want, work
	p.w.mu.Unlock()
	p.exec.Wake()
	return true, nil
}

// wants is when a service is to be called next; not ok: not before something else happens.
func (p *process) wants(s *service, rows standing) (at time.Time, ok bool) {
	w, t := p.w, now()
	switch {
	case s.busy, p.dead:
		return at, false
	case s.fails > 0:
		return s.last.Add(min(time.Second<<s.fails, 30*time.Second)), true
	case s.more, s.last.IsZero():
		return t, true
	case s != p.planner && p.version == 0: // a process works once it knows its jobs
		return at, false
	}
	switch s.name {
	case "scheduler":
		w.mu.Lock()
		reload := p.version != w.version && !t.Before(w.changedAt.Add(p.lag()))
		w.mu.Unlock()
		if reload {
			return t, true
		}
		next := s.last.Add(p.schedule.Wait(p.now()))
		if scan := s.last.Add(12 * time.Hour); scan.Before(next) {
			next = scan
		}
		return calendar.Later(next, s.last.Add(50*time.Millisecond)), true
	case "claims":
		select {
		case <-p.exec.Woken():
			s.idle = 0
			return t, true
		default:
		}
		if rows.due.IsZero() {
			return at, false
		}
		return calendar.Later(w.real(rows.due).Add(time.Second), s.last.Add(min(time.Second<<s.idle, 20*time.Second))), true
	case "ends":
		select {
		case <-p.exec.Endings():
			return t, true
		default:
		}
		return at, false
	case "fanout":
		select {
		case <-p.fans.Woken():
			return t, true
		default:
		}
		return calendar.Later(w.real(rows.looks).Add(time.Second), s.last.Add(min(time.Second<<s.idle, 20*time.Second))), !rows.looks.IsZero()
	case "leases":
		if p.exec.InFlight() == 0 {
			return at, false
		}
		return s.last.Add(p.exec.Every()), true
	case "rescue":
		switch {
		case rows.leases:
			return s.last.Add(p.exec.Every()), true
		case rows.parked && s.calls%2 == 0:
			return s.last.Add(10 * time.Minute), true
		case rows.parked: // after so long a time it only notices that it was away
			return s.last.Add(2 * lease / 3), true
		}
		return at, false
	}
	return s.last.Add(6 * time.Hour), true
}

// lag is how long after a deployment a node has the new file.
func (p *process) lag() time.Duration {
	return time.Duration(p.name[1]-'0') * 40 * time.Second
}

// start calls a service once. Each has a goroutine of its own, as long as the process lives.
func (p *process) start(s *service) {
	s.busy, s.more, s.last = true, false, now()
	s.calls++
	if s.turns == nil {
		s.turns = make(chan time.Time, 1)
		go p.loop(s)
	}
	s.turns <- p.now()
	synctest.Wait()
}

func (p *process) loop(s *service) {
	for {
		select {
		case at := <-s.turns:
			more, err := s.tick(p.ctx, at)
			p.w.mu.Lock()
			s.busy, s.more = false, more
			switch {
			case err != nil:
				s.fails = min(s.fails+1, 5)
			case more:
				s.fails, s.idle = 0, 0
			default:
				s.fails, s.idle = 0, min(s.idle+1, 5)
			}
			p.w.mu.Unlock()
		case <-p.died:
			return
		}
	}
}

// kill ends a process at once: nothing that it is at goes on, and nobody there hears of anything.
func (w *World) kill(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.dead {
		return
	}
	p.dead = true
	close(p.died)
	w.waiters = slices.DeleteFunc(w.waiters, func(wt *waiter) bool {
		if wt.p == p {
			wt.go_ <- killOn
		}
		return wt.p == p
	})
	w.graves = append(w.graves, p)
}

// bury ends the goroutines of processes that died. The rest of the simulation does not hear of what they do.
func (w *World) bury() {
	w.mu.Lock()
	graves := w.graves
	w.graves = nil
	w.mu.Unlock()
	over, cancel := context.WithCancel(w.ctx)
	cancel()
	for _, p := range graves {
		w.tracef("%s is dead", p.name)
		if p.exec != nil {
			_ = p.exec.Stop(over)
		}
		w.afterDeath(p)
	}
	if len(graves) > 0 {
		synctest.Wait()
	}
}
