package crash

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// onBoth runs a test on both databases.
func onBoth(t *testing.T, jobs string, test func(w *world)) {
	t.Parallel()
	kinds := []string{"sqlite", "shared postgres"}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, kind, jobs))
		})
	}
}

// day is a window that has been open for long.
const day = "2026-03-02"

// triggered asks for a window of each job and waits until all are at work.
func (w *world) triggered(jobs ...string) {
	w.t.Helper()
	for _, j := range jobs {
		w.trigger(j, day)
	}
	for _, j := range jobs {
		w.begun(j+":"+day, 1)
	}
}

// letter returns kind and state of the newest letter of a key, and how many alerts stand open for it.
func (w *world) letter(key string) (kind, state string, alerts int) {
	w.t.Helper()
	w.rows(`SELECT kind, state FROM daybook_letters WHERE key = $1 ORDER BY opened_us`, func(rows *sql.Rows) error { return rows.Scan(&kind, &state) }, key)
	w.rows(`SELECT COUNT(*) FROM daybook_alerts WHERE key = $1 AND closed_us = 0`, func(rows *sql.Rows) error { return rows.Scan(&alerts) }, key)
	return kind, state, alerts
}

// counted are the numbers of a run, wherever it stands.
func (w *world) counted(key string) (attempts, failures, losses int) {
	w.t.Helper()
	w.rows(`SELECT CASE WHEN r.state = '' THEN l.attempts ELSE r.attempts END, CASE WHEN r.state = '' THEN l.failures ELSE r.failures END,
  CASE WHEN r.state = '' THEN l.losses ELSE r.losses END
FROM daybook_runs r LEFT JOIN daybook_live l ON l.key = r.key WHERE r.key = $1`, func(rows *sql.Rows) error { return rows.Scan(&attempts, &failures, &losses) }, key)
	return attempts, failures, losses
}

// results are how the tries of a key ended, in order.
func (w *world) results(key string) (list []string) {
	w.t.Helper()
	w.rows(`SELECT result, late_result, late_taken FROM daybook_attempts WHERE key = $1 AND question = 0 ORDER BY fence`, func(rows *sql.Rows) error {
		var result, late string
		var taken int
		err := rows.Scan(&result, &late, &taken)
		if late != "" {
			result += fmt.Sprintf("+%s/%d", late, taken)
		}
		list = append(list, result)
		return err
	}, key)
	return list
}

// H34: killed at every try, the third loss in a row is a dead letter, which does not block, and the next windows have
// exactly one row each.
func TestH34KilledAtEveryTry(t *testing.T) {
	onBoth(t, `
  tick: {schedule: every 3s, missed: catch_up, catchup_gap: 0, retry: {backoff: [], jitter: 0%}, run: [ME, hang-first]}
`, func(w *world) {
		s := w.served()
		var key string
		w.until("the first try", func() bool {
			list := w.entries("", "begin")
			if len(list) > 0 {
				key = list[0].Key
			}
			return key != ""
		})
		for n := 1; n <= daybook.MaxLosses; n++ {
			w.begun(key, n)
			w.kill(s, true)
			s = w.served()
		}
		w.ends(key, daybook.Dead)
		if kind, state, alerts := w.letter(key); kind != "failed" || state != "open" || alerts != 1 {
			t.Errorf("letter %s %s with %d alerts", kind, state, alerts)
		}
		if attempts, failures, losses := w.counted(key); attempts != 3 || failures != 0 || losses != 3 {
			t.Errorf("%d attempts, %d failures, %d losses in a row", attempts, failures, losses)
		}
		w.until("three windows after it are done", func() bool {
			n := 0
			w.rows(`SELECT COUNT(*) FROM daybook_runs WHERE job = 'tick' AND state = 'done' AND start_us > (SELECT start_us FROM daybook_runs WHERE key = $1)`, func(rows *sql.Rows) error { return rows.Scan(&n) }, key)
			return n >= 3
		})
		w.rows(`SELECT fire, COUNT(*) FROM daybook_triggers WHERE job = 'tick' GROUP BY fire HAVING COUNT(*) > 1`, func(rows *sql.Rows) error {
			var fire string
			var n int
			err := rows.Scan(&fire, &n)
			t.Errorf("fire %s was recorded %d times", fire, n)
			return err
		})
		if n := len(w.entries(key, "begin")); n != 3 {
			t.Errorf("begun %d times", n)
		}
	})
}

