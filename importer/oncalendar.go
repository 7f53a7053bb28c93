package importer

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// chain is one item of a component: a value, a range, either with a step.
type chain struct{ start, stop, repeat int } // stop -1: none

// component is what one part of an expression allows; nil is everything.
type component []chain

func (c component) matches(v int) bool {
	if c == nil {
		return true
	}
	for _, k := range c {
		switch {
		case v < k.start, k.stop >= 0 && v > k.stop, k.stop < 0 && k.repeat == 0 && v != k.start:
		case k.repeat == 0 || (v-k.start)%k.repeat == 0:
			return true
		}
	}
	return false
}

// bits returns the values from low to high that are allowed.
func (c component) bits(low, high int) (set uint64) {
	for v := low; v <= high; v++ {
		if c.matches(v) {
			set |= 1 << v
		}
	}
	return set
}

// onCalendar is a calendar expression of systemd.time(7). Weekday and date must both match.
type onCalendar struct {
	text                                         string
	weekdays                                     uint8 // bit 0 is Sunday
	years, months, days, hours, minutes, seconds component
	fromEnd                                      bool // days count from the end of the month
	zone                                         string
}

var calendarWords = map[string]string{
	"minutely": "*-*-* *:*:00", "hourly": "*-*-* *:00:00", "daily": "*-*-* 00:00:00", "monthly": "*-*-01 00:00:00",
	"weekly": "Mon *-*-* 00:00:00", "yearly": "*-01-01 00:00:00", "annually": "*-01-01 00:00:00", "anually": "*-01-01 00:00:00",
	"quarterly": "*-01,04,07,10-01 00:00:00", "semiannually": "*-01,07-01 00:00:00", "semi-annually": "*-01,07-01 00:00:00", "biannually": "*-01,07-01 00:00:00",
	"bi-annually": "*-01,07-01 00:00:00",
}

// parseOnCalendar reads an expression.
func parseOnCalendar(text string) (onCalendar, error) {
	c := onCalendar{text: text, weekdays: 0x7f, hours: component{{0, -1, 0}}, minutes: component{{0, -1, 0}}, seconds: component{{0, -1, 0}}}
	words := strings.Fields(text)
	if n := len(words); n > 1 {
		if _, err := calendar.Zone(words[n-1]); err == nil {
			c.zone, words = words[n-1], words[:n-1]
		}
	}
	if len(words) == 1 {
		if long, ok := calendarWords[strings.ToLower(words[0])]; ok {
			words = strings.Fields(long)
		}
	}
	bad := func(word string) (onCalendar, error) {
		return c, daybook.Invalid("OnCalendar=%s: %q cannot be read", clip(text), clip(word)).WithHint("systemd-analyze calendar shows what systemd makes of it")
	}
	next := 0 // which of weekday, date, time may come
	for _, w := range words {
		kind := 0
		switch {
		case strings.Contains(w, ":"):
			kind = 2
		case w[0] >= '0' && w[0] <= '9' || w[0] == '*':
			kind = 1
		}
		if kind < next {
			return bad(w)
		}
		next = kind + 1
		if ok := [...]func(string) bool{c.readWeekdays, c.readDate, c.readTime}[kind](w); !ok {
			return bad(w)
		}
	}
	if next == 0 {
		return bad("")
	}
	return c, nil
}

func (c *onCalendar) readWeekdays(w string) bool {
	c.weekdays = 0
	for _, item := range strings.Split(strings.TrimSuffix(w, ","), ",") {
		first, last, ranged := strings.Cut(item, "..")
		if !ranged {
			first, last, ranged = strings.Cut(item, "-")
		}
		from, ok := systemdDay(first)
		to := from
		if ok && ranged {
			to, ok = systemdDay(last)
		}
		if !ok || from > to {
			return false
		}
		for d := from; d <= to; d++ {
			c.weekdays |= 1 << ((d + 1) % 7)
		}
	}
	return true
}

// systemdDay reads the name of a weekday; 0 is Monday.
func systemdDay(name string) (int, bool) {
	for i, full := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		if strings.EqualFold(name, full) || strings.EqualFold(name, full[:3]) {
			return i, true
		}
	}
	return 0, false
}

func (c *onCalendar) readDate(w string) bool {
	if i := strings.LastIndexByte(w, '~'); i >= 0 {
		c.fromEnd = true
		w = w[:i] + "-" + w[i+1:]
	}
	parts := strings.Split(w, "-")
	switch len(parts) {
	case 2:
		parts = append([]string{"*"}, parts...)
	case 3:
	default:
		return false
	}
	var ok [3]bool
	c.years, ok[0] = readComponent(parts[0], 1970, 2200)
	c.months, ok[1] = readComponent(parts[1], 1, 12)
	c.days, ok[2] = readComponent(parts[2], 1, 31)
	return ok[0] && ok[1] && ok[2]
}

