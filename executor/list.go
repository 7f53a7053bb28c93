package executor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// Bounds of one batch of a listing, so that no listing is held in memory whole.
const (
	listRows  = 1000
	listBytes = 1 << 20
	zonesKept = 1000 // there are some 600
)

// lists reports whether the claimed run is to name its subjects, which have runs of their own.
func (w Work) lists(r *daybook.Run) bool {
	return w.List != nil && r.Subject == "" && !r.Key.IsUndo() && r.Effect == nil && len(r.Records) == 0
}

// list has the subjects of a run named, and writes a run for each. It touches nothing outside: when it is lost it is done
// again, whatever the effects of the job.
func (x *Executor) list(ctx context.Context, f *flight, work Work, env map[string]string) {
	x.mu.Lock()
	f.run.BegunAt = x.o.Clock()
	x.mu.Unlock()
	if work.Job.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, work.Job.Timeout, daybook.ErrTimeout)
		defer cancel()
	}
	run := x.snapshot(f)
	l := &listing{x: x, flight: f, parent: &run, job: work.Job, batched: make(map[daybook.Key]bool), zones: make(map[string]zoned)}
	ended := make(chan error, 1)
	go func() {
		ended <- l.all(ctx, work.List, daybook.Order{Run: &run, Job: work.Job, Attempt: run.Attempts, Fence: run.Fence, Env: env, Secrets: f.secrets})
	}()
	err := l.wait(ctx, ended)
	if l.begun.Load() {
		x.mu.Lock()
		f.run.Fans = true
		x.mu.Unlock()
	}
	if err != nil {
		x.end(f, work.Job.Policy(), listFault(ctx, work.Job.Name, err))
		return
	}
	f.outcome = daybook.Outcome{Result: daybook.ResultDone}
	x.decide(f, func(r *daybook.Run, now time.Time) daybook.Transition { return r.List(l.found, f.outcome, now) })
}

// wait waits for a listing; one that does not heed its context is left behind. What it still names is refused, since the
// run is not held any more.
func (l *listing) wait(ctx context.Context, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(daybook.TerminationGrace)
	defer grace.Stop()
	select {
	case err := <-ended:
		return err
	case <-grace.C:
		return context.Cause(ctx)
	}
}

// listFault reads how a listing ended that did not come to its end: nothing happened by it.
func listFault(ctx context.Context, job string, err error) daybook.Outcome {
	out := daybook.OutcomeOf(err)
	if out.Result != daybook.ResultPermanent {
		out.Result = daybook.ResultNotDone
	}
	if cause := context.Cause(ctx); cause != nil {
		var why *daybook.Error
		out = daybook.Outcome{Result: daybook.ResultNotDone, Error: cause.Error(), Interrupted: errors.As(cause, &why) && why == daybook.ErrShutdown}
	}
	out.Error = daybook.Clip("list the subjects of "+job+": "+out.Error, daybook.MaxErrorBytes)
	return out
}

// listing is one attempt to name the subjects of a run.
type listing struct {
	x       *Executor
	flight  *flight
	parent  *daybook.Run
	job     *daybook.Job
	found   daybook.Listed
	rows    int64       // that came
	begun   atomic.Bool // something may have been written
	batch   []*daybook.Run
	batched map[daybook.Key]bool
	bytes   int
	zones   map[string]zoned // at most zonesKept
}

// zoned is the window of the run as one zone has it.
type zoned struct {
	window daybook.Window
	opens  time.Time // its first fire there
	err    error
}

