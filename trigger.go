package daybook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Source says by which door a trigger came.
type Source string

// The doors.
const (
	SourceSchedule Source = "schedule"
	SourceCatchup  Source = "catchup" // the scan, and windows that were missed
	SourceManual   Source = "manual"
	SourceAPI      Source = "api"
	SourceEvent    Source = "event"
	SourceReplay   Source = "replay"
	SourceBackfill Source = "backfill"
	SourceDrill    Source = "drill"
	SourceOnce     Source = "once"
)

// TriggerOutcome is what became of a trigger.
type TriggerOutcome string

// The four answers.
const (
	Started TriggerOutcome = "started" // this trigger made the run, or made it go on
	Joined  TriggerOutcome = "joined"  // the run is under way
	Reused  TriggerOutcome = "reused"  // what is known is the answer; nothing runs
	Refused TriggerOutcome = "refused" // a rule says no; Next says what to do
)

// Ask is one knock at the door.
type Ask struct {
	Key    Key
	Source Source
	// Door is, with SourceDrill, the door by which the drill comes: it is answered as who comes by that.
	Door       Source
	Actor      string
	Note       string // the person's reason; required with Early and for ~n
	Again      bool   // a further attempt of a done run
	Early      bool   // the window is not open yet
	RunSkipped bool
	Payload    json.RawMessage // given by the caller; nil: none
	Fire       string          // schedule and catchup: the nominal fire
	NotOpen    bool            // the window's first fire, or without a schedule the window, still lies ahead
	NotListed  bool            // the subject of a new key is none that the listing of its window named
	Unlisted   bool            // and it is wanted all the same
	EventJob   bool
	Effects    Effects   // of the job
	FireAt     time.Time // when the window's first fire is, or was; zero without one: look-ups of spans of skipped windows use it
	Freezes    []Freeze  // those of a file that stand now; the ledger knows its own
	// Take claims the key for whoever asks, in the same transaction, if it may be tried now. Nil: nobody does.
	Take *Claim
}

// By is the door whose rules answer.
func (a Ask) By() Source {
	if a.Source == SourceDrill && a.Door != "" {
		return a.Door
	}
	return a.Source
}

// Activity is the act that a trigger is when it overrides a rule, or is a person's own: triggers are pruned with the log,
// activity is not. Nil: it is none, or the transition that it brings has it.
func (a Ask) Activity(reply Reply, now time.Time) *Activity {
	action := ""
	switch {
	case reply.Act == ActAgain:
		action = "again"
	case reply.Act == ActRunSkipped:
		action = "run skipped"
	case reply.Act != ActCreate && reply.Act != ActCreateHeld:
		return nil
	case a.NotOpen && a.Early:
		action = "trigger early"
	case a.NotListed && a.Unlisted:
		action = "trigger unlisted"
	case a.Key.Parts().N > 1:
		action = "trigger further effect"
	case a.Source == SourceManual:
		action = "trigger"
	default:
		return nil
	}
	return &Activity{At: now, Actor: a.Actor, Action: action, Key: a.Key, Job: a.Key.Job(), Note: a.Note, After: string(reply.Outcome)}
}

// Trigger is the record of one knock.
type Trigger struct {
	ID          string
	Key         Key
	Job         string
	Source      Source
	Outcome     TriggerOutcome
	Actor       string
	Note        string
	Fire        string
	At          time.Time
	PayloadHash string
}

// Standing is what is known about a key when somebody asks for it.
type Standing struct {
	Exists       bool
	Key          Key // of the row, where it stands under an earlier name of the job; empty: the key that was asked for
	State        State
	Effects      Effects
	Undone       bool
	Undoing      bool       // what it did is being taken back
	LetterKind   LetterKind // of the newest letter; empty: none
	LetterState  LetterState
	OtherPayload bool // the caller gave a payload, and it is not the one the run was made with

	// Of a run whose subjects were listed.
	FannedOut bool
	UnderWay  bool // some of them are
	Failed    bool // some have a letter that can be replayed
	Unknown   bool // some have one whose outcome is unknown

	// Of a new key.
	NotOpen    bool   // its first fire, or without a schedule its window, still lies ahead
	Paused     bool   // the job is paused
	EventJob   bool   // events of a paused job are held, not refused
	SpanReason Reason // the key lies in a span of windows skipped for this reason; it has no row
	Held       Reason // nothing starts now: ReasonFrozen, ReasonClock
}

