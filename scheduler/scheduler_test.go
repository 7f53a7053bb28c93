package scheduler_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/scheduler"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// bench is a scheduler on a ledger, with a clock moved by hand.
type bench struct {
	t   *testing.T
	ctx context.Context
	s   *store.Store
	*scheduler.Scheduler
	now time.Time
	log strings.Builder
}

func newBench(ctx context.Context, t *testing.T, s *store.Store, now string) *bench {
	b := &bench{t: t, ctx: ctx, s: s, now: instant(now)}
	b.restart()
	return b
}

// restart is a new process on the same ledger: it knows nothing.
func (b *bench) restart() {
	b.Scheduler = scheduler.New(b.s, scheduler.Options{Compile: compile, TZData: "test", Log: slog.New(slog.NewTextHandler(&b.log, nil))})
}

func compile(j daybook.Job) (scheduler.Job, error) {
	j, s, err := calendar.Complete(j, nil)
	return scheduler.Job{Job: &j, Schedule: s}, err
}

func instant(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// job is a definition in UTC.
func job(name, schedule string, change ...func(*daybook.Job)) daybook.Job {
	j := daybook.Job{Name: name, Owner: "ops", Schedule: schedule, Timezone: "UTC", Command: daybook.Command{Argv: []string{"true"}}}
	for _, c := range change {
		c(&j)
	}
	return j
}

func (b *bench) load(jobs ...daybook.Job) {
	b.t.Helper()
	list := make([]scheduler.Job, len(jobs))
	for i, j := range jobs {
		c, err := compile(j)
		if err != nil {
			b.t.Fatal(err)
		}
		list[i] = c
	}
	if err := b.Load(b.ctx, list, true, b.now); err != nil {
		b.t.Fatal(err)
	}
}

// to moves the clock and ticks until there is nothing more to do.
func (b *bench) to(now string) {
	b.t.Helper()
	b.now = instant(now)
	for range 10000 {
		more, err := b.Tick(b.ctx, b.now)
		if err != nil {
			b.t.Fatal(err)
		}
		if !more {
			return
		}
	}
	b.t.Fatal("the scheduler never has enough")
}

// rows lists a job's windows, oldest first, as "label state reason".
func (b *bench) rows(job string) []string {
	b.t.Helper()
	runs, err := b.s.Runs(b.ctx, daybook.Filter{Job: job, Limit: 10000})
	if err != nil {
		b.t.Fatal(err)
	}
	var rows []string
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		row := r.Window.Label + " " + string(r.State)
		if r.Reason != "" {
			row += " (" + string(r.Reason) + ")"
		}
		rows = append(rows, row)
	}
	return rows
}

func (b *bench) spans(job string) []string {
	b.t.Helper()
	list, err := b.s.Spans(b.ctx, job, time.Time{})
	if err != nil {
		b.t.Fatal(err)
	}
	var rows []string
	for _, sp := range list {
		rows = append(rows, fmt.Sprintf("%s..%s %d %s", sp.FromLabel, sp.ToLabel, sp.Count, sp.Reason))
	}
	return rows
}

func (b *bench) want(what string, got []string, want ...string) {
	b.t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.t.Errorf("%s:\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// finish claims what is due and ends it as done.
func (b *bench) finish() []string {
	b.t.Helper()
	var keys []string
	for {
		runs := storetest.Claim(b.ctx, b.t, b.s, 100, b.now)
		if len(runs) == 0 {
			return keys
		}
		for _, r := range runs {
			keys = append(keys, string(r.Key))
			storetest.Apply(b.ctx, b.t, b.s, r.Next(daybook.Outcome{Result: daybook.ResultDone}, daybook.Policy{}, b.now))
		}
	}
}

func TestEachWindowGetsOneRunAtItsFire(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-28T12:00:00Z")
		b.load(job("renew", "0 2 * * *", func(j *daybook.Job) { j.Timezone = "Europe/Berlin" }))
		b.to("2026-03-28T23:00:00Z")
		b.want("before the fire", b.rows("renew"))
		b.to("2026-03-29T01:00:00Z") // 02:00 does not exist
		b.want("in the night of the gap", b.rows("renew"), "2026-03-29 scheduled")
		b.finish()
		b.to("2026-03-30T00:00:00Z")
		b.want("the night after", b.rows("renew"), "2026-03-29 done", "2026-03-30 scheduled")
	})
}

// A weekly report that is asked for every day runs once a week.
func TestSeveralFiresMeetOneKey(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-10-25T12:00:00Z")
		b.load(job("weekly", "0 8 * * *", func(j *daybook.Job) { j.Window = daybook.PreviousWeek }))
		for d := 26; d <= 30; d++ {
			b.to(fmt.Sprintf("2026-10-%dT08:00:01Z", d))
			b.finish()
		}
		b.want("one run", b.rows("weekly"), "2026-W43 done")
		triggers, err := s.Triggers(ctx, "weekly:2026-W43")
		if err != nil {
			t.Fatal(err)
		}
		var outcomes []string
		for _, g := range triggers {
			outcomes = append(outcomes, string(g.Source)+" "+string(g.Outcome))
		}
		b.want("triggers", outcomes, "schedule started", "schedule reused", "schedule reused", "schedule reused", "schedule reused")
		if r := storetest.Find(ctx, t, s, "weekly:2026-W43"); r.Triggers != 5 {
			t.Errorf("the run counts %d triggers", r.Triggers)
		}
	})
}

