package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/loop"
)

// stopTimeout bounds a graceful stop: commands are asked to end, then ended, and what they did is written.
const stopTimeout = daybook.TerminationGrace + 10*time.Second

// Start loads the defined jobs and works until ctx ends; then it stops gracefully: nothing new starts, what runs is asked
// to end, and every end is written. That ctx ends before everything runs is no error. ready, if given, is called once everything runs. An engine is
// started once.
func (e *Engine) Start(ctx context.Context, ready ...func()) error {
	ctx, ended, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer ended()
	if err := e.prepare(ctx); err != nil {
		if ctx.Err() != nil { // nothing of it runs yet
			return nil
		}
		return err
	}
	if err := e.beat(ctx, e.clock.Now()); err != nil {
		if ctx.Err() != nil { // it may have been written
			return e.bye(ctx)
		}
		return err
	}
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	var running sync.WaitGroup
	o := loop.Options{Now: e.clock.Now, Pace: e.o.Pace, Log: e.o.Log}
	running.Go(func() { loop.Run(ctx, append(e.planning(), e.telling()...), o) })
	running.Go(func() { loop.Run(working, e.working(), o) })
	if e.ear != nil {
		running.Go(func() { e.ear.run(ctx) })
	}
	for _, call := range ready {
		if call != nil {
			call()
		}
	}
	<-ctx.Done()
	limited, cancel := context.WithTimeout(working, stopTimeout)
	defer cancel()
	err = e.exec.Stop(limited)
	stopWorking()
	running.Wait()
	return errors.Join(err, e.bye(ctx))
}

// prepare makes sure that the work can begin.
func (e *Engine) prepare(ctx context.Context) error {
	if err := e.alerts(e.settings()).Check(); err != nil {
		return err
	}
	if err := e.clock.begin(ctx); err != nil {
		return err
	}
	if err := e.recall(ctx, e.clock.Now()); err != nil {
		return err
	}
	if err := e.Load(ctx); err != nil {
		return fmt.Errorf("load jobs: %w", err)
	}
	return nil
}

// planning are the loops that end at once when a stop is asked for.
func (e *Engine) planning() []loop.Item {
	items := []loop.Item{
		{Name: "scheduler", Service: planner{e}, Every: time.Second},
		{Name: "pruner", Service: &e.pruner, Every: time.Minute},
		{Name: "checkpoint", Service: service(e.checkpoint), Every: time.Minute},
	}
	if e.o.Dir != "" {
		items = append(items, loop.Item{Name: "sweep", Service: &sweep{dir: e.o.Dir, exec: &e.o.Exec, log: e.o.Log}, Every: sweepEvery})
	}
	return items
}

// How often a node asks what became due: seldom while other nodes call when they make something due, else often.
const (
	calledPoll   = 2 * time.Second
	uncalledPoll = time.Second
)

// gatherEnds is how long an end is not written, where others may end meanwhile: a commit is not for one of a thousand.
const gatherEnds = 2 * time.Millisecond

// claims polls less while calls come.
type claims struct {
	executor.Claims
	e *Engine
}

// Wait implements loop.Waiter.
func (c claims) Wait(now time.Time) time.Duration {
	wait := c.Claims.Wait(now)
	if c.e.ear.State() == daybook.CallsCome {
		return wait
	}
	return min(wait, uncalledPoll)
}

// planner plans by a clock that was looked at first: a leap is noticed before it makes a window.
type planner struct{ *Engine }

// Tick implements daybook.Service.
func (p planner) Tick(ctx context.Context, now time.Time) (bool, error) {
	if _, err := p.clock.Tick(ctx, now); err != nil {
		return false, err
	}
	p.planned.Lock()
	defer p.planned.Unlock()
	return p.schedule.Tick(ctx, p.clock.Now()) // now may have been taken before the leap was measured
}

// working are the loops that go on until every end is written.
func (e *Engine) working() []loop.Item {
	return append(e.recalling(), []loop.Item{
		{Name: "claims", Service: claims{executor.Claims{Executor: e.exec}, e}, Every: calledPoll, Wake: e.exec.Woken()},
		{Name: "ends", Service: executor.Ends{Executor: e.exec, Gather: gatherEnds}, Every: calledPoll, Wake: e.exec.Endings()},
		{Name: "subjects", Service: e.fans, Every: looksEvery, Wake: e.fans.Woken()},
		{Name: "leases", Service: executor.Leases{Executor: e.exec}, Every: e.exec.Every()},
		{Name: "rescue", Service: &executor.Rescue{Executor: e.exec}, Every: e.exec.Every()},
		{Name: "beat", Service: service(func(ctx context.Context, now time.Time) (bool, error) { return false, e.beat(ctx, now) }), Every: beatEvery},
	}...)
}

// beatEvery is how often a node says that it lives. NobodyExecutes of control waits three times as long.
const beatEvery = 10 * time.Second

// service makes a function a daybook.Service.
type service func(ctx context.Context, now time.Time) (bool, error)

// Tick implements daybook.Service.
func (s service) Tick(ctx context.Context, now time.Time) (bool, error) { return s(ctx, now) }

func (e *Engine) beat(ctx context.Context, now time.Time) error {
	n := e.node
	n.Offset, n.BootClock = e.clock.Offset(), e.o.Boot()
	n.Overtaken, n.Calls = e.schedule.Overtaken(), e.ear.State()
	err := e.store.Beat(ctx, n, now)
	if !errors.Is(err, daybook.ErrForgot) {
		return err
	}
	if err := e.recall(ctx, now); err != nil {
		return err
	}
	return e.store.Beat(ctx, n, now)
}

// bye says that this node stopped on purpose.
func (e *Engine) bye(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	now := e.clock.Now()
	n := e.node
	n.StoppedAt, n.Offset, n.BootClock = now, e.clock.Offset(), e.o.Boot()
	return e.store.Beat(ctx, n, now)
}

func (e *Engine) checkpoint(ctx context.Context, _ time.Time) (bool, error) {
	_, err := e.store.Checkpoint(ctx)
	return false, err
}
