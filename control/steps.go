package control

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-run/daybook"
)

// Steps of work outside this process: a script, an HTTP job. What an attempt may do it shows by its token.

// ComeTo answers the work of an attempt that comes to a step. What must be marked before it goes on is marked.
//
// Errors: CodeStale, the attempt does not hold its run any more; CodeNotFound; CodeUnavailable.
func (c *Control) ComeTo(ctx context.Context, id daybook.AttemptID, ask daybook.StepAsk) (daybook.StepAnswer, error) {
	var a daybook.StepAnswer
	err := c.mark(ctx, id, func(r *daybook.Run, p daybook.Policy, now time.Time) (*daybook.StepRecord, daybook.Learned, error) {
		if ask.Says.Undo != "" {
			if err := c.undoesByCommand(ctx, r.Job); err != nil {
				return nil, daybook.Learned{}, err
			}
		}
		a = r.ComeTo(ask, p, now)
		if !a.Write {
			return nil, daybook.Learned{}, nil
		}
		return a.Record, daybook.Learned{}, nil
	})
	if err == nil && a.Denied {
		err = c.deny(ctx, id, a.Err)
	}
	return a, err
}

// deny notes that an attempt was not let begin a step.
func (c *Control) deny(ctx context.Context, id daybook.AttemptID, why error) error {
	o, err := c.masked(id.Key.Job(), daybook.Outcome{Error: daybook.Clip(why.Error(), daybook.MaxErrorBytes)})
	if err != nil {
		return err
	}
	for range staleTries {
		r, err := c.runOf(ctx, id.Key)
		if err != nil {
			return err
		}
		if r.ID() != id || r.State != daybook.Running {
			return overtaken(r, id)
		}
		if err = c.s.Deny(ctx, r, o.Error); !errors.Is(err, daybook.ErrStale) {
			return err
		}
	}
	return changesAllTheTime(id.Key)
}

// undoesByCommand refuses an undo command from work that is no command here: it would run on this machine.
func (c *Control) undoesByCommand(ctx context.Context, job string) error {
	j, ok := c.o.Defined(job)
	if !ok {
		var err error
		if j, err = c.s.Definition(ctx, job); err != nil {
			return err
		}
	}
	if j.Command.IsZero() {
		return daybook.Denied("job %s is no command: its effects cannot bring a command that undoes them", job).WithHint("set undo_url in the job")
	}
	return nil
}

// StepEnded takes how a step ended that ComeTo let begin, and says what the work does next: go on, ask the far side, or end
// its attempt. An end that comes after the attempt was declared over still settles the step, while the run was not claimed
// again; the answer is the same.
//
// Its Try is the number of the try that ended, as its record had it; 0: not said, and then a report that is late may be taken for
// one of a later try.
//
// Errors: CodeStale, the run moved on, and the end changed nothing; CodeConflict, the step, or that try of it, is not under way; CodeNotFound;
// CodeUnavailable.
func (c *Control) StepEnded(ctx context.Context, id daybook.AttemptID, s daybook.StepEnd) (daybook.StepAnswer, error) {
	o, err := c.masked(id.Key.Job(), s.Outcome)
	if err != nil {
		return daybook.StepAnswer{}, err
	}
	s.Outcome = o
	var next *daybook.StepRecord
	err = c.mark(ctx, id, func(r *daybook.Run, _ daybook.Policy, now time.Time) (*daybook.StepRecord, daybook.Learned, error) {
		var write bool
		switch next, write = r.Heard(s, now); {
		case next == nil: // of an earlier try, and late
			return nil, daybook.Learned{}, notBegun(r, s.Step)
		case !write: // told before, or simply done again
			return nil, daybook.Learned{}, nil
		}
		return next, daybook.Learned{}, nil
	})
	if errors.Is(err, daybook.ErrStale) {
		next, err = c.lateStep(ctx, id, s, err)
	}
	if err != nil {
		return daybook.StepAnswer{}, err
	}
	if next.State == daybook.EffectUnknown && next.Says.Asks {
		return daybook.StepAnswer{Do: daybook.StepAsks, Record: next}, nil
	}
	return next.Stepped(), nil
}

func notBegun(r *daybook.Run, step string) error {
	if err := daybook.CheckStep(step); err != nil {
		return err
	}
	return daybook.Conflict("step %s of %s is not under way in this attempt", step, r.Key).WithHint("begin it first")
}

