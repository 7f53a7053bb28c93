package sim

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// unsettled names what is still open after days in which nothing went wrong and people settled what they could.
func (w *World) unsettled() {
	for _, r := range w.history.seen() {
		if r.live() && !w.history.waits(r.key) || r.letter == "open" {
			w.fault("%s is never settled: %s (%s), letter %s %s %s", r.key, r.state, r.reason, r.letter, r.kind, r.err)
		}
	}
	if w.acting > 0 {
		w.fault("%d acts of people never end", w.acting)
	}
	for _, p := range w.nodes {
		if n := p.exec.InFlight(); n > 0 {
			w.fault("%s never ends %d flights", p.name, n)
		}
		if p.version != w.version {
			w.fault("%s never takes the definitions %d", p.name, w.version)
		}
	}
}

// ends holds what is left at the end against the promises.
func (w *World) ends() {
	for _, r := range w.history.seen() {
		w.endOf(r)
	}
	w.strangers()
	w.extended()
	w.windows()
}

// strangers: whatever is in the book belongs to a run.
func (w *World) strangers() {
	for _, e := range w.far.book {
		if _, ok := w.history.runs[readWire(e.wireKey).run]; !ok {
			w.fault("the far side has %s, and there is no such run", e.wireKey)
		}
	}
}

// endOf: the rows of a run and the book say the same.
func (w *World) endOf(r row) {
	if (r.state == "dead") != (r.letter == "open" || r.letter == "dismissed" || r.letter == "compensated") {
		w.fault("%s is %s, and its letter is %q", r.key, r.state, r.letter)
	}
	s := w.spec(r.job)
	if r.reason == "undoing" {
		w.fault("%s is being undone, and nothing does it any more", r.key)
	}
	_, _, child := subject(r.key)
	if r.effects != "once" || strings.HasSuffix(r.key, "~undo") || s.fans > 0 && !child {
		return
	}
	names := []string{"run"}
	if s.Steps {
		names = []string{"charge", "receipt"}
	}
	byHand := w.history.byHand[r.key+"~undo"]
	for _, name := range names {
		done := len(w.far.happened(wire{r.key, name, false}))
		given := len(w.far.happened(wire{r.key, name, true}))
		st := w.history.steps[r.key][name]
		switch {
		case st != nil && (st.state == "done") != (done == 1):
			w.fault("%s %s is %s, and the far side has it %d times", r.key, name, st.state, done)
		case st == nil && done > 0:
			w.fault("%s %s is not recorded, and the far side has it", r.key, name)
		case r.state == "done" && done != 1:
			w.fault("%s is done, and the far side has its %s %d times", r.key, name, done)
		case r.state == "cancelled" && done > 0, r.state == "skipped" && done > 0, r.state == "coalesced" && done > 0:
			w.fault("%s is %s, and the far side has its %s", r.key, r.state, name)
		case given > done:
			w.fault("%s: %s happened %d times, and was given back %d times", r.key, name, done, given)
		case (r.reason == "undone" || r.reason == "compensated") && given != done && !byHand:
			w.fault("%s is %s, and of %s there are %d, given back %d", r.key, r.reason, name, done, given)
		}
	}
}

// extended: what a step wrote in its own transaction is there exactly when the step is done.
func (w *World) extended() {
	there := map[string]int{}
	w.query("SELECT run, COUNT(*) FROM sim_extended GROUP BY run", func(rows *sql.Rows) error {
		var k string
		var n int
		err := rows.Scan(&k, &n)
		there[k] = n
		return err
	})
	for k, steps := range w.history.steps {
		want := 0
		if e := steps["extend"]; e != nil && e.state == "done" {
			want = 1
		}
		if there[k] != want {
			w.fault("%s: its own transaction wrote %d rows, want %d", k, there[k], want)
		}
		delete(there, k)
	}
	for k := range there {
		w.fault("%s: its own transaction wrote, and no step says so", k)
	}
}

func (w *World) query(text string, each func(*sql.Rows) error) {
	rows, err := w.history.db.QueryContext(w.ctx, text)
	if err != nil {
		panic(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows); err != nil {
			panic(err)
		}
	}
}

// revision is a definition, from when on it counts.
type revision struct {
	since time.Time
	written
}

// windows: every window whose fire lies behind the cursor has a row, or stands in a span.
func (w *World) windows() {
	revisions := map[string][]revision{}
	w.query("SELECT job, since_us, definition FROM daybook_revisions ORDER BY job, revision", func(rows *sql.Rows) error {
		var job, text string
		var since int64
		err := rows.Scan(&job, &since, &text)
		revisions[job] = append(revisions[job], revision{time.UnixMicro(since), readDefinition(text)})
		return err
	})
	for job, list := range revisions {
		for i, r := range list {
			to := time.UnixMicro(w.history.cursor[job])
			if i+1 < len(list) && list[i+1].since.Before(to) {
				to = list[i+1].since
			}
			for _, f := range r.fires(r.since, to) {
				if !w.history.accounted(job, f) {
					w.fault("window %s:%s fired at %s under definition %d, and has neither a row nor a span", job, f.label, f.at.UTC().Format(time.RFC3339), i+1)
				}
			}
		}
	}
	for _, s := range w.specs {
		if s.Job.Schedule != "" && w.now().Sub(time.UnixMicro(w.history.cursor[s.Name])) > 26*time.Hour {
			w.fault("the cursor of %s stands still since %s", s.Name, time.UnixMicro(w.history.cursor[s.Name]).UTC().Format(time.RFC3339))
		}
	}
}

// threeTimes: who asks again for what has ended, three times and by each door, changes nothing.
func (w *World) threeTimes() {
	before, booked := w.picture(), len(w.far.book)
	for _, r := range w.history.seen() {
		if strings.HasSuffix(r.key, "~undo") || r.live() {
			continue
		}
		s := w.spec(r.job)
		q := control.Request{Job: r.job, Window: label(r.key), Subject: named(r.key), Note: "again"}
		if s.Window == daybook.PerEvent {
			q.Source = daybook.SourceEvent
		}
		for range 3 {
			w.act("ask again for "+r.key, func(c *control.Control, p control.Person) error {
				_, err := c.Trigger(w.ctx, p, q)
				return err
			})
		}
		if r.letter != "dismissed" {
			w.act("replay "+r.key, func(c *control.Control, p control.Person) error {
				_, err := c.Replay(w.ctx, p, []daybook.Key{daybook.Key(r.key)}, "")
				return err
			})
		}
	}
	w.until(now().Add(time.Hour), func() bool { return w.settled() })
	for _, e := range w.far.book[booked:] {
		if e.kind != called && before[readWire(e.wireKey).run] != "" {
			w.fault("asked again, and the far side did %s", e.wireKey)
		}
	}
	after := w.picture()
	for _, k := range slices.Sorted(maps.Keys(before)) {
		if before[k] != after[k] {
			w.fault("asked again, and %s was %s and is %s", k, before[k], after[k])
		}
	}
}

// picture is how every run that has ended stands.
func (w *World) picture() map[string]string {
	p := map[string]string{}
	for _, r := range w.history.seen() {
		if !r.live() {
			p[r.key] = fmt.Sprintf("%s (%s), fence %d, letter %s", r.state, r.reason, w.history.fences[r.key], r.letter)
		}
	}
	return p
}
