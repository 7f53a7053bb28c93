package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// handles opens a file with a data source that may differ from the safe one.
func handles(t *testing.T, path string, change func(source string) string) store.DB {
	t.Helper()
	source := "file:" + path + storetest.SQLitePragmas
	if change != nil {
		source = change(source)
	}
	one := func(n int) *sql.DB {
		db, err := sql.Open("sqlite", source)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(n)
		return db
	}
	return store.DB{Write: one(1), Read: one(4)}
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "daybook.db") }

// open opens a ledger; the test's deadline guards it.
func open(t testing.TB, db store.DB) (*store.Store, error) {
	t.Helper()
	s, err := store.Open(t.Context(), db, store.Options{NewID: storetest.NewID, Migrate: true, Now: storetest.Birth})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// refused fails the test unless err has a code and says something.
func refused(t *testing.T, err error, code daybook.Code, says string) {
	t.Helper()
	if daybook.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		t.Fatalf("error %v with code %q, want %q with code %q", err, daybook.CodeOf(err), says, code)
	}
}

func replace(old, with string) func(string) string {
	return func(source string) string {
		if !strings.Contains(source, old) {
			panic("the data source has no " + old)
		}
		return strings.Replace(source, old, with, 1)
	}
}

func TestUnsafeHandlesOfSQLiteAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(string) string
		says   string
	}{
		{"a rollback journal", replace("journal_mode(WAL)", "journal_mode(DELETE)"), "journal_mode is delete"},
		{"synchronous off", replace("synchronous(FULL)", "synchronous(OFF)"), "synchronous is 0"},
		{"synchronous normal", replace("synchronous(FULL)", "synchronous(NORMAL)"), "synchronous is 1"},
		{"no references", replace("foreign_keys(1)", "foreign_keys(0)"), "foreign_keys is 0"},
		{"no patience", replace("busy_timeout(5000)", "busy_timeout(0)"), "busy_timeout is 0"},
		{"deferred transactions", replace("_txlock=immediate", "_txlock=deferred"), "deferred"},
	} {
		t.Run(c.name, func(t *testing.T) {
			safe, bad := handles(t, file(t), nil), handles(t, file(t), c.change)
			_, err := open(t, bad)
			refused(t, err, daybook.CodeInvalid, c.says)
			if daybook.HintOf(err) == "" {
				t.Error("no hint")
			}
			if strings.Contains(c.name, "transactions") {
				return // nothing is written through the read handle
			}
			path := file(t)
			bad, safe = handles(t, path, c.change), handles(t, path, nil)
			if strings.Contains(c.name, "journal") { // of the file, not of the handle
				return
			}
			_, err = open(t, store.DB{Write: safe.Write, Read: bad.Read})
			refused(t, err, daybook.CodeInvalid, c.says)
			if !strings.Contains(err.Error(), "read handle") {
				t.Errorf("%v does not name the handle", err)
			}
		})
	}
	t.Run("many writing connections", func(t *testing.T) {
		db := handles(t, file(t), nil)
		db.Write.SetMaxOpenConns(2)
		_, err := open(t, db)
		refused(t, err, daybook.CodeInvalid, "MaxOpenConns is 2")
	})
	t.Run("synchronous extra is safe", func(t *testing.T) {
		if _, err := open(t, handles(t, file(t), replace("synchronous(FULL)", "synchronous(EXTRA)"))); err != nil {
			t.Fatal(err)
		}
	})
}

