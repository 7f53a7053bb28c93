package runner

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	url, requests := notebook(t)
	o := call(t, url+"/jobs/{job}/{subject}?d={date}&k={wire_key}&from={window_start}&to={window_end}&w={window}")
	o.Run.Subject = "a/b c"
	o.Job.HTTP.Headers = map[string]string{"x-plain": "yes", "Authorization": "file:/run/secrets/token", "user-agent": "shop"}
	o.Env = map[string]string{EnvHeader + "Authorization": "Bearer s3cr3t-token"}
	out := atNoon().Run(t.Context(), o)
	wantOutcome(t, out, daybook.ResultDone, "200")
	r := requests()[0]
	if want := "/jobs/renew/a%2Fb%20c?d=2026-10-26&k=renew%3A2026-10-26%2Fsub_07&from=2026-10-25T16%3A00%3A00Z&to=2026-10-26T16%3A00%3A00Z&w=2026-10-26"; r.RequestURI != want {
		t.Errorf("got  %s\nwant %s", r.RequestURI, want)
	}
	if want := `{"key":"renew:2026-10-26/sub_07","job":"renew","subject":"a/b c","window":"2026-10-26","window_start":"2026-10-25T16:00:00Z",` +
		`"window_end":"2026-10-26T16:00:00Z","date":"2026-10-26","payload":{"cents":1500,"note":"<b>&"}}`; r.body != want {
		t.Errorf("got  %s\nwant %s", r.body, want)
	}
	for name, want := range map[string]string{
		"Idempotency-Key": "renew:2026-10-26/sub_07", "Content-Type": "application/json", "User-Agent": "shop", "X-Plain": "yes",
		"Authorization": "Bearer s3cr3t-token", "Daybook-Job": "renew", "Daybook-Key": "renew:2026-10-26/sub_07", "Daybook-Subject": "a/b c",
		"Daybook-Trigger": "schedule", "Daybook-Window": "2026-10-26", "Daybook-Window-Start": "2026-10-25T16:00:00Z",
		"Daybook-Window-End": "2026-10-26T16:00:00Z", "Daybook-Business-Date": "2026-10-26", "Daybook-Attempt": "2", "Daybook-Fence": "7",
		"Daybook-Callback": "", "Daybook-Token": "", "Webhook-Id": "", "Webhook-Signature": "", "Accept-Encoding": "",
		"Traceparent": "00-324d46ace14ae93d350c613ac7893a4b-54cda7b6b66ea7ba-01",
	} {
		if r.Header.Get(name) != want {
			t.Errorf("%s: got %q, want %q", name, r.Header.Get(name), want)
		}
	}
	if r.Method != "POST" {
		t.Errorf("got %s", r.Method)
	}
}

// Under one wire key every try sends the same bytes: what changes with a try is in headers.
func TestHTTPSameBytesInEveryTry(t *testing.T) {
	t.Parallel()
	url, requests := notebook(t)
	o := call(t, url)
	const tries = 4
	for i := range tries {
		o.Attempt, o.Fence, o.Run.Attempts, o.Run.Fence, o.Run.FirstSource = i+1, int64(10*i), i, int64(i), "manual"
		o.Run.Failures, o.Run.LastError, o.Run.Claim = i, fmt.Sprint(i), fmt.Sprint(i)
		h := HTTP{Clock: func() time.Time { return noon.Add(time.Duration(i) * time.Hour) }}
		wantOutcome(t, h.Run(t.Context(), o), daybook.ResultDone)
	}
	traces, parents := make(map[string]bool), make(map[string]bool)
	for _, r := range requests() {
		if r.body != requests()[0].body || r.Header.Get("Idempotency-Key") != requests()[0].Header.Get("Idempotency-Key") {
			t.Errorf("%s\nand before\n%s", r.body, requests()[0].body)
		}
		trace := strings.Split(r.Header.Get("Traceparent"), "-")
		traces[trace[1]], parents[trace[2]] = true, true
	}
	if len(requests()) != tries || len(traces) != 1 || len(parents) != tries {
		t.Errorf("%d requests, %d traces, %d parents", len(requests()), len(traces), len(parents))
	}
}

