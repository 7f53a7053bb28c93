// Package control is the one place where everything a person can do exists once, audited: trigger, replay, dismiss,
// resolve, cancel, reopen, pause, and the questions they ask before and after. The command line, the API and the pages
// call it and nothing below. It decides nothing by itself (the rules are those of the root package, the windows those of
// calendar), runs nothing, and holds no clock of its own.
//
// Where to find what: trigger.go (ask for a key), answer.go (what is said to it), acts.go (letters and runs), jobs.go
// (definitions, pauses, holds, the inventory), story.go (all that is known about a key), status.go (did everything
// run?), doctor.go (is the installation sound?), alerts.go (who is told), reads.go (lists). What is said stands in errortext.go and its kin.
package control

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/internal/notice"
)

// Limits.
const (
	nodeSeen     = 30 * time.Second // a node that was not seen for longer counts as gone
	staleTries   = 5                // an act that met another is decided again so often
	coverDepth   = 3                // how far covering runs are followed
	maxListed    = 1000             // the longest list that is given at once
	maxNextFires = 1000
)

// Options of New.
type Options struct {
	// Clock says what time it is. Required.
	Clock func() time.Time
	// Days returns the business calendar that a job names, by name or path. Nil: the embedded ones only.
	Days func(calendar string) (*calendar.Days, error)
	// Defined returns the definition that a file brings for a job that the ledger may not know yet. May be nil.
	Defined func(job string) (*daybook.Job, bool)
	// Told returns the channels on which people are told of a priority; not known: no file says so. May be nil.
	Told func(p daybook.Priority) (channels []string, known bool)
	// Printed opens what an attempt under way has printed so far, where this process can read it. May be nil: it cannot.
	Printed func(key daybook.Key, fence int64) (io.ReadCloser, error)
	// Freezes are those of the file. May be nil: there is none.
	Freezes func() *calendar.Freezes
	// Home is where those jobs are at home; empty: in a file.
	Home string
	// Wake tells the executors and schedulers of this process that there may be something to do. May be nil: they poll.
	Wake func()
	// MayClaim says why nothing is to be claimed here now. May be nil: nothing stands in the way.
	MayClaim func() error
	// Lease is how long a claimed key is held without a renewal; 0: DefaultLease.
	Lease time.Duration
	// NewID makes ids of claims. Required where keys are claimed.
	NewID func() string
	// NewSecret makes what nobody can guess. Required where tokens are made.
	NewSecret func() string
	// ReadReport reads what work says of its end, in the form of the manual. Required where reports come in.
	ReadReport func(body []byte) (daybook.Outcome, error)
	// SafeText makes what a program printed fit to be stored and shown. Required where reports come in.
	SafeText func(text []byte) string
	// Secrets returns what must not show in what is kept of a job. May be nil: this process knows of none.
	Secrets func(job string) ([]string, error)
	// Reported hears of each report that was taken, once it is in the ledger. May be nil.
	Reported func(id daybook.AttemptID, said daybook.Result)
}

// Store is the ledger as control needs it.
type Store interface {
	daybook.Desk
	daybook.Reader
	// Seen and PutLapse are those of daybook.Keeper.
	Seen(ctx context.Context) (daybook.Seen, error)
	PutLapse(ctx context.Context, l daybook.Lapse, act daybook.Activity) (bool, error)
	// AlertRows returns the open alerts by priority and age, or all, newest first; AlertRow the one of a number, or an error
	// with CodeNotFound.
	AlertRows(ctx context.Context, openOnly bool, limit int) ([]notice.Row, error)
	AlertRow(ctx context.Context, number int64) (notice.Row, error)
	AckAlert(ctx context.Context, number int64, act daybook.Activity) (changed bool, err error)
	MuteAlerts(ctx context.Context, m notice.Mute, act daybook.Activity) error
	Mutes(ctx context.Context, now time.Time) ([]notice.Mute, error)
	Doors
	daybook.Driller
}

