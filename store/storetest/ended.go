package storetest

import (
	"fmt"
	"time"

	"github.com/daybook-run/daybook"
)

// What becomes of the subjects of a window that a person ended: none of them waits for ever.
var endedCases = []example{
	{"who was tried before, and waits for his turn, is cancelled with a window that is dismissed", dismissedWithTried},
	{"whose charge is unknown, and waits for his turn, goes on to be settled when the window is cancelled between two zones", cancelledBetweenZones},
	{"who was let go and not tried is cancelled with the window, also when nobody waits for his turn", cancelledLetGo},
	{"a window that is cancelled in a ledger that forgot comes to its end, and nobody who was not tried is tried", cancelledInDoubt},
	{"where nobody can be asked, who may have been forgotten is for a person, and not repeated for a window that was cancelled", cancelledUnasked},
	{"a look at many that cannot be cancelled comes to its end", cancelledManyInDoubt},
	{"who is opened again in a window that is cancelled is tried, and nobody else", reopenedAlone},
	{"who was opened again before his window was cancelled, or came back with it, is cancelled with it", cancelledAgain},
	{"a window of which somebody was cancelled by himself is done when its cancel left nothing undone", cancelledByHimself},
}

// stepsOnce makes a job mark its own effects, which happen once only, on a ladder of one step.
func stepsOnce(j *daybook.Job) {
	j.Priority, j.Effects, j.Steps = daybook.P0, daybook.Once, true
	oneStep(j)
}

func oneStep(j *daybook.Job) {
	j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1}
}

// comeTo lets work come to an effect, and end it.
func (k *kit) comeTo(r *daybook.Run, step string, says daybook.StepPolicy, o daybook.Outcome) *daybook.Run {
	k.Helper()
	a := r.ComeTo(daybook.StepAsk{Step: step, Says: says, Call: NewID()}, daybook.Policy{}, k.now)
	put := func(e *daybook.StepRecord) {
		k.ok(k.s.MarkStep(k.ctx, r, e, daybook.Learned{}))
		r = r.With(e)
		r.Marks++
	}
	if a.Write {
		put(a.Record)
	}
	if a.Do == daybook.StepBegin {
		put(r.StepEnded(a.Record, o, k.now))
	}
	return r
}

// by lets a person move a run.
func (k *kit) by(m daybook.Transition, err error) {
	k.Helper()
	k.ok(err)
	Apply(k.ctx, k, k.s, m)
}

func (k *kit) live(parent daybook.Key) int64 {
	k.Helper()
	return k.number(`SELECT count(*) FROM daybook_live WHERE parent = '%s'`, parent)
}

// nobodyWaits fails unless no run of a subject is live.
func (k *kit) nobodyWaits(parent daybook.Key) {
	k.Helper()
	equal(k, "runs of subjects that wait", k.live(parent), 0)
}

func dismissedWithTried(k *kit) {
	j := subjectsJob(oneStep)
	p := k.listed(j, "2026-03-01", 20)
	for ended := 0; ended < 20; {
		k.look(j)
		for _, r := range k.claim(100) {
			o := done
			if ended > 0 { // each with another error: the breaker stays closed
				o = daybook.Outcome{Result: daybook.ResultPermanent, Error: string(rune('a'+ended)) + " declined"}
			}
			k.end(r, j, o)
			ended++
		}
	}
	replayed, _, err := k.s.ReplaySubjects(k.ctx, p.Key, "", "ops", "cards were changed", k.now)
	k.ok(err)
	equal(k, "replayed", len(replayed), 19)
	k.works(j, down)
	p = k.find(p.Key)
	equal(k, "reason", p.Reason, daybook.ReasonBreaker)
	equal(k, "tried before, and waiting for their turn", k.number(`SELECT count(*) FROM daybook_live WHERE parent = '%s' AND hold = 'turn' AND attempts > 0`, p.Key), 10)
	k.by(p.Dismiss("ops", "the window is given up", k.now))
	equal(k, "tried after it", k.works(j, done), 0)
	k.nobodyWaits(p.Key)
	equal(k, "cancelled", k.number(`SELECT count(*) FROM daybook_runs WHERE parent = '%s' AND state = 'cancelled' AND reason = 'with its window'`, p.Key), 19)
}

// betweenZones is a parent that is to list once more, with so many subjects.
func (k *kit) betweenZones(j *daybook.Job, n int) *daybook.Run {
	k.Helper()
	k.know(j)
	k.run(j, "2026-03-01")
	p := k.one()
	_, _, err := k.s.ListChildren(k.ctx, p, k.children(p, j, 0, n), p.Lease)
	k.ok(err)
	p.Fans = true
	Apply(k.ctx, k, k.s, p.List(daybook.Listed{Subjects: int64(n), New: int64(n), Next: k.now.Add(12 * time.Hour)}, done, k.now))
	return k.find(p.Key)
}

