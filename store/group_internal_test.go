package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// desk is a group whose transactions end when they are let go, with the next of answers.
type desk struct {
	group[int]
	t       *testing.T
	early   chan error // answers before anybody was taken
	connect func()     // nil: at once
	answers chan error
	slow    map[int]chan error // answers of those in which somebody comes first

	mu      sync.Mutex
	written [][]int // by transactions that were committed
	told    map[int]error
	undone  int // transactions that were taken back
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, answers: make(chan error), early: make(chan error, 10), told: make(map[int]error)}
	d.what, d.patience = "several", groupPatience
	d.write = func(ctx context.Context, _ string, next func() []int) error {
		select {
		case err := <-d.early:
			return err
		default:
		}
		if d.connect != nil {
			d.connect()
		}
		all := next()
		if len(all) == 0 { // everybody left
			return ctx.Err()
		}
		if again := next(); !slices.Equal(all, again) {
			t.Errorf("asked again: %v, before %v", again, all)
		}
		answers := d.answers
		if slow := d.slow[all[0]]; slow != nil {
			answers = slow
		}
		select {
		case err := <-answers:
			if err == nil {
				d.mu.Lock()
				d.written = append(d.written, all)
				d.mu.Unlock()
			}
			return err
		case <-ctx.Done():
			d.mu.Lock()
			d.undone++
			d.mu.Unlock()
			return ctx.Err()
		}
	}
	return d
}

// come lets callers come one after the other, and returns when each waits, or writes.
func (d *desk) come(ctx context.Context, all ...int) {
	for _, n := range all {
		go func() {
			err := d.do(ctx, "left", n)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.told[n] = err
		}()
		synctest.Wait()
	}
}

func (d *desk) answer(err error) { d.answers <- err; synctest.Wait() }

// expect compares what was written, in groups, and what callers were told.
func (d *desk) expect(written string, told string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := fmt.Sprint(d.written); got != written {
		d.t.Errorf("written %s, want %s", got, written)
	}
	if got := fmt.Sprint(d.told); got != told {
		d.t.Errorf("told %s, want %s", got, told)
	}
}

