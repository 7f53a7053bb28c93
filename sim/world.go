package sim

import (
	"container/heap"
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/memdir"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
)

// Plants are bugs, put in from outside to see whether the checkers find them. Either may be nil.
type Plants struct {
	Ledger func(w *World, l Ledger) Ledger
	OfWork func(executor.Work) executor.Work
}

// Work is how a job is done, with the bug.
func (p Plants) Work(k executor.Work) executor.Work {
	if p.OfWork == nil {
		return k
	}
	return p.OfWork(k)
}

// Report is what came of a seed.
type Report struct {
	Faults []string // promises that were broken, oldest first
	Trace  []string // everything that happened
	Hash   uint64   // of the trace: equal seeds have equal ones
	Steps  int      // calls that went through the gate
	Runs   int
	Booked int // entries of the far side
	Kills  int
	Letter int // dead letters opened
	Acts   int // of people
}

// World is one simulation.
type World struct {
	ctx    context.Context
	rng    *rand.Rand
	start  time.Time // of the bubble
	base   time.Time // what the simulated clock says then
	zone   string
	fans   bool // some job has subjects
	mood   mood
	log    *slog.Logger
	plants Plants

	db                      store.DB
	writeFaults, readFaults *faultstore.Faults
	store                   *store.Store
	planted                 Ledger
	ids                     int

	mu        sync.Mutex
	waiters   []*waiter
	graves    []*process
	version   int // of the definitions
	changedAt time.Time
	calm      bool

	nodes   []*process
	people  []*process
	lives   int
	specs   []*spec
	far     *far
	events  events
	made    int // events
	history *history
	asks    *asked
	acting  int // acts of people that are not over

	trace  []string
	traced hash.Hash64
	steps  int
	report Report
}

// now is the time of the simulated world.
func (w *World) now() time.Time { return w.base.Add(now().Sub(w.start)) }

// real is the instant of the bubble that is an instant of the simulated world.
func (w *World) real(at time.Time) time.Time { return w.start.Add(at.Sub(w.base)) }

// chaos reports whether anything may go wrong now.
func (w *World) chaos() bool { return !w.calm }

// newID makes ids that sort in the order in which they are made.
func (w *World) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("id-%08d", w.ids)
}

// fault notes a broken promise.
func (w *World) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tracef("BROKEN: %s", text)
	w.report.Faults = append(w.report.Faults, text)
}

// event is something that happens at an instant of the bubble.
type event struct {
	at time.Time
	n  int
	do func()
}

type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push and Pop implement heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(*event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// at lets something happen at an instant.
func (w *World) at(t time.Time, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	heap.Push(&w.events, &event{t, w.made, do})
}

// due takes the next event whose time has come.
func (w *World) due() *event {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 || w.events[0].at.After(now()) {
		return nil
	}
	return heap.Pop(&w.events).(*event)
}

// template is an empty ledger, copied for each seed.
type template struct {
	dir  string
	file []byte
}

const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate"

func (w *World) open(t testing.TB, path string) {
	t.Helper()
	source := "file:" + path + pragmas
	w.writeFaults, w.readFaults = faultstore.New(1), faultstore.New(2)
	var err error
	if w.db.Write, err = faultstore.Open("sqlite", source, w.writeFaults); err != nil {
		t.Fatal(err)
	}
	if w.db.Read, err = faultstore.Open("sqlite", source, w.readFaults); err != nil {
		t.Fatal(err)
	}
	w.db.Write.SetMaxOpenConns(1)
	w.db.Read.SetMaxOpenConns(2)
	if w.store, err = store.Open(w.ctx, w.db, store.Options{NewID: w.newID, Migrate: true, Now: w.now()}); err != nil {
		t.Fatal(err)
	}
}

func (w *World) close() {
	_ = w.store.Close()
	_ = w.db.Write.Close()
	_ = w.db.Read.Close()
	w.history.close()
}

// newTemplate makes the empty ledger that each seed begins with.
func newTemplate(t testing.TB) *template {
	t.Helper()
	tpl := &template{dir: memdir.Dir(t)}
	path := filepath.Join(tpl.dir, "template.db")
	w := &World{ctx: t.Context(), base: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), start: now()}
	w.open(t, path)
	for _, text := range historySchema() {
		if _, err := w.db.Write.ExecContext(w.ctx, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	w.history = newHistory(t, w, path)
	w.close()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tpl.file = file
	return tpl
}

// run simulates a seed, in a bubble of its own.
func (tpl *template) run(t *testing.T, seed uint64, plants Plants) (r Report) {
	t.Helper()
	path := filepath.Join(tpl.dir, fmt.Sprintf("%s-%d.db", filepath.Base(t.Name()), seed))
	if err := os.WriteFile(path, tpl.file, 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + end)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := &World{ctx: t.Context(), rng: rand.New(rand.NewPCG(seed, 0x5eed)), start: now(), plants: plants, traced: fnv.New64a(), version: 1}
		w.log = slog.New(slog.DiscardHandler)
		w.setUp()
		w.open(t, path)
		w.history = newHistory(t, w, path)
		defer w.close()
		w.planted = w.store
		if plants.Ledger != nil {
			w.planted = plants.Ledger(w, w.store)
		}
		w.live()
		r = w.report
		r.Trace, r.Hash, r.Steps, r.Booked = w.trace, w.traced.Sum64(), w.steps, len(w.far.book)
	})
	return r
}

