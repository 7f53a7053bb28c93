package control

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/daybook-run/daybook"
)

// Answer is what a person is told about a key that was asked for. Outcome, Exit, HTTP and Because are those of the table
// of triggers against states; the other fields are what a sentence about it needs. Text and Do put it in words, Line and Next in English ones.
type Answer struct {
	daybook.Reply
	Key    daybook.Key
	Window daybook.Window
	// Run is the record of the key as it stands afterwards; nil when there is none.
	Run *daybook.Run
	// Cover is the run that covers a coalesced one: the answer is about it.
	Cover *daybook.Run
	// Span is the row of skipped windows in which a key without a record lies.
	Span *daybook.Span
	// Subjects says how the subjects of the run stand that the answer is about; nil: it has none.
	Subjects *daybook.SubjectCounts
	// Listing says how the subjects of the window stand in which a key with a subject is not, nil: nothing was listed; Near
	// is the key of the nearest one, if there is one.
	Listing *daybook.SubjectCounts
	Near    daybook.Key
	// Undoing is the taking back of what the run did; nil: it is not undone.
	Undoing *Undoing
	// Replayed are the subjects whose letters were replayed with it.
	Replayed int
	// Job is the job as the ledger has it: paused by whom and why.
	Job daybook.JobState
	// ByLine is the definition that the line of `daybook once` gave that ran the key last; nil where another program does it.
	ByLine *daybook.Job
	// Opens is the first fire of the window, or without one its start.
	Opens time.Time
	// Difference says where the payload given differs from the one the run was made with.
	Difference daybook.Texts
	// Host is the machine on which the run that the answer is about is under way; empty: it is not.
	Host string
	// NobodyExecutes: the run waits for an executor, and no serve was seen lately.
	NobodyExecutes bool
	asks           bool // the far side can be asked about what is open of the run that the answer is about
	// At is the instant of the answer.
	At time.Time
	// Ask is what was asked for.
	Ask daybook.Ask
}

// About returns the run that the answer is about: the covering one of a coalesced run. It is nil when there is none.
func (a Answer) About() *daybook.Run {
	if a.Cover != nil {
		return a.Cover
	}
	return a.Run
}

// Err returns nil unless the trigger was refused; then an error with CodeNotFound, CodeInvalid (another payload) or
// CodeConflict, whose message is Text and whose hint is Do.
func (a Answer) Err() error {
	if a.Outcome != daybook.Refused {
		return nil
	}
	code := daybook.CodeConflict
	switch {
	case a.Exit == daybook.ExitNotFound:
		code = daybook.CodeNotFound
	case a.Because == daybook.BecausePayload:
		code = daybook.CodeInvalid
	}
	return daybook.New(code, "%s", a.Text()).WithHint("%s", a.Do())
}

// answer joins what a person needs to a reply.
func (c *Control) answer(ctx context.Context, t target, reply daybook.Reply, run *daybook.Run, now time.Time) (Answer, error) {
	a := Answer{Reply: reply, Key: t.ask.Key, Window: t.window, Run: run, Job: t.state, Opens: t.opens, At: now, Ask: t.ask}
	if run != nil {
		a.Window = run.Window
	}
	var err error
	if a.Cover, err = c.cover(ctx, run); err != nil {
		return a, err
	}
	if a.Subjects, err = c.subjectsOf(ctx, a.About()); err != nil {
		return a, err
	}
	if a.Undoing, err = c.Undoing(ctx, a.About()); err != nil {
		return a, err
	}
	if r := a.About(); reply.Because == daybook.BecauseUnknown && r != nil {
		a.asks = c.asks(ctx, r)
	}
	if reply.Because == daybook.BecausePayload && run != nil {
		a.Difference = difference(run.Input, t.ask.Payload, run.PayloadHash)
	}
	if run == nil && reply.Because != daybook.BecauseNoKey {
		if a.Span, err = c.spanAt(ctx, t.names(), t.ask.FireAt); err != nil {
			return a, err
		}
	}
	if run == nil && (reply.Because == daybook.BecauseNoKey || reply.Because == daybook.BecauseNotListed) {
		if a.Listing, a.Near, err = c.listing(ctx, a.Key); err != nil {
			return a, err
		}
	}
	if r := a.About(); r != nil && r.State.Live() {
		nodes, err := c.s.Nodes(ctx)
		if err != nil {
			return a, err
		}
		a.NobodyExecutes = doneBy(r) != daybook.HomeOnce && !a.doesItself() && len(aliveNodes(nodes, doneBy(r), now)) == 0
		if r.State == daybook.Running {
			a.Host = hostsOf(nodes).of(r.Node)
		}
		if a.forOnce() {
			if a.ByLine, err = c.lineOf(ctx, a.run()); err != nil {
				return a, err
			}
		}
	}
	return a, nil
}

