package main

import (
	"bytes"
	"encoding/json"
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

// demoStory is what the demo says of its acts, but for the times of the clock and the space that only lays out.
var demoStory = []string{
	"[1/4] 2026-03-29  The night of 29 March, Europe/Berlin",
	"schedule → started (02:00 does not exist)", "kill -9 while sub_07 is being charged",
	"platform retry → joined", "probe: sub_07 is charged → not repeated → extended",
	"sub_13 declined → dead letter; 19 go on", "you, clicking → refused: replay it",
	"card changed, replay → …/sub_13#charge@2", "gateway's book: due 20, charged 20, twice 0", "[2/4] 2026-03-30  Trigger three times, charge once",
	"schedule → started    platform retry → joined    you, clicking → reused", "due 20, charged 20, twice 0",
	"[3/4] 2026-03-31  Kill in mid-charge, kill between charged and extended, then 504 twice",
	"sub_07 probe: yes · sub_11 extended · sub_15 unknown → probe: no → #charge@2 → #charge@3",
	"[4/4] 2026-04-01  A declined card",
	"402 is permanent → dead letter, alert in alerts.log → card changed → replay: same key, new wire key, charged",
	"Triggers 10 → windows 4 → charges 80 for 80 due, twice 0.",
}

// The demo tells its story in order, and its book, which is what counts, says the same; also where Chinese is spoken.
func TestDemo(t *testing.T) {
	t.Parallel()
	p := play(t, "--fast", "--keep")
	if code := p.ends(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.noProcesses(t)
	rest := p.text()
	for _, want := range demoStory {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("it does not say, in its place, %q", want)
			continue
		}
		rest = after
	}
	if n := strings.Count(p.text(), "✓\n"); n != 4 {
		t.Errorf("%d acts came out right", n)
	}
	dirs, err := filepath.Glob(filepath.Join(p.temp, "daybook-demo-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("kept: %v %v", dirs, err)
	}
	theBookSays(t, filepath.Join(dirs[0], "gateway.jsonl"))
	theShopSays(t, filepath.Join(dirs[0], "shop.jsonl"))
}

// theBookSays checks who was charged when, and under which wire keys.
func theBookSays(t *testing.T, path string) {
	t.Helper()
	tally, err := gateway.Count(path)
	if err != nil {
		t.Fatal(err)
	}
	if tally.Charges != 80 || tally.Twice != 0 || tally.Declined != 2 || len(tally.ByDay) != 80 || tally.Amounts["EUR"] != 80*demoCents {
		t.Errorf("%+v", tally)
	}
	lines, err := gateway.ReadBook(path)
	if err != nil {
		t.Fatal(err)
	}
	odd := map[string]string{
		"renew:2026-03-29/sub_13": "#charge@2", "renew:2026-03-31/sub_15": "#charge@3", "renew:2026-04-01/sub_16": "#charge@2",
	}
	for _, l := range lines {
		if l.Kind != gateway.KindCharge || l.Status != gateway.Charged {
			continue
		}
		key := string(demoKey(l.Day, l.Customer))
		want := odd[key]
		if want == "" {
			want = "#charge"
		}
		if l.Key != key+want {
			t.Errorf("%s of %s was charged under %s", l.Customer, l.Day, l.Key)
		}
		if got := l.Time.Format(time.DateOnly); got != l.Day {
			t.Errorf("%s was charged on %s", key, got)
		}
	}
}

// theShopSays checks that everybody was extended, each day.
func theShopSays(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	extended := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var l struct{ Key string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		extended[l.Key]++
	}
	if len(extended) != 80 {
		t.Errorf("%d subscriptions were extended", len(extended))
	}
}

func TestDemoInChinese(t *testing.T) {
	t.Parallel()
	p := play(t, "--fast", "--lang", "zh-CN")
	if code := p.ends(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.nothingLeft(t)
	for _, want := range []string{"[1/4] 2026-03-29  3 月 29 日之夜", "核实：sub_07 已扣款 → 不重复 → 已延期", "触发 10 → 业务窗口 4 → 扣款 80（应扣 80），重复 0。"} {
		if !strings.Contains(p.text(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
}

func TestDemoWithoutKeys(t *testing.T) {
	t.Parallel()
	p := play(t, "--fast", "--break-key")
	if code := p.ends(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.nothingLeft(t)
	if !strings.Contains(p.text(), "due 20, charged 60, twice 40") || !strings.Contains(p.text(), "60 charges for 20 due") {
		t.Error("the incident is not shown")
	}
}

// The clock of the demo is for the processes of the demo: without the file of one there is no such command.
func TestDemoClock(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"demo-at"}, {"demo-at", none}, {"demo-at", none, "version"}} {
		if r := call(t, nil, args...); r.code != 2 || !strings.Contains(r.stderr, "unknown command") {
			t.Errorf("%q: exit %d: %s", args, r.code, r.stderr)
		}
	}
	c := &demoClock{path: filepath.Join(t.TempDir(), "clock.json")}
	from := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	if err := c.write(from, from); err != nil {
		t.Fatal(err)
	}
	if err := c.runTo(from.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	d, err := (&demoClock{path: c.path}).read()
	if err != nil {
		t.Fatal(err)
	}
	for real, want := range map[time.Duration]time.Duration{-time.Hour: 0, 0: 0, 500 * time.Millisecond: 30 * time.Second, time.Second: time.Minute, time.Hour: time.Minute} {
		if got := d.at(d.Since.Add(real)).Sub(d.From); got != want {
			t.Errorf("%s later it is %s later by the clock, want %s", real, got, want)
		}
	}
	if !d.Birth.Equal(from) {
		t.Errorf("born %s", d.Birth)
	}
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	if got := c.Now(); got.Before(from) || got.After(from.Add(time.Minute)) {
		t.Errorf("without its file it says %s", got)
	}
}

func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"gateway", "[1/4]", "kill -9", "[3/4]"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
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
