package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// history is a ledger that has been used for a while: 20,000 runs of a thousand jobs that ended, with what they leave
// behind, 30,000 that are live, and 19,000 jobs without a run. One text for both databases.
var history = []string{
	`INSERT INTO daybook_jobs (name, revision, since_us, definition, cursor_us, first_seen_us)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999) SELECT 'job' || i, 1, 0, '{}', 0, 0 FROM n`,
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
	`INSERT INTO daybook_alerts (id, kind, key, job, priority, last_error, at_us, closed_us, finished)
SELECT 'id' || label, 'dead_letter', key, job, 'P1', 'e', created_us, CASE WHEN start_us % 100000 = 0 THEN 0 ELSE 1 END, CASE WHEN start_us % 100000 = 0 THEN 0 ELSE 1 END FROM daybook_runs WHERE state = 'dead'`,
	`INSERT INTO daybook_spans (job, from_us, to_us, from_label, to_label, windows, reason, revision, decided_us)
SELECT job, start_us, end_us, label, label, 2, 'missed', 1, 1 FROM daybook_runs WHERE state = 'done'`,
	`INSERT INTO daybook_activity (id, at_us, actor, action, key, job) SELECT 'id' || label, created_us, 'ops', 'trigger', key, job FROM daybook_runs`,
	`INSERT INTO daybook_revisions (job, revision, since_us, definition) SELECT name, 1, 0, '{}' FROM daybook_jobs`,
	`INSERT INTO daybook_fans (key, job, subjects, look_us) SELECT key, job, 1, CASE WHEN start_us % 100000 = 0 THEN 1 ELSE 0 END FROM daybook_runs WHERE state = 'done'`,
	`INSERT INTO daybook_ends (parent, id, key, at_us) SELECT 'job' || (start_us / 1000 % 7) || ':w1', 'id' || label, key, 1 FROM daybook_runs WHERE state = 'done'`,
	`INSERT INTO daybook_sends (key, alert, channel, purpose, lang, subject, body, short, state, due_us, made_us, ended_us)
SELECT 'al_' || label, 'id' || label, 'phone', 'new', 'en', 's', '', 's', CASE WHEN start_us % 100000 = 0 THEN 'due' ELSE 'sent' END, 1, 1, 1 FROM daybook_runs WHERE state = 'done'`,
	`INSERT INTO daybook_calls (caller, key, fingerprint, until_us, at_us) SELECT 'tk', key, 'f', 1, created_us FROM daybook_runs WHERE state = 'done'`,
	`INSERT INTO daybook_drills (id, key, job, actor, at_us, ended_us, doors, times, knocks, runs_before, runs_after, attempts_before, attempts_after,
  effects_before, effects_after, counted, count_before, count_after, seen)
SELECT 'id' || label, key, job, 'ops', created_us, 1, '', 1, '', 1, 1, 1, 1, 1, 1, 1, '', '', '' FROM daybook_runs WHERE state = 'dead'`,
	`ANALYZE`,
}

// given are arguments of statements whose plan may depend on them. Others get a key, keys as many as come without pinned plans, or a
// hundred.
var given = map[string][]any{
	"selectDue":           {int64(1 << 40), "live", "", "P1", int64(100), int64(0)},
	"selectOneDue":        {int64(1 << 40), "job1:w20001", "P1"},
	"selectFrozenDue":     {int64(1 << 40), "live", "", "P1", int64(100)},
	"selectOneFrozen":     {int64(1 << 40), "job1:w20001", "P1"},
	"selectFrozenEnds":    {int64(1), ""},
	"thawPart":            {int64(1), "", "P1", int64(1 << 40)},
	"selectNextDue":       {""},
	"selectExpired":       {int64(21000), int64(1 << 50), int64(100)},
	"selectActivityAfter": {int64(1000), "id1", int64(100)},
	"selectLiveOfJobs":    {[]string{"job1"}},
	"selectSpanAt":        {"job1", int64(5001)},
	"selectSpans":         {"job1", int64(19000000)},
	"selectSpansOf":       {[]string{"job1"}, int64(19000000)},
	"selectNewest":        {"job1", "", int64(20)},
	"selectHighestN":      {"job1:w1~", "job1:w1~~"},
	"selectOld":           {"job1", int64(1 << 40), "", int64(100)},
	"selectNth":           {"job1", int64(10)},
	"holdPaused":          {"job1"},
	"selectFanout":        {"job1:w20001", int64(1), int64(64), "job1:w20001/s"},
	"letGo":               {"job1:w20001", int64(1), int64(64), "job1:w20001/s"},
	"letGoParked":         {"job1:w20001", int64(1), int64(64)},
	"selectEnded":         {""},
	"selectFailedSince":   {"job1:w20001", int64(1), int64(100)},
	"selectCancelledWith": {"job1:w20001", int64(1), int64(100)},
	"selectReplayable":    {"job1:w20001", "", int64(100)},
	"tallyRuns":           {"job1:w1001", "job1:w1001/", "job1:w10010"},
	"tallyLive":           {"job1:w1001", "job1:w1001/", "job1:w10010"},
	"tallySteps":          {"job1:w1001", "job1:w1001/", "job1:w10010"},
	"firstDone":           {"job1"},
	"openSharedAlert":     {"id", "dead_letter", "job1:w1001", int64(1)},
	"endDrillAlerts":      {"job1", int64(1), int64(1)},
	"wakeSerial":          {"object"},
	"selectLive":          {"scheduled", "", "", "", "zz", "", "", int64(100)},
	"selectNewestLive":    {"scheduled", "", "", "", "zz", "", "", int64(100)},
}