// H38 and H42: killed between the charge and the report. With a probe, with a far side that remembers, with neither, and
// repeatable; no ladder is left to hide behind.
func TestH38AndH42KilledBetweenChargeAndReport(t *testing.T) {
	onBoth(t, `
  probe: {effects: once, window: day, probe: [ME, ask], settles: 1s, retry: {backoff: [], jitter: 0%}, run: [ME, charge-hang]}
  memory: {effects: once, window: day, remembers: 24h, retry: {backoff: [100ms], jitter: 0%}, run: [ME, charge-hang]}
  forgotten: {effects: once, window: day, remembers: 24h, retry: {backoff: [], jitter: 0%}, run: [ME, charge-hang]}
  neither: {effects: once, window: day, retry: {backoff: [], jitter: 0%}, run: [ME, charge-hang]}
  again: {effects: repeatable, window: day, retry: {backoff: [], jitter: 0%}, run: [ME, charge-hang]}
`, func(w *world) {
		s := w.served()
		jobs := []string{"probe", "memory", "forgotten", "neither", "again"}
		for _, j := range jobs {
			w.trigger(j, day)
		}
		w.until("all are charged", func() bool {
			tally, err := gateway.Count(w.book)
			if err != nil {
				w.t.Fatal(err)
			}
			return tally.Charges == len(jobs)
		})
		w.kill(s, true)
		w.served()
		for _, c := range []struct {
			job            string
			state          daybook.State
			letter         string
			begins         int
			failures, lost int
		}{
			{"probe", daybook.Done, "", 1, 0, 0},
			{"memory", daybook.Done, "", 2, 1, 0},
			{"forgotten", daybook.Dead, "unknown", 1, 1, 0},
			{"neither", daybook.Dead, "unknown", 1, 1, 0},
			{"again", daybook.Done, "", 2, 0, 1},
		} {
			key := c.job + ":" + day
			w.ends(key, c.state)
			if a := w.trigger(c.job, day); a.Outcome == daybook.Started { // asked once more by another door
				w.t.Errorf("%s: another trigger is %s", key, a.Outcome)
			}
			if n := len(w.entries(key, "begin")); n != c.begins {
				w.t.Errorf("%s: begun %d times, want %d", key, n, c.begins)
			}
			if _, failures, _ := w.counted(key); failures != c.failures {
				w.t.Errorf("%s: %d failures, want %d", key, failures, c.failures)
			}
			kind, _, alerts := w.letter(key)
			if kind != c.letter || alerts != len(strings.Fields(c.letter)) {
				w.t.Errorf("%s: letter %q with %d alerts, want %q", key, kind, alerts, c.letter)
			}
		}
		tally, err := gateway.Count(w.book)
		if err != nil {
			w.t.Fatal(err)
		}
		if tally.Charges != len(jobs) || tally.Twice != 0 || tally.Requests != len(jobs)+2 {
			w.t.Errorf("%d requests, %d charges, twice %d", tally.Requests, tally.Charges, tally.Twice)
		}
		w.noDirectories()
	})
}

