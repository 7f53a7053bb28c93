package store_test

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
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
			store.Patient(s)
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

// TestAJobThatIsHeldUpHoldsUpNoOther: whoever pauses a job, or takes its new definition, waits for what is at work in it, and so does
// who asks for a new key of it. Nobody else does.
func TestAJobThatIsHeldUpHoldsUpNoOther(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, f := storetest.Postgres(t), faultstore.New(1)
	s, err := open(t, d.Faulty(t, f))
	if err != nil {
		t.Fatal(err)
	}
	store.Patient(s)
	db, now := d.Open(t).Write, storetest.Birth
	held, other := free("held"), free("other")
	if _, err := s.TakeRevisions(ctx, []daybook.Revision{{Job: held}, {Job: other}}, false, now); err != nil {
		t.Fatal(err)
	}
	ask := func(j *daybook.Job, i int, want daybook.TriggerOutcome) chan error {
		r := daybook.NewRun(j, 1, storetest.Day(now.AddDate(0, 0, i).Format(time.DateOnly)), 1, "", now)
		r.Due, r.NotBefore = now, now
		told := make(chan error, 1)
		go func() {
			reply, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI}, r, now)
			if err == nil && reply.Outcome != want {
				err = fmt.Errorf("%s is %s", r.Key, reply.Outcome)
			}
			told <- err
		}()
		return told
	}
	waiting := func(n int) {
		t.Helper()
		for got := -1; got < n; time.Sleep(time.Millisecond) {
			if err := db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&got); err != nil {
				t.Fatal(err)
			}
		}
	}
	step, err := db.BeginTx(ctx, nil) // of a caller who marks a step in his own transaction
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ask(held, 0, daybook.Started); err != nil {
		t.Fatal(err)
	}
	if _, err := step.ExecContext(ctx, `UPDATE daybook_live SET marks = marks + 1 WHERE job = 'held'`); err != nil {
		t.Fatal(err)
	}
	paused := make(chan error, 1)
	go func() {
		_, err := s.Pause(ctx, "held", daybook.Activity{At: now, Actor: "ops", Action: "pause", Job: "held"})
		paused <- err
	}()
	waiting(1)

	waits := []chan error{ask(held, 1, daybook.Refused)} // by itself
	waiting(2)
	first, goOn := make(chan struct{}), make(chan struct{})
	f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(context.Context, faultstore.Call) error { close(first); <-goOn; return nil }})
	others := []chan error{ask(other, 1, daybook.Started)}
	const late = "another job waits for the one that is held up"
	select {
	case <-first:
	case <-time.After(20 * time.Second):
		t.Fatal(late)
	}
	waits = append(waits, ask(held, 2, daybook.Refused)) // among several
	for i := range 5 {
		others = append(others, ask(other, i+2, daybook.Started))
	}
	for store.Knocking(s) < 6 {
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	inTime := func(told chan error) {
		t.Helper()
		select {
		case err := <-told:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal(late)
		}
	}
	for _, told := range others {
		inTime(told)
	}
	for i := range 30 { // more than there are connections
		waits = append(waits, ask(held, i+10, daybook.Refused))
	}
	waiting(5)
	inTime(ask(other, 10, daybook.Started))
	if err := errors.Join(step.Commit(), <-paused); err != nil {
		t.Fatal(err)
	}
	for _, told := range waits {
		if err := <-told; err != nil {
			t.Error(err)
		}
	}
}
