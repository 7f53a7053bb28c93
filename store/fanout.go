package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
)

// Bounds of one look at a run with subjects.
const (
	endsAtOnce    = 1000 // ends that are followed
	childrenMoved = 500  // runs of subjects that are moved one by one
)

const endFan = `INSERT INTO daybook_fans (key, job, subjects, repeated, faulty, fault, vanished, look_us, whole) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)
ON CONFLICT (key) DO UPDATE SET whole = 1, subjects = excluded.subjects, repeated = excluded.repeated, faulty = excluded.faulty, fault = excluded.fault,
  vanished = excluded.vanished, look_us = excluded.look_us`

const fansOut = `UPDATE daybook_runs SET fans = 1 WHERE key = $1 AND fans = 0`

const lookSoon = `UPDATE daybook_fans SET look_us = $2 WHERE key = $1`

const closeBreaker = `UPDATE daybook_fans SET breaker = $2 WHERE key = $1`

const insertEnds = `WITH v (parent, id, key, done, failed, error, at_us) AS (/*rows t t t b b t b*/)
INSERT INTO daybook_ends (parent, id, key, done, failed, error, at_us) SELECT * FROM v WHERE TRUE`

const insertHeld = `WITH v (parent, id, key, at_us) AS (/*rows t t t b*/)
INSERT INTO daybook_ends (parent, id, key, held, at_us) SELECT v.parent, v.id, v.key, 1, v.at_us FROM v
WHERE EXISTS (SELECT 1 FROM daybook_fans f WHERE f.key = v.parent)`

// fans writes what moves mean to runs with subjects: that they were listed, and what became of their subjects.
func (t *tx) fans(ctx context.Context, ts []daybook.Transition) error {
	var ends [][]any
	for i := range ts {
		m := &ts[i]
		if end, tells := endOf(m); tells {
			ends = append(ends, []any{string(m.Parent), t.s.newID(), string(m.Key), bit(end.Done), bit(end.Failed), clean(end.Error, 500), us(m.At)})
		}
		if !m.Fans {
			continue
		}
		if l := m.Listed; l != nil {
			if _, err := t.exec(ctx, fansOut, string(m.Key)); err != nil {
				return err
			}
			fault := ""
			if len(l.Faults) > 0 {
				fault = clean(l.Faults[0], daybook.MaxErrorBytes)
			}
			if _, err := t.exec(ctx, endFan, string(m.Key), m.Key.Job(), l.Subjects, l.Repeated, l.Faulty, fault, l.Vanished, us(m.At)); err != nil {
				return err
			}
			continue
		}
		if m.On == daybook.OnReplay || m.On == daybook.OnReopen {
			closed, err := json.Marshal(daybook.Breaker{Back: true})
			if err != nil {
				return err
			}
			if _, err := t.exec(ctx, closeBreaker, string(m.Key), string(closed)); err != nil {
				return err
			}
			if _, err := t.exec(ctx, unpark, string(m.Key)); err != nil {
				return err
			}
		}
		if _, err := t.exec(ctx, lookSoon, string(m.Key), us(m.At)); err != nil {
			return err
		}
	}
	return t.bulk(ctx, insertEnds, ends, nil)
}

// endOf returns what a move of the run of a subject tells whoever looks after its parent; false: nothing.
func endOf(m *daybook.Transition) (e daybook.SubjectEnd, tells bool) {
	if m.Parent == "" {
		return e, false
	}
	e.Done = m.To == daybook.Done && !m.Keep && (m.On == daybook.OnReport || m.On == daybook.OnProbe || m.On == daybook.OnLateReport)
	if a := m.Attempt; a != nil && m.On == daybook.OnReport && !e.Done && m.CancelledBy == "" {
		switch a.Result {
		case daybook.ResultNotDone, daybook.ResultPermanent, daybook.ResultUnclear, daybook.ResultUnknown:
			e.Failed, e.Error = true, m.Error
		}
	}
	return e, e.Done || e.Failed || !m.From.Live() || !m.To.Live()
}

// One parent after the other, without reading every end: the first, then the next behind it.
const selectEnded = `SELECT COALESCE((SELECT parent FROM daybook_ends WHERE parent > $1 ORDER BY parent LIMIT 1), '')`

