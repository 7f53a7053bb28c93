package daybook

import (
	"encoding/json"
	"slices"
	"time"
)

// Listed is what an attempt that lists has found.
type Listed struct {
	Subjects int64    `json:"subjects"` // with a run of their own, the known ones included
	New      int64    `json:"new"`
	Repeated int64    `json:"repeated,omitempty"` // named more than once: one run
	Faulty   int64    `json:"faulty,omitempty"`   // rows that name no subject
	Faults   []string `json:"faults,omitempty"`   // the first of them
	Vanished int64    `json:"vanished,omitempty"` // known from an earlier listing, and not named any more
	Later    int64    `json:"later,omitempty"`    // whose own hour has not come
	// Next is when the hour of a further zone comes, and everything is listed once more; zero: it is complete.
	Next time.Time `json:"next,omitzero"`
}

// SubjectOf returns the run that listed the subject of r; empty for a run without, and for undos.
func (r *Run) SubjectOf() Key {
	if r.Work == Undoing {
		return ""
	}
	return r.Parent
}

// alert is what tells of a letter of r: subjects of one run share one.
func (r *Run) alert(kind AlertKind, lastError string, now time.Time) *Alert {
	key, parent := r.Key, r.SubjectOf()
	if parent != "" {
		key = parent
	}
	a := NewAlert(kind, key, r.Job, r.Priority, lastError, "", now)
	a.Shared = parent != ""
	return a
}

// List decides what follows a listing that came to its end: r holds no lease from then on, and is done when all of its
// subjects are.
func (r *Run) List(l Listed, o Outcome, now time.Time) Transition {
	t := r.move(OnList, now)
	t.Listed, t.Fans, t.Failures, t.Losses = &l, true, 0, 0
	o.Data, _ = json.Marshal(l) // numbers and text: it cannot fail
	t.Attempt = r.attempt(o, now)
	t.To, t.Reason, t.Due = Running, ReasonFannedOut, r.Due
	if !l.Next.IsZero() {
		t.To, t.Reason, t.Due = Retryable, ReasonNextZone, l.Next
	}
	return t
}

// FannedOut reports whether r is listed, and looked after until its subjects have ended.
func (r *Run) FannedOut() bool {
	return r.Fans && (r.State == Running && r.Reason == ReasonFannedOut || r.State == Retryable && r.Reason == ReasonNextZone)
}

// listsAgain reports whether the run was listed, and is to be listed once more: for a further zone, or since that failed or was
// begun anew. Whoever was named does not wait for it. What a person is about to end, or has just taken up again, does.
func (f *Fanout) listsAgain() bool {
	r := f.Run
	return f.Whole && !r.FannedOut() && (r.State == Running || r.State == Retryable) && r.CancelledBy == "" && !f.Breaker.Back
}

// BreakerSubjects is how many subjects of one run in a row must fail alike, and none succeed, before no more are let go.
const BreakerSubjects = 5

// Breaker is what is remembered of the ends of the subjects of a run, and how its breaker stands.
type Breaker struct {
	Won    bool      `json:",omitempty"` // one of them succeeded at some time
	Failed []Key     `json:",omitempty"` // those that failed alike since the last success
	Since  time.Time `json:",omitzero"`  // the first of them
	Alike  string    `json:",omitempty"` // what their errors have in common
	Error  string    `json:",omitempty"` // of the last of them
	Open   bool      `json:",omitempty"`
	Trial  Key       `json:",omitempty"` // the one that is tried meanwhile
	Step   int       `json:",omitempty"` // of the ladder
	Next   time.Time `json:",omitzero"`  // when one is tried next
	Back   bool      `json:",omitempty"` // the run was taken up again: those that were cancelled with it come back
	After  Key       `json:",omitempty"` // the last that was let go: whoever waits is looked for behind it, then from the start
}

// closed returns how a breaker stands after a success, or when nothing is left to be tried.
func (b Breaker) closed(won bool) Breaker { return Breaker{Won: won, Back: b.Back, After: b.After} }

// heldFor is how long it takes, once what the breaker tried waits for the serial key of another run, until another is tried.
const heldFor = 10 * time.Second

// usedUpPause is how long it takes, once the ladder of the breaker is used up while the run is listed again, until one more is tried.
const usedUpPause = time.Minute

// SubjectEnd is something that became of the run of a subject.
type SubjectEnd struct {
	ID     string
	Key    Key
	Done   bool
	Failed bool // an attempt failed
	Held   bool // it has not ended: another run has its serial key
	Error  string
	At     time.Time
}

// Fanout is how a run with subjects stands, as far as a look at it goes: nothing of it grows with their number.
type Fanout struct {
	Run       *Run // with its newest letter
	Whole     bool // a listing came to its end
	Faulty    int64
	Fault     string // the first of them
	Breaker   Breaker
	Ends      []SubjectEnd // since the last look, in their order
	MoreEnds  bool         // than these
	Waiting   bool         // some wait for their turn
	Unstarted bool         // of a run that a person ended, or asked to end: some have not started
	Left      bool         // of one that he asked to end: some were cancelled with it, and would come back with it
	// Out is how many are let go, due, and not ended; no more than asked about. Who waits for a serial key is not at work, and may
	// wait for days: of those that wait for the same one the first does not count, the others do, for their line gets no shorter
	// by more of them.
	Out      int
	UnderWay bool // some are live
	Failed   bool // some have an open letter of kind failed, or undo
	Unknown  bool // some have one of kind unknown
}

