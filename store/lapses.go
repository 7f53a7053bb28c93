package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// A ledger that forgot: lapses, and the marks by which one is found.

// fenceFloor is daybook.FenceFloor.
const fenceFloor = `(SELECT b.lapse * 1000000 FROM daybook_ledger b)`

const selectLapses = `SELECT number, since_us, found_us, ended_us, node, detail FROM daybook_lapses ORDER BY number DESC`

func lapses(ctx context.Context, q query) (list []*daybook.Lapse, err error) {
	return list, q(ctx, selectLapses, func(rows *sql.Rows) error {
		var l daybook.Lapse
		var since, found, ended int64
		err := rows.Scan(&l.Number, &since, &found, &ended, &l.Node, &l.Detail)
		l.Since, l.FoundAt, l.EndedAt = at(since), at(found), at(ended)
		list = append(list, &l)
		return err
	})
}

// Lapses implements daybook.Reader.
func (s *Store) Lapses(ctx context.Context) ([]*daybook.Lapse, error) {
	return lapses(ctx, s.reader("read lapses"))
}

// recall tells runs, as they are read, what the ledger may have forgotten of them. One that never forgot asks nothing.
func (s *Store) recall(ctx context.Context, q query, runs ...*daybook.Run) error {
	var known []*daybook.Lapse
	for _, r := range runs {
		if r.Lapse == 0 || !r.MarksEffects() {
			continue
		}
		if known == nil {
			var err error
			if known, err = lapses(ctx, q); err != nil {
				return err
			}
		}
		r.Recall(known)
	}
	return nil
}

const selectSeen = `SELECT id, sequence, lapse, written_us, copied_us FROM daybook_ledger`

const selectMarks = `SELECT id, mark, seen_us FROM daybook_nodes WHERE mark > 0`

// Seen implements daybook.Keeper.
func (s *Store) Seen(ctx context.Context) (daybook.Seen, error) {
	seen := daybook.Seen{Marks: make(map[string]daybook.Mark)}
	if err := s.read(ctx, "read how far the ledger has come", selectMarks, func(rows *sql.Rows) error {
		var m daybook.Mark
		var said int64
		err := rows.Scan(&m.Node, &m.Number, &said)
		m.At = at(said)
		seen.Marks[m.Node] = m
		return err
	}); err != nil {
		return seen, err
	}
	return seen, s.read(ctx, "read how far the ledger has come", selectSeen, func(rows *sql.Rows) error {
		var written, copied int64
		err := rows.Scan(&seen.Ledger, &seen.Sequence, &seen.Lapse, &written, &copied)
		seen.Written, seen.Copied = at(written), at(copied)
		return err
	})
}

// Remember tells the store what is known of the ledger from outside it: it must not know less. What was known before is
// forgotten.
func (s *Store) Remember(seen daybook.Seen) {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	s.marks.ledger, s.marks.lapse, s.marks.known = seen.Ledger, seen.Lapse, maps.Clone(seen.Marks)
}

// Remembered is what the ledger acknowledged to this process, or was told to it by Remember.
func (s *Store) Remembered() daybook.Seen {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	return daybook.Seen{Ledger: s.marks.ledger, Lapse: s.marks.lapse, Marks: maps.Clone(s.marks.known)}
}

// markBook is what the ledger acknowledged to this process: how far its nodes had come. A write in the name of a node must find
// more than that, or the ledger forgot.
type markBook struct {
	mu     sync.Mutex
	ledger string
	lapse  int64
	known  map[string]daybook.Mark
	self   string // the node that this process is, once it said so
}

// marked is what a node is known to have written, of a ledger with so many lapses. Number is 0 when nothing is known.
type marked struct {
	daybook.Mark
	lapse int64
}

// of returns what is known of a node.
func (m *markBook) of(node string, now time.Time) marked {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.known[node]
	if known.Node = node; now.Sub(known.At) > daybook.MarksKept { // the ledger may have dropped it
		known.Number = 0
	}
	return marked{known, m.lapse}
}

func (m *markBook) saw(mark daybook.Mark) {
	if m.known == nil {
		m.known = make(map[string]daybook.Mark)
	}
	if mark.Number > m.known[mark.Node].Number {
		m.known[mark.Node] = mark
	}
}

func errForgot() error {
	return daybook.New(daybook.CodeUnavailable, "the ledger does not know of what it acknowledged").Because(daybook.ErrForgot)
}

const moveMark = `UPDATE daybook_nodes SET mark = mark + 1 WHERE id = $1 RETURNING mark`

// moveMark counts that effects are marked begun in the name of a node, and makes sure that the ledger knows of those before.
// 0: the node is none that the ledger lists.
func (t *tx) moveMark(ctx context.Context, had marked) (number int64, err error) {
	if err := t.query(ctx, moveMark, func(rows *sql.Rows) error { return rows.Scan(&number) }, had.Node); err != nil {
		return 0, err
	}
	if number <= had.Number && had.Number > 0 {
		return 0, errForgot()
	}
	return number, nil
}

