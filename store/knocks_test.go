package store_test

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
	"github.com/daybook-run/daybook/store/storetest"
)

// TestTriggersShareATransaction: what comes while one is written is written together, each answered by its own rows; what asks for
// more, and what is asked for twice, goes by itself.
func TestTriggersShareATransaction(t *testing.T) {
	for _, kind := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		d := kind(t)
		t.Run(d.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			f := faultstore.New(1)
			s, err := open(t, d.Faulty(t, f))
			if err != nil {
				t.Fatal(err)
			}
			now := storetest.Birth
			j, once := free("mail"), storetest.Job("renew", storetest.Once)
			end := func(j *daybook.Job, date string, o daybook.Outcome) {
				t.Helper()
				storetest.Add(ctx, t, s, j, date, now)
				r := storetest.Claim(ctx, t, s, 1, now)[0]
				var e *daybook.StepRecord
				if r.OneEffect() {
					e, _ = r.Begin(j.Policy(), now)
				}
				if err := s.Begin(ctx, r, e, now); err != nil {
					t.Fatal(err)
				}
				storetest.Apply(ctx, t, s, r.Next(o, j.Policy(), now))
			}
			end(j, "2026-02-01", daybook.Outcome{Result: daybook.ResultDone})
			end(j, "2026-02-02", daybook.Outcome{Result: daybook.ResultPermanent, Error: "declined"})
			end(once, "2026-02-01", daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`1`)})

			committing, goOn := make(chan struct{}), make(chan struct{})
			var mu sync.Mutex
			commits := 0
			f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(context.Context, faultstore.Call) error {
				close(committing)
				<-goOn
				return nil
			}})
			f.Add(faultstore.Rule{Op: faultstore.Commit, Hook: func(context.Context, faultstore.Call) error {
				mu.Lock()
				defer mu.Unlock()
				commits++
				return nil
			}})
			want := 4 // the first, those together, the second one of a key, and the one whose letter is told
			if d.Name == "postgres" {
				f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 2, After: true, Err: driver.ErrBadConn}) // those together are committed, and nobody hears of it
				want++                                                                                     // they are looked up
			}
			type asked struct {
				ask      daybook.Ask
				template *daybook.Run
				want     daybook.TriggerOutcome
			}
			fresh := func(date string) asked {
				r := daybook.NewRun(j, 1, storetest.Day(date), 1, "", now)
				r.Due, r.NotBefore = now, now
				return asked{daybook.Ask{Key: r.Key, Source: daybook.SourceAPI}, r, daybook.Started}
			}
			stands := func(key daybook.Key, want daybook.TriggerOutcome) asked {
				return asked{daybook.Ask{Key: key, Source: daybook.SourceAPI}, nil, want}
			}
			var list []asked
			for i := range 20 {
				list = append(list, fresh(fmt.Sprintf("2026-04-%02d", i+1)))
			}
			list = append(list, stands("mail:2026-02-01", daybook.Reused), stands("renew:2026-02-01", daybook.Reused),
				stands("mail:2026-02-01", daybook.Reused), stands("mail:2026-02-02", daybook.Refused))

			var all sync.WaitGroup
			ask := func(a asked) {
				all.Go(func() {
					reply, r, err := s.Trigger(ctx, a.ask, a.template, now)
					if err != nil || reply.Outcome != a.want {
						t.Errorf("%s: %s, want %s: %v", a.ask.Key, reply.Outcome, a.want, err)
						return
					}
					if stored, _ := s.Run(ctx, a.ask.Key); stored != nil && (r == nil || r.State != stored.State || (r.Effect == nil) != (stored.Effect == nil)) {
						t.Errorf("%s: returned %+v, stored %+v", a.ask.Key, r, stored)
					}
				})
			}
			ask(fresh("2026-03-31"))
			<-committing
			for i, a := range list {
				ask(a)
				for store.Knocking(s) < i+1 {
					time.Sleep(time.Millisecond)
				}
			}
			close(goOn)
			all.Wait()
			if commits != want {
				t.Errorf("%d commits for %d triggers, want %d", commits, len(list)+1, want)
			}
			for key, want := range map[daybook.Key]int{"mail:2026-02-01": 3, "mail:2026-02-02": 2, "renew:2026-02-01": 2, "mail:2026-04-07": 1} {
				triggers, err := s.Triggers(ctx, key)
				if err != nil || len(triggers) != want || storetest.Find(ctx, t, s, key).Triggers != want {
					t.Errorf("%s: %d triggers recorded, %d counted, want %d: %v", key, len(triggers), storetest.Find(ctx, t, s, key).Triggers, want, err)
				}
			}
			if r := storetest.Find(ctx, t, s, "mail:2026-02-02"); r.Refused != 1 || r.Letter.Refused != 1 {
				t.Errorf("refused %d times, by its letter %d", r.Refused, r.Letter.Refused)
			}
		})
	}
}
