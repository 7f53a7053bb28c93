package control_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// ops is the person of the tests.
var ops = control.Person{Name: "ops"}

// bench is a control over a real ledger, with a clock moved by hand.
type bench struct {
	*control.Control
	t   *testing.T
	ctx context.Context
	s   *store.Store
	db  store.DB // for states that no rule makes yet

	lite bool // on SQLite

	mu      sync.Mutex
	now     time.Time
	woken   int
	defined map[string]*daybook.Job
}

// each runs a test on a ledger of each kind of database.
func each(t *testing.T, test func(b *bench)) {
	t.Helper()
	for _, kind := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		name := kind(t).Name
		t.Run(name, func(t *testing.T) { test(newBench(t, kind(t))) })
	}
}

// lite runs a test on SQLite only: what it looks at is not the store.
func lite(t *testing.T, test func(b *bench)) {
	t.Helper()
	test(newBench(t, storetest.SQLite(t)))
}

func newBench(t *testing.T, d storetest.Database) *bench {
	b := &bench{t: t, ctx: t.Context(), s: storetest.Ledger(t, d), db: d.Open(t), lite: d.Name == "sqlite", now: storetest.Birth, defined: map[string]*daybook.Job{}}
	b.Control = control.New(b.s, control.Options{
		Clock: func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.now },
		Wake:  func() { b.mu.Lock(); defer b.mu.Unlock(); b.woken++ },
		Defined: func(name string) (*daybook.Job, bool) {
			j, ok := b.defined[name]
			return j, ok
		},
	})
	return b
}

func (b *bench) at(t time.Time)        { b.mu.Lock(); defer b.mu.Unlock(); b.now = t }
func (b *bench) after(d time.Duration) { b.at(b.now.Add(d)) }

// job makes a job known, completed as a file would be.
func (b *bench) job(j daybook.Job) *daybook.Job {
	b.t.Helper()
	if j.Owner == "" {
		j.Owner = "ops"
	}
	if j.Timezone == "" {
		j.Timezone = "UTC"
	}
	if j.Command.IsZero() {
		j.Command = daybook.Command{Argv: []string{"true"}}
	}
	var days *calendar.Days
	if j.Calendar != "" {
		days, _ = calendar.Embedded(j.Calendar)
	}
	done, _, err := calendar.Complete(j, days)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.s.TakeRevisions(b.ctx, []daybook.Revision{{Job: &done}}, false, b.now); err != nil {
		b.t.Fatal(err)
	}
	return &done
}

func (b *bench) trigger(q control.Request) control.Answer {
	b.t.Helper()
	a, err := b.Trigger(b.ctx, ops, q)
	if err != nil {
		b.t.Fatalf("trigger %+v: %v", q, err)
	}
	return a
}

func (b *bench) refusedWith(code daybook.Code, q control.Request) error {
	b.t.Helper()
	a, err := b.Trigger(b.ctx, ops, q)
	if daybook.CodeOf(err) != code {
		b.t.Fatalf("trigger %+v: %v (%v), want an error with code %s", q, err, a.Line(), code)
	}
	return err
}

// claim lets an executor take a run and begin it.
func (b *bench) claim(k daybook.Key) *daybook.Run {
	b.t.Helper()
	runs, err := b.s.Claim(b.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 1, Key: k, Lease: b.now.Add(time.Minute), NewID: storetest.NewID}, b.now)
	if err != nil || len(runs) != 1 {
		b.t.Fatalf("claim %s: %d runs, %v", k, len(runs), err)
	}
	r := runs[0]
	if r.State != daybook.Running {
		return r // a question
	}
	var e *daybook.StepRecord
	if r.OneEffect() {
		var ok bool
		if e, ok = r.Begin(b.policy(k), b.now); !ok {
			b.t.Fatalf("%s may not begin", k)
		}
	}
	if err := b.s.Begin(b.ctx, r, e, b.now); err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) policy(k daybook.Key) daybook.Policy {
	b.t.Helper()
	j, err := b.s.Definition(b.ctx, k.Job())
	if err != nil {
		b.t.Fatal(err)
	}
	return j.Policy()
}

// end claims a run and lets it end.
func (b *bench) end(k daybook.Key, o daybook.Outcome) *daybook.Run {
	b.t.Helper()
	r := b.claim(k)
	storetest.Apply(b.ctx, b.t, b.s, r.Next(o, b.policy(k), b.now))
	return b.run(k)
}

func (b *bench) run(k daybook.Key) *daybook.Run {
	b.t.Helper()
	return storetest.Find(b.ctx, b.t, b.s, k)
}

// sql changes the ledger behind everybody's back.
func (b *bench) sql(statement string) {
	b.t.Helper()
	if _, err := b.db.Write.ExecContext(b.ctx, statement); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) beat(n daybook.Node) {
	b.t.Helper()
	if n.ID == "" {
		n.ID = "n1"
	}
	if n.Role == "" {
		n.Role = "serve"
	}
	if n.TZData == "" {
		n.TZData, _ = calendar.TZData()
	}
	if err := b.s.Beat(b.ctx, n, b.now); err != nil {
		b.t.Fatal(err)
	}
}

// plan lets a scheduler decide windows of a job, all of them missed.
func (b *bench) plan(j *daybook.Job, to time.Time, windows ...daybook.PlannedWindow) {
	b.t.Helper()
	states, err := b.s.JobStates(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, st := range states {
		if st.Name != j.Name {
			continue
		}
		done, err := b.s.Plan(b.ctx, []*daybook.Plan{{Job: j, Revision: st.Revision, Source: daybook.SourceSchedule, From: st.Cursor, To: to, Windows: windows}}, b.now)
		if err != nil || done[0].Stale {
			b.t.Fatalf("plan: %+v %v", done, err)
		}
	}
}

// missed is a daily window that nobody ran, with its fire at 02:00 UTC.
func missed(date string) daybook.PlannedWindow {
	w := storetest.Day(date)
	fire := w.Start.Add(2 * time.Hour)
	return daybook.PlannedWindow{Window: w, Fires: []string{date + "T02:00"}, FireAt: fire, Last: fire, Missed: true}
}

func day(date string) time.Time { return storetest.Day(date).Start }

func utc(text string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

const aMinute = time.Minute

func nowOf(b *bench) func() time.Time {
	return func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.now }
}
