package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a temporary PostgreSQL server of one test, for tests that stop, kill and restart it. Its methods end the
// test when they fail.
type Cluster struct {
	t        testing.TB // nil for the server of a process
	bin      string     // where the programs are
	dir      string     // everything of this server; removed at the end
	port     int        // stays the same over restarts
	settings []string
	user     *account       // who runs the server; nil: whoever runs the test
	guard    io.WriteCloser // closing it tells the watchdog that the test process is gone
	watchdog *exec.Cmd

	cmd     *exec.Cmd     // the running server, nil when stopped
	gone    chan struct{} // closed when cmd has ended
	version int           // of the server that started, as in 15
}

// Mode is a way to stop a server.
type Mode syscall.Signal

// The ways to stop a server.
const (
	Fast      = Mode(syscall.SIGINT)  // ends sessions, writes a checkpoint: what a planned restart does
	Immediate = Mode(syscall.SIGQUIT) // drops everything, recovers from the log at the next start
	Crash     = Mode(syscall.SIGKILL) // as if the machine had lost its processes
)

// Server starts a server for one test. What it acknowledged it keeps: fsync and synchronous_commit are on, unless a
// setting ("name=value", as in postgresql.conf) says otherwise. It is removed when the test ends. The environment cannot
// replace this server by another: a test that kills it must own it.
func Server(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c, err := newCluster(programs(t), os.TempDir(), settings, (*Cluster).initialise)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	c.t = t
	t.Cleanup(c.remove)
	if err := execute(c.url("postgres"), "CREATE DATABASE daybook"); err != nil {
		t.Fatalf("pgtest: create database: %v", err)
	}
	return c
}

// Start starts a server for a program that is no test, such as the benchmarks. It keeps what it acknowledged, as that of
// [Server] does. stop ends and removes it; so does the end of the program, however it comes.
func Start(settings ...string) (c *Cluster, stop func(), err error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, nil, err
	}
	if c, err = newCluster(bin, os.TempDir(), settings, (*Cluster).initialise); err != nil {
		return nil, nil, err
	}
	if err := execute(c.url("postgres"), "CREATE DATABASE daybook"); err != nil {
		c.remove()
		return nil, nil, fmt.Errorf("create database: %w", err)
	}
	return c, c.remove, nil
}

// URL returns the address of the server's database. It stays the same over restarts.
func (c *Cluster) URL() string { return c.url("daybook") }

// Database creates a further, empty database and returns its address.
func (c *Cluster) Database() string {
	c.t.Helper()
	return createDatabase(c.t, c.url("postgres"))
}

// Stop stops the server and returns when it has ended.
func (c *Cluster) Stop(m Mode) {
	c.t.Helper()
	if err := c.stop(m); err != nil {
		c.t.Fatalf("pgtest: stop: %v", err)
	}
}

// Start starts a stopped server again, on its old port, and returns when it takes connections.
func (c *Cluster) Start() {
	c.t.Helper()
	if c.cmd != nil {
		c.t.Fatal("pgtest: start: the server is running")
	}
	if err := c.start(); err != nil {
		c.t.Fatalf("pgtest: start: %v", err)
	}
}

func (c *Cluster) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }
func (c *Cluster) log() string  { return filepath.Join(c.dir, "log") }

// newCluster makes a server in a directory, with the data that fill makes, and starts it.
func newCluster(bin, parent string, settings []string, fill func(*Cluster) error) (_ *Cluster, err error) {
	c := &Cluster{bin: bin, settings: settings}
	if c.user, err = serverAccount(); err != nil {
		return nil, err
	}
	if c.dir, err = makeDir(parent, c.user); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.remove()
		}
	}()
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	if err := fill(c); err != nil {
		return nil, err
	}
	// PostgreSQL cannot be asked to take any free port. Between asking the system for one and binding it, another
	// process may be faster; then the server ends at once and the next port is tried.
	for range 5 {
		if c.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = c.start(); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("start %s: %w", filepath.Join(bin, "postgres"), err)
}

// initialise makes the data directory.
func (c *Cluster) initialise() error {
	initdb := func(args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
		defer cancel()
		args = append([]string{"-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"}, args...)
		cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), args...)
		c.prepare(cmd)
		return cmd.CombinedOutput()
	}
	// Databases in the field sort by the rules of a language. With a "C" locale a test would not notice that a column
	// of keys lacks COLLATE "C", so a language is asked for wherever the server was built with ICU.
	if _, err := initdb("--locale=C", "--locale-provider=icu", "--icu-locale=en-US"); err == nil {
		return nil
	}
	if err := os.RemoveAll(c.data()); err != nil {
		return err
	}
	if out, err := initdb("--locale=C"); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, tail(out))
	}
	return nil
}

