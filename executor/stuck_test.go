package executor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// A run that has its serial key for longer than its job may take is told of once; its end ends the alert. Who waits goes then.
func TestSerialKeyHeldTooLong(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		r := newRoom(t, s, func(j *daybook.Job) {
			j.Serial, j.Overlap, j.Expect.MaxRuntime = "account:7", daybook.OverlapAllow, 10*time.Minute
		}, nil, "")
		r.outcome = daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"}
		first := r.trigger("2026-03-01")
		r.settles()
		second := r.trigger("2026-03-02")
		r.settles()
		r.is(first, daybook.Dead, "")
		if w := r.run(second); w.Hold != daybook.ReasonSerial {
			t.Errorf("the other is held %q", w.Hold)
		}
		rescue := &executor.Rescue{Executor: r.Executor}
		open := func() []daybook.Alert {
			t.Helper()
			r.tick(rescue)
			var found []daybook.Alert
			alerts, err := s.Alerts(ctx, true, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range alerts {
				if a.Kind == daybook.AlertSerialStuck {
					found = append(found, a)
				}
			}
			return found
		}
		if n := len(open()); n != 0 {
			t.Errorf("%d alerts at once", n)
		}
		for began := r.clock(); r.clock().Sub(began) < 11*time.Minute; r.passes(lease) {
			open()
		}
		if a := open(); len(a) != 1 || a[0].Key != first || !strings.Contains(a[0].LastError, "account:7") {
			t.Errorf("alerts: %+v", a)
		}
		m, err := r.run(first).Resolve(daybook.AsDone, daybook.Policy{}, "ops", "seen", r.clock())
		if err != nil {
			t.Fatal(err)
		}
		storetest.Apply(ctx, t, s, m)
		if a := open(); len(a) != 0 {
			t.Errorf("alerts when it is over: %+v", a)
		}
		r.outcome = daybook.Outcome{Result: daybook.ResultDone}
		r.settles()
		r.is(second, daybook.Done, "")
	})
}
