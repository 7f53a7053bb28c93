package daybook

import (
	"strings"
	"time"
)

// LetterKind says which of replay, resolve and undo a dead letter wants.
type LetterKind string

// Kinds of dead letter.
const (
	LetterFailed  LetterKind = "failed"  // it did not happen: replay it, or dismiss it
	LetterUnknown LetterKind = "unknown" // an effect was begun and nobody knows how it ended: resolve it first
	LetterUndo    LetterKind = "undo"    // an undo did not succeed: its replay goes on with the undo
)

// LetterState is how a dead letter stands.
type LetterState string

// States of a dead letter.
const (
	LetterOpen        LetterState = "open"
	LetterReplayed    LetterState = "replayed"
	LetterCompensated LetterState = "compensated"
	LetterDismissed   LetterState = "dismissed"
	LetterSettled     LetterState = "settled" // an unknown effect became known
)

// Letter is a dead letter: a run that a person must look at. It is kept for good. A run has at most one open.
type Letter struct {
	ID       string
	Key      Key
	Parent   Key // of the run of a subject: the run that listed it
	Job      string
	Priority Priority
	Kind     LetterKind
	State    LetterState
	Error    string
	OpenedAt time.Time
	ClosedAt time.Time
	ClosedBy string
	Note     string // the reason it was closed with
	Refused  int    // triggers refused while it stood open
}

// UndoByHand begins the error of an undo that is left with effects of which nothing says how they are taken back.
const UndoByHand = "nothing says how to undo "

// ByHand reports whether a person takes back by hand what is left, and then dismisses l: its replay would fail again.
func (l *Letter) ByHand() bool { return l.Kind == LetterUndo && strings.HasPrefix(l.Error, UndoByHand) }

// AlertKind says what an alert is about.
type AlertKind string

// Kinds of alert that exist so far.
const (
	AlertDeadLetter     AlertKind = "dead_letter"
	AlertUnknownOutcome AlertKind = "unknown_outcome"
	AlertJobLate        AlertKind = "job_late"
	AlertScheduleFault  AlertKind = "schedule_fault"
	AlertClockLeap      AlertKind = "clock_leap"
	AlertDoneTwice      AlertKind = "done_twice"   // a probe found the effect under two wire keys, or a late report told of another
	AlertBreakerOpen    AlertKind = "breaker_open" // the subjects of a run fail alike, and it waits for a person
	AlertSerialStuck    AlertKind = "serial_stuck" // a run has its serial key for longer than its job may take
	AlertDrillFailed    AlertKind = "drill_failed" // a done key was asked for again, and something came of it
	AlertDrillDue       AlertKind = "drill_due"    // a job that touches money was not drilled for long
	AlertOvertaken      AlertKind = "overtaken"    // a node plans with a definition that is no longer the current one
)

// Alert is a row that tells a person of a change, written in the transaction of the change. One per key and kind stands
// open at a time.
type Alert struct {
	ID        string
	Kind      AlertKind
	Key       Key // of the run; for a fault of a job as a whole, the job's name stands in Job and Key is empty
	Job       string
	Priority  Priority
	LastError string // or, for silence, LastGood
	LastGood  string // the last good window
	At        time.Time
	ClosedAt  time.Time // recovered or acknowledged
	// Shared says that it is about the subjects of the run Key: the first of them that needs it writes it for all.
	Shared bool
}

// NewAlert builds an alert. One without a job and either last error or last good window cannot be built: that is a
// mistake of the programmer and panics.
func NewAlert(kind AlertKind, key Key, job string, p Priority, lastError, lastGood string, at time.Time) *Alert {
	if job == "" || lastError == "" && lastGood == "" {
		panic("daybook: alert " + string(kind) + " without a job, or without last error and last good window")
	}
	return &Alert{Kind: kind, Key: key, Job: job, Priority: p, LastError: lastError, LastGood: lastGood, At: at}
}
