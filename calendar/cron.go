package calendar

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/daybook-run/daybook"
)

// cronField describes one of the five fields.
type cronField struct {
	name     string
	said     daybook.Text // the name, in messages
	allowed  daybook.Text // which values there are
	min, max int
	names    []string // of the values from min on
}

var (
	monthNames   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	cronFields   = [5]cronField{
		{name: "minute", said: daybook.Say("minute"), allowed: daybook.Say("a minute is 0 to 59"), max: 59},
		{name: "hour", said: daybook.Say("hour"), allowed: daybook.Say("an hour is 0 to 23; midnight is 0"), max: 23},
		{name: "day of month", said: daybook.Say("day of month"), allowed: daybook.Say("a day of month is 1 to 31"), min: 1, max: 31},
		{name: "month", said: daybook.Say("month"), allowed: daybook.Say("a month is 1 to 12 or jan to dec"), min: 1, max: 12, names: monthNames},
		{name: "weekday", said: daybook.Say("weekday"), allowed: daybook.Say("a weekday is 0 to 7 or sun to sat, where 0 and 7 are Sunday"), max: 7, names: weekdayNames},
	}
)

// word is a piece of a line, with the column of its first byte, counted from 1.
type word struct {
	text string
	col  int
}

// words splits a line at spaces and tabs.
func words(line string) []word {
	var list []word
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		end := strings.IndexAny(line[i:], " \t")
		if end < 0 {
			end = len(line) - i
		}
		list = append(list, word{line[i : i+end], i + 1})
		i += end
	}
	return list
}

// parseCron reads the five fields of a crontab line: minute, hour, day of month, month, weekday.
func parseCron(ws []word) (line, error) {
	switch {
	case len(ws) == 6:
		return line{}, daybook.Invalid("six fields: some tools read the first as seconds, others the last as a year").
			WithHint("write five fields: minute, hour, day of month, month, weekday; for seconds use every 30s")
	case len(ws) != 5:
		return line{}, daybook.Invalid("%s", daybook.Count(len(ws), "%d field, where five are needed", "%d fields, where five are needed")).
			WithHint("write minute, hour, day of month, month, weekday, such as 0 2 * * *")
	}
	var sets [5]uint64
	for i, w := range ws {
		set, err := cronFields[i].parse(w)
		if err != nil {
			return line{}, err
		}
		sets[i] = set
	}
	dows := uint8(sets[4]&allDows | sets[4]>>7&1) // 7 is Sunday
	r := rule{months: uint16(sets[3]), doms: uint32(sets[2]), dows: dows,
		anyDom: sets[2] == allDoms, anyDow: dows == allDows}
	if r.never() {
		return line{}, daybook.Invalid("day of month %s at column %d never comes in month %s", ws[2].text, ws[2].col, ws[3].text).
			WithHint("use a day that exists, or monthly last day %s", exampleTime(sets[1], sets[0]))
	}
	l := line{form: formCron, rule: r}
	l.stepDom = !r.anyDom && !r.anyDow && strings.HasPrefix(ws[2].text, "*/")
	if sets[1] == 1<<24-1 { // every hour: elapsed time
		l.minutes = sets[0]
		return l, nil
	}
	for h := range 24 {
		for m := range 60 {
			if sets[1]&(1<<h) != 0 && sets[0]&(1<<m) != 0 {
				l.tods = append(l.tods, int32(h*3600+m*60))
			}
		}
	}
	return l, nil
}

func exampleTime(hours, minutes uint64) string {
	return fmt.Sprintf("%02d:%02d", bits.TrailingZeros64(hours), bits.TrailingZeros64(minutes))
}

// parse reads one field: a list of values, ranges and steps. The result has a bit for every value.
func (f *cronField) parse(w word) (uint64, error) {
	var set uint64
	col := w.col
	for _, item := range strings.Split(w.text, ",") {
		bitsOf, err := f.item(word{item, col}, w.text)
		if err != nil {
			return 0, err
		}
		set |= bitsOf
		col += len(item) + 1
	}
	return set, nil
}

