package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/daybook-run/daybook"
)

// marks reports whether a run has steps to be read: its whole attempt as one effect, or those its work marks itself.
func marks(r *daybook.Run) bool { return r.Effects == daybook.Once || r.Steps }

const selectStepsIn = `SELECT key, step, effect, state, generation, open, first_us, ended_us, tries, fence, settled_by, data,
  ord, seen, asks, undoes, undo, remembers_us, settles_us, asked, error, call, doubt, optional, twice
FROM daybook_steps WHERE key /*in $1*/ ORDER BY key, ord`

// loadSteps gives runs their effect, or their steps in their order.
func (s *Store) loadSteps(ctx context.Context, q query, runs []*daybook.Run) error {
	keys := make([]string, len(runs))
	byKey := make(map[daybook.Key]*daybook.Run, len(runs))
	for i, r := range runs {
		keys[i], byKey[r.Key] = string(r.Key), r
	}
	list, err := s.d.list(keys)
	if err != nil {
		return err
	}
	return q(ctx, selectStepsIn, func(rows *sql.Rows) error {
		e, err := scanStep(rows)
		if r := byKey[e.Key]; e.Step == daybook.StepRun && !r.Steps { // of an undo it is one of its steps
			r.Effect = e
		} else {
			r.Records = append(r.Records, e)
		}
		return err
	}, list)
}

func scanStep(rows *sql.Rows) (*daybook.StepRecord, error) {
	var e daybook.StepRecord
	var effect, open, first, ended, asks, undoes, remembers, settles, optional int64
	var data, undo string
	err := rows.Scan(&e.Key, &e.Step, &effect, &e.State, &e.Generation, &open, &first, &ended, &e.Tries, &e.Fence, &e.SettledBy, &data,
		&e.Order, &e.Seen, &asks, &undoes, &undo, &remembers, &settles, &e.Asked, &e.Error, &e.Call, &e.Doubt, &optional, &e.Twice)
	e.Plain, e.Open, e.FirstAt, e.EndedAt, e.Data = effect == 0, open != 0, at(first), at(ended), raw(data)
	e.Says = daybook.StepPolicy{Asks: asks != 0, Undoes: undoes != 0, Undo: undo, Remembers: span(remembers), Settles: span(settles), Optional: optional != 0}
	return &e, err
}

// A span that lasts for ever has no microseconds.
const forever = -1

func span(us int64) time.Duration {
	if us == forever {
		return daybook.Forever
	}
	return time.Duration(us) * time.Microsecond
}

func spanUS(d time.Duration) int64 {
	if d == daybook.Forever {
		return forever
	}
	return d.Microseconds()
}

// That it was done twice may be noted while its holder, who does not know it, writes it.
const upsertSteps = `WITH v (key, step, effect, state, generation, open, first_us, ended_us, tries, fence, settled_by, data,
    ord, seen, asks, undoes, undo, remembers_us, settles_us, asked, error, call, doubt, optional, twice) AS
  (/*rows t t b t b b b b b b t t b b b b t b b t t t b b t*/)
INSERT INTO daybook_steps (key, step, effect, state, generation, open, first_us, ended_us, tries, fence, settled_by, data,
    ord, seen, asks, undoes, undo, remembers_us, settles_us, asked, error, call, doubt, optional, twice)
SELECT * FROM v WHERE TRUE
ON CONFLICT (key, step) DO UPDATE SET effect = excluded.effect, state = excluded.state, generation = excluded.generation, open = excluded.open,
  first_us = excluded.first_us, ended_us = excluded.ended_us, tries = excluded.tries, fence = excluded.fence,
  settled_by = excluded.settled_by, data = excluded.data, seen = excluded.seen, asks = excluded.asks, undoes = excluded.undoes, undo = excluded.undo,
  remembers_us = excluded.remembers_us, settles_us = excluded.settles_us, asked = excluded.asked, error = excluded.error, call = excluded.call, doubt = excluded.doubt,
  optional = excluded.optional, twice = CASE WHEN excluded.twice = '' AND excluded.generation >= daybook_steps.generation THEN daybook_steps.twice ELSE excluded.twice END`

