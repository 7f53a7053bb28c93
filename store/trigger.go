package store

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

const refuseLetter = `UPDATE daybook_letters SET refused = refused + 1 WHERE key = $1 AND state = 'open'`

// coverDepth bounds how often an answer follows covered_by: a covering run is never covered itself for long.
const coverDepth = 3

// knock is one trigger on its way to its answer.
type knock struct {
	id, hash string // of the trigger, and of its payload
	now      time.Time
	asks     daybook.Ask // as it came
	template *daybook.Run

	ask daybook.Ask // Key is that of the row that answers, perhaps under an earlier name of the job
	asked
	freezes []daybook.Freeze // that may put off what it makes, or makes go on
	reply   daybook.Reply
	run     *daybook.Run // as it stands afterwards; nil: there is none

	// What became of it, where several are answered in one transaction.
	with  int  // how many
	wait  bool // for whoever makes its job stand still
	apart bool // it is to be answered by itself
	whole bool // nothing was missing but the commit
}

// begin forgets what an earlier try found out.
func (k *knock) begin(with int, wait bool) {
	*k = knock{id: k.id, hash: k.hash, now: k.now, asks: k.asks, template: k.template, ask: k.asks, with: with, wait: wait}
}

// Trigger implements daybook.Desk.
func (s *Store) Trigger(ctx context.Context, a daybook.Ask, template *daybook.Run, now time.Time) (daybook.Reply, *daybook.Run, error) {
	hash, err := daybook.HashPayload(a.Payload)
	if err != nil {
		return daybook.Reply{}, nil, err
	}
	if a.Take != nil {
		take, claim := *a.Take, a.Take.NewID()
		take.NewID, a.Take = func() string { return claim }, &take
	}
	k := &knock{id: s.newID(), hash: hash, now: now, asks: a, template: template}
	if err := s.answer(ctx, k); err != nil {
		return daybook.Reply{}, nil, err
	}
	return k.reply, k.run, nil
}

// decide answers by what is known.
func (t *tx) decide(ctx context.Context, k *knock) (err error) {
	if k.freezes = k.ask.Freezes; k.frozen {
		if k.freezes, err = t.standingFreezes(ctx, k.ask.Freezes, k.now); err != nil {
			return err
		}
	}
	if k.Held == "" && k.template != nil && !daybook.FrozenUntil(k.freezes, k.template.Priority, k.now).IsZero() {
		k.Held = daybook.ReasonFrozen
	}
	k.reply = daybook.Decide(k.ask, k.Standing)
	if k.renamedTo != "" && k.found == nil && k.reply.Act != daybook.ActNone {
		return carriedOn(k.ask.Key.Job(), k.renamedTo)
	}
	if k.found == nil || k.OtherPayload || k.ask.By() == daybook.SourceReplay || byClock(k.ask.By()) {
		return nil
	}
	return t.decideByCover(ctx, k)
}

// decideByCover answers a run that is covered as its covering run is. What is asked for of that one is asked by its own key.
func (t *tx) decideByCover(ctx context.Context, k *knock) error {
	covered, own := k.found, k.reply
	for depth := 0; covered.State == daybook.Coalesced; depth++ {
		cover, err := t.s.findRun(ctx, t.query, covered.CoveredBy)
		if err != nil {
			return err
		}
		k.reply = own
		if cover == nil || depth == coverDepth {
			return nil
		}
		about := k.ask
		about.Payload = nil
		stands, err := t.standingOf(ctx, cover, "")
		if err != nil {
			return err
		}
		reply := daybook.Decide(about, stands)
		if reply.Act != daybook.ActNone {
			return nil
		}
		covered, k.reply = cover, reply
	}
	return nil
}

// carryOut does what the answer says, and records the trigger, counted on the row that answers.
func (t *tx) carryOut(ctx context.Context, k *knock) error {
	if k.found != nil {
		if err := t.goesOn(ctx, k); err != nil {
			return err
		}
	}
	var w knocked
	if err := t.gather(&w, k); err != nil {
		return err
	}
	if err := t.writeKnocked(ctx, &w); err != nil || k.reply.Act == daybook.ActNone || len(k.freezes) == 0 {
		return err
	}
	return t.land(ctx, []string{string(k.ask.Key)}, k.ask.Freezes, k.now)
}

// knocked are the rows that triggers bring.
type knocked struct {
	runs, live, triggers, counts [][]any
	more                         []*part
}

// gather adds the rows of one.
func (t *tx) gather(w *knocked, k *knock) error {
	if k.makes() {
		r, err := k.fresh()
		if err != nil {
			return err
		}
		k.run, w.runs = r, append(w.runs, t.runRow(r))
		if r.State.Live() {
			w.live = append(w.live, liveRow(r))
		}
	}
	w.triggers = append(w.triggers, t.triggerRow(k.record()))
	if act := k.ask.Activity(k.reply, k.now); act != nil {
		w.more = append(w.more, one(insertActivity, t.activityRow(act)...))
	}
	if k.found == nil {
		return nil
	}
	refused := k.reply.Outcome == daybook.Refused
	w.counts = append(w.counts, []any{string(k.ask.Key), bit(refused)})
	if refused && k.found.Letter != nil {
		w.more = append(w.more, one(refuseLetter, string(k.ask.Key)))
	}
	return nil
}

