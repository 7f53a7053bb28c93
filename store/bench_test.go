package store_test

import (
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// The figures of the store by itself, without executor and runner, on both databases, durable: SQLite with synchronous
// FULL, PostgreSQL with fsync. One operation is one run, trigger or job; ns/op turned round is what a second holds.
//
//	go test ./store -run '^$' -bench . -benchtime 20000x

// eachDurable runs a benchmark on a new ledger of each kind that keeps what it acknowledged.
func eachDurable(b *testing.B, run func(b *testing.B, s *store.Store)) {
	b.Run("sqlite", func(b *testing.B) { run(b, storetest.Ledger(b, storetest.SQLite(b))) })
	b.Run("postgres", func(b *testing.B) {
		server := pgtest.Server(b, "shared_buffers=256MB", "max_wal_size=4GB")
		run(b, storetest.Ledger(b, storetest.PostgresAt(server.URL)))
	})
}

// BenchmarkBare is what the database and its driver do at best: rows of a key and a number inserted 1,000 a commit, and one
// row read by its key. Machines drift; what counts is the ratio to these, taken in one run.
func BenchmarkBare(b *testing.B) {
	const batch = 1000
	for _, kind := range []string{"sqlite", "postgres"} {
		handle := func(b *testing.B) *sql.DB {
			d := storetest.SQLite(b)
			if kind == "postgres" {
				d = storetest.PostgresAt(pgtest.Server(b, "shared_buffers=256MB", "max_wal_size=4GB").URL)
			}
			db := d.Open(b).Write
			if _, err := db.ExecContext(b.Context(), "CREATE TABLE bare (k TEXT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)"); err != nil {
				b.Fatal(err)
			}
			return db
		}
		insert := func(b *testing.B, db *sql.DB, from, n int) {
			names, numbers := make([]string, n), make([]int64, n)
			for i := range n {
				names[i], numbers[i] = fmt.Sprintf("k%09d", from+i), int64(i)
			}
			t, err := db.BeginTx(b.Context(), nil)
			if err != nil {
				b.Fatal(err)
			}
			if kind == "postgres" {
				_, err = t.ExecContext(b.Context(), "INSERT INTO bare SELECT * FROM unnest($1::text[], $2::bigint[])", names, numbers)
			} else {
				var st *sql.Stmt
				if st, err = t.PrepareContext(b.Context(), "INSERT INTO bare VALUES (?, ?)"); err != nil {
					b.Fatal(err)
				}
				for i := range n {
					if _, err = st.ExecContext(b.Context(), names[i], numbers[i]); err != nil {
						break
					}
				}
			}
			if err != nil {
				b.Fatal(err)
			}
			if err := t.Commit(); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("insert/"+kind, func(b *testing.B) {
			db := handle(b)
			b.ResetTimer()
			for n := 0; n < b.N; n += batch {
				insert(b, db, n, min(batch, b.N-n))
			}
			perSecond(b)
		})
		b.Run("select/"+kind, func(b *testing.B) {
			db := handle(b)
			insert(b, db, 0, batch)
			st, err := db.PrepareContext(b.Context(), map[string]string{"sqlite": "SELECT n FROM bare WHERE k = ?", "postgres": "SELECT n FROM bare WHERE k = $1"}[kind])
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for i := range b.N {
				var n int64
				if err := st.QueryRowContext(b.Context(), fmt.Sprintf("k%09d", i%batch)).Scan(&n); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b)
		})
	}
}

func perSecond(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s") }

func free(name string) *daybook.Job {
	return storetest.Job(name, func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
}

// BenchmarkDrain claims and ends no-op repeatable runs, 1,000 a batch: claim and end, each with its commit.
func BenchmarkDrain(b *testing.B) {
	eachDurable(b, func(b *testing.B, s *store.Store) {
		for made := 0; made < b.N; made += 5000 {
			fill(b, s, fmt.Sprintf("j%06d", made), min(5000, b.N-made))
		}
		b.ResetTimer()
		if n := drainAll(b, s, farAhead); n != b.N {
			b.Fatalf("ended %d of %d", n, b.N)
		}
		perSecond(b)
	})
}

// BenchmarkDrainBesideHistory drains beside a hundred thousand runs that ended.
func BenchmarkDrainBesideHistory(b *testing.B) {
	eachDurable(b, func(b *testing.B, s *store.Store) {
		for i := range 20 {
			fill(b, s, fmt.Sprintf("old%03d", i), 5000)
		}
		drainAll(b, s, farAhead)
		for made := 0; made < b.N; made += 5000 {
			fill(b, s, fmt.Sprintf("j%06d", made), min(5000, b.N-made))
		}
		b.ResetTimer()
		if n := drainAll(b, s, farAhead); n != b.N {
			b.Fatalf("ended %d of %d", n, b.N)
		}
		perSecond(b)
	})
}

// BenchmarkOnce begins and ends once-only runs, a hundred at once: each has its begun mark on the disk before it starts.
func BenchmarkOnce(b *testing.B) {
	eachDurable(b, func(b *testing.B, s *store.Store) {
		j := storetest.Job("renew", storetest.Once, func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
		if _, err := s.TakeRevisions(b.Context(), []daybook.Revision{{Job: j}}, false, storetest.Birth); err != nil {
			b.Fatal(err)
		}
		callers(b, 16, func(i int) error { return trigger(b, s, j, fmt.Sprintf("s%08d", i)) })
		b.ResetTimer()
		for left := b.N; left > 0; {
			runs, err := s.Claim(b.Context(), daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 100, Lease: farAhead, NewID: storetest.NewID}, farAhead)
			if err != nil || len(runs) == 0 {
				b.Fatalf("claimed %d of %d: %v", len(runs), left, err)
			}
			left -= len(runs)
			ms := make([]daybook.Transition, len(runs))
			var wg sync.WaitGroup
			for i, r := range runs {
				wg.Go(func() {
					mark, begin := r.Begin, s.Begin
					e, _ := mark(j.Policy(), farAhead)
					if err := begin(b.Context(), r, e, farAhead); err != nil {
						b.Error(err)
					}
					ms[i] = r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), farAhead)
				})
			}
			wg.Wait()
			if _, err := s.Apply(b.Context(), ms); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b)
	})
}

// callers does b.N things from so many goroutines.
func callers(b *testing.B, n int, do func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := do(int(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func trigger(b *testing.B, s *store.Store, j *daybook.Job, subject string) error {
	r := daybook.NewRun(j, 1, storetest.Day("2026-03-01"), 1, subject, storetest.Birth)
	r.Due = storetest.Birth
	_, _, err := s.Trigger(b.Context(), daybook.Ask{Key: r.Key, Source: daybook.SourceEvent, Effects: j.Effects}, r, storetest.Birth)
	return err
}

// BenchmarkTrigger asks for new keys, one a transaction.
func BenchmarkTrigger(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			eachDurable(b, func(b *testing.B, s *store.Store) {
				j := free("mail")
				if _, err := s.TakeRevisions(b.Context(), []daybook.Revision{{Job: j}}, false, storetest.Birth); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				callers(b, n, func(i int) error { return trigger(b, s, j, fmt.Sprintf("s%08d", i)) })
				perSecond(b)
			})
		})
	}
}

// BenchmarkTriggerDone asks again for keys that are done: answered, recorded and counted.
func BenchmarkTriggerDone(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			eachDurable(b, func(b *testing.B, s *store.Store) {
				const known = 5000
				fill(b, s, "mail", known)
				drainAll(b, s, farAhead)
				b.ResetTimer()
				callers(b, n, func(i int) error {
					key := daybook.KeyParts{Job: "mail", Window: storetest.Birth.AddDate(0, 0, i%known).Format(time.DateOnly)}.Key()
					reply, _, err := s.Trigger(b.Context(), daybook.Ask{Key: key, Source: daybook.SourceAPI}, nil, storetest.Birth)
					if err == nil && reply.Outcome != daybook.Reused {
						err = fmt.Errorf("%s: %s", key, reply.Outcome)
					}
					return err
				})
				perSecond(b)
			})
		})
	}
}

