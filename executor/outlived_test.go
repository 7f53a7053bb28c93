package executor_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// leaves lets the first attempt of a key end while something that it started is alive, and says where.
func (r *room) leaves(k daybook.Key, base string, o daybook.Outcome) (place string) {
	r.t.Helper()
	place = executor.AttemptDir(base, k, 1)
	if err := os.MkdirAll(place, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.outcome, r.survivor.alive[place] = o, true
	r.mu.Unlock()
	r.starts(1)
	return place
}

// dies ends what was left alive, which may have reported.
func (r *room) dies(place string, report daybook.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.survivor.alive[place] = false
	if report.Result != "" {
		r.survivor.report[place] = report
	}
}

func (r *room) questions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

var killed = daybook.Outcome{Result: daybook.ResultUnknown, Error: "signal killed", Detail: "signal killed", Exit: 137}

// An attempt that ended without saying how, and left something alive that may yet send, is not over before that is: nobody is
// asked, no person is called, and a no counts from when it ended.
func TestAnAttemptThatLeftSomethingAlive(t *testing.T) {
	for _, c := range []struct {
		name    string
		probe   bool
		left    daybook.Outcome
		reports daybook.Outcome
		answers []daybook.Answer // at once, and once it counts
		state   daybook.State
		kind    daybook.LetterKind
	}{
		{name: "no", probe: true, left: killed, answers: []daybook.Answer{daybook.No, daybook.No}, state: daybook.Retryable},
		{name: "unclear no", probe: true, left: daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"}, answers: []daybook.Answer{daybook.No, daybook.No}, state: daybook.Retryable},
		{name: "yes", probe: true, left: killed, answers: []daybook.Answer{daybook.Yes}, state: daybook.Done},
		{name: "no probe", left: killed, state: daybook.Dead, kind: daybook.LetterUnknown},
		{name: "it reports", left: killed, reports: daybook.Outcome{Result: daybook.ResultDone}, state: daybook.Done},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				dir := t.TempDir()
				r := newRoom(t, s, func(j *daybook.Job) {
					if c.probe {
						j.Probe = daybook.Command{Argv: []string{"x"}}
					}
				}, nil, dir)
				r.answers = c.answers
				k := r.trigger("2026-03-01")
				place := r.leaves(k, dir, c.left)
				leases, rescue := executor.Leases{Executor: r.Executor}, &executor.Rescue{Executor: r.Executor}
				for range 60 { // twice as long as a no needs to count
					r.claims()
					r.tick(leases)
					r.tick(rescue)
					r.passes(lease / 3)
				}
				if run := r.is(k, daybook.Running, ""); run.Letter != nil || r.questions() > 0 {
					t.Fatalf("letter %+v, asked %v, while it is alive", run.Letter, r.asked)
				}
				r.dies(place, c.reports)
				r.tick(leases)
				r.settles()
				if len(c.answers) > 1 {
					run := r.is(k, daybook.Retryable, daybook.ReasonSettling)
					if run.WireKey() != string(k) || !run.Due.Equal(r.run(k).Effect.EndedAt.Add(r.job.Settles)) || r.clock().Sub(run.Effect.EndedAt) > lease {
						t.Fatalf("wire key %s; asked again at %s, it ended at %s", run.WireKey(), run.Due, run.Effect.EndedAt)
					}
					r.passes(r.job.Settles)
					r.settles()
				}
				run := r.run(k)
				if run.State != c.state || c.kind != "" && (run.Letter == nil || run.Letter.Kind != c.kind) {
					t.Errorf("%s %s, letter %+v", run.State, run.Reason, run.Letter)
				}
				attempts, err := s.Attempts(ctx, k)
				if err != nil || len(attempts) == 0 || attempts[0].Probe || attempts[0].LateResult != "" {
					t.Errorf("%+v %v", attempts, err)
				}
			})
		})
	}
}

