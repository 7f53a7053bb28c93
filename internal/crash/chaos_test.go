package crash

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	killsFlag = flag.Int("kills", 0, "kills of the chaos test on each database (default 12, with -short 4)")
	seedFlag  = flag.Uint64("seed", 0, "seed of the chaos tests (default: another each time)")
)

// chaosJobs is a load in which every kind of work is under way at any instant. Windows are two seconds long.
const chaosJobs = `
  pay-probe:
    {priority: P0, schedule: every 2s, window: fire, effects: once, overlap: allow, catchup_gap: 0, probe: [ME, ask], settles: 1500ms,
     retry: {backoff: [100ms, 200ms, 400ms, 800ms], jitter: 0%}, run: [ME, charge, 300ms, 300ms]}
  pay-line:
    {priority: P0, schedule: every 2s, window: fire, effects: once, catchup_gap: 0, probe: [ME, ask], settles: 1500ms,
     retry: {backoff: [100ms, 200ms, 400ms, 800ms], jitter: 0%}, run: [ME, charge, 200ms, 200ms]}
  pay-memory:
    {priority: P0, schedule: every 2s, window: fire, effects: once, overlap: allow, catchup_gap: 0, remembers: 24h,
     retry: {backoff: [100ms, 200ms, 400ms, 800ms], jitter: 0%}, run: [ME, charge, 300ms, 300ms]}
  pay-neither:
    {priority: P0, schedule: every 2s, window: fire, effects: once, overlap: allow, catchup_gap: 0,
     retry: {backoff: [100ms], jitter: 0%}, run: [ME, charge, 300ms, 300ms]}
  each: {schedule: every 2s, missed: catch_up, catchup_gap: 0, overlap: allow, retry: {backoff: [], jitter: 0%}, run: [ME, idle, 0s, 600ms]}
  newest: {schedule: every 2s, retry: {backoff: [100ms, 200ms, 400ms, 800ms], jitter: 0%}, run: [ME, idle, 0s, 200ms]}
  slow: {schedule: every 2s, retry: {backoff: [100ms, 200ms, 400ms, 800ms], jitter: 0%}, run: [ME, idle, 1s, 3s]}
  long: {schedule: every 2s, missed: skip, overlap: skip, retry: {backoff: [100ms, 200ms, 400ms, 800ms], jitter: 0%}, run: [ME, idle, 1s, 4s]}
`

// chaosFaults are what the gateway does now and then. None is later than the settles of the jobs.
var chaosFaults = []string{
	`{"fault":"slow","delay":"800ms","times":2}`, `{"fault":"late","delay":"900ms","times":2}`, `{"fault":"failure"}`,
	`{"fault":"unavailable","times":2}`, `{"fault":"timeout_before"}`, `{"fault":"timeout_after","times":2}`,
	`{"fault":"reset_before"}`, `{"fault":"reset_after","times":2}`,
}

func TestChaos(t *testing.T) {
	kills := *killsFlag
	switch {
	case kills > 0:
	case testing.Short():
		kills = 4
	default:
		kills = 12
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1_000_000) + 1
	}
	t.Parallel()
	kinds := []string{"sqlite", "postgres"}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for at, seed := 0, seed; at < kills; at, seed = at+killsOfOne, seed+1 { // many kills are shared by several worlds
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					inChaos(t, kind, seed, min(kills-at, killsOfOne))
				})
			}
		})
	}
}

// killsOfOne is how many kills one world takes; it is played alone again by its own seed.
const killsOfOne = 250

func inChaos(t *testing.T, kind string, seed uint64, kills int) {
	w := newWorld(t, kind, chaosJobs+renewalJobs)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d; again: go test ./internal/crash -run 'TestChaos/%s' -seed %d -kills %d", seed, kind, seed, kills)
		}
	})
	c := &chaos{world: w, random: rand.New(rand.NewPCG(seed, uint64(len(kind))))}
	began := time.Now()
	c.served() // the jobs become known
	c.startFan()
	t.Cleanup(func() { w.kill(c.fan, false) })
	p := newPeople(c)
	acting, leave := context.WithCancel(t.Context())
	gone := p.start(acting, seed, 3)
	c.play(kills)
	leave()
	gone()
	took := time.Since(began)
	c.settle(p)
	figures := c.check()
	v := c.read()
	c.checkSerial(v)
	renewed := c.checkRenewals(v)
	t.Logf("%s, seed %d: %d kills in %s, %.0f a minute (%d with all children), %d parts of work and an application %d times killed, %d stops beyond the lease, %d times two at once; %s; %s; %d clicks: %v",
		kind, seed, c.kills, took.Round(time.Second), float64(c.kills)/took.Minutes(), c.groups, c.parts, c.apps, c.stops, c.twos, figures, renewed, p.clicks.Load(), p.acts)
}

type chaos struct {
	*world
	random                            *rand.Rand
	kills, groups, parts, stops, twos int
	apps                              int
	fan                               *served
	murders                           []murder
	over                              time.Time // when the last process was killed
}

