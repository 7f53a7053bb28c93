package executor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// asksOnce is a job whose far side can be asked, and whose no counts after a minute.
func asksOnce(j *daybook.Job) {
	j.Probe, j.Settles = daybook.Command{Argv: []string{"ask"}}, time.Minute
	j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1}
}

// believed lets other declare over what another process has at work, and believe a far side that says that it did not happen: what
// comes next is begun under the next wire key.
func (r *room) believed(k daybook.Key) {
	r.t.Helper()
	r.passes(lease + time.Second)
	r.tick(&executor.Rescue{Executor: r.Executor})
	r.is(k, daybook.Retryable, daybook.ReasonSettling)
	r.passes(2 * time.Minute)
	r.mu.Lock()
	r.answers = []daybook.Answer{daybook.No}
	r.mu.Unlock()
	r.settles()
	r.is(k, daybook.Retryable, daybook.ReasonRetry)
	r.passes(2 * time.Minute)
}

// toldTwice looks for the one alert that says that an effect happened under two wire keys.
func toldTwice(t *testing.T, s *store.Store, k daybook.Key, wireKeys ...string) {
	t.Helper()
	alerts, err := s.Alerts(t.Context(), true, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range alerts {
		if a.Kind != daybook.AlertDoneTwice || a.Key != k {
			continue
		}
		n++
		for _, w := range wireKeys {
			if !strings.Contains(a.LastError+" ", w+" ") && !strings.Contains(a.LastError, w+",") {
				t.Errorf("it does not name %s: %s", w, a.LastError)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d alerts that it happened twice, want 1", n)
	}
}

// The far side lied, or was asked too early, and the work was begun again. When the first attempt comes back and says that it is done, it
// happened twice, and people are told; the report changes nothing else.
func TestALateReportOfWhatHappenedTwiceIsTold(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		gone, other := newRoom(t, s, asksOnce, nil, ""), newRoom(t, s, asksOnce, nil, "")
		gone.stays = true
		k := gone.trigger("2026-03-01")
		gone.starts(1)
		other.believed(k)
		other.settles()
		run := other.is(k, daybook.Done, "")
		if run.WireKey() != string(k)+"#run@2" {
			t.Fatalf("done under %s", run.WireKey())
		}
		close(gone.leave)
		gone.settles()
		other.is(k, daybook.Done, "")
		toldTwice(t, s, k, string(k), string(k)+"#run@2")
		tries, err := s.Attempts(ctx, k)
		if err != nil || tries[0].LateResult != daybook.ResultDone || tries[0].LateTaken {
			t.Errorf("%+v %v", tries, err)
		}
	})
}

// The same for a step: its function returns when another attempt has begun it again, under the next wire key.
func TestALateEndOfAStepThatHappenedTwiceIsTold(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		steps := func(j *daybook.Job) { asksOnce(j); j.Steps = true }
		gone, other := newRoom(t, s, steps, nil, ""), newRoom(t, s, steps, nil, "")
		gone.stays, other.stays = true, true
		k := gone.trigger("2026-03-01")
		gone.starts(1)
		run := *gone.orders[0].Run
		run.Keep(gone.orders[0].Book)
		_, err := daybook.Effect(ctx, &run, "charge", daybook.EffectOf[string]{Do: func(context.Context, string) (string, error) {
			other.believed(k)
			other.starts(1)
			again := other.run(k)
			begun := again.ComeTo(daybook.StepAsk{Step: "charge"}, daybook.Policy{}, other.clock())
			if begun.Do != daybook.StepBegin || begun.Record.WireKey() != string(k)+"#charge@2" {
				t.Errorf("%+v", begun)
			}
			return "ch_1", s.MarkStep(ctx, again, begun.Record, daybook.Learned{})
		}})
		if err == nil {
			t.Error("the attempt that was declared over goes on")
		}
		if e := other.run(k).StepRecord("charge"); e.State != daybook.EffectBegun || e.Generation != 2 {
			t.Errorf("the second try: %+v", e)
		}
		toldTwice(t, s, k, string(k)+"#charge", string(k)+"#charge@2")
		close(gone.leave)
		gone.settles()
		close(other.leave)
		other.settles()
	})
}
