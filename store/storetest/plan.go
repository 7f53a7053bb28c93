package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// plan is a plan of days windows of a daily job that fires at 02:00, from the kit's instant on. The first missed of them
// are missed.
func (k *kit) plan(j *daybook.Job, revision int64, days, missed int) *daybook.Plan {
	p := &daybook.Plan{Job: j, Revision: revision, Source: daybook.SourceSchedule, From: k.now, To: k.now.AddDate(0, 0, days)}
	for i := range days {
		date := k.now.AddDate(0, 0, i).Format(time.DateOnly)
		w := Day(date)
		fire := w.Start.Add(2 * time.Hour)
		p.Windows = append(p.Windows, daybook.PlannedWindow{Window: w, Fires: []string{date + "T02:00"}, FireAt: fire, Last: fire, Missed: i < missed})
	}
	return p
}

func (k *kit) planned(plans ...*daybook.Plan) []daybook.Planned {
	k.Helper()
	done, err := k.s.Plan(k.ctx, plans, plans[0].To)
	k.ok(err)
	return done
}

// windowStates returns the state of each window of a job, by label.
func (k *kit) windowStates(job string) map[string]daybook.State {
	k.Helper()
	runs, err := k.s.Runs(k.ctx, daybook.Filter{Job: job, Limit: 1000})
	k.ok(err)
	states := make(map[string]daybook.State)
	for _, r := range runs {
		states[r.Window.Label] = r.State
	}
	return states
}

