package executor

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-run/daybook"
)

// Leases is the service that renews what this process holds. It also waits for survivors of earlier processes.
type Leases struct{ *Executor }

// Every is how often leases must be renewed.
func (x *Executor) Every() time.Duration { return x.o.Lease / renewals }

// Tick implements daybook.Service.
func (l Leases) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	x := l.Executor
	// A ledger that does not answer at all must not hide that the leases are over.
	ctx, cancel := context.WithTimeout(ctx, x.o.Lease-x.Every())
	defer cancel()
	waited := x.survivors(ctx, now) // whatever is wrong with one of them, leases are renewed
	held := x.held(now)
	if len(held) == 0 {
		return false, waited
	}
	runs := make([]*daybook.Run, len(held))
	for i, f := range held {
		runs[i] = f.run
	}
	notices, err := x.store.Renew(ctx, runs, now.Add(x.o.Lease), now)
	if err != nil {
		x.lapse(held, x.o.Clock())
		return false, errors.Join(waited, err)
	}
	told := make(map[daybook.Key]daybook.Notice, len(notices))
	for _, n := range notices {
		told[n.Key] = n
	}
	for _, f := range held {
		n, ok := told[f.run.Key]
		switch {
		case !ok, f.question && !n.Lost: // a person's wish to end it is not for a question
			x.renewed(f, now)
		case n.Lost && x.hasEnded(f): // its end was written meanwhile
		case n.Lost:
			x.o.Log.Warn("lease lost", "job", f.run.Job, "key", f.run.Key, "attempt", f.run.Attempts)
			f.cancel(daybook.ErrLeaseLost)
		default:
			x.renewed(f, now)
			x.mu.Lock()
			f.run.CancelledBy = n.CancelledBy
			x.mu.Unlock()
			f.cancel(daybook.ErrCancelled)
		}
	}
	return false, waited
}

// hasEnded reports whether a flight has come to its end, written or not.
func (x *Executor) hasEnded(f *flight) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !f.ended.IsZero()
}

func (x *Executor) renewed(f *flight, now time.Time) {
	x.mu.Lock()
	f.renewed = now
	f.run.Lease = now.Add(x.o.Lease)
	x.mu.Unlock()
}

// leaseMargin is the part of a lease before its end in which nothing is started any more: clocks differ.
const leaseMargin = 10

// lapsed reports whether the lease of a flight is over, as far as this process knows, or about to be.
func (x *Executor) lapsed(f *flight) bool {
	now := x.o.Clock()
	x.mu.Lock()
	defer x.mu.Unlock()
	return now.Sub(f.renewed) >= x.o.Lease-x.o.Lease/leaseMargin
}

// held returns the flights whose leases are renewed: all, but those whose end could not be written for the length of a
// lease. Those are let go, so that somebody else settles them; their report still counts when it comes.
func (x *Executor) held(now time.Time) []*flight {
	x.mu.Lock()
	defer x.mu.Unlock()
	held := make([]*flight, 0, len(x.flights))
	for _, f := range x.flights {
		if f.ended.IsZero() || now.Sub(f.ended) < x.o.Lease && f.next.On != daybook.OnLost { // what is lost is written by the lease it had
			held = append(held, f)
		}
	}
	return held
}

// lapse ends what could not be renewed for the length of a lease: another process may have it by now.
func (x *Executor) lapse(held []*flight, now time.Time) {
	for _, f := range held {
		x.mu.Lock()
		over := now.Sub(f.renewed) >= x.o.Lease
		x.mu.Unlock()
		if over {
			f.cancel(daybook.ErrLeaseLost)
		}
	}
}

// survivors looks at what is waited for: its report, when it left one, or that nobody reported.
func (x *Executor) survivors(ctx context.Context, now time.Time) (err error) {
	x.mu.Lock()
	var waiting []*flight
	for _, f := range x.flights {
		if f.adopted != "" && f.ended.IsZero() {
			waiting = append(waiting, f)
		}
	}
	x.mu.Unlock()
	for _, f := range waiting {
		if alive, known := x.o.Survivor.Alive(f.adopted); known && alive {
			err = errors.Join(err, x.endOverdue(ctx, f, now))
			continue
		}
		p, unknown := x.policy(ctx, f.run)
		if unknown != nil {
			err = errors.Join(err, unknown)
			continue
		}
		x.readSteps(ctx, f, f.adopted)
		x.end(f, p, x.endOf(f))
		x.tellLeft(f.run, &f.next)
		x.over(f)
	}
	return err
}