// Over reports whether a person ended the run before its subjects had come to their end: he cancelled it, or dismissed its letter.
func (f *Fanout) Over() bool {
	r := f.Run
	return r.State == Cancelled || r.State == Dead && r.Letter != nil && r.Letter.State == LetterDismissed
}

// Letters reports whether letters of subjects stand open.
func (f *Fanout) Letters() bool { return f.Failed || f.Unknown }

// FanMove is what a look at a run with subjects decides.
type FanMove struct {
	Breaker Breaker
	Unpark  bool        // what the breaker holds waits for its turn again
	Park    bool        // the breaker holds what was let go, and takes back what failed since Breaker.Since
	Try     bool        // one is let go, and is the trial
	LetGo   int         // so many are let go
	Cancel  bool        // what has not started is cancelled, or settled when it may have been forgotten: see EndInDoubt
	Drop    bool        // so is what waits for its turn, or is held by the breaker, which is over; what cannot be cancelled goes on, to be settled
	Back    bool        // what was cancelled with the run, and is named by its newest listing, waits for its turn again
	Rests   bool        // see Run.Rests
	End     *Transition // of the run itself
	Look    time.Time   // it is looked at again then, whatever ends; zero: when something ends
}

// Next decides what a look at f does: how many are let go, whether the breaker opens or closes, and whether the run has come
// to its end. At most portion are let go and not ended at a time, and before the first success no more than it takes to judge.
func (f *Fanout) Next(p Policy, portion int, now time.Time) FanMove {
	m := FanMove{Breaker: f.Breaker}
	m.Breaker.Failed = slices.Clone(m.Breaker.Failed)
	r := f.Run
	used, again := false, f.listsAgain()
	for _, e := range f.Ends {
		used = m.follow(e, p, r.Key, now) || used
	}
	switch {
	case !r.FannedOut() && !again:
		over := f.Over()
		m.Cancel, m.Drop = over && f.Unstarted, over && (f.Waiting || m.Breaker.Open)
		m.Park = m.Breaker.Open && r.State == Dead && !over
		return m
	case used && again: // whoever lists has the run: it ends when one more fails after that
		m.Breaker.Next = now.Add(usedUpPause)
		m.Park, m.Look = true, m.Breaker.Next
		return m
	case used:
		return m.usedUp(r, now)
	case f.Unstarted:
		m.Cancel = true
	case m.Breaker.Back && r.CancelledBy == "":
		m.Back, m.Park = true, m.Breaker.Open
		return m
	case m.Breaker.Open:
		m.breaker(f, now)
	case f.Waiting:
		if m.Breaker.Won && f.Out <= portion/2 {
			m.LetGo = portion - f.Out
		} else if !m.Breaker.Won { // should all of them fail alike, it was no more than it takes
			m.LetGo = max(min(portion, BreakerSubjects-len(m.Breaker.Failed))-f.Out, 0)
		}
	}
	m.Rests = !f.UnderWay && !again
	if m.Rests && !f.Letters() && !f.MoreEnds && (r.State == Running || r.CancelledBy != "") {
		m.over(f, now)
	}
	return m
}

// follow takes note of one end. It reports whether the ladder of the breaker is used up with it.
func (m *FanMove) follow(e SubjectEnd, p Policy, parent Key, now time.Time) (used bool) {
	b := &m.Breaker
	if !e.Done && !e.Failed && !e.Held && e.Key <= b.After { // it may wait again
		b.After = ""
	}
	switch {
	case e.Done:
		m.Unpark = m.Unpark || b.Open
		*b = b.closed(true)
	case b.Open && e.Key == b.Trial:
		b.Trial = ""
		if !e.Failed { // a person took it away, or it waits: another is tried
			b.Next = now
			if e.Held {
				b.Next = now.Add(heldFor)
			}
			return false
		}
		b.Step++
		b.Error = e.Error
		d, ok := p.Retry.Delay(parent, b.Step, 0)
		b.Next = now.Add(d)
		return !ok
	case b.Open || !e.Failed:
	default:
		_, subject, _ := cutSubject(e.Key)
		if like := alike(e.Error, subject); like != b.Alike || len(b.Failed) == 0 {
			b.Failed, b.Since, b.Alike = nil, e.At, like
		}
		if !slices.Contains(b.Failed, e.Key) {
			b.Failed = append(b.Failed, e.Key)
		}
		b.Error = e.Error
		if len(b.Failed) < BreakerSubjects {
			return false
		}
		b.Open, b.Step, m.Unpark = true, 1, false
		d, ok := p.Retry.Delay(parent, b.Step, 0)
		b.Next = now.Add(d)
		return !ok
	}
	return false
}

