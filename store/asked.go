package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/daybook-run/daybook"
)

// selectHold finds whether the clock holds once-only work.
const selectHold = `SELECT name FROM daybook_holds WHERE name = 'clock' /*shared*/`

const lockRun = `SELECT key FROM daybook_runs WHERE key = $1 FOR UPDATE`

const selectSpanAt = `SELECT job, from_us, to_us, from_label, to_label, windows, reason, revision, decided_us
FROM daybook_spans WHERE job = $1 AND to_us >= $2 AND from_us <= $2 ORDER BY to_us LIMIT 1`

// selectAsked is all that triggers have to know, as it stands at one instant: the row of a key; and of a key that has none its job,
// what holds it, and whether it lies in a span of skipped windows. There is one row for each in any case. The row of the job
// is shared until the transaction ends: whoever makes it stand still waits for what comes of this, or is waited for and seen.
const selectAsked = `WITH ` + askedKeys + `/*shared*/` + askedJobs

// selectAskedFree is the same for those who must not wait: of a key whose job somebody makes stand still it says so.
const selectAskedFree = `WITH ` + askedKeys + `/*share*/` + askedJobs

const askedKeys = `v (key, job, effects, fire_us, now_us) AS (/*rows t t t b b*/)
SELECT v.key, COALESCE(j.paused, 0), COALESCE(j.formerly, ''), COALESCE(j.renamed_to, ''),
  COALESCE((SELECT max(h.name) FROM (SELECT name FROM daybook_holds WHERE name IN ('clock', 'restored') AND v.effects = 'once' /*share*/) h), ''),
  CASE WHEN EXISTS (SELECT 1 FROM daybook_freezes z WHERE z.ended_us = 0 AND z.until_us > v.now_us) THEN 1 ELSE 0 END,
  COALESCE((SELECT s.reason FROM daybook_spans s WHERE v.fire_us > 0 AND s.job = v.job AND s.to_us >= v.fire_us AND s.from_us <= v.fire_us ORDER BY s.to_us LIMIT 1), ''),
  (SELECT b.lapse FROM daybook_ledger b), COALESCE((SELECT 1 FROM daybook_letters e WHERE e.key = v.key LIMIT 1), 0),
  CASE WHEN r.key IS NULL AND j.name IS NULL AND EXISTS (SELECT 1 FROM daybook_jobs o WHERE o.name = v.job) THEN 1 ELSE 0 END,
  CASE WHEN r.key IS NULL THEN 0 ELSE 1 END, ` + runFields + `
FROM v LEFT JOIN daybook_runs r ON r.key = v.key LEFT JOIN daybook_live l ON l.key = r.key
  LEFT JOIN (SELECT name, paused, formerly, renamed_to FROM daybook_jobs
    WHERE name IN (SELECT v.job FROM v WHERE NOT EXISTS (SELECT 1 FROM daybook_runs k WHERE k.key = v.key)) ORDER BY name `

const askedJobs = `) j ON j.name = v.job`

// asked is what is known about a key that somebody asks for.
type asked struct {
	daybook.Standing
	found     *daybook.Run // its row, perhaps under an earlier name of the job
	lettered  bool         // it has a letter, or had one
	formerly  []string     // those names, of a key without a row under the job's own
	renamedTo string       // the job that carries on what stands under this one's name
	frozen    bool         // a freeze of the ledger is not over
	held      bool         // somebody makes its job stand still: of a key without a row, asked by one who must not wait
	lapse     int64        // number of the newest lapse of the ledger
}

// stand finds out how a key stands. To be answered it need not be held: it is answered as it stood at one instant between the
// question and the answer. One that is to go on, or whose state is told by more rows than its own, is held, and looked at
// once more.
func (t *tx) stand(ctx context.Context, k *knock) error {
	if err := t.look(ctx, k); err != nil || k.apart {
		return err
	}
	r := k.found
	if r == nil {
		return t.standEarlier(ctx, k)
	}
	if !k.answersByItself() || daybook.Decide(k.ask, k.Standing).Act != daybook.ActNone {
		return t.standHeld(ctx, k, r.Key)
	}
	return t.s.loadMarks(ctx, t.query, r)
}

// answersByItself reports whether the row that was found tells all that is to be known of how the key stands.
func (k *knock) answersByItself() bool {
	return !k.lettered && k.found.State != daybook.Coalesced && !k.found.FannedOut()
}

// look finds out how keys stand, all of them at one instant.
func (t *tx) look(ctx context.Context, knocks ...*knock) error {
	statement := selectAskedFree
	if knocks[0].wait {
		statement = selectAsked
	}
	rows, asking := make([][]any, len(knocks)), make(map[string]*knock, len(knocks))
	for i, k := range knocks {
		a := k.ask
		rows[i] = []any{string(a.Key), a.Key.Job(), string(a.Effects), us(a.FireAt), us(k.now)}
		asking[string(a.Key)] = k
	}
	err := t.rows(ctx, statement, rows, func(rows *sql.Rows) error {
		var key string
		if err := rows.Scan(append([]any{&key}, unread[1:]...)...); err != nil {
			return err
		}
		return asking[key].learn(rows)
	})
	return err
}

