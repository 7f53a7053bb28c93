package daybooktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// edges are the boundaries of the steps of a job: at each of them a worker is lost once. Between them it is watched what the
// count does.
type edges struct {
	job   string
	count func() int
	kill  func() // loses the worker that is at work

	mu       sync.Mutex
	keys     map[daybook.Key]bool // that were worked on
	lost     map[string]bool
	happened map[string]bool // steps of a key whose work has said that it is done
	rose     map[string]bool // steps of a key, or the key alone for what is in none, by which the count rose
	active   int             // steps that are being done
	blurred  bool            // several were at once: nobody can tell which of them the count rose by
	last     int             // the count as it was seen last
	full     bool            // the work ran to its end
	parts    bool            // and was that of one of several subjects
	once     int             // the count then, for the first time
	fault    string
}

func newEdges(job string, count func() int, kill func()) *edges {
	return &edges{job: job, count: count, kill: kill, keys: map[daybook.Key]bool{}, lost: map[string]bool{}, happened: map[string]bool{}, rose: map[string]bool{}, last: count()}
}

// errDied is what work is told whose worker is lost.
var errDied = errors.New("the drill has lost this worker")

// work does one attempt, which ends at the first boundary at which no worker was lost yet.
func (e *edges) work(ctx context.Context, r *daybook.Run, do func(context.Context, *daybook.Run) error) error {
	b := &edgeBook{StepBook: r.Book(), e: e, key: r.Key, before: map[string]int{}}
	r.Keep(b)
	e.mu.Lock()
	e.keys[r.Key] = true
	e.mu.Unlock()
	err := do(ctx, r)
	e.mu.Lock()
	e.outside(r.Key, "the end of the work")
	if err == nil && !b.died && !e.full {
		e.full, e.once, e.parts = true, e.count(), r.Subject != ""
	}
	e.mu.Unlock()
	if err == nil {
		err = b.edge("the end of the work")
	}
	return err
}

// outside looks at what the count did while no step was being done. e.mu is held.
func (e *edges) outside(key daybook.Key, at string) {
	now := e.count()
	if now != e.last && e.active == 0 && !e.blurred {
		e.risen(string(key), fmt.Sprintf("outside of every step, before %s", at), e.last, now)
	}
	e.last = now
}

// risen notes that the count rose by something, which may be so once. e.mu is held.
func (e *edges) risen(by, where string, from, to int) {
	if e.rose[by] && e.fault == "" {
		e.fault = fmt.Sprintf("count went from %d to %d %s, and had risen there before: it happened again", from, to, where)
	}
	e.rose[by] = true
}

func (e *edges) faulty() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fault
}

// edgeBook keeps the steps of one attempt, until its worker is lost.
type edgeBook struct {
	daybook.StepBook
	e      *edges
	key    daybook.Key
	died   bool
	before map[string]int // the count when a step began
}

// edge is a boundary: the worker is lost there, unless one was before. Then nothing it does reaches the ledger any more.
func (b *edgeBook) edge(at string) error {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	if b.died {
		return errDied
	}
	if b.e.lost[at] {
		return nil
	}
	b.e.lost[at], b.died, b.e.active = true, true, 0
	b.e.kill()
	return errDied
}

// Come implements daybook.StepBook.
func (b *edgeBook) Come(ctx context.Context, ask daybook.StepAsk) (daybook.StepAnswer, error) {
	b.e.mu.Lock()
	b.e.outside(b.key, "step "+ask.Step)
	b.e.mu.Unlock()
	if err := b.edge("before " + ask.Step); err != nil {
		return daybook.StepAnswer{}, err
	}
	a, err := b.StepBook.Come(ctx, ask)
	if err != nil {
		return a, err
	}
	if err := b.edge("begun " + ask.Step); err != nil {
		return daybook.StepAnswer{}, err
	}
	if a.Do == daybook.StepBegin {
		b.begin(ask.Step)
	}
	return a, nil
}

func (b *edgeBook) begin(step string) {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	if b.e.active++; b.e.active > 1 {
		b.e.blurred = true
	}
	b.before[step] = b.e.count()
}

// ended notes what came of the work of a step.
func (b *edgeBook) ended(step string, done bool) {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	b.e.active = max(b.e.active-1, 0)
	now, id := b.e.count(), string(b.key)+"#"+step
	if now != b.before[step] && !b.e.blurred {
		b.e.risen(id, "in step "+step, b.before[step], now)
	}
	b.e.last = now
	if done || now != b.before[step] {
		b.e.happened[id] = true
	}
}

// End implements daybook.StepBook.
func (b *edgeBook) End(ctx context.Context, r *daybook.StepRecord, o daybook.Outcome) (daybook.StepAnswer, error) {
	b.ended(r.Step, o.Result == daybook.ResultDone)
	if err := b.edge("done " + r.Step); err != nil {
		return daybook.StepAnswer{}, err
	}
	a, err := b.StepBook.End(ctx, r, o)
	if err == nil {
		err = b.edge("told " + r.Step)
	}
	return a, err
}

// Found implements daybook.StepBook.
func (b *edgeBook) Found(ctx context.Context, r *daybook.StepRecord, found []daybook.Finding, at time.Time) (daybook.StepAnswer, error) {
	if err := b.edge("asked about " + r.Step); err != nil {
		return daybook.StepAnswer{}, err
	}
	a, err := b.StepBook.Found(ctx, r, found, at)
	if err == nil {
		err = b.edge("found " + r.Step)
	}
	if err == nil && a.Do == daybook.StepBegin {
		b.begin(r.Step)
	}
	return a, err
}

// EndTx implements daybook.StepBook. A worker that is lost in a transaction never commits it.
func (b *edgeBook) EndTx(ctx context.Context, tx *sql.Tx, r *daybook.StepRecord) error {
	b.ended(r.Step, false)
	if err := b.StepBook.EndTx(ctx, tx, r); err != nil {
		return err
	}
	return b.edge("in the transaction of " + r.Step)
}
