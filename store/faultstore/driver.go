package faultstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// Open opens a data source with the driver of a name that is known to database/sql, with faults in between. The handle
// is the caller's to close.
func Open(driverName, source string, f *Faults) (*sql.DB, error) {
	plain, err := sql.Open(driverName, source)
	if err != nil {
		return nil, err
	}
	d := plain.Driver()
	if err := plain.Close(); err != nil { // it never had a connection
		return nil, err
	}
	if dc, ok := d.(driver.DriverContext); ok {
		c, err := dc.OpenConnector(source)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(Wrap(c, f)), nil
	}
	return sql.OpenDB(Wrap(byName{driver: d, source: source}, f)), nil
}

// Wrap returns a connector whose connections fail as f says.
func Wrap(c driver.Connector, f *Faults) driver.Connector { return &connector{Connector: c, faults: f} }

// byName is the connector of a driver that only opens names.
type byName struct {
	driver driver.Driver
	source string
}

func (b byName) Connect(context.Context) (driver.Conn, error) { return b.driver.Open(b.source) }
func (b byName) Driver() driver.Driver                        { return b.driver }

type connector struct {
	driver.Connector
	faults *Faults
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := do(ctx, c.faults, nil, Connect, "", func() (driver.Conn, error) { return c.Connector.Connect(ctx) },
		func(inner driver.Conn) { _ = inner.Close() })
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, faults: c.faults}, nil
}

// do makes one call, with what the faults say before and after it. When the call took effect and its answer is lost,
// drop gives back what it returned.
func do[T any](ctx context.Context, f *Faults, c *conn, op Op, text string, call func() (T, error), drop func(T)) (T, error) {
	var none T
	v := f.decide(op, text)
	if err := f.fail(ctx, v, v.before, v.cut); err != nil {
		c.lose()
		return none, err
	}
	got, err := call()
	if err != nil {
		return none, err
	}
	if err := f.fail(ctx, v, v.after, v.lose); err != nil {
		if drop != nil {
			drop(got)
		}
		c.lose()
		return none, err
	}
	return got, nil
}

// conn is one connection. After its first fault it is lost: database/sql closes it, and the database rolls back what was
// open on it. A server would take a moment to notice; here it has rolled back before the call returns, so that a test
// knows what it finds.
type conn struct {
	driver.Conn
	faults *Faults
	open   driver.Tx // of the driver below; nil: no transaction
	lost   bool      // a connection is used by one goroutine at a time
}

func (c *conn) lose() {
	if c == nil || c.lost {
		return
	}
	c.lost = true
	if c.open != nil {
		_ = c.open.Rollback()
		c.open = nil
	}
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool {
	if v, ok := c.Conn.(driver.Validator); ok && !v.IsValid() {
		return false
	}
	return !c.lost
}

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.lost {
		return driver.ErrBadConn
	}
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// CheckNamedValue implements driver.NamedValueChecker as the driver below does.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Ping implements driver.Pinger. It fails as a query does.
func (c *conn) Ping(ctx context.Context) error {
	_, err := do(ctx, c.faults, c, Query, "", func() (struct{}, error) {
		if p, ok := c.Conn.(driver.Pinger); ok {
			return struct{}{}, p.Ping(ctx)
		}
		return struct{}{}, nil
	}, nil)
	return err
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	b, ok := c.Conn.(driver.ConnBeginTx)
	if !ok {
		return nil, errors.New("faultstore: the driver has no BeginTx")
	}
	inner, err := do(ctx, c.faults, c, Begin, "", func() (driver.Tx, error) { return b.BeginTx(ctx, o) }, nil)
	if err != nil {
		return nil, err
	}
	c.open = inner
	return &transaction{Tx: inner, conn: c, ctx: ctx}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	e, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return do(ctx, c.faults, c, Exec, text, func() (driver.Result, error) { return e.ExecContext(ctx, text, args) }, nil)
}

// QueryContext implements driver.QueryerContext. A query whose answer is lost has taken its effect in full.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return do(ctx, c.faults, c, Query, text, func() (driver.Rows, error) { return q.QueryContext(ctx, text, args) }, exhaust)
}

// exhaust reads rows to their end: some drivers do the work of a query while its rows are read.
func exhaust(rows driver.Rows) {
	row := make([]driver.Value, len(rows.Columns()))
	for rows.Next(row) == nil {
	}
	_ = rows.Close()
}

// PrepareContext implements driver.ConnPrepareContext. It never fails by itself; the statement does when it is used.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	p, ok := c.Conn.(driver.ConnPrepareContext)
	if !ok {
		return nil, errors.New("faultstore: the driver has no PrepareContext")
	}
	inner, err := p.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return &statement{Stmt: inner, conn: c, text: text}, nil
}

type statement struct {
	driver.Stmt
	conn *conn
	text string
}

// CheckNamedValue implements driver.NamedValueChecker as the driver below does.
func (s *statement) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// ExecContext implements driver.StmtExecContext.
func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	e, ok := s.Stmt.(driver.StmtExecContext)
	if !ok {
		return nil, errors.New("faultstore: the driver's statements take no context")
	}
	return do(ctx, s.conn.faults, s.conn, Exec, s.text, func() (driver.Result, error) { return e.ExecContext(ctx, args) }, nil)
}

// QueryContext implements driver.StmtQueryContext.
func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := s.Stmt.(driver.StmtQueryContext)
	if !ok {
		return nil, errors.New("faultstore: the driver's statements take no context")
	}
	return do(ctx, s.conn.faults, s.conn, Query, s.text, func() (driver.Rows, error) { return q.QueryContext(ctx, args) }, exhaust)
}

type transaction struct {
	driver.Tx
	conn *conn
	ctx  context.Context //nolint:containedctx // Commit has none of its own, and hooks may want to end with the caller
}

// Commit implements driver.Tx.
func (t *transaction) Commit() error {
	if t.conn.lost {
		return fmt.Errorf("commit: %w", ErrInjected)
	}
	_, err := do(t.ctx, t.conn.faults, t.conn, Commit, "", func() (struct{}, error) {
		t.conn.open = nil
		return struct{}{}, t.Tx.Commit()
	}, nil)
	return err
}

// Rollback implements driver.Tx. Of a lost connection the database rolls back when it is closed.
func (t *transaction) Rollback() error {
	if t.conn.lost {
		return nil
	}
	_, err := do(t.ctx, t.conn.faults, t.conn, Rollback, "", func() (struct{}, error) {
		t.conn.open = nil
		return struct{}{}, t.Tx.Rollback()
	}, nil)
	return err
}