// prepare makes a program of the server run as the server's user, in the server's directory, and in a process group of
// its own: an interrupt at the keyboard is for the test, which then stops the server.
func (c *Cluster) prepare(cmd *exec.Cmd) {
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = attributes(c.user)
}

// start runs the server as a child and waits until it takes connections.
func (c *Cluster) start() error {
	args := []string{"-D", c.data()}
	for _, s := range slices.Concat([]string{
		"port=" + strconv.Itoa(c.port), "listen_addresses=127.0.0.1",
		// The path of a socket is limited to some hundred bytes, which a temporary directory may exceed.
		"unix_socket_directories=",
		"max_connections=300", "shared_buffers=32MB",
	}, c.settings) {
		args = append(args, "-c", s)
	}
	// Its output goes to a file and not to ours: go test waits for everyone who holds its output.
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.bin, "postgres"), args...)
	c.prepare(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	c.cmd, c.gone = cmd, make(chan struct{})
	go func() {
		cmd.Wait() //nolint:errcheck // why it ended is in its log
		close(c.gone)
	}()
	if err := c.ready(); err != nil {
		c.stop(Crash) //nolint:errcheck // the reason is err
		out, _ := os.ReadFile(c.log())
		return fmt.Errorf("%w\n%s", err, tail(out))
	}
	return nil
}

// ready waits until the server takes connections.
func (c *Cluster) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		err := c.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.gone:
			return errors.New("the server ended at once")
		case <-ctx.Done():
			return fmt.Errorf("the server takes no connections after %s: %w", timeout, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ask makes sure that the server which answers on the port is this one.
func (c *Cluster) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	c.version = number(conn.PgConn().ParameterStatus("server_version"))
	var dir string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir); err != nil {
		return err
	}
	if dir != c.data() {
		return fmt.Errorf("port %d belongs to the server in %s", c.port, dir)
	}
	return nil
}

// stop signals the server and waits for its end.
func (c *Cluster) stop(m Mode) error {
	if c.cmd == nil {
		return nil
	}
	var sessions []int
	if m == Crash { // they outlive the server for a moment, and answer
		sessions = stopAndList(c.cmd.Process.Pid)
	}
	if err := c.cmd.Process.Signal(syscall.Signal(m)); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-c.gone:
	case <-time.After(timeout):
		return fmt.Errorf("the server did not end within %s", timeout)
	}
	c.cmd = nil
	killAll(sessions)
	// A killed server leaves its pid file behind. The watchdog must not read a number there that may be another
	// process's by now.
	if err := os.Remove(c.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (c *Cluster) pidFile() string { return filepath.Join(c.data(), "postmaster.pid") }

// remove stops the server and removes its directory. What cannot be removed here, the watchdog removes.
func (c *Cluster) remove() {
	if err := c.stop(Immediate); err != nil {
		fmt.Fprintf(os.Stderr, "pgtest: %v\n", err)
	}
	if err := os.RemoveAll(c.dir); err != nil {
		fmt.Fprintf(os.Stderr, "pgtest: %v\n", err)
	}
	if c.guard != nil {
		c.guard.Close()
		c.watchdog.Wait() //nolint:errcheck // it has done what it could
		c.guard = nil
	}
}

// watchdogScript waits for the end of its input, which comes when the test process has gone, however it went. Then it
// ends the server and removes its directory.
const watchdogScript = `
trap '' HUP INT QUIT TERM
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
	kill -QUIT "$pid" 2>/dev/null
	n=0
	while kill -0 "$pid" 2>/dev/null && [ "$n" -lt 50 ]; do n=$((n + 1)); sleep 0.1; done
	kill -KILL "$pid" 2>/dev/null
fi
rm -rf "$1"
`

// watch starts the watchdog. A signal at the death of the parent (Linux) would stop the server too, but it leaves the
// directory behind, is bound to a thread of the parent, and exists on one system only.
func (c *Cluster) watch() error {
	c.watchdog = exec.Command("sh", "-c", watchdogScript, "pgtest-watchdog", c.dir)
	c.watchdog.Dir = string(filepath.Separator)
	c.watchdog.SysProcAttr = attributes(nil)
	guard, err := c.watchdog.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.watchdog.Start(); err != nil {
		return err
	}
	c.guard = guard
	return nil
}

// freePort asks the system for a port that nobody uses on the loopback address.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tail returns the end of a log, for an error message.
func tail(out []byte) string {
	const most = 2000
	out = bytes.TrimSpace(out)
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return strings.ToValidUTF8(string(out), "")
}
