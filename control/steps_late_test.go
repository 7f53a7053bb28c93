package control_test

import (
	"errors"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/store/storetest"
)

// A step that is reported as done when it has been begun again, under another wire key, has happened twice: the report changes nothing,
// and people are told. One that was sent under the same wire key is no second charge.
func TestALateEndOfAStepThatHappenedTwiceIsTold(t *testing.T) {
	for _, c := range []struct {
		wireKey string
		alerts  int
	}{{"steps:2026-10-26#charge", 1}, {"steps:2026-10-26#charge@2", 0}, {"", 0}} {
		each(t, func(b *bench) {
			b.job(daybook.Job{Name: "steps", Schedule: "0 2 * * *", Window: daybook.Day, Effects: daybook.Once, Steps: true})
			b.at(utc("2026-10-26T12:00:00"))
			const k = daybook.Key("steps:2026-10-26")
			b.unknownSteps(k, "charge")
			first := b.run(k).ID()
			if _, err := b.Resolve(b.ctx, ops, k, control.Word{Step: "charge", As: daybook.AsNotDone}, "looked too early"); err != nil {
				t.Fatal(err)
			}
			second := b.claim(k)
			if a, err := b.ComeTo(b.ctx, second.ID(), daybook.StepAsk{Step: "charge"}); err != nil || a.Do != daybook.StepBegin {
				t.Fatalf("%+v %v", a, err)
			}
			if _, err := b.StepEnded(b.ctx, second.ID(), daybook.StepEnd{Step: "charge", Outcome: daybook.Outcome{Result: daybook.ResultDone}}); err != nil {
				t.Fatal(err)
			}
			_, err := b.StepEnded(b.ctx, first, daybook.StepEnd{Step: "charge", WireKey: c.wireKey, Outcome: daybook.Outcome{Result: daybook.ResultDone}})
			if !errors.Is(err, daybook.ErrStale) {
				t.Errorf("the late report: %v", err)
			}
			list, err := b.s.Alerts(b.ctx, true, 0)
			if err != nil {
				t.Fatal(err)
			}
			if r := b.run(k); c.alerts > 0 && r.StepRecord("charge").Twice != c.wireKey { // by which an undo names what it leaves
				t.Errorf("noted %q, want %q", r.StepRecord("charge").Twice, c.wireKey)
			}
			twice := 0
			for _, a := range list {
				if a.Kind == daybook.AlertDoneTwice && a.Key == k {
					twice++
				}
			}
			if twice != c.alerts {
				t.Errorf("under %q: %d alerts, want %d", c.wireKey, twice, c.alerts)
			}
		})
	}
}

// A person was wrong: the first try did happen. Its report comes when the run was claimed again already, and nothing of the effect has
// begun since: it counts, and the effect is not begun under the next wire key.
func TestALateEndOfAStepThatWasNotBegunAgain(t *testing.T) {
	const k = daybook.Key("steps:2026-10-26")
	done := daybook.StepEnd{Step: "charge", Try: 1, WireKey: string(k) + "#charge", Outcome: daybook.Outcome{Result: daybook.ResultDone, Data: []byte(`"ch_1"`)}}
	for _, c := range []struct {
		name  string
		since func(b *bench) // what became of the run
		taken bool
	}{
		{"it runs", func(b *bench) { b.claim(k) }, true},
		{"it runs, and is at another step", func(b *bench) {
			if a, err := b.ComeTo(b.ctx, b.claim(k).ID(), daybook.StepAsk{Step: "look", Plain: true}); err != nil || a.Do != daybook.StepBegin {
				b.t.Fatalf("%+v %v", a, err)
			}
		}, true},
		{"it ran, and waits", func(b *bench) { b.end(k, daybook.Outcome{Result: daybook.ResultNotDone, Error: "away"}) }, true},
		{"it ran, and is dead", func(b *bench) { b.end(k, daybook.Outcome{Result: daybook.ResultPermanent, Error: "never"}) }, true},
		{"the charge has begun again", func(b *bench) {
			if a, err := b.ComeTo(b.ctx, b.claim(k).ID(), daybook.StepAsk{Step: "charge"}); err != nil || a.Do != daybook.StepBegin {
				b.t.Fatalf("%+v %v", a, err)
			}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(b *bench) {
				b.job(daybook.Job{Name: "steps", Schedule: "0 2 * * *", Window: daybook.Day, Effects: daybook.Once, Steps: true})
				b.at(utc("2026-10-26T12:00:00"))
				b.unknownSteps(k, "charge")
				first := b.run(k).ID()
				if _, err := b.Resolve(b.ctx, ops, k, control.Word{Step: "charge", As: daybook.AsNotDone}, "looked too early"); err != nil {
					t.Fatal(err)
				}
				c.since(b)
				_, err := b.StepEnded(b.ctx, first, done)
				e := b.run(k).StepRecord("charge")
				if !c.taken {
					if !errors.Is(err, daybook.ErrStale) || e.State != daybook.EffectBegun || e.Twice != done.WireKey {
						t.Errorf("%v, %+v", err, e)
					}
					// The second one is refused in the end: it happened once, under the first wire key, and is not begun a third time.
					second := b.run(k)
					if _, err := b.StepEnded(b.ctx, second.ID(), daybook.StepEnd{Step: "charge", Try: 2, WireKey: string(k) + "#charge@2", Outcome: daybook.Outcome{Result: daybook.ResultNotDone, Error: "away"}}); err != nil {
						t.Fatal(err)
					}
					storetest.Apply(b.ctx, t, b.s, b.run(k).Next(daybook.Outcome{Result: daybook.ResultNotDone, Error: "away"}, b.policy(k), b.now))
					b.at(b.run(k).Due)
					a, err := b.ComeTo(b.ctx, b.claim(k).ID(), daybook.StepAsk{Step: "charge"})
					if e := b.run(k).StepRecord("charge"); err != nil || a.Do != daybook.StepSkip || e.State != daybook.EffectDone || e.WireKey() != done.WireKey || e.Twice != "" {
						t.Errorf("then %+v %v, %+v", a, err, e)
					}
					return
				}
				if err != nil || e.State != daybook.EffectDone || e.WireKey() != done.WireKey || e.SettledBy != "late report" || string(e.Data) != `"ch_1"` || e.Twice != "" {
					t.Fatalf("%v, %+v", err, e)
				}
				if _, err := b.StepEnded(b.ctx, first, done); !errors.Is(err, daybook.ErrStale) {
					t.Errorf("said again: %v", err)
				}
				r := b.run(k)
				if r.State == daybook.Retryable {
					b.at(r.Due)
					r = b.claim(k)
				}
				if a, err := b.ComeTo(b.ctx, r.ID(), daybook.StepAsk{Step: "charge"}); err != nil || a.Do != daybook.StepSkip || string(a.Record.Data) != `"ch_1"` {
					t.Errorf("then %+v %v", a, err)
				}
			})
		})
	}
}

