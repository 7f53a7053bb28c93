package daybook

import (
	"testing"
	"time"
)

// Failures from the field, as far as they are a matter of rules alone.

// lostAfterBegin is a run of work that may be done once only, whose worker died between the charge and the report.
func lostAfterBegin(t *testing.T, policy string) (*world, Transition) {
	t.Helper()
	w := &world{p: policyFrom(t, policy), pick: func(int) int { return 1 }}
	live(w, 0)
	w.claim()
	r := w.workers[0].run
	e, ok := r.Begin(w.policy(), w.now)
	if !ok {
		t.Fatal("may not begin")
	}
	w.row.BegunAt, w.row.Effect = w.now, e
	w.far.land(&request{wireKey: w.row.WireKey(), lands: w.now, charges: true})
	w.now = w.now.Add(time.Minute)
	m := w.read().Next(Outcome{Result: ResultLost}, w.policy(), w.now)
	if !w.apply(m) {
		t.Fatal("not rescued")
	}
	return w, m
}

func TestH38BillingJobAfterAMoveToACluster(t *testing.T) {
	t.Run("with a probe", func(t *testing.T) {
		w, _ := lostAfterBegin(t, "probe")
		if w.row.State != Retryable || w.row.Reason != ReasonSettling || !w.row.Due.Equal(w.now) {
			t.Fatalf("%s (%s)", w.row.State, w.row.Reason)
		}
		w.claim() // the question, which is answered with yes
		if w.row.State != Done || w.row.Attempts != 1 || w.far.charges != 1 {
			t.Errorf("%s after %d attempts, %d charges", w.row.State, w.row.Attempts, w.far.charges)
		}
	})
	t.Run("remembered", func(t *testing.T) {
		w, _ := lostAfterBegin(t, "remembers")
		w.now = w.row.Due
		w.claim()
		again := w.workers[1].run
		e, ok := again.Begin(w.policy(), w.now)
		if !ok || !e.Open || again.WireKey() != "renew:2026-10-26" {
			t.Fatalf("%v %+v", ok, e)
		}
		if answer := w.far.land(&request{wireKey: again.WireKey(), lands: w.now, charges: true}); answer != ResultDone || w.far.charges != 1 {
			t.Errorf("%s, %d charges", answer, w.far.charges)
		}
	})
	t.Run("with neither", func(t *testing.T) {
		w, m := lostAfterBegin(t, "")
		if got := moveText(m); w.row.State != Dead || w.row.Letter.Kind != LetterUnknown || len(m.Alerts) != 1 {
			t.Fatal(got)
		}
		for _, source := range sources {
			s := Standing{Exists: true, State: w.row.State, Effects: Once, LetterKind: w.row.Letter.Kind, LetterState: w.row.Letter.State}
			if r := Decide(Ask{Key: w.row.Key, Source: source, Again: true}, s); r.Outcome != Refused || r.Because != BecauseUnknown {
				t.Errorf("%s: %+v", source, r)
			}
		}
	})
}

// The pass read the row while it was running; the worker has reported since.
func TestH39RescueOverwritesSuccess(t *testing.T) {
	w := &world{p: policyFrom(t, "probe"), pick: func(int) int { return 1 }}
	live(w, 0)
	w.row.Effects = Repeatable
	w.claim()
	picture := w.read()
	w.far.land(&request{wireKey: w.row.WireKey(), lands: w.now, charges: true})
	if !w.apply(w.read().Next(Outcome{Result: ResultDone}, w.policy(), w.now)) {
		t.Fatal("not done")
	}
	if w.apply(picture.Next(Outcome{Result: ResultLost}, w.policy(), w.now.Add(time.Hour))) || w.row.State != Done {
		t.Errorf("%s", w.row.State)
	}
	// The same with a worker that lives: its lease was renewed since.
	live(w, 0)
	w.workers = nil
	w.claim()
	picture = w.read()
	w.row.Lease = w.row.Lease.Add(time.Minute)
	if w.apply(picture.Next(Outcome{Result: ResultLost}, w.policy(), w.now.Add(time.Hour))) || w.row.State != Running {
		t.Errorf("%s", w.row.State)
	}
}

// The report could not be written for longer than the lease: not a success, and the late report still settles it.
func TestH40FinishWriteFailsProcessLives(t *testing.T) {
	for _, policy := range []string{"probe", "remembers", ""} {
		w, _ := lostAfterBegin(t, policy)
		if w.row.Effect.State != EffectUnknown {
			t.Fatalf("%s", w.row.Effect.State)
		}
		m, ok := w.read().Late(Outcome{Result: ResultDone}, w.policy(), w.now)
		if !ok || !w.apply(m) || w.row.State != Done || w.row.Effect.SettledBy != "late report" {
			t.Errorf("policy %q: %v, %s", policy, ok, w.row.State)
		}
		if _, ok := w.read().Late(Outcome{Result: ResultDone}, w.policy(), w.now); ok {
			t.Errorf("policy %q: taken twice", policy)
		}
	}
}

// Crash and failure are counted apart; without retries a crash still gets its second try.
func TestH42CrashUsesUpTheRetries(t *testing.T) {
	for _, c := range []struct{ run, policy, want string }{
		{"repeatable", "no-ladder", "retryable (lost) +0s l1"},
		{"repeatable l1", "no-ladder", "retryable (lost) +0s l2"},
		{"repeatable l2", "no-ladder", "dead l3; letter failed; alert dead_letter"},
		{"once begun", "no-ladder probe", "retryable (settling) +0s; effect unknown"},
		{"once begun", "no-ladder", "dead f1; effect unknown; letter unknown; alert unknown_outcome"},
		{"once", "no-ladder", "retryable (lost) +0s l1"},
	} {
		if got := moveText(runFrom(t, c.run).Next(Outcome{Result: ResultLost}, policyFrom(t, c.policy), noon)); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.run, c.policy, got, c.want)
		}
	}
}
