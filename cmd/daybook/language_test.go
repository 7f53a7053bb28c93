package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/daybook-run/daybook/internal/golden"
)

const spokenFile = `version: 1
timezone: Asia/Shanghai
database: sqlite:daybook.db
defaults: {owner: ops, retry: {backoff: []}}
channels: {log: {type: file, path: alerts.log}}
alerts: {P0: {to: [log]}, P1: {to: [log]}}
jobs:
  report:
    schedule: daily 02:00
    run: [sh, -c, 'echo "sent 20"; echo "{\"effects\":{\"mails\":20}}" >$DAYBOOK_RESULT_FILE']
  close:
    schedule: monthly first business day 04:00
    run: [sh, -c, "echo no such book >&2; exit 65"]
  renew:
    priority: P0
    effects: once
    schedule: daily 03:00
    window: previous-day
    run: [sh, -c, "exit 1"]
`

// versions are what differs from machine to machine in the transcripts.
var versions = regexp.MustCompile(`\d+\.\d+\.\d+|\d+ KiB|schema \d+|结构版本 \d+`)

// TestTranscripts: what the commands say that people use most, in both languages.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "zh-CN"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			begin := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
			d := newDesk(t, begin, spokenFile)
			d.must(0, "db", "migrate")
			d.must(0, "job", "trigger", "report", "--date", "2026-03-27")
			d.serveUntil(`report:2026-03-27 +✓ done`, "run", "list")
			d.must(0, "job", "trigger", "close", "--window", "2026-02")
			d.serveUntil(`close:2026-02 +log`, "alert", "list")
			d.must(0, "job", "trigger", "renew", "--date", "2026-03-27")
			d.serveUntil(`renew:2026-03-27 +log`, "alert", "list")
			d.must(0, "job", "pause", "close", "--reason", "the bank is closed", "-y")
			d.smooth()
			d.begin, d.still = begin.Add(90*time.Minute), true
			d.env["DAYBOOK_LANG"] = language
			var said strings.Builder
			for _, line := range []string{
				"check", "job list", "job show renew", "run list", "run show report:2026-03-27", "key show renew:2026-03-27", "key show close:2026-02", "key show report:2026-03-01",
				"dead list", "dead show close:2026-02", "dead show renew:2026-03-27", "dead replay close:2026-02 -n", "dead replay renew:2026-03-27 --reason x -n",
				"alert list", "activity list", "status", "doctor",
				"job trigger report --date 2026-03-27", "job trigger close --window 2026-02", "job trigger renew --date 2026-03-27 -n", "job trigger nothing",
				"dead replay close:2026-02 --reason found", "run list --state over", "chek", "status --log-level loud", "key show close:2026-02",
			} {
				r := d.run(strings.Fields(line)...)
				fmt.Fprintf(&said, "$ daybook %s\n%s%sexit %d\n\n", line, r.stdout, r.stderr, r.code)
			}
			golden.Equal(t, "testdata/transcript."+language+".txt", versions.ReplaceAllString(strings.ReplaceAll(said.String(), d.dir+"/", ""), "N"))
		})
	}
}