// What was killed with its attempt is gone in a moment: its end is not put off until survivors are looked at again.
func TestAnAttemptWhoseChildDiesWithIt(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		dir := t.TempDir()
		r := newRoom(t, s, nil, nil, dir)
		r.Patient(time.Minute)
		k := r.trigger("2026-03-01")
		r.dies(r.leaves(k, dir, killed), daybook.Outcome{Result: daybook.ResultDone})
		r.settles()
		r.is(k, daybook.Done, "")
		attempts, err := s.Attempts(ctx, k)
		if err != nil || len(attempts) != 1 || attempts[0].Detail != killed.Detail && attempts[0].Detail != "" {
			t.Errorf("%+v %v", attempts, err)
		}
	})
}

// What is said of an attempt is believed for its own try: where nothing is left open, its end waits for nobody.
func TestAnAttemptThatSaidHowItEnded(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		dir := t.TempDir()
		r := newRoom(t, s, nil, nil, dir)
		k := r.trigger("2026-03-01")
		r.leaves(k, dir, daybook.Outcome{Result: daybook.ResultDone})
		r.settles()
		r.is(k, daybook.Done, "")
	})
}

// A process that stops leaves what is alive to the next one.
func TestStopWhileSomethingIsLeftAlive(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		dir := t.TempDir()
		r := newRoom(t, s, nil, nil, dir)
		r.stays = true
		k := r.trigger("2026-03-01")
		place := r.leaves(k, dir, killed)
		if err := r.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		r.is(k, daybook.Running, "")
		next := newRoom(t, s, nil, nil, dir)
		next.survivor.alive[place] = true
		next.passes(r.clock().Sub(T0) + lease + time.Second)
		next.tick(&executor.Rescue{Executor: next.Executor})
		if !next.Holds(k) {
			t.Fatal("it is not waited for")
		}
		next.dies(place, daybook.Outcome{Result: daybook.ResultDone})
		next.tick(executor.Leases{Executor: next.Executor})
		next.settles()
		next.is(k, daybook.Done, "")
	})
}

// A lease may be lost while what the attempt started lives on, and another declares it over. Whoever knows that it is alive asks
// nobody, and a no counts from when it was last seen alive.
func TestNobodyIsAskedBeside(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		dir := t.TempDir()
		asks := func(j *daybook.Job) { j.Probe = daybook.Command{Argv: []string{"x"}} }
		r := newRoom(t, s, asks, nil, dir)
		r.answers = []daybook.Answer{daybook.No, daybook.No}
		r.stays = true
		k := r.trigger("2026-03-01")
		place := r.leaves(k, dir, killed)
		other := newRoom(t, s, asks, nil, t.TempDir())
		other.passes(lease + time.Second)
		other.tick(&executor.Rescue{Executor: other.Executor})
		other.is(k, daybook.Retryable, daybook.ReasonSettling)
		r.passes(lease + time.Second)
		r.tick(executor.Leases{Executor: r.Executor}) // the lease is lost: the work is told to end, and something of it lives on
		r.settles()
		for range 60 {
			r.passes(10 * time.Second)
			r.settles()
		}
		run := r.is(k, daybook.Retryable, daybook.ReasonSettling)
		if r.questions() > 0 || run.WireKey() != string(k) {
			t.Fatalf("asked %v, wire key %s", r.asked, run.WireKey())
		}
		r.dies(place, daybook.Outcome{})
		r.passes(10 * time.Second)
		r.settles()
		if run := r.is(k, daybook.Retryable, daybook.ReasonSettling); r.questions() != 1 || run.WireKey() != string(k) {
			t.Fatalf("asked %v, wire key %s", r.asked, run.WireKey())
		}
		r.passes(r.job.Settles)
		r.settles()
		if run := r.run(k); r.questions() != 2 || run.WireKey() != string(k)+"#run@2" {
			t.Fatalf("asked %v, wire key %s", r.asked, run.WireKey())
		}
	})
}
