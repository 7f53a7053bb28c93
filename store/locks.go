package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Serial keys. The lock is a row: whoever claims a run inserts it in the transaction of the claim, and whoever ends the
// attempt deletes it in the transaction of the end, unless an effect is unknown then. A run that meets the lock of another
// is parked, out of the index of what is due, and is let go, the first of those that wait, in the transaction that deletes
// the lock.
//
// Whoever parks shares the row of the lock that he saw, and whoever deletes one has it alone: so that a run is never parked
// for a lock that is gone when both have committed. A claim holds what others wait for, so it waits for nobody: a serial key
// that is taken or let go by another transaction at this moment is passed over until the next claim.

// selectLocksOf finds who has serial keys, and shares the locks that nobody is about to delete.
const selectLocksOf = `SELECT k.serial, k.key, CASE WHEN s.serial IS NULL THEN 0 ELSE 1 END FROM daybook_locks k
  LEFT JOIN (SELECT serial FROM daybook_locks WHERE serial /*in $1*/ /*share*/) s ON s.serial = k.serial WHERE k.serial /*in $1*/`

const holdLocksOf = `SELECT serial, key FROM daybook_locks WHERE serial /*in $1*/ ORDER BY serial /*wait*/`

// insertLocks takes locks that nobody has, but those that another claim takes at this moment.
const insertLocks = `WITH v (serial, key, since_us) AS (/*rows t t b*/)
INSERT INTO daybook_locks (serial, key, since_us) SELECT * FROM v WHERE /*alone v.serial*/ ON CONFLICT (serial) DO NOTHING RETURNING serial`

const parkSerial = `UPDATE daybook_live SET hold = 'waiting for serial key' WHERE key /*in $1*/ AND hold = ''`

// choice is what a claim has decided: the runs it takes, in their order, and those it passes over.
type choice struct {
	mine   []string
	passed map[string]bool
}

func (c *choice) has(f candidate) bool { return c.passed[f.key] || slices.Contains(c.mine, f.key) }

// lock is who has a serial key; firm: and still has it when this transaction is committed.
type lock struct {
	key  string
	firm bool
}

// choose decides about candidates. Those whose serial key is free, or their own, are taken, up to n in all; those whose key
// another run has, or takes now, are parked.
func (t *tx) choose(ctx context.Context, c *choice, found []candidate, n int, now time.Time) error {
	locks, err := t.locksOf(ctx, found)
	if err != nil {
		return err
	}
	var mine, behind []candidate
	var take [][]any
	for _, f := range found {
		l := locks[f.serial]
		if l.key != "" && l.key != f.key {
			behind = append(behind, f)
			continue
		}
		if len(c.mine)+len(mine) == n {
			continue
		}
		if f.serial != "" && l.key == "" {
			locks[f.serial] = lock{key: f.key}
			take = append(take, []any{f.serial, f.key, us(now)})
		}
		mine = append(mine, f)
	}
	if err := t.bulk(ctx, insertLocks, take, func(rows *sql.Rows) error {
		var serial string
		err := rows.Scan(&serial)
		locks[serial] = lock{key: locks[serial].key, firm: true}
		return err
	}); err != nil {
		return err
	}
	for _, f := range mine {
		if f.serial == "" || locks[f.serial].firm {
			c.mine = append(c.mine, f.key)
		} else {
			c.passed[f.key] = true
		}
	}
	var park []string
	var held [][]any
	for _, f := range behind {
		l := locks[f.serial]
		if !l.firm {
			c.passed[f.key] = true
			continue
		}
		park = append(park, f.key)
		if parent := parentOf(f.key); parent != "" && parent != parentOf(l.key) {
			held = append(held, []any{parent, t.s.newID(), f.key, us(now)})
		}
	}
	if err := t.bulk(ctx, insertHeld, held, nil); err != nil {
		return err
	}
	return t.parkSerial(ctx, park)
}

// parentOf returns the key under which the run of a subject stands; empty: it is none.
func parentOf(key string) string {
	if i := strings.IndexByte(key, '/'); i >= 0 {
		return key[:i]
	}
	return ""
}

// locksOf returns who has the serial keys of candidates.
func (t *tx) locksOf(ctx context.Context, found []candidate) (map[string]lock, error) {
	var serials []string
	for _, f := range found {
		if f.serial != "" {
			serials = append(serials, f.serial)
		}
	}
	locks := make(map[string]lock)
	if len(serials) == 0 {
		return locks, nil
	}
	list, err := t.s.d.list(serials)
	if err != nil {
		return nil, err
	}
	return locks, t.query(ctx, selectLocksOf, func(rows *sql.Rows) error {
		var serial string
		var l lock
		err := rows.Scan(&serial, &l.key, &l.firm)
		locks[serial] = l
		return err
	}, list)
}

func (t *tx) parkSerial(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	list, err := t.s.d.list(keys)
	if err == nil {
		_, err = t.exec(ctx, parkSerial, list)
	}
	return err
}

