package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
)

func newFreeze(a *app) *cobra.Command {
	return noun("freeze", textFreeze, newFreezeStart(a), newFreezeEnd(a), newFreezeList(a), newFreezeCheck(a))
}

// spanFlag is the flag --for of freezes.
func spanFlag(text, hint string) (time.Duration, error) {
	if text == "" {
		return 0, daybook.Invalid("--for is missing").WithHint("such as --for %s: at most 24h", hint)
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return 0, flagged("--for", err)
	}
	return time.Duration(d), nil
}

func newFreezeStart(a *app) *cobra.Command {
	var length, only, name, note string
	var dry bool
	cmd := &cobra.Command{
		Use: "start --for 30m --reason R", Short: textFreezeStart, Long: textFreezeStartLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := spanFlag(length, "30m")
			if err != nil {
				return err
			}
			if err := needReason(note, daybook.Say("a freeze")); err != nil {
				return err
			}
			return a.freezeStart(cmd.Context(), control.FreezeRequest{For: d, Only: daybook.Priority(only), Name: name, Note: note}, dry)
		},
	}
	cmd.Flags().StringVar(&length, "for", "", "how long: 30m, 2h; at most 24h")
	cmd.Flags().StringVar(&only, "only", "", "P0: hold nothing else")
	cmd.Flags().StringVar(&name, "name", "", "to end it by (default: freeze, or the next of freeze-2, freeze-3)")
	reasonFlag(cmd, &note)
	writing(cmd, &dry)
	return cmd
}

func (a *app) freezeStart(ctx context.Context, q control.FreezeRequest, dry bool) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		if err := c.MayFreeze(q); err != nil {
			return err
		}
		until := stamp(a.Now().Add(q.For), a.zoneOf(""))
		if q.Only == "" {
			a.plan("nothing starts until %s: no run, no retry, no question, no undo; what runs goes on", until)
		} else {
			a.plan("nothing of %s starts until %s: no run, no retry, no question, no undo; what runs goes on", q.Only, until)
		}
		if dry {
			a.dryRun()
			return nil
		}
		if err := a.proceed(daybook.Say("a freeze")); err != nil {
			return err
		}
		f, err := c.StartFreeze(ctx, a.person(), q)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(control.NewFreezeJSON(f, f.From))
		}
		if err := a.line("freeze %s stands until %s.", f.Name, stamp(f.Until, a.zoneOf(""))); err != nil {
			return err
		}
		a.next(fmt.Sprintf("daybook freeze end %s --reason …", f.Name))
		return nil
	})
}

func newFreezeList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: textFreezeList, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.freezeList(cmd.Context()) },
	}
}

func (a *app) freezeList(ctx context.Context) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		l, err := c.Freezes(ctx)
		if err != nil {
			return err
		}
		list, held := l.JSON()
		if a.flags.json {
			for _, j := range list {
				if err := a.printJSON(j); err != nil {
					return err
				}
			}
			for _, j := range held {
				if err := a.printJSON(j); err != nil {
					return err
				}
			}
			return nil
		}
		if err := a.printFreezes(list); err != nil {
			return err
		}
		if err := a.printHeld(held, l.Total); err != nil {
			return err
		}
		if len(l.Holds)+len(l.Freezes) == 0 {
			a.say("nothing is held")
		}
		if names := l.Names(); len(names) > 0 {
			return a.nextHold(ctx, c, names[0])
		}
		return nil
	})
}

// nextHold suggests how a freeze or a hold is ended, and what comes before that.
func (a *app) nextHold(ctx context.Context, c *control.Control, name string) error {
	r, err := c.Restored(ctx)
	if err != nil {
		return err
	}
	if r != nil && name == daybook.HoldRestored {
		a.nextText(r.Do())
		return nil
	}
	a.next(fmt.Sprintf("daybook freeze end %s --reason …", name))
	return nil
}

func (a *app) printFreezes(list []control.FreezeJSON) error {
	g := &grid{tail: true, head: []string{"NAME", "SINCE", "UNTIL", "HOLDS", "BY", "WHY"}}
	for _, j := range list {
		until, holds := daybook.Text{}, daybook.Say("everything")
		if !j.Until.IsZero() {
			until = daybook.Say("%s", stamp(j.Until, a.zoneOf("")))
		}
		switch {
		case j.Kind == "hold" && j.Name == daybook.HoldClock:
			holds = daybook.Say("new windows of once-only work")
		case j.Kind == "hold" && j.Name == daybook.HoldRestored:
			holds = daybook.Say("once-only work")
		case j.Only != "":
			holds = daybook.Say("%s", j.Only)
		}
		if j.Coming {
			holds = daybook.Say("not yet: %s", holds)
		}
		g.add(j.Name, a.moment(j.Since, ""), until, holds, j.By, cmp.Or(j.Detail, "-")+" ")
	}
	return a.print(g)
}