// faulty is a schedule that can never be worked out.
type faulty struct{ *calendar.Schedule }

func (faulty) Next(time.Time) (daybook.Fire, bool)             { panic("no such hour") }
func (faulty) Due(time.Time, time.Time) iter.Seq[calendar.Due] { panic("no such hour") }

func TestH12OneFaultyScheduleHurtsItsOwnJobOnly(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:30Z")
		var jobs []scheduler.Job
		for _, name := range []string{"a", "b", "c"} {
			j, err := compile(job(name, "every 1m"))
			if err != nil {
				t.Fatal(err)
			}
			if name == "b" {
				j.Schedule = faulty{j.Schedule.(*calendar.Schedule)}
			}
			jobs = append(jobs, j)
		}
		if err := b.Load(ctx, jobs, true, b.now); err != nil {
			t.Fatal(err)
		}
		for m := 1; m <= 5; m++ {
			b.to(fmt.Sprintf("2026-03-01T00:%02d:00Z", m))
			b.finish()
		}
		if a, c := len(b.rows("a")), len(b.rows("c")); a != 5 || c != 5 {
			t.Errorf("a has %d runs, c %d", a, c)
		}
		b.want("b", b.rows("b"))
		states, err := s.JobStates(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if st := states[1]; !strings.Contains(st.Fault, "no such hour") || !st.Cursor.Equal(instant("2026-03-01T00:00:30Z")) {
			t.Errorf("b: %+v", st)
		}
		alerts, err := s.Alerts(ctx, true, 0)
		if err != nil || len(alerts) != 1 || alerts[0].Kind != daybook.AlertScheduleFault || alerts[0].Job != "b" {
			t.Errorf("alerts %+v %v", alerts, err)
		}
	})
}

func TestH21AMovedFireIsFiredOnceAndTold(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2022-10-29T12:00:00Z")
		j := job("daily", "daily 09:00", func(j *daybook.Job) { j.Timezone = "Asia/Amman" })
		b.load(j)
		// What a process with the zone data of summer 2022 had announced: Amman would leave summer time, 09:00 = 07:00Z.
		done, err := s.Plan(ctx, []*daybook.Plan{{Job: complete(t, j), Revision: 1, From: b.now, To: b.now.Add(time.Minute),
			Next: instant("2022-10-30T07:00:00Z"), NextFire: "2022-10-30T09:00"}}, b.now)
		if err != nil || done[0].Stale {
			t.Fatalf("%+v %v", done, err)
		}
		b.restart()
		b.now = instant("2022-10-29T12:05:00Z")
		b.load(j)
		b.to("2022-10-30T05:59:00Z")
		b.want("before", b.rows("daily"))
		b.to("2022-10-30T06:00:00Z")
		b.to("2022-10-30T07:00:00Z")
		b.want("once, at the hour of the newer data", b.rows("daily"), "2022-10-30 scheduled")
		acts, err := s.Activities(ctx, time.Time{}, "", 0)
		if err != nil || len(acts) != 1 || acts[0].Action != "fire moved" || !strings.Contains(acts[0].Note, "2022-10-30T06:00:00Z") {
			t.Errorf("told: %+v %v", acts, err)
		}
	})
}

func complete(t *testing.T, j daybook.Job) *daybook.Job {
	c, err := compile(j)
	if err != nil {
		t.Fatal(err)
	}
	return c.Job
}

