package store_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

// In full: go test ./store -run H47 -v -h47 200000
var besideOld = flag.Int("h47", 20_000, "runs that TestH47ClaimsBesideAnOldTransaction does")

// A transaction that read once and stands open keeps what is dead since then from being removed. Claims must not read past all of it.
func TestH47ClaimsBesideAnOldTransaction(t *testing.T) {
	for _, d := range storetest.Databases(t) {
		t.Run(d.Name, func(t *testing.T) {
			db := d.Open(t)
			s, err := open(t, db)
			if err != nil {
				t.Fatal(err)
			}
			const chunk = 5000
			for made := 0; made < *besideOld; made += chunk {
				fill(t, s, fmt.Sprintf("j%06d", made), min(chunk, *besideOld-made))
			}
			g := &growing{TB: t, s: s, db: db}
			g.besideIdle(func() map[string]time.Duration {
				claimsStayFlat(t, s, *besideOld)
				return nil
			})
		})
	}
}

// claimsStayFlat does n runs, a hundred at a time, and compares what claims take in the end with what they took at first. What is
// no growth but a busy machine is gone when it is looked at again.
func claimsStayFlat(t *testing.T, s *store.Store, n int) {
	const batch, tenths = 100, 10
	now := farAhead
	part := func() time.Duration {
		var took []time.Duration
		for range n / batch / tenths {
			now = now.Add(20 * time.Millisecond)
			began := time.Now()
			runs, err := s.Claim(t.Context(), daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: batch, Lease: now.Add(time.Minute), NewID: storetest.NewID}, now)
			took = append(took, time.Since(began))
			if err != nil || len(runs) != batch {
				t.Fatalf("claimed %d of %d: %v", len(runs), batch, err)
			}
			ends := make([]daybook.Transition, len(runs))
			for i, r := range runs {
				ends[i] = r.Next(daybook.Outcome{Result: daybook.ResultDone}, daybook.Policy{}, now)
			}
			applied, err := s.Apply(t.Context(), ends)
			if err != nil || slices.ContainsFunc(applied, func(a daybook.Applied) bool { return a.Stale }) {
				t.Fatalf("ended: %v", err)
			}
		}
		slices.Sort(took)
		return took[len(took)*95/100]
	}
	first := max(part(), part())
	var last time.Duration
	for i := 2; i < tenths; i++ {
		if last = part(); i >= tenths-3 && last < 3*first {
			t.Logf("p95 of a claim: %s at first, %s at the end", first, last)
			return
		}
	}
	t.Errorf("p95 of a claim: %s at first, %s at the end", first, last)
}
