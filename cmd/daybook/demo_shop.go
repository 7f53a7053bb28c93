package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
)

// What the shop of the demo sells: each subscription is due each day, and costs the same.
const (
	demoDue   = 20
	demoCents = 1500
)

// newDemoShop is the shop's own service, as a process of its own: what Daybook calls by HTTP.
func newDemoShop(a *app) *cobra.Command {
	var far, book string
	cmd := &cobra.Command{
		Use: "demo-shop", Short: textDemoShop, Hidden: true, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demoShop(cmd.Context(), far, book) },
	}
	cmd.Flags().StringVar(&far, "gateway", "", "address of the gateway")
	cmd.Flags().StringVar(&book, "book", "", "file of what was extended")
	return cmd
}

// demoShop lists what is due, renews one subscription at a time in two steps (charge it, extend it), and tells what the
// gateway has of a wire key.
type demoShop struct {
	gateway string

	mu   sync.Mutex
	book *os.File
	held map[string]bool // subscriptions that are charged and wait to be extended
}

// demoShop serves until ctx ends, and says on stdout where.
func (a *app) demoShop(ctx context.Context, far, path string) error {
	book, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s := &demoShop{gateway: far, book: book, held: make(map[string]bool)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /due", s.due)
	mux.HandleFunc("POST /jobs/renew", s.renew)
	mux.HandleFunc("GET /jobs/renew/probe", s.probe)
	mux.HandleFunc("POST /hold", s.hold)
	mux.HandleFunc("POST /renew-all", s.renewAll)
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, book.Close())
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	fmt.Fprintf(a.Stdout, "listening on http://%s\n", ln.Addr())
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = server.Close()
		<-ended
	}
	return errors.Join(err, book.Close())
}

// subscriptions are those that are due on every day.
func subscriptions() (list []string) {
	for n := range demoDue {
		list = append(list, fmt.Sprintf("sub_%02d", n+1))
	}
	return list
}

// due is the listing: one line of JSON a subscription.
func (s *demoShop) due(w http.ResponseWriter, _ *http.Request) {
	for _, sub := range subscriptions() {
		_ = writeJSON(w, map[string]any{"subject": sub, "cents": demoCents}) // whoever asked may have gone
	}
}

// renewal is what Daybook asks for: one subscription and day.
type renewal struct {
	Key     daybook.Key `json:"key"`
	Subject string      `json:"subject"`
	Date    string      `json:"date"`
	Payload struct {
		Cents int `json:"cents"`
	} `json:"payload"`
}

// renew charges a subscription and extends it. What was done before is not done again: Daybook says so.
func (s *demoShop) renew(w http.ResponseWriter, r *http.Request) {
	var job renewal
	if err := json.NewDecoder(io.LimitReader(r.Body, daybook.MaxPayloadBytes)).Decode(&job); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	desk, err := deskOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if status, said := s.charge(r.Context(), desk, job); status != http.StatusOK {
		w.WriteHeader(status) // the gateway's own answer says how the attempt ended
		_, _ = w.Write(said)
		return
	}
	if err := s.extend(r.Context(), desk, job); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.reply(w, map[string]any{"outcome": "done", "effects": map[string]int{"charges": 1}})
}

// charge is the step that moves money. It returns what the gateway answered: 200 also when it was charged before.
func (s *demoShop) charge(ctx context.Context, desk shopDesk, job renewal) (status int, said []byte) {
	step, err := desk.begin(ctx, "charge", true)
	switch {
	case err != nil:
		return http.StatusInternalServerError, []byte(err.Error())
	case step.State == daybook.EffectDone:
		return http.StatusOK, nil
	case step.State != daybook.EffectBegun:
		return http.StatusInternalServerError, []byte(step.Message)
	}
	body := fmt.Sprintf(`{"customer":%q,"day":%q,"amount":%d,"currency":"EUR"}`, job.Subject, job.Date, job.Payload.Cents)
	status, said, err = s.ask(ctx, http.MethodPost, "/charges", step.WireKey, body)
	if err != nil {
		return http.StatusBadGateway, []byte(err.Error()) // nobody knows; the step stays begun, and Daybook asks
	}
	end := map[string]any{"step": "charge", "effect": true, "try": step.Try, "outcome": demoOutcome(status), "message": demoRefusal(status, said)}
	if status == http.StatusOK {
		end["result"] = json.RawMessage(said)
	}
	if _, err := desk.call(ctx, "end", end); err != nil {
		return http.StatusInternalServerError, []byte(err.Error())
	}
	return status, []byte(demoRefusal(status, said))
}

// demoOutcome says how a charge ended that the gateway answered with a status.
func demoOutcome(status int) daybook.Result {
	switch status {
	case http.StatusOK:
		return daybook.ResultDone
	case http.StatusPaymentRequired:
		return daybook.ResultPermanent
	case http.StatusServiceUnavailable:
		return daybook.ResultNotDone
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return daybook.ResultUnknown
	}
	return daybook.ResultUnclear
}

