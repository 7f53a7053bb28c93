package control_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/store/storetest"
)

// charged is a job whose work marks what it does, and knows how that is taken back.
func (b *bench) charged() {
	b.t.Helper()
	b.at(day("2026-03-01"))
	b.job(daybook.Job{Name: "steps", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Steps: true, Overlap: daybook.OverlapAllow,
		Undo: daybook.Command{Argv: []string{"true"}}, Retry: daybook.Retry{Backoff: []time.Duration{}}})
	b.at(utc("2026-10-26T12:00:00"))
}

// step lets the run of k do an effect, which is done.
func (b *bench) step(k daybook.Key, step string) {
	b.t.Helper()
	r := b.run(k)
	a, err := b.ComeTo(b.ctx, r.ID(), daybook.StepAsk{Step: step, Call: step})
	if err != nil || a.Do != daybook.StepBegin {
		b.t.Fatalf("begin %s: %+v %v", step, a, err)
	}
	if _, err := b.StepEnded(b.ctx, r.ID(), daybook.StepEnd{Step: step, Try: 1, Outcome: daybook.Outcome{Result: daybook.ResultDone}}); err != nil {
		b.t.Fatal(err)
	}
}

// A run whose undo has a letter is not told as one that is being undone: nothing goes on until a person looks.
func TestAnUndoThatWaitsForAPersonIsSaid(t *testing.T) {
	each(t, func(b *bench) {
		b.charged()
		const k = daybook.Key("steps:2026-10-26")
		b.make(k)
		b.claim(k)
		b.step(k, "charge")
		storetest.Apply(b.ctx, t, b.s, b.run(k).Next(daybook.Outcome{Result: daybook.ResultDone}, b.policy(k), b.now))
		if _, err := b.Undo(b.ctx, ops, k, "wrong price"); err != nil {
			t.Fatal(err)
		}
		told := func(waits bool, en, zh string) {
			t.Helper()
			r, err := b.Run(b.ctx, k)
			if err != nil {
				t.Fatal(err)
			}
			text := control.StateText("✓", r)
			if r.UndoWaits != waits || text.String() != en || lang.For(lang.Chinese).Say(text) != zh || control.NewRunJSON(r).UndoWaits != waits {
				t.Errorf("waits %v, %s, %s", r.UndoWaits, text, lang.For(lang.Chinese).Say(text))
			}
			list, err := b.Runs(b.ctx, daybook.Filter{Job: "steps"})
			if err != nil || len(list) == 0 {
				t.Fatalf("%v %v", list, err)
			}
			for _, one := range list {
				if one.Key == k && control.StateText("✓", one).String() != en {
					t.Errorf("listed as %s", control.StateText("✓", one))
				}
			}
			s, err := b.Key(b.ctx, k)
			if err != nil || !strings.HasPrefix(s.Line(), string(k)+"  "+strings.TrimPrefix(en, "✓ ")+" ") {
				t.Errorf("told as %q %v", s.Line(), err)
			}
		}
		told(false, "✓ done (undoing)", "✓ 完成（撤销中）")
		u := b.claim(k.Undo())
		storetest.Apply(b.ctx, t, b.s, u.Next(daybook.Outcome{Result: daybook.ResultPermanent, Error: "exit 65"}, daybook.Policy{}, b.now))
		if u := b.run(k.Undo()); u.State != daybook.Dead {
			t.Fatalf("%s", u.State)
		}
		told(true, "✓ done (its undo waits for you)", "✓ 完成（它的撤销等你处理）")
		if _, err := b.Replay(b.ctx, ops, []daybook.Key{k.Undo()}, ""); err != nil {
			t.Fatal(err)
		}
		told(false, "✓ done (undoing)", "✓ 完成（撤销中）")
	})
}

// Who asked for the end of a run is told as long as it is known, whatever became of the run; not once it was taken up again.
func TestWhoAskedForTheEnd(t *testing.T) {
	each(t, func(b *bench) {
		b.charged()
		const k = daybook.Key("steps:2026-10-26")
		b.make(k)
		b.claim(k)
		asked := func(k daybook.Key, en, zh string) {
			t.Helper()
			a, err := b.AskedToEnd(b.ctx, b.run(k))
			if err != nil {
				t.Fatal(err)
			}
			if a == nil {
				if en != "" {
					t.Errorf("%s: nobody asked", k)
				}
				return
			}
			if got, said := a.Text(time.UTC).String(), lang.For(lang.Chinese).Say(a.Text(time.UTC)); got != en || said != zh {
				t.Errorf("%s: %q\n%q", k, got, said)
			}
		}
		asked(k, "", "")
		b.step(k, "charge")
		if _, err := b.Cancel(b.ctx, ops, k, "wrong list"); err != nil {
			t.Fatal(err)
		}
		const en, zh = "to end by ops, 2026-10-26 12:00:00 UTC: wrong list", "结束，由 ops，2026-10-26 12:00:00 UTC：wrong list"
		asked(k, en, zh)
		storetest.Apply(b.ctx, t, b.s, b.run(k).Next(daybook.Outcome{Result: daybook.ResultNotDone, Error: "ended"}, b.policy(k), b.now))
		if r := b.run(k); r.State != daybook.Dead || r.Reason != daybook.ReasonCancelled {
			t.Fatalf("%s (%s)", r.State, r.Reason)
		}
		asked(k, en, zh)
		b.after(time.Minute)
		if _, err := b.Replay(b.ctx, ops, []daybook.Key{k}, "the list is right"); err != nil {
			t.Fatal(err)
		}
		asked(k, "", "")
		const waits = daybook.Key("steps:2026-10-25")
		b.make(waits)
		if _, err := b.Cancel(b.ctx, ops, waits, "not this day"); err != nil {
			t.Fatal(err)
		}
		asked(waits, "to end by ops, 2026-10-26 12:01:00 UTC: not this day", "结束，由 ops，2026-10-26 12:01:00 UTC：not this day")
	})
}

