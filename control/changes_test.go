package control_test

import (
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
)

// file is a definition as a file writes it.
func file(name string, change ...func(*daybook.Job)) daybook.Job {
	j := daybook.Job{Name: name, Owner: "ops", Timezone: "UTC", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once,
		Command: daybook.Command{Argv: []string{"true"}}}
	for _, c := range change {
		c(&j)
	}
	return j
}

// changes compares a file and returns its changes by job.
func (b *bench) changes(jobs ...daybook.Job) map[string]control.Change {
	b.t.Helper()
	list, err := b.Changes(b.ctx, jobs)
	if err != nil {
		b.t.Fatal(err)
	}
	m := map[string]control.Change{}
	for _, c := range list {
		m[c.Job] = c
	}
	return m
}

func TestChangesOfAFile(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-10-26T12:00:00"))
		for _, name := range []string{"same", "later", "fires", "gone", "old", "manual", "shop"} {
			b.job(file(name, func(j *daybook.Job) {
				if name == "manual" {
					j.Schedule = ""
				}
			}))
		}
		retired := b.job(file("retired"))
		if _, err := b.s.TakeRevisions(b.ctx, []daybook.Revision{{Job: retired, Gone: true}, {Job: retired, Home: "", Gone: true}}, false, b.now); err != nil {
			t.Fatal(err)
		}
		got := b.changes(
			file("same"),
			file("later", func(j *daybook.Job) { j.Schedule = "0 3 * * *" }),
			file("fires", func(j *daybook.Job) { j.Window = daybook.PerFire }),
			file("fresh"),
			file("new", func(j *daybook.Job) { j.Formerly = "old" }),
			file("lost", func(j *daybook.Job) { j.Formerly = "never-was" }),
			file("retired", func(j *daybook.Job) { j.Window = daybook.PerFire }),
			file("shop", func(j *daybook.Job) { j.Owner = "ann" }),
		)
		for job, want := range map[string]struct {
			kind    control.ChangeKind
			refused bool
			risks   int
		}{
			"same": {control.ChangeNone, false, 0}, "later": {control.ChangeChanged, false, 0}, "fires": {control.ChangeChanged, true, 1},
			"gone": {control.ChangeGone, true, 1}, "manual": {control.ChangeGone, false, 0}, "fresh": {control.ChangeNew, false, 0},
			"new": {control.ChangeRenamed, false, 0}, "lost": {control.ChangeNew, false, 0}, "retired": {control.ChangeNew, false, 0},
			"shop": {control.ChangeChanged, false, 0},
		} {
			c, ok := got[job]
			if !ok || c.Kind != want.kind || c.Refused() != want.refused || len(c.Consequences) != want.risks {
				t.Errorf("%s: %s, refused %v, %+v", job, c.Kind, c.Refused(), c.Consequences)
			}
		}
		if _, ok := got["old"]; ok || len(got) != 10 {
			t.Errorf("%d changes", len(got))
		}
		if c := got["new"]; c.Formerly != "old" || c.Unknown || !got["lost"].Unknown {
			t.Errorf("renamed: %+v", c)
		}
		later := got["later"]
		if len(later.OldFires) != 3 || later.OldFires[0].Key != "later:2026-10-27" || later.NewFires[0].Key != "later:2026-10-27" ||
			later.NewFires[0].Fire.At.Sub(later.OldFires[0].Fire.At) != time.Hour {
			t.Errorf("fires: %+v → %+v", later.OldFires, later.NewFires)
		}
		if err := control.RefusedKeys([]control.Change{got["same"], got["later"]}); err != nil {
			t.Errorf("refused: %v", err)
		}
		if err := control.RefusedKeys([]control.Change{got["fires"], got["gone"]}); daybook.CodeOf(err) != daybook.CodeConflict || daybook.HintOf(err) == "" {
			t.Errorf("not refused: %v", err)
		}
	})
}

