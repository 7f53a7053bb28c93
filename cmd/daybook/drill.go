package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newDrill(a *app) *cobra.Command {
	return noun("drill", textDrill, newDrillRun(a), newDrillList(a))
}

func newDrillRun(a *app) *cobra.Command {
	var q control.DrillRequest
	var doors []string
	var count string
	cmd := &cobra.Command{
		Use: "run JOB --date D", Short: textDrillRun, Long: textDrillRunLong, Example: textDrillRunExample, Args: exactly("JOB"), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Job = args[0]
			for _, d := range doors {
				q.Doors = append(q.Doors, daybook.Source(strings.TrimSpace(d)))
			}
			if cmd.Flags().Changed("times") && q.Times < 1 {
				return daybook.Invalid("--times %d: 1 to %d", q.Times, daybook.MaxDrillTimes)
			}
			if count != "" {
				q.Count = func(ctx context.Context, r *daybook.Run) (string, error) { return a.countFar(ctx, r, count) }
			}
			return a.drillRun(cmd.Context(), q)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&q.Date, "date", "", textFlagDrillDate)
	f.StringVar(&q.Window, "window", "", textFlagDrillWindow)
	f.StringVar(&q.Subject, "subject", "", textFlagDrillSubject)
	f.StringSliceVar(&doors, "doors", texts(daybook.DefaultDrillDoors), textFlagDrillDoors)
	f.IntVar(&q.Times, "times", 3, textFlagDrillTimes)
	f.StringVar(&count, "count", "", textFlagDrillCount)
	writing(cmd, &q.DryRun)
	_ = cmd.RegisterFlagCompletionFunc("doors", value(texts(daybook.DrillDoors)...)) // the flag is there
	return cmd
}

// drillRun drills a key, and ends with 3 when something came of it.
func (a *app) drillRun(ctx context.Context, q control.DrillRequest) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		d, err := c.Drill(ctx, a.person(), q)
		if err != nil {
			return err
		}
		if q.DryRun {
			a.plan("%s would be asked for by %s, %s each", d.Key, daybook.Words(texts(d.Doors)), daybook.Count(d.Times, "%d time", "%d times"))
			a.dryRun()
			return nil
		}
		if a.flags.json {
			err = a.printJSON(control.NewDrillJSON(d))
		} else {
			err = a.tellDrill(d)
		}
		if err != nil {
			return err
		}
		if !d.Passed() {
			a.next("daybook key show " + string(d.Key))
			return &coded{code: daybook.ExitNeedsPerson, err: errors.New("told already"), silent: true}
		}
		return nil
	})
}

// tellDrill shows what came of a drill, the answers, and the counts.
func (a *app) tellDrill(d *daybook.Drill) error {
	err := a.line("%s", control.DrillText(d))
	for _, k := range d.Knocks {
		err = errors.Join(err, a.line("  %s: %s, %s", k.Door, daybook.Count(k.Times, "%d time", "%d times"), k.Outcome))
	}
	err = errors.Join(err, a.line("  recorded before: effects begun %d, attempts %d; after: %d, %d", d.Before.Effects, d.Before.Attempts, d.After.Effects, d.After.Attempts))
	if d.Counted {
		err = errors.Join(err, a.line("  counted before: %s; after: %s", oneLine(d.CountBefore), oneLine(d.CountAfter)))
	}
	return err
}

// countFar runs the counting command of a drill and returns what it printed.
func (a *app) countFar(ctx context.Context, r *daybook.Run, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, daybook.ProbeTimeout)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = &said, a.Stderr
	cmd.Env = append(os.Environ(), "DAYBOOK_KEY="+string(r.Key), "DAYBOOK_JOB="+r.Job, "DAYBOOK_WINDOW="+r.Window.Label, "DAYBOOK_BUSINESS_DATE="+r.Window.Date)
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return "", daybook.Invalid("%s did not end in time", daybook.Clip(line, 80))
	case err != nil:
		return "", daybook.Invalid("%s: %s", daybook.Clip(line, 80), err)
	case said.Len() > daybook.MaxCountBytes:
		return "", daybook.Invalid("%s printed %d bytes: a count has at most %d", daybook.Clip(line, 80), said.Len(), daybook.MaxCountBytes)
	}
	text := strings.TrimSpace(said.String())
	if text == "" {
		return "", daybook.Invalid("%s printed nothing", daybook.Clip(line, 80)).WithHint("print a number, or the lines of the far side's book that are about the key in DAYBOOK_KEY")
	}
	return text, nil
}

func newDrillList(a *app) *cobra.Command {
	var job string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: textDrillList, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.drillList(cmd.Context(), job, limit) },
	}
	cmd.Flags().StringVar(&job, "job", "", textFlagDrillJob)
	cmd.Flags().IntVar(&limit, "limit", 100, textFlagDrillLimit)
	_ = cmd.RegisterFlagCompletionFunc("job", a.completeJobs)
	return cmd
}

func (a *app) drillList(ctx context.Context, job string, limit int) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		list, err := c.Drills(ctx, job, limit)
		if err != nil {
			return err
		}
		zones, err := jobZones(ctx, c)
		if err != nil {
			return err
		}
		g := &grid{tail: true, head: []string{"WHEN", "KEY", "DOORS", "TIMES", "NEW EFFECTS", "BY", "SEEN"}}
		for i := range list {
			d := &list[i]
			if a.flags.json {
				if err := a.printJSON(control.NewDrillJSON(d)); err != nil {
					return err
				}
				continue
			}
			seen := a.lang.Stored(d.Seen)
			if d.Passed() {
				seen = a.lang.F("nothing")
			}
			g.add(a.moment(d.At, zones[d.Job]), string(d.Key), strings.Join(texts(d.Doors), ","), d.Times, d.NewEffects(), d.Actor, seen+" ")
		}
		if err := a.print(g); err != nil {
			return err
		}
		if len(list) == 0 {
			a.say("nothing was drilled yet")
		}
		return nil
	})
}
