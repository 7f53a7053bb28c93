package crash

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/internal/pgtest"
)

// lease is short, so that a crash is noticed soon.
const lease = 2 * time.Second

// patience is how long something is waited for that must come.
const patience = time.Minute

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(envHelper) != "" {
		os.Exit(helper(os.Args[1:]))
	}
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue { // the tests wait, most of the time
		most := "8"
		if testing.Short() {
			most = "16"
		}
		_ = flag.Set("test.parallel", most)
	}
	dir, err := os.MkdirTemp("", "daybook-crash-")
	if err == nil {
		binary = filepath.Join(dir, "daybook")
		build := exec.Command("go", "build", "-o", binary, "github.com/daybook-run/daybook/cmd/daybook")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash: build the binary:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code) // a server of pgtest ends by itself
}

// world is a ledger, a gateway and what works on them. Everything in it goes when the test ends.
type world struct {
	t       testing.TB
	dir     string
	url     string // of the database
	db      *sql.DB
	gateway string // address
	book    string // path of the gateway's book
	diary   string
	log     *os.File
	config  string
	me      string   // this program
	extra   []string // environment of what is started

	mu     sync.Mutex
	serves []*served // alive
}

// served is one process of the binary.
type served struct {
	cmd   *exec.Cmd
	ready chan struct{} // closed when it works
	ended chan struct{} // closed when it has been waited for
	err   error
}

func (s *served) pid() int { return s.cmd.Process.Pid }

// newWorld makes a world on a database of a kind, or on a PostgreSQL by its URL, with the jobs of a file. In the jobs, ME stands for this program as a
// helper.
func newWorld(t testing.TB, kind, jobs string) *world {
	t.Helper()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), me: me}
	w.book, w.diary, w.config = filepath.Join(w.dir, "gateway.jsonl"), filepath.Join(w.dir, "diary.jsonl"), filepath.Join(w.dir, "daybook.yaml")
	driver, source := "sqlite", ""
	switch kind {
	case "sqlite":
		path := filepath.Join(w.dir, "ledger.db")
		w.url, source = "sqlite:"+path, "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)"
	case "postgres": // one that keeps what it acknowledged
		driver, w.url = "pgx", pgtest.Server(t).URL()
		source = w.url
	case "shared postgres":
		driver, w.url = "pgx", pgtest.URL(t)
		source = w.url
	default: // the URL of a PostgreSQL
		driver, w.url, source = "pgx", kind, kind
	}
	if w.log, err = os.Create(filepath.Join(w.dir, "serve.log")); err != nil {
		t.Fatal(err)
	}
	text := "version: 1\ntimezone: UTC\ndatabase: \"${DAYBOOK_CRASH_DB}\"\ndefaults: {owner: ops}\njobs:\n" + strings.ReplaceAll(jobs, "ME", me)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.db, err = sql.Open(driver, source); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	w.startGateway()
	return w
}

// end ends everything that was started here.
func (w *world) end() {
	for _, s := range w.alive() {
		w.kill(s, true)
	}
	// What outlived its daybook, by the diary. Numbers of processes are soon used again, also for threads, and those of a
	// container are others: only what has this world in its environment is ended.
	entries, err := readDiary(w.diary)
	if err != nil {
		w.t.Error(err)
	}
	mark := []byte("\x00" + envDiary + "=" + w.diary + "\x00")
	for _, e := range entries {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", e.Pid)); err == nil && bytes.Contains(env, mark) {
			_ = syscall.Kill(e.Pid, syscall.SIGKILL)
		}
	}
	_ = w.db.Close()
	_ = w.log.Close()
	if w.t.Failed() {
		w.tail()
	}
}

// tail shows the end of what the processes said.
func (w *world) tail() {
	b, err := os.ReadFile(w.log.Name())
	if err != nil {
		return
	}
	const most = 12 << 10
	if len(b) > most {
		b = b[len(b)-most:]
	}
	w.t.Logf("serve said:\n%s", b)
}

