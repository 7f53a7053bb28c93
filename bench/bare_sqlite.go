package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// bareSQLite keeps its statements, and has one connection that writes, as Daybook's handles have.
type bareSQLite struct {
	db *sql.DB

	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

func openBareSQLite(_ context.Context, p *place) (peer, error) {
	return &bare{
		told: about{Name: "bare driver loop", Store: onSQLite, Version: "modernc.org/sqlite " + version("modernc.org/sqlite"), Share: 1, InProcess: true,
			Settings: fmt.Sprintf("one table; %d prepared rows a transaction; one connection", bareBatch), Keeps: "the row"},
		clean: func(ctx context.Context) (bareStore, error) {
			path, err := p.file("bare")
			if err != nil {
				return nil, err
			}
			db, err := openSQLite(path, 1)
			if err != nil {
				return nil, err
			}
			for _, do := range []string{"CREATE TABLE bare (k TEXT PRIMARY KEY, state INTEGER NOT NULL, n INTEGER NOT NULL) WITHOUT ROWID", "CREATE INDEX bare_due ON bare (k) WHERE state = 0"} {
				if _, err := db.ExecContext(ctx, do); err != nil {
					return nil, errors.Join(err, db.Close())
				}
			}
			return &bareSQLite{db: db, prepared: make(map[string]*sql.Stmt)}, nil
		},
	}, nil
}

// statement prepares a text once.
func (b *bareSQLite) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if st := b.prepared[text]; st != nil {
		return st, nil
	}
	st, err := b.db.PrepareContext(ctx, text)
	if err == nil {
		b.prepared[text] = st
	}
	return st, err
}

// rows runs a statement for each of n rows, in one transaction.
func (b *bareSQLite) rows(ctx context.Context, text string, n int, args func(i int) []any) error {
	st, err := b.statement(ctx, text)
	if err != nil {
		return err
	}
	t, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }() // after a commit it does nothing
	st = t.StmtContext(ctx, st)
	for i := range n {
		if _, err := st.ExecContext(ctx, args(i)...); err != nil {
			return err
		}
	}
	return t.Commit()
}

func (b *bareSQLite) insert(ctx context.Context, k string, began int64) error {
	return b.rows(ctx, "INSERT INTO bare VALUES (?, 0, ?)", 1, func(int) []any { return []any{k, began} })
}

func (b *bareSQLite) fill(ctx context.Context, from, n int) error {
	return b.rows(ctx, "INSERT INTO bare VALUES (?, 0, 0)", n, func(i int) []any { return []any{key(from + i)} })
}

func (b *bareSQLite) claim(ctx context.Context, n int) (keys []string, began []int64, err error) {
	st, err := b.statement(ctx, "UPDATE bare SET state = 1 WHERE k IN (SELECT k FROM bare WHERE state = 0 ORDER BY k LIMIT ?) RETURNING k, n")
	if err != nil {
		return nil, nil, err
	}
	rows, err := st.QueryContext(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k string
		var ns int64
		if err := rows.Scan(&k, &ns); err != nil {
			return nil, nil, err
		}
		keys, began = append(keys, k), append(began, ns)
	}
	return keys, began, rows.Err()
}

func (b *bareSQLite) finish(ctx context.Context, keys []string) error {
	return b.rows(ctx, "UPDATE bare SET state = 2 WHERE k = ?", len(keys), func(i int) []any { return []any{keys[i]} })
}

func (b *bareSQLite) mark(ctx context.Context, k string, n int) error {
	return b.rows(ctx, "UPDATE bare SET n = ? WHERE k = ?", 1, func(int) []any { return []any{n, k} })
}

func (b *bareSQLite) read(ctx context.Context, k string) error {
	st, err := b.statement(ctx, "SELECT n FROM bare WHERE k = ?")
	if err != nil {
		return err
	}
	var n int64
	return st.QueryRowContext(ctx, k).Scan(&n)
}

func (b *bareSQLite) left(ctx context.Context) (n int, err error) {
	err = b.db.QueryRowContext(ctx, "SELECT count(*) FROM bare WHERE state < 2").Scan(&n)
	return n, err
}

func (b *bareSQLite) close() error { return b.db.Close() }