// demoRefusal is what the gateway says of a charge that it did not make.
func demoRefusal(status int, said []byte) string {
	var refused struct {
		Error struct{ Code, Message string }
	}
	switch {
	case status == http.StatusOK:
		return ""
	case json.Unmarshal(said, &refused) == nil && refused.Error.Code != "":
		return refused.Error.Code + ": " + refused.Error.Message
	}
	return http.StatusText(status)
}

// extend is the step in the shop's own book. It may be done again: it says until when, not how much longer.
func (s *demoShop) extend(ctx context.Context, desk shopDesk, job renewal) error {
	step, err := desk.begin(ctx, "extend", false)
	if err != nil || step.State == daybook.EffectDone {
		return err
	}
	s.mu.Lock()
	held := s.held[job.Subject]
	delete(s.held, job.Subject)
	s.mu.Unlock()
	if held {
		<-ctx.Done() // until who asked is gone
		return ctx.Err()
	}
	day, err := time.Parse(time.DateOnly, job.Date)
	if err != nil {
		return err
	}
	until := day.AddDate(0, 1, 0).Format(time.DateOnly)
	s.mu.Lock()
	err = writeJSON(s.book, map[string]any{"subscription": job.Subject, "paid_until": until, "key": job.Key})
	s.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = desk.call(ctx, "end", map[string]any{"step": "extend", "result": until})
	return err
}

// probe asks the gateway whether it has charged under a wire key.
func (s *demoShop) probe(w http.ResponseWriter, r *http.Request) {
	status, said, err := s.ask(r.Context(), http.MethodGet, "/charges?key="+url.QueryEscape(r.URL.Query().Get("key")), "", "")
	switch {
	case err == nil && status == http.StatusOK:
		s.reply(w, map[string]any{"answer": daybook.Yes, "result": json.RawMessage(said)})
	case err == nil && status == http.StatusNotFound:
		s.reply(w, map[string]any{"answer": daybook.No})
	default:
		s.reply(w, map[string]any{"answer": daybook.CannotTell})
	}
}

// hold makes the next renewal of a subscription stop between charged and extended.
func (s *demoShop) hold(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[r.URL.Query().Get("subscription")] = true
	w.WriteHeader(http.StatusNoContent)
}

// renewAll is the shop before it had keys: it charges everybody who is due, each time it is asked.
func (s *demoShop) renewAll(w http.ResponseWriter, r *http.Request) {
	for _, sub := range subscriptions() {
		body := fmt.Sprintf(`{"customer":%q,"day":%q,"amount":%d,"currency":"EUR"}`, sub, r.URL.Query().Get("date"), demoCents)
		if status, said, err := s.ask(r.Context(), http.MethodPost, "/charges", "", body); err != nil || status != http.StatusOK {
			http.Error(w, string(said), http.StatusBadGateway)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *demoShop) reply(w http.ResponseWriter, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, answer) // whoever asked may have gone
}

// ask sends a request to the gateway.
func (s *demoShop) ask(ctx context.Context, method, path, key, body string) (status int, said []byte, err error) {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return demoCall(ctx, method, s.gateway+path, header, []byte(body))
}

// shopDesk is where Daybook keeps the steps of one attempt: it came with the request.
type shopDesk struct{ base, token string }

func deskOf(r *http.Request) (shopDesk, error) {
	u, err := url.Parse(r.Header.Get("Daybook-Callback"))
	if err != nil || u.Host == "" {
		return shopDesk{}, errors.New("the header Daybook-Callback is missing")
	}
	return shopDesk{base: u.Scheme + "://" + u.Host, token: r.Header.Get("Daybook-Token")}, nil
}

// shopStep is what Daybook says of a step.
type shopStep struct {
	State   daybook.EffectState `json:"state"`
	WireKey string              `json:"wire_key"`
	Try     int                 `json:"try"`
	Message string              `json:"message"`
}

func (d shopDesk) begin(ctx context.Context, step string, effect bool) (shopStep, error) {
	return d.call(ctx, "begin", map[string]any{"step": step, "effect": effect})
}

func (d shopDesk) call(ctx context.Context, verb string, what map[string]any) (shopStep, error) {
	var s shopStep
	body, err := json.Marshal(what)
	if err != nil {
		return s, err
	}
	header := http.Header{"Daybook-Token": {d.token}, "Content-Type": {"application/json"}}
	status, said, err := demoCall(ctx, http.MethodPost, d.base+"/api/v1/steps/"+verb, header, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("steps/%s: %d: %s", verb, status, bytes.TrimSpace(said))
	}
	if err == nil {
		err = json.Unmarshal(said, &s)
	}
	return s, err
}

// demoCall makes one HTTP call of the demo.
func demoCall(ctx context.Context, method, target string, header http.Header, body []byte) (status int, said []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header = header
	answer, err := demoClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	said, err = io.ReadAll(io.LimitReader(answer.Body, daybook.MaxResultBytes))
	return answer.StatusCode, said, errors.Join(err, answer.Body.Close())
}

// demoClient makes the calls of the demo. A charge may be slow; whoever asks for it is ended from outside.
var demoClient = &http.Client{Timeout: 2 * time.Minute}
