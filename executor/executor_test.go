package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// T0 is when the tests take place; the clock moves by hand.
var T0 = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

const lease = 30 * time.Second

// room is an executor on a ledger, with work and a far side that do as they are told.
type room struct {
	*executor.Executor
	t     *testing.T
	s     *store.Store
	job   *daybook.Job
	home  string        // of the runs that are triggered
	leave chan struct{} // closed: a run that stays comes back

	mu       sync.Mutex
	now      time.Time
	outcome  daybook.Outcome
	stays    bool
	before   func() // comes before the work is begun; nil: nothing
	goesOn   bool   // work that was given up
	orders   []daybook.Order
	answers  []daybook.Answer // to questions, in order; then cannot tell
	asked    []string
	survivor survivor
}

// survivor is what an earlier process left, by directory.
type survivor struct {
	alive  map[string]bool
	report map[string]daybook.Outcome
	ended  []string
	steps  map[string][]daybook.StepEnd
}

func (r *room) Alive(dir string) (alive, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	alive, known = r.survivor.alive[dir]
	return alive, known
}

func (r *room) Report(dir string) (daybook.Outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.survivor.report[dir]
	return o, ok
}

func (r *room) KeepEnd(dir string, o daybook.Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.survivor.report[dir] = o
	return nil
}

func (r *room) Steps(dir string) []daybook.StepEnd {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.survivor.steps[dir]
}

func (r *room) Output(dir string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(dir, "printed"))
}

func (r *room) End(_ context.Context, dir string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.survivor.ended = append(r.survivor.ended, dir)
	return nil
}

// Run implements daybook.Runner.
func (r *room) Run(ctx context.Context, o daybook.Order) daybook.Outcome {
	r.mu.Lock()
	r.orders = append(r.orders, o)
	stays := r.stays
	r.mu.Unlock()
	if stays {
		select {
		case <-r.leave:
		case <-ctx.Done():
			return daybook.Outcome{Result: daybook.ResultUnknown, Error: context.Cause(ctx).Error()}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcome
}

// Stays implements daybook.Stayer.
func (r *room) Stays(daybook.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.goesOn
}

// CanUndo and Undo implement daybook.Undoer.
func (r *room) CanUndo(daybook.Order, *daybook.StepRecord) bool { return true }

func (r *room) Undo(ctx context.Context, o daybook.Order, _ *daybook.StepRecord) daybook.Outcome {
	return r.Run(ctx, o)
}

// Probe implements daybook.Prober.
func (r *room) Probe(_ context.Context, _ daybook.Order, wireKey string) daybook.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, wireKey)
	r.now = r.now.Add(time.Millisecond) // a question takes a while
	answer := daybook.CannotTell
	if len(r.answers) > 0 {
		answer, r.answers = r.answers[0], r.answers[1:]
	}
	return daybook.Finding{Answer: answer, WireKey: wireKey}
}

func (r *room) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *room) passes(d time.Duration) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
	return r.now
}

// newRoom makes an executor; on, if not nil, stands between it and the ledger.
func newRoom(t *testing.T, s *store.Store, change func(*daybook.Job), on daybook.Claimer, dir string) *room {
	t.Helper()
	j := daybook.Job{Name: "renew", Owner: "ops", Timezone: "UTC", Window: daybook.Day, Effects: daybook.Once, Command: daybook.Command{Argv: []string{"x"}}}
	if change != nil {
		change(&j)
	}
	j = j.WithDefaults(0, 0)
	r := &room{t: t, s: s, job: &j, now: T0, outcome: daybook.Outcome{Result: daybook.ResultDone}, leave: make(chan struct{})}
	r.survivor = survivor{alive: map[string]bool{}, report: map[string]daybook.Outcome{}}
	if on == nil {
		on = s
	}
	work := executor.Work{Job: &j, Runner: r, Undoer: r, Env: func() (map[string]string, error) {
		if r.before != nil {
			r.before()
		}
		return nil, nil
	}}
	if j.Asks() {
		work.Prober = r
	}
	if j.Fans() {
		work.List = func(context.Context, daybook.Window, daybook.Order) iter.Seq2[daybook.Subject, error] {
			return func(yield func(daybook.Subject, error) bool) { yield(daybook.Subject{ID: "sub_07"}, nil) }
		}
	}
	r.Executor = executor.New(on, executor.Options{Node: storetest.NewID(), Slots: map[daybook.Lane]int{daybook.LaneLive: 4, daybook.LaneBackfill: 1}, Lease: lease,
		Dir: dir, Survivor: r, NewID: storetest.NewID, Clock: r.clock, Work: func(name string) (executor.Work, bool) { return work, name == j.Name }})
	r.Patient(0)
	if _, err := s.Ensure(t.Context(), &j, "", T0); err != nil {
		t.Fatal(err)
	}
	return r
}

