package daybooktest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

var ops = control.Person{Name: "ops"}

// till is a far side that keeps a book of charges and of refunds, each under its wire key.
type till struct {
	mu      sync.Mutex
	book    []string
	decline bool                       // the second charge
	refund  func(undoKey string) error // what becomes of a refund, before it is booked
	lost    func(undoKey string) error // and after
}

func (s *till) enter(wireKey string) {
	if !slices.Contains(s.book, wireKey) {
		s.book = append(s.book, wireKey)
	}
}

func (s *till) work(ctx context.Context, r *daybook.Run) error {
	effect := func(name string) error {
		_, err := daybook.Effect(ctx, r, name, daybook.EffectOf[string]{
			Do: func(_ context.Context, wireKey string) (string, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.decline && name == "second" {
					return "", daybook.Permanent(errors.New("declined"))
				}
				s.enter(wireKey)
				return "ch " + wireKey, nil
			},
			Undo: func(_ context.Context, undoKey string, done string) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.refund != nil {
					if err := s.refund(undoKey); err != nil {
						return err
					}
				}
				s.enter(undoKey + " of " + done)
				if s.lost != nil {
					return s.lost(undoKey)
				}
				return nil
			},
		})
		return err
	}
	if err := effect("first"); err != nil {
		return err
	}
	if _, err := daybook.Step(ctx, r, "note", func(context.Context) (int, error) { return 7, nil }); err != nil {
		return err
	}
	return effect("second")
}

const (
	undone1 = "renew:2026-03-02#first~undo of ch renew:2026-03-02#first"
	undone2 = "renew:2026-03-02#second~undo of ch renew:2026-03-02#second"
)

func (s *till) wants(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.book, want) {
		t.Errorf("the book has %q, want %q", s.book, want)
	}
}

func tilled(t *testing.T, db engine.DB, s *till) *daybooktest.Engine {
	t.Helper()
	e := daybooktest.New(t, db)
	e.Handle(stepped(), s.work)
	e.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	e.At(time.Date(2026, 3, 2, 1, 30, 0, 0, time.UTC))
	return e
}

func find(t *testing.T, e *daybooktest.Engine, k daybook.Key) *daybook.Run {
	t.Helper()
	r, err := e.Store().Run(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func refused(t *testing.T, err error) {
	t.Helper()
	if daybook.CodeOf(err) != daybook.CodeConflict {
		t.Errorf("want a refusal, got %v", err)
	}
}

// What was done is taken back once, newest first, whoever asks and however often, and is final.
func TestUndo(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		s := &till{}
		e := tilled(t, db, s)
		const key = daybook.Key("renew:2026-03-02")
		s.wants(t, "renew:2026-03-02#first", "renew:2026-03-02#second")
		a, err := e.Control().Undo(t.Context(), ops, key, "wrong price")
		if err != nil || a.Run.Key != key.Undo() {
			t.Fatal(a, err)
		}
		_, err = e.Control().Undo(t.Context(), ops, key, "double click")
		refused(t, err)
		e.Run()
		_, err = e.Control().Undo(t.Context(), ops, key, "and again")
		refused(t, err)
		e.Advance(24 * time.Hour)
		s.wants(t, "renew:2026-03-02#first", "renew:2026-03-02#second", undone2, undone1, "renew:2026-03-03#first", "renew:2026-03-03#second")
		if r := find(t, e, key); r.State != daybook.Done || r.Reason != daybook.ReasonUndone {
			t.Errorf("%s is %s (%s)", key, r.State, r.Reason)
		}
		got, err := e.Control().Trigger(t.Context(), ops, control.Request{Job: "renew", Window: "2026-03-02", Source: daybook.SourceManual})
		if err != nil || got.Outcome != daybook.Reused || got.Because != daybook.BecauseFinal {
			t.Errorf("a trigger afterwards: %s %s %v", got.Outcome, got.Because, err)
		}
	})
}

