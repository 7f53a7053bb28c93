// Package executor claims due runs, has their runners do the work, and turns how it ended into a transition. It also
// rescues what nobody reported. It decides nothing itself: the rules are those of the root package. It is called by the
// loop, as four services: Claims, Ends, Leases and Rescue.
package executor

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
)

// Times of a lease.
const (
	DefaultLease = 30 * time.Second
	renewals     = 3    // a lease is renewed this many times before it would end
	rescueBatch  = 100  // expired leases looked at in one Tick
	reportBatch  = 1000 // ends written in one transaction
	awayPause    = time.Minute
	alivePause   = 10 * time.Second
)

// Work is how this process does a job.
type Work struct {
	Job    *daybook.Job
	Runner daybook.Runner
	Prober daybook.Prober                    // nil: the far side cannot be asked
	Undoer daybook.Undoer                    // nil: nothing is taken back
	List   ListFunc                          // nil: the job is not done for each of its subjects by itself
	Env    func() (map[string]string, error) // secrets, resolved when the attempt starts; nil: none
}

// ListFunc names the subjects of a run: see daybook.Lister.
type ListFunc func(ctx context.Context, w daybook.Window, o daybook.Order) iter.Seq2[daybook.Subject, error]

// Options of New.
type Options struct {
	Node  string // id of this process, with a random part
	Home  string
	Slots map[daybook.Lane]int // runs at once
	Lease time.Duration        // 0: DefaultLease
	// Dir holds a directory of its own for each attempt, for what outlives a crash of Daybook. Empty: none.
	Dir string
	// Survivor finds in those directories what an earlier process started. Required with Dir.
	Survivor daybook.Survivor
	// NewID makes ids of claims. Clock is the time of what happens between Ticks: begins and ends of attempts.
	NewID func() string
	Clock func() time.Time
	Work  func(job string) (Work, bool)
	// Rights returns the environment by which work with steps that is started outside this process speaks for its attempt, and
	// the token in it. Nil: there is none.
	Rights func(ctx context.Context, r *daybook.Run, j *daybook.Job) (env map[string]string, token string, err error)
	// InZone returns the window of a label as a job has it in another zone, and its first fire there. Required where jobs are
	// done for subjects that have zones of their own.
	InZone func(j *daybook.Job, zone, label string) (daybook.Window, time.Time, error)
	// Ended hears that runs of subjects ended, or were listed. May be nil.
	Ended func()
	// MayClaim says why nothing is to be claimed here now; ends are written all the same. Nil: nothing stands in the way.
	MayClaim func() error
	// Freezes returns those of a file that stand at an instant. Nil: there is no file, or its freezes do not hold here.
	Freezes func(at time.Time) []daybook.Freeze
	Log     *slog.Logger
}

// Executor does the work of one process.
type Executor struct {
	store   daybook.Claimer
	o       Options
	wake    chan struct{} // there may be something to claim
	due     atomic.Bool   // somebody says that something is due
	endings chan struct{} // there is something to write

	writing sync.Mutex    // held while ends are written: one batch at a time
	patient time.Duration // how long what was killed with its attempt may take to be gone

	mu       sync.Mutex
	flights  map[daybook.Key]*flight
	reports  []*flight // ended, not yet written
	atWork   int       // attempts and questions that have not ended
	stopping bool
	attended daybook.Key   // see Attend
	bar      bool          // something stands in the way of claiming
	full     bool          // the last claim filled its slots: there is likely more
	waits    bool          // a claim waits until ends are written
	next     time.Time     // when a run is due next, as the ledger said last; zero: none is
	lost     string        // the id of a claim whose answer was lost: it may have taken runs
	away     error         // why the ends could not be written the last time; nil: they were
	landed   chan struct{} // closed and renewed whenever a flight is over
}

