package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/daybook-run/daybook"
)

const pauseJob = `UPDATE daybook_jobs SET paused = $2, paused_us = $3, paused_by = $4, paused_note = $5 WHERE name = $1 AND paused <> $2`

const lockJob = `SELECT name FROM daybook_jobs WHERE name = $1 /*wait*/`

const lockLive = `SELECT key FROM daybook_live WHERE job = $1 ORDER BY key /*wait*/`

// standStill keeps a job and what is live of it as they are until the transaction ends. Otherwise a run that comes to
// wait at this moment, in a transaction that sees the job as it was, is seen by neither: it would be held for ever, or
// run although it should be held.
func (t *tx) standStill(ctx context.Context, job string) (known bool, err error) {
	if err := t.query(ctx, lockJob, func(*sql.Rows) error { known = true; return nil }, job); err != nil || t.s.d.name == "sqlite" {
		return known, err
	}
	return known, t.query(ctx, lockLive, func(*sql.Rows) error { return nil }, job)
}

const shareJob = `SELECT name FROM daybook_jobs WHERE name = $1 /*shared*/`

// shareJob waits for whoever makes a job stand still, and makes the next one wait.
func (t *tx) shareJob(ctx context.Context, job string) error {
	if t.s.d.name == "sqlite" {
		return nil
	}
	return t.query(ctx, shareJob, func(*sql.Rows) error { return nil }, job)
}

const holdPaused = `UPDATE daybook_live SET hold = 'paused' WHERE job = $1 AND hold IN ('', 'waiting for serial key') AND state <> 'running'`

const releasePaused = `UPDATE daybook_live SET hold = '' WHERE job = $1 AND hold = 'paused'`

// Pause implements daybook.Desk. Runs of the job that wait are held until it is resumed; one that runs goes on.
func (s *Store) Pause(ctx context.Context, job string, act daybook.Activity) (bool, error) {
	return s.setPaused(ctx, job, true, holdPaused, act)
}

// Resume implements daybook.Desk.
func (s *Store) Resume(ctx context.Context, job string, act daybook.Activity) (bool, error) {
	return s.setPaused(ctx, job, false, releasePaused, act)
}

func (s *Store) setPaused(ctx context.Context, job string, paused bool, live string, act daybook.Activity) (changed bool, err error) {
	err = s.provedWrite(ctx, act.Action+" "+job, s.acted(&act), func(ctx context.Context, t *tx) error {
		known, err := t.standStill(ctx, job)
		if err != nil {
			return err
		}
		names, err := s.names(ctx, t.query, job)
		if err != nil {
			return err
		}
		for _, n := range names[1:] {
			if _, err := t.standStill(ctx, n); err != nil {
				return err
			}
		}
		if !known {
			return daybook.NotFound("the ledger knows no job %s", job)
		}
		n, err := t.exec(ctx, pauseJob, job, bit(paused), us(act.At), clean(act.Actor, daybook.MaxActorBytes), clean(act.Note, daybook.MaxReasonBytes))
		if err != nil {
			return err
		}
		if changed = n > 0; !changed {
			return nil
		}
		t.wakes = !paused
		for _, n := range names {
			if _, err := t.exec(ctx, live, n); err != nil {
				return err
			}
			if _, err := t.exec(ctx, holdRetired, n); err != nil {
				return err
			}
		}
		return t.insertActivity(ctx, &act)
	})
	return changed, err
}

const insertHold = `INSERT INTO daybook_holds (name, since_us, detail, node) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING`

const deleteHold = `DELETE FROM daybook_holds WHERE name = $1`

const releaseClock = `UPDATE daybook_live SET hold = '' WHERE hold = 'clock not confirmed' RETURNING key`

const closeLeap = `UPDATE daybook_alerts SET closed_us = $1 WHERE kind = 'clock_leap' AND closed_us = 0`

// Hold implements daybook.Desk: with one alert.
func (s *Store) Hold(ctx context.Context, h daybook.Hold) (changed bool, err error) {
	err = s.write(ctx, "hold "+h.Name, func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, insertHold, h.Name, us(h.Since), clean(h.Detail, daybook.MaxErrorBytes), h.Node)
		if changed = n > 0; err != nil || !changed {
			return err
		}
		return t.insertAlerts(ctx, []*daybook.Alert{daybook.NewAlert(daybook.AlertClockLeap, "", "daybook", daybook.P0, h.Detail, "", h.Since)})
	})
	return changed, err
}

// EndHold implements daybook.Desk.
func (s *Store) EndHold(ctx context.Context, name string, act daybook.Activity) (changed bool, err error) {
	err = s.provedWrite(ctx, "end hold "+name, s.acted(&act), func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, deleteHold, name)
		if changed = n > 0; err != nil || !changed {
			return err
		}
		if name == daybook.HoldRestored {
			err = t.endRestored(ctx, act.At)
		} else {
			err = t.endClock(ctx, act.At)
		}
		t.wakes = true
		if err != nil {
			return err
		}
		return t.insertActivity(ctx, &act)
	})
	return changed, err
}

func (t *tx) endClock(ctx context.Context, now time.Time) error {
	keys, err := t.texts(ctx, releaseClock)
	if err != nil {
		return err
	}
	if err := t.holdPausedKeys(ctx, keys); err != nil {
		return err
	}
	_, err = t.exec(ctx, closeLeap, us(now))
	return err
}

const holdKeys = `UPDATE daybook_live SET hold = (SELECT CASE WHEN h.retired_us > 0 THEN 'no definition' ELSE 'paused' END
  FROM daybook_jobs j JOIN daybook_jobs h ON h.name = CASE WHEN j.renamed_to = '' THEN j.name ELSE j.renamed_to END WHERE j.name = job)
WHERE key /*in $1*/ AND hold = '' AND EXISTS (SELECT 1 FROM daybook_jobs j
  JOIN daybook_jobs h ON h.name = CASE WHEN j.renamed_to = '' THEN j.name ELSE j.renamed_to END
  WHERE j.name = daybook_live.job AND (h.paused = 1 OR h.retired_us > 0))`

// holdWaiting holds what goes back to waiting while its job is paused, or retired.
func (t *tx) holdWaiting(ctx context.Context, ts []daybook.Transition) error {
	var keys []string
	for _, m := range ts {
		if m.To == daybook.Retryable || m.To == daybook.Scheduled {
			keys = append(keys, string(m.Key))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if err := t.holdPausedKeys(ctx, keys); err != nil {
		return err
	}
	var ofFile []daybook.Freeze
	for _, m := range ts {
		ofFile = append(ofFile, m.Freezes...)
	}
	return t.land(ctx, keys, ofFile, ts[0].At)
}

// holdPausedKeys holds those of the runs whose job is paused, or retired.
func (t *tx) holdPausedKeys(ctx context.Context, keys []string) error {
	list, err := t.s.d.list(keys)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, holdKeys, list)
	return err
}
