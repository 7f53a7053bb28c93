package daybooktest

import (
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/executor"
)

// drillSteps bounds how often a drill looks at a run until it ends.
const drillSteps = 2000

// Drill asks whether one window of a job is done once, whatever happens. It triggers the key by three doors, loses the
// worker once at every boundary, and triggers by three doors again. The boundaries are before the effect and after it; of a
// job with steps they are those of each of its steps: before it comes to one, when that is begun, when it is done and not
// told, in its transaction, when it is told (where it is done once more; else the next boundary is the same to the ledger), around
// each question, and at the end of the work. count says how often the effects happened, from the book of the far side. Drill
// fails when count changed after the first time that the work ran to its end, when it rose twice by one step of a key, or twice
// by what is in no step, and when the run does not come to its end.
//
// Where Daybook would ask a person whether an unknown effect happened, Drill answers: by count, or by what a step has said. The
// window must be a fresh one; when it lies ahead, the clock is moved there. Of a job that is done for subjects each boundary is
// met once, by whichever of them comes to it first.
func Drill(t testing.TB, e *Engine, job, window string, count func() int) {
	t.Helper()
	d := drill{t: t, e: e, job: job, window: window}
	d.open()
	if got := d.trigger(daybook.SourceAPI); got.Outcome != daybook.Started {
		t.Fatalf("drill %s: the first trigger was %s: %s A drill needs a fresh window.", got.Key, got.Outcome, got.Line())
	}
	before := count()
	if d.marksSteps() {
		d.everyEdge(before, count)
		return
	}

	d.lose(false, before, count) // before the effect
	if n := count(); n != before {
		t.Fatalf("drill %s: count went from %d to %d before the work ran: it counts something else", d.key, before, n)
	}
	d.doors(daybook.Joined)

	d.lose(true, before, count) // after it
	once := count()
	if once == before {
		t.Fatalf("drill %s: count stayed %d while the work ran: it does not count this effect", d.key, before)
	}
	d.doors(daybook.Joined)
	d.pass(before, count, func(r *daybook.Run) bool { return r.State == daybook.Done })
	d.doors(daybook.Reused)
	e.Run()
	if n := count(); n != once {
		t.Fatalf("drill %s: count was %d after the first full run, and is %d now", d.key, once, n)
	}
}

type drill struct {
	t           testing.TB
	e           *Engine
	job, window string
	key         daybook.Key
	edges       *edges // nil: without steps
}

var person = control.Person{Name: "drill"}

// open moves the clock to where the window is open.
func (d *drill) open() {
	d.t.Helper()
	a, err := d.e.Control().Preview(d.t.Context(), person, control.Request{Job: d.job, Window: d.window})
	if err != nil {
		d.t.Fatalf("drill %s:%s: %v", d.job, d.window, err)
	}
	d.key = a.Key
	if a.Opens.After(d.e.Now()) {
		d.e.set(a.Opens)
	}
}

func (d *drill) trigger(source daybook.Source) control.Answer {
	d.t.Helper()
	a, err := d.e.Control().Trigger(d.t.Context(), person, control.Request{Job: d.job, Window: d.window, Source: source})
	if err != nil {
		d.t.Fatalf("drill %s:%s: trigger by %s: %v", d.job, d.window, source, err)
	}
	return a
}

// doors knocks three times.
func (d *drill) doors(want daybook.TriggerOutcome) {
	d.t.Helper()
	for _, source := range []daybook.Source{daybook.SourceAPI, daybook.SourceManual, daybook.SourceDrill} {
		if a := d.trigger(source); a.Outcome != want {
			d.t.Fatalf("drill %s: trigger by %s was %s and not %s: %s", d.key, source, a.Outcome, want, a.Line())
		}
	}
}

// lose lets a worker begin the work and be lost, before the work or after it.
func (d *drill) lose(after bool, before int, count func() int) {
	d.t.Helper()
	l := &loss{job: d.job, after: after}
	d.e.lose(l)
	d.pass(before, count, func(r *daybook.Run) bool {
		if r.State == daybook.Done && !d.e.lost(l) {
			d.t.Fatalf("drill %s: it was taken for done before the work ran to its end: the probe said yes too early", d.key)
		}
		return d.e.lost(l)
	})
}

// pass lets time pass, and workers work, until something holds of the run. Where a person is asked whether the effect
// happened, count tells.
func (d *drill) pass(before int, count func() int, until func(*daybook.Run) bool) {
	d.t.Helper()
	lease := d.e.o.Lease
	if lease <= 0 {
		lease = executor.DefaultLease
	}
	for range drillSteps {
		d.e.Run()
		r, err := d.e.Store().Run(d.t.Context(), d.key)
		if err != nil {
			d.t.Fatal(err)
		}
		switch {
		case until(r):
			return
		case d.edges != nil && d.decides(r):
		case r.State == daybook.Dead && r.Letter != nil && r.Letter.State == daybook.LetterOpen && r.Letter.Kind == daybook.LetterUnknown:
			as := daybook.AsNotDone
			if count() != before {
				as = daybook.AsDone
			}
			if _, err := d.e.Control().Resolve(d.t.Context(), person, d.key, control.Word{Step: daybook.StepRun, As: as, Attempt: r.Attempts}, "the book of the far side says so"); err != nil {
				d.t.Fatalf("drill %s: %v", d.key, err)
			}
		case !r.State.Live():
			d.t.Fatalf("drill %s: it is %s: %s", d.key, r.State, r.LastError)
		case r.State == daybook.Running: // its worker is lost; a clock that leaps further looks like a machine that slept
			d.e.set(d.e.Now().Add(lease / 2))
		case !d.wait():
			d.t.Fatalf("drill %s: it is %s, held for %q, and nothing is due", d.key, r.State, r.Hold)
		}
	}
	d.t.Fatalf("drill %s: it does not come to its end", d.key)
}

// wait moves the clock to the next thing to be done.
func (d *drill) wait() bool {
	d.t.Helper()
	next, err := d.e.next()
	if err != nil {
		d.t.Fatal(err)
	}
	if next.IsZero() {
		return false
	}
	d.e.set(calendar.Later(next, d.e.Now().Add(time.Microsecond)))
	return true
}
