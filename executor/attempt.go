package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// attempt is one try from claim to end, read like a recipe: find the work, wait for nobody, mark it begun, do it.
func (x *Executor) attempt(ctx context.Context, f *flight) {
	work, ok := x.o.Work(f.run.Job)
	if !ok {
		x.handBack(f, daybook.ReasonNoDefinition, awayPause)
		return
	}
	if x.alive(f.run, true) || x.stays(f.run, work) {
		x.decide(f, func(r *daybook.Run, now time.Time) daybook.Transition { return r.HandBackAlive(alivePause, now) })
		return
	}
	env, err := environment(work)
	if err != nil {
		x.end(f, work.Job.Policy(), daybook.Outcome{Result: daybook.ResultNotDone, Error: "read the secrets of the job: " + err.Error()})
		return
	}
	f.secrets = SecretsOf(work.Job, env)
	if work.lists(f.run) {
		x.list(ctx, f, work, env)
		return
	}
	if !x.begin(ctx, f, work) {
		return
	}
	run := x.snapshot(f)
	o := daybook.Order{Run: &run, Job: work.Job, Attempt: f.run.Attempts, Fence: f.run.Fence, Env: env, Secrets: f.secrets, Dir: x.dir(f.run.Key, f.run.Fence),
		Lapsed: func() bool { return x.lapsed(f) }}
	if f.run.Steps {
		o.Book = x.newBook(f, work.Job.Policy())
		if o.Rights, err = x.rights(ctx, f, work); err != nil {
			x.end(f, work.Job.Policy(), daybook.Outcome{Result: daybook.ResultNotDone, Error: err.Error()})
			return
		}
		o.Secrets = f.secrets
	} else {
		o.WireKey = f.run.WireKey()
	}
	if work.Job.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, work.Job.Timeout, daybook.ErrTimeout)
		defer cancel()
		o.Deadline, _ = ctx.Deadline()
	}
	if x.o.Home == daybook.HomeOnce {
		f.command = work.Job.Command.String() // no definition tells it: the crontab line does
	}
	out := x.work(ctx, f, work, o)
	x.readSteps(ctx, f, o.Dir)
	if !x.waitFor(ctx, f, work.Job.Policy(), &out, o.Dir) {
		x.end(f, work.Job.Policy(), out)
	}
}

// snapshot copies the run of a flight: what a renewal notes meanwhile stands in it.
func (x *Executor) snapshot(f *flight) daybook.Run {
	x.mu.Lock()
	defer x.mu.Unlock()
	return *f.run
}

// work does what a claimed run is for: its work, or the undo of what another did.
func (x *Executor) work(ctx context.Context, f *flight, work Work, o daybook.Order) daybook.Outcome {
	if o.Lapsed() { // the way here may have been long: this process stood still, or had no turn
		return daybook.Outcome{Result: daybook.ResultNotDone, Error: "not begun: " + daybook.ErrLeaseLost.Error(), Detail: "not started", Interrupted: true}
	}
	if f.run.Key.IsUndo() {
		return x.undo(ctx, f, work, o)
	}
	return x.do(ctx, work, o)
}

// do calls the runner. Its panic proves nothing about the effect.
func (x *Executor) do(ctx context.Context, work Work, o daybook.Order) (out daybook.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = daybook.Outcome{Result: daybook.ResultUnclear, Error: fmt.Sprintf("the runner panicked: %v", p)}
		}
	}()
	return work.Runner.Run(ctx, o)
}

func environment(work Work) (map[string]string, error) {
	if work.Env == nil {
		return nil, nil
	}
	return work.Env()
}

