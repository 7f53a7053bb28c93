package calendar

import "time"

// date is a civil date of the proleptic Gregorian calendar as a number of days since 1970-01-01. It has no zone, so
// nothing that clocks do can lose or double one.
type date int32

const daySeconds = 24 * 60 * 60

// newDate returns the date of year, month (1 to 12) and day, which may lie beyond the month's end.
// The arithmetic is Howard Hinnant's days_from_civil: exact for every year, no tables.
func newDate(year, month, day int) date {
	if month <= 2 {
		year--
		month += 12
	}
	era := floorDiv(int64(year), 400)
	yoe := int64(year) - era*400
	doy := int64((153*(month-3)+2)/5 + day - 1)
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return date(era*146097 + doe - 719468)
}

// civil is the inverse of newDate.
func (d date) civil() (year, month, day int) {
	z := int64(d) + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	if month > 12 {
		month -= 12
	}
	year = int(yoe + era*400)
	if month <= 2 {
		year++
	}
	return year, month, day
}

func (d date) weekday() time.Weekday { return time.Weekday(floorMod(int64(d)+4, 7)) }

// monday returns the first day of the ISO week of d.
func (d date) monday() date { return d - date(floorMod(int64(d)+3, 7)) }

// isoWeek returns the ISO 8601 week of d with its own year: the year of the week's Thursday.
func (d date) isoWeek() (year, week int) {
	thursday := d.monday() + 3
	year, _, _ = thursday.civil()
	return year, int(thursday-newDate(year, 1, 1))/7 + 1
}

// firstOfMonth returns the first day of the month that lies n months after that of d.
func (d date) firstOfMonth(n int) date {
	y, m, _ := d.civil()
	months := int64(y)*12 + int64(m-1) + int64(n)
	return newDate(int(floorDiv(months, 12)), int(floorMod(months, 12))+1, 1)
}

func (d date) String() string {
	y, m, day := d.civil()
	return string(appendDate(make([]byte, 0, 10), y, m, day))
}

// seconds returns the wall-clock time 00:00 of d, as seconds since 1970-01-01 00:00 of the same wall clock.
func (d date) seconds() int64 { return int64(d) * daySeconds }

// dateOfLocal returns the date of a wall-clock time in seconds.
func dateOfLocal(local int64) date { return date(floorDiv(local, daySeconds)) }

func daysInMonth(year, month int) int {
	return int(newDate(year, month+1, 1) - newDate(year, month, 1))
}

// parseDate reads YYYY-MM-DD and accepts real dates only.
func parseDate(s string) (date, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y, ok1 := digits(s[:4])
	m, ok2 := digits(s[5:7])
	d, ok3 := digits(s[8:])
	if !ok1 || !ok2 || !ok3 || m < 1 || m > 12 || d < 1 || d > daysInMonth(y, m) {
		return 0, false
	}
	return newDate(y, m, d), true
}

// digits reads a number of at most nine ASCII digits and nothing else.
func digits(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

func appendDate(b []byte, year, month, day int) []byte {
	b = append2(append2(b, year/100), year%100)
	b = append(b, '-')
	b = append2(b, month)
	b = append(b, '-')
	return append2(b, day)
}

func append2(b []byte, n int) []byte { return append(b, byte('0'+n/10%10), byte('0'+n%10)) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }
