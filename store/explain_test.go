package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// history is a ledger that has been used for a while: 20,000 runs of a thousand jobs that ended, with what they leave
// behind, and 30,000 that are live. One text for both databases.
var history = []string{
	`INSERT INTO daybook_jobs (name, revision, since_us, definition, cursor_us, first_seen_us)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) SELECT 'job' || i, 1, 0, '{}', 0, 0 FROM n`,
	`INSERT INTO daybook_runs (key, job, label, date, start_us, end_us, cover_start_us, cover_end_us, priority, lane, effects, work, line, state, created_us, ended_us, pruned_us, fence)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49999)
SELECT 'job' || (i % 1000) || ':w' || i, 'job' || (i % 1000), 'w' || i, 'w' || i, i * 1000, i * 1000 + 1, i * 1000, i * 1000 + 1, 'P1', 'live', 'once', 'timed', '',
  CASE WHEN i >= 20000 THEN '' WHEN i % 10 = 0 THEN 'dead' ELSE 'done' END, i, CASE WHEN i >= 20000 THEN 0 ELSE i + 1 END, CASE WHEN i < 15000 THEN 1 ELSE 0 END, 1 FROM n`,
	`INSERT INTO daybook_live (key, job, state, due_us, priority, lane, line, start_us, lease_us, claim, fence)
WITH RECURSIVE n (i) AS (SELECT 20000 UNION ALL SELECT i + 1 FROM n WHERE i < 49999)
SELECT 'job' || (i % 1000) || ':w' || i, 'job' || (i % 1000), CASE WHEN i % 8 = 0 THEN 'running' ELSE 'scheduled' END, i, CASE WHEN i % 5 = 0 THEN 'P0' ELSE 'P1' END, 'live',
  CASE WHEN i % 4 = 1 THEN 'job' || (i % 1000) ELSE '' END, i * 1000, CASE WHEN i % 8 = 0 THEN i ELSE 0 END, 'c', 1 FROM n`,
	// ten thousand runs that wait for one serial key, and a thousand keys that are held
	`UPDATE daybook_live SET serial = 'object', hold = 'waiting for serial key' WHERE start_us >= 40000000 AND state = 'scheduled'`,
	`INSERT INTO daybook_locks (serial, key, since_us) SELECT 'object' || label, key, 1 FROM daybook_runs WHERE start_us >= 30000000 AND start_us < 31000000`,
	`INSERT INTO daybook_attempts (key, fence, number) SELECT key, 1, 1 FROM daybook_runs WHERE state <> ''`,
	`INSERT INTO daybook_outputs (key, fence, text) SELECT key, 1, 'x' FROM daybook_runs WHERE state <> ''`,
	`INSERT INTO daybook_steps (key, step, state) SELECT key, 'run', 'done' FROM daybook_runs`,
	`INSERT INTO daybook_triggers (key, id, job, source, outcome, fire, at_us) SELECT key, 'id' || label, job, 'schedule', 'started', label, created_us FROM daybook_runs`,
	`INSERT INTO daybook_letters (id, key, job, priority, kind, state, error, opened_us)
SELECT 'id' || label, key, job, 'P1', 'failed', CASE WHEN start_us % 100000 = 0 THEN 'open' ELSE 'dismissed' END, 'e', created_us FROM daybook_runs WHERE state = 'dead'`,
	`INSERT INTO daybook_alerts (id, kind, key, job, priority, last_error, at_us, closed_us)
SELECT 'id' || label, 'dead_letter', key, job, 'P1', 'e', created_us, CASE WHEN start_us % 100000 = 0 THEN 0 ELSE 1 END FROM daybook_runs WHERE state = 'dead'`,
	`INSERT INTO daybook_spans (job, from_us, to_us, from_label, to_label, windows, reason, revision, decided_us)
SELECT job, start_us, end_us, label, label, 2, 'missed', 1, 1 FROM daybook_runs WHERE state = 'done'`,
	`INSERT INTO daybook_activity (id, at_us, actor, action, key, job) SELECT 'id' || label, created_us, 'ops', 'trigger', key, job FROM daybook_runs`,
	`ANALYZE`,
}

