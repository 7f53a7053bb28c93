package daybook

import "time"

// Emptied returns why r cannot go on: what it would go on with was emptied with its log. Nil: nothing is missing. The store keeps
// it of a run that may go on by what a person decides, so that this speaks of what was done once, and is to be done again.
// Errors have CodeConflict.
func (r *Run) Emptied() error {
	if err := r.payloadEmptied(); err != nil || r.PrunedAt.IsZero() || r.State != Done {
		return err
	}
	missing := r.Listed > 0 && len(r.Input) == 0
	for _, e := range r.Records { // handed back in its stead, it would be taken for a result
		missing = missing || e.State == EffectDone && len(e.Data) == 0
	}
	if missing {
		return r.emptied()
	}
	return nil
}

// payloadEmptied returns why r can neither go on nor be undone: the payload is gone that it was given.
func (r *Run) payloadEmptied() error {
	if r.PrunedAt.IsZero() || r.PayloadHash == "" || len(r.Input) > 0 {
		return nil
	}
	return r.emptied()
}

func (r *Run) emptied() error {
	return Conflict("%s cannot go on: its payload and results were emptied on %s, with its log", r.Key, r.PrunedAt.UTC().Format(time.DateOnly)).
		WithHint("a further effect, on purpose, has a key of its own: daybook job trigger %s --window %s~2 --reason …, with the payload", r.Job, r.Window.Label)
}
