package daybook

import (
	"context"
	"database/sql"
	"time"
)

// Service is the one shape of every room that works on its own: a Tick does one bounded piece of work, in transactions of
// its own, and says whether it should be called again at once.
type Service interface {
	Tick(ctx context.Context, now time.Time) (more bool, err error)
}

// The roles of the store. A room takes only the one it calls. Every method is one transaction, every call takes a context
// that can be cancelled, and `now` comes from the caller.

// Planner is the store as the scheduler sees it.
type Planner interface {
	// JobStates returns every job the ledger knows, retired ones included, by name.
	JobStates(ctx context.Context) ([]JobState, error)
	// TakeRevisions makes the given definitions the current ones. A definition that equals the current one keeps its
	// number. A new job starts at now: its past is not decided. Before a changed one counts, the caller has planned the
	// old one up to now; left are the windows that fall between, written as skipped: schedule changed. Jobs that are
	// known, not in the list and not at home elsewhere are retired; so are those that another one carries on from now on
	// (Job.Formerly). The states afterwards are returned. An error with CodeConflict: a job is at home elsewhere, and not
	// retired there, or its name is carried on by another one.
	TakeRevisions(ctx context.Context, changes []Revision, retireOthers bool, now time.Time) ([]JobState, error)
	// Plan decides and writes plans. A plan whose cursor or revision is no longer the ledger's is not written: another
	// scheduler was first, and Planned.Stale says so.
	Plan(ctx context.Context, plans []*Plan, now time.Time) ([]Planned, error)
	// Unaccounted returns those of the windows of a job that have neither a row nor a span, under none of its names.
	Unaccounted(ctx context.Context, job string, windows []PlannedWindow) ([]PlannedWindow, error)
	// Scanned records that the look-backs of jobs were compared with their rows.
	Scanned(ctx context.Context, jobs []string, now time.Time) error
	// Fault records why a job's schedule cannot be worked out, with one alert; an empty text clears it.
	Fault(ctx context.Context, job string, priority Priority, text string, now time.Time) error
	// Freezes returns those that end after an instant, also those that are over.
	Freezes(ctx context.Context, after time.Time) ([]Freeze, error)
	// Definitions returns the revisions of a job that counted at some instant from `from` on, oldest first, those under
	// earlier names included: JobState.Name says under which.
	Definitions(ctx context.Context, job string, from time.Time) ([]JobState, error)
}

// Revision is a definition to be made current.
type Revision struct {
	Job  *Job
	Home string
	Left []Window // windows that the change leaves out
	// Gone retires the job of this name, if it is known at this home, instead.
	Gone bool
}

// Acceptance says that a person accepted what one change of a definition does to the keys of its job: from the one that Old
// tells to the one that New tells, and no other. New is empty where the job is removed.
type Acceptance struct {
	Job      string
	Old, New string
	At       time.Time
	Actor    string
	Note     string
}

// Planned is what became of a plan.
type Planned struct {
	Job     string
	Stale   bool
	Held    Reason // not written: nothing of this kind starts now
	Started int    // runs made that are to be claimed
	// The ledger's cursor and revision afterwards; of a job that was retired or is unknown, revision 0.
	Cursor   time.Time
	Revision int64
}

// Claim asks for work.
type Claim struct {
	Node    string
	Lane    Lane
	Home    string
	Limit   int
	Key     Key // only this one, when it is due; empty: any
	Lease   time.Time
	NewID   func() string
	Freezes []Freeze // those of a file that stand now; the ledger knows its own
	// Again says that the answer of a claim with this id was lost: what it took comes back, if it took anything.
	Again bool
}

