package daybook

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// StepBook keeps the steps of a run while an attempt does it. Its errors are about the keeping: the work then ends its
// attempt with them.
type StepBook interface {
	// Come says what work does that comes to a step. What must be marked before it goes on is marked.
	Come(ctx context.Context, ask StepAsk) (StepAnswer, error)
	// End tells how a step ended that Come let begin, and says what the work does next.
	End(ctx context.Context, e *StepRecord, o Outcome) (StepAnswer, error)
	// Found tells what the far side said about the wire keys of an open effect, asked at askedAt.
	Found(ctx context.Context, e *StepRecord, found []Finding, askedAt time.Time) (StepAnswer, error)
	// EndTx marks a plain step done in the caller's transaction.
	EndTx(ctx context.Context, tx *sql.Tx, e *StepRecord) error
	// Now is the time as the ledger has it.
	Now() time.Time
}

// Keep readies r for steps. Runners call it on a copy of their own.
func (r *Run) Keep(book StepBook) { r.book = book }

// EffectOf says how an effect is done, asked for and taken back. T is what it gives, kept as JSON of at most
// MaxResultBytes and handed back whenever the work comes to the effect again.
type EffectOf[T any] struct {
	// Do touches the outside world, once. It sends the wire key as the far side's idempotency key, and says by its error how
	// it ended, as the work does: nil is done, NotDone, Permanent and Unknown are what they say, anything else is unclear.
	Do func(ctx context.Context, wireKey string) (T, error)
	// Probe asks the far side whether the effect with a wire key happened, and what it has of it. An error is cannot tell.
	// Nil: the far side cannot be asked by the work.
	Probe func(ctx context.Context, wireKey string) (T, Answer, error)
	// Undo takes a done effect back, once, under a wire key of its own. Nil: it cannot be taken back.
	Undo func(ctx context.Context, undoKey string, done T) error
	// Remembers is how long the far side answers a repeated wire key, from the first try; 0: what the job says.
	Remembers time.Duration
	// Settles is how long after the last try a probe's no begins to count; 0: what the job says.
	Settles time.Duration
	// Optional says that the work does without the effect when it does not happen: by a refusal, say, after which it takes
	// another way. Else a run whose attempt was told so is not done, whatever its function returns. While it is not known whether
	// it happened no other effect begins, and once a later one happened, or may have, it does not begin again.
	Optional bool
}

// Effect does a named part of the work that touches the outside world, at most once for the run's key. It is for the
// function that was given r, in a job that declares Steps.
//
// It is marked durably before Do is called, and its result after. In a later attempt a done effect is not done again: its
// result is returned. One whose outcome is open is asked for by Probe, repeated under the same wire key while the far side
// Remembers it, or left to a person. Until then, and when it did not happen, the error says so: the work returns it.
//
// Between attempts of one run effects keep their names and their order. Each has a name of its own: to come again, in one attempt,
// to one that is done is an error.
func Effect[T any](ctx context.Context, r *Run, name string, e EffectOf[T]) (T, error) {
	ask := StepAsk{Step: name, Says: StepPolicy{Asks: e.Probe != nil, Undoes: e.Undo != nil, Remembers: e.Remembers, Settles: e.Settles, Optional: e.Optional}}
	if b, ok := r.book.(*undoBook); ok {
		return undoEffect(ctx, b, ask, e)
	}
	return step(ctx, r, ask, e.Do, e.Probe)
}

// undoEffect comes to an effect while one is taken back: this one, or another.
func undoEffect[T any](ctx context.Context, b *undoBook, ask StepAsk, e EffectOf[T]) (T, error) {
	a, _ := b.Come(ctx, ask)
	if a.Do != StepSkip {
		return *new(T), a.Err
	}
	v, err := resultOf[T](a.Record)
	if err != nil {
		return v, err
	}
	var how func(context.Context, string) error
	if e.Undo != nil {
		how = func(ctx context.Context, undoKey string) error { return e.Undo(ctx, undoKey, v) }
	}
	if b.undo(ctx, ask.Step, how) {
		return v, errUndone
	}
	return v, nil
}

// Step does a named part of the work that touches nothing outside, or does no harm when it is repeated. Once it is done, its
// result is kept and returned in later attempts; until then it is simply done again.
func Step[T any](ctx context.Context, r *Run, name string, do func(ctx context.Context) (T, error)) (T, error) {
	return step(ctx, r, StepAsk{Step: name, Plain: true}, func(ctx context.Context, _ string) (T, error) { return do(ctx) }, nil)
}

