package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// offsetStore is a ledger whose database is ahead of this machine.
type offsetStore struct {
	*store.Store
	ahead *atomic.Int64
}

func (s offsetStore) ClockOffset(context.Context, func() time.Time) (time.Duration, error) {
	return time.Duration(s.ahead.Load()), nil
}

// TestH37OneClockForAll: the node is two seconds behind the database. The window of 12:00:00 is planned and claimed at
// 12:00:00.5 of the database; the next is 12:05:00, also when the offset is measured a little smaller and the clock so goes
// back.
func TestH37OneClockForAll(t *testing.T) {
	for _, db := range storetest.Databases(t) {
		t.Run(db.Name, func(t *testing.T) {
			noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
			wall := noon.Add(-4 * time.Minute)
			boot := time.Hour
			move := func(d time.Duration) { wall, boot = wall.Add(d), boot+d }
			var calls atomic.Int64
			e, err := Open(t.Context(), db.Open(t), Options{App: "shop", Now: func() time.Time { return wall }, Boot: func() time.Duration { return boot }, Log: new(logged).to()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			ahead := new(atomic.Int64)
			ahead.Store(int64(2 * time.Second))
			e.clock.store = offsetStore{e.store, ahead}
			j := daybook.Job{Name: "report", Owner: "ops", Timezone: "UTC", Schedule: "every 5m", Window: daybook.PerFire}
			if err := e.Define(Definition{Job: j, Do: func(context.Context, *daybook.Run) error { calls.Add(1); return nil }}); err != nil {
				t.Fatal(err)
			}
			if err := e.clock.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := e.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			tick := func(want int64) {
				t.Helper()
				now := e.clock.Now()
				if _, err := (planner{e}).Tick(t.Context(), now); err != nil {
					t.Fatal(err)
				}
				for {
					for _, s := range []daybook.Service{executor.Ends{Executor: e.exec}, executor.Claims{Executor: e.exec}} {
						if _, err := s.Tick(t.Context(), e.clock.Now()); err != nil {
							t.Fatal(err)
						}
					}
					if e.exec.InFlight() == 0 {
						break
					}
					<-e.exec.Endings()
				}
				runs, err := e.store.Runs(t.Context(), daybook.Filter{Limit: 10})
				if err != nil {
					t.Fatal(err)
				}
				if int64(len(runs)) != want || calls.Load() != want {
					t.Fatalf("at %s of the database: %d runs, done %d times, want %d", now.Format("15:04:05.000"), len(runs), calls.Load(), want)
				}
			}
			move(4*time.Minute - 3*time.Second) // 11:59:59 of the database
			tick(0)
			move(1500 * time.Millisecond) // 12:00:00.5 of the database, 11:59:58.5 here
			tick(1)
			next := func() time.Time {
				t.Helper()
				states, err := e.store.JobStates(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return states[0].Next
			}
			if got := next(); !got.Equal(noon.Add(5 * time.Minute)) {
				t.Errorf("next %s, want 12:05:00", got)
			}
			ahead.Store(int64(1400 * time.Millisecond)) // measured again: 11:59:59.9
			if err := e.clock.measure(t.Context()); err != nil {
				t.Fatal(err)
			}
			tick(1)
			move(2 * time.Second)
			tick(1)
			if got := next(); !got.Equal(noon.Add(5 * time.Minute)) {
				t.Errorf("next %s, want 12:05:00", got)
			}
			move(5 * time.Minute)
			tick(2)
		})
	}
}

// TestADriftIsTold: the offset is measured again each minute; a clock that goes off is told once, and once when it is right
// again.
func TestADriftIsTold(t *testing.T) {
	wall := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	var log logged
	ahead := new(atomic.Int64)
	c := newClock(offsetStore{nil, ahead}, daybook.Node{ID: "n1"}, func() time.Time { return wall }, func() time.Duration { return time.Hour }, log.to())
	for _, step := range []struct {
		ahead        time.Duration
		off, right   int
		claimsHere   bool
		after        time.Duration
		measuredThen bool
	}{
		{0, 0, 0, true, 0, true},
		{2 * time.Second, 0, 0, true, 30 * time.Second, false},
		{2 * time.Second, 1, 0, true, time.Minute, true},
		{3 * time.Second, 1, 0, true, 2 * time.Minute, true},
		{-6 * time.Second, 1, 0, false, 2 * time.Minute, true},
		{time.Second / 2, 1, 1, true, 2 * time.Minute, true},
	} {
		wall = wall.Add(step.after)
		ahead.Store(int64(step.ahead))
		if err := c.current(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.Offset() == step.ahead; got != step.measuredThen {
			t.Errorf("%s ahead: offset %s", step.ahead, c.Offset())
		}
		if off, right := log.count("is off the database's"), log.count("agrees with the database's again"); off != step.off || right != step.right {
			t.Errorf("%s ahead: told %d times that it is off and %d times that it is right, want %d and %d", step.ahead, off, right, step.off, step.right)
		}
		if err := c.usable(); (err == nil) != step.claimsHere {
			t.Errorf("%s ahead: claims: %v", step.ahead, err)
		}
	}
}
