package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// demoPace is how much faster the clock of the demo runs than time does.
const demoPace = 60

// demoClock is the one clock of the demo: a file that every process of it reads. The director lets it run to an instant,
// where it stands until it is let run on, so that a slow machine tells the same story as a fast one; hours in which nothing
// happens are jumped over.
type demoClock struct {
	path string

	mu   sync.Mutex
	last demoTime
}

// demoTime is what the file says: at the real instant Since it was From, and since then it runs, as far as Until.
type demoTime struct {
	Birth time.Time `json:"birth"` // when the demo begins: its machine was started then
	From  time.Time `json:"from"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// at returns the time of the demo at a real instant.
func (d demoTime) at(real time.Time) time.Time {
	t := d.From.Add(demoPace * max(real.Sub(d.Since), 0))
	if t.After(d.Until) {
		return d.Until
	}
	return t
}

// read reads the file. Once it was read, it is believed when it can be read no more: the demo is over then.
func (c *demoClock) read() (demoTime, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var d demoTime
	text, err := os.ReadFile(c.path)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err == nil && d.From.IsZero() {
		err = daybook.Invalid("%s is no clock of a demo", c.path)
	}
	if err != nil && !c.last.From.IsZero() {
		return c.last, nil
	}
	c.last = d
	return d, err
}

// Now is the time of the demo.
func (c *demoClock) Now() time.Time {
	d, err := c.read()
	if err != nil {
		return time.Time{} // byDemoClock has read it
	}
	return d.at(time.Now())
}

// Boot is the time since the machine of the demo was started.
func (c *demoClock) Boot() time.Duration {
	d, err := c.read()
	if err != nil {
		return 0
	}
	return d.at(time.Now()).Sub(d.Birth)
}

// write puts the clock to a time from which it runs to another.
func (c *demoClock) write(from, until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := demoTime{Birth: c.last.Birth, From: from.UTC(), Since: time.Now().Round(0).UTC(), Until: until.UTC()}
	if d.Birth.IsZero() {
		d.Birth = d.From
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path+".new", text, 0o600); err != nil {
		return err
	}
	c.last = d
	return os.Rename(c.path+".new", c.path)
}

// runTo lets the clock run on to an instant.
func (c *demoClock) runTo(until time.Time) error { return c.write(c.Now(), until) }

// byDemoClock reads "demo-at CLOCK" before a call, by which the demo gives its clock to the processes that it starts, and
// returns the rest of the call. It is no command: nobody else has such a clock.
func (a *app) byDemoClock(args []string) []string {
	if len(args) < 3 || args[0] != "demo-at" {
		return args
	}
	c := &demoClock{path: args[1]}
	if _, err := c.read(); err != nil {
		return args
	}
	a.moved, a.Now = c, c.Now
	return args[2:]
}
