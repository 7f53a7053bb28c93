package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
)

// mark is what the holder of a run writes while he is at work: that its attempt begins, or that one of its steps begins or ended.
// Many at once share a transaction, one count of the node in whose name effects begin, and one line of the witness.
type mark struct {
	what    string // it is, for people
	key     daybook.Key
	row     []any     // of markRuns
	step    []any     // of upsertSteps; nil: the attempt has no effect
	trace   []any     // of selectStepMark
	effect  bool      // an effect begins
	holder  string    // the node in whose name
	at      time.Time // and when
	learned daybook.Learned

	// What became of it, for its caller once he was answered.
	with    int  // how many were written in one transaction
	whole   bool // nothing was missing but the commit
	written bool // false: its run is not held any more, or another transaction holds it up
}

// newMark takes all that is written from the run and the record, which their owner may change when he waits no longer.
func newMark(what string, r *daybook.Run, e *daybook.StepRecord) *mark {
	m := &mark{what: what, key: r.Key, holder: r.Node}
	if e != nil {
		m.step, m.at = stepRow(e), e.FirstAt
		m.trace = []any{string(e.Key), e.Step, string(e.State), e.Fence, int64(e.Tries), int64(e.Generation), us(e.EndedAt), r.Claim}
		m.effect = e.State == daybook.EffectBegun && !e.Plain
	}
	return m
}

// markRow is a row of markRuns. Begun is zero for a mark that is about a step, which raises the marks of the run; then a run that
// is asked to end is marked all the same, unless the step begins.
func markRow(r *daybook.Run, begun time.Time, begins bool) []any {
	return []any{string(r.Key), r.Fence, r.Claim, r.Marks, r.Lapse, us(begun), bit(begins), bit(begun.IsZero())}
}

// Whoever asked meanwhile that the attempt should end is heard: nothing more of it begins, and no transaction of the caller is
// part of it. What ended is written all the same. A run that another transaction holds up, such as that of a caller who marks a step
// in his own, is passed over, so that nobody else waits for it.
const markRuns = `WITH v (key, fence, claim, marks, lapse, begun_us, begins, step) AS (/*rows t b t b b b b b*/),
  free AS (SELECT v.* FROM v JOIN daybook_live l ON l.key = v.key /*lock l*/)
UPDATE daybook_live SET begun_us = CASE WHEN v.step = 1 THEN daybook_live.begun_us ELSE v.begun_us END, marks = daybook_live.marks + v.step
FROM free v
WHERE daybook_live.key = v.key AND daybook_live.state = 'running' AND daybook_live.fence = v.fence AND daybook_live.claim = v.claim
  AND (v.step = 0 OR daybook_live.marks = v.marks) AND (SELECT b.lapse FROM daybook_ledger b) = v.lapse AND (v.begins = 0 OR daybook_live.cancelled_by = '')
RETURNING daybook_live.key`

// markRun is the same for one run, and waits for whoever holds it up.
const markRun = `UPDATE daybook_live SET begun_us = CASE WHEN CAST($8 AS BIGINT) = 1 THEN begun_us ELSE CAST($6 AS BIGINT) END, marks = marks + CAST($8 AS BIGINT)
WHERE key = $1 AND state = 'running' AND fence = $2 AND claim = $3 AND (CAST($8 AS BIGINT) = 0 OR marks = $4)
  AND (SELECT b.lapse FROM daybook_ledger b) = $5 AND (CAST($7 AS BIGINT) = 0 OR cancelled_by = '')
RETURNING key`

// mark writes a mark, with those of others that come at the same time. Held is false when its run does not stand as it was believed
// to. What another one spoiled, and what is held up, is written once more, by itself: then it waits, and only for its own run.
func (s *Store) mark(ctx context.Context, m *mark) (held bool, err error) {
	err = s.marking.do(ctx, m.what, m)
	switch {
	case err != nil && (ctx.Err() != nil || m.with < 2 || m.whole || s.concernsAll(err)):
		return false, err
	case err == nil && m.written:
		return true, nil
	}
	err = s.writeMarks(ctx, m.what, true, func() []*mark { return []*mark{m} })
	return m.written, err
}

