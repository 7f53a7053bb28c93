package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// A run is read from daybook_runs and, while it is live, from daybook_live: what changes stands in the latter.
const runColumns = runFields + `
  FROM daybook_runs r LEFT JOIN daybook_live l ON l.key = r.key`

const runFields = `r.key, r.job, r.label, r.date, r.subject, r.parent, r.start_us, r.end_us, r.cover_start_us, r.cover_end_us,
  r.fire, r.zone, r.tzdata, r.priority, r.lane, COALESCE(l.home, r.home), r.effects, r.work, r.steps, r.line, r.serial, r.revision,
  r.covered_by, r.payload, r.payload_hash, r.triggers, r.refused, r.first_source, r.first_actor,
  r.created_us, r.not_before_us, r.started_us, r.ended_us, r.result, r.result_hash, r.counts, r.pruned_us,
  COALESCE(l.state, r.state), COALESCE(l.reason, r.reason), COALESCE(l.fence, r.fence), COALESCE(l.claim, r.claim),
  COALESCE(l.node, r.node), COALESCE(l.attempts, r.attempts), COALESCE(l.failures, r.failures), COALESCE(l.losses, r.losses),
  COALESCE(l.last_error, r.last_error), COALESCE(l.hold, ''), COALESCE(l.due_us, 0), COALESCE(l.lease_us, 0),
  COALESCE(l.asking, ''), COALESCE(l.claimed_us, 0), COALESCE(l.begun_us, 0), COALESCE(l.again, 0), COALESCE(l.cancelled_by, ''), COALESCE(l.marks, r.marks), COALESCE(l.denied, r.denied), COALESCE(l.frozen_us, 0), COALESCE(l.meant_us, 0),
  r.fans, r.listed, COALESCE(l.rests, 0), (SELECT b.lapse FROM daybook_ledger b)`

