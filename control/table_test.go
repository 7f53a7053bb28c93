package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/golden"
	"github.com/daybook-run/daybook/internal/lang"
)

// TestTableOfTriggersAndStates drives every cell of the table that people reach, on a real ledger: each state is made as
// it comes about, then asked for by each door.
func TestTableOfTriggersAndStates(t *testing.T) {
	type cell struct {
		outcome daybook.TriggerOutcome
		exit    int
		http    int
		because string
	}
	started := func(because string) cell { return cell{daybook.Started, 0, 201, because} }
	joined := func(because string) cell { return cell{daybook.Joined, 0, 202, because} }
	reused := func(exit int, because string) cell { return cell{daybook.Reused, exit, 200, because} }
	refused := func(because string) cell { return cell{daybook.Refused, 4, 409, because} }
	noKey := cell{daybook.Refused, 5, 404, daybook.BecauseNoKey}
	otherPayload := cell{daybook.Refused, 4, 422, daybook.BecausePayload}
	once := func(c cell) cell { // has exit codes of its own
		switch c.outcome {
		case daybook.Joined:
			c.exit = 75
		case daybook.Refused:
			c.exit = 125
		}
		return c
	}

	rows := []struct {
		name   string
		job    string
		make   func(b *bench, k daybook.Key)
		manual cell
		again  cell // --again
		skip   cell // --run-skipped
		other  cell // with a payload it was not made with
		replay cell
	}{
		{
			name: "new", job: "mail", make: func(*bench, daybook.Key) {},
			manual: started(daybook.BecauseNew), again: started(daybook.BecauseNew), skip: started(daybook.BecauseNew),
			other: started(daybook.BecauseNew), replay: noKey,
		},
		{
			name: "new, job paused", job: "resting", make: func(*bench, daybook.Key) {},
			manual: refused(daybook.BecausePaused), again: refused(daybook.BecausePaused), skip: refused(daybook.BecausePaused),
			other: refused(daybook.BecausePaused), replay: noKey,
		},
		{
			name: "scheduled", job: "mail", make: (*bench).make,
			manual: joined(daybook.BecauseScheduled), again: joined(daybook.BecauseScheduled), skip: joined(daybook.BecauseScheduled),
			other: otherPayload, replay: joined(daybook.BecauseScheduled),
		},
		{
			name: "running", job: "mail", make: func(b *bench, k daybook.Key) { b.make(k); b.claim(k) },
			manual: joined(daybook.BecauseRunning), again: joined(daybook.BecauseRunning), skip: joined(daybook.BecauseRunning),
			other: otherPayload, replay: joined(daybook.BecauseRunning),
		},
		{
			name: "retryable, on the ladder", job: "mail", make: func(b *bench, k daybook.Key) {
				b.make(k)
				b.end(k, daybook.Outcome{Result: daybook.ResultNotDone, Error: "busy"})
			},
			manual: joined(daybook.BecauseRetryable), again: joined(daybook.BecauseRetryable), skip: joined(daybook.BecauseRetryable),
			other: otherPayload, replay: joined(daybook.BecauseRetryable),
		},
		{
			name: "retryable, settling", job: "asked", make: func(b *bench, k daybook.Key) { b.make(k); b.end(k, daybook.Outcome{Result: daybook.ResultUnknown}) },
			manual: joined(daybook.BecauseRetryable), again: joined(daybook.BecauseRetryable), skip: joined(daybook.BecauseRetryable),
			other: otherPayload, replay: joined(daybook.BecauseRetryable),
		},
		{
			name: "done, repeatable", job: "mail", make: (*bench).done,
			manual: reused(0, daybook.BecauseDone), again: started(daybook.BecauseAgain), skip: reused(0, daybook.BecauseDone),
			other: otherPayload, replay: reused(0, daybook.BecauseDone),
		},
		{
			name: "done, once", job: "renew", make: (*bench).done,
			manual: reused(0, daybook.BecauseDone), again: refused(daybook.BecauseOnce), skip: reused(0, daybook.BecauseDone),
			other: otherPayload, replay: reused(0, daybook.BecauseDone),
		},
		{
			name: "done and undone", job: "renew", make: func(b *bench, k daybook.Key) {
				b.done(k)
				b.sql(fmt.Sprintf("UPDATE daybook_runs SET reason = 'undone' WHERE key = '%s'", k))
			},
			manual: reused(1, daybook.BecauseFinal), again: refused(daybook.BecauseFinal), skip: reused(1, daybook.BecauseFinal),
			other: otherPayload, replay: refused(daybook.BecauseFinal),
		},
		{
			name: "being undone", job: "renew", make: func(b *bench, k daybook.Key) {
				b.dead(k)
				b.sql(fmt.Sprintf("UPDATE daybook_runs SET reason = 'undoing' WHERE key = '%s'", k))
			},
			manual: refused(daybook.BecauseUndoing), again: refused(daybook.BecauseUndoing), skip: refused(daybook.BecauseUndoing),
			other: otherPayload, replay: refused(daybook.BecauseUndoing),
		},
		{
			name: "dead, failed", job: "renew", make: (*bench).dead,
			manual: refused(daybook.BecauseLetter), again: refused(daybook.BecauseLetter), skip: refused(daybook.BecauseLetter),
			other: otherPayload, replay: started(daybook.BecauseReplayed),
		},
		{
			name: "dead, unknown", job: "renew", make: (*bench).unknown,
			manual: refused(daybook.BecauseUnknown), again: refused(daybook.BecauseUnknown), skip: refused(daybook.BecauseUnknown),
			other: otherPayload, replay: refused(daybook.BecauseUnknown),
		},
		{
			name: "dead, dismissed", job: "renew", make: (*bench).dismissed,
			manual: reused(1, daybook.BecauseDismissed), again: reused(1, daybook.BecauseDismissed), skip: reused(1, daybook.BecauseDismissed),
			other: otherPayload, replay: refused(daybook.BecauseDismissed),
		},
		{
			name: "dead, compensated", job: "renew", make: func(b *bench, k daybook.Key) {
				b.dismissed(k)
				b.sql(fmt.Sprintf("UPDATE daybook_letters SET state = 'compensated' WHERE key = '%s'", k))
			},
			manual: reused(1, daybook.BecauseFinal), again: refused(daybook.BecauseFinal), skip: reused(1, daybook.BecauseFinal),
			other: otherPayload, replay: refused(daybook.BecauseFinal),
		},
		{
			name: "skipped, as a row", job: "mail", make: func(b *bench, k daybook.Key) {
				b.make(k)
				b.sql(fmt.Sprintf("UPDATE daybook_runs SET state = 'skipped', reason = 'missed', ended_us = created_us WHERE key = '%s'", k))
				b.sql(fmt.Sprintf("DELETE FROM daybook_live WHERE key = '%s'", k))
			},
			manual: refused(daybook.BecauseSkipped), again: refused(daybook.BecauseSkipped), skip: started(daybook.BecauseRunSkipped),
			other: otherPayload, replay: refused(daybook.BecauseNothingToReplay),
		},
		{
			name: "cancelled", job: "mail", make: func(b *bench, k daybook.Key) {
				b.make(k)
				if _, err := b.Cancel(b.ctx, ops, k, "by mistake"); err != nil {
					b.t.Fatal(err)
				}
			},
			manual: refused(daybook.BecauseCancelled), again: refused(daybook.BecauseCancelled), skip: refused(daybook.BecauseCancelled),
			other: otherPayload, replay: refused(daybook.BecauseCancelled),
		},
	}
	each(t, func(b *bench) {
		b.at(day("2026-03-01"))
		b.job(daybook.Job{Name: "mail", Schedule: "0 2 * * *", Window: daybook.Day, Overlap: daybook.OverlapAllow})
		b.job(daybook.Job{Name: "resting", Schedule: "0 2 * * *", Window: daybook.Day})
		for _, name := range []string{"renew", "asked"} {
			j := daybook.Job{Name: name, Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Overlap: daybook.OverlapAllow}
			if name == "asked" {
				j.Probe = daybook.Command{Shell: "true"}
			}
			b.job(j)
		}
		if _, err := b.Pause(b.ctx, ops, "resting", "holidays"); err != nil {
			b.t.Fatal(err)
		}
		b.at(utc("2026-12-31T23:00:00"))
		n := 0
		said := map[string]*strings.Builder{lang.English: {}, lang.Chinese: {}}
		for _, row := range rows {
			for _, door := range []struct {
				name string
				want cell
				ask  func(k daybook.Key, label string) (control.Answer, error)
			}{
				{"manual", row.manual, func(k daybook.Key, label string) (control.Answer, error) {
					return b.Trigger(b.ctx, ops, control.Request{Job: row.job, Window: label})
				}},
				{"api", row.manual, func(k daybook.Key, label string) (control.Answer, error) {
					return b.Trigger(b.ctx, control.Person{Name: "shop", Source: daybook.SourceAPI}, control.Request{Job: row.job, Date: label})
				}},
				{"once", once(row.manual), func(k daybook.Key, label string) (control.Answer, error) {
					return b.Trigger(b.ctx, ops, control.Request{Job: row.job, Date: label, Source: daybook.SourceOnce})
				}},
				{"again", row.again, func(k daybook.Key, label string) (control.Answer, error) {
					return b.Trigger(b.ctx, ops, control.Request{Job: row.job, Window: label, Again: true})
				}},
				{"run skipped", row.skip, func(k daybook.Key, label string) (control.Answer, error) {
					return b.Trigger(b.ctx, ops, control.Request{Job: row.job, Window: label, RunSkipped: true})
				}},
				{"other payload", row.other, func(k daybook.Key, label string) (control.Answer, error) {
					return b.Trigger(b.ctx, ops, control.Request{Job: row.job, Window: label, Payload: json.RawMessage(`{"a":1}`)})
				}},
				{"replay", row.replay, func(k daybook.Key, label string) (control.Answer, error) {
					all, err := b.Replay(b.ctx, ops, []daybook.Key{k, k}, "card changed")
					if err != nil || len(all) != 1 {
						return control.Answer{}, fmt.Errorf("%d answers: %w", len(all), err)
					}
					return all[0], nil
				}},
			} {
				if !b.lite && (door.name == "api" || door.name == "once") {
					continue // they differ in the table only, which has no database
				}
				label := day("2026-03-01").AddDate(0, 0, n).Format(time.DateOnly)
				n++
				k := daybook.Key(row.job + ":" + label)
				row.make(b, k)
				triggers, _ := b.s.Triggers(b.ctx, k)
				if door.name == "manual" {
					foreseen, err := b.Preview(b.ctx, ops, control.Request{Job: row.job, Window: label})
					if err != nil || foreseen.Outcome != door.want.outcome || foreseen.Because != door.want.because {
						b.t.Errorf("%s, previewed: %s %s %v", row.name, foreseen.Outcome, foreseen.Because, err)
					}
				}
				a, err := door.ask(k, label)
				if err != nil {
					b.t.Errorf("%s by %s: %v", row.name, door.name, err)
					continue
				}
				if got := (cell{a.Outcome, a.Exit, a.HTTP, a.Because}); got != door.want {
					b.t.Errorf("%s by %s: %v, want %v (%s)", row.name, door.name, got, door.want, a.Line())
				}
				for l, all := range said {
					p := lang.For(l)
					fmt.Fprintf(all, "%s, by %s\n  %s\n", row.name, door.name, p.Say(a.Text()))
					if do := a.Do(); !do.IsZero() {
						fmt.Fprintf(all, "  → %s\n", p.Say(do))
					}
				}
				if a.Key != k {
					b.t.Errorf("%s by %s: key %s, want %s", row.name, door.name, a.Key, k)
				}
				if (a.Err() != nil) != (a.Outcome == daybook.Refused) {
					b.t.Errorf("%s by %s: Err is %v", row.name, door.name, a.Err())
				}
				after, err := b.s.Triggers(b.ctx, k)
				if err != nil || len(after) != len(triggers)+1 {
					b.t.Errorf("%s by %s: %d triggers, then %d: each knock is recorded", row.name, door.name, len(triggers), len(after))
				} else if last := after[len(after)-1]; last.Outcome != a.Outcome || last.Actor == "" {
					b.t.Errorf("%s by %s: recorded %+v", row.name, door.name, last)
				}
			}
		}
		if b.lite { // the other has fewer doors
			golden.Equal(b.t, "testdata/answers.txt", said[lang.English].String())
			golden.Equal(b.t, "testdata/answers.zh-CN.txt", said[lang.Chinese].String())
		}
	})
}

// make makes a key, by hand.
func (b *bench) make(k daybook.Key) {
	b.t.Helper()
	a := b.trigger(control.Request{Job: k.Job(), Window: k.Parts().Window})
	if a.Outcome != daybook.Started || a.Key != k {
		b.t.Fatalf("make %s: %s", k, a.Line())
	}
}

func (b *bench) done(k daybook.Key) {
	b.t.Helper()
	b.make(k)
	b.end(k, daybook.Outcome{Result: daybook.ResultDone, Counts: map[string]int64{"charges": 20}})
}

func (b *bench) dead(k daybook.Key) {
	b.t.Helper()
	b.make(k)
	b.end(k, daybook.Outcome{Result: daybook.ResultPermanent, Error: "card declined"})
}

func (b *bench) unknown(k daybook.Key) {
	b.t.Helper()
	b.make(k)
	b.end(k, daybook.Outcome{Result: daybook.ResultUnknown, Error: "cut off"})
}

func (b *bench) dismissed(k daybook.Key) {
	b.t.Helper()
	b.dead(k)
	if _, err := b.Dismiss(b.ctx, ops, k, "customer left"); err != nil {
		b.t.Fatal(err)
	}
}

func TestAWindowThatIsNotOpenIsRefusedUnlessEarlyWithAReason(t *testing.T) {
	each(t, func(b *bench) {
		b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day})
		b.at(utc("2026-10-26T01:30:00"))
		q := control.Request{Job: "renew", Window: "2026-10-26"}
		a := b.trigger(q)
		if a.Outcome != daybook.Refused || a.Exit != 4 || a.HTTP != 409 || a.Because != daybook.BecauseNotOpen || a.Run != nil {
			t.Fatalf("not open: %+v", a)
		}
		q.Early = true
		if err := b.refusedWith(daybook.CodeInvalid, q); daybook.HintOf(err) == "" {
			t.Error("no hint")
		}
		if all, err := b.Replay(b.ctx, ops, []daybook.Key{"renew:2026-10-26"}, ""); err != nil || all[0].Exit != 5 || all[0].HTTP != 404 {
			t.Errorf("replay of what is not open: %+v %v", all, err)
		}
		q.Note = "the bank closes at noon"
		a = b.trigger(q)
		if a.Outcome != daybook.Started || a.Run.Reason != daybook.ReasonEarly || !a.Run.Due.Equal(b.now) {
			t.Fatalf("early: %+v %+v", a.Reply, a.Run)
		}
		acts, err := b.Activities(b.ctx, time.Time{}, "", 10)
		if err != nil || len(acts) != 1 || acts[0].Action != "trigger early" || acts[0].Note != q.Note {
			t.Errorf("recorded %+v %v", acts, err)
		}
	})
}

