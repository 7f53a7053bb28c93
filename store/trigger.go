package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/daybook-run/daybook"
)

const lockRun = `SELECT key FROM daybook_runs WHERE key = $1 FOR UPDATE`

const refuseLetter = `UPDATE daybook_letters SET refused = refused + 1 WHERE key = $1 AND state = 'open'`

// coverDepth bounds how often an answer follows covered_by: a covering run is never covered itself for long.
const coverDepth = 3

// Trigger implements daybook.Desk.
func (s *Store) Trigger(ctx context.Context, a daybook.Ask, template *daybook.Run, now time.Time) (daybook.Reply, *daybook.Run, error) {
	hash, err := daybook.HashPayload(a.Payload)
	if err != nil {
		return daybook.Reply{}, nil, err
	}
	var reply daybook.Reply
	var run *daybook.Run
	id := s.newID()
	if a.Take != nil {
		take, claim := *a.Take, a.Take.NewID()
		take.NewID, a.Take = func() string { return claim }, &take
	}
	var recorded daybook.Key // under an earlier name of the job, perhaps
	mine := func(ctx context.Context, t *tx) (bool, error) {
		return exists(selectTrigger, string(recorded), id)(ctx, t)
	}
	err = s.provedWrite(ctx, "trigger "+string(a.Key), mine, func(ctx context.Context, t *tx) error {
		reply, run = daybook.Reply{}, nil
		as, err := t.standing(ctx, a, hash)
		if err != nil {
			return err
		}
		standing, found, a := as.Standing, as.found, a
		if found != nil {
			a.Key = found.Key
		}
		freezes, err := t.standingFreezes(ctx, a.Freezes, now)
		if err != nil {
			return err
		}
		if standing.Held == "" && template != nil && !daybook.FrozenUntil(freezes, template.Priority, now).IsZero() {
			standing.Held = daybook.ReasonFrozen
		}
		reply = daybook.Decide(a, standing)
		answered := found
		follow := !standing.OtherPayload && a.By() != daybook.SourceReplay && !byClock(a.By())
		for depth := 0; follow && answered != nil && answered.State == daybook.Coalesced; depth++ {
			// It is answered as its covering run is.
			cover, err := s.findRun(ctx, t.query, answered.CoveredBy)
			if err != nil {
				return err
			}
			if cover == nil || depth == coverDepth {
				reply = daybook.Decide(a, standing)
				break
			}
			answered = cover
			about := a
			about.Payload = nil
			stands, err := t.standingOf(ctx, cover, "")
			if err != nil {
				return err
			}
			reply = daybook.Decide(about, stands)
			if reply.Act != daybook.ActNone { // what it asks for is asked of the covering run, by its own key
				reply = daybook.Decide(a, standing)
				break
			}
		}
		hold := standing.Held
		if standing.Paused {
			hold = daybook.ReasonPaused
		}
		if as.renamedTo != "" && found == nil && reply.Act != daybook.ActNone {
			return carriedOn(a.Key.Job(), as.renamedTo)
		}
		if template != nil && len(as.formerly) > 0 {
			lined := *template
			lined.LineUp(as.formerly)
			template = &lined
		}
		made, err := t.act(ctx, reply.Act, a, found, template, hold, hash, now)
		if err != nil {
			return err
		}
		if reply.Act != daybook.ActNone && len(freezes) > 0 {
			if err := t.land(ctx, []string{string(a.Key)}, a.Freezes, now); err != nil {
				return err
			}
		}
		recorded = a.Key
		if err := t.insertTriggers(ctx, []*daybook.Trigger{record(id, a, reply, hash, now)}); err != nil {
			return err
		}
		if act := a.Activity(reply, now); act != nil {
			if err := t.insertActivity(ctx, act); err != nil {
				return err
			}
		}
		if !made {
			if _, err := t.exec(ctx, countTrigger, string(a.Key), bit(reply.Outcome == daybook.Refused)); err != nil {
				return err
			}
		}
		if reply.Outcome == daybook.Refused && found != nil {
			if _, err := t.exec(ctx, refuseLetter, string(a.Key)); err != nil {
				return err
			}
		}
		if found != nil && reply.Act == daybook.ActNone { // nothing changed but what was counted
			found.Triggers++
			if reply.Outcome == daybook.Refused {
				found.Refused++
				if found.Letter != nil && found.Letter.State == daybook.LetterOpen {
					found.Letter.Refused++
				}
			}
			run = found
		} else if run, err = s.findRun(ctx, t.query, a.Key); err != nil {
			return err
		}
		if a.Take == nil || run == nil || reply.Outcome == daybook.Refused || run.Reason == daybook.ReasonSettling {
			return nil
		}
		take := *a.Take
		take.Key = run.Key // which may stand under an earlier name of the job
		taken, err := t.claim(ctx, take, now)
		if err != nil && s.d.unique(err) {
			return errMet // another run of its line was claimed at once: seen when it is done again
		}
		if len(taken) == 1 {
			run = taken[0]
		} else if err == nil { // it may have been put off, or come to wait for its serial key
			run, err = s.findRun(ctx, t.query, run.Key)
		}
		return err
	})
	if err != nil {
		return daybook.Reply{}, nil, err
	}
	return reply, run, nil
}

