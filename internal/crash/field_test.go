package crash

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// H35: four processes with one host name and, where the machine lets us, one process number, all planning: each window has
// one row and one trigger, is begun once, and its claim names the process that began it.
func TestH35OneHostNameOneProcessNumber(t *testing.T) {
	const processes, windows = 4, 60
	var jobs strings.Builder
	for n := range 6 {
		fmt.Fprintf(&jobs, "\n  tick-%d: {schedule: every 1s, missed: catch_up, catchup_gap: 0, overlap: allow, run: [ME, idle, 0s, 1ms]}", n)
	}
	onBoth(t, jobs.String(), func(w *world) {
		var all []*served
		for n := range processes {
			all = append(all, w.served(contained, func(cmd *exec.Cmd) {
				cmd.Args = append(cmd.Args, "--lease", "1m") // nobody dies here, however busy the machine is
				cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", envServe, n))
			}))
		}
		w.until("the windows are done", func() bool {
			n := 0
			w.rows(`SELECT COUNT(*) FROM daybook_runs WHERE state = 'done'`, func(rows *sql.Rows) error { return rows.Scan(&n) })
			return n >= windows
		})
		for _, s := range all {
			if code := w.terminate(s); code != 0 {
				w.t.Errorf("serve exited with %d", code)
			}
		}

		nodes, hosts, pids := map[string]bool{}, map[string]bool{}, map[int]bool{}
		w.rows(`SELECT id, host, pid FROM daybook_nodes WHERE role = 'serve'`, func(rows *sql.Rows) error {
			var id, host string
			var pid int
			err := rows.Scan(&id, &host, &pid)
			nodes[id], hosts[host], pids[pid] = true, true, true
			return err
		})
		if len(nodes) != processes || len(hosts) != 1 || mayContain() && len(pids) != 1 {
			w.t.Errorf("%d processes on %d hosts with %d numbers are listed, want %d on one with one", len(nodes), len(hosts), len(pids), processes)
		}
		for _, what := range []string{
			`SELECT key, 0 FROM daybook_runs WHERE state <> 'done' AND state <> ''`,
			`SELECT job || ' ' || fire, COUNT(*) FROM daybook_triggers GROUP BY job, fire HAVING COUNT(*) <> 1`,
			`SELECT r.key, COUNT(t.key) FROM daybook_runs r LEFT JOIN daybook_triggers t ON t.key = r.key GROUP BY r.key HAVING COUNT(t.key) <> 1`,
			`SELECT key, COUNT(*) FROM daybook_attempts GROUP BY key HAVING COUNT(*) <> 1`,
		} {
			w.rows(what, func(rows *sql.Rows) error {
				var which string
				var n int
				err := rows.Scan(&which, &n)
				w.t.Errorf("%s: %s %d", what, which, n)
				return err
			})
		}
		// The rows of a job follow each other without a hole.
		w.rows(`SELECT job, COUNT(*), MIN(start_us), MAX(start_us) FROM daybook_runs GROUP BY job`, func(rows *sql.Rows) error {
			var job string
			var n int
			var first, last int64
			err := rows.Scan(&job, &n, &first, &last)
			if owed := int((last-first)/time.Second.Microseconds()) + 1; n != owed {
				w.t.Errorf("%s has %d rows for %d windows", job, n, owed)
			}
			return err
		})
		began := map[string]string{}
		for _, e := range w.entries("", "begin") {
			if began[e.Key] != "" {
				w.t.Errorf("%s was begun by %s and by %s", e.Key, began[e.Key], e.Serve)
			}
			began[e.Key] = e.Serve
		}
		who := map[string]string{} // by the name in the claim
		w.rows(`SELECT key, node FROM daybook_attempts`, func(rows *sql.Rows) error {
			var key, node string
			err := rows.Scan(&key, &node)
			switch {
			case !nodes[node]:
				w.t.Errorf("%s was claimed by %q, which is no process", key, node)
			case who[node] == "":
				who[node] = began[key]
			case who[node] != began[key]:
				w.t.Errorf("%s was begun by %s, and its claim names %s", key, began[key], who[node])
			}
			return err
		})
		names := map[string]bool{}
		for _, serve := range who {
			names[serve] = true
		}
		if len(names) != len(who) || len(began) < windows {
			w.t.Errorf("%d windows, claimed by %v", len(began), who)
		}
		w.t.Logf("%d windows by %d processes", len(began), len(who))
	})
}

// output returns what is stored of what the last try of a key wrote.
func (w *world) output(key string) (text string) {
	w.t.Helper()
	w.rows(`SELECT text FROM daybook_outputs WHERE key = $1 ORDER BY fence`, func(rows *sql.Rows) error { return rows.Scan(&text) }, key)
	return text
}

// last returns how the last try of a key ended.
func (w *world) last(key string) (result, detail, text string, took time.Duration) {
	w.t.Helper()
	w.rows(`SELECT result, detail, error, ended_us - begun_us FROM daybook_attempts WHERE key = $1 AND question = 0 ORDER BY fence`, func(rows *sql.Rows) error {
		var us int64
		err := rows.Scan(&result, &detail, &text, &us)
		took = time.Duration(us) * time.Microsecond
		return err
	}, key)
	return result, detail, text, took
}

