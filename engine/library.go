package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/loop"
)

// HandleOption says more about how a job is done.
type HandleOption = daybook.HandleOption

// Probe says how to ask the far side whether the effect with a wire key happened, and what it has of it. It is asked when an
// attempt ended without a clear answer. An error is cannot tell.
func Probe[T any](ask func(ctx context.Context, wireKey string) (T, daybook.Answer, error)) HandleOption {
	return func(h *daybook.Handling) {
		h.Ask = func(ctx context.Context, wireKey string) (any, daybook.Answer, error) {
			return ask(ctx, wireKey)
		}
	}
}

// Handle says that this application does a job, and how. The function is called for one window at a time and says by its
// error how the try ended: nil is done; daybook.NotDone, Permanent, Unknown and RetryAfter are what they say; any other
// error is failed, unclear. It may say more by Run.Return and Run.Count.
//
// What is wrong with a job is collected, and returned by Err, Trigger and Start. Handle panics after Start: nobody would
// hear of what it collects.
func (e *Engine) Handle(job daybook.Job, work func(ctx context.Context, r *daybook.Run) error, options ...HandleOption) {
	var h daybook.Handling
	for _, o := range options {
		o(&h)
	}
	d := Definition{Job: job, Do: work, Ask: h.Ask, List: h.List}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stop != nil {
		panic("engine: Handle of job " + job.Name + " after Start")
	}
	if err := e.handle(d); err != nil {
		e.faults = append(e.faults, err)
	}
}

func (e *Engine) handle(d Definition) error {
	name := d.Job.Name
	switch {
	case e.home == "" || e.home == daybook.HomeOnce:
		return daybook.Invalid("job %s: this engine does the jobs of a file", name).WithHint("leave Role empty for an application")
	case slices.ContainsFunc(e.handled, func(o Definition) bool { return o.Job.Name == name }):
		return daybook.Invalid("job %s is handled twice", name).WithHint("give one of them another name: it is the first part of every key")
	case d.Do == nil:
		return daybook.Invalid("job %s is handled by no function", name)
	case !d.Job.Command.IsZero() || d.Job.HTTP != nil:
		return daybook.Invalid("job %s has a command or an HTTP call beside its function", name).WithHint("keep one way to do the work")
	}
	e.handled = append(e.handled, d)
	j, w, err := e.complete(e.set, d)
	if err != nil {
		return err
	}
	e.jobs, e.work[name], e.definitions[name] = append(e.jobs, j), w, j.Job
	return nil
}

// Retire says that this application does jobs of these names no more. From Start on nothing is planned for them, and what
// waits is held. Leaving a Handle out does not retire a job: another process of the application may still do it.
func (e *Engine) Retire(names ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		if slices.ContainsFunc(e.handled, func(o Definition) bool { return o.Job.Name == name }) {
			e.faults = append(e.faults, daybook.Invalid("job %s is both handled and retired", name))
		}
	}
	e.retired = append(e.retired, names...)
}

// Err returns what is wrong with the jobs that were handled so far, each with what to do; nil when nothing is.
func (e *Engine) Err() error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return hinted(errors.Join(e.faults...))
}

// hinted writes hints into the texts of errors: whoever links the library reads texts only.
func hinted(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, hinted(one))
		}
		return errors.Join(all...)
	}
	hint := daybook.HintOf(err)
	if hint == "" || strings.Contains(err.Error(), hint) {
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

// Definitions returns the jobs that this process knows, as they were given.
func (e *Engine) Definitions() []Definition {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Clone(e.handled)
}

// tellUnhandled warns of jobs that stand under the name of this application and that it does not handle.
func (e *Engine) tellUnhandled(ctx context.Context) error {
	states, err := e.store.JobStates(ctx)
	if err != nil {
		return err
	}
	for _, st := range states {
		if _, ok := e.defined(st.Name); !ok && st.Home == e.home && st.RetiredAt.IsZero() {
			e.o.Log.Warn("a job of this application is not handled here", "job", st.Name, "app", e.home, "hint", "if it is gone: Retire it; if another program does it: give that one another Options.App")
		}
	}
	return nil
}

// Trigger asks for a key: it makes the run, or answers from what is known about the key. Without daybook.At it is the window
// of the latest fire already past. The answer has Outcome (started, joined, reused, refused) and Key; Line and Next put it
// in words. A refusal is an error too, with CodeConflict, CodeNotFound or CodeInvalid (another payload than before); so is
// what keeps it from being asked, after which nothing is recorded.
func (e *Engine) Trigger(ctx context.Context, job string, options ...daybook.AskOption) (control.Answer, error) {
	if err := e.Err(); err != nil {
		return control.Answer{}, err
	}
	a, err := daybook.NewAsking(options...)
	if err != nil {
		return control.Answer{}, hinted(err)
	}
	if a.Actor == "" {
		a.Actor = daybook.Clip(e.node.Role, daybook.MaxActorBytes)
	}
	if err := e.clock.current(ctx); err != nil {
		return control.Answer{}, err
	}
	answer, err := e.control.Trigger(ctx, control.Person{Name: a.Actor, Source: daybook.SourceAPI},
		control.Request{Job: job, Window: a.Window, Payload: a.Payload})
	if err == nil {
		err = answer.Err()
	}
	return answer, hinted(err)
}

// enter begins Start.
func (e *Engine) enter(ctx context.Context) (_ context.Context, ended func(), _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stop != nil {
		return nil, nil, daybook.Conflict("this engine was started before").WithHint("open another")
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	e.stop, e.stopped = cancel, stopped
	return ctx, func() {
		cancel()
		close(stopped)
	}, nil
}

// Stop makes Start stop gracefully, as the end of its context does, and returns when it has. An error has
// CodeUnavailable: ctx was done before. An engine that was not started has nothing to stop.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.RLock()
	stop, stopped := e.stop, e.stopped
	e.mu.RUnlock()
	if stop == nil {
		return nil
	}
	stop()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return daybook.New(daybook.CodeUnavailable, "stop: it goes on stopping").Because(ctx.Err())
	}
}

