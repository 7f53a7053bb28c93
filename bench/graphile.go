package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed graphile.js
var graphileScript []byte

// What npm installs, once, into the user's cache.
const graphilePackages = `{"private": true, "dependencies": {"graphile-worker": "0.17.3", "pg": "8.23.1"}}`

const graphileBatch = 1000

// graphile is graphile-worker: its worker runs in Node.js, and work is asked for by its SQL functions, as a program in any
// language does.
type graphile struct {
	p       *place
	dir     string // of the script and what npm installed
	version string
	url     string
	pool    *pgxpool.Pool
}

func openGraphile(ctx context.Context, p *place) (peer, error) {
	if p.noPG != nil {
		return nil, p.noPG
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	g := &graphile{p: p, dir: filepath.Join(cache, "daybook-bench", "graphile-worker")}
	return g, g.install(ctx)
}

// install brings the packages, unless an earlier run has.
func (g *graphile) install(ctx context.Context) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return fmt.Errorf("npm is not installed: %w", err)
	}
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(g.dir, "graphile.js"), graphileScript, 0o644); err != nil {
		return err
	}
	list := filepath.Join(g.dir, "package.json")
	if had, _ := os.ReadFile(list); string(had) != graphilePackages {
		if err := os.WriteFile(list, []byte(graphilePackages), 0o644); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts")
		cmd.Dir = g.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("npm install: %w\n%s", err, bytes.TrimSpace(out))
		}
	}
	var is struct{ Version string }
	text, err := os.ReadFile(filepath.Join(g.dir, "node_modules", "graphile-worker", "package.json"))
	if err != nil {
		_ = os.Remove(list) // so that it is installed the next time
		return err
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return err
	}
	node, err := exec.CommandContext(ctx, "node", "--version").Output()
	g.version = is.Version + ", Node.js " + strings.TrimSpace(string(node))
	return err
}

func (g *graphile) about() about {
	return about{Name: "graphile-worker", Store: onPostgres, Version: g.version, Share: 1, Keeps: "nothing: a job that is done is deleted",
		Settings: fmt.Sprintf("concurrentJobs 64, localQueue 1000, completeJobBatchDelay 5 ms, pollInterval 100 ms, pool %d; add_jobs of %d", conns, graphileBatch)}
}

func (g *graphile) node(ctx context.Context, what string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "node", "graphile.js", what, g.url)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "NODE_ENV=production")
	return cmd
}

func (g *graphile) reset(ctx context.Context) (err error) {
	if err := g.close(); err != nil {
		return err
	}
	if g.url, err = g.p.postgres(ctx, "graphile"); err != nil {
		return err
	}
	if g.pool, err = connect(ctx, g.url); err != nil {
		return err
	}
	if out, err := g.node(ctx, "migrate").CombinedOutput(); err != nil {
		return fmt.Errorf("migrate: %w\n%s", err, out)
	}
	return nil
}

func (g *graphile) close() error {
	if g.pool != nil {
		g.pool.Close()
		g.pool = nil
	}
	return nil
}

const graphileNoSteps cannot = "records no steps, and marks nothing before an effect"

func (g *graphile) insert(ctx context.Context, w work, began time.Time) error {
	if w.Kind != noop.Kind {
		return graphileNoSteps
	}
	_, err := g.pool.Exec(ctx, "SELECT graphile_worker.add_job('noop', json_build_object('t', $1::bigint))", began.UnixMicro())
	return err
}

func (g *graphile) fill(ctx context.Context, w work, n int) error {
	if w.Kind != noop.Kind {
		return graphileNoSteps
	}
	for ; n > 0; n -= graphileBatch {
		if _, err := g.pool.Exec(ctx, `SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
  SELECT ROW('noop', '{"t": 0}', NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec FROM generate_series(1, $1::int)))`, min(n, graphileBatch)); err != nil {
			return err
		}
	}
	return nil
}

func (g *graphile) start(ctx context.Context, w work, started func(time.Time)) (func() error, error) {
	if w.Kind != noop.Kind {
		return nil, graphileNoSteps
	}
	cmd := g.node(context.WithoutCancel(ctx), "work")
	var faults bytes.Buffer
	cmd.Stderr = &faults
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		return nil, fmt.Errorf("the worker did not start: %w\n%s", cmd.Wait(), faults.Bytes())
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for lines.Scan() {
			hear(lines.Text(), started)
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	return func() error {
		_ = in.Close()
		<-heard
		return cmd.Wait()
	}, nil
}

// hear reads one line of the worker. Its clock is that of this machine, so what it says it started at is as if we had seen it.
func hear(line string, started func(time.Time)) {
	if n, ok := strings.CutPrefix(line, "+"); ok {
		count, _ := strconv.Atoi(n)
		for range count {
			started(time.Time{})
		}
		return
	}
	began, at, _ := strings.Cut(line, " ")
	b, _ := strconv.ParseInt(began, 10, 64)
	a, _ := strconv.ParseInt(at, 10, 64)
	started(time.Now().Add(-time.Duration(a-b) * time.Microsecond))
}

func (g *graphile) left(ctx context.Context) (n int, err error) {
	err = g.pool.QueryRow(ctx, "SELECT count(*) FROM graphile_worker._private_jobs").Scan(&n)
	return n, err
}
