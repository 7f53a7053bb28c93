package runner

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// helperVar makes the test binary a Daybook of its own: one that runs the order in the variable and can be killed.
const helperVar = "RUNNER_TEST_ORDER"

func TestMain(m *testing.M) {
	if text := os.Getenv(helperVar); text != "" {
		_ = os.Unsetenv(helperVar)
		var o daybook.Order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			os.Exit(2)
		}
		(&Exec{}).Run(context.Background(), o)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// order returns an order for a run of one day. With one word it is text for the shell, else a program.
func order(t *testing.T, argv ...string) daybook.Order {
	t.Helper()
	c := daybook.Command{Argv: argv}
	if len(argv) == 1 {
		c = daybook.Command{Shell: argv[0]}
	}
	key := daybook.KeyParts{Job: "renew", Window: "2026-10-26", Subject: "sub_07"}.Key()
	return daybook.Order{
		Run: &daybook.Run{
			Key: key, Job: "renew", Subject: "sub_07", FirstSource: "schedule",
			Window: daybook.Window{
				Label: "2026-10-26", Date: "2026-10-26",
				Start: time.Date(2026, 10, 25, 16, 0, 0, 0, time.UTC), End: time.Date(2026, 10, 26, 16, 0, 0, 0, time.UTC),
			},
		},
		Job:     &daybook.Job{Name: "renew", Command: c},
		Attempt: 2, Fence: 7, WireKey: string(key),
		Dir: filepath.Join(t.TempDir(), "attempt"),
	}
}

// quick is an Exec whose waits fit a test.
func quick() *Exec { return &Exec{Grace: 300 * time.Millisecond, Drain: 200 * time.Millisecond} }

func run(t *testing.T, o daybook.Order) daybook.Outcome {
	t.Helper()
	return quick().Run(t.Context(), o)
}

// patient bounds everything that a test waits for.
const patient = 20 * time.Second

// eventually polls for what another process does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit := time.NewTimer(patient)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited %s for: %s", patient, what)
		}
	}
}

func exists(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

// during runs o, cancels it with the cause once the file `ready` in the working directory of the command exists, and
// returns how it ended.
func during(t *testing.T, e *Exec, o daybook.Order, cause error) daybook.Outcome {
	t.Helper()
	o.Job.Dir = t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan daybook.Outcome, 1)
	go func() { ended <- e.Run(ctx, o) }()
	eventually(t, "the command to be ready", exists(filepath.Join(o.Job.Dir, "ready")))
	cancel(cause)
	select {
	case out := <-ended:
		return out
	case <-time.After(patient):
		t.Fatal("the command was not ended")
		panic("unreachable")
	}
}

func want(t *testing.T, out daybook.Outcome, result daybook.Result, errorPart string) {
	t.Helper()
	if out.Result != result || !strings.Contains(out.Error, errorPart) || errorPart == "" && out.Error != "" {
		t.Fatalf("got %s, error %q, detail %q, output %q; want %s, error with %q",
			out.Result, out.Error, out.Detail, daybook.Clip(out.Output.Text, 200), result, errorPart)
	}
}

// wantGroupGone checks that nothing of the group that o started is left.
func wantGroupGone(t *testing.T, o daybook.Order) {
	t.Helper()
	m, ok := readMeta(o.Dir)
	if !ok || m.Pgid == 0 {
		t.Fatalf("no group was written down: %+v", m)
	}
	eventually(t, "the group to be gone", func() bool { return !groupAlive(m.Pgid) })
}
