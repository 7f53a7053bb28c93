package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/scheduler"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// refuses is a ledger that does not take a plan of a job, so many times.
type refuses struct {
	*store.Store
	job   string
	times atomic.Int32
	panic bool
}

func (r *refuses) Plan(ctx context.Context, plans []*daybook.Plan, now time.Time) ([]daybook.Planned, error) {
	for _, p := range plans {
		if p.Job.Name == r.job && r.times.Add(-1) >= 0 {
			if r.panic {
				panic("not taken")
			}
			return nil, errors.New("not taken")
		}
	}
	return r.Store.Plan(ctx, plans, now)
}

// More jobs are due than one transaction takes, and one of the transactions fails: the others' jobs are planned, and those of the one that
// failed the next time. No window is lost, none is there twice.
func TestATransactionThatFailsLeavesTheOthers(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		const jobs = 1700
		b := newBench(ctx, t, s, "2026-03-10T00:00:00Z")
		refusing := &refuses{Store: s, job: "j0600"} // of the second
		refusing.times.Store(1)
		b.Scheduler = scheduler.New(refusing, scheduler.Options{Compile: compile, TZData: "test", Log: slog.New(slog.NewTextHandler(&b.log, nil))})
		var list []daybook.Job
		for i := range jobs {
			list = append(list, job(fmt.Sprintf("j%04d", i), "0 2 * * *"))
		}
		b.load(list...)
		now := instant("2026-03-10T02:00:00Z")
		if _, err := b.Tick(ctx, now); err == nil || err.Error() != "not taken" {
			t.Fatal(err)
		}
		count := func() int {
			runs, err := s.Runs(ctx, daybook.Filter{Limit: 10 * jobs})
			if err != nil {
				t.Fatal(err)
			}
			return len(runs)
		}
		if n := count(); n != 500 {
			t.Errorf("%d runs beside the failed transaction", n)
		}
		b.to("2026-03-10T02:00:00Z")
		if n := count(); n != jobs {
			t.Errorf("%d runs of %d", n, jobs)
		}

		refusing.times.Store(1)
		refusing.panic = true
		func() {
			defer func() {
				if p := recover(); p != "not taken" {
					t.Errorf("panic %v", p)
				}
			}()
			_, _ = b.Tick(ctx, instant("2026-03-11T02:00:00Z"))
		}()
		b.restart()
		b.load(list...)
		b.to("2026-03-11T02:00:00Z")
		if n := count(); n != 2*jobs {
			t.Errorf("%d runs of %d", n, 2*jobs)
		}
	})
}
