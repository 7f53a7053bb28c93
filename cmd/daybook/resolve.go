package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// resolveFlags say what happened to an effect.
type resolveFlags struct {
	step, as, reason, result, confirm string
	attempt                           int
	dry, hasResult                    bool
}

func newRunResolve(a *app) *cobra.Command {
	var o resolveFlags
	cmd := &cobra.Command{
		Use: "resolve KEY --step S --as done|not-done|ask --reason R", Short: textRunResolve, Long: textRunResolveLong,
		Args: exactly("KEY"), ValidArgsFunction: a.completeLetters,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.hasResult = cmd.Flags().Changed("result")
			return a.runResolve(cmd.Context(), daybook.Key(args[0]), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.step, "step", "", "the effect; run is the whole run as one effect (required; run show lists them)")
	f.StringVar(&o.as, "as", "", "done: it happened; not-done: it did not, and is tried again; ask: the probe is asked again (required)")
	f.StringVar(&o.result, "result", "", "with --as done: what the far side handed back, as JSON; later attempts and an undo are given it")
	f.IntVar(&o.attempt, "attempt", 0, "the attempt that was looked into (required for not-done once there are several; run show counts them)")
	reasonFlag(cmd, &o.reason)
	f.StringVar(&o.confirm, "confirm", "", textFlagConfirm)
	writing(cmd, &o.dry)
	return cmd
}

func (a *app) runResolve(ctx context.Context, key daybook.Key, o resolveFlags) error {
	as := daybook.Resolution(o.as)
	switch {
	case o.as == "":
		return daybook.Invalid("resolve: --as is missing").WithHint("--as done, --as not-done or --as ask")
	case as != daybook.AsAsk:
		if err := needReason(o.reason, daybook.Say("resolve")); err != nil {
			return err
		}
	}
	w := control.Word{Step: o.step, As: as, Attempt: o.attempt}
	if o.hasResult {
		w.Result = json.RawMessage(o.result)
	}
	if err := w.Check(); err != nil {
		return err
	}
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		r, err := c.Run(ctx, key)
		if err != nil {
			return err
		}
		if err := control.CheckOpenStep(r, o.step); err != nil {
			return err
		}
		if w.Attempt == 0 && o.confirm == "" && !a.flags.yes && a.interactive() {
			w.Attempt = r.Attempts // it is read before it is confirmed
		}
		rule, err := a.resolution(ctx, c, key.Job(), w)
		if err != nil {
			return err
		}
		known := r.StepRecord(o.step) != nil && (as == daybook.AsDone || as == daybook.AsNotDone || as == daybook.AsAsk)
		if o.dry && known {
			return a.wouldAct(ctx, c, key, act{name: "resolve", rule: rule}, o.reason)
		}
		// What a rule refuses, or is no step or answer, is told before anybody is asked to confirm it.
		if _, refused := rule(r, a.person().Name, o.reason, a.Now()); refused == nil && known && as != daybook.AsAsk {
			if err := a.confirmResolve(r, o); err != nil {
				return err
			}
		}
		done, err := c.Resolve(ctx, a.person(), key, w, o.reason)
		if err != nil {
			return err
		}
		return a.tellActed(done)
	})
}

// resolution is the rule by which a run is resolved.
func (a *app) resolution(ctx context.Context, c *control.Control, job string, w control.Word) (func(*daybook.Run, string, string, time.Time) (daybook.Transition, error), error) {
	policy := daybook.Policy{}
	if w.As == daybook.AsAsk {
		v, err := c.Job(ctx, job)
		if err != nil {
			return nil, err
		}
		if v.Job != nil {
			policy = v.Job.Policy()
		}
	}
	return func(r *daybook.Run, who, note string, now time.Time) (daybook.Transition, error) {
		t, err := r.ResolveStep(w.Step, w.As, policy, who, note, now)
		if err == nil {
			err = w.About(r)
		}
		return t, err
	}, nil
}

// confirmResolve shows what the word of a person will do, and asks for it: for what touches money by its key.
func (a *app) confirmResolve(r *daybook.Run, o resolveFlags) error {
	wire := r.StepRecord(o.step).WireKey()
	plan := daybook.Say("%s  effect %s, wire key %s, would be settled as done, and would never be begun again", r.Key, o.step, wire)
	switch {
	case o.hasResult:
		plan = daybook.Say("%s  effect %s, wire key %s, would be settled as done, with the result %s, and would never be begun again", r.Key, o.step, wire, daybook.Clip(oneLine(o.result), 200))
	case daybook.Resolution(o.as) == daybook.AsNotDone:
		plan = daybook.Say("%s  effect %s, wire key %s, would be settled as not done, and would be begun again under the next wire key", r.Key, o.step, wire)
	}
	a.plan("%s", plan)
	return a.confirmed(daybook.Say("resolve"), r.Priority, r.Key, o.confirm)
}
