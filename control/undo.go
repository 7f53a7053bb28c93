package control

import (
	"context"
	"slices"

	"github.com/daybook-run/daybook"
)

// Taking says how it stands with the taking back of one effect.
type Taking string

// Takings.
const (
	TakingCan    Taking = "can"     // an undo would take it back
	TakingCannot Taking = "cannot"  // nothing says how
	TakingNever  Taking = "never"   // it was not done
	TakingWaits  Taking = "waits"   // the undo has not come to it, or is at it
	TakingBack   Taking = "back"    // it was taken back
	TakingOnce   Taking = "once"    // it was, and the far side has it once more, under Twice
	TakingLeft   Taking = "left"    // it was not, and Why says what is known
	TakingOpen   Taking = "unknown" // whether it was is unknown
)

// Taken is how it stands with the taking back of an effect of a run.
type Taken struct {
	Step    string
	WireKey string // of the effect
	Is      Taking
	Why     daybook.Text
	Twice   string // the other wire keys of an effect that was done twice: no undo takes those back
}

// Text says it in a few words.
func (t Taken) Text() daybook.Text {
	switch t.Is {
	case TakingOnce:
		return daybook.Say("taken back once; it was done twice: take %s back by hand", t.Twice)
	case TakingCan:
		if t.Twice != "" {
			return daybook.Say("will be taken back once; it was done twice: take %s back by hand", t.Twice)
		}
		return daybook.Say("will be taken back")
	case TakingCannot:
		if !t.Why.IsZero() {
			return daybook.Say("cannot be taken back: %s", t.Why)
		}
		return daybook.Say("cannot be taken back: nothing says how")
	case TakingNever:
		return daybook.Say("was never done")
	case TakingBack:
		return daybook.Say("taken back")
	case TakingOpen:
		return daybook.Say("whether it was taken back is unknown")
	case TakingLeft:
		return daybook.Say("not taken back: %s", t.Why)
	}
	return daybook.Say("not taken back yet")
}

// UndoPlan is what an undo of a run would do.
type UndoPlan struct {
	Run     *daybook.Run
	Effects []Taken // newest first
}

// UndoPlan tells what an undo of a run would do, of each of its effects. Errors are those of Undo.
func (c *Control) UndoPlan(ctx context.Context, p Person, key daybook.Key, note string) (UndoPlan, error) {
	r, err := c.runOf(ctx, key)
	if err != nil {
		return UndoPlan{}, err
	}
	now := c.now()
	if _, err := r.Undo(p.Name, note, now); err != nil {
		return UndoPlan{}, c.undoRefused(ctx, r, err)
	}
	plan := UndoPlan{Run: r}
	k, err := c.lookUp(ctx, r.Job, false, now)
	if err != nil && daybook.CodeOf(err) != daybook.CodeNotFound {
		return plan, err
	}
	can := false
	var lacking daybook.Words
	for _, e := range slices.Backward(r.Marked()) {
		t := Taken{Step: e.Step, WireKey: e.WireKey(), Is: TakingCan, Twice: e.Twice}
		switch {
		case e.Plain:
			continue
		case e.State != daybook.EffectDone:
			t.Is = TakingNever
		case k.job != nil && !k.job.CanUndo(e):
			t.Is = TakingCannot
		case e.Lacks() != "":
			t.Is, t.Why = TakingCannot, daybook.Say("its result was not kept")
			lacking = append(lacking, e.Step)
		default:
			can = true
		}
		plan.Effects = append(plan.Effects, t)
	}
	if can {
		return plan, nil
	}
	refused := daybook.Conflict("%s cannot be undone: nothing says how to take back %s", r.Key, steps(plan.Effects, TakingCannot))
	if len(lacking) > 0 {
		refused = daybook.Conflict("%s cannot be undone: the result of %s was not kept", r.Key, lacking)
	}
	if r.State == daybook.Dead {
		return plan, refused.WithHint("take it back by hand, then: daybook dead dismiss %s --reason …; or let the job say how, with undo or undo_url", r.Key)
	}
	return plan, refused.WithHint("take it back by hand; or let the job say how, with undo or undo_url, and ask again")
}

// undoRefused says of an undo that is under way already whether it waits for a person.
func (c *Control) undoRefused(ctx context.Context, r *daybook.Run, err error) error {
	if r.Reason == daybook.ReasonUndoing {
		if u, uerr := c.s.Run(ctx, r.Key.Undo()); uerr == nil && waitsForPerson(u) {
			return daybook.Conflict("%s is being undone, and that waits for a person: %s", r.Key, stored(u.Letter.Error, u)).WithHint("%s", letterDo(*u.Letter, u, c.asks(ctx, u)))
		}
	}
	return withHint(err, r, c.asks(ctx, r))
}