// H38 and H42 with steps: killed between the charge and the end of its step. With a probe of the effect, with a far side that
// remembers, with neither, and in a step that touches nothing outside; no ladder is left to hide behind.
func TestH38AndH42KilledBetweenChargeAndTheEndOfItsStep(t *testing.T) {
	onBoth(t, strings.ReplaceAll(`
  probe: {effects: once, window: day, steps: true, retry: {backoff: [], jitter: 0%}, run: [BIN, effect, charge, --probe, ME ask, --settles, 1s, --, ME, charge-hang]}
  memory: {effects: once, window: day, steps: true, retry: {backoff: [100ms], jitter: 0%}, run: [BIN, effect, charge, --remembers, 24h, --, ME, charge-hang]}
  forgotten: {effects: once, window: day, steps: true, retry: {backoff: [], jitter: 0%}, run: [BIN, effect, charge, --remembers, 24h, --, ME, charge-hang]}
  neither: {effects: once, window: day, steps: true, retry: {backoff: [], jitter: 0%}, run: [BIN, effect, charge, --, ME, charge-hang]}
  again: {effects: once, window: day, steps: true, retry: {backoff: [], jitter: 0%}, run: [BIN, step, charge, --, ME, charge-hang]}
`, "BIN", binary), func(w *world) {
		s := w.served()
		jobs := []string{"probe", "memory", "forgotten", "neither", "again"}
		for _, j := range jobs {
			w.trigger(j, day)
		}
		w.until("all are charged", func() bool {
			tally, err := gateway.Count(w.book)
			if err != nil {
				w.t.Fatal(err)
			}
			return tally.Charges == len(jobs)
		})
		w.kill(s, true)
		w.served()
		for _, c := range []struct {
			job              string
			state            daybook.State
			letter           string
			begins, failures int
			results          string
		}{
			{"probe", daybook.Done, "", 1, 0, "[lost done]"},
			{"memory", daybook.Done, "", 2, 1, "[lost done]"},
			{"forgotten", daybook.Dead, "unknown", 1, 1, "[lost]"},
			{"neither", daybook.Dead, "unknown", 1, 1, "[lost]"},
			{"again", daybook.Done, "", 2, 0, "[lost done]"},
		} {
			key := c.job + ":" + day
			w.ends(key, c.state)
			if a := w.trigger(c.job, day); a.Outcome == daybook.Started { // asked once more by another door
				w.t.Errorf("%s: another trigger is %s", key, a.Outcome)
			}
			begins := w.entries(key, "begin")
			if len(begins) != c.begins {
				w.t.Errorf("%s: begun %d times, want %d", key, len(begins), c.begins)
			}
			for _, e := range begins {
				if c.job != "again" && e.Wire != key+"#charge" {
					w.t.Errorf("%s: begun as %s", key, e.Wire)
				}
			}
			if _, failures, _ := w.counted(key); failures != c.failures {
				w.t.Errorf("%s: %d failures, want %d", key, failures, c.failures)
			}
			if got := fmt.Sprint(w.results(key)); got != c.results { // what was lost is counted apart
				w.t.Errorf("%s: its attempts ended %s, want %s", key, got, c.results)
			}
			kind, _, alerts := w.letter(key)
			if kind != c.letter || alerts != len(strings.Fields(c.letter)) {
				w.t.Errorf("%s: letter %q with %d alerts, want %q", key, kind, alerts, c.letter)
			}
		}
		w.noDirectories()
		calls, charges := map[string]int{}, map[string]int{}
		lines, err := gateway.ReadBook(w.book)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, l := range lines {
			switch l.Kind {
			case gateway.KindRequest:
				calls[l.Customer]++
			case gateway.KindCharge:
				charges[l.Customer]++
			}
		}
		for job, n := range map[string]int{"probe": 1, "memory": 2, "forgotten": 1, "neither": 1} {
			if calls[job] != n || charges[job] != 1 {
				w.t.Errorf("%s: the gateway saw %d calls and made %d charges, want %d and 1", job, calls[job], charges[job], n)
			}
		}
	})
}

