package importer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/internal/golden"
)

// TestOneLine: what becomes of a line of a crontab. Want is schedule | command | what else, as the file says it.
func TestOneLine(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"0 2 * * * /usr/bin/backup --all", `0 2 * * * | run [/usr/bin/backup --all]`},
		{"  0\t2  * * *\t/usr/bin/backup", `0 2 * * * | run [/usr/bin/backup]`},
		{"*/15 0-7,22 1,15 jan-mar,DEC mon-fri x", `*/15 0-7,22 1,15 jan-mar,DEC mon-fri | run [x]`},
		{"0 0 * * 7 x", `0 0 * * 7 | run [x]`},
		{"0 0 * * 5-7 x", `0 0 * * 5-7 | run [x]`},
		{"*/90 * * * * x", `0 * * * * | run [x]`}, // a step that leaves one value
		{"- 0 2 * * * x", ``},
		{"-0 2 * * * x", `0 2 * * * | run [x]`}, // cron: not into the log
		{"@hourly x", `hourly | run [x]`}, {"@daily x", `daily 00:00 | run [x]`}, {"@midnight x", `daily 00:00 | run [x]`}, {"@weekly x", `weekly sun 00:00 | run [x]`},
		{"@monthly x", `monthly 1 00:00 | run [x]`}, {"@yearly x", `yearly 01-01 00:00 | run [x]`}, {"@annually x", `yearly 01-01 00:00 | run [x]`},
		{"@reboot x", ``}, {"@fortnightly x", ``},

		// day of month and weekday: either, unless one begins with a star
		{"0 9 13 * 5 x", `0 9 13 * 5 | run [x]`},
		{"0 9 1-31 * 1 x", `0 9 * * * | run [x]`},
		{"0 9 1 * 0-6 x", `0 9 * * * | run [x]`},
		{"0 9 */2 * * x", `0 9 */2 * * | run [x]`},
		{"0 9 */2 * 1 x", ``},
		{"0 9 1 * */2 x", ``},
		{"5 9 */100,1-7 * mon x", `monthly first mon 09:05 | run [x]`},
		{"5 9 */100,8-14 * mon x", ``}, // the 1st as well

		// random
		{"0~30 3 * * * x", `0 3 * * * | run [x] | jitter 30m0s`},
		{"~ 3 * * * x", `0 3 * * * | run [x] | jitter 59m0s`},
		{"10~ 3 * * * x", `10 3 * * * | run [x] | jitter 49m0s`},
		{"~ 1~4 * * * x", `0 1 * * * | run [x] | jitter 3h59m0s`},
		{"0 3 1~10 * * x", ``},

		// a shell, or none
		{`0 2 * * * echo 'a b' > /tmp/x`, `0 2 * * * | shell echo 'a b' > /tmp/x`},
		{`0 2 * * * /bin/x 'a b' "c d" -e=1`, `0 2 * * * | run [/bin/x a b c d -e=1]`},
		{`0 2 * * * cd /srv && ./x`, `0 2 * * * | shell cd /srv && ./x`},
		{`0 2 * * * X=1 ./x`, `0 2 * * * | shell X=1 ./x`},
		{`0 2 * * * /bin/x $HOME`, `0 2 * * * | shell /bin/x $HOME`},
		{`0 2 * * * ls *.txt`, `0 2 * * * | shell ls *.txt`},
		{`0 2 * * * echo hello`, `0 2 * * * | shell echo hello`},
		{`0 2 * * * /bin/x ~/y`, `0 2 * * * | shell /bin/x ~/y`},
		{`0 2 * * * /bin/x {date}`, `0 2 * * * | shell /bin/x {date}`}, // nothing of ours is filled in
		{`0 2 * * * /bin/x it's`, `0 2 * * * | shell /bin/x it's`},     // as broken as it was
		{"0 2 * * * /bin/x # y", `0 2 * * * | shell /bin/x # y`},       // comments stand on lines of their own

		// percent
		{`0 2 * * * date +\%F`, `0 2 * * * | run [date +%F]`},
		{`0 2 * * * cat%one%two\%three`, "0 2 * * * | run [cat] | stdin \"one\\ntwo%three\\n\""},
		{`0 2 * * * cat%%`, "0 2 * * * | run [cat] | stdin \"\\n\""},
		{`0 2 * * * cat%`, `0 2 * * * | run [cat]`},
		{`0 2 * * * cat%a\b\\%c`, `0 2 * * * | run [cat] | stdin "a\\b\\%c\n"`},
		{`0 2 * * * echo \\%in`, `0 2 * * * | shell echo \\ | stdin "in\n"`},
		{`0 2 * * * %x`, ``},

		// faults
		{"60 * * * * x", ``}, {"* 24 * * * x", ``}, {"* * 0 * * x", ``}, {"* * * 13 * x", ``}, {"* * * * 8 x", ``}, {"* * * foo * x", ``},
		{"5/15 * * * * x", ``}, {"30-10 * * * * x", ``}, {"* * * * fri-sun x", ``}, {"*/0 * * * * x", ``}, {"1,,2 * * * * x", ``}, {"+1 * * * * x", ``},
		{"0 0 30 2 * x", ``}, {"0 2 * * *", ``}, {"0 2 * *", ``}, {"0", ``}, {"hello", ``}, {"0 2 * * * \xff", ``},
	} {
		r := table("0 1 * * * before\n" + c.line + "\n")
		f := read(t, r)
		if f.Jobs[0].Name != "before" {
			t.Fatalf("%s: %v", c.line, r.Jobs)
		}
		got := ""
		if len(f.Jobs) > 1 {
			got = told(&f.Jobs[1])
		}
		if got != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.line, got, c.want)
		}
		if (len(r.Left) == 0) != (c.want != "") {
			t.Errorf("%q: %v", c.line, r.Left)
		}
		for _, l := range r.Left {
			if l.Line != 2 || l.File != "crontab" || daybook.HintOf(l.Err) == "" || !strings.Contains(string(r.YAML), "# NOT IMPORTED: "+l.Place()) {
				t.Errorf("%q: %s: %v", c.line, l.Place(), l.Err)
			}
		}
	}
}

