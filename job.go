package daybook

import (
	"encoding/json"
	"math"
	"strings"
	"time"
)

// Priority says what a failure touches. Text order is claim order.
type Priority string

// Priorities. The zero value of a Job means P1.
const (
	P0 Priority = "P0" // touches money: claimed first, confirmed by typing, repeated until acknowledged
	P1 Priority = "P1"
)

// Work says which failure is feared; it sets defaults only.
type Work string

// Kinds of work.
const (
	Timed Work = "timed" // a window missed (the default)
	// Undoing is the work of an undo. No job asks for it.
	Undoing Work = "undo"
	Event   Work = "event" // a message lost or out of order
	Long    Work = "long"  // being done twice
)

// Effects says whether a lost attempt may be tried again.
type Effects string

// Effects. P1 jobs are Repeatable by default; a P0 job must say which.
const (
	Once       Effects = "once"       // what may have happened is asked for, never blindly repeated
	Repeatable Effects = "repeatable" // repeating the work does no harm
)

// Missed says what becomes of a window whose last fire passed without a run.
type Missed string

// Policies for missed windows.
const (
	CatchUp     Missed = "catch_up"
	Coalesce    Missed = "coalesce" // the newest window covers the earlier ones
	SkipMissed  Missed = "skip"
	NeverMissed Missed = "never" // events: a row each
)

// Overlap says what becomes of a window while the job's previous one is scheduled, running or retryable.
type Overlap string

// Overlap policies.
const (
	OverlapWait  Overlap = "wait" // oldest first (the default)
	OverlapSkip  Overlap = "skip"
	OverlapAllow Overlap = "allow"
)

// Lane keeps the work on the past away from the slots of the present.
type Lane string

// Lanes.
const (
	LaneLive     Lane = "live"
	LaneBackfill Lane = "backfill"
)

// Forever is a duration for a far side that never forgets an idempotency key.
const Forever = time.Duration(math.MaxInt64)

// Limits of durations that a job may ask for.
const (
	MinRemembers     = 2 * time.Hour        // less cannot be relied on: an hour is kept as a margin
	RemembersMargin  = time.Hour            // repeats stop this long before the far side forgets
	MaxRetryAfter    = 24 * time.Hour       // a far side may ask for no more
	MaxLadderSteps   = 50                   // retries are never unlimited
	MaxDelay         = 366 * 24 * time.Hour // of any single delay or span in a definition
	MaxLosses        = 3                    // lost attempts in a row before a dead letter
	MaxPayloadBytes  = 256 << 10
	MaxResultBytes   = 64 << 10
	MaxOutputBytes   = 64 << 10 // kept of an attempt's output: the head and the tail
	MaxErrorBytes    = 2 << 10
	MaxReasonBytes   = 500
	MaxActorBytes    = 100
	DefaultSettles   = 5 * time.Minute
	DefaultTimeout   = time.Hour
	DefaultCatchup   = 7 * 24 * time.Hour
	DefaultGap       = time.Minute
	DefaultGrace     = 30 * time.Minute
	DefaultJitter    = 0.10
	MaxMissedAfter   = 10 * time.Minute // the default's upper bound
	ProbeTimeout     = 30 * time.Second
	TerminationGrace = 10 * time.Second // between TERM and KILL
)

// DefaultBackoff is the ladder of a job that does not name one: the fourth failure is a dead letter.
var DefaultBackoff = []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute}

// Retry is the ladder of a job and what it adds to the permanent answers.
type Retry struct {
	Backoff         []time.Duration // delays before the second, third, … try; empty (not nil) means no retry
	Jitter          float64         // share of a delay that is added at most, 0 to 1; negative means none
	PermanentExit   []int           // exit codes read as permanent, beyond the standard ones
	PermanentStatus []int           // HTTP statuses likewise
}

// Expect is what is normal for a job.
type Expect struct {
	Grace      time.Duration // late, before it alerts
	MaxSilence time.Duration // between good windows, in business windows; 0: by priority
	MaxRuntime time.Duration // 0: the timeout
}

// Command is something to start: Argv without a shell, or Shell as text for /bin/sh -c. At most one is set.
type Command struct {
	Argv  []string `json:",omitempty"`
	Shell string   `json:",omitempty"`
}

// HTTPCall is an HTTP job: where to send it, and how.
type HTTPCall struct {
	URL     string            // with placeholders, percent-encoded where they stand
	Method  string            `json:",omitempty"` // default POST
	Headers map[string]string `json:",omitempty"` // values may be references to secrets
	Secret  string            `json:",omitempty"` // reference; signs the request as Standard Webhooks does
	Quoted  bool              `json:",omitempty"` // send the idempotency key as a Structured-Field string
}

