package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"

	"github.com/daybook-run/daybook"
)

// What ends leaves daybook_live, and what stood there goes to daybook_runs.

// endLive is all of it in one statement, for a database that lets a row that is deleted be read on. What it has to write of the live row,
// it compares with or reads from it.
const endLive = `WITH v (key, from_state, fence, claim, asking, seen_us, begun_us, cancelled_by, marks,
  state, reason, failures, losses, started_us, ended_us, error, result, result_hash, counts, keep, wrote) AS (/*rows t t b t t b b t b t t b b b b t t t t b b*/),
w AS (DELETE FROM daybook_live USING v WHERE daybook_live.key = v.key AND daybook_live.state = v.from_state AND daybook_live.fence = v.fence
  AND daybook_live.claim = v.claim AND daybook_live.asking = v.asking AND daybook_live.cancelled_by = v.cancelled_by AND daybook_live.marks = v.marks
  AND (v.seen_us < 0 OR daybook_live.lease_us = v.seen_us AND daybook_live.begun_us = v.begun_us)
  RETURNING v.*, daybook_live.node, daybook_live.attempts, daybook_live.last_error, daybook_live.serial, daybook_live.denied),
e AS (UPDATE daybook_runs SET state = w.state, reason = w.reason, fence = w.fence, claim = w.claim, node = w.node, attempts = w.attempts,
  failures = w.failures, losses = w.losses, last_error = CASE WHEN w.error = '' THEN w.last_error ELSE w.error END,
  marks = w.marks + w.wrote, denied = w.denied, pruned_us = 0,
  started_us = CASE WHEN w.keep = 1 THEN daybook_runs.started_us ELSE w.started_us END,
  ended_us = CASE WHEN w.keep = 1 THEN daybook_runs.ended_us ELSE w.ended_us END,
  result = CASE WHEN w.keep = 1 THEN daybook_runs.result ELSE w.result END,
  result_hash = CASE WHEN w.keep = 1 THEN daybook_runs.result_hash ELSE w.result_hash END,
  counts = CASE WHEN w.keep = 1 THEN daybook_runs.counts ELSE w.counts END
  FROM w WHERE daybook_runs.key = w.key)
SELECT key, serial FROM w`

// liveToRest moves what ends: the row leaves daybook_live, and what it held goes to daybook_runs.
func (t *tx) liveToRest(ctx context.Context, ts []daybook.Transition, moved map[daybook.Key]bool) error {
	var ends []*daybook.Transition
	for i := range ts {
		if m := &ts[i]; m.From.Live() && !m.To.Live() {
			ends = append(ends, m)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	return t.s.d.end(ctx, t, ends, func(k daybook.Key, serial string) {
		moved[k] = true
		t.hasEnded(k, serial)
	})
}

// endAtOnce ends runs by one statement.
func endAtOnce(ctx context.Context, t *tx, ends []*daybook.Transition, ended func(k daybook.Key, serial string)) error {
	rows := make([][]any, len(ends))
	for i, m := range ends {
		counts, err := countsJSON(m.Counts)
		if err != nil {
			return err
		}
		seen, begun := seenByRescue(m)
		rows[i] = []any{string(m.Key), string(m.From), m.Fence, m.Claim, m.Asking, seen, begun, m.CancelledBy, m.Marks,
			string(m.To), string(m.Reason), int64(m.Failures), int64(m.Losses), us(m.Began), us(m.At), clean(m.Error, daybook.MaxErrorBytes),
			cleanJSON(m.Data), digest(m.Data), counts, bit(m.Keep), raises(m)}
	}
	return t.rows(ctx, endLive, rows, func(rows *sql.Rows) error {
		var k daybook.Key
		var serial string
		err := rows.Scan(&k, &serial)
		ended(k, serial)
		return err
	})
}

const selectStanding = `SELECT key, state, fence, claim, asking, cancelled_by, marks, lease_us, begun_us, node, attempts, last_error, serial, denied
FROM daybook_live WHERE key /*in $1*/`

const dropLive = `DELETE FROM daybook_live WHERE key /*in $1*/`

const endRun = `UPDATE daybook_runs SET state = $2, reason = $3, fence = $4, claim = $5, node = $6, attempts = $7,
  failures = $8, losses = $9, last_error = $12, marks = $17, denied = $18, pruned_us = 0,
  started_us = CASE WHEN $16 = 1 THEN started_us ELSE $10 END, ended_us = CASE WHEN $16 = 1 THEN ended_us ELSE $11 END,
  result = CASE WHEN $16 = 1 THEN result ELSE $13 END, result_hash = CASE WHEN $16 = 1 THEN result_hash ELSE $14 END,
  counts = CASE WHEN $16 = 1 THEN counts ELSE $15 END
WHERE key = $1`

// endByTurns looks how all of them stand, and ends those that stand as they were believed to. Nobody else writes meanwhile: that is
// for SQLite.
func endByTurns(ctx context.Context, t *tx, ends []*daybook.Transition, ended func(k daybook.Key, serial string)) error {
	byKey, keys := make(map[daybook.Key]*daybook.Transition, len(ends)), make([]string, len(ends))
	for i, m := range ends {
		byKey[m.Key], keys[i] = m, string(m.Key)
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return err
	}
	keys = keys[:0]
	rows := make([][]any, 0, len(ends))
	if err := t.query(ctx, selectStanding, func(found *sql.Rows) error {
		var stands daybook.Transition
		var lease, begun, attempts int64
		var node, lastError, serial, denied string
		if err := found.Scan(&stands.Key, &stands.From, &stands.Fence, &stands.Claim, &stands.Asking, &stands.CancelledBy, &stands.Marks, &lease, &begun,
			&node, &attempts, &lastError, &serial, &denied); err != nil {
			return err
		}
		m := byKey[stands.Key]
		seen, began := seenByRescue(m)
		if m.From != stands.From || m.Fence != stands.Fence || m.Claim != stands.Claim || m.Asking != stands.Asking || m.CancelledBy != stands.CancelledBy ||
			m.Marks != stands.Marks || seen >= 0 && (seen != lease || began != begun) {
			return nil
		}
		row, err := restRow(m, node, attempts, lastError, denied)
		keys, rows = append(keys, string(m.Key)), append(rows, row)
		ended(m.Key, serial)
		return err
	}, list); err != nil || len(keys) == 0 {
		return err
	}
	if len(keys) < len(ends) {
		if list, err = t.s.d.list(keys); err != nil {
			return err
		}
	}
	if _, err := t.exec(ctx, dropLive, list); err != nil {
		return err
	}
	return t.bulk(ctx, endRun, rows, nil)
}

func restRow(m *daybook.Transition, node string, attempts int64, lastError, denied string) ([]any, error) {
	if m.Error != "" {
		lastError = clean(m.Error, daybook.MaxErrorBytes)
	}
	counts, err := countsJSON(m.Counts)
	return []any{string(m.Key), string(m.To), string(m.Reason), m.Fence, m.Claim, node, attempts, int64(m.Failures), int64(m.Losses),
		us(m.Began), us(m.At), lastError, cleanJSON(m.Data), digest(m.Data), counts, bit(m.Keep), m.Marks + raises(m), denied}, err
}

func digest(data json.RawMessage) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
