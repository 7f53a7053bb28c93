package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
)

// Freezes. The claim decides: it reads them in its own transaction, and puts off what is due until they are over. Who was put
// off is due at its new instant like anything else, so that nothing has to be let go when a freeze ends by time.

// On PostgreSQL whoever claims, or puts a run off, shares a lock that whoever begins or ends a freeze has alone: a claim that did
// not see the freeze is over when it has begun, and nothing is put off for a freeze that has ended. SQLite has one writer.
const (
	shareFreezes = `SELECT pg_advisory_xact_lock_shared(7239027104)`
	holdFreezes  = `SELECT pg_advisory_xact_lock(7239027104)`
)

func (t *tx) lockFreezes(ctx context.Context, statement string) error {
	if t.s.d.name != "postgres" {
		return nil
	}
	_, err := t.ExecContext(ctx, statement)
	return err
}

const freezeColumns = `SELECT name, priority, from_us, CASE WHEN ended_us = 0 THEN until_us ELSE ended_us END, actor, note FROM daybook_freezes `

const selectStandingFreezes = freezeColumns + `WHERE ended_us = 0 AND until_us > $1 ORDER BY until_us, name`

const selectFreezes = freezeColumns + `WHERE until_us > $1 ORDER BY from_us, name`

func scanFreeze(into *[]daybook.Freeze) func(rows *sql.Rows) error {
	return func(rows *sql.Rows) error {
		var f daybook.Freeze
		var from, until int64
		err := rows.Scan(&f.Name, &f.Only, &from, &until, &f.Actor, &f.Note)
		f.From, f.Until = at(from), at(until)
		*into = append(*into, f)
		return err
	}
}

// standingFreezes returns those of the ledger that are not over, and of a file, for who may put a run off. Most of the time there
// is none, and no lock is asked for.
func (t *tx) standingFreezes(ctx context.Context, ofFile []daybook.Freeze, now time.Time) ([]daybook.Freeze, error) {
	list, err := t.freezes(ctx, now)
	if err == nil && len(list) > 0 {
		if err = t.lockFreezes(ctx, shareFreezes); err == nil {
			list, err = t.freezes(ctx, now) // one may have ended meanwhile
		}
	}
	return append(list, ofFile...), err
}

// freezes returns those of the ledger that are not over.
func (t *tx) freezes(ctx context.Context, now time.Time) ([]daybook.Freeze, error) {
	var list []daybook.Freeze
	return list, t.query(ctx, selectStandingFreezes, scanFreeze(&list), us(now))
}

// Freezes implements daybook.Reader and daybook.Planner.
func (s *Store) Freezes(ctx context.Context, after time.Time) ([]daybook.Freeze, error) {
	var list []daybook.Freeze
	err := s.read(ctx, "read freezes", selectFreezes, scanFreeze(&list), us(after))
	kept := list[:0]
	for _, f := range list {
		if f.Until.After(after) { // else it was ended before
			kept = append(kept, f)
		}
	}
	return kept, err
}

const endOver = `UPDATE daybook_freezes SET ended_us = until_us WHERE ended_us = 0 AND until_us <= $1`

const insertFreeze = `INSERT INTO daybook_freezes (id, name, priority, from_us, until_us, actor, note) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) WHERE ended_us = 0 DO NOTHING`

// StartFreeze implements daybook.Desk.
func (s *Store) StartFreeze(ctx context.Context, f daybook.Freeze, act daybook.Activity) (started bool, err error) {
	err = s.provedWrite(ctx, "start freeze "+f.Name, s.acted(&act), func(ctx context.Context, t *tx) error {
		if err := t.lockFreezes(ctx, holdFreezes); err != nil {
			return err
		}
		if _, err := t.exec(ctx, endOver, us(f.From)); err != nil {
			return err
		}
		n, err := t.exec(ctx, insertFreeze, s.newID(), f.Name, string(f.Only), us(f.From), us(f.Until), clean(f.Actor, daybook.MaxActorBytes), clean(f.Note, daybook.MaxReasonBytes))
		if started = n > 0; err != nil || !started {
			return err
		}
		return t.insertActivity(ctx, &act)
	})
	return started, err
}

