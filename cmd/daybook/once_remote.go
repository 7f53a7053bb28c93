package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/loop"
)

// A line of a crontab over a server: the ledger and its rules are the server's, the command runs here. Its lease is
// renewed meanwhile; when the server is gone, the command goes on, and its end is reported once the server is back.

// Patience with a server that does not answer.
const (
	claimPatience = 10 * time.Second // before anything runs
	leasesToWait  = 2                // after the command has ended, beyond the lease that it had
	longestLook   = 10 * time.Second // between two looks at a run that waits
	aliveWait     = 10 * time.Second // for what an earlier attempt left running
)

// claimReply is what a claim was answered.
type claimReply struct {
	Key       daybook.Key            `json:"key"`
	Outcome   daybook.TriggerOutcome `json:"outcome"`
	Exit      int                    `json:"exit"`
	Message   string                 `json:"message"`
	Fence     int64                  `json:"fence"`
	Token     string                 `json:"token"`
	WireKey   string                 `json:"wire_key"`
	Lease     string                 `json:"lease"`
	Attempt   int                    `json:"attempt"`
	Trigger   daybook.Source         `json:"trigger"`
	Payload   json.RawMessage        `json:"payload"`
	Timeout   string                 `json:"timeout"`
	Permanent []int                  `json:"permanent_exit"`
	Steps     bool                   `json:"steps"`
	Questions []string               `json:"questions"`
	Doer      string                 `json:"doer"`
	Stuck     *control.ObstacleJSON  `json:"stuck"`
	Run       *control.RunJSON       `json:"run"`
}

// remoteLine is one call of once over a server.
type remoteLine struct {
	a    *app
	r    *remote
	job  *daybook.Job // as the file here defines it; nil: it does not
	env  func() (map[string]string, error)
	o    onceFlags
	argv []string
	base string // directory of what outlives a crash of this process
	end  lineEnd
}

// onceRemote runs a command under the key of its window, kept by a server, and returns the code to exit with.
func (a *app) onceRemote(ctx context.Context, r *remote, f *config.File, o onceFlags, argv []string) (int, error) {
	defer r.client.Close()
	job, env, err := a.jobHere(f, o)
	if err != nil {
		return 0, err
	}
	x := &remoteLine{a: a, r: r, job: job, env: env, o: o, argv: argv, base: filepath.Join(stateDir(), "run", placeOf(r.base))}
	got, err := x.first(ctx)
	switch {
	case err != nil:
		return 0, err
	case got.Outcome == daybook.Reused:
		a.say("%s", got.Message)
		return got.Exit, nil
	}
	run, err := x.follow(ctx, got)
	if err != nil {
		return 0, err
	}
	return a.onceEnded(nil, asRun(run), x.end)
}

// jobHere is the job of a line as a file of this machine defines it, and its environment; nil: no file does.
func (a *app) jobHere(f *config.File, o onceFlags) (*daybook.Job, func() (map[string]string, error), error) {
	if f == nil {
		return nil, nil, nil
	}
	for _, d := range definitions(f, a.vault()) {
		if d.Job.Name == o.job {
			return &d.Job, d.Env, o.sameAs(&d.Job)
		}
	}
	return nil, nil, nil
}

// placeOf is the name of a server as that of a folder.
func placeOf(base string) string {
	if u, err := url.Parse(base); err == nil {
		base = u.Host + u.Path
	}
	return "server_" + strings.NewReplacer("/", "_", ":", "_").Replace(base)
}

// first asks for the key. What an earlier process of this host left unreported is reported before.
func (x *remoteLine) first(ctx context.Context) (claimReply, error) {
	ask := func() (claimReply, error) { return x.claim(ctx, x.request()) }
	got, err := ask()
	key := got.Key
	if f, ok := refused(err); ok {
		key = f.Key
	}
	if key == "" || got.Token != "" || !x.reportLeft(ctx, key) {
		return got, err
	}
	return ask()
}

// request is what the line says of its job: the server compares it with the definition, or makes it known.
func (x *remoteLine) request() map[string]any {
	body := map[string]any{"job": x.o.job, "source": daybook.SourceOnce}
	for name, value := range map[string]string{"date": x.o.date, "schedule": x.o.schedule, "kind": x.o.window, "timezone": x.o.tz, "effects": x.o.effects,
		"probe": x.o.probe, "remembers": x.o.remembers} {
		if value != "" {
			body[name] = value
		}
	}
	if x.o.timeout != 0 {
		body["timeout"] = x.o.timeout.String()
	}
	if x.job != nil {
		definedHere(body, x.job)
	}
	body["run"] = x.argv
	return body
}