func cancelledBetweenZones(k *kit) {
	j := subjectsJob(stepsOnce)
	p := k.betweenZones(j, 12)
	k.look(j)
	for _, r := range k.claim(10) { // the effect of each is open, and the work itself asks in its next attempt
		r = k.comeTo(r, "charge", daybook.StepPolicy{Asks: true}, daybook.Outcome{Result: daybook.ResultUnclear, Error: "reset"})
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnclear, Error: "503"})
	}
	k.look(j)
	k.now = k.now.Add(time.Minute)
	k.look(j)
	k.end(k.comeTo(k.one(), "charge", daybook.StepPolicy{}, done), j, done)
	k.by(k.find(p.Key).Cancel("ops", "wrong prices", k.now)) // in the same moment
	equal(k, "that go on to be settled", k.works(j, done), 5)
	k.nobodyWaits(p.Key)
	equal(k, "state", k.find(p.Key).State, daybook.Cancelled)
	for i := range 12 {
		r := k.find(p.Key + daybook.Key(fmt.Sprintf("/s%03d", i)))
		switch {
		case i < 5 && (r.State != daybook.Dead || r.Letter.Kind != daybook.LetterUnknown): // the work did not ask
			k.Errorf("%s is %s, %+v", r.Key, r.State, r.Letter)
		case i > 5 && r.State != daybook.Cancelled:
			k.Errorf("%s is %s", r.Key, r.State)
		}
	}
}

func cancelledLetGo(k *kit) {
	j := subjectsJob()
	p := k.betweenZones(j, 3)
	k.look(j)
	equal(k, "waiting for their turn", k.number(`SELECT count(*) FROM daybook_live WHERE hold = 'turn'`), 0)
	k.by(p.Cancel("ops", "wrong prices", k.now))
	k.look(j)
	equal(k, "claimed of a window that is cancelled", len(k.claim(100)), 0)
	k.nobodyWaits(p.Key)
}

// canAsk lets the far side be asked.
func canAsk(j *daybook.Job) { j.HasProbe = true }

// asks lets the far side be asked, for an hour, about whatever may be, and returns what was tried. It knows of nothing.
func (k *kit) asks(j *daybook.Job) (tried []daybook.Key) {
	k.Helper()
	for range 6 {
		k.look(j)
		runs, err := k.s.Questionable(k.ctx, "", "", 100)
		k.ok(err)
		for _, r := range runs {
			if m, ok := r.Question(j.Policy(), k.now); ok {
				Apply(k.ctx, k, k.s, m)
			}
		}
		for _, r := range k.claim(100) {
			if r.Asking == "" {
				tried = append(tried, r.Key)
				continue
			}
			var found []daybook.Finding
			for _, w := range r.Effect.WireKeys() {
				found = append(found, daybook.Finding{Answer: daybook.No, WireKey: w})
			}
			Apply(k.ctx, k, k.s, r.Settle(found, j.Policy(), k.now, k.now))
		}
		k.look(j)
		k.now = k.now.Add(10 * time.Minute)
	}
	return tried
}

func cancelledInDoubt(k *kit) {
	for name, before := range map[string]func(*kit, *daybook.Job){
		"at once":                   func(*kit, *daybook.Job) {},
		"after they were asked for": func(k *kit, j *daybook.Job) { equal(k, "tried in a freeze", len(k.asks(j)), 0) },
	} {
		k.apart(name, func(k *kit) {
			j := subjectsJob(Once, canAsk)
			p := k.listed(j, "2026-03-01", 8)
			k.look(j)
			k.now = k.now.Add(time.Minute)
			k.lapse(1)
			before(k, j)
			k.ok(k.s.CancelRunning(k.ctx, p.Key, p.Fence, k.act("cancel")))
			equal(k, "tried while the freeze stands", len(k.asks(j)), 0)
			ended, err := k.s.EndHold(k.ctx, daybook.HoldRestored, k.act("end"))
			k.ok(err)
			equal(k, "ended", ended, true)
			equal(k, "tried after it", len(k.asks(j)), 0)
			p = k.find(p.Key)
			equal(k, "state", p.State, daybook.Cancelled)
			k.nobodyWaits(p.Key)
			equal(k, "cancelled with it", k.number(`SELECT count(*) FROM daybook_runs WHERE state = 'cancelled' AND reason = 'with its window'`), 8)

			k.by(p.Reopen("ops", "the prices are right", k.now)) // and they come back with it
			again := k.one()
			_, _, err = k.s.ListChildren(k.ctx, again, k.children(again, j, 0, 8), again.Lease)
			k.ok(err)
			again.Fans = true
			Apply(k.ctx, k, k.s, again.List(daybook.Listed{Subjects: 8}, done, k.now))
			equal(k, "done", k.works(j, done), 8)
			equal(k, "state", k.find(p.Key).State, daybook.Done)
		})
	}
}

