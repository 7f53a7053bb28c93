package config

import (
	"regexp"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

var soundsSecret = regexp.MustCompile(`(?i)(passw|passphrase|secret|token|api_?key|private_?key|credential)`)

// shellNames are the placeholders of run, with the variables a shell reads instead.
var shellNames = map[string]string{
	"key": "DAYBOOK_KEY", "wire_key": "DAYBOOK_WIRE_KEY", "job": "DAYBOOK_JOB", "date": "DAYBOOK_BUSINESS_DATE",
	"window": "DAYBOOK_WINDOW", "window_start": "DAYBOOK_WINDOW_START", "window_end": "DAYBOOK_WINDOW_END", "subject": "DAYBOOK_SUBJECT",
}

var braced = regexp.MustCompile(`(^|[^$])\{([a-z_]+)\}`)

// warnJob tells what a job may do and its owner may not expect.
func (r *reader) warnJob(d *draft, j *Job) {
	if j.Priority == daybook.P0 && j.Effects == daybook.Once && !j.Steps && !j.Asks() && j.Remembers == 0 {
		r.warn(d.place("effects"), daybook.Invalid("%s is P0 with effects: once and has neither probe, probe_url nor remembers: every unreported end will wait for a person", d.what).WithHint("add probe or probe_url, which asks the far side whether it happened, or remembers, how long it knows a repeated key"))
	}
	if j.ProbeUndo && !j.Asks() {
		r.warn(d.place("probe_undo"), daybook.Invalid("%s: probe_undo is not used without probe or probe_url", d.what).WithHint("add the probe that knows of undos, or remove probe_undo"))
	}
	if j.Asks() && !j.ProbeUndo && j.Remembers == 0 && (j.UndoURL != "" || !j.Undo.IsZero()) {
		at := "undo"
		if j.UndoURL != "" {
			at = "undo_url"
		}
		r.warn(d.place(at), daybook.Invalid("%s: its probe is not asked about an undo: one whose end nobody reports will wait for a person", d.what).
			WithHint("when it finds a refund under the wire key of the undo, key#step~undo, say probe_undo: true"))
	}
	if j.Effects != daybook.Once {
		for _, word := range []string{"probe", "probe_url", "remembers", "settles"} {
			if at, ok := d.own(word); ok {
				r.warn(at, daybook.Invalid("%s: %s is not used with effects: repeatable", d.what, word).WithHint("set effects: once, or remove %s", word))
			}
		}
	}
	if argv := j.Command.Argv; len(argv) == 1 && strings.ContainsAny(argv[0], " \t") {
		r.warn(d.place("run"), daybook.Invalid("%s: run names the program %q, spaces included", d.what, Mask(daybook.Clip(argv[0], 60))).
			WithHint("write one item an argument, or use shell for a line with a shell's syntax"))
	}
	if j.HTTP != nil && j.Probe.IsZero() {
		for _, word := range []string{"env", "dir", "user", "stdin"} {
			if at, ok := d.own(word); ok {
				r.warn(at, daybook.Invalid("%s: %s is not used with http", d.what, word).WithHint("remove %s: it is for commands", word))
			}
		}
	}
	if j.Effects == daybook.Once && j.Remembers > 0 && j.Remembers != daybook.Forever {
		var ladder time.Duration
		for _, step := range j.Retry.Backoff {
			ladder += step
		}
		if left := j.Remembers - daybook.RemembersMargin; ladder > left {
			r.warn(d.place("retry.backoff"), daybook.Invalid("%s: the ladder lasts %s, and the far side is sure to remember for %s only", d.what, Duration(ladder), Duration(left)).WithHint("shorten the ladder: tries that come later wait for a person"))
		}
	}
	for _, remark := range j.Schedule.Remarks() {
		r.warn(d.place("schedule"), daybook.Invalid("%s: %s", d.what, remark))
	}
	text := j.Job.Schedule
	if j.Calendar != "" && j.BusinessDays == "" && !strings.Contains(text, "business") {
		r.warn(d.place("calendar"), daybook.Invalid("%s: the calendar moves nothing without business_days", d.what).WithHint("add business_days: skip, next or previous"))
	}
	if text == "" {
		for _, word := range []string{"clock_gap", "clock_repeat", "business_days", "missed", "missed_after", "catchup_window"} {
			if at, ok := d.own(word); ok {
				r.warn(at, daybook.Invalid("%s: %s is not used without a schedule", d.what, word).WithHint("add a schedule, or remove %s", word))
			}
		}
	}
	for field, command := range map[string]daybook.Command{"shell": j.Command, "probe": j.Probe} {
		for _, m := range braced.FindAllStringSubmatch(command.Shell, -1) {
			if variable, ok := shellNames[m[2]]; ok {
				r.warn(d.place(field), daybook.Invalid("%s: {%s} is not filled in for a shell, which reads its environment", d.what, m[2]).WithHint("write $%s", variable))
			}
		}
	}
}

// own returns where the job itself gives a name: what stands in defaults need not fit every job.
func (d *draft) own(word string) (pos, bool) {
	at, ok := d.at[word]
	return at, ok && at != d.inherited[word]
}
