// Package postgres is what Daybook does with PostgreSQL beyond database/sql: it hears NOTIFY, through pgx. It knows nothing
// of what is called for. It is called by the engine, for who gave it to it: the program daybook, or an application whose
// handle was opened with pgx.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/daybook-run/daybook"
)

// Listener hears on a connection of its own, taken from a handle. It implements daybook.Listener.
type Listener struct{ db *sql.DB }

// NewListener returns a listener on a handle that was opened with pgx (github.com/jackc/pgx/v5/stdlib). One connection of
// the handle is in use for as long as it listens.
func NewListener(db *sql.DB) *Listener { return &Listener{db: db} }

// lookEvery is how often a connection on which nothing comes is asked whether it still stands: a connection that was cut
// without a word looks like one on which nobody calls.
const lookEvery = 30 * time.Second

// Listen implements daybook.Listener.
func (l *Listener) Listen(ctx context.Context, channel string, listening, heard func()) (err error) {
	c, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	// Never back into the pool: whoever got it next would hear the calls.
	defer func() { err = errors.Join(err, drop(c)) }()
	return c.Raw(func(c any) error {
		wrapped, ok := c.(*stdlib.Conn)
		if !ok {
			return daybook.Invalid("the handle was not opened with pgx")
		}
		conn := wrapped.Conn()
		if _, err := conn.Exec(ctx, "LISTEN "+quote(channel)); err != nil {
			return err
		}
		listening()
		for {
			limited, cancel := context.WithTimeout(ctx, lookEvery)
			_, err := conn.WaitForNotification(limited)
			cancel()
			switch {
			case err == nil:
				heard()
			case ctx.Err() != nil:
				return ctx.Err()
			case !errors.Is(err, context.DeadlineExceeded):
				return err
			default:
				if err := conn.Ping(ctx); err != nil {
					return err
				}
			}
		}
	})
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// drop closes a connection for good.
func drop(c *sql.Conn) error {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	if err := c.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}
