package executor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// applies does something before ends are written, and may fail instead.
type applies struct {
	*store.Store
	before func(ts []daybook.Transition) error
}

func (a applies) Apply(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	if err := a.before(ts); err != nil {
		return nil, err
	}
	return a.Store.Apply(ctx, ts)
}

func repeatable(j *daybook.Job) { j.Effects, j.Overlap = daybook.Repeatable, daybook.OverlapAllow }

// While ends are written, the next runs are claimed for the slots that they left.
func TestMoreIsClaimedWhileEndsAreWritten(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		var r *room
		wrote := 0
		r = newRoom(t, s, repeatable, applies{s, func([]daybook.Transition) error {
			if wrote++; wrote == 1 {
				select {
				case <-r.Woken():
				default:
					t.Error("who claims was not woken")
				}
				r.tick(executor.Claims{Executor: r.Executor})
				r.works(8)
			}
			return nil
		}}, "")
		for _, date := range []string{"2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05", "2026-03-06", "2026-03-07", "2026-03-08"} {
			r.trigger(date)
		}
		r.tick(executor.Claims{Executor: r.Executor})
		r.works(4)
		<-r.Endings()
		r.tick(executor.Ends{Executor: r.Executor, Gather: time.Minute})
		if wrote == 0 {
			t.Error("nothing was written")
		}
		r.settles()
	})
}

// An end waits for those of others that are at work, and no longer than it was told.
func TestEndsAreWrittenTogether(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		var batch atomic.Int64
		r := newRoom(t, s, repeatable, applies{s, func(ts []daybook.Transition) error { batch.Store(int64(len(ts))); return nil }}, "")
		r.stays = true
		for _, date := range []string{"2026-03-01", "2026-03-02", "2026-03-03"} {
			r.trigger(date)
		}
		r.starts(3)
		for range 2 {
			r.leave <- struct{}{}
		}
		<-r.Endings()
		go func() { r.leave <- struct{}{} }()
		r.tick(executor.Ends{Executor: r.Executor, Gather: time.Hour}) // nobody is left who could add to them
		if batch.Load() != 3 {
			t.Errorf("%d ends were written together", batch.Load())
		}
		for _, date := range []string{"2026-03-04", "2026-03-05"} {
			r.trigger(date)
		}
		r.starts(5)
		r.leave <- struct{}{}
		<-r.Endings()
		r.tick(executor.Ends{Executor: r.Executor, Gather: time.Millisecond})
		if batch.Load() != 1 {
			t.Errorf("%d ends were written together", batch.Load())
		}
		r.leave <- struct{}{}
		r.settles()
	})
}

// While the ledger does not take ends, nothing is claimed; once it takes them again, who claims is woken.
func TestNothingIsClaimedWhileEndsAreNotTaken(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		var broken atomic.Bool
		r := newRoom(t, s, repeatable, applies{s, func([]daybook.Transition) error {
			if broken.Load() {
				return errors.New("no room on the disk")
			}
			return nil
		}}, "")
		first := r.trigger("2026-03-01")
		r.claims()
		r.works(1)
		<-r.Endings()
		broken.Store(true)
		if _, err := (executor.Ends{Executor: r.Executor}).Tick(t.Context(), r.clock()); err == nil {
			t.Fatal("it was written")
		}
		second := r.trigger("2026-03-02")
		r.Wake()
		<-r.Woken()
		r.tick(executor.Claims{Executor: r.Executor})
		r.is(first, daybook.Running, "")
		r.is(second, daybook.Scheduled, "")
		broken.Store(false)
		r.tick(executor.Ends{Executor: r.Executor})
		r.is(first, daybook.Done, "")
		select {
		case <-r.Woken():
		default:
			t.Error("who claims was not woken")
		}
		r.settles()
		r.is(second, daybook.Done, "")
	})
}

// What has ended and is not written is bounded: twice as many as there are slots.
func TestClaimsWaitForEnds(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, repeatable, nil, "")
		day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range 30 {
			r.trigger(day.AddDate(0, 0, i).Format(time.DateOnly))
		}
		for range 5 {
			r.tick(executor.Claims{Executor: r.Executor})
			r.over()
		}
		if n := r.InFlight(); n != 12 { // four more than twice the five slots: the claim before was made with eight
			t.Errorf("%d are claimed, and none is written", n)
		}
		r.settles()
	})
}

// over waits until all that was claimed has ended.
func (r *room) over() {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); r.AtWork() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("it does not end")
		}
	}
}
