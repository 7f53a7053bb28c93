package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // on modernc.org/sqlite
)

const (
	dbosWorkers = 100
	dbosPoll    = 100 * time.Millisecond
	dbosCallers = 16
)

// dbosPeer is DBOS Transact. A piece of work is a workflow with so many steps. A step is recorded when it is done; nothing is
// marked before, so one whose end was not recorded is done again.
type dbosPeer struct {
	store store
	given string                                                                            // what a node is given to reach its database
	empty func(context.Context) error                                                       // makes an empty database
	join  func(context.Context, *dbos.Config) (count counter, shut func() error, err error) // connects a node to it
	asks  *dbosNode                                                                         // works on no queue, as another process that asks
	queue dbos.Queue
	next  atomic.Int64 // numbers the workflows
}

// counter runs the query by which what is left is counted.
type counter func(ctx context.Context, query string) (int, error)

func openDBOSPostgres(_ context.Context, p *place) (peer, error) {
	if p.noPG != nil {
		return nil, p.noPG
	}
	var url string
	return &dbosPeer{
		store: onPostgres, given: fmt.Sprintf("pool %d", conns),
		empty: func(ctx context.Context) (err error) {
			url, err = p.postgres(ctx, "dbos")
			return err
		},
		join: func(ctx context.Context, c *dbos.Config) (counter, func() error, error) {
			pool, err := connect(ctx, url)
			c.SystemDBPool = pool
			count := func(ctx context.Context, query string) (n int, err error) {
				err = pool.QueryRow(ctx, query).Scan(&n)
				return n, err
			}
			return count, func() error { pool.Close(); return nil }, err
		},
	}, nil
}

func openDBOSSQLite(_ context.Context, p *place) (peer, error) {
	var path string
	return &dbosPeer{
		store: onSQLite, given: "modernc.org/sqlite, WAL, synchronous FULL, one connection",
		empty: func(context.Context) (err error) {
			path, err = p.file("dbos")
			return err
		},
		join: func(_ context.Context, c *dbos.Config) (counter, func() error, error) {
			db, err := openSQLite(path, 1)
			if err != nil {
				return nil, nil, err
			}
			c.SQLiteSystemDB = db
			count := func(ctx context.Context, query string) (n int, err error) {
				err = db.QueryRowContext(ctx, query).Scan(&n)
				return n, err
			}
			return count, db.Close, nil
		},
	}, nil
}

func (d *dbosPeer) about() about {
	return about{Name: "DBOS Go", Store: d.store, Version: version("github.com/dbos-inc/dbos-transact-golang"), Share: 0.05, InProcess: true,
		Settings: fmt.Sprintf("%s; queue with WorkerConcurrency %d, base poll %s; filled by %d callers", d.given, dbosWorkers, dbosPoll, dbosCallers),
		Keeps:    "the workflow with its steps"}
}

type dbosInput struct {
	Began int64
	Steps int
}

const dbosQueue = "work"

// node joins the database under a name, with the workflow that work is, and works on a queue: one that nobody fills, to only
// insert as another process would.
func (d *dbosPeer) node(ctx context.Context, name, queue string, started func(time.Time)) (n *dbosNode, err error) {
	n = new(dbosNode)
	c := dbos.Config{AppName: "bench", ExecutorID: name, ApplicationVersion: "v1", Logger: slog.New(slog.DiscardHandler)}
	if n.count, n.shut, err = d.join(ctx, &c); err != nil {
		return nil, err
	}
	if n.Context, err = dbos.NewContext(ctx, c); err != nil {
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
	flow  dbos.Workflow[dbosInput, int]
	count counter
	shut  func() error
}

func (n *dbosNode) close() error {
	return errors.Join(dbos.Shutdown(n.Context, 10*time.Second), n.shut())
}

func (d *dbosPeer) reset(ctx context.Context) (err error) {
	if err := d.close(); err != nil {
		return err
	}
	d.next.Store(0)
	if err := d.empty(ctx); err != nil {
		return err
	}
	if d.asks, err = d.node(ctx, "asks", "none", func(time.Time) {}); err != nil {
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
	_, err = dbos.RunWorkflow(d.asks.Context, d.asks.flow, dbosInput{began.UnixNano(), n}, dbos.WithQueue(d.queue), dbos.WithWorkflowID(event(int(d.next.Add(1)))))
	return err
}

func (d *dbosPeer) again(_ context.Context, n int) error {
	_, err := dbos.RunWorkflow(d.asks.Context, d.asks.flow, dbosInput{}, dbos.WithQueue(d.queue), dbos.WithWorkflowID(event(n)))
	return err
}

func (d *dbosPeer) read(_ context.Context, n int) error {
	h, err := dbos.RetrieveWorkflow[int](d.asks.Context, event(n))
	if err != nil {
		return err
	}
	_, err = h.GetStatus()
	return err
}

func (d *dbosPeer) fill(ctx context.Context, w work, n int) error {
	return fillOneByOne(ctx, d, w, n, dbosCallers)
}

func (d *dbosPeer) start(ctx context.Context, w work, started func(time.Time)) (func() error, error) {
	if _, err := dbosSteps(w); err != nil {
		return nil, err
	}
	n, err := d.node(ctx, "works", dbosQueue, started)
	if err != nil {
		return nil, err
	}
	return n.close, nil
}

func (d *dbosPeer) left(ctx context.Context) (int, error) {
	table := "workflow_status"
	if d.store == onPostgres {
		table = "dbos." + table
	}
	return d.asks.count(ctx, "SELECT count(*) FROM "+table+" WHERE status <> 'SUCCESS'")
}
