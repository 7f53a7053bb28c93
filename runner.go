package daybook

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Work order of one attempt, given to a runner.
type Order struct {
	Run      *Run
	Job      *Job
	Attempt  int
	Fence    int64
	WireKey  string    // empty with steps: each step has its own
	Deadline time.Time // zero: none
	// Dir is a directory of this attempt's own on this host, for files that outlive a crash of Daybook (lock, result,
	// payload). Empty: the runner needs none.
	Dir string
	Env map[string]string // secrets resolved, in addition to Job.Env
	// Secrets are values that may show nowhere: not in what the runner lets others read while the work goes on. What it
	// returns is masked by its caller.
	Secrets []string
	// Step is the step that a question is about; StepRun when it is about the attempt as a whole.
	Step string
	// Rights is an environment by which what is started can speak for the attempt: to mark its steps. The token in it is a
	// secret.
	Rights map[string]string
	// Book keeps the steps of work in this process; nil without steps.
	Book StepBook
	// Lapsed reports whether the lease of the attempt is over, or about to be: then nothing is started, for another may have the
	// run. Nil: never.
	Lapsed func() bool `json:"-"`
}

// Runner does work. Run starts it, waits for it and says how it ended; it never panics and never returns before what it
// started has ended or has been given up. When ctx is cancelled it ends the work: politely first, within
// TerminationGrace by force. The cause of the cancellation tells why (ErrLeaseLost, ErrShutdown, ErrTimeout,
// ErrCancelled).
type Runner interface {
	Run(ctx context.Context, o Order) Outcome
}

// Stayer is a Runner that may have to give work up which goes on all the same, such as a function that does not heed its context.
type Stayer interface {
	// Stays reports whether work on a run goes on in this process, whatever its attempt has said: nothing is started beside it.
	Stays(k Key) bool
}

// Prober asks the far side whether an effect with a wire key happened.
type Prober interface {
	// Probe returns what the far side said. A question that fails, hangs past ctx or is not understood is CannotTell.
	Probe(ctx context.Context, o Order, wireKey string) Finding
}

// Survivor finds work of an earlier process of Daybook that is still alive on this host.
type Survivor interface {
	// Alive reports whether what was started in dir still runs. Known is false when dir tells nothing.
	Alive(dir string) (alive, known bool)
	// Report returns the complete report that the work left in dir, if there is one.
	Report(dir string) (Outcome, bool)
	// KeepEnd leaves in dir how its work ended, as the report that Report returns, because the ledger does not take it.
	KeepEnd(dir string, o Outcome) error
	// Steps returns the ends of steps that the work left in dir, because nobody heard them.
	Steps(dir string) []StepEnd
	// Output opens what the work in dir has printed so far, without its secrets. It may grow while the work lives. The
	// errors are those of opening a file.
	Output(dir string) (io.ReadCloser, error)
	// End ends what runs in dir: TERM, and KILL after TerminationGrace.
	End(ctx context.Context, dir string) error
}

// StepEnd is how a step ended that work marked itself.
type StepEnd struct {
	Step    string
	Plain   bool
	Try     int    // as its begin was answered; 0: not said
	Call    string // by which it was begun; empty: not said
	WireKey string // that its begin was answered with; empty: not said
	Outcome Outcome
}

// Answer is what the far side says to a probe.
type Answer string

// Answers of a probe.
const (
	Yes        Answer = "yes"
	No         Answer = "no"
	CannotTell Answer = "cannot_tell"
)

// Finding is what a probe found about one wire key.
type Finding struct {
	Answer  Answer
	WireKey string
	Data    json.RawMessage // what the far side has, when yes
	Error   string          // why it cannot tell
	// AskedAt and AnsweredAt are of this wire key alone; zero: not known, and then those of the whole question stand for them.
	AskedAt, AnsweredAt time.Time
}

// Causes of the cancellation of an attempt's context.
var (
	ErrLeaseLost = New(CodeStale, "the lease was lost")
	ErrShutdown  = New(CodeUnavailable, "daybook is stopping")
	ErrTimeout   = New(CodeUnavailable, "the timeout was reached")
	ErrCancelled = New(CodeConflict, "cancelled by a person")
)
