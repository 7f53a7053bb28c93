package engine_test

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue { // the tests wait, most of the time
		_ = flag.Set("test.parallel", "8")
	}
	pgtest.Main(m)
}

// patience is how long a test waits for something that must come.
const patience = 30 * time.Second

var ops = control.Person{Name: "ops"}

// each runs a test on both databases.
func each(t *testing.T, test func(t *testing.T, db storetest.Database)) {
	t.Helper()
	for _, open := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		db := open(t)
		t.Run(db.Name, func(t *testing.T) {
			t.Parallel()
			test(t, db)
		})
	}
}

// node is one process on a ledger.
type node struct {
	*engine.Engine
	t    testing.TB
	stop func() error // gracefully; may be called again
}

// open opens a ledger and defines jobs.
func open(t testing.TB, handles engine.DB, o engine.Options, jobs ...engine.Definition) *engine.Engine {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if o.Role == "" && o.App == "" {
		o.Role = "serve"
	}
	e, err := engine.Open(t.Context(), handles, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	if err := e.Define(jobs...); err != nil {
		t.Fatal(err)
	}
	return e
}

// serve starts a process and returns when it works.
func serve(t testing.TB, handles engine.DB, o engine.Options, jobs ...engine.Definition) *node {
	t.Helper()
	return start(t, open(t, handles, o, jobs...))
}

func start(t testing.TB, e *engine.Engine) *node {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- e.Start(ctx, func() { close(ready) }) }()
	n := &node{Engine: e, t: t}
	n.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := n.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("start: %v", err)
	}
	return n
}

// job is a definition without a schedule whose windows are days.
func job(name string, effects daybook.Effects, do func(context.Context, *daybook.Run) error, change ...func(*daybook.Job)) engine.Definition {
	j := daybook.Job{Name: name, Owner: "ops", Timezone: "UTC", Window: daybook.Day, Effects: effects, Settles: time.Millisecond,
		Retry: daybook.Retry{Backoff: []time.Duration{time.Millisecond, time.Millisecond}, Jitter: -1}}
	for _, c := range change {
		c(&j)
	}
	return engine.Definition{Job: j, Do: do}
}

// trigger asks for a window of a job.
func (n *node) trigger(jobName, window string) daybook.Key {
	n.t.Helper()
	a, err := n.Control().Trigger(n.t.Context(), ops, control.Request{Job: jobName, Window: window})
	if err != nil {
		n.t.Fatal(err)
	}
	return a.Key
}

