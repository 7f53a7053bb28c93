package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

// dies adds a window of a job and lets it end as a dead letter of kind failed.
func (k *kit) dies(j *daybook.Job, date string) *daybook.Run {
	k.Helper()
	k.run(j, date)
	r := k.try(j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "402 declined"})
	if r.State != daybook.Dead || r.Letter == nil || r.Letter.State != daybook.LetterOpen {
		k.Fatalf("%s is %s with letter %+v", r.Key, r.State, r.Letter)
	}
	return r
}

// together does n things at once and returns how many of them say that they were first.
func together(n int, do func(i int) bool) int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	first := 0
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			if do(i) {
				mu.Lock()
				first++
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	return first
}

var letterCases = []example{
	{"a dead letter and its alert are one transaction with the end of the run", func(k *kit) {
		j := Job("renew", Once)
		r := k.dies(j, "2026-03-01")
		equal(k, "kind", r.Letter.Kind, daybook.LetterFailed)
		equal(k, "error", r.Letter.Error, "402 declined")
		equal(k, "opened", r.Letter.OpenedAt, k.now)
		alerts, err := k.s.Alerts(k.ctx, true, 0)
		k.ok(err)
		equal(k, "alerts", len(alerts), 1)
		equal(k, "alert", alerts[0].Kind, daybook.AlertDeadLetter)
		equal(k, "key", alerts[0].Key, r.Key)
		equal(k, "error", alerts[0].LastError, "402 declined")
	}},
	{"a run has at most one open letter", func(k *kit) {
		r := k.dies(Job("report"), "2026-03-01")
		_, err := k.raw.ExecContext(k.ctx, "INSERT INTO daybook_letters (id, key, job, priority, kind, state, error, opened_us) VALUES ('x', '"+
			string(r.Key)+"', 'report', 'P1', 'failed', 'open', 'e', 1)")
		if err == nil {
			k.Error("a second open letter was let in")
		}
	}},
	{"eight people replay at once: it happens once", func(k *kit) {
		r := k.dies(Job("report"), "2026-03-01")
		started := together(8, func(int) bool {
			reply, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceReplay, Actor: "ops"}, nil, k.now)
			if err != nil {
				k.Error(err)
			}
			return reply.Outcome == daybook.Started
		})
		equal(k, "replays", started, 1)
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity WHERE action = 'replay'"), 1)
		equal(k, "letter", k.find(r.Key).Letter.State, daybook.LetterReplayed)
		equal(k, "live", k.number("SELECT count(*) FROM daybook_live"), 1)
		equal(k, "triggers", k.find(r.Key).Triggers, 9)
	}},
	{"a letter that is opened by a clock that is behind is the newest all the same", func(k *kit) {
		j := Job("report")
		r := k.dies(j, "2026-03-01")
		reply, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceReplay, Actor: "ops"}, nil, k.now)
		k.ok(err)
		equal(k, "replay", reply.Outcome, daybook.Started)
		try := k.claim(1)[0]
		k.now = k.now.Add(-time.Second) // another node reports
		k.begin(try, j)
		again := k.end(try, j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "402 declined"})
		equal(k, "letter", again.Letter.State, daybook.LetterOpen)
		equal(k, "is another", again.Letter.ID != r.Letter.ID, true)
		m, err := again.Dismiss("ops", "seen", k.now)
		k.ok(err)
		applied, err := k.s.Apply(k.ctx, []daybook.Transition{m})
		k.ok(err)
		equal(k, "stale", applied[0].Stale, false)
		equal(k, "letter", k.find(r.Key).Letter.State, daybook.LetterDismissed)
	}},
	{"eight people dismiss at once: the first has a name, the others find it stale", func(k *kit) {
		r := k.dies(Job("report"), "2026-03-01")
		first := together(8, func(i int) bool {
			m, err := r.Dismiss(string(rune('a'+i)), "seen", k.now)
			if err != nil {
				k.Error(err)
				return false
			}
			applied, err := k.s.Apply(k.ctx, []daybook.Transition{m})
			if err != nil {
				k.Error(err)
				return false
			}
			return !applied[0].Stale
		})
		equal(k, "dismissed", first, 1)
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity WHERE action = 'dismiss'"), 1)
		l := k.find(r.Key).Letter
		equal(k, "letter", l.State, daybook.LetterDismissed)
		equal(k, "note", l.Note, "seen")
		equal(k, "closed", l.ClosedAt, k.now)
	}},
	{"one dismisses while another undoes: one of the two happens", func(k *kit) {
		for i, first := range []string{"dismiss", "undo"} {
			j := Job("renew", Once)
			k.run(j, fmt.Sprintf("2026-03-0%d", i+1))
			r := k.try(j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "402 declined"})
			done := *r.Effect
			done.State = daybook.EffectDone // as a charge is whose mail is refused
			r.Effect = &done
			dismiss, err := r.Dismiss("ops", "given back by hand", k.now)
			k.ok(err)
			undo, err := r.Undo("ann", "wrong price", k.now)
			k.ok(err)
			both := []daybook.Transition{dismiss, undo}
			if first == "undo" {
				both = []daybook.Transition{undo, dismiss}
			}
			for n, m := range both {
				applied, err := k.s.Apply(k.ctx, []daybook.Transition{m})
				k.ok(err)
				equal(k, first+" first: stale", applied[0].Stale, n == 1)
			}
		}
	}},
	{"one replays while others dismiss: one of the two happens", func(k *kit) {
		for _, date := range []string{"2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"} {
			r := k.dies(Job("report", allow), date)
			done := together(4, func(i int) bool {
				if i%2 == 0 {
					reply, _, err := k.s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceReplay, Actor: "ops"}, nil, k.now)
					if err != nil {
						k.Error(err)
					}
					return reply.Outcome == daybook.Started
				}
				m, err := r.Dismiss("ops", "seen", k.now)
				if err != nil {
					k.Error(err)
					return false
				}
				applied, err := k.s.Apply(k.ctx, []daybook.Transition{m})
				if err != nil {
					k.Error(err)
					return false
				}
				return !applied[0].Stale
			})
			equal(k, "acts", done, 1)
			now := k.find(r.Key)
			if replayed := now.State == daybook.Retryable; replayed != (now.Letter.State == daybook.LetterReplayed) || replayed == (now.Letter.State == daybook.LetterDismissed) {
				k.Errorf("%s is %s, its letter %s", now.Key, now.State, now.Letter.State)
			}
			if now.State.Live() {
				k.try(Job("report", allow), daybook.Outcome{Result: daybook.ResultDone})
			}
		}
	}},
	{"a batch in which one letter was closed by another writes all the rest", func(k *kit) {
		j := Job("report", allow)
		a, b := k.dies(j, "2026-03-01"), k.dies(j, "2026-03-02")
		first, err := a.Dismiss("ann", "", k.now)
		k.ok(err)
		second, err := a.Dismiss("bob", "", k.now)
		k.ok(err)
		other, err := b.Dismiss("bob", "", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, first)
		applied, err := k.s.Apply(k.ctx, []daybook.Transition{second, other})
		k.ok(err)
		equal(k, "stale", applied[0].Stale, true)
		equal(k, "stale", applied[1].Stale, false)
		equal(k, "closed by", k.find(a.Key).Letter.ClosedBy, "ann")
	}},
	{"a replay that fails again opens a new letter; the old one is kept", func(k *kit) {
		j := Job("report")
		r := k.dies(j, "2026-03-01")
		k.now = k.now.Add(time.Minute)
		k.ask(daybook.Ask{Key: r.Key, Source: daybook.SourceReplay, Actor: "ops"}, nil)
		k.try(j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "402 again"})
		letters, err := k.s.LettersOf(k.ctx, r.Key)
		k.ok(err)
		equal(k, "letters", len(letters), 2)
		equal(k, "first", letters[0].State, daybook.LetterReplayed)
		equal(k, "second", letters[1].State, daybook.LetterOpen)
		equal(k, "newest", k.find(r.Key).Letter.ID, letters[1].ID)
		alerts, err := k.s.Alerts(k.ctx, true, 0)
		k.ok(err)
		equal(k, "open alerts", len(alerts), 1)
		equal(k, "its text", alerts[0].LastError, "402 again")
	}},
	{"a dismissed letter is opened again, with its alert", func(k *kit) {
		j := Job("report")
		r := k.dies(j, "2026-03-01")
		m, err := r.Dismiss("ops", "seen", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		open, err := k.s.Letters(k.ctx, true, 0)
		k.ok(err)
		equal(k, "open letters", len(open), 0)
		m, err = k.find(r.Key).Reopen("ops", "after all", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		k.stale(m)
		l := k.find(r.Key).Letter
		equal(k, "letter", l.ID, r.Letter.ID)
		equal(k, "state", l.State, daybook.LetterOpen)
		equal(k, "closed", l.ClosedAt, time.Time{})
		equal(k, "alerts", k.number("SELECT count(*) FROM daybook_alerts WHERE closed_us = 0"), 1)
	}},
	{"a person lets the probe be asked again: the answer settles the letter that stood open", func(k *kit) {
		j := Job("renew", Once, probed)
		k.run(j, "2026-03-01")
		k.try(j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "exit 1"})
		q := k.one()
		Apply(k.ctx, k, k.s, q.Settle([]daybook.Finding{{Answer: daybook.CannotTell, WireKey: q.WireKey()}}, j.Policy(), k.now, k.now))
		for _, answer := range []daybook.Answer{daybook.CannotTell, daybook.Yes} {
			r := k.find(q.Key)
			equal(k, "state", r.State, daybook.Dead)
			m, err := r.Resolve(daybook.AsAsk, j.Policy(), "ops", "", k.now)
			k.ok(err)
			Apply(k.ctx, k, k.s, m)
			equal(k, "letter while it is asked", k.find(q.Key).Letter.State, daybook.LetterOpen)
			q = k.one()
			Apply(k.ctx, k, k.s, q.Settle([]daybook.Finding{{Answer: answer, WireKey: q.WireKey()}}, j.Policy(), k.now, k.now))
		}
		r := k.find(q.Key)
		equal(k, "state", r.State, daybook.Done)
		equal(k, "letter", r.Letter.State, daybook.LetterSettled)
		equal(k, "letters", k.number("SELECT count(*) FROM daybook_letters"), 1)
		equal(k, "open alerts", k.number("SELECT count(*) FROM daybook_alerts WHERE closed_us = 0"), 0)
	}},
	{"one alert a kind, job and key stands open; a further one renews its text", func(k *kit) {
		for _, text := range []string{"one", "two"} {
			k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertJobLate, "a:1", "a", daybook.P1, text, "", k.now)))
		}
		k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertJobLate, "a:2", "a", daybook.P0, "other key", "", k.now)))
		k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertDeadLetter, "a:1", "a", daybook.P1, "other kind", "", k.now)))
		k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertScheduleFault, "", "a", daybook.P1, "no key", "", k.now)))
		k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertScheduleFault, "", "b", daybook.P1, "no key", "", k.now)))
		alerts, err := k.s.Alerts(k.ctx, true, 0)
		k.ok(err)
		equal(k, "alerts", len(alerts), 5)
		equal(k, "first", alerts[0].Priority, daybook.P0)
		equal(k, "renewed", k.number("SELECT count(*) FROM daybook_alerts WHERE last_error = 'two'"), 1)
		equal(k, "as it was", k.number("SELECT count(*) FROM daybook_alerts WHERE last_error = 'one'"), 0)
	}},
	{"sixteen alerts of one kind and key at once are one", func(k *kit) {
		together(16, func(i int) bool {
			if err := k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertJobLate, "a:1", "a", daybook.P1, string(rune('a'+i)), "", k.now)); err != nil {
				k.Error(err)
			}
			return true
		})
		equal(k, "alerts", k.number("SELECT count(*) FROM daybook_alerts"), 1)
	}},
	{"open letters are listed by priority and age, all of them newest first", func(k *kit) {
		low, high := Job("a", allow), Job("b", allow, p0)
		for _, j := range []*daybook.Job{low, high, low, high} {
			k.now = k.now.Add(time.Second)
			k.dies(j, k.now.AddDate(0, 0, int(k.now.Unix()%50)).Format(time.DateOnly))
		}
		open, err := k.s.Letters(k.ctx, true, 0)
		k.ok(err)
		equal(k, "open", len(open), 4)
		equal(k, "first", open[0].Priority, daybook.P0)
		equal(k, "older first", open[0].OpenedAt.Before(open[1].OpenedAt), true)
		all, err := k.s.Letters(k.ctx, false, 3)
		k.ok(err)
		equal(k, "all, three at most", len(all), 3)
		equal(k, "newest", all[0].OpenedAt, k.now)
	}},
}