// flight is one claimed run in this process: an attempt, a question to the far side, or a survivor of an earlier process
// that is waited for.
type flight struct {
	run      *daybook.Run
	cancel   context.CancelCauseFunc
	renewed  time.Time // when its lease was last known to be held
	ended    time.Time
	outcome  daybook.Outcome
	stood    daybook.Run                                            // what next was decided from
	decide   func(r *daybook.Run, now time.Time) daybook.Transition // nil: nothing is to be written
	next     daybook.Transition
	question bool
	command  string           // as started, where it is to be told
	secrets  []string         // masked in everything that is kept of it
	base     *daybook.Run     // of an undo: what it takes back
	adopted  string           // the directory of a survivor
	leader   *daybook.Outcome // how the attempt ended that it outlived; nil: nobody saw that
	ending   bool             // the survivor was asked to end
	told     bool             // that its end could not be kept
	kept     bool             // its end lies beside its attempt, since the ledger did not take it
}

// New returns an executor that has claimed nothing yet.
func New(store daybook.Claimer, o Options) *Executor {
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Ended == nil {
		o.Ended = func() {}
	}
	return &Executor{store: store, o: o, patient: goneAfter, wake: make(chan struct{}, 1), endings: make(chan struct{}, 1), flights: make(map[daybook.Key]*flight), landed: make(chan struct{})}
}

// Woken is signalled when there may be something to claim.
func (x *Executor) Woken() <-chan struct{} { return x.wake }

// Wake is for whoever may have made something due: it is claimed soon.
func (x *Executor) Wake() {
	x.due.Store(true)
	signal(x.wake)
}

// Endings is signalled when there is something to write.
func (x *Executor) Endings() <-chan struct{} { return x.endings }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Claims is the service that claims what is due. While ends are written, more is claimed beside that.
type Claims struct{ *Executor }

// Tick implements daybook.Service.
func (c Claims) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	x := c.Executor
	if x.behind() || x.barred() {
		return false, nil
	}
	claimed, err := x.claimLanes(ctx, now)
	return claimed > 0, err
}

// behind reports whether more ends wait to be written than twice as many runs as may be at work, or the ledger did not take them: then
// nothing is claimed until they are written.
func (x *Executor) behind() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	slots := 0
	for _, n := range x.o.Slots {
		slots += n
	}
	x.waits = x.away != nil || len(x.reports) > 0 && len(x.reports) >= 2*slots
	return x.waits
}

// claimPoll is how often it is asked for what is due while nobody says when that is.
const claimPoll = time.Second

// Wait implements loop.Waiter: nothing is to be done before the next run is due, but for what others make due.
func (c Claims) Wait(now time.Time) time.Duration {
	switch next := c.next; {
	case next.After(now):
		return next.Sub(now)
	case next.IsZero():
		return time.Hour
	}
	return claimPoll // it is due, and cannot be claimed yet
}

// barred reports whether something stands in the way of claiming, and tells when that begins and ends.
func (x *Executor) barred() bool {
	if x.o.MayClaim == nil {
		return false
	}
	err := x.o.MayClaim()
	if bar := err != nil; bar != x.bar {
		x.bar = bar
		if bar {
			x.o.Log.Error("nothing is claimed here", "err", err, "hint", daybook.HintOf(err))
		} else {
			x.o.Log.Warn("claiming again")
		}
	}
	return x.bar
}

