package calendar

import (
	"math/bits"

	"github.com/daybook-run/daybook"
)

var monthTexts = [12]daybook.Text{daybook.Say("January"), daybook.Say("February"), daybook.Say("March"), daybook.Say("April"), daybook.Say("May"),
	daybook.Say("June"), daybook.Say("July"), daybook.Say("August"), daybook.Say("September"), daybook.Say("October"), daybook.Say("November"), daybook.Say("December")}

// weekdayTexts are the weekdays from Sunday on.
var weekdayTexts = [7]daybook.Text{daybook.Say("Sunday"), daybook.Say("Monday"), daybook.Say("Tuesday"), daybook.Say("Wednesday"), daybook.Say("Thursday"),
	daybook.Say("Friday"), daybook.Say("Saturday")}

// Describe says the schedule in plain English words: "at 02:00 every day, Europe/Berlin time".
func (s *Schedule) Describe() string { return s.Words().String() }

// Words is Describe for whoever shows it in another language.
func (s *Schedule) Words() daybook.Text {
	if len(s.lines) == 0 {
		return daybook.Say("no schedule: started by hand or by API")
	}
	text, local := s.lines[0].describe(), s.lines[0].every == 0
	for i := range s.lines[1:] {
		l := &s.lines[1+i]
		text = daybook.Say("%s; and %s", text, l.describe())
		local = local || l.every == 0
	}
	if local {
		text = daybook.Say("%s, %s time", text, s.zone.loc)
	}
	switch s.business {
	case daybook.BusinessSkip:
		return daybook.Say("%s, not on days off", text)
	case daybook.BusinessNext:
		return daybook.Say("%s, moved from days off to the next working day", text)
	case daybook.BusinessPrevious:
		return daybook.Say("%s, moved from days off to the working day before", text)
	}
	return text
}

// Remarks returns what about the schedule surprises people, one sentence each, to be told when a job is added: months
// without a day 31, either of two day fields, elapsed time across clock changes.
func (s *Schedule) Remarks() []daybook.Text {
	var out []daybook.Text
	for i := range s.lines {
		l := &s.lines[i]
		add := func(remark daybook.Text) {
			if len(s.lines) > 1 {
				remark = daybook.Say("%s: %s", l.text, remark)
			}
			out = append(out, remark)
		}
		r := &l.rule
		fields := r.pick == pickFields
		if fields && !r.anyDom && r.anyDow {
			if first := bits.TrailingZeros32(r.doms); r.months == 1<<2 && first == 29 {
				add(daybook.Say("years without a 29 February have no fire"))
			} else if first > shortestMonth(r.months) {
				add(daybook.Say("months without a day %d have no fire; monthly last day never skips one", first))
			}
		}
		if fields && !r.anyDom && !r.anyDow {
			either := daybook.Say("day of month and weekday are both restricted: a date that matches either of them fires")
			if l.stepDom {
				either = daybook.Say("%s (a step such as */10 counts as a restriction)", either)
			}
			add(either)
		}
		if !l.wall() && l.every == 0 && len(s.walls) > 0 {
			add(daybook.Say("every hour, so it follows elapsed time across clock changes, unlike the other lines"))
		}
	}
	return out
}

// shortestMonth returns the fewest days that any month of the set has in some year.
func shortestMonth(months uint16) int {
	shortest := 31
	for m := 1; m <= 12; m++ {
		if months&(1<<m) != 0 {
			shortest = min(shortest, daysInMonth(2023, m))
		}
	}
	return shortest
}

func (l *line) describe() daybook.Text {
	switch {
	case l.every > 0:
		return everyText(l.every)
	case !l.wall() && l.minutes == 1<<60-1:
		return daybook.Say("every minute %s", l.rule.describe())
	case !l.wall():
		var minutes []daybook.Text
		for m := range 60 {
			if l.minutes&(1<<m) != 0 {
				minutes = append(minutes, daybook.Say(":%02d", m))
			}
		}
		return daybook.Say("every hour at %s %s", listOf(minutes, 6), l.rule.describe())
	}
	var times []daybook.Text
	for _, t := range l.tods {
		times = append(times, daybook.Say("%02d:%02d", t/3600, t/60%60))
	}
	return daybook.Say("at %s %s", listOf(times, 6), l.rule.describe())
}

