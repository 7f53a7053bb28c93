package daybook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// EffectState is where a step stands.
type EffectState string

// States of an effect. A step that touches nothing outside uses the same words, and is simply done again unless it is done.
const (
	EffectBegun   EffectState = "begun"    // marked durably before it was started
	EffectDone    EffectState = "done"     // never begun again
	EffectNotDone EffectState = "not_done" // its last try did not happen, and no earlier try is open
	EffectRefused EffectState = "refused"  // likewise, and it never will under this wire key: a replay takes the next one
	EffectUnknown EffectState = "unknown"  // a try ended without an answer: probe, memory or a person settles it
)

// StepRecord is the record of a named part of a run, most often an effect: a part that touches the outside world. The whole
// attempt of an `effects: once` job without steps is one effect named StepRun.
type StepRecord struct {
	Key        Key
	Step       string
	Plain      bool // it touches nothing outside
	State      EffectState
	Generation int       // of the wire key, from 1; rises after a definite no only
	Open       bool      // an earlier try under the current wire key ended without an answer
	FirstAt    time.Time // the first try under the current wire key began
	EndedAt    time.Time // the last try ended, or was declared over
	Tries      int
	Fence      int64           // of the last try
	Call       string          // by which the work came to it last and was told to go on; empty: it was not said
	SettledBy  string          // probe, late report, or the person; empty when the attempt itself said so
	Data       json.RawMessage // the result handed back, or the probe's
	Twice      string          // the other wire keys under which the far side has it as well: it was done twice
	Doubt      int64           // number of the lapse by which it was unknown before it began; see Run.Doubt

	// The rest is of steps that the work marks itself.
	Order int        // in which the steps of a run first began, from 1
	Seen  int64      // fence of the attempt that came to it last
	Says  StepPolicy // what the work said of its far side when it came to it last
	Asked Answer     // what the far side said since the last try ended; empty: it was not asked
	Error string     // why its last try, or question, did not settle it
}

// StepPolicy is what work says of the far side of an effect.
type StepPolicy struct {
	Asks      bool          // the work can ask it
	Undoes    bool          // the work can take the effect back
	Undo      string        // a line for the shell that does; empty: none
	Remembers time.Duration // how long it answers a repeated wire key; 0: what the job says
	Settles   time.Duration // a no counts only this long after the last try ended; 0: what the job says
	// Optional says that the work does without it when it does not happen, perhaps by another way: the run may be done all the
	// same.
	Optional bool
}

// StepAsk is what work says when it comes to a step.
type StepAsk struct {
	Step  string
	Plain bool
	Says  StepPolicy
	// Call is made up anew each time work comes to a step, and is the same when the same call is made again because its answer
	// was lost: it is then given the try that it has. Empty: each call is a new one.
	Call string
	// Fault is what is wrong with how it was asked for: it is not let begin.
	Fault string
}

// StepDo is what work that came to a step does next.
type StepDo string

// What to do.
const (
	StepBegin StepDo = "begin" // do it, under the wire key of the record
	StepSkip  StepDo = "done"  // it is done: hand back the result of the record
	StepAsks  StepDo = "ask"   // ask the far side about WireKeys, and tell what it said
	StepStop  StepDo = "stop"  // end the attempt, with Err
)

// StepAnswer tells work that came to a step what to do.
type StepAnswer struct {
	Do     StepDo
	Record *StepRecord // as it stands, or as it is to be marked, durably, before anything is done
	Write  bool        // the record is to be written first
	Err    error       // set with StepStop; what an attempt that ends with it says is right
	Denied bool        // with StepStop: it is not let begin, and nothing in Record says so
}

// WireKeys returns every wire key that the effect was tried under, newest first. When the ledger forgot, that may be the next
// ones, too.
func (e *StepRecord) WireKeys() []string {
	var keys []string
	newest := e.Generation
	if e.Forgotten() {
		newest += forgottenKeys
	}
	for g := newest; g >= 1; g-- {
		keys = append(keys, e.Key.WireKey(e.Step, g))
	}
	return keys
}

// WireKey returns the current wire key of the effect.
func (e *StepRecord) WireKey() string { return e.Key.WireKey(e.Step, e.Generation) }

// open reports whether a try of the effect ended, or may have ended, without an answer.
func (e *StepRecord) open() bool {
	return !e.Plain && (e.State == EffectUnknown || e.State == EffectBegun)
}