// learn reads a row of selectAsked.
func (k *knock) learn(rows *sql.Rows) (err error) {
	var paused, frozen, lettered, held, found int64
	var formerly, holds string
	as := asked{Standing: daybook.Standing{NotOpen: k.ask.NotOpen, EventJob: k.ask.EventJob}}
	before := []any{pass{}, &paused, &formerly, &as.renamedTo, &holds, &frozen, &as.SpanReason, &as.lapse, &lettered, &held, &found}
	if err := rows.Scan(append(before, unread[len(before):]...)...); err != nil {
		return err
	}
	as.Paused, as.frozen, as.lettered, as.formerly = paused != 0, frozen != 0, lettered != 0, splitNames(formerly)
	switch holds {
	case daybook.HoldRestored: // the later of the two by name
		as.Held = daybook.ReasonRestored
	case daybook.HoldClock:
		as.Held = daybook.ReasonClock
	}
	if as.SpanReason != "" {
		as.Exists, as.State = true, daybook.Skipped
	}
	if found != 0 {
		if as.found, err = scanRun(rows, before...); err != nil {
			return err
		}
		as.Standing = standingOf(as.found, k.hash)
	}
	as.held = held != 0 && !k.wait
	k.asked, k.apart = as, as.held
	return nil
}

// unread passes over the columns of selectAsked that are not read, or are there only with a run.
var unread = func() (to [73]any) {
	for i := range to {
		to[i] = pass{}
	}
	return to
}()

type pass struct{}

// Scan implements sql.Scanner.
func (pass) Scan(any) error { return nil }

// standHeld holds the row of a key until the transaction ends, and finds out how it stands.
func (t *tx) standHeld(ctx context.Context, k *knock, key daybook.Key) (err error) {
	if err := t.lockRun(ctx, key); err != nil {
		return err
	}
	if k.found, err = t.s.findRun(ctx, t.query, key); err != nil || k.found == nil {
		return err
	}
	k.ask.Key = key
	k.Standing, err = t.standingOf(ctx, k.found, k.hash)
	return err
}

// standEarlier looks for a key, and for a span in which it lies, under the earlier names of its job.
func (t *tx) standEarlier(ctx context.Context, k *knock) error {
	for _, n := range k.formerly {
		if err := t.standHeld(ctx, k, under(n, k.ask.Key)); err != nil || k.found != nil {
			return err
		}
	}
	for _, n := range k.formerly {
		if k.ask.FireAt.IsZero() || k.Exists {
			break
		}
		span, ok, err := t.spanAt(ctx, n, k.ask.FireAt)
		if err != nil {
			return err
		}
		if ok {
			k.Exists, k.State, k.SpanReason = true, daybook.Skipped, span.Reason
		}
	}
	return nil
}

// lockRun holds the row of a key until the transaction ends.
func (t *tx) lockRun(ctx context.Context, k daybook.Key) error {
	if t.s.d.name != "postgres" {
		return nil
	}
	return t.query(ctx, lockRun, func(*sql.Rows) error { return nil }, string(k))
}

func (t *tx) spanAt(ctx context.Context, job string, fire time.Time) (daybook.Span, bool, error) {
	var span daybook.Span
	ok := false
	err := t.query(ctx, selectSpanAt, func(rows *sql.Rows) (err error) {
		ok = true
		span, err = scanSpan(rows)
		return err
	}, job, us(fire))
	return span, ok, err
}

func scanSpan(rows *sql.Rows) (daybook.Span, error) {
	var sp daybook.Span
	var from, to, decided int64
	err := rows.Scan(&sp.Job, &from, &to, &sp.FromLabel, &sp.ToLabel, &sp.Count, &sp.Reason, &sp.Revision, &decided)
	sp.From, sp.To, sp.DecidedAt = at(from), at(to), at(decided)
	return sp, err
}

// standingOf is how a run stands, for all that its own row and its letter tell.
func standingOf(r *daybook.Run, hash string) daybook.Standing {
	s := daybook.Standing{Exists: true, State: r.State, Effects: r.Effects, Undone: r.Reason == daybook.ReasonUndone, Undoing: r.Reason == daybook.ReasonUndoing,
		OtherPayload: hash != "" && hash != r.PayloadHash}
	if r.Letter != nil {
		s.LetterKind, s.LetterState = r.Letter.Kind, r.Letter.State
	}
	return s
}

// standingOf is how a run and its subjects stand.
func (t *tx) standingOf(ctx context.Context, r *daybook.Run, hash string) (daybook.Standing, error) {
	s := standingOf(r, hash)
	if !r.FannedOut() {
		return s, nil
	}
	var f daybook.Fanout
	err := t.standOf(ctx, r.Key, &f, 1, r.CreatedAt)
	return s.With(f), err
}