func TestHTTPVariants(t *testing.T) {
	t.Parallel()
	url, requests := notebook(t)
	send := func(change func(*daybook.Order)) got {
		t.Helper()
		o := call(t, url)
		change(&o)
		wantOutcome(t, atNoon().Run(t.Context(), o), daybook.ResultDone)
		all := requests()
		return all[len(all)-1]
	}
	if r := send(func(o *daybook.Order) { o.Job.HTTP.Quoted = true }); r.Header.Get("Idempotency-Key") != `"renew:2026-10-26/sub_07"` {
		t.Errorf("quoted: %s", r.Header.Get("Idempotency-Key"))
	}
	if r := send(func(o *daybook.Order) { o.WireKey = "" }); len(r.Header["Idempotency-Key"]) > 0 {
		t.Errorf("with steps: %q", r.Header["Idempotency-Key"])
	}
	if r := send(func(o *daybook.Order) { o.Job.HTTP.Method = "GET" }); r.Method != "GET" || r.body != "" || r.Header.Get("Content-Type") != "" {
		t.Errorf("GET: %s %q", r.Method, r.body)
	}
	if r := send(func(o *daybook.Order) {
		o.Run.Cover = daybook.Bounds{Start: noon.Add(-time.Hour), End: noon}
	}); r.Header.Get("Daybook-Window-Start") != "2026-10-26T11:00:00Z" || !strings.Contains(r.body, `"window_end":"2026-10-26T12:00:00Z"`) {
		t.Errorf("a run that covers others: %v %s", r.Header, r.body)
	}
	if r := send(func(o *daybook.Order) {
		o.Run.Subject, o.Run.Input, o.Run.Window = "", nil, daybook.Window{Label: "evt_1"}
	}); r.body != `{"key":"renew:2026-10-26/sub_07","job":"renew","window":"evt_1"}` || len(r.Header["Daybook-Window-Start"]) > 0 {
		t.Errorf("an event: %s %v", r.body, r.Header)
	}
	if r := send(func(o *daybook.Order) {
		o.Job.HTTP.URL = "${URL}"
		o.Env = map[string]string{EnvURL: strings.Replace(url, "http://", "http://ops:pass@", 1) + "/{job}"}
	}); r.URL.Path != "/renew" || r.Header.Get("Authorization") != "Basic b3BzOnBhc3M=" {
		t.Errorf("a URL that is a secret: %s %v", r.URL, r.Header)
	}
}

