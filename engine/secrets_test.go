package engine_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/runner"
	"github.com/daybook-run/daybook/store/storetest"
)

// journal is a log that may be written by many.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// A job prints its secret and fails with it: what is stored, told and logged holds ***.
func TestH66SecretsAreMasked(t *testing.T) {
	each(t, func(t *testing.T, db storetest.Database) {
		const secret, token = "s3cr3t-xyz", "tok-en-7788"
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/probe" {
				fmt.Fprintf(w, `{"answer":"yes","result":{"echo":%q}}`, secret)
				return
			}
			w.WriteHeader(http.StatusPaymentRequired)
			fmt.Fprintf(w, `{"message":"%s is not welcome","result":{"echo":%q}}`, r.Header.Get("Authorization"), r.Header.Get("Authorization"))
		}))
		t.Cleanup(far.Close)
		messages := make(chan string, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body)
			messages <- b.String()
		}))
		t.Cleanup(receiver.Close)
		hook, err := alert.NewChannel(alert.Settings{Name: "hook", Type: "webhook", URL: receiver.URL, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
		if err != nil {
			t.Fatal(err)
		}
		retry := daybook.Retry{Backoff: []time.Duration{}}
		env := func() (map[string]string, error) {
			return map[string]string{"API_KEY": secret, "REGION": "eu-central", runner.EnvHeader + "Authorization": "Bearer " + token}, nil
		}
		command := daybook.Job{Name: "command", Owner: "ops", Timezone: "UTC", Window: daybook.Day, Retry: retry,
			Env:     map[string]string{"API_KEY": "${API_KEY}", "REGION": "eu-central"},
			Command: daybook.Command{Shell: `echo "$REGION $API_KEY"; printf '{"outcome":"permanent","message":"%s refused","result":{"k":"%s"}}' "$API_KEY" "$API_KEY" > "$DAYBOOK_RESULT_FILE"`}}
		call := daybook.Job{Name: "call", Owner: "ops", Timezone: "UTC", Window: daybook.Day, Retry: retry,
			HTTP: &daybook.HTTPCall{URL: far.URL, Headers: map[string]string{"Authorization": "${TOKEN}"}}}
		asked := daybook.Job{Name: "asked", Owner: "ops", Timezone: "UTC", Window: daybook.Day, Effects: daybook.Once, Settles: time.Millisecond,
			Env: map[string]string{"API_KEY": "file:/run/key"}, Command: daybook.Command{Shell: `kill -9 $$`}, ProbeURL: far.URL + "/probe"}
		var log journal
		o := engine.Options{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Alerts: alert.Options{Channels: []alert.Named{hook}, Routes: map[daybook.Priority]alert.Route{daybook.P1: {To: []string{"hook"}}}}}
		n := serve(t, db.Open(t), o, engine.Definition{Job: command, Env: env}, engine.Definition{Job: call, Env: env}, engine.Definition{Job: asked, Env: env})
		var keys []daybook.Key
		for _, name := range []string{"command", "call", "asked"} {
			keys = append(keys, n.trigger(name, "2026-03-02"))
		}
		for i, want := range []daybook.State{daybook.Dead, daybook.Dead, daybook.Done} {
			ends(t, n.Engine, keys[i], want)
		}
		for range 2 { // two letters
			if m := comes(t, "a message", messages); strings.Contains(m, secret) || strings.Contains(m, token) || !strings.Contains(m, "***") {
				t.Errorf("told: %s", m)
			}
		}
		if err := n.stop(); err != nil {
			t.Fatal(err)
		}
		everything := log.String() + dump(t, db.Open(t).Read)
		for _, s := range []string{secret, token} {
			if at := strings.Index(everything, s); at >= 0 {
				t.Errorf("%s is kept: …%s", s, everything[max(0, at-300):min(len(everything), at+100)])
			}
		}
		for i, want := range []string{"*** refused", "*** is not welcome", ""} {
			if got := run(t, n.Engine, keys[i]).LastError; !strings.Contains(got, want) {
				t.Errorf("%s: %q", keys[i], got)
			}
		}
		if out, err := n.Store().Output(t.Context(), keys[0], 1); err != nil || out.Text != "eu-central ***\n" {
			t.Errorf("output %q %v", out.Text, err)
		}
		if r := run(t, n.Engine, keys[2]); r.State != daybook.Done || !strings.Contains(string(r.Result), `"***"`) && !strings.Contains(string(r.Effect.Data), `"***"`) {
			t.Errorf("asked: %s %s %s", r.State, r.Result, r.Effect.Data)
		}
	})
}

// dump is every text of every table of a ledger.
func dump(t *testing.T, read *sql.DB) string {
	t.Helper()
	var b strings.Builder
	for _, table := range []string{"runs", "live", "attempts", "outputs", "steps", "letters", "alerts", "sends", "triggers", "activity", "jobs", "revisions", "nodes"} {
		rows, err := read.QueryContext(t.Context(), "SELECT * FROM daybook_"+table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		for rows.Next() {
			if err := rows.Scan(cells...); err != nil {
				t.Fatal(err)
			}
			for i, c := range cells {
				switch v := (*c.(*any)).(type) {
				case []byte:
					fmt.Fprintf(&b, "%s.%s=%s\n", table, columns[i], v)
				default:
					fmt.Fprintf(&b, "%s.%s=%v\n", table, columns[i], v)
				}
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
