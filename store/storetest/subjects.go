package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
)

var fanoutCases = []example{
	{"a listing that names a subject twice makes one run", listTwice},
	{"a listing is refused once the parent is not held any more", listStale},
	{"a renewal that comes after the listing gives the parent no lease any more", renewedLate},
	{"what is listed again keeps its first payload, and what is not any more is counted", listAgain},
	{"a run of a subject waits for its turn, and no claim finds it before", waitTurn},
	{"who waits again, before those let go last, is let go as well", waitAgain},
	{"no end of a subject writes its parent", endsApart},
	{"two who look after one run let go no more than one", lookTogether},
	{"what was let go while its job is paused waits until it is resumed", letGoPaused},
	{"letters of subjects share one alert, which ends with the last of them", sharedAlert},
	{"a letter and its alert are not closed before they were opened", closedByAnOldClock},
	{"a run whose subjects left only letters keeps no other of its line waiting, and is a good window", onlyLetters},
	{"the breaker's letter is replayed, and everything goes on", breakerReplayed},
	{"a subject whose serial key another run has keeps no other from its turn, and the breaker judges without it", heldByKey},
	{"what the breaker tries may have to wait for its serial key: another is tried", triedHeld},
	{"subjects that share one serial key are let go no faster than they are done", oneKeyForAll},
}

// listed is a parent whose listing is complete, with so many subjects.
func (k *kit) listed(j *daybook.Job, date string, n int) *daybook.Run {
	k.Helper()
	k.know(j)
	k.run(j, date)
	p := k.one()
	fresh, known, err := k.s.ListChildren(k.ctx, p, k.children(p, j, 0, n), p.Lease)
	k.ok(err)
	equal(k, "fresh and known", [2]int{fresh, known}, [2]int{n, 0})
	p.Fans = true
	Apply(k.ctx, k, k.s, p.List(daybook.Listed{Subjects: int64(n), New: int64(n)}, daybook.Outcome{Result: daybook.ResultDone}, k.now))
	return k.find(p.Key)
}

func (k *kit) children(p *daybook.Run, j *daybook.Job, from, to int) (list []*daybook.Run) {
	k.Helper()
	for i := from; i < to; i++ {
		c, err := p.Child(j, daybook.Subject{ID: fmt.Sprintf("s%03d", i), Payload: fmt.Sprint(p.Fence)}, p.Window)
		k.ok(err)
		list = append(list, c)
	}
	return list
}

func subjectsJob(change ...func(*daybook.Job)) *daybook.Job {
	return Job("renew", append([]func(*daybook.Job){func(j *daybook.Job) { j.HasSubjects = true }}, change...)...)
}

// look lets whoever looks after runs with subjects do so until nothing is left.
func (k *kit) look(j *daybook.Job) {
	k.Helper()
	for range 50 {
		keys, err := k.s.Fanouts(k.ctx, k.now, 10)
		k.ok(err)
		if len(keys) == 0 {
			return
		}
		for _, key := range keys {
			k.ok(k.s.Look(k.ctx, key, j.Policy(), 8, k.now))
		}
	}
	k.Fatal("there is always something to look after")
}

func listTwice(k *kit) {
	j := subjectsJob()
	k.know(j)
	k.run(j, "2026-03-01")
	p := k.one()
	fresh, known, err := k.s.ListChildren(k.ctx, p, k.children(p, j, 0, 10), p.Lease)
	k.ok(err)
	equal(k, "the first time", [2]int{fresh, known}, [2]int{10, 0})
	fresh, known, err = k.s.ListChildren(k.ctx, p, k.children(p, j, 5, 15), p.Lease)
	k.ok(err)
	equal(k, "with five named before", [2]int{fresh, known}, [2]int{5, 0})
	equal(k, "runs", k.number(`SELECT count(*) FROM daybook_runs WHERE parent = '%s'`, p.Key), 15)
}

