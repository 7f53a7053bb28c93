package storetest

import (
	"time"

	"github.com/daybook-run/daybook"
)

var drillCases = []example{
	{"what is recorded of a key is counted with its subjects, and without its neighbours", func(k *kit) {
		j := Job("renew", Once, Steps)
		for _, window := range []string{"2026-03-01", "2026-03-02"} {
			k.run(j, window)
			r := k.one()
			r, e, err := k.come(r, "charge")
			k.ok(err)
			done := r.StepEnded(e, daybook.Outcome{Result: daybook.ResultDone}, k.now)
			k.ok(k.s.MarkStep(k.ctx, r, done, daybook.Learned{}))
			r = r.With(done)
			r.Marks++
			Apply(k.ctx, k, k.s, r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), k.now))
		}
		tally := func(key daybook.Key) daybook.Tally {
			t, err := k.s.Tally(k.ctx, key)
			k.ok(err)
			return t
		}
		equal(k, "one window", tally("renew:2026-03-01"), daybook.Tally{Runs: 1, Attempts: 1, Effects: 1})
		equal(k, "none", tally("renew:2026-03-0"), daybook.Tally{})
		for _, key := range []string{"renew:2026-03-01/sub_1", "renew:2026-03-01/zzz", "renew:2026-03-01~2", "renew:2026-03-011"} {
			k.set(`INSERT INTO daybook_runs (key, job, label, date, start_us, end_us, cover_start_us, cover_end_us, priority, lane, effects, work, line, state, created_us, attempts)
SELECT '%s', job, label, date, start_us, end_us, cover_start_us, cover_end_us, priority, lane, effects, work, line, state, created_us, 2 FROM daybook_runs WHERE key = 'renew:2026-03-02'`, key)
		}
		k.set(`INSERT INTO daybook_steps (key, step, state, tries, effect) VALUES ('renew:2026-03-01/sub_1', 'charge', 'done', 3, 1)`)
		k.set(`INSERT INTO daybook_steps (key, step, state, tries, effect) VALUES ('renew:2026-03-01/sub_1', 'list', 'done', 5, 0)`)
		equal(k, "with its subjects", tally("renew:2026-03-01"), daybook.Tally{Runs: 3, Attempts: 5, Effects: 4})
	}},
	{"a drill is kept whole; one that saw something alerts, and a clean one ends that, and the reminder", func(k *kit) {
		k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertDrillDue, "", "renew", daybook.P1, "never drilled", "", k.now)))
		k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertDrillDue, "", "other", daybook.P1, "never drilled", "", k.now)))
		d := &daybook.Drill{Key: "renew:2026-03-01", Job: "renew", Actor: "ops", At: k.now, Ended: k.now.Add(time.Second), Doors: daybook.DefaultDrillDoors, Times: 3,
			Knocks: []daybook.Knock{{Door: daybook.SourceManual, Outcome: daybook.Reused, Times: 3}}, Before: daybook.Tally{Runs: 1, Attempts: 2, Effects: 3},
			After: daybook.Tally{Runs: 4, Attempts: 5, Effects: 6}, Counted: true, CountBefore: "1", CountAfter: "2", Seen: "counted"}
		act := daybook.Activity{At: k.now, Actor: "ops", Action: "drill", Key: d.Key, Job: "renew"}
		open := func() (kinds string) {
			alerts, err := k.s.Alerts(k.ctx, true, 10)
			k.ok(err)
			for _, kind := range []daybook.AlertKind{daybook.AlertDrillDue, daybook.AlertDrillFailed} {
				for _, a := range alerts {
					if a.Kind == kind {
						kinds += string(a.Kind) + " " + a.Job + ";"
					}
				}
			}
			return kinds
		}
		k.ok(k.s.KeepDrill(k.ctx, d, daybook.NewAlert(daybook.AlertDrillFailed, d.Key, "renew", daybook.P0, d.Seen, "", k.now), act))
		equal(k, "open after it", open(), "drill_due other;drill_failed renew;")
		clean := *d
		clean.At, clean.Seen, clean.After, clean.Counted = k.now.Add(time.Hour), "", clean.Before, false
		k.ok(k.s.KeepDrill(k.ctx, &clean, nil, act))
		equal(k, "open after a clean one", open(), "drill_due other;")
		list, err := k.s.Drills(k.ctx, "renew", 10)
		k.ok(err)
		equal(k, "drills", len(list), 2)
		equal(k, "newest", list[0].ID, clean.ID)
		old := list[1]
		equal(k, "doors", len(old.Doors), 3)
		equal(k, "answers", old.Knocks[0], d.Knocks[0])
		old.Doors, old.Knocks = nil, nil
		want := *d
		want.Doors, want.Knocks = nil, nil
		if old.Passed() || old.NewEffects() != 3 || !old.At.Equal(want.At) || !old.Ended.Equal(want.Ended) || old.Before != want.Before || old.After != want.After ||
			old.CountBefore != "1" || old.CountAfter != "2" || !old.Counted || old.Seen != want.Seen || old.Times != 3 || old.Actor != "ops" {
			k.Errorf("got %+v, want %+v", old, want)
		}
		none, err := k.s.Drills(k.ctx, "other", 10)
		k.ok(err)
		equal(k, "of another", len(none), 0)
		last, err := k.s.LastDrills(k.ctx)
		k.ok(err)
		equal(k, "last", last["renew"].Equal(clean.At), true)
		equal(k, "acts", k.number("SELECT count(*) FROM daybook_activity WHERE action = 'drill'"), 2)
	}},
	{"a drill that comes by a door is answered as who comes by it, and recorded as a drill", func(k *kit) {
		j := Job("renew", Once)
		r := k.run(j, "2026-03-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultDone})
		for _, door := range daybook.DrillDoors {
			reply, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceDrill, Door: door, Actor: "ops", Again: true, Effects: daybook.Once}, nil, k.now)
			k.ok(err)
			own := daybook.Decide(daybook.Ask{Key: r.Key, Source: door, Again: true}, daybook.Standing{Exists: true, State: daybook.Done, Effects: daybook.Once})
			equal(k, string(door), reply, own)
		}
		equal(k, "recorded", k.number("SELECT count(*) FROM daybook_triggers WHERE source = 'drill'"), int64(len(daybook.DrillDoors)))
		first, err := k.s.FirstDone(k.ctx, "renew")
		k.ok(err)
		equal(k, "first done", first.IsZero(), false)
	}},
}
