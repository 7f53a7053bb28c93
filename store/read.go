package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// defaultLimit bounds a list that does not name its length.
const defaultLimit = 200

func limited(n int) int64 {
	if n <= 0 {
		return defaultLimit
	}
	return int64(n)
}

// One statement lists runs, whatever narrows the list: an empty argument does not narrow.
const selectRuns = `SELECT ` + runColumns + `
WHERE r.key > $1 AND ($2 = '' OR r.job = $2) AND ($3 = '' OR COALESCE(l.state, r.state) = $3)
  AND r.key >= $4 AND r.key < $5 AND ($6 = '' OR r.date >= $6) AND ($7 = '' OR r.date <= $7)
ORDER BY r.key LIMIT $8`

// The newest windows of a job, newest first: by the index, however long its history.
const selectNewest = `SELECT ` + runColumns + ` WHERE r.job = $1 AND r.parent = '' AND ($2 = '' OR COALESCE(l.state, r.state) = $2)
ORDER BY r.start_us DESC LIMIT $3`

// What is live is found in the small table, however long the history is: one text for each order. Behind the key, by the
// bounds of its text, of one job or all, in one state, by dates.
const liveOnes = ` WHERE r.key /*pick(*/SELECT v.key FROM daybook_live v
  WHERE v.state = $1 AND ($2 = '' OR v.job = $2) AND v.key > $3 AND v.key >= $4 AND v.key < $5/*)*/
  AND ($6 = '' OR r.date >= $6) AND ($7 = '' OR r.date <= $7) `

const selectLive = `SELECT ` + runColumns + liveOnes + `ORDER BY r.key LIMIT $8`

const selectNewestLive = `SELECT ` + runColumns + liveOnes + `AND r.parent = '' ORDER BY r.start_us DESC LIMIT $8`

// Runs implements daybook.Reader: a job's newest windows first, anything else in the order of keys.
func (s *Store) Runs(ctx context.Context, f daybook.Filter) ([]*daybook.Run, error) {
	var runs []*daybook.Run
	each := func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		runs = append(runs, r)
		return err
	}
	names := []string{""}
	if f.Job != "" {
		var err error
		if names, err = s.names(ctx, s.reader("read the names of "+f.Job), f.Job); err != nil {
			return nil, err
		}
	}
	newest := f.Job != "" && f.Prefix == "" && f.From == "" && f.To == "" && f.After == ""
	for _, job := range names {
		if err := s.runsOf(ctx, job, f, newest, each); err != nil {
			return nil, err
		}
	}
	if len(names) > 1 {
		slices.SortStableFunc(runs, func(a, b *daybook.Run) int {
			if newest {
				return b.Window.Start.Compare(a.Window.Start)
			}
			return strings.Compare(string(a.Key), string(b.Key))
		})
		runs = runs[:min(len(runs), int(limited(f.Limit)))]
	}
	return runs, nil
}

// runsOf lists the runs that stand under one name, or under any.
func (s *Store) runsOf(ctx context.Context, job string, f daybook.Filter, newest bool, each func(*sql.Rows) error) error {
	from, to := f.Prefix, f.Prefix+"\x7f"
	if f.Prefix == "" && job != "" {
		from, to = job+":", job+";"
	}
	switch {
	case f.State.Live():
		text := selectLive
		if newest {
			text = selectNewestLive
		}
		return s.read(ctx, "list runs", text, each, string(f.State), job, string(f.After), from, to, f.From, f.To, limited(f.Limit))
	case newest:
		return s.read(ctx, "list runs", selectNewest, each, job, string(f.State), limited(f.Limit))
	}
	return s.read(ctx, "list runs", selectRuns, each, string(f.After), job, string(f.State), from, to, f.From, f.To, limited(f.Limit))
}

const selectAttempts = `SELECT key, fence, question, number, claim, node, wire_key, command, revision, claimed_us, begun_us, ended_us, result, error, detail, data,
  late_result, late_error, late_us, late_taken FROM daybook_attempts WHERE key = $1 ORDER BY fence, question`

// Attempts implements daybook.Reader, oldest first, without their output.
func (s *Store) Attempts(ctx context.Context, k daybook.Key) ([]daybook.Attempt, error) {
	var list []daybook.Attempt
	err := s.read(ctx, "read attempts", selectAttempts, func(rows *sql.Rows) error {
		var a daybook.Attempt
		var question, claimed, begun, ended, late, taken int64
		var data string
		if err := rows.Scan(&a.Key, &a.Fence, &question, &a.Number, &a.Claim, &a.Node, &a.WireKey, &a.Command, &a.Revision, &claimed, &begun, &ended,
			&a.Result, &a.Error, &a.Detail, &data, &a.LateResult, &a.LateError, &late, &taken); err != nil {
			return err
		}
		a.Probe, a.LateTaken, a.Data = question != 0, taken != 0, raw(data)
		a.ClaimedAt, a.BegunAt, a.EndedAt, a.LateAt = at(claimed), at(begun), at(ended), at(late)
		list = append(list, a)
		return nil
	}, string(k))
	return list, err
}

