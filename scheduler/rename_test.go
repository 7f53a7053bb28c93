package scheduler_test

import (
	"context"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

func formerly(name string) func(*daybook.Job) {
	return func(j *daybook.Job) { j.Formerly = name }
}

// A weekly job that is asked for every day was renamed in the middle of its week: the week is done, whatever the name.
func TestARenameDoesNotDoAWindowTwice(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		weekly := func(j *daybook.Job) { j.Window = daybook.Week }
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		b.load(job("charge", "daily 08:00", weekly))
		b.to("2026-03-02T08:00:00Z")
		b.want("done on Monday", b.finish(), "charge:2026-W09", "charge:2026-W10")
		b.restart()
		b.now = instant("2026-03-03T12:00:00Z") // Tuesday's fire fell under the old name
		b.load(job("renew", "daily 08:00", weekly, formerly("charge")))
		b.to("2026-03-08T08:00:00Z")
		b.want("nothing more in that week", b.finish())
		b.to("2026-03-09T08:00:00Z")
		b.want("the next week", b.finish(), "renew:2026-W11")
		triggers, err := s.Triggers(ctx, "charge:2026-W10")
		if err != nil {
			t.Fatal(err)
		}
		if len(triggers) != 7 { // each day of the week knocked at the same key
			t.Errorf("%d triggers: %+v", len(triggers), triggers)
		}
		for _, g := range triggers[1:] {
			if g.Outcome != daybook.Reused {
				t.Errorf("%+v", g)
			}
		}
	})
}

// The old name decides what fell under it, and what a change of schedule leaves out is told.
func TestTheOldNameDecidesWhatFellUnderIt(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
		b.load(job("old", "daily 20:00"))
		b.restart()
		b.now = instant("2026-03-03T12:00:00Z") // down for two days, renamed and moved meanwhile
		b.load(job("new", "daily 02:00", formerly("old")))
		b.to("2026-03-04T02:00:00Z")
		b.want("rows", b.rows("new"), "2026-03-01 scheduled (missed)", "2026-03-02 scheduled (missed)", "2026-03-03 skipped (schedule changed)", "2026-03-04 scheduled")
		b.want("in one line, the oldest first", b.finish(), "old:2026-03-01", "old:2026-03-02", "new:2026-03-04")
	})
}

// What the old name owed and could not decide is found by the scan, by its own definition.
func TestARenameWhileNothingStartsLosesNothing(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		once := func(j *daybook.Job) { j.Effects, j.Window, j.CatchupGap = daybook.Once, daybook.PerFire, -1 }
		b := newBench(ctx, t, s, "2026-03-01T10:00:00Z")
		b.load(job("old", "hourly", once))
		if _, err := s.Hold(ctx, daybook.Hold{Name: daybook.HoldClock, Since: b.now, Detail: "leapt 8h"}); err != nil {
			t.Fatal(err)
		}
		b.restart()
		b.now = instant("2026-03-01T12:30:00Z")
		b.load(job("new", "daily 11:15", once, formerly("old")))
		b.to("2026-03-01T12:31:00Z")
		b.want("held", b.rows("new"))
		if _, err := s.EndHold(ctx, daybook.HoldClock, daybook.Activity{At: b.now}); err != nil {
			t.Fatal(err)
		}
		b.to("2026-03-01T12:32:00Z")
		b.to("2026-03-01T12:32:01Z")
		b.to("2026-03-02T11:15:00Z")
		b.want("rows", b.rows("new"), "2026-03-01T11:00Z scheduled (missed)", "2026-03-01T12:00Z scheduled (missed)", "2026-03-02T11:15 scheduled")
	})
}

// What a crontab did with daybook once is carried on by a file under another name, and its past is not run.
func TestAFileCarriesOnWhatOnceDid(t *testing.T) {
	for name, change := range map[string]func(*daybook.Job){
		"nightly": func(j *daybook.Job) { j.Owner = "ann" },
		"backup":  formerly("nightly"),
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				b := newBench(ctx, t, s, "2026-03-01T00:00:00Z")
				if _, err := s.Ensure(ctx, complete(t, job("nightly", "daily 02:00")), daybook.HomeOnce, b.now); err != nil {
					t.Fatal(err)
				}
				b.now = instant("2026-03-05T12:00:00Z")
				b.load(job(name, "daily 02:00", change))
				b.to("2026-03-06T02:00:00Z")
				b.want("rows", b.rows(name), "2026-03-06 scheduled")
			})
		})
	}
}
