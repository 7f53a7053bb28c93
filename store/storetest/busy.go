package storetest

import (
	"fmt"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
)

var busyCases = []example{
	{"a claim and an end wait for a writer of another process and succeed (H45)", func(k *kit) {
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		r := k.claim(1)[0]
		k.run(j, "2026-03-02")
		other := k.db.Open(k).Write
		t, err := other.BeginTx(k.ctx, nil)
		k.ok(err)
		_, err = t.ExecContext(k.ctx, "UPDATE daybook_ledger SET sequence = sequence + 1")
		k.ok(err)
		claimed, ended := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := k.s.Claim(k.ctx, daybook.Claim{Node: "n2", Lane: daybook.LaneLive, Limit: 1, Lease: k.now, NewID: NewID}, k.now)
			claimed <- err
		}()
		go func() {
			_, err := k.s.Apply(k.ctx, []daybook.Transition{r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now)})
			ended <- err
		}()
		if k.db.Name == "postgres" { // nothing is locked that they want
			k.ok(<-claimed)
			k.ok(<-ended)
			k.ok(t.Commit())
			return
		}
		select {
		case err := <-claimed:
			k.Errorf("the claim did not wait: %v", err)
		case err := <-ended:
			k.Errorf("the end did not wait: %v", err)
		default:
		}
		k.ok(t.Commit())
		k.ok(<-claimed)
		k.ok(<-ended)
	}},
	{"two processes on one ledger, sixteen writers, two thousand jobs: nobody is told that it is busy (H45)", func(k *kit) {
		per := 125
		if short() {
			per = 12
		}
		j := Job("mail", allow)
		k.know(j)
		second := ledgerOn(k, k.db.Name, k.db.Open(k))
		done := together(16, func(i int) bool {
			s := []*store.Store{k.s, second}[i%2]
			for n := range per {
				r := daybook.NewRun(j, 1, Day("2026-03-01"), 1, fmt.Sprintf("s%02d-%04d", i, n), k.now)
				r.Due = k.now
				if _, _, err := s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceEvent}, r, k.now); err != nil {
					k.Error(err)
					return false
				}
				if n%5 != 4 {
					continue
				}
				runs, err := s.Claim(k.ctx, daybook.Claim{Node: fmt.Sprint("n", i), Lane: daybook.LaneLive, Limit: 8, Lease: k.now, NewID: NewID}, k.now)
				if err != nil {
					k.Error(err)
					return false
				}
				var ms []daybook.Transition
				for _, r := range runs {
					ms = append(ms, r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now))
				}
				if _, err := s.Apply(k.ctx, ms); err != nil {
					k.Error(err)
					return false
				}
			}
			return true
		})
		equal(k, "writers", done, 16)
		equal(k, "runs", k.number("SELECT count(*) FROM daybook_runs"), int64(16*per))
		ended := k.number("SELECT count(*) FROM daybook_runs WHERE state = 'done'")
		equal(k, "attempts", k.number("SELECT count(*) FROM daybook_attempts"), ended)
		equal(k, "live", k.number("SELECT count(*) FROM daybook_live"), int64(16*per)-ended)
	}},
}