func (c *onCalendar) readTime(w string) bool {
	parts := strings.Split(w, ":")
	if len(parts) == 2 {
		parts = append(parts, "0")
	}
	if len(parts) != 3 {
		return false
	}
	if whole, part, ok := strings.Cut(parts[2], "."); ok && strings.Trim(part, "0") == "" {
		parts[2] = whole
	}
	var ok [3]bool
	c.hours, ok[0] = readComponent(parts[0], 0, 23)
	c.minutes, ok[1] = readComponent(parts[1], 0, 59)
	c.seconds, ok[2] = readComponent(parts[2], 0, 59)
	return ok[0] && ok[1] && ok[2]
}

// readComponent reads a star, or values, ranges and steps.
func readComponent(text string, low, high int) (component, bool) {
	if text == "*" {
		return nil, true
	}
	var c component
	for _, item := range strings.Split(text, ",") {
		span, step, stepped := strings.Cut(item, "/")
		first, last, ranged := strings.Cut(span, "..")
		k := chain{stop: -1}
		var ok bool
		if k.start, ok = number(first, low, high); !ok {
			return nil, false
		}
		if ranged {
			if k.stop, ok = number(last, k.start, high); !ok {
				return nil, false
			}
		}
		if stepped {
			if k.repeat, ok = number(step, 1, 1000); !ok {
				return nil, false
			}
		}
		c = append(c, k)
	}
	return c, true
}

func number(text string, low, high int) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= low && n <= high && text[0] != '+' && text[0] != '-'
}

var weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// forms says the expression in the words of the file. ok is false when they cannot say it.
func (c onCalendar) forms() (forms []string, ok bool) {
	months, days := c.months.bits(1, 12), c.days.bits(1, 31)
	if c.years != nil || months == 0 || days == 0 {
		return nil, false
	}
	anyDate := months == allMonthBits && days == allDoms && !c.fromEnd && c.weekdays == 0x7f
	if n, every := c.everySeconds(); every && anyDate {
		return []string{fmt.Sprintf("every %ds", n)}, true
	}
	if c.seconds.bits(0, 59) != 1 {
		return nil, false
	}
	switch {
	case c.fromEnd:
		forms, ok = c.fromEndForms(months)
	case c.weekdays != 0x7f && days != allDoms:
		forms, ok = c.nthForms(months, days)
	default:
		forms, ok = []string{c.form(months, days)}, true
	}
	return forms, ok && check(forms) == nil
}

const allMonthBits = uint64(1)<<13 - 2

// everySeconds recognises each so many seconds, which elapsed time says as well: from a whole minute on.
func (c onCalendar) everySeconds() (int, bool) {
	if c.hours.bits(0, 23) != 1<<24-1 || c.minutes.bits(0, 59) != 1<<60-1 {
		return 0, false
	}
	if c.seconds == nil {
		return 1, true
	}
	k := c.seconds[0]
	return k.repeat, len(c.seconds) == 1 && k.start == 0 && k.stop < 0 && k.repeat > 0 && 60%k.repeat == 0
}

