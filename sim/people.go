package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// asked is what people asked for, as the checkers need to know it.
type asked struct {
	listed  map[string]bool      // keys of subjects that a listing named
	by      map[attempt][]string // likewise, by the attempt that listed
	further map[string]bool      // keys that are a second effect for one window, on purpose
	undone  map[string]bool      // keys for which an undo was asked
	events  map[string]bool      // keys of events
	said    map[wire]string      // what people said about an effect
}

func newAsked() *asked {
	return &asked{map[string]bool{}, map[attempt][]string{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[wire]string{}}
}

// visit lets people do something, and come again.
func (w *World) visit() {
	if !w.chaos() {
		return
	}
	w.at(now().Add(w.span(time.Minute, 5*time.Hour)), w.visit)
	rows := w.history.seen()
	switch w.rng.IntN(14) {
	case 0, 1:
		w.trigger(rows)
	case 2:
		w.event()
	case 3, 4:
		w.each(rows, 2, func(r row) bool { return r.letter == "open" && r.kind != "unknown" }, w.replay)
	case 5, 6:
		w.each(rows, 3, func(r row) bool { return r.letter == "open" && r.kind == "unknown" }, w.resolve)
	case 7:
		w.each(rows, 1, func(r row) bool { return r.letter == "open" }, w.dismiss)
	case 8:
		w.each(rows, 1, func(r row) bool { return r.letter == "dismissed" || r.state == "cancelled" }, w.reopen)
	case 9:
		w.each(rows, 1, func(r row) bool { return r.live() }, w.cancel)
	case 10, 11:
		w.each(rows, 1, func(r row) bool { return r.effects == "once" && !r.live() && !strings.HasSuffix(r.key, "~undo") }, w.undo)
	case 12:
		w.pause()
	default:
		w.rare(rows)
	}
}

// act lets a person do something by a process of his own, at the gate as everybody.
func (w *World) act(what string, do func(c *control.Control, p control.Person) error) {
	p := w.people[w.rng.IntN(len(w.people))]
	w.mu.Lock()
	w.acting++
	w.mu.Unlock()
	w.report.Acts++
	w.tracef("%s wants: %s", p.name, what)
	go func() {
		err := do(p.control, control.Person{Name: p.name})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.acting--
		if !p.dead { // nobody there hears of anything
			w.tracef("%s hears of %s: %v", p.name, what, err)
		}
	}()
	synctest.Wait()
}

// twice does it again now and then, as with a double click.
func (w *World) twice(do func()) {
	do()
	if w.chaos() && w.rng.IntN(3) == 0 {
		do()
	}
}

// each lets people see to some of the rows.
func (w *World) each(rows []row, most int, which func(row) bool, do func(row)) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !which(r) })
	w.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for _, r := range rows[:min(most, len(rows))] {
		do(r)
	}
}

func (w *World) trigger(rows []row) {
	s := w.specs[w.rng.IntN(len(w.specs))]
	if s.Window == daybook.PerEvent {
		return
	}
	q := control.Request{Job: s.Name, Source: []daybook.Source{"", daybook.SourceAPI}[w.rng.IntN(2)]}
	if len(rows) > 0 && w.rng.IntN(2) == 0 {
		r := rows[w.rng.IntN(len(rows))]
		if w.spec(r.job).Window == daybook.PerEvent || strings.HasSuffix(r.key, "~undo") {
			return
		}
		q.Job, q.Window, q.Subject = r.job, label(r.key), named(r.key)
	}
	w.twice(func() {
		w.act("trigger "+q.Job+" "+q.Window+" "+q.Subject, func(c *control.Control, p control.Person) error {
			_, err := c.Trigger(w.ctx, p, q)
			return err
		})
	})
}

// event is told of by a program, often more than once.
func (w *World) event() {
	for _, s := range w.specs {
		if s.Window != daybook.PerEvent {
			continue
		}
		id := fmt.Sprintf("ev%d", w.rng.IntN(6))
		w.asks.events[s.Name+":"+id] = true
		for range 1 + w.rng.IntN(3) {
			w.act("event "+id, func(c *control.Control, p control.Person) error {
				_, err := c.Trigger(w.ctx, p, control.Request{Job: s.Name, Window: id, Source: daybook.SourceEvent})
				return err
			})
		}
	}
}

func (w *World) replay(r row) {
	w.twice(func() {
		w.act("replay "+r.key, func(c *control.Control, p control.Person) error {
			_, err := c.Replay(w.ctx, p, []daybook.Key{daybook.Key(r.key)}, "")
			return err
		})
	})
}