// What was believed not to have happened is given up by a person, or opened again, and then the first try says that it did: he is told, and
// nothing begins it again. A step is told as such, work that is one effect as a whole.
func TestALateDoneOfWhatWasGivenUp(t *testing.T) {
	for _, job := range []string{"steps", "whole"} {
		for _, since := range []string{"cancelled", "dismissed", "reopened"} {
			t.Run(job+", "+since, func(t *testing.T) { each(t, func(b *bench) { b.givenUp(job, since) }) })
		}
	}
}

func (b *bench) givenUp(job, since string) {
	t, k := b.t, daybook.Key(job+":2026-10-26")
	t.Helper()
	b.job(daybook.Job{Name: job, Schedule: "0 2 * * *", Window: daybook.Day, Effects: daybook.Once, Steps: job == "steps"})
	b.at(utc("2026-10-26T12:00:00"))
	step, wireKey, told := daybook.StepRun, string(k), "it"
	if job == "steps" {
		step, wireKey, told = "charge", string(k)+"#charge", "charge"
		b.unknownSteps(k, step)
	} else {
		b.unknown(k)
	}
	first := b.run(k).ID()
	if _, err := b.Resolve(b.ctx, ops, k, control.Word{Step: step, As: daybook.AsNotDone}, "looked too early"); err != nil {
		t.Fatal(err)
	}
	var err error
	switch since {
	case "cancelled":
		_, err = b.Cancel(b.ctx, ops, k, "the customer left")
	case "reopened":
		if _, err = b.Cancel(b.ctx, ops, k, "the customer left"); err == nil {
			_, err = b.Reopen(b.ctx, ops, k, "he is back")
		}
	case "dismissed":
		b.end(k, daybook.Outcome{Result: daybook.ResultPermanent, Error: "card declined"})
		_, err = b.Dismiss(b.ctx, ops, k, "the customer left")
	}
	if err != nil {
		t.Fatal(err)
	}
	done := daybook.Outcome{Result: daybook.ResultDone, Data: []byte(`"ch_1"`)}
	if job == "steps" {
		_, err = b.StepEnded(b.ctx, first, daybook.StepEnd{Step: step, Try: 1, WireKey: wireKey, Outcome: done})
	} else {
		_, err = b.Report(b.ctx, first, done)
	}
	r := b.run(k)
	if e := r.StepRecord(step); err != nil || e.State != daybook.EffectDone || e.WireKey() != wireKey || string(e.Data) != `"ch_1"` {
		t.Fatalf("%v, %s, %+v", err, r.State, e)
	}
	if since == "reopened" {
		b.endsWithoutIt(r, job == "whole")
		return
	}
	if l := r.Letter; r.State != daybook.Dead || l == nil || l.State != daybook.LetterOpen || l.Kind != daybook.LetterFailed || l.Error != "a late report says that "+told+" happened, after the run was given up" {
		t.Fatalf("%s, letter %+v", r.State, l)
	}
	list, err := b.s.Alerts(b.ctx, true, 0)
	if err != nil || len(list) == 0 || list[len(list)-1].Kind != daybook.AlertDeadLetter || list[len(list)-1].Key != k {
		t.Errorf("alerts %+v %v", list, err)
	}
	if _, err := b.Replay(b.ctx, ops, []daybook.Key{k}, ""); err != nil {
		t.Fatal(err)
	}
	b.endsWithoutIt(b.run(k), false)
}

// endsWithoutIt fails the test unless the effect of a run is not begun again.
func (b *bench) endsWithoutIt(r *daybook.Run, over bool) {
	b.t.Helper()
	if over {
		if r.State != daybook.Done {
			b.t.Errorf("%s is %s", r.Key, r.State)
		}
		return
	}
	runs, err := b.s.Claim(b.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 1, Key: r.Key, Lease: b.now.Add(aMinute), NewID: storetest.NewID}, b.now)
	if err != nil || len(runs) != 1 {
		b.t.Fatalf("%d claimed, %v", len(runs), err)
	}
	if !r.Steps {
		if _, ok := runs[0].Begin(b.policy(r.Key), b.now); ok {
			b.t.Error("it is begun again")
		}
		return
	}
	if a, err := b.ComeTo(b.ctx, runs[0].ID(), daybook.StepAsk{Step: "charge"}); err != nil || a.Do != daybook.StepSkip {
		b.t.Errorf("%+v %v", a, err)
	}
}