// trigger makes a run that is due.
func (r *room) trigger(date string) daybook.Key {
	r.t.Helper()
	start, err := time.Parse(time.DateOnly, date)
	if err != nil {
		r.t.Fatal(err)
	}
	run := daybook.NewRun(r.job, 1, daybook.Window{Label: date, Date: date, Start: start, End: start.AddDate(0, 0, 1)}, 1, "", r.clock())
	run.Due, run.NotBefore, run.Home = r.clock(), r.clock(), r.home
	if _, _, err := r.s.Trigger(r.t.Context(), daybook.Ask{Key: run.Key, Source: daybook.SourceManual, Actor: "ops", Effects: r.job.Effects}, run, r.clock()); err != nil {
		r.t.Fatal(err)
	}
	return run.Key
}

// claims lets the executor claim, and waits until everything that does not stay has come back and is written.
func (r *room) claims() {
	r.t.Helper()
	r.tick(executor.Ends{Executor: r.Executor})
	r.tick(executor.Claims{Executor: r.Executor})
}

func (r *room) tick(s daybook.Service) {
	r.t.Helper()
	if _, err := s.Tick(r.t.Context(), r.clock()); err != nil {
		r.t.Fatal(err)
	}
}

// settles goes on claiming until nothing is in flight.
func (r *room) settles() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	for r.claims(); r.InFlight() > 0; r.claims() {
		select {
		case <-r.Endings():
		case <-ctx.Done():
			r.t.Fatal("it does not settle")
		}
	}
}

// starts claims until n runs are at work.
func (r *room) starts(n int) {
	r.t.Helper()
	r.claims()
	r.works(n)
}

// works waits until n runs are at work.
func (r *room) works(n int) {
	r.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	for {
		r.mu.Lock()
		got := len(r.orders)
		r.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("%d at work, want %d", got, n)
		}
	}
}

func (r *room) run(k daybook.Key) *daybook.Run {
	r.t.Helper()
	run, err := r.s.Run(r.t.Context(), k)
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *room) is(k daybook.Key, state daybook.State, reason daybook.Reason) *daybook.Run {
	r.t.Helper()
	run := r.run(k)
	if run.State != state || run.Reason != reason {
		r.t.Errorf("%s is %s %q, want %s %q: %s", k, run.State, run.Reason, state, reason, run.LastError)
	}
	return run
}

// old is a ledger whose pass over expired leases looks at an old picture.
type old struct {
	*store.Store
	between func()
}

func (o old) Expired(ctx context.Context, now, ahead time.Time, limit int) ([]*daybook.Run, error) {
	runs, err := o.Store.Expired(ctx, now, ahead, limit)
	o.between()
	return runs, err
}

// H39: the pass reads the row running under fence 1, the worker commits done, the pass writes: nothing changes.
func TestRescueWithAnOldPicture(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		worker := newRoom(t, s, nil, nil, "")
		worker.stays = true
		k := worker.trigger("2026-03-01")
		worker.starts(1)
		o := old{s, func() {
			close(worker.leave)
			worker.settles()
		}}
		pass := newRoom(t, s, nil, o, "")
		pass.passes(lease + time.Second)
		pass.tick(&executor.Rescue{Executor: pass.Executor})
		if r := worker.is(k, daybook.Done, ""); r.Fence != 1 || r.Letter != nil {
			t.Errorf("fence %d, letter %+v", r.Fence, r.Letter)
		}
	})
}

// An expired lease is rescued; one that is renewed in time is not, and neither is one that this very process holds.
func TestRescue(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		gone := newRoom(t, s, nil, nil, "")
		gone.stays = true
		k := gone.trigger("2026-03-01")
		gone.starts(1)
		other := newRoom(t, s, nil, nil, "")
		rescue := &executor.Rescue{Executor: other.Executor}
		for range 5 { // as time goes by in small steps, a lease that is renewed never ends
			other.passes(lease / 3)
			gone.passes(lease / 3)
			gone.tick(executor.Leases{Executor: gone.Executor})
			other.tick(rescue)
		}
		other.is(k, daybook.Running, "")
		own := &executor.Rescue{Executor: gone.Executor}
		for range 2 { // no renewal any more
			other.passes(lease / 3)
			gone.passes(lease / 3)
			gone.tick(own)
			other.tick(rescue)
		}
		gone.is(k, daybook.Running, "")
		gone.passes(lease)
		gone.tick(own)
		gone.is(k, daybook.Running, "")
		other.passes(2 * lease / 3)
		other.tick(rescue)
		r := other.is(k, daybook.Dead, "")
		if r.Letter == nil || r.Letter.Kind != daybook.LetterUnknown || r.Fence != 1 {
			t.Errorf("fence %d, letter %+v", r.Fence, r.Letter)
		}
		close(gone.leave) // its late report settles it
		gone.settles()
		if r := other.is(k, daybook.Done, ""); r.Letter.State != daybook.LetterSettled {
			t.Errorf("letter %s", r.Letter.State)
		}
	})
}

