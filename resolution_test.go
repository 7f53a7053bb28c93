package daybook

import (
	"strings"
	"testing"
)

// A person who settles an effect as done may say what the far side handed back: it is the result of the effect, and of a whole attempt
// that of the run. Nothing else takes it.
func TestAResultThatAPersonBrings(t *testing.T) {
	result := []byte(`{"id":"ch_1"}`)
	p := Policy{}
	steps := steppedRun()
	steps = steps.With(steps.ComeTo(StepAsk{Step: "charge", Call: "a"}, p, noon).Record)
	steps = steps.With(&StepRecord{Key: steps.Key, Step: "mail", State: EffectUnknown, Generation: 1, Order: 2, Tries: 1, Fence: 1, Seen: 1, FirstAt: noon, EndedAt: noon})
	m := steps.Next(Outcome{Result: ResultUnclear, Error: "exit 1"}, p, noon)
	for _, e := range m.Steps {
		steps = steps.With(e)
	}
	steps.State, steps.Letter = m.To, m.Letter
	for as, want := range map[Resolution]string{AsDone: string(result), AsNotDone: ""} {
		m, err := steps.ResolveStep("charge", as, p, "ops", "looked", noon)
		if err != nil {
			t.Fatal(err)
		}
		was := m.Steps[0]
		got := m.WithResult("charge", result)
		if e := got.Steps[0]; e.Step != "charge" || string(e.Data) != want || got.Data != nil {
			t.Errorf("%s: %s, of the run %s", as, e.Data, got.Data)
		}
		if was.Data != nil {
			t.Errorf("%s: what it was made of was changed", as)
		}
		if other := m.WithResult("mail", result); string(other.Steps[0].Data) != "" {
			t.Errorf("%s: charge has the result of mail", as)
		}
		if none := m.WithResult("charge", nil); none.Steps[0].Data != nil {
			t.Errorf("%s: %s", as, none.Steps[0].Data)
		}
	}

	r := &Run{Key: "renew:2026-10-26", Job: "renew", Effects: Once, State: Dead, Attempts: 1, Fence: 1}
	r.Letter = &Letter{Key: r.Key, Kind: LetterUnknown, State: LetterOpen}
	r.Effect = &StepRecord{Key: r.Key, Step: StepRun, State: EffectUnknown, Generation: 1, Tries: 1, Fence: 1, FirstAt: noon, EndedAt: noon}
	m, err := r.ResolveStep(StepRun, AsDone, p, "ops", "looked", noon)
	if err != nil {
		t.Fatal(err)
	}
	if m = m.WithResult(StepRun, result); m.To != Done || string(m.Effect.Data) != string(result) || string(m.Data) != string(result) {
		t.Errorf("%s, effect %s, run %s", m.To, m.Effect.Data, m.Data)
	}
}

func TestWhatIsNoResult(t *testing.T) {
	for text, says := range map[string]string{
		`{"id":"ch_1"}`: "", `"ch_1"`: "", ` [1] `: "", `0`: "",
		``: "ends too soon", `ch_1`: "not JSON", `{"id":1} {}`: "not JSON", `{"id":1,"id":2}`: "twice", `1e999999`: "too large", ` null `: "null is no result",
		`{"daybook_not_kept":"lost"}`: "there is no result", `"` + strings.Repeat("x", MaxResultBytes) + `"`: "at most 65536 are kept",
	} {
		err := CheckResult([]byte(text))
		if says == "" && err != nil || says != "" && (CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), says) || HintOf(err) == "") {
			t.Errorf("%.40s: %v (%s), want %q", text, err, HintOf(err), says)
		}
	}
}
