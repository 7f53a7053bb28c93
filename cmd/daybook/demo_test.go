package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook/internal/gateway"
)

// played is a demo as a process of its own.
type played struct {
	cmd  *exec.Cmd
	mark string // in the environment of it and of everything that it starts
	temp string // where it makes its directory

	mu   sync.Mutex
	said bytes.Buffer
}

func play(t *testing.T, args ...string) *played {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &played{temp: t.TempDir()}
	p.mark = "DAYBOOK_TEST_MARK=" + p.temp
	p.cmd = exec.Command(program, append([]string{"demo"}, args...)...)
	// What the environment says of other ledgers does not touch the demo.
	p.cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+p.temp, p.mark, "DAYBOOK_DB=sqlite:/nowhere/else.db", "DAYBOOK_CONFIG=/nowhere/else.yaml")
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range p.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return p
}

// Write implements io.Writer.
func (p *played) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

func (p *played) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// ends waits for the end and returns the exit code.
func (p *played) ends(t *testing.T) int {
	t.Helper()
	timer := time.AfterFunc(2*time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
	t.Logf("%s", p.text())
	return p.cmd.ProcessState.ExitCode()
}

// nothingLeft checks that no process and no directory is left.
func (p *played) nothingLeft(t *testing.T) {
	t.Helper()
	p.noProcesses(t)
	left, err := os.ReadDir(p.temp)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// noProcesses checks that every process ends; one that lost its parent may take a moment to notice.
func (p *played) noProcesses(t *testing.T) {
	t.Helper()
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		pids := p.processes()
		if len(pids) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Errorf("processes are left: %v", pids)
			return
		}
	}
}

// processes are those that were started by the demo, where the system tells.
func (p *played) processes() (list []int) {
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	for _, path := range found {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte(p.mark)) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/environ", &pid); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

func TestDemo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes some 20 s")
	}
	p := play(t, "--fast")
	if code := p.ends(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.nothingLeft(t)
	for _, want := range []string{
		"schedule → started    platform retry → joined    you, clicking → reused\n",
		"probe: yes → done, not repeated\n",
		"probe: no, no (a no counts only 2s after the end) → charged under renew:",
		"504, unknown → probe: no → #run@2 → 504, unknown → probe: no → #run@3 → charged\n",
		"402 Payment Required: the card of sub_01 was declined\n",
		"alerts.log: [P0] renew:",
		"you, clicking → refused    card changed, daybook dead replay → started: charged under renew:",
		" → windows 5 → charges 5 for 5 due, twice 0.",
	} {
		if !strings.Contains(p.text(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if n := strings.Count(p.text(), "✓\n"); n != 4 {
		t.Errorf("%d acts came out right", n)
	}
}

// The book is what counts, whatever the demo says.
func TestDemoKept(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes some 20 s")
	}
	p := play(t, "--fast", "--keep")
	if code := p.ends(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.noProcesses(t)
	books, err := filepath.Glob(filepath.Join(p.temp, "daybook-demo-*", "gateway.jsonl"))
	if err != nil || len(books) != 1 {
		t.Fatalf("books: %v %v", books, err)
	}
	tally, err := gateway.Count(books[0])
	if err != nil {
		t.Fatal(err)
	}
	if tally.Charges != 5 || tally.Twice != 0 || tally.Declined != 1 || len(tally.ByDay) != 5 {
		t.Errorf("%+v", tally)
	}
	lines, err := gateway.ReadBook(books[0])
	if err != nil {
		t.Fatal(err)
	}
	second, third := 0, 0
	for _, l := range lines {
		if l.Kind == gateway.KindCharge && l.Status == gateway.Charged && strings.HasSuffix(l.Key, "#run@2") {
			second++
		}
		if l.Kind == gateway.KindCharge && l.Status == gateway.Charged && strings.HasSuffix(l.Key, "#run@3") {
			third++
		}
	}
	if second != 2 || third != 1 {
		t.Errorf("%d charges under a second wire key, %d under a third", second, third)
	}
}

func TestDemoWithoutKeys(t *testing.T) {
	t.Parallel()
	p := play(t, "--fast", "--break-key")
	if code := p.ends(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.nothingLeft(t)
	if !strings.Contains(p.text(), "due 1, charged 3, twice 2") {
		t.Error("the incident is not shown")
	}
}

func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"gateway", "[1/4]", "[2/4]", "kill -9: "} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && when == "kill -9: " {
				t.Skip("it takes some 10 s")
			}
			p := play(t)
			deadline := time.NewTimer(time.Minute)
			defer deadline.Stop()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for !strings.Contains(p.text(), when) {
				select {
				case <-tick.C:
				case <-deadline.C:
					t.Fatalf("it does not say %q: %s", when, p.text())
				}
			}
			if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := p.ends(t); code != 130 {
				t.Errorf("exit code %d", code)
			}
			p.nothingLeft(t)
		})
	}
}
