package store

import (
	"context"
	"errors"
	"strings"

	"github.com/daybook-run/daybook"
)

func postgres() *dialect {
	return &dialect{
		name: "postgres", rewrite: rewritePostgres, list: listAsArray, bulk: bulkByArrays,
		busy: postgresBusy, unique: func(err error) bool { return sqlState(err) == "23505" }, verify: verifyPostgres,
		version: "SELECT 'PostgreSQL ' || current_setting('server_version')",
		pin:     "SET LOCAL plan_cache_mode = force_generic_plan",
	}
}

// postgresBusy: serialization failure, deadlock. The transaction was rolled back and may be tried again.
func postgresBusy(err error) bool {
	s := sqlState(err)
	return s == "40001" || s == "40P01"
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