// Act is what the store does about a reply, in the transaction that records the trigger.
type Act string

// Acts.
const (
	ActNone       Act = ""
	ActCreate     Act = "create"      // a scheduled run
	ActCreateHeld Act = "create held" // a scheduled run that is not claimed before the freeze or pause ends
	ActSkipPaused Act = "skip paused" // a row skipped: paused
	ActAgain      Act = "again"       // a further attempt of a done run
	ActReplay     Act = "replay"
	ActRunSkipped Act = "run skipped"
	// ActReplaySubjects is not the store's: who asked replays the letters of the subjects, a part at a time.
	ActReplaySubjects Act = "replay subjects"
)

// Reply is the answer to an Ask. Exit is the exit code of the command line, HTTP the status of the API. Because and
// Next name messages of the catalogue: why, and what to do.
type Reply struct {
	Outcome TriggerOutcome
	Act     Act
	Exit    int
	HTTP    int
	Because string
}

// Exit codes of the command line.
const (
	ExitOK          = 0
	ExitFailed      = 1 // it ran and failed, or an unexpected error
	ExitUsage       = 2
	ExitNeedsPerson = 3
	ExitRefused     = 4
	ExitNotFound    = 5
	ExitUnreachable = 6
	ExitElsewhere   = 75 // once only
	ExitTimeout     = 124
	ExitDaybook     = 125 // once only: Daybook itself refused or failed
)

// Because: why a trigger was answered as it was.
const (
	BecauseNew             = "new"
	BecauseNoKey           = "no such key"
	BecauseNotOpen         = "not open yet"
	BecauseNotListed       = "not listed"
	BecausePaused          = "paused"
	BecauseScheduled       = "scheduled"
	BecauseRunning         = "running"
	BecauseRetryable       = "retryable"
	BecauseDone            = "done"
	BecauseAgain           = "again"
	BecauseOnce            = "done once"
	BecauseLetter          = "open letter"
	BecauseUnknown         = "unknown"
	BecauseDismissed       = "dismissed"
	BecauseFinal           = "final"
	BecauseUndoing         = "undoing"
	BecauseSkipped         = "skipped"
	BecauseRunSkipped      = "run skipped"
	BecauseCovered         = "covered"
	BecauseCancelled       = "cancelled"
	BecausePayload         = "other payload"
	BecauseReplayed        = "replayed"
	BecauseNothingToReplay = "nothing to replay"
	BecauseSubjects        = "open letters of subjects"
)

// Decide is the table of triggers against states: what asking again does. It is pure; the store calls it inside the
// transaction that records the trigger and carries out the act. `daybook once` has exit codes of its own: joined means
// that the key is run elsewhere, unless it is due and once runs it itself.
func Decide(a Ask, s Standing) Reply {
	r := decide(a, s)
	if a.By() == SourceOnce {
		switch r.Outcome {
		case Joined:
			r.Exit = ExitElsewhere
		case Refused:
			r.Exit = ExitDaybook
		}
	}
	return r
}

