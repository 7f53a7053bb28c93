package daybooktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

// shop is a far side: a payment service that answers a repeated wire key with what it did, and tells when it is asked.
type shop struct {
	mu      sync.Mutex
	charges []string                   // wire keys, as they were charged
	then    func(wireKey string) error // what becomes of a request after it was charged, or instead
}

func (s *shop) charge(_ context.Context, wireKey string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.then != nil {
		if err := s.then(wireKey); err != nil {
			return "", err
		}
	}
	if !slices.Contains(s.charges, wireKey) {
		s.charges = append(s.charges, wireKey)
	}
	return "ch_" + wireKey, nil
}

func (s *shop) find(_ context.Context, wireKey string) (string, daybook.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.charges, wireKey) {
		return "ch_" + wireKey, daybook.Yes, nil
	}
	return "", daybook.No, nil
}

func (s *shop) book() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// renewal is a job in three parts: a charge that can be asked for, a row in the shop's own table in the ledger's database,
// and a receipt, of which nobody can be asked.
type renewal struct {
	shop     *shop
	db       engine.DB
	receipts int
	mu       sync.Mutex
}

func newRenewal(t *testing.T, db engine.DB) *renewal {
	t.Helper()
	if _, err := db.Write.ExecContext(t.Context(), `CREATE TABLE shop_paid (key TEXT NOT NULL, charge TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	return &renewal{shop: &shop{}, db: db}
}

func (n *renewal) do(ctx context.Context, r *daybook.Run) error {
	charge, err := daybook.Effect(ctx, r, "charge", daybook.EffectOf[string]{Do: n.shop.charge, Probe: n.shop.find, Remembers: 24 * time.Hour})
	if err != nil {
		return err
	}
	if err := n.extend(ctx, r, charge); err != nil {
		return err
	}
	_, err = daybook.Effect(ctx, r, "receipt", daybook.EffectOf[int]{Do: func(context.Context, string) (int, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.receipts++
		return n.receipts, nil
	}})
	return err
}

func (n *renewal) extend(ctx context.Context, r *daybook.Run, charge string) error {
	tx, err := n.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if done, err := daybook.StepTx(ctx, tx, r, "extend"); done || err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO shop_paid (key, charge) VALUES ('%s', '%s')`, r.Key, charge)); err != nil {
		return err
	}
	return tx.Commit()
}

