package store_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// What an operation costs as the ledger grows. Small by itself, to see that it works; in full, on a quiet machine:
//
//	go test ./store -run TestGrowth -v -timeout 3h -growth 10000000 -growth.jobs 100000 -growth.waiting 10000
var (
	growth        = flag.Int("growth", 10_000, "finished runs of the largest ledger in TestGrowth")
	growthJobs    = flag.Int("growth.jobs", 1_000, "jobs of its ledgers")
	growthWaiting = flag.Int("growth.waiting", 100, "runs in them that wait for one serial key")
	growthRounds  = flag.Int("growth.rounds", 2, "how often each operation is measured at each size")
)

// finished makes runs that ended long ago, with what they leave behind, as wide as runs are.
var finished = []string{
	`INSERT INTO daybook_runs (key, job, label, date, start_us, end_us, cover_start_us, cover_end_us, fire, zone, tzdata, priority, lane, effects, work, revision, state, fence, claim, node,
  attempts, triggers, first_source, first_actor, created_us, started_us, ended_us, result, result_hash, pruned_us)
WITH RECURSIVE n (i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST($2 AS BIGINT))
SELECT 'old' || (i % 1000) || ':e' || (i + 100000000), 'old' || (i % 1000), 'e' || (i + 100000000), '2020-01-01', i, i + 1, i, i + 1, '2020-01-01T02:00', 'Europe/Berlin', '2026a', 'P1', 'live',
  'repeatable', 'timed', 1, 'done', 1, 'claim-of-a-run-that-ended-long-ago', 'node-1', 1, 1, 'schedule', 'daybook', i, i, i + 1, '{"sent": 1}',
  '0123456789012345678901234567890123456789012345678901234567890123', 0 FROM n`,
	`INSERT INTO daybook_attempts (key, fence, number, claim, node, result, claimed_us, ended_us)
SELECT key, 1, 1, claim, node, 'done', started_us, ended_us FROM daybook_runs WHERE job >= 'old' AND job < 'olf' AND start_us >= $1 AND start_us <= $2 AND parent = ''`,
	`INSERT INTO daybook_triggers (key, id, job, source, outcome, at_us)
SELECT key, 'id-of-a-trigger-' || label, job, 'event', 'started', created_us FROM daybook_runs WHERE job >= 'old' AND job < 'olf' AND start_us >= $1 AND start_us <= $2 AND parent = ''`,
}

// growing is a ledger that grows.
type growing struct {
	testing.TB
	s    *store.Store
	db   store.DB
	old  int // runs that ended long ago
	day  int // the next that is planned
	jobs []*daybook.Job
	lock *daybook.Job // many wait for its serial key
	from time.Time    // the cursor of that one
}

// apart is the home of the job whose runs share a serial key: others do not claim them.
const apart = "apart"

// operations are what is measured, each in microseconds for one.
var operations = []string{"plan", "claim", "renew", "step", "end", "hit", "serial"}

func TestGrowth(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			d := storetest.SQLite(t)
			if kind == "postgres" {
				d = storetest.PostgresAt(pgtest.Server(t, "shared_buffers=256MB", "max_wal_size=4GB").URL)
			}
			g := newGrowing(t, d)
			var first map[string]time.Duration
			var table strings.Builder
			fmt.Fprintf(&table, "%s: %d jobs, %d waiting for one key; µs for one, and times the first\n%-22s", kind, *growthJobs, *growthWaiting, "finished runs")
			for _, o := range operations {
				fmt.Fprintf(&table, "%16s", o)
			}
			row := func(name string, took map[string]time.Duration) {
				if first == nil {
					first = took
				}
				fmt.Fprintf(&table, "\n%-22s", name)
				for _, o := range operations {
					fmt.Fprintf(&table, "%16s", fmt.Sprintf("%.0f (%.2f×)", float64(took[o].Nanoseconds())/1000, float64(took[o])/float64(first[o])))
				}
			}
			for _, size := range []int{0, *growth / 100, *growth / 10, *growth} {
				g.grow(size)
				row(fmt.Sprint(size), g.measure(*growthRounds))
			}
			row("beside an idle reader", g.besideIdle(func() map[string]time.Duration { return g.measure(*growthRounds * 3) }))
			t.Log(table.String())
		})
	}
}

