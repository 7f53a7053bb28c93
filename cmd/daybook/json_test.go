package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

const jsonFile = `version: 1
timezone: UTC
defaults: {owner: ops, retry: {backoff: []}}
channels: {log: {type: file, path: alerts.log}}
alerts: {P1: {to: [log]}}
jobs:
  good: {schedule: daily 02:00, run: [sh, -c, "echo 好; exit 0"]}
  bad: {schedule: daily 02:00, run: [sh, -c, "exit 65"]}
`

// TestAnswersInJSON: each command that shows or does something answers in objects that name their schema, a list in one
// object a line, and says nothing else.
func TestAnswersInJSON(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), jsonFile)
	d.must(0, "db", "migrate")
	d.must(0, "job", "trigger", "good", "--date", "2026-03-26")
	d.must(0, "job", "trigger", "good", "--date", "2026-03-27")
	d.must(0, "job", "trigger", "bad", "--date", "2026-03-27")
	d.serveUntil(`(?s)bad:2026-03-27 +✕ dead.*good:2026-03-26 +✓ done.*good:2026-03-27 +✓ done`, "run", "list")
	schema := regexp.MustCompile(`^daybook/[a-z]+(-[a-z]+)*\.v1$`)
	for _, c := range []struct {
		line  string
		code  int
		lines int // at least; 1: exactly
	}{
		{"status", 6, 1}, {"check", 0, 1}, {"version", 0, 1}, {"doctor", 3, 2}, {"init other.yaml -n", 0, 0},
		{"job list", 0, 2}, {"job show good", 0, 1}, {"job next good -n 3", 0, 3}, {"job trigger good --date 2026-03-27", 0, 1},
		{"job trigger good --date 2026-03-25 -n", 0, 1}, {"job pause good --reason x -n", 0, 1}, {"job pause good --reason x -y", 0, 1}, {"job resume good", 0, 1},
		{"run list", 0, 3}, {"run list --job good --state done", 0, 2}, {"run show good:2026-03-27", 0, 1}, {"run logs good:2026-03-27", 0, 1}, {"run logs good:2026-03-27 -f", 0, 2},
		{"run watch good:2026-03-27", 0, 1}, {"key show good:2026-03-27", 0, 1}, {"key show good:2026-03-01", 5, 1}, {"key find good:", 0, 2},
		{"dead list", 0, 1}, {"dead list --group error", 0, 1}, {"dead show bad:2026-03-27", 0, 1}, {"dead replay bad:2026-03-27 -n", 0, 1},
		{"alert list", 0, 1}, {"alert test", 0, 1}, {"alert ack al_1", 0, 1}, {"alert mute bad --for 2h --reason x", 0, 1},
		{"activity list", 0, 3}, {"export jobs", 0, 2}, {"export activity", 0, 3}, {"export activity --since 1d", 0, 3}, {"freeze list", 0, 0}, {"db info", 0, 1}, {"db prune -n", 0, 1}, {"db migrate", 0, 1}, {"db backup copy.db -n", 0, 1}, {"man pages -n", 0, 1},
		{"dead dismiss bad:2026-03-27 --reason x", 0, 1}, {"run reopen bad:2026-03-27 --reason x", 0, 1},
	} {
		r := d.must(c.code, append(strings.Fields(c.line), "--json")...)
		n := 0
		for line := range strings.Lines(r.stdout) {
			if c.lines == 0 {
				break
			}
			n++
			var object map[string]any
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Errorf("%s: %v: %s", c.line, err, line)
				continue
			}
			if s, _ := object["schema"].(string); !schema.MatchString(s) {
				t.Errorf("%s: schema %q", c.line, s)
			}
		}
		if n < c.lines || c.lines == 1 && n != 1 {
			t.Errorf("%s: %d lines, want %d", c.line, n, c.lines)
		}
		if strings.TrimSpace(r.stderr) != "" {
			t.Errorf("%s: talks: %s", c.line, r.stderr)
		}
	}
}

// TestTerminals: a pipe gets no colours, a terminal does unless it is told otherwise, and a dumb one gets plain ASCII, in
// help and in errors too. Columns are as wide as their signs are shown.
func TestTerminals(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), strings.Replace(jsonFile, "owner: ops", "owner: 值班的人", 1))
	d.must(0, "db", "migrate")
	d.must(0, "job", "trigger", "good", "--date", "2026-03-26")
	d.must(0, "job", "trigger", "bad", "--date", "2026-03-26")
	d.serveUntil(`(?s)bad:2026-03-26 +✕ dead.*good:2026-03-26 +✓ done`, "run", "list")
	lines := [][]string{{"status"}, {"check"}, {"job", "list"}, {"job", "show", "good"}, {"run", "list"}, {"run", "show", "bad:2026-03-26"}, {"key", "show", "bad:2026-03-26"},
		{"dead", "list"}, {"dead", "show", "bad:2026-03-26"}, {"doctor"}, {"job", "next", "good"}, {"help"}, {"once", "--help"}, {"nothing"}, {"job", "show", "goo"}}
	said := func(args []string, more ...string) string {
		r := d.run(append(args, more...)...)
		return r.stdout + r.stderr
	}
	colours := func(s string) bool { return strings.Contains(s, "\x1b[") }
	for _, args := range lines {
		if s := said(args); colours(s) {
			t.Errorf("%v: colours into a pipe: %q", args, s)
		}
	}
	d.width = 100
	if !colours(said([]string{"status"})) || colours(said([]string{"status"}, "--no-color")) {
		t.Error("a terminal gets colours, unless --no-color is given")
	}
	d.env["NO_COLOR"] = ""
	if colours(said([]string{"status"})) {
		t.Error("colours in spite of NO_COLOR")
	}
	delete(d.env, "NO_COLOR")
	d.env["TERM"] = "dumb"
	for _, args := range lines {
		s := strings.NewReplacer("值班的人", "", "好", "").Replace(said(args)) // what others wrote stays as it is
		if i := strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }); i >= 0 || colours(s) {
			t.Errorf("%v: not plain at %q", args, s[max(i-20, 0):min(max(i, 0)+20, len(s))])
		}
	}
	// The column behind one with wide signs begins in the same place of the screen in every line.
	d.env["TERM"] = "xterm"
	d.width = 0
	d.must(0, "job", "pause", "good", "--reason", "x", "-y")
	d.env["USER"] = "张伟的值班电脑"
	d.must(0, "job", "resume", "good")
	at := map[int]int{}
	for line := range strings.Lines(d.must(0, "activity", "list").stdout) {
		for _, word := range []string{"ACT ", "pause ", "resume "} {
			if i := strings.Index(line, " "+word); i >= 0 {
				at[displayWidth(line[:i])]++
			}
		}
	}
	if len(at) != 1 || !slices.Contains(slices.Collect(maps.Values(at)), 3) {
		t.Errorf("the column begins at %v", at)
	}
}
