// Package outhttp is what every outgoing HTTP request of Daybook shares: one deadline for the whole exchange, a limit on
// the answer, no redirects, no proxy that nobody asked for, a guard over the addresses that are called, and an error that
// says whether anything was sent. A request is sent at most once: what net/http would repeat by itself fails instead. It
// decides nothing about what follows, keeps no clock and writes no log. The runner, the relay, the alert channels and the
// sources of the reconciliation call it.
package outhttp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// Defaults of Options.
const (
	DefaultMaxBytes    = 1 << 20
	DefaultMaxHeader   = 64 << 10
	DefaultDialTimeout = 30 * time.Second
)

// Options of New. The zero value is for calls of the operator's own services, each on a fresh connection.
type Options struct {
	Policy   Policy // which addresses may be called; default: Own
	MaxBytes int64  // of an answer's body that are read; default: DefaultMaxBytes
	// MaxHeader bounds the header of an answer, in bytes; default: DefaultMaxHeader.
	MaxHeader int64
	// Timeout bounds a whole exchange, from the look-up of the name to the last byte of the body. 0: the context alone
	// does.
	Timeout time.Duration
	// DialTimeout bounds what comes before the request: name, connection and TLS together; default: DefaultDialTimeout.
	DialTimeout time.Duration
	// Reuse keeps connections for the next request. Default: a fresh one each time, and closed at the end.
	Reuse bool
	// Proxy chooses a proxy, as http.ProxyFromEnvironment does. Nil: none, whatever the environment says. It hides the
	// address that is called and is refused with a Policy that looks at it.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS is what connections are made with. Nil: the defaults, with the system's authorities.
	TLS *tls.Config
}

// Client sends requests. It may be used by many at once.
type Client struct {
	o         Options
	transport *http.Transport
	// connect makes the plain connection.
	connect func(ctx context.Context, network, addr string) (net.Conn, error)
}

// New returns a client.
func New(o Options) *Client {
	o.Policy = cmp.Or(o.Policy, Own)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxHeader = cmp.Or(o.MaxHeader, DefaultMaxHeader)
	o.DialTimeout = cmp.Or(o.DialTimeout, DefaultDialTimeout)
	if o.Proxy != nil {
		// A proxied TLS connection cannot be watched byte by byte, so that a request on a kept one could be repeated.
		o.Reuse = false
	}
	c := &Client{o: o}
	c.connect = (&net.Dialer{Control: o.Policy.control}).DialContext
	c.transport = &http.Transport{
		Proxy:                  o.Proxy,
		DialContext:            c.dial,
		DialTLSContext:         c.dialTLS,
		TLSClientConfig:        o.TLS, // through a proxy only: dialTLS does the rest
		DisableKeepAlives:      !o.Reuse,
		DisableCompression:     true, // a small answer stays small
		MaxResponseHeaderBytes: o.MaxHeader,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		Protocols:              new(http.Protocols),
	}
	c.transport.Protocols.SetHTTP1(true) // HTTP/2 repeats requests by rules of its own
	return c
}

// Close closes the connections that are kept for the next request.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is what is sent.
type Request struct {
	Method string // default: GET
	URL    string
	Header http.Header // Host names the virtual host
	Body   []byte      // nil: none
	// Started, if not nil, is called once, right before the first byte of the request is written.
	Started func()
}

// Do sends a request, once, and reads its answer until its end, its limit or the end of ctx. Every error is a *Failure.
// An answer beside an error is what had arrived by then: its status is real, its body is a piece.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	if c.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Timeout)
		defer cancel()
	}
	ex := &exchange{ctx: ctx, started: r.Started}
	if !c.o.Reuse {
		defer ex.hangUp()
	}
	req, err := ex.request(r)
	if err != nil {
		return nil, &Failure{Phase: Invalid, Err: err}
	}
	if c.o.Proxy != nil && c.o.Policy != Own {
		return nil, &Failure{Phase: Blocked, Err: errors.New("a proxy would hide the address that is called")}
	}
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, failure(ctx, req.URL.Host, ex.seal(), err)
	}
	defer res.Body.Close()
	a := &Answer{Status: res.StatusCode, Line: res.Status, Proto: res.Proto, Header: res.Header}
	a.Body, err = io.ReadAll(io.LimitReader(res.Body, c.o.MaxBytes+1))
	if err != nil {
		return a, failure(ctx, req.URL.Host, true, err)
	}
	if int64(len(a.Body)) > c.o.MaxBytes {
		a.Body, a.Truncated = a.Body[:c.o.MaxBytes], true
	}
	return a, nil
}

// request makes the request of an exchange. Its errors do not name the URL, which may hold a secret.
func (ex *exchange) request(r Request) (*http.Request, error) {
	ctx := context.WithValue(ex.ctx, exchangeKey{}, ex)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: ex.gotConn})
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), r.URL, http.NoBody)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, err
	}
	if s := req.URL.Scheme; s != "http" && s != "https" || req.URL.Host == "" {
		return nil, errors.New("the URL is not http:// or https:// and a host")
	}
	req.Header = r.Header.Clone()
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	if u := req.URL.User; u != nil && req.Header.Get("Authorization") == "" {
		password, _ := u.Password()
		req.SetBasicAuth(u.Username(), password)
	}
	if len(r.Body) > 0 {
		// GetBody stays nil: what cannot be rewound cannot be repeated.
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	}
	return req, nil
}

// dial makes a connection for plain HTTP, or to a proxy.
func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	plain, err := c.connect(ctx, network, addr)
	if err != nil {
		return nil, notConnected(ctx, addr, err)
	}
	return watch(ctx, plain, plain), nil
}

// dialTLS makes a connection for HTTPS. The handshake is made here and not by net/http, so that only what is written
// after it counts as sent.
func (c *Client) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	plain, err := c.connect(ctx, network, addr)
	if err != nil {
		return nil, notConnected(ctx, addr, err)
	}
	config := new(tls.Config)
	if c.o.TLS != nil {
		config = c.o.TLS.Clone()
	}
	if config.ServerName == "" {
		host, _, _ := net.SplitHostPort(addr) // net/http has put it together
		config.ServerName = strings.TrimSuffix(host, ".")
	}
	config.NextProtos = []string{"http/1.1"}
	secure := tls.Client(plain, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, notSecured(ctx, addr, err)
	}
	return watch(ctx, secure, plain), nil
}

// bound gives a dial its limit in time. net/http takes the cancellation from the context of a dial, since another request
// could use the connection; a fresh one ends with its exchange.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if ex, ok := ctx.Value(exchangeKey{}).(*exchange); ok && !c.o.Reuse {
		ctx = context.WithValue(ex.ctx, exchangeKey{}, ex)
	}
	return context.WithTimeoutCause(ctx, c.o.DialTimeout, errDialTimeout)
}
