package control_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/store/storetest"
)

func (b *bench) renew() {
	b.t.Helper()
	b.at(day("2026-03-01"))
	b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Overlap: daybook.OverlapAllow})
	b.job(daybook.Job{Name: "asked", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Overlap: daybook.OverlapAllow, Probe: daybook.Command{Shell: "true"}})
	b.job(daybook.Job{Name: "mail", Schedule: "0 2 * * *", Window: daybook.Day, Overlap: daybook.OverlapAllow})
	b.at(utc("2026-10-26T12:00:00"))
}

// together calls an act from many goroutines at once.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() { <-begin; do(i) })
	}
	close(begin)
	all.Wait()
}

func TestOfManyTriggersAtOneInstantOneStarts(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		const people = 8
		answers, errs := make([]control.Answer, people), make([]error, people)
		together(people, func(i int) {
			answers[i], errs[i] = b.Trigger(b.ctx, control.Person{Name: fmt.Sprint("p", i)}, control.Request{Job: "renew"})
		})
		count := map[daybook.TriggerOutcome]int{}
		for i := range answers {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			count[answers[i].Outcome]++
		}
		if count[daybook.Started] != 1 || count[daybook.Joined] != people-1 {
			t.Errorf("answered %v", count)
		}
		if r := b.run("renew:2026-10-26"); r.Triggers != people {
			t.Errorf("%d triggers are counted", r.Triggers)
		}
	})
}

func TestTwoPeopleReplayingAtOnceReplayOnce(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		const k = daybook.Key("renew:2026-10-26")
		b.dead(k)
		b.after(aMinute)
		answers, errs := make([][]control.Answer, 4), make([]error, 4)
		together(4, func(i int) {
			answers[i], errs[i] = b.Replay(b.ctx, control.Person{Name: fmt.Sprint("p", i)}, []daybook.Key{k}, "card changed")
		})
		count := map[daybook.TriggerOutcome]int{}
		for i := range answers {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			count[answers[i][0].Outcome]++
		}
		if count[daybook.Started] != 1 || count[daybook.Joined] != 3 {
			t.Errorf("answered %v", count)
		}
		r := b.run(k)
		if r.State != daybook.Retryable || r.Failures != 0 || r.Letter.State != daybook.LetterReplayed || r.WireKey() != "renew:2026-10-26#run@2" {
			t.Errorf("replayed %+v, letter %+v", r, r.Letter)
		}
		b.end(k, daybook.Outcome{Result: daybook.ResultDone})
		all, err := b.Replay(b.ctx, ops, []daybook.Key{k}, "")
		if err != nil || all[0].Outcome != daybook.Reused {
			t.Errorf("replayed when done: %+v %v", all, err)
		}
	})
}

func TestTwoPeopleDismissingAtOnceDismissOnce(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		const k = daybook.Key("renew:2026-10-26")
		b.dead(k)
		errs := make([]error, 4)
		together(4, func(i int) {
			_, errs[i] = b.Dismiss(b.ctx, control.Person{Name: fmt.Sprint("p", i)}, k, "customer left")
		})
		good := 0
		for _, err := range errs {
			switch {
			case err == nil:
				good++
			case daybook.CodeOf(err) != daybook.CodeConflict || !strings.Contains(err.Error(), "dismissed"):
				t.Errorf("the others: %v", err)
			}
		}
		if good != 1 {
			t.Errorf("%d dismissed it", good)
		}
	})
}

// TestReplayAgainstDismiss lets both be tried at once: one wins, and the row is whole.
func TestReplayAgainstDismiss(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		for i := range 5 {
			k := daybook.Key(fmt.Sprintf("renew:2026-10-%02d", i+1))
			b.dead(k)
			var replayed []control.Answer
			var rerr, derr error
			together(2, func(i int) {
				if i == 0 {
					replayed, rerr = b.Replay(b.ctx, ops, []daybook.Key{k}, "")
				} else {
					_, derr = b.Dismiss(b.ctx, control.Person{Name: "boss"}, k, "customer left")
				}
			})
			if rerr != nil {
				t.Fatal(rerr)
			}
			won := replayed[0].Outcome == daybook.Started
			if won == (derr == nil) {
				t.Errorf("%s: replay %s, dismiss %v", k, replayed[0].Line(), derr)
			}
			if r := b.run(k); won != (r.State == daybook.Retryable) || won == (r.Letter.State == daybook.LetterDismissed) {
				t.Errorf("%s: replay %v, state %s, letter %s", k, won, r.State, r.Letter.State)
			}
		}
	})
}

