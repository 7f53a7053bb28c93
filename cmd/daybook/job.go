package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newJob(a *app) *cobra.Command {
	return noun("job", textJob, newJobList(a), newJobShow(a), newJobNext(a), newJobPause(a), newJobResume(a), newJobTrigger(a))
}

// withControl opens the ledger for one command.
func (a *app) withControl(ctx context.Context, do func(*ledger, *control.Control) error) (err error) {
	l, err := a.open(ctx, "cli", false)
	if err != nil {
		return err
	}
	defer func() {
		if e := l.Close(); err == nil {
			err = e
		}
	}()
	return do(l, l.Control())
}

// jobViewJSON is daybook/job.v1.
type jobViewJSON struct {
	Schema      string           `json:"schema"`
	Job         string           `json:"job"`
	Priority    daybook.Priority `json:"priority,omitempty"`
	Owner       string           `json:"owner,omitempty"`
	Schedule    string           `json:"schedule,omitempty"`
	Timezone    string           `json:"timezone,omitempty"`
	Window      string           `json:"window,omitempty"`
	Effects     daybook.Effects  `json:"effects,omitempty"`
	Revision    int64            `json:"revision"`
	Since       time.Time        `json:"since,omitzero"`
	FirstSeen   time.Time        `json:"first_seen,omitzero"`
	Home        string           `json:"home,omitempty"`
	Paused      bool             `json:"paused,omitempty"`
	PausedAt    time.Time        `json:"paused_at,omitzero"`
	PausedBy    string           `json:"paused_by,omitempty"`
	PausedNote  string           `json:"paused_reason,omitempty"`
	Retired     time.Time        `json:"retired,omitzero"`
	Fault       string           `json:"fault,omitempty"`
	Next        time.Time        `json:"next,omitzero"`
	NextKey     daybook.Key      `json:"next_key,omitempty"`
	LastGood    daybook.Key      `json:"last_good,omitempty"`
	LastGoodEnd time.Time        `json:"last_good_ended,omitzero"`
	Last        *runJSON         `json:"last,omitempty"`
}

func newJobViewJSON(v control.JobView) jobViewJSON {
	st := v.State
	j := jobViewJSON{Schema: "daybook/job.v1", Job: v.Name, Revision: st.Revision, Since: st.Since, FirstSeen: st.FirstSeen, Home: st.Home,
		Paused: st.Paused, PausedAt: st.PausedAt, PausedBy: st.PausedBy, PausedNote: st.PausedNote, Retired: st.RetiredAt, Fault: v.Fault,
		Next: v.Next.At, NextKey: v.NextKey, LastGood: v.LastGood.Key, LastGoodEnd: v.LastGood.EndedAt, Last: control.Nested(v.Last)}
	if v.Job != nil {
		j.Priority, j.Owner, j.Schedule, j.Timezone = v.Job.Priority, v.Job.Owner, v.Job.Schedule, v.Job.Timezone
		j.Window, j.Effects = string(v.Job.Window), v.Job.Effects
	}
	return j
}

func newJobList(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: textJobList, Long: textJobListLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.jobList(cmd.Context(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also jobs that no definition names any more")
	return cmd
}

func (a *app) jobList(ctx context.Context, all bool) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		views, err := c.Jobs(ctx)
		if err != nil {
			return err
		}
		now := a.Now()
		g := &grid{head: []string{"NEXT", "LEFT", "KEY", "LAST GOOD", "STATE", "JOB", "PRIORITY", "OWNER"}}
		hidden := 0
		for _, v := range views {
			if v.Retired() && !all {
				hidden++
				continue
			}
			if a.flags.json {
				if err := a.printJSON(newJobViewJSON(v)); err != nil {
					return err
				}
				continue
			}
			j := v.Job
			if j == nil {
				j = &daybook.Job{}
			}
			left := daybook.Text{}
			if v.NextKey != "" {
				left = short(v.Next.At.Sub(now))
			}
			g.add(a.moment(v.Next.At, j.Timezone), left, string(v.NextKey), v.LastGood.Key.Parts().Window, jobState(v), v.Name, string(j.Priority), j.Owner)
		}
		if err := a.print(g); err != nil {
			return err
		}
		switch {
		case len(views) == 0:
			a.say("the ledger knows no job yet")
			a.next("daybook serve")
		case hidden > 0:
			a.say("%s", daybook.Count(hidden, "%d job that no definition names any more: --all shows them", "%d jobs that no definition names any more: --all shows them"))
		}
		return nil
	})
}

