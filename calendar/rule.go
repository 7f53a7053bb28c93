package calendar

import "math/bits"

// pick names a day of a month that numbers cannot name.
type pick uint8

const (
	pickFields   pick = iota // the day fields of cron: doms and dows
	pickLast                 // the last day
	pickFirstBiz             // the first working day
	pickLastBiz              // the last working day
	pickNth                  // the nth weekday: nth of dows
	pickLastDow              // the last weekday of dows
)

// rule says on which civil dates a line fires. It sees dates only, never clocks.
type rule struct {
	months  uint16 // bits 1 to 12
	doms    uint32 // bits 1 to 31
	dows    uint8  // bits 0 (Sunday) to 6
	anyDom  bool   // the day-of-month field covers every day
	anyDow  bool   // the weekday field covers every weekday
	pick    pick
	nth     int
	working func(date) bool // of the business calendar, for the picks that ask
}

const (
	allMonths = 0x1FFE
	allDoms   = 0xFFFFFFFE
	allDows   = 0x7F
)

func everyDay() rule {
	return rule{months: allMonths, doms: allDoms, dows: allDows, anyDom: true, anyDow: true}
}

// matches reports whether the line fires on d.
func (r *rule) matches(d date) bool {
	if r.anyDom && r.anyDow && r.months == allMonths && r.pick == pickFields {
		return true
	}
	y, m, day := d.civil()
	if r.months&(1<<m) == 0 {
		return false
	}
	dom, dow := r.doms&(1<<day) != 0, r.dows&(1<<d.weekday()) != 0
	switch r.pick {
	case pickLast:
		return day == daysInMonth(y, m)
	case pickNth:
		return dow && (day-1)/7 == r.nth-1
	case pickLastDow:
		return dow && day+7 > daysInMonth(y, m)
	case pickFirstBiz:
		for e := newDate(y, m, 1); e < d; e++ {
			if r.working(e) {
				return false
			}
		}
		return r.working(d)
	case pickLastBiz:
		for e := newDate(y, m, daysInMonth(y, m)); e > d; e-- {
			if r.working(e) {
				return false
			}
		}
		return r.working(d)
	}
	if !r.anyDom && !r.anyDow {
		return dom || dow // crontab(5): both restricted, either matches
	}
	return dom && dow
}

// next returns the first date in [d, last] on which the line fires, or last+1.
func (r *rule) next(d, last date) date {
	for d <= last {
		if r.months != allMonths {
			if _, m, _ := d.civil(); r.months&(1<<m) == 0 {
				d = d.firstOfMonth(1)
				continue
			}
		}
		if r.matches(d) {
			return d
		}
		d++
	}
	return last + 1
}

// longestMonth returns the most days that any month of the set ever has.
func longestMonth(months uint16) int {
	longest := 0
	for m := 1; m <= 12; m++ {
		if months&(1<<m) != 0 {
			longest = max(longest, [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[m-1])
		}
	}
	return longest
}

// never reports whether no date of any year matches: day 30 of February.
func (r *rule) never() bool {
	if r.pick != pickFields || !r.anyDow || r.anyDom {
		return false
	}
	return bits.TrailingZeros32(r.doms) > longestMonth(r.months)
}
