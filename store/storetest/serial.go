package storetest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
)

// What the cases of serial keys do by default is small.
var (
	waiters     = flag.Int("waiters", 1000, "runs that wait for one serial key")
	serialSeeds = flag.Int("serialseeds", 2, "seeds of the random case of serial keys")
)

// on gives a job a serial key.
func on(template string) func(*daybook.Job) {
	return func(j *daybook.Job) { j.Serial, j.Overlap = template, daybook.OverlapAllow }
}

// subject adds a run of a job for a subject, due some seconds after now.
func (k *kit) subject(j *daybook.Job, date, subject string, after time.Duration) *daybook.Run {
	k.Helper()
	k.know(j)
	r := daybook.NewRun(j, 1, Day(date), 1, subject, k.now)
	r.Due, r.NotBefore, r.Cover = k.now.Add(after), k.now, daybook.Bounds{Start: r.Window.Start, End: r.Window.End}
	_, run := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Actor: "test", Effects: j.Effects}, r)
	return run
}

func (k *kit) lock(serial string) daybook.Lock {
	k.Helper()
	l, err := k.s.Lock(k.ctx, serial)
	k.ok(err)
	if l == nil {
		return daybook.Lock{}
	}
	return *l
}

func (k *kit) undo(r *daybook.Run) *daybook.Run {
	k.Helper()
	m, err := r.Undo("ops", "because", k.now)
	k.ok(err)
	Apply(k.ctx, k, k.s, m)
	return k.find(r.Key.Undo())
}

var done = daybook.Outcome{Result: daybook.ResultDone}

