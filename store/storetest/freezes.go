package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// freeze begins a freeze now.
func (k *kit) freeze(name string, length time.Duration, only daybook.Priority) bool {
	k.Helper()
	started, err := k.s.StartFreeze(k.ctx, daybook.Freeze{Name: name, Only: only, From: k.now, Until: k.now.Add(length), Actor: "ops", Note: "because"}, k.act("freeze start"))
	k.ok(err)
	return started
}

func (k *kit) thaw(name string) bool {
	k.Helper()
	ended, err := k.s.EndFreeze(k.ctx, name, k.act("freeze end"))
	k.ok(err)
	return ended
}

// nextDue is when something of the live lane is due.
func (k *kit) nextDue() time.Time {
	k.Helper()
	due, err := k.s.NextDue(k.ctx, "")
	k.ok(err)
	return due[daybook.LaneLive]
}

// held checks that a run is held by a freeze, until when, and that it starts within the spread.
func (k *kit) held(key daybook.Key, until time.Time) *daybook.Run {
	k.Helper()
	r := k.find(key)
	equal(k, "hold", r.Hold, daybook.ReasonFrozen)
	equal(k, "frozen until", r.FrozenUntil, until)
	if r.Due.Before(until) || !r.Due.Before(until.Add(daybook.FreezeSpread)) {
		k.Errorf("%s starts at %s, frozen until %s", key, r.Due, until)
	}
	return r
}

