// Package daybooktest is for the tests of programs that use Daybook as a library: an engine on the caller's own database
// whose clock is moved by hand, so that a test of next month's renewals sleeps for nobody, and a drill that loses the worker
// where it hurts most. It brings no driver. Only tests import it.
package daybooktest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/engine"
)

// Birth is the time at which an Engine begins.
var Birth = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Engine is an engine that works when it is told to: Run, Advance and At do what is due, in the call. Jobs are handled, and
// keys triggered, as with any engine; what a program registers on an *engine.Engine is given its field.
type Engine struct {
	*engine.Engine
	t  testing.TB
	db engine.DB
	o  engine.Options

	mu  sync.Mutex
	now time.Time

	worker *engine.Engine // does the work; nil: it is opened when there is some
	loss   *loss          // nil: none
	edges  *edges         // nil: none
	kill   context.CancelFunc
}

// loss is the next worker to be lost.
type loss struct {
	job   string
	after bool // the work was done
	lost  bool
}

// New opens an engine on the caller's handles, whose ledger is made if there is none. The clock begins at Birth. Of the
// options, at most one is given; its clock is replaced.
func New(t testing.TB, db engine.DB, options ...engine.Options) *Engine {
	t.Helper()
	e := &Engine{t: t, db: db, now: Birth}
	if len(options) > 0 {
		e.o = options[0]
	}
	if e.o.Log == nil {
		e.o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	}
	e.o.ByHand, e.o.Now = true, e.Now
	e.o.Boot = func() time.Duration { return e.Now().Sub(Birth) }
	e.Engine = e.open()
	return e
}

func (e *Engine) open() *engine.Engine {
	e.t.Helper()
	opened, err := engine.Open(e.t.Context(), e.db, e.o)
	if err != nil {
		e.t.Fatalf("open the ledger: %v", err)
	}
	e.t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// Now is the time by the moved clock.
func (e *Engine) Now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

func (e *Engine) set(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = at
}

// Run does what is due now, and what becomes due by it, and returns when nothing is left.
func (e *Engine) Run() {
	e.t.Helper()
	if err := e.run(); err != nil {
		e.t.Fatalf("run what is due at %s: %v", e.Now().Format(time.RFC3339), err)
	}
}

// run lets the worker work. One that is lost in the middle writes nothing more, and the next one begins as a new process.
func (e *Engine) run() error {
	if e.worker == nil {
		if err := e.Err(); err != nil {
			return err
		}
		e.worker = e.open()
		definitions := e.Definitions()
		for i := range definitions {
			definitions[i].Do = e.watched(definitions[i].Do)
		}
		if err := e.worker.Define(definitions...); err != nil {
			return err
		}
	}
	if n := len(e.Definitions()); n != len(e.worker.Definitions()) {
		return daybook.Invalid("a job was handled after the first Run").WithHint("handle all of them first, as a program does before Start")
	}
	ctx, kill := context.WithCancel(e.t.Context())
	defer kill()
	e.mu.Lock()
	e.kill = kill
	e.mu.Unlock()
	err := e.worker.RunDue(ctx)
	if ctx.Err() != nil && e.t.Context().Err() == nil { // the worker was lost; whatever it was at is cut off
		e.worker = nil
		return nil
	}
	return err
}

// lose says how the next worker on a job is to be lost.
func (e *Engine) lose(l *loss) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loss = l
}

func (e *Engine) lost(l *loss) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return l.lost
}

// watched is work during which the worker may be lost.
func (e *Engine) watched(do func(context.Context, *daybook.Run) error) func(context.Context, *daybook.Run) error {
	return func(ctx context.Context, r *daybook.Run) error {
		e.mu.Lock()
		l, kill := e.loss, e.kill
		if g := e.edges; g != nil && g.job == r.Job {
			e.mu.Unlock()
			return g.work(ctx, r, do)
		}
		mine := l != nil && l.job == r.Job
		if mine {
			e.loss = nil
		}
		e.mu.Unlock()
		if !mine {
			return do(ctx, r)
		}
		var err error
		if l.after {
			err = do(ctx, r)
		}
		e.mu.Lock()
		l.lost = true
		e.mu.Unlock()
		kill()
		return err
	}
}

// Advance moves the clock ahead. Whatever becomes due on the way is done at its own time.
func (e *Engine) Advance(d time.Duration) {
	e.t.Helper()
	e.At(e.Now().Add(d))
}

// At moves the clock to an instant. Before anything was run it is simply set, and jobs are first known then; later it only
// goes ahead, and whatever becomes due on the way is done at its own time.
func (e *Engine) At(at time.Time) {
	e.t.Helper()
	if e.worker == nil && e.Now().Equal(Birth) {
		e.set(at)
		e.Run()
		return
	}
	if at.Before(e.Now()) {
		e.t.Fatalf("the clock stands at %s: it is not moved back to %s", e.Now().Format(time.RFC3339), at.Format(time.RFC3339))
	}
	for {
		e.Run()
		next, err := e.next()
		if err != nil {
			e.t.Fatal(err)
		}
		if next.IsZero() || next.After(at) {
			break
		}
		e.set(calendar.Later(next, e.Now().Add(time.Microsecond)))
	}
	e.set(at)
	e.Run()
}

// next is when the worker has something to do next.
func (e *Engine) next() (time.Time, error) {
	if e.worker == nil {
		return time.Time{}, nil
	}
	return e.worker.NextDue(e.t.Context())
}
