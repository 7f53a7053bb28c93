package daybook

import (
	"slices"
	"strings"
	"time"
)

// What follows the end of an attempt of a run whose work marks its own steps. The attempt's end never settles an effect: one
// that was begun and not ended is unknown, whatever the attempt says. With none open, the attempt's end is read as for work
// that may be repeated, since what was done is not done again.

// nextSteps is Next for a run with steps.
func (r *Run) nextSteps(t Transition, o Outcome, p Policy, now time.Time) Transition {
	after := r.afterAttempt(&t, o.Outlived, now)
	if len(after.OpenSteps()) == 0 {
		t.Close = after.closing(LetterSettled, "probe", "", now) // it stood open while the work asked, for a person
		if left := r.leftOut(); left != "" && o.Result == ResultDone && t.Attempt != nil {
			t.Attempt.Detail = Clip(t.Attempt.Detail+"; it did not come to "+left, MaxErrorBytes)
		}
		if said := o; t.Attempt != nil {
			if o = after.byStep(after.bySteps(o)); o.Result != said.Result || o.Error != said.Error {
				t.Attempt.Result, t.Attempt.Error, t.Error = o.Result, Clip(o.Error, MaxErrorBytes), o.Error
			}
		}
		return after.ending(t, o, p, now)
	}
	if o.Result == ResultLost {
		t.Losses++
	}
	t = after.settleSteps(t, o, p, now)
	if o.Result == ResultDone && t.Attempt != nil { // it says so; its steps do not bear it out
		t.Attempt.Result, t.Attempt.Error = ResultUnknown, Clip(t.Error, MaxErrorBytes)
	}
	return t
}

// bySteps is the end of an attempt as its steps bear it out. One that says done is not done when it was not let begin a step, or was
// told that an effect did not happen and had not said that it does without.
func (r *Run) bySteps(o Outcome) Outcome {
	switch {
	case r.Key.IsUndo() || o.Result != ResultDone:
		return o
	case r.Denied != "":
		o.Result, o.Error = ResultPermanent, r.Denied
		return o
	}
	for _, e := range r.Records {
		if e.Plain || e.Says.Optional || e.Seen != r.Fence {
			continue
		}
		switch e.State {
		case EffectRefused:
			o.Result, o.Error = ResultPermanent, "effect "+e.Step+": "+e.Error
			return o
		case EffectNotDone:
			o.Result, o.Error = ResultNotDone, "effect "+e.Step+": "+e.Error
		}
	}
	return o
}

// byStep names the step by which an attempt failed, in place of what another one printed last: a script ends with the code of the
// command that failed, and what it printed before may be the success of the command before that.
func (r *Run) byStep(o Outcome) Outcome {
	var failed *StepRecord
	code, _, _ := strings.Cut(o.Error, ":")
	for _, e := range r.Records {
		own, _, _ := strings.Cut(e.Error, ":")
		ended := !e.Plain && e.Fence == r.Fence && (e.State == EffectRefused || e.State == EffectNotDone)
		if ended && own == code && strings.HasPrefix(code, "exit ") && (failed == nil || e.EndedAt.After(failed.EndedAt)) {
			failed = e
		}
	}
	if failed != nil && !r.Key.IsUndo() && o.Result != ResultDone {
		o.Error = "effect " + failed.Step + ": " + failed.Error
	}
	return o
}

// afterAttempt returns r as its steps stand once the attempt is over: what it began and did not end is unknown. What it started may
// have outlived it, and then the last try of what is unknown has ended only now.
func (r *Run) afterAttempt(t *Transition, outlived bool, now time.Time) *Run {
	c := *r
	c.Records = slices.Clone(r.Records)
	for i, e := range c.Records {
		late := outlived && e.open() && e.Fence == r.Fence
		if e.Plain || e.State != EffectBegun && !late {
			continue
		}
		over := *e
		if over.unreported(now); late {
			over.EndedAt = now
		}
		if over.Error == "" || e.State == EffectBegun {
			over.Error = "nobody reported how it ended"
		}
		c.Records[i] = &over
		t.Steps = append(t.Steps, &over)
	}
	return &c
}

