package daybook

import (
	"testing"
	"time"
)

// stepper plays the work of one run with steps, and the ledger that keeps it.
type stepper struct {
	*testing.T
	r   *Run
	p   Policy
	now time.Time
}

func newStepper(t *testing.T, p Policy) *stepper { return &stepper{t, steppedRun(), p, noon} }

// come lets the work come to a step, and keeps what is to be marked.
func (s *stepper) come(ask StepAsk) StepAnswer {
	a := s.r.ComeTo(ask, s.p, s.now)
	if a.Write {
		s.put(a.Record)
	}
	if a.Denied {
		s.r.Denied = a.Err.Error()
	}
	return a
}

func (s *stepper) put(e *StepRecord) {
	s.r = s.r.With(e)
	s.r.Marks++
}

// try lets the work come to an effect that begins, and end it.
func (s *stepper) try(ask StepAsk, result Result) {
	s.Helper()
	a := s.come(ask)
	if a.Do != StepBegin {
		s.Fatalf("%s: %s %v", ask.Step, a.Do, a.Err)
	}
	s.put(s.r.StepEnded(a.Record, Outcome{Result: result, Error: "said so"}, s.now))
}

// move plays a decision onto the run.
func (s *stepper) move(m Transition) {
	c := *s.r
	c.State, c.Reason, c.Due, c.Failures, c.Losses = m.To, m.Reason, m.Due, m.Failures, m.Losses
	for _, e := range m.Steps {
		c = *c.With(e)
	}
	if m.Close != nil {
		c.Letter = m.Close
	}
	if m.Letter != nil {
		c.Letter = m.Letter
	}
	s.r = &c
}

func (s *stepper) end(result Result) {
	s.move(s.r.Next(Outcome{Result: result, Error: "it ended so"}, s.p, s.now))
}

// claim begins the next attempt.
func (s *stepper) claim() {
	s.r.State, s.r.Reason, s.r.Denied = Running, "", ""
	s.r.Fence, s.r.Attempts, s.r.Claim = s.r.Fence+1, s.r.Attempts+1, s.r.Claim+"x"
}

func (s *stepper) found(step string, answer Answer) {
	e := s.r.StepRecord(step)
	s.move(s.r.SettleSteps(map[string][]Finding{step: {{Answer: answer, WireKey: e.WireKey()}}}, s.p, s.now, s.now))
}

func (s *stepper) stands(step string, want EffectState, generation int) {
	s.Helper()
	if e := s.r.StepRecord(step); e == nil || e.State != want || e.Generation != generation {
		s.Errorf("%s: %+v, want %s@%d", step, e, want, generation)
	}
}

var (
	chargeOrElse = StepAsk{Step: "charge", Says: StepPolicy{Optional: true}}
	minuteLadder = Policy{Retry: Retry{Backoff: []time.Duration{time.Minute}}}
)

// Nothing begins instead of an effect of which it is not known whether it happened.
func TestTheOtherWayWaitsForWhatIsUnknown(t *testing.T) {
	p := minuteLadder
	p.Asks = true
	for _, said := range []Result{ResultUnclear, ResultUnknown, ""} { // the last: its end was not told
		s := newStepper(t, p)
		if said == "" {
			s.come(chargeOrElse)
		} else {
			s.try(chargeOrElse, said)
		}
		a := s.come(StepAsk{Step: "invoice"})
		if a.Do != StepStop || a.Write || !a.Denied || OutcomeOf(a.Err).Result != ResultUnknown {
			t.Errorf("charge %q, invoice: %+v", said, a)
		}
		if a := s.come(StepAsk{Step: "list", Plain: true}); a.Do != StepBegin {
			t.Errorf("charge %q, a plain step: %+v", said, a)
		}
		s.end(ResultDone)
		if s.r.State != Retryable || s.r.Reason != ReasonSettling {
			t.Fatalf("charge %q: the run is %s %s", said, s.r.State, s.r.Reason)
		}
		s.found("charge", Yes)
		s.claim()
		if a := s.come(chargeOrElse); a.Do != StepSkip {
			t.Errorf("charge %q, and it happened: %+v", said, a)
		}
		s.end(ResultDone)
		if s.r.State != Done || s.r.StepRecord("invoice") != nil {
			t.Errorf("charge %q: the run is %s, %+v", said, s.r.State, s.r.StepRecord("invoice"))
		}
	}
}

// Where the probe says no, and what the work does instead is known already, the other way goes on.
func TestTheOtherWayOfWhatDidNotHappen(t *testing.T) {
	s := newStepper(t, Policy{Asks: true, Retry: minuteLadder.Retry})
	s.try(chargeOrElse, ResultUnknown)
	s.end(ResultUnclear)
	s.found("charge", No)
	s.stands("charge", EffectNotDone, 2)
	s.claim()
	s.try(chargeOrElse, ResultPermanent)
	s.try(StepAsk{Step: "invoice"}, ResultDone)
	s.end(ResultDone)
	if s.r.State != Done {
		t.Errorf("the run is %s", s.r.State)
	}
}