// small are the tables that stay small, whatever is done with a ledger: a lock is held by what is at work or unknown.
var small = []string{"ledger", "holds", "freezes", "lapses", "nodes", "mutes", "tokens", "accepted", "migrations", "locks"}

// partly are indexes that hold only what is due, at work, held or open: they may be read from end to end.
var partly = []string{"live_due", "live_lease", "live_rests", "live_restored", "live_frozen", "letters_open", "alerts_open", "alerts_unfinished",
	"alerts_unnumbered", "sends_due", "sends_texts", "fans_look"}

// whole are statements that read a table whole that grows, or what they were given once more for each row, and why they may.
var whole = map[string]string{
	"activityColumns":    "is a part of others",
	"selectSubjectLocks": "a person asks which keys a run's subjects wait for",
	"jobColumns":         "is a part of others",
	"alertColumns":       "is a part of others",
	"letterColumns":      "is a part of others",
	"selectDrills":       "is a part of others",
	"lockColumns":        "is a part of others",
	"selectLocks":        "a person asks who has which key, and how many wait",
	"selectLock":         "a person asks who has a key, and how many wait",
	"anyForgotten":       "goes through what waits for serial keys, each 10 s",
	"selectParkedFree":   "goes through what waits for serial keys, when anyForgotten found some that wait for nothing",
	"closeStuck":         "of alerts that a key is stuck few are open",
	"countLive":          "a person asks how many there are",
	"oldestDue":          "a person asks what is due since when",
	"selectLive":         "a person lists what is live",
	"selectNewestLive":   "a person lists what is live",
	"selectComing":       "a person asks what a freeze would meet",
	"countUnsettled":     "the freeze of a ledger that forgot ends",
	"holdRestored":       "a ledger forgot",
	"releaseClock":       "a person says that the clock is right",
	"selectClaimed":      "the answer to a claim was lost",
	"selectClaimedSends": "the answer to a claim of sends was lost",
	"selectAllAlertRows": "a person asks for all, up to a limit",
	"selectAllAlerts":    "a person asks for all, up to a limit",
	"selectAllLetters":   "a person asks for all, up to a limit",
	"selectActivity":     "a person asks for one actor's",
	"drillsOfAll":        "a person asks for all, up to a limit",
	"lastDrills":         "goes through the drills, one each quarter, once an hour",
	"selectAnyLook":      "reads the first row of an index, which SQLite calls a scan",
	"selectJobs":         "a start, or a person, asks for all jobs",
	"selectJobNames":     "the pruner goes from job to job, each minute",
	"selectLastGood":     "silence is a matter of each job, and looked for each minute",
	"selectSizeSQLite":   "a person asks how many there are",
	"selectSizePostgres": "a person asks how many there are, and there is no estimate yet",
}

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
	texts := statements(t)
	args := []any{"scheduled", "", "", "", "\x7f", "", "", int64(100)}
	t.Run("sqlite", func(t *testing.T) {
		db := used(t, storetest.SQLite(t))
		for _, name := range []string{"selectLive", "selectNewestLive"} {
			lines := plan(t.Context(), t, db, "EXPLAIN QUERY PLAN "+store.Rewritten("sqlite", texts[name]), 4, args...)
			all := strings.Join(lines, "\n")
			if !strings.Contains(all, "SEARCH r USING INDEX sqlite_autoindex_daybook_runs_1 (key=?)") {
				t.Errorf("%s:\n%s", name, all)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		db := used(t, storetest.Postgres(t))
		for _, name := range []string{"selectLive", "selectNewestLive"} {
			lines := plan(t.Context(), t, db, "EXPLAIN "+store.Rewritten("postgres", texts[name]), 1, args...)
			if all := strings.Join(lines, "\n"); strings.Contains(all, "Seq Scan on daybook_runs") {
				t.Errorf("%s:\n%s", name, all)
			}
		}
	})
}

// TestEachStatementLooksUp: no statement reads a table whole that grows, nor goes through what it was given once more for each row;
// but for those that are known to, each for a reason.
func TestEachStatementLooksUp(t *testing.T) {
	texts := statements(t)
	for _, name := range slices.Concat(slices.Collect(maps.Keys(whole)), slices.Collect(maps.Keys(given))) {
		if texts[name] == "" {
			t.Errorf("there is no statement %s", name)
		}
	}
	reads := make(map[string]bool)
	for _, d := range []struct {
		name   string
		kind   func(testing.TB) storetest.Database
		faults func(t *testing.T, db *sql.DB, name, text string) []string
	}{{"sqlite", storetest.SQLite, faultsOfSQLite}, {"postgres", storetest.Postgres, faultsOfPostgres}} {
		t.Run(d.name, func(t *testing.T) {
			db := used(t, d.kind(t))
			for _, name := range slices.Sorted(maps.Keys(texts)) {
				faults := d.faults(t, db, name, texts[name])
				if len(faults) == 0 {
					continue
				}
				if reads[name] = true; whole[name] == "" {
					t.Errorf("%s:\n%s", name, strings.Join(faults, "\n"))
				}
			}
		})
	}
	for name := range whole {
		if !reads[name] {
			t.Errorf("%s reads nothing whole any more", name)
		}
	}
}

// What only the one database understands is not asked of the other.
var (
	onlyPostgres = regexp.MustCompile(`\bpg_|\bFOR UPDATE\b|current_setting|set_config|AS \(UPDATE\b`)
	onlySQLite   = regexp.MustCompile(`\bsqlite_|\bpragma_|\bjson_each\(`)
	table        = regexp.MustCompile(`\bdaybook_(\w+)(?: (?:AS )?([a-z])\b)?`)
	scans        = regexp.MustCompile(`^SCAN (\w+)(?: USING (?:COVERING )?INDEX (?:daybook_)?(\w+))?`)
	argument     = regexp.MustCompile(`\?(\d+)`)
)

func isSmall(table string) bool { return slices.Contains(small, strings.TrimPrefix(table, "daybook_")) }

// faultsOfSQLite returns the lines of a plan that read a table, or an index, from end to end.
func faultsOfSQLite(t *testing.T, db *sql.DB, name, text string) (faults []string) {
	if onlyPostgres.MatchString(text) {
		return nil
	}
	tables := make(map[string]string) // by the name that the plan has for them
	for _, m := range table.FindAllStringSubmatch(text, -1) {
		tables["daybook_"+m[1]] = m[1]
		if m[2] != "" && !isSmall(m[1]) {
			tables[m[2]] = m[1]
		}
	}
	rewritten := store.Rewritten("sqlite", text)
	args := make([]any, numbers(rewritten))
	for i := range args {
		if strings.Contains(rewritten, fmt.Sprintf("json_each(?%d)", i+1)) {
			args[i] = `["` + strings.Join(keys(100), `","`) + `"]`
		}
	}
	lines := plan(t.Context(), t, db, "EXPLAIN QUERY PLAN "+rewritten, 4, args...)
	for _, line := range lines {
		m := scans.FindStringSubmatch(line)
		if m == nil || tables[m[1]] == "" || isSmall(tables[m[1]]) || slices.Contains(partly, m[2]) {
			continue
		}
		faults = append(faults, line)
	}
	if len(faults) > 0 {
		faults = append(faults, "of", "\t"+strings.Join(lines, "\n\t"))
	}
	return faults
}

// numbers is how many arguments a statement of SQLite takes.
func numbers(rewritten string) (most int) {
	for _, m := range argument.FindAllStringSubmatch(rewritten, -1) {
		var n int
		_, _ = fmt.Sscan(m[1], &n)
		most = max(most, n)
	}
	return most
}

// node is a node of a plan of PostgreSQL.
type node struct {
	Type       string  `json:"Node Type"`
	Relation   string  `json:"Relation Name"`
	Index      string  `json:"Index Name"`
	IndexCond  string  `json:"Index Cond"`
	Filter     string  `json:"Filter"`
	JoinFilter string  `json:"Join Filter"`
	Subplan    string  `json:"Subplan Name"`
	Parent     string  `json:"Parent Relationship"`
	Plans      []*node `json:"Plans"`
}

// faultsOfPostgres looks at the plans of a statement for many rows, and for one.
func faultsOfPostgres(t *testing.T, db *sql.DB, name, text string) (faults []string) {
	if onlySQLite.MatchString(text) {
		return nil
	}
	faults = faultsOfPrepared(t, db, name, store.Rewritten("postgres", text))
	if one := store.OneRowOf(text); one != text {
		ofOne := faultsOfPrepared(t, db, name, store.Rewritten("postgres", one))
		if slices.ContainsFunc(ofOne, func(f string) bool { return strings.Contains(f, " whole; ") }) { // one row may be gone through again
			faults = append(faults, ofOne...)
		}
	}
	return faults
}

// faultsOfPrepared looks at the plan that a prepared statement keeps, and at the one for arguments as they come.
func faultsOfPrepared(t *testing.T, db *sql.DB, name, rewritten string) (faults []string) {
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "PREPARE looked AS "+rewritten); err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	defer c.ExecContext(t.Context(), "DEALLOCATE looked")
	var types string
	if err := c.QueryRowContext(t.Context(), "SELECT array_to_string(parameter_types, ',') FROM pg_prepared_statements WHERE name = 'looked'").Scan(&types); err != nil {
		t.Fatal(err)
	}
	execute := "EXPLAIN (FORMAT JSON) EXECUTE looked"
	if types != "" {
		execute += "(" + literals(strings.Split(types, ","), given[name]) + ")"
	}
	for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
		if _, err := c.ExecContext(t.Context(), "SET plan_cache_mode = "+mode); err != nil {
			t.Fatal(err)
		}
		line := strings.Join(plan(t.Context(), t, c, execute, 1), "")
		var plans []struct{ Plan *node }
		if err := json.Unmarshal([]byte(line), &plans); err != nil {
			t.Fatalf("%s: %v: %s", name, err, line)
		}
		var found []string
		for _, p := range plans {
			found = append(found, p.Plan.faults(nil)...)
		}
		if len(found) > 0 {
			faults = append(faults, mode+":")
			faults = append(faults, found...)
		}
	}
	return faults
}

