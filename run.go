package daybook

import (
	"encoding/json"
	"time"
)

// State is where a run stands. There are eight and no others; waiting, frozen and late are reasons shown beside them.
type State string

// The states of a run. transition.go has every arrow between them.
const (
	Scheduled State = "scheduled" // to be claimed when due; written by scheduler, control or a replayed skip
	Running   State = "running"   // claimed by an executor that holds its lease
	Retryable State = "retryable" // to be claimed again when due, or to be settled first (ReasonSettling)
	Done      State = "done"      // kept for ever
	Dead      State = "dead"      // a person must look at it: its letter is open, or says how it was closed
	Skipped   State = "skipped"   // a recorded decision not to run
	Coalesced State = "coalesced" // another run covers it: CoveredBy
	Cancelled State = "cancelled" // by a person, and no effect had happened
)

// Live reports whether s is one of scheduled, running and retryable: the states that a later window waits for.
func (s State) Live() bool { return s == Scheduled || s == Running || s == Retryable }

// States lists the eight, in the order of the documentation.
var States = []State{Scheduled, Running, Retryable, Done, Dead, Skipped, Coalesced, Cancelled}

// Reason says why a run stands where it stands. It is shown beside the state and never decides anything by itself,
// save ReasonSettling, which makes the next claim a question instead of a try.
type Reason string

// Reasons.
const (
	ReasonNone            Reason = ""
	ReasonMissed          Reason = "missed"
	ReasonTooOld          Reason = "too old" // before the look-back of the missed policy
	ReasonPaused          Reason = "paused"
	ReasonScheduleChanged Reason = "schedule changed"
	ReasonClockGap        Reason = "clock gap"
	ReasonDayOff          Reason = "day off"
	ReasonOverlap         Reason = "overlap"
	ReasonCovered         Reason = "covered by"
	ReasonEarly           Reason = "early"
	ReasonSettling        Reason = "settling"    // an effect's outcome is unknown and is being asked for
	ReasonUnsettled       Reason = "unsettled"   // likewise: the work itself asks, in its next attempt
	ReasonRetry           Reason = "retry"       // on the ladder
	ReasonLost            Reason = "lost"        // the attempt's end was reported by nobody
	ReasonInterrupted     Reason = "interrupted" // cut off by a shutdown
	ReasonFrozen          Reason = "frozen"
	ReasonSerial          Reason = "waiting for serial key" // another run has it
	ReasonClock           Reason = "clock not confirmed"
	ReasonRestored        Reason = "restored" // the ledger forgot: see Lapse
	ReasonPrevious        Reason = "waiting for previous window"
	ReasonNoDefinition    Reason = "no definition" // no serve knows the job
	ReasonReplayed        Reason = "replayed"
	ReasonDismissed       Reason = "dismissed"
	ReasonCancelled       Reason = "cancelled" // a dead letter: a person ended it after an effect had happened
	ReasonCompensated     Reason = "compensated"
	ReasonUndone          Reason = "undone"
	ReasonUndoing         Reason = "undoing" // what it did is being taken back, by the run of its undo key
	ReasonAgain           Reason = "again"   // a further attempt of a done run
	ReasonReopened        Reason = "reopened"
	ReasonRunSkipped      Reason = "run skipped"
	ReasonFannedOut       Reason = "fanned out"      // its subjects are listed: it is done when all of their runs have ended
	ReasonNextZone        Reason = "next zone"       // likewise, and it lists once more when the hour of a further zone has come
	ReasonBreaker         Reason = "breaker"         // its subjects fail alike: no more are let go
	ReasonWithWindow      Reason = "with its window" // of a subject: cancelled together with the run that listed it
)

// HoldTurn holds the run of a subject until its parent lets it go.
const HoldTurn Reason = "turn"

