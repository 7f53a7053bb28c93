package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// far is the far side of all jobs: a payment service with a book of its own. It knows wire keys and nothing else of Daybook.
type far struct {
	w      *World
	book   []entry
	flying []*request
	down   time.Time           // until then it does nothing
	kept   map[string]*request // by wire key: the first that reached it, while it remembers
}

// entry is a line of the book.
type entry struct {
	kind    string // charge, refund, call
	wireKey string
	at      time.Time
	visible time.Time // when a question finds it
	fence   int64
	process string
}

// Kinds of entries.
const (
	charge = "charge"
	refund = "refund"
	called = "call" // of work that may be repeated
)

// What becomes of a request at the far side, and of its answer.
const (
	happens     = "happens"
	declined    = "declined"    // 402, saved
	broken      = "broken"      // 500, nothing happened, saved
	unavailable = "unavailable" // 503, not saved
	lost        = "lost"        // it never came

	answered  = "answered"
	confused  = "confused" // 500, whatever happened
	gateway   = "504"
	reset     = "reset"
	unheard   = "unheard" // no answer ever
	belatedly = "late"    // the answer comes when nobody waits any more
)

// request is one message to the far side.
type request struct {
	entry
	remembers time.Duration // of the far side; 0: every message counts anew
	plan
	sent   time.Time
	effect time.Time // when it happens, or would have
	came   time.Time
	reply  chan string
}

// send lets a message go. It is not stopped by the end of who sent it.
func (f *far) send(r *request) {
	w := f.w
	r.sent, r.reply = now(), make(chan string, 1)
	r.plan = w.planOf(r.kind)
	if w.chaos() && now().Before(f.down) {
		r.outcome, r.line = unavailable, answered
	}
	first := f.remembered(r)
	says := r.outcome
	switch {
	case r.outcome == lost:
	case first != nil: // answered as the first was
		r.outcome, r.after, says = "", 0, first.outcome
		r.answer += max(0, first.effect.Sub(r.sent))
	case r.remembers > 0 && r.outcome != unavailable:
		f.kept[r.wireKey] = r
	}
	r.came, r.effect = r.sent, r.sent.Add(r.after)
	w.tracef("far side gets %s %s: %s, %s, happens in %s, answered in %s", r.kind, r.wireKey, says, r.line, r.after, r.answer)
	if r.outcome == happens {
		f.flying = append(f.flying, r)
		w.at(r.effect, func() { f.happen(r) })
	}
	switch r.line {
	case unheard:
		return
	case answered:
	case confused, gateway, reset:
		says = r.line
	}
	if r.outcome == lost {
		says = reset
	}
	w.at(r.sent.Add(r.answer), func() { r.reply <- says })
}

// remembered is the message that a new one under the same wire key is answered as.
func (f *far) remembered(r *request) *request {
	first := f.kept[r.wireKey]
	if first == nil || r.remembers == 0 {
		return nil
	}
	if r.remembers != daybook.Forever && now().Sub(first.came) >= r.remembers {
		delete(f.kept, r.wireKey)
		return nil
	}
	return first
}

func (f *far) happen(r *request) {
	for i, o := range f.flying {
		if o == r {
			f.flying = append(f.flying[:i:i], f.flying[i+1:]...)
			break
		}
	}
	e := r.entry
	e.at = now()
	e.visible = e.at.Add(r.hidden)
	f.w.tracef("far side BOOKS %s %s", e.kind, e.wireKey)
	f.w.booked(e)
	f.book = append(f.book, e)
}

// request sends a message for a process and waits for what comes of it, as a client of the far side does.
func (f *far) request(ctx context.Context, p *process, r *request) (string, error) {
	w := f.w
	if w.wait(p, waiter{name: "send " + r.wireKey, run: readWire(r.wireKey).run}) == killOn {
		return "", errDead
	}
	if ctx.Err() != nil && (r.kind == called || w.rng.IntN(4) > 0) { // most clients look before they send
		return "", ctx.Err()
	}
	if r.kind == called && p.told[attempt{readWire(r.wireKey).run, r.fence}] {
		w.fault("%s goes on with %s under fence %d, which the ledger told it that it does not hold any more", p.name, r.wireKey, r.fence)
	}
	r.process = p.name
	f.send(r)
	var says string
	select {
	case says = <-r.reply:
	case <-ctx.Done():
	case <-p.died:
	}
	if w.wait(p, waiter{name: fmt.Sprintf("answer %s %q", r.wireKey, says), run: readWire(r.wireKey).run}) == killOn {
		return "", errDead
	}
	switch says {
	case "":
		return "", ctx.Err()
	case happens:
		return "id of " + r.wireKey, nil
	case declined:
		return "", daybook.Permanent(errors.New("402 declined"))
	case unavailable:
		return "", daybook.NotDone(errors.New("503 unavailable"))
	case gateway, reset:
		return "", daybook.Unknown(errors.New(says))
	}
	return "", errors.New("500 " + says)
}

// probe asks what the book says about a wire key, at an instant between question and answer.
func (f *far) probe(ctx context.Context, p *process, wireKey string) (string, daybook.Answer, error) {
	w := f.w
	if w.wait(p, waiter{name: "ask " + wireKey}) == killOn {
		return "", daybook.CannotTell, errDead
	}
	answers := make(chan daybook.Answer, 1)
	how, takes := w.planOfQuestion()
	if how != unheard {
		w.at(now().Add(takes), func() {
			answer := daybook.No
			for _, e := range f.book {
				if e.wireKey == wireKey && !e.visible.After(now()) {
					answer = daybook.Yes
				}
			}
			if how != answered {
				answer = daybook.CannotTell
			}
			answers <- answer
		})
	}
	answer := daybook.CannotTell
	select {
	case answer = <-answers:
	case <-ctx.Done():
	case <-p.died:
	}
	if w.wait(p, waiter{name: "told " + wireKey + " " + string(answer)}) == killOn {
		return "", daybook.CannotTell, errDead
	}
	switch answer {
	case daybook.Yes:
		return "id of " + wireKey, answer, nil
	case daybook.No:
		return "", answer, nil
	}
	return "", daybook.CannotTell, errors.New("the far side does not say")
}

// wire is what a wire key says: the run and its step, and whether it is an undo. It is read here, not by the code under test.
type wire struct {
	run, step string
	undo      bool
}

func readWire(k string) wire {
	run, step, ok := strings.Cut(k, "#")
	if !ok {
		return wire{run: k, step: "run"}
	}
	step, _, _ = strings.Cut(step, "@")
	step, undo := strings.CutSuffix(step, "~undo")
	return wire{run, step, undo}
}

// happened lists what the book has for a step of a run, under whatever wire key.
func (f *far) happened(x wire) (found []entry) {
	for _, e := range f.book {
		if readWire(e.wireKey) == x {
			found = append(found, e)
		}
	}
	return found
}

// coming reports whether something under way will still happen for a step of a run.
func (f *far) coming(x wire) bool {
	for _, r := range f.flying {
		if readWire(r.wireKey) == x {
			return true
		}
	}
	return false
}
