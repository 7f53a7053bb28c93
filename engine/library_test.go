package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// app opens an engine of an application.
func app(t testing.TB, handles engine.DB, o engine.Options) *engine.Engine {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	}
	e, err := engine.Open(t.Context(), handles, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func handled(name string) daybook.Job {
	return daybook.Job{Name: name, Owner: "ops", Timezone: "UTC", Window: daybook.Day, Settles: time.Millisecond, Retry: daybook.Retry{Jitter: -1}}
}

// Three programs share a ledger: a file's serve and two applications. Whoever asks, each does its own jobs only; nobody's
// start retires a job of another; and the same name is refused to whoever comes second.
func TestProgramsOnOneLedger(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		var wrong atomic.Int64
		only := func(name string) func(context.Context, *daybook.Run) error {
			return func(_ context.Context, r *daybook.Run) error {
				if r.Job != name {
					wrong.Add(1)
				}
				return nil
			}
		}
		nodes := map[string]*node{}
		open := func() {
			nodes["report"] = serve(t, db.Open(t), engine.Options{Role: "serve"}, job("report", daybook.Repeatable, only("report")))
			for app1, name := range map[string]string{"shop": "renew", "billing": "invoice"} {
				e := app(t, db.Open(t), engine.Options{App: app1})
				e.Handle(handled(name), only(name))
				nodes[name] = start(t, e)
			}
		}
		open()
		for i, window := range []string{"2026-03-02", "2026-03-03"} {
			for _, n := range nodes {
				for name := range nodes {
					if a, err := n.Engine.Trigger(t.Context(), name, daybook.At(window)); err != nil || a.Key != daybook.Key(name+":"+window) {
						t.Fatalf("%s: %s %v", name, a.Key, err)
					}
				}
			}
			for name, n := range nodes {
				r := ends(t, n.Engine, daybook.Key(name+":"+window), daybook.Done)
				if r.Attempts != 1 || r.Node != n.Node().ID {
					t.Errorf("%s was done by %s in %d attempts, not by %s", r.Key, r.Node, r.Attempts, n.Node().ID)
				}
			}
			if i == 0 { // every program starts again
				for _, n := range nodes {
					if err := n.stop(); err != nil {
						t.Fatal(err)
					}
				}
				open()
			}
		}
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d calls for jobs of others", n)
		}
		states, err := nodes["report"].Store().JobStates(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range states {
			if want := map[string]string{"report": "", "renew": "shop", "invoice": "billing"}[st.Name]; st.Home != want || !st.RetiredAt.IsZero() || st.Revision != 1 {
				t.Errorf("%s is at home at %q, revision %d, retired %s", st.Name, st.Home, st.Revision, st.RetiredAt)
			}
		}
		for _, c := range []struct{ app, job, want string }{
			{"billing", "renew", "handled by the application shop"}, {"shop", "report", "defined by the file"},
		} {
			e := app(t, db.Open(t), engine.Options{App: c.app})
			e.Handle(handled(c.job), only(c.job))
			if err := e.Start(t.Context()); daybook.CodeOf(err) != daybook.CodeConflict || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s starts with %s: %v", c.app, c.job, err)
			}
		}
		second := open1(t, db.Open(t), job("renew", daybook.Repeatable, only("renew")))
		if err := second.Start(t.Context()); daybook.CodeOf(err) != daybook.CodeConflict {
			t.Errorf("a serve starts with a job of an application: %v", err)
		}
	})
}

func open1(t *testing.T, handles engine.DB, jobs ...engine.Definition) *engine.Engine {
	return open(t, handles, engine.Options{Role: "serve"}, jobs...)
}

// A job that is retired may be taken by another program, and not before.
func TestRetire(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	nothing := func(context.Context, *daybook.Run) error { return nil }
	before := app(t, db.Open(t), engine.Options{App: "shop"})
	before.Handle(handled("renew"), nothing)
	if err := before.RunDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := app(t, db.Open(t), engine.Options{App: "shop"})
	after.Retire("renew", "never-was")
	if err := after.RunDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := after.Trigger(t.Context(), "renew", daybook.At("2026-03-02")); daybook.CodeOf(err) != daybook.CodeConflict {
		t.Errorf("a retired job is triggered: %v", err)
	}
	n := serve(t, db.Open(t), engine.Options{Role: "serve"}, job("renew", daybook.Repeatable, nothing))
	ends(t, n.Engine, n.trigger("renew", "2026-03-02"), daybook.Done)
}

// The ledger is exchanged for an older copy while RunDue works on it: that is found by the next effect, nothing more begins, and
// RunDue comes back.
func TestRunDueWhenTheLedgerForgetsMeanwhile(t *testing.T) {
	for _, name := range []string{"renew", "report"} { // in steps, and as one effect that another run asks for
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, db storetest.Database) { forgetsMeanwhile(t, db, name) })
		})
	}
}

