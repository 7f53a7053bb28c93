package store_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-run/daybook/store/storetest"
)

// TestNoPlanOutlivesASmallTable: plans that a connection made while the ledger was small are not those by which a large one is
// worked on, though nobody has analyzed it since.
func TestNoPlanOutlivesASmallTable(t *testing.T) {
	db := storetest.Postgres(t).Open(t)
	db.Write.SetMaxOpenConns(1) // whose plans are looked at
	s, err := open(t, db)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 { // from the sixth time on a plan is kept
		fill(t, s, fmt.Sprintf("small%d", i), 3)
		if i == 1 {
			if _, err := db.Write.ExecContext(t.Context(), "ANALYZE"); err != nil {
				t.Fatal(err)
			}
		}
		drainAll(t, s, farAhead)
	}
	for i := range 4 {
		fill(t, s, fmt.Sprintf("large%d", i), 3000)
	}
	drained := drainAll(t, s, farAhead)
	if drained != 12_000 {
		t.Fatalf("drained %d", drained)
	}
	looked, old := 0, 0
	for name, faults := range keptPlans(t, db.Write) {
		switch {
		case strings.HasSuffix(name, "/*ll"+strings.Repeat("s", 5)+"*/"): // runs and live runs are many, nothing else is
			looked++
			faults = slices.DeleteFunc(faults, func(f string) bool {
				return !strings.Contains(f, "daybook_runs") && !strings.Contains(f, "daybook_live")
			})
			if len(faults) > 0 {
				t.Errorf("%s:\n%s", name, strings.Join(faults, "\n"))
			}
		case len(faults) > 0:
			old++
		}
	}
	if looked < 8 {
		t.Errorf("only %d statements were used on the large ledger", looked)
	}
	t.Logf("%d plans were looked at; of those for the small ledger, %d read a table whole", looked, old)
}

// keptPlans returns what is wrong with the plans that a connection keeps, by the text of their statements.
func keptPlans(t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows, err := c.QueryContext(t.Context(), "SELECT name, statement, array_to_string(parameter_types, ',') FROM pg_prepared_statements WHERE statement LIKE '%daybook_%'")
	if err != nil {
		t.Fatal(err)
	}
	type prepared struct{ name, text, types string }
	var list []prepared
	for rows.Next() {
		var p prepared
		if err := rows.Scan(&p.name, &p.text, &p.types); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ExecContext(t.Context(), "SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]string)
	for _, p := range list {
		if strings.HasPrefix(p.text, "SELECT name, statement") {
			continue
		}
		execute := `EXPLAIN (FORMAT JSON) EXECUTE "` + p.name + `"`
		if p.types != "" {
			execute += "(" + literals(strings.Split(p.types, ","), nil) + ")"
		}
		var plans []struct{ Plan *node }
		if err := json.Unmarshal([]byte(strings.Join(plan(t.Context(), t, c, execute, 1), "")), &plans); err != nil {
			t.Fatal(err)
		}
		found[p.text] = nil
		for _, n := range plans {
			found[p.text] = append(found[p.text], n.Plan.faults(nil)...)
		}
	}
	return found
}
