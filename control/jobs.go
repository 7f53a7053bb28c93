package control

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

// PauseChange is what became of a pause or a resume.
type PauseChange struct {
	Job     daybook.JobState // afterwards
	Changed bool             // false: it stood so already
	At      time.Time
}

// Pause lets no new run of a job start, and holds those that wait; one that runs goes on. Windows that become due are
// rows, skipped: paused. A reason is required.
//
// Errors: CodeInvalid, no reason; CodeNotFound, no such job, with the nearest name.
func (c *Control) Pause(ctx context.Context, p Person, job, note string) (PauseChange, error) {
	return c.setPaused(ctx, p, job, "pause", note, true, c.s.Pause)
}

// Resume ends a pause; what was held may start. Errors: CodeNotFound, no such job, with the nearest name.
func (c *Control) Resume(ctx context.Context, p Person, job string) (PauseChange, error) {
	return c.setPaused(ctx, p, job, "resume", "", false, c.s.Resume)
}

func (c *Control) setPaused(ctx context.Context, p Person, job, action, note string, required bool,
	set func(context.Context, string, daybook.Activity) (bool, error)) (PauseChange, error) {
	now := c.now()
	p, err := p.check()
	if err != nil {
		return PauseChange{}, err
	}
	if note, err = reason(note, daybook.Say("a pause"), required); err != nil {
		return PauseChange{}, err
	}
	if _, err := c.lookUp(ctx, job, true, now); err != nil {
		return PauseChange{}, err
	}
	change := PauseChange{At: now}
	act := daybook.Activity{At: now, Actor: p.Name, Action: action, Job: job, Note: note}
	if change.Changed, err = set(ctx, job, act); err != nil {
		return PauseChange{}, err
	}
	if change.Job, _, err = c.s.JobState(ctx, job); err != nil {
		return change, err
	}
	if change.Changed {
		c.o.Wake()
	}
	return change, nil
}

// Holds returns what keeps runs from starting, put up by Daybook itself.
func (c *Control) Holds(ctx context.Context) ([]daybook.Hold, error) { return c.s.Holds(ctx) }

// EndHold ends a hold that Daybook put up: the one named clock confirms the time. A reason is required.
//
// Errors: CodeInvalid, no reason; CodeNotFound, there is no such hold (another may have ended it).
func (c *Control) EndHold(ctx context.Context, p Person, name, note string) error {
	p, err := p.check()
	if err != nil {
		return err
	}
	if note, err = reason(note, daybook.Say("the end of a hold"), true); err != nil {
		return err
	}
	now := c.now()
	changed, err := c.s.EndHold(ctx, name, daybook.Activity{At: now, Actor: p.Name, Action: "end hold", Note: daybook.Clip(name+": "+note, daybook.MaxReasonBytes)})
	if err != nil {
		return err
	}
	if changed {
		c.o.Wake()
		return nil
	}
	holds, err := c.s.Holds(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(holds))
	for i, h := range holds {
		names[i] = h.Name
	}
	return noHold(name, names)
}

// JobView is one job as the inventory shows it.
type JobView struct {
	Name  string
	State daybook.JobState
	// Job is the completed definition; with a Fault it is what could be read of it, or nil.
	Job   *daybook.Job
	Words daybook.Text // the schedule in plain words; zero without one
	// Fault says why the schedule cannot be worked out; empty: it can.
	Fault string
	// Next is the next fire that really fires, and NextKey the key it leads to; both empty when there is none, or the job
	// is retired.
	Next    daybook.Fire
	NextKey daybook.Key
	// LastGood is the newest window that is done; its key is empty when there is none.
	LastGood daybook.Good
	// Last is the newest window that has a row; nil when there is none.
	Last *daybook.Run
	// Due is the window of the latest fire already past since the job is known, with its key; empty when there is none.
	Due    daybook.Fire
	DueKey daybook.Key

	// Recent are the newest windows that have a row, newest first: 14 in a Status, one in the inventory.
	Recent []*daybook.Run

	known known
}

// Retired reports whether no definition names the job any more.
func (v JobView) Retired() bool { return v.known.retired() }

