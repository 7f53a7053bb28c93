package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/daybook-run/daybook"
)

// errLetter says that a letter, or another run, stands otherwise than a transition believed. The whole transaction is taken
// back.
var errLetter = errors.New("a letter, or another run, stands otherwise")

// Apply implements daybook.Mover. All transitions share one transaction; only when one of them meets a letter that
// another changed, each gets its own.
func (s *Store) Apply(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	applied, err := s.applyTogether(ctx, ts)
	if !errors.Is(err, errLetter) {
		return applied, err
	}
	if len(ts) == 1 {
		return []daybook.Applied{{Stale: true}}, nil
	}
	applied = make([]daybook.Applied, len(ts))
	for i := range ts {
		one, err := s.Apply(ctx, ts[i:i+1])
		if err != nil {
			return applied, err
		}
		applied[i] = one[0]
	}
	return applied, nil
}

func (s *Store) applyTogether(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	applied := make([]daybook.Applied, len(ts))
	for i := range ts {
		s.name(ts[i].Activity)
	}
	err := s.provedWrite(ctx, "record ends", movedBefore(ts, applied), func(ctx context.Context, t *tx) error {
		return t.apply(ctx, ts, applied)
	})
	return applied, err
}

// apply applies transitions in rounds, so that each key is moved at most once a round: what is bulk has no order.
func (t *tx) apply(ctx context.Context, ts []daybook.Transition, applied []daybook.Applied) error {
	seen := make(map[daybook.Key]bool, len(ts))
	from := 0
	for i := range ts {
		if seen[ts[i].Key] {
			if err := t.applyRound(ctx, ts[from:i], applied[from:i]); err != nil {
				return err
			}
			from = i
			clear(seen)
		}
		seen[ts[i].Key] = true
	}
	return t.applyRound(ctx, ts[from:], applied[from:])
}

// applyRound moves the runs, then writes what changes with those that moved.
func (t *tx) applyRound(ctx context.Context, ts []daybook.Transition, applied []daybook.Applied) error {
	moved := make(map[daybook.Key]bool, len(ts))
	movable, err := t.movable(ctx, ts)
	if err != nil {
		return err
	}
	for _, move := range []func(context.Context, []daybook.Transition, map[daybook.Key]bool) error{t.liveToLive, t.liveToRest, t.restTo} {
		if err := move(ctx, movable, moved); err != nil {
			return err
		}
	}
	written := ts[:0:0]
	for i := range ts {
		applied[i] = daybook.Applied{Stale: !moved[ts[i].Key]}
		if moved[ts[i].Key] {
			written = append(written, ts[i])
			if ts[i].To.Live() {
				applied[i].Due = ts[i].Due
				t.wakes = t.wakes || !ts[i].Due.After(ts[i].At)
			}
		}
	}
	return t.consequences(ctx, written)
}

const selectMovable = `SELECT key FROM daybook_live WHERE key /*in $1*/ /*lock*/`

// movable leaves out rescues whose rows another transaction has locked: one that stands still, such as that of a caller who marks
// a step in his own, would let every rescue stand still with it. What is left out is stale, and looked at again.
func (t *tx) movable(ctx context.Context, ts []daybook.Transition) ([]daybook.Transition, error) {
	var lost []string
	for _, m := range ts {
		if m.On == daybook.OnLost {
			lost = append(lost, string(m.Key))
		}
	}
	if len(lost) == 0 {
		return ts, nil
	}
	list, err := t.s.d.list(lost)
	if err != nil {
		return nil, err
	}
	free, err := t.texts(ctx, selectMovable, list)
	return slices.DeleteFunc(slices.Clone(ts), func(m daybook.Transition) bool {
		return m.On == daybook.OnLost && !slices.Contains(free, string(m.Key))
	}), err
}

const moveLive = `WITH v (key, from_state, fence, claim, asking, seen_us, began_us, to_state, reason, due_us, failures, losses, again, uncounted, last_error, cancelled_by, marks, wrote) AS
  (/*rows t t b t t b b t t b b b b b t t b b*/)
UPDATE daybook_live SET state = v.to_state, reason = v.reason, due_us = v.due_us, failures = v.failures, losses = v.losses, again = v.again,
  attempts = daybook_live.attempts - v.uncounted, marks = daybook_live.marks + v.wrote, lease_us = 0, asking = '', begun_us = 0, frozen_us = 0, meant_us = 0,
  last_error = CASE WHEN v.last_error = '' THEN daybook_live.last_error ELSE v.last_error END
FROM v WHERE daybook_live.key = v.key AND daybook_live.state = v.from_state AND daybook_live.fence = v.fence
  AND daybook_live.claim = v.claim AND daybook_live.asking = v.asking AND daybook_live.cancelled_by = v.cancelled_by
  AND daybook_live.marks = v.marks AND (v.seen_us < 0 OR daybook_live.lease_us = v.seen_us AND daybook_live.begun_us = v.began_us)
RETURNING daybook_live.key, daybook_live.serial`

