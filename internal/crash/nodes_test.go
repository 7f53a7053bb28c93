package crash

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// elsewhere makes a process one of another machine: it finds nothing of what the first one started.
func (w *world) elsewhere(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+filepath.Join(w.dir, "elsewhere"))
}

// booked counts what the gateway took of a customer.
func (w *world) booked(customer string) (n int) {
	w.t.Helper()
	tally, err := gateway.Count(w.book)
	if err != nil {
		w.t.Fatal(err)
	}
	for who, times := range tally.ByDay {
		if who.Customer == customer {
			n += times
		}
	}
	return n
}

// Two machines on one PostgreSQL. One daybook stands still beyond its lease, while the commands that it started go on, and is
// continued: what they tell settles what was unknown, or is refused and shown, and nothing is done twice.
func TestAMachineStandsStillBeyondItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "shared postgres", `
  between: {priority: P0, effects: once, steps: true, window: day, retry: {backoff: [200ms], jitter: 0%},
    run: [sh, -c, '"$DAYBOOK_CRASH_BINARY" effect first -- ME book first && sleep 7 && "$DAYBOOK_CRASH_BINARY" effect second -- ME book second']}
  midway: {priority: P0, effects: once, steps: true, window: day, retry: {backoff: [200ms], jitter: 0%},
    run: [sh, -c, '"$DAYBOOK_CRASH_BINARY" effect first -- sh -c "ME book first && sleep 7" && "$DAYBOOK_CRASH_BINARY" effect second -- ME book second']}
  whole: {priority: P0, effects: once, window: day, run: [ME, report-later, 7s, ""]}
  again: {window: day, run: [ME, report-later, 7s, ""]}
`)
	first := w.served()
	for _, j := range []string{"between", "midway", "whole", "again"} {
		w.trigger(j, day)
	}
	w.until("both have charged", func() bool { return w.booked("between/first") == 1 && w.booked("midway/first") == 1 })
	w.begun("whole:"+day, 1)
	w.begun("again:"+day, 1)
	w.standStill(first)
	w.served(w.elsewhere)

	// Nobody told how these ended; what was done by then is not done again.
	w.ends("whole:"+day, daybook.Dead)
	w.until("the effect in the middle is unknown, or told by its command", func() bool {
		state, _ := w.state("midway:" + day)
		return state != daybook.Running || w.booked("midway/second") > 0
	})
	w.ends("again:"+day, daybook.Done)
	w.ends("between:"+day, daybook.Done)
	w.ends("midway:"+day, daybook.Done)
	_ = first.cmd.Process.Signal(syscall.SIGCONT)

	w.ends("whole:"+day, daybook.Done) // by the late report: it settles the letter
	if kind, state, alerts := w.letter("whole:" + day); kind != "unknown" || state != "settled" || alerts != 0 {
		t.Errorf("whole: letter %s %s with %d alerts", kind, state, alerts)
	}
	if kind, state, alerts := w.letter("midway:" + day); kind != "unknown" || state != "settled" || alerts != 0 {
		t.Errorf("midway: letter %s %s with %d alerts", kind, state, alerts)
	}
	w.until("the refused reports are kept", func() bool {
		return strings.HasPrefix(fmt.Sprint(w.results("again:"+day)), "[lost+done/0 ") && strings.Contains(fmt.Sprint(w.results("between:"+day)), "/0")
	})
	for _, customer := range []string{"between/first", "between/second", "midway/first", "midway/second"} {
		if n := w.booked(customer); n != 1 {
			t.Errorf("%s was charged %d times", customer, n)
		}
	}
	for job, n := range map[string]int{"whole": 1, "again": 2} {
		if got := len(w.entries(job+":"+day, "begin")); got != n {
			t.Errorf("%s: begun %d times, want %d", job, got, n)
		}
	}
	for _, j := range []string{"between", "midway", "whole", "again"} {
		t.Logf("%s: %v", j, w.results(j+":"+day))
	}
}