const endFreeze = `UPDATE daybook_freezes SET ended_us = $2, ended_by = $3 WHERE name = $1 AND ended_us = 0 AND until_us > $2`

// What was put off starts spread as it would have been, and not before it was meant to.
const thaw = `UPDATE daybook_live SET due_us = CASE WHEN meant_us > $1 + due_us - frozen_us THEN meant_us ELSE $1 + due_us - frozen_us END,
  frozen_us = 0, meant_us = 0 WHERE ` + isFrozen

const isFrozen = `frozen_us > 0 AND frozen_us > $1 AND state <> 'running' AND asking = ''`

const thawPart = thaw + ` AND home = $2 AND priority = $3 AND frozen_us = $4`

const selectFrozenEnds = `SELECT DISTINCT priority, frozen_us FROM daybook_live WHERE ` + isFrozen + ` AND home = $2`

// Thaw implements daybook.Claimer.
func (s *Store) Thaw(ctx context.Context, home string, ofFile func(at time.Time) []daybook.Freeze, now time.Time) (thawed bool, err error) {
	type end struct {
		p  daybook.Priority
		us int64
	}
	var ends []end
	scan := func(rows *sql.Rows) error {
		var e end
		err := rows.Scan(&e.p, &e.us)
		ends = append(ends, e)
		return err
	}
	if err := s.read(ctx, "read until when runs are frozen", selectFrozenEnds, scan, us(now), home); err != nil || len(ends) == 0 {
		return false, err
	}
	nobody := func(freezes []daybook.Freeze, e end) bool {
		last := at(e.us).Add(-time.Microsecond)
		return !slices.ContainsFunc(append(freezes, ofFile(last)...), func(f daybook.Freeze) bool { return us(f.Until) == e.us && f.Holds(e.p, last) })
	}
	standing, err := s.Freezes(ctx, now)
	ends = slices.DeleteFunc(ends, func(e end) bool { return !nobody(standing, e) })
	if err != nil || len(ends) == 0 {
		return false, err
	}
	return true, s.write(ctx, "let go what no freeze holds", func(ctx context.Context, t *tx) error {
		if err := t.lockFreezes(ctx, holdFreezes); err != nil {
			return err
		}
		standing, err := t.freezes(ctx, now)
		if err != nil {
			return err
		}
		for _, e := range ends {
			if nobody(standing, e) {
				if _, err := t.exec(ctx, thawPart, us(now), home, string(e.p), e.us); err != nil {
					return err
				}
			}
		}
		t.wakes = true
		return nil
	})
}

// EndFreeze implements daybook.Desk. What another freeze still holds is put off again when it is due.
func (s *Store) EndFreeze(ctx context.Context, name string, act daybook.Activity) (ended bool, err error) {
	err = s.provedWrite(ctx, "end freeze "+name, s.acted(&act), func(ctx context.Context, t *tx) error {
		if err := t.lockFreezes(ctx, holdFreezes); err != nil {
			return err
		}
		n, err := t.exec(ctx, endFreeze, name, us(act.At), clean(act.Actor, daybook.MaxActorBytes))
		if ended = n > 0; err != nil || !ended {
			return err
		}
		if _, err := t.exec(ctx, thaw, us(act.At)); err != nil {
			return err
		}
		t.wakes = true
		return t.insertActivity(ctx, &act)
	})
	return ended, err
}

// What a freeze holds, not looking at what else it waits for: that is seen after it.
const frozenDue = `l.state <> 'running' AND l.hold = '' AND l.asking = '' AND l.due_us <= $1`

const selectFrozenDue = `SELECT l.key FROM daybook_live l WHERE l.lane = $2 AND l.home = $3 AND l.priority = $4 AND ` + frozenDue + `
  ORDER BY l.due_us LIMIT $5 /*lock*/`

const selectOneFrozen = `SELECT l.key FROM daybook_live l WHERE l.key = $2 AND l.priority = $3 AND ` + frozenDue + ` /*lock*/`

const putOff = `WITH v (key, due_us, frozen_us) AS (/*rows t b b*/)
UPDATE daybook_live SET meant_us = CASE WHEN daybook_live.frozen_us = 0 THEN daybook_live.due_us ELSE daybook_live.meant_us END, due_us = v.due_us, frozen_us = v.frozen_us
FROM v WHERE daybook_live.key = v.key`