func decide(a Ask, s Standing) Reply {
	byClock := a.By() == SourceSchedule || a.By() == SourceCatchup || a.By() == SourceBackfill
	replay := a.By() == SourceReplay
	started := func(act Act, because string) Reply { return Reply{Started, act, ExitOK, 201, because} }
	joined := func(because string) Reply { return Reply{Joined, ActNone, ExitOK, 202, because} }
	reused := func(because string) Reply { return Reply{Reused, ActNone, ExitOK, 200, because} }
	refused := func(because string) Reply { return Reply{Refused, ActNone, ExitRefused, 409, because} }

	if !s.Exists {
		switch {
		case replay:
			return Reply{Refused, ActNone, ExitNotFound, 404, BecauseNoKey}
		case s.Paused && s.EventJob:
			return started(ActCreateHeld, BecausePaused)
		case s.Paused && byClock:
			return Reply{Refused, ActSkipPaused, ExitRefused, 409, BecausePaused}
		case s.Paused:
			return refused(BecausePaused)
		case s.NotOpen && !a.Early && !byClock:
			return refused(BecauseNotOpen)
		case a.NotListed && !a.Unlisted:
			return refused(BecauseNotListed)
		case s.Held != "":
			return started(ActCreateHeld, string(s.Held))
		}
		return started(ActCreate, BecauseNew)
	}
	if s.OtherPayload && !byClock && !replay { // those bring none
		return Reply{Refused, ActNone, ExitRefused, 422, BecausePayload}
	}
	if s.Undoing && !byClock && (s.State == Done || s.State == Dead) {
		return refused(BecauseUndoing)
	}
	if s.FannedOut && replay && s.Failed { // whatever else is under way: one of them may wait for days
		return started(ActReplaySubjects, BecauseReplayed)
	}
	if s.FannedOut && !s.UnderWay && (s.Failed || s.Unknown) {
		return refused(BecauseSubjects)
	}
	switch s.State {
	case Scheduled:
		return joined(BecauseScheduled)
	case Running:
		return joined(BecauseRunning)
	case Retryable:
		return joined(BecauseRetryable)
	case Done:
		switch {
		case s.Undone && (replay || a.Again && !byClock):
			return refused(BecauseFinal)
		case s.Undone:
			return Reply{Reused, ActNone, ExitFailed, 200, BecauseFinal}
		case replay || byClock || !a.Again:
			return reused(BecauseDone)
		case s.Effects == Once:
			return refused(BecauseOnce)
		}
		return started(ActAgain, BecauseAgain)
	case Dead:
		switch s.LetterState {
		case LetterDismissed:
			if replay {
				return refused(BecauseDismissed)
			}
			return Reply{Reused, ActNone, ExitFailed, 200, BecauseDismissed}
		case LetterCompensated:
			if replay || a.Again && !byClock {
				return refused(BecauseFinal)
			}
			return Reply{Reused, ActNone, ExitFailed, 200, BecauseFinal}
		}
		switch {
		case s.LetterKind == LetterUnknown:
			return refused(BecauseUnknown)
		case replay:
			return started(ActReplay, BecauseReplayed)
		}
		return refused(BecauseLetter)
	case Skipped:
		switch {
		case a.By() == SourceBackfill, a.RunSkipped && !byClock && !replay:
			return started(ActRunSkipped, BecauseRunSkipped)
		case byClock:
			return reused(BecauseSkipped)
		case replay:
			return refused(BecauseNothingToReplay)
		}
		return refused(BecauseSkipped)
	case Coalesced:
		if byClock {
			return reused(BecauseCovered)
		}
		// Other doors are answered as the covering run is: the store asks again with its standing, and replay is told
		// its key.
		return refused(BecauseCovered)
	case Cancelled:
		return refused(BecauseCancelled)
	}
	return refused(string(s.State))
}

// With returns s with what is known of the subjects of a run that was listed.
func (s Standing) With(f Fanout) Standing {
	s.FannedOut, s.UnderWay, s.Failed, s.Unknown = true, f.UnderWay, f.Failed, f.Unknown
	return s
}

// HashPayload returns the fingerprint of a payload given by a caller: SHA-256 of its JSON with white space removed and
// object names sorted, in hex; "" for no payload. Errors have CodeInvalid: not JSON, or above MaxPayloadBytes.
func HashPayload(p json.RawMessage) (string, error) {
	if len(p) == 0 {
		return "", nil
	}
	if len(p) > MaxPayloadBytes {
		return "", Invalid("payload of %d bytes: at most %d are allowed", len(p), MaxPayloadBytes).
			WithHint("keep the data where it is and pass its id")
	}
	if !utf8.Valid(p) { // JSON is UTF-8; a fingerprint that took one broken byte for another would mean nothing
		return "", Invalid("the payload is not JSON").Because(Invalid("it is not UTF-8"))
	}
	if err := CheckJSON(p); err != nil && !json.Valid(p) {
		return "", Invalid("the payload is not JSON").Because(err)
	} else if err != nil {
		return "", Invalid("the payload can be read in two ways").Because(err)
	}
	canonical, err := canonicalJSON(p)
	if err != nil {
		return "", Invalid("the payload is not JSON").Because(err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// canonicalJSON sorts names and drops white space. Numbers keep their digits: 1 and 1.0 are different payloads.
func canonicalJSON(p []byte) ([]byte, error) {
	var v any
	if err := decodeStrict(p, &v); err != nil {
		return nil, err
	}
	out, err := json.Marshal(v) // maps are written in the order of their names
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return out, nil
}