func byClock(s daybook.Source) bool {
	return s == daybook.SourceSchedule || s == daybook.SourceCatchup || s == daybook.SourceBackfill
}

func record(id string, a daybook.Ask, reply daybook.Reply, hash string, now time.Time) *daybook.Trigger {
	return &daybook.Trigger{ID: id, Key: a.Key, Job: a.Key.Job(), Source: a.Source, Outcome: reply.Outcome, Actor: a.Actor, Note: a.Note,
		Fire: a.Fire, At: now, PayloadHash: hash}
}

const selectJobStanding = `SELECT paused, formerly, renamed_to FROM daybook_jobs WHERE name = $1 /*shared*/`

const selectHold = `SELECT name FROM daybook_holds WHERE name = 'clock' /*shared*/`

const selectHoldings = `SELECT name FROM daybook_holds WHERE name IN ('clock', 'restored') ORDER BY name /*share*/`

const selectSpanAt = `SELECT job, from_us, to_us, from_label, to_label, windows, reason, revision, decided_us
FROM daybook_spans WHERE job = $1 AND to_us >= $2 AND from_us <= $2 ORDER BY to_us LIMIT 1`

// asked is what is known about a key that somebody asks for.
type asked struct {
	daybook.Standing
	found     *daybook.Run // its row, perhaps under an earlier name of the job
	formerly  []string     // those names, of a key without a row under the job's own
	renamedTo string       // the job that carries on what stands under this one's name
}

// standing reads what is known about a key, and holds its row until the transaction ends.
func (t *tx) standing(ctx context.Context, a daybook.Ask, hash string) (asked, error) {
	if err := t.lockRun(ctx, a.Key); err != nil {
		return asked{}, err
	}
	found, err := t.s.findRun(ctx, t.query, a.Key)
	if err != nil {
		return asked{}, err
	}
	if found != nil {
		stands, err := t.standingOf(ctx, found, hash)
		return asked{Standing: stands, found: found}, err
	}
	as := asked{Standing: daybook.Standing{NotOpen: a.NotOpen, EventJob: a.EventJob}}
	if err := t.query(ctx, selectJobStanding, func(rows *sql.Rows) error {
		var paused int64
		var formerly string
		err := rows.Scan(&paused, &formerly, &as.renamedTo)
		as.Paused, as.formerly = paused != 0, splitNames(formerly)
		return err
	}, a.Key.Job()); err != nil {
		return as, err
	}
	if found, err = t.findEarlier(ctx, a.Key, as.formerly); err != nil || found != nil {
		if found != nil {
			as.found = found
			as.Standing, err = t.standingOf(ctx, found, hash)
		}
		return as, err
	}
	if a.Effects == daybook.Once {
		if err := t.query(ctx, selectHoldings, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			if as.Held = daybook.ReasonClock; name == daybook.HoldRestored {
				as.Held = daybook.ReasonRestored
			}
			return err
		}); err != nil {
			return as, err
		}
	}
	for _, n := range append([]string{a.Key.Job()}, as.formerly...) {
		if a.FireAt.IsZero() || as.Exists {
			break
		}
		span, ok, err := t.spanAt(ctx, n, a.FireAt)
		if err != nil {
			return as, err
		}
		if ok {
			as.Exists, as.State, as.SpanReason = true, daybook.Skipped, span.Reason
		}
	}
	return as, nil
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