func TestCallersShareATransaction(t *testing.T) {
	for _, c := range []struct {
		says string
		test func(*desk)
	}{
		{"one alone writes by himself, and what comes meanwhile is written together", func(d *desk) {
			d.come(d.t.Context(), 1, 2, 3, 4)
			d.expect("[]", "map[]")
			d.answer(nil)
			d.expect("[[1]]", "map[1:<nil>]")
			d.come(d.t.Context(), 5)
			d.answer(nil)
			d.expect("[[1] [2 3 4]]", "map[1:<nil> 2:<nil> 3:<nil> 4:<nil>]")
			d.answer(nil)
			d.expect("[[1] [2 3 4] [5]]", "map[1:<nil> 2:<nil> 3:<nil> 4:<nil> 5:<nil>]")
			d.come(d.t.Context(), 6)
			d.answer(nil)
			d.expect("[[1] [2 3 4] [5] [6]]", "map[1:<nil> 2:<nil> 3:<nil> 4:<nil> 5:<nil> 6:<nil>]")
		}},
		{"an error is that of all who wrote together, and of nobody else", func(d *desk) {
			d.come(d.t.Context(), 1, 2, 3)
			d.answer(errors.New("first"))
			d.come(d.t.Context(), 4)
			d.answer(errors.New("second"))
			d.answer(nil)
			d.expect("[[4]]", "map[1:first 2:second 3:second 4:<nil>]")
		}},
		{"where no transaction comes about, all who wait are told", func(d *desk) {
			d.come(d.t.Context(), 1, 2, 3)
			d.early <- errors.New("no connection")
			d.answer(nil)
			d.expect("[[1]]", "map[1:<nil> 2:no connection 3:no connection]")
			d.come(d.t.Context(), 4)
			d.answer(nil)
			d.expect("[[1] [4]]", "map[1:<nil> 2:no connection 3:no connection 4:<nil>]")
		}},
		{"who leaves before his turn has nothing written", func(d *desk) {
			ctx, cancel := context.WithCancel(d.t.Context())
			d.come(d.t.Context(), 1)
			d.come(ctx, 2)
			d.come(d.t.Context(), 3)
			cancel()
			synctest.Wait()
			d.expect("[]", "map[2:left: context canceled]")
			d.answer(nil)
			d.answer(nil)
			d.expect("[[1] [3]]", "map[1:<nil> 2:left: context canceled 3:<nil>]")
		}},
		{"whose context ends later hears how it went", func(d *desk) {
			ctx, cancel := context.WithCancel(d.t.Context())
			d.come(d.t.Context(), 1)
			d.come(ctx, 2)
			d.come(d.t.Context(), 3)
			d.answer(nil)
			cancel()
			synctest.Wait()
			d.expect("[[1]]", "map[1:<nil>]")
			d.answer(nil)
			d.expect("[[1] [2 3]]", "map[1:<nil> 2:<nil> 3:<nil>]")
		}},
		{"who would have to wait for that leaves, and the others are written", func(d *desk) {
			ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
			defer cancel()
			d.come(d.t.Context(), 1)
			d.come(ctx, 2)
			d.come(d.t.Context(), 3)
			d.answer(nil)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			d.expect("[[1]]", "map[1:<nil> 2:left: context deadline exceeded]")
			d.answer(nil)
			d.expect("[[1] [2 3]]", "map[1:<nil> 2:left: context deadline exceeded 3:<nil>]")
		}},
		{"what nobody waits for any more is taken back, and who came meanwhile hears nothing of it", func(d *desk) {
			ctx, cancel := context.WithCancel(d.t.Context())
			d.come(d.t.Context(), 1)
			d.come(ctx, 2, 3)
			d.answer(nil)
			d.come(d.t.Context(), 4)
			cancel()
			synctest.Wait()
			d.expect("[[1]]", "map[1:<nil> 2:context canceled 3:context canceled]")
			if d.undone != 1 {
				d.t.Errorf("%d were taken back, want 1", d.undone)
			}
			d.answer(nil)
			d.expect("[[1] [4]]", "map[1:<nil> 2:context canceled 3:context canceled 4:<nil>]")
		}},
		{"who comes while nobody waits any more for a connection is written", func(d *desk) {
			ctx, cancel := context.WithCancel(d.t.Context())
			d.come(d.t.Context(), 1)
			d.come(ctx, 2)
			connected := make(chan struct{})
			d.connect = func() { <-connected }
			d.answer(nil)
			cancel()
			synctest.Wait()
			d.connect = nil
			d.come(d.t.Context(), 3)
			close(connected)
			synctest.Wait()
			d.answer(nil)
			d.expect("[[1] [3]]", "map[1:<nil> 2:left: context canceled 3:<nil>]")
		}},
		{"one who writes by himself is held to his own context", func(d *desk) {
			ctx, cancel := context.WithCancel(d.t.Context())
			d.come(ctx, 1)
			d.come(d.t.Context(), 2)
			cancel()
			synctest.Wait()
			d.expect("[]", "map[1:context canceled]")
			d.answer(nil)
			d.expect("[[2]]", "map[1:context canceled 2:<nil>]")
		}},
		{"who takes long holds up for a moment who comes meanwhile, and nobody after that", func(d *desk) {
			d.slow = map[int]chan error{1: make(chan error)}
			d.come(d.t.Context(), 1, 2, 3)
			time.Sleep(d.patience)
			synctest.Wait()
			d.come(d.t.Context(), 4)
			d.answer(nil)
			d.expect("[[2 3]]", "map[2:<nil> 3:<nil>]")
			d.answer(nil)
			d.come(d.t.Context(), 5)
			d.answer(nil)
			d.slow[1] <- nil
			synctest.Wait()
			d.expect("[[2 3] [4] [5] [1]]", "map[1:<nil> 2:<nil> 3:<nil> 4:<nil> 5:<nil>]")
		}},
		{"nor do several who take long, and each hears of his own transaction", func(d *desk) {
			d.slow = map[int]chan error{2: make(chan error)}
			ctx, cancel := context.WithCancel(d.t.Context())
			d.come(d.t.Context(), 1)
			d.come(ctx, 2, 3)
			d.answer(nil)
			d.come(d.t.Context(), 4, 5)
			time.Sleep(d.patience)
			synctest.Wait()
			cancel()
			synctest.Wait()
			d.expect("[[1]]", "map[1:<nil> 2:context canceled 3:context canceled]")
			d.answer(nil)
			d.expect("[[1] [4 5]]", "map[1:<nil> 2:context canceled 3:context canceled 4:<nil> 5:<nil>]")
		}},
		{"a panic is an error of those who write together, and ends nobody else", func(d *desk) {
			d.come(d.t.Context(), 1, 2, 3)
			d.connect = func() { d.connect = nil; panic("odd") }
			d.answer(nil)
			d.expect("[[1]]", "map[1:<nil> 2:several: panic: odd 3:several: panic: odd]")
			d.come(d.t.Context(), 4)
			d.answer(nil)
			d.expect("[[1] [4]]", "map[1:<nil> 2:several: panic: odd 3:several: panic: odd 4:<nil>]")
		}},
		{"more than fit share further ones", func(d *desk) {
			d.come(d.t.Context(), -1)
			for n := range groupLimit + 1 {
				go func() { _ = d.do(d.t.Context(), "", n) }()
			}
			synctest.Wait()
			d.answer(nil)
			d.answer(nil)
			d.answer(nil)
			if len(d.written) != 3 || len(d.written[1]) != groupLimit || len(d.written[2]) != 1 {
				d.t.Errorf("%d transactions", len(d.written))
			}
		}},
	} {
		t.Run(c.says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				c.test(d)
				d.wait()
				if d.busy || d.next != nil || len(d.waiting) > 0 {
					t.Errorf("it is left at work: %v", &d.group)
				}
			})
		})
	}
}

