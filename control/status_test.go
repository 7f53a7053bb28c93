package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func (b *bench) status() control.Status {
	b.t.Helper()
	s, err := b.Status(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// judged checks a verdict, and that one of its reasons says a text.
func (b *bench) judged(what string, verdict control.Verdict, says string) control.Status {
	b.t.Helper()
	s := b.status()
	because := daybook.Texts(s.Ran.Because).String()
	if s.Ran.Verdict != verdict || !strings.Contains(because, says) || says == "" && because != "" {
		b.t.Errorf("%s: %s, because %s; want %s, because %s", what, s.Ran.Verdict, because, verdict, says)
	}
	return s
}

func TestDidEverythingRun(t *testing.T) {
	each(t, func(b *bench) {
		s := b.judged("an empty ledger", control.VerdictNotKnown, "no job is defined")
		if s.Exit() != daybook.ExitNeedsPerson || s.Money.Verdict != control.VerdictNotKnown || s.Money.Because[0].String() != "there is no reconcile job" {
			t.Errorf("empty: exit %d, money %+v", s.Exit(), s.Money)
		}
		b.at(utc("2026-03-01T12:00:00"))
		renew := b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once})
		mail := b.job(daybook.Job{Name: "mail", Schedule: "0 3 * * *", Window: daybook.Day})
		s = b.judged("no serve", control.VerdictNotKnown, "no serve was ever seen")
		if s.Exit() != daybook.ExitUnreachable || s.NeedsYou[0].Do.String() != "daybook serve" {
			t.Errorf("no serve: exit %d, %+v", s.Exit(), s.NeedsYou)
		}
		b.beat(daybook.Node{})
		s = b.judged("new", control.VerdictYes, "")
		if s.Exit() != 0 || s.Done != 0 || s.Of != 0 || len(s.Next) != 2 || s.Next[0].Key != "renew:2026-03-02" || s.Next[1].Key != "mail:2026-03-02" {
			t.Errorf("new: exit %d, %d of %d, %+v", s.Exit(), s.Done, s.Of, s.Next)
		}
		b.after(31 * time.Second)
		b.judged("31 s later", control.VerdictNotKnown, "a serve was seen last 31 s ago")

		// 02:00: due, and not yet decided by any scheduler.
		tick := func(text string) { b.t.Helper(); b.at(utc(text)); b.beat(daybook.Node{}) }
		tick("2026-03-02T02:00:30")
		b.judged("on time", control.VerdictYes, "")
		tick("2026-03-02T02:02:00")
		b.judged("not decided", control.VerdictNotKnown, "renew:2026-03-02 is late by 2 m: no scheduler has decided it")
		tick("2026-03-02T02:31:00")
		s = b.judged("past its grace", control.VerdictNo, "renew:2026-03-02 is late by 31 m")
		if len(s.NeedsYou) != 1 || s.NeedsYou[0].Kind != "late" || s.NeedsYou[0].Priority != daybook.P0 || s.Exit() != daybook.ExitNeedsPerson {
			t.Errorf("late: %+v", s.NeedsYou)
		}
		b.plan(renew, b.now, missed("2026-03-02"))
		b.plan(mail, b.now)
		b.judged("decided, and waiting", control.VerdictNo, "renew:2026-03-02 is late by 31 m: scheduled")
		b.end("renew:2026-03-02", daybook.Outcome{Result: daybook.ResultDone})
		if s = b.judged("done", control.VerdictYes, ""); s.Done != 1 || s.Of != 1 {
			t.Errorf("done: %d of %d", s.Done, s.Of)
		}

		// 03:00: mail is at work on time, fails, and is late, which is no reason for no: it is P1.
		tick("2026-03-02T03:00:10")
		w := missed("2026-03-02")
		w.Fires, w.FireAt, w.Last, w.Missed = []string{"2026-03-02T03:00"}, utc("2026-03-02T03:00:00"), utc("2026-03-02T03:00:00"), false
		b.plan(mail, b.now, w)
		b.plan(renew, b.now)
		r := b.claim("mail:2026-03-02")
		tick("2026-03-02T03:45:00")
		b.judged("at work", control.VerdictYes, "")
		m := r.Next(daybook.Outcome{Result: daybook.ResultNotDone, Error: "smtp 421"}, b.policy(r.Key), b.now)
		if _, err := b.s.Apply(b.ctx, []daybook.Transition{m}); err != nil {
			t.Fatal(err)
		}
		s = b.judged("on the ladder", control.VerdictNotKnown, "mail:2026-03-02 is late by 45 m: smtp 421")
		if len(s.NeedsYou) != 0 || len(s.Late) != 1 || !s.Late[0].Over {
			t.Errorf("on the ladder: %+v %+v", s.NeedsYou, s.Late)
		}
		b.after(time.Hour)
		b.beat(daybook.Node{})
		b.end("mail:2026-03-02", daybook.Outcome{Result: daybook.ResultPermanent, Error: "smtp 535 authentication failed"})
		s = b.judged("dead", control.VerdictNo, "1 open dead letter")
		if len(s.NeedsYou) != 1 || s.NeedsYou[0].Key != "mail:2026-03-02" || s.NeedsYou[0].Do.String() != "daybook dead replay mail:2026-03-02" || s.NeedsYou[0].Run == nil {
			t.Errorf("dead: %+v", s.NeedsYou)
		}
		if only, err := b.Status(b.ctx, "renew"); err != nil || only.Ran.Verdict != control.VerdictYes || len(only.Jobs) != 1 {
			t.Errorf("renew alone: %+v %v", only.Ran, err)
		}
		if _, err := b.Status(b.ctx, "renw"); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("no such job: %v", err)
		}
		if _, err := b.Dismiss(b.ctx, ops, "mail:2026-03-02", "nobody reads it"); err != nil {
			t.Fatal(err)
		}
		b.judged("dismissed", control.VerdictYes, "")
		if _, err := b.s.Hold(b.ctx, daybook.Hold{Name: daybook.HoldClock, Since: b.now, Detail: "leapt by 3 h"}); err != nil {
			t.Fatal(err)
		}
		b.judged("held", control.VerdictNo, "held: the clock is not confirmed: leapt by 3 h")
		if err := b.EndHold(b.ctx, ops, daybook.HoldClock, "it is right"); err != nil {
			t.Fatal(err)
		}
		if err := b.s.Fault(b.ctx, "mail", daybook.P1, "calendar gone.csv: no such file", b.now); err != nil {
			t.Fatal(err)
		}
		b.judged("a fault", control.VerdictNo, "mail cannot be planned: calendar gone.csv")
	})
}

