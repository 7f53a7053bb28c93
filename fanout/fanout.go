// Package fanout looks after runs whose subjects have runs of their own: it lets those go in small portions, stops them when
// they fail alike, and ends the run when all of them have ended. What is decided is the rule of the root package; no subject's
// end writes its parent. The loop calls it as a service.
package fanout

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/daybook-run/daybook"
)

// atOnce bounds how many runs are looked after in one Tick.
const atOnce = 50

// Options of New.
type Options struct {
	// Portion returns how many runs of subjects of one run may be let go and not ended at a time.
	Portion func() int
	// Woke is called when there may be something to claim. May be nil.
	Woke func()
	Log  *slog.Logger
}

// Fanout is the service. Several may share a ledger.
type Fanout struct {
	store daybook.FanStore
	o     Options
	wake  chan struct{}
}

// New returns a service that has looked at nothing yet.
func New(store daybook.FanStore, o Options) *Fanout {
	if o.Woke == nil {
		o.Woke = func() {}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Fanout{store: store, o: o, wake: make(chan struct{}, 1)}
}

// Woken is signalled when something ended.
func (s *Fanout) Woken() <-chan struct{} { return s.wake }

// Wake makes Tick be called soon.
func (s *Fanout) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Tick implements daybook.Service: one look at each run that needs it. One that cannot be looked at keeps no other waiting.
func (s *Fanout) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	keys, err := s.store.Fanouts(ctx, now, atOnce)
	if err != nil || len(keys) == 0 {
		return false, err
	}
	var faults []error
	for _, k := range keys {
		j, err := s.store.Definition(ctx, k.Job())
		if daybook.CodeOf(err) == daybook.CodeNotFound {
			j, err = &daybook.Job{}, nil
		}
		if err != nil {
			return false, err
		}
		if err := s.store.Look(ctx, k, j.Policy(), s.o.Portion(), now); err != nil {
			faults = append(faults, err)
		}
	}
	s.o.Woke()
	return len(faults) == 0, errors.Join(faults...)
}
