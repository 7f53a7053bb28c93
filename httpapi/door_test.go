package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/httpapi"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue { // the tests wait, most of the time
		_ = flag.Set("test.parallel", "8")
	}
	pgtest.Main(m)
}

// patience is how long a test waits for something that must come.
const patience = 30 * time.Second

var ops = control.Person{Name: "ops"}

// each runs a test on both databases.
func each(t *testing.T, test func(t *testing.T, db storetest.Database)) {
	t.Helper()
	for _, open := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		db := open(t)
		t.Run(db.Name, func(t *testing.T) {
			t.Parallel()
			test(t, db)
		})
	}
}

// door is one process on a ledger, with its HTTP door on a loopback listener.
type door struct {
	*engine.Engine
	t     testing.TB
	url   string
	token string       // shown with every call; empty: none
	stop  func() error // gracefully; may be called again
}

// open opens a ledger and its door. Nothing works yet.
func open(t testing.TB, db storetest.Database, o engine.Options, jobs ...daybook.Job) *door {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	if o.Role == "" {
		o.Role = "serve"
	}
	o.LocalURL = "http://" + server.Listener.Addr().String()
	e, err := engine.Open(t.Context(), db.Open(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	definitions := make([]engine.Definition, len(jobs))
	for i, j := range jobs {
		definitions[i].Job = j
	}
	if err := e.Define(definitions...); err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = httpapi.Handler(e.Control(), httpapi.Options{OpenReads: true, Log: o.Log})
	server.Start()
	t.Cleanup(server.Close)
	return &door{Engine: e, t: t, url: server.URL, stop: func() error { return nil }}
}

// serve opens a ledger and works on it.
func serve(t testing.TB, db storetest.Database, o engine.Options, jobs ...daybook.Job) *door {
	t.Helper()
	d := open(t, db, o, jobs...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- d.Start(ctx, func() { close(ready) }) }()
	d.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("start: %v", err)
	}
	return d
}

// as makes a token of a role and shows it from now on.
func (d *door) as(role daybook.Role) *door {
	d.t.Helper()
	_, text, err := d.Control().CreateToken(d.t.Context(), ops, role, "ci")
	if err != nil {
		d.t.Fatal(err)
	}
	d.token = text
	return d
}

// got is what a call was answered with.
type got struct {
	status int
	header http.Header
	text   string
}

// field returns one name of an answer, as text.
func (g got) field(name string) string {
	var m map[string]any
	if json.Unmarshal([]byte(g.text), &m) != nil {
		return ""
	}
	switch v := m[name].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		b, _ := json.Marshal(v)
		return string(b)
	}
}

// call makes a request. headers come in pairs.
func (d *door) call(method, path, body string, headers ...string) got {
	d.t.Helper()
	return call(d.t, method, d.url+path, body, append([]string{"Authorization", bearer(d.token)}, headers...)...)
}

func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

func call(t testing.TB, method, url, body string, headers ...string) got {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i+1] == "":
		case headers[i] == "Host":
			req.Host = headers[i+1]
		default:
			req.Header.Add(headers[i], headers[i+1])
		}
	}
	client := http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got{resp.StatusCode, resp.Header, string(text)}
}

// is fails the test unless an answer has a status.
func (g got) is(t testing.TB, status int) got {
	t.Helper()
	if g.status != status {
		t.Fatalf("answered %d, want %d: %s", g.status, status, g.text)
	}
	if g.status >= 400 && g.header.Get("Content-Type") != "application/problem+json" && g.status != 503 {
		t.Errorf("%d is answered as %s", g.status, g.header.Get("Content-Type"))
	}
	return g
}

// until waits until a condition holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func (d *door) run(k daybook.Key) *daybook.Run {
	d.t.Helper()
	r, err := d.Store().Run(d.t.Context(), k)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// ends waits until a run is in a state.
func (d *door) ends(k daybook.Key, want daybook.State) *daybook.Run {
	d.t.Helper()
	var r *daybook.Run
	defer func() {
		if d.t.Failed() && r != nil {
			d.t.Logf("%s is %s %s, attempts %d failures %d: %s", k, r.State, r.Reason, r.Attempts, r.Failures, r.LastError)
		}
	}()
	until(d.t, string(k)+" "+string(want), func() bool {
		r = d.run(k)
		return r.State == want
	})
	return r
}

// tries returns the attempts of a run, without the questions.
func (d *door) tries(k daybook.Key) []daybook.Attempt {
	d.t.Helper()
	all, err := d.Store().Attempts(d.t.Context(), k)
	if err != nil {
		d.t.Fatal(err)
	}
	tries := all[:0]
	for _, a := range all {
		if !a.Probe {
			tries = append(tries, a)
		}
	}
	return tries
}

// trigger asks for a window of a job.
func (d *door) trigger(job, window string) daybook.Key {
	d.t.Helper()
	a, err := d.Control().Trigger(d.t.Context(), ops, control.Request{Job: job, Window: window})
	if err != nil {
		d.t.Fatal(err)
	}
	return a.Key
}
