package scheduler

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// written is what became of the plans of one transaction.
type written struct {
	plans []*daybook.Plan
	done  []daybook.Planned
	err   error
	panic any
}

// write gives plans to the ledger, some in one transaction, and the transactions side by side: no two are about the same job, and
// what one of them waits for is time for the other.
func (s *Scheduler) write(ctx context.Context, plans []*daybook.Plan, now time.Time) []written {
	var parts []written
	for some := range slices.Chunk(plans, plansPerWrite) {
		parts = append(parts, written{plans: some})
	}
	var all sync.WaitGroup
	for i := range parts {
		part := &parts[i]
		all.Go(func() {
			defer func() { part.panic = recover() }()
			part.done, part.err = s.store.Plan(ctx, part.plans, now)
		})
	}
	all.Wait()
	for _, part := range parts {
		if part.panic != nil { // whoever called sees to it
			panic(part.panic)
		}
	}
	return parts
}