// happened reports whether the effect was done, or may have been.
func (e *StepRecord) happened() bool { return !e.Plain && (e.State == EffectDone || e.open()) }

var stepName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// CheckStep returns an error with CodeInvalid unless name can be the name of a step.
func CheckStep(name string) error {
	switch {
	case name == StepRun:
		return Invalid("step %s is the name of a whole attempt", name).WithHint("name it by what it does: charge, extend, receipt")
	case !stepName.MatchString(name):
		return Invalid("%q cannot be the name of a step", Clip(name, 40)).WithHint("at most 32 lower-case letters, digits, _ and -")
	}
	return nil
}

// StepRecord returns the record of a step of r, nil when there is none.
func (r *Run) StepRecord(step string) *StepRecord {
	if r.Effect != nil && r.Effect.Step == step {
		return r.Effect
	}
	if i := slices.IndexFunc(r.Records, func(e *StepRecord) bool { return e.Step == step }); i >= 0 {
		return r.Records[i]
	}
	return nil
}

// OpenSteps returns the effects of r whose outcome is open, in their order.
func (r *Run) OpenSteps() []*StepRecord {
	var open []*StepRecord
	for _, e := range r.Records {
		if e.open() {
			open = append(open, e)
		}
	}
	return open
}

// OpenStep names the effect of r that is settled first, StepRun for a run that is one effect as a whole.
func (r *Run) OpenStep() string {
	if r != nil {
		for _, e := range r.OpenSteps() {
			return e.Step
		}
	}
	return StepRun
}

// OpenWireKey is the wire key of the effect of r that is settled first: what is looked for at the far side.
func (r *Run) OpenWireKey() string {
	for _, e := range r.OpenSteps() {
		return e.WireKey()
	}
	return r.WireKey()
}

// CanAsk reports whether the far side can be asked about the effect of r that is settled first. p is what its job says.
func (r *Run) CanAsk(p Policy) bool {
	for _, e := range r.OpenSteps() {
		return e.Says.Asks || p.asks(r)
	}
	return p.asks(r)
}

// Marked returns everything that is recorded of the work of r, in its order: the attempt as one effect, or its steps.
func (r *Run) Marked() []*StepRecord {
	if r.Effect != nil {
		return append([]*StepRecord{r.Effect}, r.Records...)
	}
	return r.Records
}

// With returns r with one record put in place of the one of the same step, or added. r is not changed.
func (r *Run) With(e *StepRecord) *Run {
	c := *r
	c.Records = slices.Clone(r.Records)
	if i := slices.IndexFunc(c.Records, func(o *StepRecord) bool { return o.Step == e.Step }); i >= 0 {
		c.Records[i] = e
	} else {
		c.Records = append(c.Records, e)
	}
	return &c
}

// ofStep is what holds for a step: what the work says of it, else what the job says.
func (p Policy) ofStep(e *StepRecord) Policy {
	p.Remembers, p.Settles = cmp.Or(e.Says.Remembers, p.Remembers), cmp.Or(e.Says.Settles, p.Settles)
	return p
}

// ComeTo answers work of the current attempt of r that comes to a step. p is what the job says.
//
// A new effect is refused while an effect of an earlier attempt, done or open, was not come to in this one: then the work
// was changed between its attempts, perhaps only by another name, and the same thing may be about to happen again.
//
// Once a person asked for the end of the attempt nothing more begins. What is done is handed back, and the far side may be asked
// about what is open, so that it is settled.
func (r *Run) ComeTo(ask StepAsk, p Policy, now time.Time) StepAnswer {
	a := r.comeTo(ask, p, now)
	if a.Do != StepBegin || !a.Write && !ask.Plain { // it had begun before, and only the answer was lost
		return a
	}
	if r.CancelledBy != "" {
		return deny(r.StepRecord(ask.Step), NotDone(Conflict("%s asked for the end of %s: nothing more of it begins", r.CancelledBy, r.Key)))
	}
	if o := r.undecided(ask.Step); o != nil && !ask.Plain {
		return deny(r.StepRecord(ask.Step), Unknown(Conflict("effect %s may be the other way of effect %s, and whether that happened is not known yet", ask.Step, o.Step).
			WithHint("the work ends here, and goes on once that is settled")))
	}
	return a
}

// undecided returns an effect other than step that the work does without, and of which it is not known whether it happened:
// whatever begins now may be done instead of it.
func (r *Run) undecided(step string) *StepRecord {
	for _, o := range r.Records {
		if o.Step != step && o.open() && o.Says.Optional {
			return o
		}
	}
	return nil
}

