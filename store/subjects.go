package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/daybook-run/daybook"
)

// Three looks into small indexes, and one into the runs of the subjects.
const countChildren = `SELECT state, count(*) FROM daybook_runs WHERE parent = $1 AND parent <> '' GROUP BY state`

const countLiveChildren = `SELECT state, hold, count(*) FROM daybook_live WHERE parent = $1 AND hold = 'turn' GROUP BY state, hold
UNION ALL SELECT state, hold, count(*) FROM daybook_live WHERE parent = $1 AND parent <> '' AND hold <> 'turn' GROUP BY state, hold`

const countChildLetters = `SELECT kind, count(*) FROM daybook_letters WHERE parent = $1 AND parent <> '' AND state = 'open' GROUP BY kind`

const selectFan = `SELECT subjects, repeated, faulty, fault, vanished, breaker FROM daybook_fans WHERE key = $1`

// Subjects implements daybook.Reader.
func (s *Store) Subjects(ctx context.Context, k daybook.Key) (daybook.SubjectCounts, error) {
	c := daybook.SubjectCounts{States: make(map[daybook.State]int64)}
	read := func(statement string, each func(*sql.Rows) error) error {
		return s.read(ctx, "count the subjects of "+string(k), statement, each, string(k))
	}
	states := read(countChildren, func(rows *sql.Rows) error {
		var state daybook.State
		var n int64
		err := rows.Scan(&state, &n)
		c.Of += n
		if state != "" {
			c.States[state] = n
		}
		return err
	})
	live := read(countLiveChildren, func(rows *sql.Rows) error {
		var state daybook.State
		var hold daybook.Reason
		var n int64
		err := rows.Scan(&state, &hold, &n)
		switch hold {
		case daybook.HoldTurn:
			c.Waiting += n
		case daybook.ReasonSerial:
			c.Held += n
		}
		c.States[state] += n
		return err
	})
	letters := read(countChildLetters, func(rows *sql.Rows) error {
		var kind daybook.LetterKind
		var n int64
		err := rows.Scan(&kind, &n)
		if kind == daybook.LetterUnknown {
			c.Unknown = n
		} else {
			c.Letters += n
		}
		return err
	})
	var breaker string
	fan := read(selectFan, func(rows *sql.Rows) error {
		var subjects int64
		return rows.Scan(&subjects, &c.Repeated, &c.Faulty, &c.Fault, &c.Vanished, &breaker)
	})
	if err := errors.Join(states, live, letters, fan); err != nil {
		return c, err
	}
	if breaker != "" {
		var b daybook.Breaker
		if err := json.Unmarshal([]byte(breaker), &b); err != nil {
			return c, err
		}
		if c.Won = b.Won; b.Open {
			c.Breaker = &b
		}
	}
	return c, nil
}

// A run that is live has its attempts and its error in the small table.
const selectTroubled = `SELECT r.key FROM daybook_runs r LEFT JOIN daybook_live l ON l.key = r.key
WHERE r.parent = $1 AND r.parent <> '' AND (r.attempts > 1 OR r.triggers > 0 OR r.last_error <> '' OR r.reason IN ('undoing', 'undone', 'compensated')
  OR COALESCE(l.attempts, 0) > 1 OR COALESCE(l.last_error, '') <> '')
ORDER BY r.key LIMIT $2`

const selectUndone = `SELECT key FROM daybook_runs WHERE parent = $1 AND parent <> '' AND reason IN ('undoing', 'undone', 'compensated') ORDER BY key LIMIT $2`

// Troubled implements daybook.Reader.
func (s *Store) Troubled(ctx context.Context, k daybook.Key, limit int) ([]daybook.Key, error) {
	return s.childKeys(ctx, "find what to tell of the subjects of ", selectTroubled, k, limit)
}

// UndoneSubjects implements daybook.Reader.
func (s *Store) UndoneSubjects(ctx context.Context, k daybook.Key, limit int) ([]daybook.Key, error) {
	return s.childKeys(ctx, "find the undone subjects of ", selectUndone, k, limit)
}

func (s *Store) childKeys(ctx context.Context, what, statement string, k daybook.Key, limit int) (keys []daybook.Key, err error) {
	err = s.read(ctx, what+string(k), statement, func(rows *sql.Rows) error {
		var child daybook.Key
		err := rows.Scan(&child)
		keys = append(keys, child)
		return err
	}, string(k), limited(limit))
	return keys, err
}

