package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/golden"
)

// desk is a directory with a file and a ledger, worked on in this process by a clock that the test sets.
type desk struct {
	t     *testing.T
	dir   string
	begin time.Time // what the clock said at since
	since time.Time
	still bool   // the clock says begin, however long it takes
	in    string // what somebody types; asked only when somebody is there
	there bool
	width int
	env   map[string]string
}

func newDesk(t *testing.T, at time.Time, file string) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir(), begin: at, since: time.Now(), env: map[string]string{"USER": "me"}}
	if err := os.WriteFile(filepath.Join(d.dir, "daybook.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// set moves the clock; it goes on from there.
func (d *desk) set(at time.Time) { d.begin, d.since = at, time.Now() }

func (d *desk) app(out, errs *bytes.Buffer) *app {
	begin, since := d.begin, d.since
	now := func() time.Time { return begin.Add(time.Since(since)) }
	if d.still {
		now = func() time.Time { return begin }
	}
	return &app{Stdin: strings.NewReader(d.in), Stdout: out, Stderr: errs, Now: now,
		LookupEnv: func(name string) (string, bool) { v, ok := d.env[name]; return v, ok },
		ReadFile:  os.ReadFile, LocalZone: func() string { return "UTC" },
		Width: func() int { return d.width }, Ask: func() bool { return d.there }}
}

func (d *desk) run(args ...string) result {
	d.t.Helper()
	var out, errs bytes.Buffer
	code := d.app(&out, &errs).run(d.t.Context(), append([]string{"-c", filepath.Join(d.dir, "daybook.yaml")}, args...))
	return result{code, out.String(), errs.String()}
}

func (d *desk) must(code int, args ...string) result {
	d.t.Helper()
	r := d.run(args...)
	if r.code != code {
		d.t.Fatalf("daybook %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

// serveUntil runs serve until a call of the program writes what is wanted.
func (d *desk) serveUntil(pattern string, args ...string) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	ended := make(chan result, 1)
	go func() {
		var out, errs bytes.Buffer
		code := d.app(&out, &errs).run(ctx, []string{"-c", filepath.Join(d.dir, "daybook.yaml"), "serve", "-q"})
		ended <- result{code, out.String(), errs.String()}
	}()
	re, last := regexp.MustCompile("(?m)"+pattern), result{}
	found := waitFor(func() bool {
		last = d.run(args...)
		return re.MatchString(last.stdout)
	})
	cancel()
	if r := <-ended; r.code != 0 {
		d.t.Fatalf("serve: exit %d\n%s", r.code, r.stderr)
	}
	if !found {
		d.t.Fatalf("%s never appeared:\n%s%s", pattern, last.stdout, last.stderr)
	}
}

const missedFile = `version: 1
timezone: Europe/Berlin
defaults: {owner: ops}
jobs:
  sweep:
    schedule: hourly
    missed: skip
    run: ["true"]
  sync:
    schedule: every 6h
    missed: coalesce
    run: ["true"]
  report:
    schedule: daily 02:30
    catchup_gap: 0s
    run: ["true"]
  pay:
    priority: P0
    effects: once
    schedule: daily 03:00
    window: day
    catchup_gap: 0s
    run: ["true"]
`

// TestKeysThatNeverRan: a serve is away for two and a half days, over a change of clocks. Every key of that time is
// explained: in a span of skipped windows, covered by another, caught up, held, or not known.
func TestKeysThatNeverRan(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		x, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	d := newDesk(t, at("2026-03-27T11:30:00Z"), missedFile)
	d.serveUntil("report", "job", "list")
	d.set(at("2026-03-29T22:30:00Z"))
	d.serveUntil("done.*\n(.*\n)*.*done", "run", "list", "--job", "report")

	r := d.must(0, "key", "show", "sweep:2026-03-28T09:00Z")
	if !strings.Contains(r.stdout, "was skipped (missed), with the ") || !strings.Contains(r.stderr, "--run-skipped") {
		t.Errorf("skipped: %+v", r)
	}
	if r = d.must(0, "key", "show", "sweep:2026-03-28T09:00Z", "--json"); !strings.Contains(r.stdout, `"absence":"skipped"`) || !strings.Contains(r.stdout, `"reason":"missed"`) {
		t.Errorf("skipped: %+v", r)
	}
	// Asked for, it stays skipped unless somebody says so.
	r = d.must(4, "job", "trigger", "sweep", "--window", "2026-03-28T09:00Z")
	if !strings.Contains(r.stderr, "It runs only if you say so") || !strings.Contains(r.stderr, "--run-skipped") {
		t.Errorf("trigger of a skipped window: %+v", r)
	}
	d.in, d.there = "n\n", true
	r = d.must(4, "job", "trigger", "sweep", "--window", "2026-03-28T09:00Z")
	if !strings.Contains(r.stderr, "Proceed? [y/N]") {
		t.Errorf("asked: %+v", r)
	}
	d.in = "y\n"
	r = d.must(0, "job", "trigger", "sweep", "--window", "2026-03-28T09:00Z")
	if !strings.Contains(r.stdout, "started: the window had been skipped") {
		t.Errorf("after a yes: %+v", r)
	}
	d.there = false
	d.must(0, "job", "trigger", "sweep", "--window", "2026-03-28T10:00Z", "--run-skipped")

	r = d.must(0, "key", "show", "sync:2026-03-28T12:00Z")
	if !strings.Contains(r.stdout, "⇥ coalesced") || !strings.Contains(r.stdout, "covered by sync:2026-03-29T18:00Z, which is ") {
		t.Errorf("coalesced: %+v", r)
	}
	if r = d.must(0, "run", "list", "--job", "sync"); !strings.Contains(r.stdout, "covered by sync:2026-03-29T18:00Z") {
		t.Errorf("coalesced: %+v", r)
	}
	// The night of the change has 23 hours, and its time does not exist.
	r = d.must(0, "key", "show", "report:2026-03-29")
	if !strings.Contains(r.stdout, "window 2026-03-29 00:00→24:00 Europe/Berlin (23 h)") || !strings.Contains(r.stdout, "(fire 2026-03-29T02:30)") {
		t.Errorf("caught up: %+v", r)
	}
	if r = d.must(0, "key", "show", "report:2026-03-29", "--show-tz", "Asia/Tokyo"); !strings.Contains(r.stdout, "done 2026-03-30 07:") || !strings.Contains(r.stdout, "Asia/Tokyo") {
		t.Errorf("in another zone: %+v", r)
	}
	for key, want := range map[string]string{
		"report:2026-03-31":       "is not open yet",
		"report:2026-13-31":       "names no window",
		"report:2026-03-20":       "has no record",
		"sweep:2026-03-29T02:30Z": "names no window",
	} {
		if r := d.must(5, "key", "show", key); !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "\n  → ") {
			t.Errorf("%s: %+v", key, r)
		}
	}

	// The clock leapt ahead of the machine's own: what may be done once only is held until somebody confirms the time.
	r = d.must(0, "freeze", "list")
	if !strings.Contains(r.stdout, "clock ") || !strings.Contains(r.stderr, "daybook freeze end clock --reason") {
		t.Fatalf("held: %+v", r)
	}
	d.must(0, "freeze", "list", "--json")
	if r = d.must(6, "status"); !strings.Contains(r.stdout, "held: the clock is not confirmed") {
		t.Errorf("status: %+v", r)
	}
	d.must(2, "freeze", "end", "clock")
	d.must(4, "freeze", "end", "clock", "--reason", "I looked at it")
	d.must(0, "freeze", "end", "clock", "--reason", "I looked at it", "-n")
	d.in, d.there = "yes\n", true
	if r = d.must(0, "freeze", "end", "clock", "--reason", "I looked at it"); !strings.Contains(r.stderr, "Proceed? [y/N]") {
		t.Errorf("end: %+v", r)
	}
	d.there = false
	d.must(5, "freeze", "end", "clock", "--reason", "again", "-y")
	d.serveUntil(`"live":{"scheduled":0,"running":0,"retryable":0}`, "status", "--json")

	golden.Equal(t, "testdata/next.golden", d.must(0, "job", "next", "report", "--from", "2026-10-23").stdout)
	golden.Equal(t, "testdata/job-show.golden", steady(d.must(0, "job", "show", "pay").stdout))
	golden.Equal(t, "testdata/story.golden", steady(d.must(0, "key", "show", "report:2026-03-29").stdout))
	golden.Equal(t, "testdata/status.golden", steady(d.must(6, "status").stdout))
	golden.Equal(t, "testdata/doctor.golden", steady(d.must(3, "doctor").stdout))
	for _, name := range []string{"status", "doctor"} {
		text, err := os.ReadFile("testdata/" + name + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if w := displayWidth(strings.TrimSuffix(line, "\n")); w > 80 {
				t.Errorf("%s is %d columns wide: %s", name, w, line)
			}
		}
	}
}

var unsteady = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`(2026-03-2[789]|2026-03-30) \d\d:\d\d:\d\d`), "$1 hh:mm:ss"},
	{regexp.MustCompile(`(?m)^  \d\d:\d\d:\d\d  `), "  hh:mm:ss  "},
	{regexp.MustCompile(` after \d+ m?s on \S+`), " after N s on HOST"},
	{regexp.MustCompile(` +\d+m?s  triggers`), "  Nms  triggers"},
	{regexp.MustCompile(`seen \S+ ago`), "seen N ago"},
	{regexp.MustCompile(`(last|\() ?\d+ m?s ago`), "$1 N s ago"},
	{regexp.MustCompile(`SQLite \S+, schema \d+, \S+ \S+`), "SQLite V, schema N, N KiB"},
	{regexp.MustCompile(`zone data \S+`), "zone data V"},
	{regexp.MustCompile(`the oldest for .*`), "the oldest for N"},
	// Who looked first after the machine had been away: the watch, or the scheduler.
	{regexp.MustCompile(`(alert job_late: due \S+), (?:no scheduler has\n    decided it|scheduled)\n`), "$1, WHY\n"},
}

