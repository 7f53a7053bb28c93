package control

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/daybook-run/daybook"
)

// Word is what a person says of an effect whose outcome is unknown.
type Word struct {
	// Step is the name of the effect; for a run that is one effect as a whole it is run.
	Step string
	As   daybook.Resolution
	// Attempt is the one that the person looked into, as run show counts them. Zero: not said, which is enough where there was
	// only one, or where nothing is begun again.
	Attempt int
	// Result is what the far side handed back of an effect that was done, as JSON: nil where it is not known. It is what later
	// attempts, and an undo, are given.
	Result json.RawMessage
}

// About is a CodeConflict unless the word is about r as it stands: whoever looked before r was tried again knows nothing of what was
// sent since, and his "not done" would send it once more.
func (w Word) About(r *daybook.Run) error {
	switch {
	case w.Attempt == r.Attempts || w.As == daybook.AsAsk:
		return nil
	case w.Attempt != 0:
		return daybook.Conflict("%s was tried again: attempt %d is the last, and attempt %d is spoken of", r.Key, r.Attempts, w.Attempt).
			WithHint("nothing was done; look at the far side for %s, then say --attempt %d", r.OpenWireKey(), r.Attempts)
	case w.As == daybook.AsNotDone && r.Attempts > 1:
		return daybook.Conflict("%s was tried %d times: which attempt did nothing?", r.Key, r.Attempts).
			WithHint("look at the far side for %s, then add --attempt %d", r.OpenWireKey(), r.Attempts)
	}
	return nil
}

// Check returns an error with CodeInvalid unless the result of w, if it has one, can be kept, and goes with what w says.
func (w Word) Check() error {
	switch {
	case w.Result == nil:
		return nil
	case w.As != daybook.AsDone:
		return daybook.Invalid("a result is of what was done: it does not go with %s", w.As).WithHint("say done, or leave the result out")
	}
	return daybook.CheckResult(w.Result)
}

// Said is what a person said of an effect whose outcome was unknown, and what followed from that alone: the run may have moved on
// since.
type Said struct {
	Step  string
	As    daybook.Resolution
	Whole bool           // the effect is the whole attempt
	Kept  bool           // he gave its result
	Asks  daybook.Reason // with AsAsk: who asks the far side; ReasonSettling is Daybook, ReasonUnsettled the work
	Due   time.Time      // when the run goes on
	Left  []string       // effects of the run that are unknown still
}

// saidOf is what follows from the word of a person about r, by the move that was decided.
func saidOf(r *daybook.Run, w Word, t daybook.Transition) Said {
	s := Said{Step: w.Step, As: w.As, Whole: !r.Steps, Kept: w.Result != nil, Asks: t.Reason, Due: t.Due}
	for _, e := range t.Steps {
		r = r.With(e)
	}
	for _, e := range r.OpenSteps() {
		s.Left = append(s.Left, e.Step)
	}
	return s
}

// Resolve takes the word of a person about an effect whose outcome is unknown: it was done, it was not, or the probe is to be
// asked again. A reason is required unless it is asked.
//
// Errors: CodeInvalid, no reason, another step, another word, or what is no result; CodeNotFound; CodeConflict, no unknown outcome waits for
// a person, the word is not about the last attempt, or there is no probe to ask.
func (c *Control) Resolve(ctx context.Context, p Person, key daybook.Key, w Word, note string) (Acted, error) {
	switch w.As {
	case daybook.AsDone, daybook.AsNotDone, daybook.AsAsk:
	default:
		return Acted{}, badResolution(w.As)
	}
	if err := w.Check(); err != nil {
		return Acted{}, err
	}
	result, err := c.resultOf(key.Job(), w)
	if err != nil {
		return Acted{}, err
	}
	policy := daybook.Policy{}
	if w.As == daybook.AsAsk {
		if policy, err = c.policyOf(ctx, key.Job()); err != nil && daybook.CodeOf(err) != daybook.CodeNotFound {
			return Acted{}, err
		}
	}
	var s Said
	a, err := c.act(ctx, p, key, "resolve", note, w.As != daybook.AsAsk, func(r *daybook.Run, who, note string, now time.Time) (daybook.Transition, error) {
		if err := CheckOpenStep(r, w.Step); err != nil {
			return daybook.Transition{}, err
		}
		t, err := r.ResolveStep(w.Step, w.As, policy, who, note, now)
		if err == nil {
			err = w.About(r)
		}
		if err == nil {
			s = saidOf(r, w, t)
		}
		return t.WithResult(w.Step, result), err
	})
	a.Said = s
	return a, err
}

// resultOf is the result of a word as it is kept: without the secrets of the job.
func (c *Control) resultOf(job string, w Word) (json.RawMessage, error) {
	if w.Result == nil {
		return nil, nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, w.Result); err != nil {
		return nil, daybook.Invalid("the result is not JSON: %s", err)
	}
	o, err := c.masked(job, daybook.Outcome{Data: compact.Bytes()})
	return o.Data, err
}
