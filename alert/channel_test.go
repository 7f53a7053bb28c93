package alert

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/notice"
	"github.com/daybook-run/daybook/internal/outhttp"
)

const whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// message is the first telling of the alert of that night.
func message() Message {
	r, f := night(daybook.AlertDeadLetter)
	t := Write(lang.For(lang.English), r, f)
	t.Details.Send = "al_91/phone/1"
	return Message{Send: notice.Send{Key: "al_91/phone/1", Alert: "row", Channel: "phone", Purpose: notice.First, Lang: lang.English,
		Subject: t.Subject, Body: t.Body, Short: t.Short, Data: t.Details.json(), MadeAt: f.Now}, Details: t.Details, Now: f.Now.Add(time.Minute)}
}

func channel(t *testing.T, s Settings) Named {
	t.Helper()
	s.Name = "phone"
	c, err := NewChannel(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sh(t *testing.T, script string) Named {
	return channel(t, Settings{Type: "exec", Run: []string{"/bin/sh", "-c", script}, Timeout: 10 * time.Second})
}

func TestExecGivesTheTextAndTheEnvironment(t *testing.T) {
	t.Setenv("DAYBOOK_TEST_SECRET", "hunter2")
	out := filepath.Join(t.TempDir(), "out")
	c := channel(t, Settings{Type: "exec", Env: map[string]string{"TO": out},
		Run: []string{"/bin/sh", "-c", `{ cat; echo "$DAYBOOK_ALERT_ID $DAYBOOK_ALERT_SEND $DAYBOOK_ALERT_KIND $DAYBOOK_ALERT_PRIORITY $DAYBOOK_ALERT_KEY $DAYBOOK_ALERT_PURPOSE"; echo "$DAYBOOK_ALERT_SUBJECT"; echo "x$DAYBOOK_TEST_SECRET"; } > "$TO"`}})
	m := message()
	if err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if want := m.Body + "al_91 al_91/phone/1 dead_letter P0 renew:2026-03-29 first\n" + m.Subject + "\nx\n"; string(b) != want {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}
}

func TestExecReadsItsEnd(t *testing.T) {
	for _, c := range []struct {
		script, says string
		permanent    bool
	}{
		{"exit 0", "", false},
		{"cat >/dev/null; exit 0", "", false},
		{"echo no such number >&2; exit 1", "exit status 1: no such number", false},
		{"exit 75", "exit status 75", false},
		{"exit 78", "exit status 78", true},
		{"exit 127", "exit status 127", true},
		{"kill -9 $$", "signal: killed", false},
		{"yes | head -c 100000; printf '\\n\\033[31mend'; exit 1", "[31mend", false},
	} {
		err := sh(t, c.script).Send(t.Context(), message())
		switch {
		case c.says == "":
			if err != nil {
				t.Errorf("%s: %v", c.script, err)
			}
		case err == nil || !strings.Contains(err.Error(), c.says) && !strings.Contains(err.Error(), "y y y") || (daybook.OutcomeOf(err).Result == daybook.ResultPermanent) != c.permanent:
			t.Errorf("%s: %v, permanent want %v", c.script, err, c.permanent)
		case strings.ContainsAny(err.Error(), "\n\x1b"):
			t.Errorf("%s: %q", c.script, err)
		}
	}
	err := channel(t, Settings{Type: "exec", Run: []string{"/no/such/program"}}).Send(t.Context(), message())
	if daybook.OutcomeOf(err).Result != daybook.ResultPermanent {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestExecKillsTheGroupAtTheTimeout(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// The child writes its pid, then parent and child hang. A reader of the fifo sees its end once nobody holds it.
	script := "sleep 60 3>" + fifo + " & echo $! >" + dir + "/pid; exec 3>" + fifo + "; wait"
	c := channel(t, Settings{Type: "exec", Run: []string{"/bin/sh", "-c", script}, Timeout: 300 * time.Millisecond})
	gone := make(chan error, 1)
	go func() {
		f, err := os.Open(fifo)
		if err == nil {
			_, err = io.ReadAll(f)
			err = errors.Join(err, f.Close())
		}
		gone <- err
	}()
	err := c.Send(t.Context(), message())
	if err == nil || !errors.Is(err, context.DeadlineExceeded) || daybook.OutcomeOf(err).Result == daybook.ResultPermanent {
		t.Errorf("got %v", err)
	}
	select {
	case err := <-gone:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the child outlived the timeout")
	}
}

func TestWebhookIsSignedAndTheSameBytesInEveryTry(t *testing.T) {
	type seen struct {
		header http.Header
		body   string
	}
	var got []seen
	status := http.StatusServiceUnavailable
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, seen{r.Header, string(b)})
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "later,\nplease")
	}))
	defer srv.Close()
	c := channel(t, Settings{Type: "webhook", URL: srv.URL + "/in", Secret: whsec})
	m := message()
	err := c.Send(t.Context(), m)
	if o := daybook.OutcomeOf(err); o.Result != daybook.ResultNotDone || o.RetryAfter != 2*time.Minute || !strings.Contains(err.Error(), "503 Service Unavailable: later, please") {
		t.Errorf("%v: %+v", err, o)
	}
	status = http.StatusNoContent
	m.Now = m.Now.Add(2 * time.Minute)
	if err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].body != got[1].body || got[0].header.Get("webhook-id") != got[1].header.Get("webhook-id") {
		t.Fatalf("two tries differ: %+v", got)
	}
	if id := got[0].header.Get("webhook-id"); id != outhttp.WebhookID("row/al_91/phone/1") {
		t.Errorf("id %s", id)
	}
	for i, g := range got {
		want := http.Header{}
		if err := outhttp.Sign(want, whsec, g.header.Get("webhook-id"), message().Now.Add(time.Duration(i)*2*time.Minute), []byte(g.body)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"webhook-timestamp", "webhook-signature"} {
			if g.header.Get(name) != want.Get(name) {
				t.Errorf("%s: %s, want %s", name, g.header.Get(name), want.Get(name))
			}
		}
	}
	var e struct {
		Type      string
		Timestamp time.Time
		Data      map[string]any
	}
	if err := json.Unmarshal([]byte(got[0].body), &e); err != nil {
		t.Fatal(err)
	}
	if e.Type != "alert.dead_letter" || !e.Timestamp.Equal(m.MadeAt) || e.Data["key"] != "renew:2026-03-29" || e.Data["id"] != "al_91" || e.Data["text"] != m.Body {
		t.Errorf("body %s", got[0].body)
	}
	over := time.Unix(0, 0)
	m.Details.Recovered = &over
	if err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got[2].body, `{"type":"alert.recovered"`) {
		t.Errorf("recovery %s", got[2].body)
	}
}

