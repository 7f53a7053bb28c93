package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// backlog makes a ledger in which a job of one-second windows owes n of them, all due.
func backlog(t testing.TB, db storetest.Database, n int, effects daybook.Effects, do func(context.Context, *daybook.Run) error) *engine.Engine {
	t.Helper()
	h := &hands{}
	h.leap(-time.Duration(n) * time.Second)
	d := job("tick", effects, do, func(j *daybook.Job) {
		j.Schedule, j.Window, j.Missed, j.CatchupGap, j.Overlap, j.CatchupWindow = "every 1s", daybook.PerFire, daybook.CatchUp, -1, daybook.OverlapAllow, 30*24*time.Hour
	})
	handles := db.Open(t)
	before := open(t, handles, engine.Options{Now: h.now, Boot: h.sinceBoot}, d)
	if err := before.Load(t.Context()); err != nil { // first seen then, so that it owes everything since
		t.Fatal(err)
	}
	return open(t, handles, engine.Options{}, d)
}

// drain lets an engine work until a number of runs is done, and returns how long that took.
func drain(t testing.TB, e *engine.Engine, n int, called *atomic.Int64) time.Duration {
	t.Helper()
	began := time.Now()
	s := start(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for called.Load() < int64(n) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d of %d in %s", called.Load(), n, time.Since(began))
		}
	}
	if err := s.stop(); err != nil { // every end is written
		t.Fatal(err)
	}
	return time.Since(began)
}

// A backlog is drained, each window once.
func TestBacklog(t *testing.T) {
	t.Parallel()
	n := 3000
	if testing.Short() {
		n = 300
	}
	each(t, func(t *testing.T, db storetest.Database) {
		for _, effects := range []daybook.Effects{daybook.Repeatable, daybook.Once} {
			fresh := db.Empty(t)
			var called atomic.Int64
			e := backlog(t, fresh, n, effects, func(context.Context, *daybook.Run) error { called.Add(1); return nil })
			took := drain(t, e, n, &called)
			done := 0
			for after := daybook.Key(""); ; {
				runs, err := e.Store().Runs(t.Context(), daybook.Filter{Prefix: "tick:", After: after, Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range runs {
					after = r.Key
					if r.State == daybook.Done && r.Attempts == 1 {
						done++
					}
				}
				if len(runs) < 1000 {
					break
				}
			}
			if int64(done) != called.Load() || done < n {
				t.Errorf("%s: %d done by one attempt, %d calls, %d owed", effects, done, called.Load(), n)
			}
			t.Logf("%s: %d runs in %s", effects, done, took.Round(time.Millisecond))
		}
	})
}

// BenchmarkDrain is how many runs a second go from owed to done: planned, claimed, begun, reported.
func BenchmarkDrain(b *testing.B) {
	const n = 20_000
	for _, kind := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		for _, effects := range []daybook.Effects{daybook.Repeatable, daybook.Once} {
			db := kind(b)
			b.Run(db.Name+"/"+string(effects), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					var called atomic.Int64
					e := backlog(b, db.Empty(b), n, effects, func(context.Context, *daybook.Run) error { called.Add(1); return nil })
					b.StartTimer()
					took := drain(b, e, n, &called)
					b.ReportMetric(n/took.Seconds(), "runs/s")
				}
			})
		}
	}
}
