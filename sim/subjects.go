package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/executor"
)

// subjectZones are those of subjects that have their own.
var subjectZones = []string{"UTC", "Asia/Tokyo", "America/Los_Angeles"}

// listing names the subjects of a window: most of them each time, some twice, and now and then what is none.
func (s *spec) listing(w *World, p *process) executor.ListFunc {
	if s.fans == 0 {
		return nil
	}
	return func(ctx context.Context, win daybook.Window, o daybook.Order) iter.Seq2[daybook.Subject, error] {
		return func(yield func(daybook.Subject, error) bool) {
			if w.wait(p, waiter{name: fmt.Sprintf("list %s", o.Run.Key)}) == killOn { // before any chance is taken
				yield(daybook.Subject{}, errDead)
				return
			}
			n, breaks, faulty := s.fans, -1, -1
			if w.chaos() {
				n -= w.rng.IntN(2)
				if w.chance(w.mood.far / 4) {
					breaks = w.rng.IntN(n)
				}
				if w.chance(0.05) {
					faulty = w.rng.IntN(n)
				}
			}
			for i := range n {
				if i == breaks || i == faulty {
					if w.wait(p, waiter{name: fmt.Sprintf("list %s %d", o.Run.Key, i)}) == killOn {
						yield(daybook.Subject{}, errDead)
						return
					}
				}
				switch {
				case i == breaks:
					yield(daybook.Subject{}, errors.New("the listing broke"))
					return
				case i == faulty && !yield(daybook.Subject{ID: ""}, nil):
					return
				}
				one := daybook.Subject{ID: fmt.Sprintf("sub %d", i)}
				if s.Zone == daybook.ZoneOfSubject {
					one.Zone = subjectZones[i%len(subjectZones)]
				}
				key := fmt.Sprintf("%s/sub%%20%d", o.Run.Key, i)
				w.asks.listed[key] = true
				by := attempt{string(o.Run.Key), o.Fence}
				w.asks.by[by] = append(w.asks.by[by], key)
				if !yield(one, nil) || i%3 == 1 && !yield(one, nil) { // some stand there twice
					return
				}
			}
		}
	}
}

// inZone works out the window of a label in another zone.
func inZone(j *daybook.Job, zone, label string) (daybook.Window, time.Time, error) {
	return calendar.InZone(j, zone, label, nil)
}

// subject splits the key of a subject's run.
func subject(key string) (parent, id string, ok bool) { return strings.Cut(key, "/") }

// children are the runs of the subjects of a run.
func (h *history) children(parent string) (list []row) {
	for _, r := range h.seen() {
		if h.runs[r.key].parent == parent && !strings.HasSuffix(r.key, "~undo") {
			list = append(list, r)
		}
	}
	return list
}

// fannedOut: what an attempt named whose listing is over has a run, unless its own hour is still to come.
func (h *history) fannedOut(l *liveRow) {
	for _, k := range h.w.asks.by[attempt{l.key, l.fence}] {
		if l.reason == "fanned out" && h.runs[k] == nil {
			h.w.fault("%s was listed, %s is fanned out, and there is no such run", k, l.key)
		}
	}
}

// endOfParent: a run with subjects is done when each of them has ended, and no letter is left.
func (h *history) endOfParent(k string) {
	for _, c := range h.children(k) {
		if c.live() || c.letter == "open" {
			h.w.fault("%s is done, and its %s is %s, letter %s", k, c.key, c.state, c.letter)
		}
	}
}

// outage is a time in which the far side does nothing for anybody.
func (w *World) outage() {
	if !w.chaos() {
		return
	}
	w.at(now().Add(w.span(time.Hour, 30*time.Hour)), w.outage)
	w.far.down = now().Add(w.span(time.Minute, 3*time.Hour))
	w.tracef("the far side is down for %s", w.far.down.Sub(now()))
}

// serials: of the runs with one serial key at most one is at work, or has an effect of which nobody knows.
func (h *history) serials(during string) {
	busy := map[string][]string{}
	for k, r := range h.runs {
		if r.serial == "" {
			continue
		}
		l := h.live[k]
		at := l != nil && l.state == "running"
		for _, e := range h.steps[k] {
			at = at || e.effect && (e.state == "unknown" || e.state == "begun")
		}
		if at {
			busy[r.serial] = append(busy[r.serial], k)
		}
	}
	for _, serial := range slices.Sorted(maps.Keys(busy)) {
		if list := busy[serial]; len(list) > 1 {
			slices.Sort(list)
			h.w.fault("%s are at work at once, under the serial key %s, at %s", strings.Join(list, " and "), serial, during)
		}
	}
}
