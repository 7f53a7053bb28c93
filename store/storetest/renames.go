package storetest

import (
	"slices"
	"time"

	"github.com/daybook-run/daybook"
)

// renamed is a job that carries on what another one began.
func renamed(from string) func(*daybook.Job) {
	return func(j *daybook.Job) { j.Formerly = from }
}

// rename takes a file in which charge stands for renew.
func (k *kit) rename(change ...func(*daybook.Job)) (*daybook.Job, daybook.JobState) {
	k.Helper()
	j := Job("charge", append([]func(*daybook.Job){Once, renamed("renew")}, change...)...)
	return j, k.take("charge", true, daybook.Revision{Job: j})
}

// triggersOf counts the triggers of a key.
func (k *kit) triggersOf(key daybook.Key) int {
	k.Helper()
	list, err := k.s.Triggers(k.ctx, key)
	k.ok(err)
	return len(list)
}

var renameCases = []example{
	{"a window done under the old name is not done again under the new one, whichever door asks", func(k *kit) {
		old := Job("renew", Once)
		k.run(old, "2026-03-01")
		k.try(old, daybook.Outcome{Result: daybook.ResultDone})
		j, st := k.rename()
		equal(k, "carries", slices.Equal(st.Formerly, []string{"renew"}), true)
		equal(k, "renamed to", k.take("renew", false).RenamedTo, "charge")
		before := k.triggersOf("renew:2026-03-01")
		for _, source := range []daybook.Source{daybook.SourceManual, daybook.SourceAPI, daybook.SourceEvent, daybook.SourceReplay, daybook.SourceOnce, daybook.SourceDrill, daybook.SourceBackfill} {
			a := daybook.Ask{Key: "charge:2026-03-01", Source: source, Actor: "ann", Effects: j.Effects}
			reply, r := k.ask(a, k.template(j, "2026-03-01"))
			equal(k, string(source), reply.Outcome, daybook.Reused)
			equal(k, string(source)+": key", r.Key, "renew:2026-03-01")
			before++
			equal(k, string(source)+": counted", r.Triggers, before)
			equal(k, string(source)+": recorded", k.triggersOf("renew:2026-03-01"), before)
		}
		reply, _ := k.ask(daybook.Ask{Key: "charge:2026-03-01", Source: daybook.SourceManual, Again: true, Effects: j.Effects}, k.template(j, "2026-03-01"))
		equal(k, "again", reply.Because, daybook.BecauseOnce)
		reply, _ = k.ask(daybook.Ask{Key: "charge:2026-03-01", Source: daybook.SourceAPI, Payload: []byte(`{"cents":1}`), Effects: j.Effects}, k.template(j, "2026-03-01"))
		equal(k, "payload", reply.HTTP, 422)
		p := k.plan(j, 1, 3, 0)
		p.From = st.Cursor
		done := k.planned(p)
		equal(k, "started by schedule", done[0].Started, 2)
		equal(k, "recorded", k.triggersOf("renew:2026-03-01"), before+3)
		equal(k, "counted", k.find("renew:2026-03-01").Triggers, before+3)
		equal(k, "of the new name", k.number("SELECT count(*) FROM daybook_runs WHERE key = 'charge:2026-03-01'"), 0)
		k.now = p.To
		equal(k, "claimed", len(k.claim(9)), 1) // of the two new ones, in one line
	}},
	{"an open run goes on under its old name, with its wire key, and is held and let go with the new job", func(k *kit) {
		old := Job("renew", Once, allow, func(j *daybook.Job) { j.Remembers = 24 * time.Hour })
		k.run(old, "2026-03-01")
		r := k.try(old, daybook.Outcome{Result: daybook.ResultNotDone, Error: "exit 75"})
		equal(k, "state", r.State, daybook.Retryable)
		k.run(old, "2026-03-02")
		running := k.one()
		k.run(old, "2026-03-03")
		j, _ := k.rename(allow, func(j *daybook.Job) { j.Remembers = 24 * time.Hour })
		for _, date := range []string{"01", "02", "03"} {
			equal(k, "held after the rename", k.find(daybook.Key("renew:2026-03-"+date)).Hold, "")
		}
		reply, joined := k.ask(daybook.Ask{Key: "charge:2026-03-02", Source: daybook.SourceManual, Effects: j.Effects}, k.template(j, "2026-03-02"))
		equal(k, "asked while it runs", reply.Outcome, daybook.Joined)
		equal(k, "key", joined.Key, "renew:2026-03-02")
		k.begin(running, old)
		back := k.end(running, j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "exit 75"})
		equal(k, "state", back.State, daybook.Retryable)
		equal(k, "hold", back.Hold, "")
		_, err := k.s.Pause(k.ctx, "charge", k.act("pause"))
		k.ok(err)
		k.now = k.now.Add(time.Hour)
		equal(k, "claimed while paused", len(k.claim(9)), 0)
		_, err = k.s.Resume(k.ctx, "charge", k.act("resume"))
		k.ok(err)
		runs := k.claim(9)
		equal(k, "claimed", len(runs), 3)
		for _, r := range runs {
			if r.WireKey() != string(r.Key) || r.Job != "renew" {
				k.Errorf("%s of %s has wire key %s", r.Key, r.Job, r.WireKey())
			}
		}
		definition, err := k.s.Definition(k.ctx, "renew")
		k.ok(err)
		equal(k, "definition", definition.Name, "charge")
	}},
	{"a dead letter is replayed as what it is, asked by either name", func(k *kit) {
		old := Job("renew", Once)
		for _, date := range []string{"2026-03-01", "2026-03-02"} {
			k.dies(old, date)
		}
		k.rename()
		for asked, date := range map[daybook.Key]string{"charge:2026-03-01": "2026-03-01", "renew:2026-03-02": "2026-03-02"} {
			reply, r := k.ask(daybook.Ask{Key: asked, Source: daybook.SourceReplay, Actor: "ann"}, nil)
			equal(k, "replayed", reply.Outcome, daybook.Started)
			equal(k, "key", r.Key, daybook.Key("renew:"+date))
			equal(k, "hold", r.Hold, "")
			equal(k, "wire key", r.WireKey(), "renew:"+date+"#run@2")
		}
	}},
	{"windows that were skipped together stay skipped", func(k *kit) {
		old := Job("renew")
		k.know(old)
		_, err := k.s.Pause(k.ctx, "renew", k.act("pause"))
		k.ok(err)
		p := k.plan(old, 1, 3, 0)
		k.planned(p)
		_, err = k.s.Resume(k.ctx, "renew", k.act("resume"))
		k.ok(err)
		k.now = p.To
		j := Job("charge", renamed("renew"))
		st := k.take("charge", true, daybook.Revision{Job: j})
		equal(k, "cursor", st.Cursor, p.To)
		equal(k, "first seen", st.FirstSeen, Birth)
		w := p.Windows[1]
		reply, _ := k.ask(daybook.Ask{Key: "charge:2026-03-02", Source: daybook.SourceManual, FireAt: w.Last}, k.template(j, "2026-03-02"))
		equal(k, "asked", reply.Because, daybook.BecauseSkipped)
		holes, err := k.s.Unaccounted(k.ctx, "charge", p.Windows)
		k.ok(err)
		equal(k, "holes", len(holes), 0)
		scan := &daybook.Plan{Job: j, Revision: 1, Source: daybook.SourceCatchup, From: st.Cursor, To: st.Cursor, Windows: p.Windows}
		equal(k, "started", k.planned(scan)[0].Started, 0)
	}},
	{"a chain of renames leads to the oldest name, also when it is taken back", func(k *kit) {
		a := Job("a")
		k.run(a, "2026-03-01")
		k.try(a, daybook.Outcome{Result: daybook.ResultDone})
		k.take("b", true, daybook.Revision{Job: Job("b", renamed("a"))})
		b := Job("b", renamed("a"))
		k.run(b, "2026-03-02")
		k.try(b, daybook.Outcome{Result: daybook.ResultDone})
		c := Job("c", renamed("b"))
		st := k.take("c", true, daybook.Revision{Job: c})
		equal(k, "names", slices.Equal(st.Formerly, []string{"b", "a"}), true)
		for date, key := range map[string]daybook.Key{"2026-03-01": "a:2026-03-01", "2026-03-02": "b:2026-03-02"} {
			_, r := k.ask(daybook.Ask{Key: daybook.Key("c:" + date), Source: daybook.SourceManual}, k.template(c, date))
			equal(k, "answered by", r.Key, key)
		}
		runs, err := k.s.Runs(k.ctx, daybook.Filter{Job: "c"})
		k.ok(err)
		equal(k, "listed", slices.Equal(keys(runs), []daybook.Key{"b:2026-03-02", "a:2026-03-01"}), true)
		good, err := k.s.LastGood(k.ctx)
		k.ok(err)
		equal(k, "last good", good["c"].Key, "b:2026-03-02")

		back := Job("a", renamed("c"))
		st = k.take("a", true, daybook.Revision{Job: back})
		equal(k, "names", slices.Equal(st.Formerly, []string{"c", "b"}), true)
		equal(k, "is its own", st.RenamedTo, "")
		_, r := k.ask(daybook.Ask{Key: "a:2026-03-02", Source: daybook.SourceManual}, k.template(back, "2026-03-02"))
		equal(k, "answered by", r.Key, "b:2026-03-02")
	}},
	{"a name that was given up is nobody's while another job carries it on", func(k *kit) {
		k.know(Job("renew"))
		k.rename()
		_, err := k.s.TakeRevisions(k.ctx, []daybook.Revision{{Job: Job("renew")}}, false, k.now)
		k.code(err, daybook.CodeConflict)
		_, err = k.s.Ensure(k.ctx, Job("renew"), daybook.HomeOnce, k.now)
		k.code(err, daybook.CodeConflict)
		t := k.template(Job("renew"), "2026-03-05")
		_, _, err = k.s.Trigger(k.ctx, daybook.Ask{Key: t.Key, Source: daybook.SourceManual}, t, k.now)
		k.code(err, daybook.CodeConflict)
		equal(k, "runs", k.number("SELECT count(*) FROM daybook_runs"), 0)
		// Once the new one does not claim it any more, it is free; what stands under it answers for itself again.
		equal(k, "names", len(k.take("charge", true, daybook.Revision{Job: Job("charge", Once)}, daybook.Revision{Job: Job("renew")}).Formerly), 0)
	}},
	{"what waits under the old name is held when nobody carries it on any more", func(k *kit) {
		old := Job("renew", allow)
		k.run(old, "2026-03-01")
		k.rename(allow)
		k.take("charge", true, daybook.Revision{Job: Job("other")})
		equal(k, "hold", k.find("renew:2026-03-01").Hold, daybook.ReasonNoDefinition)
		k.rename(allow)
		equal(k, "claimed", len(k.claim(9)), 1)
	}},
	{"the next window waits for the one that runs under the old name", func(k *kit) {
		old := Job("renew", Once)
		k.run(old, "2026-03-01")
		k.one()
		j, _ := k.rename()
		k.ask(daybook.Ask{Key: "charge:2026-03-02", Source: daybook.SourceManual, Effects: j.Effects}, k.template(j, "2026-03-02"))
		equal(k, "claimed", len(k.claim(9)), 0)
		p := k.plan(j, 1, 3, 0)
		k.planned(p)
		equal(k, "claimed", len(k.claim(9)), 0)
		equal(k, "lines", k.number("SELECT count(DISTINCT line) FROM daybook_live"), 1)
	}},
	{"a run that waits under the old name takes in what comes, where windows coalesce", func(k *kit) {
		coalesce := func(j *daybook.Job) { j.Missed = daybook.Coalesce }
		k.run(Job("renew", coalesce), "2026-03-01")
		j := Job("charge", renamed("renew"), coalesce)
		st := k.take("charge", true, daybook.Revision{Job: j})
		k.now = k.now.AddDate(0, 0, 1)
		p := k.plan(j, 1, 2, 0)
		p.From = st.Cursor
		k.planned(p)
		equal(k, "covered by", k.find("charge:2026-03-03").CoveredBy, "renew:2026-03-01")
		equal(k, "cover", k.find("renew:2026-03-01").Cover.End, Day("2026-03-03").End)
	}},
	{"a further effect counts those of the old name", func(k *kit) {
		old := Job("renew", Once, allow)
		k.run(old, "2026-03-01")
		two := daybook.NewRun(old, 1, Day("2026-03-01"), 2, "", k.now)
		two.Due, two.NotBefore = k.now, k.now
		k.ask(daybook.Ask{Key: two.Key, Source: daybook.SourceManual}, two)
		k.rename(allow)
		n, err := k.s.HighestN(k.ctx, "charge", "2026-03-01", "")
		k.ok(err)
		equal(k, "highest", n, 2)
	}},
	{"a window that the change leaves out and that the old name did is no second row", func(k *kit) {
		old := Job("renew", Once)
		k.run(old, "2026-03-01")
		j := Job("charge", Once, renamed("renew"))
		k.take("charge", true, daybook.Revision{Job: j, Left: []daybook.Window{Day("2026-03-01"), Day("2026-03-02")}})
		equal(k, "rows", k.number("SELECT count(*) FROM daybook_runs WHERE job = 'charge'"), 1)
		equal(k, "left out", k.find("charge:2026-03-02").Reason, daybook.ReasonScheduleChanged)
		equal(k, "done", k.find("renew:2026-03-01").State, daybook.Scheduled)
	}},
	{"a paused job stays paused under its new name", func(k *kit) {
		k.know(Job("renew", Once))
		_, err := k.s.Pause(k.ctx, "renew", k.act("pause"))
		k.ok(err)
		k.now = k.now.Add(time.Hour)
		_, st := k.rename()
		equal(k, "paused", st.Paused, true)
		equal(k, "by", st.PausedBy, "ops")
		equal(k, "note", st.PausedNote, "because")
	}},
	{"what once did is carried on by the file", func(k *kit) {
		old := Job("nightly", Once)
		_, err := k.s.Ensure(k.ctx, old, daybook.HomeOnce, k.now)
		k.ok(err)
		r := k.template(old, "2026-03-01")
		r.Home = daybook.HomeOnce
		k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceOnce}, r)
		claimed := k.claim(1, func(c *daybook.Claim) { c.Key, c.Home = r.Key, daybook.HomeOnce })
		k.begin(claimed[0], old)
		k.end(claimed[0], old, daybook.Outcome{Result: daybook.ResultPermanent, Error: "refused"})
		k.now = k.now.Add(time.Hour)
		j := Job("backup", Once, renamed("nightly"))
		st := k.take("backup", true, daybook.Revision{Job: j})
		equal(k, "cursor", st.Cursor, k.now) // nothing planned it until then
		reply, run := k.ask(daybook.Ask{Key: "backup:2026-03-01", Source: daybook.SourceReplay}, nil)
		equal(k, "replayed", reply.Outcome, daybook.Started)
		equal(k, "home", run.Home, "")
		equal(k, "claimed by serve", len(k.claim(9)), 1)
	}},
	{"an application carries on only what is its own", func(k *kit) {
		k.take("renew", false, daybook.Revision{Job: Job("renew"), Home: "shop"})
		_, err := k.s.TakeRevisions(k.ctx, []daybook.Revision{{Job: Job("charge", renamed("renew")), Home: "billing"}}, false, k.now)
		k.code(err, daybook.CodeConflict)
		equal(k, "retired", k.take("renew", false).RetiredAt, time.Time{})
		k.take("charge", false, daybook.Revision{Job: Job("charge", renamed("renew")), Home: "shop"})
		equal(k, "retired", k.take("renew", false).RetiredAt, k.now)
	}},
	{"the revisions of a job begin with those of its old name", func(k *kit) {
		k.know(Job("renew"))
		k.now = k.now.Add(time.Hour)
		k.know(Job("renew", func(j *daybook.Job) { j.Owner = "ann" }))
		k.now = k.now.Add(time.Hour)
		k.take("charge", true, daybook.Revision{Job: Job("charge", renamed("renew"))})
		list, err := k.s.Definitions(k.ctx, "charge", Birth.Add(30*time.Minute))
		k.ok(err)
		var got []string
		for _, d := range list {
			got = append(got, d.Name+" "+d.Since.Sub(Birth).String())
		}
		equal(k, "revisions", slices.Equal(got, []string{"renew 0s", "renew 1h0m0s", "charge 2h0m0s"}), true)
	}},
	{"what a person accepts of a change is kept, once, with the act", func(k *kit) {
		a := daybook.Acceptance{Job: "renew", Old: "1:abc", New: "def", At: k.now, Actor: "ops", Note: "because"}
		for range 2 {
			k.ok(k.s.Accept(k.ctx, a, k.act("accept keys")))
		}
		removed := a
		removed.New = ""
		k.ok(k.s.Accept(k.ctx, removed, k.act("accept keys")))
		list, err := k.s.Acceptances(k.ctx)
		k.ok(err)
		equal(k, "acceptances", len(list), 2)
		equal(k, "the first", list[0] == removed || list[1] == removed, true)
		equal(k, "the other", list[0] == a || list[1] == a, true)
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity WHERE action = 'accept keys'"), 2)
	}},
	{"eight serves take one rename at once while the old name is asked for: each window is one run", func(k *kit) {
		old := Job("renew", Once, allow)
		k.know(old)
		j := Job("charge", Once, allow, renamed("renew"))
		together(16, func(i int) bool {
			if i%2 == 0 {
				if _, err := k.s.TakeRevisions(k.ctx, []daybook.Revision{{Job: j}}, true, k.now); err != nil {
					k.Error(err)
				}
			}
			asked := old
			if i%2 == 0 {
				asked = j
			}
			t := k.template(asked, "2026-03-01")
			_, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: t.Key, Source: daybook.SourceManual, Effects: j.Effects}, t, k.now)
			if code := daybook.CodeOf(err); err != nil && (code != daybook.CodeConflict || i%2 == 0) {
				k.Error(err)
			}
			return true
		})
		equal(k, "runs", k.number("SELECT count(*) FROM daybook_runs"), 1)
		equal(k, "revisions", k.number("SELECT count(*) FROM daybook_revisions"), 2)
	}},
}
