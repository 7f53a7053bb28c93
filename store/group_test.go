package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
	"github.com/daybook-run/daybook/store/storetest"
)

// crowd is many runs that are at work at once. The first of those who write holds the ledger until the others wait behind him, so that
// they share the next transaction.
type crowd struct {
	*testing.T
	name string
	s    *store.Store // with faults in between
	f    *faultstore.Faults
	db   *sql.DB // to look behind its back, and to change it there
	runs []*daybook.Run

	commits  atomic.Int64
	returned atomic.Int64 // how many were answered
	mu       sync.Mutex
	said     []daybook.Mark // by the witness
	forgot   atomic.Int64
	early    atomic.Bool // somebody of those together was answered before the witness knew
	odd      atomic.Bool // whoever needs an id panics
}

const crowdJob = "renew"

func newCrowd(t *testing.T, kind func(testing.TB) storetest.Database, n int, change ...func(*daybook.Job)) *crowd {
	t.Helper()
	d, f := kind(t), faultstore.New(1)
	c := &crowd{T: t, name: d.Name, f: f}
	handles := d.Faulty(t, f)
	var err error
	c.s, err = store.Open(t.Context(), handles, store.Options{NewID: c.newID, Migrate: true, Now: storetest.Birth, Witness: c.witness, Forgot: func() { c.forgot.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.s.Close() })
	c.db = d.Open(t).Write
	now := storetest.Birth
	c.ok(c.s.Beat(t.Context(), daybook.Node{ID: "n1", Host: "a", Role: "serve", StartedAt: now}, now))
	j := storetest.Job(crowdJob, append([]func(*daybook.Job){storetest.Once, func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow }}, change...)...)
	for i := range n {
		storetest.Add(t.Context(), t, c.s, j, now.AddDate(0, 0, i).Format(time.DateOnly), now)
	}
	c.runs = storetest.Claim(t.Context(), t, c.s, n, now)
	if len(c.runs) != n {
		t.Fatalf("claimed %d of %d", len(c.runs), n)
	}
	slices.SortFunc(c.runs, func(a, b *daybook.Run) int { return strings.Compare(string(a.Key), string(b.Key)) })
	c.said = nil
	f.Add(faultstore.Rule{Op: faultstore.Commit, Hook: func(context.Context, faultstore.Call) error { c.commits.Add(1); return nil }})
	return c
}

func (c *crowd) newID() string {
	if c.odd.Load() {
		panic("odd")
	}
	return storetest.NewID()
}

func (c *crowd) witness(s daybook.Seen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.returned.Load() > 1 {
		c.early.Store(true)
	}
	for _, m := range s.Marks {
		c.said = append(c.said, m)
	}
}

func (c *crowd) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *crowd) number(query string, args ...any) (n int) {
	c.Helper()
	c.ok(c.db.QueryRowContext(c.Context(), query, args...).Scan(&n))
	return n
}

func (c *crowd) equal(what string, got, want any) {
	c.Helper()
	if got != want {
		c.Errorf("%s: %v, want %v", what, got, want)
	}
}

// begin is the mark that a run begins, as its executor writes it.
func (c *crowd) begin(r *daybook.Run) func(context.Context) error {
	e, ok := r.Begin(daybook.Policy{}, storetest.Birth)
	if !ok {
		c.Fatalf("%s may not begin", r.Key)
	}
	return func(ctx context.Context) error { return c.s.Begin(ctx, r, e, storetest.Birth) }
}

// come is the mark that an effect begins.
func (c *crowd) come(r *daybook.Run, step string) func(context.Context) error {
	e := r.ComeTo(daybook.StepAsk{Step: step}, daybook.Policy{}, storetest.Birth).Record
	return func(ctx context.Context) error { return c.s.MarkStep(ctx, r, e, daybook.Learned{}) }
}

