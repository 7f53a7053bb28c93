package control

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// DrillRequest asks for a drill: a done key is asked for again, and nothing is to come of it.
type DrillRequest struct {
	Job, Window, Date, Subject string // as in Request
	// Doors are those that it comes by; none: daybook.DefaultDrillDoors. Times is how often by each; 0: three times.
	Doors []daybook.Source
	Times int
	// Count says how often the effect happened, by the book of the far side: before and after, the same is to be said. Nil:
	// only what is recorded is counted.
	Count func(ctx context.Context, r *daybook.Run) (string, error)
	// DryRun finds the key, and asks for nothing.
	DryRun bool
}

const drillTimes = 3

// Patience with what a drill started, before it is counted.
const (
	drillPatience = time.Minute
	drillLook     = 50 * time.Millisecond
)

// Drill asks for a done key again, by each of several doors several times: one after the other, and at last by all of them at
// once. What is recorded of it before and after is compared, and what the caller counts. The record is kept; when something
// came of it, with an alert.
//
// Each trigger is recorded with the source drill, and answered as one that comes by its door.
//
// Errors, after which nothing is kept: CodeConflict, the key is not done; CodeNotFound; CodeInvalid, also for a count that
// fails before anything was asked for; CodeUnavailable.
func (c *Control) Drill(ctx context.Context, p Person, q DrillRequest) (*daybook.Drill, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	p, err := p.check()
	if err != nil {
		return nil, err
	}
	t, r, err := c.drilled(ctx, p, q)
	if err != nil {
		return nil, err
	}
	d := &daybook.Drill{Key: r.Key, Job: t.job.Name, Actor: p.Name, At: c.now(), Doors: q.Doors, Times: q.Times}
	if q.DryRun {
		return d, nil
	}
	if d.Before, err = c.s.Tally(ctx, r.Key); err != nil {
		return nil, err
	}
	if q.Count != nil {
		if d.CountBefore, err = q.Count(ctx, r); err != nil {
			return nil, daybook.Invalid("the count failed: nothing was asked for").Because(err)
		}
	}
	if err := c.knock(ctx, t, q, d); err != nil {
		return nil, err
	}
	if err := c.settles(ctx, r.Key); err != nil {
		return nil, err
	}
	if d.After, err = c.s.Tally(ctx, r.Key); err != nil {
		return nil, err
	}
	var fault error
	if q.Count != nil {
		d.CountAfter, fault = q.Count(ctx, r)
	}
	d.Counted = q.Count != nil && fault == nil
	d.Judge()
	if fault != nil { // then nobody knows
		d.Seen = strings.TrimPrefix(d.Seen+"; the count failed afterwards: "+daybook.Clip(fault.Error(), 300), "; ")
	}
	d.Ended = c.now()
	return d, c.keepDrill(ctx, d, r)
}

// check checks a request, and fills in what it leaves out.
func (q *DrillRequest) check() error {
	if q.Times == 0 {
		q.Times = drillTimes
	}
	if q.Times < 1 || q.Times > daybook.MaxDrillTimes {
		return daybook.Invalid("a drill of %d times: 1 to %d", q.Times, daybook.MaxDrillTimes)
	}
	if len(q.Doors) == 0 {
		q.Doors = daybook.DefaultDrillDoors
	}
	names := make([]string, len(daybook.DrillDoors))
	for i, d := range daybook.DrillDoors {
		names[i] = string(d)
	}
	for i, d := range q.Doors {
		if !slices.Contains(daybook.DrillDoors, d) {
			e := daybook.Invalid("%q is not a door: one of %s", daybook.Clip(string(d), 40), daybook.Words(names))
			if near := daybook.Nearest(string(d), names); near != "" {
				return e.WithHint("did you mean %s?", near)
			}
			return e
		}
		if slices.Contains(q.Doors[:i], d) {
			return daybook.Invalid("door %s is named twice", string(d))
		}
	}
	return nil
}

// drilled finds the run that a request means, and refuses one that is not done.
func (c *Control) drilled(ctx context.Context, p Person, q DrillRequest) (target, *daybook.Run, error) {
	ask := Request{Job: q.Job, Window: q.Window, Date: q.Date, Subject: q.Subject, Source: daybook.SourceDrill, Note: "drill"}
	t, err := c.target(ctx, p, ask, false, c.now())
	if err != nil {
		return target{}, nil, err
	}
	r, err := c.underAnyName(ctx, t.ask.Key, t.state.Formerly)
	switch {
	case err != nil:
		return target{}, nil, err
	case r == nil:
		return target{}, nil, daybook.NotFound("there is no run %s: only a key that is done is drilled", t.ask.Key).WithHint("daybook run list --job %s --state done", q.Job)
	}
	return t, r, r.CheckDrill()
}