func listStale(k *kit) {
	j := subjectsJob()
	k.know(j)
	k.run(j, "2026-03-01")
	p := k.one()
	k.end(p, j, daybook.Outcome{Result: daybook.ResultLost})
	before := k.dump()
	_, _, err := k.s.ListChildren(k.ctx, p, k.children(p, j, 0, 10), p.Lease)
	k.code(err, daybook.CodeStale)
	if after := k.dump(); after != before {
		k.Error(difference(before, after))
	}
}

func renewedLate(k *kit) {
	j := subjectsJob()
	k.know(j)
	k.run(j, "2026-03-01")
	held := k.one()
	listed := *held
	listed.Fans = true
	Apply(k.ctx, k, k.s, listed.List(daybook.Listed{}, daybook.Outcome{Result: daybook.ResultDone}, k.now))
	before := k.dump()
	notices, err := k.s.Renew(k.ctx, []*daybook.Run{held}, k.now.Add(time.Minute), k.now)
	k.ok(err)
	equal(k, "notices", len(notices), 0)
	if after := k.dump(); after != before {
		k.Error(difference(before, after))
	}
}

func listAgain(k *kit) {
	j := subjectsJob()
	k.know(j)
	k.run(j, "2026-03-01")
	p := k.one()
	_, _, err := k.s.ListChildren(k.ctx, p, k.children(p, j, 0, 10), p.Lease)
	k.ok(err)
	k.end(p, j, daybook.Outcome{Result: daybook.ResultLost})
	again := k.one()
	fresh, known, err := k.s.ListChildren(k.ctx, again, k.children(again, j, 4, 12), again.Lease)
	k.ok(err)
	equal(k, "again", [2]int{fresh, known}, [2]int{2, 6})
	n, err := k.s.Vanished(k.ctx, again)
	k.ok(err)
	equal(k, "vanished", n, 4)
	equal(k, "payload", string(k.find(p.Key+"/s005").Input), `"1"`)
	equal(k, "payload", string(k.find(p.Key+"/s011").Input), `"2"`)
}

func waitTurn(k *kit) {
	j := subjectsJob()
	p := k.listed(j, "2026-03-01", 20)
	if runs := k.claim(100); len(runs) != 0 {
		k.Fatalf("claimed %v before its turn", keys(runs))
	}
	k.look(j)
	runs := k.claim(100)
	equal(k, "let go before the first success", len(runs), daybook.BreakerSubjects)
	for _, r := range runs {
		if r.Parent != p.Key || r.Hold != "" {
			k.Errorf("%s of %s, hold %q", r.Key, r.Parent, r.Hold)
		}
	}
	k.end(runs[0], j, daybook.Outcome{Result: daybook.ResultDone})
	k.look(j)
	equal(k, "let go after it", len(k.claim(100)), 8-4)
}

func waitAgain(k *kit) {
	j := subjectsJob()
	p := k.listed(j, "2026-03-01", 40)
	k.look(j)
	done := make(map[daybook.Key]bool)
	end := func(fail int) {
		k.Helper()
		for i, r := range k.claim(100) {
			o := daybook.Outcome{Result: daybook.ResultDone}
			if i < fail {
				o = daybook.Outcome{Result: daybook.ResultPermanent, Error: "card declined"}
			}
			done[r.Key] = o.Result == daybook.ResultDone
			k.end(r, j, o)
		}
		k.look(j)
	}
	end(0)
	end(2)
	equal(k, "ended", len(done), daybook.BreakerSubjects+8)
	replayed, _, err := k.s.ReplaySubjects(k.ctx, p.Key, "", "ops", "", k.now)
	k.ok(err)
	equal(k, "replayed", len(replayed), 2)
	k.look(j)
	for range 10 {
		end(0)
	}
	equal(k, "state", k.find(p.Key).State, daybook.Done)
	equal(k, "ended", len(done), 40)
	for key, done := range done {
		if !done {
			k.Errorf("%s was not done", key)
		}
	}
}

