package pruner_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/pruner"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const month = 30 * 24 * time.Hour

func TestLogsAreEmptiedInBatchesAndKeysStay(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		now := storetest.Birth
		j := storetest.Job("mail", func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow })
		var keys []daybook.Key
		for i := range 5 {
			keys = append(keys, storetest.Add(ctx, t, s, j, storetest.Birth.AddDate(0, 0, i).Format(time.DateOnly), now).Key)
		}
		for i, r := range storetest.Claim(ctx, t, s, 5, now) {
			o := daybook.Outcome{Result: daybook.ResultDone, Output: daybook.Output{Text: "hello"}}
			if i == 0 {
				o = daybook.Outcome{Result: daybook.ResultPermanent, Error: "535", Output: daybook.Output{Text: "hello"}}
			}
			if err := s.Begin(ctx, r, nil, now); err != nil {
				t.Fatal(err)
			}
			storetest.Apply(ctx, t, s, r.Next(o, j.Policy(), now))
		}
		p := pruner.New(s, pruner.Options{Retention: daybook.Retention{Log: month}, Batch: 2})
		tick := func(at time.Time, want bool) {
			t.Helper()
			more, err := p.Tick(ctx, at)
			if err != nil || more != want {
				t.Fatalf("tick: more %v, %v", more, err)
			}
		}
		tick(now.Add(month), false) // none is older
		now = now.Add(month + time.Second)
		tick(now, false) // once an hour
		now = now.Add(time.Hour)
		if w := p.Wait(now); w != 0 {
			t.Errorf("waits for %s", w)
		}
		tick(now, true)
		tick(now, true)
		tick(now, false)
		if w := p.Wait(now); w != time.Hour {
			t.Errorf("waits for %s", w)
		}
		pruned := 0
		for _, k := range keys {
			r := storetest.Find(ctx, t, s, k)
			attempts, err := s.Attempts(ctx, k)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case r.State == daybook.Dead && (len(attempts) != 1 || !r.PrunedAt.IsZero()):
				t.Errorf("%s has an open letter and was emptied", k)
			case r.State == daybook.Done && len(attempts) == 0:
				pruned++
			}
			reply, _, err := s.Trigger(ctx, daybook.Ask{Key: k, Source: daybook.SourceManual, Actor: "ops"}, nil, now)
			if err != nil || reply.Act != daybook.ActNone {
				t.Errorf("%s asked again: %+v %v", k, reply, err)
			}
		}
		if pruned != 4 {
			t.Errorf("%d runs were emptied", pruned)
		}
	})
}

// shelf is a store that tells what was asked of it.
type shelf struct {
	batches []int
	err     error
	limits  []int
}

func (s *shelf) PruneSends(context.Context, time.Time, int) (int, error) { return 0, nil }

func (s *shelf) Prune(_ context.Context, _ daybook.Retention, _ time.Time, limit int, dry bool) (int, error) {
	s.limits = append(s.limits, limit)
	if s.err != nil || dry {
		return 0, s.err
	}
	n := s.batches[0]
	s.batches = s.batches[1:]
	return n, nil
}

func TestRounds(t *testing.T) {
	now := storetest.Birth
	ctx := t.Context()
	s := &shelf{batches: []int{1000, 1000, 3, 0}}
	p := pruner.New(s, pruner.Options{Retention: daybook.Retention{LogRuns: 10}, Batch: 5000})
	for i, want := range []bool{true, true, false, false} {
		if more, err := p.Tick(ctx, now); err != nil || more != want {
			t.Errorf("tick %d: %v %v", i, more, err)
		}
	}
	if len(s.limits) != 3 || s.limits[0] != 1000 {
		t.Errorf("asked for %v", s.limits)
	}
	// A clock that was put back does not stop it for good.
	if more, err := p.Tick(ctx, now.Add(-24*time.Hour)); err != nil || more || len(s.limits) != 4 {
		t.Errorf("clock put back: %v %v, asked for %v", more, err, s.limits)
	}
	s.err = errors.New("disk full")
	if more, err := p.Tick(ctx, now.Add(time.Hour)); more || !errors.Is(err, s.err) {
		t.Errorf("an error: %v %v", more, err)
	}
	s.err, s.batches = nil, []int{0}
	if more, err := p.Tick(ctx, now.Add(time.Hour)); err != nil || more || len(s.limits) != 6 {
		t.Errorf("after it: %v %v, asked for %v", more, err, s.limits)
	}
	keep := pruner.New(s, pruner.Options{})
	if more, err := keep.Tick(ctx, now.Add(99*time.Hour)); err != nil || more || len(s.limits) != 6 {
		t.Errorf("no retention keeps everything: %v %v", more, err)
	}
	if w := keep.Wait(now); w != time.Hour {
		t.Errorf("waits for %s", w)
	}
}
