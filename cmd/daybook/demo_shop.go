package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// demoShop is the shop's own service, which the job by HTTP calls: it passes the charge on to the gateway, under the key
// that it was given, and what the gateway answers back.
type demoShop struct {
	gateway string
	at      net.Listener
	server  *http.Server
	ended   chan error
}

// openShop starts the service of the shop.
func (d *demo) openShop(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &demoShop{gateway: d.address, at: l, ended: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs/invoice", s.charge)
	mux.HandleFunc("GET /jobs/invoice/probe", s.probe)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { s.ended <- s.server.Serve(l) }()
	d.shop = s
	return nil
}

func (s *demoShop) url(path string) string { return "http://" + s.at.Addr().String() + path }

// close ends the service. Nil was never opened.
func (s *demoShop) close() error {
	if s == nil {
		return nil
	}
	err := s.server.Close()
	if served := <-s.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// charge charges the client for the day of the request. The wire key goes along as it came: that is all it takes.
func (s *demoShop) charge(w http.ResponseWriter, r *http.Request) {
	var job struct {
		Date string `json:"date"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, daybook.MaxPayloadBytes)).Decode(&job); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body := fmt.Sprintf(`{"customer":%q,"day":%q,"amount":4900,"currency":"EUR"}`, demoClientOf, job.Date)
	status, said, err := s.ask(r.Context(), http.MethodPost, "/charges", r.Header.Get("Idempotency-Key"), body)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	case status == http.StatusOK:
		s.reply(w, map[string]any{"outcome": "done", "result": json.RawMessage(said)})
	default:
		w.WriteHeader(status)
		_, _ = w.Write(said) // whoever asked may have gone
	}
}

// probe asks the gateway whether it knows a wire key.
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

func (s *demoShop) reply(w http.ResponseWriter, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, answer) // whoever asked may have gone
}

// ask sends a request to the gateway.
func (s *demoShop) ask(ctx context.Context, method, path, key, body string) (status int, said []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.gateway+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := demoClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	said, err = io.ReadAll(io.LimitReader(answer.Body, daybook.MaxResultBytes))
	return answer.StatusCode, said, errors.Join(err, answer.Body.Close())
}
