package pgtest

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between clients and a server and does to their connections what networks and poolers do.
type Proxy struct {
	address string // of the server
	url     string
	listen  net.Listener

	mu      sync.Mutex
	open    map[net.Conn]bool
	refuses bool

	deaf       atomic.Bool
	statements atomic.Int64
}

// Through returns a proxy in front of the server of a URL, which must not use TLS. It ends with the test.
func Through(t testing.TB, server string) *Proxy {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("pgtest: proxy: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgtest: proxy: %v", err)
	}
	p := &Proxy{address: u.Host, listen: l, open: map[net.Conn]bool{}}
	u.Host = l.Addr().String()
	p.url = u.String()
	var ended sync.WaitGroup
	ended.Go(func() { p.accept(&ended) })
	t.Cleanup(func() {
		_ = l.Close()
		p.Refuse(true)
		p.Cut()
		ended.Wait()
	})
	return p
}

// URL is the address of the database through the proxy.
func (p *Proxy) URL() string { return p.url }

// Cut closes all connections, without a word to either side, and returns how many there were.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.open)
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
	return n / 2
}

// Refuse makes new connections end at once, or lets them through again.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = on
}

// Deaf makes the proxy drop what NOTIFY brings, as a pooler in transaction mode does, or lets it through again.
func (p *Proxy) Deaf(on bool) { p.deaf.Store(on) }

// Statements counts the statements that were sent through it.
func (p *Proxy) Statements() int64 { return p.statements.Load() }

func (p *Proxy) accept(ended *sync.WaitGroup) {
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.address)
		if err != nil || !p.keep(client, server) {
			_ = client.Close()
			continue
		}
		both := func(copy func() error) {
			_ = copy()
			_ = client.Close()
			_ = server.Close()
			p.forget(client, server)
		}
		ended.Go(func() { both(func() error { return p.up(server, client) }) })
		ended.Go(func() { both(func() error { return p.down(client, server) }) })
	}
}

func (p *Proxy) keep(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		_ = server.Close()
		return false
	}
	p.open[client], p.open[server] = true, true
	return true
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.open, c)
	}
}

// up passes on what a client says. Its first message has no type.
func (p *Proxy) up(to io.Writer, from io.Reader) error {
	if err := pass(to, from, nil, nil); err != nil {
		return err
	}
	for {
		if err := pass(to, from, make([]byte, 1), func(kind byte) bool {
			if kind == 'Q' || kind == 'E' { // a simple query; the execution of a prepared one
				p.statements.Add(1)
			}
			return true
		}); err != nil {
			return err
		}
	}
}

// down passes on what the server says.
func (p *Proxy) down(to io.Writer, from io.Reader) error {
	for {
		if err := pass(to, from, make([]byte, 1), func(kind byte) bool { return kind != 'A' || !p.deaf.Load() }); err != nil {
			return err
		}
	}
}

// pass passes one message on: its type, if it has one, its length, and the rest.
func pass(to io.Writer, from io.Reader, kind []byte, wanted func(kind byte) bool) error {
	head := append(kind, 0, 0, 0, 0)
	if _, err := io.ReadFull(from, head); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[len(kind):])
	if n < 4 {
		return io.ErrUnexpectedEOF
	}
	message := append(head, make([]byte, n-4)...)
	if _, err := io.ReadFull(from, message[len(head):]); err != nil {
		return err
	}
	if wanted != nil && !wanted(message[0]) {
		return nil
	}
	_, err := to.Write(message)
	return err
}
