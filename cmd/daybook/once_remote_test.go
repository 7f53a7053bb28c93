package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// office is a server with a ledger, and a machine whose crontab asks it.
type office struct {
	*scene
	t       *testing.T
	address string
	token   string // its file
	serve   *server
	machine string // where lines are run
}

const officeFile = `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  report: {window: day, shell: 'echo server >> lines', retry: {backoff: [1s], jitter: 0%, permanent_exit: [3]}, timeout: 1s}
`

func newOffice(t *testing.T, ledger string) *office {
	t.Helper()
	return newOfficeOf(t, ledger, officeFile)
}

func newOfficeOf(t *testing.T, ledger, file string) *office {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	_ = ln.Close()
	s := newScene(t, ledger, file)
	o := &office{scene: s, t: t, address: address, machine: t.TempDir()}
	s.must(0, "db", "migrate")
	o.token = filepath.Join(o.machine, "token")
	o.write("token", s.must(0, "token", "create", "--role", "act", "--name", "backup-host"))
	o.open()
	return o
}

// open starts the server.
func (o *office) open() {
	o.t.Helper()
	o.serve = o.door("--listen", o.address, "--lease", "2s")
}

// kill ends the server as a power cut would.
func (o *office) kill() {
	o.t.Helper()
	_ = o.serve.Process.Kill()
	_ = o.serve.Wait()
}

