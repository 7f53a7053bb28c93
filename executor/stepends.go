package executor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/daybook-run/daybook"
)

// hearSteps records the ends of steps that the work of an attempt left in its directory on this host, since the ledger did
// not answer when they ended. It returns the run with them; an error with CodeUnavailable: they are to be heard later.
func (x *Executor) hearSteps(ctx context.Context, r *daybook.Run, dir string) (*daybook.Run, error) {
	if dir == "" || !r.Steps || r.Key.IsUndo() {
		return r, nil
	}
	ends := x.o.Survivor.Steps(dir)
	if len(ends) == 0 {
		return r, nil
	}
	for i, s := range ends {
		s = x.maskEnd(r.Job, s)
		log := x.o.Log.With("job", r.Job, "key", r.Key, "step", s.Step, "result", s.Outcome.Result)
		next, ok := r.Heard(s, x.o.Clock())
		if !ok {
			continue
		}
		err := x.store.MarkStep(ctx, r, next, daybook.Learned{})
		switch {
		case errors.Is(err, daybook.ErrStale):
			now, err := x.store.Run(ctx, r.Key)
			if err == nil && now.ID() == r.ID() && now.State == daybook.Running { // another wrote a step of it
				return x.hearSteps(ctx, now, dir)
			}
			return r, errors.Join(err, x.lateSteps(ctx, r, ends[i:]))
		case err != nil:
			log.Warn("the end of a step could not be recorded yet", "err", err)
			return r, err
		}
		log.Info("the end of a step was recorded that nobody had heard")
		r = r.With(next)
		r.Marks++
	}
	return r, nil
}

// maskEnd is the end of a step without the secrets of its job.
func (x *Executor) maskEnd(job string, s daybook.StepEnd) daybook.StepEnd {
	secrets, unreadable := x.Secrets(job)
	s.Outcome = s.Outcome.Mask(secrets)
	if unreadable != nil {
		s.Outcome.Data, s.Outcome.Error = nil, "" // nothing could be masked
	}
	return s
}

// lateSteps takes the ends of steps that an attempt, as it was, left in its directory, as far as they still count once the run has moved
// on.
func (x *Executor) lateSteps(ctx context.Context, attempt *daybook.Run, ends []daybook.StepEnd) error {
	if len(ends) == 0 {
		return nil
	}
	p, err := x.policy(ctx, attempt)
	for _, s := range ends {
		if err != nil {
			return err
		}
		var taken bool
		taken, err = x.lateStep(ctx, attempt, x.maskEnd(attempt.Job, s), p)
		x.o.Log.Warn("the end of a step that nobody had heard came late", "job", attempt.Job, "key", attempt.Key, "step", s.Step, "result", s.Outcome.Result, "taken", taken)
	}
	return err
}

// readSteps reads the steps of an attempt that is over: programs outside this process may have written them, or left what
// they could not write. When it cannot, what this process knows is compared, and the end is decided again.
func (x *Executor) readSteps(ctx context.Context, f *flight, dir string) {
	if !f.run.Steps {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.o.Lease/renewals)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if err := x.readStepsOnce(ctx, f, dir); err == nil || !sleep(ctx, pause) {
			return
		}
	}
}

func (x *Executor) readStepsOnce(ctx context.Context, f *flight, dir string) error {
	r, err := x.store.Run(ctx, f.run.Key)
	if err != nil {
		return err
	}
	if attempt := x.snapshot(f); r.ID() != attempt.ID() {
		if dir == "" || r.Key.IsUndo() {
			return nil
		}
		return x.lateSteps(ctx, &attempt, x.o.Survivor.Steps(dir))
	}
	r, err = x.hearSteps(ctx, r, dir)
	x.mu.Lock()
	defer x.mu.Unlock()
	f.run.Records, f.run.Marks, f.run.Denied = r.Records, r.Marks, cmp.Or(f.run.Denied, r.Denied)
	return err
}
