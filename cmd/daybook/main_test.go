package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
)

// result is what one call left behind.
type result struct {
	code           int
	stdout, stderr string
}

// call runs the program in this process, on 28 March 2026 at noon UTC.
func call(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	a := testApp(&out, &errs)
	a.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	code := a.run(context.Background(), args)
	return result{code, out.String(), errs.String()}
}

// testApp is one call of the program on that day, with an empty environment.
func testApp(out, errs io.Writer) *app {
	return &app{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs,
		Now:       func() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) },
		LookupEnv: func(string) (string, bool) { return "", false },
		ReadFile:  os.ReadFile,
		LocalZone: func() string { return "Europe/Berlin" }}
}

// TestFiresCases runs every row of the calendar cases through the command line.
func TestFiresCases(t *testing.T) {
	src, err := os.ReadFile("../../calendar/testdata/calendar.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(src)), "\n")
	if len(rows) < 60 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows[1:] {
		c := strings.Split(row, "\t")
		id, schedule, zone, from, to, fires, windows, note := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
		t.Run(id, func(t *testing.T) {
			r := call(t, nil, "schedule", "fires", schedule, "--zone", zone, "--from", from, "--to", to, "--json")
			if r.code != 0 || r.stderr != "" {
				t.Fatalf("exit %d: %s", r.code, r.stderr)
			}
			var gotFires, gotWindows []string
			gaps := 0
			for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
				var f fireJSON
				if err := json.Unmarshal([]byte(line), &f); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				gotFires, gotWindows = append(gotFires, f.Fire), append(gotWindows, f.Window)
				local, err := time.Parse(time.RFC3339, f.Local)
				if err != nil || local.UTC().Format(time.RFC3339) != f.Fire {
					t.Errorf("local %s is not %s", f.Local, f.Fire)
				}
				if f.Note == "gap" {
					gaps++
				}
			}
			if got := strings.Join(gotFires, ","); got != fires {
				t.Errorf("fires\n got %s\nwant %s", got, fires)
			}
			if got := strings.Join(gotWindows, ","); got != windows {
				t.Errorf("windows\n got %s\nwant %s", got, windows)
			}
			if strings.HasPrefix(note, "gap:") != (gaps > 0) {
				t.Errorf("%d fires are noted as gap; %s", gaps, note)
			}
		})
	}
}

func TestFiresForms(t *testing.T) {
	fires := []string{"schedule", "fires", "0 2 * * *", "--zone", "Europe/Berlin", "--from", "2026-03-28T12:00:00Z", "--to", "2026-03-29T12:00:00Z"}
	r := call(t, nil, append(fires, "--json")...)
	if want := `{"fire":"2026-03-29T01:00:00Z","local":"2026-03-29T03:00:00+02:00","window":"2026-03-29","note":"gap"}` + "\n"; r.stdout != want {
		t.Errorf("%s, want %s", r.stdout, want)
	}
	r = call(t, nil, append(fires, "--json", "--window", "previous-week")...)
	if !strings.Contains(r.stdout, `"window":"2026-W12"`) {
		t.Errorf("%s", r.stdout)
	}
	r = call(t, nil, append(fires, "--show-tz", "Asia/Tokyo")...)
	if !strings.Contains(r.stdout, "2026-03-29T10:00:00+09:00") || !strings.Contains(r.stderr, "1 fire: at 02:00 every day") {
		t.Errorf("%+v", r)
	}
	// the span may lie in any offset, and may be empty
	r = call(t, nil, "schedule", "fires", "daily 02:00", "--zone", "UTC", "--from", "2026-03-28T03:00:00+01:00", "--to", "2026-03-28T03:00:00+01:00", "--json")
	if r.code != 0 || r.stdout != "" {
		t.Errorf("%+v", r)
	}
}

