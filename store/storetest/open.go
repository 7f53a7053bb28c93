// Package storetest is the conformance suite of the ledger: what every database must do, each case a sentence, and the
// openers with which the tests of other rooms get a real ledger on both. It is for tests only.
package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/daybook-run/daybook/internal/memdir"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
)

// Birth is the instant at which ledgers of tests are made.
var Birth = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

var lastID atomic.Int64

// NewID makes ids that sort in the order in which they are made.
func NewID() string { return fmt.Sprintf("id-%012d", lastID.Add(1)) }

// SQLitePragmas is the data source of a ledger in a file.
const SQLitePragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate"

// Database is a place for a ledger that can be opened more than once, as several processes would.
type Database struct {
	Name string
	// Open returns handles that are closed when t ends.
	Open func(t testing.TB) store.DB
	// Faulty returns handles between which and the database stand faults.
	Faulty func(t testing.TB, f *faultstore.Faults) store.DB
	// Fresh returns a further place of the same kind, and Empty one without a schema.
	Fresh, Empty func(t testing.TB) Database
}

// Databases returns one new place for each kind of database.
func Databases(t testing.TB) []Database {
	t.Helper()
	return []Database{SQLite(t), Postgres(t)}
}

// SQLite is a file of the test's own, with the schema and without a ledger.
func SQLite(t testing.TB) Database {
	t.Helper()
	path := filepath.Join(memdir.Dir(t), "daybook.db")
	if err := os.WriteFile(path, emptyFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return sqliteIn(path)
}

// empty is a file with the schema. It is made once a process, because that takes longer than many a test.
var empty struct {
	sync.Mutex
	file []byte
}

func emptyFile(t testing.TB) []byte {
	t.Helper()
	empty.Lock()
	defer empty.Unlock()
	if empty.file != nil {
		return empty.file
	}
	script, err := store.Script("sqlite", 0)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(memdir.Dir(t), "daybook.db")
	db, err := sql.Open("sqlite", "file:"+path+SQLitePragmas)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), script)
	if err := errors.Join(err, db.Close()); err != nil { // closed, so that what stands in the log is in the file
		t.Fatalf("make the schema: %v", err)
	}
	if empty.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return empty.file
}

func sqliteIn(path string) Database {
	source := "file:" + path + SQLitePragmas
	handles := func(t testing.TB, f *faultstore.Faults) store.DB {
		w, r := open(t, "sqlite", source, f), open(t, "sqlite", source, f)
		w.SetMaxOpenConns(1)
		r.SetMaxOpenConns(4)
		return store.DB{Write: w, Read: r}
	}
	return Database{
		Name:   "sqlite",
		Open:   func(t testing.TB) store.DB { return handles(t, nil) },
		Faulty: handles,
		Fresh:  SQLite,
		Empty:  func(t testing.TB) Database { return sqliteIn(filepath.Join(memdir.Dir(t), "daybook.db")) },
	}
}

// Postgres is a database of the test's own on the test server, with the schema and without a ledger, made when it is first
// opened.
func Postgres(t testing.TB) Database {
	d := PostgresAt(sync.OnceValue(func() string { return PostgresURL(t) }))
	d.Fresh = Postgres
	d.Empty = func(t testing.TB) Database {
		return PostgresAt(sync.OnceValue(func() string { return pgtest.URL(t) }))
	}
	return d
}

// PostgresURL is the address of a database of the test's own on the test server, with the schema and without a ledger.
func PostgresURL(t testing.TB) string {
	t.Helper()
	script, err := store.Script("postgres", 0)
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.Copy(t, script)
}

// PostgresAt is the database that an address names. There is no further one.
func PostgresAt(address func() string) Database {
	handles := func(t testing.TB, f *faultstore.Faults) store.DB {
		t.Helper()
		db := open(t, "pgx", address(), f)
		db.SetMaxOpenConns(24)
		db.SetMaxIdleConns(24)
		return store.DB{Write: db, Read: db}
	}
	return Database{
		Name:   "postgres",
		Open:   func(t testing.TB) store.DB { return handles(t, nil) },
		Faulty: handles,
	}
}

func open(t testing.TB, driver, source string, f *faultstore.Faults) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if f != nil {
		db, err = faultstore.Open(driver, source, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Ledger opens a ledger in d, which is made when there is none.
func Ledger(t testing.TB, d Database) *store.Store {
	t.Helper()
	return ledgerOn(t, d.Name, d.Open(t))
}

func ledgerOn(t testing.TB, name string, db store.DB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), db, store.Options{NewID: NewID, Migrate: true, Now: Birth})
	if err != nil {
		t.Fatalf("open the ledger on %s: %v", name, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Each runs a test on a new ledger of each kind of database.
func Each(t *testing.T, test func(ctx context.Context, t *testing.T, s *store.Store)) {
	t.Helper()
	for _, kind := range []func(testing.TB) Database{SQLite, Postgres} {
		name := kind(t).Name
		t.Run(name, func(t *testing.T) { test(t.Context(), t, Ledger(t, kind(t))) })
	}
}
