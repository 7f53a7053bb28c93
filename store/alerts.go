package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

const alertColumns = `SELECT a.id, a.number, a.kind, a.key, a.job, a.priority, a.last_error, a.last_good, a.at_us, a.closed_us, a.round, a.next_us,
  a.told_us, a.repeated, a.acked_us, a.acked_by, a.ack_note, COALESCE(m.until_us, 0)
FROM daybook_alerts a LEFT JOIN daybook_mutes m ON m.job = a.job `

const selectAlertsDue = alertColumns + `WHERE a.finished = 0 AND (a.closed_us > 0 AND (m.until_us IS NULL OR m.until_us <= $1) OR a.next_us <= $1)
ORDER BY a.priority, a.at_us, a.id LIMIT $2`

const selectOpenAlertRows = alertColumns + `WHERE a.closed_us = 0 ORDER BY a.priority, a.at_us, a.id LIMIT $1`

const selectAllAlertRows = alertColumns + `ORDER BY a.at_us DESC, a.id DESC LIMIT $1`

// That a number is above 0 is said again so that SQLite sees that the partial index serves.
const selectAlertByNumber = alertColumns + `WHERE a.number = $1 AND a.number > 0`

const selectReached = `SELECT DISTINCT alert, channel FROM daybook_sends
WHERE alert /*in $1*/ AND purpose <> 'recovered' AND (state = 'sent' OR state = 'due' AND lease_us > 0) ORDER BY channel`

func scanAlertRow(rows *sql.Rows) (notice.Row, error) {
	var r notice.Row
	var opened, closed, next, told, repeated, acked, muted int64
	err := rows.Scan(&r.Alert.ID, &r.Number, &r.Kind, &r.Key, &r.Job, &r.Priority, &r.LastError, &r.LastGood, &opened, &closed, &r.Round, &next,
		&told, &repeated, &acked, &r.AckedBy, &r.AckNote, &muted)
	r.At, r.ClosedAt, r.ToldAt, r.AckedAt, r.MutedUntil = at(opened), at(closed), at(told), at(acked), at(muted)
	if next != endOfTime {
		r.Next = at(next)
	}
	r.New, r.Repeated = next == 0, repeated != 0
	return r, err
}

// alertRows reads alerts; those that have no number yet are given one first, so that nothing is shown without.
func (s *Store) alertRows(ctx context.Context, statement string, args ...any) ([]notice.Row, error) {
	for try := 0; ; try++ {
		var list []notice.Row
		ids, unnumbered := []string{}, false
		if err := s.read(ctx, "read alerts", statement, func(rows *sql.Rows) error {
			r, err := scanAlertRow(rows)
			list, ids, unnumbered = append(list, r), append(ids, r.Alert.ID), unnumbered || r.Number == 0
			return err
		}, args...); err != nil {
			return nil, err
		}
		if unnumbered && try < writeTries {
			if err := s.numberAlerts(ctx); err != nil {
				return nil, err
			}
			continue
		}
		return list, s.loadReached(ctx, list, ids)
	}
}

func (s *Store) loadReached(ctx context.Context, list []notice.Row, ids []string) error {
	if len(list) == 0 {
		return nil
	}
	arg, err := s.d.list(ids)
	if err != nil {
		return err
	}
	reached := make(map[string][]string)
	err = s.read(ctx, "read sends", selectReached, func(rows *sql.Rows) error {
		var id, channel string
		err := rows.Scan(&id, &channel)
		reached[id] = append(reached[id], channel)
		return err
	}, arg)
	for i := range list {
		list[i].Reached = reached[list[i].Alert.ID]
	}
	return err
}

// The ledger's row is locked by its own update, so that numbers are given one transaction after the other, without gaps.
const lockNumbers = `UPDATE daybook_ledger SET alerts = alerts RETURNING alerts`

const selectUnnumbered = `SELECT id FROM daybook_alerts WHERE number = 0 ORDER BY at_us, id`

const setNumber = `UPDATE daybook_alerts SET number = $2 WHERE id = $1`

const setNumbers = `UPDATE daybook_ledger SET alerts = $1`

func (s *Store) numberAlerts(ctx context.Context) error {
	return s.write(ctx, "number alerts", func(ctx context.Context, t *tx) error {
		var last int64
		if err := t.query(ctx, lockNumbers, func(rows *sql.Rows) error { return rows.Scan(&last) }); err != nil {
			return err
		}
		var ids []string
		if err := t.query(ctx, selectUnnumbered, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}); err != nil {
			return err
		}
		for i, id := range ids {
			if _, err := t.exec(ctx, setNumber, id, last+int64(i)+1); err != nil {
				return err
			}
		}
		_, err := t.exec(ctx, setNumbers, last+int64(len(ids)))
		return err
	})
}