// setUp makes what a seed decides before anything happens.
func (w *World) setUp() {
	w.zone = zones[w.rng.IntN(len(zones))]
	w.base = w.nearAChange(2022 + w.rng.IntN(9)).Add(-w.span(time.Hour, 30*time.Hour))
	bad := w.rng.Float64()
	w.mood = mood{kill: bad * 0.012, fail: bad * 0.015, delay: bad * 0.05, stop: bad, stall: bad * 0.03, partition: bad * 0.5, far: 0.1 + 0.6*w.rng.Float64(),
		down: []time.Duration{time.Minute, 20 * time.Minute, 12 * time.Hour, 60 * time.Hour}[w.rng.IntN(4)]}
	w.far = &far{w: w, kept: make(map[string]*request)}
	w.asks = newAsked()
	w.makeJobs()
}

// nearAChange is an instant of a year at which the clocks of the zone change, or some instant where they never do.
func (w *World) nearAChange(year int) time.Time {
	loc, err := time.LoadLocation(w.zone)
	if err != nil {
		panic(err)
	}
	var changes []time.Time
	at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	_, offset := at.In(loc).Zone()
	for ; at.Year() == year; at = at.Add(6 * time.Hour) {
		if _, o := at.In(loc).Zone(); o != offset {
			changes, offset = append(changes, at), o
		}
	}
	if len(changes) == 0 {
		return time.Date(year, time.Month(1+w.rng.IntN(12)), 1+w.rng.IntN(28), 0, 0, 0, 0, time.UTC)
	}
	return changes[w.rng.IntN(len(changes))]
}

// live is the whole simulation: days of trouble, then quiet until everything is settled, then the questions of the end.
func (w *World) live() {
	for i := range 2 {
		w.nodes = append(w.nodes, w.node(fmt.Sprintf("n%d", i)))
		w.people = append(w.people, w.person(fmt.Sprintf("p%d", i)))
	}
	w.at(now().Add(w.span(time.Minute, time.Hour)), w.trouble)
	w.at(now().Add(w.span(time.Minute, 4*time.Hour)), w.visit)
	w.at(now().Add(w.span(time.Hour, 50*time.Hour)), w.deploy)
	w.at(now().Add(w.span(time.Hour, 40*time.Hour)), w.outage)
	w.until(now().Add(36*time.Hour+w.span(0, 30*time.Hour)), nil)
	w.quiet()
	if !w.until(now().Add(5*24*time.Hour), w.settled) {
		w.unsettled()
	}
	w.ends()
	w.threeTimes()
	for _, p := range append(w.nodes, w.people...) {
		w.kill(p)
	}
	w.bury()
	sleep(11 * lease) // what a dead process still waits for: it tells the end of a step for ten leases
	synctest.Wait()
}

