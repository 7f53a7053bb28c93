package daybooktest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

// TestWorkThatGoesOn: a function that drops the error of a step is not done by returning nil.
func TestWorkThatGoesOn(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		declined := daybook.EffectOf[string]{Do: func(context.Context, string) (string, error) {
			return "", daybook.Permanent(errors.New("card declined"))
		}}
		fine := daybook.EffectOf[string]{Do: func(context.Context, string) (string, error) { return "ch_1", nil }}
		optional := declined
		optional.Optional = true
		var do func(ctx context.Context, r *daybook.Run) error
		e := daybooktest.New(t, db)
		e.Handle(stepped(), func(ctx context.Context, r *daybook.Run) error { return do(ctx, r) })
		day := 2
		e.At(time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC))
		for name, c := range map[string]struct {
			do    func(ctx context.Context, r *daybook.Run) error
			state daybook.State
			says  string
		}{
			"declined": {func(ctx context.Context, r *daybook.Run) error {
				_, _ = daybook.Effect(ctx, r, "charge", declined)
				_, err := daybook.Effect(ctx, r, "mail", fine)
				return err
			}, daybook.Dead, "effect charge: card declined"},
			"optional": {func(ctx context.Context, r *daybook.Run) error {
				if _, err := daybook.Effect(ctx, r, "charge", optional); err == nil {
					t.Error("not declined")
				}
				_, err := daybook.Effect(ctx, r, "invoice", fine)
				return err
			}, daybook.Done, ""},
			"again": {func(ctx context.Context, r *daybook.Run) error {
				for range 2 {
					_, _ = daybook.Effect(ctx, r, "charge", fine)
				}
				return nil
			}, daybook.Dead, "effect charge was done in this very attempt"},
			"step": {func(ctx context.Context, r *daybook.Run) error {
				for range 2 {
					if _, err := daybook.Step(ctx, r, "list", func(context.Context) (int, error) { return 1, nil }); err != nil {
						return err
					}
				}
				return nil
			}, daybook.Dead, "step list was done in this very attempt"},
			"tx": {func(ctx context.Context, r *daybook.Run) error {
				for range 2 {
					tx, err := db.Write.BeginTx(ctx, nil)
					if err != nil {
						return err
					}
					if _, err := daybook.StepTx(ctx, tx, r, "extend"); err != nil {
						return errors.Join(err, tx.Rollback())
					}
					if err := tx.Commit(); err != nil {
						return err
					}
				}
				return nil
			}, daybook.Dead, "step extend was done in this very attempt"},
		} {
			t.Run(name, func(t *testing.T) {
				day++
				do = c.do
				at := time.Date(2026, 3, day, 3, 30, 0, 0, time.UTC)
				e.At(at)
				e.Run()
				r, err := e.Store().Run(t.Context(), daybook.Key("renew:"+at.Format(time.DateOnly)))
				if err != nil {
					t.Fatal(err)
				}
				if r.State != c.state || c.state == daybook.Dead && (r.Letter.Kind != daybook.LetterFailed || !strings.HasPrefix(r.Letter.Error, c.says)) {
					t.Errorf("%s, letter %+v", r.State, r.Letter)
				}
			})
		}
	})
}
