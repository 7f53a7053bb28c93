package outhttp

import (
	"net/http"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

var noon = time.Date(2026, 10, 26, 12, 0, 0, 0, time.UTC)

// H56: seconds or a date, and a cap.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"":                               0,
		"120":                            2 * time.Minute,
		" 120 ":                          2 * time.Minute,
		"0":                              0,
		"007":                            7 * time.Second,
		"86400":                          24 * time.Hour,
		"86401":                          24 * time.Hour,
		"999999":                         24 * time.Hour,
		"99999999999999999999999":        24 * time.Hour,
		"-5":                             0,
		"+5":                             0,
		"1.5":                            0,
		"1e3":                            0,
		"90s":                            0,
		"soon":                           0,
		"120, 60":                        0,
		"Mon, 26 Oct 2026 12:01:30 GMT":  90 * time.Second,
		"Monday, 26-Oct-26 12:01:30 GMT": 90 * time.Second, // RFC 850
		"Mon Oct 26 12:01:30 2026":       90 * time.Second, // asctime
		"Mon, 26 Oct 2026 11:00:00 GMT":  0,
		"Tue, 27 Oct 2026 12:00:01 GMT":  24 * time.Hour,
		"Mon, 26 Oct 2226 12:00:00 GMT":  24 * time.Hour,
		"Mon, 26 Oct 9999 12:00:00 GMT":  24 * time.Hour,
		"Mon, 26 Oct 0001 12:00:00 GMT":  0,
		"2026-10-26T12:01:30Z":           0,
		"Mon, 99 Oct 2026 12:01:30 GMT":  0,
	} {
		if got := RetryAfter(value, noon); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "-1", "Mon, 26 Oct 2026 12:01:30 GMT", "99999999999999999999", "Mon Oct 26 12:01:30 2026", "\x00"} {
		f.Add(s, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, at int64) {
		if d := RetryAfter(value, time.Unix(at, 0)); d < 0 || d > daybook.MaxRetryAfter {
			t.Fatalf("%q: %s", value, d)
		}
	})
}

func TestMediaType(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                                "",
		"application/json":                "application/json json",
		"Application/JSON; charset=UTF-8": "application/json json",
		"application/json; charset":       "application/json json",
		"application/json;;":              "application/json json",
		"application/problem+json":        "application/problem+json json",
		"text/json":                       "text/json json",
		"text/html; charset=utf-8":        "text/html",
		"application/jsonp":               "application/jsonp",
		"text/plain":                      "text/plain",
	} {
		a := &Answer{Header: http.Header{"Content-Type": {given}}}
		got := a.MediaType()
		if a.IsJSON() {
			got += " json"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

// The table of the manual, status by status.
func TestResultOfStatus(t *testing.T) {
	t.Parallel()
	own := map[int]daybook.Result{
		408: daybook.ResultNotDone, 425: daybook.ResultNotDone, 429: daybook.ResultNotDone, 503: daybook.ResultNotDone,
		409: daybook.ResultBusy, 502: daybook.ResultUnknown, 504: daybook.ResultUnknown,
	}
	for status := range 1000 {
		want, ok := own[status]
		switch {
		case ok:
		case status/100 == 2:
			want = daybook.ResultDone
		case status/100 == 4:
			want = daybook.ResultPermanent
		default:
			want = daybook.ResultUnclear
		}
		if got := ResultOfStatus(status, nil); got != want {
			t.Errorf("%d: got %s, want %s", status, got, want)
		}
		if want != daybook.ResultDone {
			want = daybook.ResultPermanent
		}
		if got := ResultOfStatus(status, []int{1, status}); got != want {
			t.Errorf("%d, said to be permanent: got %s", status, got)
		}
	}
}

func TestSign(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	const renewed = `{"type":"invoice.paid","timestamp":"2026-10-26T02:00:07Z","data":{"key":"renew:2026-10-26/sub_42","amount_cents":1500}}`
	id := WebhookID("renew:2026-10-26/sub_42#invoice.paid")
	if id != "msg_zffumcmhxhhbyzjsukyo4jhap7pbenomxgbrfgwtxw45aq6eimvq" {
		t.Errorf("got %s", id)
	}
	for _, c := range []struct {
		secret, id string
		at         int64
		body, want string
	}{
		{secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, `{"test": 2432232314}`, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		{secret[6:], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, `{"test": 2432232314}`, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		{secret, "msg_renew_2026-10-26_sub_42", 1792980007, renewed, "v1,HNN7YGxzGSabYo3+5LN2RUvWmOu2mNj3uPCDnQ5abyE="},
		{secret, id, 1792980007, renewed, "v1,3kbbf2VdditS7I9tREfVcGRhjVKJ2iEjVMPZwOqi3X4="},
		{secret + "\n" + secret, id, 1792980007, renewed,
			"v1,3kbbf2VdditS7I9tREfVcGRhjVKJ2iEjVMPZwOqi3X4= v1,3kbbf2VdditS7I9tREfVcGRhjVKJ2iEjVMPZwOqi3X4="},
	} {
		h := make(http.Header)
		if err := Sign(h, c.secret, c.id, time.Unix(c.at, 999), []byte(c.body)); err != nil || h.Get("webhook-signature") != c.want ||
			h.Get("webhook-id") != c.id || h.Get("webhook-timestamp") == "" {
			t.Errorf("%s: %v, %v", c.id, err, h)
		}
	}
	for _, c := range [][2]string{{"", "msg_1"}, {" ", "msg_1"}, {"whsec_", "msg_1"}, {"whsec_***", "msg_1"}, {secret, ""}, {secret, "msg.1"}} {
		h := make(http.Header)
		if err := Sign(h, c[0], c[1], noon, nil); daybook.CodeOf(err) != daybook.CodeInvalid || len(h) > 0 {
			t.Errorf("%q: %v, %v", c, err, h)
		}
	}
}

func TestTheStatusLineIsText(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"200 OK": "200 OK", "200": "200 OK", "": "200 OK", "200 \x1b[31;1mfine\x1b[0m": "200 fine", "200 a\x00b\x92c\td": "200 a\uFFFDb\uFFFDc\uFFFDd", "200 \x1b]0;title\a": "200 \uFFFD]0;title\uFFFD",
	} {
		if got := (&Answer{Status: 200, Line: line}).StatusLine(); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