// Run is the record of one key. What changes while it is live is guarded by State, Fence and Claim.
type Run struct {
	Key      Key
	Job      string
	Window   Window
	Fire     string // the nominal fire that made it, empty for other doors
	Subject  string
	Parent   Key
	Priority Priority
	Lane     Lane
	Effects  Effects
	Work     Work
	Steps    bool
	Revision int64  // of the job, when the run was made
	Zone     string // IANA name
	TZData   string // version of the zone data that made the window

	State  State
	Reason Reason
	Hold   Reason    // not empty: not to be claimed, for this reason
	Due    time.Time // when it may be claimed, or was first due
	// FrozenUntil is the end of the freeze that put it off last; Meant when it would have been due. Hold is ReasonFrozen from
	// then on: HeldAt tells whether it still is.
	FrozenUntil, Meant time.Time
	NotBefore          time.Time // the nominal start; Due moves with the ladder, this does not
	Fans               bool      // its subjects were listed: each has a run of its own, whose Parent it is
	Rests              bool      // of its subjects' runs none is under way: only open letters keep it from its end, or a zone to come
	Listed             int64     // of a subject: the fence of the attempt of its parent that listed it last; 0: it was asked for by itself
	Home               string    // who may claim it: "" any serve, HomeOnce only `daybook once`, else the application of that name
	Line               string    // runs of one line wait for each other, oldest window first; empty: none
	Serial             string
	CoveredBy          Key
	Cover              Bounds // what the attempts are given: the window's own bounds, or those of all it covers

	Fence       int64
	Claim       string // random id of the claim; a report must match it as well as the fence
	Node        string
	Lease       time.Time
	Asking      string // random id of the claim of a question to the far side
	ClaimedAt   time.Time
	BegunAt     time.Time     // the current attempt's work began; zero: it did not, or has ended
	Attempts    int           // tries that began, ever
	Failures    int           // what the ladder counts; a replay resets them
	Losses      int           // lost attempts in a row
	Again       bool          // a further attempt of a run that is done
	CancelledBy string        // a person asked for the end of the current attempt
	Effect      *StepRecord   // the whole attempt as one effect: `effects: once` without steps, once it has begun
	Records     []*StepRecord // of a run with steps: those that began, in their order
	Marks       int64         // rises with every write to Records, and to Denied
	Denied      string        // why the current attempt was not let begin one of its steps; empty: it was let begin all

	Input       json.RawMessage // the payload given by a caller; nil after pruning
	PayloadHash string
	Triggers    int
	Refused     int // triggers refused while a letter stood open
	FirstSource Source
	FirstActor  string
	CreatedAt   time.Time
	EndedAt     time.Time
	StartedAt   time.Time // of the attempt that ended it
	LastError   string
	Result      json.RawMessage
	ResultHash  string
	Counts      map[string]int64 // effects counted by the job's own report, such as charges: 20
	PrunedAt    time.Time

	Letter *Letter // the newest, if any

	Subjects  *SubjectCounts // of a run that Fans, where they were counted; nil: they were not
	UndoWaits bool           // of one that is being undone, where it was looked up: the undo waits for a person

	Doubts []*Lapse // by which the ledger may have forgotten an effect of it, the newest first
	Lapse  int64    // number of the newest lapse of the ledger when this was read: who marks an effect begun compares it

	told *told    // what the work says of itself, while it runs
	book StepBook // keeps its steps, while it runs
}

// Book returns what keeps the steps of r while an attempt does it, nil without steps.
func (r *Run) Book() StepBook { return r.book }

// Bounds are two instants; the end is exclusive.
type Bounds struct{ Start, End time.Time }

// HomeOnce is the home of runs of jobs that no file defines.
const HomeOnce = "once"

// WireKey returns the idempotency key of the whole attempt as one effect, in its current generation.
func (r *Run) WireKey() string {
	if r.Effect == nil {
		return r.Key.WireKey(StepRun, 1)
	}
	return r.Key.WireKey(StepRun, r.Effect.Generation)
}

// OneEffect reports whether an attempt of r is one effect as a whole.
func (r *Run) OneEffect() bool { return r.Effects == Once && !r.Steps }

// Payload reads the payload into v. A run without payload leaves v alone.
func (r *Run) Payload(v any) error {
	if len(r.Input) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Input, v); err != nil {
		return New(CodePermanent, "payload of %s", r.Key).Because(err)
	}
	return nil
}