// A person who settles an effect as done gives its result along: the work is handed that when it comes to the effect again, and so is an
// undo. What goes with nothing else, or cannot be kept, changes nothing.
func TestAResultGivenWithAResolve(t *testing.T) {
	each(t, func(b *bench) {
		b.charged()
		b.renew()
		const k = daybook.Key("steps:2026-10-26")
		b.unknownSteps(k, "charge")
		done := control.Word{Step: "charge", As: daybook.AsDone, Result: []byte(`{ "id": "ch_1" }`)}
		for _, bad := range []control.Word{{Step: "charge", As: daybook.AsNotDone, Result: done.Result}, {Step: "charge", As: daybook.AsAsk, Result: done.Result},
			{Step: "charge", As: daybook.AsDone, Result: []byte(`ch_1`)}, {Step: "charge", As: daybook.AsDone, Result: []byte(`null`)}} {
			if _, err := b.Resolve(b.ctx, ops, k, bad, "looked"); daybook.CodeOf(err) != daybook.CodeInvalid || daybook.HintOf(err) == "" {
				t.Errorf("%s %s: %v", bad.As, bad.Result, err)
			}
		}
		if r := b.run(k); r.StepRecord("charge").State != daybook.EffectUnknown {
			t.Fatalf("%+v", r.StepRecord("charge"))
		}
		a, err := b.Resolve(b.ctx, ops, k, done, "in their book")
		if err != nil || !strings.HasSuffix(a.Line(), "Its result is kept for what goes on with it, and for an undo. Nobody executes now: no serve was seen in the last 30 s.") {
			t.Fatalf("%s %v", a.Line(), err)
		}
		r := b.claim(k)
		again, err := b.ComeTo(b.ctx, r.ID(), daybook.StepAsk{Step: "charge", Call: "b"})
		if err != nil || again.Do != daybook.StepSkip || string(again.Record.Data) != `{"id":"ch_1"}` {
			t.Errorf("the work is handed %+v %v", again, err)
		}
		if list := b.run(k).Undoable(); len(list) != 1 || string(list[0].Data) != `{"id":"ch_1"}` {
			t.Errorf("an undo is given %+v", list)
		}

		const whole = daybook.Key("renew:2026-10-26")
		b.unknownOf(whole)
		if _, err := b.Resolve(b.ctx, ops, whole, control.Word{Step: daybook.StepRun, As: daybook.AsDone, Result: []byte(`"ch_2"`)}, "in their book"); err != nil {
			t.Fatal(err)
		}
		if r := b.run(whole); r.State != daybook.Done || string(r.Result) != `"ch_2"` || string(r.Effect.Data) != `"ch_2"` {
			t.Errorf("%s, %s, %s", r.State, r.Result, r.Effect.Data)
		}
	})
}

// An attempt whose last word comes when the run was done again, under the next wire key, has done it twice: people are told.
func TestALateReportOfARunThatHappenedTwiceIsTold(t *testing.T) {
	each(t, func(b *bench) {
		b.job(daybook.Job{Name: "whole", Schedule: "0 2 * * *", Window: daybook.Day, Effects: daybook.Once})
		b.at(utc("2026-10-26T12:00:00"))
		const k = daybook.Key("whole:2026-10-26")
		b.make(k)
		first := b.claim(k)
		storetest.Apply(b.ctx, t, b.s, first.Next(daybook.Outcome{Result: daybook.ResultLost}, b.policy(k), b.now))
		if _, err := b.Resolve(b.ctx, ops, k, control.Word{Step: daybook.StepRun, As: daybook.AsNotDone}, "looked too early"); err != nil {
			t.Fatal(err)
		}
		second := b.claim(k)
		if second.WireKey() != string(k)+"#run@2" {
			t.Fatalf("begun under %s", second.WireKey())
		}
		if _, err := b.Report(b.ctx, second.ID(), daybook.Outcome{Result: daybook.ResultDone}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // once, however often it says so
			if _, err := b.Report(b.ctx, first.ID(), daybook.Outcome{Result: daybook.ResultDone}); !errors.Is(err, daybook.ErrStale) {
				t.Errorf("the late report: %v", err)
			}
		}
		alerts, err := b.s.Alerts(b.ctx, true, 0)
		if err != nil {
			t.Fatal(err)
		}
		twice := 0
		for _, a := range alerts {
			if a.Kind == daybook.AlertDoneTwice && a.Key == k {
				twice++
				if !strings.Contains(a.LastError, "done under "+string(k)+", and it was begun again under "+string(k)+"#run@2") {
					t.Error(a.LastError)
				}
			}
		}
		if twice != 1 {
			t.Errorf("%d alerts, want 1", twice)
		}
	})
}
