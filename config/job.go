package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/runner"
)

// draft is a job, or the defaults, while it is read.
type draft struct {
	what  string // whose the names are, in messages: "job renew"
	job   daybook.Job
	begin pos
	at    map[string]pos  // where each name was given
	lines []pos           // where each line of the schedule stands
	bad   map[string]bool // names with a fault already: what follows from it is not told a second time
	// inherited is at, as it was in the defaults
	inherited map[string]pos
}

func newDraft(what string) *draft {
	return &draft{what: what, at: map[string]pos{}, bad: map[string]bool{}}
}

// clone returns a draft for a job that begins with what d says.
func (d *draft) clone(what string) *draft {
	c := *d
	c.what, c.at, c.bad = what, maps.Clone(d.at), maps.Clone(d.bad)
	c.job.Env, c.inherited = maps.Clone(d.job.Env), d.at // HTTP is replaced as a whole, never changed
	return &c
}

// note records where a name was given and whether it could be read.
func (d *draft) note(field string, at pos, ok bool) {
	d.at[field] = at
	d.bad[field] = !ok
}

// place returns where a name was given, where its map was, or where the job begins.
func (d *draft) place(field string) pos {
	if at, ok := d.at[field]; ok {
		return at
	}
	if parent, _, nested := strings.Cut(field, "."); nested {
		return d.place(parent)
	}
	return d.begin
}

// noteSlips marks the names that stand in the map under a wrong spelling or without a value.
func (d *draft) noteSlips(n *node) {
	for _, p := range n.pairs {
		known := slices.ContainsFunc(jobNames, func(f name[draft]) bool { return f.word == p.key.text })
		switch {
		case !known:
			word, _, _ := strings.Cut(meant(p.key.text, jobNames, laterJob), " ")
			d.bad[word] = true
			d.bad[p.key.text] = true
		case p.value.kind == isNull:
			d.bad[p.key.text] = true
		}
	}
}

// one makes the reader of a name whose value is read by read and put in place by set.
func one[V any](word string, read func(*reader, *node, string) (V, bool), set func(*daybook.Job, V)) name[draft] {
	return name[draft]{word, func(r *reader, d *draft, _, value *node) {
		v, ok := read(r, value, d.what+": "+word)
		if ok {
			set(&d.job, v)
		}
		d.note(word, value.pos, ok)
	}}
}

func oneOf[V ~string](word string, set func(*daybook.Job, V), allowed ...V) name[draft] {
	return one(word, func(r *reader, n *node, what string) (V, bool) { return choice(r, n, what, allowed...) }, set)
}

func atLeast(low time.Duration) func(*reader, *node, string) (time.Duration, bool) {
	return func(r *reader, n *node, what string) (time.Duration, bool) { return r.duration(n, what, low) }
}

// jobNames are the per-job names, defaultNames those of defaults.
var jobNames, defaultNames []name[draft] = jobTable(), defaultTable()

