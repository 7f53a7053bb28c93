package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // the driver of the program daybook, and the one that River is tested with

	"github.com/daybook-run/daybook/internal/pgtest"
)

// pgSettings are those of the one PostgreSQL server. fsync and synchronous_commit are on, which is their default: what was
// reported done survives a power cut. Checkpoints are rare, so that none of them meets one peer and not another.
var pgSettings = []string{"shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=1h", "shared_preload_libraries=pg_stat_statements"}

// conns is how many connections each peer may have.
const conns = 16

// place is the common ground: one PostgreSQL server, one directory for SQLite files, and Redis servers, all on one disk.
type place struct {
	dir     string
	url     func(database string) string // of PostgreSQL; nil: there is none
	noPG    error
	redises []*exec.Cmd
	stopPG  func()
}

// newPlace makes the common ground. What cannot be had is told by those who ask for it.
func newPlace(ctx context.Context) (p *place, err error) {
	p = &place{stopPG: func() {}}
	if p.dir, err = os.MkdirTemp("", "daybook-bench-"); err != nil {
		return nil, err
	}
	cluster, stop, err := pgtest.Start(pgSettings...)
	if p.noPG = err; err != nil {
		return p, nil
	}
	p.stopPG = stop
	p.url = func(database string) string { return strings.Replace(cluster.URL(), "/daybook?", "/"+database+"?", 1) }
	if err := p.counting(ctx, "none"); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *place) close() error {
	var errs []error
	for _, c := range p.redises {
		errs = append(errs, c.Process.Signal(os.Interrupt))
		_ = c.Wait() // it was interrupted
	}
	p.stopPG()
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// postgres makes an empty database, in the place of one that its owner had before, and returns its address.
func (p *place) postgres(ctx context.Context, name string) (string, error) {
	if p.noPG != nil {
		return "", p.noPG
	}
	if err := p.admin(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "CREATE DATABASE "+name, "CHECKPOINT"); err != nil {
		return "", err
	}
	return p.url(name), nil
}

// pool opens connections to an empty database.
func (p *place) pool(ctx context.Context, name string) (*pgxpool.Pool, error) {
	url, err := p.postgres(ctx, name)
	if err != nil {
		return nil, err
	}
	return connect(ctx, url)
}

func connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	c.MaxConns = conns
	return pgxpool.NewWithConfig(ctx, c)
}

// counting says which statements the server counts, top or none. It costs a little, so they are counted only where that is asked.
func (p *place) counting(ctx context.Context, which string) error {
	return p.admin(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements", "ALTER SYSTEM SET pg_stat_statements.track = '"+which+"'", "SELECT pg_reload_conf()")
}

// pgCounts are those of the server. Its own database is left out, as it is asked there.
func (p *place) pgCounts(ctx context.Context) (n counts, err error) {
	c, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return n, err
	}
	defer c.Close(ctx)
	err = c.QueryRow(ctx, `SELECT COALESCE(sum(s.calls), 0)::float8, (pg_current_wal_insert_lsn() - '0/0')::float8
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname <> 'postgres'`).Scan(&n.statements, &n.bytes)
	return n, err
}

// heaviest tells which statements took the server the most time since it was told last.
func (p *place) heaviest(ctx context.Context, w io.Writer) error {
	c, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, `SELECT s.calls, s.total_exec_time, s.rows, s.wal_bytes::float8, s.shared_blks_hit, regexp_replace(left(s.query, 300), '\s+', ' ', 'g')
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname <> 'postgres' ORDER BY s.total_exec_time DESC LIMIT 40`)
	if err != nil {
		return err
	}
	var calls, touched, pages int64
	var took, log float64
	var query string
	fmt.Fprintf(w, "%8s %10s %9s %10s %9s\n", "calls", "ms", "rows", "log bytes", "pages")
	if _, err := pgx.ForEachRow(rows, []any{&calls, &took, &touched, &log, &pages, &query}, func() error {
		_, err := fmt.Fprintf(w, "%8d %10.1f %9d %10.0f %9d  %s\n", calls, took, touched, log, pages, query)
		return err
	}); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "SELECT pg_stat_statements_reset()")
	return err
}

// admin runs statements in the server's own database.
func (p *place) admin(ctx context.Context, statements ...string) error {
	c, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for _, do := range statements {
		if _, err := c.Exec(ctx, do); err != nil {
			return err
		}
	}
	return nil
}

// sqliteSettings are those of every SQLite file: the ones that Daybook asks of its handles.
const sqliteSettings = "_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate"

// file names a file that is not there, in an empty directory of its owner's, in the place of one that he had before. Daybook keeps a
// witness beside its file, and would not believe an empty one.
func (p *place) file(owner string) (string, error) {
	dir := filepath.Join(p.dir, owner)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return "", err
	}
	return filepath.Join(dir, "bench.db"), nil
}

// openSQLite opens a file with so many connections.
func openSQLite(path string, conns int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?"+sqliteSettings)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// redis starts a server with a setting of appendfsync, and returns its address.
func (p *place) redis(ctx context.Context, appendfsync string) (string, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("redis-server is not installed (Debian: apt-get install redis-server): %w", err)
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(p.dir, "redis-"+appendfsync)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	var said bytes.Buffer
	cmd := exec.Command(bin, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--appendonly", "yes", "--appendfsync", appendfsync, "--save", "")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return "", err
	}
	p.redises = append(p.redises, cmd)
	addr := "127.0.0.1:" + strconv.Itoa(port)
	r := redis.NewClient(&redis.Options{Addr: addr})
	defer r.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err = r.Ping(ctx).Err(); err == nil {
			return addr, nil
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("redis-server does not answer: %w\n%s", err, said.Bytes())
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