// Replay and undo of one dead letter, decided from the same picture: whichever comes second is refused.
func TestUndoOfADeadLetter(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		s := &till{decline: true}
		e := tilled(t, db, s)
		const key = daybook.Key("renew:2026-03-02")
		r := find(t, e, key)
		if r.State != daybook.Dead || r.Letter.Kind != daybook.LetterFailed {
			t.Fatalf("%s is %s", key, r.State)
		}
		replay, err := r.Replay("ops", "", e.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Control().Undo(t.Context(), ops, key, "customer left"); err != nil {
			t.Fatal(err)
		}
		applied, err := e.Store().Apply(t.Context(), []daybook.Transition{replay})
		if err != nil || !applied[0].Stale {
			t.Fatalf("a replay that was decided before the undo was written: %v", err)
		}
		answers, err := e.Control().Replay(t.Context(), ops, []daybook.Key{key}, "")
		if err != nil || answers[0].Outcome != daybook.Refused {
			t.Fatal(answers, err)
		}
		_, err = e.Control().Dismiss(t.Context(), ops, key, "never mind")
		refused(t, err)
		e.Run()
		s.wants(t, "renew:2026-03-02#first", undone1)
		if r = find(t, e, key); r.State != daybook.Dead || r.Reason != daybook.ReasonCompensated || r.Letter.State != daybook.LetterCompensated {
			t.Errorf("%s is %s (%s), letter %s", key, r.State, r.Reason, r.Letter.State)
		}
		answers, err = e.Control().Replay(t.Context(), ops, []daybook.Key{key}, "")
		if err != nil || answers[0].Outcome != daybook.Refused {
			t.Fatal(answers, err)
		}
	})
}

// A refund that was refused is a letter of the undo, whose replay goes on with the undo under the next wire key; one whose
// outcome is unknown is not sent again before somebody says.
func TestUndoThatFails(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		s := &till{refund: func(undoKey string) error {
			if undoKey == "renew:2026-03-02#first~undo" {
				return daybook.Permanent(errors.New("too late for a refund"))
			}
			return nil
		}}
		e := tilled(t, db, s)
		const key = daybook.Key("renew:2026-03-02")
		if _, err := e.Control().Undo(t.Context(), ops, key, "wrong price"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		s.wants(t, "renew:2026-03-02#first", "renew:2026-03-02#second", undone2)
		u := find(t, e, key.Undo())
		if u.State != daybook.Dead || u.Letter.Kind != daybook.LetterUndo {
			t.Fatalf("%s is %s, letter %+v", u.Key, u.State, u.Letter)
		}
		if r := find(t, e, key); r.State != daybook.Done || r.Reason != daybook.ReasonUndoing {
			t.Errorf("%s is %s (%s)", key, r.State, r.Reason)
		}
		s.lost = func(string) error { return errors.New("the line went dead") } // it happens, and nobody hears of it
		if _, err := e.Control().Replay(t.Context(), ops, []daybook.Key{key.Undo()}, ""); err != nil {
			t.Fatal(err)
		}
		e.Run()
		late := "renew:2026-03-02#first~undo@2 of ch renew:2026-03-02#first"
		s.wants(t, "renew:2026-03-02#first", "renew:2026-03-02#second", undone2, late)
		if u = find(t, e, key.Undo()); u.State != daybook.Dead || u.Letter.Kind != daybook.LetterUnknown {
			t.Fatalf("%s is %s, letter %+v", u.Key, u.State, u.Letter)
		}
		_, err := e.Control().Dismiss(t.Context(), ops, key.Undo(), "no idea")
		refused(t, err)
		if _, err := e.Control().Resolve(t.Context(), ops, key.Undo(), control.Word{Step: "first", As: daybook.AsDone}, "the bank has it"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		s.wants(t, "renew:2026-03-02#first", "renew:2026-03-02#second", undone2, late)
		if r := find(t, e, key); r.Reason != daybook.ReasonUndone {
			t.Errorf("%s is %s (%s)", key, r.State, r.Reason)
		}
	})
}

