package daybook

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The once-only protocol against a far side that keeps its own book, under events in any order: lost workers and late
// ones, questions answered late, decisions taken on an old picture of the row, people who cancel, ask, settle, replay
// and reopen, and a definition that changes. What is checked stands outside the rules: the book of the far side.
//
// The far side behaves like a payment service: it saves the answer it gave under a wire key and repeats it while it
// remembers, forgets it then, and knows for ever whether it charged. A request lands at most settles after it was sent,
// and nothing is sent without a lease. The person settles by what the book says once everything has landed.

// request is one call on its way.
type request struct {
	wireKey string
	lands   time.Time
	charges bool // what the far side will decide, if the key is new to it
}

type farSide struct {
	remembers time.Duration
	first     map[string]time.Time // when a wire key was first seen
	refused   map[string]bool      // saved refusals
	charged   map[string]bool      // never forgotten
	charges   int
	flying    []*request
}

func (f *farSide) knows(k string, at time.Time) bool {
	seen, ok := f.first[k]
	return ok && (f.remembers == Forever || f.remembers > 0 && at.Before(seen.Add(f.remembers)))
}

// land lets a request arrive and returns what the far side answers.
func (f *farSide) land(q *request) Result {
	f.flying = slices.DeleteFunc(f.flying, func(o *request) bool { return o == q })
	if f.knows(q.wireKey, q.lands) {
		if f.refused[q.wireKey] {
			return ResultPermanent
		}
		return ResultDone
	}
	f.first[q.wireKey], f.refused[q.wireKey] = q.lands, !q.charges
	if !q.charges {
		return ResultPermanent
	}
	f.charges++
	f.charged[q.wireKey] = true
	return ResultDone
}

func (f *farSide) sending(k string) bool {
	return slices.ContainsFunc(f.flying, func(q *request) bool { return q.wireKey == k })
}

// worker is one attempt as its process sees it.
type worker struct {
	run    *Run // as claimed
	lease  time.Time
	until  time.Time // its timeout
	sent   bool
	truth  Result // what the far side answered, or that nothing was sent
	begun  bool
	over   bool // it ended, by itself or told so
	report Outcome
}

// world is one ledger row, one far side, and whoever acts on them. pick chooses.
type world struct {
	pick    func(n int) int
	now     time.Time
	p       Policy
	asks    bool
	row     *Run
	far     farSide
	workers []*worker
	waiting []func() // decided and not yet applied
	bug     string   // planted
	lies    int
	ids     int
	story   []string
	past    past
}

type fault string

func (w *world) fail(format string, args ...any) {
	panic(fault(fmt.Sprintf(format, args...) + "\n" + strings.Join(w.story, "\n")))
}

func (w *world) note(format string, args ...any) {
	w.story = append(w.story, w.now.Sub(noon).String()+"  "+fmt.Sprintf(format, args...))
}

func (w *world) id(prefix string) string {
	w.ids++
	return fmt.Sprintf("%s%d", prefix, w.ids)
}

func (w *world) maybe() bool { return w.pick(2) == 1 }

// read is a look at the row.
func (w *world) read() *Run {
	r := *w.row
	if r.Effect != nil {
		e := *r.Effect
		r.Effect = &e
	}
	if r.Letter != nil {
		l := *r.Letter
		r.Letter = &l
	}
	w.past.tell(&r)
	return &r
}

// apply does what the store does with a transition, and checks what holds whatever happened.
func (w *world) apply(m Transition) bool {
	r := w.row
	switch {
	case r.State != m.From || r.Fence != m.Fence || r.Claim != m.Claim || r.Asking != m.Asking,
		m.On == OnLost && w.bug != "old picture" && !m.Lease.Equal(r.Lease),
		m.On == OnLost && w.bug != "old picture" && w.bug != "mark left behind" && !m.Began.Equal(r.BegunAt),
		m.On == OnLateReport && m.Close == nil && r.Letter != nil && r.Letter.State == LetterOpen,
		m.Close != nil && (r.Letter == nil || r.Letter.State != LetterOpen || r.Letter.ID != m.Close.ID),
		m.Letter != nil && m.Letter.ID != "" && (r.Letter.ID != m.Letter.ID || r.Letter.State != LetterOpen && r.Letter.State != LetterDismissed):
		w.note("%s to %s: stale", m.On, m.To)
		return false
	}
	w.note("%s: %s", m.On, moveText(m))
	if m.Letter != nil && m.Letter.ID == "" && m.Close == nil && r.Letter != nil && r.Letter.State == LetterOpen {
		w.fail("a second letter would be open")
	}
	faults := moveFaults(r, m)
	if m.Failures > len(w.p.Retry.Backoff)+1 {
		faults = append(faults, fmt.Sprintf("%d failures on a ladder of %d", m.Failures, len(w.p.Retry.Backoff)))
	}
	r.State, r.Reason, r.Failures, r.Losses, r.Again = m.To, m.Reason, m.Failures, m.Losses, m.Again
	r.Asking, r.Lease, r.BegunAt = "", time.Time{}, time.Time{}
	if m.On == OnHandBack {
		r.Attempts--
	}
	if m.To.Live() {
		r.Due = m.Due
	}
	if !m.From.Live() || !m.To.Live() {
		r.CancelledBy = ""
	}
	if m.Effect != nil {
		e := *m.Effect
		r.Effect = &e
	}
	if m.Close != nil {
		l := *m.Close
		r.Letter = &l
	}
	if m.Letter != nil {
		l := *m.Letter
		if l.ID == "" {
			l.ID = w.id("l")
		}
		r.Letter = &l
	}
	if len(faults) > 0 && w.bug != "mark left behind" {
		w.fail("%s", strings.Join(faults, "\n"))
	}
	w.check()
	return true
}

