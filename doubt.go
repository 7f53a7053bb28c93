package daybook

import (
	"maps"
	"slices"
	"time"
)

// A ledger that forgot: a restored backup, a standby that lagged and was promoted, a file that was copied back. What it does
// not know of may have happened. A witness outside the ledger finds it; a Lapse in the ledger says since when; and until a
// probe, the memory of the far side or a person says otherwise, what may happen once only is unknown before it begins.

// AlertLedgerRestored tells that the ledger forgot: what may happen once only is frozen.
const AlertLedgerRestored AlertKind = "ledger_restored"

// Lapse is one time that the ledger was found to have forgotten what it once knew. It is kept for good.
type Lapse struct {
	Number  int64     // from 1, in the order in which they were found; of the ledger that forgot and of the one put in its place
	Since   time.Time // the last instant of which the ledger surely knows everything
	FoundAt time.Time // what was forgotten had happened by then
	EndedAt time.Time // the end of the freeze; zero: it stands
	Node    string    // that found it
	Detail  string    // for people
}

// Open reports whether the freeze of l stands.
func (l *Lapse) Open() bool { return l != nil && l.EndedAt.IsZero() }

// MarksEffects reports whether the work of r has effects that happen once only: as a whole, or as steps that it marks.
func (r *Run) MarksEffects() bool { return r.OneEffect() || r.Steps }

// Doubts reports whether an effect of r that the ledger does not know of may have happened all the same: r was there, or was
// asked for, before the freeze of the lapse ended, whichever door asked; or it is made later, and its window had opened by then,
// so that it may have been asked for in what is forgotten. Of an undo nobody knows when it was asked for, so it is doubted when
// what it takes back is that old.
func (l *Lapse) Doubts(r *Run) bool {
	if !r.MarksEffects() {
		return false
	}
	if l.Open() || !r.CreatedAt.After(l.EndedAt) {
		return true
	}
	if r.Key.IsUndo() {
		return !r.Window.Start.After(l.EndedAt)
	}
	opens := r.NotBefore
	if r.Fire == "" && !r.Window.Start.IsZero() { // no fire says when it opened, and it could be asked for from its start on
		opens = earlier(opens, r.Window.Start)
	}
	return !opens.After(l.EndedAt)
}

// Recall sets which of the lapses of the ledger, the newest first, doubt r. It is for the store, which calls it whenever it
// reads a run.
func (r *Run) Recall(lapses []*Lapse) {
	r.Doubts = nil
	for _, l := range lapses {
		if l.Doubts(r) {
			r.Doubts = append(r.Doubts, l)
		}
	}
}

// doubt returns what is doubted of e: by the newest lapse, since the first that it did not go through the gate of. Nil: nothing.
func (r *Run) doubt(e *StepRecord) *Lapse {
	if len(r.Doubts) == 0 || r.Doubts[0].Number <= e.Doubt {
		return nil
	}
	d := *r.Doubts[0]
	for _, l := range r.Doubts {
		if l.Number > e.Doubt {
			d.Since = earlier(d.Since, l.Since)
		}
	}
	return &d
}

// fencesApart is by how much fences rise with each lapse: those that were given and forgotten are never given again.
const fencesApart = 1_000_000

// FenceFloor is the fence below which no claim lies after so many lapses: work that guards its own writes by its fence may
// have seen those below.
func FenceFloor(lapse int64) int64 { return lapse * fencesApart }

// forgottenKeys is how many wire keys, after those that the ledger knows, an effect may have been tried under: each takes a definite
// no, minutes after the try before it, or a person's replay.
const forgottenKeys = 2

// gate returns e as it stands before it is begun by a run in doubt: unknown, though no try of it is known. It goes through the
// gate once a lapse; what is settled there is settled.
func (r *Run) gate(e *StepRecord) *StepRecord {
	d := r.doubt(e)
	if d == nil || e.Plain || e.State == EffectDone || e.State == EffectBegun && e.Fence == r.Fence {
		return e
	}
	c := *e
	c.State, c.Doubt, c.Fence, c.Asked, c.SettledBy = EffectUnknown, d.Number, 0, "", ""
	if c.FirstAt.IsZero() { // what is forgotten was not begun before
		c.FirstAt = d.Since
	}
	c.EndedAt = later(c.EndedAt, d.FoundAt)
	c.Error = doubtText(d)
	return &c
}

// Forgotten reports whether e is unknown because the ledger forgot, and no try since has made it so.
func (e *StepRecord) Forgotten() bool { return e.Doubt > 0 && e.Fence == 0 && e.State == EffectUnknown }

// decided notes that a person decided about e, who knows that the ledger forgot: it does not go through the gate again.
func (e *StepRecord) decided(r *Run) {
	if d := r.doubt(e); d != nil {
		e.Doubt = d.Number
	}
}

// lists reports whether r only names its subjects, which touches nothing.
func (r *Run) lists(p Policy) bool {
	return p.Lists && r.Subject == "" && !r.Key.IsUndo() && r.Effect == nil && len(r.Records) == 0
}

// forgotten returns r as one effect that the ledger may have forgotten, unknown before it begins; nil when it has not, or when
// r is no such effect.
func (r *Run) forgotten() *StepRecord {
	if !r.OneEffect() || r.Fans {
		return nil
	}
	if e := r.gate(r.effect()); e.Forgotten() {
		return e
	}
	return nil
}

// effect returns the whole attempt of r as one effect: as it is recorded, or new.
func (r *Run) effect() *StepRecord {
	if r.Effect != nil {
		c := *r.Effect
		return &c
	}
	return &StepRecord{Key: r.Key, Step: StepRun, Generation: 1, State: EffectNotDone}
}

