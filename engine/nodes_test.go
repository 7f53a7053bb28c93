package engine_test

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/internal/pgtest"
)

// lines is a log for tests to read.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

func pg(t *testing.T, url string) engine.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return engine.DB{Write: db, Read: db}
}

// H36 and H37 with real clocks: of two nodes on one PostgreSQL one is three seconds behind the database. Work of ten
// milliseconds is over long before the slower one looks. Each window is planned, claimed and done once, by the clock of the
// database.
func TestH36AndH37TwoClocks(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	var w windows
	do := func(ctx context.Context, r *daybook.Run) error {
		<-time.After(10 * time.Millisecond)
		return w.do(ctx, r)
	}
	often := job("report", daybook.Once, do, func(j *daybook.Job) {
		j.Schedule, j.Window, j.Overlap, j.Missed, j.CatchupGap = "every 1s", daybook.PerFire, daybook.OverlapAllow, daybook.CatchUp, -1
	})
	var log lines
	o := func(behind time.Duration) engine.Options {
		return engine.Options{Now: func() time.Time { return time.Now().Add(-behind) }, Log: slog.New(slog.NewTextHandler(&log, nil))}
	}
	slow := serve(t, pg(t, url), o(3*time.Second), often)
	serve(t, pg(t, url), o(0), often)
	n := 8
	if testing.Short() {
		n = 4
	}
	until(t, "windows", func() bool { return len(w.of("report")) >= n })
	if err := slow.stop(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, label := range w.of("report") {
		if seen[label] {
			t.Errorf("%s was done twice", label)
		}
		seen[label] = true
	}
	claimed := 0
	runs, err := slow.Store().Runs(t.Context(), daybook.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var first, last time.Time
	for _, r := range runs {
		for _, a := range attempts(t, slow.Engine, r.Key) {
			if a.Node == slow.Node().ID {
				claimed++
			}
			if early := r.Window.Start.Sub(a.ClaimedAt); early > 0 {
				t.Errorf("%s was claimed %s before its fire", r.Key, early)
			}
		}
		if first.IsZero() || r.Window.Start.Before(first) {
			first = r.Window.Start
		}
		if r.Window.Start.After(last) {
			last = r.Window.Start
		}
	}
	if want := int(last.Sub(first)/time.Second) + 1; len(runs) != want {
		t.Errorf("%d runs from %s to %s, want %d", len(runs), first, last, want)
	}
	t.Logf("%d windows, of which the node behind claimed %d", len(runs), claimed)
	if !log.has("the clock of this machine is off the database's") {
		t.Error("nothing was said of a clock that is three seconds off")
	}
}

// A node that is more than five seconds off claims nothing and says so; the others do the work, and once its clock is right
// it claims again.
func TestANodeThatIsFarOffClaimsNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	var h hands
	h.leap(-6 * time.Second)
	var w windows
	var log lines
	n := serve(t, pg(t, url), engine.Options{Now: h.now, Log: slog.New(slog.NewTextHandler(&log, nil))}, job("report", daybook.Repeatable, w.do))
	key := n.trigger("report", "2026-03-02")
	until(t, "it says so", func() bool { return log.has("nothing is claimed here") })
	if _, err := n.Store().NextDue(t.Context(), n.Node().Role); err != nil {
		t.Fatal(err)
	}
	if r := run(t, n.Engine, key); r.State != daybook.Scheduled {
		t.Fatalf("it was claimed: %s", r.State)
	}
	views, err := n.Control().NodeViews(t.Context())
	// By how much it is measured, give or take half of the fastest round trip.
	if err != nil || len(views) != 1 || len(views[0].Findings) != 1 || !strings.Contains(views[0].Findings[0].What.String(), "its clock is off by ") ||
		(views[0].Offset-6*time.Second).Abs() > time.Second/2 {
		t.Errorf("the nodes: %+v %v", views, err)
	}
	other := serve(t, pg(t, url), engine.Options{}, job("report", daybook.Repeatable, w.do))
	ends(t, other.Engine, key, daybook.Done)
	if a := attempts(t, other.Engine, key); len(a) != 1 || a[0].Node != other.Node().ID {
		t.Errorf("attempts: %+v", a)
	}
}
