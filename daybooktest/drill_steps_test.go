package daybooktest_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// The worker is lost once at every boundary of every step, of work of all kinds: an effect that can be asked for, rows in the
// shop's own table, an effect that nobody can be asked about. Each happens once.
func TestDrillOfSteps(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		n := newRenewal(t, db)
		e := daybooktest.New(t, db)
		attempts := 0
		e.Handle(stepped(), func(ctx context.Context, r *daybook.Run) error {
			attempts++
			return n.do(ctx, r)
		})
		count := func() int {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.shop.book()) + n.receipts
		}
		daybooktest.Drill(t, e, "renew", "2026-10-26", count)
		if len(n.shop.book()) != 1 || n.receipts != 1 || n.paid(t) != 1 {
			t.Errorf("%d charges, %d receipts, %d rows", len(n.shop.book()), n.receipts, n.paid(t))
		}
		// charge: before, begun, asked, found, done; extend: before, begun, in the transaction; receipt: before, begun, done; the end.
		// What was done is not done again, so that charge and receipt are never told: they are found, and said by a person.
		if attempts != 12+1 {
			t.Errorf("the worker was lost %d times", attempts-1)
		}
	})
}

// Work that is done for subjects meets each boundary once, by whichever of them comes to it first.
func TestDrillOfSubjects(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		n := newRenewal(t, db)
		e := daybooktest.New(t, db)
		e.Handle(stepped(), n.do, daybook.Subjects(func(context.Context, daybook.Window) iter.Seq2[daybook.Subject, error] {
			return func(yield func(daybook.Subject, error) bool) {
				for _, id := range []string{"sub_1", "sub_2", "sub_3"} {
					if !yield(daybook.Subject{ID: id}, nil) {
						return
					}
				}
			}
		}))
		count := func() int {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.shop.book()) + n.receipts
		}
		daybooktest.Drill(t, e, "renew", "2026-10-26", count)
		if len(n.shop.book()) != 3 || n.receipts != 3 || n.paid(t) != 3 {
			t.Errorf("%d charges, %d receipts, %d rows", len(n.shop.book()), n.receipts, n.paid(t))
		}
	})
}

// A drill can fail: for work that does in no step what it may do once, for a step that is no effect, and for a far side that
// denies what it has done.
func TestDrillOfStepsFails(t *testing.T) {
	none := func(context.Context) (int, error) { return 0, nil }
	for _, c := range []struct {
		name, want string
		work       func(charge func(string), ctx context.Context, r *daybook.Run) error
	}{
		{"no step at all", "or the work does it before its first step", func(charge func(string), _ context.Context, _ *daybook.Run) error {
			charge("ch")
			return nil
		}},
		{"beside its steps", "outside of every step", func(charge func(string), ctx context.Context, r *daybook.Run) error {
			_, err := daybook.Step(ctx, r, "list", none)
			if err == nil {
				charge("ch")
				_, err = daybook.Step(ctx, r, "note", none)
			}
			return err
		}},
		{"in a step that is no effect", "in step charge, and had risen there before", func(charge func(string), ctx context.Context, r *daybook.Run) error {
			_, err := daybook.Step(ctx, r, "charge", func(context.Context) (int, error) { charge("ch"); return 1, nil })
			return err
		}},
		{"denied", "in step charge, and had risen there before", func(charge func(string), ctx context.Context, r *daybook.Run) error {
			_, err := daybook.Effect(ctx, r, "charge", daybook.EffectOf[int]{
				Do:    func(_ context.Context, wireKey string) (int, error) { charge(wireKey); return 1, nil },
				Probe: func(context.Context, string) (int, daybook.Answer, error) { return 0, daybook.No, nil },
			})
			return err
		}},
		{"not counted", "it does not count this effect", func(_ func(string), ctx context.Context, r *daybook.Run) error {
			_, err := daybook.Step(ctx, r, "list", none)
			return err
		}},
		{"never done", "no such card", func(_ func(string), ctx context.Context, r *daybook.Run) error {
			if _, err := daybook.Step(ctx, r, "list", none); err != nil {
				return err
			}
			return daybook.Permanent(errors.New("no such card"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := daybooktest.New(t, storetest.SQLite(t).Open(t))
			b := &book{}
			e.Handle(stepped(), func(ctx context.Context, r *daybook.Run) error {
				return c.work(func(key string) {
					b.mu.Lock()
					defer b.mu.Unlock()
					b.keys = append(b.keys, key)
				}, ctx, r)
			})
			heard := &ear{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				daybooktest.Drill(heard, e, "renew", "2026-10-26", b.count)
			}()
			<-done
			if !strings.Contains(heard.said, c.want) {
				t.Errorf("said %q, want %q", heard.said, c.want)
			}
		})
	}
}