// writeKnocked writes them.
func (t *tx) writeKnocked(ctx context.Context, w *knocked) error {
	made := &part{statement: insertRuns, rows: w.runs}
	var parts []*part
	for _, p := range []*part{made, {statement: insertLive, rows: w.live}, {statement: insertTriggers, rows: w.triggers}, {statement: countTriggers, rows: w.counts}} {
		if len(p.rows) > 0 {
			parts = append(parts, p)
		}
	}
	err := t.together(ctx, t.withCall(ctx, append(parts, w.more...)))
	if len(w.runs) > 0 && (err == nil && int(made.wrote) < len(w.runs) || err != nil && t.s.d.unique(err)) {
		return errMet // made by another between the look and now: it is met when all is done again
	}
	return err
}

// makes reports whether the answer is a new row.
func (k *knock) makes() bool {
	switch k.reply.Act {
	case daybook.ActCreate, daybook.ActCreateHeld, daybook.ActSkipPaused, daybook.ActRunSkipped:
		return k.found == nil
	}
	return false
}

// fresh is the row of a new key.
func (k *knock) fresh() (*daybook.Run, error) {
	if k.template == nil {
		return nil, daybook.Invalid("there is no run %s, and nothing says how to make it", k.ask.Key)
	}
	r := *k.template
	r.LineUp(k.formerly)
	r.Input, r.PayloadHash = k.ask.Payload, k.hash
	r.FirstSource, r.FirstActor, r.Triggers = k.ask.Source, k.ask.Actor, 1
	switch k.reply.Act {
	case daybook.ActCreateHeld, daybook.ActRunSkipped:
		if r.Hold = k.Held; k.Paused {
			r.Hold = daybook.ReasonPaused
		}
	case daybook.ActSkipPaused:
		r.State, r.Reason = daybook.Skipped, daybook.ReasonPaused
	}
	return &r, nil
}

// goesOn makes the run that was found go on, when the answer says so.
func (t *tx) goesOn(ctx context.Context, k *knock) error {
	switch k.reply.Act {
	case daybook.ActRunSkipped:
		if err := k.found.Emptied(); err != nil {
			return err
		}
		return t.move(ctx, k.found.RunSkipped(k.now))
	case daybook.ActAgain:
		if err := k.found.Emptied(); err != nil {
			return err
		}
		return t.move(ctx, k.found.FurtherAttempt(k.now))
	case daybook.ActReplay:
		m, err := k.found.Replay(k.ask.Actor, k.ask.Note, k.now)
		if err != nil {
			return err
		}
		return t.move(ctx, m)
	}
	return nil
}

// read finds the run as it stands afterwards. What only this transaction has written is known without asking.
func (t *tx) read(ctx context.Context, k *knock) (err error) {
	switch {
	case k.found != nil && k.reply.Act == daybook.ActNone:
		k.run = k.found
		k.run.Triggers++
		if k.reply.Outcome != daybook.Refused {
			return nil
		}
		k.run.Refused++
		if l := k.run.Letter; l != nil && l.State == daybook.LetterOpen {
			l.Refused++
		}
	case k.found == nil && k.run == nil:
	case k.found == nil && len(k.freezes) == 0 && k.lapse == 0:
		k.run = asStored(k.run)
	default:
		k.run, err = t.s.findRun(ctx, t.query, k.ask.Key)
	}
	return err
}

// take claims the run for whoever asks, when it may be tried now.
func (t *tx) take(ctx context.Context, k *knock) error {
	if k.ask.Take == nil || k.run == nil || k.reply.Outcome == daybook.Refused || k.run.Reason == daybook.ReasonSettling {
		return nil
	}
	take := *k.ask.Take
	take.Key = k.run.Key // which may stand under an earlier name of the job
	taken, err := t.claim(ctx, take, k.now)
	switch {
	case err != nil && t.s.d.unique(err):
		return errMet // another run of its line was claimed at once: seen when it is done again
	case err != nil:
		return err
	case len(taken) == 1:
		k.run = taken[0]
		return nil
	}
	k.run, err = t.s.findRun(ctx, t.query, k.run.Key) // it may have been put off, or come to wait for its serial key
	return err
}

func byClock(s daybook.Source) bool {
	return s == daybook.SourceSchedule || s == daybook.SourceCatchup || s == daybook.SourceBackfill
}

func (k *knock) record() *daybook.Trigger {
	return &daybook.Trigger{ID: k.id, Key: k.ask.Key, Job: k.ask.Key.Job(), Source: k.ask.Source, Outcome: k.reply.Outcome, Actor: k.ask.Actor,
		Note: k.ask.Note, Fire: k.ask.Fire, At: k.now, PayloadHash: k.hash}
}

// move applies one transition inside a larger transaction.
func (t *tx) move(ctx context.Context, m daybook.Transition) error {
	applied := make([]daybook.Applied, 1)
	if err := t.apply(ctx, []daybook.Transition{m}, applied); err != nil {
		return err
	}
	if applied[0].Stale {
		return errMet
	}
	return nil
}