const moveLiveRow = `UPDATE daybook_live SET state = $8, reason = $9, due_us = $10, failures = $11, losses = $12, again = $13,
  attempts = attempts - $14, marks = marks + $18, lease_us = 0, asking = '', begun_us = 0, frozen_us = 0, meant_us = 0, last_error = CASE WHEN $15 = '' THEN last_error ELSE $15 END
WHERE key = $1 AND state = $2 AND fence = $3 AND claim = $4 AND asking = $5 AND ($6 < 0 OR lease_us = $6 AND begun_us = $7) AND cancelled_by = $16 AND marks = $17
RETURNING key, serial`

// liveToLive moves what stays live.
func (t *tx) liveToLive(ctx context.Context, ts []daybook.Transition, moved map[daybook.Key]bool) error {
	var rows [][]any
	for _, m := range ts {
		if m.From.Live() && m.To.Live() {
			seen, began := seenByRescue(&m)
			rows = append(rows, []any{string(m.Key), string(m.From), m.Fence, m.Claim, m.Asking, seen, began, string(m.To), string(m.Reason), us(m.Due),
				int64(m.Failures), int64(m.Losses), bit(m.Again), bit(m.On == daybook.OnHandBack), clean(m.Error, daybook.MaxErrorBytes), m.CancelledBy,
				m.Marks, raises(&m)})
		}
	}
	return t.bulk(ctx, moveLive, rows, func(rows *sql.Rows) error {
		var k daybook.Key
		var serial string
		err := rows.Scan(&k, &serial)
		t.hasEnded(k, serial)
		moved[k] = true
		return err
	})
}

// seenByRescue is what a rescue saw of the lease and of the mark of begin, to be compared: a lease that was renewed since,
// or work that was marked since, is not lost. Other moves compare neither.
func seenByRescue(m *daybook.Transition) (lease, began int64) {
	if m.On != daybook.OnLost {
		return -1, -1
	}
	return us(m.Lease), us(m.Began)
}

const wakeRun = `UPDATE daybook_runs SET state = '', reason = '' WHERE key = $1 AND state = $2 AND fence = $3 AND claim = $4 AND marks = $5 RETURNING serial`

const enterLive = `INSERT INTO daybook_live (key, job, state, reason, due_us, priority, lane, home, line, start_us, serial, parent,
  fence, claim, node, attempts, failures, losses, again, last_error, marks, denied, once)
SELECT key, job, $2, $3, $4, priority, lane, COALESCE((SELECT j.home FROM daybook_jobs j WHERE j.name = daybook_runs.job), home),
  CASE WHEN $2 = 'running' AND EXISTS (SELECT 1 FROM daybook_live o WHERE o.line = daybook_runs.line AND o.line <> '' AND o.state = 'running') THEN '' ELSE line END,
  start_us, serial, parent, fence, claim, node, attempts, $5, $6, $7, last_error, marks + $8, denied,
  CASE WHEN effects = 'once' OR steps = 1 THEN 1 ELSE 0 END
FROM daybook_runs WHERE key = $1`

const moveRest = `UPDATE daybook_runs SET state = $6, reason = $7, failures = $8, losses = $9,
  last_error = CASE WHEN $10 = '' THEN last_error ELSE $10 END, marks = marks + $11
WHERE key = $1 AND state = $2 AND fence = $3 AND claim = $4 AND marks = $5 RETURNING serial`

const finishRest = `UPDATE daybook_runs SET started_us = $2, ended_us = $3, result = $4, result_hash = $5, counts = $6 WHERE key = $1`