// slow is a ledger that something happens to when subjects are written.
type slow struct {
	*store.Store
	between func()
}

func (o slow) ListChildren(ctx context.Context, parent *daybook.Run, children []*daybook.Run, lease time.Time) (fresh, known int, err error) {
	fresh, known, err = o.Store.ListChildren(ctx, parent, children, lease)
	o.between()
	return fresh, known, err
}

// A listing that ends after it was declared over ends nothing: it has not done what the subjects stand for. Another has it listed
// again.
func TestAListingThatComesTooLate(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		fans := func(j *daybook.Job) { j.HasSubjects = true }
		other := newRoom(t, s, fans, nil, "")
		gone := newRoom(t, s, fans, slow{s, func() {
			other.passes(lease + time.Second)
			other.tick(&executor.Rescue{Executor: other.Executor})
		}}, "")
		k := gone.trigger("2026-03-01")
		gone.settles()
		if r := other.is(k, daybook.Retryable, daybook.ReasonLost); r.Fence != 1 {
			t.Errorf("fence %d", r.Fence)
		}
		tries, err := s.Attempts(t.Context(), k)
		if err != nil || len(tries) != 1 || tries[0].LateResult != daybook.ResultDone || tries[0].LateTaken {
			t.Errorf("attempts: %+v %v", tries, err)
		}
		other.passes(time.Hour)
		other.settles()
		other.is(k, daybook.Running, daybook.ReasonFannedOut)
		if child := other.run(k + "/sub_07"); child.State != daybook.Scheduled || child.Hold != daybook.HoldTurn {
			t.Errorf("%s is %s, hold %q", child.Key, child.State, child.Hold)
		}
	})
}

// A process that stood still rescues nothing before those it would rescue had the time to renew.
func TestRescueAfterAStandstill(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		worker := newRoom(t, s, nil, nil, "")
		worker.stays = true
		k := worker.trigger("2026-03-01")
		worker.starts(1)
		other := newRoom(t, s, nil, nil, "")
		rescue := &executor.Rescue{Executor: other.Executor}
		other.tick(rescue)
		other.passes(8 * time.Hour) // all were suspended
		other.tick(rescue)
		other.is(k, daybook.Running, "")
		worker.passes(8*time.Hour + lease/6)
		worker.tick(executor.Leases{Executor: worker.Executor})
		other.passes(lease / 2)
		other.tick(rescue)
		other.is(k, daybook.Running, "")
		close(worker.leave)
		worker.settles()
		other.is(k, daybook.Done, "")
	})
}

// A clock that leapt back leaves leases that end too late. They are rescued once they stood for the length of a lease.
func TestRescueOfALeaseFromTheFuture(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		gone := newRoom(t, s, func(j *daybook.Job) { j.Effects = daybook.Repeatable }, nil, "")
		gone.stays = true
		gone.passes(48 * time.Hour)
		k := gone.trigger("2026-03-01")
		gone.starts(1)
		other := newRoom(t, s, func(j *daybook.Job) { j.Effects = daybook.Repeatable }, nil, "")
		rescue := &executor.Rescue{Executor: other.Executor}
		for range 3 {
			other.tick(rescue)
			other.is(k, daybook.Running, "")
			other.passes(lease / 3)
		}
		other.passes(lease / 3)
		other.tick(rescue)
		other.is(k, daybook.Retryable, daybook.ReasonLost)
		close(gone.leave)
	})
}