// run returns a run as it stands.
func run(t testing.TB, e *engine.Engine, k daybook.Key) *daybook.Run {
	t.Helper()
	r, err := e.Store().Run(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// attempts returns the tries of a run, without the questions.
func attempts(t testing.TB, e *engine.Engine, k daybook.Key) []daybook.Attempt {
	t.Helper()
	all, err := e.Store().Attempts(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	tries := all[:0]
	for _, a := range all {
		if !a.Probe {
			tries = append(tries, a)
		}
	}
	return tries
}

// until waits until a condition holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// ends waits until a run is in a state.
func ends(t testing.TB, e *engine.Engine, k daybook.Key, want daybook.State) *daybook.Run {
	t.Helper()
	var r *daybook.Run
	defer func() {
		if t.Failed() && r != nil {
			t.Logf("%s is %s %s, attempts %d failures %d losses %d: %s", k, r.State, r.Reason, r.Attempts, r.Failures, r.Losses, r.LastError)
		}
	}()
	until(t, string(k)+" "+string(want), func() bool {
		r = run(t, e, k)
		return r.State == want
	})
	return r
}

// comes waits for a signal.
func comes[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-signal:
		return v
	case <-timer.C:
		t.Fatalf("%s: not within %s", what, patience)
	}
	panic("unreachable")
}

// calls is work that does as it is told, one answer a call; the last one stays.
type calls struct {
	n       atomic.Int64
	answers []error
}

func (c *calls) do(_ context.Context, _ *daybook.Run) error {
	n := int(c.n.Add(1))
	return c.answers[min(n, len(c.answers))-1]
}

func answering(answers ...error) *calls { return &calls{answers: answers} }

var errFailed = errors.New("it failed")

func TestOutcomes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		work := map[string]*calls{
			"done":        answering(nil),
			"not-done":    answering(daybook.NotDone(errFailed)),
			"later":       answering(daybook.NotDone(errFailed), errFailed, nil),
			"later-once":  answering(daybook.NotDone(errFailed), daybook.NotDone(errFailed), nil),
			"permanent":   answering(daybook.Permanent(errFailed)),
			"refused":     answering(daybook.Permanent(errFailed)),
			"unclear":     answering(errFailed),
			"unclear-yes": answering(errFailed),
			"unclear-no":  answering(errFailed, nil),
			"unclear-mem": answering(errFailed, nil),
			"unclear-one": answering(errFailed),
			"unknown-one": answering(daybook.Unknown(errFailed)),
		}
		var wireKeys sync.Map
		probe := func(answer daybook.Answer) func(context.Context, string) (any, daybook.Answer, error) {
			return func(_ context.Context, wireKey string) (any, daybook.Answer, error) {
				wireKeys.Store(wireKey, true)
				return map[string]string{"id": "ch_1"}, answer, nil
			}
		}
		var jobs []engine.Definition
		for name, effects := range map[string]daybook.Effects{"done": daybook.Repeatable, "not-done": daybook.Repeatable, "later": daybook.Repeatable,
			"later-once": daybook.Once, "permanent": daybook.Repeatable, "refused": daybook.Once, "unclear": daybook.Repeatable,
			"unclear-yes": daybook.Once, "unclear-no": daybook.Once, "unclear-mem": daybook.Once, "unclear-one": daybook.Once, "unknown-one": daybook.Once} {
			d := job(name, effects, work[name].do)
			switch name {
			case "unclear-yes":
				d.Ask = probe(daybook.Yes)
			case "unclear-no":
				d.Ask = probe(daybook.No)
			case "unclear-mem":
				d.Job.Remembers = 24 * time.Hour
			}
			jobs = append(jobs, d)
		}
		panics := job("panics", daybook.Repeatable, func(context.Context, *daybook.Run) error { panic("of horror") })
		panics.Job.Retry.Backoff = []time.Duration{}
		n := serve(t, db.Open(t), engine.Options{}, append(jobs, panics)...)
		for _, c := range []struct {
			job    string
			want   daybook.State
			letter daybook.LetterKind
			calls  int64
			wire   string // of the last try
		}{
			{"done", daybook.Done, "", 1, ""},
			{"not-done", daybook.Dead, daybook.LetterFailed, 3, ""},
			{"later", daybook.Done, "", 3, ""},
			{"later-once", daybook.Done, "", 3, "later-once:2026-03-02"},
			{"permanent", daybook.Dead, daybook.LetterFailed, 1, ""},
			{"refused", daybook.Dead, daybook.LetterFailed, 1, "refused:2026-03-02"},
			{"unclear", daybook.Dead, daybook.LetterFailed, 3, ""},
			{"unclear-yes", daybook.Done, "", 1, "unclear-yes:2026-03-02"},
			{"unclear-no", daybook.Done, "", 2, "unclear-no:2026-03-02#run@2"},
			{"unclear-mem", daybook.Done, "", 2, "unclear-mem:2026-03-02"},
			{"unclear-one", daybook.Dead, daybook.LetterUnknown, 1, "unclear-one:2026-03-02"},
			{"unknown-one", daybook.Dead, daybook.LetterUnknown, 1, "unknown-one:2026-03-02"},
			{"panics", daybook.Dead, daybook.LetterFailed, 0, ""},
		} {
			t.Run(c.job, func(t *testing.T) {
				n.trigger(c.job, "2026-03-02")
				r := ends(t, n.Engine, daybook.Key(c.job+":2026-03-02"), c.want)
				if w := work[c.job]; w != nil && w.n.Load() != c.calls {
					t.Errorf("called %d times, want %d", w.n.Load(), c.calls)
				}
				kind := daybook.LetterKind("")
				if r.Letter != nil && r.Letter.State == daybook.LetterOpen {
					kind = r.Letter.Kind
				}
				if kind != c.letter {
					t.Errorf("letter %q, want %q", kind, c.letter)
				}
				alerted(t, n.Engine, r)
				tries := attempts(t, n.Engine, r.Key)
				if r.Attempts != len(tries) {
					t.Errorf("%d attempts, %d rows", r.Attempts, len(tries))
				}
				if last := tries[len(tries)-1]; c.wire != "" && last.WireKey != c.wire {
					t.Errorf("wire key %q, want %q", last.WireKey, c.wire)
				}
			})
		}
		if r := run(t, n.Engine, "unclear-yes:2026-03-02"); string(r.Result) != `{"id":"ch_1"}` || r.Effect.SettledBy != "probe" {
			t.Errorf("settled by %q with %s", r.Effect.SettledBy, r.Result)
		}
	})
}

// alerted checks that every open letter has an open alert, and that nothing else has.
func alerted(t testing.TB, e *engine.Engine, r *daybook.Run) {
	t.Helper()
	alerts, err := e.Store().Alerts(t.Context(), true, 1000)
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, a := range alerts {
		if a.Key == r.Key && (a.Kind == daybook.AlertDeadLetter || a.Kind == daybook.AlertUnknownOutcome) {
			open++
		}
	}
	want := 0
	if r.State == daybook.Dead && r.Letter != nil && r.Letter.State == daybook.LetterOpen {
		want = 1
	}
	if open != want {
		t.Errorf("%s is %s with %d open alerts, want %d", r.Key, r.State, open, want)
	}
}

// TestAStopWhileItStarts: whoever asks for an end before everything runs gets one, and no error; the node is not missed afterwards.
func TestAStopWhileItStarts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		for _, loaded := range []bool{false, true} {
			ctx, stop := context.WithCancel(t.Context())
			var e *engine.Engine
			started := time.Now()
			boot := func() time.Duration {
				if e != nil {
					if jobs, err := e.Store().JobStates(context.WithoutCancel(ctx)); err != nil || len(jobs) > 0 == loaded {
						stop() // with the jobs loaded: in the middle of the first beat
					}
				}
				return time.Since(started)
			}
			e = app(t, db.Open(t), engine.Options{Boot: boot})
			e.Handle(handled("one"), func(context.Context, *daybook.Run) error { return nil })
			if err := e.Start(ctx, func() { t.Errorf("loaded %t: everything runs", loaded); stop() }); err != nil {
				t.Errorf("loaded %t: %v", loaded, err)
			}
			if ctx.Err() == nil {
				t.Fatalf("loaded %t: it was not stopped", loaded)
			}
			nodes, err := e.Store().Nodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes {
				if n.StoppedAt.IsZero() {
					t.Errorf("loaded %t: a node is missed: %+v", loaded, n)
				}
			}
			if loaded && len(nodes) == 0 {
				t.Error("it said nothing of its end")
			}
		}
	})
}