var serialCases = []example{
	{"two runs of one object in one claim: one goes, the other is parked until it has ended", func(k *kit) {
		a, b := Job("renew", on("subscription:{subject}")), Job("extend", on("subscription:{subject}"))
		first := k.subject(a, "2026-03-01", "sub_7", -2*time.Second)
		second := k.subject(b, "2026-03-01", "sub_7", -time.Second)
		k.subject(b, "2026-03-01", "sub_8", 0)
		got := keys(k.claim(10))
		if !slices.Equal(got, []daybook.Key{"renew:2026-03-01/sub_7", "extend:2026-03-01/sub_8"}) {
			k.Fatalf("claimed %v", got)
		}
		l := k.lock("subscription:sub_7")
		equal(k, "holder", l.Key, first.Key)
		equal(k, "since", l.Since, k.now)
		equal(k, "waiting", l.Waiting, 1)
		equal(k, "at work", l.Claimed, true)
		equal(k, "hold", k.find(second.Key).Hold, daybook.ReasonSerial)
		equal(k, "claimed while it is held", len(k.claim(10)), 0)
		due, err := k.s.NextDue(k.ctx, "")
		k.ok(err)
		equal(k, "lanes with something due", len(due), 0)
		k.end(k.find(first.Key), a, done)
		equal(k, "hold", k.find(second.Key).Hold, "")
		equal(k, "holder", k.lock("subscription:sub_7").Key, "")
		equal(k, "next", k.one().Key, second.Key)
		k.end(k.find(second.Key), b, done)
		equal(k, "locks", k.number("SELECT count(*) FROM daybook_locks"), 1) // of sub_8
	}},
	{"those that wait go by priority, then by time, one at a time", func(k *kit) {
		p1, money := Job("mail", on("x")), Job("renew", on("x"), p0)
		head := k.subject(p1, "2026-03-01", "0", -time.Minute)
		k.one()
		for i, j := range []*daybook.Job{p1, p1, money, money} {
			k.subject(j, "2026-03-02", fmt.Sprint(i), -time.Duration(i)*time.Second)
		}
		equal(k, "claimed", len(k.claim(10)), 0)
		var got []daybook.Key
		for at := head; ; {
			j := p1
			if at.Job == "renew" {
				j = money
			}
			k.end(k.find(at.Key), j, done)
			runs := k.claim(10)
			if len(runs) == 0 {
				break
			}
			equal(k, "at once", len(runs), 1)
			at = runs[0]
			got = append(got, at.Key)
		}
		if want := []daybook.Key{"renew:2026-03-02/3", "renew:2026-03-02/2", "mail:2026-03-02/1", "mail:2026-03-02/0"}; !slices.Equal(got, want) {
			k.Errorf("went %v, want %v", got, want)
		}
	}},
	{"not held on the ladder, nor by a letter that is failed", func(k *kit) {
		j := Job("renew", on("x"), func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{time.Hour} })
		a, b := k.subject(j, "2026-03-01", "a", -2*time.Second), k.subject(j, "2026-03-01", "b", -time.Second)
		k.end(k.one(), j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"})
		equal(k, "state of a", k.find(a.Key).State, daybook.Retryable)
		equal(k, "the other goes", k.one().Key, b.Key)
		k.now = k.now.Add(2 * time.Hour)
		equal(k, "claimed while b is at work", len(k.claim(1)), 0)
		k.end(k.find(b.Key), j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "no"})
		equal(k, "state of b", k.find(b.Key).State, daybook.Dead)
		equal(k, "the letter holds nothing", k.one().Key, a.Key)
	}},
	{"who has the key waits for no older window, which waits for the key", func(k *kit) {
		j := Job("renew", Once, on("x"), func(j *daybook.Job) {
			j.Overlap, j.Remembers, j.Retry.Backoff = daybook.OverlapWait, 24*time.Hour, []time.Duration{time.Minute}
		})
		newer := k.subject(j, "2026-03-02", "", -2*time.Second)
		r := k.one()
		k.begin(r, j)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"})
		older := k.subject(j, "2026-03-01", "", -time.Second) // a person asks for it only now
		equal(k, "claimed beside what is unknown", len(k.claim(2)), 0)
		equal(k, "hold of the older", k.find(older.Key).Hold, daybook.ReasonSerial)
		k.now = k.now.Add(2 * time.Minute)
		r = k.one()
		equal(k, "again", r.Key, newer.Key)
		equal(k, "claimed beside it", len(k.claim(2)), 0)
		k.end(r, j, done)
		equal(k, "then", k.one().Key, older.Key)
	}},
	{"held while an effect is unknown: settling, on the memory of the far side, and while its letter stands", func(k *kit) {
		j := Job("renew", Once, on("x"), func(j *daybook.Job) { j.Remembers, j.Retry.Backoff = 24*time.Hour, []time.Duration{time.Minute} })
		a, b := k.subject(j, "2026-03-01", "a", -2*time.Second), k.subject(j, "2026-03-01", "b", -time.Second)
		r := k.one()
		k.begin(r, j)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"})
		equal(k, "state", k.find(a.Key).State, daybook.Retryable)
		equal(k, "claimed beside what is unknown", len(k.claim(1)), 0)
		equal(k, "hold of b", k.find(b.Key).Hold, daybook.ReasonSerial)
		k.now = k.now.Add(2 * time.Minute)
		r = k.one() // the same run: it has the lock already
		equal(k, "again", r.Key, a.Key)
		k.begin(r, j)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"})
		equal(k, "state", k.find(a.Key).State, daybook.Dead)
		l := k.lock("x")
		equal(k, "holder", l.Key, a.Key)
		equal(k, "open", l.Open, true)
		equal(k, "at work", l.Claimed, false)
		equal(k, "waiting", l.Waiting, 1)
		more, err := k.s.Unpark(k.ctx, k.now)
		k.ok(err)
		equal(k, "let go while it is unknown", more, false)
		m, err := k.find(a.Key).Resolve(daybook.AsDone, j.Policy(), "ops", "seen", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		equal(k, "then the next goes", k.one().Key, b.Key)
	}},
	{"held while one of several steps is unknown, whatever the attempt's end says of the others", func(k *kit) {
		j := Job("renew", Once, on("x"), func(j *daybook.Job) {
			j.Steps, j.Remembers, j.Retry.Backoff = true, 24*time.Hour, []time.Duration{time.Minute, time.Minute}
		})
		a, b := k.subject(j, "2026-03-01", "a", -2*time.Second), k.subject(j, "2026-03-01", "b", -time.Second)
		r := k.one()
		k.ok(k.s.MarkStep(k.ctx, r, &daybook.StepRecord{Key: r.Key, Step: "charge", State: daybook.EffectBegun, Generation: 1, FirstAt: k.now, Tries: 1, Fence: r.Fence, Order: 1}, daybook.Learned{}))
		k.end(k.find(a.Key), j, daybook.Outcome{Result: daybook.ResultLost})
		equal(k, "holder", k.lock("x").Key, a.Key)
		k.now = k.now.Add(2 * time.Minute)
		r = k.one()
		equal(k, "again", r.Key, a.Key)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "the database is away"}) // before it came to the step
		equal(k, "holder on the ladder", k.lock("x").Key, a.Key)
		equal(k, "hold of b", k.find(b.Key).Hold, daybook.ReasonSerial)
	}},
	{"a question to the far side is under the lock, and so is what is asked again by a person", func(k *kit) {
		j := Job("renew", Once, on("x"), func(j *daybook.Job) { j.Probe = daybook.Command{Shell: "ask"} })
		a, b := k.subject(j, "2026-03-01", "a", -2*time.Second), k.subject(j, "2026-03-01", "b", -time.Second)
		r := k.one()
		k.begin(r, j)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"})
		q := k.one()
		equal(k, "asked", q.Key, a.Key)
		if q.Asking == "" {
			k.Error("it was tried, not asked")
		}
		k.ok(k.s.ReleaseAsking(k.ctx, []*daybook.Run{q}, k.now))
		equal(k, "holder when nobody asks", k.lock("x").Key, a.Key)
		q = k.one()
		Apply(k.ctx, k, k.s, q.Settle([]daybook.Finding{{Answer: daybook.Yes, WireKey: q.WireKey()}}, j.Policy(), k.now, k.now))
		equal(k, "then the next goes", k.one().Key, b.Key)
	}},
	{"an undo of a run is under its serial key", func(k *kit) {
		j := Job("renew", Once, on("x"), func(j *daybook.Job) { j.Undo = daybook.Command{Shell: "refund"} })
		a := k.subject(j, "2026-03-01", "a", -2*time.Second)
		k.try(j, done)
		b := k.subject(j, "2026-03-01", "b", -time.Second)
		equal(k, "b goes", k.one().Key, b.Key)
		u := k.undo(k.find(a.Key))
		equal(k, "serial", u.Serial, "x")
		equal(k, "claimed beside b", len(k.claim(5)), 0)
		equal(k, "hold of the undo", k.find(u.Key).Hold, daybook.ReasonSerial)
		k.begin(k.find(b.Key), j)
		k.end(k.find(b.Key), j, done)
		equal(k, "then the undo goes", k.one().Key, u.Key)
		c := k.subject(j, "2026-03-01", "c", -time.Second)
		equal(k, "claimed beside the undo", len(k.claim(5)), 0)
		r := k.find(u.Key)
		k.ok(k.s.MarkStep(k.ctx, r, &daybook.StepRecord{Key: r.Key, Step: "run", State: daybook.EffectBegun, Generation: 1, FirstAt: k.now, Tries: 1, Fence: r.Fence, Order: 1}, daybook.Learned{}))
		k.end(k.find(u.Key), j, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"})
		equal(k, "an undo that is unknown keeps it", k.lock("x").Key, u.Key)
		equal(k, "hold of c", k.find(c.Key).Hold, daybook.ReasonSerial)
	}},
	{"the undo of a run of a paused job is held, and goes when the job is resumed", func(k *kit) {
		j := Job("renew", Once, on("x"), func(j *daybook.Job) { j.Undo = daybook.Command{Shell: "refund"} })
		a := k.subject(j, "2026-03-01", "a", 0)
		k.try(j, done)
		_, err := k.s.Pause(k.ctx, "renew", k.act("pause"))
		k.ok(err)
		u := k.undo(k.find(a.Key))
		equal(k, "hold", u.Hold, daybook.ReasonPaused)
		equal(k, "claimed", len(k.claim(5)), 0)
		_, err = k.s.Resume(k.ctx, "renew", k.act("resume"))
		k.ok(err)
		equal(k, "then it goes", k.one().Key, u.Key)
	}},
	{"a pause parks what waits for a serial key as paused; others that wait go past it", func(k *kit) {
		j, other := Job("renew", on("x")), Job("mail", on("x"))
		a := k.subject(j, "2026-03-01", "a", -3*time.Second)
		k.one()
		b, c := k.subject(j, "2026-03-01", "b", -2*time.Second), k.subject(other, "2026-03-01", "c", -time.Second)
		equal(k, "claimed", len(k.claim(5)), 0)
		_, err := k.s.Pause(k.ctx, "renew", k.act("pause"))
		k.ok(err)
		equal(k, "hold of b", k.find(b.Key).Hold, daybook.ReasonPaused)
		k.end(k.find(a.Key), j, done)
		equal(k, "c goes", k.one().Key, c.Key)
		_, err = k.s.Resume(k.ctx, "renew", k.act("resume"))
		k.ok(err)
		equal(k, "claimed beside c", len(k.claim(5)), 0)
		k.end(k.find(c.Key), other, done)
		equal(k, "b goes at last", k.one().Key, b.Key)
	}},
	{"when the one that was let go is cancelled, or cannot be claimed, the next one goes", func(k *kit) {
		j := Job("renew", on("x"))
		a := k.subject(j, "2026-03-01", "a", -9*time.Second)
		k.one()
		b, c, d := k.subject(j, "2026-03-01", "b", -8*time.Second), k.subject(j, "2026-03-01", "c", -7*time.Second), k.subject(j, "2026-03-01", "d", -6*time.Second)
		equal(k, "claimed", len(k.claim(5)), 0)
		k.end(k.find(a.Key), j, done)
		equal(k, "b was let go", k.find(b.Key).Hold, "")
		m, err := k.find(b.Key).Cancel("ops", "because", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		equal(k, "c was let go by that", k.find(c.Key).Hold, "")
		equal(k, "d waits", k.find(d.Key).Hold, daybook.ReasonSerial)
		_, err = k.raw.ExecContext(k.ctx, "UPDATE daybook_live SET home = 'an application that is away' WHERE key = 'renew:2026-03-01/c'")
		k.ok(err)
		equal(k, "claimed", len(k.claim(5)), 0)
		more, err := k.s.Unpark(k.ctx, k.now)
		k.ok(err)
		equal(k, "found", more, true)
		equal(k, "d goes", k.one().Key, d.Key)
	}},
	{"a lock whose holder is gone is found and let go", func(k *kit) {
		j := Job("renew", on("x"))
		k.subject(j, "2026-03-01", "a", 0)
		_, err := k.raw.ExecContext(k.ctx, "INSERT INTO daybook_locks (serial, key, since_us) VALUES ('x', 'renew:2025-01-01/z', 1)")
		k.ok(err)
		equal(k, "claimed", len(k.claim(1)), 0)
		l := k.lock("x")
		equal(k, "holder", l.Key, "renew:2025-01-01/z")
		equal(k, "at work or open", l.Claimed || l.Open, false)
		more, err := k.s.Unpark(k.ctx, k.now)
		k.ok(err)
		equal(k, "found", more, true)
		equal(k, "then it goes", len(k.claim(1)), 1)
		more, err = k.s.Unpark(k.ctx, k.now)
		k.ok(err)
		equal(k, "found", more, false)
	}},
	{"the end of the holder closes the alert that it had the key for too long", func(k *kit) {
		j := Job("renew", on("x"))
		a := k.subject(j, "2026-03-01", "a", 0)
		k.one()
		k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertSerialStuck, a.Key, a.Job, a.Priority, "held for 2 h", "", k.now)))
		k.end(k.find(a.Key), j, done)
		open, err := k.s.Alerts(k.ctx, true, 10)
		k.ok(err)
		equal(k, "open alerts", len(open), 0)
	}},
	{"thousands of runs that wait for one serial key: each once, in order, and no claim looks past them", func(k *kit) {
		k.wait(*waiters)
		k.work(*waiters)
	}},
	{"ten thousand runs wait for one serial key: parked in one claim or a few, let go one by one, the oldest first", tenThousand},
	{"sixteen claimers: two runs of one serial key are never at work at once", concurrentSerial},
	{"random claims, losses, replays, undos, pauses and cancels: one at a time, and nothing waits for nobody", randomSerial},
}