// times returns the times of day, of which forms with words take one each.
func (c onCalendar) times() (list []string) {
	for h := range 24 {
		for m := range 60 {
			if c.hours.matches(h) && c.minutes.matches(m) {
				list = append(list, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
	}
	return list
}

// fromEndForms is for days that count from the end of the month.
func (c onCalendar) fromEndForms(months uint64) (forms []string, ok bool) {
	which := ""
	switch {
	case len(c.days) != 1:
		return nil, false
	case c.days[0] == chain{1, -1, 0} && c.weekdays == 0x7f:
		which = "last day"
	case c.days[0] == chain{7, -1, 1} && bits.OnesCount8(c.weekdays) == 1:
		which = "last " + weekdayNames[bits.TrailingZeros8(c.weekdays)]
	default:
		return nil, false
	}
	period := map[uint64]string{allMonthBits: "monthly", 1<<3 | 1<<6 | 1<<9 | 1<<12: "quarterly", 1 << 12: "yearly"}[months]
	times := c.times()
	if period == "" || len(times) > 24 {
		return nil, false
	}
	for _, t := range times {
		forms = append(forms, period+" "+which+" "+t)
	}
	return forms, true
}

// nthForms is for a weekday in the n-th seven days of a month.
func (c onCalendar) nthForms(months, days uint64) (forms []string, ok bool) {
	times := c.times()
	if bits.OnesCount8(c.weekdays) != 1 || months != allMonthBits || len(times) > 24 {
		return nil, false
	}
	n := slices.Index([]uint64{0x7f << 1, 0x7f << 8, 0x7f << 15, 0x7f << 22}, days)
	if n < 0 {
		return nil, false
	}
	for _, t := range times {
		forms = append(forms, fmt.Sprintf("monthly %s %s %s", []string{"first", "second", "third", "fourth"}[n], weekdayNames[bits.TrailingZeros8(c.weekdays)], t))
	}
	return forms, true
}

// form is for everything that five fields say, in words where there are some.
func (c onCalendar) form(months, days uint64) string {
	hours, minutes := c.hours.bits(0, 23), c.minutes.bits(0, 59)
	anyMonth, anyDay, anyWeekday := months == allMonthBits, days == allDoms, c.weekdays == 0x7f
	clock := fmt.Sprintf("%02d:%02d", bits.TrailingZeros64(hours), bits.TrailingZeros64(minutes))
	one := bits.OnesCount64(hours) == 1 && bits.OnesCount64(minutes) == 1
	day := bits.TrailingZeros64(days)
	switch {
	case anyMonth && anyDay && anyWeekday && hours == 1<<24-1 && minutes == 1:
		return "hourly"
	case one && anyMonth && anyDay && anyWeekday:
		return "daily " + clock
	case one && anyMonth && anyDay && bits.OnesCount8(c.weekdays) == 1:
		return "weekly " + weekdayNames[bits.TrailingZeros8(c.weekdays)] + " " + clock
	case one && anyMonth && anyWeekday && bits.OnesCount64(days) == 1:
		return fmt.Sprintf("monthly %d %s", day, clock)
	case one && anyWeekday && months == 1<<1|1<<4|1<<7|1<<10 && days == 1<<1:
		return "quarterly first day " + clock
	case one && anyWeekday && bits.OnesCount64(months) == 1 && bits.OnesCount64(days) == 1:
		return fmt.Sprintf("yearly %02d-%02d %s", bits.TrailingZeros64(months), day, clock)
	}
	return strings.Join([]string{cronFields[fMinute].write(minutes), cronFields[fHour].write(hours), cronFields[fDom].write(days),
		cronFields[fMonth].write(months), cronFields[fDow].write(uint64(c.weekdays))}, " ")
}

// Limits of the search for fires to come.
const (
	lookDays  = 20 * 366
	lookFires = 3
)

// next returns fires to come, for a note about what cannot be imported.
func (c onCalendar) next(now time.Time, zone string) (list []string) {
	if c.zone != "" {
		zone = c.zone
	}
	loc, err := calendar.Zone(zone)
	if err != nil {
		return nil
	}
	first := now.In(loc)
	for i := range lookDays {
		d := time.Date(first.Year(), first.Month(), first.Day()+i, 0, 0, 0, 0, time.UTC)
		if !c.onDate(d) {
			continue
		}
		for s := range 24 * 3600 {
			if !c.hours.matches(s/3600) || !c.minutes.matches(s/60%60) || !c.seconds.matches(s%60) {
				continue
			}
			at := time.Date(d.Year(), d.Month(), d.Day(), s/3600, s/60%60, s%60, 0, loc)
			if !at.After(now) {
				continue
			}
			if list = append(list, at.Format("Mon 2006-01-02 15:04:05")); len(list) == lookFires {
				return list
			}
		}
	}
	return list
}

func (c onCalendar) onDate(d time.Time) bool {
	if !c.years.matches(d.Year()) || !c.months.matches(int(d.Month())) || c.weekdays&(1<<d.Weekday()) == 0 {
		return false
	}
	if !c.fromEnd {
		return c.days.matches(d.Day())
	}
	last := time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
	for _, k := range c.days { // counted from the end; a step goes on towards it
		start := last + 1 - k.start
		stop := start
		if k.repeat > 0 {
			stop = last
		}
		if k.stop < 0 && d.Day() >= start && d.Day() <= stop && (k.repeat == 0 || (d.Day()-start)%k.repeat == 0) {
			return true
		}
	}
	return c.days == nil
}

// systemdUnits are the units of time spans.
var systemdUnits = map[string]time.Duration{
	"us": time.Microsecond, "usec": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond, "msec": time.Millisecond,
	"": time.Second, "s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
	"M": 2629800 * time.Second, "month": 2629800 * time.Second, "months": 2629800 * time.Second,
	"y": 31557600 * time.Second, "year": 31557600 * time.Second, "years": 31557600 * time.Second,
}

// parseSpan reads a time span: numbers with units, a bare one being seconds.
func parseSpan(text string) (time.Duration, bool) {
	rest := strings.TrimSpace(text)
	var total time.Duration
	for rest != "" {
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		v, err := strconv.ParseInt(rest[:n], 10, 64)
		rest = strings.TrimLeft(rest[n:], " \t")
		u := 0
		for u < len(rest) && (rest[u] < '0' || rest[u] > '9') && rest[u] != ' ' && rest[u] != '\t' {
			u++
		}
		unit, ok := systemdUnits[rest[:u]]
		if err != nil || !ok || v > int64(daybook.MaxDelay/unit) {
			return 0, false
		}
		if total += time.Duration(v) * unit; total > daybook.MaxDelay {
			return 0, false
		}
		rest = strings.TrimLeft(rest[u:], " \t")
	}
	return total, text != ""
}
