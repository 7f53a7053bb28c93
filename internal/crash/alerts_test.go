package crash

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
	"github.com/daybook-run/daybook/internal/outhttp"
)

// shop is an operator's service: an HTTP job charges at the gateway, on the very connection of the request, so that what
// the gateway does to a caller it does to us.
type shop struct {
	g    *gateway.Gateway
	url  string
	book string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{book: filepath.Join(t.TempDir(), "book.jsonl")}
	var err error
	if s.g, err = gateway.New(gateway.Options{Book: s.book}); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /renew/{customer}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+shopToken {
			http.Error(w, "who is this? "+r.Header.Get("Authorization"), http.StatusForbidden)
			return
		}
		var b struct{ Date string }
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.g.ServeHTTP(w, s.to(r, "POST", "/charges", fmt.Sprintf(`{"customer":%q,"day":%q,"amount":1500,"currency":"EUR"}`, r.PathValue("customer"), b.Date)))
	})
	mux.HandleFunc("GET /probe", func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		ask := s.to(r, "GET", "/charges", "")
		ask.URL.RawQuery = "key=" + strings.ReplaceAll(r.URL.Query().Get("key"), "#", "%23")
		s.g.ServeHTTP(rec, ask)
		switch rec.Code {
		case http.StatusOK:
			fmt.Fprintf(w, `{"answer":"yes","result":%s}`, rec.Body)
		case http.StatusNotFound:
			fmt.Fprint(w, `{"answer":"no"}`)
		default:
			http.Error(w, rec.Body.String(), rec.Code)
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { _ = s.g.Close(); srv.Close() })
	s.url = srv.URL
	return s
}

const (
	shopToken  = "tok-en-4711"
	hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// to is a request of the shop's to the gateway, under the idempotency key that it got.
func (s *shop) to(r *http.Request, method, url, body string) *http.Request {
	out := httptest.NewRequestWithContext(r.Context(), method, url, strings.NewReader(body))
	out.Header.Set("Idempotency-Key", r.Header.Get("Idempotency-Key"))
	return out
}

func (s *shop) tell(t *testing.T, path, body string) {
	t.Helper()
	rec := httptest.NewRecorder()
	s.g.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body)))
	if rec.Code != http.StatusNoContent {
		t.Fatalf("%s %s: %d %s", path, body, rec.Code, rec.Body)
	}
}

// told is one message that a receiver of webhooks got.
type told struct {
	at   time.Time
	id   string
	Type string
	Data struct {
		ID, Send, Key, Error, Purpose, Text string
	}
}

