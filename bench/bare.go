package main

import (
	"context"
	"sync"
	"time"
)

// The bare driver loop is what a database and its driver do at best: the same commits, on one table of a key, a state and a
// number, and nothing else of what a scheduler has to know. It is no product; it is the ceiling.

// bareStore is the loop's table in one of the databases.
type bareStore interface {
	insert(ctx context.Context, key string, began int64) error
	fill(ctx context.Context, from, n int) error
	// claim takes up to n rows that are due, in one commit.
	claim(ctx context.Context, n int) (keys []string, began []int64, err error)
	// finish ends rows, in one commit.
	finish(ctx context.Context, keys []string) error
	// mark writes one row's number, in one commit.
	mark(ctx context.Context, key string, n int) error
	// read selects one row.
	read(ctx context.Context, key string) error
	left(ctx context.Context) (int, error)
	close() error
}

const bareBatch = 1000

// bare is a peer on a bareStore.
type bare struct {
	bareStore
	told  about
	clean func(context.Context) (bareStore, error)

	mu   sync.Mutex
	next int
	wake chan struct{}
}

func (b *bare) about() about { return b.told }

func (b *bare) reset(ctx context.Context) (err error) {
	if err := b.close(); err != nil {
		return err
	}
	b.next, b.wake = 0, make(chan struct{}, 1)
	b.bareStore, err = b.clean(ctx)
	return err
}

func (b *bare) close() error {
	if b.bareStore == nil {
		return nil
	}
	open := b.bareStore
	b.bareStore = nil
	return open.close()
}

func (b *bare) insert(ctx context.Context, _ work, began time.Time) error {
	b.mu.Lock()
	b.next++
	k := key(b.next)
	b.mu.Unlock()
	err := b.bareStore.insert(ctx, k, began.UnixNano())
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return err
}

func (b *bare) read(ctx context.Context, n int) error { return b.bareStore.read(ctx, key(n)) }

func (b *bare) again(ctx context.Context, n int) error { return b.read(ctx, n) }

func (b *bare) fill(ctx context.Context, _ work, n int) error {
	for n > 0 {
		part := min(n, bareBatch)
		if err := b.bareStore.fill(ctx, b.next+1, part); err != nil {
			return err
		}
		b.next += part
		n -= part
	}
	return nil
}

// start claims as often as there is something, and lets a few goroutines do what was claimed, as a worker does.
func (b *bare) start(ctx context.Context, w work, started func(time.Time)) (func() error, error) {
	batch := bareBatch
	if w.Slots > 0 {
		batch = w.Slots
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- b.loop(ctx, w, batch, started) }()
	return func() error { cancel(); return <-done }, nil
}

func (b *bare) loop(ctx context.Context, w work, batch int, started func(time.Time)) error {
	for {
		keys, began, err := b.claim(ctx, batch)
		if err == nil && len(keys) > 0 {
			if err = b.each(ctx, w, keys, began, started); err == nil {
				err = b.finish(ctx, keys)
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case len(keys) > 0:
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// each marks what the work asks for, from as many goroutines as there are pieces.
func (b *bare) each(ctx context.Context, w work, keys []string, began []int64, started func(time.Time)) error {
	marks := w.Steps
	if w.Kind == once.Kind {
		marks = 1
	}
	if w.Kind == effects.Kind {
		marks *= 2
	}
	errs := make(chan error, len(keys))
	var all sync.WaitGroup
	for i, k := range keys {
		do := func() {
			started(fromNano(began[i]))
			for n := range marks {
				if err := b.mark(ctx, k, n+1); err != nil {
					errs <- err
					return
				}
			}
		}
		if marks == 0 {
			do()
		} else {
			all.Go(do)
		}
	}
	all.Wait()
	close(errs)
	return <-errs
}

func fromNano(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