// steady takes out of a text what differs from run to run.
func steady(s string) string {
	for _, u := range unsteady {
		s = u.re.ReplaceAllString(s, u.to)
	}
	return s
}

// TestTypedConfirmation: what touches money is confirmed letter by letter; anything else is no.
func TestTypedConfirmation(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), missedFile)
	d.must(0, "db", "migrate")
	d.must(0, "job", "trigger", "pay", "--date", "2026-03-27")
	d.there = true
	further := []string{"job", "trigger", "pay", "--window", "2026-03-27~2", "--reason", "the bank lost the file"}
	for _, typed := range []string{"", "y\n", "pay:2026-03-27\n", "PAY:2026-03-27~2\n"} {
		d.in = typed
		if r := d.must(4, further...); !strings.Contains(r.stderr, "Type pay:2026-03-27~2 to confirm: ") || !strings.Contains(r.stderr, "not confirmed: nothing was done") {
			t.Errorf("%q: %+v", typed, r)
		}
	}
	d.in = "pay:2026-03-27~2\n"
	if r := d.must(4, append(further, "--no-input")...); !strings.Contains(r.stderr, "--confirm=pay:2026-03-27~2") {
		t.Errorf("--no-input: %+v", r)
	}
	d.must(4, append(further, "--json")...)
	d.must(0, further...)
	d.in = ""
	d.must(4, "job", "pause", "pay", "--reason", "audit")
	d.in = "n\n"
	d.must(4, "job", "pause", "pay", "--reason", "audit")
	d.in = "Y\n"
	d.must(0, "job", "pause", "pay", "--reason", "audit")
}