func (o *office) write(name, text string) {
	o.t.Helper()
	if err := os.WriteFile(filepath.Join(o.machine, name), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// lines are what the commands wrote on the machine.
func (o *office) lines() string {
	b, _ := os.ReadFile(filepath.Join(o.machine, "lines"))
	return string(b)
}

// line is a line of the machine's crontab.
func (o *office) line(args ...string) *exec.Cmd {
	o.t.Helper()
	cmd := o.command(append([]string{"once"}, args...)...)
	cmd.Dir = o.machine
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.machine, "USER=cron", "TZ=UTC", "DAYBOOK_SERVER=http://" + o.address, "DAYBOOK_TOKEN_FILE=" + o.token,
		"XDG_STATE_HOME=" + filepath.Join(o.machine, "state"), asProgram + "=1"}
	return cmd
}

// once runs a line to its end.
func (o *office) once(args ...string) result {
	o.t.Helper()
	var out, errs bytes.Buffer
	cmd := o.line(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		o.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// is fails the test unless a line ended with a code.
func (r result) is(t *testing.T, code int, says string) result {
	t.Helper()
	if r.code != code || !strings.Contains(r.stderr, says) {
		t.Errorf("exit %d, want %d with %q\n%s%s", r.code, code, says, r.stdout, r.stderr)
	}
	return r
}

// run is the record of a key.
func (o *office) run(key string) control.RunJSON {
	o.t.Helper()
	var r control.RunJSON
	if err := json.Unmarshal([]byte(o.must(0, "run", "show", key, "--json")), &r); err != nil {
		o.t.Fatal(err)
	}
	return r
}

// becomes waits until a run is in a state.
func (o *office) becomes(key string, state daybook.State) {
	o.t.Helper()
	if !waitFor(func() bool { return o.run(key).State == state }) {
		o.t.Fatalf("%s never became %s: %+v", key, state, o.run(key))
	}
}

// Whatever a line does over a file, it does the same over a server: the same code, the same state, as often begun.
func TestALineDoesTheSameOverAServer(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newOffice(t, ledger)
		file := newScene(t, "sqlite:"+filepath.Join(t.TempDir(), "line.db"), officeFile)
		for _, c := range []struct {
			job  string
			args []string // with the command behind them
			code int
		}{
			{"done", []string{"--tz", "UTC", "--date", "2026-03-02", "--", "sh", "-c", `echo "$DAYBOOK_KEY $DAYBOOK_WIRE_KEY $DAYBOOK_TRIGGER $DAYBOOK_BUSINESS_DATE $DAYBOOK_WINDOW_START" >> lines`}, 0},
			{"done", []string{"--tz", "UTC", "--date", "2026-03-02", "--", "sh", "-c", "echo again >> lines"}, 0},
			{"week", []string{"--tz", "UTC", "--window", "week", "--date", "2026-03-02", "--", "sh", "-c", `echo "$DAYBOOK_KEY" >> lines`}, 0},
			{"prev", []string{"--tz", "UTC", "--window", "previous-week", "--date", "2026-03-02", "--", "sh", "-c", `echo "$DAYBOOK_KEY" >> lines`}, 0},
			{"fails", []string{"--tz", "UTC", "--date", "2026-03-02", "--no-retry", "--", "sh", "-c", "echo x >> lines; exit 7"}, 75},
			{"fails", []string{"--tz", "UTC", "--date", "2026-03-02", "--no-retry", "--", "sh", "-c", "echo x >> lines"}, 75}, // not due yet
			{"later", []string{"--tz", "UTC", "--date", "2026-03-02", "--no-retry", "--", "sh", "-c", "exit 75"}, 75},
			{"permanent", []string{"--tz", "UTC", "--date", "2026-03-02", "--", "sh", "-c", "echo x >> lines; exit 65"}, 65},
			{"permanent", []string{"--tz", "UTC", "--date", "2026-03-02", "--", "sh", "-c", "echo x >> lines"}, 125}, // a letter is open
			{"once", []string{"--tz", "UTC", "--date", "2026-03-02", "--effects", "once", "--", "sh", "-c", "echo x >> lines; exit 7"}, 7},
			{"once", []string{"--tz", "UTC", "--date", "2026-03-02", "--effects", "once", "--", "sh", "-c", "echo x >> lines"}, 125}, // unknown
			{"asked", []string{"--tz", "UTC", "--date", "2026-03-02", "--effects", "once", "--probe", `echo "asked $DAYBOOK_WIRE_KEY" >> lines; echo '{"id":1}'`, "--", "sh", "-c", "echo x >> lines; exit 7"}, 0},
			{"slow", []string{"--tz", "UTC", "--date", "2026-03-02", "--effects", "once", "--timeout", "300ms", "--", "sh", "-c", "echo x >> lines; exec sleep 60"}, 124},
			{"missing", []string{"--tz", "UTC", "--date", "2026-03-02", "--", "./no-such-program"}, 1},
			{"report", []string{"--date", "2026-03-02", "--", "sh", "-c", "echo x >> lines; exit 3"}, 3},
			{"report", []string{"--tz", "Asia/Tokyo", "--date", "2026-03-03", "--", "true"}, 125}, // the file says otherwise
			{"nozone", []string{"--date", "2026-03-02", "--", "true"}, 125},
			{"badzone", []string{"--tz", "Berlin", "--date", "2026-03-02", "--", "true"}, 125},
			{"nowindow", []string{"--tz", "UTC", "--", "true"}, 125},
			{"reports", []string{"--tz", "UTC", "--date", "2026-03-02", "--", "sh", "-c", `echo '{"outcome":"permanent","message":"card declined","effects":{"mails":2}}' > "$DAYBOOK_RESULT_FILE"`}, 1},
		} {
			args := append([]string{"--job", c.job}, c.args...)
			over := o.once(args...)
			cmd := append([]string{"once", "-c", "daybook.yaml"}, args...)
			here := file.run(cmd...)
			if over.code != c.code || here.code != c.code {
				t.Errorf("%v: exit %d over a server, %d over a file, want %d\n%s\n%s", args, over.code, here.code, c.code, over.stderr, here.stderr)
			}
			if c.code == 125 && !json.Valid([]byte(over.stderr)) {
				t.Errorf("%v: stderr is %s", args, over.stderr)
			}
		}
		lines, err := os.ReadFile(filepath.Join(file.dir, "lines"))
		if err != nil || o.lines() != string(lines) {
			t.Errorf("over a server\n%s\nover a file\n%s", o.lines(), lines)
		}
		for _, key := range []string{"done:2026-03-02", "week:2026-W10", "prev:2026-W09", "fails:2026-03-02", "permanent:2026-03-02", "once:2026-03-02", "asked:2026-03-02", "slow:2026-03-02", "reports:2026-03-02"} {
			a, b := o.run(key), control.RunJSON{}
			if err := json.Unmarshal([]byte(file.must(0, "run", "show", key, "--json")), &b); err != nil {
				t.Fatal(err)
			}
			if a.State != b.State || a.Reason != b.Reason || a.Attempts != b.Attempts || a.Failures != b.Failures || a.Triggers != b.Triggers || a.FirstTrigger != b.FirstTrigger ||
				a.Error != b.Error || string(a.Result) != string(b.Result) || a.Home != b.Home || a.WindowStart != b.WindowStart || len(a.Counts) != len(b.Counts) {
				t.Errorf("over a server %+v\nover a file %+v", a, b)
			}
		}
		if text := o.must(0, "run", "logs", "permanent:2026-03-02"); text != "" {
			t.Errorf("printed %q", text)
		}
		o.serve.end()
	})
}

// What the command prints is seen where the line runs, and kept where the ledger is.
func TestOutputOverAServer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "sqlite:daybook.db")
	r := o.once("--job", "talk", "--tz", "UTC", "--date", "2026-03-02", "--", "sh", "-c", "echo seen; echo also >&2").is(t, 0, "")
	if !strings.Contains(r.stdout, "seen") {
		t.Errorf("the line shows %q", r.stdout)
	}
	if text := o.must(0, "run", "logs", "talk:2026-03-02"); text != "seen\nalso\n" {
		t.Errorf("kept is %q", text)
	}
	if text := o.must(0, "run", "show", "talk:2026-03-02", "--json"); !strings.Contains(text, `"command":"sh -c 'echo seen; echo also >&2'"`) {
		t.Errorf("the command is not told: %s", text)
	}
	o.serve.end()
}

