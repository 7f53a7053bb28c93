package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

// Exec runs commands, `run` and `shell`. It is a daybook.Runner, a daybook.Prober and a daybook.Survivor, and may be
// used by many at once. The zero value is ready.
//
// A command has a session and process group of its own and is ended as a group. `run` starts a program without a shell;
// `shell` is text for /bin/sh -c, in which the exit code of a pipe is that of its last command: `false | cat` is done.
// Where that matters, and /bin/sh does not know pipefail, say
//
//	run: [bash, -o, pipefail, -c, "dump | gzip > file"]
type Exec struct {
	// Grace lies between TERM and KILL when a command is asked to end; 0: daybook.TerminationGrace.
	Grace time.Duration
	// Drain is how long output is still read once the command has ended while a child of it holds the pipe; 0: 2 s. A
	// child that writes to it afterwards gets SIGPIPE: what is meant to live on should send its output elsewhere.
	Drain time.Duration
	// Tee gets what a command prints as it comes, as it is, beside what is kept of it. Nil: nobody.
	Tee io.Writer
}

const defaultDrain = 2 * time.Second

func (e *Exec) withDefaults() Exec {
	o := *e
	if o.Grace <= 0 {
		o.Grace = daybook.TerminationGrace
	}
	if o.Drain <= 0 {
		o.Drain = defaultDrain
	}
	return o
}

// giveUp is how long a killed process is waited for. The kernel may need a while to free much memory.
func (e Exec) giveUp() time.Duration { return e.Grace + e.Drain }

// Run starts the command of the job, waits for it and says how it ended, in this order: a report it left in its result
// file; its exit code; else unknown. Nothing that kept it from starting is unknown: then nothing happened.
func (e *Exec) Run(ctx context.Context, o daybook.Order) daybook.Outcome {
	opts := e.withDefaults()
	if ctx.Err() != nil {
		return notBegun(context.Cause(ctx))
	}
	as, err := identityOf(o.Job.User)
	if err != nil {
		return notStarted(err)
	}
	place, err := openPlace(o, as)
	if err != nil {
		return notStarted(err)
	}
	defer place.close()
	// Asked under the lock: whoever declares the attempt over from now on finds it alive.
	if o.Lapsed != nil && o.Lapsed() {
		return notBegun(daybook.ErrLeaseLost)
	}
	output := NewCapture(daybook.MaxOutputBytes)
	followed := newLive(o, place)
	defer followed.close()
	p, err := launch(o, as, place, e.listeners(output, followed))
	if err != nil {
		return notStarted(err)
	}
	end := p.await(ctx, opts.Grace, opts.giveUp())
	held := p.collect(opts.Drain)
	report, fault := readReport(place.path(resultFile))
	return heedUnbegun(place.dir, outcome(o.Job, p.state(end), end, held, report, fault, output.Output()))
}

// listeners is who gets the output of a command. That one of them cannot take it must not end the command.
func (e *Exec) listeners(output *Capture, followed *live) io.Writer {
	list := []io.Writer{output}
	if followed != nil {
		list = append(list, followed)
	}
	if e.Tee != nil {
		list = append(list, forgiving{e.Tee})
	}
	return io.MultiWriter(list...)
}

// forgiving takes everything and passes on what it can.
type forgiving struct{ io.Writer }

func (w forgiving) Write(p []byte) (int, error) {
	_, _ = w.Writer.Write(p)
	return len(p), nil
}

func launch(o daybook.Order, as identity, place *place, output io.Writer) (*process, error) {
	files := map[string]string{"DAYBOOK_RESULT_FILE": place.path(resultFile)}
	if len(o.Run.Input) > 0 {
		files["DAYBOOK_PAYLOAD_FILE"] = place.path(payloadFile)
	}
	cmd, err := command(o, o.Job.Command, as, files)
	if err != nil {
		return nil, err
	}
	// The one descriptor that is passed on; all others of Daybook close by themselves in what it starts, so no command
	// holds the lock of another.
	cmd.ExtraFiles = []*os.File{place.lock}
	p, err := start(cmd, o.Job.Stdin, output)
	if err != nil {
		return nil, err
	}
	place.started(o, p)
	return p, nil
}

