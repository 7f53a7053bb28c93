// Package pgtest gives a test a real PostgreSQL database.
//
// The server named by DAYBOOK_TEST_POSTGRES is used if it is set; otherwise one temporary server is started for each test
// process, the first time a test asks, from the PostgreSQL programs of the system. Nothing is downloaded. A test never
// passes because PostgreSQL is missing: it is skipped, loudly, and fails where CI or DAYBOOK_TEST_REQUIRE_POSTGRES is set.
//
// Only tests and the benchmarks import this package. Call it outside a testing/synctest bubble: a server does not live on bubble time.
package pgtest

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // so that sql.Open("pgx", pgtest.URL(t)) works

	"github.com/daybook-run/daybook/internal/memdir"
)

// Environment variables.
const (
	EnvServer  = "DAYBOOK_TEST_POSTGRES"         // URL of a server to use; its user must be allowed to create databases
	EnvRequire = "DAYBOOK_TEST_REQUIRE_POSTGRES" // "1": a missing PostgreSQL fails the test instead of skipping it
)

// timeout bounds every single thing the harness asks of a server.
const timeout = 60 * time.Second

// Main runs the tests of a package and then stops and removes the server they used, if there was one. It does not return.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// Without it the server goes away too, a moment after the test process has.
func Main(m *testing.M) {
	code := m.Run()
	shared.Lock()
	if shared.cluster != nil {
		shared.cluster.remove()
	}
	shared.Unlock()
	os.Exit(code)
}

// URL returns the address of an empty database of the test's own, which is dropped when the test ends. The server is
// tuned for speed: it forgets what it was told when the machine crashes. For crash tests take [Server].
func URL(t testing.TB) string {
	t.Helper()
	server := os.Getenv(EnvServer)
	if server == "" {
		server = sharedServer(t)
	}
	return createDatabase(t, server)
}

// Copy returns the address of a database of the test's own in which statements have been run already. They are run once a
// process, and what they left is copied, which is cheaper than to run them again. It is dropped when the test ends.
func Copy(t testing.TB, statements string) string {
	t.Helper()
	if server := os.Getenv(EnvServer); server != "" { // a template would stay behind there
		address := createDatabase(t, server)
		if err := execute(address, statements); err != nil {
			t.Fatalf("pgtest: fill a database: %v", err)
		}
		return address
	}
	server := sharedServer(t)
	how, err := template(statements)
	if err != nil {
		t.Fatalf("pgtest: make a template: %v", err)
	}
	return createDatabase(t, server, how)
}

// template makes sure that there is a database of the shared server that holds what statements leave, and returns how a copy
// of it is asked for.
func template(statements string) (how string, err error) {
	shared.Lock()
	defer shared.Unlock()
	if how, ok := shared.templates[statements]; ok {
		return how, nil
	}
	c, name := shared.cluster, fmt.Sprintf("daybook_template_%d", len(shared.templates)+1)
	if err := execute(c.url("postgres"), "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	if err := execute(c.url(name), statements); err != nil {
		return "", err
	}
	how = " TEMPLATE " + name
	if c.version >= 15 { // before it, this was the only way
		how += " STRATEGY file_copy"
	}
	if shared.templates == nil {
		shared.templates = map[string]string{}
	}
	shared.templates[statements] = how
	return how, nil
}

// shared is the one server of this test process.
var shared struct {
	sync.Mutex
	cluster   *Cluster
	err       error             // it could not be started: say so to every test, and try only once
	templates map[string]string // by what they hold: how a copy is asked for
}

// sharedServer returns the URL of the maintenance database of the server of this process.
func sharedServer(t testing.TB) string {
	t.Helper()
	bin := programs(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil && shared.err == nil {
		// Nothing here outlives the test process, so nothing has to reach the disk.
		shared.cluster, shared.err = newCluster(bin, memdir.Parent(), []string{"fsync=off", "full_page_writes=off"}, (*Cluster).initialise)
	}
	if shared.err != nil {
		t.Fatalf("pgtest: %v", shared.err)
	}
	return shared.cluster.url("postgres")
}

// databases numbers the databases of this process.
var databases atomic.Int64

// createDatabase makes a database on a server, empty unless it is told how, and drops it when the test ends.
func createDatabase(t testing.TB, server string, how ...string) string {
	t.Helper()
	// The name carries process and time, because a server named by the environment is shared by processes and by days.
	name := fmt.Sprintf("daybook_test_%d_%d_%d", os.Getpid(), time.Now().UnixNano(), databases.Add(1))
	if err := execute(server, "CREATE DATABASE "+name+strings.Join(how, "")); err != nil {
		t.Fatalf("pgtest: create database: %v", err)
	}
	t.Cleanup(func() {
		// FORCE: a connection that a test forgot must not keep the database alive.
		if err := execute(server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Logf("pgtest: drop database: %v", err)
		}
	})
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("pgtest: %s is not a postgres:// URL", EnvServer)
	}
	u.Path = "/" + name
	return u.String()
}

// execute runs one statement on a connection of its own.
func execute(server, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// That tests are skipped is said once a process.
var (
	warn     sync.Once
	warnings io.Writer = os.Stderr
)

// programs returns the directory of the PostgreSQL programs. If there is none, the test ends here.
func programs(t testing.TB) string {
	t.Helper()
	bin, err := findPrograms()
	if err != nil {
		missing(t, err)
	}
	return bin
}

// missing ends a test that cannot have a server: skipped, and said even where go test would not show it, or failed.
func missing(t testing.TB, err error) {
	t.Helper()
	const hint = "install PostgreSQL (Debian: apt-get install postgresql; macOS: brew install postgresql@17), " +
		"or set " + EnvServer + " to the URL of a server where databases may be created"
	if required() {
		t.Fatalf("pgtest: %v: %s", err, hint)
	}
	warn.Do(func() {
		fmt.Fprintf(warnings, "\n*** SKIPPED: tests against PostgreSQL. %v: %s ***\n\n", err, hint)
	})
	t.Skipf("pgtest: %v: %s", err, hint)
}

// required reports whether a missing PostgreSQL is a failure.
func required() bool {
	for _, name := range []string{"CI", EnvRequire} {
		if on, err := strconv.ParseBool(os.Getenv(name)); err == nil && on {
			return true
		}
	}
	return false
}
