package daybook

import (
	"strings"
	"testing"
	"time"
)

// What was done and told in this very attempt is not handed out again to work that comes for another: only to the same call, whose
// answer was lost.
func TestComingAgainToWhatIsDone(t *testing.T) {
	now := time.Date(2026, 10, 26, 2, 0, 0, 0, time.UTC)
	done := Outcome{Result: ResultDone, Data: []byte(`"ann"`)}
	for _, plain := range []bool{false, true} {
		here := func(r *Run, call string) *Run {
			a := r.ComeTo(StepAsk{Step: "charge", Plain: plain, Call: call}, Policy{}, now)
			if a.Do != StepBegin {
				t.Fatalf("%+v", a)
			}
			r = r.With(a.Record)
			e, write := r.Heard(StepEnd{Step: "charge", Plain: plain, Call: call, Try: 1, Outcome: done}, now)
			if !write {
				t.Fatal("its end is not heard")
			}
			return r.With(e)
		}
		later := func(r *Run) *Run {
			c := *r
			c.Fence, c.Claim = c.Fence+1, "c2"
			return &c
		}
		told := func(r *Run, call string) *Run {
			a := r.ComeTo(StepAsk{Step: "charge", Plain: plain, Call: call}, Policy{}, now)
			if a.Do != StepSkip || !a.Write || string(a.Record.Data) != `"ann"` {
				t.Fatalf("told %+v", a)
			}
			return r.With(a.Record)
		}
		for _, c := range []struct {
			name string
			r    *Run
			call string
			do   StepDo
		}{
			{"done here, another call", here(steppedRun(), "a"), "b", StepStop},
			{"done here, no call", here(steppedRun(), ""), "", StepStop},
			{"done here, the same call", here(steppedRun(), "a"), "a", StepSkip},
			{"done before, not told", later(here(steppedRun(), "a")), "b", StepSkip},
			{"done before, told, another call", told(later(here(steppedRun(), "a")), "b"), "c", StepStop},
			{"done before, told, no call", told(later(here(steppedRun(), "")), ""), "", StepStop},
			{"done before, told, the same call", told(later(here(steppedRun(), "a")), "b"), "b", StepSkip},
			{"told before, and in the attempt after that", later(told(later(here(steppedRun(), "a")), "b")), "d", StepSkip},
		} {
			a := c.r.ComeTo(StepAsk{Step: "charge", Plain: plain, Call: c.call}, Policy{}, now)
			if a.Do != c.do || a.Denied != (c.do == StepStop) {
				t.Errorf("%s, plain %v: %+v", c.name, plain, a)
			}
			if word := map[bool]string{true: "step charge ", false: "effect charge "}[plain]; c.do == StepStop && (!strings.HasPrefix(a.Err.Error(), word) ||
				!strings.Contains(a.Err.Error(), "charge-2") || !strings.Contains(a.Err.Error(), "subjects") || OutcomeOf(a.Err).Result != ResultPermanent || CodeOf(a.Err) != CodeConflict) {
				t.Errorf("%s: told %v", c.name, a.Err)
			}
		}
	}
}

// What the far side said for one call is told to that call, and to no other of the same attempt.
func TestAFindingIsToldOnce(t *testing.T) {
	now := time.Date(2026, 10, 26, 2, 0, 0, 0, time.UTC)
	r := steppedRun()
	says := StepPolicy{Asks: true}
	r = r.With(r.ComeTo(StepAsk{Step: "charge", Call: "a", Says: says}, Policy{}, now).Record)
	lost := r.Next(Outcome{Result: ResultLost}, Policy{}, now)
	for _, e := range lost.Steps {
		r = r.With(e)
	}
	r.Fence, r.Claim = 2, "c2"
	ask := StepAsk{Step: "charge", Call: "b", Says: says}
	for range 2 { // the first answer was lost
		a := r.ComeTo(ask, Policy{}, now)
		if a.Do != StepAsks {
			t.Fatalf("%+v", a)
		}
		r = r.With(a.Record)
	}
	e := r.StepRecord("charge")
	for _, answer := range []Answer{Yes, No} {
		next, _ := r.StepFound(e, []Finding{{Answer: answer, WireKey: e.WireKey()}}, Policy{}, now, now)
		settled := r.With(next)
		a := settled.ComeTo(ask, Policy{}, now)
		if answer == Yes && a.Do != StepSkip || answer == No && a.Do != StepStop || a.Write || a.Denied {
			t.Errorf("%s, the same call: %+v", answer, a)
		}
		a = settled.ComeTo(StepAsk{Step: "charge", Call: "c", Says: says}, Policy{}, now)
		if answer == Yes && !a.Denied || answer == No && a.Do != StepBegin {
			t.Errorf("%s, another call: %+v", answer, a)
		}
	}
}

