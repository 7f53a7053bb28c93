package store

import (
	"context"
	"math"
	"time"

	"github.com/daybook-run/daybook"
)

// What becomes of the subjects of a run that a person ended, or asked to end.

// Not what was asked to end already, nor what a person wants to be tried all the same: what he opened again once the run that
// listed it was over.
const unstarted = `state <> 'running' AND attempts = 0 AND cancelled_by = '' AND reason <> 'replayed' AND (reason <> 'reopened' OR due_us < $3)`

const selectUnstarted = `SELECT key FROM daybook_live WHERE parent = $1 AND hold = 'turn' AND ` + unstarted + `
UNION ALL SELECT key FROM daybook_live WHERE parent = $1 AND parent <> '' AND hold <> 'turn' AND ` + unstarted + ` LIMIT $2`

// overSince is when a person ended a run with subjects; at no time: he only asked for its end.
func overSince(parent *daybook.Run) int64 {
	switch {
	case parent.State.Live():
		return math.MaxInt64
	case parent.State == daybook.Dead && parent.Letter != nil:
		return us(parent.Letter.ClosedAt)
	}
	return us(parent.EndedAt)
}

// cancelUnstarted cancels what has not started.
func (t *tx) cancelUnstarted(ctx context.Context, parent *daybook.Run, m *daybook.FanMove, p daybook.Policy, now time.Time) error {
	keys, err := t.texts(ctx, selectUnstarted, string(parent.Key), int64(childrenMoved), overSince(parent))
	if err != nil {
		return err
	}
	if len(keys) == childrenMoved {
		m.Look = now
	}
	return t.endSubjects(ctx, parent, keys, p, now)
}

const selectDropped = `SELECT key FROM daybook_live WHERE parent = $1 AND hold = 'turn'
UNION ALL SELECT key FROM daybook_live WHERE parent = $1 AND parent <> '' AND hold <> 'turn' AND hold = 'breaker' LIMIT $2`

// drop lets nobody wait any more whom nobody will let go: for his turn, or held by the breaker, which is over.
func (t *tx) drop(ctx context.Context, parent *daybook.Run, m *daybook.FanMove, p daybook.Policy, now time.Time) error {
	keys, err := t.texts(ctx, selectDropped, string(parent.Key), int64(childrenMoved))
	if err != nil {
		return err
	}
	if len(keys) == childrenMoved {
		m.Look = now
	} else {
		m.Breaker.Open, m.Breaker.Trial = false, ""
	}
	return t.endSubjects(ctx, parent, keys, p, now)
}

// A question that is on its way is asked again: its answer did not hear of the end.
const askUntriedToEnd = `UPDATE daybook_live SET cancelled_by = $2, asking = '', lease_us = 0 WHERE key /*in $1*/ AND state <> 'running' AND attempts = 0
  AND cancelled_by = '' RETURNING key`

const letGoDropped = `UPDATE daybook_live SET hold = '' WHERE key /*in $1*/ AND hold IN ('turn', 'breaker')`

// endSubjects cancels runs of subjects, as far as they may be, as who ended the run that listed them. What cannot be cancelled
// waits neither for its turn nor for a breaker from then on, and is settled: what was not tried without being tried.
func (t *tx) endSubjects(ctx context.Context, parent *daybook.Run, keys []string, p daybook.Policy, now time.Time) error {
	if len(keys) == 0 {
		return nil
	}
	who := parent.CancelledBy
	if who == "" && parent.Letter != nil {
		who = parent.Letter.ClosedBy
	}
	if who == "" {
		who = "daybook"
	}
	if err := t.moveEach(ctx, keys, func(r *daybook.Run) (daybook.Transition, error) { return r.CancelSubject(who, now) }); err != nil {
		return err
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return err
	}
	doubted, err := t.texts(ctx, askUntriedToEnd, list, who)
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, letGoDropped, list); err != nil {
		return err
	}
	if err := t.moveEach(ctx, doubted, func(r *daybook.Run) (daybook.Transition, error) { return r.EndInDoubt(p, now) }); err != nil {
		return err
	}
	t.wakes = true
	return t.holdPausedKeys(ctx, keys)
}
