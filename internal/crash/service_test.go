package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// service is an operator's service in any language, which knows of Daybook only what it is told by HTTP: helper service ADDRESS. It
// does renewals in steps.
type service struct {
	mu   sync.Mutex
	busy map[string]int // renewals under way, by key
}

func (s *service) serve(address string) int {
	s.busy = make(map[string]int)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs/{job}", s.job)
	mux.HandleFunc("POST /undo", s.undo)
	mux.HandleFunc("GET /busy", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprint(w, s.busy[r.URL.Query().Get("key")])
	})
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return ended(err)
	}
	fmt.Fprintln(os.Stderr, "daybook serves nothing here: this is a service")
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience}
	return ended(srv.Serve(ln))
}

func (s *service) under(key string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[key] += n
}

// farAsk asks about a wire key; about mail nobody can tell.
func farAsk(wireKey string) (text, answer string) {
	a := &renewer{}
	text, said, err := a.ask(context.Background(), wireKey)
	if err != nil || said != daybook.Yes {
		text = "null"
	}
	return text, string(said)
}

// errStopped ends a renewal: with the status that says why.
type errStopped int

func (e errStopped) Error() string { return http.StatusText(int(e)) }

func (s *service) job(w http.ResponseWriter, r *http.Request) {
	var b struct{ Key, Job, Window string }
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.under(b.Key, 1)
	defer s.under(b.Key, -1)
	base, _, _ := strings.Cut(r.Header.Get("Daybook-Callback"), "/api/")
	a := &attempt{base: base + "/api/v1/steps/", token: r.Header.Get("Daybook-Token"), key: b.Key, asks: b.Job == "paid"}
	err := a.renew(b.Job, b.Window)
	status := errStopped(http.StatusInternalServerError)
	switch {
	case err == nil:
		status = http.StatusOK
	case errors.As(err, &status):
	}
	w.WriteHeader(int(status))
	fmt.Fprintln(w, `{}`)
}

// undo takes one effect back.
func (s *service) undo(w http.ResponseWriter, r *http.Request) {
	var b struct{ Key, Job, Window, Step string }
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, wireKey := &renewer{}, r.Header.Get("Idempotency-Key")
	var err error
	if b.Step == "mail" {
		_, err = a.call(b.Key, "sorry", "/sorry", wireKey, "")
	} else {
		var id string
		if id, err = chargeOn(b.Job, b.Window); err == nil {
			_, err = a.call(b.Key, "undo", "/refunds", wireKey, fmt.Sprintf(`{"charge":%q}`, id))
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, `{}`)
}

// attempt marks the steps of one attempt, by HTTP.
type attempt struct {
	base, token, key string
	asks             bool
}

// stepState is what the ledger says of a step.
type stepState struct {
	State   string          `json:"state"`
	WireKey string          `json:"wire_key"`
	Try     int             `json:"try"`
	Ask     []string        `json:"ask"`
	Result  json.RawMessage `json:"result"`
}

// tell makes one call about a step, under one Idempotency-Key, until it is answered.
func (a *attempt) tell(what string, body map[string]any) (st stepState, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return st, err
	}
	id := strconv.FormatUint(rand.Uint64(), 36)
	for deadline := time.Now().Add(patience / 2); ; time.Sleep(50 * time.Millisecond) {
		r, err := http.NewRequest(http.MethodPost, a.base+what, bytes.NewReader(text))
		if err != nil {
			return st, err
		}
		r.Header.Set("Daybook-Token", a.token)
		r.Header.Set("Idempotency-Key", id)
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			if time.Now().Before(deadline) {
				continue // nobody is there; somebody will be
			}
			return st, err
		}
		got, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		switch {
		case (err != nil || answer.StatusCode >= 500) && time.Now().Before(deadline):
			continue
		case err != nil:
			return st, err
		case answer.StatusCode != http.StatusOK:
			return st, fmt.Errorf("%s: %s %s", what, answer.Status, got)
		}
		return st, json.Unmarshal(got, &st)
	}
}

// renew is the work: a charge, a row, a mail.
func (a *attempt) renew(job, day string) error {
	far := &renewer{}
	passAt(a.key, "before-charge")
	err := a.effect("charge", a.asks, func(wireKey string) (string, error) {
		return far.call(a.key, "charge", "/charges", wireKey, fmt.Sprintf(`{"customer":%q,"day":%q,"amount":1500,"currency":"EUR"}`, job, day))
	})
	if err != nil {
		return err
	}
	passAt(a.key, "after-charge")
	st, err := a.tell("begin", map[string]any{"step": "extend"})
	if err == nil && st.State == "begun" {
		passAt(a.key, "extend-begun")
		_, err = a.tell("end", map[string]any{"step": "extend"})
	}
	if err != nil {
		return err
	}
	passAt(a.key, "after-extend")
	err = a.effect("mail", false, func(wireKey string) (string, error) { return far.call(a.key, "mail", "/mails", wireKey, "") })
	if err != nil {
		return err
	}
	passAt(a.key, "after-mail")
	return nil
}