// subjectsOf counts the subjects of a run; nil: it has none.
func (c *Control) subjectsOf(ctx context.Context, r *daybook.Run) (*daybook.SubjectCounts, error) {
	if r == nil || !r.Fans {
		return nil, nil
	}
	n, err := c.s.Subjects(ctx, r.Key)
	r.Subjects = &n
	return &n, err
}

// countedRuns bounds of how many runs of a list the subjects are counted: there may be a million of each.
const countedRuns = 30

// readAround reads what stands in other rows of how runs stand: it counts the subjects of those that have them, of the first ones of a
// list, and looks whether the undo of those that are being undone waits for a person.
func (c *Control) readAround(ctx context.Context, runs ...*daybook.Run) error {
	counted := 0
	for _, r := range runs {
		switch {
		case r == nil:
		case r.Fans && counted < countedRuns:
			counted++
			if _, err := c.subjectsOf(ctx, r); err != nil {
				return err
			}
		case r.Reason == daybook.ReasonUndoing:
			u, err := c.s.Run(ctx, r.Key.Undo())
			if err != nil && daybook.CodeOf(err) != daybook.CodeNotFound {
				return err
			}
			r.UndoWaits = waitsForPerson(u)
		}
	}
	return nil
}

// lineOf returns the definition by which a run that waits for `daybook once` was tried last, and without a try made: the
// command of another day's line may say another day. It is nil where none is found.
func (c *Control) lineOf(ctx context.Context, r *daybook.Run) (*daybook.Job, error) {
	tries, err := c.s.Attempts(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	revision := r.Revision
	for _, a := range tries {
		revision = max(revision, a.Revision)
	}
	list, err := c.s.Definitions(ctx, r.Job, time.Time{})
	if err != nil {
		return nil, err
	}
	for _, st := range list {
		if st.Name == r.Job && st.Revision == revision {
			if j, err := daybook.JobFromCanonical(st.Definition); err == nil {
				return &j, nil
			}
		}
	}
	return nil, nil
}

// cover returns the run that covers a coalesced one, nil for any other.
func (c *Control) cover(ctx context.Context, run *daybook.Run) (*daybook.Run, error) {
	var cover *daybook.Run
	for depth := 0; run != nil && run.State == daybook.Coalesced && depth < coverDepth; depth++ {
		r, err := c.s.Run(ctx, run.CoveredBy)
		if daybook.CodeOf(err) == daybook.CodeNotFound {
			return cover, nil
		}
		if err != nil {
			return cover, err
		}
		cover, run = r, r
	}
	return cover, nil
}

// maxDifferences bounds how many differences of two payloads are named.
const maxDifferences = 5

// difference names where two payloads differ: by the names at the top, where both are objects.
func difference(had, given json.RawMessage, hash string) daybook.Texts {
	switch {
	case len(had) == 0 && hash == "":
		return daybook.Texts{noPayload()}
	case len(had) == 0:
		return daybook.Texts{payloadPruned()}
	}
	before, ok1 := object(had)
	after, ok2 := object(given)
	if !ok1 || !ok2 {
		return daybook.Texts{payloadDiffers(compact(had), compact(given))}
	}
	var list daybook.Texts
	add := func(name, was, is string) {
		if was != is {
			list = append(list, differs(daybook.Clip(name, 60), was, is))
		}
	}
	for _, name := range sortedKeys(before) {
		is := ""
		if v, ok := after[name]; ok {
			is = compact(v)
		}
		add(name, compact(before[name]), is)
	}
	for _, name := range sortedKeys(after) {
		if _, ok := before[name]; !ok {
			add(name, "", compact(after[name]))
		}
	}
	if extra := len(list) - maxDifferences; extra > 0 {
		list = append(list[:maxDifferences], moreDifferences(extra))
	}
	return list
}

func object(p json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	return m, json.Unmarshal(p, &m) == nil && m != nil
}

// compact writes JSON without white space and with its names in order, so that equal values are equal texts.
func compact(p json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(p))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(p)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(p)
	}
	return string(b)
}