// waitsForPerson reports whether the letter of a run is open.
func waitsForPerson(r *daybook.Run) bool {
	return r != nil && r.State == daybook.Dead && r.Letter != nil && r.Letter.State == daybook.LetterOpen
}

// asks reports whether the far side can be asked about the effect of r that is settled first: not, where nothing says how.
func (c *Control) asks(ctx context.Context, r *daybook.Run) bool {
	p, err := c.policyOf(ctx, r.Job)
	return err == nil && r.CanAsk(p)
}

// Resolving is the command by which a person settles the effect of r that is settled first.
func (c *Control) Resolving(ctx context.Context, r *daybook.Run) daybook.Text {
	return resolveCommand(r.Key, r, c.asks(ctx, r))
}

// letterDo is the one act that helps with an open letter. r is its run, if that is known; asks says whether the far side can be
// asked.
func letterDo(l daybook.Letter, r *daybook.Run, asks bool) daybook.Text {
	switch {
	case l.Kind == daybook.LetterUnknown:
		return resolveDo(l.Key, r, asks)
	case l.ByHand():
		return command("daybook dead dismiss %s --reason …", l.Key)
	}
	return command("daybook dead replay %s", l.Key)
}

// Undoing is the taking back of what a run did, as far as it has come.
type Undoing struct {
	Run     *daybook.Run // that does it
	Effects []Taken      // newest first
	Letters []daybook.Letter
	asks    bool // the far side can be asked about what is open of Run
}

// Undoing tells how far the undo of a run has come; r may be the run, or that of its undo. Nil: it is not undone.
func (c *Control) Undoing(ctx context.Context, r *daybook.Run) (*Undoing, error) {
	if r == nil {
		return nil, nil
	}
	base, u := r, r
	var err error
	switch {
	case r.Key.IsUndo():
		base, err = c.s.Run(ctx, r.Key.Base())
	case r.Reason == daybook.ReasonUndoing, r.Reason == daybook.ReasonUndone, r.Reason == daybook.ReasonCompensated:
		u, err = c.s.Run(ctx, r.Key.Undo())
	default:
		return nil, nil
	}
	if daybook.CodeOf(err) == daybook.CodeNotFound {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	d := &Undoing{Run: u, asks: c.asks(ctx, u)}
	for _, e := range base.Undoable() {
		d.Effects = append(d.Effects, taken(u, e))
	}
	d.Letters, err = c.s.LettersOf(ctx, u.Key)
	return d, err
}

// taken says how it stands with one effect of what u takes back.
func taken(u *daybook.Run, e *daybook.StepRecord) Taken {
	t := Taken{Step: e.Step, WireKey: e.WireKey(), Is: TakingWaits, Twice: e.Twice}
	did := u.StepRecord(e.Step)
	switch {
	case did != nil && did.State == daybook.EffectDone && e.Twice != "":
		t.Is = TakingOnce
	case did != nil && did.State == daybook.EffectDone:
		t.Is = TakingBack
	case u.State.Live():
	case did != nil && (did.State == daybook.EffectUnknown || did.State == daybook.EffectBegun):
		t.Is = TakingOpen
	case did != nil:
		t.Is, t.Why = TakingLeft, daybook.Say("%s", stored(oneLine(did.Error), u))
	case u.Letter != nil && u.Letter.ByHand():
		t.Is, t.Why = TakingLeft, daybook.Say("nothing says how")
	}
	return t
}

// WaitsFor is what a person does about the undo; zero: it needs none.
func (d *Undoing) WaitsFor() daybook.Text {
	if d == nil || !waitsForPerson(d.Run) {
		return daybook.Text{}
	}
	return letterDo(*d.Run.Letter, d.Run, d.asks)
}

// Left says how far it has come, and of what was left, why. Zero: all was taken back.
func (d *Undoing) Left() daybook.Text {
	if d == nil {
		return daybook.Text{}
	}
	left := d.left()
	if len(left) == 0 {
		return daybook.Text{}
	}
	back := len(d.Effects) - len(left)
	if l := d.Run.Letter; l != nil && l.State == daybook.LetterDismissed {
		return daybook.Say("%d of %d effects taken back; %s left: %s", back, len(d.Effects), left, oneLine(l.Note))
	}
	return daybook.Say("%d of %d effects taken back; not yet: %s", back, len(d.Effects), left)
}

func (d *Undoing) left() daybook.Words {
	var names daybook.Words
	for _, t := range d.Effects {
		if t.Is != TakingBack {
			names = append(names, t.Step)
		}
	}
	return names
}

// steps names the effects of which something holds.
func steps(list []Taken, is Taking) daybook.Words {
	var names daybook.Words
	for _, t := range list {
		if t.Is == is {
			names = append(names, t.Step)
		}
	}
	return names
}