// Question decides what is done, while the freeze of a lapse stands, about a run that waits and was in the ledger before it: the
// far side is asked, which starts nothing; what only the work itself can ask, or the far side remembers, waits for the end
// of the freeze; what nobody but a person can tell is a dead letter. False: nothing is to be done about it.
func (r *Run) Question(p Policy, now time.Time) (Transition, bool) {
	if len(r.Doubts) == 0 || r.State != Scheduled && r.State != Retryable || r.Asking != "" {
		return Transition{}, false
	}
	t := r.move(OnDoubt, now)
	t.To, t.Reason, t.Due = r.State, r.Reason, r.Due
	c := *r
	if r.lists(p) { // its subjects are in doubt themselves
		return t, true
	}
	person, ask := "", false
	settle := func(e *StepRecord) *StepRecord {
		e = r.gate(e)
		q := p.ofStep(e)
		switch {
		case e.Says.Asks: // the work asks, in its next attempt
		case p.asks(r):
			ask = true
		case !q.remembersAt(e, now):
			person = e.Error
		}
		return e
	}
	switch {
	case r.OneEffect():
		was := r.effect()
		if t.Effect = settle(was); t.Effect == was {
			return Transition{}, false
		}
	default:
		c.Records = slices.Clone(r.Records)
		for i, e := range c.Records {
			if !e.open() || r.gate(e) == e {
				continue
			}
			c.Records[i] = settle(e)
			t.Steps = append(t.Steps, c.Records[i])
		}
		if len(t.Steps) == 0 {
			return Transition{}, false
		}
	}
	switch {
	case person != "":
		return c.dead(t, LetterUnknown, person, now), true
	case ask:
		return c.ask(t, now), true
	}
	return t, true
}

func doubtText(l *Lapse) string {
	return "the ledger was put back to " + l.Since.UTC().Format(time.RFC3339) + " and forgot what happened after it: whether this happened is unknown"
}

// Mark is how far the writes of a node to a ledger had come: a number that rises whenever the node says that it lives, and
// with every effect that is marked begun in its name.
type Mark struct {
	Node   string
	Number int64
	At     time.Time // of the last sign of life that the ledger has of the node
}

// Seen is how far a ledger had come: as a witness outside it saw it last, or as it stands.
type Seen struct {
	Ledger   string // id
	Lapse    int64  // number of the newest lapse; 0: none
	Sequence int64
	Marks    map[string]Mark // by node
	Mixed    bool            // its file was written over while it was worked on: nothing in it can be trusted until it is restored

	// Of a ledger only.
	Written time.Time // its last sign of life of any node
	Copied  time.Time // this is a backup that was made then; zero: it is none
}

// MarksKept is how long a witness believes in the mark of a node: less than the ledger keeps nodes that were not seen.
const MarksKept = 29 * 24 * time.Hour

// Add notes another sight of the same ledger: what came further counts. What was seen before a lapse does not.
func (s *Seen) Add(o Seen) {
	switch {
	case s.Ledger == "" || o.Ledger == s.Ledger && o.Lapse > s.Lapse:
		*s = o
		s.Marks = maps.Clone(o.Marks)
		return
	case o.Ledger != s.Ledger || o.Lapse < s.Lapse:
		return
	}
	s.Sequence, s.Mixed = max(s.Sequence, o.Sequence), s.Mixed || o.Mixed
	if s.Marks == nil {
		s.Marks = make(map[string]Mark, len(o.Marks))
	}
	for n, m := range o.Marks {
		if m.Number > s.Marks[n].Number {
			s.Marks[n] = m
		}
	}
}

// Forgot compares a ledger with what a witness saw of it. When it knows less than it did, or is a backup, it returns the
// lapse that this is.
func (l Seen) Forgot(w Seen, now time.Time) (Lapse, bool) {
	if w.Ledger != l.Ledger { // nothing is known about it
		w = Seen{Ledger: l.Ledger}
	}
	lapse := Lapse{Number: max(l.Lapse, w.Lapse) + 1, Since: l.Written, FoundAt: now}
	switch {
	case !l.Copied.IsZero():
		lapse.Detail = "this is the backup of " + l.Copied.UTC().Format(time.RFC3339)
		lapse.Since = earlier(lapse.Since, l.Copied)
	case l.Lapse > w.Lapse: // found by somebody else since
		return Lapse{}, false
	case l.Lapse < w.Lapse || l.Sequence < w.Sequence:
		lapse.Detail = "the ledger knows less than it did: an older copy was put in its place"
	default:
		var missing []string
		for n, m := range w.Marks {
			if now.Sub(m.At) < MarksKept && l.Marks[n].Number < m.Number {
				missing = append(missing, n)
			}
		}
		if len(missing) == 0 {
			return Lapse{}, false
		}
		lapse.Detail = "the ledger does not know of writes that it had acknowledged: an older copy, or a standby that lagged, took its place"
	}
	// Others may have written since: what the ledger has of those who know better is older.
	for n, m := range w.Marks {
		if has, ok := l.Marks[n]; ok && has.Number < m.Number {
			lapse.Since = earlier(lapse.Since, has.At)
		}
	}
	if lapse.Since.After(now.Add(time.Minute)) { // by a clock that was wrong: nothing says when
		lapse.Since = time.Unix(0, 0).UTC()
	}
	lapse.Since = earlier(lapse.Since, now)
	return lapse, true
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
