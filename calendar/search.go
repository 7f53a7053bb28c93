package calendar

import (
	"math"
	"slices"

	"github.com/daybook-run/daybook"
)

// tick is a fire before it is written out.
type tick struct {
	at       int64
	interval bool
	date     date  // nominal
	tod      int32 // nominal, for wall-clock times
	note     daybook.FireNote
	skip     daybook.Reason
}

// compare orders ticks by instant, wall-clock times before intervals, then by nominal time: a total order, as several
// nominal times may fall on one instant at the end of a gap.
func (t tick) compare(u tick) int {
	switch {
	case t.at != u.at:
		return sign(t.at < u.at)
	case t.interval != u.interval:
		return sign(u.interval)
	case t.interval:
		return 0
	case t.date != u.date:
		return sign(t.date < u.date)
	case t.tod != u.tod:
		return sign(t.tod < u.tod)
	}
	return 0
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

func (t tick) nominal() nominal {
	return nominal{interval: t.interval, date: t.date, tod: t.tod, at: t.at}
}

// behind returns a position after every tick at or before the instant.
func behind(at int64) tick {
	return tick{at: at, interval: true, date: math.MaxInt32}
}

const (
	// horizonDays bounds every search: 29 February 1896 is followed by that of 1904, and a moved fire by some days more.
	horizonDays = 8*366 + 100
	// margin is how far from a change of the offset a time must be for plain arithmetic to hold: more than any gap, any
	// repeat and the days of a window before.
	margin = 3 * daySeconds
	// slack is how many dates around an instant may hold nominal times of fires near it, when nothing is moved: a gap
	// or a repeat may cross midnight or a whole date.
	slack = 3
	// Beyond the years 0 to 9999 there are no fires: labels have four digits, and the arithmetic must not overflow.
	firstInstant = -62167219200
	lastInstant  = 253402300799
)

// cursor walks the fires of a schedule in order. Wall-clock lines are searched together, so that equal nominal times of
// several lines are one fire; every interval line is searched by itself.
type cursor struct {
	s        *Schedule
	pos      tick   // the last one handed out
	wall     []tick // the next ones of the wall-clock lines
	wallDone bool
	interval []tick // the next one of each interval line; at is MaxInt64 when there is none
}

func (s *Schedule) cursor(pos tick) cursor {
	c := cursor{s: s, pos: pos, wallDone: len(s.walls) == 0}
	if pos.at < firstInstant || pos.at > lastInstant {
		c.wallDone = true
		return c
	}
	for _, l := range s.intervals {
		c.interval = append(c.interval, s.intervalTick(l, pos))
	}
	return c
}

// next returns the first tick behind the position and moves there.
func (c *cursor) next() (tick, bool) {
	if len(c.wall) == 0 && !c.wallDone {
		c.wall = c.s.wallTicks(c.pos)
		c.wallDone = len(c.wall) == 0
	}
	best, found := tick{at: math.MaxInt64}, false
	if len(c.wall) > 0 {
		best, found = c.wall[0], true
	}
	for _, t := range c.interval {
		if t.at != math.MaxInt64 && (!found || t.compare(best) < 0) {
			best, found = t, true
		}
	}
	if !found || best.at > lastInstant {
		return tick{}, false
	}
	c.pos = best
	if !best.interval {
		c.wall = c.wall[1:]
	}
	for i, t := range c.interval {
		if best.interval && t.at == best.at {
			c.interval[i] = c.s.intervalTick(c.s.intervals[i], best)
		}
	}
	return best, true
}

// after returns the first instant behind at that has a tick, or MaxInt64.
func (s *Schedule) after(at int64) int64 {
	c := s.cursor(behind(at))
	if t, ok := c.next(); ok {
		return t.at
	}
	return math.MaxInt64
}

// wallTicks returns ticks of the wall-clock lines behind pos, in order: at least one unless there is none, and no tick
// that it leaves out lies between them.
func (s *Schedule) wallTicks(pos tick) []tick {
	if t, ok := s.plainTick(pos); ok {
		return []tick{t}
	}
	first := s.zone.date(pos.at) - slack - date(s.moveNext)
	last := first + horizonDays
	var found []tick
	for d := s.nextDate(first, last); ; {
		if d <= last {
			found = s.ticksOf(d, pos, found)
			until := last
			if len(found) > 0 { // dates further off cannot come between: no need to look for them
				until = min(last, d+slack+2+date(s.moveNext+s.movePrevious))
			}
			d = s.nextDate(d+1, until)
		}
		if len(found) > 0 {
			// Nothing of d or a later date comes before this instant.
			limit := s.zone.start(d - date(s.movePrevious))
			slices.SortFunc(found, tick.compare)
			n := 0
			for n < len(found) && found[n].at < limit {
				n++
			}
			if n > 0 {
				return found[:n]
			}
		}
		if d > last {
			return found
		}
	}
}

// plainTick is wallTicks for the usual case: no change of the offset anywhere near and nothing moved, so that one
// subtraction turns wall clock into instant.
func (s *Schedule) plainTick(pos tick) (tick, bool) {
	if s.moveNext > 0 {
		return tick{}, false
	}
	from := pos.at - margin
	until := pos.at + 10*daySeconds
	offset, change, changes := s.zone.change(from, until)
	if changes {
		until = change
	}
	until -= margin
	local := pos.at + int64(offset)
	best, found := tick{}, false
	for _, l := range s.walls {
		d, tod, ok := l.following(local, dateOfLocal(until+int64(offset))+1)
		if t := (tick{at: d.seconds() + int64(tod) - int64(offset), date: d, tod: tod}); ok && (!found || t.compare(best) < 0) {
			best, found = t, true
		}
	}
	if !found || best.at >= until {
		return tick{}, false
	}
	if s.business != "" && !s.working(best.date) {
		best.skip = daybook.ReasonDayOff
	}
	return best, true
}

// following returns the first nominal time of the line behind a wall-clock time, on a date up to last.
func (l *line) following(local int64, last date) (date, int32, bool) {
	today := dateOfLocal(local)
	d := l.rule.next(today, last)
	if d == today {
		tod := int32(local - today.seconds())
		if i, _ := slices.BinarySearch(l.tods, tod+1); i < len(l.tods) {
			return d, l.tods[i], true
		}
		d = l.rule.next(today+1, last)
	}
	return d, l.tods[0], d <= last
}

// nextDate returns the first date in [d, last] on which a wall-clock line fires, or last+1.
func (s *Schedule) nextDate(d, last date) date {
	best := last + 1
	for _, l := range s.walls {
		best = min(best, l.rule.next(d, min(last, best)))
	}
	return best
}

// ticksOf appends the ticks of a nominal date that lie behind pos.
func (s *Schedule) ticksOf(d date, pos tick, to []tick) []tick {
	if !s.opens(d) {
		return to
	}
	begin := len(to)
	for _, l := range s.walls {
		if !l.rule.matches(d) {
			continue
		}
		for _, tod := range l.tods {
			to = append(to, tick{date: d, tod: tod})
		}
	}
	if len(s.walls) > 1 {
		same := to[begin:]
		slices.SortFunc(same, func(a, b tick) int { return int(a.tod - b.tod) })
		to = to[:begin+len(slices.CompactFunc(same, func(a, b tick) bool { return a.tod == b.tod }))]
	}
	on, note, skip := s.move(d)
	kept := begin
	from := on.seconds() - reach
	offset, _, changes := s.zone.change(from, on.seconds()+daySeconds+reach)
	for _, t := range to[begin:] {
		t.note, t.skip = note, skip
		local := on.seconds() + int64(t.tod)
		if changes {
			s.place(&t, local)
		} else {
			t.at = local - int64(offset)
		}
		if t.compare(pos) > 0 {
			to[kept] = t
			kept++
		}
	}
	return to[:kept]
}

// place sets the instant of a wall-clock time near a clock change, by the policies for gaps and repeats.
func (s *Schedule) place(t *tick, local int64) {
	r := s.zone.read(local)
	t.at = r.first
	switch {
	case r.gap:
		if t.note == "" {
			t.note = daybook.NoteGap
		}
		if s.gap == daybook.GapSkip && t.skip == "" {
			t.skip = daybook.ReasonClockGap
		}
	case r.repeat:
		if t.note == "" {
			t.note = daybook.NoteRepeat
		}
		if s.repeat == daybook.RepeatLast {
			t.at = r.last
		}
	}
}

// move says on which date the fires of nominal date d take place, by the policy for days off.
func (s *Schedule) move(d date) (on date, note daybook.FireNote, skip daybook.Reason) {
	if s.business == "" || s.working(d) {
		return d, "", ""
	}
	step, reach := date(1), s.moveNext
	switch s.business {
	case daybook.BusinessSkip:
		return d, "", daybook.ReasonDayOff
	case daybook.BusinessPrevious:
		step, reach = -1, s.movePrevious
	}
	for i, on := 0, d+step; i < reach; i, on = i+1, on+step {
		if s.working(on) && s.zone.exists(on, on+1) {
			return on, daybook.NoteMoved, ""
		}
	}
	return d, "", daybook.ReasonDayOff
}

// opens reports whether a fire of nominal date d has a window with at least one instant.
func (s *Schedule) opens(d date) bool {
	switch s.kind {
	case daybook.PreviousDay:
		d--
	case daybook.Day, daybook.PerFire:
	default:
		return true // a week or longer: no zone ever lost one
	}
	local := d.seconds()
	return s.zone.quiet(local-reach, local+daySeconds+reach) || s.zone.exists(d, d+1)
}

// intervalTick returns the first tick of an interval line behind pos; its at is MaxInt64 when there is none.
func (s *Schedule) intervalTick(l *line, pos tick) tick {
	from := pos.at
	if pos.interval {
		from++
	}
	limit := from + horizonDays*daySeconds
	for {
		at, local, ok := s.intervalAt(l, from, limit)
		if !ok {
			return tick{at: math.MaxInt64}
		}
		t := tick{at: at, interval: true, date: dateOfLocal(local)}
		if s.kind == daybook.PreviousDay && !s.opens(t.date) {
			from = at + 1
			continue
		}
		if s.business != "" && !s.working(t.date) {
			t.skip = daybook.ReasonDayOff
		}
		return t
	}
}

// intervalAt returns the first instant from on at which an interval line fires, and the wall clock then. It walks the
// stretches of equal offset: in each, wall clock and elapsed time run alike.
func (s *Schedule) intervalAt(l *line, from, limit int64) (at, local int64, ok bool) {
	if l.every > 0 {
		at := floorDiv(from+l.every-1, l.every) * l.every
		return at, at + int64(s.zone.offset(at)), true
	}
	for from <= limit {
		offset, change, changes := s.zone.change(from, from+400*daySeconds)
		if !changes {
			change = from + 400*daySeconds
		}
		o := int64(offset)
		if local, ok := l.minuteFrom(from+o, dateOfLocal(change+o)); ok && local-o < change {
			return local - o, local, true
		}
		from = change
	}
	return 0, 0, false
}

// minuteFrom returns the first wall-clock time from local on, on a date up to last, whose minute and date are the line's.
func (l *line) minuteFrom(local int64, last date) (int64, bool) {
	if r := floorMod(local, 60); r != 0 {
		local += 60 - r
	}
	d := dateOfLocal(local)
	for {
		on := l.rule.next(d, last)
		if on > last {
			return 0, false
		}
		minute := 0
		if on == dateOfLocal(local) {
			minute = int(local-on.seconds()) / 60
		}
		for ; minute < 24*60; minute++ {
			if l.minutes&(1<<(minute%60)) != 0 {
				return on.seconds() + int64(minute)*60, true
			}
		}
		d = on + 1
	}
}

// find returns the tick of a nominal time, if the schedule has it.
func (s *Schedule) find(n nominal) (tick, bool) {
	if n.interval {
		for _, l := range s.intervals {
			if t := s.intervalTick(l, behind(n.at-1)); t.at == n.at {
				return t, true
			}
		}
		return tick{}, false
	}
	for _, t := range s.ticksOf(n.date, tick{at: math.MinInt64}, nil) {
		if t.tod == n.tod {
			return t, true
		}
	}
	return tick{}, false
}
