package engine

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/pruner"
	"github.com/daybook-run/daybook/scheduler"
)

// Settings are what a process may take anew while it works, beside its jobs. They mean what the Options of the same names do.
type Settings struct {
	Slots         map[daybook.Lane]int
	Retention     daybook.Retention
	Alerts        alert.Options
	URL, LocalURL string
	Freezes       []daybook.FreezeRule
	Zone          string // of their schedules
}

// settings are those in force.
func (e *Engine) settings() Settings {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.set
}

// Reload takes other definitions and settings while the engine works: all of them, or on an error none. What is under way goes
// on under the definition it began with. The definitions before have the last word about what fell under them, as with Load.
// It is for the jobs of a file; an application starts again.
//
// Errors: CodeInvalid, a definition or a channel is wrong; CodeConflict, another program does a job of this name;
// CodeUnavailable.
func (e *Engine) Reload(ctx context.Context, s Settings, definitions ...Definition) error {
	if e.home != "" {
		return daybook.Invalid("only the jobs of a file are loaded again")
	}
	s = s.withDefaults()
	if err := e.alerts(s).Check(); err != nil {
		return err
	}
	next, err := e.completeAll(s, definitions)
	if err != nil {
		return err
	}
	freezes, err := calendar.CompileFreezes(s.Freezes, s.Zone)
	if err != nil {
		return err
	}
	e.planned.Lock()
	defer e.planned.Unlock()
	if err := e.schedule.Load(ctx, next.jobs, true, e.clock.Now()); err != nil {
		return err
	}
	carries, err := e.namesOf(ctx)
	e.mu.Lock()
	e.set, e.freezes = s, freezes
	e.jobs, e.work, e.definitions, e.handled = next.jobs, next.work, next.known, definitions
	if err != nil { // the ledger went away just now: what the definitions say themselves
		carries = maps.Clone(e.carries)
		for _, j := range next.jobs {
			for name, now := range carries {
				if now == j.Formerly {
					carries[name] = j.Name
				}
			}
			if j.Formerly != "" {
				carries[j.Formerly] = j.Name
			}
		}
	}
	e.carries = carries
	e.mu.Unlock()
	e.exec.SetSlots(s.Slots)
	e.pruner.put(pruner.New(e.store, pruner.Options{Retention: s.Retention}))
	e.sender.put(alert.New(e.store, e.alerts(s)))
	e.exec.Wake()
	return nil
}

func (s Settings) withDefaults() Settings {
	if s.Slots == nil {
		s.Slots = defaultSlots
	}
	if s.Retention.Log == 0 {
		s.Retention.Log = DefaultRetention
	}
	s.Slots = maps.Clone(s.Slots)
	return s
}

// completed are definitions that can be worked with.
type completed struct {
	jobs  []scheduler.Job
	work  map[string]executor.Work
	known map[string]*daybook.Job
}

// replaced is a service that another one may take the place of while a loop calls it.
type replaced struct {
	now atomic.Pointer[daybook.Service]
}

func (r *replaced) put(s daybook.Service) { r.now.Store(&s) }

// Tick implements daybook.Service.
func (r *replaced) Tick(ctx context.Context, now time.Time) (bool, error) {
	return (*r.now.Load()).Tick(ctx, now)
}

// Wait implements loop.Waiter.
func (r *replaced) Wait(now time.Time) time.Duration {
	if w, ok := (*r.now.Load()).(loop.Waiter); ok {
		return w.Wait(now)
	}
	return 0
}
