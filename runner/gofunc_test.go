package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

var (
	_ daybook.Runner = (*GoFunc)(nil)
	_ daybook.Prober = (*GoFunc)(nil)
)

func TestGoFuncErrors(t *testing.T) {
	t.Parallel()
	fault := errors.New("no route")
	for _, c := range []struct {
		err    error
		result daybook.Result
		text   string
	}{
		{nil, daybook.ResultDone, ""},
		{fault, daybook.ResultUnclear, "no route"},
		{daybook.NotDone(fault), daybook.ResultNotDone, "no route"},
		{fmt.Errorf("charge: %w", daybook.Permanent(fault)), daybook.ResultPermanent, "charge: no route"},
		{daybook.Unknown(fault), daybook.ResultUnknown, "no route"},
		{context.DeadlineExceeded, daybook.ResultUnclear, "deadline"}, // of a context of its own
	} {
		g := &GoFunc{Do: func(context.Context, *daybook.Run) error { return c.err }}
		want(t, g.Run(t.Context(), order(t, "")), c.result, c.text)
	}
	g := &GoFunc{Do: func(context.Context, *daybook.Run) error { return daybook.RetryAfter(time.Minute, fault) }}
	if out := g.Run(t.Context(), order(t, "")); out.RetryAfter != time.Minute {
		t.Errorf("got %+v", out)
	}
}

func TestGoFuncGetsACopyOfTheRun(t *testing.T) {
	t.Parallel()
	o := order(t, "")
	g := &GoFunc{Do: func(_ context.Context, r *daybook.Run) error {
		if r.Key != o.Run.Key {
			return errors.New("another run")
		}
		r.Key = "changed"
		return nil
	}}
	want(t, g.Run(t.Context(), o), daybook.ResultDone, "")
	if o.Run.Key == "changed" {
		t.Error("the run of the order was changed")
	}
}

func TestGoFuncPanics(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(){
		"text":  func() { panic("b\x00om") },
		"mark":  func() { panic(daybook.Permanent(errors.New("boom"))) },
		"nil":   func() { panic(nil) }, //nolint:govet // the point
		"index": func() { _ = []int{}[len(t.Name())] },
	} {
		g := &GoFunc{Do: func(context.Context, *daybook.Run) error { do(); return nil }}
		out := g.Run(t.Context(), order(t, ""))
		want(t, out, daybook.ResultUnclear, "panic: ")
		if !strings.Contains(out.Output.Text, "gofunc_test.go") || out.Detail != "panic" {
			t.Errorf("%s: no stack: %+v", name, out)
		}
	}
	g := &GoFunc{Do: func(context.Context, *daybook.Run) error { runtime.Goexit(); return nil }}
	want(t, g.Run(t.Context(), order(t, "")), daybook.ResultUnclear, "without returning")
}

func TestGoFuncCancelled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause       error
		ends        func(ctx context.Context) error
		result      daybook.Result
		text        string
		interrupted bool
	}{
		{daybook.ErrShutdown, context.Context.Err, daybook.ResultUnknown, "daybook is stopping: context canceled", true},
		{daybook.ErrShutdown, context.Cause, daybook.ResultUnknown, "daybook is stopping", true},
		{daybook.ErrTimeout, func(ctx context.Context) error { return fmt.Errorf("post: %w", ctx.Err()) }, daybook.ResultUnknown, "timed out: post", false},
		{daybook.ErrLeaseLost, context.Context.Err, daybook.ResultUnknown, "lease was lost", false},
		{daybook.ErrShutdown, func(ctx context.Context) error { return daybook.NotDone(ctx.Err()) }, daybook.ResultNotDone, "context canceled", true},
		{daybook.ErrShutdown, func(context.Context) error { return nil }, daybook.ResultDone, "", true},
		{daybook.ErrShutdown, func(context.Context) error { return errors.New("500") }, daybook.ResultUnclear, "500", true},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		g := &GoFunc{Do: func(ctx context.Context, _ *daybook.Run) error {
			cancel(c.cause)
			<-ctx.Done()
			return c.ends(ctx)
		}}
		out := g.Run(ctx, order(t, ""))
		want(t, out, c.result, c.text)
		if out.Interrupted != c.interrupted {
			t.Errorf("%v: interrupted %v", c.cause, out.Interrupted)
		}
	}
}

func TestGoFuncThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	o := order(t, "")
	made, err := newGoFunc(o.Job, Options{Funcs: map[string]GoFunc{o.Job.Name: {Grace: time.Millisecond, Do: func(context.Context, *daybook.Run) error {
		cancel(daybook.ErrTimeout)
		<-release
		return nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	g := made.(*GoFunc)
	out := g.Run(ctx, o)
	want(t, out, daybook.ResultUnknown, "given up")
	if out.Detail != "given up" {
		t.Errorf("detail %q", out.Detail)
	}
	if !g.Stays(o.Run.Key) || g.Stays(o.Run.Key+"~2") {
		t.Error("that it is still at work is not known, or taken for another run")
	}
	close(release)
	eventually(t, "it is known to have returned", func() bool { return !g.Stays(o.Run.Key) })
}

func TestGoFuncNotBegun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(daybook.ErrShutdown)
	g := &GoFunc{Do: func(context.Context, *daybook.Run) error { t.Error("it was called"); return nil }}
	out := g.Run(ctx, order(t, ""))
	want(t, out, daybook.ResultNotDone, "not begun: daybook is stopping")
	if !out.Interrupted {
		t.Error("not marked as interrupted")
	}
}

func TestGoFuncProbe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		ask    ProbeFunc
		answer daybook.Answer
		data   string
		text   string
	}{
		{"yes", func(_ context.Context, k string) (any, daybook.Answer, error) {
			return map[string]string{"id": k}, daybook.Yes, nil
		}, daybook.Yes, `{"id":"k#charge"}`, ""},
		{"yes, nothing", func(context.Context, string) (any, daybook.Answer, error) { return nil, daybook.Yes, nil }, daybook.Yes, "", ""},
		{"yes, no JSON", func(context.Context, string) (any, daybook.Answer, error) { return func() {}, daybook.Yes, nil }, daybook.Yes, `"a result of type func() that cannot be kept"`, ""},
		{"no", func(context.Context, string) (any, daybook.Answer, error) { return 1, daybook.No, nil }, daybook.No, "", ""},
		{"cannot tell", func(context.Context, string) (any, daybook.Answer, error) { return nil, daybook.CannotTell, nil }, daybook.CannotTell, "", "cannot tell"},
		{"an error is stronger", func(context.Context, string) (any, daybook.Answer, error) { return nil, daybook.No, errors.New("503") }, daybook.CannotTell, "", "503"},
		{"another word", func(context.Context, string) (any, daybook.Answer, error) { return nil, "maybe", nil }, daybook.CannotTell, "", "maybe"},
		{"panic", func(context.Context, string) (any, daybook.Answer, error) { panic("boom") }, daybook.CannotTell, "", "panic: boom"},
		{"none", nil, daybook.CannotTell, "", "has no probe"},
	} {
		g := &GoFunc{Ask: c.ask}
		got := g.Probe(t.Context(), order(t, ""), "k#charge")
		if got.Answer != c.answer || string(got.Data) != c.data || !strings.Contains(got.Error, c.text) || c.text == "" && got.Error != "" || got.WireKey != "k#charge" {
			t.Errorf("%s: got %+v, data %s", c.name, got, got.Data)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	g := &GoFunc{Ask: func(context.Context, string) (any, daybook.Answer, error) {
		cancel()
		<-release
		return nil, daybook.No, nil
	}}
	if got := g.Probe(ctx, order(t, ""), "k"); got.Answer != daybook.CannotTell {
		t.Errorf("a probe that hangs: %+v", got)
	}
}
