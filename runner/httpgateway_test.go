package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// shop is the operator's service: its job charges at the gateway, on the very connection of the request, so that what
// the gateway does to a caller it does to us.
type shop struct {
	g    *gateway.Gateway
	url  string
	book string

	mu  sync.Mutex
	now time.Time
	// busy is held for reading by every request until the gateway has done with it, its caller gone or not.
	busy sync.RWMutex
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{book: filepath.Join(t.TempDir(), "book.jsonl"), now: noon}
	var err error
	if s.g, err = gateway.New(gateway.Options{Book: s.book, Now: s.clock}); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs/renew", s.renew)
	mux.HandleFunc("GET /jobs/renew/probe", s.probe)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { s.g.Close(); srv.Close() })
	s.url = srv.URL
	return s
}

func (s *shop) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shop) moveTo(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.now) {
		s.now = at
	}
}

// rest waits until nothing is under way at the gateway.
func (s *shop) rest() {
	s.busy.Lock()
	defer s.busy.Unlock() // to have had it is all that is wanted
}

func (s *shop) renew(w http.ResponseWriter, r *http.Request) {
	s.busy.RLock()
	defer s.busy.RUnlock()
	var b struct {
		Subject, Date string
		Payload       struct{ Cents int }
	}
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.g.ServeHTTP(w, s.to(r, "POST", "/charges", map[string]any{"customer": b.Subject, "day": b.Date, "amount": b.Payload.Cents, "currency": "EUR"}))
}

func (s *shop) probe(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	s.g.ServeHTTP(rec, s.to(r, "GET", "/charges?key="+percent(r.URL.Query().Get("key")), nil))
	switch rec.Code {
	case http.StatusOK:
		fmt.Fprintf(w, `{"answer":"yes","result":%s}`, rec.Body)
	case http.StatusNotFound:
		fmt.Fprint(w, `{"answer":"no"}`)
	default:
		http.Error(w, rec.Body.String(), rec.Code)
	}
}

// to is a request of the shop's to the gateway, under the idempotency key that it got.
func (s *shop) to(r *http.Request, method, url string, body any) *http.Request {
	text, _ := json.Marshal(body)
	out := httptest.NewRequestWithContext(r.Context(), method, url, bytes.NewReader(text))
	out.Header.Set("Idempotency-Key", r.Header.Get("Idempotency-Key"))
	return out
}

func (s *shop) tell(t *testing.T, path string, body any) {
	t.Helper()
	rec := httptest.NewRecorder()
	text, _ := json.Marshal(body)
	s.g.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "POST", path, bytes.NewReader(text)))
	if rec.Code != http.StatusNoContent {
		t.Fatalf("%s %s: %d %s", path, text, rec.Code, rec.Body)
	}
}

func (s *shop) charged(t *testing.T) int {
	t.Helper()
	tally, err := gateway.Count(s.book)
	if err != nil {
		t.Fatal(err)
	}
	return tally.Charges
}

// renewal is one run of an `effects: once` job, moved by the rules of the dictionary and nothing else.
type renewal struct {
	t     *testing.T
	s     *shop
	h     *HTTP
	job   *daybook.Job
	run   *daybook.Run
	slow  time.Duration // timeout of the first attempts
	story []string
	ids   int
}

func newRenewal(t *testing.T, s *shop, change func(*daybook.Job)) *renewal {
	job := &daybook.Job{Name: "renew", Effects: daybook.Once, Settles: daybook.DefaultSettles, HTTP: &daybook.HTTPCall{URL: s.url + "/jobs/renew"},
		Retry: daybook.Retry{Backoff: daybook.DefaultBackoff, Jitter: -1}}
	change(job)
	o := order(t, "true")
	run := o.Run
	run.State, run.Effects, run.Due, run.NotBefore, run.CreatedAt, run.Priority = daybook.Scheduled, daybook.Once, noon, noon, noon, daybook.P0
	run.Input = json.RawMessage(`{"cents":1500}`)
	return &renewal{t: t, s: s, h: &HTTP{Clock: s.clock}, job: job, run: run}
}

