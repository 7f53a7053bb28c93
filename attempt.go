package daybook

import (
	"encoding/json"
	"errors"
	"time"
)

// Result is what an attempt says of its own end, or what is known of it. It speaks for that try only.
type Result string

// The results. The first five are reported and believed; lost and unknown were reported by nobody.
const (
	ResultDone        Result = "done"
	ResultNotDone     Result = "not_done"    // it did not happen; another try may succeed
	ResultPermanent   Result = "permanent"   // it did not happen, and another try cannot succeed
	ResultUnclear     Result = "unclear"     // it failed, and whether it happened is open
	ResultBusy        Result = "busy"        // the far side is at work under this wire key: asked again, no failure counted
	ResultUnknown     Result = "unknown"     // ended by a signal or at the timeout, cut off after sending
	ResultLost        Result = "lost"        // the worker died or lost its lease
	ResultInterrupted Result = "interrupted" // handed back by a shutdown before it began; never counted
)

// Reported reports whether r is what work says of its own end.
func (r Result) Reported() bool {
	switch r {
	case ResultDone, ResultNotDone, ResultPermanent, ResultUnclear, ResultUnknown:
		return true
	}
	return false
}

// Word is what a person says of an effect of which r was reported and not heard.
func (r Result) Word() string {
	switch r {
	case ResultDone:
		return string(AsDone)
	case ResultNotDone, ResultPermanent, ResultInterrupted:
		return string(AsNotDone)
	}
	return string(AsDone) + "|" + string(AsNotDone)
}

// Outcome is how an attempt ended.
type Outcome struct {
	Result     Result
	Error      string           // for people; empty when done
	Detail     string           // exit code, signal or status: "exit 75", "signal killed", "503"
	Exit       int              // of a command, as shells count: its code, 128+n for signal n, 124 at the timeout
	RetryAfter time.Duration    // asked for by the far side; 0: none
	Data       json.RawMessage  // the job's own result
	Counts     map[string]int64 // effects counted by the job, such as charges: 20
	Output     Output
	Command    string // as started, for people, where no definition tells it
	// Interrupted says that a shutdown of Daybook asked the attempt to end, or that its lease was over before it began. A try
	// that then says it is not done is not counted as a failure.
	Interrupted bool
	// Recorded says that the end of the attempt was reported by another door and is in the ledger: nothing is left to
	// write.
	Recorded bool
	// Outlived says that what the attempt started lived longer than it, until now: it may have sent something until then.
	Outlived bool
}

// Output is what a command printed: its head and its tail, as safe text.
type Output struct {
	Text    string // at most MaxOutputBytes, with a mark where bytes were left out
	Omitted int64  // bytes left out
}

// Attempt is one try of a run, numbered for people. The fence identifies it.
type Attempt struct {
	Key       Key
	Fence     int64
	Number    int
	Claim     string
	Node      string
	WireKey   string
	Command   string // as started, for people; set for `daybook once`
	Revision  int64
	ClaimedAt time.Time
	BegunAt   time.Time
	EndedAt   time.Time
	Result    Result
	Error     string
	Detail    string
	Data      json.RawMessage
	Output    Output
	Probe     bool // a question to the far side, not a try
	// Late is a report that came after the attempt was declared over: taken (it settled what was open) or refused (kept
	// as evidence only).
	LateResult Result
	LateError  string
	LateAt     time.Time
	LateTaken  bool
}

// permanentError and its kin carry a Result through an error returned by a Go function.
type resultError struct {
	result Result
	err    error
	after  time.Duration
}

func (e *resultError) Error() string { return e.err.Error() }
func (e *resultError) Unwrap() error { return e.err }

// NotDone says that the work did not happen and may be tried again.
func NotDone(err error) error { return withResult(ResultNotDone, err) }

// Permanent says that the work did not happen and never will: a dead letter at once.
func Permanent(err error) error { return withResult(ResultPermanent, err) }

// Unknown says that nobody knows whether the work happened.
func Unknown(err error) error { return withResult(ResultUnknown, err) }

// RetryAfter says that the work did not happen and may be tried again, not before d has passed.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &resultError{result: ResultNotDone, err: err, after: d}
}

func withResult(r Result, err error) error {
	if err == nil {
		return nil
	}
	return &resultError{result: r, err: err}
}

// OutcomeOf reads the error of a Go function: nil is done, the marks above are what they say, any other error is
// failed, unclear.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Outcome{Result: ResultDone}
	}
	var marked *resultError
	if errors.As(err, &marked) {
		return Outcome{Result: marked.result, Error: err.Error(), RetryAfter: marked.after}
	}
	if CodeOf(err) == CodePermanent {
		return Outcome{Result: ResultPermanent, Error: err.Error()}
	}
	return Outcome{Result: ResultUnclear, Error: err.Error()}
}
