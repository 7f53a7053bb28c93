package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/daybook-run/daybook"
)

// errMet says that another transaction changed what this one had read: it is done again from the start.
var errMet = errors.New("met another writer")

// writeTries bounds the retries of a transaction that met another writer.
const writeTries = 5

// A connection that was cut is replaced, and what was not committed is done again, after these pauses: 2.6 s in all. The
// first are short, for a pool may hold several dead connections, each of which fails once. Who meets a database that is
// away for longer hears of it: the loops come again by themselves, a person or a caller asks again.
var cutPauses = []time.Duration{0, 10 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond, time.Second}

// lostAnswer is a commit that was asked for and not answered: it may have taken place.
type lostAnswer struct{ error }

func (e lostAnswer) Unwrap() error { return e.error }

// proof reports whether an earlier try of a transaction was committed, by a row that no other transaction writes.
type proof func(ctx context.Context, t *tx) (bool, error)

// write runs do in one transaction, again from the start when the database says that another writer was first, or when the
// connection was cut before the commit. A commit whose answer was lost is done again as well, and must bear it: it compares
// before it writes. Where that would give another answer, provedWrite looks it up first.
func (s *Store) write(ctx context.Context, what string, do func(context.Context, *tx) error) error {
	return s.provedWrite(ctx, what, nil, do)
}

// provedWrite is write for a transaction that would not come to the same result when it is done twice. After a lost answer
// the proof is asked: when it says that the earlier try took place, what that try has found out is the result.
func (s *Store) provedWrite(ctx context.Context, what string, proof proof, do func(context.Context, *tx) error) error {
	lost := false // the answer of an earlier commit
	for met, cut := 1, 0; ; {
		err := s.once(ctx, func(ctx context.Context, t *tx) error {
			if lost && proof != nil {
				if done, err := proof(ctx, t); err != nil || done {
					return err
				}
			}
			return do(ctx, t)
		})
		if err == nil {
			return nil
		}
		lost = lost || errors.As(err, new(lostAnswer))
		again := errors.Is(err, errMet) || s.d.busy(err) || lost && s.d.unique(err) // or the earlier try, which committed just now
		switch {
		case again && met < writeTries && ctx.Err() == nil:
			met++
			continue
		case s.pauseAfter(ctx, err, cut):
			cut++
			continue
		case errors.Is(err, errMet):
			err = daybook.New(daybook.CodeStale, "others change the same rows all the time")
		}
		if err = s.fault(what, err); lost && daybook.CodeOf(err) == daybook.CodeUnavailable {
			err = unsureOf(err)
		}
		return err
	}
}

// once makes one transaction. A connection on which the server only lets read is not used again: it leads to a standby,
// or to what a primary has become.
func (s *Store) once(ctx context.Context, do func(context.Context, *tx) error) (err error) {
	if err := s.preparePending(ctx); err != nil {
		return err
	}
	c, err := s.db.Write.Conn(ctx)
	if err != nil {
		return err
	}
	t := &tx{s: s}
	defer func() { // after the connection was given back, for it may take one
		if t.called != nil {
			t.called(err == nil)
		}
	}()
	defer func() {
		if err != nil && s.d.readOnly(err) {
			_ = c.Raw(func(any) error { return driver.ErrBadConn })
		}
		if closed := c.Close(); err == nil && closed != nil && !errors.Is(closed, sql.ErrConnDone) {
			err = closed
		}
	}()
	if t.Tx, err = c.BeginTx(ctx, nil); err != nil {
		return err
	}
	defer func() { // also of one that panics: its connection would never come back
		err = errors.Join(err, ignoreDone(t.Rollback()))
	}()
	if err = do(ctx, t); err != nil {
		return err
	}
	if err = t.call(ctx); err != nil {
		return err
	}
	if err = t.Commit(); err != nil && s.d.cut(err) {
		return lostAnswer{err}
	}
	return err
}

// pauseAfter waits before the try that follows a number of tries with cut connections. False: there is none.
func (s *Store) pauseAfter(ctx context.Context, err error, try int) bool {
	if ctx.Err() != nil || try >= len(cutPauses) || !s.d.cut(err) && !s.d.readOnly(err) {
		return false
	}
	timer := time.NewTimer(cutPauses[try])
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// cutOff reports whether an error of a driver says that the connection is gone, or was never made.
func cutOff(err error) bool {
	var network net.Error
	var safe interface{ SafeToRetry() bool }
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &network):
		return true
	}
	return errors.As(err, &safe) && safe.SafeToRetry()
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// fault gives an error of the database its code. Errors that have one already keep it.
func (s *Store) fault(what string, err error) error {
	var e *daybook.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, err)
	}
	e = &daybook.Error{Code: daybook.CodeUnavailable, Message: what, Err: err}
	if do, ok := s.d.advice(err); ok {
		return e.WithHint("%s", do)
	}
	return e
}

// unsureOf adds to an error that the write may have taken place all the same.
func unsureOf(err error) error {
	return daybook.New(daybook.CodeUnavailable, "the connection broke while it was written: it may be in the ledger").Because(err).
		WithHint("ask again once the database answers: what is in the ledger is answered from there, and not done twice")
}
