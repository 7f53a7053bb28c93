package config

import (
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// one makes a name whose value has one kind and is put in place by set.
func one[V any](word, unless, meaning string, v value[V], set func(*daybook.Job, V)) name[draft] {
	return name[draft]{about{word, v.is, unless, meaning}, func(r *reader, d *draft, _, n *node) {
		got, ok := v.read(r, n, in(d.what, word))
		if ok {
			set(&d.job, got)
		}
		d.note(word, n.pos, ok)
	}}
}

// jobNames are the per-job names, defaultNames those of defaults.
var jobNames, defaultNames []name[draft] = jobTable(), defaultTable()

func jobTable() []name[draft] {
	return slices.Concat(whoNames(), whenNames(), howNames(), []name[draft]{
		one("effects", "repeatable; a P0 job must say it", "once: what may have happened is asked for, never blindly repeated; repeatable: a repeat does no harm",
			choice([]daybook.Effects{daybook.Once, daybook.Repeatable}), func(j *daybook.Job, v daybook.Effects) { j.Effects = v }),
		one("probe", "none", "command that asks the far side whether the effect with $DAYBOOK_WIRE_KEY happened: exit 0 yes, 1 no, else it cannot tell",
			command, func(j *daybook.Job, v daybook.Command) { j.Probe = v }),
		one("probe_url", "none", "URL that is asked the same, as GET URL?key=…&run=…&step=…", callURL, func(j *daybook.Job, v string) { j.ProbeURL = v }),
		one("probe_undo", "false", "the probe knows of undos, too: it is asked about key#step~undo, with $DAYBOOK_UNDO=1 or &undo=true. Its no lets the undo begin again",
			yesOrNo, func(j *daybook.Job, v bool) { j.ProbeUndo = v }),
		one("steps", "false", "the work marks its own steps, each effect under a wire key of its own; else an attempt with effects: once is one effect as a whole",
			yesOrNo, func(j *daybook.Job, v bool) { j.Steps = v }),
		one("undo", "none", "command that takes a done effect back: $DAYBOOK_EFFECT_KEY and $DAYBOOK_EFFECT_RESULT say which, its own wire key is $DAYBOOK_WIRE_KEY",
			command, func(j *daybook.Job, v daybook.Command) { j.Undo = v }),
		one("undo_url", "none", "URL that is posted the same, with Idempotency-Key", callURL, func(j *daybook.Job, v string) { j.UndoURL = v }),
		one("remembers", "none", "how long the far side answers a repeated wire key, from the first try; an hour of it is kept as a margin",
			durationOr(time.Second, "forever", daybook.Forever), func(j *daybook.Job, v time.Duration) { j.Remembers = v }),
		one("settles", "5m", "a no of the probe counts only this long after the last try ended", duration(time.Second), func(j *daybook.Job, v time.Duration) { j.Settles = v }),
		one("missed", "catch_up for windows of a day and longer, else coalesce", "a window whose last fire passed without a run: run each, let the newest run cover them, or leave them out",
			choice([]daybook.Missed{daybook.CatchUp, daybook.Coalesce, daybook.SkipMissed}), func(j *daybook.Job, v daybook.Missed) { j.Missed = v }),
		one("missed_after", "10m, or half the distance to the next fire if shorter", "how long after its last fire a window counts as missed",
			duration(time.Second), func(j *daybook.Job, v time.Duration) { j.MissedAfter = v }),
		one("catchup_window", "7d, or one window if longer", "how far back missed windows are run; older ones are skipped, and told", duration(time.Second), func(j *daybook.Job, v time.Duration) { j.CatchupWindow = v }),
		one("catchup_gap", "1m", "distance between the starts of missed windows", duration(0), func(j *daybook.Job, v time.Duration) {
			j.CatchupGap = v
			if v == 0 { // the zero value of a Job means the default
				j.CatchupGap = -1
			}
		}),
		one("overlap", "wait", "the previous window still runs: wait for it, oldest first; skip this one; or allow both",
			choice([]daybook.Overlap{daybook.OverlapWait, daybook.OverlapSkip, daybook.OverlapAllow}), func(j *daybook.Job, v daybook.Overlap) { j.Overlap = v }),
		one("serial", "none", "runs with one value are never at work at once, whatever their job",
			aWord, func(j *daybook.Job, v string) { j.Serial = v }),
		{about{"retry", named(retryNames), "{backoff: [1m, 5m, 25m], jitter: 10%}", "the ladder: when a failure is tried again, and what is not tried again"}, readRetry},
		{about{"expect", named(expectNames), "see there", "what is normal; anything else alerts"}, func(r *reader, d *draft, _, v *node) {
			d.at["expect"] = v.pos
			readMap(r, v, in(d.what, "expect"), expectNames, nil, d)
		}},
		{about{"subjects", shape{words: "name of a listing, or one as under subjects", rule: object{{"anyOf", []any{object{{"type", "string"}, {"pattern", namePattern}}, (&schemaBuilder{}).names(named(listingNames))}}}}, "none",
			"for each window the subjects are listed, and the job is done once for each of them, under JOB:WINDOW/SUBJECT"}, readSubjects},
		one("zone", "none: the zone of the job", "subject: each subject's own zone decides when its date begins; each zone is listed at its own hour, and all once more after the last",
			choice([]string{daybook.ZoneOfSubject}), func(j *daybook.Job, v string) { j.Zone = v }),
		one("formerly", "none", "the name that the job had before: a key asked for under the new name is answered from what stands under the old one, which keeps its name",
			value[string]{shape{words: "name of a job", rule: object{{"type", "string"}, {"pattern", namePattern}}}, (*reader).jobName}, func(j *daybook.Job, v string) { j.Formerly = v }),
		one("paused", "false", "windows become skipped: paused; of a change here and job pause or resume the later one wins", yesOrNo, func(j *daybook.Job, v bool) { j.Paused = v }),
	})
}

// whoNames say whom a job concerns.
func whoNames() []name[draft] {
	return []name[draft]{
		one("priority", "P1", "P0 touches money: claimed first, confirmed by typing, alerts repeated until somebody acknowledges them",
			choice([]daybook.Priority{daybook.P0, daybook.P1}), func(j *daybook.Job, v daybook.Priority) { j.Priority = v }),
		one("owner", required, "who is asked; it stands in every alert", aWord, func(j *daybook.Job, v string) { j.Owner = v }),
		one("runbook", "none", "what to do, a page; it stands in every alert", webAddress, func(j *daybook.Job, v string) { j.Runbook = v }),
	}
}

// whenNames say when a job runs, and for which window.
func whenNames() []name[draft] {
	return []name[draft]{
		{about{"schedule", scheduleShape, "none: by hand and by API only",
			"when it fires: five fields of cron, @daily, every 15m, hourly, daily 02:00, weekly mon 09:00, monthly 15 09:00, monthly last business day 18:00, quarterly …, yearly …"}, readSchedule},
		one("timezone", "that of the file", "time zone of the schedule and of the window", zoneName, func(j *daybook.Job, v string) { j.Timezone = v }),
		one("window", "week, month, quarter or year for the forms of that name; day for others with at most one wall-clock fire a day; else fire",
			"the period that one run answers for: it is the part of the key behind the job's name; with effects: once it must be said",
			choice(slices.DeleteFunc(slices.Clone(daybook.WindowKinds), func(k daybook.WindowKind) bool { return k == daybook.PerEvent }), daybook.PerEvent),
			func(j *daybook.Job, v daybook.WindowKind) { j.Window = v }),
		one("calendar", "none: Monday to Friday are working days", "days off and make-up working days: cn, or the path of a CSV or ICS file", aWord, func(j *daybook.Job, v string) { j.Calendar = v }),
		one("business_days", "none: days off do not matter", "a fire on a day off is skipped, or moves to the next or the previous working day; its key does not move",
			choice([]daybook.BusinessDays{daybook.BusinessSkip, daybook.BusinessNext, daybook.BusinessPrevious}), func(j *daybook.Job, v daybook.BusinessDays) { j.BusinessDays = v }),
		one("clock_gap", "shift", "a wall-clock time that does not exist fires at the first instant after the gap (shift), or not (skip)",
			choice([]daybook.ClockGap{daybook.GapShift, daybook.GapSkip}), func(j *daybook.Job, v daybook.ClockGap) { j.ClockGap = v }),
		one("clock_repeat", "first", "a wall-clock time that occurs twice fires in the first pass, or in the last",
			choice([]daybook.ClockRepeat{daybook.RepeatFirst, daybook.RepeatLast}), func(j *daybook.Job, v daybook.ClockRepeat) { j.ClockRepeat = v }),
		one("jitter", "0", "spread of starts, fixed for each key; key and nominal fire do not move", duration(0), func(j *daybook.Job, v time.Duration) { j.Jitter = v }),
	}
}

// howNames say what is run.
func howNames() []name[draft] {
	return []name[draft]{
		one("run", "one of run, shell and http is required", "program and arguments, started without a shell; placeholders such as {date} are filled in",
			argv, func(j *daybook.Job, v []string) { j.Command.Argv = v }),
		one("shell", "one of run, shell and http is required", "text for /bin/sh -c, which reads its environment, such as $DAYBOOK_BUSINESS_DATE; placeholders are not filled in",
			script, func(j *daybook.Job, v string) { j.Command.Shell = v }),
		{about{"http", named(callNames), "one of run, shell and http is required", "request that does the work; how its answer is read: exit codes and statuses of the manual"}, readHTTP},
		{about{"env", envShape, "none", `variables of the command; a secret is "${NAME}" or "file:/path" as the whole value`}, readEnv},
		one("dir", "the folder of this file", "where the command runs", aWord, func(j *daybook.Job, v string) { j.Dir = v }),
		one("user", "the user that runs daybook", "as whom the command runs", aWord, func(j *daybook.Job, v string) { j.User = v }),
		one("stdin", "nothing", "what the command reads", anyText, func(j *daybook.Job, v string) { j.Stdin = v }),
		one("timeout", "1h", "when an attempt is ended: a command by TERM, then KILL of its group", durationOr(time.Second, "none", -1), func(j *daybook.Job, v time.Duration) { j.Timeout = v }),
		one("work", "timed", "which failure is feared; it sets the defaults", choice([]daybook.Work{daybook.Timed}, daybook.Event, daybook.Long), func(j *daybook.Job, v daybook.Work) { j.Work = v }),
	}
}

// defaultTable is jobTable for the map of defaults.
func defaultTable() []name[draft] {
	table := jobTable()
	for i, f := range table {
		if slices.Contains(notInDefaults, f.word) {
			table[i].read = func(r *reader, d *draft, key, _ *node) {
				r.fault(key.pos, daybook.Invalid("defaults: %s cannot be a default", f.word).WithHint("say it in each job: it is part of what a key of the job promises"))
			}
		}
	}
	return table
}

// defaultShape has the names that a default may have.
func defaultShape() shape {
	return named(slices.DeleteFunc(defaultTable(), func(f name[draft]) bool { return slices.Contains(notInDefaults, f.word) }))
}

var scheduleShape = shape{words: "text or list of texts", rule: object{{"anyOf", []any{wordShape.rule, object{{"type", "array"}, {"items", wordShape.rule}, {"minItems", 1}}}}}}

// readSchedule reads one form, or a list of them.
func readSchedule(r *reader, d *draft, _, v *node) {
	items := []*node{v}
	if v.kind == isList {
		items = v.items
		if len(items) == 0 {
			r.fault(v.pos, daybook.Invalid("%s: schedule is empty", d.what).WithHint("write a form such as daily 02:00, or remove the line"))
			d.note("schedule", v.pos, false)
			return
		}
	}
	var forms []string
	ok := true
	d.lines = nil
	for _, item := range items {
		s, good := r.textual(item, in(d.what, "schedule"), false)
		if good && strings.TrimSpace(s) == "" {
			r.fault(item.pos, daybook.Invalid("%s: schedule is empty", d.what).WithHint("write a form such as daily 02:00, or remove the line"))
			good = false
		}
		s = strings.TrimSpace(s)
		if good && v.kind == isList && strings.Contains(s, "\n") {
			r.fault(item.pos, daybook.Invalid("%s: schedule: an item of several lines", d.what).WithHint("write one form an item"))
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