// An attempt that says done is believed as far as its steps bear it out.
func TestAnAttemptThatSaysDone(t *testing.T) {
	now := time.Date(2026, 10, 26, 2, 0, 0, 0, time.UTC)
	p := Policy{Retry: Retry{Backoff: []time.Duration{time.Minute}}}
	for _, c := range []struct {
		name     string
		said     Result // of charge; empty: it was not come to in this attempt
		optional bool
		denied   string
		to       State
		error    string
	}{
		{"done", ResultDone, false, "", Done, ""},
		{"refused", ResultPermanent, false, "", Dead, "effect charge: exit 65: card declined"},
		{"refused, and it does without", ResultPermanent, true, "", Done, ""},
		{"not done", ResultNotDone, false, "", Retryable, "effect charge: exit 65: card declined"},
		{"not done, and it does without", ResultNotDone, true, "", Done, ""},
		{"not let begin", ResultDone, false, "effect charge was done in this very attempt", Dead, "effect charge was done in this very attempt"},
		{"not let begin, and it does without", ResultDone, true, "effect charge was done in this very attempt", Dead, "effect charge was done in this very attempt"},
		{"unknown, and it does without", ResultUnknown, true, "", Dead, "effect charge: exit 65: card declined"},
		{"not come to", "", false, "", Done, ""},
	} {
		r := steppedRun()
		said := Outcome{Result: c.said, Error: "exit 65: card declined"}
		if c.said == "" {
			said.Result = ResultNotDone
		}
		a := r.ComeTo(StepAsk{Step: "charge", Says: StepPolicy{Optional: c.optional}}, p, now)
		r = r.With(r.StepEnded(a.Record, said, now))
		if c.said == "" {
			r.Fence, r.Claim = 2, "c2"
		}
		r.Denied = c.denied
		m := r.Next(Outcome{Result: ResultDone, Detail: "exit 0", Data: []byte(`{}`)}, p, now)
		if m.To != c.to || c.error != "" && m.Error != c.error || c.to == Dead && m.Letter.Error != c.error {
			t.Errorf("%s: %s, %q", c.name, m.To, m.Error)
		}
		if kind := LetterFailed; c.to == Dead && c.said != ResultUnknown && (m.Letter.Kind != kind || m.Attempt.Result != ResultPermanent || m.Attempt.Error != c.error || len(m.Alerts) != 1) {
			t.Errorf("%s: letter %s, attempt %s, %d alerts", c.name, m.Letter.Kind, m.Attempt.Result, len(m.Alerts))
		}
		if c.to == Done { // the same report, late
			continue
		}
		late := *r
		late.State, late.Letter = Retryable, nil
		if _, ok := late.Late(Outcome{Result: ResultDone}, p, now); ok {
			t.Errorf("%s: done by a late report", c.name)
		}
	}
}

// A result that cannot be kept is no empty one: what needs it fails, and says why.
func TestAResultThatIsNotKept(t *testing.T) {
	for _, v := range []any{strings.Repeat("x", MaxResultBytes), func() {}} {
		e := &StepRecord{Step: "charge", State: EffectDone, Data: encodeResult(v)}
		if _, err := resultOf[string](e); e.Lacks() == "" || CodeOf(err) != CodePermanent && CodeOf(err) != CodeConflict || err == nil || !strings.Contains(err.Error(), e.Lacks()) {
			t.Errorf("%T: %s, %v", v, e.Lacks(), err)
		}
	}
	for _, data := range []string{"", `"ch_1"`, `{"id":"ch_1"}`, "null", "17"} {
		if e := (&StepRecord{Data: []byte(data)}); e.Lacks() != "" {
			t.Errorf("%s: %s", data, e.Lacks())
		}
	}
}