// story logs what the ledger and the diary tell of a key.
func (w *world) story(key string) {
	for _, args := range [][]string{{"key", "show", key}, {"run", "logs", key}} {
		cmd := exec.Command(binary, append(args, "-c", w.config)...)
		cmd.Env = w.env()
		out, _ := cmd.CombinedOutput()
		w.t.Logf("%s", out)
	}
	all, _ := readDiary(w.diary)
	for _, e := range all {
		if e.Key == strings.TrimSuffix(key, "~undo") {
			w.t.Logf("%s %s pid %d fence %d %s %d", e.At.Format("15:04:05.000"), e.What, e.Pid, e.Fence, e.Wire, e.Said)
		}
	}
}

func (w *world) env() []string {
	return slices.Concat(os.Environ(), w.extra, []string{envHelper + "=1", envGateway + "=" + w.gateway, envDiary + "=" + w.diary,
		envBinary + "=" + binary, "DAYBOOK_CRASH_DB=" + w.url, "XDG_STATE_HOME=" + filepath.Join(w.dir, "state")})
}

func (w *world) startGateway() {
	w.t.Helper()
	cmd := exec.Command(w.me, "gateway", "-book", w.book)
	cmd.Env = w.env()
	cmd.Stderr = w.log
	guard, err := cmd.StdinPipe() // closed by the end of this process
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = guard.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		w.t.Fatalf("gateway: %q %v", line, err)
	}
	w.gateway = address
}

// fault makes the gateway fail.
func (w *world) fault(text string) {
	w.t.Helper()
	answer, err := client.Post(w.gateway+"/faults", "application/json", strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		w.t.Fatalf("fault: %s", answer.Status)
	}
}

// serve starts a process of the binary.
func (w *world) serve(change ...func(*exec.Cmd)) *served {
	w.t.Helper()
	cmd := exec.Command(binary, "serve", "-c", w.config, "--lease", lease.String())
	cmd.Env = w.env()
	for _, f := range change {
		f(cmd)
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	s := &served{cmd: cmd, ready: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintf(w.log, "%s [%d] %s\n", time.Now().UTC().Format("15:04:05.000"), s.pid(), lines.Text())
			if strings.HasPrefix(lines.Text(), "daybook serves ") {
				close(s.ready)
			}
		}
		s.err = cmd.Wait()
		w.aside(s)
		close(s.ended)
	}()
	w.mu.Lock()
	w.serves = append(w.serves, s)
	w.mu.Unlock()
	return s
}

// aside takes a process out of those that serve.
func (w *world) aside(s *served) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serves = slices.DeleteFunc(slices.Clone(w.serves), func(o *served) bool { return o == s })
}

// served starts a process and waits until it works.
func (w *world) served(change ...func(*exec.Cmd)) *served {
	w.t.Helper()
	s := w.serve(change...)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.ready:
	case <-s.ended:
		w.t.Fatalf("serve ended: %v", s.err)
	case <-timer.C:
		w.t.Fatal("serve is not ready")
	}
	return s
}

func (w *world) alive() []*served {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*served(nil), w.serves...)
}

// kill kills a process with SIGKILL, and with children everything that it started at the same instant: it is stopped
// first, so that it sees none of them end.
func (w *world) kill(s *served, children bool) {
	select {
	case <-s.ended:
		return
	default:
	}
	var groups []int
	if children {
		_ = s.cmd.Process.Signal(syscall.SIGSTOP)
		groups = childrenOf(s.pid())
	}
	_ = s.cmd.Process.Kill()
	for _, pid := range groups {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // each leads a group of its own
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.ended
}

// standStill stops a process where it holds no lock on a SQLite ledger: one that stands still with the lock keeps everybody
// out until it goes on, as any other program would.
func (w *world) standStill(s *served) {
	w.t.Helper()
	path, lite := strings.CutPrefix(w.url, "sqlite:")
	if !lite {
		_ = s.cmd.Process.Signal(syscall.SIGSTOP)
		return
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(200)&_txlock=immediate")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	w.until("it stands still without the lock", func() bool {
		_ = s.cmd.Process.Signal(syscall.SIGSTOP)
		tx, err := db.BeginTx(w.t.Context(), nil)
		if err != nil {
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
			return false
		}
		return tx.Rollback() == nil
	})
}

