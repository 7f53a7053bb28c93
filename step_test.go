package daybook

import (
	"testing"
	"time"
)

// Work that says it can ask, and tells no answer, is tried by the ladder like other work, and then a person is asked.
func TestAQuestionThatIsNeverAnswered(t *testing.T) {
	p := policyFrom(t, "")
	r := &Run{Key: "renew:2026-10-26", Job: "renew", Effects: Once, Steps: true, State: Running, NotBefore: noon, CreatedAt: noon}
	now := noon
	for attempt := range len(p.Retry.Backoff) + 3 {
		r.State, r.Fence = Running, r.Fence+1
		a := r.ComeTo(StepAsk{Step: "charge", Says: StepPolicy{Asks: true}}, p, now)
		if want := map[bool]StepDo{true: StepBegin, false: StepAsks}[attempt == 0]; a.Do != want {
			t.Fatalf("attempt %d: %s, want %s: %v", attempt+1, a.Do, want, a.Err)
		}
		r = r.With(a.Record)
		m := r.Next(Outcome{Result: ResultUnclear, Error: "exit 1"}, p, now)
		for _, e := range m.Steps {
			r = r.With(e)
		}
		r.Failures = m.Failures
		switch {
		case m.To == Dead:
			if m.Letter.Kind != LetterUnknown || attempt == 0 {
				t.Errorf("after attempt %d: letter %s", attempt+1, m.Letter.Kind)
			}
			return
		case attempt == 0 && !m.Due.Equal(now):
			t.Errorf("it is asked at %s, want at once", m.Due)
		case attempt > 0 && !m.Due.After(now):
			t.Fatalf("attempt %d is followed by another at once", attempt+1)
		}
		now = m.Due
	}
	t.Error("it never ends")
}

func steppedRun() *Run {
	r := &Run{Key: "renew:2026-10-26", Job: "renew", State: Running, Steps: true, Effects: Once, Attempts: 1, Fence: 1, Claim: "c1"}
	return r
}

// A call for a step that is made again, because its answer was lost, is told the try that it has; another one is not, and
// one that comes after the end begins nothing.
func TestACallThatIsMadeAgain(t *testing.T) {
	now := time.Date(2026, 10, 26, 2, 0, 0, 0, time.UTC)
	r := steppedRun()
	ask := StepAsk{Step: "charge", Call: "a"}
	a := r.ComeTo(ask, Policy{}, now)
	if a.Do != StepBegin || !a.Write {
		t.Fatalf("%+v", a)
	}
	r = r.With(a.Record)
	if again := r.ComeTo(ask, Policy{}, now); again.Do != StepBegin || again.Write || again.Record.Tries != 1 {
		t.Errorf("the same call: %+v", again)
	}
	for _, call := range []string{"", "b"} {
		if other := r.ComeTo(StepAsk{Step: "charge", Call: call}, Policy{}, now); other.Do != StepStop || other.Write {
			t.Errorf("call %q: %+v", call, other)
		}
	}
	for _, said := range []Result{ResultNotDone, ResultUnknown, ResultPermanent} {
		ended := r.With(r.StepEnded(a.Record, Outcome{Result: said}, now))
		if late := ended.ComeTo(ask, Policy{Remembers: Forever}, now); late.Do != StepStop || late.Write {
			t.Errorf("after %s: %+v", said, late)
		}
		if new := ended.ComeTo(StepAsk{Step: "charge", Call: "b"}, Policy{Remembers: Forever}, now); said != ResultPermanent && new.Do != StepBegin {
			t.Errorf("a new call after %s: %+v", said, new)
		}
	}
	later := *r
	later.Fence, later.Claim = 2, "c2"
	if a := later.ComeTo(ask, Policy{}, now); a.Do == StepBegin {
		t.Errorf("in a later attempt: %+v", a)
	}
}

// An effect that an earlier attempt came to and the last one did not is told with its end.
func TestAnEffectThatVanished(t *testing.T) {
	now := time.Date(2026, 10, 26, 2, 0, 0, 0, time.UTC)
	r := steppedRun()
	a := r.ComeTo(StepAsk{Step: "charge"}, Policy{}, now)
	r = r.With(r.StepEnded(a.Record, Outcome{Result: ResultDone}, now))
	if t1 := r.Next(Outcome{Result: ResultDone, Detail: "exit 0"}, Policy{}, now); t1.To != Done || t1.Attempt.Detail != "exit 0" {
		t.Errorf("%s, %q", t1.To, t1.Attempt.Detail)
	}
	r.Fence, r.Claim, r.Attempts = 2, "c2", 2
	if t2 := r.Next(Outcome{Result: ResultDone, Detail: "exit 0"}, Policy{}, now); t2.To != Done || t2.Attempt.Detail != "exit 0; it did not come to charge (done)" {
		t.Errorf("%s, %q", t2.To, t2.Attempt.Detail)
	}
}

