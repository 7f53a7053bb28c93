package outhttp

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer, line, body string
	}{
		"whole":             {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 OK", "hello"},
		"no reason":         {"HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n", "503 Service Unavailable", ""},
		"own reason":        {"HTTP/1.1 402 Card Declined\r\nContent-Length: 0\r\n\r\n", "402 Card Declined", ""},
		"HTTP/1.0":          {"HTTP/1.0 200 OK\r\n\r\nuntil the end", "200 OK", "until the end"},
		"chunks":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "200 OK", "abcde"},
		"twice":             {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirstHTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\nsecond", "200 OK", "first"},
		"too much":          {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", "200 OK", "he"},
		"early hints":       {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "200 OK", "x"},
		"odd status":        {"HTTP/1.1 799 Odd\r\nContent-Length: 0\r\n\r\n", "799 Odd", ""},
		"not UTF-8":         {"HTTP/1.1 200 \xff\r\nContent-Length: 2\r\n\r\n\xff\xfe", "200 \uFFFD", "\xff\xfe"},
		"never unzipped":    {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08", "200 OK", "\x1f\x8b\x08"},
		"a redirect is one": {"HTTP/1.1 307 Go\r\nLocation: http://169.254.169.254/x\r\nContent-Length: 0\r\n\r\n", "307 Go", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, answer(c.answer))
			started := 0
			r := post(f.url)
			r.Started = func() { started++ }
			a, err := New(Options{}).Do(within(t, patient), r)
			if err != nil {
				t.Fatal(err)
			}
			if a.StatusLine() != c.line || string(a.Body) != c.body || a.Truncated || started != 1 || f.requests.Load() != 1 {
				t.Errorf("got %q %q, truncated %v, started %d, requests %d", a.StatusLine(), a.Body, a.Truncated, started, f.requests.Load())
			}
		})
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String() + "/"
	closed.Close()
	reset := func(_ *far, c *net.TCPConn) { _ = c.SetLinger(0) }
	for name, c := range map[string]struct {
		url    string
		handle func(*far, *net.TCPConn)
		phase  Phase
		result daybook.Result
		status int
	}{
		"nobody listens":    {url: nobody, phase: Refused, result: daybook.ResultNotDone},
		"no such name":      {url: "http://" + strings.Repeat("a", 64) + ".example/", phase: NameNotFound, result: daybook.ResultNotDone},
		"no TLS there":      {url: "https:", handle: answer("HTTP/1.1 400 Bad\r\n\r\n"), phase: TLSFailed, result: daybook.ResultNotDone},
		"TLS is cut off":    {url: "https:", handle: func(*far, *net.TCPConn) {}, phase: TLSFailed, result: daybook.ResultNotDone},
		"TLS hangs":         {url: "https:", handle: func(f *far, c *net.TCPConn) { f.hold(c) }, phase: Ended, result: daybook.ResultNotDone},
		"no scheme":         {url: "127.0.0.1/x", phase: Invalid, result: daybook.ResultPermanent},
		"other scheme":      {url: "file:///etc/passwd", phase: Invalid, result: daybook.ResultPermanent},
		"no URL":            {url: "http://a b/", phase: Invalid, result: daybook.ResultPermanent},
		"hangs unread":      {handle: func(f *far, c *net.TCPConn) { <-f.gone }, phase: Ended, result: daybook.ResultUnknown},
		"hangs after":       {handle: func(f *far, c *net.TCPConn) { _, _ = f.read(bufio.NewReader(c)); f.hold(c) }, phase: Ended, result: daybook.ResultUnknown},
		"closes after":      {handle: answer(""), phase: CutOff, result: daybook.ResultUnknown},
		"resets after":      {handle: func(f *far, c *net.TCPConn) { answer("")(f, c); reset(f, c) }, phase: Reset, result: daybook.ResultUnknown},
		"half a header":     {handle: answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), phase: CutOff, result: daybook.ResultUnknown},
		"half a line":       {handle: answer("HTTP/1.1 200 OK\r\nContent-Le"), phase: Garbled, result: daybook.ResultUnclear},
		"half a body":       {handle: answer("HTTP/1.1 402 No\r\nContent-Length: 100\r\n\r\nhalf"), phase: CutOff, result: daybook.ResultUnknown, status: 402},
		"half a chunk":      {handle: answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"), phase: CutOff, result: daybook.ResultUnknown, status: 200},
		"no last chunk":     {handle: answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"), phase: CutOff, result: daybook.ResultUnknown, status: 200},
		"broken chunk":      {handle: answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"), phase: Garbled, result: daybook.ResultUnclear, status: 200},
		"stalls after head": {handle: func(f *far, c *net.TCPConn) { answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")(f, c); f.hold(c) }, phase: Ended, result: daybook.ResultUnknown, status: 200},
		"no HTTP":           {handle: answer("220 mail ready\r\n"), phase: Garbled, result: daybook.ResultUnclear},
		"two lengths":       {handle: answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), phase: Garbled, result: daybook.ResultUnclear},
		"huge header":       {handle: answer("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100_000) + "\r\n\r\n"), phase: Garbled, result: daybook.ResultUnclear},
		"endless hints": {handle: func(f *far, c *net.TCPConn) {
			_, _ = f.read(bufio.NewReader(c))
			for err := error(nil); err == nil; {
				_, err = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </"+strings.Repeat("a", 1000)+">\r\n\r\n")
			}
		}, phase: Garbled, result: daybook.ResultUnclear},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &far{}
			if c.handle != nil {
				f = serve(t, c.handle)
			}
			target := c.url
			switch target {
			case "":
				target = f.url
			case "https:":
				target = "https://" + f.addr + "/"
			}
			limit := patient
			if c.phase == Ended {
				limit = soon
			}
			a, err := New(Options{}).Do(within(t, limit), post(target))
			got := failed(t, err)
			if name == "hangs unread" {
				f.gone <- struct{}{}
			}
			sent := c.result == daybook.ResultUnknown || c.result == daybook.ResultUnclear
			if got.Phase != c.phase || got.Sent != sent || got.Result() != c.result {
				t.Errorf("got %q, sent %v, %s (%v); want %q, sent %v, %s", got.Phase, got.Sent, got.Result(), err, c.phase, sent, c.result)
			}
			if (a != nil) != (c.status != 0) || a != nil && a.Status != c.status {
				t.Errorf("answer %+v, want status %d", a, c.status)
			}
			if strings.Contains(err.Error(), "in-the-url") {
				t.Errorf("the error has the URL: %v", err)
			}
			if n := f.requests.Load(); n > 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// One deadline for the whole exchange, whatever it is that does not come.
func TestOneDeadline(t *testing.T) {
	t.Parallel()
	drip := func(head string) func(*far, *net.TCPConn) {
		return func(f *far, c *net.TCPConn) {
			_, _ = f.read(bufio.NewReader(c))
			_, err := io.WriteString(c, head)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for err == nil {
				<-tick.C
				_, err = io.WriteString(c, "x")
			}
			f.gone <- struct{}{}
		}
	}
	for name, handle := range map[string]func(*far, *net.TCPConn){
		"nothing":           func(f *far, c *net.TCPConn) { f.hold(c) },
		"a drip of headers": drip("HTTP/1.1 200 OK\r\nX-Drip: "),
		"a drip of body":    drip("HTTP/1.1 200 OK\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, handle)
			start := time.Now()
			_, err := New(Options{Timeout: soon}).Do(t.Context(), post(f.url))
			if got := failed(t, err); got.Phase != Ended || !got.Sent || err.Error() != "timed out after sending" {
				t.Errorf("got %v", err)
			}
			if d := time.Since(start); d < soon || d > patient {
				t.Errorf("took %s", d)
			}
			f.waitGone(t)
		})
	}
}

func TestTheCauseIsKept(t *testing.T) {
	t.Parallel()
	f := serve(t, func(f *far, c *net.TCPConn) { f.hold(c) })
	ctx, cancel := context.WithCancelCause(t.Context())
	r := post(f.url)
	r.Started = func() { cancel(daybook.ErrLeaseLost) }
	_, err := New(Options{}).Do(ctx, r)
	if got := failed(t, err); got.Phase != Ended || !errors.Is(got.Err, daybook.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
	_, err = New(Options{}).Do(ctx, post(f.url))
	if got := failed(t, err); got.Sent || err.Error() != "the lease was lost before sending" {
		t.Errorf("got %v", err)
	}
}

func TestDialTimeout(t *testing.T) {
	t.Parallel()
	f := serve(t, func(f *far, c *net.TCPConn) { f.hold(c) })
	_, err := New(Options{DialTimeout: soon}).Do(within(t, patient), post("https://"+f.addr+"/"))
	if got := failed(t, err); got.Phase != DialTimeout || got.Sent {
		t.Errorf("in the handshake: %v", err)
	}
	f.waitGone(t)

	c := New(Options{DialTimeout: soon})
	ended := make(chan error, 1)
	c.connect = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	_, err = c.Do(within(t, patient), post(f.url))
	if got := failed(t, err); got.Phase != DialTimeout || got.Sent {
		t.Errorf("before: %v", err)
	}
	<-ended

	// A dial does not outlive its exchange.
	ctx, cancel := context.WithCancel(t.Context())
	c.o.DialTimeout = time.Hour
	time.AfterFunc(soon, cancel)
	_, err = c.Do(ctx, post(f.url))
	if got := failed(t, err); got.Phase != Ended || got.Sent {
		t.Errorf("cancelled: %v", err)
	}
	select {
	case <-ended:
	case <-time.After(patient):
		t.Error("the dial goes on")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	const huge = 10 << 30
	sent := make(chan int64, 1)
	f := serve(t, func(f *far, c *net.TCPConn) {
		_, _ = f.read(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n")
		block := make([]byte, 1<<20)
		n, err := int64(0), error(nil)
		for n < huge && err == nil {
			var m int
			m, err = c.Write(block)
			n += int64(m)
		}
		sent <- n
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a, err := New(Options{MaxBytes: 1000}).Do(within(t, patient), post(f.url))
	if err != nil || !a.Truncated || len(a.Body) != 1000 {
		t.Fatalf("got %v, %d bytes", err, len(a.Body))
	}
	if n := <-sent; n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
	runtime.ReadMemStats(&after)
	if d := after.TotalAlloc - before.TotalAlloc; d > 64<<20 {
		t.Errorf("%d bytes were allocated", d)
	}

	exact := serve(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	if a, err := New(Options{MaxBytes: 5}).Do(within(t, patient), post(exact.url)); err != nil || a.Truncated || string(a.Body) != "hello" {
		t.Errorf("a body as long as the limit: %v, %+v", err, a)
	}
}

// keeper answers every request but the n-th, whose connection it closes once it has read it.
func keeper(n int32) func(*far, *net.TCPConn) {
	return func(f *far, c *net.TCPConn) {
		r := bufio.NewReader(c)
		for {
			if _, err := f.read(r); err != nil || f.requests.Load() == n {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}
}

// net/http sends a request again that has an Idempotency-Key and whose kept connection breaks: nobody would know that it
// went out twice. First that it does, so that this test sees it; then that nothing of ours does.
func TestNoHiddenSecondSend(t *testing.T) {
	t.Parallel()
	t.Run("net/http does it", func(t *testing.T) {
		t.Parallel()
		f := serve(t, keeper(2))
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for range 2 {
			req, err := http.NewRequestWithContext(within(t, patient), "POST", f.url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "renew:2026-10-26")
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		if n := f.requests.Load(); n != 3 {
			t.Errorf("two requests were sent %d times: this test would not see it", n)
		}
	})
	for name, o := range map[string]Options{"fresh connections": {}, "kept connections": {Reuse: true}} {
		for _, body := range []string{"{}", ""} {
			t.Run(name+" with body "+body, func(t *testing.T) {
				t.Parallel()
				f := serve(t, keeper(2))
				c := New(o)
				defer c.Close()
				r := post(f.url)
				r.Body = []byte(body)
				if _, err := c.Do(within(t, patient), r); err != nil {
					t.Fatal(err)
				}
				_, err := c.Do(within(t, patient), r)
				if got := failed(t, err); !got.Sent || got.Phase != CutOff || got.Result() != daybook.ResultUnknown {
					t.Errorf("got %v", err)
				}
				if n := f.requests.Load(); n != 2 {
					t.Errorf("two requests were sent %d times", n)
				}
				if a, err := c.Do(within(t, patient), r); err != nil || string(a.Body) != "ok" {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
	}
}

func TestReuse(t *testing.T) {
	t.Parallel()
	var conns atomic.Int32
	f := serve(t, func(f *far, c *net.TCPConn) { conns.Add(1); keeper(0)(f, c) })
	kept, fresh := New(Options{Reuse: true}), New(Options{})
	for i, c := range []*Client{kept, kept, kept, fresh, fresh} {
		if _, err := c.Do(within(t, patient), post(f.url)); err != nil {
			t.Fatal(i, err)
		}
	}
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections, want 1 kept and 2 fresh", n)
	}
	kept.Close()
}

// What is not sent when the exchange is over never is.
func TestSeal(t *testing.T) {
	t.Parallel()
	started := 0
	ex := &exchange{started: func() { started++ }}
	if ex.seal() {
		t.Error("sent, and nothing was written")
	}
	if err := ex.sending("a"); err == nil {
		t.Error("written after the end")
	}
	ex = &exchange{started: func() { started++ }}
	if first, again := ex.sending("a"), ex.sending("a"); first != nil || again != nil {
		t.Error("the first connection may go on writing")
	}
	if err := ex.sending("b"); err == nil || !ex.seal() || started != 1 {
		t.Errorf("a second connection: %v, started %d", err, started)
	}
	here, there := net.Pipe()
	defer there.Close()
	ex = &exchange{}
	ctx := context.WithValue(t.Context(), exchangeKey{}, ex)
	ex.hangUp()
	if _, err := watch(ctx, here, here).Read(make([]byte, 1)); err == nil {
		t.Error("a connection that came too late is open")
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.Header.Get("Authorization"))
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	_, err := New(Options{}).Do(within(t, patient), post(srv.URL))
	got := failed(t, err)
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok || got.Phase != TLSFailed || got.Sent {
		t.Errorf("a certificate nobody knows: %v, %v", err, unknown)
	}
	trust := srv.Client().Transport.(*http.Transport).TLSClientConfig
	a, err := New(Options{TLS: trust}).Do(within(t, patient), post(strings.Replace(srv.URL, "https://", "https://ops:pass@", 1)))
	if err != nil || string(a.Body) != "HTTP/1.1 Basic b3BzOnBhc3M=" {
		t.Errorf("got %v, %+v", err, a)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		got  *Failure
		want Phase
	}{
		"the system gave up the connection":      {failure(t.Context(), "", true, &net.OpError{Op: "read", Err: syscall.ETIMEDOUT}), TimedOut},
		"the system could not connect":           {notConnected(t.Context(), "", &net.OpError{Op: "dial", Err: syscall.ETIMEDOUT}), DialTimeout},
		"the dialer came before its context":     {notConnected(t.Context(), "", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), DialTimeout},
		"no route":                               {notConnected(t.Context(), "", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}), Unreachable},
		"closed before anything was written":     {failure(t.Context(), "", false, io.EOF), Unreachable},
		"the name server did not answer in time": {notConnected(t.Context(), "", &net.DNSError{IsTimeout: true}), NameNotFound},
	} {
		if c.got.Phase != c.want {
			t.Errorf("%s: got %q, want %q", name, c.got.Phase, c.want)
		}
	}
}

func TestProxy(t *testing.T) {
	f := serve(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain"))
	proxy := serve(t, answer("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"))
	at := &url.URL{Scheme: "http", Host: proxy.addr}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, at.String())
	}
	if a, err := New(Options{}).Do(within(t, patient), post("http://"+f.addr)); err != nil || string(a.Body) != "plain" {
		t.Errorf("the environment sends us to a proxy: %v", err)
	}
	o := Options{Proxy: http.ProxyURL(at), Reuse: true}
	if a, err := New(o).Do(within(t, patient), post("http://renew.example/")); err != nil || a.Status != 403 {
		t.Errorf("got %v", err)
	}
	// The proxy refuses the tunnel: the request itself was not sent.
	_, err := New(o).Do(within(t, patient), post("https://renew.example/"))
	if got := failed(t, err); got.Sent {
		t.Errorf("got %v", err)
	}
	o.Policy = Given
	_, err = New(o).Do(within(t, patient), post("http://renew.example/"))
	if got := failed(t, err); got.Phase != Blocked {
		t.Errorf("got %v", err)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	f := serve(t, func(f *far, c *net.TCPConn) {
		req, err := f.read(bufio.NewReader(c))
		if err == nil {
			got <- req
		}
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	h := http.Header{"Host": {"renew.example"}, "X-One": {"1"}}
	if _, err := New(Options{}).Do(within(t, patient), Request{Method: "POST", URL: f.url, Header: h}); err != nil {
		t.Fatal(err)
	}
	req := <-got
	if req.Host != "renew.example" || req.Header.Get("X-One") != "1" || req.Header.Get("Content-Length") != "0" || !req.Close ||
		req.Header.Get("Accept-Encoding") != "" || h.Get("Host") == "" {
		t.Errorf("got %+v", req)
	}
	if a, err := New(Options{}).Do(within(t, patient), Request{URL: f.url}); err != nil || a.Status != 204 || (<-got).Method != "GET" {
		t.Errorf("the default method: %v", err)
	}
}

// FuzzExchange lets a far side answer anything. There is an answer or a failure that says sent, never both wrong.
func FuzzExchange(f *testing.F) {
	for _, s := range []string{"", "HTTP/1.1 000 0\n\n0", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.0 200\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n", "HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 503 Busy\r\nRetry-After: 5\r\nContent-Type: application/json;;\r\nContent-Length: -1\r\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer there.Close()
			req, err := http.ReadRequest(bufio.NewReader(there))
			if err == nil {
				_, err = io.Copy(io.Discard, req.Body)
			}
			if err == nil {
				_, _ = there.Write(b)
			}
		}()
		c := New(Options{MaxBytes: 100, Timeout: patient})
		c.connect = func(context.Context, string, string) (net.Conn, error) { return here, nil }
		a, err := c.Do(t.Context(), post("http://renew.example/"))
		<-done
		switch {
		case err != nil:
			if got := failed(t, err); !got.Sent || got.Phase == Ended || got.Error() == "" {
				t.Fatalf("got %q, sent %v: %v", got.Phase, got.Sent, err)
			}
		case a == nil || len(a.Body) > 100 || a.Status < 0 || a.Status > 999:
			t.Fatalf("got %+v", a)
		default:
			_ = a.StatusLine() + a.MediaType()
		}
	})
}
