package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/pgtest"
)

// onBothDatabases runs a test with a ledger in SQLite and one in PostgreSQL.
func onBothDatabases(t *testing.T, do func(t *testing.T, ledger string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		do(t, "sqlite:"+filepath.Join(t.TempDir(), "daybook.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		do(t, pgtest.URL(t))
	})
}

// scene is a directory in which the real program is run, on a ledger named by the environment.
type scene struct {
	t           *testing.T
	dir, ledger string
}

func newScene(t *testing.T, ledger, file string) *scene {
	t.Helper()
	s := &scene{t, t.TempDir(), ledger}
	if err := os.WriteFile(filepath.Join(s.dir, "daybook.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// command is the program as a process of its own.
func (s *scene) command(args ...string) *exec.Cmd {
	s.t.Helper()
	program, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), program, args...)
	cmd.Dir, cmd.WaitDelay = s.dir, 5*time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "USER=me", "TZ=UTC", "DAYBOOK_DB=" + s.ledger, asProgram + "=1"}
	return cmd
}

// run runs the program to its end.
func (s *scene) run(args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	cmd := s.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// must runs the program, which must end with a code, and returns what it wrote to stdout.
func (s *scene) must(code int, args ...string) string {
	s.t.Helper()
	r := s.run(args...)
	if r.code != code {
		s.t.Fatalf("daybook %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r.stdout
}

// serve starts a serve and returns what stops it and wants it to end well.
func (s *scene) serve() (stop func()) {
	s.t.Helper()
	var errs lockedBuffer
	cmd := s.command("serve")
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if !waitFor(func() bool { return strings.Contains(errs.String(), "ready in") }) {
		s.t.Fatalf("serve: %s", errs.String())
	}
	return func() {
		s.t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("serve: %v\n%s", err, errs.String())
		}
	}
}

// lockedBuffer is written by a process and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// aroundNoon returns a zone in which it is about noon now, so that no date changes under a test.
func aroundNoon(now time.Time) string {
	switch ahead := 12 - now.UTC().Hour(); {
	case ahead > 0:
		return fmt.Sprintf("Etc/GMT-%d", ahead)
	case ahead < 0:
		return fmt.Sprintf("Etc/GMT+%d", -ahead)
	}
	return "UTC"
}

// TestEveryDoorLeadsToOneKey: a job that appends a line is asked for one date by the schedule, by eight processes at
// once, by once, and by a person afterwards. The file has one line, and the key tells who asked and what came of it.
func TestEveryDoorLeadsToOneKey(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		zone := aroundNoon(time.Now())
		s := newScene(t, ledger, "version: 1\ntimezone: "+zone+`
defaults: {owner: ops}
jobs:
  append:
    schedule: every 1s
    window: day
    shell: sleep 0.3; echo "$DAYBOOK_KEY" >> lines
`)
		s.must(0, "db", "migrate")
		key := "append:" + time.Now().In(ownZone(zone)).Format(time.DateOnly)
		date := strings.TrimPrefix(key, "append:")

		stop := s.serve()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if r := s.run("job", "trigger", "append", "--date", date); r.code != 0 {
					t.Errorf("trigger: %+v", r)
				}
			})
		}
		all.Go(func() {
			r := s.run("once", "-c", "daybook.yaml", "--job", "append", "--", "sh", "-c", `sleep 0.3; echo "$DAYBOOK_KEY" >> lines`)
			if r.code != 0 && r.code != daybook.ExitElsewhere {
				t.Errorf("once: %+v", r)
			}
		})
		all.Wait()
		s.must(0, "run", "watch", key, "--exit-status")
		story := func() (j storyJSON) {
			if err := json.Unmarshal([]byte(s.must(0, "key", "show", key, "--json")), &j); err != nil {
				t.Fatal(err)
			}
			return j
		}
		if !waitFor(func() bool { return doors(story())[daybook.SourceSchedule] > 0 }) {
			t.Fatal("the schedule never asked")
		}
		after := s.must(0, "job", "trigger", "append", "--date", date)
		if !strings.Contains(after, "already done at ") || !strings.HasSuffix(after, "Nothing was repeated.\n") {
			t.Errorf("afterwards: %s", after)
		}
		stop()

		lines, err := os.ReadFile(filepath.Join(s.dir, "lines"))
		if err != nil || string(lines) != key+"\n" {
			t.Errorf("the file has %q, %v", lines, err)
		}
		j := story()
		got := doors(j)
		if got[daybook.SourceManual] != 9 || got[daybook.SourceOnce] != 1 || got[daybook.SourceSchedule] == 0 {
			t.Errorf("doors: %v", got)
		}
		outcomes := map[daybook.TriggerOutcome]int{}
		for _, trigger := range j.Triggers {
			outcomes[trigger.Outcome]++
		}
		if outcomes[daybook.Started] != 1 || outcomes[daybook.Refused] != 0 || len(j.Attempts) != 1 {
			t.Errorf("outcomes %v, attempts %d", outcomes, len(j.Attempts))
		}
		text := s.must(0, "key", "show", key)
		for _, trigger := range j.Triggers {
			who := string(trigger.Source)
			if trigger.Actor != "" {
				who += ", " + trigger.Actor
			}
			if !strings.Contains(text, who+" → "+string(trigger.Outcome)) {
				t.Errorf("%s → %s is not in\n%s", who, trigger.Outcome, text)
			}
		}
		if n := strings.Count(text, "manual, me → "); n != 9 {
			t.Errorf("%d manual triggers are told\n%s", n, text)
		}
	})
}

// doors counts the triggers of a story by door.
func doors(j storyJSON) map[daybook.Source]int {
	n := map[daybook.Source]int{}
	for _, t := range j.Triggers {
		n[t.Source]++
	}
	return n
}