// charging returns a run whose charge has begun.
func (c *crowd) charging(r *daybook.Run) (*daybook.Run, *daybook.StepRecord) {
	c.Helper()
	e := r.ComeTo(daybook.StepAsk{Step: "charge"}, daybook.Policy{}, storetest.Birth).Record
	c.ok(c.s.MarkStep(c.Context(), r, e, daybook.Learned{}))
	r = r.With(e)
	r.Marks++
	return r, e
}

// waiting waits until so many wait for the next transaction.
func (c *crowd) waiting(n int) {
	for store.Waiting(c.s) != n {
		if c.Context().Err() != nil {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// under has the first one hold the ledger in his commit, and the rest wait behind him; what each is told stands in errs once done
// is closed.
func (c *crowd) under(ctxs []context.Context, marks ...func(context.Context) error) (errs []error, goOn func(), done chan struct{}) {
	store.Patient(c.s)
	at, on := make(chan struct{}), make(chan struct{})
	c.f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(context.Context, faultstore.Call) error { close(at); <-on; return nil }})
	errs, done = make([]error, len(marks)), make(chan struct{})
	var all sync.WaitGroup
	for i, mark := range marks {
		ctx := c.Context()
		if i < len(ctxs) && ctxs[i] != nil {
			ctx = ctxs[i]
		}
		all.Go(func() {
			errs[i] = mark(ctx)
			c.returned.Add(1)
		})
		if i == 0 {
			<-at
		} else {
			c.waiting(i)
		}
	}
	go func() { all.Wait(); close(done) }()
	return errs, sync.OnceFunc(func() { close(on) }), done
}

// together has marks written, the first by himself and the rest in one transaction, and returns what each was told.
func (c *crowd) together(marks ...func(context.Context) error) []error {
	errs, goOn, done := c.under(nil, marks...)
	goOn()
	<-done
	return errs
}

func (c *crowd) begun(r *daybook.Run) bool {
	c.Helper()
	return c.number(`SELECT count(*) FROM daybook_live l JOIN daybook_steps s ON s.key = l.key WHERE l.key = $1 AND l.begun_us > 0 AND s.state = 'begun'`, string(r.Key)) == 1
}

func onBoth(t *testing.T, test func(t *testing.T, kind func(testing.TB) storetest.Database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, storetest.SQLite) })
	t.Run("postgres", func(t *testing.T) { test(t, storetest.Postgres) })
}

func TestThoseWhoBeginAtOnceShareACommit(t *testing.T) {
	onBoth(t, func(t *testing.T, kind func(testing.TB) storetest.Database) {
		c := newCrowd(t, kind, 60)
		var marks []func(context.Context) error
		for _, r := range c.runs {
			marks = append(marks, c.begin(r))
		}
		c.f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 2, Hook: func(context.Context, faultstore.Call) error {
			if c.returned.Load() > 1 {
				t.Error("somebody was answered before the commit")
			}
			return nil
		}})
		for i, err := range c.together(marks...) {
			if err != nil {
				t.Errorf("%s: %v", c.runs[i].Key, err)
			}
			if !c.begun(c.runs[i]) || c.runs[i].BegunAt.IsZero() || c.runs[i].Effect == nil {
				t.Errorf("%s is not begun", c.runs[i].Key)
			}
		}
		c.equal("commits", c.commits.Load(), int64(2))
		c.equal("mark of the node", c.number(`SELECT mark FROM daybook_nodes`), 3)
		c.equal("answered before the witness knew", c.early.Load(), false)
		c.equal("witness", fmt.Sprint(len(c.said), c.said[0].Number, c.said[1].Number), "2 2 3")
	})
}

