// Package gateway is a payment service that is not real: the far side of the demo and of the crash tests.
//
// It behaves as payment services do. It saves its answers, refusals included, under the idempotency key of the caller,
// refuses a key that comes with other parameters, forgets keys after about a day, and can be told to fail in the ways
// that leave a caller without knowing whether money has moved. What it did stands in a book of its own, one line of
// JSON for each event, which is written before it answers and from which it goes on after a crash.
//
// It knows nothing of Daybook and imports nothing of it, so that its book is evidence. The command line starts it as a
// process of its own ([Main]); tests may also serve it themselves ([New]).
package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"
)

const (
	pathCharges = "/charges"
	pathRefunds = "/refunds"

	forgetDefault = 24 * time.Hour
	keyMax        = 255 // bytes, as with the services it stands for
	bodyMax       = 64 << 10
)

// Options of a gateway.
type Options struct {
	Book   string           // path of the book
	Forget time.Duration    // how long answers are saved under their key; default: 24 hours
	Now    func() time.Time // default: time.Now. POST /clock moves it
}

// Gateway is the service, an [http.Handler].
type Gateway struct {
	mux    *http.ServeMux
	forget time.Duration
	real   func() time.Time
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	clock    Line // the latest line of KindClock
	book     *book
	requests map[string]int // POST /charges and POST /refunds so far, by customer; "" counts all
	charges  []Line         // every line of KindCharge
	refunds  []Line
	keys     map[string]*saved
	bad      map[string]bool // customers whose cards are refused
	faults   []*Fault
	over     chan struct{} // closed when the faults so far are deleted
}

// saved is what the gateway remembers under a key.
type saved struct {
	params  string
	began   time.Time
	pending bool // the first request under the key is not answered yet
	answer  answer
}

// answer is what a caller gets.
type answer struct {
	status int
	body   any
}

// New opens the book and returns the gateway as it was when it last wrote there.
func New(o Options) (*Gateway, error) {
	g := &Gateway{
		mux: http.NewServeMux(), closed: make(chan struct{}), over: make(chan struct{}),
		forget: cmp.Or(o.Forget, forgetDefault), real: o.Now,
		requests: map[string]int{}, keys: map[string]*saved{}, bad: map[string]bool{},
	}
	if g.real == nil {
		g.real = time.Now
	}
	var lines []Line
	var err error
	if g.book, lines, err = openBook(o.Book); err != nil {
		return nil, err
	}
	for _, l := range lines {
		g.recall(l)
	}
	g.mux.HandleFunc("POST "+pathCharges, g.postCharge)
	g.mux.HandleFunc("GET "+pathCharges, func(w http.ResponseWriter, r *http.Request) { g.get(w, r, &g.charges) })
	g.mux.HandleFunc("POST "+pathRefunds, g.postRefund)
	g.mux.HandleFunc("GET "+pathRefunds, func(w http.ResponseWriter, r *http.Request) { g.get(w, r, &g.refunds) })
	g.mux.HandleFunc("POST /cards", g.postCard)
	g.mux.HandleFunc("POST /faults", g.postFault)
	g.mux.HandleFunc("DELETE /faults", g.deleteFaults)
	g.mux.HandleFunc("POST /clock", g.postClock)
	g.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return g, nil
}

// ServeHTTP answers one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// Close ends the waits of slow answers and closes the book.
func (g *Gateway) Close() error {
	g.once.Do(func() { close(g.closed) })
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.book.close()
}

// record writes a line into the book and remembers it. The caller holds mu.
func (g *Gateway) record(l Line) error {
	if err := g.book.write(l); err != nil {
		return err
	}
	g.recall(l)
	return nil
}

// recall makes a line of the book count.
func (g *Gateway) recall(l Line) {
	switch l.Kind {
	case KindRequest:
		g.requests[""]++
		g.requests[l.Customer]++
		return
	case KindCard:
		g.bad[l.Customer] = !l.OK
		return
	case KindClock:
		g.clock = l
		return
	case KindCharge:
		g.charges = append(g.charges, l)
	case KindRefund:
		g.refunds = append(g.refunds, l)
	}
	if l.Key != "" {
		g.keys[l.Key] = &saved{params: l.params(), began: l.Time, answer: l.answer()}
	}
}

// answer is what the caller was told, and is told again when the key comes again.
func (l Line) answer() answer {
	switch {
	case l.Kind == KindFailure:
		return refusal(http.StatusInternalServerError, "api_error", "internal", "something went wrong on our side")
	case l.Status == Declined:
		return refusal(http.StatusPaymentRequired, "card_error", "card_declined", "the card of %s was declined", l.Customer)
	default:
		return answer{http.StatusOK, l.public()}
	}
}

// params is what has to be the same when a key comes again.
func (l Line) params() string {
	if l.Charge != "" {
		return pathRefunds + " " + l.Charge // the rest follows from the charge
	}
	return fmt.Sprintf("%s %q %q %d %s", pathCharges, l.Customer, l.Day, l.Amount, l.Currency)
}

// now is the gateway's clock. The caller holds mu.
func (g *Gateway) now() time.Time {
	now := g.real().UTC().Round(0)
	if g.clock.Kind != "" {
		now = g.clock.Time.Add(time.Duration(float64(now.Sub(g.clock.Real)) * g.clock.Rate))
	}
	return now
}