// told writes down what was imported.
func told(j *config.Job) string {
	s := strings.ReplaceAll(j.Job.Schedule, "\n", "; ") + " | "
	if j.Command.Shell != "" {
		s += "shell " + j.Command.Shell
	} else {
		s += fmt.Sprintf("run %s", j.Command.Argv)
	}
	if j.Stdin != "" {
		s += fmt.Sprintf(" | stdin %q", j.Stdin)
	}
	if j.Jitter > 0 {
		s += " | jitter " + j.Jitter.String()
	}
	return s
}

// TestColumns: a fault says where it is.
func TestColumns(t *testing.T) {
	for line, column := range map[string]int{
		"61 * * * * x": 1, " 1 99 * * * x": 4, "0 0 1,2,40 * * x": 9, "0 2 * *": 8, "0 2 */3 * mon x": 5, "0~70 1 * * * x": 3, "@reboot x": 1,
	} {
		r := table(line + "\n")
		if len(r.Left) != 1 || r.Left[0].Column != column || len(r.Jobs) != 0 || r.YAML != nil {
			t.Errorf("%q: %+v", line, r)
		}
	}
}

// TestVariables: NAME = value lines count for what stands below them, are never expanded, and some are for cron alone.
func TestVariables(t *testing.T) {
	r := table(`A=one
"B C" = x
 D = ' two words '
E = "quo'ted"   
F = trailing   
G =
PATH=$PATH:/opt/bin
H=${HOME}
DAYBOOK_X=1
SHELL=/bin/bash
HOME=/srv/app
MAILTO="ops@example.com, me@example.com"
MAILFROM=cron@example.com
CONTENT_TYPE=text/plain
0 2 * * * one | two
A=three
SHELL=/bin/sh
HOME=relative
MAILTO=""
RANDOM_DELAY=15
0 3 * * * three && four
TZ=Asia/Tokyo
0 4 * * * five`)
	f := read(t, r)
	if len(f.Jobs) != 3 {
		t.Fatal(r.Jobs)
	}
	one, three := &f.Jobs[0], &f.Jobs[1]
	want := map[string]string{"A": "one", "D": " two words ", "E": "quo'ted", "F": "trailing", "G": "", "PATH": "$PATH:/opt/bin", "SHELL": "/bin/bash", "HOME": "/srv/app"}
	if !maps.Equal(one.Env, want) || one.Dir != "/srv/app" || !slices.Equal(one.Command.Argv, []string{"/bin/bash", "-c", "one | two"}) {
		t.Errorf("%v %s %v", one.Env, one.Dir, one.Command)
	}
	if three.Env["A"] != "three" || three.Command.Shell != "three && four" || three.Jitter != 15*time.Minute || three.Dir != "" {
		t.Errorf("%v %v %s %s", three.Env, three.Command, three.Jitter, three.Dir)
	}
	if five := &f.Jobs[2]; five.Env["TZ"] != "Asia/Tokyo" || five.Timezone != "Europe/Berlin" {
		t.Errorf("%v %s", five.Env, five.Timezone)
	}
	if len(f.Channels) != 1 || len(f.Alerts.Routes) != 2 {
		t.Errorf("%+v", f.Channels)
	}
	for _, said := range []string{"line 2: B C is left out", "line 8: H is left out", "line 9: DAYBOOK_X is left out", "line 13: MAILFROM", "line 14: CONTENT_TYPE", `line 19: MAILTO="": nobody was mailed`,
		"line 22: TZ is given", "line 23: the last line does not end", "cron expands nothing", "mail -s \"$DAYBOOK_ALERT_SUBJECT\" -- ops@example.com me@example.com"} {
		if !strings.Contains(strings.ReplaceAll(string(r.YAML), "\n#   ", " "), said) {
			t.Errorf("%q is not said:\n%s", said, r.YAML)
		}
	}
}