const selectLooks = `SELECT key FROM daybook_fans WHERE look_us > 0 AND look_us <= $1 ORDER BY look_us LIMIT $2`

// What an idle ledger is asked, again and again: whether there is anything to look at. In an order, so that it is an index
// that is read, and not the pages that many ends have left behind.
const selectAnyLook = `SELECT 1 WHERE EXISTS (SELECT 1 FROM daybook_fans WHERE look_us > 0 AND look_us <= $1)
  OR (SELECT parent FROM daybook_ends ORDER BY parent LIMIT 1) IS NOT NULL`

// Fanouts implements daybook.FanStore.
func (s *Store) Fanouts(ctx context.Context, now time.Time, limit int) ([]daybook.Key, error) {
	anything := false
	if err := s.read(ctx, "find runs to look after", selectAnyLook, func(*sql.Rows) error { anything = true; return nil }, us(now)); err != nil || !anything {
		return nil, err
	}
	var keys []daybook.Key
	seen := make(map[daybook.Key]bool)
	if err := s.read(ctx, "find runs to look after", selectLooks, func(rows *sql.Rows) error {
		var k daybook.Key
		err := rows.Scan(&k)
		keys, seen[k] = append(keys, k), true
		return err
	}, us(now), int64(limit)); err != nil {
		return nil, err
	}
	for after := daybook.Key(""); len(keys) < limit; {
		var k daybook.Key
		if err := s.read(ctx, "find what ended", selectEnded, func(rows *sql.Rows) error { return rows.Scan(&k) }, string(after)); err != nil {
			return nil, err
		}
		if k == "" {
			break
		}
		if after = k; !seen[k] {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

const selectNextLook = `SELECT COALESCE(min(look_us), 0) FROM daybook_fans WHERE look_us > 0`

// NextLook returns when a run with subjects is to be looked at next whatever ends; zero: at no time.
func (s *Store) NextLook(ctx context.Context) (time.Time, error) {
	var next int64
	err := s.read(ctx, "find the next look", selectNextLook, func(rows *sql.Rows) error { return rows.Scan(&next) })
	return at(next), err
}

// The update locks the row, so that one look comes after the other.
const takeFan = `UPDATE daybook_fans SET look_us = look_us WHERE key = $1 RETURNING faulty, fault, breaker, whole`

const selectEnds = `SELECT id, key, done, failed, held, error, at_us FROM daybook_ends WHERE parent = $1 ORDER BY id LIMIT $2`

const deleteEnds = `DELETE FROM daybook_ends WHERE parent = $1 AND id /*in $2*/`

// In one statement, so that all of it is of one instant. Whoever waits is looked for behind the last that was let go: what
// stands before it in the index is what many others have left behind. Runs of a job that stands still count as let go: all of
// its others stand still, too.
const selectFanout = `SELECT COALESCE((SELECT 1 FROM daybook_live w WHERE w.parent = $1 AND w.hold = 'turn' AND w.key > $4 ORDER BY w.key LIMIT 1),
    (SELECT 1 FROM daybook_live w WHERE w.parent = $1 AND w.hold = 'turn' LIMIT 1), 0),
  (SELECT count(*) FROM (SELECT 1 FROM daybook_live o WHERE o.parent = $1 AND o.parent <> '' AND o.hold <> 'turn'
    AND o.hold IN ('', 'paused', 'no definition', 'restored', 'clock not confirmed') AND o.due_us <= $2 LIMIT $3) outs)
  + (SELECT count(*) - count(DISTINCT s.serial) FROM (SELECT h.serial FROM daybook_live h WHERE h.parent = $1 AND h.parent <> '' AND h.hold <> 'turn'
    AND h.hold = 'waiting for serial key' LIMIT $3) s),
  COALESCE((SELECT 1 FROM daybook_live u WHERE u.parent = $1 AND u.parent <> '' AND u.hold <> 'turn' LIMIT 1), 0),
  COALESCE((SELECT 1 FROM daybook_letters f WHERE f.parent = $1 AND f.parent <> '' AND f.state = 'open' AND f.kind <> 'unknown' LIMIT 1), 0),
  COALESCE((SELECT 1 FROM daybook_letters k WHERE k.parent = $1 AND k.parent <> '' AND k.state = 'open' AND k.kind = 'unknown' LIMIT 1), 0)`

const setFan = `UPDATE daybook_fans SET breaker = $2, look_us = $3 WHERE key = $1`

// Look implements daybook.FanStore.
func (s *Store) Look(ctx context.Context, k daybook.Key, p daybook.Policy, portion int, now time.Time) error {
	return s.write(ctx, "look after "+string(k), func(ctx context.Context, t *tx) error {
		f := daybook.Fanout{}
		known := false
		var breaker string
		var whole int64
		if err := t.query(ctx, takeFan, func(rows *sql.Rows) error {
			known = true
			return rows.Scan(&f.Faulty, &f.Fault, &breaker, &whole)
		}, string(k)); err != nil {
			return err
		}
		f.Whole = whole != 0
		if breaker != "" {
			if err := json.Unmarshal([]byte(breaker), &f.Breaker); err != nil {
				return err
			}
		}
		if err := t.takeEnds(ctx, k, &f); err != nil {
			return err
		}
		if err := t.standOf(ctx, k, &f, portion, now); err != nil {
			return err
		}
		if err := t.shared(ctx, k, &f, now); err != nil || !known {
			return err // the subject was asked for by itself, and no run lists it
		}
		var err error
		if f.Run, err = s.findRun(ctx, t.query, k); err != nil || f.Run == nil {
			return err
		}
		if f.Run.CancelledBy != "" || f.Over() {
			if err := t.query(ctx, selectUnstarted, func(*sql.Rows) error { f.Unstarted = true; return nil }, string(k), int64(1), overSince(f.Run)); err != nil {
				return err
			}
		}
		if f.Run.CancelledBy != "" {
			if err := t.query(ctx, selectCancelledWith, func(*sql.Rows) error { f.Left = true; return nil }, string(k), f.Run.Fence, int64(1)); err != nil {
				return err
			}
		}
		return t.lookedAt(ctx, &f, f.Next(p, portion, now), p, now)
	})
}

// takeEnds reads what ended since the last look, and removes it.
func (t *tx) takeEnds(ctx context.Context, k daybook.Key, f *daybook.Fanout) error {
	var ids []string
	if err := t.query(ctx, selectEnds, func(rows *sql.Rows) error {
		var e daybook.SubjectEnd
		var done, failed, held, ended int64
		err := rows.Scan(&e.ID, &e.Key, &done, &failed, &held, &e.Error, &ended)
		e.Done, e.Failed, e.Held, e.At = done != 0, failed != 0, held != 0, at(ended)
		f.Ends, ids = append(f.Ends, e), append(ids, e.ID)
		return err
	}, string(k), int64(endsAtOnce)); err != nil || len(ids) == 0 {
		return err
	}
	f.MoreEnds = len(ids) == endsAtOnce
	list, err := t.s.d.list(ids)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, deleteEnds, string(k), list)
	return err
}

func (t *tx) standOf(ctx context.Context, k daybook.Key, f *daybook.Fanout, portion int, now time.Time) error {
	return t.query(ctx, selectFanout, func(rows *sql.Rows) error {
		var waiting, live, failed, unknown int64
		err := rows.Scan(&waiting, &f.Out, &live, &failed, &unknown)
		f.Waiting, f.UnderWay, f.Failed, f.Unknown = waiting != 0, waiting+live != 0, failed != 0, unknown != 0
		return err
	}, string(k), us(now), int64(portion), string(f.Breaker.After))
}

const closeSharedAlerts = `UPDATE daybook_alerts SET closed_us = CASE WHEN $2 < at_us THEN at_us ELSE $2 END WHERE key = $1 AND kind = $3 AND closed_us = 0
  AND NOT EXISTS (SELECT 1 FROM daybook_letters l WHERE l.key = $1 AND l.state = 'open')
  AND NOT EXISTS (SELECT 1 FROM daybook_letters f WHERE f.parent = $1 AND f.parent <> '' AND f.state = 'open'
    AND $3 = CASE WHEN f.kind = 'unknown' THEN 'unknown_outcome' ELSE 'dead_letter' END)`

// A letter that stands open while no alert of its kind does is told of.
const openSharedAlert = `INSERT INTO daybook_alerts (id, kind, key, job, priority, last_error, last_good, at_us)
SELECT $1, $2, l.parent, l.job, l.priority, l.error, '', $4 FROM daybook_letters l
WHERE l.parent = $3 AND l.parent <> '' AND l.state = 'open' AND $2 = CASE WHEN l.kind = 'unknown' THEN 'unknown_outcome' ELSE 'dead_letter' END
  AND NOT EXISTS (SELECT 1 FROM daybook_alerts a WHERE a.key = $3 AND a.job = l.job AND a.kind = $2 AND a.closed_us = 0)
ORDER BY l.opened_us LIMIT 1
ON CONFLICT (kind, job, key) WHERE closed_us = 0 DO NOTHING`

// shared lets the alert about the subjects of a run stand open for as long as a letter of theirs does.
func (t *tx) shared(ctx context.Context, k daybook.Key, f *daybook.Fanout, now time.Time) error {
	for kind, open := range map[daybook.AlertKind]bool{daybook.AlertDeadLetter: f.Failed, daybook.AlertUnknownOutcome: f.Unknown} {
		if open {
			if _, err := t.exec(ctx, openSharedAlert, t.s.newID(), string(kind), string(k), us(now)); err != nil {
				return err
			}
			continue
		}
		if err := t.closeUnneeded(ctx, closeSharedAlerts, string(k), us(now), string(kind)); err != nil {
			return err
		}
	}
	return nil
}

// lookedAt carries out what a look decided.
func (t *tx) lookedAt(ctx context.Context, f *daybook.Fanout, m daybook.FanMove, p daybook.Policy, now time.Time) error {
	k := string(f.Run.Key)
	if m.Unpark {
		m.Breaker.After = ""
		if _, err := t.exec(ctx, unpark, k); err != nil {
			return err
		}
		m.Look = now // what is let go waits for its turn from now on
	}
	var err error
	switch {
	case m.Try:
		err = t.try(ctx, f.Run, &m, now)
	case m.LetGo > 0:
		t.wakes = true
		_, err = t.letGoWaiting(ctx, f.Run, &m, int64(m.LetGo), now)
	case m.Cancel:
		err = t.cancelUnstarted(ctx, f.Run, &m, p, now)
	case m.Back:
		err = t.bringBack(ctx, f.Run, &m, now)
	}
	switch {
	case err == nil && m.Park:
		err = t.park(ctx, f.Run, &m, now)
	case err == nil && m.Drop:
		err = t.drop(ctx, f.Run, &m, p, now)
	}
	if err != nil {
		return err
	}
	breaker := ""
	if b, err := json.Marshal(m.Breaker); err != nil {
		return err
	} else if string(b) != "{}" {
		breaker = string(b)
	}
	if _, err := t.exec(ctx, setFan, k, breaker, us(m.Look)); err != nil {
		return err
	}
	if m.Rests != f.Run.Rests && f.Run.State.Live() {
		if err := t.rest(ctx, f.Run, m.Rests); err != nil {
			return err
		}
	}
	if m.End == nil {
		return nil
	}
	m.End.Fans = false // it is looked at already
	if m.End.To == daybook.Done {
		if m.End.Counts, err = t.countsOf(ctx, f.Run.Key); err != nil {
			return err
		}
	}
	return t.move(ctx, *m.End)
}

const letGo = `UPDATE daybook_live SET hold = '', due_us = $2 WHERE key /*pick(*/SELECT w.key FROM daybook_live w
  WHERE w.parent = $1 AND w.hold = 'turn' AND w.key > $4 ORDER BY w.key LIMIT $3 /*lock*//*)*/ RETURNING key`

// Not those that would wait for the serial key of another.
const letGoParked = `UPDATE daybook_live SET hold = '', due_us = $2 WHERE key /*pick(*/SELECT w.key FROM daybook_live w
  WHERE w.parent = $1 AND w.parent <> '' AND w.hold <> 'turn' AND w.hold = 'breaker'
    AND NOT EXISTS (SELECT 1 FROM daybook_locks k WHERE k.serial = w.serial AND w.serial <> '' AND k.key <> w.key) ORDER BY w.due_us, w.key LIMIT $3 /*lock*//*)*/ RETURNING key`

// letGoWaiting lets so many of those that wait for their turn be claimed, behind the last that was, then from the start.
func (t *tx) letGoWaiting(ctx context.Context, parent *daybook.Run, m *daybook.FanMove, n int64, now time.Time) (keys []string, err error) {
	for from := m.Breaker.After; ; from = "" {
		some, err := t.letGo(ctx, parent, letGo, string(parent.Key), us(now), n, string(from))
		if err != nil {
			return nil, err
		}
		keys, n = append(keys, some...), n-int64(len(some))
		if n == 0 || from == "" {
			m.Breaker.After = ""
			if len(some) > 0 {
				m.Breaker.After = daybook.Key(slices.Max(some))
			}
			return keys, nil
		}
	}
}

// letGo lets runs of subjects be claimed, unless their job is paused.
func (t *tx) letGo(ctx context.Context, parent *daybook.Run, statement string, args ...any) (keys []string, err error) {
	if err := t.shareJob(ctx, parent.Job); err != nil {
		return nil, err
	}
	if err := t.query(ctx, statement, func(rows *sql.Rows) error {
		var k string
		err := rows.Scan(&k)
		keys = append(keys, k)
		return err
	}, args...); err != nil || len(keys) == 0 {
		return keys, err
	}
	return keys, t.holdPausedKeys(ctx, keys)
}

// try lets one run go as the trial of the breaker: one that was not tried yet, if there is one.
func (t *tx) try(ctx context.Context, parent *daybook.Run, m *daybook.FanMove, now time.Time) error {
	keys, err := t.letGoWaiting(ctx, parent, m, 1, now)
	if err == nil && len(keys) == 0 {
		keys, err = t.letGo(ctx, parent, letGoParked, string(parent.Key), us(now), int64(1))
	}
	switch {
	case err != nil:
		return err
	case len(keys) == 1:
		m.Breaker.Trial = daybook.Key(keys[0])
	default:
		m.Look = now.Add(time.Second) // others are at work, or held by something else
	}
	return nil
}

// That the hold is not turn is said so that the index of what was let go serves. Whose outcome is unknown is asked for all the same.
const park = `UPDATE daybook_live SET hold = 'breaker' WHERE parent = $1 AND parent <> '' AND hold <> 'turn' AND hold IN ('', 'waiting for serial key') AND state <> 'running' AND asking = '' AND reason <> 'settling' AND key <> $2`

// Who has the serial key that the trial waits for goes on too: neither would ever come to its end otherwise.
const letGoHolder = `UPDATE daybook_live SET hold = '' WHERE parent = $1 AND parent <> '' AND hold <> 'turn' AND hold = 'breaker'
  AND key IN (SELECT k.key FROM daybook_live w JOIN daybook_locks k ON k.serial = w.serial WHERE w.key = $2 AND w.serial <> '') RETURNING key`

const unpark = `UPDATE daybook_live SET hold = 'turn' WHERE parent = $1 AND parent <> '' AND hold <> 'turn' AND hold = 'breaker'`

const parkKeys = `UPDATE daybook_live SET hold = 'breaker' WHERE key /*in $1*/ AND hold = ''`

// Not those that were refused for good, or an effect of theirs was, nor those that a person ended: nobody but a person asks again.
const selectFailedSince = `SELECT l.key FROM daybook_letters l WHERE l.parent = $1 AND l.parent <> '' AND l.state = 'open' AND l.kind = 'failed' AND l.opened_us >= $2
  AND NOT EXISTS (SELECT 1 FROM daybook_attempts a WHERE a.key = l.key AND a.fence = (SELECT r.fence FROM daybook_runs r WHERE r.key = l.key) AND a.result = 'permanent')
  AND NOT EXISTS (SELECT 1 FROM daybook_runs r WHERE r.key = l.key AND r.reason = 'cancelled')
  AND NOT EXISTS (SELECT 1 FROM daybook_steps e WHERE e.key = l.key AND e.effect = 1 AND e.state = 'refused')
ORDER BY l.key LIMIT $3`

// park holds what was let go and does not run, and takes back what failed since the breaker saw the first failure.
func (t *tx) park(ctx context.Context, parent *daybook.Run, m *daybook.FanMove, now time.Time) error {
	if _, err := t.exec(ctx, park, string(parent.Key), string(m.Breaker.Trial)); err != nil {
		return err
	}
	if m.Breaker.Trial != "" {
		holders, err := t.texts(ctx, letGoHolder, string(parent.Key), string(m.Breaker.Trial))
		if err != nil {
			return err
		}
		if len(holders) > 0 {
			if err := t.holdPausedKeys(ctx, holders); err != nil {
				return err
			}
		}
	}
	var keys []string
	if err := t.query(ctx, selectFailedSince, func(rows *sql.Rows) error {
		var k string
		err := rows.Scan(&k)
		keys = append(keys, k)
		return err
	}, string(parent.Key), us(m.Breaker.Since), int64(childrenMoved)); err != nil || len(keys) == 0 {
		return err
	}
	if err := t.moveEach(ctx, keys, func(r *daybook.Run) (daybook.Transition, error) {
		m, err := r.Replay("daybook", "the breaker is open", now)
		if err == nil && (m.Effect != nil || len(m.Steps) > 0) {
			err = daybook.Conflict("%s needs a person: its next try has another wire key", r.Key)
		}
		return m, err
	}); err != nil {
		return err
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, parkKeys, list)
	return err
}

// moveEach moves runs one by one; what stands otherwise meanwhile is left to the next look.
func (t *tx) moveEach(ctx context.Context, keys []string, how func(*daybook.Run) (daybook.Transition, error)) error {
	for _, k := range keys {
		r, err := t.s.findRun(ctx, t.query, daybook.Key(k))
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		m, err := how(r)
		if daybook.CodeOf(err) == daybook.CodeConflict {
			continue
		}
		if err != nil {
			return err
		}
		if err := t.move(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// What the newest listing names, and what was asked for by itself.
const selectCancelledWith = `SELECT key FROM daybook_runs WHERE parent = $1 AND parent <> '' AND state = 'cancelled' AND reason = 'with its window'
  AND listed IN (0, $2) LIMIT $3`

// bringBack lets those wait for their turn again that were cancelled with a run that a person took up again.
func (t *tx) bringBack(ctx context.Context, parent *daybook.Run, m *daybook.FanMove, now time.Time) error {
	var keys []string
	if err := t.query(ctx, selectCancelledWith, func(rows *sql.Rows) error {
		var k string
		err := rows.Scan(&k)
		keys = append(keys, k)
		return err
	}, string(parent.Key), parent.Fence, int64(childrenMoved)); err != nil {
		return err
	}
	m.Look = now
	m.Breaker.Back = len(keys) == childrenMoved
	if err := t.moveEach(ctx, keys, func(r *daybook.Run) (daybook.Transition, error) { return r.BringBack(now) }); err != nil {
		return err
	}
	return t.turn(ctx, keys)
}

// turn lets runs of subjects that were taken up again wait for their turn.
func (t *tx) turn(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, turnKeys, list)
	return err
}

// A run that rests keeps no other of its line waiting. Once one of its subjects is under way again it does, unless another
// was faster.
const setRests = `UPDATE daybook_live SET rests = CAST($2 AS BIGINT),
  line = CASE WHEN CAST($2 AS BIGINT) = 1 THEN '' ELSE COALESCE((SELECT r.line FROM daybook_runs r WHERE r.key = daybook_live.key
    AND NOT EXISTS (SELECT 1 FROM daybook_live o WHERE o.line = r.line AND o.line <> '' AND o.state = 'running')), '') END
WHERE key = $1`

func (t *tx) rest(ctx context.Context, parent *daybook.Run, rests bool) error {
	_, err := t.exec(ctx, setRests, string(parent.Key), bit(rests))
	if err != nil && t.s.d.unique(err) {
		return errMet
	}
	return err
}
