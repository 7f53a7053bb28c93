package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/store/storetest"
)

// renamed makes charge carry on what renew did.
func (b *bench) renamed() {
	b.t.Helper()
	b.job(daybook.Job{Name: "charge", Formerly: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Overlap: daybook.OverlapAllow})
}

// TestEveryDoorFindsWhatStandsUnderTheOldName asks by the new name for what was done under the old one.
func TestEveryDoorFindsWhatStandsUnderTheOldName(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.done("renew:2026-10-24")
		b.dead("renew:2026-10-23")
		b.unknown("renew:2026-10-22")
		b.dead("renew:2026-10-21")
		b.make("renew:2026-10-25")
		b.renamed()

		request := control.Request{Job: "charge", Window: "2026-10-24"}
		preview, err := b.Preview(b.ctx, ops, request)
		if err != nil {
			t.Fatal(err)
		}
		for what, a := range map[string]control.Answer{"preview": preview, "trigger": b.trigger(request), "date": b.trigger(control.Request{Job: "charge", Date: "2026-10-24"}),
			"once": b.trigger(control.Request{Job: "charge", Window: "2026-10-24", Source: daybook.SourceOnce})} {
			if a.Key != "renew:2026-10-24" || a.Outcome != daybook.Reused || !strings.HasPrefix(a.Line(), "renew:2026-10-24  already done") {
				t.Errorf("%s: %s %s", what, a.Outcome, a.Line())
			}
		}
		if a := b.trigger(control.Request{Job: "charge", Window: "2026-10-25"}); a.Outcome != daybook.Joined || a.Key != "renew:2026-10-25" {
			t.Errorf("waiting: %s", a.Line())
		}
		if a := b.trigger(control.Request{Job: "charge"}); a.Key != "charge:2026-10-26" || a.Outcome != daybook.Started {
			t.Errorf("new: %s", a.Line())
		}
		answers, err := b.Replay(b.ctx, ops, []daybook.Key{"charge:2026-10-23", "charge:2026-10-01"}, "")
		if err != nil {
			t.Fatal(err)
		}
		if a := answers[0]; a.Key != "renew:2026-10-23" || a.Outcome != daybook.Started || a.Run.WireKey() != "renew:2026-10-23#run@2" {
			t.Errorf("replay: %s", a.Line())
		}
		if a := answers[1]; a.Exit != daybook.ExitNotFound {
			t.Errorf("replay of what is not there: %s", a.Line())
		}
		if acted, err := b.Resolve(b.ctx, ops, "charge:2026-10-22", control.Word{Step: daybook.StepRun, As: daybook.AsDone}, "seen in the book"); err != nil || acted.Key != "renew:2026-10-22" || acted.Run.State != daybook.Done {
			t.Errorf("resolve: %+v %v", acted, err)
		}
		if acted, err := b.Dismiss(b.ctx, ops, "charge:2026-10-21", "customer left"); err != nil || acted.Key != "renew:2026-10-21" {
			t.Errorf("dismiss: %+v %v", acted, err)
		}
		story, err := b.Key(b.ctx, "charge:2026-10-24")
		if err != nil || story.Key != "renew:2026-10-24" || story.Run == nil || len(story.Timeline) == 0 {
			t.Errorf("story: %+v %v", story, err)
		}
		if list, err := b.Attempts(b.ctx, "charge:2026-10-24"); err != nil || len(list) != 1 {
			t.Errorf("attempts: %v %v", list, err)
		}
		if runs, err := b.Find(b.ctx, "charge:2026-10-2", 10); err != nil || len(runs) != 6 || runs[0].Key != "charge:2026-10-26" {
			t.Errorf("found: %v %v", runs, err)
		}
		// A further effect counts those of the old name, and needs the first one only.
		if a := b.trigger(control.Request{Job: "charge", Window: "2026-10-24~2", Note: "asked to"}); a.Key != "charge:2026-10-24~2" || a.Outcome != daybook.Started {
			t.Errorf("further: %s", a.Line())
		}
	})
}