var list = []string{"job1:w20001", "job2:w20002", "job3:w20003"}

// looked are the statements of the hot path, and those that walk history in steps, with arguments as they come.
var looked = []struct {
	name string
	args []any
}{
	{"selectDue", []any{int64(1 << 40), "live", "", "P1", int64(100)}},
	{"selectOneDue", []any{int64(1 << 40), "job1:w20001", "P1"}},
	{"selectFrozenDue", []any{int64(1 << 40), "live", "", "P1", int64(100)}},
	{"selectOneFrozen", []any{int64(1 << 40), "job1:w20001", "P1"}},
	{"putOff", []any{"t", "b", "b"}},
	{"selectLanding", []any{list}},
	{"selectFrozenEnds", []any{int64(1), ""}},
	{"thaw", []any{int64(1)}},
	{"thawPart", []any{int64(1), "", "P1", int64(1 << 40)}},
	{"countFrozen", []any{int64(1)}},
	{"selectFrozen", []any{int64(1), int64(100)}},
	{"claimRuns", []any{"c", "n", int64(1), int64(1 << 40), list}},
	{"selectLocksOf", []any{list}},
	{"holdLocksOf", []any{list}},
	{"insertLocks", []any{"t", "t", "b"}},
	{"parkSerial", []any{list}},
	{"deleteLocks", []any{list}},
	{"wakeSerial", []any{"object"}},
	{"selectWaited", []any{"t"}},
	{"selectNextDue", []any{""}},
	{"selectExpired", []any{int64(21000), int64(1 << 50), int64(100)}},
	{"markRuns", []any{"t", "b", "t", "b", "b", "b", "b", "b"}},
	{"markRun", []any{"job1:w20001", int64(1), "c", int64(0), int64(0), int64(1), int64(1), int64(1)}},
	{"renewLeases", []any{"t", "b", "t", "b"}},
	{"selectHolding", []any{list}},
	{"moveLive", []any{"t", "t", "b", "t", "t", "b", "b", "t", "t", "b", "b", "b", "b", "b", "t", "t", "b", "b"}},
	{"takeLive", []any{"t", "t", "b", "t", "t", "b", "b", "t", "b"}},
	{"endRuns", []any{"t", "t", "t", "b", "t", "t", "b", "b", "b", "b", "b", "t", "t", "t", "t", "b", "b", "t"}},
	{"denyStep", []any{"job1:w20001", int64(1), "c", int64(0), "why"}},
	{"selectRun", []any{"job1:w1001"}},
	{"selectAsked", []any{"t", "t", "t", "b", "b"}},
	{"selectFree", []any{list}},
	{"selectJob", []any{"job1"}},
	{"selectActivityAfter", []any{int64(1000), "id1", int64(100)}},
	{"selectRunsIn", []any{list}},
	{"selectStepsIn", []any{list}},
	{"selectLetterOf", []any{"job1:w1001"}},
	{"selectStandings", []any{list}},
	{"selectKeysIn", []any{list}},
	{"selectLiveOfJobs", []any{[]string{"job1"}}},
	{"countTriggers", []any{"t", "b"}},
	{"countTrigger", []any{"job1:w1001", int64(0)}},
	{"refuseLetter", []any{"job1:w1001"}},
	{"closeAlerts", []any{"job1:w1001", int64(1)}},
	{"selectSpanAt", []any{"job1", int64(5001)}},
	{"selectSpans", []any{"job1", int64(19000000)}},
	{"selectSpansOf", []any{[]string{"job1"}, int64(19000000)}},
	{"selectNewest", []any{"job1", "", int64(20)}},
	{"selectTroubled", []any{"job1:w1001", int64(51)}},
	{"selectUndone", []any{"job1:w1001", int64(51)}},
	{"selectLastGood", nil},
	{"selectHighestN", []any{"job1:w1~", "job1:w1~~"}},
	{"selectOld", []any{"job1", int64(1 << 40), "", int64(100)}},
	{"selectNth", []any{"job1", int64(10)}},
	{"pruneAttempts", []any{list}},
	{"pruneOutputs", []any{list}},
	{"pruneSteps", []any{list}},
	{"pruneTriggers", []any{list}},
	{"pruneRuns", []any{list, int64(1)}},
	{"selectSpent", []any{list, int64(0)}},
	{"pruneTexts", []any{list}},
	{"holdPaused", []any{"job1"}},
	{"holdKeys", []any{list}},
	{"selectAttempts", []any{"job1:w1001"}},
	{"selectTriggers", []any{"job1:w1001"}},
	{"selectOpenLetters", []any{int64(100)}},
	{"selectOpenAlerts", []any{int64(100)}},
	{"selectFanout", []any{"job1:w20001", int64(1), int64(64), "job1:w20001/s"}},
	{"letGo", []any{"job1:w20001", int64(1), int64(64), "job1:w20001/s"}},
	{"selectAnyLook", []any{int64(1)}},
	{"letGoParked", []any{"job1:w20001", int64(1), int64(64)}},
	{"park", []any{"job1:w20001", "job1:w20001/s"}},
	{"letGoHolder", []any{"job1:w20001", "job1:w20001/s"}},
	{"selectDropped", []any{"job1:w20001", int64(500)}},
	{"askUntriedToEnd", []any{list, "ops"}},
	{"letGoDropped", []any{list}},
	{"unpark", []any{"job1:w20001"}},
	{"insertHeld", []any{"t", "t", "t", "b"}},
	{"selectEnds", []any{"job1:w20001", int64(100)}},
	{"deleteEnds", []any{"job1:w20001", list}},
	{"selectEnded", []any{""}},
	{"selectLooks", []any{int64(1), int64(100)}},
	{"selectSubjectLocks", []any{int64(20), "job1:w20001"}},
	{"selectAhead", []any{"job1:w20001"}},
	{"selectUnstarted", []any{"job1:w20001", int64(100), int64(1)}},
	{"selectFailedSince", []any{"job1:w20001", int64(1), int64(100)}},
	{"selectCancelledWith", []any{"job1:w20001", int64(1), int64(100)}},
	{"selectReplayable", []any{"job1:w20001", "", int64(100)}},
	{"countChildren", []any{"job1:w20001"}},
	{"countLiveChildren", []any{"job1:w20001"}},
	{"countChildLetters", []any{"job1:w20001"}},
	{"listAgain", []any{list, int64(1), "job1:w20001"}},
	{"setRests", []any{"job1:w20001", int64(1)}},
	{"selectResting", nil},
	{"tallyRuns", []any{"job1:w1001", "job1:w1001/", "job1:w10010"}},
	{"tallyLive", []any{"job1:w1001", "job1:w1001/", "job1:w10010"}},
	{"tallySteps", []any{"job1:w1001", "job1:w1001/", "job1:w10010"}},
	{"firstDone", []any{"job1"}},
	{"selectMovable", []any{list}},
	{"openSharedAlert", []any{"id", "dead_letter", "job1:w1001", int64(1)}},
	{"releaseRestored", nil},
	{"endDrillAlerts", []any{"job1", int64(1), int64(1)}},
}

