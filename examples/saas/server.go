// Command server is a small shop to try Daybook on: it renews subscriptions, sends a digest, and takes alerts. What it did
// to the world stands in its books, one line of JSON each: book.jsonl, mails.jsonl, alerts.jsonl. Standard library only.
//
//	go run server.go
//
// It shows what a far side has to do so that nobody is charged twice: write down under the Idempotency-Key what it did,
// before it answers, and answer a key that it knows with that, and nothing else.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "address to listen on")
	dir := flag.String("dir", ".", "directory of the books")
	flag.Parse()
	if err := run(*addr, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr, dir string) error {
	s := &shop{}
	var err error
	if s.charges, err = open(filepath.Join(dir, "book.jsonl")); err != nil {
		return err
	}
	if s.mails, err = open(filepath.Join(dir, "mails.jsonl")); err != nil {
		return err
	}
	if s.alerts, err = open(filepath.Join(dir, "alerts.jsonl")); err != nil {
		return err
	}
	if err := os.MkdirAll("/tmp/acme", 0o755); err != nil { // the job cleanup empties it
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs/renew", s.renew)
	mux.HandleFunc("GET /jobs/renew/probe", s.probe)
	mux.HandleFunc("POST /jobs/digest", s.digest)
	mux.HandleFunc("POST /alerts", s.alert)
	mux.HandleFunc("POST /faults/{fault}", s.fail)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("shop on http://%s, books in %s\n", l.Addr(), dir)
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}

// shop is the far side.
type shop struct {
	charges, mails, alerts *book

	mu    sync.Mutex
	fault string // of the next renewal: lost, slow, declined, down
}

// renew charges what is due on a day, once for each key.
func (s *shop) renew(w http.ResponseWriter, r *http.Request) {
	job, key, ok := read(w, r)
	if !ok {
		return
	}
	fault := s.take()
	switch fault {
	case "down": // before anything began
		answer(w, http.StatusServiceUnavailable, map[string]any{"message": "the payment service is down"})
		return
	case "declined": // a definite no
		answer(w, http.StatusPaymentRequired, map[string]any{"message": "card_declined"})
		return
	}
	line, known, err := s.charges.once(entry{Key: key, Date: job.Date, Amount: 1500, Currency: "USD"})
	if err != nil {
		answer(w, http.StatusServiceUnavailable, map[string]any{"message": err.Error()})
		return
	}
	if known {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	switch fault {
	case "lost": // charged, and a proxy says that it does not know
		http.Error(w, "504 Gateway Time-out", http.StatusGatewayTimeout)
		return
	case "slow": // charged, and the answer takes its time
		select {
		case <-time.After(time.Minute):
		case <-r.Context().Done():
		}
	}
	answer(w, http.StatusOK, map[string]any{"outcome": "done", "effects": map[string]int{"charges": 1}, "amount": map[string]string{"USD": "15.00"}, "result": line})
}

// probe says whether a key was charged.
func (s *shop) probe(w http.ResponseWriter, r *http.Request) {
	if line, known := s.charges.find(r.URL.Query().Get("key")); known {
		answer(w, http.StatusOK, map[string]any{"answer": "yes", "result": line})
		return
	}
	answer(w, http.StatusOK, map[string]any{"answer": "no"})
}

// digest sends one mail a day. A key that it knows is done already, whenever it comes again.
func (s *shop) digest(w http.ResponseWriter, r *http.Request) {
	job, key, ok := read(w, r)
	if !ok {
		return
	}
	line, known, err := s.mails.once(entry{Key: key, Date: job.Date})
	switch {
	case err != nil:
		answer(w, http.StatusServiceUnavailable, map[string]any{"message": err.Error()})
	case known:
		answer(w, http.StatusOK, map[string]any{"outcome": "done", "message": "sent before, at " + line.Time})
	default:
		answer(w, http.StatusOK, map[string]any{"outcome": "done", "effects": map[string]int{"mails": 1}})
	}
}

// alert takes what Daybook tells. A real one checks the signature: webhook-id, webhook-timestamp, webhook-signature.
func (s *shop) alert(w http.ResponseWriter, r *http.Request) {
	var told struct {
		Type string
		Data struct{ Subject string }
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&told); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"message": err.Error()})
		return
	}
	if _, _, err := s.alerts.once(entry{Key: r.Header.Get("Webhook-Id"), Text: told.Data.Subject}); err != nil {
		answer(w, http.StatusServiceUnavailable, map[string]any{"message": err.Error()})
		return
	}
	fmt.Println("alert:", told.Data.Subject)
	w.WriteHeader(http.StatusNoContent)
}

// fail makes the next renewal fail: lost, slow, declined or down.
func (s *shop) fail(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = r.PathValue("fault")
	w.WriteHeader(http.StatusNoContent)
}

func (s *shop) take() (fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault, s.fault = s.fault, ""
	return fault
}

// order is the body of a job's request.
type order struct {
	Key  string `json:"key"`
	Date string `json:"date"`
}

func read(w http.ResponseWriter, r *http.Request) (job order, key string, ok bool) {
	key = r.Header.Get("Idempotency-Key")
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&job)
	if err == nil && key == "" {
		err = errors.New("the Idempotency-Key is missing")
	}
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"message": err.Error()})
	}
	return job, key, err == nil
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever asked may have gone
}

// entry is a line of a book.
type entry struct {
	Time     string `json:"time"`
	Key      string `json:"key"`
	Date     string `json:"date,omitempty"`
	Amount   int    `json:"amount,omitempty"`
	Currency string `json:"currency,omitempty"`
	Text     string `json:"text,omitempty"`
}

// book keeps what was done, by key, in a file.
type book struct {
	mu    sync.Mutex
	file  *os.File
	known map[string]entry
}

// open reads a book, so that a restart forgets nothing.
func open(path string) (*book, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	b := &book{file: f, known: map[string]entry{}}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			b.known[e.Key] = e
		}
	}
	return b, nil
}

func (b *book) find(key string) (entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.known[key]
	return e, ok
}

// once writes a line unless its key is known. It is on the disk before anybody is told.
func (b *book) once(e entry) (line entry, known bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if line, known = b.known[e.Key]; known {
		return line, true, nil
	}
	e.Time = time.Now().UTC().Format(time.RFC3339)
	text, err := json.Marshal(e)
	if err == nil {
		_, err = b.file.Write(append(text, '\n'))
	}
	if err == nil {
		err = b.file.Sync()
	}
	if err != nil {
		return e, false, err
	}
	b.known[e.Key] = e
	return e, false, nil
}
