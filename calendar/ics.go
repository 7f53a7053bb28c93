package calendar

import (
	"strings"

	"github.com/daybook-run/daybook"
)

// ParseICS reads a business calendar from an iCalendar file (RFC 5545). Every all-day event (DTSTART is a date, DTEND
// the day after its last) is days off. It is working days instead when one of these says so: CATEGORIES has WORK,
// X-APPLE-SPECIAL-DAY is ALTERNATE-WORKDAY, or SUMMARY ends in 班 or （班）, as public calendars of China write it.
// Events with a time of day, cancelled ones (STATUS:CANCELLED) and other components are passed over; Saturday and Sunday
// are off. It covers the whole years of its dates.
//
// Errors have CodeInvalid and name the line: a date that does not exist, an event of more than a year, a recurring event
// (RRULE, RDATE: public calendars list each year), a day that is both off and work.
func ParseICS(name string, data []byte) (*Days, error) {
	if len(data) > maxDaysBytes {
		return nil, daybook.Invalid("calendar %s has %d bytes: at most %d are allowed", name, len(data), maxDaysBytes)
	}
	b := newBuilder(name)
	var e *icsEvent
	var inner []string // components inside the event, such as VALARM
	rows := 0
	for number, text := range unfold(string(data)) {
		key, params, value := icsLine(text)
		var err *daybook.Error
		switch {
		case key == "BEGIN" && strings.EqualFold(value, "VEVENT") && e == nil:
			e, inner = &icsEvent{}, nil
		case e == nil:
		case key == "BEGIN":
			inner = append(inner, value)
		case key == "END" && len(inner) > 0:
			inner = inner[:len(inner)-1]
		case len(inner) > 0:
		case key == "END":
			err = e.addTo(b, &rows)
			e = nil
		default:
			err = e.property(key, params, value)
		}
		if err != nil {
			message, hint := err.Texts()
			return nil, daybook.Invalid("calendar %s line %d: %s", name, number, message).WithHint("%s", hint)
		}
	}
	if e != nil {
		return nil, daybook.Invalid("calendar %s ends in the middle of an event", name).WithHint("the file is cut off: fetch it again")
	}
	return b.finish()
}

// unfold yields the lines of an iCalendar text with the number of their first row: a row that begins with a space or
// tab goes on with the one before.
func unfold(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		var current strings.Builder
		start := 0
		for i, row := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
			row = strings.TrimSuffix(row, "\r")
			if start > 0 && row != "" && (row[0] == ' ' || row[0] == '\t') {
				current.WriteString(row[1:])
				continue
			}
			if start > 0 && !yield(start, current.String()) {
				return
			}
			current.Reset()
			current.WriteString(row)
			start = i + 1
		}
		if start > 0 {
			yield(start, current.String())
		}
	}
}

// icsLine splits NAME;PARAM=x:value. Parameters are returned in upper case.
func icsLine(text string) (key, params, value string) {
	quoted := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == ':' && !quoted:
			key, params, _ = strings.Cut(text[:i], ";")
			return strings.ToUpper(key), strings.ToUpper(params), strings.TrimSpace(text[i+1:])
		}
	}
	return "", "", ""
}

// icsEvent is a VEVENT while it is read.
type icsEvent struct {
	start, end       date
	hasStart, hasEnd bool
	days             int // DURATION
	timed, cancelled bool
	work             bool
	summary          string
}

func (e *icsEvent) property(key, params, value string) *daybook.Error {
	switch key {
	case "DTSTART", "DTEND":
		if len(value) > 8 || strings.Contains(params, "VALUE=DATE-TIME") {
			e.timed = true
			return nil
		}
		var d date
		ok := len(value) == 8
		if ok {
			d, ok = parseDate(value[:4] + "-" + value[4:6] + "-" + value[6:])
		}
		if !ok {
			return daybook.Invalid("%s %q is no date", key, daybook.Clip(value, 40)).WithHint("a date is written 20261001")
		}
		if y, _, _ := d.civil(); y < minYear || y > maxYear {
			return daybook.Invalid("the year of %s is outside %d to %d", d, minYear, maxYear)
		}
		if key == "DTSTART" {
			e.start, e.hasStart = d, true
		} else {
			e.end, e.hasEnd = d, true
		}
	case "DURATION":
		text, unit := strings.ToUpper(value), 1
		if strings.HasSuffix(text, "W") {
			unit = 7
		}
		n, ok := digits(strings.TrimRight(strings.TrimPrefix(text, "P"), "DW"))
		if !ok {
			e.timed = true
			return nil
		}
		e.days = min(n, 10_000) * unit
	case "RRULE", "RDATE":
		return daybook.Invalid("a recurring event (%s)", key).WithHint("list each year's days: a rule has no end that could be covered")
	case "STATUS":
		e.cancelled = strings.EqualFold(value, "CANCELLED")
	case "CATEGORIES":
		for _, c := range strings.Split(value, ",") {
			e.work = e.work || strings.EqualFold(strings.TrimSpace(c), "WORK")
		}
	case "X-APPLE-SPECIAL-DAY":
		e.work = e.work || strings.EqualFold(value, "ALTERNATE-WORKDAY")
	case "SUMMARY":
		e.summary = daybook.Clip(value, 100)
		e.work = e.work || strings.HasSuffix(value, "班") || strings.HasSuffix(value, "（班）") || strings.HasSuffix(value, "(班)")
	}
	return nil
}

func (e *icsEvent) addTo(b *builder, rows *int) *daybook.Error {
	if e.timed || e.cancelled || !e.hasStart {
		return nil
	}
	end := e.end
	if !e.hasEnd {
		end = e.start + date(max(e.days, 1))
	}
	if end <= e.start { // some calendars write the last day instead of the day after
		end = e.start + 1
	}
	if end-e.start > 366 {
		return daybook.Invalid("an event of %d days", end-e.start).WithHint("at most 366 days are allowed")
	}
	for d := e.start; d < end; d++ {
		if *rows++; *rows > maxDaysRows {
			return daybook.Invalid("more than %d days", maxDaysRows)
		}
		if !b.set(d, e.work, e.summary) {
			return daybook.Invalid("%s is said to be off and to be work", d).WithHint("keep one of the two events")
		}
	}
	return nil
}