// live plays the run until it is done.
func (r *renewal) live() {
	r.t.Helper()
	for range 100 {
		switch {
		case r.run.State == daybook.Done:
			return
		case r.run.State == daybook.Dead:
			r.person()
		case r.run.Reason == daybook.ReasonSettling:
			r.ask()
		default:
			r.try()
		}
	}
	r.t.Fatalf("it does not end:\n%s", strings.Join(r.story, "\n"))
}

func (r *renewal) try() {
	r.s.moveTo(r.run.Due)
	now, p := r.s.clock(), r.job.Policy()
	r.run.State, r.run.Fence, r.run.Attempts = daybook.Running, r.run.Fence+1, r.run.Attempts+1
	e, ok := r.run.Begin(p, now)
	if !ok {
		r.apply(r.run.Unsettled(p, now))
		return
	}
	r.run.Effect, r.run.BegunAt = e, now
	o := daybook.Order{Run: r.run, Job: r.job, Attempt: r.run.Attempts, Fence: r.run.Fence, WireKey: r.run.WireKey()}
	limit := patient
	if r.run.Attempts <= 2 && r.slow > 0 {
		limit = r.slow
	}
	ctx, cancel := context.WithTimeoutCause(r.t.Context(), limit, daybook.ErrTimeout)
	defer cancel()
	out := r.h.Run(ctx, o)
	r.note("%s: %s (%s)", o.WireKey, out.Result, out.Error)
	if out.Result == daybook.ResultBusy {
		r.s.rest() // the minute that passes until it is asked again
	}
	r.apply(r.run.Next(out, p, r.s.clock()))
}

func (r *renewal) ask() {
	if r.run.Due.After(r.s.clock()) {
		r.s.rest() // settles is as long as anything can be under way
	}
	r.s.moveTo(r.run.Due)
	asked := r.s.clock()
	var found []daybook.Finding
	for g := r.run.Effect.Generation; g >= 1; g-- {
		wireKey := r.run.Key.WireKey(daybook.StepRun, g)
		f := r.h.Probe(r.t.Context(), daybook.Order{Run: r.run, Job: r.job, WireKey: wireKey}, wireKey)
		r.note("probe %s: %s %s", wireKey, f.Answer, f.Error)
		found = append(found, f)
	}
	r.apply(r.run.Settle(found, r.job.Policy(), asked, r.s.clock()))
}

