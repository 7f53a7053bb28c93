package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
)

func newFaults(seed uint64) *faultstore.Faults { return faultstore.New(seed) }

// breakable is a write of the ledger: prepared once, then done until it succeeds.
type breakable struct {
	name string
	// prepare brings the ledger into the state before the write and returns it.
	prepare func(k *kit) func(ctx context.Context, s *store.Store) error
}

// breakables are the writes that change several tables.
var breakables = []breakable{
	{"a new run", func(k *kit) func(context.Context, *store.Store) error {
		j := Job("report")
		k.know(j)
		r := k.template(j, "2026-03-01")
		return func(ctx context.Context, s *store.Store) error {
			_, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI}, r, k.now)
			return err
		}
	}},
	{"a new run by a person, which is an activity", func(k *kit) func(context.Context, *store.Store) error {
		j := Job("report")
		k.know(j)
		r := k.template(j, "2026-03-01")
		return func(ctx context.Context, s *store.Store) error {
			_, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Actor: "ops", Note: "why"}, r, k.now)
			return err
		}
	}},
	{"a trigger of a known run", func(k *kit) func(context.Context, *store.Store) error {
		r := k.dies(Job("report"), "2026-03-01")
		return func(ctx context.Context, s *store.Store) error {
			_, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI}, nil, k.now)
			return err
		}
	}},
	{"a replay", func(k *kit) func(context.Context, *store.Store) error {
		r := k.dies(Job("renew", Once), "2026-03-01")
		return func(ctx context.Context, s *store.Store) error {
			_, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceReplay, Actor: "ops"}, nil, k.now)
			return err
		}
	}},
	{"a claim", func(k *kit) func(context.Context, *store.Store) error {
		k.many(Job("report", allow), 5)
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.Claim(ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 4, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
			return err
		}
	}},
	{"the begun mark", func(k *kit) func(context.Context, *store.Store) error {
		j := Job("renew", Once)
		k.run(j, "2026-03-01")
		r := k.one()
		return func(ctx context.Context, s *store.Store) error { copied := *r; return begin(ctx, s, &copied, j, k.now) }
	}},
	{"the mark of a step", func(k *kit) func(context.Context, *store.Store) error {
		k.run(Job("renew", Once, Steps), "2026-03-01")
		r := k.one()
		e := r.ComeTo(daybook.StepAsk{Step: "charge"}, daybook.Policy{}, k.now).Record
		return func(ctx context.Context, s *store.Store) error { return s.MarkStep(ctx, r, e, daybook.Learned{}) }
	}},
	{"ends of all kinds", func(k *kit) func(context.Context, *store.Store) error {
		j := Job("renew", Once, allow)
		k.many(j, 4)
		runs := k.claim(4)
		var ms []daybook.Transition
		for i, o := range []daybook.Outcome{
			{Result: daybook.ResultDone, Data: []byte(`1`), Output: daybook.Output{Text: "hello"}},
			{Result: daybook.ResultPermanent, Error: "402"},
			{Result: daybook.ResultUnclear, Error: "exit 1"},
			{Result: daybook.ResultNotDone, Error: "exit 75"},
		} {
			k.begin(runs[i], j)
			ms = append(ms, runs[i].Next(o, j.Policy(), k.now))
		}
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.Apply(ctx, ms)
			return err
		}
	}},
	{"a plan", func(k *kit) func(context.Context, *store.Store) error {
		a, b := Job("a", func(j *daybook.Job) { j.Missed = daybook.SkipMissed }), Job("b")
		k.know(a, b)
		plans := []*daybook.Plan{k.plan(a, 1, 6, 5), k.plan(b, 1, 3, 1)}
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.Plan(ctx, plans, plans[0].To)
			return err
		}
	}},
	{"a change of definitions", func(k *kit) func(context.Context, *store.Store) error {
		a, b := Job("a", Once), Job("b")
		k.know(a, b)
		k.run(b, "2026-03-01")
		changed := Job("a", Once, func(j *daybook.Job) { j.Owner = "other" })
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.TakeRevisions(ctx, []daybook.Revision{{Job: changed, Left: []daybook.Window{Day("2026-03-02"), Day("2026-03-03")}}, {Job: Job("c")}}, true, k.now)
			return err
		}
	}},
	{"a pause", func(k *kit) func(context.Context, *store.Store) error {
		k.run(Job("report"), "2026-03-01")
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.Pause(ctx, "report", k.act("pause"))
			return err
		}
	}},
	{"a hold", func(k *kit) func(context.Context, *store.Store) error {
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.Hold(ctx, daybook.Hold{Name: daybook.HoldClock, Since: k.now, Detail: "leapt"})
			return err
		}
	}},
	{"the begin of a freeze", func(k *kit) func(context.Context, *store.Store) error {
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.StartFreeze(ctx, daybook.Freeze{Name: "deploy", From: k.now, Until: k.now.Add(time.Hour), Actor: "ops"}, k.act("freeze start"))
			return err
		}
	}},
	{"what a freeze puts off", func(k *kit) func(context.Context, *store.Store) error {
		k.many(Job("report", allow), 5)
		k.freeze("deploy", time.Hour, "")
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.Claim(ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 4, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
			return err
		}
	}},
	{"the end of a freeze", func(k *kit) func(context.Context, *store.Store) error {
		k.many(Job("report", allow), 5)
		k.freeze("deploy", time.Hour, "")
		k.claim(4)
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.EndFreeze(ctx, "deploy", k.act("freeze end"))
			return err
		}
	}},
	{"pruning", func(k *kit) func(context.Context, *store.Store) error {
		j := Job("report", allow)
		for _, d := range []string{"2026-03-01", "2026-03-02"} {
			k.run(j, d)
			k.try(j, daybook.Outcome{Result: daybook.ResultDone, Data: []byte(`1`), Output: daybook.Output{Text: "hello"}})
		}
		return func(ctx context.Context, s *store.Store) error {
			_, err := s.Prune(ctx, daybook.Retention{Log: time.Hour}, k.now.Add(2*time.Hour), 10, false)
			return err
		}
	}},
}