// TestACrowdIsToldTheTruth has many come and go at random: who was told that it is written finds it written, once; who left before
// his turn does not, and nobody is forgotten.
func TestACrowdIsToldTheTruth(t *testing.T) {
	const callers, each = 32, 50
	g := group[int]{patience: time.Millisecond}
	var mu sync.Mutex
	written := make(map[int]int)
	sizes := 0
	failed := errors.New("not written")
	g.write = func(ctx context.Context, _ string, next func() []int) error {
		if rand.IntN(50) == 0 {
			return failed
		}
		all := next()
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
		if rand.IntN(20) == 0 {
			return failed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		sizes = max(sizes, len(all))
		for _, n := range all {
			written[n]++
		}
		return nil
	}
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := range each {
				n := c*each + i
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(2000))*time.Microsecond)
				err := g.do(ctx, "", n)
				over := ctx.Err() != nil
				cancel()
				mu.Lock()
				times := written[n]
				mu.Unlock()
				switch {
				case err == nil && times != 1:
					t.Errorf("%d was told that it is written, and is %d times", n, times)
				case errors.Is(err, failed) && times != 0:
					t.Errorf("%d was told that it is not written, and is", n)
				case err != nil && !errors.Is(err, failed) && !over:
					t.Errorf("%d has all the time, and was told %v", n, err)
				}
			}
		})
	}
	all.Wait()
	g.wait()
	if g.busy || len(g.waiting) > 0 {
		t.Error("it is left at work")
	}
	for n, times := range written {
		if times > 1 {
			t.Errorf("%d was written %d times", n, times)
		}
	}
	if sizes < 2 {
		t.Error("nobody shared a transaction")
	}
}