// check compares the row with the book of the far side.
func (w *world) check() {
	if w.far.charges > 1+w.lies {
		w.fail("charged %d times", w.far.charges)
	}
	if w.lies > 0 || w.bug == "mark left behind" || w.past.number > 0 {
		return
	}
	r, happened := w.row, w.far.charges > 0 || len(w.far.flying) > 0
	switch {
	case r.State == Done && w.far.charges == 0:
		w.fail("done, and the far side knows nothing of it")
	case r.State == Cancelled && happened:
		w.fail("cancelled, and the far side has it")
	case r.State == Dead && r.Letter.Kind == LetterFailed && happened:
		w.fail("a letter says that it did not happen, and the far side has it")
	}
}

// events are what may happen next; each does nothing when it cannot.
var events = []func(*world){
	(*world).pass, (*world).pass, (*world).flush, (*world).claim, (*world).claim, (*world).claim, (*world).begin, (*world).begin, (*world).send, (*world).send,
	(*world).end, (*world).end, (*world).die, (*world).renew, (*world).late, (*world).rescue, (*world).rescue, (*world).person, (*world).person,
	(*world).stop, (*world).letGo, (*world).change,
}

// soon applies a transition now or later, when others have acted.
func (w *world) soon(m Transition, then func(applied bool)) {
	do := func() {
		applied := w.apply(m)
		if then != nil {
			then(applied)
		}
	}
	if w.pick(4) == 0 {
		w.waiting = append(w.waiting, do)
		return
	}
	do()
}

func (w *world) flush() {
	if len(w.waiting) > 0 {
		i := w.pick(len(w.waiting))
		do := w.waiting[i]
		w.waiting = slices.Delete(w.waiting, i, i+1)
		do()
	}
}

func (w *world) pass() {
	steps := []time.Duration{time.Second, 10 * time.Second, 40 * time.Second, 5 * time.Minute, 26 * time.Minute, 22 * time.Hour, 30 * time.Hour}
	d := steps[w.pick(len(steps))]
	if due := w.row.Due.Sub(w.now); w.row.State.Live() && due > 0 && w.maybe() {
		d = due
	}
	to := w.now.Add(d)
	for { // what is under way lands in its order
		var next *request
		for _, q := range w.far.flying {
			if !q.lands.After(to) && (next == nil || q.lands.Before(next.lands)) {
				next = q
			}
		}
		if next == nil {
			break
		}
		w.now = next.lands
		answer := w.far.land(next)
		w.note("%s lands: %s", next.wireKey, answer)
		for _, k := range w.workers {
			if k.sent && k.truth == "" && k.run.WireKey() == next.wireKey && !w.far.sending(next.wireKey) {
				k.truth = answer
			}
		}
		w.check()
	}
	w.now = to
	w.note("time passes")
}

func (w *world) claim() {
	r := w.row
	if r.State != Scheduled && r.State != Retryable || r.Due.After(w.now) || r.Asking != "" {
		return
	}
	r.Lease = w.now.Add(30 * time.Second)
	if r.Reason == ReasonSettling {
		r.Asking = w.id("q")
		w.note("asked by %s", r.Asking)
		w.ask(w.read())
		return
	}
	r.State, r.Claim, r.CancelledBy, r.BegunAt = Running, w.id("c"), "", time.Time{}
	r.Fence = max(r.Fence, w.past.floor()) + 1
	r.Attempts++
	w.note("claimed, fence %d", r.Fence)
	w.workers = append(w.workers, &worker{run: w.read(), lease: r.Lease})
}