const turnKeys = `UPDATE daybook_live SET hold = 'turn' WHERE key /*in $1*/ AND hold = '' AND state <> 'running'
  AND EXISTS (SELECT 1 FROM daybook_live p WHERE p.key = daybook_live.parent)`

const selectReplayable = `SELECT l.key FROM daybook_letters l WHERE l.parent = $1 AND l.parent <> '' AND l.state = 'open' AND l.kind <> 'unknown' AND l.key > $2
ORDER BY l.key LIMIT $3`

// ReplaySubjects implements daybook.Desk.
func (s *Store) ReplaySubjects(ctx context.Context, k, after daybook.Key, who, note string, now time.Time) (replayed []daybook.Key, next daybook.Key, err error) {
	mine := func(ctx context.Context, t *tx) (bool, error) {
		if len(replayed) == 0 {
			return false, nil
		}
		return exists(selectReplayed, string(replayed[0]), us(now))(ctx, t)
	}
	err = s.provedWrite(ctx, "replay the subjects of "+string(k), mine, func(ctx context.Context, t *tx) error {
		replayed, next = replayed[:0], ""
		var keys []string
		if err := t.query(ctx, selectReplayable, func(rows *sql.Rows) error {
			var k string
			err := rows.Scan(&k)
			keys = append(keys, k)
			return err
		}, string(k), string(after), int64(childrenMoved)); err != nil || len(keys) == 0 {
			return err
		}
		if len(keys) == childrenMoved {
			next = daybook.Key(keys[len(keys)-1])
		}
		if err := t.moveEach(ctx, keys, func(r *daybook.Run) (daybook.Transition, error) {
			m, err := r.Replay(who, note, now)
			if err == nil {
				replayed = append(replayed, r.Key)
			}
			return m, err
		}); err != nil {
			return err
		}
		return t.turn(ctx, keys)
	})
	return replayed, next, err
}

const selectSubjectLetters = `SELECT key FROM daybook_letters WHERE parent = $1 AND parent <> '' AND state = 'open' AND (kind = 'unknown') = ($2 = 1) ORDER BY key LIMIT $3`

// SubjectLetters implements daybook.Reader.
func (s *Store) SubjectLetters(ctx context.Context, parent daybook.Key, unknown bool, limit int) ([]daybook.Key, error) {
	var keys []daybook.Key
	err := s.read(ctx, "list the letters of the subjects of "+string(parent), selectSubjectLetters, func(rows *sql.Rows) error {
		var k daybook.Key
		err := rows.Scan(&k)
		keys = append(keys, k)
		return err
	}, string(parent), bit(unknown), limited(limit))
	return keys, err
}

const selectLettersToReplay = letterColumns + `WHERE state = 'open' AND kind <> 'unknown' AND key > $1 AND ($2 = '' OR job = $2) ORDER BY key LIMIT $3`

// LettersToReplay implements daybook.Reader.
func (s *Store) LettersToReplay(ctx context.Context, job string, after daybook.Key, limit int) ([]daybook.Letter, error) {
	var list []daybook.Letter
	err := s.read(ctx, "read dead letters", selectLettersToReplay, func(rows *sql.Rows) error {
		l, err := scanLetter(rows)
		list = append(list, l)
		return err
	}, string(after), job, limited(limit))
	return list, err
}

// Few jobs count differently for each subject.
const selectCountsOf = `SELECT counts, count(*) FROM daybook_runs WHERE parent = $1 AND parent <> '' AND state = 'done' AND counts <> '' GROUP BY counts LIMIT 1000`

// countsOf adds up what the runs of the subjects counted.
func (t *tx) countsOf(ctx context.Context, parent daybook.Key) (map[string]int64, error) {
	var sum map[string]int64
	err := t.query(ctx, selectCountsOf, func(rows *sql.Rows) error {
		var text string
		var n int64
		if err := rows.Scan(&text, &n); err != nil {
			return err
		}
		var one map[string]int64
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			return err
		}
		for name, c := range one {
			if sum == nil {
				sum = make(map[string]int64)
			}
			sum[name] += c * n
		}
		return nil
	}, string(parent))
	return sum, err
}
