package calendar

import (
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Years that labels may name: outside, a slip of the hand is likelier than business.
const (
	minYear = 1900
	maxYear = 2199
)

// base returns the kind of period, without previous-, and how many periods before the nominal one the window lies.
func base(kind daybook.WindowKind) (daybook.WindowKind, int) {
	if k, ok := strings.CutPrefix(string(kind), "previous-"); ok {
		return daybook.WindowKind(k), 1
	}
	return kind, 0
}

// dated reports whether windows of the kind are spans of civil dates.
func dated(kind daybook.WindowKind) bool { return kind != daybook.PerFire && kind != daybook.PerEvent }

// period returns the dates [from, to) of the period of a kind (day, week, month, quarter, year) that holds d, moved by
// n periods. Other kinds have no period and are treated as days.
func period(kind daybook.WindowKind, d date, n int) (from, to date) {
	switch kind {
	case daybook.Week:
		from = d.monday() + date(7*n)
		return from, from + 7
	case daybook.Month:
		return d.firstOfMonth(n), d.firstOfMonth(n + 1)
	case daybook.Quarter:
		_, m, _ := d.civil()
		first := -((m - 1) % 3)
		return d.firstOfMonth(first + 3*n), d.firstOfMonth(first + 3*n + 3)
	case daybook.Year:
		y, _, _ := d.civil()
		return newDate(y+n, 1, 1), newDate(y+n+1, 1, 1)
	}
	return d + date(n), d + date(n) + 1
}

// periodLabel writes the label of the period that begins on from.
func periodLabel(kind daybook.WindowKind, from date) string {
	y, m, day := from.civil()
	b := make([]byte, 0, 10)
	switch kind {
	case daybook.Week:
		y, week := from.isoWeek()
		b = append(append2(append2(b, y/100), y%100), '-', 'W')
		b = append2(b, week)
	case daybook.Month:
		b = appendDate(b, y, m, day)[:7]
	case daybook.Quarter:
		b = append(append2(append2(b, y/100), y%100), '-', 'Q', byte('1'+(m-1)/3))
	case daybook.Year:
		b = append2(append2(b, y/100), y%100)
	default:
		b = appendDate(b, y, m, day)
	}
	return string(b)
}

// parsePeriod reads the label of a period and returns its first date.
func parsePeriod(kind daybook.WindowKind, label string) (date, *daybook.Error) {
	bad := func(why daybook.Text) *daybook.Error {
		return daybook.Invalid("window %q: %s", daybook.Clip(label, 60), why).WithHint("%s", labelHint(kind))
	}
	form := func() *daybook.Error { return bad(daybook.Say("not the form of a %s", kind)) }
	if len(label) < 4 {
		return 0, form()
	}
	y, ok := digits(label[:4])
	rest := label[4:]
	if !ok {
		return 0, form()
	}
	if y < minYear || y > maxYear {
		return 0, bad(daybook.Say("the year is outside %d to %d", minYear, maxYear))
	}
	switch kind {
	case daybook.Week:
		week, ok := digits(strings.TrimPrefix(rest, "-W"))
		if !ok || len(rest) != 4 || !strings.HasPrefix(rest, "-W") {
			return 0, form()
		}
		from := newDate(y, 1, 4).monday() + date(7*(week-1)) // 4 January is always in week 1
		if wy, w := from.isoWeek(); wy != y || w != week {
			return 0, bad(daybook.Say("%d has no week %d (ISO 8601)", y, week))
		}
		return from, nil
	case daybook.Month:
		m, ok := digits(strings.TrimPrefix(rest, "-"))
		if !ok || len(rest) != 3 || rest[0] != '-' {
			return 0, form()
		}
		if m < 1 || m > 12 {
			return 0, bad(daybook.Say("there is no month %d", m))
		}
		return newDate(y, m, 1), nil
	case daybook.Quarter:
		if len(rest) != 3 || rest[:2] != "-Q" {
			return 0, form()
		}
		if rest[2] < '1' || rest[2] > '4' {
			return 0, bad(daybook.Say("quarters are Q1 to Q4"))
		}
		return newDate(y, int(rest[2]-'1')*3+1, 1), nil
	case daybook.Year:
		if rest != "" {
			return 0, form()
		}
		return newDate(y, 1, 1), nil
	}
	if len(label) != 10 || label[4] != '-' || label[7] != '-' {
		return 0, form()
	}
	d, ok := parseDate(label)
	if !ok {
		return 0, bad(daybook.Say("there is no such date"))
	}
	return d, nil
}

// labelHint tells the right form of a label, with an example.
func labelHint(kind daybook.WindowKind) daybook.Text {
	switch kind {
	case daybook.Day:
		return daybook.Say("a day is written 2026-10-26")
	case daybook.Week:
		return daybook.Say("a week is written 2026-W43: the ISO year and week")
	case daybook.Month:
		return daybook.Say("a month is written 2026-10")
	case daybook.Quarter:
		return daybook.Say("a quarter is written 2026-Q4")
	case daybook.Year:
		return daybook.Say("a year is written 2026")
	case daybook.PerFire:
		return daybook.Say("a fire is written as its local time 2026-03-08T02:00, or for intervals as its UTC instant 2026-10-25T01:00Z")
	case daybook.PerEvent:
		return daybook.Say("an event is written as its id: letters, digits and ._@+=-, anything else percent-encoded")
	}
	return daybook.Text{}
}

// nominal names a fire: a wall-clock time or the UTC instant of an interval.
type nominal struct {
	interval bool
	date     date  // wall clock
	tod      int32 // wall clock, seconds of the day
	at       int64 // interval
}

func (n nominal) String() string {
	d, tod := n.date, n.tod
	if n.interval {
		d = dateOfLocal(n.at)
		tod = int32(n.at - d.seconds())
	}
	y, m, day := d.civil()
	b := append(appendDate(make([]byte, 0, 20), y, m, day), 'T')
	b = append2(append(append2(b, int(tod/3600)), ':'), int(tod/60%60))
	if s := tod % 60; s != 0 {
		b = append2(append(b, ':'), int(s))
	}
	if n.interval {
		b = append(b, 'Z')
	}
	return string(b)
}

// parseNominal is the inverse of String and accepts nothing that String does not write.
func parseNominal(label string) (nominal, bool) {
	text, utc := strings.CutSuffix(label, "Z")
	d, clock, ok := strings.Cut(text, "T")
	if !ok || len(clock) != 5 && len(clock) != 8 {
		return nominal{}, false
	}
	day, ok := parseDate(d)
	if !ok || clock[2] != ':' || len(clock) == 8 && clock[5] != ':' {
		return nominal{}, false
	}
	h, ok1 := digits(clock[:2])
	m, ok2 := digits(clock[3:5])
	s, ok3 := 0, true
	if len(clock) == 8 {
		s, ok3 = digits(clock[6:])
	}
	if !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || s > 59 || len(clock) == 8 && s == 0 {
		return nominal{}, false
	}
	tod := int32(h*3600 + m*60 + s)
	if utc {
		return nominal{interval: true, at: day.seconds() + int64(tod)}, true
	}
	return nominal{date: day, tod: tod}, true
}

// KindOf tells the kind of window by the form of a label, without "~n". False: it is none of a period and no time.
func KindOf(label string) (daybook.WindowKind, bool) {
	for _, kind := range []daybook.WindowKind{daybook.Day, daybook.Week, daybook.Month, daybook.Quarter, daybook.Year} {
		if _, err := parsePeriod(kind, label); err == nil {
			return kind, true
		}
	}
	_, ok := parseNominal(label)
	return daybook.PerFire, ok
}

// window returns the window of dates [from, to) in the schedule's zone.
func (s *Schedule) window(label string, from, to date) daybook.Window {
	return daybook.Window{Label: label, Date: from.String(), Start: instant(s.zone.start(from)), End: instant(s.zone.start(to))}
}

func instant(t int64) time.Time { return time.Unix(t, 0).UTC() }

// WindowOf returns the window that a label names, of the schedule's kind, with its bounds in the schedule's zone: a day
// on which clocks change has 23 or 25 hours. The label stands without "~n". For PerEvent the window has a label only.
//
// Errors have CodeInvalid and tell the right form with an example: a label of another form, a date that does not exist
// in the calendar or in the zone (30 December 2011 in Samoa), and for PerFire a time at which the schedule does not fire.
func (s *Schedule) WindowOf(label string) (daybook.Window, error) {
	switch s.kind {
	case daybook.PerEvent:
		if _, err := daybook.DecodeSubject(label); err != nil {
			return daybook.Window{}, err
		}
		return daybook.Window{Label: label}, nil
	case daybook.PerFire:
		return s.fireWindow(label)
	}
	kind, before := base(s.kind)
	from, err := parsePeriod(kind, label)
	if err != nil {
		if before > 0 {
			_, form := err.Texts()
			_ = err.WithHint("%s; the label names the period itself, not the day it is run on", form)
		}
		return daybook.Window{}, err
	}
	_, to := period(kind, from, 0)
	w := s.window(label, from, to)
	if !w.Start.Before(w.End) {
		return daybook.Window{}, daybook.Invalid("window %q: this date did not exist in %s, where clocks went from the day before it to the day after", label, s.zone.loc).
			WithHint("nothing happened on it: use the date before or after")
	}
	return w, nil
}

// fireWindow is WindowOf for PerFire. A time at which the schedule never fires is refused: it is a slip of the hand, and
// would be a second effect beside the fire that was meant.
func (s *Schedule) fireWindow(label string) (daybook.Window, error) {
	n, ok := parseNominal(label)
	if !ok {
		return daybook.Window{}, daybook.Invalid("window %q: not the form of a fire", daybook.Clip(label, 60)).WithHint("%s", labelHint(daybook.PerFire))
	}
	if y, _, _ := dateOfLocal(n.at).civil(); n.interval && (y < minYear || y > maxYear) {
		return daybook.Window{}, daybook.Invalid("window %q: the year is outside %d to %d", label, minYear, maxYear)
	}
	if y, _, _ := n.date.civil(); !n.interval && (y < minYear || y > maxYear) {
		return daybook.Window{}, daybook.Invalid("window %q: the year is outside %d to %d", label, minYear, maxYear)
	}
	if len(s.lines) == 0 {
		return s.plainFireWindow(label, n)
	}
	if t, ok := s.find(n); ok {
		return s.fire(t, s.after(t.at)).Window, nil
	}
	at := n.at
	if !n.interval {
		at = s.zone.read(n.date.seconds() + int64(n.tod)).first
	}
	err := daybook.Invalid("window %q: %s does not fire then", label, s.quoted())
	before, ok1 := s.Prev(instant(at))
	after, ok2 := s.Next(instant(at))
	switch {
	case ok1 && ok2:
		return daybook.Window{}, err.WithHint("the fires around it are %s and %s", before.Nominal, after.Nominal)
	case ok2:
		return daybook.Window{}, err.WithHint("the next fire is %s", after.Nominal)
	case ok1:
		return daybook.Window{}, err.WithHint("the last fire is %s", before.Nominal)
	}
	return daybook.Window{}, err.WithHint("%s", labelHint(daybook.PerFire))
}

// plainFireWindow gives a window of one minute, or second, where no schedule says when the next one begins.
func (s *Schedule) plainFireWindow(label string, n nominal) (daybook.Window, error) {
	at, day := n.at, n.date
	if n.interval {
		day = s.zone.date(at)
	} else {
		r := s.zone.read(n.date.seconds() + int64(n.tod))
		if r.gap {
			return daybook.Window{}, daybook.Invalid("window %q: this time does not exist in %s, where clocks go forward over it", label, s.zone.loc).
				WithHint("name a time before or after the change, or a UTC instant")
		}
		at = r.first
		if s.repeat == daybook.RepeatLast {
			at = r.last
		}
	}
	long := int64(60)
	if n.tod%60 != 0 || n.at%60 != 0 {
		long = 1
	}
	return daybook.Window{Label: label, Date: day.String(), Start: instant(at), End: instant(at + long)}, nil
}

// OfDate returns the window of the schedule's kind for a fire on the nominal date YYYY-MM-DD: for Week the week that
// holds it, for PreviousDay the day before. Errors have CodeInvalid: no such date, no such date in the zone, or a kind
// that no date decides (PerFire, PerEvent).
func (s *Schedule) OfDate(text string) (daybook.Window, error) {
	d, err := parsePeriod(daybook.Day, text)
	if err != nil {
		return daybook.Window{}, err
	}
	if !dated(s.kind) {
		return daybook.Window{}, daybook.Invalid("a date does not name a window of kind %s", s.kind).WithHint("%s", labelHint(s.kind))
	}
	kind, before := base(s.kind)
	from, _ := period(kind, d, -before)
	return s.WindowOf(periodLabel(kind, from))
}

// Current returns the window of the wall date at now: the day, week and so on that holds it, or for the kinds previous-*
// the one before. For PerFire it is the local minute; for PerEvent it is empty. It does not look at the schedule: what a
// button means is the window of Prev(now).
func (s *Schedule) Current(now time.Time) daybook.Window {
	t := min(max(now.Unix(), firstInstant), lastInstant)
	offset := int64(s.zone.offset(t))
	d := dateOfLocal(t + offset)
	switch s.kind {
	case daybook.PerEvent:
		return daybook.Window{}
	case daybook.PerFire:
		local := t + offset - floorMod(t+offset, 60)
		n := nominal{date: d, tod: int32(local - d.seconds())}
		at := local - offset
		return daybook.Window{Label: n.String(), Date: d.String(), Start: instant(at), End: instant(at + 60)}
	}
	kind, before := base(s.kind)
	from, to := period(kind, d, -before)
	w := s.window(periodLabel(kind, from), from, to)
	for !w.Start.Before(w.End) { // the day before does not exist: the one before that is the last that was
		before++
		from, to = period(kind, d, -before)
		w = s.window(periodLabel(kind, from), from, to)
	}
	return w
}