// wentOn reports whether the work did without an effect, and has gone on: a later one happened, or may have. Should that be its other
// way, the effect must not happen any more: one that did not stays so.
func (r *Run) wentOn(e *StepRecord, optional bool) bool {
	return optional && !e.Plain && slices.ContainsFunc(r.Records, func(o *StepRecord) bool { return o.Order > e.Order && o.happened() })
}

func (r *Run) comeTo(ask StepAsk, p Policy, now time.Time) StepAnswer {
	if ask.Fault != "" {
		return deny(nil, Permanent(Invalid("%s", Clip(ask.Fault, MaxErrorBytes))))
	}
	if err := CheckStep(ask.Step); err != nil && !r.Key.IsUndo() { // the undo of a whole attempt has its name
		return deny(nil, Permanent(err))
	}
	if !r.Steps {
		return stop(nil, Permanent(Conflict("job %s did not declare steps", r.Job).WithHint("add steps: true to the job; its whole attempt is no single effect then")))
	}
	e := r.StepRecord(ask.Step)
	if e == nil {
		e = &StepRecord{Key: r.Key, Step: ask.Step, Plain: ask.Plain, Generation: 1, Order: len(r.Records) + 1, State: EffectNotDone}
	}
	switch {
	case e.State == EffectDone && e.Seen == r.Fence && !e.calledBy(ask):
		return deny(e, Permanent(Conflict("%s was done in this very attempt, and is done once only: give each a name of its own, such as %s-2, or use subjects", e.Named(), Clip(e.Step, 20))))
	case e.State == EffectDone:
		return r.seen(StepAnswer{Do: StepSkip, Record: e}, ask)
	case e.happened() && ask.Plain:
		return deny(e, Permanent(Conflict("step %s was an effect before, whose outcome is unknown", e.Step).
			WithHint("make it an effect again, or settle it: daybook run resolve %s --step %s --as \"done|not-done\" --reason …", r.Key, e.Step)))
	case ask.Plain:
		return StepAnswer{Do: StepBegin, Record: e.begun(r, ask, now)} // marked when it is done
	}
	if err := CheckWireKey(e.WireKey()); err != nil {
		return deny(e, Permanent(err))
	}
	asks := e.State == EffectUnknown && ask.Says.Asks && e.Asked != CannotTell
	if (e.State == EffectNotDone || e.State == EffectUnknown && !asks) && e.Seen == r.Fence && e.calledBy(ask) { // a copy of it was under way for long
		return stop(e, Conflict("this call for %s was answered before, and it has ended since", e.Named()))
	}
	if o := r.passedOver(e); o != nil {
		return deny(e, Permanent(Conflict("effect %s is new, and this attempt did not come to effect %s, which is %s", e.Step, o.Step, o.State).
			WithHint("was it renamed? Between attempts of one run effects keep their names and their order")))
	}
	if once := e.happenedOnce(); once != nil {
		once.Seen, once.Call = r.Fence, ask.Call
		return StepAnswer{Do: StepSkip, Record: once, Write: true}
	}
	if (e.State == EffectNotDone && e.Tries > 0 || e.State == EffectRefused) && r.wentOn(e, e.Says.Optional || ask.Says.Optional) {
		return r.seen(r.without(e), ask)
	}
	was := e
	e = r.gate(e)
	switch e.State {
	case EffectRefused:
		return r.seen(stop(e, Permanent(Conflict("%s was refused for good: %s", e.Named(), e.Error))), ask)
	case EffectBegun:
		switch {
		case e.Fence == r.Fence && e.calledBy(ask): // the answer was lost, and nothing was begun yet
			return StepAnswer{Do: StepBegin, Record: e}
		case e.Fence == r.Fence:
			return deny(e, Conflict("%s is under way in this very attempt", e.Named()))
		}
		c := *e
		c.unreported(now)
		e = &c
	}
	if e.State == EffectUnknown {
		a := r.comeToOpen(e, ask, p, now)
		a.Write = a.Write || e != was
		return a
	}
	return StepAnswer{Do: StepBegin, Record: e.begun(r, ask, now), Write: true}
}

