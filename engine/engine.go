// Package engine wires the rooms to one ledger and runs their loops. It is the library's front door: open it with your own
// database handles, register jobs, start it. It decides nothing; it is where clocks are read and random ids are made.
package engine

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/fanout"
	"github.com/daybook-run/daybook/pruner"
	"github.com/daybook-run/daybook/runner"
	"github.com/daybook-run/daybook/scheduler"
	"github.com/daybook-run/daybook/store"
)

// DB are the caller's handles; see store.DB.
type DB = store.DB

// Options of Open. The zero value is right for most.
type Options struct {
	Version   string
	App       string               // the name of the application: see Open; default: the path of its main package
	Role      string               // of the program daybook: serve, once, cli; empty: an application
	Slots     map[daybook.Lane]int // runs at once; default: 16 live, 4 backfill
	Retention daybook.Retention    // default: 30 days
	// Freezes are those of a file, whose schedules are in the time zone Zone. They hold the jobs of the file.
	Freezes []daybook.FreezeRule
	Zone    string
	Lease   time.Duration // default: executor.DefaultLease
	Dir     string        // for what outlives a crash: a directory of this host and ledger; empty: none
	Days    func(name string) (*calendar.Days, error)
	Exec    runner.Exec
	// UserDB opens a database that a listing of subjects asks, to be read only. Nil: none can be asked.
	UserDB func(dsn string) (*sql.DB, error)
	// Alerts are the channels and who is told on them; what it says of ids and logs is replaced. Without channels alerts
	// are rows only. Start refuses a route to a channel that is not there.
	Alerts alert.Options
	// URL is where httpapi.Handler with this engine's control is reached: HTTP jobs that answer 202 are told to report
	// there. LocalURL is the same for jobs on this machine, which is enough where nobody else can reach it. Both empty:
	// nothing takes their reports.
	URL, LocalURL string
	// Ledger is how a command of this machine names the ledger: a URL, or a reference to one. Work with steps is told it.
	// Empty: a command cannot mark its steps.
	Ledger string
	// Listener hears what other nodes of a PostgreSQL make due, a moment after they did: postgres.NewListener. Nil: the ledger
	// is polled, each second, as it is in any case.
	Listener  daybook.Listener
	NoMigrate bool // refuse an older schema instead of bringing it up to date
	// WitnessDir is a directory of this host in which a witness keeps how far each ledger had come, so that an older copy in its
	// place is found. Beside a SQLite file there is one in any case. Empty: none.
	WitnessDir string
	ReadOnly   bool // only look into the ledger: nothing is written, and an older schema is refused
	Log        *slog.Logger
	Now        func() time.Time     // default: time.Now
	ByHand     bool                 // Now is moved by hand, as in tests: it is the time, whatever the clock of the database says
	Pace       float64              // how much faster Now runs than time does, as in a demonstration; default: 1
	Boot       func() time.Duration // time since boot, suspend included; default: the system's
}

// DefaultSlots are the runs at once of a process.
var defaultSlots = map[daybook.Lane]int{daybook.LaneLive: 16, daybook.LaneBackfill: 4}

// DefaultRetention is how long attempts, outputs and payloads are kept.
const DefaultRetention = 30 * 24 * time.Hour

// Engine is one process on a ledger.
type Engine struct {
	o        Options
	store    *store.Store
	rows     ringing // the store, for those who bring alerts
	node     daybook.Node
	home     string // of the jobs of this process
	clock    *clock
	schedule *scheduler.Scheduler
	exec     *executor.Executor
	fans     *fanout.Fanout
	control  *control.Control
	reports  *reports
	ear      *ear // nil: nothing is heard

	planned sync.Mutex // held while the scheduler works: it is one at a time
	pruner  replaced
	sender  replaced

	mu          sync.RWMutex
	set         Settings
	freezes     *calendar.Freezes // of the file
	work        map[string]executor.Work
	definitions map[string]*daybook.Job
	jobs        []scheduler.Job
	carries     map[string]string // earlier names of jobs, and the names that they have now
	handled     []Definition      // as given
	faults      []error           // of Handle
	retired     []string          // by Retire
	stop        context.CancelFunc
	stopped     chan struct{} // closed when Start has returned

	witness    witness
	doubtful   atomic.Bool // a write found the ledger without what it had acknowledged
	wakeRecall chan struct{}
	wakeDoubts chan struct{}
	place      string // of a SQLite file

	doubts *executor.Doubts
	rescue executor.Rescue // of RunDue
	loaded bool            // RunDue has
}

