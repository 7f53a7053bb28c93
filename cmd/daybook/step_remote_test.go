package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

// newTill is an office whose file has a job with steps that lines of the machine do. In their scripts daybook is ./daybook.
func newTill(t *testing.T, ledger string) *office {
	t.Helper()
	o := newOfficeOf(t, ledger, officeFile+"  pay: {window: day, steps: true, effects: once, settles: 1s, retry: {backoff: [1s], jitter: 0%}, run: [\"true\"]}\n")
	me, err := os.Executable()
	if err == nil {
		err = os.Symlink(me, filepath.Join(o.machine, "daybook"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) pay(script string) []string {
	return []string{"--job", "pay", "--date", "2026-03-02", "--", "sh", "-euc", script}
}

// A line over a server marks its steps there, with the token of its claim. A
// line for the shell of the server's machine is not taken from it.
func TestStepsOfALineOverAServer(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newTill(t, ledger)
		got := o.once(o.pay(`test -z "${DAYBOOK_DB:-}"
./daybook step list -- echo listed
./daybook effect charge -- sh -c 'echo "$DAYBOOK_WIRE_KEY" >> lines; echo ch_1'
./daybook effect mail --undo 'touch /tmp/never' -- sh -c 'echo "$DAYBOOK_WIRE_KEY" >> lines' || test $? = 125
./daybook effect mail --probe 'grep -q "$DAYBOOK_WIRE_KEY" lines' -- sh -c 'echo "$DAYBOOK_WIRE_KEY" >> lines; exit 1'`)...)
		got.is(t, 0, "")
		if n := strings.Count(got.stdout, "listed\nch_1\n"); n != 1 || !strings.Contains(got.stdout, "an undo command is taken from commands that serve has started") {
			t.Errorf("said %q", got.stdout)
		}
		if r := o.run("pay:2026-03-02"); r.State != daybook.Done || o.lines() != "pay:2026-03-02#charge\npay:2026-03-02#mail\n" {
			t.Errorf("%s after %d attempts, lines %q", r.State, r.Attempts, o.lines())
		}
		if got := o.must(0, "key", "show", "pay:2026-03-02"); !strings.Contains(got, "effect mail  done  wire key pay:2026-03-02#mail  settled by probe") {
			t.Errorf("%s", got)
		}
		o.serve.end()
	})
}

// The server is away when an effect ends, and its work dies before it is back: what was known of the end lies in the directory
// of the attempt, and the next call of the line tells it first.
func TestTheServerIsAwayWhenAnEffectEnds(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newTill(t, ledger)
		line := o.pay(`./daybook effect charge -- sh -c 'echo "$DAYBOOK_WIRE_KEY" >> lines; echo $PPID > effect; until test -e go; do sleep 0.05; done; echo ch_1'`)
		cmd := o.line(line...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !waitFor(func() bool {
			b, _ := os.ReadFile(filepath.Join(o.machine, "effect"))
			return strings.HasSuffix(string(b), "\n")
		}) {
			t.Fatal("the effect never began")
		}
		o.kill()
		o.write("go", "")
		kept := func() []string {
			list, _ := filepath.Glob(filepath.Join(o.machine, "state", "daybook", "run", "*", "*", "step-charge.json"))
			return list
		}
		if !waitFor(func() bool { return len(kept()) == 1 }) {
			t.Fatal("the end of the effect is kept nowhere")
		}
		pid, _ := os.ReadFile(filepath.Join(o.machine, "effect"))
		if err := exec.Command("kill", "-9", strings.TrimSpace(string(pid))).Run(); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != daybook.ExitDaybook {
			t.Fatalf("the line: %v", err)
		}
		o.open()
		o.becomes("pay:2026-03-02", daybook.Dead)
		if r := o.run("pay:2026-03-02"); r.Letter.Kind != daybook.LetterUnknown {
			t.Errorf("letter %+v", r.Letter)
		}
		o.once(line...) // either it goes on, or the server's own command was first
		o.becomes("pay:2026-03-02", daybook.Done)
		if got := o.must(0, "key", "show", "pay:2026-03-02"); o.lines() != "pay:2026-03-02#charge\n" || !strings.Contains(got, "settled by late report") {
			t.Errorf("lines %q\n%s", o.lines(), got)
		}
		if len(kept()) != 0 {
			t.Errorf("left behind: %v", kept())
		}
		o.serve.end()
	})
}

// The ledger is away before an effect begins, and its script goes on and says that it is done: it is not, and is tried again. Once a
// later call for the effect was answered, nothing is held against the attempt.
func TestTheServerIsAwayBeforeAnEffectBegins(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		const away = `DAYBOOK_SERVER=http://127.0.0.1:1 ./daybook effect charge -- sh -c 'echo never >> lines' & pid=$!
until test -e "$(dirname "$DAYBOOK_RESULT_FILE")/unbegun-charge.txt"; do sleep 0.05; done
kill -9 $pid; wait $pid || true
`
		o := newTill(t, ledger)
		o.once(o.pay(`test -e went && exit 75; touch went; ` + away)...)
		if got := o.must(0, "key", "show", "pay:2026-03-02"); !strings.Contains(got, "effect charge did not begin: the ledger did not answer") || o.lines() != "" {
			t.Errorf("lines %q\n%s", o.lines(), got)
		}
		line := o.pay(away + `./daybook effect charge -- sh -c 'echo "$DAYBOOK_WIRE_KEY" >> lines'`)
		line[3] = "2026-03-03"
		o.once(line...).is(t, 0, "")
		if r := o.run("pay:2026-03-03"); r.State != daybook.Done || r.Attempts != 1 || o.lines() != "pay:2026-03-03#charge\n" {
			t.Errorf("%s after %d attempts, lines %q", r.State, r.Attempts, o.lines())
		}
		o.serve.end()
	})
}
