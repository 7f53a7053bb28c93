package daybook

import "time"

// What follows of the one effect that the whole attempt of a run is: the once-only protocol.

// Begin returns the effect as it must be marked, durably, before an attempt of a OneEffect run starts its work, and
// false when it may not be begun: it is done, or open and no longer remembered by the far side. Then Unsettled says what
// follows.
func (r *Run) Begin(p Policy, now time.Time) (*StepRecord, bool) {
	was := r.effect()
	if was.happenedOnce() != nil {
		return nil, false
	}
	e := *r.gate(was)
	switch e.State {
	case EffectDone, EffectBegun:
		return nil, false
	case EffectUnknown:
		if p.asks(r) && e.Doubt != was.Doubt || !p.remembersAt(&e, now) { // where there is a probe it is asked first
			return nil, false
		}
		e.Open = true
	}
	e.State, e.Fence, e.EndedAt, e.SettledBy = EffectBegun, r.Fence, time.Time{}, ""
	e.Tries++
	if e.FirstAt.IsZero() {
		e.FirstAt = now
	}
	return &e, true
}

// Unsettled decides what follows when a claimed r may not begin, since its effect is done or open: nothing was sent.
func (r *Run) Unsettled(p Policy, now time.Time) Transition {
	t := r.move(OnReport, now)
	e := r.effect()
	if once := e.happenedOnce(); once != nil {
		t.Effect = once
		e = once
	}
	if e.State == EffectDone {
		return r.done(t, Outcome{Data: e.Data}, "", now)
	}
	e.unreported(now)
	e = r.gate(e)
	t.Effect = e
	switch {
	case p.asks(r):
		return r.ask(t, now)
	case e.Forgotten():
		return r.dead(t, LetterUnknown, e.Error, now)
	}
	return r.dead(t, LetterUnknown, "the far side may have forgotten the wire key "+r.WireKey()+": it is not repeated", now)
}

// unreported makes an effect unknown that was marked by a claim whose end missed the mark: it was reported by nobody, and
// its last try ended now at the latest.
func (e *StepRecord) unreported(now time.Time) {
	if e.State == EffectBegun {
		e.State, e.EndedAt = EffectUnknown, now
	}
}

// notDoneOnce follows a begun effect that did not report done: DESIGN's once-only protocol.
func (r *Run) notDoneOnce(t Transition, o Outcome, p Policy, now time.Time) Transition {
	e := *r.Effect
	e.EndedAt = now
	t.Effect = &e
	notDone := o.Result == ResultNotDone || o.Result == ResultPermanent || o.Result == ResultInterrupted
	if notDone && !e.Open {
		e.State = EffectNotDone
		if o.Result == ResultPermanent {
			e.State = EffectRefused
		}
		switch {
		case r.CancelledBy != "":
			t.To = Cancelled
			return t
		case o.Result == ResultPermanent:
			return r.dead(t, LetterFailed, o.Error, now)
		case o.Interrupted:
			t.To, t.Reason, t.Due = Retryable, ReasonInterrupted, now
			return t
		}
		return r.ladder(t, p, o, now)
	}
	e.State = EffectUnknown
	if o.Result == ResultBusy && r.CancelledBy == "" && p.remembersAt(&e, now.Add(busyDelay(o))) && now.Sub(e.FirstAt) < MaxRetryAfter {
		t.To, t.Reason, t.Due = Retryable, ReasonRetry, now.Add(busyDelay(o))
		return t
	}
	if p.asks(r) {
		return r.ask(t, now)
	}
	return r.repeatOrPerson(t, p, o, now)
}

// Settle decides what follows the answers to a question about the open effect of r, asked at askedAt: one finding for
// every wire key used, newest first.
func (r *Run) Settle(found []Finding, p Policy, askedAt, now time.Time) Transition {
	t := r.move(OnProbe, now)
	t.Asked = addAsked(nil, r.rows(found, askedAt, now))
	e := *r.Effect
	t.Effect = &e
	yes, cannotTell := readFindings(found)
	switch {
	case len(yes) > 0:
		t.Alerts = e.found(yes, r, now)
		return r.done(t, Outcome{Data: yes[0].Data}, "probe", now)
	case cannotTell != "":
		return r.repeatOrPerson(t, p, Outcome{Error: cannotTell}, now)
	case askedAt.Before(e.EndedAt.Add(p.Settles)):
		t.To, t.Reason, t.Due = Retryable, ReasonSettling, e.EndedAt.Add(p.Settles)
		return t
	}
	doubted := e.Forgotten()
	e.renew(EffectNotDone, "probe")
	if t.Close = r.closing(LetterSettled, "probe", "", now); t.Close != nil { // then the try was counted already
		t.Failures = max(t.Failures-1, 0)
	}
	if r.CancelledBy != "" {
		t.To = Cancelled
		if r.SubjectOf() != "" && r.Attempts == 0 { // it was asked to end with the run that listed it, and comes back with that
			t.Reason = ReasonWithWindow
		}
		return t
	}
	if doubted { // nothing was tried here
		t.To, t.Reason, t.Due, t.Losses = Retryable, ReasonRetry, now, 0
		return t
	}
	return r.ladder(t, p, Outcome{Error: "the far side says that it did not happen"}, now)
}

