package daybook

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Move is what moves a run.
type Move string

// The moves.
const (
	OnClaim      Move = "claim"       // an executor takes it, with a new fence and a lease
	OnReport     Move = "report"      // the attempt says how it ended
	OnLost       Move = "lost"        // its lease ended and nobody reported
	OnHandBack   Move = "hand back"   // a shutdown came before the work began
	OnProbe      Move = "probe"       // the far side was asked
	OnLateReport Move = "late report" // the attempt reports after it was declared lost
	OnResolve    Move = "resolve"     // a person says what happened, or lets the probe be asked again
	OnReplay     Move = "replay"
	OnDismiss    Move = "dismiss"
	OnCancel     Move = "cancel"
	OnReopen     Move = "reopen"
	OnAgain      Move = "again"
	OnRunSkipped Move = "run skipped"
	OnCover      Move = "cover"    // another run takes it in before its start
	OnUndo       Move = "undo"     // a person lets what it did be taken back; nothing of it runs again
	OnUndone     Move = "undone"   // that is over
	OnList       Move = "list"     // its subjects were listed: each has a run of its own
	OnSubjects   Move = "subjects" // those have all ended, or it is known that they cannot
	OnDoubt      Move = "doubt"    // the ledger forgot, and may not know what happened to it
)

// Arrow is one allowed move.
type Arrow struct {
	From State
	On   Move
	To   State
}

// Arrows is the whole state machine. A run enters it as scheduled, skipped or coalesced. The functions below take no
// other arrow, and every arrow is taken by one of them: a test holds both.
var Arrows = []Arrow{
	{Scheduled, OnClaim, Running},
	{Retryable, OnClaim, Running}, // not while it is settling: then the claim is a question, and the state stays

	{Running, OnReport, Done},
	{Running, OnReport, Retryable}, // on the ladder, or to be settled
	{Running, OnReport, Dead},
	{Running, OnReport, Cancelled}, // a person asked for the end, and nothing had happened
	{Running, OnLost, Retryable},
	{Running, OnLost, Dead},
	{Running, OnLost, Done},      // a further attempt of a done run
	{Running, OnLost, Cancelled}, // a person asked for the end, and repeating does no harm
	{Running, OnHandBack, Scheduled},
	{Running, OnHandBack, Retryable},

	{Retryable, OnProbe, Done},
	{Retryable, OnProbe, Retryable}, // asked again later, or a definite no: on the ladder with the next wire key
	{Retryable, OnProbe, Dead},
	{Retryable, OnProbe, Cancelled}, // a person asked for the end, and the far side says that nothing happened
	{Retryable, OnLateReport, Done},
	{Retryable, OnLateReport, Retryable},
	{Retryable, OnLateReport, Dead},
	{Retryable, OnLateReport, Cancelled}, // a person asked for the end, and nothing had happened
	{Scheduled, OnLateReport, Done},      // opened again by a person, since nothing was believed to have happened
	{Scheduled, OnLateReport, Scheduled}, // the same, of one of its effects
	{Cancelled, OnLateReport, Dead},      // the same, and he has ended it
	{Dead, OnLateReport, Done},
	{Dead, OnLateReport, Retryable},
	{Dead, OnLateReport, Dead},

	{Dead, OnResolve, Done},
	{Dead, OnResolve, Retryable},
	{Dead, OnResolve, Dead}, // another step is still unknown
	{Dead, OnReplay, Retryable},
	{Dead, OnDismiss, Dead}, // the letter is closed
	{Dead, OnReopen, Dead},  // a dismissed letter is opened again
	{Cancelled, OnReopen, Scheduled},
	{Scheduled, OnCancel, Cancelled},
	{Retryable, OnCancel, Cancelled},
	{Scheduled, OnCancel, Dead}, // an effect had happened: a person decides what becomes of that
	{Retryable, OnCancel, Dead},
	{Scheduled, OnCancel, Done}, // a further attempt of a done run, given up
	{Retryable, OnCancel, Done},
	{Done, OnAgain, Scheduled},
	{Skipped, OnRunSkipped, Scheduled},
	{Scheduled, OnCover, Coalesced},
	{Done, OnUndo, Done},
	{Dead, OnUndo, Dead},
	{Scheduled, OnDoubt, Scheduled}, // it waits for the end of the freeze
	{Scheduled, OnDoubt, Retryable}, // the far side is asked
	{Scheduled, OnDoubt, Dead},
	{Retryable, OnDoubt, Retryable},
	{Retryable, OnDoubt, Dead},
	{Done, OnUndone, Done},
	{Dead, OnUndone, Dead}, // the letter is closed: compensated

	{Running, OnList, Running},
	{Running, OnList, Retryable}, // zones are left whose hour has not come
	{Running, OnSubjects, Done},
	{Running, OnSubjects, Cancelled},
	{Running, OnSubjects, Dead}, // the breaker's ladder is used up, or the listing named what is no subject
	{Retryable, OnSubjects, Cancelled},
	{Retryable, OnSubjects, Dead},
	{Dead, OnReplay, Running}, // the breaker is closed
}

