package storetest

import (
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
)

// taking asks for a window of a job and takes it.
func (k *kit) taking(j *daybook.Job, date string) (daybook.Reply, *daybook.Run, bool) {
	k.Helper()
	id := NewID()
	r := daybook.NewRun(j, 1, Day(date), 1, "", k.now)
	r.Due, r.NotBefore, r.Cover = k.now, k.now, daybook.Bounds{Start: r.Window.Start, End: r.Window.End}
	reply, run, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI, Actor: "program", Effects: j.Effects,
		Take: &daybook.Claim{Key: r.Key, Node: "program", Limit: 1, Lease: k.now.Add(30 * time.Second), NewID: func() string { return id }}}, r, k.now)
	k.ok(err)
	return reply, run, run != nil && run.State == daybook.Running && run.Claim == id
}

func (k *kit) known(j *daybook.Job) *daybook.Job {
	k.Helper()
	_, err := k.s.TakeRevisions(k.ctx, []daybook.Revision{{Job: j}}, false, k.now)
	k.ok(err)
	return j
}

var takeCases = []example{
	{"sixteen programs take one key while executors claim what is due: one has it", func(k *kit) {
		j := k.known(Job("renew", Once))
		for _, date := range []string{"2026-03-01", "2026-03-02", "2026-03-03"} {
			var executors atomic.Int64
			got := together(20, func(i int) bool {
				if i >= 16 {
					executors.Add(int64(len(k.claim(10))))
					return false
				}
				_, _, mine := k.taking(j, date)
				return mine
			})
			if n := got + int(executors.Load()); n != 1 {
				k.Errorf("%s has %d holders", date, n)
			}
			r := k.find(daybook.Key("renew:" + date))
			equal(k, "fence", r.Fence, 1)
			equal(k, "triggers", r.Triggers, 16)
			k.end(r, j, daybook.Outcome{Result: daybook.ResultDone})
		}
	}},
	{"what is on the ladder is taken when it is due, with the next fence; what is done is not", func(k *kit) {
		j := k.known(Job("mail"))
		_, r, mine := k.taking(j, "2026-03-01")
		equal(k, "taken", mine, true)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"})
		reply, r, mine := k.taking(j, "2026-03-01")
		equal(k, "taken before its time", mine, false)
		equal(k, "outcome", reply.Outcome, daybook.Joined)
		equal(k, "state", r.State, daybook.Retryable)
		k.now = r.Due
		_, r, mine = k.taking(j, "2026-03-01")
		equal(k, "taken", mine, true)
		equal(k, "fence", r.Fence, 2)
		equal(k, "failures", r.Failures, 1)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultDone})
		reply, _, mine = k.taking(j, "2026-03-01")
		equal(k, "taken when done", mine, false)
		equal(k, "outcome", reply.Outcome, daybook.Reused)
	}},
	{"what is settling, held or behind an older window is not taken", func(k *kit) {
		j := k.known(Job("renew", Once, func(j *daybook.Job) { j.Probe = daybook.Command{Argv: []string{"x"}} }))
		_, r, _ := k.taking(j, "2026-03-01")
		_, _, mine := k.taking(j, "2026-03-02")
		equal(k, "taken behind a running one", mine, false)
		k.begin(r, j)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnclear})
		reply, r, mine := k.taking(j, "2026-03-01")
		equal(k, "taken while settling", mine, false)
		equal(k, "outcome", reply.Outcome, daybook.Joined)
		equal(k, "asked", r.Asking, "")
		_, err := k.s.Pause(k.ctx, "renew", daybook.Activity{At: k.now, Actor: "ops", Action: "pause", Job: "renew", Note: "a test"})
		k.ok(err)
		reply, _, mine = k.taking(j, "2026-03-03")
		equal(k, "taken of a paused job", mine, false)
		equal(k, "outcome", reply.Outcome, daybook.Refused)
	}},
}
