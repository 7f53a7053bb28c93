package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// Environment that makes the test binary one of several processes on a ledger: which one, on which database, and where.
const (
	envWriter = "STORE_TEST_WRITER"
	envDriver = "STORE_TEST_DRIVER"
	envSource = "STORE_TEST_SOURCE"
)

const (
	writerProcesses  = 4
	writersInProcess = 4
	jobsOfAWriter    = 125
)

func TestMain(m *testing.M) {
	if n := os.Getenv(envWriter); n != "" {
		if err := writer(context.Background(), n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	pgtest.Main(m)
}

// ledgerAt opens the ledger that several processes share.
func ledgerAt(ctx context.Context, driver, source string) (*store.Store, func(), error) {
	write, err := sql.Open(driver, source)
	if err != nil {
		return nil, nil, err
	}
	read := write
	if driver == "sqlite" {
		write.SetMaxOpenConns(1)
		if read, err = sql.Open(driver, source); err != nil {
			return nil, nil, err
		}
	}
	var n int64
	var mu sync.Mutex
	id := func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("id-%d-%d", os.Getpid(), n)
	}
	s, err := store.Open(ctx, store.DB{Write: write, Read: read}, store.Options{NewID: id, Migrate: true, Now: storetest.Birth})
	return s, func() { _ = s.Close(); _ = write.Close(); _ = read.Close() }, err
}

// writer is one process: its writers add jobs one by one, and claim and end what they find.
func writer(ctx context.Context, process string) error {
	s, end, err := ledgerAt(ctx, os.Getenv(envDriver), os.Getenv(envSource))
	if err != nil {
		return err
	}
	defer end()
	j := storetest.Job("mail", func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
	errs := make([]error, writersInProcess)
	var all sync.WaitGroup
	for w := range writersInProcess {
		all.Go(func() { errs[w] = add(ctx, s, j, process+"-"+strconv.Itoa(w)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func add(ctx context.Context, s *store.Store, j *daybook.Job, who string) error {
	now := storetest.Birth
	for n := range jobsOfAWriter {
		r := daybook.NewRun(j, 1, storetest.Day("2026-03-01"), 1, fmt.Sprintf("s%s-%04d", who, n), now)
		r.Due = now
		if _, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceEvent}, r, now); err != nil {
			return fmt.Errorf("trigger: %w", err)
		}
		if n%5 != 4 {
			continue
		}
		id := 0
		runs, err := s.Claim(ctx, daybook.Claim{Node: who, Lane: daybook.LaneLive, Limit: 8, Lease: now.Add(time.Minute),
			NewID: func() string { id++; return fmt.Sprintf("%s-%d-%d", who, n, id) }}, now)
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		ends := make([]daybook.Transition, len(runs))
		for i, r := range runs {
			ends[i] = r.Next(daybook.Outcome{Result: daybook.ResultDone}, j.Policy(), now)
		}
		applied, err := s.Apply(ctx, ends)
		if err != nil {
			return fmt.Errorf("end: %w", err)
		}
		for i, a := range applied {
			if a.Stale {
				return fmt.Errorf("%s was claimed here and is stale", ends[i].Key)
			}
		}
	}
	return nil
}

// Sixteen writers in four processes of their own, two thousand jobs on one ledger: nobody is told that it is busy, every
// job is there, and none was claimed twice.
func TestH45SixteenWritersInFourProcesses(t *testing.T) {
	for driver, source := range map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string {
			return "file:" + filepath.Join(t.TempDir(), "daybook.db") + storetest.SQLitePragmas
		},
		"pgx": func(t *testing.T) string { return pgtest.URL(t) },
	} {
		t.Run(driver, func(t *testing.T) {
			source := source(t)
			s, end, err := ledgerAt(t.Context(), driver, source)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			j := storetest.Job("mail", func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
			if _, err := s.TakeRevisions(t.Context(), []daybook.Revision{{Job: j}}, false, storetest.Birth); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for p := range writerProcesses {
				all.Go(func() {
					cmd := exec.CommandContext(t.Context(), os.Args[0])
					cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", envWriter, p), envDriver+"="+driver, envSource+"="+source)
					var said bytes.Buffer
					cmd.Stdout, cmd.Stderr = &said, &said
					if err := cmd.Run(); err != nil {
						t.Errorf("process %d: %v\n%s", p, err, said.String())
					}
				})
			}
			all.Wait()
			const jobs = writerProcesses * writersInProcess * jobsOfAWriter
			counts, err := s.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			left := drainAll(t, s, storetest.Birth)
			db, err := sql.Open(driver, source)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var runs, done, attempts int
			if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM daybook_runs), (SELECT count(*) FROM daybook_runs WHERE state = 'done'),
  (SELECT count(*) FROM daybook_attempts)`).Scan(&runs, &done, &attempts); err != nil {
				t.Fatal(err)
			}
			if runs != jobs || done != jobs || attempts != jobs {
				t.Errorf("%d runs, %d done, %d attempts of %d jobs", runs, done, attempts, jobs)
			}
			t.Logf("%d were left: %+v", left, counts)
		})
	}
}
