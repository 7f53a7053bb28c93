package executor

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

// doubtBatch is how many runs are decided about in one Tick.
const doubtBatch = 100

// Doubts is the service that, while the freeze of a ledger that forgot stands, decides about the runs that were in it before:
// far sides are asked, which starts nothing, and what nobody but a person can tell becomes a dead letter. It does nothing in a
// ledger that knows what it knew.
type Doubts struct {
	*Executor
	homes []string
	after []daybook.Key // by home
}

// NewDoubts returns the service for the homes whose jobs this process knows.
func NewDoubts(x *Executor, homes ...string) *Doubts {
	return &Doubts{x, homes, make([]daybook.Key, len(homes))}
}

// Tick implements daybook.Service.
func (d *Doubts) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	for i, home := range d.homes {
		runs, err := d.store.Questionable(ctx, home, d.after[i], doubtBatch)
		if err != nil {
			return false, err
		}
		d.after[i] = ""
		if len(runs) == doubtBatch {
			d.after[i], more = runs[doubtBatch-1].Key, true
		}
		if err := d.question(ctx, runs, now); err != nil {
			return false, err
		}
	}
	return more, nil
}

func (d *Doubts) question(ctx context.Context, runs []*daybook.Run, now time.Time) error {
	var moves []daybook.Transition
	for _, r := range runs {
		p, err := d.policy(ctx, r)
		if err != nil {
			return err
		}
		if m, ok := r.Question(p, now); ok {
			moves = append(moves, m)
		}
	}
	if len(moves) == 0 {
		return nil
	}
	applied, err := d.store.Apply(ctx, moves)
	if err != nil {
		return err
	}
	for i, m := range moves {
		if !applied[i].Stale {
			d.announce(m)
		}
	}
	d.Wake()
	return nil
}