// Transition is a decided move of one run with every row that changes with it. The store applies it in one transaction,
// by compare-and-set on From, Fence and Claim; when the run stands otherwise, nothing is written and the answer is
// stale.
type Transition struct {
	Key   Key
	On    Move
	From  State
	Fence int64
	Claim string
	// Asking is compared too: the answer to a question counts only while the one who asked holds it, and what comes
	// before the answer makes it stale.
	Asking string
	// CancelledBy is compared too: whoever asked for the end meanwhile is heard.
	CancelledBy string
	// Marks is compared too, of a run with steps: what came to one of them meanwhile is seen first.
	Marks int64
	// Lease and Began are what a rescue saw, and on lost are compared too: a lease that was renewed since, or work that was
	// marked begun since, is not lost.
	Lease time.Time

	To       State
	Reason   Reason
	Due      time.Time // when To is live
	Failures int
	Losses   int
	Again    bool
	At       time.Time
	Error    string    // the last error; empty leaves the one before
	Began    time.Time // of the attempt that ended the run

	Data   json.RawMessage  // the result, when To is done
	Counts map[string]int64 // likewise
	Seals  bool             // whoever decided from the run as it stood before is refused: Marks rise
	Keep   bool             // To is done and keeps the result it had: a further attempt failed

	Attempt  *Attempt      // the row of the attempt that ended, or its late report
	Asked    []Attempt     // what the far side said, by which it is decided
	Effect   *StepRecord   // as it stands afterwards
	Steps    []*StepRecord // likewise: those that changed
	Letter   *Letter       // opened, or opened again
	Close    *Letter       // how the open letter is closed; a late report that closes none is stale when one is open
	Alerts   []*Alert
	Activity *Activity
	Freezes  []Freeze // those of a file in which what is due then would be; the ledger knows its own
	Listed   *Listed  // with OnList: what was listed
	// Parent is the run that listed the subject of this one; what becomes of it is told to whoever looks after that one.
	Parent Key
	Fans   bool        // the run has subjects: whoever looks after it looks again
	Make   *Run        // a run that is made with the move
	Then   *Transition // a move of another run that is made with this one, or the whole of it is not made
}

// Activity is one act of a person or of Daybook on a person's behalf. It is append-only.
type Activity struct {
	ID     string
	At     time.Time
	Actor  string
	Action string
	Key    Key
	Job    string
	Note   string
	Before string
	After  string
}

// Policy is what a definition says about ends of attempts.
type Policy struct {
	Retry     Retry
	Asks      bool          // the far side can be asked
	AsksUndo  bool          // it can be asked about an undo, too
	Remembers time.Duration // how long it answers a repeated wire key
	Settles   time.Duration // a probe's no counts only this long after the last try ended
	Lists     bool          // a run without a subject names its subjects, and does nothing else
}

