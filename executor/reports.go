package executor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/daybook-run/daybook"
)

// Ends is the service that writes ends.
type Ends struct {
	*Executor
	// Gather is how long an end waits for those of others that are at work, to be written with them. Zero: it does not wait.
	Gather time.Duration
}

// Tick implements daybook.Service.
func (e Ends) Tick(ctx context.Context, _ time.Time) (more bool, err error) {
	x := e.Executor
	x.gather(ctx, e.Gather)
	x.mu.Lock()
	free := len(x.reports) > 0 && x.full
	x.mu.Unlock()
	if free {
		signal(x.wake) // to claim, while these are written, for the slots that they have left
	}
	wrote, err := x.write(ctx)
	if !wrote {
		return false, err
	}
	x.mu.Lock()
	claims := !x.full || x.waits
	x.mu.Unlock()
	if claims {
		signal(x.wake) // what has ended may have made something due
	}
	return true, nil
}

// gather waits for ends to be written together, as long as there is one and others may follow.
func (x *Executor) gather(ctx context.Context, most time.Duration) {
	if most <= 0 || !x.more() {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	for x.more() {
		select {
		case <-x.endings:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// more reports whether there are ends to be written, and others that may soon come.
func (x *Executor) more() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.reports) > 0 && !x.whole() && !x.stopping
}

// whole reports whether the ends that wait fill a write, or nobody is left who could add to them.
func (x *Executor) whole() bool { return x.atWork == 0 || len(x.reports) >= reportBatch }

// write records the ends of flights, all that are there in one transaction.
func (x *Executor) write(ctx context.Context) (wrote bool, err error) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	batch := x.reports
	if len(batch) > reportBatch {
		batch = batch[:reportBatch]
	}
	x.mu.Unlock()
	if len(batch) == 0 {
		return false, nil
	}
	transitions := make([]daybook.Transition, 0, len(batch))
	written := make([]*flight, 0, len(batch))
	for _, f := range batch {
		if f.decide != nil {
			transitions, written = append(transitions, f.next), append(written, f)
		}
	}
	applied, err := x.store.Apply(ctx, transitions)
	x.mu.Lock()
	x.away = err
	x.mu.Unlock()
	if err != nil {
		x.keepEnds(batch)
		return false, err // they stay, and are written by the next Tick
	}
	for i, f := range written {
		if !applied[i].Stale {
			x.announce(f.next)
			continue
		}
		if err := x.late(ctx, f); err != nil {
			return false, err
		}
	}
	for _, m := range transitions {
		if m.Parent != "" || m.Fans {
			x.o.Ended()
			break
		}
	}
	x.mu.Lock()
	if x.reports = append(x.reports[:0:0], x.reports[len(batch):]...); len(x.reports) > 0 {
		signal(x.endings)
	}
	x.mu.Unlock()
	for _, f := range batch {
		if f.decide != nil || f.outcome.Recorded {
			x.clean(f.run.Key, f.run.Fence) // not before it is written: what an attempt left is all there is of it until then
		}
		x.drop(f)
	}
	return true, nil
}

// announce logs a dead letter that was opened. Who calls for one key says it himself.
func (x *Executor) announce(m daybook.Transition) {
	if m.Letter != nil && x.o.Home != daybook.HomeOnce {
		x.o.Log.Warn("dead letter", "job", m.Letter.Job, "key", m.Key, "kind", m.Letter.Kind, "err", m.Letter.Error)
	}
}

// late follows a report that met another state: its own, written by a commit whose answer was lost; the wish of a person
// that it should end, of which this process had not heard yet; one that it still settles; or one that refuses it, and then
// it is kept as evidence.
func (x *Executor) late(ctx context.Context, f *flight) error {
	r, err := x.store.Run(ctx, f.run.Key)
	if err != nil {
		return ignoreNotFound(err)
	}
	m := f.next
	if f.question {
		return x.keepAnswers(ctx, m.Asked)
	}
	if r.Fence == f.run.Fence && r.Claim == f.run.Claim && r.State == m.To && (r.EndedAt.Equal(m.At.Truncate(time.Microsecond)) || m.To.Live() && (r.Due.Equal(m.Due.Truncate(time.Microsecond)) || r.Meant.Equal(m.Due.Truncate(time.Microsecond)))) {
		return nil
	}
	log := x.o.Log.With("job", r.Job, "key", r.Key, "attempt", f.run.Attempts)
	mine := r.Fence == f.run.Fence && r.Claim == f.run.Claim
	if mine && r.State == daybook.Running {
		f.stood.CancelledBy, f.stood.Lease, f.stood.Records, f.stood.Marks, f.stood.Denied = r.CancelledBy, r.Lease, r.Records, r.Marks, cmp.Or(f.stood.Denied, r.Denied)
		f.next = f.decide(&f.stood, m.At)
		x.outside(&f.next)
		applied, err := x.store.Apply(ctx, []daybook.Transition{f.next})
		if err == nil && !applied[0].Stale {
			x.announce(f.next)
			return nil
		}
		if err != nil {
			return err
		}
	}
	if mine && m.Attempt != nil && m.Listed == nil { // a listing ends nothing of the run: another has it listed again
		policy, err := x.policy(ctx, r)
		if err != nil {
			return err
		}
		if lateMove, ok := r.Late(f.outcome, policy, x.o.Clock()); ok {
			f.endUndo(&lateMove)
			applied, err := x.store.Apply(ctx, []daybook.Transition{lateMove})
			if err != nil {
				return err
			}
			if !applied[0].Stale {
				log.Info("late report taken", "result", f.outcome.Result)
				x.announce(lateMove)
				return nil
			}
		}
	}
	if m.Attempt == nil {
		return nil
	}
	if before, ok := r.LateBefore(f.run.Fence, m.Attempt.WireKey, f.outcome, x.o.Clock()); ok && !mine {
		if applied, err := x.store.Apply(ctx, []daybook.Transition{before}); err != nil || !applied[0].Stale {
			return err
		}
	}
	log.Warn("report refused: the run moved on", "result", f.outcome.Result, "fence", f.run.Fence, "now", r.Fence)
	a := *m.Attempt
	a.LateResult, a.LateError, a.LateAt = f.outcome.Result, f.outcome.Error, x.o.Clock()
	var twice *daybook.Twice
	if f.outcome.Result == daybook.ResultDone {
		twice = r.DoneTwice(daybook.StepRun, a.WireKey, a.LateAt)
	}
	return x.store.Evidence(ctx, a, twice)
}

// keepAnswers keeps what the far side said to a question when the run was settled by something else meanwhile.
func (x *Executor) keepAnswers(ctx context.Context, asked []daybook.Attempt) error {
	for _, a := range asked {
		if err := x.store.Evidence(ctx, a, nil); err != nil {
			return err
		}
	}
	return nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, daybook.ErrNotFound) {
		return nil
	}
	return err
}
