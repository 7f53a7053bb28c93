package engine

import (
	"database/sql"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/store/storetest"
)

// H46: the log that grew beside a reader falls within a minute after the reader ends: so often it is looked at, and that
// look is enough.
func TestH46TheLogIsFoldedInEveryMinute(t *testing.T) {
	db := storetest.SQLite(t).Open(t)
	e, err := Open(t.Context(), db, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	items := e.planning()
	at := slices.IndexFunc(items, func(i loop.Item) bool { return i.Name == "checkpoint" })
	if at < 0 || items[at].Every > time.Minute {
		t.Fatalf("the log is looked at in %+v", items)
	}
	if _, waits := items[at].Service.(loop.Waiter); waits {
		t.Fatal("it may wait longer")
	}
	info, err := e.store.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		t.Helper()
		log, err := os.Stat(info.Place + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return log.Size()
	}
	look := func() {
		t.Helper()
		if more, err := items[at].Service.Tick(t.Context(), time.Now()); err != nil || more {
			t.Fatalf("more %v, %v", more, err)
		}
	}
	reader, err := db.Read.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM daybook_runs").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Write.ExecContext(t.Context(), "CREATE TABLE ballast (b BLOB)"); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, err := db.Write.ExecContext(t.Context(), "INSERT INTO ballast VALUES (randomblob(1048576))"); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if size() < 8<<20 {
		t.Fatalf("the log has %d bytes beside a reader", size())
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	look()
	if size() >= 8<<20 {
		t.Errorf("the log has %d bytes", size())
	}
}

// Whoever says nothing about it has logs for thirty days; who says more or less has that.
func TestLogsAreKeptForThirtyDays(t *testing.T) {
	for said, want := range map[time.Duration]time.Duration{0: 30 * 24 * time.Hour, 7 * 24 * time.Hour: 7 * 24 * time.Hour} {
		s := Settings{}
		s.Retention.Log = said
		if got := s.withDefaults().Retention.Log; got != want {
			t.Errorf("%s: logs are kept for %s, want %s", said, got, want)
		}
	}
}
