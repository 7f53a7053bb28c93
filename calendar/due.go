package calendar

import (
	"iter"
	"math"
	"time"

	"github.com/daybook-run/daybook"
)

// Due is a window that has fires in the span asked for.
type Due struct {
	Window daybook.Window
	// Fires are those in the span, oldest first. A fire with Skip set is among them only where Skip is set below.
	Fires []daybook.Fire
	// Last is the instant of the window's last fire, which may lie behind the span.
	Last time.Time
	// Skip is set when no fire of the window, in the span or outside, fires at all: the window is a row, skipped for
	// this reason (that of its last fire).
	Skip daybook.Reason
}

// Due yields the windows with at least one fire in (from, to], in order of their first fire there. A fire that is skipped
// (clock gap, day off) beside others that are not is left out: the window has its run from those. It holds the open
// windows only, so a long span costs no more memory than its longest window.
func (s *Schedule) Due(from, to time.Time) iter.Seq[Due] {
	return func(yield func(Due) bool) {
		var open []Due // in order of first fire
		flush := func(until time.Time, all bool) bool {
			for len(open) > 0 && (all || !open[0].Last.After(until)) {
				if !yield(open[0]) {
					return false
				}
				open = open[1:]
			}
			return true
		}
		for f := range s.Between(from, to) {
			found := false
			for i := range open {
				if open[i].Window.Label == f.Window.Label {
					if f.Skip == "" || open[i].Skip != "" {
						open[i].Fires = append(open[i].Fires, f)
					}
					found = true
					break
				}
			}
			if found {
				continue
			}
			// Ended windows go out before the next one comes in, save those that end at this very instant, which may
			// still have fires to come.
			if !flush(f.At.Add(-time.Second), false) {
				return
			}
			d := Due{Window: f.Window, Fires: []daybook.Fire{f}}
			if d.Last, d.Skip = s.lastOf(f); f.Skip != "" && d.Skip == "" {
				continue // another fire of this window, perhaps behind the span, brings it
			}
			open = append(open, d)
		}
		flush(to, true)
	}
}

// lastOf returns the last instant at which the window of f fires. When it never does, it is that of its last fire with
// Skip, and why.
func (s *Schedule) lastOf(f daybook.Fire) (time.Time, daybook.Reason) {
	if !dated(s.kind) {
		return f.At, f.Skip
	}
	from, to := s.nominalDates(f.Window)
	last, ok := s.lastTick(from, to, false)
	if ok {
		return instant(last.at), ""
	}
	if last, ok = s.lastTick(from, to, true); ok {
		return instant(last.at), last.skip
	}
	return f.At, f.Skip
}

// nominalDates returns the dates [from, to) whose fires answer for a window of dates: for previous-* those of the
// period behind it.
func (s *Schedule) nominalDates(w daybook.Window) (from, to date) {
	kind, before := base(s.kind)
	first, ok := parseDate(w.Date)
	if !ok {
		return 0, 0
	}
	return period(kind, first, before)
}

// span returns instants (after, until] that hold every fire of the nominal dates [from, to).
func (s *Schedule) span(from, to date) (after, until int64) {
	after = s.zone.start(from-date(s.movePrevious)) - 1
	until = s.zone.start(to + date(s.moveNext))
	if s.repeat == daybook.RepeatLast && !s.zone.quiet(until-reach, until+reach) {
		until += reach // a second pass may follow the first instant of the next date
	}
	return after, until
}

// firstTick returns the first tick of the nominal dates [from, to).
func (s *Schedule) firstTick(from, to date) (tick, bool) {
	after, until := s.span(from, to)
	c := s.cursor(behind(after))
	for t, ok := c.next(); ok && t.at <= until; t, ok = c.next() {
		if t.date >= from && t.date < to {
			return t, true
		}
	}
	return tick{}, false
}

// lastTick returns the last tick of the nominal dates [from, to), of those that fire or of all.
func (s *Schedule) lastTick(from, to date, skipped bool) (tick, bool) {
	after, until := s.span(from, to)
	// Walk back in growing steps: the last fires of a span are near its end, and a dense schedule has many before.
	for step := int64(3600); ; step *= 4 {
		lower := max(after, until-step)
		c := s.cursor(behind(lower))
		var last tick
		found := false
		for t, ok := c.next(); ok && t.at <= until; t, ok = c.next() {
			if t.date >= from && t.date < to && (skipped || t.skip == "") {
				last, found = t, true
			}
		}
		if found || lower == after {
			return last, found
		}
	}
}

// FiresOf returns the first and the last fire that answer for a window, by instant, those with Skip set included. ok is
// false when none does: a schedule without lines, a window of another kind, a label that no fire leads to.
func (s *Schedule) FiresOf(w daybook.Window) (first, last daybook.Fire, ok bool) {
	if len(s.lines) == 0 || s.kind == daybook.PerEvent {
		return daybook.Fire{}, daybook.Fire{}, false
	}
	if s.kind == daybook.PerFire {
		n, ok := parseNominal(w.Label)
		if !ok {
			return daybook.Fire{}, daybook.Fire{}, false
		}
		t, ok := s.find(n)
		if !ok {
			return daybook.Fire{}, daybook.Fire{}, false
		}
		f := s.fire(t, s.endOf(t))
		return f, f, true
	}
	kind, _ := base(s.kind)
	begin, err := parsePeriod(kind, w.Label)
	if err != nil {
		return daybook.Fire{}, daybook.Fire{}, false
	}
	from, to := s.nominalDates(daybook.Window{Date: begin.String()})
	a, ok1 := s.firstTick(from, to)
	b, ok2 := s.lastTick(from, to, true)
	if !ok1 || !ok2 {
		return daybook.Fire{}, daybook.Fire{}, false
	}
	return s.fire(a, 0), s.fire(b, 0), true
}

