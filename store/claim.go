package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
)

// What a claim sets. A run that is settling is not tried: it is claimed for a question, which raises no fence, so that a
// late report of its attempt still settles it.
const claimSets = `state = CASE WHEN reason = 'settling' THEN state ELSE 'running' END,
  fence = CASE WHEN reason = 'settling' THEN fence ELSE 1 + CASE WHEN fence < ` + fenceFloor + ` THEN ` + fenceFloor + ` ELSE fence END END,
  attempts = attempts + CASE WHEN reason = 'settling' THEN 0 ELSE 1 END,
  claim = CASE WHEN reason = 'settling' THEN claim ELSE $1 END,
  asking = CASE WHEN reason = 'settling' THEN $1 ELSE '' END,
  cancelled_by = CASE WHEN reason = 'settling' THEN cancelled_by ELSE '' END,
  begun_us = CASE WHEN reason = 'settling' THEN begun_us ELSE 0 END,
  denied = CASE WHEN reason = 'settling' THEN denied ELSE '' END,
  node = $2, lease_us = $3, claimed_us = $4`

// A run of a line is a candidate only while no run of the line is running and none with an older window is live. What only
// `daybook once` runs waits for one that is running, and not for an older window that has nobody to run it: its line of
// the crontab was for another day. Nor does one that has its serial key, since one of its effects is unknown: an older window that
// came later may wait for that key. That o.line is not empty lets the index on lines be used, which knows no others.
const ahead = `o.line = l.line AND o.line <> '' AND o.key <> l.key
      AND (o.state = 'running' OR l.home <> 'once' AND (o.start_us < l.start_us OR o.start_us = l.start_us AND o.key < l.key)
        AND NOT (l.serial <> '' AND EXISTS (SELECT 1 FROM daybook_locks k WHERE k.serial = l.serial AND k.key = l.key)))`

const claimable = `l.state <> 'running' AND l.hold = '' AND l.asking = '' AND l.due_us <= $1
    AND (l.line = '' OR l.reason = 'settling' OR NOT EXISTS (SELECT 1 FROM daybook_live o WHERE ` + ahead + `))
    AND (l.once = 0 OR l.reason = 'settling' OR NOT EXISTS (SELECT 1 FROM daybook_lapses e WHERE e.ended_us = 0))`

const selectDue = `SELECT l.key, l.serial, l.due_us FROM daybook_live l
  WHERE l.lane = $2 AND l.home = $3 AND l.priority = $4 AND l.due_us >= $6 AND ` + claimable + `
  ORDER BY l.due_us LIMIT $5 /*lock*/`

const selectOneDue = `SELECT l.key, l.serial, l.due_us FROM daybook_live l WHERE l.key = $2 AND l.priority = $3 AND ` + claimable + ` /*lock*/`

// selectFirst is selectDue for both priorities, and whether a freeze stands: all that a claim has to know where little is due.
const selectFirst = `WITH p0 AS (SELECT l.key, l.serial, l.due_us FROM daybook_live l
    WHERE l.lane = $2 AND l.home = $3 AND l.priority = 'P0' AND ` + claimable + ` ORDER BY l.due_us LIMIT $4 /*lock*/),
  p1 AS (SELECT l.key, l.serial, l.due_us FROM daybook_live l
    WHERE l.lane = $2 AND l.home = $3 AND l.priority = 'P1' AND ` + claimable + ` ORDER BY l.due_us LIMIT $4 /*lock*/)
SELECT 'P0', key, serial, due_us FROM p0 UNION ALL SELECT 'P1', key, serial, due_us FROM p1
UNION ALL SELECT '', '', '', 0 WHERE EXISTS (SELECT 1 FROM daybook_freezes WHERE ended_us = 0 AND until_us > $1)`

const claimRuns = `UPDATE daybook_live SET ` + claimSets + ` WHERE key /*in $5*/`

