package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Pooler starts PgBouncer in transaction mode in front of the database of a URL and returns the address through it. It ends
// with the test. As with PostgreSQL, a test without it is skipped loudly, and fails where that is asked for.
func Pooler(t testing.TB, server string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = "/usr/sbin/pgbouncer", nil // Debian keeps it off the PATH of users
		if !executable(program) {
			err = errors.New("pgbouncer is not installed")
		}
	}
	if err != nil {
		missing(t, err)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	user, err := serverAccount()
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	dir, err := makeDir(os.TempDir(), user)
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port, err := freePort()
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
server_login_retry = 1
`, u.Hostname(), u.Port(), port)
	path := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(path, []byte(settings), 0o644); err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	defer log.Close()
	cmd := exec.Command(program, "-q", path)
	c := &Cluster{dir: dir, user: user}
	c.prepare(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	gone := make(chan struct{})
	go func() { _ = cmd.Wait(); close(gone) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-gone
	})
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	address := u.String()
	for end := time.Now().Add(timeout); ; {
		// The statement is sent without preparing it.
		if err = execute(address+"&default_query_exec_mode=simple_protocol", "SELECT 1"); err == nil {
			return address
		}
		select {
		case <-gone:
		case <-time.After(20 * time.Millisecond):
			if time.Now().Before(end) {
				continue
			}
		}
		out, _ := os.ReadFile(log.Name())
		t.Fatalf("pgtest: pooler: %v\n%s", err, tail(out))
	}
}