var freezeCases = []example{
	{"a freeze that begins between due and claim holds the start, and lets it go spread after its end", func(k *kit) {
		j := Job("report")
		r := k.run(j, "2026-03-01")
		k.freeze("deploy", 30*time.Minute, "")
		until := k.now.Add(30 * time.Minute)
		equal(k, "claimed", len(k.claim(10)), 0)
		r = k.held(r.Key, until)
		equal(k, "meant", r.Meant, k.now)
		equal(k, "state", r.State, daybook.Scheduled)
		equal(k, "next", k.nextDue(), r.Due)
		frozen, n, err := k.s.Frozen(k.ctx, k.now, 10)
		k.ok(err)
		equal(k, "listed", n, 1)
		equal(k, "listed", frozen[0].Key, r.Key)
		k.now = r.Due.Add(-time.Microsecond)
		equal(k, "claimed before its instant", len(k.claim(10)), 0)
		k.now = r.Due
		got := k.one()
		equal(k, "hold of what runs", got.Hold, "")
		k.end(got, j, done)
	}},
	{"what runs goes on, its report is taken, and its retry lands behind the freeze", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{5 * time.Minute, 5 * time.Minute} })
		k.run(j, "2026-03-01")
		r := k.one()
		k.freeze("deploy", 30*time.Minute, "")
		until := k.now.Add(30 * time.Minute)
		notices, err := k.s.Renew(k.ctx, []*daybook.Run{r}, k.now.Add(time.Minute), k.now)
		k.ok(err)
		equal(k, "notices", len(notices), 0)
		got := k.end(r, j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"})
		equal(k, "state", got.State, daybook.Retryable)
		got = k.held(r.Key, until)
		if got.Meant.Sub(k.now) < 5*time.Minute {
			k.Errorf("it was meant for %s", got.Meant)
		}
	}},
	{"no question is sent in a freeze", func(k *kit) {
		j := Job("renew", Once, func(j *daybook.Job) { j.Probe = daybook.Command{Shell: "ask"} })
		k.run(j, "2026-03-01")
		r := k.one()
		k.begin(r, j)
		k.freeze("deploy", 30*time.Minute, "")
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"})
		equal(k, "asked", len(k.claim(10)), 0)
		got := k.held(r.Key, k.now.Add(30*time.Minute))
		equal(k, "reason", got.Reason, daybook.ReasonSettling)
		k.now = got.Due
		if q := k.one(); q.Asking == "" {
			k.Error("it was tried, not asked")
		}
	}},
	{"no undo is sent in a freeze", func(k *kit) {
		j := Job("renew", Once, func(j *daybook.Job) { j.Undo = daybook.Command{Shell: "refund"} })
		r := k.run(j, "2026-03-01")
		k.try(j, done)
		k.freeze("deploy", 30*time.Minute, "")
		u := k.undo(k.find(r.Key))
		equal(k, "claimed", len(k.claim(10)), 0)
		k.held(u.Key, k.now.Add(30*time.Minute))
	}},
	{"a freeze of P0 holds nothing else", func(k *kit) {
		money := k.run(Job("renew", p0), "2026-03-01")
		mail := k.run(Job("mail"), "2026-03-01")
		k.freeze("deploy", 30*time.Minute, daybook.P0)
		equal(k, "claimed", k.one().Key, mail.Key)
		k.held(money.Key, k.now.Add(30*time.Minute))
	}},
	{"one key is not claimed in a freeze either", func(k *kit) {
		r := k.run(Job("report"), "2026-03-01")
		k.freeze("deploy", 30*time.Minute, "")
		equal(k, "claimed", len(k.claim(1, func(c *daybook.Claim) { c.Key = r.Key })), 0)
		k.held(r.Key, k.now.Add(30*time.Minute))
	}},
	{"a freeze of a file is passed in by who claims", func(k *kit) {
		r := k.run(Job("report"), "2026-03-01")
		file := []daybook.Freeze{{Name: "nightly", From: k.now.Add(-time.Minute), Until: k.now.Add(time.Hour), OfFile: true}}
		equal(k, "claimed", len(k.claim(1, func(c *daybook.Claim) { c.Freezes = file })), 0)
		r = k.held(r.Key, k.now.Add(time.Hour))
		k.now = r.Due
		equal(k, "claimed by who knows of none", len(k.claim(1)), 1)
	}},
	{"ended before its time: what it held starts at once, spread, and no retry before it was meant to", func(k *kit) {
		j := Job("report", allow, func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{20 * time.Minute} })
		retry := k.run(j, "2026-03-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"})
		meant := k.find(retry.Key).Due
		k.freeze("deploy", time.Hour, "")
		fresh := k.run(j, "2026-03-02")
		equal(k, "claimed", len(k.claim(10)), 0)
		k.now = k.now.Add(5 * time.Minute)
		if !k.thaw("deploy") {
			k.Error("it did not end")
		}
		r := k.find(fresh.Key)
		equal(k, "hold", r.Hold, "")
		if r.Due.Before(k.now) || !r.Due.Before(k.now.Add(daybook.FreezeSpread)) {
			k.Errorf("it starts at %s, and it is %s", r.Due, k.now)
		}
		equal(k, "the retry", k.find(retry.Key).Due, meant)
		equal(k, "ended again", k.thaw("deploy"), false)
		standing, err := k.s.Freezes(k.ctx, k.now)
		k.ok(err)
		equal(k, "standing", len(standing), 0)
		past, err := k.s.Freezes(k.ctx, k.now.Add(-time.Minute))
		k.ok(err)
		equal(k, "known afterwards", len(past), 1)
		equal(k, "its end", past[0].Until, k.now)
	}},
	{"a retry that was put off when its ladder was decided lands where it was meant to, when the freeze ends early", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Retry.Backoff, j.Retry.Jitter = []time.Duration{20 * time.Minute}, -1 })
		r := k.run(j, "2026-03-01")
		k.one()
		k.freeze("deploy", time.Hour, "")
		k.end(k.find(r.Key), j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"})
		meant := k.now.Add(20 * time.Minute)
		k.held(r.Key, k.now.Add(time.Hour))
		k.now = k.now.Add(5 * time.Minute)
		k.thaw("deploy")
		equal(k, "due", k.find(r.Key).Due, meant)
	}},
	{"overlapping freezes hold to the end of the last, and what one lets go the other holds", func(k *kit) {
		r := k.run(Job("report"), "2026-03-01")
		k.freeze("a", 30*time.Minute, "")
		k.now = k.now.Add(20 * time.Minute)
		k.freeze("b", 30*time.Minute, "")
		until := k.now.Add(30 * time.Minute)
		equal(k, "claimed", len(k.claim(1)), 0)
		k.held(r.Key, until)
		k.thaw("a")
		k.now = k.now.Add(daybook.FreezeSpread)
		equal(k, "claimed in the other", len(k.claim(1)), 0)
		k.held(r.Key, until)
		k.thaw("b")
		k.now = k.now.Add(daybook.FreezeSpread)
		k.one()
	}},
	{"a freeze that was taken out of the file lets go what it held, and nothing else", func(k *kit) {
		until := k.now.Add(time.Hour)
		file := []daybook.Freeze{{Name: "nightly", From: k.now.Add(-time.Minute), Until: until, OfFile: true}}
		known := func(list ...daybook.Freeze) func(time.Time) []daybook.Freeze {
			return func(at time.Time) []daybook.Freeze {
				return slices.DeleteFunc(slices.Clone(list), func(f daybook.Freeze) bool { return at.Before(f.From) || !at.Before(f.Until) })
			}
		}
		thawed := func(what string, want bool, home string, ofFile func(time.Time) []daybook.Freeze) {
			k.Helper()
			got, err := k.s.Thaw(k.ctx, home, ofFile, k.now)
			k.ok(err)
			equal(k, what, got, want)
		}
		thawed("nothing is held", false, "", known())
		r := k.run(Job("report"), "2026-03-01")
		equal(k, "claimed", len(k.claim(1, func(c *daybook.Claim) { c.Freezes = file })), 0)
		k.held(r.Key, until)
		thawed("it stands", false, "", known(file...))
		thawed("seen from an application", false, "shop", known())
		k.held(r.Key, until)
		k.freeze("deploy", 30*time.Minute, "") // of the ledger: it has an end of its own
		other := k.run(Job("mail"), "2026-03-01")
		equal(k, "claimed", len(k.claim(1)), 0)
		k.now = k.now.Add(time.Minute)
		thawed("it is gone", true, "", known())
		equal(k, "hold", k.find(r.Key).Hold, "")
		k.held(other.Key, k.now.Add(29*time.Minute))
		thawed("again", false, "", known())
		k.now = k.now.Add(daybook.FreezeSpread)
		equal(k, "claimed while the other stands", len(k.claim(1)), 0)
		k.held(r.Key, k.now.Add(28*time.Minute))
		k.thaw("deploy")
		k.now = k.now.Add(daybook.FreezeSpread)
		equal(k, "claimed", len(k.claim(2)), 2)

		only := []daybook.Freeze{{Name: "nightly", Only: daybook.P0, From: k.now, Until: k.now.Add(time.Hour), OfFile: true}}
		money := k.run(Job("renew", p0), "2026-03-02")
		equal(k, "claimed", len(k.claim(1, func(c *daybook.Claim) { c.Freezes = only })), 0)
		thawed("of P0, as P0 is", false, "", known(only...))
		short := only[0]
		short.Until = short.Until.Add(-time.Minute)
		thawed("it is shorter now", true, "", known(short))
		equal(k, "hold", k.find(money.Key).Hold, "")
	}},
	{"what is put off while the freeze is ended does not wait for an end that is none any more", endedWhilePutOff},
	{"a repeat that a freeze puts off until the far side has forgotten is not made", func(k *kit) {
		j := Job("renew", Once, func(j *daybook.Job) { j.Remembers, j.Retry.Backoff = 3*time.Hour, []time.Duration{20 * time.Minute} })
		k.run(j, "2026-03-01")
		r := k.one()
		k.begin(r, j)
		k.freeze("deploy", 3*time.Hour, "")
		r = k.end(r, j, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"})
		equal(k, "state", r.State, daybook.Retryable)
		k.now = k.held(r.Key, k.now.Add(3*time.Hour)).Due
		r = k.one()
		if _, ok := r.Begin(j.Policy(), k.now); ok {
			k.Error("it may be begun, though the far side may have forgotten")
		}
	}},
	{"two of one name do not stand at once; when it is over the name is free", func(k *kit) {
		equal(k, "first", k.freeze("deploy", 30*time.Minute, ""), true)
		equal(k, "second", k.freeze("deploy", time.Hour, ""), false)
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity WHERE action = 'freeze start'"), 1)
		k.now = k.now.Add(30 * time.Minute)
		equal(k, "ends what is over", k.thaw("deploy"), false)
		equal(k, "third", k.freeze("deploy", time.Hour, ""), true)
	}},
	{"a trigger in a freeze starts a run that is held, and says until when; a replay too", func(k *kit) {
		j := Job("report", allow)
		dead := k.run(j, "2026-03-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "no"})
		k.know(j)
		k.freeze("deploy", 30*time.Minute, "")
		until := k.now.Add(30 * time.Minute)
		r := k.template(j, "2026-03-02")
		reply, got := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r)
		equal(k, "outcome", reply.Outcome, daybook.Started)
		equal(k, "because", reply.Because, string(daybook.ReasonFrozen))
		equal(k, "hold", got.Hold, daybook.ReasonFrozen)
		k.held(r.Key, until)
		reply, got = k.ask(daybook.Ask{Key: dead.Key, Source: daybook.SourceReplay}, nil)
		equal(k, "replay", reply.Outcome, daybook.Started)
		equal(k, "hold of it", got.Hold, daybook.ReasonFrozen)
		k.held(dead.Key, until)
		r = k.template(j, "2026-03-03")
		k.thaw("deploy")
		file := []daybook.Freeze{{Name: "nightly", From: k.now, Until: k.now.Add(time.Hour), OfFile: true}}
		reply, _ = k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Freezes: file}, r)
		equal(k, "of a file", reply.Because, string(daybook.ReasonFrozen))
		k.held(r.Key, k.now.Add(time.Hour))
	}},
	{"a pause holds what a freeze holds, and outlives it", func(k *kit) {
		j := Job("report")
		r := k.run(j, "2026-03-01")
		k.freeze("deploy", 30*time.Minute, "")
		equal(k, "claimed", len(k.claim(1)), 0)
		_, err := k.s.Pause(k.ctx, "report", k.act("pause"))
		k.ok(err)
		equal(k, "hold", k.find(r.Key).Hold, daybook.ReasonPaused)
		k.thaw("deploy")
		k.now = k.now.Add(time.Hour)
		equal(k, "claimed while it is paused", len(k.claim(1)), 0)
		_, err = k.s.Resume(k.ctx, "report", k.act("resume"))
		k.ok(err)
		equal(k, "then", len(k.claim(1)), 1)
	}},
	{"many that are held start at instants of their own", func(k *kit) {
		j := Job("mail", allow)
		k.many(j, 50)
		k.freeze("deploy", 30*time.Minute, "")
		equal(k, "claimed", len(k.claim(5)), 0)
		frozen, n, err := k.s.Frozen(k.ctx, k.now, 100)
		k.ok(err)
		equal(k, "held", n, 50)
		var at []time.Time
		for _, r := range frozen {
			k.held(r.Key, k.now.Add(30*time.Minute))
			at = append(at, r.Due)
		}
		slices.SortFunc(at, time.Time.Compare)
		equal(k, "instants", len(slices.Compact(at)), 50)
		k.now = at[24]
		equal(k, "claimed in the middle", len(k.claim(100)), 25)
	}},
	{"no run is claimed once a freeze has been begun, however many claim", func(k *kit) {
		j := Job("mail", allow)
		k.many(j, 300)
		var mu sync.Mutex
		begun := false
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					mu.Lock()
					after := begun // the freeze had been begun before this claim was asked for
					mu.Unlock()
					runs, err := k.s.Claim(k.ctx, daybook.Claim{Node: "n", Lane: daybook.LaneLive, Limit: 1, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
					if err != nil && daybook.CodeOf(err) != daybook.CodeStale {
						k.Error(err)
						return
					}
					if after && len(runs) > 0 {
						k.Errorf("%s was claimed in the freeze", runs[0].Key)
					}
					if after {
						return
					}
				}
			})
		}
		_, err := k.s.StartFreeze(k.ctx, daybook.Freeze{Name: "deploy", From: k.now, Until: k.now.Add(time.Hour), Actor: "ops"}, k.act("freeze start"))
		if err != nil {
			k.Error(err)
		}
		mu.Lock()
		begun = true
		mu.Unlock()
		before := k.number("SELECT count(*) FROM daybook_live WHERE state = 'running'")
		wg.Wait()
		close(stop)
		equal(k, "at work, as when it had begun", k.number("SELECT count(*) FROM daybook_live WHERE state = 'running'"), before)
	}},
	{"what P0 work comes is told: at work, on the ladder, due; not paused, not P1, not behind the span", func(k *kit) {
		money := Job("renew", p0, allow, func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{10 * time.Minute} })
		running := k.run(money, "2026-03-01")
		k.one()
		ladder := k.run(money, "2026-03-02")
		k.try(money, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"})
		k.run(Job("mail"), "2026-03-01")
		k.run(Job("paused", p0), "2026-03-01")
		_, err := k.s.Pause(k.ctx, "paused", k.act("pause"))
		k.ok(err)
		coming := func(span time.Duration) []daybook.Key {
			runs, err := k.s.Coming(k.ctx, k.now.Add(span), 100)
			k.ok(err)
			list := keys(runs)
			slices.Sort(list)
			return list
		}
		if got := coming(31 * time.Minute); !slices.Equal(got, []daybook.Key{running.Key, ladder.Key}) {
			k.Errorf("in 31 m: %v", got)
		}
		if got := coming(5 * time.Minute); !slices.Equal(got, []daybook.Key{running.Key}) {
			k.Errorf("in 5 m: %v", got)
		}
	}},
}

