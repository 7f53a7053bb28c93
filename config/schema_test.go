package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/golden"
)

// compiled is the schema as an editor has it.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("daybook.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("daybook.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain is a node as an editor sees it.
func plain(t testing.TB, n *node) any {
	switch n.kind {
	case isText:
		return n.text
	case isNumber:
		number := strings.TrimLeft(strings.TrimPrefix(n.text, "+"), "0")
		if number == "" || number[0] == '.' {
			number = "0" + number
		}
		if !json.Valid([]byte(number)) {
			return 0
		}
		return json.Number(number)
	case isBool:
		return n.text == "true"
	case isList:
		list := []any{}
		for _, item := range n.items {
			list = append(list, plain(t, item))
		}
		return list
	case isMap:
		m := map[string]any{}
		for _, p := range n.pairs {
			m[p.key.text] = plain(t, p.value)
		}
		return m
	}
	return nil
}

// bySchema validates a text; readable is false when it is no YAML of this file at all.
func bySchema(t testing.TB, s *jsonschema.Schema, src []byte) (readable bool, err error) {
	t.Helper()
	r := &reader{path: "x.yaml", readFile: noFiles}
	root := r.readTree(src)
	if root == nil || len(r.faults) > 0 {
		return false, nil
	}
	return true, s.Validate(plain(t, root))
}

func TestTheShippedSchemaIsTheOneOfTheTables(t *testing.T) {
	golden.Equal(t, "../examples/daybook.schema.json", Schema())
	compiled(t)
}

func TestTheSchemaTakesGoodFiles(t *testing.T) {
	s := compiled(t)
	paths, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	files := map[string]string{"told": told, "every name": everyName}
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if line, _, _ := strings.Cut(string(src), "\n"); line != "# yaml-language-server: $schema=./daybook.schema.json" {
			t.Errorf("%s does not begin with the line by which editors find the schema", path)
		}
		if _, err := Parse(path, src); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		files[path] = string(src)
	}
	for name, src := range files {
		if readable, err := bySchema(t, s, []byte(src)); !readable || err != nil {
			t.Errorf("%s: readable %v, %v", name, readable, err)
		}
	}
}

// TestTheSchemaRefusesWhatTheReaderRefuses: every unknown name, and most other faults of form. What it lets pass, since it
// needs more than the form of one value, stands in a file, so that nobody widens it unseen.
func TestTheSchemaRefusesWhatTheReaderRefuses(t *testing.T) {
	s := compiled(t)
	paths, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var passes strings.Builder
	unknown := 0
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		told, err := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		readable, err := bySchema(t, s, src)
		if !readable {
			continue
		}
		name := strings.Contains(string(told), "unknown name") || strings.Contains(string(told), "not available")
		if name {
			unknown++
		}
		if err == nil {
			fmt.Fprintln(&passes, filepath.Base(path))
			if name {
				t.Errorf("%s has a name that there is not, and the schema takes it", path)
			}
		}
	}
	if unknown < 8 {
		t.Errorf("%d files with unknown names", unknown)
	}
	golden.Equal(t, "testdata/schema-lets-pass.txt", passes.String())
}

// TestEveryNameOfTheManualIsKnown: what is documented is read, or refused by name.
func TestEveryNameOfTheManualIsKnown(t *testing.T) {
	for _, c := range []struct {
		what  string
		names []string
		later []string
		all   string
	}{
		{"top", words(topNames), laterTop, "version name url lang timezone database slots limits defaults retention channels alerts freeze subjects jobs outbox heartbeats"},
		{"job", words(jobNames), laterJob, `priority owner runbook schedule timezone window calendar business_days clock_gap clock_repeat jitter run shell http
			reconcile env dir user stdin timeout work effects steps probe probe_url probe_undo undo undo_url remembers settles missed missed_after catchup_window catchup_gap
			overlap on_dead serial limit subjects zone retry expect formerly paused dry_run`},
		{"slots", words(slotNames), nil, "live backfill"},
		{"retention", words(retentionNames), nil, "log log_runs activity"},
		{"alerts", words(alertNames), laterAlerts, "P0 P1 fallback all_clear watchdog"},
		{"listing", words(listingNames), nil, "dsn sql url"},
		{"route", words(routeNames), nil, "to remind"},
		{"http", words(callNames), nil, "url method headers secret idempotency_key_format"},
		{"retry", words(retryNames), nil, "backoff jitter permanent_exit permanent_status"},
		{"backoff", words(growingNames), nil, "first factor max times"},
		{"expect", words(expectNames), nil, "grace max_silence max_runtime"},
		{"channel types", strings.Split(typeShape().words, " | "), laterChannels, `smtp webhook exec file alertmanager telegram ntfy bark serverchan slack discord
			dingtalk wecom feishu`},
	} {
		all := strings.Fields(c.all)
		for _, w := range all {
			read, later := slices.Contains(c.names, w), slices.Contains(c.later, w)
			if read == later {
				t.Errorf("%s: %s: read %v, refused as not available %v", c.what, w, read, later)
			}
		}
		for _, w := range slices.Concat(c.names, c.later) {
			if !slices.Contains(all, w) {
				t.Errorf("%s: %s is not in the manual", c.what, w)
			}
		}
	}
}

func TestTheReferenceSaysEverything(t *testing.T) {
	var paths []string
	for _, s := range Reference() {
		paths = append(paths, s.Path)
		for _, n := range s.Names {
			if n.Word == "" || n.Type == "" || n.Default == "" || n.Meaning == "" {
				t.Errorf("%s: %+v", s.Path, n)
			}
			if strings.HasSuffix(n.Meaning, ".") {
				t.Errorf("%s.%s: no full stop: %s", s.Path, n.Word, n.Meaning)
			}
		}
	}
	want := []string{"", "slots", "retention", "channels.NAME", "alerts", "alerts.P0", "freeze", "subjects.NAME", "jobs.NAME", "jobs.NAME.http", "jobs.NAME.retry", "jobs.NAME.retry.backoff", "jobs.NAME.expect"}
	if !slices.Equal(paths, want) {
		t.Errorf("%q", paths)
	}
	if n := len(words(defaultNames)); n != len(words(jobNames)) { // defaults know all names, and refuse three
		t.Errorf("%d names of defaults", n)
	}
}

// TestDefaultsOfTheReference: what the reference calls the default is what a job gets.
func TestDefaultsOfTheReference(t *testing.T) {
	j := oneJob(t, "run: [./a]\nschedule: daily 02:00")
	want := map[string]string{
		"priority": string(j.Priority), "clock_gap": string(j.ClockGap), "clock_repeat": string(j.ClockRepeat), "work": string(j.Work), "overlap": string(j.Overlap),
		"timeout": Duration(j.Timeout).String(), "settles": Duration(j.Settles).String(), "catchup_gap": Duration(j.CatchupGap).String(),
	}
	for _, n := range jobNames {
		if w, ok := want[n.word]; ok && n.unless != w {
			t.Errorf("%s: the reference says %s, a job gets %s", n.word, n.unless, w)
		}
	}
	if slots := fmt.Sprintf("{live: %d, backfill: %d}", DefaultSlots.Live, DefaultSlots.Backfill); topNames[slices.Index(words(topNames), "slots")].unless != slots {
		t.Error(slots)
	}
	if retry := retryNames[0].unless; retry != "[1m, 5m, 25m]" || len(daybook.DefaultBackoff) != 3 {
		t.Error(retry)
	}
}