func (t *tx) standingOf(ctx context.Context, r *daybook.Run, hash string) (daybook.Standing, error) {
	s := daybook.Standing{Exists: true, State: r.State, Effects: r.Effects, Undone: r.Reason == daybook.ReasonUndone, Undoing: r.Reason == daybook.ReasonUndoing,
		OtherPayload: hash != "" && hash != r.PayloadHash}
	if r.Letter != nil {
		s.LetterKind, s.LetterState = r.Letter.Kind, r.Letter.State
	}
	if !r.FannedOut() {
		return s, nil
	}
	var f daybook.Fanout
	err := t.standOf(ctx, r.Key, &f, 1, r.CreatedAt)
	return s.With(f), err
}

// act carries out what the table says. made is true when the key's row was written by it, with this trigger counted.
func (t *tx) act(ctx context.Context, act daybook.Act, a daybook.Ask, found, template *daybook.Run, hold daybook.Reason, hash string, now time.Time) (made bool, err error) {
	switch act {
	case daybook.ActCreate, daybook.ActCreateHeld, daybook.ActSkipPaused, daybook.ActRunSkipped:
		if found == nil {
			return true, t.create(ctx, act, a, template, hold, hash, now)
		}
		if err := found.Emptied(); err != nil {
			return false, err
		}
		return false, t.move(ctx, found.RunSkipped(now))
	case daybook.ActAgain:
		if err := found.Emptied(); err != nil {
			return false, err
		}
		return false, t.move(ctx, found.FurtherAttempt(now))
	case daybook.ActReplay:
		m, err := found.Replay(a.Actor, a.Note, now)
		if err != nil {
			return false, err
		}
		return false, t.move(ctx, m)
	}
	return false, nil
}

func (t *tx) create(ctx context.Context, act daybook.Act, a daybook.Ask, template *daybook.Run, hold daybook.Reason, hash string, now time.Time) error {
	if template == nil {
		return daybook.Invalid("there is no run %s, and nothing says how to make it", a.Key)
	}
	r := *template
	r.Input, r.PayloadHash = a.Payload, hash
	r.FirstSource, r.FirstActor, r.Triggers = a.Source, a.Actor, 1
	switch act {
	case daybook.ActCreateHeld, daybook.ActRunSkipped:
		r.Hold = hold
	case daybook.ActSkipPaused:
		r.State, r.Reason = daybook.Skipped, daybook.ReasonPaused
	}
	fresh, err := t.insertRuns(ctx, []*daybook.Run{&r})
	if err == nil && !fresh[r.Key] {
		// Made by another between the look-up and now; the whole transaction is done again and meets it.
		return errMet
	}
	return err
}

// move applies one transition inside a larger transaction.
func (t *tx) move(ctx context.Context, m daybook.Transition) error {
	applied := make([]daybook.Applied, 1)
	if err := t.apply(ctx, []daybook.Transition{m}, applied); err != nil {
		return err
	}
	if applied[0].Stale {
		return errMet
	}
	return nil
}
