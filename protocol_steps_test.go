package daybook

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The protocol of steps against far sides that keep their own books, under events in any order, as protocol_test.go does it
// for one effect a run. A run has two effects, each with a far side of its own that is asked by the work itself, by the job,
// or by nobody. Attempts die anywhere, lose their lease and go on, and report late. The books are the judges.

// errand is one attempt as its process sees it: at which effect it is, and what it has done about it.
type errand struct {
	run   *Run // as claimed, with the records as it knows them
	lease time.Time
	at    int // index of the effect
	over  bool
	began bool      // marked, and not sent
	sent  bool      // sent, and its end not told
	truth Result    // what the far side answered; empty: nothing yet
	until time.Time // nothing is sent after
	said  Outcome   // of the step whose end was told last
	step  string
}

// ledger is one row with its steps, and whoever acts on it.
type ledger struct {
	pick    func(n int) int
	now     time.Time
	p       Policy // the job's
	says    StepPolicy
	row     *Run
	far     [2]farSide
	errands []*errand
	bug     string
	ids     int
	story   []string
	past    past
}

var stepNames = [2]string{"charge", "receipt"}

func (l *ledger) note(format string, args ...any) {
	l.story = append(l.story, l.now.Sub(noon).String()+"  "+fmt.Sprintf(format, args...))
}

func (l *ledger) fail(format string, args ...any) {
	panic(fault(fmt.Sprintf(format, args...) + "\n" + strings.Join(l.story, "\n")))
}

func (l *ledger) id(prefix string) string {
	l.ids++
	return fmt.Sprintf("%s%d", prefix, l.ids)
}

func (l *ledger) read() *Run {
	r := *l.row
	r.Records = nil
	for _, e := range l.row.Records {
		c := *e
		r.Records = append(r.Records, &c)
	}
	if r.Letter != nil {
		c := *r.Letter
		r.Letter = &c
	}
	l.past.tell(&r)
	return &r
}

// put writes a record, as the store does it for whoever holds the run; false: it is not held, or another wrote before.
func (l *ledger) put(k *errand, e *StepRecord) bool {
	r := l.row
	if r.State != Running || r.Fence != k.run.Fence || r.Claim != k.run.Claim || r.Marks != k.run.Marks {
		return false
	}
	l.row = r.With(e)
	l.row.Marks++
	k.run = k.run.With(e)
	k.run.Marks++
	l.note("fence %d: %s is %s@%d", k.run.Fence, e.Step, e.State, e.Generation)
	return true
}

func (l *ledger) apply(m Transition) bool {
	r := l.row
	switch {
	case r.State != m.From || r.Fence != m.Fence || r.Claim != m.Claim || r.Asking != m.Asking || r.CancelledBy != m.CancelledBy,
		r.Marks != m.Marks,
		m.On == OnLost && !m.Lease.Equal(r.Lease),
		m.On == OnLateReport && m.Close == nil && r.Letter != nil && r.Letter.State == LetterOpen && m.Letter == nil,
		m.Close != nil && (r.Letter == nil || r.Letter.State != LetterOpen || r.Letter.ID != m.Close.ID):
		l.note("%s to %s: stale", m.On, m.To)
		return false
	}
	l.note("%s: %s", m.On, moveText(m))
	if !slices.Contains(Arrows, Arrow{m.From, m.On, m.To}) {
		l.fail("no such arrow: %s %s %s", m.From, m.On, m.To)
	}
	r.State, r.Reason, r.Failures, r.Losses, r.Asking, r.Lease, r.BegunAt = m.To, m.Reason, m.Failures, m.Losses, "", time.Time{}, time.Time{}
	if m.To.Live() {
		r.Due = m.Due
	}
	if !m.From.Live() || !m.To.Live() {
		r.CancelledBy = ""
	}
	for _, e := range m.Steps {
		l.row = l.row.With(e)
	}
	r = l.row
	if len(m.Steps) > 0 {
		r.Marks++
	}
	if m.Close != nil {
		c := *m.Close
		r.Letter = &c
	}
	if m.Letter != nil {
		c := *m.Letter
		if c.ID == "" {
			c.ID = l.id("l")
		}
		r.Letter = &c
	}
	l.check()
	return true
}

