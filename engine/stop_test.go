package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/faultstore"
	"github.com/daybook-run/daybook/store/storetest"
)

// The statements by which a run begins and ends, as faultstore finds them.
const (
	beginText = "UPDATE daybook_live SET begun_us"
	endText   = "DELETE FROM daybook_live"
)

// A stop that comes between claim and begin hands the run back uncounted, whether or not the mark had been written.
func TestStopBeforeTheBeginning(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		name := "the mark is not written"
		if after {
			name = "the mark is written and the answer lost"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, db storetest.Database) {
				reached := make(chan struct{}, 1)
				f := faultstore.New(1)
				f.Add(faultstore.Rule{Contains: beginText, After: after, Hook: func(ctx context.Context, _ faultstore.Call) error {
					select {
					case reached <- struct{}{}:
					default:
					}
					<-ctx.Done()
					return ctx.Err()
				}})
				c := answering(nil)
				n := serve(t, db.Faulty(t, f), engine.Options{}, job("once", daybook.Once, c.do))
				k := n.trigger("once", "2026-03-02")
				comes(t, "the begin", reached)
				if err := n.stop(); err != nil {
					t.Fatal(err)
				}
				f.Reset()
				r := run(t, n.Engine, k)
				if r.State != daybook.Scheduled || r.Reason != daybook.ReasonInterrupted || r.Attempts != 0 || r.Failures != 0 || r.Losses != 0 {
					t.Errorf("%s %s, attempts %d, failures %d, losses %d", r.State, r.Reason, r.Attempts, r.Failures, r.Losses)
				}
				if r.Effect != nil && r.Effect.State != daybook.EffectNotDone {
					t.Errorf("the effect is %s", r.Effect.State)
				}
				if c.n.Load() != 0 {
					t.Errorf("it was called %d times", c.n.Load())
				}
				n2 := serve(t, db.Open(t), engine.Options{}, job("once", daybook.Once, c.do))
				r = ends(t, n2.Engine, k, daybook.Done)
				if r.Attempts != 1 || c.n.Load() != 1 || r.WireKey() != string(k) {
					t.Errorf("attempts %d, calls %d, wire key %s", r.Attempts, c.n.Load(), r.WireKey())
				}
			})
		})
	}
}

// A stop asks what runs to end and writes how it ended. What says that it is not done is not counted as a failure.
func TestStopInMidWork(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		begun := make(chan string, 10)
		work := func(end func(context.Context) error) func(context.Context, *daybook.Run) error {
			return func(ctx context.Context, r *daybook.Run) error {
				begun <- r.Job
				<-ctx.Done()
				return end(ctx)
			}
		}
		none := func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{} }
		jobs := []engine.Definition{
			job("finishes", daybook.Once, work(func(context.Context) error { return nil }), none),
			job("not-done", daybook.Once, work(func(context.Context) error { return daybook.NotDone(errFailed) }), none),
			job("repeatable", daybook.Repeatable, work(func(ctx context.Context) error { return ctx.Err() }), none),
			job("cut-off", daybook.Once, work(func(ctx context.Context) error { return ctx.Err() }), none),
		}
		n := serve(t, db.Open(t), engine.Options{}, jobs...)
		for _, j := range jobs {
			n.trigger(j.Job.Name, "2026-03-02")
			comes(t, "the beginning", begun)
		}
		if err := n.stop(); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]struct {
			state  daybook.State
			reason daybook.Reason
			effect daybook.EffectState
		}{
			"finishes":   {daybook.Done, "", daybook.EffectDone},
			"not-done":   {daybook.Retryable, daybook.ReasonInterrupted, daybook.EffectNotDone},
			"repeatable": {daybook.Retryable, daybook.ReasonInterrupted, ""},
			"cut-off":    {daybook.Dead, "", daybook.EffectUnknown},
		} {
			r := run(t, n.Engine, daybook.Key(name+":2026-03-02"))
			if r.State != want.state || r.Reason != want.reason || name != "cut-off" && r.Failures != 0 || r.Losses != 0 {
				t.Errorf("%s: %s %q, failures %d, losses %d", name, r.State, r.Reason, r.Failures, r.Losses)
			}
			if want.effect != "" && (r.Effect == nil || r.Effect.State != want.effect) {
				t.Errorf("%s: effect %+v", name, r.Effect)
			}
			alerted(t, n.Engine, r)
		}
	})
}

func TestCancelOfARunningRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		begun := make(chan string, 10)
		work := func(ctx context.Context, r *daybook.Run) error {
			begun <- r.Job
			<-ctx.Done()
			if r.Job == "not-done" {
				return daybook.NotDone(errFailed)
			}
			return context.Cause(ctx)
		}
		jobs := []engine.Definition{job("repeatable", daybook.Repeatable, work), job("unknown", daybook.Once, work), job("not-done", daybook.Once, work)}
		n := serve(t, db.Open(t), engine.Options{Lease: 2 * time.Second}, jobs...)
		for _, j := range jobs {
			k := n.trigger(j.Job.Name, "2026-03-02")
			comes(t, "the beginning", begun)
			if _, err := n.Control().Cancel(t.Context(), ops, k, "enough"); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range map[string]daybook.State{"repeatable": daybook.Cancelled, "not-done": daybook.Cancelled, "unknown": daybook.Dead} {
			r := ends(t, n.Engine, daybook.Key(name+":2026-03-02"), want)
			alerted(t, n.Engine, r)
			if want == daybook.Dead && r.Letter.Kind != daybook.LetterUnknown {
				t.Errorf("%s: letter %s", name, r.Letter.Kind)
			}
		}
	})
}

// H40, first half: the end cannot be written three times, then it can: done once.
func TestH40EndIsWrittenAtLast(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := faultstore.New(1)
		for n := 1; n <= 3; n++ {
			f.Add(faultstore.Rule{Contains: endText, Nth: n, After: n == 2})
		}
		c := answering(nil)
		n := serve(t, db.Faulty(t, f), engine.Options{}, job("once", daybook.Once, c.do))
		r := ends(t, n.Engine, n.trigger("once", "2026-03-02"), daybook.Done)
		if f.Failed() < 3 || c.n.Load() != 1 || r.Attempts != 1 || r.Failures != 0 {
			t.Errorf("%d writes failed, %d calls, %d attempts, %d failures", f.Failed(), c.n.Load(), r.Attempts, r.Failures)
		}
		if tries := attempts(t, n.Engine, r.Key); len(tries) != 1 || tries[0].LateResult != "" {
			t.Errorf("%+v", tries)
		}
	})
}

// The commit of an end takes place and its answer is lost: it is done once, and nothing looks refused.
func TestEndIsWrittenAndTheAnswerLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := faultstore.New(1)
		ended := make(chan struct{})
		c := answering(nil)
		armed := false
		f.Add(faultstore.Rule{Contains: endText, Nth: 1, After: true, Hook: func(context.Context, faultstore.Call) error {
			if !armed {
				armed = true
				f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, After: true, Hook: func(context.Context, faultstore.Call) error {
					close(ended)
					return faultstore.ErrInjected
				}})
			}
			return nil
		}})
		n := serve(t, db.Faulty(t, f), engine.Options{}, job("once", daybook.Once, c.do))
		k := n.trigger("once", "2026-03-02")
		comes(t, "the commit", ended)
		r := ends(t, n.Engine, k, daybook.Done)
		if err := n.stop(); err != nil { // the end is looked up by then
			t.Fatal(err)
		}
		if tries := attempts(t, n.Engine, r.Key); len(tries) != 1 || tries[0].LateResult != "" || c.n.Load() != 1 {
			t.Errorf("%d calls, %+v", c.n.Load(), tries)
		}
	})
}

// H40, second half: the end cannot be written for longer than the lease. It is no success: another process takes over.
// Once-only work is unknown until the late report settles it; repeatable work is tried again, and the late report is
// refused and kept.
func TestH40EndIsWrittenTooLate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := faultstore.New(1)
		c, again := answering(nil), answering(nil)
		both := make(chan struct{})
		work := func(c *calls) func(context.Context, *daybook.Run) error {
			return func(ctx context.Context, r *daybook.Run) error {
				err := c.do(ctx, r)
				<-both
				return err
			}
		}
		jobs := []engine.Definition{job("once", daybook.Once, work(c)), job("again", daybook.Repeatable, work(again))}
		o := engine.Options{Lease: 3 * time.Second} // which a slow machine keeps, until its ends are not taken
		first := serve(t, db.Faulty(t, f), o, jobs...)
		f.Add(faultstore.Rule{Contains: endText})
		once, repeat := first.trigger("once", "2026-03-02"), first.trigger("again", "2026-03-02")
		until(t, "both are called", func() bool { return c.n.Load() == 1 && again.n.Load() == 1 })
		close(both)
		second := serve(t, db.Open(t), o, jobs...)
		r := ends(t, second.Engine, once, daybook.Dead)
		if r.Letter.Kind != daybook.LetterUnknown {
			t.Errorf("letter %s", r.Letter.Kind)
		}
		alerted(t, second.Engine, r)
		ends(t, second.Engine, repeat, daybook.Done)
		f.Reset()
		r = ends(t, second.Engine, once, daybook.Done)
		if r.Effect.SettledBy != "late report" || r.Letter.State != daybook.LetterSettled {
			t.Errorf("settled by %q, letter %s", r.Effect.SettledBy, r.Letter.State)
		}
		alerted(t, second.Engine, r)
		until(t, "the late report is kept", func() bool {
			return slices.ContainsFunc(attempts(t, second.Engine, repeat), func(a daybook.Attempt) bool { return a.LateResult == daybook.ResultDone && !a.LateTaken })
		})
		if c.n.Load() != 1 || again.n.Load() != 2 {
			t.Errorf("called %d and %d times", c.n.Load(), again.n.Load())
		}
	})
}

