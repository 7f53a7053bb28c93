package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/daybook-run/daybook"
)

// Whoever renews leases passes over the row that a batch has locked, so each batch renews the lease itself.
const holdParent = `UPDATE daybook_live SET lease_us = CASE WHEN lease_us < $4 THEN $4 ELSE lease_us END
WHERE key = $1 AND state = 'running' AND fence = $2 AND claim = $3`

const beginFan = `INSERT INTO daybook_fans (key, job) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`

// They are looked up by their keys, never by their parent, of which there may be a million.
const listAgain = `UPDATE daybook_runs SET listed = $2 WHERE key /*in $1*/ AND parent || '' = $3 AND listed <> $2 RETURNING key`

// ListChildren implements daybook.FanStore.
func (s *Store) ListChildren(ctx context.Context, parent *daybook.Run, children []*daybook.Run, lease time.Time) (fresh, known int, err error) {
	one := "" // of those that were made
	mine := func(ctx context.Context, t *tx) (bool, error) { return exists(selectKey, one)(ctx, t) }
	err = s.provedWrite(ctx, "list subjects of "+string(parent.Key), mine, func(ctx context.Context, t *tx) error {
		fresh, known, one = 0, 0, ""
		n, err := t.exec(ctx, holdParent, string(parent.Key), parent.Fence, parent.Claim, us(lease))
		if err != nil {
			return err
		}
		if n == 0 {
			return daybook.New(daybook.CodeStale, "%s is not held any more", parent.Key)
		}
		if _, err := t.exec(ctx, beginFan, string(parent.Key), parent.Job); err != nil {
			return err
		}
		if _, err := t.exec(ctx, fansOut, string(parent.Key)); err != nil {
			return err
		}
		made, err := t.insertRuns(ctx, children)
		if err != nil {
			return err
		}
		fresh = len(made)
		var met []string
		for _, c := range children {
			if made[c.Key] {
				one = string(c.Key)
			} else {
				met = append(met, string(c.Key))
			}
		}
		if len(met) == 0 {
			return nil
		}
		list, err := t.s.d.list(met)
		if err != nil {
			return err
		}
		return t.query(ctx, listAgain, func(rows *sql.Rows) error {
			var k daybook.Key
			known++
			return rows.Scan(&k)
		}, list, parent.Fence, string(parent.Key))
	})
	return fresh, known, err
}

const countVanished = `SELECT count(*) FROM daybook_runs WHERE parent = $1 AND parent <> '' AND listed > 0 AND listed <> $2`

// Vanished implements daybook.FanStore.
func (s *Store) Vanished(ctx context.Context, parent *daybook.Run) (n int64, err error) {
	err = s.read(ctx, "count vanished subjects of "+string(parent.Key), countVanished, func(rows *sql.Rows) error { return rows.Scan(&n) },
		string(parent.Key), parent.Fence)
	return n, err
}
