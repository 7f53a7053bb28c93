package store

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// A claim reads what is due by the index, the oldest first. While an old transaction stands open somewhere in the database,
// PostgreSQL keeps for it what was due and is long done, and each claim would read past all of it. So the claims of a process go
// on from the oldest that the last one found; from the beginning they look once a second, and whenever that is not enough.

// dueQueue is what is claimed together: in the order of its instants.
type dueQueue struct {
	lane     daybook.Lane
	home     string
	priority daybook.Priority
}

// fronts are how far the claims of this process have come.
type fronts struct {
	mu sync.Mutex
	at map[dueQueue]front
}

// front is the oldest that was found last, and when it was looked for from the beginning.
type front struct {
	due    int64
	looked time.Time
}

// frontLasts is how long claims go on from a front. Something older that comes meanwhile may be claimed that much later, while there
// is always more to be claimed than there are free slots.
const frontLasts = time.Second

// from returns from which instant on a claim looks; 0: from the beginning.
func (f *fronts) from(q dueQueue, now time.Time) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.at[q]
	if since := now.Sub(at.looked); at.due == 0 || since < 0 || since >= frontLasts {
		return 0
	}
	return at.due
}

// found takes in what a claim found from an instant on, and reports whether that is as much as it looked for.
func (f *fronts) found(q dueQueue, from int64, found []candidate, look int, now time.Time) (full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		f.at = make(map[dueQueue]front)
	}
	at := f.at[q]
	if at.due, full = 0, look > 0 && len(found) == look; full {
		at.due = found[0].due
	}
	if from == 0 {
		at.looked = now
	}
	f.at[q] = at
	return full
}

// front looks for so many runs that are due.
func (t *tx) front(ctx context.Context, q dueQueue, look int, now time.Time) ([]candidate, error) {
	for from := t.s.fronts.from(q, now); ; from = 0 {
		found, err := t.candidates(ctx, selectDue, us(now), string(q.lane), q.home, string(q.priority), int64(look), from)
		if err != nil {
			return nil, err
		}
		full := t.s.fronts.found(q, from, found, look, now)
		if full || from == 0 {
			return found, nil
		}
	}
}

func (t *tx) candidates(ctx context.Context, statement string, args ...any) ([]candidate, error) {
	var found []candidate
	err := t.query(ctx, statement, func(rows *sql.Rows) error {
		var f candidate
		err := rows.Scan(&f.key, &f.serial, &f.due)
		found = append(found, f)
		return err
	}, args...)
	return found, err
}
