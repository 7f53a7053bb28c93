package main

import (
	"context"
	"errors"
	"time"
)

// peer is a system that does work for others, on an empty store of its own in the common place. Daybook is one on each of its
// databases, and so is the bare driver loop, which is the ceiling. A method that a peer cannot offer returns an error of
// cannot.
type peer interface {
	about() about
	// reset makes the store empty. Nobody works on it.
	reset(ctx context.Context) error
	// insert asks for one piece of work, and returns when that survives a power cut. The work is told when the call began.
	insert(ctx context.Context, w work, began time.Time) error
	// fill asks for n pieces of work, durably, in the fastest way that the peer offers to its callers.
	fill(ctx context.Context, w work, n int) error
	// start lets workers work until stop, and returns when they do. started is called from any goroutine, at the first line of
	// each piece of work: with the instant that insert was given, or the zero time where the work carries none.
	start(ctx context.Context, w work, started func(began time.Time)) (stop func() error, err error)
	// left counts what is not yet finished durably.
	left(ctx context.Context) (int, error)
	// close gives up what reset opened: between its turns a peer does nothing, and has nothing open.
	close() error
}

// about is what a reader must know of a peer to judge its figures.
type about struct {
	Name     string
	Store    store
	Version  string
	Settings string
	Keeps    string  // what it knows of finished work
	Share    float64 `json:"-"` // of the pieces of work that a scenario wants: rates do not depend on it, and slow peers would take an hour
	// InProcess says that its workers are part of this program, so that what they allocate is known.
	InProcess bool `json:"-"`
}

// store is a kind of database. Ratios are taken between peers on the same one; those on Redis stand beside both others.
type store string

const (
	onPostgres store = "PostgreSQL"
	onSQLite   store = "SQLite"
	onRedis    store = "Redis"
)

// work is a kind of work. None of it does anything.
type work struct {
	Kind  string
	Steps int // parts that are recorded one by one
	Slots int // pieces at once; 0: as many as suit the peer
}

var (
	noop    = work{Kind: "noop"}                           // may be repeated: nothing is written before it starts
	once    = work{Kind: "once", Slots: 100}               // has one effect, marked durably before it and after
	steps   = work{Kind: "steps", Slots: 100, Steps: 10}   // each step is recorded when it is done, and done again if it was not
	effects = work{Kind: "effects", Slots: 100, Steps: 10} // each step is marked durably before it and after
)

// cannot is what a peer does not offer, and why.
type cannot string

func (c cannot) Error() string { return string(c) }

func isCannot(err error) bool { return errors.As(err, new(cannot)) }

// entry is a row of the table of peers.
type entry struct {
	name  string // as flags name it
	store store
	open  func(ctx context.Context, p *place) (peer, error)
}

// peersAll are all there are, in the order in which they take turns.
var peersAll = []entry{
	{"daybook-postgres", onPostgres, openDaybookPostgres},
	{"river-postgres", onPostgres, openRiverPostgres},
	{"graphile-worker", onPostgres, openGraphile},
	{"dbos-postgres", onPostgres, openDBOSPostgres},
	{"bare-postgres", onPostgres, openBarePostgres},
	{"daybook-sqlite", onSQLite, openDaybookSQLite},
	{"river-sqlite", onSQLite, openRiverSQLite},
	{"dbos-sqlite", onSQLite, openDBOSSQLite},
	{"bare-sqlite", onSQLite, openBareSQLite},
	{"asynq-always", onRedis, openAsynq("always")},
	{"asynq-everysec", onRedis, openAsynq("everysec")},
}