// remember notes what was committed, here and with the witness: before what was marked begun is begun.
func (s *Store) remember(mark daybook.Mark) {
	if mark.Number == 0 {
		return
	}
	s.marks.mu.Lock()
	if said := s.marks.known[mark.Node].At; mark.At.Before(said) {
		mark.At = said
	}
	s.marks.saw(mark)
	seen := daybook.Seen{Ledger: s.marks.ledger, Lapse: s.marks.lapse, Marks: map[string]daybook.Mark{mark.Node: mark}}
	s.marks.mu.Unlock()
	if s.o.Witness != nil && seen.Ledger != "" {
		s.o.Witness(seen)
	}
}

// beaten notes a beat.
func (s *Store) beaten(node string, seen daybook.Seen, err error) {
	if s.tellForgot(err) || err != nil {
		return
	}
	s.marks.mu.Lock()
	if s.marks.ledger, s.marks.self = seen.Ledger, node; seen.Lapse > s.marks.lapse { // found by another: what was known is what is known now
		s.marks.lapse, s.marks.known = seen.Lapse, nil
	}
	s.marks.saw(seen.Marks[node])
	s.marks.mu.Unlock()
	if s.o.Witness != nil {
		s.o.Witness(seen)
	}
}

func (s *Store) tellForgot(err error) bool {
	if !errors.Is(err, daybook.ErrForgot) {
		return false
	}
	if s.o.Forgot != nil {
		s.o.Forgot()
	}
	return true
}

const insertLapse = `INSERT INTO daybook_lapses (number, since_us, found_us, node, detail) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (number) DO NOTHING`

const noteLapse = `UPDATE daybook_ledger SET lapse = $1, copied_us = 0, sequence = sequence + 1 WHERE lapse < $1`

const holdRestored = `UPDATE daybook_live SET hold = 'restored' WHERE hold = '' AND state <> 'running' AND reason <> 'settling' AND once = 1
  AND EXISTS (SELECT 1 FROM daybook_lapses e WHERE e.ended_us = 0)`

// holdRestored holds what waits, while the freeze of a lapse stands: what waited when it was found, and what was under way then
// and has come back.
func (t *tx) holdRestored(ctx context.Context) error {
	_, err := t.exec(ctx, holdRestored)
	return err
}

// PutLapse implements daybook.Keeper.
func (s *Store) PutLapse(ctx context.Context, l daybook.Lapse, act daybook.Activity) (put bool, err error) {
	err = s.write(ctx, "put down that the ledger forgot", func(ctx context.Context, t *tx) error {
		put = false
		n, err := t.exec(ctx, noteLapse, l.Number) // it locks the row of the ledger: two that find it at once are one
		if err != nil || n == 0 {
			return err
		}
		if n, err = t.exec(ctx, insertLapse, l.Number, us(l.Since), us(l.FoundAt), l.Node, clean(l.Detail, daybook.MaxErrorBytes)); err != nil || n == 0 {
			return err
		}
		if _, err := t.exec(ctx, insertHold, daybook.HoldRestored, us(l.FoundAt), clean(l.Detail, daybook.MaxErrorBytes), l.Node); err != nil {
			return err
		}
		if err := t.holdRestored(ctx); err != nil {
			return err
		}
		put = true
		if err := t.insertAlerts(ctx, []*daybook.Alert{daybook.NewAlert(daybook.AlertLedgerRestored, "", "daybook", daybook.P0, l.Detail, "", l.FoundAt)}); err != nil {
			return err
		}
		return t.insertActivity(ctx, &act)
	})
	return put, err
}

// What waits for a lapse to be over, and was in the ledger before it was found.
const waitsForLapse = `FROM daybook_live l JOIN daybook_runs r ON r.key = l.key
  JOIN daybook_lapses e ON e.ended_us = 0 AND e.number = (SELECT b.lapse FROM daybook_ledger b)
WHERE l.hold = 'restored' AND l.state <> 'running' AND l.asking = '' AND r.created_us <= e.found_us
  AND (r.steps = 0 AND NOT EXISTS (SELECT 1 FROM daybook_steps s WHERE s.key = l.key AND s.doubt = e.number)
    OR r.steps = 1 AND EXISTS (SELECT 1 FROM daybook_steps s WHERE s.key = l.key AND s.effect = 1 AND s.state IN ('unknown', 'begun') AND s.doubt <> e.number))`

const selectQuestionable = `SELECT l.key ` + waitsForLapse + ` AND l.home = $1 AND l.key > $2 ORDER BY l.key LIMIT $3`

const selectHeldRestored = `SELECT name FROM daybook_holds WHERE name = 'restored'`

