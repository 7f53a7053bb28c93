package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

func asks(t *testing.T, url string) daybook.Order {
	t.Helper()
	o := call(t, "http://127.0.0.1:1/jobs/renew")
	o.Job.ProbeURL = url
	return o
}

func TestHTTPProbe(t *testing.T) {
	t.Parallel()
	ok := func(body string) string {
		return saying(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	}
	nobody := httptest.NewServer(nil)
	nobody.Close()
	for name, c := range map[string]struct {
		url    string
		answer daybook.Answer
		data   string
		part   string
	}{
		"yes":               {ok(`{"answer":"yes","result":{"id": "ch_1"}}`), daybook.Yes, `{"id":"ch_1"}`, ""},
		"yes, no more":      {ok(`{"answer":"yes"}`), daybook.Yes, "", ""},
		"yes, null":         {ok(`{"answer":"yes","result":null,"other":1}`), daybook.Yes, "", ""},
		"no":                {ok(`{"answer":"no","result":{"id":1}}`), daybook.No, "", ""},
		"cannot tell":       {ok(`{"answer":"cannot_tell"}`), daybook.CannotTell, "", "cannot tell"},
		"other word":        {ok(`{"answer":"NO"}`), daybook.CannotTell, "", "yes, no or cannot_tell"},
		"other name":        {ok(`{"Answer":"no"}`), daybook.CannotTell, "", "yes, no or cannot_tell"},
		"no text":           {ok(`{"answer":false}`), daybook.CannotTell, "", "yes, no or cannot_tell"},
		"twice":             {ok(`{"answer":"no","answer":"yes"}`), daybook.CannotTell, "", "no JSON object"},
		"a page":            {ok(`<html>no</html>`), daybook.CannotTell, "", "no JSON object"},
		"nothing":           {ok(``), daybook.CannotTell, "", "no JSON object"},
		"more":              {ok(`{"answer":"no"} {}`), daybook.CannotTell, "", "no JSON object"},
		"not found":         {saying(t, "HTTP/1.1 404 Not Found\r\nContent-Length: 15\r\n\r\n{\"answer\":\"no\"}"), daybook.CannotTell, "", "404 Not Found"},
		"accepted":          {saying(t, "HTTP/1.1 202 Accepted\r\nContent-Length: 15\r\n\r\n{\"answer\":\"no\"}"), daybook.CannotTell, "", "202 Accepted"},
		"redirect":          {saying(t, "HTTP/1.1 302 Found\r\nLocation: /yes\r\nContent-Length: 0\r\n\r\n"), daybook.CannotTell, "", "302 Found"},
		"cut off":           {saying(t, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"answer\":\"no\"}"), daybook.CannotTell, "", "cut off"},
		"closed":            {saying(t, ""), daybook.CannotTell, "", "cut off"},
		"refused":           {nobody.URL, daybook.CannotTell, "", "connection refused"},
		"too long":          {ok(`{"answer":"no","x":"` + strings.Repeat("x", 100_000) + `"}`), daybook.CannotTell, "", "more than it may"},
		"no URL":            {"http://%zz/", daybook.CannotTell, "", "URL"},
		"none":              {"", daybook.CannotTell, "", "no probe_url"},
		"nobody looked up":  {"${PROBE}", daybook.CannotTell, "", "probe_url"},
		"invalid UTF-8":     {ok("{\"answer\":\"yes\",\"result\":\"\xff\"}"), daybook.Yes, `"` + "\uFFFD" + `"`, ""},
		"a result too long": {ok(`{"answer":"yes","result":"` + strings.Repeat("y", 65_600) + `"}`), daybook.Yes, `"\"yyy`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := asks(t, c.url)
			f := atNoon().Probe(t.Context(), o, o.WireKey)
			if f.Answer != c.answer || f.WireKey != o.WireKey || !strings.HasPrefix(string(f.Data), c.data) || (len(f.Data) > 0) != (c.data != "") ||
				!strings.Contains(f.Error, c.part) || (f.Error == "") != (c.part == "") || len(f.Data) > 0 && !json.Valid(f.Data) {
				t.Errorf("got %s, data %.40s, %q", f.Answer, f.Data, f.Error)
			}
		})
	}
}

func TestHTTPProbeHangs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	o := asks(t, listen(t, func(_ *net.TCPConn, r *bufio.Reader) { swallow(r); cancel(daybook.ErrTimeout); swallow(r) }))
	if f := atNoon().Probe(ctx, o, o.WireKey); f.Answer != daybook.CannotTell || f.Error != "timed out after sending" {
		t.Errorf("got %s, %q", f.Answer, f.Error)
	}
	if f := atNoon().Probe(ctx, o, o.WireKey); f.Answer != daybook.CannotTell || f.Error != "not asked: timed out" {
		t.Errorf("got %s, %q", f.Answer, f.Error)
	}
}