func forgetsMeanwhile(t *testing.T, db storetest.Database, name string) {
	handles := db.Open(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	shop := app(t, handles, engine.Options{App: "shop"})
	var charged, mailed, paid atomic.Int64
	effect := func(ctx context.Context, r *daybook.Run, name string, n *atomic.Int64) error {
		_, err := daybook.Effect(ctx, r, name, daybook.EffectOf[string]{Do: func(context.Context, string) (string, error) {
			n.Add(1)
			return "", nil
		}})
		return err
	}
	forget := func() error {
		_, err := handles.Write.ExecContext(ctx, `UPDATE daybook_nodes SET mark = mark - 1`)
		return err
	}
	j := handled("renew")
	j.Steps = true
	shop.Handle(j, func(ctx context.Context, r *daybook.Run) error {
		if err := errors.Join(effect(ctx, r, "charge", &charged), forget()); err != nil {
			return err
		}
		return effect(ctx, r, "mail", &mailed)
	})
	whole, asks := handled("pay"), handled("report")
	whole.Effects = daybook.Once
	shop.Handle(whole, func(context.Context, *daybook.Run) error {
		paid.Add(1)
		return nil
	})
	shop.Handle(asks, func(ctx context.Context, r *daybook.Run) error {
		if err := forget(); err != nil {
			return err
		}
		_, err := shop.Trigger(ctx, "pay", daybook.At("2026-03-02"))
		return err
	})
	a, err := shop.Trigger(ctx, name, daybook.At("2026-03-02"))
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.RunDue(ctx); err != nil {
		t.Fatal(err)
	}
	if seen, err := shop.Store().Seen(ctx); err != nil || seen.Lapse != 1 {
		t.Errorf("%d lapses are recorded: %v", seen.Lapse, err)
	}
	if r := run(t, shop, a.Key); mailed.Load() != 0 || paid.Load() != 0 || name == "renew" && (charged.Load() != 1 || r.State == daybook.Done) {
		t.Errorf("charged %d, mailed %d, paid %d, %s is %s", charged.Load(), mailed.Load(), paid.Load(), name, r.State)
	}
}

// A program is killed between charge and answer. The serve of other jobs declares the attempt over; it has no way to ask, and
// asks nobody: the program asks its probe when it is back, and charges nothing twice.
func TestServeRescuesForAnApplication(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		const lease = 3 * time.Second
		var charged atomic.Int64
		ctx, kill := context.WithCancel(t.Context())
		j := handled("charge")
		j.Priority, j.Effects = daybook.P0, daybook.Once
		probe := engine.Probe(func(context.Context, string) (map[string]string, daybook.Answer, error) {
			return map[string]string{"id": "ch_1"}, daybook.Yes, nil
		})
		shop := app(t, db.Open(t), engine.Options{App: "shop", Lease: lease})
		shop.Handle(j, func(context.Context, *daybook.Run) error {
			charged.Add(1)
			kill()
			return nil
		}, probe)
		a, err := shop.Trigger(t.Context(), "charge", daybook.At("2026-03-02"))
		if err != nil || a.Outcome != daybook.Started {
			t.Fatal(a.Outcome, err)
		}
		if err := shop.RunDue(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("killed: %v", err)
		}
		n := serve(t, db.Open(t), engine.Options{Role: "serve", Lease: lease}, job("report", daybook.Repeatable, func(context.Context, *daybook.Run) error { return nil }))
		until(t, "rescue", func() bool { return run(t, n.Engine, a.Key).Reason == daybook.ReasonSettling })
		again := app(t, db.Open(t), engine.Options{App: "shop", Lease: lease})
		again.Handle(j, func(context.Context, *daybook.Run) error {
			charged.Add(1)
			return nil
		}, probe)
		s := start(t, again)
		r := ends(t, s.Engine, a.Key, daybook.Done)
		if charged.Load() != 1 || string(r.Result) != `{"id":"ch_1"}` {
			t.Errorf("charged %d times, result %s", charged.Load(), r.Result)
		}
	})
}

func TestHandleCollectsFaults(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *daybook.Run) error { return nil }
	e := app(t, storetest.SQLite(t).Open(t), engine.Options{})
	if err := e.Err(); err != nil {
		t.Fatal(err)
	}
	e.Handle(handled("renew"), nothing)
	e.Handle(handled("renew"), nothing)
	e.Handle(handled("nobody"), nil)
	e.Handle(daybook.Job{Name: "money", Owner: "ops", Timezone: "UTC", Window: daybook.Day, Priority: daybook.P0}, nothing)
	commanded := handled("command")
	commanded.Command.Argv = []string{"true"}
	e.Handle(commanded, nothing)
	e.Retire("renew")
	_, triggered := e.Trigger(t.Context(), "renew", daybook.At("2026-03-02"))
	for what, err := range map[string]error{"Err": e.Err(), "Start": e.Start(t.Context()), "Trigger": triggered} {
		if daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, want := range []string{"job renew is handled twice: give one of them", "job nobody is handled by no function", "job money is P0 and does not say effects: effects: once if",
			"job command has a command", "job renew is both handled and retired"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s does not say %q: %v", what, want, err)
			}
		}
	}
	if _, err := engine.Open(t.Context(), storetest.SQLite(t).Open(t), engine.Options{App: "serve"}); daybook.CodeOf(err) != daybook.CodeInvalid {
		t.Errorf("an application called serve: %v", err)
	}
}