func TestCoalescedKeysAreAnsweredAsTheirCover(t *testing.T) {
	each(t, func(b *bench) {
		b.at(day("2026-03-10"))
		j := b.job(daybook.Job{Name: "digest", Schedule: "0 2 * * *", Window: daybook.Day, Missed: daybook.Coalesce})
		b.at(utc("2026-03-13T09:00:00"))
		b.plan(j, b.now, missed("2026-03-11"), missed("2026-03-12"), missed("2026-03-13"))
		const covered, cover = daybook.Key("digest:2026-03-11"), daybook.Key("digest:2026-03-13")
		q := control.Request{Job: "digest", Window: "2026-03-11"}
		a := b.trigger(q)
		if a.Outcome != daybook.Joined || a.Because != daybook.BecauseScheduled || a.Cover == nil || a.Cover.Key != cover {
			t.Fatalf("covered by a scheduled run: %s %+v", a.Line(), a.Reply)
		}
		b.end(cover, daybook.Outcome{Result: daybook.ResultDone})
		if a = b.trigger(q); a.Outcome != daybook.Reused || a.Because != daybook.BecauseDone || a.Exit != 0 {
			t.Errorf("covered by a done run: %s %+v", a.Line(), a.Reply)
		}
		foreseen, err := b.Preview(b.ctx, ops, q)
		if err != nil || foreseen.Reply != a.Reply {
			t.Errorf("previewed %+v %v", foreseen.Reply, err)
		}
		all, err := b.Replay(b.ctx, ops, []daybook.Key{covered}, "")
		if err != nil || all[0].Outcome != daybook.Refused || all[0].Because != daybook.BecauseCovered || all[0].Cover.Key != cover {
			t.Errorf("replayed: %+v %v", all, err)
		}
		q.Payload = json.RawMessage(`{"a":1}`)
		if a = b.trigger(q); a.HTTP != 422 {
			t.Errorf("covered, with another payload: %s %+v", a.Line(), a.Reply)
		}
		q = control.Request{Job: "digest", Window: "2026-03-11", Again: true}
		if a = b.trigger(q); a.Outcome != daybook.Refused || a.Because != daybook.BecauseCovered {
			t.Errorf("again is asked of the cover by its own key: %s", a.Line())
		}
	})
}

