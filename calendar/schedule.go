package calendar

import (
	"iter"
	"math"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Spec is a schedule as a job writes it.
type Spec struct {
	Schedule     string             // one form a line; empty for jobs started by hand or by API
	Zone         string             // IANA name; required, save for windows of kind event
	Window       daybook.WindowKind // empty: by the forms, see Compile
	Gap          daybook.ClockGap   // empty: shift
	Repeat       daybook.ClockRepeat
	BusinessDays daybook.BusinessDays // empty: days off are ignored
	Days         *Days                // the business calendar; nil: Monday to Friday are working days
}

// Schedule is a compiled Spec. It never changes and may be shared.
type Schedule struct {
	text      string
	lines     []line
	walls     []*line
	intervals []*line
	zone      zone
	kind      daybook.WindowKind
	gap       daybook.ClockGap
	repeat    daybook.ClockRepeat
	business  daybook.BusinessDays
	days      *Days
	// how many days a fire may be moved at most; both are set where business_days moves at all
	moveNext, movePrevious int
}

// Compile reads a schedule. Without Spec.Window the kind of window is week, month, quarter or year when every line is of
// the form weekly, monthly, quarterly or yearly; day for other schedules with at most one wall-clock fire a day, and for
// an empty schedule; else fire.
//
// Errors are *daybook.Error with CodeInvalid: they say what is wrong and where, and the Hint what to write instead. A
// schedule that can never fire (30 February) is one of them.
func Compile(spec Spec) (*Schedule, error) {
	loc := time.UTC
	if spec.Zone != "" || spec.Window != daybook.PerEvent {
		l, err := Zone(spec.Zone)
		if err != nil {
			return nil, err
		}
		loc = l
	}
	return compile(spec, loc)
}

func compile(spec Spec, loc *time.Location) (*Schedule, error) {
	lines, err := parseLines(spec.Schedule)
	if err != nil {
		return nil, err
	}
	s := &Schedule{text: strings.TrimSpace(spec.Schedule), lines: lines, zone: zone{loc},
		kind: spec.Window, gap: spec.Gap, repeat: spec.Repeat, business: spec.BusinessDays, days: spec.Days}
	for i := range s.lines {
		l := &s.lines[i]
		l.rule.working = s.working
		if l.wall() {
			s.walls = append(s.walls, l)
		} else {
			s.intervals = append(s.intervals, l)
		}
	}
	if err := s.policies(); err != nil {
		return nil, err
	}
	if s.kind == "" {
		s.kind = s.defaultWindow()
	}
	if s.kind == daybook.PerEvent && len(lines) > 0 {
		return nil, daybook.Invalid("a schedule has no windows of kind event").
			WithHint("remove the schedule, or choose a window such as day or fire: an event job is started by its events")
	}
	return s, nil
}

// policies checks the names and fills in their defaults.
func (s *Schedule) policies() error {
	if err := oneOf("window", s.kind, daybook.WindowKinds...); err != nil {
		return err
	}
	if err := oneOf("clock_gap", s.gap, daybook.GapShift, daybook.GapSkip); err != nil {
		return err
	}
	if err := oneOf("clock_repeat", s.repeat, daybook.RepeatFirst, daybook.RepeatLast); err != nil {
		return err
	}
	if err := oneOf("business_days", s.business, daybook.BusinessSkip, daybook.BusinessNext, daybook.BusinessPrevious); err != nil {
		return err
	}
	if s.business != daybook.BusinessNext && s.business != daybook.BusinessPrevious {
		return nil
	}
	if len(s.intervals) > 0 {
		return daybook.Invalid("business_days: %s would move every fire of %q to one day", s.business, s.intervals[0].text).
			WithHint("use business_days: skip, or a schedule with times of the day")
	}
	longest, from := s.longestOff()
	if longest > maxDaysOff {
		return daybook.Invalid("business_days: %s: calendar %s has no working day for %d days from %s on", s.business, s.days.name, longest, from).
			WithHint("at most %d days off in a row are allowed", maxDaysOff)
	}
	s.moveNext, s.movePrevious = longest+2, longest+2
	return nil
}

func oneOf[T ~string](name string, got T, allowed ...T) error {
	if got == "" {
		return nil
	}
	list := make([]string, len(allowed))
	for i, a := range allowed {
		if got == a {
			return nil
		}
		list[i] = string(a)
	}
	err := daybook.Invalid("%s: %q is not one of %s", name, daybook.Clip(string(got), 40), daybook.Words(list))
	if near := daybook.Nearest(string(got), list); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err
}

// working reports whether d is a working day of the schedule's calendar.
func (s *Schedule) working(d date) bool {
	if s.days == nil {
		return weekday(d)
	}
	return s.days.working(d)
}

// defaultWindow resolves the kind of window that the forms imply.
func (s *Schedule) defaultWindow() daybook.WindowKind {
	if len(s.lines) == 0 {
		return daybook.Day
	}
	same := true
	for _, l := range s.lines {
		same = same && l.form == s.lines[0].form
	}
	if same {
		switch s.lines[0].form {
		case formWeekly:
			return daybook.Week
		case formMonthly:
			return daybook.Month
		case formQuarterly:
			return daybook.Quarter
		case formYearly:
			return daybook.Year
		}
	}
	if len(s.intervals) == 0 && s.onceADay() {
		return daybook.Day
	}
	return daybook.PerFire
}

// onceADay reports whether no date has two nominal times. Lines with different times may exclude each other by their
// dates (weekdays at nine, weekends at eleven), so the dates themselves are asked: 28 years hold every combination of
// weekday, day and leap year between 1901 and 2099.
func (s *Schedule) onceADay() bool {
	times := map[int32]bool{}
	for _, l := range s.walls {
		if len(l.tods) > 1 {
			return false
		}
		times[l.tods[0]] = true
	}
	if len(times) == 1 {
		return true
	}
	for d := newDate(2001, 1, 1); d < newDate(2029, 1, 1); d++ {
		tod := int32(-1)
		for _, l := range s.walls {
			if l.rule.matches(d) {
				if tod >= 0 && tod != l.tods[0] {
					return false
				}
				tod = l.tods[0]
			}
		}
	}
	return true
}

// Window returns the kind of window, resolved: never empty.
func (s *Schedule) Window() daybook.WindowKind { return s.kind }

// Location returns the schedule's time zone.
func (s *Schedule) Location() *time.Location { return s.zone.loc }

// Next returns the first fire strictly after an instant, those with Skip set included. Several fires may share one
// instant, at the end of a gap or on the day to which days off are moved: Next gives the first by nominal time, Between
// gives all. There is none for an empty schedule, or when eight years hold none.
func (s *Schedule) Next(after time.Time) (daybook.Fire, bool) {
	c := s.cursor(behind(after.Unix()))
	t, ok := c.next()
	if !ok {
		return daybook.Fire{}, false
	}
	return s.fire(t, s.endOf(t)), true
}

// Prev returns the last fire at or before an instant: the latest fire already past. Of several at one instant it is the
// last by nominal time. It agrees with Next and Between, which search forward, as it asks nothing else.
func (s *Schedule) Prev(before time.Time) (daybook.Fire, bool) {
	t, ok := s.prev(before.Unix())
	if !ok {
		return daybook.Fire{}, false
	}
	return s.fire(t, s.endOf(t)), true
}

func (s *Schedule) prev(before int64) (tick, bool) {
	if len(s.lines) == 0 || before < firstInstant || before > lastInstant {
		return tick{}, false
	}
	best := int64(math.MaxInt64)
	for span := int64(3600); ; span *= 8 {
		span = min(span, horizonDays*daySeconds)
		if best = s.after(before - span); best <= before {
			break
		}
		if span == horizonDays*daySeconds {
			return tick{}, false
		}
	}
	// best is a fire; any later one lies in (best, hi]. Ask for the next one, then halve what is left.
	for hi := before; ; {
		n := s.after(best)
		if n > hi {
			break
		}
		best = n
		mid := best + (hi-best)/2
		if at := s.after(mid); at <= hi {
			best = at
		} else {
			hi = mid
		}
	}
	c := s.cursor(behind(best - 1))
	var last tick
	for t, ok := c.next(); ok && t.at == best; t, ok = c.next() {
		last = t
	}
	return last, true
}

// Between yields the fires in (from, to], in order of their instants and, at one instant, of their nominal times.
func (s *Schedule) Between(from, to time.Time) iter.Seq[daybook.Fire] {
	return func(yield func(daybook.Fire) bool) {
		c, until := s.cursor(behind(from.Unix())), to.Unix()
		var same []tick // of one instant: their windows end at the next one
		for t, ok := c.next(); ; t, ok = c.next() {
			if len(same) > 0 && (!ok || t.at != same[0].at) {
				end := int64(math.MaxInt64)
				if ok {
					end = t.at
				}
				for _, u := range same {
					if !yield(s.fire(u, end)) {
						return
					}
				}
				same = same[:0]
			}
			if !ok || t.at > until {
				return
			}
			same = append(same, t)
		}
	}
}

// endOf returns the end of the window of a tick where the next fire decides it.
func (s *Schedule) endOf(t tick) int64 {
	if s.kind != daybook.PerFire {
		return 0
	}
	return s.after(t.at)
}

// fire writes a tick out. A window of kind fire lasts from its instant to next, the instant of the next fire; when
// there is none it lasts a minute.
func (s *Schedule) fire(t tick, next int64) daybook.Fire {
	name := t.nominal().String()
	f := daybook.Fire{At: instant(t.at), Nominal: name, Note: t.note, Skip: t.skip}
	if s.kind == daybook.PerFire {
		if next == math.MaxInt64 {
			next = t.at + 60
		}
		f.Window = daybook.Window{Label: name, Date: t.date.String(), Start: f.At, End: instant(next)}
		return f
	}
	kind, before := base(s.kind)
	from, to := period(kind, t.date, -before)
	f.Window = s.window(periodLabel(kind, from), from, to)
	return f
}

// quoted names the schedule in messages.
func (s *Schedule) quoted() daybook.Text {
	return daybook.Say("the schedule %s", quote(daybook.Clip(s.text, 60)))
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, "\n", "; ") + `"` }

