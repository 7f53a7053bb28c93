package outhttp

import (
	"cmp"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

// Answer is what the far side answered.
type Answer struct {
	Status    int
	Line      string // status and reason, as sent: "402 Payment Required"
	Proto     string
	Header    http.Header
	Body      []byte // its head, if Truncated
	Truncated bool   // the body is longer than MaxBytes; the rest was not read
}

// codes are the control sequences of a terminal (ECMA-48, 5.4).
var codes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// StatusLine is the status and its reason; the standard one where the far side gave none. Its reason is anything that the far
// side likes: terminal codes are left out, and what is no character of a text becomes U+FFFD.
func (a *Answer) StatusLine() string {
	code := strconv.Itoa(a.Status)
	reason := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r // invalid bytes are U+FFFD already
	}, strings.TrimSpace(codes.ReplaceAllString(strings.TrimPrefix(a.Line, code), "")))
	return strings.TrimSpace(code + " " + cmp.Or(reason, http.StatusText(a.Status)))
}

// IsJSON reports whether the far side says that the body is JSON.
func (a *Answer) IsJSON() bool {
	kind := a.MediaType()
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

// MediaType is the type of the body without its parameters, in small letters; empty if none is given.
func (a *Answer) MediaType() string {
	given := a.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(given)
	if err != nil { // such as a parameter without a value: the type itself is in no doubt
		kind, _, _ = strings.Cut(given, ";")
	}
	return strings.ToLower(strings.TrimSpace(kind))
}

// RetryAfter is how long the far side asks to be left alone; 0 if it does not.
func (a *Answer) RetryAfter(now time.Time) time.Duration {
	return RetryAfter(a.Header.Get("Retry-After"), now)
}

// RetryAfter reads a Retry-After header (RFC 9110 §10.2.3): seconds, or a date, which is compared with now. What is
// neither, and what lies in the past, is 0; more than daybook.MaxRetryAfter is that.
func RetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseUint(value, 10, 32)
		if err != nil || seconds > uint64(daybook.MaxRetryAfter/time.Second) {
			return daybook.MaxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), daybook.MaxRetryAfter)
}

// ResultOfStatus reads the status of a whole answer. Statuses in permanent are read as permanent, whatever else they
// mean; a 2xx among them is still done.
func ResultOfStatus(status int, permanent []int) daybook.Result {
	switch {
	case status >= 200 && status <= 299:
		return daybook.ResultDone
	case slices.Contains(permanent, status):
		return daybook.ResultPermanent
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return daybook.ResultNotDone
	case http.StatusConflict:
		return daybook.ResultBusy
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return daybook.ResultUnknown
	}
	if status >= 400 && status <= 499 {
		return daybook.ResultPermanent
	}
	return daybook.ResultUnclear
}