// check compares the row with the books.
func (l *ledger) check() {
	r := l.row
	if l.says.Optional { // then the receipt is the other way of the charge
		switch both := l.far[0].charges + l.far[1].charges; {
		case both > 1:
			l.fail("it happened both ways")
		case both == 0 && r.State == Done:
			l.fail("the run is done, and it happened in no way")
		}
	}
	for i, name := range stepNames {
		f := &l.far[i]
		if f.charges > 1 {
			l.fail("%s happened %d times", name, f.charges)
		}
		e := r.StepRecord(name)
		happened := f.charges > 0 || len(f.flying) > 0
		switch {
		case e != nil && e.State == EffectDone && f.charges == 0:
			l.fail("%s is done, and the far side knows nothing of it", name)
		case r.State == Done && f.charges == 0 && !l.says.Optional:
			l.fail("the run is done, and %s never happened", name)
		case l.past.number > 0:
		case r.State == Dead && r.Letter.Kind == LetterFailed && happened && (e == nil || e.State != EffectDone):
			l.fail("a letter says that %s did not happen, and the far side has it", name)
		case r.State == Cancelled && happened:
			l.fail("cancelled, and the far side has %s", name)
		}
	}
}

func (l *ledger) pass() {
	durations := []time.Duration{time.Second, 10 * time.Second, 40 * time.Second, 5 * time.Minute, 26 * time.Minute, 22 * time.Hour, 30 * time.Hour}
	d := durations[l.pick(len(durations))]
	if due := l.row.Due.Sub(l.now); l.row.State.Live() && due > 0 && l.pick(2) == 0 {
		d = due
	}
	to := l.now.Add(d)
	for {
		var next *request
		side := 0
		for i := range l.far {
			for _, q := range l.far[i].flying {
				if !q.lands.After(to) && (next == nil || q.lands.Before(next.lands)) {
					next, side = q, i
				}
			}
		}
		if next == nil {
			break
		}
		l.now = next.lands
		answer := l.far[side].land(next)
		l.note("%s lands: %s", next.wireKey, answer)
		for _, k := range l.errands {
			if k.sent && k.truth == "" && k.at == side && k.wireKey() == next.wireKey && !l.far[side].sending(next.wireKey) {
				k.truth = answer
			}
		}
		l.check()
	}
	l.now = to
}

func (k *errand) wireKey() string { return k.run.StepRecord(stepNames[k.at]).WireKey() }

func (l *ledger) claim() {
	r := l.row
	if r.State != Scheduled && r.State != Retryable || r.Due.After(l.now) || r.Asking != "" {
		return
	}
	r.Lease = l.now.Add(30 * time.Second)
	if r.Reason == ReasonSettling {
		r.Asking = l.id("q")
		l.question(l.read())
		return
	}
	r.State, r.Claim, r.CancelledBy = Running, l.id("c"), ""
	r.Fence = max(r.Fence, l.past.floor()) + 1
	r.Attempts++
	l.note("claimed, fence %d", r.Fence)
	l.errands = append(l.errands, &errand{run: l.read(), lease: r.Lease, until: l.now.Add(50 * time.Minute)})
}

// question is asked from outside, about every open effect that the work does not ask for itself.
func (l *ledger) question(r *Run) {
	asked := l.now
	found := map[string][]Finding{}
	for _, e := range r.OpenSteps() {
		if !e.Says.Asks {
			found[e.Step] = l.probe(e)
		}
	}
	if l.pick(3) == 0 {
		l.now = l.now.Add(20 * time.Second)
	}
	l.apply(r.SettleSteps(found, l.policy(), asked, l.now))
}

