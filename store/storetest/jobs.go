package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
)

// take takes revisions and returns the state of one job afterwards.
func (k *kit) take(job string, retireOthers bool, changes ...daybook.Revision) daybook.JobState {
	k.Helper()
	states, err := k.s.TakeRevisions(k.ctx, changes, retireOthers, k.now)
	k.ok(err)
	for _, s := range states {
		if s.Name == job {
			return s
		}
	}
	k.Fatalf("there is no job %s among %d", job, len(states))
	return daybook.JobState{}
}

var jobCases = []example{
	{"the record of acts is read oldest first, a part at a time, those of one instant too", func(k *kit) {
		k.know(Job("report"))
		const acts = 7
		for i := range acts {
			act := k.act("pause")
			set := k.s.Pause
			if i%2 == 1 {
				act.Action, set = "resume", k.s.Resume
			}
			if i == 4 { // the first four share an instant
				k.now = k.now.Add(time.Second)
				act.At = k.now
			}
			changed, err := set(k.ctx, "report", act)
			k.ok(err)
			equal(k, "changed", changed, true)
		}
		newest, err := k.s.Activities(k.ctx, time.Time{}, "", 0)
		k.ok(err)
		equal(k, "acts", len(newest), acts)
		var at time.Time
		var id string
		read := map[string]bool{}
		for part := 0; part == 0 || id != "" && part < 2*acts; part++ {
			list, err := k.s.ActivitiesAfter(k.ctx, at, id, 2)
			k.ok(err)
			if len(list) > 2 {
				k.Errorf("%d acts at once", len(list))
			}
			id = ""
			for _, a := range list {
				if a.At.Before(at) || read[a.ID] {
					k.Errorf("%s comes late, or again", a.ID)
				}
				read[a.ID] = true
				at, id = a.At, a.ID
			}
		}
		equal(k, "read", len(read), acts)
	}},
	{"a job at first sight starts now: its past is not decided", func(k *kit) {
		j := Job("report")
		s := k.take("report", true, daybook.Revision{Job: j})
		equal(k, "revision", s.Revision, 1)
		equal(k, "since", s.Since, k.now)
		equal(k, "cursor", s.Cursor, k.now)
		equal(k, "first seen", s.FirstSeen, k.now)
		equal(k, "definition", string(s.Definition), string(j.Canonical()))
		got, err := k.s.Definition(k.ctx, "report")
		k.ok(err)
		equal(k, "read back", string(got.Canonical()), string(j.Canonical()))
		_, err = k.s.Definition(k.ctx, "nobody")
		k.code(err, daybook.CodeNotFound)
	}},
	{"an equal definition keeps its number and its cursor", func(k *kit) {
		k.take("report", true, daybook.Revision{Job: Job("report")})
		before := k.dump()
		k.now = k.now.Add(time.Hour)
		s := k.take("report", true, daybook.Revision{Job: Job("report")})
		equal(k, "revision", s.Revision, 1)
		if after := k.dump(); after != before {
			k.Errorf("it wrote\n%s", difference(before, after))
		}
	}},
	{"a changed definition counts from its instant, an earlier text included", func(k *kit) {
		first := Job("report")
		second := Job("report", func(j *daybook.Job) { j.Owner = "ann" })
		k.take("report", true, daybook.Revision{Job: first})
		for i, j := range []*daybook.Job{second, first} {
			k.now = k.now.Add(time.Hour)
			s := k.take("report", true, daybook.Revision{Job: j})
			equal(k, "revision", s.Revision, int64(i+2))
			equal(k, "since", s.Since, k.now)
			equal(k, "cursor", s.Cursor, Birth)
		}
		for _, c := range []struct {
			from time.Duration
			want []int64
		}{{-time.Hour, []int64{1, 2, 3}}, {0, []int64{1, 2, 3}}, {time.Hour, []int64{2, 3}}, {90 * time.Minute, []int64{2, 3}}, {2 * time.Hour, []int64{3}}, {9 * time.Hour, []int64{3}}} {
			list, err := k.s.Definitions(k.ctx, "report", Birth.Add(c.from))
			k.ok(err)
			var got []int64
			for _, s := range list {
				got = append(got, s.Revision)
			}
			if !slices.Equal(got, c.want) {
				k.Errorf("revisions from %s on: %v, want %v", c.from, got, c.want)
			}
		}
	}},
	{"eight serves start at once with one file: one revision each", func(k *kit) {
		var changes, later []daybook.Revision
		for i := range 20 {
			changes = append(changes, daybook.Revision{Job: Job(fmt.Sprintf("j%02d", i))})
			later = append(later, daybook.Revision{Job: Job(fmt.Sprintf("j%02d", i), func(j *daybook.Job) { j.Owner = "ann" })})
		}
		for n, list := range [][]daybook.Revision{changes, later} {
			together(8, func(i int) bool {
				mine := slices.Clone(list)
				if i%2 == 1 {
					slices.Reverse(mine)
				}
				states, err := k.s.TakeRevisions(k.ctx, mine, true, k.now)
				if err != nil {
					k.Error(err)
					return false
				}
				for _, s := range states {
					if s.Revision != int64(n+1) {
						k.Errorf("%s has revision %d, want %d", s.Name, s.Revision, n+1)
					}
				}
				return true
			})
		}
		equal(k, "revisions", k.number("SELECT count(*) FROM daybook_revisions"), 40)
	}},
	{"windows that a change leaves out are rows: skipped, schedule changed; for P0 with an alert", func(k *kit) {
		for _, j := range []*daybook.Job{Job("renew", Once), Job("report")} {
			k.take(j.Name, false, daybook.Revision{Job: j})
		}
		k.run(Job("renew", Once), "2026-03-03") // known already
		left := []daybook.Window{Day("2026-03-02"), Day("2026-03-03")}
		change := func(j *daybook.Job) { j.Schedule = "0 3 * * *" }
		k.take("renew", false, daybook.Revision{Job: Job("renew", Once, change), Left: left}, daybook.Revision{Job: Job("report", change), Left: left})
		r := k.find("renew:2026-03-02")
		equal(k, "state", r.State, daybook.Skipped)
		equal(k, "reason", r.Reason, daybook.ReasonScheduleChanged)
		equal(k, "revision", r.Revision, 2)
		equal(k, "known already", k.find("renew:2026-03-03").State, daybook.Scheduled)
		equal(k, "state", k.find("report:2026-03-03").State, daybook.Skipped)
		alerts, err := k.s.Alerts(k.ctx, true, 0)
		k.ok(err)
		equal(k, "alerts", len(alerts), 1)
		equal(k, "alert", alerts[0].Key, "renew:2026-03-02")
	}},
	{"a job that no file names is retired: what waits is held, also what comes back to waiting; it returns like a new one", func(k *kit) {
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		running := k.one()
		k.run(j, "2026-03-02")
		k.now = k.now.Add(time.Hour)
		s := k.take("report", true, daybook.Revision{Job: Job("other")})
		equal(k, "retired", s.RetiredAt, k.now)
		equal(k, "hold", k.find("report:2026-03-02").Hold, daybook.ReasonNoDefinition)
		k.end(running, j, daybook.Outcome{Result: daybook.ResultLost})
		equal(k, "hold of what ran", k.find("report:2026-03-01").Hold, daybook.ReasonNoDefinition)
		dead := daybook.Key("report:2026-03-04")
		k.set("INSERT INTO daybook_runs (key, job, label, date, start_us, end_us, cover_start_us, cover_end_us, priority, lane, effects, work, state, created_us) VALUES ('%s', 'report', 'x', 'x', 1, 2, 1, 2, 'P1', 'live', 'repeatable', 'timed', 'skipped', 1)", dead)
		k.ask(daybook.Ask{Key: dead, Source: daybook.SourceManual, RunSkipped: true}, nil)
		equal(k, "hold of what goes live", k.find(dead).Hold, daybook.ReasonNoDefinition)
		equal(k, "claimed", len(k.claim(9)), 0)
		k.now = k.now.Add(time.Hour)
		s = k.take("report", true, daybook.Revision{Job: j}, daybook.Revision{Job: Job("other")})
		equal(k, "retired", s.RetiredAt, time.Time{})
		equal(k, "revision", s.Revision, 2)
		equal(k, "cursor", s.Cursor, k.now)
		equal(k, "claimed", len(k.claim(9)), 3)
	}},
	{"a job at home with `daybook once` is retired by no serve", func(k *kit) {
		state, err := k.s.Ensure(k.ctx, Job("backup"), daybook.HomeOnce, k.now)
		k.ok(err)
		equal(k, "home", state.Home, daybook.HomeOnce)
		s := k.take("backup", true, daybook.Revision{Job: Job("report")})
		equal(k, "retired", s.RetiredAt, time.Time{})
		state, err = k.s.Ensure(k.ctx, Job("backup", func(j *daybook.Job) { j.Owner = "ann" }), daybook.HomeOnce, k.now)
		k.ok(err)
		equal(k, "revision", state.Revision, 2)
	}},
	{"a job that a file takes over from once starts at now: nothing planned it until then", func(k *kit) {
		_, err := k.s.Ensure(k.ctx, Job("backup"), daybook.HomeOnce, k.now)
		k.ok(err)
		k.now = k.now.AddDate(0, 0, 9)
		states, err := k.s.TakeRevisions(k.ctx, []daybook.Revision{{Job: Job("backup")}}, true, k.now)
		k.ok(err)
		equal(k, "cursor", states[0].Cursor, k.now)
		equal(k, "first seen", states[0].FirstSeen, k.now)
	}},
	{"a job at home with an application is retired by that one only, and taken by nobody else before", func(k *kit) {
		shop := daybook.Revision{Job: Job("renew"), Home: "shop"}
		equal(k, "home", k.take("renew", false, shop).Home, "shop")
		equal(k, "retired by a serve", k.take("renew", true, daybook.Revision{Job: Job("report")}).RetiredAt, time.Time{})
		for _, home := range []string{"", "billing"} {
			_, err := k.s.TakeRevisions(k.ctx, []daybook.Revision{{Job: Job("renew"), Home: home}}, false, k.now)
			k.code(err, daybook.CodeConflict)
		}
		_, err := k.s.TakeRevisions(k.ctx, []daybook.Revision{{Job: Job("report"), Home: "shop"}}, false, k.now)
		k.code(err, daybook.CodeConflict)
		equal(k, "retired by another", k.take("renew", false, daybook.Revision{Job: Job("renew"), Home: "billing", Gone: true}).RetiredAt, time.Time{})
		equal(k, "retired", k.take("renew", false, daybook.Revision{Job: Job("renew"), Home: "shop", Gone: true}).RetiredAt, k.now)
		equal(k, "home", k.take("renew", false, daybook.Revision{Job: Job("renew"), Home: "billing"}).Home, "billing")
	}},
	{"what waits of a job, and what is replayed, goes with it to its new home", func(k *kit) {
		j := Job("renew", allow)
		k.take("renew", false, daybook.Revision{Job: j, Home: "shop"})
		make := func(date string) {
			r := k.template(j, date)
			r.Home = "shop"
			k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r)
		}
		claim := func(home string) []*daybook.Run {
			return k.claim(9, func(q *daybook.Claim) { q.Home = home })
		}
		make("2026-03-01")
		dead := k.end(claim("shop")[0], j, daybook.Outcome{Result: daybook.ResultPermanent})
		make("2026-03-02")
		k.take("renew", false, daybook.Revision{Job: j, Home: "shop", Gone: true})
		equal(k, "claimed while retired", len(claim("shop")), 0)
		k.take("renew", true, daybook.Revision{Job: j})
		k.ask(daybook.Ask{Key: dead.Key, Source: daybook.SourceReplay}, nil)
		equal(k, "claimed at the old home", len(claim("shop")), 0)
		equal(k, "claimed", len(claim("")), 2)
		for _, date := range []string{"01", "02"} {
			equal(k, "home", k.find(daybook.Key("renew:2026-03-"+date)).Home, "")
		}
	}},
	{"a pause holds what waits, lets what runs go on and holds it when it comes back; a resume lets go", func(k *kit) {
		j := Job("report", allow)
		k.run(j, "2026-03-01")
		running := k.one()
		k.run(j, "2026-03-02")
		for _, want := range []bool{true, false} {
			changed, err := k.s.Pause(k.ctx, "report", k.act("pause"))
			k.ok(err)
			equal(k, "changed", changed, want)
		}
		s := k.take("report", false)
		equal(k, "paused", s.Paused, true)
		equal(k, "by", s.PausedBy, "ops")
		equal(k, "note", s.PausedNote, "because")
		equal(k, "at", s.PausedAt, k.now)
		notices, err := k.s.Renew(k.ctx, []*daybook.Run{running}, k.now.Add(time.Minute), k.now)
		k.ok(err)
		equal(k, "notices", len(notices), 0)
		k.end(k.find(running.Key), j, daybook.Outcome{Result: daybook.ResultLost})
		equal(k, "hold", k.find(running.Key).Hold, daybook.ReasonPaused)
		equal(k, "claimed", len(k.claim(9)), 0)
		for _, want := range []bool{true, false} {
			changed, err := k.s.Resume(k.ctx, "report", k.act("resume"))
			k.ok(err)
			equal(k, "changed", changed, want)
		}
		equal(k, "claimed", len(k.claim(9)), 2)
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity WHERE action IN ('pause', 'resume')"), 2)
		_, err = k.s.Pause(k.ctx, "nobody", k.act("pause"))
		k.code(err, daybook.CodeNotFound)
	}},
	{"a pause and a resume meet what comes to wait at the same moment", func(k *kit) {
		if k.db.Name != "postgres" {
			return // one writer at a time
		}
		// meets makes one write come while another one is about to be committed.
		meets := func(first func(*store.Store) error, second func() error) {
			f := newFaults(1)
			slow := k.faulty(f)
			committing, goOn := make(chan struct{}), make(chan struct{})
			f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, Hook: func(context.Context, faultstore.Call) error {
				close(committing)
				<-goOn
				return nil
			}})
			a, b := make(chan error, 1), make(chan error, 1)
			go func() { a <- first(slow) }()
			<-committing
			go func() { b <- second() }()
			k.until(k.raw, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
			close(goOn)
			k.ok(<-a)
			k.ok(<-b)
		}
		pause := func() error { _, err := k.s.Pause(k.ctx, "report", k.act("pause")); return err }
		resume := func() error { _, err := k.s.Resume(k.ctx, "report", k.act("resume")); return err }
		j := Job("report", allow)
		k.know(j)
		k.run(j, "2026-03-01")
		r := k.one()
		end := func(o daybook.Outcome) func(*store.Store) error {
			return func(s *store.Store) error {
				applied, err := s.Apply(k.ctx, []daybook.Transition{k.find(r.Key).Next(o, j.Policy(), k.now)})
				equal(k, "stale", err == nil && applied[0].Stale, false)
				return err
			}
		}
		trigger := func(date string) func(*store.Store) error {
			return func(s *store.Store) error {
				t := k.template(j, date)
				_, _, err := s.Trigger(k.ctx, daybook.Ask{Key: t.Key, Source: daybook.SourceManual, Actor: "ops"}, t, k.now)
				return err
			}
		}
		replay := func(s *store.Store) error {
			_, _, err := s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceReplay, Actor: "ops"}, nil, k.now)
			return err
		}
		meets(end(daybook.Outcome{Result: daybook.ResultLost}), pause)
		equal(k, "goes back to waiting, paused", k.find(r.Key).Hold, daybook.ReasonPaused)
		k.ok(resume())
		r = k.one()
		k.ok(pause())
		meets(end(daybook.Outcome{Result: daybook.ResultLost}), resume)
		equal(k, "goes back to waiting, resumed", k.find(r.Key).Hold, "")
		meets(trigger("2026-03-02"), pause)
		equal(k, "made, paused", k.find("report:2026-03-02").Hold, daybook.ReasonPaused)
		k.ok(resume())
		r = k.claim(1, func(c *daybook.Claim) { c.Key = r.Key })[0]
		k.end(r, j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "refused"})
		meets(replay, pause)
		equal(k, "replayed, paused", k.find(r.Key).Hold, daybook.ReasonPaused)
		k.ok(resume())
		r = k.claim(1, func(c *daybook.Claim) { c.Key = r.Key })[0]
		k.end(r, j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "refused"})
		k.ok(pause())
		meets(replay, resume)
		equal(k, "replayed, resumed", k.find(r.Key).Hold, "")

		_, err := k.s.Hold(k.ctx, daybook.Hold{Name: daybook.HoldClock, Since: k.now, Detail: "leapt", Node: "n1"})
		k.ok(err)
		once := Job("renew", Once)
		k.know(once)
		meets(func(s *store.Store) error {
			t := k.template(once, "2026-03-01")
			_, _, err := s.Trigger(k.ctx, daybook.Ask{Key: t.Key, Source: daybook.SourceManual, Actor: "ops", Effects: daybook.Once}, t, k.now)
			return err
		}, func() error { _, err := k.s.EndHold(k.ctx, daybook.HoldClock, k.act("confirm")); return err })
		equal(k, "made, confirmed", k.find("renew:2026-03-01").Hold, "")
	}},
	{"a pause in the file holds and lets go like one by hand; the later of the two wins", func(k *kit) {
		paused := func(j *daybook.Job) { j.Paused = true }
		k.run(Job("report"), "2026-03-01")
		equal(k, "paused", k.take("report", false, daybook.Revision{Job: Job("report", paused)}).Paused, true)
		equal(k, "claimed", len(k.claim(9)), 0)
		_, err := k.s.Resume(k.ctx, "report", k.act("resume"))
		k.ok(err)
		equal(k, "still resumed", k.take("report", false, daybook.Revision{Job: Job("report", paused, func(j *daybook.Job) { j.Owner = "ann" })}).Paused, false)
		_, err = k.s.Pause(k.ctx, "report", k.act("pause"))
		k.ok(err)
		equal(k, "resumed by the file", k.take("report", false, daybook.Revision{Job: Job("report")}).Paused, false)
		equal(k, "claimed", len(k.claim(9)), 1)
	}},
	{"paused and retired: a resume does not let go of what nobody defines, a return not of what is paused", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		_, err := k.s.Pause(k.ctx, "report", k.act("pause"))
		k.ok(err)
		k.take("report", true)
		_, err = k.s.Resume(k.ctx, "report", k.act("resume"))
		k.ok(err)
		equal(k, "hold", k.find("report:2026-03-01").Hold, daybook.ReasonNoDefinition)
		_, err = k.s.Pause(k.ctx, "report", k.act("pause"))
		k.ok(err)
		k.take("report", true, daybook.Revision{Job: j})
		equal(k, "hold", k.find("report:2026-03-01").Hold, daybook.ReasonPaused)
	}},
	{"a schedule that cannot be worked out is shown with one alert, and recovers", func(k *kit) {
		k.know(Job("report"))
		for range 2 {
			k.ok(k.s.Fault(k.ctx, "report", daybook.P1, "no such zone", k.now))
		}
		s := k.take("report", false)
		equal(k, "fault", s.Fault, "no such zone")
		equal(k, "since", s.FaultAt, k.now)
		equal(k, "alerts", k.number("SELECT count(*) FROM daybook_alerts"), 1)
		k.ok(k.s.Fault(k.ctx, "report", daybook.P1, "", k.now))
		equal(k, "open alerts", k.number("SELECT count(*) FROM daybook_alerts WHERE closed_us = 0"), 0)
		k.ok(k.s.Fault(k.ctx, "report", daybook.P1, "no such calendar", k.now))
		s = k.take("report", false, daybook.Revision{Job: Job("report", func(j *daybook.Job) { j.Owner = "ann" })})
		equal(k, "fault after a change", s.Fault, "")
		equal(k, "open alerts", k.number("SELECT count(*) FROM daybook_alerts WHERE closed_us = 0"), 0)
	}},
	{"when a look-back was compared is kept", func(k *kit) {
		k.know(Job("report"))
		k.ok(k.s.Scanned(k.ctx, []string{"report"}, k.now.Add(time.Hour)))
		equal(k, "scanned", k.take("report", false).ScannedAt, k.now.Add(time.Hour))
	}},
}