// A process that is cut off from the ledger for longer than the lease ends what it does, and another takes over.
func TestCutOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := faultstore.New(1)
		causes := make(chan error, 2)
		begun := make(chan struct{}, 2)
		work := func(ctx context.Context, _ *daybook.Run) error {
			begun <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}
		o := engine.Options{Lease: time.Second}
		first := serve(t, db.Faulty(t, f), o, job("once", daybook.Once, work), job("again", daybook.Repeatable, work))
		once, repeat := first.trigger("once", "2026-03-02"), first.trigger("again", "2026-03-02")
		comes(t, "the beginning", begun)
		comes(t, "the beginning", begun)
		f.Partition(true)
		for range 2 {
			if err := comes(t, "the end", causes); err != daybook.ErrLeaseLost {
				t.Errorf("ended by %v", err)
			}
		}
		c := answering(nil)
		second := serve(t, db.Open(t), o, job("once", daybook.Once, c.do), job("again", daybook.Repeatable, c.do))
		ends(t, second.Engine, once, daybook.Dead)
		ends(t, second.Engine, repeat, daybook.Done)
		f.Reset()
		if err := first.stop(); err != nil {
			t.Fatal(err)
		}
		if r := run(t, second.Engine, once); r.State != daybook.Dead || r.Letter.Kind != daybook.LetterUnknown {
			t.Errorf("%s is %s", once, r.State)
		}
		if c.n.Load() != 1 {
			t.Errorf("%d further calls", c.n.Load())
		}
	})
}

// A line of a crontab does not wait for the window of another day that is to be tried again: nobody runs that one now.
func TestOnceAfterAnotherDay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		c := answering(daybook.NotDone(errFailed), nil)
		d := job("report", daybook.Repeatable, c.do, func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{time.Hour} })
		o := engine.Options{Role: "once", Slots: map[daybook.Lane]int{}}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, day := range []struct {
			window string
			want   daybook.State
		}{{"2026-03-02", daybook.Retryable}, {"2026-03-03", daybook.Done}} {
			e := open(t, db.Open(t), o, d)
			j := d.Job
			a, r, err := e.Foreground(ctx, ops, control.Request{Job: j.Name, Window: day.window, Source: daybook.SourceOnce, Define: &j}, nil)
			if err != nil || r.State != day.want {
				t.Errorf("%s is %v: %v", a.Key, r, err)
			}
		}
	})
}

// A line of a crontab that was killed is not under way for ever: the next call of it settles the run, without any serve.
func TestOnceAfterACrash(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		c := answering(nil)
		jobs := []engine.Definition{job("again", daybook.Repeatable, c.do), job("once", daybook.Once, c.do)}
		o := engine.Options{Role: "once", Lease: time.Second, Slots: map[daybook.Lane]int{}}
		e := open(t, db.Open(t), o, jobs...)
		for _, d := range jobs {
			j := d.Job
			a, err := e.Control().Trigger(t.Context(), ops, control.Request{Job: j.Name, Window: "2026-03-02", Source: daybook.SourceOnce, Define: &j})
			if err != nil {
				t.Fatal(err)
			}
			// Another process claimed it, began it and is no more: its lease is over.
			now := time.Now().UTC().Truncate(time.Microsecond).Add(-2 * o.Lease)
			runs, err := e.Store().Claim(t.Context(), daybook.Claim{Node: "gone", Key: a.Key, Limit: 1, Lease: now.Add(o.Lease), NewID: func() string { return "gone" }}, now.Add(3*o.Lease))
			if err != nil || len(runs) != 1 {
				t.Fatalf("%d runs, %v", len(runs), err)
			}
			if d.Job.Effects == daybook.Once {
				effect, _ := runs[0].Begin(j.Policy(), now)
				if err := e.Store().Begin(t.Context(), runs[0], effect, now); err != nil {
					t.Fatal(err)
				}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		line := func(d engine.Definition) control.Request {
			return control.Request{Job: d.Job.Name, Window: "2026-03-02", Source: daybook.SourceOnce, Define: &d.Job}
		}
		_, r, err := e.Foreground(ctx, ops, line(jobs[0]), func(*daybook.Run) {})
		if err != nil || r.State != daybook.Done || r.Attempts != 2 {
			t.Errorf("%+v %v", r, err)
		}
		a, _, err := open(t, db.Open(t), o, jobs...).Foreground(ctx, ops, line(jobs[1]), func(*daybook.Run) {})
		if r = a.Run; err != nil || a.Outcome != daybook.Refused || r.State != daybook.Dead || r.Letter == nil || r.Letter.Kind != daybook.LetterUnknown {
			t.Errorf("%+v %v", r, err)
		}
		if c.n.Load() != 1 {
			t.Errorf("%d calls", c.n.Load())
		}
	})
}
