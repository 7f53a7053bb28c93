package daybooktest_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver is the program's own choice

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

// gateway is the payment service of the test, with a book of its own.
type gateway struct{ charged map[string]bool }

// register is how the program registers its jobs, in production and in tests.
func register(e *engine.Engine, pay *gateway) {
	e.Handle(daybook.Job{
		Name: "renew", Priority: daybook.P0, Owner: "ops", Effects: daybook.Once,
		Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Window: daybook.Day,
	}, func(ctx context.Context, r *daybook.Run) error {
		pay.charged[r.WireKey()] = true
		return nil
	}, engine.Probe(func(ctx context.Context, wireKey string) (any, daybook.Answer, error) {
		if pay.charged[wireKey] {
			return nil, daybook.Yes, nil
		}
		return nil, daybook.No, nil
	}))
}

// ledger is a SQLite file of the test's own.
func ledger(t *testing.T) (db engine.DB) {
	source := "file:" + filepath.Join(t.TempDir(), "shop.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate"
	for _, handle := range []**sql.DB{&db.Write, &db.Read} {
		opened, err := sql.Open("sqlite", source)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		*handle = opened
	}
	db.Write.SetMaxOpenConns(1)
	return db
}

// testRenewals would be TestRenewals in the tests of the program.
func testRenewals(t *testing.T) {
	pay := &gateway{charged: map[string]bool{}}
	e := daybooktest.New(t, ledger(t))
	register(e.Engine, pay)

	e.At(time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC))
	e.Advance(24 * time.Hour) // the night of the 25th goes by, and its renewals at 02:00
	if len(pay.charged) != 1 || !pay.charged["renew:2026-10-25"] {
		t.Errorf("charged: %v", pay.charged)
	}
	// The worker is lost before the charge and after it, and everybody asks three times.
	daybooktest.Drill(t, e, "renew", "2026-10-26", func() int { return len(pay.charged) })
}

// A test of a program's renewals: a night goes by, and then everything that can happen to the next one.
func Example() {
	var t *testing.T // of the test
	testRenewals(t)
}