func (f *cronField) item(w word, field string) (uint64, error) {
	if w.text == "" {
		return 0, daybook.Invalid("%s %q at column %d has an empty item", f.said, daybook.Clip(field, 40), w.col).
			WithHint("write values between the commas, without spaces")
	}
	if err := f.foreign(w); err != nil {
		return 0, err
	}
	span, stepText, stepped := strings.Cut(w.text, "/")
	lo, hi := f.min, f.max
	if f.max == 7 { // of weekdays, 7 is a second name for 0, and not a further value of a star
		hi = 6
	}
	first, last, ranged := strings.Cut(span, "-")
	switch {
	case span == "*":
	case ranged:
		var err error
		if lo, err = f.value(word{first, w.col}); err != nil {
			return 0, err
		}
		if hi, err = f.value(word{last, w.col + len(first) + 1}); err != nil {
			return 0, err
		}
		if lo > hi {
			return 0, f.wrapped(w, first, last, lo, hi)
		}
	default:
		v, err := f.value(word{span, w.col})
		if err != nil {
			return 0, err
		}
		if stepped {
			return 0, daybook.Invalid("%s %q at column %d: a step needs a range or a star before it", f.said, daybook.Clip(w.text, 40), w.col).
				WithHint("write %d-%d/%s", v, min(f.max, max(hi, v)), daybook.Clip(stepText, 10))
		}
		lo, hi = v, v
	}
	step := 1
	if stepped {
		n, ok := digits(stepText)
		if !ok || n < 1 {
			return 0, daybook.Invalid("%s %q at column %d: the step %q is not a number from 1 on", f.said, daybook.Clip(w.text, 40), w.col, daybook.Clip(stepText, 20)).
				WithHint("write the step behind one '/', such as */5")
		}
		if n > f.max-f.min {
			return 0, f.wideStep(w, n)
		}
		step = n
	}
	var set uint64
	for v := lo; v <= hi; v += step {
		set |= 1 << v
	}
	return set, nil
}

// value reads a number or a name.
func (f *cronField) value(w word) (int, error) {
	if n, ok := digits(w.text); ok {
		if n < f.min || n > f.max {
			return 0, daybook.Invalid("%s %s at column %d is outside %d to %d", f.said, w.text, w.col, f.min, f.max).
				WithHint("%s", f.allowed)
		}
		return n, nil
	}
	lower := strings.ToLower(w.text)
	for i, name := range f.names {
		if lower == name {
			return f.min + i, nil
		}
	}
	err := daybook.Invalid("%s %q at column %d is not a value", f.said, daybook.Clip(w.text, 40), w.col)
	if near := daybook.Nearest(lower, f.names); near != "" {
		return 0, err.WithHint("did you mean %s?", near)
	}
	return 0, err.WithHint("%s", f.allowed)
}

// foreign refuses what other tools add to cron, each with the way to say it here.
func (f *cronField) foreign(w word) error {
	bad := func(what daybook.Text) *daybook.Error {
		return daybook.Invalid("%s %q at column %d: %s", f.said, daybook.Clip(w.text, 40), w.col, what)
	}
	upper := strings.ToUpper(w.text)
	switch {
	case strings.Contains(w.text, "?"):
		return bad(daybook.Say("'?' is not part of cron")).WithHint("write *")
	case strings.Contains(w.text, "#"):
		return bad(daybook.Say("'#' is not part of cron")).WithHint("use a form such as monthly first mon 09:00, a list of lines being allowed")
	case strings.Contains(w.text, "~"):
		return bad(daybook.Say("random ranges would give a key another time on each node")).WithHint("use jitter: the start is spread, the key is not")
	case f.name == "day of month" && strings.HasSuffix(upper, "W"):
		return bad(daybook.Say("'W' is not part of cron")).WithHint("use business_days: next or previous, or monthly last business day 18:00")
	case (f.name == "day of month" || f.name == "weekday") && (upper == "L" || strings.HasPrefix(upper, "L-") || strings.HasSuffix(upper, "L") && upper != "JUL"):
		return bad(daybook.Say("'L' is not part of cron")).WithHint("use monthly last day 18:00, or monthly last fri 18:00")
	case upper == "H" || strings.HasPrefix(upper, "H/") || strings.HasPrefix(upper, "H("):
		return bad(daybook.Say("'H' is not part of cron")).WithHint("write a number, and use jitter to spread starts")
	}
	return nil
}

// wrapped refuses a range that runs past the end of its field, which some tools read as nothing at all.
func (f *cronField) wrapped(w word, first, last string, lo, hi int) error {
	err := daybook.Invalid("%s %q at column %d runs backwards: %s comes after %s", f.said, daybook.Clip(w.text, 40), w.col, first, last)
	part := func(a, b int) string {
		if a == b {
			return fmt.Sprint(a)
		}
		return fmt.Sprintf("%d-%d", a, b)
	}
	top := f.max
	switch {
	case f.max == 7 && hi == 0:
		return err.WithHint("write %s: 7 is Sunday too", part(lo, 7))
	case f.max == 7:
		top = 6
	}
	if lo > top {
		return err.WithHint("write %s", part(f.min, hi))
	}
	return err.WithHint("write %s,%s", part(lo, top), part(f.min, hi))
}

func (f *cronField) wideStep(w word, n int) error {
	err := daybook.Invalid("%s %q at column %d: a step of %d leaves one value", f.said, daybook.Clip(w.text, 40), w.col, n)
	switch f.name {
	case "minute":
		return err.WithHint("steps start anew every hour; use every %dm for elapsed time", n)
	case "hour":
		return err.WithHint("steps start anew every day; use every %dh for elapsed time", n)
	}
	return err.WithHint("write the value itself")
}
