package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

const moveCursors = `WITH v (name, revision, from_us, to_us, next_us, next_fire) AS (/*rows t b b b b t*/)
UPDATE daybook_jobs SET cursor_us = v.to_us, next_us = v.next_us, next_fire = v.next_fire FROM v
WHERE daybook_jobs.name = v.name AND daybook_jobs.revision = v.revision AND daybook_jobs.cursor_us = v.from_us AND daybook_jobs.retired_us = 0
RETURNING daybook_jobs.name, daybook_jobs.paused, daybook_jobs.formerly`

const moveCursor = `UPDATE daybook_jobs SET cursor_us = $4, next_us = $5, next_fire = $6
WHERE name = $1 AND revision = $2 AND cursor_us = $3 AND retired_us = 0`

const selectMovedJobs = `SELECT name, paused, formerly FROM daybook_jobs WHERE name /*in $1*/`

// Plan implements daybook.Planner.
func (s *Store) Plan(ctx context.Context, plans []*daybook.Plan, now time.Time) ([]daybook.Planned, error) {
	var done []daybook.Planned
	err := s.write(ctx, "plan", func(ctx context.Context, t *tx) error {
		done = make([]daybook.Planned, len(plans))
		held, err := t.holdsClock(ctx)
		if err != nil {
			return err
		}
		kept := make([]*daybook.Plan, 0, len(plans))
		for i, p := range plans {
			done[i] = daybook.Planned{Job: p.Job.Name, Cursor: p.From, Revision: p.Revision}
			if held && p.Job.Effects == daybook.Once {
				done[i].Held = daybook.ReasonClock
				continue
			}
			kept = append(kept, p)
		}
		moved, err := t.moveCursors(ctx, kept)
		if err != nil {
			return err
		}
		written := kept[:0]
		for i, p := range plans {
			if done[i].Held != "" {
				continue
			}
			if _, ok := moved[p.Job.Name]; !ok {
				done[i].Stale = true
				if err := t.ledgerCursor(ctx, &done[i]); err != nil {
					return err
				}
				continue
			}
			done[i].Cursor = p.To
			written = append(written, p)
		}
		started, err := t.writePlans(ctx, written, moved, now)
		for i := range done {
			done[i].Started = started[done[i].Job]
		}
		return err
	})
	return done, err
}

const selectCursor = `SELECT cursor_us, revision FROM daybook_jobs WHERE name = $1 AND retired_us = 0`

// ledgerCursor tells the loser of a race where the ledger stands.
func (t *tx) ledgerCursor(ctx context.Context, p *daybook.Planned) error {
	p.Cursor, p.Revision = time.Time{}, 0
	return t.query(ctx, selectCursor, func(rows *sql.Rows) error {
		var cursor int64
		err := rows.Scan(&cursor, &p.Revision)
		p.Cursor = at(cursor)
		return err
	}, p.Job)
}

func (t *tx) holdsClock(ctx context.Context) (held bool, err error) {
	err = t.query(ctx, selectHold, func(*sql.Rows) error { held = true; return nil })
	return held, err
}

