package runner

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

var noon = time.Date(2026, 10, 26, 12, 0, 0, 0, time.UTC)

// atNoon is an HTTP whose clock stands still.
func atNoon() *HTTP { return &HTTP{Clock: func() time.Time { return noon }} }

// call returns an order that is sent to a URL.
func call(t *testing.T, url string) daybook.Order {
	t.Helper()
	o := order(t, "true")
	o.Job.Command = daybook.Command{}
	o.Job.HTTP = &daybook.HTTPCall{URL: url}
	o.Run.Input = json.RawMessage(`{"cents": 1500, "note": "<b>&"}`)
	return o
}

// listen starts a far side of plain connections. Each is closed when handle returns.
func listen(t *testing.T, handle func(c *net.TCPConn, r *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				handle(c.(*net.TCPConn), bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "http://" + l.Addr().String() + "/jobs/renew"
}

// swallow reads one request.
func swallow(r *bufio.Reader) {
	if req, err := http.ReadRequest(r); err == nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
}

// saying is a far side that reads each request and writes these bytes.
func saying(t *testing.T, text string) string {
	t.Helper()
	return listen(t, func(c *net.TCPConn, r *bufio.Reader) {
		swallow(r)
		_, _ = io.WriteString(c, text)
	})
}

// got is a request as it came.
type got struct {
	*http.Request
	body string
}

// notebook is a far side that writes down every request and answers 200.
func notebook(t *testing.T) (url string, requests func() []got) {
	t.Helper()
	var mu sync.Mutex
	var all []got
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, got{r, string(b)})
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() []got {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func wantOutcome(t *testing.T, out daybook.Outcome, result daybook.Result, parts ...string) {
	t.Helper()
	text := out.Error + "\n" + out.Detail
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in error and detail", part)
		}
	}
	if out.Result != result || t.Failed() {
		t.Fatalf("got %s, error %q, detail %q, output %q; want %s", out.Result, out.Error, out.Detail, daybook.Clip(out.Output.Text, 200), result)
	}
}
