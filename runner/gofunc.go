package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// Func is work written in Go. It says how it ended with its error: nil is done; daybook.NotDone, Permanent, Unknown and
// RetryAfter are what they say; any other error is failed, unclear. It should return soon once ctx is cancelled.
type Func func(ctx context.Context, r *daybook.Run) error

// ProbeFunc asks the far side whether the effect with that wire key happened, and what the far side has of it. An error
// is cannot tell, whatever else is returned.
type ProbeFunc func(ctx context.Context, wireKey string) (any, daybook.Answer, error)

// GoFunc runs a function registered in Go. It is a daybook.Runner and a daybook.Prober.
type GoFunc struct {
	Do  Func
	Ask ProbeFunc // nil: the far side cannot be asked
	// Grace is how long the function is waited for once its context is cancelled; 0: daybook.TerminationGrace. Nothing
	// can end a goroutine by force: one that does not return is given up and goes on by itself.
	Grace time.Duration

	at *atWork // nil: nobody asks Stays
}

// atWork counts the calls of a function that have not returned, by run.
type atWork struct {
	mu    sync.Mutex
	calls map[daybook.Key]int
}

// on notes that a call begins, and returns what is to be called when it has returned.
func (a *atWork) on(k daybook.Key) (returned func()) {
	if a == nil {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[k]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.calls[k]--; a.calls[k] == 0 {
			delete(a.calls, k)
		}
	}
}

// Stays implements daybook.Stayer: a function that was given up is still at work on k here.
func (g *GoFunc) Stays(k daybook.Key) bool {
	if g.at == nil {
		return false
	}
	g.at.mu.Lock()
	defer g.at.mu.Unlock()
	return g.at.calls[k] > 0
}

func (g *GoFunc) grace() time.Duration {
	if g.Grace <= 0 {
		return daybook.TerminationGrace
	}
	return g.Grace
}

// Run calls the function with a copy of the run and reads its error.
func (g *GoFunc) Run(ctx context.Context, o daybook.Order) daybook.Outcome {
	if ctx.Err() != nil {
		return notBegun(context.Cause(ctx))
	}
	run := *o.Run // the function may keep it beyond its own end
	run.Listen()
	run.Keep(o.Book)
	returned := g.at.on(run.Key)
	stack, ended := guard(ctx, g.grace(), func() error {
		defer returned()
		return g.Do(ctx, &run)
	})
	out := outcomeOfFunc(ended)
	out.Data, out.Counts = run.Told()
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		out.Interrupted = causedBy(cause, daybook.ErrShutdown)
		// The call to the outside world was cut off by us, so its failing says nothing about the effect.
		if out.Result == daybook.ResultUnclear && fromContext(ended, cause) {
			out.Result = daybook.ResultUnknown
			out.Error = why(cause) + ": " + out.Error
		}
	}
	out.Error = daybook.Clip(SafeText([]byte(out.Error)), daybook.MaxErrorBytes)
	if stack != "" {
		capture := NewCapture(daybook.MaxOutputBytes)
		_, _ = capture.Write([]byte(stack))
		out.Output = capture.Output()
	}
	return out
}

// CanUndo reports whether the function brings an undo for an effect.
func (g *GoFunc) CanUndo(_ daybook.Order, e *daybook.StepRecord) bool { return e.Says.Undoes }

// Undo calls the function once more, so that it takes back one of its done effects.
func (g *GoFunc) Undo(ctx context.Context, o daybook.Order, e *daybook.StepRecord) daybook.Outcome {
	ends := make(chan daybook.Outcome, 1)
	returned := g.at.on(o.Run.Key)
	_, err := guard(ctx, g.grace(), func() error {
		defer returned()
		ends <- daybook.UndoBy(ctx, o.Run, e, o.WireKey, g.Do)
		return nil
	})
	if err != nil {
		return outcomeOfFunc(err)
	}
	out := <-ends
	out.Error = daybook.Clip(SafeText([]byte(out.Error)), daybook.MaxErrorBytes)
	return out
}

// Probe calls the probe function. A panic, an error and an answer that is none of the three are cannot tell.
func (g *GoFunc) Probe(ctx context.Context, o daybook.Order, wireKey string) daybook.Finding {
	found := daybook.Finding{Answer: daybook.CannotTell, WireKey: wireKey}
	if g.Ask == nil {
		found.Error = "job " + o.Job.Name + " has no probe"
		return found
	}
	type reply struct {
		data any
		told daybook.Answer
	}
	replies := make(chan reply, 1) // not a variable: a function that was given up may still write
	_, err := guard(ctx, 0, func() error {
		data, told, err := g.Ask(ctx, wireKey)
		if err == nil {
			replies <- reply{data, told}
		}
		return err
	})
	if err == nil {
		r := <-replies
		found.Data, err = dataOf(r.data, r.told)
		if err == nil {
			found.Answer = r.told
			if r.told == daybook.CannotTell {
				found.Error = "the probe cannot tell"
			}
			return found
		}
	}
	found.Error = daybook.Clip(SafeText([]byte(err.Error())), daybook.MaxErrorBytes)
	return found
}

func dataOf(data any, told daybook.Answer) (json.RawMessage, error) {
	switch told {
	case daybook.No, daybook.CannotTell:
		return nil, nil
	case daybook.Yes:
	default:
		return nil, daybook.Invalid("the probe answered %q", daybook.Clip(string(told), 40))
	}
	if data == nil {
		return nil, nil
	}
	b, err := json.Marshal(data)
	if err != nil || len(b) > daybook.MaxResultBytes {
		// The answer itself is not in doubt; what the far side has is only shown.
		return json.Marshal(fmt.Sprintf("a result of type %T that cannot be kept", data))
	}
	return b, nil
}

// panicked is the error of a function that panicked or ended its goroutine.
type panicked struct{ text string }

func (p *panicked) Error() string { return p.text }

// errGivenUp is the error of a function that did not return after its context was cancelled.
var errGivenUp = errors.New("did not return after being asked to end, and was given up")

// guard calls f in a goroutine of its own, so that a panic, runtime.Goexit or a function that hangs cost nobody else
// anything. It waits for it until grace after ctx is cancelled.
func guard(ctx context.Context, grace time.Duration, f func() error) (stack string, err error) {
	type end struct {
		err   error
		stack string
	}
	ends := make(chan end, 1)
	go func() {
		returned := end{err: &panicked{text: "the function ended its goroutine without returning"}}
		defer func() {
			if r := recover(); r != nil {
				returned = end{err: &panicked{text: fmt.Sprintf("panic: %v", r)}, stack: fmt.Sprintf("panic: %v\n\n%s", r, debug.Stack())}
			}
			ends <- returned
		}()
		returned.err = f()
	}()
	select {
	case e := <-ends:
		return e.stack, e.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case e := <-ends:
		return e.stack, e.err
	case <-timer.C:
		return "", errGivenUp
	}
}

func outcomeOfFunc(err error) daybook.Outcome {
	var p *panicked
	switch {
	case errors.As(err, &p): // even with a marked error as its value: a panic proves nothing
		return daybook.Outcome{Result: daybook.ResultUnclear, Error: err.Error(), Detail: "panic"}
	case errors.Is(err, errGivenUp):
		return daybook.Outcome{Result: daybook.ResultUnknown, Error: err.Error(), Detail: "given up"}
	}
	return daybook.OutcomeOf(err)
}

// fromContext reports whether err is, or wraps, what a cancelled context gives.
func fromContext(err, cause error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var c *daybook.Error
	return errors.As(cause, &c) && causedBy(err, c)
}
