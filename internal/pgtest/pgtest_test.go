package pgtest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// envChild makes this test binary a test process that has a server and then hangs.
const envChild = "PGTEST_CHILD"

func TestMain(m *testing.M) { Main(m) }

func connect(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestEachCallGivesADatabaseOfItsOwn(t *testing.T) {
	a, b := connect(t, URL(t)), connect(t, URL(t))
	mustExec(t, a, "CREATE TABLE only_in_a (id BIGINT)")
	if n := count(t, b, "SELECT count(*) FROM pg_tables WHERE tablename = 'only_in_a'"); n != 0 {
		t.Error("a table of one database is seen in the other")
	}
}

func TestACopyHoldsWhatWasRunOnce(t *testing.T) {
	const statements = "CREATE TABLE kept (id BIGINT); INSERT INTO kept VALUES (1)"
	t.Run("a server of the process", func(t *testing.T) { copies(t, statements) })
	t.Run("a server of the environment", func(t *testing.T) {
		t.Setenv(EnvServer, Server(t).url("postgres"))
		copies(t, statements)
	})
}

func copies(t *testing.T, statements string) {
	a, b := connect(t, Copy(t, statements)), connect(t, Copy(t, statements))
	mustExec(t, a, "INSERT INTO kept VALUES (2)")
	if n, m := count(t, a, "SELECT count(*) FROM kept"), count(t, b, "SELECT count(*) FROM kept"); n != 2 || m != 1 {
		t.Errorf("%d rows in the copy that was written to, %d in the other", n, m)
	}
	other := connect(t, Copy(t, "CREATE TABLE another (id BIGINT)"))
	if n := count(t, other, "SELECT count(*) FROM pg_tables WHERE tablename = 'kept'"); n != 0 {
		t.Error("a copy holds what other statements left")
	}
	if n := count(t, connect(t, URL(t)), "SELECT count(*) FROM pg_tables WHERE tablename IN ('kept', 'another')"); n != 0 {
		t.Error("an empty database is not empty")
	}
}

func TestADatabaseIsDroppedWithItsTest(t *testing.T) {
	var name string
	t.Run("test", func(t *testing.T) {
		db, err := sql.Open("pgx", URL(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
		// The connection is left open on purpose.
	})
	db := connect(t, URL(t))
	if n := count(t, db, "SELECT count(*) FROM pg_database WHERE datname = '"+name+"'"); n != 0 {
		t.Errorf("database %s still exists", name)
	}
}

func TestKeysOfTheFieldSortByLanguage(t *testing.T) {
	db := connect(t, URL(t))
	var provider string
	err := db.QueryRowContext(t.Context(),
		"SELECT datlocprovider FROM pg_database WHERE datname = current_database()").Scan(&provider)
	if err != nil || provider != "i" {
		t.Logf("the server has no ICU: a missing COLLATE \"C\" would not be noticed (%v)", err)
		return
	}
	// 'a' < 'B' in every language, 'B' < 'a' in ASCII.
	if n := count(t, db, "SELECT CASE WHEN 'a'::text < 'B'::text THEN 1 ELSE 0 END"); n != 1 {
		t.Error("the database sorts by bytes")
	}
}

func TestAServerKeepsWhatItAcknowledged(t *testing.T) {
	c := Server(t)
	db := connect(t, c.URL())
	for _, setting := range []string{"fsync", "synchronous_commit"} {
		var value string
		if err := db.QueryRowContext(t.Context(), "SHOW "+setting).Scan(&value); err != nil || value != "on" {
			t.Errorf("%s is %q, want on (%v)", setting, value, err)
		}
	}
	mustExec(t, db, "CREATE TABLE kept (id BIGINT PRIMARY KEY)")
	for i, mode := range []Mode{Fast, Immediate, Crash} {
		mustExec(t, db, fmt.Sprintf("INSERT INTO kept VALUES (%d)", i))
		c.Stop(mode)
		if err := db.PingContext(t.Context()); err == nil {
			t.Fatal("a stopped server answers")
		}
		c.Start()
		if n := count(t, db, "SELECT count(*) FROM kept"); n != i+1 {
			t.Errorf("after stop %d: %d rows, want %d", i, n, i+1)
		}
	}
}

func TestAServerTakesSettings(t *testing.T) {
	c := Server(t, "max_connections=7")
	var value string
	db := connect(t, c.Database())
	if err := db.QueryRowContext(t.Context(), "SHOW max_connections").Scan(&value); err != nil || value != "7" {
		t.Errorf("max_connections = %q, want 7 (%v)", value, err)
	}
}

func TestTheEnvironmentNamesAServer(t *testing.T) {
	c := Server(t)
	t.Setenv(EnvServer, c.url("postgres")+"&application_name=named")
	url := URL(t)
	if !strings.Contains(url, fmt.Sprintf(":%d/daybook_test_", c.port)) || !strings.Contains(url, "application_name=named") {
		t.Errorf("URL is %s, want a database of its own on the server named", url)
	}
	if n := count(t, connect(t, url), "SELECT 1"); n != 1 {
		t.Error("the server does not answer")
	}
}

// TestAKilledProcessLeavesNothing kills a test process that has a server.
func TestAKilledProcessLeavesNothing(t *testing.T) {
	programs(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), envChild+"=1", EnvServer+"=")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	for s := bufio.NewScanner(out); s.Scan(); {
		if d, ok := strings.CutPrefix(s.Text(), "dir "); ok {
			dir = d
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if dir == "" {
		t.Fatal("the child did not start a server")
	}
	// There is no signal to wait for: the watchdog belongs to a process that is gone.
	for end := time.Now().Add(30 * time.Second); ; {
		_, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is still there", dir)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// TestChild is the process that TestAKilledProcessLeavesNothing kills.
func TestChild(t *testing.T) {
	if os.Getenv(envChild) == "" {
		return
	}
	URL(t)
	fmt.Println("dir", shared.cluster.dir)
	<-context.Background().Done() // for ever
}

// stub is a test that records how it was ended.
type stub struct {
	testing.TB
	ended string
}

func (s *stub) Helper()               {}
func (s *stub) Fatalf(string, ...any) { s.ended = "failed"; panic(s) }
func (s *stub) Skipf(string, ...any)  { s.ended = "skipped"; panic(s) }

func TestWithoutPostgreSQLATestIsSkippedOrFails(t *testing.T) {
	var said strings.Builder
	warnings, warn = &said, sync.Once{}
	defer func() { warnings, warn = os.Stderr, sync.Once{} }()
	for _, c := range []struct{ ci, require, want string }{
		{"", "", "skipped"}, {"true", "", "failed"}, {"", "1", "failed"}, {"false", "0", "skipped"},
	} {
		t.Setenv("CI", c.ci)
		t.Setenv(EnvRequire, c.require)
		s := &stub{TB: t}
		func() {
			defer func() { recover() }()
			missing(s, errors.New("PostgreSQL is not installed"))
		}()
		if s.ended != c.want {
			t.Errorf("CI=%q %s=%q: %s, want %s", c.ci, EnvRequire, c.require, s.ended, c.want)
		}
	}
	if n := strings.Count(said.String(), "SKIPPED"); n != 1 {
		t.Errorf("said %d times that tests are skipped, want once", n)
	}
}

func TestTheNewestVersionComesFirst(t *testing.T) {
	for path, want := range map[string]int{"/usr/lib/postgresql/9/bin": 9, "/usr/lib/postgresql/15/bin": 15, "/bin": 0} {
		if n := number(path); n != want {
			t.Errorf("number(%s) = %d, want %d", path, n, want)
		}
	}
}
