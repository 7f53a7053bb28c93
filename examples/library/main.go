// Command library is a small shop that links Daybook: the renewals of a day are charged once, whoever asks for them how
// often, and whenever the program dies.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver is the program's own choice: the library brings none

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, ".", &gateway{dir: "book"}, engine.Options{App: "shop"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run works in a directory until ctx ends.
func run(ctx context.Context, dir string, pay *gateway, o engine.Options) (err error) {
	db, err := handles(filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Write.Close(), db.Read.Close()) }()
	e, err := engine.Open(ctx, db, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	register(e, pay)
	return e.Start(ctx)
}

// register says which jobs the shop does, and how.
func register(e *engine.Engine, pay *gateway) {
	e.Handle(daybook.Job{
		Name: "renew", Priority: daybook.P0, Owner: "ops", Effects: daybook.Once,
		Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Window: daybook.Day, Timeout: 10 * time.Minute,
	}, func(ctx context.Context, r *daybook.Run) error {
		id, err := pay.charge(ctx, r.WireKey(), r.Window.Date)
		if err != nil {
			return err // a bare error is failed, unclear: the probe is asked
		}
		r.Count("charges", 1)
		r.Return(id)
		return nil
	}, engine.Probe(pay.find))
}

// handles opens a SQLite file twice: one connection that writes, and a pool that reads.
func handles(path string) (db engine.DB, err error) {
	source := "file:" + path + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate"
	if db.Write, err = sql.Open("sqlite", source); err != nil {
		return db, err
	}
	db.Write.SetMaxOpenConns(1)
	db.Read, err = sql.Open("sqlite", source)
	return db, err
}