// begin marks the start of the work: durably for work that is one effect, in memory for work that may be repeated. False
// means that the flight is over.
func (x *Executor) begin(ctx context.Context, f *flight, work Work) bool {
	r := f.run
	now := x.o.Clock()
	if !r.OneEffect() {
		r.BegunAt = now
		return true
	}
	if err := daybook.CheckWireKey(r.WireKey()); err != nil {
		x.end(f, work.Job.Policy(), daybook.Outcome{Result: daybook.ResultPermanent, Error: err.Error()})
		return false
	}
	p := work.Job.Policy()
	e, ok := r.Begin(p, now)
	if !ok {
		x.decide(f, func(r *daybook.Run, now time.Time) daybook.Transition { return r.Unsettled(p, now) })
		return false
	}
	before := r.Effect
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := x.store.Begin(ctx, r, e, now)
		if err == nil {
			return true
		}
		if errors.Is(err, daybook.ErrStale) {
			x.o.Log.Warn("claim lost before the work began", "job", r.Job, "key", r.Key, "err", err)
			return false // nothing was sent, and somebody else has the run
		}
		x.o.Log.Warn("the mark of the start could not be written", "job", r.Job, "key", r.Key, "err", err)
		if !sleep(ctx, pause) {
			// The mark may have been written and the answer lost: as the run is handed back, it is taken back.
			r.Effect = e
			x.handBack(f, daybook.ReasonInterrupted, 0)
			r.Effect = before
			return false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// decide decides what follows the end of a flight.
func (x *Executor) decide(f *flight, how func(r *daybook.Run, now time.Time) daybook.Transition) {
	f.stood, f.decide = x.snapshot(f), how
	f.next = how(&f.stood, x.o.Clock())
	x.outside(&f.next)
}

// end decides what follows the outcome of an attempt, which is kept without the secrets of its job.
func (x *Executor) end(f *flight, p daybook.Policy, o daybook.Outcome) {
	o = o.Mask(f.secrets)
	f.outcome = o
	if o.Recorded {
		return
	}
	x.decide(f, func(r *daybook.Run, now time.Time) daybook.Transition {
		t := r.Next(o, p, now)
		if t.Attempt != nil {
			t.Attempt.Command = f.command
		}
		f.endUndo(&t)
		return t
	})
}

// handBack gives a run back uncounted, to be claimed again not before the pause.
func (x *Executor) handBack(f *flight, why daybook.Reason, pause time.Duration) {
	x.decide(f, func(r *daybook.Run, now time.Time) daybook.Transition {
		t := r.Next(daybook.Outcome{Result: daybook.ResultInterrupted}, daybook.Policy{}, now)
		if t.On != daybook.OnHandBack { // a person asked for the end
			return t
		}
		t.Reason = why
		if pause > 0 {
			t.Due = now.Add(pause)
		}
		return t
	})
}

// question asks the far side about the open effect of a run, for every wire key used, newest first.
func (x *Executor) question(ctx context.Context, f *flight) {
	r := f.run
	asked := x.o.Clock()
	work, ok := x.o.Work(r.Job)
	if !ok {
		// Another process knows how to ask: the question is given back when its lease is over, never answered for it.
		x.o.Log.Warn("this process does not know how to ask", "job", r.Job, "key", r.Key)
		return
	}
	if x.alive(r, false) || x.stays(r, work) {
		x.decide(f, func(r *daybook.Run, now time.Time) daybook.Transition { return r.PutOff(alivePause, now) })
		return
	}
	p := work.Job.Policy()
	var found []daybook.Finding
	if r.Steps {
		x.questionSteps(ctx, f, work, asked)
		return
	}
	if r.Effect == nil {
		// Settling without an effect cannot be; it is handed on as it is.
		x.o.Log.Error("a run is settling without an effect", "job", r.Job, "key", r.Key)
		return
	}
	if work.Prober != nil {
		found = x.ask(ctx, r, r.Effect, work)
	}
	if ctx.Err() != nil {
		return // cut off: it is asked again once its lease is over, or released below
	}
	x.decide(f, func(r *daybook.Run, now time.Time) daybook.Transition { return r.Settle(found, p, asked, now) })
}

// ask asks about every wire key that an effect was tried under, newest first.
func (x *Executor) ask(ctx context.Context, r *daybook.Run, e *daybook.StepRecord, work Work) []daybook.Finding {
	env, err := environment(work)
	if err != nil {
		return []daybook.Finding{{Answer: daybook.CannotTell, WireKey: e.WireKey(), Error: err.Error()}}
	}
	secrets := SecretsOf(work.Job, env)
	var found []daybook.Finding
	for _, wireKey := range e.WireKeys() {
		asked := x.o.Clock()
		limited, cancel := context.WithTimeoutCause(ctx, daybook.ProbeTimeout, daybook.ErrTimeout)
		one := work.Prober.Probe(limited, daybook.Order{Run: r, Job: work.Job, Attempt: r.Attempts, Fence: r.Fence, WireKey: wireKey, Step: e.Step, Env: env}, wireKey)
		cancel()
		one.Error, one.Data = daybook.Mask(one.Error, secrets), daybook.MaskJSON(one.Data, secrets)
		one.AskedAt, one.AnsweredAt = asked, x.o.Clock()
		found = append(found, one)
	}
	return found
}

// dir is the directory of an attempt on this host. It is found again by key and fence alone.
func (x *Executor) dir(k daybook.Key, fence int64) string {
	if x.o.Dir == "" {
		return ""
	}
	return AttemptDir(x.o.Dir, k, fence)
}

// AttemptDir is the directory of an attempt below the one for all of them.
func AttemptDir(base string, k daybook.Key, fence int64) string {
	return filepath.Join(base, dirPrefix(k)+strconv.FormatInt(fence, 10))
}

// AttemptDirs lists the directories that attempts of a run left there.
func AttemptDirs(base string, k daybook.Key) ([]string, error) {
	return filepath.Glob(filepath.Join(base, dirPrefix(k)+"*"))
}

func dirPrefix(k daybook.Key) string {
	sum := sha256.Sum256([]byte(k))
	return hex.EncodeToString(sum[:8]) + "-"
}

// Printed opens what the attempt of a key with a fence has printed so far on this host. It may grow while the attempt lives.
// An error with CodeNotFound: nothing here has it, as the attempt is another host's, printed nothing yet, is no command, or
// has ended; with CodeUnavailable: it may not be read.
func (x *Executor) Printed(k daybook.Key, fence int64) (io.ReadCloser, error) {
	dir := x.dir(k, fence)
	if dir == "" {
		return nil, daybook.NotFound("%s: no output is kept on this host while it runs", k)
	}
	f, err := x.o.Survivor.Output(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, daybook.NotFound("%s: nothing on this host has its output yet", k)
	case err != nil:
		return nil, daybook.New(daybook.CodeUnavailable, "read what %s prints", k).Because(err)
	}
	return f, nil
}

// left lists the directories that attempts of a run left on this host.
func (x *Executor) left(k daybook.Key) []string {
	if x.o.Dir == "" {
		return nil
	}
	dirs, err := AttemptDirs(x.o.Dir, k)
	if err != nil {
		x.o.Log.Error("look for what attempts left", "key", k, "err", err) // the pattern is ours: this cannot be
	}
	return dirs
}

// alive reports whether something that an attempt of the run started is still alive on this host; of an earlier attempt only, when the
// current one is not to count.
func (x *Executor) alive(r *daybook.Run, earlier bool) bool {
	for _, dir := range x.left(r.Key) {
		if earlier && dir == x.dir(r.Key, r.Fence) {
			continue
		}
		if alive, known := x.o.Survivor.Alive(dir); known && alive {
			x.o.Log.Warn("an earlier attempt is still alive: nothing is started or asked beside it", "job", r.Job, "key", r.Key)
			return true
		}
	}
	return false
}

// stays reports whether work of an earlier attempt of the run goes on in this process, since it did not heed its end; of an undo,
// also the work that it takes back.
func (x *Executor) stays(r *daybook.Run, work Work) bool {
	s, ok := work.Runner.(daybook.Stayer)
	if !ok || !s.Stays(r.Key) && !s.Stays(r.Key.Base()) {
		return false
	}
	x.o.Log.Warn("an earlier attempt did not heed its end and is still at work: nothing is started beside it", "job", r.Job, "key", r.Key)
	return true
}

// clean removes what the attempts of a run up to a fence left on this host, once how they ended is written. What a later
// claim has just made is not touched: it may not be locked yet.
func (x *Executor) clean(k daybook.Key, upTo int64) {
	for _, dir := range x.left(k) {
		fence, err := strconv.ParseInt(dir[strings.LastIndexByte(dir, '-')+1:], 10, 64)
		if err != nil || fence > upTo {
			continue
		}
		if alive, known := x.o.Survivor.Alive(dir); known && alive {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			x.o.Log.Warn("remove the directory of an attempt", "key", k, "err", err)
		}
	}
}
