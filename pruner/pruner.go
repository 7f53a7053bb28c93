// Package pruner empties what old runs no longer need: attempts, outputs, payloads, results. It never removes a key, a
// letter or the state of an effect, so that pruning can never let anything happen twice. It is called by the loop.
package pruner

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

// Limits of one piece of work.
const (
	batch = 1000
	pause = time.Hour // between rounds
)

// Pruner is the service.
type Pruner struct {
	store daybook.PruneStore
	keep  daybook.Retention
	next  time.Time
}

// New returns a pruner that keeps what it is told to.
func New(store daybook.PruneStore, keep daybook.Retention) *Pruner {
	return &Pruner{store: store, keep: keep}
}

// Tick implements daybook.Service: one batch, once a round.
func (p *Pruner) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	if now.Before(p.next) {
		return false, nil
	}
	n, err := p.store.Prune(ctx, p.keep, now, batch, false)
	if err != nil {
		return false, err
	}
	if n == batch {
		return true, nil
	}
	p.next = now.Add(pause)
	return false, nil
}
