// Package mariatest gives a test a real MariaDB: a database of whoever uses Daybook, to be read.
//
// The server named by DAYBOOK_TEST_MARIADB is used if it is set; otherwise a temporary one is started for the test, from the
// programs of the system. A test never passes because MariaDB is missing: it is skipped, loudly, and fails where CI or
// DAYBOOK_TEST_REQUIRE_MARIADB is set. Only tests import this package.
package mariatest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Environment variables.
const (
	EnvServer  = "DAYBOOK_TEST_MARIADB"         // mysql:// URL of a server to use; its user must be allowed to create databases
	EnvRequire = "DAYBOOK_TEST_REQUIRE_MARIADB" // "1": a missing MariaDB fails the test instead of skipping it
)

// timeout bounds everything that is asked of a server.
const timeout = 60 * time.Second

// URL returns the mysql:// address of an empty database, which is gone when the test has ended.
func URL(t testing.TB) string {
	t.Helper()
	server := os.Getenv(EnvServer)
	if server == "" {
		server = start(t)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("mariatest: %s is not a URL", EnvServer)
	}
	name := fmt.Sprintf("daybook_test_%d_%d", os.Getpid(), time.Now().UnixNano())
	u.Path = "/"
	execute(t, u, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, u, "DROP DATABASE "+name) })
	database := *u
	database.Path = "/" + name
	return database.String()
}

func execute(t testing.TB, server *url.URL, statement string) {
	t.Helper()
	db, err := Open(server.String())
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(context.WithoutCancel(t.Context()), statement)
	}
	if err != nil {
		t.Fatalf("mariatest: %v", err)
	}
}

// Open opens a database to fill it.
func Open(address string) (*sql.DB, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName, c.Timeout = "tcp", u.Host, strings.TrimPrefix(u.Path, "/"), timeout
	c.ParseTime, c.MultiStatements, c.Logger = true, true, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// keeper runs the server and ends it when its own input ends: the test has, or its process is gone, however it went.
const keeper = `
trap '' HUP INT QUIT TERM
dir=$1
shift
"$@" >"$dir/log" 2>&1 </dev/null &
pid=$!
cat >/dev/null
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
rm -rf "$dir"
`

func start(t testing.TB) string {
	t.Helper()
	server, install, err := programs()
	if err != nil {
		missing(t, err)
	}
	dir, err := os.MkdirTemp("", "daybook-mariatest-")
	if err != nil {
		t.Fatal(err)
	}
	data, temporary := filepath.Join(dir, "data"), filepath.Join(dir, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	user := []string{}
	if os.Geteuid() == 0 {
		user = []string{"--user=root"} // or it refuses
	}
	// A server that starts removes the temporary tables of every other in a directory they share, while these use them.
	args := append([]string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + temporary, "--auth-root-authentication-method=normal", "--skip-test-db"}, user...)
	if out, err := exec.CommandContext(t.Context(), install, args...).CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		t.Fatalf("mariatest: %s: %v\n%s", install, err, out)
	}
	port := freePort(t)
	args = append([]string{"-c", keeper, "mariatest", dir, server, "--no-defaults", "--datadir=" + data, "--tmpdir=" + temporary, "--socket=" + filepath.Join(dir, "s"), "--port=" + strconv.Itoa(port),
		"--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--default-time-zone=-05:00", "--character-set-server=utf8mb4"}, user...)
	keep := exec.Command("sh", args...)
	keep.Dir = string(filepath.Separator)
	guard, err := keep.StdinPipe()
	if err == nil {
		err = keep.Start()
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		t.Fatalf("mariatest: %v", err)
	}
	t.Cleanup(func() {
		_ = guard.Close()
		_ = keep.Wait() // it has done what it could
	})
	address := fmt.Sprintf("mysql://root@127.0.0.1:%d/", port)
	if err := answers(t.Context(), address); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("mariatest: %v\n%s", err, log)
	}
	return address
}

// answers waits until a server takes connections.
func answers(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	db, err := Open(address)
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func programs() (server, install string, err error) {
	for _, name := range []string{"mariadbd", "/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd"} {
		if server, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err == nil {
		install, err = exec.LookPath("mariadb-install-db")
	}
	if err != nil {
		return "", "", errors.New("MariaDB is not installed (no mariadbd and mariadb-install-db found)")
	}
	return server, install, nil
}

func missing(t testing.TB, err error) {
	t.Helper()
	const hint = "install MariaDB (Debian: apt-get install mariadb-server-core mariadb-client-core), or set " + EnvServer + " to the URL of a server where databases may be created"
	for _, name := range []string{"CI", EnvRequire} {
		if on, bad := strconv.ParseBool(os.Getenv(name)); bad == nil && on {
			t.Fatalf("mariatest: %v: %s", err, hint)
		}
	}
	fmt.Fprintf(os.Stderr, "\n*** SKIPPED: tests against MariaDB. %v: %s ***\n\n", err, hint)
	t.Skipf("mariatest: %v: %s", err, hint)
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
