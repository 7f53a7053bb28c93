package daybook

import (
	"testing"
	"time"
)

// A run of which an effect has happened is never cancelled: a person who ends it gets a letter, by which it can be replayed, undone
// or dismissed.
func TestWhatHappenedIsNotCancelled(t *testing.T) {
	p := Policy{Asks: true, Settles: time.Minute, Retry: minuteLadder.Retry}
	charge := StepAsk{Step: "charge"}
	for _, c := range []struct {
		name string
		end  func(s *stepper)
	}{
		{"on the ladder", func(s *stepper) {
			s.try(charge, ResultDone)
			s.end(ResultNotDone)
			s.cancel()
		}},
		{"reopened, of an older ledger", func(s *stepper) {
			s.try(charge, ResultDone)
			s.r.State = Scheduled
			s.cancel()
		}},
		{"under way, lost", func(s *stepper) {
			s.try(charge, ResultDone)
			s.r.CancelledBy = "ops"
			s.end(ResultLost)
		}},
		{"under way, and its work ends with an error", func(s *stepper) {
			s.try(charge, ResultDone)
			s.r.CancelledBy = "ops"
			s.end(ResultUnclear)
		}},
		{"under way, cut off", func(s *stepper) {
			s.try(charge, ResultDone)
			s.r.CancelledBy = "ops"
			s.end(ResultInterrupted)
		}},
		{"the far side has it", func(s *stepper) {
			s.come(charge)
			s.r.CancelledBy = "ops"
			s.end(ResultLost)
			s.found("charge", Yes)
		}},
		{"it is reported late", func(s *stepper) {
			s.come(charge)
			s.r.CancelledBy = "ops"
			s.end(ResultLost)
			m, ok := s.r.LateStep("charge", Outcome{Result: ResultDone}, s.p, s.now)
			if !ok {
				s.Fatal("not taken")
			}
			s.move(m)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStepper(t, p)
			c.end(s)
			l := s.r.Letter
			if s.r.State != Dead || s.r.Reason != ReasonCancelled || l == nil || l.Kind != LetterFailed || l.State != LetterOpen || l.Error != "cancelled by ops after charge happened" {
				t.Fatalf("%s (%s), letter %+v", s.r.State, s.r.Reason, l)
			}
			if _, err := s.r.Undo("ops", "", s.now); err != nil {
				t.Errorf("undo: %v", err)
			}
			if _, err := s.r.Dismiss("ops", "", s.now); err != nil {
				t.Errorf("dismiss: %v", err)
			}
			m, err := s.r.Replay("ops", "", s.now)
			if err != nil {
				t.Fatalf("replay: %v", err)
			}
			s.move(m)
			s.r.CancelledBy = ""
			s.claim()
			if a := s.come(charge); a.Do != StepSkip {
				t.Errorf("charge, replayed: %+v", a)
			}
		})
	}
}

func (s *stepper) cancel() {
	s.Helper()
	m, err := s.r.Cancel("ops", "because", s.now)
	if err != nil {
		s.Fatal(err)
	}
	if m.To == Dead && len(m.Alerts) != 1 {
		s.Errorf("%d alerts", len(m.Alerts))
	}
	s.move(m)
}

// Of which nothing has happened is cancelled as before, whatever plain steps are done.
func TestWhatDidNotHappenIsCancelled(t *testing.T) {
	for _, result := range []Result{ResultNotDone, ResultPermanent} {
		s := newStepper(t, minuteLadder)
		s.try(StepAsk{Step: "list", Plain: true}, ResultDone)
		s.try(StepAsk{Step: "charge"}, result)
		s.end(ResultNotDone)
		s.cancel()
		if s.r.State != Cancelled || s.r.Letter != nil {
			t.Errorf("charge %s: %s", result, s.r.State)
		}
	}
}

// Whom a window takes along when a person ends it is cancelled, or a dead letter, as if he had been ended by himself.
func TestWhatEndsWithItsWindow(t *testing.T) {
	for result, want := range map[Result]Reason{ResultDone: ReasonCancelled, ResultNotDone: ReasonWithWindow} {
		s := newStepper(t, minuteLadder)
		s.r.Key, s.r.Parent = "renew:2026-10-26/sub_42", "renew:2026-10-26"
		s.try(StepAsk{Step: "charge"}, result)
		s.end(ResultNotDone)
		m, err := s.r.CancelSubject("ops", s.now)
		if err != nil || m.Activity != nil || m.Reason != want {
			t.Errorf("charge %s: %s, %v", result, moveText(m), err)
		}
	}
}
