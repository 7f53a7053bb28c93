package storetest

import (
	"encoding/json"
	"time"

	"github.com/daybook-run/daybook"
)

var applyCases = []example{
	{"a stale fence, a stale claim id and a second report write nothing", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		r := k.one()
		done := r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now)
		for _, change := range []func(*daybook.Transition){
			func(m *daybook.Transition) { m.Fence-- },
			func(m *daybook.Transition) { m.Fence++ },
			func(m *daybook.Transition) { m.Claim = "forged" },
			func(m *daybook.Transition) { m.Claim = "" },
			func(m *daybook.Transition) { m.From = daybook.Retryable },
			func(m *daybook.Transition) { m.From = daybook.Dead },
			func(m *daybook.Transition) { m.Asking = "nobody" },
			func(m *daybook.Transition) { m.Key = "report:2026-03-09" },
		} {
			m := done
			change(&m)
			k.stale(m)
		}
		Apply(k.ctx, k, k.s, done)
		k.stale(done)
		k.stale(r.Next(daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"}, j.Policy(), k.now))
	}},
	{"of many transitions the stale ones are told, and the others written", func(k *kit) {
		j := Job("report", allow)
		k.many(j, 30)
		var ms []daybook.Transition
		for i, r := range k.claim(30) {
			o := daybook.Outcome{Result: daybook.ResultDone}
			switch i % 3 {
			case 1:
				o = daybook.Outcome{Result: daybook.ResultPermanent, Error: "402"}
			case 2:
				o = daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"}
			}
			m := r.Next(o, j.Policy(), k.now)
			if i%10 == 0 {
				m.Claim = "forged"
			}
			ms = append(ms, m)
		}
		applied, err := k.s.Apply(k.ctx, ms)
		k.ok(err)
		for i, a := range applied {
			equal(k, "stale", a.Stale, i%10 == 0)
			if !a.Stale {
				equal(k, "due", a.Due, ms[i].Due)
			}
		}
		c, err := k.s.Counts(k.ctx)
		k.ok(err)
		equal(k, "running", c.Live[daybook.Running], 3)
		equal(k, "retryable", c.Live[daybook.Retryable], 9)
		equal(k, "letters", c.OpenLetters, 9)
		equal(k, "done", k.number("SELECT count(*) FROM daybook_runs WHERE state = 'done'"), 9)
		equal(k, "attempts", k.number("SELECT count(*) FROM daybook_attempts"), 27)
	}},
	{"nothing to apply is no fault", func(k *kit) {
		applied, err := k.s.Apply(k.ctx, nil)
		k.ok(err)
		equal(k, "applied", len(applied), 0)
	}},
	{"one key twice in a batch: the first move counts, the second finds it stale", func(k *kit) {
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		k.run(j, "2026-03-02")
		runs := k.claim(2)
		dead := runs[0].Next(daybook.Outcome{Result: daybook.ResultPermanent, Error: "402"}, j.Policy(), k.now)
		done := runs[0].Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now)
		other := runs[1].Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now)
		applied, err := k.s.Apply(k.ctx, []daybook.Transition{dead, other, done, dead})
		k.ok(err)
		for i, stale := range []bool{false, false, true, true} {
			equal(k, "stale", applied[i].Stale, stale)
		}
		equal(k, "state", k.find(runs[0].Key).State, daybook.Dead)
		equal(k, "letters", k.number("SELECT count(*) FROM daybook_letters"), 1)
	}},
	{"what ends leaves the live table, with its result, its attempt and its output", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		r := k.one()
		k.begin(r, j)
		k.now = k.now.Add(1500 * time.Microsecond)
		r = k.end(r, j, daybook.Outcome{Result: daybook.ResultDone, Detail: "exit 0", Data: json.RawMessage(`{"n":1}`),
			Counts: map[string]int64{"mails": 20}, Output: daybook.Output{Text: "hello", Omitted: 7}})
		equal(k, "live", k.number("SELECT count(*) FROM daybook_live"), 0)
		equal(k, "state", r.State, daybook.Done)
		equal(k, "started", r.StartedAt, Birth)
		equal(k, "ended", r.EndedAt, k.now)
		equal(k, "result", string(r.Result), `{"n":1}`)
		equal(k, "digest", len(r.ResultHash), 64)
		equal(k, "count", r.Counts["mails"], 20)
		attempts, err := k.s.Attempts(k.ctx, r.Key)
		k.ok(err)
		equal(k, "attempts", len(attempts), 1)
		a := attempts[0]
		equal(k, "number", a.Number, 1)
		equal(k, "node", a.Node, "n1")
		equal(k, "result of the attempt", a.Result, daybook.ResultDone)
		equal(k, "detail", a.Detail, "exit 0")
		equal(k, "ended", a.EndedAt, k.now)
		o, err := k.s.Output(k.ctx, r.Key, a.Fence)
		k.ok(err)
		equal(k, "output", o, daybook.Output{Text: "hello", Omitted: 7})
		o, err = k.s.Output(k.ctx, r.Key, 99)
		k.ok(err)
		equal(k, "output of no attempt", o, daybook.Output{})
	}},
	{"the ladder is climbed step by step, with the attempt of each failure", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Retry.Jitter = -1 })
		key := k.run(j, "2026-03-01").Key
		for i, delay := range daybook.DefaultBackoff {
			r := k.try(j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"})
			equal(k, "state", r.State, daybook.Retryable)
			equal(k, "failures", r.Failures, i+1)
			equal(k, "due", r.Due, k.now.Add(delay))
			equal(k, "error", r.LastError, "exit 1")
			equal(k, "claimed before it is due", len(k.claim(1)), 0)
			k.now = r.Due
		}
		r := k.try(j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 2"})
		equal(k, "state", r.State, daybook.Dead)
		attempts, err := k.s.Attempts(k.ctx, key)
		k.ok(err)
		equal(k, "attempts", len(attempts), 4)
		letters, err := k.s.LettersOf(k.ctx, key)
		k.ok(err)
		equal(k, "letters", len(letters), 1)
		equal(k, "error of the letter", letters[0].Error, "exit 2")
	}},
	{"a run handed back counts no attempt and keeps its place", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		r := k.one()
		r = k.end(r, j, daybook.Outcome{Result: daybook.ResultInterrupted})
		equal(k, "state", r.State, daybook.Scheduled)
		equal(k, "attempts", r.Attempts, 0)
		equal(k, "fence", r.Fence, 1)
		r = k.one()
		equal(k, "fence", r.Fence, 2)
		equal(k, "attempts", r.Attempts, 1)
		equal(k, "rows", k.number("SELECT count(*) FROM daybook_attempts"), 0)
	}},
	{"a further attempt of a done run that fails leaves the result it had", func(k *kit) {
		j := Job("report")
		key := k.run(j, "2026-03-01").Key
		first := k.try(j, daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`1`)})
		k.now = k.now.Add(time.Hour)
		reply, _ := k.ask(daybook.Ask{Key: key, Source: daybook.SourceManual, Again: true}, nil)
		equal(k, "outcome", reply.Outcome, daybook.Started)
		equal(k, "the result while it waits", string(k.find(key).Result), "1")
		r := k.try(j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"})
		equal(k, "state", r.State, daybook.Done)
		equal(k, "result", string(r.Result), "1")
		equal(k, "ended", r.EndedAt, first.EndedAt)
		k.ask(daybook.Ask{Key: key, Source: daybook.SourceManual, Again: true}, nil)
		r = k.try(j, daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`2`)})
		equal(k, "result", string(r.Result), "2")
		equal(k, "ended", r.EndedAt, k.now)
		equal(k, "attempts", r.Attempts, 3)
		equal(k, "letters", k.number("SELECT count(*) FROM daybook_letters"), 0)
	}},
	{"the finish is refused three times, then written once (H40)", func(k *kit) {
		j := Job("renew", Once, probed)
		k.run(j, "2026-03-01")
		r := k.one()
		k.begin(r, j)
		m := r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now)
		f := newFaults(1)
		s := k.faulty(f)
		f.Partition(true)
		for range 3 {
			_, err := s.Apply(k.ctx, []daybook.Transition{m})
			k.code(err, daybook.CodeUnavailable)
		}
		f.Partition(false)
		Apply(k.ctx, k, s, m)
		k.stale(m)
		equal(k, "effect", k.find(r.Key).Effect.State, daybook.EffectDone)
	}},
	{"a late report under the same fence settles an effect that rescue declared unknown (H40)", func(k *kit) {
		j := Job("renew", Once)
		k.run(j, "2026-03-01")
		held := k.one()
		k.begin(held, j)
		lost := k.end(held, j, daybook.Outcome{Result: daybook.ResultLost})
		equal(k, "state", lost.State, daybook.Dead)
		equal(k, "kind", lost.Letter.Kind, daybook.LetterUnknown)
		k.stale(held.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now)) // the report finds another state
		late, ok := lost.Late(daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`"ch_1"`)}, j.Policy(), k.now)
		equal(k, "taken", ok, true)
		Apply(k.ctx, k, k.s, late)
		r := k.find(held.Key)
		equal(k, "state", r.State, daybook.Done)
		equal(k, "result", string(r.Result), `"ch_1"`)
		equal(k, "effect", r.Effect.State, daybook.EffectDone)
		equal(k, "letter", r.Letter.State, daybook.LetterSettled)
		attempts, err := k.s.Attempts(k.ctx, r.Key)
		k.ok(err)
		equal(k, "attempts", len(attempts), 1)
		equal(k, "as it was declared", attempts[0].Result, daybook.ResultLost)
		equal(k, "as it was reported", attempts[0].LateResult, daybook.ResultDone)
		equal(k, "taken", attempts[0].LateTaken, true)
		alerts, err := k.s.Alerts(k.ctx, true, 0)
		k.ok(err)
		equal(k, "open alerts", len(alerts), 0)
	}},
	{"a report that is refused is kept as evidence beside the attempt, and changes nothing else", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		held := k.one()
		k.end(held, j, daybook.Outcome{Result: daybook.ResultLost})
		k.one() // another has it
		report := daybook.Attempt{Key: held.Key, Fence: held.Fence, Number: 1, Claim: held.Claim, Node: "n1",
			LateResult: daybook.ResultDone, LateError: "too late", LateAt: k.now.Add(time.Second)}
		k.ok(k.s.Evidence(k.ctx, report, nil))
		k.ok(k.s.Evidence(k.ctx, report, nil))
		attempts, err := k.s.Attempts(k.ctx, held.Key)
		k.ok(err)
		equal(k, "attempts", len(attempts), 1)
		a := attempts[0]
		equal(k, "declared", a.Result, daybook.ResultLost)
		equal(k, "reported", a.LateResult, daybook.ResultDone)
		equal(k, "error", a.LateError, "too late")
		equal(k, "taken", a.LateTaken, false)
		equal(k, "state", k.find(held.Key).State, daybook.Running)
	}},
	{"evidence that comes before the attempt's own row does not hide it", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		r := k.one()
		k.ok(k.s.Evidence(k.ctx, daybook.Attempt{Key: r.Key, Fence: r.Fence, Claim: "forged", LateResult: daybook.ResultDone, LateAt: k.now}, nil))
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"})
		attempts, err := k.s.Attempts(k.ctx, r.Key)
		k.ok(err)
		equal(k, "attempts", len(attempts), 1)
		equal(k, "result", attempts[0].Result, daybook.ResultUnclear)
		equal(k, "error", attempts[0].Error, "exit 1")
		equal(k, "claim", attempts[0].Claim, r.Claim)
		equal(k, "evidence", attempts[0].LateResult, daybook.ResultDone)
	}},
	{"what the far side said is kept with what is decided by it, and not without", func(k *kit) {
		j := Job("renew", Once, probed)
		k.run(j, "2026-03-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultLost})
		q := k.one()
		m := q.Settle([]daybook.Finding{{Answer: daybook.No, WireKey: q.WireKey() + "@2"}, {Answer: daybook.Yes, WireKey: q.WireKey(), Data: json.RawMessage(`{"id":1}`)}},
			j.Policy(), k.now, k.now.Add(time.Second))
		late := m
		late.Asking = "another asker"
		k.stale(late)
		equal(k, "rows of what was too late", k.number("SELECT count(*) FROM daybook_attempts WHERE question > 0"), 0)
		Apply(k.ctx, k, k.s, m)
		attempts, err := k.s.Attempts(k.ctx, q.Key)
		k.ok(err)
		equal(k, "rows", len(attempts), 3)
		for i, want := range []string{"no " + q.WireKey() + "@2", "yes " + q.WireKey()} {
			a := attempts[i+1]
			equal(k, "answer", string(a.Result)+" "+a.WireKey, want)
			equal(k, "asked", a.Probe && a.ClaimedAt.Equal(k.now.Add(time.Duration(i)*time.Microsecond)) && a.EndedAt.Equal(k.now.Add(time.Second)), true)
		}
		equal(k, "data", string(attempts[2].Data), `{"id":1}`)
	}},
	{"questions and their answers are listed after the attempt they ask about", func(k *kit) {
		j := Job("renew", Once, probed)
		k.run(j, "2026-03-01")
		r := k.one()
		k.begin(r, j)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultLost})
		for i := range 2 {
			at := k.now.Add(time.Duration(i) * time.Minute)
			k.ok(k.s.Evidence(k.ctx, daybook.Attempt{Key: r.Key, Fence: r.Fence, Number: 1, Probe: true, WireKey: string(r.Key), ClaimedAt: at, EndedAt: at,
				Result: "no", Data: json.RawMessage(`{}`)}, nil))
		}
		attempts, err := k.s.Attempts(k.ctx, r.Key)
		k.ok(err)
		equal(k, "rows", len(attempts), 3)
		for i, probe := range []bool{false, true, true} {
			equal(k, "probe", attempts[i].Probe, probe)
		}
	}},
}
