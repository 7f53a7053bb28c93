package executor_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// alone lets runs of a job that may be repeated stand in each other's way, by their line or by a serial key.
func alone(serial string) func(*daybook.Job) {
	return func(j *daybook.Job) {
		j.Effects, j.Serial, j.Overlap = daybook.Repeatable, serial, daybook.OverlapWait
		if serial != "" {
			j.Overlap = daybook.OverlapAllow
		}
	}
}

// A process may stand still between its claim and the start of the work, until its lease is over, another has declared the attempt over,
// tried the run again, and gone on with the next one of the line or of the serial key. It must not begin beside that one.
func TestWhatComesTooLateToItsStartIsNotBegun(t *testing.T) {
	for _, serial := range []string{"", "account:7"} {
		t.Run("serial key "+serial, func(t *testing.T) {
			storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
				late := newRoom(t, s, alone(serial), nil, "")
				first := late.trigger("2026-03-01")
				here, goOn := make(chan struct{}), make(chan struct{})
				late.before = func() {
					close(here)
					<-goOn
				}
				late.claims()
				<-here // claimed, and nothing has begun
				other := newRoom(t, s, alone(serial), nil, "")
				other.passes(lease + time.Second)
				other.tick(&executor.Rescue{Executor: other.Executor})
				other.is(first, daybook.Retryable, daybook.ReasonLost)
				for other.run(first).State != daybook.Done {
					other.settles()
				}
				second := other.trigger("2026-03-02")
				other.stays = true
				other.starts(2)
				other.is(second, daybook.Running, "")
				late.passes(lease + time.Second)
				close(goOn)
				late.settles()
				if len(late.orders) > 0 {
					t.Errorf("%s was begun while %s was at work", first, second)
				}
				tries, err := s.Attempts(ctx, first)
				if err != nil || !slices.ContainsFunc(tries, func(a daybook.Attempt) bool {
					return a.Fence == 1 && a.Result == daybook.ResultLost && a.LateResult == daybook.ResultNotDone && a.LateError == "not begun: the lease was lost"
				}) {
					t.Errorf("attempts %+v, %v", tries, err)
				}
				close(other.leave)
				other.settles()
				other.is(second, daybook.Done, "")
			})
		})
	}
}

// When nobody declared it over meanwhile it is tried again at once, and that counts as no failure.
func TestWhatComesTooLateToItsStartIsTriedAgain(t *testing.T) {
	storetest.Each(t, func(_ context.Context, t *testing.T, s *store.Store) {
		for _, effects := range []daybook.Effects{daybook.Once, daybook.Repeatable} {
			r := newRoom(t, s, func(j *daybook.Job) { j.Effects, j.Name = effects, "renew-"+string(effects) }, nil, "")
			k := r.trigger("2026-03-01")
			here, goOn := make(chan struct{}, 1), make(chan struct{})
			r.before = func() {
				here <- struct{}{}
				<-goOn
			}
			r.claims()
			<-here
			r.passes(lease)
			close(goOn)
			r.settles()
			run := r.is(k, daybook.Done, "")
			if len(r.orders) != 1 || r.orders[0].Fence != 2 || run.Failures != 0 || run.Losses != 0 {
				t.Errorf("%s: orders %+v, %d failures, %d losses", effects, r.orders, run.Failures, run.Losses)
			}
		}
	})
}