// moveCursors moves the cursor of each plan by compare-and-set and returns, by job, whether it is paused, and its earlier
// names. A job that is missing lost the race, or has another revision.
func (t *tx) moveCursors(ctx context.Context, plans []*daybook.Plan) (map[string]daybook.Facts, error) {
	rows := make([][]any, len(plans))
	for i, p := range plans {
		rows[i] = []any{p.Job.Name, p.Revision, us(p.From), us(p.To), us(p.Next), p.NextFire}
	}
	// One order for all: schedulers that lock the same rows in two orders would wait for each other.
	slices.SortFunc(rows, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	moved := make(map[string]daybook.Facts, len(plans))
	err := t.bulk(ctx, moveCursors, rows, func(rows *sql.Rows) error {
		var name, formerly string
		var paused int64
		err := rows.Scan(&name, &paused, &formerly)
		moved[name] = daybook.Facts{Paused: paused != 0, Formerly: splitNames(formerly)}
		return err
	})
	return moved, err
}

// writePlans decides the plans against what the ledger knows and writes the rows. A key that appears between the look
// and the write is met by ON CONFLICT; then everything is looked up again.
func (t *tx) writePlans(ctx context.Context, plans []*daybook.Plan, moved map[string]daybook.Facts, now time.Time) (map[string]int, error) {
	started := make(map[string]int, len(plans))
	facts, err := t.facts(ctx, plans, moved)
	if err != nil {
		return nil, err
	}
	var runs []*daybook.Run
	var triggers []*daybook.Trigger
	var extended [][]any
	for i, p := range plans {
		rows := p.Rows(facts[i], now)
		runs = append(runs, rows.Runs...)
		triggers = append(triggers, rows.Triggers...)
		for _, span := range rows.Spans {
			if err := t.insertSpan(ctx, span); err != nil {
				return nil, err
			}
		}
		if rows.Extend != "" {
			extended = append(extended, []any{string(rows.Extend), us(rows.ExtendBy.Start), us(rows.ExtendBy.End)})
		}
		if err := t.insertAlerts(ctx, rows.Alerts); err != nil {
			return nil, err
		}
		for _, r := range rows.Runs {
			if r.State == daybook.Scheduled {
				started[p.Job.Name]++
			}
		}
	}
	if err := t.extend(ctx, extended); err != nil {
		return nil, err
	}
	fresh, err := t.insertRuns(ctx, runs)
	if err != nil {
		return nil, err
	}
	if len(fresh) != len(runs) {
		return nil, errMet
	}
	return started, t.recordFires(ctx, triggers, fresh)
}

// recordFires records the triggers of plans and counts those that met a run that was there before.
func (t *tx) recordFires(ctx context.Context, triggers []*daybook.Trigger, fresh map[daybook.Key]bool) error {
	var first, met []*daybook.Trigger
	for _, g := range triggers {
		if fresh[g.Key] {
			first = append(first, g)
		} else {
			met = append(met, g)
		}
	}
	if err := t.insertTriggers(ctx, first); err != nil {
		return err
	}
	for _, g := range met {
		n, err := t.insertTrigger(ctx, g)
		if err != nil {
			return err
		}
		if n == 0 { // this fire was recorded before
			continue
		}
		refused := g.Outcome == daybook.Refused
		if _, err := t.exec(ctx, countTrigger, string(g.Key), bit(refused)); err != nil {
			return err
		}
		if refused {
			if _, err := t.exec(ctx, refuseLetter, string(g.Key)); err != nil {
				return err
			}
		}
	}
	return nil
}

const selectLiveOfJobs = `SELECT l.job, l.key, l.state, l.attempts, l.reason, l.lane FROM daybook_live l WHERE l.job /*in $1*/ AND l.parent = '' AND l.rests = 0 ORDER BY l.start_us DESC, l.key DESC`

// facts reads what the ledger knows that matters to the plans.
func (t *tx) facts(ctx context.Context, plans []*daybook.Plan, moved map[string]daybook.Facts) ([]daybook.Facts, error) {
	facts := make([]daybook.Facts, len(plans))
	var keys, jobs []string
	mine := make(map[daybook.Key]bool)
	index := make(map[string]int, len(plans))
	for i, p := range plans {
		facts[i] = moved[p.Job.Name]
		facts[i].Existing = make(map[daybook.Key]daybook.Standing)
		for _, n := range append([]string{p.Job.Name}, facts[i].Formerly...) {
			index[n] = i
			for _, w := range p.Windows {
				k := daybook.KeyParts{Job: n, Window: w.Window.Label}.Key()
				keys = append(keys, string(k))
				mine[k] = true
			}
			if len(p.Windows) > 0 && (p.Job.Missed == daybook.Coalesce || p.Job.Overlap == daybook.OverlapSkip) {
				jobs = append(jobs, n)
			}
		}
	}
	if len(keys) == 0 {
		return facts, nil
	}
	if err := t.existing(ctx, keys, func(k daybook.Key, s daybook.Standing) {
		i := index[k.Job()]
		own := under(plans[i].Job.Name, k)
		if k != own {
			s.Key = k
		}
		if had, ok := facts[i].Existing[own]; !ok || s.Key == "" || had.Key != "" && newer(s.Key, had.Key, facts[i].Formerly) {
			facts[i].Existing[own] = s
		}
	}); err != nil {
		return nil, err
	}
	if err := t.skippedBefore(ctx, plans, facts); err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return facts, nil
	}
	list, err := t.s.d.list(jobs)
	if err != nil {
		return nil, err
	}
	return facts, t.query(ctx, selectLiveOfJobs, func(rows *sql.Rows) error {
		var job string
		var k daybook.Key
		var state daybook.State
		var reason daybook.Reason
		var lane daybook.Lane
		var attempts int64
		if err := rows.Scan(&job, &k, &state, &attempts, &reason, &lane); err != nil {
			return err
		}
		if mine[k] {
			return nil
		}
		f := &facts[index[job]]
		f.LiveRun = true
		// What was asked for on its own, a further effect or the past, takes in nothing.
		alone := reason == daybook.ReasonAgain || lane != daybook.LaneLive || k.Parts().N > 1
		if state == daybook.Scheduled && attempts == 0 && f.Waiting == "" && !alone {
			f.Waiting = k
		}
		return nil
	}, list)
}