func TestStepsOfManyRunsShareACommit(t *testing.T) {
	onBoth(t, func(t *testing.T, kind func(testing.TB) storetest.Database) {
		c := newCrowd(t, kind, 5, storetest.Steps)
		var marks []func(context.Context) error
		for _, r := range c.runs[:4] {
			r, e := c.charging(r)
			ended := r.StepEnded(e, daybook.Outcome{Result: daybook.ResultDone, Data: []byte(`{"id":"ch"}`)}, storetest.Birth)
			marks = append(marks, func(ctx context.Context) error { return c.s.MarkStep(ctx, r, ended, daybook.Learned{}) })
		}
		r := c.runs[4]
		e := r.ComeTo(daybook.StepAsk{Step: "charge"}, daybook.Policy{}, storetest.Birth).Record
		learned := daybook.Learned{
			Asked:  []daybook.Attempt{{Key: r.Key, Probe: true, ClaimedAt: storetest.Birth, EndedAt: storetest.Birth, Fence: 1, WireKey: "w", Result: daybook.ResultDone}},
			Alerts: []*daybook.Alert{daybook.NewAlert(daybook.AlertDoneTwice, r.Key, crowdJob, daybook.P0, "twice", "", storetest.Birth)},
		}
		marks = append(marks, func(ctx context.Context) error { return c.s.MarkStep(ctx, r, e, learned) })
		c.commits.Store(0)
		for i, err := range c.together(marks...) {
			if err != nil {
				t.Errorf("%s: %v", c.runs[i].Key, err)
			}
		}
		c.equal("commits", c.commits.Load(), int64(2))
		c.equal("steps that are done", c.number(`SELECT count(*) FROM daybook_steps WHERE step = 'charge' AND state = 'done' AND data = '{"id":"ch"}'`), 4)
		c.equal("effects that began", c.number(`SELECT count(*) FROM daybook_steps WHERE state = 'begun'`), 1)
		c.equal("marks of runs", c.number(`SELECT sum(marks) FROM daybook_live`), 9)
		c.equal("questions", c.number(`SELECT count(*) FROM daybook_attempts WHERE question > 0`), 1)
		c.equal("alerts", c.number(`SELECT count(*) FROM daybook_alerts`), 1)
		c.equal("mark of the node: a beat, four that began alone, one with others that ended", c.number(`SELECT mark FROM daybook_nodes`), 6)
	})
}

