package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // "pgx", as the program daybook opens it

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/postgres"
	"github.com/daybook-run/daybook/scheduler"
)

const (
	daybookSlots = 1000
	app          = "bench"
)

// daybookOn is Daybook, used as an application uses it. Every piece of work has a key that is unique for ever, its run, an
// attempt and the trigger that asked for it; all of that stays.
type daybookOn struct {
	store store
	join  func(ctx context.Context, slots int) (*daybookNode, error) // the present ledger
	empty func(ctx context.Context) error

	asks   *daybookNode // only asks, as another process does
	works  *daybookNode // nil: nobody works
	next   atomic.Int64 // numbers the events
	plans  *scheduler.Scheduler
	filled bool // a job owes windows
}

// daybookNode is one process on the ledger.
type daybookNode struct {
	*engine.Engine
	db engine.DB
}

func (n *daybookNode) close() error { return errors.Join(n.Close(), shut(n.db)) }

func openDaybookPostgres(_ context.Context, p *place) (peer, error) {
	if p.noPG != nil {
		return nil, p.noPG
	}
	d := &daybookOn{store: onPostgres}
	var url string
	d.empty = func(ctx context.Context) (err error) {
		url, err = p.postgres(ctx, "daybook")
		return err
	}
	d.join = func(ctx context.Context, slots int) (*daybookNode, error) {
		db, err := sql.Open("pgx", url)
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(conns)
		return openEngine(ctx, engine.DB{Write: db, Read: db}, postgres.NewListener(db), slots)
	}
	return d, nil
}

func openDaybookSQLite(_ context.Context, p *place) (peer, error) {
	d := &daybookOn{store: onSQLite}
	var path string
	d.empty = func(context.Context) (err error) {
		path, err = p.file("daybook")
		return err
	}
	d.join = func(ctx context.Context, slots int) (*daybookNode, error) {
		write, err := openSQLite(path, 1)
		if err != nil {
			return nil, err
		}
		read, err := openSQLite(path, 4)
		if err != nil {
			return nil, err
		}
		return openEngine(ctx, engine.DB{Write: write, Read: read}, nil, slots)
	}
	return d, nil
}

func openEngine(ctx context.Context, db engine.DB, ear daybook.Listener, slots int) (*daybookNode, error) {
	e, err := engine.Open(ctx, db, engine.Options{App: app, Listener: ear, Log: slog.New(slog.DiscardHandler), Slots: map[daybook.Lane]int{daybook.LaneLive: slots}})
	if err != nil {
		return nil, errors.Join(err, shut(db))
	}
	return &daybookNode{e, db}, nil
}

// shut closes the handles of a ledger.
func shut(db engine.DB) error {
	if db.Read == db.Write {
		return db.Write.Close()
	}
	return errors.Join(db.Write.Close(), db.Read.Close())
}

func (d *daybookOn) about() about {
	a := about{Name: "Daybook", Store: d.store, Version: version("github.com/daybook-run/daybook"), Share: 1, InProcess: true, Keeps: "key, run, attempt, trigger, steps, for as long as it is told to; keys for ever"}
	if d.store == onPostgres {
		a.Settings = fmt.Sprintf("pgx through database/sql; %d slots, pool %d", daybookSlots, conns)
	} else {
		a.Settings = fmt.Sprintf("modernc.org/sqlite %s, WAL, synchronous FULL, one connection that writes, 4 that read; %d slots", version("modernc.org/sqlite"), daybookSlots)
	}
	return a
}

func (d *daybookOn) reset(ctx context.Context) (err error) {
	if err := d.close(); err != nil {
		return err
	}
	if err := d.empty(ctx); err != nil {
		return err
	}
	if d.asks, err = d.join(ctx, daybookSlots); err != nil {
		return err
	}
	for _, w := range []work{noop, once, steps, effects} {
		d.asks.Handle(asked(w), doing(w, func(time.Time) {}))
	}
	d.filled = false
	d.next.Store(0)
	return d.asks.Load(ctx)
}

func (d *daybookOn) close() error {
	if d.asks == nil {
		return nil
	}
	asks := d.asks
	d.asks = nil
	return asks.close()
}

// asked is the job of a kind of work whose runs are asked for, each by the id of an event.
func asked(w work) daybook.Job {
	return daybook.Job{Name: "ask-" + w.Kind, Owner: app, Window: daybook.PerEvent, Effects: effectsOf(w), Steps: w.Steps > 0}
}

// owed is the one that owes a window for each minute, and catches up as fast as it can.
func owed(w work) daybook.Job {
	return daybook.Job{Name: "owe-" + w.Kind, Owner: app, Schedule: "every 1m", Timezone: "UTC", Window: daybook.PerFire, Missed: daybook.CatchUp, CatchupGap: -1,
		CatchupWindow: daybook.MaxDelay, Overlap: daybook.OverlapAllow, Effects: effectsOf(w), Steps: w.Steps > 0}
}

func effectsOf(w work) daybook.Effects {
	if w.Kind == once.Kind || w.Kind == effects.Kind {
		return daybook.Once
	}
	return daybook.Repeatable
}