// Claimer is the store as the executor sees it.
type Claimer interface {
	// Claim takes up to Limit due runs, P0 first, then by time. Each comes back either Running, with a new fence and a
	// lease, or, when it is settling, as it was, with Asking set: then the far side is to be asked.
	Claim(ctx context.Context, c Claim, now time.Time) ([]*Run, error)
	// Begin marks, durably, that the work of a claimed run starts: the effect as a whole if there is one. The run is
	// updated. An error with CodeStale means that it must not start.
	Begin(ctx context.Context, r *Run, e *StepRecord, now time.Time) error
	// Renew extends the leases of what a node holds and returns what it does not hold any more, or was asked to end.
	Renew(ctx context.Context, held []*Run, lease, now time.Time) ([]Notice, error)
	// Expired returns running runs, and questions, whose lease is over at now, or ends after `ahead`: a clock that leapt
	// back leaves such leases.
	Expired(ctx context.Context, now, ahead time.Time, limit int) ([]*Run, error)
	// ReleaseAsking gives up questions whose lease is over, so that they are asked again.
	ReleaseAsking(ctx context.Context, keys []*Run, now time.Time) error
	// Unpark lets go what is parked and waits for nothing any more: runs that wait for a serial key which nobody has, and keys
	// that nobody needs. More: there were some.
	Unpark(ctx context.Context, now time.Time) (more bool, err error)
	// Thaw lets go what was put off for a freeze that is none any more: it was taken out of the file, or the file has it no
	// more for as long. ofFile returns those of the file that stand at an instant.
	Thaw(ctx context.Context, home string, ofFile func(at time.Time) []Freeze, now time.Time) (thawed bool, err error)
	// Freezes is that of Reader.
	Freezes(ctx context.Context, after time.Time) ([]Freeze, error)
	// Locks returns the serial keys that runs have, those held longest first; Alert writes an alert that no move brings.
	Locks(ctx context.Context, limit int) ([]Lock, error)
	Alert(ctx context.Context, a *Alert) error
	// NextDue returns when the next claimable run of each lane is due; a lane without one is missing.
	NextDue(ctx context.Context, home string) (map[Lane]time.Time, error)
	// Definition returns the definition that counts for a job, also one that no file defines. That of a name that another
	// job carries on is that job's.
	Definition(ctx context.Context, job string) (*Job, error)
	// ListChildren and Vanished are those of FanStore.
	ListChildren(ctx context.Context, parent *Run, children []*Run, lease time.Time) (fresh, known int, err error)
	Vanished(ctx context.Context, parent *Run) (int64, error)
	// Questionable returns runs that wait for the end of the freeze of a lapse, were in the ledger before it, and were not yet
	// decided about by Run.Question; none when no such freeze stands. They come by key, from behind one on.
	Questionable(ctx context.Context, home string, after Key, limit int) ([]*Run, error)
	Stepper
	Mover
}

// FanStore is the store as those see it who list subjects, and look after runs that have them.
type FanStore interface {
	// ListChildren writes the runs of subjects that the holder of parent lists, if they are new, and notes of the others that
	// they are listed again. known counts those that an earlier listing, or a person, had made: the rest was named twice by
	// this one. An error with CodeStale: parent is not held any more.
	ListChildren(ctx context.Context, parent *Run, children []*Run, lease time.Time) (fresh, known int, err error)
	// Vanished counts the subjects that an earlier listing named and the current attempt of parent did not.
	Vanished(ctx context.Context, parent *Run) (int64, error)
	// Fanouts returns runs with subjects that are to be looked at.
	Fanouts(ctx context.Context, now time.Time, limit int) ([]Key, error)
	// Look looks at one by the rule of Fanout.Next, and carries out what that decides.
	Look(ctx context.Context, k Key, p Policy, portion int, now time.Time) error
	// Definition returns the definition that counts for a job.
	Definition(ctx context.Context, job string) (*Job, error)
}

// Stepper keeps the steps of a run for whoever holds it.
type Stepper interface {
	// MarkStep writes the record of a step, and alerts, for the holder of a running run. An error with CodeStale: it is not
	// held any more, or another wrote one of its steps since it was read; or the step begins, and a person asked for the end
	// of the attempt.
	MarkStep(ctx context.Context, r *Run, e *StepRecord, learned Learned) error
	// MarkStepTx does so in a transaction of the caller on the ledger's database, which the caller commits. The step begins
	// and ends with it: once a person asked for the end, it is stale.
	MarkStepTx(ctx context.Context, tx *sql.Tx, r *Run, e *StepRecord) error
	// Deny notes why the holder of a running run was not let begin a step of it. Errors are those of MarkStep.
	Deny(ctx context.Context, r *Run, why string) error
}