// comeToOpen answers work that comes to an effect whose outcome is open.
func (r *Run) comeToOpen(e *StepRecord, ask StepAsk, p Policy, now time.Time) StepAnswer {
	c := *e
	c.Says, c.Seen, c.Call = ask.Says, r.Fence, ask.Call
	q := p.ofStep(&c)
	switch {
	case ask.Says.Asks && c.Asked != CannotTell:
		return StepAnswer{Do: StepAsks, Record: &c, Write: true}
	case (ask.Says.Asks || !p.asks(r) || c.Asked == CannotTell) && q.remembersAt(&c, now) && !r.wentOn(&c, ask.Says.Optional):
		return StepAnswer{Do: StepBegin, Record: c.begun(r, ask, now), Write: true}
	}
	return stop(&c, Unknown(Conflict("whether %s happened is unknown, and is settled first", c.Named())))
}

// without ends a call for an effect that the work went on without.
func (r *Run) without(e *StepRecord) StepAnswer {
	if e.State == EffectRefused {
		return stop(e, Permanent(Conflict("%s was refused for good: %s", e.Named(), e.Error)))
	}
	return stop(e, NotDone(Conflict("%s did not happen, and the work has gone on without it: it does not begin again", e.Named())))
}

// seen notes, where it is not noted yet, that this attempt came to a step, and by which call.
func (r *Run) seen(a StepAnswer, ask StepAsk) StepAnswer {
	if a.Record.Seen == r.Fence && a.Record.Says.Optional == ask.Says.Optional {
		return a
	}
	c := *a.Record
	c.Seen, c.Call, c.Says.Optional = r.Fence, ask.Call, ask.Says.Optional
	a.Record, a.Write = &c, true
	return a
}

// calledBy reports whether a coming to a step is the call that came to it last, made again.
func (e *StepRecord) calledBy(ask StepAsk) bool { return ask.Call != "" && ask.Call == e.Call }

// Named names a step for people, by what it is.
func (e *StepRecord) Named() Text {
	if e.Plain {
		return Say("step %s", e.Step)
	}
	return Say("effect %s", e.Step)
}

func stop(e *StepRecord, err error) StepAnswer { return StepAnswer{Do: StepStop, Record: e, Err: err} }

// deny stops work that may not begin a step: its attempt is not done, whatever it says.
func deny(e *StepRecord, err error) StepAnswer {
	a := stop(e, err)
	a.Denied = true
	return a
}

// passedOver returns an effect that an earlier attempt did, or may have done, and this one did not come to; only for an
// effect that is new.
func (r *Run) passedOver(e *StepRecord) *StepRecord {
	if e.Tries > 0 {
		return nil
	}
	for _, o := range r.Records {
		if o.Step != e.Step && o.happened() && o.Seen != r.Fence {
			return o
		}
	}
	return nil
}

// begun returns e as it is marked when this attempt begins it.
func (e *StepRecord) begun(r *Run, ask StepAsk, now time.Time) *StepRecord {
	c := *e
	c.Open = c.State == EffectUnknown
	c.State, c.Fence, c.Seen, c.EndedAt, c.SettledBy, c.Asked, c.Error = EffectBegun, r.Fence, r.Fence, time.Time{}, "", "", ""
	c.Plain, c.Says, c.Call = ask.Plain, ask.Says, ask.Call
	c.Tries++
	if c.FirstAt.IsZero() {
		c.FirstAt = now
	}
	return &c
}

// StepEnded returns the record of a step that this attempt began, as it stands after its end.
func (r *Run) StepEnded(e *StepRecord, o Outcome, now time.Time) *StepRecord {
	c := *e
	c.EndedAt, c.Error, c.Data = now, Clip(o.Error, MaxErrorBytes), nil
	notDone := o.Result == ResultNotDone || o.Result == ResultPermanent
	switch {
	case o.Result == ResultDone:
		c.State, c.Data, c.Error = EffectDone, o.Data, ""
	case c.Plain, notDone && !c.Open && o.Result == ResultNotDone:
		c.State = EffectNotDone
	case notDone && !c.Open:
		c.State = EffectRefused
	default:
		c.State = EffectUnknown
	}
	return &c
}