// state returns how the leader ended, nil if it was given up.
func (p *process) state(end ending) *os.ProcessState {
	if end.gaveUp {
		return nil
	}
	return p.cmd.ProcessState
}

// notBegun is the outcome of an order whose context was over before anything was started.
func notBegun(cause error) daybook.Outcome {
	return daybook.Outcome{
		Result:      daybook.ResultNotDone,
		Error:       "not begun: " + why(cause),
		Detail:      "not started",
		Interrupted: causedBy(cause, daybook.ErrShutdown) || causedBy(cause, daybook.ErrLeaseLost),
	}
}

// notStarted is the outcome of a command that was not started.
func notStarted(err error) daybook.Outcome {
	out := daybook.Outcome{Result: daybook.ResultNotDone, Detail: "not started"}
	if daybook.CodeOf(err) == daybook.CodePermanent {
		out.Result = daybook.ResultPermanent
	}
	text := err.Error()
	if hint := daybook.HintOf(err); hint != "" {
		text += " (" + hint + ")"
	}
	out.Error = daybook.Clip(text, daybook.MaxErrorBytes)
	return out
}

// outcome puts together what is known of the end of a command. It decides nothing that is not in its arguments.
func outcome(job *daybook.Job, state *os.ProcessState, end ending, held bool, report daybook.Outcome, fault error, output daybook.Output) daybook.Outcome {
	out := report
	out.Output = output
	out.Interrupted = causedBy(end.cause, daybook.ErrShutdown)
	byCode, detail := readState(state, job.Retry.PermanentExit)
	if out.Result == "" {
		out.Result = byCode
	}
	out.Detail, out.Exit = detail, exitOf(state, end.cause)
	if end.cause != nil {
		out.Detail += " after being asked to end: " + why(end.cause)
	}
	if held {
		out.Detail += ", a child kept the output open"
	}
	if out.Result == daybook.ResultDone {
		if fault != nil {
			out.Detail += "; " + fault.Error()
		}
		out.Detail, out.Error = withMessage(out.Detail, report.Error), ""
		return out
	}
	out.Error = errorText(out.Result, byCode, detail, end.cause, report.Error, fault, output)
	return out
}

// errorText is the line for people: what happened, why, the work's own words, and what is wrong with its report.
func errorText(result, byCode daybook.Result, detail string, cause error, message string, fault error, output daybook.Output) string {
	head := detail
	if result != byCode {
		head = "reported " + string(result) + " (" + detail + ")"
	}
	if cause != nil {
		head = why(cause) + ": " + head
	}
	tail := ""
	if fault != nil {
		tail = "; " + fault.Error()
	}
	if message == "" {
		message = LastLine(output.Text)
	}
	return daybook.Clip(withMessage(head, daybook.Clip(message, max(daybook.MaxErrorBytes-len(head)-len(tail)-2, 0)))+tail, daybook.MaxErrorBytes)
}

func withMessage(text, message string) string {
	if message == "" {
		return text
	}
	return text + ": " + message
}

// readState reads how the leader ended: by a code, which is its report, or by a signal, which is none.
func readState(state *os.ProcessState, permanent []int) (daybook.Result, string) {
	if state == nil {
		return daybook.ResultUnknown, "did not end after KILL"
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return daybook.ResultUnknown, "signal " + status.Signal().String()
	}
	return ResultOfExit(status.ExitStatus(), permanent), "exit " + strconv.Itoa(status.ExitStatus())
}

