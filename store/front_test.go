package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// TestClaimsGoOnFromTheFront: what comes late and is older is claimed at once where there are free slots for all, and else a second
// later at most; nothing is passed over.
func TestClaimsGoOnFromTheFront(t *testing.T) {
	storetest.Each(t, func(ctx context.Context, t *testing.T, s *store.Store) {
		fill(t, s, "mail", 10)
		j := free("mail")
		claim := func(n int, now time.Time) (keys []daybook.Key) {
			runs, err := s.Claim(ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: n, Lease: now.Add(time.Minute), NewID: storetest.NewID}, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				keys = append(keys, r.Key)
			}
			return keys
		}
		day := func(i int) daybook.Key {
			return daybook.KeyParts{Job: "mail", Window: storetest.Birth.AddDate(0, 0, i).Format(time.DateOnly)}.Key()
		}
		older := func(subject string) daybook.Key {
			r := daybook.NewRun(j, 1, storetest.Day("2020-01-01"), 1, subject, storetest.Birth)
			r.Due = storetest.Birth.AddDate(-1, 0, 0)
			if _, _, err := s.Trigger(ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceEvent, Effects: j.Effects}, r, storetest.Birth); err != nil {
				t.Fatal(err)
			}
			return r.Key
		}
		want := func(what string, got []daybook.Key, keys ...daybook.Key) {
			t.Helper()
			if !slices.Equal(got, keys) {
				t.Errorf("%s: claimed %v, want %v", what, got, keys)
			}
		}
		now := storetest.Birth.AddDate(1, 0, 0)
		want("the oldest", claim(2, now), day(0), day(1))
		late := older("late")
		want("while there is more than slots", claim(2, now), day(2), day(3))
		want("a second later", claim(2, now.Add(time.Second)), late, day(4))
		again := older("again")
		want("where all have a slot", claim(10, now.Add(time.Second)), again, day(5), day(6), day(7), day(8), day(9))
		last := older("last")
		want("after that", claim(1, now.Add(time.Second)), last)
	})
}
