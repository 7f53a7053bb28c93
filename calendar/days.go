package calendar

import (
	_ "embed"
	"time"

	"github.com/daybook-run/daybook"
)

// Days is a business calendar: days off and make-up working days over the years it covers, and the weekend for every
// other date. It never changes once read.
type Days struct {
	name        string
	off         map[date]string // days off with their names; they count on weekdays
	work        map[date]string // make-up working days with their names; they count on weekends
	weekend     uint8           // bits 0 (Sunday) to 6
	first, last date            // what the data covers
}

const (
	saturdaySunday = 1<<time.Saturday | 1<<time.Sunday
	// maxDaysOff is the most days off in a row over which a fire is moved.
	maxDaysOff = 92
	// Limits of the text of a calendar.
	maxDaysBytes = 4 << 20
	maxDaysRows  = 100_000
)

//go:embed data/cn.csv
var chinaCSV []byte

// Embedded returns a business calendar that is shipped with Daybook: "cn", China's public holidays with their make-up
// working days (调休). false means that there is none of this name: then it is the path of a file.
func Embedded(name string) (*Days, bool) {
	if name != "cn" {
		return nil, false
	}
	d, err := ParseCSV(name, chinaCSV)
	if err != nil { // a test reads it
		panic("calendar: data/cn.csv: " + err.Error())
	}
	return d, true
}

// Name returns the name under which the calendar was read.
func (d *Days) Name() string { return d.name }

// Horizon returns the first and the last date that the data covers, YYYY-MM-DD. Beyond it only weekends are known: an
// alert comes before it ends.
func (d *Days) Horizon() (first, last string) { return d.first.String(), d.last.String() }

// Working reports whether a date is a working day. Beyond the horizon the answer is that of the weekend, together with
// an error of CodeConflict that says where the data ends; a text that is no date is an error of CodeInvalid.
func (d *Days) Working(day string) (bool, error) {
	on, ok := parseDate(day)
	if !ok {
		return false, daybook.Invalid("%q is no date", daybook.Clip(day, 40)).WithHint("a date is written 2026-10-26")
	}
	if on < d.first {
		return d.working(on), daybook.Conflict("calendar %s: data begins %s", d.name, d.first).WithHint("add the days off of the years before")
	}
	if on > d.last {
		return d.working(on), daybook.Conflict("calendar %s: data ends %s", d.name, d.last).WithHint("add the days off of the years after")
	}
	return d.working(on), nil
}

// Reason returns the name that the data gives to a date, such as that of a holiday, or "".
func (d *Days) Reason(day string) string {
	on, ok := parseDate(day)
	if !ok {
		return ""
	}
	if name, ok := d.off[on]; ok {
		return name
	}
	return d.work[on]
}

func (d *Days) working(on date) bool {
	if d.weekend&(1<<on.weekday()) != 0 {
		_, work := d.work[on]
		return work
	}
	_, off := d.off[on]
	return !off
}

// weekday is the calendar of a job that names none.
func weekday(d date) bool { return saturdaySunday&(1<<d.weekday()) == 0 }

// longestOff returns the longest run of days off in the schedule's calendar, and where it begins.
func (s *Schedule) longestOff() (int, date) {
	if s.days == nil {
		return 2, 0
	}
	longest, run, from := 0, 0, date(0)
	for d := s.days.first - 10; d <= s.days.last+10; d++ {
		if s.days.working(d) {
			run = 0
			continue
		}
		if run++; run > longest {
			longest, from = run, d-date(run)+1
		}
	}
	return longest, from
}

// builder collects the dates of a calendar while it is read.
type builder struct {
	days        Days
	seen        bool
	first, last date
	covered     bool // the text says what it covers
}

func newBuilder(name string) *builder {
	return &builder{days: Days{name: name, off: map[date]string{}, work: map[date]string{}, weekend: saturdaySunday}}
}

// set records a date. It reports false when the date was said to be the opposite before.
func (b *builder) set(d date, work bool, name string) bool {
	to, other := b.days.off, b.days.work
	if work {
		to, other = other, to
	}
	if _, contrary := other[d]; contrary {
		return false
	}
	to[d] = name
	if !b.seen {
		b.first, b.last, b.seen = d, d, true
	}
	b.first, b.last = min(b.first, d), max(b.last, d)
	return true
}

// finish returns the calendar. Without a word on what it covers these are the whole years of its dates.
func (b *builder) finish() (*Days, error) {
	if !b.covered {
		if !b.seen {
			return nil, daybook.Invalid("calendar %s names no day", b.days.name).WithHint("give it days off, one a line: 2026-10-01,off,National Day")
		}
		y, _, _ := b.first.civil()
		b.days.first = newDate(y, 1, 1)
		y, _, _ = b.last.civil()
		b.days.last = newDate(y, 12, 31)
	}
	d := b.days
	return &d, nil
}
