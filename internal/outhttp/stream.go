package outhttp

import (
	"context"
	"errors"
	"io"
)

// Stream sends a request as Do does, and lets the body of the answer be read as it comes, without a limit. The body must be
// closed; ctx bounds it, and the Timeout of the client does not. A body that ends too early ends with an error.
func (c *Client) Stream(ctx context.Context, r Request) (*Answer, io.ReadCloser, error) {
	ex := &exchange{ctx: ctx, started: r.Started}
	req, err := ex.request(r)
	if err != nil {
		return nil, nil, &Failure{Phase: Invalid, Err: err}
	}
	if c.o.Proxy != nil && c.o.Policy != Own {
		return nil, nil, &Failure{Phase: Blocked, Err: errors.New("a proxy would hide the address that is called")}
	}
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		defer ex.hangUp()
		return nil, nil, failure(ctx, req.URL.Host, ex.seal(), err)
	}
	a := &Answer{Status: res.StatusCode, Line: res.Status, Proto: res.Proto, Header: res.Header}
	return a, &body{ReadCloser: res.Body, ctx: ctx, ex: ex, host: req.URL.Host, hangUp: !c.o.Reuse}, nil
}

// body is the body of an answer while it comes.
type body struct {
	io.ReadCloser
	ctx    context.Context
	ex     *exchange
	host   string
	hangUp bool
}

// Read tells an end that came too early from a whole one.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = failure(b.ctx, b.host, true, err)
	}
	return n, err
}

// Close ends the exchange.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	if b.hangUp {
		b.ex.hangUp()
	}
	return err
}