var planCases = []example{
	{"eight schedulers, a hundred windows: 100 runs, 100 triggers, no error (H33, H35)", func(k *kit) {
		const windows = 100
		j := Job("report", allow)
		k.know(j)
		errs := together(8, func(int) bool {
			cursor := k.now
			for i := 0; i < windows; {
				p := &daybook.Plan{Job: j, Revision: 1, Source: daybook.SourceSchedule, From: cursor, To: k.now.AddDate(0, 0, i+1)}
				date := k.now.AddDate(0, 0, i).Format(time.DateOnly)
				w := Day(date)
				p.Windows = []daybook.PlannedWindow{{Window: w, Fires: []string{date + "T02:00"}, FireAt: w.Start.Add(2 * time.Hour), Last: w.Start.Add(2 * time.Hour)}}
				done, err := k.s.Plan(k.ctx, []*daybook.Plan{p}, p.To)
				if err != nil {
					k.Error(err)
					return true
				}
				// Where the loser stands it is told; it goes on from there.
				cursor = done[0].Cursor
				i = int(cursor.Sub(k.now) / (24 * time.Hour))
			}
			return false
		})
		equal(k, "schedulers with an error", errs, 0)
		equal(k, "runs", k.number("SELECT count(*) FROM daybook_runs"), windows)
		equal(k, "triggers", k.number("SELECT count(*) FROM daybook_triggers"), windows)
		equal(k, "counted", k.number("SELECT sum(triggers) FROM daybook_runs"), windows)
		states, err := k.s.JobStates(k.ctx)
		k.ok(err)
		equal(k, "cursor", states[0].Cursor, k.now.AddDate(0, 0, windows))
	}},
	{"eight schedulers plan many jobs at once, each in its own order: each window once", func(k *kit) {
		const jobs = 40
		var list []*daybook.Job
		for i := range jobs {
			list = append(list, Job(fmt.Sprintf("j%02d", i)))
		}
		k.know(list...)
		var mu sync.Mutex
		started := 0
		together(8, func(i int) bool {
			var plans []*daybook.Plan
			for _, j := range list {
				plans = append(plans, k.plan(j, 1, 3, 0))
			}
			if i%2 == 1 {
				slices.Reverse(plans)
			}
			done, err := k.s.Plan(k.ctx, plans, plans[0].To)
			if err != nil {
				k.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range done {
				if !p.Stale {
					started += p.Started
				}
			}
			return true
		})
		equal(k, "started", started, 3*jobs)
		equal(k, "runs", k.number("SELECT count(*) FROM daybook_runs"), 3*jobs)
		equal(k, "live", k.number("SELECT count(*) FROM daybook_live"), 3*jobs)
		equal(k, "triggers", k.number("SELECT count(*) FROM daybook_triggers"), 3*jobs)
	}},
	{"two scans of one look-back at once fill each hole once", func(k *kit) {
		j := Job("report")
		k.know(j)
		p := k.plan(j, 1, 5, 5)
		p.Source, p.To = daybook.SourceCatchup, p.From // a scan moves no cursor
		together(8, func(int) bool {
			if _, err := k.s.Plan(k.ctx, []*daybook.Plan{p}, k.now.AddDate(0, 0, 6)); err != nil {
				k.Error(err)
			}
			return true
		})
		equal(k, "runs", k.number("SELECT count(*) FROM daybook_runs"), 5)
		equal(k, "triggers", k.number("SELECT count(*) FROM daybook_triggers"), 5)
		equal(k, "counted", k.number("SELECT sum(triggers) FROM daybook_runs"), 5)
	}},
	{"a plan of another cursor, revision or job writes nothing, and is told where the ledger stands", func(k *kit) {
		j := Job("report")
		k.know(j)
		before := k.dump()
		for what, change := range map[string]func(*daybook.Plan){
			"revision": func(p *daybook.Plan) { p.Revision = 2 },
			"cursor":   func(p *daybook.Plan) { p.From = p.From.Add(-time.Microsecond) },
			"job":      func(p *daybook.Plan) { p.Job = Job("nobody") },
		} {
			p := k.plan(j, 1, 2, 0)
			change(p)
			done := k.planned(p)
			equal(k, "stale: other "+what, done[0].Stale, true)
			equal(k, "started: other "+what, done[0].Started, 0)
			if what != "job" {
				equal(k, "cursor: other "+what, done[0].Cursor, k.now)
				equal(k, "revision: other "+what, done[0].Revision, 1)
			}
		}
		if after := k.dump(); after != before {
			k.Errorf("stale plans left\n%s", difference(before, after))
		}
		_, err := k.s.TakeRevisions(k.ctx, nil, true, k.now) // retires it
		k.ok(err)
		done := k.planned(k.plan(j, 1, 2, 0))
		equal(k, "stale: retired", done[0].Stale, true)
		equal(k, "revision: retired", done[0].Revision, 0)
	}},
	{"one stale plan among others does not hold them up", func(k *kit) {
		a, b := Job("a"), Job("b")
		k.know(a, b)
		k.planned(k.plan(a, 1, 2, 0))
		done := k.planned(k.plan(a, 1, 2, 0), k.plan(b, 1, 2, 0))
		equal(k, "a", done[0].Stale, true)
		equal(k, "b", done[1].Stale, false)
		equal(k, "started", done[1].Started, 2)
	}},
	{"a schedule that meets a run made by hand joins it; its fire is recorded and counted once", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		p := k.plan(j, 1, 2, 0)
		done := k.planned(p)
		equal(k, "started", done[0].Started, 1)
		r := k.find("report:2026-03-01")
		equal(k, "triggers", r.Triggers, 2)
		triggers, err := k.s.Triggers(k.ctx, r.Key)
		k.ok(err)
		equal(k, "triggers", len(triggers), 2)
		equal(k, "outcome", triggers[1].Outcome, daybook.Joined)
		equal(k, "fire", triggers[1].Fire, "2026-03-01T02:00")
		p.Source, p.From = daybook.SourceCatchup, p.To // and a scan that brings the same fire again
		k.planned(p)
		equal(k, "triggers", k.find(r.Key).Triggers, 2)
		equal(k, "recorded", k.number("SELECT count(*) FROM daybook_triggers"), 3)
	}},
	{"missed: catch_up spaces the missed windows, oldest first", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Missed, j.CatchupGap = daybook.CatchUp, time.Minute })
		k.know(j)
		p := k.plan(j, 1, 4, 3)
		k.planned(p)
		for i, w := range p.Windows {
			r := k.find(daybook.Key("report:" + w.Window.Label))
			due := w.FireAt
			if w.Missed {
				due = p.To.Add(time.Duration(i) * time.Minute)
				equal(k, "source", r.FirstSource, daybook.SourceCatchup)
			}
			equal(k, "due", r.Due, due)
			equal(k, "not before", r.NotBefore, w.FireAt)
		}
	}},
	{"missed: skip writes one as a row and several as a span, with one alert; look-ups find both", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Missed = daybook.SkipMissed })
		k.know(j)
		k.now = Birth
		p := k.plan(j, 1, 5, 4)
		k.planned(p)
		equal(k, "rows", len(k.windowStates("report")), 1)
		spans, err := k.s.Spans(k.ctx, "report", Birth)
		k.ok(err)
		equal(k, "spans", len(spans), 1)
		sp := spans[0]
		equal(k, "count", sp.Count, 4)
		equal(k, "from", sp.FromLabel, "2026-03-01")
		equal(k, "to", sp.ToLabel, "2026-03-04")
		equal(k, "reason", sp.Reason, daybook.ReasonMissed)
		equal(k, "decided", sp.DecidedAt, p.To)
		equal(k, "alerts", k.number("SELECT count(*) FROM daybook_alerts"), 1)
		holes, err := k.s.Unaccounted(k.ctx, "report", append(slices.Clone(p.Windows), k.plan(j, 1, 7, 0).Windows[5:]...))
		k.ok(err)
		if len(holes) != 2 || holes[0].Window.Label != "2026-03-06" || holes[1].Window.Label != "2026-03-07" {
			k.Errorf("unaccounted %+v", holes)
		}
		none, err := k.s.Unaccounted(k.ctx, "report", nil)
		k.ok(err)
		equal(k, "of none", len(none), 0)
	}},
	{"a later fire of a window that lies in a span meets that decision", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Missed = daybook.SkipMissed })
		k.know(j)
		k.planned(k.plan(j, 1, 4, 4))
		p := k.plan(j, 1, 4, 4)
		p.From, p.To = p.To, p.To.Add(time.Hour)
		p.Windows = p.Windows[3:]
		p.Windows[0].Fires = []string{"2026-03-04T14:00"}
		done := k.planned(p)
		equal(k, "stale", done[0].Stale, false)
		equal(k, "rows", len(k.windowStates("report")), 0)
		triggers, err := k.s.Triggers(k.ctx, "report:2026-03-04")
		k.ok(err)
		equal(k, "triggers", len(triggers), 1)
		equal(k, "outcome", triggers[0].Outcome, daybook.Reused)
	}},
	{"missed: coalesce lets the newest window cover the others, and one that waits take in those that come", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Missed = daybook.Coalesce })
		k.know(j)
		k.planned(k.plan(j, 1, 3, 2))
		newest := k.find("report:2026-03-03")
		equal(k, "state", newest.State, daybook.Scheduled)
		equal(k, "covers from", newest.Cover.Start, Day("2026-03-01").Start)
		for _, d := range []string{"2026-03-01", "2026-03-02"} {
			r := k.find(daybook.Key("report:" + d))
			equal(k, "state", r.State, daybook.Coalesced)
			equal(k, "covered by", r.CoveredBy, newest.Key)
		}
		k.now = Birth.AddDate(0, 0, 3)
		k.planned(k.plan(j, 1, 1, 0))
		equal(k, "taken in", k.find("report:2026-03-04").CoveredBy, newest.Key)
		equal(k, "covers to", k.find(newest.Key).Cover.End, Day("2026-03-04").End)
		k.now = k.now.AddDate(0, 0, 1)
		k.claim(1) // its bounds are fixed now
		k.planned(k.plan(j, 1, 1, 0))
		equal(k, "behind a running one", k.find("report:2026-03-05").State, daybook.Scheduled)
		equal(k, "covers to", k.find(newest.Key).Cover.End, Day("2026-03-04").End)
	}},
	{"a further effect, a further attempt and the past take in no windows", func(k *kit) {
		j := Job("report", allow, func(j *daybook.Job) { j.Missed = daybook.Coalesce })
		k.know(j)
		second := daybook.NewRun(j, 1, Day("2026-02-01"), 2, "", k.now)
		second.Due = k.now
		k.ask(daybook.Ask{Key: second.Key, Source: daybook.SourceManual, Note: "why"}, second)
		past := k.template(j, "2026-02-02")
		past.Lane = daybook.LaneBackfill
		k.ask(daybook.Ask{Key: past.Key, Source: daybook.SourceBackfill}, past)
		k.planned(k.plan(j, 1, 1, 0))
		equal(k, "state", k.find("report:2026-03-01").State, daybook.Scheduled)
	}},
	{"overlap: skip leaves a window out while one is live", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Overlap = daybook.OverlapSkip })
		k.run(j, "2026-02-28")
		k.planned(k.plan(j, 1, 1, 0))
		r := k.find("report:2026-03-01")
		equal(k, "state", r.State, daybook.Skipped)
		equal(k, "reason", r.Reason, daybook.ReasonOverlap)
	}},
	{"windows of a paused job are skipped: paused", func(k *kit) {
		j := Job("report")
		k.know(j)
		_, err := k.s.Pause(k.ctx, "report", k.act("pause"))
		k.ok(err)
		done := k.planned(k.plan(j, 1, 1, 0))
		equal(k, "started", done[0].Started, 0)
		r := k.find("report:2026-03-01")
		equal(k, "state", r.State, daybook.Skipped)
		equal(k, "reason", r.Reason, daybook.ReasonPaused)
		k.now = k.now.AddDate(0, 0, 1)
		k.planned(k.plan(j, 1, 3, 0))
		spans, err := k.s.Spans(k.ctx, "report", k.now)
		k.ok(err)
		equal(k, "spans", len(spans), 1)
		equal(k, "reason", spans[0].Reason, daybook.ReasonPaused)
	}},
	{"while the clock is not confirmed, once-only work is not planned and other work is", func(k *kit) {
		once, other := Job("renew", Once), Job("report")
		k.know(once, other)
		_, err := k.s.Hold(k.ctx, daybook.Hold{Name: daybook.HoldClock, Since: k.now, Detail: "leapt", Node: "n1"})
		k.ok(err)
		done := k.planned(k.plan(once, 1, 2, 0), k.plan(other, 1, 2, 0))
		equal(k, "held", done[0].Held, daybook.ReasonClock)
		equal(k, "cursor", done[0].Cursor, k.now)
		equal(k, "started", done[1].Started, 2)
		_, err = k.s.EndHold(k.ctx, daybook.HoldClock, k.act("confirm"))
		k.ok(err)
		equal(k, "started", k.planned(k.plan(once, 1, 2, 0))[0].Started, 2)
	}},
	{"a plan without windows moves the cursor and keeps the next fire", func(k *kit) {
		j := Job("report")
		k.know(j)
		p := k.plan(j, 1, 0, 0)
		p.To = k.now.Add(time.Minute)
		p.Next, p.NextFire = k.now.Add(2*time.Hour), "2026-03-01T02:00"
		equal(k, "stale", k.planned(p)[0].Stale, false)
		states, err := k.s.JobStates(k.ctx)
		k.ok(err)
		equal(k, "cursor", states[0].Cursor, p.To)
		equal(k, "next", states[0].Next, p.Next)
		equal(k, "next fire", states[0].NextFire, p.NextFire)
		equal(k, "no plans at all", len(k.mustPlan(nil)), 0)
	}},
	{"more windows than are looked up at a time", func(k *kit) {
		j := Job("report", allow)
		k.know(j)
		p := k.plan(j, 1, 1203, 0)
		equal(k, "started", k.planned(p)[0].Started, 1203)
		holes, err := k.s.Unaccounted(k.ctx, "report", p.Windows)
		k.ok(err)
		equal(k, "unaccounted", len(holes), 0)
	}},
}

func (k *kit) mustPlan(plans []*daybook.Plan) []daybook.Planned {
	k.Helper()
	done, err := k.s.Plan(k.ctx, plans, k.now)
	k.ok(err)
	return done
}
