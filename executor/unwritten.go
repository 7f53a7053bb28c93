package executor

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

// Unwritten is the end of an attempt that the ledger does not take.
type Unwritten struct {
	Run     daybook.Run // as it stood; its work had begun unless BegunAt is zero
	Outcome daybook.Outcome
	Kept    bool  // the end lies in the directory of the attempt, for whoever settles it when the ledger is back
	Err     error // what the ledger says
}

const (
	unwrittenPoll  = 200 * time.Millisecond // how often it is looked whether an end still waits to be written
	unbegunQuarter = 4                      // of the patience is enough where nothing had begun
)

// Wait returns when the flight of a key is over and written, or ctx is done. An end that cannot be written for as long as patience lasts
// is returned.
func (x *Executor) Wait(ctx context.Context, k daybook.Key, patience time.Duration) (*Unwritten, error) {
	look := time.NewTicker(unwrittenPoll)
	defer look.Stop()
	for {
		x.mu.Lock()
		f, landed, away := x.flights[k], x.landed, x.away
		var ended time.Time
		kept := false
		if f != nil {
			ended, kept = f.ended, f.kept
		}
		x.mu.Unlock()
		if f == nil {
			return nil, nil
		}
		if !ended.IsZero() && away != nil {
			run, most := x.snapshot(f), patience
			if run.BegunAt.IsZero() {
				most /= unbegunQuarter
			}
			if x.o.Clock().Sub(ended) >= most {
				return &Unwritten{Run: run, Outcome: f.outcome, Kept: kept, Err: away}, nil
			}
		}
		select {
		case <-landed:
		case <-look.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Forget waits no longer until the ledger takes the end of a flight, since it knows by now how that ended.
func (x *Executor) Forget(k daybook.Key) {
	x.mu.Lock()
	f := x.flights[k]
	x.mu.Unlock()
	if f != nil {
		x.drop(f)
	}
}

// keepEnds leaves ends that could not be written beside their attempts, for whoever settles those: also for a rescue of this very
// process, should the ledger take that first.
func (x *Executor) keepEnds(ended []*flight) {
	for _, f := range ended {
		if f.kept {
			continue
		}
		kept := x.keepEnd(f)
		x.mu.Lock()
		f.kept = kept
		x.mu.Unlock()
	}
}

// keepEnd leaves one. False: it is no end of begun work that could be read there, or it cannot be left.
func (x *Executor) keepEnd(f *flight) bool {
	run := x.snapshot(f)
	dir := x.dir(run.Key, run.Fence)
	if dir == "" || f.question || run.BegunAt.IsZero() || run.Key.IsUndo() || !f.outcome.Result.Reported() {
		return false
	}
	if err := x.o.Survivor.KeepEnd(dir, f.outcome); err != nil {
		log := x.o.Log.Warn
		if f.told { // it is tried again with each write
			log = x.o.Log.Debug
		}
		f.told = true
		log("how an attempt ended could not be kept beside it", "job", run.Job, "key", run.Key, "result", f.outcome.Result, "err", err)
		return false
	}
	return true
}
