package importer

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// cronField is one of the five fields, as cron reads it.
type cronField struct {
	name      daybook.Text
	low, high int
	names     []string // of the values from low on
}

var cronFields = [5]cronField{
	{name: daybook.Say("minute"), high: 59},
	{name: daybook.Say("hour"), high: 23},
	{name: daybook.Say("day of month"), low: 1, high: 31},
	{name: daybook.Say("month"), low: 1, high: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: daybook.Say("weekday"), high: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// cronSet is a field that was read.
type cronSet struct {
	bits   uint64
	star   bool // it begins with a star: then cron wants both day fields to match, not either
	random bool // low~high: cron draws one value when it loads the table
	low    int  // of a random one
	high   int
}

// parse reads one field. Columns of faults count from col.
func (f *cronField) parse(text string, col int) (cronSet, error) {
	set := cronSet{star: strings.HasPrefix(text, "*")}
	if strings.Contains(text, "~") {
		return f.parseRandom(text, col)
	}
	for _, item := range strings.Split(text, ",") {
		b, err := f.item(item)
		if err != nil {
			return set, at(err, col)
		}
		set.bits |= b
		col += len(item) + 1
	}
	if f.high == 7 && set.bits&(1<<7|1) != 0 { // both are Sunday
		set.bits = set.bits&^(1<<7) | 1
	}
	return set, nil
}

// located is a fault with its column.
type located struct {
	fault  *daybook.Error
	column int // from 1
}

func (l *located) Error() string { return l.fault.Error() }
func (l *located) Unwrap() error { return l.fault }

func at(err error, column int) error {
	if e, ok := err.(*daybook.Error); ok {
		return &located{e, column}
	}
	return err
}

// parseRandom reads low~high, either of which may be missing. Cron draws a value of it once, each time it loads the table.
func (f *cronField) parseRandom(text string, col int) (cronSet, error) {
	first, last, _ := strings.Cut(text, "~")
	set := cronSet{random: true, low: f.low, high: f.high}
	var err error
	if first != "" {
		if set.low, err = f.value(first); err != nil {
			return set, at(err, col)
		}
	}
	if last != "" {
		if set.high, err = f.value(last); err != nil {
			return set, at(err, col+len(first)+1)
		}
	}
	if set.low > set.high {
		return set, at(daybook.Invalid("%s %s runs backwards", f.name, clip(text)).WithHint("cron refuses it too: write the smaller value first"), col)
	}
	set.bits = 1 << set.low
	return set, nil
}

func (f *cronField) item(text string) (uint64, error) {
	span, step, stepped := strings.Cut(text, "/")
	low, high := f.low, f.high
	first, last, ranged := strings.Cut(span, "-")
	var err error
	switch {
	case span == "*":
	case ranged:
		if low, err = f.value(first); err != nil {
			return 0, err
		}
		if high, err = f.value(last); err != nil {
			return 0, err
		}
		if low > high {
			return 0, daybook.Invalid("%s %s runs backwards", f.name, clip(text)).WithHint("cron refuses it too: write two ranges, such as 6-7,1 for the days from Saturday to Monday")
		}
	default:
		if low, err = f.value(span); err != nil {
			return 0, err
		}
		if stepped {
			return 0, daybook.Invalid("%s %s has a step behind a single value", f.name, clip(text)).
				WithHint("crons differ on it: write %d-%d/%s if it meant every %s from there on", low, f.high, clip(step), clip(step))
		}
		high = low
	}
	n := 1
	if stepped {
		if n, err = strconv.Atoi(step); err != nil || n < 1 || n > 1000 || step[0] == '+' {
			return 0, daybook.Invalid("%s %s: the step is no number from 1 on", f.name, clip(text)).WithHint("write it as */5")
		}
	}
	var set uint64
	for v := low; v <= high; v += n {
		set |= 1 << v
	}
	return set, nil
}

// value reads a number or a name.
func (f *cronField) value(text string) (int, error) {
	if n, err := strconv.Atoi(text); err == nil && text[0] != '+' && text[0] != '-' {
		if n < f.low || n > f.high {
			return 0, daybook.Invalid("%s %s is outside %d to %d", f.name, clip(text), f.low, f.high).WithHint("cron refuses it too")
		}
		return n, nil
	}
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.low + i, nil
		}
	}
	return 0, daybook.Invalid("%s %q is no value", f.name, clip(text)).WithHint("cron refuses it too: %d to %d", f.low, f.high)
}

// timing is the five fields of a line.
type timing struct {
	text   [5]string
	sets   [5]cronSet
	column [5]int
}

const (
	fMinute = iota
	fHour
	fDom
	fMonth
	fDow

	allDoms = uint64(1)<<32 - 2
	allDows = uint64(1)<<7 - 1
)

func parseTiming(texts [5]string, columns [5]int) (timing, error) {
	t := timing{text: texts, column: columns}
	for i := range cronFields {
		set, err := cronFields[i].parse(texts[i], columns[i])
		if err != nil {
			return t, err
		}
		t.sets[i] = set
	}
	return t, nil
}

// planned is a schedule in the words of the file.
type planned struct {
	schedule []string // one form each
	jitter   time.Duration
	notes    []string
}