// jobState is how a job stands, in a word or two.
func jobState(v control.JobView) daybook.Text {
	switch {
	case v.Retired():
		return daybook.Say("retired")
	case v.Fault != "":
		return daybook.Say("fault")
	case v.State.Paused:
		return daybook.Say("‖ paused")
	case v.Last == nil:
		return daybook.Say("∅ never ran")
	}
	return stateText(v.Last)
}

// stateCell is stateText in a table, where the letters of a run stand beside it.
func stateCell(r *daybook.Run) daybook.Text {
	if r.WaitsForPerson() {
		return daybook.Say("%s %s (waits for you)", glyphs[r.State], r.State)
	}
	return stateText(r)
}

// stateText is the state of a run with its glyph and the reason.
func stateText(r *daybook.Run) daybook.Text {
	return control.StateText(glyphs[r.State], r)
}

func newJobShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: textJobShow, Args: exactly("JOB"), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.jobShow(cmd.Context(), args[0]) },
	}
}

// jobShowJSON adds the whole definition; references to secrets stay references.
type jobShowJSON struct {
	jobViewJSON
	Words      daybook.Text    `json:"words,omitzero"`
	Definition *definitionJSON `json:"definition,omitempty"`
}

func (a *app) jobShow(ctx context.Context, name string) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		v, err := c.Job(ctx, name)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(jobShowJSON{newJobViewJSON(v), v.Words, newDefinitionJSON(v.Job)})
		}
		w := bufio.NewWriter(a.Stdout)
		a.describeJob(w, v)
		if err := w.Flush(); err != nil {
			return err
		}
		if v.NextKey != "" {
			a.next("daybook job next " + v.Name)
		}
		return nil
	})
}

// describeJob tells what a job is and how it stands.
func (a *app) describeJob(w *bufio.Writer, v control.JobView) {
	row := func(label, format string, args ...any) { a.row(w, label, format, args...) }
	j := v.Job
	if j == nil {
		j = &daybook.Job{}
	}
	loc := a.zoneOf(j.Timezone)
	fmt.Fprintln(w, a.lang.F("%s  %s  owner %s  %s", v.Name, j.Priority, oneLine(j.Owner), jobState(v)))
	if v.State.Paused {
		row("paused", "since %s by %s: %s", stamp(v.State.PausedAt, loc), v.State.PausedBy, v.State.PausedNote)
	}
	row("fault", "%s", v.Fault)
	schedule := daybook.Say("none: by hand, API or events only")
	if j.Schedule != "" {
		schedule = daybook.Say("%s", strings.ReplaceAll(j.Schedule, "\n", "; "))
	}
	if !v.Words.IsZero() {
		schedule = daybook.Say("%s: %s", schedule, v.Words) // with the zone
	} else {
		schedule = daybook.Say("%s, zone %s", schedule, j.Timezone)
	}
	row("schedule", "%s", schedule)
	row("window", "%s, effects: %s, work: %s", j.Window, j.Effects, j.Work)
	row("runs", "%s", cmp.Or(httpText(j), j.Command.String(), a.lang.F("a Go function")))
	row("probe", "%s", probeText(j))
	if j.Effects == daybook.Once && j.Remembers > 0 {
		row("remembers", "%s", spanText(j.Remembers))
	}
	row("missed", "%s, look-back %s; overlap: %s", j.Missed, spanText(j.CatchupWindow), j.Overlap)
	row("retry", "%s", ladder(j.Retry))
	row("limits", "timeout %s, grace %s, longest silence %s", spanText(j.Timeout), spanText(j.Expect.Grace), spanText(j.Expect.MaxSilence))
	row("runbook", "%s", j.Runbook)
	if v.NextKey != "" {
		row("next", "%s → %s", stamp(v.Next.At, loc), v.NextKey)
	}
	if v.LastGood.Key != "" {
		row("last good", "%s, ended %s", v.LastGood.Key, stamp(v.LastGood.EndedAt, loc))
	}
	if v.Last != nil {
		row("last", "%s %s", v.Last.Key, stateText(v.Last))
	}
	if v.State.Revision == 0 {
		row("ledger", "not known there yet: daybook serve makes it known")
		return
	}
	row("ledger", "revision %d since %s, first seen %s", v.State.Revision, stamp(v.State.Since, loc), stamp(v.State.FirstSeen, loc))
}