// RunDue does in this call what is due now, and what becomes due by it, and returns when nothing is left. It is for tests
// with a clock moved by hand, and for programs that something else starts now and then; Start is for those that stay. When
// ctx ends, what was under way is left as if the process had been killed.
func (e *Engine) RunDue(ctx context.Context) error {
	if !e.loaded {
		if err := e.clock.begin(ctx); err != nil {
			return err
		}
		if err := e.recall(ctx, e.clock.Now()); err != nil {
			return err
		}
		if err := e.Load(ctx); err != nil {
			return err
		}
		e.loaded = true
	}
	if err := e.beat(ctx, e.clock.Now()); err != nil {
		return err
	}
	if !e.o.ByHand { // else no lease ends in this call
		renewing, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			loop.Run(renewing, []loop.Item{{Name: "leases", Service: executor.Leases{Executor: e.exec}, Every: e.exec.Every()}}, loop.Options{Now: e.clock.Now, Log: e.o.Log})
		}()
		defer func() {
			stop()
			<-done
		}()
	}
	for {
		again, err := e.turn(ctx)
		switch {
		case err != nil:
			return err
		case again:
		case e.exec.InFlight() == 0:
			return nil
		default:
			select {
			case <-e.exec.Woken():
			case <-e.exec.Endings():
			case <-e.wakeRecall: // what is under way waits for it
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// turn lets every room that RunDue needs work once.
func (e *Engine) turn(ctx context.Context) (again bool, err error) {
	if e.doubtful.Load() {
		if err := e.recall(ctx, e.clock.Now()); err != nil {
			return false, err
		}
	}
	for _, s := range []daybook.Service{planner{e}, &e.rescue, e.doubts, executor.Ends{Executor: e.exec}, executor.Claims{Executor: e.exec}, e.fans} {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		more, err := s.Tick(ctx, e.clock.Now())
		if err != nil {
			return false, err
		}
		again = again || more
	}
	return again, nil
}

// NextDue returns when RunDue has something to do next: a fire, a retry, a question to be asked again. The zero time: nothing
// is known of. It is told after a RunDue.
func (e *Engine) NextDue(ctx context.Context) (time.Time, error) {
	due, err := e.store.NextDue(ctx, e.home)
	if err != nil {
		return time.Time{}, err
	}
	look, err := e.store.NextLook(ctx)
	if err != nil {
		return time.Time{}, err
	}
	next, ok := e.schedule.Next()
	if !look.IsZero() && (!ok || look.Before(next)) {
		next, ok = look, true
	}
	for _, at := range due {
		if !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, nil
}

// program names this program: the path of its main package, or of its file where that is not known.
func program() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" && info.Path != "command-line-arguments" {
		return info.Path
	}
	return filepath.Base(os.Args[0])
}

// maxAppBytes bounds the name of an application.
const maxAppBytes = 200

// checkApp refuses names that mean something else.
func checkApp(o Options) error {
	switch {
	case o.App == "":
	case o.Role != "":
		return daybook.Invalid("both an application and a role of the program daybook are given").WithHint("leave Role empty")
	case slices.Contains([]string{"serve", "cli", daybook.HomeOnce}, o.App):
		return daybook.Invalid("an application cannot be called %s", o.App).WithHint("the program daybook is called so: choose a name of your own")
	case len(o.App) > maxAppBytes || strings.TrimSpace(o.App) != o.App || strings.ContainsFunc(o.App, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return daybook.Invalid("the name of the application is not one line of at most %d bytes", maxAppBytes)
	}
	return nil
}