// MissedAfter returns how old a fire may be before its window counts as missed: configured, or the smaller of
// daybook.MaxMissedAfter and half the distance to the next fire.
func (s *Schedule) MissedAfter(f daybook.Fire, configured time.Duration) time.Duration {
	if configured > 0 {
		return configured
	}
	at := f.At.Unix()
	next := s.after(at)
	if next == math.MaxInt64 {
		return daybook.MaxMissedAfter
	}
	return min(daybook.MaxMissedAfter, time.Duration(next-at)*time.Second/2)
}

// LeftOut returns the windows that a change of schedule at an instant leaves without a run: the old schedule would have
// fired for them first after it, and the new one fires for them at or before it only. They are in the order in which the
// old one would have fired. Windows of a kind that the new schedule has not are none of them: those keys are new.
func LeftOut(before, after *Schedule, at time.Time) []daybook.Window {
	var out []daybook.Window
	if len(before.lines) == 0 || len(after.lines) == 0 || before.kind != after.kind {
		return nil
	}
	slack := time.Duration(1+max(before.moveNext, after.movePrevious)) * 24 * time.Hour
	seen := map[string]bool{}
	c := before.cursor(behind(at.Unix()))
	for n := 0; n < maxLeftOut; n++ {
		t, ok := c.next()
		if !ok {
			break
		}
		f := before.fire(t, t.at+1)
		if f.Window.Start.After(at.Add(slack)) {
			break
		}
		if f.Skip != "" || seen[f.Window.Label] {
			continue
		}
		seen[f.Window.Label] = true
		if after.leavesOut(before, f.Window, at) {
			if w, err := after.WindowOf(f.Window.Label); err == nil {
				out = append(out, w)
			}
		}
		if dated(before.kind) && before.moveNext == 0 { // on to the next window: this one's other fires tell nothing new
			kind, _ := base(before.kind)
			_, to := period(kind, t.date, 0)
			if next := before.zone.start(to) - 1; next > t.at {
				c = before.cursor(behind(next))
			}
		}
	}
	return out
}

// leavesOut reports whether a window is the old schedule's to fire after the instant, and behind s already.
func (s *Schedule) leavesOut(before *Schedule, w daybook.Window, at time.Time) bool {
	if first, ok := before.firstRun(w); !ok || !first.After(at) {
		return false
	}
	last, ok := s.lastRun(w)
	return ok && !last.After(at)
}

// maxLeftOut bounds the fires that LeftOut looks at: more than a day of minutes.
const maxLeftOut = 2000

// firstRun and lastRun are FiresOf for the fires without Skip.
func (s *Schedule) firstRun(w daybook.Window) (time.Time, bool) {
	if s.kind == daybook.PerFire {
		return s.runOf(w)
	}
	from, to := s.nominalDates(w)
	after, until := s.span(from, to)
	c := s.cursor(behind(after))
	for t, ok := c.next(); ok && t.at <= until; t, ok = c.next() {
		if t.date >= from && t.date < to && t.skip == "" {
			return instant(t.at), true
		}
	}
	return time.Time{}, false
}

func (s *Schedule) lastRun(w daybook.Window) (time.Time, bool) {
	if s.kind == daybook.PerFire {
		return s.runOf(w)
	}
	from, to := s.nominalDates(w)
	t, ok := s.lastTick(from, to, false)
	return instant(t.at), ok
}

func (s *Schedule) runOf(w daybook.Window) (time.Time, bool) {
	f, _, ok := s.FiresOf(w)
	return f.At, ok && f.Skip == ""
}

// SpanAt returns the span in which an instant lies, when every fire begins a span of the given length: a freeze that
// comes by schedule. Spans that overlap are one. A fire with Skip begins none. ok is false outside of all spans.
func (s *Schedule) SpanAt(now time.Time, length time.Duration) (start, end time.Time, ok bool) {
	if length <= 0 {
		return time.Time{}, time.Time{}, false
	}
	// Fires less than a length ago hold now; those before them may reach into the same span. A span that never ends in
	// a hundred lengths is cut there.
	for f := range s.Between(now.Add(-maxSpans*length), now.Add(length)) {
		if f.Skip != "" {
			continue
		}
		if f.At.After(end) || end.IsZero() {
			if f.At.After(now) {
				break
			}
			start = f.At
		}
		end = f.At.Add(length)
	}
	if start.IsZero() || !end.After(now) {
		return time.Time{}, time.Time{}, false
	}
	return start, end, true
}

// maxSpans bounds how far SpanAt looks back, in lengths.
const maxSpans = 100