func TestUnknownOutcomesAreShownWithHowToSettleThem(t *testing.T) {
	lite(t, func(b *bench) {
		b.renew()
		b.beat(daybook.Node{})
		b.unknown("renew:2026-10-26")
		s, err := b.Status(b.ctx, "renew")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range s.NeedsYou {
			if n.Kind == "unknown outcome" && n.Do.String() == `daybook run resolve renew:2026-10-26 --step run --as "done|not-done" --reason …` && n.WireKey == "renew:2026-10-26" && s.Counts.Unknown == 1 {
				return
			}
		}
		t.Errorf("%+v", s.NeedsYou)
	})
}

// TestSilenceIsMeasuredInBusinessWindows: a job of working days is not silent over a weekend.
func TestSilenceIsMeasuredInBusinessWindows(t *testing.T) {
	lite(t, func(b *bench) {
		b.at(utc("2026-10-22T10:00:00")) // a Thursday
		j := b.job(daybook.Job{Name: "report", Schedule: "0 9 * * 1-5", Window: daybook.Day})
		b.at(utc("2026-10-23T09:00:05"))
		w := missed("2026-10-23")
		w.Fires, w.FireAt, w.Last = []string{"2026-10-23T09:00"}, utc("2026-10-23T09:00:00"), utc("2026-10-23T09:00:00")
		b.plan(j, b.now, w)
		b.end("report:2026-10-23", daybook.Outcome{Result: daybook.ResultDone})
		for _, c := range []struct {
			at     string
			silent bool
		}{
			{"2026-10-25T23:00:00", false}, {"2026-10-26T08:59:00", false}, {"2026-10-26T10:00:00", false},
			{"2026-10-27T08:59:00", false}, {"2026-10-27T09:00:01", true}, // P1: one distance behind the window that is owed
		} {
			b.at(utc(c.at))
			b.beat(daybook.Node{})
			b.sql(fmt.Sprintf("UPDATE daybook_jobs SET cursor_us = %d", b.now.UnixMicro())) // a scheduler is at work, and runs nothing
			s := b.status()
			if got := s.Ran.Verdict == control.VerdictNo; got != c.silent || got && (s.NeedsYou[0].Kind != "silent" || !strings.Contains(s.NeedsYou[0].Text.String(), "no good window since report:2026-10-23")) {
				t.Errorf("at %s: %+v %+v", c.at, s.Ran, s.NeedsYou)
			}
		}
		if _, err := b.Pause(b.ctx, ops, "report", "holidays"); err != nil {
			t.Fatal(err)
		}
		b.judged("paused", control.VerdictYes, "")
		b.after(24 * time.Hour)
		b.beat(daybook.Node{})
		if _, err := b.Resume(b.ctx, ops, "report"); err != nil {
			t.Fatal(err)
		}
		b.sql(fmt.Sprintf("UPDATE daybook_jobs SET cursor_us = %d", b.now.UnixMicro()))
		b.judged("resumed", control.VerdictYes, "")
	})
}

