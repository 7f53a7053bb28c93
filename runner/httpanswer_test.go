package runner

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/outhttp"
)

func answerOf(status int, kind, body string) *outhttp.Answer {
	return &outhttp.Answer{Status: status, Header: http.Header{"Content-Type": {kind}, "Retry-After": {"30"}}, Body: []byte(body)}
}

// What an answer says: by the outcome it names, else by its status.
func TestHTTPAnswer(t *testing.T) {
	t.Parallel()
	const asJSON, asText, asHTML = "application/json; charset=utf-8", "text/plain", "text/html"
	for _, c := range []struct {
		status     int
		kind, body string
		want       daybook.Result
		part       string
	}{
		{200, asText, "fine", daybook.ResultDone, "200"},
		{204, "", "", daybook.ResultDone, "204"},
		{200, asJSON, "", daybook.ResultDone, "200"},
		{200, asJSON, " \n", daybook.ResultDone, "200"},
		{200, asJSON, `{"outcome":"done","message":"20 charged"}`, daybook.ResultDone, "200: 20 charged"},
		{200, "application/problem+json", `{"outcome":"not_done","message":"gateway is down"}`, daybook.ResultNotDone, "reported not_done (200 OK): gateway is down"},
		{200, asText, `{"outcome":"not_done"}`, daybook.ResultNotDone, "reported not_done (200 OK)"}, // many servers call everything text
		{200, "", `{"outcome":"permanent","message":"declined"}`, daybook.ResultPermanent, "reported permanent (200 OK): declined"},
		{200, "text/html", ` {"outcome":"unknown"}`, daybook.ResultUnknown, "reported unknown (200 OK)"},
		{200, asJSON, "\uFEFF" + `{"outcome":"permanent"}`, daybook.ResultPermanent, "reported permanent (200 OK)"},
		{500, asJSON, `{"outcome":"done"}`, daybook.ResultDone, "500"},
		{500, asJSON, `{"outcome":"unknown"}`, daybook.ResultUnknown, "reported unknown (500 Internal Server Error)"},
		{409, asJSON, `{"outcome":"permanent"}`, daybook.ResultPermanent, "reported permanent (409 Conflict)"},
		{402, asJSON, `{"error":{"code":"card_declined"}}`, daybook.ResultPermanent, `402 Payment Required: {"error":{"code":"card_declined"}}`},
		{402, asText, "card\ndeclined", daybook.ResultPermanent, "402 Payment Required: card declined"},
		{503, asHTML, "<h1>later</h1>", daybook.ResultNotDone, "503 Service Unavailable"},
		{409, asText, "", daybook.ResultBusy, "the far side is at work under this wire key"},
		{418, asText, "", daybook.ResultPermanent, "418 I'm a teapot"},
		{101, asText, "", daybook.ResultUnclear, "101 Switching Protocols"},
		{0, asText, "", daybook.ResultUnclear, "0"},

		// Not ours to read: the status decides.
		{200, asText, `{"state":"paid"}`, daybook.ResultDone, "200"},
		{200, "text/html", `<p>"outcome"</p>`, daybook.ResultDone, "200"},
		{200, asJSON, `{"status":"ok","message":"queued"}`, daybook.ResultDone, "200: queued"},
		{200, asJSON, `{"status":"ok","result":[1]}`, daybook.ResultDone, "200"},
		{200, asJSON, `{"income":3,"outcomes":["done"]}`, daybook.ResultDone, "200"},
		{200, asJSON, `["outcome"]`, daybook.ResultDone, "200"},
		{200, asJSON, `"ok"`, daybook.ResultDone, "200"},
		{200, asJSON, `null`, daybook.ResultDone, "200"},
		{200, asJSON, `{}`, daybook.ResultDone, "200"},
		{200, asJSON, `{"outcome":null}`, daybook.ResultDone, "200"},
		{200, asJSON, `{"big":"` + strings.Repeat("x", 100_000) + `"}`, daybook.ResultDone, "200"},

		// It says that it is a report, or JSON, and cannot be understood: nothing is believed.
		{200, asJSON, `{"outcome":"don"}`, daybook.ResultUnclear, "cannot be read"},
		{200, asText, `{"outcome":"not_do`, daybook.ResultUnclear, "cannot be read"},
		{200, asJSON, `{"outcome":7}`, daybook.ResultUnclear, "cannot be read"},
		{200, asJSON, `{"outcome":"done","outcome":"not_done"}`, daybook.ResultUnclear, `"outcome" twice`},
		{200, asJSON, `{"outcom":"not_done"}`, daybook.ResultUnclear, `did you mean "outcome"`},
		{200, asJSON, `{"Outcome":"not_done"}`, daybook.ResultUnclear, `did you mean "outcome"`},
		{200, asJSON, `{"outcome":"done"`, daybook.ResultUnclear, "cut off"},
		{200, asJSON, `{"outcome":"done"}{"outcome":"not_done"}`, daybook.ResultUnclear, "more than one"},
		{200, asJSON, `<html>`, daybook.ResultUnclear, "not a JSON object"},
		{402, asJSON, `{"outcome":`, daybook.ResultUnclear, "402 Payment Required: the answer cannot be read"},
		{200, asJSON, `{"outcome":"done","x":"` + strings.Repeat("x", 100_000) + `"}`, daybook.ResultUnclear, "cannot be read"},
		{200, asJSON, strings.Repeat(`{"a":`, 20_000), daybook.ResultUnclear, "cannot be read"},

		// A good outcome beside something broken is believed, and what is broken is told.
		{200, asJSON, `{"outcome":"done","effects":{"charges":-1}}`, daybook.ResultDone, "200; effects: charges"},
		{200, asJSON, `{"effects":{"charges":"many"}}`, daybook.ResultDone, "200; effects"},
		{429, asJSON, `{"retry_after":"a while"}`, daybook.ResultNotDone, "retry_after"},
	} {
		out := reading{job: &daybook.Job{}, answer: answerOf(c.status, c.kind, c.body), now: noon}.outcome()
		if out.Result != c.want || !strings.Contains(out.Error+"\n"+out.Detail, c.part) || (out.Error == "") != (c.want == daybook.ResultDone) {
			t.Errorf("%d %s %.60q: got %s, error %q, detail %q; want %s, %q", c.status, c.kind, c.body, out.Result, out.Error, out.Detail, c.want, c.part)
		}
	}
}