// Notice is what the holder of a lease is told.
type Notice struct {
	Key         Key
	Fence       int64
	Lost        bool
	CancelledBy string
}

// Mover applies transitions.
type Mover interface {
	// Apply carries out each transition in a transaction together with every row that changes with it; many may share
	// one. Applied tells, in the order given, which ones were written. One that met another state, fence or claim wrote
	// nothing: it is stale.
	Apply(ctx context.Context, ts []Transition) ([]Applied, error)
	// Evidence keeps a report that was refused, or the answer to a question that something else had settled; with twice, that an
	// effect was done under another wire key as well.
	Evidence(ctx context.Context, a Attempt, twice *Twice) error
	// Run returns the record of a key, or an error with CodeNotFound.
	Run(ctx context.Context, k Key) (*Run, error)
}

// Applied is what became of a transition.
type Applied struct {
	Stale bool
	Due   time.Time // when the run is due next, if it is live
}

// Desk is the store as control sees it: what a person can do.
type Desk interface {
	// Trigger answers an Ask by the table of Decide, records the trigger and the activity that it is, and carries out the act.
	// The template is the run to be made when the key is new. The run is returned as it stands afterwards; nil when there is
	// none. A key that stands under an earlier name of its job is answered by that row, whose key the run then has. An error
	// with CodeConflict: the job carries another name now, under which new keys are asked for.
	Trigger(ctx context.Context, a Ask, template *Run, now time.Time) (Reply, *Run, error)
	// CancelRunning asks the executor of a running run to end it. An error with CodeStale: it is not running.
	CancelRunning(ctx context.Context, k Key, fence int64, act Activity) error
	// Pause and resume a job. The change is false when it stood so already.
	Pause(ctx context.Context, job string, act Activity) (changed bool, err error)
	Resume(ctx context.Context, job string, act Activity) (changed bool, err error)
	// Ensure makes a job known that no file defines, or updates its definition.
	Ensure(ctx context.Context, j *Job, home string, now time.Time) (JobState, error)
	// Accept records that a person accepts one change of a definition, with the act. A second time changes nothing.
	Accept(ctx context.Context, a Acceptance, act Activity) error
	// ReplaySubjects replays a part of the open letters of the subjects of a run, but those of unknown outcomes, behind a key.
	// next is where the next part begins; empty: there is none.
	ReplaySubjects(ctx context.Context, k, after Key, who, note string, now time.Time) (replayed []Key, next Key, err error)
	// HighestN returns the highest n of job:window~n that exists, 0 for none, under any name of the job.
	HighestN(ctx context.Context, job, window, subject string) (int, error)
	// StartFreeze begins a freeze, unless one of this name stands; EndFreeze ends one before its time.
	StartFreeze(ctx context.Context, f Freeze, act Activity) (started bool, err error)
	EndFreeze(ctx context.Context, name string, act Activity) (ended bool, err error)
	// Holds and the end of one.
	Hold(ctx context.Context, h Hold) (changed bool, err error)
	// An error with CodeConflict: of a restored ledger, while Unsettled is not 0.
	EndHold(ctx context.Context, name string, act Activity) (changed bool, err error)
	Stepper
	Mover
}

// Driller is the store as drills need it.
type Driller interface {
	// Tally counts what is recorded of a key and of the keys of its subjects.
	Tally(ctx context.Context, k Key) (Tally, error)
	// KeepDrill records a drill, and gives it its ID: with an alert when something came of it, else the one of a drill before
	// is over, as in either case the reminder is.
	KeepDrill(ctx context.Context, d *Drill, failed *Alert, act Activity) error
	// Drills returns the drills of a job, or of all when it is empty, newest first.
	Drills(ctx context.Context, job string, limit int) ([]Drill, error)
}

// Hold is something that keeps runs from starting, put up by Daybook itself.
type Hold struct {
	Name   string // HoldClock, HoldRestored
	Since  time.Time
	Detail string
	Node   string
}

// Lock is a serial key that a run has: no other run of that serial key is at work meanwhile.
type Lock struct {
	Serial  string
	Key     Key // the run that has it
	Since   time.Time
	Waiting int  // runs that are parked until it is free
	Claimed bool // the run is at work, or the far side is being asked about it
	Open    bool // an effect of it is unknown, or begun and not ended
}