// holders returns who has the locks of serial keys, and keeps others from them; a key that nobody has is missing.
func (t *tx) holders(ctx context.Context, serials []string) (map[string]string, error) {
	holders := make(map[string]string, len(serials))
	list, err := t.s.d.list(serials)
	if err != nil {
		return nil, err
	}
	return holders, t.query(ctx, holdLocksOf, func(rows *sql.Rows) error {
		var serial, key string
		err := rows.Scan(&serial, &key)
		holders[serial] = key
		return err
	}, list)
}

// ended is a run that was moved and has a serial key.
type ended struct{ key, serial string }

func (t *tx) hasEnded(k daybook.Key, serial string) {
	if serial != "" {
		t.ended = append(t.ended, ended{string(k), serial})
	}
}

// A run keeps its lock while it is claimed, and while one of its effects is open: begun and not ended, or unknown. Each lock looks for
// itself: asked whether such a row exists, PostgreSQL would rather go through the steps of all time.
const keepsLock = `COALESCE((SELECT 1 FROM daybook_live l WHERE l.key = daybook_locks.key AND l.lease_us > 0),
  (SELECT 1 FROM daybook_steps s WHERE s.key = daybook_locks.key AND s.effect = 1 AND s.state IN ('begun', 'unknown') LIMIT 1), 0) = 1`

const deleteLocks = `DELETE FROM daybook_locks WHERE key /*in $1*/ AND NOT (` + keepsLock + `) RETURNING serial`

const closeStuck = `UPDATE daybook_alerts SET closed_us = $2 WHERE kind = 'serial_stuck' AND key /*in $1*/ AND closed_us = 0
  AND NOT EXISTS (SELECT 1 FROM daybook_locks k WHERE k.key = daybook_alerts.key)`

const wakeSerial = `UPDATE daybook_live SET hold = '' WHERE hold = 'waiting for serial key' AND key = (SELECT w.key FROM daybook_live w
  WHERE w.serial = $1 AND w.hold = 'waiting for serial key' ORDER BY w.priority, w.due_us, w.key LIMIT 1 /*lock*/)`

// freeSerial lets go the locks of runs that were moved, as far as they need them no more, and for each serial key that is free
// then the first run that waits for it.
func (t *tx) freeSerial(ctx context.Context, now time.Time) error {
	moved := t.ended
	if t.ended = nil; len(moved) == 0 {
		return nil
	}
	serials := make([]string, len(moved))
	keys := make([]string, len(moved))
	for i, e := range moved {
		keys[i], serials[i] = e.key, e.serial
	}
	slices.Sort(serials)
	serials = slices.Compact(serials)
	holders, err := t.holders(ctx, serials)
	if err != nil {
		return err
	}
	var had []string
	for _, key := range holders {
		if slices.Contains(keys, key) {
			had = append(had, key)
		}
	}
	if len(had) > 0 {
		list, err := t.s.d.list(had)
		if err != nil {
			return err
		}
		if err := t.query(ctx, deleteLocks, func(rows *sql.Rows) error {
			var serial string
			err := rows.Scan(&serial)
			delete(holders, serial)
			return err
		}, list); err != nil {
			return err
		}
		if _, err := t.exec(ctx, closeStuck, list, us(now)); err != nil {
			return err
		}
	}
	return t.wakeFree(ctx, serials, holders)
}

const selectWaited = `WITH v (serial) AS (/*rows t*/)
SELECT v.serial FROM v WHERE EXISTS (SELECT 1 FROM daybook_live w WHERE w.serial = v.serial AND w.hold = 'waiting for serial key')`

// wakeFree lets go the first run that waits for each serial key without a holder.
func (t *tx) wakeFree(ctx context.Context, serials []string, holders map[string]string) error {
	serials = slices.DeleteFunc(serials, func(s string) bool { return holders[s] != "" })
	rows := make([][]any, len(serials))
	for i, serial := range serials {
		rows[i] = []any{serial}
	}
	var waited []string
	if err := t.bulk(ctx, selectWaited, rows, func(rows *sql.Rows) error {
		var serial string
		err := rows.Scan(&serial)
		waited = append(waited, serial)
		return err
	}); err != nil {
		return err
	}
	t.wakes = t.wakes || len(waited) > 0
	for _, serial := range waited {
		if _, err := t.exec(ctx, wakeSerial, serial); err != nil {
			return err
		}
	}
	return nil
}

// texts returns the one column that a query answers.
func (t *tx) texts(ctx context.Context, statement string, args ...any) ([]string, error) {
	var list []string
	err := t.query(ctx, statement, func(rows *sql.Rows) error {
		var s string
		err := rows.Scan(&s)
		list = append(list, s)
		return err
	}, args...)
	return list, err
}

const selectForgotten = `SELECT serial FROM daybook_locks WHERE NOT (` + keepsLock + `) ORDER BY serial LIMIT $1`