func (t *tx) putSteps(ctx context.Context, steps []*daybook.StepRecord) error {
	rows := make([][]any, len(steps))
	for i, e := range steps {
		rows[i] = stepRow(e)
	}
	return t.bulk(ctx, upsertSteps, rows, nil)
}

func stepRow(e *daybook.StepRecord) []any {
	return []any{string(e.Key), e.Step, bit(!e.Plain), string(e.State), int64(e.Generation), bit(e.Open), us(e.FirstAt), us(e.EndedAt),
		int64(e.Tries), e.Fence, clean(e.SettledBy, daybook.MaxActorBytes), cleanJSON(e.Data),
		int64(e.Order), e.Seen, bit(e.Says.Asks), bit(e.Says.Undoes), clean(e.Says.Undo, daybook.MaxErrorBytes), spanUS(e.Says.Remembers), spanUS(e.Says.Settles), string(e.Asked),
		clean(e.Error, daybook.MaxErrorBytes), clean(e.Call, daybook.MaxNameBytes), e.Doubt, bit(e.Says.Optional), e.Twice}
}

const selectStepMark = `SELECT s.key FROM daybook_steps s JOIN daybook_live l ON l.key = s.key WHERE s.key = $1 AND s.step = $2
  AND s.state = $3 AND s.fence = $4 AND s.tries = $5 AND s.generation = $6 AND s.ended_us = $7 AND l.claim = $8`

// MarkStep implements daybook.Stepper.
func (s *Store) MarkStep(ctx context.Context, r *daybook.Run, e *daybook.StepRecord, learned daybook.Learned) error {
	m := newMark("mark step "+e.Step+" of "+string(r.Key), r, e)
	m.row, m.learned = markRow(r, time.Time{}, e.State == daybook.EffectBegun), learned
	held, err := s.mark(ctx, m)
	if err == nil && !held {
		return staleStep(r, e)
	}
	return err
}

// MarkStepTx implements daybook.Stepper.
func (s *Store) MarkStepTx(ctx context.Context, caller *sql.Tx, r *daybook.Run, e *daybook.StepRecord) error {
	t := &tx{Tx: caller, s: s, guest: true}
	held := false
	err := t.query(ctx, markRun, func(*sql.Rows) error { held = true; return nil }, markRow(r, time.Time{}, true)...)
	if err == nil && !held {
		return staleStep(r, e)
	}
	if err == nil {
		err = t.putSteps(ctx, []*daybook.StepRecord{e})
	}
	return s.fault("mark step "+e.Step+" of "+string(r.Key), err)
}

const denyStep = `UPDATE daybook_live SET marks = marks + 1, denied = $5 WHERE key = $1 AND state = 'running' AND fence = $2 AND claim = $3 AND marks = $4`

const selectDenied = `SELECT key FROM daybook_live WHERE key = $1 AND fence = $2 AND claim = $3 AND marks > $4 AND denied = $5`

// Deny implements daybook.Stepper.
func (s *Store) Deny(ctx context.Context, r *daybook.Run, why string) error {
	why = clean(why, daybook.MaxErrorBytes)
	args := []any{string(r.Key), r.Fence, r.Claim, r.Marks, why}
	return s.provedWrite(ctx, "deny a step of "+string(r.Key), exists(selectDenied, args...), func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, denyStep, args...)
		if err == nil && n == 0 {
			return &daybook.Error{Code: daybook.CodeStale, Message: string(r.Key) + " is not held any more, or another wrote a step of it"}
		}
		return err
	})
}

func staleStep(r *daybook.Run, e *daybook.StepRecord) error {
	return &daybook.Error{Code: daybook.CodeStale, Message: "step " + e.Step + ": " + string(r.Key) + " is not held any more, another wrote a step of it, or a person asked for its end"}
}