// A question is asked for every wire key used, newest first; one whose asker is gone is asked again.
func TestQuestions(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		asking := func(j *daybook.Job) {
			j.Probe, j.Settles = daybook.Command{Argv: []string{"ask"}}, 5*time.Minute
			j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute, time.Minute}, Jitter: -1}
		}
		r := newRoom(t, s, asking, nil, "")
		r.outcome = daybook.Outcome{Result: daybook.ResultUnclear, Error: "502"}
		r.answers = []daybook.Answer{daybook.No, daybook.No, daybook.No, daybook.Yes}
		k := r.trigger("2026-03-01")
		r.settles()
		r.settles()
		run := r.is(k, daybook.Retryable, daybook.ReasonSettling) // a no, too early to count
		if !run.Due.Equal(run.Effect.EndedAt.Add(5 * time.Minute)) {
			t.Errorf("due %s, the try ended %s", run.Due, run.Effect.EndedAt)
		}
		r.passes(5 * time.Minute)
		r.settles()
		run = r.is(k, daybook.Retryable, daybook.ReasonRetry) // a no that counts
		if run.Effect.Generation != 2 || run.Effect.Open || run.Failures != 1 {
			t.Errorf("%+v, failures %d", run.Effect, run.Failures)
		}
		r.passes(time.Minute)
		r.settles() // the second try, under the next wire key, is unclear as well, and both keys are asked for: no, yes
		r.settles()
		run = r.is(k, daybook.Done, "")
		want := []string{string(k), string(k), string(k) + "#run@2", string(k)}
		if len(r.asked) != len(want) {
			t.Fatalf("asked %v", r.asked)
		}
		for i := range want {
			if r.asked[i] != want[i] {
				t.Errorf("asked %v, want %v", r.asked, want)
			}
		}
		if run.Effect.Generation != 1 || run.WireKey() != string(k) {
			t.Errorf("the far side knows it as %s", run.WireKey())
		}
		if attempts, err := s.Attempts(ctx, k); err != nil || len(attempts) != 6 {
			t.Errorf("%d rows: 2 tries and 4 questions are wanted, %v", len(attempts), err)
		}
	})
}

// A question whose asker is gone is released after the lease, and asked again by whoever comes.
func TestQuestionOfOneWhoIsGone(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		asking := func(j *daybook.Job) { j.Probe = daybook.Command{Argv: []string{"ask"}} }
		r := newRoom(t, s, asking, nil, "")
		r.outcome = daybook.Outcome{Result: daybook.ResultUnclear, Error: "502"}
		r.answers = []daybook.Answer{daybook.Yes}
		k := r.trigger("2026-03-01")
		r.starts(1)
		for r.run(k).State == daybook.Running { // written, and not claimed again
			if _, err := s.Apply(ctx, nil); err != nil {
				t.Fatal(err)
			}
			r.claimsNothing()
		}
		now := r.clock()
		if claimed, err := s.Claim(ctx, daybook.Claim{Node: "gone", Key: k, Limit: 1, Lease: now.Add(lease), NewID: storetest.NewID}, now); err != nil || len(claimed) != 1 {
			t.Fatalf("%d claimed, %v", len(claimed), err)
		}
		r.settles()
		if len(r.asked) != 0 {
			t.Errorf("asked %v beside the one who asks", r.asked)
		}
		r.passes(lease + time.Second)
		r.tick(&executor.Rescue{Executor: r.Executor})
		r.settles()
		r.is(k, daybook.Done, "")
	})
}

// claimsNothing writes what ended.
func (r *room) claimsNothing() {
	r.t.Helper()
	r.tick(executor.Ends{Executor: r.Executor})
}

// What outlived its daybook is waited for; its report counts, else nobody reported. A person's wish and the timeout end
// it.
func TestSurvivor(t *testing.T) {
	for _, c := range []struct {
		name   string
		report daybook.Result
		state  daybook.State
		kind   daybook.LetterKind
	}{
		{"done", daybook.ResultDone, daybook.Done, ""},
		{"permanent", daybook.ResultPermanent, daybook.Dead, daybook.LetterFailed},
		{"none", "", daybook.Dead, daybook.LetterUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
				dir := t.TempDir()
				gone := newRoom(t, s, nil, nil, dir)
				gone.stays = true
				k := gone.trigger("2026-03-01")
				gone.starts(1)
				place := gone.orders[0].Dir
				if err := os.MkdirAll(place, 0o700); err != nil {
					t.Fatal(err)
				}
				r := newRoom(t, s, func(j *daybook.Job) { j.Timeout = time.Hour }, nil, dir)
				r.survivor.alive[place] = true
				rescue, leases := &executor.Rescue{Executor: r.Executor}, executor.Leases{Executor: r.Executor}
				r.passes(lease + time.Second)
				r.tick(rescue)
				if r.InFlight() != 1 {
					t.Fatal("it is not waited for")
				}
				for range 6 {
					r.passes(lease / 3)
					r.tick(leases)
					r.tick(rescue)
				}
				r.is(k, daybook.Running, "")
				r.mu.Lock()
				r.survivor.alive[place] = false
				if c.report != "" {
					r.survivor.report[place] = daybook.Outcome{Result: c.report, Error: "said"}
				}
				r.mu.Unlock()
				r.passes(time.Second)
				r.tick(leases)
				r.settles()
				run := r.is(k, c.state, "")
				if attempts, err := s.Attempts(t.Context(), k); err != nil || len(attempts) != 1 || attempts[0].LateResult != "" {
					t.Errorf("%+v %v", attempts, err)
				}
				if c.kind != "" && (run.Letter == nil || run.Letter.Kind != c.kind) {
					t.Errorf("letter %+v", run.Letter)
				}
				if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
					t.Errorf("left: %v %v", left, err)
				}
				close(gone.leave)
			})
		})
	}
}