// describe says on which dates a line fires.
func (r *rule) describe() daybook.Text {
	months := daybook.Say("every month")
	if r.months != allMonths {
		months = months12(r.months)
	}
	switch r.pick {
	case pickLast:
		return daybook.Say("on the last day of %s", months)
	case pickFirstBiz:
		return daybook.Say("on the first working day of %s", months)
	case pickLastBiz:
		return daybook.Say("on the last working day of %s", months)
	case pickNth:
		return daybook.Say("on the %s %s of %s", ordinalTexts[r.nth-1], eitherOf(weekdaysOf(r.dows)), months)
	case pickLastDow:
		return daybook.Say("on the last %s of %s", eitherOf(weekdaysOf(r.dows)), months)
	}
	doms := daybook.Say("on day %s of %s", listOf(valuesOf(uint64(r.doms)), 31), months)
	dows := daybook.Say("every %s", listOf(weekdaysOf(r.dows), 7))
	if r.months != allMonths {
		dows = daybook.Say("every %s in %s", listOf(weekdaysOf(r.dows), 7), months)
	}
	switch {
	case r.anyDom && r.anyDow && r.months == allMonths:
		return daybook.Say("every day")
	case r.anyDom && r.anyDow:
		return daybook.Say("every day of %s", months)
	case r.anyDow:
		return doms
	case r.anyDom:
		return dows
	}
	return daybook.Say("%s and %s", doms, dows)
}

// ordinalTexts are the words for ordinals, but for the last.
var ordinalTexts = [4]daybook.Text{daybook.Say("first"), daybook.Say("second"), daybook.Say("third"), daybook.Say("fourth")}

func months12(set uint16) daybook.Text {
	var names []daybook.Text
	for m := 1; m <= 12; m++ {
		if set&(1<<m) != 0 {
			names = append(names, monthTexts[m-1])
		}
	}
	return listOf(names, 12)
}

func weekdaysOf(set uint8) []daybook.Text {
	var names []daybook.Text
	for i := 1; i <= 7; i++ { // from Monday on
		if d := i % 7; set&(1<<d) != 0 {
			names = append(names, weekdayTexts[d])
		}
	}
	return names
}

func valuesOf(set uint64) []daybook.Text {
	var values []daybook.Text
	for ; set != 0; set &= set - 1 {
		values = append(values, daybook.Say("%d", bits.TrailingZeros64(set)))
	}
	return values
}

// listOf joins words as people do, and counts them when they are many.
func listOf(list []daybook.Text, limit int) daybook.Text {
	switch n := len(list); {
	case n > limit:
		return daybook.Say("%s, %s … %s (%d in all)", list[0], list[1], list[n-1], n)
	case n == 0:
		return daybook.Text{}
	default:
		text := list[0]
		for i, word := range list[1:] {
			if i+2 == n {
				return daybook.Say("%s and %s", text, word)
			}
			text = daybook.Say("%v, %v", text, word) // %v: words in a row, not clauses
		}
		return text
	}
}

// eitherOf joins words of which one holds.
func eitherOf(list []daybook.Text) daybook.Text {
	text := list[0]
	for _, word := range list[1:] {
		text = daybook.Say("%s or %s", text, word)
	}
	return text
}

// everyText says an interval: every hour, every 1 hour and 30 minutes.
func everyText(seconds int64) daybook.Text {
	switch seconds {
	case daySeconds:
		return daybook.Say("every day")
	case 3600:
		return daybook.Say("every hour")
	case 60:
		return daybook.Say("every minute")
	case 1:
		return daybook.Say("every second")
	}
	var parts []daybook.Text
	add := func(size int64, count func(n int) daybook.Text) {
		if n := seconds / size; n > 0 {
			parts = append(parts, count(int(n)))
			seconds %= size
		}
	}
	add(daySeconds, func(n int) daybook.Text { return daybook.Count(n, "%d day", "%d days") })
	add(3600, func(n int) daybook.Text { return daybook.Count(n, "%d hour", "%d hours") })
	add(60, func(n int) daybook.Text { return daybook.Count(n, "%d minute", "%d minutes") })
	add(1, func(n int) daybook.Text { return daybook.Count(n, "%d second", "%d seconds") })
	text := parts[0]
	for i, part := range parts[1:] {
		if i+2 == len(parts) {
			text = daybook.Say("%v and %v", text, part) // %v: one length, not two things
			break
		}
		text = daybook.Say("%v, %v", text, part)
	}
	return daybook.Say("every %s", text)
}