// takeRuns is claimRuns and the runs as they stand then: on PostgreSQL, which has rows of an update to be read on.
const takeRuns = `WITH l AS (` + claimRuns + ` RETURNING *) SELECT ` + runFields + ` FROM l JOIN daybook_runs r ON r.key = l.key`

// selectClaimed finds what a claim took, among the few rows of what is live.
const selectClaimed = `SELECT key FROM daybook_live WHERE node = $1 AND (state = 'running' AND claim = $2 OR asking = $2) AND lease_us > $3`

// Claim implements daybook.Claimer.
func (s *Store) Claim(ctx context.Context, c daybook.Claim, now time.Time) ([]*daybook.Run, error) {
	var claimed []*daybook.Run
	id := c.NewID()
	c.NewID = func() string { return id }
	err := s.provedWrite(ctx, "claim runs", exists(selectClaimed, c.Node, id, us(now)), func(ctx context.Context, t *tx) (err error) {
		claimed, err = t.claim(ctx, c, now)
		return err
	})
	if err != nil && s.d.unique(err) {
		// Two runs of one line were claimed at once: the index let one through. The others wait for the next claim.
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil // never before the claim has been committed
}

// candidate is a run that may be claimed, if its serial key is free.
type candidate struct {
	key, serial string
	due         int64
}

// claim takes due runs in a transaction.
func (t *tx) claim(ctx context.Context, c daybook.Claim, now time.Time) ([]*daybook.Run, error) {
	if err := t.enterClaim(ctx, c); err != nil {
		return nil, err
	}
	if c.Again {
		keys, err := t.texts(ctx, selectClaimed, c.Node, c.NewID(), us(now))
		if err != nil || len(keys) > 0 {
			return t.taken(ctx, keys, err)
		}
	}
	taking, limit := choice{passed: make(map[string]bool)}, c.Limit
	if c.Key != "" {
		limit = 1
	}
	freezes, first, err := t.first(ctx, c, now)
	if err != nil {
		return nil, err
	}
	for _, p := range []daybook.Priority{daybook.P0, daybook.P1} {
		if !daybook.FrozenUntil(freezes, p, now).IsZero() {
			if err := t.putOffDue(ctx, c, freezes, p, now); err != nil {
				return nil, err
			}
			continue
		}
		queue := dueQueue{c.Lane, c.Home, p}
		if err := t.pick(ctx, &taking, limit, now, func(look int) ([]candidate, error) {
			if c.Key != "" {
				return t.candidates(ctx, selectOneDue, us(now), string(c.Key), string(p))
			}
			if found, looked := first[p]; looked {
				delete(first, p) // what comes behind it is looked for by itself
				return found[:min(len(found), look)], nil
			}
			return t.front(ctx, queue, look, now)
		}); err != nil {
			return nil, err
		}
	}
	return t.takeAll(ctx, c, taking.mine, now)
}

// enterClaim keeps freezes from beginning or ending before the claim has ended, and makes plans independent of how much it takes.
func (t *tx) enterClaim(ctx context.Context, c daybook.Claim) error {
	if c.Key != "" || c.Limit < manyRows || t.s.d.pin == "" || t.pinned || t.guest {
		return t.lockFreezes(ctx, shareFreezes)
	}
	return t.pinBy(ctx, pinAndShare)
}

// first looks for all that a claim has to know: the freezes that stand, and what is due, by priority. That is missing where it has to be
// looked for by itself.
func (t *tx) first(ctx context.Context, c daybook.Claim, now time.Time) (freezes []daybook.Freeze, found map[daybook.Priority][]candidate, err error) {
	frozen := c.Key != "" || len(c.Freezes) > 0
	for _, p := range []daybook.Priority{daybook.P0, daybook.P1} {
		frozen = frozen || t.s.fronts.from(dueQueue{c.Lane, c.Home, p}, now) > 0
	}
	if !frozen {
		found = map[daybook.Priority][]candidate{daybook.P0: nil, daybook.P1: nil}
		if err := t.query(ctx, selectFirst, func(rows *sql.Rows) error {
			var p daybook.Priority
			var f candidate
			err := rows.Scan(&p, &f.key, &f.serial, &f.due)
			if frozen = frozen || p == ""; p != "" {
				found[p] = append(found[p], f)
			}
			return err
		}, us(now), string(c.Lane), c.Home, int64(c.Limit)); err != nil {
			return nil, nil, err
		}
	}
	if !frozen {
		for p, list := range found {
			slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.due, b.due) })
			t.s.fronts.found(dueQueue{c.Lane, c.Home, p}, 0, list, c.Limit, now)
		}
		return nil, found, nil
	}
	freezes, err = t.freezes(ctx, now)
	return append(freezes, c.Freezes...), nil, err
}

