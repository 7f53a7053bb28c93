package userdb_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/mariatest"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/internal/userdb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var args = userdb.Args{Date: "2026-03-29", Window: "2026-03-29", Start: time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC), End: time.Date(2026, 3, 29, 22, 0, 0, 0, time.UTC)}

func open(t *testing.T, kind userdb.Kind) *sql.DB {
	t.Helper()
	var db *sql.DB
	var err error
	switch kind {
	case userdb.SQLite:
		db, err = sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db"))
	case userdb.Postgres:
		db, err = sql.Open("pgx", pgtest.URL(t))
	case userdb.MySQL:
		db, err = mariatest.Open(mariatest.URL(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	instant := map[userdb.Kind]string{userdb.SQLite: "TEXT", userdb.Postgres: "TIMESTAMPTZ", userdb.MySQL: "DATETIME"}[kind]
	day := map[userdb.Kind]string{userdb.SQLite: "TEXT", userdb.Postgres: "DATE", userdb.MySQL: "DATE"}[kind]
	for _, s := range []string{"CREATE TABLE subs (id BIGINT, name TEXT, due " + day + ", paid " + instant + ", cents NUMERIC(10,2))",
		"INSERT INTO subs VALUES (7, 'Zoë', '2026-03-29', '2026-03-28 23:30:00', 15.50), (8, NULL, '2026-03-29', '2026-03-29 22:30:00', 9), (9, 'x', '2026-03-30', '2026-03-29 01:00:00', 9)"} {
		if kind == userdb.Postgres {
			s = strings.ReplaceAll(s, ":00'", ":00+00'")
		}
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func all(t *testing.T, db *sql.DB, kind userdb.Kind, query string) (rows []userdb.Row, err error) {
	t.Helper()
	for r, e := range userdb.Rows(t.Context(), db, kind, query, args) {
		if e != nil {
			err = e
			break
		}
		rows = append(rows, r)
	}
	return rows, err
}

func TestRows(t *testing.T) {
	for _, kind := range []userdb.Kind{userdb.SQLite, userdb.Postgres, userdb.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			db := open(t, kind)
			rows, err := all(t, db, kind, "SELECT id AS Subject, name, ':date' AS text -- :nothing\nFROM subs WHERE due = :date AND due = :date ORDER BY id;")
			if err != nil || len(rows) != 2 || rows[0]["subject"] != int64(7) || rows[0]["name"] != "Zoë" || rows[1]["name"] != nil || rows[0]["text"] != ":date" {
				t.Fatalf("%v %v", rows, err)
			}
			rows, err = all(t, db, kind, "SELECT id AS subject FROM subs WHERE paid >= :window_start AND paid < :window_end ORDER BY id")
			if err != nil || len(rows) != 2 || rows[1]["subject"] != int64(9) {
				t.Errorf("by the bounds of the window: %v %v", rows, err)
			}
			for _, write := range []string{"DELETE FROM subs", "UPDATE subs SET name = 'y' RETURNING id", "WITH d AS (SELECT 1) DELETE FROM subs RETURNING id AS subject", "DROP TABLE subs"} {
				if rows, err := all(t, db, kind, write); err == nil {
					t.Errorf("%s was run: %v", write, rows)
				}
			}
			if rows, _ := all(t, db, kind, "SELECT id AS subject FROM subs"); len(rows) != 3 {
				t.Errorf("%d rows are left", len(rows))
			}
			if kind == userdb.MySQL {
				rows, err = all(t, db, kind, `SELECT id AS subject, 'it\'s :date' AS "text" # :nothing; at all`+"\nFROM subs WHERE due = :date ORDER BY id")
				if err != nil || len(rows) != 2 || rows[0]["text"] != "it's :date" {
					t.Errorf("as MySQL quotes: %v %v", rows, err)
				}
			}
			if _, err := all(t, db, kind, "SELECT id AS subject, id AS subject FROM subs"); err == nil || !strings.Contains(err.Error(), "two columns called subject") {
				t.Error(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, err := range userdb.Rows(ctx, db, kind, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT i AS subject FROM n", args) {
				if cancel(); err != nil {
					break
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT 1":                             "",
		"SELECT a::text, ':x', \":y\" FROM t;": "",
		"SELECT 1 /* :z */ -- :z":              "",
		"SELECT :dates":                        ":dates is no name",
		"SELECT :subject":                      ":subject is no name",
		`SELECT 'it\'s :x', "a\":y" FROM t`:    "", // as MySQL reads it
		"SELECT 1 # :z; of it":                 "",
		`SELECT 'a\' AS "\", :date`:            "", // as PostgreSQL reads it
		"SELECT 1; DELETE FROM t":              "more than one statement",
		" ; ":                                  "the query is empty",
	} {
		err := userdb.Check(query)
		if (want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || daybook.CodeOf(err) != daybook.CodeInvalid) {
			t.Errorf("%q: %v, want %q", query, err, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	for dsn, want := range map[string]userdb.Kind{"sqlite:shop.db": userdb.SQLite, "postgres://a:secret@h/d": userdb.Postgres, "postgresql://h/d": userdb.Postgres, "mysql://h/d": userdb.MySQL, "mariadb://h/d": userdb.MySQL,
		"sqlite:": "", "sqlite://x": "", "oracle://a:secret@h": "", "": ""} {
		got, err := userdb.KindOf(dsn)
		if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q %v", dsn, got, err)
		}
	}
}

func TestMasked(t *testing.T) {
	const dsn = "postgres://me:hunter2@db/shop"
	for _, text := range []string{"connect to " + dsn, "password hunter2 was refused"} {
		if got := userdb.Masked(daybook.Invalid("%s", text), dsn).Error(); strings.Contains(got, "hunter2") {
			t.Error(got)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"SELECT 1", "SELECT ':a' || :date", "/*", "--", "'", "::", ":", "a:date:b"} {
		f.Add(s)
	}
	f.Add(`SELECT 'a\`)
	f.Fuzz(func(_ *testing.T, query string) { _ = userdb.Check(query) })
}