// The sample for Distance is taken from this year on, over more than two leap years.
const (
	sampleYear    = 2023
	sampleWindows = 500
)

// Distance returns the shortest distance between the first fires of two windows, 0 without a schedule. It is measured on
// the nominal wall clock, where a day has 24 hours whatever clocks do, over at most 500 windows from 2023 on.
func (s *Schedule) Distance() time.Duration {
	shortest, _ := s.distances()
	return shortest
}

// distances returns the shortest distance and, measured alike, the longest one.
func (s *Schedule) distances() (shortest, longest time.Duration) {
	return s.distancesWithin(min(2*s.repeats(), 9*366))
}

func (s *Schedule) distancesWithin(days int64) (shortest, longest time.Duration) {
	if len(s.lines) == 0 {
		return 0, 0
	}
	u := *s
	u.zone = zone{time.UTC}
	u.business, u.moveNext, u.movePrevious = "", 0, 0
	kind, _ := base(u.kind)
	begin, _ := period(kind, newDate(sampleYear, 1, 1), 0) // a whole window, or the first distance is that of a part
	pos := begin.seconds() - 1
	limit := pos + days*daySeconds
	var last int64
	for range sampleWindows {
		c := u.cursor(behind(pos))
		t, ok := c.next()
		if !ok || t.at > limit {
			break
		}
		if last != 0 {
			gap := time.Duration(t.at-last) * time.Second
			if shortest == 0 || gap < shortest {
				shortest = gap
			}
			longest = max(longest, gap)
		}
		last = t.at
		pos = t.at
		if dated(u.kind) {
			_, to := period(kind, t.date, 0)
			pos = u.zone.start(to) - 1
		}
	}
	return shortest, longest
}