func TestHTTPReport(t *testing.T) {
	t.Parallel()
	out := reading{job: &daybook.Job{}, now: noon, answer: answerOf(503, "application/json",
		`{"retry_after":"90s","effects":{"charges":20},"amount":{"USD":"300.00"},"result": {"id": "ch_1"},"message":"half"}`)}.outcome()
	if out.Result != daybook.ResultNotDone || out.RetryAfter != 90*time.Second || out.Counts["charges"] != 20 || string(out.Data) != `{"id":"ch_1"}` ||
		out.Error != "503 Service Unavailable: half" || out.Detail != "503" || !strings.HasPrefix(out.Output.Text, "503 Service Unavailable\n\n{") {
		t.Errorf("got %+v", out)
	}
	out = reading{job: &daybook.Job{}, now: noon, answer: answerOf(503, "", "")}.outcome()
	if out.RetryAfter != 30*time.Second {
		t.Errorf("the header: %s", out.RetryAfter)
	}
	job := &daybook.Job{Retry: daybook.Retry{PermanentStatus: []int{409, 503}}}
	for _, status := range job.Retry.PermanentStatus {
		if out = (reading{job: job, now: noon, answer: answerOf(status, "", "")}).outcome(); out.Result != daybook.ResultPermanent {
			t.Errorf("permanent_status %d: %s", status, out.Result)
		}
	}
}

func TestHTTPOutputIsSafe(t *testing.T) {
	t.Parallel()
	a := answerOf(500, "text/plain", "\x1b[31mred\x00\xff"+strings.Repeat("x", 200_000))
	a.Line = "500 \x1b[2JBoom"
	out := reading{job: &daybook.Job{}, answer: a, now: noon}.outcome()
	for _, text := range []string{out.Output.Text, out.Error, out.Detail} {
		if strings.ContainsAny(text, "\x1b\x00") || !utf8.ValidString(text) || len(text) > daybook.MaxOutputBytes {
			t.Errorf("%d bytes: %.100q", len(text), text)
		}
	}
	if !strings.HasPrefix(out.Output.Text, "500 Boom\n\nred\uFFFD") || !strings.Contains(out.Output.Text, "bytes omitted") {
		t.Errorf("got %.100q", out.Output.Text)
	}
}

// FuzzHTTPAnswer reads any answer. Done comes of a 2xx or of the word itself, and what is kept is safe and bounded.
func FuzzHTTPAnswer(f *testing.F) {
	for _, s := range []string{"", "{}", `{"outcome":"done"}`, `{"outcome":"not_done","retry_after":"9d","effects":{"a":1},"result":[],"message":"\u0000"}`,
		`{"outcom":"done"}`, "\xef\xbb\xbf{\"outcome\":\"unknown\"}", "[1", "\xff\xfe", `{"a":1,"a":2}`} {
		f.Add(200, "application/json", []byte(s), "5")
		f.Add(503, "text/plain", []byte(s), "Mon, 26 Oct 2026 12:01:30 GMT")
	}
	f.Fuzz(func(t *testing.T, status int, kind string, body []byte, after string) {
		a := &outhttp.Answer{Status: status, Line: kind, Body: body, Header: http.Header{"Content-Type": {kind}, "Retry-After": {after}, "Location": {after}}}
		out := reading{job: &daybook.Job{}, answer: a, now: noon}.outcome()
		if (out.Result == daybook.ResultDone || out.Result == resultAccepted) && status/100 != 2 && !strings.Contains(string(body), "outcome") && !strings.Contains(string(body), `\u`) {
			t.Fatalf("%d is done", status)
		}
		switch {
		case out.Result == "":
			t.Fatal("no result")
		case !utf8.ValidString(out.Error+out.Detail+out.Output.Text) || strings.Contains(out.Error, "\x1b"):
			t.Fatalf("not safe: %q %q", out.Error, out.Detail)
		case len(out.Error) > daybook.MaxErrorBytes || len(out.Output.Text) > daybook.MaxOutputBytes || len(out.Detail) > 3*daybook.MaxErrorBytes:
			t.Fatalf("too long: %d %d %d", len(out.Error), len(out.Output.Text), len(out.Detail))
		case out.RetryAfter < 0 || out.RetryAfter > daybook.MaxRetryAfter:
			t.Fatalf("retry after %s", out.RetryAfter)
		case len(out.Data) > 0 && !json.Valid(out.Data):
			t.Fatalf("data %q", out.Data)
		}
		for range out.Counts {
			_ = fmt.Sprint(out.Counts)
		}
	})
}