// H49, H53: a NUL in the output, and a pipe that hides how the command before it ended.
func TestH49AndH53WhatCommandsWriteAndHowTheyEnd(t *testing.T) {
	onBoth(t, `
  nul: {window: day, shell: "printf 'a\\000b'"}
  pipe: {window: day, shell: "false | cat"}
  pipefail: {window: day, retry: {backoff: [], jitter: 0%}, run: [bash, -o, pipefail, -c, "echo last words; false | cat"]}
`, func(w *world) {
		w.served()
		for _, j := range []string{"nul", "pipe", "pipefail"} {
			w.trigger(j, day)
		}
		w.ends("nul:"+day, daybook.Done)
		if got := w.output("nul:" + day); got != "a\uFFFDb" {
			w.t.Errorf("stored %q", got)
		}
		w.ends("pipe:"+day, daybook.Done) // as the pages on commands say
		if _, err := exec.LookPath("bash"); err != nil {
			w.t.Log("no bash")
			return
		}
		w.ends("pipefail:"+day, daybook.Dead)
		if result, detail, text, _ := w.last("pipefail:" + day); result != string(daybook.ResultUnclear) || detail != "exit 1" || text != "exit 1: last words" {
			w.t.Errorf("%s %s: %s", result, detail, text)
		}
	})
}

// H51: a grandchild holds the pipe and the command its time limit: the attempt ends soon after it, nothing of it is left, and
// what it wrote until then is kept. Repeatable work is tried again, of work that may be done once nobody knows.
func TestH51TheTimeLimitIsKept(t *testing.T) {
	onBoth(t, `
  again: {window: day, timeout: 3s, retry: {backoff: [1h], jitter: 0%}, run: [sh, -c, "echo begun; sleep 30.51 & sleep 20.51"]}
  unknown: {effects: once, window: day, timeout: 3s, run: [sh, -c, "echo begun; sleep 30.52 & sleep 20.52"]}
`, func(w *world) {
		w.served()
		for _, j := range []string{"again", "unknown"} {
			w.trigger(j, day)
		}
		w.ends("again:"+day, daybook.Retryable)
		w.ends("unknown:"+day, daybook.Dead)
		if kind, _, alerts := w.letter("unknown:" + day); kind != "unknown" || alerts != 1 {
			w.t.Errorf("letter %q with %d alerts", kind, alerts)
		}
		if attempts, failures, losses := w.counted("again:" + day); attempts != 1 || failures != 1 || losses != 0 {
			w.t.Errorf("again: %d attempts, %d failures, %d losses", attempts, failures, losses)
		}
		for _, j := range []string{"again", "unknown"} {
			result, _, text, took := w.last(j + ":" + day)
			if result != string(daybook.ResultUnknown) || !strings.HasPrefix(text, "timed out: ") || took < 3*time.Second || took > 8*time.Second {
				w.t.Errorf("%s: %s after %s: %s", j, result, took, text)
			}
			if got := w.output(j + ":" + day); got != "begun\n" {
				w.t.Errorf("%s: stored %q", j, got)
			}
		}
		w.until("no sleep is left", func() bool { return len(sleepers(w.t, w.dir)) == 0 })
	})
}

// sleepers are the processes called sleep that have a directory in their environment: they were started from it.
func sleepers(t testing.TB, dir string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		name, err1 := os.ReadFile("/proc/" + e.Name() + "/comm")
		env, err2 := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err1 == nil && err2 == nil && string(name) == "sleep\n" && strings.Contains(string(env), dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// H54: a gigabyte of output. What is stored has its limit and a mark, and daybook never held it in memory.
func TestH54AGigabyteOfOutput(t *testing.T) {
	n := 1_000_000_000
	if testing.Short() {
		n = 50_000_000
	}
	onBoth(t, fmt.Sprintf("\n  huge: {window: day, shell: \"yes | head -c %d\"}\n", n), func(w *world) {
		s := w.served()
		w.trigger("huge", day)
		w.ends("huge:"+day, daybook.Done)
		text := w.output("huge:" + day)
		mark := regexp.MustCompile(`\[\.\.\. (\d+) bytes omitted \.\.\.\]`).FindStringSubmatch(text)
		if len(text) > daybook.MaxOutputBytes || mark == nil {
			w.t.Fatalf("stored %d bytes: %.40q", len(text), text)
		}
		if omitted, _ := strconv.Atoi(mark[1]); omitted < n-daybook.MaxOutputBytes || omitted > n {
			w.t.Errorf("%d bytes are said to be omitted", omitted)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid()))
		if err != nil {
			w.t.Skip(err)
		}
		most := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
		if most == nil {
			w.t.Skip("the machine does not count memory")
		}
		if kB, _ := strconv.Atoi(string(most[1])); kB > 150<<10 {
			w.t.Errorf("daybook took %d kB of memory", kB)
		} else {
			w.t.Logf("daybook took %d kB of memory", kB)
		}
	})
}
