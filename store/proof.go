package store

import (
	"context"
	"database/sql"

	"github.com/daybook-run/daybook"
)

// exists is the proof by a row that a query finds.
func exists(statement string, args ...any) proof {
	return func(ctx context.Context, t *tx) (found bool, err error) {
		err = t.query(ctx, statement, func(*sql.Rows) error { found = true; return nil }, args...)
		return found, err
	}
}

const selectTrigger = `SELECT id FROM daybook_triggers WHERE key = $1 AND id = $2`

const selectKey = `SELECT key FROM daybook_runs WHERE key = $1`

const selectReplayed = `SELECT id FROM daybook_letters WHERE key = $1 AND state = 'replayed' AND closed_us = $2`

const selectAct = `SELECT id FROM daybook_activity WHERE id = $1`

// acted is the proof by the act of a person that the transaction records. The act gets its id here.
func (s *Store) acted(act *daybook.Activity) proof {
	s.name(act)
	return exists(selectAct, act.ID)
}

// name gives an act its id before it is written, so that it can be looked up.
func (s *Store) name(act *daybook.Activity) {
	if act != nil && act.ID == "" {
		act.ID = s.newID()
	}
}

const selectAttempted = `SELECT key FROM daybook_attempts WHERE key = $1 AND fence = $2 AND question = 0 AND claim = $3 AND ended_us = $4 AND result = $5`

const selectLate = `SELECT key FROM daybook_attempts WHERE key = $1 AND fence = $2 AND question = 0 AND late_us = $3 AND late_result = $4 AND late_taken = 1`

const selectMoved = `SELECT r.key FROM daybook_runs r LEFT JOIN daybook_live l ON l.key = r.key WHERE r.key = $1
  AND COALESCE(l.fence, r.fence) = $2 AND COALESCE(l.claim, r.claim) = $3 AND COALESCE(l.state, r.state) = $4
  AND (l.key IS NULL AND r.ended_us = $5 OR l.due_us = $6 AND l.lease_us = 0)`

// movedBefore is the proof that transitions were written: all are one transaction, so the traces of one prove all. applied
// is what the earlier try found out.
func movedBefore(ts []daybook.Transition, applied []daybook.Applied) proof {
	return func(ctx context.Context, t *tx) (bool, error) {
		for i := range ts {
			if m := &ts[i]; !applied[i].Stale {
				return trace(m)(ctx, t)
			}
		}
		return true, nil // all were stale: nothing was to be written
	}
}

// trace is the proof by what one transition leaves.
func trace(m *daybook.Transition) proof {
	switch a := m.Attempt; {
	case m.Activity != nil:
		return exists(selectAct, m.Activity.ID)
	case a != nil && a.LateResult != "":
		return exists(selectLate, string(a.Key), a.Fence, us(a.LateAt), string(a.LateResult))
	case a != nil:
		return exists(selectAttempted, string(a.Key), a.Fence, a.Claim, us(a.EndedAt), string(a.Result))
	}
	return exists(selectMoved, string(m.Key), m.Fence, m.Claim, string(m.To), us(m.At), us(m.Due))
}
