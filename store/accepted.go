package store

import (
	"context"
	"database/sql"

	"github.com/daybook-run/daybook"
)

const insertAccepted = `INSERT INTO daybook_accepted (job, old, new, at_us, actor, note) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`

// Accept implements daybook.Desk.
func (s *Store) Accept(ctx context.Context, a daybook.Acceptance, act daybook.Activity) error {
	return s.provedWrite(ctx, "record an acceptance", s.acted(&act), func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, insertAccepted, a.Job, a.Old, a.New, us(a.At), clean(a.Actor, daybook.MaxActorBytes), clean(a.Note, daybook.MaxReasonBytes))
		if err != nil || n == 0 {
			return err
		}
		return t.insertActivity(ctx, &act)
	})
}

const selectAccepted = `SELECT job, old, new, at_us, actor, note FROM daybook_accepted ORDER BY at_us, job`

// Acceptances implements daybook.Reader.
func (s *Store) Acceptances(ctx context.Context) ([]daybook.Acceptance, error) {
	var list []daybook.Acceptance
	err := s.read(ctx, "read acceptances", selectAccepted, func(rows *sql.Rows) error {
		var a daybook.Acceptance
		var us int64
		err := rows.Scan(&a.Job, &a.Old, &a.New, &us, &a.Actor, &a.Note)
		a.At = at(us)
		list = append(list, a)
		return err
	})
	return list, err
}