// scanRun reads a run, from behind what a statement tells before it.
func scanRun(rows *sql.Rows, before ...any) (*daybook.Run, error) {
	var r daybook.Run
	var start, end, coverStart, coverEnd, steps, created, notBefore, started, ended, pruned int64
	var frozen, meant, due, lease, claimed, begun, again, fans, rests int64
	var payload, result, counts string
	if err := rows.Scan(append(before, &r.Key, &r.Job, &r.Window.Label, &r.Window.Date, &r.Subject, &r.Parent, &start, &end, &coverStart, &coverEnd,
		&r.Fire, &r.Zone, &r.TZData, &r.Priority, &r.Lane, &r.Home, &r.Effects, &r.Work, &steps, &r.Line, &r.Serial, &r.Revision,
		&r.CoveredBy, &payload, &r.PayloadHash, &r.Triggers, &r.Refused, &r.FirstSource, &r.FirstActor,
		&created, &notBefore, &started, &ended, &result, &r.ResultHash, &counts, &pruned,
		&r.State, &r.Reason, &r.Fence, &r.Claim, &r.Node, &r.Attempts, &r.Failures, &r.Losses,
		&r.LastError, &r.Hold, &due, &lease, &r.Asking, &claimed, &begun, &again, &r.CancelledBy, &r.Marks, &r.Denied, &frozen, &meant,
		&fans, &r.Listed, &rests, &r.Lapse)...); err != nil {
		return nil, err
	}
	r.Window.Start, r.Window.End = at(start), at(end)
	r.Cover = daybook.Bounds{Start: at(coverStart), End: at(coverEnd)}
	r.Steps, r.Again, r.Fans, r.Rests = steps != 0, again != 0, fans != 0, rests != 0
	r.CreatedAt, r.NotBefore, r.StartedAt, r.EndedAt, r.PrunedAt = at(created), at(notBefore), at(started), at(ended), at(pruned)
	r.Due, r.Lease, r.ClaimedAt, r.BegunAt = at(due), at(lease), at(claimed), at(begun)
	r.FrozenUntil, r.Meant = at(frozen), at(meant)
	if r.Hold == "" && frozen > 0 && due >= frozen && r.State != daybook.Running && r.Asking == "" {
		r.Hold = daybook.ReasonFrozen
	}
	r.Input, r.Result = raw(payload), raw(result)
	if counts != "" {
		if err := json.Unmarshal([]byte(counts), &r.Counts); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

const selectRun = `SELECT ` + runColumns + ` WHERE r.key = $1`

const selectRunsIn = `SELECT ` + runColumns + ` WHERE r.key /*in $1*/`

const selectLetterOf = `SELECT id, key, parent, job, priority, kind, state, error, opened_us, closed_us, closed_by, note, refused
FROM daybook_letters WHERE key = $1 ORDER BY opened_us DESC, id DESC LIMIT 1`

// query is what tx and the read pool share.
type query func(ctx context.Context, statement string, each func(*sql.Rows) error, args ...any) error

func (s *Store) reader(what string) query {
	return func(ctx context.Context, statement string, each func(*sql.Rows) error, args ...any) error {
		return s.read(ctx, what, statement, each, args...)
	}
}

// Run returns the record of a key with its effect and its newest letter.
func (s *Store) Run(ctx context.Context, k daybook.Key) (*daybook.Run, error) {
	r, err := s.findRun(ctx, s.reader("read run "+string(k)), k)
	if err == nil && r == nil {
		return nil, daybook.NotFound("there is no run %s", k)
	}
	return r, err
}

// findRun returns nil when there is no such run.
func (s *Store) findRun(ctx context.Context, q query, k daybook.Key) (*daybook.Run, error) {
	var found *daybook.Run
	err := q(ctx, selectRun, func(rows *sql.Rows) (err error) {
		found, err = scanRun(rows)
		return err
	}, string(k))
	if err != nil || found == nil {
		return nil, err
	}
	if err := s.loadMarks(ctx, q, found); err != nil {
		return nil, err
	}
	return found, s.loadLetter(ctx, q, found)
}

// loadMarks gives a run its effect or steps, and what the ledger may have forgotten of them.
func (s *Store) loadMarks(ctx context.Context, q query, r *daybook.Run) error {
	if err := s.recall(ctx, q, r); err != nil || !marks(r) || r.Fence == 0 && len(r.Doubts) == 0 {
		return err
	}
	return s.loadSteps(ctx, q, []*daybook.Run{r})
}

// loadLetter gives a run its newest letter.
func (s *Store) loadLetter(ctx context.Context, q query, r *daybook.Run) error {
	return q(ctx, selectLetterOf, func(rows *sql.Rows) error {
		l, err := scanLetter(rows)
		r.Letter = &l
		return err
	}, string(r.Key))
}

// findRuns returns the runs of keys, with their effects, in no order.
func (s *Store) findRuns(ctx context.Context, q query, keys []string) (map[daybook.Key]*daybook.Run, error) {
	list, err := s.d.list(keys)
	if err != nil {
		return nil, err
	}
	return s.runsBy(ctx, q, selectRunsIn, list)
}

// runsBy returns the runs that a statement reads, with their effects, in no order.
func (s *Store) runsBy(ctx context.Context, q query, statement string, args ...any) (map[daybook.Key]*daybook.Run, error) {
	found := make(map[daybook.Key]*daybook.Run)
	var once []*daybook.Run
	err := q(ctx, statement, func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		if err != nil {
			return err
		}
		found[r.Key] = r
		if marks(r) {
			once = append(once, r)
		}
		return nil
	}, args...)
	if err != nil || len(once) == 0 {
		return found, err
	}
	if err := s.recall(ctx, q, once...); err != nil {
		return nil, err
	}
	return found, s.loadSteps(ctx, q, once)
}

func scanLetter(rows *sql.Rows) (daybook.Letter, error) {
	var l daybook.Letter
	var opened, closed int64
	err := rows.Scan(&l.ID, &l.Key, &l.Parent, &l.Job, &l.Priority, &l.Kind, &l.State, &l.Error, &opened, &closed, &l.ClosedBy, &l.Note, &l.Refused)
	l.OpenedAt, l.ClosedAt = at(opened), at(closed)
	return l, err
}

const intoRuns = `WITH v (key, job, label, date, subject, parent, start_us, end_us, cover_start_us, cover_end_us, fire, zone, tzdata,
  priority, lane, home, effects, work, steps, line, serial, revision, state, reason, covered_by, payload, payload_hash,
  triggers, first_source, first_actor, created_us, not_before_us, ended_us, listed) AS
  (/*rows t t t t t t b b b b t t t t t t t t b t t b t t t t t b t t b b b b*/)
INSERT INTO daybook_runs (key, job, label, date, subject, parent, start_us, end_us, cover_start_us, cover_end_us, fire, zone, tzdata,
  priority, lane, home, effects, work, steps, line, serial, revision, state, reason, covered_by, payload, payload_hash,
  triggers, first_source, first_actor, created_us, not_before_us, ended_us, listed)
SELECT * FROM v WHERE TRUE ON CONFLICT (key) DO NOTHING`

const insertRuns = intoRuns + ` RETURNING key`

const insertLive = `WITH v (key, job, state, reason, hold, due_us, priority, lane, home, line, start_us, serial, parent, once) AS
  (/*rows t t t t t b t t t t b t t b*/)
INSERT INTO daybook_live (key, job, state, reason, hold, due_us, priority, lane, home, line, start_us, serial, parent, once)
SELECT v.key, v.job, v.state, v.reason,
  CASE WHEN v.hold = '' AND v.once = 1 AND EXISTS (SELECT 1 FROM daybook_lapses e WHERE e.ended_us = 0) THEN 'restored' ELSE v.hold END,
  v.due_us, v.priority, v.lane, v.home, v.line, v.start_us, v.serial, v.parent, v.once
FROM v WHERE TRUE`

const insertOneLive = `INSERT INTO daybook_live (key, job, state, reason, hold, due_us, priority, lane, home, line, start_us, serial, parent, once)
VALUES ($1, $2, $3, $4, CASE WHEN $5 = '' AND $14 = 1 AND EXISTS (SELECT 1 FROM daybook_lapses e WHERE e.ended_us = 0) THEN 'restored' ELSE $5 END,
  $6, $7, $8, $9, $10, $11, $12, $13, $14)`

// insertRuns writes new runs and returns the keys that were new. A key that was there already is left as it is.
func (t *tx) insertRuns(ctx context.Context, runs []*daybook.Run) (map[daybook.Key]bool, error) {
	rows := make([][]any, len(runs))
	for i, r := range runs {
		rows[i] = t.runRow(r)
	}
	fresh := make(map[daybook.Key]bool, len(runs))
	err := t.bulk(ctx, insertRuns, rows, func(rows *sql.Rows) error {
		var k daybook.Key
		err := rows.Scan(&k)
		fresh[k] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	rows = rows[:0]
	for _, r := range runs {
		if r.State.Live() && fresh[r.Key] {
			rows = append(rows, liveRow(r))
		}
	}
	return fresh, t.bulk(ctx, insertLive, rows, nil)
}

// runRow is a new run in the ledger of keys. Others are called when it is due.
func (t *tx) runRow(r *daybook.Run) []any {
	state, reason, ended := string(r.State), string(r.Reason), int64(0)
	t.wakes = t.wakes || r.State.Live() && r.Hold == "" && !r.Due.After(r.CreatedAt)
	if r.State.Live() {
		state, reason = "", ""
	} else {
		ended = us(r.CreatedAt)
	}
	return []any{string(r.Key), r.Job, r.Window.Label, r.Window.Date, r.Subject, string(r.Parent), us(r.Window.Start), us(r.Window.End),
		us(r.Cover.Start), us(r.Cover.End), r.Fire, r.Zone, r.TZData, string(r.Priority), string(r.Lane), r.Home, string(r.Effects),
		string(r.Work), bit(r.Steps), r.Line, r.Serial, r.Revision, state, reason, string(r.CoveredBy), cleanJSON(r.Input), r.PayloadHash,
		int64(r.Triggers), string(r.FirstSource), clean(r.FirstActor, daybook.MaxActorBytes), us(r.CreatedAt), us(r.NotBefore), ended, r.Listed}
}

// liveRow is one that is to be done, in the table of what is live.
func liveRow(r *daybook.Run) []any {
	return []any{string(r.Key), r.Job, string(r.State), string(r.Reason), string(heldBy(r)), us(r.Due), string(r.Priority),
		string(r.Lane), r.Home, r.Line, us(r.Window.Start), r.Serial, string(r.Parent), bit(r.MarksEffects())}
}

// heldBy is why a run is out of the index of what is due. A freeze does not take it out: its instant says so.
func heldBy(r *daybook.Run) daybook.Reason {
	if r.Hold == daybook.ReasonFrozen {
		return ""
	}
	return r.Hold
}

// asStored is a new run as it is read once runRow and liveRow are written, in a ledger that never forgot.
func asStored(made *daybook.Run) *daybook.Run {
	kept := func(t time.Time) time.Time { return at(us(t)) }
	r := &daybook.Run{Key: made.Key, Job: made.Job, Fire: made.Fire, Subject: made.Subject, Parent: made.Parent, Priority: made.Priority, Lane: made.Lane,
		Effects: made.Effects, Work: made.Work, Steps: made.Steps, Revision: made.Revision, Zone: made.Zone, TZData: made.TZData,
		State: made.State, Reason: made.Reason, Home: made.Home, Line: made.Line, Serial: made.Serial, CoveredBy: made.CoveredBy, Listed: made.Listed,
		Input: raw(cleanJSON(made.Input)), PayloadHash: made.PayloadHash, Triggers: made.Triggers,
		FirstSource: made.FirstSource, FirstActor: clean(made.FirstActor, daybook.MaxActorBytes),
		CreatedAt: kept(made.CreatedAt), NotBefore: kept(made.NotBefore),
		Window: daybook.Window{Label: made.Window.Label, Date: made.Window.Date, Start: kept(made.Window.Start), End: kept(made.Window.End)},
		Cover:  daybook.Bounds{Start: kept(made.Cover.Start), End: kept(made.Cover.End)},
	}
	if r.State.Live() {
		r.Hold, r.Due = heldBy(made), kept(made.Due)
	} else {
		r.EndedAt = r.CreatedAt
	}
	return r
}

const insertTriggers = `WITH v (key, id, job, source, outcome, actor, note, fire, at_us, payload_hash) AS (/*rows t t t t t t t t b t*/)
INSERT INTO daybook_triggers (key, id, job, source, outcome, actor, note, fire, at_us, payload_hash)
SELECT * FROM v WHERE TRUE ON CONFLICT DO NOTHING`

func (t *tx) insertTriggers(ctx context.Context, triggers []*daybook.Trigger) error {
	rows := make([][]any, len(triggers))
	for i, g := range triggers {
		rows[i] = t.triggerRow(g)
	}
	return t.bulk(ctx, insertTriggers, rows, nil)
}

func (t *tx) triggerRow(g *daybook.Trigger) []any {
	if g.ID == "" {
		g.ID = t.s.newID()
	}
	return []any{string(g.Key), g.ID, g.Job, string(g.Source), string(g.Outcome), clean(g.Actor, daybook.MaxActorBytes),
		clean(g.Note, daybook.MaxReasonBytes), g.Fire, us(g.At), g.PayloadHash}
}

const insertOneTrigger = `INSERT INTO daybook_triggers (key, id, job, source, outcome, actor, note, fire, at_us, payload_hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`

// insertTrigger records one trigger and returns 0 when its fire was recorded before.
func (t *tx) insertTrigger(ctx context.Context, g *daybook.Trigger) (int64, error) {
	return t.exec(ctx, insertOneTrigger, t.triggerRow(g)...)
}

const countTriggers = `WITH v (key, refused) AS (/*rows t b*/)
UPDATE daybook_runs SET triggers = daybook_runs.triggers + 1, refused = daybook_runs.refused + v.refused FROM v WHERE daybook_runs.key = v.key`

const countTrigger = `UPDATE daybook_runs SET triggers = triggers + 1, refused = refused + $2 WHERE key = $1`

const insertActivity = `INSERT INTO daybook_activity (id, at_us, actor, action, key, job, note, state_before, state_after)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

func (t *tx) insertActivity(ctx context.Context, a *daybook.Activity) error {
	if a == nil {
		return nil
	}
	_, err := t.exec(ctx, insertActivity, t.activityRow(a)...)
	return err
}

func (t *tx) activityRow(a *daybook.Activity) []any {
	id := a.ID
	if id == "" {
		id = t.s.newID()
	}
	return []any{id, us(a.At), clean(a.Actor, daybook.MaxActorBytes), a.Action, string(a.Key), a.Job, clean(a.Note, daybook.MaxReasonBytes), a.Before, a.After}
}

// One alert a kind, job and key stands open; a further one renews its text and its time.
const insertAlert = `INSERT INTO daybook_alerts (id, kind, key, job, priority, last_error, last_good, at_us)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (kind, job, key) WHERE closed_us = 0 DO UPDATE SET last_error = excluded.last_error, last_good = excluded.last_good`

// That of the subjects of a run is written by the first of them: the others do not wait for each other's row.
const insertShared = `INSERT INTO daybook_alerts (id, kind, key, job, priority, last_error, last_good, at_us)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (kind, job, key) WHERE closed_us = 0 DO NOTHING`

// relyOnShared finds the alert that stands open, which nobody closes then before the letter that relies on it can be seen.
const relyOnShared = `SELECT id FROM daybook_alerts WHERE kind = $1 AND job = $2 AND key = $3 AND closed_us = 0 /*shared*/`

func (t *tx) insertAlerts(ctx context.Context, alerts []*daybook.Alert) error {
	for _, a := range alerts {
		for told := false; !told; {
			text := insertAlert
			if a.Shared {
				text = insertShared
			}
			n, err := t.exec(ctx, text, t.s.newID(), string(a.Kind), string(a.Key), a.Job, string(a.Priority),
				clean(a.LastError, daybook.MaxErrorBytes), a.LastGood, us(a.At))
			if told = n > 0; err == nil && !told {
				err = t.query(ctx, relyOnShared, func(*sql.Rows) error { told = true; return nil }, string(a.Kind), a.Job, string(a.Key))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// clean makes text that a database takes: valid UTF-8 without NUL, at most n bytes.
func clean(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return daybook.Clip(s, n)
}

// cleanJSON makes JSON text that both databases take. JSON that holds bytes which are no text is not valid JSON, but what
// a job wrote may be so.
func cleanJSON(data json.RawMessage) string { return clean(string(data), math.MaxInt) }

func countsJSON(counts map[string]int64) (string, error) {
	if len(counts) == 0 {
		return "", nil
	}
	b, err := json.Marshal(counts)
	return string(b), err
}
