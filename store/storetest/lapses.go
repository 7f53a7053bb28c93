package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store/faultstore"
)

// rewrite changes the tables behind the ledger's back.
func (k *kit) rewrite(statements ...string) {
	k.Helper()
	db := k.db.Open(k)
	for _, s := range statements {
		_, err := db.Write.ExecContext(k.ctx, s)
		k.ok(err)
	}
}

// lapse records that the ledger forgot what happened in the last hour.
func (k *kit) lapse(number int64) daybook.Lapse {
	k.Helper()
	l := daybook.Lapse{Number: number, Since: k.now.Add(-time.Hour), FoundAt: k.now, Node: "n1", Detail: "a backup was put back"}
	put, err := k.s.PutLapse(k.ctx, l, k.act("found that the ledger forgot"))
	k.ok(err)
	equal(k, "put", put, true)
	return l
}

// questions applies what Question says of every run that is questionable.
func (k *kit) questions(p daybook.Policy) int {
	k.Helper()
	runs, err := k.s.Questionable(k.ctx, "", "", 100)
	k.ok(err)
	for _, r := range runs {
		m, ok := r.Question(p, k.now)
		if !ok {
			k.Fatalf("nothing is to be done about %s", r.Key)
		}
		Apply(k.ctx, k, k.s, m)
	}
	return len(runs)
}

func (k *kit) unsettled(letters, questions int) {
	k.Helper()
	l, q, err := k.s.Unsettled(k.ctx)
	k.ok(err)
	equal(k, "letters", l, letters)
	equal(k, "questions", q, questions)
}

var n1 = daybook.Node{ID: "n1", Host: "a", Role: "serve"}