func TestSurvivorIsEnded(t *testing.T) {
	for _, why := range []string{"timeout", "person"} {
		t.Run(why, func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				dir := t.TempDir()
				gone := newRoom(t, s, nil, nil, dir)
				gone.stays = true
				defer close(gone.leave)
				k := gone.trigger("2026-03-01")
				gone.starts(1)
				place := gone.orders[0].Dir
				r := newRoom(t, s, func(j *daybook.Job) { j.Timeout = 10 * time.Minute }, nil, dir)
				r.survivor.alive[place] = true
				rescue, leases := &executor.Rescue{Executor: r.Executor}, executor.Leases{Executor: r.Executor}
				r.passes(lease + time.Second)
				r.tick(rescue)
				if why == "person" {
					if err := s.CancelRunning(ctx, k, 1, daybook.Activity{At: r.clock(), Actor: "ops", Action: "cancel", Key: k, Job: "renew"}); err != nil {
						t.Fatal(err)
					}
				}
				ended := func() bool {
					r.mu.Lock()
					defer r.mu.Unlock()
					return len(r.survivor.ended) == 1 && r.survivor.ended[0] == place
				}
				deadline := time.NewTimer(10 * time.Second)
				defer deadline.Stop()
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for steps := 0; !ended(); steps++ {
					if why == "timeout" || steps < 3 {
						r.passes(lease / 3)
					}
					r.tick(leases)
					select {
					case <-tick.C:
					case <-deadline.C:
						t.Fatalf("it is not ended: %v", r.survivor.ended)
					}
				}
			})
		})
	}
}

// An earlier attempt that is alive on this host is never started beside: the run is handed back, uncounted.
func TestNothingIsStartedBeside(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		dir := t.TempDir()
		r := newRoom(t, s, func(j *daybook.Job) { j.Effects = daybook.Repeatable }, nil, dir)
		r.outcome = daybook.Outcome{Result: daybook.ResultNotDone, Error: "later"}
		k := r.trigger("2026-03-01")
		r.settles()
		earlier := r.orders[0].Dir
		if err := os.MkdirAll(earlier, 0o700); err != nil {
			t.Fatal(err)
		}
		r.survivor.alive[earlier] = true
		r.passes(2 * time.Minute)
		r.settles()
		run := r.run(k)
		if len(r.orders) != 1 || run.State != daybook.Retryable || run.Attempts != 1 || run.Failures != 1 {
			t.Errorf("%d orders; %s, attempts %d, failures %d", len(r.orders), run.State, run.Attempts, run.Failures)
		}
		r.mu.Lock()
		r.survivor.alive[earlier] = false
		r.outcome = daybook.Outcome{Result: daybook.ResultDone}
		r.mu.Unlock()
		r.passes(time.Minute)
		r.settles()
		r.is(k, daybook.Done, "")
	})
}

// Secrets that cannot be read are no effect: it did not happen, and is tried again.
func TestSecretsThatCannotBeRead(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, nil, nil, "")
		work := executor.Work{Job: r.job, Runner: r, Env: func() (map[string]string, error) { return nil, errors.New("no such file") }}
		r.Executor = executor.New(s, executor.Options{Node: "n", Slots: map[daybook.Lane]int{daybook.LaneLive: 1}, NewID: storetest.NewID, Clock: r.clock,
			Work: func(string) (executor.Work, bool) { return work, true }})
		k := r.trigger("2026-03-01")
		r.settles()
		if run := r.is(k, daybook.Retryable, daybook.ReasonRetry); len(r.orders) != 0 || run.Effect != nil {
			t.Errorf("%d orders, effect %+v", len(r.orders), run.Effect)
		}
	})
}

// A run whose job nobody here defines is handed back, uncounted, and is there for whoever does.
func TestNoDefinition(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, nil, nil, "")
		k := r.trigger("2026-03-01")
		stranger := executor.New(s, executor.Options{Node: "n", Slots: map[daybook.Lane]int{daybook.LaneLive: 1}, NewID: storetest.NewID, Clock: r.clock,
			Work: func(string) (executor.Work, bool) { return executor.Work{}, false }})
		mine := r.Executor
		r.Executor = stranger
		r.settles()
		if run := r.is(k, daybook.Scheduled, daybook.ReasonNoDefinition); run.Attempts != 0 {
			t.Errorf("%d attempts", run.Attempts)
		}
		r.Executor = mine
		r.passes(2 * time.Minute)
		r.settles()
		r.is(k, daybook.Done, "")
	})
}

