package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store/faultstore"
)

// verdict is what becomes of one call.
type verdict int

const (
	pass      verdict = iota
	fail              // the connection breaks somewhere in the call: before, in or behind its transaction
	cut               // the ledger is not reached
	killOn            // the process dies before the call
	killAfter         // the process dies behind it: it took effect, and nobody there hears of it
)

// errDead is what a process that is dead gets from everything.
var errDead = errors.New("this process is dead")

// waiter is a goroutine at the gate.
type waiter struct {
	name   string // the process, the call, and whom it is about: the same in each run of a seed
	p      *process
	ledger bool   // a call of the ledger, else one of a far side, or an answer of it
	looks  bool   // a call that changes nothing
	run    string // whose attempt it is; empty: of none
	ready  time.Time
	go_    chan verdict
}

// wait lets a goroutine of a process stand at the gate until it is let through. ctx tells nothing here: a process that is
// stopped does not notice that its time is over.
func (w *World) wait(p *process, wt waiter) verdict {
	wt.name, wt.p, wt.go_ = p.name+" "+wt.name, p, make(chan verdict, 1)
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return killOn
	}
	wt.ready = now()
	w.waiters = append(w.waiters, &wt)
	w.mu.Unlock()
	return <-wt.go_
}

// next takes the goroutine that goes on, by the seed. None: everybody waits for something else.
func (w *World) next() *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := now()
	var ready []*waiter
	for _, wt := range w.waiters {
		if !wt.ready.After(t) && !wt.p.paused(t) {
			ready = append(ready, wt)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	slices.SortStableFunc(ready, func(a, b *waiter) int { return strings.Compare(a.name, b.name) })
	wt := ready[w.rng.IntN(len(ready))]
	if w.held(wt) { // others go first
		ready = slices.DeleteFunc(ready, func(o *waiter) bool { return o.ready.After(t) || o.p.paused(t) })
		if len(ready) == 0 {
			return nil
		}
		wt = ready[w.rng.IntN(len(ready))]
	}
	w.waiters = slices.DeleteFunc(w.waiters, func(o *waiter) bool { return o == wt })
	return wt
}

// held reports whether a call takes its time, or its process is stopped right before it.
func (w *World) held(wt *waiter) bool {
	p, t := wt.p, now()
	switch {
	case !w.chaos():
		return false
	case wt.ledger && w.chance(w.mood.delay):
		wt.ready = t.Add(w.span(10*time.Millisecond, 20*time.Second))
		p.unwell(wt.ready)
		return true
	case !wt.looks && w.chance(w.mood.stall):
		w.stop(p, w.span(time.Second, lease)+w.span(0, 10*time.Minute))
		p.twin = wt.run
		return true
	}
	return false
}

// stop lets a process do nothing for a while, as SIGSTOP does. World.mu is held.
func (w *World) stop(p *process, d time.Duration) {
	if slices.ContainsFunc(w.waiters, func(wt *waiter) bool { return wt.p == p && strings.Contains(wt.name, " send ") }) {
		d = min(d, unsent)
	}
	p.until, p.twin = now().Add(d), ""
	p.unwell(p.until)
	w.tracef("%s is stopped for %s", p.name, d)
}

// soonest is when a goroutine at the gate may go on that cannot now.
func (w *World) soonest() (at time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wt := range w.waiters {
		t := wt.ready
		if wt.p.until.After(t) {
			t = wt.p.until
		}
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// judge decides what becomes of a call.
func (w *World) judge(wt *waiter) verdict {
	p := wt.p
	switch {
	case !w.chaos():
		return pass
	case w.chance(w.mood.kill):
		if w.rng.IntN(2) == 0 || !wt.ledger {
			return killOn
		}
		return killAfter
	case wt.ledger && now().Before(p.cutUntil):
		return cut
	case wt.ledger && !wt.looks && w.chance(w.mood.stall):
		p.cutUntil = now().Add(w.span(time.Second, 20*time.Minute))
		p.unwell(p.cutUntil)
		w.tracef("%s does not reach the ledger for %s", p.name, p.cutUntil.Sub(now()))
		return cut
	case wt.ledger && w.chance(w.mood.fail):
		return fail
	}
	return pass
}

// through lets one goroutine go on until it waits again.
func (w *World) through(wt *waiter) {
	v := w.judge(wt)
	if v != pass {
		wt.p.unwell(now())
	}
	w.tracef("%s%s", wt.name, [...]string{"", " FAILS", " CUT OFF", " KILLED", " KILLED BEHIND"}[v])
	w.steps++
	if v == killOn {
		w.kill(wt.p)
	}
	for _, p := range w.nodes { // one that was stopped goes on right beside the other that has its run now
		if wt.run != "" && p != wt.p && p.twin == wt.run {
			w.mu.Lock()
			p.twin, p.until = "", now()
			w.mu.Unlock()
		}
	}
	wt.go_ <- v
	synctest.Wait()
}

// call makes one call of the ledger, and looks at what it changed.
func call[T any](ctx context.Context, l *gated, name string, do func(context.Context) (T, error)) (T, error) {
	return callOf(ctx, l, "", name, do)
}

// callOf is call for the attempt of a run.
func callOf[T any](ctx context.Context, l *gated, run daybook.Key, name string, do func(context.Context) (T, error)) (T, error) {
	defer func() { l.p.w.history.observe(name) }()
	return reach(ctx, l, waiter{name: name, ledger: true, run: string(run)}, do)
}

// look makes one call of the ledger that changes nothing.
func look[T any](ctx context.Context, l *gated, name string, do func(context.Context) (T, error)) (T, error) {
	return reach(ctx, l, waiter{name: name, ledger: true, looks: true}, do)
}

func reach[T any](ctx context.Context, l *gated, wt waiter, do func(context.Context) (T, error)) (T, error) {
	var none T
	w, p, name := l.p.w, l.p, wt.name
	switch w.wait(p, wt) {
	case killOn:
		return none, daybook.New(daybook.CodeUnavailable, "%s", name).Because(errDead)
	case cut:
		return none, daybook.New(daybook.CodeUnavailable, "%s: the ledger is not reached", name)
	case fail:
		w.faults(faultstore.Rule{Op: [...]faultstore.Op{faultstore.Any, faultstore.Commit}[w.rng.IntN(2)], Nth: 1 + w.rng.IntN(4), After: w.rng.IntN(2) == 0})
		got, err := do(ctx)
		w.noFaults()
		return got, err
	case killAfter:
		got, err := do(ctx)
		w.kill(p)
		return got, errors.Join(err, daybook.New(daybook.CodeUnavailable, "%s", name).Because(errDead))
	default:
		got, err := do(ctx)
		if err != nil && ctx.Err() == nil && daybook.CodeOf(err) == daybook.CodeUnavailable {
			w.fault("the ledger failed by itself: %s: %v", name, err)
		}
		return got, err
	}
}

// do is call for what returns an error only.
func do(ctx context.Context, l *gated, name string, what func(context.Context) error) error {
	_, err := call(ctx, l, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, what(ctx) })
	return err
}

func (w *World) faults(r faultstore.Rule) {
	w.writeFaults.Add(r)
	if r.Op == faultstore.Any {
		w.readFaults.Add(r)
	}
}

func (w *World) noFaults() {
	w.writeFaults.Reset()
	w.readFaults.Reset()
}

func (w *World) tracef(format string, args ...any) {
	line := fmt.Sprintf("%s  %s", w.now().Format("01-02T15:04:05.000"), fmt.Sprintf(format, args...))
	w.traced.Write([]byte(line))
	w.trace = append(w.trace, line)
}