// TestShellWithBraces: an argument in which Daybook would fill something in goes through a shell of ours.
func TestShellWithBraces(t *testing.T) {
	f := read(t, table("SHELL=/bin/bash\n0 2 * * * echo \"{date} it's $X\"\n"))
	if want := `/bin/bash -c 'echo "{date} it'\''s $X"'`; f.Jobs[0].Command.Shell != want {
		t.Errorf("%s", f.Jobs[0].Command.Shell)
	}
}

// TestCronZone: which cron it was decides whether CRON_TZ moved a fire.
func TestCronZone(t *testing.T) {
	const text = "CRON_TZ=America/New_York\n0 8 * * * x\n"
	f := read(t, table(text))
	if f.Jobs[0].Timezone != "Europe/Berlin" {
		t.Error(f.Jobs[0].Timezone)
	}
	o := options()
	o.ObeyZone = true
	r := Crontab([]Table{{Name: "crontab", Text: []byte(text)}}, "daybook import crontab", o)
	if f := read(t, r); f.Jobs[0].Timezone != "America/New_York" {
		t.Error(f.Jobs[0].Timezone)
	}
	if f := read(t, table("CRON_TZ=Mars\n0 8 * * * x\n")); f.Jobs[0].Timezone != "Europe/Berlin" {
		t.Error(f.Jobs[0].Timezone)
	}
}

// TestTablesOfTheSystem have a user in each line, and directories of programs.
func TestTablesOfTheSystem(t *testing.T) {
	r := Crontab([]Table{
		{Name: "/etc/crontab", System: true, Edit: "sudoedit /etc/crontab", Text: []byte("17 * * * * root cd / && run-parts --report /etc/cron.hourly\n" +
			"25 6 * * * root test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )\n")},
		{Name: "/etc/cron.d/app", System: true, Edit: "sudoedit /etc/cron.d/app", Text: []byte("*/5 * * * * www-data /srv/app/bin/mail\n0 2 * * * backup\n")},
	}, "daybook import crontab --system", options())
	f := read(t, r)
	if !slices.Equal(r.Jobs, []string{"run-parts", "dpkg", "logrotate", "mail"}) || !slices.Equal(r.Users, []string{"root", "www-data"}) || len(r.Left) != 1 {
		t.Fatalf("%v %v %v", r.Jobs, r.Users, r.Left)
	}
	if j := &f.Jobs[2]; j.User != "root" || j.Dir != "/" || !slices.Equal(j.Command.Argv, []string{"/etc/cron.daily/logrotate"}) || j.Job.Schedule != "25 6 * * *" {
		t.Errorf("%+v", j.Job)
	}
	if j := &f.Jobs[3]; j.User != "www-data" || j.Dir != "/var/www" {
		t.Errorf("%+v", j.Job)
	}
	if !strings.Contains(string(r.YAML), "run-parts starts the programs of /etc/cron.hourly") || !strings.Contains(string(r.YAML), "sudoedit /etc/cron.d/app    # comment out line 1:") || !strings.Contains(string(r.YAML), "anacrontab") {
		t.Errorf("%s", r.YAML)
	}
}

