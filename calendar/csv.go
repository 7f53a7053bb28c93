package calendar

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/daybook-run/daybook"
)

// ParseDays reads a business calendar from the bytes of a CSV or an ICS file; which of the two it is shows in its first
// line. Errors have CodeInvalid and name the line.
func ParseDays(name string, data []byte) (*Days, error) {
	head := strings.TrimSpace(strings.TrimPrefix(string(data[:min(len(data), 200)]), "\ufeff"))
	if len(head) >= 15 && strings.EqualFold(head[:15], "BEGIN:VCALENDAR") {
		return ParseICS(name, data)
	}
	return ParseCSV(name, data)
}

// ParseCSV reads a business calendar of rows
//
//	2026-10-01,off,National Day     a day off; the name is optional
//	2026-10-10,work,make-up day     a working day, on a weekend
//	covers,2019-01-01,2027-12-31    what the data covers; without it the whole years of its dates
//	weekend,fri,sat                 which weekdays are off; without it Saturday and Sunday
//
// A line that begins with # is a comment, and a first row that begins with "date" a heading. Errors have CodeInvalid and
// name the line: a date that does not exist, a word that is not off or work, a date said to be both.
func ParseCSV(name string, data []byte) (*Days, error) {
	if len(data) > maxDaysBytes {
		return nil, daybook.Invalid("calendar %s has %d bytes: at most %d are allowed", name, len(data), maxDaysBytes)
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(data), "\ufeff")))
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace, r.ReuseRecord = '#', -1, true, true
	b := newBuilder(name)
	for rows := 0; ; rows++ {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return b.finish()
		}
		if err != nil {
			return nil, daybook.Invalid("calendar %s", name).Because(err)
		}
		at, _ := r.FieldPos(0)
		if rows >= maxDaysRows {
			return nil, daybook.Invalid("calendar %s has more than %d rows", name, maxDaysRows)
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if rows == 0 && strings.EqualFold(row[0], "date") {
			continue
		}
		if err := b.row(row); err != nil {
			message, hint := err.Texts()
			return nil, daybook.Invalid("calendar %s line %d: %s", name, at, message).WithHint("%s", hint)
		}
	}
}

func (b *builder) row(row []string) *daybook.Error {
	const hint = "a row is 2026-10-01,off,National Day or 2026-10-10,work"
	switch strings.ToLower(row[0]) {
	case "covers":
		return b.covers(row[1:])
	case "weekend":
		return b.weekend(row[1:])
	}
	d, ok := parseDate(row[0])
	if !ok {
		return daybook.Invalid("%q is no date", daybook.Clip(row[0], 40)).WithHint(hint)
	}
	if y, _, _ := d.civil(); y < minYear || y > maxYear {
		return daybook.Invalid("the year of %s is outside %d to %d", d, minYear, maxYear).WithHint(hint)
	}
	if len(row) < 2 {
		return daybook.Invalid("%s is neither off nor work", d).WithHint(hint)
	}
	kind := strings.ToLower(row[1])
	if kind != "off" && kind != "work" {
		err := daybook.Invalid("%q is neither off nor work", daybook.Clip(row[1], 40))
		if near := daybook.Nearest(kind, []string{"off", "work"}); near != "" {
			return err.WithHint("did you mean %s?", near)
		}
		return err.WithHint(hint)
	}
	label := ""
	if len(row) > 2 {
		label = daybook.Clip(row[2], 100)
	}
	if !b.set(d, kind == "work", label) {
		return daybook.Invalid("%s is said to be off and to be work", d).WithHint("keep one of the two rows")
	}
	return nil
}

func (b *builder) covers(row []string) *daybook.Error {
	const hint = "write covers,2019-01-01,2027-12-31"
	if len(row) != 2 {
		return daybook.Invalid("covers wants two dates").WithHint(hint)
	}
	first, ok1 := parseDate(row[0])
	last, ok2 := parseDate(row[1])
	if !ok1 || !ok2 || first > last {
		return daybook.Invalid("covers %s to %s is no span of dates", daybook.Clip(row[0], 40), daybook.Clip(row[1], 40)).WithHint(hint)
	}
	y1, _, _ := first.civil()
	y2, _, _ := last.civil()
	if y1 < minYear || y2 > maxYear {
		return daybook.Invalid("covers: the years are outside %d to %d", minYear, maxYear).WithHint(hint)
	}
	b.days.first, b.days.last, b.covered = first, last, true
	return nil
}

func (b *builder) weekend(row []string) *daybook.Error {
	var set uint8
	for _, name := range row {
		day, ok := weekdayOf(name)
		if !ok {
			return daybook.Invalid("weekend: %q is not a weekday", daybook.Clip(name, 40)).WithHint("write weekend,fri,sat")
		}
		set |= 1 << day
	}
	if set == allDows {
		return daybook.Invalid("weekend: seven days leave no working day").WithHint("write weekend,fri,sat")
	}
	b.days.weekend = set
	return nil
}