const selectOutput = `SELECT text, omitted FROM daybook_outputs WHERE key = $1 AND fence = $2`

// Output implements daybook.Reader. An attempt without stored output has an empty one.
func (s *Store) Output(ctx context.Context, k daybook.Key, fence int64) (daybook.Output, error) {
	var o daybook.Output
	err := s.read(ctx, "read output", selectOutput, func(rows *sql.Rows) error { return rows.Scan(&o.Text, &o.Omitted) }, string(k), fence)
	return o, err
}

const selectTriggers = `SELECT key, id, job, source, outcome, actor, note, fire, at_us, payload_hash FROM daybook_triggers WHERE key = $1 ORDER BY at_us, id`

// Triggers implements daybook.Reader, oldest first.
func (s *Store) Triggers(ctx context.Context, k daybook.Key) ([]daybook.Trigger, error) {
	var list []daybook.Trigger
	err := s.read(ctx, "read triggers", selectTriggers, func(rows *sql.Rows) error {
		var g daybook.Trigger
		var us int64
		err := rows.Scan(&g.Key, &g.ID, &g.Job, &g.Source, &g.Outcome, &g.Actor, &g.Note, &g.Fire, &us, &g.PayloadHash)
		g.At = at(us)
		list = append(list, g)
		return err
	}, string(k))
	return list, err
}

const letterColumns = `SELECT id, key, parent, job, priority, kind, state, error, opened_us, closed_us, closed_by, note, refused FROM daybook_letters `

const selectOpenLetters = letterColumns + `WHERE state = 'open' ORDER BY priority, opened_us LIMIT $1`

const selectAllLetters = letterColumns + `ORDER BY opened_us DESC LIMIT $1`

const selectLettersOf = letterColumns + `WHERE key = $1 ORDER BY opened_us, id`

// Letters implements daybook.Reader: the open ones by priority and age, or all, newest first.
func (s *Store) Letters(ctx context.Context, openOnly bool, limit int) ([]daybook.Letter, error) {
	statement := selectAllLetters
	if openOnly {
		statement = selectOpenLetters
	}
	return s.letters(ctx, statement, limited(limit))
}

// LettersOf implements daybook.Reader, oldest first.
func (s *Store) LettersOf(ctx context.Context, k daybook.Key) ([]daybook.Letter, error) {
	return s.letters(ctx, selectLettersOf, string(k))
}

func (s *Store) letters(ctx context.Context, statement string, arg any) ([]daybook.Letter, error) {
	var list []daybook.Letter
	err := s.read(ctx, "read dead letters", statement, func(rows *sql.Rows) error {
		l, err := scanLetter(rows)
		list = append(list, l)
		return err
	}, arg)
	return list, err
}

const selectOpenAlerts = `SELECT id, kind, key, job, priority, last_error, last_good, at_us, closed_us FROM daybook_alerts WHERE closed_us = 0 ORDER BY priority, at_us LIMIT $1`

const selectAllAlerts = `SELECT id, kind, key, job, priority, last_error, last_good, at_us, closed_us FROM daybook_alerts ORDER BY at_us DESC LIMIT $1`

// Alerts implements daybook.Reader.
func (s *Store) Alerts(ctx context.Context, openOnly bool, limit int) ([]daybook.Alert, error) {
	statement := selectAllAlerts
	if openOnly {
		statement = selectOpenAlerts
	}
	var list []daybook.Alert
	err := s.read(ctx, "read alerts", statement, func(rows *sql.Rows) error {
		var a daybook.Alert
		var us, closed int64
		err := rows.Scan(&a.ID, &a.Kind, &a.Key, &a.Job, &a.Priority, &a.LastError, &a.LastGood, &us, &closed)
		a.At, a.ClosedAt = at(us), at(closed)
		list = append(list, a)
		return err
	}, limited(limit))
	return list, err
}

const activityColumns = `SELECT id, at_us, actor, action, key, job, note, state_before, state_after FROM daybook_activity`

const selectActivity = activityColumns + `
WHERE at_us >= $1 AND ($2 = '' OR actor = $2) ORDER BY at_us DESC, id DESC LIMIT $3`

// Activities implements daybook.Reader, newest first.
func (s *Store) Activities(ctx context.Context, since time.Time, actor string, limit int) ([]daybook.Activity, error) {
	return s.activities(ctx, selectActivity, us(since), actor, limited(limit))
}

const selectActivityAfter = activityColumns + `
WHERE at_us >= $1 AND (at_us > $1 OR id > $2) ORDER BY at_us, id LIMIT $3`

// ActivitiesAfter implements daybook.Reader.
func (s *Store) ActivitiesAfter(ctx context.Context, after time.Time, id string, limit int) ([]daybook.Activity, error) {
	return s.activities(ctx, selectActivityAfter, us(after), id, limited(limit))
}

func (s *Store) activities(ctx context.Context, statement string, args ...any) ([]daybook.Activity, error) {
	var list []daybook.Activity
	err := s.read(ctx, "read activity", statement, func(rows *sql.Rows) error {
		var a daybook.Activity
		var us int64
		err := rows.Scan(&a.ID, &us, &a.Actor, &a.Action, &a.Key, &a.Job, &a.Note, &a.Before, &a.After)
		a.At = at(us)
		list = append(list, a)
		return err
	}, args...)
	return list, err
}

