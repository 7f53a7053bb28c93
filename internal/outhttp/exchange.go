package outhttp

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// exchange is one request on its way. It is the witness of whether anything was sent: the trace of net/http tells that a
// header was written before it has left the buffer, and tells nothing of a write that a cancellation overtook, so the
// connection itself is asked.
type exchange struct {
	ctx     context.Context
	started func()

	mu     sync.Mutex
	on     any // the connection that the first byte was written to; nil: nothing was sent
	sealed bool
	conns  []net.Conn // made for this exchange
}

type exchangeKey struct{}

var (
	errSealed = errors.New("the exchange is over")
	errTwice  = errors.New("the request was sent already, on a connection that broke")
)

// gotConn binds the connection that net/http has chosen.
func (ex *exchange) gotConn(info httptrace.GotConnInfo) {
	if c, ok := info.Conn.(*conn); ok {
		c.ex.Store(ex)
		return
	}
	// TLS through a proxy. It cannot be watched, so it counts as sent before it is.
	_ = ex.sending(info.Conn)
}

// sending takes note that bytes of the request are about to be written, or refuses it: nothing is written once the
// exchange is over, and never on a second connection.
func (ex *exchange) sending(on any) error {
	ex.mu.Lock()
	first := ex.on == nil
	switch {
	case ex.sealed:
		ex.mu.Unlock()
		return errSealed
	case !first && ex.on != on:
		ex.mu.Unlock()
		return errTwice
	}
	ex.on = on
	ex.mu.Unlock()
	if first && ex.started != nil {
		ex.started()
	}
	return nil
}

// seal ends the exchange and reports whether anything was sent. What was not sent by then never will be.
func (ex *exchange) seal() (sent bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.sealed = true
	return ex.on != nil
}

// hangUp closes what was opened for the exchange. net/http would too, a little later.
func (ex *exchange) hangUp() {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.sealed = true
	for _, c := range ex.conns {
		c.Close()
	}
}

// conn is a connection that knows whose request it carries.
type conn struct {
	net.Conn
	ex atomic.Pointer[exchange]
}

// watch returns the connection of a dial as one that is watched. Plain is what lies below it.
func watch(ctx context.Context, c, plain net.Conn) net.Conn {
	if ex, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		ex.mu.Lock()
		ex.conns = append(ex.conns, plain)
		over := ex.sealed
		ex.mu.Unlock()
		if over { // hangUp came before
			plain.Close()
		}
	}
	return &conn{Conn: c}
}

// Write writes bytes of the request, if they may be written.
func (c *conn) Write(p []byte) (int, error) {
	if ex := c.ex.Load(); ex != nil {
		if err := ex.sending(c); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}