// definedHere adds what the file of this machine says of a job.
func definedHere(body map[string]any, j *daybook.Job) {
	body["file"], body["steps"] = true, j.Steps
	for name, value := range map[string]string{"schedule": j.Schedule, "kind": string(j.Window), "timezone": j.Timezone, "effects": string(j.Effects),
		"priority": string(j.Priority), "overlap": string(j.Overlap), "probe": j.Probe.String()} {
		if value != "" {
			body[name] = value
		}
	}
	for name, value := range map[string]time.Duration{"settles": j.Settles, "timeout": j.Timeout, "remembers": j.Remembers} {
		if value > 0 {
			body[name] = value.String()
		}
	}
	if j.Remembers == daybook.Forever {
		body["remembers"] = "forever"
	}
	if j.Retry.Backoff != nil {
		delays := []string{}
		for _, d := range j.Retry.Backoff {
			delays = append(delays, d.String())
		}
		body["backoff"] = delays
	}
}

// probe is the command that asks the far side from here; zero: there is none.
func (x *remoteLine) probe() daybook.Command {
	if x.job != nil {
		return x.job.Probe
	}
	return daybook.Command{Shell: x.o.probe}
}

func (x *remoteLine) claim(ctx context.Context, body map[string]any) (got claimReply, err error) {
	if host, err := os.Hostname(); err == nil {
		body["holder"] = host
	}
	err = x.r.post(ctx, claimPatience, "/api/v1/claims", "", body, &got)
	return got, err
}

// follow does what can be done here until the run is over, is under way elsewhere, or waits for longer than this line does.
func (x *remoteLine) follow(ctx context.Context, got claimReply) (run *control.RunJSON, err error) {
	told, misses := "", 0 // for what it was said that it waits; how often in a row it could not be claimed
	for {
		run, pause := got.Run, time.Second
		x.end.doer = daybook.Text{}
		if got.Doer != "" {
			x.end.doer = daybook.Say("%s", daybook.Stored(oneLine(got.Doer)))
		}
		switch {
		case len(got.Questions) > 0:
			run, err = x.question(ctx, got)
		case got.Token != "" && x.survived(got.Key):
			run, err = x.handBack(ctx, got)
			pause = aliveWait
		case got.Token != "":
			run, err = x.attempt(ctx, got)
			pause = 0
		}
		if err == nil && got.Stuck != nil {
			err = x.a.lineStuck(asRun(run), (*control.Obstacle)(got.Stuck))
		}
		if err != nil {
			return nil, err
		}
		due := time.Until(run.Due)
		if !run.State.Live() || run.State == daybook.Running || x.o.noRetry && (due > 0 || pause > 0) {
			return run, nil
		}
		if misses++; got.Token != "" {
			misses = 0
		}
		if due > 0 || misses > 1 { // not only since another was first
			if what := string(run.Hold) + run.Due.String(); what != told {
				told = what
				x.a.waiting(asRun(run))
			}
		}
		if !loop.Sleep(ctx, max(pause, min(due, longestLook))) {
			return run, nil
		}
		if got, err = x.claim(ctx, map[string]any{"key": run.Key, "resume": true, "source": daybook.SourceOnce, "asks": !x.probe().IsZero() && !x.survived(run.Key)}); err != nil {
			return nil, err
		}
	}
}

// survived reports whether what an earlier attempt started here is still alive.
func (x *remoteLine) survived(key daybook.Key) bool {
	dirs, err := executor.AttemptDirs(x.base, key)
	for _, dir := range dirs {
		if alive, known := x.a.Exec.Alive(dir); err == nil && known && alive {
			x.a.say("%s  an earlier attempt is still alive here: nothing is started beside it", key)
			return true
		}
	}
	return false
}

// attempt runs the command and reports its end.
func (x *remoteLine) attempt(ctx context.Context, got claimReply) (*control.RunJSON, error) {
	dir := executor.AttemptDir(x.base, got.Key, got.Fence)
	if err := keep(dir, leftToken, got.Token); err != nil {
		_, back := x.handBack(ctx, got)
		return nil, errors.Join(err, back)
	}
	h := x.hold(ctx, got)
	job, run := x.orderOf(got)
	order := daybook.Order{Run: run, Job: job, Attempt: got.Attempt, Fence: got.Fence, WireKey: got.WireKey, Dir: dir,
		Lapsed: func() bool { return time.Now().UnixNano() >= h.until.Load() }}
	if got.Steps {
		order.Rights, order.Secrets = map[string]string{"DAYBOOK_TOKEN": got.Token, "DAYBOOK_SERVER": x.r.base}, []string{got.Token}
	}
	doing := h.ctx
	if d, err := time.ParseDuration(got.Timeout); err == nil && d > 0 {
		var cancel context.CancelFunc
		doing, cancel = context.WithTimeoutCause(doing, d, daybook.ErrTimeout)
		defer cancel()
		order.Deadline, _ = doing.Deadline()
	}
	out := x.run(doing, got, order)
	h.stop()
	out.Command = job.Command.String()
	after, err := x.report(ctx, h, got, dir, out)
	if err == nil {
		x.clean(got)
	}
	return after, err
}