// plan says what the fields mean in a form of Daybook. Cron wants a date to match either day field when both are
// restricted, but both of them when one begins with a star: "*/2" counts as one, "1-31" does not.
func (t timing) plan() (planned, error) {
	p, err := t.spread()
	if err != nil {
		return p, err
	}
	dom, dow := t.sets[fDom], t.sets[fDow]
	anyDom, anyDow := dom.bits == allDoms, dow.bits == allDows
	switch {
	case (dom.star || dow.star) && !anyDom && !anyDow:
		form, ok := t.picked()
		if !ok {
			return p, at(daybook.Invalid("day of month %s and weekday %s: for cron both must match, as one begins with a star", clip(t.text[fDom]), clip(t.text[fDow])).
				WithHint("no form says that: keep the weekdays in the schedule, and test the day in the command"), t.column[fDom])
		}
		p.schedule = []string{form}
		p.notes = append(p.notes, "for cron both day fields must match, as one begins with a star: "+form)
		return p, check(p.schedule)
	case !dom.star && !dow.star && anyDom != anyDow:
		p.notes = append(p.notes, "cron takes either of two day fields that do not begin with a star, and one of them is every day: every day")
		t.text[fDom], t.text[fDow] = "*", "*"
		t.sets[fDom].bits, t.sets[fDow].bits = allDoms, allDows
	case !anyDom && !anyDow:
		p.notes = append(p.notes, "both day fields are restricted: a day that matches either of them fires, as with cron")
	}
	p.schedule = []string{strings.Join(t.text[:], " ")}
	if check(p.schedule) != nil { // cron is less strict: the same values, written out
		for i := range t.text {
			t.text[i] = cronFields[i].write(t.sets[i].bits)
		}
		p.schedule = []string{strings.Join(t.text[:], " ")}
	}
	return p, check(p.schedule)
}

// spread takes the random ranges out of the fields: the earliest start stays, and jitter spreads it.
func (t *timing) spread() (p planned, err error) {
	for i, unit := range []time.Duration{time.Minute, time.Hour} {
		if s := t.sets[i]; s.random {
			p.notes = append(p.notes, fmt.Sprintf("cron drew the %s of %s anew when it loaded the table; the jitter is fixed for a key", cronFields[i].name, t.text[i]))
			t.text[i] = strconv.Itoa(s.low)
			p.jitter += time.Duration(s.high-s.low) * unit
		}
	}
	for i := fDom; i <= fDow; i++ {
		if t.sets[i].random {
			return p, at(daybook.Invalid("%s %s is drawn anew each time cron loads the table", cronFields[i].name, clip(t.text[i])).
				WithHint("choose a day: a business date that is drawn is no date"), t.column[i])
		}
	}
	return p, nil
}

// picked returns the form of the n-th weekday of a month, which crontabs write with a star that matches no further day:
// "*/100,8-14 * 1".
func (t *timing) picked() (string, bool) {
	dom, dow := t.sets[fDom].bits, t.sets[fDow].bits
	if t.sets[fMonth].bits != 1<<13-2 || bits.OnesCount64(dow) != 1 || bits.OnesCount64(t.sets[fHour].bits) != 1 || bits.OnesCount64(t.sets[fMinute].bits) != 1 {
		return "", false
	}
	for i, which := range []string{"first", "second", "third", "fourth"} {
		week := uint64(0x7f) << (1 + 7*i)
		if dom == week || dom == week|1<<1 && i == 0 {
			return fmt.Sprintf("monthly %s %s %02d:%02d", which, cronFields[fDow].names[bits.TrailingZeros64(dow)],
				bits.TrailingZeros64(t.sets[fHour].bits), bits.TrailingZeros64(t.sets[fMinute].bits)), true
		}
	}
	return "", false
}

// write writes values out as a field: a star, or a list of values and ranges.
func (f *cronField) write(set uint64) string {
	high := f.high
	if high == 7 {
		high = 6
	}
	if set == (uint64(1)<<(high+1)-1)&^(uint64(1)<<f.low-1) {
		return "*"
	}
	for n := 2; n <= 30 && f.low == 0 && high > 6; n++ { // of minutes and hours
		steps := uint64(0)
		for v := 0; v <= high; v += n {
			steps |= 1 << v
		}
		if steps == set && bits.OnesCount64(set) > 2 {
			return fmt.Sprintf("*/%d", n)
		}
	}
	var parts []string
	for v := f.low; v <= high; v++ {
		if set&(1<<v) == 0 {
			continue
		}
		end := v
		for end < high && set&(1<<(end+1)) != 0 {
			end++
		}
		switch {
		case end == v:
			parts = append(parts, strconv.Itoa(v))
		case end == v+1:
			parts = append(parts, strconv.Itoa(v), strconv.Itoa(end))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", v, end))
		}
		v = end
	}
	return strings.Join(parts, ",")
}

// check compiles forms as the file will.
func check(forms []string) error {
	_, err := calendar.Compile(calendar.Spec{Schedule: strings.Join(forms, "\n"), Zone: "UTC"})
	return err
}

// cronWords are the words that stand for five fields, and their forms.
var cronWords = map[string]string{
	"@hourly": "hourly", "@daily": "daily 00:00", "@midnight": "daily 00:00", "@weekly": "weekly sun 00:00",
	"@monthly": "monthly 1 00:00", "@yearly": "yearly 01-01 00:00", "@annually": "yearly 01-01 00:00", "@every_minute": "* * * * *",
}

func clip(s string) string { return daybook.Clip(s, 40) }
