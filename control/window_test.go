package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// TestTheDefaultWindowIsThatOfTheLatestFireNeverTheWallDate presses the button at awkward moments.
func TestTheDefaultWindowIsThatOfTheLatestFireNeverTheWallDate(t *testing.T) {
	lite(t, func(b *bench) {
		b.at(day("2026-01-01"))
		for i, c := range []struct {
			job  daybook.Job
			at   string // UTC
			want string
		}{
			{daybook.Job{Schedule: "0 2 * * *"}, "2026-10-26T01:30:00", "2026-10-25"},
			{daybook.Job{Schedule: "0 2 * * *"}, "2026-10-26T01:59:59", "2026-10-25"},
			{daybook.Job{Schedule: "0 2 * * *"}, "2026-10-26T02:00:00", "2026-10-26"},
			{daybook.Job{Schedule: "0 2 * * *", Window: daybook.PreviousDay}, "2026-10-26T01:30:00", "2026-10-24"},
			{daybook.Job{Schedule: "0 2 * * *", Window: daybook.PreviousDay}, "2026-10-26T12:00:00", "2026-10-25"},
			// The clock of the job's zone counts: 02:00 in Shanghai is 18:00 UTC of the day before.
			{daybook.Job{Schedule: "0 2 * * *", Timezone: "Asia/Shanghai"}, "2026-10-25T17:59:59", "2026-10-25"},
			{daybook.Job{Schedule: "0 2 * * *", Timezone: "Asia/Shanghai"}, "2026-10-25T18:00:00", "2026-10-26"},
			// 02:00 does not exist in Berlin on that night: the fire comes at 03:00, which is 01:00 UTC.
			{daybook.Job{Schedule: "0 2 * * *", Timezone: "Europe/Berlin"}, "2026-03-29T00:59:59", "2026-03-28"},
			{daybook.Job{Schedule: "0 2 * * *", Timezone: "Europe/Berlin"}, "2026-03-29T01:00:00", "2026-03-29"},
			// Monday before the fire, the Monday after it, and any day of the week.
			{daybook.Job{Schedule: "0 9 * * 1-5"}, "2026-10-26T08:00:00", "2026-10-23"},
			{daybook.Job{Schedule: "weekly mon 09:00"}, "2026-10-26T08:59:00", "2026-W43"},
			{daybook.Job{Schedule: "weekly mon 09:00"}, "2026-10-26T09:00:00", "2026-W44"},
			{daybook.Job{Schedule: "weekly mon 09:00"}, "2026-11-01T23:00:00", "2026-W44"},
			{daybook.Job{Schedule: "0 8 * * *", Window: daybook.PreviousWeek}, "2026-10-26T07:00:00", "2026-W42"},
			{daybook.Job{Schedule: "0 8 * * *", Window: daybook.PreviousWeek}, "2026-10-26T08:00:00", "2026-W43"},
			{daybook.Job{Schedule: "monthly last day 18:00"}, "2026-11-15T00:00:00", "2026-10"},
			{daybook.Job{Schedule: "quarterly first day 06:00", Window: daybook.PreviousQuarter}, "2026-11-15T00:00:00", "2026-Q3"},
			{daybook.Job{Schedule: "yearly 01-02 06:00"}, "2026-11-15T00:00:00", "2026"},
			{daybook.Job{Schedule: "every 15m"}, "2026-11-15T10:14:59", "2026-11-15T10:00Z"},
			{daybook.Job{Schedule: "0 2,14 * * *", Timezone: "Asia/Shanghai"}, "2026-11-15T05:00:00", "2026-11-15T02:00"},
			// Days off do not fire: 1 to 7 October are holidays in China, 10 October is a make-up working day.
			{daybook.Job{Schedule: "0 9 * * *", Timezone: "Asia/Shanghai", Calendar: "cn", BusinessDays: daybook.BusinessSkip}, "2025-10-05T04:00:00", "2025-09-30"},
			{daybook.Job{Schedule: "0 9 * * 6,0", Timezone: "Asia/Shanghai", Calendar: "cn", BusinessDays: daybook.BusinessSkip}, "2025-09-30T04:00:00", "2025-09-28"},
			// A clock change takes the fire out: the day before counts.
			{daybook.Job{Schedule: "30 2 * * *", Timezone: "Europe/Berlin", ClockGap: daybook.GapSkip}, "2026-03-29T12:00:00", "2026-03-28"},
		} {
			c.job.Name = fmt.Sprintf("job%d", i)
			b.job(c.job)
			b.at(utc(c.at))
			a := b.trigger(control.Request{Job: c.job.Name})
			if want := daybook.Key(c.job.Name + ":" + c.want); a.Key != want || a.Outcome != daybook.Started {
				t.Errorf("%s %s at %s: %s, want %s", c.job.Schedule, c.job.Timezone, c.at, a.Line(), want)
			}
			if a.Run != nil && (a.Run.Window.Label != c.want || a.Run.Cover.Start != a.Run.Window.Start || a.Run.Cover.End != a.Run.Window.End || !a.Run.Due.Equal(b.now)) {
				t.Errorf("%s: made %+v", a.Key, a.Run)
			}
			b.at(day("2026-01-01"))
		}
	})
}

