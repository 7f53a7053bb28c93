package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/runner"
)

func newStep(a *app) *cobra.Command {
	return a.stepVerb(&cobra.Command{
		Use: "step NAME -- COMMAND…", Short: textStep, Long: textStepLong, Example: textStepExample, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.stepped(a.stepCommand(cmd.Context(), "step", args, daybook.StepAsk{Plain: true}, ""))
		},
	})
}

// stepVerb makes a wrong flag what any other misuse in a step is: the step is not let begin.
func (a *app) stepVerb(cmd *cobra.Command) *cobra.Command {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return a.stepped(0, a.misused(cmd.Context(), cmd.Name(), flagError(cmd, err)))
	})
	return cmd
}

func newEffect(a *app) *cobra.Command {
	var probe, undo, remembers, settles string
	var optional bool
	cmd := a.stepVerb(&cobra.Command{
		Use: "effect NAME [flags] -- COMMAND…", Short: textEffect, Long: textEffectLong, Example: textEffectExample, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := daybook.StepAsk{Says: daybook.StepPolicy{Asks: probe != "", Undo: undo, Optional: optional}}
			var err error
			if ask.Says.Remembers, err = durationFlag("--remembers", remembers); err != nil {
				return a.stepped(0, a.misused(cmd.Context(), "effect", err))
			}
			if ask.Says.Settles, err = durationFlag("--settles", settles); err != nil {
				return a.stepped(0, a.misused(cmd.Context(), "effect", err))
			}
			return a.stepped(a.stepCommand(cmd.Context(), "effect", args, ask, probe))
		},
	})
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&probe, "probe", "", textFlagStepProbe)
	f.StringVar(&undo, "undo", "", textFlagStepUndo)
	f.StringVar(&remembers, "remembers", "", textFlagStepRemembers)
	f.StringVar(&settles, "settles", "", textFlagStepSettles)
	f.BoolVar(&optional, "optional", false, textFlagStepOptional)
	return cmd
}

// stepped makes the end of a step the end of the program: the code of the command, or 125 where Daybook refused.
func (a *app) stepped(code int, err error) error {
	switch {
	case err != nil:
		return &coded{code: daybook.ExitDaybook, err: err, oneLine: true}
	case code != 0:
		return &coded{code: code, err: errors.New("told already"), silent: true}
	}
	return nil
}

// stepCommand runs a command as a step of the run whose token it finds in its environment, unless that step is done, and returns
// the code to exit with.
func (a *app) stepCommand(ctx context.Context, verb string, args []string, ask daybook.StepAsk, probe string) (int, error) {
	if len(args) < 2 {
		return 0, a.misused(ctx, verb, daybook.Invalid("%s: a name and a command are needed", verb).WithHint("daybook %s NAME -- COMMAND", verb))
	}
	ask.Step = args[0]
	if err := daybook.CheckStep(ask.Step); err != nil {
		return 0, a.misused(ctx, verb, err)
	}
	token, _ := a.LookupEnv("DAYBOOK_TOKEN")
	if token == "" {
		return 0, daybook.Invalid("%s is for commands of a job with steps: there is no DAYBOOK_TOKEN", verb).
			WithHint("set steps: true in the job, and let daybook run it")
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE) // whoever reads what is printed may be gone: how it ended is told all the same
	defer signal.Stop(pipes)
	code, answered := 0, a.unanswered(verb, ask)
	err := a.withSteps(ctx, token, func(d stepDesk) (err error) {
		code, err = a.doStep(ctx, d, ask, probe, args[1:], answered)
		return err
	})
	return code, err
}

// unanswered notes, in the directory of the attempt if it has one, that a step is asked for and that nobody has answered yet: else a
// script that goes on would be done without it. It returns what is to be called with the answer.
func (a *app) unanswered(verb string, ask daybook.StepAsk) (answered func()) {
	result, _ := a.LookupEnv("DAYBOOK_RESULT_FILE")
	if result == "" || ask.Says.Optional || runner.KeepUnbegun(filepath.Dir(result), ask.Step, strings.TrimSpace(verb+" "+ask.Step)) != nil {
		return func() {}
	}
	return func() { runner.ForgetUnbegun(filepath.Dir(result), ask.Step) }
}

// misused tells the attempt, if there is one, that a step was asked for in a way in which it cannot begin: else a script that goes
// on after it would be done without it. It returns what is wrong.
func (a *app) misused(ctx context.Context, verb string, wrong error) error {
	if token, _ := a.LookupEnv("DAYBOOK_TOKEN"); token != "" {
		answered := a.unanswered(verb, daybook.StepAsk{})
		ask := daybook.StepAsk{Plain: verb == "step", Fault: "daybook " + verb + ": " + inOneLine(wrong.Error(), daybook.HintOf(wrong))}
		err := a.withSteps(ctx, token, func(d stepDesk) error {
			_, err := patiently(ctx, beginPatience, func(ctx context.Context) (told, error) { return d.comeTo(ctx, ask) })
			return err
		})
		if daybook.CodeOf(err) == daybook.CodeUnavailable {
			a.tellError(err)
		} else {
			answered()
		}
	}
	return wrong
}

// durationFlag reads a flag of a duration, or forever.
func durationFlag(flag, text string) (time.Duration, error) {
	d, err := remembers(text)
	if err != nil {
		return 0, daybook.Invalid("%s %q is no duration", flag, daybook.Clip(text, 40)).WithHint("such as 90s, 10m, 24h, forever")
	}
	return d, nil
}