// Policy returns what j says about ends of attempts.
func (j *Job) Policy() Policy {
	return Policy{Retry: j.Retry, Asks: j.Asks(), AsksUndo: j.Asks() && j.ProbeUndo, Remembers: j.Remembers, Settles: j.Settles, Lists: j.Fans()}
}

// asks reports whether the far side can be asked about the effects of r. Who can be asked about charges need not know of refunds:
// "no such charge" would be read as "not refunded", and the refund begun again.
func (p Policy) asks(r *Run) bool {
	if r.Key.IsUndo() {
		return p.AsksUndo
	}
	return p.Asks
}

// remembersAt reports whether the far side still answers the current wire key of e at an instant, with the margin kept.
func (p Policy) remembersAt(e *StepRecord, at time.Time) bool {
	if p.Remembers == Forever {
		return true
	}
	return p.Remembers > 0 && at.Before(e.FirstAt.Add(p.Remembers-RemembersMargin))
}

// Next decides what follows the end of the current attempt of a running r: reported by the attempt, or ResultLost when
// its lease ended.
func (r *Run) Next(o Outcome, p Policy, now time.Time) Transition {
	if r.lists(p) {
		c := *r
		c.Doubts = nil
		r = &c
	}
	t := r.move(OnReport, now)
	if o.Result == ResultLost {
		t.On, t.Lease = OnLost, r.Lease
		if o.Error == "" {
			o.Error = "the worker ended or lost its lease, and nobody reported"
		}
	}
	t.Attempt, t.Error, t.Began = r.attempt(o, now), o.Error, r.BegunAt
	switch {
	case o.Result == ResultInterrupted && r.CancelledBy == "":
		return r.handBack(t)
	case r.Steps:
		return r.nextSteps(t, o, p, now)
	}
	return r.ending(t, o, p, now)
}

// ending reads the end of an attempt: of one effect, or of work that may be repeated.
func (r *Run) ending(t Transition, o Outcome, p Policy, now time.Time) Transition {
	begun := r.Effect != nil && r.Effect.State == EffectBegun && r.Effect.Fence == r.Fence
	switch {
	case o.Result == ResultDone:
		return r.done(t, o, "", now)
	case r.OneEffect() && begun:
		return r.notDoneOnce(t, o, p, now)
	case r.Again:
		return t.keep()
	case r.CancelledBy != "" && r.unsettled():
		return r.dead(t, LetterUnknown, "cancelled by "+r.CancelledBy+" while its outcome is unknown", now)
	case r.CancelledBy != "":
		return r.cancelled(t, r.CancelledBy, now)
	case o.Result == ResultLost:
		return r.lost(t, o, now)
	case o.Result == ResultPermanent:
		return r.dead(t, LetterFailed, o.Error, now)
	case o.Result == ResultBusy && now.Sub(later(r.NotBefore, r.CreatedAt)) < MaxRetryAfter:
		t.To, t.Reason, t.Due, t.Losses = Retryable, ReasonRetry, now.Add(busyDelay(o)), 0
		return t
	case o.Interrupted:
		t.To, t.Reason, t.Due, t.Losses = Retryable, ReasonInterrupted, now, 0
		return t
	}
	return r.ladder(t, p, o, now)
}

// cancelled ends r as a person asked. Where an effect has happened that is a dead letter, to be replayed, undone or dismissed: nobody
// would know of it otherwise, and it could not be taken back.
func (r *Run) cancelled(t Transition, who string, now time.Time) Transition {
	var happened []string
	for _, e := range slices.Backward(r.Undoable()) {
		happened = append(happened, e.Step)
	}
	switch {
	case r.Again:
		return t.keep()
	case len(happened) == 0:
		t.To = Cancelled
		return t
	}
	t = r.dead(t, LetterFailed, "cancelled by "+who+" after "+strings.Join(happened, ", ")+" happened", now)
	t.Reason = ReasonCancelled
	return t
}

