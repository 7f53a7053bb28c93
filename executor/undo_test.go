package executor_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// An undo is declared over when its effect is taken back and its own end not yet written. Whatever says so afterwards, its late
// report or what lies in its directory: it ends once, and what it took back ends with it.
func TestAnUndoThatIsDeclaredOver(t *testing.T) {
	for _, how := range []string{"late report", "result file"} {
		t.Run(how, func(t *testing.T) {
			storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
				dir := t.TempDir()
				gone, other := newRoom(t, s, nil, nil, dir), newRoom(t, s, nil, nil, dir)
				k := gone.trigger("2026-03-01")
				gone.settles()
				m, err := gone.run(k).Undo("ops", "wrong price", gone.clock())
				if err != nil {
					t.Fatal(err)
				}
				storetest.Apply(t.Context(), t, s, m)
				gone.starts(2)
				select {
				case <-gone.Endings(): // it is over, and not written
				case <-t.Context().Done():
				}
				if how == "result file" {
					place := gone.orders[1].Dir
					if err := os.MkdirAll(place, 0o700); err != nil {
						t.Fatal(err)
					}
					other.survivor.alive[place], other.survivor.report[place] = false, daybook.Outcome{Result: daybook.ResultDone}
				}
				other.passes(lease + time.Second)
				other.tick(&executor.Rescue{Executor: other.Executor})
				other.is(k.Undo(), daybook.Retryable, daybook.ReasonLost)
				if how == "result file" {
					other.settles()
				} else {
					gone.settles()
				}
				other.is(k.Undo(), daybook.Done, "")
				other.is(k, daybook.Done, daybook.ReasonUndone)
				if n := len(gone.orders) + len(other.orders); n != 2 {
					t.Errorf("%d orders, want the work and one undo", n)
				}
			})
		})
	}
}

// What the far side has under two wire keys was done twice. An undo takes back the one that counts and says so; the other is left to a
// person, by name, and nobody is told that all is back.
func TestAnUndoOfWhatWasDoneTwice(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, func(j *daybook.Job) {
			j.Probe, j.Settles = daybook.Command{Argv: []string{"ask"}}, time.Minute
			j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1}
		}, nil, "")
		r.outcome = daybook.Outcome{Result: daybook.ResultUnclear, Error: "502"}
		r.answers = []daybook.Answer{daybook.No, daybook.No, daybook.Yes, daybook.Yes} // the first two lied
		k := r.trigger("2026-03-01")
		for range 4 {
			r.settles()
			r.passes(time.Minute)
		}
		run := r.is(k, daybook.Done, "")
		if run.WireKey() != string(k)+"#run@2" || run.Effect.Twice != string(k) {
			t.Fatalf("wire key %s, twice %q", run.WireKey(), run.Effect.Twice)
		}
		m, err := run.Undo("ops", "charged twice", r.clock())
		if err != nil {
			t.Fatal(err)
		}
		storetest.Apply(t.Context(), t, s, m)
		r.outcome = daybook.Outcome{Result: daybook.ResultDone}
		before := len(r.orders)
		r.settles()
		undo := r.is(k.Undo(), daybook.Dead, "")
		if l := undo.Letter; l == nil || !l.ByHand() || !strings.Contains(l.Error, " "+string(k)+" (done twice)") {
			t.Errorf("letter %+v", l)
		}
		r.is(k, daybook.Done, daybook.ReasonUndoing)
		if sent := r.orders[before:]; len(sent) != 1 || sent[0].Step != daybook.StepRun {
			t.Errorf("%d orders, want one undo", len(sent))
		}
	})
}

// A freeze that begins while an undo is at work lets the undo of the effect end that was sent, and sends no other: it goes on behind the
// freeze, and that is no failure.
func TestAFreezeBeginsUnderAnUndo(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, func(j *daybook.Job) { j.Steps = true }, nil, "")
		r.stays = true
		k := r.trigger("2026-03-01")
		r.starts(1)
		for _, name := range []string{"charge", "mail"} {
			run := r.run(k)
			begun := run.ComeTo(daybook.StepAsk{Step: name}, daybook.Policy{}, r.clock())
			ended := run.StepEnded(begun.Record, daybook.Outcome{Result: daybook.ResultDone}, r.clock())
			if err := s.MarkStep(ctx, run, ended, daybook.Learned{}); err != nil {
				t.Fatal(err)
			}
		}
		close(r.leave)
		r.settles()
		m, err := r.is(k, daybook.Done, "").Undo("ops", "wrong price", r.clock())
		if err != nil {
			t.Fatal(err)
		}
		storetest.Apply(ctx, t, s, m)
		r.leave = make(chan struct{})
		r.starts(2)
		until := r.clock().Add(time.Hour)
		act := daybook.Activity{At: r.clock(), Actor: "ops", Action: "freeze start"}
		if started, err := s.StartFreeze(ctx, daybook.Freeze{Name: "deploy", From: r.clock(), Until: until, Actor: "ops", Note: "deploy"}, act); err != nil || !started {
			t.Fatal(started, err)
		}
		close(r.leave)
		r.settles()
		undo := r.is(k.Undo(), daybook.Retryable, daybook.ReasonInterrupted)
		if len(r.orders) != 2 || undo.Failures != 0 || undo.Due.Before(until) || undo.StepRecord("mail").State != daybook.EffectDone || undo.StepRecord("charge") != nil {
			t.Fatalf("%d orders, failures %d, due %s, %+v", len(r.orders), undo.Failures, undo.Due, undo.Records)
		}
		r.passes(time.Hour + time.Minute)
		r.settles()
		r.is(k.Undo(), daybook.Done, "")
		r.is(k, daybook.Done, daybook.ReasonUndone)
		if len(r.orders) != 3 {
			t.Errorf("%d orders, want the work and two undos", len(r.orders))
		}
	})
}
