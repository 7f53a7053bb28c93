package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
)

// stands brings a window of a new job into a state of which the table of triggers speaks.
var stands = []struct {
	name string
	as   daybook.Standing // what Decide is told about it
	make func(k *kit, j *daybook.Job) daybook.Key
}{
	{"scheduled", daybook.Standing{State: daybook.Scheduled}, func(k *kit, j *daybook.Job) daybook.Key { return k.run(j, "2026-03-01").Key }},
	{"running", daybook.Standing{State: daybook.Running}, func(k *kit, j *daybook.Job) daybook.Key {
		k.run(j, "2026-03-01")
		return k.one().Key
	}},
	{"retryable", daybook.Standing{State: daybook.Retryable}, func(k *kit, j *daybook.Job) daybook.Key {
		k.run(j, "2026-03-01")
		return k.try(j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "exit 75"}).Key
	}},
	{"done", daybook.Standing{State: daybook.Done}, func(k *kit, j *daybook.Job) daybook.Key {
		k.run(j, "2026-03-01")
		return k.try(j, daybook.Outcome{Result: daybook.ResultDone}).Key
	}},
	{"dead, open", daybook.Standing{State: daybook.Dead, LetterKind: daybook.LetterFailed, LetterState: daybook.LetterOpen}, func(k *kit, j *daybook.Job) daybook.Key {
		return k.dies(j, "2026-03-01").Key
	}},
	{"dead, unknown", daybook.Standing{State: daybook.Dead, LetterKind: daybook.LetterUnknown, LetterState: daybook.LetterOpen}, func(k *kit, j *daybook.Job) daybook.Key {
		r := k.dies(j, "2026-03-01")
		k.set("UPDATE daybook_letters SET kind = 'unknown' WHERE key = '%s'", r.Key) // of repeatable work there is none
		return r.Key
	}},
	{"dead, dismissed", daybook.Standing{State: daybook.Dead, LetterKind: daybook.LetterFailed, LetterState: daybook.LetterDismissed}, func(k *kit, j *daybook.Job) daybook.Key {
		r := k.dies(j, "2026-03-01")
		m, err := r.Dismiss("ops", "seen", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		return r.Key
	}},
	{"skipped", daybook.Standing{State: daybook.Skipped}, func(k *kit, j *daybook.Job) daybook.Key {
		k.know(j)
		_, err := k.s.Pause(k.ctx, j.Name, k.act("pause"))
		k.ok(err)
		k.planned(k.plan(j, 1, 1, 0))
		_, err = k.s.Resume(k.ctx, j.Name, k.act("resume"))
		k.ok(err)
		return daybook.Key(j.Name + ":2026-03-01")
	}},
	{"cancelled", daybook.Standing{State: daybook.Cancelled}, func(k *kit, j *daybook.Job) daybook.Key {
		r := k.run(j, "2026-03-01")
		m, err := r.Cancel("ops", "", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		return r.Key
	}},
}

// set changes the tables behind the ledger's back.
func (k *kit) set(statement string, args ...any) {
	k.Helper()
	_, err := k.raw.ExecContext(k.ctx, fmt.Sprintf(statement, args...))
	k.ok(err)
}

var triggerCases = []example{
	{"every door against every state is answered by the table, recorded, counted and carried out", func(k *kit) {
		n := 0
		for _, stand := range stands {
			for _, a := range []daybook.Ask{
				{Source: daybook.SourceManual}, {Source: daybook.SourceManual, Again: true}, {Source: daybook.SourceAPI, RunSkipped: true}, {Source: daybook.SourceReplay},
				{Source: daybook.SourceSchedule}, {Source: daybook.SourceBackfill}, {Source: daybook.SourceEvent}, {Source: daybook.SourceOnce}, {Source: daybook.SourceDrill},
			} {
				n++
				what := fmt.Sprintf("%s asked %s again=%v run skipped=%v", stand.name, a.Source, a.Again, a.RunSkipped)
				j := Job(fmt.Sprintf("j%03d", n))
				a.Key, a.Actor, a.Effects = stand.make(k, j), "ann", j.Effects
				before := k.find(a.Key)
				as := stand.as
				as.Exists, as.Effects = true, j.Effects
				want := daybook.Decide(a, as)
				got, after := k.ask(a, nil)
				if got != want {
					k.Errorf("%s: answered %+v, want %+v", what, got, want)
				}
				stored := k.find(a.Key)
				if after.State != stored.State || after.Triggers != stored.Triggers || after.Refused != stored.Refused {
					k.Errorf("%s: returned %s with %d triggers, stored %s with %d", what, after.State, after.Triggers, stored.State, stored.Triggers)
				}
				equal(k, what+": triggers", after.Triggers, before.Triggers+1)
				triggers, err := k.s.Triggers(k.ctx, a.Key)
				k.ok(err)
				last := triggers[slices.IndexFunc(triggers, func(g daybook.Trigger) bool { return g.Actor == "ann" })]
				equal(k, what+": recorded", len(triggers), before.Triggers+1)
				equal(k, what+": outcome", last.Outcome, want.Outcome)
				equal(k, what+": source", last.Source, a.Source)
				state := before.State
				switch want.Act {
				case daybook.ActAgain, daybook.ActRunSkipped:
					state = daybook.Scheduled
				case daybook.ActReplay:
					state = daybook.Retryable
				}
				equal(k, what+": state", after.State, state)
				refused := 0
				if want.Outcome == daybook.Refused {
					refused = 1
				}
				equal(k, what+": refused", after.Refused-before.Refused, refused)
				if after.Letter != nil && after.Letter.State == daybook.LetterOpen {
					equal(k, what+": refused by the letter", after.Letter.Refused, refused)
				}
				k.set("DELETE FROM daybook_live") // so that the next one is alone
			}
		}
	}},
	{"what a trigger returns is the run as it stands, whether it was made, joined, held, skipped or put off", func(k *kit) {
		n := 0
		stands := func(what string, a daybook.Ask, change ...func(*daybook.Job)) {
			k.Helper()
			n++
			j := Job(fmt.Sprintf("r%02d", n), change...)
			k.know(j)
			r := k.template(j, "2026-03-01")
			r.Window.Start, r.CreatedAt = r.Window.Start.In(time.FixedZone("far", 3600)), r.CreatedAt.Add(300)
			a.Key, a.Effects, a.EventJob = r.Key, j.Effects, j.Work == daybook.Event
			for _, again := range []string{"", ", again"} {
				_, got := k.ask(a, r)
				if want := k.find(r.Key); !reflect.DeepEqual(got, want) {
					k.Errorf("%s%s:\nreturned %+v\nstored   %+v", what, again, got, want)
				}
			}
		}
		stands("repeatable", daybook.Ask{Source: daybook.SourceAPI, Actor: "ann\x00"})
		stands("once", daybook.Ask{Source: daybook.SourceManual, Payload: json.RawMessage(`{"a": 1}`)}, Once)
		stands("with steps", daybook.Ask{Source: daybook.SourceManual}, Once, Steps)
		_, err := k.s.Hold(k.ctx, daybook.Hold{Name: daybook.HoldClock, Since: k.now, Detail: "leapt"})
		k.ok(err)
		stands("held by the clock", daybook.Ask{Source: daybook.SourceManual}, Once)
		equal(k, "frozen", k.freeze("night", time.Hour, ""), true)
		stands("put off", daybook.Ask{Source: daybook.SourceManual})
		equal(k, "thawed", k.thaw("night"), true)
		j := Job("paused")
		k.know(j)
		_, err = k.s.Pause(k.ctx, j.Name, k.act("pause"))
		k.ok(err)
		_, got := k.ask(daybook.Ask{Key: "paused:2026-03-01", Source: daybook.SourceBackfill}, k.template(j, "2026-03-01"))
		if want := k.find(got.Key); got.State != daybook.Skipped || !reflect.DeepEqual(got, want) {
			k.Errorf("skipped:\nreturned %+v\nstored   %+v", got, want)
		}
		k.lapse(1)
		stands("in a ledger that forgot", daybook.Ask{Source: daybook.SourceManual}, Once)
	}},
	{"a replay of a key that is not there is refused, and makes nothing", func(k *kit) {
		k.know(Job("report"))
		reply, r := k.ask(daybook.Ask{Key: "report:2026-03-01", Source: daybook.SourceReplay}, nil)
		equal(k, "status", reply.HTTP, 404)
		equal(k, "run", r == nil, true)
		equal(k, "runs", k.number("SELECT count(*) FROM daybook_runs"), 0)
	}},
	{"a new key without a template is a fault of the caller, and writes nothing", func(k *kit) {
		k.know(Job("report"))
		_, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: "report:2026-03-01", Source: daybook.SourceManual}, nil, k.now)
		k.code(err, daybook.CodeInvalid)
		equal(k, "triggers", k.number("SELECT count(*) FROM daybook_triggers"), 0)
	}},
	{"a window that is not open is refused, and taken early with a reason", func(k *kit) {
		j := Job("report")
		k.know(j)
		r := k.template(j, "2026-03-02")
		a := daybook.Ask{Key: r.Key, Source: daybook.SourceManual, NotOpen: true}
		reply, got := k.ask(a, r)
		equal(k, "outcome", reply.Outcome, daybook.Refused)
		equal(k, "run", got == nil, true)
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity"), 0)
		a.Early, a.Note = true, "holiday"
		reply, got = k.ask(a, r)
		equal(k, "outcome", reply.Outcome, daybook.Started)
		equal(k, "triggers", got.Triggers, 1)
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity WHERE action = 'trigger early' AND note = 'holiday'"), 1)
	}},
	{"a trigger that meets a pause, a resume or a rename waits for it, and sees it", func(k *kit) {
		if !k.onlyPostgres() {
			return // one writer at a time
		}
		meets := func(first func(*store.Store) error, j *daybook.Job, date string) (daybook.Reply, *daybook.Run, error) {
			k.Helper()
			f := newFaults(1)
			slow := k.faulty(f)
			committing, goOn := make(chan struct{}), make(chan struct{})
			f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(context.Context, faultstore.Call) error {
				close(committing)
				<-goOn
				return nil
			}})
			done := make(chan error, 1)
			go func() { done <- first(slow) }()
			<-committing
			type answer struct {
				reply daybook.Reply
				run   *daybook.Run
				err   error
			}
			got := make(chan answer, 1)
			go func() {
				r := k.template(j, date)
				reply, run, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Effects: j.Effects}, r, k.now)
				got <- answer{reply, run, err}
			}()
			k.until(k.raw, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
			close(goOn)
			k.ok(<-done)
			a := <-got
			return a.reply, a.run, a.err
		}
		j := Job("report", allow)
		k.know(j)
		reply, run, err := meets(func(s *store.Store) error { _, err := s.Pause(k.ctx, j.Name, k.act("pause")); return err }, j, "2026-03-01")
		k.ok(err)
		equal(k, "paused meanwhile", reply.Because, daybook.BecausePaused)
		equal(k, "run", run == nil, true)
		reply, _, err = meets(func(s *store.Store) error { _, err := s.Resume(k.ctx, j.Name, k.act("resume")); return err }, j, "2026-03-01")
		k.ok(err)
		equal(k, "resumed meanwhile", reply.Outcome, daybook.Started)
		heir := Job("reports", allow, renamed(j.Name))
		_, _, err = meets(func(s *store.Store) error {
			_, err := s.TakeRevisions(k.ctx, []daybook.Revision{{Job: heir}}, true, k.now)
			return err
		}, j, "2026-03-02")
		k.code(err, daybook.CodeConflict)
		equal(k, "made under the old name", k.number(`SELECT count(*) FROM daybook_runs WHERE label = '2026-03-02'`), 0)
	}},
	{"sixteen doors at once: one starts, the others join", func(k *kit) {
		j := Job("report")
		k.know(j)
		r := k.template(j, "2026-03-01")
		var mu sync.Mutex
		outcomes := make(map[daybook.TriggerOutcome]int)
		together(16, func(i int) bool {
			copied := *r
			reply, got, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI, Actor: fmt.Sprint(i)}, &copied, k.now)
			if err != nil {
				k.Error(err)
				return false
			}
			if got == nil || got.Key != r.Key {
				k.Errorf("run %+v", got)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[reply.Outcome]++
			return true
		})
		equal(k, "started", outcomes[daybook.Started], 1)
		equal(k, "joined", outcomes[daybook.Joined], 15)
		equal(k, "triggers", k.find(r.Key).Triggers, 16)
		equal(k, "recorded", k.number("SELECT count(*) FROM daybook_triggers"), 16)
	}},
	{"one key in two open transactions: the second waits for the first, and joins", func(k *kit) {
		j := Job("report")
		k.know(j)
		f := newFaults(1)
		first := k.faulty(f)
		committing, goOn := make(chan struct{}), make(chan struct{})
		f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(ctx context.Context, _ faultstore.Call) error {
			close(committing)
			select {
			case <-goOn:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		type answer struct {
			reply daybook.Reply
			err   error
		}
		ask := func(s interface {
			Trigger(context.Context, daybook.Ask, *daybook.Run, time.Time) (daybook.Reply, *daybook.Run, error)
		}) chan answer {
			done := make(chan answer, 1)
			go func() {
				reply, _, err := s.Trigger(k.ctx, daybook.Ask{Key: "report:2026-03-01", Source: daybook.SourceAPI}, k.template(j, "2026-03-01"), k.now)
				done <- answer{reply, err}
			}()
			return done
		}
		a := ask(first)
		<-committing
		b := ask(k.s)
		if k.db.Name == "postgres" {
			k.until(k.raw, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		}
		select {
		case got := <-b:
			k.Fatalf("the second did not wait: %+v", got)
		default:
		}
		close(goOn)
		one, two := <-a, <-b
		k.ok(one.err)
		k.ok(two.err)
		equal(k, "first", one.reply.Outcome, daybook.Started)
		equal(k, "second", two.reply.Outcome, daybook.Joined)
	}},
	{"one key in two open transactions, of which the first is rolled back: the second starts", func(k *kit) {
		j := Job("report")
		k.know(j)
		f := newFaults(1)
		first := k.faulty(f)
		f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1})
		_, _, err := first.Trigger(k.ctx, daybook.Ask{Key: "report:2026-03-01", Source: daybook.SourceAPI}, k.template(j, "2026-03-01"), k.now)
		k.code(err, daybook.CodeUnavailable)
		reply, _ := k.ask(daybook.Ask{Key: "report:2026-03-01", Source: daybook.SourceAPI}, k.template(j, "2026-03-01"))
		equal(k, "second", reply.Outcome, daybook.Started)
	}},
	{"another payload is refused with 422 and neither runs nor overwrites; the same one in another order is the same", func(k *kit) {
		j := Job("report")
		k.know(j)
		r := k.template(j, "2026-03-01")
		ask := func(payload string) daybook.Reply {
			k.Helper()
			reply, _ := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceAPI, Payload: json.RawMessage(payload)}, r)
			return reply
		}
		equal(k, "first", ask(`{"a": 1, "b": [2]}`).Outcome, daybook.Started)
		equal(k, "same", ask(`{"b":[2],"a":1}`).Outcome, daybook.Joined)
		equal(k, "other", ask(`{"a": 2, "b": [2]}`).HTTP, 422)
		equal(k, "none", ask(``).Outcome, daybook.Joined)
		got := k.find(r.Key)
		equal(k, "payload", string(got.Input), `{"a": 1, "b": [2]}`)
		k.try(j, daybook.Outcome{Result: daybook.ResultDone})
		equal(k, "other, when done", ask(`{"a": 2}`).HTTP, 422)
		_, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI, Payload: json.RawMessage(`{`)}, r, k.now)
		k.code(err, daybook.CodeInvalid)
		triggers, err := k.s.Triggers(k.ctx, r.Key)
		k.ok(err)
		equal(k, "triggers", len(triggers), 5)
		equal(k, "fingerprints", triggers[0].PayloadHash == triggers[1].PayloadHash && triggers[1].PayloadHash != triggers[2].PayloadHash, true)
	}},
	{"a key in a span of skipped windows is answered as skipped, and run when a person says so", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Missed = daybook.SkipMissed })
		k.know(j)
		p := k.plan(j, 1, 4, 4)
		k.planned(p)
		r := k.template(j, "2026-03-02")
		a := daybook.Ask{Key: r.Key, Source: daybook.SourceManual, FireAt: p.Windows[1].FireAt}
		reply, got := k.ask(a, r)
		equal(k, "because", reply.Because, daybook.BecauseSkipped)
		equal(k, "run", got == nil, true)
		a.Source = daybook.SourceCatchup
		reply, _ = k.ask(a, r)
		equal(k, "the scan", reply.Outcome, daybook.Reused)
		a.Source, a.RunSkipped = daybook.SourceManual, true
		reply, got = k.ask(a, r)
		equal(k, "run skipped", reply.Outcome, daybook.Started)
		equal(k, "state", got.State, daybook.Scheduled)
		reply, _ = k.ask(a, r)
		equal(k, "again", reply.Outcome, daybook.Joined)
		outside := k.template(j, "2026-03-09")
		reply, _ = k.ask(daybook.Ask{Key: outside.Key, Source: daybook.SourceManual, FireAt: outside.Window.Start.Add(2 * time.Hour)}, outside)
		equal(k, "outside of the span", reply.Outcome, daybook.Started)
	}},
	{"a skipped window that is run while its job is paused waits for the resume", func(k *kit) {
		j := Job("report", allow, func(j *daybook.Job) { j.Missed = daybook.SkipMissed })
		k.know(j)
		p := k.plan(j, 1, 4, 3) // a span of three, and one that is scheduled
		k.planned(p)
		_, err := k.s.Pause(k.ctx, "report", k.act("pause"))
		k.ok(err)
		k.now = p.To
		r := k.template(j, "2026-03-02")
		_, got := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual, RunSkipped: true, FireAt: p.Windows[1].FireAt}, r)
		equal(k, "hold", got.Hold, daybook.ReasonPaused)
		equal(k, "claimed", len(k.claim(9)), 0)
		_, err = k.s.Resume(k.ctx, "report", k.act("resume"))
		k.ok(err)
		equal(k, "claimed", len(k.claim(9)), 2)
	}},
	{"a covered window is answered as its covering run is, a replay of it is told the key, another payload is refused", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Missed = daybook.Coalesce })
		k.know(j)
		k.planned(k.plan(j, 1, 3, 2))
		ask := func(source daybook.Source, payload string) daybook.Reply {
			k.Helper()
			reply, r := k.ask(daybook.Ask{Key: "report:2026-03-01", Source: source, Payload: json.RawMessage(payload)}, nil)
			equal(k, "state", r.State, daybook.Coalesced)
			return reply
		}
		equal(k, "while it waits", ask(daybook.SourceManual, "").Outcome, daybook.Joined)
		equal(k, "by the clock", ask(daybook.SourceCatchup, "").Outcome, daybook.Reused)
		equal(k, "replay", ask(daybook.SourceReplay, "").Because, daybook.BecauseCovered)
		equal(k, "other payload", ask(daybook.SourceAPI, `{"a":1}`).HTTP, 422)
		k.now = Birth.AddDate(0, 0, 3)
		k.try(j, daybook.Outcome{Result: daybook.ResultDone})
		equal(k, "when it is done", ask(daybook.SourceManual, "").Outcome, daybook.Reused)
		equal(k, "triggers", k.find("report:2026-03-01").Triggers, 6)
		k.set("UPDATE daybook_runs SET covered_by = 'report:2026-03-01' WHERE key = 'report:2026-03-01'") // a circle, which no rule makes
		equal(k, "in a circle", ask(daybook.SourceManual, "").Because, daybook.BecauseCovered)
		equal(k, "triggers", k.find("report:2026-03-01").Triggers, 7)
	}},
	{"a paused job: by hand refused, by the clock skipped, events are held", func(k *kit) {
		j := Job("report")
		k.know(j)
		_, err := k.s.Pause(k.ctx, "report", k.act("pause"))
		k.ok(err)
		for i, c := range []struct {
			ask   daybook.Ask
			want  daybook.TriggerOutcome
			state daybook.State
			hold  daybook.Reason
		}{
			{daybook.Ask{Source: daybook.SourceManual}, daybook.Refused, "", ""},
			{daybook.Ask{Source: daybook.SourceBackfill}, daybook.Refused, daybook.Skipped, ""},
			{daybook.Ask{Source: daybook.SourceEvent, EventJob: true}, daybook.Started, daybook.Scheduled, daybook.ReasonPaused},
		} {
			r := k.template(j, fmt.Sprintf("2026-03-%02d", i+1))
			c.ask.Key = r.Key
			reply, got := k.ask(c.ask, r)
			equal(k, string(c.ask.Source), reply.Outcome, c.want)
			if c.state == "" {
				equal(k, "run", got == nil, true)
				continue
			}
			equal(k, "state", got.State, c.state)
			equal(k, "hold", got.Hold, c.hold)
			equal(k, "triggers", got.Triggers, 1)
		}
		equal(k, "claimed", len(k.claim(9)), 0)
	}},
	{"while the clock is not confirmed, new once-only work is held and other work is not", func(k *kit) {
		once, other := Job("renew", Once), Job("report")
		k.know(once, other)
		for i, want := range []bool{true, false} {
			changed, err := k.s.Hold(k.ctx, daybook.Hold{Name: daybook.HoldClock, Since: k.now, Detail: fmt.Sprint("leapt ", i)})
			k.ok(err)
			equal(k, "changed", changed, want)
		}
		for _, j := range []*daybook.Job{once, other} {
			r := k.template(j, "2026-03-01")
			reply, _ := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Effects: j.Effects}, r)
			equal(k, j.Name, reply.Outcome, daybook.Started)
		}
		if got := keys(k.claim(9)); !slices.Equal(got, []daybook.Key{"report:2026-03-01"}) {
			k.Errorf("claimed %v", got)
		}
		equal(k, "hold", k.find("renew:2026-03-01").Hold, daybook.ReasonClock)
		changed, err := k.s.EndHold(k.ctx, daybook.HoldClock, k.act("confirm"))
		k.ok(err)
		equal(k, "changed", changed, true)
		equal(k, "claimed", k.one().Key, "renew:2026-03-01")
		equal(k, "open alerts", k.number("SELECT count(*) FROM daybook_alerts WHERE closed_us = 0"), 0)
		changed, err = k.s.EndHold(k.ctx, daybook.HoldClock, k.act("confirm"))
		k.ok(err)
		equal(k, "changed", changed, false)
	}},
	{"asked again of a pruned run, everything is answered from its row (R9)", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-02-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`1`), Output: daybook.Output{Text: "x"}})
		k.now = k.now.AddDate(0, 2, 0)
		n, err := k.s.Prune(k.ctx, daybook.Retention{Log: 30 * 24 * time.Hour}, k.now, 100, false)
		k.ok(err)
		equal(k, "pruned", n, 1)
		for _, a := range []daybook.Source{daybook.SourceManual, daybook.SourceSchedule, daybook.SourceBackfill, daybook.SourceReplay, daybook.SourceAPI} {
			reply, r := k.ask(daybook.Ask{Key: "report:2026-02-01", Source: a}, k.template(j, "2026-02-01"))
			equal(k, string(a), reply.Outcome, daybook.Reused)
			equal(k, "state", r.State, daybook.Done)
		}
		equal(k, "live", k.number("SELECT count(*) FROM daybook_live"), 0)
		equal(k, "triggers", k.find("report:2026-02-01").Triggers, 6)
	}},
}