func TestWindowsAndDatesAreChecked(t *testing.T) {
	lite(t, func(b *bench) {
		b.at(day("2026-01-01"))
		b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", HasSubjects: true})
		b.job(daybook.Job{Name: "weekly", Schedule: "0 8 * * *", Window: daybook.PreviousWeek})
		b.job(daybook.Job{Name: "sync", Schedule: "0 2,14 * * *"})
		b.job(daybook.Job{Name: "fix"})
		b.job(daybook.Job{Name: "welcome", Window: daybook.PerEvent})
		b.at(utc("2026-10-26T12:00:00"))
		for _, c := range []struct {
			q        control.Request
			code     daybook.Code
			says     string // of the error or its hint
			wantsKey daybook.Key
		}{
			{control.Request{Job: "renew", Date: "2026-10-25"}, "", "", "renew:2026-10-25"},
			{control.Request{Job: "renew", Window: "2026-10-25", Subject: "sub_42", Unlisted: true}, "", "", "renew:2026-10-25/sub_42"},
			{control.Request{Job: "fix", Date: "2026-10-25"}, "", "", "fix:2026-10-25"},
			{control.Request{Job: "weekly", Window: "2026-W42"}, "", "", "weekly:2026-W42"},
			{control.Request{Job: "sync", Window: "2026-10-26T02:00"}, "", "", "sync:2026-10-26T02:00"},
			{control.Request{Job: "renw", Window: "2026-10-25"}, daybook.CodeNotFound, "did you mean renew?", ""},
			{control.Request{Job: "Renew"}, daybook.CodeNotFound, "did you mean renew?", ""},
			{control.Request{Job: "x\r\nBcc: a@b.test"}, daybook.CodeNotFound, `"x\r\nBcc: a@b.test"`, ""},
			{control.Request{Job: "renew", Window: "2026-10-25", Date: "2026-10-25"}, daybook.CodeInvalid, "give one", ""},
			{control.Request{Job: "renew", Window: "2026-W42"}, daybook.CodeInvalid, "2026-10-26", ""},
			{control.Request{Job: "renew", Window: "2026-02-30"}, daybook.CodeInvalid, "no such date", ""},
			{control.Request{Job: "renew", Date: "yesterday"}, daybook.CodeInvalid, "a day is written", ""},
			{control.Request{Job: "renew", Window: "2026-10-25/sub_42"}, daybook.CodeInvalid, "--subject", ""},
			{control.Request{Job: "weekly", Date: "2026-10-26"}, daybook.CodeInvalid, "--window 2026-W43", ""},
			{control.Request{Job: "sync", Date: "2026-10-26"}, daybook.CodeInvalid, "a fire is written", ""},
			{control.Request{Job: "sync", Window: "2026-10-26T03:00"}, daybook.CodeInvalid, "2026-10-26T02:00 and 2026-10-26T14:00", ""},
			{control.Request{Job: "fix"}, daybook.CodeInvalid, "add --window: a day is written", ""},
			{control.Request{Job: "welcome"}, daybook.CodeInvalid, "--window ID", ""},
			{control.Request{Job: "welcome", Date: "2026-10-26"}, daybook.CodeInvalid, "--window ID", ""},
			{control.Request{Job: "renew", Payload: json.RawMessage(`{"a":`)}, daybook.CodeInvalid, "not JSON", ""},
			{control.Request{Job: "renew", Payload: json.RawMessage(`"` + strings.Repeat("x", daybook.MaxPayloadBytes) + `"`)}, daybook.CodeInvalid, "at most", ""},
			{control.Request{Job: "renew", Subject: strings.Repeat("ü", 100)}, daybook.CodeInvalid, "at most 128", ""},
			{control.Request{Job: "renew", Note: strings.Repeat("x", daybook.MaxReasonBytes+1)}, daybook.CodeInvalid, "at most 500", ""},
			{control.Request{Job: "renew", Note: "a\nb"}, daybook.CodeInvalid, "control character", ""},
			{control.Request{Job: "renew", Note: "a\u202eb"}, daybook.CodeInvalid, "control character", ""},
			{control.Request{Job: "renew", Note: "a\xff"}, daybook.CodeInvalid, "UTF-8", ""},
			{control.Request{Job: "renew", Source: daybook.SourceSchedule}, daybook.CodeInvalid, "not a door", ""},
			{control.Request{Job: "renew", Source: daybook.SourceReplay}, daybook.CodeInvalid, "dead replay", ""},
		} {
			a, err := b.Trigger(b.ctx, ops, c.q)
			if daybook.CodeOf(err) != c.code || a.Key != c.wantsKey {
				t.Errorf("%+v: %s, %v (%s)", c.q, a.Key, err, daybook.CodeOf(err))
				continue
			}
			if err != nil && !strings.Contains(err.Error()+" "+daybook.HintOf(err), c.says) {
				t.Errorf("%+v: %q, hint %q, want %q", c.q, err, daybook.HintOf(err), c.says)
			}
		}
		for _, p := range []control.Person{{}, {Name: "a\nb"}, {Name: "ops", Source: daybook.SourceSchedule}, {Name: strings.Repeat("x", 101)}} {
			if _, err := b.Trigger(b.ctx, p, control.Request{Job: "renew"}); daybook.CodeOf(err) != daybook.CodeInvalid {
				t.Errorf("%+v: %v", p, err)
			}
		}
		if runs, err := b.Find(b.ctx, "", 100); err != nil || len(runs) != 5 {
			t.Errorf("%d runs, %v: what is refused leaves nothing", len(runs), err)
		}
	})
}

