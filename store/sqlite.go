package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/daybook-run/daybook"
)

func sqlite() *dialect {
	return &dialect{
		name: "sqlite", rewrite: rewriteSQLite, list: listAsJSON, bulk: bulkByRow, together: togetherByTurns, end: endByTurns, single: func(statement string) string { return statement },
		busy: sqliteBusy, unique: sqliteUnique, verify: verifySQLite,
		cut: never, readOnly: never, advice: func(error) (daybook.Text, bool) { return daybook.Text{}, false },
		version: "SELECT 'SQLite ' || sqlite_version()",
	}
}

// never: a file has no connection that could be cut.
func never(error) bool { return false }

// oneRow has the statements of the hot path once more, for one row: for those above SQLite would fill a table of one row
// each time.
var oneRow = map[string]string{moveLive: moveLiveRow, countTriggers: countTrigger, markRuns: markRun,
	moveCursors: moveCursor, extendCovers: extendCover, insertLive: insertOneLive, insertRuns: intoRuns}

// readAfter has statements whose rows in oneRow return nothing, and what is read after all of them, by the first columns of those
// that wrote: in a transaction package sql starts a goroutine for each statement that returns rows, which costs more than the row.
var readAfter = map[string]string{moveCursors: selectMovedJobs, insertRuns: echo}

// echo returns what it is given.
const echo = `SELECT value FROM json_each($1)`

// The drivers name the result code in their texts; importing one to compare numbers is not allowed here, for two copies
// of SQLite in one process break each other's locks.
func sqliteBusy(err error) bool {
	s := err.Error()
	return strings.Contains(s, "database is locked") || strings.Contains(s, "SQLITE_BUSY")
}

func sqliteUnique(err error) bool {
	return strings.Contains(err.Error(), "UNIQUE constraint failed")
}

// verifySQLite refuses handles with which an acknowledged write could be lost or a write could fail at once.
func verifySQLite(ctx context.Context, db DB) error {
	if db.Read == db.Write {
		return daybook.Invalid("the ledger needs two handles on SQLite, one for writing and one for reading").
			WithHint("open the file a second time: engine.DB{Write: one connection, Read: a pool of its own}")
	}
	want := []struct {
		pragma, ok string
		why        daybook.Text
	}{
		{"journal_mode", "wal", daybook.Say("readers would block the writer")},
		{"synchronous", "2 3", daybook.Say("a power cut would forget what was reported done")},
		{"foreign_keys", "1", daybook.Say("the database would not check references")},
	}
	for _, handle := range []struct {
		name string
		db   *sql.DB
	}{{"write", db.Write}, {"read", db.Read}} {
		for _, w := range want {
			var got string
			if err := handle.db.QueryRowContext(ctx, "PRAGMA "+w.pragma).Scan(&got); err != nil {
				return openFault(err)
			}
			if !strings.Contains(" "+w.ok+" ", " "+strings.ToLower(got)+" ") {
				return unsafe(handle.name, daybook.Say("PRAGMA %s is %s", w.pragma, got), w.why)
			}
		}
		var patience int64
		if err := handle.db.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&patience); err != nil {
			return openFault(err)
		}
		if patience < 1000 {
			return unsafe(handle.name, daybook.Say("PRAGMA busy_timeout is %d", patience), daybook.Say("writers that meet would fail at once"))
		}
	}
	if n := db.Write.Stats().MaxOpenConnections; n != 1 {
		return unsafe("write", daybook.Say("MaxOpenConns is %d", n), daybook.Say("writers of one process would wait for each other inside SQLite"))
	}
	return verifyImmediate(ctx, db)
}

// verifyImmediate checks that transactions take the write lock when they begin: with one open, another connection must
// not get it.
func verifyImmediate(ctx context.Context, db DB) (err error) {
	t, err := db.Write.BeginTx(ctx, nil)
	if err != nil {
		return openFault(err)
	}
	defer func() { err = errors.Join(err, t.Rollback()) }()
	deferred := false
	err = withoutPatience(ctx, db.Read, func(c *sql.Conn) error {
		if _, begun := c.ExecContext(ctx, "BEGIN IMMEDIATE"); begun != nil {
			return nil
		}
		deferred = true
		_, err := c.ExecContext(ctx, "ROLLBACK")
		return err
	})
	switch {
	case err != nil:
		return openFault(err)
	case deferred:
		// On a file that cannot be written SQLite takes no lock either.
		if _, err := t.ExecContext(ctx, "PRAGMA user_version = 0"); err != nil {
			return openFault(err)
		}
		return unsafe("write", daybook.Say("transactions begin deferred"), daybook.Say("one that reads and then writes would fail at once"))
	}
	return nil
}

// withoutPatience lends a connection that does not wait for locks.
func withoutPatience(ctx context.Context, db *sql.DB, do func(*sql.Conn) error) (err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var patience int64
	if err := c.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&patience); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	defer func() {
		// Also when ctx is over: the connection goes back to the pool.
		_, back := c.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", patience))
		err = errors.Join(err, back)
	}()
	return do(c)
}

func unsafe(handle string, what, why daybook.Text) error {
	return daybook.Invalid("the %s handle of the ledger is unsafe: %s: %s", handle, what, why).
		WithHint("open it with journal_mode WAL, synchronous FULL, foreign_keys on, busy_timeout 5000, immediate transactions, and one writing connection")
}