// PutOff decides that the far side is not asked yet about the open effects of r: something that an earlier try started is still
// alive, and may yet send. The last try ends now at the earliest, so no answer counts before that.
func (r *Run) PutOff(pause time.Duration, now time.Time) Transition {
	t := r.move(OnProbe, now)
	t.Effect, t.Steps = r.openUntil(now)
	t.To, t.Reason, t.Due = Retryable, ReasonSettling, now.Add(pause)
	return t
}

// HandBackAlive decides what follows when a claimed r was not begun, since something that an earlier try started is still alive: it is
// given back, to be claimed again after the pause.
func (r *Run) HandBackAlive(pause time.Duration, now time.Time) Transition {
	t := r.Next(Outcome{Result: ResultInterrupted}, Policy{}, now)
	if t.On == OnHandBack { // else a person asked for the end
		t.Effect, t.Steps = r.openUntil(now)
		t.Reason, t.Due = ReasonLost, now.Add(pause)
	}
	return t
}

// openUntil returns the open effects of r as tried until now.
func (r *Run) openUntil(now time.Time) (effect *StepRecord, steps []*StepRecord) {
	until := func(e *StepRecord) *StepRecord {
		c := *e
		c.EndedAt = now
		return &c
	}
	if e := r.Effect; e != nil && e.State == EffectUnknown {
		effect = until(e)
	}
	for _, e := range r.OpenSteps() {
		if e.State == EffectUnknown {
			steps = append(steps, until(e))
		}
	}
	return effect, steps
}

// LeavesOpen reports whether an effect of r is unknown once t is written.
func (r *Run) LeavesOpen(t Transition) bool {
	if e := t.Effect; e != nil {
		return e.State == EffectUnknown
	}
	for _, e := range t.Steps {
		r = r.With(e)
	}
	return len(r.OpenSteps()) > 0
}

func (r *Run) move(on Move, now time.Time) Transition {
	return Transition{Key: r.Key, On: on, From: r.State, Fence: r.Fence, Claim: r.Claim, Asking: r.Asking, CancelledBy: r.CancelledBy,
		Marks: r.Marks, Failures: r.Failures, Losses: r.Losses, Again: r.Again, At: now, Parent: r.SubjectOf(), Fans: r.Fans}
}

// keep ends a further attempt: the run is done as it was, with the result it had.
func (t Transition) keep() Transition {
	t.To, t.Keep, t.Again = Done, true, false
	return t
}

func (r *Run) handBack(t Transition) Transition {
	t.On, t.Attempt, t.Error = OnHandBack, nil, ""
	t.To, t.Reason, t.Due = Scheduled, ReasonInterrupted, r.Due
	if r.Attempts > 1 {
		t.To = Retryable
	}
	if e := r.Effect; e != nil && e.State == EffectBegun && e.Fence == r.Fence { // marked, and then nothing was started
		back := *e
		back.State = EffectNotDone
		if back.Tries--; back.Open {
			back.State, back.EndedAt = EffectUnknown, t.At // the end of the try before is not known any more: this one is later
		}
		switch {
		case back.Open && back.Doubt > 0: // there may have been one that is forgotten
		case back.Tries == 0:
			back.FirstAt = time.Time{}
		}
		t.Effect = &back
	}
	return t
}

func (r *Run) done(t Transition, o Outcome, settledBy string, now time.Time) Transition {
	t.To, t.Reason, t.Again = Done, ReasonNone, false
	t.Data, t.Counts = o.Data, o.Counts
	if t.Effect == nil && r.Effect != nil {
		e := *r.Effect
		t.Effect = &e
	}
	if e := t.Effect; e != nil && e.State != EffectDone {
		e.State, e.Data, e.SettledBy = EffectDone, o.Data, settledBy
		if e.EndedAt.IsZero() {
			e.EndedAt = now
		}
	}
	if t.Close == nil {
		t.Close = r.closing(LetterSettled, settledBy, "", now)
	}
	return t
}