// play kills, stops and doubles processes at instants that the seed chooses.
func (c *chaos) play(kills int) {
	for c.kills < kills {
		s := c.oneOf(c.alive())
		if s == nil {
			s = c.serve()
		}
		c.pass(c.while())
		if c.random.IntN(3) == 0 {
			c.fault(chaosFaults[c.random.IntN(len(chaosFaults))])
		}
		if c.random.IntN(3) == 0 {
			c.killFan()
		}
		if c.random.IntN(6) == 0 {
			c.card(c.t, renewals+[]string{"probe", "memory", "neither", "fan"}[c.random.IntN(4)]+"/second", c.random.IntN(2) == 0)
		}
		switch n := c.random.IntN(10); {
		case n == 0 && len(c.alive()) < 2: // stopped beyond its lease, with another that takes over
			c.stops++
			c.murders = append(c.murders, murder{at: time.Now(), undo: true})
			c.standStill(s)
			c.serve()
			c.pass(lease + time.Duration(c.random.IntN(2000))*time.Millisecond)
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
		case n == 1 && len(c.alive()) < 2: // stopped by itself: nobody takes over
			c.stops++
			c.murders = append(c.murders, murder{at: time.Now(), undo: true})
			_ = s.cmd.Process.Signal(syscall.SIGSTOP)
			c.pass(lease + time.Duration(c.random.IntN(1000))*time.Millisecond)
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
		case n == 2 && len(c.alive()) < 2:
			c.twos++
			c.serve()
		case n == 3, n == 4: // a script, an effect, its command, a probe
			if pid, key := c.worker(); pid > 0 {
				c.parts++
				c.murders = append(c.murders, murder{at: time.Now(), key: key})
				slay(pid)
			}
		default:
			c.kills++
			children := c.random.IntN(2) == 0
			if children {
				c.groups++
			}
			c.murders = append(c.murders, murder{at: time.Now(), undo: !children})
			c.kill(s, children)
			c.serve()
		}
	}
	c.over = time.Now()
}

// worker is some process that works for a run, and the key of the run.
func (c *chaos) worker() (pid int, key string) {
	list := c.workers()
	if len(list) == 0 {
		return 0, ""
	}
	pid = list[c.random.IntN(len(list))]
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return 0, ""
	}
	_, key, _ = strings.Cut(string(env), "\x00DAYBOOK_KEY=")
	key, _, _ = strings.Cut(key, "\x00")
	return pid, key
}

// while is how long a process lives: often too short to get anything done, sometimes long enough to settle what came
// before.
func (c *chaos) while() time.Duration {
	switch n := c.random.IntN(10); {
	case n < 4:
		return time.Duration(50+c.random.IntN(600)) * time.Millisecond
	case n < 8:
		return time.Duration(600+c.random.IntN(1400)) * time.Millisecond
	}
	return time.Duration(2000+c.random.IntN(2500)) * time.Millisecond
}

func (c *chaos) oneOf(list []*served) *served {
	if len(list) == 0 {
		return nil
	}
	return list[c.random.IntN(len(list))]
}

// pass lets time pass: here it is what the processes do meanwhile that is waited for.
func (c *chaos) pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.t.Context().Done():
	}
}

// settle lets one process bring everything to its end that was owed when the last kill came, and stops it. p may be nil.
func (c *chaos) settle(p *people) {
	c.t.Helper()
	c.fault(`{"fault":"slow","times":0}`) // none is left over
	for _, kind := range []string{"probe", "memory", "neither", "fan"} {
		if p != nil {
			c.card(c.t, renewals+kind+"/second", true)
		}
	}
	for _, s := range c.alive()[1:] {
		c.kill(s, false)
	}
	left := func() string {
		var text strings.Builder
		c.rows(`SELECT name FROM daybook_jobs WHERE cursor_us < $1`, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			fmt.Fprintf(&text, " %s is not planned;", name)
			return err
		}, c.over.UnixMicro())
		c.rows(`SELECT l.key, l.state, l.reason, l.hold, l.attempts FROM daybook_live l JOIN daybook_runs r ON r.key = l.key WHERE r.start_us <= $1`, func(rows *sql.Rows) error {
			var key, state, reason, hold string
			var attempts int
			err := rows.Scan(&key, &state, &reason, &hold, &attempts)
			fmt.Fprintf(&text, " %s %s %s %s %d;", key, state, reason, hold, attempts)
			return err
		}, c.over.UnixMicro())
		return text.String()
	}
	defer func() {
		if c.t.Failed() {
			c.t.Logf("left: %s", left())
		}
	}()
	for before, now := "", "?"; now != ""; { // many kills leave a long line, which is done one by one
		before = now
		c.until("something more of what is owed is settled", func() bool {
			n := 0
			if p != nil {
				n = p.tidy()
			}
			if now = left(); n > 0 {
				now += fmt.Sprintf(" %d renewals;", n)
			}
			return now != before
		})
	}
	for _, s := range c.alive() {
		if code := c.terminate(s); code != 0 {
			c.t.Errorf("serve stopped with %d", code)
		}
	}
	if c.fan != nil {
		if code := c.terminate(c.fan); code != 0 {
			c.t.Errorf("the application stopped with %d", code)
		}
	}
	if n := len(c.alive()); n > 0 {
		c.t.Errorf("%d processes are left", n)
	}
}