// Ten hours down, a fire a minute: what becomes of the 600 windows is for the policy to say.
func TestH23AnyDowntimeIsDecidedByPolicy(t *testing.T) {
	for _, c := range []struct {
		missed       daybook.Missed
		lookBack     time.Duration
		run, covered int
		spans        []string
		next         string
	}{
		{daybook.SkipMissed, 0, 0, 0, []string{"2026-03-01T00:01Z..2026-03-01T10:00Z 600 missed"}, "scheduled"},
		{daybook.Coalesce, 0, 1, 599, nil, "scheduled"},
		{daybook.CatchUp, 50 * time.Minute, 50, 0, []string{"2026-03-01T00:01Z..2026-03-01T09:10Z 550 too old"}, "scheduled"},
	} {
		t.Run(string(c.missed), func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				b := newBench(ctx, t, s, "2026-03-01T00:00:30Z")
				j := job("minute", "*/1 * * * *", func(j *daybook.Job) {
					j.Missed, j.CatchupWindow, j.CatchupGap = c.missed, c.lookBack, 20*time.Second
				})
				b.load(j)
				b.restart()
				b.now = instant("2026-03-01T10:00:40Z")
				b.load(j)
				b.to("2026-03-01T10:00:40Z")
				runs, err := s.Runs(ctx, daybook.Filter{Job: "minute", Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				slices.Reverse(runs) // oldest first
				if len(runs) != c.run+c.covered {
					t.Errorf("%d rows, want %d", len(runs), c.run+c.covered)
				}
				b.want("spans", b.spans("minute"), c.spans...)
				first := instant("2026-03-01T10:01:00Z").Add(-time.Duration(len(runs)) * time.Minute)
				for i, r := range runs {
					if label := first.Add(time.Duration(i) * time.Minute).Format("2006-01-02T15:04Z"); r.Window.Label != label {
						t.Fatalf("row %d is %s, want %s", i, r.Key, label)
					}
					switch {
					case i < c.covered && (r.State != daybook.Coalesced || r.CoveredBy != "minute:2026-03-01T10:00Z"):
						t.Fatalf("%s is %s, covered by %q", r.Key, r.State, r.CoveredBy)
					case i >= c.covered && r.State != daybook.Scheduled:
						t.Fatalf("%s is %s", r.Key, r.State)
					}
				}
				if c.missed == daybook.CatchUp {
					for i, r := range runs { // oldest first, with the gap between them that the job says
						if want := b.now.Add(time.Duration(i) * 20 * time.Second); !r.Due.Equal(want) {
							t.Fatalf("%s is due at %s, want %s", r.Key, r.Due, want)
						}
					}
				}
				if newest := len(runs) - 1; c.missed == daybook.Coalesce && (!runs[newest].Cover.Start.Equal(runs[0].Window.Start) || !runs[newest].Cover.End.Equal(runs[newest].Window.End)) {
					t.Errorf("the newest covers %+v", runs[newest].Cover)
				}
				for range 3 { // again, from scratch: nothing is decided twice
					b.restart()
					b.load(j)
					b.to("2026-03-01T10:00:45Z")
				}
				if again := b.rows("minute"); len(again) != len(runs) {
					t.Errorf("%d rows after further starts, had %d", len(again), len(runs))
				}
				if ran := len(b.finish()); c.run < 2 && ran != c.run { // what is spaced out is not due yet
					t.Errorf("%d ran", ran)
				}
				b.to("2026-03-01T10:01:00Z")
				after := b.rows("minute")
				if last := after[len(after)-1]; last != "2026-03-01T10:01Z "+c.next {
					t.Errorf("the next regular fire: %s", last)
				}
				if r := storetest.Find(ctx, t, s, "minute:2026-03-01T10:01Z"); c.missed != daybook.CatchUp && !r.Due.Equal(b.now) {
					t.Errorf("the next regular fire is due at %s", r.Due)
				}
			})
		})
	}
}

// The look-back that nobody set holds a whole window, of the longest month too: down from the fire of January until two
// hours before that of February, the one of January is caught up.
func TestH23TheDefaultLookBackHoldsTheLongestWindow(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2025-12-31T00:00:00Z")
		j := job("bill", "monthly 1 09:00")
		b.load(j)
		b.restart()
		b.now = instant("2026-02-01T07:00:00Z")
		b.load(j)
		b.to("2026-02-01T07:00:00Z")
		b.want("rows", b.rows("bill"), "2026-01 scheduled (missed)")
		b.want("spans", b.spans("bill"))
	})
}

// Starting after ten hours and 600 windows takes less than two seconds, whatever the policy. A busy machine gets a second
// and a third chance.
func TestH23StartingAfterALongDowntimeIsQuick(t *testing.T) {
	for _, d := range storetest.Databases(t) {
		for _, missed := range []daybook.Missed{daybook.SkipMissed, daybook.Coalesce, daybook.CatchUp} {
			quickest := time.Hour
			for n := 0; n < 3 && quickest > 2*time.Second; n++ {
				b := newBench(t.Context(), t, storetest.Ledger(t, d.Fresh(t)), "2026-03-01T00:00:30Z")
				j := job("minute", "*/1 * * * *", func(j *daybook.Job) { j.Missed = missed })
				b.load(j)
				b.restart()
				b.now = instant("2026-03-01T10:00:40Z")
				began := time.Now()
				b.load(j)
				b.to("2026-03-01T10:00:40Z")
				quickest = min(quickest, time.Since(began))
			}
			if quickest > 2*time.Second {
				t.Errorf("%s, %s: starting took %s", d.Name, missed, quickest)
			}
		}
	}
}