var faultCases = []example{
	{"a crash between any two statements leaves nothing half applied", func(k *kit) {
		for _, w := range breakables {
			k.apart(w.name, func(k *kit) {
				f := newFaults(1)
				s := k.faulty(f)
				do := w.prepare(k)
				before := k.dump()
				for n := 1; ; n++ {
					if n > 200 {
						k.Fatalf("%s: more than 200 calls", w.name)
					}
					f.Reset()
					f.Add(faultstore.Rule{Nth: n})
					err := do(k.ctx, s)
					if f.Failed() == 0 {
						k.ok(err)
						break
					}
					after := k.dump()
					if err == nil {
						// A connection that is gone before anything was sent on it may be replaced by database/sql unseen.
						k.Fatalf("%s: call %d failed and nobody was told", w.name, n)
					}
					if daybook.CodeOf(err) != daybook.CodeUnavailable || !errors.Is(err, faultstore.ErrInjected) {
						k.Errorf("%s: call %d: error with code %s: %v", w.name, n, daybook.CodeOf(err), err)
					}
					if after != before {
						k.Fatalf("%s: a crash at call %d left\n%s", w.name, n, difference(before, after))
					}
				}
				if k.dump() == before {
					k.Errorf("%s: it wrote nothing", w.name)
				}
			})
		}
	}},
	{"a commit whose answer is lost is whole, and asking again does not do it twice", func(k *kit) {
		for _, w := range breakables {
			k.apart(w.name, func(k *kit) {
				f := newFaults(1)
				s := k.faulty(f)
				do := w.prepare(k)
				before := k.dump()
				f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, After: true})
				err := do(k.ctx, s)
				k.code(err, daybook.CodeUnavailable)
				after := k.dump()
				if after == before {
					k.Errorf("%s: nothing was written", w.name)
				}
				runs := k.number("SELECT count(*) FROM daybook_runs")
				err = do(k.ctx, s)
				if err != nil && daybook.CodeOf(err) != daybook.CodeStale && daybook.CodeOf(err) != daybook.CodeConflict {
					k.Errorf("%s: again: %v", w.name, err)
				}
				if n := k.number("SELECT count(*) FROM daybook_runs"); n != runs {
					k.Errorf("%s: again: %d runs, %d before", w.name, n, runs)
				}
				for _, once := range []string{"SELECT count(*) FROM daybook_letters WHERE state = 'open'", "SELECT count(*) FROM daybook_alerts WHERE closed_us = 0"} {
					if n := k.number("%s", once); n > 2 {
						k.Errorf("%s: again: %s is %d", w.name, once, n)
					}
				}
			})
		}
	}},
	{"a claim whose answer is lost is found when its lease is over, and tried again", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		f := newFaults(1)
		s := k.faulty(f)
		f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, After: true})
		_, err := s.Claim(k.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 1, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
		k.code(err, daybook.CodeUnavailable)
		equal(k, "claimed again", len(k.claim(1)), 0)
		k.now = k.now.Add(2 * time.Minute)
		expired, err := k.s.Expired(k.ctx, k.now, k.now.Add(time.Hour), 10)
		k.ok(err)
		equal(k, "expired", len(expired), 1)
		equal(k, "begun", expired[0].BegunAt, time.Time{})
		k.end(expired[0], j, daybook.Outcome{Result: daybook.ResultLost})
		equal(k, "state", k.try(j, daybook.Outcome{Result: daybook.ResultDone}).State, daybook.Done)
	}},
	{"no claim is handed out before it has been committed", func(k *kit) {
		k.many(Job("report", allow), 3)
		f := newFaults(1)
		s := k.faulty(f)
		f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1})
		runs, err := s.Claim(k.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 9, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
		k.code(err, daybook.CodeUnavailable)
		equal(k, "handed out", len(runs), 0)
		equal(k, "claimed", len(k.claim(9)), 3)
	}},
	{"cut off, every call says so; joined again, everything goes on", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		f := newFaults(1)
		s := k.faulty(f)
		f.Partition(true)
		_, err := s.Run(k.ctx, "report:2026-03-01")
		k.code(err, daybook.CodeUnavailable)
		_, err = s.Claim(k.ctx, daybook.Claim{Lane: daybook.LaneLive, Limit: 1, NewID: NewID}, k.now)
		k.code(err, daybook.CodeUnavailable)
		_, err = s.Counts(k.ctx)
		k.code(err, daybook.CodeUnavailable)
		f.Partition(false)
		r, err := s.Run(k.ctx, "report:2026-03-01")
		k.ok(err)
		equal(k, "state", r.State, daybook.Scheduled)
	}},
	{"a call whose context is over returns, and writes nothing", func(k *kit) {
		j := Job("report")
		k.know(j)
		r := k.template(j, "2026-03-01")
		f := newFaults(1)
		s := k.faulty(f)
		before := k.dump()
		ctx, cancel := context.WithCancel(k.ctx)
		f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(context.Context, faultstore.Call) error {
			cancel()
			return context.Canceled
		}})
		_, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI}, r, k.now)
		if !errors.Is(err, context.Canceled) {
			k.Errorf("error %v, want one that is context.Canceled", err)
		}
		if after := k.dump(); after != before {
			k.Errorf("it left\n%s", difference(before, after))
		}
		_, err = s.Run(ctx, r.Key)
		if !errors.Is(err, context.Canceled) {
			k.Errorf("a read gives %v, want one that is context.Canceled", err)
		}
	}},
	{"seeds of lost connections: every run is done once, every letter has its alert", func(k *kit) {
		seeds := uint64(20)
		switch {
		case short():
			seeds = 2
		case k.db.Name == "postgres": // where a connection costs more
			seeds = 6
		}
		for seed := range seeds {
			k.apart(fmt.Sprintf("seed %d", seed), func(k *kit) {
				k.storm(seed)
			})
		}
	}},
}

