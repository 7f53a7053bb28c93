package calendar

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	clockWord    = `(\d{1,2})(?:[:.h](\d\d))?\s*(am|pm|o'clock|uhr)?`
	saidDaily    = regexp.MustCompile(`^(?:(?:daily|every ?day|each day)\s*)?(?:at\s+)?` + clockWord + `$`)
	saidWeekly   = regexp.MustCompile(`^(?:every|each|on|weekly)?\s*(?:on\s+)?(mon|tue|wed|thu|fri|sat|sun)[a-z]*s?\s*(?:at\s+)?` + clockWord + `$`)
	saidWorkdays = regexp.MustCompile(`^(?:every|each|on)?\s*(?:weekdays?|workdays?|working days?|mon(?:day)?\s*-\s*fri(?:day)?)\s*(?:at\s+)?` + clockWord + `$`)
	saidEvery    = regexp.MustCompile(`^(?:every|each)\s+(\d+)?\s*(second|sec|minute|min|hour|hr|day)s?$`)
)

// meant returns the form that somebody meant who wrote it as people speak, or "".
func meant(row string) string {
	row = strings.ToLower(strings.Join(strings.Fields(row), " "))
	if m := saidDaily.FindStringSubmatch(row); m != nil && m[0] != m[1] { // a number alone is a field of cron
		if hour, minute, ok := clockOf(m[1:]); ok {
			return fmt.Sprintf("daily %02d:%02d", hour, minute)
		}
	}
	if m := saidWeekly.FindStringSubmatch(row); m != nil {
		if hour, minute, ok := clockOf(m[2:]); ok {
			return fmt.Sprintf("weekly %s %02d:%02d", m[1], hour, minute)
		}
	}
	if m := saidWorkdays.FindStringSubmatch(row); m != nil {
		if hour, minute, ok := clockOf(m[1:]); ok {
			return fmt.Sprintf("%d %d * * 1-5", minute, hour)
		}
	}
	if m := saidEvery.FindStringSubmatch(row); m != nil && m[2] != "day" {
		n := m[1]
		if n == "" {
			n = "1"
		}
		return "every " + n + m[2][:1]
	}
	return ""
}

// clockOf reads a time of day as people write it: 2, 2:00, 2am, 2:30 pm.
func clockOf(parts []string) (hour, minute int, ok bool) {
	hour, _ = strconv.Atoi(parts[0])
	minute, _ = strconv.Atoi(parts[1]) // empty: 0
	switch half := parts[2]; {
	case half != "am" && half != "pm":
	case hour < 1 || hour > 12:
		return 0, 0, false
	case half == "am":
		hour %= 12
	default:
		hour = hour%12 + 12
	}
	return hour, minute, hour < 24 && minute < 60
}
