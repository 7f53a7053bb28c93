package control_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// Every door is knocked at as often as asked, and answered as who comes by it; nothing comes of it, and that is on record.
func TestDrill(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.done("renew:2026-10-26")
		counts := 0
		q := control.DrillRequest{Job: "renew", Date: "2026-10-26", Doors: daybook.DrillDoors, Count: func(_ context.Context, r *daybook.Run) (string, error) {
			counts++
			return "1 for " + string(r.Key), nil
		}}
		d, err := b.Drill(b.ctx, ops, q)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Passed() || d.NewEffects() != 0 || counts != 2 || d.CountAfter != "1 for renew:2026-10-26" || len(d.Knocks) != len(daybook.DrillDoors) {
			t.Errorf("%+v", d)
		}
		for _, k := range d.Knocks {
			if k.Times != 3 || k.Outcome != daybook.Reused {
				t.Errorf("%+v", k)
			}
		}
		triggers, err := b.s.Triggers(b.ctx, "renew:2026-10-26")
		if err != nil {
			t.Fatal(err)
		}
		drilled := 0
		for _, tr := range triggers {
			if tr.Source == daybook.SourceDrill && tr.Outcome == daybook.Reused && tr.Actor == ops.Name {
				drilled++
			}
		}
		if drilled != 3*len(daybook.DrillDoors) {
			t.Errorf("%d triggers are recorded as drills", drilled)
		}
		if list, err := b.Drills(b.ctx, "renew", 10); err != nil || len(list) != 1 || list[0].ID != d.ID {
			t.Errorf("%v %v", list, err)
		}
		if acts, err := b.Activities(b.ctx, day("2026-01-01"), "", 100); err != nil || acts[0].Action != "drill" || acts[0].After != "no effect" {
			t.Errorf("%+v %v", acts, err)
		}
	})
}

// What comes of it is seen: by the count of the far side, by what is recorded, and by the answers.
func TestADrillThatSeesSomething(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.done("renew:2026-10-26")
		n := 0
		rising := func(context.Context, *daybook.Run) (string, error) { n++; return strconv.Itoa(n), nil }
		failing := func(context.Context, *daybook.Run) (string, error) {
			if n++; n%2 == 0 {
				return "", errors.New("the gateway is away")
			}
			return "1", nil
		}
		for _, c := range []struct {
			count func(context.Context, *daybook.Run) (string, error)
			seen  string
		}{{rising, `counted: "1", now "2"`}, {failing, "the count failed afterwards: the gateway is away"}} {
			n = 0
			d, err := b.Drill(b.ctx, ops, control.DrillRequest{Job: "renew", Date: "2026-10-26", Count: c.count})
			if err != nil || d.Passed() || d.Seen != c.seen {
				t.Errorf("%+v %v", d, err)
			}
			if text := control.DrillText(d).String(); !strings.HasPrefix(text, "renew:2026-10-26  asked for 9 times by schedule, manual, replay, and something came of it: ") {
				t.Error(text)
			}
		}
		alerts, err := b.s.Alerts(b.ctx, true, 10)
		if err != nil || len(alerts) != 1 || alerts[0].Kind != daybook.AlertDrillFailed || alerts[0].Key != "renew:2026-10-26" || alerts[0].Priority != daybook.P0 {
			t.Fatalf("%+v %v", alerts, err)
		}
		needs := func() (n int) {
			for _, need := range b.status().NeedsYou {
				if need.Kind == "alert" && need.Key == "renew:2026-10-26" && need.Alert != "" && b.status().Exit() != daybook.ExitOK {
					n++
				}
			}
			return n
		}
		if needs() != 1 {
			t.Errorf("the status does not speak of the drill: %+v", b.status().NeedsYou)
		}
		if d, err := b.Drill(b.ctx, ops, control.DrillRequest{Job: "renew", Date: "2026-10-26"}); err != nil || !d.Passed() {
			t.Errorf("%+v %v", d, err)
		}
		if alerts, err = b.s.Alerts(b.ctx, true, 10); err != nil || len(alerts) != 0 {
			t.Errorf("after a clean one: %+v %v", alerts, err)
		}
		if needs() != 0 {
			t.Errorf("after a clean one: %+v", b.status().NeedsYou)
		}
		d := &daybook.Drill{Knocks: []daybook.Knock{{Door: daybook.SourceManual, Outcome: daybook.Started, Times: 2}}, Before: daybook.Tally{Runs: 1, Attempts: 1}, After: daybook.Tally{Runs: 2, Attempts: 3, Effects: 1}}
		if d.Judge(); d.Seen != "2 × manual was started; runs: 1, now 2; attempts: 1, now 3; effects begun: 0, now 1" || d.NewEffects() != 2 {
			t.Errorf("%q, %d", d.Seen, d.NewEffects())
		}
	})
}

// Only what is done is drilled: asking for anything else may start its work.
func TestADrillThatIsRefused(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.dead("renew:2026-10-25")
		b.trigger(control.Request{Job: "renew", Window: "2026-10-24"})
		b.done("renew:2026-10-26")
		refused := func(want daybook.Code, q control.DrillRequest) {
			t.Helper()
			d, err := b.Drill(b.ctx, ops, q)
			if daybook.CodeOf(err) != want || d != nil {
				t.Errorf("%+v: %v, want %s", q, err, want)
			}
		}
		refused(daybook.CodeConflict, control.DrillRequest{Job: "renew", Date: "2026-10-25"})
		refused(daybook.CodeConflict, control.DrillRequest{Job: "renew", Date: "2026-10-24"})
		refused(daybook.CodeNotFound, control.DrillRequest{Job: "renew", Date: "2026-10-23"})
		refused(daybook.CodeNotFound, control.DrillRequest{Job: "renwe", Date: "2026-10-26"})
		refused(daybook.CodeInvalid, control.DrillRequest{Job: "renew", Date: "2026-10-26", Times: daybook.MaxDrillTimes + 1})
		refused(daybook.CodeInvalid, control.DrillRequest{Job: "renew", Date: "2026-10-26", Times: -1})
		refused(daybook.CodeInvalid, control.DrillRequest{Job: "renew", Date: "2026-10-26", Doors: []daybook.Source{"window"}})
		refused(daybook.CodeInvalid, control.DrillRequest{Job: "renew", Date: "2026-10-26", Doors: []daybook.Source{daybook.SourceDrill}})
		refused(daybook.CodeInvalid, control.DrillRequest{Job: "renew", Date: "2026-10-26", Doors: []daybook.Source{"manual", "manual"}})
		refused(daybook.CodeInvalid, control.DrillRequest{Job: "renew", Date: "2026-10-26", Count: func(context.Context, *daybook.Run) (string, error) { return "", errors.New("no such file") }})
		if r := b.run("renew:2026-10-26"); r.Triggers != 1 {
			t.Errorf("%d triggers, of drills that were refused", r.Triggers)
		}
		if list, err := b.Drills(b.ctx, "", 10); err != nil || len(list) != 0 {
			t.Errorf("%v %v", list, err)
		}
		if _, err := b.Undo(b.ctx, ops, "renew:2026-10-26", "wrong price"); err == nil {
			refused(daybook.CodeConflict, control.DrillRequest{Job: "renew", Date: "2026-10-26"})
		}
	})
}
