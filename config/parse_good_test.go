package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-run/daybook"
)

// head is the top of most files here.
const head = "timezone: Europe/Berlin\ndefaults: {owner: ops}\njobs:\n"

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := parse("daybook.yaml", []byte(text), noFiles)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

// oneJob parses a file with one job, whose lines are given.
func oneJob(t *testing.T, lines string) Job {
	t.Helper()
	return mustParse(t, head+"  renew:\n    "+strings.ReplaceAll(lines, "\n", "\n    ")+"\n").Jobs[0]
}

const everyName = `
version: 1
name: acme
url: https://daybook.acme.example
lang: zh-CN
timezone: Asia/Shanghai
database: "${DATABASE_URL}"
slots: {live: 8, backfill: 0}
retention: {log: 90d, log_runs: 50, activity: 400d}
defaults: {owner: ops, timeout: 10m, env: {A: "1", B: two}, retry: {backoff: [1m], jitter: 0%}}
jobs:
  renew:
    priority: P0
    owner: money
    runbook: https://wiki.acme.example/renew
    schedule: ["0 2 * * *", daily 14:30]
    timezone: Europe/Berlin
    window: fire
    calendar: cn
    business_days: next
    clock_gap: skip
    clock_repeat: last
    jitter: 30s
    run: [./renew, --date, "{date}", 7, 1.5]
    env: {B: "${SECRET}", C: "file:/run/secrets/c", PORT: 8080}
    dir: /srv/renew
    user: renew
    stdin: "a\nb"
    timeout: 90s
    work: timed
    effects: once
    probe: [./renew, --ask, "{wire_key}"]
    remembers: 24h
    settles: 6m
    missed: catch_up
    missed_after: 7m
    catchup_window: 3d
    catchup_gap: 0
    overlap: allow
    retry: {backoff: {first: 1m, factor: 5, max: 20m, times: 4}, permanent_exit: [3], permanent_status: [451]}
    expect: {grace: 5m, max_silence: 26h, max_runtime: 20m}
    paused: true
`

func TestEveryName(t *testing.T) {
	f := mustParse(t, everyName)
	if f.Name != "acme" || f.URL != "https://daybook.acme.example" || f.Lang != "zh-CN" || f.Timezone != "Asia/Shanghai" {
		t.Errorf("top: %+v", f)
	}
	day := 24 * time.Hour
	if f.Slots != (Slots{8, 0}) || f.Retention != (Retention{90 * day, 50, 400 * day}) {
		t.Errorf("slots %v, retention %v", f.Slots, f.Retention)
	}
	want := daybook.Job{Name: "renew", Priority: daybook.P0, Owner: "money", Runbook: "https://wiki.acme.example/renew",
		Schedule: "0 2 * * *\ndaily 14:30", Timezone: "Europe/Berlin", Window: daybook.PerFire, Calendar: "cn", BusinessDays: daybook.BusinessNext,
		ClockGap: daybook.GapSkip, ClockRepeat: daybook.RepeatLast, Jitter: 30 * time.Second,
		Command: daybook.Command{Argv: []string{"./renew", "--date", "{date}", "7", "1.5"}},
		Env:     map[string]string{"A": "1", "B": "${SECRET}", "C": "file:/run/secrets/c", "PORT": "8080"},
		Dir:     "/srv/renew", User: "renew", Stdin: "a\nb", Timeout: 90 * time.Second,
		Work: daybook.Timed, Effects: daybook.Once, Probe: daybook.Command{Argv: []string{"./renew", "--ask", "{wire_key}"}},
		Remembers: 24 * time.Hour, Settles: 6 * time.Minute, Missed: daybook.CatchUp, MissedAfter: 7 * time.Minute,
		CatchupWindow: 3 * day, CatchupGap: -1, Overlap: daybook.OverlapAllow,
		Retry: daybook.Retry{Backoff: []time.Duration{time.Minute, 5 * time.Minute, 20 * time.Minute, 20 * time.Minute}, Jitter: -1,
			PermanentExit: []int{3}, PermanentStatus: []int{451}},
		Expect: daybook.Expect{Grace: 5 * time.Minute, MaxSilence: 26 * time.Hour, MaxRuntime: 20 * time.Minute}, Paused: true}
	if diff := cmp.Diff(want, f.Jobs[0].Job); diff != "" {
		t.Error(diff)
	}
	if f.Jobs[0].Line != 12 || f.Jobs[0].Days == nil || f.Jobs[0].Schedule == nil {
		t.Errorf("%+v", f.Jobs[0])
	}
}

