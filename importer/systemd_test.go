package importer

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/internal/golden"
)

// unitsOf makes units of a text in which "# name" begins each file; a name with a '/' is a drop-in.
func unitsOf(text string) (units []Unit) {
	for _, part := range strings.Split("\n"+text, "\n### ")[1:] {
		path, body, _ := strings.Cut(part, "\n")
		name, _, _ := strings.Cut(path, ".d/")
		file := UnitFile{Path: "/etc/systemd/system/" + path, Text: []byte(body)}
		if i := slices.IndexFunc(units, func(u Unit) bool { return u.Name == name }); i >= 0 {
			units[i].Files = append(units[i].Files, file)
			continue
		}
		units = append(units, Unit{Name: name, Files: []UnitFile{file}})
	}
	return units
}

func systemd(text string) Result {
	return Systemd(unitsOf(text), Manager{Dir: "/etc/systemd/system", Enabled: func(string) bool { return true }}, "daybook import systemd", options())
}

// TestOnCalendar: what becomes of an expression; empty: it cannot be said.
func TestOnCalendar(t *testing.T) {
	for text, want := range map[string]string{
		"minutely": "* * * * *", "hourly": "hourly", "daily": "daily 00:00", "weekly": "weekly mon 00:00", "monthly": "monthly 1 00:00", "quarterly": "quarterly first day 00:00",
		"semiannually": "0 0 1 1,7 *", "yearly": "yearly 01-01 00:00", "Annually": "yearly 01-01 00:00",
		"Mon..Fri *-*-* 0/4:00": "0 */4 * * 1-5",
		"*-*-* 02:30":           "daily 02:30", "02:30": "daily 02:30", "*-*-* 02:30:00.000": "daily 02:30", "*-*-*": "daily 00:00",
		"Mon 09:00": "weekly mon 09:00", "Sat,Sun 10:00": "0 10 * * 0,6", "Fri..Sun": "0 0 * * 0,5,6", "Monday": "weekly mon 00:00", "Mon-Wed,Fri 1:2": "2 1 * * 1-3,5",
		"*-*-15 09:00": "monthly 15 09:00", "*-12-24 18:00": "yearly 12-24 18:00", "12-24": "yearly 12-24 00:00", "*-*-01,15 06:00": "0 6 1,15 * *",
		"*-*~01 18:00": "monthly last day 18:00", "*-*~1": "monthly last day 00:00", "*-3,6,9,12~1 18:00": "quarterly last day 18:00", "*-12~1 23:59": "yearly last day 23:59",
		"Fri *-*~07/1 12:00": "monthly last fri 12:00", "Mon *-*-01..07 09:00": "monthly first mon 09:00", "Tue *-*-8..14 9:00": "monthly second tue 09:00", "*-*~01 6,18:00": "monthly last day 06:00; monthly last day 18:00",
		"*:0/15": "*/15 * * * *", "*:05": "hourly :05", "*:*": "* * * * *", "8..18/2:30": "30 8,10,12,14,16,18 * * *", "0/2:0/30": "0,30 */2 * * *",
		"*:*:0/10": "every 10s", "*:*:*": "every 1s",
		"*-*-* 02:30:15": "", "2026-*-* 02:30": "", "Fri *-*-13": "", "*-02~01": "", "*-*~03": "", "*:*:0/7": "", "Mon *-01-01..07": "",
	} {
		c, err := parseOnCalendar(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		forms, ok := c.forms()
		got := strings.Join(forms, "; ")
		if text == "*:05" {
			want = "5 * * * *"
		}
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "foo", "Mon Tue", "25:00", "*-13-01", "*-*-32", "1:2:3:4", "*/2:00", "Sun..Mon", "daily 02:00", "1-2-3-4", "@1234", "02:00 Mon", "*-*-1..", "1..0:00", "0/0:00"} {
		if c, err := parseOnCalendar(text); err == nil {
			t.Errorf("%q: %+v", text, c)
		} else if daybook.HintOf(err) == "" {
			t.Errorf("%q: no hint", text)
		}
	}
}

// TestOnCalendarMeaning imports expressions by chance and compares each second of a day, and each day of two years, with
// what the expression itself matches.
func TestOnCalendarMeaning(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	said := 0
	for range 500 {
		text := strings.TrimSpace(fmt.Sprintf("%s *-%s%s %s:%s", pick("", "", "Mon", "Mon..Fri", "Sat,Sun", "Sun"), pick("*", "*", "*", "2", "1,4,7,10", "3/3", "12"),
			pick("-*", "-*", "-1", "-15", "-1..7", "-8..14", "-1,15", "-31", "~1", "~07/1", "~3", "-2/7"), pick("*", "0", "9", "0/6", "8..17", "23", "1,2"), pick("0", "30", "0/15", "*", "59", "5..10")))
		c, err := parseOnCalendar(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		forms, ok := c.forms()
		if !ok {
			continue
		}
		said++
		s, err := calendar.Compile(calendar.Spec{Schedule: strings.Join(forms, "\n"), Zone: "UTC"})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		at := time.Date(2023+rng.IntN(2), 12, 1, 0, 0, 0, 0, time.UTC)
		for d := range 120 {
			day := at.AddDate(0, 0, d)
			var got, want []string
			for f := range s.Between(day.Add(-time.Second), day.Add(24*time.Hour-time.Second)) {
				got = append(got, f.At.Format("15:04:05"))
			}
			if c.onDate(day) {
				for _, clock := range c.times() {
					want = append(want, clock+":00")
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s is imported as %s: on %s it fires at %s, systemd at %s", text, forms, day.Format("Mon 2006-01-02"), got, want)
			}
		}
	}
	if said < 150 {
		t.Errorf("only %d of 500 were said", said)
	}
}

// TestSystemdAgrees asks systemd itself, where it is installed.
func TestSystemdAgrees(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("no systemd-analyze here: not compared with systemd itself")
		return
	}
	for _, text := range []string{"Mon..Fri *-*-* 0/4:00", "*-*~01 18:00", "Fri *-*~07/1 12:00", "Fri *-*-13 12:00", "quarterly", "semiannually", "*:0/15", "Sat,Sun 10:00", "*-02~03", "Mon *-*-1..7 9:00"} {
		cmd := exec.CommandContext(t.Context(), program, "calendar", "--base-time=2026-03-28 12:00:00", "--iterations=3", text)
		cmd.Env = []string{"TZ=UTC", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s: %v: %s", text, err, out)
			continue
		}
		c, err := parseOnCalendar(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, fire := range c.next(noon, "UTC") {
			if !strings.Contains(string(out), fire) {
				t.Errorf("%s: %s is not among\n%s", text, fire, out)
			}
		}
	}
}

func TestNextFires(t *testing.T) {
	for text, want := range map[string]string{
		"Fri *-*-13 12:00": "Fri 2026-11-13 12:00:00, Fri 2027-08-13 12:00:00, Fri 2028-10-13 12:00:00",
		"*-02~03 12:00":    "Fri 2027-02-26 12:00:00, Sun 2028-02-27 12:00:00, Mon 2029-02-26 12:00:00",
		"*-*-* 02:30:15":   "Sun 2026-03-29 02:30:15, Mon 2026-03-30 02:30:15, Tue 2026-03-31 02:30:15",
		"2020-*-* 02:30":   "",
		"2026-03-28 23:00": "Sat 2026-03-28 23:00:00",
	} {
		c, err := parseOnCalendar(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.next(noon, "UTC"), ", "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "5min 20s": 320 * time.Second, "1h30m": 90 * time.Minute, "2 hours": 2 * time.Hour, "1d": 24 * time.Hour, "1w": 168 * time.Hour, "500ms": 500 * time.Millisecond, "0": 0,
		"infinity": -1, "": -1, "-5": -1, "5 foo": -1, "1000y": -1, "99999999999999999999": -1, "1.5h": -1,
	} {
		if d, ok := parseSpan(text); ok != (want >= 0) || ok && d != want {
			t.Errorf("%q: %s %t", text, d, ok)
		}
	}
}

// TestServices: what becomes of a service.
func TestServices(t *testing.T) {
	for _, c := range []struct{ service, command, note string }{
		{"ExecStart=/usr/bin/x --all", "/usr/bin/x --all", ""},
		{"ExecStart=/usr/bin/x 'a b' \"c\\td\" e\\x20f", "/usr/bin/x 'a b' 'c\td' 'e f'", ""},
		{"ExecStart=/usr/bin/x \\\n  # a remark\n  --all", "/usr/bin/x --all", ""},
		{"ExecStart=/usr/bin/x ${A} $B a$C $$D 100%%", `/usr/bin/x "${A}" $B 'a$C' '$'D 100%`, ""},
		{"ExecStart=:/usr/bin/x ${A}", "/usr/bin/x '${A}'", ""},
		{"ExecStart=/usr/bin/x {date}", "/usr/bin/x '{date}'", ""},
		{"ExecStart=-/usr/bin/x", "{ /usr/bin/x || true; }", ""},
		{"ExecStart=+/usr/bin/x", "/usr/bin/x", "the '+' before /usr/bin/x is left out"},
		{"ExecStart=@/usr/bin/x shown --all", "/usr/bin/x --all", "the '@' before"},
		{"ExecStart=/a\nExecStart=/b c\nExecStartPre=-/p\nExecStartPost=/q", "{ /p || true; } && /a && /b c && /q", "4 commands become one line"},
		{"ExecStart=/a ; /b", "/a && /b", "2 commands"},
		{"ExecStart=/a\nExecStart=\nExecStart=/b", "/b", ""},
		{"ExecCondition=/usr/bin/ok\nExecStart=/a", "{ /usr/bin/ok || exit 0; } && /a", "ExecCondition"},
		{"ExecStart=/a\nEnvironmentFile=/etc/default/a\nEnvironmentFile=-/etc/b", "set -a; . /etc/default/a; [ ! -e /etc/b ] || . /etc/b; set +a; /a", "read by the shell"},
		{"ExecStart=/bin/x %n %i %p %h %S/x", "/bin/x job.service '' job /root /var/lib/x", ""},
		{"ExecStart=/bin/x %m", "", "the specifier %m"},
		{"ExecStart=/bin/x 'a", "", "a quote that is not closed"},
		{"ExecStart=/bin/x \\q", "", "unknown escape"},
		{"ExecStart=\"\" /a", "", "a command is empty"},
		{"Type=oneshot", "", "has no ExecStart"},
		{"ExecStart=/a\nPrivateTmp=yes\nMemoryMax=1G", "/a", "not carried over: PrivateTmp=yes, MemoryMax=1G"},
		{"ExecStart=/a\nnonsense", "/a", "a line that systemd passes over: nonsense"},
		{"ExecStart=/a\nType=forking", "/a", "Type=forking"},
	} {
		r := systemd("### job.timer\n[Timer]\nOnCalendar=daily\n### job.service\n[Service]\n" + c.service + "\n")
		got := ""
		if len(r.Jobs) > 0 {
			got = read(t, r).Jobs[0].Command.String()
		}
		text := string(r.YAML)
		for _, l := range r.Left {
			text += l.Err.Error()
		}
		if got != c.command || !strings.Contains(text, c.note) {
			t.Errorf("%s\n got %s\nwant %s, with %q\n%s", c.service, got, c.command, c.note, text)
		}
	}
}

// TestTimers: policies, places and what is not said.
func TestTimers(t *testing.T) {
	r := systemd(`### a.timer
[Timer]
OnCalendar=daily
OnCalendar=Mon 09:00
RandomizedDelaySec=10min
Persistent=true
### a.timer.d/override.conf
[Timer]
OnCalendar=
OnCalendar=*-*-* 03:00 Asia/Tokyo
OnCalendar=*-*-* 04:00 UTC
### a.service
[Service]
User=www-data
WorkingDirectory=~
Environment="A=b c" D=%%e F=${G}
TimeoutStartSec=2h
Type=oneshot
ExecStart=/a
### b.timer
[Timer]
OnUnitActiveSec=15min
OnBootSec=5min
Unit=c.service
### c.service
[Service]
WorkingDirectory=-/srv
RuntimeMaxSec=infinity
ExecStart=/c
### d.timer
[Timer]
OnBootSec=5min
### d.service
[Service]
ExecStart=/d
### e@x-y.timer
[Timer]
OnCalendar=hourly
### e@.service
[Service]
ExecStart=/e %i %I
### f@.timer
[Timer]
OnCalendar=hourly
### g.timer
[Timer]
OnCalendar=hourly
Unit=g.target
### h.timer
[Timer]
OnCalendar=Fri *-*-13 12:00
OnCalendar=daily
### h.service
[Service]
ExecStart=/h
`)
	f := read(t, r)
	if !slices.Equal(r.Jobs, []string{"a", "a-2", "b", "e-x-y", "h"}) {
		t.Fatal(r.Jobs)
	}
	a := &f.Jobs[0]
	if a.Job.Schedule != "daily 03:00" || a.Timezone != "Asia/Tokyo" || f.Jobs[1].Timezone != "UTC" || a.Jitter != 10*time.Minute || a.Missed != daybook.Coalesce ||
		a.User != "www-data" || a.Dir != "/var/www" || a.Timeout != 2*time.Hour || a.Env["A"] != "b c" || a.Env["D"] != "%e" || len(a.Env) != 2 {
		t.Errorf("%+v", a.Job)
	}
	if b := &f.Jobs[2]; b.Job.Schedule != "every 15m" || b.Missed != daybook.SkipMissed || b.Timeout != -1 || b.Dir != "/srv" {
		t.Errorf("%+v", b.Job)
	}
	if e := &f.Jobs[3]; !slices.Equal(e.Command.Argv, []string{"/e", "x-y", "x/y"}) || e.Dir != "/" {
		t.Errorf("%+v", e.Job)
	}
	if len(r.Left) != 4 {
		t.Errorf("%v", r.Left)
	}
	for _, said := range []string{"OnBootSec=5min is left out", "F is left out", "every counts from the Unix epoch", "d.timer says no time", "f@.timer is a template", "it starts g.target",
		"h.timer:2: OnCalendar=Fri *-*-13 12:00 is no form", "its next fires: Fri 2026-11-13 12:00:00", "systemctl disable --now a.timer", "www-data"} {
		if !strings.Contains(string(r.YAML), said) {
			t.Errorf("%q is not said", said)
		}
	}
	golden.Equal(t, "testdata/systemd.golden", r.YAML)
}
