package control

import (
	"context"

	"github.com/daybook-run/daybook"
)

// Settle takes what the far side said to a question that a holder was given: a finding for every wire key it was to ask
// about. One that is missing counts as cannot tell.
//
// Errors: CodeInvalid, an answer that is none, or about another wire key; CodeStale, the question is not held any more;
// CodeNotFound; CodeUnavailable.
func (c *Control) Settle(ctx context.Context, id daybook.AttemptID, found []daybook.Finding) (Reported, error) {
	secrets, err := c.secretsOf(id.Key.Job())
	if err != nil {
		return Reported{}, err
	}
	now := c.now()
	for range staleTries {
		r, err := c.runOf(ctx, id.Key)
		if err != nil {
			return Reported{}, err
		}
		if r.Asking == "" || r.Asking != id.Claim || r.Fence != id.Fence || r.Effect == nil {
			return Reported{}, notHeld(id)
		}
		all, err := findings(r.Effect.WireKeys(), found, secrets)
		if err != nil {
			return Reported{}, err
		}
		p, err := c.policyOf(ctx, r.Job)
		if err != nil {
			return Reported{}, err
		}
		// It was asked after the question was claimed; when exactly, only the holder's clock knows.
		asked := r.ClaimedAt
		applied, err := c.s.Apply(ctx, []daybook.Transition{r.Settle(all, p, asked, now)})
		if err != nil {
			return Reported{}, err
		}
		if applied[0].Stale {
			continue
		}
		c.o.Wake()
		after, err := c.s.Run(ctx, id.Key)
		return Reported{Run: after}, err
	}
	return Reported{}, changesAllTheTime(id.Key)
}

// findings puts what was found in the order of the wire keys, without secrets.
func findings(keys []string, found []daybook.Finding, secrets []string) ([]daybook.Finding, error) {
	all := make([]daybook.Finding, len(keys))
	for i, k := range keys {
		all[i] = daybook.Finding{Answer: daybook.CannotTell, WireKey: k, Error: "nothing was answered about it"}
	}
	for _, f := range found {
		switch f.Answer {
		case daybook.Yes, daybook.No, daybook.CannotTell:
		default:
			return nil, daybook.Invalid("answer %q is not one of yes, no, cannot_tell", daybook.Clip(string(f.Answer), 40))
		}
		known := false
		for i, k := range keys {
			if k == f.WireKey {
				known = true
				f.Error, f.Data = daybook.Mask(daybook.Clip(f.Error, daybook.MaxErrorBytes), secrets), daybook.MaskJSON(f.Data, secrets)
				all[i] = f
			}
		}
		if !known {
			return nil, daybook.Invalid("nothing was asked about the wire key %q", daybook.Clip(f.WireKey, daybook.MaxWireKeyBytes))
		}
	}
	return all, nil
}
