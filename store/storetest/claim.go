package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

func allow(j *daybook.Job) { j.Overlap = daybook.OverlapAllow }

func p0(j *daybook.Job) { j.Priority, j.Effects = daybook.P0, daybook.Repeatable }

// many adds n runs of a job, as further effects of one window.
func (k *kit) many(j *daybook.Job, n int) {
	k.Helper()
	k.know(j)
	for i := range n {
		r := daybook.NewRun(j, 1, Day("2026-03-01"), 1, fmt.Sprintf("s%05d", i), k.now)
		r.Due, r.Cover = k.now.Add(time.Duration(i)*time.Microsecond-time.Second), daybook.Bounds{Start: r.Window.Start, End: r.Window.End}
		k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceEvent}, r)
	}
}

var claimCases = []example{
	{"sixteen claimers and a thousand runs: no run twice, none left", func(k *kit) {
		j := Job("mail", allow)
		k.many(j, 1000)
		var mu sync.Mutex
		taken := make(map[daybook.Key]int)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for {
					runs, err := k.s.Claim(k.ctx, daybook.Claim{Node: fmt.Sprint("n", i), Lane: daybook.LaneLive, Limit: 7, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
					if err != nil {
						k.Error(err)
						return
					}
					if len(runs) == 0 {
						// Nothing that is not locked by another: look whether anything is left at all.
						if left, err := k.s.NextDue(k.ctx, ""); err != nil || len(left) == 0 {
							return
						}
						continue
					}
					var ends []daybook.Transition
					mu.Lock()
					for _, r := range runs {
						taken[r.Key]++
						ends = append(ends, r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now))
					}
					mu.Unlock()
					applied, err := k.s.Apply(k.ctx, ends)
					if err != nil {
						k.Error(err)
						return
					}
					for i, a := range applied {
						if a.Stale {
							k.Errorf("%s is stale", ends[i].Key)
						}
					}
				}
			})
		}
		wg.Wait()
		equal(k, "runs", len(taken), 1000)
		for key, n := range taken {
			if n != 1 {
				k.Errorf("%s was claimed %d times", key, n)
			}
		}
		equal(k, "done", k.number("SELECT count(*) FROM daybook_runs WHERE state = 'done'"), 1000)
		equal(k, "attempts", k.number("SELECT count(*) FROM daybook_attempts"), 1000)
		equal(k, "live", k.number("SELECT count(*) FROM daybook_live"), 0)
	}},
	{"a claim raises the fence, counts an attempt and names the node and a random id", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		first := k.one()
		equal(k, "fence", first.Fence, 1)
		equal(k, "attempt", first.Attempts, 1)
		equal(k, "node", first.Node, "n1")
		equal(k, "lease", first.Lease, k.now.Add(30*time.Second))
		equal(k, "claimed at", first.ClaimedAt, k.now)
		k.end(first, j, daybook.Outcome{Result: daybook.ResultLost})
		second := k.one()
		equal(k, "fence", second.Fence, 2)
		equal(k, "attempt", second.Attempts, 2)
		if first.Claim == "" || first.Claim == second.Claim {
			k.Errorf("claims %q and %q", first.Claim, second.Claim)
		}
	}},
	{"what is not due is not claimed, at its instant it is", func(k *kit) {
		j := Job("report")
		k.know(j)
		r := k.template(j, "2026-03-01")
		r.Due = k.now.Add(time.Microsecond)
		k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r)
		equal(k, "claimed early", len(k.claim(1)), 0)
		due, err := k.s.NextDue(k.ctx, "")
		k.ok(err)
		equal(k, "next", due[daybook.LaneLive], r.Due)
		k.now = r.Due
		equal(k, "claimed", len(k.claim(1)), 1)
		due, err = k.s.NextDue(k.ctx, "")
		k.ok(err)
		equal(k, "lanes when nothing waits", len(due), 0)
	}},
	{"P0 first, then by time", func(k *kit) {
		for i, j := range []*daybook.Job{Job("b1", allow), Job("a0", allow, p0), Job("c1", allow), Job("d0", allow, p0)} {
			k.know(j)
			r := k.template(j, "2026-03-01")
			r.Due = k.now.Add(-time.Duration(i) * time.Second)
			k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r)
		}
		var got []daybook.Key
		for range 4 {
			got = append(got, keys(k.claim(1))...)
		}
		if want := []daybook.Key{"d0:2026-03-01", "a0:2026-03-01", "c1:2026-03-01", "b1:2026-03-01"}; !slices.Equal(got, want) {
			k.Errorf("claimed %v, want %v", got, want)
		}
	}},
	{"the limit holds over both priorities", func(k *kit) {
		k.many(Job("a", allow, p0), 3)
		k.many(Job("b", allow), 3)
		runs := k.claim(4)
		n := 0
		for _, r := range runs {
			if r.Priority == daybook.P0 {
				n++
			}
		}
		equal(k, "claimed", len(runs), 4)
		equal(k, "of them P0", n, 3)
		equal(k, "claimed with limit 0", len(k.claim(0)), 0)
	}},
	{"lanes and homes are claimed apart", func(k *kit) {
		add := func(name string, lane daybook.Lane, home string) {
			j := Job(name)
			k.know(j)
			r := k.template(j, "2026-03-01")
			r.Lane, r.Home = lane, home
			k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r)
		}
		add("live", daybook.LaneLive, "")
		add("past", daybook.LaneBackfill, "")
		add("once", daybook.LaneLive, daybook.HomeOnce)
		for _, c := range []struct {
			lane daybook.Lane
			home string
			want daybook.Key
		}{
			{daybook.LaneBackfill, "", "past:2026-03-01"},
			{daybook.LaneLive, daybook.HomeOnce, "once:2026-03-01"},
			{daybook.LaneLive, "", "live:2026-03-01"},
			{daybook.LaneBackfill, daybook.HomeOnce, ""},
		} {
			got := keys(k.claim(9, func(q *daybook.Claim) { q.Lane, q.Home = c.lane, c.home }))
			if c.want == "" && len(got) == 0 || len(got) == 1 && got[0] == c.want {
				continue
			}
			k.Errorf("lane %q, home %q: claimed %v, want %q", c.lane, c.home, got, c.want)
		}
	}},
	{"one key is claimed by name when it is due, and no other", func(k *kit) {
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		k.run(j, "2026-03-02")
		only := func(key daybook.Key) []daybook.Key {
			return keys(k.claim(9, func(c *daybook.Claim) { c.Key = key }))
		}
		if got := only("report:2026-03-02"); !slices.Equal(got, []daybook.Key{"report:2026-03-02"}) {
			k.Errorf("claimed %v", got)
		}
		equal(k, "claimed again", len(only("report:2026-03-02")), 0)
		equal(k, "claimed what is not there", len(only("report:2026-03-09")), 0)
	}},
	{"what is held is not claimed", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		_, err := k.s.Pause(k.ctx, "report", k.act("pause"))
		k.ok(err)
		equal(k, "claimed", len(k.claim(9)), 0)
		due, err := k.s.NextDue(k.ctx, "")
		k.ok(err)
		equal(k, "lanes with something due", len(due), 0)
		_, err = k.s.Resume(k.ctx, "report", k.act("resume"))
		k.ok(err)
		equal(k, "claimed", len(k.claim(9)), 1)
	}},
	{"of one line the oldest window runs, alone", func(k *kit) {
		j := Job("report")
		for _, d := range []string{"2026-03-03", "2026-03-02", "2026-03-04"} {
			k.run(j, d)
		}
		r := k.one()
		equal(k, "first", r.Key, "report:2026-03-02")
		equal(k, "beside it", len(k.claim(9)), 0)
		k.run(j, "2026-03-01") // an older window comes while one runs
		equal(k, "beside it", len(k.claim(9)), 0)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultDone})
		r = k.one()
		equal(k, "then the older one", r.Key, "report:2026-03-01")
		r = k.end(r, j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"}) // on the ladder it still goes first
		equal(k, "behind one on the ladder", len(k.claim(9)), 0)
		k.now = r.Due
		r = k.one()
		equal(k, "again", r.Key, "report:2026-03-01")
		r = k.end(r, j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "402"}) // dead does not block
		equal(k, "state", r.State, daybook.Dead)
		equal(k, "after a dead letter", k.one().Key, "report:2026-03-03")
	}},
	{"overlap: allow lets windows of a job run beside each other", func(k *kit) {
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		k.run(j, "2026-03-02")
		equal(k, "claimed", len(k.claim(9)), 2)
	}},
	{"never two of one line at once, with sixteen claimers and older windows that come", func(k *kit) {
		const lines, windows = 5, 12
		jobs := make([]*daybook.Job, lines)
		for i := range jobs {
			jobs[i] = Job(fmt.Sprint("line", i))
			k.know(jobs[i])
		}
		add := func(j *daybook.Job, day int) error {
			r := k.template(j, Birth.AddDate(0, 0, day).Format(time.DateOnly))
			_, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r, k.now)
			return err
		}
		var mu sync.Mutex
		running, done := make(map[string]daybook.Key), make(map[daybook.Key]int)
		var producers, wg sync.WaitGroup
		for _, j := range jobs {
			producers.Go(func() {
				for day := windows; day > 0; day-- { // the newest first
					if err := add(j, day); err != nil {
						k.Error(err)
					}
				}
			})
		}
		made := make(chan struct{})
		go func() { producers.Wait(); close(made) }()
		for i := range 16 {
			wg.Go(func() {
				for k.ctx.Err() == nil {
					all := false
					select {
					case <-made:
						all = true
					default:
					}
					runs, err := k.s.Claim(k.ctx, daybook.Claim{Node: fmt.Sprint("n", i), Lane: daybook.LaneLive, Limit: 3, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
					if err != nil {
						k.Error(err)
						return
					}
					if len(runs) == 0 {
						if left, err := k.s.Counts(k.ctx); all && (err != nil || len(left.Live) == 0) {
							return
						}
						continue
					}
					mu.Lock()
					for _, r := range runs {
						if other, ok := running[r.Line]; ok {
							k.Errorf("%s was claimed while %s ran", r.Key, other)
						}
						running[r.Line] = r.Key
						done[r.Key]++
					}
					mu.Unlock()
					for _, r := range runs {
						mu.Lock()
						delete(running, r.Line) // before it is written: from then on another may be claimed
						mu.Unlock()
						if _, err := k.s.Apply(k.ctx, []daybook.Transition{r.Next(daybook.Outcome{Result: daybook.ResultDone}, jobs[0].Policy(), k.now)}); err != nil {
							k.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		equal(k, "windows", len(done), lines*windows)
		for key, n := range done {
			if n != 1 {
				k.Errorf("%s ran %d times", key, n)
			}
		}
	}},
	{"a run that is settling is claimed as a question: the fence stays, the state too", func(k *kit) {
		j := Job("renew", Once, probed)
		k.run(j, "2026-03-01")
		r := k.one()
		k.begin(r, j)
		r = k.end(r, j, daybook.Outcome{Result: daybook.ResultLost})
		equal(k, "reason", r.Reason, daybook.ReasonSettling)
		q := k.one()
		equal(k, "state", q.State, daybook.Retryable)
		equal(k, "fence", q.Fence, r.Fence)
		equal(k, "claim", q.Claim, r.Claim)
		equal(k, "attempts", q.Attempts, 1)
		if q.Asking == "" || q.Effect == nil || q.Effect.State != daybook.EffectUnknown {
			k.Errorf("question %+v with effect %+v", q, q.Effect)
		}
		equal(k, "asked twice at once", len(k.claim(9)), 0)
		k.run(j, "2026-03-02")
		equal(k, "claimed behind an unknown effect", len(k.claim(9)), 0)
	}},
}

func probed(j *daybook.Job) { j.Probe.Shell = "exit 2" }