// AlertsDue returns alerts about which something may be to be told at an instant: new ones, ended ones, and those whose
// next look has come. P0 first, then the oldest.
func (s *Store) AlertsDue(ctx context.Context, now time.Time, limit int) ([]notice.Row, error) {
	return s.alertRows(ctx, selectAlertsDue, us(now), limited(limit))
}

// AlertRows returns the open alerts by priority and age, or all, newest first.
func (s *Store) AlertRows(ctx context.Context, openOnly bool, limit int) ([]notice.Row, error) {
	if openOnly {
		return s.alertRows(ctx, selectOpenAlertRows, limited(limit))
	}
	return s.alertRows(ctx, selectAllAlertRows, limited(limit))
}

// AlertRow returns one alert, or an error with CodeNotFound.
func (s *Store) AlertRow(ctx context.Context, number int64) (notice.Row, error) {
	list, err := s.alertRows(ctx, selectAlertByNumber, number)
	if err == nil && (len(list) == 0 || number < 1) {
		return notice.Row{}, noAlert(number)
	}
	if err != nil {
		return notice.Row{}, err
	}
	return list[0], nil
}

func noAlert(number int64) error {
	return daybook.NotFound("there is no alert %s", notice.ID(number)).WithHint("daybook alert list shows those that stand open")
}

const tellAlert = `UPDATE daybook_alerts SET round = $6, next_us = $7, told_us = CASE WHEN told_us > $8 THEN told_us ELSE $8 END, repeated = $9, finished = $10
WHERE id = $1 AND finished = 0 AND round = $2 AND next_us = $3 AND closed_us = $4 AND acked_us = $5`

const insertSends = `WITH v (key, alert, channel, purpose, via, lang, subject, body, short, data, state, due_us, made_us) AS
  (/*rows t t t t t t t t t t t b b*/)
INSERT INTO daybook_sends (key, alert, channel, purpose, via, lang, subject, body, short, data, state, due_us, made_us)
SELECT * FROM v WHERE TRUE ON CONFLICT (key) DO NOTHING`

// A send that somebody is making is left to its end, whatever that is.
const dropSends = `UPDATE daybook_sends SET state = 'dropped', ended_us = $2 WHERE alert = $1 AND state = 'due' AND lease_us = 0 AND purpose <> 'recovered'`

// TellAlert writes what was decided about an alert, with its sends. It is false, and nothing is written, when the row is
// no longer as it was read: another sender was first, or the alert was acknowledged or ended meanwhile.
func (s *Store) TellAlert(ctx context.Context, p notice.Telling) (written bool, err error) {
	err = s.write(ctx, "tell "+p.Row.ID(), func(ctx context.Context, t *tx) error {
		round, told := int64(p.Row.Round), int64(0)
		if len(p.Sends) > 0 {
			round, told = round+1, us(p.At)
		}
		n, err := t.exec(ctx, tellAlert, p.Row.Alert.ID, int64(p.Row.Round), whenNext(p.Row), us(p.Row.ClosedAt), us(p.Row.AckedAt),
			round, orNever(p.Next), told, bit(p.Repeated), bit(p.Finished))
		if written = n > 0; err != nil || !written {
			return err
		}
		if p.Finished {
			if _, err := t.exec(ctx, dropSends, p.Row.Alert.ID, us(p.At)); err != nil {
				return err
			}
		}
		return t.insertSends(ctx, p.Sends)
	})
	return written, err
}

// whenNext is a row's next look as it is stored.
func whenNext(r notice.Row) int64 {
	if r.New {
		return 0
	}
	return orNever(r.Next)
}

func orNever(t time.Time) int64 {
	if t.IsZero() {
		return endOfTime
	}
	return us(t)
}

func (t *tx) insertSends(ctx context.Context, sends []notice.Send) error {
	rows := make([][]any, len(sends))
	for i, m := range sends {
		rows[i] = []any{m.Key, m.Alert, m.Channel, string(m.Purpose), m.Via, m.Lang, clean(m.Subject, maxTextBytes), clean(m.Body, maxTextBytes),
			clean(m.Short, maxTextBytes), clean(m.Data, math.MaxInt), string(notice.SendDue), us(m.Due), us(m.MadeAt)}
	}
	return t.bulk(ctx, insertSends, rows, nil)
}

