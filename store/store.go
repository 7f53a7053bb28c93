// Package store is the one implementation of the ledger over SQL, for SQLite and PostgreSQL: one set of statements, a
// small dialect, one conformance suite (storetest) that both pass. It stores what the rules of the root package decide,
// one transaction a method, and never calls another room. It takes the caller's handles and imports no driver.
package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
)

// DB are the caller's handles. For SQLite, Write has exactly one connection and Read is a pool of its own; for
// PostgreSQL they may be the same handle.
type DB struct {
	Write *sql.DB
	Read  *sql.DB
}

// Options of Open.
type Options struct {
	// NewID makes ids that sort by time, such as UUIDs of version 7. Required.
	NewID func() string
	// Migrate allows Open to bring the schema up to date; otherwise an older schema is refused.
	Migrate bool
	// Now is the instant of opening, for the birth of a new ledger and for migrations.
	Now time.Time
	// ReadOnly opens a ledger to look into it: nothing is written, not even to see whether the handles are safe for writing.
	ReadOnly bool
	// Witness is told how far the ledger has come, whenever it acknowledged that: before what was marked begun is begun. Nil:
	// nobody is.
	Witness func(daybook.Seen)
	// Forgot is told that the ledger does not know of what it acknowledged. It must not wait. Nil: nobody is.
	Forgot func()
}

// Store is the ledger. It implements every role of the root package, and is safe for concurrent use.
type Store struct {
	db    DB
	d     *dialect
	newID func() string
	o     Options
	marks markBook
	// marking gathers what the holders of runs mark.
	marking group[*mark]
	// knocking gathers triggers.
	knocking group[*knock]
	heldUp   chan struct{} // those of them that wait: see heldUpLimit

	texts    sync.Map               // sized statement, as written → as the dialect wants it
	classes  atomic.Pointer[string] // PostgreSQL: of the sizes of the tables, see size
	prepared sync.Map               // the latter → *sql.Stmt on Write, SQLite only
	pending  sync.Map               // texts to be prepared before the next transaction
	reading  sync.Map               // the latter → *sql.Stmt on Read, SQLite only
	calls    calls
	fronts   fronts
}

// Open verifies the handles, brings the schema up to date if that is allowed, and returns the ledger. Errors:
// CodeInvalid for handles that are unsafe, a schema that is newer than this program, or one that is older and may not be
// migrated; CodeUnavailable when the database cannot be reached.
func Open(ctx context.Context, db DB, o Options) (*Store, error) {
	if db.Read == nil {
		db.Read = db.Write
	}
	d, err := verified(ctx, db, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, d: d, newID: o.NewID, o: o, heldUp: make(chan struct{}, heldUpLimit)}
	s.knocking.what, s.knocking.patience = "answer several triggers", groupPatience
	s.knocking.write = func(ctx context.Context, what string, next func() []*knock) error {
		return s.answerAll(ctx, what, false, next)
	}
	s.marking.what, s.marking.patience = "mark several runs", groupPatience
	s.marking.write = func(ctx context.Context, what string, next func() []*mark) error {
		return s.writeMarks(ctx, what, false, next)
	}
	if err := s.migrate(ctx, o); err != nil {
		return nil, err
	}
	return s, nil
}

// Close waits for what is being written, and closes the statements of the store. The handles are the caller's.
func (s *Store) Close() error {
	s.marking.wait()
	s.knocking.wait()
	var errs []error
	for _, statements := range []*sync.Map{&s.prepared, &s.reading} {
		statements.Range(func(_, v any) bool {
			errs = append(errs, v.(*sql.Stmt).Close())
			return true
		})
		statements.Clear()
	}
	return errors.Join(errs...)
}

// verified tells the database and looks whether the handles are safe. Looking takes SQLite's write lock, which others may
// hold one after the other: it is tried as often as any transaction.
func verified(ctx context.Context, db DB, readOnly bool) (d *dialect, err error) {
	for try := 1; ; try++ {
		if d, err = detect(ctx, db.Write); err == nil && !readOnly {
			err = d.verify(ctx, db)
		}
		if err == nil || try == writeTries || ctx.Err() != nil || !sqliteBusy(err) {
			return d, err
		}
	}
}

func detect(ctx context.Context, db *sql.DB) (*dialect, error) {
	var version string
	lite := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version)
	if lite == nil {
		return sqlite(), nil
	}
	if err := ctx.Err(); err != nil {
		return nil, openFault(err)
	}
	if err := db.QueryRowContext(ctx, "SELECT current_setting('server_version_num')").Scan(&version); err == nil {
		return postgres(), nil
	}
	return nil, openFault(lite)
}

func openFault(err error) error {
	return daybook.New(daybook.CodeUnavailable, "the ledger cannot be opened").Because(err)
}

// text returns a statement as the dialect wants it, for the tables as large as they are.
func (s *Store) text(statement string) string {
	as := sized{statement, s.size()}
	if t, ok := s.texts.Load(as); ok {
		return t.(string)
	}
	t := s.d.rewrite(statement) + as.size
	s.texts.Store(as, t)
	return t
}