func (l *ledger) probe(e *StepRecord) []Finding {
	f := &l.far[slices.Index(stepNames[:], e.Step)]
	var found []Finding
	for _, w := range e.WireKeys() {
		a := Finding{Answer: No, WireKey: w}
		if f.charged[w] {
			a.Answer = Yes
		}
		if l.pick(4) == 0 {
			a.Answer = CannotTell
		}
		l.note("probe of %s: %s", w, a.Answer)
		found = append(found, a)
	}
	return found
}

func (l *ledger) policy() Policy {
	p := l.p
	if l.bug == "impatient" {
		p.Settles = 0
	}
	return p
}

func (l *ledger) errand(at func(*errand) bool) *errand {
	var some []*errand
	for _, k := range l.errands {
		if !k.over && at(k) {
			some = append(some, k)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[l.pick(len(some))]
}

// come lets an attempt come to its next effect, ask about it, or end.
func (l *ledger) come() {
	k := l.errand(func(k *errand) bool { return !k.began && !k.sent })
	if k == nil {
		return
	}
	if k.at == len(stepNames) {
		l.end(k, Outcome{Result: ResultDone})
		return
	}
	ask := StepAsk{Step: stepNames[k.at], Says: l.says}
	if k.at > 0 {
		ask.Says.Optional = false
	}
	if k.at == 0 && l.pick(10) == 0 { // it fails before it comes to anything
		l.end(k, Outcome{Result: ResultUnclear, Error: "failed before"})
		return
	}
	a := k.run.ComeTo(ask, l.policy(), l.now)
	if l.bug == "forgetful" && a.Do == StepStop && a.Record != nil && a.Record.State == EffectUnknown {
		a = StepAnswer{Do: StepBegin, Record: a.Record.begun(k.run, ask, l.now), Write: true}
	}
	if e := k.run.StepRecord(ask.Step); a.Do == StepStop && k.run.CancelledBy == "" && (l.bug == "eager" && k.at == 1 && e == nil || l.bug == "returning" && k.at == 0 && e.State == EffectNotDone) {
		if e == nil {
			e = &StepRecord{Key: k.run.Key, Step: ask.Step, Generation: 1, Order: len(k.run.Records) + 1, State: EffectNotDone}
		}
		a = StepAnswer{Do: StepBegin, Record: e.begun(k.run, ask, l.now), Write: true}
	}
	if a.Write && !l.put(k, a.Record) {
		k.over = true // it lost the run, or reads again: the next attempt is as good
		return
	}
	switch a.Do {
	case StepSkip:
		k.skip(l)
	case StepStop:
		l.told(k, a.Err)
	case StepBegin:
		k.began = true
	case StepAsks:
		asked := l.now
		next, _ := k.run.StepFound(a.Record, l.probe(a.Record), l.policy(), asked, l.now)
		if !l.put(k, next) {
			k.over = true
			return
		}
		switch b := next.Stepped(); b.Do {
		case StepSkip:
			k.skip(l)
		case StepBegin:
			k.began = true
		case StepStop:
			l.told(k, b.Err)
		}
	}
}

// skip goes on behind an effect that is done: it needs no other way.
func (k *errand) skip(l *ledger) {
	if k.at++; l.says.Optional {
		k.at = len(stepNames)
	}
}

// told ends an attempt that was told that an effect did not happen, or may not begin. Where there is another way it is taken, by work that
// does not care also when nothing is known.
func (l *ledger) told(k *errand, err error) {
	o := OutcomeOf(err)
	if l.says.Optional && k.at == 0 && (o.Result == ResultNotDone || o.Result == ResultPermanent || l.pick(2) == 0) {
		k.at++
		return
	}
	l.end(k, o)
}

func (l *ledger) send() {
	k := l.errand(func(k *errand) bool { return k.began })
	if k == nil || l.now.After(k.lease) || l.now.After(k.until) {
		return
	}
	f := &l.far[k.at]
	k.began, k.sent = false, true
	q := &request{wireKey: k.wireKey(), lands: l.now, charges: l.pick(3) > 0}
	if l.pick(2) == 0 && !f.sending(q.wireKey) {
		k.truth = f.land(q)
		l.note("sent %s: %s", q.wireKey, k.truth)
		l.check()
		return
	}
	delays := []time.Duration{time.Second, time.Minute, 4*time.Minute + 59*time.Second}
	q.lands, k.truth = l.now.Add(delays[l.pick(len(delays))]), ""
	f.flying = append(f.flying, q)
	l.note("sent %s, lands %s later", q.wireKey, q.lands.Sub(l.now))
}

// tell ends a step. One whose run was lost meanwhile tells it late.
func (l *ledger) tell() {
	k := l.errand(func(k *errand) bool { return k.sent || k.began })
	if k == nil {
		return
	}
	honest := []Result{ResultUnclear, ResultUnknown}
	switch {
	case k.began:
		honest = []Result{ResultNotDone}
	case k.truth != "":
		honest = append(honest, k.truth, k.truth, k.truth)
	}
	o := Outcome{Result: honest[l.pick(len(honest))], Error: "said so"}
	e := k.run.StepRecord(stepNames[k.at])
	k.began, k.sent, k.said, k.step = false, false, o, e.Step
	next := k.run.StepEnded(e, o, l.now)
	if !l.put(k, next) {
		k.over = true
		l.late(k)
		return
	}
	if next.State == EffectDone {
		k.skip(l)
		return
	}
	if l.pick(5) == 0 { // the work does not care, and goes on or says that all is well
		k.at++
		return
	}
	l.told(k, next.Stepped().Err)
}

func (l *ledger) end(k *errand, o Outcome) {
	k.over = true
	l.note("fence %d ends: %s", k.run.Fence, o.Result)
	r := *k.run
	r.CancelledBy = l.row.CancelledBy
	for _, e := range r.Records { // an attempt that skipped what failed does not say that all is well
		if o.Result == ResultDone && e.State != EffectDone && !l.says.Optional {
			o.Result = ResultUnclear
		}
	}
	if o.Result == ResultDone && len(r.Records) < len(stepNames) && !l.says.Optional {
		o.Result = ResultUnclear
	}
	l.apply(r.Next(o, l.policy(), l.now))
}

// again is a late report told again, or for the first time by somebody declared over.
func (l *ledger) again() {
	var some []*errand
	for _, k := range l.errands {
		if k.over && k.step != "" {
			some = append(some, k)
		}
	}
	if len(some) > 0 {
		l.late(some[l.pick(len(some))])
	}
}

func (l *ledger) late(k *errand) {
	r := l.read()
	if r.Fence != k.run.Fence || r.Claim != k.run.Claim || r.State == Running {
		return
	}
	if m, ok := r.LateStep(k.step, k.said, l.policy(), l.now); ok {
		l.note("fence %d reports %s late: %s", k.run.Fence, k.step, k.said.Result)
		l.apply(m)
	}
}

func (l *ledger) die() {
	if k := l.errand(func(*errand) bool { return true }); k != nil && l.pick(2) == 0 {
		k.over = true
		if k.sent && k.truth != "" && l.pick(2) == 0 { // its report is still on its way
			k.said, k.step = Outcome{Result: k.truth, Error: "said so"}, stepNames[k.at]
		}
		l.note("fence %d dies", k.run.Fence)
	}
}

func (l *ledger) renew() {
	k := l.errand(func(*errand) bool { return true })
	if k == nil || l.row.State != Running || l.row.Fence != k.run.Fence || l.row.Claim != k.run.Claim {
		return
	}
	l.row.Lease = l.now.Add(30 * time.Second)
	k.lease = l.row.Lease
}

func (l *ledger) rescue() {
	r := l.read()
	if r.Lease.IsZero() || !r.Lease.Before(l.now) {
		return
	}
	if r.State == Running {
		l.apply(r.Next(Outcome{Result: ResultLost}, l.policy(), l.now))
	} else if r.Asking != "" {
		l.row.Asking, l.row.Lease = "", time.Time{}
	}
}

func (l *ledger) person() {
	r := l.read()
	var m Transition
	var err error
	switch {
	case r.State == Cancelled, r.State == Dead && r.Letter.State == LetterDismissed:
		m, err = r.Reopen("ops", "", l.now)
	case r.State == Scheduled, r.State == Retryable:
		if l.pick(6) > 0 {
			return
		}
		m, err = r.Cancel("ops", "", l.now)
	case r.State != Dead:
		return
	case r.Letter.Kind == LetterUnknown:
		open := r.OpenSteps()
		if len(open) == 0 {
			l.fail("a letter of kind unknown, and no step is open")
		}
		e := open[l.pick(len(open))]
		i := slices.Index(stepNames[:], e.Step)
		switch {
		case l.pick(3) == 0:
			m, err = r.ResolveStep(e.Step, AsAsk, l.policy(), "ops", "", l.now)
		case len(l.far[i].flying) > 0 && l.bug != "hasty":
			return
		case l.far[i].charges > 0:
			m, err = r.ResolveStep(e.Step, AsDone, l.policy(), "ops", "", l.now)
		default:
			m, err = r.ResolveStep(e.Step, AsNotDone, l.policy(), "ops", "", l.now)
		}
	case l.pick(3) == 0:
		m, err = r.Dismiss("ops", "", l.now)
	default:
		m, err = r.Replay("ops", "", l.now)
	}
	if err == nil {
		l.apply(m)
	}
}

func (l *ledger) stop() {
	if l.row.State == Running && l.pick(3) == 0 {
		l.row.CancelledBy = "ops"
	}
}

var stepEvents = []func(*ledger){
	(*ledger).pass, (*ledger).pass, (*ledger).claim, (*ledger).claim, (*ledger).claim, (*ledger).come, (*ledger).come, (*ledger).come,
	(*ledger).send, (*ledger).send, (*ledger).tell, (*ledger).tell, (*ledger).again, (*ledger).die, (*ledger).renew, (*ledger).rescue,
	(*ledger).rescue, (*ledger).person, (*ledger).person, (*ledger).stop,
}

// playSteps plays one life and returns what was found wrong, and whether the run came to its end.
func playSteps(p Policy, says StepPolicy, bug string, seed uint64) (done bool, found fault) {
	return playLedger(p, says, bug, past{}, seed)
}

func playLedger(p Policy, says StepPolicy, bug string, past past, seed uint64) (done bool, found fault) {
	rng := rand.New(rand.NewPCG(seed, 2))
	l := &ledger{p: p, says: says, bug: bug, pick: rng.IntN, now: noon, past: past}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fault)
			if !ok {
				panic(r)
			}
			found = f
		}
	}()
	l.row = &Run{Key: "renew:2026-10-26", Job: "renew", Priority: P0, Effects: Once, Steps: true, State: Scheduled, Due: noon, NotBefore: noon, CreatedAt: noon}
	remembers := says.Remembers
	if remembers == 0 {
		remembers = p.Remembers
	}
	for i := range l.far {
		l.far[i] = farSide{remembers: remembers, first: map[string]time.Time{}, refused: map[string]bool{}, charged: map[string]bool{}}
	}
	do := stepEvents
	if past.forgets {
		do = slices.Concat(stepEvents, stepForgetting)
	}
	for range 300 {
		do[l.pick(len(do))](l)
	}
	return l.row.State == Done, ""
}

