package main

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

const exportFile = `version: 1
timezone: Europe/Berlin
jobs:
  renew: {priority: P0, owner: "=cmd()", runbook: "https://wiki.example.com/renew", schedule: "0 2 * * *", window: day, effects: once, run: [sh, -c, "exit 0"], env: {TOKEN: "${TOKEN}"}}
  never: {owner: ops, schedule: ["daily 01:00", "daily 13:00"], run: [sh, -c, "exit 0"]}
`

// TestR51Inventory: export has each job with window, owner, priority, last good window and next window, in JSON and in CSV,
// and no value of a secret.
func TestR51Inventory(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), exportFile)
	d.env["TOKEN"] = "hunter2"
	d.must(0, "db", "migrate")
	d.must(0, "job", "trigger", "renew", "--date", "2026-03-27")
	d.serveUntil(`renew:2026-03-27 +✓ done`, "run", "list")

	r := d.must(0, "export", "jobs")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(lines) != 2 || strings.Contains(r.stdout, "hunter2") {
		t.Fatalf("%s", r.stdout)
	}
	var job map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &job); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"schema": "daybook/job.v1", "job": "renew", "priority": "P0", "owner": "=cmd()", "window": "day", "last_good": "renew:2026-03-27", "next_key": "renew:2026-03-29", "effects": "once"} {
		if job[name] != want {
			t.Errorf("%s: %v, want %s", name, job[name], want)
		}
	}

	r = d.must(0, "export", "jobs", "--csv")
	rows, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
	if err != nil || len(rows) != 3 || !slices.Equal(rows[0], jobColumns) {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	renew := rows[2]
	renew[9] = "" // when it ended
	if want := []string{"renew", "P0", "'=cmd()", "0 2 * * *", "Europe/Berlin", "day", "once", "done", "2026-03-27", "", "2026-03-29T01:00:00Z", "2026-03-29", "https://wiki.example.com/renew"}; !slices.Equal(renew, want) {
		t.Errorf("got  %q\nwant %q", renew, want)
	}
	if never := rows[1]; never[3] != "daily 01:00; daily 13:00" || never[7] != "never ran" || never[8] != "" || never[5] != "fire" {
		t.Errorf("%q", never)
	}
	d.must(2, "export", "jobs", "--csv", "--json")
}

// TestExportActivity: the whole record, oldest first, however much it is.
func TestExportActivity(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), exportFile)
	d.env["TOKEN"] = "x"
	d.must(0, "db", "migrate")
	d.must(0, "job", "trigger", "renew", "--date", "2026-03-27")
	d.must(0, "job", "pause", "never", "--reason", "first", "-y")
	d.set(time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC))
	d.must(0, "job", "resume", "never")
	d.must(0, "job", "pause", "never", "--reason", "second, \"quoted\"", "-y")
	rows, err := csv.NewReader(strings.NewReader(d.must(0, "export", "activity", "--csv").stdout)).ReadAll()
	if err != nil || !slices.Equal(rows[0], activityColumns) {
		t.Fatalf("%v %v", err, rows)
	}
	var acts []string
	for i, row := range rows[1:] {
		if i > 0 && row[0] < rows[i][0] {
			t.Errorf("%s comes after %s", row[0], rows[i][0])
		}
		acts = append(acts, row[2]+" "+row[3]+" "+row[7])
	}
	all := strings.Join(acts, "; ")
	if !strings.HasSuffix(all, `pause never first; resume never ; pause never second, "quoted"`) {
		t.Errorf("%s", all)
	}
	if got := strings.Count(d.must(0, "export", "activity", "--since", "1d").stdout, "\n"); got != 2 {
		t.Errorf("%d acts of the last day", got)
	}
}