// BenchmarkRead reads done keys without asking for them: the bare look-up.
func BenchmarkRead(b *testing.B) {
	eachDurable(b, func(b *testing.B, s *store.Store) {
		const known = 5000
		fill(b, s, "mail", known)
		drainAll(b, s, farAhead)
		b.ResetTimer()
		for i := range b.N {
			if _, err := s.Run(b.Context(), daybook.KeyParts{Job: "mail", Window: storetest.Birth.AddDate(0, 0, i%known).Format(time.DateOnly)}.Key()); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b)
	})
}

// BenchmarkPlan plans a thousand jobs that are due at once, in one transaction; one operation is one job.
func BenchmarkPlan(b *testing.B) {
	const jobs = 1000
	eachDurable(b, func(b *testing.B, s *store.Store) {
		var changes []daybook.Revision
		for i := range jobs {
			changes = append(changes, daybook.Revision{Job: storetest.Job(fmt.Sprintf("j%05d", i))})
		}
		if _, err := s.TakeRevisions(b.Context(), changes, false, storetest.Birth); err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		for done, day := 0, 0; done < b.N; day++ {
			var plans []*daybook.Plan
			from := storetest.Birth.AddDate(0, 0, day)
			w := storetest.Day(from.Format(time.DateOnly))
			for _, c := range changes[:min(jobs, b.N-done)] {
				plans = append(plans, &daybook.Plan{Job: c.Job, Revision: 1, Source: daybook.SourceSchedule, From: from, To: from.AddDate(0, 0, 1),
					Windows: []daybook.PlannedWindow{{Window: w, Fires: []string{w.Label + "T02:00"}, FireAt: w.Start, Last: w.Start}}})
			}
			planned, err := s.Plan(b.Context(), plans, from)
			if err != nil || planned[0].Started != 1 {
				b.Fatalf("%+v %v", planned[0], err)
			}
			done += len(plans)
		}
		perSecond(b)
	})
}

// BenchmarkSerialWaiters ends runs that all wait for one serial key, one after the other: a claim, an end, and the next one let
// go. ns/op must not depend on how many wait.
//
//	go test ./store -run '^$' -bench SerialWaiters -benchtime 1000x
func BenchmarkSerialWaiters(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			eachDurable(b, func(b *testing.B, s *store.Store) {
				j := storetest.Job("renew", func(j *daybook.Job) { j.Serial, j.Overlap = "x", daybook.OverlapAllow })
				fillJob(b, s, j, n+b.N+1)
				next := func() {
					runs, err := s.Claim(b.Context(), daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 16, Lease: farAhead, NewID: storetest.NewID}, farAhead)
					if err != nil || len(runs) != 1 {
						b.Fatalf("claimed %d: %v", len(runs), err)
					}
					if _, err := s.Apply(b.Context(), []daybook.Transition{runs[0].Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), farAhead)}); err != nil {
						b.Fatal(err)
					}
				}
				next() // parks the others
				b.ResetTimer()
				for range b.N {
					next()
				}
				perSecond(b)
			})
		})
	}
}