// Charge is what a caller gets to see of a charge or a refund.
type Charge struct {
	ID       string    `json:"id"`
	Status   string    `json:"status"`
	Customer string    `json:"customer"`
	Day      string    `json:"day,omitempty"`
	Amount   int64     `json:"amount"`
	Currency string    `json:"currency"`
	Key      string    `json:"key,omitempty"`
	Charge   string    `json:"charge,omitempty"` // of a refund: what was given back
	Created  time.Time `json:"created"`
}

func (l Line) public() Charge {
	return Charge{l.ID, l.Status, l.Customer, l.Day, l.Amount, l.Currency, l.Key, l.Charge, l.Time}
}

// refusal makes the answer of an error.
func refusal(status int, kind, code, format string, args ...any) answer {
	type e struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	return answer{status, map[string]e{"error": {kind, code, fmt.Sprintf(format, args...)}}}
}

func invalid(format string, args ...any) answer {
	return refusal(http.StatusBadRequest, "invalid_request_error", "parameter_invalid", format, args...)
}

func send(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	json.NewEncoder(w).Encode(a.body) //nolint:errcheck // the caller has gone: nothing to do
}

var currency = regexp.MustCompile(`^[A-Za-z]{3}$`)

func (g *Gateway) postCharge(w http.ResponseWriter, r *http.Request) {
	var p struct {
		Customer string `json:"customer"`
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
		Day      string `json:"day"`
	}
	if !decode(w, r, &p) {
		return
	}
	switch {
	case p.Customer == "":
		send(w, invalid("customer is missing"))
		return
	case p.Amount <= 0:
		send(w, invalid("amount must be a whole number of minor units above zero"))
		return
	case !currency.MatchString(p.Currency):
		send(w, invalid("currency must have three letters"))
		return
	}
	g.handle(w, r, Line{Kind: KindCharge, Customer: p.Customer, Day: p.Day, Amount: p.Amount, Currency: p.Currency})
}

func (g *Gateway) postRefund(w http.ResponseWriter, r *http.Request) {
	var p struct {
		Charge string `json:"charge"`
	}
	if !decode(w, r, &p) {
		return
	}
	g.mu.Lock()
	var of *Line
	for i := range g.charges {
		if l := &g.charges[i]; l.ID == p.Charge && l.Status == Charged {
			of = l
		}
	}
	if of == nil {
		g.mu.Unlock()
		send(w, refusal(http.StatusNotFound, "invalid_request_error", "resource_missing", "no such charge: %q", p.Charge))
		return
	}
	l := *of
	g.mu.Unlock()
	l.Kind, l.Charge, l.ID, l.Status = KindRefund, p.Charge, "", ""
	g.handle(w, r, l)
}

// get answers a probe (?key=…: the one that moved money under this key, or 404), or lists what moved money (?customer=,
// ?day=).
func (g *Gateway) get(w http.ResponseWriter, r *http.Request, of *[]Line) {
	q := r.URL.Query()
	list := []Charge{}
	g.mu.Lock()
	for _, l := range *of {
		if l.Status == Declined || q.Has("key") && q.Get("key") != l.Key ||
			q.Has("customer") && q.Get("customer") != l.Customer || q.Has("day") && q.Get("day") != l.Day {
			continue
		}
		list = append(list, l.public())
	}
	g.mu.Unlock()
	switch {
	case !q.Has("key"):
		send(w, answer{http.StatusOK, map[string]any{"data": list}})
	case len(list) == 0:
		send(w, refusal(http.StatusNotFound, "invalid_request_error", "resource_missing", "nothing under key %q", q.Get("key")))
	default:
		send(w, answer{http.StatusOK, list[len(list)-1]})
	}
}

func (g *Gateway) postCard(w http.ResponseWriter, r *http.Request) {
	var p struct {
		Customer string `json:"customer"`
		OK       bool   `json:"ok"`
	}
	if !decode(w, r, &p) {
		return
	}
	if p.Customer == "" {
		send(w, invalid("customer is missing"))
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle(w, g.record(Line{Time: g.now(), Kind: KindCard, Customer: p.Customer, OK: p.OK}))
}

func (g *Gateway) postClock(w http.ResponseWriter, r *http.Request) {
	p := struct {
		Now  time.Time `json:"now"`
		Rate float64   `json:"rate"`
	}{Rate: 1}
	if !decode(w, r, &p) {
		return
	}
	if p.Now.IsZero() || p.Rate < 0 {
		send(w, invalid("now must be an instant, rate not below zero"))
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle(w, g.record(Line{Time: p.Now.UTC(), Kind: KindClock, Real: g.real().UTC().Round(0), Rate: p.Rate}))
}

// settle answers a request that has no result.
func (g *Gateway) settle(w http.ResponseWriter, err error) {
	if err != nil {
		send(w, refusal(http.StatusInternalServerError, "api_error", "book", "%v", err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// decode reads the body of a request. If it cannot, it has answered.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMax))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err != nil {
		send(w, invalid("the body is not the JSON expected here: %v", err))
		return false
	}
	return true
}