func TestEventsAreKeyedByTheirID(t *testing.T) {
	each(t, func(b *bench) {
		b.job(daybook.Job{Name: "welcome", Window: daybook.PerEvent})
		q := control.Request{Job: "welcome", Window: "a~b 50%/ü", Subject: "user 9", Source: daybook.SourceEvent, Payload: json.RawMessage(`{"n": 1}`)}
		a := b.trigger(q)
		if a.Key != "welcome:a%7Eb%2050%25%2F%C3%BC" || a.Outcome != daybook.Started || a.Run.Subject != "user%209" || a.Run.Window.Date != "2026-03-01" {
			t.Fatalf("event: %s %+v", a.Key, a.Run)
		}
		if a = b.trigger(q); a.Outcome != daybook.Joined {
			t.Errorf("the same event: %s", a.Line())
		}
		q.Payload = json.RawMessage(`{"n": 1.0, "m": "x"}`)
		if a = b.trigger(q); a.HTTP != 422 || len(a.Difference) != 2 || a.Difference[0].String() != "n: 1, now 1.0" || a.Difference[1].String() != `m: absent, now "x"` {
			t.Errorf("another payload: %s %q", a.Line(), a.Difference)
		}
		if got := b.run(a.Key); string(got.Input) != `{"n": 1}` {
			t.Errorf("overwritten: %s", got.Input)
		}
		// Events of a paused job are held, never refused.
		if _, err := b.Pause(b.ctx, ops, "welcome", "mail server moves"); err != nil {
			t.Fatal(err)
		}
		q = control.Request{Job: "welcome", Window: "u_10", Source: daybook.SourceEvent}
		if a = b.trigger(q); a.Outcome != daybook.Started || a.HTTP != 201 || a.Run.Hold != daybook.ReasonPaused {
			t.Errorf("paused: %s %+v", a.Line(), a.Run)
		}
	})
}