func TestHTTPSignature(t *testing.T) {
	t.Parallel()
	url, requests := notebook(t)
	o := call(t, url)
	o.Run.Input = nil
	o.Job.HTTP.Secret = "file:/run/secrets/whsec"
	o.Env = map[string]string{EnvSecret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	wantOutcome(t, atNoon().Run(t.Context(), o), daybook.ResultDone)
	h := requests()[0].Header
	if h.Get("webhook-timestamp") != "1793016000" || !strings.HasPrefix(h.Get("webhook-signature"), "v1,") || len(h.Get("webhook-id")) != 56 {
		t.Errorf("got %v", h)
	}
	o.WireKey = "renew:2026-10-26/sub_07#run@2"
	wantOutcome(t, atNoon().Run(t.Context(), o), daybook.ResultDone)
	if requests()[1].Header.Get("webhook-id") == h.Get("webhook-id") {
		t.Error("another wire key has the same webhook-id")
	}
	o.Env[EnvSecret] = "whsec_not base64"
	out := atNoon().Run(t.Context(), o)
	wantOutcome(t, out, daybook.ResultPermanent, "not base64")
}

// Nothing is sent that could not be meant, and no reference in place of a secret.
func TestHTTPNotSent(t *testing.T) {
	t.Parallel()
	url, requests := notebook(t)
	for name, c := range map[string]struct {
		change func(*daybook.Order)
		result daybook.Result
		part   string
	}{
		"wire key too long":     {func(o *daybook.Order) { o.WireKey = strings.Repeat("k", 256) }, daybook.ResultPermanent, "256 bytes"},
		"header not looked up":  {func(o *daybook.Order) { o.Job.HTTP.Headers = map[string]string{"X-A": "${TOKEN}"} }, daybook.ResultNotDone, "header X-A"},
		"secret not looked up":  {func(o *daybook.Order) { o.Job.HTTP.Secret = "file:/run/s" }, daybook.ResultNotDone, "secret"},
		"URL not looked up":     {func(o *daybook.Order) { o.Job.HTTP.URL = "${URL}" }, daybook.ResultNotDone, ""},
		"header with a break":   {func(o *daybook.Order) { o.Job.HTTP.Headers = map[string]string{"X-A": "a\r\nX-B: b"} }, daybook.ResultPermanent, "X-A"},
		"header of ours":        {func(o *daybook.Order) { o.Job.HTTP.Headers = map[string]string{"Idempotency-Key": "x"} }, daybook.ResultPermanent, "Idempotency-Key"},
		"payload that is none":  {func(o *daybook.Order) { o.Run.Input = []byte("{") }, daybook.ResultPermanent, "payload"},
		"no URL":                {func(o *daybook.Order) { o.Job.HTTP.URL = "http://%zz/" }, daybook.ResultPermanent, "URL"},
		"a subject as the host": {func(o *daybook.Order) { o.Job.HTTP.URL = "http://{subject}/" }, daybook.ResultPermanent, "URL"},
		"a subject that climbs": {func(o *daybook.Order) { o.Run.Subject = ".."; o.Job.HTTP.URL += "/users/{subject}/run" }, daybook.ResultPermanent, "dot"},
	} {
		o := call(t, url)
		c.change(&o)
		out := atNoon().Run(t.Context(), o)
		if out.Result != c.result || !strings.Contains(out.Error, c.part) || out.Error == "" {
			t.Errorf("%s: got %s, %q", name, out.Result, out.Error)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(daybook.ErrShutdown)
	out := atNoon().Run(ctx, call(t, url))
	wantOutcome(t, out, daybook.ResultNotDone, "stopping")
	if !out.Interrupted || len(requests()) != 0 {
		t.Errorf("interrupted %v, %d requests", out.Interrupted, len(requests()))
	}
}

// What the far side does to the connection, and what the attempt says then.
func TestHTTPConnections(t *testing.T) {
	t.Parallel()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	for name, c := range map[string]struct {
		url    string
		result daybook.Result
		parts  []string
	}{
		"refused":      {nobody.URL, daybook.ResultNotDone, []string{"connection refused", "not sent"}},
		"no name":      {"http://" + strings.Repeat("a", 64) + ".example", daybook.ResultNotDone, []string{"name not found"}},
		"no TLS":       {strings.Replace(saying(t, "HTTP/1.1 400 Bad\r\n\r\n"), "http:", "https:", 1), daybook.ResultNotDone, []string{"TLS failed"}},
		"closed":       {saying(t, ""), daybook.ResultUnknown, []string{"cut off after sending"}},
		"reset before": {listen(t, func(c *net.TCPConn, _ *bufio.Reader) { _, _ = c.Read(make([]byte, 1)); _ = c.SetLinger(0) }), daybook.ResultUnknown, []string{"reset after sending"}},
		"reset after":  {listen(t, func(c *net.TCPConn, r *bufio.Reader) { swallow(r); _ = c.SetLinger(0) }), daybook.ResultUnknown, []string{"after sending"}},
		"cut off":      {saying(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), daybook.ResultUnknown, []string{"answered 200 OK, then", "cut off after sending"}},
		"too long":     {saying(t, "HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat("x", 1<<20+1)), daybook.ResultUnclear, []string{"cannot be read", "1048576 bytes"}},
		"long enough":  {saying(t, "HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat("x", 1<<20)), daybook.ResultDone, nil},
		"no HTTP":      {saying(t, "220 mail ready\r\n"), daybook.ResultUnclear, []string{"cannot be read"}},
		"huge header":  {saying(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 100_000)+"\r\n\r\n"), daybook.ResultUnclear, []string{"cannot be read"}},
		"HTTP/1.0":     {saying(t, "HTTP/1.0 200 OK\r\n\r\nfine"), daybook.ResultDone, nil},
		"twice":        {saying(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), daybook.ResultDone, nil},
		"not UTF-8":    {saying(t, "HTTP/1.1 500 \xff\xfe\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n\xff\x00\x1b"), daybook.ResultUnclear, []string{"500 \uFFFD\uFFFD"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := atNoon().Run(t.Context(), call(t, c.url))
			wantOutcome(t, out, c.result, c.parts...)
			if len(out.Output.Text) > daybook.MaxOutputBytes || len(out.Error) > daybook.MaxErrorBytes {
				t.Errorf("%d bytes of output, %d of error", len(out.Output.Text), len(out.Error))
			}
		})
	}
}

// H55: one deadline for the whole exchange, and the socket is closed.
func TestH55BodyNeverEnds(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	for name, head := range map[string]string{"": "", "header": "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n"} {
		t.Run("stalls after "+name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan struct{})
			url := listen(t, func(c *net.TCPConn, r *bufio.Reader) {
				swallow(r)
				_, _ = io.WriteString(c, head)
				_, _ = io.Copy(io.Discard, c)
				close(closed)
			})
			start := time.Now()
			ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, daybook.ErrTimeout)
			defer cancel()
			out := atNoon().Run(ctx, call(t, url))
			wantOutcome(t, out, daybook.ResultUnknown, "timed out after sending")
			if d := time.Since(start); d < timeout || d > patient || out.Interrupted {
				t.Errorf("took %s, interrupted %v", d, out.Interrupted)
			}
			select {
			case <-closed:
			case <-time.After(patient):
				t.Fatal("the socket is open")
			}
			// What follows: tried again where repeating does no harm, else unknown.
			run := &daybook.Run{Key: "renew:2026-10-26", Job: "renew", State: daybook.Running, Effects: daybook.Repeatable, CreatedAt: noon}
			p := daybook.Policy{Retry: daybook.Retry{Backoff: daybook.DefaultBackoff, Jitter: -1}}
			if m := run.Next(out, p, noon); m.To != daybook.Retryable || !m.Due.Equal(noon.Add(time.Minute)) {
				t.Errorf("repeatable: %s, due %s", m.To, m.Due)
			}
			run.Effects = daybook.Once
			run.Effect, _ = run.Begin(p, noon)
			if m := run.Next(out, p, noon); m.To != daybook.Dead || m.Effect.State != daybook.EffectUnknown || m.Letter.Kind != daybook.LetterUnknown {
				t.Errorf("once: %s, effect %s", m.To, m.Effect.State)
			}
		})
	}
}

// H56: seconds or a date, the longer of ladder and header, and a cap.
func TestH56RetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, header string
		want           time.Duration
	}{
		{"429 Too Many Requests", "120", 120 * time.Second},
		{"503 Service Unavailable", noon.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{"429 Too Many Requests", "999999", daybook.MaxRetryAfter},
		{"429 Too Many Requests", "1", 5 * time.Second}, // the ladder is never shortened
		{"429 Too Many Requests", "-120", 5 * time.Second},
		{"429 Too Many Requests", "a while", 5 * time.Second},
		{"503 Service Unavailable", noon.Add(-time.Hour).Format(http.TimeFormat), 5 * time.Second},
		{"409 Conflict", "300", 5 * time.Minute},
		{"409 Conflict", "", time.Minute},
	} {
		out := atNoon().Run(t.Context(), call(t, saying(t, "HTTP/1.1 "+c.status+"\r\nRetry-After: "+c.header+"\r\nContent-Length: 0\r\n\r\n")))
		run := &daybook.Run{Key: "renew:2026-10-26", Job: "renew", State: daybook.Running, Effects: daybook.Repeatable, CreatedAt: noon}
		p := daybook.Policy{Retry: daybook.Retry{Backoff: []time.Duration{5 * time.Second}, Jitter: -1}}
		if m := run.Next(out, p, noon); m.To != daybook.Retryable || !m.Due.Equal(noon.Add(c.want)) {
			t.Errorf("%s, Retry-After %q: %s, due in %s, want %s", c.status, c.header, m.To, m.Due.Sub(noon), c.want)
		}
	}
}

// H57: no redirect is followed, and the error names where it leads.
func TestH57RedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var inside atomic.Int32
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	defer secret.Close()
	for _, status := range []string{"301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"} {
		for _, to := range []string{"http://169.254.169.254/x", secret.URL + "/x"} {
			url := saying(t, "HTTP/1.1 "+status+"\r\nLocation: "+to+"?token=abc\r\nContent-Length: 0\r\n\r\n")
			out := atNoon().Run(t.Context(), call(t, url))
			wantOutcome(t, out, daybook.ResultUnclear, status+" to "+to+", which is not followed")
			if strings.Contains(out.Error, "abc") {
				t.Errorf("the error has the query: %s", out.Error)
			}
		}
	}
	if n := inside.Load(); n != 0 {
		t.Errorf("followed %d times", n)
	}
}

// Daybook stops while a request is under way: its answer is still taken, within the grace.
func TestHTTPShutdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause  error
		answer bool
		want   daybook.Result
		part   string
	}{
		"the answer comes":     {daybook.ErrShutdown, true, daybook.ResultDone, "200"},
		"the answer is late":   {daybook.ErrShutdown, false, daybook.ResultUnknown, "daybook is stopping after sending"},
		"the lease was lost":   {daybook.ErrLeaseLost, false, daybook.ResultUnknown, "the lease was lost after sending"},
		"a person asks to end": {daybook.ErrCancelled, false, daybook.ResultUnknown, "cancelled by a person after sending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			url := listen(t, func(w *net.TCPConn, r *bufio.Reader) {
				swallow(r)
				cancel(c.cause)
				if c.answer {
					<-ctx.Done()
					_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
				_, _ = io.Copy(io.Discard, w)
			})
			h := atNoon()
			h.Grace = patient
			if !c.answer && c.cause == daybook.ErrShutdown {
				h.Grace = 50 * time.Millisecond
			}
			out := h.Run(ctx, call(t, url))
			wantOutcome(t, out, c.want, c.part)
			if out.Interrupted != (c.cause == daybook.ErrShutdown) {
				t.Errorf("interrupted: %v", out.Interrupted)
			}
		})
	}
	t.Run("its timeout holds during the grace", func(t *testing.T) {
		t.Parallel()
		parent, stop := context.WithCancelCause(t.Context())
		ctx, cancel := context.WithTimeoutCause(parent, time.Second, daybook.ErrTimeout)
		defer cancel()
		url := listen(t, func(w *net.TCPConn, r *bufio.Reader) {
			swallow(r)
			stop(daybook.ErrShutdown)
			_, _ = io.Copy(io.Discard, w)
		})
		h := atNoon()
		h.Grace = time.Hour
		wantOutcome(t, h.Run(ctx, call(t, url)), daybook.ResultUnknown, "timed out after sending")
	})
	t.Run("nothing was sent yet", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		url := listen(t, func(w *net.TCPConn, r *bufio.Reader) {
			_, _ = r.ReadByte()
			cancel(daybook.ErrShutdown)
			_, _ = io.Copy(io.Discard, r)
		})
		h := atNoon()
		h.Grace = time.Hour
		out := h.Run(ctx, call(t, strings.Replace(url, "http:", "https:", 1)))
		wantOutcome(t, out, daybook.ResultNotDone, "daybook is stopping before sending", "not sent")
		if !out.Interrupted {
			t.Error("not interrupted")
		}
	})
}