// takeAll claims candidates, in their order.
func (t *tx) takeAll(ctx context.Context, c daybook.Claim, keys []string, now time.Time) ([]*daybook.Run, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return nil, err
	}
	args := []any{c.NewID(), c.Node, us(c.Lease), us(now), list}
	if !t.s.d.readsUpdates {
		_, err = t.exec(ctx, claimRuns, args...)
		return t.taken(ctx, keys, err)
	}
	found, err := t.s.runsBy(ctx, t.query, takeRuns, args...)
	return t.inOrder(ctx, keys, found, err)
}

// taken reads runs that a claim took.
func (t *tx) taken(ctx context.Context, keys []string, err error) ([]*daybook.Run, error) {
	if err != nil {
		return nil, err
	}
	found, err := t.s.findRuns(ctx, t.query, keys)
	return t.inOrder(ctx, keys, found, err)
}

// inOrder returns runs that a claim took as they are started.
func (t *tx) inOrder(ctx context.Context, keys []string, found map[daybook.Key]*daybook.Run, err error) ([]*daybook.Run, error) {
	if err != nil {
		return nil, err
	}
	claimed := make([]*daybook.Run, 0, len(keys))
	for _, k := range keys {
		r := found[daybook.Key(k)]
		claimed = append(claimed, r)
		if r.Asking == "" && (!r.Steps || r.Attempts < 2) {
			continue
		}
		// A letter stands open while the far side is asked again, here or by the work itself; the answer closes it.
		if err := t.s.loadLetter(ctx, t.query, r); err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// parkBatch is how many candidates are looked at behind those that had to be parked, and parkRounds how often in one claim:
// what is left comes with the next.
const (
	parkBatch  = 500
	parkRounds = 20
)

// pick takes candidates, in their order, until n runs are taken in all.
func (t *tx) pick(ctx context.Context, c *choice, n int, now time.Time, ask func(look int) ([]candidate, error)) error {
	look := n - len(c.mine)
	for round := 0; len(c.mine) < n && round <= parkRounds; round++ {
		found, err := ask(look)
		if err != nil {
			return err
		}
		full := len(found) == look
		found = slices.DeleteFunc(found, c.has)
		if err := t.choose(ctx, c, found, n, now); err != nil || !full || len(found) == 0 {
			return err
		}
		look = n + parkBatch
	}
	return nil
}

// Begin implements daybook.Claimer.
func (s *Store) Begin(ctx context.Context, r *daybook.Run, e *daybook.StepRecord, now time.Time) error {
	m := newMark("begin "+string(r.Key), r, e)
	m.row, m.at = markRow(r, now, true), now
	held, err := s.mark(ctx, m)
	switch {
	case err != nil:
		return err
	case !held:
		return daybook.New(daybook.CodeStale, "%s is not held any more", r.Key)
	}
	r.BegunAt, r.Effect = now, e
	return nil
}

const renewLeases = `WITH v (key, fence, claim, lease_us) AS (/*rows t b t b*/), f (key, lease_us) AS (SELECT l.key, v.lease_us FROM v JOIN daybook_live l ON l.key = v.key
  WHERE l.fence = v.fence AND l.lease_us <> 0 AND (l.state = 'running' AND l.claim = v.claim OR l.asking = v.claim) /*lock l*/)
UPDATE daybook_live SET lease_us = f.lease_us FROM f WHERE daybook_live.key = f.key RETURNING daybook_live.key, daybook_live.cancelled_by`

const selectHolding = `SELECT key, state, fence, claim, asking FROM daybook_live WHERE key /*in $1*/`

// Renew implements daybook.Claimer. A row that another transaction has locked is not renewed this time and not lost
// either: what is lost is looked up. Nor is one that has given its lease back, as a run that has fanned out does: a renewal that
// was on its way then would give it a lease that nobody renews again.
func (s *Store) Renew(ctx context.Context, held []*daybook.Run, lease, now time.Time) ([]daybook.Notice, error) {
	if len(held) == 0 {
		return nil, nil
	}
	var notices []daybook.Notice
	err := s.write(ctx, "renew leases", func(ctx context.Context, t *tx) error {
		notices = notices[:0]
		rows := make([][]any, len(held))
		for i, r := range held {
			claim := r.Claim
			if r.Asking != "" {
				claim = r.Asking
			}
			rows[i] = []any{string(r.Key), r.Fence, claim, us(lease)}
		}
		renewed := make(map[daybook.Key]bool, len(held))
		err := t.bulk(ctx, renewLeases, rows, func(rows *sql.Rows) error {
			var k daybook.Key
			var by string
			err := rows.Scan(&k, &by)
			renewed[k] = true
			if by != "" {
				notices = append(notices, daybook.Notice{Key: k, CancelledBy: by})
			}
			return err
		})
		if err != nil || len(renewed) == len(held) {
			return err
		}
		lost, err := t.lost(ctx, held, renewed)
		notices = append(notices, lost...)
		return err
	})
	fences := make(map[daybook.Key]int64, len(held))
	for _, r := range held {
		fences[r.Key] = r.Fence
	}
	for i := range notices {
		notices[i].Fence = fences[notices[i].Key]
	}
	return notices, err
}

// lost tells which of the runs that were not renewed are not held any more.
func (t *tx) lost(ctx context.Context, held []*daybook.Run, renewed map[daybook.Key]bool) ([]daybook.Notice, error) {
	var keys []string
	for _, r := range held {
		if !renewed[r.Key] {
			keys = append(keys, string(r.Key))
		}
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return nil, err
	}
	type holding struct {
		state         daybook.State
		fence         int64
		claim, asking string
	}
	standing := make(map[daybook.Key]holding, len(keys))
	if err := t.query(ctx, selectHolding, func(rows *sql.Rows) error {
		var k daybook.Key
		var h holding
		err := rows.Scan(&k, &h.state, &h.fence, &h.claim, &h.asking)
		standing[k] = h
		return err
	}, list); err != nil {
		return nil, err
	}
	var notices []daybook.Notice
	for _, r := range held {
		if renewed[r.Key] {
			continue
		}
		// Rescue raises no fence: that the run is not running any more tells its holder.
		h, ok := standing[r.Key]
		if !ok || h.fence != r.Fence || h.claim != r.Claim || h.asking != r.Asking || r.Asking == "" && h.state != daybook.Running {
			notices = append(notices, daybook.Notice{Key: r.Key, Lost: true})
		}
	}
	return notices, nil
}

const selectExpired = `SELECT key FROM daybook_live WHERE lease_us > 0 AND (lease_us < $1 OR lease_us > $2) ORDER BY lease_us LIMIT $3`

// Expired implements daybook.Claimer.
func (s *Store) Expired(ctx context.Context, now, ahead time.Time, limit int) ([]*daybook.Run, error) {
	var keys []string
	if err := s.read(ctx, "find expired leases", selectExpired, func(rows *sql.Rows) error {
		var k string
		err := rows.Scan(&k)
		keys = append(keys, k)
		return err
	}, us(now), us(ahead), int64(limit)); err != nil || len(keys) == 0 {
		return nil, err
	}
	runs := make([]*daybook.Run, 0, len(keys))
	for _, k := range keys {
		r, err := s.findRun(ctx, s.reader("read expired run"), daybook.Key(k))
		if err != nil {
			return nil, err
		}
		if r != nil && !r.Lease.IsZero() && (r.Lease.Before(now) || r.Lease.After(ahead)) {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// A row that another transaction has locked is released the next time.
const releaseAsking = `UPDATE daybook_live SET asking = '', lease_us = 0
WHERE key = (SELECT l.key FROM daybook_live l WHERE l.key = $1 AND l.asking = $2 AND l.lease_us = $3 /*lock*/)`

// ReleaseAsking implements daybook.Claimer.
func (s *Store) ReleaseAsking(ctx context.Context, runs []*daybook.Run, now time.Time) error {
	return s.write(ctx, "release questions", func(ctx context.Context, t *tx) error {
		for _, r := range runs {
			if _, err := t.exec(ctx, releaseAsking, string(r.Key), r.Asking, us(r.Lease)); err != nil {
				return err
			}
		}
		return nil
	})
}

const selectNextDue = `SELECT COALESCE((SELECT due_us FROM daybook_live WHERE lane = 'live' AND home = $1 AND priority = 'P0' AND state <> 'running' AND hold = '' AND asking = '' ORDER BY due_us LIMIT 1), 0),
  COALESCE((SELECT due_us FROM daybook_live WHERE lane = 'live' AND home = $1 AND priority = 'P1' AND state <> 'running' AND hold = '' AND asking = '' ORDER BY due_us LIMIT 1), 0),
  COALESCE((SELECT due_us FROM daybook_live WHERE lane = 'backfill' AND home = $1 AND priority = 'P0' AND state <> 'running' AND hold = '' AND asking = '' ORDER BY due_us LIMIT 1), 0),
  COALESCE((SELECT due_us FROM daybook_live WHERE lane = 'backfill' AND home = $1 AND priority = 'P1' AND state <> 'running' AND hold = '' AND asking = '' ORDER BY due_us LIMIT 1), 0)`

// NextDue implements daybook.Claimer.
func (s *Store) NextDue(ctx context.Context, home string) (map[daybook.Lane]time.Time, error) {
	next := make(map[daybook.Lane]time.Time)
	var live, back [2]int64
	err := s.read(ctx, "find the next due run", selectNextDue, func(rows *sql.Rows) error {
		return rows.Scan(&live[0], &live[1], &back[0], &back[1])
	}, home)
	for lane, due := range map[daybook.Lane][2]int64{daybook.LaneLive: live, daybook.LaneBackfill: back} {
		first := due[0]
		if first == 0 || due[1] != 0 && due[1] < first {
			first = due[1]
		}
		if first != 0 {
			next[lane] = at(first)
		}
	}
	return next, err
}

const selectDefinition = `SELECT h.definition FROM daybook_jobs j JOIN daybook_jobs h
  ON h.name = CASE WHEN j.renamed_to = '' THEN j.name ELSE j.renamed_to END WHERE j.name = $1`

// Definition implements daybook.Claimer.
func (s *Store) Definition(ctx context.Context, job string) (*daybook.Job, error) {
	var text string
	if err := s.read(ctx, "read the definition of "+job, selectDefinition, func(rows *sql.Rows) error { return rows.Scan(&text) }, job); err != nil {
		return nil, err
	}
	if text == "" {
		return nil, daybook.NotFound("the ledger knows no job %s", job)
	}
	j, err := daybook.JobFromCanonical([]byte(text))
	return &j, err
}
