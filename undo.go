package daybook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// undoMark ends the key of an undo: renew:2026-10-26/sub_13~undo takes back what renew:2026-10-26/sub_13 did.
const undoMark = "~undo"

// Undo returns the key under which what k did is taken back. There is one, for ever: it is taken back once.
func (k Key) Undo() Key { return k + undoMark }

// IsUndo reports whether k is the key of an undo.
func (k Key) IsUndo() bool { return strings.HasSuffix(string(k), undoMark) }

// Base returns the key that an undo takes back, and k itself when it is no undo.
func (k Key) Base() Key { return Key(strings.TrimSuffix(string(k), undoMark)) }

// Undoer takes back an effect: runners that can are one.
type Undoer interface {
	// Undo takes back a done effect, whose result is e.Data, under the wire key of the order, and says how that ended, as an
	// attempt does. CanUndo tells before whether it knows how.
	Undo(ctx context.Context, o Order, e *StepRecord) Outcome
	CanUndo(o Order, e *StepRecord) bool
}

// Undoable returns the done effects of r, newest first.
func (r *Run) Undoable() []*StepRecord {
	var list []*StepRecord
	if r.Effect != nil && r.Effect.State == EffectDone {
		list = append(list, r.Effect)
	}
	for _, e := range slices.Backward(r.Records) {
		if !e.Plain && e.State == EffectDone {
			list = append(list, e)
		}
	}
	return list
}

// Undo begins to take back what r did: once and for good, since nothing of r runs again from then on. With the
// move a run is made, of a key of its own, that does it: its steps are the undos of the effects, newest first, each settled
// as an effect is. Errors have CodeConflict.
func (r *Run) Undo(who, note string, now time.Time) (Transition, error) {
	open := r.Letter != nil && r.Letter.State == LetterOpen
	switch {
	case r.Key.IsUndo():
		return Transition{}, Conflict("%s is an undo itself", r.Key)
	case r.Fans:
		return Transition{}, Conflict("%s is done for each of its subjects by itself, and is undone so", r.Key).
			WithHint("daybook run undo %s/SUBJECT --reason …", r.Key)
	case r.Reason == ReasonUndoing:
		return Transition{}, Conflict("%s is being undone already", r.Key).WithHint("daybook run show %s", r.Key.Undo())
	case r.Reason == ReasonUndone, r.Reason == ReasonCompensated:
		return Transition{}, Conflict("%s was undone. That is final", r.Key)
	case r.unsettled():
		return Transition{}, Conflict("%s cannot be undone: whether it happened is unknown", r.Key).
			WithHint("daybook run show %s tells what is open; settle it first", r.Key)
	case r.State != Done && (r.State != Dead || !open):
		return Transition{}, Conflict("%s is %s: only a run that is done, or has an open letter, can be undone", r.Key, r.State)
	case len(r.Undoable()) == 0:
		return Transition{}, Conflict("%s has no effect that is done: there is nothing to undo", r.Key)
	}
	if err := r.payloadEmptied(); err != nil {
		return Transition{}, err
	}
	t := r.move(OnUndo, now)
	t.Activity = r.act(who, "undo", note, now)
	t.To, t.Reason, t.Keep, t.Seals = r.State, ReasonUndoing, true, true
	t.Make = &Run{
		Key: r.Key.Undo(), Job: r.Job, Window: r.Window, Subject: r.Subject, Parent: r.Key, Priority: r.Priority, Lane: LaneLive,
		Effects: Once, Work: Undoing, Steps: true, Revision: r.Revision, Zone: r.Zone, TZData: r.TZData, Home: r.Home, Serial: r.Serial,
		State: Scheduled, Due: now, NotBefore: now, Cover: r.Cover, CreatedAt: now, FirstSource: SourceManual, FirstActor: who,
	}
	return t, nil
}

// Undone ends the undo of r, once the run that did it is done: an open letter is compensated, a run that was done says that
// it was undone.
func (r *Run) Undone(by string, now time.Time) Transition {
	t := r.move(OnUndone, now)
	t.To, t.Reason, t.Keep = r.State, ReasonUndone, true
	if r.State == Dead {
		t.Reason, t.Close = ReasonCompensated, r.closing(LetterCompensated, by, "", now)
	}
	return t
}

func (r *Run) beingUndone() *Error {
	return Conflict("%s is being undone: only that goes on", r.Key).WithHint("daybook run show %s", r.Key.Undo())
}

// errUndone ends a function that was called for the sake of one undo.
var errUndone = errors.New("the undo is over")

// undoBook lets a function come to one of its done effects, and takes that one back. Nothing new is begun: the function gets
// the results that are kept, and ends at the first step that is not done.
type undoBook struct {
	StepBook
	run     *Run
	step    string
	wireKey string
	out     Outcome
}

// Come implements StepBook.
func (b *undoBook) Come(_ context.Context, ask StepAsk) (StepAnswer, error) {
	if e := b.run.StepRecord(ask.Step); e != nil && e.State == EffectDone {
		return StepAnswer{Do: StepSkip, Record: e}, nil
	}
	return StepAnswer{Do: StepStop, Err: errUndone}, nil
}

// undo takes the effect back, if it is the one.
func (b *undoBook) undo(ctx context.Context, step string, how func(ctx context.Context, undoKey string) error) (mine bool) {
	if step != b.step || b.out.Result != "" {
		return false
	}
	if how == nil {
		b.out = Outcome{Result: ResultPermanent, Error: "effect " + step + " has no undo"}
		return true
	}
	_, b.out = try(ctx, b.wireKey, func(ctx context.Context, undoKey string) (any, error) { return nil, how(ctx, undoKey) })
	return true
}

// UndoBy calls work so that it takes back one of its done effects, under a wire key, and says how that ended. Work that does
// not come to the effect has not touched anything.
func UndoBy(ctx context.Context, r *Run, e *StepRecord, wireKey string, work func(ctx context.Context, r *Run) error) Outcome {
	c := *r
	b := &undoBook{run: r, step: e.Step, wireKey: wireKey}
	c.Keep(b)
	c.Listen()
	err := work(ctx, &c)
	switch {
	case b.out.Result != "":
		return b.out
	case err != nil && !errors.Is(err, errUndone):
		return Outcome{Result: ResultNotDone, Error: "before effect " + e.Step + ": " + err.Error()}
	}
	return Outcome{Result: ResultPermanent, Error: "the work does not come to effect " + e.Step + " any more"}
}
