package daybooktest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

// The story of a day tells of each subject that gave trouble: who asked for it, what was settled and by whom, what became a
// letter and how that was closed, or else that it took more than one attempt. Of the others it tells only how many.
func TestTheStoryOfADay(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e := daybooktest.New(t, db)
		var mu sync.Mutex
		tries := map[string]int{}
		e.Handle(stepped(), func(ctx context.Context, r *daybook.Run) error {
			_, err := daybook.Effect(ctx, r, "charge", daybook.EffectOf[map[string]string]{Do: func(context.Context, string) (map[string]string, error) {
				mu.Lock()
				defer mu.Unlock()
				tries[r.Subject]++
				switch {
				case r.Subject == "b" && tries["b"] == 1:
					return nil, daybook.Unknown(errors.New("cut off"))
				case r.Subject == "c":
					return nil, daybook.Permanent(errors.New("no such card"))
				case r.Subject == "d" && tries["d"] == 1:
					return nil, daybook.NotDone(errors.New("closed"))
				}
				return map[string]string{"id": "ch_" + r.Subject}, nil
			}})
			return err
		}, daybook.Subjects(listed("a", "b", "c", "d", "e")))
		e.At(instant("2026-03-01T12:00:00Z"))
		e.At(instant("2026-03-02T01:00:00Z")) // 02:00 in Berlin
		e.Advance(time.Minute + 10*time.Second)
		ops := control.Person{Name: "ops"}
		if _, err := e.Control().Resolve(t.Context(), ops, "renew:2026-03-02/b", control.Word{Step: "charge", As: daybook.AsDone}, "the bank has it"); err != nil {
			t.Fatal(err)
		}
		e.Advance(time.Minute)
		if _, err := e.Control().Trigger(t.Context(), ops, control.Request{Job: "renew", Window: "2026-03-02", Source: daybook.SourceManual}); err != nil {
			t.Fatal(err)
		}
		e.Advance(time.Minute)
		if _, err := e.Control().Dismiss(t.Context(), ops, "renew:2026-03-02/c", "left us"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		tells(t, e, "renew:2026-03-02", `
schedule → started (fire 2026-03-02T02:00)
/b  charge unknown | cut off → dead letter, alert
/c  charge not done | no such card → dead letter, alert
/d  attempt 2 → done | attempt 1: not done
/b  charge done | begun 02:00:00, nobody reported its end, unknown 02:00:00, settled by ops
manual, ops → refused | 4 done, 1 open letter: replay it
/c  letter dismissed by ops | left us
`)
	})
}

// However many gave trouble, a story ends.
func TestTheStoryOfADayHasAnEnd(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e := daybooktest.New(t, db)
		var names []string
		for i := range 120 {
			names = append(names, fmt.Sprintf("s%03d", i))
		}
		var mu sync.Mutex
		tried := map[string]bool{}
		j := renew()
		j.Effects = daybook.Repeatable
		e.Handle(j, func(_ context.Context, r *daybook.Run) error {
			mu.Lock()
			defer mu.Unlock()
			if odd := r.Subject[3]%2 == 1; odd && !tried[r.Subject] {
				tried[r.Subject] = true
				return daybook.NotDone(errors.New("busy"))
			}
			return nil
		}, daybook.Subjects(listed(names...)))
		e.At(instant("2026-03-01T12:00:00Z"))
		e.At(instant("2026-03-02T01:30:00Z"))
		s, err := e.Control().Key(t.Context(), "renew:2026-03-02")
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Run.Subjects; n == nil || n.Of != 120 || n.States[daybook.Done] != 120 || !s.Untold || len(s.Timeline) != 1+50 {
			t.Errorf("%+v, untold: %t, %d lines", s.Run.Subjects, s.Untold, len(s.Timeline))
		}
	})
}

// listed is a listing that always names the same.
func listed(names ...string) daybook.Lister {
	return func(context.Context, daybook.Window) iter.Seq2[daybook.Subject, error] {
		return func(yield func(daybook.Subject, error) bool) {
			for _, n := range names {
				if !yield(daybook.Subject{ID: n}, nil) {
					return
				}
			}
		}
	}
}

func tells(t *testing.T, e *daybooktest.Engine, k daybook.Key, want string) {
	t.Helper()
	s, err := e.Control().Key(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, l := range s.Timeline {
		why := l.Note
		if why == "" {
			why = l.Why.String()
		}
		if why, _, _ = strings.Cut(why, " al_"); why != "" {
			why = " | " + why
		}
		fmt.Fprintf(&got, "%s%s\n", l.Text, why)
	}
	if got.String() != strings.TrimPrefix(want, "\n") {
		t.Errorf("the story of %s is\n%s\nwant%s", k, got.String(), want)
	}
}
