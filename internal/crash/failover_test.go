package crash

import (
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook/internal/pgtest"
)

var failsFlag = flag.Int("fails", 0, "failures of the database in each of its tests (default 1)")

// How a database fails while two processes work on it.
var failures = []struct {
	name string
	make func(t *testing.T) (url, direct string, fail func(c *chaos))
}{
	{"stopped immediately and started again", func(t *testing.T) (string, string, func(*chaos)) {
		server := pgtest.Server(t)
		return server.URL(), server.URL(), func(c *chaos) {
			server.Stop(pgtest.Immediate)
			c.pass(time.Duration(c.random.IntN(3000)) * time.Millisecond)
			server.Start()
		}
	}},
	{"sessions ended by an administrator", func(t *testing.T) (string, string, func(*chaos)) {
		server := pgtest.Server(t)
		return server.URL(), server.URL(), func(c *chaos) {
			for range 5 {
				server.CutAll()
				c.pass(time.Duration(c.random.IntN(300)) * time.Millisecond)
			}
		}
	}},
	{"connections cut by the network", func(t *testing.T) (string, string, func(*chaos)) {
		server := pgtest.Server(t)
		proxy := pgtest.Through(t, server.URL())
		return proxy.URL(), server.URL(), func(c *chaos) {
			for range 5 {
				proxy.Cut()
				c.pass(time.Duration(c.random.IntN(300)) * time.Millisecond)
			}
			proxy.Refuse(true)
			proxy.Cut()
			c.pass(time.Duration(c.random.IntN(4000)) * time.Millisecond)
			proxy.Refuse(false)
		}
	}},
	{"behind a pooler in transaction mode, whose server is stopped", func(t *testing.T) (string, string, func(*chaos)) {
		server := pgtest.Server(t)
		return pgtest.Pooler(t, server.URL()), server.URL(), func(c *chaos) {
			server.Stop(pgtest.Immediate)
			c.pass(time.Duration(c.random.IntN(2000)) * time.Millisecond)
			server.Start()
		}
	}},
}

// TestTheDatabaseFails: whatever becomes of the database and the way to it, nothing is done twice and nothing is left out,
// by the gateway's book and the diary of the commands, and work goes on by itself.
func TestTheDatabaseFails(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts servers of its own")
	}
	fails := 1 // one after the other, and beside nothing else: a machine that is too busy loses leases by itself
	if *failsFlag > 0 {
		fails = *failsFlag
	}
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			url, direct, fail := f.make(t)
			c := inFailures(t, direct, url)
			for range fails {
				c.fails(fail)
			}
			c.report(t)
		})
	}
}

// TestASynchronousStandbyIsPromoted: the primary is gone for good in the middle of the load, and the URL that names both
// servers leads to the standby.
func TestASynchronousStandbyIsPromoted(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts servers of its own")
	}
	t.Parallel()
	rounds := 1
	if *failsFlag > 0 {
		rounds = *failsFlag
	}
	for n := range rounds {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			primary := pgtest.Server(t)
			standby := primary.Standby()
			url := pgtest.Both(t, primary, standby)
			c := inFailures(t, url, url)
			c.fails(func(c *chaos) {
				primary.Stop(pgtest.Crash)
				c.pass(time.Duration(c.random.IntN(1500)) * time.Millisecond)
				standby.Promote()
			})
			c.report(t)
		})
	}
}

// failing is a chaos of the database.
type failing struct {
	*chaos
	seed  uint64
	spans [][2]time.Time // when it failed, and when it was back
}

// inFailures starts two processes under load. direct is the way by which the test looks at the ledger.
func inFailures(t *testing.T, direct, url string) *failing {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1_000_000) + 1
	}
	w := newWorld(t, direct, chaosJobs)
	w.url = url
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	c := &failing{chaos: &chaos{world: w, random: rand.New(rand.NewPCG(seed, 7))}, seed: seed}
	c.served()
	c.served()
	c.pass(3 * time.Second)
	return c
}

// fails lets the database fail once, under faults of the gateway, and gives the processes a while.
func (c *failing) fails(fail func(*chaos)) {
	c.t.Helper()
	c.fault(chaosFaults[c.random.IntN(len(chaosFaults))])
	began := time.Now()
	fail(c.chaos)
	c.spans = append(c.spans, [2]time.Time{began, time.Now()})
	// What looks at the ledger has connections that died as well.
	c.db.SetMaxIdleConns(0)
	c.db.SetMaxIdleConns(2)
	c.pass(time.Duration(3000+c.random.IntN(3000)) * time.Millisecond)
	if n := len(c.alive()); n != 2 {
		c.t.Errorf("%d processes are left of 2", n)
	}
}

// report settles what is owed, checks everything, and prints the figures.
func (c *failing) report(t *testing.T) {
	t.Helper()
	c.over = time.Now()
	c.settle(nil)
	f := c.check()
	var waits []string
	for _, span := range c.spans {
		var first int64
		c.rows(`SELECT COALESCE(min(claimed_us), 0) FROM daybook_attempts WHERE claimed_us > $1`, func(rows *sql.Rows) error { return rows.Scan(&first) }, span[1].UnixMicro())
		if first == 0 {
			t.Errorf("nothing was claimed after the failure of %s", span[0].Format(time.TimeOnly))
			continue
		}
		wait := time.UnixMicro(first).Sub(span[1])
		waits = append(waits, fmt.Sprintf("%.1f s (away %.1f s)", wait.Seconds(), span[1].Sub(span[0]).Seconds()))
		if wait > 20*time.Second {
			t.Errorf("work went on %s after the database was back", wait)
		}
	}
	t.Logf("seed %d: %d failures, work went on after %s; %s", c.seed, len(c.spans), strings.Join(waits, ", "), f)
}
