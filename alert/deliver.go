package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// make makes claimed sends beside each other and records how each ended. One that ctx cut off is not recorded: nobody
// knows whether it was made, and it is made again once its lease is over.
func (s *Sender) make(ctx context.Context, sends []notice.Send, now time.Time) error {
	ends := make([]error, len(sends))
	var all sync.WaitGroup
	for i, m := range sends {
		all.Go(func() { ends[i] = s.one(ctx, m, now) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, m := range sends {
		if err := s.record(ctx, m, ends[i], now); err != nil {
			return err
		}
	}
	return nil
}

// one makes one send.
func (s *Sender) one(ctx context.Context, m notice.Send, now time.Time) error {
	c, ok := s.channels[m.Channel]
	switch {
	case !ok:
		return daybook.Permanent(fmt.Errorf("channel %s is not defined any more", m.Channel))
	case m.Tries > triesMax:
		return daybook.Permanent(fmt.Errorf("given up: %d tries ended without a word", m.Tries-m.Failures-1))
	}
	return s.masked(deliver(ctx, c.Channel, m, now))
}

// masked keeps secrets out of an error and its kind in it: a URL with a token in it is what errors of channels quote.
func (s *Sender) masked(err error) error {
	if err == nil {
		return nil
	}
	text := daybook.Clip(oneLine(daybook.Mask(err.Error(), s.o.Secrets())), daybook.MaxErrorBytes)
	return &sendError{text: text, err: err}
}

type sendError struct {
	text string
	err  error
}

func (e *sendError) Error() string { return e.text }
func (e *sendError) Unwrap() error { return e.err }

// deliver hands a send to its channel. A panic in it is an error of that channel only.
func deliver(ctx context.Context, c Channel, m notice.Send, now time.Time) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	msg := Message{Send: m, Now: now}
	if err := json.Unmarshal([]byte(m.Data), &msg.Details); err != nil {
		return daybook.Permanent(fmt.Errorf("the stored text cannot be read: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, maxTimeout) // whatever the channel's own limit is
	defer cancel()
	return c.Send(ctx, msg)
}

// record writes how a send ended. A failure puts it on the ladder, and the text goes to the fallback: for P0 at the first
// failure, because one text too many does no harm, else when the send is given up.
func (s *Sender) record(ctx context.Context, m notice.Send, end error, now time.Time) error {
	if end == nil {
		m.State, m.EndedAt, m.Error = notice.SendDone, now, ""
		_, err := s.store.MarkSend(ctx, m, nil)
		return err
	}
	m.Failures++
	m.Error = end.Error()
	o := daybook.OutcomeOf(end)
	due, again := ladder(m.Failures, o.RetryAfter, now)
	if again = again && o.Result != daybook.ResultPermanent && daybook.CodeOf(end) != daybook.CodeInvalid; again {
		m.State, m.Due = notice.SendDue, due
	} else {
		m.State, m.EndedAt = notice.SendFailed, now
	}
	s.o.Log.Warn("an alert was not sent", "send", m.Key, "again", again, "err", m.Error)
	instead, err := s.instead(ctx, m, again, now)
	if err != nil {
		return err
	}
	_, err = s.store.MarkSend(ctx, m, instead)
	return err
}

// instead is what the fallback channels are told in place of a send that failed. What failed on a fallback goes nowhere
// else; its row stays.
func (s *Sender) instead(ctx context.Context, m notice.Send, again bool, now time.Time) ([]notice.Send, error) {
	if m.Via != "" || len(s.o.Fallback) == 0 {
		return nil, nil
	}
	number, round := ofKey(m.Key)
	r, err := s.store.AlertRow(ctx, number)
	if err != nil {
		return nil, err
	}
	if again && (r.Priority != daybook.P0 || m.Failures > 1) || m.Purpose != notice.Recovered && !r.ClosedAt.IsZero() {
		return nil, nil
	}
	f, err := s.facts(ctx, r, now)
	if err != nil {
		return nil, err
	}
	f.Purpose, f.Round, f.Via = m.Purpose, round, m.Channel
	var list []notice.Send
	for _, name := range s.o.Fallback {
		if name != m.Channel {
			list = append(list, s.send(r, f, name)) // one that has this round of the alert already gets nothing twice: its key
		}
	}
	return list, nil
}

// ofKey is the inverse of notice.SendKey, as far as it is needed.
func ofKey(key string) (number int64, round int) {
	id, _, _ := strings.Cut(key, "/")
	round, _ = strconv.Atoi(key[strings.LastIndexByte(key, '/')+1:])
	return notice.ParseID(id), round
}
