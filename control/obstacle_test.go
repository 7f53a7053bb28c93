package control_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// leftUnknown leaves the outcome of a subject unknown of another job, which has the subject's serial key then.
func (b *bench) leftUnknown(subject string) daybook.Key {
	b.t.Helper()
	b.job(daybook.Job{Name: "charge", Window: daybook.Day, Effects: daybook.Once, Serial: "sub:{subject}", Overlap: daybook.OverlapAllow})
	b.trigger(control.Request{Job: "charge", Window: "2026-03-01", Subject: subject})
	k := daybook.Key("charge:2026-03-01/" + subject)
	if r := b.end(k, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"}); r.State != daybook.Dead {
		b.t.Fatalf("%s is %s", k, r.State)
	}
	return k
}

// waits tells what a run waits for, a line each: whether that needs a person, and at the end whether nothing else helps.
func (b *bench) waits(k daybook.Key) string {
	b.t.Helper()
	r, err := b.Run(b.ctx, k)
	if err != nil {
		b.t.Fatal(err)
	}
	list, err := b.Obstacles(b.ctx, r)
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for _, o := range list {
		line := o.Text(time.UTC).String()
		if o.Person {
			line += "; " + o.Why.String() + ": " + o.Do.String()
		}
		lines = append(lines, line)
	}
	o, err := b.Stuck(b.ctx, r)
	if err != nil {
		b.t.Fatal(err)
	}
	if o != nil {
		lines = append(lines, "stuck for "+string(o.Key))
	}
	return strings.Join(lines, "\n")
}

const (
	chargeHas   = "charge:2026-03-01/s01, which has serial key sub:s01 since 2026-03-02 12:00 UTC"
	settleIt    = "the outcome of charge:2026-03-01/s01 is unknown: look at the far side for charge:2026-03-01/s01, then: daybook run resolve charge:2026-03-01/s01 --step run --as \"done|not-done\" --reason …"
	stuckForOne = "stuck for charge:2026-03-01/s01"
)

func TestWhoKeepsAWindowWaiting(t *testing.T) {
	each(t, func(b *bench) {
		f := b.fan(3)
		key := b.leftUnknown("s01")
		f.look()
		f.is("before any is tried", b.waits(f.parent), "")
		f.work(map[string]daybook.Outcome{"s00": {Result: daybook.ResultDone}, "s02": {Result: daybook.ResultNotDone, Error: "503"}})
		f.is("while another is on the ladder", b.waits(f.parent), chargeHas+"; "+settleIt)
		f.is("the subject", b.waits(f.parent+"/s01"), chargeHas+"; "+settleIt+"\n"+stuckForOne)
		b.after(aMinute)
		f.work(map[string]daybook.Outcome{"s02": {Result: daybook.ResultPermanent, Error: "card declined"}})
		f.is("when nothing else is left", b.waits(f.parent), chargeHas+"; "+settleIt+"\n"+stuckForOne)
		answer, err := json.Marshal(control.NewObstaclesJSON(mustObstacles(b, f.parent)))
		if err != nil || !strings.HasPrefix(string(answer), `[{"kind":"serial key","key":"charge:2026-03-01/s01","serial":"sub:s01","since":"2026-03-02T12:00:00Z","waiting":1,"person":true,"why":"the outcome of charge:2026-03-01/s01 is unknown","do":"look at the far side`) {
			t.Errorf("%s %v", answer, err)
		}
		if _, err := b.Resolve(b.ctx, ops, key, control.Word{Step: daybook.StepRun, As: daybook.AsDone}, "seen there"); err != nil {
			t.Fatal(err)
		}
		f.is("once it is settled", b.waits(f.parent), "")
		f.work(map[string]daybook.Outcome{"s01": {Result: daybook.ResultDone}})
		if n := f.counted().Subjects; n.States[daybook.Done] != 2 {
			t.Errorf("%+v", n)
		}
	})
}

func mustObstacles(b *bench, k daybook.Key) []control.Obstacle {
	b.t.Helper()
	r, err := b.Run(b.ctx, k)
	if err != nil {
		b.t.Fatal(err)
	}
	list, err := b.Obstacles(b.ctx, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func TestWhoKeepsARunWaiting(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-03-02T12:00:00"))
		is := func(what string, k daybook.Key, want string) {
			t.Helper()
			if got := b.waits(k); got != want {
				t.Errorf("%s:\n got %s\nwant %s", what, got, want)
			}
		}
		b.job(daybook.Job{Name: "report", Schedule: "0 2 * * *"})
		for _, date := range []string{"2026-02-28", "2026-03-01"} {
			b.trigger(control.Request{Job: "report", Window: date})
		}
		first, second := daybook.Key("report:2026-02-28"), daybook.Key("report:2026-03-01")
		const behind = "report:2026-02-28, another window of its job, which goes first"
		is("the first", first, "")
		is("behind one that waits", second, behind)
		b.claim(first)
		is("at work", first, "")
		is("behind one at work", second, behind)
		if _, err := b.Pause(b.ctx, ops, "report", "holidays"); err != nil {
			t.Fatal(err)
		}
		is("paused", second, "; job report is paused: daybook job resume report\nstuck for report:2026-03-01")

		// A window that waits for one whose serial key another has, whose outcome is unknown.
		b.leftUnknown("s01")
		b.job(daybook.Job{Name: "extend", Schedule: "0 2 * * *", Serial: "sub:s01"})
		for _, date := range []string{"2026-02-28", "2026-03-01"} {
			b.trigger(control.Request{Job: "extend", Window: date})
		}
		if runs, err := b.s.Claim(b.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 5, Lease: b.now.Add(aMinute), NewID: func() string { return "c" }}, b.now); err != nil || len(runs) > 0 {
			t.Fatalf("claimed %d: %v", len(runs), err)
		}
		is("for the serial key", "extend:2026-02-28", chargeHas+"; "+settleIt+"\n"+stuckForOne)
		is("for the window that waits for it", "extend:2026-03-01", "extend:2026-02-28, another window of its job, which goes first; "+settleIt+"\nstuck for extend:2026-02-28")
	})
}

// Subjects whose window is a dead letter wait for their turn until a person replays it.
func TestWhoKeepsTheTurnFromComing(t *testing.T) {
	each(t, func(b *bench) {
		f := b.fan(12)
		f.is("at first", b.waits(f.parent+"/s09"), "")
		for range 3 {
			f.work(nil)
			b.after(aMinute)
		}
		if r := b.run(f.parent); r.State != daybook.Dead {
			t.Fatalf("%s is %s", r.Key, r.State)
		}
		const wants = "; renew:2026-03-02 is a dead letter: daybook dead replay renew:2026-03-02\nstuck for renew:2026-03-02"
		f.is("waits for its turn", b.waits(f.parent+"/s09"), wants)
		f.is("held by the breaker", b.waits(f.parent+"/s00"), wants)
	})
}
