package runner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

func TestCheckHTTP(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:3000/jobs/renew"
	with := func(change func(*daybook.Job)) *daybook.Job {
		j := &daybook.Job{Name: "renew", HTTP: &daybook.HTTPCall{URL: url}}
		change(j)
		return j
	}
	headers := func(h map[string]string) *daybook.Job {
		return with(func(j *daybook.Job) { j.HTTP.Headers = h })
	}
	for _, c := range []struct {
		job  *daybook.Job
		want string
	}{
		{&daybook.Job{Name: "renew"}, ""},
		{with(func(*daybook.Job) {}), ""},
		{with(func(j *daybook.Job) { j.HTTP.URL = "${URL}"; j.ProbeURL = "file:/run/secrets/probe" }), ""},
		{with(func(j *daybook.Job) { j.HTTP.URL = "https://[::1]:8080/{job}/{subject}?k={wire_key}&d={date}" }), ""},
		{with(func(j *daybook.Job) { j.HTTP.Method = "PUT" }), ""},
		{headers(map[string]string{"Authorization": "${TOKEN}", "X-Shop": "a\tb", "Host": "renew.example"}), ""},
		{with(func(j *daybook.Job) { j.HTTP.URL = "" }), "http.url: \"\" does not begin"},
		{with(func(j *daybook.Job) { j.HTTP.URL = "127.0.0.1:3000/x" }), "http.url: \"127.0.0.1:3000/x\" is not a URL"},
		{with(func(j *daybook.Job) { j.HTTP.URL = "ftp://a/x" }), "does not begin with http"},
		{with(func(j *daybook.Job) { j.HTTP.URL = "http:///x" }), "is not a URL"},
		{with(func(j *daybook.Job) { j.HTTP.URL = "http://{subject}.example/" }), "is not a URL"},
		{with(func(j *daybook.Job) { j.HTTP.URL = "http://a:{subject}/" }), "is not a URL"},
		{with(func(j *daybook.Job) { j.HTTP.URL = "https://ops:pass@a.example/x" }), "user or password"},
		{with(func(j *daybook.Job) { j.HTTP.URL += "/{wirekey}" }), "{wirekey} is no placeholder"},
		{with(func(j *daybook.Job) { j.HTTP.URL += "/{attempt}" }), "{attempt} is no placeholder"},
		{with(func(j *daybook.Job) { j.HTTP.Method = "post" }), "http.method"},
		{with(func(j *daybook.Job) { j.HTTP.Method = "CONNECT" }), "http.method"},
		{with(func(j *daybook.Job) { j.HTTP.Method = "PO ST" }), "http.method"},
		{with(func(j *daybook.Job) { j.Command.Shell = "true" }), "both a command and http"},
		{with(func(j *daybook.Job) { j.ProbeURL = "probe" }), "probe_url: \"probe\" does not begin"},
		{&daybook.Job{Name: "renew", ProbeURL: url, Probe: daybook.Command{Shell: "true"}}, "both probe and probe_url"},
		{headers(map[string]string{"X A": "1"}), "is not the name of a header"},
		{headers(map[string]string{"": "1"}), "is not the name of a header"},
		{headers(map[string]string{"X-A": "a\nb"}), "control character"},
		{headers(map[string]string{"x-a": "1", "X-A": "2"}), "headers X-A and x-a are the same"},
		{headers(map[string]string{"idempotency-key": "1"}), "is set by daybook"},
		{headers(map[string]string{"Daybook-Key": "1"}), "is set by daybook"},
		{headers(map[string]string{"webhook-id": "1"}), "is set by daybook"},
		{headers(map[string]string{"Content-Length": "1"}), "is set by daybook"},
	} {
		var text []string
		for _, f := range CheckHTTP(c.job) {
			text = append(text, f.Field+": "+f.Err.Error())
		}
		if got := strings.Join(text, "\n"); (c.want == "") != (got == "") || !strings.Contains(got, c.want) || len(text) > 1 {
			t.Errorf("%+v: got %q, want %q", *c.job, got, c.want)
		}
	}
}

// FuzzAddress puts any subject into a URL. It stays what it is, between what is around it.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"sub_07", "..", "a/../b", "?x=y#z", "%2e%2e", "é\xff\x00", "{key}", "+ &"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		o := daybook.Order{Run: &daybook.Run{Subject: subject}}
		full, err := address("http://shop.example/u/{subject}/run?s={subject}&t=1", o)
		if err != nil {
			if subject != "." && subject != ".." {
				t.Fatalf("%q: %v", subject, err)
			}
			return
		}
		encoded := percent(subject)
		if full != fmt.Sprintf("http://shop.example/u/%s/run?s=%s&t=1", encoded, encoded) || strings.ContainsAny(encoded, "/?#&=+ \x00") {
			t.Fatalf("%q: %s", subject, full)
		}
	})
}
