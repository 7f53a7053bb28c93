package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
)

func (b *bench) freezeFor(d time.Duration, change ...func(*control.FreezeRequest)) daybook.Freeze {
	b.t.Helper()
	q := control.FreezeRequest{For: d, Note: "deploy"}
	for _, c := range change {
		c(&q)
	}
	f, err := b.StartFreeze(b.ctx, ops, q)
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

func named(name string) func(*control.FreezeRequest) {
	return func(q *control.FreezeRequest) { q.Name = name }
}

func TestFreezesOfPeople(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-03-01T12:00:00"))
		for what, c := range map[string]struct {
			q    control.FreezeRequest
			code daybook.Code
		}{
			"without an end":   {control.FreezeRequest{Note: "x"}, daybook.CodeInvalid},
			"backwards":        {control.FreezeRequest{For: -time.Minute, Note: "x"}, daybook.CodeInvalid},
			"beyond a day":     {control.FreezeRequest{For: 24*time.Hour + 1, Note: "x"}, daybook.CodeInvalid},
			"without a reason": {control.FreezeRequest{For: time.Minute}, daybook.CodeInvalid},
			"of P1":            {control.FreezeRequest{For: time.Minute, Only: daybook.P1, Note: "x"}, daybook.CodeInvalid},
			"with a bad name":  {control.FreezeRequest{For: time.Minute, Name: "A b", Note: "x"}, daybook.CodeInvalid},
			"called clock":     {control.FreezeRequest{For: time.Minute, Name: "clock", Note: "x"}, daybook.CodeConflict},
			"called restored":  {control.FreezeRequest{For: time.Minute, Name: "restored", Note: "x"}, daybook.CodeConflict},
		} {
			if _, err := b.StartFreeze(b.ctx, ops, c.q); daybook.CodeOf(err) != c.code {
				t.Errorf("%s: %v, want %s", what, err, c.code)
			}
		}
		if _, err := b.EndFreeze(b.ctx, ops, "", "x"); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("nothing to end: %v", err)
		}
		f := b.freezeFor(30*time.Minute, named("deploy"))
		if _, err := b.StartFreeze(b.ctx, ops, control.FreezeRequest{For: time.Hour, Name: "deploy", Note: "x"}); daybook.CodeOf(err) != daybook.CodeConflict {
			t.Errorf("twice: %v", err)
		}
		if one, two := b.freezeFor(time.Hour), b.freezeFor(time.Hour); one.Name != "freeze" || two.Name != "freeze-2" {
			t.Errorf("names: %s, %s", one.Name, two.Name)
		}
		l, err := b.Freezes(b.ctx)
		if err != nil || len(l.Freezes) != 3 || l.Freezes[0].Name != "deploy" || !l.Freezes[0].Until.Equal(f.Until) || l.Freezes[0].Actor != ops.Name || l.Freezes[0].Note != "deploy" {
			t.Errorf("list: %+v %v", l.Freezes, err)
		}
		if _, err := b.EndFreeze(b.ctx, ops, "", "x"); daybook.CodeOf(err) != daybook.CodeInvalid || !strings.Contains(err.Error(), "deploy, freeze, freeze-2") {
			t.Errorf("which: %v", err)
		}
		for _, name := range []string{"deploy", "freeze"} {
			if got, err := b.EndFreeze(b.ctx, ops, name, "over"); err != nil || got != name {
				t.Errorf("end %s: %s %v", name, got, err)
			}
		}
		if _, err := b.EndFreeze(b.ctx, ops, "deploy", "x"); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("ended before: %v", err)
		}
		if got, err := b.EndFreeze(b.ctx, ops, "", "over"); err != nil || got != "freeze-2" {
			t.Errorf("the one that stands: %s %v", got, err)
		}
		acts, err := b.Activities(b.ctx, time.Time{}, "", 20)
		if err != nil || len(acts) != 6 || acts[0].Action != "freeze end" || acts[5].Action != "freeze start" || !strings.Contains(acts[5].Note, "deploy, until 2026-03-01T12:30:00Z") {
			t.Errorf("activity: %+v %v", acts, err)
		}
	})
}