// concernsAll reports whether an error is that of a database which is away or at work, and no fault of what was to be written.
func (s *Store) concernsAll(err error) bool {
	return s.d.cut(err) || s.d.readOnly(err) || s.d.busy(err)
}

// writeMarks writes marks in one transaction, and of those whose runs it cannot mark nothing. The witness knows of it before
// anybody does who waits for it.
func (s *Store) writeMarks(ctx context.Context, what string, wait bool, next func() []*mark) error {
	var ms []*mark
	var moved []daybook.Mark
	err := s.provedWrite(ctx, what, func(ctx context.Context, t *tx) (bool, error) { return t.marked(ctx, ms) }, func(ctx context.Context, t *tx) (err error) {
		if ms = next(); len(ms) == 0 {
			return ctx.Err()
		}
		moved, err = t.mark(ctx, ms, wait)
		return err
	})
	if s.tellForgot(err) || err != nil {
		return err
	}
	for _, m := range moved {
		s.remember(m)
	}
	return nil
}

// marked is the proof that marks were written: they are one transaction, so the trace of one proves all.
func (t *tx) marked(ctx context.Context, ms []*mark) (bool, error) {
	for _, m := range ms {
		if !m.written || m.trace == nil {
			continue
		}
		if found, err := exists(selectStepMark, m.trace...)(ctx, t); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

func (t *tx) mark(ctx context.Context, ms []*mark, wait bool) (moved []daybook.Mark, err error) {
	var rows [][]any
	first := make(map[daybook.Key]*mark, len(ms))
	// What is known of nodes is taken before the lapse of the ledger is compared: a lapse that is found in between changes it.
	had := make(map[string]marked)
	for _, m := range ms {
		if node := t.s.marks.node(m.holder); m.effect {
			had[node] = t.s.marks.of(node, m.at)
		}
		m.with, m.whole, m.written = len(ms), false, false
		if first[m.key] == nil { // another one of the same run is not of the same picture any more: it looks by itself
			first[m.key] = m
			rows = append(rows, m.row)
		}
	}
	each := func(rows *sql.Rows) error {
		var k daybook.Key
		err := rows.Scan(&k)
		first[k].written = true
		return err
	}
	if wait {
		err = t.query(ctx, markRun, each, rows[0]...)
	} else {
		err = t.bulk(ctx, markRuns, rows, each)
	}
	if err != nil {
		return nil, err
	}
	var steps [][]any
	var learned daybook.Learned
	begun := make(map[string]time.Time) // by node
	for _, m := range ms {
		if !m.written {
			continue
		}
		if m.step != nil {
			steps = append(steps, m.step)
		}
		if node := t.s.marks.node(m.holder); m.effect && !m.at.Before(begun[node]) {
			begun[node] = m.at
		}
		learned.Asked, learned.Alerts = append(learned.Asked, m.learned.Asked...), append(learned.Alerts, m.learned.Alerts...)
	}
	if err := t.bulk(ctx, upsertSteps, steps, nil); err != nil {
		return nil, err
	}
	for _, node := range slices.Sorted(maps.Keys(begun)) {
		number, err := t.moveMark(ctx, had[node])
		if err != nil {
			return nil, err
		}
		moved = append(moved, daybook.Mark{Node: node, Number: number, At: begun[node]})
	}
	if err := t.questions(ctx, learned.Asked); err != nil {
		return nil, err
	}
	if err := t.insertAlerts(ctx, learned.Alerts); err != nil {
		return nil, err
	}
	for _, m := range ms {
		m.whole = true
	}
	return moved, nil
}

// node returns the node that this process is, once it said so, or else the one that holds a run.
func (m *markBook) node(holder string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.self, holder)
}