var lapseCases = []example{
	{"the end of the freeze does not let go what is paused in the same moment", func(k *kit) {
		if !k.onlyPostgres() { // SQLite has one writer
			return
		}
		j := Job("renew", Once, canAsk)
		key := k.run(j, "2026-03-01").Key
		k.lapse(1)
		k.asks(j)
		_, err := k.s.Questionable(k.ctx, "", "", 100) // it came back, and is held again
		k.ok(err)
		equal(k, "hold", k.find(key).Hold, daybook.ReasonRestored)
		pause, err := k.raw.BeginTx(k.ctx, nil) // what Pause does, before its commit
		k.ok(err)
		for _, text := range []string{
			`SELECT name FROM daybook_jobs WHERE name = 'renew' FOR UPDATE`,
			`SELECT key FROM daybook_live WHERE job = 'renew' ORDER BY key FOR UPDATE`,
			`UPDATE daybook_jobs SET paused = 1 WHERE name = 'renew' AND paused <> 1`,
			`UPDATE daybook_live SET hold = 'paused' WHERE job = 'renew' AND hold IN ('', 'waiting for serial key') AND state <> 'running'`,
		} {
			_, err := pause.ExecContext(k.ctx, text)
			k.ok(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := k.s.EndHold(k.ctx, daybook.HoldRestored, k.act("end"))
			ended <- err
		}()
		k.until(k.raw, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		k.ok(pause.Commit())
		k.ok(<-ended)
		equal(k, "hold", k.find(key).Hold, daybook.ReasonPaused)
		equal(k, "claimed of a paused job", len(k.claim(10)), 0)
	}},
	{"a beat finds that the ledger does not know of the last one, and writes nothing", func(k *kit) {
		n := n1
		n.StartedAt = k.now
		for range 3 {
			k.ok(k.s.Beat(k.ctx, n, k.now))
		}
		seen, err := k.s.Seen(k.ctx)
		k.ok(err)
		equal(k, "mark", seen.Marks["n1"].Number, 3)
		equal(k, "sequence", seen.Sequence, 3)
		equal(k, "written", seen.Written, k.now)
		for _, older := range []string{`UPDATE daybook_nodes SET mark = 2`, `DELETE FROM daybook_nodes`} {
			k.rewrite(older)
			before := k.dump()
			err = k.s.Beat(k.ctx, n, k.now.Add(time.Minute))
			k.code(err, daybook.CodeUnavailable)
			if !errors.Is(err, daybook.ErrForgot) {
				k.Errorf("%v", err)
			}
			equal(k, "written", k.dump(), before)
		}
	}},
	{"an effect does not begin in a ledger that does not know of the last one that began", func(k *kit) {
		j := Job("renew", Once)
		n := n1
		n.StartedAt = k.now
		k.ok(k.s.Beat(k.ctx, n, k.now))
		k.run(j, "2026-03-01")
		k.begin(k.one(), j)
		seen, err := k.s.Seen(k.ctx)
		k.ok(err)
		equal(k, "mark", seen.Marks["n1"].Number, 2)
		k.rewrite(`UPDATE daybook_nodes SET mark = 1`)
		j = Job("pay", Once)
		k.run(j, "2026-03-02")
		r := k.one()
		before := k.dump()
		if err := begin(k.ctx, k.s, r, j, k.now); !errors.Is(err, daybook.ErrForgot) {
			k.Errorf("began: %v", err)
		}
		equal(k, "written", k.dump(), before)
		k.s.Remember(seen) // as found by somebody else: what was known then is known now
		k.rewrite(`UPDATE daybook_nodes SET mark = 2`)
		k.ok(begin(k.ctx, k.s, r, j, k.now))
	}},
	{"nor does one that is being marked while it is found that the ledger forgot", func(k *kit) {
		if !k.onlyPostgres() { // SQLite has one writer
			return
		}
		f := faultstore.New(1)
		s := k.faulty(f)
		n := n1
		n.StartedAt = k.now
		k.ok(s.Beat(k.ctx, n, k.now))
		j := Job("renew", Once)
		k.run(j, "2026-03-01")
		k.ok(begin(k.ctx, s, k.one(), j, k.now))
		k.rewrite(`UPDATE daybook_nodes SET mark = 1`)
		j = Job("pay", Once)
		k.run(j, "2026-03-02")
		r := k.one()
		f.Add(faultstore.Rule{Contains: "INTO daybook_steps", Nth: 1, Hook: func(context.Context, faultstore.Call) error {
			k.lapse(1)
			stands, err := k.s.Seen(k.ctx)
			k.ok(err)
			s.Remember(stands)
			return nil
		}})
		if err := begin(k.ctx, s, r, j, k.now); !errors.Is(err, daybook.ErrForgot) {
			k.Errorf("began: %v", err)
		}
		if err := begin(k.ctx, s, r, j, k.now); !errors.Is(err, daybook.ErrStale) {
			k.Errorf("began afterwards: %v", err)
		}
	}},
	{"the same holds for an effect that the work marks", func(k *kit) {
		j := Job("renew", Once, Steps)
		n := n1
		n.StartedAt = k.now
		k.ok(k.s.Beat(k.ctx, n, k.now))
		k.run(j, "2026-03-01")
		r := k.one()
		r, _, err := k.come(r, "charge")
		k.ok(err)
		k.rewrite(`UPDATE daybook_nodes SET mark = 1`)
		before := k.dump()
		if _, _, err = k.come(r, "extend"); !errors.Is(err, daybook.ErrForgot) {
			k.Errorf("began: %v", err)
		}
		equal(k, "written", k.dump(), before)
	}},
	{"a node that is not listed counts nothing", func(k *kit) {
		j := Job("renew", Once)
		k.run(j, "2026-03-01")
		k.begin(k.one(), j)
	}},
	{"while its freeze stands, nothing is claimed that may happen once only, but for questions; other work goes on", func(k *kit) {
		once, steps, other, asked := Job("renew", Once), Job("mails", Steps), Job("report"), Job("pay", Once, func(j *daybook.Job) { j.HasProbe = true })
		k.know(once, steps, other, asked)
		k.run(asked, "2026-03-01")
		r := k.one()
		k.begin(r, asked)
		k.end(r, asked, daybook.Outcome{Result: daybook.ResultUnknown})
		for _, j := range []*daybook.Job{once, steps, other} {
			k.run(j, "2026-03-01")
		}
		k.lapse(1)
		for _, j := range []*daybook.Job{once, steps, other} {
			k.run(j, "2026-03-02")
		}
		r = k.template(once, "2026-03-03")
		reply, _ := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Effects: daybook.Once}, r)
		equal(k, "because", reply.Because, string(daybook.ReasonRestored))
		got := keys(k.claim(100))
		slices.Sort(got)
		if !slices.Equal(got, []daybook.Key{"pay:2026-03-01", "report:2026-03-01"}) {
			k.Errorf("claimed %v", got)
		}
		for _, key := range []daybook.Key{"renew:2026-03-01", "mails:2026-03-01", "renew:2026-03-02", "mails:2026-03-02", "renew:2026-03-03"} {
			r := k.find(key)
			equal(k, string(key), r.Hold, daybook.ReasonRestored)
			equal(k, string(key)+" is doubted", len(r.Doubts), 1)
			equal(k, "knows of", r.Lapse, 1)
		}
		equal(k, "report is doubted", len(k.find("report:2026-03-01").Doubts), 0)
		k.rewrite(`UPDATE daybook_live SET hold = '' WHERE key = 'renew:2026-03-02'`) // as what had its turn
		equal(k, "claimed", len(k.claim(100)), 0)
	}},
	{"fences that were given before are never given again", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		k.lapse(3)
		r := k.one()
		equal(k, "fence", r.Fence, daybook.FenceFloor(3)+1)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultNotDone})
		k.rewrite(`UPDATE daybook_live SET due_us = 1`)
		equal(k, "fence", k.one().Fence, daybook.FenceFloor(3)+2)
	}},
	{"a lapse of a number is found once, with one freeze and one alert, and is not one that began before", func(k *kit) {
		l := k.lapse(1)
		put, err := k.s.PutLapse(k.ctx, l, k.act("found again"))
		k.ok(err)
		equal(k, "put again", put, false)
		k.lapse(2)
		all, err := k.s.Lapses(k.ctx)
		k.ok(err)
		equal(k, "lapses", len(all), 2)
		l.Number = 2
		equal(k, "newest", *all[0], l)
		holds, err := k.s.Holds(k.ctx)
		k.ok(err)
		equal(k, "holds", len(holds), 1)
		equal(k, "hold", holds[0].Name, daybook.HoldRestored)
		equal(k, "alerts", k.number("SELECT count(*) FROM daybook_alerts WHERE closed_us = 0 AND kind = 'ledger_restored' AND priority = 'P0'"), 1)
	}},
	{"what was decided before a lapse was found does not begin", func(k *kit) {
		j := Job("renew", Once)
		k.run(j, "2026-03-01")
		r := k.one()
		k.lapse(1)
		k.code(begin(k.ctx, k.s, r, j, k.now), daybook.CodeStale)
		steps := Job("mails", Steps)
		k.rewrite(`UPDATE daybook_lapses SET ended_us = 1`)
		k.run(steps, "2026-03-01")
		r = k.one()
		k.lapse(2)
		_, _, err := k.come(r, "charge")
		k.code(err, daybook.CodeStale)
	}},
	{"the freeze is ended when what was in the ledger before is settled, and what it held may start", func(k *kit) {
		asks, person, remembers, later := Job("asks", Once), Job("person", Once), Job("remembers", Once), Job("later", Once)
		k.know(asks, person, remembers, later)
		for _, j := range []*daybook.Job{asks, person, remembers} {
			k.run(j, "2026-03-01")
		}
		k.now = k.now.Add(time.Hour)
		k.lapse(1)
		k.now = k.now.Add(time.Hour)
		k.run(later, "2026-03-01") // of the time after it: not what the end waits for
		k.unsettled(0, 3)
		_, err := k.s.EndHold(k.ctx, daybook.HoldRestored, k.act("end"))
		k.code(err, daybook.CodeConflict)
		runs, err := k.s.Questionable(k.ctx, "", "", 100)
		k.ok(err)
		equal(k, "questionable", len(runs), 3)
		policies := map[string]daybook.Policy{"asks": {Asks: true, Settles: time.Minute}, "person": {}, "remembers": {Remembers: 24 * time.Hour}}
		for _, r := range runs {
			m, ok := r.Question(policies[r.Job], k.now)
			equal(k, r.Job, ok, true)
			Apply(k.ctx, k, k.s, m)
		}
		equal(k, "questionable, once decided", k.questions(daybook.Policy{}), 0)
		k.unsettled(1, 1)
		q := k.one()
		equal(k, "asked", q.Key, "asks:2026-03-01")
		if q.Asking == "" || q.Effect == nil || q.Effect.Doubt != 1 {
			k.Errorf("%+v", q.Effect)
		}
		m := q.Settle([]daybook.Finding{{Answer: daybook.No}}, policies["asks"], k.now, k.now)
		Apply(k.ctx, k, k.s, m)
		k.unsettled(1, 0)
		equal(k, "claimed", len(k.claim(10)), 0)
		dead := k.find("person:2026-03-01")
		equal(k, "letter", dead.Letter.Kind, daybook.LetterUnknown)
		m, err = dead.Resolve(daybook.AsNotDone, daybook.Policy{}, "ops", "looked", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		k.unsettled(0, 0)
		equal(k, "claimed", len(k.claim(10)), 0)
		changed, err := k.s.EndHold(k.ctx, daybook.HoldRestored, k.act("end"))
		k.ok(err)
		equal(k, "changed", changed, true)
		equal(k, "open alerts", k.number("SELECT count(*) FROM daybook_alerts WHERE closed_us = 0 AND kind = 'ledger_restored'"), 0)
		claimed := map[daybook.Key]*daybook.Run{}
		for _, r := range k.claim(10) {
			claimed[r.Key] = r
		}
		equal(k, "claimed", len(claimed), 4)
		for _, key := range slices.Sorted(maps.Keys(claimed)) {
			r := claimed[key]
			e, may := r.Begin(policies[r.Job], k.now)
			switch key {
			case "asks:2026-03-01", "person:2026-03-01":
				equal(k, string(key)+" may begin", may, true)
				equal(k, "generation", e.Generation, 2)
			case "remembers:2026-03-01":
				equal(k, string(key)+" may begin", may, true)
				equal(k, "generation", e.Generation, 1)
			default:
				equal(k, string(key)+" may begin", may, false)
			}
		}
	}},
	{"what the end of the freeze releases goes back to what else holds it", func(k *kit) {
		j := Job("renew", Once)
		k.know(j)
		k.lapse(1)
		k.now = k.now.Add(time.Minute)
		k.run(j, "2026-03-01")
		_, err := k.s.Pause(k.ctx, "renew", k.act("pause"))
		k.ok(err)
		_, err = k.s.EndHold(k.ctx, daybook.HoldRestored, k.act("end"))
		k.ok(err)
		equal(k, "hold", k.find("renew:2026-03-01").Hold, daybook.ReasonPaused)
	}},
	{"a listing goes on, since it touches nothing", func(k *kit) {
		j := Job("renew", Once)
		k.know(j)
		k.run(j, "2026-03-01")
		k.lapse(1)
		equal(k, "questions", k.questions(daybook.Policy{Lists: true}), 1)
		equal(k, "claimed", k.one().Key, "renew:2026-03-01")
	}},
}