func TestWhatOneOfSeveralSpoilsIsNotTheOthersBusiness(t *testing.T) {
	onBoth(t, func(t *testing.T, kind func(testing.TB) storetest.Database) {
		t.Run("a run that is not held any more, or is asked to end, is told so", func(t *testing.T) {
			c := newCrowd(t, kind, 5)
			c.runs[1].Fence++
			c.ok(c.s.CancelRunning(t.Context(), c.runs[2].Key, c.runs[2].Fence, daybook.Activity{At: storetest.Birth, Actor: "ops", Action: "cancel"}))
			c.runs[3].Lapse++
			errs := c.together(c.begin(c.runs[0]), c.begin(c.runs[1]), c.begin(c.runs[2]), c.begin(c.runs[3]), c.begin(c.runs[4]))
			for i, err := range errs {
				if stale := i > 0 && i < 4; stale != errors.Is(err, daybook.ErrStale) || stale == c.begun(c.runs[i]) || !stale && err != nil {
					t.Errorf("%s was told %v, begun: %v", c.runs[i].Key, err, c.begun(c.runs[i]))
				}
			}
		})
		t.Run("what the database refuses of one is written of the others", func(t *testing.T) {
			c := newCrowd(t, kind, 5)
			refuse := `CREATE TRIGGER refused BEFORE INSERT ON daybook_steps WHEN NEW.key = '%s' BEGIN SELECT RAISE(ABORT, 'it is refused'); END`
			if c.name == "postgres" {
				refuse = `ALTER TABLE daybook_steps ADD CONSTRAINT refused CHECK (key <> '%s')`
			}
			_, err := c.db.ExecContext(t.Context(), fmt.Sprintf(refuse, c.runs[2].Key))
			c.ok(err)
			errs := c.together(c.begin(c.runs[0]), c.begin(c.runs[1]), c.begin(c.runs[2]), c.begin(c.runs[3]), c.begin(c.runs[4]))
			for i, err := range errs {
				if spoils := i == 2; spoils != (daybook.CodeOf(err) == daybook.CodeUnavailable) || spoils == c.begun(c.runs[i]) {
					t.Errorf("%s was told %v, begun: %v", c.runs[i].Key, err, c.begun(c.runs[i]))
				}
			}
			if !strings.Contains(errs[2].Error(), string(c.runs[2].Key)) {
				t.Errorf("it does not say what failed: %v", errs[2])
			}
		})
		t.Run("a ledger that forgot refuses effects, and takes what ended", func(t *testing.T) {
			c := newCrowd(t, kind, 4, storetest.Steps)
			var marks []func(context.Context) error
			for _, r := range c.runs[:2] {
				r, e := c.charging(r)
				ended := r.StepEnded(e, daybook.Outcome{Result: daybook.ResultDone}, storetest.Birth)
				marks = append(marks, func(ctx context.Context) error { return c.s.MarkStep(ctx, r, ended, daybook.Learned{}) })
			}
			for _, r := range c.runs[2:] {
				marks = append(marks, c.come(r, "charge"))
			}
			_, err := c.db.ExecContext(t.Context(), `UPDATE daybook_nodes SET mark = 0`)
			c.ok(err)
			for i, err := range c.together(marks...) {
				if begins := i > 1; begins != errors.Is(err, daybook.ErrForgot) || !begins && err != nil {
					t.Errorf("%s was told %v", c.runs[i].Key, err)
				}
			}
			c.equal("done", c.number(`SELECT count(*) FROM daybook_steps WHERE state = 'done'`), 2)
			c.equal("begun", c.number(`SELECT count(*) FROM daybook_steps WHERE state = 'begun'`), 0)
			if c.forgot.Load() == 0 {
				t.Error("nobody was told that it forgot")
			}
		})
		t.Run("who panics does so by himself, and gives his connection back", func(t *testing.T) {
			c := newCrowd(t, kind, 4, storetest.Steps)
			twice := daybook.Learned{Alerts: []*daybook.Alert{daybook.NewAlert(daybook.AlertDoneTwice, c.runs[2].Key, crowdJob, daybook.P0, "twice", "", storetest.Birth)}}
			e := c.runs[2].ComeTo(daybook.StepAsk{Step: "charge"}, daybook.Policy{}, storetest.Birth).Record
			panics := func(ctx context.Context) (err error) {
				defer func() {
					if v := recover(); v != nil {
						err = fmt.Errorf("panic: %v", v)
					}
				}()
				return c.s.MarkStep(ctx, c.runs[2], e, twice) // needs an id for its alert
			}
			c.odd.Store(true)
			for i, err := range c.together(c.come(c.runs[0], "charge"), c.come(c.runs[1], "charge"), panics, c.come(c.runs[3], "charge")) {
				if spoils := i == 2; spoils != (err != nil && err.Error() == "panic: odd") || !spoils && err != nil {
					t.Errorf("%s was told %v", c.runs[i].Key, err)
				}
			}
			c.odd.Store(false)
			c.ok(panics(t.Context()))
			c.equal("begun", c.number(`SELECT count(*) FROM daybook_steps WHERE state = 'begun'`), 4)
		})
		t.Run("of two steps of one run, by the same picture, one is written", func(t *testing.T) {
			c := newCrowd(t, kind, 2, storetest.Steps)
			errs := c.together(c.come(c.runs[0], "charge"), c.come(c.runs[1], "charge"), c.come(c.runs[1], "extend"))
			if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], daybook.ErrStale) {
				t.Errorf("told %v", errs)
			}
			c.equal("steps", c.number(`SELECT count(*) FROM daybook_steps WHERE key = $1`, string(c.runs[1].Key)), 1)
		})
	})
}