// H45: a process that opens the ledger while another writes for longer than its patience waits again, as every transaction
// does, and is not told that the database is busy.
func TestH45ALedgerIsOpenedBesideABusyWriter(t *testing.T) {
	path := file(t)
	first := handles(t, path, nil)
	if _, err := open(t, first); err != nil {
		t.Fatal(err)
	}
	busy, err := first.Write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	second := handles(t, path, replace("busy_timeout(5000)", "busy_timeout(1000)")) // the least that is safe
	go func() {
		_, err := store.Open(t.Context(), second, store.Options{NewID: storetest.NewID, Migrate: true, Now: storetest.Birth})
		opened <- err
	}()
	hold := time.NewTimer(1500 * time.Millisecond)
	defer hold.Stop()
	select {
	case err := <-opened:
		t.Fatalf("it did not wait: %v", err)
	case <-hold.C:
	}
	if err := busy.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestAFileThatCannotBeUsedIsSaidSo(t *testing.T) {
	t.Run("the directory is missing", func(t *testing.T) {
		_, err := open(t, handles(t, filepath.Join(t.TempDir(), "no", "daybook.db"), nil))
		refused(t, err, daybook.CodeUnavailable, "unable to open database file")
	})
	t.Run("it is no database", func(t *testing.T) {
		path := file(t)
		text := []byte(strings.Repeat("this is a letter to my aunt. ", 200))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := open(t, handles(t, path, nil))
		refused(t, err, daybook.CodeUnavailable, "not a database")
		if after, err := os.ReadFile(path); err != nil || string(after) != string(text) {
			t.Errorf("the file was changed: %v", err)
		}
	})
	t.Run("it is read only", func(t *testing.T) {
		path := file(t)
		if _, err := open(t, handles(t, path, nil)); err != nil {
			t.Fatal(err)
		}
		_, err := open(t, handles(t, path, func(s string) string { return s + "&mode=ro" }))
		refused(t, err, daybook.CodeUnavailable, "readonly")
	})
	t.Run("another holds its lock", func(t *testing.T) {
		path := file(t)
		other := handles(t, path, nil)
		if _, err := open(t, other); err != nil {
			t.Fatal(err)
		}
		held, err := other.Write.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		db := handles(t, path, replace("busy_timeout(5000)", "busy_timeout(1000)"))
		_, err = open(t, db)
		refused(t, err, daybook.CodeUnavailable, "locked")
		if err := held.Rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, db); err != nil {
			t.Errorf("when the lock is gone: %v", err)
		}
	})
	t.Run("it is damaged", func(t *testing.T) {
		path := file(t)
		db := handles(t, path, nil)
		s, err := open(t, db)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s, "report", 400)
		if _, err := s.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := db.Write.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Read.Close(); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(whole) / 4; i < len(whole); i++ {
			whole[i] = 0xAA
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err = open(t, handles(t, path, nil))
		if err == nil {
			_, err = s.Claim(t.Context(), daybook.Claim{Lane: daybook.LaneLive, Limit: 1000, NewID: storetest.NewID}, storetest.Birth)
		}
		refused(t, err, daybook.CodeUnavailable, "malformed")
	})
}

// fill gives a job n runs that are due.
func fill(t testing.TB, s *store.Store, job string, n int) {
	t.Helper()
	fillJob(t, s, storetest.Job(job, func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow }), n)
}

func fillJob(t testing.TB, s *store.Store, j *daybook.Job, n int) {
	t.Helper()
	if _, err := s.TakeRevisions(t.Context(), []daybook.Revision{{Job: j}}, false, storetest.Birth); err != nil {
		t.Fatal(err)
	}
	plan := &daybook.Plan{Job: j, Source: daybook.SourceSchedule}
	states, err := s.JobStates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range states {
		if st.Name == j.Name {
			plan.Revision, plan.From = st.Revision, st.Cursor
		}
	}
	plan.To = plan.From.AddDate(0, 0, n)
	for i := range n {
		w := storetest.Day(plan.From.AddDate(0, 0, i).Format(time.DateOnly))
		plan.Windows = append(plan.Windows, daybook.PlannedWindow{Window: w, Fires: []string{w.Label + "T02:00"}, FireAt: w.Start, Last: w.Start})
	}
	done, err := s.Plan(t.Context(), []*daybook.Plan{plan}, plan.To)
	if err != nil || done[0].Stale || done[0].Started != n {
		t.Fatalf("plan: %+v %v", done, err)
	}
}

