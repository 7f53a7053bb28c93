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
	secrets, unreadable := x.Secrets(r.Job)
	for _, s := range ends {
		s.Outcome = s.Outcome.Mask(secrets)
		if unreadable != nil {
			s.Outcome.Data, s.Outcome.Error = nil, "" // nothing could be masked
		}
		log := x.o.Log.With("job", r.Job, "key", r.Key, "step", s.Step, "result", s.Outcome.Result)
		next, ok := r.Heard(s, x.o.Clock())
		if !ok {
			continue
		}
		err := x.store.MarkStep(ctx, r, next, daybook.Learned{})
		switch {
		case errors.Is(err, daybook.ErrStale):
			log.Warn("the end of a step that nobody had heard came too late")
			return r, nil
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

// readSteps reads the steps of an attempt that is over: programs outside this process may have written them, or left what
// they could not write. When it cannot, what this process knows is compared, and the end is decided again.
func (x *Executor) readSteps(ctx context.Context, f *flight, dir string) {
	if !f.run.Steps {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.o.Lease/renewals)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		r, err := x.store.Run(ctx, f.run.Key)
		if err == nil && (r.Fence != f.run.Fence || r.Claim != f.run.Claim) {
			return
		}
		if err == nil {
			r, err = x.hearSteps(ctx, r, dir)
			x.mu.Lock()
			f.run.Records, f.run.Marks, f.run.Denied = r.Records, r.Marks, cmp.Or(f.run.Denied, r.Denied)
			x.mu.Unlock()
		}
		if err == nil || !sleep(ctx, pause) {
			return
		}
	}
}