// effect does one effect, unless it is done, or may not be done now.
func (a *attempt) effect(step string, asks bool, do func(wireKey string) (string, error)) error {
	st, err := a.tell("begin", map[string]any{"step": step, "effect": true, "asks": asks, "settles": "1s"})
	for err == nil {
		switch {
		case st.State == "done":
			return nil
		case st.State == "begun":
			text, failed := do(st.WireKey)
			end := map[string]any{"step": step, "effect": true, "try": st.Try, "outcome": daybook.OutcomeOf(failed).Result}
			if json.Valid([]byte(text)) {
				end["result"] = json.RawMessage(text)
			}
			st, err = a.tell("end", end)
		case len(st.Ask) > 0:
			asked, answers := time.Now().UTC(), []map[string]any{}
			for _, wireKey := range st.Ask {
				text, answer := farAsk(wireKey)
				answers = append(answers, map[string]any{"wire_key": wireKey, "answer": answer, "result": json.RawMessage(text)})
			}
			st, err = a.tell("found", map[string]any{"step": step, "asked_at": asked, "answers": answers})
		case st.State == "not_done":
			return errStopped(http.StatusServiceUnavailable)
		case st.State == "refused":
			return errStopped(http.StatusUnprocessableEntity)
		default:
			return errStopped(http.StatusInternalServerError)
		}
	}
	return err
}

// serviceJobs are renewals by that service.
const serviceJobs = `
  paid: {priority: P0, effects: once, window: day, steps: true, overlap: allow, http: {url: "SERVICE/jobs/paid"}, probe_url: FAR/probe, probe_undo: true, undo_url: SERVICE/undo,
    settles: 1s, retry: {backoff: [1s, 1s, 1s, 1s], jitter: 0%}}
  bare: {priority: P0, effects: once, window: day, steps: true, overlap: allow, http: {url: "SERVICE/jobs/bare"}, undo_url: SERVICE/undo,
    retry: {backoff: [1s, 1s, 1s, 1s], jitter: 0%}}
slots: {live: 64}
`

// A service that is called by HTTP and marks its steps by HTTP is killed wherever its work can be, or the daybook that called it, or
// both: each effect and each refund happens once, and a person is asked only about what nobody is left to know.
func TestAServiceIsKilledAtEveryBoundary(t *testing.T) {
	address := func() string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		return ln.Addr().String()
	}
	onBoth(t, strings.ReplaceAll(serviceJobs, "SERVICE", "http://HOST"), func(w *world) {
		host, listen := address(), address()
		b := newBoundaries(w)
		text, err := os.ReadFile(w.config)
		if err == nil { // who is killed cannot be asked: the probe is somebody else's
			err = os.WriteFile(w.config, []byte(strings.NewReplacer("HOST", host, "FAR", b.line.url).Replace(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		listening := func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, "--listen", listen) }
		var s *served
		start := func() {
			s = w.served(func(cmd *exec.Cmd) { cmd.Path, cmd.Args = w.me, []string{w.me, "service", host} })
			w.aside(s)
		}
		start()
		t.Cleanup(func() { w.kill(s, false) })
		b.busyElsewhere = func(key string) bool {
			answer, err := client.Get("http://" + host + "/busy?key=" + url.QueryEscape(strings.TrimSuffix(key, "~undo")))
			if err != nil {
				w.t.Fatal(err)
			}
			defer answer.Body.Close()
			n, err := io.ReadAll(answer.Body)
			return err != nil || string(n) != "0"
		}
		again := func() { w.kill(s, false); start() }
		charge, undo := []string{"charge-begun", "charge-sent", "charge-had"}, []string{"undo-begun", "undo-sent", "undo-had"}
		points := slices.Concat([]string{"asked", "ladder", "extend-begun", "mail-begun", "mail-sent", "mail-had"}, scriptPoints, charge, undo)
		b.killed([]victim{
			{name: "service", points: points, bare: slices.Concat(charge, undo), unknown: mail, also: again},
			{name: "serve", points: points, bare: slices.Concat(charge, undo), unknown: never, serves: true},
			{name: "all", points: points, bare: slices.Concat(charge, undo), unknown: mail, serves: true, also: again},
		}, listening)
	})
}
