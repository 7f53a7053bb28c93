package importer

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

// whole checks that what was written reads back as what was meant.
func whole(t *testing.T, d *draft) {
	r := d.result()
	if len(r.Jobs) == 0 {
		return
	}
	if len(r.Jobs) > 2000 {
		return
	}
	f := read(t, r)
	for i, j := range d.jobs() {
		got := f.Jobs[i].Job
		if !slices.Equal(got.Command.Argv, j.run) || got.Command.Shell != j.shell || got.Stdin != j.stdin || got.User != j.user || got.Jitter != j.jitter {
			t.Fatalf("read back as %+v, meant %+v\n%s", got, j, r.YAML)
		}
		for name, value := range j.env {
			if got.Env[name] != value {
				t.Fatalf("%s=%q, meant %q", name, got.Env[name], value)
			}
		}
		if len(got.Env) != len(j.env) {
			t.Fatalf("%v, meant %v", got.Env, j.env)
		}
	}
	for _, l := range r.Left {
		if daybook.HintOf(l.Err) == "" {
			t.Fatalf("no hint: %v", l.Err)
		}
	}
}

// FuzzCrontab: whatever a crontab holds, what comes out passes check and says the same.
func FuzzCrontab(f *testing.F) {
	src, err := os.ReadFile("testdata/crontab")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(src), false)
	for _, line := range strings.Split(string(src), "\n") {
		f.Add(line+"\n", false)
	}
	f.Add("0 2 * * * root x '\"\\ \u2028 \x01\x7f\u00a0 # : {} [] & * ! | > %  \\%\ty\n", true)
	f.Add("A='\u2028\x02'\n@daily : #\n", false)
	f.Add("25 6 * * * root test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )\n", true)
	f.Fuzz(func(t *testing.T, text string, system bool) {
		if len(text) > 4000 {
			return
		}
		d := newDraft(options(), "daybook import crontab")
		(&reader{draft: d, table: Table{Name: "crontab", Text: []byte(text), System: system, User: "me", Edit: "crontab -e"}}).read()
		whole(t, d)
	})
}

// FuzzSystemd is the same for a timer and its service.
func FuzzSystemd(f *testing.F) {
	f.Add("OnCalendar=daily", "ExecStart=/a b\nEnvironment=A=b\nUser=x")
	f.Add("OnCalendar=Mon..Fri *-*-* 0/4:00 UTC\nRandomizedDelaySec=5min", "ExecStart=-/a '${B}' $C\nEnvironmentFile=-/etc/x")
	f.Add("OnUnitActiveSec=1h\nOnCalendar=*-*~01", "ExecStart=@/a b ; /c \\\n d\\x41\nWorkingDirectory=~\nTimeoutStartSec=1s")
	f.Fuzz(func(t *testing.T, timer, service string) {
		if len(timer)+len(service) > 4000 {
			return
		}
		units := []Unit{{"x.timer", []UnitFile{{"/x.timer", []byte("[Timer]\n" + timer)}}}, {"x.service", []UnitFile{{"/x.service", []byte("[Service]\n" + service)}}}}
		d := newDraft(options(), "daybook import systemd")
		(&timers{draft: d, units: map[string]Unit{"x.timer": units[0], "x.service": units[1]}, manager: Manager{Dir: "/x"}}).add(units[0])
		whole(t, d)
	})
}