func endsApart(k *kit) {
	j := subjectsJob()
	p := k.listed(j, "2026-03-01", 5)
	k.look(j)
	rows := func() string { // of the parent, in every table but that of the ends
		lines := slices.DeleteFunc(strings.Split(k.dump(), "\n"), func(line string) bool {
			return !strings.Contains(" "+line+" ", " key="+string(p.Key)+" ")
		})
		return strings.Join(lines, "\n")
	}
	before := rows()
	equal(k, "rows of the parent that are watched", strings.Count(before, "\n") >= 3, true)
	for _, r := range k.claim(5) {
		k.end(r, j, daybook.Outcome{Result: daybook.ResultDone})
	}
	equal(k, "after five ends", difference(before, rows()), "")
	equal(k, "ends", k.number(`SELECT count(*) FROM daybook_ends WHERE parent = '%s'`, p.Key), 5)
	k.look(j)
	equal(k, "state", k.find(p.Key).State, daybook.Done)
	equal(k, "ends left", k.number(`SELECT count(*) FROM daybook_ends`), 0)
}

func lookTogether(k *kit) {
	j := subjectsJob()
	p := k.listed(j, "2026-03-01", 50)
	var looking sync.WaitGroup
	for range 8 {
		looking.Go(func() {
			if err := k.s.Look(k.ctx, p.Key, j.Policy(), 8, k.now); err != nil {
				k.Error(err)
			}
		})
	}
	looking.Wait()
	equal(k, "let go", len(k.claim(100)), daybook.BreakerSubjects)
}

func letGoPaused(k *kit) {
	j := subjectsJob()
	k.listed(j, "2026-03-01", 5)
	_, err := k.s.Pause(k.ctx, j.Name, k.act("pause"))
	k.ok(err)
	k.look(j)
	equal(k, "claimed while it is paused", len(k.claim(100)), 0)
	_, err = k.s.Resume(k.ctx, j.Name, k.act("resume"))
	k.ok(err)
	k.look(j)
	equal(k, "claimed afterwards", len(k.claim(100)), 5)
}

func sharedAlert(k *kit) {
	j := subjectsJob()
	p := k.listed(j, "2026-03-01", 5)
	k.look(j)
	runs := k.claim(5)
	for i, r := range runs {
		result := daybook.ResultDone
		if i < 2 {
			result = daybook.ResultPermanent
		}
		k.end(r, j, daybook.Outcome{Result: result, Error: "card declined"})
	}
	k.look(j)
	alerts, err := k.s.Alerts(k.ctx, true, 10)
	k.ok(err)
	if len(alerts) != 1 || alerts[0].Key != p.Key || alerts[0].Kind != daybook.AlertDeadLetter {
		k.Fatalf("%+v", alerts)
	}
	letters, err := k.s.SubjectLetters(k.ctx, p.Key, false, 10)
	k.ok(err)
	slices.Sort(letters)
	equal(k, "letters", len(letters), 2)
	for i, key := range letters {
		m, err := k.find(key).Dismiss("ops", "customer left", k.now)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
		k.look(j)
		alerts, err := k.s.Alerts(k.ctx, true, 10)
		k.ok(err)
		equal(k, "alerts", len(alerts), 1-i)
	}
	equal(k, "state", k.find(p.Key).State, daybook.Done)
}

func closedByAnOldClock(k *kit) {
	before := k.now.Add(-time.Minute)
	alone := k.dies(Job("alone"), "2026-03-01")
	j := subjectsJob()
	k.listed(j, "2026-03-01", 1)
	k.look(j)
	shared := k.end(k.one(), j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "card declined"})
	for _, r := range []*daybook.Run{alone, shared} {
		m, err := r.Dismiss("ops", "customer left", before)
		k.ok(err)
		Apply(k.ctx, k, k.s, m)
	}
	keys, err := k.s.Fanouts(k.ctx, k.now, 10)
	k.ok(err)
	for _, key := range keys {
		k.ok(k.s.Look(k.ctx, key, j.Policy(), 8, before))
	}
	for _, table := range []string{"letters WHERE closed_us < opened_us", "alerts WHERE closed_us < at_us"} {
		equal(k, table, k.number(`SELECT count(*) FROM daybook_%s`, table), 0)
	}
}