// putOffBatch bounds what one claim puts off; what is left comes with the next.
const putOffBatch = 5000

// putOff puts off runs of a priority that a freeze holds now.
func (t *tx) putOff(ctx context.Context, keys []string, freezes []daybook.Freeze, p daybook.Priority, now time.Time) error {
	rows := make([][]any, 0, len(keys))
	for _, k := range keys {
		if due, until := daybook.Thaw(freezes, daybook.Key(k), p, now); !until.IsZero() {
			rows = append(rows, []any{k, us(due), us(until)})
		}
	}
	return t.bulk(ctx, putOff, rows, nil)
}

// putOffDue puts off what a claim asks for.
func (t *tx) putOffDue(ctx context.Context, c daybook.Claim, freezes []daybook.Freeze, p daybook.Priority, now time.Time) error {
	statement, args := selectFrozenDue, []any{us(now), string(c.Lane), c.Home, string(p), int64(putOffBatch)}
	if c.Key != "" {
		statement, args = selectOneFrozen, []any{us(now), string(c.Key), string(p)}
	}
	keys, err := t.texts(ctx, statement, args...)
	if err != nil {
		return err
	}
	return t.putOff(ctx, keys, freezes, p, now)
}

const selectLanding = `SELECT key, priority, due_us FROM daybook_live WHERE key /*in $1*/ AND state <> 'running' AND asking = ''`

// land puts off those of the runs that would be due in a freeze that is known now.
func (t *tx) land(ctx context.Context, keys []string, ofFile []daybook.Freeze, now time.Time) error {
	freezes, err := t.standingFreezes(ctx, ofFile, now)
	if err != nil || len(freezes) == 0 || len(keys) == 0 {
		return err
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return err
	}
	var rows [][]any
	if err := t.query(ctx, selectLanding, func(r *sql.Rows) error {
		var k daybook.Key
		var p daybook.Priority
		var due int64
		err := r.Scan(&k, &p, &due)
		if later := max(due, us(now)); err == nil {
			if due, until := daybook.Thaw(freezes, k, p, at(later)); !until.IsZero() {
				rows = append(rows, []any{string(k), us(due), us(until)})
			}
		}
		return err
	}, list); err != nil {
		return err
	}
	return t.bulk(ctx, putOff, rows, nil)
}

const selectFrozen = `SELECT ` + runColumns + ` WHERE r.key IN (SELECT f.key FROM daybook_live f WHERE f.frozen_us > 0 AND f.frozen_us > $1 AND f.state <> 'running' ORDER BY f.frozen_us LIMIT $2)`

const countFrozen = `SELECT count(*) FROM daybook_live WHERE frozen_us > 0 AND frozen_us > $1 AND state <> 'running'`

// Frozen implements daybook.Reader.
func (s *Store) Frozen(ctx context.Context, now time.Time, limit int) (runs []*daybook.Run, total int, err error) {
	if err := s.read(ctx, "count what is frozen", countFrozen, func(rows *sql.Rows) error { return rows.Scan(&total) }, us(now)); err != nil || total == 0 {
		return nil, total, err
	}
	err = s.read(ctx, "list what is frozen", selectFrozen, func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		runs = append(runs, r)
		return err
	}, us(now), limited(limit))
	return runs, total, err
}

const selectComing = `SELECT ` + runColumns + ` WHERE r.key IN (SELECT f.key FROM daybook_live f WHERE f.priority = 'P0' AND f.reason <> 'fanned out'
  AND (f.lease_us > 0 OR f.state <> 'running' AND f.due_us < $1 AND f.hold NOT IN ('paused', 'no definition')) LIMIT $2)`

// Coming implements daybook.Reader.
func (s *Store) Coming(ctx context.Context, before time.Time, limit int) ([]*daybook.Run, error) {
	var runs []*daybook.Run
	err := s.read(ctx, "list what is under way", selectComing, func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		runs = append(runs, r)
		return err
	}, us(before), limited(limit))
	return runs, err
}
