package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/runner"
)

func newStep(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "step NAME -- COMMAND…", Short: textStep, Long: textStepLong, Example: textStepExample, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.stepped(a.stepCommand(cmd.Context(), "step", args, daybook.StepAsk{Plain: true}, ""))
		},
	}
}

func newEffect(a *app) *cobra.Command {
	var probe, undo, remembers, settles string
	cmd := &cobra.Command{
		Use: "effect NAME [flags] -- COMMAND…", Short: textEffect, Long: textEffectLong, Example: textEffectExample, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := daybook.StepAsk{Says: daybook.StepPolicy{Asks: probe != "", Undo: undo}}
			var err error
			if ask.Says.Remembers, err = durationFlag("--remembers", remembers); err != nil {
				return a.stepped(0, err)
			}
			if ask.Says.Settles, err = durationFlag("--settles", settles); err != nil {
				return a.stepped(0, err)
			}
			return a.stepped(a.stepCommand(cmd.Context(), "effect", args, ask, probe))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&probe, "probe", "", textFlagStepProbe)
	f.StringVar(&undo, "undo", "", textFlagStepUndo)
	f.StringVar(&remembers, "remembers", "", textFlagStepRemembers)
	f.StringVar(&settles, "settles", "", textFlagStepSettles)
	return cmd
}

// stepped makes the end of a step the end of the program: the code of the command, or 125 where Daybook refused.
func (a *app) stepped(code int, err error) error {
	switch {
	case err != nil:
		return &coded{code: daybook.ExitDaybook, err: err}
	case code != 0:
		return &coded{code: code, err: errors.New("told already"), silent: true}
	}
	return nil
}

// stepDesk keeps the steps of one attempt.
type stepDesk interface {
	ComeTo(ctx context.Context, ask daybook.StepAsk) (daybook.StepAnswer, error)
	StepEnded(ctx context.Context, step string, plain bool, try int, o daybook.Outcome) (daybook.StepAnswer, error)
	StepFound(ctx context.Context, step string, found []daybook.Finding, askedAt time.Time) (daybook.StepAnswer, error)
}

// ownDesk is the desk of a ledger that this program opened.
type ownDesk struct {
	*control.Control
	id daybook.AttemptID
}

func (d ownDesk) ComeTo(ctx context.Context, ask daybook.StepAsk) (daybook.StepAnswer, error) {
	return d.Control.ComeTo(ctx, d.id, ask)
}

func (d ownDesk) StepEnded(ctx context.Context, step string, plain bool, try int, o daybook.Outcome) (daybook.StepAnswer, error) {
	return d.Control.StepEnded(ctx, d.id, step, plain, try, o)
}

func (d ownDesk) StepFound(ctx context.Context, step string, found []daybook.Finding, askedAt time.Time) (daybook.StepAnswer, error) {
	return d.Control.StepFound(ctx, d.id, step, found, askedAt)
}

// stepCommand runs a command as a step of the run whose token it finds in its environment, unless that step is done, and returns
// the code to exit with.
func (a *app) stepCommand(ctx context.Context, verb string, args []string, ask daybook.StepAsk, probe string) (int, error) {
	if len(args) < 2 {
		return 0, daybook.Invalid("%s: a name and a command are needed", verb).WithHint("daybook %s NAME -- COMMAND", verb)
	}
	ask.Step = args[0]
	if err := daybook.CheckStep(ask.Step); err != nil {
		return 0, err
	}
	token, _ := a.LookupEnv("DAYBOOK_TOKEN")
	if token == "" {
		return 0, daybook.Invalid("%s is for commands of a job with steps: there is no DAYBOOK_TOKEN", verb).
			WithHint("set steps: true in the job, and let daybook run it")
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE) // whoever reads what is printed may be gone: how it ended is told all the same
	defer signal.Stop(pipes)
	code := 0
	err := a.withSteps(ctx, token, func(d stepDesk) (err error) {
		code, err = a.doStep(ctx, d, ask, probe, args[1:])
		return err
	})
	return code, err
}

// withSteps opens the desk of the attempt that a token speaks for.
func (a *app) withSteps(ctx context.Context, token string, do func(stepDesk) error) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		id, err := c.AttemptOf(ctx, token)
		if err != nil {
			return err
		}
		return do(ownDesk{c, id})
	})
}

// doStep comes to a step and does what it is told, until it is done or may not be done now.
func (a *app) doStep(ctx context.Context, d stepDesk, ask daybook.StepAsk, probe string, argv []string) (code int, err error) {
	s, err := d.ComeTo(ctx, ask)
	for ran := false; err == nil; {
		switch s.Do {
		case daybook.StepSkip:
			if ran {
				return 0, nil
			}
			return 0, a.printStored(s.Record.Data)
		case daybook.StepStop:
			if ran && code != 0 { // its own code tells the script why
				a.tellError(s.Err)
				return code, nil
			}
			return 0, s.Err
		case daybook.StepAsks:
			asked := a.Now()
			s, err = d.StepFound(ctx, ask.Step, a.askFar(ctx, s.Record, probe), asked)
			if err == nil && s.Do == daybook.StepSkip {
				code = 0
			}
		case daybook.StepBegin:
			var o daybook.Outcome
			ran = true
			o, code = a.runStep(s.Record, ask, argv)
			s, err = a.tellEnd(ctx, d, ask, s.Record.Tries, o)
		}
	}
	return 0, err
}

