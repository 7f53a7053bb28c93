package executor

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// book keeps the steps of one attempt in this process. Work may come to steps from several goroutines; they are kept one
// after the other.
type book struct {
	x *Executor
	f *flight
	p daybook.Policy

	mu     sync.Mutex
	run    *daybook.Run    // with its steps, as this attempt knows them
	unsure bool            // a transaction of the caller may have written, or may not
	told   map[string]bool // plain steps of earlier attempts whose results this one was handed
}

func (x *Executor) newBook(f *flight, p daybook.Policy) *book {
	run := x.snapshot(f)
	return &book{x: x, f: f, p: p, run: &run, told: make(map[string]bool)}
}

// Now implements daybook.StepBook.
func (b *book) Now() time.Time { return b.x.o.Clock() }

// Come implements daybook.StepBook.
func (b *book) Come(ctx context.Context, ask daybook.StepAsk) (daybook.StepAnswer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if err := b.sure(ctx); err != nil {
			return daybook.StepAnswer{}, err
		}
		b.hear()
		a := b.run.ComeTo(ask, b.p, b.Now())
		switch {
		case a.Denied:
			denied := *b.run
			denied.Denied = daybook.Mask(a.Err.Error(), b.f.secrets)
			b.run = &denied
			b.keep()
			return a, nil
		case a.Do == daybook.StepSkip && a.Record.Plain: // its caller may be in a transaction: it is noted here only
			b.told[ask.Step] = true
			b.run = b.run.With(a.Record)
			return a, nil
		case !a.Write:
			return a, nil
		}
		err := b.put(ctx, a.Record, daybook.Learned{})
		if err == nil || !errors.Is(err, daybook.ErrStale) {
			return a, err
		}
		if err := b.lost(ctx, err); err != nil {
			return daybook.StepAnswer{}, err
		}
	}
}

// endPatience is for how many leases the end of a step is told to a ledger that does not answer. It is all that is known of an
// effect, and settles it also when the attempt was declared over meanwhile.
const endPatience = 10

// End implements daybook.StepBook. What ended is recorded also when the attempt is told to end, or has lost its lease.
func (b *book) End(ctx context.Context, e *daybook.StepRecord, o daybook.Outcome) (daybook.StepAnswer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o = o.Mask(b.f.secrets)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience*b.x.o.Lease)
	defer cancel()
	for {
		if err := b.sure(ctx); err != nil {
			return daybook.StepAnswer{}, daybook.Unknown(err)
		}
		next := b.run.StepEnded(e, o, b.Now())
		if next.Plain && next.State != daybook.EffectDone {
			return next.Stepped(), nil // it is simply done again
		}
		err := b.put(ctx, next, daybook.Learned{})
		if errors.Is(err, daybook.ErrStale) {
			if err = b.lost(ctx, err); err == nil {
				continue
			}
			b.late(ctx, e, o)
		}
		if err != nil {
			return daybook.StepAnswer{}, daybook.Unknown(err)
		}
		if next.State == daybook.EffectUnknown && next.Says.Asks {
			return daybook.StepAnswer{Do: daybook.StepAsks, Record: next}, nil
		}
		return next.Stepped(), nil
	}
}

// Found implements daybook.StepBook.
func (b *book) Found(ctx context.Context, e *daybook.StepRecord, found []daybook.Finding, askedAt time.Time) (daybook.StepAnswer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		return daybook.StepAnswer{}, daybook.Unknown(context.Cause(ctx)) // cut off: it is asked again
	}
	for i := range found {
		found[i].Error, found[i].Data = daybook.Mask(found[i].Error, b.f.secrets), daybook.MaskJSON(found[i].Data, b.f.secrets)
	}
	for {
		next, learned := b.run.StepFound(e, found, b.p, askedAt, b.Now())
		err := b.put(ctx, next, learned)
		if err == nil {
			return next.Stepped(), nil
		}
		if errors.Is(err, daybook.ErrStale) {
			err = b.lost(ctx, err)
		}
		if err != nil {
			return daybook.StepAnswer{}, daybook.Unknown(err)
		}
		if now := b.run.StepRecord(e.Step); now != nil && now.State == daybook.EffectDone { // a late report said so meanwhile
			return now.Stepped(), nil
		}
	}
}