// span writes a duration of a definition: 0 and less is none.
func span(d time.Duration) string {
	switch {
	case d == daybook.Forever:
		return "forever"
	case d <= 0:
		return "none"
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// spanText is span for people: the words are theirs, lengths are as in the file.
func spanText(d time.Duration) daybook.Text {
	switch {
	case d == daybook.Forever:
		return daybook.Say("forever")
	case d <= 0:
		return daybook.Say("none")
	}
	return daybook.Say("%s", span(d))
}

func ladder(r daybook.Retry) daybook.Text {
	if len(r.Backoff) == 0 {
		return daybook.Say("none: the first failure is a dead letter")
	}
	var steps []string
	for _, d := range r.Backoff {
		steps = append(steps, span(d))
	}
	return daybook.Say("%s, then a dead letter", strings.Join(steps, " "))
}

func newJobNext(a *app) *cobra.Command {
	var n int
	var from string
	cmd := &cobra.Command{
		Use: "next JOB", Short: textJobNext, Long: textJobNextLong, Args: exactly("JOB"), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.jobNext(cmd.Context(), args[0], n, from) },
	}
	cmd.Flags().IntVarP(&n, "number", "n", 5, "how many fires")
	cmd.Flags().StringVar(&from, "from", "", "from this date, YYYY-MM-DD, or after this instant, RFC 3339 (default: now)")
	return cmd
}

// jobNextJSON is daybook/fire.v1.
type jobNextJSON struct {
	Schema string `json:"schema"`
	fireJSON
	Key  daybook.Key `json:"key"`
	Skip string      `json:"skip,omitempty"`
}

func (a *app) jobNext(ctx context.Context, name string, n int, from string) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		v, err := c.Job(ctx, name)
		if err != nil {
			return err
		}
		if v.Job == nil || v.Fault != "" {
			return daybook.Invalid("job %s cannot be planned: %s", name, v.Fault).WithHint("daybook check")
		}
		own := ownZone(v.Job.Timezone)
		after, err := fromFlag(from, own)
		if err != nil {
			return err
		}
		fires, err := c.Next(ctx, name, n, after)
		if err != nil {
			return err
		}
		shown := a.displayZone(own)
		g := &grid{tail: true, head: []string{"FIRE", "KEY", "NOTE"}}
		for _, f := range fires {
			if a.flags.json {
				out := jobNextJSON{"daybook/fire.v1", newFireJSON(f.Fire, own), f.Key, string(f.Fire.Skip)}
				if err := a.printJSON(out); err != nil {
					return err
				}
				continue
			}
			g.add(f.Fire.At.In(shown).Format("2006-01-02 15:04:05 -07:00"), string(f.Key), fireNote(f.Fire))
		}
		if err := a.print(g); err != nil {
			return err
		}
		switch {
		case len(fires) > 0:
			a.say("times are in %s", shown)
		case v.Job.Schedule == "":
			a.say("job %s has no schedule: it is triggered by hand, API or events", name)
		default:
			a.say("job %s does not fire after that", name)
		}
		return nil
	})
}

// fireNote tells what clock or calendar did to a fire.
func fireNote(f daybook.Fire) daybook.Text {
	switch {
	case f.Skip != "":
		return daybook.Say("not run: %s", f.Skip)
	case f.Note == daybook.NoteGap:
		return daybook.Say("gap: %s does not exist", f.Nominal)
	case f.Note == daybook.NoteRepeat:
		return daybook.Say("repeat: %s occurs twice", f.Nominal)
	case f.Note == daybook.NoteMoved:
		return daybook.Say("moved from %s", f.Nominal)
	}
	return daybook.Say(" ")
}

