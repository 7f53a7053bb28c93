package storetest

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store/faultstore"
)

// What another transaction that stands still, or two that meet, must not do.
var standingCases = []example{
	{"a batch of a listing renews the lease, which nobody else can meanwhile", func(k *kit) {
		j := subjectsJob()
		k.know(j)
		k.run(j, "2026-03-01")
		p := k.one()
		for i := range 3 {
			lease := k.now.Add(time.Duration(i+1) * time.Hour)
			_, _, err := k.s.ListChildren(k.ctx, p, k.children(p, j, 10*i, 10*i+10), lease)
			k.ok(err)
			equal(k, "lease", k.find(p.Key).Lease, lease)
		}
		_, _, err := k.s.ListChildren(k.ctx, p, k.children(p, j, 30, 40), k.now)
		k.ok(err)
		equal(k, "never shorter", k.find(p.Key).Lease, k.now.Add(3*time.Hour))
	}},
	{"whose end was asked for before it began does not begin", func(k *kit) {
		j := Job("renew", Once)
		k.run(j, "2026-03-01")
		r := k.one()
		k.ok(k.s.CancelRunning(k.ctx, r.Key, r.Fence, k.act("cancel")))
		k.code(begin(k.ctx, k.s, r, j, k.now), daybook.CodeStale)
		r = k.find(r.Key)
		if r.Effect != nil {
			k.Errorf("marked begun: %+v", r.Effect)
		}
		Apply(k.ctx, k, k.s, r.Next(daybook.Outcome{Result: daybook.ResultLost}, j.Policy(), k.now))
		equal(k, "state", k.find(r.Key).State, daybook.Cancelled)
	}},
	{"rescues pass over a row that a transaction which stands still has locked", func(k *kit) {
		if !k.onlyPostgres() {
			return // there is one writer
		}
		j := Job("mail", allow)
		k.run(j, "2026-03-01")
		k.run(j, "2026-03-02")
		runs := k.claim(2)
		k.now = k.now.Add(time.Hour)
		expired, err := k.s.Expired(k.ctx, k.now, k.now.Add(time.Minute), 10)
		k.ok(err)
		var moves []daybook.Transition
		for _, r := range expired {
			moves = append(moves, r.Next(daybook.Outcome{Result: daybook.ResultLost}, j.Policy(), k.now))
		}
		tx, err := k.raw.BeginTx(k.ctx, nil)
		k.ok(err)
		defer func() { _ = tx.Rollback() }()
		_, err = tx.ExecContext(k.ctx, "UPDATE daybook_live SET marks = marks + 1 WHERE key = $1", string(runs[0].Key)) // as a step in a caller's own
		k.ok(err)
		ctx, cancel := context.WithTimeout(k.ctx, 20*time.Second)
		defer cancel()
		applied, err := k.s.Apply(ctx, moves)
		k.ok(err)
		for i, m := range moves {
			equal(k, "stale "+string(m.Key), applied[i].Stale, m.Key == runs[0].Key)
		}
		k.ok(tx.Rollback())
		expired, err = k.s.Expired(k.ctx, k.now, k.now.Add(time.Minute), 10)
		k.ok(err)
		equal(k, "left for the next pass", len(expired), 1)
	}},
	{"an alert that a further letter relies on is not closed beside it", reliedOn},
	{"the breaker leaves alone whose outcome is unknown: it is asked for", func(k *kit) {
		j := subjectsJob(Once, probed)
		k.listed(j, "2026-03-01", 12)
		k.look(j)
		runs := k.claim(5)
		for i, r := range runs {
			k.begin(r, j)
			o := daybook.Outcome{Result: daybook.ResultNotDone, Error: "the gateway is down"}
			if i == 0 {
				o.Result = daybook.ResultUnknown
			}
			k.end(r, j, o)
		}
		k.look(j)
		equal(k, "hold of another", k.find(runs[1].Key).Hold, daybook.ReasonBreaker)
		q := k.one()
		equal(k, "asked about", q.Key, runs[0].Key)
		equal(k, "a question", q.Asking != "", true)
	}},
}

func reliedOn(k *kit) {
	if !k.onlyPostgres() {
		return // the other has one writer at a time
	}
	j := subjectsJob()
	p := k.listed(j, "2026-03-01", 2)
	k.look(j)
	runs := k.claim(2)
	failed := daybook.Outcome{Result: daybook.ResultPermanent, Error: "card declined"}
	first := k.end(runs[0], j, failed)
	m, err := first.Dismiss("ops", "customer left", k.now)
	k.ok(err)
	Apply(k.ctx, k, k.s, m)
	looked := make(chan error, 1)
	f := faultstore.New(1)
	s := k.faulty(f)
	f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(context.Context, faultstore.Call) error {
		go func() { looked <- k.s.Look(k.ctx, p.Key, j.Policy(), 8, k.now) }()
		k.until(k.raw, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		return nil
	}})
	Apply(k.ctx, k, s, runs[1].Next(failed, j.Policy(), k.now))
	k.ok(<-looked)
	k.look(j)
	equal(k, "alerts that stand open", k.number(`SELECT count(*) FROM daybook_alerts WHERE closed_us = 0`), 1)
	equal(k, "alerts", k.number(`SELECT count(*) FROM daybook_alerts`), 1)
}