func TestTheLifeOfALetter(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		const k = daybook.Key("renew:2026-10-26")
		b.dead(k)
		conflict := func(what string, err error) {
			t.Helper()
			if daybook.CodeOf(err) != daybook.CodeConflict || daybook.HintOf(err) == "" {
				t.Errorf("%s: %v, hint %q", what, err, daybook.HintOf(err))
			}
		}
		if _, err := b.Dismiss(b.ctx, ops, k, ""); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("without a reason: %v", err)
		}
		_, err := b.Resolve(b.ctx, ops, k, control.Word{Step: "run", As: daybook.AsDone}, "I looked")
		conflict("resolve what is known", err)
		_, err = b.Cancel(b.ctx, ops, k, "no")
		conflict("cancel what ended", err)
		_, err = b.Reopen(b.ctx, ops, k, "no")
		conflict("reopen what is open", err)

		a, err := b.Dismiss(b.ctx, ops, k, "customer left")
		if err != nil || a.From != daybook.Dead || a.Run.Letter.State != daybook.LetterDismissed || a.Run.Letter.Note != "customer left" {
			t.Fatalf("dismissed: %+v %v", a, err)
		}
		_, err = b.Dismiss(b.ctx, ops, k, "twice")
		conflict("dismiss twice", err)
		if a, err = b.Reopen(b.ctx, ops, k, "he came back"); err != nil || a.Run.Letter.State != daybook.LetterOpen {
			t.Fatalf("reopened: %+v %v", a.Run, err)
		}
		all, err := b.Replay(b.ctx, ops, []daybook.Key{k, "renew:2026-10-25", "mial:2026-10-26"}, "")
		if err != nil || len(all) != 3 || all[0].Outcome != daybook.Started || all[1].Exit != daybook.ExitNotFound || all[2].Exit != daybook.ExitNotFound {
			t.Errorf("replayed: %+v %v", all, err)
		}
		if _, err := b.Replay(b.ctx, ops, []daybook.Key{k, "renew"}, ""); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("what is no key: %v", err)
		}
		if _, err := b.Replay(b.ctx, ops, nil, ""); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("no key: %v", err)
		}
		if _, err := b.Dismiss(b.ctx, ops, "renw:2026-10-26", "x"); daybook.CodeOf(err) != daybook.CodeNotFound || daybook.HintOf(err) != "did you mean renew?" {
			t.Errorf("no such job: %v %q", err, daybook.HintOf(err))
		}
		if _, err := b.Dismiss(b.ctx, ops, "renew:2026-10-20", "x"); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("no such key: %v", err)
		}
	})
}

func TestAnUnknownOutcomeIsResolvedByAPerson(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		const k = daybook.Key("renew:2026-10-26")
		b.unknown(k)
		if _, err := b.Dismiss(b.ctx, ops, k, "never mind"); daybook.CodeOf(err) != daybook.CodeConflict || !strings.Contains(daybook.HintOf(err), "run resolve") {
			t.Errorf("dismiss: %v", err)
		}
		for _, c := range []struct {
			step string
			as   daybook.Resolution
			note string
			code daybook.Code
		}{
			{"run", daybook.AsDone, "", daybook.CodeInvalid},
			{"charge", daybook.AsDone, "x", daybook.CodeInvalid},
			{"", daybook.AsDone, "x", daybook.CodeInvalid},
			{"run", "notdone", "x", daybook.CodeInvalid},
			{"run", daybook.AsAsk, "", daybook.CodeConflict}, // there is no probe
		} {
			if _, err := b.Resolve(b.ctx, ops, k, control.Word{Step: c.step, As: c.as}, c.note); daybook.CodeOf(err) != c.code || daybook.HintOf(err) == "" {
				t.Errorf("%+v: %v, hint %q", c, err, daybook.HintOf(err))
			}
		}
		a, err := b.Resolve(b.ctx, ops, k, control.Word{Step: "run", As: daybook.AsNotDone}, "not in the bank's list")
		if err != nil || a.Run.State != daybook.Retryable || a.Run.WireKey() != "renew:2026-10-26#run@2" || a.Run.Effect.SettledBy != "ops" {
			t.Fatalf("not done: %+v %v", a.Run, err)
		}
		b.end(k, daybook.Outcome{Result: daybook.ResultUnknown})
		if a, err = b.Resolve(b.ctx, ops, k, control.Word{Step: "run", As: daybook.AsDone}, "it is in the list now"); err != nil || a.Run.State != daybook.Done || a.Run.Letter.State != daybook.LetterSettled {
			t.Fatalf("done: %+v %v", a.Run, err)
		}
		if _, err = b.Resolve(b.ctx, ops, k, control.Word{Step: "run", As: daybook.AsDone}, "twice"); daybook.CodeOf(err) != daybook.CodeConflict {
			t.Errorf("twice: %v", err)
		}

		const asked = daybook.Key("asked:2026-10-26")
		b.unknown(asked) // the probe is asked first
		r := b.claim(asked)
		finding := daybook.Finding{Answer: daybook.CannotTell, WireKey: string(asked)}
		storetest.Apply(b.ctx, t, b.s, r.Settle([]daybook.Finding{finding}, b.policy(asked), b.now, b.now))
		if a, err = b.Resolve(b.ctx, ops, asked, control.Word{Step: "run", As: daybook.AsAsk}, ""); err != nil || a.Run.Reason != daybook.ReasonSettling {
			t.Errorf("ask again: %+v %v", a.Run, err)
		}
		if _, err = b.Cancel(b.ctx, ops, asked, "stop"); daybook.CodeOf(err) != daybook.CodeConflict {
			t.Errorf("cancel what is being settled: %v", err)
		}
	})
}

