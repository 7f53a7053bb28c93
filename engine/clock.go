package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
)

// Limits of clocks.
const (
	leapLimit   = time.Hour       // a wall clock this far ahead of the boot clock is not believed
	offsetLimit = 5 * time.Second // a node this far from the database's clock claims nothing
	offsetTold  = time.Second     // one this far from it drifts, and that is said
	offsetEvery = time.Minute
)

// clockStore is what the clock needs of the ledger.
type clockStore interface {
	ClockOffset(ctx context.Context, clock func() time.Time) (time.Duration, error)
	Nodes(ctx context.Context) ([]daybook.Node, error)
	Hold(ctx context.Context, h daybook.Hold) (bool, error)
	EndHold(ctx context.Context, name string, act daybook.Activity) (bool, error)
	Holds(ctx context.Context) ([]daybook.Hold, error)
}

// clock is the one clock of a process: the machine's, plus its measured distance to the database's. As a service it
// watches the wall clock against the time since boot: a leap ahead that is no suspend holds new once-only windows until
// the clock comes back or a person confirms it.
type clock struct {
	store clockStore
	node  daybook.Node
	wall  func() time.Time
	boot  func() time.Duration
	log   *slog.Logger

	mu       sync.Mutex
	offset   time.Duration
	measured time.Time
	drifts   bool          // it was said that the clock is off
	baseline time.Time     // the wall clock at boot, as it was believed last
	known    atomic.Int64  // the same in nanoseconds since 1970, for other goroutines
	behind   bool          // the wall clock was set back from there
	byHand   bool          // the wall clock is the time: nothing is measured
	leap     time.Duration // how far ahead the wall clock is while it is not believed; 0: it is
}

func newClock(s clockStore, n daybook.Node, wall func() time.Time, boot func() time.Duration, log *slog.Logger) *clock {
	return &clock{store: s, node: n, wall: wall, boot: boot, log: log}
}

// Now is the time by which everything here goes, in whole microseconds, as the ledger keeps them.
func (c *clock) Now() time.Time {
	return c.wall().Add(c.Offset()).Round(0).Truncate(time.Microsecond).UTC()
}

// Offset is the database's clock minus this machine's, as measured last.
func (c *clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// begin measures the offset, and takes the believed clock over from the last process of this boot of the machine.
func (c *clock) begin(ctx context.Context) error {
	if err := c.current(ctx); err != nil {
		return err
	}
	nodes, err := c.store.Nodes(ctx)
	if err != nil {
		return err
	}
	holds, err := c.store.Holds(ctx)
	if err != nil {
		return err
	}
	c.believe(c.booted())
	for _, n := range nodes { // the one seen last first
		if n.BootID != "" && n.BootID == c.node.BootID && n.Host == c.node.Host {
			c.believe(n.SeenAt.Add(-n.BootClock))
			break
		}
	}
	for _, h := range holds {
		if h.Name == daybook.HoldClock {
			c.leap = c.booted().Sub(c.baseline)
		}
	}
	_, err = c.Tick(ctx, c.Now())
	return err
}

// booted is when this machine started, by the clock that all go by: one machine that is wrong while the database is right
// holds nobody up, and claims nothing itself.
func (c *clock) booted() time.Time { return c.Now().Add(-c.boot()) }

// current measures the offset unless that was done lately. What is asked for before anything runs goes by the same clock
// as what runs then: else it might not be due yet.
func (c *clock) current(ctx context.Context) error {
	c.mu.Lock()
	since := c.wall().Sub(c.measured)
	c.mu.Unlock()
	if c.byHand || since >= 0 && since <= offsetEvery {
		return nil
	}
	return c.measure(ctx)
}

func (c *clock) measure(ctx context.Context) error {
	offset, err := c.store.ClockOffset(ctx, c.wall)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset, c.measured = offset, c.wall()
	if drifts := offset.Abs() > offsetTold; drifts != c.drifts {
		c.drifts = drifts
		if drifts {
			c.log.Warn("the clock of this machine is off the database's: what is done here goes by the database's", "off", (-offset).Round(time.Millisecond), "claims_nothing_beyond", offsetLimit)
		} else {
			c.log.Warn("the clock of this machine agrees with the database's again", "off", (-offset).Round(time.Millisecond))
		}
	}
	return nil
}

// usable reports why nothing may be claimed by this node, if so.
func (c *clock) usable() error {
	if o := c.Offset(); o > offsetLimit || o < -offsetLimit {
		return daybook.New(daybook.CodeUnavailable, "the clock of this machine is %s off the database's: nothing is claimed here", (-o).Round(time.Millisecond)).
			WithHint("set the clock of this machine right")
	}
	return nil
}

// Tick implements daybook.Service.
func (c *clock) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	if err := c.current(ctx); err != nil {
		return false, err
	}
	booted := c.booted()
	ahead := booted.Sub(c.baseline)
	switch {
	case c.leap != 0:
		return false, c.held(ctx, booted, ahead, now)
	case ahead > leapLimit:
		detail := fmt.Sprintf("the wall clock leapt %s ahead of the time since boot, to %s; new windows of once-only work wait until it is confirmed", ahead.Round(time.Second), now.Format(time.RFC3339))
		c.log.Warn("clock leapt", "ahead", ahead.Round(time.Second))
		if _, err := c.store.Hold(ctx, daybook.Hold{Name: daybook.HoldClock, Since: now, Detail: detail, Node: c.node.ID}); err != nil {
			return false, err
		}
		c.leap = ahead
	case ahead < -leapLimit:
		// Nothing is planned before the time that was reached, and coming back to it is no leap: the believed time stays.
		if !c.behind {
			c.log.Warn("clock was set back", "by", (-ahead).Round(time.Second))
		}
		c.behind = true
	default:
		c.behind = false
		c.believe(booted) // small steps are followed
	}
	return false, nil
}

// held looks whether the clock came back, or a person confirmed it.
func (c *clock) held(ctx context.Context, booted time.Time, ahead time.Duration, now time.Time) error {
	if ahead <= leapLimit {
		c.log.Warn("clock came back", "leapt", c.leap.Round(time.Second), "back", (c.leap - ahead).Round(time.Second))
		note := fmt.Sprintf("the wall clock leapt %s ahead and came back by %s", c.leap.Round(time.Second), (c.leap - ahead).Round(time.Second))
		if _, err := c.store.EndHold(ctx, daybook.HoldClock, daybook.Activity{At: now, Actor: "daybook", Action: "end hold clock", Note: note}); err != nil {
			return err
		}
		c.leap = 0
		c.believe(booted)
		return nil
	}
	holds, err := c.store.Holds(ctx)
	if err != nil {
		return err
	}
	for _, h := range holds {
		if h.Name == daybook.HoldClock {
			return nil
		}
	}
	c.leap = 0
	c.believe(booted) // a person ended the hold: this is the time
	return nil
}

// believe takes the wall clock at boot that follows from the time as it is now.
func (c *clock) believe(booted time.Time) {
	c.baseline = booted
	c.known.Store(booted.UnixNano())
}

// believed reports whether the wall clock is what the time since boot makes of it, now: it may have leapt since the last
// Tick. Any goroutine may ask.
func (c *clock) believed() bool {
	known := c.known.Load()
	return known != 0 && c.booted().Sub(time.Unix(0, known)) <= leapLimit
}

// bootID names this boot of the machine, or is empty where that is not known.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
