package daybooktest

import (
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// marksSteps reports whether the work of the job marks its own steps.
func (d *drill) marksSteps() bool {
	for _, def := range d.e.Definitions() {
		if def.Job.Name == d.job {
			return def.Job.Steps
		}
	}
	return false
}

// everyEdge loses the worker at every boundary of every step.
func (d *drill) everyEdge(before int, count func() int) {
	d.t.Helper()
	d.edges = newEdges(d.job, count, func() { d.e.lostNow() })
	d.e.atEdges(d.edges)
	defer d.e.atEdges(nil)
	met := func() int {
		d.edges.mu.Lock()
		defer d.edges.mu.Unlock()
		return len(d.edges.lost)
	}
	d.pass(before, count, func(*daybook.Run) bool { return met() > 0 })
	if n := count(); n != before && !d.edges.several() {
		d.t.Fatalf("drill %s: count went from %d to %d before the work ran: it counts something else, or the work does it before its first step", d.key, before, n)
	}
	d.doors(daybook.Joined)
	d.pass(before, count, func(r *daybook.Run) bool { return r.State == daybook.Done })
	once := d.edges.once
	if d.edges.parts {
		once = count()
	}
	switch fault := d.edges.faulty(); {
	case fault != "":
		d.t.Fatalf("drill %s: %s", d.key, fault)
	case !d.edges.full:
		d.t.Fatalf("drill %s: it was taken for done before the work ran to its end", d.key)
	case once == before:
		d.t.Fatalf("drill %s: count stayed %d while the work ran: it does not count this effect", d.key, before)
	}
	d.doors(daybook.Reused)
	d.e.Run()
	if n := count(); n != once {
		d.t.Fatalf("drill %s: count was %d after the first full run, and is %d now", d.key, once, n)
	}
}

// decides does what a person would about a run, or the run of one of its subjects, that waits for one: it says what happened,
// and replays what was lost too often. False: none of them waits for that.
func (d *drill) decides(r *daybook.Run) (decided bool) {
	d.t.Helper()
	if fault := d.edges.faulty(); fault != "" {
		d.t.Fatalf("drill %s: %s", d.key, fault)
	}
	dead, err := d.e.Store().Runs(d.t.Context(), daybook.Filter{Prefix: string(d.key) + "/", State: daybook.Dead, Limit: 1000})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, listed := range append(dead, r) {
		r, err := d.e.Store().Run(d.t.Context(), listed.Key)
		if err != nil {
			d.t.Fatal(err)
		}
		if r.State != daybook.Dead || r.Letter == nil || r.Letter.State != daybook.LetterOpen {
			continue
		}
		switch {
		case r.Letter.Kind == daybook.LetterUnknown:
			d.settle(r)
		case strings.Contains(r.LastError, "three times in a row"):
			if _, err := d.e.Control().Replay(d.t.Context(), person, []daybook.Key{r.Key}, "the drill lost its workers"); err != nil {
				d.t.Fatalf("drill %s: %v", r.Key, err)
			}
		default:
			d.t.Fatalf("drill %s: it is %s: %s", r.Key, r.State, r.LastError)
		}
		decided = true
	}
	return decided
}

// settle says of each open effect whether its work has said that it is done.
func (d *drill) settle(r *daybook.Run) {
	d.t.Helper()
	for _, s := range r.OpenSteps() {
		as := daybook.AsNotDone
		d.edges.mu.Lock()
		if d.edges.happened[string(r.Key)+"#"+s.Step] {
			as = daybook.AsDone
		}
		d.edges.mu.Unlock()
		if _, err := d.e.Control().Resolve(d.t.Context(), person, r.Key, control.Word{Step: s.Step, As: as, Attempt: r.Attempts}, "the work has said so"); err != nil {
			d.t.Fatalf("drill %s: %v", r.Key, err)
		}
	}
}

// several reports whether the work was done for more than one key: then others may have done it meanwhile.
func (g *edges) several() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.keys) > 1
}

// atEdges says at which boundaries the next workers are to be lost; nil: nowhere.
func (e *Engine) atEdges(g *edges) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.edges = g
}

// lostNow loses the worker that is at work.
func (e *Engine) lostNow() {
	e.mu.Lock()
	kill := e.kill
	e.mu.Unlock()
	kill()
}
