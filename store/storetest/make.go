package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
)

// Job is a daily job for tests, with its defaults.
func Job(name string, change ...func(*daybook.Job)) *daybook.Job {
	j := daybook.Job{Name: name, Owner: "ops", Schedule: "0 2 * * *", Timezone: "UTC", Window: daybook.Day,
		Command: daybook.Command{Argv: []string{"true"}}}
	for _, c := range change {
		c(&j)
	}
	j = j.WithDefaults(24*time.Hour, 24*time.Hour)
	return &j
}

// Once makes a job once-only.
func Once(j *daybook.Job) { j.Priority, j.Effects = daybook.P0, daybook.Once }

// Day is the window of a date in UTC.
func Day(date string) daybook.Window {
	start, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err)
	}
	return daybook.Window{Label: date, Date: date, Start: start, End: start.AddDate(0, 0, 1)}
}

// Add makes a job known and one of its windows a scheduled run, due at now.
func Add(ctx context.Context, t testing.TB, s *store.Store, j *daybook.Job, date string, now time.Time) *daybook.Run {
	t.Helper()
	if _, err := s.TakeRevisions(ctx, []daybook.Revision{{Job: j}}, false, now); err != nil {
		t.Fatal(err)
	}
	r := daybook.NewRun(j, 1, Day(date), 1, "", now)
	r.Due, r.NotBefore, r.Cover = now, now, daybook.Bounds{Start: r.Window.Start, End: r.Window.End}
	_, run, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Actor: "test", Effects: j.Effects}, r, now)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Claim claims what is due in the live lane.
func Claim(ctx context.Context, t testing.TB, s *store.Store, limit int, now time.Time) []*daybook.Run {
	t.Helper()
	runs, err := s.Claim(ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: limit, Lease: now.Add(30 * time.Second), NewID: NewID}, now)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// Apply applies one transition and fails the test when it is stale.
func Apply(ctx context.Context, t testing.TB, s *store.Store, m daybook.Transition) {
	t.Helper()
	applied, err := s.Apply(ctx, []daybook.Transition{m})
	if err != nil {
		t.Fatal(err)
	}
	if applied[0].Stale {
		t.Fatalf("%s: %s → %s is stale", m.Key, m.From, m.To)
	}
}

// Find reads a run.
func Find(ctx context.Context, t testing.TB, s *store.Store, k daybook.Key) *daybook.Run {
	t.Helper()
	r, err := s.Run(ctx, k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
