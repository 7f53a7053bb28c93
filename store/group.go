package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// group lets many callers share a transaction, and with it one wait for the disk: what comes while one is under way is written
// together by the next. Who comes alone writes at once, by himself and as if there were no group; nobody waits for company.
//
// Each caller is answered after the commit, and not before. Whose context ends while he waits for his turn leaves, and nothing of
// his is written. Whose context ends later hears how it went; when that is not known in a moment he is told that his context ended,
// and it may have been written. A transaction of which nobody's context lasts is taken back.
type group[M any] struct {
	// write writes, in one transaction, what next returns. It asks inside the transaction, once in each try, and gets the same each
	// time; nothing, when everybody has left. One of several must not spoil it for the others: what cannot be written with them is
	// left out, and its caller finds out.
	write func(ctx context.Context, what string, next func() []M) error
	what  string // several write

	mu      sync.Mutex
	busy    bool         // a transaction is under way
	waiting []*member[M] // for the next one
	taken   bool         // the present one has its party
	party   []*member[M] // several whom it writes; none where one writes by himself
	staying int          // those of them whose contexts last
	cancel  func()       // takes it back

	under sync.WaitGroup
}

// member is one of several.
type member[M any] struct {
	what M
	done chan error
}

// groupLimit is how many share a transaction at most: as many as ends of attempts do.
const groupLimit = 1000

// lastWord is how long a transaction is waited for by whom it took before his context ended.
const lastWord = time.Second

// do has something written, and returns when it was, or what became of the transaction. When ctx is over it returns its error.
// what says what is written, for people.
func (g *group[M]) do(ctx context.Context, what string, one M) error {
	g.mu.Lock()
	if !g.busy {
		g.busy = true
		g.mu.Unlock()
		defer g.pass(ctx)
		return g.write(ctx, what, func() []M { return []M{one} })
	}
	m := &member[M]{what: one, done: make(chan error, 1)}
	g.waiting = append(g.waiting, m)
	g.mu.Unlock()
	select {
	case err := <-m.done:
		return err
	case <-ctx.Done():
	}
	if !g.leave(m) {
		select {
		case err := <-m.done:
			return err
		case <-time.After(lastWord):
		}
	}
	return fmt.Errorf("%s: %w", what, ctx.Err())
}

// pass has those written who came while one caller wrote by himself.
func (g *group[M]) pass(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy = len(g.waiting) > 0; g.busy {
		g.under.Go(func() {
			for g.together(context.WithoutCancel(ctx)) {
			}
		})
	}
}

// together writes what waits. More: others wait by now.
func (g *group[M]) together(ctx context.Context) (more bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.mu.Lock()
	g.cancel = cancel
	g.mu.Unlock()
	err := g.write(ctx, g.what, func() []M { return g.take(ctx) })
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.taken && ctx.Err() == nil { // it came to no transaction, for none of those who wait
		g.party, g.waiting = g.waiting, nil
	}
	for _, m := range g.party {
		m.done <- err
	}
	g.taken, g.party, g.staying, g.cancel = false, nil, 0, nil
	g.busy = len(g.waiting) > 0
	return g.busy
}

// take returns who is written together now: as late as can be, for a transaction may have had to wait for its connection.
func (g *group[M]) take(ctx context.Context) []M {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.taken && ctx.Err() == nil {
		n := min(len(g.waiting), groupLimit)
		g.taken, g.party, g.waiting, g.staying = true, g.waiting[:n:n], g.waiting[n:], n
	}
	all := make([]M, len(g.party))
	for i, m := range g.party {
		all[i] = m.what
	}
	return all
}

// leave is for whose context is over. It reports whether he is gone, and nothing of his is written; else he was taken.
func (g *group[M]) leave(m *member[M]) (gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, m); i >= 0 {
		g.waiting, gone = slices.Delete(g.waiting, i, i+1), true
	} else if slices.Contains(g.party, m) {
		g.staying--
	}
	if nobody := g.staying == 0 && (g.taken || len(g.waiting) == 0); nobody && g.cancel != nil {
		g.cancel()
	}
	return gone
}

// wait returns when no transaction is under way that no caller makes by himself.
func (g *group[M]) wait() { g.under.Wait() }
