package calendar

import (
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// form is the kind of text a line was written in. It decides the default window and the words of Describe.
type form uint8

const (
	formCron form = iota
	formEvery
	formHourly
	formDaily
	formWeekly
	formMonthly
	formQuarterly
	formYearly
)

// formWords are the first words of the forms, for the nearest right word.
var formWords = []string{"every", "hourly", "daily", "weekly", "monthly", "quarterly", "yearly",
	"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}

// line is one line of a schedule. It is one of three things: wall-clock times on the dates of a rule (tods), minutes of
// every hour on the dates of a rule (minutes), or a distance from the Unix epoch (every).
type line struct {
	text    string
	form    form
	rule    rule
	tods    []int32 // seconds of the day, ascending
	minutes uint64  // bits 0 to 59
	every   int64   // seconds

	stepDom bool // the day of month is a star with a step beside a weekday
}

// wall reports whether the line names wall-clock times.
func (l *line) wall() bool { return len(l.tods) > 0 }

// Limits of the text of a schedule.
const (
	maxLines     = 64
	maxLineBytes = 400
	maxEvery     = int64(daybook.MaxDelay / time.Second)
)

// parseLines reads a schedule: one form a line, empty lines between them allowed.
func parseLines(text string) ([]line, error) {
	var lines []line
	rows := strings.Split(text, "\n")
	for i, row := range rows {
		row = strings.TrimSuffix(row, "\r")
		if strings.Trim(row, " \t") == "" {
			continue
		}
		if len(row) > maxLineBytes {
			return nil, located(daybook.Invalid("%d bytes: at most %d are allowed", len(row), maxLineBytes).WithHint("use ranges and steps, or several lines"), row, i, len(rows))
		}
		if len(lines) == maxLines {
			return nil, daybook.Invalid("schedule: more than %d lines", maxLines).WithHint("use a list or a range in a cron line")
		}
		l, err := parseLine(row)
		if err != nil {
			if e, ok := err.(*daybook.Error); ok {
				if form := meant(row); form != "" {
					_ = e.WithHint("write %s", form)
				}
			}
			return nil, located(err, row, i, len(rows))
		}
		l.text = strings.Join(strings.Fields(row), " ")
		lines = append(lines, l)
	}
	return lines, nil
}

// located says in which text a fault stands, and in which line of several.
func located(err error, row string, i, n int) error {
	e, ok := err.(*daybook.Error)
	if !ok {
		return err
	}
	row = daybook.Clip(strings.Trim(row, " \t"), 80)
	message, hint := e.Texts()
	if n > 1 {
		return daybook.Invalid("schedule line %d %q: %s", i+1, row, message).WithHint("%s", hint)
	}
	return daybook.Invalid("schedule %q: %s", row, message).WithHint("%s", hint)
}

// parseLine reads one line of any form.
func parseLine(row string) (line, error) {
	for i, c := range row {
		if c < ' ' && c != '\t' || c > '~' {
			err := daybook.Invalid("%q at column %d is not allowed", c, i+1).WithHint("write plain letters, digits and spaces")
			if strings.ContainsRune("“”„‟«»‘’‚‹›「」『』", c) {
				_ = err.WithHint("write plain quotes around the value: \" at both ends")
			}
			return line{}, err
		}
	}
	ws := words(row)
	head, rest := strings.ToLower(ws[0].text), ws[1:]
	switch {
	case strings.HasPrefix(head, "tz=") || strings.HasPrefix(head, "cron_tz="):
		return line{}, daybook.Invalid("the time zone does not stand in the schedule").WithHint("remove %s and set timezone", ws[0].text)
	case head[0] == '@':
		return parseMacro(ws)
	}
	switch head {
	case "every":
		return parseEvery(rest)
	case "hourly":
		return parseHourly(rest)
	case "daily":
		return parseDated(formDaily, ws, 0, daybook.Say("%s", "daily 02:00"))
	case "weekly":
		return parseWeekly(ws)
	case "monthly":
		return parseMonthly(ws)
	case "quarterly":
		return parseQuarterly(ws)
	case "yearly", "annually":
		return parseYearly(ws)
	}
	if c := head[0]; c == '*' || c == '?' || c >= '0' && c <= '9' || len(ws) == 5 || len(ws) == 6 {
		return parseCron(ws)
	}
	err := daybook.Invalid("%q at column %d begins no form", daybook.Clip(ws[0].text, 40), ws[0].col)
	if near := daybook.Nearest(head, formWords); near != "" {
		return line{}, err.WithHint("did you mean %s?", near)
	}
	return line{}, err.WithHint("use five cron fields, every 15m, hourly, daily 02:00, weekly mon 09:00, monthly 15 09:00, monthly last day 18:00, quarterly or yearly")
}

// parseMacro reads the @words of crontab(5).
func parseMacro(ws []word) (line, error) {
	head := strings.ToLower(ws[0].text)
	switch {
	case head == "@reboot":
		return line{}, daybook.Invalid("@reboot names no time, so there is no window a run could answer for").
			WithHint("start it with the machine's own service manager, or trigger the job by hand or by API")
	case head == "@every":
		return line{}, daybook.Invalid("@every is written without the '@'").WithHint("write every 15m; it counts from the Unix epoch, not from the start of the process")
	case len(ws) > 1:
		return line{}, daybook.Invalid("%q at column %d: nothing may follow %s", daybook.Clip(ws[1].text, 40), ws[1].col, head).
			WithHint("for another time use a form, such as daily 02:00")
	}
	r := everyDay()
	switch head {
	case "@hourly":
		return line{form: formHourly, rule: r, minutes: 1}, nil
	case "@daily", "@midnight":
		return line{form: formDaily, rule: r, tods: []int32{0}}, nil
	case "@weekly":
		r.dows, r.anyDow = 1, false
		return line{form: formWeekly, rule: r, tods: []int32{0}}, nil
	case "@monthly":
		r.doms, r.anyDom = 1<<1, false
		return line{form: formMonthly, rule: r, tods: []int32{0}}, nil
	case "@yearly", "@annually":
		r.doms, r.anyDom, r.months = 1<<1, false, 1<<1
		return line{form: formYearly, rule: r, tods: []int32{0}}, nil
	}
	err := daybook.Invalid("%q is unknown", daybook.Clip(ws[0].text, 40))
	if near := daybook.Nearest(head, formWords); near != "" {
		return line{}, err.WithHint("did you mean %s?", near)
	}
	return line{}, err.WithHint("known are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually")
}

// parseEvery reads a distance: 30s, 15m, 6h, 7d or a sum such as 1h30m.
func parseEvery(ws []word) (line, error) {
	const hint = "write a number and a unit of s, m, h or d, such as every 15m"
	if len(ws) == 0 {
		return line{}, daybook.Invalid("every what?").WithHint(hint)
	}
	if len(ws) > 1 {
		return line{}, daybook.Invalid("%q at column %d: nothing may follow the distance", daybook.Clip(ws[1].text, 40), ws[1].col).WithHint(hint)
	}
	w, total := ws[0], int64(0)
	for i := 0; i < len(w.text); {
		start := i
		for i < len(w.text) && w.text[i] >= '0' && w.text[i] <= '9' {
			i++
		}
		n, ok := digits(w.text[start:i])
		end := i
		for end < len(w.text) && (w.text[end] < '0' || w.text[end] > '9') {
			end++
		}
		unit := strings.ToLower(w.text[i:end])
		seconds := map[string]int64{"s": 1, "m": 60, "h": 3600, "d": daySeconds}[unit]
		if unit == "ms" || unit == "us" || unit == "ns" || unit == "." {
			return line{}, daybook.Invalid("%q at column %d is not a whole number of seconds", daybook.Clip(w.text, 40), w.col).
				WithHint("the shortest distance is every 1s")
		}
		if !ok || seconds == 0 {
			return line{}, daybook.Invalid("%q at column %d is not a distance", daybook.Clip(w.text, 40), w.col).WithHint(hint)
		}
		if total += int64(n) * seconds; total > maxEvery {
			return line{}, daybook.Invalid("%q at column %d is more than %d days", daybook.Clip(w.text, 40), w.col, maxEvery/daySeconds).
				WithHint("use yearly 03-01 09:00")
		}
		i = end
	}
	if total < 1 {
		return line{}, daybook.Invalid("%q at column %d is shorter than a second", daybook.Clip(w.text, 40), w.col).
			WithHint("the shortest distance is every 1s")
	}
	return line{form: formEvery, every: total, rule: everyDay()}, nil
}

// parseHourly reads hourly and hourly :15.
func parseHourly(ws []word) (line, error) {
	l := line{form: formHourly, rule: everyDay(), minutes: 1}
	switch {
	case len(ws) == 0:
		return l, nil
	case len(ws) > 1:
		return line{}, daybook.Invalid("%q at column %d: nothing may follow the minute", daybook.Clip(ws[1].text, 40), ws[1].col).
			WithHint("write hourly :15, or a cron line such as 0,15 * * * *")
	}
	text, ok := strings.CutPrefix(ws[0].text, ":")
	m, isNumber := digits(text)
	if !ok || len(text) != 2 || !isNumber || m > 59 {
		return line{}, daybook.Invalid("%q at column %d is not a minute of the hour", daybook.Clip(ws[0].text, 40), ws[0].col).
			WithHint("write hourly :00 to hourly :59")
	}
	l.minutes = 1 << m
	return l, nil
}

// parseTime reads HH:MM.
func parseTime(w word) (int32, error) {
	h, m, ok := strings.Cut(w.text, ":")
	hour, ok1 := digits(h)
	minute, ok2 := digits(m)
	bad := daybook.Invalid("%q at column %d is not a time of day", daybook.Clip(w.text, 40), w.col)
	switch {
	case strings.Contains(w.text, ","):
		return 0, bad.WithHint("one time a line: write a further line for each, or a cron line")
	case !ok || !ok1 || !ok2 || len(h) > 2 || len(m) != 2:
		return 0, bad.WithHint("write hours and minutes of the 24-hour clock, such as 09:00 or 18:30")
	case hour == 24 && minute == 0:
		return 0, bad.WithHint("write 00:00 of the next day")
	case hour > 23 || minute > 59:
		return 0, bad.WithHint("hours are 00 to 23, minutes 00 to 59")
	}
	return int32(hour*3600 + minute*60), nil
}

// parseDated reads the time behind used words of a form and makes a line of every day out of it.
func parseDated(f form, ws []word, used int, example daybook.Text) (line, error) {
	rest := ws[1+used:]
	if len(rest) == 0 {
		return line{}, daybook.Invalid("the time of day is missing").WithHint("write %s", example)
	}
	t, err := parseTime(rest[0])
	if err != nil {
		return line{}, err
	}
	if len(rest) > 1 {
		return line{}, daybook.Invalid("%q at column %d: nothing may follow the time", daybook.Clip(rest[1].text, 40), rest[1].col).
			WithHint("write %s; a further time is a further line, the zone is set by timezone", example)
	}
	return line{form: f, rule: everyDay(), tods: []int32{t}}, nil
}

func parseWeekly(ws []word) (line, error) {
	example := daybook.Say("%s", "weekly mon 09:00")
	if len(ws) < 2 {
		return line{}, daybook.Invalid("the weekday is missing").WithHint("write %s", example)
	}
	day, err := parseWeekday(ws[1])
	if err != nil {
		return line{}, err
	}
	l, err := parseDated(formWeekly, ws, 1, example)
	l.rule.dows, l.rule.anyDow = 1<<day, false
	return l, err
}

var fullWeekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

func weekdayOf(s string) (int, bool) {
	s = strings.ToLower(s)
	for i := range 7 {
		if s == weekdayNames[i] || s == fullWeekdays[i] {
			return i, true
		}
	}
	return 0, false
}

func parseWeekday(w word) (int, error) {
	if day, ok := weekdayOf(w.text); ok {
		return day, nil
	}
	err := daybook.Invalid("%q at column %d is not a weekday", daybook.Clip(w.text, 40), w.col)
	if strings.ContainsAny(w.text, ",-") {
		return 0, err.WithHint("one weekday a line; for several fires a week, each with a key of its own, use a cron line such as 0 9 * * 1,4")
	}
	if near := daybook.Nearest(strings.ToLower(w.text), append(weekdayNames[:7:7], fullWeekdays...)); near != "" {
		return 0, err.WithHint("did you mean %s?", near)
	}
	return 0, err.WithHint("write mon, tue, wed, thu, fri, sat or sun")
}

func parseMonthly(ws []word) (line, error) {
	example := daybook.Say("monthly 15 09:00, monthly last day 18:00, monthly last business day 18:00 or monthly first mon 09:00")
	if len(ws) < 2 {
		return line{}, daybook.Invalid("the day of the month is missing").WithHint("write %s", example)
	}
	if n, ok := digits(ws[1].text); ok {
		if n < 1 || n > 31 {
			return line{}, daybook.Invalid("day %d at column %d is outside 1 to 31", n, ws[1].col).WithHint("write %s", example)
		}
		l, err := parseDated(formMonthly, ws, 1, daybook.Say("%s", "monthly 15 09:00"))
		l.rule.doms, l.rule.anyDom = 1<<n, false
		return l, err
	}
	return parsePicked(formMonthly, ws, allMonths, allMonths, example)
}

func parseQuarterly(ws []word) (line, error) {
	example := daybook.Say("quarterly first day 09:00, quarterly last day 18:00, quarterly last business day 18:00 or quarterly first mon 09:00")
	if len(ws) < 2 {
		return line{}, daybook.Invalid("the day of the quarter is missing").WithHint("write %s", example)
	}
	if n, ok := digits(ws[1].text); ok {
		return line{}, daybook.Invalid("day %s at column %d: of which month of the quarter?", ws[1].text, ws[1].col).
			WithHint("write %s; for day %d of its first month 0 9 %d 1,4,7,10 * with window: quarter", example, n, min(max(n, 1), 31))
	}
	return parsePicked(formQuarterly, ws, 1<<1|1<<4|1<<7|1<<10, 1<<3|1<<6|1<<9|1<<12, example)
}

func parseYearly(ws []word) (line, error) {
	example := daybook.Say("yearly 03-01 09:00, yearly last day 18:00 or yearly last business day 18:00")
	if len(ws) < 2 {
		return line{}, daybook.Invalid("the day of the year is missing").WithHint("write %s", example)
	}
	if c := ws[1].text[0]; c >= '0' && c <= '9' {
		m, d, ok := strings.Cut(ws[1].text, "-")
		month, ok1 := digits(m)
		day, ok2 := digits(d)
		if !ok || !ok1 || !ok2 || len(m) != 2 || len(d) != 2 {
			return line{}, daybook.Invalid("%q at column %d is not a day of the year", daybook.Clip(ws[1].text, 40), ws[1].col).
				WithHint("write month and day, such as yearly 03-01 09:00")
		}
		if month < 1 || month > 12 || day < 1 || day > longestMonth(1<<month) {
			return line{}, daybook.Invalid("%s at column %d never comes", ws[1].text, ws[1].col).WithHint("write month and day, such as 03-01 for 1 March")
		}
		l, err := parseDated(formYearly, ws, 1, daybook.Say("%s", "yearly 03-01 09:00"))
		l.rule.months, l.rule.doms, l.rule.anyDom = 1<<month, 1<<day, false
		return l, err
	}
	return parsePicked(formYearly, ws, 1<<1, 1<<12, example)
}

var ordinals = []string{"first", "second", "third", "fourth", "last"}

// parsePicked reads first|last [business] day and first..fourth|last WEEKDAY. A first day lies in the first month of the
// period, a last one in its last month.
func parsePicked(f form, ws []word, firstMonths, lastMonths uint16, example daybook.Text) (line, error) {
	which := strings.ToLower(ws[1].text)
	n := 0
	for i, o := range ordinals {
		if which == o {
			n = i + 1
		}
	}
	if n == 0 {
		err := daybook.Invalid("%q at column %d is not a day", daybook.Clip(ws[1].text, 40), ws[1].col)
		if near := daybook.Nearest(which, ordinals); near != "" {
			return line{}, err.WithHint("did you mean %s?", near)
		}
		return line{}, err.WithHint("write %s", example)
	}
	if len(ws) < 3 {
		return line{}, daybook.Invalid("%s what?", which).WithHint("write %s", example)
	}
	last := which == "last"
	r := everyDay()
	r.months = firstMonths
	if last {
		r.months = lastMonths
	}
	used := 2
	switch noun := strings.ToLower(ws[2].text); {
	case noun == "day" || noun == "business":
		if noun == "business" {
			if len(ws) < 4 || strings.ToLower(ws[3].text) != "day" {
				return line{}, daybook.Invalid("%q at column %d wants the word day behind it", ws[2].text, ws[2].col).WithHint("write %s", example)
			}
			used = 3
		}
		switch {
		case last && noun == "day":
			r.pick = pickLast
		case last:
			r.pick = pickLastBiz
		case n == 1 && noun == "day":
			r.doms, r.anyDom = 1<<1, false
		case n == 1:
			r.pick = pickFirstBiz
		default:
			return line{}, daybook.Invalid("%s at column %d: only the first and the last day have a name", which, ws[1].col).WithHint("write %s", example)
		}
	default:
		day, err := parseWeekday(ws[2])
		if err != nil {
			return line{}, err
		}
		r.dows, r.anyDow, r.pick, r.nth = 1<<day, false, pickNth, n
		if last {
			r.pick = pickLastDow
		}
	}
	l, err := parseDated(f, ws, used, example)
	l.rule = r
	return l, err
}