func TestASpanOfSkippedWindowsIsMetByItsKeys(t *testing.T) {
	each(t, func(b *bench) {
		b.at(day("2026-03-01"))
		j := b.job(daybook.Job{Name: "cleanup", Schedule: "0 2 * * *", Window: daybook.Day, Missed: daybook.SkipMissed, HasSubjects: true})
		b.at(utc("2026-03-06T09:00:00"))
		b.plan(j, b.now, missed("2026-03-02"), missed("2026-03-03"), missed("2026-03-04"), missed("2026-03-05"))
		q := control.Request{Job: "cleanup", Window: "2026-03-03"}
		a := b.trigger(q)
		if a.Outcome != daybook.Refused || a.Because != daybook.BecauseSkipped || a.Span == nil || a.Span.Count != 4 || a.Run != nil {
			t.Fatalf("in a span: %s %+v", a.Line(), a)
		}
		if foreseen, err := b.Preview(b.ctx, ops, q); err != nil || foreseen.Reply != a.Reply {
			t.Errorf("previewed %+v %v", foreseen.Reply, err)
		}
		all, err := b.Replay(b.ctx, ops, []daybook.Key{"cleanup:2026-03-03"}, "")
		if err != nil || all[0].Because != daybook.BecauseNothingToReplay {
			t.Errorf("replayed: %+v %v", all, err)
		}
		s, err := b.Key(b.ctx, "cleanup:2026-03-03")
		if err != nil || s.Absence != control.AbsentSpan || s.Span == nil || len(s.Triggers) != 2 {
			t.Errorf("story: %+v %v", s, err)
		}
		if s, err = b.Key(b.ctx, "cleanup:2026-03-01"); err != nil || s.Absence != control.AbsentNothing {
			t.Errorf("before the span: %+v %v", s, err)
		}
		q.RunSkipped, q.Note = true, "needed after all"
		if a = b.trigger(q); a.Outcome != daybook.Started || a.Because != daybook.BecauseRunSkipped || a.Run == nil || a.Run.State != daybook.Scheduled {
			t.Errorf("run all the same: %s %+v", a.Line(), a)
		}
		if a = b.trigger(q); a.Outcome != daybook.Joined {
			t.Errorf("and again: %s", a.Line())
		}
		// The neighbour, and a subject of a skipped window, have keys of their own.
		if a = b.trigger(control.Request{Job: "cleanup", Window: "2026-03-06"}); a.Outcome != daybook.Started {
			t.Errorf("behind the span: %s", a.Line())
		}
		if a = b.trigger(control.Request{Job: "cleanup", Window: "2026-03-04", Subject: "a b/ü", Unlisted: true}); a.Key != "cleanup:2026-03-04/a%20b%2F%C3%BC" || a.Outcome != daybook.Started {
			t.Errorf("a subject: %s", a.Line())
		}
	})
}

