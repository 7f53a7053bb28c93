// Package faultstore makes a database fail: a driver of database/sql around another one that refuses, delays or loses
// what rules or a seed say. What goes wrong is always the connection, as in the field: the call returns an error, the
// connection is gone, and with it the transaction that was open, whatever its state was on the far side. It is for tests
// of everything that stands on the store, and for the simulator.
//
//	f := faultstore.New(seed)
//	db, err := faultstore.Open("sqlite", file, f)
//	f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, After: true}) // the next commit takes place, its answer is lost
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
)

// Op is a kind of call to the database.
type Op string

// The calls that can fail.
const (
	Any      Op = ""
	Connect  Op = "connect"
	Begin    Op = "begin"
	Exec     Op = "exec"
	Query    Op = "query"
	Commit   Op = "commit"
	Rollback Op = "rollback" // fails only by a rule for it: the connection that is dropped rolls back all the same
)

// ErrInjected is what a call fails with, unless its rule names another error. errors.Is holds for both.
var ErrInjected = errors.New("faultstore: the connection is gone")

// Call is one call to the database.
type Call struct {
	N    int // from 1, over all calls since New or Reset; a rollback has no number of its own
	Op   Op
	Text string // the statement of an exec or a query
}

// Rule says which call fails, and how.
type Rule struct {
	Op       Op
	Contains string // only statements that contain this text
	Nth      int    // the n-th call that matches, counted from when the rule was added; 0: every one
	After    bool   // the call takes effect and its answer is lost; otherwise it never reached the database
	Err      error  // nil: ErrInjected
	// Hook is called before the call, or with After between the call and its answer. What it returns is what the call
	// fails with; nil lets it pass, so that a hook alone can delay a call until a signal comes.
	Hook func(ctx context.Context, c Call) error

	seen int
}

// Faults decides which calls fail. It is safe for concurrent use; with calls in one order its decisions are the same for
// the same seed.
type Faults struct {
	mu          sync.Mutex
	random      *rand.Rand
	rules       []*Rule
	chance      float64
	partitioned bool
	calls       int
	failed      int
}

// New returns faults of which none is on.
func New(seed uint64) *Faults {
	return &Faults{random: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
}

// Add adds a rule. Rules with Nth are used up by the call they meet.
func (f *Faults) Add(r Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &r)
}

// Chance lets each call fail with a probability, by the seed: half of the failures before, half after the call took
// effect. 0 ends it.
func (f *Faults) Chance(p float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chance = p
}

// Partition cuts the database off, or joins it again. While it is cut off every call fails, rollbacks included, and
// transactions that were open are lost.
func (f *Faults) Partition(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.partitioned = on
}

// Reset takes all rules, chances and partitions away and counts calls from the start. The seed's sequence goes on.
func (f *Faults) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules, f.chance, f.partitioned, f.calls, f.failed = nil, 0, false, 0, 0
}

// Failed returns how many calls failed since New or Reset.
func (f *Faults) Failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// verdict is what becomes of one call: fail before it, or hooks before and after it, then fail after it.
type verdict struct {
	call          Call
	before, after []*Rule
	cut           bool // partition, or chance before
	lose          bool // chance after
}

func (f *Faults) decide(op Op, text string) verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := verdict{call: Call{Op: op, Text: text}, cut: f.partitioned}
	if op != Rollback {
		f.calls++
		if f.chance > 0 && f.random.Float64() < f.chance {
			if f.random.IntN(2) == 0 {
				v.cut = true
			} else {
				v.lose = true
			}
		}
	}
	v.call.N = f.calls
	kept := f.rules[:0]
	for _, r := range f.rules {
		if r.Op != op && (r.Op != Any || op == Rollback) || !strings.Contains(text, r.Contains) {
			kept = append(kept, r)
			continue
		}
		r.seen++
		if r.Nth == 0 || r.Nth == r.seen {
			if r.After {
				v.after = append(v.after, r)
			} else {
				v.before = append(v.before, r)
			}
		}
		if r.Nth == 0 || r.seen < r.Nth {
			kept = append(kept, r)
		}
	}
	f.rules = kept
	return v
}

// fail runs the rules of one side of a call and returns what it fails with.
func (f *Faults) fail(ctx context.Context, v verdict, rules []*Rule, always bool) error {
	var err error
	if always {
		err = fmt.Errorf("%s %d: %w", v.call.Op, v.call.N, ErrInjected)
	}
	for _, r := range rules {
		switch {
		case r.Hook != nil:
			if why := r.Hook(ctx, v.call); why != nil {
				err = fmt.Errorf("%s %d: %w", v.call.Op, v.call.N, why)
			}
		case r.Err != nil:
			err = fmt.Errorf("%s %d: %w (%w)", v.call.Op, v.call.N, r.Err, ErrInjected)
		default:
			err = fmt.Errorf("%s %d: %w", v.call.Op, v.call.N, ErrInjected)
		}
	}
	if err != nil {
		f.mu.Lock()
		f.failed++
		f.mu.Unlock()
	}
	return err
}