func jobTable() []name[draft] {
	return []name[draft]{
		oneOf("priority", func(j *daybook.Job, v daybook.Priority) { j.Priority = v }, daybook.P0, daybook.P1),
		one("owner", (*reader).word, func(j *daybook.Job, v string) { j.Owner = v }),
		one("runbook", (*reader).webAddress, func(j *daybook.Job, v string) { j.Runbook = v }),
		{"schedule", readSchedule},
		one("timezone", (*reader).zoneName, func(j *daybook.Job, v string) { j.Timezone = v }),
		one("window", readWindow, func(j *daybook.Job, v daybook.WindowKind) { j.Window = v }),
		one("calendar", (*reader).word, func(j *daybook.Job, v string) { j.Calendar = v }),
		oneOf("business_days", func(j *daybook.Job, v daybook.BusinessDays) { j.BusinessDays = v },
			daybook.BusinessSkip, daybook.BusinessNext, daybook.BusinessPrevious),
		oneOf("clock_gap", func(j *daybook.Job, v daybook.ClockGap) { j.ClockGap = v }, daybook.GapShift, daybook.GapSkip),
		oneOf("clock_repeat", func(j *daybook.Job, v daybook.ClockRepeat) { j.ClockRepeat = v }, daybook.RepeatFirst, daybook.RepeatLast),
		one("jitter", atLeast(0), func(j *daybook.Job, v time.Duration) { j.Jitter = v }),
		one("run", (*reader).argv, func(j *daybook.Job, v []string) { j.Command.Argv = v }),
		one("shell", (*reader).script, func(j *daybook.Job, v string) { j.Command.Shell = v }),
		{"http", readHTTP},
		{"env", readEnv},
		one("dir", (*reader).word, func(j *daybook.Job, v string) { j.Dir = v }),
		one("user", (*reader).word, func(j *daybook.Job, v string) { j.User = v }),
		one("stdin", func(r *reader, n *node, what string) (string, bool) { return r.textual(n, what, false) },
			func(j *daybook.Job, v string) { j.Stdin = v }),
		one("timeout", orNone, func(j *daybook.Job, v time.Duration) { j.Timeout = v }),
		one("work", readWork, func(j *daybook.Job, v daybook.Work) { j.Work = v }),
		oneOf("effects", func(j *daybook.Job, v daybook.Effects) { j.Effects = v }, daybook.Once, daybook.Repeatable),
		one("probe", readCommand, func(j *daybook.Job, v daybook.Command) { j.Probe = v }),
		one("probe_url", readCallURL, func(j *daybook.Job, v string) { j.ProbeURL = v }),
		one("remembers", readRemembers, func(j *daybook.Job, v time.Duration) { j.Remembers = v }),
		one("settles", atLeast(time.Second), func(j *daybook.Job, v time.Duration) { j.Settles = v }),
		oneOf("missed", func(j *daybook.Job, v daybook.Missed) { j.Missed = v }, daybook.CatchUp, daybook.Coalesce, daybook.SkipMissed),
		one("missed_after", atLeast(time.Second), func(j *daybook.Job, v time.Duration) { j.MissedAfter = v }),
		one("catchup_window", atLeast(time.Second), func(j *daybook.Job, v time.Duration) { j.CatchupWindow = v }),
		one("catchup_gap", atLeast(0), func(j *daybook.Job, v time.Duration) {
			j.CatchupGap = v
			if v == 0 { // the zero value of a Job means the default
				j.CatchupGap = -1
			}
		}),
		oneOf("overlap", func(j *daybook.Job, v daybook.Overlap) { j.Overlap = v }, daybook.OverlapWait, daybook.OverlapSkip, daybook.OverlapAllow),
		{"retry", func(r *reader, d *draft, _, v *node) {
			d.at["retry"] = v.pos
			readMap(r, v, d.what+": retry", retryNames, nil, d)
		}},
		{"expect", func(r *reader, d *draft, _, v *node) {
			d.at["expect"] = v.pos
			readMap(r, v, d.what+": expect", expectNames, nil, d)
		}},
		one("paused", (*reader).boolean, func(j *daybook.Job, v bool) { j.Paused = v }),
	}
}

// defaultTable is jobTable for the map of defaults.
func defaultTable() []name[draft] {
	table := jobTable()
	for i, f := range table {
		if slices.Contains(notInDefaults, f.word) {
			table[i].read = func(r *reader, d *draft, key, _ *node) {
				r.fault(key.pos, "say it in each job: it is part of what a key of the job promises", "defaults: %s cannot be a default", f.word)
			}
		}
	}
	return table
}

// readSchedule reads one form, or a list of them.
func readSchedule(r *reader, d *draft, _, v *node) {
	items := []*node{v}
	if v.kind == isList {
		items = v.items
		if len(items) == 0 {
			r.fault(v.pos, "write a form such as daily 02:00, or remove the line", "%s: schedule is empty", d.what)
			d.note("schedule", v.pos, false)
			return
		}
	}
	var forms []string
	ok := true
	d.lines = nil
	for _, item := range items {
		s, good := r.textual(item, d.what+": schedule", false)
		if good && strings.TrimSpace(s) == "" {
			r.fault(item.pos, "write a form such as daily 02:00, or remove the line", "%s: schedule is empty", d.what)
			good = false
		}
		s = strings.TrimSpace(s)
		if good && v.kind == isList && strings.Contains(s, "\n") {
			r.fault(item.pos, "write one form an item", "%s: schedule: an item of several lines", d.what)
			good = false
		}
		ok = ok && good
		forms = append(forms, s)
		d.lines = append(d.lines, item.pos)
	}
	if ok {
		d.job.Schedule = strings.Join(forms, "\n")
	}
	d.note("schedule", v.pos, ok)
}