func TestATriggerInAFreeze(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-03-02T12:00:00"))
		b.beat(daybook.Node{})
		b.job(daybook.Job{Name: "mail", Window: daybook.Day, Overlap: daybook.OverlapAllow})
		b.freezeFor(30 * time.Minute)
		preview, err := b.Preview(b.ctx, ops, control.Request{Job: "mail", Window: "2026-03-01"})
		if err != nil || preview.Outcome != daybook.Started || !strings.Contains(preview.Line(), "held: frozen") {
			t.Errorf("preview: %s %v", preview.Line(), err)
		}
		a := b.trigger(control.Request{Job: "mail", Window: "2026-03-01"})
		if a.Outcome != daybook.Started || a.HTTP != 201 || a.Exit != 0 || !strings.Contains(a.Line(), "recorded and held: frozen until 12:30:00 UTC, it starts at 12:30:") {
			t.Errorf("answer: %+v %s", a.Reply, a.Line())
		}
		if a.Next() != "daybook freeze list" {
			t.Errorf("next: %s", a.Next())
		}
		if again := b.trigger(control.Request{Job: "mail", Window: "2026-03-01"}); again.Outcome != daybook.Joined || !strings.Contains(again.Line(), "is scheduled already, and held: frozen until 12:30:00") {
			t.Errorf("again: %s", again.Line())
		}
		j := control.NewRunJSON(b.run("mail:2026-03-01"))
		if j.Hold != daybook.ReasonFrozen || !j.FrozenUntil.Equal(utc("2026-03-02T12:30:00")) {
			t.Errorf("as JSON: %s %s", j.Hold, j.FrozenUntil)
		}
		b.after(10 * time.Minute)
		b.beat(daybook.Node{})
		s := b.judged("held, which is no delay", control.VerdictYes, "")
		if len(s.Freezes) != 1 || s.Frozen != 1 {
			t.Errorf("status: %+v, %d held", s.Freezes, s.Frozen)
		}
		l, err := b.Freezes(b.ctx)
		if err != nil || l.Total != 1 || l.Held[0].Key != "mail:2026-03-01" {
			t.Errorf("list: %+v %v", l, err)
		}
		b.at(utc("2026-03-02T12:31:00"))
		b.end("mail:2026-03-01", daybook.Outcome{Result: daybook.ResultDone})
	})
}

// TestAnUndoInAFreeze: it is recorded and held, says until when, and counts among what is held.
func TestAnUndoInAFreeze(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-03-02T12:00:00"))
		b.beat(daybook.Node{})
		b.job(daybook.Job{Name: "renew", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Overlap: daybook.OverlapAllow, UndoURL: "http://shop.test/undo"})
		b.trigger(control.Request{Job: "renew", Window: "2026-03-01"})
		b.end("renew:2026-03-01", daybook.Outcome{Result: daybook.ResultDone})
		b.freezeFor(30 * time.Minute)
		a, err := b.Undo(b.ctx, ops, "renew:2026-03-01", "wrong price")
		if err != nil || !strings.Contains(a.Line(), "It is held: frozen until 12:30:00 UTC, it starts at 12:30:") {
			t.Errorf("undo: %s %v", a.Line(), err)
		}
		l, err := b.Freezes(b.ctx)
		if err != nil || l.Total != 1 || l.Held[0].Key != "renew:2026-03-01~undo" {
			t.Errorf("list: %+v %v", l, err)
		}
	})
}

func TestFreezesOfAFileAreKnownToControl(t *testing.T) {
	lite(t, func(b *bench) {
		rules, err := calendar.CompileFreezes([]daybook.FreezeRule{{Name: "nightly", Schedule: "0 2 * * *", For: time.Hour, Only: daybook.P0}}, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		b.Control = control.New(b.s, control.Options{Clock: nowOf(b), Freezes: func() *calendar.Freezes { return rules }, NewID: func() string { return "c" }})
		b.at(utc("2026-03-02T01:30:00"))
		b.job(daybook.Job{Name: "renew", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Repeatable, Overlap: daybook.OverlapAllow})
		l, err := b.Freezes(b.ctx)
		if err != nil || len(l.Freezes) != 0 || len(l.Coming) != 1 || l.Coming[0].Name != "nightly" {
			t.Errorf("before: %+v %v", l, err)
		}
		b.at(utc("2026-03-02T02:10:00"))
		if a := b.trigger(control.Request{Job: "renew", Window: "2026-03-01"}); !strings.Contains(a.Line(), "frozen until 03:00:00") {
			t.Errorf("trigger: %s", a.Line())
		}
		// A line of the crontab does not wait for it.
		if a := b.trigger(control.Request{Job: "renew", Window: "2026-02-28", Source: daybook.SourceOnce}); a.Because != daybook.BecauseNew {
			t.Errorf("once: %s", a.Line())
		}
		// Nor does what an application does, whose undo it does itself.
		for job, home := range map[string]string{"renewal": "", "shop": "example.test/shop", "line": daybook.HomeOnce} {
			j := b.job(daybook.Job{Name: job, Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Overlap: daybook.OverlapAllow, UndoURL: "http://shop.test/undo"})
			k := daybook.Key(job + ":2026-03-01")
			b.at(utc("2026-03-02T01:00:00"))
			b.trigger(control.Request{Job: j.Name, Window: "2026-03-01"})
			b.end(k, daybook.Outcome{Result: daybook.ResultDone})
			b.sql("UPDATE daybook_runs SET home = '" + home + "' WHERE key = '" + string(k) + "'")
			b.at(utc("2026-03-02T02:10:00"))
			a, err := b.Undo(b.ctx, ops, k, "wrong price")
			if held := strings.Contains(a.Line(), "frozen until 03:00:00 UTC, it starts at 03:00:"); err != nil || held != (job != "shop") {
				t.Errorf("undo of %s: %s %v", job, a.Line(), err)
			}
		}
		if _, err := b.EndFreeze(b.ctx, ops, "nightly", "x"); daybook.CodeOf(err) != daybook.CodeConflict {
			t.Errorf("end: %v", err)
		}
		if _, err := b.StartFreeze(b.ctx, ops, control.FreezeRequest{For: time.Minute, Name: "nightly", Note: "x"}); daybook.CodeOf(err) != daybook.CodeConflict {
			t.Errorf("start: %v", err)
		}
		if _, err := b.EndFreeze(b.ctx, ops, "", "x"); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("end without a name: %v", err)
		}
	})
}

