package store

import "context"

// Plans of PostgreSQL. It keeps the plan of a prepared statement until somebody analyzes the tables, about once a minute. A plan
// that was made while a table was small reads it whole, and that is wrong a moment later, when a million subjects were listed.
// So the text of a statement ends in the sizes of the tables, as they were seen last, and a table that has grown out of its
// class has every statement planned anew. There are three classes: a plan for a table of some pages is no good for one of
// some hundred, and one for some hundred is good for all that are larger.

// pinPlans keeps PostgreSQL from planning anew for the rows at hand: shown a thousand keys, it would rather hash a whole table,
// history included, than look up each. Nor is a table read whole while there is an index: it may have a page when that is decided
// and a thousand when it is done, each row of them compared with each key of a list. Where there is none the price of that is beyond
// all measure, and no reason to compile the statement. And it tells the sizes of the tables, in bytes.
const pinPlans = `SELECT ` + pinned + sizesOfTables

const pinned = `set_config('plan_cache_mode', 'force_generic_plan', true) || set_config('enable_seqscan', 'off', true) || set_config('jit', 'off', true)`

const sizesOfTables = `, pg_relation_size('daybook_live'), pg_relation_size('daybook_runs'),
  pg_relation_size('daybook_jobs'), pg_relation_size('daybook_steps'), pg_relation_size('daybook_locks'), pg_relation_size('daybook_letters'), pg_relation_size('daybook_spans')`

// pinAndShare is pinPlans and shareFreezes.
const pinAndShare = `SELECT ` + pinned + ` || pg_advisory_xact_lock_shared(7239027104)::text` + sizesOfTables

// From how many bytes on a table is of the second, and of the third class.
const (
	someTable  = 16 * 8192
	largeTable = 256 * 8192
)

// manyRows is from when on a transaction's plans are pinned: below, the statement that pins them costs more than it saves.
const manyRows = 50

// sized is a statement, and the sizes of the tables for which it is planned.
type sized struct{ statement, size string }

// size is the classes of the tables, as a comment; empty: nobody has looked.
func (s *Store) size() string {
	if size := s.classes.Load(); size != nil {
		return *size
	}
	return ""
}

// grown takes in the sizes of the tables.
func (s *Store) grown(bytes ...int64) {
	classes := []byte("/*")
	for _, b := range bytes {
		switch {
		case b >= largeTable:
			classes = append(classes, 'l')
		case b >= someTable:
			classes = append(classes, 'm')
		default:
			classes = append(classes, 's')
		}
	}
	if size := string(append(classes, "*/"...)); size != s.size() {
		s.classes.Store(&size)
		s.texts.Clear()
	}
}

// pinFor pins the plans of a transaction from its first long list on.
func (t *tx) pinFor(ctx context.Context, args []any) error {
	if t.pinned || t.guest || t.s.d.pin == "" {
		return nil
	}
	for _, a := range args {
		switch list := a.(type) {
		case []string:
			if len(list) >= manyRows {
				return t.pin(ctx)
			}
		case []int64:
			if len(list) >= manyRows {
				return t.pin(ctx)
			}
		}
	}
	return nil
}

// pin makes the plans of a transaction independent of how many rows come with a statement.
func (t *tx) pin(ctx context.Context) error {
	if t.pinned || t.guest || t.s.d.pin == "" {
		return nil
	}
	return t.pinBy(ctx, t.s.d.pin)
}

func (t *tx) pinBy(ctx context.Context, statement string) error {
	t.pinned = true
	var rest any
	var bytes [7]int64
	if err := t.QueryRowContext(ctx, statement).Scan(&rest, &bytes[0], &bytes[1], &bytes[2], &bytes[3], &bytes[4], &bytes[5], &bytes[6]); err != nil {
		return err
	}
	t.s.grown(bytes[:]...)
	return nil
}
