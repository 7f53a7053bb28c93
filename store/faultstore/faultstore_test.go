package faultstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/daybook-run/daybook/store/faultstore"
)

func table(t *testing.T, f *faultstore.Faults) *sql.DB {
	t.Helper()
	db, err := faultstore.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "x.db"), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE x (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	return db
}

func count(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM x").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// insert writes two rows in one transaction.
func insert(ctx context.Context, db *sql.DB) error {
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for i := range 2 {
		if _, err := t.ExecContext(ctx, "INSERT INTO x VALUES (?)", i); err != nil {
			return errors.Join(err, t.Rollback())
		}
	}
	return t.Commit()
}

func TestTheCallOfARuleFailsAndItsTransactionIsGone(t *testing.T) {
	f := faultstore.New(1)
	db := table(t, f)
	own := errors.New("the disk is on fire")
	for _, c := range []struct {
		rule    faultstore.Rule
		written int
	}{
		{faultstore.Rule{Op: faultstore.Begin, Nth: 1}, 0},
		{faultstore.Rule{Op: faultstore.Begin, Nth: 1, After: true}, 0},
		{faultstore.Rule{Op: faultstore.Exec, Nth: 1}, 0},
		{faultstore.Rule{Op: faultstore.Exec, Nth: 2}, 0},
		{faultstore.Rule{Op: faultstore.Exec, Nth: 2, After: true}, 0},
		{faultstore.Rule{Nth: 3, Err: own}, 0},
		{faultstore.Rule{Contains: "INSERT", Nth: 2}, 0},
		{faultstore.Rule{Op: faultstore.Commit, Nth: 1}, 0},
		{faultstore.Rule{Op: faultstore.Commit, Nth: 1, After: true}, 2},
		{faultstore.Rule{Contains: "DELETE"}, -1},
	} {
		before := count(t, db)
		f.Reset()
		f.Add(c.rule)
		err := insert(t.Context(), db)
		if c.written < 0 {
			if err != nil || f.Failed() != 0 {
				t.Errorf("%+v: %v", c.rule, err)
			}
			continue
		}
		if !errors.Is(err, faultstore.ErrInjected) || f.Failed() != 1 {
			t.Errorf("%+v: %v, %d failed", c.rule, err, f.Failed())
		}
		if c.rule.Err != nil && !errors.Is(err, c.rule.Err) {
			t.Errorf("%+v: %v", c.rule, err)
		}
		if n := count(t, db) - before; n != c.written {
			t.Errorf("%+v: %d rows, want %d", c.rule, n, c.written)
		}
	}
}

func TestARuleIsUsedUpByTheCallItMeets(t *testing.T) {
	f := faultstore.New(1)
	db := table(t, f)
	f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 2})
	for i, fails := range []bool{false, true, false, false} {
		if err := insert(t.Context(), db); (err != nil) != fails {
			t.Errorf("commit %d: %v", i+1, err)
		}
	}
	f.Add(faultstore.Rule{Op: faultstore.Commit})
	for range 3 {
		if err := insert(t.Context(), db); err == nil {
			t.Error("a rule without a number lets one pass")
		}
	}
	f.Reset()
	if err := insert(t.Context(), db); err != nil {
		t.Error(err)
	}
}

func TestAHookDelaysACallUntilItLetsItPass(t *testing.T) {
	f := faultstore.New(1)
	db := table(t, f)
	arrived, goOn, done := make(chan faultstore.Call), make(chan struct{}), make(chan error)
	f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(ctx context.Context, c faultstore.Call) error {
		arrived <- c
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	go func() { done <- insert(t.Context(), db) }()
	if c := <-arrived; c.Op != faultstore.Commit {
		t.Errorf("call %+v", c)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := count(t, db); n != 2 {
		t.Errorf("%d rows", n)
	}
}

func TestAPartitionCutsEverythingOffUntilItEnds(t *testing.T) {
	f := faultstore.New(1)
	db := table(t, f)
	open, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.ExecContext(t.Context(), "INSERT INTO x VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	f.Partition(true)
	if err := open.Commit(); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("commit: %v", err)
	}
	if err := insert(t.Context(), db); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("a new transaction: %v", err)
	}
	if err := db.PingContext(t.Context()); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("ping: %v", err)
	}
	f.Partition(false)
	if n := count(t, db); n != 0 {
		t.Errorf("%d rows of a transaction that was cut off", n)
	}
}

func TestTheSameSeedFailsTheSameCalls(t *testing.T) {
	failures := func(seed uint64) (list []string) {
		f := faultstore.New(seed)
		db := table(t, f)
		f.Chance(0.2)
		for i := range 60 {
			if err := insert(t.Context(), db); err != nil {
				list = append(list, fmt.Sprint(i, " ", err))
			}
		}
		f.Chance(0)
		return append(list, fmt.Sprint(count(t, db), " rows"))
	}
	a, b, c := failures(7), failures(7), failures(8)
	if !slices.Equal(a, b) {
		t.Errorf("one seed, two stories:\n%v\n%v", a, b)
	}
	if len(a) < 10 || slices.Equal(a, c) {
		t.Errorf("seed 7: %d failures; the same as seed 8: %v", len(a), slices.Equal(a, c))
	}
}