// Nobody is there, or not who was meant: 125, and JSON that says so. Nothing ran.
func TestALineWithoutItsServer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "sqlite:daybook.db")
	line := []string{"--job", "backup", "--tz", "UTC", "--date", "2026-03-02", "--", "sh", "-c", "echo x >> lines"}
	o.write("token", "dbt_nonsense\n")
	o.once(line...).is(t, 125, "not one of this ledger")
	o.write("token", "")
	o.once(line...).is(t, 125, "holds no token")
	o.once(append([]string{"--token-file", "nowhere"}, line...)...).is(t, 125, "the token cannot be read")
	o.write("token", o.must(0, "token", "create", "--role", "view", "--name", "looker"))
	o.once(line...).is(t, 125, "daybook token create --role act")
	o.once(append([]string{"--server", "backup-host"}, line...)...).is(t, 125, "is not the address of a server")
	o.serve.end()
	o.once(line...).is(t, 125, "cannot be reached")
	if o.lines() != "" {
		t.Errorf("it ran: %s", o.lines())
	}
}

// aLine starts a line whose command waits for a file.
func (o *office) aLine(job string, more ...string) *exec.Cmd {
	o.t.Helper()
	args := append([]string{"--job", job, "--tz", "UTC", "--date", "2026-03-02"}, more...)
	cmd := o.line(append(args, "--", "sh", "-c", `echo "$DAYBOOK_FENCE" >> lines; until test -e go; do sleep 0.05; done; echo ended >> lines`)...)
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { o.write("go", ""); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if !waitFor(func() bool { return o.lines() != "" }) {
		o.t.Fatal("the command never ran")
	}
	return cmd
}

// The server is killed while the command runs, and comes back: the command is not disturbed, and its end is recorded.
func TestTheServerIsKilledUnderALine(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		for _, effects := range []string{"once", "repeatable"} {
			t.Run(effects, func(t *testing.T) {
				o := newOffice(t, ledger)
				job := "backup-" + effects
				cmd := o.aLine(job, "--effects", effects)
				o.kill()
				o.write("go", "")
				if !waitFor(func() bool { return strings.Contains(o.lines(), "ended") }) {
					t.Fatal("the command was disturbed")
				}
				o.open()
				if err := cmd.Wait(); err != nil {
					t.Errorf("the line: %v", err)
				}
				if r := o.run(job + ":2026-03-02"); r.State != daybook.Done || r.Attempts != 1 || o.lines() != "1\nended\n" {
					t.Errorf("%s after %d attempts, lines %q", r.State, r.Attempts, o.lines())
				}
				o.serve.end()
			})
		}
	})
}