func newGrowing(t testing.TB, d storetest.Database) *growing {
	db := d.Open(t)
	s, err := open(t, db)
	if err != nil {
		t.Fatal(err)
	}
	g := &growing{TB: t, s: s, db: db}
	var changes []daybook.Revision
	for i := range *growthJobs {
		g.jobs = append(g.jobs, storetest.Job(fmt.Sprintf("j%06d", i), func(j *daybook.Job) { j.Steps = true }))
		changes = append(changes, daybook.Revision{Job: g.jobs[i]})
	}
	if _, err := s.TakeRevisions(t.Context(), changes, false, storetest.Birth); err != nil {
		t.Fatal(err)
	}
	g.lock = storetest.Job("renew", func(j *daybook.Job) { j.Serial, j.Overlap = "object", daybook.OverlapAllow })
	if _, err := s.TakeRevisions(t.Context(), []daybook.Revision{{Job: g.lock, Home: apart}}, false, storetest.Birth); err != nil {
		t.Fatal(err)
	}
	if err := s.Beat(t.Context(), daybook.Node{ID: "n1", Host: "h", Role: "serve", StartedAt: storetest.Birth}, storetest.Birth); err != nil {
		t.Fatal(err)
	}
	g.wait(*growthWaiting)
	g.serial() // parks the others
	return g
}

// grow makes finished runs until there are so many.
func (g *growing) grow(size int) {
	g.Helper()
	const chunk = 100_000
	for g.old < size {
		to := min(g.old+chunk, size)
		for _, statement := range finished {
			if _, err := g.db.Write.ExecContext(g.Context(), statement, int64(g.old), int64(to-1)); err != nil {
				g.Fatal(err)
			}
		}
		g.old = to
	}
	if g.old > 0 { // as its server does by itself after a while
		if _, err := g.db.Write.ExecContext(g.Context(), "ANALYZE"); err != nil {
			g.Fatal(err)
		}
	}
}

// measure returns the median of each operation.
func (g *growing) measure(rounds int) map[string]time.Duration {
	took := make(map[string][]time.Duration)
	note := func(o string, n int, do func()) {
		began := time.Now()
		do()
		took[o] = append(took[o], time.Since(began)/time.Duration(n))
	}
	for range rounds {
		const many = 1000
		n := min(many, len(g.jobs))
		from := storetest.Birth.AddDate(0, 0, g.day)
		g.day++
		var runs []*daybook.Run
		note("plan", n, func() { g.plan(g.jobs[:n], from) })
		now := from.AddDate(0, 0, 1)
		note("claim", n, func() { runs = g.claim("", n, now) })
		if len(runs) != n {
			g.Fatalf("claimed %d of %d", len(runs), n)
		}
		note("renew", n, func() {
			if notices, err := g.s.Renew(g.Context(), runs, now.Add(time.Hour), now); err != nil || len(notices) > 0 {
				g.Fatalf("%v %v", notices, err)
			}
		})
		ends := make([]daybook.Transition, len(runs))
		for i, r := range runs {
			if i < 30 {
				note("step", 1, func() { r = g.step(r, now) })
			}
			ends[i] = r.Next(daybook.Outcome{Result: daybook.ResultDone}, daybook.Policy{}, now)
		}
		note("end", n, func() { g.end(ends) })
		for range min(30, g.old) {
			key := daybook.Key(fmt.Sprintf("old%d:e%d", 0, 100_000_000+1000*rand.IntN(max(g.old/1000, 1))))
			note("hit", 1, func() { g.hit(key, now) })
		}
		if g.old == 0 {
			for _, r := range runs[:min(30, n)] {
				note("hit", 1, func() { g.hit(r.Key, now) })
			}
		}
		g.wait(10)
		for range 10 {
			note("serial", 1, g.serial)
		}
	}
	medians := make(map[string]time.Duration)
	for o, all := range took {
		slices.Sort(all)
		medians[o] = all[len(all)/2]
	}
	return medians
}