// run runs the command, in the environment that the file of this machine gives it.
func (x *remoteLine) run(ctx context.Context, got claimReply, order daybook.Order) daybook.Outcome {
	env, secrets, err := x.environment()
	if err != nil {
		return daybook.Outcome{Result: daybook.ResultNotDone, Error: "read the secrets of the job: " + err.Error()}
	}
	order.Env, order.Secrets = env, append(order.Secrets, secrets...)
	command := x.a.Exec
	command.Tee = x.a.Stdout
	out := x.outlived(ctx, got, order.Dir, command.Run(ctx, order))
	x.end.exit, x.end.ran = out.Exit, true
	return out.Mask(order.Secrets)
}

// environment is what the file of this machine gives a command of the job, and which of its values are secrets.
func (x *remoteLine) environment() (env map[string]string, secrets []string, err error) {
	if x.env == nil {
		return nil, nil, nil
	}
	if env, err = x.env(); err == nil {
		secrets = executor.SecretsOf(x.job, env)
	}
	return env, secrets, err
}

// orderOf is the work of a claim: who keeps the ledger says what it is, and the file of this machine, if it has the job, where and how a
// command of it runs here.
func (x *remoteLine) orderOf(got claimReply) (*daybook.Job, *daybook.Run) {
	r := asRun(got.Run)
	r.Input, r.FirstSource, r.Fence = got.Payload, got.Trigger, got.Fence
	j := &daybook.Job{Name: r.Job, Command: daybook.Command{Argv: x.argv}, Probe: x.probe(), Retry: daybook.Retry{PermanentExit: got.Permanent}}
	if here := x.job; here != nil {
		j.Dir, j.User, j.Stdin, j.Env = here.Dir, here.User, here.Stdin, here.Env
	}
	return j, r
}

// asRun is a run as far as it is told.
func asRun(j *control.RunJSON) *daybook.Run {
	r := &daybook.Run{Key: j.Key, Job: j.Job, Subject: j.Subject, State: j.State, Reason: j.Reason, Attempts: j.Attempts, Effects: j.Effects, Zone: j.Timezone, Due: j.Due, Hold: j.Hold, FrozenUntil: j.FrozenUntil, LastError: j.Error,
		Window: daybook.Window{Label: j.Window, Date: j.Date, Start: j.WindowStart, End: j.WindowEnd}, Cover: daybook.Bounds{Start: j.WindowStart, End: j.WindowEnd}}
	if l := j.Letter; l != nil {
		r.Letter = &daybook.Letter{Kind: l.Kind, State: l.State, Error: l.Error}
	}
	return r
}

// holding is a claim that is renewed.
type holding struct {
	ctx   context.Context // ends when the work is to end, with the cause
	stop  func()          // nothing is renewed any more
	lease time.Duration
	until atomic.Int64 // the lease that it has, in nanoseconds since 1970, by the clock here
}

// hold renews a claim until it is stopped. The context ends when a person asked for the end, the claim was lost, or this
// process is to stop; not when the server cannot be reached.
func (x *remoteLine) hold(ctx context.Context, got claimReply) *holding {
	h := &holding{lease: control.DefaultLease}
	if d, err := time.ParseDuration(got.Lease); err == nil && d > 0 {
		h.lease = d
	}
	h.until.Store(time.Now().Add(h.lease).UnixNano())
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() { end(daybook.ErrShutdown) })
	over := make(chan struct{})
	go func() {
		defer close(over)
		for loop.Sleep(renewing, h.lease/3) {
			began := time.Now()
			var told struct {
				CancelledBy string `json:"cancelled_by"`
			}
			err := x.r.post(renewing, 0, "/api/v1/claims/renew", got.Token, map[string]string{"lease": h.lease.String()}, &told)
			switch f, refused := refused(err); {
			case refused && f.Code == daybook.CodeStale:
				end(daybook.ErrLeaseLost)
			case err == nil:
				h.until.Store(began.Add(h.lease).UnixNano())
				if told.CancelledBy != "" {
					end(daybook.ErrCancelled)
				}
			}
		}
	}()
	h.ctx, h.stop = work, func() {
		stop()
		<-over
		release()
	}
	return h
}

// patience is how long an end is reported again and again.
func (h *holding) patience() time.Duration {
	return max(time.Until(time.Unix(0, h.until.Load())), 0) + leasesToWait*h.lease
}