// TestTables: columns line up whatever the script of a text, a terminal's edge cuts, and colours reach terminals only.
func TestTables(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), strings.Replace(missedFile, "owner: ops", "owner: 运维值班", 1))
	d.must(0, "db", "migrate")
	d.must(0, "job", "trigger", "report", "--date", "2026-03-27")
	d.must(0, "run", "cancel", "report:2026-03-27", "--reason", "磁盘已满，明天再跑")
	d.must(0, "job", "trigger", "sync", "--window", "2026-03-27T00:00Z")
	d.env["USER"] = "张伟"
	d.must(0, "run", "cancel", "sync:2026-03-27T00:00Z", "--reason", "no")
	list := d.must(0, "activity", "list").stdout
	edges := map[int]bool{}
	for line := range strings.Lines(list) {
		at := strings.Index(line, "磁盘")
		if at < 0 {
			at = strings.Index(line, "REASON")
		}
		if at >= 0 {
			edges[displayWidth(line[:at])] = true
		}
	}
	if len(edges) != 1 || !strings.Contains(list, "张伟") {
		t.Errorf("columns begin at %v\n%s", edges, list)
	}
	d.width = 98
	cut := d.must(0, "activity", "list").stdout
	for line := range strings.Lines(cut) {
		if w := displayWidth(strings.TrimSuffix(line, "\n")); w > 98 {
			t.Errorf("%d columns: %s", w, line)
		}
	}
	if !strings.Contains(cut, "磁盘") || !strings.Contains(cut, "…") {
		t.Errorf("cut: %s", cut)
	}
	d.width = 40 // the reason would vanish: the terminal may break the line
	if r := d.must(0, "activity", "list"); !strings.Contains(r.stdout, "明天再跑") {
		t.Errorf("cut: %s", r.stdout)
	}
	if r := d.must(0, "job", "list"); !strings.Contains(r.stdout, "运维值班") {
		t.Errorf("the owner is cut: %s", r.stdout)
	}
	d.width = 80
	if r := d.run("status"); !strings.Contains(r.stdout, "\x1b[") {
		t.Errorf("no colour on a terminal: %s", r.stdout)
	}
	for _, quiet := range []func(){func() { d.env["NO_COLOR"] = "" }, func() { delete(d.env, "NO_COLOR"); d.env["TERM"] = "dumb" }, func() { delete(d.env, "TERM"); d.width = 0 }} {
		quiet()
		if r := d.run("status"); strings.Contains(r.stdout, "\x1b") {
			t.Errorf("colour with %v, width %d", d.env, d.width)
		}
	}
	d.width, d.env["TERM"] = 80, "dumb"
	if r := d.run("key", "show", "report:2026-03-27"); strings.ContainsFunc(strings.ReplaceAll(r.stdout, "磁盘已满，明天再跑", ""), func(r rune) bool { return r > unicode.MaxASCII }) {
		t.Errorf("a dumb terminal gets %s", r.stdout)
	}
}

