package main

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook/config"
)

// TestSixJobs: the file that is shipped, and written by init --example, is right, and has the six jobs of the documents.
func TestSixJobs(t *testing.T) {
	t.Parallel()
	f, err := config.Load("../../examples/daybook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) > 0 {
		t.Errorf("%v", f.Warnings)
	}
	var got []string
	for i := range f.Jobs {
		j := &f.Jobs[i]
		got = append(got, strings.Join([]string{j.Name, string(j.Priority), j.Job.Schedule, string(j.Window), string(j.Effects), string(j.Missed)}, " | "))
	}
	want := []string{
		"renew | P0 | 0 2 * * * | day | once | catch_up",
		"reconcile | P0 | 30 6 * * * | day | repeatable | catch_up",
		"weekly | P1 | 0 8 * * * | previous-week | once | catch_up",
		"cleanup | P1 | 10 3 * * * | day | repeatable | skip",
		"digest | P1 | 0 7 * * * | day | once | coalesce",
		"sync | P1 | 0 5 * * * | day | repeatable | coalesce",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestInitExample(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shop")
	r := call(t, nil, "init", "--example", "saas", dir, "-n")
	if _, err := os.Stat(dir); r.code != 0 || err == nil || !strings.Contains(r.stdout, filepath.Join(dir, "bin", "report")) {
		t.Errorf("%+v", r)
	}
	if r := call(t, nil, "init", "--example", "saas", dir); r.code != 0 || !strings.Contains(r.stderr, "go run server.go") {
		t.Fatalf("%+v", r)
	}
	if r := call(t, nil, "check", filepath.Join(dir, "daybook.yaml")); r.code != 0 || !strings.Contains(r.stderr, "6 jobs, no faults\n") {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(filepath.Join(dir, "bin", "sync")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%v %v", info, err)
	}
	// One file in the way, and nothing is written.
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "server.go"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = call(t, nil, "init", "--example", "saas", other)
	if left, _ := os.ReadDir(other); r.code != 4 || len(left) != 1 || !strings.Contains(r.stderr, "server.go exists and is left as it is") {
		t.Errorf("%+v %v", r, left)
	}
	if r := call(t, nil, "init", "--example", "sas", other); r.code != 2 || !strings.Contains(r.stderr, "one of: saas") {
		t.Errorf("%+v", r)
	}
	if r := call(t, nil, "init", "--example", "saas", "--from-crontab"); r.code != 2 {
		t.Errorf("%+v", r)
	}
}

// shop is the example, played by real processes.
type shop struct {
	*testing.T
	dir string
	env []string
}

// TestExampleSaas plays the README of the example: the server is built and started, serve works on the file, and the book
// of the shop has each day once, whoever asks and whatever is lost.
func TestExampleSaas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds and starts the example")
	}
	s := &shop{T: t, dir: t.TempDir()}
	if r := call(t, nil, "init", "--example", "saas", s.dir); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	server := filepath.Join(t.TempDir(), "server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", server, "server.go")
	build.Dir, build.Env = s.dir, append(os.Environ(), "GOFLAGS=", "GO111MODULE=on", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the server of the example does not build: %v\n%s", err, out)
	}
	said, _ := s.start(nil, server, "-addr", "127.0.0.1:0", "-dir", s.dir)
	address := strings.TrimSuffix(strings.Fields(said)[2], ",")
	s.moveTo(address)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), asProgram+"=1", "USER=me", "GROUP_URL="+address+"/alerts", "GROUP_SECRET=whsec_YSBzZWNyZXQgb2YgMjQgYnl0ZXMh")
	serve := func() *exec.Cmd {
		_, cmd := s.start(s.env, program, "serve", "--lease", "2s")
		return cmd
	}
	serving := serve()

	// Three ask, once.
	for _, want := range []string{"started", "already done", "already done"} {
		if out := s.daybook(0, "job", "trigger", "renew", "--date", "2026-01-14", "--wait"); !strings.Contains(out, want) {
			t.Errorf("%s: %s", want, out)
		}
	}
	s.charged("2026-01-14", 1)

	// An answer that is lost is asked for, not repeated.
	s.fault(address, "lost")
	s.daybook(0, "job", "trigger", "renew", "--date", "2026-01-15", "--wait")
	if out := s.daybook(0, "key", "show", "renew:2026-01-15"); !strings.Contains(out, "yes") {
		t.Errorf("the probe is not told:\n%s", out)
	}
	s.charged("2026-01-15", 1)

	// A kill while the shop takes its time.
	s.fault(address, "slow")
	s.daybook(0, "job", "trigger", "renew", "--date", "2026-01-16")
	s.until("the charge is booked", func() bool { return s.count("2026-01-16") > 0 })
	if err := serving.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = serving.Wait()
	serving = serve()
	s.daybook(0, "run", "watch", "renew:2026-01-16", "--exit-status")
	s.charged("2026-01-16", 1)

	// A declined card is a dead letter, an alert on both channels, and after a replay one charge under the next wire key.
	s.fault(address, "declined")
	s.daybook(1, "job", "trigger", "renew", "--date", "2026-01-17", "--wait")
	for _, book := range []string{"phone.log", "alerts.jsonl"} {
		s.until("the alert is in "+book, func() bool { return strings.Contains(s.read(book), "renew:2026-01-17") })
	}
	s.daybook(0, "dead", "replay", "renew:2026-01-17", "--reason", "card changed", "--yes")
	s.daybook(0, "run", "watch", "renew:2026-01-17", "--exit-status")
	s.charged("2026-01-17", 1)
	if !strings.Contains(s.read("book.jsonl"), "renew:2026-01-17#run@2") {
		t.Errorf("%s", s.read("book.jsonl"))
	}

	// The other jobs.
	for _, job := range []string{"digest", "reconcile", "sync", "cleanup"} {
		s.daybook(0, "job", "trigger", job, "--date", "2026-01-15", "--wait")
	}
	s.daybook(0, "job", "trigger", "weekly", "--window", "2026-W02", "--wait")
	if n := strings.Count(s.read("mails.jsonl"), "\n"); n < 1 || !strings.Contains(s.read("mails.jsonl"), "digest:2026-01-15") {
		t.Errorf("%d mails", n)
	}
	if out := s.daybook(0, "run", "logs", "reconcile:2026-01-15"); !strings.Contains(out, "2026-01-15: 1 charged, 0 twice") {
		t.Errorf("%s", out)
	}
	if !strings.Contains(s.read("reports.log"), "report of 2026-W02, key weekly:2026-W02") {
		t.Errorf("%s", s.read("reports.log"))
	}
	if err := serving.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serving.Wait(); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// start starts a program in the shop and returns the first line that it says.
