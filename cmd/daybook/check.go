package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
)

func newCheck(a *app) *cobra.Command {
	var schema, accept bool
	var why string
	cmd := &cobra.Command{
		Use:     "check [FILE]",
		Short:   textCheck,
		Long:    textCheckLong,
		Example: textCheckExample,
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if schema {
				_, err := a.Stdout.Write(config.Schema())
				return err
			}
			path := a.configPath()
			if len(args) == 1 {
				if a.flags.config != "" && a.flags.config != args[0] {
					return daybook.Invalid("two files are named: %s and %s", a.flags.config, args[0]).WithHint("name one")
				}
				path = args[0]
			}
			switch {
			case accept && why == "":
				return daybook.Invalid("--accept-keys needs a reason").WithHint("add --reason, a sentence for whoever reads the record later")
			case accept:
				return a.acceptKeys(cmd.Context(), path, why)
			case why != "":
				return daybook.Invalid("--reason is for --accept-keys").WithHint("leave it out")
			}
			return a.check(cmd.Context(), path, a.Now())
		},
	}
	cmd.Flags().BoolVar(&accept, "accept-keys", false, textFlagAccept)
	cmd.Flags().StringVar(&why, "reason", "", textFlagReason)
	cmd.Flags().BoolVar(&schema, "schema", false, textFlagSchema)
	return cmd
}

// checkJSON is the answer of check --json.
type checkJSON struct {
	Schema   string         `json:"schema"`
	File     string         `json:"file"`
	OK       bool           `json:"ok"`
	Faults   []config.Fault `json:"faults"`
	Warnings []config.Fault `json:"warnings"`
	Jobs     []jobJSON      `json:"jobs"`
	Ledger   string         `json:"ledger,omitempty"` // with which the file was compared; absent: it is not there, or note says why not
	Note     string         `json:"note,omitempty"`
	Changes  []changeJSON   `json:"changes"`
}

type jobJSON struct {
	Job      string     `json:"job"`
	Priority string     `json:"priority"`
	Owner    string     `json:"owner"`
	Schedule string     `json:"schedule,omitempty"`
	Timezone string     `json:"timezone"`
	Window   string     `json:"window"`
	Effects  string     `json:"effects"`
	Paused   bool       `json:"paused,omitempty"`
	Line     int        `json:"line"`
	Next     []nextJSON `json:"next"`
}

// nextJSON is a fire to come. Skipped ones have the reason in skip and are not run.
type nextJSON struct {
	fireJSON
	Key  string `json:"key"`
	Skip string `json:"skip,omitempty"`
}

// check reads the file and shows what it means: the next fires of each job and the keys they answer for, and what it changes
// against the ledger. A change that serve refuses is an error with CodeConflict.
func (a *app) check(ctx context.Context, path string, now time.Time) error {
	f, err := config.Load(path)
	var tried []config.Fault
	if err == nil {
		var wrong config.Errors
		if wrong, tried = a.tryListings(ctx, f); len(wrong) > 0 {
			err = wrong
		}
	}
	var faults config.Errors
	if err != nil && !(errors.As(err, &faults) && a.flags.json) {
		return err
	}
	if err != nil {
		if e := a.printJSON(checkJSON{Schema: "daybook/check.v1", File: path, Faults: faults, Warnings: []config.Fault{}, Jobs: []jobJSON{}, Changes: []changeJSON{}}); e != nil {
			return e
		}
		return &coded{code: 2, err: err, silent: true}
	}
	against := a.compare(ctx, f)
	all := append(append(warnings(f, now), tried...), riskWarnings(f, against.changes)...)
	if a.flags.json {
		out := checkJSON{Schema: "daybook/check.v1", File: path, OK: true, Faults: []config.Fault{}, Warnings: append([]config.Fault{}, all...), Jobs: []jobJSON{},
			Ledger: against.ledger, Changes: changesJSON(against.changes)}
		if against.note != nil {
			out.Note = config.Mask(against.note.Error())
		}
		for i := range f.Jobs {
			out.Jobs = append(out.Jobs, newJobJSON(&f.Jobs[i], now))
		}
		if err := a.printJSON(out); err != nil {
			return err
		}
		return silently(control.RefusedKeys(against.changes))
	}
	w := bufio.NewWriter(a.Stdout)
	for i := range f.Jobs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		a.printJob(w, &f.Jobs[i], now)
	}
	if slices.ContainsFunc(against.changes, func(c control.Change) bool { return c.Kind != control.ChangeNone }) {
		fmt.Fprintf(w, "\n%s\n", a.lang.F("changes against the ledger %s:", against.ledger))
		a.printChanges(w, against.changes)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, fault := range all {
		if i == 0 {
			a.say("")
		}
		a.say("warning: %s", fault.In(a.lang))
	}
	if against.note != nil {
		a.say("note: what the file changes is not shown: %v", against.note)
	}
	a.say("")
	jobs := daybook.Count(len(f.Jobs), "%d job", "%d jobs")
	if len(all) == 0 {
		a.say("%s: %s, no faults", path, jobs)
	} else {
		a.say("%s: %s, no faults, %s", path, jobs, daybook.Count(len(all), "%d warning", "%d warnings"))
	}
	return silently(control.RefusedKeys(against.changes))
}

