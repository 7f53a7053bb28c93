// Package storetest is the conformance suite of the ledger: what every database must do, each case a sentence, and the
// openers with which the tests of other rooms get a real ledger on both. It is for tests only.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
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
	Open func(t testing.TB) store.DB
}

// Databases returns one new, empty place for each kind of database.
func Databases(t testing.TB) []Database {
	return []Database{SQLite(t), Postgres(t)}
}

// SQLite is a file of the test's own.
func SQLite(t testing.TB) Database {
	file := "file:" + filepath.Join(t.TempDir(), "daybook.db") + SQLitePragmas
	return Database{Name: "sqlite", Open: func(t testing.TB) store.DB {
		w, r := open(t, "sqlite", file), open(t, "sqlite", file)
		w.SetMaxOpenConns(1)
		r.SetMaxOpenConns(4)
		return store.DB{Write: w, Read: r}
	}}
}

// Postgres is a database of the test's own on the test server.
func Postgres(t testing.TB) Database {
	var url string
	return Database{Name: "postgres", Open: func(t testing.TB) store.DB {
		if url == "" {
			url = pgtest.URL(t)
		}
		db := open(t, "pgx", url)
		db.SetMaxOpenConns(24)
		return store.DB{Write: db, Read: db}
	}}
}

func open(t testing.TB, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Ledger opens a ledger in d, which is made when there is none.
func Ledger(t testing.TB, d Database) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), d.Open(t), store.Options{NewID: NewID, Migrate: true, Now: Birth})
	if err != nil {
		t.Fatalf("open the ledger on %s: %v", d.Name, err)
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