// Heard returns the record of a step as it stands after its end was told by work of the current attempt, which may be the
// second time. False: there is nothing to be written, since it was told before, is of another try, or is simply done again.
func (r *Run) Heard(s StepEnd, now time.Time) (*StepRecord, bool) {
	e, o := r.StepRecord(s.Step), s.Outcome
	if s.Plain && e == nil { // nothing was written when it began
		e = r.comeTo(StepAsk{Step: s.Step, Plain: true, Call: s.Call}, Policy{}, now).Record // it began before anybody asked for the end
	}
	switch {
	case e == nil, !e.Plain && (e.Fence != r.Fence || s.Try > 0 && e.Tries != s.Try):
		return nil, false
	case e.State == EffectDone, !e.EndedAt.IsZero() && (e.State != EffectUnknown || o.Result != ResultDone):
		return e, false
	}
	next := r.StepEnded(e, o, now)
	return next, !next.Plain || next.State == EffectDone
}

// Learned is what the far side said about an effect, which is kept with what was decided by it.
type Learned struct {
	Asked  []Attempt // a row for each wire key
	Alerts []*Alert  // what people are told of it
}

// StepFound returns the record of an open effect as it stands after the far side was asked about every wire key used,
// newest first, at askedAt, and what was learned.
func (r *Run) StepFound(e *StepRecord, found []Finding, p Policy, askedAt, now time.Time) (*StepRecord, Learned) {
	c, learned := *e, Learned{Asked: addAsked(nil, r.rows(found, askedAt, now))}
	yes, cannotTell := readFindings(found)
	switch {
	case len(yes) > 0:
		learned.Alerts = c.found(yes, r, now)
		c.State, c.Data, c.SettledBy, c.Error = EffectDone, yes[0].Data, "probe", ""
	case cannotTell != "":
		c.State, c.Asked, c.Error = EffectUnknown, CannotTell, Clip(cannotTell, MaxErrorBytes)
	case askedAt.Before(c.EndedAt.Add(p.ofStep(&c).Settles)):
		c.State, c.Asked = EffectUnknown, No
		c.Error = fmt.Sprintf("the far side does not have it yet; a no counts from %s on", c.EndedAt.Add(p.ofStep(&c).Settles).UTC().Format(time.RFC3339))
	case c.Forgotten() && r.State == Running && c.Seen == r.Fence && r.CancelledBy == "" && r.undecided(c.Step) == nil && !r.wentOn(&c, c.Says.Optional): // nothing was tried here: the work goes on with it
		c.renew(EffectNotDone, "probe")
		return c.begun(r, StepAsk{Step: c.Step, Says: c.Says, Call: c.Call}, now), learned
	default:
		c.renew(EffectNotDone, "probe")
		c.Error = "the far side says that it did not happen"
	}
	return &c, learned
}

// readFindings sorts the answers of a far side: those that say yes, and why the others cannot tell, if one does not.
func readFindings(found []Finding) (yes []Finding, cannotTell string) {
	for _, f := range found {
		switch f.Answer {
		case Yes:
			yes = append(yes, f)
		case No:
		default:
			cannotTell = "the probe cannot tell about " + f.WireKey
			if f.Error != "" {
				cannotTell += ": " + f.Error
			}
		}
	}
	if len(found) == 0 {
		cannotTell = "there is no probe to ask"
	}
	return yes, cannotTell
}

// found sets the generation to the wire key that the far side has, which an undo must name, and alerts when it has two.
func (e *StepRecord) found(yes []Finding, r *Run, now time.Time) []*Alert {
	for g := 1; g <= e.Generation+forgottenKeys; g++ {
		if e.Key.WireKey(e.Step, g) == yes[0].WireKey {
			e.Generation = g
		}
	}
	if len(yes) < 2 {
		return nil
	}
	others := make([]string, 0, len(yes)-1)
	for _, f := range yes[1:] {
		others = append(others, f.WireKey)
	}
	e.Twice = strings.Join(others, ", ")
	return []*Alert{NewAlert(AlertDoneTwice, r.Key, r.Job, r.Priority, "the far side has it under "+yes[1].WireKey+" and under "+yes[0].WireKey, "", now)}
}

// Stepped says what work does after an end or a finding of its step was written: go on, or end the attempt.
func (e *StepRecord) Stepped() StepAnswer {
	switch e.State {
	case EffectDone:
		return StepAnswer{Do: StepSkip, Record: e}
	case EffectBegun:
		return StepAnswer{Do: StepBegin, Record: e}
	case EffectNotDone:
		return stop(e, NotDone(Conflict("%s: %s", e.Named(), e.Error)))
	case EffectRefused:
		return stop(e, Permanent(Conflict("%s: %s", e.Named(), e.Error)))
	}
	return stop(e, Unknown(Conflict("whether %s happened is unknown: %s", e.Named(), e.Error)))
}