// TestARunThatIsHeldUpHoldsUpNobodyElse: a caller's own transaction may keep its row for as long as it likes.
func TestARunThatIsHeldUpHoldsUpNobodyElse(t *testing.T) {
	c := newCrowd(t, storetest.Postgres, 4)
	lock := func(r *daybook.Run) *sql.Tx {
		tx, err := c.db.BeginTx(t.Context(), nil)
		c.ok(err)
		_, err = tx.ExecContext(t.Context(), `SELECT key FROM daybook_live WHERE key = $1 FOR UPDATE`, string(r.Key))
		c.ok(err)
		return tx
	}
	later := func(mark func(context.Context) error) chan error {
		told := make(chan error, 1)
		go func() { told <- mark(t.Context()) }()
		return told
	}
	alone := lock(c.runs[0])
	held := later(c.begin(c.runs[0])) // waits alone, and is not in the way of those who come then
	for c.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		time.Sleep(time.Millisecond)
	}
	among := lock(c.runs[2])
	var keeps chan error
	errs := c.together(c.begin(c.runs[1]), func(context.Context) error { keeps = later(c.begin(c.runs[2])); return nil }, c.begin(c.runs[3]))
	for _, err := range errs {
		c.ok(err)
	}
	for _, told := range []chan error{held, keeps} {
		select {
		case err := <-told:
			t.Errorf("told %v while its run is held up", err)
		default:
		}
	}
	c.ok(errors.Join(alone.Rollback(), among.Rollback()))
	c.ok(<-held)
	c.ok(<-keeps)
	for _, r := range c.runs {
		c.equal(string(r.Key)+" is begun", c.begun(r), true)
	}
}

// TestACommitThatHangsHoldsUpNobodyElse: as on a connection that died without a word. Effects alone wait for it: they are counted in one
// row of the node.
func TestACommitThatHangsHoldsUpNobodyElse(t *testing.T) {
	c := newCrowd(t, storetest.Postgres, 3)
	at, on := make(chan struct{}), make(chan struct{})
	c.f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(context.Context, faultstore.Call) error { close(at); <-on; return nil }})
	hung := make(chan error, 1)
	go func() { hung <- c.s.Begin(t.Context(), c.runs[0], nil, storetest.Birth) }()
	<-at
	for _, r := range c.runs[1:] {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if err := c.s.Begin(ctx, r, nil, storetest.Birth); err != nil {
			t.Errorf("%s: %v", r.Key, err)
		}
		cancel()
	}
	close(on)
	c.ok(<-hung)
	c.equal("begun", c.number(`SELECT count(*) FROM daybook_live WHERE begun_us > 0`), 3)
}

