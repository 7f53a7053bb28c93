package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/store/storetest"
)

// TestWhatPeopleAreTold holds the sentences: each begins with the key, says what happened to the world, and names the
// next command.
func TestWhatPeopleAreTold(t *testing.T) {
	lite(t, func(b *bench) {
		b.renew()
		told := func(a control.Answer, line, next string) {
			t.Helper()
			if a.Line() != line {
				t.Errorf("told %q\nwant %q", a.Line(), line)
			}
			if a.Next() != next {
				t.Errorf("next %q, want %q", a.Next(), next)
			}
		}
		mail, renew := control.Request{Job: "mail"}, control.Request{Job: "renew"}
		told(b.trigger(mail), "mail:2026-10-26  started. Nobody executes now: no serve was seen in the last 30 s.", "daybook serve")
		b.beat(daybook.Node{})
		told(b.trigger(mail), "mail:2026-10-26  is scheduled already and due: it starts when its turn comes.", "daybook run watch mail:2026-10-26")
		r := b.claim("mail:2026-10-26")
		told(b.trigger(mail), "mail:2026-10-26  is running: attempt 1 since 12:00:00 on n1. Nothing was started beside it.", "daybook run watch mail:2026-10-26")
		m := r.Next(daybook.Outcome{Result: daybook.ResultNotDone, Error: "smtp\r\n421"}, daybook.Policy{Retry: daybook.Retry{Backoff: []time.Duration{time.Minute}}}, b.now)
		if _, err := b.s.Apply(b.ctx, []daybook.Transition{m}); err != nil {
			t.Fatal(err)
		}
		told(b.trigger(mail), "mail:2026-10-26  is under way: attempt 1 failed (smtp  421), next try at 12:01:00 (in 1 m).", "daybook run watch mail:2026-10-26")
		b.after(time.Minute)
		b.beat(daybook.Node{})
		b.end("mail:2026-10-26", daybook.Outcome{Result: daybook.ResultDone, Counts: map[string]int64{"mails": 112, "bounces": 1}})
		told(b.trigger(mail), "mail:2026-10-26  already done at 12:01:00 by ops (manual) (1 bounces, 112 mails). Nothing was repeated.", "daybook key show mail:2026-10-26")
		again := mail
		again.Again = true
		told(b.trigger(again), "mail:2026-10-26  started: one further attempt under the same key. It stays done if this attempt fails.", "daybook run watch mail:2026-10-26")

		b.dead("renew:2026-10-26")
		told(b.trigger(renew), "renew:2026-10-26  is dead since 12:01:00: card declined. It is not started beside its open letter: replay it.", "daybook dead replay renew:2026-10-26")
		if _, err := b.Dismiss(b.ctx, ops, "renew:2026-10-26", "customer left."); err != nil {
			t.Fatal(err)
		}
		told(b.trigger(renew), "renew:2026-10-26  was dismissed at 12:01:00 by ops: customer left. Nothing was started.", "daybook run reopen renew:2026-10-26 --reason …")
		b.unknown("renew:2026-10-25")
		renew.Window = "2026-10-25"
		told(b.trigger(renew), "renew:2026-10-25  is dead since 12:01:00, and whether it happened is unknown: cut off. Settle that first.",
			"look at the far side for renew:2026-10-25, then: daybook run resolve renew:2026-10-25 --step run --as \"done|not-done\" --reason …")
		b.job(daybook.Job{Name: "each", Schedule: "0 2 * * *", Window: daybook.Day, HasSubjects: true})
		told(b.trigger(control.Request{Job: "each", Window: "2026-10-27", Subject: "it's me", Unlisted: true}),
			"each:2026-10-27/it%27s%20me  is not open yet: its window opens at 2026-10-27 02:00 UTC. Nothing was started.",
			`daybook job trigger each --window 2026-10-27 --subject 'it'\''s me' --early --reason …`)
		b.make("mail:2026-10-20")
		if _, err := b.Cancel(b.ctx, ops, "mail:2026-10-20", "by mistake"); err != nil {
			t.Fatal(err)
		}
		mail.Window = "2026-10-20"
		told(b.trigger(mail), "mail:2026-10-20  was cancelled at 12:01:00. It is not started again by itself.", "daybook run reopen mail:2026-10-20 --reason …")
		all, err := b.Replay(b.ctx, ops, []daybook.Key{"mail:2026-10-19"}, "")
		if err != nil {
			t.Fatal(err)
		}
		told(all[0], "mail:2026-10-19  does not exist: nothing to replay.", "daybook job trigger mail --window 2026-10-19")
		e := all[0].Err()
		if daybook.CodeOf(e) != daybook.CodeNotFound || !strings.Contains(e.Error(), "does not exist") || daybook.HintOf(e) != all[0].Next() {
			t.Errorf("as an error: %v, hint %q", e, daybook.HintOf(e))
		}
	})
}

// TestMachinesAreNamed: a person reads the name of a machine, not the id of a process.
func TestMachinesAreNamed(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-10-26T10:00:00"))
		b.job(daybook.Job{Name: "mail", Window: daybook.Day})
		b.beat(daybook.Node{Host: "db-1"})
		b.trigger(control.Request{Job: "mail", Date: "2026-10-26"})
		b.claim("mail:2026-10-26")
		a := b.trigger(control.Request{Job: "mail", Date: "2026-10-26"})
		if a.Host != "db-1" || !strings.Contains(a.Line(), " on db-1. Nothing was started beside it.") {
			t.Errorf("%q, %s", a.Host, a.Line())
		}
		if s := b.story("mail:2026-10-26"); !strings.Contains(s, "attempt 1 is running on db-1") {
			t.Error(s)
		}
		r, err := b.Run(b.ctx, "mail:2026-10-26")
		if err != nil {
			t.Fatal(err)
		}
		storetest.Apply(b.ctx, t, b.s, r.Next(daybook.Outcome{Result: daybook.ResultDone}, b.policy(r.Key), b.now))
		if s := b.story("mail:2026-10-26"); !strings.Contains(s, "attempt 1 → done on db-1") {
			t.Error(s)
		}
	})
}

// story is what the lines of a key's story say.
func (b *bench) story(k daybook.Key) string {
	b.t.Helper()
	s, err := b.Key(b.ctx, k)
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for _, e := range s.Timeline {
		lines = append(lines, e.Text.String())
	}
	return strings.Join(lines, "\n")
}
