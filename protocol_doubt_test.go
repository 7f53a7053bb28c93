package daybook

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The same worlds with a ledger that forgets: the row is put back to what it was, those who worked on it are gone, and the far
// sides know everything. The books are the judges, as before.

// past is what a ledger remembers of itself, and what is known of its forgetting.
type past struct {
	forgets bool
	bug     string // planted
	saved   *Run   // a backup
	at      time.Time
	knew    []*Lapse // of the backup
	lapses  []*Lapse // of the ledger, the newest first
	number  int64    // of the newest that there ever was
}

func (p *past) tell(r *Run) {
	if p.bug != "no doubt" {
		r.Recall(p.lapses)
	}
}

func (p *past) floor() int64 { return FenceFloor(p.number) }

func (p *past) keep(r *Run, now time.Time) { p.saved, p.at, p.knew = r, now, p.lapses }

// forget returns the backup, and makes it a lapse. Nil: there is none, or more happened since than is asked for afterwards.
func (p *past) forget(now *Run, at time.Time, knows func(r *Run, step string) int) *Run {
	if p.saved == nil {
		return nil
	}
	for _, step := range append(stepNames[:], StepRun) {
		if knows(now, step)-max(knows(p.saved, step), 1) > forgottenKeys {
			return nil
		}
	}
	p.number++
	l := &Lapse{Number: p.number, Since: p.at, FoundAt: at}
	if p.bug == "counts from now" {
		l.Since = at
	}
	p.lapses = append([]*Lapse{l}, p.knew...)
	return p.saved
}

func generationOf(r *Run, step string) int {
	if e := r.StepRecord(step); e != nil {
		return e.Generation
	}
	return 1
}

var forgetting = []func(*world){(*world).backUp, (*world).backUp, (*world).forget, (*world).question, (*world).question}

func (w *world) backUp() { w.past.keep(w.read(), w.now) }

func (w *world) forget() {
	if w.pick(6) > 0 {
		return
	}
	r := w.past.forget(w.row, w.now, generationOf)
	if r == nil {
		return
	}
	w.note("forgets what happened since %s: %s again", w.past.at.Sub(noon), r.State)
	c := *r
	w.row, w.waiting = &c, nil
	w.row = w.read()
	for _, k := range w.workers {
		k.over = true
	}
}

func (w *world) question() {
	if m, ok := w.read().Question(w.policy(), w.now); ok {
		w.soon(m, nil)
	}
}

var stepForgetting = []func(*ledger){(*ledger).backUp, (*ledger).backUp, (*ledger).forget, (*ledger).doubt, (*ledger).doubt}

func (l *ledger) backUp() { l.past.keep(l.read(), l.now) }

func (l *ledger) forget() {
	if l.pick(12) > 0 {
		return
	}
	r := l.past.forget(l.row, l.now, generationOf)
	if r == nil {
		return
	}
	l.note("forgets what happened since %s: %s again", l.past.at.Sub(noon), r.State)
	l.row = r
	l.row = l.read()
	for _, k := range l.errands {
		k.over = true
	}
}

func (l *ledger) doubt() {
	if m, ok := l.read().Question(l.policy(), l.now); ok {
		l.apply(m)
	}
}

func TestALedgerThatForgotDoesNothingTwice(t *testing.T) {
	for _, words := range policies {
		t.Run("whole/"+words, func(t *testing.T) {
			for seed := range uint64(*lives) * 5 {
				if f := playForgetting(policyFrom(t, words), "", seed); f != "" {
					t.Fatalf("seed %d: %s", seed, f)
				}
			}
		})
	}
	for _, world := range stepWorlds {
		t.Run("steps/"+world.name, func(t *testing.T) {
			done := 0
			for seed := range uint64(*lives) * 5 {
				ok, f := playLedger(policyFrom(t, world.job), world.says, "", past{forgets: true}, seed)
				if f != "" {
					t.Fatalf("seed %d: %s", seed, f)
				}
				if ok {
					done++
				}
			}
			if done < *lives/4 {
				t.Errorf("only %d of %d lives came to their end", done, *lives*5)
			}
		})
	}
}

func playForgetting(p Policy, bug string, seed uint64) (found fault) {
	return playWorld(p, "", past{forgets: true, bug: bug}, seed)
}

// The judges see it when a ledger that forgot does not know that it did, or counts the memory of far sides from when it was found.
func TestPlantedBugsOfForgetting(t *testing.T) {
	for _, c := range []struct {
		bug, job string
		says     StepPolicy
	}{
		{"no doubt", "", StepPolicy{}},
		{"no doubt", "probe", StepPolicy{}},
		{"counts from now", "", StepPolicy{Remembers: 24 * time.Hour}},
	} {
		t.Run(c.bug+" "+c.job, func(t *testing.T) {
			whole, steps := false, false
			p := policyFrom(t, c.job)
			for seed := range uint64(20_000) {
				if !steps {
					_, f := playLedger(p, c.says, "", past{forgets: true, bug: c.bug}, seed)
					if steps = strings.Contains(string(f), "times"); steps {
						t.Logf("steps, seed %d: %s", seed, strings.SplitN(string(f), "\n", 2)[0])
					}
				}
				q := p
				q.Remembers = max(q.Remembers, c.says.Remembers)
				if f := playForgetting(q, c.bug, seed); strings.Contains(string(f), "times") {
					whole = true
				}
				if whole && steps {
					return
				}
			}
			t.Errorf("not found: whole %v, steps %v", whole, steps)
		})
	}
}

// What is asked about when the ledger forgot: what it knows of, and the next wire keys.
func TestForgottenWireKeys(t *testing.T) {
	r := &Run{Key: "renew:2026-10-26", Job: "renew", Effects: Once, State: Running, Fence: 1, Doubts: []*Lapse{{Number: 1, Since: noon.Add(-time.Hour), FoundAt: noon}}}
	e := r.gate(r.effect())
	if got := e.WireKeys(); !slices.Equal(got, []string{"renew:2026-10-26#run@3", "renew:2026-10-26#run@2", "renew:2026-10-26"}) {
		t.Errorf("%v", got)
	}
	if !e.FirstAt.Equal(noon.Add(-time.Hour)) || !e.EndedAt.Equal(noon) {
		t.Errorf("first %s, ended %s", e.FirstAt, e.EndedAt)
	}
}
