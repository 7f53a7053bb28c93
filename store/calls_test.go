package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// TestWhoeverIsCalledSeesEverything: many transactions make runs due at once, and fewer call. Who looks at each call has seen
// all of them after the last. One connection is enough for it.
func TestWhoeverIsCalledSeesEverything(t *testing.T) {
	for _, conns := range []int{16, 1} {
		t.Run(fmt.Sprintf("%d connections", conns), func(t *testing.T) {
			url := pgtest.URL(t)
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			db.SetMaxOpenConns(conns)
			s, err := open(t, store.DB{Write: db})
			if err != nil {
				t.Fatal(err)
			}
			j := storetest.Job("report")
			if _, err := s.TakeRevisions(t.Context(), []daybook.Revision{{Job: j}}, false, farAhead); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ear, err := pgx.Connect(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ear.Close(context.WithoutCancel(ctx)) }()
			if _, err := ear.Exec(ctx, "LISTEN "+store.Channel); err != nil {
				t.Fatal(err)
			}
			const writers, each = 16, 10
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for n := range each {
						r := daybook.NewRun(j, 1, storetest.Day(farAhead.AddDate(0, 0, -w*each-n).Format(time.DateOnly)), 1, "", farAhead)
						r.Due, r.NotBefore = farAhead, farAhead
						if _, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI}, r, farAhead); err != nil {
							t.Error(err)
						}
					}
				})
			}
			seen, calls := 0, 0
			for seen < writers*each {
				if _, err := ear.WaitForNotification(ctx); err != nil {
					t.Fatalf("after %d calls %d of %d runs were seen: %v", calls, seen, writers*each, err)
				}
				calls++
				if err := ear.QueryRow(ctx, "SELECT count(*) FROM daybook_live").Scan(&seen); err != nil {
					t.Fatal(err)
				}
			}
			all.Wait()
			t.Logf("%d calls for %d runs", calls, seen)
		})
	}
}