// Where nothing may be claimed, what has ended is written all the same.
func TestEndsAreWrittenWhereNothingIsClaimed(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, nil, nil, "")
		var bar error
		r.Executor = executor.New(s, executor.Options{Node: "n", Slots: map[daybook.Lane]int{daybook.LaneLive: 4}, NewID: storetest.NewID, Clock: r.clock,
			Work: func(string) (executor.Work, bool) { return executor.Work{Job: r.job, Runner: r}, true }, MayClaim: func() error { return bar }})
		r.stays = true
		first, second := r.trigger("2026-03-01"), r.trigger("2026-03-02")
		r.starts(1)
		bar = errors.New("the clock of this machine is off")
		close(r.leave)
		r.settles()
		r.is(first, daybook.Done, "")
		r.is(second, daybook.Scheduled, "")
		bar = nil
		r.settles()
		r.is(second, daybook.Done, "")
	})
}

// mute is a ledger that does not answer a renewal.
type mute struct {
	*store.Store
	r **room
}

func (m mute) Renew(ctx context.Context, _ []*daybook.Run, _, _ time.Time) ([]daybook.Notice, error) {
	if _, ok := ctx.Deadline(); !ok {
		return nil, errors.New("it would wait for ever")
	}
	(*m.r).passes(2 * lease / 3) // until the deadline
	return nil, context.DeadlineExceeded
}

// A ledger that does not answer does not hide that the lease is over: the attempt is asked to end.
func TestALedgerThatDoesNotAnswer(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		var r *room
		r = newRoom(t, s, nil, mute{s, &r}, "")
		r.stays = true
		k := r.trigger("2026-03-01")
		r.starts(1)
		if _, err := (executor.Leases{Executor: r.Executor}).Tick(t.Context(), r.passes(lease/3)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the renewal says %v", err)
		}
		r.settles()
		if run := r.is(k, daybook.Dead, ""); run.Letter == nil || run.Letter.Kind != daybook.LetterUnknown {
			t.Errorf("letter %+v", run.Letter)
		}
	})
}

// A pass that was too late takes nothing away from the attempt that lives.
func TestRescueThatWasTooLateLeavesTheDirectory(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		dir := t.TempDir()
		worker := newRoom(t, s, nil, nil, dir)
		worker.stays = true
		k := worker.trigger("2026-03-01")
		worker.starts(1)
		left := worker.orders[0].Dir
		if err := os.MkdirAll(left, 0o700); err != nil {
			t.Fatal(err)
		}
		o := old{s, func() { worker.tick(executor.Leases{Executor: worker.Executor}) }}
		worker.passes(lease / 3)
		pass := newRoom(t, s, nil, o, dir)
		pass.passes(lease + time.Second)
		pass.tick(&executor.Rescue{Executor: pass.Executor})
		worker.is(k, daybook.Running, "")
		if _, err := os.Stat(left); err != nil {
			t.Error(err)
		}
		close(worker.leave)
		worker.settles()
		worker.is(k, daybook.Done, "")
	})
}

// A line of a crontab rescues what any process left. What a serve goes on with is asked for, and nobody is alerted; what
// only a line does that nobody runs now is told.
func TestALineRescuesForOthers(t *testing.T) {
	for name, c := range map[string]struct {
		home   string
		attend bool
		state  daybook.State
		reason daybook.Reason
	}{
		"of a serve":    {"", false, daybook.Retryable, daybook.ReasonSettling},
		"its own":       {daybook.HomeOnce, true, daybook.Retryable, daybook.ReasonSettling},
		"of other days": {daybook.HomeOnce, false, daybook.Dead, ""},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
				gone := newRoom(t, s, func(j *daybook.Job) { j.Probe = daybook.Command{Argv: []string{"x"}} }, nil, "")
				gone.home = c.home
				gone.stays = true
				k := gone.trigger("2026-03-01")
				ok, err := gone.ClaimKey(t.Context(), k, gone.clock())
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				gone.works(1)
				line := executor.New(s, executor.Options{Node: "line", Home: daybook.HomeOnce, Lease: lease, NewID: storetest.NewID, Clock: gone.clock, Dir: t.TempDir(), Survivor: gone,
					Work: func(string) (executor.Work, bool) { return executor.Work{}, false }})
				if c.attend {
					line.Attend(k)
				}
				gone.passes(lease + time.Second)
				gone.tick(&executor.Rescue{Executor: line})
				r := gone.is(k, c.state, c.reason)
				alerts, err := s.Alerts(t.Context(), true, 0)
				if err != nil || (len(alerts) > 0) != (r.State == daybook.Dead) {
					t.Errorf("alerts %+v %v", alerts, err)
				}
				close(gone.leave)
			})
		})
	}
}