// terminate asks a process to stop and returns its exit code.
func (w *world) terminate(s *served) int {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		w.t.Fatal("serve does not stop")
	}
	return s.cmd.ProcessState.ExitCode()
}

// childrenOf returns the processes whose parent is a stopped process, of which nobody can be reaped meanwhile.
func childrenOf(parent int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(fields) > 2 && string(fields[1]) == strconv.Itoa(parent) {
			list = append(list, pid)
		}
	}
	return list
}

// trigger asks for a window of a job, as a person would, from a process of its own.
func (w *world) trigger(job, window string) control.Answer {
	w.t.Helper()
	db := w.handles()
	defer func() { _ = db.Write.Close(); _ = db.Read.Close() }()
	e, err := engine.Open(w.t.Context(), db, engine.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer e.Close()
	a, err := e.Control().Trigger(w.t.Context(), control.Person{Name: "ops"}, control.Request{Job: job, Window: window})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) handles() engine.DB {
	w.t.Helper()
	db, err := handlesOf(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	return db
}

// handlesOf opens a ledger as a program of somebody's own does.
func handlesOf(url string) (db engine.DB, err error) {
	path, lite := strings.CutPrefix(url, "sqlite:")
	if !lite {
		db.Write, err = sql.Open("pgx", url)
		db.Read = db.Write
		return db, err
	}
	source := "file:" + path + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate"
	if db.Write, err = sql.Open("sqlite", source); err != nil {
		return db, err
	}
	db.Write.SetMaxOpenConns(1)
	db.Read, err = sql.Open("sqlite", source)
	return db, err
}

// until waits until a condition holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// rows reads rows, each column as text or a number.
func (w *world) rows(query string, scan func(*sql.Rows) error, args ...any) {
	w.t.Helper()
	rows, err := w.db.QueryContext(w.t.Context(), query, args...)
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			w.t.Fatalf("%s: %v", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

// state returns the state and the reason of a run, empty when there is none.
func (w *world) state(key string) (state daybook.State, reason daybook.Reason) {
	w.t.Helper()
	w.rows(`SELECT CASE WHEN r.state = '' THEN l.state ELSE r.state END, CASE WHEN r.state = '' THEN l.reason ELSE r.reason END
FROM daybook_runs r LEFT JOIN daybook_live l ON l.key = r.key WHERE r.key = $1`, func(rows *sql.Rows) error { return rows.Scan(&state, &reason) }, key)
	return state, reason
}

// ends waits until a run is in a state.
func (w *world) ends(key string, want daybook.State) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			w.story(key)
			w.rows(`SELECT state || ' ' || reason || ' ' || hold || ' ' || fence || ' ' || once || ' ' || lease_us || ' ' || begun_us FROM daybook_live WHERE key = $1`, func(rows *sql.Rows) error {
				var stands string
				err := rows.Scan(&stands)
				w.t.Log("live:", stands)
				return err
			}, key)
		}
	}()
	w.until(key+" "+string(want), func() bool {
		got, _ := w.state(key)
		return got == want
	})
}

// entries returns what the diary says of a key.
func (w *world) entries(key, what string) []entry {
	w.t.Helper()
	all, err := readDiary(w.diary)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []entry
	for _, e := range all {
		if (key == "" || e.Key == key) && e.What == what {
			list = append(list, e)
		}
	}
	return list
}

// begun waits until the n-th try of a key has written that it begins.
func (w *world) begun(key string, n int) entry {
	w.t.Helper()
	var found entry
	w.until(fmt.Sprintf("try %d of %s", n, key), func() bool {
		list := w.entries(key, "begin")
		if len(list) >= n {
			found = list[n-1]
		}
		return len(list) >= n
	})
	return found
}
