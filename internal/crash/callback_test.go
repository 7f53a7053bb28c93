package crash

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// far is an operator's service whose jobs charge at the gateway and then do what they like with the answer.
type far struct {
	*shop
	t      testing.TB
	within atomic.Int64 // calls of somebody who was led here by a redirect
	report chan place   // of those that report after the process that asked was killed
	over   context.Context
	calls  sync.WaitGroup
}

// place is where one call may report.
type place struct{ callback, token string }

// whims are what a service may do, by the name of its job. Each has charged, or not, before it is called.
var whims = map[string]func(f *far, w http.ResponseWriter, charge func(), r place){
	"later": func(f *far, w http.ResponseWriter, charge func(), r place) {
		w.WriteHeader(202)
		f.calls.Go(func() { charge(); f.say(r, "") })
	},
	"twice": func(f *far, w http.ResponseWriter, charge func(), r place) {
		w.WriteHeader(202)
		f.calls.Go(func() { charge(); f.say(r, ""); f.say(r, "") })
	},
	"before": func(f *far, w http.ResponseWriter, charge func(), r place) {
		charge()
		f.say(r, `{"outcome":"done"}`)
		w.WriteHeader(202)
	},
	"both": func(f *far, _ http.ResponseWriter, charge func(), r place) {
		charge()
		f.say(r, "")
		panic(http.ErrAbortHandler)
	},
	"never":   func(_ *far, w http.ResponseWriter, charge func(), _ place) { charge(); w.WriteHeader(202) },
	"nothing": func(_ *far, w http.ResponseWriter, _ func(), _ place) { w.WriteHeader(202) },
	"declines": func(f *far, w http.ResponseWriter, _ func(), r place) {
		w.WriteHeader(202)
		f.calls.Go(func() { f.say(r, `{"outcome":"not_done","message":"the bank is closed"}`) })
	},
	"killed": func(f *far, w http.ResponseWriter, charge func(), r place) {
		charge()
		w.WriteHeader(202)
		f.report <- r
	},
	"hangs": func(f *far, _ http.ResponseWriter, charge func(), _ place) { charge(); <-f.over.Done() },
	"drips": func(f *far, w http.ResponseWriter, charge func(), _ place) {
		charge()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for f.over.Err() == nil {
			if _, err := io.WriteString(w, "."); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			<-tick.C
		}
	},
	"floods": func(f *far, w http.ResponseWriter, charge func(), _ place) { // ten gigabytes, if anybody took them
		charge()
		block := make([]byte, 1<<20)
		for range 10 << 10 {
			if _, err := w.Write(block); err != nil || f.over.Err() != nil {
				return
			}
		}
	},
	"redirects": func(f *far, w http.ResponseWriter, charge func(), _ place) {
		charge()
		w.Header().Set("Location", f.url+"/within")
		w.WriteHeader(http.StatusTemporaryRedirect)
	},
	"inwards": func(_ *far, w http.ResponseWriter, charge func(), _ place) {
		charge()
		w.Header().Set("Location", "http://169.254.169.254/latest/meta-data/")
		w.WriteHeader(http.StatusFound)
	},
	"answers": func(f *far, w http.ResponseWriter, charge func(), _ place) { // two answers on one connection
		charge()
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			f.t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 402 Payment Required\r\nContent-Length: 0\r\n\r\n")
	},
}

func newFar(t *testing.T) *far {
	t.Helper()
	over, end := context.WithCancel(context.WithoutCancel(t.Context()))
	f := &far{shop: newShop(t), t: t, report: make(chan place, 8), over: over}
	first := sync.Map{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs/{job}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("job")
		where := place{r.Header.Get("Daybook-Callback"), r.Header.Get("Daybook-Token")}
		charge := func() {
			rec := httptest.NewRecorder()
			f.g.ServeHTTP(rec, f.to(r.WithContext(context.WithoutCancel(r.Context())), "POST", "/charges", fmt.Sprintf(`{"customer":%q,"day":"2026-03-02","amount":1500,"currency":"EUR"}`, name)))
			if rec.Code != http.StatusOK && rec.Code != http.StatusCreated {
				t.Errorf("%s: the gateway answers %d %s", name, rec.Code, rec.Body)
			}
		}
		if _, again := first.LoadOrStore(name, true); again {
			charge() // asked again, and in a better mood
			return
		}
		whims[name](f, w, charge, where)
	})
	mux.HandleFunc("/within", func(http.ResponseWriter, *http.Request) { f.within.Add(1) })
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { end(); f.calls.Wait(); srv.CloseClientConnections(); srv.Close() })
	probe := f.url
	f.url = srv.URL
	mux.HandleFunc("GET /probe", func(w http.ResponseWriter, r *http.Request) {
		answer, err := client.Get(probe + "/probe?" + r.URL.RawQuery)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
	return f
}

// say reports to a callback.
func (f *far) say(r place, body string) (status int) {
	req, err := http.NewRequestWithContext(f.over, http.MethodPost, r.callback, strings.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return 0
	}
	req.Header.Set("Daybook-Token", r.token)
	answer, err := client.Do(req)
	if err != nil {
		if f.over.Err() == nil {
			f.t.Errorf("report: %v", err)
		}
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// Whatever the far side does, the book has every charge once, and the slots come back in time: two of them are enough for
// all.
func TestTheFarSideDoesWhatItLikes(t *testing.T) {
	for _, kind := range []string{"sqlite", "shared postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			var jobs strings.Builder
			for name := range whims {
				fmt.Fprintf(&jobs, "  %[1]s:\n    priority: P0\n    window: day\n    effects: once\n    timeout: 2s\n    settles: 1s\n    retry: {backoff: [1s, 1s], jitter: 0%%}\n    http: {url: \"%[2]s/jobs/%[1]s\"}\n    probe_url: %[2]s/probe\n", name, f.url)
			}
			w := newWorld(t, kind, jobs.String()+"slots: {live: 2}\n")
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := ln.Addr().String()
			_ = ln.Close()
			listening := func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, "--listen", address) }

			// Killed while the far side works: its report is heard by the next one.
			serve := w.served(listening)
			w.trigger("killed", "2026-03-02")
			late := <-f.report
			w.kill(serve, false)
			w.served(listening)
			if status := f.say(late, `{"outcome":"done","result":{"by":"callback"}}`); status != http.StatusOK {
				t.Errorf("the report after the kill is answered %d", status)
			}
			w.ends("killed:2026-03-02", daybook.Done)

			for name := range whims {
				w.trigger(name, "2026-03-02")
			}
			for name := range whims {
				w.ends(name+":2026-03-02", daybook.Done)
			}
			tally, err := gateway.Count(f.book)
			if err != nil {
				t.Fatal(err)
			}
			if tally.Charges != len(whims) || tally.Twice != 0 {
				t.Errorf("the book: %+v, want %d charges", tally, len(whims))
			}
			if n := f.within.Load(); n != 0 {
				t.Errorf("a redirect was followed %d times", n)
			}
			// What was done at the first call was done by one attempt; only what the far side had not done was sent again.
			for name := range whims {
				attempts := 0
				w.rows(`SELECT attempts FROM daybook_runs WHERE key = $1`, func(rows *sql.Rows) error { return rows.Scan(&attempts) }, name+":2026-03-02")
				want := 1
				if name == "nothing" || name == "declines" {
					want = 2
				}
				if attempts != want {
					t.Errorf("%s took %d attempts, want %d", name, attempts, want)
				}
			}
		})
	}
}