func TestAFurtherEffectTakesTheNextFreeNumber(t *testing.T) {
	each(t, func(b *bench) {
		b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Overlap: daybook.OverlapAllow})
		b.at(utc("2026-10-26T12:00:00"))
		q := control.Request{Job: "renew", Window: "2026-10-26~2", Note: "charged the wrong amount"}
		if err := b.refusedWith(daybook.CodeConflict, q); !strings.Contains(err.Error(), "there is no renew:2026-10-26") {
			t.Errorf("no first: %v", err)
		}
		b.done("renew:2026-10-26")
		again := b.trigger(control.Request{Job: "renew", Again: true})
		if again.Because != daybook.BecauseOnce || !strings.Contains(again.Next(), "--window 2026-10-26~N") {
			t.Errorf("again: %s → %s", again.Line(), again.Next())
		}
		noNote := q
		noNote.Note = " "
		b.refusedWith(daybook.CodeInvalid, noNote)
		third := q
		third.Window = "2026-10-26~3"
		if err := b.refusedWith(daybook.CodeConflict, third); !strings.Contains(err.Error()+daybook.HintOf(err), "2026-10-26~2") {
			t.Errorf("a number left out: %v", err)
		}
		for _, bad := range []string{"2026-10-26~1", "2026-10-26~", "2026-10-26~02", "2026-10-26~x", "~2", "2026-10-26~2~3"} {
			w := q
			w.Window = bad
			b.refusedWith(daybook.CodeInvalid, w)
		}
		a := b.trigger(q)
		if a.Outcome != daybook.Started || a.Key != "renew:2026-10-26~2" || a.Run.Window.Label != "2026-10-26" {
			t.Fatalf("second: %s %+v", a.Line(), a.Run)
		}
		if a = b.trigger(q); a.Outcome != daybook.Joined {
			t.Errorf("the same question twice is one effect: %s", a.Line())
		}
		b.end(a.Key, daybook.Outcome{Result: daybook.ResultDone})
		if a = b.trigger(q); a.Outcome != daybook.Reused {
			t.Errorf("and is answered from its row: %s", a.Line())
		}
		if a = b.trigger(third); a.Outcome != daybook.Started {
			t.Errorf("third: %s", a.Line())
		}
		// Subjects have numbers of their own.
		sub := q
		sub.Subject = "sub_7"
		b.refusedWith(daybook.CodeConflict, sub)
		s, err := b.Key(b.ctx, "renew:2026-10-26")
		if err != nil || fmt.Sprint(s.Further) != "[renew:2026-10-26~2 renew:2026-10-26~3]" {
			t.Errorf("further: %v %v", s.Further, err)
		}
		acts, err := b.Activities(b.ctx, time.Time{}, "ops", 10)
		found := 0
		for _, act := range acts {
			if act.Action == "trigger further effect" && act.Note == "charged the wrong amount" {
				found++
			}
		}
		if err != nil || found != 2 {
			t.Errorf("%d further effects recorded in %+v", found, acts)
		}
	})
}

