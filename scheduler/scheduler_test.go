package scheduler_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
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

func TestH23AnyDowntimeIsDecidedByPolicy(t *testing.T) {
	for _, c := range []struct {
		missed  daybook.Missed
		change  func(*daybook.Job)
		started int
		rows    int
		spans   []string
	}{
		{daybook.SkipMissed, nil, 0, 0, []string{"2026-03-01T00:01Z..2026-03-01T10:00Z 600 missed"}},
		{daybook.Coalesce, nil, 1, 600, nil},
		{daybook.CatchUp, func(j *daybook.Job) { j.CatchupWindow = 50 * time.Minute }, 50, 50, []string{"2026-03-01T00:01Z..2026-03-01T09:10Z 550 too old"}},
	} {
		t.Run(string(c.missed), func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				b := newBench(ctx, t, s, "2026-03-01T00:00:30Z")
				j := job("minute", "*/1 * * * *", func(j *daybook.Job) {
					j.Missed = c.missed
					if c.change != nil {
						c.change(j)
					}
				})
				b.load(j)
				b.restart()
				b.now = instant("2026-03-01T10:00:40Z")
				b.load(j)
				b.to("2026-03-01T10:00:40Z")
				rows, started := b.rows("minute"), 0
				for _, row := range rows {
					if strings.Contains(row, "scheduled") {
						started++
					}
				}
				if len(rows) != c.rows || started != c.started {
					t.Errorf("%d rows, %d to run; want %d and %d", len(rows), started, c.rows, c.started)
				}
				b.want("spans", b.spans("minute"), c.spans...)
				b.to("2026-03-01T10:01:00Z")
				after := b.rows("minute")
				if last := after[len(after)-1]; !strings.HasPrefix(last, "2026-03-01T10:01Z ") {
					t.Errorf("the next regular fire: %s", last)
				}
				if c.missed == daybook.CatchUp {
					runs, err := s.Runs(ctx, daybook.Filter{Job: "minute", Limit: 100})
					if err != nil {
						t.Fatal(err)
					}
					oldest, second := runs[len(runs)-1], runs[len(runs)-2]
					if oldest.Window.Label != "2026-03-01T09:11Z" || second.Due.Sub(oldest.Due) != time.Minute {
						t.Errorf("oldest first, spaced: %s due %s, then %s due %s", oldest.Window.Label, oldest.Due, second.Window.Label, second.Due)
					}
				}
			})
		})
	}
}

func TestH24ARestartOverTheDueMinuteLosesNothing(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T14:57:00Z")
		j := job("daily", "daily 15:00", func(j *daybook.Job) { j.Missed = daybook.Coalesce })
		b.load(j)
		b.restart()
		b.now = instant("2026-03-01T15:03:00Z")
		b.load(j)
		b.to("2026-03-01T15:03:00Z")
		b.want("run", b.rows("daily"), "2026-03-01 scheduled")
		if r := storetest.Find(ctx, t, s, "daily:2026-03-01"); b.now.Sub(r.NotBefore) != 3*time.Minute {
			t.Errorf("lateness: due %s at %s", r.NotBefore, b.now)
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
		b.to("2026-03-01T00:30:01Z")
		b.want("1.776 s late", b.rows("run"), "2026-03-01 scheduled")
		b.finish()
		jobs = append(jobs, job("skip", "daily 00:30", after(daybook.SkipMissed)), job("catch", "daily 00:30", after("")))
		b.load(jobs...)
		b.to("2026-03-02T00:41:00Z")
		b.want("11 minutes late, skip", b.rows("skip"), "2026-03-02 skipped (missed)")
		b.want("11 minutes late, catch_up", b.rows("catch"), "2026-03-02 scheduled (missed)")
		alerts, err := s.Alerts(ctx, true, 0)
		if err != nil || len(alerts) != 2 || alerts[0].Kind != daybook.AlertJobLate {
			t.Errorf("alerts %+v %v", alerts, err)
		}
	})
}

func TestH31FirstSightDoesNotRunThePast(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-05-20T00:00:00Z")
		j := job("monthly", "monthly 1 09:00")
		for range 2 {
			b.load(j)
			b.to("2026-05-21T00:00:00Z")
			b.restart()
			b.load(j) // again, with the scan of a start
			b.to("2026-05-22T00:00:00Z")
			b.want("before June", b.rows("monthly"))
			b.load() // deleted, then added again
			b.now = instant("2026-05-25T00:00:00Z")
		}
		b.load(j)
		b.to("2026-05-31T23:59:00Z")
		b.want("before June", b.rows("monthly"))
		b.to("2026-06-01T09:00:00Z")
		b.want("June", b.rows("monthly"), "2026-06 scheduled")
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
		for m := 1; m <= 100; m += 33 {
			label := instant("2026-03-01T00:00:00Z").Add(time.Duration(m) * time.Minute).Format("2006-01-02T15:04Z")
			triggers, err := s.Triggers(ctx, daybook.Key("tick:"+label))
			if err != nil || len(triggers) != 1 {
				t.Errorf("%s has %d triggers, %v", label, len(triggers), err)
			}
		}
	})
}

func TestH36TheDoneKeyIsTheProof(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		j := job("short", "every 1m", func(j *daybook.Job) { j.Missed = daybook.CatchUp })
		a, behind := newBench(ctx, t, s, "2026-03-01T00:00:30Z"), newBench(ctx, t, s, "2026-03-01T00:00:30Z")
		a.load(j)
		behind.load(j)
		a.to("2026-03-01T00:01:00Z")
		a.finish()
		behind.to("2026-03-01T00:01:00Z") // three seconds later, by its own clock on time
		if again := behind.finish(); len(again) != 0 {
			t.Errorf("ran again: %v", again)
		}
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