func TestWhoWaitsNoLongerIsToldTheTruth(t *testing.T) {
	onBoth(t, func(t *testing.T, kind func(testing.TB) storetest.Database) {
		t.Run("before its turn: nothing is written", func(t *testing.T) {
			c := newCrowd(t, kind, 3)
			ctx, cancel := context.WithCancel(t.Context())
			errs, goOn, done := c.under([]context.Context{nil, ctx}, c.begin(c.runs[0]), c.begin(c.runs[1]), c.begin(c.runs[2]))
			cancel()
			c.waiting(1)
			goOn()
			<-done
			if errs[0] != nil || !errors.Is(errs[1], context.Canceled) || errs[2] != nil {
				t.Errorf("told %v", errs)
			}
			c.equal("begun", fmt.Sprint(c.begun(c.runs[0]), c.begun(c.runs[1]), c.begun(c.runs[2])), "true false true")
		})
		// cancelled has the context of the second end in the middle of the commit, and the commit go on after that.
		cancelled := func(c *crowd, goOn func(returned func(n int64))) []error {
			ctx, cancel := context.WithCancel(c.Context())
			at, on := make(chan struct{}), make(chan struct{})
			c.f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 2, Hook: func(context.Context, faultstore.Call) error { close(at); <-on; return nil }})
			errs, first, done := c.under([]context.Context{nil, ctx}, c.begin(c.runs[0]), c.begin(c.runs[1]), c.begin(c.runs[2]))
			first()
			<-at
			cancel()
			goOn(func(n int64) {
				for c.returned.Load() < n {
					time.Sleep(100 * time.Microsecond)
				}
			})
			close(on)
			<-done
			c.equal("begun", fmt.Sprint(c.begun(c.runs[0]), c.begun(c.runs[1]), c.begun(c.runs[2])), "true true true")
			return errs
		}
		t.Run("while it is written: how it went", func(t *testing.T) {
			c := newCrowd(t, kind, 3)
			for _, err := range cancelled(c, func(func(int64)) {}) {
				c.ok(err)
			}
			c.equal("it knows that it began", c.runs[1].BegunAt, storetest.Birth)
		})
		t.Run("while that takes long: what may have been written is taken back as the run is handed back", func(t *testing.T) {
			c := newCrowd(t, kind, 3)
			errs := cancelled(c, func(returned func(int64)) { returned(2) })
			if errs[0] != nil || !errors.Is(errs[1], context.Canceled) || errs[2] != nil {
				t.Errorf("told %v", errs)
			}
			r := *c.runs[1]
			c.equal("it knows of no begin", r.BegunAt, time.Time{})
			r.Effect, _ = r.Begin(daybook.Policy{}, storetest.Birth)
			storetest.Apply(t.Context(), t, c.s, r.Next(daybook.Outcome{Result: daybook.ResultInterrupted}, daybook.Policy{}, storetest.Birth))
			back := storetest.Find(t.Context(), t, c.s, r.Key)
			if back.State != daybook.Scheduled || back.Effect.State == daybook.EffectBegun || back.Effect.Open {
				t.Errorf("handed back it is %s, with its effect %+v", back.State, back.Effect)
			}
		})
		t.Run("all of them: it is taken back", func(t *testing.T) {
			c := newCrowd(t, kind, 3)
			ctx, cancel := context.WithCancel(t.Context())
			at, on := make(chan struct{}), make(chan struct{})
			errs, goOn, done := c.under([]context.Context{nil, ctx, ctx}, c.begin(c.runs[0]), c.begin(c.runs[1]), c.begin(c.runs[2]))
			c.f.Add(faultstore.Rule{Contains: "INSERT INTO daybook_steps", Nth: 1, Hook: func(context.Context, faultstore.Call) error { close(at); <-on; return nil }})
			goOn()
			<-at
			cancel()
			<-done
			close(on)
			c.ok(c.s.Close()) // waits for it
			if errs[0] != nil || !errors.Is(errs[1], context.Canceled) || !errors.Is(errs[2], context.Canceled) {
				t.Errorf("told %v", errs)
			}
			c.equal("begun", fmt.Sprint(c.begun(c.runs[0]), c.begun(c.runs[1]), c.begun(c.runs[2])), "true false false")
		})
	})
}