func (n *renewal) paid(t *testing.T) (rows int) {
	t.Helper()
	if err := n.db.Read.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM shop_paid`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func stepped() daybook.Job {
	j := renew()
	j.Steps = true
	return j
}

// cut is a book of steps that loses its worker at one of the calls: before it reaches the ledger, or after.
type cut struct {
	daybook.StepBook
	at, calls int
	lose      func()
	lost      bool
}

var errDied = errors.New("the worker died")

func (c *cut) call(do func() (daybook.StepAnswer, error)) (daybook.StepAnswer, error) {
	for _, step := range []func() (daybook.StepAnswer, error){nil, do} {
		var a daybook.StepAnswer
		var err error
		if step != nil {
			a, err = step()
		}
		if c.calls++; c.calls > c.at {
			c.lost = true
			c.lose()
			return daybook.StepAnswer{}, errDied
		}
		if step != nil {
			return a, err
		}
	}
	panic("unreachable")
}

func (c *cut) Come(ctx context.Context, ask daybook.StepAsk) (daybook.StepAnswer, error) {
	return c.call(func() (daybook.StepAnswer, error) { return c.StepBook.Come(ctx, ask) })
}

func (c *cut) End(ctx context.Context, e *daybook.StepRecord, o daybook.Outcome) (daybook.StepAnswer, error) {
	return c.call(func() (daybook.StepAnswer, error) { return c.StepBook.End(ctx, e, o) })
}

func (c *cut) Found(ctx context.Context, e *daybook.StepRecord, found []daybook.Finding, at time.Time) (daybook.StepAnswer, error) {
	return c.call(func() (daybook.StepAnswer, error) { return c.StepBook.Found(ctx, e, found, at) })
}

// A worker is lost at every call that a step makes, before and after it reached the ledger: each effect happens once, and
// each row of the shop's own table is there once.
func TestStepsLoseTheWorkerAnywhere(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		n := newRenewal(t, db)
		e := daybooktest.New(t, db)
		var c *cut
		e.Handle(stepped(), func(ctx context.Context, r *daybook.Run) error {
			ctx, die := context.WithCancel(ctx)
			defer die()
			if c != nil && !c.lost {
				c.StepBook, c.calls = r.Book(), 0
				c.lose = func() { daybooktest.Lose(e) }
				r.Keep(c)
			}
			return n.do(ctx, r)
		})
		e.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		for at := 0; ; at++ {
			window := time.Date(2026, 3, 2+at, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
			key := daybook.Key("renew:" + window)
			c = &cut{at: at}
			receipts := n.receipts
			e.At(time.Date(2026, 3, 2+at, 1, 30, 0, 0, time.UTC))
			e.Advance(2 * time.Hour)
			r, err := e.Store().Run(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if r.State == daybook.Dead && r.Letter.Kind == daybook.LetterUnknown { // nobody can be asked about a receipt
				as := daybook.AsNotDone
				if n.receipts > receipts {
					as = daybook.AsDone
				}
				if _, err := e.Control().Resolve(t.Context(), control.Person{Name: "ops"}, key, control.Word{Step: "receipt", As: as}, "looked"); err != nil {
					t.Fatal(err)
				}
				e.Run()
				if r, err = e.Store().Run(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			if r.State != daybook.Done {
				t.Fatalf("lost at call %d: %s is %s (%s): %s", at, key, r.State, r.Reason, r.LastError)
			}
			if got := len(n.shop.book()); got != at+1 {
				t.Fatalf("lost at call %d: %d charges for %d days: %v", at, got, at+1, n.shop.book())
			}
			if got := n.paid(t); got != at+1 {
				t.Fatalf("lost at call %d: %d rows for %d days", at, got, at+1)
			}
			if n.receipts != at+1 {
				t.Fatalf("lost at call %d: %d receipts for %d days", at, n.receipts, at+1)
			}
			if !c.lost {
				if at < 8 {
					t.Fatalf("only %d calls were made", at)
				}
				return
			}
		}
	})
}

// What the far side says decides, and each effect has a wire key of its own.
func TestAnEffectThatIsUnclear(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		n := newRenewal(t, db)
		e := daybooktest.New(t, db)
		e.Handle(stepped(), n.do)
		e.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		tries := 0
		n.shop.then = func(string) error {
			if tries++; tries == 1 {
				return errors.New("504")
			}
			return nil
		}
		e.At(time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC))
		r, err := e.Store().Run(t.Context(), "renew:2026-03-02")
		if err != nil {
			t.Fatal(err)
		}
		if s := r.StepRecord("charge"); r.State != daybook.Retryable || r.Reason != daybook.ReasonUnsettled || s.State != daybook.EffectUnknown || s.Asked != daybook.No ||
			!r.Due.Equal(s.EndedAt.Add(5*time.Minute)) {
			t.Fatalf("%s (%s) due %s: %+v", r.State, r.Reason, r.Due, s)
		}
		e.Advance(time.Hour)
		if r, err = e.Store().Run(t.Context(), "renew:2026-03-02"); err != nil || r.State != daybook.Done {
			t.Fatal(r.State, r.LastError, err)
		}
		if got := n.shop.book(); len(got) != 1 || got[0] != "renew:2026-03-02#charge@2" {
			t.Errorf("charged under %v", got)
		}
		if s := r.StepRecord("charge"); s.State != daybook.EffectDone || string(s.Data) != `"ch_renew:2026-03-02#charge@2"` || s.Tries != 2 {
			t.Errorf("charge: %+v", s)
		}
	})
}

// An effect that was renamed between two attempts is not begun: the same thing might happen again under the new name.
func TestARenamedEffect(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e := daybooktest.New(t, db)
		name, charged := "charge", 0
		e.Handle(stepped(), func(ctx context.Context, r *daybook.Run) error {
			_, err := daybook.Effect(ctx, r, name, daybook.EffectOf[int]{Do: func(context.Context, string) (int, error) { charged++; return charged, nil }})
			if name == "charge" {
				name = "collect"
				return errors.New("a deployment comes")
			}
			return err
		})
		e.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		e.At(time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC))
		r, err := e.Store().Run(t.Context(), "renew:2026-03-02")
		if err != nil {
			t.Fatal(err)
		}
		if charged != 1 || r.State != daybook.Dead || r.Letter.Kind != daybook.LetterFailed {
			t.Fatalf("charged %d times, %s: %s", charged, r.State, r.LastError)
		}
		name = "charge"
		if _, err := e.Control().Replay(t.Context(), control.Person{Name: "ops"}, []daybook.Key{r.Key}, ""); err != nil {
			t.Fatal(err)
		}
		name = "charge"
		e.Advance(time.Hour)
		if charged != 1 {
			t.Errorf("charged %d times", charged)
		}
	})
}

// A person lets an effect be asked for again by the work itself. Whatever the far side says, it closes the letter that stood open
// meanwhile, and the run goes on.
func TestAPersonLetsTheWorkAskAgain(t *testing.T) {
	for _, says := range []daybook.Answer{daybook.Yes, daybook.No, daybook.CannotTell} {
		t.Run(string(says), func(t *testing.T) {
			each(t, func(t *testing.T, db engine.DB) {
				e := daybooktest.New(t, db)
				answer, sent := daybook.CannotTell, 0
				e.Handle(stepped(), func(ctx context.Context, r *daybook.Run) error {
					_, err := daybook.Effect(ctx, r, "charge", daybook.EffectOf[int]{
						Do: func(context.Context, string) (int, error) {
							if sent++; sent == 1 {
								return 0, daybook.Unknown(errors.New("reset"))
							}
							return sent, nil
						},
						Probe: func(context.Context, string) (int, daybook.Answer, error) { return 1, answer, nil },
					})
					return err
				})
				e.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
				e.At(time.Date(2026, 3, 2, 3, 30, 0, 0, time.UTC))
				const key = daybook.Key("renew:2026-03-02")
				if r := find(t, e, key); r.State != daybook.Dead || r.Letter.Kind != daybook.LetterUnknown {
					t.Fatalf("%s is %s, letter %+v", key, r.State, r.Letter)
				}
				answer = says
				if _, err := e.Control().Resolve(t.Context(), ops, key, control.Word{Step: "charge", As: daybook.AsAsk}, ""); err != nil {
					t.Fatal(err)
				}
				e.Advance(10 * time.Minute)
				state, letter, tries := daybook.Done, daybook.LetterSettled, 1
				switch says {
				case daybook.No:
					tries = 2
				case daybook.CannotTell:
					state, letter = daybook.Dead, daybook.LetterOpen
				}
				r := find(t, e, key)
				if r.State != state || r.Letter.State != letter || sent != tries {
					t.Errorf("%s is %s, its letter %s, after %d tries; want %s, %s, %d", key, r.State, r.Letter.State, sent, state, letter, tries)
				}
				alerts, err := e.Store().Alerts(t.Context(), true, 10)
				if err != nil || (len(alerts) == 0) != (letter == daybook.LetterSettled) {
					t.Errorf("open alerts %v, %v", alerts, err)
				}
			})
		})
	}
}