const tablesThatGrow = `daybook_(?:runs|live|attempts|outputs|steps|triggers|letters|alerts|spans|locks)`

// whole matches the line of a plan that reads a table, or an index, from end to end.
var (
	wholeInSQLite   = regexp.MustCompile(`^SCAN (` + tablesThatGrow + `|[rlodgf])( |$)`)
	wholeInPostgres = regexp.MustCompile(`Seq Scan on ` + tablesThatGrow + `\b`)
)

// partly are indexes that hold only what is due, running or open: they may be read from end to end.
var partly = regexp.MustCompile(`USING (COVERING )?INDEX daybook_(live_due|live_lease|live_rests|live_restored|letters_open|alerts_open)`)

func used(t *testing.T, d storetest.Database) *sql.DB {
	t.Helper()
	db := d.Open(t)
	if _, err := open(t, db); err != nil {
		t.Fatal(err)
	}
	for _, statement := range history {
		if _, err := db.Write.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%v: %s", err, statement)
		}
	}
	return db.Write
}

func plan(ctx context.Context, t *testing.T, q interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, text string, columns int, args ...any) []string {
	t.Helper()
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		into, line := make([]any, columns), ""
		for i := range into {
			into[i] = new(any)
		}
		into[columns-1] = &line
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestWhatIsLiveIsListedFromTheSmallTable: the ledger of keys is looked into key by key only.
func TestWhatIsLiveIsListedFromTheSmallTable(t *testing.T) {
	args := []any{"scheduled", "", "", "", "\x7f", "", "", int64(100)}
	t.Run("sqlite", func(t *testing.T) {
		db := used(t, storetest.SQLite(t))
		for _, name := range []string{"selectLive", "selectNewestLive"} {
			lines := plan(t.Context(), t, db, "EXPLAIN QUERY PLAN "+store.Rewritten("sqlite", store.Statements[name]), 4, args...)
			all := strings.Join(lines, "\n")
			if !strings.Contains(all, "SEARCH r USING INDEX sqlite_autoindex_daybook_runs_1 (key=?)") {
				t.Errorf("%s:\n%s", name, all)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		db := used(t, storetest.Postgres(t))
		for _, name := range []string{"selectLive", "selectNewestLive"} {
			lines := plan(t.Context(), t, db, "EXPLAIN "+store.Rewritten("postgres", store.Statements[name]), 1, args...)
			if all := strings.Join(lines, "\n"); strings.Contains(all, "Seq Scan on daybook_runs") {
				t.Errorf("%s:\n%s", name, all)
			}
		}
	})
}

func TestNoStatementOfTheHotPathReadsATableWhole(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		db := used(t, storetest.SQLite(t))
		for _, l := range looked {
			args := make([]any, len(l.args))
			for i, a := range l.args {
				if args[i] = a; a != nil {
					if _, ok := a.([]string); ok {
						args[i] = `["job1:w20001","job2:w20002"]`
					}
				}
			}
			lines := plan(t.Context(), t, db, "EXPLAIN QUERY PLAN "+store.Rewritten("sqlite", store.Statements[l.name]), 4, args...)
			for _, line := range lines {
				if wholeInSQLite.MatchString(line) && !partly.MatchString(line) {
					t.Errorf("%s: %s\n%s", l.name, line, strings.Join(lines, "\n"))
				}
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		db := used(t, storetest.Postgres(t))
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			if _, err := c.ExecContext(t.Context(), "SET plan_cache_mode = "+mode); err != nil {
				t.Fatal(err)
			}
			for i, l := range looked {
				name := fmt.Sprintf("p%d", i)
				if mode == "force_generic_plan" {
					if _, err := c.ExecContext(t.Context(), "PREPARE "+name+" AS "+store.Rewritten("postgres", store.Statements[l.name])); err != nil {
						t.Fatalf("%s: %v", l.name, err)
					}
				}
				var literals []string
				for _, a := range l.args {
					switch a := a.(type) {
					case int64:
						literals = append(literals, fmt.Sprint(a))
					case []string:
						literals = append(literals, "ARRAY['"+strings.Join(a, "','")+"']")
					case string:
						switch {
						case strings.Contains(store.Statements[l.name], "/*rows") && a == "b":
							literals = append(literals, "array_fill(1::bigint, ARRAY[100])")
						case strings.Contains(store.Statements[l.name], "/*rows") && a == "t":
							literals = append(literals, "array_fill('job1:w20001'::text, ARRAY[100])")
						default:
							literals = append(literals, "'"+a+"'")
						}
					}
				}
				execute := "EXPLAIN EXECUTE " + name
				if len(literals) > 0 {
					execute += "(" + strings.Join(literals, ", ") + ")"
				}
				lines := plan(t.Context(), t, c, execute, 1)
				for _, line := range lines {
					if wholeInPostgres.MatchString(line) {
						t.Errorf("%s, %s: %s\n%s", l.name, mode, strings.TrimSpace(line), strings.Join(lines, "\n"))
					}
				}
			}
		}
	})
}
