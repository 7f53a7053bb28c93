package main

import (
	"database/sql"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/daybook-run/daybook/engine"
)

// What SQLite itself does to a file is no writing over, and an older copy in it is, from the second look on.
func TestAFileIsWrittenOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	do := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.ExecContext(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	const checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
	do(`CREATE TABLE other (a TEXT)`, `CREATE TABLE daybook_ledger (id TEXT NOT NULL PRIMARY KEY, created_us BIGINT NOT NULL, sequence BIGINT NOT NULL, written_us BIGINT NOT NULL)`,
		`INSERT INTO daybook_ledger VALUES ('01a22c65', 1764500000000000, 1, 0)`, checkpoint)
	b := &base{path: path, ledger: &ledger{db: engine.DB{Read: db}}}
	looks := func(what string, want [2]int64, over bool) {
		t.Helper()
		found := b.writtenOver(t.Context())
		if b.writtenOver(t.Context()) != over || found {
			t.Errorf("%s: written over: %v", what, !over)
		}
		if b.had != want {
			t.Errorf("%s: %v, want %v", what, b.had, want)
		}
	}
	looks("new", [2]int64{0, 1}, false)
	do("UPDATE daybook_ledger SET sequence = 300")
	looks("in the log", [2]int64{0, 1}, false)
	do(checkpoint)
	looks("in the file", [2]int64{0, 300}, false)
	do(`ALTER TABLE daybook_ledger ADD COLUMN alerts BIGINT NOT NULL DEFAULT 0`, `ALTER TABLE daybook_ledger ADD COLUMN secret TEXT NOT NULL DEFAULT ''`,
		`ALTER TABLE daybook_ledger ADD COLUMN lapse BIGINT NOT NULL DEFAULT 0`, checkpoint)
	looks("with columns that are not written yet", [2]int64{0, 300}, false)
	do("UPDATE daybook_ledger SET sequence = 70000, secret = hex(randomblob(300))", checkpoint)
	looks("with a long text", [2]int64{0, 70000}, false)
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	do("DROP TABLE other", "VACUUM")
	looks("in the log of a VACUUM", [2]int64{0, 70000}, false)
	do(checkpoint)
	looks("after a VACUUM", [2]int64{0, 70000}, false)
	do("UPDATE daybook_ledger SET sequence = 1, lapse = 1", checkpoint)
	looks("of a later lapse", [2]int64{1, 1}, false)
	do("UPDATE daybook_ledger SET sequence = 9223372036854775807", checkpoint)
	looks("as large as can be", [2]int64{1, math.MaxInt64}, false)
	if err := os.WriteFile(path, older, 0o600); err != nil {
		t.Fatal(err)
	}
	b.root = 3 // SQLite may say where it is in the file that was there
	looks("an older copy", [2]int64{1, math.MaxInt64}, true)
}
