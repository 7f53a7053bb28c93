// Package pruner empties the logs of old runs: attempts, outputs, payloads, results, and the texts of alerts that were
// sent. Keys outlive logs: it never frees a key, and forgets nothing that an undo or an open dead letter needs. It has no
// effects but on the store, and is called by the loop.
package pruner

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

// Limits of one piece of work.
const (
	batchDefault = 1000
	everyDefault = time.Hour
)

// Options of New. The zero value of a field means its default.
type Options struct {
	Retention daybook.Retention
	Every     time.Duration // between rounds; 1 h
	Batch     int           // runs emptied in one transaction; 1,000, which is also the most
}

func (o Options) withDefaults() Options {
	if o.Every <= 0 {
		o.Every = everyDefault
	}
	if o.Batch <= 0 || o.Batch > batchDefault {
		o.Batch = batchDefault
	}
	return o
}

// Pruner is a daybook.Service. Its methods are called by one goroutine at a time.
type Pruner struct {
	store daybook.PruneStore
	o     Options
	next  time.Time // of the next round; zero: at once
}

// New returns a pruner that begins its first round with the first Tick.
func New(store daybook.PruneStore, o Options) *Pruner {
	return &Pruner{store: store, o: o.withDefaults()}
}

// Tick implements daybook.Service: it empties one batch, once an hour. more is true while the round is not finished. A
// retention without limits keeps everything.
func (p *Pruner) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	if p.o.Retention.Log <= 0 && p.o.Retention.LogRuns <= 0 {
		return false, nil
	}
	if now.Before(p.next) && p.next.Sub(now) <= p.o.Every { // further off than a round only when the clock went back
		return false, nil
	}
	n, err := p.store.Prune(ctx, p.o.Retention, now, p.o.Batch, false)
	if err != nil {
		return false, err
	}
	if n >= p.o.Batch {
		return true, nil
	}
	if p.o.Retention.Log > 0 {
		if n, err = p.store.PruneSends(ctx, now.Add(-p.o.Retention.Log), p.o.Batch); err != nil {
			return false, err
		}
		if n >= p.o.Batch {
			return true, nil
		}
	}
	p.next = now.Add(p.o.Every)
	return false, nil
}

// Wait implements loop.Waiter.
func (p *Pruner) Wait(now time.Time) time.Duration {
	if p.o.Retention.Log <= 0 && p.o.Retention.LogRuns <= 0 {
		return p.o.Every
	}
	return max(p.next.Sub(now), 0)
}