func onlyLetters(k *kit) {
	j := subjectsJob(func(j *daybook.Job) { j.Overlap = daybook.OverlapWait })
	p := k.listed(j, "2026-03-01", 2)
	equal(k, "line", p.Line, "renew")
	next := k.run(j, "2026-03-02")
	k.look(j)
	runs := k.claim(5)
	if slices.Contains(keys(runs), next.Key) {
		k.Fatal("the next window began while subjects are under way")
	}
	k.end(runs[0], j, daybook.Outcome{Result: daybook.ResultDone})
	k.end(runs[1], j, daybook.Outcome{Result: daybook.ResultPermanent, Error: "card declined"})
	k.look(j)
	if p = k.find(p.Key); p.State != daybook.Running || !p.Rests {
		k.Fatalf("%s, rests %t", p.State, p.Rests)
	}
	good, err := k.s.LastGood(k.ctx)
	k.ok(err)
	equal(k, "last good", good["renew"].Key, p.Key)
	other := k.one()
	equal(k, "claimed", other.Key, next.Key)
	replayed, more, err := k.s.ReplaySubjects(k.ctx, p.Key, "", "ops", "", k.now)
	k.ok(err)
	equal(k, "replayed", len(replayed), 1)
	equal(k, "more", more, "")
	k.look(j)
	if p = k.find(p.Key); p.State != daybook.Running || p.Rests {
		k.Errorf("%s, rests %t", p.State, p.Rests)
	}
	equal(k, "claimed", k.one().Key, runs[1].Key)
}

func breakerReplayed(k *kit) {
	j := subjectsJob(func(j *daybook.Job) { j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1} })
	p := k.listed(j, "2026-03-01", 20)
	k.look(j)
	for _, r := range k.claim(10) {
		k.end(r, j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "503 for " + r.Subject})
	}
	k.look(j)
	n, err := k.s.Subjects(k.ctx, p.Key)
	k.ok(err)
	if n.Breaker == nil || len(k.claim(10)) != 0 {
		k.Fatalf("%+v", n)
	}
	k.now = k.now.Add(time.Minute)
	k.look(j)
	k.end(k.one(), j, daybook.Outcome{Result: daybook.ResultNotDone, Error: "503"})
	k.look(j)
	p = k.find(p.Key)
	if p.State != daybook.Dead || p.Reason != daybook.ReasonBreaker || p.Letter == nil {
		k.Fatalf("%s (%s) %+v", p.State, p.Reason, p.Letter)
	}
	m, err := p.Replay("ops", "", k.now)
	k.ok(err)
	Apply(k.ctx, k, k.s, m)
	for range 20 {
		k.look(j)
		for _, r := range k.claim(10) {
			k.end(r, j, daybook.Outcome{Result: daybook.ResultDone})
		}
	}
	equal(k, "state", k.find(p.Key).State, daybook.Done)
	alerts, err := k.s.Alerts(k.ctx, true, 10)
	k.ok(err)
	equal(k, "alerts", len(alerts), 0)
}

// unknownOn leaves an effect unknown of another job, which has the serial keys of subjects then.
func (k *kit) unknownOn(subjects ...string) (j *daybook.Job, runs []*daybook.Run) {
	k.Helper()
	j = Job("charge", Once, on("sub:{subject}"))
	for _, s := range subjects {
		k.subject(j, "2026-03-01", s, 0)
		r := k.one()
		k.begin(r, j)
		k.end(r, j, daybook.Outcome{Result: daybook.ResultUnknown, Error: "reset"})
		r = k.find(r.Key)
		equal(k, "holder", k.lock("sub:"+s).Key, r.Key)
		equal(k, "state", r.State, daybook.Dead)
		runs = append(runs, r)
	}
	return j, runs
}

