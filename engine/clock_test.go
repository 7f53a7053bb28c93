package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// hands are the wall clock and the boot clock of a machine, moved by hand. Between moves they go on by themselves.
type hands struct {
	mu         sync.Mutex
	wall, boot time.Duration // ahead of the real ones
}

func (h *hands) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.wall)
}

func (h *hands) sinceBoot() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(born) + time.Hour + h.boot
}

var born = time.Now()

// leap moves the wall clock alone, as a wrong time server does.
func (h *hands) leap(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall += d
}

// sleep moves both, as a suspended machine does, and the hours that pass in a test.
func (h *hands) sleep(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall += d
	h.boot += d
}

// set moves the wall clock, before anything is started.
func (h *hands) set(to time.Time) { h.leap(time.Until(to)) }

// windows counts the calls for each window.
type windows struct {
	mu    sync.Mutex
	calls map[string][]string // by job: labels, in order
}

func (w *windows) do(_ context.Context, r *daybook.Run) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = make(map[string][]string)
	}
	w.calls[r.Job] = append(w.calls[r.Job], r.Window.Label)
	return nil
}

func (w *windows) of(job string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls[job])
}

// leapJobs are hourly: one repeatable, one that may be done once.
func leapJobs(w *windows) []engine.Definition {
	hourly := func(j *daybook.Job) { j.Schedule, j.Window = "hourly", daybook.PerFire }
	return []engine.Definition{
		job("again", daybook.Repeatable, w.do, hourly, func(j *daybook.Job) { j.Missed, j.CatchupGap = daybook.CatchUp, -1 }),
		job("once", daybook.Once, w.do, hourly, func(j *daybook.Job) { j.Missed, j.CatchupGap = daybook.CatchUp, -1 }),
	}
}

// holds returns the open alerts of a leap and the holds.
func leapt(t *testing.T, n *node) (alerts int, held bool) {
	t.Helper()
	list, err := n.Store().Alerts(t.Context(), true, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.Kind == daybook.AlertClockLeap {
			alerts++
		}
	}
	holds, err := n.Store().Holds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return alerts, len(holds) > 0
}

func hours(from, to int) (labels []string) {
	for h := from; h <= to; h++ {
		labels = append(labels, time.Date(2026, 3, 2, h, 0, 0, 0, time.UTC).Format("2006-01-02T15:04Z"))
	}
	return labels
}

// windowed waits until a job was called for just these windows, in any order.
func windowed(t *testing.T, w *windows, job string, want []string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%s: %v", job, w.of(job))
		}
	}()
	until(t, job+" for "+strings.Join(want, " "), func() bool {
		got := w.of(job)
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// warnings keeps what a process logs, whole lines of it.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *warnings) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// with returns the lines that have all of some words.
func (w *warnings) with(words ...string) (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.text.String()) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			lines = append(lines, line)
		}
	}
	return lines
}

// H29: the wall clock is eight hours ahead for two minutes, the boot clock is steady. Windows of repeatable work are decided
// once, and not again when the clock passes them. What may be done once is held, with one alert, and then each window is
// done at its own hour. One warning has the size of both leaps.
func TestH29ClockLeapsAhead(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t) // on PostgreSQL the database's clock corrects that of a machine: see below
	h := &hands{}
	h.set(time.Date(2026, 3, 2, 10, 0, 1, 0, time.UTC))
	w, said := &windows{}, &warnings{}
	n := serve(t, db.Open(t), engine.Options{Now: h.now, Boot: h.sinceBoot, Log: slog.New(slog.NewTextHandler(said, nil))}, leapJobs(w)...)
	h.leap(8 * time.Hour)
	windowed(t, w, "again", hours(11, 18))
	h.sleep(2 * time.Minute)
	if got := w.of("once"); len(got) != 0 {
		t.Errorf("once was called for %v while the time is not believed", got)
	}
	until(t, "one alert and a hold", func() bool {
		alerts, held := leapt(t, n)
		return alerts == 1 && held
	})
	h.leap(-8 * time.Hour)
	until(t, "the hold is over", func() bool {
		_, held := leapt(t, n)
		return !held
	})
	for hour := 11; hour <= 18; hour++ {
		h.sleep(time.Hour)
		windowed(t, w, "once", hours(11, hour))
	}
	windowed(t, w, "again", hours(11, 18))
	h.sleep(time.Hour)
	windowed(t, w, "once", hours(11, 19))
	windowed(t, w, "again", hours(11, 19))
	for _, job := range []string{"again", "once"} { // as the ledger has them, too
		for _, label := range hours(11, 19) {
			k := daybook.Key(job + ":" + label)
			if r := ends(t, n.Engine, k, daybook.Done); r.Attempts != 1 || r.Triggers != 1 {
				t.Errorf("%s has %d attempts and %d triggers", k, r.Attempts, r.Triggers)
			}
		}
	}
	if lines := said.with("level=WARN", "clock", "leapt=8h0m", "back=8h0m"); len(lines) != 1 {
		t.Errorf("%d warnings have the size of both leaps: %q", len(lines), said.with("level=WARN"))
	}
	acts, err := n.Store().Activities(t.Context(), time.Time{}, "daybook", 100)
	if err != nil || len(acts) != 1 || !strings.Contains(acts[0].Note, "leapt 8h0m") || !strings.Contains(acts[0].Note, "came back by 8h0m") {
		t.Errorf("kept: %+v %v", acts, err)
	}
	alerts, err := n.Store().Alerts(t.Context(), false, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(alerts) != 1 || alerts[0].Kind != daybook.AlertClockLeap || alerts[0].ClosedAt.IsZero() || !strings.Contains(alerts[0].LastError, "leapt 8h0m") {
		t.Errorf("alerts: %+v; by a clock that leapt nothing is late or silent", alerts)
	}
}