// An application that has no directory on the host cannot see a command that outlived its serve, which would adopt it when it is back.
func TestAnApplicationWaitsForThoseWhoSeeSurvivors(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		gone := newRoom(t, s, nil, nil, t.TempDir())
		gone.stays = true
		k := gone.trigger("2026-03-01")
		gone.starts(1)
		app := &executor.Rescue{Executor: executor.New(s, executor.Options{Node: "app", Home: "app", Lease: lease, NewID: storetest.NewID, Clock: gone.clock,
			Work: func(string) (executor.Work, bool) { return executor.Work{}, false }})}
		gone.tick(app)
		for range 5 {
			gone.passes(lease / 3)
			gone.tick(app)
			gone.is(k, daybook.Running, "")
		}
		gone.passes(lease / 3)
		gone.tick(app)
		gone.is(k, daybook.Dead, "")
		close(gone.leave)
	})
}

// Work that was given up and goes on in this process has no second attempt beside it; once it has returned, the run goes on.
func TestNothingBesideWhatStays(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, func(j *daybook.Job) { j.Effects = daybook.Repeatable }, nil, "")
		says := func(result daybook.Result, goesOn bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.outcome, r.goesOn = daybook.Outcome{Result: result, Error: "as told"}, goesOn
		}
		says(daybook.ResultUnknown, false)
		k := r.trigger("2026-03-01")
		r.settles()
		r.is(k, daybook.Retryable, daybook.ReasonRetry)
		says(daybook.ResultDone, true)
		for range 3 {
			r.passes(2 * time.Minute)
			r.settles()
			if run := r.is(k, daybook.Retryable, daybook.ReasonLost); run.Attempts != 1 || len(r.orders) != 1 {
				t.Fatalf("%d attempts, started %d times", run.Attempts, len(r.orders))
			}
		}
		says(daybook.ResultDone, false)
		r.passes(2 * time.Minute)
		r.settles()
		if run := r.is(k, daybook.Done, ""); run.Attempts != 2 {
			t.Errorf("%d attempts", run.Attempts)
		}
	})
}

// A person asks for the end when the attempt has just ended, and this process has not heard of it: what failed is not
// tried again, what is done stays done.
func TestCancelThatComesWithTheEnd(t *testing.T) {
	for _, c := range []struct {
		result daybook.Result
		want   daybook.State
	}{{daybook.ResultNotDone, daybook.Cancelled}, {daybook.ResultDone, daybook.Done}} {
		t.Run(string(c.result), func(t *testing.T) {
			storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
				r := newRoom(t, s, nil, nil, "")
				r.outcome, r.stays = daybook.Outcome{Result: c.result, Error: "as told"}, true
				k := r.trigger("2026-03-01")
				r.starts(1)
				if err := s.CancelRunning(t.Context(), k, 1, daybook.Activity{At: r.clock(), Actor: "ops", Action: "cancel", Key: k}); err != nil {
					t.Fatal(err)
				}
				close(r.leave)
				r.settles()
				r.is(k, c.want, "")
				tries, err := s.Attempts(t.Context(), k)
				if err != nil || len(tries) != 1 || tries[0].Result != c.result || tries[0].LateResult != "" {
					t.Errorf("%+v %v", tries, err)
				}
			})
		})
	}
}

// A person asks for the end between two effects, and this process has not heard of it: the second is not begun, whether its
// work heeds that or says that it is done.
func TestCancelBetweenTwoEffects(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, func(j *daybook.Job) { j.Steps = true }, nil, "")
		r.stays = true
		k := r.trigger("2026-03-01")
		r.starts(1)
		run := *r.orders[0].Run
		run.Keep(r.orders[0].Book)
		called := 0
		effect := func(ctx context.Context, name string) error {
			_, err := daybook.Effect(ctx, &run, name, daybook.EffectOf[string]{Do: func(context.Context, string) (string, error) {
				called++
				return "", nil
			}})
			return err
		}
		if err := effect(ctx, "charge"); err != nil {
			t.Fatal(err)
		}
		if err := s.CancelRunning(ctx, k, 1, daybook.Activity{At: r.clock(), Actor: "ops", Action: "cancel", Key: k}); err != nil {
			t.Fatal(err)
		}
		if err := effect(ctx, "mail"); daybook.CodeOf(err) != daybook.CodeConflict || called != 1 {
			t.Errorf("%d calls, %v", called, err)
		}
		r.mu.Lock()
		r.outcome = daybook.Outcome{Result: daybook.ResultDone}
		r.mu.Unlock()
		close(r.leave)
		r.settles()
		run = *r.is(k, daybook.Dead, daybook.ReasonCancelled)
		if l := run.Letter; len(run.Records) != 1 || run.StepRecord("charge").State != daybook.EffectDone || l == nil || l.State != daybook.LetterOpen || l.Kind != daybook.LetterFailed {
			t.Errorf("%+v, %+v", run.Records, l)
		}
	})
}

