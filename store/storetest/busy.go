package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
)

// lockHeld is how long another writer keeps the ledger to itself: less than the patience of a handle, five seconds.
const lockHeld = 2 * time.Second

var busyCases = []example{
	{"a claim, an end and an event wait two seconds for a writer of another process and succeed (H45)", func(k *kit) {
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		r := k.claim(1)[0]
		k.run(j, "2026-03-02")
		event := daybook.NewRun(j, 1, Day("2026-03-03"), 1, "sub_7", k.now)
		event.Due = k.now
		other := k.db.Open(k).Write
		t, err := other.BeginTx(k.ctx, nil)
		k.ok(err)
		_, err = t.ExecContext(k.ctx, "UPDATE daybook_ledger SET sequence = sequence + 1")
		k.ok(err)
		acts := map[string]func() error{
			"the claim": func() error {
				runs, err := k.s.Claim(k.ctx, daybook.Claim{Node: "n2", Lane: daybook.LaneLive, Limit: 1, Lease: k.now, NewID: NewID}, k.now)
				if err == nil && len(runs) != 1 {
					err = fmt.Errorf("claimed %d runs", len(runs))
				}
				return err
			},
			"the end": func() error {
				_, err := k.s.Apply(k.ctx, []daybook.Transition{r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now)})
				return err
			},
			"the event": func() error {
				_, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: event.Key, Source: daybook.SourceEvent, Payload: json.RawMessage(`1`)}, event, k.now)
				return err
			},
		}
		type ended struct {
			what string
			err  error
		}
		all := make(chan ended, len(acts))
		for what, act := range acts {
			go func() { all <- ended{what, act()} }()
		}
		if k.db.Name == "postgres" { // nothing is locked that they want
			for range acts {
				if e := <-all; e.err != nil {
					k.Errorf("%s: %v", e.what, e.err)
				}
			}
			k.ok(t.Commit())
			return
		}
		hold := time.NewTimer(lockHeld)
		defer hold.Stop()
		select {
		case e := <-all:
			k.Errorf("%s did not wait: %v", e.what, e.err)
			all <- e
		case <-hold.C:
		}
		k.ok(t.Commit())
		for range acts {
			if e := <-all; e.err != nil {
				k.Errorf("%s: %v", e.what, e.err)
			}
		}
		equal(k, "the end", k.find(r.Key).State, daybook.Done)
		equal(k, "the claim", k.find("report:2026-03-02").State, daybook.Running)
		equal(k, "the event", k.find(event.Key).State, daybook.Scheduled)
	}},
	{"two ledgers on one database, sixteen writers, two thousand jobs: nobody is told that it is busy (H45)", func(k *kit) {
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