// claimLanes claims lane by lane, where there are free slots and something is due.
func (x *Executor) claimLanes(ctx context.Context, now time.Time) (claimed int, err error) {
	x.mu.Lock()
	full := x.full
	x.mu.Unlock()
	free := map[daybook.Lane]int{daybook.LaneLive: x.free(daybook.LaneLive), daybook.LaneBackfill: x.free(daybook.LaneBackfill)}
	if free[daybook.LaneLive]+free[daybook.LaneBackfill] == 0 {
		return 0, nil
	}
	if !full && x.lost == "" && x.due.Swap(false) && free[daybook.LaneLive] > 0 { // no need to ask first
		if claimed, err = x.claim(ctx, daybook.LaneLive, free[daybook.LaneLive], now); err != nil || claimed > 0 {
			x.filled(claimed == free[daybook.LaneLive])
			return claimed, err
		}
	}
	var due map[daybook.Lane]time.Time
	if !full && x.lost == "" {
		if due, err = x.store.NextDue(ctx, x.o.Home); err != nil {
			return 0, err
		}
		x.next = time.Time{}
		for _, at := range due {
			if x.next.IsZero() || at.Before(x.next) {
				x.next = at
			}
		}
	}
	full = false
	for _, lane := range []daybook.Lane{daybook.LaneLive, daybook.LaneBackfill} {
		if at := due[lane]; free[lane] == 0 || due != nil && (at.IsZero() || at.After(now)) {
			continue
		}
		n, err := x.claim(ctx, lane, free[lane], now)
		if err != nil {
			return claimed, err
		}
		claimed += n
		full = full || n == free[lane]
	}
	x.filled(full)
	return claimed, nil
}

// filled notes whether a claim filled its slots.
func (x *Executor) filled(full bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.full = full
}

// claim fills the free slots of a lane.
func (x *Executor) claim(ctx context.Context, lane daybook.Lane, free int, now time.Time) (int, error) {
	c := daybook.Claim{Node: x.o.Node, Lane: lane, Home: x.o.Home, Limit: free, Freezes: x.freezes(now), Lease: now.Add(x.o.Lease), Again: x.lost != ""}
	if !c.Again {
		x.lost = x.o.NewID()
	}
	c.NewID = func() string { return x.lost }
	runs, err := x.store.Claim(ctx, c, now)
	if err != nil {
		return 0, err
	}
	x.lost = ""
	for _, r := range runs {
		x.launch(ctx, r, now)
	}
	return len(runs), nil
}

// freezes are those of the file that stand at an instant.
func (x *Executor) freezes(at time.Time) []daybook.Freeze {
	if x.o.Freezes == nil {
		return nil
	}
	return x.o.Freezes(at)
}

// outside tells a move of the freezes of the file that what is due then would fall into.
func (x *Executor) outside(t *daybook.Transition) {
	if t.To.Live() {
		t.Freezes = x.freezes(t.Due)
	}
}

// SetSlots says how many runs may be at work at once from now on, by lane. What is at work goes on.
func (x *Executor) SetSlots(slots map[daybook.Lane]int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.o.Slots = slots
}

func (x *Executor) free(lane daybook.Lane) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopping {
		return 0
	}
	free := x.o.Slots[lane]
	for _, f := range x.flights {
		if f.run.Lane == lane && f.ended.IsZero() {
			free--
		}
	}
	return max(free, 0)
}

// Attend says that this process claims a key whenever it can be claimed, as a foreground run does.
func (x *Executor) Attend(k daybook.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.attended = k
}

// Take is a claim of one key by this process, for whoever asks for the key in the same transaction. Its id is always the same.
func (x *Executor) Take(k daybook.Key, now time.Time) daybook.Claim {
	id := x.o.NewID()
	return daybook.Claim{Node: x.o.Node, Key: k, Limit: 1, Freezes: x.freezes(now), Lease: now.Add(x.o.Lease), NewID: func() string { return id }}
}

// Took reports whether a claim made by Take has a run.
func (x *Executor) Took(r *daybook.Run, take daybook.Claim) bool {
	return r != nil && r.State == daybook.Running && r.Claim == take.NewID()
}

// Taken starts a run if a claim made by Take has it.
func (x *Executor) Taken(ctx context.Context, r *daybook.Run, take daybook.Claim, now time.Time) bool {
	if !x.Took(r, take) {
		return false
	}
	x.launch(ctx, r, now)
	return true
}