func readWindow(r *reader, n *node, what string) (daybook.WindowKind, bool) {
	if n.kind == isText && n.text == string(daybook.PerEvent) {
		r.fault(n.pos, "choose another window", "%s: event is not available in this version", what)
		return "", false
	}
	kinds := slices.DeleteFunc(slices.Clone(daybook.WindowKinds), func(k daybook.WindowKind) bool { return k == daybook.PerEvent })
	return choice(r, n, what, kinds...)
}

func readWork(r *reader, n *node, what string) (daybook.Work, bool) {
	w, ok := choice(r, n, what, daybook.Timed, daybook.Event, daybook.Long)
	if ok && w != daybook.Timed {
		r.fault(n.pos, "use work: timed, or remove the line", "%s: %s is not available in this version", what, w)
		return "", false
	}
	return w, ok
}

// orNone reads a duration, or none, which a Job writes as a negative one.
func orNone(r *reader, n *node, what string) (time.Duration, bool) {
	if n.kind == isText && n.text == "none" {
		return -1, true
	}
	return r.duration(n, what, time.Second)
}

func readRemembers(r *reader, n *node, what string) (time.Duration, bool) {
	if n.kind == isText && n.text == "forever" {
		return daybook.Forever, true
	}
	return r.duration(n, what, time.Second)
}

// argv reads a command without a shell.
func (r *reader) argv(n *node, what string) ([]string, bool) {
	if n.kind == isText {
		r.fault(n.pos, "write a list, one item an argument, such as ["+strings.Join(strings.Fields(daybook.Clip(n.text, 60)), ", ")+"], or use shell for a line with a shell's syntax",
			"%s must be a list, not a text", what)
		return nil, false
	}
	list, ok := r.texts(n, what)
	if !ok {
		return nil, false
	}
	if len(list) == 0 || list[0] == "" {
		r.fault(n.pos, "write the program first, then its arguments", "%s names no program", what)
		return nil, false
	}
	for i, arg := range list {
		if err := runner.CheckPlaceholders(arg); err != nil {
			r.failed(n.items[i].pos, what, err)
			ok = false
		}
	}
	return list, ok
}

// script reads a text for a shell.
func (r *reader) script(n *node, what string) (string, bool) {
	if n.kind == isList {
		r.fault(n.pos, "write one text, or use run for a list", "%s must be a text, not a list", what)
		return "", false
	}
	s, ok := r.textual(n, what, false)
	if ok && strings.TrimSpace(s) == "" {
		r.fault(n.pos, "write a command, or remove the line", "%s is empty", what)
		return "", false
	}
	return s, ok
}