func TestH24ARestartOverTheDueMinuteLosesNothing(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T14:57:00Z")
		j := job("daily", "daily 15:00", func(j *daybook.Job) { j.Missed = daybook.Coalesce })
		b.load(j)
		b.to("2026-03-01T14:57:00Z")
		b.want("before", b.rows("daily"))
		b.restart()
		b.now = instant("2026-03-01T15:03:00Z")
		b.load(j)
		b.to("2026-03-01T15:03:00Z")
		b.want("run", b.rows("daily"), "2026-03-01 scheduled")
		if ran := b.finish(); len(ran) != 1 || ran[0] != "daily:2026-03-01" {
			t.Errorf("ran %v", ran)
		}
		r := storetest.Find(ctx, t, s, "daily:2026-03-01")
		attempts, err := s.Attempts(ctx, r.Key)
		if err != nil || len(attempts) != 1 || attempts[0].ClaimedAt.Sub(r.NotBefore) != 3*time.Minute {
			t.Errorf("lateness: the fire was at %s; %+v %v", r.NotBefore, attempts, err)
		}
	})
}

func TestH25AnIntervalDoesNotCountFromTheStart(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-01-01T12:00:00Z")
		j := job("weekly", "every 168h")
		for d := 1; d <= 16; d++ {
			b.restart()
			b.now = instant(fmt.Sprintf("2026-01-%02dT12:00:00Z", d))
			b.load(j)
			b.to(fmt.Sprintf("2026-01-%02dT12:00:00Z", d))
			b.finish()
		}
		b.want("runs", b.rows("weekly"), "2026-01-08T00:00Z done", "2026-01-15T00:00Z done")
	})
}

func TestH26WakingUpDoesNotBurst(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T08:59:30Z")
		b.load(job("minute", "every 1m"))
		b.to("2026-03-01T09:00:00Z")
		b.finish()
		b.to("2026-03-01T09:47:00Z")
		if ran := b.finish(); len(ran) != 1 {
			t.Errorf("ran %v", ran)
		}
		if rows := b.rows("minute"); len(rows) != 48 {
			t.Errorf("%d windows accounted for", len(rows))
		}
	})
}

func TestH27NeverMoreThanOneWaits(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:30Z")
		b.load(job("wait", "every 1m"), job("skip", "every 1m", func(j *daybook.Job) { j.Overlap, j.Missed = daybook.OverlapSkip, daybook.CatchUp }))
		running := map[string]*daybook.Run{}
		ends := map[string]time.Time{}
		ran := map[string]int{}
		for sec := 60; sec <= 10*60; sec += 30 {
			b.to(instant("2026-03-01T00:00:00Z").Add(time.Duration(sec) * time.Second).Format(time.RFC3339))
			for name, r := range running {
				if !b.now.Before(ends[name]) {
					storetest.Apply(ctx, t, s, r.Next(daybook.Outcome{Result: daybook.ResultDone}, daybook.Policy{}, b.now))
					delete(running, name)
				}
			}
			for _, r := range storetest.Claim(ctx, t, s, 10, b.now) {
				if running[r.Job] != nil {
					t.Fatalf("%s overlaps %s", r.Key, running[r.Job].Key)
				}
				running[r.Job], ends[r.Job] = r, b.now.Add(210*time.Second)
				ran[r.Job]++
			}
			waiting := 0
			for _, row := range b.rows("wait") {
				if strings.Contains(row, "scheduled") {
					waiting++
				}
			}
			if waiting > 1 {
				t.Fatalf("%d wait at %s", waiting, b.now)
			}
		}
		if ran["skip"] != 3 {
			t.Errorf("skip ran %d times: %v", ran["skip"], b.rows("skip"))
		}
		skipped := 0
		for _, row := range b.rows("skip") {
			if strings.Contains(row, "skipped (overlap)") {
				skipped++
			}
		}
		if skipped != 7 {
			t.Errorf("%d skipped for overlap: %v", skipped, b.rows("skip"))
		}
	})
}

func TestH30LateIsLateNotLost(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		after := func(m daybook.Missed) func(*daybook.Job) {
			return func(j *daybook.Job) { j.Missed, j.MissedAfter = m, 10*time.Minute }
		}
		jobs := []daybook.Job{job("run", "daily 00:30", after(daybook.SkipMissed))}
		b.load(jobs...)
		b.to("2026-03-01T00:30:01.776Z")
		b.want("1.776 s late", b.rows("run"), "2026-03-01 scheduled")
		if ran := b.finish(); len(ran) != 1 {
			t.Errorf("1.776 s late: ran %v", ran)
		}
		jobs = append(jobs, job("skip", "daily 00:30", after(daybook.SkipMissed)), job("catch", "daily 00:30", after("")))
		b.load(jobs...)
		b.to("2026-03-02T00:41:00Z")
		b.want("11 minutes late, skip", b.rows("skip"), "2026-03-02 skipped (missed)")
		b.want("11 minutes late, catch_up", b.rows("catch"), "2026-03-02 scheduled (missed)")
		if ran := b.finish(); len(ran) != 1 || ran[0] != "catch:2026-03-02" {
			t.Errorf("11 minutes late: ran %v", ran)
		}
		alerts, err := s.Alerts(ctx, true, 0)
		if err != nil || len(alerts) != 2 { // one for each job that skips
			t.Errorf("alerts %+v %v", alerts, err)
		}
		for _, a := range alerts {
			if a.Kind != daybook.AlertJobLate || a.Key != daybook.Key(a.Job+":2026-03-02") {
				t.Errorf("alert %+v", a)
			}
		}
	})
}