func TestWhatADeploymentWouldMeet(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-03-02T01:00:00"))
		renew := b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Repeatable, Overlap: daybook.OverlapAllow,
			Retry: daybook.Retry{Backoff: []time.Duration{5 * time.Minute, 50 * time.Minute}, Jitter: -1}})
		b.job(daybook.Job{Name: "mail", Schedule: "0 2 * * *", Window: daybook.Day})
		check := func(span time.Duration) string {
			t.Helper()
			f, err := b.CheckFreeze(b.ctx, span)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, n := range f.Coming {
				list = append(list, string(n.Key)+" "+n.At.Format("15:04"))
			}
			if (f.Exit() == 0) != (len(list) == 0) || f.Exit() != 0 && f.Exit() != daybook.ExitRefused {
				t.Errorf("exit %d with %v", f.Exit(), list)
			}
			return strings.Join(list, ", ")
		}
		is := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		is("nothing near", check(31*time.Minute), "")
		is("a fire", check(61*time.Minute), "renew:2026-03-02 02:00")
		b.at(utc("2026-03-02T02:00:00"))
		b.plan(renew, b.now, daybook.PlannedWindow{Window: daybook.Window{Label: "2026-03-02", Date: "2026-03-02", Start: day("2026-03-02"), End: day("2026-03-03")},
			Fires: []string{"2026-03-02T02:00"}, FireAt: b.now, Last: b.now})
		is("due", check(time.Minute), "renew:2026-03-02 02:00")
		r := b.claim("renew:2026-03-02")
		is("at work", check(time.Minute), "renew:2026-03-02 02:00")
		end := func(r *daybook.Run, o daybook.Outcome) {
			m := r.Next(o, renew.Policy(), b.now)
			if _, err := b.s.Apply(b.ctx, []daybook.Transition{m}); err != nil {
				t.Fatal(err)
			}
		}
		end(r, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"})
		is("a ladder whose try comes later", check(4*time.Minute), "")
		is("a ladder", check(31*time.Minute), "renew:2026-03-02 02:05")
		b.freezeFor(20 * time.Minute)
		is("a ladder that a freeze puts off", check(20*time.Minute), "")
		if got := check(25 * time.Minute); !strings.HasPrefix(got, "renew:2026-03-02 02:2") {
			t.Errorf("behind the freeze: %q", got)
		}
		if _, err := b.EndFreeze(b.ctx, ops, "", "over"); err != nil {
			t.Fatal(err)
		}
		b.at(utc("2026-03-02T02:05:30"))
		r = b.claim("renew:2026-03-02")
		end(r, daybook.Outcome{Result: daybook.ResultPermanent, Error: "no"})
		is("a dead letter waits for a person", check(time.Hour), "")
		for _, span := range []time.Duration{0, -time.Second, 25 * time.Hour} {
			if _, err := b.CheckFreeze(b.ctx, span); daybook.CodeOf(err) != daybook.CodeInvalid {
				t.Errorf("a span of %s: %v", span, err)
			}
		}
	})
}

// A program claims nothing in a freeze of the file either, made before it or not; a line of the crontab does not wait for that.
func TestAClaimInAFreezeOfAFile(t *testing.T) {
	each(t, func(b *bench) {
		rules, err := calendar.CompileFreezes([]daybook.FreezeRule{{Name: "nightly", Schedule: "0 2 * * *", For: time.Hour}}, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		b.Control = control.New(b.s, control.Options{Clock: nowOf(b), Freezes: func() *calendar.Freezes { return rules }, NewID: func() string { n++; return fmt.Sprintf("c%d", n) }, NewSecret: func() string { return "s" }})
		b.at(utc("2026-03-02T01:30:00"))
		b.job(daybook.Job{Name: "renew", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Repeatable, Overlap: daybook.OverlapAllow})
		for _, day := range []string{"2026-02-27", "2026-02-28", "2026-03-01"} {
			b.trigger(control.Request{Job: "renew", Window: day})
		}
		b.at(utc("2026-03-02T02:10:00"))
		for what, q := range map[string]control.ClaimRequest{"claim": {Key: "renew:2026-02-27"}, "resume": {Key: "renew:2026-02-28", Resume: true}} {
			got, err := b.Claim(b.ctx, ops, q)
			if err != nil || got.Token != "" || got.Run.Hold != daybook.ReasonFrozen || !got.Run.FrozenUntil.Equal(utc("2026-03-02T03:00:00")) {
				t.Errorf("%s: %+v %+v %v", what, got.Token, got.Run, err)
			}
		}
		got, err := b.Claim(b.ctx, ops, control.ClaimRequest{Key: "renew:2026-03-01", Resume: true, Request: control.Request{Source: daybook.SourceOnce}})
		if err != nil || got.Token == "" {
			t.Errorf("a line: %+v %v", got.Run, err)
		}
	})
}