func (s *shop) start(env []string, program string, args ...string) (string, *exec.Cmd) {
	s.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = s.dir, env
	r, w, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	_ = w.Close()
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = r.Close() })
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		s.Fatalf("%s %v says nothing: %v", program, args, lines.Err())
	}
	first := lines.Text()
	go func() {
		for lines.Scan() { // nobody may be held up by a full pipe
			_ = lines.Text()
		}
	}()
	return first, cmd
}

// moveTo makes the file call another address: that of the documents may be taken on this machine.
func (s *shop) moveTo(address string) {
	s.Helper()
	path := filepath.Join(s.dir, "daybook.yaml")
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "http://127.0.0.1:3000") != 3 {
		s.Fatalf("%v\n%s", err, text)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "http://127.0.0.1:3000", address)), 0o600); err != nil {
		s.Fatal(err)
	}
}

// daybook runs a command and returns what it says.
func (s *shop) daybook(code int, args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		s.Fatalf("daybook %s: %v, want exit %d\n%s", strings.Join(args, " "), err, code, out)
	}
	return string(out)
}

func (s *shop) fault(address, name string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, address+"/faults/"+name, nil)
	if err != nil {
		s.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		s.Fatal(resp.Status)
	}
}

func (s *shop) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// count counts the charges of a day in the book of the shop.
func (s *shop) count(date string) int {
	return strings.Count(s.read("book.jsonl"), `"date":"`+date+`"`)
}

func (s *shop) charged(date string, want int) {
	s.Helper()
	if got := s.count(date); got != want {
		s.Errorf("%s is charged %d times, want %d\n%s", date, got, want, s.read("book.jsonl"))
	}
}

func (s *shop) until(what string, holds func() bool) {
	s.Helper()
	if !waitFor(holds) {
		s.Fatalf("%s: it never came\n%s", what, s.read("book.jsonl"))
	}
}