// irregular is more days than distances are looked for in.
const irregular = 10 * 366

// repeats returns after how many days the first fires of windows come again at the same distances on the nominal wall clock,
// or irregular when that is not plain to see.
func (s *Schedule) repeats() int64 {
	days := int64(1)
	switch kind, _ := base(s.kind); kind {
	case daybook.Day, daybook.PerFire:
	case daybook.Week:
		days = 7
	default:
		return irregular
	}
	for i := range s.lines {
		l := &s.lines[i]
		r := &l.rule
		switch {
		case l.every > 0 && daySeconds%l.every != 0, l.every == 0 && (r.months != allMonths || r.pick != pickFields || !r.anyDom):
			return irregular
		case l.every == 0 && !r.anyDow:
			days = 7
		}
	}
	return days
}

// The zones in which a date begins first and last.
const (
	FirstZone = "Etc/GMT-14"
	LastZone  = "Etc/GMT+12"
)

// Complete compiles the schedule of a job and fills in what the job leaves open: the kind of window, then the defaults
// that follow from it. days is the business calendar that j.Calendar names, or nil. Errors have CodeInvalid and name
// the job.
func Complete(j daybook.Job, days *Days) (daybook.Job, *Schedule, error) {
	if j.Window == "" && j.Work == daybook.Event && j.Schedule == "" {
		j.Window = daybook.PerEvent
	}
	zone := j.Timezone
	if j.Zone == daybook.ZoneOfSubject {
		zone = FirstZone // the date of a subject may begin before that of the job
	}
	s, err := Compile(Spec{Schedule: j.Schedule, Zone: zone, Window: j.Window, Gap: j.ClockGap,
		Repeat: j.ClockRepeat, BusinessDays: j.BusinessDays, Days: days})
	if err != nil {
		e, ok := err.(*daybook.Error)
		if !ok {
			return j, nil, err
		}
		message, hint := e.Texts()
		return j, nil, daybook.Invalid("job %s: %s", daybook.Clip(j.Name, 64), message).WithHint("%s", hint)
	}
	j.Window = s.Window()
	if j.Zone == daybook.ZoneOfSubject && j.Window == daybook.PerFire {
		return j, nil, daybook.Invalid("job %s: zone: subject with windows shorter than a day", daybook.Clip(j.Name, 64)).WithHint("a zone decides when a date begins: use window: day, or one that is longer")
	}
	return j.WithDefaults(s.distances()), s, nil
}
