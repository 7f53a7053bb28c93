package store_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
)

func TestUnsafeHandlesOfPostgresAreRefused(t *testing.T) {
	address := pgtest.URL(t)
	for _, c := range []struct{ name, setting, says string }{
		{"commits that do not wait for the disk", "synchronous_commit=off", "synchronous_commit is off"},
		{"a server that may only be read", "default_transaction_read_only=on", "transaction_read_only is on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, err := sql.Open("pgx", address+"&"+c.setting)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			_, err = open(t, store.DB{Write: db})
			refused(t, err, daybook.CodeInvalid, c.says)
		})
	}
}

func TestAServerThatIsNotThereIsSaidSo(t *testing.T) {
	db, err := sql.Open("pgx", "postgres://nobody@127.0.0.1:1/none?sslmode=disable&connect_timeout=5")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	_, err = open(t, store.DB{Write: db})
	refused(t, err, daybook.CodeUnavailable, "refused")
}

// TestARestartOfTheServerIsOutlived: what was acknowledged is there after the server was torn down, and the same handles go
// on.
func TestARestartOfTheServerIsOutlived(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server of its own")
	}
	server := pgtest.Server(t)
	db, err := sql.Open("pgx", server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := open(t, store.DB{Write: db})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "report", 100)
	server.Stop(pgtest.Immediate)
	if _, err := s.Counts(t.Context()); daybook.CodeOf(err) != daybook.CodeUnavailable {
		t.Fatalf("while it is down: %v", err)
	}
	server.Start()
	var c daybook.Counts
	for ctx := t.Context(); ; { // a pool may hold dead connections, each of which fails once
		if c, err = s.Counts(ctx); err == nil {
			break
		}
		if daybook.CodeOf(err) != daybook.CodeUnavailable || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if c.Live[daybook.Scheduled] != 100 {
		t.Errorf("after the restart: %+v", c)
	}
	if n := drainAll(t, s, farAhead); n != 100 {
		t.Errorf("ended %d runs, want 100", n)
	}
}

// A round trip that was slow in one direction, as that of a machine under load is, says nothing of the clock: the fastest counts.
func TestASlowRoundTripIsNoOffset(t *testing.T) {
	db, err := sql.Open("pgx", pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := open(t, store.DB{Write: db})
	if err != nil {
		t.Fatal(err)
	}
	for _, slow := range []int{1, 2} { // the question, or the answer, of the first round trip takes twenty seconds
		looks := 0
		offset, err := s.ClockOffset(t.Context(), func() time.Time {
			looks++
			at := time.Now()
			switch {
			case slow == 1 && looks == 1:
				return at.Add(-20 * time.Second)
			case slow == 2 && looks == 2:
				return at.Add(20 * time.Second)
			}
			return at
		})
		if err != nil || offset.Abs() > 2*time.Second || looks < 4 {
			t.Errorf("off by %s after %d looks at the clock: %v", offset, looks, err)
		}
	}
}