// leftOut names the effects of earlier attempts, done or not, that this one did not come to: its work is another one now.
func (r *Run) leftOut() string {
	var names []string
	for _, e := range r.Records {
		if !e.Plain && e.Tries > 0 && e.Seen != r.Fence && !r.Key.IsUndo() {
			names = append(names, e.Step+" ("+string(e.State)+")")
		}
	}
	return strings.Join(names, ", ")
}

// settleSteps decides how the open effects of r are settled: by a question from outside, by the work itself in its next
// attempt, by a repeat while the far side remembers, or by a person.
func (r *Run) settleSteps(t Transition, o Outcome, p Policy, now time.Time) Transition {
	var person, repeat, why string
	reason, due := ReasonUnsettled, now
	for _, e := range r.OpenSteps() {
		q := p.ofStep(e)
		why = "effect " + e.Step + ": " + e.Error
		outside := p.asks(r) && !e.Says.Asks
		switch {
		case e.Asked == No:
			due = later(due, e.EndedAt.Add(q.Settles))
			if outside {
				reason = ReasonSettling
			}
		case e.Asked == CannotTell || !outside && !e.Says.Asks:
			d, ok := p.Retry.Delay(r.Key, min(t.Failures, len(p.Retry.Backoff))+1, o.RetryAfter)
			if !ok || !q.remembersAt(e, now.Add(d)) {
				person = why
			}
			repeat = why
		case outside:
			reason = ReasonSettling
		case o.Result == ResultLost || o.Result == ResultInterrupted || o.Interrupted || e.Seen == r.Fence && e.Fence == r.Fence:
		case e.Seen == r.Fence:
			repeat = why // it came to ask, and told no answer: that ends with the ladder
		case o.Result == ResultDone:
			person = "the attempt ended without coming to effect " + e.Step + ", whose outcome is unknown"
		default:
			repeat = o.Error // it failed before it came to the effect
		}
	}
	switch {
	case r.CancelledBy != "" && reason != ReasonSettling:
		return r.dead(t, LetterUnknown, "cancelled by "+r.CancelledBy+" while an outcome is unknown: "+why, now)
	case person != "":
		t.Failures, t.Losses = min(t.Failures, len(p.Retry.Backoff))+1, 0
		return r.dead(t, LetterUnknown, person, now)
	case t.Losses >= MaxLosses:
		return r.dead(t, LetterUnknown, "lost three times in a row: "+why, now)
	case repeat != "":
		if r.Letter != nil && r.Letter.State == LetterOpen { // asked again by a person, who stays in charge
			return r.dead(t, LetterUnknown, repeat, now)
		}
		o.Error = repeat
		return r.ladder(t, p, o, now)
	}
	t.To, t.Reason, t.Due, t.Error = Retryable, reason, due, why
	return t
}

// SettleSteps decides what follows the answers to questions about the open effects of r, asked at askedAt: for each step that
// was asked about, one finding for every wire key used, newest first.
func (r *Run) SettleSteps(found map[string][]Finding, p Policy, askedAt, now time.Time) Transition {
	t := r.move(OnProbe, now)
	c := *r
	c.Records = slices.Clone(r.Records)
	no := ""
	for i, e := range c.Records {
		answers, asked := found[e.Step]
		if !asked || !e.open() {
			continue
		}
		was := *e
		was.unreported(now)
		next, learned := c.StepFound(&was, answers, p, askedAt, now)
		c.Records[i] = next
		t.Steps, t.Asked, t.Alerts = append(t.Steps, next), addAsked(t.Asked, learned.Asked), append(t.Alerts, learned.Alerts...)
		if next.State == EffectNotDone && !was.Forgotten() && !c.wentOn(next, next.Says.Optional) { // of what was not tried here, a no is no failure
			no = "effect " + e.Step + ": " + next.Error
		}
	}
	if len(c.OpenSteps()) > 0 {
		return c.settleSteps(t, Outcome{Result: ResultUnknown}, p, now)
	}
	return c.settled(t, "probe", "", no, p, now)
}