// tellEnd tells how a step ended, for as long as the ledger does not answer: it is all that is known of it.
func (a *app) tellEnd(ctx context.Context, d stepDesk, ask daybook.StepAsk, try int, o daybook.Outcome) (s daybook.StepAnswer, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		s, err = d.StepEnded(ctx, ask.Step, ask.Plain, try, o)
		if daybook.CodeOf(err) != daybook.CodeUnavailable {
			return s, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return s, err
		}
	}
}

// printStored prints the result of a step that is done: text as it was printed, anything else as JSON.
func (a *app) printStored(data json.RawMessage) error {
	if len(data) == 0 {
		return nil
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data) + "\n"
	}
	if _, err := io.WriteString(a.Stdout, text); !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}

// storedResult is what a command printed, as the result of its step: JSON as it is, anything else as text.
func storedResult(printed []byte) json.RawMessage {
	if len(printed) == 0 {
		return nil
	}
	if trimmed := bytes.TrimSpace(printed); json.Valid(trimmed) && (trimmed[0] == '{' || trimmed[0] == '[') {
		return trimmed
	}
	b, err := json.Marshal(strings.ToValidUTF8(string(printed), "\uFFFD"))
	if err != nil || len(b) > daybook.MaxResultBytes {
		return nil
	}
	return b
}

// kept is the head of what is written to it.
type kept struct {
	bytes.Buffer
	over bool
}

func (k *kept) Write(p []byte) (int, error) {
	if k.Len()+len(p) > daybook.MaxResultBytes {
		k.over = true
	} else if !k.over {
		k.Buffer.Write(p)
	}
	return len(p), nil
}

// forgiving passes on what it can: that nobody takes what a command prints must not end the command.
type forgiving struct{ io.Writer }

func (w forgiving) Write(p []byte) (int, error) {
	_, _ = w.Writer.Write(p)
	return len(p), nil
}

// stepDrain is how long the output of a step is still read once its command has ended while a child of it holds the pipe.
const stepDrain = 2 * time.Second

// runStep runs the command of a step. What it prints on stdout is its result, if that is short enough to be kept.
func (a *app) runStep(e *daybook.StepRecord, ask daybook.StepAsk, argv []string) (daybook.Outcome, int) {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // ended with its group, as the whole attempt is
	printed := &kept{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.Stdin, io.MultiWriter(forgiving{a.Stdout}, printed), forgiving{a.Stderr}
	cmd.WaitDelay = stepDrain
	cmd.Env = stepEnv(e, ask)
	if err := cmd.Start(); err != nil {
		a.tellError(err)
		return daybook.Outcome{Result: daybook.ResultPermanent, Error: "could not be started: " + err.Error()}, 127
	}
	waited := cmd.Wait() // how it ended tells the state
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return daybook.Outcome{Result: daybook.ResultUnknown, Error: "ended by signal " + status.Signal().String()}, 128 + int(status.Signal())
	}
	code := status.ExitStatus()
	o := daybook.Outcome{Result: runner.ResultOfExit(code, nil)}
	if o.Result == daybook.ResultDone {
		if !printed.over && (waited == nil || errors.Is(waited, exec.ErrWaitDelay)) { // else it was cut short
			o.Data = storedResult(printed.Bytes())
		}
	} else {
		o.Error = fmt.Sprintf("exit %d", code)
	}
	return o, code
}

// stepEnv is the environment of a step: an effect has a wire key of its own.
func stepEnv(e *daybook.StepRecord, ask daybook.StepAsk) []string {
	env := os.Environ()
	if !ask.Plain {
		env = append(env, "DAYBOOK_WIRE_KEY="+e.WireKey(), "DAYBOOK_STEP="+e.Step)
	}
	return env
}

// askFar asks the far side by the probe command, about every wire key that the effect was tried under: exit 0 yes, 1 no, else
// it cannot tell.
func (a *app) askFar(ctx context.Context, e *daybook.StepRecord, probe string) []daybook.Finding {
	var found []daybook.Finding
	for _, k := range e.WireKeys() {
		found = append(found, a.askOne(ctx, k, probe))
	}
	return found
}

func (a *app) askOne(ctx context.Context, wireKey, probe string) daybook.Finding {
	f := daybook.Finding{Answer: daybook.CannotTell, WireKey: wireKey}
	ctx, cancel := context.WithTimeout(ctx, daybook.ProbeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", probe)
	cmd.WaitDelay = time.Second
	said := &kept{}
	cmd.Stdout, cmd.Stderr = said, a.Stderr
	cmd.Env = append(os.Environ(), "DAYBOOK_WIRE_KEY="+wireKey)
	err := cmd.Run()
	code := -1
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	switch {
	case code == 0 && err == nil:
		f.Answer = daybook.Yes
		if !said.over {
			f.Data = storedResult(said.Bytes())
		}
	case code == 1:
		f.Answer = daybook.No
	case ctx.Err() != nil:
		f.Error = "the probe did not end in time"
	default:
		f.Error = fmt.Sprintf("the probe ended with %d", code)
	}
	return f
}

// durationFlag reads a flag of a duration, or forever.
func durationFlag(flag, text string) (time.Duration, error) {
	d, err := remembers(text)
	if err != nil {
		return 0, daybook.Invalid("%s %q is no duration", flag, daybook.Clip(text, 40)).WithHint("such as 90s, 10m, 24h, forever")
	}
	return d, nil
}
