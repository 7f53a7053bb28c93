package storetest

import (
	"time"

	"github.com/daybook-run/daybook"
)

// Cases in which money was taken, or may have been, and somebody or something wants to go on as if it had not.

// tried lets the work of a claimed run come to an effect that begins, and end it.
func (k *kit) tried(r *daybook.Run, step string, result daybook.Result, says ...daybook.StepPolicy) *daybook.Run {
	k.Helper()
	r, e, err := k.come(r, step, says...)
	k.ok(err)
	equal(k, step+" begins", e.State, daybook.EffectBegun)
	e = r.StepEnded(e, daybook.Outcome{Result: result, Error: "402 card declined"}, k.now)
	k.ok(k.s.MarkStep(k.ctx, r, e, daybook.Learned{}))
	r = r.With(e)
	r.Marks++
	return r
}

var chargedCases = []example{
	{"whoever is charged is not cancelled: by himself, or with his window", func(k *kit) {
		j := subjectsJob(Once, Steps, func(j *daybook.Job) { j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1} })
		p := k.listed(j, "2026-03-01", 8)
		away := daybook.Outcome{Result: daybook.ResultNotDone, Error: "503 from mail"}
		k.look(j)
		for i, r := range k.claim(10) { // the others are declined
			if i < 4 {
				r = k.tried(r, "charge", daybook.ResultDone)
			}
			k.end(r, j, away)
		}
		k.look(j)
		lone := k.find(p.Key + "/s000")
		equal(k, "he waits", lone.State, daybook.Retryable)
		m, err := lone.Cancel("ops", "because", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		k.now = k.now.Add(time.Minute)
		for range 3 {
			k.look(j)
			for _, r := range k.claim(10) {
				k.end(r, j, away)
			}
			k.now = k.now.Add(time.Minute)
		}
		k.look(j)
		equal(k, "the breaker", k.find(p.Key).State, daybook.Dead)
		equal(k, "not let go by it", k.find(lone.Key).Reason, daybook.ReasonCancelled)
		m, err = k.find(p.Key).Dismiss("ops", "the rest is given up", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		k.look(j)
		charged := 0
		for i := range 8 {
			r := k.find(p.Key + daybook.Key("/s00"+string(rune('0'+i))))
			e := r.StepRecord("charge")
			if e == nil || e.State != daybook.EffectDone {
				equal(k, string(r.Key)+" letter open", r.State == daybook.Dead && r.Reason == daybook.ReasonCancelled, false)
				continue
			}
			charged++
			equal(k, string(r.Key)+" state", r.State, daybook.Dead)
			equal(k, string(r.Key)+" letter", r.Letter.State, daybook.LetterOpen)
			_, err := r.Undo("ops", "because", k.now)
			k.ok(err)
		}
		equal(k, "charged", charged, 4)
		equal(k, "who ended him", k.find(lone.Key).Letter.Error, "cancelled by ops after charge happened")
	}},
	{"a charge that was refused is not sent again by the breaker, whatever its attempt said", func(k *kit) {
		j := subjectsJob(Once, Steps, func(j *daybook.Job) { j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1} })
		p := k.listed(j, "2026-03-01", 5)
		k.look(j)
		for _, r := range k.claim(10) { // each fails in his own way, before he comes to the charge
			k.end(r, j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "no route to " + r.Subject})
		}
		k.look(j)
		k.now = k.now.Add(time.Minute)
		letters := 0
		for range 4 { // one by one where the breaker stands, until all have their letters
			k.look(j)
			for _, r := range k.claim(10) {
				if r.StepRecord("charge") == nil {
					r = k.tried(r, "charge", daybook.ResultPermanent)
				}
				k.end(r, j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1: card declined"})
				letters++
			}
			k.look(j)
			k.now = k.now.Add(time.Minute)
		}
		if letters == 0 {
			k.Fatal("nobody is declined")
		}
		for i := range 5 {
			r := k.find(p.Key + daybook.Key("/s00"+string(rune('0'+i))))
			if e := r.StepRecord("charge"); e != nil && (e.State != daybook.EffectRefused || e.Generation != 1 || r.State != daybook.Dead || r.Letter.State != daybook.LetterOpen) {
				k.Errorf("%s: %s, charge %s under %s, and no person replayed it", r.Key, r.State, e.State, e.WireKey())
			}
		}
	}},
	{"that a charge happened twice is told when its first try reports late", func(k *kit) {
		j := Job("renew", Once, func(j *daybook.Job) { j.HasProbe = true })
		k.run(j, "2026-03-01")
		first := k.one()
		k.begin(first, j)
		key := first.WireKey()
		k.end(first, j, daybook.Outcome{Result: daybook.ResultLost})
		k.now = k.now.Add(time.Hour)
		q := k.one()
		Apply(k.ctx, k, k.s, q.Settle([]daybook.Finding{{Answer: daybook.No, WireKey: key}}, j.Policy(), k.now, k.now))
		k.now = k.now.Add(time.Hour)
		second := k.one()
		equal(k, "before it begins", k.find(first.Key).DoneTwice(daybook.StepRun, key, k.now), (*daybook.Twice)(nil))
		k.begin(second, j)
		k.end(second, j, done)
		twice := k.find(first.Key).DoneTwice(daybook.StepRun, key, k.now)
		equal(k, "of its own wire key", k.find(first.Key).DoneTwice(daybook.StepRun, second.WireKey(), k.now), (*daybook.Twice)(nil))
		k.ok(k.s.Evidence(k.ctx, daybook.Attempt{Key: first.Key, Fence: first.Fence, Claim: first.Claim, LateResult: daybook.ResultDone, LateAt: k.now}, twice))
		alerts, err := k.s.Alerts(k.ctx, true, 10)
		k.ok(err)
		equal(k, "alerts", len(alerts), 1)
		equal(k, "what an undo must name", k.find(first.Key).Effect.Twice, key)
	}},
	{"a first try that reports late counts when nothing has begun since", func(k *kit) {
		j := Job("renew", Once, func(j *daybook.Job) { j.HasProbe = true })
		k.run(j, "2026-03-01")
		first := k.one()
		k.begin(first, j)
		key := first.WireKey()
		k.end(first, j, daybook.Outcome{Result: daybook.ResultLost})
		k.now = k.now.Add(time.Hour)
		Apply(k.ctx, k, k.s, k.one().Settle([]daybook.Finding{{Answer: daybook.No, WireKey: key}}, j.Policy(), k.now, k.now))
		k.now = k.now.Add(time.Hour)
		second := k.one() // claimed, and handed back
		_, ok := k.find(first.Key).LateBefore(first.Fence, key, done, k.now)
		equal(k, "while it is claimed", ok, false)
		Apply(k.ctx, k, k.s, second.Next(daybook.Outcome{Result: daybook.ResultInterrupted}, j.Policy(), k.now))
		for _, other := range []daybook.Outcome{{Result: daybook.ResultNotDone}, {Result: daybook.ResultUnknown}} {
			_, ok = k.find(first.Key).LateBefore(first.Fence, key, other, k.now)
			equal(k, string(other.Result), ok, false)
		}
		_, ok = k.find(first.Key).LateBefore(first.Fence, second.WireKey(), done, k.now)
		equal(k, "under a wire key that was never tried", ok, false)
		m, ok := k.find(first.Key).LateBefore(first.Fence, key, done, k.now)
		equal(k, "taken", ok, true)
		Apply(k.ctx, k, k.s, m)
		got := k.find(first.Key)
		equal(k, "state", got.State, daybook.Done)
		equal(k, "wire key", got.Effect.WireKey(), key)
		tries, err := k.s.Attempts(k.ctx, first.Key)
		k.ok(err)
		equal(k, "its row", tries[0].LateTaken, true)
	}},
	{"asked to end while a charge is under way, which then happened: a dead letter", func(k *kit) {
		j := Job("renew", Once, Steps, func(j *daybook.Job) { j.HasProbe = true })
		k.run(j, "2026-03-01")
		r, e, err := k.come(k.one(), "charge")
		k.ok(err)
		k.ok(k.s.CancelRunning(k.ctx, r.Key, r.Fence, k.act("cancel")))
		k.end(k.find(r.Key), j, daybook.Outcome{Result: daybook.ResultLost})
		q := k.one()
		Apply(k.ctx, k, k.s, q.SettleSteps(map[string][]daybook.Finding{"charge": {{Answer: daybook.Yes, WireKey: e.WireKey()}}}, j.Policy(), k.now, k.now))
		got := k.find(r.Key)
		equal(k, "state", got.State, daybook.Dead)
		equal(k, "reason", got.Reason, daybook.ReasonCancelled)
		equal(k, "letter", got.Letter.Kind, daybook.LetterFailed)
		alerts, err := k.s.Alerts(k.ctx, true, 10)
		k.ok(err)
		equal(k, "alerts", len(alerts), 1)
	}},
}