func TestAJobOfAFileIsMadeKnownByItsFirstTrigger(t *testing.T) {
	each(t, func(b *bench) {
		j := daybook.Job{Name: "renew", Owner: "ops", Schedule: "0 2 * * *", Timezone: "UTC", Window: daybook.Day}
		b.defined["renew"] = &j
		b.at(utc("2026-10-26T12:00:00"))
		if v, err := b.Job(b.ctx, "renew"); err != nil || v.State.Revision != 0 || v.NextKey != "renew:2026-10-27" {
			t.Errorf("before: %+v %v", v, err)
		}
		if a, err := b.Preview(b.ctx, ops, control.Request{Job: "renew"}); err != nil || a.Outcome != daybook.Started || a.Key != "renew:2026-10-26" {
			t.Errorf("previewed: %+v %v", a, err)
		}
		if jobs, err := b.Jobs(b.ctx); err != nil || len(jobs) != 0 {
			t.Errorf("a preview made the job known: %v %v", jobs, err)
		}
		a := b.trigger(control.Request{Job: "renew"})
		if a.Outcome != daybook.Started || a.Run.Home != "" || a.Run.Revision != 1 || a.Run.Effects != daybook.Repeatable {
			t.Errorf("made %+v", a.Run)
		}
		jobs, err := b.Jobs(b.ctx)
		if err != nil || len(jobs) != 1 || jobs[0].State.Revision != 1 || jobs[0].Job.Missed != daybook.CatchUp {
			t.Errorf("jobs %+v %v", jobs, err)
		}
		if _, err := b.Trigger(b.ctx, ops, control.Request{Job: "renew", Define: &j}); daybook.CodeOf(err) != daybook.CodeConflict {
			t.Errorf("once defines what a file defines: %v", err)
		}
	})
}

func TestOnceDefinesItsOwnJobs(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-10-26T12:00:00"))
		j := daybook.Job{Name: "backup", Owner: "ops", Schedule: "0 2 * * *", Timezone: "UTC", Window: daybook.Day,
			Command: daybook.Command{Argv: []string{"./backup", "all of it"}}}
		q := control.Request{Job: "backup", Source: daybook.SourceOnce, Define: &j}
		a := b.trigger(q)
		if a.Outcome != daybook.Started || a.Run.Home != daybook.HomeOnce || a.NobodyExecutes || a.Key != "backup:2026-10-26" {
			t.Fatalf("once: %+v %+v", a.Reply, a.Run)
		}
		byHand := b.trigger(control.Request{Job: "backup"})
		if byHand.NobodyExecutes || !strings.HasSuffix(byHand.Line(), "only daybook once runs it.") ||
			byHand.Next() != "daybook once --job backup --tz UTC --schedule '0 2 * * *' --window day --date 2026-10-26 -- ./backup 'all of it'" {
			t.Errorf("by hand: %s → %s", byHand.Line(), byHand.Next())
		}
		if a = b.trigger(q); a.Outcome != daybook.Joined || a.Exit != daybook.ExitElsewhere || a.Job.Revision != 1 {
			t.Errorf("twice: %+v, revision %d", a.Reply, a.Job.Revision)
		}
		j.Timeout = time.Minute
		if a = b.trigger(q); a.Job.Revision != 2 {
			t.Errorf("changed: revision %d", a.Job.Revision)
		}
		b.at(utc("2026-10-27T12:00:00")) // the next day's line says its day to the command too
		j.Command = daybook.Command{Argv: []string{"./backup", "2026-10-27"}}
		if a = b.trigger(q); a.Job.Revision != 3 || a.Key != "backup:2026-10-27" {
			t.Errorf("the next day: %s, revision %d", a.Key, a.Job.Revision)
		}
		for window, words := range map[string]string{"2026-10-26": "'all of it'", "2026-10-27": "2026-10-27"} {
			a := b.trigger(control.Request{Job: "backup", Window: window})
			if want := "daybook once --job backup --tz UTC --schedule '0 2 * * *' --window day --date " + window + " -- ./backup " + words; a.Next() != want {
				t.Errorf("%s: %s, want %s", window, a.Next(), want)
			}
		}
		j.Name = "other"
		b.refusedWith(daybook.CodeInvalid, q)
	})
}

