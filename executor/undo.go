package executor

import (
	"context"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// undo takes back what the base of an undo did: effect after effect, the newest first, each marked as an effect of its own.
func (x *Executor) undo(ctx context.Context, f *flight, work Work, o daybook.Order) daybook.Outcome {
	base, err := x.store.Run(ctx, f.run.Key.Base())
	if err != nil {
		return daybook.Outcome{Result: daybook.ResultNotDone, Error: err.Error()}
	}
	f.base = base
	if work.Undoer == nil {
		return daybook.Outcome{Result: daybook.ResultPermanent, Error: "this process does not know how to undo job " + f.run.Job}
	}
	o.Run = base
	undone := 0
	var left []string
	for _, e := range base.Undoable() {
		if !work.Undoer.CanUndo(o, e) {
			left = append(left, e.Step)
			continue
		}
		if e.Lacks() != "" {
			left = append(left, e.Step+" (its result was not kept)")
			continue
		}
		if out := x.heldUndo(ctx, f, e); out.Result != "" {
			return out
		}
		if out := x.undoEffect(ctx, work.Undoer, o, e); out.Result != daybook.ResultDone {
			return out
		}
		undone++
		if e.Twice != "" {
			left = append(left, e.Twice+" (done twice)")
		}
	}
	if len(left) > 0 { // nobody is told that all is back while it is not
		return daybook.Outcome{Result: daybook.ResultPermanent, Error: daybook.UndoByHand + strings.Join(left, ", ") +
			": take it back by hand, or leave it, and dismiss this with the reason"}
	}
	return daybook.Outcome{Result: daybook.ResultDone, Counts: map[string]int64{"undone": int64(undone)}}
}

// heldUndo says how an undo ends that a freeze began under: no undo of an effect is sent in it. It goes on after the freeze.
func (x *Executor) heldUndo(ctx context.Context, f *flight, e *daybook.StepRecord) daybook.Outcome {
	r, now := x.snapshot(f), x.o.Clock()
	if did := r.StepRecord(e.Step); did != nil && did.State == daybook.EffectDone {
		return daybook.Outcome{}
	}
	list, err := x.store.Freezes(ctx, now)
	if err != nil {
		return daybook.Outcome{Result: daybook.ResultNotDone, Error: err.Error()}
	}
	if until := daybook.FrozenUntil(append(list, x.freezes(now)...), r.Priority, now); !until.IsZero() {
		return daybook.Outcome{Result: daybook.ResultNotDone, Interrupted: true, Error: "a freeze began, in which no undo is sent: it goes on at " + until.UTC().Format(time.RFC3339)}
	}
	return daybook.Outcome{}
}

// undoEffect takes one effect back, unless that is done already.
func (x *Executor) undoEffect(ctx context.Context, undoer daybook.Undoer, o daybook.Order, e *daybook.StepRecord) daybook.Outcome {
	a, err := o.Book.Come(ctx, daybook.StepAsk{Step: e.Step, Says: daybook.StepPolicy{Remembers: e.Says.Remembers, Settles: e.Says.Settles}})
	if err == nil && a.Do == daybook.StepBegin {
		o.Step, o.WireKey = e.Step, a.Record.WireKey()
		a, err = o.Book.End(ctx, a.Record, undoer.Undo(ctx, o, e))
	}
	switch {
	case err != nil:
		return daybook.OutcomeOf(err)
	case a.Do == daybook.StepSkip:
		return daybook.Outcome{Result: daybook.ResultDone}
	}
	return daybook.OutcomeOf(a.Err)
}

// endUndo lets the end of an undo end what was undone with it.
func (f *flight) endUndo(t *daybook.Transition) {
	if f.base == nil || t.To != daybook.Done {
		return
	}
	then := f.base.Undone(f.run.FirstActor, t.At)
	t.Then = &then
}
