package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// importedTimeout is written down for what had none: neither cron nor systemd ends a command, and Daybook's own default,
// an hour, would.
const importedTimeout = "24h"

// write writes the file: what it is, what is common to all jobs, the jobs, and how to switch over.
func (d *draft) write() []byte {
	var b strings.Builder
	jobs := d.jobs()
	line := func(layout string, values ...any) { fmt.Fprintf(&b, layout+"\n", values...) }
	line("# Made by %s: %s, each of them paused, so that nothing runs twice.", comment(d.what), counted(len(jobs), "job"))
	if n := len(d.entries) - len(jobs); n > 0 {
		line("# %s not imported: look for NOT IMPORTED.", counted(n, "entry", "entries"))
	}
	line("# Check it with: daybook check. How to switch over, one job at a time, stands at the end.")
	line("#")
	for _, n := range d.notes {
		for i, part := range wrap(comment(n), 116) {
			line("# %s%s", map[bool]string{true: "- ", false: "  "}[i == 0], part)
		}
	}
	line("")
	line("version: 1")
	line("timezone: %s", scalar(d.o.Zone))
	line("database: sqlite:daybook.db    # the ledger, beside this file")
	d.writeChannels(line)
	common, dir := d.common(jobs)
	line("")
	line("defaults:")
	line("  owner: %s", scalar(d.o.Owner))
	line("  timeout: %s                # it had no limit there, and would have 1h here", importedTimeout)
	line("  retry: {backoff: []}        # a failure is a dead letter at once; [1m, 5m, 25m] where it may be tried again")
	if dir != "" {
		line("  dir: %s", scalar(dir))
	}
	writeEnv(line, "  ", common)
	line("")
	line("jobs:")
	for i, e := range d.entries {
		if i > 0 {
			line("")
		}
		if e.left != nil {
			e.left.write(line)
			continue
		}
		e.job.write(line, common, dir)
	}
	writeSwitch(line, jobs)
	return []byte(b.String())
}

// writeChannels sends alerts where cron sent its mail.
func (d *draft) writeChannels(line func(string, ...any)) {
	if len(d.mailTo) == 0 {
		return
	}
	line("")
	line("# Where cron mailed any output, Daybook mails failures and silence, by mail(1). Try it: daybook alert test")
	line("channels:")
	script := `exec mail -s "$DAYBOOK_ALERT_SUBJECT" --`
	for _, to := range d.mailTo {
		script += " " + quoted(to)
	}
	line("  mail: {type: exec, run: [sh, -c, %s]}", scalar(script))
	line("alerts:")
	line("  P0: {to: [mail], remind: 1h}")
	line("  P1: {to: [mail]}")
}

// common returns the variables that all jobs have with the same value, and the directory of most of them.
func (d *draft) common(jobs []*job) (env map[string]string, dir string) {
	if len(jobs) < 2 {
		return nil, ""
	}
	env, dir = maps.Clone(jobs[0].env), jobs[0].dir
	for _, j := range jobs[1:] {
		maps.DeleteFunc(env, func(name, value string) bool { v, ok := j.env[name]; return !ok || v != value })
		if j.dir != dir {
			dir = ""
		}
	}
	return env, dir
}

func writeEnv(line func(string, ...any), indent string, env map[string]string) {
	if len(env) == 0 {
		return
	}
	line("%senv:", indent)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		line("%s  %s: %s", indent, scalar(name), scalar(env[name]))
	}
}

// write writes a job, without what stands in the defaults.
func (j *job) write(line func(string, ...any), common map[string]string, dir string) {
	line("  # %s", comment(j.from))
	for _, n := range j.notes {
		line("  #   - %s", comment(n))
	}
	line("  %s:", scalar(j.name))
	if len(j.schedule) == 1 {
		line("    schedule: %s", schedule(j.schedule[0]))
	} else {
		line("    schedule:")
		for _, form := range j.schedule {
			line("      - %s", double(form))
		}
	}
	own := func(name, value string) {
		if value != "" {
			line("    %s: %s", name, scalar(value))
		}
	}
	own("timezone", j.zone)
	if j.jitter > 0 {
		line("    jitter: %s", span(j.jitter))
	}
	own("missed", string(j.missed))
	if len(j.run) > 0 {
		line("    run: %s", list(j.run))
	}
	own("shell", j.shell)
	if j.stdin != "" {
		line("    stdin: %s", double(j.stdin))
	}
	own("user", j.user)
	if j.dir != dir {
		own("dir", j.dir)
	}
	if j.timeout != "" {
		line("    timeout: %s", j.timeout)
	}
	env := maps.Clone(j.env)
	maps.DeleteFunc(env, func(name, _ string) bool { _, ok := common[name]; return ok })
	writeEnv(line, "    ", env)
	line("    paused: true")
}

// schedule writes a form: a cron line in quotes, words bare.
func schedule(form string) string {
	if strings.HasPrefix(form, "every ") || strings.HasPrefix(form, "daily ") || strings.HasPrefix(form, "weekly ") || strings.HasPrefix(form, "monthly ") ||
		strings.HasPrefix(form, "quarterly ") || strings.HasPrefix(form, "yearly ") || form == "hourly" {
		return form
	}
	return double(form)
}

// write writes what could not be imported.
func (l *left) write(line func(string, ...any)) {
	line("  # NOT IMPORTED: %s: %s", comment(l.Place()), comment(l.Err.Error()))
	if hint := daybook.HintOf(l.Err); hint != "" {
		line("  #   → %s", comment(hint))
	}
	if l.from != "" {
		line("  #   %s", comment(l.from))
	}
}

// writeSwitch ends the file with the two lines for each job.
func writeSwitch(line func(string, ...any), jobs []*job) {
	line("")
	line("# To switch over: start daybook serve, then do these two for one job after the other, between two of its fires. What")
	line("# fires while a job is paused is recorded as skipped: the old one did it.")
	for _, j := range jobs {
		line("#")
		line("#   %s", comment(j.off))
		line("#   daybook job resume %s", j.name)
	}
}

// span writes a duration as the file reads it.
func span(d time.Duration) string {
	var b strings.Builder
	for _, u := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / u.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.size
		}
	}
	if b.Len() == 0 {
		return "0"
	}
	return b.String()
}

// counted writes a number with its noun.
func counted(n int, noun ...string) string {
	if n == 1 {
		return "1 " + noun[0]
	}
	if len(noun) > 1 {
		return fmt.Sprintf("%d %s", n, noun[1])
	}
	return fmt.Sprintf("%d %ss", n, noun[0])
}

// wrap breaks a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(lines, line)
}
