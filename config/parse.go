package config

import (
	"slices"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// Parse reads the text of a file. The name stands in messages, and its directory is where relative paths of business
// calendars count from. On any fault it returns no file, and all faults as Errors.
func Parse(name string, src []byte) (*File, error) {
	return parse(name, src, func(path string) ([]byte, error) { return readLimited(path, MaxFileBytes+1) })
}

func parse(name string, src []byte, readFile func(string) ([]byte, error)) (*File, error) {
	r := &reader{path: name, readFile: readFile}
	f := &File{Path: name, Lang: "en", Database: Secret{DefaultDatabase}, Slots: DefaultSlots, Retention: DefaultRetention}
	if root := r.readTree(src); root != nil {
		r.readFileMap(root, f)
	}
	if len(r.faults) > 0 {
		faults := r.finish(r.faults)
		if r.more > 0 {
			faults = append(faults, NewFault(name, 0, 0, daybook.Invalid("%d faults more", r.more).WithHint("mend the first ones and check again")))
		}
		return nil, Errors(faults)
	}
	f.Warnings = r.finish(r.warnings)
	return f, nil
}

// readFileMap reads the top of the file, then the defaults, then the jobs, whatever their order.
func (r *reader) readFileMap(root *node, f *File) {
	top := &topLevel{file: f}
	if root.kind != isMap {
		_ = r.wrong(root, daybook.Say("the file"), aMap).WithHint("it begins with version: 1")
		return
	}
	readMap(r, r.withoutStrays(root), daybook.Text{}, topNames, laterTop, top)
	for _, p := range root.pairs { // a slip or an empty value is told already
		top.sawJobs = top.sawJobs || p.key.text == "jobs" || meant(p.key.text, topNames, laterTop).word == "jobs"
	}
	r.checkTold(top)
	r.checkFreezes(top)
	defaults := newDraft(here("defaults"))
	if f.Timezone != "" {
		defaults.job.Timezone = f.Timezone
	}
	defaults.bad["timezone"] = top.badZone
	if top.defaults != nil {
		readMap(r, top.defaults, here("defaults"), defaultNames, laterJob, defaults)
		defaults.noteSlips(top.defaults)
	}
	switch {
	case top.jobs == nil:
		if !top.sawJobs {
			r.fault(root.pos, daybook.Invalid("the file has no jobs").WithHint("write jobs: and below it, indented, the name of each job; daybook init writes an example"))
		}
	case top.jobs.kind == isList:
		_ = r.wrong(top.jobs, here("jobs"), aMap).WithHint("write each job as NAME: with its lines indented below it, not as an item of a list")
	case top.jobs.kind != isMap:
		_ = r.wrong(top.jobs, here("jobs"), aMap).WithHint("write jobs: and below it, indented, the name of each job")
	default:
		r.readJobs(top.jobs, defaults, f)
	}
}

// withoutStrays tells of jobs that stand in the first column, below a jobs that is empty, and returns the top without both.
func (r *reader) withoutStrays(root *node) *node {
	at := slices.IndexFunc(root.pairs, func(p pair) bool { return p.key.text == "jobs" && p.value.kind == isNull })
	if at < 0 || at+1 == len(root.pairs) {
		return root
	}
	stray := func(p pair) bool {
		return p.value.kind == isMap && daybook.CheckName(p.key.text) == nil && !slices.Contains(words(topNames), p.key.text) && !slices.Contains(laterTop, p.key.text)
	}
	if !stray(root.pairs[at+1]) {
		return root
	}
	for _, p := range root.pairs[at+1:] {
		if stray(p) {
			r.fault(p.key.pos, daybook.Invalid("job %s stands in the first column, not below jobs", daybook.Clip(p.key.text, 70)).
				WithHint("indent it, and its lines, by two spaces more than jobs"))
		}
	}
	top := *root
	top.pairs = append(slices.Clone(root.pairs[:at]), slices.DeleteFunc(slices.Clone(root.pairs[at+1:]), stray)...)
	return &top
}

func (r *reader) readJobs(n *node, defaults *draft, f *File) {
	if len(n.pairs) == 0 {
		r.fault(n.pos, daybook.Invalid("jobs is empty").WithHint("name a job below it, indented"))
	}
	first := map[string]pos{}
	defer func() { r.checkFormerly(f, first) }()
	for _, p := range n.pairs {
		name := p.key.text
		if at, twice := first[name]; twice {
			r.fault(p.key.pos, daybook.Invalid("job %s stands twice, first in line %d", daybook.Clip(name, 70), at.line).WithHint("give one of them another name: a name is part of every key"))
			continue
		}
		first[name] = p.key.pos
		if err := daybook.CheckName(name); err != nil {
			r.failed(p.key.pos, daybook.Text{}, err)
			continue
		}
		if p.value.kind == isNull {
			r.fault(p.key.pos, daybook.Invalid("job %s is empty", name).WithHint("write what it does below it, indented: schedule, run, owner"))
			continue
		}
		d := defaults.clone(daybook.Say("job %s", name))
		d.job.Name = name
		job, ok := r.readJob(p.key, p.value, d)
		if ok {
			f.Jobs = append(f.Jobs, job)
		}
		if at, given := d.own("formerly"); given && !d.bad["formerly"] {
			r.renames = append(r.renames, rename{at, name, d.job.Formerly})
		}
	}
}

// rename is a job that had another name.
type rename struct {
	pos
	name, formerly string
}

// checkFormerly refuses old names that somebody has: what is asked for under both would be done twice.
func (r *reader) checkFormerly(f *File, defined map[string]pos) {
	carried := map[string]rename{}
	for _, one := range r.renames {
		at, still := defined[one.formerly]
		other, twice := carried[one.formerly]
		switch {
		case one.formerly == one.name: // told by the check of the job itself
		case still:
			r.fault(one.pos, daybook.Invalid("job %s: formerly: %s is still defined, in line %d", one.name, one.formerly, at.line).
				WithHint("remove one of them: what is asked for under both names would be done twice"))
		case twice:
			r.fault(one.pos, daybook.Invalid("job %s: formerly: %s is carried on by %s already, in line %d", one.name, one.formerly, other.name, other.line).
				WithHint("keep one: a key has one meaning"))
		}
		carried[one.formerly] = one
	}
}

// readDays returns the business calendar that a job names.
func (r *reader) readDays(d *draft) *calendar.Days {
	name := d.job.Calendar
	if name == "" || d.bad["calendar"] {
		return nil
	}
	if days, ok := calendar.Embedded(name); ok {
		return days
	}
	at := d.place("calendar")
	src, err := r.readFile((&File{Path: r.path}).Locate(name))
	if err != nil {
		d.bad["calendar"] = true
		r.fault(at, daybook.Invalid("%s: calendar %s: %v", d.what, daybook.Clip(name, 80), plainPathError(err)).WithHint("write cn, or the path of a CSV or ICS file; a relative path counts from the directory of this file"))
		return nil
	}
	days, err := calendar.ParseDays(name, src)
	if err != nil {
		d.bad["calendar"] = true
		r.failed(at, d.what, err)
		return nil
	}
	return days
}