// TestNames: a job is called by what its line is about, and no name is given twice.
func TestNames(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/local/bin/backup.sh --all":                              "backup",
		"cd /srv/app && flock -n /tmp/l python3 -u bin/Send_Mails.py": "send_mails",
		"nice -n 10 ionice -c2 /opt/My.Job":                           "my-job",
		"flock -w 10 /tmp/x -c '/opt/run me'":                         "run",
		"cd /srv && /usr/bin/php artisan schedule:run >> /dev/null":   "artisan-schedule-run",
		"restic -r s3:x backup /home":                                 "restic-backup",
		"curl -fsS https://example.com/jobs/renew?x=1":                "renew",
		"curl -fsS https://example.com":                               "example-com",
		"test -x /usr/bin/a && /usr/bin/a -q":                         "a",
		"[ -d /run/x ] || exit 0; A=1 B=2 timeout 10m ./bin/sync.rb":  "sync",
		"bash -c 'cd /x; ./deploy'":                                   "deploy",
		"python3 -m app.jobs.clean":                                   "app-jobs-clean",
		"/usr/bin/flock -n /tmp/l /usr/local/bin/often --minutely":    "often",
		"cd /app && bundle exec rake reports:weekly":                  "rake-reports-weekly",
		"[ -f /tmp/run ] && rm /tmp/run && /opt/app/bin/job-a":        "job-a",
		"rm -rf /tmp/x":                       "rm",
		"su - postgres -c 'vacuumdb -a'":      "vacuumdb",
		"date >> /tmp/x":                      "date",
		"sudo -u www-data /opt/x":             "x",
		"(cd /a; ./b)":                        "b",
		"ÄÖÜ":                                 "job",
		"/opt/" + strings.Repeat("long-", 30): "long-long-long-long-long-long-long-long",
		"env -u A B=1 sleep 5; /opt/real":     "real",
		"[ \"$(date +%d)\" = 01 ] && wget -qO- http://x.example/a/b/":   "b",
		"/usr/bin/env PYTHONPATH=/srv /srv/venv/bin/python /srv/x.py y": "x",
	} {
		if got := sanitize(nameOf(command)); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	if r := table("0 1 * * * x\n0 2 * * * x\n0 3 * * * x\n"); !slices.Equal(r.Jobs, []string{"x", "x-2", "x-3"}) {
		t.Error(r.Jobs)
	}
}

// TestHabits: what people put around a command because cron lacks it is named, and left as it is.
func TestHabits(t *testing.T) {
	for command, want := range map[string]string{
		"flock -n /tmp/l x": "the lock can go", "chronic x": "the wrapper can go", "x >/dev/null 2>&1": "the redirection can go", "x && curl -m 10 https://hc-ping.com/u": "the ping can go",
		"timeout 10m x": "timeout does it", "sleep $((RANDOM % 60)); x": "jitter spreads", "x | mail -s y me": "alerts do that",
	} {
		r := table("0 2 * * * " + strings.ReplaceAll(command, "%", `\%`) + "\n")
		if f := read(t, r); !strings.Contains(string(r.YAML), want) || f.Jobs[0].Command.String() != command && !strings.HasPrefix(command, "flock") && !strings.HasPrefix(command, "timeout") {
			t.Errorf("%s: %s\n%s", command, f.Jobs[0].Command, r.YAML)
		}
	}
}

// TestSlips: what people get wrong in a crontab is said, and imported as cron reads it.
func TestSlips(t *testing.T) {
	r := table("0 9 * * * curl -s \"https://example.com/?q=a%20b\"\n15 * * * * root /usr/bin/certbot renew\n")
	f := read(t, r)
	if f.Jobs[0].Command.Shell != `curl -s "https://example.com/?q=a` || f.Jobs[0].Stdin != "20b\"\n" || !strings.Contains(string(r.YAML), "cuts a quote in two") {
		t.Errorf("%s", r.YAML)
	}
	if f.Jobs[1].Command.Argv[0] != "root" || !strings.Contains(string(r.YAML), "import it with --system") {
		t.Errorf("%s", r.YAML)
	}
}

