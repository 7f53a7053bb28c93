package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver is the program's own choice

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
)

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

// example opens an engine in a directory that is removed afterwards.
func example() (e *engine.Engine, remove func()) {
	dir, err := os.MkdirTemp("", "daybook")
	if err != nil {
		log.Fatal(err)
	}
	db, err := handles(filepath.Join(dir, "shop.db"))
	if err != nil {
		log.Fatal(err)
	}
	if e, err = engine.Open(context.Background(), db); err != nil {
		log.Fatal(err)
	}
	return e, func() { _ = errors.Join(e.Close(), db.Write.Close(), db.Read.Close(), os.RemoveAll(dir)) }
}

// Three ask for the renewals of one day. They are charged once, and whoever asks later is told what came of it.
func Example() {
	ctx := context.Background()
	e, remove := example()
	defer remove()

	charged := 0
	e.Handle(daybook.Job{
		Name: "renew", Priority: daybook.P0, Owner: "ops", Effects: daybook.Once,
		Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Window: daybook.Day,
	}, func(ctx context.Context, r *daybook.Run) error {
		charged++ // pay.Charge(ctx, …, r.WireKey())
		r.Count("charges", 1)
		r.Return("ch_1")
		return nil
	})

	for range 3 {
		a, err := e.Trigger(ctx, "renew", daybook.At("2025-10-26"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(a.Key, a.Outcome)
	}
	if err := e.RunDue(ctx); err != nil { // a program that stays calls Start
		log.Fatal(err)
	}
	a, err := e.Trigger(ctx, "renew", daybook.At("2025-10-26"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Key, a.Outcome, string(a.Run.Result))
	fmt.Println("charged:", charged)

	// Output:
	// renew:2025-10-26 started
	// renew:2025-10-26 joined
	// renew:2025-10-26 joined
	// renew:2025-10-26 reused "ch_1"
	// charged: 1
}

// The charge went through and its answer was lost. The work is not done again: the payment service is asked whether it has
// a charge under this wire key.
func Example_probe() {
	ctx := context.Background()
	e, remove := example()
	defer remove()

	service := map[string]string{} // what the payment service has, by idempotency key
	e.Handle(daybook.Job{
		Name: "renew", Priority: daybook.P0, Owner: "ops", Effects: daybook.Once, Timezone: "Europe/Berlin", Window: daybook.Day,
	}, func(ctx context.Context, r *daybook.Run) error {
		service[r.WireKey()] = "ch_1"
		return errors.New("connection reset") // failed, unclear
	}, engine.Probe(func(ctx context.Context, wireKey string) (string, daybook.Answer, error) {
		if id, ok := service[wireKey]; ok {
			return id, daybook.Yes, nil
		}
		return "", daybook.No, nil
	}))

	a, err := e.Trigger(ctx, "renew", daybook.At("2025-10-26"))
	if err != nil {
		log.Fatal(err)
	}
	if err := e.RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	r, err := e.Control().Run(ctx, a.Key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Key, r.State, string(r.Result), "by the", r.Effect.SettledBy)

	// Output:
	// renew:2025-10-26 done "ch_1" by the probe
}

// A program that stays works until its context ends, and then stops gracefully: what runs is asked to end, and every end is
// written.
func ExampleEngine_Start() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := handles("shop.db")
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.Open(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	e.Handle(daybook.Job{Name: "report", Owner: "ops", Schedule: "daily 07:00", Timezone: "Europe/Berlin"},
		func(ctx context.Context, r *daybook.Run) error {
			fmt.Println("the report of", r.Window.Date) // the business date, never time.Now()
			return nil
		})
	if err := e.Start(ctx); err != nil {
		log.Fatal(err)
	}
}