func TestAKeyKeepsItsMeaningWhenItsJobChangesOrGoes(t *testing.T) {
	each(t, func(b *bench) {
		b.job(daybook.Job{Name: "report", Schedule: "0 2 * * *", Window: daybook.Day})
		b.at(utc("2026-10-26T12:00:00"))
		b.done("report:2026-10-26")
		b.job(daybook.Job{Name: "report", Schedule: "weekly mon 02:00"})
		if a := b.trigger(control.Request{Job: "report", Window: "2026-10-26"}); a.Outcome != daybook.Reused {
			t.Errorf("a label of before: %s", a.Line())
		}
		b.refusedWith(daybook.CodeInvalid, control.Request{Job: "report", Window: "2026-10-25"})
		if _, err := b.s.TakeRevisions(b.ctx, nil, true, b.now); err != nil {
			t.Fatal(err)
		}
		if a := b.trigger(control.Request{Job: "report", Window: "2026-10-26"}); a.Outcome != daybook.Reused {
			t.Errorf("of a retired job: %s", a.Line())
		}
		if err := b.refusedWith(daybook.CodeConflict, control.Request{Job: "report"}); !strings.Contains(err.Error(), "defined by no file any more") {
			t.Errorf("new, of a retired job: %v", err)
		}
		b.defined["report"] = &daybook.Job{Name: "report", Owner: "ops", Schedule: "weekly mon 02:00", Timezone: "UTC"}
		if a := b.trigger(control.Request{Job: "report"}); a.Outcome != daybook.Started || a.Key != "report:2026-W44" {
			t.Errorf("defined again: %s", a.Line())
		}
	})
}

func TestPrunedKeysStillAnswer(t *testing.T) {
	each(t, func(b *bench) {
		b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once})
		b.at(utc("2026-03-15T12:00:00"))
		q := control.Request{Job: "renew", Date: "2026-03-15", Payload: json.RawMessage(`{"amount":1500}`)}
		a := b.trigger(q)
		b.end(a.Key, daybook.Outcome{Result: daybook.ResultDone, Counts: map[string]int64{"charges": 20}, Data: json.RawMessage(`{"ok":true}`)})
		b.at(utc("2026-04-20T12:00:00"))
		n, err := b.s.Prune(b.ctx, daybook.Retention{Log: 30 * 24 * time.Hour}, b.now, 1000, false)
		if err != nil || n != 1 {
			t.Fatalf("pruned %d, %v", n, err)
		}
		b.after(time.Second)
		if a = b.trigger(q); a.Outcome != daybook.Reused || a.Run.PrunedAt.IsZero() || a.Run.Input != nil {
			t.Errorf("last month's date: %s %+v", a.Line(), a.Run)
		}
		if want := "renew:2026-03-15  already done at 2026-03-15 12:00:00 by ops (manual) (20 charges). Nothing was repeated."; a.Line() != want {
			t.Errorf("%s\nwant %s", a.Line(), want)
		}
		q.Payload = json.RawMessage(`{"amount":1600}`)
		if a = b.trigger(q); a.HTTP != 422 || len(a.Difference) != 1 {
			t.Errorf("another payload: %s", a.Line())
		}
		if runs, err := b.s.Claim(b.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 9, Lease: b.now.Add(time.Minute), NewID: func() string { return "x" }}, b.now); err != nil || len(runs) != 0 {
			t.Errorf("%d runs to execute, %v", len(runs), err)
		}
		s, err := b.Key(b.ctx, "renew:2026-03-15")
		if err != nil || s.Timeline[len(s.Timeline)-3].What != "pruned" {
			t.Errorf("story %+v %v", s.Timeline, err)
		}
	})
}