// stepWorlds are who is asked about an open effect, and how long the far side remembers.
var stepWorlds = []struct {
	name, job string
	says      StepPolicy
}{
	{"nobody", "", StepPolicy{}},
	{"job", "probe", StepPolicy{}},
	{"job remembers", "probe remembers", StepPolicy{}},
	{"work", "", StepPolicy{Asks: true}},
	{"work remembers", "", StepPolicy{Asks: true, Remembers: 24 * time.Hour}},
	{"memory", "", StepPolicy{Remembers: 24 * time.Hour}},
	{"for ever", "forever", StepPolicy{}},
	{"both", "probe remembers", StepPolicy{Asks: true}},
}

// otherWays are worlds in which the receipt is the other way of the charge. A ledger that forgot is not told of them: it asks about each
// effect by itself.
var otherWays = []struct {
	name, job string
	says      StepPolicy
}{
	{"another way", "", StepPolicy{Optional: true}},
	{"another way, job", "probe", StepPolicy{Optional: true}},
	{"another way, job remembers", "probe remembers", StepPolicy{Optional: true}},
	{"another way, work", "", StepPolicy{Asks: true, Optional: true}},
	{"another way, memory", "", StepPolicy{Remembers: 24 * time.Hour, Optional: true}},
}

func TestStepsHappenAtMostOnce(t *testing.T) {
	for _, world := range slices.Concat(stepWorlds, otherWays) {
		t.Run(world.name, func(t *testing.T) {
			done := 0
			for seed := range uint64(*lives) * 5 {
				ok, f := playSteps(policyFrom(t, world.job), world.says, "", seed)
				if f != "" {
					t.Fatalf("seed %d: %s", seed, f)
				}
				if ok {
					done++
				}
			}
			if done < *lives/2 {
				t.Errorf("only %d of %d lives came to their end", done, *lives*5)
			}
		})
	}
}

