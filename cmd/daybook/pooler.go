package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// connector makes connections to PostgreSQL, and finds out with the first one whether a pooler stands in between. One that
// gives each transaction another connection, such as PgBouncer in transaction mode, keeps no prepared statements: then
// none are made, unless the URL says how statements are to be sent (default_query_exec_mode).
type connector struct {
	direct, pooled driver.Connector
	told           bool // the URL says how statements are sent

	mu     sync.Mutex
	known  bool
	pooler bool
}

func newConnector(c *pgx.ConnConfig, params []string) *connector {
	plain := c.Copy()
	if plain.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		plain.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	for i := 0; i+1 < len(params); i += 2 {
		c.RuntimeParams[params[i]] = params[i+1] // a pooler takes no parameter that it does not know
	}
	ping := stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool { return p.IdleDuration > pingAfter })
	return &connector{direct: stdlib.GetConnector(*c, ping), pooled: stdlib.GetConnector(*plain, ping),
		told: c.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement}
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return c.direct.Driver() }

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.mu.Lock()
	known, pooler := c.known, c.pooler
	c.mu.Unlock()
	if pooler {
		return c.pooled.Connect(ctx)
	}
	conn, err := c.direct.Connect(ctx)
	if known || err != nil && !refusesParameter(err) {
		return conn, err
	}
	if err == nil {
		if pooler, err = throughPooler(ctx, conn.(*stdlib.Conn).Conn()); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		c.learn(pooler)
		if !pooler || c.told {
			return conn, nil
		}
		_ = conn.Close()
	}
	conn, err = c.pooled.Connect(ctx)
	if err == nil {
		c.learn(true)
	}
	return conn, err
}

func (c *connector) learn(pooler bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.pooler = true, pooler
}

// refusesParameter reports whether a pooler refused a parameter of the session.
func refusesParameter(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "08P01" && strings.Contains(e.Message, "startup parameter")
}

// throughPooler reports whether the process that does the work is another one than the connection was given to.
func throughPooler(ctx context.Context, c *pgx.Conn) (bool, error) {
	var pid uint32
	err := c.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
	return pid != c.PgConn().PID(), err
}