// works lets rounds of looks and claims pass, a minute each, until nothing is left to be claimed for longer than the ladder.
func (k *kit) works(j *daybook.Job, o daybook.Outcome) (ended int) {
	k.Helper()
	for idle := 0; idle < 4; idle++ {
		k.look(j)
		for _, r := range k.claim(100) {
			k.end(r, j, o)
			ended++
			idle = 0
		}
		k.look(j)
		k.now = k.now.Add(time.Minute)
	}
	return ended
}

var down = daybook.Outcome{Result: daybook.ResultNotDone, Error: "503 from the gateway"}

func heldByKey(k *kit) {
	short := func(j *daybook.Job) { j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1} }
	for _, held := range [][]string{{"s002"}, {"s000", "s001", "s002", "s003", "s004", "s005", "s006"}} {
		k.apart(fmt.Sprintf("%d held", len(held)), func(k *kit) {
			other, unknown := k.unknownOn(held...)
			j := subjectsJob(short, on("sub:{subject}"))
			p := k.listed(j, "2026-03-02", 12)
			k.works(j, down)
			if p = k.find(p.Key); p.State != daybook.Dead || p.Reason != daybook.ReasonBreaker || p.Letter == nil {
				n, err := k.s.Subjects(k.ctx, p.Key)
				k.Fatalf("%s (%s), %d wait for their turn, %+v %v", p.State, p.Reason, n.Waiting, n, err)
			}
			alerts, err := k.s.Alerts(k.ctx, true, 10)
			k.ok(err)
			equal(k, "alerts about the breaker", len(slices.DeleteFunc(alerts, func(a daybook.Alert) bool { return a.Kind != daybook.AlertBreakerOpen })), 1)
			m, err := p.Replay("ops", "", k.now)
			k.ok(err)
			Apply(k.ctx, k, k.s, m)
			equal(k, "done once the gateway is up", k.works(j, done), 12-len(held))
			p = k.find(p.Key)
			equal(k, "state", p.State, daybook.Running)
			for _, s := range held {
				equal(k, "hold of "+s, k.find(p.Key+"/"+daybook.Key(s)).Hold, daybook.ReasonSerial)
			}
			for _, r := range unknown {
				m, err := k.find(r.Key).Resolve(daybook.AsDone, other.Policy(), "ops", "seen", k.now)
				k.ok(err)
				Apply(k.ctx, k, k.s, m)
			}
			equal(k, "done once their keys are free", k.works(j, done), len(held))
			equal(k, "state", k.find(p.Key).State, daybook.Done)
		})
	}
}

func triedHeld(k *kit) {
	k.unknownOn("s005", "s006")
	j := subjectsJob(on("sub:{subject}"), func(j *daybook.Job) {
		j.Retry = daybook.Retry{Backoff: []time.Duration{time.Minute, time.Minute}, Jitter: -1}
	})
	p := k.listed(j, "2026-03-02", 12)
	k.look(j)
	for _, r := range k.claim(10) {
		k.end(r, j, down)
	}
	k.look(j)
	k.now = k.now.Add(time.Minute)
	for want := 2; want > 0; want-- {
		k.look(j)
		equal(k, "claimed of what waits for its key", len(k.claim(10)), 0)
		k.look(j)
		equal(k, "tried at once", len(k.claim(10)), 0)
		k.now = k.now.Add(10 * time.Second)
	}
	k.look(j)
	r := k.one()
	equal(k, "tried", r.Key, p.Key+"/s007")
	k.end(r, j, done)
	equal(k, "done after it", k.works(j, done), 9)
	equal(k, "hold", k.find(p.Key+"/s005").Hold, daybook.ReasonSerial)
}

func oneKeyForAll(k *kit) {
	j := subjectsJob(on("gateway"))
	p := k.listed(j, "2026-03-02", 40)
	for ended := 0; ended < 40; ended++ {
		k.look(j)
		k.end(k.one(), j, done)
		if n := k.number(`SELECT count(*) FROM daybook_live WHERE parent = '%s' AND hold = 'waiting for serial key'`, p.Key); n > 10 {
			k.Fatalf("%d wait for the key after %d were done", n, ended)
		}
	}
	k.look(j)
	equal(k, "state", k.find(p.Key).State, daybook.Done)
}