// The server stays away: 125, which says what is not known there. When it is back the line reports first, and once-only
// work that was given up meanwhile is settled by that.
func TestTheServerStaysAway(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newOffice(t, ledger)
		cmd := o.aLine("backup", "--effects", "once")
		o.kill()
		o.write("go", "")
		err := cmd.Wait()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != daybook.ExitDaybook {
			t.Fatalf("the line: %v", err)
		}
		o.open()
		o.becomes("backup:2026-03-02", daybook.Dead)
		if r := o.run("backup:2026-03-02"); r.Letter.Kind != daybook.LetterUnknown {
			t.Errorf("letter %+v", r.Letter)
		}
		o.once("--job", "backup", "--tz", "UTC", "--date", "2026-03-02", "--effects", "once", "--", "sh", "-c", "echo twice >> lines").is(t, 0, "already done")
		if r := o.run("backup:2026-03-02"); r.State != daybook.Done || r.Attempts != 1 || o.lines() != "1\nended\n" {
			t.Errorf("%s after %d attempts, lines %q", r.State, r.Attempts, o.lines())
		}
		if left, _ := filepath.Glob(filepath.Join(o.machine, "state", "daybook", "run", "*", "*")); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		o.serve.end()
	})
}

// The line is killed, and its command lives on. Nothing is started beside it; what it leaves as its report is its report.
func TestTheLineIsKilled(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		t.Run("with a report", func(t *testing.T) {
			o := newOffice(t, ledger)
			args := []string{"--job", "charge", "--tz", "UTC", "--date", "2026-03-02", "--effects", "once", "--"}
			cmd := o.line(append(args, "sh", "-c", `echo begun >> lines; until test -e go; do sleep 0.05; done; echo '{"outcome":"done","result":"ch_1"}' > "$DAYBOOK_RESULT_FILE"; echo ended >> lines`)...)
			o.killed(cmd)
			o.becomes("charge:2026-03-02", daybook.Dead)
			o.once(append(args, "sh", "-c", "echo twice >> lines")...).is(t, 125, "unknown") // it is still alive
			o.write("go", "")
			if !waitFor(func() bool { return strings.Contains(o.lines(), "ended") }) {
				t.Fatal("the command ended with its line")
			}
			o.once(append(args, "sh", "-c", "echo twice >> lines")...).is(t, 0, "already done")
			if r := o.run("charge:2026-03-02"); string(r.Result) != `"ch_1"` || r.Attempts != 1 || o.lines() != "begun\nended\n" {
				t.Errorf("result %s after %d attempts, lines %q", r.Result, r.Attempts, o.lines())
			}
			o.serve.end()
		})
		t.Run("repeatable", func(t *testing.T) {
			o := newOffice(t, ledger)
			args := []string{"--job", "sync", "--tz", "UTC", "--date", "2026-03-02", "--no-retry", "--"}
			cmd := o.line(append(args, "sh", "-c", `echo begun >> lines; until test -e go; do sleep 0.05; done; echo ended >> lines`)...)
			o.killed(cmd)
			o.once(append(args, "sh", "-c", "echo beside >> lines")...).is(t, 75, "running elsewhere")
			o.becomes("sync:2026-03-02", daybook.Retryable)
			o.once(append(args, "sh", "-c", "echo beside >> lines")...).is(t, 75, "still alive here")
			o.write("go", "")
			if !waitFor(func() bool { return strings.Contains(o.lines(), "ended") }) {
				t.Fatal("the command ended with its line")
			}
			o.once(append(args, "sh", "-c", "echo again >> lines")...).is(t, 0, "")
			if r := o.run("sync:2026-03-02"); r.State != daybook.Done || o.lines() != "begun\nended\nagain\n" {
				t.Errorf("%s, lines %q", r.State, o.lines())
			}
			o.serve.end()
		})
	})
}

