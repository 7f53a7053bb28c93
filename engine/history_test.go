package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/pruner"
	"github.com/daybook-run/daybook/scheduler"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// batches is a ledger that notes how much was emptied in one transaction.
type batches struct {
	*store.Store
	sizes []int
}

func (b *batches) Prune(ctx context.Context, r daybook.Retention, now time.Time, limit int, dry bool) (int, error) {
	n, err := b.Store.Prune(ctx, r, now, limit, dry)
	if n > 0 {
		b.sizes = append(b.sizes, n)
	}
	return n, err
}

// H50: a frequent job for a week, with a retention of seven days and 1,000 runs a job. It fires every other minute
// instead of every second, 5,040 times instead of 604,800, and the logs are emptied every other day instead of every hour, so
// that they go in several batches.
func TestH50AWeekOfAFrequentJob(t *testing.T) {
	const week, kept = 7 * 24 * 30, 1000
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		ctx, s, start := t.Context(), storetest.Ledger(t, db), storetest.Birth
		j, schedule, err := calendar.Complete(daybook.Job{Name: "tick", Owner: "ops", Schedule: "every 2m", Timezone: "UTC", Missed: daybook.CatchUp, CatchupGap: -1,
			MissedAfter: 2 * time.Hour, Overlap: daybook.OverlapAllow, Command: daybook.Command{Argv: []string{"true"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		plan := scheduler.New(s, scheduler.Options{TZData: "test"})
		if err := plan.Load(ctx, []scheduler.Job{{Job: &j, Schedule: schedule}}, true, start); err != nil {
			t.Fatal(err)
		}
		b := &batches{Store: s}
		empty := pruner.New(b, pruner.Options{Retention: daybook.Retention{Log: 7 * 24 * time.Hour, LogRuns: kept}, Every: 48 * time.Hour})
		tick := func(service daybook.Service, now time.Time) {
			t.Helper()
			for {
				more, err := service.Tick(ctx, now)
				if err != nil {
					t.Fatal(err)
				}
				if !more {
					return
				}
			}
		}
		now := start
		for hour := 1; hour <= 7*24; hour++ {
			now = start.Add(time.Duration(hour) * time.Hour)
			tick(plan, now)
			runs := storetest.Claim(ctx, t, s, kept, now)
			if len(runs) != 30 {
				t.Fatalf("hour %d: claimed %d runs", hour, len(runs))
			}
			ends := make([]daybook.Transition, len(runs))
			for i, r := range runs {
				ends[i] = r.Next(daybook.Outcome{Result: daybook.ResultDone, Output: daybook.Output{Text: "tick"}}, j.Policy(), r.NotBefore.Add(time.Second))
			}
			if _, err := s.Apply(ctx, ends); err != nil {
				t.Fatal(err)
			}
			tick(empty, now)
		}
		tick(empty, now.Add(48*time.Hour))

		emptied, most := 0, 0
		for _, n := range b.sizes {
			emptied, most = emptied+n, max(most, n)
		}
		if emptied != week-kept || most > 1000 || len(b.sizes) < 5 {
			t.Errorf("emptied %d runs of %d, in batches of %v", emptied, week, b.sizes)
		}
		// Every key has its row; the newest 1,000, and no others, still have their logs; and what is asked for again is
		// answered from the row.
		rows, err := s.Runs(ctx, daybook.Filter{Job: "tick", Limit: 2 * week})
		if err != nil || len(rows) != week {
			t.Fatalf("%d rows of %d, %v", len(rows), week, err)
		}
		withLogs := 0
		for i, r := range rows { // the newest first
			n := week - i
			if want := daybook.Key(start.Add(time.Duration(2*n) * time.Minute).Format("tick:2006-01-02T15:04Z")); r.Key != want || r.State != daybook.Done || r.Attempts != 1 {
				t.Fatalf("%s is %s after %d attempts, want %s", r.Key, r.State, r.Attempts, want)
			}
			old := n <= week-kept
			if old == r.PrunedAt.IsZero() {
				t.Errorf("%s was emptied at %s", r.Key, r.PrunedAt)
			}
			if n%20 != 0 {
				continue
			}
			if had, err := logs(ctx, s, r.Key); err != nil || had == old {
				t.Errorf("%s has logs: %v, %v", r.Key, had, err)
			} else if had {
				withLogs += 20
			}
			reply, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Actor: "ops"}, nil, now)
			if err != nil || reply.Outcome != daybook.Reused || reply.Act != daybook.ActNone {
				t.Errorf("%s asked again: %+v %v", r.Key, reply, err)
			}
		}
		if withLogs != kept {
			t.Errorf("%d runs have logs", withLogs)
		}
	})
}

// logs reports whether a run has both an attempt and its output, and fails when it has one of them.
func logs(ctx context.Context, s *store.Store, k daybook.Key) (bool, error) {
	attempts, err := s.Attempts(ctx, k)
	if err != nil {
		return false, err
	}
	output, err := s.Output(ctx, k, 1)
	switch {
	case len(attempts) == 1 && err == nil && output.Text == "tick":
		return true, nil
	case len(attempts) == 0 && (daybook.CodeOf(err) == daybook.CodeNotFound || err == nil && output.Text == ""):
		return false, nil
	}
	return false, fmt.Errorf("%d attempts, output %q, %w", len(attempts), output.Text, err)
}
