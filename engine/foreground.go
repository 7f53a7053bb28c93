package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/runner"
)

// Instead lets this process do a defined job by another command, and tells what came of each attempt. The definition in
// the ledger is not touched.
func (e *Engine) Instead(job string, argv []string, seen func(daybook.Outcome)) error {
	s := e.settings()
	e.mu.Lock()
	defer e.mu.Unlock()
	w, ok := e.work[job]
	if !ok {
		return daybook.NotFound("job %s is not defined here", job)
	}
	j := *w.Job
	j.Command = daybook.Command{Argv: argv}
	r, err := runner.For(&j, e.runners(s)) // the job itself may be an HTTP call
	if err != nil {
		return err
	}
	w.Job, w.Runner, w.Prober = &j, telling{r, seen}, proberOf(&j, r)
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

// leasesToWait is for how many leases the end of an attempt waits for a ledger that does not take it.
const leasesToWait = 2

// Foreground asks for a key and works on it in this call until the run is over, is under way in another process, or ctx
// ends, or until only a person lets it go on, and returns the answer and the run as it stands then; nil when there is nothing to work on. What it made is claimed as it
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
	if took := e.exec.Took(a.Run, take); !took && (err != nil || a.Outcome == daybook.Refused || a.Outcome == daybook.Reused) {
		return a, nil, errors.Join(err, e.bye(ctx))
	} // else it is this process's to do, or to give back, even if the words of the answer could not be found
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
	over, err := true, error(nil)
	if e.exec.Taken(ctx, a.Run, take, now) {
		over, err = e.landed(ctx, k)
	}
	if over && err == nil {
		err = e.attend(ctx, k, waits)
	} // else ctx ended: Stop ends the attempt and writes how
	if errors.As(err, new(unwritten)) { // nor would anything else be
		stop()
		running.Wait()
		return nil, err
	}
	limited, cancel := context.WithTimeout(working, stopTimeout)
	stopped := e.exec.Stop(limited)
	if u, _ := e.exec.Wait(limited, k, 0); stopped != nil && u != nil {
		stopped = unheard(k, u)
	}
	cancel()
	stop()
	running.Wait()
	if stopped == nil {
		stopped = e.bye(ctx)
	}
	if err = errors.Join(err, stopped); err != nil {
		return nil, err
	}
	return e.store.Run(context.WithoutCancel(ctx), k)
}

// unwritten is what Foreground returns when the ledger does not take the end of an attempt.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// landed waits until the attempt of a key is over and written. False: ctx ended first. An error: the ledger does not take its end.
func (e *Engine) landed(ctx context.Context, k daybook.Key) (bool, error) {
	u, err := e.exec.Wait(ctx, k, leasesToWait*e.o.Lease)
	if u == nil {
		return err == nil, nil
	}
	if r, rerr := e.store.Run(ctx, k); rerr == nil && r.State == daybook.Done { // written by whoever settled what was kept beside it
		e.exec.Forget(k)
		return true, nil
	}
	return false, unwritten{unheard(k, u)}
}

// unheard says what the ledger does not know, and who knows it.
func unheard(k daybook.Key, u *executor.Unwritten) error {
	if u.Run.BegunAt.IsZero() {
		return daybook.New(daybook.CodeUnavailable, "%s: the ledger cannot be written: the command was not started", k).Because(u.Err).WithHint("%s", daybook.HintText(u.Err))
	}
	ended := cmp.Or(u.Outcome.Detail, string(u.Outcome.Result))
	e := daybook.New(daybook.CodeUnavailable, "%s: the command ended (%s), and the ledger cannot be written: there it counts as lost", k, ended).Because(u.Err)
	switch {
	case u.Kept:
		return e.WithHint("how it ended is kept here: once the ledger can be written, start this line again on this machine, and that is recorded")
	case u.Run.OneEffect():
		return e.WithHint("once the ledger can be written, say it by hand: daybook run resolve %s --step run --as %s --reason …", k, u.Outcome.Result.Word())
	}
	return e.WithHint("once the ledger can be written, start this line again: what is not recorded as done is done again")
}

// attending are the loops of a foreground run: it claims only what it is told to. It rescues, because there may be no
// serve that does: a line whose process was killed must not seem to be under way for ever.
func (e *Engine) attending() []loop.Item {
	return append(e.recalling(), []loop.Item{
		{Name: "claims", Service: executor.Claims{Executor: e.exec}, Every: time.Second, Wake: e.exec.Woken()},
		{Name: "ends", Service: executor.Ends{Executor: e.exec}, Every: time.Second, Wake: e.exec.Endings()},
		{Name: "leases", Service: executor.Leases{Executor: e.exec}, Every: e.exec.Every()},
		{Name: "rescue", Service: &executor.Rescue{Executor: e.exec}, Every: e.exec.Every()},
		{Name: "beat", Service: service(func(ctx context.Context, now time.Time) (bool, error) { return false, e.beat(ctx, now) }), Every: beatEvery},
	}...)
}

// attend claims the run whenever it can be claimed, until there is nothing left to do here.
func (e *Engine) attend(ctx context.Context, k daybook.Key, waits func(*daybook.Run)) error {
	var told waiting
	for misses := 0; ; {
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
		case r.Due.After(now) && waits == nil:
			return nil
		case r.Due.After(now):
			wait = min(r.Due.Sub(now), foregroundPoll)
		case r.HeldAt(now) != "" && waits == nil:
			return nil
		default:
			claimed, err := e.exec.ClaimKey(ctx, k, now)
			if err != nil {
				return err
			}
			if claimed {
				if over, err := e.landed(ctx, k); err != nil || !over {
					return err // nil: ctx ended, and Stop ends the attempt and writes how
				}
				misses = 0
				continue
			}
			if waits == nil {
				return nil
			}
			misses++
		}
		if r.State != daybook.Running && (r.Due.After(now) || misses > 1) { // not only since another process was first
			if stuck, err := e.Control().Stuck(ctx, r); stuck != nil || err != nil {
				return err
			}
			told.tell(waits, r)
		}
		if !pause(ctx, wait) {
			return nil
		}
	}
}

// waiting is for what it was said that a run waits.
type waiting struct {
	hold daybook.Reason
	due  time.Time
}

// tell tells it once.
func (w *waiting) tell(waits func(*daybook.Run), r *daybook.Run) {
	if now := (waiting{r.Hold, r.Due}); now != *w {
		*w = now
		waits(r)
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