// drainAll claims and ends everything that is due at now.
func drainAll(t testing.TB, s *store.Store, now time.Time) int {
	t.Helper()
	ended := 0
	for {
		runs, err := s.Claim(t.Context(), daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 1000, Lease: now.Add(time.Minute), NewID: storetest.NewID}, now)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) == 0 {
			return ended
		}
		ms := make([]daybook.Transition, len(runs))
		for i, r := range runs {
			ms[i] = r.Next(daybook.Outcome{Result: daybook.ResultDone}, daybook.Policy{}, now)
		}
		applied, err := s.Apply(t.Context(), ms)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range applied {
			if a.Stale {
				t.Fatalf("%s is stale", ms[i].Key)
			}
		}
		ended += len(runs)
	}
}

var farAhead = storetest.Birth.AddDate(1000, 0, 0)

func TestAFullDiskLosesNothing(t *testing.T) {
	db := handles(t, file(t), nil)
	s, err := open(t, db)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "report", 50)
	var pages int
	if err := db.Write.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	limit := func(n int) {
		t.Helper()
		if _, err := db.Write.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	limit(pages) // from here on the disk is full
	j := storetest.Job("more", func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
	stored := 0
	for n := 0; ; n++ {
		if n > 5000 {
			t.Fatal("the disk is never full")
		}
		r := daybook.NewRun(j, 1, storetest.Day("2026-03-01"), 1, fmt.Sprintf("s%04d", n), storetest.Birth)
		r.Due = storetest.Birth
		_, _, err := s.Trigger(t.Context(), daybook.Ask{Key: r.Key, Source: daybook.SourceEvent}, r, storetest.Birth)
		if err != nil {
			refused(t, err, daybook.CodeUnavailable, "full")
			if _, err := s.Run(t.Context(), r.Key); daybook.CodeOf(err) != daybook.CodeNotFound {
				t.Fatalf("a run that was refused is there: %v", err)
			}
			break
		}
		stored++
	}
	if _, err := s.Counts(t.Context()); err != nil {
		t.Fatalf("reading on a full disk: %v", err)
	}
	limit(1 << 30)
	if n := drainAll(t, s, farAhead); n != 50+stored {
		t.Errorf("ended %d runs, want %d", n, 50+stored)
	}
}

// H46: the write-ahead log grows while a reader is open, and falls when it has ended.
func TestH46TheLogFallsWhenAReaderHasEnded(t *testing.T) {
	rows := 50_000
	if testing.Short() {
		rows = 5_000
	}
	path := file(t)
	db := handles(t, path, nil)
	s, err := open(t, db)
	if err != nil {
		t.Fatal(err)
	}
	wal := func() int64 {
		t.Helper()
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	reader, err := db.Read.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM daybook_runs").Scan(&n); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < rows; i += 1000 {
		fill(t, s, fmt.Sprintf("j%05d", i), 1000)
	}
	grown := wal()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // it waits for no reader: busy_timeout is five
	defer cancel()
	left, err := s.Checkpoint(ctx)
	if err != nil {
		t.Fatalf("beside a reader: %v", err)
	}
	if left == 0 || wal() != grown {
		t.Errorf("a log of %d bytes fell to %d (%d are said to be left) beside a reader", grown, wal(), left)
	}
	info, err := s.Info(t.Context())
	if err != nil || info.WALBytes != grown {
		t.Errorf("the ledger says that its log has %d bytes, it has %d: %v", info.WALBytes, grown, err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if left, err = s.Checkpoint(t.Context()); err != nil || left != 0 {
		t.Errorf("after the reader %d bytes are left: %v", left, err)
	}
	if size := wal(); size > 8<<20 {
		t.Errorf("the log still has %d bytes", size)
	}
	var patience int
	if err := db.Write.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&patience); err != nil || patience != 5000 {
		t.Errorf("the writing connection waits %d ms afterwards: %v", patience, err)
	}
}