// TestLiveRunsBehindManyOthersAreFound: a run that waits is late, however many newer windows there are.
func TestLiveRunsBehindManyOthersAreFound(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.make("renew:2026-09-01")
		for i := range 31 {
			k := daybook.Key(day("2026-09-10").AddDate(0, 0, i).Format("renew:2006-01-02"))
			b.make(k)
			if _, err := b.Cancel(b.ctx, ops, k, "x"); err != nil {
				t.Fatal(err)
			}
		}
		b.after(time.Hour)
		b.beat(daybook.Node{})
		found := false
		for _, l := range b.status().Late {
			found = found || l.Key == "renew:2026-09-01"
		}
		if !found {
			t.Errorf("late: %+v", b.status().Late)
		}
	})
}

func TestTheInventory(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-10-01T00:00:00"))
		b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Timezone: "Asia/Shanghai", Window: daybook.Day})
		b.job(daybook.Job{Name: "fix"})
		b.job(daybook.Job{Name: "shop", Schedule: "0 9 * * *", Timezone: "Asia/Shanghai", Calendar: "cn", BusinessDays: daybook.BusinessSkip})
		b.at(utc("2026-10-26T12:00:00"))
		b.done("renew:2026-10-26")
		jobs, err := b.Jobs(b.ctx)
		if err != nil || len(jobs) != 3 || jobs[0].Name != "fix" || jobs[1].Name != "renew" {
			t.Fatalf("%+v %v", jobs, err)
		}
		if fix := jobs[0]; fix.NextKey != "" || fix.DueKey != "" || !fix.Words.IsZero() || fix.Last != nil {
			t.Errorf("without a schedule: %+v", fix)
		}
		v := jobs[1]
		if v.Words.String() != "at 02:00 every day, Asia/Shanghai time" || v.NextKey != "renew:2026-10-27" || v.DueKey != "renew:2026-10-26" ||
			v.LastGood.Key != "renew:2026-10-26" || v.Last.State != daybook.Done || v.Retired() {
			t.Errorf("renew: %+v", v)
		}
		next, err := b.Next(b.ctx, "shop", 3, utc("2026-09-30T02:00:00"))
		if err != nil || len(next) != 3 || next[0].Key != "shop:2026-10-01" || next[0].Fire.Skip != daybook.ReasonDayOff {
			t.Errorf("next: %+v %v", next, err)
		}
		for _, n := range []int{0, 1001} {
			if _, err := b.Next(b.ctx, "shop", n, time.Time{}); daybook.CodeOf(err) != daybook.CodeInvalid {
				t.Errorf("%d fires: %v", n, err)
			}
		}
		if _, err := b.Next(b.ctx, "shp", 1, time.Time{}); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("no such job: %v", err)
		}
		if _, err := b.Runs(b.ctx, daybook.Filter{State: "doen"}); daybook.CodeOf(err) != daybook.CodeInvalid || daybook.HintOf(err) != "did you mean done?" {
			t.Errorf("no such state: %v", err)
		}
		if _, err := b.Runs(b.ctx, daybook.Filter{Job: "renw"}); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("no such job: %v", err)
		}
		if runs, err := b.Runs(b.ctx, daybook.Filter{Job: "renew", State: daybook.Done}); err != nil || len(runs) != 1 {
			t.Errorf("runs: %v %v", runs, err)
		}
	})
}