// ClaimKey claims one run, if it can be claimed now, and starts it.
func (x *Executor) ClaimKey(ctx context.Context, k daybook.Key, now time.Time) (bool, error) {
	runs, err := x.store.Claim(ctx, x.Take(k, now), now)
	if err != nil || len(runs) == 0 {
		return false, err
	}
	x.launch(ctx, runs[0], now)
	return true, nil
}

// launch starts the goroutine of a claimed run. What it does outlives the Tick that claimed it: Stop ends it.
func (x *Executor) launch(ctx context.Context, r *daybook.Run, now time.Time) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight{run: r, cancel: cancel, renewed: now, question: r.Asking != ""}
	x.mu.Lock()
	x.flights[r.Key] = f
	x.atWork++
	if x.stopping {
		cancel(daybook.ErrShutdown)
	}
	x.mu.Unlock()
	go func() {
		defer cancel(nil)
		if f.question {
			x.question(ctx, f)
		} else if x.attempt(ctx, f); x.outlived(f) {
			x.mu.Lock()
			x.atWork--
			x.mu.Unlock()
			return
		}
		x.over(f)
	}()
}

// over hands an ended flight to the next write.
func (x *Executor) over(f *flight) {
	ended := x.o.Clock()
	x.mu.Lock()
	f.ended = ended
	x.reports = append(x.reports, f)
	if f.adopted == "" {
		x.atWork--
	}
	tells := len(x.reports) == 1 || x.whole()
	x.mu.Unlock()
	if tells {
		signal(x.endings)
	}
}

// drop forgets a flight.
func (x *Executor) drop(f *flight) {
	x.mu.Lock()
	if x.flights[f.run.Key] == f {
		delete(x.flights, f.run.Key)
	}
	close(x.landed)
	x.landed = make(chan struct{})
	x.mu.Unlock()
}

// InFlight returns how many claimed runs this process has not finished with.
func (x *Executor) InFlight() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.flights)
}

// Stop claims no more, asks every attempt to end and returns when all have ended and are written, or when ctx is done.
// Tick must go on being called meanwhile.
func (x *Executor) Stop(ctx context.Context) error {
	x.mu.Lock()
	x.stopping = true
	for k, f := range x.flights {
		if f.adopted != "" && f.ended.IsZero() {
			delete(x.flights, k) // the next process waits for it
		} else {
			f.cancel(daybook.ErrShutdown)
		}
	}
	x.mu.Unlock()
	signal(x.endings)
	for {
		x.mu.Lock()
		n, landed := len(x.flights), x.landed
		x.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-landed:
		case <-ctx.Done():
			return daybook.New(daybook.CodeUnavailable, "stop: some ends could not be written").Because(ctx.Err())
		}
	}
}

// Holds reports whether this process is at work on a key, or waits for what an earlier one started.
func (x *Executor) Holds(k daybook.Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.flights[k]
	return ok
}

// definition is the job as this process defines it, or else the ledger; nil when neither does.
func (x *Executor) definition(ctx context.Context, job string) (*daybook.Job, error) {
	if w, ok := x.o.Work(job); ok {
		return w.Job, nil
	}
	j, err := x.store.Definition(ctx, job)
	return j, ignoreNotFound(err)
}

// policy is what the job's definition says about ends. Where nobody goes on by himself, as with jobs that only
// `daybook once` runs, what is open goes to a person.
func (x *Executor) policy(ctx context.Context, r *daybook.Run) (daybook.Policy, error) {
	j, err := x.definition(ctx, r.Job)
	if err != nil || j == nil {
		return daybook.Policy{}, err
	}
	p := j.Policy()
	if !x.goesOn(r) {
		p.Asks, p.AsksUndo, p.Remembers = false, false, 0
	}
	return p, nil
}

// goesOn reports whether a run is claimed again when it is due: by any serve, or because this process attends to its key.
func (x *Executor) goesOn(r *daybook.Run) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return r.Home != daybook.HomeOnce || r.Key == x.attended
}