func TestDefaultsOfAFile(t *testing.T) {
	f := mustParse(t, head+"  a: {run: [./a]}\n")
	if f.Database.String() != DefaultDatabase || f.Slots != DefaultSlots || f.Retention != DefaultRetention || f.Lang != "en" {
		t.Errorf("%+v", f)
	}
	j := f.Jobs[0]
	if j.Window != daybook.Day || j.Priority != daybook.P1 || j.Effects != daybook.Repeatable || j.Timeout != time.Hour || j.Job.Schedule != "" {
		t.Errorf("%+v", j.Job)
	}
}

func TestDefaultsApplyPerJob(t *testing.T) {
	f := mustParse(t, `
jobs:
  a: {run: [./a], env: {X: a}, retry: {jitter: 20%}}
  b: {shell: ./b, owner: me, timeout: none, timezone: UTC}
timezone: Europe/Berlin
defaults: {owner: ops, run: [./default], timeout: 5m, env: {X: d, Y: d}, retry: {backoff: [2m], permanent_exit: [9]}, expect: {grace: 1m}}
`)
	a, b := f.Jobs[0].Job, f.Jobs[1].Job
	if a.Name != "a" || a.Owner != "ops" || a.Timeout != 5*time.Minute || a.Timezone != "Europe/Berlin" || a.Expect.Grace != time.Minute {
		t.Errorf("a: %+v", a)
	}
	if diff := cmp.Diff(map[string]string{"X": "a", "Y": "d"}, a.Env); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(daybook.Retry{Backoff: []time.Duration{2 * time.Minute}, Jitter: 0.2, PermanentExit: []int{9}}, a.Retry); diff != "" {
		t.Error(diff)
	}
	if b.Command.Shell != "./b" || b.Command.Argv != nil || b.Owner != "me" || b.Timeout >= 0 || b.Timezone != "UTC" || b.Env["X"] != "d" {
		t.Errorf("b: %+v", b)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		lines string
		got   func(daybook.Job) any
		want  any
	}{
		{"run: [./a]\nretry: {backoff: []}", func(j daybook.Job) any { return len(j.Retry.Backoff) }, 0},
		{"run: [./a]\nretry: {backoff: [0, 1m]}", func(j daybook.Job) any { return j.Retry.Backoff[0] }, time.Duration(0)},
		{"run: [./a]\nretry: {backoff: {first: 1m, times: 3}}", func(j daybook.Job) any { return j.Retry.Backoff[2] }, 4 * time.Minute},
		{"run: [./a]\nretry: {backoff: {first: 1m, factor: 1.5, times: 3}}", func(j daybook.Job) any { return j.Retry.Backoff[2] }, 135 * time.Second},
		{"run: [./a]\nretry: {backoff: {first: 300d, factor: 100, times: 50}}", func(j daybook.Job) any { return j.Retry.Backoff[49] }, daybook.MaxDelay},
		{"run: [./a]\nretry: {jitter: 12.5%}", func(j daybook.Job) any { return j.Retry.Jitter }, 0.125},
		{"run: [./a]\nremembers: forever\neffects: once\nwindow: day", func(j daybook.Job) any { return j.Remembers }, daybook.Forever},
		{"run: [./a]\nexpect: {max_runtime: none}", func(j daybook.Job) any { return j.Expect.MaxRuntime < 0 }, true},
		{"run: [./a]\ncatchup_gap: 30s", func(j daybook.Job) any { return j.CatchupGap }, 30 * time.Second},
		{"shell: |\n  set -e\n  date", func(j daybook.Job) any { return j.Command.Shell }, "set -e\ndate\n"},
		{"run: [./a]\nprobe: ask me\neffects: once\nwindow: day", func(j daybook.Job) any { return j.Probe.Shell }, "ask me"},
		{"run: [awk, \"{print $1}\", 世界]", func(j daybook.Job) any { return j.Command.Argv[1] + j.Command.Argv[2] }, "{print $1}世界"},
		{"run: [./a]\nschedule: |\n  daily 02:00\n  daily 14:00", func(j daybook.Job) any { return j.Window }, daybook.PerFire},
		{"run: [./a]\nschedule: weekly mon 09:00", func(j daybook.Job) any { return j.Window }, daybook.Week},
		{"run: [./a]\nschedule: every 15m", func(j daybook.Job) any { return j.Missed }, daybook.Coalesce},
		{"run: [./a, 2026-10-26, 12:30, 1e3, yes, null_, '010']", func(j daybook.Job) any { return strings.Join(j.Command.Argv[1:], " ") }, "2026-10-26 12:30 1e3 yes null_ 010"},
		{"run: [./a]\nenv: {EMPTY: \"\", URL: \"file:./dev.db\", N: -3}", func(j daybook.Job) any { return j.Env["URL"] + j.Env["N"] }, "file:./dev.db-3"},
	} {
		if got := c.got(oneJob(t, c.lines).Job); got != c.want {
			t.Errorf("%q: %v, want %v", c.lines, got, c.want)
		}
	}
}