// EndTx implements daybook.StepBook.
func (b *book) EndTx(ctx context.Context, tx *sql.Tx, e *daybook.StepRecord) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.run.StepEnded(e, daybook.Outcome{Result: daybook.ResultDone}, b.Now())
	b.unsure = true
	return b.x.store.MarkStepTx(ctx, tx, b.run, next)
}

// sure reads the run again when it is not known whether a transaction of the caller was committed.
func (b *book) sure(ctx context.Context) error {
	if !b.unsure {
		return nil
	}
	r, err := b.x.store.Run(ctx, b.run.Key)
	if err != nil {
		return err
	}
	if err := b.take(r, daybook.ErrLeaseLost); err != nil {
		return err
	}
	b.unsure = false
	return nil
}

// lost reads the run again after a stale write: nil when it is still held here, and somebody else wrote a step of it.
func (b *book) lost(ctx context.Context, stale error) error {
	r, err := b.x.store.Run(ctx, b.run.Key)
	if err != nil {
		return err
	}
	return b.take(r, stale)
}

func (b *book) take(r *daybook.Run, otherwise error) error {
	if r.State != daybook.Running || r.Fence != b.run.Fence || r.Claim != b.run.Claim {
		return otherwise
	}
	r.Denied = b.run.Denied
	for _, e := range r.Records {
		if b.told[e.Step] {
			e.Seen = r.Fence
		}
	}
	b.run = r
	b.keep()
	return nil
}

// put writes a record, for as long as the ledger does not answer and ctx lasts.
func (b *book) put(ctx context.Context, e *daybook.StepRecord, learned daybook.Learned) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := b.x.store.MarkStep(ctx, b.run, e, learned)
		switch {
		case err == nil:
			b.run = b.run.With(e)
			b.run.Marks++
			b.keep()
			return nil
		case errors.Is(err, daybook.ErrStale):
			return err
		}
		b.x.o.Log.Warn("a step could not be recorded", "job", b.run.Job, "key", b.run.Key, "step", e.Step, "err", err)
		if !sleep(ctx, pause) {
			return err
		}
		// It may have been written, and only the answer was lost.
		r, rerr := b.x.store.Run(ctx, b.run.Key)
		before := b.run.Marks
		if rerr != nil || r.Marks == before {
			continue
		}
		if err := b.take(r, daybook.ErrLeaseLost); err != nil {
			return err
		}
		if was := r.StepRecord(e.Step); r.Marks == before+1 && was != nil && was.State == e.State && was.Fence == e.Fence && was.Tries == e.Tries && was.Asked == e.Asked {
			return nil
		}
		return daybook.ErrStale // another wrote: it is decided again
	}
}

// keep lets the end of the attempt be decided from the steps as they stand.
func (b *book) keep() {
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	b.f.run.Records, b.f.run.Marks, b.f.run.Denied = b.run.Records, b.run.Marks, b.run.Denied
}

// hear takes note of whoever asked for the end of the attempt, as the last renewal of its lease told. What a renewal has not
// told yet refuses the mark of a begin.
func (b *book) hear() {
	b.x.mu.Lock()
	who := b.f.run.CancelledBy
	b.x.mu.Unlock()
	if who != "" && b.run.CancelledBy == "" {
		heard := *b.run
		heard.CancelledBy = who
		b.run = &heard
	}
}