// A person confirms the time: what was held is then decided, once.
func TestClockLeapIsConfirmed(t *testing.T) {
	t.Parallel()
	h := &hands{}
	h.set(time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC))
	w := &windows{}
	n := serve(t, storetest.SQLite(t).Open(t), engine.Options{Now: h.now, Boot: h.sinceBoot}, leapJobs(w)...)
	h.leap(3 * time.Hour)
	windowed(t, w, "again", hours(11, 13))
	until(t, "a hold", func() bool { _, held := leapt(t, n); return held })
	if err := n.Control().EndHold(t.Context(), ops, daybook.HoldClock, "it is half past one"); err != nil {
		t.Fatal(err)
	}
	windowed(t, w, "once", hours(11, 13))
	h.sleep(time.Hour)
	windowed(t, w, "once", hours(11, 14))
	if alerts, held := leapt(t, n); alerts != 0 || held {
		t.Errorf("%d alerts, held: %v", alerts, held)
	}
}

// H28: a suspended machine. Both clocks have gone on: what became due is decided, and nothing is held.
func TestH28SuspendHoldsNothing(t *testing.T) {
	t.Parallel()
	h := &hands{}
	h.set(time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC))
	w := &windows{}
	n := serve(t, storetest.SQLite(t).Open(t), engine.Options{Now: h.now, Boot: h.sinceBoot}, leapJobs(w)...)
	h.sleep(3 * time.Hour)
	windowed(t, w, "again", hours(11, 13))
	windowed(t, w, "once", hours(11, 13))
	if alerts, held := leapt(t, n); alerts != 0 || held {
		t.Errorf("%d alerts, held: %v", alerts, held)
	}
}

// Two days either way, with work under way: nothing is done twice and nothing is lost.
func TestTwoDaysEitherWay(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": 48 * time.Hour, "back": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hands{}
			h.set(time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC))
			w := &windows{}
			begun, release := make(chan struct{}, 1), make(chan struct{})
			slow := answering(nil)
			under := job("slow", daybook.Once, func(ctx context.Context, r *daybook.Run) error {
				begun <- struct{}{}
				select {
				case <-release:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return slow.do(ctx, r)
			})
			n := serve(t, storetest.SQLite(t).Open(t), engine.Options{Now: h.now, Boot: h.sinceBoot, Lease: 3 * time.Second}, append(leapJobs(w), under)...) // shorter ones lapse by themselves on a busy machine
			h.sleep(time.Hour)
			windowed(t, w, "once", hours(11, 11))
			windowed(t, w, "again", hours(11, 11))
			k := n.trigger("slow", "2026-02-01")
			comes(t, "the beginning", begun)
			h.leap(by)
			if by > 0 {
				until(t, "a hold", func() bool { _, held := leapt(t, n); return held })
				until(t, "two days of windows", func() bool { return len(w.of("again")) == 1+48 })
			}
			passes(t, n, 7)
			if r := run(t, n.Engine, k); r.State != daybook.Running || r.Attempts != 1 {
				t.Errorf("what was under way is %s, attempt %d", r.State, r.Attempts)
			}
			h.leap(-by)
			passes(t, n, 7)
			close(release)
			ends(t, n.Engine, k, daybook.Done)
			if slow.n.Load() != 1 {
				t.Errorf("it was called %d times", slow.n.Load())
			}
			until(t, "no hold", func() bool { _, held := leapt(t, n); return !held })
			h.sleep(time.Hour)
			windowed(t, w, "once", hours(11, 12))
			if by < 0 {
				windowed(t, w, "again", hours(11, 12))
			}
		})
	}
}

// passes waits until a lease has been renewed some times, or the loops have gone round otherwise: one second each.
func passes(t *testing.T, n *node, seconds int) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range seconds {
		<-tick.C
	}
}

// On PostgreSQL a machine whose clock leaps goes by the database's: it claims nothing while it is off, and no window is
// decided before its time.
func TestClockOfAMachineOnPostgres(t *testing.T) {
	t.Parallel()
	h := &hands{}
	w := &windows{}
	each := func(j *daybook.Job) {
		j.Schedule, j.Window, j.Missed, j.CatchupGap = "hourly", daybook.PerFire, daybook.CatchUp, -1
	}
	d := job("again", daybook.Repeatable, w.do, each)
	manual := answering(nil)
	n := serve(t, storetest.Postgres(t).Open(t), engine.Options{Now: h.now, Boot: h.sinceBoot}, d, job("manual", daybook.Repeatable, manual.do))
	h.leap(8 * time.Hour)
	passes(t, n, 2)
	k := n.trigger("manual", "2026-03-02")
	passes(t, n, 2)
	if r := run(t, n.Engine, k); r.State != daybook.Scheduled {
		t.Errorf("%s is %s on a machine eight hours off", k, r.State)
	}
	runs, err := n.Store().Runs(t.Context(), daybook.Filter{Job: "again", Limit: 100})
	if err != nil || len(runs) > 1 { // a full hour may have come by itself
		t.Errorf("%d windows were decided before their time: %v", len(runs), err)
	}
	h.leap(-8 * time.Hour)
	ends(t, n.Engine, k, daybook.Done)
}
