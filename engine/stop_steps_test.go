package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/faultstore"
	"github.com/daybook-run/daybook/store/storetest"
)

// stepText is in the statement that marks a step.
const stepText = "INSERT INTO daybook_steps"

// charging is work with one effect, of which nobody can be asked. It is stopped between the effect and its end.
func charging(c *calls, gate <-chan struct{}) func(context.Context, *daybook.Run) error {
	return func(ctx context.Context, r *daybook.Run) error {
		_, err := daybook.Effect(ctx, r, "charge", daybook.EffectOf[string]{Do: func(ctx context.Context, _ string) (string, error) {
			err := c.do(ctx, r)
			<-gate
			return "ch_1", err
		}})
		return err
	}
}

func inSteps(j *daybook.Job) { j.Steps = true }

// H40 with steps, first half: the end of an effect cannot be written three times, then it can: done once, in one attempt.
func TestH40EndOfAStepIsWrittenAtLast(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := faultstore.New(1)
		c, gate := answering(nil), make(chan struct{})
		n := serve(t, db.Faulty(t, f), engine.Options{}, job("once", daybook.Once, charging(c, gate), inSteps))
		k := n.trigger("once", "2026-03-02")
		until(t, "it is called", func() bool { return c.n.Load() == 1 })
		for n := 1; n <= 3; n++ {
			f.Add(faultstore.Rule{Contains: stepText, Nth: n, After: n == 2})
		}
		close(gate)
		r := ends(t, n.Engine, k, daybook.Done)
		if e := r.StepRecord("charge"); f.Failed() < 3 || c.n.Load() != 1 || r.Attempts != 1 || e.State != daybook.EffectDone || e.SettledBy != "" {
			t.Errorf("%d calls failed, %d calls of the work, %d attempts, %+v", f.Failed(), c.n.Load(), r.Attempts, e)
		}
	})
}

// H40 with steps, second half: the end of an effect cannot be written for longer than the lease. Another process declares it
// unknown, with a letter and an alert; the late report under the same fence settles it, and the work goes on with what is left.
func TestH40EndOfAStepIsWrittenTooLate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := faultstore.New(1)
		c, gate := answering(nil), make(chan struct{})
		once := job("once", daybook.Once, charging(c, gate), inSteps)
		o := engine.Options{Lease: time.Second}
		first := serve(t, db.Faulty(t, f), o, once)
		k := first.trigger("once", "2026-03-02")
		until(t, "it is called", func() bool { return c.n.Load() == 1 })
		f.Partition(true)
		close(gate)
		second := serve(t, db.Open(t), o, once)
		r := ends(t, second.Engine, k, daybook.Dead)
		if r.Letter.Kind != daybook.LetterUnknown {
			t.Errorf("letter %s", r.Letter.Kind)
		}
		alerted(t, second.Engine, r)
		f.Partition(false)
		r = ends(t, second.Engine, k, daybook.Done)
		if e := r.StepRecord("charge"); e.State != daybook.EffectDone || e.SettledBy != "late report" || string(e.Data) != `"ch_1"` || r.Letter.State != daybook.LetterSettled {
			t.Errorf("%+v, letter %s", e, r.Letter.State)
		}
		alerted(t, second.Engine, r)
		if c.n.Load() != 1 {
			t.Errorf("called %d times", c.n.Load())
		}
	})
}