// all takes every subject, a batch at a time.
func (l *listing) all(ctx context.Context, list ListFunc, o daybook.Order) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the listing panicked: %v", p)
		}
	}()
	w := l.parent.Window
	w.Start, w.End = l.parent.Cover.Start, l.parent.Cover.End
	for s, err := range list(ctx, w, o) {
		switch {
		case err == nil:
			l.rows++
			err = ctx.Err()
		case l.rows > 0:
			err = fmt.Errorf("after row %d: %w", l.rows, err)
		}
		if err == nil {
			err = l.take(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil { // the end of what was named may be that of our patience
		return err
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	if err := l.onceMore(); err != nil {
		return err
	}
	if l.parent.Fans {
		l.found.Vanished, err = l.x.store.Vanished(ctx, l.parent)
	}
	return err
}

// take adds one subject. What is none is told, and the others are listed all the same.
func (l *listing) take(ctx context.Context, s daybook.Subject) error {
	w := l.parent.Window
	if l.job.Zone != daybook.ZoneOfSubject {
		s.Zone = ""
	} else {
		z, due := l.zone(&s)
		if z.err != nil {
			l.faulty(daybook.Invalid("subject %q: zone %q", daybook.Clip(s.ID, 60), daybook.Clip(s.Zone, 60)).Because(z.err))
			return nil
		}
		if !due {
			return nil
		}
		w = z.window
	}
	c, err := l.parent.Child(l.job, s, w)
	if err != nil {
		l.faulty(err)
		return nil
	}
	if l.batched[c.Key] {
		l.found.Repeated++
		return nil
	}
	l.batched[c.Key] = true
	l.batch, l.bytes = append(l.batch, c), l.bytes+len(c.Input)
	if len(l.batch) >= listRows || l.bytes >= listBytes {
		return l.flush(ctx)
	}
	return nil
}

func (l *listing) faulty(err error) {
	if l.found.Faulty++; len(l.found.Faults) < daybook.MaxSubjectFaults {
		l.found.Faults = append(l.found.Faults, daybook.Clip(fmt.Sprintf("row %d: %v", l.rows, err), 300))
	}
}

// zone returns the window in the zone of a subject, and whether its hour has come there.
func (l *listing) zone(s *daybook.Subject) (zoned, bool) {
	if s.Zone == "" {
		s.Zone = l.job.Timezone
	}
	z, ok := l.zones[s.Zone]
	if !ok {
		z.window, z.opens, z.err = l.x.o.InZone(l.job, s.Zone, l.parent.Window.Label)
		if len(l.zones) < zonesKept && len(s.Zone) < 100 { // a listing may name anything
			l.zones[s.Zone] = z
		}
	}
	if z.err != nil || !z.opens.After(l.parent.BegunAt) {
		return z, true
	}
	l.found.Later++
	if l.found.Next.IsZero() || z.opens.Before(l.found.Next) {
		l.found.Next = z.opens
	}
	return z, false
}

// onceMore lets everything be listed once more when the hour has come in the last zone there is, so that whoever moved
// meanwhile is added.
func (l *listing) onceMore() error {
	if l.job.Zone != daybook.ZoneOfSubject || !l.found.Next.IsZero() {
		return nil
	}
	_, last, err := l.x.o.InZone(l.job, calendar.LastZone, l.parent.Window.Label)
	if err == nil && last.After(l.parent.BegunAt) {
		l.found.Next = last
	}
	return err
}

// flush writes the batch, for as long as the ledger does not answer and ctx lasts.
func (l *listing) flush(ctx context.Context) error {
	if len(l.batch) == 0 {
		return nil
	}
	l.begun.Store(true)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		now := l.x.o.Clock()
		fresh, known, err := l.x.store.ListChildren(ctx, l.parent, l.batch, now.Add(l.x.o.Lease))
		if err == nil {
			l.x.renewed(l.flight, now)
			l.found.New += int64(fresh)
			l.found.Subjects += int64(fresh + known)
			l.found.Repeated += int64(len(l.batch) - fresh - known)
			clear(l.batched)
			clear(l.batch)
			l.batch, l.bytes = l.batch[:0], 0
			return nil
		}
		if errors.Is(err, daybook.ErrStale) {
			return err
		}
		l.x.o.Log.Warn("subjects could not be written", "job", l.parent.Job, "key", l.parent.Key, "err", err)
		if !sleep(ctx, pause) {
			return err
		}
	}
}
