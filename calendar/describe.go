package calendar

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/daybook-run/daybook"
)

var fullMonths = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September",
	"October", "November", "December"}

// Describe says the schedule in plain English words: "at 02:00 every day, Europe/Berlin time".
func (s *Schedule) Describe() string {
	if len(s.lines) == 0 {
		return "no schedule: started by hand or by API"
	}
	parts := make([]string, len(s.lines))
	local := false
	for i := range s.lines {
		parts[i] = s.lines[i].describe()
		local = local || s.lines[i].every == 0
	}
	text := strings.Join(parts, "; and ")
	if local {
		text += ", " + s.zone.loc.String() + " time"
	}
	switch s.business {
	case daybook.BusinessSkip:
		text += ", not on days off"
	case daybook.BusinessNext:
		text += ", moved from days off to the next working day"
	case daybook.BusinessPrevious:
		text += ", moved from days off to the working day before"
	}
	return text
}

// Remarks returns what about the schedule surprises people, one sentence each, to be told when a job is added: months
// without a day 31, either of two day fields, elapsed time across clock changes.
func (s *Schedule) Remarks() []string {
	var out []string
	for i := range s.lines {
		l := &s.lines[i]
		r := &l.rule
		prefix := ""
		if len(s.lines) > 1 {
			prefix = l.text + ": "
		}
		fields := r.pick == pickFields
		if fields && !r.anyDom && r.anyDow {
			if first := bits.TrailingZeros32(r.doms); r.months == 1<<2 && first == 29 {
				out = append(out, prefix+"years without a 29 February have no fire")
			} else if first > shortestMonth(r.months) {
				out = append(out, prefix+fmt.Sprintf("months without a day %d have no fire; monthly last day never skips one", first))
			}
		}
		if fields && !r.anyDom && !r.anyDow {
			text := prefix + "day of month and weekday are both restricted: a date that matches either of them fires"
			if l.stepDom {
				text += " (a step such as */10 counts as a restriction)"
			}
			out = append(out, text)
		}
		if !l.wall() && l.every == 0 && len(s.walls) > 0 {
			out = append(out, prefix+"every hour, so it follows elapsed time across clock changes, unlike the other lines")
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

func (l *line) describe() string {
	switch {
	case l.every > 0:
		return "every " + duration(l.every)
	case !l.wall() && l.minutes == 1<<60-1:
		return "every minute " + l.rule.describe()
	case !l.wall():
		var minutes []string
		for m := range 60 {
			if l.minutes&(1<<m) != 0 {
				minutes = append(minutes, fmt.Sprintf(":%02d", m))
			}
		}
		return "every hour at " + listOf(minutes, 6) + " " + l.rule.describe()
	}
	var times []string
	for _, t := range l.tods {
		times = append(times, fmt.Sprintf("%02d:%02d", t/3600, t/60%60))
	}
	return "at " + listOf(times, 6) + " " + l.rule.describe()
}

// describe says on which dates a line fires.
func (r *rule) describe() string {
	months := ""
	if r.months != allMonths {
		months = " of " + months12(r.months)
	}
	of := months
	if of == "" {
		of = " of every month"
	}
	day := strings.Join(weekdaysOf(r.dows), " or ")
	switch r.pick {
	case pickLast:
		return "on the last day" + of
	case pickFirstBiz:
		return "on the first working day" + of
	case pickLastBiz:
		return "on the last working day" + of
	case pickNth:
		return "on the " + ordinals[r.nth-1] + " " + day + of
	case pickLastDow:
		return "on the last " + day + of
	}
	doms := "on day " + listOf(valuesOf(uint64(r.doms)), 31) + of
	dows := "every " + listOf(weekdaysOf(r.dows), 7)
	if months != "" {
		dows += " in " + strings.TrimPrefix(months, " of ")
	}
	switch {
	case r.anyDom && r.anyDow && months == "":
		return "every day"
	case r.anyDom && r.anyDow:
		return "every day" + months
	case r.anyDow:
		return doms
	case r.anyDom:
		return dows
	}
	return doms + " and " + dows
}

func months12(set uint16) string {
	var names []string
	for m := 1; m <= 12; m++ {
		if set&(1<<m) != 0 {
			names = append(names, fullMonths[m-1])
		}
	}
	return listOf(names, 12)
}

func weekdaysOf(set uint8) []string {
	var names []string
	for i := 1; i <= 7; i++ { // from Monday on
		if d := i % 7; set&(1<<d) != 0 {
			names = append(names, strings.ToUpper(fullWeekdays[d][:1])+fullWeekdays[d][1:])
		}
	}
	return names
}

func valuesOf(set uint64) []string {
	var values []string
	for ; set != 0; set &= set - 1 {
		values = append(values, itoa(bits.TrailingZeros64(set)))
	}
	return values
}

// listOf joins words as people do, and counts them when they are many.
func listOf(list []string, limit int) string {
	switch n := len(list); {
	case n > limit:
		return fmt.Sprintf("%s, %s … %s (%d in all)", list[0], list[1], list[n-1], n)
	case n < 2:
		return strings.Join(list, "")
	default:
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
}

func duration(seconds int64) string {
	var parts []string
	for _, u := range []struct {
		size int64
		name string
	}{{daySeconds, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}} {
		if n := seconds / u.size; n > 0 {
			parts = append(parts, count(int(n), u.name))
			seconds %= u.size
		}
	}
	if len(parts) == 1 {
		parts[0] = strings.TrimPrefix(parts[0], "1 ")
	}
	return listOf(parts, 4)
}
