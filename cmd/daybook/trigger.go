package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// triggerFlags are what job trigger asks for.
type triggerFlags struct {
	window, date, subject, payload, reason, confirm string
	again, early, runSkipped, dry                   bool
	wait                                            waitFlag
}

func newJobTrigger(a *app) *cobra.Command {
	var o triggerFlags
	cmd := &cobra.Command{
		Use: "trigger JOB", Short: textJobTrigger, Long: textJobTriggerLong, Example: textJobTriggerExample,
		Args: exactly("JOB"), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.jobTrigger(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.window, "window", "", "label of the window, such as 2026-10-26 or 2026-W43; LABEL~2 is a deliberate second effect")
	f.StringVar(&o.date, "date", "", "the window of a job whose windows are days, YYYY-MM-DD")
	f.StringVar(&o.subject, "subject", "", "one business object inside the window")
	f.StringVar(&o.payload, "payload", "", "file with JSON for the job; - is stdin")
	f.BoolVar(&o.again, "again", false, "one further attempt of a done run, for effects: repeatable only")
	f.BoolVar(&o.early, "early", false, "a window that is not open yet; needs --reason")
	f.BoolVar(&o.runSkipped, "run-skipped", false, "a window that was skipped runs after all")
	f.Var(&o.wait, "wait", "follow the run to its end: exit 0 done, 1 dead, 6 when nobody executes; with --wait=10m at most so long: exit 124, and the run goes on")
	f.Lookup("wait").NoOptDefVal = forever
	reasonFlag(cmd, &o.reason)
	f.StringVar(&o.confirm, "confirm", "", textFlagConfirm)
	writing(cmd, &o.dry)
	return cmd
}

func (a *app) jobTrigger(ctx context.Context, job string, o triggerFlags) error {
	q := control.Request{Job: job, Window: o.window, Date: o.date, Subject: o.subject, Again: o.again, Early: o.early, RunSkipped: o.runSkipped, Note: o.reason}
	var err error
	if q.Payload, err = a.payload(o.payload); err != nil {
		return err
	}
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		if err := a.mayMakeKnown(ctx, l, job); err != nil {
			return err
		}
		if o.dry {
			answer, err := c.Preview(ctx, a.person(), q)
			if err != nil {
				return err
			}
			return a.tell(answer, true)
		}
		if err := a.beforeTrigger(ctx, c, &q, o); err != nil {
			return err
		}
		answer, err := c.Trigger(ctx, a.person(), q)
		if err != nil {
			return err
		}
		if o.wait.asked && (answer.Outcome == daybook.Started || answer.Outcome == daybook.Joined) {
			return a.triggerWait(ctx, c, answer, o.wait.atMost)
		}
		return a.tell(answer, false)
	})
}

// beforeTrigger asks what has to be asked first: for a further effect that touches money its key, for a subject that was not
// listed whether it is meant, for a skipped window whether it shall run after all.
func (a *app) beforeTrigger(ctx context.Context, c *control.Control, q *control.Request, o triggerFlags) error {
	_, _, further := strings.Cut(o.window, "~")
	askSkipped := !q.RunSkipped && a.interactive()
	if !further && !askSkipped && o.subject == "" {
		return nil
	}
	p, err := c.Preview(ctx, a.person(), *q)
	if err != nil {
		return err
	}
	if p.Because == daybook.BecauseNotListed {
		v, err := c.Job(ctx, q.Job)
		if err != nil {
			return err
		}
		a.plan("%s", a.shown(p).Text())
		if p.Near != "" {
			a.say("did you mean %s?", p.Near)
		}
		if err := a.confirmed(unlistedText(p), v.Job.Priority, p.Key, o.confirm); err != nil {
			return err
		}
		q.Unlisted = true
	}
	if further && p.Outcome == daybook.Started && p.Because == daybook.BecauseNew && p.Key.Parts().N > 1 {
		v, err := c.Job(ctx, q.Job)
		if err != nil {
			return err
		}
		if v.Job != nil && v.Job.Priority == daybook.P0 {
			a.plan("%s is a deliberate further effect: what %s does is done once more for this window", p.Key, q.Job)
			return a.typed(daybook.Say("a further effect"), p.Key, o.confirm)
		}
	}
	if askSkipped && p.Outcome == daybook.Refused && p.Because == daybook.BecauseSkipped {
		a.plan("%s", a.shown(p).Text())
		switch err := a.proceed(daybook.Say("running a skipped window")); {
		case err == nil:
			q.RunSkipped = true
		case daybook.CodeOf(err) != daybook.CodeConflict:
			return err
		}
	}
	return nil
}