// Jobs returns the inventory: every job the ledger knows, retired ones included, by name.
func (c *Control) Jobs(ctx context.Context) ([]JobView, error) {
	states, err := c.s.JobStates(ctx)
	if err != nil {
		return nil, err
	}
	return c.views(ctx, states, 1, c.now())
}

// Job returns one job of the inventory. Errors: CodeNotFound, with the nearest name. A job that a file defines and the
// ledger does not know yet is shown with revision 0.
func (c *Control) Job(ctx context.Context, name string) (JobView, error) {
	now := c.now()
	k, err := c.lookUp(ctx, name, false, now)
	if err != nil {
		return JobView{}, err
	}
	if k.state.Revision == 0 {
		return c.view(ctx, k, nil, 0, now)
	}
	views, err := c.views(ctx, []daybook.JobState{k.state}, 1, now)
	if err != nil {
		return JobView{}, err
	}
	return views[0], nil
}

func (c *Control) views(ctx context.Context, states []daybook.JobState, recent int, now time.Time) ([]JobView, error) {
	good, err := c.s.LastGood(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]JobView, 0, len(states))
	for _, st := range states {
		v, err := c.view(ctx, c.read(st), good, recent, now)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

func (c *Control) view(ctx context.Context, k known, good map[string]daybook.Good, recent int, now time.Time) (JobView, error) {
	v := JobView{Name: k.state.Name, State: k.state, Job: k.job, Fault: k.state.Fault, known: k}
	if v.Name == "" && k.job != nil {
		v.Name = k.job.Name
	}
	v.LastGood = good[v.Name]
	if k.fault != nil {
		v.Fault = k.fault.Error()
	}
	if recent > 0 {
		var err error
		if v.Recent, err = c.s.Runs(ctx, daybook.Filter{Job: v.Name, Limit: recent}); err != nil {
			return v, err
		}
		if len(v.Recent) > 0 {
			v.Last = v.Recent[0]
			if err := c.readAround(ctx, v.Last); err != nil {
				return v, err
			}
		}
	}
	if k.schedule == nil || k.retired() || k.job.Schedule == "" {
		return v, nil
	}
	v.Words = k.schedule.Words()
	key := func(f daybook.Fire) daybook.Key {
		for _, r := range v.Recent { // perhaps under an earlier name
			if answers(r, f.Window.Label) {
				return r.Key
			}
		}
		return daybook.KeyParts{Job: v.Name, Window: f.Window.Label}.Key()
	}
	for f := range k.schedule.Between(now, now.Add(farAhead)) {
		if f.Skip == "" {
			v.Next, v.NextKey = f, key(f)
			break
		}
	}
	if f, ok := latest(k.schedule, now); ok && !f.At.Before(k.state.FirstSeen) {
		v.Due, v.DueKey = f, key(f)
	}
	return v, nil
}

// farAhead bounds the search for fires: schedules that never fire are refused when they are compiled.
const farAhead = 9 * 366 * 24 * time.Hour

// NextFire is one coming fire of a job with the key it leads to.
type NextFire struct {
	Job  string
	Fire daybook.Fire
	Key  daybook.Key
}

// Next returns the next n fires of a job after an instant (zero: now) with the keys they lead to. Fires that a day off or
// a clock change takes out are among them, with Fire.Skip set. Errors: CodeNotFound, with the nearest name; CodeInvalid,
// n below 1 or above 1,000; what keeps the schedule from being worked out.
func (c *Control) Next(ctx context.Context, job string, n int, from time.Time) ([]NextFire, error) {
	now := c.now()
	if n < 1 || n > maxNextFires {
		return nil, daybook.Invalid("%d fires: 1 to %d can be shown", n, maxNextFires)
	}
	if from.IsZero() {
		from = now
	}
	k, err := c.lookUp(ctx, job, false, now)
	if err != nil {
		return nil, err
	}
	if k.schedule == nil {
		return nil, k.fault
	}
	list := make([]NextFire, 0, n)
	for f := range k.schedule.Between(from, from.Add(farAhead)) {
		list = append(list, NextFire{Job: job, Fire: f, Key: daybook.KeyParts{Job: job, Window: f.Window.Label}.Key()})
		if len(list) == n {
			break
		}
	}
	return list, nil
}