// literals are arguments by their types.
func literals(types []string, given []any) string {
	var list []string
	for i, kind := range types {
		var a any
		if i < len(given) {
			a = given[i]
		}
		switch {
		case kind == "text[]" && a != nil:
			list = append(list, "ARRAY['"+strings.Join(a.([]string), "','")+"']")
		case kind == "text[]":
			list = append(list, "'{"+strings.Join(keys(40), ",")+"}'")
		case kind == "bigint[]":
			list = append(list, "array_fill(1::bigint, ARRAY[40])")
		case kind == "text" && a != nil:
			list = append(list, "'"+a.(string)+"'")
		case kind == "text":
			list = append(list, "'job1:w20001'")
		case a != nil:
			list = append(list, fmt.Sprint(a))
		default:
			list = append(list, "100")
		}
	}
	return strings.Join(list, ", ")
}

// keys are those of runs that are live.
func keys(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("job%d:w%d", i, 20000+i)
	}
	return list
}

// faults returns what a plan reads whole, and what it goes through once more for each row.
func (n *node) faults(above *node) (faults []string) {
	of := n.Relation
	if of == "" {
		of = strings.Join(strings.SplitN(n.Index, "_", 3)[:min(2, strings.Count(n.Index, "_")+1)], "_")
	}
	limited := above != nil && above.Type == "Limit" && n.Filter == ""
	switch {
	case isSmall(of):
	case n.Type == "Seq Scan":
		faults = append(faults, "reads "+of+" whole; "+n.Filter)
	case n.Index != "" && n.IndexCond == "" && !limited && !slices.Contains(partly, strings.TrimPrefix(n.Index, "daybook_")):
		faults = append(faults, "reads "+n.Index+" whole; "+n.Filter)
	}
	if strings.Contains(n.Filter, "= ANY ($") {
		faults = append(faults, n.Type+" of "+of+" goes through a list for each row: "+n.Filter)
	}
	if n.Type == "Nested Loop" && len(n.Plans) == 2 {
		inner := n.Plans[1]
		for len(inner.Plans) == 1 && inner.Relation == "" {
			inner = inner.Plans[0]
		}
		if slices.Contains([]string{"CTE Scan", "Function Scan", "ProjectSet", "Result"}, inner.Type) && (n.JoinFilter != "" || inner.Filter != "") {
			faults = append(faults, "goes through the rows that were given for each row: "+n.JoinFilter+inner.Filter)
		}
	}
	for _, p := range n.Plans {
		faults = append(faults, p.faults(n)...)
	}
	return faults
}