// receiver takes webhooks, and refuses what is not signed.
type receiver struct {
	url string
	mu  sync.Mutex
	all []told
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		m := told{at: time.Now(), id: q.Header.Get("webhook-id")}
		if err != nil || json.Unmarshal(body, &m) != nil {
			http.Error(w, "not read", http.StatusBadRequest)
			return
		}
		again := http.Header{}
		var seconds int64
		if _, err := fmt.Sscan(q.Header.Get("webhook-timestamp"), &seconds); err != nil ||
			outhttp.Sign(again, hookSecret, m.id, time.Unix(seconds, 0), body) != nil || again.Get("webhook-signature") != q.Header.Get("webhook-signature") {
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, m)
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

// of returns what was told about a key, in the order in which it came.
func (r *receiver) of(key string) (list []told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.all {
		if m.Data.Key == key {
			list = append(list, m)
		}
	}
	return list
}

// configure adds to the file of a world who is told, and where the secrets are.
func configure(t *testing.T, w *world, r *receiver) {
	t.Helper()
	hook, token := filepath.Join(w.dir, "hook.secret"), filepath.Join(w.dir, "shop.secret")
	text, err := os.ReadFile(w.config)
	if err == nil {
		text = []byte(strings.ReplaceAll(string(text), "${SHOP}", "file:"+token) +
			fmt.Sprintf("channels: {hook: {type: webhook, url: %q, secret: \"file:%s\"}}\nalerts: {P0: {to: [hook], remind: 1s}}\n", r.url, hook))
		err = errors.Join(os.WriteFile(w.config, text, 0o600), os.WriteFile(hook, []byte(hookSecret+"\n"), 0o600), os.WriteFile(token, []byte("Bearer "+shopToken+"\n"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// command runs the binary as a person would.
func command(t *testing.T, w *world, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append(args, "-c", w.config)...)
	cmd.Env = w.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("daybook %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// An HTTP job against a gateway that is slow, resets, times out and declines: the book has every charge once, and a
// letter is told on a webhook, again until it is acknowledged, and its end.
func TestHTTPJobsAndAlertsEndToEnd(t *testing.T) {
	for _, kind := range []string{"sqlite", "shared postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, r := newShop(t), newReceiver(t)
			faults := map[string]string{"slow": `"fault":"slow","delay":"5s"`, "reset": `"fault":"reset_after"`, "late": `"fault":"timeout_after"`, "early": `"fault":"timeout_before"`,
				"gone": `"fault":"reset_before"`}
			var jobs strings.Builder
			for _, name := range []string{"plain", "slow", "reset", "late", "early", "gone", "card"} {
				fmt.Fprintf(&jobs, `  %[1]s:
    priority: P0
    window: day
    schedule: daily 00:00
    effects: once
    timeout: 2s
    settles: 1s
    retry: {backoff: [1s, 1s], jitter: 0%%}
    http: {url: "%[2]s/renew/%[1]s", headers: {Authorization: "${SHOP}"}}
    probe_url: %[2]s/probe
`, name, s.url)
				if f := faults[name]; f != "" {
					s.tell(t, "/faults", fmt.Sprintf(`{%s,"customer":%q}`, f, name))
				}
			}
			s.tell(t, "/cards", `{"customer":"card","ok":false}`)
			w := newWorld(t, kind, jobs.String())
			configure(t, w, r)
			w.served()
			day := "2026-03-02"
			for _, name := range []string{"plain", "slow", "reset", "late", "early", "gone", "card"} {
				w.trigger(name, day)
			}
			for _, name := range []string{"plain", "slow", "reset", "late", "early", "gone"} {
				w.ends(name+":"+day, daybook.Done)
			}
			w.ends("card:"+day, daybook.Dead)

			// Told within 2 s of the letter, with its key and its last error.
			key := "card:" + day
			w.until("the alert is told", func() bool { return len(r.of(key)) > 0 })
			first := r.of(key)[0]
			var opened int64
			w.rows(`SELECT opened_us FROM daybook_letters WHERE key = $1`, func(rows *sql.Rows) error { return rows.Scan(&opened) }, key)
			if d := first.at.Sub(time.UnixMicro(opened)); d > 2*time.Second {
				t.Errorf("told %s after the letter", d)
			}
			if first.Type != "alert.dead_letter" || !strings.Contains(first.Data.Error, "402") || !strings.Contains(first.Data.Text, key) || first.Data.Purpose != "first" || first.Data.ID == "" {
				t.Errorf("%+v", first)
			}
			// It is repeated until somebody says that it was seen.
			w.until("a reminder", func() bool { return len(r.of(key)) > 1 })
			if again := r.of(key)[1]; again.Data.Purpose != "remind" || again.id == first.id || again.Data.ID != first.Data.ID {
				t.Errorf("%+v", again)
			}
			command(t, w, "alert", "ack", first.Data.ID, "--reason", "the customer was asked")
			// Its end is told, after a replay.
			s.tell(t, "/cards", `{"customer":"card","ok":true}`)
			command(t, w, "dead", "replay", key, "--reason", "card changed", "--yes")
			w.ends(key, daybook.Done)
			w.until("the end is told", func() bool { m := r.of(key); return m[len(m)-1].Type == "alert.recovered" })
			if m := r.of(key); m[len(m)-1].Data.ID != first.Data.ID {
				t.Errorf("%+v", m[len(m)-1])
			}

			tally, err := gateway.Count(s.book)
			if err != nil {
				t.Fatal(err)
			}
			if tally.Charges != 7 || tally.Twice != 0 || tally.Declined != 1 {
				t.Errorf("the book: %+v", tally)
			}
			for _, m := range r.all {
				if m.Data.Key != key && m.Type == "alert.dead_letter" {
					t.Errorf("told of %s: %s", m.Data.Key, m.Data.Error)
				}
			}
			log, err := os.ReadFile(w.log.Name())
			if err != nil || strings.Contains(string(log), shopToken) {
				t.Errorf("the log holds the token: %v\n%s", err, log)
			}
		})
	}
}
