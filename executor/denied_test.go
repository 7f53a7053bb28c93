package executor_test

import (
	"context"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// denying is a ledger that is told, right before the end of an attempt is written, that it was not let begin a step.
type denying struct {
	*store.Store
	why string
}

func (d *denying) Apply(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	if why := d.why; why != "" && len(ts) > 0 {
		d.why = ""
		r, err := d.Run(ctx, ts[0].Key)
		if err == nil {
			err = d.Deny(ctx, r, why)
		}
		if err != nil {
			return nil, err
		}
	}
	return d.Store.Apply(ctx, ts)
}

// What a step outside this process was denied counts, also when the end of its attempt was decided before that was known.
func TestADenialThatIsHeardLast(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		const why = "effect charge is new, and this attempt did not come to effect pay, which is done"
		r := newRoom(t, s, func(j *daybook.Job) { j.Steps = true }, &denying{Store: s, why: why}, "")
		k := r.trigger("2026-03-01")
		r.settles()
		if got := r.run(k); got.State != daybook.Dead || got.Letter == nil || got.Letter.Error != why {
			t.Errorf("%s, letter %+v", got.State, got.Letter)
		}
	})
}
