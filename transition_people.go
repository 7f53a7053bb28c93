package daybook

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// What a person decides about a run.

// Resolution is what a person says about an effect whose outcome is unknown.
type Resolution string

// Resolutions.
const (
	AsDone    Resolution = "done"
	AsNotDone Resolution = "not-done"
	AsAsk     Resolution = "ask" // ask the probe again
)

// Resolve carries out what a person says about an unknown effect. Errors have CodeConflict.
func (r *Run) Resolve(as Resolution, p Policy, who, note string, now time.Time) (Transition, error) {
	if r.State != Dead || r.Letter == nil || r.Letter.State != LetterOpen || r.Letter.Kind != LetterUnknown || r.Effect == nil {
		return Transition{}, Conflict("%s has no unknown outcome that waits for a person", r.Key)
	}
	t := r.move(OnResolve, now)
	t.Activity = r.act(who, "resolve "+string(as), note, now)
	e := *r.Effect
	e.unreported(now)
	if e = *r.gate(&e); as != AsAsk {
		e.decided(r)
	}
	t.Effect = &e
	switch as {
	case AsDone:
		t.Close = r.closing(LetterSettled, who, note, now)
		return r.done(t, Outcome{}, who, now), nil
	case AsNotDone:
		e.renew(EffectNotDone, who)
		t.Close = r.closing(LetterSettled, who, note, now)
		t.To, t.Reason, t.Due, t.Failures, t.Losses = Retryable, ReasonReplayed, now, 0, 0
		return t, nil
	case AsAsk:
		if !p.asks(r) {
			return Transition{}, Conflict("%s has no probe that could be asked", r.Key).
				WithHint("look at the far side for %s, then: daybook run resolve %s --step %s --as \"done|not-done\" --reason …", e.WireKey(), r.Key, e.Step)
		}
		return r.ask(t, now), nil
	}
	return Transition{}, Invalid("%q is not one of done, not-done, ask", as)
}

// WithResult returns t, by which a person settles a step as done, with the result that the far side handed back: later attempts and an
// undo are given it, as if the step itself had told. Of a whole attempt it is the result of the run, too. nil: he brings none.
func (t Transition) WithResult(step string, result json.RawMessage) Transition {
	if result == nil {
		return t
	}
	if e := t.Effect; e != nil && e.Step == step && e.State == EffectDone {
		c := *e
		c.Data = result
		t.Effect, t.Data = &c, result
		return t
	}
	t.Steps = slices.Clone(t.Steps)
	for i, e := range t.Steps {
		if e.Step == step && e.State == EffectDone {
			c := *e
			c.Data = result
			t.Steps[i] = &c
		}
	}
	return t
}

// CheckResult returns an error with CodeInvalid unless a person may give text as the result of a step: one JSON value, null excepted, that
// can be kept.
func CheckResult(text []byte) error {
	switch err := CheckJSON(text); {
	case len(text) > MaxResultBytes:
		return Invalid("a result of %d bytes: at most %d are kept", len(text), MaxResultBytes).WithHint("give its id, and keep the rest elsewhere")
	case err != nil:
		return Invalid("the result is not JSON: %s", err).WithHint(`such as {"id": "ch_9a1"}; text stands in quotes: "ch_9a1"`)
	case string(bytes.TrimSpace(text)) == "null":
		return Invalid("null is no result").WithHint("leave the result out if the far side handed none back")
	case (&StepRecord{Data: text}).Lacks() != "":
		return Invalid("the name daybook_not_kept says that there is no result").WithHint("leave the result out if there is none")
	}
	return nil
}

// Replay carries out the replay of an open letter of kind failed: same key, failures reset. After a refusal for good the
// far side gets the next wire key.
func (r *Run) Replay(who, note string, now time.Time) (Transition, error) {
	if r.State == Dead && r.Letter != nil && r.Letter.State == LetterOpen && r.Letter.Kind == LetterUnknown {
		return Transition{}, Conflict("whether %s happened is unknown: settle that first", r.Key)
	}
	if r.Reason == ReasonUndoing {
		return Transition{}, r.beingUndone()
	}
	if r.State != Dead || r.Letter == nil || r.Letter.State != LetterOpen || r.Letter.Kind != LetterFailed && r.Letter.Kind != LetterUndo {
		return Transition{}, Conflict("%s has no open letter that could be replayed", r.Key)
	}
	if err := r.Emptied(); err != nil {
		return Transition{}, err
	}
	t := r.move(OnReplay, now)
	t.Activity = r.act(who, "replay", note, now)
	t.Close = r.closing(LetterReplayed, who, note, now)
	t.To, t.Reason, t.Due, t.Failures, t.Losses = Retryable, ReasonReplayed, now, 0, 0
	t.Effect, t.Steps = r.afterRefusal(), r.stepsAfterRefusal()
	switch r.Reason { // the breaker is closed
	case ReasonBreaker:
		t.To, t.Reason = Running, ReasonFannedOut
	case ReasonNextZone:
		t.Reason = ReasonNextZone
	}
	return t, nil
}