// silently makes an error an exit code only: what it says was said.
func silently(err error) error {
	if err == nil {
		return nil
	}
	return &coded{code: exitCode(err), err: err, silent: true}
}

// horizonNotice is how long before the end of a business calendar's data it is told.
const horizonNotice = 60 * 24 * time.Hour

// warnings returns those of the file and those that depend on the day.
func warnings(f *config.File, now time.Time) []config.Fault {
	all := append([]config.Fault(nil), f.Warnings...)
	for i := range f.Jobs {
		j := &f.Jobs[i]
		if j.Days == nil {
			continue
		}
		if _, last := j.Days.Horizon(); last < now.Add(horizonNotice).UTC().Format(time.DateOnly) {
			all = append(all, config.NewFault(f.Path, j.Line, j.Column,
				daybook.Invalid("job %s: calendar %s: data ends %s; after it only weekends are days off", j.Name, j.Days.Name(), last).
					WithHint("add the days off of the years to come, or use a newer Daybook")))
		}
	}
	return all
}

// next returns fires after now up to the third that is run, with the skipped ones between them, ten at most.
func next(j *config.Job, now time.Time) []daybook.Fire {
	var out []daybook.Fire
	run := 0
	for f := range j.Schedule.Between(now, now.AddDate(9, 0, 0)) { // no search of a schedule is longer
		out = append(out, f)
		if f.Skip == "" {
			run++
		}
		if run == 3 || len(out) == 10 {
			break
		}
	}
	return out
}

func key(j *config.Job, f daybook.Fire) string {
	return string(daybook.KeyParts{Job: j.Name, Window: f.Window.Label, N: 1}.Key())
}

func newJobJSON(j *config.Job, now time.Time) jobJSON {
	out := jobJSON{Job: j.Name, Priority: string(j.Priority), Owner: j.Owner, Schedule: j.Job.Schedule, Timezone: j.Timezone,
		Window: string(j.Window), Effects: string(j.Effects), Paused: j.Paused, Line: j.Line, Next: []nextJSON{}}
	for _, f := range next(j, now) {
		out.Next = append(out.Next, nextJSON{newFireJSON(f, j.Schedule.Location()), key(j, f), string(f.Skip)})
	}
	return out
}

// printJob writes what a job means in words, and its next fires beside their keys.
func (a *app) printJob(w *bufio.Writer, j *config.Job, now time.Time) {
	state := ""
	if j.Paused {
		state = "  " + a.lang.F("paused")
	}
	fmt.Fprintf(w, "%s  %s  %s%s\n", j.Name, j.Priority, j.Owner, state)
	fmt.Fprintf(w, "  %s\n", a.lang.F("%s; window %s", j.Schedule.Words(), j.Window))
	if a.flags.verbose {
		fmt.Fprintf(w, "  %s\n", a.lang.Say(policies(j)))
	}
	loc := a.displayZone(j.Schedule.Location())
	for _, f := range next(j, now) {
		at, note := f.At.In(loc), string(f.Note)
		if f.Skip != "" {
			note = a.lang.F("skipped: %s", f.Skip)
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %s  →  %s  %s", a.fireAt(at), key(j, f), note), " "))
	}
}

// fireAt writes a fire with its weekday, in the zone it has.
func (a *app) fireAt(at time.Time) string {
	return a.lang.Say(weekdays[at.Weekday()]) + at.Format(" 2006-01-02 15:04:05 -07:00")
}

// weekdays are their short names, from Sunday on.
var weekdays = [7]daybook.Text{daybook.Say("Sun"), daybook.Say("Mon"), daybook.Say("Tue"), daybook.Say("Wed"), daybook.Say("Thu"), daybook.Say("Fri"), daybook.Say("Sat")}

// policies says in one line what happens when something goes wrong.
func policies(j *config.Job) daybook.Text {
	steps := make([]string, len(j.Retry.Backoff))
	for i, d := range j.Retry.Backoff {
		steps[i] = config.Duration(d).String()
	}
	ladder, timeout := daybook.Say("none"), daybook.Say("none")
	if len(steps) > 0 {
		ladder = daybook.Say("%s", strings.Join(steps, " "))
	}
	if j.Timeout > 0 {
		timeout = daybook.Say("%s", config.Duration(j.Timeout))
	}
	return daybook.Say("effects %s, missed %s within %s, overlap %s, retries after %s, timeout %s, late after %s", j.Effects, j.Missed,
		config.Duration(j.CatchupWindow), j.Overlap, ladder, timeout, config.Duration(j.Expect.Grace))
}
