package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/store"
)

// Times of the ear.
const (
	callWithin  = 5 * time.Second  // a call that was sent must be heard
	callEvery   = time.Minute      // so long nothing was heard: it calls itself
	deafFor     = 10 * time.Minute // until it is tried again where no call comes through
	listenPause = 100 * time.Millisecond
	listenMost  = 4 * time.Second // between two tries to listen
)

// ear hears the calls of other nodes, and looks whether calls come through at all: a pooler that gives each transaction
// another connection takes the LISTEN and delivers nothing. It wakes the executor, and nothing depends on it: the executor
// polls all the same.
type ear struct {
	listener daybook.Listener
	call     func(ctx context.Context) error // calls all nodes
	wake     func()
	log      *slog.Logger

	mu    sync.Mutex
	calls chan struct{} // one for each call that was heard; capacity 1
	state daybook.NodeCalls
}

func newEar(l daybook.Listener, call func(context.Context) error, wake func(), log *slog.Logger) *ear {
	return &ear{listener: l, call: call, wake: wake, log: log, calls: make(chan struct{}, 1)}
}

// State tells whether calls come through.
func (e *ear) State() daybook.NodeCalls {
	if e == nil {
		return daybook.CallsNone
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

// set notes the state and reports whether it changed.
func (e *ear) set(s daybook.NodeCalls) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.state
	e.state = s
	return was != s
}

// run listens until ctx is done, again and again.
func (e *ear) run(ctx context.Context) {
	pause := listenPause
	for ctx.Err() == nil {
		began, err := e.listen(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errDeaf):
			if e.set(daybook.CallsLost) {
				e.log.Warn("NOTIFY does not come through, as with a pooler in transaction mode: what other nodes make due is found by polling, within a second",
					"hint", "nothing is lost by it; a URL that leads past the pooler makes it faster")
			}
			pause = deafFor
		case began:
			pause = listenPause
			e.log.Info("the connection that listens was cut", "err", err)
		default:
			e.log.Debug("listen", "err", err, "retry_in", pause)
		}
		if !loop.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, listenMost)
	}
}

// errDeaf says that a call was sent and not heard.
var errDeaf = errors.New("a call was not heard")

// listen listens on one connection, until it breaks or no call comes through. began: it did listen.
func (e *ear) listen(ctx context.Context) (began bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watching sync.WaitGroup
	err = e.listener.Listen(ctx, store.Channel, func() {
		began = true
		e.wake() // who called before is not heard any more
		watching.Go(func() {
			if err := e.watch(ctx); err != nil {
				cancel(err)
			}
		})
	}, e.heard)
	cancel(nil)
	watching.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errDeaf) {
		return began, errDeaf
	}
	return began, err
}

func (e *ear) heard() {
	select {
	case e.calls <- struct{}{}:
	default:
	}
	e.wake()
}

// watch calls, and waits for that call or any other; then again when none came for a while. It returns errDeaf when a call
// that was sent is not heard.
func (e *ear) watch(ctx context.Context) error {
	for {
		select {
		case <-e.calls: // from an earlier connection
		default:
		}
		if err := e.call(ctx); err != nil {
			return err // the connection that listens is likely to have gone as well: both are made again
		}
		select {
		case <-e.calls:
		case <-time.After(callWithin):
			return errDeaf
		case <-ctx.Done():
			return nil
		}
		if e.set(daybook.CallsCome) {
			e.log.Info("calls of other nodes come through")
		}
		for quiet := false; !quiet; {
			select {
			case <-e.calls:
			case <-time.After(callEvery):
				quiet = true
			case <-ctx.Done():
				return nil
			}
		}
	}
}