// wait adds runs that all have one serial key.
func (k *kit) wait(n int) {
	k.Helper()
	j := Job("renew", on("x"))
	k.know(j)
	for i := range n {
		r := daybook.NewRun(j, 1, Day("2026-03-01"), 1, fmt.Sprintf("s%05d", i), k.now)
		r.Due = k.now.Add(time.Duration(i)*time.Microsecond - time.Second)
		k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceEvent}, r)
	}
}

// work claims and ends them, one after the other.
func (k *kit) work(n int) {
	k.Helper()
	j := Job("renew", on("x"))
	for i := range n {
		runs := k.claim(16)
		if len(runs) != 1 || runs[0].Subject != fmt.Sprintf("s%05d", i) {
			k.Fatalf("claim %d brought %v", i, keys(runs))
		}
		Apply(k.ctx, k, k.s, runs[0].Next(done, j.Policy(), k.now))
	}
	equal(k, "done", k.number("SELECT count(*) FROM daybook_runs WHERE state = 'done' AND attempts = 1"), int64(n))
	equal(k, "locks", k.number("SELECT count(*) FROM daybook_locks"), 0)
}

// tenThousand has the windows of 27 years wait for one lock. Some of them are done, so that the case is short: what one costs
// does not depend on how many wait, see BenchmarkSerialWaiters.
func tenThousand(k *kit) {
	const waiting, worked = 10_000, 60
	j := Job("renew", on("x"))
	k.know(j)
	first := Birth.AddDate(0, 0, -waiting)
	label := func(i int) string { return first.AddDate(0, 0, i).Format(time.DateOnly) }
	p := k.plan(j, 1, 1, 0)
	p.Windows = p.Windows[:0]
	for i := range waiting {
		w := Day(label(i))
		p.Windows = append(p.Windows, daybook.PlannedWindow{Window: w, Fires: []string{w.Label + "T02:00"}, FireAt: w.Start, Last: w.Start})
	}
	equal(k, "planned", k.planned(p)[0].Started, waiting)
	const free = "SELECT count(*) FROM daybook_live WHERE state = 'scheduled' AND hold = ''"
	k.now = p.To.Add(time.Hour)
	r := k.one()
	for range 10 {
		equal(k, "claimed beside it", len(k.claim(16)), 0)
	}
	equal(k, "nobody waits in the index of what is due", k.number(free), 0)
	equal(k, "locks", k.number("SELECT count(*) FROM daybook_locks"), 1)
	for i := range worked {
		equal(k, "at work", string(r.Key), "renew:"+label(i))
		k.end(r, j, done)
		equal(k, "let go", k.number(free), 1)
		r = k.one()
	}
	equal(k, "waiting", k.number("SELECT count(*) FROM daybook_live WHERE hold = 'waiting for serial key'"), waiting-worked-1)
}

