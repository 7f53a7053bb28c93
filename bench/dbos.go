package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	dbosWorkers = 100
	dbosPoll    = 100 * time.Millisecond
	dbosCallers = 16
)

// dbosPeer is DBOS Transact. A piece of work is a workflow with so many steps. A step is recorded when it is done; nothing is
// marked before, so one whose end was not recorded is done again.
type dbosPeer struct {
	p     *place
	url   string
	asks  *dbosNode // works on no queue, as another process that asks
	queue dbos.Queue
}

func openDBOS(_ context.Context, p *place) (peer, error) {
	if p.noPG != nil {
		return nil, p.noPG
	}
	return &dbosPeer{p: p}, nil
}

func (d *dbosPeer) about() about {
	return about{Name: "DBOS Go", Store: onPostgres, Version: version("github.com/dbos-inc/dbos-transact-golang"), Share: 0.05, InProcess: true,
		Settings: fmt.Sprintf("queue with WorkerConcurrency %d, base poll %s, pool %d; filled by %d callers", dbosWorkers, dbosPoll, conns, dbosCallers),
		Keeps:    "the workflow with its steps"}
}

type dbosInput struct {
	Began int64
	Steps int
}

const dbosQueue = "work"

// join joins the database in a name, with the workflow that work is, and works on a queue: a name that no queue has, to only
// insert as another process would.
func (d *dbosPeer) join(ctx context.Context, name, queue string, started func(time.Time)) (*dbosNode, error) {
	pool, err := connect(ctx, d.url)
	if err != nil {
		return nil, err
	}
	n := &dbosNode{pool: pool}
	if n.Context, err = dbos.NewContext(ctx, dbos.Config{AppName: "bench", ExecutorID: name, ApplicationVersion: "v1", SystemDBPool: pool, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return nil, err
	}
	n.flow = func(c dbos.Context, in dbosInput) (int, error) {
		started(fromNano(in.Began))
		for i := range in.Steps {
			if _, err := dbos.RunAsStep(c, func(context.Context) (int, error) { return i, nil }); err != nil {
				return 0, err
			}
		}
		return in.Steps, nil
	}
	dbos.RegisterWorkflow(n.Context, n.flow, dbos.WithWorkflowName("work"))
	dbos.ListenQueues(n.Context, queue)
	return n, n.Launch()
}

// dbosNode is one process on the database.
type dbosNode struct {
	dbos.Context
	pool *pgxpool.Pool
	flow dbos.Workflow[dbosInput, int]
}

func (n *dbosNode) close() error {
	dbos.Shutdown(n.Context, 10*time.Second)
	n.pool.Close()
	return nil
}

func (d *dbosPeer) reset(ctx context.Context) (err error) {
	if err := d.close(); err != nil {
		return err
	}
	if d.url, err = d.p.postgres(ctx, "dbos"); err != nil {
		return err
	}
	if d.asks, err = d.join(ctx, "asks", "none", func(time.Time) {}); err != nil {
		return err
	}
	d.queue, err = dbos.RegisterQueue(d.asks.Context, dbosQueue, dbos.WithWorkerConcurrency(dbosWorkers), dbos.WithQueueBasePollingInterval(dbosPoll))
	return err
}

func (d *dbosPeer) close() error {
	if d.asks == nil {
		return nil
	}
	asks := d.asks
	d.asks = nil
	return asks.close()
}

func dbosSteps(w work) (int, error) {
	switch w.Kind {
	case once.Kind: // the nearest it has
		return 1, nil
	case effects.Kind:
		return 0, cannot("marks nothing before an effect: a step whose end was not recorded is done again")
	}
	return w.Steps, nil
}

func (d *dbosPeer) insert(_ context.Context, w work, began time.Time) error {
	n, err := dbosSteps(w)
	if err != nil {
		return err
	}
	_, err = dbos.RunWorkflow(d.asks.Context, d.asks.flow, dbosInput{began.UnixNano(), n}, dbos.WithQueue(d.queue))
	return err
}

func (d *dbosPeer) fill(ctx context.Context, w work, n int) error {
	return fillOneByOne(ctx, d, w, n, dbosCallers)
}

func (d *dbosPeer) start(ctx context.Context, w work, started func(time.Time)) (func() error, error) {
	if _, err := dbosSteps(w); err != nil {
		return nil, err
	}
	n, err := d.join(ctx, "works", dbosQueue, started)
	if err != nil {
		return nil, err
	}
	return n.close, nil
}

func (d *dbosPeer) left(ctx context.Context) (n int, err error) {
	err = d.asks.pool.QueryRow(ctx, "SELECT count(*) FROM dbos.workflow_status WHERE status <> 'SUCCESS'").Scan(&n)
	return n, err
}