// rows are what was found about an effect of r, a row for each wire key.
func (r *Run) rows(found []Finding, askedAt, now time.Time) []Attempt {
	rows := make([]Attempt, len(found))
	for i, f := range found {
		rows[i] = Attempt{Key: r.Key, Fence: r.Fence, Number: r.Attempts, Node: r.Node, WireKey: f.WireKey, Probe: true,
			ClaimedAt: askedAt, EndedAt: now, Result: Result(f.Answer), Error: f.Error, Data: f.Data}
		if !f.AskedAt.IsZero() {
			rows[i].ClaimedAt, rows[i].EndedAt = f.AskedAt, f.AnsweredAt
		}
	}
	return rows
}

// addAsked adds rows to others of the same run: they are told apart by when they were asked for, in µs.
func addAsked(list, rows []Attempt) []Attempt {
	for _, a := range rows {
		if n := len(list); n > 0 && !a.ClaimedAt.After(list[n-1].ClaimedAt) {
			a.ClaimedAt = list[n-1].ClaimedAt.Add(time.Microsecond)
		}
		list = append(list, a)
	}
	return list
}

// renew gives an effect its next wire key, after a definite no.
func (e *StepRecord) renew(to EffectState, by string) {
	e.State, e.SettledBy, e.Open = to, by, false
	e.Generation++
	e.FirstAt = time.Time{}
}

// Late decides what a report does that comes after its attempt was declared over, while the run was not claimed again:
// the caller has compared fence and claim. A report that settles nothing is false: it is kept as evidence only.
func (r *Run) Late(o Outcome, p Policy, now time.Time) (Transition, bool) {
	if !r.takesLate() && !(r.OneEffect() && r.takesResult(o.Result)) || len(r.OpenSteps()) > 0 { // the end of an attempt settles no step
		return Transition{}, false
	}
	t := r.move(OnLateReport, now)
	t.Attempt = &Attempt{Key: r.Key, Fence: r.Fence, LateResult: o.Result, LateError: o.Error, LateAt: now, LateTaken: true}
	if o.Result == ResultDone {
		if r.Steps && r.bySteps(o).Result != ResultDone {
			return Transition{}, false
		}
		if e := r.Effect; e != nil && e.Generation > 1 && e.FirstAt.IsZero() { // a no was believed meanwhile: this try had the wire key before
			was := *e
			was.Generation--
			t.Effect = &was
		}
		return r.lateDone(t, o, now), true
	}
	if r.Effect == nil || r.Effect.State != EffectUnknown || r.Effect.Fence != r.Fence {
		return Transition{}, false
	}
	e := *r.Effect
	e.SettledBy = "late report"
	t.Effect, t.Error = &e, o.Error
	if e.Open || o.Result != ResultNotDone && o.Result != ResultPermanent {
		return Transition{}, false
	}
	t.Close = r.closing(LetterSettled, "late report", "", now)
	e.State = EffectNotDone
	if o.Result == ResultPermanent {
		e.State = EffectRefused
	}
	switch {
	case r.CancelledBy != "":
		t.To = Cancelled
		return t, true
	case o.Result == ResultPermanent:
		return r.dead(t, LetterFailed, o.Error, now), true
	}
	if r.Reason != ReasonSettling { // then the try was counted when it went to the ladder or to a person
		t.Failures = max(t.Failures-1, 0)
	}
	return r.ladder(t, p, o, now), true
}

// LateBefore decides what the report of an earlier attempt does, which says that the whole attempt is done under a wire key, when nothing has
// begun since: what was believed meanwhile was wrong. False: it is refused.
func (r *Run) LateBefore(fence int64, wireKey string, o Outcome, now time.Time) (Transition, bool) {
	next, ok := r.HappenedBefore(StepEnd{Step: StepRun, WireKey: wireKey, Outcome: o}, now)
	if !ok || r.Steps || !r.takesResult(o.Result) {
		return Transition{}, false
	}
	t := r.move(OnLateReport, now)
	t.Effect = next
	t.Attempt = &Attempt{Key: r.Key, Fence: fence, LateResult: o.Result, LateError: o.Error, LateAt: now, LateTaken: true}
	return r.lateDone(t, o, now), true
}

// lateDone follows a late report that the whole attempt is done.
func (r *Run) lateDone(t Transition, o Outcome, now time.Time) Transition {
	t = r.done(t, o, "late report", now)
	if r.givenUp() {
		return r.happenedAfterAll(t, "", now)
	}
	return t
}

// repeatOrPerson follows an open effect that no probe could settle: repeated under the same wire key while the far side
// remembers it, else a person decides.
func (r *Run) repeatOrPerson(t Transition, p Policy, o Outcome, now time.Time) Transition {
	if r.Letter != nil && r.Letter.State == LetterOpen { // asked again by a person, who stays in charge; counted before
		return r.dead(t, LetterUnknown, o.Error, now)
	}
	t.Failures, t.Losses = min(t.Failures, len(p.Retry.Backoff))+1, 0
	d, ok := p.Retry.Delay(r.Key, t.Failures, o.RetryAfter)
	if !ok || r.CancelledBy != "" || !p.remembersAt(t.Effect, now.Add(d)) {
		return r.dead(t, LetterUnknown, o.Error, now)
	}
	t.To, t.Reason, t.Due, t.Error = Retryable, ReasonRetry, now.Add(d), o.Error
	return t
}