const maxTextBytes = 64 << 10

const dropOvertaken = `UPDATE daybook_sends SET state = 'dropped', ended_us = $1 WHERE state = 'due' AND lease_us <= $1 AND purpose <> 'recovered'
  AND EXISTS (SELECT 1 FROM daybook_alerts a WHERE a.id = daybook_sends.alert AND (a.finished = 1 OR a.acked_us > daybook_sends.made_us))`

const selectClaimedSends = `SELECT key FROM daybook_sends WHERE claim = $1`

const claimSends = `UPDATE daybook_sends SET claim = $1, lease_us = $2, tries = tries + 1 WHERE key /*pick(*/
  SELECT key FROM daybook_sends WHERE state = 'due' AND due_us <= $3 AND lease_us <= $3 ORDER BY due_us, key LIMIT $4 /*lock*/ /*)*/
RETURNING ` + sendColumns

const sendColumns = `key, alert, channel, purpose, via, lang, subject, body, short, data, state, due_us, claim, lease_us, tries, failures, error, made_us, ended_us`

func scanSend(rows *sql.Rows) (notice.Send, error) {
	var m notice.Send
	var due, lease, made, ended int64
	err := rows.Scan(&m.Key, &m.Alert, &m.Channel, &m.Purpose, &m.Via, &m.Lang, &m.Subject, &m.Body, &m.Short, &m.Data, &m.State, &due, &m.Claim, &lease,
		&m.Tries, &m.Failures, &m.Error, &made, &ended)
	m.Due, m.Lease, m.MadeAt, m.EndedAt = at(due), at(lease), at(made), at(ended)
	return m, err
}

// ClaimSends takes sends that are due and that nobody is making. One whose maker did not come back is taken again once
// its lease is over, unless its alert ended meanwhile.
func (s *Store) ClaimSends(ctx context.Context, c notice.Claim, now time.Time) ([]notice.Send, error) {
	if due, err := s.NextSend(ctx); err != nil || due.IsZero() || due.After(now) {
		return nil, err // as most of the time: no transaction
	}
	var list []notice.Send
	err := s.provedWrite(ctx, "claim sends", exists(selectClaimedSends, c.ID), func(ctx context.Context, t *tx) error {
		list = nil
		if _, err := t.exec(ctx, dropOvertaken, us(now)); err != nil {
			return err
		}
		return t.query(ctx, claimSends, func(rows *sql.Rows) error {
			m, err := scanSend(rows)
			list = append(list, m)
			return err
		}, c.ID, us(c.Lease), us(now), limited(c.Limit))
	})
	return list, err
}

const markSend = `UPDATE daybook_sends SET state = $3, due_us = $4, failures = $5, error = $6, ended_us = $7, lease_us = 0, claim = ''
WHERE key = $1 AND claim = $2 AND state = 'due'`

// MarkSend records how a claimed send ended, together with sends that take its place. It is false, and nothing is written,
// when the claim is no longer that of m.
func (s *Store) MarkSend(ctx context.Context, m notice.Send, instead []notice.Send) (written bool, err error) {
	err = s.write(ctx, "record send "+m.Key, func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, markSend, m.Key, m.Claim, string(m.State), us(m.Due), int64(m.Failures), clean(m.Error, daybook.MaxErrorBytes), us(m.EndedAt))
		if written = n > 0; err != nil || !written {
			return err
		}
		return t.insertSends(ctx, instead)
	})
	return written, err
}

const selectNextSend = `SELECT COALESCE(min(CASE WHEN lease_us > due_us THEN lease_us ELSE due_us END), 0) FROM daybook_sends WHERE state = 'due'`

// NextSend returns when the next send can be claimed; zero: there is none.
func (s *Store) NextSend(ctx context.Context) (time.Time, error) {
	var next int64
	err := s.read(ctx, "find the next send", selectNextSend, func(rows *sql.Rows) error { return rows.Scan(&next) })
	return at(next), err
}

const selectSendsOf = `SELECT ` + sendColumns + ` FROM daybook_sends WHERE alert = $1 ORDER BY made_us, key`

// AlertSends returns the sends of an alert, oldest first.
func (s *Store) AlertSends(ctx context.Context, number int64) ([]notice.Send, error) {
	row, err := s.AlertRow(ctx, number)
	if err != nil {
		return nil, err
	}
	var list []notice.Send
	err = s.read(ctx, "read sends", selectSendsOf, func(rows *sql.Rows) error {
		m, err := scanSend(rows)
		list = append(list, m)
		return err
	}, row.Alert.ID)
	return list, err
}