const selectParkedFree = `SELECT DISTINCT w.serial FROM daybook_live w WHERE w.hold = 'waiting for serial key'
  AND NOT EXISTS (SELECT 1 FROM daybook_locks k WHERE k.serial = w.serial) LIMIT $1`

const anyForgotten = `SELECT CASE WHEN EXISTS (SELECT 1 FROM daybook_locks WHERE NOT (` + keepsLock + `))
  OR EXISTS (SELECT 1 FROM daybook_live w WHERE w.hold = 'waiting for serial key' AND NOT EXISTS (SELECT 1 FROM daybook_locks k WHERE k.serial = w.serial)) THEN 1 ELSE 0 END`

// unparkBatch bounds the serial keys that are looked at in one Unpark.
const unparkBatch = 500

// Unpark implements daybook.Claimer. The run that was let go last may be one that nobody claims now: its lane is full, its
// program away, its job paused. So others that wait for a key that is free go too, one at a time.
func (s *Store) Unpark(ctx context.Context, now time.Time) (more bool, err error) {
	found := int64(0)
	if err := s.read(ctx, "look for what waits for nothing", anyForgotten, func(rows *sql.Rows) error { return rows.Scan(&found) }); err != nil || found == 0 {
		return false, err
	}
	err = s.write(ctx, "let go what waits for nothing", func(ctx context.Context, t *tx) error {
		forgotten, err := t.texts(ctx, selectForgotten, int64(unparkBatch))
		if err != nil {
			return err
		}
		free, err := t.texts(ctx, selectParkedFree, int64(unparkBatch))
		if err != nil || len(forgotten)+len(free) == 0 {
			return err
		}
		more = true
		serials := slices.Compact(slices.Sorted(slices.Values(append(forgotten, free...))))
		holders, err := t.holders(ctx, serials)
		if err != nil {
			return err
		}
		for serial, key := range holders {
			if !slices.Contains(forgotten, serial) {
				continue
			}
			t.ended = append(t.ended, ended{key, serial})
		}
		if err := t.freeSerial(ctx, now); err != nil {
			return err
		}
		return t.wakeFree(ctx, free, holders)
	})
	return more, err
}

const lockColumns = `SELECT k.serial, k.key, k.since_us, (SELECT count(*) FROM daybook_live w WHERE w.serial = k.serial AND w.hold = 'waiting for serial key'),
  COALESCE((SELECT 1 FROM daybook_live l WHERE l.key = k.key AND l.lease_us > 0), 0),
  COALESCE((SELECT 1 FROM daybook_steps s WHERE s.key = k.key AND s.effect = 1 AND s.state IN ('begun', 'unknown') LIMIT 1), 0)
FROM daybook_locks k `

const selectLocks = lockColumns + `ORDER BY k.since_us, k.serial LIMIT $1`

const selectLock = lockColumns + `WHERE k.serial = $1`

const selectSubjectLocks = lockColumns + `WHERE k.serial IN (SELECT h.serial FROM daybook_live h WHERE h.parent = $2 AND h.parent <> '' AND h.hold <> 'turn'
  AND h.hold = 'waiting for serial key') ORDER BY k.since_us, k.serial LIMIT $1`

func (s *Store) locks(ctx context.Context, statement string, args ...any) ([]daybook.Lock, error) {
	var list []daybook.Lock
	err := s.read(ctx, "read serial keys", statement, func(rows *sql.Rows) error {
		var l daybook.Lock
		var since, claimed, open int64
		err := rows.Scan(&l.Serial, &l.Key, &since, &l.Waiting, &claimed, &open)
		l.Since, l.Claimed, l.Open = at(since), claimed != 0, open != 0
		list = append(list, l)
		return err
	}, args...)
	return list, err
}

// Locks implements daybook.Reader.
func (s *Store) Locks(ctx context.Context, limit int) ([]daybook.Lock, error) {
	return s.locks(ctx, selectLocks, limited(limit))
}

// Lock implements daybook.Reader.
func (s *Store) Lock(ctx context.Context, serial string) (*daybook.Lock, error) {
	list, err := s.locks(ctx, selectLock, serial)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// LocksOfSubjects implements daybook.Reader.
func (s *Store) LocksOfSubjects(ctx context.Context, parent daybook.Key, limit int) ([]daybook.Lock, error) {
	return s.locks(ctx, selectSubjectLocks, limited(limit), string(parent))
}

const selectAhead = `SELECT o.key FROM daybook_live l JOIN daybook_live o ON ` + ahead + `
WHERE l.key = $1 AND l.line <> '' AND l.state <> 'running' AND l.reason <> 'settling' ORDER BY CASE WHEN o.state = 'running' THEN 0 ELSE 1 END, o.start_us, o.key LIMIT 1`

// Ahead implements daybook.Reader.
func (s *Store) Ahead(ctx context.Context, k daybook.Key) (first daybook.Key, err error) {
	return first, s.read(ctx, "look what goes before "+string(k), selectAhead, func(rows *sql.Rows) error { return rows.Scan(&first) }, string(k))
}