// Once the work has gone another way, and that happened or may have, an effect that it did without stays as it is: in the next
// attempt of the ladder, after a replay, after a no of the far side.
func TestWhatTheWorkWentOnWithoutDoesNotBeginAgain(t *testing.T) {
	for _, charge := range []struct {
		said  Result
		state EffectState
	}{{ResultNotDone, EffectNotDone}, {ResultPermanent, EffectRefused}} {
		for _, invoice := range []Result{ResultDone, ResultUnknown, ""} {
			s := newStepper(t, minuteLadder)
			s.try(chargeOrElse, charge.said)
			if invoice == "" { // its end was not told
				s.come(StepAsk{Step: "invoice", Says: StepPolicy{Asks: true}})
			} else {
				s.try(StepAsk{Step: "invoice", Says: StepPolicy{Asks: true}}, invoice)
			}
			again := func(how string) {
				t.Helper()
				s.claim()
				a := s.come(chargeOrElse)
				if a.Do != StepStop || a.Denied || OutcomeOf(a.Err).Result != charge.said {
					t.Errorf("charge %s, invoice %q, %s: %+v", charge.said, invoice, how, a)
				}
				s.stands("charge", charge.state, 1)
			}
			s.end(ResultLost)
			again("lost")
			s.end(ResultNotDone)
			again("on the ladder")
			if invoice != ResultDone {
				continue
			}
			s.come(StepAsk{Step: "invoice"})
			s.end(ResultPermanent)
			if s.r.State != Dead || s.r.Letter.Kind != LetterFailed {
				t.Fatalf("%s, %+v", s.r.State, s.r.Letter)
			}
			m, err := s.r.Replay("ops", "mail is back", s.now)
			if err != nil {
				t.Fatal(err)
			}
			s.move(m)
			again("replayed")
			s.come(StepAsk{Step: "invoice"})
			s.end(ResultDone)
			if s.r.State != Done {
				t.Errorf("charge %s: the run is %s", charge.said, s.r.State)
			}
		}
	}
}

// What it does without is tried again as long as nothing was done instead, and what is no such effect always is.
func TestWhatIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		charge  StepAsk
		invoice Result
	}{
		{"the other way did not happen either", chargeOrElse, ResultNotDone},
		{"it is not optional", StepAsk{Step: "charge"}, ResultDone},
	} {
		s := newStepper(t, minuteLadder)
		s.try(c.charge, ResultNotDone)
		s.try(StepAsk{Step: "invoice"}, c.invoice)
		s.end(ResultNotDone)
		s.claim()
		if a := s.come(c.charge); a.Do != StepBegin {
			t.Errorf("%s: %+v", c.name, a)
		}
	}
}

// An effect that was found open after the work had gone another way is settled, and neither repeated nor tried again: not while the far
// side remembers it, not after its no, and not by a late report.
func TestWhatIsOpenBesideItsOtherWay(t *testing.T) {
	open := func(p Policy, invoice EffectState) *stepper {
		s := newStepper(t, p)
		for i, e := range []*StepRecord{{Step: "charge", State: EffectUnknown, Says: chargeOrElse.Says}, {Step: "invoice", State: invoice}} {
			e.Key, e.Generation, e.Order, e.Tries, e.Fence, e.Seen, e.FirstAt, e.EndedAt = s.r.Key, 1, i+1, 1, 1, 1, noon, noon
			s.put(e)
		}
		return s
	}
	s := open(Policy{Remembers: Forever, Retry: minuteLadder.Retry}, EffectDone)
	s.claim()
	if a := s.come(chargeOrElse); a.Do != StepStop {
		t.Errorf("while it is remembered: %+v", a)
	}
	for _, late := range []bool{false, true} {
		s = open(Policy{Asks: true, Retry: minuteLadder.Retry}, EffectDone)
		s.end(ResultLost)
		if late {
			m, ok := s.r.LateStep("charge", Outcome{Result: ResultNotDone}, s.p, s.now)
			if !ok {
				t.Fatal("not taken")
			}
			s.move(m)
		} else {
			s.found("charge", No)
		}
		if s.r.State != Retryable || s.r.Failures != 0 || !s.r.Due.Equal(s.now) {
			t.Errorf("after a no, late %v: %s %d %s", late, s.r.State, s.r.Failures, s.r.Due)
		}
		s.claim()
		if a := s.come(chargeOrElse); a.Do != StepStop || OutcomeOf(a.Err).Result != ResultNotDone {
			t.Errorf("after a no, late %v: %+v", late, a)
		}
	}
	s = open(Policy{Asks: true, Retry: minuteLadder.Retry}, EffectNotDone) // a refusal that comes late is no failure of the run
	s.end(ResultLost)
	if m, ok := s.r.LateStep("charge", Outcome{Result: ResultPermanent, Error: "402"}, s.p, s.now); !ok || m.To != Retryable || m.Failures != 0 {
		t.Errorf("refused, late: %s", moveText(m))
	}
}
