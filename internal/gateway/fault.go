package gateway

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"
)

// FaultKind is a way in which the gateway, or the line to it, fails a caller.
type FaultKind string

// The faults. Those "before" never reach the gateway's books, those "after" have moved the money.
const (
	Slow          FaultKind = "slow"           // moves the money at once, answers after the delay
	Late          FaultKind = "late"           // moves the money only after the delay, even if the caller has gone
	Failure       FaultKind = "failure"        // begins, fails, moves nothing, answers 500 and saves that answer
	Unavailable   FaultKind = "unavailable"    // answers 503 before anything begins
	TimeoutBefore FaultKind = "timeout_before" // a proxy answers 504; nothing has begun
	TimeoutAfter  FaultKind = "timeout_after"  // a proxy answers 504; the money has moved
	ResetBefore   FaultKind = "reset_before"   // the connection is reset; nothing has begun
	ResetAfter    FaultKind = "reset_after"    // the connection is reset; the money has moved
)

var faultKinds = []FaultKind{Slow, Late, Failure, Unavailable, TimeoutBefore, TimeoutAfter, ResetBefore, ResetAfter}

// Fault is what POST /faults takes: which requests fail, and how. Faults are not in the book: a gateway that starts again
// has none. A request meets at most one of them, the oldest that fits.
type Fault struct {
	Kind     FaultKind `json:"fault"`
	Customer string    `json:"customer,omitempty"` // only requests for this one
	Request  int       `json:"request,omitempty"`  // only the n-th request: of the customer, if one is named, else of all
	Times    int       `json:"times,omitempty"`    // how many requests; default: 1; -1: all
	Delay    Duration  `json:"delay,omitempty"`    // in real time, before the answer
}

// Duration is written as in Go: "1.5s".
type Duration time.Duration

// UnmarshalJSON reads a duration.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// MarshalJSON writes a duration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

func (g *Gateway) postFault(w http.ResponseWriter, r *http.Request) {
	f := &Fault{Times: 1}
	if !decode(w, r, f) {
		return
	}
	if !slices.Contains(faultKinds, f.Kind) {
		send(w, invalid("no such fault: %q; there are %q", f.Kind, faultKinds))
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = append(g.faults, f)
	w.WriteHeader(http.StatusNoContent)
}

// deleteFaults ends them all: who waits for a slow answer gets it now.
func (g *Gateway) deleteFaults(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = nil
	close(g.over)
	g.over = make(chan struct{})
	w.WriteHeader(http.StatusNoContent)
}

// fault returns the fault that hits the request just recorded, and counts it. The caller holds mu.
func (g *Gateway) fault(customer string) *Fault {
	for _, f := range g.faults {
		if f.Times == 0 || f.Customer != "" && f.Customer != customer ||
			f.Request != 0 && f.Request != g.requests[f.Customer] {
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		return f
	}
	return nil
}

func (f *Fault) is(k FaultKind) bool { return f != nil && f.Kind == k }

// before reports whether the request does not get as far as the gateway.
func (f *Fault) before() bool {
	return f.is(Unavailable) || f.is(TimeoutBefore) || f.is(ResetBefore)
}

func (f *Fault) delay() time.Duration {
	if f == nil {
		return 0
	}
	return time.Duration(f.Delay)
}

// deliver gives the caller the answer, or what becomes of it on the way.
func (f *Fault) deliver(w http.ResponseWriter, a answer) {
	switch {
	case f.is(Unavailable):
		send(w, refusal(http.StatusServiceUnavailable, "api_error", "unavailable", "try again later"))
	case f.is(TimeoutBefore), f.is(TimeoutAfter):
		w.Header().Set("Content-Type", "text/html")
		w.Header().Del("Idempotent-Replayed")
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprintln(w, "<html><h1>504 Gateway Time-out</h1></html>")
	case f.is(ResetBefore), f.is(ResetAfter):
		reset(w)
	default:
		send(w, a)
	}
}

// reset breaks the connection off, so that the caller sees "connection reset" and no answer.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 and recorders: the closest there is
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // then it is an ordinary close
	}
	conn.Close()
}
