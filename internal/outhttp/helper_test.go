package outhttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soon is a deadline that a test waits out; patient bounds what should not be waited for.
const (
	soon    = 250 * time.Millisecond
	patient = 10 * time.Second
)

// far is a server that does what a test says with each connection.
type far struct {
	url, addr string
	requests  atomic.Int32 // whole headers that were read
	gone      chan struct{}
}

// serve starts a far side. It closes a connection when handle returns.
func serve(t *testing.T, handle func(f *far, c *net.TCPConn)) *far {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &far{addr: l.Addr().String(), url: "http://" + l.Addr().String() + "/path?token=in-the-url", gone: make(chan struct{}, 100)}
	var all sync.WaitGroup
	var open sync.Map
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(c, true)
			all.Go(func() {
				defer c.Close()
				handle(f, c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Range(func(c, _ any) bool { return c.(net.Conn).Close() == nil || true })
		all.Wait()
	})
	return f
}

// read reads one request, body and all.
func (f *far) read(r *bufio.Reader) (*http.Request, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	f.requests.Add(1)
	_, err = io.Copy(io.Discard, req.Body)
	return req, err
}

// answer reads a request and writes these bytes.
func answer(text string) func(*far, *net.TCPConn) {
	return func(f *far, c *net.TCPConn) {
		if _, err := f.read(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, text)
		}
	}
}

// hold waits until the other side has closed the connection.
func (f *far) hold(c net.Conn) {
	_, _ = io.Copy(io.Discard, c)
	f.gone <- struct{}{}
}

func (f *far) waitGone(t *testing.T) {
	t.Helper()
	select {
	case <-f.gone:
	case <-time.After(patient):
		t.Fatal("the connection was not closed")
	}
}

func post(url string) Request {
	return Request{Method: "POST", URL: url, Header: http.Header{"Idempotency-Key": {"renew:2026-10-26"}}, Body: []byte(`{"key":"renew:2026-10-26"}`)}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func failed(t *testing.T, err error) *Failure {
	t.Helper()
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		t.Fatalf("got %v (%T), want a *Failure", err, err)
	}
	return f
}