// restTo moves what was at rest: by a person, or by a late report.
func (t *tx) restTo(ctx context.Context, ts []daybook.Transition, moved map[daybook.Key]bool) error {
	for _, m := range ts {
		if m.From.Live() {
			continue
		}
		compare := []any{string(m.Key), string(m.From), m.Fence, m.Claim, m.Marks}
		if m.To.Live() {
			if err := t.shareJob(ctx, m.Key.Job()); err != nil {
				return err
			}
			if ok, err := t.moveOne(ctx, m.Key, wakeRun, compare...); err != nil {
				return err
			} else if !ok {
				continue
			}
			if _, err := t.exec(ctx, enterLive, string(m.Key), string(m.To), string(m.Reason), us(m.Due),
				int64(m.Failures), int64(m.Losses), bit(m.Again), raises(&m)); err != nil {
				return err
			}
			moved[m.Key] = true
			continue
		}
		if ok, err := t.moveOne(ctx, m.Key, moveRest, append(compare, string(m.To), string(m.Reason), int64(m.Failures), int64(m.Losses),
			clean(m.Error, daybook.MaxErrorBytes), raises(&m))...); err != nil {
			return err
		} else if !ok {
			continue
		}
		moved[m.Key] = true
		if m.To == daybook.Done && !m.Keep {
			counts, err := countsJSON(m.Counts)
			if err != nil {
				return err
			}
			if _, err := t.exec(ctx, finishRest, string(m.Key), us(m.Began), us(m.At), cleanJSON(m.Data), digest(m.Data), counts); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveOne moves one run that is at rest, and reports whether it stood as it was believed to.
func (t *tx) moveOne(ctx context.Context, k daybook.Key, statement string, args ...any) (moved bool, err error) {
	err = t.query(ctx, statement, func(rows *sql.Rows) error {
		var serial string
		err := rows.Scan(&serial)
		moved = true
		t.hasEnded(k, serial)
		return err
	}, args...)
	return moved, err
}

// raises is by how much the marks of a run rise with a move.
func raises(m *daybook.Transition) int64 { return bit(len(m.Steps) > 0 || m.Seals) }

// consequences writes every row that changes with the runs that moved.
func (t *tx) consequences(ctx context.Context, ts []daybook.Transition) error {
	var effects []*daybook.StepRecord
	for i := range ts {
		if e := ts[i].Effect; e != nil {
			effects = append(effects, e)
		}
		effects = append(effects, ts[i].Steps...)
	}
	if err := t.attempts(ctx, ts); err != nil {
		return err
	}
	if err := t.putSteps(ctx, effects); err != nil {
		return err
	}
	if err := t.holdWaiting(ctx, ts); err != nil {
		return err
	}
	if err := t.fans(ctx, ts); err != nil {
		return err
	}
	if err := t.letAsk(ctx, ts); err != nil {
		return err
	}
	for i := range ts {
		m := &ts[i]
		if err := t.letters(ctx, m); err != nil {
			return err
		}
		if err := t.insertAlerts(ctx, m.Alerts); err != nil {
			return err
		}
		if m.Activity != nil {
			m.Activity.After = string(m.To)
		}
		if err := t.insertActivity(ctx, m.Activity); err != nil {
			return err
		}
		if err := t.others(ctx, m); err != nil {
			return err
		}
	}
	if len(ts) == 0 {
		return nil
	}
	return t.freeSerial(ctx, ts[0].At)
}

// others makes the run, and the move of another run, that come with a move.
func (t *tx) others(ctx context.Context, m *daybook.Transition) error {
	if m.Make != nil {
		if fresh, err := t.insertRuns(ctx, []*daybook.Run{m.Make}); err != nil || !fresh[m.Make.Key] {
			return errors.Join(err, errLetter)
		}
		made := []string{string(m.Make.Key)}
		if err := t.holdPausedKeys(ctx, made); err != nil {
			return err
		}
		if err := t.land(ctx, made, m.Freezes, m.At); err != nil {
			return err
		}
	}
	if m.Then == nil {
		return nil
	}
	then := make([]daybook.Applied, 1)
	err := t.applyRound(ctx, []daybook.Transition{*m.Then}, then)
	if err == nil && then[0].Stale {
		return errLetter
	}
	return err
}

// Evidence may be there before the attempt's own row: it is filled in, and never changed again.
const insertAttempts = `WITH v (key, fence, number, claim, node, wire_key, command, revision, claimed_us, begun_us, ended_us, result, error, detail, data) AS
  (/*rows t b b t t t t b b b b t t t t*/)
INSERT INTO daybook_attempts (key, fence, number, claim, node, wire_key, command, revision, claimed_us, begun_us, ended_us, result, error, detail, data)
SELECT * FROM v WHERE TRUE
ON CONFLICT (key, fence, question) DO UPDATE SET number = excluded.number, claim = excluded.claim, node = excluded.node, wire_key = excluded.wire_key,
  command = excluded.command, revision = excluded.revision, claimed_us = excluded.claimed_us, begun_us = excluded.begun_us, ended_us = excluded.ended_us,
  result = excluded.result, error = excluded.error, detail = excluded.detail, data = excluded.data
WHERE daybook_attempts.result = ''`

const insertOutputs = `WITH v (key, fence, text, omitted) AS (/*rows t b t b*/)
INSERT INTO daybook_outputs (key, fence, text, omitted) SELECT * FROM v WHERE TRUE ON CONFLICT (key, fence) DO NOTHING`

const markLate = `UPDATE daybook_attempts SET late_result = $3, late_error = $4, late_us = $5, late_taken = $6 WHERE key = $1 AND fence = $2 AND question = 0`

func (t *tx) attempts(ctx context.Context, ts []daybook.Transition) error {
	var rows, outputs [][]any
	var asked []daybook.Attempt
	for _, m := range ts {
		asked = append(asked, m.Asked...)
		a := m.Attempt
		switch {
		case a == nil:
			continue
		case a.LateResult != "":
			if _, err := t.exec(ctx, markLate, string(a.Key), a.Fence, string(a.LateResult), clean(a.LateError, daybook.MaxErrorBytes), us(a.LateAt), bit(a.LateTaken)); err != nil {
				return err
			}
		default:
			rows = append(rows, attemptRow(a))
		}
		if a.Output.Text != "" {
			outputs = append(outputs, []any{string(a.Key), a.Fence, clean(a.Output.Text, daybook.MaxOutputBytes+1024), a.Output.Omitted})
		}
	}
	if err := t.bulk(ctx, insertAttempts, rows, nil); err != nil {
		return err
	}
	if err := t.questions(ctx, asked); err != nil {
		return err
	}
	return t.bulk(ctx, insertOutputs, outputs, nil)
}

func attemptRow(a *daybook.Attempt) []any {
	return []any{string(a.Key), a.Fence, int64(a.Number), a.Claim, a.Node, a.WireKey, clean(a.Command, daybook.MaxErrorBytes), a.Revision,
		us(a.ClaimedAt), us(a.BegunAt), us(a.EndedAt), string(a.Result), clean(a.Error, daybook.MaxErrorBytes), clean(a.Detail, 200), cleanJSON(a.Data)}
}

// Nothing is closed before it was opened: whoever closes it may have read the clock, and waited, before it was.
const closeLetter = `UPDATE daybook_letters SET state = $2, closed_us = CASE WHEN $3 < opened_us THEN opened_us ELSE $3 END, closed_by = $4, note = $5 WHERE id = $1 AND state = 'open'`

// Letters of a run stand in the order of their opening: one that is opened by a node whose clock is behind comes after the one
// before, or that one would go on speaking for the run.
const openLetter = `INSERT INTO daybook_letters (id, key, job, priority, kind, state, error, opened_us, parent)
SELECT $1, $2, $3, $4, $5, 'open', $6, CASE WHEN b.last_us >= $7 THEN b.last_us + 1 ELSE $7 END, $8
FROM (SELECT COALESCE(MAX(opened_us), 0) AS last_us FROM daybook_letters WHERE key = $2) b WHERE TRUE
ON CONFLICT (key) WHERE state = 'open' DO NOTHING`

const reopenLetter = `UPDATE daybook_letters SET kind = $2, state = 'open', error = $3, closed_us = 0, closed_by = '', note = ''
WHERE id = $1 AND state = $4`

// takeAlerts lets nobody rely on alerts of a key that stand open, until it is known which are closed.
const takeAlerts = `SELECT id FROM daybook_alerts WHERE key = $1 AND kind IN ('dead_letter', 'unknown_outcome', 'breaker_open') AND closed_us = 0 /*wait*/`

// What its subjects share with a run stands open for as long as a letter of theirs does.
const closeAlerts = `UPDATE daybook_alerts SET closed_us = CASE WHEN $2 < at_us THEN at_us ELSE $2 END WHERE key = $1 AND kind IN ('dead_letter', 'unknown_outcome', 'breaker_open') AND closed_us = 0
  AND NOT EXISTS (SELECT 1 FROM daybook_letters f WHERE f.parent = $1 AND f.parent <> '' AND f.state = 'open'
    AND daybook_alerts.kind = CASE WHEN f.kind = 'unknown' THEN 'unknown_outcome' ELSE 'dead_letter' END)`

// closeUnneeded closes alerts of a key that no letter of its subjects holds open. They are taken first: a letter that relies on one is
// seen then, or finds it closed.
func (t *tx) closeUnneeded(ctx context.Context, statement, key string, args ...any) error {
	if err := t.query(ctx, takeAlerts, func(*sql.Rows) error { return nil }, key); err != nil {
		return err
	}
	_, err := t.exec(ctx, statement, append([]any{key}, args...)...)
	return err
}

func (t *tx) letters(ctx context.Context, m *daybook.Transition) error {
	if l := m.Close; l != nil {
		n, err := t.exec(ctx, closeLetter, l.ID, string(l.State), us(l.ClosedAt), clean(l.ClosedBy, daybook.MaxActorBytes), clean(l.Note, daybook.MaxReasonBytes))
		if err != nil {
			return err
		}
		if n == 0 {
			return errLetter
		}
		if m.Parent == "" { // that of subjects is closed by whoever looks after their parent, when it was the last
			if err := t.closeUnneeded(ctx, closeAlerts, string(m.Key), us(m.At)); err != nil {
				return err
			}
		}
	}
	l := m.Letter
	if l == nil {
		return t.noLetterMissed(ctx, m)
	}
	var n int64
	var err error
	if l.ID == "" {
		n, err = t.exec(ctx, openLetter, t.s.newID(), string(l.Key), l.Job, string(l.Priority), string(l.Kind), clean(l.Error, daybook.MaxErrorBytes), us(l.OpenedAt), string(l.Parent))
	} else {
		was := daybook.LetterOpen // asked again by a person, and not settled by the answer
		if m.On == daybook.OnReopen {
			was = daybook.LetterDismissed
		}
		n, err = t.exec(ctx, reopenLetter, l.ID, string(l.Kind), clean(l.Error, daybook.MaxErrorBytes), string(was))
	}
	if err == nil && n == 0 {
		return errLetter
	}
	return err
}

const hasOpenLetter = `SELECT id FROM daybook_letters WHERE key = $1 AND state = 'open'`

// noLetterMissed makes a late report stale that was decided before a letter was opened, or opened again: what it moves
// would leave that letter behind.
func (t *tx) noLetterMissed(ctx context.Context, m *daybook.Transition) error {
	if m.On != daybook.OnLateReport || m.Close != nil {
		return nil
	}
	open := false
	if err := t.query(ctx, hasOpenLetter, func(*sql.Rows) error { open = true; return nil }, string(m.Key)); err != nil {
		return err
	}
	if open {
		return errLetter
	}
	return nil
}

const insertEvidence = `INSERT INTO daybook_attempts (key, fence, number, claim, node, wire_key, late_result, late_error, late_us)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (key, fence, question) DO UPDATE SET late_result = excluded.late_result, late_error = excluded.late_error, late_us = excluded.late_us
WHERE daybook_attempts.late_taken = 0`

const noteTwice = `UPDATE daybook_steps SET twice = CASE WHEN twice = '' OR twice = $3 THEN $3 ELSE twice || ', ' || $3 END WHERE key = $1 AND step = $2`

const insertQuestions = `WITH v (key, fence, question, number, node, wire_key, claimed_us, ended_us, result, error, data) AS (/*rows t b b b t t b b t t t*/)
INSERT INTO daybook_attempts (key, fence, question, number, node, wire_key, claimed_us, ended_us, result, error, data)
SELECT * FROM v WHERE TRUE ON CONFLICT (key, fence, question) DO NOTHING`

// questions writes what the far side said.
func (t *tx) questions(ctx context.Context, asked []daybook.Attempt) error {
	rows := make([][]any, len(asked))
	for i, a := range asked {
		rows[i] = []any{string(a.Key), a.Fence, us(a.ClaimedAt), int64(a.Number), a.Node, a.WireKey, us(a.ClaimedAt), us(a.EndedAt), string(a.Result),
			clean(a.Error, daybook.MaxErrorBytes), cleanJSON(a.Data)}
	}
	return t.bulk(ctx, insertQuestions, rows, nil)
}

// Evidence implements daybook.Mover: a refused report, or the answer to a question that something else had settled.
func (s *Store) Evidence(ctx context.Context, a daybook.Attempt, twice *daybook.Twice) error {
	return s.write(ctx, "keep evidence on "+string(a.Key), func(ctx context.Context, t *tx) error {
		if a.Probe {
			return t.questions(ctx, []daybook.Attempt{a})
		}
		_, err := t.exec(ctx, insertEvidence, string(a.Key), a.Fence, int64(a.Number), a.Claim, a.Node, a.WireKey,
			string(a.LateResult), clean(a.LateError, daybook.MaxErrorBytes), us(a.LateAt))
		if err != nil || twice == nil {
			return err
		}
		if _, err := t.exec(ctx, noteTwice, string(a.Key), twice.Step, twice.WireKey); err != nil {
			return err
		}
		return t.insertAlerts(ctx, []*daybook.Alert{twice.Alert})
	})
}