// unlistedText names what a subject is that no listing named.
func unlistedText(p control.Answer) daybook.Text {
	if p.Listing == nil {
		return daybook.Say("a subject before its window is listed")
	}
	return daybook.Say("a subject that is not in the listing of %d", p.Listing.Of)
}

// payload reads JSON from a file or from stdin.
func (a *app) payload(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	in := a.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, daybook.Invalid("--payload: read %s", path).Because(plain(err))
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, daybook.MaxPayloadBytes+1))
	if err != nil {
		return nil, daybook.Invalid("--payload: read %s", path).Because(plain(err))
	}
	if len(strings.TrimSpace(string(b))) == 0 {
		return nil, daybook.Invalid("--payload: %s is empty", path).WithHint("leave --payload out for none")
	}
	return b, nil
}

// tell says what became of a trigger, or would, and ends with the exit code of the answer.
func (a *app) tell(answer control.Answer, dry bool) error {
	silent := error(nil)
	if answer.Exit != 0 {
		silent = &coded{code: answer.Exit, err: errors.New("told already"), silent: true}
	}
	if a.flags.json {
		j := control.NewAnswerJSON(answer)
		j.DryRun = dry
		return cmp.Or(a.printJSON(j), silent)
	}
	if dry {
		defer a.dryRun()
	}
	answer = a.shown(answer)
	if answer.Outcome == daybook.Refused {
		return &coded{code: answer.Exit, err: answer.Err()}
	}
	told := answer.Text()
	if dry {
		told = daybook.Say("%s  would be %s", answer.Key, answer.Outcome)
		if said := answer.Said(); said.String() != string(answer.Outcome)+"." {
			told = daybook.Say("%s: %s", told, said)
		}
	}
	if err := a.line("%s", told); err != nil {
		return err
	}
	if !dry {
		if answer.NobodyExecutes {
			a.say(msgRecorded)
		}
		a.nextText(answer.Do())
	}
	return silent
}

const msgRecorded = "recorded; runs when daybook serve runs"

// shown is an answer whose times are told in the zone of --show-tz.
func (a *app) shown(answer control.Answer) control.Answer {
	answer.Run, answer.Cover = a.shownRun(answer.Run), a.shownRun(answer.Cover)
	return answer
}

func (a *app) shownRun(r *daybook.Run) *daybook.Run {
	if r == nil || a.flags.showTZ == "" {
		return r
	}
	c := *r
	c.Zone = a.flags.showTZ
	return &c
}

// triggerWait follows the run of an answer to its end.
func (a *app) triggerWait(ctx context.Context, c *control.Control, answer control.Answer, atMost time.Duration) error {
	if !a.flags.json {
		a.say("%s", a.shown(answer).Text())
	}
	key := answer.Key
	if answer.Cover != nil {
		key = answer.Cover.Key
	}
	r, err := a.follow(ctx, c, key, atMost, func(r *daybook.Run) error {
		if r.State.Live() && !r.WaitsForPerson() || r.State == daybook.Coalesced {
			a.say("%s", a.stepLine(r))
		}
		return nil
	})
	if !a.flags.json {
		if err != nil {
			return err
		}
		return a.ended(ctx, c, r, true)
	}
	// With JSON the answer is told once, with the run as it stands in the end; that it was recorded is told in any case.
	j := control.NewAnswerJSON(answer)
	if r != nil {
		j.Run, j.Cover = control.Nested(r), nil
		if err == nil && r.State != daybook.Done {
			err = &coded{code: daybook.ExitFailed, err: errors.New("told already"), silent: true}
		}
	}
	if err != nil {
		j.Exit = exitCode(err)
	}
	if e := a.printJSON(j); e != nil {
		return e
	}
	return err
}
