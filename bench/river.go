package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// River's settings, as tuned as they go: with its defaults (100 ms between fetches) it does a tenth of that.
const (
	riverWorkers  = 1000
	riverCooldown = 2 * time.Millisecond // also limits how often an inserting client notifies
	riverBatch    = 1000
)

type riverArgs struct {
	Began int64 `json:"began"`
}

// Kind implements river.JobArgs.
func (riverArgs) Kind() string { return "noop" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	started func(time.Time)
}

// Work implements river.Worker.
func (w *riverWorker) Work(_ context.Context, j *river.Job[riverArgs]) error {
	w.started(fromNano(j.Args.Began))
	return nil
}

// riverOf is River on one of its drivers.
type riverOf[T any] struct {
	told   about
	poll   time.Duration
	clean  func(context.Context) (riverdriver.Driver[T], func() error, error)
	driver riverdriver.Driver[T]
	shut   func() error
	count  func(context.Context) (int, error)
	client *river.Client[T] // inserts only, as another process would
}

func openRiverPostgres(_ context.Context, p *place) (peer, error) {
	if p.noPG != nil {
		return nil, p.noPG
	}
	r := &riverOf[pgx.Tx]{poll: 100 * time.Millisecond}
	r.told = about{Name: "River", Store: onPostgres, Settings: fmt.Sprintf("riverpgxv5; MaxWorkers %d, FetchCooldown %s, FetchPollInterval %s, pool %d; InsertManyFast of %d", riverWorkers, riverCooldown, r.poll, conns, riverBatch)}
	r.clean = func(ctx context.Context) (riverdriver.Driver[pgx.Tx], func() error, error) {
		pool, err := p.pool(ctx, "river")
		if err != nil {
			return nil, nil, err
		}
		r.count = func(ctx context.Context) (int, error) { return riverLeft(ctx, pool) }
		return riverpgxv5.New(pool), func() error { pool.Close(); return nil }, nil
	}
	return r, nil
}

// riverLeft asks state by state, for which River has an index.
func riverLeft(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	err = pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM river_job WHERE state = 'available') + (SELECT count(*) FROM river_job WHERE state = 'running')
  + (SELECT count(*) FROM river_job WHERE state = 'retryable')`).Scan(&n)
	return n, err
}

func openRiverSQLite(_ context.Context, p *place) (peer, error) {
	r := &riverOf[*sql.Tx]{poll: 50 * time.Millisecond}
	r.told = about{Name: "River", Store: onSQLite, Settings: fmt.Sprintf("riversqlite; modernc.org/sqlite, WAL, synchronous FULL, one connection; MaxWorkers %d, FetchCooldown %s, FetchPollInterval %s", riverWorkers, riverCooldown, r.poll)}
	r.clean = func(ctx context.Context) (riverdriver.Driver[*sql.Tx], func() error, error) {
		path, err := p.file("river")
		if err != nil {
			return nil, nil, err
		}
		db, err := openSQLite(path, 1)
		if err != nil {
			return nil, nil, err
		}
		r.count = func(ctx context.Context) (n int, err error) {
			err = db.QueryRowContext(ctx, "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&n)
			return n, err
		}
		return riversqlite.New(db), db.Close, nil
	}
	return r, nil
}

func (r *riverOf[T]) about() about {
	r.told.Version, r.told.Keeps, r.told.InProcess, r.told.Share = version("github.com/riverqueue/river"), "the row, for a day; no attempt log", true, 1
	return r.told
}

func (r *riverOf[T]) config() *river.Config {
	return &river.Config{Logger: slog.New(slog.DiscardHandler), FetchCooldown: riverCooldown, FetchPollInterval: r.poll}
}

func (r *riverOf[T]) reset(ctx context.Context) (err error) {
	if err := r.close(); err != nil {
		return err
	}
	if r.driver, r.shut, err = r.clean(ctx); err != nil {
		return err
	}
	m, err := rivermigrate.New(r.driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	r.client, err = river.NewClient(r.driver, r.config())
	return err
}

func (r *riverOf[T]) close() error {
	if r.shut == nil {
		return nil
	}
	shut := r.shut
	r.shut = nil
	return shut()
}

const riverNoSteps cannot = "its open-source part records no steps, and marks nothing before an effect"

func (r *riverOf[T]) insert(ctx context.Context, w work, began time.Time) error {
	if w.Kind != noop.Kind {
		return riverNoSteps
	}
	_, err := r.client.Insert(ctx, riverArgs{began.UnixNano()}, nil)
	return err
}

func (r *riverOf[T]) fill(ctx context.Context, w work, n int) error {
	if w.Kind != noop.Kind {
		return riverNoSteps
	}
	for ; n > 0; n -= riverBatch {
		batch := make([]river.InsertManyParams, min(n, riverBatch))
		for i := range batch {
			batch[i].Args = riverArgs{}
		}
		if _, err := r.client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

func (r *riverOf[T]) start(ctx context.Context, w work, started func(time.Time)) (func() error, error) {
	if w.Kind != noop.Kind {
		return nil, riverNoSteps
	}
	c := r.config()
	c.Workers = river.NewWorkers()
	river.AddWorker(c.Workers, &riverWorker{started: started})
	c.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverWorkers}}
	client, err := river.NewClient(r.driver, c)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return client.Stop(ctx)
	}, nil
}

func (r *riverOf[T]) left(ctx context.Context) (int, error) { return r.count(ctx) }