// doing is how any of them is done.
func doing(w work, started func(time.Time)) func(context.Context, *daybook.Run) error {
	return func(ctx context.Context, r *daybook.Run) error {
		var began int64
		if err := r.Payload(&began); err != nil {
			return err
		}
		started(fromNano(began))
		return stepByStep(ctx, r, w)
	}
}

// stepByStep comes to every step of the work.
func stepByStep(ctx context.Context, r *daybook.Run, w work) error {
	for n := range w.Steps {
		name := "step-" + strconv.Itoa(n)
		var err error
		if w.Kind == effects.Kind {
			_, err = daybook.Effect(ctx, r, name, daybook.EffectOf[int]{Do: func(context.Context, string) (int, error) { return n, nil }})
		} else {
			_, err = daybook.Step(ctx, r, name, func(context.Context) (int, error) { return n, nil })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *daybookOn) insert(ctx context.Context, w work, began time.Time) error {
	n := d.asks
	if d.works != nil && d.store == onSQLite { // one process has the file
		n = d.works
	}
	payload := strconv.AppendInt(nil, began.UnixNano(), 10)
	a, err := n.Control().Trigger(ctx, control.Person{Name: app, Source: daybook.SourceAPI},
		control.Request{Job: asked(w).Name, Window: event(int(d.next.Add(1))), Source: daybook.SourceEvent, Payload: payload})
	if err == nil && a.Outcome != daybook.Started {
		err = fmt.Errorf("%s: %s", a.Key, a.Outcome)
	}
	return err
}

// fill lets the scheduler plan what a job owes: it is the way by which many runs come at once.
func (d *daybookOn) fill(ctx context.Context, w work, n int) error {
	now := time.Now()
	d.filled = true
	if err := d.scheduled(ctx, now.Add(-time.Duration(n)*time.Minute), owed(w)); err != nil {
		return err
	}
	return d.due(ctx, now)
}

// scheduled makes jobs known to a scheduler, as they were at an instant.
func (d *daybookOn) scheduled(ctx context.Context, at time.Time, jobs ...daybook.Job) error {
	compile := func(j daybook.Job) (scheduler.Job, error) {
		j, schedule, err := calendar.Complete(j, nil)
		return scheduler.Job{Job: &j, Schedule: schedule}, err
	}
	compiled := make([]scheduler.Job, len(jobs))
	for i, j := range jobs {
		var err error
		if compiled[i], err = compile(j); err != nil {
			return err
		}
	}
	d.plans = scheduler.New(d.asks.Store(), scheduler.Options{Compile: compile, Home: app, Log: slog.New(slog.DiscardHandler)})
	return d.plans.Load(ctx, compiled, false, at)
}

// due lets the scheduler plan what is due at an instant.
func (d *daybookOn) due(ctx context.Context, at time.Time) error {
	for {
		if more, err := d.plans.Tick(ctx, at); err != nil || !more {
			return err
		}
	}
}

// load makes jobs known that are due once an hour, all in the same minute.
func (d *daybookOn) load(ctx context.Context, n int, at time.Time) error {
	jobs := make([]daybook.Job, n)
	for i := range jobs {
		jobs[i] = daybook.Job{Name: "job-" + strconv.Itoa(i), Owner: app, Schedule: strconv.Itoa(at.UTC().Minute()) + " * * * *", Timezone: "UTC", Window: daybook.PerFire}
	}
	return d.scheduled(ctx, at.Add(-time.Minute), jobs...)
}

func (d *daybookOn) again(ctx context.Context, n int) error {
	a, err := d.asks.Control().Trigger(ctx, control.Person{Name: app, Source: daybook.SourceAPI},
		control.Request{Job: asked(noop).Name, Window: event(n), Source: daybook.SourceEvent})
	if err == nil && a.Outcome != daybook.Reused {
		err = fmt.Errorf("%s: %s", a.Key, a.Outcome)
	}
	return err
}

func (d *daybookOn) read(ctx context.Context, n int) error {
	r, err := d.asks.Store().Run(ctx, daybook.KeyParts{Job: asked(noop).Name, Window: event(n)}.Key())
	if err == nil && r.State != daybook.Done {
		err = fmt.Errorf("%s: %s", r.Key, r.State)
	}
	return err
}

func event(n int) string { return "e" + strconv.Itoa(n) }

func (d *daybookOn) start(ctx context.Context, w work, started func(time.Time)) (func() error, error) {
	slots := daybookSlots
	if w.Slots > 0 {
		slots = w.Slots
	}
	n, err := d.join(ctx, slots)
	if err != nil {
		return nil, err
	}
	n.Handle(asked(w), doing(w, started))
	if d.filled {
		n.Handle(owed(w), doing(w, started))
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Start(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return nil, errors.Join(err, n.close())
	}
	d.works = n
	return func() error {
		cancel()
		d.works = nil
		return errors.Join(<-ended, n.close())
	}, nil
}

func (d *daybookOn) left(ctx context.Context) (n int, err error) {
	err = d.asks.db.Read.QueryRowContext(ctx, "SELECT count(*) FROM daybook_live").Scan(&n)
	return n, err
}