// ask puts the question for every wire key used, and settles by the answers, perhaps much later.
func (w *world) ask(r *Run) {
	if !w.asks {
		w.soon(r.Settle(nil, w.policy(), w.now, w.now), nil)
		return
	}
	asked := w.now
	var found []Finding
	for _, k := range r.Effect.WireKeys() {
		f := Finding{Answer: No, WireKey: k}
		if w.far.charged[f.WireKey] {
			f.Answer = Yes
		}
		if w.pick(4) == 0 {
			f.Answer = CannotTell
		}
		w.note("probe of %s: %s", f.WireKey, f.Answer)
		found = append(found, f)
	}
	do := func() { w.apply(r.Settle(found, w.policy(), asked, w.now)) }
	if w.pick(3) == 0 {
		w.waiting = append(w.waiting, do)
		return
	}
	do()
}

func (w *world) policy() Policy {
	p := w.p
	p.Asks = w.asks
	if w.bug == "impatient" {
		p.Settles = 0
	}
	if w.bug == "long memory" && p.Remembers > 0 {
		p.Remembers *= 2
	}
	return p
}

// worker picks one of those that are at a point.
func (w *world) worker(at func(*worker) bool) *worker {
	var some []*worker
	for _, k := range w.workers {
		if !k.over && at(k) {
			some = append(some, k)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[w.pick(len(some))]
}

func (w *world) begin() {
	k := w.worker(func(k *worker) bool { return !k.begun })
	if k == nil || w.now.After(k.lease) && w.bug != "late start" {
		return
	}
	if w.pick(8) == 0 {
		k.over = true
		w.soon(k.run.Next(Outcome{Result: ResultInterrupted}, w.policy(), w.now), nil)
		return
	}
	e, ok := k.run.Begin(w.policy(), w.now)
	if w.bug == "forgetful" && !ok && k.run.Effect.State == EffectUnknown {
		forgotten := *k.run
		forgotten.Effect = &StepRecord{Key: k.run.Key, Step: StepRun, State: EffectNotDone, Generation: k.run.Effect.Generation, FirstAt: k.run.Effect.FirstAt}
		e, ok = forgotten.Begin(w.policy(), w.now)
	}
	if !ok {
		k.over = true
		w.soon(k.run.Unsettled(w.policy(), w.now), nil)
		return
	}
	if w.row.State != Running || w.row.Fence != k.run.Fence || w.row.Claim != k.run.Claim {
		k.over = true
		return
	}
	mark := *e
	w.row.BegunAt, w.row.Effect = w.now, &mark
	w.note("begun under %s, fence %d", w.row.WireKey(), k.run.Fence)
	if w.pick(8) == 0 { // the mark was written, and the process is told to stop before it did anything
		k.over = true
		k.run.Effect = e
		m := k.run.Next(Outcome{Result: ResultInterrupted}, w.policy(), w.now)
		w.soon(m, nil)
		return
	}
	k.begun, k.run.Effect, k.run.BegunAt, k.truth, k.until = true, e, w.now, ResultNotDone, w.now.Add(50*time.Minute)
}

// send calls the far side. The answer comes at once, or the request is under way for a while.
func (w *world) send() {
	k := w.worker(func(k *worker) bool { return k.begun && !k.sent })
	if k == nil || w.now.After(k.lease) || w.now.After(k.until) {
		return
	}
	k.sent = true
	q := &request{wireKey: k.run.WireKey(), lands: w.now, charges: w.pick(3) > 0}
	if w.far.refused[q.wireKey] && k.run.Effect.Generation > 1 && !k.run.Effect.Open && w.far.knows(q.wireKey, w.now) && k.run.Effect.State == EffectRefused {
		w.fail("a refused wire key is sent again")
	}
	if w.maybe() && !w.far.sending(q.wireKey) {
		k.truth = w.far.land(q)
		w.note("sent %s: %s", q.wireKey, k.truth)
		w.check()
		return
	}
	delays := []time.Duration{time.Second, time.Minute, 4*time.Minute + 59*time.Second}
	q.lands = w.now.Add(delays[w.pick(len(delays))])
	k.truth = ""
	w.far.flying = append(w.far.flying, q)
	w.note("sent %s, lands %s later", q.wireKey, q.lands.Sub(w.now))
}

// says is what a worker may honestly report.
func (w *world) says(k *worker) Outcome {
	honest := []Result{ResultUnclear, ResultUnknown}
	if k.truth != "" {
		honest = append(honest, k.truth, k.truth, k.truth)
	}
	if k.begun && w.far.sending(k.run.WireKey()) {
		honest = append(honest, ResultBusy)
	}
	o := Outcome{Result: honest[w.pick(len(honest))], Error: "said so", Interrupted: w.pick(4) == 0}
	if w.pick(4) == 0 {
		o.RetryAfter = 10 * time.Minute
	}
	return o
}

func (w *world) end() {
	k := w.worker(func(k *worker) bool { return k.begun })
	if k == nil {
		return
	}
	if w.maybe() {
		k.run.CancelledBy = w.row.CancelledBy // told by a renewal
	}
	k.over = true
	k.report = w.says(k)
	w.note("fence %d reports %s", k.run.Fence, k.report.Result)
	w.soon(k.run.Next(k.report, w.policy(), w.now), func(applied bool) {
		if !applied {
			w.hear(k)
		}
	})
}

// die ends a worker that tells nobody.
func (w *world) die() {
	if k := w.worker(func(k *worker) bool { return true }); k != nil && w.pick(2) == 0 {
		k.over = true
		w.note("fence %d dies", k.run.Fence)
	}
}

func (w *world) renew() {
	k := w.worker(func(k *worker) bool { return true })
	if k == nil {
		return
	}
	if w.row.State != Running || w.row.Fence != k.run.Fence || w.row.Claim != k.run.Claim {
		k.over = true // its context is cancelled
		return
	}
	w.row.Lease = w.now.Add(30 * time.Second)
	k.lease = w.row.Lease
	w.note("renewed, fence %d", k.run.Fence)
}

// late is a report of a worker that was declared over.
func (w *world) late() {
	var some []*worker
	for _, k := range w.workers {
		if k.over && k.begun {
			some = append(some, k)
		}
	}
	if len(some) == 0 {
		return
	}
	k := some[w.pick(len(some))]
	if k.report.Result == "" || w.maybe() {
		k.report = w.says(k)
	}
	w.hear(k)
}

func (w *world) hear(k *worker) {
	r := w.read()
	if r.Fence != k.run.Fence || r.Claim != k.run.Claim || r.State == Running {
		return
	}
	if m, ok := r.Late(k.report, w.policy(), w.now); ok {
		w.note("fence %d reports late: %s", k.run.Fence, k.report.Result)
		w.soon(m, func(applied bool) {
			if again, ok := w.read().Late(k.report, w.policy(), w.now); applied && ok && w.row.Fence == k.run.Fence && k.report.Result != ResultDone {
				w.fail("the same report was taken twice: %s", moveText(again))
			}
		})
	} else if r.State != Done && k.report.Result == ResultDone && (r.State == Retryable || r.State == Dead && r.Letter.State == LetterOpen) {
		w.fail("a late done was refused")
	}
}

func (w *world) rescue() {
	r := w.read()
	if r.Lease.IsZero() || !r.Lease.Before(w.now) {
		return
	}
	if r.State == Running {
		w.soon(r.Next(Outcome{Result: ResultLost}, w.policy(), w.now), nil)
	} else if r.Asking != "" {
		w.row.Asking, w.row.Lease = "", time.Time{}
		w.note("the question is given up")
	}
}

// person does what the row allows, and knows the truth.
func (w *world) person() {
	r := w.read()
	unread := len(w.far.flying) > 0
	var m Transition
	var err error
	switch {
	case r.State == Cancelled, r.State == Dead && r.Letter.State == LetterDismissed:
		m, err = r.Reopen("ops", "", w.now)
	case r.State == Scheduled, r.State == Retryable:
		if w.pick(4) > 0 {
			return
		}
		m, err = r.Cancel("ops", "", w.now)
	case r.State != Dead:
		return
	case r.Letter.Kind == LetterUnknown && w.pick(3) == 0:
		m, err = r.Resolve(AsAsk, w.policy(), "ops", "", w.now)
	case r.Letter.Kind == LetterUnknown && w.bug == "liar" && w.far.charges > 0:
		w.lies++
		m, err = r.Resolve(AsNotDone, w.policy(), "ops", "", w.now)
	case r.Letter.Kind == LetterUnknown && unread && w.bug != "hasty":
		return
	case r.Letter.Kind == LetterUnknown && w.far.charges > 0:
		m, err = r.Resolve(AsDone, w.policy(), "ops", "", w.now)
	case r.Letter.Kind == LetterUnknown:
		m, err = r.Resolve(AsNotDone, w.policy(), "ops", "", w.now)
	case w.pick(3) == 0:
		m, err = r.Dismiss("ops", "", w.now)
	default:
		m, err = r.Replay("ops", "", w.now)
	}
	if err == nil {
		w.soon(m, nil)
	}
}

// stop asks for the end of the current attempt.
func (w *world) stop() {
	if w.row.State == Running && w.pick(3) == 0 {
		w.row.CancelledBy = "ops"
		w.note("asked to stop")
	}
}

// letGo forgets what was decided and not applied: its process died.
func (w *world) letGo() {
	if len(w.waiting) > 0 && w.pick(4) == 0 {
		w.waiting = w.waiting[1:]
	}
}

// change reloads a definition that has a probe, or has none.
func (w *world) change() {
	if w.pick(6) == 0 {
		w.asks = !w.asks && w.p.Asks
	}
}

// live plays a life of some events.
func live(w *world, length int) {
	w.now = noon
	w.row = &Run{Key: "renew:2026-10-26", Job: "renew", Priority: P0, Effects: Once, State: Scheduled, Due: noon, NotBefore: noon, CreatedAt: noon}
	w.far = farSide{remembers: w.p.Remembers, first: map[string]time.Time{}, refused: map[string]bool{}, charged: map[string]bool{}}
	w.asks = w.p.Asks
	do := events
	if w.past.forgets {
		do = slices.Concat(events, forgetting)
	}
	for range length {
		do[w.pick(len(do))](w)
	}
}

// policies of the worlds.
var policies = []string{"", "probe", "remembers", "probe remembers", "forever", "probe forever", "remembers no-ladder"}

func TestChargedAtMostOnce(t *testing.T) {
	for _, words := range policies {
		t.Run(words, func(t *testing.T) {
			p := policyFrom(t, words)
			rapid.Check(t, func(rt *rapid.T) {
				w := &world{p: p, pick: func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") }}
				defer report(rt, w)
				live(w, rapid.IntRange(20, 150).Draw(rt, "length"))
			})
		})
	}
}

// A person who says what is not so is believed: one further charge a decision, and no more.
func TestChargedAtMostOnceADecision(t *testing.T) {
	for _, words := range policies {
		p := policyFrom(t, words)
		rapid.Check(t, func(rt *rapid.T) {
			w := &world{p: p, bug: "liar", pick: func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") }}
			defer report(rt, w)
			live(w, 150)
		})
	}
}

func report(t *rapid.T, w *world) {
	switch f := recover().(type) {
	case nil:
	case fault:
		t.Fatal(string(f))
	default:
		panic(f)
	}
}

var lives = flag.Int("lives", 200, "how many lives of each kind TestManyLives plays")

// The same by seed, which is faster than it is to shrink: -lives=1000000 for a long night.
func TestManyLives(t *testing.T) {
	for _, words := range policies {
		for seed := range uint64(*lives) {
			if f := play(policyFrom(t, words), "", seed); f != "" {
				t.Fatalf("policy %q, seed %d: %s", words, seed, f)
			}
		}
	}
}

// A rescue that did not see that the work was marked begun leaves the mark behind. What is shown is wrong for a while; the
// charge is not repeated.
func TestAMarkLeftBehind(t *testing.T) {
	for _, words := range policies {
		for seed := range uint64(*lives) {
			if f := play(policyFrom(t, words), "mark left behind", seed); f != "" {
				t.Fatalf("policy %q, seed %d: %s", words, seed, f)
			}
		}
	}
}

// play plays one life and returns what was found wrong.
func play(p Policy, bug string, seed uint64) fault { return playWorld(p, bug, past{}, seed) }

func playWorld(p Policy, bug string, past past, seed uint64) (found fault) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{p: p, bug: bug, pick: rng.IntN, past: past}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fault)
			if !ok {
				panic(r)
			}
			found = f
		}
	}()
	live(w, 200)
	return ""
}

// The checkers see what they are there for: each planted bug is found within some lives.
func TestPlantedBugs(t *testing.T) {
	for _, c := range []struct{ bug, policy string }{
		{"impatient", "probe"},       // a probe's no counts at once
		{"long memory", "remembers"}, // a job says that the far side remembers longer than it does
		{"forgetful", "remembers"},   // what may not begin is begun
		{"hasty", ""},                // a person looks before everything has landed
		{"old picture", "probe"},     // a rescue that does not compare what it saw
	} {
		t.Run(c.bug, func(t *testing.T) {
			for seed := range uint64(20_000) {
				if f := play(policyFrom(t, c.policy), c.bug, seed); f != "" {
					t.Logf("seed %d: %s", seed, strings.SplitN(string(f), "\n", 2)[0])
					return
				}
			}
			t.Error("not found")
		})
	}
}