// Doors is the store as those need it who come by HTTP: tokens, calls, and keys claimed for programs that do the work.
type Doors interface {
	// Secret returns the ledger's random secret; the first caller's fresh one is kept.
	Secret(ctx context.Context, fresh func() string) (string, error)
	// Definition returns the definition that counts for a job.
	Definition(ctx context.Context, job string) (*daybook.Job, error)
	// Definitions returns those that counted at some instant from `from` on, oldest first.
	Definitions(ctx context.Context, job string, from time.Time) ([]daybook.JobState, error)
	Claim(ctx context.Context, c daybook.Claim, now time.Time) ([]*daybook.Run, error)
	Begin(ctx context.Context, r *daybook.Run, e *daybook.StepRecord, now time.Time) error
	Renew(ctx context.Context, held []*daybook.Run, lease, now time.Time) ([]daybook.Notice, error)
	ReleaseAsking(ctx context.Context, keys []*daybook.Run, now time.Time) error
	AddToken(ctx context.Context, tok daybook.Token, hash string, act daybook.Activity) (daybook.Token, error)
	Tokens(ctx context.Context) ([]daybook.Token, error)
	TokenByHash(ctx context.Context, hash string) (daybook.Token, error)
	RevokeToken(ctx context.Context, number int64, act daybook.Activity) (changed bool, err error)
	BeginCall(ctx context.Context, c daybook.Call, until, forget, now time.Time) (begun bool, was daybook.Call, err error)
	EndCall(ctx context.Context, c daybook.Call) error
}

// Control carries out what people ask for. It is safe for concurrent use.
type Control struct {
	s Store
	o Options

	mu       sync.Mutex
	compiled map[string]compiled // by job
	sealed   string              // the secret of the ledger, once it was read
}

// compiled is a definition with its schedule, worked out once.
type compiled struct {
	definition string
	days       *calendar.Days
	job        *daybook.Job
	schedule   *calendar.Schedule
}

// New returns the control of a ledger. It panics without a clock.
func New(s Store, o Options) *Control {
	if o.Clock == nil {
		panic("control: Options.Clock is nil")
	}
	if o.Wake == nil {
		o.Wake = func() {}
	}
	if o.Told == nil {
		o.Told = func(daybook.Priority) ([]string, bool) { return nil, false }
	}
	if o.Printed == nil {
		o.Printed = func(key daybook.Key, _ int64) (io.ReadCloser, error) {
			return nil, daybook.NotFound("%s: its output cannot be read here while it runs", key)
		}
	}
	if o.MayClaim == nil {
		o.MayClaim = func() error { return nil }
	}
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	if o.Secrets == nil {
		o.Secrets = func(string) ([]string, error) { return nil, nil }
	}
	if o.Freezes == nil {
		o.Freezes = func() *calendar.Freezes { return nil }
	}
	if o.Reported == nil {
		o.Reported = func(daybook.AttemptID, daybook.Result) {}
	}
	if o.Defined == nil {
		o.Defined = func(string) (*daybook.Job, bool) { return nil, false }
	}
	if o.Days == nil {
		o.Days = func(name string) (*calendar.Days, error) {
			if d, ok := calendar.Embedded(name); ok {
				return d, nil
			}
			return nil, daybook.Invalid("calendar %q cannot be read here", daybook.Clip(name, 60))
		}
	}
	return &Control{s: thawing{s, o.Clock}, o: o, compiled: make(map[string]compiled)}
}

// now is the instant of one act, as stores keep it.
func (c *Control) now() time.Time { return c.o.Clock().UTC().Truncate(time.Microsecond) }

// Person is who asks, and by which door.
type Person struct {
	Name   string         // shown in every record; at most daybook.MaxActorBytes
	Source daybook.Source // manual (the default) or api
}

