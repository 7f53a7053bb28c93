package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

var leaseCases = []example{
	{"a lease is renewed while the node holds the run, and found when it is over", func(k *kit) {
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		k.run(j, "2026-03-02")
		runs := k.claim(9)
		ahead := k.now.Add(time.Hour)
		notices, err := k.s.Renew(k.ctx, runs[:1], k.now.Add(time.Minute), k.now)
		k.ok(err)
		equal(k, "notices", len(notices), 0)
		expired, err := k.s.Expired(k.ctx, k.now.Add(30*time.Second), ahead, 10)
		k.ok(err)
		equal(k, "expired at the very end of the lease", len(expired), 0)
		expired, err = k.s.Expired(k.ctx, k.now.Add(31*time.Second), ahead, 10)
		k.ok(err)
		if !slices.Equal(keys(expired), []daybook.Key{runs[1].Key}) {
			k.Errorf("expired %v, want %s", keys(expired), runs[1].Key)
		}
		expired, err = k.s.Expired(k.ctx, k.now.Add(2*time.Minute), ahead, 1)
		k.ok(err)
		equal(k, "expired, one at most", len(expired), 1)
	}},
	{"a lease that lies too far ahead is over: a clock was wrong", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		k.claim(1, func(c *daybook.Claim) { c.Lease = k.now.AddDate(1, 0, 0) })
		expired, err := k.s.Expired(k.ctx, k.now, k.now.Add(time.Hour), 10)
		k.ok(err)
		equal(k, "expired", len(expired), 1)
	}},
	{"a healthy attempt of ten minutes keeps its lease of thirty seconds (H41)", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		r := k.one()
		for range 40 {
			k.now = k.now.Add(15 * time.Second)
			notices, err := k.s.Renew(k.ctx, []*daybook.Run{r}, k.now.Add(30*time.Second), k.now)
			k.ok(err)
			equal(k, "notices", len(notices), 0)
			expired, err := k.s.Expired(k.ctx, k.now, k.now.Add(time.Hour), 10)
			k.ok(err)
			equal(k, "expired", len(expired), 0)
			equal(k, "claimed beside", len(k.claim(9)), 0)
		}
		equal(k, "attempts", k.end(r, j, daybook.Outcome{Result: daybook.ResultDone}).Attempts, 1)
	}},
	{"a rescue that stalled takes nothing whose lease was renewed, or whose work was marked begun, since it looked", func(k *kit) {
		for _, c := range []struct {
			job   *daybook.Job
			since func(r *daybook.Run, j *daybook.Job)
		}{
			{Job("report"), func(r *daybook.Run, _ *daybook.Job) {
				_, err := k.s.Renew(k.ctx, []*daybook.Run{r}, k.now.Add(time.Hour), k.now)
				k.ok(err)
			}},
			{Job("renew", Once), func(r *daybook.Run, j *daybook.Job) {
				e, _ := r.Begin(j.Policy(), k.now)
				k.ok(k.s.Begin(k.ctx, r, e, k.now))
			}},
		} {
			k.run(c.job, "2026-03-01")
			r := k.one()
			seen := k.find(r.Key)
			c.since(r, c.job)
			applied, err := k.s.Apply(k.ctx, []daybook.Transition{seen.Next(daybook.Outcome{Result: daybook.ResultLost}, c.job.Policy(), k.now)})
			k.ok(err)
			equal(k, c.job.Name+" stale", applied[0].Stale, true)
			equal(k, c.job.Name, k.find(r.Key).State, daybook.Running)
		}
	}},
	{"an end that was decided before a person asked for it is decided again", func(k *kit) {
		for _, result := range []daybook.Result{daybook.ResultNotDone, daybook.ResultDone, daybook.ResultLost} {
			j := Job("report-" + strings.ReplaceAll(string(result), "_", "-"))
			k.run(j, "2026-03-01")
			r := k.one()
			before := k.find(r.Key)
			k.ok(k.s.CancelRunning(k.ctx, r.Key, r.Fence, k.act("cancel")))
			k.stale(before.Next(daybook.Outcome{Result: result}, j.Policy(), k.now))
			want := daybook.Cancelled
			if result == daybook.ResultDone {
				want = daybook.Done
			}
			equal(k, string(result), k.end(k.find(r.Key), j, daybook.Outcome{Result: result}).State, want)
		}
	}},
	{"a renewal tells what is lost: rescued, claimed by another, or ended", func(k *kit) {
		j := Job("report", allow)
		for _, d := range []string{"2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"} {
			k.run(j, d)
		}
		runs := k.claim(9)
		byKey := make(map[daybook.Key]*daybook.Run)
		for _, r := range runs {
			byKey[r.Key] = r
		}
		k.end(byKey["report:2026-03-01"], j, daybook.Outcome{Result: daybook.ResultLost}) // rescued: due at once
		k.end(byKey["report:2026-03-02"], j, daybook.Outcome{Result: daybook.ResultDone})
		k.end(byKey["report:2026-03-03"], j, daybook.Outcome{Result: daybook.ResultLost})
		k.claim(1, func(c *daybook.Claim) { c.Key, c.Node = "report:2026-03-03", "n2" }) // rescued and claimed again
		notices, err := k.s.Renew(k.ctx, runs, k.now.Add(time.Minute), k.now)
		k.ok(err)
		var lost []daybook.Key
		for _, n := range notices {
			if n.Lost {
				lost = append(lost, n.Key)
				equal(k, "fence of the notice", n.Fence, byKey[n.Key].Fence)
			}
		}
		slices.Sort(lost)
		if want := []daybook.Key{"report:2026-03-01", "report:2026-03-02", "report:2026-03-03"}; !slices.Equal(lost, want) {
			k.Errorf("lost %v, want %v", lost, want)
		}
		equal(k, "lease of the thief", k.find("report:2026-03-03").Lease, k.now.Add(30*time.Second))
	}},
	{"a renewal skips rows that another transaction has locked, and does not call them lost", func(k *kit) {
		if k.db.Name != "postgres" {
			return // one writer at a time: it waits instead
		}
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		k.run(j, "2026-03-02")
		runs := k.claim(9)
		t, err := k.raw.BeginTx(k.ctx, nil)
		k.ok(err)
		defer func() { _ = t.Rollback() }()
		_, err = t.ExecContext(k.ctx, "SELECT key FROM daybook_live WHERE key = 'report:2026-03-01' FOR UPDATE")
		k.ok(err)
		notices, err := k.s.Renew(k.ctx, runs, k.now.Add(time.Minute), k.now) // comes back although the lock is held
		k.ok(err)
		equal(k, "notices", len(notices), 0)
		k.ok(t.Rollback())
		equal(k, "lease of what was locked", k.find("report:2026-03-01").Lease, k.now.Add(30*time.Second))
		equal(k, "lease of the other", k.find("report:2026-03-02").Lease, k.now.Add(time.Minute))
	}},
	{"the holder is told that a person asked for the end", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		r := k.one()
		k.code(k.s.CancelRunning(k.ctx, r.Key, r.Fence+1, k.act("cancel")), daybook.CodeStale)
		k.ok(k.s.CancelRunning(k.ctx, r.Key, r.Fence, k.act("cancel")))
		notices, err := k.s.Renew(k.ctx, []*daybook.Run{r}, k.now.Add(time.Minute), k.now)
		k.ok(err)
		if len(notices) != 1 || notices[0].CancelledBy != "ops" || notices[0].Lost {
			k.Errorf("notices %+v", notices)
		}
		equal(k, "shown", k.find(r.Key).CancelledBy, "ops")
		acts, err := k.s.Activities(k.ctx, time.Time{}, "ops", 0)
		k.ok(err)
		equal(k, "activities", len(acts), 1)
		r = k.find(r.Key)
		r = k.end(r, j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "signal terminated"})
		equal(k, "state", r.State, daybook.Cancelled)
		k.code(k.s.CancelRunning(k.ctx, r.Key, r.Fence, k.act("cancel")), daybook.CodeStale)
	}},
	{"a question is renewed under its own id, found when its lease is over, and given up", func(k *kit) {
		j := Job("renew", Once, probed)
		k.run(j, "2026-03-01")
		r := k.one()
		k.begin(r, j)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultLost})
		q := k.one()
		notices, err := k.s.Renew(k.ctx, []*daybook.Run{q}, k.now.Add(time.Minute), k.now)
		k.ok(err)
		equal(k, "notices", len(notices), 0)
		k.ok(k.s.ReleaseAsking(k.ctx, []*daybook.Run{q}, k.now.Add(40*time.Second))) // it was renewed since q was read
		equal(k, "still asked", k.find(q.Key).Asking, q.Asking)
		expired, err := k.s.Expired(k.ctx, k.now.Add(2*time.Minute), k.now.Add(time.Hour), 10)
		k.ok(err)
		equal(k, "expired", len(expired), 1)
		k.ok(k.s.ReleaseAsking(k.ctx, expired, k.now.Add(2*time.Minute)))
		again := k.one()
		equal(k, "fence", again.Fence, q.Fence)
		if again.Asking == q.Asking {
			k.Error("asked again under the same id")
		}
		k.stale(q.Settle([]daybook.Finding{{Answer: daybook.Yes, WireKey: q.WireKey()}}, j.Policy(), k.now, k.now)) // the first asker
		notices, err = k.s.Renew(k.ctx, []*daybook.Run{q}, k.now.Add(time.Minute), k.now)
		k.ok(err)
		if len(notices) != 1 || !notices[0].Lost {
			k.Errorf("the first asker is told %+v", notices)
		}
	}},
	{"begin needs the claim that is held", func(k *kit) {
		j := Job("renew", Once, probed)
		k.run(j, "2026-03-01")
		r := k.one()
		other := *r
		other.Claim = "forged"
		k.code(begin(k.ctx, k.s, &other, j, k.now), daybook.CodeStale)
		equal(k, "effects", k.number("SELECT count(*) FROM daybook_steps"), 0)
		k.begin(r, j)
		equal(k, "begun", k.find(r.Key).BegunAt, k.now)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultLost})
		k.code(begin(k.ctx, k.s, &other, j, k.now), daybook.CodeStale)
	}},
	{"a pass over expired leases with an old picture changes nothing (H39)", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		r := k.one()
		k.begin(r, j)
		expired, err := k.s.Expired(k.ctx, k.now.Add(time.Minute), k.now.Add(time.Hour), 10)
		k.ok(err)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultDone})
		k.stale(expired[0].Next(daybook.Outcome{Result: daybook.ResultLost}, j.Policy(), k.now.Add(time.Minute)))
		equal(k, "state", k.find(r.Key).State, daybook.Done)
	}},
	{"three losses in a row are a dead letter with an alert, and block nobody (H34, H42)", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{} })
		k.run(j, "2026-03-01")
		k.run(j, "2026-03-02")
		for i := range daybook.MaxLosses {
			r := k.one()
			equal(k, "key", r.Key, "report:2026-03-01")
			k.begin(r, j)
			k.now = k.now.Add(time.Minute)
			r = k.end(r, j, daybook.Outcome{Result: daybook.ResultLost})
			equal(k, "failures", r.Failures, 0)
			equal(k, "losses", r.Losses, i+1)
		}
		equal(k, "state", k.find("report:2026-03-01").State, daybook.Dead)
		alerts, err := k.s.Alerts(k.ctx, true, 0)
		k.ok(err)
		equal(k, "alerts", len(alerts), 1)
		equal(k, "next", k.one().Key, "report:2026-03-02")
	}},
}