// Definition is a job with how this process does it.
type Definition struct {
	Job daybook.Job // as written; it is completed here
	// Env resolves what the definition refers to, when an attempt starts: variables of a command by their names, what an
	// HTTP call needs by those of runner.EnvSecret and its kin. Values that the definition does not hold itself are masked
	// wherever they could show. May be nil.
	Env func() (map[string]string, error)
	// Do and Ask are the registered function and its probe, for a job without a command.
	Do  runner.Func
	Ask runner.ProbeFunc
	// List names the subjects of a window; nil: the job has none, or the file says where they are listed.
	List daybook.Lister
	// Listing looks up what Job.Subjects refers to, when a run lists. Required where the job has them.
	Listing func() (daybook.Listing, error)
}

// Open verifies the handles and opens the ledger in them, which is made if there is none. At most one Options is given.
//
// The jobs of an application stand in the ledger under its name: a daybook serve, and other applications, neither do nor
// retire them. All processes of one application have one name. Programs with different jobs need different ones, which they
// have by default: the path of the main package.
//
// Errors: CodeInvalid for handles that are unsafe, or a schema that is newer than this program or may not be migrated;
// CodeUnavailable when the database cannot be reached.
func Open(ctx context.Context, db DB, options ...Options) (*Engine, error) {
	var o Options
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		return nil, daybook.Invalid("%d Options are given to Open: at most one", len(options))
	}
	if err := checkApp(o); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	e := &Engine{o: o, work: make(map[string]executor.Work), definitions: make(map[string]*daybook.Job), witness: witness{log: o.Log}, wakeRecall: make(chan struct{}, 1), wakeDoubts: make(chan struct{}, 1)}
	s, err := store.Open(ctx, db, store.Options{NewID: newID, Migrate: !o.NoMigrate, ReadOnly: o.ReadOnly, Now: o.Now(), Witness: e.witness.note, Forgot: e.forgot})
	if err != nil {
		return nil, err
	}
	version, source := calendar.TZData()
	e.store, e.rows = s, ringing{s, make(chan struct{}, 1)}
	e.node = daybook.Node{ID: newID(), Host: hostname(), PID: os.Getpid(), Role: o.Role, Version: o.Version, TZData: version + " " + source,
		StartedAt: o.Now(), BootID: bootID()}
	e.home = home(o)
	e.set = Settings{Slots: o.Slots, Retention: o.Retention, Alerts: o.Alerts, URL: o.URL, LocalURL: o.LocalURL, Freezes: o.Freezes, Zone: o.Zone}.withDefaults()
	if e.freezes, err = calendar.CompileFreezes(o.Freezes, o.Zone); err != nil {
		return nil, err
	}
	e.pruner.put(pruner.New(s, pruner.Options{Retention: e.set.Retention}))
	e.sender.put(alert.New(s, e.alerts(e.set)))
	e.clock = newClock(s, e.node, o.Now, o.Boot, o.Log)
	e.clock.byHand = o.ByHand
	e.fans = fanout.New(s, fanout.Options{Portion: e.portion, Woke: func() { e.exec.Wake() }, Log: o.Log})
	e.exec = executor.New(e.rows, executor.Options{Node: e.node.ID, Home: e.home, Slots: e.set.Slots, Lease: o.Lease, Dir: o.Dir, Survivor: &o.Exec, NewID: newID,
		Clock: e.clock.Now, Work: e.workOf, MayClaim: e.clock.usable, Rights: e.rights, InZone: e.inZone, Ended: e.fans.Wake, Freezes: e.holding, Log: o.Log})
	e.schedule = scheduler.New(s, scheduler.Options{Compile: e.compile, TZData: e.node.TZData, Home: e.home, Log: o.Log, Woke: e.exec.Wake,
		Freezes: e.between})
	e.rescue.Executor = e.exec
	homes := []string{e.home}
	if e.home == "" {
		homes = append(homes, daybook.HomeOnce) // its lines leave to a person what is open
	}
	e.doubts = executor.NewDoubts(e.exec, homes...)
	e.reports = newReports(e)
	if o.Listener != nil && s.Calls() {
		e.ear = newEar(o.Listener, s.Call, e.wake, o.Log)
	}
	e.control = control.New(e.rows, control.Options{Clock: e.clock.Now, Days: e.days, Defined: e.defined, Home: e.home, Wake: e.wake, Told: e.told, Printed: e.exec.Printed, Freezes: e.ofFile,
		MayClaim: e.clock.usable, Lease: o.Lease, NewID: newID, NewSecret: newSecret, ReadReport: runner.ParseReport, SafeText: runner.SafeText, Secrets: e.exec.Secrets, Reported: e.reports.came})
	if !o.ReadOnly {
		if err := e.watch(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return e, nil
}

func (o Options) withDefaults() Options {
	if o.Role == "" {
		if o.App == "" {
			o.App = program()
		}
		o.Role = o.App
	}
	if o.Lease == 0 {
		o.Lease = executor.DefaultLease
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Boot == nil {
		o.Boot = sinceBoot
	}
	return o
}

func home(o Options) string {
	if o.Role == "once" {
		return daybook.HomeOnce
	}
	return o.App // empty for serve and cli: what a file defines
}

// newSecret returns 256 random bits as text.
func newSecret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// Close gives up what Open took. The handles are the caller's.
func (e *Engine) Close() error { return e.store.Close() }

// Control is what a person can do.
func (e *Engine) Control() *control.Control { return e.control }

// Store is the ledger, for what looks after it as a whole.
func (e *Engine) Store() *store.Store { return e.store }

// Node is this process as the ledger lists it.
func (e *Engine) Node() daybook.Node { return e.node }

func (e *Engine) days(name string) (*calendar.Days, error) {
	if name == "" {
		return nil, nil
	}
	if e.o.Days != nil {
		return e.o.Days(name)
	}
	if d, ok := calendar.Embedded(name); ok {
		return d, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, daybook.Invalid("read the calendar %s", name).Because(err)
	}
	return calendar.ParseDays(name, text)
}

// ofFile are the freezes of the file.
func (e *Engine) ofFile() *calendar.Freezes {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.freezes
}

// between are those of them that end after one instant and begin before another.
func (e *Engine) between(ends, begins time.Time) []daybook.Freeze {
	return e.ofFile().Between(ends, begins)
}

// holding are the freezes of the file that hold what this process claims: a line of the crontab does not wait for them.
func (e *Engine) holding(at time.Time) []daybook.Freeze {
	if e.home == daybook.HomeOnce {
		return nil
	}
	return e.ofFile().At(at)
}

func (e *Engine) compile(j daybook.Job) (scheduler.Job, error) {
	days, err := e.days(j.Calendar)
	if err != nil {
		return scheduler.Job{}, err
	}
	j, schedule, err := calendar.Complete(j, days)
	return scheduler.Job{Job: &j, Schedule: schedule}, err
}

// workOf returns how a job is done; what stands under an earlier name is done as the job is now.
func (e *Engine) workOf(job string) (executor.Work, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	w, ok := e.work[job]
	if !ok {
		w, ok = e.work[e.carries[job]]
	}
	return w, ok
}

// learnNames reads which earlier names the jobs of the ledger carry on.
func (e *Engine) learnNames(ctx context.Context) error {
	carries, err := e.namesOf(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.carries = carries
	return nil
}

func (e *Engine) namesOf(ctx context.Context) (map[string]string, error) {
	states, err := e.store.JobStates(ctx)
	carries := make(map[string]string)
	for _, st := range states {
		for _, n := range st.Formerly {
			carries[n] = st.Name
		}
	}
	return carries, err
}

func (e *Engine) defined(job string) (*daybook.Job, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	j, ok := e.definitions[job]
	return j, ok
}

// Define makes the given definitions the ones this process knows, all or none. They count from Start, or from Load on.
// Errors have CodeInvalid and name the job; all of them are returned.
func (e *Engine) Define(definitions ...Definition) error {
	c, err := e.completeAll(e.settings(), definitions)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs, e.work, e.definitions, e.handled = c.jobs, c.work, c.known, definitions
	return nil
}

func (e *Engine) completeAll(s Settings, definitions []Definition) (completed, error) {
	c := completed{make([]scheduler.Job, 0, len(definitions)), make(map[string]executor.Work, len(definitions)), make(map[string]*daybook.Job, len(definitions))}
	var faults []error
	for _, d := range definitions {
		j, w, err := e.complete(s, d)
		if err == nil && c.known[j.Name] != nil {
			err = daybook.Invalid("job %s is defined twice", j.Name)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		c.jobs, c.work[j.Name], c.known[j.Name] = append(c.jobs, j), w, j.Job
	}
	return c, errors.Join(faults...)
}

func (e *Engine) complete(s Settings, d Definition) (scheduler.Job, executor.Work, error) {
	if d.Ask != nil {
		d.Job.HasProbe = true
	}
	if d.List != nil {
		d.Job.HasSubjects = true
	}
	j, err := e.compile(d.Job)
	if err != nil {
		return j, executor.Work{}, err
	}
	var faults []error
	for _, f := range append(j.Check(), runner.CheckHTTP(j.Job)...) {
		faults = append(faults, f.Err)
	}
	if len(faults) > 0 {
		return j, executor.Work{}, errors.Join(faults...)
	}
	o := e.runners(s)
	o.Funcs = map[string]runner.GoFunc{j.Name: {Do: d.Do, Ask: d.Ask}}
	r, err := runner.For(j.Job, o)
	if err != nil {
		return j, executor.Work{}, err
	}
	w := executor.Work{Job: j.Job, Runner: r, Prober: proberOf(j.Job, r), Undoer: runner.Undoer(j.Job, o), List: e.listOf(d), Env: d.Env}
	return j, w, nil
}

// runners are what runners are made of here.
func (e *Engine) runners(s Settings) runner.Options {
	return runner.Options{Exec: e.o.Exec, HTTP: runner.HTTP{Clock: e.clock.Now, Callbacks: e.callbacks(s)}}
}

// proberOf is how the far side of a job is asked; nil: it cannot be.
func proberOf(j *daybook.Job, r daybook.Runner) daybook.Prober {
	if p, ok := r.(daybook.Prober); ok && j.Asks() {
		return p
	}
	return nil
}

// Load makes the defined jobs the ledger's current ones: what changed gets a new revision, what is gone from a file is
// retired. What an application does not handle is retired by Retire only. Errors with CodeConflict: another program does a
// job of this name.
func (e *Engine) Load(ctx context.Context) error {
	if err := e.Err(); err != nil {
		return err
	}
	e.mu.RLock()
	jobs, retired := e.jobs, e.retired
	e.mu.RUnlock()
	if e.home == "" {
		if err := e.schedule.Load(ctx, jobs, true, e.clock.Now()); err != nil {
			return err
		}
		return e.learnNames(ctx)
	}
	e.schedule.Retire(retired...)
	if err := e.schedule.Load(ctx, jobs, false, e.clock.Now()); err != nil {
		return hinted(err)
	}
	if err := e.learnNames(ctx); err != nil {
		return err
	}
	return e.tellUnhandled(ctx)
}
