package config

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Duration is a span of time as people write it in the file: 90s, 10m, 26h, 7d, or 1h30m. A day has 24 hours.
type Duration time.Duration

var units = []struct {
	name string
	size time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// ParseDuration reads a duration: whole numbers with a unit of d, h, m, s or ms, larger units first. 0 needs no unit.
// Errors have CodeInvalid.
func ParseDuration(text string) (Duration, error) {
	const example = "write a whole number and a unit of s, m, h or d, such as 90s, 10m, 26h or 7d"
	bad := func(why daybook.Text) (Duration, error) {
		err := daybook.Invalid("%q is no duration: %s", daybook.Clip(text, 40), why).WithHint(example)
		if d := meantDuration(text); d > 0 {
			_ = err.WithHint("write %s", d)
		}
		return 0, err
	}
	switch {
	case text == "":
		return bad(daybook.Say("it is empty"))
	case text == "0":
		return 0, nil
	case strings.HasPrefix(text, "-"):
		return bad(daybook.Say("it is negative"))
	}
	var total time.Duration
	next := 0 // the largest unit that may still come
	for rest := text; rest != ""; {
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		u := n
		for u < len(rest) && (rest[u] >= 'a' && rest[u] <= 'z' || rest[u] >= 'A' && rest[u] <= 'Z') {
			u++
		}
		number, unit := rest[:n], rest[n:u]
		switch {
		case n == 0:
			return bad(daybook.Say("a number is missing"))
		case unit == "" && u < len(rest):
			return bad(daybook.Say("only whole numbers and units are allowed"))
		case unit == "":
			return 0, daybook.Invalid("%q is no duration: it has no unit", daybook.Clip(text, 40)).
				WithHint("write %ss or %sm, or another unit of s, m, h or d", text, text)
		}
		i := next
		for i < len(units) && units[i].name != unit {
			i++
		}
		if i == len(units) {
			for _, known := range units {
				if known.name == unit {
					return bad(daybook.Say("larger units come first, each once"))
				}
			}
			return bad(daybook.Say("the unit %q is unknown", daybook.Clip(unit, 20)))
		}
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil || v > int64((daybook.Forever-total)/units[i].size) {
			return bad(daybook.Say("it is too long"))
		}
		total += time.Duration(v) * units[i].size
		next, rest = i+1, rest[u:]
	}
	return Duration(total), nil
}

var (
	isoDuration   = regexp.MustCompile(`^p(?:(\d{1,4})w)?(?:(\d{1,4})d)?(?:t(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?)?$`)
	clockDuration = regexp.MustCompile(`^(\d{1,2}):(\d\d)(?::(\d\d))?$`)
	wordDuration  = regexp.MustCompile(`^\s*(\d{1,8}(?:\.\d{1,3})?)\s*([a-z]+)[\s,]*(?:and\s)?`)
)

// unitWords are what people and other programs call units.
var unitWords = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
}

// meantDuration reads what is written as elsewhere: 5 minutes, 1.5h, PT5M, 00:05. It returns 0 for what it does not know.
func meantDuration(text string) Duration {
	text = strings.ToLower(strings.TrimSpace(text))
	sum := func(parts []string, units ...time.Duration) (total time.Duration) {
		for i, part := range parts {
			n, _ := strconv.Atoi(part) // empty: 0
			total += time.Duration(n) * units[i]
		}
		return total
	}
	const day = 24 * time.Hour
	if m := isoDuration.FindStringSubmatch(text); m != nil {
		return Duration(sum(m[1:], 7*day, day, time.Hour, time.Minute, time.Second))
	}
	if m := clockDuration.FindStringSubmatch(text); m != nil {
		return Duration(sum(m[1:], time.Hour, time.Minute, time.Second))
	}
	var total time.Duration
	for rest := text; rest != ""; {
		m := wordDuration.FindStringSubmatch(rest)
		if m == nil || unitWords[m[2]] == 0 {
			return 0
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil || n*float64(unitWords[m[2]]) > float64(daybook.MaxDelay) {
			return 0
		}
		total += time.Duration(n * float64(unitWords[m[2]])).Round(time.Millisecond)
		rest = rest[len(m[0]):]
	}
	return Duration(total)
}

// String writes d as ParseDuration reads it, in units without a rest: 7d, 26h, 1h30m.
func (d Duration) String() string {
	left := time.Duration(d)
	switch {
	case left == daybook.Forever:
		return "forever"
	case left == 0:
		return "0s"
	case left < 0:
		return time.Duration(d).String()
	}
	var b strings.Builder
	for _, u := range units {
		// 26h is 26h, not 1d2h: days are for whole days only.
		if u.name == "d" && left%u.size != 0 {
			continue
		}
		if n := left / u.size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteString(u.name)
			left -= n * u.size
		}
	}
	if left > 0 {
		return time.Duration(d).String()
	}
	return b.String()
}
