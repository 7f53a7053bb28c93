package daybook

import "testing"

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