// check returns p with its default. Errors have CodeInvalid.
func (p Person) check() (Person, error) {
	name, err := plainText(p.Name, daybook.Say("name of who asks"), daybook.MaxActorBytes)
	if err != nil {
		return p, err
	}
	if name == "" {
		return p, daybook.Invalid("the name of who asks is empty").WithHint("every act is recorded with a name")
	}
	p.Name = name
	switch p.Source {
	case "":
		p.Source = daybook.SourceManual
	case daybook.SourceManual, daybook.SourceAPI:
	default:
		return p, daybook.Invalid("a person comes by manual or api, not by %q", daybook.Clip(string(p.Source), 40))
	}
	return p, nil
}

// reason checks what a person gives as reason. Errors have CodeInvalid: missing where one is required, too long, or with
// control characters, which could forge lines in a log or a mail.
func reason(note string, act daybook.Text, required bool) (string, error) {
	note, err := plainText(note, daybook.Say("reason"), daybook.MaxReasonBytes)
	if err == nil && required && !strings.ContainsFunc(note, said) {
		return "", daybook.Invalid("%s needs a reason", act).WithHint("add --reason, a sentence for whoever reads the record later")
	}
	return note, err
}

// said reports whether a character says something: the "…" of a hint that was pasted as it stands does not.
func said(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }

func plainText(s string, what daybook.Text, limit int) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) > limit {
		return "", daybook.Invalid("the %s has %d bytes: at most %d are allowed", what, len(s), limit)
	}
	if !utf8.ValidString(s) {
		return "", daybook.Invalid("the %s is not UTF-8 text", what)
	}
	if i := strings.IndexFunc(s, hidden); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return "", daybook.Invalid("the %s has the control character %U at byte %d", what, r, i+1).WithHint("write it on one line, in plain text")
	}
	return s, nil
}

// hidden reports characters that a reader does not see and that change what is seen: controls, line separators, and
// marks that turn the direction of text.
func hidden(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' || r == '\u200E' || r == '\u200F' || r == '\uFEFF'
}

// known is a job as the ledger, or a file, has it.
type known struct {
	state    daybook.JobState // Revision 0: not in the ledger yet
	job      *daybook.Job     // completed
	schedule *calendar.Schedule
	fault    error // why there is no schedule
}

// kind returns the kind of window, resolved; empty when the schedule cannot be worked out.
func (k known) kind() daybook.WindowKind {
	if k.schedule == nil {
		return ""
	}
	return k.schedule.Window()
}

func (k known) retired() bool { return !k.state.RetiredAt.IsZero() }

// read completes a definition that the ledger has.
func (c *Control) read(st daybook.JobState) known {
	c.mu.Lock()
	have, ok := c.compiled[st.Name]
	c.mu.Unlock()
	if ok && have.definition == string(st.Definition) && (have.days == nil || have.days == c.daysOf(have.job)) {
		return known{state: st, job: have.job, schedule: have.schedule}
	}
	j, err := daybook.JobFromCanonical(st.Definition)
	if err != nil {
		return known{state: st, fault: err}
	}
	k, days := c.complete(j)
	k.state = st
	if k.fault == nil {
		c.mu.Lock()
		c.compiled[st.Name] = compiled{definition: string(st.Definition), days: days, job: k.job, schedule: k.schedule}
		c.mu.Unlock()
	}
	return k
}

func (c *Control) daysOf(j *daybook.Job) *calendar.Days {
	days, err := c.o.Days(j.Calendar)
	if err != nil {
		return nil
	}
	return days
}

// complete works a definition out. With a fault, the job is what could be read of it.
func (c *Control) complete(j daybook.Job) (known, *calendar.Days) {
	var days *calendar.Days
	if j.Calendar != "" {
		var err error
		if days, err = c.o.Days(j.Calendar); err != nil {
			return known{job: &j, fault: err}, nil
		}
	}
	done, schedule, err := calendar.Complete(j, days)
	if err != nil {
		return known{job: &j, fault: err}, nil
	}
	return known{job: &done, schedule: schedule}, days
}

// find returns the state of a job and the names of all.
func find(states []daybook.JobState, name string) (daybook.JobState, []string, bool) {
	names := make([]string, 0, len(states))
	var found daybook.JobState
	ok := false
	for _, st := range states {
		names = append(names, st.Name)
		if st.Name == name {
			found, ok = st, true
		}
	}
	return found, names, ok
}