// StepTx marks a step as done in tx, a transaction on the ledger's own database in which the caller writes what the step
// does: both are committed, or neither is. It returns true when an earlier attempt committed the step: then nothing is to be
// written, and tx may be given up. tx must have ended before the next step: a ledger on SQLite has one writer. An error means that this attempt does not hold the run any more: tx must not be committed.
func StepTx(ctx context.Context, tx *sql.Tx, r *Run, name string) (done bool, err error) {
	if r.book == nil {
		return false, errNoBook(r)
	}
	a, err := r.book.Come(ctx, StepAsk{Step: name, Plain: true})
	if err != nil {
		return false, err
	}
	switch a.Do {
	case StepSkip:
		return true, nil
	case StepBegin:
		return false, r.book.EndTx(ctx, tx, a.Record)
	}
	return false, a.Err
}

func errNoBook(r *Run) error {
	return Permanent(Conflict("steps of %s cannot be kept here", r.Key).
		WithHint("call it with the run that the function was given, in a job that declares Steps"))
}

func step[T any](ctx context.Context, r *Run, ask StepAsk, do func(context.Context, string) (T, error), probe func(context.Context, string) (T, Answer, error)) (T, error) {
	var none T
	if r.book == nil {
		return none, errNoBook(r)
	}
	a, err := r.book.Come(ctx, ask)
	for err == nil {
		switch a.Do {
		case StepSkip:
			return resultOf[T](a.Record)
		case StepStop:
			return none, a.Err
		case StepAsks:
			asked := r.book.Now()
			a, err = r.book.Found(ctx, a.Record, findings(ctx, a.Record, probe), asked)
		case StepBegin:
			if ctx.Err() != nil { // between the mark and the start: nothing was done
				a, err = r.book.End(ctx, a.Record, Outcome{Result: ResultNotDone, Error: context.Cause(ctx).Error()})
				continue
			}
			v, o := try(ctx, a.Record.WireKey(), do)
			done := o.Result == ResultDone
			a, err = r.book.End(ctx, a.Record, o)
			if done && err == nil && a.Do == StepSkip {
				return v, nil
			}
		}
	}
	return none, err
}

// try calls the work of a step and reads how it ended. A panic is unclear.
func try[T any](ctx context.Context, wireKey string, do func(context.Context, string) (T, error)) (v T, o Outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = Outcome{Result: ResultUnclear, Error: Clip(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()), MaxErrorBytes)}
		}
	}()
	v, err := do(ctx, wireKey)
	o = OutcomeOf(err)
	if o.Result == ResultUnclear && ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		o.Result = ResultUnknown // the call to the outside world was cut off by us
	}
	if o.Result == ResultDone {
		o.Data = encodeResult(v)
	}
	return v, o
}

func encodeResult(v any) json.RawMessage {
	b, err := json.Marshal(v)
	switch {
	case err != nil:
		return NotKept(fmt.Sprintf("a result of type %T is not JSON", v))
	case len(b) > MaxResultBytes:
		return NotKept(fmt.Sprintf("a result of %d bytes: at most %d are kept", len(b), MaxResultBytes))
	}
	return b
}

// resultOf hands back what a done step gave.
func resultOf[T any](e *StepRecord) (T, error) {
	var v T
	if len(e.Data) == 0 {
		return v, nil
	}
	if why := e.Lacks(); why != "" {
		return v, Permanent(Conflict("%s is done, and its result was not kept: %s", e.Named(), why).WithHint("let it return an id, and keep the rest elsewhere"))
	}
	if err := json.Unmarshal(e.Data, &v); err != nil {
		return v, Permanent(&Error{Code: CodePermanent, Message: "the kept result of step " + e.Step + " is not of the type it is read as", Err: err})
	}
	return v, nil
}

// findings asks the far side about every wire key that the effect was tried under, newest first.
func findings[T any](ctx context.Context, e *StepRecord, probe func(context.Context, string) (T, Answer, error)) []Finding {
	var found []Finding
	for _, k := range e.WireKeys() {
		found = append(found, finding(ctx, k, probe))
	}
	return found
}

func finding[T any](ctx context.Context, wireKey string, probe func(context.Context, string) (T, Answer, error)) (f Finding) {
	f = Finding{Answer: CannotTell, WireKey: wireKey}
	defer func() {
		if p := recover(); p != nil {
			f = Finding{Answer: CannotTell, WireKey: wireKey, Error: fmt.Sprintf("the probe panicked: %v", p)}
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, ProbeTimeout, ErrTimeout)
	defer cancel()
	v, answer, err := probe(ctx, wireKey)
	switch {
	case err != nil:
		f.Error = Clip(err.Error(), MaxErrorBytes)
	case answer == Yes:
		f.Answer, f.Data = Yes, encodeResult(v)
	case answer == No:
		f.Answer = No
	default:
		f.Error = "the probe cannot tell"
	}
	return f
}
