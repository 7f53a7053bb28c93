package control

import (
	"context"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
)

// Lock returns who has the serial key of a run; nil: it has none, or nobody holds it.
func (c *Control) Lock(ctx context.Context, r *daybook.Run) (*daybook.Lock, error) {
	if r == nil || r.Serial == "" {
		return nil, nil
	}
	return c.s.Lock(ctx, r.Serial)
}

// LockJSON is who has the serial key of a run.
type LockJSON struct {
	Key     daybook.Key `json:"key"`
	Since   time.Time   `json:"since"`
	Waiting int         `json:"waiting"`
}

// NewLockJSON returns a lock as it is answered; nil for none.
func NewLockJSON(l *daybook.Lock) *LockJSON {
	if l == nil {
		return nil
	}
	return &LockJSON{Key: l.Key, Since: l.Since, Waiting: l.Waiting}
}

// stuck finds serial keys that a run has for longer than its job may take.
func (c *Control) stuck(ctx context.Context, s *Status, views map[string]JobView, wanted func(string) bool) error {
	locks, err := c.s.Locks(ctx, maxListed)
	if err != nil {
		return err
	}
	for _, l := range locks {
		v := views[l.Key.Job()]
		if v.State.RenamedTo != "" {
			v = views[v.State.RenamedTo]
		}
		if !wanted(l.Key.Job()) || v.Job == nil || v.Job.Expect.MaxRuntime <= 0 || s.At.Sub(l.Since) <= v.Job.Expect.MaxRuntime {
			continue
		}
		n := Need{Priority: v.Job.Priority, Kind: "serial stuck", Job: l.Key.Job(), Key: l.Key, Text: stuckText(l, v.Job.Expect.MaxRuntime, s.At), Since: l.Since,
			Do: command("daybook run show %s", l.Key)}
		if slices.ContainsFunc(s.NeedsYou, func(o Need) bool { return o.Key == l.Key && o.Kind == "unknown outcome" }) {
			n.Do = daybook.Say("settle its unknown outcome, as said there")
		}
		s.NeedsYou = append(s.NeedsYou, n)
	}
	return nil
}

// serial looks for serial keys whose holder needs them no more.
func (d *doctor) serial(ctx context.Context) error {
	locks, err := d.c.s.Locks(ctx, maxListed)
	if err != nil {
		return err
	}
	gone := 0
	for _, l := range locks {
		if l.Claimed || l.Open {
			continue
		}
		gone++
		d.add(LevelBad, holderGoneText(l), holderGoneDo)
	}
	if len(locks) > 0 && gone == 0 {
		d.add(LevelOK, locksText(len(locks)), daybook.Text{})
	}
	return nil
}

func stuckText(l daybook.Lock, longest time.Duration, now time.Time) daybook.Text {
	return daybook.Say("has serial key %s for %s, longer than its max_runtime %s; %s", l.Serial, short(now.Sub(l.Since)), short(longest), waitersText(l.Waiting))
}

func waitersText(n int) daybook.Text {
	return daybook.Count(n, "%d run waits for it", "%d runs wait for it")
}

func holderGoneText(l daybook.Lock) daybook.Text {
	return daybook.Say("serial key %s is held by %s, which is not at work and has no unknown outcome: rows were changed by hand, or by another program; %s",
		l.Serial, l.Key, waitersText(l.Waiting))
}

var holderGoneDo = daybook.Say("daybook serve lets it go within 10 s; do not change rows of the ledger")

func locksText(n int) daybook.Text {
	return daybook.Count(n, "%d serial key is held, by a run that needs it", "%d serial keys are held, by runs that need them")
}