// IsZero reports whether there is nothing to start.
func (c Command) IsZero() bool { return len(c.Argv) == 0 && c.Shell == "" }

// String shows the command for people, with quotes where an argument needs them.
func (c Command) String() string {
	if c.Shell != "" {
		return c.Shell
	}
	words := make([]string, len(c.Argv))
	for i, w := range c.Argv {
		if words[i] = w; w == "" || strings.ContainsAny(w, " \t\n\"'\\$`*?[](){}<>|&;#~!") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Job is a definition: a name, what to run, when, for which window, and what to do when it fails. Names in the file and
// in JSON are the same words in lower case. The zero value of an optional field means the documented default, which
// WithDefaults fills in. A Job holds references to secrets, never secrets.
type Job struct {
	Name     string
	Priority Priority
	Owner    string
	Runbook  string `json:",omitempty"`

	Schedule     string       // one form a line; empty: manual and API only
	Timezone     string       // IANA name; required
	Window       WindowKind   // empty: by the schedule
	Calendar     string       `json:",omitempty"` // "cn", or the path of a CSV or ICS file
	BusinessDays BusinessDays `json:",omitempty"`
	ClockGap     ClockGap
	ClockRepeat  ClockRepeat
	Jitter       time.Duration // spread of starts, fixed per key

	Command Command           // run or shell; zero for a registered Go function
	HTTP    *HTTPCall         `json:",omitempty"`
	Env     map[string]string `json:",omitempty"`
	Dir     string            `json:",omitempty"`
	User    string            `json:",omitempty"`
	Stdin   string            `json:",omitempty"`
	Timeout time.Duration     // negative: none

	Work    Work
	Effects Effects
	Steps   bool
	Probe   Command `json:",omitzero"`
	// ProbeURL is asked about an effect instead of a command.
	ProbeURL string `json:",omitempty"`
	// HasProbe says that a registered Go function can be asked; set by the engine.
	HasProbe bool `json:",omitempty"`
	// ProbeUndo says that the probe knows of undos, too, and answers for them under their own wire keys.
	ProbeUndo bool    `json:",omitempty"`
	Undo      Command `json:",omitzero"`
	// UndoURL takes an effect back instead of a command.
	UndoURL   string        `json:",omitempty"`
	Remembers time.Duration // 0: the far side remembers nothing; Forever
	Settles   time.Duration

	Missed        Missed
	MissedAfter   time.Duration // 0: the smaller of MaxMissedAfter and half the distance to the next fire
	CatchupWindow time.Duration // 0: DefaultCatchup, or one window if longer
	CatchupGap    time.Duration // negative: none
	Overlap       Overlap

	Serial   string  `json:",omitempty"`
	Subjects Listing `json:",omitzero"`
	// HasSubjects says that a registered Go function names the subjects; set by the engine.
	HasSubjects bool   `json:",omitempty"`
	Zone        string `json:",omitempty"` // ZoneOfSubject, or empty
	Retry       Retry
	Expect      Expect
	Paused      bool   `json:",omitempty"`
	Formerly    string `json:",omitempty"`
}

// WithDefaults fills in what j leaves open. The distances are the shortest and the longest one between two windows of the
// schedule, 0 without a schedule: with Window, which must be set, the shortest decides the policy for missed windows, and
// the look-back is no shorter than the longest.
func (j Job) WithDefaults(shortest, longest time.Duration) Job {
	set(&j.Priority, P1)
	set(&j.ClockGap, GapShift)
	set(&j.ClockRepeat, RepeatFirst)
	if j.Window == PerEvent {
		set(&j.Work, Event)
	}
	set(&j.Work, Timed)
	if j.Priority != P0 {
		set(&j.Effects, Repeatable)
	}
	if j.Work != Long {
		set(&j.Timeout, DefaultTimeout)
	}
	set(&j.Settles, DefaultSettles)
	switch {
	case j.Work == Event:
		set(&j.Missed, NeverMissed)
	case j.Priority == P0 && j.Effects == Once:
		set(&j.Missed, CatchUp)
	case j.Work == Long:
		set(&j.Missed, SkipMissed)
	case shortest > 0 && shortest < shortestDay:
		set(&j.Missed, Coalesce)
	default:
		set(&j.Missed, CatchUp)
	}
	set(&j.CatchupWindow, max(DefaultCatchup, min(longest, MaxDelay)))
	set(&j.CatchupGap, DefaultGap)
	if j.Work == Long && (j.Priority != P0 || j.Effects != Once) { // which leaves no window out
		set(&j.Overlap, OverlapSkip)
	}
	set(&j.Overlap, OverlapWait)
	if j.Retry.Backoff == nil {
		j.Retry.Backoff = DefaultBackoff
	}
	set(&j.Retry.Jitter, DefaultJitter)
	set(&j.Expect.Grace, DefaultGrace)
	if shortest > 0 {
		silence := 2 * shortest
		if j.Priority == P0 {
			silence = shortest + 2*time.Hour
		}
		if j.Zone == ZoneOfSubject { // a date lasts so long, from where it begins first to where it begins last
			silence += 26 * time.Hour
		}
		set(&j.Expect.MaxSilence, silence)
	}
	set(&j.Expect.MaxRuntime, j.Timeout)
	return j
}

// shortestDay is the least distance of daily windows: a day of 23 hours counts as a day, and so does a zone that goes
// forward by two.
const shortestDay = 21 * time.Hour

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Fault is one thing wrong with a definition. Field is its name in the file, such as retry.backoff.
type Fault struct {
	Field string
	Err   *Error
}

// Check returns everything wrong with j by itself, defaults filled in or not: what needs a calendar, a file or a
// runner is checked by those.
func (j *Job) Check() []Fault {
	var faults []Fault
	bad := func(field string, err *Error) { faults = append(faults, Fault{Field: field, Err: err}) }
	if err := CheckName(j.Name); err != nil {
		bad("name", err.(*Error))
	}
	if j.Owner == "" {
		bad("owner", Invalid("job %s has no owner", j.Name).WithHint("set owner, in the job or under defaults: every alert names who is asked"))
	}
	if j.Timezone == "" && j.Schedule != "" {
		bad("timezone", Invalid("job %s has no time zone", j.Name).WithHint("set timezone, in the job or at the top: nothing falls back to the server's zone"))
	}
	if j.Formerly != "" {
		if err := CheckName(j.Formerly); err != nil {
			bad("formerly", Invalid("job %s: formerly", j.Name).Because(err))
		} else if j.Formerly == j.Name {
			bad("formerly", Invalid("job %s: formerly is its own name", j.Name).WithHint("write the name that it had before, or leave it out"))
		}
	}
	if err := checkSerial(j.Serial); err != nil {
		bad("serial", Invalid("job %s: serial", j.Name).Because(err))
	}
	oneOf(bad, "priority", j.Priority, P0, P1)
	oneOf(bad, "work", j.Work, Timed, Event, Long)
	oneOf(bad, "effects", j.Effects, Once, Repeatable)
	oneOf(bad, "window", j.Window, WindowKinds...)
	oneOf(bad, "business_days", j.BusinessDays, BusinessSkip, BusinessNext, BusinessPrevious)
	oneOf(bad, "clock_gap", j.ClockGap, GapShift, GapSkip)
	oneOf(bad, "clock_repeat", j.ClockRepeat, RepeatFirst, RepeatLast)
	oneOf(bad, "missed", j.Missed, CatchUp, Coalesce, SkipMissed, NeverMissed)
	oneOf(bad, "overlap", j.Overlap, OverlapWait, OverlapSkip, OverlapAllow)
	if j.Priority == P0 && j.Effects == "" {
		bad("effects", Invalid("job %s is P0 and does not say effects", j.Name).
			WithHint("effects: once if a repeat would touch money twice, effects: repeatable if repeating it does no harm"))
	}
	if j.Effects == Once && j.Window == "" && j.Schedule != "" {
		bad("window", Invalid("job %s has effects: once and does not say its window", j.Name).
			WithHint("set window, such as window: day: it is the meaning of the key, which must not change with the schedule"))
	}
	event := j.Work == Event || j.Window == PerEvent
	if j.Missed == NeverMissed && !event {
		bad("missed", Invalid("job %s: missed: never is for events", j.Name).WithHint("use catch_up, coalesce or skip"))
	} else if j.Priority == P0 && j.Effects == Once && j.Missed != "" && j.Missed != CatchUp && j.Missed != NeverMissed {
		bad("missed", Invalid("job %s is P0 with effects: once, and missed: %s would leave a window out", j.Name, j.Missed).
			WithHint("use missed: catch_up: every window of such a job is run"))
	}
	if j.Priority == P0 && j.Effects == Once && j.Overlap == OverlapSkip {
		bad("overlap", Invalid("job %s is P0 with effects: once, and overlap: skip would leave a window out", j.Name).
			WithHint("use overlap: wait: every window of such a job is run"))
	}
	if event && j.Schedule != "" {
		bad("schedule", Invalid("job %s has work: event and a schedule", j.Name).WithHint("remove one: an event job is started by its events"))
	}
	if j.Fans() && event {
		bad("subjects", Invalid("job %s has subjects and work: event", j.Name).WithHint("remove one: each event has a run of its own already"))
	}
	if j.Zone != "" && j.Zone != ZoneOfSubject {
		bad("zone", Invalid("zone: %q is not one of %s", Clip(j.Zone, 40), Words([]string{ZoneOfSubject})).WithHint("the zone of the job is its timezone"))
	} else if j.Zone != "" && !j.Fans() {
		bad("zone", Invalid("job %s has zone: subject and no subjects", j.Name).WithHint("name them under subjects, or leave zone out"))
	}
	if j.Work == Long && j.Effects == Once && !j.Steps {
		bad("steps", Invalid("job %s has work: long with effects: once and no steps", j.Name).
			WithHint("set steps: true, so that hours of work are not one effect"))
	}
	if j.Remembers != 0 && j.Remembers < MinRemembers {
		bad("remembers", Invalid("job %s: remembers %s is too short to rely on", j.Name, brief(j.Remembers)).
			WithHint("at least %s: repeats stop %s before the far side forgets", brief(MinRemembers), brief(RemembersMargin)))
	}
	if !j.Command.IsZero() && len(j.Command.Argv) > 0 && j.Command.Shell != "" {
		bad("run", Invalid("job %s has both run and shell", j.Name).WithHint("keep one"))
	}
	if len(j.Command.Argv) > 0 && j.Command.Argv[0] == "" {
		bad("run", Invalid("job %s: the command is empty", j.Name))
	}
	if len(j.Retry.Backoff) > MaxLadderSteps {
		bad("retry.backoff", Invalid("job %s: a ladder of %d steps: at most %d are allowed", j.Name, len(j.Retry.Backoff), MaxLadderSteps))
	}
	for _, d := range j.Retry.Backoff {
		if d < 0 || d > MaxDelay {
			bad("retry.backoff", Invalid("job %s: a delay of %s is outside 0 to %s", j.Name, brief(d), brief(MaxDelay)))
		}
	}
	if !(j.Retry.Jitter <= 1 && j.Retry.Jitter >= -math.MaxFloat64) { // also NaN
		bad("retry.jitter", Invalid("job %s: jitter is at most 100%%", j.Name))
	}
	for _, code := range j.Retry.PermanentExit {
		if code < 1 || code > 255 {
			bad("retry.permanent_exit", Invalid("job %s: exit code %d is outside 1 to 255", j.Name, code))
		}
	}
	for _, status := range j.Retry.PermanentStatus {
		if status < 300 || status > 599 {
			bad("retry.permanent_status", Invalid("job %s: status %d is outside 300 to 599", j.Name, status))
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"jitter", j.Jitter}, {"settles", j.Settles}, {"missed_after", j.MissedAfter}, {"catchup_window", j.CatchupWindow},
		{"expect.grace", j.Expect.Grace}, {"expect.max_silence", j.Expect.MaxSilence}, {"expect.max_runtime", j.Expect.MaxRuntime},
	} {
		most := MaxDelay
		if d.field == "expect.max_silence" { // by default two distances between windows, which may be leap years
			most = 9 * MaxDelay
		}
		if d.field != "expect.max_runtime" && d.value < 0 || d.value > most {
			bad(d.field, Invalid("job %s: %s %s is outside 0 to %s", j.Name, d.field, brief(d.value), brief(most)))
		}
	}
	return faults
}

// brief writes a duration without its empty units: 2h, not 2h0m0s.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func oneOf[T ~string](bad func(string, *Error), field string, got T, allowed ...T) {
	if got == "" {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		if got == a {
			return
		}
		words[i] = string(a)
	}
	err := Invalid("%s: %q is not one of %s", field, Clip(string(got), 40), Words(words))
	if near := Nearest(string(got), words); near != "" {
		_ = err.WithHint("did you mean %s?", near)
	}
	bad(field, err)
}

// Asks reports whether the far side can be asked about an effect of j.
func (j *Job) Asks() bool { return j.HasProbe || !j.Probe.IsZero() || j.ProbeURL != "" }

// CanUndo reports whether j, or what its work said of a done effect, says how that is taken back.
func (j *Job) CanUndo(e *StepRecord) bool {
	switch {
	case j.UndoURL != "" || !j.Undo.IsZero():
		return true
	case !j.Command.IsZero(): // only what runs here anyway may say what else runs here
		return e.Says.Undo != ""
	}
	return e.Says.Undoes && j.HTTP == nil
}

// Canonical returns the definition as JSON with a stable order of names: equal definitions have equal bytes.
func (j *Job) Canonical() []byte {
	b, err := json.Marshal(j)
	if err != nil { // a Job holds nothing that JSON cannot hold, save a jitter of NaN, which Check refuses
		panic("daybook: job " + j.Name + ": " + err.Error())
	}
	return b
}

// JobFromCanonical is the inverse of Canonical.
func JobFromCanonical(b []byte) (Job, error) {
	var j Job
	if err := json.Unmarshal(b, &j); err != nil {
		return Job{}, New(CodeInternal, "read a stored definition").Because(err)
	}
	return j, nil
}