func cancelledUnasked(k *kit) {
	j := subjectsJob(Once, func(j *daybook.Job) { j.Remembers = daybook.Forever })
	p := k.listed(j, "2026-03-01", 8)
	k.look(j)
	k.now = k.now.Add(time.Minute)
	k.lapse(1)
	k.ok(k.s.CancelRunning(k.ctx, p.Key, p.Fence, k.act("cancel")))
	equal(k, "tried while the freeze stands", len(k.asks(j)), 0)
	letters, err := k.s.SubjectLetters(k.ctx, p.Key, true, 100)
	k.ok(err)
	equal(k, "letters", len(letters), 8)
	for _, key := range letters {
		k.by(k.find(key).Resolve(daybook.AsDone, j.Policy(), "ops", "seen there", k.now))
	}
	k.look(j) // nothing was left undone by the cancel
	equal(k, "state", k.find(p.Key).State, daybook.Done)
	k.nobodyWaits(p.Key)
}

func cancelledManyInDoubt(k *kit) {
	j := subjectsJob(Once, canAsk)
	p := k.listed(j, "2026-03-01", 1100)
	k.now = k.now.Add(time.Minute)
	k.lapse(1)
	k.ok(k.s.CancelRunning(k.ctx, p.Key, p.Fence, k.act("cancel")))
	k.look(j) // or there is always something to look after
	equal(k, "waiting for their turn", k.number(`SELECT count(*) FROM daybook_live WHERE hold = 'turn'`), 0)
	equal(k, "to be asked for", k.number(`SELECT count(*) FROM daybook_live WHERE reason = 'settling' AND hold = ''`), 1100)
}

// cancelledWith is a window of so many subjects that was cancelled before any of them was tried.
func (k *kit) cancelledWith(j *daybook.Job, n int) *daybook.Run {
	k.Helper()
	p := k.listed(j, "2026-03-01", n)
	k.look(j)
	k.now = k.now.Add(time.Second)
	k.ok(k.s.CancelRunning(k.ctx, p.Key, p.Fence, k.act("cancel")))
	equal(k, "tried", k.works(j, done), 0)
	p = k.find(p.Key)
	equal(k, "state", p.State, daybook.Cancelled)
	return p
}

// relisted reopens a window that is cancelled, and has the same subjects listed again.
func (k *kit) relisted(j *daybook.Job, p *daybook.Run, n int) {
	k.Helper()
	k.by(p.Reopen("ops", "the prices are right", k.now))
	again := k.one()
	_, _, err := k.s.ListChildren(k.ctx, again, k.children(again, j, 0, n), again.Lease)
	k.ok(err)
	again.Fans = true
	Apply(k.ctx, k, k.s, again.List(daybook.Listed{Subjects: int64(n)}, done, k.now))
}

func reopenedAlone(k *kit) {
	j := subjectsJob()
	p := k.cancelledWith(j, 8)
	one := p.Key + "/s003"
	k.by(k.find(one).Reopen("ops", "he asked for it", k.now))
	k.look(j)
	equal(k, "state before he is tried", k.find(one).State, daybook.Scheduled)
	equal(k, "tried", k.works(j, done), 1)
	equal(k, "state", k.find(one).State, daybook.Done)
	equal(k, "state of the window", k.find(p.Key).State, daybook.Cancelled)
	k.relisted(j, k.find(p.Key), 8)
	equal(k, "done with the others", k.works(j, done), 7)
	equal(k, "state of the window", k.find(p.Key).State, daybook.Done)
}

func cancelledAgain(k *kit) {
	j := subjectsJob()
	p := k.cancelledWith(j, 8)
	k.relisted(j, p, 8)
	k.by(k.find(p.Key+"/s003").Reopen("ops", "he asked for it", k.now)) // before he would have come back with it
	k.look(j)
	k.now = k.now.Add(time.Second)
	p = k.find(p.Key)
	k.ok(k.s.CancelRunning(k.ctx, p.Key, p.Fence, k.act("cancel")))
	equal(k, "tried after the second cancel", k.works(j, done), 0)
	equal(k, "state", k.find(p.Key).State, daybook.Cancelled)
	k.nobodyWaits(p.Key)
}

func cancelledByHimself(k *kit) {
	j := subjectsJob()
	p := k.listed(j, "2026-03-01", 3)
	k.look(j)
	k.by(k.find(p.Key+"/s000").Cancel("ops", "he left", k.now))
	runs := k.claim(10)
	equal(k, "at work", len(runs), 2)
	k.ok(k.s.CancelRunning(k.ctx, p.Key, p.Fence, k.act("cancel")))
	k.look(j)
	for _, r := range runs {
		k.end(r, j, done)
	}
	k.look(j)
	equal(k, "state", k.find(p.Key).State, daybook.Done)
	k.nobodyWaits(p.Key)
}