// readCommand reads a list as a command and a text as a line for the shell.
func readCommand(r *reader, n *node, what string) (daybook.Command, bool) {
	if n.kind == isText {
		s, ok := r.script(n, what)
		return daybook.Command{Shell: s}, ok
	}
	list, ok := r.argv(n, what)
	return daybook.Command{Argv: list}, ok
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readEnv adds to the environment of the defaults.
func readEnv(r *reader, d *draft, _, v *node) {
	d.at["env"] = v.pos
	for name, value := range r.environment(v, d.what) {
		if d.job.Env == nil {
			d.job.Env = map[string]string{}
		}
		d.job.Env[name] = value
	}
}

// environment reads the variables of a command.
func (r *reader) environment(v *node, whose string) map[string]string {
	if v.kind != isMap {
		r.wrong(v, whose+": env", "a map", "write NAME: value lines below it, indented")
		return nil
	}
	env, seen := map[string]string{}, map[string]bool{}
	for _, p := range v.pairs {
		name := p.key.text
		what := whose + ": env: " + daybook.Clip(name, 60)
		switch {
		case seen[name]:
			r.fault(p.key.pos, "keep one", "%s stands twice", what)
			continue
		case !envName.MatchString(name):
			r.fault(p.key.pos, "a name is letters, digits and '_', and does not begin with a digit", "%s: env: %q cannot name a variable", whose, daybook.Clip(name, 60))
			continue
		case strings.HasPrefix(name, "DAYBOOK_"):
			r.fault(p.key.pos, "choose another name", "%s: names with DAYBOOK_ are given by Daybook", what)
			continue
		}
		seen[name] = true
		value, ok := "", true
		if p.value.kind == isNull {
			r.fault(p.key.pos, `write "" for an empty value, or remove the line`, "%s has no value", what)
			continue
		}
		if value, ok = r.textual(p.value, what, true); !ok || !r.wholeReference(p.value, what) {
			continue
		}
		env[name] = value
		if !isReference(value) && value != "" && soundsSecret.MatchString(name) {
			r.warn(p.value.pos, `write "${`+name+`}" or "file:/path" and keep the value there`, "%s: a secret seems to stand in the file", what)
		}
	}
	return env
}

// wholeReference refuses a reference that is only a part of a value.
func (r *reader) wholeReference(n *node, what string) bool {
	if isReference(n.text) || !strings.Contains(n.text, "${") {
		return true
	}
	r.fault(n.pos, `write "${NAME}" alone as the whole value; other texts are built in the command itself`, "%s: a reference stands for a whole value", what)
	return false
}

// readJob reads one job over its defaults and completes it.
func (r *reader) readJob(key, value *node, d *draft) (Job, bool) {
	before := r.count()
	d.begin = key.pos
	if value.kind != isMap {
		r.wrong(value, d.what, "a map", "write what it does below it, indented: schedule, run, owner")
		return Job{}, false
	}
	for _, p := range value.pairs {
		switch p.key.text { // the job's own way replaces the default, whichever form it has
		case "run", "shell", "http":
			d.job.Command, d.job.HTTP = daybook.Command{}, nil
		case "probe", "probe_url":
			d.job.Probe, d.job.ProbeURL = daybook.Command{}, ""
		}
	}
	readMap(r, value, d.what, jobNames, laterJob, d)
	d.noteSlips(value)
	for _, f := range d.job.Check() {
		if !d.bad[f.Field] && !(f.Field == "timezone" && d.job.Timezone == "") {
			r.failed(d.place(f.Field), d.what, f.Err)
		}
	}
	r.checkJob(d)
	days := r.readDays(d)
	r.checkForms(d, days)
	if r.count() > before || d.bad["timezone"] || d.bad["calendar"] {
		return Job{}, false
	}
	job, schedule, err := calendar.Complete(d.job, days)
	if err != nil {
		r.failed(d.place("schedule"), d.what, err)
		return Job{}, false
	}
	out := Job{Job: job, Schedule: schedule, Days: days, Line: key.line, Column: key.column}
	r.warnJob(d, &out)
	return out, true
}

// checkJob checks what Job.Check leaves to the file.
func (r *reader) checkJob(d *draft) {
	j := &d.job
	elsewhere := d.bad["run"] || d.bad["shell"] || d.bad["http"] || d.bad["reconcile"]
	if j.Command.IsZero() && j.HTTP == nil && !elsewhere {
		r.fault(d.begin, "add run: [program, argument], shell: a line for the shell, or http: {url: …}", "%s has nothing to run", d.what)
	}
	for _, f := range runner.CheckHTTP(j) {
		if word, _, _ := strings.Cut(f.Field, "."); !d.bad[f.Field] && !d.bad[word] {
			r.failed(d.place(f.Field), d.what, f.Err)
		}
	}
	if j.Timezone == "" && !d.bad["timezone"] {
		r.fault(d.begin, "set timezone, in the job or at the top: nothing falls back to the server's zone", "%s has no time zone", d.what)
	}
}

// checkForms checks each line of the schedule where it stands.
func (r *reader) checkForms(d *draft, days *calendar.Days) {
	if d.job.Schedule == "" || d.bad["schedule"] {
		return
	}
	if len(d.lines) == 1 {
		if _, err := calendar.Compile(calendar.Spec{Schedule: d.job.Schedule, Zone: "UTC", Days: days}); err != nil {
			r.failed(d.lines[0], d.what, err)
		}
		return
	}
	for i, form := range strings.Split(d.job.Schedule, "\n") {
		if _, err := calendar.Compile(calendar.Spec{Schedule: form, Zone: "UTC", Days: days}); err != nil {
			r.failed(d.lines[i], d.what, err)
		}
	}
}
