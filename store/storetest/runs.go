package storetest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

var runCases = []example{
	{"a key that is not there is not found", func(k *kit) {
		_, err := k.s.Run(k.ctx, "renew:2026-03-01")
		k.code(err, daybook.CodeNotFound)
	}},
	{"instants come back equal, to the microsecond", func(k *kit) {
		k.now = Birth.Add(123456 * time.Microsecond)
		j := Job("renew")
		k.know(j)
		r := k.template(j, "2026-03-01")
		r.Due = k.now.Add(-7 * time.Microsecond)
		r.NotBefore = k.now.Add(-8 * time.Microsecond)
		r.Window.Start = r.Window.Start.Add(time.Microsecond)
		r.Window.End = r.Window.End.Add(999999 * time.Microsecond)
		r.Cover = daybook.Bounds{Start: r.Window.Start.Add(time.Microsecond), End: r.Window.End.Add(-time.Microsecond)}
		_, got := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r)
		for what, pair := range map[string][2]time.Time{
			"due": {got.Due, r.Due}, "not before": {got.NotBefore, r.NotBefore}, "created": {got.CreatedAt, k.now},
			"start": {got.Window.Start, r.Window.Start}, "end": {got.Window.End, r.Window.End},
			"cover start": {got.Cover.Start, r.Cover.Start}, "cover end": {got.Cover.End, r.Cover.End},
		} {
			if !pair[0].Equal(pair[1]) {
				k.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
			}
			if pair[0].Location() != time.UTC {
				k.Errorf("%s is not in UTC", what)
			}
		}
		equal(k, "an instant that is not set", got.EndedAt, time.Time{})
	}},
	{"everything a run is made with comes back", func(k *kit) {
		j := Job("renew", Once)
		k.know(j)
		r := daybook.NewRun(j, 1, Day("2026-03-01"), 2, "sub_%20x", k.now)
		r.Parent, r.TZData, r.Fire, r.Home, r.Lane, r.Serial = "renew:2026-03-01", "2026a", "2026-03-01T02:00", daybook.HomeOnce, daybook.LaneBackfill, "user:1"
		r.Due = k.now
		payload := json.RawMessage(`{"b": 1, "ä": "☃"}`)
		reply, got := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceAPI, Actor: "shop", Payload: payload}, r)
		equal(k, "outcome", reply.Outcome, daybook.Started)
		equal(k, "key", got.Key, "renew:2026-03-01~2/sub_%20x")
		equal(k, "subject", got.Subject, "sub_%20x")
		equal(k, "parent", got.Parent, r.Parent)
		equal(k, "payload", string(got.Input), string(payload))
		equal(k, "first source", got.FirstSource, daybook.SourceAPI)
		equal(k, "first actor", got.FirstActor, "shop")
		equal(k, "triggers", got.Triggers, 1)
		equal(k, "zone data", got.TZData, "2026a")
		equal(k, "home", got.Home, daybook.HomeOnce)
		equal(k, "lane", got.Lane, daybook.LaneBackfill)
		equal(k, "serial", got.Serial, "user:1")
		equal(k, "line", got.Line, "renew")
		equal(k, "priority", got.Priority, daybook.P0)
		equal(k, "effects", got.Effects, daybook.Once)
		hash, err := daybook.HashPayload(payload)
		k.ok(err)
		equal(k, "fingerprint", got.PayloadHash, hash)
	}},
	{"keys are listed in the order of their bytes", func(k *kit) {
		j := Job("renew", func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
		k.know(j)
		// A language would put a beside A, and leave out what is no letter.
		subjects := []string{"a", "B", "A", "b", "10", "9", "a.b", "a@b", "a_b", "a-b", "ab", "aB", "a+b", "a=b", "%C3%A4", "Z", "z", "~"}
		var want []string
		for i, s := range subjects {
			r := daybook.NewRun(j, 1, Day("2026-03-01"), 1+i%3, s, k.now)
			if s == "~" { // stands in no subject: the key of a second effect
				r = daybook.NewRun(j, 1, Day("2026-03-01"), 12, "", k.now)
			}
			r.Due = k.now
			k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r)
			want = append(want, string(r.Key))
		}
		slices.Sort(want)
		runs, err := k.s.Runs(k.ctx, daybook.Filter{Prefix: "renew:"})
		k.ok(err)
		var got []string
		for _, r := range runs {
			got = append(got, string(r.Key))
		}
		if !slices.Equal(got, want) {
			k.Errorf("listed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		page, err := k.s.Runs(k.ctx, daybook.Filter{Prefix: "renew:", After: daybook.Key(want[4]), Limit: 3})
		k.ok(err)
		if len(page) != 3 || string(page[0].Key) != want[5] || string(page[2].Key) != want[7] {
			k.Errorf("behind %s: %v", want[4], keys(page))
		}
	}},
	{"lists are narrowed by job, state, prefix and dates; a job's newest windows come first", func(k *kit) {
		a, b := Job("a"), Job("ab")
		for _, d := range []string{"2026-03-01", "2026-03-02", "2026-03-03"} {
			k.run(a, d)
			k.run(b, d)
		}
		k.try(a, daybook.Outcome{Result: daybook.ResultDone}) // of a or ab: whichever was due first
		for _, c := range []struct {
			f    daybook.Filter
			want int
		}{
			{daybook.Filter{}, 6},
			{daybook.Filter{Job: "a"}, 3},
			{daybook.Filter{Job: "a", Prefix: "a:2026-03-02"}, 1},
			{daybook.Filter{Job: "ab", From: "2026-03-02"}, 2},
			{daybook.Filter{From: "2026-03-02", To: "2026-03-02"}, 2},
			{daybook.Filter{State: daybook.Done}, 1},
			{daybook.Filter{State: daybook.Scheduled}, 5},
			{daybook.Filter{State: daybook.Running}, 0},
			{daybook.Filter{State: daybook.Scheduled, Job: "ab", From: "2026-03-03"}, 1},
			{daybook.Filter{State: daybook.Scheduled, To: "2026-03-03", Limit: 3}, 3},
			{daybook.Filter{State: daybook.Scheduled, Prefix: "ab:2026-03-0", After: "ab:2026-03-02"}, 1},
			{daybook.Filter{State: daybook.Scheduled, Job: "nobody"}, 0},
			{daybook.Filter{Prefix: "a:"}, 3},
			{daybook.Filter{Prefix: "a"}, 6},
			{daybook.Filter{Limit: 2}, 2},
			{daybook.Filter{Job: "nobody"}, 0},
		} {
			runs, err := k.s.Runs(k.ctx, c.f)
			k.ok(err)
			if len(runs) != c.want {
				k.Errorf("%+v: %v, want %d", c.f, keys(runs), c.want)
			}
		}
		runs, err := k.s.Runs(k.ctx, daybook.Filter{Job: "a"})
		k.ok(err)
		equal(k, "newest", runs[0].Key, "a:2026-03-03")
		runs, err = k.s.Runs(k.ctx, daybook.Filter{Job: "ab", State: daybook.Scheduled})
		k.ok(err)
		equal(k, "newest that is live", runs[0].Key, "ab:2026-03-03")
	}},
	{"text that is no text is stored clean, and ends the run (H49)", func(k *kit) {
		j := Job("report")
		k.run(j, "2026-03-01")
		bad := "a\x00b\xff☃"
		r := k.try(j, daybook.Outcome{Result: daybook.ResultDone, Detail: bad, Error: bad, Data: json.RawMessage("\"" + bad + "\""), Output: daybook.Output{Text: bad}})
		equal(k, "state", r.State, daybook.Done)
		o, err := k.s.Output(k.ctx, r.Key, 1)
		k.ok(err)
		equal(k, "output", o.Text, "a\uFFFDb\uFFFD☃")
		equal(k, "result", string(r.Result), "\"a\uFFFDb\uFFFD☃\"")
		attempts, err := k.s.Attempts(k.ctx, r.Key)
		k.ok(err)
		equal(k, "detail", attempts[0].Detail, "a\uFFFDb\uFFFD☃")
	}},
	{"names and notes are data, never SQL (H48)", func(k *kit) {
		j := Job("renew")
		k.know(j)
		evil := `a"; DROP TABLE daybook_runs; --' $1 ?1 /*rows t*/ \x00` + "\x00"
		r := k.template(j, "2026-03-01")
		_, got := k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Actor: evil, Note: evil}, r)
		if !strings.HasPrefix(got.FirstActor, `a"; DROP TABLE`) {
			k.Errorf("actor %q", got.FirstActor)
		}
		for _, f := range []daybook.Filter{{Job: evil[:40]}, {Prefix: evil[:40]}, {From: evil[:40], To: evil[:40]}, {State: daybook.State(evil[:40])}, {After: daybook.Key(evil[:40])}} {
			if _, err := k.s.Runs(k.ctx, f); err != nil {
				k.Errorf("%+v: %v", f, err)
			}
		}
		_, err := k.s.Activities(k.ctx, time.Time{}, evil[:40], 0)
		k.ok(err)
		triggers, err := k.s.Triggers(k.ctx, r.Key)
		k.ok(err)
		if len(triggers) != 1 || !strings.Contains(triggers[0].Note, "$1 ?1 /*rows t*/") {
			k.Errorf("triggers %+v", triggers)
		}
	}},
	{"the highest further effect of a window is found, whatever stands beside it", func(k *kit) {
		j := Job("renew", func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
		k.know(j)
		highest := func(subject string, want int) {
			k.Helper()
			n, err := k.s.HighestN(k.ctx, "renew", "2026-03-01", subject)
			k.ok(err)
			equal(k, "highest for "+subject, n, want)
		}
		add := func(date string, n int, subject string) {
			r := daybook.NewRun(j, 1, Day(date), n, subject, k.now)
			r.Due = k.now
			k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceManual}, r)
		}
		highest("", 0)
		add("2026-03-01", 1, "")
		highest("", 1)
		add("2026-03-01", 9, "")
		add("2026-03-01", 10, "")
		add("2026-03-02", 11, "")
		add("2026-03-01", 1, "a")
		add("2026-03-01", 12, "a")
		add("2026-03-01", 13, "ab")
		highest("", 10)
		highest("a", 12)
		highest("b", 0)
	}},
	{"the last good window is the newest that is done, not the one that ended last", func(k *kit) {
		j := Job("report", func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
		for _, d := range []string{"2026-03-03", "2026-03-02", "2026-03-04"} {
			k.run(j, d)
			k.now = k.now.Add(time.Minute)
			o := daybook.Outcome{Result: daybook.ResultDone}
			if d == "2026-03-04" {
				o = daybook.Outcome{Result: daybook.ResultPermanent, Error: "402"}
			}
			k.try(j, o)
		}
		good, err := k.s.LastGood(k.ctx)
		k.ok(err)
		equal(k, "last good", good["report"].Key, "report:2026-03-03")
		equal(k, "when", good["report"].EndedAt, Birth.Add(time.Minute))
	}},
	{"the figures of the ledger are counted", func(k *kit) {
		j := Job("renew", Once)
		free := Job("report")
		k.run(free, "2026-03-01")
		k.run(j, "2026-03-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"}) // P0 first
		c, err := k.s.Counts(k.ctx)
		k.ok(err)
		equal(k, "scheduled", c.Live[daybook.Scheduled], 1)
		equal(k, "letters", c.OpenLetters, 1)
		equal(k, "unknown", c.Unknown, 1)
		equal(k, "oldest due", c.OldestDue, k.now)
	}},
}