// TestKeysAreAcceptedForOneChangeOnly: what a person accepts is that change, from the definition that counted then to the one
// of the file.
func TestKeysAreAcceptedForOneChangeOnly(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-10-26T12:00:00"))
		b.job(file("renew"))
		fires := file("renew", func(j *daybook.Job) { j.Window = daybook.PerFire })
		if _, err := b.AcceptKeys(b.ctx, ops, []daybook.Job{fires}, " "); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("without a reason: %v", err)
		}
		accept := func(want int, jobs ...daybook.Job) {
			t.Helper()
			list, err := b.AcceptKeys(b.ctx, ops, jobs, "meant so")
			if err != nil || len(list) != want {
				t.Fatalf("accepted %d, %v", len(list), err)
			}
		}
		accept(1, fires)
		accept(0, fires) // once is enough
		acts, err := b.Activities(b.ctx, time.Time{}, "", 10)
		if err != nil || len(acts) != 1 || acts[0].Action != "accept keys" || acts[0].Job != "renew" || acts[0].Actor != "ops" || acts[0].Note != "meant so" {
			t.Errorf("activities: %+v %v", acts, err)
		}
		for what, c := range map[string]struct {
			j       daybook.Job
			refused bool
		}{
			"accepted": {fires, false},
			"the same with another run": {file("renew", func(j *daybook.Job) {
				j.Window, j.Owner, j.Command = daybook.PerFire, "ann", daybook.Command{Shell: "x"}
			}), false},
			"another window":   {file("renew", func(j *daybook.Job) { j.Window = daybook.Week }), true},
			"another schedule": {file("renew", func(j *daybook.Job) { j.Window, j.Schedule = daybook.PerFire, "0 4 * * *" }), true},
			"another zone":     {file("renew", func(j *daybook.Job) { j.Window, j.Timezone = daybook.PerFire, "Asia/Tokyo" }), true},
			"removed":          {file("other"), true},
		} {
			if got := b.changes(c.j)["renew"]; got.Refused() != c.refused || !c.refused && (got.Accepted == nil || got.Accepted.Note != "meant so") {
				t.Errorf("%s: refused %v, accepted %+v", what, got.Refused(), got.Accepted)
			}
		}
		b.job(fires)
		b.job(file("renew"))
		if !b.changes(fires)["renew"].Refused() {
			t.Error("the same change a second time was accepted by the first")
		}
		// A removal is accepted as such.
		accept(1, file("other"))
		if b.changes(file("other"))["renew"].Refused() || !b.changes(fires)["renew"].Refused() {
			t.Error("removed")
		}
	})
}

// TestP1AndOnceAreNotRefused: only what touches money is, whoever defined it before.
func TestOnlyP0IsRefused(t *testing.T) {
	lite(t, func(b *bench) {
		b.at(utc("2026-10-26T12:00:00"))
		p1 := func(j *daybook.Job) { j.Priority = daybook.P1 }
		fire := func(j *daybook.Job) { j.Window = daybook.PerFire }
		b.job(file("report", p1))
		if _, err := b.s.Ensure(b.ctx, b.completed(file("nightly", p1)), daybook.HomeOnce, b.now); err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct {
			j       daybook.Job
			refused bool
		}{
			"P1":                      {file("report", p1, fire), false},
			"P1 that becomes P0":      {file("report", fire), true},
			"taken over from once":    {file("nightly", p1, fire), false},
			"taken over, now as P0":   {file("nightly", fire), true},
			"taken over, same window": {file("nightly"), false},
		} {
			got := b.changes(c.j)[c.j.Name]
			if got.Kind != control.ChangeChanged || got.Refused() != c.refused {
				t.Errorf("%s: %s, refused %v, %+v", what, got.Kind, got.Refused(), got.Consequences)
			}
			if c.j.Window == daybook.PerFire && got.Consequences[0].Risk != calendar.RiskNewKeys {
				t.Errorf("%s: %+v", what, got.Consequences)
			}
		}
	})
}

func (b *bench) completed(j daybook.Job) *daybook.Job {
	b.t.Helper()
	done, _, err := calendar.Complete(j, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return &done
}
