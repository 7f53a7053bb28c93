package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func key(n int) string { return fmt.Sprintf("k%09d", n) }

type barePostgres struct{ pool *pgxpool.Pool }

func openBarePostgres(_ context.Context, p *place) (peer, error) {
	if p.noPG != nil {
		return nil, p.noPG
	}
	return &bare{
		told: about{Name: "bare driver loop", Store: onPostgres, Version: "pgx " + version("github.com/jackc/pgx/v5"), Share: 1, InProcess: true,
			Settings: fmt.Sprintf("one table; batches of %d by unnest; pool %d", bareBatch, conns), Keeps: "the row"},
		clean: func(ctx context.Context) (bareStore, error) {
			pool, err := p.pool(ctx, "bare")
			if err != nil {
				return nil, err
			}
			for _, do := range []string{"CREATE TABLE bare (k text PRIMARY KEY, state int NOT NULL, n bigint NOT NULL)", "CREATE INDEX bare_due ON bare (k) WHERE state = 0"} {
				if _, err = pool.Exec(ctx, do); err != nil {
					pool.Close()
					return nil, err
				}
			}
			return barePostgres{pool}, nil
		},
	}, nil
}

func (b barePostgres) exec(ctx context.Context, statement string, args ...any) error {
	_, err := b.pool.Exec(ctx, statement, args...)
	return err
}

func (b barePostgres) insert(ctx context.Context, k string, began int64) error {
	return b.exec(ctx, "INSERT INTO bare VALUES ($1, 0, $2)", k, began)
}

func (b barePostgres) fill(ctx context.Context, from, n int) error {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = key(from + i)
	}
	return b.exec(ctx, "INSERT INTO bare SELECT k, 0, 0 FROM unnest($1::text[]) AS u (k)", keys)
}

func (b barePostgres) claim(ctx context.Context, n int) (keys []string, began []int64, err error) {
	rows, err := b.pool.Query(ctx, "UPDATE bare SET state = 1 WHERE k = ANY(ARRAY(SELECT k FROM bare WHERE state = 0 ORDER BY k LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING k, n", n)
	if err != nil {
		return nil, nil, err
	}
	var k string
	var ns int64
	_, err = pgx.ForEachRow(rows, []any{&k, &ns}, func() error {
		keys, began = append(keys, k), append(began, ns)
		return nil
	})
	return keys, began, err
}

func (b barePostgres) finish(ctx context.Context, keys []string) error {
	return b.exec(ctx, "UPDATE bare SET state = 2 FROM unnest($1::text[]) AS u (k) WHERE bare.k = u.k", keys)
}

func (b barePostgres) mark(ctx context.Context, k string, n int) error {
	return b.exec(ctx, "UPDATE bare SET n = $2 WHERE k = $1", k, n)
}

func (b barePostgres) read(ctx context.Context, k string) error {
	var n int64
	return b.pool.QueryRow(ctx, "SELECT n FROM bare WHERE k = $1", k).Scan(&n)
}

func (b barePostgres) left(ctx context.Context) (n int, err error) {
	err = b.pool.QueryRow(ctx, "SELECT count(*) FROM bare WHERE state < 2").Scan(&n)
	return n, err
}

func (b barePostgres) close() error {
	b.pool.Close()
	return nil
}
