package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/fanout"
	"github.com/daybook-run/daybook/internal/mariatest"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/internal/userdb"
)

var listedWindow = daybook.Window{Label: "2026-03-29", Date: "2026-03-29", Start: time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC), End: time.Date(2026, 3, 29, 22, 0, 0, 0, time.UTC)}

// users is a database of a user: its dsn, and a handle to fill it.
func users(t *testing.T, kind userdb.Kind) (dsn string, db *sql.DB) {
	t.Helper()
	var err error
	switch kind {
	case userdb.SQLite:
		path := filepath.Join(t.TempDir(), "shop.db")
		dsn = "sqlite:" + path
		db, err = sql.Open("sqlite", path)
	case userdb.Postgres:
		dsn = pgtest.URL(t)
		db, err = sql.Open("pgx", dsn)
	case userdb.MySQL:
		dsn = mariatest.URL(t)
		db, err = mariatest.Open(dsn)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return dsn, db
}

func must(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func listed(t *testing.T, dsn, query string) (all []string, err error) {
	t.Helper()
	for s, e := range (fanout.Source{SQL: query, DSN: dsn, Open: openUserDB}).List(t.Context(), listedWindow) {
		if e != nil {
			err = e
			continue
		}
		payload, bad := json.Marshal(s.Payload)
		if bad != nil {
			t.Fatal(bad)
		}
		all = append(all, fmt.Sprintf("%s@%s %s", s.ID, s.Zone, payload))
	}
	return all, err
}

// TestAQueryListsSubjects: the same listing over each kind of database that a dsn can name, through the doors of the program.
func TestAQueryListsSubjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    userdb.Kind
		instant string
	}{
		{userdb.SQLite, "TEXT"}, {userdb.Postgres, "TIMESTAMPTZ"}, {userdb.MySQL, "TIMESTAMP NULL"},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			dsn, db := users(t, c.kind)
			utc := map[userdb.Kind]string{userdb.Postgres: "+00"}[c.kind]
			must(t, db, "CREATE TABLE subs (id BIGINT, name VARCHAR(100), zone VARCHAR(40), due VARCHAR(10), paid "+c.instant+", cents NUMERIC(12,2))")
			if c.kind == userdb.MySQL { // everybody else's instants are those of New York: the query must not depend on it
				db.SetMaxOpenConns(1)
				must(t, db, "SET time_zone = '+00:00'")
			}
			must(t, db, strings.ReplaceAll(`INSERT INTO subs VALUES (9007199254740993, 'Zoë 中', 'Asia/Tokyo', '2026-03-29', '2026-03-28 23:00:00Z', 15.50), (8, NULL, NULL, '2026-03-29', '2026-03-29 21:59:59Z', 9),
				(7, 'before', NULL, '2026-03-29', '2026-03-28 22:59:59Z', 9), (6, 'after', NULL, '2026-03-30', '2026-03-29 22:00:00Z', 9)`, "Z'", utc+"'"))
			got, err := listed(t, dsn, "SELECT id AS subject, zone, name FROM subs WHERE due = :date ORDER BY id")
			if want := `7@ {"name":"before"}|8@ {"name":null}|9007199254740993@Asia/Tokyo {"name":"Zoë 中"}`; err != nil || strings.Join(got, "|") != want {
				t.Errorf("by date: %v %v, want %s", got, err, want)
			}
			got, err = listed(t, dsn, "SELECT id AS subject FROM subs WHERE paid >= :window_start AND paid < :window_end ORDER BY id")
			if err != nil || len(got) != 2 || !strings.HasPrefix(got[0], "8@") || !strings.HasPrefix(got[1], "9007199254740993@") {
				t.Errorf("by the bounds of the window: %v %v", got, err)
			}
			if got, err := listed(t, dsn, "DELETE FROM subs"); err == nil {
				t.Errorf("it wrote: %v", got)
			}
			if got, err := listed(t, dsn, "SELECT nothing FROM nowhere"); err == nil || len(got) > 0 {
				t.Errorf("no such table: %v %v", got, err)
			}
			if got, err := listed(t, dsn, "SELECT name FROM subs"); err == nil || !strings.Contains(err.Error(), "no column subject") {
				t.Errorf("no subject: %v %v", got, err)
			}
		})
	}
}

// TestAQueryThatIsCutOff: a connection that is lost in the middle of a listing is an error, never the end of the list.
func TestAQueryThatIsCutOff(t *testing.T) {
	t.Parallel()
	for kind, end := range map[userdb.Kind]string{
		userdb.Postgres: "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%AS subject%'",
		userdb.MySQL:    "BEGIN NOT ATOMIC FOR r IN (SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id() AND info LIKE '%AS subject%') DO KILL r.id; END FOR; END",
	} {
		t.Run(string(kind), func(t *testing.T) {
			dsn, db := users(t, kind)
			must(t, db, "CREATE TABLE numbers (n BIGINT, filling VARCHAR(200))", "INSERT INTO numbers VALUES (1, REPEAT('x', 200))")
			for range 16 {
				must(t, db, "INSERT INTO numbers SELECT n, filling FROM numbers")
			}
			n := 0
			var err error
			for _, e := range (fanout.Source{SQL: "SELECT n AS subject, filling FROM numbers", DSN: dsn, Open: openUserDB}).List(t.Context(), listedWindow) {
				if err = e; err != nil {
					break
				}
				if n++; n == 100 {
					must(t, db, end)
				}
			}
			if err == nil || n < 100 || n >= 1<<16 {
				t.Errorf("%d subjects, %v", n, err)
			}
			if out := daybook.OutcomeOf(err); out.Result == daybook.ResultPermanent || out.Result == daybook.ResultDone {
				t.Errorf("it is read as %s", out.Result)
			}
		})
	}
}

// TestAQueryThatMayNotBeAsked: a database that lets nobody in is told without the password.
func TestAQueryThatMayNotBeAsked(t *testing.T) {
	t.Parallel()
	dsn, db := users(t, userdb.MySQL)
	must(t, db, "CREATE USER me@'%' IDENTIFIED BY 'hunter2'", "GRANT SELECT ON *.* TO me@'%'", "CREATE TABLE subs (id BIGINT)", "INSERT INTO subs VALUES (1)")
	t.Cleanup(func() { _, _ = db.ExecContext(context.WithoutCancel(t.Context()), "DROP USER me@'%'") })
	as := func(password string) string {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("me", password)
		return u.String()
	}
	if got, err := listed(t, as("hunter2"), "SELECT id AS subject FROM subs"); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
	_, err := listed(t, as("s3cret!"), "SELECT id AS subject FROM subs")
	if err == nil || !strings.Contains(err.Error(), "denied") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a wrong password: %v", err)
	}
	for _, dsn := range []string{"mysql://me:hunter2@/shop", "mysql://me:hunter2@127.0.0.1:1/shop", "mysql://me:hunter2@127.0.0.1:1/shop?tls=nonsense"} {
		if _, err := listed(t, dsn, "SELECT 1 AS subject"); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