// Killed before the gateway had booked anything: the probe's no counts only after settles, and then the next wire key is
// used.
func TestKilledBeforeTheCharge(t *testing.T) {
	onBoth(t, `
  probe: {effects: once, window: day, probe: [ME, ask], settles: 3s, retry: {backoff: [0s], jitter: 0%}, run: [ME, charge-hang]}
`, func(w *world) {
		w.fault(`{"fault":"timeout_before","delay":"1m"}`)
		s := w.served()
		w.trigger("probe", day)
		key := "probe:" + day
		w.begun(key, 1)
		w.until("the request is under way", func() bool {
			tally, err := gateway.Count(w.book)
			return err == nil && tally.Requests == 1
		})
		w.kill(s, true)
		w.served()
		w.begun(key, 2)
		w.until("charged", func() bool {
			tally, err := gateway.Count(w.book)
			return err == nil && tally.Charges == 1
		})
		var ended, claimed int64
		var asked []int64
		w.rows(`SELECT ended_us FROM daybook_attempts WHERE key = $1 AND question = 0 ORDER BY fence LIMIT 1`, func(rows *sql.Rows) error { return rows.Scan(&ended) }, key)
		w.rows(`SELECT claimed_us FROM daybook_attempts WHERE key = $1 AND question > 0 ORDER BY question`, func(rows *sql.Rows) error {
			err := rows.Scan(&claimed)
			asked = append(asked, claimed)
			return err
		}, key)
		if len(asked) != 2 || asked[0]-ended > 3e6 || asked[1]-ended < 3e6 {
			w.t.Errorf("asked at %v µs, the try was over at %d: the first no does not count, and the second one comes after 3s", asked, ended)
		}
		if e := w.begun(key, 2); e.Wire != key+"#run@2" {
			w.t.Errorf("begun again as %s", e.Wire)
		}
	})
}

// H41: a healthy long run is renewed and never given to another, though a second process looks on.
func TestH41LongRunIsRenewed(t *testing.T) {
	length := 20 * time.Second
	if testing.Short() {
		length = 3 * lease
	}
	onBoth(t, fmt.Sprintf(`
  long: {effects: once, window: day, run: [ME, idle, %[1]s, %[1]s]}
  steps: {effects: once, window: day, steps: true, run: [%[2]s, effect, wait, --, ME, idle, %[1]s, %[1]s]}
`, length, binary), func(w *world) {
		w.served()
		w.served()
		w.trigger("long", day)
		w.trigger("steps", day)
		key := "long:" + day
		leases := map[int64]bool{}
		w.until("done", func() bool {
			w.rows(`SELECT lease_us FROM daybook_live WHERE key = $1`, func(rows *sql.Rows) error {
				var us int64
				err := rows.Scan(&us)
				if us > 0 {
					leases[us] = true
				}
				return err
			}, key)
			state, _ := w.state(key)
			return state == daybook.Done
		})
		if attempts, failures, losses := w.counted(key); attempts != 1 || failures != 0 || losses != 0 {
			w.t.Errorf("%d attempts, %d failures, %d losses", attempts, failures, losses)
		}
		least := 15
		if testing.Short() {
			least = 3
		}
		if len(leases)-1 < least {
			w.t.Errorf("%d renewals in %s, want at least %d", len(leases)-1, length, least)
		}
		w.ends("steps:"+day, daybook.Done)
		if attempts, failures, losses := w.counted("steps:" + day); attempts != 1 || failures != 0 || losses != 0 {
			w.t.Errorf("with steps: %d attempts, %d failures, %d losses", attempts, failures, losses)
		}
		for _, k := range []string{key, "steps:" + day} {
			if n := len(w.entries(k, "begin")); n != 1 {
				w.t.Errorf("%s was begun %d times", k, n)
			}
		}
	})
}

