package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
)

// How often a run that is followed is looked at, and whether anybody executes.
const (
	followEvery = 250 * time.Millisecond
	aliveEvery  = 2 * time.Second
	onceSeen    = 30 * time.Second
	turnsCome   = 15 * time.Second // until subjects that wait for their turn are let go, if they may be
)

// follow looks at a run until it has ended, or only open letters of its subjects keep it from that, and returns it: of a coalesced one the run that covers it. each is told every
// change, the first standing included. An error with exit code 6: nobody executes; with 3: only a person lets it go on; with 124: it
// has not ended within atMost (0: no limit).
func (a *app) follow(ctx context.Context, c *control.Control, key daybook.Key, atMost time.Duration, each func(*daybook.Run) error) (*daybook.Run, error) {
	whole := ctx
	if atMost > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, atMost)
		defer cancel()
	}
	var run *daybook.Run
	var looked time.Time
	last, stood, since := "", "", time.Time{}
	ended, err := waitWhile(ctx, followEvery, func() (bool, error) {
		r, err := c.Run(ctx, key)
		if err != nil {
			return false, err
		}
		run = r
		if now := standing(r); now != last {
			last = now
			if err := each(r); err != nil {
				return false, err
			}
		}
		if r.State == daybook.Coalesced && r.CoveredBy != "" {
			key = r.CoveredBy
			return true, nil
		}
		if !r.State.Live() || r.WaitsForPerson() {
			return false, nil
		}
		if now := a.Now(); now.Sub(looked) >= aliveEvery {
			looked = now
			if err := executing(ctx, c, r, now); err != nil {
				return true, err
			}
			if s := subjectsStand(r); s != stood {
				stood, since = s, now
			}
			o, err := c.Stuck(ctx, r)
			if err == nil && o != nil && (r.Subjects == nil || r.Subjects.Waiting == 0 || now.Sub(since) >= turnsCome) {
				err = forPerson(r, o)
			}
			return true, err
		}
		return true, nil
	})
	switch {
	case (ended && err == nil) || run == nil:
	case whole.Err() == nil && ctx.Err() != nil: // the look may have been cut off, too
		err = &coded{code: daybook.ExitTimeout, err: daybook.Invalid("%s is %s after %s, and goes on", run.Key, run.State, span(atMost)).WithHint("%s", "daybook run watch "+string(run.Key))}
	case err == nil:
		err = &coded{code: daybook.ExitFailed, err: daybook.New(daybook.CodeInternal, "no longer followed: %s goes on and is %s", run.Key, run.State)}
	}
	return run, err
}

// forPerson is the error that only a person lets a run go on, with exit code 3.
func forPerson(r *daybook.Run, o *control.Obstacle) error {
	return &coded{code: daybook.ExitNeedsPerson, err: daybook.Conflict("%s", o.ForPerson(r)).WithHint("%s", o.Do)}
}

// subjectsStand is how the subjects of a run stand, to be compared.
func subjectsStand(r *daybook.Run) string {
	if r.Subjects == nil {
		return ""
	}
	return fmt.Sprint(r.Subjects.States, r.Subjects.Waiting, r.Subjects.Held)
}

// forever is the value of --wait without one.
const forever = "forever"

// waitFlag is how long a run is waited for: not at all, to its end, or at most so long.
type waitFlag struct {
	asked  bool
	atMost time.Duration // 0: to its end
}

// String implements pflag.Value.
func (p *waitFlag) String() string {
	switch {
	case !p.asked:
		return ""
	case p.atMost == 0:
		return forever
	}
	return span(p.atMost)
}

// Set implements pflag.Value.
func (p *waitFlag) Set(text string) error {
	p.asked, p.atMost = text != "false", 0
	if text == forever || text == "true" || text == "false" {
		return nil
	}
	d, err := config.ParseDuration(text)
	if err == nil && d <= 0 {
		err = daybook.Invalid("%s is no time to wait", text)
	}
	p.atMost = time.Duration(d)
	return err
}

// Type implements pflag.Value.
func (p *waitFlag) Type() string { return "duration" }

