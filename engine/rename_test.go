package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// An application renames a job twice while a run of it climbs the ladder: it is done under its first key, by the function and
// the policies of the job as it is now, and the other names are answered from it.
func TestAnApplicationRenamesAJob(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		last := app(t, db.Open(t), engine.Options{App: "shop"})
		fails := func(context.Context, *daybook.Run) error { return daybook.NotDone(errors.New("not yet")) }
		named := func(name, formerly string) daybook.Job {
			j := handled(name)
			j.Formerly, j.Retry.Backoff = formerly, []time.Duration{time.Second, time.Millisecond, time.Millisecond, time.Second}
			return j
		}
		last.Handle(named("a", ""), fails)
		if err := last.RunDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := last.Trigger(t.Context(), "a", daybook.At("2026-03-02")); err != nil {
			t.Fatal(err)
		}
		if err := last.RunDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		done := 0
		for i, name := range []string{"b", "c"} {
			last = app(t, db.Open(t), engine.Options{App: "shop"})
			do := fails
			if name == "c" {
				do = func(_ context.Context, r *daybook.Run) error {
					done++
					if r.Key != "a:2026-03-02" || r.Job != "a" {
						t.Errorf("%s of %s", r.Key, r.Job)
					}
					return nil
				}
			}
			last.Handle(named(name, string("ab"[i])), do)
			if err := last.RunDue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "done", func() bool {
			if err := last.RunDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			return run(t, last, "a:2026-03-02").State == daybook.Done
		})
		if a, err := last.Trigger(t.Context(), "c", daybook.At("2026-03-02")); err != nil || a.Key != "a:2026-03-02" || a.Outcome != daybook.Reused {
			t.Errorf("%s %v", a.Line(), err)
		}
		if done != 1 {
			t.Errorf("done %d times", done)
		}
		old := app(t, db.Open(t), engine.Options{App: "shop"}) // a process of the old version starts again
		old.Handle(named("a", ""), fails)
		if err := old.RunDue(t.Context()); daybook.CodeOf(err) != daybook.CodeConflict {
			t.Errorf("the old version starts: %v", err)
		}
	})
}
