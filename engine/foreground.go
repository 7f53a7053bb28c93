package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/loop"
)

// Instead lets this process do a defined job by another command, and tells what came of each attempt. The definition in
// the ledger is not touched.
func (e *Engine) Instead(job string, argv []string, seen func(daybook.Outcome)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, ok := e.work[job]
	if !ok {
		return daybook.NotFound("job %s is not defined here", job)
	}
	j := *w.Job
	j.Command = daybook.Command{Argv: argv}
	w.Job, w.Runner = &j, telling{w.Runner, seen}
	e.work[job] = w
	return nil
}

// telling is a runner that tells how its work ended.
type telling struct {
	daybook.Runner
	seen func(daybook.Outcome)
}

// Run implements daybook.Runner.
func (t telling) Run(ctx context.Context, o daybook.Order) daybook.Outcome {
	out := t.Runner.Run(ctx, o)
	t.seen(out)
	return out
}

// foregroundPoll is how often a run is looked at that waits for something other than its time.
const foregroundPoll = time.Second

// Foreground asks for a key and works on it in this call until the run is over, is under way in another process, or ctx
// ends, and returns the answer and the run as it stands then; nil when there is nothing to work on. What it made is claimed as it
// is made, so that no other process does it meanwhile. With a function it waits out the ladder, and tells it the run before each
// wait; with nil it returns a run that is to be tried again later.
func (e *Engine) Foreground(ctx context.Context, p control.Person, q control.Request, waits func(*daybook.Run)) (control.Answer, *daybook.Run, error) {
	if err := e.clock.begin(ctx); err != nil {
		return control.Answer{}, nil, err
	}
	if err := e.clock.usable(); err != nil {
		return control.Answer{}, nil, err
	}
	if err := e.recall(ctx, e.clock.Now()); err != nil {
		return control.Answer{}, nil, err
	}
	if err := e.learnNames(ctx); err != nil {
		return control.Answer{}, nil, err
	}
	if err := e.beat(ctx, e.clock.Now()); err != nil {
		return control.Answer{}, nil, err
	}
	now := e.clock.Now()
	take := e.exec.Take("", now)
	q.Take = &take
	a, err := e.Control().Trigger(ctx, p, q)
	if err != nil || a.Outcome == daybook.Refused || a.Outcome == daybook.Reused {
		return a, nil, errors.Join(err, e.bye(ctx))
	}
	r, err := e.foreground(ctx, a, take, now, waits)
	return a, r, err
}

// foreground works on a key that was asked for.
func (e *Engine) foreground(ctx context.Context, a control.Answer, take daybook.Claim, now time.Time, waits func(*daybook.Run)) (*daybook.Run, error) {
	k := a.Key
	e.exec.Attend(k)
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { loop.Run(working, e.attending(), loop.Options{Now: e.clock.Now, Log: e.o.Log}) })
	var err error
	if !e.exec.Taken(ctx, a.Run, take, now) || e.exec.Wait(ctx, k) == nil {
		err = e.attend(ctx, k, waits)
	} // else ctx ended: Stop ends the attempt and writes how
	limited, cancel := context.WithTimeout(working, stopTimeout)
	err = errors.Join(err, e.exec.Stop(limited))
	cancel()
	stop()
	running.Wait()
	if err = errors.Join(err, e.bye(ctx)); err != nil {
		return nil, err
	}
	return e.store.Run(context.WithoutCancel(ctx), k)
}

// attending are the loops of a foreground run: it claims only what it is told to. It rescues, because there may be no
// serve that does: a line whose process was killed must not seem to be under way for ever.
func (e *Engine) attending() []loop.Item {
	return append(e.recalling(), []loop.Item{
		{Name: "claims", Service: executor.Claims{Executor: e.exec}, Every: time.Second, Wake: e.exec.Woken()},
		{Name: "leases", Service: executor.Leases{Executor: e.exec}, Every: e.exec.Every()},
		{Name: "rescue", Service: &executor.Rescue{Executor: e.exec}, Every: e.exec.Every()},
		{Name: "beat", Service: service(func(ctx context.Context, now time.Time) (bool, error) { return false, e.beat(ctx, now) }), Every: beatEvery},
	}...)
}

// attend claims the run whenever it can be claimed, until there is nothing left to do here.
func (e *Engine) attend(ctx context.Context, k daybook.Key, waits func(*daybook.Run)) error {
	var until time.Time // for what it was said that it waits
	for {
		r, err := e.store.Run(ctx, k)
		if err != nil || !r.State.Live() {
			return err
		}
		now := e.clock.Now()
		wait := foregroundPoll
		switch {
		case r.State == daybook.Running && r.Lease.After(now) && !e.exec.Holds(k):
			return nil // another process has it
		case r.State == daybook.Running: // its process is gone: it is rescued here, or waited for if it outlived that one
		case r.Due.After(now):
			if waits == nil {
				return nil
			}
			if !r.Due.Equal(until) {
				until = r.Due
				waits(r)
			}
			wait = min(r.Due.Sub(now), foregroundPoll)
		case r.HeldAt(now) != "" && waits == nil:
			return nil
		default:
			claimed, err := e.exec.ClaimKey(ctx, k, now)
			if err != nil {
				return err
			}
			if claimed {
				if err := e.exec.Wait(ctx, k); err != nil {
					return nil // ctx ended: Stop ends the attempt and writes how
				}
				continue
			}
		}
		if !pause(ctx, wait) {
			return nil
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