// TestCalendarCases: the crontab lines among the cases of the calendar fire as the cases say, once they are imported.
func TestCalendarCases(t *testing.T) {
	src, err := os.ReadFile("../calendar/testdata/calendar.tsv")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, row := range strings.Split(strings.TrimSpace(string(src)), "\n")[1:] {
		c := strings.Split(row, "\t")
		id, schedule, zone, from, to, fires := c[0], c[1], c[2], c[3], c[4], c[5]
		if len(strings.Fields(schedule)) != 5 || strings.Contains(schedule, ":") {
			continue
		}
		n++
		o := options()
		o.Zone = zone
		f := read(t, Crontab([]Table{{Name: "crontab", Text: []byte(schedule + " x\n")}}, "x", o))
		after, err1 := time.Parse(time.RFC3339, from)
		until, err2 := time.Parse(time.RFC3339, to)
		if err1 != nil || err2 != nil {
			t.Fatal(row)
		}
		var got []string
		for fire := range f.Jobs[0].Schedule.Between(after, until) {
			if fire.Skip == "" {
				got = append(got, fire.At.UTC().Format(time.RFC3339))
			}
		}
		if strings.Join(got, ",") != fires {
			t.Errorf("%s %s: %s\n%s", id, schedule, got, fires)
		}
	}
	if n < 10 {
		t.Errorf("only %d cases", n)
	}
}

// cronMatches is cron's own rule, written down once more: a minute is matched against the five sets.
func cronMatches(sets [5]cronSet, at time.Time) bool {
	has := func(i, v int) bool { return sets[i].bits&(1<<v) != 0 }
	dom, dow := has(fDom, at.Day()), has(fDow, int(at.Weekday()))
	day := dom || dow
	if sets[fDom].star || sets[fDow].star {
		day = dom && dow
	}
	return has(fMinute, at.Minute()) && has(fHour, at.Hour()) && has(fMonth, int(at.Month())) && day
}

// TestCronsMeaning imports lines by chance and compares each minute of some weeks with cron's own rule.
func TestCronsMeaning(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	imported := 0
	for range 400 {
		texts := [5]string{
			pick("0", "30", "*/20", "5-50/15", "0,59", "*", "*/45", "*/70"),
			pick("0", "12", "*", "*/6", "9-17/4", "23", "0-23"),
			pick("*", "*", "1", "13", "1-7", "1-31", "*/2", "*/100,1-7", "31", "28-31", "15,1", "2-30/7"),
			pick("*", "*", "1-12", "2", "*/2", "jan,JUL", "3-5"),
			pick("*", "*", "0", "7", "1-5", "0-6", "0-7", "*/2", "sun", "mon,wed", "5-7", "*/7"),
		}
		columns := [5]int{1, 1, 1, 1, 1}
		tm, err := parseTiming(texts, columns)
		if err != nil {
			t.Fatalf("%v: %v", texts, err)
		}
		p, err := tm.plan()
		if err != nil {
			continue
		}
		imported++
		s, err := calendar.Compile(calendar.Spec{Schedule: strings.Join(p.schedule, "\n"), Zone: "UTC"})
		if err != nil {
			t.Fatalf("%v: %v", texts, err)
		}
		from := time.Date(2024, time.Month(1+rng.IntN(12)), 1+rng.IntN(28), 0, 0, 0, 0, time.UTC)
		next, ok := s.Next(from.Add(-time.Second))
		for at := from; at.Before(from.AddDate(0, 0, 40)); at = at.Add(time.Minute) {
			fires := ok && next.At.Equal(at)
			if want := cronMatches(tm.sets, at); fires != want {
				t.Fatalf("%s imported as %s: at %s it fires %t, cron %t", strings.Join(texts[:], " "), p.schedule, at, fires, want)
			}
			if fires {
				next, ok = s.Next(at)
			}
		}
	}
	if imported < 250 {
		t.Errorf("only %d of 400 were imported", imported)
	}
}

// TestWholeCrontab shows a file.
func TestWholeCrontab(t *testing.T) {
	src, err := os.ReadFile("testdata/crontab")
	if err != nil {
		t.Fatal(err)
	}
	r := table(string(src))
	read(t, r)
	golden.Equal(t, "testdata/crontab.golden", r.YAML)
}
