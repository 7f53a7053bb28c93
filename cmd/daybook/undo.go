package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// stepRows writes a row for everything that is recorded of the work of a run.
func (a *app) stepRows(row func(label, format string, args ...any), r *daybook.Run) {
	for _, e := range r.Marked() {
		if e.Plain {
			row("step", "%s %s", e.Step, effectText(e.State))
			continue
		}
		row("effect", "%s %s, wire key %s", e.Step, effectText(e.State), e.WireKey())
	}
}

// newUndo is the verb of two nouns: a run that is done, and one whose letter is open.
func newUndo(a *app, short string) *cobra.Command {
	var note, confirm string
	var dry bool
	cmd := &cobra.Command{
		Use: "undo KEY --reason R", Short: short, Long: textUndoLong, Args: exactly("KEY"), ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needReason(note, daybook.Say("undo")); err != nil {
				return err
			}
			return a.undo(cmd.Context(), daybook.Key(args[0]), note, confirm, dry)
		},
	}
	reasonFlag(cmd, &note)
	cmd.Flags().StringVar(&confirm, "confirm", "", textFlagConfirm)
	writing(cmd, &dry)
	return cmd
}

// undo shows what is taken back, lets it be confirmed, by its key where it touches money, and begins it.
func (a *app) undo(ctx context.Context, key daybook.Key, note, confirm string, dry bool) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		plan, err := c.UndoPlan(ctx, a.person(), key, note)
		if err != nil {
			return err
		}
		for _, e := range plan.Effects {
			a.plan("%s  effect %s, wire key %s: %s", plan.Run.Key, e.Step, e.WireKey, e.Text())
		}
		if dry {
			return a.wouldAct(ctx, c, key, act{name: "undo", rule: (*daybook.Run).Undo}, note)
		}
		a.plan("%s  nothing of the run would be done again", plan.Run.Key)
		if err := a.confirmUndo(plan.Run, confirm); err != nil {
			return err
		}
		done, err := c.Undo(ctx, a.person(), key, note)
		if err != nil {
			return err
		}
		return a.tellActed(done)
	})
}

func (a *app) confirmUndo(r *daybook.Run, confirm string) error {
	return a.confirmed(daybook.Say("undo"), r.Priority, r.Key, confirm)
}
