package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby makes a standby of a server and has every commit of that server wait for it: what was acknowledged is on both.
// It is removed when the test ends.
func (c *Cluster) Standby() *Cluster {
	c.t.Helper()
	s, err := newCluster(c.bin, os.TempDir(), c.settings, c.copyTo)
	if err != nil {
		c.t.Fatalf("pgtest: standby: %v", err)
	}
	s.t = c.t
	c.t.Cleanup(s.remove)
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()"} {
		if err := execute(c.url("postgres"), statement); err != nil {
			c.t.Fatalf("pgtest: standby: %v", err)
		}
	}
	c.await("the standby follows", "SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = 'standby' AND sync_state = 'sync'")
	return s
}

// copyTo makes the data of a standby.
func (c *Cluster) copyTo(s *Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	defer cancel()
	source := fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=standby sslmode=disable", c.port)
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "pg_basebackup"), "-D", s.data(), "-d", source, "-R", "-X", "stream", "-c", "fast")
	s.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, tail(out))
	}
	return nil
}

// Promote makes a standby the primary and returns when it is.
func (c *Cluster) Promote() {
	c.t.Helper()
	if err := execute(c.url("postgres"), "SELECT pg_promote()"); err != nil {
		c.t.Fatalf("pgtest: promote: %v", err)
	}
	c.await("the standby is promoted", "SELECT NOT pg_is_in_recovery()")
}

// CutAll ends all sessions on the database but the one that asks, as an administrator does, and returns how many there were.
func (c *Cluster) CutAll() (n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.url("postgres"))
	if err == nil {
		defer conn.Close(ctx)
		err = conn.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'daybook'").Scan(&n)
	}
	if err != nil {
		c.t.Fatalf("pgtest: cut all: %v", err)
	}
	return n
}

// await waits until a question is answered with true.
func (c *Cluster) await(what, question string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		yes := false
		conn, err := pgx.Connect(ctx, c.url("postgres"))
		if err == nil {
			err = conn.QueryRow(ctx, question).Scan(&yes)
			_ = conn.Close(ctx)
		}
		if yes {
			return
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("pgtest: %s: not within %s: %v", what, timeout, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Both is the address of the database on several servers, of which the one is used that takes writes.
func Both(t testing.TB, servers ...*Cluster) string {
	t.Helper()
	u, err := url.Parse(servers[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	hosts := make([]string, len(servers))
	for i, s := range servers {
		hosts[i] = "127.0.0.1:" + strconv.Itoa(s.port)
	}
	u.Host = strings.Join(hosts, ",")
	q := u.Query()
	q.Set("target_session_attrs", "read-write")
	q.Set("connect_timeout", "5")
	u.RawQuery = q.Encode()
	return u.String()
}

// Leave leaves a standby behind: no commit of the server waits for it any more, and it is stopped. What is written from now on it
// does not know when it is started and promoted, unless the server still runs then.
func (c *Cluster) Leave(standby *Cluster) {
	c.t.Helper()
	for _, statement := range []string{"ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"} {
		if err := execute(c.url("postgres"), statement); err != nil {
			c.t.Fatalf("pgtest: leave a standby behind: %v", err)
		}
	}
	c.await("no commit waits for the standby", "SELECT current_setting('synchronous_standby_names') = ''")
	standby.Stop(Fast)
}
