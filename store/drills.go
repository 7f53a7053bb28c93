package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// The keys of subjects lie between key/ and key0, the character behind the slash.
const tallyRuns = `SELECT COUNT(*), COALESCE(SUM(CASE state WHEN '' THEN 0 ELSE attempts END), 0) FROM daybook_runs WHERE key = $1 OR key >= $2 AND key < $3`

const tallyLive = `SELECT COALESCE(SUM(attempts), 0) FROM daybook_live WHERE key = $1 OR key >= $2 AND key < $3`

const tallySteps = `SELECT COALESCE(SUM(tries), 0) FROM daybook_steps WHERE effect = 1 AND (key = $1 OR key >= $2 AND key < $3)`

// Tally implements daybook.Driller.
func (s *Store) Tally(ctx context.Context, k daybook.Key) (t daybook.Tally, err error) {
	from, to := string(k)+"/", string(k)+"0"
	err = s.read(ctx, "count what is recorded", tallyRuns, func(rows *sql.Rows) error { return rows.Scan(&t.Runs, &t.Attempts) }, string(k), from, to)
	if err == nil {
		err = s.read(ctx, "count what is recorded", tallyLive, func(rows *sql.Rows) error {
			var live int64
			err := rows.Scan(&live)
			t.Attempts += live
			return err
		}, string(k), from, to)
	}
	if err == nil {
		err = s.read(ctx, "count what is recorded", tallySteps, func(rows *sql.Rows) error { return rows.Scan(&t.Effects) }, string(k), from, to)
	}
	return t, err
}

const insertDrill = `INSERT INTO daybook_drills (id, key, job, actor, at_us, ended_us, doors, times, knocks, runs_before, runs_after,
  attempts_before, attempts_after, effects_before, effects_after, counted, count_before, count_after, seen)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`

const endDrillAlerts = `UPDATE daybook_alerts SET closed_us = $2 WHERE job = $1 AND closed_us = 0 AND (kind = 'drill_due' OR kind = 'drill_failed' AND $3 = 1)`

// KeepDrill implements daybook.Driller.
func (s *Store) KeepDrill(ctx context.Context, d *daybook.Drill, failed *daybook.Alert, act daybook.Activity) error {
	knocks, err := json.Marshal(d.Knocks)
	if err != nil {
		return err
	}
	doors := make([]string, len(d.Doors))
	for i, door := range d.Doors {
		doors[i] = string(door)
	}
	return s.write(ctx, "keep a drill", func(ctx context.Context, t *tx) error {
		d.ID = t.s.newID()
		if _, err := t.exec(ctx, insertDrill, d.ID, string(d.Key), d.Job, clean(d.Actor, daybook.MaxActorBytes), us(d.At), us(d.Ended),
			strings.Join(doors, ","), int64(d.Times), string(knocks), d.Before.Runs, d.After.Runs, d.Before.Attempts, d.After.Attempts,
			d.Before.Effects, d.After.Effects, bit(d.Counted), clean(d.CountBefore, daybook.MaxCountBytes), clean(d.CountAfter, daybook.MaxCountBytes),
			clean(d.Seen, daybook.MaxErrorBytes)); err != nil {
			return err
		}
		if _, err := t.exec(ctx, endDrillAlerts, d.Job, us(d.Ended), bit(failed == nil)); err != nil {
			return err
		}
		if failed != nil {
			if err := t.insertAlerts(ctx, []*daybook.Alert{failed}); err != nil {
				return err
			}
		}
		return t.insertActivity(ctx, &act)
	})
}

const selectDrills = `SELECT id, key, job, actor, at_us, ended_us, doors, times, knocks, runs_before, runs_after, attempts_before, attempts_after,
  effects_before, effects_after, counted, count_before, count_after, seen FROM daybook_drills `

const (
	drillsOfAll = selectDrills + `ORDER BY at_us DESC, id LIMIT $1`
	drillsOfJob = selectDrills + `WHERE job = $2 ORDER BY at_us DESC, id LIMIT $1`
)

// Drills implements daybook.Driller.
func (s *Store) Drills(ctx context.Context, job string, limit int) ([]daybook.Drill, error) {
	statement, args := drillsOfAll, []any{int64(limit)}
	if job != "" {
		statement, args = drillsOfJob, append(args, job)
	}
	var list []daybook.Drill
	err := s.read(ctx, "read drills", statement, func(rows *sql.Rows) error {
		var d daybook.Drill
		var began, ended, times, counted int64
		var doors, knocks string
		err := rows.Scan(&d.ID, &d.Key, &d.Job, &d.Actor, &began, &ended, &doors, &times, &knocks, &d.Before.Runs, &d.After.Runs,
			&d.Before.Attempts, &d.After.Attempts, &d.Before.Effects, &d.After.Effects, &counted, &d.CountBefore, &d.CountAfter, &d.Seen)
		if err != nil {
			return err
		}
		d.At, d.Ended, d.Times, d.Counted = at(began), at(ended), int(times), counted != 0
		for door := range strings.SplitSeq(doors, ",") {
			d.Doors = append(d.Doors, daybook.Source(door))
		}
		list = append(list, d)
		return json.Unmarshal([]byte(knocks), &list[len(list)-1].Knocks)
	}, args...)
	return list, err
}

const lastDrills = `SELECT job, MAX(at_us) FROM daybook_drills GROUP BY job`

// LastDrills returns when each job was drilled last; one that never was is missing.
func (s *Store) LastDrills(ctx context.Context) (map[string]time.Time, error) {
	last := make(map[string]time.Time)
	err := s.read(ctx, "read the last drills", lastDrills, func(rows *sql.Rows) error {
		var job string
		var us int64
		err := rows.Scan(&job, &us)
		last[job] = at(us)
		return err
	})
	return last, err
}

const firstDone = `SELECT ended_us FROM daybook_runs WHERE job = $1 AND parent = '' AND state = 'done' ORDER BY start_us LIMIT 1`

// FirstDone returns when the oldest window of a job was done; zero: none was.
func (s *Store) FirstDone(ctx context.Context, job string) (first time.Time, err error) {
	err = s.read(ctx, "read the first done run", firstDone, func(rows *sql.Rows) error {
		var us int64
		err := rows.Scan(&us)
		first = at(us)
		return err
	}, job)
	return first, err
}
