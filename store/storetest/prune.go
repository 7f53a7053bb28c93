package storetest

import (
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
		k.history(j, 1)
		k.now = k.now.Add(time.Hour)
		equal(k, "pruned", k.prune(daybook.Retention{Log: time.Minute}, 100), 1)
		k.ask(daybook.Ask{Key: "report:2026-03-01/s00000", Source: daybook.SourceManual, Again: true}, nil)
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
			equal(k, "payload", string(r.Input), "")
			equal(k, "attempts", k.number("SELECT count(*) FROM daybook_attempts"), 0)
		}
	}},
}
