package daybooktest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

func instant(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// fan is a job with subjects, and a far side that keeps a book.
type fan struct {
	mu      sync.Mutex
	due     []daybook.Subject
	failing func(subject string) error
	listErr error
	book    map[daybook.Key]int
	lists   int
}

func (s *fan) list(ctx context.Context, w daybook.Window) iter.Seq2[daybook.Subject, error] {
	return func(yield func(daybook.Subject, error) bool) {
		s.mu.Lock()
		s.lists++
		due, fault := s.due, s.listErr
		s.mu.Unlock()
		for _, d := range due {
			if !yield(d, nil) {
				return
			}
		}
		if fault != nil {
			yield(daybook.Subject{}, fault)
		}
	}
}

func (s *fan) work(_ context.Context, r *daybook.Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		if err := s.failing(r.Subject); err != nil {
			return err
		}
	}
	s.book[r.Key]++
	r.Count("charges", 1)
	return nil
}

func (s *fan) set(failing func(string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = failing
}

func (s *fan) charged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.book {
		n += c
	}
	return n
}

func subs(n int) []daybook.Subject {
	list := make([]daybook.Subject, n)
	for i := range list {
		list[i] = daybook.Subject{ID: fmt.Sprintf("sub_%02d", i+1), Payload: map[string]any{"cents": 1500}}
	}
	return list
}

func newFan(t *testing.T, db engine.DB, n int, change ...func(*daybook.Job)) (*daybooktest.Engine, *fan) {
	t.Helper()
	s := &fan{due: subs(n), book: make(map[daybook.Key]int)}
	e := daybooktest.New(t, db)
	j := daybook.Job{Name: "renew", Owner: "ops", Effects: daybook.Repeatable, Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Window: daybook.Day,
		Retry: daybook.Retry{Backoff: []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute}, Jitter: -1}}
	for _, c := range change {
		c(&j)
	}
	e.Handle(j, s.work, daybook.Subjects(s.list))
	return e, s
}

func runOf(t *testing.T, e *daybooktest.Engine, k daybook.Key) *daybook.Run {
	t.Helper()
	r, err := e.Store().Run(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func counts(t *testing.T, e *daybooktest.Engine, k daybook.Key) daybook.SubjectCounts {
	t.Helper()
	n, err := e.Store().Subjects(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func standsAs(t *testing.T, e *daybooktest.Engine, k daybook.Key, state daybook.State, reason daybook.Reason) *daybook.Run {
	t.Helper()
	r := runOf(t, e, k)
	if r.State != state || r.Reason != reason {
		t.Fatalf("%s is %s (%s), hold %q: %s; want %s (%s)", k, r.State, r.Reason, r.Hold, r.LastError, state, reason)
	}
	return r
}

func ask(t *testing.T, e *daybooktest.Engine, window string) control.Answer {
	t.Helper()
	a, err := e.Control().Trigger(t.Context(), control.Person{Name: "ops"}, control.Request{Job: "renew", Window: window})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestEachSubjectIsDoneOnce(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 20)
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:00Z"))
		r := standsAs(t, e, "renew:2026-03-29", daybook.Done, "")
		if r.Counts["charges"] != 20 || s.charged() != 20 {
			t.Errorf("counted %v, the book has %d", r.Counts, s.charged())
		}
		c := runOf(t, e, "renew:2026-03-29/sub_07")
		if c.State != daybook.Done || c.Parent != r.Key || c.FirstSource != daybook.SourceSchedule || string(c.Input) != `{"cents":1500}` {
			t.Errorf("child: %+v", c)
		}
		if a := ask(t, e, "2026-03-29"); a.Outcome != daybook.Reused || a.Subjects.Of != 20 {
			t.Errorf("asked again: %s %s", a.Outcome, a.Line())
		}
		e.Run()
		if s.charged() != 20 {
			t.Errorf("charged %d times", s.charged())
		}
	})
}

func TestOneDeclinedCardStopsNobody(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 20)
		s.set(func(id string) error {
			if id == "sub_13" {
				return daybook.Permanent(errors.New("402 card_declined"))
			}
			return nil
		})
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T02:00:00Z"))
		const k = "renew:2026-03-29"
		if r := standsAs(t, e, k, daybook.Running, daybook.ReasonFannedOut); !r.Rests || !r.Lease.IsZero() {
			t.Errorf("rests %t, lease %v", r.Rests, r.Lease)
		}
		a := ask(t, e, "2026-03-29")
		if a.Outcome != daybook.Refused || a.Exit != 4 || a.HTTP != 409 || a.Subjects.Letters != 1 || a.Subjects.States[daybook.Done] != 19 {
			t.Errorf("asked beside a letter: %+v %s", a.Reply, a.Line())
		}
		t.Log(a.Line(), a.Next())
		alerts, err := e.Store().Alerts(t.Context(), true, 10)
		if err != nil || len(alerts) != 1 || alerts[0].Key != k {
			t.Errorf("alerts: %v %v", alerts, err)
		}

		// The next window starts while the letter is open.
		e.At(instant("2026-03-30T00:30:00Z"))
		if got := runOf(t, e, "renew:2026-03-30"); got.Attempts != 1 || got.State != daybook.Running {
			t.Errorf("the next window is %s after %d attempts", got.State, got.Attempts)
		}
		s.set(nil)
		answers, err := e.Control().Replay(t.Context(), control.Person{Name: "ops"}, []daybook.Key{k}, "")
		if err != nil || answers[0].Outcome != daybook.Started || answers[0].Replayed != 1 {
			t.Fatalf("replay: %v %v", answers, err)
		}
		e.Run()
		standsAs(t, e, k, daybook.Done, "")
		if s.book["renew:2026-03-29/sub_13"] != 1 || s.charged() != 40-1 {
			t.Errorf("book: %v", s.charged())
		}
		alerts, _ = e.Store().Alerts(t.Context(), true, 10)
		if len(alerts) != 1 || alerts[0].Key != "renew:2026-03-30" {
			t.Errorf("alerts afterwards: %v", alerts)
		}
	})
}