func (a *app) printHeld(held []control.HeldJSON, total int) error {
	if len(held) == 0 {
		return nil
	}
	if err := a.line(""); err != nil {
		return err
	}
	g := &grid{head: []string{"HELD", "STATE", "WAS DUE", "STARTS"}}
	for _, j := range held {
		g.add(string(j.Key), daybook.Say("%s", j.State), a.moment(j.Meant, ""), a.moment(j.Due, ""))
	}
	if err := a.print(g); err != nil {
		return err
	}
	if more := total - len(held); more > 0 {
		a.say("and %d more", more)
	}
	return nil
}

func newFreezeCheck(a *app) *cobra.Command {
	var length string
	cmd := &cobra.Command{
		Use: "check --for 31m", Short: textFreezeCheck, Long: textFreezeCheckLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := spanFlag(length, "31m")
			if err != nil {
				return err
			}
			return a.freezeCheck(cmd.Context(), d)
		},
	}
	cmd.Flags().StringVar(&length, "for", "", "how long the work lasts that must not meet P0: 31m")
	return cmd
}

func (a *app) freezeCheck(ctx context.Context, span time.Duration) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		f, err := c.CheckFreeze(ctx, span)
		if err != nil {
			return err
		}
		if a.flags.json {
			if err := a.printJSON(control.NewFreezeCheckJSON(f)); err != nil {
				return err
			}
		} else if len(f.Coming) == 0 {
			return a.line("nothing of P0 is under way or comes until %s.", stamp(f.Until, a.zoneOf("")))
		} else {
			g := &grid{head: []string{"KEY", "STATE", "AT"}}
			for _, n := range f.Coming {
				state := daybook.Say("not yet due")
				if n.Run != nil {
					state = stateText(n.Run)
				}
				g.add(string(n.Key), state, a.moment(n.At, ""))
			}
			if err := a.print(g); err != nil {
				return err
			}
			a.say("P0 work is under way or comes until %s: wait, or put it off by a freeze", stamp(f.Until, a.zoneOf("")))
		}
		if exit := f.Exit(); exit != 0 {
			return &coded{code: exit, err: errors.New("told already"), silent: true}
		}
		return nil
	})
}

func newFreezeEnd(a *app) *cobra.Command {
	var note string
	var dry bool
	cmd := &cobra.Command{
		Use: "end [NAME] --reason R", Short: textFreezeEnd, Long: textFreezeEndLong, Args: atMost(1),
		ValidArgsFunction: a.completing(false, func(ctx context.Context, c *control.Control, _ string) ([]string, error) {
			l, err := c.Freezes(ctx)
			return l.Names(), err
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return a.freezeEnd(cmd.Context(), name, note, dry)
		},
	}
	reasonFlag(cmd, &note)
	writing(cmd, &dry)
	return cmd
}

func (a *app) freezeEnd(ctx context.Context, name, note string, dry bool) error {
	if err := needReason(note, daybook.Say("the end of a freeze")); err != nil {
		return err
	}
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		l, err := c.Freezes(ctx)
		if err != nil {
			return err
		}
		if names := l.Names(); name == "" && len(names) == 1 {
			name = names[0]
		}
		for _, h := range l.Holds {
			if h.Name == name {
				a.plan("end %s, held since %s: %s", name, stamp(h.Since, a.zoneOf("")), oneLine(h.Detail))
				if name == daybook.HoldClock {
					a.plan("it is now %s: that is right, is it?", stamp(a.Now(), a.zoneOf("")))
				}
				if err := a.mayEnd(dry); err != nil || dry {
					return err
				}
			}
		}
		for _, f := range l.Freezes {
			if f.Name == name && !f.OfFile {
				a.plan("end %s, which stands until %s; %s held", name, stamp(f.Until, a.zoneOf("")), daybook.Count(l.Total, "%d run is", "%d runs are"))
				if err := a.mayEnd(dry); err != nil || dry {
					return err
				}
			}
		}
		if name, err = c.EndFreeze(ctx, a.person(), name, note); err != nil {
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

// mayEnd asks for a confirmation of what was shown.
func (a *app) mayEnd(dry bool) error {
	if dry {
		a.dryRun()
		return nil
	}
	return a.proceed(daybook.Say("the end of a freeze"))
}
