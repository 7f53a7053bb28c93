package control_test

import (
	"errors"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// A step that is reported as done when it has been begun again, under another wire key, has happened twice: the report changes nothing,
// and people are told. One that was sent under the same wire key is no second charge.
func TestALateEndOfAStepThatHappenedTwiceIsTold(t *testing.T) {
	for _, c := range []struct {
		wireKey string
		alerts  int
	}{{"steps:2026-10-26#charge", 1}, {"steps:2026-10-26#charge@2", 0}, {"", 0}} {
		lite(t, func(b *bench) {
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