// exitOf is how a command ended, as shells and timeout(1) count.
func exitOf(state *os.ProcessState, cause error) int {
	if causedBy(cause, daybook.ErrTimeout) {
		return daybook.ExitTimeout
	}
	if state == nil {
		return 128 + int(syscall.SIGKILL)
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// why says for people why something was asked to end.
func why(cause error) string {
	switch {
	case causedBy(cause, daybook.ErrTimeout), errors.Is(cause, context.DeadlineExceeded):
		return "timed out"
	case cause == nil || cause == context.Canceled: //nolint:errorlint // only the bare error says nothing
		return "cancelled"
	}
	return cause.Error()
}

// causedBy reports whether target itself is in the chain of err. errors.Is would not do: two causes with the same code
// (a timeout and a shutdown are both "unavailable") are equal to it.
func causedBy(err error, target *daybook.Error) bool {
	for err != nil {
		if e, ok := err.(*daybook.Error); ok && e == target { //nolint:errorlint // the very error is meant
			return true
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				if causedBy(e, target) {
					return true
				}
			}
			return false
		}
		err = errors.Unwrap(err)
	}
	return false
}

// maxProbeText is kept of a probe's answer that is not JSON.
const maxProbeText = 8 << 10

// Probe runs the job's probe command with the wire key and reads its exit code: 0 yes, 1 no, anything else cannot tell.
// What it prints on stdout is what the far side has. A probe only asks, so it is killed without grace when ctx ends.
func (e *Exec) Probe(ctx context.Context, o daybook.Order, wireKey string) daybook.Finding {
	found := daybook.Finding{Answer: daybook.CannotTell, WireKey: wireKey}
	opts := e.withDefaults()
	if ctx.Err() != nil {
		found.Error = "not asked: " + why(context.Cause(ctx))
		return found
	}
	if o.Job.Probe.IsZero() {
		found.Error = "job " + o.Job.Name + " has no probe"
		return found
	}
	o.WireKey = wireKey
	cmd, cleanUp, err := probeCommand(o)
	defer cleanUp()
	if err != nil {
		found.Error = notStarted(err).Error
		return found
	}
	said, complaint := &limited{max: daybook.MaxResultBytes}, NewCapture(4*daybook.MaxErrorBytes)
	p, err := start(cmd, "", said, complaint)
	if err != nil {
		found.Error = notStarted(err).Error
		return found
	}
	end := p.await(ctx, 0, opts.giveUp())
	p.collect(opts.Drain)
	return readAnswer(found, p.state(end), end, said, complaint.Output())
}

// probeCommand makes the probe ready. It has the environment of an attempt, without a result file: it has nothing to
// report but its answer.
func probeCommand(o daybook.Order) (*exec.Cmd, func(), error) {
	cleanUp := func() {}
	as, err := identityOf(o.Job.User)
	if err != nil {
		return nil, cleanUp, err
	}
	var files map[string]string
	if len(o.Run.Input) > 0 {
		place, err := openPlace(daybook.Order{Run: o.Run, Job: o.Job}, as)
		if err != nil {
			return nil, cleanUp, err
		}
		cleanUp = place.close
		files = map[string]string{"DAYBOOK_PAYLOAD_FILE": place.path(payloadFile)}
	}
	cmd, err := command(o, o.Job.Probe, as, files)
	return cmd, cleanUp, err
}

func readAnswer(found daybook.Finding, state *os.ProcessState, end ending, said *limited, complaint daybook.Output) daybook.Finding {
	_, detail := readState(state, nil)
	switch {
	case end.cause != nil:
		detail = why(end.cause) + ": " + detail
	case detail == "exit 0":
		found.Answer, found.Data = daybook.Yes, said.json()
		return found
	case detail == "exit 1":
		found.Answer = daybook.No
		return found
	}
	found.Error = daybook.Clip(withMessage(detail, LastLine(complaint.Text)), daybook.MaxErrorBytes)
	return found
}

// limited keeps the beginning of what is written to it.
type limited struct {
	max  int
	b    []byte
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(l.max-len(l.b), len(p))
	l.b = append(l.b, p[:n]...)
	l.over = l.over || n < len(p)
	return len(p), nil
}

// json returns what was written if it is JSON, else a JSON string of its text.
func (l *limited) json() json.RawMessage {
	text := bytes.TrimSpace(l.b)
	if len(text) == 0 {
		return nil
	}
	if !l.over && utf8.Valid(text) && json.Valid(text) {
		var compact bytes.Buffer
		_ = json.Compact(&compact, text)
		return compact.Bytes()
	}
	b, err := json.Marshal(daybook.Clip(strings.TrimSpace(SafeText(text)), maxProbeText))
	if err != nil { // a string always can be
		return nil
	}
	return b
}