// resolve says what the far side's book says. People wait until nothing is under way there any more.
func (w *World) resolve(r row) {
	for _, st := range r.steps {
		if st.state != "unknown" && st.state != "begun" {
			continue
		}
		x := wireOf(r.key, st.step)
		if w.far.coming(x) || w.unsent(x) {
			return
		}
		as := daybook.AsNotDone
		if len(w.far.happened(x)) > 0 {
			as = daybook.AsDone
		}
		if w.chaos() && w.rng.IntN(4) == 0 {
			as = daybook.AsAsk
		} else {
			w.asks.said[x] = string(as)
		}
		run, err := w.store.Run(w.ctx, daybook.Key(r.key))
		if err != nil {
			panic(err)
		}
		word := control.Word{Step: st.step, As: as, Attempt: run.Attempts}
		w.twice(func() {
			w.act(fmt.Sprintf("resolve %s %s of attempt %d as %s", r.key, st.step, run.Attempts, as), func(c *control.Control, p control.Person) error {
				_, err := c.Resolve(w.ctx, p, daybook.Key(r.key), word, "looked at the book")
				return err
			})
		})
	}
}

// unsent reports whether a process that lives still stands before a message for a step of a run.
func (w *World) unsent(x wire) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.waiters, func(wt *waiter) bool {
		_, k, ok := strings.Cut(wt.name, " send ")
		return ok && readWire(k) == x
	})
}

func (w *World) dismiss(r row) {
	w.act("dismiss "+r.key, func(c *control.Control, p control.Person) error {
		_, err := c.Dismiss(w.ctx, p, daybook.Key(r.key), "seen to by hand")
		return err
	})
}

func (w *World) reopen(r row) {
	w.act("reopen "+r.key, func(c *control.Control, p control.Person) error {
		_, err := c.Reopen(w.ctx, p, daybook.Key(r.key), "after all")
		return err
	})
}

func (w *World) cancel(r row) {
	w.act("cancel "+r.key, func(c *control.Control, p control.Person) error {
		_, err := c.Cancel(w.ctx, p, daybook.Key(r.key), "not now")
		return err
	})
}

func (w *World) undo(r row) {
	w.asks.undone[r.key] = true
	w.twice(func() {
		w.act("undo "+r.key, func(c *control.Control, p control.Person) error {
			_, err := c.Undo(w.ctx, p, daybook.Key(r.key), "wrong price")
			return err
		})
	})
}

func (w *World) pause() {
	s := w.specs[w.rng.IntN(len(w.specs))]
	w.act("pause "+s.Name, func(c *control.Control, p control.Person) error {
		_, err := c.Pause(w.ctx, p, s.Name, "holidays")
		return err
	})
	w.at(now().Add(w.span(time.Minute, 20*time.Hour)), func() { w.resume(s) })
}

func (w *World) resume(s *spec) {
	w.act("resume "+s.Name, func(c *control.Control, p control.Person) error {
		_, err := c.Resume(w.ctx, p, s.Name)
		return err
	})
}

// rare is what people do once in a while: a second effect on purpose, a further attempt, a window that was skipped.
func (w *World) rare(rows []row) {
	if len(rows) == 0 {
		return
	}
	r := rows[w.rng.IntN(len(rows))]
	if w.spec(r.job).Window == daybook.PerEvent || strings.HasSuffix(r.key, "~undo") {
		return
	}
	q := control.Request{Job: r.job, Window: label(r.key), Subject: named(r.key), Note: "on purpose"}
	switch {
	case r.state == "skipped":
		q.RunSkipped = true
	case r.effects == "repeatable":
		q.Again = true
	case q.Subject == "" && !strings.Contains(q.Window, "~"):
		q.Window += "~2"
		w.asks.further[r.job+":"+q.Window] = true
	}
	w.act(fmt.Sprintf("trigger %s %s again=%v skipped=%v", q.Job, q.Window, q.Again, q.RunSkipped), func(c *control.Control, p control.Person) error {
		_, err := c.Trigger(w.ctx, p, q)
		return err
	})
}

// tidy settles in the quiet what needs a person, again and again.
func (w *World) tidy() {
	w.at(now().Add(20*time.Minute), w.tidy)
	if w.acting > 0 {
		return
	}
	for _, s := range w.specs {
		if w.history.paused[s.Name] {
			w.resume(s)
		}
	}
	for _, r := range w.history.seen() {
		switch {
		case r.letter != "open":
		case r.kind == "unknown":
			w.resolve(r)
		case r.kind == "undo" && strings.Contains(r.err, "nothing says how to undo"):
			w.dismiss(r)
		default:
			w.replay(r)
		}
	}
}

// settled reports whether nothing is left to be done by anybody.
func (w *World) settled() bool {
	if w.acting > 0 || len(w.far.flying) > 0 {
		return false
	}
	for _, p := range w.nodes {
		if p.version != w.version || p.exec.InFlight() > 0 {
			return false
		}
	}
	rows := w.history.seen()
	return !slices.ContainsFunc(rows, func(r row) bool { return r.live() && !w.history.waits(r.key) || r.letter == "open" })
}

// label is the window of a key, with its ~n; named the subject as people write it.
func label(key string) string {
	_, l, _ := strings.Cut(key, ":")
	l, _, _ = subject(l)
	return l
}

func named(key string) string {
	_, id, _ := subject(key)
	return strings.ReplaceAll(id, "%20", " ")
}

// wireOf is what the wire keys of a step of a run, or of an undo, say.
func wireOf(key, step string) wire {
	base, undo := strings.CutSuffix(key, "~undo")
	return wire{base, step, undo}
}
