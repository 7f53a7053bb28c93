package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
)

// Steps makes a job mark its own steps.
func Steps(j *daybook.Job) { j.Steps = true }

// come lets the work of a claimed run come to an effect, and marks what must be marked.
func (k *kit) come(r *daybook.Run, step string, says ...daybook.StepPolicy) (*daybook.Run, *daybook.StepRecord, error) {
	ask := daybook.StepAsk{Step: step}
	if len(says) > 0 {
		ask.Says = says[0]
	}
	a := r.ComeTo(ask, daybook.Policy{}, k.now)
	if !a.Write {
		return r, a.Record, nil
	}
	err := k.s.MarkStep(k.ctx, r, a.Record, daybook.Learned{})
	if err != nil {
		return r, a.Record, err
	}
	r = r.With(a.Record)
	r.Marks++
	return r, a.Record, nil
}

var stepCases = []example{
	{"a step is kept whole, and in the order in which it began", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r := k.one()
		var err error
		for _, name := range []string{"zeta", "alpha"} {
			var e *daybook.StepRecord
			r, e, err = k.come(r, name, daybook.StepPolicy{Remembers: daybook.Forever, Settles: time.Hour, Asks: name == "zeta", Undoes: name == "alpha"})
			k.ok(err)
			done := r.StepEnded(e, daybook.Outcome{Result: daybook.ResultDone, Data: []byte(`{"id":"ch_1"}`)}, k.now.Add(time.Second))
			k.ok(k.s.MarkStep(k.ctx, r, done, daybook.Learned{}))
			r = r.With(done)
			r.Marks++
		}
		got := k.find(r.Key)
		equal(k, "steps", len(got.Records), 2)
		equal(k, "marks", got.Marks, r.Marks)
		for i, e := range got.Records {
			if got, want := stepText(e), stepText(r.Records[i]); got != want {
				k.Errorf("step %d: got %s, want %s", i, got, want)
			}
		}
		equal(k, "claimed with its steps", len(k.claimedAgain(j, r).Records), 2)
	}},
	{"that a step was not let begin is known to whoever ends the attempt, and to no later one", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r := k.one()
		k.ok(k.s.Deny(k.ctx, r, "effect charge was done in this very attempt"))
		equal(k, "with an old picture", daybook.CodeOf(k.s.Deny(k.ctx, r, "another")), daybook.CodeStale)
		k.stale(r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now))
		got := k.find(r.Key)
		equal(k, "denied", got.Denied, "effect charge was done in this very attempt")
		k.end(got, j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 125"})
		k.now = k.find(r.Key).Due
		again := k.one()
		equal(k, "denied before", again.Denied, "")
		equal(k, "of another attempt", daybook.CodeOf(k.s.Deny(k.ctx, got, "late")), daybook.CodeStale)
	}},
	{"that a step was not let begin is known of a dead run too, until it is claimed again", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r := k.one()
		for range daybook.MaxLosses - 1 {
			k.end(r, j, daybook.Outcome{Result: daybook.ResultLost})
			r = k.one()
		}
		k.ok(k.s.Deny(k.ctx, r, "effect charge is new"))
		k.end(k.find(r.Key), j, daybook.Outcome{Result: daybook.ResultLost})
		got := k.find(r.Key)
		equal(k, "state", got.State, daybook.Dead)
		equal(k, "denied", got.Denied, "effect charge is new")
		if m, ok := got.Late(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now); ok {
			k.Errorf("it says done, late, and is %s", m.To)
		}
		m, err := got.Replay("ops", "because", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		equal(k, "denied, until it is claimed", k.find(r.Key).Denied, "effect charge is new")
		equal(k, "denied before", k.one().Denied, "")
		k.end(k.find(r.Key), j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "402"})
		equal(k, "denied in the attempt before", k.find(r.Key).Denied, "")
	}},
	{"once a person asked for the end no step begins, by whatever picture; what ended is kept", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r, charge, err := k.come(k.one(), "charge")
		k.ok(err)
		k.ok(k.s.CancelRunning(k.ctx, r.Key, r.Fence, k.act("cancel")))
		done := daybook.Outcome{Result: daybook.ResultDone}
		tx, err := k.db.Open(k).Write.BeginTx(k.ctx, nil)
		k.ok(err)
		extend := r.ComeTo(daybook.StepAsk{Step: "extend", Plain: true}, daybook.Policy{}, k.now).Record
		k.code(k.s.MarkStepTx(k.ctx, tx, r, r.StepEnded(extend, done, k.now)), daybook.CodeStale)
		k.ok(tx.Rollback())
		k.ok(k.s.MarkStep(k.ctx, r, r.StepEnded(charge, done, k.now), daybook.Learned{}))
		r.Marks++
		_, _, err = k.come(r.With(r.StepEnded(charge, done, k.now)), "mail")
		k.code(err, daybook.CodeStale)
		got := k.find(r.Key)
		equal(k, "steps", len(got.Records), 1)
		equal(k, "charge", got.Records[0].State, daybook.EffectDone)
		a := got.ComeTo(daybook.StepAsk{Step: "mail"}, daybook.Policy{}, k.now)
		equal(k, "denied", a.Denied, true)
	}},
	{"that the work does without an effect is kept with it", func(k *kit) {
		k.run(Job("renew", Once, Steps), "2026-03-01")
		r, _, err := k.come(k.one(), "charge", daybook.StepPolicy{Optional: true})
		k.ok(err)
		equal(k, "optional", k.find(r.Key).StepRecord("charge").Says.Optional, true)
	}},
	{"what the far side said about a step is kept with the step, and not without", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r, e, err := k.come(k.one(), "charge", daybook.StepPolicy{Asks: true})
		k.ok(err)
		open := r.StepEnded(e, daybook.Outcome{Result: daybook.ResultUnknown}, k.now)
		k.ok(k.s.MarkStep(k.ctx, r, open, daybook.Learned{}))
		before := r
		r = r.With(open)
		r.Marks++
		next, learned := r.StepFound(open, []daybook.Finding{{Answer: daybook.Yes, WireKey: open.WireKey()}}, j.Policy(), k.now, k.now)
		equal(k, "with an old picture", daybook.CodeOf(k.s.MarkStep(k.ctx, before, next, learned)), daybook.CodeStale)
		equal(k, "rows", k.number("SELECT count(*) FROM daybook_attempts WHERE question > 0"), 0)
		k.ok(k.s.MarkStep(k.ctx, r, next, learned))
		equal(k, "rows", k.number("SELECT count(*) FROM daybook_attempts WHERE question > 0 AND result = 'yes'"), 1)
		equal(k, "charge", k.find(r.Key).StepRecord("charge").State, daybook.EffectDone)
	}},
	{"a pass over expired leases with an old picture changes no step that ended, and no attempt that marked one (H39)", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r, e, err := k.come(k.one(), "charge")
		k.ok(err)
		pass := func() daybook.Transition {
			expired, err := k.s.Expired(k.ctx, k.now.Add(time.Minute), k.now.Add(time.Hour), 10)
			k.ok(err)
			return expired[0].Next(daybook.Outcome{Result: daybook.ResultLost}, j.Policy(), k.now.Add(time.Minute))
		}
		before := pass() // it sees the effect begun
		done := r.StepEnded(e, daybook.Outcome{Result: daybook.ResultDone}, k.now)
		k.ok(k.s.MarkStep(k.ctx, r, done, daybook.Learned{}))
		k.stale(before)
		equal(k, "state", k.find(r.Key).State, daybook.Running)
		equal(k, "charge", k.find(r.Key).StepRecord("charge").State, daybook.EffectDone)
		before = pass() // and now the attempt under way
		k.end(k.find(r.Key), j, daybook.Outcome{Result: daybook.ResultDone})
		k.stale(before)
		equal(k, "state", k.find(r.Key).State, daybook.Done)
		equal(k, "charge", k.find(r.Key).StepRecord("charge").State, daybook.EffectDone)
	}},
	{"the undo of a whole attempt is a step of the undo", func(k *kit) {
		j := Job("renew", Once)
		r := k.run(j, "2026-03-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultDone})
		m, err := k.find(r.Key).Undo("ops", "wrong price", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		u, _, err := k.come(k.one(), daybook.StepRun)
		k.ok(err)
		equal(k, "key", u.Key, r.Key.Undo())
		got := k.find(u.Key)
		equal(k, "begun", len(got.OpenSteps()), 1)
		asks := daybook.Policy{Asks: true, AsksUndo: true}
		Apply(k.ctx, k, k.s, got.Next(daybook.Outcome{Result: daybook.ResultLost}, asks, k.now))
		got = k.find(u.Key)
		equal(k, "state", got.State, daybook.Retryable)
		equal(k, "then", got.Reason, daybook.ReasonSettling) // by a question: no try before
		q := k.one()
		equal(k, "asked", q.OpenSteps()[0].WireKey(), string(r.Key)+"#run~undo")
	}},
	{"only who holds the run marks a step of it", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r := k.one()
		for _, other := range []func(*daybook.Run){
			func(o *daybook.Run) { o.Fence++ },
			func(o *daybook.Run) { o.Fence-- },
			func(o *daybook.Run) { o.Claim = "another" },
			func(o *daybook.Run) { o.Marks++ },
			func(o *daybook.Run) { o.Key = "renew:2026-03-02" },
		} {
			c := *r
			other(&c)
			before := k.dump()
			_, _, err := k.come(&c, "charge")
			k.code(err, daybook.CodeStale)
			if after := k.dump(); after != before {
				k.Errorf("a stale mark left\n%s", difference(before, after))
			}
		}
		Apply(k.ctx, k, k.s, r.Next(daybook.Outcome{Result: daybook.ResultNotDone}, j.Policy(), k.now))
		_, _, err := k.come(r, "charge")
		k.code(err, daybook.CodeStale)
	}},
	{"sixteen that come to one step at once: one begins it", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r := k.one()
		var began, stale atomic.Int64
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				_, _, err := k.come(r, "charge")
				switch daybook.CodeOf(err) {
				case "":
					began.Add(1)
				case daybook.CodeStale:
					stale.Add(1)
				default:
					k.Error(err)
				}
			})
		}
		all.Wait()
		equal(k, "began", began.Load(), 1)
		equal(k, "stale", stale.Load(), 15)
		equal(k, "tries", k.find(r.Key).StepRecord("charge").Tries, 1)
	}},
	{"an end that did not see a step is stale, and one that did settles nothing", func(k *kit) {
		for _, lost := range []bool{false, true} {
			j := Job("renew", Once, Steps)
			key := k.run(j, map[bool]string{false: "2026-03-01", true: "2026-03-02"}[lost]).Key
			r := k.one()
			seen := k.find(key)
			_, _, err := k.come(r, "charge")
			k.ok(err)
			o := daybook.Outcome{Result: daybook.ResultDone}
			if lost {
				o.Result = daybook.ResultLost
			}
			k.stale(seen.Next(o, j.Policy(), k.now))
			Apply(k.ctx, k, k.s, k.find(key).Next(o, j.Policy(), k.now))
			got := k.find(key)
			equal(k, "state", got.State, daybook.Dead)
			equal(k, "letter", got.Letter.Kind, daybook.LetterUnknown)
			equal(k, "step", got.StepRecord("charge").State, daybook.EffectUnknown)
			m, err := got.ResolveStep("charge", daybook.AsDone, daybook.Policy{}, "ops", "looked", k.now)
			k.ok(err)
			Apply(k.ctx, k, k.s, m)
			k.stale(m) // the letter, and the steps, stand otherwise now
			equal(k, "state", k.find(key).State, daybook.Retryable)
			r = k.one()
			equal(k, "step of the next attempt", r.StepRecord("charge").State, daybook.EffectDone)
			Apply(k.ctx, k, k.s, r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now))
			equal(k, "state", k.find(key).State, daybook.Done)
		}
	}},
	{"a late end of a step settles it while nobody claimed the run again", func(k *kit) {
		j := Job("renew", Once, Steps)
		key := k.run(j, "2026-03-01").Key
		r, _, err := k.come(k.one(), "charge")
		k.ok(err)
		Apply(k.ctx, k, k.s, r.Next(daybook.Outcome{Result: daybook.ResultLost}, j.Policy(), k.now))
		m, ok := k.find(key).LateStep("charge", daybook.Outcome{Result: daybook.ResultDone, Data: []byte(`1`)}, j.Policy(), k.now)
		equal(k, "taken", ok, true)
		Apply(k.ctx, k, k.s, m)
		got := k.find(key)
		equal(k, "state", got.State, daybook.Retryable)
		equal(k, "step", got.StepRecord("charge").State, daybook.EffectDone)
		equal(k, "open letters", k.number("SELECT COUNT(*) FROM daybook_letters WHERE state = 'open'"), 0)
		_, ok = got.LateStep("charge", daybook.Outcome{Result: daybook.ResultPermanent}, j.Policy(), k.now)
		equal(k, "taken twice", ok, false)
	}},
	{"a step in the caller's transaction is there with it, or not at all", func(k *kit) {
		j := Job("renew", Once, Steps)
		k.run(j, "2026-03-01")
		r := k.one()
		write := k.db.Open(k).Write
		_, err := write.ExecContext(k.ctx, `CREATE TABLE paid (key TEXT NOT NULL)`)
		k.ok(err)
		ask := daybook.StepAsk{Step: "extend", Plain: true}
		for _, commit := range []bool{false, true} {
			tx, err := write.BeginTx(k.ctx, nil)
			k.ok(err)
			e := r.StepEnded(r.ComeTo(ask, daybook.Policy{}, k.now).Record, daybook.Outcome{Result: daybook.ResultDone}, k.now)
			k.ok(k.s.MarkStepTx(k.ctx, tx, r, e))
			_, err = tx.ExecContext(k.ctx, `INSERT INTO paid (key) VALUES ('`+string(r.Key)+`')`)
			k.ok(err)
			if commit {
				k.ok(tx.Commit())
			} else {
				k.ok(tx.Rollback())
			}
			want := int64(0)
			if commit {
				want = 1
			}
			equal(k, "rows", k.number("SELECT COUNT(*) FROM paid"), want)
			equal(k, "steps", k.number("SELECT COUNT(*) FROM daybook_steps WHERE step = 'extend' AND state = 'done'"), want)
			equal(k, "marks", k.find(r.Key).Marks, want)
		}
		tx, err := write.BeginTx(k.ctx, nil)
		k.ok(err)
		stale := *r
		stale.Fence++
		k.code(k.s.MarkStepTx(k.ctx, tx, &stale, r.StepEnded(r.ComeTo(ask, daybook.Policy{}, k.now).Record, daybook.Outcome{Result: daybook.ResultDone}, k.now)), daybook.CodeStale)
		k.ok(tx.Rollback())
	}},
}

// stepText is a record in words, with its instants as they are stored.
func stepText(e *daybook.StepRecord) string {
	c := *e
	c.FirstAt, c.EndedAt, c.Data = time.Time{}, time.Time{}, nil
	return fmt.Sprintf("%+v first %d ended %d data %s", c, e.FirstAt.UnixMicro(), e.EndedAt.UnixMicro(), e.Data)
}

// claimedAgain hands a run back and claims it again.
func (k *kit) claimedAgain(j *daybook.Job, r *daybook.Run) *daybook.Run {
	k.Helper()
	Apply(k.ctx, k, k.s, r.Next(daybook.Outcome{Result: daybook.ResultInterrupted}, j.Policy(), k.now))
	return k.one()
}