// late tells the end of a step whose attempt was declared over: it still settles it, while the run was not claimed again, or nothing
// of the effect has begun since.
func (b *book) late(ctx context.Context, e *daybook.StepRecord, o daybook.Outcome) {
	log := b.x.o.Log.With("job", b.run.Job, "key", b.run.Key, "step", e.Step, "result", o.Result)
	s := daybook.StepEnd{Step: e.Step, Plain: e.Plain, Try: e.Tries, WireKey: e.WireKey(), Outcome: o}
	taken, err := b.x.lateStep(ctx, b.run, s, b.p)
	switch {
	case err != nil:
		log.Error("a late report of a step could not be told", "err", err)
	case taken:
		log.Info("late report of a step taken")
	default:
		log.Warn("report of a step refused: the run moved on", "fence", b.run.Fence)
	}
}

// lateStep takes what an attempt, as it was, says late of a step, as far as it still counts. False: it does not, and is kept when it
// says that an effect happened.
func (x *Executor) lateStep(ctx context.Context, attempt *daybook.Run, s daybook.StepEnd, p daybook.Policy) (taken bool, err error) {
	for {
		r, err := x.store.Run(ctx, attempt.Key)
		if err != nil {
			return false, err
		}
		now, own := x.o.Clock(), r.ID() == attempt.ID()
		if next, ok := r.HappenedBefore(s, now); ok && !own && r.State == daybook.Running {
			if err := x.store.MarkStep(ctx, r, next, daybook.Learned{}); !errors.Is(err, daybook.ErrStale) {
				return err == nil, err
			}
			continue
		}
		m, ok := r.LateStepBefore(s, p, now)
		if own {
			m, ok = r.LateStep(s.Step, s.Outcome, p, now)
		}
		if !ok {
			return false, x.tooLateStep(ctx, r, attempt, s, now)
		}
		applied, err := x.store.Apply(ctx, []daybook.Transition{m})
		if err != nil || !applied[0].Stale {
			return err == nil, err
		}
	}
}

// tooLateStep keeps what is said of an effect that was done, and changes nothing any more; that it was done twice is told to people.
func (x *Executor) tooLateStep(ctx context.Context, r, attempt *daybook.Run, s daybook.StepEnd, now time.Time) error {
	if e := r.StepRecord(s.Step); s.Outcome.Result != daybook.ResultDone || e == nil || e.Plain || e.State == daybook.EffectDone && s.WireKey == e.WireKey() {
		return nil
	}
	kept := daybook.Attempt{Key: r.Key, Fence: attempt.Fence, Number: attempt.Attempts, Claim: attempt.Claim, Node: attempt.Node, WireKey: s.WireKey,
		LateResult: s.Outcome.Result, LateError: s.Outcome.Error, LateAt: now}
	return x.store.Evidence(ctx, kept, r.DoneTwice(s.Step, s.WireKey, now))
}

// questionSteps asks the far side about every open effect that the work does not ask for itself.
func (x *Executor) questionSteps(ctx context.Context, f *flight, work Work, asked time.Time) {
	found := make(map[string][]daybook.Finding)
	for _, e := range f.run.OpenSteps() {
		switch {
		case e.Says.Asks:
		case work.Prober == nil, f.run.Key.IsUndo() && !work.Job.ProbeUndo:
			found[e.Step] = nil
		default:
			found[e.Step] = x.ask(ctx, f.run, e, work)
		}
	}
	if ctx.Err() != nil {
		return // cut off: it is asked again once its lease is over
	}
	p := work.Job.Policy()
	x.decide(f, func(r *daybook.Run, now time.Time) daybook.Transition { return r.SettleSteps(found, p, asked, now) })
}

// rights lets work outside this process speak for its attempt. An undo is kept by this process alone.
func (x *Executor) rights(ctx context.Context, f *flight, work Work) (map[string]string, error) {
	if x.o.Rights == nil || f.run.Key.IsUndo() {
		return nil, nil
	}
	env, token, err := x.o.Rights(ctx, f.run, work.Job)
	if err != nil {
		return nil, err
	}
	f.secrets = append(f.secrets, token)
	return env, nil
}
