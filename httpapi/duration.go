package httpapi

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// duration is a span as the file writes it ("30s", "26h", "7d", "forever"), or a number of seconds.
type duration time.Duration

// or0 is the span, 0 when none was given.
func (d *duration) or0() time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(b []byte) error {
	var seconds float64
	if json.Unmarshal(b, &seconds) == nil {
		if !(seconds >= 0 && seconds <= math.MaxInt32) {
			return noDuration(string(b))
		}
		*d = duration(seconds * float64(time.Second))
		return nil
	}
	var text string
	if json.Unmarshal(b, &text) != nil {
		return noDuration(string(b))
	}
	if text == "forever" {
		*d = duration(daybook.Forever)
		return nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return noDuration(text)
		}
		*d = duration(n) * duration(24*time.Hour)
		return nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return noDuration(text)
	}
	*d = duration(span)
	return nil
}

func noDuration(text string) error {
	return daybook.Invalid("%q is not a duration", safe(text, 40)).WithHint("such as 30s, 10m, 26h or 7d")
}