// settled lets a run go on whose last open effect was settled: with what is left, or, when the answer was no, on the ladder.
func (r *Run) settled(t Transition, by, note, no string, p Policy, now time.Time) Transition {
	if t.Close = r.closing(LetterSettled, by, note, now); t.Close != nil && no != "" { // then the try was counted already
		t.Failures = max(t.Failures-1, 0)
	}
	switch {
	case r.CancelledBy != "":
		return r.cancelled(t, r.CancelledBy, now)
	case no != "":
		return r.ladder(t, p, Outcome{Error: no}, now)
	}
	t.To, t.Reason, t.Due, t.Losses = Retryable, ReasonRetry, now, 0
	return t
}

// LateStep decides what the end of a step does that comes after its attempt was declared over, while the run was not claimed
// again: the caller has compared fence and claim. One that settles nothing is false.
func (r *Run) LateStep(step string, o Outcome, p Policy, now time.Time) (Transition, bool) {
	e := r.StepRecord(step)
	if !r.takesResult(o.Result) || e == nil || e.Plain || e.Fence != r.Fence || e.State == EffectDone {
		return Transition{}, false
	}
	if e.State != EffectUnknown && o.Result != ResultDone {
		return Transition{}, false
	}
	next := r.StepEnded(e, o, now)
	if next.State == EffectUnknown {
		return Transition{}, false
	}
	next.SettledBy = "late report"
	if o.Result == ResultDone && e.Generation > 1 && e.FirstAt.IsZero() { // a no was believed meanwhile: this try had the wire key before
		next.Generation--
	}
	return r.lateStep(next, p, now), true
}

// LateStepBefore is LateStep for the report of an earlier attempt, which says that an effect is done of which nothing has begun since: see
// HappenedBefore. While r is running its holder's records are marked instead.
func (r *Run) LateStepBefore(s StepEnd, p Policy, now time.Time) (Transition, bool) {
	next, ok := r.HappenedBefore(s, now)
	if !ok || !r.takesResult(s.Outcome.Result) {
		return Transition{}, false
	}
	return r.lateStep(next, p, now), true
}

// takesLate reports whether r stands so that a late report of a step can move it.
func (r *Run) takesLate() bool {
	open := r.Letter != nil && r.Letter.State == LetterOpen
	return r.State == Retryable || r.State == Dead && open && r.Reason != ReasonUndoing
}

// takesResult reports whether r stands so that a late report of an effect with that result can move it: done counts also where a person has
// ended r, or opened it again, since it was believed that nothing had happened.
func (r *Run) takesResult(result Result) bool {
	return r.takesLate() || result == ResultDone && (r.State == Scheduled && r.Attempts > 0 || r.givenUp())
}

// givenUp reports whether a person has cancelled r, or dismissed its letter.
func (r *Run) givenUp() bool {
	return r.State == Cancelled || r.State == Dead && r.Letter != nil && r.Letter.State == LetterDismissed
}

// happenedAfterAll follows a late report that an effect of r has happened, which a person has given up: he is told by a letter, by which it is
// undone, or left as it is. step is empty where it is the whole attempt.
func (r *Run) happenedAfterAll(t Transition, step string, now time.Time) Transition {
	told := "a late report says that it happened, after the run was given up"
	if step != "" {
		told = "a late report says that " + step + " happened, after the run was given up"
	}
	c := *r
	c.Letter = nil // one that he dismissed stays closed
	t.Close, t.Data, t.Counts = nil, nil, nil
	t = c.dead(t, LetterFailed, told, now)
	t.Reason = ReasonCancelled
	return t
}