func TestTheOldNameAsksForNothingNew(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.done("renew:2026-10-24")
		b.renamed()
		if a := b.trigger(control.Request{Job: "renew", Window: "2026-10-24"}); a.Outcome != daybook.Reused {
			t.Errorf("known: %s", a.Line())
		}
		err := b.refusedWith(daybook.CodeConflict, control.Request{Job: "renew", Window: "2026-10-25"})
		if !strings.Contains(err.Error(), "job renew is called charge now") || daybook.HintOf(err) != "ask for charge:2026-10-25" {
			t.Errorf("%v: %s", err, daybook.HintOf(err))
		}
		// The line of a crontab that was forgotten must not begin again under the old name.
		line := daybook.Job{Name: "renew", Owner: "ops", Timezone: "UTC", Schedule: "0 2 * * *", Window: daybook.Day, Command: daybook.Command{Argv: []string{"true"}}}
		b.refusedWith(daybook.CodeConflict, control.Request{Job: "renew", Window: "2026-10-26", Source: daybook.SourceOnce, Define: &line})
	})
}

// TestARenameIsTakenByWhoeverServes: a command that knows the new file does not take the job away from a process that works by
// the old one.
func TestARenameIsTakenByWhoeverServes(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.done("renew:2026-10-24")
		b.beat(daybook.Node{})
		j := daybook.Job{Name: "charge", Formerly: "renew", Owner: "ops", Timezone: "UTC", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once,
			Command: daybook.Command{Argv: []string{"true"}}}
		b.defined["charge"] = &j
		b.refusedWith(daybook.CodeConflict, control.Request{Job: "charge", Window: "2026-10-25"})
		if a, err := b.Preview(b.ctx, ops, control.Request{Job: "charge", Window: "2026-10-24"}); err != nil || a.Key != "renew:2026-10-24" {
			t.Errorf("preview: %s %v", a.Line(), err)
		}
		b.after(time.Hour) // nobody serves any more: once takes it over
		if a := b.trigger(control.Request{Job: "charge", Window: "2026-10-24"}); a.Key != "renew:2026-10-24" || a.Outcome != daybook.Reused {
			t.Errorf("taken over: %s", a.Line())
		}
	})
}

func TestTheInventoryOfARenamedJobGoesOn(t *testing.T) {
	each(t, func(b *bench) {
		b.at(day("2026-10-19"))
		j := b.job(daybook.Job{Name: "weekly", Schedule: "0 8 * * *", Window: daybook.Week})
		b.at(utc("2026-10-20T09:00:00"))
		b.done("weekly:2026-W43")
		b.plan(j, b.now)
		b.beat(daybook.Node{})
		b.job(daybook.Job{Name: "report", Formerly: "weekly", Schedule: "0 8 * * *", Window: daybook.Week})
		v, err := b.Job(b.ctx, "report")
		if err != nil || v.LastGood.Key != "weekly:2026-W43" || v.DueKey != "weekly:2026-W43" || v.NextKey != "weekly:2026-W43" {
			t.Errorf("%+v %v", v, err)
		}
		b.judged("renamed in the middle of a week that is done", control.VerdictYes, "")
		s := b.status()
		if len(s.Jobs) != 1 || s.Done != 1 || s.Of != 1 {
			t.Errorf("%d jobs, %d of %d done", len(s.Jobs), s.Done, s.Of)
		}
		found, err := b.Doctor(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Level == control.LevelBad {
				t.Errorf("%+v", f)
			}
		}
	})
}

// What stands under the old name and is due is claimed with the trigger that asks by the new one, by whichever door.
func TestWhatStandsUnderTheOldNameIsClaimed(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.make("renew:2026-10-24")
		b.make("renew:2026-10-25")
		b.renamed()
		take := daybook.Claim{Node: "n1", Limit: 1, Lease: b.now.Add(aMinute), NewID: func() string { return "line" }}
		a, err := b.Trigger(b.ctx, ops, control.Request{Job: "charge", Window: "2026-10-24", Source: daybook.SourceOnce, Take: &take})
		if err != nil || a.Key != "renew:2026-10-24" || a.Run.State != daybook.Running || a.Run.Claim != "line" {
			t.Errorf("by a line: %s, %+v %v", a.Key, a.Run, err)
		}
		b.Control = control.New(b.s, control.Options{Clock: nowOf(b), NewID: storetest.NewID, NewSecret: func() string { return "s" }})
		got, err := b.Claim(b.ctx, ops, control.ClaimRequest{Key: "charge:2026-10-25"})
		if err != nil || got.Token == "" || got.Key != "renew:2026-10-25" || got.Run.State != daybook.Running {
			t.Errorf("by a program: %+v %v", got, err)
		}
	})
}