func TestUsage(t *testing.T) {
	ok := []string{"--zone", "UTC", "--from", "2026-03-28T00:00:00Z", "--to", "2026-03-29T00:00:00Z"}
	for _, c := range []struct {
		args          []string
		message, hint string
	}{
		{[]string{"chek"}, `unknown command "chek" for "daybook"`, "did you mean daybook check?"},
		{[]string{"trigger", "renew"}, `unknown command "trigger"`, "did you mean daybook job trigger?"},
		{[]string{"list"}, `unknown command "list"`, "one of: activity"},
		{[]string{"frobnicate"}, `unknown command "frobnicate"`, "one of: activity"},
		{[]string{"schedule"}, "daybook schedule what?", "one of: fires"},
		{[]string{"schedule", "fire"}, `unknown command "fire"`, "did you mean daybook schedule fires?"},
		{[]string{"dead", "replay", "renew:2026-03-29", "--confirm=renew:2026-03-29"}, "unknown flag: --confirm", "this is confirmed with --yes (-y), where it asks at all"},
		{[]string{"check", "--jsn"}, "unknown flag: --jsn", "did you mean --json?"},
		{[]string{"check", "-x"}, "unknown shorthand flag: 'x'", "--help lists the flags"},
		{[]string{"check", "a", "b"}, `"b" is one argument too many`, "daybook check"},
		{[]string{"check", "a.yaml", "-c", "b.yaml"}, "two files are named", "name one"},
		{[]string{"check", "--config"}, "flag needs an argument: --config", "--help"},
		{[]string{"check", "none.yaml"}, "there is no file none.yaml", "daybook init"},
		{[]string{"version", "--show-tz", "Mars"}, `--show-tz: time zone "Mars" is unknown`, "IANA"},
		{[]string{"version", "--lang", "de"}, `--lang: "de" is not known`, "zh-CN"},
		{[]string{"version", "--db", "postgres://u:hunter2@db/x"}, "--db: the database URL holds a password", "${NAME}"},
		{[]string{"init", "--zone", "CEST"}, `--zone: time zone "CEST" is an abbreviation`, "Europe/Berlin"},
		{[]string{"schedule", "fires"}, `"SCHEDULE" is missing`, "daybook schedule fires"},
		{append([]string{"schedule", "fires", "0", "2", "*"}, ok...), `"2" is one argument too many`, "quotes"},
		{append([]string{"schedule", "fires", ""}, ok...), "the schedule is empty", "daily 02:00"},
		{append([]string{"schedule", "fires", "0 0 30 2 *"}, ok...), "never comes", "last day"},
		{append([]string{"schedule", "fires", "daily 02:00", "--window", "dya"}, ok...), `window: "dya" is not one of`, "did you mean day?"},
		{[]string{"schedule", "fires", "daily 02:00"}, "--zone is missing", "Europe/Berlin"},
		{[]string{"schedule", "fires", "daily 02:00", "--zone", "Europe/Luxemburg", "--from", "2026-03-28T00:00:00Z", "--to", "2026-03-29T00:00:00Z"},
			`time zone "Europe/Luxemburg" is unknown`, "did you mean Europe/Luxembourg?"},
		{[]string{"schedule", "fires", "daily 02:00", "--zone", "UTC"}, "--from is missing", "2026-03-29T00:00:00Z"},
		{[]string{"schedule", "fires", "daily 02:00", "--zone", "UTC", "--from", "2026-03-28"}, `--from: "2026-03-28" is no instant`, "offset"},
		{[]string{"schedule", "fires", "daily 02:00", "--zone", "UTC", "--from", "2026-03-29T00:00:00Z", "--to", "2026-03-28T00:00:00Z"}, "is before --from", "(from, to]"},
	} {
		r := call(t, nil, c.args...)
		name := strings.Join(c.args, " ")
		if r.code != 2 || r.stdout != "" {
			t.Errorf("%s: exit %d, stdout %q", name, r.code, r.stdout)
		}
		message, hint, _ := strings.Cut(r.stderr, "\n  → ")
		if !strings.HasPrefix(message, "daybook: ") || !strings.Contains(message, c.message) || !strings.Contains(hint, c.hint) {
			t.Errorf("%s: %s", name, r.stderr)
		}
		j := call(t, nil, append(c.args, "--json")...)
		var e errorJSON
		if strings.HasSuffix(name, "--config") { // it takes --json for its argument
			continue
		}
		if err := json.Unmarshal([]byte(j.stderr), &e); err != nil || e.Schema != "daybook/error.v1" || e.Code != "invalid" ||
			!strings.Contains(e.Message, c.message) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s --json: %v %s", name, err, j.stderr)
		}
		if strings.Contains(r.stderr+j.stderr, "hunter2") {
			t.Errorf("%s: a password is printed", name)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{daybook.Invalid("x"), 2},
		{config.Errors{{File: "a", Message: "x"}}, 2},
		{daybook.Conflict("x"), 4},
		{daybook.NotFound("x"), 5},
		{daybook.ErrUnavailable, 6},
		{daybook.ErrStale, 1},
		{&daybook.Error{Code: daybook.CodePermanent}, 1},
		{errors.New("x"), 1},
		{fmt.Errorf("open: %w", daybook.Conflict("x")), 4},
		{&coded{code: 75, err: daybook.Conflict("x")}, 75},
		{fmt.Errorf("once: %w", &coded{code: 124, err: errors.New("x")}), 124},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestReportMasks(t *testing.T) {
	var out bytes.Buffer
	a := &app{Stderr: &out}
	a.report(fmt.Errorf("dial postgres://u:hunter2@db/x: %w", daybook.ErrUnavailable))
	if strings.Contains(out.String(), "hunter2") || !strings.Contains(out.String(), "u:***@db") {
		t.Error(out.String())
	}
}

// TestInit: what init writes passes check as it is and with its examples uncommented, and is never written over.
func TestInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daybook.yaml")
	r := call(t, nil, "init", path)
	if r.code != 0 || !strings.Contains(r.stderr, "daybook check "+path) {
		t.Fatalf("%+v", r)
	}
	src, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(src), "timezone: Europe/Berlin ") {
		t.Fatalf("%v\n%s", err, src)
	}
	if r := call(t, nil, "check", path); r.code != 0 || !strings.Contains(r.stderr, "1 job, no faults\n") {
		t.Errorf("%+v", r)
	}
	var all strings.Builder
	for _, line := range strings.Split(string(src), "\n") {
		if rest, ok := strings.CutPrefix(line, "  # "); ok {
			line = "  " + rest
		} else if rest, ok := strings.CutPrefix(line, "# "); ok && (strings.HasPrefix(rest, "  ") && !strings.HasPrefix(rest, `  "`) || strings.HasPrefix(rest, "channels:") || strings.HasPrefix(rest, "alerts:")) {
			line = rest
		}
		all.WriteString(line + "\n")
	}
	f, err := config.Parse(path, []byte(all.String()))
	if err != nil || len(f.Jobs) != 5 || len(f.Channels) != 2 || len(f.Warnings) != 0 {
		t.Errorf("examples uncommented: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = call(t, nil, "init", path)
	if src, _ := os.ReadFile(path); r.code != 4 || string(src) != "mine" || !strings.Contains(r.stderr, "is left as it is") {
		t.Errorf("%+v %s", r, src)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	r = call(t, map[string]string{"DAYBOOK_CONFIG": other}, "init", "-n")
	if _, err := os.Stat(other); r.code != 0 || err == nil || !strings.Contains(r.stdout, "jobs:") {
		t.Errorf("dry run: %+v, %v", r, err)
	}
	r = call(t, map[string]string{"DAYBOOK_CONFIG": other}, "init", "--zone", "Asia/Tokyo", "--json")
	if _, err := os.Stat(other); r.code != 0 || err != nil || !strings.Contains(r.stdout, `"timezone":"Asia/Tokyo"`) {
		t.Errorf("by environment: %+v, %v", r, err)
	}
}

func TestDatabaseOfTheCall(t *testing.T) {
	file := &config.File{Path: "/etc/daybook/daybook.yaml", Database: config.NewSecret("sqlite:x.db")}
	for _, c := range []struct {
		flag, env string
		file      *config.File
		want      string
	}{
		{"sqlite:flag.db", "sqlite:env.db", file, "sqlite:flag.db"},
		{"", "sqlite:env.db", file, "sqlite:env.db"},
		{"", "postgres://u:p@db/x", nil, "postgres://u:p@db/x"}, // the environment may hold a password
		{"", "", file, "sqlite:/etc/daybook/x.db"},
		{"", "", nil, ""},
	} {
		a := &app{LookupEnv: func(name string) (string, bool) { return c.env, name == "DAYBOOK_DB" && c.env != "" }}
		a.flags.db = c.flag
		if got, err := a.databaseURL(c.file); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q %q: %q, %v", c.flag, c.env, got, err)
		}
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	r := call(t, nil)
	if r.code != 0 || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	for _, build := range commands {
		cmd := build(&app{})
		if strings.Contains(r.stdout, "\n  "+cmd.Name()+" ") == cmd.Hidden || cmd.Short == "" {
			t.Errorf("%s is not in the help", cmd.Name())
		}
	}
}

func TestVersion(t *testing.T) {
	r := call(t, nil, "version", "--json")
	var v versionJSON
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || v.Version == "" || v.Go == "" || v.SQLite == "" || v.TZData == "" || v.TZDataFrom == "" {
		t.Errorf("%v %+v", err, r)
	}
}