// Once a person asked for the end of an attempt it begins nothing more, whatever it comes to: what is done is handed back, and
// what is open may be asked for. Whatever the attempt says then, the run is cancelled, or goes to a person with what is open.
func TestACancelledAttemptBeginsNothingMore(t *testing.T) {
	now := noon
	p := Policy{Remembers: Forever}
	for _, c := range []struct {
		name   string
		before EffectState // of charge, by an earlier attempt; empty: there is none
		ask    StepAsk
		want   StepDo
		to     State // after exit 0
	}{
		{"a new effect", "", StepAsk{Step: "charge"}, StepStop, Cancelled},
		{"a plain step", "", StepAsk{Step: "extend", Plain: true}, StepStop, Cancelled},
		{"one that did not happen", EffectNotDone, StepAsk{Step: "charge"}, StepStop, Cancelled},
		{"one that is done", EffectDone, StepAsk{Step: "charge"}, StepSkip, Done},
		{"one that is open, and would be repeated", EffectUnknown, StepAsk{Step: "charge"}, StepStop, Dead},
		{"one that is open, and can be asked for", EffectUnknown, StepAsk{Step: "charge", Says: StepPolicy{Asks: true}}, StepAsks, Dead},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := steppedRun()
			if c.before != "" {
				r = r.With(&StepRecord{Key: r.Key, Step: "charge", State: c.before, Generation: 1, Order: 1, Tries: 1, Fence: 1, Seen: 1, FirstAt: now, EndedAt: now})
			}
			r.Fence, r.Attempts, r.CancelledBy = 2, 2, "ops"
			a := r.ComeTo(c.ask, p, now)
			if a.Do != c.want {
				t.Fatalf("%s, want %s: %v", a.Do, c.want, a.Err)
			}
			if a.Record != nil {
				r = r.With(a.Record)
			}
			if a.Denied {
				r.Denied = a.Err.Error()
			}
			if m := r.Next(Outcome{Result: ResultDone}, p, now); m.To != c.to {
				t.Errorf("the run is %s, want %s", m.To, c.to)
			}
		})
	}
	begun := steppedRun().ComeTo(StepAsk{Step: "charge", Call: "a"}, p, now)
	r := steppedRun().With(begun.Record)
	r.CancelledBy = "ops"
	if again := r.ComeTo(StepAsk{Step: "charge", Call: "a"}, p, now); again.Do != StepBegin || again.Write {
		t.Errorf("what had begun before, and is asked for again: %+v", again)
	}
	if e, write := r.Heard(StepEnd{Step: "extend", Plain: true, Call: "b", Outcome: Outcome{Result: ResultDone}}, now); e == nil || !write || e.State != EffectDone {
		t.Errorf("the end of a plain step that had begun before: %+v %v", e, write)
	}
	doubted := &StepRecord{Key: r.Key, Step: "charge", State: EffectUnknown, Doubt: 1, Generation: 1, Fence: 1, Seen: 1}
	if e, _ := r.StepFound(doubted, []Finding{{WireKey: "k", Answer: No}}, p, now, now); e.State != EffectNotDone {
		t.Errorf("of a ledger that forgot, after a no: %s", e.State)
	}
}

// An attempt that says done while an effect of it is open is not told as done: whether that happened is unknown, and the run says so.
func TestAnAttemptIsNotDoneWhileItsEffectIsOpen(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Policy
		to   State
	}{{"a person must look", Policy{}, Dead}, {"the far side is asked", Policy{Asks: true, Settles: time.Minute}, Retryable}, {"it is repeated under its wire key", Policy{Remembers: Forever, Retry: minuteLadder.Retry}, Retryable}} {
		t.Run(c.name, func(t *testing.T) {
			r := steppedRun()
			a := r.ComeTo(StepAsk{Step: "charge"}, c.p, noon)
			r = r.With(a.Record)
			r = r.With(r.StepEnded(a.Record, Outcome{Result: ResultUnclear, Error: "exit 1"}, noon))
			m := r.Next(Outcome{Result: ResultDone, Detail: "exit 0"}, c.p, noon)
			if m.To != c.to || m.Attempt.Result != ResultUnknown || m.Attempt.Error != "effect charge: exit 1" || m.Attempt.Detail != "exit 0" {
				t.Errorf("%s after %s (%s) %q", m.To, m.Attempt.Result, m.Attempt.Detail, m.Attempt.Error)
			}
		})
	}
}