func TestWebhookReadsTheAnswer(t *testing.T) {
	for status, permanent := range map[int]bool{301: false, 307: false, 400: true, 401: true, 404: true, 408: false, 409: false, 410: true, 425: false, 429: false, 500: false, 502: false} {
		calls := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			w.Header().Set("Location", "/other")
			w.WriteHeader(status)
		}))
		err := channel(t, Settings{Type: "webhook", URL: srv.URL, Secret: whsec}).Send(t.Context(), message())
		srv.Close()
		if err == nil || (daybook.OutcomeOf(err).Result == daybook.ResultPermanent) != permanent || calls != 1 {
			t.Errorf("%d: %v after %d calls, permanent want %v", status, err, calls, permanent)
		}
	}
}

func TestWebhookHasOneDeadline(t *testing.T) {
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		for { // a body that never ends
			if _, err := io.WriteString(w, "."); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-done:
				return
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}))
	defer srv.Close()
	defer close(done)
	err := channel(t, Settings{Type: "webhook", URL: srv.URL, Secret: whsec, Timeout: 200 * time.Millisecond}).Send(t.Context(), message())
	if err == nil || daybook.OutcomeOf(err).Result == daybook.ResultPermanent {
		t.Errorf("got %v", err)
	}
}

func TestFileAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alerts.log")
	c := channel(t, Settings{Type: "file", Path: path})
	m := message()
	for range 2 {
		if err := c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	one := "2026-03-29T01:01:40Z  al_91/phone/1\n" + m.Body + "\n"
	if string(b) != one+one {
		t.Errorf("got\n%s", b)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := channel(t, Settings{Type: "file", Path: filepath.Join(path, "x")}).Send(t.Context(), m); err == nil {
		t.Error("a path below a file")
	}
}

func TestNewChannelRefuses(t *testing.T) {
	for _, c := range []struct {
		s    Settings
		says string
	}{
		{Settings{Name: "a b", Type: "file", Path: "x"}, "a b"},
		{Settings{Name: "x\r\nBcc: a@b.test", Type: "file", Path: "x"}, ""},
		{Settings{Name: "a", Type: "webhok"}, "exec, file, webhook"},
		{Settings{Name: "a", Type: "file"}, "needs path"},
		{Settings{Name: "a", Type: "exec", Path: "x", Run: []string{"x"}}, "takes no path"},
		{Settings{Name: "a", Type: "exec", Run: []string{""}}, "empty"},
		{Settings{Name: "a", Type: "file", Path: "x", Lang: "de"}, "lang"},
		{Settings{Name: "a", Type: "webhook", URL: "https://x.example", Secret: "plain!"}, "base64"},
		{Settings{Name: "a", Type: "webhook", URL: "ftp://x.example", Secret: whsec}, "http"},
		{Settings{Name: "a", Type: "webhook", URL: "https://x.example"}, "needs secret"},
		{Settings{Name: "a", Type: "exec", Run: []string{"x"}, Timeout: time.Hour}, "timeout"},
	} {
		_, err := NewChannel(c.s)
		if daybook.CodeOf(err) != daybook.CodeInvalid || !strings.Contains(err.Error(), c.says) || strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
	_, err := NewChannel(Settings{Name: "a", Type: "webhok"})
	if daybook.HintOf(err) != "did you mean webhook?" {
		t.Errorf("hint %q", daybook.HintOf(err))
	}
}

// Every file of this folder that has a Send of a channel stands in the table, and the table names no other.
func TestEveryChannelStandsInTheTable(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Send" {
				found = append(found, name)
			}
		}
	}
	var table []string
	for i, typ := range Types {
		table = append(table, typ.File)
		if i > 0 && Types[i-1].Name >= typ.Name {
			t.Errorf("%s stands behind %s", typ.Name, Types[i-1].Name)
		}
		if typ.Needs > len(typ.Takes) {
			t.Errorf("%s needs %s of %v", typ.Name, strconv.Itoa(typ.Needs), typ.Takes)
		}
	}
	slices.Sort(table)
	if !slices.Equal(found, table) {
		t.Errorf("files with a channel: %v, the table: %v", found, table)
	}
}
