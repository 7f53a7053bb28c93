package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/runner"
)

// draft is a job, or the defaults, while it is read.
type draft struct {
	what  daybook.Text // whose the names are, in messages: "job renew"
	job   daybook.Job
	begin pos
	at    map[string]pos  // where each name was given
	lines []pos           // where each line of the schedule stands
	bad   map[string]bool // names with a fault already: what follows from it is not told a second time
	// inherited is at, as it was in the defaults
	inherited map[string]pos
}

func newDraft(what daybook.Text) *draft {
	return &draft{what: what, at: map[string]pos{}, bad: map[string]bool{}}
}

// clone returns a draft for a job that begins with what d says.
func (d *draft) clone(what daybook.Text) *draft {
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
			d.bad[meant(p.key.text, jobNames, laterJob).word] = true
			d.bad[p.key.text] = true
		case p.value.kind == isNull:
			d.bad[p.key.text] = true
		}
	}
}

// readJob reads one job over its defaults and completes it.
func (r *reader) readJob(key, value *node, d *draft) (Job, bool) {
	before := r.count()
	d.begin = key.pos
	if value.kind != isMap {
		_ = r.wrong(value, d.what, aMap).WithHint("write what it does below it, indented: schedule, run, owner")
		return Job{}, false
	}
	for _, p := range value.pairs {
		switch p.key.text { // the job's own way replaces the default, whichever form it has
		case "run", "shell", "http":
			d.job.Command, d.job.HTTP = daybook.Command{}, nil
		case "probe", "probe_url":
			d.job.Probe, d.job.ProbeURL = daybook.Command{}, ""
		case "undo", "undo_url":
			d.job.Undo, d.job.UndoURL = daybook.Command{}, ""
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
		r.fault(d.begin, daybook.Invalid("%s has nothing to run", d.what).WithHint("add run: [program, argument], shell: a line for the shell, or http: {url: …}"))
	}
	for _, f := range runner.CheckHTTP(j) {
		if word, _, _ := strings.Cut(f.Field, "."); !d.bad[f.Field] && !d.bad[word] {
			r.failed(d.place(f.Field), d.what, f.Err)
		}
	}
	if j.Timezone == "" && !d.bad["timezone"] {
		r.fault(d.begin, daybook.Invalid("%s has no time zone", d.what).WithHint("set timezone, in the job or at the top: nothing falls back to the server's zone"))
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