// The end of an effect that the ledger did not hear is heard with the end of its attempt, or when that is declared over, before
// it is decided what follows.
func TestTheEndOfAStepThatNobodyHeard(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(map[bool]string{false: "attempt ends", true: "attempt is lost"}[lost], func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				r := newRoom(t, s, func(j *daybook.Job) { j.Steps = true }, nil, t.TempDir())
				r.stays = true
				k := r.trigger("2026-03-01")
				r.starts(1)
				run, err := s.Run(ctx, k)
				if err != nil {
					t.Fatal(err)
				}
				begun := run.ComeTo(daybook.StepAsk{Step: "charge"}, daybook.Policy{}, r.clock())
				if err := s.MarkStep(ctx, run, begun.Record, daybook.Learned{}); err != nil {
					t.Fatal(err)
				}
				place := r.orders[0].Dir
				end := daybook.StepEnd{Step: "charge", Try: 1, Outcome: daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`"ch_1"`)}}
				other := r
				if lost {
					other = newRoom(t, s, func(j *daybook.Job) { j.Steps = true }, nil, filepath.Dir(place))
					other.survivor.alive[place] = false
				}
				other.mu.Lock()
				other.survivor.steps = map[string][]daybook.StepEnd{place: {end, end, {Step: "mail", Try: 1, Outcome: end.Outcome}}}
				other.mu.Unlock()
				if lost {
					other.passes(lease + time.Second)
					other.tick(&executor.Rescue{Executor: other.Executor})
				} else {
					r.mu.Lock()
					r.outcome = daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 125"}
					r.mu.Unlock()
					close(r.leave)
					r.settles()
				}
				run, err = s.Run(ctx, k)
				if err != nil {
					t.Fatal(err)
				}
				if e := run.StepRecord("charge"); run.State != daybook.Retryable || e.State != daybook.EffectDone || string(e.Data) != `"ch_1"` || run.StepRecord("mail") != nil {
					t.Errorf("%s (%s), charge %+v", run.State, run.Reason, e)
				}
			})
		})
	}
}

// What lies unheard in the directory of an attempt counts also when the attempt was declared over meanwhile, and when the run was
// claimed again, as long as nothing of the effect has begun since.
func TestTheEndOfAStepThatNobodyHeardInTime(t *testing.T) {
	steps := func(j *daybook.Job) { j.Steps = true }
	for _, claimed := range []bool{false, true} {
		t.Run(map[bool]string{false: "declared over", true: "claimed again"}[claimed], func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				r := newRoom(t, s, steps, nil, t.TempDir())
				r.stays = true
				k := r.trigger("2026-03-01")
				r.starts(1)
				run := r.run(k)
				if err := s.MarkStep(ctx, run, run.ComeTo(daybook.StepAsk{Step: "charge"}, daybook.Policy{}, r.clock()).Record, daybook.Learned{}); err != nil {
					t.Fatal(err)
				}
				other := newRoom(t, s, steps, nil, "")
				other.passes(lease + time.Second)
				other.tick(&executor.Rescue{Executor: other.Executor})
				want := daybook.Retryable
				if other.is(k, daybook.Dead, ""); claimed {
					m, err := other.run(k).ResolveStep("charge", daybook.AsNotDone, daybook.Policy{}, "ops", "looked too early", other.clock())
					if err != nil {
						t.Fatal(err)
					}
					storetest.Apply(ctx, t, s, m)
					other.stays = true
					other.starts(1)
					want = daybook.Running
				}
				r.mu.Lock()
				r.outcome = daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 125"}
				r.survivor.steps = map[string][]daybook.StepEnd{r.orders[0].Dir: {{Step: "charge", Try: 1, WireKey: string(k) + "#charge",
					Outcome: daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`"ch_1"`)}}}}
				r.mu.Unlock()
				close(r.leave)
				r.settles()
				if run = r.run(k); run.State != want {
					t.Errorf("%s (%s), want %s", run.State, run.LastError, want)
				}
				if e := run.StepRecord("charge"); e.State != daybook.EffectDone || e.Generation != 1 || string(e.Data) != `"ch_1"` {
					t.Errorf("charge %+v", e)
				}
				close(other.leave)
				other.settles()
			})
		})
	}
}