func TestH31FirstSightDoesNotRunThePast(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-05-20T00:00:00Z")
		j := job("monthly", "monthly 1 09:00")
		b.load(j)
		b.to("2026-05-21T00:00:00Z")
		b.restart()
		b.load(j) // again, with the scan of a start
		b.to("2026-05-31T23:59:00Z")
		b.want("before June", b.rows("monthly"))
		b.to("2026-06-01T09:00:00Z")
		b.want("June", b.rows("monthly"), "2026-06 scheduled")
		b.finish()
		b.load() // deleted, and added again when July and August have gone by
		b.to("2026-08-20T00:00:00Z")
		for range 2 {
			b.restart()
			b.load(j)
			b.to("2026-08-20T00:01:00Z")
		}
		b.to("2026-08-31T23:59:00Z") // through the scans of each day
		b.want("before September", b.rows("monthly"), "2026-06 done")
		b.to("2026-09-01T09:00:00Z")
		b.want("September", b.rows("monthly"), "2026-06 done", "2026-09 scheduled")
	})
}

func TestH33LosingTheRaceIsNormal(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		j := job("tick", "every 1m", func(j *daybook.Job) { j.Missed, j.Overlap = daybook.CatchUp, daybook.OverlapAllow })
		benches := make([]*bench, 8)
		for i := range benches {
			benches[i] = newBench(ctx, t, s, "2026-03-01T00:00:30Z")
			benches[i].load(j)
		}
		for m := 1; m <= 100; m++ {
			now := instant("2026-03-01T00:00:00Z").Add(time.Duration(m) * time.Minute)
			var all sync.WaitGroup
			for _, b := range benches {
				all.Go(func() {
					for {
						more, err := b.Tick(ctx, now)
						if err != nil {
							t.Errorf("minute %d: %v", m, err)
						}
						if !more {
							return
						}
					}
				})
			}
			all.Wait()
		}
		rows := benches[0].rows("tick")
		if len(rows) != 100 {
			t.Errorf("%d runs", len(rows))
		}
		for _, b := range benches {
			if b.log.Len() > 0 {
				t.Errorf("logged: %s", b.log.String())
			}
		}
		for m := 1; m <= 100; m++ {
			label := instant("2026-03-01T00:00:00Z").Add(time.Duration(m) * time.Minute).Format("2006-01-02T15:04Z")
			triggers, err := s.Triggers(ctx, daybook.Key("tick:"+label))
			if err != nil || len(triggers) != 1 || triggers[0].Outcome != daybook.Started {
				t.Errorf("%s has triggers %+v, %v", label, triggers, err)
			}
		}
	})
}

// The body takes 10 ms; when the node whose clock is three seconds behind comes to the fire, the run is long over.
func TestH36TheDoneKeyIsTheProof(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		const key = daybook.Key("short:2026-03-01T00:01Z")
		j := job("short", "every 1m", func(j *daybook.Job) { j.Missed = daybook.CatchUp })
		a, behind := newBench(ctx, t, s, "2026-03-01T00:00:30Z"), newBench(ctx, t, s, "2026-03-01T00:00:27Z")
		a.load(j)
		behind.load(j)
		a.to("2026-03-01T00:01:00Z")
		behind.to("2026-03-01T00:00:57Z") // at the same instant
		runs := storetest.Claim(ctx, t, s, 10, a.now)
		if len(runs) != 1 || runs[0].Key != key {
			t.Fatalf("claimed %v", runs)
		}
		end := a.now.Add(10 * time.Millisecond)
		storetest.Apply(ctx, t, s, runs[0].Next(daybook.Outcome{Result: daybook.ResultDone}, daybook.Policy{}, end))
		behind.to("2026-03-01T00:01:00Z") // three seconds later, by its own clock on time
		if again := behind.finish(); len(again) != 0 {
			t.Errorf("ran again: %v", again)
		}
		r := storetest.Find(ctx, t, s, key)
		triggers, err := s.Triggers(ctx, key)
		if err != nil || r.State != daybook.Done || !r.EndedAt.Equal(end) || r.Attempts != 1 || len(triggers) != 1 {
			t.Errorf("%+v, triggers %+v %v", r, triggers, err)
		}
		behind.want("rows", behind.rows("short"), "2026-03-01T00:01Z done")
	})
}