// What work returns and counts is told to whoever asks again.
func TestReturnAndCount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		e := app(t, db.Open(t), engine.Options{})
		e.Handle(handled("renew"), func(_ context.Context, r *daybook.Run) error {
			var p struct{ Card string }
			if err := r.Payload(&p); err != nil {
				return err
			}
			r.Count("charges", 19)
			r.Count("charges", 1)
			r.Return(map[string]string{"card": p.Card, "date": r.Window.Date})
			return nil
		})
		e.Handle(handled("huge"), func(_ context.Context, r *daybook.Run) error {
			r.Return(make(chan int))
			return nil
		})
		ask := func(name string, options ...daybook.AskOption) daybook.TriggerOutcome {
			a, err := e.Trigger(t.Context(), name, append(options, daybook.At("2026-03-02"))...)
			if err != nil {
				t.Fatal(err)
			}
			return a.Outcome
		}
		card := daybook.WithPayload(map[string]string{"Card": "4242"})
		if got := []daybook.TriggerOutcome{ask("renew", card, daybook.By("ann")), ask("renew", card), ask("huge")}; got[0] != daybook.Started || got[1] != daybook.Joined {
			t.Errorf("%v", got)
		}
		if err := e.RunDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ask("renew"); got != daybook.Reused {
			t.Errorf("asked again: %s", got)
		}
		if _, err := e.Trigger(t.Context(), "renew", daybook.At("2026-03-02"), daybook.WithPayload(1)); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("another payload: %v", err)
		}
		r := run(t, e, "renew:2026-03-02")
		if string(r.Result) != `{"card":"4242","date":"2026-03-02"}` || r.Counts["charges"] != 20 || r.FirstActor != "ann" {
			t.Errorf("%s %v %s", r.Result, r.Counts, r.FirstActor)
		}
		if r := run(t, e, "huge:2026-03-02"); r.State != daybook.Done || !strings.Contains(string(r.Result), "cannot be kept") {
			t.Errorf("%s %s", r.State, r.Result)
		}
	})
}

// Stop ends Start gracefully, and says when it could not wait for it.
func TestStop(t *testing.T) {
	t.Parallel()
	e := app(t, storetest.SQLite(t).Open(t), engine.Options{})
	if err := e.Stop(t.Context()); err != nil {
		t.Errorf("not started: %v", err)
	}
	began, leave := make(chan struct{}), make(chan struct{})
	e.Handle(handled("renew"), func(context.Context, *daybook.Run) error {
		close(began)
		<-leave
		return nil
	})
	n := start(t, e)
	a, err := e.Trigger(t.Context(), "renew", daybook.At("2026-03-02"))
	if err != nil {
		t.Fatal(err)
	}
	comes(t, "work", began)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Stop(over); daybook.CodeOf(err) != daybook.CodeUnavailable {
		t.Errorf("work goes on: %v", err)
	}
	close(leave)
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	ends(t, e, a.Key, daybook.Done)
	if err := e.Start(t.Context()); daybook.CodeOf(err) != daybook.CodeConflict {
		t.Errorf("started again: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Handle after Start is taken")
		}
	}()
	e.Handle(handled("late"), func(context.Context, *daybook.Run) error { return nil })
}

// Whether an application executes its jobs is told like that of a serve, and a serve does not stand in for it.
func TestNobodyExecutesForAnApplication(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	nothing := func(context.Context, *daybook.Run) error { return nil }
	shop := app(t, db.Open(t), engine.Options{App: "shop"})
	shop.Handle(handled("renew"), nothing)
	a, err := shop.Trigger(t.Context(), "renew", daybook.At("2026-03-02"))
	if err != nil || !a.NobodyExecutes || !strings.Contains(a.Line(), "the application shop was not seen") {
		t.Errorf("%s %v", a.Line(), err)
	}
	n := serve(t, db.Open(t), engine.Options{Role: "serve"})
	idle := func() bool {
		t.Helper()
		s, err := n.Control().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Idle) == 1 && s.Idle[0].Role == "shop" && s.Exit() == daybook.ExitUnreachable
	}
	if !idle() {
		t.Error("nobody executes for shop, and it is not told")
	}
	if err := shop.RunDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if idle() {
		t.Error("shop works, and it is told that it does not")
	}
	ends(t, n.Engine, a.Key, daybook.Done)
}