// person looks into the book of the gateway, once it is at rest, and says what stands there.
func (r *renewal) person() {
	r.s.rest()
	r.s.moveTo(r.s.clock().Add(time.Hour))
	var m daybook.Transition
	var err error
	switch {
	case r.run.Letter.Kind != daybook.LetterUnknown:
		r.s.tell(r.t, "/cards", map[string]any{"customer": r.run.Subject, "ok": true}) // the customer has a new card
		m, err = r.run.Replay("ops", "looked", r.s.clock())
	case r.s.charged(r.t) > 0:
		m, err = r.run.Resolve(daybook.AsDone, r.job.Policy(), "ops", "in the book", r.s.clock())
	default:
		m, err = r.run.Resolve(daybook.AsNotDone, r.job.Policy(), "ops", "not in the book", r.s.clock())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.apply(m)
}

func (r *renewal) note(format string, args ...any) {
	r.story = append(r.story, fmt.Sprintf(format, args...))
}

func (r *renewal) apply(m daybook.Transition) {
	run := r.run
	r.note("  %s → %s %s", m.On, m.To, m.Reason)
	run.State, run.Reason, run.Failures, run.Losses, run.BegunAt = m.To, m.Reason, m.Failures, m.Losses, time.Time{}
	if m.To.Live() {
		run.Due = m.Due
	}
	for _, l := range []*daybook.Letter{m.Close, m.Letter} {
		if l != nil {
			letter := *l
			if letter.ID == "" {
				r.ids++
				letter.ID = fmt.Sprint("l", r.ids)
			}
			run.Letter = &letter
		}
	}
	if m.Effect != nil {
		e := *m.Effect
		run.Effect = &e
	}
}

var gatewayPolicies = map[string]func(*daybook.Job){
	"nothing":             func(*daybook.Job) {},
	"probe":               func(j *daybook.Job) { j.ProbeURL = strings.TrimSuffix(j.HTTP.URL, "/") + "/probe" },
	"memory":              func(j *daybook.Job) { j.Remembers = 24 * time.Hour },
	"probe and memory":    func(j *daybook.Job) { j.ProbeURL, j.Remembers = j.HTTP.URL+"/probe", 24*time.Hour },
	"memory for a moment": func(j *daybook.Job) { j.Remembers = daybook.MinRemembers },
}

var gatewayFaults = []gateway.FaultKind{gateway.Slow, gateway.Late, gateway.Failure, gateway.Unavailable, gateway.TimeoutBefore, gateway.TimeoutAfter,
	gateway.ResetBefore, gateway.ResetAfter, "declined", "refused"}

// Whatever the gateway and the line to it do, its book has the charge once.
func TestHTTPChargesOnce(t *testing.T) {
	t.Parallel()
	for name, policy := range gatewayPolicies {
		for _, first := range gatewayFaults {
			t.Run(name+"/"+string(first), func(t *testing.T) {
				t.Parallel()
				chargeOnce(t, policy, first)
			})
		}
	}
}

// The same with several faults one after another, chosen by seed.
func TestHTTPChargesOnceUnderManyFaults(t *testing.T) {
	t.Parallel()
	for name, policy := range gatewayPolicies {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seed, 7))
				faults := make([]gateway.FaultKind, 2+rng.IntN(4))
				for i := range faults {
					faults[i] = gatewayFaults[rng.IntN(len(gatewayFaults))]
				}
				chargeOnce(t, policy, faults...)
			})
		}
	}
}

func chargeOnce(t *testing.T, policy func(*daybook.Job), faults ...gateway.FaultKind) {
	t.Helper()
	s := newShop(t)
	r := newRenewal(t, s, policy)
	if slices.Contains(faults, "refused") {
		r.refuse()
	}
	for i, kind := range faults {
		switch kind {
		case "refused":
		case "declined": // until a person looks
			s.tell(t, "/cards", map[string]any{"customer": r.run.Subject, "ok": false})
		case gateway.Slow, gateway.Late:
			if i < 2 {
				r.slow = 30 * time.Millisecond
			}
			s.tell(t, "/faults", gateway.Fault{Kind: kind, Times: 1, Delay: gateway.Duration(70 * time.Millisecond)})
		default:
			s.tell(t, "/faults", gateway.Fault{Kind: kind, Times: 1})
		}
	}
	r.live()
	s.rest()
	tally, err := gateway.Count(s.book)
	if err != nil {
		t.Fatal(err)
	}
	if r.run.State != daybook.Done || tally.Charges != 1 || tally.Twice != 0 {
		t.Errorf("%v: %s, charged %d times in %d requests:\n%s", faults, r.run.State, tally.Charges, tally.Requests, strings.Join(r.story, "\n"))
	}
}

// refuse lets the first attempt find nobody.
func (r *renewal) refuse() {
	nobody := httptest.NewServer(nil)
	nobody.Close()
	there := r.job.HTTP.URL
	r.job.HTTP.URL = nobody.URL
	r.try()
	r.job.HTTP.URL = there
	if r.run.Reason != daybook.ReasonRetry || r.run.Effect.State != daybook.EffectNotDone {
		r.t.Errorf("nobody was there: %s, effect %s", r.run.Reason, r.run.Effect.State)
	}
}