// newer reports whether a key stands under a later one of the earlier names than another: it answers.
func newer(k, other daybook.Key, formerly []string) bool {
	return slices.Index(formerly, k.Job()) < slices.Index(formerly, other.Job())
}

const selectSpansOf = `SELECT job, from_us, to_us, from_label, to_label, windows, reason, revision, decided_us FROM daybook_spans
WHERE job /*in $1*/ AND to_us >= $2`

// skippedBefore adds the windows that lie in a span: a later fire of one that was skipped meets that decision.
func (t *tx) skippedBefore(ctx context.Context, plans []*daybook.Plan, facts []daybook.Facts) error {
	byJob := make(map[string]int)
	var jobs []string
	var first time.Time
	for i, p := range plans {
		if len(p.Windows) == len(facts[i].Existing) {
			continue
		}
		for _, n := range append([]string{p.Job.Name}, facts[i].Formerly...) {
			byJob[n] = i
			jobs = append(jobs, n)
		}
		for _, w := range p.Windows {
			if first.IsZero() || w.Last.Before(first) {
				first = w.Last
			}
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	list, err := t.s.d.list(jobs)
	if err != nil {
		return err
	}
	return t.query(ctx, selectSpansOf, func(rows *sql.Rows) error {
		sp, err := scanSpan(rows)
		if err != nil {
			return err
		}
		i := byJob[sp.Job]
		for _, w := range plans[i].Windows {
			k := daybook.KeyParts{Job: plans[i].Job.Name, Window: w.Window.Label}.Key()
			if _, known := facts[i].Existing[k]; !known && inSpan([]daybook.Span{sp}, w.Last) {
				facts[i].Existing[k] = daybook.Standing{Exists: true, State: daybook.Skipped, SpanReason: sp.Reason}
			}
		}
		return nil
	}, list, us(first))
}

const selectStandings = `SELECT r.key, COALESCE(l.state, r.state), r.reason, r.effects,
  COALESCE((SELECT d.kind FROM daybook_letters d WHERE d.key = r.key AND d.state = 'open'), ''),
  COALESCE((SELECT d.state FROM daybook_letters d WHERE d.key = r.key ORDER BY d.opened_us DESC, d.id DESC LIMIT 1), '')
FROM daybook_runs r LEFT JOIN daybook_live l ON l.key = r.key WHERE r.key /*in $1*/`

// standingChunk bounds how many keys are looked up at a time.
const standingChunk = 5000

func (t *tx) existing(ctx context.Context, keys []string, found func(daybook.Key, daybook.Standing)) error {
	for len(keys) > 0 {
		n := min(standingChunk, len(keys))
		list, err := t.s.d.list(keys[:n])
		if err != nil {
			return err
		}
		if err := t.query(ctx, selectStandings, func(rows *sql.Rows) error {
			var k daybook.Key
			var reason daybook.Reason
			s := daybook.Standing{Exists: true}
			if err := rows.Scan(&k, &s.State, &reason, &s.Effects, &s.LetterKind, &s.LetterState); err != nil {
				return err
			}
			s.Undone, s.Undoing = reason == daybook.ReasonUndone, reason == daybook.ReasonUndoing
			found(k, s)
			return nil
		}, list); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

const insertSpan = `INSERT INTO daybook_spans (job, from_us, to_us, from_label, to_label, windows, reason, revision, decided_us)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`

func (t *tx) insertSpan(ctx context.Context, sp daybook.Span) error {
	_, err := t.exec(ctx, insertSpan, sp.Job, us(sp.From), us(sp.To), sp.FromLabel, sp.ToLabel, int64(sp.Count), string(sp.Reason), sp.Revision, us(sp.DecidedAt))
	return err
}

const lockWaiting = `SELECT key FROM daybook_live WHERE key /*in $1*/ AND state = 'scheduled' AND attempts = 0 ORDER BY key /*wait*/`

const extendCovers = `WITH v (key, from_us, to_us) AS (/*rows t b b*/)
UPDATE daybook_runs SET cover_start_us = CASE WHEN daybook_runs.cover_start_us > v.from_us THEN v.from_us ELSE daybook_runs.cover_start_us END,
  cover_end_us = CASE WHEN daybook_runs.cover_end_us < v.to_us THEN v.to_us ELSE daybook_runs.cover_end_us END
FROM v WHERE daybook_runs.key = v.key AND (daybook_runs.cover_start_us > v.from_us OR daybook_runs.cover_end_us < v.to_us)`

const extendCover = `UPDATE daybook_runs SET cover_start_us = CASE WHEN cover_start_us > $2 THEN $2 ELSE cover_start_us END,
  cover_end_us = CASE WHEN cover_end_us < $3 THEN $3 ELSE cover_end_us END WHERE key = $1 AND (cover_start_us > $2 OR cover_end_us < $3)`

// extend lets waiting runs take in windows: rows of a key, and of the bounds of what it takes in. When one was claimed meanwhile,
// its bounds are fixed: everything is decided again.
func (t *tx) extend(ctx context.Context, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r[0].(string)
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return err
	}
	waiting, err := t.texts(ctx, lockWaiting, list)
	if err != nil {
		return err
	}
	if len(waiting) != len(keys) {
		return errMet
	}
	return t.bulk(ctx, extendCovers, rows, nil)
}

const selectKeysIn = `SELECT key FROM daybook_runs WHERE key /*in $1*/`

// Unaccounted implements daybook.Planner.
func (s *Store) Unaccounted(ctx context.Context, job string, windows []daybook.PlannedWindow) ([]daybook.PlannedWindow, error) {
	if len(windows) == 0 {
		return nil, nil
	}
	names, err := s.names(ctx, s.reader("read the names of "+job), job)
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(windows)*len(names))
	for _, n := range names {
		for _, w := range windows {
			keys = append(keys, string(daybook.KeyParts{Job: n, Window: w.Window.Label}.Key()))
		}
	}
	known := make(map[string]bool, len(windows)) // by label
	for rest := keys; len(rest) > 0; {
		n := min(standingChunk, len(rest))
		list, err := s.d.list(rest[:n])
		if err != nil {
			return nil, err
		}
		if err := s.read(ctx, "look for windows without a row", selectKeysIn, func(rows *sql.Rows) error {
			var k daybook.Key
			err := rows.Scan(&k)
			known[k.Parts().Window] = true
			return err
		}, list); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	var spans []daybook.Span
	for _, n := range names {
		of, err := s.Spans(ctx, n, windows[0].FireAt)
		if err != nil {
			return nil, err
		}
		spans = append(spans, of...)
	}
	var holes []daybook.PlannedWindow
	for _, w := range windows {
		if known[w.Window.Label] || inSpan(spans, w.Last) {
			continue
		}
		holes = append(holes, w)
	}
	return holes, nil
}

func inSpan(spans []daybook.Span, fire time.Time) bool {
	for _, sp := range spans {
		if !fire.Before(sp.From) && !fire.After(sp.To) {
			return true
		}
	}
	return false
}