func TestAHoleBehindTheCursorIsDecidedAndTold(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		j := job("daily", "daily 02:00")
		b.load(j)
		// A cursor that was moved without its rows, as a fault or a hand in the database would.
		if done, err := s.Plan(ctx, []*daybook.Plan{{Job: complete(t, j), Revision: 1, From: b.now, To: instant("2026-03-04T00:00:00Z")}}, b.now); err != nil || done[0].Stale {
			t.Fatalf("%+v %v", done, err)
		}
		b.restart()
		b.now = instant("2026-03-04T00:00:00Z")
		b.load(j)
		b.to("2026-03-04T00:00:00Z")
		b.want("found", b.rows("daily"), "2026-03-01 scheduled (missed)", "2026-03-02 scheduled (missed)", "2026-03-03 scheduled (missed)")
		acts, err := s.Activities(ctx, time.Time{}, "", 0)
		if err != nil || len(acts) != 1 || acts[0].Action != "scan" {
			t.Errorf("told: %+v %v", acts, err)
		}
	})
}

// A hole that comes about while a process lives is found by its daily scan, without any start.
func TestTheDailyScanFindsAHole(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		j := job("daily", "daily 02:00")
		b.load(j)
		b.to("2026-03-01T00:00:00Z") // the scan of the start
		// The cursor goes past a fire without its row.
		if done, err := s.Plan(ctx, []*daybook.Plan{{Job: complete(t, j), Revision: 1, From: b.now, To: instant("2026-03-01T12:00:00Z")}}, b.now); err != nil || done[0].Stale {
			t.Fatalf("%+v %v", done, err)
		}
		b.to("2026-03-01T23:59:00Z")
		b.want("not yet looked for", b.rows("daily"))
		b.to("2026-03-02T00:00:00Z")
		b.want("found", b.rows("daily"), "2026-03-01 scheduled (missed)")
		if ran := b.finish(); len(ran) != 1 {
			t.Errorf("ran %v", ran)
		}
	})
}

// The file of the spring Sunday, whose hour does not exist: made at the end of the gap; where nobody was there to make it,
// it is late, which is told, and made.
func TestH02TheSpringSundayIsThereOrLate(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-07T12:00:00Z")
		eastern := func(m daybook.Missed) func(*daybook.Job) {
			return func(j *daybook.Job) { j.Timezone, j.Missed = "America/New_York", m }
		}
		jobs := []daybook.Job{job("file", "daily 02:30", eastern("")), job("skip", "daily 02:30", eastern(daybook.SkipMissed))}
		b.load(jobs...)
		b.to("2026-03-08T06:59:59Z")
		b.want("before the gap", b.rows("file"))
		b.to("2026-03-08T07:00:00Z")
		b.want("at its end", b.rows("file"), "2026-03-08 scheduled")
		b.finish()

		// The same night with nobody there: of the year after, in which the Sunday is the 14th.
		b.to("2027-03-13T12:00:00Z")
		b.finish()
		b.restart()
		b.now = instant("2027-03-14T12:00:00Z")
		b.load(jobs...)
		b.to("2027-03-14T12:00:00Z")
		for name, want := range map[string]string{"file": "2027-03-14 scheduled (missed)", "skip": "2027-03-14 skipped (missed)"} {
			if rows := b.rows(name); rows[len(rows)-1] != want {
				t.Errorf("%s: %s, want %s", name, rows[len(rows)-1], want)
			}
		}
		alerts, err := s.Alerts(ctx, true, 100)
		if err != nil || !slices.ContainsFunc(alerts, func(a daybook.Alert) bool { return a.Kind == daybook.AlertJobLate && a.Key == "skip:2027-03-14" }) {
			t.Errorf("alerts %+v %v", alerts, err)
		}
		if ran := b.finish(); !slices.Contains(ran, "file:2027-03-14") {
			t.Errorf("ran %v", ran)
		}
	})
}

// A run that waits takes in a hole that is older than itself: its bounds begin there.
func TestAHoleIsTakenInWithItsBounds(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		j := job("sync", "hourly")
		b.load(j)
		if done, err := s.Plan(ctx, []*daybook.Plan{{Job: complete(t, j), Revision: 1, From: b.now, To: instant("2026-03-01T02:30:00Z")}}, b.now); err != nil || done[0].Stale {
			t.Fatalf("%+v %v", done, err)
		}
		b.restart()
		b.now = instant("2026-03-01T02:59:00Z")
		b.load(j)
		b.now = instant("2026-03-01T03:00:00Z")
		if _, err := b.Tick(ctx, b.now); err != nil { // the fire comes before the scan
			t.Fatal(err)
		}
		b.to("2026-03-01T03:00:01Z")
		b.want("rows", b.rows("sync"), "2026-03-01T01:00Z coalesced (covered by)", "2026-03-01T02:00Z coalesced (covered by)", "2026-03-01T03:00Z scheduled")
		r := storetest.Find(ctx, t, s, "sync:2026-03-01T03:00Z")
		first := storetest.Find(ctx, t, s, "sync:2026-03-01T01:00Z")
		if !r.Cover.Start.Equal(first.Window.Start) || !r.Cover.End.Equal(r.Window.End) {
			t.Errorf("covers %s to %s", r.Cover.Start, r.Cover.End)
		}
	})
}