// endedWhilePutOff ends freezes while others claim and end attempts in them: afterwards nothing waits for an end that was
// moved.
func endedWhilePutOff(k *kit) {
	j := Job("mail", allow, func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{time.Minute, time.Minute} })
	failed := daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"}
	for round := range 12 {
		var at []*daybook.Run
		for i := range 10 {
			r := daybook.NewRun(j, 1, Day("2026-03-01"), 1, fmt.Sprintf("r%d-%d", round, i), k.now)
			r.Due = k.now
			k.know(j)
			k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceEvent}, r)
		}
		at = append(at, k.claim(5)...)
		k.freeze("deploy", 20*time.Hour, "")
		var wg sync.WaitGroup
		start := make(chan struct{})
		do := func(f func() error) {
			wg.Go(func() {
				<-start
				if err := f(); err != nil && daybook.CodeOf(err) != daybook.CodeStale {
					k.Error(err)
				}
			})
		}
		for _, r := range at {
			do(func() error {
				_, err := k.s.Apply(k.ctx, []daybook.Transition{r.Next(failed, j.Policy(), k.now)})
				return err
			})
		}
		for i := range 3 {
			do(func() error {
				runs, err := k.s.Claim(k.ctx, daybook.Claim{Node: fmt.Sprint("n", i), Lane: daybook.LaneLive, Limit: 1, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
				if len(runs) > 0 {
					k.s.Apply(k.ctx, []daybook.Transition{runs[0].Next(done, j.Policy(), k.now)})
				}
				return err
			})
		}
		do(func() error {
			_, err := k.s.EndFreeze(k.ctx, "deploy", k.act("freeze end"))
			return err
		})
		close(start)
		wg.Wait()
		if n := k.number("SELECT count(*) FROM daybook_live WHERE frozen_us > 0 AND state <> 'running'"); n != 0 {
			k.Fatalf("round %d: %d runs wait for the end of a freeze that has ended", round, n)
		}
		k.now = k.now.Add(time.Second)
	}
}