// StepFound takes what the far side said about every wire key of an open effect, asked at askedAt, and says what the work does
// next. A wire key that is missing counts as cannot tell.
//
// Errors as of ComeTo; CodeInvalid, an answer that is none, or about another wire key.
func (c *Control) StepFound(ctx context.Context, id daybook.AttemptID, step string, found []daybook.Finding, askedAt time.Time) (daybook.StepAnswer, error) {
	secrets, err := c.secretsOf(id.Key.Job())
	if err != nil {
		return daybook.StepAnswer{}, err
	}
	var next *daybook.StepRecord
	err = c.mark(ctx, id, func(r *daybook.Run, p daybook.Policy, now time.Time) (*daybook.StepRecord, daybook.Learned, error) {
		e := r.StepRecord(step)
		switch {
		case e != nil && e.SettledBy == "probe" && e.Seen == r.Fence && e.State != daybook.EffectBegun: // told before, and the answer was lost
			next = e
			return nil, daybook.Learned{}, nil
		case e == nil, e.State != daybook.EffectUnknown:
			return nil, daybook.Learned{}, daybook.Conflict("step %s of %s is not open: there is nothing to ask", step, r.Key)
		}
		all, err := findings(e.WireKeys(), found, secrets)
		if err != nil {
			return nil, daybook.Learned{}, err
		}
		asked := askedAt
		if asked.After(now) { // by a clock that is ahead, an early no would count
			asked = now
		}
		var learned daybook.Learned
		next, learned = r.StepFound(e, all, p, asked, now)
		return next, learned, nil
	})
	if err != nil {
		return daybook.StepAnswer{}, err
	}
	return next.Stepped(), nil
}

// mark reads the run of an attempt, lets a rule decide what is to be written of a step, and writes it; again, when somebody else
// wrote a step meanwhile.
func (c *Control) mark(ctx context.Context, id daybook.AttemptID, decide func(r *daybook.Run, p daybook.Policy, now time.Time) (*daybook.StepRecord, daybook.Learned, error)) error {
	p, err := c.policyOf(ctx, id.Key.Job())
	if err != nil {
		return err
	}
	for range staleTries {
		r, err := c.runOf(ctx, id.Key)
		if err != nil {
			return err
		}
		if r.ID() != id || r.State != daybook.Running {
			return overtaken(r, id)
		}
		e, learned, err := decide(r, p, c.now())
		if err != nil || e == nil {
			return err
		}
		if err = c.s.MarkStep(ctx, r, e, learned); !errors.Is(err, daybook.ErrStale) {
			return err
		}
	}
	return changesAllTheTime(id.Key)
}

func overtaken(r *daybook.Run, id daybook.AttemptID) error {
	e := daybook.Stale("a later attempt of %s has taken over", id.Key)
	if r.ID() == id {
		e = daybook.Stale("the attempt of %s is over, and the run is %s", id.Key, r.State)
	}
	return e.WithHint("daybook key show %s tells what happened", id.Key)
}

// lateStep settles a step by a report that came after its attempt was declared over. One of an earlier try counts as long as nothing of
// the effect has begun since; one that settles nothing any more, and says that the effect happened under a wire key before the one that
// counts, is told to people.
func (c *Control) lateStep(ctx context.Context, id daybook.AttemptID, s daybook.StepEnd, stale error) (*daybook.StepRecord, error) {
	p, err := c.policyOf(ctx, id.Key.Job())
	if err != nil {
		return nil, err
	}
	for range staleTries {
		r, err := c.runOf(ctx, id.Key)
		if err != nil {
			return nil, err
		}
		e, now := r.StepRecord(s.Step), c.now()
		if r.ID() != id && r.State == daybook.Running {
			next, ok := r.HappenedBefore(s, now)
			if !ok {
				return nil, c.tooLateStep(ctx, r, id, s, stale)
			}
			if err := c.s.MarkStep(ctx, r, next, daybook.Learned{}); !errors.Is(err, daybook.ErrStale) {
				return next, err
			}
			continue
		}
		var t daybook.Transition
		ok := false
		if r.ID() == id && (e == nil || s.Try == 0 || e.Tries == s.Try) {
			t, ok = r.LateStep(s.Step, s.Outcome, p, now)
		} else {
			t, ok = r.LateStepBefore(s, p, now)
		}
		if !ok {
			return nil, c.tooLateStep(ctx, r, id, s, stale)
		}
		applied, err := c.s.Apply(ctx, []daybook.Transition{t})
		if err != nil {
			return nil, err
		}
		if !applied[0].Stale {
			c.o.Wake()
			return t.Steps[0], nil
		}
	}
	return nil, changesAllTheTime(id.Key)
}

// tooLateStep keeps a report of an effect that changes nothing any more and says that it is done, and tells people when money moved twice.
func (c *Control) tooLateStep(ctx context.Context, r *daybook.Run, id daybook.AttemptID, s daybook.StepEnd, stale error) error {
	e := r.StepRecord(s.Step)
	if s.Outcome.Result != daybook.ResultDone || e == nil || e.Plain || e.State == daybook.EffectDone && (s.WireKey == "" || s.WireKey == e.WireKey()) {
		return stale // it says nothing new
	}
	now := c.now()
	kept := daybook.Attempt{Key: id.Key, Fence: id.Fence, Claim: id.Claim, WireKey: s.WireKey, LateResult: s.Outcome.Result, LateAt: now}
	if err := c.s.Evidence(ctx, kept, r.DoneTwice(s.Step, s.WireKey, now)); err != nil {
		return err
	}
	return stale
}
