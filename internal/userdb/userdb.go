// Package userdb reads the databases of whoever uses Daybook: one query at a time, read only, row after row, within a time.
// It brings no driver (the program does) and never writes. The listing of subjects calls it.
package userdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

// Kind is a kind of database.
type Kind string

// The kinds.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
	MySQL    Kind = "mysql" // and MariaDB
)

// KindOf tells the kind of database that a DSN names: sqlite:PATH, postgres://…, mysql://…. Errors have CodeInvalid and do
// not repeat the text, which may hold a password.
func KindOf(dsn string) (Kind, error) {
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch {
	case scheme == "sqlite" && rest != "" && !strings.HasPrefix(rest, "//"):
		return SQLite, nil
	case (scheme == "postgres" || scheme == "postgresql") && strings.HasPrefix(rest, "//"):
		return Postgres, nil
	case (scheme == "mysql" || scheme == "mariadb") && strings.HasPrefix(rest, "//"):
		return MySQL, nil
	}
	return "", daybook.Invalid("the dsn is of no known kind").WithHint("write sqlite:PATH, postgres://user@host/name or mysql://user@host/name")
}

// Timeout bounds a statement in the database itself, beside the context.
const Timeout = 30 * time.Minute

// Row is one row: its columns by name, in small letters.
type Row map[string]any

// Rows runs a query and yields its rows as they come. The values are what JSON can hold. Nothing can be written by it: the
// transaction is read only, in SQLite the connection.
func Rows(ctx context.Context, db *sql.DB, kind Kind, query string, args Args) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		text, values, err := bind(query, kind, args)
		if err == nil {
			err = rows(ctx, db, kind, text, values, nil, func(r Row) bool { return yield(r, nil) })
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// Columns returns the names of the columns of a query, in small letters, without reading a row: the database reads it as a part of
// a SELECT, so that one that writes is refused. Errors are those of the database, or have CodeInvalid.
func Columns(ctx context.Context, db *sql.DB, kind Kind, query string) (names []string, err error) {
	day := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	text, values, err := bind(query, kind, Args{Date: "2026-03-29", Window: "2026-03-29", Start: day, End: day.AddDate(0, 0, 1)})
	if err != nil {
		return nil, err
	}
	err = rows(ctx, db, kind, "SELECT * FROM (\n"+text+"\n) AS listing LIMIT 0", values, func(columns []string) { names = columns }, nil)
	return names, err
}

var errEnough = errors.New("no more rows are wanted")

func rows(ctx context.Context, db *sql.DB, kind Kind, text string, values []any, head func(columns []string), each func(Row) bool) (err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, ignoreDone(c.Close())) }()
	if only := readOnly[kind]; only != "" {
		if _, err := c.ExecContext(ctx, only); err != nil {
			return err
		}
	}
	read := &sql.TxOptions{ReadOnly: kind != SQLite}
	t, err := c.BeginTx(ctx, read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreDone(t.Rollback())) }()
	if limit := limits[kind]; limit != "" {
		if _, err := t.ExecContext(ctx, limit); err != nil && kind == Postgres { // MySQL and MariaDB call it differently
			return err
		}
	}
	found, err := t.QueryContext(ctx, text, values...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	columns, err := found.Columns()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, name := range columns {
		if columns[i] = strings.ToLower(name); seen[columns[i]] {
			return daybook.Invalid("the query has two columns called %s", columns[i]).WithHint("give one of them another name with AS")
		}
		seen[columns[i]] = true
	}
	if head != nil {
		head(columns)
		return found.Err()
	}
	for found.Next() {
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range into {
			into[i] = &cells[i]
		}
		if err := found.Scan(into...); err != nil {
			return err
		}
		row := make(Row, len(columns))
		for i, name := range columns {
			row[name] = plain(cells[i])
		}
		if !each(row) {
			return errEnough
		}
	}
	return found.Err()
}

// readOnly makes a connection read only where a transaction that is so is not enough: those of SQLite know no such mode, and
// MySQL ends one by itself before it changes a table.
var readOnly = map[Kind]string{
	SQLite: "PRAGMA query_only = 1",
	MySQL:  "SET SESSION TRANSACTION READ ONLY",
}

var limits = map[Kind]string{
	Postgres: fmt.Sprintf("SET LOCAL statement_timeout = %d", Timeout.Milliseconds()),
	MySQL:    fmt.Sprintf("SET SESSION max_statement_time = %d", int(Timeout.Seconds())), // MariaDB; the context ends it in MySQL
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// plain makes a value what JSON can hold.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		return fmt.Sprintf("%x", v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return v
}

// Masked returns an error without a DSN and its password.
func Masked(err error, dsn string) error {
	if err == nil {
		return nil
	}
	hide := []string{dsn}
	if u, perr := url.Parse(dsn); perr == nil {
		if password, ok := u.User.Password(); ok && password != "" {
			hide = append(hide, password, url.QueryEscape(password))
		}
	}
	if text := daybook.Mask(err.Error(), hide); text != err.Error() {
		return &daybook.Error{Code: daybook.CodeOf(err), Message: text}
	}
	return err
}
