// Package storetest is the conformance suite of the ledger: what every database must do, each case a sentence, and the
// openers with which the tests of other rooms get a real ledger on both. It is for tests only.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

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
	// Fresh returns a further place, empty, of the same kind. It is cheaper than a new Database and lives no longer.
	Fresh func(t testing.TB) Database
}

// Databases returns one new, empty place for each kind of database.
func Databases(t testing.TB) []Database {
	return []Database{SQLite(t), Postgres(t)}
}

// SQLite is a file of the test's own.
func SQLite(t testing.TB) Database {
	return sqliteIn(filepath.Join(t.TempDir(), "daybook.db"))
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
		Fresh:  func(t testing.TB) Database { return sqliteIn(filepath.Join(t.TempDir(), "daybook.db")) },
	}
}

// Postgres is a database of the test's own on the test server, made when it is first opened.
func Postgres(t testing.TB) Database {
	return PostgresAt(sync.OnceValue(func() string { return pgtest.URL(t) }))
}

// PostgresAt is the database that an address names. Fresh makes a schema in it.
func PostgresAt(address func() string) Database {
	var schemas atomic.Int64
	var in func(schema string) Database
	in = func(schema string) Database {
		handles := func(t testing.TB, f *faultstore.Faults) store.DB {
			t.Helper()
			source := address()
			if schema != "" {
				u, err := url.Parse(source)
				if err != nil {
					t.Fatal(err)
				}
				q := u.Query()
				q.Set("search_path", schema)
				u.RawQuery = q.Encode()
				source = u.String()
			}
			db := open(t, "pgx", source, f)
			db.SetMaxOpenConns(24)
			db.SetMaxIdleConns(24)
			return store.DB{Write: db, Read: db}
		}
		return Database{
			Name:   "postgres",
			Open:   func(t testing.TB) store.DB { return handles(t, nil) },
			Faulty: handles,
			Fresh: func(t testing.TB) Database {
				t.Helper()
				name := fmt.Sprintf("s%d", schemas.Add(1))
				if _, err := open(t, "pgx", address(), nil).ExecContext(t.Context(), "CREATE SCHEMA "+name); err != nil {
					t.Fatal(err)
				}
				return in(name)
			},
		}
	}
	return in("")
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
