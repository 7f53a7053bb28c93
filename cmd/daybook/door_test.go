package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// server is a serve with its HTTP door.
type server struct {
	*exec.Cmd
	t    *testing.T
	url  string
	errs *lockedBuffer
}

var answersOn = regexp.MustCompile(`it answers on (http://\S+)`)

// door starts a serve that answers on an address of its own.
func (s *scene) door(args ...string) *server {
	s.t.Helper()
	d := &server{t: s.t, errs: &lockedBuffer{}, Cmd: s.command(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	d.Stderr = d.errs
	if err := d.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = d.Process.Kill(); _ = d.Wait() })
	if !waitFor(func() bool { return answersOn.MatchString(d.errs.String()) }) {
		s.t.Fatalf("serve: %s", d.errs)
	}
	d.url = answersOn.FindStringSubmatch(d.errs.String())[1]
	return d
}

// end asks it to stop, and wants it to end well.
func (d *server) end() {
	d.t.Helper()
	if err := d.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	if err := d.Wait(); err != nil {
		d.t.Errorf("serve: %v\n%s", err, d.errs)
	}
}

// ask makes a request and returns status and body.
func ask(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: waitAtMost}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const oneJob = `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  append: {window: day, shell: 'echo "$DAYBOOK_KEY" >> lines'}
`

func TestServeAnswersByHTTP(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		s := newScene(t, ledger, oneJob)
		d := s.door()
		token := strings.TrimSpace(s.must(0, "token", "create", "--role", "act", "--name", "deploy"))
		const path, body = "/api/v1/jobs/append/trigger", `{"window":"2026-03-02"}`
		for _, c := range []struct {
			method, path, token string
			status              int
			says                string
		}{
			{"GET", "/healthz", "", 200, "OK\n"},
			{"GET", "/readyz", "", 200, "OK\n"},
			{"GET", "/status.txt", "", 200, "OK\n"},
			{"POST", path, "", 401, "daybook token create"},
			{"POST", path, "dbt_nonsense", 403, "not one of this ledger"},
			{"POST", path, token, 201, `"outcome":"started"`},
		} {
			if status, text := ask(t, c.method, d.url+c.path, c.token, body); status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, status, text, c.status, c.says)
			}
		}
		s.must(0, "run", "watch", "append:2026-03-02", "--exit-status")
		if status, text := ask(t, "GET", d.url+"/api/v1/runs/append:2026-03-02", "", ""); status != 200 || !strings.Contains(text, `"state":"done"`) {
			t.Errorf("%d %s", status, text)
		}
		if text := s.must(0, "key", "show", "append:2026-03-02"); !strings.Contains(text, "api, deploy → started") {
			t.Errorf("who asked is not told:\n%s", text)
		}
		d.end()
	})
}

// TestH64NoKnownDefaultSecret: an address that others reach is not listened on before a token was made, and there is none
// to begin with.
func TestH64NoKnownDefaultSecret(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		s := newScene(t, ledger, oneJob)
		for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
			if address == "[::]:0" && !hasIPv6(t) {
				continue
			}
			r := s.run("serve", "--listen", address)
			if r.code != daybook.ExitRefused || !strings.Contains(r.stderr, "no token has been made") || !strings.Contains(r.stderr, "daybook token create") {
				t.Errorf("%s: exit %d, %s", address, r.code, r.stderr)
			}
		}
		if list := s.must(0, "token", "list", "--json"); list != "" {
			t.Errorf("there is a token nobody made: %s", list)
		}
		s.door().end() // this machine only: allowed
		token := strings.TrimSpace(s.must(0, "token", "create", "--role", "view", "--name", "monitor"))
		d := s.door("--listen", "0.0.0.0:0")
		d.url = strings.Replace(d.url, "[::]", "127.0.0.1", 1)
		for _, c := range []struct {
			path, token string
			status      int
		}{{"/healthz", "", 200}, {"/status.txt", "", 401}, {"/status.txt", token, 200}, {"/status.json", "", 401}, {"/api/v1/runs/append:2026-03-02", "", 401}} {
			if status, text := ask(t, "GET", d.url+c.path, c.token, ""); status != c.status {
				t.Errorf("GET %s with token %v: %d %s, want %d", c.path, c.token != "", status, text, c.status)
			}
		}
		d.end()
		s.must(0, "token", "revoke", "tk_1")
		if r := s.run("serve", "--listen", "0.0.0.0:0"); r.code != daybook.ExitRefused {
			t.Errorf("with a revoked token only: exit %d, %s", r.code, r.stderr)
		}
	})
}

func hasIPv6(t *testing.T) bool {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:0")
	if err != nil {
		return false
	}
	_ = ln.Close()
	return true
}

// A client that sends its request drop by drop, or never ends it, holds nothing up for ever.
func TestSlowClients(t *testing.T) {
	s := newScene(t, "sqlite:daybook.db", oneJob)
	d := s.door()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/v1/jobs/append/trigger HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(waitAtMost))
	answer, err := io.ReadAll(conn) // ends when the server gives up
	if err != nil {
		t.Errorf("the connection is kept: %v, %q", err, answer)
	}
	d.end()
}
