// Package loop is the one loop that runs every service of Daybook: it calls Tick, waits, and calls it again.
//
// It knows nothing of what a service does and decides nothing for it; what it adds is the clock, the waiting, backing off
// after errors, surviving panics, and an end that leaves no Tick half done. It is called by engine, and by whoever else
// wires services together.
package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

const (
	everyDefault = time.Second
	// stepMax is the longest time during which the wall clock is not looked at. Timers stand still while a machine
	// sleeps, so a long wait is made of steps: after a suspend, or a leap of the clock, a service is at most this late.
	stepMax = 30 * time.Second
	// backoffMax is the longest wait after an error, for services that are called more often than that.
	backoffMax = 30 * time.Second
	// awayMax is that wait while the ledger cannot be reached: it is back in a moment, and then everything waits for the
	// loops.
	awayMax = 4 * time.Second
	// A service that always has more to do pauses after so many Ticks, so that it cannot keep a core, or the one writer
	// of the database, to itself.
	burstMax   = 100
	burstPause = time.Millisecond
)

// Item is one service and when it is called.
type Item struct {
	Name    string // stands in logs
	Service daybook.Service
	// Every is how long the loop waits after a Tick that had nothing more to do; zero: one second.
	Every time.Duration
	// Wake ends a wait early. Its sender must not block, so it has a capacity of one: a signal that comes during a Tick
	// is kept, further ones say nothing new. It only saves time; the poll stays the truth. May be nil.
	Wake <-chan struct{}
}

// Waiter is a service that knows when it will have something to do.
type Waiter interface {
	// Wait returns for how long after now there is nothing to do, as far as the service can know. It is asked after a
	// Tick without error and without more. The loop waits that long, but never longer than Every, because other
	// processes change the same rows.
	Wait(now time.Time) time.Duration
}

// Options of Run. The zero value is right for production.
type Options struct {
	Now func() time.Time // default: time.Now
	Log *slog.Logger     // default: slog.Default()
	// Pace is how much faster Now runs than time does: waits, which are meant by Now, are as much shorter. Default: 1.
	Pace float64
}

// Run calls every service, each in a goroutine of its own and first at once, until ctx is done. It returns when all of
// them have returned from their last Tick.
//
// An error, or a panic, of a Tick is logged here and nowhere else, and the next call is put off: by Every, then twice as
// long each time, up to 30 seconds, or 4 while the ledger is unavailable. A wake-up does not shorten that.
func Run(ctx context.Context, items []Item, o Options) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Pace <= 0 {
		o.Pace = 1
	}
	var all sync.WaitGroup
	for _, item := range items {
		if item.Every <= 0 {
			item.Every = everyDefault
		}
		r := &runner{Item: item, now: o.Now, pace: o.Pace, log: o.Log.With("service", item.Name)}
		all.Go(func() { r.run(ctx) })
	}
	all.Wait()
}

// runner runs one service.
type runner struct {
	Item
	now      func() time.Time
	pace     float64
	log      *slog.Logger
	failures int // in a row
	burst    int // Ticks in a row that had more to do
}

func (r *runner) run(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := r.tick(ctx)
		switch {
		case err != nil:
			r.burst = 0
			r.failures++
			r.failed(ctx, err)
		case more:
			r.succeeded()
			r.burst++
			if r.burst%burstMax == 0 {
				r.wait(ctx, burstPause, nil)
			} else {
				runtime.Gosched()
			}
		default:
			r.succeeded()
			r.burst = 0
			r.wait(ctx, r.idle(), r.Wake)
		}
	}
}

// tick calls the service once and turns a panic into an error.
func (r *runner) tick(ctx context.Context) (more bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			more, err = false, &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return r.Service.Tick(ctx, r.now())
}

// panicError is what a Tick panicked with.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// failed says what went wrong and puts the next call off.
func (r *runner) failed(ctx context.Context, err error) {
	var p *panicError
	panicked := errors.As(err, &p)
	if ctx.Err() != nil && !panicked {
		// The Tick was cut short, and what a database says of that has many forms. What it had not done is still in its
		// rows.
		r.log.Debug("tick cut short", "err", err)
		return
	}
	wait := r.backoff(errors.Is(err, daybook.ErrUnavailable))
	attrs := []any{"err", err, "failures", r.failures, "retry_in", wait}
	if hint := daybook.HintOf(err); hint != "" {
		attrs = append(attrs, "hint", hint)
	}
	if panicked {
		attrs = append(attrs, "stack", string(p.stack))
	}
	r.log.Error("tick", attrs...)
	// A wake-up is left in its channel: a service that is woken a thousand times a second must not try a database that
	// is down a thousand times a second.
	r.wait(ctx, wait, nil)
}

// succeeded ends a series of failures.
func (r *runner) succeeded() {
	if r.failures > 0 {
		r.log.Info("tick works again", "failures", r.failures)
		r.failures = 0
	}
}

// backoff returns the wait after the latest of some failures in a row.
func (r *runner) backoff(away bool) time.Duration {
	most := max(backoffMax, r.Every)
	if away {
		most = max(awayMax, r.Every)
	}
	wait := r.Every
	for range r.failures - 1 {
		if wait >= most {
			break
		}
		wait *= 2
	}
	return min(wait, most)
}

// idle returns the wait after a Tick that had nothing more to do.
func (r *runner) idle() time.Duration {
	if w, ok := r.Service.(Waiter); ok {
		// Zero and less is a pause too: a service that is wrong about having something to do must not spin.
		return min(max(w.Wait(r.now()), burstPause), r.Every)
	}
	return r.Every
}

// wait returns after d, or earlier when ctx is done, when woken, or when the wall clock says that d is over or has gone
// back.
func (r *runner) wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	// Without the monotonic reading, which a suspended machine does not advance.
	start := r.now().Round(0)
	end := start.Add(d)
	d = time.Duration(float64(d) / r.pace)
	timer := time.NewTimer(min(d, stepMax))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-wake:
			if open {
				return
			}
			// A sender that has gone wakes nobody, and its closed channel must not make a spinning loop of this one.
			r.Wake, wake = nil, nil
			continue
		case <-timer.C:
		}
		d -= min(d, stepMax)
		if now := r.now().Round(0); d <= 0 || now.Before(start) || !now.Before(end) {
			return
		}
		timer.Reset(min(d, stepMax))
	}
}
