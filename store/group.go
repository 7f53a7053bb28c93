package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// group lets many callers share a transaction, and with it one wait for the disk: what comes while one is under way is written
// together by the next. Who comes alone writes at once, by himself and as if there were no group; nobody waits for company, and
// nobody for longer than a moment because of a transaction that he came after.
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
	// patience is how long those wait for a transaction who came after it.
	patience time.Duration

	mu      sync.Mutex
	busy    bool         // a transaction is under way that others wait for
	waiting []*member[M] // for the next one
	next    *party[M]    // who wait, once there is a transaction that is about to take them

	under sync.WaitGroup
}

// member is one of several.
type member[M any] struct {
	what  M
	done  chan error
	party *party[M] // that he was taken into
}

// party is several whom one transaction writes.
type party[M any] struct {
	members []*member[M]
	taken   bool
	staying int         // those of them whose contexts last
	cancel  func()      // takes it back
	pass    func()      // has those written who came meanwhile
	late    *time.Timer // does so when their patience is over
}

// groupLimit is how many share a transaction at most: as many as ends of attempts do.
const groupLimit = 1000

// groupPatience is the patience of groups.
const groupPatience = time.Second

// lastWord is how long a transaction is waited for by whom it took before his context ended.
const lastWord = time.Second

// do has something written, and returns when it was, or what became of the transaction. When ctx is over it returns its error.
// what says what is written, for people.
func (g *group[M]) do(ctx context.Context, what string, one M) error {
	g.mu.Lock()
	if !g.busy {
		g.busy = true
		g.mu.Unlock()
		pass := g.passes(context.WithoutCancel(ctx))
		defer pass()
		defer time.AfterFunc(g.patience, pass).Stop()
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

// passes returns what has those written, once, who came during a transaction.
func (g *group[M]) passes(ctx context.Context) func() {
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.busy = len(g.waiting) > 0; g.busy {
			g.under.Go(func() { g.together(ctx) })
		}
	})
}

// together writes what waits.
func (g *group[M]) together(ctx context.Context) {
	p := &party[M]{pass: g.passes(ctx)}
	defer p.pass()
	ctx, p.cancel = context.WithCancel(ctx)
	defer p.cancel()
	g.mu.Lock()
	g.next = p
	g.mu.Unlock()
	err := g.written(ctx, p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.taken {
		p.late.Stop()
	} else if g.next = nil; ctx.Err() == nil { // it came to no transaction, for none of those who wait
		p.members, g.waiting = g.waiting, nil
	}
	for _, m := range p.members {
		m.done <- err
	}
}

// written has a party written. A panic is an error: who caused it meets it by himself, as he tries once more.
func (g *group[M]) written(ctx context.Context, p *party[M]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: panic: %v", g.what, v)
		}
	}()
	return g.write(ctx, g.what, func() []M { return g.take(ctx, p) })
}

// take returns who is written together now: as late as can be, for a transaction may have had to wait for its connection.
func (g *group[M]) take(ctx context.Context, p *party[M]) []M {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !p.taken && ctx.Err() == nil {
		n := min(len(g.waiting), groupLimit)
		p.taken, p.members, p.staying, g.waiting, g.next = true, g.waiting[:n:n], n, g.waiting[n:], nil
		p.late = time.AfterFunc(g.patience, p.pass)
	}
	all := make([]M, len(p.members))
	for i, m := range p.members {
		all[i], m.party = m.what, p
	}
	return all
}

// leave is for whose context is over. It reports whether he is gone, and nothing of his is written; else he was taken.
func (g *group[M]) leave(m *member[M]) (gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, m); i >= 0 {
		if g.waiting = slices.Delete(g.waiting, i, i+1); len(g.waiting) == 0 && g.next != nil {
			g.next.cancel()
		}
		return true
	}
	if p := m.party; p != nil {
		if p.staying--; p.staying == 0 {
			p.cancel()
		}
	}
	return false
}

// wait returns when no transaction is under way that no caller makes by himself.
func (g *group[M]) wait() { g.under.Wait() }