// storm drives forty runs to their end through a database that loses one call in thirty.
func (k *kit) storm(seed uint64) {
	k.Helper()
	f := newFaults(seed)
	s := k.faulty(f)
	j := Job("report", allow)
	k.know(j)
	f.Chance(0.03)
	tried := 0
	again := func(do func() error) {
		k.Helper()
		for {
			if tried++; tried > 20000 {
				k.Fatalf("seed %d: it does not end", seed)
			}
			if err := do(); err == nil {
				return
			} else if daybook.CodeOf(err) != daybook.CodeUnavailable {
				k.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	const n = 40
	for i := range n {
		r := daybook.NewRun(j, 1, Day("2026-03-01"), 1, fmt.Sprintf("s%02d", i), k.now)
		r.Due = k.now
		again(func() error {
			_, _, err := s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceEvent}, r, k.now)
			return err
		})
	}
	accepted := make(map[daybook.Key]int)
	for live := true; live; {
		var runs []*daybook.Run
		again(func() (err error) {
			runs, err = s.Claim(k.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 8, Lease: k.now.Add(time.Second), NewID: NewID}, k.now)
			return err
		})
		var ms []daybook.Transition
		for i, r := range runs {
			o := daybook.Outcome{Result: daybook.ResultDone}
			if i == 0 && r.Attempts < 2 {
				o = daybook.Outcome{Result: daybook.ResultPermanent, Error: "402"}
			}
			ms = append(ms, r.Next(o, j.Policy(), k.now))
		}
		sent := 0
		again(func() error {
			applied, err := s.Apply(k.ctx, ms)
			sent++
			for i, a := range applied {
				// Stale in the first answer would be a lost update; later it is what an answer that was lost looks like.
				if err == nil && (!a.Stale || sent > 1) {
					accepted[ms[i].Key]++
				}
			}
			return err
		})
		again(func() error {
			k.now = k.now.Add(2 * time.Second)
			expired, err := s.Expired(k.ctx, k.now, k.now.Add(time.Hour), 100)
			if err != nil || len(expired) == 0 {
				return err
			}
			var lost []daybook.Transition
			for _, r := range expired {
				m := r.Next(daybook.Outcome{Result: daybook.ResultLost}, j.Policy(), k.now)
				m.Losses = 0 // so that the storm ends in done
				m.To, m.Reason, m.Due, m.Letter, m.Alerts = daybook.Retryable, daybook.ReasonLost, k.now, nil, nil
				lost = append(lost, m)
			}
			_, err = s.Apply(k.ctx, lost)
			return err
		})
		again(func() error {
			c, err := s.Counts(k.ctx)
			live = len(c.Live) > 0
			return err
		})
	}
	f.Reset()
	equal(k, fmt.Sprintf("seed %d: runs", seed), k.number("SELECT count(*) FROM daybook_runs"), n)
	equal(k, fmt.Sprintf("seed %d: ends", seed), k.number("SELECT count(*) FROM daybook_runs WHERE state IN ('done', 'dead')"), n)
	for key, times := range accepted {
		if times != 1 {
			k.Errorf("seed %d: %s ended %d times", seed, key, times)
		}
	}
	equal(k, fmt.Sprintf("seed %d: dead runs without a letter", seed),
		k.number("SELECT count(*) FROM daybook_runs r WHERE state = 'dead' AND NOT EXISTS (SELECT 1 FROM daybook_letters l WHERE l.key = r.key AND l.state = 'open')"), 0)
	equal(k, fmt.Sprintf("seed %d: letters without an alert", seed),
		k.number("SELECT count(*) FROM daybook_letters l WHERE NOT EXISTS (SELECT 1 FROM daybook_alerts a WHERE a.key = l.key AND a.closed_us = 0)"), 0)
	equal(k, fmt.Sprintf("seed %d: counted triggers that were not recorded", seed),
		k.number("SELECT count(*) FROM daybook_runs r WHERE triggers <> (SELECT count(*) FROM daybook_triggers t WHERE t.key = r.key)"), 0)
}

// difference returns the lines of two dumps that are not in both.
func difference(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			out = append(out, "+ "+line)
		}
	}
	return strings.Join(out, "\n")
}