// H52: TERM before KILL. Work that tidies up for two seconds and says that it is not done is interrupted, nothing new
// starts meanwhile, and daybook exits with 0.
func TestH52TermBeforeKill(t *testing.T) {
	onBoth(t, `
  tidy: {window: day, retry: {backoff: [], jitter: 0%}, run: [ME, tidy, 2s]}
  tidy-once: {effects: once, window: day, retry: {backoff: [], jitter: 0%}, run: [ME, tidy, 2s]}
  other: {window: day, run: [ME, idle, 0s, 1ms]}
`, func(w *world) {
		s := w.served()
		keys := []string{"tidy:" + day, "tidy-once:" + day}
		for _, k := range keys {
			w.trigger(daybook.Key(k).Job(), day)
			w.until("ready", func() bool { return len(w.entries(k, "ready")) == 1 })
		}
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		w.until("they are asked to end", func() bool { return len(w.entries("", "asked to end")) == len(keys) })
		w.trigger("other", day) // two seconds before they have ended
		if code := w.terminate(s); code != 0 {
			w.t.Errorf("serve exited with %d", code)
		}
		for _, k := range keys {
			if len(w.entries(k, "tidied")) != 1 {
				w.t.Errorf("%s did not tidy up", k)
			}
			if state, reason := w.state(k); state != daybook.Retryable || reason != daybook.ReasonInterrupted {
				w.t.Errorf("%s is %s %s", k, state, reason)
			}
			if _, failures, losses := w.counted(k); failures != 0 || losses != 0 {
				w.t.Errorf("%s: %d failures, %d losses", k, failures, losses)
			}
		}
		if state, _ := w.state("other:" + day); state != daybook.Scheduled || len(w.entries("other:"+day, "begin")) != 0 {
			w.t.Errorf("other is %s, and began while daybook stopped", state)
		}
		w.served()
		w.ends("other:"+day, daybook.Done)
		for _, k := range keys {
			w.begun(k, 2) // tried again
		}
	})
}

// What outlives the grace gets KILL: repeatable work is tried again, and of work that may be done once nobody knows.
func TestH52KillAfterTheGrace(t *testing.T) {
	if testing.Short() {
		t.Skip("the grace is long")
	}
	onBoth(t, `
  stubborn: {window: day, run: [ME, stubborn]}
  stubborn-once: {effects: once, window: day, run: [ME, stubborn]}
`, func(w *world) {
		s := w.served()
		for _, j := range []string{"stubborn", "stubborn-once"} {
			w.trigger(j, day)
			w.until("ready", func() bool { return len(w.entries(j+":"+day, "ready")) == 1 })
		}
		began := time.Now()
		if code := w.terminate(s); code != 0 {
			w.t.Errorf("serve exited with %d", code)
		}
		if took := time.Since(began); took < daybook.TerminationGrace {
			w.t.Errorf("ended after %s", took)
		}
		if state, _ := w.state("stubborn:" + day); state != daybook.Retryable {
			w.t.Errorf("stubborn is %s", state)
		}
		if state, _ := w.state("stubborn-once:" + day); state != daybook.Dead {
			w.t.Errorf("stubborn-once is %s", state)
		}
		if kind, _, alerts := w.letter("stubborn-once:" + day); kind != "unknown" || alerts != 1 {
			w.t.Errorf("letter %q with %d alerts", kind, alerts)
		}
	})
}

// A command that outlives its killed daybook is waited for, never started beside; its complete result file is its
// report, else nobody reported.
func TestSurvivors(t *testing.T) {
	onBoth(t, `
  says-done: {effects: once, window: day, run: [ME, report-later, 5s, done]}
  says-no: {effects: once, window: day, retry: {backoff: [], jitter: 0%}, run: [ME, report-later, 5s, permanent]}
  says-nothing: {effects: once, window: day, run: [ME, report-later, 5s, ""]}
  again: {window: day, run: [ME, report-later, 5s, ""]}
`, func(w *world) {
		s := w.served()
		w.triggered("says-done", "says-no", "says-nothing", "again")
		w.kill(s, false)
		w.served()
		w.ends("says-done:"+day, daybook.Done)
		w.ends("says-no:"+day, daybook.Dead)
		w.ends("says-nothing:"+day, daybook.Dead)
		w.ends("again:"+day, daybook.Done)
		for job, want := range map[string]string{"says-done": "[done]", "says-no": "[permanent]", "says-nothing": "[lost]", "again": "[lost done]"} {
			if got := fmt.Sprint(w.results(job + ":" + day)); got != want {
				w.t.Errorf("%s: %s, want %s", job, got, want)
			}
		}
		if kind, _, _ := w.letter("says-no:" + day); kind != "failed" {
			w.t.Errorf("says-no: letter %q", kind)
		}
		if kind, _, _ := w.letter("says-nothing:" + day); kind != "unknown" {
			w.t.Errorf("says-nothing: letter %q", kind)
		}
		ends, begins := w.entries("again:"+day, "end"), w.entries("again:"+day, "begin")
		if len(begins) != 2 || len(ends) != 2 || begins[1].At.Before(ends[0].At) {
			w.t.Errorf("again: %d begins, %d ends, the second begin at %v", len(begins), len(ends), begins)
		}
		w.noDirectories()
	})
}

