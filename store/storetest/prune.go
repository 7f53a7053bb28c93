package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// history gives a job n runs that ended, one a minute, each with an attempt, an output, an effect and a result.
func (k *kit) history(j *daybook.Job, n int) {
	k.Helper()
	k.know(j)
	for i := range n {
		r := daybook.NewRun(j, 1, Day("2026-03-01"), 1, fmt.Sprintf("s%05d", i), k.now)
		r.Due = k.now
		k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceEvent, Payload: json.RawMessage(`{"a":1}`)}, r)
		k.try(j, daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`"ch"`), Output: daybook.Output{Text: "hello"}})
		k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, nil)
		k.now = k.now.Add(time.Minute)
	}
}

func (k *kit) prune(r daybook.Retention, limit int) int {
	k.Helper()
	n, err := k.s.Prune(k.ctx, r, k.now, limit, false)
	k.ok(err)
	return n
}

var pruneCases = []example{
	{"logs go, the key with its state, counts, first trigger and digest stays", func(k *kit) {
		j := Job("renew", Once, allow)
		k.history(j, 2)
		before := k.find("renew:2026-03-01/s00000")
		equal(k, "pruned", k.prune(daybook.Retention{Log: 90 * time.Second}, 100), 1)
		r := k.find(before.Key)
		equal(k, "state", r.State, daybook.Done)
		equal(k, "triggers", r.Triggers, 2)
		equal(k, "attempts", r.Attempts, 1)
		equal(k, "digest", r.ResultHash, before.ResultHash)
		equal(k, "fingerprint", r.PayloadHash, before.PayloadHash)
		equal(k, "ended", r.EndedAt, before.EndedAt)
		equal(k, "first source", r.FirstSource, daybook.SourceEvent)
		equal(k, "pruned at", r.PrunedAt, k.now)
		equal(k, "payload", string(r.Input), "")
		equal(k, "result", string(r.Result), "")
		equal(k, "effect", r.Effect.State, daybook.EffectDone) // what stops a second beginning
		equal(k, "its result", string(r.Effect.Data), "")
		triggers, err := k.s.Triggers(k.ctx, r.Key)
		k.ok(err)
		equal(k, "recorded triggers", len(triggers), 1)
		equal(k, "the first", triggers[0].Source, daybook.SourceEvent)
		for table, want := range map[string]int64{"attempts": 1, "outputs": 1, "runs": 2, "steps": 2} {
			equal(k, table, k.number("SELECT count(*) FROM daybook_%s", table), want)
		}
		equal(k, "pruned again", k.prune(daybook.Retention{Log: 90 * time.Second}, 100), 0)
	}},
	{"texts of sends that ended go with the logs, their keys and ends stay; what is due keeps its text", func(k *kit) {
		k.know(Job("renew", allow))
		row := k.alarm(daybook.AlertJobLate, "renew:2026-03-01", "renew")
		equal(k, "told", k.tell(row, k.now.Add(time.Hour), "log", "phone"), true)
		for _, m := range k.sends("c1") {
			if m.Channel != "log" {
				continue
			}
			m.State, m.EndedAt = notice.SendDone, k.now
			_, err := k.s.MarkSend(k.ctx, m, nil)
			k.ok(err)
		}
		texts := func() (list []string) {
			sends, err := k.s.AlertSends(k.ctx, row.Number)
			k.ok(err)
			for _, m := range sends {
				list = append(list, fmt.Sprintf("%s %s %t %t %t %t", m.Key, m.State, m.Subject != "", m.Body != "", m.Short != "", m.Data != ""))
			}
			slices.Sort(list)
			return list
		}
		prune := func(want int) {
			n, err := k.s.PruneSends(k.ctx, k.now.Add(-time.Hour), 100)
			k.ok(err)
			equal(k, "emptied", n, want)
		}
		k.now = k.now.Add(59 * time.Minute)
		prune(0)
		before := texts()
		equal(k, "sends", len(before), 2)
		k.now = k.now.Add(2 * time.Minute)
		prune(1)
		prune(0)
		after := texts()
		equal(k, "the one that was sent", strings.HasSuffix(after[0], "sent true false false false"), true)
		equal(k, "due", after[1], before[1])
	}},
	{"at most so many runs a job keep their logs, the newest ones, also when all ended at one instant (H50)", func(k *kit) {
		j := Job("tick", allow)
		k.many(j, 25)
		runs := k.claim(25)
		var ms []daybook.Transition
		for _, r := range runs {
			ms = append(ms, r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now))
		}
		_, err := k.s.Apply(k.ctx, ms)
		k.ok(err)
		equal(k, "pruned", k.prune(daybook.Retention{LogRuns: 10}, 1000), 15)
		equal(k, "with logs", k.number("SELECT count(*) FROM daybook_attempts"), 10)
		equal(k, "keys", k.number("SELECT count(*) FROM daybook_runs"), 25)
		equal(k, "pruned again", k.prune(daybook.Retention{LogRuns: 10}, 1000), 0)
		equal(k, "by age on top", k.prune(daybook.Retention{LogRuns: 10, Log: -time.Hour}, 1000), 0)
	}},
	{"pruning goes in batches and ends (H50)", func(k *kit) {
		k.history(Job("a", allow), 7)
		k.history(Job("b", allow), 7)
		dry, err := k.s.Prune(k.ctx, daybook.Retention{LogRuns: 2}, k.now, 4, true)
		k.ok(err)
		equal(k, "dry", dry, 4)
		equal(k, "pruned by a dry run", k.number("SELECT count(*) FROM daybook_runs WHERE pruned_us > 0"), 0)
		var batches []int
		for {
			n := k.prune(daybook.Retention{LogRuns: 2}, 4)
			if n == 0 {
				break
			}
			batches = append(batches, n)
		}
		equal(k, "batches", fmt.Sprint(batches), "[4 4 2]")
		for key := range map[daybook.Key]bool{"a:2026-03-01/s00000": true, "b:2026-03-01/s00006": true} {
			reply, _ := k.ask(daybook.Ask{Key: key, Source: daybook.SourceAPI}, nil)
			equal(k, string(key), reply.Outcome, daybook.Reused)
		}
	}},
	{"nothing is pruned without a limit, nothing that is live, nothing with an open letter", func(k *kit) {
		j := Job("report", allow)
		k.dies(j, "2026-03-01")
		k.run(j, "2026-03-02")
		k.run(j, "2026-03-03")
		k.try(j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "exit 75"})
		k.now = k.now.AddDate(1, 0, 0)
		equal(k, "without limits", k.prune(daybook.Retention{}, 100), 0)
		equal(k, "live or open", k.prune(daybook.Retention{Log: time.Hour, LogRuns: 1}, 100), 0)
		m, err := k.find("report:2026-03-01").Dismiss("ops", "seen", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		equal(k, "dismissed", k.prune(daybook.Retention{Log: time.Hour}, 100), 1)
		letters, err := k.s.LettersOf(k.ctx, "report:2026-03-01")
		k.ok(err)
		equal(k, "letters are kept", len(letters), 1)
	}},
	{"a further attempt of a pruned run has logs of its own, which are pruned in their turn", func(k *kit) {
		j := Job("report", allow)
		again := daybook.Ask{Key: "report:2026-03-01", Source: daybook.SourceManual, Again: true}
		k.run(j, "2026-03-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultDone, Output: daybook.Output{Text: "hello"}})
		k.now = k.now.Add(time.Hour)
		equal(k, "pruned", k.prune(daybook.Retention{Log: time.Minute}, 100), 1)
		k.ask(again, nil)
		equal(k, "while it is live", k.prune(daybook.Retention{Log: time.Minute}, 100), 0)
		k.try(j, daybook.Outcome{Result: daybook.ResultDone, Output: daybook.Output{Text: "again"}})
		equal(k, "attempts", k.number("SELECT count(*) FROM daybook_attempts"), 1)
		k.now = k.now.Add(time.Hour)
		equal(k, "pruned", k.prune(daybook.Retention{Log: time.Minute}, 100), 1)
		equal(k, "attempts", k.number("SELECT count(*) FROM daybook_attempts"), 0)
	}},
	{"results that an undo needs are never pruned", func(k *kit) {
		for name, undo := range map[string]func(*daybook.Job){
			"renew":  func(j *daybook.Job) { j.Undo.Shell = "refund" },
			"extend": func(j *daybook.Job) { j.UndoURL = "https://shop.example/undo" },
		} {
			k.history(Job(name, Once, allow, undo), 1)
			k.now = k.now.Add(time.Hour)
			equal(k, "pruned", k.prune(daybook.Retention{Log: time.Minute}, 100), 1)
			r := k.find(daybook.Key(name + ":2026-03-01/s00000"))
			equal(k, "result", string(r.Result), `"ch"`)
			equal(k, "of the effect", string(r.Effect.Data), `"ch"`)
			equal(k, "payload", string(r.Input), `{"a":1}`)
			equal(k, "attempts", k.number("SELECT count(*) FROM daybook_attempts"), 0)
		}
	}},
	{"what an undo of a function needs is kept whole", func(k *kit) {
		r := k.account("renew:2026-03-01", func(r *daybook.Run) *daybook.Run {
			return k.comeTo(r, "charge", daybook.StepPolicy{Undoes: true}, daybook.Outcome{Result: daybook.ResultDone, Data: []byte(`"ch_1"`)})
		}, done)
		k.afterAMonth(1)
		r = k.find(r.Key)
		k.hasAll(r)
		charge := r.StepRecord("charge")
		out := daybook.UndoBy(k.ctx, r, charge, r.Key.Undo().WireKey("charge", 1), func(ctx context.Context, r *daybook.Run) error {
			account, err := daybook.Step(ctx, r, "account", func(context.Context) (string, error) { return "", nil })
			if err != nil {
				return err
			}
			_, err = daybook.Effect(ctx, r, "charge", daybook.EffectOf[string]{
				Do: func(context.Context, string) (string, error) { return "", nil },
				Undo: func(_ context.Context, _, id string) error {
					equal(k, "refund", id+" to "+account, "ch_1 to acct_7")
					return nil
				}})
			return err
		})
		equal(k, "result", out.Result, daybook.ResultDone)
	}},
	{"what a person may let go on keeps its payload and its results: dismissed", func(k *kit) {
		r := k.account("renew:2026-03-01", nil, daybook.Outcome{Result: daybook.ResultPermanent, Error: "gateway closed"})
		k.by(r.Dismiss("ops", "later", k.now))
		k.afterAMonth(1)
		k.by(k.find(r.Key).Reopen("ops", "now", k.now))
		k.by(k.find(r.Key).Replay("ops", "now", k.now))
		k.hasAll(k.one())
	}},
	{"likewise: cancelled", func(k *kit) {
		r := k.account("renew:2026-03-01", nil, daybook.Outcome{Result: daybook.ResultNotDone, Error: "503"})
		k.by(r.Cancel("ops", "later", k.now))
		k.afterAMonth(1)
		k.by(k.find(r.Key).Reopen("ops", "now", k.now))
		k.hasAll(k.one())
	}},
	{"likewise: subjects of a window that is taken up again", func(k *kit) {
		j := subjectsJob(Once)
		p := k.listed(j, "2026-03-01", 3)
		k.ok(k.s.CancelRunning(k.ctx, p.Key, p.Fence, k.act("cancel")))
		k.look(j)
		k.afterAMonth(4)
		k.by(k.find(p.Key).Reopen("ops", "now", k.now))
		again := k.one()
		_, _, err := k.s.ListChildren(k.ctx, again, k.children(again, j, 0, 3), again.Lease)
		k.ok(err)
		again.Fans = true
		Apply(k.ctx, k, k.s, again.List(daybook.Listed{Subjects: 3}, done, k.now))
		k.look(j)
		runs := k.claim(10)
		equal(k, "runs", len(runs), 3)
		for _, r := range runs {
			equal(k, "payload of "+string(r.Key), string(r.Input), `"1"`)
		}
	}},
	{"what lost its payload, or the results of its steps, does not go on, and says why", func(k *kit) {
		j := Job("report", allow)
		k.history(j, 1)
		r := k.account("sync:2026-03-01", nil, done)
		k.afterAMonth(2)
		before := k.dump()
		for _, key := range []daybook.Key{"report:2026-03-01/s00000", r.Key} {
			_, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: key, Source: daybook.SourceManual, Again: true}, nil, k.now)
			k.code(err, daybook.CodeConflict)
		}
		equal(k, "written", difference(before, k.dump()), "")
		cancelled := k.account("renew:2026-03-01", nil, daybook.Outcome{Result: daybook.ResultNotDone, Error: "503"})
		k.by(cancelled.Cancel("ops", "later", k.now))
		k.rewrite(`UPDATE daybook_runs SET payload = '', pruned_us = 1 WHERE job = 'renew'`) // as it was emptied once
		_, err := k.find(cancelled.Key).Reopen("ops", "now", k.now)
		k.code(err, daybook.CodeConflict)
	}},
}

