package daybooktest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func each(t *testing.T, test func(t *testing.T, db engine.DB)) {
	t.Helper()
	for _, open := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		db := open(t)
		t.Run(db.Name, func(t *testing.T) { test(t, db.Open(t)) })
	}
}

func renew() daybook.Job {
	return daybook.Job{Name: "renew", Owner: "ops", Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once}
}

// book is the far side: it remembers what it did under which wire key.
type book struct {
	mu    sync.Mutex
	keys  []string
	saved bool // a wire key that is repeated is answered, and does nothing again
}

func (b *book) charge(_ context.Context, r *daybook.Run) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.saved || !slices.Contains(b.keys, r.WireKey()) {
		b.keys = append(b.keys, r.WireKey())
	}
	return nil
}

func (b *book) find(_ context.Context, wireKey string) (string, daybook.Answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.keys, wireKey) {
		return "found", daybook.Yes, nil
	}
	return "", daybook.No, nil
}

func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.keys)
}

func TestDrill(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		for _, c := range []struct {
			name    string
			saved   bool
			change  func(*daybook.Job)
			options func(*book) []engine.HandleOption
		}{
			{"probe", false, func(*daybook.Job) {}, func(b *book) []engine.HandleOption { return []engine.HandleOption{engine.Probe(b.find)} }},
			{"person", false, func(*daybook.Job) {}, nil},
			{"memory", true, func(j *daybook.Job) { j.Remembers = 24 * time.Hour }, nil},
			{"repeatable", true, func(j *daybook.Job) { j.Effects = daybook.Repeatable }, nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				e := daybooktest.New(t, db, engine.Options{App: c.name})
				b := &book{saved: c.saved}
				j := renew()
				j.Name = c.name
				c.change(&j)
				var options []engine.HandleOption
				if c.options != nil {
					options = c.options(b)
				}
				e.Handle(j, b.charge, options...)
				daybooktest.Drill(t, e, c.name, "2026-10-26", b.count)
				if b.count() != 1 {
					t.Errorf("charged %d times", b.count())
				}
			})
		}
	})
}

// ear is a test that hears how another one fails.
type ear struct {
	testing.TB
	said string
}

func (e *ear) Helper() {}

func (e *ear) Fatalf(format string, args ...any) {
	e.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestDrillFails(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"twice", "count was 1 after the first full run, and is 2 now"},
		{"other", "it does not count this effect"},
		{"liar", "the probe said yes too early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := daybooktest.New(t, storetest.SQLite(t).Open(t))
			b := &book{}
			count := b.count
			j := renew()
			var options []engine.HandleOption
			switch c.name {
			case "twice":
				j.Effects = daybook.Repeatable
			case "other":
				count = func() int { return 7 }
			case "liar":
				options = append(options, engine.Probe(func(context.Context, string) (any, daybook.Answer, error) { return nil, daybook.Yes, nil }))
			}
			e.Handle(j, b.charge, options...)
			heard := &ear{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				daybooktest.Drill(heard, e, "renew", "2026-10-26", count)
			}()
			<-done
			if !strings.Contains(heard.said, c.want) {
				t.Errorf("said %q, want %q", heard.said, c.want)
			}
		})
	}
}

// Days go by as they are told to: each window at its own hour, each retry at its own time.
func TestAdvance(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e := daybooktest.New(t, db)
		var calls []string
		e.Handle(renew(), func(_ context.Context, r *daybook.Run) error {
			calls = append(calls, r.Window.Label+" at "+e.Now().Format("01-02 15:04"))
			if r.Window.Label == "2026-03-30" && r.Attempts == 1 {
				return daybook.NotDone(errors.New("later"))
			}
			return nil
		})
		e.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
		e.Advance(3 * 24 * time.Hour)
		if len(calls) != 4 || calls[0] != "2026-03-29 at 03-29 01:00" || calls[1] != "2026-03-30 at 03-30 00:00" ||
			!strings.HasPrefix(calls[2], "2026-03-30 at 03-30 00:01") || calls[3] != "2026-03-31 at 03-31 00:00" {
			t.Errorf("%q", calls)
		}
		if a, err := e.Trigger(t.Context(), "renew"); err != nil || a.Outcome != daybook.Reused || a.Key != "renew:2026-03-31" {
			t.Errorf("%s %s %v", a.Outcome, a.Key, err)
		}
	})
}

func TestExample(t *testing.T) { testRenewals(t) }
