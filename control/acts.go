package control

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-run/daybook"
)

// Acted is what became of an act on a run. Line and Next put it in words.
type Acted struct {
	Key daybook.Key
	// Act is dismiss, resolve, cancel or reopen.
	Act string
	// From is where the run stood.
	From daybook.State
	// Run is the record as it stands afterwards.
	Run *daybook.Run
	// Asked: the run is under way, and its executor was asked to end it; of a run with subjects, who looks after them. What has happened
	// by then decides how it ends.
	Asked bool
	// ByLine is the definition that the line of `daybook once` gave that ran the key last; nil where another program does it.
	ByLine *daybook.Job
	// AskedBefore names who had asked for the end already; then nothing changed.
	AskedBefore string
	// NobodyExecutes: the run waits for an executor, and no serve was seen lately.
	NobodyExecutes bool
	At             time.Time
	// Said is what was said of which effect, of a resolve.
	Said Said
}

// Replay lets dead runs run again: the same keys, the steps already done, failures reset. Each key is asked for by the
// door replay and recorded as a trigger, whatever the answer: started, joined, reused or refused, by the table. The
// answers are in the order of the keys, each key once.
//
// Errors: CodeInvalid for what is no key, or a note that is too long, before anything is done; CodeUnavailable, with the
// answers so far. A key that does not exist is an answer: refused, ExitNotFound.
func (c *Control) Replay(ctx context.Context, p Person, keys []daybook.Key, note string) ([]Answer, error) {
	p, err := p.check()
	if err != nil {
		return nil, err
	}
	if note, err = reason(note, daybook.Say("a replay"), false); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, daybook.Invalid("no key is given").WithHint("daybook dead list shows what can be replayed")
	}
	if len(keys) > maxListed {
		return nil, daybook.Invalid("%d keys at once: at most %d are allowed", len(keys), maxListed)
	}
	seen := make(map[daybook.Key]bool, len(keys))
	for _, k := range keys {
		if _, err := checkKey(k); err != nil {
			return nil, err
		}
	}
	jobs := make(jobsSeen)
	var answers []Answer
	for _, k := range keys {
		if seen[k] {
			continue
		}
		seen[k] = true
		a, err := c.replay(ctx, p, k, note, jobs)
		if err != nil {
			return answers, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// jobsSeen are the jobs that one act has come to, so that it reads each of them once.
type jobsSeen map[string]*daybook.JobState

// jobSeen returns a job, nil when the ledger does not know it.
func (c *Control) jobSeen(ctx context.Context, seen jobsSeen, job string) (*daybook.JobState, error) {
	if st, ok := seen[job]; ok {
		return st, nil
	}
	st, ok, err := c.s.JobState(ctx, job)
	if err != nil {
		return nil, err
	}
	if seen[job] = nil; ok {
		seen[job] = &st
	}
	return seen[job], nil
}

func (c *Control) replay(ctx context.Context, p Person, k daybook.Key, note string, seen jobsSeen) (Answer, error) {
	now := c.now()
	t := target{ask: daybook.Ask{Key: k, Source: daybook.SourceReplay, Actor: p.Name, Note: note}}
	st, err := c.jobSeen(ctx, seen, k.Job())
	if err != nil {
		return Answer{}, err
	}
	if st != nil {
		if st.Home == "" {
			t.ask.Freezes = c.o.Freezes().At(now)
		}
		t.known = c.read(*st)
		c.place(&t, k.Parts())
	}
	for try := 1; ; try++ {
		reply, run, err := c.s.Trigger(ctx, t.ask, nil, now)
		if daybook.CodeOf(err) == daybook.CodeStale && try < staleTries {
			continue
		}
		if err != nil {
			return Answer{}, err
		}
		replayed := 0
		if reply.Act == daybook.ActReplaySubjects {
			if replayed, err = c.replaySubjects(ctx, p, run.Key, note, now); err != nil {
				return Answer{}, err
			}
		}
		if reply.Outcome == daybook.Started {
			c.o.Wake()
		}
		t.answeredBy(run)
		a, err := c.answer(ctx, t, reply, run, now)
		a.Replayed = replayed
		return a, err
	}
}

// replaySubjects replays the letters of the subjects of a run, a part at a time: when it is cut off, the rest is asked for
// by the same act again.
func (c *Control) replaySubjects(ctx context.Context, p Person, k daybook.Key, note string, now time.Time) (n int, err error) {
	for after := daybook.Key(""); ; {
		replayed, next, err := c.s.ReplaySubjects(ctx, k, after, p.Name, note, now)
		if n += len(replayed); err != nil || next == "" {
			return n, err
		}
		after = next
	}
}

// place finds the window of a key that may have no row, as far as the schedule of today knows it.
func (c *Control) place(t *target, parts daybook.KeyParts) {
	if t.schedule == nil || t.kind() == daybook.PerEvent {
		return
	}
	w, err := t.schedule.WindowOf(parts.Window)
	if err != nil {
		return
	}
	t.window, t.opens = w, w.Start
	first, last, ok := lastFire(t.schedule, w)
	if !ok {
		return
	}
	t.opens = first.At
	if parts.N == 1 && parts.Subject == "" {
		t.ask.FireAt = last.At
	}
}

// Dismiss closes an open letter without doing anything about it. A reason is required.
//
// Errors: CodeInvalid, no reason or no key; CodeNotFound, no such key; CodeConflict, there is no open letter (another may
// have closed it: the message says who), or whether it happened is unknown and must be resolved first.
func (c *Control) Dismiss(ctx context.Context, p Person, key daybook.Key, note string) (Acted, error) {
	var base *daybook.Run
	if key.IsUndo() {
		var err error
		if base, err = c.runOf(ctx, key.Base()); err != nil {
			return Acted{}, err
		}
	}
	return c.act(ctx, p, key, "dismiss", note, true, func(r *daybook.Run, who, note string, now time.Time) (daybook.Transition, error) {
		if l := r.Letter; r.State == daybook.Dead && l != nil && l.State != daybook.LetterOpen {
			return daybook.Transition{}, letterClosed(r)
		}
		t, err := r.Dismiss(who, note, now)
		if err == nil && base != nil { // taken back by hand, as the reason says
			then := base.Undone(who, now)
			t.Then = &then
		}
		return t, err
	})
}

// Undo takes back what a run did, once and for good: nothing of it runs again from then on. A run of the key's own undo key
// does it, and Acted.Run is that one. A reason is required.
//
// Errors: CodeInvalid, no reason or no key; CodeNotFound; CodeConflict, there is nothing to undo, it is being undone or was, or
// whether an effect happened is unknown and must be settled first.
func (c *Control) Undo(ctx context.Context, p Person, key daybook.Key, note string) (Acted, error) {
	if note != "" { // without a reason act says what is missing
		if _, err := c.UndoPlan(ctx, p, key, note); err != nil {
			return Acted{}, err
		}
	}
	a, err := c.act(ctx, p, key, "undo", note, true, (*daybook.Run).Undo)
	if err != nil {
		return a, err
	}
	a.Key = key.Undo()
	b, err := c.acted(ctx, a, a.At)
	b.Key = key
	return b, err
}

// Cancel ends a run that waits, or asks the executor of one that is under way to end it (Acted.Asked). A reason is
// required.
//
// Errors: CodeInvalid; CodeNotFound; CodeConflict, the run has ended, or whether its effect happened is unknown and being
// settled.
func (c *Control) Cancel(ctx context.Context, p Person, key daybook.Key, note string) (Acted, error) {
	return c.act(ctx, p, key, "cancel", note, true, (*daybook.Run).Cancel)
}

// Reopen takes a cancelled run back to scheduled, and opens a dismissed letter again. A reason is required.
//
// Errors: CodeInvalid; CodeNotFound; CodeConflict, the run is neither.
func (c *Control) Reopen(ctx context.Context, p Person, key daybook.Key, note string) (Acted, error) {
	return c.act(ctx, p, key, "reopen", note, true, (*daybook.Run).Reopen)
}

// rule is a pure rule of the root package about one run.
type rule func(r *daybook.Run, who, note string, now time.Time) (daybook.Transition, error)

// act loads a run, asks a rule, and applies what it says; when another was first, it is all done again. But what a person says is
// about the attempt he knew of: of a later one he may be wrong, and is to look first.
func (c *Control) act(ctx context.Context, p Person, key daybook.Key, name, note string, required bool, decide rule) (Acted, error) {
	p, err := p.check()
	if err != nil {
		return Acted{}, err
	}
	if note, err = reason(note, command("%s %s", name, daybook.Clip(string(key), daybook.MaxKeyBytes)), required); err != nil {
		return Acted{}, err
	}
	now := c.now()
	var first *daybook.Run
	for range staleTries {
		r, err := c.runOf(ctx, key)
		if err != nil {
			return Acted{}, err
		}
		if first == nil {
			first = r
		}
		if r.Fence != first.Fence && name != "cancel" {
			return Acted{}, daybook.Conflict("%s was tried again meanwhile: nothing was done", key).WithHint("daybook key show %s tells what happened; then decide", key)
		}
		a := Acted{Key: r.Key, Act: name, From: r.State, At: now}
		if name == "cancel" && r.State == daybook.Running && !r.Key.IsUndo() {
			err = c.askToEnd(ctx, &a, r, p, note, now)
			if errors.Is(err, daybook.ErrStale) {
				continue
			}
			if err != nil {
				return Acted{}, err
			}
			return c.acted(ctx, a, now)
		}
		t, err := decide(r, p.Name, note, now)
		if err != nil {
			return Acted{}, withHint(err, r, c.asks(ctx, r))
		}
		goesOn := r
		if t.Make != nil {
			goesOn = t.Make
		}
		if doneBy(goesOn) == "" { // what others do is not held by the freezes of this file
			t.Freezes = c.o.Freezes().At(now)
		}
		applied, err := c.s.Apply(ctx, []daybook.Transition{t})
		if err != nil {
			return Acted{}, err
		}
		if !applied[0].Stale {
			c.o.Wake()
			return c.acted(ctx, a, now)
		}
	}
	return Acted{}, changesAllTheTime(key)
}

// askToEnd asks the executor of a running run to end it, once.
func (c *Control) askToEnd(ctx context.Context, a *Acted, r *daybook.Run, p Person, note string, now time.Time) error {
	a.Asked = true
	if r.CancelledBy != "" {
		a.AskedBefore = r.CancelledBy
		return nil
	}
	return c.s.CancelRunning(ctx, r.Key, r.Fence, daybook.Activity{At: now, Actor: p.Name, Action: "cancel", Key: r.Key, Job: r.Job, Note: note,
		Before: string(r.State), After: string(r.State)})
}

func (c *Control) acted(ctx context.Context, a Acted, now time.Time) (Acted, error) {
	var err error
	if a.Run, err = c.s.Run(ctx, a.Key); err != nil {
		return a, err
	}
	if err := c.readAround(ctx, a.Run); err != nil {
		return a, err
	}
	if a.forOnce() {
		if a.ByLine, err = c.lineOf(ctx, a.Run); err != nil {
			return a, err
		}
	}
	if a.Run.State.Live() && doneBy(a.Run) != daybook.HomeOnce {
		nodes, err := c.s.Nodes(ctx)
		if err != nil {
			return a, err
		}
		a.NobodyExecutes = len(aliveNodes(nodes, doneBy(a.Run), now)) == 0
	}
	return a, nil
}
