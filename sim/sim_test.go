package sim

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds are simulated")
	from  = flag.Uint64("from", 1, "the first seed")
	show  = flag.Bool("show", false, "print everything that happens in a seed")
)

// TestSeeds: no seed breaks a promise.
func TestSeeds(t *testing.T) {
	tpl := newTemplate(t)
	var next atomic.Uint64
	var mu sync.Mutex
	var sum Report
	broken := 0
	t.Run("seeds", func(t *testing.T) {
		for worker := range 2 {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for {
					n := next.Add(1) - 1
					if n >= uint64(*seeds) {
						return
					}
					seed := *from + n
					r := tpl.run(t, seed, Plants{})
					mu.Lock()
					sum.Steps, sum.Runs, sum.Booked, sum.Kills, sum.Letter, sum.Acts = sum.Steps+r.Steps, sum.Runs+r.Runs, sum.Booked+r.Booked, sum.Kills+r.Kills, sum.Letter+r.Letter, sum.Acts+r.Acts
					if *show {
						t.Logf("seed %d\n%s", seed, strings.Join(r.Trace, "\n"))
					}
					if len(r.Faults) > 0 {
						broken++
						t.Errorf("seed %d breaks promises; again: go test ./sim -run TestSeeds -seeds 1 -from %d -show\n  %s", seed, seed, strings.Join(r.Faults, "\n  "))
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d seeds, %d broken: %d calls, %d runs, %d entries at the far side, %d deaths, %d dead letters, %d acts of people",
		*seeds, broken, sum.Steps, sum.Runs, sum.Booked, sum.Kills, sum.Letter, sum.Acts)
}

// TestASeedIsAlwaysTheSame: what happens in a seed depends on nothing else.
func TestASeedIsAlwaysTheSame(t *testing.T) {
	tpl := newTemplate(t)
	for seed := range uint64(20) {
		first := tpl.run(t, seed, Plants{})
		for range 2 {
			again := tpl.run(t, seed, Plants{})
			if again.Hash == first.Hash {
				continue
			}
			for i := range min(len(first.Trace), len(again.Trace)) {
				if first.Trace[i] != again.Trace[i] {
					t.Fatalf("seed %d is not the same at its line %d:\n%s\n%s", seed, i+1, first.Trace[i], again.Trace[i])
				}
			}
			t.Fatalf("seed %d has %d lines, and then %d", seed, len(first.Trace), len(again.Trace))
		}
	}
}