func TestTextForms(t *testing.T) {
	plain := head + "  renew:\n    run: [./a]\n    schedule: daily 02:00\n"
	want := mustParse(t, plain).Jobs[0].Job
	for name, text := range map[string]string{
		"BOM":             "\ufeff" + plain,
		"CRLF":            strings.ReplaceAll(plain, "\n", "\r\n"),
		"document marker": "---\n" + plain,
		"comments":        "# 世界\n" + strings.ReplaceAll(plain, "\n", "  # note\n"),
		"no end of line":  strings.TrimSuffix(plain, "\n"),
		"flow":            `{timezone: Europe/Berlin, defaults: {owner: ops}, jobs: {renew: {run: [./a], schedule: daily 02:00}}}`,
		"JSON":            `{"timezone": "Europe/Berlin", "defaults": {"owner": "ops"}, "jobs": {"renew": {"run": ["./a"], "schedule": "daily 02:00"}}}`,
	} {
		f, err := parse("daybook.yaml", []byte(text), noFiles)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, f.Jobs[0].Job); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestJobsKeepTheirOrder(t *testing.T) {
	var names []string
	for _, j := range mustParse(t, head+"  zeta: {run: [./a]}\n  alpha: {run: [./a]}\n  \"1\": {run: [./a]}\n  2: {run: [./a]}\n  true: {run: [./a]}\n").Jobs {
		names = append(names, j.Name)
	}
	if !slices.Equal(names, []string{"zeta", "alpha", "1", "2", "true"}) {
		t.Error(names)
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{"run: [./a]\nschedule: daily 02:00", ""},
		{"run: [./a]\nschedule: daily 02:00\npriority: P0\neffects: once\nwindow: day", "every unreported end will wait for a person"},
		{"run: [./a]\nschedule: daily 02:00\npriority: P0\neffects: once\nwindow: day\nremembers: 24h", ""},
		{"run: [./a]\nschedule: daily 02:00\npriority: P0\neffects: once\nwindow: day\nprobe: [./ask]", ""},
		{"run: [./a]\nschedule: daily 02:00\npriority: P0\neffects: repeatable", ""},
		{"run: [./a]\nschedule: daily 02:00\nprobe: [./ask]", "probe is not used"},
		{"run: [./a]\nschedule: daily 02:00\neffects: once\nwindow: day\nprobe: [./ask]\nundo: [./back]", "its probe is not asked about an undo"},
		{"run: [./a]\nschedule: daily 02:00\neffects: once\nwindow: day\nprobe_url: http://127.0.0.1/p\nundo_url: http://127.0.0.1/u", "its probe is not asked about an undo"},
		{"run: [./a]\nschedule: daily 02:00\neffects: once\nwindow: day\nprobe: [./ask]\nprobe_undo: true\nundo: [./back]", ""},
		{"run: [./a]\nschedule: daily 02:00\neffects: once\nwindow: day\nremembers: 24h\nprobe: [./ask]\nundo: [./back]", ""},
		{"run: [./a]\nschedule: daily 02:00\neffects: once\nwindow: day\nremembers: 24h\nprobe_undo: true", "probe_undo is not used without"},
		{"run: [./a]\nschedule: \"0 9 31 * *\"", "months without a day 31 have no fire"},
		{"run: [./a]\nschedule: \"0 9 13 * 5\"", "either of them fires"},
		{"run: [./a]\nschedule: \"0 9 */10 * 1\"", "either of them fires (a step"},
		{"run: [./a]\nschedule: daily 02:00\ncalendar: cn", "moves nothing without business_days"},
		{"run: [./a]\nschedule: monthly last business day 18:00\ncalendar: cn", ""},
		{"run: [./a]\nmissed: skip", "not used without a schedule"},
		{"shell: echo {date}\nschedule: daily 02:00", "{date} is not filled in"},
		{"shell: \"awk '{print}' | sed s/${date}//\"\nschedule: daily 02:00", ""},
		{"run: [./a]\nenv: {API_TOKEN: abc}", "a secret seems to stand in the file"},
		{"run: [./a]\nenv: {API_TOKEN: \"${API_TOKEN}\"}", ""},
		{"run: [./a]\nschedule: daily 02:00\neffects: once\nwindow: day\nremembers: 2h\nretry: {backoff: [2h]}", "sure to remember for 1h only"},
	} {
		f := mustParse(t, head+"  renew:\n    "+strings.ReplaceAll(c.lines, "\n", "\n    ")+"\n")
		var all []string
		for _, w := range f.Warnings {
			if w.Line == 0 || w.Excerpt == "" {
				t.Errorf("no place: %s", w)
			}
			all = append(all, w.String())
		}
		got := strings.Join(all, "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.lines, got, c.want)
		}
	}
}

func TestCalendarFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("days.csv", "2026-10-01,off,National Day\n")
	write("bad.csv", "2026-13-01,off\n")
	path := write("daybook.yaml", head+"  a: {run: [./a], schedule: daily 02:00, calendar: days.csv, business_days: skip}\n")
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if on, err := f.Jobs[0].Days.Working("2026-10-01"); on || err != nil {
		t.Errorf("working %v, %v", on, err)
	}
	path = write("daybook.yaml", head+"  a: {run: [./a], schedule: daily 02:00, calendar: bad.csv, business_days: skip}\n")
	if _, err = Load(path); err == nil || !strings.Contains(err.Error(), "bad.csv line 1") {
		t.Errorf("%v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ path, want string }{
		"missing":     {filepath.Join(dir, "none.yaml"), "there is no file"},
		"a directory": {dir, "is a directory"},
	} {
		_, err := Load(c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) || daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, MaxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "more than 5 MB") {
		t.Errorf("%v", err)
	}
}

// TestHostileTexts holds texts on which the parser of YAML alone takes seconds, gigabytes or for ever.
func TestHostileTexts(t *testing.T) {
	for name, text := range map[string]string{
		"lists":     "a: " + strings.Repeat("[", 100_000),
		"maps":      "a: " + strings.Repeat("{a: ", 100_000),
		"dashes":    "a:\n" + strings.Repeat("- ", 100_000),
		"keys":      strings.Repeat("a: 1\n", 100_000),
		"questions": strings.Repeat("? ", 100_000),
		"colons":    strings.Repeat("a: ", 100_000),
		"anchors":   strings.Repeat("&a ", 100_000),
		"tags":      strings.Repeat("!a ", 100_000),
		"quotes":    strings.Repeat("\"", 20_001),
		"long text": "a: " + strings.Repeat("x", 1<<20),
		"blank":     strings.Repeat("\n", MaxFileBytes),
		"indented": func() string {
			var b strings.Builder
			for i := range 500 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(),
		"exclaiming": "a: " + strings.Repeat("!", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse("x.yaml", []byte(text), noFiles)
			var faults Errors
			if !errors.As(err, &faults) {
				t.Fatal(err)
			}
			if n := len(err.Error()); n > 200_000 {
				t.Errorf("a message of %d bytes", n)
			}
		})
	}
}

func TestManyJobs(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	for i := range 1000 {
		b.WriteString("  job-" + time.Duration(i).String() + ": {schedule: daily 02:00, run: [./a]}\n")
	}
	if n := len(mustParse(t, b.String()).Jobs); n != 1000 {
		t.Error(n)
	}
}

func TestFind(t *testing.T) {
	f := mustParse(t, head+"  renew: {run: [./a]}\n")
	if j, err := f.Find("renew"); err != nil || j.Name != "renew" {
		t.Error(j, err)
	}
	_, err := f.Find("renw")
	if daybook.CodeOf(err) != daybook.CodeNotFound || daybook.HintOf(err) != "did you mean renew?" {
		t.Errorf("%v → %s", err, daybook.HintOf(err))
	}
}

func TestErrorsForms(t *testing.T) {
	_, err := parse("a.yaml", []byte("b: 1\n"), func(string) ([]byte, error) { return nil, fs.ErrNotExist })
	if daybook.CodeOf(err) != daybook.CodeInvalid || !errors.Is(err, daybook.ErrInvalid) {
		t.Errorf("code %q", daybook.CodeOf(err))
	}
	text, e := err.(Errors).MarshalJSON()
	if e != nil || !strings.HasPrefix(string(text), `{"schema":"daybook/faults.v1","faults":[{"file":"a.yaml","line":1,"column":1,"message":`) {
		t.Errorf("%s, %v", text, e)
	}
	if text, _ := (Errors)(nil).MarshalJSON(); string(text) != `{"schema":"daybook/faults.v1","faults":[]}` {
		t.Errorf("%s", text)
	}
}
