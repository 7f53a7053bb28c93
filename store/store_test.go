package store_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestARunIsClaimedBegunAndDone(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		now := storetest.Birth
		j := storetest.Job("renew", storetest.Once)
		r := storetest.Add(ctx, t, s, j, "2026-03-01", now)
		if r.State != daybook.Scheduled || r.Triggers != 1 {
			t.Fatalf("made %+v", r)
		}
		runs := storetest.Claim(ctx, t, s, 10, now)
		if len(runs) != 1 || runs[0].State != daybook.Running || runs[0].Fence != 1 || runs[0].Attempts != 1 {
			t.Fatalf("claimed %+v", runs)
		}
		r = runs[0]
		e, ok := r.Begin(j.Policy(), now)
		if !ok {
			t.Fatal("may not begin")
		}
		if err := s.Begin(ctx, r, e, now); err != nil {
			t.Fatal(err)
		}
		notices, err := s.Renew(ctx, runs, now.Add(time.Minute), now)
		if err != nil || len(notices) != 0 {
			t.Fatalf("renew: %v %v", notices, err)
		}
		m := r.Next(daybook.Outcome{Result: daybook.ResultDone, Data: json.RawMessage(`{"a":1}`), Counts: map[string]int64{"charges": 20}, Output: daybook.Output{Text: "hello"}}, j.Policy(), now)
		storetest.Apply(ctx, t, s, m)
		r = storetest.Find(ctx, t, s, r.Key)
		if r.State != daybook.Done || string(r.Result) != `{"a":1}` || r.Counts["charges"] != 20 || r.Effect.State != daybook.EffectDone {
			t.Fatalf("ended %+v", r)
		}
		applied, err := s.Apply(ctx, []daybook.Transition{m})
		if err != nil || !applied[0].Stale {
			t.Fatalf("a second report is stale: %v %v", applied, err)
		}
		reply, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Actor: "ops"}, nil, now)
		if err != nil || reply.Outcome != daybook.Reused {
			t.Fatalf("asked again: %+v %v", reply, err)
		}
	})
}

func TestALetterIsOpenedReplayedAndSettled(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		now := storetest.Birth
		j := storetest.Job("renew", storetest.Once, func(j *daybook.Job) { j.Probe.Shell = "exit 2" })
		key := storetest.Add(ctx, t, s, j, "2026-03-01", now).Key
		try := func(o daybook.Outcome) {
			t.Helper()
			r := storetest.Claim(ctx, t, s, 1, now)[0]
			e, ok := r.Begin(j.Policy(), now)
			if !ok {
				t.Fatal("may not begin")
			}
			if err := s.Begin(ctx, r, e, now); err != nil {
				t.Fatal(err)
			}
			storetest.Apply(ctx, t, s, r.Next(o, j.Policy(), now))
		}
		try(daybook.Outcome{Result: daybook.ResultPermanent, Error: "402 declined"})
		r := storetest.Find(ctx, t, s, key)
		if r.State != daybook.Dead || r.Letter == nil || r.Letter.Kind != daybook.LetterFailed {
			t.Fatalf("dead: %+v", r)
		}
		reply, _, err := s.Trigger(ctx, daybook.Ask{Key: key, Source: daybook.SourceManual, Actor: "ops"}, nil, now)
		if err != nil || reply.Outcome != daybook.Refused {
			t.Fatalf("%+v %v", reply, err)
		}
		reply, r, err = s.Trigger(ctx, daybook.Ask{Key: key, Source: daybook.SourceReplay, Actor: "ops"}, nil, now)
		if err != nil || reply.Outcome != daybook.Started || r.State != daybook.Retryable {
			t.Fatalf("%+v %+v %v", reply, r, err)
		}
		if r.WireKey() != string(key)+"#run@2" {
			t.Fatalf("wire key %s", r.WireKey())
		}
		try(daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"})
		r = storetest.Claim(ctx, t, s, 1, now)[0]
		if r.State != daybook.Retryable || r.Asking == "" || r.Reason != daybook.ReasonSettling {
			t.Fatalf("question: %+v", r)
		}
		storetest.Apply(ctx, t, s, r.Settle([]daybook.Finding{{Answer: daybook.CannotTell, WireKey: r.WireKey()}}, j.Policy(), now, now))
		r = storetest.Find(ctx, t, s, key)
		if r.State != daybook.Dead || r.Letter.Kind != daybook.LetterUnknown {
			t.Fatalf("unknown: %+v %+v", r, r.Letter)
		}
		m, err := r.Resolve(daybook.AsDone, j.Policy(), "ops", "saw it", now)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Apply(ctx, t, s, m)
		r = storetest.Find(ctx, t, s, key)
		if r.State != daybook.Done || r.Letter.State != daybook.LetterSettled {
			t.Fatalf("settled: %+v", r)
		}
		open, err := s.Alerts(ctx, true, 0)
		if err != nil || len(open) != 0 {
			t.Fatalf("alerts %+v %v", open, err)
		}
	})
}