// TestControlCharacters: what a job, a far side or a person wrote does not reach the terminal as it is.
func TestControlCharacters(t *testing.T) {
	for _, s := range []string{"a\x1b[31mb", "a\nb", "a\u202eb", "a\u2028b", "a\x9bb", "a\tb"} {
		if got := oneLine(s); strings.ContainsAny(got, "\x1b\n\t\u202e\u2028\u009b") || !strings.HasPrefix(got, "a") || !strings.HasSuffix(got, "b") {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"", 10, ""},
		{"one two three", 7, "one two|three"},
		{"one two three", 80, "one two three"},
		{"a-very-long-word-of-a-key x", 10, "a-very-long-word-of-a-key|x"},
		{"连接被拒绝请重试", 8, "连接被拒|绝请重试"},
		{"错误 连接被拒绝", 10, "错误|连接被拒绝"},
		{"错误 连接被拒绝，请重试（稍后）。", 12, "错误 连接被|拒绝，请重试|（稍后）。"},
	} {
		if got := strings.Join(wrap(c.text, c.columns), "|"); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12 * time.Millisecond: "12ms", 59 * time.Second: "59s", 5*time.Minute + 4*time.Second: "5m04s",
		26 * time.Hour: "1d2h", 90 * time.Minute: "1h30m", -time.Minute: "-1m00s",
	} {
		if got := short(d).String(); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// TestCompletion: jobs and keys, quickly, and nothing at all where there is no ledger or a broken file.
func TestCompletion(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), missedFile)
	complete := func(args ...string) []string {
		t.Helper()
		r := d.must(0, append([]string{"__complete"}, args...)...)
		var words []string
		for word := range strings.Lines(r.stdout) {
			if word = strings.TrimSpace(word); !strings.HasPrefix(word, ":") {
				words = append(words, word)
			}
		}
		return words
	}
	if got := strings.Join(complete("job", "show", ""), " "); got != "pay report sweep sync" { // the file knows them
		t.Errorf("without a ledger: %v", got)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "daybook.db")); err == nil {
		t.Error("a completion has made a ledger")
	}
	d.serveUntil("report", "job", "list")
	d.must(0, "job", "trigger", "report", "--date", "2026-03-27")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"job", "show", ""}, "pay report sweep sync"},
		{[]string{"job", "show", "s"}, "sweep sync"},
		{[]string{"job", "show", "sync", ""}, ""},
		{[]string{"key", "show", "s"}, "sweep: sync:"},
		{[]string{"key", "show", "rep"}, "report:2026-03-27"},
		{[]string{"run", "logs", "report:"}, "report:2026-03-27"},
		{[]string{"dead", "replay", ""}, ""},
		{[]string{"status", "--job", "re"}, "report"},
		{[]string{"run", "list", "--state", "d"}, "done dead"},
		{[]string{"run", "list", "--state", ""}, "scheduled running retryable done dead skipped coalesced cancelled"},
		{[]string{"once", "--job", "sw"}, "sweep"},
		{[]string{"once", "--job", "x", "--tz", "Europe/Berl"}, "Europe/Berlin"},
		{[]string{"run", "resolve", "--as", "n"}, "not-done"},
		{[]string{"schedule", "fires", "daily 02:00", "--window", "previous-w"}, "previous-week"},
		{[]string{"job", "trigger", "sync", "--reason", ""}, ""},
		{[]string{"completion", "p"}, "powershell"},
	} {
		if got := strings.Join(complete(c.args...), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(d.dir, "daybook.yaml"), []byte("jobs: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := complete("job", "show", ""); len(got) != 0 {
		t.Errorf("with a broken file: %v", got)
	}
}

// TestLedgersThatCannotBeUsed: each says what is wrong, and nothing hangs.
func TestLedgersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, d *desk) *sql.DB {
		db, err := sql.Open("sqlite", filepath.Join(d.dir, "daybook.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() }) // the test is over
		return db
	}
	exec := func(t *testing.T, db *sql.DB, statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, d *desk)
		args  []string
		code  int
		want  string
	}{
		{"newer", func(t *testing.T, d *desk) {
			exec(t, open(t, d), "INSERT INTO daybook_migrations (version, name, checksum, applied_us) SELECT max(version) + 1, 'later', 'x', 0 FROM daybook_migrations")
		}, []string{"status"}, 2, "newer than this program"},
		{"newer for serve", func(t *testing.T, d *desk) {
			exec(t, open(t, d), "INSERT INTO daybook_migrations (version, name, checksum, applied_us) SELECT max(version) + 1, 'later', 'x', 0 FROM daybook_migrations")
		}, []string{"serve"}, 2, "newer than this program"},
		{"newer for migrate", func(t *testing.T, d *desk) {
			exec(t, open(t, d), "INSERT INTO daybook_migrations (version, name, checksum, applied_us) SELECT max(version) + 1, 'later', 'x', 0 FROM daybook_migrations")
		}, []string{"db", "migrate", "-n"}, 2, "newer than this program"},
		{"older", func(t *testing.T, d *desk) {
			exec(t, open(t, d), "DELETE FROM daybook_migrations WHERE version > 0")
		}, []string{"status"}, 6, "daybook db migrate"},
		{"damaged", func(t *testing.T, d *desk) {
			path := filepath.Join(d.dir, "daybook.db")
			for _, wal := range []string{"-wal", "-shm"} {
				_ = os.Remove(path + wal) // often there is none
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 100; i < len(b); i++ {
				b[i] = 0xA5
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"status"}, 6, "malformed"},
		{"locked", func(t *testing.T, d *desk) {
			db := open(t, d)
			db.SetMaxOpenConns(1)
			exec(t, db, "BEGIN EXCLUSIVE")
		}, []string{"job", "trigger", "report"}, 6, "locked"},
		{"a directory", func(t *testing.T, d *desk) {
			if err := os.Remove(filepath.Join(d.dir, "daybook.db")); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(d.dir, "daybook.db"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, []string{"status"}, 6, "directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), missedFile)
			d.must(0, "db", "migrate")
			c.spoil(t, d)
			r := d.must(c.code, c.args...)
			if !strings.HasPrefix(r.stderr, "daybook: ") || !strings.Contains(r.stderr, c.want) || r.stdout != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestLedgerOfAnother: who may not write the file, or may not even look into the folder, is told so. Root may do
// everything, so the program is run as somebody else.
func TestLedgerOfAnother(t *testing.T) {
	t.Parallel()
	s := newScene(t, "sqlite:daybook.db", missedFile)
	s.must(0, "db", "migrate")
	var attr *syscall.SysProcAttr
	if os.Geteuid() == 0 {
		attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	for dir := s.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Skipf("the folder of the test cannot be opened to others: %v", err)
		}
	}
	if err := os.Chmod(filepath.Join(s.dir, "daybook.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	readable := filepath.Join(s.dir, "program")
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(readable, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode os.FileMode
		want string
	}{{0o444, "the ledger cannot be written: "}, {0o000, "the ledger cannot be written: "}} {
		if err := os.Chmod(filepath.Join(s.dir, "daybook.db"), c.mode); err != nil {
			t.Fatal(err)
		}
		cmd := s.command("status")
		cmd.Path, cmd.SysProcAttr = readable, attr
		out, _ := cmd.CombinedOutput() // its code is looked at
		if code := cmd.ProcessState.ExitCode(); code != 6 || !strings.Contains(string(out), c.want) || !strings.Contains(string(out), "permission denied") {
			t.Errorf("mode %o: exit %d: %s", c.mode, code, out)
		}
	}
}

// TestBackupWhileServing: a copy taken in the midst of writing is whole.
func TestBackupWhileServing(t *testing.T) {
	t.Parallel()
	s := newScene(t, "sqlite:daybook.db", `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  tick: {schedule: every 1s, run: ["true"]}
`)
	stop := s.serve()
	for i := range 5 {
		file := fmt.Sprintf("copy-%d.db", i)
		s.must(0, "db", "backup", file)
		s.must(0, "job", "list", "--db", "sqlite:"+file)
	}
	if !waitFor(func() bool { return strings.Contains(s.must(0, "key", "find", "tick:"), "done") }) {
		t.Error("nothing ran beside the backups")
	}
	stop()
}

// TestMigrationByHand: the printed statements, run by somebody else's tool, make a ledger.
func TestMigrationByHand(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, ledger string) {
		s := newScene(t, ledger, missedFile)
		script := s.must(0, "db", "migrate", "--print")
		driver, source := "pgx", ledger
		if path, lite := strings.CutPrefix(ledger, "sqlite:"); lite {
			driver, source = "sqlite", path
		}
		db, err := sql.Open(driver, source)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), script); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if driver == "sqlite" { // the mode of the file is what a program sets that opens it for writing
			s.must(0, "db", "migrate")
		}
		info := s.must(0, "db", "info")
		if !regexp.MustCompile(`(?m)^ledger    [0-9a-f-]{36}$`).MatchString(info) || info != s.must(0, "db", "info") {
			t.Error(info)
		}
		s.must(0, "job", "trigger", "report", "--date", "2024-03-02")
	})
}

func TestPostgresIsBackedUpByItsOwnTools(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://u:hunter2@db:5432/x":              "pg_dump --format=custom --file=f.dump --dbname=postgres://u@db:5432/x",
		"postgres://db/x?password=hunter2&sslmode=on": "pg_dump --format=custom --file=f.dump --dbname='postgres://db/x?sslmode=on'",
	} {
		if got := dumpLine(text, "f.dump"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestWhatToDo: a place that takes nothing is told with what to do about it, whoever says so.
func TestWhatToDo(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"database or disk is full (13)": "make room", "write: no space left on device": "make room",
		"attempt to write a readonly database (8)": "is read-only", "unable to open database file: out of memory (14)": "needs to read and write",
		"database is locked (5)": "keeps it to itself", "file is not a database (26)": "work on a copy", "failed to connect to `host=x`": "is the server up", "something else": "",
	} {
		err := whatToDo(fmt.Errorf("plan: %w", daybook.New(daybook.CodeUnavailable, "write the ledger").Because(errors.New(said))))
		if hint := daybook.HintOf(err); want == "" && hint != "" || !strings.Contains(hint, want) {
			t.Errorf("%s: %q", said, hint)
		}
		if !strings.Contains(err.Error(), said) || daybook.CodeOf(err) != daybook.CodeUnavailable {
			t.Errorf("%s: %v", said, err)
		}
	}
	for cause, want := range map[syscall.Errno]string{syscall.ENOSPC: "make room", syscall.EROFS: "is read-only", syscall.EACCES: "needs to read and write"} {
		err := unwritable(daybook.New(daybook.CodeUnavailable, "the ledger cannot be written"), &fs.PathError{Op: "open", Path: "x", Err: cause})
		if !strings.Contains(daybook.HintOf(err), want) {
			t.Errorf("%s: %q", cause, daybook.HintOf(err))
		}
	}
	// A folder that cannot be made.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "db", "migrate", "--db", "sqlite:"+filepath.Join(file, "x", "daybook.db"))
	if r.code != 6 || !strings.Contains(r.stderr, "→ the user that runs daybook") {
		t.Errorf("%+v", r)
	}
}

// TestOneLedgerHasOneDirectory: whatever the ways to name it, what an attempt left alive is found.
func TestOneLedgerHasOneDirectory(t *testing.T) {
	for _, name := range []string{"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"} {
		t.Setenv(name, "")
	}
	same := []string{"postgres://me@127.0.0.1/app", "postgresql://me:secret@localhost:5432/app?sslmode=disable", "postgres://other@[::1]/app", "postgres://me@/app?host=localhost&port=5432",
		"postgres:///app?host=127.0.0.1&user=me&application_name=x"}
	for _, text := range same {
		if got, want := attemptDir(text), attemptDir(same[0]); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"postgres://me@localhost:5433/app", "postgres://me@localhost/other", "postgres://me@db/app", "postgres://me@localhost/app?search_path=two", "postgres://me@/app?host=/run/pg"} {
		if got := attemptDir(text); got == attemptDir(same[0]) || filepath.Dir(got) != filepath.Dir(attemptDir(same[0])) {
			t.Errorf("%s: %s", text, got)
		}
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if got, want := attemptDir("sqlite:"+link), attemptDir("sqlite:"+file); filepath.Base(got) != "a.db-run" || filepath.Base(want) != "a.db-run" {
		t.Errorf("%s, %s", got, want)
	}
}
