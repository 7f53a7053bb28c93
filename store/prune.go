package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/daybook-run/daybook"
)

// What may be emptied: runs that ended long ago, or lie beyond the newest so many of their job. A run with an open letter
// is kept whole. The index on unpruned runs makes both look-ups independent of history. Of runs that ended at one instant
// the key decides which is newer, so that a limit by number never takes more than it must.
const selectOld = `SELECT r.key FROM daybook_runs r WHERE r.job = $1 AND r.pruned_us = 0 AND r.ended_us > 0 AND r.ended_us <= $2
  AND (r.ended_us < $2 OR r.key <= $3)
  AND r.state <> '' AND NOT EXISTS (SELECT 1 FROM daybook_letters d WHERE d.key = r.key AND d.state = 'open') ORDER BY r.ended_us LIMIT $4`

// Locked, a run cannot go live again before its logs are gone.
const lockOld = selectOld + ` /*lock*/`

const selectNth = `SELECT r.ended_us, r.key FROM daybook_runs r WHERE r.job = $1 AND r.pruned_us = 0 AND r.ended_us > 0
ORDER BY r.ended_us DESC, r.key DESC LIMIT 1 OFFSET $2`

const pruneRuns = `UPDATE daybook_runs SET pruned_us = $2 WHERE key /*in $1*/`

// What nothing goes on from, and nobody takes back any more: a function that undoes comes through all of its steps with all of their
// results, and with the payload. What was cancelled, dismissed or skipped may yet run.
const selectSpent = `SELECT r.key FROM daybook_runs r WHERE r.key /*in $1*/ AND (r.state = 'coalesced' OR r.reason IN ('undone', 'compensated')
  OR r.state = 'done' AND r.reason <> 'undoing' AND CAST($2 AS BIGINT) = 0
    AND NOT EXISTS (SELECT 1 FROM daybook_steps s WHERE s.key = r.key AND (s.undoes = 1 OR s.undo <> '')))`

const pruneTexts = `UPDATE daybook_runs SET payload = '', result = '' WHERE key /*in $1*/ AND (payload <> '' OR result <> '')`

const pruneAttempts = `DELETE FROM daybook_attempts WHERE key /*in $1*/`

const pruneOutputs = `DELETE FROM daybook_outputs WHERE key /*in $1*/`

// The effect keeps its state: it is what stops a second beginning. Only what it handed back is emptied.
const pruneSteps = `UPDATE daybook_steps SET data = '' WHERE key /*in $1*/ AND data <> ''`

// Of the triggers the first is kept, as the run keeps its count, and so is each schedule fire inside the look-back: the
// newer ones are what the scan does not need. Triggers of pruned runs beyond the first go.
const pruneTriggers = `DELETE FROM daybook_triggers WHERE key /*in $1*/ AND id > (SELECT min(f.id) FROM daybook_triggers f WHERE f.key = daybook_triggers.key)`

// A send that was made, given up or dropped keeps its key, its subject and how it ended.
const pruneSends = `UPDATE daybook_sends SET body = '', short = '', data = '' WHERE key IN
  (SELECT key FROM daybook_sends WHERE state <> 'due' AND ended_us > 0 AND ended_us <= $1 AND body <> '' ORDER BY ended_us LIMIT $2)`

const selectJobNames = `SELECT name FROM daybook_jobs ORDER BY name`

// Prune implements daybook.PruneStore.
func (s *Store) Prune(ctx context.Context, r daybook.Retention, now time.Time, limit int, dry bool) (int, error) {
	var jobs []string
	if err := s.read(ctx, "list jobs to prune", selectJobNames, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		jobs = append(jobs, name)
		return err
	}); err != nil {
		return 0, err
	}
	pruned := 0
	for _, job := range jobs {
		if limit <= pruned {
			break
		}
		n, err := s.pruneJob(ctx, job, r, now, limit-pruned, dry)
		pruned += n
		if err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}

// PruneSends implements daybook.PruneStore.
func (s *Store) PruneSends(ctx context.Context, before time.Time, limit int) (pruned int, err error) {
	err = s.write(ctx, "prune sends", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, pruneSends, us(before), int64(limit))
		pruned = int(n)
		return err
	})
	return pruned, err
}

func (s *Store) pruneJob(ctx context.Context, job string, r daybook.Retention, now time.Time, limit int, dry bool) (int, error) {
	before, newest := int64(0), "" // what ended before, and at that instant what has no greater key
	if r.Log > 0 {
		before = us(now.Add(-r.Log))
	}
	if r.LogRuns > 0 {
		if err := s.read(ctx, "count runs with a log", selectNth, func(rows *sql.Rows) error {
			var nth int64
			var key string
			err := rows.Scan(&nth, &key)
			if nth >= before {
				before, newest = nth, key
			}
			return err
		}, job, int64(r.LogRuns)); err != nil {
			return 0, err
		}
	}
	if before == 0 {
		return 0, nil
	}
	var keys []string
	find := func(q query, statement string) error {
		keys = keys[:0]
		return q(ctx, statement, func(rows *sql.Rows) error {
			var k string
			err := rows.Scan(&k)
			keys = append(keys, k)
			return err
		}, job, before, newest, int64(limit))
	}
	if err := find(s.reader("find runs to prune"), selectOld); err != nil || len(keys) == 0 || dry {
		return len(keys), err
	}
	kept, err := s.undoable(ctx, job)
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, "prune", func(ctx context.Context, t *tx) error {
		if err := find(t.query, lockOld); err != nil || len(keys) == 0 {
			return err
		}
		list, err := s.d.list(keys)
		if err != nil {
			return err
		}
		for _, statement := range []string{pruneAttempts, pruneOutputs, pruneTriggers} {
			if _, err := t.exec(ctx, statement, list); err != nil {
				return err
			}
		}
		if _, err = t.exec(ctx, pruneRuns, list, us(now)); err != nil {
			return err
		}
		spent, err := t.texts(ctx, selectSpent, list, bit(kept))
		if err != nil || len(spent) == 0 {
			return err
		}
		if list, err = s.d.list(spent); err != nil {
			return err
		}
		if _, err := t.exec(ctx, pruneSteps, list); err != nil {
			return err
		}
		_, err = t.exec(ctx, pruneTexts, list)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(keys), nil
}

// undoable reports whether the job has an undo, which needs the results of what it undoes.
func (s *Store) undoable(ctx context.Context, job string) (bool, error) {
	j, err := s.Definition(ctx, job)
	return err == nil && (!j.Undo.IsZero() || j.UndoURL != ""), err
}
