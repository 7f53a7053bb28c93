package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// handle does what a request asks for, once for each key. The line says what is asked; it has no time and no id yet.
func (g *Gateway) handle(w http.ResponseWriter, r *http.Request, want Line) {
	want.Key = r.Header.Get("Idempotency-Key")
	if len(want.Key) > keyMax {
		send(w, invalid("the idempotency key is longer than %d bytes", keyMax))
		return
	}
	f, err := g.arrived(r.URL.Path, want)
	if err != nil {
		g.settle(w, err)
		return
	}
	if f.before() {
		// It never got past the front door: nothing begins and nothing is saved.
		g.sleep(f.delay())
		f.deliver(w, answer{})
		return
	}
	s, a, begun := g.begin(want)
	if !begun {
		g.sleep(f.delay())
		if s != nil {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		f.deliver(w, a)
		return
	}
	// What follows happens whether or not the caller is still there.
	if f.is(Late) {
		g.sleep(f.delay())
	}
	a = g.execute(want, f.is(Failure))
	if !f.is(Late) {
		g.sleep(f.delay())
	}
	g.ended(want.Key)
	f.deliver(w, a)
}

// arrived records a request and returns the fault that hits it, nil if there is none.
func (g *Gateway) arrived(path string, want Line) (*Fault, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := want
	l.Time, l.Kind, l.Path, l.Request = g.now(), KindRequest, path, g.requests[""]+1
	if err := g.record(l); err != nil {
		return nil, err
	}
	return g.fault(want.Customer), nil
}

// begin starts the work under a key, or says why there is nothing to start: s is what is saved under the key, if the
// answer is that.
func (g *Gateway) begin(want Line) (s *saved, a answer, begun bool) {
	if want.Key == "" {
		return nil, answer{}, true // without a key every request is a new one
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	s = g.keys[want.Key]
	if s != nil && !s.pending && now.Sub(s.began) >= g.forget {
		delete(g.keys, want.Key)
		s = nil
	}
	switch {
	case s == nil:
		g.keys[want.Key] = &saved{params: want.params(), began: now, pending: true}
		return nil, answer{}, true
	case s.params != want.params():
		return nil, refusal(http.StatusBadRequest, "idempotency_error", "idempotency_key_reused",
			"the key %q was used with other parameters", want.Key), false
	case s.pending:
		return nil, refusal(http.StatusConflict, "idempotency_error", "idempotency_key_in_use",
			"a request with the key %q is in progress", want.Key), false
	default:
		return s, s.answer, false
	}
}

// execute moves the money, or does not, writes that down, and returns what the caller is to be told.
func (g *Gateway) execute(l Line, fail bool) answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.Time = g.now()
	switch {
	case fail:
		l.Kind = KindFailure
	case l.Kind == KindRefund:
		if slices.ContainsFunc(g.refunds, func(r Line) bool { return r.Charge == l.Charge }) {
			delete(g.keys, l.Key)
			return refusal(http.StatusBadRequest, "invalid_request_error", "charge_already_refunded", "%s is refunded already", l.Charge)
		}
		l.ID, l.Status = fmt.Sprintf("re_%03d", len(g.refunds)+1), Refunded
	case g.bad[l.Customer]:
		l.ID, l.Status = fmt.Sprintf("ch_%03d", len(g.charges)+1), Declined
	default:
		l.ID, l.Status = fmt.Sprintf("ch_%03d", len(g.charges)+1), Charged
	}
	if err := g.record(l); err != nil {
		delete(g.keys, l.Key)
		return refusal(http.StatusInternalServerError, "api_error", "book", "%v", err)
	}
	if s := g.keys[l.Key]; s != nil {
		s.pending = true // until it is answered
	}
	return l.answer()
}

// ended frees a key after its first request.
func (g *Gateway) ended(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.keys[key]; s != nil {
		s.pending = false
	}
}

// sleep waits for d of real time, or until the faults are deleted, or the gateway is closed.
func (g *Gateway) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	g.mu.Lock()
	over := g.over
	g.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	case <-g.closed:
	}
}