// lateStep moves r by a record that a late report has settled.
func (r *Run) lateStep(next *StepRecord, p Policy, now time.Time) Transition {
	t := r.move(OnLateReport, now)
	t.Steps = []*StepRecord{next}
	switch {
	case r.givenUp():
		return r.With(next).happenedAfterAll(t, next.Step, now)
	case r.State == Scheduled:
		t.To, t.Reason, t.Due = Scheduled, r.Reason, r.Due
		return t
	}
	c := r.With(next)
	if len(c.OpenSteps()) > 0 {
		if r.State == Dead {
			t.To, t.Letter = Dead, nil
			return c.dead(t, LetterUnknown, r.Letter.Error, now)
		}
		return c.settleSteps(t, Outcome{Result: ResultUnknown}, p, now)
	}
	if next.State == EffectRefused && r.CancelledBy == "" && !next.Says.Optional {
		t.Close = r.closing(LetterSettled, "late report", "", now)
		return c.dead(t, LetterFailed, "effect "+next.Step+": "+next.Error, now)
	}
	no := ""
	if next.State == EffectNotDone && !c.wentOn(next, next.Says.Optional) {
		no = "effect " + next.Step + ": " + next.Error
	}
	return c.settled(t, "late report", "", no, p, now)
}

// ResolveStep carries out what a person says about an effect whose outcome is unknown. A run with steps goes on once none is
// left. Errors have CodeConflict or CodeNotFound.
func (r *Run) ResolveStep(step string, as Resolution, p Policy, who, note string, now time.Time) (Transition, error) {
	if !r.Steps && step == StepRun {
		return r.Resolve(as, p, who, note, now)
	}
	if r.State != Dead || r.Letter == nil || r.Letter.State != LetterOpen || r.Letter.Kind != LetterUnknown {
		return Transition{}, Conflict("%s has no unknown outcome that waits for a person", r.Key)
	}
	e := r.StepRecord(step)
	if e == nil || !e.open() {
		return Transition{}, NotFound("%s has no step %s whose outcome is unknown", r.Key, step).WithHint("daybook run show %s lists its steps", r.Key)
	}
	t := r.move(OnResolve, now)
	t.Activity = r.act(who, "resolve "+step+" "+string(as), note, now)
	next := *e
	next.unreported(now)
	if next = *r.gate(&next); as != AsAsk {
		next.decided(r)
	}
	t.Steps = []*StepRecord{&next}
	switch as {
	case AsDone:
		next.State, next.SettledBy, next.Error = EffectDone, who, ""
	case AsNotDone:
		next.renew(EffectNotDone, who)
	case AsAsk:
		next.Asked = ""
		switch {
		case next.Says.Asks:
			t.To, t.Reason, t.Due = Retryable, ReasonUnsettled, now
		case p.asks(r):
			t.To, t.Reason, t.Due = Retryable, ReasonSettling, now
		default:
			return Transition{}, Conflict("step %s of %s has no probe that could be asked", step, r.Key).
				WithHint("look at the far side for %s, then: daybook run resolve %s --step %s --as \"done|not-done\" --reason …", e.WireKey(), r.Key, step)
		}
		return t, nil
	default:
		return Transition{}, Invalid("%q is not one of done, not-done, ask", as)
	}
	if c := r.With(&next); len(c.OpenSteps()) > 0 { // the letter stays, for the others
		return c.dead(t, LetterUnknown, r.Letter.Error, now), nil
	}
	t.Close = r.closing(LetterSettled, who, note, now)
	t.To, t.Reason, t.Due, t.Failures, t.Losses = Retryable, ReasonReplayed, now, 0, 0
	return t, nil
}

// stepsAfterRefusal gives each step that was refused for good its next wire key: under the old one the far side would answer
// with the saved refusal. One that the work has gone on without stays refused.
func (r *Run) stepsAfterRefusal() []*StepRecord {
	var renewed []*StepRecord
	for _, e := range r.Records {
		if !e.Plain && e.State == EffectRefused && !r.wentOn(e, e.Says.Optional) {
			c := *e
			c.renew(EffectNotDone, c.SettledBy)
			renewed = append(renewed, &c)
		}
	}
	return renewed
}