func concurrentSerial(k *kit) {
	const runs, objects = 400, 7
	j := Job("renew", on("{date}"))
	k.know(j)
	for i := range runs {
		r := daybook.NewRun(j, 1, Day(Birth.AddDate(0, 0, i%objects).Format(time.DateOnly)), 1, fmt.Sprint(i), k.now)
		r.Due = k.now
		k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceEvent}, r)
	}
	var atWork [objects]atomic.Int64
	var ended atomic.Int64
	at := func(r *daybook.Run) *atomic.Int64 {
		return &atWork[int(r.Window.Start.Sub(Day(Birth.Format(time.DateOnly)).Start).Hours()/24)]
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for ended.Load() < runs && k.ctx.Err() == nil && !k.Failed() {
				claimed, err := k.s.Claim(k.ctx, daybook.Claim{Node: fmt.Sprint("n", i), Lane: daybook.LaneLive, Limit: 5, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
				if err != nil {
					k.Error(err)
					return
				}
				for _, r := range claimed {
					if at(r).Add(1) != 1 {
						k.Errorf("%s is at work beside another", r.Key)
					}
				}
				for _, r := range claimed {
					at(r).Add(-1)
					applied, err := k.s.Apply(k.ctx, []daybook.Transition{r.Next(done, j.Policy(), k.now)})
					if err != nil || applied[0].Stale {
						k.Errorf("%s: %+v %v", r.Key, applied, err)
					}
					ended.Add(1)
				}
				if len(claimed) == 0 {
					if _, err := k.s.Unpark(k.ctx, k.now); err != nil && daybook.CodeOf(err) != daybook.CodeStale {
						k.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	equal(k, "done", k.number("SELECT count(*) FROM daybook_runs WHERE state = 'done' AND attempts = 1"), runs)
	equal(k, "locks", k.number("SELECT count(*) FROM daybook_locks"), 0)
}

// serialWorld is what the random case moves.
type serialWorld struct {
	*kit
	r    *rand.Rand
	jobs []*daybook.Job
}

func randomSerial(k *kit) {
	for seed := range uint64(*serialSeeds) {
		w := serialWorld{kit: k, r: rand.New(rand.NewPCG(seed, 7))}
		for i, change := range []func(*daybook.Job){
			func(*daybook.Job) {}, Once, func(j *daybook.Job) { Once(j); j.Remembers = 24 * time.Hour },
			func(j *daybook.Job) { Once(j); j.Probe = daybook.Command{Shell: "ask"} },
		} {
			j := Job(fmt.Sprintf("w%d-j%d", seed, i), on(fmt.Sprintf("w%d:{subject}", seed)), change, func(j *daybook.Job) {
				j.Undo, j.Retry.Backoff = daybook.Command{Shell: "refund"}, []time.Duration{time.Minute, time.Minute}
			})
			w.jobs = append(w.jobs, j)
			for d := range 3 {
				for s := range 2 {
					k.subject(j, Birth.AddDate(0, 0, d).Format(time.DateOnly), fmt.Sprint("s", s), -time.Duration(w.r.IntN(1000))*time.Millisecond)
				}
			}
		}
		for range 150 {
			w.step()
			w.check(seed)
			if k.Failed() {
				return
			}
		}
		w.drain(seed)
	}
}

func (w *serialWorld) jobOf(r *daybook.Run) *daybook.Job {
	for _, j := range w.jobs {
		if j.Name == r.Job {
			return j
		}
	}
	w.Fatalf("whose is %s?", r.Key)
	return nil
}

func (w *serialWorld) all() []*daybook.Run {
	var all []*daybook.Run
	for _, j := range w.jobs {
		runs, err := w.s.Runs(w.ctx, daybook.Filter{Prefix: j.Name + ":", Limit: 1000})
		w.ok(err)
		for _, r := range runs {
			all = append(all, w.find(r.Key))
		}
	}
	return all
}

func (w *serialWorld) apply(m daybook.Transition) {
	_, err := w.s.Apply(w.ctx, []daybook.Transition{m})
	w.ok(err)
}

// end lets the attempt or the question that a run is claimed for end somehow.
func (w *serialWorld) end(r *daybook.Run) {
	j := w.jobOf(r)
	if r.Asking != "" {
		answer := []daybook.Answer{daybook.Yes, daybook.No, daybook.CannotTell}[w.r.IntN(3)]
		w.apply(r.Settle([]daybook.Finding{{Answer: answer, WireKey: r.WireKey()}}, j.Policy(), w.now, w.now))
		return
	}
	if r.OneEffect() {
		e, ok := r.Begin(j.Policy(), w.now)
		if !ok {
			w.apply(r.Unsettled(j.Policy(), w.now))
			return
		}
		w.ok(w.s.Begin(w.ctx, r, e, w.now))
	}
	result := []daybook.Result{daybook.ResultDone, daybook.ResultDone, daybook.ResultNotDone, daybook.ResultPermanent, daybook.ResultUnclear, daybook.ResultUnknown,
		daybook.ResultLost, daybook.ResultInterrupted}[w.r.IntN(8)]
	m := r.Next(daybook.Outcome{Result: result, Error: "so it ended", Interrupted: result == daybook.ResultInterrupted}, j.Policy(), w.now)
	if r.Key.IsUndo() && m.To == daybook.Done {
		then := w.find(r.Key.Base()).Undone("ops", w.now)
		m.Then = &then
	}
	w.apply(m)
}

// step does one thing at random.
func (w *serialWorld) step() {
	w.now = w.now.Add(time.Duration(w.r.IntN(90)) * time.Second)
	all := w.all()
	r := all[w.r.IntN(len(all))]
	switch w.r.IntN(10) {
	case 0, 1, 2:
		w.claim(1 + w.r.IntN(4))
	case 3, 4, 5:
		for _, r := range all {
			if r.State == daybook.Running || r.Asking != "" {
				w.end(r)
				break
			}
		}
	case 6:
		if _, _, err := w.s.Trigger(w.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceReplay, Actor: "ops"}, nil, w.now); err != nil {
			w.Fatal(err)
		}
	case 7:
		if m, err := r.Undo("ops", "because", w.now); err == nil {
			w.apply(m)
		} else if m, err := r.Resolve([]daybook.Resolution{daybook.AsDone, daybook.AsNotDone}[w.r.IntN(2)], w.jobOf(r).Policy(), "ops", "seen", w.now); err == nil {
			w.apply(m)
		}
	case 8:
		if m, err := r.Cancel("ops", "because", w.now); err == nil {
			w.apply(m)
		}
	case 9:
		set := w.s.Pause
		if w.r.IntN(2) == 0 {
			set = w.s.Resume
		}
		_, err := set(w.ctx, r.Job, w.act("pause"))
		w.ok(err)
	}
}

// check holds what must hold after whatever happened.
func (w *serialWorld) check(seed uint64) {
	w.Helper()
	atWork := make(map[string]daybook.Key)
	needs := make(map[string]daybook.Key)
	free := make(map[string]bool)
	parked := make(map[string]int)
	for _, r := range w.all() {
		if !r.Lease.IsZero() {
			if other := atWork[r.Serial]; other != "" {
				w.Errorf("seed %d: %s and %s are at work at once", seed, r.Key, other)
			}
			atWork[r.Serial] = r.Key
		}
		open := r.Effect != nil && (r.Effect.State == daybook.EffectBegun || r.Effect.State == daybook.EffectUnknown) || len(r.OpenSteps()) > 0
		if open || !r.Lease.IsZero() {
			if other := needs[r.Serial]; other != "" {
				w.Errorf("seed %d: %s and %s both need %s", seed, r.Key, other, r.Serial)
			}
			needs[r.Serial] = r.Key
		}
		if r.Hold == daybook.ReasonSerial {
			parked[r.Serial]++
		} else if r.State.Live() && r.State != daybook.Running {
			free[r.Serial] = true
		}
	}
	locks, err := w.s.Locks(w.ctx, 1000)
	w.ok(err)
	have := make(map[string]daybook.Key)
	for _, l := range locks {
		have[l.Serial] = l.Key
		if needs[l.Serial] != l.Key && l.Serial[:2] == fmt.Sprint("w", seed) {
			w.Errorf("seed %d: %s is held by %s, needed by %q", seed, l.Serial, l.Key, needs[l.Serial])
		}
	}
	for serial, key := range needs {
		if have[serial] != key {
			w.Errorf("seed %d: %s needs %s, which %q has", seed, key, serial, have[serial])
		}
	}
	for serial := range parked {
		if have[serial] == "" && !free[serial] {
			w.Errorf("seed %d: %d runs wait for %s, which nobody has", seed, parked[serial], serial)
		}
	}
}

// drain lets everything come to its end: nothing is left waiting.
func (w *serialWorld) drain(seed uint64) {
	w.Helper()
	for _, j := range w.jobs {
		_, err := w.s.Resume(w.ctx, j.Name, w.act("resume"))
		w.ok(err)
	}
	for range 2000 {
		w.now = w.now.Add(2 * time.Minute)
		_, err := w.s.Unpark(w.ctx, w.now)
		w.ok(err)
		w.claim(10)
		live := 0
		for _, r := range w.all() {
			if r.State == daybook.Running || r.Asking != "" {
				w.end(r)
			}
			if r.Letter != nil && r.Letter.State == daybook.LetterOpen && r.Letter.Kind == daybook.LetterUnknown {
				if m, err := w.find(r.Key).Resolve(daybook.AsDone, w.jobOf(r).Policy(), "ops", "seen", w.now); err == nil {
					w.apply(m)
				}
			}
			if r = w.find(r.Key); r.State.Live() {
				live++
			}
		}
		w.check(seed)
		if live == 0 || w.Failed() {
			return
		}
	}
	w.Errorf("seed %d: something is still live", seed)
}