// TestLanguage: --lang is asked first, then DAYBOOK_LANG, then the locale of the machine.
func TestLanguage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env     map[string]string
		args    []string
		chinese bool
	}{
		{nil, nil, false},
		{map[string]string{"LANG": "zh_CN.UTF-8"}, nil, true},
		{map[string]string{"LANG": "zh_TW.UTF-8"}, nil, true}, // the only Chinese there is
		{map[string]string{"LANG": "de_DE.UTF-8"}, nil, false},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, nil, false},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN"}, nil, true},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, nil, false},
		{map[string]string{"LANG": "C", "LC_ALL": "zh_SG.UTF-8"}, nil, true},
		{map[string]string{"LC_ALL": "en_US.UTF-8", "DAYBOOK_LANG": "zh-CN"}, nil, true},
		{map[string]string{"LC_ALL": "zh_CN.UTF-8", "DAYBOOK_LANG": "en"}, nil, false},
		{map[string]string{"LC_ALL": "zh_CN.UTF-8", "DAYBOOK_LANG": "tlh"}, nil, true}, // it must not keep a job from running
		{map[string]string{"DAYBOOK_LANG": "en"}, []string{"--lang", "zh-CN"}, true},
		{map[string]string{"DAYBOOK_LANG": "zh-CN"}, []string{"--lang=en"}, false},
		{nil, []string{"--lang", "en", "--lang", "zh-CN"}, true},
		{nil, []string{"--lang", "zh"}, true},
		{nil, []string{"--lang=zh_CN"}, true},
		{nil, []string{"--lang=zh-Hans"}, true},
		{map[string]string{"LANG": "zh_CN.UTF-8"}, []string{"--lang", "en_US.UTF-8"}, false},
	} {
		for _, line := range [][]string{{"chek"}, {"check", "--colour"}, {"check", "a.yaml", "b.yaml"}, {"check", "/nowhere/daybook.yaml"}, {"help"}, {"check", "--help"}} {
			r := call(t, c.env, append(slices.Clone(c.args), line...)...)
			if text := r.stdout + r.stderr; strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) != c.chinese {
				t.Errorf("%v %v %v: %s", c.env, c.args, line, text)
			}
		}
	}
	if r := call(t, nil, "--lang", "zh-CN", "help"); strings.Contains(r.stdout, textHelp) {
		t.Errorf("the help of help: %s", r.stdout)
	}
	// What belongs to another program is no flag of ours.
	if r := call(t, nil, "check", "--", "--lang", "zh-CN"); !strings.Contains(r.stderr, "one argument too many") {
		t.Errorf("behind --: %+v", r)
	}
	for _, language := range []string{"tlh", "zh-TW", "zh-Hant"} {
		if r := call(t, nil, "check", "--lang", language); r.code != 2 || !strings.Contains(r.stderr, "→ use en or zh-CN") {
			t.Errorf("--lang %q: %+v", language, r)
		}
	}
	// What programs read does not change.
	for _, line := range [][]string{{"check", "/nowhere/daybook.yaml", "--json"}, {"check", "--schema"}, {"schedule", "fires", "daily 02:00", "--zone", "Nowhere", "--from", "2026-03-28T00:00:00Z", "--to", "2026-03-29T00:00:00Z", "--json"}} {
		english, chinese := call(t, nil, line...), call(t, map[string]string{"DAYBOOK_LANG": "zh-CN"}, line...)
		if english != chinese {
			t.Errorf("%v: %+v, in Chinese %+v", line, english, chinese)
		}
	}
}

// TestPromptsInChinese: questions are asked in the language of the call, and take the same answers.
func TestPromptsInChinese(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), spokenFile)
	d.must(0, "db", "migrate")
	d.must(0, "job", "trigger", "renew", "--date", "2026-03-27")
	d.env["DAYBOOK_LANG"], d.there = "zh-CN", true
	d.in = "n\n"
	if r := d.must(4, "job", "pause", "report", "--reason", "x"); !strings.Contains(r.stderr, "继续吗？[y/N]") || !strings.Contains(r.stderr, "未确认：没有做任何操作") {
		t.Errorf("no: %+v", r)
	}
	d.in = "y\n"
	if r := d.must(0, "job", "pause", "report", "--reason", "x"); !strings.Contains(r.stdout, "已暂停") {
		t.Errorf("yes: %+v", r)
	}
	d.in = "renew:2026-03-27~2\n"
	if r := d.must(0, "job", "trigger", "renew", "--window", "2026-03-27~2", "--reason", "x"); !strings.Contains(r.stderr, "输入 renew:2026-03-27~2 以确认：") {
		t.Errorf("typed: %+v", r)
	}
}

// smooth makes a ledger say the same of every machine: what is stored of times goes down to the hour, and of the name of the
// machine nothing is left.
func (d *desk) smooth() {
	d.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		d.t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(d.dir, "daybook.db"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(d.t.Context(), `SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND (c.name LIKE '%\_us' ESCAPE '\' OR c.name IN ('node', 'host'))`)
	if err != nil {
		d.t.Fatal(err)
	}
	var changes []string
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			d.t.Fatal(err)
		}
		change := fmt.Sprintf("UPDATE %s SET %s = %s / 3600000000 * 3600000000", table, column, column)
		if column == "node" || column == "host" {
			change = fmt.Sprintf("UPDATE %s SET %s = 'n1' WHERE %s = '%s'", table, column, column, host)
		}
		changes = append(changes, change)
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	for _, change := range changes {
		if _, err := db.ExecContext(d.t.Context(), change); err != nil {
			d.t.Fatalf("%s: %v", change, err)
		}
	}
}