func TestTheStoryOfAKey(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		const k = daybook.Key("renew:2026-10-26")
		b.make(k)
		b.after(time.Second)
		b.end(k, daybook.Outcome{Result: daybook.ResultPermanent, Error: "402 card declined", Detail: "exit 65"})
		b.after(time.Minute)
		b.trigger(control.Request{Job: "renew"})
		b.after(time.Minute)
		if _, err := b.Replay(b.ctx, ops, []daybook.Key{k}, "card changed"); err != nil {
			t.Fatal(err)
		}
		b.after(time.Second)
		r := b.claim(k)
		b.after(2 * time.Second)
		m := r.Next(daybook.Outcome{Result: daybook.ResultDone}, b.policy(k), b.now)
		if _, err := b.s.Apply(b.ctx, []daybook.Transition{m}); err != nil {
			t.Fatal(err)
		}
		s, err := b.Key(b.ctx, k)
		if err != nil || s.Absence != "" || s.Run.State != daybook.Done {
			t.Fatalf("%+v %v", s, err)
		}
		var lines []string
		for _, e := range s.Timeline {
			line := e.At.Format(time.TimeOnly) + " " + e.What + ": " + e.Text.String()
			if e.Note != "" {
				line += " — " + e.Note
			}
			lines = append(lines, line)
		}
		want := strings.Join([]string{
			"12:00:00 trigger: manual, ops → started",
			"12:00:01 attempt: attempt 1 → permanent (exit 65) on n1 — 402 card declined",
			"12:00:01 letter: dead letter — 402 card declined",
			"12:01:01 trigger: manual, ops → refused",
			"12:02:01 trigger: replay, ops → started — card changed",
			"12:02:01 letter: letter replayed by ops — card changed",
			"12:02:04 attempt: attempt 2 → done after 2 s on n1",
		}, "\n")
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("story:\n%s\nwant:\n%s", got, want)
		}
		for key, absence := range map[daybook.Key]control.Absence{
			"renew:2026-10-25": control.AbsentNothing, "renew:2026-10-27": control.AbsentNotOpen, "renew:2026-W43": control.AbsentNoWindow,
		} {
			if s, err := b.Key(b.ctx, key); err != nil || s.Absence != absence || s.Run != nil || s.Line() == "" {
				t.Errorf("%s: %+v %v", key, s, err)
			}
		}
		if _, err := b.Key(b.ctx, "renw:2026-10-25"); daybook.CodeOf(err) != daybook.CodeNotFound || daybook.HintOf(err) != "did you mean renew?" {
			t.Errorf("no such job: %v", err)
		}
		if _, err := b.Key(b.ctx, "renew"); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("no key: %v", err)
		}
	})
}

func TestTheDoctor(t *testing.T) {
	each(t, func(b *bench) {
		look := func() string {
			t.Helper()
			found, err := b.Doctor(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, f := range found {
				if f.Level != control.LevelOK && f.Do.IsZero() {
					t.Errorf("%q says nothing to do", f.What)
				}
				lines = append(lines, string(f.Level)+" "+f.What.String())
			}
			return strings.Join(lines, "\n")
		}
		says := func(what, text string, want bool) {
			t.Helper()
			if got := look(); strings.Contains(got, text) != want {
				t.Errorf("%s: %q said is not %v in\n%s", what, text, want, got)
			}
		}
		says("an empty ledger", "warn no job is defined", true)
		b.at(utc("2026-10-20T00:00:00"))
		renew := b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once})
		says("nobody", "bad nobody executes: no serve was ever seen", true)
		b.beat(daybook.Node{Host: "a", Version: "1"})
		says("sound", "bad", false)
		says("sound", "warn", false)
		b.at(utc("2026-10-23T12:00:00"))
		b.beat(daybook.Node{Host: "a", Version: "1"})
		says("behind", "bad job renew: no scheduler has decided the fire 2026-10-20T02:00", true)
		b.plan(renew, b.now, missed("2026-10-20"), missed("2026-10-22"), missed("2026-10-23"))
		says("a hole", "bad 1 window has neither a run nor a reason: renew:2026-10-21", true)
		b.make("renew:2026-10-21")
		says("closed", "neither", false)

		b.beat(daybook.Node{ID: "n2", Host: "b", Version: "2", TZData: "1999a /usr/share/zoneinfo", Offset: -6 * time.Second})
		says("another node", "bad node b: its clock is off by -6s", true)
		says("another node", "warn node b has zone data 1999a", true)
		says("another node", "node b", true)
		b.dead("renew:2026-10-19")
		says("a letter", "warn 1 open dead letter", true)
		b.after(25 * time.Hour)
		says("an old letter", "bad 1 dead letter is open for more than 24 h", true)
		says("gone", "nobody executes: a serve was seen last 1 d 1 h ago, and", true)
		if _, err := b.s.Hold(b.ctx, daybook.Hold{Name: daybook.HoldClock, Since: b.now, Detail: "leapt"}); err != nil {
			t.Fatal(err)
		}
		says("held", "bad held: the clock is not confirmed", true)
		if err := b.s.Fault(b.ctx, "renew", daybook.P0, "no such\nzone", b.now); err != nil {
			t.Fatal(err)
		}
		says("a fault", "bad job renew: no such zone", true)
		b.job(daybook.Job{Name: "shop", Schedule: "0 9 * * *", Timezone: "Asia/Shanghai", Calendar: "cn", BusinessDays: daybook.BusinessSkip})
		if _, err := b.s.TakeRevisions(b.ctx, []daybook.Revision{}, true, b.now); err != nil {
			t.Fatal(err)
		}
		says("retired", "warn job renew is defined by no file any more and has open runs: renew:2026-10-23, renew:2026-10-22, renew:2026-10-21, renew:2026-10-20, renew:2026-10-19", true)
	})
}