// One attempt sends once, whatever the far side does to the connection.
func TestHTTPSendsOnce(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	url := listen(t, func(c *net.TCPConn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if seen.Add(1)%2 == 0 {
				return // a kept connection breaks once its next request is read
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n")
		}
	})
	h := atNoon()
	for i := range int32(10) {
		want := daybook.ResultDone
		if i%2 == 1 {
			want = daybook.ResultUnknown
		}
		wantOutcome(t, h.Run(t.Context(), call(t, url)), want)
		if n := seen.Load(); n != i+1 {
			t.Fatalf("%d attempts, %d requests", i+1, n)
		}
	}
}

// A page of errors that shows what was sent must not put a secret into the ledger.
func TestHTTPSecretsAreMasked(t *testing.T) {
	t.Parallel()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "http://elsewhere/"+r.Header.Get("X-Key"))
		w.WriteHeader(300)
		fmt.Fprintf(w, `{"outcome":"not_done","message":"%s","result":{"auth":"%s","key":"%s"}}`, r.Header.Get("Authorization"),
			strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Key"))
	}))
	defer echo.Close()
	o := call(t, echo.URL+"/{key}")
	o.Job.HTTP.Headers = map[string]string{"Authorization": "${A}", "X-Key": "${B}"}
	o.Env = map[string]string{EnvHeader + "Authorization": "Bearer s3cr3t-token", EnvHeader + "X-Key": "another-s3cr3t"}
	out := atNoon().Run(t.Context(), o)
	wantOutcome(t, out, daybook.ResultNotDone, "***")
	if text := fmt.Sprintf("%+v %s", out, out.Data); strings.Contains(text, "s3cr3t") {
		t.Errorf("a secret shows: %s", text)
	}
	// Nor may the URL, which is one, when nobody answers there.
	echo.Close()
	o.Job.HTTP.URL, o.Env[EnvURL] = "${URL}", echo.URL+"/s3cr3t-path"
	if out = atNoon().Run(t.Context(), o); strings.Contains(fmt.Sprintf("%+v", out), "s3cr3t") {
		t.Errorf("a secret shows: %+v", out)
	}
}

