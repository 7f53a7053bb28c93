package outhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/daybook-run/daybook"
)

// Phase is what an exchange failed of.
type Phase string

// The phases. The first ones come before anything is sent; Ended may come at any time.
const (
	Invalid      Phase = "invalid request"
	Blocked      Phase = "address blocked"
	NameNotFound Phase = "name not found"
	Refused      Phase = "connection refused"
	Unreachable  Phase = "not connected" // no route, too many open files, closed before anything was written
	DialTimeout  Phase = "no connection in time"
	TLSFailed    Phase = "TLS failed"
	Ended        Phase = "ended" // the context was over; Err is its cause
	Reset        Phase = "connection reset"
	TimedOut     Phase = "connection timed out" // the system gave it up
	CutOff       Phase = "cut off"
	Garbled      Phase = "answer cannot be read"
)

// Failure is an exchange without a whole answer.
type Failure struct {
	Phase Phase
	Sent  bool   // bytes of the request may have reached the far side
	Host  string // that was called
	Err   error
}

func (f *Failure) Error() string {
	text := string(f.Phase)
	switch {
	case f.Phase == Ended && errors.Is(f.Err, context.DeadlineExceeded):
		return "timed out" + f.when()
	case f.Phase == Ended:
		return f.Err.Error() + f.when()
	case f.Phase == Blocked:
		text = ""
	case f.Sent && f.Phase != Garbled:
		text += f.when() + ": "
	default:
		text += ": "
	}
	if f.Host != "" && !strings.Contains(f.Err.Error(), f.Host) {
		text = f.Host + ": " + text
	}
	return text + f.Err.Error()
}

func (f *Failure) when() string {
	if f.Sent {
		return " after sending"
	}
	return " before sending"
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Result is what a failure says of the work that was asked for: nothing happened when nothing was sent; an answer that
// cannot be read leaves it unclear; else nobody reported.
func (f *Failure) Result() daybook.Result {
	switch {
	case f.Phase == Invalid:
		return daybook.ResultPermanent
	case !f.Sent:
		return daybook.ResultNotDone
	case f.Phase == Garbled:
		return daybook.ResultUnclear
	}
	return daybook.ResultUnknown
}

var errDialTimeout = errors.New("the far side did not take the connection")

// notConnected reads the error of a connection that was not made.
func notConnected(ctx context.Context, addr string, err error) *Failure {
	f := &Failure{Phase: Unreachable, Host: addr, Err: err}
	_, isName := errors.AsType[*net.DNSError](err)
	blocked, isBlocked := errors.AsType[*BlockedError](err)
	switch {
	case isBlocked:
		f.Phase, f.Err = Blocked, blocked
	case over(ctx):
		f.Phase, f.Err = Ended, context.Cause(ctx)
	case isName:
		f.Phase = NameNotFound
	case ctx.Err() != nil, isTimeout(err):
		f.Phase = DialTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Phase = Refused
	}
	return f
}

// notSecured reads the error of a handshake.
func notSecured(ctx context.Context, addr string, err error) *Failure {
	f := &Failure{Phase: TLSFailed, Host: addr, Err: err}
	switch {
	case over(ctx):
		f.Phase, f.Err = Ended, context.Cause(ctx)
	case ctx.Err() != nil:
		f.Phase = DialTimeout
	}
	return f
}

// over reports whether the context of a dial ended, and not merely the time for dialling.
func over(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errDialTimeout)
}

// failure reads the error of an exchange that had a connection, or of the dial within it.
func failure(ctx context.Context, host string, sent bool, err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok && !sent {
		return f
	}
	f := &Failure{Sent: sent, Host: host, Err: err}
	switch {
	case ctx.Err() != nil:
		f.Phase, f.Err = Ended, context.Cause(ctx)
	case !sent:
		f.Phase = Unreachable
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		f.Phase = Reset
	case isTimeout(err):
		f.Phase = TimedOut
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, errTwice), serverClosed(err):
		f.Phase = CutOff
	default:
		f.Phase = Garbled
	}
	return f
}

// isTimeout reports whether the system, or the dialer a moment before the context, gave up.
func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// serverClosed recognises what net/http does not export: the far side closed a kept connection.
func serverClosed(err error) bool {
	return strings.Contains(err.Error(), "server closed idle connection")
}
