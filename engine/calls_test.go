package engine

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/postgres"
)

// logged is a log that tests read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

func (l *logged) to() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// listensOn starts an engine with jobs on a PostgreSQL, which hears by a URL of its own.
func listensOn(t *testing.T, url, heard string, log *logged, jobs ...Definition) *Engine {
	t.Helper()
	handle := func(url string) *sql.DB {
		c, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		// As in the program: no statement before each statement.
		db := stdlib.OpenDB(*c, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	db := handle(url)
	e, err := Open(t.Context(), DB{Write: db, Read: db}, Options{App: "shop", Listener: postgres.NewListener(handle(heard)), Log: log.to()})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Define(jobs...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- e.Start(ctx, func() { close(ready) }) }()
	<-ready
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("stopped: %v", err)
		}
		_ = e.Close()
	})
	return e
}

// soon waits until something holds.
func soon(t *testing.T, within time.Duration, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > within {
			t.Fatalf("%s: not within %s", what, within)
		}
		<-time.After(5 * time.Millisecond)
	}
	return time.Since(began)
}

// counting is a job by hand that counts how often it is done.
func counting(done *atomic.Int64) Definition {
	return Definition{Job: daybook.Job{Name: "report", Owner: "ops", Timezone: "UTC", Window: daybook.Day, Overlap: daybook.OverlapAllow},
		Do: func(context.Context, *daybook.Run) error { done.Add(1); return nil }}
}