// The worker of an undo is lost at every call that a step makes: each refund is in the book once.
func TestUndoLosesTheWorkerAnywhere(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		s := &till{}
		e := tilled(t, db, s)
		day := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		lost := 0
		for at := 0; at < 4; at++ {
			e.At(day)
			key := daybook.Key("renew:" + day.Format(time.DateOnly))
			died := false
			die := func(string) error {
				if !died {
					died, lost = true, lost+1
					daybooktest.Lose(e)
				}
				return nil
			}
			s.refund, s.lost = nil, nil
			if at%2 == 0 {
				s.lost = die
			} else {
				s.refund = func(k string) error { _ = die(k); return daybook.Unknown(errors.New("cut off")) }
			}
			before := len(s.book)
			if _, err := e.Control().Undo(t.Context(), ops, key, "wrong"); err != nil {
				t.Fatal(err)
			}
			e.Run()
			s.refund, s.lost = nil, nil
			for range 20 {
				u := find(t, e, key.Undo())
				if u.State == daybook.Done {
					break
				}
				if u.State == daybook.Dead {
					for _, o := range u.OpenSteps() {
						as := daybook.AsNotDone
						if slices.ContainsFunc(s.book[before:], func(b string) bool { return b[:len(o.WireKey())] == o.WireKey() }) {
							as = daybook.AsDone
						}
						if _, err := e.Control().Resolve(t.Context(), ops, u.Key, control.Word{Step: o.Step, As: as, Attempt: u.Attempts}, "looked"); err != nil {
							t.Fatal(err)
						}
					}
				}
				e.Advance(20 * time.Second)
			}
			if r := find(t, e, key); r.Reason != daybook.ReasonUndone {
				t.Fatalf("%s is %s (%s)", key, r.State, r.Reason)
			}
			if n := len(s.book) - before; n != 2 {
				t.Errorf("%d refunds for two charges: %q", n, s.book[before:])
			}
			day = day.AddDate(0, 0, 1)
		}
		if lost != 4 {
			t.Errorf("the worker was lost %d times", lost)
		}
	})
}

// What cannot be taken back is named in a letter, and nothing says that all is back: a person does it by hand and dismisses it.
func TestUndoThatLeavesSomething(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		s := &till{}
		e := daybooktest.New(t, db)
		e.Handle(stepped(), func(ctx context.Context, r *daybook.Run) error {
			if _, err := daybook.Effect(ctx, r, "mail", daybook.EffectOf[int]{Do: func(context.Context, string) (int, error) { return 1, nil }}); err != nil {
				return err
			}
			return s.work(ctx, r)
		})
		e.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		e.At(time.Date(2026, 3, 2, 1, 30, 0, 0, time.UTC))
		const key = daybook.Key("renew:2026-03-02")
		if _, err := e.Control().Undo(t.Context(), ops, key, "wrong price"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		s.wants(t, "renew:2026-03-02#first", "renew:2026-03-02#second", undone2, undone1)
		u := find(t, e, key.Undo())
		if u.State != daybook.Dead || u.Letter.Kind != daybook.LetterUndo || !strings.Contains(u.LastError, "how to undo mail") {
			t.Fatalf("%s: %s", u.State, u.LastError)
		}
		if r := find(t, e, key); r.Reason != daybook.ReasonUndoing {
			t.Errorf("%s is %s (%s)", key, r.State, r.Reason)
		}
		if _, err := e.Control().Dismiss(t.Context(), ops, key.Undo(), "wrote to the customer"); err != nil {
			t.Fatal(err)
		}
		if r := find(t, e, key); r.Reason != daybook.ReasonUndone {
			t.Errorf("%s is %s (%s)", key, r.State, r.Reason)
		}
	})
}

// An undo that is under way is not asked to end: half of it would be left, and nobody would be told.
func TestUndoIsNotCancelled(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		s := &till{}
		e := tilled(t, db, s)
		const key = daybook.Key("renew:2026-03-02")
		var asked error
		s.refund = func(string) error {
			_, asked = e.Control().Cancel(t.Context(), ops, key.Undo(), "not after all")
			return nil
		}
		if _, err := e.Control().Undo(t.Context(), ops, key, "wrong price"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		refused(t, asked)
		s.wants(t, "renew:2026-03-02#first", "renew:2026-03-02#second", undone2, undone1)
		if u := find(t, e, key.Undo()); u.State != daybook.Done || u.CancelledBy != "" {
			t.Errorf("%s is %s", u.Key, u.State)
		}
	})
}