// lookUp returns a job as the ledger has it, else as a file defines it: made known when write is set. Errors have
// CodeNotFound, with the nearest name.
func (c *Control) lookUp(ctx context.Context, name string, write bool, now time.Time) (known, error) {
	st, ok, err := c.s.JobState(ctx, name)
	if err != nil {
		return known{}, err
	}
	if ok && st.RetiredAt.IsZero() {
		return c.read(st), nil
	}
	if j, defined := c.o.Defined(name); defined {
		if err := c.underOldName(ctx, j, &st, write); err != nil {
			return known{}, err
		}
		return c.makeKnown(ctx, *j, c.o.Home, st, write, now)
	}
	if ok {
		return c.read(st), nil
	}
	return known{}, c.unknown(ctx, name)
}

// unknown refuses the name of a job that the ledger does not know, with the nearest of all: nobody else needs to read them.
func (c *Control) unknown(ctx context.Context, name string) error {
	states, err := c.s.JobStates(ctx)
	if err != nil {
		return err
	}
	_, names, _ := find(states, name)
	return noJob(name, names)
}

// mustKnow refuses the name of a job that the ledger does not know.
func (c *Control) mustKnow(ctx context.Context, name string) error {
	if _, ok, err := c.s.JobState(ctx, name); err != nil || ok {
		return err
	}
	return c.unknown(ctx, name)
}

// makeKnown brings a definition into the ledger when it is not there as it is.
func (c *Control) makeKnown(ctx context.Context, j daybook.Job, home string, st daybook.JobState, write bool, now time.Time) (known, error) {
	k, _ := c.complete(j)
	if k.fault != nil {
		return known{}, k.fault
	}
	k.state = st
	if !write || st.RetiredAt.IsZero() && st.Home == home && string(st.Definition) == string(k.job.Canonical()) {
		k.state.RetiredAt, k.state.Home = time.Time{}, home
		return k, nil
	}
	var err error
	if k.state, err = c.s.Ensure(ctx, k.job, home, now); err != nil {
		return known{}, err
	}
	return k, nil
}

// checkKey parses what a person gives as key. Errors have CodeInvalid.
func checkKey(k daybook.Key) (daybook.KeyParts, error) { return daybook.ParseKey(string(k)) }

// runOf loads the run of a key, which may stand under an earlier name of its job. Errors: CodeInvalid for what is no key, CodeNotFound with the nearest job name when the
// ledger knows no such job, or when it has no such key.
func (c *Control) runOf(ctx context.Context, k daybook.Key) (*daybook.Run, error) {
	parts, err := checkKey(k)
	if err != nil {
		return nil, err
	}
	r, err := c.s.Run(ctx, k)
	if daybook.CodeOf(err) != daybook.CodeNotFound {
		return r, err
	}
	st, ok, serr := c.s.JobState(ctx, parts.Job)
	if serr != nil {
		return nil, serr
	}
	if !ok {
		return nil, c.unknown(ctx, parts.Job)
	}
	if r, err = c.underAnyName(ctx, k, st.Formerly); err != nil || r != nil {
		return r, err
	}
	near, err := c.nearest(ctx, k)
	if err != nil {
		return nil, err
	}
	return nil, noKey(k, near)
}

// aliveNodes returns the nodes that do what is at a home and were seen lately: those with role serve for a file's, else those
// of the application.
func aliveNodes(nodes []daybook.Node, home string, now time.Time) []daybook.Node {
	role := home
	if role == "" {
		role = "serve"
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n daybook.Node) bool {
		return n.Role != role || !n.StoppedAt.IsZero() || now.Sub(n.SeenAt) > nodeSeen
	})
}

// location returns the zone of a run or job for showing times; UTC when it is not known here.
func location(zone string) *time.Location {
	if zone == "" {
		return time.UTC
	}
	loc, err := calendar.Zone(zone)
	if err != nil {
		return time.UTC
	}
	return loc
}