// HoldClock holds new windows of `effects: once` work while the wall clock is not confirmed.
const HoldClock = "clock"

// HoldRestored holds everything that may happen once only in a ledger that forgot: see Lapse.
const HoldRestored = "restored"

// Filter narrows a list of runs. Zero fields do not narrow.
type Filter struct {
	Job    string // with what stands under its earlier names
	State  State
	Prefix string // of the key
	From   string // business dates, inclusive
	To     string
	After  Key // continue behind this key
	Limit  int
}

// Reader is the store as lists and pages see it.
type Reader interface {
	Run(ctx context.Context, k Key) (*Run, error)
	Runs(ctx context.Context, f Filter) ([]*Run, error)
	Attempts(ctx context.Context, k Key) ([]Attempt, error)
	Output(ctx context.Context, k Key, fence int64) (Output, error)
	Triggers(ctx context.Context, k Key) ([]Trigger, error)
	Letters(ctx context.Context, openOnly bool, limit int) ([]Letter, error)
	LettersOf(ctx context.Context, k Key) ([]Letter, error)
	// LettersToReplay returns open letters, but those of unknown outcomes, behind a key in the order of keys: of one job, or all.
	LettersToReplay(ctx context.Context, job string, after Key, limit int) ([]Letter, error)
	Alerts(ctx context.Context, openOnly bool, limit int) ([]Alert, error)
	Activities(ctx context.Context, since time.Time, actor string, limit int) ([]Activity, error)
	// ActivitiesAfter returns what was done after an act, given by its instant and id, oldest first: how the whole record is
	// read, a part at a time.
	ActivitiesAfter(ctx context.Context, at time.Time, id string, limit int) ([]Activity, error)
	JobStates(ctx context.Context) ([]JobState, error)
	// JobState returns one of them, however many there are.
	JobState(ctx context.Context, job string) (st JobState, known bool, err error)
	Spans(ctx context.Context, job string, from time.Time) ([]Span, error)
	LastGood(ctx context.Context) (map[string]Good, error)
	// Subjects counts the subjects of a run; of a run without it counts none.
	Subjects(ctx context.Context, k Key) (SubjectCounts, error)
	// SubjectLetters returns the first keys of the subjects of a run whose letters stand open: those of unknown outcomes, or the
	// others.
	SubjectLetters(ctx context.Context, parent Key, unknown bool, limit int) ([]Key, error)
	// Troubled returns the runs of subjects of a run of which there is more to tell than one good attempt, in the order of keys.
	Troubled(ctx context.Context, k Key, limit int) ([]Key, error)
	// UndoneSubjects returns those of them of which what was done is taken back, or was, in the order of keys.
	UndoneSubjects(ctx context.Context, k Key, limit int) ([]Key, error)
	Counts(ctx context.Context) (Counts, error)
	Nodes(ctx context.Context) ([]Node, error)
	Holds(ctx context.Context) ([]Hold, error)
	// Freezes returns those that end after an instant, also those that are over.
	Freezes(ctx context.Context, after time.Time) ([]Freeze, error)
	// Frozen returns the runs that a freeze put off, and how many there are; Coming those of P0 that are under way, or due
	// before an instant.
	Frozen(ctx context.Context, now time.Time, limit int) (runs []*Run, total int, err error)
	Coming(ctx context.Context, before time.Time, limit int) ([]*Run, error)
	// Locks returns the serial keys that runs have, the oldest first; Lock one of them, nil when nobody has it.
	Locks(ctx context.Context, limit int) ([]Lock, error)
	Lock(ctx context.Context, serial string) (*Lock, error)
	// LocksOfSubjects returns the serial keys that subjects of a run wait for, as they are held, the oldest first.
	LocksOfSubjects(ctx context.Context, parent Key, limit int) ([]Lock, error)
	// Ahead returns the run that goes before another in the line of their job; empty: none does.
	Ahead(ctx context.Context, k Key) (Key, error)
	// Lapses returns the times that the ledger was found to have forgotten, the newest first.
	Lapses(ctx context.Context) ([]*Lapse, error)
	// Unsettled counts what keeps the freeze of a lapse from being ended: keys that were in the ledger before and whose outcome
	// is unknown, by a letter that waits for a person, and by a question that is still asked or to be asked.
	Unsettled(ctx context.Context) (letters, questions int, err error)
	// Acceptances returns the changes of definitions that people accepted, oldest first.
	Acceptances(ctx context.Context) ([]Acceptance, error)
	Info(ctx context.Context) (LedgerInfo, error)
}

