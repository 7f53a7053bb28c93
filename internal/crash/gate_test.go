package crash

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/daybook-run/daybook"
)

// gate stops the work of a key where it comes by a point, once, until it is let go. A line of text is enough to come by, so a
// shell script can.
type gate struct {
	addr string
	mu   sync.Mutex
	keys map[string]*visit
}

// visit is one key that is to be stopped.
type visit struct {
	point string
	pid   int // of who came
	// The processes that it is a part of, as they were then: who has ended may be waited for at any time, and has no parent more.
	effect, script int
	here           chan struct{}
	open           chan struct{}
	once           sync.Once
}

func newGate(t testing.TB) *gate {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: ln.Addr().String(), keys: make(map[string]*visit)}
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			served.Go(func() { g.serve(ctx, conn) })
		}
	})
	t.Cleanup(func() { cancel(); _ = ln.Close(); served.Wait() })
	return g
}

// serve lets one caller come by.
func (g *gate) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return
	}
	var key, point string
	var pid int
	if n, _ := fmt.Sscan(line, &key, &point, &pid); n != 3 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() { _, _ = in.ReadByte(); cancel() }() // it is gone
	defer cancel()
	if g.at(ctx, key, point, pid) {
		_, _ = io.WriteString(conn, "go\n")
	}
}

// arm stops a key at a point.
func (g *gate) arm(key, point string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys[key] = &visit{point: point, here: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) visit(key string) *visit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keys[key]
}

// at comes by a point. False: who came is gone.
func (g *gate) at(ctx context.Context, key, point string, pid int) bool {
	v := g.visit(key)
	if v == nil || v.point != point {
		return true
	}
	first := false
	v.once.Do(func() { first = true })
	if !first {
		return true
	}
	v.pid, v.effect, v.script = pid, effectOf(pid), scriptOf(pid)
	close(v.here)
	select {
	case <-v.open:
		return true
	case <-ctx.Done():
		return false
	}
}

// pass is how a process comes by a point of a gate.
func pass(point string) { passAt(strings.TrimSuffix(os.Getenv("DAYBOOK_KEY"), "~undo"), point) }

// passAt is the same for work of a key.
func passAt(key, point string) {
	conn, err := net.Dial("tcp", os.Getenv(envGate))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s %d\n", key, point, os.Getpid())
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		os.Exit(exitUnclear) // the test is over
	}
}

// line is between the work and the services outside: it loses answers, and stops them at a gate. It has a service of its own,
// that sends mail, knows no wire keys and cannot be asked.
type line struct {
	*gate
	url, to string

	mu    sync.Mutex
	drop  map[string]bool // the next answer to a charge of a key does not arrive
	busy  map[string]bool // the next mail of a key is refused for now
	mails map[string]int  // by key
	sorry map[string]int
}

func newLine(t testing.TB, g *gate, to string) *line {
	t.Helper()
	l := &line{gate: g, to: to, drop: map[string]bool{}, busy: map[string]bool{}, mails: map[string]int{}, sorry: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", func(w http.ResponseWriter, r *http.Request) { l.forward(w, r, "charge-sent") })
	mux.HandleFunc("POST /refunds", func(w http.ResponseWriter, r *http.Request) { l.forward(w, r, "undo-sent") })
	mux.HandleFunc("GET /probe", l.probe)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { l.forward(w, r, "asked") })
	mux.HandleFunc("POST /mails", func(w http.ResponseWriter, r *http.Request) { l.mail(w, r, l.mails, "mail-sent") })
	mux.HandleFunc("POST /sorry", func(w http.ResponseWriter, r *http.Request) { l.mail(w, r, l.sorry, "sorry-sent") })
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	l.url = srv.URL
	return l
}

// keyOf is the key of a run, from a wire key.
func keyOf(wireKey string) string {
	key, _, _ := strings.Cut(wireKey, "#")
	return key
}

// callerPid is the header by which a process says which one it is.
const callerPid = "Crash-Pid"

func pidOf(r *http.Request) int {
	pid, _ := strconv.Atoi(r.Header.Get(callerPid)) // else it is none of its own
	return pid
}

// forward hands a request on, whether or not its caller waits for the answer, and stops the answer.
func (l *line) forward(w http.ResponseWriter, r *http.Request, point string) {
	wireKey := r.Header.Get("Idempotency-Key") + r.URL.Query().Get("key")
	out, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, l.to+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(err)
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		out.Body, out.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
	}
	out.Header.Set("Idempotency-Key", r.Header.Get("Idempotency-Key"))
	answer, err := client.Do(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !l.at(r.Context(), keyOf(wireKey), point, pidOf(r)) || point == "charge-sent" && l.takes(l.drop, keyOf(wireKey)) {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(text)
}

// probe answers whether a charge or a refund happened. About mail nobody can tell.
func (l *line) probe(w http.ResponseWriter, r *http.Request) {
	wireKey, path, said := r.URL.Query().Get("key"), "/charges", daybook.CannotTell
	if strings.Contains(wireKey, "~undo") {
		path = "/refunds"
	}
	if strings.Contains(wireKey, "#charge") {
		answer, err := client.Get(l.to + path + "?key=" + url.QueryEscape(wireKey))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_ = answer.Body.Close()
		switch answer.StatusCode {
		case http.StatusOK:
			said = daybook.Yes
		case http.StatusNotFound:
			said = daybook.No
		}
	}
	fmt.Fprintf(w, `{"answer":%q}`, said)
}

func (l *line) takes(from map[string]bool, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	had := from[key]
	delete(from, key)
	return had
}

func (l *line) mail(w http.ResponseWriter, r *http.Request, book map[string]int, point string) {
	key := keyOf(r.Header.Get("Idempotency-Key"))
	if l.takes(l.busy, key) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	l.mu.Lock()
	book[key]++
	l.mu.Unlock()
	if !l.at(r.Context(), key, point, pidOf(r)) {
		panic(http.ErrAbortHandler)
	}
}

func (l *line) count(book map[string]int, key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return book[key]
}

// stat returns the state of a process and its parent: 0 when it is gone.
func stat(pid int) (state byte, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return fields[0][0], parent
}

// effectOf is the `daybook effect` or `daybook step` that a process is a part of, 0 if there is none.
func effectOf(pid int) int {
	for ; pid > 1; _, pid = stat(pid) {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || filepath.Base(exe) != "daybook" {
			continue
		}
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if words := strings.Split(string(args), "\x00"); err == nil && len(words) > 1 && (words[1] == "effect" || words[1] == "step") {
			return pid
		}
		return 0 // the daybook that serves
	}
	return 0
}

// scriptOf is the command of the job that a process is a part of: the child of the daybook that serves.
func scriptOf(pid int) int {
	for pid > 1 {
		_, parent := stat(pid)
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", parent))
		if filepath.Base(exe) == "daybook" && effectOf(parent) == 0 {
			return pid
		}
		pid = parent
	}
	return 0
}

// working reports whether a process of a key is alive.
func (w *world) working(key string) bool {
	w.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	mark, ours := "\x00DAYBOOK_KEY="+strings.TrimSuffix(key, "~undo")+"\x00", "\x00"+envDiary+"="+w.diary+"\x00"
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !strings.Contains("\x00"+string(env), mark) || !strings.Contains("\x00"+string(env), ours) {
			continue
		}
		if state, _ := stat(pid); state != 'Z' && state != 0 {
			return true
		}
	}
	return false
}

// slay kills processes, zero being none.
func slay(pids ...int) {
	for _, pid := range pids {
		if pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