// The judges see what they are there for.
func TestPlantedBugsOfSteps(t *testing.T) {
	for _, c := range []struct {
		bug, job string
		says     StepPolicy
	}{
		{"impatient", "probe", StepPolicy{}},                     // a no counts at once
		{"forgetful", "", StepPolicy{Remembers: 24 * time.Hour}}, // what may not begin is begun
		{"hasty", "", StepPolicy{}},                              // a person looks before everything has landed
		{"eager", "probe", StepPolicy{Optional: true}},           // the other way begins although nothing is known
		{"returning", "", StepPolicy{Optional: true}},            // and what was gone on without begins again
	} {
		t.Run(c.bug, func(t *testing.T) {
			for seed := range uint64(20_000) {
				if _, f := playSteps(policyFrom(t, c.job), c.says, c.bug, seed); f != "" {
					t.Logf("seed %d: %s", seed, strings.SplitN(string(f), "\n", 2)[0])
					return
				}
			}
			t.Error("not found")
		})
	}
}

// What an attempt started may have outlived it: then the last try of what it left open ended only with that, also of a step whose
// end was told before.
func TestStepsThatOutlivedTheirAttempt(t *testing.T) {
	start := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, outlived := range []bool{false, true} {
		r := &Run{Key: "renew:2026-03-01", Job: "renew", State: Running, Steps: true, Fence: 1, Attempts: 1, Records: []*StepRecord{
			{Key: "renew:2026-03-01", Step: "told", State: EffectUnknown, Fence: 1, Seen: 1, Generation: 1, EndedAt: start, Error: "signal killed"},
			{Key: "renew:2026-03-01", Step: "untold", State: EffectBegun, Fence: 1, Seen: 1, Generation: 1},
		}}
		now := start.Add(time.Hour)
		m := r.Next(Outcome{Result: ResultUnknown, Outlived: outlived}, Policy{Asks: true, Settles: time.Minute}, now)
		want := map[string]time.Time{"told": start, "untold": now}
		if outlived {
			want["told"] = now
		}
		for _, e := range m.Steps {
			r = r.With(e)
		}
		for _, e := range r.Records {
			if !e.EndedAt.Equal(want[e.Step]) || e.State != EffectUnknown || e.Error == "" {
				t.Errorf("outlived %v: %+v, want the end at %s", outlived, e, want[e.Step])
			}
		}
		if m.Reason != ReasonSettling {
			t.Errorf("%s %s", m.To, m.Reason)
		}
	}
}
