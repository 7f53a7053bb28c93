package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// Change is what a file would change about one job of the ledger.
type Change struct {
	Job  string
	Kind ChangeKind
	// Formerly is the name that the job has in the ledger, when it is renamed.
	Formerly string
	// Old and New are the completed definitions; nil: there is none.
	Old, New *daybook.Job
	// OldFires and NewFires are the next fires by the one and by the other, three at most, with the keys they lead to.
	OldFires, NewFires []NextFire
	// Consequences is what the change does to what the keys of the job promise.
	Consequences []calendar.Consequence
	// Accepted says who accepted them, when and why; nil: nobody did.
	Accepted *daybook.Acceptance
	// Unknown is set when the ledger has never heard of the old name: nothing is carried over.
	Unknown bool
	change  daybook.Acceptance
}

// ChangeKind says what becomes of a job.
type ChangeKind string

// Kinds of change.
const (
	ChangeNone    ChangeKind = "none"
	ChangeNew     ChangeKind = "new"
	ChangeChanged ChangeKind = "changed"
	ChangeRenamed ChangeKind = "renamed"
	ChangeGone    ChangeKind = "gone"
)

// Refused reports whether serve does not take the change before a person accepts it: a job that touches money would do the
// same business under other keys, or leave a window out.
func (c Change) Refused() bool {
	money := c.Old != nil && c.Old.Priority == daybook.P0 || c.New != nil && c.New.Priority == daybook.P0
	return money && len(c.Consequences) > 0 && c.Accepted == nil
}

// comparedFires is how many fires to come are shown of a change.
const comparedFires = 3

// Changes compares the definitions of a file with those of the ledger, in the order of the file; jobs that the file does not
// name any more come behind. Definitions are as written. Nothing is written.
//
// Errors: CodeInvalid, a definition that cannot be completed; CodeUnavailable.
func (c *Control) Changes(ctx context.Context, file []daybook.Job) ([]Change, error) {
	now := c.now()
	states, err := c.s.JobStates(ctx)
	if err != nil {
		return nil, err
	}
	accepted, err := c.s.Acceptances(ctx)
	if err != nil {
		return nil, err
	}
	var list []Change
	named := map[string]bool{}
	for _, j := range file {
		k, _ := c.complete(j)
		if k.fault != nil {
			return nil, k.fault
		}
		named[j.Name], named[j.Formerly] = true, true
		list = append(list, c.change(k, states, now))
	}
	for _, st := range states {
		if st.Home == "" && st.RetiredAt.IsZero() && !named[st.Name] {
			ch := Change{Job: st.Name, Kind: ChangeGone}
			ch.compare(c.read(st), known{}, now)
			list = append(list, ch)
		}
	}
	for i := range list {
		for _, a := range accepted {
			if a.Job == list[i].change.Job && a.Old == list[i].change.Old && a.New == list[i].change.New {
				list[i].Accepted = &a
			}
		}
	}
	return list, nil
}

// change compares one job of a file.
func (c *Control) change(k known, states []daybook.JobState, now time.Time) Change {
	ch := Change{Job: k.job.Name, Kind: ChangeNew}
	st, _, ok := find(states, k.job.Name)
	if !ok || !st.RetiredAt.IsZero() {
		old, _, carried := find(states, k.job.Formerly)
		if ok = carried && old.RetiredAt.IsZero(); ok {
			st, ch.Kind, ch.Formerly = old, ChangeRenamed, old.Name
		}
		ch.Unknown = k.job.Formerly != "" && !carried
	} else {
		ch.Kind = ChangeChanged
	}
	if !ok {
		ch.New, ch.NewFires = k.job, fires(k, now)
		return ch
	}
	if string(st.Definition) == string(k.job.Canonical()) {
		ch.Kind = ChangeNone
	}
	ch.compare(c.read(st), k, now)
	return ch
}

// compare fills in what a change means.
func (ch *Change) compare(old, k known, now time.Time) {
	ch.Old, ch.New = old.job, k.job
	ch.OldFires, ch.NewFires = fires(old, now), fires(k, now)
	ch.change = daybook.Acceptance{Job: old.state.Name, Old: strconv.FormatInt(old.state.Revision, 10) + ":" + meaningOf(old.job), New: meaningOf(k.job)}
	if ch.Kind == ChangeNone || old.schedule == nil {
		return
	}
	before := &calendar.Definition{Job: old.job, Schedule: old.schedule}
	var after *calendar.Definition
	if k.job != nil {
		after = &calendar.Definition{Job: k.job, Schedule: k.schedule}
	}
	ch.Consequences = calendar.Consequences(before, after, now)
}

func fires(k known, now time.Time) []NextFire {
	if k.schedule == nil {
		return nil
	}
	var list []NextFire
	for f := range k.schedule.Between(now, now.Add(farAhead)) {
		if f.Skip != "" {
			continue
		}
		list = append(list, NextFire{Job: k.job.Name, Fire: f, Key: daybook.KeyParts{Job: k.job.Name, Window: f.Window.Label}.Key()})
		if len(list) == comparedFires {
			break
		}
	}
	return list
}

// meaningOf is a fingerprint of what decides the keys of a job, and nothing else: who accepts a change of these need not do it again
// because an owner or a time limit is written otherwise. It is empty of a job that nothing defines.
func meaningOf(j *daybook.Job) string {
	if j == nil {
		return ""
	}
	parts := []string{j.Name, string(j.Priority), j.Schedule, j.Timezone, string(j.Window), j.Calendar, string(j.BusinessDays),
		string(j.ClockGap), string(j.ClockRepeat), j.Formerly}
	if j.Zone != "" {
		parts = append(parts, j.Zone)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		panic("control: " + err.Error()) // texts only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// AcceptKeys records that a person accepts what a file does to the keys of jobs that touch money, each change by itself: of
// the definition that counts now to the one of the file, and of no other. It returns the changes that were accepted. A reason
// is required.
//
// Errors: CodeInvalid, no reason, or a definition that cannot be completed; CodeUnavailable.
func (c *Control) AcceptKeys(ctx context.Context, p Person, file []daybook.Job, note string) ([]Change, error) {
	p, err := p.check()
	if err != nil {
		return nil, err
	}
	if note, err = reason(note, daybook.Say("accepting other keys"), true); err != nil {
		return nil, err
	}
	changes, err := c.Changes(ctx, file)
	if err != nil {
		return nil, err
	}
	now := c.now()
	var list []Change
	for _, ch := range changes {
		if !ch.Refused() {
			continue
		}
		a := ch.change
		a.At, a.Actor, a.Note = now, p.Name, note
		if err := c.s.Accept(ctx, a, daybook.Activity{At: now, Actor: p.Name, Action: "accept keys", Job: ch.Job, Note: note}); err != nil {
			return list, err
		}
		ch.Accepted = &a
		list = append(list, ch)
	}
	return list, nil
}

// RefusedKeys is the error of a file whose changes a person must accept first; nil when there is none.
func RefusedKeys(changes []Change) error {
	var names []string
	for _, ch := range changes {
		if ch.Refused() {
			names = append(names, ch.Job)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return daybook.Conflict("the file is not taken: it would change what keys of P0 jobs promise: %s", daybook.Words(names)).
		WithHint("daybook check shows how; if it is meant so: daybook check --accept-keys --reason …, then start again or send SIGHUP")
}