func TestTheDoctorLooksAtCalendars(t *testing.T) {
	lite(t, func(b *bench) {
		b.at(utc("2026-03-01T00:00:00"))
		b.job(daybook.Job{Name: "shop", Schedule: "0 9 * * *", Timezone: "Asia/Shanghai", Calendar: "cn", BusinessDays: daybook.BusinessSkip})
		v, err := b.Job(b.ctx, "shop")
		if err != nil || v.Fault != "" {
			t.Fatalf("%+v %v", v, err)
		}
		b.at(utc("2036-12-01T00:00:00")) // beyond whatever the shipped data covers
		found, err := b.Doctor(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if strings.HasPrefix(f.What.String(), "calendar cn ends 20") && f.Level == control.LevelWarn {
				return
			}
		}
		t.Errorf("%+v", found)
	})
}

// TestALedgerOfOnceAlone misses no serve: what was started there is what there is to say.
func TestALedgerOfOnceAlone(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-10-26T12:00:00"))
		j := daybook.Job{Name: "backup", Owner: "ops", Schedule: "0 2 * * *", Timezone: "UTC", Window: daybook.Day, Command: daybook.Command{Argv: []string{"./backup"}}}
		b.trigger(control.Request{Job: "backup", Source: daybook.SourceOnce, Define: &j})
		look := func() (control.Status, string) {
			t.Helper()
			s, err := b.Status(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			found, err := b.Doctor(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, f := range found {
				lines = append(lines, string(f.Level)+" "+f.What.String()+" → "+f.Do.String())
			}
			return s, strings.Join(lines, "\n")
		}
		s, doctor := look()
		if !s.OnceOnly() || s.Ran.Verdict != control.VerdictYes || s.Exit() != daybook.ExitOK {
			t.Errorf("%+v, exit %d", s.Ran, s.Exit())
		}
		if !strings.Contains(doctor, "warn 1 run waits for its line") || strings.Contains(doctor, "daybook serve") {
			t.Errorf("%s", doctor)
		}
		// A job of a file wants a serve.
		b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day})
		s, doctor = look()
		if s.OnceOnly() || s.Exit() != daybook.ExitUnreachable || !strings.Contains(doctor, "nobody executes: no serve was ever seen, and 1 run waits") || !strings.Contains(doctor, "→ daybook serve") {
			t.Errorf("%+v, exit %d\n%s", s.Ran, s.Exit(), doctor)
		}
	})
}

// TestAKeyThatWaitsForItsLineIsNotGreen: nobody goes on with it by himself, so whether everything ran is not known.
func TestAKeyThatWaitsForItsLineIsNotGreen(t *testing.T) {
	lite(t, func(b *bench) {
		b.renew()
		b.make("renew:2026-10-25")
		b.sql("UPDATE daybook_runs SET home = 'once'")
		b.sql("UPDATE daybook_live SET home = 'once'")
		b.after(2 * time.Minute)
		b.beat(daybook.Node{})
		s, err := b.Status(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range s.NeedsYou {
			if n.Key == "renew:2026-10-25" && n.Kind == "nobody executes" && strings.Contains(n.Text.String(), "waits for its line") && s.Ran.Verdict != control.VerdictYes {
				return
			}
		}
		t.Errorf("%+v %+v", s.Ran, s.NeedsYou)
	})
}