const selectSpans = `SELECT job, from_us, to_us, from_label, to_label, windows, reason, revision, decided_us FROM daybook_spans WHERE job = $1 AND to_us >= $2 ORDER BY to_us`

// Spans implements daybook.Reader: those that end at or after an instant, oldest first.
func (s *Store) Spans(ctx context.Context, job string, from time.Time) ([]daybook.Span, error) {
	var list []daybook.Span
	err := s.read(ctx, "read spans of "+job, selectSpans, func(rows *sql.Rows) error {
		sp, err := scanSpan(rows)
		list = append(list, sp)
		return err
	}, job, us(from))
	return list, err
}

// Twice the same look into the index: joined by the key it would be a hash of all runs on PostgreSQL.
const selectLastGood = `SELECT j.name, j.formerly,
  COALESCE((SELECT g.key FROM daybook_runs g WHERE g.job = j.name AND g.parent = '' AND g.state = 'done' ORDER BY g.start_us DESC, g.key DESC LIMIT 1), ''),
  COALESCE((SELECT g.ended_us FROM daybook_runs g WHERE g.job = j.name AND g.parent = '' AND g.state = 'done' ORDER BY g.start_us DESC, g.key DESC LIMIT 1), 0),
  COALESCE((SELECT g.start_us FROM daybook_runs g WHERE g.job = j.name AND g.parent = '' AND g.state = 'done' ORDER BY g.start_us DESC, g.key DESC LIMIT 1), 0)
FROM daybook_jobs j`

// A run whose subjects have all ended is good, whatever letters of theirs stand open.
const selectResting = `SELECT job, key, claimed_us, start_us FROM daybook_live WHERE rests = 1 AND state = 'running' ORDER BY start_us`

// LastGood implements daybook.Reader: the newest done window of every job that has one.
func (s *Store) LastGood(ctx context.Context) (map[string]daybook.Good, error) {
	good, formerly := make(map[string]daybook.Good), make(map[string][]string)
	starts := make(map[string]int64)
	err := s.read(ctx, "read the last good windows", selectLastGood, func(rows *sql.Rows) error {
		var job, earlier string
		var g daybook.Good
		var ended, start int64
		err := rows.Scan(&job, &earlier, &g.Key, &ended, &start)
		starts[job] = start
		g.EndedAt = at(ended)
		if g.Key != "" {
			good[job] = g
		} else if earlier != "" {
			formerly[job] = splitNames(earlier)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, "read the windows that only letters keep open", selectResting, func(rows *sql.Rows) error {
		var job string
		var g daybook.Good
		var ended, start int64
		err := rows.Scan(&job, &g.Key, &ended, &start)
		if g.EndedAt = at(ended); start >= starts[job] {
			good[job], starts[job] = g, start
		}
		return err
	})
	for job, names := range formerly {
		if _, ok := good[job]; ok {
			continue
		}
		for _, n := range names {
			if g, ok := good[n]; ok {
				good[job] = g
				break
			}
		}
	}
	return good, err
}

const countLive = `SELECT state, count(*) FROM daybook_live GROUP BY state`

const countLetters = `SELECT count(*), COALESCE(sum(CASE WHEN kind = 'unknown' THEN 1 ELSE 0 END), 0) FROM daybook_letters WHERE state = 'open'`

const oldestDue = `SELECT COALESCE(min(due_us), 0) FROM daybook_live WHERE state <> 'running' AND hold = '' AND asking = ''`

// Counts implements daybook.Reader.
func (s *Store) Counts(ctx context.Context) (daybook.Counts, error) {
	c := daybook.Counts{Live: make(map[daybook.State]int)}
	if err := s.read(ctx, "count live runs", countLive, func(rows *sql.Rows) error {
		var state daybook.State
		var n int
		err := rows.Scan(&state, &n)
		c.Live[state] = n
		return err
	}); err != nil {
		return c, err
	}
	if err := s.read(ctx, "count letters", countLetters, func(rows *sql.Rows) error { return rows.Scan(&c.OpenLetters, &c.Unknown) }); err != nil {
		return c, err
	}
	err := s.read(ctx, "find the oldest due run", oldestDue, func(rows *sql.Rows) error {
		var due int64
		err := rows.Scan(&due)
		c.OldestDue = at(due)
		return err
	})
	return c, err
}

const selectHolds = `SELECT name, since_us, detail, node FROM daybook_holds ORDER BY name`

// Holds implements daybook.Reader.
func (s *Store) Holds(ctx context.Context) ([]daybook.Hold, error) {
	var list []daybook.Hold
	err := s.read(ctx, "read holds", selectHolds, func(rows *sql.Rows) error {
		var h daybook.Hold
		var since int64
		err := rows.Scan(&h.Name, &since, &h.Detail, &h.Node)
		h.Since = at(since)
		list = append(list, h)
		return err
	})
	return list, err
}