// callbacks is one report that comes, or not.

type callbacks struct {
	said   daybook.Result // "": nothing was reported
	unsaid bool           // reported, and it is not known here what
	opened atomic.Int32
	closed atomic.Int32

	waiting func() // called when somebody waits
}

func (c *callbacks) Open(_ context.Context, o daybook.Order) (string, string, error) {
	c.opened.Add(1)
	return "http://127.0.0.1:7070/api/v1/callbacks/renew:2026-10-26", fmt.Sprintf("token-of-%d", o.Fence), nil
}

func (c *callbacks) Look(_ context.Context, token string) (daybook.Result, bool) {
	return c.said, token == "token-of-7" && (c.said != "" || c.unsaid)
}

func (c *callbacks) Wait(ctx context.Context, _ string) {
	if c.waiting != nil {
		c.waiting()
	}
	if c.said == "" && !c.unsaid {
		<-ctx.Done()
	}
}

func (c *callbacks) Close(string) { c.closed.Add(1) }

// shut is where no attempt can be opened now.
type shut struct{ callbacks }

func (*shut) Open(context.Context, daybook.Order) (string, string, error) {
	return "", "", &daybook.Error{Code: daybook.CodeUnavailable, Message: "read the secret of the ledger"}
}

func TestHTTPCallback(t *testing.T) {
	t.Parallel()
	answer := func(status, body string) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
	const accepted, ok, declined = "202 Accepted", "200 OK", "402 Payment Required"
	for name, c := range map[string]struct {
		answer   string
		fake     *callbacks
		want     daybook.Result
		recorded bool
	}{
		"accepted, then done":                     {answer(accepted, "{}"), &callbacks{said: daybook.ResultDone}, daybook.ResultDone, true},
		"accepted, then not done":                 {answer(accepted, "{}"), &callbacks{said: daybook.ResultNotDone}, daybook.ResultNotDone, true},
		"accepted, and another node heard of it":  {answer(accepted, "{}"), &callbacks{unsaid: true}, daybook.ResultUnknown, true},
		"done, said twice":                        {answer(ok, ""), &callbacks{said: daybook.ResultDone}, daybook.ResultDone, true},
		"done, then cut off":                      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", &callbacks{said: daybook.ResultDone}, daybook.ResultDone, true},
		"cut off, and another node heard of it":   {"", &callbacks{unsaid: true}, daybook.ResultUnknown, true},
		"done, then declined: that is evidence":   {answer(declined, ""), &callbacks{said: daybook.ResultDone}, daybook.ResultPermanent, false},
		"declined, and another node heard of it":  {answer(declined, ""), &callbacks{unsaid: true}, daybook.ResultPermanent, false},
		"done, and never reported":                {answer(ok, ""), &callbacks{}, daybook.ResultDone, false},
		"an outcome in the answer wins":           {answer(accepted, `{"outcome":"done"}`), &callbacks{}, daybook.ResultDone, false},
		"an outcome in the answer, and reported":  {answer(accepted, `{"outcome":"done"}`), &callbacks{said: daybook.ResultDone}, daybook.ResultDone, true},
		"cut off after sending, nothing reported": {"", &callbacks{}, daybook.ResultUnknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := atNoon()
			h.Callbacks = c.fake
			headers := make(chan http.Header, 1)
			url := listen(t, func(w *net.TCPConn, r *bufio.Reader) {
				if req, err := http.ReadRequest(r); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
					headers <- req.Header
				}
				_, _ = io.WriteString(w, c.answer)
			})
			out := h.Run(t.Context(), call(t, url))
			wantOutcome(t, out, c.want)
			if out.Recorded != c.recorded {
				t.Errorf("recorded: %v", out.Recorded)
			}
			if got := <-headers; got.Get("Daybook-Callback") != "http://127.0.0.1:7070/api/v1/callbacks/renew:2026-10-26" || got.Get("Daybook-Token") != "token-of-7" {
				t.Errorf("got %v", got)
			}
			if c.fake.opened.Load() != 1 || c.fake.closed.Load() != 1 {
				t.Errorf("opened %d, closed %d", c.fake.opened.Load(), c.fake.closed.Load())
			}
		})
	}
	t.Run("nobody takes reports", func(t *testing.T) {
		t.Parallel()
		out := atNoon().Run(t.Context(), call(t, saying(t, answer(accepted, ""))))
		wantOutcome(t, out, daybook.ResultUnclear, "202", "nothing here takes its report")
	})
	t.Run("no report", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		fake := &callbacks{waiting: func() { cancel(daybook.ErrTimeout) }}
		h := atNoon()
		h.Callbacks = fake
		out := h.Run(ctx, call(t, saying(t, answer(accepted, ""))))
		wantOutcome(t, out, daybook.ResultUnknown, "timed out: 202, and no report came to the callback")
		if fake.closed.Load() != 1 || out.Recorded {
			t.Errorf("closed %d, recorded %v", fake.closed.Load(), out.Recorded)
		}
	})
	t.Run("no token can be made", func(t *testing.T) {
		t.Parallel()
		h := atNoon()
		h.Callbacks = &shut{}
		url, requests := notebook(t)
		wantOutcome(t, h.Run(t.Context(), call(t, url)), daybook.ResultNotDone, "read the secret of the ledger")
		if n := len(requests()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}