// tx is one transaction of the store.
type tx struct {
	*sql.Tx
	s    *Store
	used map[string]*sql.Stmt // SQLite: by text, bound to this transaction
	// PostgreSQL: the plans of this transaction do not depend on how many rows come with a statement.
	pinned bool
	guest  bool                 // the transaction is the caller's: nothing is prepared for it
	wakes  bool                 // it makes a run due: other nodes are called when it commits
	called func(committed bool) // what comes after it, once it was seen to that they are: see tx.call
	ended  []ended              // what was moved and has a serial key: see freeSerial
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	if err := t.pinFor(ctx, args); err != nil {
		return 0, err
	}
	var res sql.Result
	var err error
	if st, perr := t.prepare(ctx, statement); perr != nil {
		return 0, perr
	} else if st != nil {
		res, err = st.ExecContext(ctx, args...)
	} else {
		res, err = t.ExecContext(ctx, t.s.text(statement), args...)
	}
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query calls each for every row of the answer.
func (t *tx) query(ctx context.Context, statement string, each func(*sql.Rows) error, args ...any) error {
	if err := t.pinFor(ctx, args); err != nil {
		return err
	}
	var rows *sql.Rows
	var err error
	if st, perr := t.prepare(ctx, statement); perr != nil {
		return perr
	} else if st != nil {
		rows, err = st.QueryContext(ctx, args...)
	} else {
		rows, err = t.QueryContext(ctx, t.s.text(statement), args...)
	}
	return drain(rows, err, each)
}

// bulk runs a statement with a mark /*rows*/ for many rows. each may be nil.
func (t *tx) bulk(ctx context.Context, statement string, rows [][]any, each func(*sql.Rows) error) error {
	if len(rows) == 0 {
		return nil
	}
	return t.s.d.bulk(ctx, t, statement, rows, each)
}

// prepare keeps the statements of SQLite's one writing connection; PostgreSQL's driver has a cache of its own.
func (t *tx) prepare(ctx context.Context, statement string) (*sql.Stmt, error) {
	if t.s.d.name != "sqlite" || t.guest {
		return nil, nil
	}
	text := t.s.text(statement)
	st, ok := t.used[text]
	if ok {
		return st, nil
	}
	if kept, ok := t.s.prepared.Load(text); ok {
		st = t.StmtContext(ctx, kept.(*sql.Stmt))
	} else {
		// Preparing on the pool would wait for this very transaction: for it alone, then, and to be kept before the next.
		t.s.pending.Store(text, true)
		var err error
		if st, err = t.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	if t.used == nil {
		t.used = make(map[string]*sql.Stmt)
	}
	t.used[text] = st
	return st, nil
}

// preparePending prepares what the last transactions used for the first time.
func (s *Store) preparePending(ctx context.Context) (err error) {
	s.pending.Range(func(text, _ any) bool {
		var st *sql.Stmt
		if st, err = s.db.Write.PrepareContext(ctx, text.(string)); err != nil {
			return false
		}
		s.pending.Delete(text)
		if _, twice := s.prepared.LoadOrStore(text, st); twice {
			err = st.Close() // another was faster, and its statement may be in use
		}
		return err == nil
	})
	return err
}

// read runs a query on the read pool. A connection that was cut before the first row came is replaced, as often as for a
// write; callers gather rows, and would have some of them twice.
func (s *Store) read(ctx context.Context, what, statement string, each func(*sql.Rows) error, args ...any) error {
	for try := 0; ; try++ {
		seen := false
		err := s.readOnce(ctx, statement, func(rows *sql.Rows) error { seen = true; return each(rows) }, args...)
		if err == nil || seen || !s.pauseAfter(ctx, err, try) {
			return s.fault(what, err)
		}
	}
}

func (s *Store) readOnce(ctx context.Context, statement string, each func(*sql.Rows) error, args ...any) error {
	st, err := s.prepareRead(ctx, statement)
	var rows *sql.Rows
	switch {
	case err != nil:
	case st != nil:
		rows, err = st.QueryContext(ctx, args...)
	default:
		rows, err = s.db.Read.QueryContext(ctx, s.text(statement), args...)
	}
	return drain(rows, err, each)
}

// prepareRead keeps the statements of SQLite's reading connections.
func (s *Store) prepareRead(ctx context.Context, statement string) (*sql.Stmt, error) {
	if s.d.name != "sqlite" {
		return nil, nil
	}
	text := s.text(statement)
	if st, ok := s.reading.Load(text); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := s.db.Read.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if kept, twice := s.reading.LoadOrStore(text, st); twice {
		return kept.(*sql.Stmt), st.Close()
	}
	return st, nil
}

func drain(rows *sql.Rows, err error, each func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := each(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// us and at convert between instants and stored microseconds; 0 stands for no instant.
func us(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// endOfTime is later than every stored instant.
const endOfTime = math.MaxInt64