// Good is the last good window of a job.
type Good struct {
	Key     Key
	EndedAt time.Time
}

// Counts are the figures of the whole ledger. None of them is read from history.
type Counts struct {
	Live        map[State]int
	OpenLetters int
	Unknown     int       // of them, with an unknown outcome
	OldestDue   time.Time // of what could be claimed now
}

// Node is a process that works on the ledger.
type Node struct {
	ID        string
	Host      string
	PID       int
	Role      string // serve, once, or the name of an application
	Version   string
	TZData    string
	StartedAt time.Time
	SeenAt    time.Time
	StoppedAt time.Time
	Offset    time.Duration // of the database's clock against this node's
	BootID    string
	BootClock time.Duration // since boot, suspend included, at SeenAt
	Overtaken int           // jobs that it plans no more: another node loaded another definition
	Calls     NodeCalls
}

// LedgerInfo describes the ledger itself.
type LedgerInfo struct {
	ID        string
	Database  string // sqlite or postgres, with its version
	Place     string // path or host, no secret
	Schema    int
	CreatedAt time.Time
	Sequence  int64 // rises with writes; see Keeper.Beat
	Bytes     int64
	WALBytes  int64
	Runs      int64 // estimated on PostgreSQL
}

// Listener hears the calls of other nodes. It saves time and nothing else: whoever hears nothing polls.
type Listener interface {
	// Listen listens on a channel, on a connection of its own, until that breaks or ctx is done; it always returns an error.
	// It calls listening once it hears, and heard for each call.
	Listen(ctx context.Context, channel string, listening, heard func()) error
}

// NodeCalls says whether what other nodes make due is told to a node.
type NodeCalls string

// Whether calls come through. Without them a node polls, as it does in any case.
const (
	CallsNone NodeCalls = ""     // there are none: one machine, or a node that does not listen
	CallsCome NodeCalls = "come" // they come through
	CallsLost NodeCalls = "lost" // none does, as behind a pooler in transaction mode
)

// Keeper looks after the ledger as a whole.
type Keeper interface {
	// Beat records that a node lives. It also moves the write sequence. An error that ErrForgot matches: nothing was written,
	// since the ledger does not know of the last beat of this node.
	Beat(ctx context.Context, n Node, now time.Time) error
	// Seen returns how far the ledger has come.
	Seen(ctx context.Context) (Seen, error)
	// PutLapse records that the ledger was found to have forgotten, with its freeze and an alert; false when a lapse of that
	// number is known. From then on a claim takes nothing that may happen once only, but for questions to the far side.
	PutLapse(ctx context.Context, l Lapse, act Activity) (bool, error)
	// Nodes returns the nodes seen lately.
	Nodes(ctx context.Context) ([]Node, error)
	// ClockOffset returns the database's clock minus the node's, measured around the fastest of a few round trips; 0 where they are one.
	ClockOffset(ctx context.Context, clock func() time.Time) (time.Duration, error)
	Info(ctx context.Context) (LedgerInfo, error)
}

// Retention says how long what can be pruned is kept.
type Retention struct {
	Log     time.Duration // attempts, outputs, payloads, results
	LogRuns int           // at most so many runs a job keep them; 0: no such limit
}

// PruneStore is the store as the pruner sees it.
type PruneStore interface {
	// Prune empties at most limit runs that ended before the given instant, or beyond the newest LogRuns of their job,
	// and reports how many. Keys, states, counts, letters and results that an undo needs stay.
	Prune(ctx context.Context, r Retention, now time.Time, limit int, dry bool) (runs int, err error)
	// PruneSends empties the texts of at most limit sends of alerts that ended before an instant, and reports how many.
	PruneSends(ctx context.Context, before time.Time, limit int) (sends int, err error)
}
