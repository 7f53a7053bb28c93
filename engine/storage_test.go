package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// trouble is a storage that takes no more, until it is over.
type trouble struct {
	name        string
	begin, over func(t *testing.T, db engine.DB)
	says        string
}

func does(statements ...string) func(*testing.T, engine.DB) {
	return func(t *testing.T, db engine.DB) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.Write.ExecContext(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
}

// others end the sessions of everybody else on a database of PostgreSQL, so that what was set for it counts.
const others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

var troubles = map[string][]trouble{
	"sqlite": {
		{"the disk is full", does("PRAGMA max_page_count = 1"), does("PRAGMA max_page_count = 1073741823"), "full"},
		{"it is read-only", does("PRAGMA query_only = 1"), does("PRAGMA query_only = 0"), "readonly"},
	},
	"postgres": {
		{"the disk is full", does(`CREATE FUNCTION full_disk() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$ LANGUAGE plpgsql`,
			"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON daybook_attempts FOR EACH ROW EXECUTE FUNCTION full_disk()",
			"CREATE TRIGGER full_disk BEFORE UPDATE ON daybook_steps FOR EACH ROW EXECUTE FUNCTION full_disk()"),
			does("DROP FUNCTION full_disk CASCADE"), "No space left"},
		{"it is read-only", func(t *testing.T, db engine.DB) {
			does("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$", others)(t, db)
		}, func(t *testing.T, db engine.DB) {
			does("SET default_transaction_read_only = off", "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$", others)(t, db)
		}, "read-only"},
	},
}

// The ledger's storage is full, or takes no writes, at the moment when work ends: a whole attempt, and an effect in the middle
// of one. The work is not done again and not reported done; its end is kept, is tried again, and is written when there is
// room. The log says what is wrong.
func TestStorageThatTakesNoMoreInTheMiddleOfACompletion(t *testing.T) {
	t.Parallel()
	for _, open := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		kind := open(t)
		for _, c := range troubles[kind.Name] {
			t.Run(kind.Name+": "+c.name, func(t *testing.T) { c.test(t, open(t)) })
		}
	}
}

func (c trouble) test(t *testing.T, db storetest.Database) {
	handles := db.Open(t)
	aside := handles
	if db.Name == "postgres" {
		aside = db.Open(t)
		aside.Write.SetMaxOpenConns(1)
	}
	var calls, effects atomic.Int64
	working, let := make(chan struct{}, 2), make(chan struct{})
	big := strings.Repeat("x", 50<<10) // there is no room for it
	whole := func(_ context.Context, r *daybook.Run) error {
		calls.Add(1)
		working <- struct{}{}
		<-let
		r.Return(big)
		return nil
	}
	inSteps := func(ctx context.Context, r *daybook.Run) error {
		calls.Add(1)
		_, err := daybook.Effect(ctx, r, "charge", daybook.EffectOf[string]{Do: func(context.Context, string) (string, error) {
			effects.Add(1)
			working <- struct{}{}
			<-let
			return big, nil
		}})
		return err
	}
	var log lines
	n := serve(t, handles, engine.Options{Log: slog.New(slog.NewTextHandler(&log, nil))},
		job("whole", daybook.Once, whole), job("steps", daybook.Once, inSteps, func(j *daybook.Job) { j.Steps = true }))
	keys := []daybook.Key{n.trigger("whole", "2026-03-02"), n.trigger("steps", "2026-03-02")}
	comes(t, "the work", working)
	comes(t, "the work", working)
	c.begin(t, aside)
	close(let)
	until(t, fmt.Sprintf("%q in the log", c.says), func() bool { return log.has(c.says) })
	for _, k := range keys {
		if r := run(t, n.Engine, k); r.State != daybook.Running {
			t.Errorf("%s is %s while nothing can be written", k, r.State)
		}
	}
	c.over(t, aside)
	for _, k := range keys {
		r := ends(t, n.Engine, k, daybook.Done)
		if tries := attempts(t, n.Engine, k); len(tries) != 1 || r.Losses != 0 {
			t.Errorf("%s: %d tries, %d losses", k, len(tries), r.Losses)
		}
	}
	if calls.Load() != 2 || effects.Load() != 1 {
		t.Errorf("called %d times, %d effects", calls.Load(), effects.Load())
	}
}