// afterRefusal gives an effect that was refused for good its next wire key: under the old one the far side would answer
// with the saved refusal.
func (r *Run) afterRefusal() *StepRecord {
	if r.Effect == nil || r.Effect.State != EffectRefused {
		return nil
	}
	e := *r.Effect
	e.renew(EffectNotDone, e.SettledBy)
	return &e
}

// Dismiss closes an open letter with a reason. An unknown outcome cannot be dismissed.
func (r *Run) Dismiss(who, note string, now time.Time) (Transition, error) {
	switch {
	case r.State != Dead || r.Letter == nil || r.Letter.State != LetterOpen:
		return Transition{}, Conflict("%s has no open letter", r.Key)
	case r.Reason == ReasonUndoing:
		return Transition{}, r.beingUndone()
	case r.Letter.Kind == LetterUnknown:
		return Transition{}, Conflict("%s cannot be dismissed: whether it happened is unknown", r.Key).
			WithHint("look at the far side for %s, then: daybook run resolve %s --step %s --as \"done|not-done\" --reason …", r.OpenWireKey(), r.Key, r.OpenStep())
	}
	t := r.move(OnDismiss, now)
	t.Activity = r.act(who, "dismiss", note, now)
	t.To, t.Reason, t.Seals = Dead, ReasonDismissed, true // an undo that was decided before is refused
	t.Close = r.closing(LetterDismissed, who, note, now)
	return t, nil
}

// Cancel ends a run that waits. A running one is asked to end by its executor: see Claimer. One whose effect is open is
// never cancelled; one of which an effect has happened is a dead letter then.
func (r *Run) Cancel(who, note string, now time.Time) (Transition, error) {
	switch {
	case r.Key.IsUndo() && r.State.Live(): // nor is its attempt asked to end
		return Transition{}, Conflict("%s is an undo: once begun, only that goes on", r.Key)
	case r.State != Scheduled && r.State != Retryable:
		return Transition{}, Conflict("%s is %s: only a run that waits can be cancelled", r.Key, r.State)
	case r.unsettled() || r.Effect != nil && r.Effect.Open:
		return Transition{}, Conflict("%s cannot be cancelled: whether it happened is unknown, and being settled", r.Key).
			WithHint("daybook run show %s tells when it is asked for next", r.Key)
	}
	t := r.move(OnCancel, now)
	t.Activity = r.act(who, "cancel", note, now)
	return r.cancelled(t, who, now), nil
}

// Reopen takes a cancelled run back to scheduled, and opens a dismissed letter again.
func (r *Run) Reopen(who, note string, now time.Time) (Transition, error) {
	emptied := r.Emptied()
	switch {
	case r.State == Cancelled && emptied != nil:
		return Transition{}, emptied
	case r.State == Cancelled:
		t := r.move(OnReopen, now)
		t.Activity = r.act(who, "reopen", note, now)
		t.To, t.Reason, t.Due, t.Failures, t.Losses = Scheduled, ReasonReopened, now, 0, 0
		t.Effect, t.Steps = r.afterRefusal(), r.stepsAfterRefusal()
		return t, nil
	case r.State == Dead && r.Letter != nil && r.Letter.State == LetterDismissed:
		t := r.move(OnReopen, now)
		t.Activity = r.act(who, "reopen", note, now)
		return r.dead(t, r.Letter.Kind, r.Letter.Error, now), nil
	}
	return Transition{}, Conflict("%s is %s: only a cancelled run or a dismissed letter can be opened again", r.Key, r.State)
}

// FurtherAttempt lets a done run of repeatable work run once more under its key.
func (r *Run) FurtherAttempt(now time.Time) Transition {
	t := r.move(OnAgain, now)
	t.To, t.Reason, t.Due, t.Again, t.Failures, t.Losses = Scheduled, ReasonAgain, now, true, 0, 0
	return t
}

// RunSkipped lets a skipped window run after all.
func (r *Run) RunSkipped(now time.Time) Transition {
	t := r.move(OnRunSkipped, now)
	t.To, t.Reason, t.Due = Scheduled, ReasonRunSkipped, now
	return t
}

func (r *Run) act(who, action, note string, now time.Time) *Activity {
	return &Activity{At: now, Actor: who, Action: action, Key: r.Key, Job: r.Job, Note: note, Before: string(r.State)}
}
