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