const ackAlert = `UPDATE daybook_alerts SET acked_us = $2, acked_by = $3, ack_note = $4 WHERE number = $1 AND number > 0 AND acked_us = 0 AND closed_us = 0`

// An acknowledged alert stays open until what it is about ends, so that it is not raised again. What has no end of its own
// ends here: an effect that was done twice, a node that was overtaken, a window that will not run.
const endAcked = `UPDATE daybook_alerts SET closed_us = acked_us, finished = 1 WHERE number = $1 AND number > 0 AND (kind IN ('done_twice', 'overtaken')
  OR kind = 'job_late' AND EXISTS (SELECT 1 FROM daybook_runs r WHERE r.key = daybook_alerts.key AND r.state <> ''))`

// AckAlert acknowledges an alert: it is not repeated any more. The change is false when it was acknowledged before, or is
// over. Errors: CodeNotFound.
func (s *Store) AckAlert(ctx context.Context, number int64, act daybook.Activity) (changed bool, err error) {
	row, err := s.AlertRow(ctx, number)
	if err != nil {
		return false, err
	}
	err = s.provedWrite(ctx, "acknowledge "+notice.ID(number), s.acted(&act), func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, ackAlert, number, us(act.At), clean(act.Actor, daybook.MaxActorBytes), clean(act.Note, daybook.MaxReasonBytes))
		if changed = n > 0; err != nil || !changed {
			return err
		}
		if _, err := t.exec(ctx, endAcked, number); err != nil {
			return err
		}
		if _, err := t.exec(ctx, dropSends, row.Alert.ID, us(act.At)); err != nil {
			return err
		}
		act.Key, act.Job = row.Key, row.Job
		return t.insertActivity(ctx, &act)
	})
	return changed, err
}

const recoverAlert = `UPDATE daybook_alerts SET closed_us = $2 WHERE id = $1 AND closed_us = 0`

// RecoverAlert ends an open alert by the ID of its row: what it is about is over. The change is false when it was over.
func (s *Store) RecoverAlert(ctx context.Context, id string, now time.Time) (changed bool, err error) {
	err = s.write(ctx, "end an alert", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, recoverAlert, id, us(now))
		changed = n > 0
		return err
	})
	return changed, err
}

const putMute = `INSERT INTO daybook_mutes (job, since_us, until_us, muted_by, note) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (job) DO UPDATE SET since_us = excluded.since_us, until_us = excluded.until_us, muted_by = excluded.muted_by, note = excluded.note`

const lookAgain = `UPDATE daybook_alerts SET next_us = $2 WHERE job = $1 AND finished = 0 AND next_us > $2`

// MuteAlerts keeps the alerts of a job from being sent until an instant, with a reason; the one before, if any, is
// replaced, and an end in the past ends it. Errors: CodeInvalid for one without end, reason or name.
func (s *Store) MuteAlerts(ctx context.Context, m notice.Mute, act daybook.Activity) error {
	if m.Job == "" || m.Note == "" || m.Until.IsZero() {
		return daybook.Invalid("a mute has a job, an end and a reason")
	}
	act.Job = m.Job
	return s.provedWrite(ctx, "mute "+m.Job, s.acted(&act), func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, putMute, m.Job, us(m.Since), us(m.Until), clean(m.By, daybook.MaxActorBytes), clean(m.Note, daybook.MaxReasonBytes)); err != nil {
			return err
		}
		// What waits for the end of the mute before is looked at again when this one ends.
		if _, err := t.exec(ctx, lookAgain, m.Job, us(m.Until)); err != nil {
			return err
		}
		return t.insertActivity(ctx, &act)
	})
}

const selectMutes = `SELECT job, since_us, until_us, muted_by, note FROM daybook_mutes WHERE until_us > $1 ORDER BY until_us, job`

// Mutes returns the mutes that hold at an instant, the one that ends first first.
func (s *Store) Mutes(ctx context.Context, now time.Time) ([]notice.Mute, error) {
	var list []notice.Mute
	err := s.read(ctx, "read mutes", selectMutes, func(rows *sql.Rows) error {
		var m notice.Mute
		var since, until int64
		err := rows.Scan(&m.Job, &since, &until, &m.By, &m.Note)
		m.Since, m.Until = at(since), at(until)
		list = append(list, m)
		return err
	}, us(now))
	return list, err
}
