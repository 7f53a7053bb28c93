package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
)

func postgres() *dialect {
	return &dialect{
		name: "postgres", rewrite: rewritePostgres, list: listAsArray, bulk: bulkByArrays, together: togetherAtOnce, end: endAtOnce, single: oneRowOf,
		busy: postgresBusy, unique: func(err error) bool { return sqlState(err) == "23505" }, verify: verifyPostgres,
		cut: postgresCut, readOnly: func(err error) bool { return sqlState(err) == "25006" }, advice: postgresAdvice, call: callNodes,
		version: "SELECT 'PostgreSQL ' || current_setting('server_version')",
		pin:     pinPlans, readsUpdates: true,
	}
}

// postgresBusy: serialization failure, deadlock. The transaction was rolled back and may be tried again.
func postgresBusy(err error) bool {
	s := sqlState(err)
	return s == "40001" || s == "40P01"
}

// postgresCut: nothing more comes through this connection. Class 08 are connections, 57P are servers that stop, crash, start
// or end what was idle, 25P03 is a transaction that was idle for too long, and with 53300 the server has no room for a
// connection just now.
func postgresCut(err error) bool {
	switch s := sqlState(err); {
	case s == "":
		return cutOff(err)
	case strings.HasPrefix(s, "08"):
		return true
	default:
		return slices.Contains([]string{"57P01", "57P02", "57P03", "57P05", "25P03", "40003", "53300"}, s)
	}
}

// postgresAdvice is what can be done about an error that is no fault of this program.
func postgresAdvice(err error) (daybook.Text, bool) {
	switch sqlState(err) {
	case "25006":
		return daybook.Say("this server only lets read: a standby, or a primary that was made one; name all servers in the URL, with target_session_attrs=read-write"), true
	case "26000", "42P05":
		return daybook.Say("a pooler in transaction mode keeps no prepared statements: add default_query_exec_mode=exec to the URL"), true
	case "53100":
		return daybook.Say("make room on the disk of the database: what was recorded is safe, and serve goes on by itself"), true
	}
	return daybook.Text{}, false
}

// Channel is the channel of NOTIFY on which nodes call each other. What is heard there only saves time; whoever hears nothing
// polls. Ledgers that share a database hear each other, which does no harm.
const Channel = "daybook"

const callNodes = `SELECT pg_notify('` + Channel + `', '')`

// calls are the calls of this process. PostgreSQL lets transactions that call commit one after the other, each with its wait
// for the disk. So one at a time calls in its transaction; those that come meanwhile are told of after their commit, by one
// call for all of them, which waits for no disk, and for which none of them waits.
type calls struct {
	busy atomic.Bool // a transaction, or a call by itself, is under way
	owed atomic.Bool // some have committed without a call
}

// call tells other nodes, when the transaction commits, that it made a run due. called says how it ended.
func (t *tx) call(ctx context.Context) error {
	switch {
	case !t.wakes || t.s.d.call == "" || t.called != nil:
		return nil
	case t.calls(ctx):
		return t.query(ctx, t.s.d.call, func(*sql.Rows) error { return nil })
	}
	t.owes(ctx)
	return nil
}

// owes has other nodes called after the commit.
func (t *tx) owes(ctx context.Context) {
	t.called = func(committed bool) {
		if committed {
			t.s.calls.owed.Store(true)
			t.s.callOwed(ctx)
		}
	}
}

// calls reports whether this transaction is the one that calls now. Then it must, and others may when it has ended.
func (t *tx) calls(ctx context.Context) bool {
	c := &t.s.calls
	if !c.busy.CompareAndSwap(false, true) {
		return false
	}
	t.called = func(bool) {
		c.busy.Store(false)
		t.s.callOwed(ctx)
	}
	return true
}

// withCall adds the call to statements that are sent together.
func (t *tx) withCall(ctx context.Context, parts []*part) []*part {
	if t.wakes && t.s.d.call != "" && t.called == nil && t.calls(ctx) {
		parts = append(parts, one(t.s.d.call))
	}
	return parts
}

// callTimeout is how long a call by itself may take. One that fails is made up for by polling.
const callTimeout = 5 * time.Second

// callOwed calls for those that have committed without a call, beside whoever asked for it: while others commit all the
// time there is always one more to make.
func (s *Store) callOwed(ctx context.Context) {
	c := &s.calls
	if !c.owed.Load() || !c.busy.CompareAndSwap(false, true) {
		return
	}
	go func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer done()
		c.owed.Store(false)
		_, _ = s.db.Write.ExecContext(ctx, s.d.call)
		c.busy.Store(false)
		s.callOwed(ctx)
	}()
}

// Calls reports whether nodes can call each other through this database.
func (s *Store) Calls() bool { return s.d.call != "" }

// Call tells all nodes of this ledger that there is something to do, as a transaction does that makes a run due.
func (s *Store) Call(ctx context.Context) error {
	if s.d.call == "" {
		return nil
	}
	return s.read(ctx, "call the nodes", s.d.call, func(*sql.Rows) error { return nil })
}

// sqlState returns the SQLSTATE of an error of any driver that gives it, or "".
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// verifyPostgres refuses a server or a handle with which an acknowledged write could be lost, or text would not come
// back as it went in.
func verifyPostgres(ctx context.Context, db DB) error {
	settings := []struct {
		name, bad string
		why       daybook.Text
	}{
		{"synchronous_commit", "off", daybook.Say("a crash of the server would forget what was reported done")},
		{"server_encoding", "SQL_ASCII", daybook.Say("text would not be kept as UTF-8")},
		{"transaction_read_only", "on", daybook.Say("this server is a standby or the user may only read")},
	}
	for _, s := range settings {
		var got string
		if err := db.Write.QueryRowContext(ctx, "SELECT current_setting($1)", s.name).Scan(&got); err != nil {
			return openFault(err)
		}
		if strings.EqualFold(got, s.bad) {
			return daybook.Invalid("the ledger's PostgreSQL is unsafe: %s is %s: %s", s.name, got, s.why)
		}
	}
	return nil
}