func TestACommitOfSeveralWhoseAnswerIsLost(t *testing.T) {
	four := func(t *testing.T, kind func(testing.TB) storetest.Database) (*crowd, []func(context.Context) error) {
		c := newCrowd(t, kind, 4, storetest.Steps)
		var marks []func(context.Context) error
		for _, r := range c.runs {
			marks = append(marks, c.come(r, "charge"))
		}
		return c, marks
	}
	begun := `SELECT count(*) FROM daybook_live l JOIN daybook_steps s ON s.key = l.key WHERE s.state = 'begun' AND l.marks = 1`
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("is looked up, and written once: it took place %v", after), func(t *testing.T) {
			c, marks := four(t, storetest.Postgres)
			c.f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 2, After: after, Err: io.ErrUnexpectedEOF})
			for i, err := range c.together(marks...) {
				if err != nil {
					t.Errorf("%s: %v", c.runs[i].Key, err)
				}
			}
			c.equal("failed", c.f.Failed(), 1)
			c.equal("begun", c.number(begun), 4)
			c.equal("mark of the node", c.number(`SELECT mark FROM daybook_nodes`), 3)
			c.equal("witness", c.said[len(c.said)-1].Number, int64(3))
		})
	}
	t.Run("while the database stays away, is told as what may be in the ledger", func(t *testing.T) {
		c, marks := four(t, storetest.Postgres)
		c.f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 2, After: true, Hook: func(context.Context, faultstore.Call) error {
			c.f.Add(faultstore.Rule{Op: faultstore.Connect, Err: io.EOF})
			c.f.Add(faultstore.Rule{Op: faultstore.Begin, Err: io.EOF})
			return io.ErrUnexpectedEOF
		}})
		errs := c.together(marks...)
		c.ok(errs[0])
		for _, err := range errs[1:] {
			if daybook.CodeOf(err) != daybook.CodeUnavailable || !strings.Contains(err.Error(), "it may be in the ledger") {
				t.Errorf("told %v", err)
			}
		}
		c.equal("begun", c.number(begun), 4)
		c.equal("witness", c.said[len(c.said)-1].Number, int64(2))
	})
	onBoth(t, func(t *testing.T, kind func(testing.TB) storetest.Database) {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("by an error that nobody knows, is everybody's, and nobody writes again: it took place %v", after), func(t *testing.T) {
				c, marks := four(t, kind)
				c.f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 2, After: after})
				errs := c.together(marks...)
				c.ok(errs[0])
				for _, err := range errs[1:] {
					if daybook.CodeOf(err) != daybook.CodeUnavailable {
						t.Errorf("told %v", err)
					}
				}
				want := 1
				if after {
					want = 4
				}
				c.equal("begun", c.number(begun), want)
				c.equal("commits", c.commits.Load(), int64(2))
			})
		}
	})
}

// TestManyStepsThroughABadConnection: what anybody was told is there, once, whatever broke for those who wrote with him.
func TestManyStepsThroughABadConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, kind func(testing.TB) storetest.Database) {
		steps := 12
		if testing.Short() {
			steps = 3
		}
		c := newCrowd(t, kind, 16, storetest.Steps)
		c.f.Chance(0.03)
		var all sync.WaitGroup
		for _, r := range c.runs {
			all.Go(func() {
				for i := range steps {
					e := r.ComeTo(daybook.StepAsk{Step: fmt.Sprint("step-", i)}, daybook.Policy{}, storetest.Birth).Record
					r = c.sure(r, e)
					r = c.sure(r, r.StepEnded(e, daybook.Outcome{Result: daybook.ResultDone}, storetest.Birth))
				}
			})
		}
		all.Wait()
		c.f.Reset()
		c.equal("done", c.number(`SELECT count(*) FROM daybook_steps WHERE state = 'done' AND tries = 1`), 16*steps)
		c.equal("marks", c.number(`SELECT sum(marks) FROM daybook_live`), 16*2*steps)
	})
}

// sure marks a step until it is sure to be marked, as an executor does.
func (c *crowd) sure(r *daybook.Run, e *daybook.StepRecord) *daybook.Run {
	for {
		err := c.s.MarkStep(c.Context(), r, e, daybook.Learned{})
		if c.Context().Err() != nil {
			return r
		}
		var state string
		var marks int64
		found := c.db.QueryRowContext(c.Context(), `SELECT s.state, l.marks FROM daybook_live l JOIN daybook_steps s ON s.key = l.key AND s.step = $2 WHERE l.key = $1`,
			string(e.Key), e.Step).Scan(&state, &marks)
		written := found == nil && state == string(e.State) && marks == r.Marks+1
		switch {
		case err == nil && !written:
			c.Errorf("%s of %s was told to be %s, and is %q with %d marks (%v)", e.Step, e.Key, e.State, state, marks, found)
		case err != nil && daybook.CodeOf(err) != daybook.CodeUnavailable:
			c.Errorf("%s of %s: %v", e.Step, e.Key, err)
		case err != nil && !written:
			continue
		}
		next := r.With(e)
		next.Marks++
		return next
	}
}