// until lets the world go on until an instant, or until it is as it should be.
func (w *World) until(end time.Time, enough func() bool) bool {
	for now().Before(end) {
		synctest.Wait()
		w.bury()
		if e := w.due(); e != nil {
			e.do()
			continue
		}
		if wt := w.next(); wt != nil {
			sleep(w.span(50*time.Microsecond, 8*time.Millisecond))
			if wt.p.dead {
				continue
			}
			w.through(wt)
			continue
		}
		rows := w.history.standing()
		at, started := w.tick(rows, end)
		if started {
			continue
		}
		if enough != nil && enough() {
			return true
		}
		sleep(max(at.Sub(now()), time.Microsecond))
	}
	return false
}

// tick starts the next service whose time has come; else it tells when something happens next.
func (w *World) tick(rows standing, end time.Time) (at time.Time, started bool) {
	at = end
	for _, p := range w.nodes {
		if p.dead || p.paused(now()) {
			continue
		}
		for _, s := range p.services {
			t, ok := p.wants(s, rows)
			if ok && !t.After(now()) {
				p.start(s)
				return at, true
			}
			if ok && t.Before(at) {
				at = t
			}
		}
	}
	w.mu.Lock()
	if len(w.events) > 0 && w.events[0].at.Before(at) {
		at = w.events[0].at
	}
	w.mu.Unlock()
	if t, ok := w.soonest(); ok && t.Before(at) {
		at = t
	}
	for _, p := range w.nodes { // one that is stopped goes on
		if !p.dead && p.paused(now()) && p.until.Before(at) {
			at = p.until
		}
	}
	return at, false
}

// trouble comes again and again while there is chaos: a node stops, dies, loses the ledger, or its clock steps.
func (w *World) trouble() {
	if !w.chaos() {
		return
	}
	w.at(now().Add(w.span(20*time.Second, 5*time.Hour)), w.trouble)
	p := w.nodes[w.rng.IntN(len(w.nodes))]
	if p.dead {
		return
	}
	switch {
	case w.chance(w.mood.stop):
		w.mu.Lock()
		w.stop(p, w.span(time.Second, 2*time.Hour))
		w.mu.Unlock()
	case w.chance(w.mood.partition):
		p.cutUntil = now().Add(w.span(time.Second, 40*time.Minute))
		p.unwell(p.cutUntil)
		w.tracef("%s does not reach the ledger for %s", p.name, p.cutUntil.Sub(now()))
	case w.chance(0.3):
		w.mu.Lock()
		p.offset = w.span(-1200*time.Millisecond, 1200*time.Millisecond)
		w.mu.Unlock()
	case w.chance(w.mood.stop / 2):
		w.kill(p)
	}
}

// afterDeath lets a node, or a person, begin anew.
func (w *World) afterDeath(p *process) {
	w.report.Kills++
	for i, o := range w.nodes {
		if o == p {
			w.at(now().Add(w.span(time.Second, w.mood.down)), func() {
				if w.nodes[i] == p {
					w.nodes[i] = w.node(p.name[:2])
				}
			})
		}
	}
	for i, o := range w.people {
		if o == p {
			w.people[i] = w.person(p.name[:2])
		}
	}
}

// deploy brings other definitions.
func (w *World) deploy() {
	if !w.chaos() {
		return
	}
	w.mu.Lock()
	w.version++
	w.changedAt = now()
	w.mu.Unlock()
	w.tracef("definitions %d", w.version)
	if w.rng.IntN(2) == 0 {
		w.at(now().Add(w.span(10*time.Second, 20*time.Hour)), w.deploy)
	}
}

// quiet ends all trouble: nodes live, the far side does what it is asked, and people settle what is left.
func (w *World) quiet() {
	w.tracef("QUIET")
	w.calm = true
	for i, p := range w.nodes {
		w.mu.Lock()
		p.until, p.cutUntil = time.Time{}, time.Time{}
		w.mu.Unlock()
		if p.dead {
			w.nodes[i] = w.node(p.name[:2])
		}
	}
	w.at(now().Add(15*time.Minute), w.tidy)
}