// lost follows a lost attempt of work that may be repeated, or that never began.
func (r *Run) lost(t Transition, o Outcome, now time.Time) Transition {
	t.Losses++
	if t.Losses >= MaxLosses {
		return r.dead(t, LetterFailed, o.Error+", three times in a row", now)
	}
	t.To, t.Reason, t.Due = Retryable, ReasonLost, now
	return t
}

func (r *Run) ladder(t Transition, p Policy, o Outcome, now time.Time) Transition {
	t.Failures, t.Losses = min(t.Failures, len(p.Retry.Backoff))+1, 0
	d, ok := p.Retry.Delay(r.Key, t.Failures, o.RetryAfter)
	if !ok {
		return r.dead(t, LetterFailed, o.Error, now)
	}
	t.To, t.Reason, t.Due, t.Error = Retryable, ReasonRetry, now.Add(d), o.Error
	return t
}

// ask makes the next claim a question to the far side, now.
func (r *Run) ask(t Transition, now time.Time) Transition {
	t.To, t.Reason, t.Due = Retryable, ReasonSettling, now
	return t
}

// dead opens a letter, or opens the run's open or dismissed one again, with its alert. Whatever led here: while an effect
// is unknown, the letter is of kind unknown.
func (r *Run) dead(t Transition, kind LetterKind, lastError string, now time.Time) Transition {
	if lastError == "" {
		lastError = "it failed and did not say why"
	}
	if kind == LetterFailed && r.Work == Undoing {
		kind = LetterUndo
	}
	if t.Effect == nil {
		t.Effect = r.forgotten()
	}
	if e := t.Effect; e == nil && r.unsettled() || e != nil && e.State == EffectUnknown || len(r.OpenSteps()) > 0 {
		kind = LetterUnknown
	}
	t.To, t.Reason, t.Error, t.Again = Dead, ReasonNone, lastError, false
	l := Letter{Key: r.Key, Parent: r.SubjectOf(), Job: r.Job, Priority: r.Priority, OpenedAt: now}
	if r.Letter != nil && t.Close == nil && (r.Letter.State == LetterOpen || r.Letter.State == LetterDismissed) {
		l = *r.Letter
		l.ClosedAt, l.ClosedBy, l.Note = time.Time{}, "", ""
	}
	l.Kind, l.State, l.Error = kind, LetterOpen, lastError
	t.Letter = &l
	alert := AlertDeadLetter
	if kind == LetterUnknown {
		alert = AlertUnknownOutcome
	}
	t.Alerts = append(t.Alerts, r.alert(alert, lastError, now))
	return t
}

// unsettled reports whether the last try of the effect ended without an answer, or its end missed the mark that it had
// begun.
func (r *Run) unsettled() bool {
	return r.Effect != nil && r.Effect.open() || len(r.OpenSteps()) > 0 || r.forgotten() != nil
}

func (r *Run) closing(to LetterState, who, note string, now time.Time) *Letter {
	if r.Letter == nil || r.Letter.State != LetterOpen {
		return nil
	}
	l := *r.Letter
	l.State, l.ClosedAt, l.ClosedBy, l.Note = to, now, who, note
	return &l
}

func (r *Run) attempt(o Outcome, now time.Time) *Attempt {
	return &Attempt{Key: r.Key, Fence: r.Fence, Number: r.Attempts, Claim: r.Claim, Node: r.Node, WireKey: r.sentKey(),
		Revision: r.Revision, ClaimedAt: r.ClaimedAt, BegunAt: r.BegunAt, EndedAt: now,
		Result: o.Result, Error: Clip(o.Error, MaxErrorBytes), Detail: o.Detail, Data: o.Data, Output: o.Output}
}

// sentKey is the wire key that the current attempt was given, if any.
func (r *Run) sentKey() string {
	if r.Steps {
		return ""
	}
	return r.WireKey()
}

func busyDelay(o Outcome) time.Duration {
	return max(time.Minute, min(o.RetryAfter, MaxRetryAfter))
}
