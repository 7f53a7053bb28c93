package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newFreeze(a *app) *cobra.Command {
	return noun("freeze", textFreeze, newFreezeList(a), newFreezeEnd(a), notYet("start"), notYet("check"))
}

// holdJSON is daybook/freeze.v1: what keeps runs from starting.
type holdJSON struct {
	Schema string    `json:"schema"`
	Name   string    `json:"name"`
	Since  time.Time `json:"since"`
	Detail string    `json:"detail"`
	Node   string    `json:"node,omitempty"`
	By     string    `json:"by"`
}

func newFreezeList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: textFreezeList, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.freezeList(cmd.Context()) },
	}
}

func (a *app) freezeList(ctx context.Context) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		holds, err := c.Holds(ctx)
		if err != nil {
			return err
		}
		g := &grid{tail: true, head: []string{"NAME", "SINCE", "BY", "WHY"}}
		for _, h := range holds {
			if a.flags.json {
				if err := a.printJSON(holdJSON{"daybook/freeze.v1", h.Name, h.Since, h.Detail, h.Node, "daybook"}); err != nil {
					return err
				}
				continue
			}
			g.add(h.Name, a.moment(h.Since, ""), "daybook", h.Detail+" ")
		}
		if err := a.print(g); err != nil {
			return err
		}
		if len(holds) == 0 {
			a.say("nothing is held")
			return nil
		}
		a.next(fmt.Sprintf("daybook freeze end %s --reason …", holds[0].Name))
		return nil
	})
}

func newFreezeEnd(a *app) *cobra.Command {
	var note string
	var dry bool
	cmd := &cobra.Command{
		Use: "end NAME --reason R", Short: textFreezeEnd, Long: textFreezeEndLong, Args: exactly("NAME"),
		ValidArgsFunction: a.completing(false, func(ctx context.Context, c *control.Control, _ string) ([]string, error) {
			holds, err := c.Holds(ctx)
			var names []string
			for _, h := range holds {
				names = append(names, h.Name)
			}
			return names, err
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return a.freezeEnd(cmd.Context(), args[0], note, dry) },
	}
	reasonFlag(cmd, &note)
	writing(cmd, &dry)
	return cmd
}

func (a *app) freezeEnd(ctx context.Context, name, note string, dry bool) error {
	if err := needReason(note, daybook.Say("the end of a hold")); err != nil {
		return err
	}
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		holds, err := c.Holds(ctx)
		if err != nil {
			return err
		}
		for _, h := range holds {
			if h.Name == name {
				a.plan("end %s, held since %s: %s", name, stamp(h.Since, a.zoneOf("")), oneLine(h.Detail))
				if name == daybook.HoldClock {
					a.plan("it is now %s: that is right, is it?", stamp(a.Now(), a.zoneOf("")))
				}
				if dry {
					a.dryRun()
					return nil
				}
				if err := a.proceed(daybook.Say("the end of a hold")); err != nil {
					return err
				}
			}
		}
		if err := c.EndHold(ctx, a.person(), name, note); err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(map[string]any{"schema": "daybook/freeze-end.v1", "name": name, "ended": true})
		}
		if err := a.line("%s has ended: what was held may start.", name); err != nil {
			return err
		}
		a.next("daybook status")
		return nil
	})
}