// asker is another process that asks for windows, and does none.
func asker(t *testing.T, url string) func(day int) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	e, err := Open(t.Context(), DB{Write: db, Read: db}, Options{App: "shop", Log: new(logged).to()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return func(day int) {
		t.Helper()
		window := time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		a, err := e.Control().Trigger(t.Context(), control.Person{Name: "ops"}, control.Request{Job: "report", Window: window})
		if err != nil || a.Reply.Outcome != daybook.Started {
			t.Fatalf("trigger: %+v %v", a.Reply, err)
		}
	}
}

// TestH43ListensAgain: the connection that listens is killed ten times. Each time calls are heard again within five seconds,
// and what became due meanwhile is done within the time of a poll.
func TestH43ListensAgain(t *testing.T) {
	url := pgtest.URL(t)
	var log logged
	var done atomic.Int64
	e := listensOn(t, url, url+"&application_name=ear", &log, counting(&done))
	other, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	soon(t, 10*time.Second, "calls come through", func() bool { return e.ear.State() == daybook.CallsCome })
	ask := asker(t, url)
	kills := 10
	if testing.Short() {
		kills = 3
	}
	var slowest time.Duration
	pid := 0
	for n := range kills {
		listens := func() bool {
			var now int
			err := other.QueryRowContext(t.Context(), "SELECT pid FROM pg_stat_activity WHERE application_name = 'ear' AND query LIKE 'LISTEN%' AND pid <> $1", pid).Scan(&now)
			if err == nil {
				pid = now
			}
			return err == nil
		}
		slowest = max(slowest, soon(t, 5*time.Second, "listens again", listens))
		if _, err := other.ExecContext(t.Context(), "SELECT pg_terminate_backend($1)", pid); err != nil {
			t.Fatal(err)
		}
		ask(n)
		soon(t, 3*time.Second, "done while nothing is heard", func() bool { return done.Load() == int64(n+1) })
	}
	t.Logf("killed %d times, listening again within %s", kills, slowest.Round(time.Millisecond))
	soon(t, 10*time.Second, "calls come through", func() bool { return e.ear.State() == daybook.CallsCome })
	if n := log.count("does not come through"); n > 0 {
		t.Errorf("a cut connection was taken for a pooler %d times", n)
	}
}

// TestACallIsHeardAtOnce: what another process makes due starts long before the next poll, most of the time.
func TestACallIsHeardAtOnce(t *testing.T) {
	url := pgtest.URL(t)
	var log logged
	var done atomic.Int64
	e := listensOn(t, url, url, &log, counting(&done))
	soon(t, 10*time.Second, "calls come through", func() bool { return e.ear.State() == daybook.CallsCome })
	ask := asker(t, url)
	var all time.Duration
	const n = 20
	for i := range n {
		ask(i)
		all += soon(t, 5*time.Second, "done", func() bool { return done.Load() == int64(i+1) })
	}
	t.Logf("done after %s on average", (all / n).Round(time.Millisecond))
	if all/n > 300*time.Millisecond { // polls alone: half a second and more
		t.Errorf("done after %s on average: it was polled for", all/n)
	}
}

// TestH44ListenThroughAPooler: NOTIFY is taken and never delivered. It is said once, nothing waits for it, and everything
// starts within the time of a poll.
func TestH44ListenThroughAPooler(t *testing.T) {
	url := pgtest.URL(t)
	proxy := pgtest.Through(t, url)
	proxy.Deaf(true)
	var log logged
	var done atomic.Int64
	e := listensOn(t, proxy.URL(), proxy.URL(), &log, counting(&done))
	ask := asker(t, proxy.URL())
	tries := 6
	if testing.Short() {
		tries = 2
	}
	for i := range tries {
		ask(i)
		if took := soon(t, 4*time.Second, "done", func() bool { return done.Load() == int64(i+1) }); took > 2*time.Second {
			t.Errorf("window %d was done after %s", i, took)
		}
	}
	soon(t, 2*callWithin, "it is noticed", func() bool { return e.ear.State() == daybook.CallsLost })
	if n := log.count("NOTIFY does not come through, as with a pooler in transaction mode"); n != 1 {
		t.Errorf("said %d times", n)
	}
	if n := log.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

// TestADeafEarHearsAgain: a pooler that is gone, as when the URL's name leads elsewhere, is found to be gone.
func TestADeafEarHearsAgain(t *testing.T) {
	var log logged
	var calls atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		heard := make(chan struct{})
		e := newEar(listenerFunc(func(ctx context.Context, listening, hear func()) error {
			listening()
			for {
				select {
				case <-heard:
					hear()
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}), func(context.Context) error {
			if calls.Add(1) > 2 { // the first two are lost
				go func() { heard <- struct{}{} }()
			}
			return nil
		}, func() {}, log.to())
		var ended sync.WaitGroup
		ended.Go(func() { e.run(ctx) })
		<-time.After(callWithin + time.Second)
		if e.State() != daybook.CallsLost {
			t.Errorf("state %q after a call that was lost", e.State())
		}
		<-time.After(2*deafFor + 4*callWithin)
		if e.State() != daybook.CallsCome {
			t.Errorf("state %q after calls came through again", e.State())
		}
		if n := log.count("level=WARN"); n != 1 {
			t.Errorf("%d warnings", n)
		}
		stop()
		ended.Wait()
	})
}

// listenerFunc makes a function a daybook.Listener.
type listenerFunc func(ctx context.Context, listening, heard func()) error

func (f listenerFunc) Listen(ctx context.Context, _ string, listening, heard func()) error {
	return f(ctx, listening, heard)
}

// TestAnIdleNodeIsQuiet: a node with nothing to do sends at most two statements a second.
func TestAnIdleNodeIsQuiet(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures for a while")
	}
	proxy := pgtest.Through(t, pgtest.URL(t))
	var log logged
	var done atomic.Int64
	e := listensOn(t, proxy.URL(), proxy.URL(), &log, counting(&done))
	soon(t, 10*time.Second, "calls come through", func() bool { return e.ear.State() == daybook.CallsCome })
	<-time.After(3 * time.Second) // what belongs to the start
	const span = 20 * time.Second
	before := proxy.Statements()
	<-time.After(span)
	rate := float64(proxy.Statements()-before) / span.Seconds()
	t.Logf("%.2f statements a second", rate)
	if rate > 2 {
		t.Errorf("%.2f statements a second with nothing to do", rate)
	}
}