func TestCancelAndReopen(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		const k = daybook.Key("mail:2026-10-26")
		b.make(k)
		if _, err := b.Cancel(b.ctx, ops, k, ""); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("without a reason: %v", err)
		}
		a, err := b.Cancel(b.ctx, ops, k, "by mistake")
		if err != nil || a.Run.State != daybook.Cancelled || a.Asked {
			t.Fatalf("cancelled: %+v %v", a, err)
		}
		if a, err = b.Reopen(b.ctx, ops, k, "no mistake"); err != nil || a.Run.State != daybook.Scheduled || a.Run.Reason != daybook.ReasonReopened {
			t.Fatalf("reopened: %+v %v", a.Run, err)
		}
		r := b.claim(k)
		if a, err = b.Cancel(b.ctx, ops, k, "too slow"); err != nil || !a.Asked || a.AskedBefore != "" || a.Run.State != daybook.Running || !strings.Contains(a.Line(), "its executor was asked to end it") {
			t.Fatalf("running: %+v %v", a, err)
		}
		if a, err = b.Cancel(b.ctx, control.Person{Name: "boss"}, k, "now"); err != nil || a.AskedBefore != "ops" {
			t.Errorf("asked twice: %+v %v", a, err)
		}
		r.CancelledBy = "ops"
		storetest.Apply(b.ctx, t, b.s, r.Next(daybook.Outcome{Result: daybook.ResultNotDone}, b.policy(k), b.now))
		if r := b.run(k); r.State != daybook.Cancelled {
			t.Errorf("ended %s", r.State)
		}
		acts, err := b.Activities(b.ctx, b.now.Add(-aMinute), "", 100)
		var said []string
		for _, act := range acts {
			if act.Key == k && act.Action != "trigger" {
				said = append([]string{act.Action + " by " + act.Actor}, said...)
			}
		}
		if err != nil || strings.Join(said, ", ") != "cancel by ops, reopen by ops, cancel by ops" {
			t.Errorf("recorded %q %v", said, err)
		}
		// A further attempt that is cancelled leaves the run done.
		const again = daybook.Key("mail:2026-10-25")
		b.done(again)
		b.trigger(control.Request{Job: "mail", Window: "2026-10-25", Again: true})
		if a, err = b.Cancel(b.ctx, ops, again, "enough"); err != nil || a.Run.State != daybook.Done || a.Run.Counts["charges"] != 20 {
			t.Errorf("further attempt: %+v %v", a.Run, err)
		}
	})
}

func TestPauseAndResume(t *testing.T) {
	each(t, func(b *bench) {
		b.renew()
		b.make("mail:2026-10-25")
		if _, err := b.Pause(b.ctx, ops, "mail", ""); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("without a reason: %v", err)
		}
		if _, err := b.Pause(b.ctx, ops, "mial", "x"); daybook.CodeOf(err) != daybook.CodeNotFound || daybook.HintOf(err) != "did you mean mail?" {
			t.Errorf("no such job: %v %q", err, daybook.HintOf(err))
		}
		p, err := b.Pause(b.ctx, ops, "mail", "server moves")
		if err != nil || !p.Changed || !p.Job.Paused || p.Job.PausedBy != "ops" {
			t.Fatalf("paused: %+v %v", p, err)
		}
		if p, err = b.Pause(b.ctx, control.Person{Name: "boss"}, "mail", "again"); err != nil || p.Changed || p.Job.PausedNote != "server moves" {
			t.Errorf("twice: %+v %v", p, err)
		}
		a := b.trigger(control.Request{Job: "mail"})
		if a.Because != daybook.BecausePaused || a.Next() != "daybook job resume mail" || !strings.Contains(a.Line(), "paused by ops (server moves)") {
			t.Errorf("asked: %s → %s", a.Line(), a.Next())
		}
		if a = b.trigger(control.Request{Job: "mail", Window: "2026-10-25"}); !strings.Contains(a.Line(), "held: paused") {
			t.Errorf("waiting: %s", a.Line())
		}
		if p, err = b.Resume(b.ctx, ops, "mail"); err != nil || !p.Changed || p.Job.Paused {
			t.Errorf("resumed: %+v %v", p, err)
		}
		if p, err = b.Resume(b.ctx, ops, "mail"); err != nil || p.Changed {
			t.Errorf("twice: %+v %v", p, err)
		}
		if r := b.run("mail:2026-10-25"); r.Hold != "" {
			t.Errorf("still held: %s", r.Hold)
		}
	})
}

