package control_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// A job of weeks may be asked for on any day, by any door: in one week all meet one key, the first starts it, and the later
// ones are answered with what it did. The next week is another key.
func TestAWeeklyJobAskedForOnAnyDayRunsOnceAWeek(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-10-18T12:00:00"))
		b.job(daybook.Job{Name: "weekly", Schedule: "weekly mon 08:00", Window: daybook.Week})
		doors := []control.Person{{Name: "ops"}, {Name: "shop", Source: daybook.SourceAPI}}
		b.at(utc("2026-10-19T08:00:00"))
		first := b.trigger(control.Request{Job: "weekly"})
		const key = daybook.Key("weekly:2026-W43")
		if first.Outcome != daybook.Started || first.Key != key {
			t.Fatalf("monday: %s", first.Line())
		}
		b.after(time.Minute)
		b.end(key, daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`{"file":"w43.csv"}`), Counts: map[string]int64{"rows": 20}})
		for d, text := range []string{"2026-10-19T09:00:00", "2026-10-20T00:00:00", "2026-10-21T12:00:00", "2026-10-23T23:59:00", "2026-10-25T23:59:59"} {
			b.at(utc(text))
			a, err := b.Trigger(b.ctx, doors[d%2], control.Request{Job: "weekly"})
			if err != nil || a.Outcome != daybook.Reused || a.Key != key || a.Exit != 0 || string(a.Run.Result) != `{"file":"w43.csv"}` || a.Run.Attempts != 1 ||
				!strings.Contains(a.Line(), "08:01:00 by ops (manual) (20 rows). Nothing was repeated.") {
				t.Errorf("%s: %s %+v %v", text, a.Line(), a.Run, err)
			}
		}
		if r := b.run(key); r.Triggers != 6 || r.State != daybook.Done {
			t.Errorf("%s is %s after %d triggers", key, r.State, r.Triggers)
		}
		b.at(utc("2026-10-26T08:00:00"))
		if a := b.trigger(control.Request{Job: "weekly"}); a.Outcome != daybook.Started || a.Key != "weekly:2026-W44" {
			t.Errorf("the week after: %s", a.Line())
		}
	})
}
