package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
)

func newActivity(a *app) *cobra.Command {
	return noun("activity", textActivity, newActivityList(a))
}

func newActivityList(a *app) *cobra.Command {
	var since, actor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: textActivityList, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := config.ParseDuration(since)
			if err != nil {
				return flagged("--since", err)
			}
			if limit < 1 || limit > 1000 {
				return daybook.Invalid("--limit %d: 1 to 1000", limit)
			}
			return a.activityList(cmd.Context(), time.Duration(d), actor, limit)
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "7d", "how far back: 90m, 26h, 7d")
	f.StringVar(&actor, "actor", "", "of one person or program")
	f.IntVar(&limit, "limit", 200, "at most so many, 1,000 at the most")
	return cmd
}

func (a *app) activityList(ctx context.Context, since time.Duration, actor string, limit int) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		acts, err := c.Activities(ctx, a.Now().Add(-since), actor, limit)
		if err != nil {
			return err
		}
		zones, err := jobZones(ctx, c)
		if err != nil {
			return err
		}
		g := &grid{tail: true, head: []string{"WHEN", "ACTOR", "ACT", "ABOUT", "CHANGE", "REASON"}}
		for _, t := range acts {
			if a.flags.json {
				if err := a.printJSON(newActivityJSON(t)); err != nil {
					return err
				}
				continue
			}
			job, about := t.Job, string(t.Key)
			if about == "" {
				about = t.Job
			} else {
				job = t.Key.Job()
			}
			g.add(a.moment(t.At, zones[job]), t.Actor, t.Action, about, control.ChangeText(t), t.Note+" ")
		}
		if err := a.print(g); err != nil {
			return err
		}
		switch {
		case len(acts) == 0:
			a.say("nobody did anything in the last %s", span(since))
		case len(acts) == limit:
			a.say("there may be more: --limit N, --since, --actor")
		}
		return nil
	})
}