// plan plans one window of each job, as the scheduler does.
func (g *growing) plan(jobs []*daybook.Job, from time.Time) {
	w := storetest.Day(from.Format(time.DateOnly))
	for chunk := range slices.Chunk(jobs, 500) {
		var plans []*daybook.Plan
		for _, j := range chunk {
			plans = append(plans, &daybook.Plan{Job: j, Revision: 1, Source: daybook.SourceSchedule, From: from, To: from.AddDate(0, 0, 1),
				Windows: []daybook.PlannedWindow{{Window: w, Fires: []string{w.Label + "T02:00"}, FireAt: w.Start, Last: w.Start}}})
		}
		planned, err := g.s.Plan(g.Context(), plans, from.AddDate(0, 0, 1))
		if err != nil || planned[0].Started != 1 {
			g.Fatalf("%+v %v", planned[0], err)
		}
	}
}

// wait makes runs that share a serial key.
func (g *growing) wait(n int) {
	if g.from.IsZero() {
		g.from = storetest.Birth
	}
	p := &daybook.Plan{Job: g.lock, Home: apart, Revision: 1, Source: daybook.SourceSchedule, From: g.from, To: g.from.AddDate(0, 0, n)}
	for i := range n {
		w := storetest.Day(g.from.AddDate(0, 0, i).Format(time.DateOnly))
		p.Windows = append(p.Windows, daybook.PlannedWindow{Window: w, Fires: []string{w.Label + "T02:00"}, FireAt: w.Start, Last: w.Start})
	}
	planned, err := g.s.Plan(g.Context(), []*daybook.Plan{p}, p.To)
	if err != nil || planned[0].Started != n {
		g.Fatalf("%+v %v", planned[0], err)
	}
	g.from = p.To
}

func (g *growing) claim(home string, n int, now time.Time) []*daybook.Run {
	runs, err := g.s.Claim(g.Context(), daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Home: home, Limit: n, Lease: now.Add(time.Hour), NewID: storetest.NewID}, now)
	if err != nil {
		g.Fatal(err)
	}
	return runs
}

// step marks a step of a run begun and done.
func (g *growing) step(r *daybook.Run, now time.Time) *daybook.Run {
	mark := func(e *daybook.StepRecord) {
		if err := g.s.MarkStep(g.Context(), r, e, daybook.Learned{}); err != nil {
			g.Fatal(err)
		}
		r = r.With(e)
		r.Marks++
	}
	a := r.ComeTo(daybook.StepAsk{Step: "send", Call: storetest.NewID()}, daybook.Policy{}, now)
	mark(a.Record)
	mark(r.StepEnded(a.Record, daybook.Outcome{Result: daybook.ResultDone}, now))
	return r
}

func (g *growing) end(ends []daybook.Transition) {
	applied, err := g.s.Apply(g.Context(), ends)
	if err != nil {
		g.Fatal(err)
	}
	for i, a := range applied {
		if a.Stale {
			g.Fatalf("%s is stale", ends[i].Key)
		}
	}
}

// hit asks for a key that is done.
func (g *growing) hit(key daybook.Key, now time.Time) {
	reply, _, err := g.s.Trigger(g.Context(), daybook.Ask{Key: key, Source: daybook.SourceAPI}, nil, now)
	if err != nil || reply.Outcome != daybook.Reused {
		g.Fatalf("%s: %s %v", key, reply.Outcome, err)
	}
}

// serial does the one of those that wait for a serial key whose turn it is.
func (g *growing) serial() {
	runs := g.claim(apart, 16, farAhead)
	if len(runs) != 1 {
		g.Fatalf("claimed %d that share a key", len(runs))
	}
	g.end([]daybook.Transition{runs[0].Next(daybook.Outcome{Result: daybook.ResultDone}, g.lock.Policy(), farAhead)})
}

// besideIdle does something while a transaction stands open that has read once: what is dead since then is kept for it.
func (g *growing) besideIdle(do func() map[string]time.Duration) map[string]time.Duration {
	c, err := g.db.Read.Conn(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	defer c.Close()
	begin := "BEGIN"
	if g.db.Read == g.db.Write {
		begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
	}
	for _, statement := range []string{begin, "SELECT count(*) FROM daybook_locks"} {
		if _, err := c.ExecContext(g.Context(), statement); err != nil {
			g.Fatal(err)
		}
	}
	defer func() { _, _ = c.ExecContext(context.WithoutCancel(g.Context()), "ROLLBACK") }()
	return do()
}