// Questionable implements daybook.Claimer.
func (s *Store) Questionable(ctx context.Context, home string, after daybook.Key, limit int) ([]*daybook.Run, error) {
	held := false
	if err := s.read(ctx, "look for a freeze", selectHeldRestored, func(*sql.Rows) error { held = true; return nil }); err != nil || !held {
		return nil, err
	}
	if err := s.write(ctx, "hold what came back", func(ctx context.Context, t *tx) error { return t.holdRestored(ctx) }); err != nil {
		return nil, err
	}
	var keys []string
	if err := s.read(ctx, "find what a restored ledger may have forgotten", selectQuestionable, func(rows *sql.Rows) error {
		var k string
		err := rows.Scan(&k)
		keys = append(keys, k)
		return err
	}, home, string(after), int64(limit)); err != nil {
		return nil, err
	}
	runs := make([]*daybook.Run, 0, len(keys))
	for _, k := range keys {
		r, err := s.findRun(ctx, s.reader("read what a restored ledger may have forgotten"), daybook.Key(k))
		if err != nil {
			return nil, err
		}
		if r != nil {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

const countUnsettled = `SELECT (SELECT count(*) FROM daybook_letters d JOIN daybook_runs r ON r.key = d.key JOIN daybook_lapses e ON e.ended_us = 0 AND e.number = (SELECT b.lapse FROM daybook_ledger b)
    WHERE d.state = 'open' AND d.kind = 'unknown' AND r.created_us <= e.found_us),
  (SELECT count(*) FROM daybook_live l JOIN daybook_runs r ON r.key = l.key JOIN daybook_lapses e ON e.ended_us = 0 AND e.number = (SELECT b.lapse FROM daybook_ledger b)
    WHERE (l.reason = 'settling' AND l.hold = '' OR l.state = 'running' AND l.lease_us > 0 AND l.once = 1) AND r.created_us <= e.found_us) + (SELECT count(*) ` + waitsForLapse + `)`

func unsettled(ctx context.Context, q query) (letters, questions int, err error) {
	return letters, questions, q(ctx, countUnsettled, func(rows *sql.Rows) error { return rows.Scan(&letters, &questions) })
}

// Unsettled implements daybook.Reader.
func (s *Store) Unsettled(ctx context.Context) (letters, questions int, err error) {
	return unsettled(ctx, s.reader("count what is not settled"))
}

const endLapses = `UPDATE daybook_lapses SET ended_us = $1 WHERE ended_us = 0`

// What it goes back to is what else holds it: a paused job, or one that is retired.
const releaseRestored = `UPDATE daybook_live SET hold = COALESCE((SELECT CASE WHEN h.retired_us > 0 THEN 'no definition' WHEN h.paused = 1 THEN 'paused' ELSE '' END
  FROM daybook_jobs j JOIN daybook_jobs h ON h.name = CASE WHEN j.renamed_to = '' THEN j.name ELSE j.renamed_to END WHERE j.name = daybook_live.job), '')
WHERE hold = 'restored' AND NOT EXISTS (SELECT 1 FROM daybook_lapses e WHERE e.ended_us = 0) RETURNING key`

const closeRestored = `UPDATE daybook_alerts SET closed_us = $1 WHERE kind = 'ledger_restored' AND closed_us = 0`

// endRestored ends the freeze of what the ledger forgot.
func (t *tx) endRestored(ctx context.Context, now time.Time) error {
	if err := t.holdRestored(ctx); err != nil {
		return err
	}
	letters, questions, err := unsettled(ctx, t.query)
	switch {
	case err != nil:
		return err
	case letters > 0:
		return daybook.Conflict("%s from before the ledger was put back wait for a person", daybook.Count(letters, "%d unknown outcome", "%d unknown outcomes")).
			WithHint("daybook status lists them, each with what to do; then end the freeze")
	case questions > 0:
		return daybook.Conflict("%s from before the ledger was put back are not settled yet", daybook.Count(questions, "%d run", "%d runs")).
			WithHint("a daybook serve with their jobs asks the far sides, which starts nothing: daybook run list --state retryable")
	}
	if _, err := t.exec(ctx, endLapses, us(now)); err != nil {
		return err
	}
	if err := t.releaseRestored(ctx); err != nil {
		return err
	}
	_, err = t.exec(ctx, closeRestored, us(now))
	return err
}

// releaseLeft releases, with each beat of a ledger that forgot once, what was held by a transaction that did not see the end
// of the freeze.
func (t *tx) releaseLeft(ctx context.Context, lapse int64) error {
	if lapse == 0 {
		return nil
	}
	return t.releaseRestored(ctx)
}

// releaseRestored lets go what no freeze of a lapse holds any more. A job may be paused in the same moment: that is seen by a
// look at it afterwards.
func (t *tx) releaseRestored(ctx context.Context) error {
	keys, err := t.texts(ctx, releaseRestored)
	if err != nil || len(keys) == 0 {
		return err
	}
	return t.holdPausedKeys(ctx, keys)
}

const letThrough = `UPDATE daybook_live SET hold = '', once = $2 WHERE key = $1 AND hold = 'restored'`

// letAsk lets through what the freeze of a restored ledger does not keep: questions, and listings, which touch nothing.
func (t *tx) letAsk(ctx context.Context, ts []daybook.Transition) error {
	for _, m := range ts {
		lists := m.Effect == nil && len(m.Steps) == 0
		if m.On != daybook.OnDoubt || m.Reason != daybook.ReasonSettling && !lists {
			continue
		}
		if _, err := t.exec(ctx, letThrough, string(m.Key), bit(!lists)); err != nil {
			return err
		}
	}
	return nil
}