// executing returns an error with exit code 6 when nobody executes a run: no serve, or for a job that no file defines no
// once, was seen lately.
func executing(ctx context.Context, c *control.Control, r *daybook.Run, now time.Time) error {
	if r.Home == daybook.HomeOnce && !r.Key.IsUndo() {
		nodes, err := c.Nodes(ctx)
		if err != nil || r.State == daybook.Running {
			return err
		}
		for _, n := range nodes {
			if n.Role == daybook.HomeOnce && n.StoppedAt.IsZero() && now.Sub(n.SeenAt) <= onceSeen {
				return nil
			}
		}
		return daybook.New(daybook.CodeUnavailable, "%s is recorded and %s; no file defines its job, and no daybook once works on it", r.Key, r.State).
			WithHint("run its line: daybook once --job %s …", r.Job)
	}
	home := r.Home
	if home == daybook.HomeOnce { // an undo is done by a serve
		home = ""
	}
	alive, err := c.Executing(ctx, home)
	if err != nil || alive {
		return err
	}
	if home != "" {
		return daybook.New(daybook.CodeUnavailable, "%s is recorded and %s, and nobody executes: the application %s was not seen in the last 30 s", r.Key, r.State, r.Home).
			WithHint("it runs when that application runs")
	}
	return daybook.New(daybook.CodeUnavailable, "%s is recorded and %s, and nobody executes: no serve was seen in the last 30 s", r.Key, r.State).
		WithHint("it runs when daybook serve runs")
}

// hosts puts the names of machines in place of the ids of nodes.
func hosts(ctx context.Context, c *control.Control) (*strings.Replacer, error) {
	nodes, err := c.Nodes(ctx)
	var pairs []string
	for _, n := range nodes {
		if n.ID != "" && n.Host != "" {
			pairs = append(pairs, n.ID, n.Host)
		}
	}
	return strings.NewReplacer(pairs...), err
}

// standing is what a follower wants to be told about.
func standing(r *daybook.Run) string {
	return fmt.Sprint(r.Key, r.State, r.Reason, r.Hold, r.Attempts, r.CancelledBy)
}

// stepLine says how a run stands, with the time of the change.
func (a *app) stepLine(r *daybook.Run) string {
	loc := a.zoneOf(r.Zone)
	state, failed := stateText(r), a.stored(daybook.Clip(oneLine(r.LastError), 120), r.Zone)
	text := daybook.Say("%s %s", state, stamp(r.EndedAt, loc))
	switch {
	case r.State == daybook.Scheduled:
		text = daybook.Say("%s, due %s", state, stamp(r.Due, loc))
	case r.State == daybook.Running:
		text = daybook.Say("%s, attempt %d, since %s", state, r.Attempts, stamp(control.StartedAt(r), loc))
	case r.State == daybook.Retryable && failed != "":
		text = daybook.Say("%s: %s, next try %s", state, failed, stamp(r.Due, loc))
	case r.State == daybook.Retryable:
		text = daybook.Say("%s, next try %s", state, stamp(r.Due, loc))
	case failed != "" && r.State != daybook.Done:
		text = daybook.Say("%s: %s, %s", state, failed, stamp(r.EndedAt, loc))
	}
	return fmt.Sprintf("%s  %s", r.Key, oneLine(a.lang.Say(text)))
}

// ended tells how a followed run ended, or which letters it waits for. With status the exit code says it too.
func (a *app) ended(ctx context.Context, c *control.Control, r *daybook.Run, status bool) error {
	if a.flags.json {
		if err := a.printJSON(control.NewRunJSON(r)); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(a.Stdout, a.stepLine(r)); err != nil {
		return err
	}
	if r.WaitsForPerson() {
		letters, err := c.OpenLetters(ctx, r.Key)
		if err != nil {
			return err
		}
		for _, k := range letters {
			a.say("%s has an open letter", k)
		}
		if more := r.Subjects.ForPerson() - int64(len(letters)); more > 0 {
			a.say("%s", daybook.Count(int(more), "and %d more", "and %d more"))
		}
	}
	a.next(afterRun(r))
	if status && r.State != daybook.Done {
		return &coded{code: daybook.ExitFailed, err: errors.New("told already"), silent: true}
	}
	return nil
}

// afterRun is the command that is likely to be wanted after a run has ended.
func afterRun(r *daybook.Run) string {
	if r.State == daybook.Dead && r.Letter != nil && r.Letter.State == daybook.LetterOpen {
		return "daybook dead show " + string(r.Key)
	}
	if r.WaitsForPerson() {
		if r.Subjects.Letters == 0 {
			return "daybook dead list"
		}
		return "daybook dead replay " + string(r.Key)
	}
	if r.Attempts > 0 {
		return "daybook run logs " + string(r.Key)
	}
	return "daybook key show " + string(r.Key)
}