// noDirectories looks whether attempts left anything behind on this host, once all are over.
func (w *world) noDirectories() {
	w.t.Helper()
	dir := w.attemptDir()
	list := func() (left []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
		return left
	}
	defer func() {
		if w.t.Failed() {
			w.t.Logf("left in %s: %v", dir, list())
		}
	}()
	w.until("nothing is left of the attempts", func() bool { return len(list()) == 0 })
}

// attemptDir is where the binary keeps what outlives it.
func (w *world) attemptDir() string {
	w.t.Helper()
	if path, lite := strings.CutPrefix(w.url, "sqlite:"); lite {
		return path + "-run"
	}
	found, err := filepath.Glob(filepath.Join(w.dir, "state", "daybook", "run", "*"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("the directory of the attempts: %v %v", found, err)
	}
	return found[0]
}

// Stopped beyond its lease while another takes over, and continued: what it then reports settles the run or is refused,
// and is there to be seen.
func TestStoppedBeyondTheLease(t *testing.T) {
	onBoth(t, `
  short: {effects: once, window: day, run: [ME, report-later, 4s, ""]}
  told: {effects: once, window: day, run: [ME, report-later, 4s, done]}
  long: {effects: once, window: day, run: [ME, report-later, 9s, ""]}
  again: {window: day, run: [ME, report-later, 4s, ""]}
`, func(w *world) {
		s := w.served()
		w.triggered("short", "told", "long", "again")
		w.standStill(s)
		w.served()
		// The command ended while its daybook stood still: nobody has its exit code but that one.
		w.ends("short:"+day, daybook.Dead)
		w.ends("told:"+day, daybook.Done)
		w.ends("again:"+day, daybook.Done)
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
		w.ends("short:"+day, daybook.Done) // by the late report, which also closes the letter
		w.ends("long:"+day, daybook.Done)
		if kind, state, alerts := w.letter("short:" + day); kind != "unknown" || state != "settled" || alerts != 0 {
			w.t.Errorf("short: letter %s %s with %d alerts", kind, state, alerts)
		}
		if got := fmt.Sprint(w.results("short:" + day)); got != "[lost+done/1]" {
			w.t.Errorf("short: %s", got)
		}
		w.until("the refused report is kept", func() bool { return fmt.Sprint(w.results("again:"+day)) == "[lost+done/0 done]" })
		for job, n := range map[string]int{"short": 1, "told": 1, "long": 1, "again": 2} {
			if got := len(w.entries(job+":"+day, "begin")); got != n {
				w.t.Errorf("%s: begun %d times, want %d", job, got, n)
			}
		}
	})
}

// Work that brings daybook itself down each time is given up after three losses; everything else goes on.
func TestWorkThatKillsDaybook(t *testing.T) {
	onBoth(t, `
  bomb: {window: day, retry: {backoff: [], jitter: 0%}, run: [ME, kill-parent]}
  other: {window: day, run: [ME, idle, 0s, 1ms]}
`, func(w *world) {
		s := w.served()
		w.trigger("bomb", day)
		key := "bomb:" + day
		w.until("it is given up", func() bool {
			select {
			case <-s.ended: // whoever looks after it starts it again
				s = w.serve()
			default:
			}
			state, _ := w.state(key)
			return state == daybook.Dead
		})
		if attempts, _, losses := w.counted(key); attempts != 3 || losses != 3 {
			w.t.Errorf("%d attempts, %d losses", attempts, losses)
		}
		w.trigger("other", day)
		w.ends("other:"+day, daybook.Done)
		select {
		case <-s.ended:
			w.t.Error("it was brought down once more")
		default:
		}
	})
}