func TestTheClockHoldHoldsOnceOnlyWork(t *testing.T) {
	each(t, func(b *bench) {
		b.at(day("2026-03-01"))
		b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once})
		b.at(utc("2026-03-02T03:00:00"))
		if _, err := b.s.Hold(b.ctx, daybook.Hold{Name: daybook.HoldClock, Since: b.now, Detail: "leapt by 3 h"}); err != nil {
			t.Fatal(err)
		}
		a := b.trigger(control.Request{Job: "renew"})
		if a.Outcome != daybook.Started || a.Because != string(daybook.ReasonClock) || a.Run.Hold != daybook.ReasonClock {
			t.Fatalf("held: %s %+v", a.Line(), a.Reply)
		}
		if holds, err := b.Holds(b.ctx); err != nil || len(holds) != 1 {
			t.Errorf("holds %v %v", holds, err)
		}
		if err := b.EndHold(b.ctx, ops, "clock", ""); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("no reason: %v", err)
		}
		if err := b.EndHold(b.ctx, ops, "clok", "it is right"); daybook.CodeOf(err) != daybook.CodeNotFound || daybook.HintOf(err) != "did you mean clock?" {
			t.Errorf("no such hold: %v, %q", err, daybook.HintOf(err))
		}
		if err := b.EndHold(b.ctx, ops, "clock", "it is right"); err != nil {
			t.Error(err)
		}
		if r := b.run(a.Key); r.Hold != "" {
			t.Errorf("still held: %s", r.Hold)
		}
		if err := b.EndHold(b.ctx, ops, "clock", "it is right"); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("twice: %v", err)
		}
	})
}