// account is a run with a payload that has done one step, and ended; between lets it do more.
func (k *kit) account(key daybook.Key, between func(*daybook.Run) *daybook.Run, o daybook.Outcome) *daybook.Run {
	k.Helper()
	j := Job(key.Job(), Steps)
	if key.Job() == "renew" {
		Once(j)
	}
	k.know(j)
	t := k.template(j, key.Parts().Window)
	k.ask(daybook.Ask{Key: t.Key, Source: daybook.SourceAPI, Actor: "shop", Effects: j.Effects, Payload: json.RawMessage(`{"amount":50}`)}, t)
	r := k.one()
	a := r.ComeTo(daybook.StepAsk{Step: "account", Plain: true}, daybook.Policy{}, k.now)
	e := r.StepEnded(a.Record, daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`"acct_7"`)}, k.now)
	k.ok(k.s.MarkStep(k.ctx, r, e, daybook.Learned{}))
	r = r.With(e)
	r.Marks++
	if between != nil {
		r = between(r)
	}
	return k.end(r, j, o)
}

func (k *kit) afterAMonth(pruned int) {
	k.Helper()
	k.now = k.now.AddDate(0, 0, 31)
	equal(k, "pruned", k.prune(daybook.Retention{Log: 30 * 24 * time.Hour}, 100), pruned)
}

func (k *kit) hasAll(r *daybook.Run) {
	k.Helper()
	equal(k, "payload", string(r.Input), `{"amount":50}`)
	equal(k, "result of step account", string(r.StepRecord("account").Data), `"acct_7"`)
}