func TestAChangedScheduleLeavesNoWindowUnaccounted(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		p0 := func(j *daybook.Job) { j.Priority, j.Effects, j.Window = daybook.P0, daybook.Once, daybook.Day }
		b.load(job("renew", "daily 09:00", p0))
		b.to("2026-03-01T09:00:00Z")
		b.finish()
		// At 08:30 of the next day the schedule becomes 08:00: that day would have come at 09:00, and now is past.
		b.now = instant("2026-03-02T08:30:00Z")
		b.load(job("renew", "daily 08:00", p0))
		b.to("2026-03-03T08:00:00Z")
		b.want("rows", b.rows("renew"), "2026-03-01 done", "2026-03-02 skipped (schedule changed)", "2026-03-03 scheduled")
		alerts, err := s.Alerts(ctx, true, 0)
		if err != nil || len(alerts) != 1 || alerts[0].Key != "renew:2026-03-02" {
			t.Errorf("alerts %+v %v", alerts, err)
		}
	})
}

// A job with zones comes when its date has begun where dates begin first, and not where they begin last: the date is a row that
// says so, with an alert for P0. A date that has begun everywhere, or nowhere, is none.
func TestAJobWithZonesComesWhenItsDateHasBegun(t *testing.T) {
	zoned := func(j *daybook.Job) {
		j.Priority, j.Effects, j.Window, j.Zone = daybook.P0, daybook.Once, daybook.Day, daybook.ZoneOfSubject
		j.Subjects = daybook.Listing{URL: "http://127.0.0.1:1/due"}
	}
	for _, c := range []struct {
		says, at string
		before   []daybook.Job
		want     []string // until the next two have begun
	}{
		{"in between", "2026-03-09T22:00:00Z", nil, []string{"2026-03-10 skipped (schedule changed)", "2026-03-11 scheduled", "2026-03-12 scheduled"}},
		{"two of them are under way", "2026-03-09T19:30:00Z", nil, []string{"2026-03-09 skipped (schedule changed)", "2026-03-10 skipped (schedule changed)", "2026-03-11 scheduled", "2026-03-12 scheduled"}},
		{"it had none before", "2026-03-09T22:00:00Z", []daybook.Job{job("renew", "daily 09:00", func(j *daybook.Job) { zoned(j); j.Zone = "" })},
			[]string{"2026-03-10 skipped (schedule changed)", "2026-03-11 scheduled", "2026-03-12 scheduled"}},
	} {
		t.Run(c.says, func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				b := newBench(ctx, t, s, c.at)
				if c.before != nil {
					b.load(c.before...)
				}
				for range 2 { // loaded again nothing is added
					b.load(job("renew", "daily 09:00", zoned))
				}
				b.to("2026-03-10T19:00:00Z")
				b.finish()
				b.to("2026-03-11T19:00:00Z")
				rows := b.rows("renew")
				for i := range rows {
					rows[i] = strings.Replace(rows[i], " done", " scheduled", 1)
				}
				b.want("rows", rows, c.want...)
				alerts, err := s.Alerts(ctx, true, 0)
				if err != nil || len(alerts) != len(c.want)-2 || !strings.Contains(alerts[0].LastError, "it had begun in the first time zones when this definition came") {
					t.Errorf("alerts %+v %v", alerts, err)
				}
			})
		})
	}
}

func TestTheOldDefinitionDecidesWhatFellUnderIt(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		b.load(job("daily", "daily 02:00"))
		b.restart()
		b.now = instant("2026-03-03T12:00:00Z") // down for two days, and edited meanwhile
		b.load(job("daily", "daily 15:00"))
		b.to("2026-03-04T15:00:00Z")
		b.want("rows", b.rows("daily"), "2026-03-01 scheduled (missed)", "2026-03-02 scheduled (missed)", "2026-03-03 scheduled (missed)", "2026-03-04 scheduled")
	})
}

// What an earlier definition owed and could not decide is decided by it later, and the new one begins where it counts.
func TestAChangeWhileNothingStartsFiresNoPast(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		once := func(j *daybook.Job) { j.Effects, j.Window, j.CatchupGap = daybook.Once, daybook.PerFire, -1 }
		b := newBench(ctx, t, s, "2026-03-01T10:00:00Z")
		b.load(job("once", "hourly", once))
		if _, err := s.Hold(ctx, daybook.Hold{Name: daybook.HoldClock, Since: b.now, Detail: "leapt 8h"}); err != nil {
			t.Fatal(err)
		}
		b.restart()
		b.now = instant("2026-03-01T12:30:00Z")
		b.load(job("once", "daily 11:15", once))
		b.to("2026-03-01T12:31:00Z")
		b.want("held", b.rows("once"))
		if _, err := s.EndHold(ctx, daybook.HoldClock, daybook.Activity{At: b.now}); err != nil {
			t.Fatal(err)
		}
		b.to("2026-03-01T12:32:00Z")
		b.to("2026-03-01T12:32:01Z") // what the scan found
		b.to("2026-03-02T11:15:00Z")
		b.want("rows", b.rows("once"), "2026-03-01T11:00Z scheduled (missed)", "2026-03-01T12:00Z scheduled (missed)", "2026-03-02T11:15 scheduled")
	})
}

