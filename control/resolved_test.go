package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/store/storetest"
)

// unknownSteps leaves a run with effects that were begun and that nobody reported, as a person has to settle them.
func (b *bench) unknownSteps(k daybook.Key, steps ...string) {
	b.t.Helper()
	b.make(k)
	r := b.claim(k)
	for _, step := range steps {
		if a, err := b.ComeTo(b.ctx, r.ID(), daybook.StepAsk{Step: step, Says: daybook.StepPolicy{Asks: r.Job == "looks"}}); err != nil || a.Do != daybook.StepBegin {
			b.t.Fatalf("begin %s: %+v %v", step, a, err)
		}
	}
	t := b.run(k).Next(daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"}, b.policy(k), b.now)
	storetest.Apply(b.ctx, b.t, b.s, t)
	if r.Job == "steps" || r.Job == "whole" {
		return
	}
	for range 20 { // until the far side that cannot tell was asked often enough
		r := b.run(k)
		if r.State == daybook.Dead {
			return
		}
		b.at(r.Due)
		claimed := b.claim(k)
		p := b.policy(k)
		if claimed.State != daybook.Running {
			storetest.Apply(b.ctx, b.t, b.s, claimed.SettleSteps(map[string][]daybook.Finding{steps[0]: {{Answer: daybook.CannotTell}}}, p, b.now, b.now))
			continue
		}
		storetest.Apply(b.ctx, b.t, b.s, claimed.Next(daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"}, p, b.now))
	}
	b.t.Fatalf("%s is no dead letter", k)
}

// TestAResolveIsToldByWhatWasSaid: whatever became of the run since, a person reads of the effect what he said of it.
func TestAResolveIsToldByWhatWasSaid(t *testing.T) {
	for _, c := range []struct {
		name, job string
		steps     []string // none: the run is one effect
		as        daybook.Resolution
		en, zh    string // behind the key and before what is said of who executes
	}{
		{"one effect", "renew", nil, daybook.AsDone, "done, as you said: its effect is never begun again.", "按你的核定记为完成：副作用不会再次开始。"},
		{"one effect", "renew", nil, daybook.AsNotDone, "not done, as you said: tried again at 12:00:00, with the next wire key.", "按你的核定记为未发生：于 12:00:00 再次尝试，使用下一个对外幂等键。"},
		{"one effect", "asked", nil, daybook.AsAsk, "the far side is asked again.", "将再次向对方系统核实。"},
		{"the last open one", "steps", []string{"charge"}, daybook.AsDone, "effect charge is done, as you said, and is never begun again. The run goes on with what is left, at 12:00:00.", "副作用 charge 已按你的核定记为完成，不会再次开始。运行于 12:00:00 继续余下的部分。"},
		{"the last open one", "steps", []string{"charge"}, daybook.AsNotDone, "effect charge is not done, as you said. The run goes on at 12:00:00, and begins it again, with the next wire key.", "副作用 charge 已按你的核定记为未发生。运行于 12:00:00 继续，并使用下一个对外幂等键再次开始它。"},
		{"another is open", "steps", []string{"charge", "mail"}, daybook.AsDone, "effect charge is done, as you said, and is never begun again. Still unknown: mail. The run goes on once that is settled too.", "副作用 charge 已按你的核定记为完成，不会再次开始。结果仍未知：mail。这些也核定后，运行才会继续。"},
		{"another is open", "steps", []string{"charge", "mail"}, daybook.AsNotDone, "effect charge is not done, as you said: it is begun again, with the next wire key. Still unknown: mail. The run goes on once that is settled too.", "副作用 charge 已按你的核定记为未发生：将使用下一个对外幂等键再次开始。结果仍未知：mail。这些也核定后，运行才会继续。"},
		{"the job asks", "probed", []string{"charge"}, daybook.AsAsk, "the far side is asked again about effect charge.", "将再次向对方系统核实副作用 charge。"},
		{"the work asks", "looks", []string{"charge"}, daybook.AsAsk, "effect charge is unknown still. The run goes on at 12:00:00, and asks the far side when it comes to it.", "副作用 charge 的结果仍未知。运行于 12:00:00 继续，走到它时向对方系统核实。"},
	} {
		t.Run(c.name+", "+string(c.as), func(t *testing.T) {
			lite(t, func(b *bench) {
				b.renew()
				for _, j := range []daybook.Job{{Name: "steps"}, {Name: "looks"}, {Name: "probed", Probe: daybook.Command{Shell: "true"}}} {
					j.Schedule, j.Window, j.Priority, j.Effects, j.Steps, j.Overlap = "0 2 * * *", daybook.Day, daybook.P0, daybook.Once, true, daybook.OverlapAllow
					b.job(j)
				}
				k, step := daybook.Key(c.job+":2026-10-26"), "charge"
				if c.steps == nil {
					step = daybook.StepRun
					b.unknownOf(k)
				} else {
					b.unknownSteps(k, c.steps...)
				}
				b.at(utc("2026-10-27T12:00:00"))
				b.beat(daybook.Node{})
				a, err := b.Resolve(b.ctx, ops, k, control.Word{Step: step, As: c.as}, "looked")
				if err != nil {
					t.Fatal(err)
				}
				if got, want := a.Line(), string(k)+"  "+c.en; got != want {
					t.Errorf("told %q\nwant %q", got, want)
				}
				if got, want := lang.For(lang.Chinese).Say(a.Text()), string(k)+"  "+c.zh; got != want {
					t.Errorf("told %q\nwant %q", got, want)
				}
				for _, moved := range []daybook.State{daybook.Running, daybook.Done, daybook.Dead} { // before it was looked at again
					r := *a.Run
					r.State = moved
					a.Run = &r
					if got := a.Line(); !strings.HasSuffix(got, c.en) {
						t.Errorf("told %q once the run is %s", got, moved)
					}
				}
			})
		})
	}
}

// unknownOf leaves a run as a dead letter of kind unknown.
func (b *bench) unknownOf(k daybook.Key) {
	b.t.Helper()
	b.unknown(k)
	for b.run(k).State != daybook.Dead {
		b.after(time.Minute)
		r := b.claim(k)
		storetest.Apply(b.ctx, b.t, b.s, r.Settle([]daybook.Finding{{Answer: daybook.CannotTell}}, b.policy(k), b.now, b.now))
	}
}

// Work outside this process is let begin nothing more once a person asked for its end; how what it had begun ended is taken.
func TestAfterACancelNothingMoreBegins(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.job(daybook.Job{Name: "steps", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Steps: true})
		const k = daybook.Key("steps:2026-10-26")
		b.make(k)
		r := b.claim(k)
		charge, err := b.ComeTo(b.ctx, r.ID(), daybook.StepAsk{Step: "charge", Call: "a"})
		if err != nil || charge.Do != daybook.StepBegin {
			t.Fatalf("%+v %v", charge, err)
		}
		if _, err := b.Cancel(b.ctx, ops, k, "wrong list"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.StepEnded(b.ctx, r.ID(), daybook.StepEnd{Step: "charge", Try: 1, Outcome: daybook.Outcome{Result: daybook.ResultDone}}); err != nil {
			t.Error(err)
		}
		for _, ask := range []daybook.StepAsk{{Step: "mail", Call: "b"}, {Step: "extend", Call: "c", Plain: true}} {
			if a, err := b.ComeTo(b.ctx, r.ID(), ask); err != nil || a.Do != daybook.StepStop || !a.Denied {
				t.Errorf("%s: %+v %v", ask.Step, a, err)
			}
		}
		storetest.Apply(b.ctx, t, b.s, b.run(k).Next(daybook.Outcome{Result: daybook.ResultDone}, b.policy(k), b.now))
		if r := b.run(k); r.State != daybook.Dead || r.Reason != daybook.ReasonCancelled || r.StepRecord("charge").State != daybook.EffectDone || r.StepRecord("mail") != nil {
			t.Errorf("%s, %+v", r.State, r.Records)
		}
	})
}

// TestAResolveInAFreeze: what is begun again is begun again after it, and that is the time that is told.
func TestAResolveInAFreeze(t *testing.T) {
	lite(t, func(b *bench) {
		b.renew()
		b.unknownOf("renew:2026-10-26")
		b.at(utc("2026-10-27T12:00:00"))
		b.beat(daybook.Node{})
		b.freezeFor(30 * time.Minute)
		a, err := b.Resolve(b.ctx, ops, "renew:2026-10-26", control.Word{Step: daybook.StepRun, As: daybook.AsNotDone}, "looked")
		if got := a.Line(); err != nil || !strings.Contains(got, "tried again at 12:30:") || !strings.Contains(got, "frozen until 12:30:00") {
			t.Errorf("%s %v", got, err)
		}
	})
}