// knock asks by every door.
func (c *Control) knock(ctx context.Context, t target, q DrillRequest, d *daybook.Drill) error {
	for range q.Times - 1 {
		for _, door := range q.Doors {
			outcome, err := c.drillBy(ctx, t, door)
			if err != nil {
				return err
			}
			d.Heard(door, outcome)
		}
	}
	outcomes, faults := make([]daybook.TriggerOutcome, len(q.Doors)), make([]error, len(q.Doors))
	var at sync.WaitGroup
	for i, door := range q.Doors {
		at.Go(func() { outcomes[i], faults[i] = c.drillBy(ctx, t, door) })
	}
	at.Wait()
	for i, door := range q.Doors {
		if faults[i] != nil {
			return faults[i]
		}
		d.Heard(door, outcomes[i])
	}
	return nil
}

// drillBy asks for a key as whoever comes by a door does.
func (c *Control) drillBy(ctx context.Context, t target, door daybook.Source) (daybook.TriggerOutcome, error) {
	a, template := t.ask, t.template
	a.Door = door
	if door == daybook.SourceReplay {
		template = nil // it makes no key
	}
	reply, _, err := c.s.Trigger(ctx, a, template, c.now())
	if err == nil && reply.Outcome == daybook.Started {
		c.o.Wake()
	}
	return reply.Outcome, err
}

// settles waits until a run that a drill may have started has ended, for as long as patience lasts.
func (c *Control) settles(ctx context.Context, k daybook.Key) error {
	ctx, cancel := context.WithTimeout(ctx, drillPatience)
	defer cancel()
	tick := time.NewTicker(drillLook)
	defer tick.Stop()
	for {
		r, err := c.runOf(ctx, k)
		if err != nil || !r.State.Live() {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil // it is counted as it stands
		}
	}
}

func (c *Control) keepDrill(ctx context.Context, d *daybook.Drill, r *daybook.Run) error {
	var failed *daybook.Alert
	after := "no effect"
	if !d.Passed() {
		after = d.Seen
		failed = daybook.NewAlert(daybook.AlertDrillFailed, d.Key, d.Job, r.Priority, d.Seen, "", d.Ended)
	}
	return c.s.KeepDrill(ctx, d, failed, daybook.Activity{At: d.Ended, Actor: d.Actor, Action: "drill", Key: d.Key, Job: d.Job, After: after})
}

// Drills lists the drills of a job, or of all when it is empty, newest first. Errors: CodeNotFound, no such job; CodeInvalid.
func (c *Control) Drills(ctx context.Context, job string, limit int) ([]daybook.Drill, error) {
	if limit < 1 || limit > maxListed {
		return nil, daybook.Invalid("%d drills at once: 1 to %d", limit, maxListed)
	}
	if job != "" {
		if _, err := c.lookUp(ctx, job, false, c.now()); err != nil {
			return nil, err
		}
	}
	return c.s.Drills(ctx, job, limit)
}

// DrillText says in one sentence what came of a drill. It begins with the key.
func DrillText(d *daybook.Drill) daybook.Text {
	times := d.Times * len(d.Doors)
	if d.Passed() {
		return daybook.Say("%s  asked for %s by %s: nothing came of it", d.Key, daybook.Count(times, "%d time", "%d times"), doorWords(d.Doors))
	}
	return daybook.Say("%s  asked for %s by %s, and something came of it: %s", d.Key, daybook.Count(times, "%d time", "%d times"), doorWords(d.Doors), d.Seen)
}

func doorWords(doors []daybook.Source) string {
	names := make([]string, len(doors))
	for i, d := range doors {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// DrillJSON is daybook/drill.v1.
type DrillJSON struct {
	Schema  string           `json:"schema"`
	ID      string           `json:"id"`
	Key     daybook.Key      `json:"key"`
	Job     string           `json:"job"`
	Actor   string           `json:"actor"`
	At      time.Time        `json:"at"`
	Ended   time.Time        `json:"ended"`
	Result  string           `json:"result" doc:"none, or effect when something came of it"`
	Effects int64            `json:"new_effects" doc:"that are recorded: begun effects, or further attempts of work that marks none"`
	Seen    string           `json:"seen,omitempty" doc:"what came of it"`
	Doors   []daybook.Source `json:"doors"`
	Times   int              `json:"times"`
	Knocks  []daybook.Knock  `json:"answers"`
	Before  daybook.Tally    `json:"before"`
	After   daybook.Tally    `json:"after"`
	Count   *DrillCount      `json:"count,omitempty" doc:"of the far side"`
}

// DrillCount is what the counting command said.
type DrillCount struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// NewDrillJSON is a drill for programs.
func NewDrillJSON(d *daybook.Drill) DrillJSON {
	j := DrillJSON{Schema: "daybook/drill.v1", ID: d.ID, Key: d.Key, Job: d.Job, Actor: d.Actor, At: d.At, Ended: d.Ended, Result: "none", Effects: d.NewEffects(),
		Seen: d.Seen, Doors: d.Doors, Times: d.Times, Knocks: d.Knocks, Before: d.Before, After: d.After}
	if !d.Passed() {
		j.Result = "effect"
	}
	if d.Counted {
		j.Count = &DrillCount{Before: d.CountBefore, After: d.CountAfter}
	}
	return j
}