// fromFlag reads a date in a zone, or an instant. Fires at the date's first instant count.
func fromFlag(text string, loc *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseInLocation(time.DateOnly, text, loc); err == nil {
		return d.Add(-time.Microsecond), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, daybook.Invalid("--from: %q is no date and no instant", daybook.Clip(text, 40)).
			WithHint("such as 2026-03-29 or 2026-03-29T02:00:00+01:00")
	}
	return t, nil
}

func newJobPause(a *app) *cobra.Command {
	var note string
	var dry bool
	cmd := &cobra.Command{
		Use: "pause JOB --reason R", Short: textJobPause, Long: textJobPauseLong, Args: exactly("JOB"), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.jobPause(cmd.Context(), args[0], note, dry) },
	}
	reasonFlag(cmd, &note)
	writing(cmd, &dry)
	return cmd
}

func reasonFlag(cmd *cobra.Command, note *string) {
	cmd.Flags().StringVar(note, "reason", "", textFlagReason)
}

// pauseJSON is daybook/pause.v1.
type pauseJSON struct {
	Schema  string       `json:"schema"`
	Job     string       `json:"job"`
	Paused  bool         `json:"paused"`
	Changed bool         `json:"changed"`
	Message daybook.Text `json:"message"`
	Next    string       `json:"next,omitempty"`
	DryRun  bool         `json:"dry_run,omitempty"`
}

func (a *app) jobPause(ctx context.Context, name, note string, dry bool) error {
	if err := needReason(note, daybook.Say("a pause")); err != nil {
		return err
	}
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		v, err := c.Job(ctx, name)
		if err != nil {
			return err
		}
		if !v.State.Paused {
			plan := daybook.Say("pause job %s: nothing new starts, what waits is held, windows that become due are skipped: paused", name)
			if v.NextKey != "" {
				plan = daybook.Say("%s; the first of them is %s at %s", plan, v.NextKey, stamp(v.Next.At, a.zoneOf(v.Job.Timezone)))
			}
			if dry {
				return a.tellPause(pauseJSON{Job: name, Paused: false, Changed: true, Message: plan, DryRun: true})
			}
			a.plan("%s", plan)
			if err := a.proceed(daybook.Say("pause")); err != nil {
				return err
			}
		} else if dry {
			return a.tellPause(pauseJSON{Job: name, Paused: true, Message: daybook.Say("job %s is paused already", name), DryRun: true})
		}
		p, err := c.Pause(ctx, a.person(), name, note)
		if err != nil {
			return err
		}
		return a.tellPause(pauseJSON{Job: name, Paused: p.Job.Paused, Changed: p.Changed, Message: p.Text(), Next: p.Next()})
	})
}

func (a *app) tellPause(j pauseJSON) error {
	j.Schema = "daybook/pause.v1"
	if a.flags.json {
		return a.printJSON(j)
	}
	if err := a.line("%s", j.Message); err != nil {
		return err
	}
	if j.DryRun {
		a.dryRun()
		return nil
	}
	a.next(j.Next)
	return nil
}

func newJobResume(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "resume JOB", Short: textJobResume, Args: exactly("JOB"), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.jobResume(cmd.Context(), args[0], dry) },
	}
	writing(cmd, &dry)
	return cmd
}

func (a *app) jobResume(ctx context.Context, name string, dry bool) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		if dry {
			v, err := c.Job(ctx, name)
			if err != nil {
				return err
			}
			message := daybook.Say("job %s is not paused", name)
			if v.State.Paused {
				message = daybook.Say("resume job %s: what is held may start", name)
			}
			return a.tellPause(pauseJSON{Job: name, Paused: v.State.Paused, Changed: v.State.Paused, Message: message, DryRun: true})
		}
		p, err := c.Resume(ctx, a.person(), name)
		if err != nil {
			return err
		}
		return a.tellPause(pauseJSON{Job: name, Paused: p.Job.Paused, Changed: p.Changed, Message: p.Text(), Next: p.Next()})
	})
}
