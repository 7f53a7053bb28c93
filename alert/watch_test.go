package alert_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

func compile(j daybook.Job) (*daybook.Job, alert.Schedule, error) {
	j, s, err := calendar.Complete(j, nil)
	return &j, s, err
}

// open returns the kinds and keys of what stands open.
func open(ctx context.Context, t *testing.T, s *store.Store) (list []string) {
	t.Helper()
	rows, err := s.AlertRows(ctx, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		list = append(list, string(r.Kind)+" "+r.Job+" "+string(r.Alert.Key)+r.LastGood)
	}
	slices.Sort(list)
	return list
}

// H69: one alert a job, not one a window; it ends with the first good window.
func TestWatcherRaisesSilenceOnceAndEndsIt(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		now := storetest.Birth
		w := alert.NewWatcher(s, alert.WatchOptions{Compile: compile})
		tick := func(after time.Duration, want ...string) {
			t.Helper()
			now = now.Add(after)
			if _, err := w.Tick(ctx, now); err != nil {
				t.Fatal(err)
			}
			if got := open(ctx, t, s); !slices.Equal(got, want) {
				t.Errorf("%s: open %q, want %q", now, got, want)
			}
		}
		done := func(date string) {
			t.Helper()
			j := storetest.Job("digest")
			storetest.Add(ctx, t, s, j, date, now)
			for _, r := range storetest.Claim(ctx, t, s, 1, now) {
				if err := s.Begin(ctx, r, nil, now); err != nil {
					t.Fatal(err)
				}
				storetest.Apply(ctx, t, s, r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), now))
			}
		}
		storetest.Add(ctx, t, s, storetest.Job("digest"), "2026-03-01", now)
		tick(20 * time.Minute)
		tick(20*time.Minute, "job_late digest digest:2026-03-01")
		tick(time.Second, "job_late digest digest:2026-03-01") // no round yet
		runs := storetest.Claim(ctx, t, s, 1, now)
		if err := s.Begin(ctx, runs[0], nil, now); err != nil {
			t.Fatal(err)
		}
		tick(time.Minute) // it has begun
		storetest.Apply(ctx, t, s, runs[0].Next(daybook.Outcome{Result: daybook.ResultDone}, storetest.Job("digest").Policy(), now))
		storetest.Add(ctx, t, s, storetest.Job("digest"), "2026-03-02", now) // and then nothing
		tick(72*time.Hour, "job_late digest digest:2026-03-02", "job_silent digest 2026-03-01")
		tick(24*time.Hour, "job_late digest digest:2026-03-02", "job_silent digest 2026-03-01")
		done("2026-03-04") // the oldest comes first, so it is that of the 2nd that is done
		done("2026-03-04")
		tick(time.Minute, "job_late digest digest:2026-03-03") // which no scheduler has decided
	})
}

func TestWatcherLeavesWhatOthersRaised(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		now := storetest.Birth
		w := alert.NewWatcher(s, alert.WatchOptions{Compile: compile})
		j := storetest.Job("digest")
		storetest.Add(ctx, t, s, j, "2026-03-01", now)
		for _, a := range []*daybook.Alert{
			daybook.NewAlert(daybook.AlertJobLate, "digest:2026-02-20", "digest", daybook.P1, "5 windows skipped", "", now), // a span: no row
			daybook.NewAlert(daybook.AlertScheduleFault, "", "digest", daybook.P1, "broken", "", now),
			daybook.NewAlert(daybook.AlertJobLate, "gone:2026-03-01", "gone", daybook.P1, "x", "", now),
		} {
			if err := s.Alert(ctx, a); err != nil {
				t.Fatal(err)
			}
		}
		before := open(ctx, t, s)
		if _, err := w.Tick(ctx, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := open(ctx, t, s); !slices.Equal(got, before) {
			t.Errorf("open %q, want %q", got, before)
		}
		if got := w.Wait(now.Add(time.Minute)); got != time.Minute {
			t.Errorf("waits %s", got)
		}
	})
}

// A freeze of the ledger or of the file excuses what is late; what does not start afterwards is late all the same.
func TestAFreezeIsNoDelay(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		now := storetest.Birth
		var file []daybook.Freeze
		w := alert.NewWatcher(s, alert.WatchOptions{Compile: compile, Freezes: func(_, _ time.Time) []daybook.Freeze { return file }})
		j := storetest.Job("digest")
		storetest.Add(ctx, t, s, j, "2026-03-01", now)
		look := func(after time.Duration, want int) {
			t.Helper()
			now = now.Add(after)
			if _, err := w.Tick(ctx, now); err != nil {
				t.Fatal(err)
			}
			if got := open(ctx, t, s); len(got) != want {
				t.Errorf("%s: open %q, want %d", now, got, want)
			}
		}
		f := daybook.Freeze{Name: "deploy", From: now, Until: now.Add(2 * time.Hour), Actor: "ops"}
		if _, err := s.StartFreeze(ctx, f, daybook.Activity{At: now, Actor: "ops", Action: "freeze start"}); err != nil {
			t.Fatal(err)
		}
		file = []daybook.Freeze{{Name: "nightly", From: now.Add(time.Hour), Until: now.Add(4 * time.Hour), OfFile: true}}
		storetest.Claim(ctx, t, s, 1, now) // puts it off
		look(119*time.Minute, 0)
		look(2*time.Hour, 0)
		look(25*time.Minute, 0)
		look(10*time.Minute, 1) // nobody has claimed it since
	})
}