// breaker tries one when its time has come, and else keeps the others where they are.
func (m *FanMove) breaker(f *Fanout, now time.Time) {
	m.Park = true
	switch {
	case m.Breaker.Trial != "":
	case m.Breaker.Next.After(now):
		m.Look = m.Breaker.Next
	default:
		m.Try = true
	}
	if !f.UnderWay && !f.Failed { // nothing is left to be tried
		m.Breaker, m.Park, m.Try = m.Breaker.closed(m.Breaker.Won), false, false
	}
}

// CancelSubject ends the run of a subject that waits, together with the run that listed it. One of which an effect has happened is a
// dead letter then, as with Cancel.
func (r *Run) CancelSubject(who string, now time.Time) (Transition, error) {
	t, err := r.Cancel(who, "", now)
	t.Activity = nil // that of the other run says it
	if t.To == Cancelled {
		t.Reason = ReasonWithWindow
	}
	return t, err
}

// EndInDoubt decides about the run of a subject that was not tried, and cannot be cancelled with the run that listed it, since
// the ledger may have forgotten what happened to it: the far side is asked, and when that says that nothing happened it is cancelled.
// Nothing is repeated for the sake of a run that was to end: without a probe a person must look. Errors have CodeConflict.
func (r *Run) EndInDoubt(p Policy, now time.Time) (Transition, error) {
	e := r.forgotten()
	if e == nil || r.State != Scheduled && r.State != Retryable || r.Reason == ReasonSettling {
		return Transition{}, Conflict("%s is settled as it is", r.Key)
	}
	t := r.move(OnDoubt, now)
	t.Effect = e
	if p.asks(r) {
		return r.ask(t, now), nil
	}
	return r.dead(t, LetterUnknown, e.Error, now), nil
}

// BringBack takes up a run again that was cancelled together with the run that listed it.
func (r *Run) BringBack(now time.Time) (Transition, error) {
	if r.Reason != ReasonWithWindow {
		return Transition{}, Conflict("%s was not cancelled with its window", r.Key)
	}
	t, err := r.Reopen("", "", now)
	t.Activity, t.Reason = nil, ReasonNone
	return t, err
}

// usedUp ends a run whose subjects fail alike at every step of the ladder.
func (m FanMove) usedUp(r *Run, now time.Time) FanMove {
	t := r.move(OnSubjects, now)
	t = r.dead(t, LetterFailed, "subjects fail alike, and no more are let go: "+m.Breaker.Error, now)
	t.Reason = ReasonBreaker
	if r.State == Retryable {
		t.Reason = ReasonNextZone // it lists once more when it is replayed
	}
	t.Alerts[len(t.Alerts)-1].Kind = AlertBreakerOpen
	m.Park, m.End = true, &t
	return m
}

// over ends a run whose subjects are all settled.
func (m *FanMove) over(f *Fanout, now time.Time) {
	r := f.Run
	t := r.move(OnSubjects, now)
	t.Began = r.ClaimedAt
	switch {
	case r.CancelledBy != "" && (f.Left || f.Faulty > 0 || r.State != Running): // else nothing was left undone by it
		t.To = Cancelled
	case f.Faulty > 0:
		t = r.dead(t, LetterFailed, "the listing named what is no subject: "+f.Fault, now)
	default:
		t.To, t.Reason, t.Again = Done, ReasonNone, false
		t.Close = r.closing(LetterSettled, "", "", now)
	}
	m.End = &t
}

// cutSubject splits the key of a subject's run.
func cutSubject(k Key) (parent Key, subject string, ok bool) {
	for i := range len(k) {
		if k[i] == '/' {
			return k[:i], string(k[i+1:]), true
		}
	}
	return k, "", false
}

// SubjectCounts says how the subjects of a run stand.
type SubjectCounts struct {
	Of       int64           // runs of subjects
	States   map[State]int64 // of them, by state
	Waiting  int64           // of those scheduled, or to be tried again: for their turn
	Held     int64           // likewise: let go, and waiting for a serial key
	Letters  int64           // open letters, but those of unknown outcomes
	Unknown  int64           // open letters of unknown outcomes
	Repeated int64           // named more than once by the last listing
	Faulty   int64           // rows of it that name no subject
	Fault    string          // the first of them
	Vanished int64           // known, and not named by it
	Breaker  *Breaker        // open; nil: it is closed
	Won      bool            // one of them succeeded at some time
}

// ForPerson is how many open letters there are.
func (c SubjectCounts) ForPerson() int64 { return c.Letters + c.Unknown }

// WaitsForPerson reports whether nothing keeps r, whose subjects were listed and counted, from its end but open letters of them.
func (r *Run) WaitsForPerson() bool {
	return r.FannedOut() && r.State == Running && r.Rests && r.Subjects != nil && r.Subjects.UnderWay() == 0 && r.Subjects.ForPerson() > 0
}

// UnderWay is how many are neither done nor in the hands of a person.
func (c SubjectCounts) UnderWay() int64 {
	return c.States[Scheduled] + c.States[Running] + c.States[Retryable]
}
