package config

import (
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
		return 0, daybook.Invalid("%q is no duration: %s", daybook.Clip(text, 40), why).WithHint(example)
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