// stubborn is a ledger in which somebody else is always first.
type stubborn struct {
	control.Store
	times int
}

func (s *stubborn) Apply(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	if s.times--; s.times >= 0 {
		return []daybook.Applied{{Stale: true}}, nil
	}
	return s.Store.Apply(ctx, ts)
}

// late is a ledger that an act reaches only after something else has happened.
type late struct {
	control.Store
	before func()
}

func (s *late) Apply(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.Apply(ctx, ts)
}

// What a person says about one attempt is not believed of a later one, which may have charged.
func TestADecisionIsAboutTheAttemptThatThePersonKnew(t *testing.T) {
	lite(t, func(b *bench) {
		const k = "renew:2026-10-26"
		b.renew()
		b.unknown(k)
		saysNo := func(c *control.Control) error {
			_, err := c.Resolve(b.ctx, ops, k, control.Word{Step: daybook.StepRun, As: daybook.AsNotDone}, "looked")
			return err
		}
		other := func() { // somebody else was first, the work was tried again, and how that ended is unknown
			if err := saysNo(b.Control); err != nil {
				t.Fatal(err)
			}
			b.end(k, daybook.Outcome{Result: daybook.ResultUnknown, Error: "cut off"})
		}
		err := saysNo(control.New(&late{b.s, other}, control.Options{Clock: nowOf(b)}))
		if r := b.run(k); !errors.Is(err, daybook.ErrConflict) || r.State != daybook.Dead || r.Effect.State != daybook.EffectUnknown || r.Effect.Generation != 2 {
			t.Errorf("%v; %s %+v", err, r.State, r.Effect)
		}
	})
}

// Whoever looked some time ago says so of the attempt he looked into; once there are several, "not done" without it is no answer.
func TestNotDoneIsSaidOfAnAttempt(t *testing.T) {
	lite(t, func(b *bench) {
		const k = "renew:2026-10-26"
		b.renew()
		b.unknown(k)
		say := func(as daybook.Resolution, attempt int) error {
			_, err := b.Resolve(b.ctx, ops, k, control.Word{Step: daybook.StepRun, As: as, Attempt: attempt}, "looked")
			return err
		}
		if err := say(daybook.AsNotDone, 0); err != nil {
			t.Fatal(err)
		}
		b.end(k, daybook.Outcome{Result: daybook.ResultUnknown, Error: "cut off"})
		for attempt, want := range []string{
			"renew:2026-10-26 was tried 2 times: which attempt did nothing?",
			"renew:2026-10-26 was tried again: attempt 2 is the last, and attempt 1 is spoken of",
		} {
			err := say(daybook.AsNotDone, attempt)
			if !errors.Is(err, daybook.ErrConflict) || err.Error() != want || !strings.Contains(daybook.HintOf(err), "look at the far side for renew:2026-10-26#run@2") {
				t.Errorf("attempt %d: %v (%s)", attempt, err, daybook.HintOf(err))
			}
		}
		if err := say(daybook.AsDone, 1); !errors.Is(err, daybook.ErrConflict) {
			t.Errorf("done of attempt 1: %v", err)
		}
		if r := b.run(k); r.State != daybook.Dead || r.Effect.State != daybook.EffectUnknown || r.Effect.Generation != 2 {
			t.Errorf("%s %+v", r.State, r.Effect)
		}
		if do := b.Resolving(b.ctx, b.run(k)).String(); do != `daybook run resolve renew:2026-10-26 --step run --as "done|not-done" --attempt 2 --reason …` {
			t.Errorf("the command is %s", do)
		}
		if err := say(daybook.AsNotDone, 2); err != nil {
			t.Error(err)
		}
	})
}

func TestAnActThatMeetsAnotherIsDecidedAgain(t *testing.T) {
	lite(t, func(b *bench) {
		b.renew()
		b.dead("renew:2026-10-26")
		for times, want := range map[int]error{4: nil, 5: daybook.ErrStale} {
			c := control.New(&stubborn{b.s, times}, control.Options{Clock: nowOf(b)})
			if _, err := c.Dismiss(b.ctx, ops, "renew:2026-10-26", "x"); !errors.Is(err, want) {
				t.Errorf("stale %d times: %v", times, err)
			}
			if want == nil {
				if _, err := b.Reopen(b.ctx, ops, "renew:2026-10-26", "x"); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