// The command is killed, and what it started lives on and may yet charge: the line waits for it, and no person is called before.
func TestTheCommandLeavesSomethingAlive(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newOffice(t, ledger)
		args := []string{"--job", "charge", "--tz", "UTC", "--date", "2026-03-02", "--effects", "once", "--"}
		cmd := o.line(append(args, "sh", "-c", `(until test -e go; do sleep 0.05; done; echo charged >> lines; echo '{"outcome":"done","result":"ch_1"}' > "$DAYBOOK_RESULT_FILE") >/dev/null 2>&1 & echo begun >> lines; kill -9 $$`)...)
		said, err := os.Create(filepath.Join(o.machine, "said"))
		if err != nil {
			t.Fatal(err)
		}
		defer said.Close()
		cmd.Stderr = said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		waits := func() bool { b, _ := os.ReadFile(said.Name()); return strings.Contains(string(b), "it is waited for") }
		if !waitFor(waits) {
			t.Fatal("the line does not wait for it")
		}
		if r := o.run("charge:2026-03-02"); r.State != daybook.Running || r.Letter != nil {
			t.Errorf("%s, letter %+v, while something is alive", r.State, r.Letter)
		}
		o.write("go", "")
		_ = cmd.Wait()
		if r := o.run("charge:2026-03-02"); r.State != daybook.Done || string(r.Result) != `"ch_1"` || o.lines() != "begun\ncharged\n" {
			t.Errorf("%s, result %s, lines %q", r.State, r.Result, o.lines())
		}
		o.serve.end()
	})
}

// killed starts a line and kills it once its command runs.
func (o *office) killed(cmd *exec.Cmd) {
	o.t.Helper()
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { o.write("go", "") })
	if !waitFor(func() bool { return strings.Contains(o.lines(), "begun") }) {
		o.t.Fatal("the command never ran")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// A person asks for the end on the server, or the machine asks the line to stop: the command is asked to end, politely.
func TestALineIsAskedToEnd(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		command := []string{"--", "sh", "-c", `trap 'echo asked >> lines; exit 75' TERM; echo begun >> lines; while :; do sleep 0.05; done`}
		for name, c := range map[string]struct {
			end   func(o *office, cmd *exec.Cmd)
			state daybook.State
			code  int
		}{
			"cancelled": {func(o *office, _ *exec.Cmd) {
				o.must(0, "run", "cancel", "cancelled:2026-03-02", "--reason", "a test", "-y")
			}, daybook.Cancelled, 75},
			"stopped": {func(_ *office, cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }, daybook.Retryable, 75},
		} {
			t.Run(name, func(t *testing.T) {
				o := newOffice(t, ledger)
				cmd := o.line(append([]string{"--job", name, "--tz", "UTC", "--date", "2026-03-02"}, command...)...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill() })
				if !waitFor(func() bool { return strings.Contains(o.lines(), "begun") }) {
					t.Fatal("the command never ran")
				}
				c.end(o, cmd)
				_ = cmd.Wait()
				if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(o.lines(), "asked") {
					t.Errorf("exit %d, want %d, lines %q", code, c.code, o.lines())
				}
				if r := o.run(name + ":2026-03-02"); r.State != c.state {
					t.Errorf("%s, want %s", r.State, c.state)
				}
				o.serve.end()
			})
		}
	})
}

// A line that a freeze keeps waiting says so, and until when: nobody takes its silence for work.
func TestALineSaysThatItIsFrozenOverAServer(t *testing.T) {
	o := newOffice(t, "sqlite:daybook.db")
	o.must(0, "freeze", "start", "--for", "30m", "--reason", "a deployment", "-y")
	o.once("--job", "iced", "--tz", "UTC", "--date", "2026-03-02", "--no-retry", "--", "sh", "-c", "echo x >> lines").is(t, 75, "iced:2026-03-02  is frozen until ")
	cmd := o.line("--job", "iced", "--tz", "UTC", "--date", "2026-03-02", "--", "sh", "-c", "echo x >> lines")
	errs := filepath.Join(o.machine, "errs")
	f, err := os.Create(errs)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stderr = f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said := func() string { b, _ := os.ReadFile(errs); return string(b) }
	if !waitFor(func() bool { return strings.Contains(said(), "iced:2026-03-02  is frozen until ") }) {
		t.Errorf("it waits and says %q", said())
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if n := strings.Count(said(), "is frozen until"); n > 2 || o.lines() != "" { // while it waits, and at its end
		t.Errorf("said %d times: %s; lines %q", n, said(), o.lines())
	}
	o.serve.end()
}