func TestAPlanIsWrittenOnce(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		now := storetest.Birth
		j := storetest.Job("report", func(j *daybook.Job) { j.Missed = daybook.Coalesce })
		if _, err := s.TakeRevisions(ctx, []daybook.Revision{{Job: j}}, true, now); err != nil {
			t.Fatal(err)
		}
		to := now.AddDate(0, 0, 3)
		plan := &daybook.Plan{Job: j, Revision: 1, Source: daybook.SourceSchedule, From: now, To: to}
		for _, d := range []string{"2026-03-01", "2026-03-02", "2026-03-03"} {
			w := storetest.Day(d)
			plan.Windows = append(plan.Windows, daybook.PlannedWindow{Window: w, Fires: []string{d + "T02:00"}, FireAt: w.Start.Add(2 * time.Hour), Last: w.Start.Add(2 * time.Hour), Missed: d != "2026-03-03"})
		}
		for i, stale := range []bool{false, true} {
			done, err := s.Plan(ctx, []*daybook.Plan{plan}, to)
			if err != nil || done[0].Stale != stale {
				t.Fatalf("plan %d: %+v %v", i, done, err)
			}
		}
		runs, err := s.Runs(ctx, daybook.Filter{Job: "report"})
		if err != nil || len(runs) != 3 || runs[0].State != daybook.Scheduled || runs[1].State != daybook.Coalesced || runs[1].CoveredBy != runs[0].Key {
			t.Fatalf("%+v %v", runs, err)
		}
		if !runs[0].Cover.Start.Equal(storetest.Day("2026-03-01").Start) {
			t.Fatalf("bounds %+v", runs[0].Cover)
		}
		n, err := s.Prune(ctx, daybook.Retention{Log: time.Hour}, to.AddDate(0, 1, 0), 100, false)
		if err != nil || n != 2 {
			t.Fatalf("pruned %d %v", n, err)
		}
		for _, read := range []func() error{
			func() error { _, err := s.Counts(ctx); return err },
			func() error { _, err := s.Info(ctx); return err },
			func() error { _, err := s.LastGood(ctx); return err },
			func() error { _, err := s.HighestN(ctx, "report", "2026-03-01", ""); return err },
			func() error { _, err := s.Unaccounted(ctx, "report", plan.Windows); return err },
			func() error { _, err := s.NextDue(ctx, ""); return err },
			func() error { _, err := s.Definitions(ctx, "report", now); return err },
			func() error { return s.Fault(ctx, "report", daybook.P1, "broken", now) },
			func() error { return s.Beat(ctx, daybook.Node{ID: "n1", StartedAt: now}, now) },
			func() error { _, err := s.Nodes(ctx); return err },
			func() error { _, err := s.ClockOffset(ctx, time.Now); return err },
			func() error {
				_, err := s.Pause(ctx, "report", daybook.Activity{At: now, Actor: "ops", Action: "pause"})
				return err
			},
			func() error {
				_, err := s.Hold(ctx, daybook.Hold{Name: "clock", Since: now, Detail: "leapt"})
				return err
			},
			func() error { _, err := s.EndHold(ctx, "clock", daybook.Activity{At: now}); return err },
			func() error { _, err := s.Activities(ctx, time.Time{}, "", 0); return err },
			func() error { _, err := s.Checkpoint(ctx); return err },
			func() error { _, err := s.Expired(ctx, to, to, 10); return err },
		} {
			if err := read(); err != nil {
				t.Error(err)
			}
		}
	})
}
