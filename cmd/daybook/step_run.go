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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/runner"
)

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
		return tooLong()
	}
	return b
}

// tooLong stands in place of a result that is too long to be kept.
func tooLong() json.RawMessage {
	return daybook.NotKept(fmt.Sprintf("it printed more than %d bytes", daybook.MaxResultBytes))
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

// stepDrain is how long the output of a step is still read once its command has ended, while a child of it holds the pipe.
const stepDrain = 2 * time.Second

// runStep runs the command of a step. What it prints on stdout is its result, if that is short enough to be kept.
func (a *app) runStep(wireKey string, ask daybook.StepAsk, argv []string) (daybook.Outcome, int) {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // ended with its group, as the whole attempt is
	printed, said := &kept{}, &sayings{Capture: runner.NewCapture(4 * daybook.MaxErrorBytes)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.Stdin, io.MultiWriter(forgiving{a.Stdout}, printed, said), io.MultiWriter(forgiving{a.Stderr}, said)
	cmd.Env, cmd.WaitDelay = stepEnv(wireKey, ask), stepDrain
	if err := cmd.Start(); err != nil {
		a.tellError(err)
		return daybook.Outcome{Result: daybook.ResultPermanent, Error: "could not be started: " + err.Error()}, 127
	}
	waited := cmd.Wait() // how it ended tells the state
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		o := daybook.Outcome{Result: daybook.ResultUnknown, Error: "ended by signal " + status.Signal().String()}
		a.tellError(errors.New(o.Error)) // it could not say so itself
		return o, 128 + int(status.Signal())
	}
	code := status.ExitStatus()
	o := daybook.Outcome{Result: runner.ResultOfExit(code, nil)}
	if o.Result == daybook.ResultDone {
		switch {
		case printed.over:
			o.Data = tooLong()
		case waited == nil || errors.Is(waited, exec.ErrWaitDelay):
			o.Data = storedResult(printed.Bytes())
		default:
			o.Data = daybook.NotKept("what it printed could not be read to its end")
		}
		if why := (&daybook.StepRecord{Data: o.Data}).Lacks(); why != "" {
			a.say("step %s is done, and its result is not kept: %s. No later attempt and no undo goes on without it: print an id, and the rest elsewhere", ask.Step, why)
		}
	} else {
		o.Error = fmt.Sprintf("exit %d", code)
		if line := runner.LastLine(said.Output().Text); line != "" {
			o.Error = daybook.Clip(o.Error+": "+line, daybook.MaxErrorBytes)
		}
	}
	return o, code
}

// sayings keeps what a command prints, on whichever of its two streams.
type sayings struct {
	mu sync.Mutex
	*runner.Capture
}

func (s *sayings) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Capture.Write(p)
}

// stepEnv is the environment of a step: an effect has a wire key of its own.
func stepEnv(wireKey string, ask daybook.StepAsk) []string {
	env := os.Environ()
	if !ask.Plain {
		env = append(env, "DAYBOOK_WIRE_KEY="+wireKey, "DAYBOOK_STEP="+ask.Step)
	}
	return env
}

// askFar asks the far side by the probe command, about every wire key that the effect was tried under: exit 0 yes, 1 no, else
// it cannot tell.
func (a *app) askFar(ctx context.Context, wireKeys []string, probe string) []daybook.Finding {
	var found []daybook.Finding
	for _, k := range wireKeys {
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
		if f.Data = storedResult(said.Bytes()); said.over {
			f.Data = tooLong()
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