func TestHTTPProbeRequest(t *testing.T) {
	t.Parallel()
	url, requests := notebook(t)
	o := call(t, url+"/jobs/{subject}")
	o.Job.ProbeURL = url + "/probe/{job}?tenant=a%20b"
	o.Job.HTTP.Headers = map[string]string{"Authorization": "${A}", "Content-Type": "text/x"}
	o.Job.HTTP.Secret = "${S}"
	o.Env = map[string]string{EnvHeader + "Authorization": "Bearer s3cr3t-token", EnvSecret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	for i, c := range []struct{ wireKey, query string }{
		{"renew:2026-10-26/sub_07", "key=renew%3A2026-10-26%2Fsub_07&run=renew%3A2026-10-26%2Fsub_07&step=run"},
		{"renew:2026-10-26/sub_07#run@2", "key=renew%3A2026-10-26%2Fsub_07%23run%402&run=renew%3A2026-10-26%2Fsub_07&step=run"},
		{"renew:2026-10-26/sub_07#charge", "key=renew%3A2026-10-26%2Fsub_07%23charge&run=renew%3A2026-10-26%2Fsub_07&step=charge"},
		{"renew:2026-10-26/sub_07#charge@3", "key=renew%3A2026-10-26%2Fsub_07%23charge%403&run=renew%3A2026-10-26%2Fsub_07&step=charge"},
	} {
		atNoon().Probe(t.Context(), o, c.wireKey)
		r := requests()[i]
		if want := "/probe/renew?tenant=a%20b&" + c.query; r.RequestURI != want || r.Method != "GET" || r.body != "" {
			t.Errorf("got  %s %s\nwant %s", r.Method, r.RequestURI, want)
		}
		if h := r.Header; h.Get("Authorization") != "Bearer s3cr3t-token" || h.Get("webhook-signature") == "" || h.Get("Idempotency-Key") != "" ||
			h.Get("Content-Type") != "" || h.Get("Daybook-Key") != "renew:2026-10-26/sub_07" {
			t.Errorf("got %v", h)
		}
	}
	undo, key := o, *o.Run // a question about an undo says so
	key.Key, undo.Run = o.Run.Key.Undo(), &key
	atNoon().Probe(t.Context(), undo, "renew:2026-10-26/sub_07#charge~undo")
	if r := requests()[4]; r.RequestURI != "/probe/renew?tenant=a%20b&key=renew%3A2026-10-26%2Fsub_07%23charge~undo&run=renew%3A2026-10-26%2Fsub_07&step=charge~undo&undo=true" {
		t.Errorf("of an undo: %s", r.RequestURI)
	}
	ids := make(map[string]bool)
	for i := range 3 {
		h := HTTP{Clock: func() time.Time { return noon.Add(time.Duration(i)) }}
		h.Probe(t.Context(), o, o.WireKey)
	}
	for _, r := range requests()[5:] {
		ids[r.Header.Get("webhook-id")] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d ids for 3 questions", len(ids))
	}
	// Another service does not get the headers that are meant for the first.
	other, seen := notebook(t)
	o.Job.ProbeURL = other
	atNoon().Probe(t.Context(), o, o.WireKey)
	if h := seen()[0].Header; h.Get("Authorization") != "" || h.Get("webhook-signature") == "" {
		t.Errorf("got %v", h)
	}
}

// The probe of a job need not be of the kind of its work.
func TestProbersOfOtherKinds(t *testing.T) {
	t.Parallel()
	url := saying(t, "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"answer\":\"yes\"}")
	options := Options{HTTP: *atNoon(), Funcs: map[string]GoFunc{"renew": {Do: func(context.Context, *daybook.Run) error { return nil }}}}
	for name, job := range map[string]*daybook.Job{
		"a command with a URL":  {Name: "renew", Command: daybook.Command{Shell: "true"}, ProbeURL: url},
		"a function with a URL": {Name: "renew", ProbeURL: url},
		"HTTP with a URL":       {Name: "renew", HTTP: &daybook.HTTPCall{URL: url}, ProbeURL: url},
		// The command must not see the secrets of the request.
		"HTTP with a command":       {Name: "renew", HTTP: &daybook.HTTPCall{URL: url}, Probe: daybook.Command{Shell: "! env | grep s3cr3t"}},
		"a function with a command": {Name: "renew", Probe: daybook.Command{Shell: "! env | grep s3cr3t"}},
	} {
		r, err := For(job, options)
		if err != nil {
			t.Fatal(err)
		}
		o := order(t, "true")
		o.Job, o.Env = job, map[string]string{EnvHeader + "X": "s3cr3t"}
		p, ok := r.(daybook.Prober)
		if !ok {
			t.Fatalf("%s: %T cannot ask", name, r)
		}
		if f := p.Probe(t.Context(), o, o.WireKey); f.Answer != daybook.Yes {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, job := range []*daybook.Job{{Name: "a", HTTP: &daybook.HTTPCall{URL: url}}, {Name: "b", Command: daybook.Command{Shell: "true"}, ProbeURL: url}} {
		if r, err := For(job, Options{}); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("without a clock: %T, %v", r, err)
		}
	}
}