// waitFor keeps a flight whose attempt has ended and left an effect open, while something that it started is still alive: that may yet
// send, and say how it ended. It is waited for like what outlived a process of Daybook, under the lease it has. False: there is
// nothing to wait for; what was gone soon after may have said how it ended.
func (x *Executor) waitFor(ctx context.Context, f *flight, p daybook.Policy, out *daybook.Outcome, dir string) bool {
	if dir == "" || out.Recorded || errors.Is(context.Cause(ctx), daybook.ErrLeaseLost) {
		return false
	}
	r := x.snapshot(f)
	if !r.LeavesOpen(r.Next(*out, p, x.o.Clock())) {
		return false
	}
	if alive, known := x.o.Survivor.Alive(dir); !known || !alive {
		return false
	}
	if x.gone(ctx, dir) {
		x.readSteps(ctx, f, dir)
		*out = x.endAfter(f.run, dir, *out)
		return false
	}
	x.o.Log.Warn("an attempt ended and left something alive: it is waited for", "job", r.Job, "key", r.Key, "attempt", r.Attempts)
	x.mu.Lock()
	f.adopted, f.leader = dir, out
	stopping := x.stopping
	x.mu.Unlock()
	if stopping {
		x.drop(f) // the next process waits for it
	}
	return true
}

// How long something that was killed with its attempt may take to be gone, and how often it is looked for.
const (
	goneAfter = 500 * time.Millisecond
	goneEvery = 10 * time.Millisecond
)

// gone reports whether what an attempt left alive is gone in a moment: the next look at it would come much later.
func (x *Executor) gone(ctx context.Context, dir string) bool {
	for waited := time.Duration(0); waited < x.patient && sleep(ctx, goneEvery); waited += goneEvery {
		if alive, known := x.o.Survivor.Alive(dir); !known || !alive {
			return true
		}
	}
	return false
}

// outlived reports whether the flight waits for what outlived its attempt.
func (x *Executor) outlived(f *flight) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return f.adopted != ""
}

// endOf is how a survivor ended: what it left as its report, else what was seen of its attempt.
func (x *Executor) endOf(f *flight) daybook.Outcome {
	if f.leader == nil {
		return x.reportOf(f.run, f.adopted)
	}
	o := x.endAfter(f.run, f.adopted, *f.leader)
	o.Detail = daybook.Clip(f.leader.Detail+", what it started lived longer", daybook.MaxErrorBytes)
	return o
}

// endAfter is how an attempt ended that lived longer than its leader did.
func (x *Executor) endAfter(r *daybook.Run, dir string, leader daybook.Outcome) daybook.Outcome {
	o := x.reportOf(r, dir)
	if o.Result == daybook.ResultLost {
		o = leader
	}
	o.Outlived, o.Exit, o.Output, o.Interrupted = true, leader.Exit, leader.Output, leader.Interrupted
	return o
}

// endOverdue ends a survivor whose time is up, or that a person asked to end.
func (x *Executor) endOverdue(ctx context.Context, f *flight, now time.Time) error {
	if f.ending {
		return nil
	}
	if f.run.CancelledBy == "" {
		j, err := x.definition(ctx, f.run.Job)
		if err != nil || j == nil || j.Timeout <= 0 {
			return err
		}
		began := f.run.BegunAt
		if began.IsZero() {
			began = f.run.ClaimedAt
		}
		if now.Sub(began) < j.Timeout {
			return nil
		}
	}
	f.ending = true
	go func() {
		if err := x.o.Survivor.End(context.WithoutCancel(ctx), f.adopted); err != nil {
			x.o.Log.Warn("end a survivor", "job", f.run.Job, "key", f.run.Key, "err", err)
		}
	}()
	return nil
}