// failing is a ledger whose look-ups for the scan fail so often.
type failing struct {
	*store.Store
	left int
}

func (f *failing) Unaccounted(ctx context.Context, job string, windows []daybook.PlannedWindow) ([]daybook.PlannedWindow, error) {
	if f.left--; f.left >= 0 {
		return nil, &daybook.Error{Code: daybook.CodeUnavailable, Message: "cut off"}
	}
	return f.Store.Unaccounted(ctx, job, windows)
}

func TestAScanThatFailedIsTriedAgainSoon(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		j := job("daily", "daily 02:00", func(j *daybook.Job) { j.Effects = daybook.Once; j.Window = daybook.Day })
		b.load(j)
		if done, err := s.Plan(ctx, []*daybook.Plan{{Job: complete(t, j), Revision: 1, From: b.now, To: instant("2026-03-02T00:00:00Z")}}, b.now); err != nil || done[0].Stale {
			t.Fatalf("%+v %v", done, err)
		}
		if _, err := s.Hold(ctx, daybook.Hold{Name: daybook.HoldClock, Since: b.now, Detail: "leapt 8h"}); err != nil {
			t.Fatal(err)
		}
		b.Scheduler = scheduler.New(&failing{Store: s, left: 1}, scheduler.Options{Compile: compile, TZData: "test", Log: slog.New(slog.NewTextHandler(&b.log, nil))})
		b.now = instant("2026-03-02T00:00:00Z")
		b.load(j)
		if _, err := b.Tick(ctx, b.now); daybook.CodeOf(err) != daybook.CodeUnavailable {
			t.Errorf("the scan says %v", err)
		}
		b.to("2026-03-02T00:01:00Z")
		b.want("held", b.rows("daily"))
		if _, err := s.EndHold(ctx, daybook.HoldClock, daybook.Activity{At: b.now}); err != nil {
			t.Fatal(err)
		}
		b.to("2026-03-02T00:02:00Z")
		b.want("found", b.rows("daily"), "2026-03-01 scheduled (missed)")
	})
}

func TestAnOvertakenProcessPlansNoMore(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		old, fresh := newBench(ctx, t, s, "2026-03-01T00:00:00Z"), newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		old.load(job("daily", "daily 02:00"))
		fresh.load(job("daily", "daily 03:00"))
		old.to("2026-03-01T02:00:00Z")
		old.want("by the old one", old.rows("daily"))
		if !strings.Contains(old.log.String(), "overtaken") {
			t.Errorf("log: %s", old.log.String())
		}
		fresh.to("2026-03-01T03:00:00Z")
		fresh.want("by the new one", fresh.rows("daily"), "2026-03-01 scheduled")
	})
}

func TestAPausedJobLeavesARowAWindow(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		b.load(job("daily", "daily 02:00"))
		if _, err := s.Pause(ctx, "daily", daybook.Activity{At: b.now, Actor: "ops", Action: "pause"}); err != nil {
			t.Fatal(err)
		}
		b.to("2026-03-01T02:00:00Z")
		if _, err := s.Resume(ctx, "daily", daybook.Activity{At: b.now, Actor: "ops", Action: "resume"}); err != nil {
			t.Fatal(err)
		}
		b.to("2026-03-02T02:00:00Z")
		b.want("rows", b.rows("daily"), "2026-03-01 skipped (paused)", "2026-03-02 scheduled")
	})
}

func TestTheClockHoldKeepsOnceOnlyWindowsBack(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T10:00:00Z")
		b.load(job("once", "hourly", func(j *daybook.Job) { j.Effects, j.Window = daybook.Once, daybook.PerFire }), job("free", "hourly"))
		b.to("2026-03-01T10:00:00Z")
		if _, err := s.Hold(ctx, daybook.Hold{Name: daybook.HoldClock, Since: b.now, Detail: "leapt 8h"}); err != nil {
			t.Fatal(err)
		}
		b.to("2026-03-01T18:00:00Z")
		b.want("held", b.rows("once"))
		b.finish()
		if n := len(b.rows("free")); n != 8 {
			t.Errorf("the repeatable job decided %d windows", n)
		}
		if _, err := s.EndHold(ctx, daybook.HoldClock, daybook.Activity{At: b.now}); err != nil {
			t.Fatal(err)
		}
		b.to("2026-03-01T10:02:00Z")
		b.to("2026-03-01T11:00:00Z")
		b.want("its own hour", b.rows("once"), "2026-03-01T11:00Z scheduled")
		if ran := b.finish(); len(ran) != 1 {
			t.Errorf("ran %v", ran)
		}
	})
}
