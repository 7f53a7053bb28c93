package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/scheduler"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// scanning counts how often scans are recorded.
type scanning struct {
	*store.Store
	times int
}

func (s *scanning) Scanned(ctx context.Context, jobs []string, now time.Time) error {
	s.times++
	return s.Store.Scanned(ctx, jobs, now)
}

// TestScansOfManyJobsAreRecordedTogether: jobs that are new have no look-back to compare; a restart compares those of all, and records
// them by the hundred.
func TestScansOfManyJobsAreRecordedTogether(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		var jobs []daybook.Job
		for i := range 250 {
			jobs = append(jobs, job(fmt.Sprintf("job%03d", i), "daily 02:00"))
		}
		counted := &scanning{Store: s}
		start := func() {
			b.Scheduler = scheduler.New(counted, scheduler.Options{Compile: compile, TZData: "test", Log: slog.New(slog.NewTextHandler(&b.log, nil))})
			b.load(jobs...)
		}
		start()
		b.to("2026-03-01T01:00:00Z")
		if counted.times != 0 {
			t.Errorf("new jobs: recorded %d times", counted.times)
		}
		start()
		b.to("2026-03-01T01:00:00Z")
		if counted.times != 3 {
			t.Errorf("after a restart: recorded %d times", counted.times)
		}
		states, err := s.JobStates(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range states {
			if !st.ScannedAt.Equal(b.now) {
				t.Errorf("%s was scanned at %v", st.Name, st.ScannedAt)
			}
		}
		b.to("2026-03-02T00:59:59Z")
		if counted.times != 3 {
			t.Errorf("within a day: recorded %d times", counted.times)
		}
		b.to("2026-03-02T01:00:00Z")
		if counted.times != 6 {
			t.Errorf("a day later: recorded %d times", counted.times)
		}
	})
}
