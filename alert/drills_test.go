package alert_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// A job that touches money is reminded of a quarter after its first done window, and then a quarter after each drill; one that
// was never done, or touches none, is not.
func TestDrillsAreDueOnceAQuarter(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		now := storetest.Birth
		p0 := func(j *daybook.Job) { j.Priority, j.Effects = daybook.P0, daybook.Once }
		renew, fresh, mail := storetest.Job("renew", p0), storetest.Job("fresh", p0), storetest.Job("mail")
		var known []daybook.Revision
		for _, j := range []*daybook.Job{renew, fresh, mail} {
			known = append(known, daybook.Revision{Job: j})
		}
		if _, err := s.TakeRevisions(ctx, known, true, now); err != nil {
			t.Fatal(err)
		}
		reminder := &alert.Drills{Store: s}
		due := func(after time.Duration, want ...string) {
			t.Helper()
			now = now.Add(after)
			for range 2 { // the second look writes nothing
				if _, err := reminder.Tick(ctx, now); err != nil {
					t.Fatal(err)
				}
			}
			if got := open(ctx, t, s); !slices.Equal(got, want) {
				t.Errorf("%s: open %q, want %q", now, got, want)
			}
		}
		due(daybook.DrillEvery)
		for _, j := range []*daybook.Job{renew, mail} {
			storetest.Add(ctx, t, s, j, "2026-03-01", now)
			for _, r := range storetest.Claim(ctx, t, s, 1, now) {
				var e *daybook.StepRecord
				if r.OneEffect() {
					e, _ = r.Begin(j.Policy(), now)
				}
				if err := s.Begin(ctx, r, e, now); err != nil {
					t.Fatal(err)
				}
				storetest.Apply(ctx, t, s, r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), now))
			}
		}
		due(daybook.DrillEvery - time.Second)
		due(time.Second, "drill_due renew ")
		due(time.Hour, "drill_due renew ")
		d := &daybook.Drill{Key: "renew:2026-03-01", Job: "renew", Actor: "ops", At: now, Ended: now, Doors: daybook.DefaultDrillDoors, Times: 3}
		if err := s.KeepDrill(ctx, d, nil, daybook.Activity{At: now, Actor: "ops", Action: "drill", Key: d.Key, Job: d.Job}); err != nil {
			t.Fatal(err)
		}
		due(0)
		due(daybook.DrillEvery - time.Second)
		due(time.Second, "drill_due renew ")
		if _, err := s.TakeRevisions(ctx, known[1:], true, now); err != nil { // it is gone
			t.Fatal(err)
		}
		due(0)
	})
}
