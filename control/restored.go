package control

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

// Restored says what the freeze of a ledger that forgot waits for.
type Restored struct {
	Lapse daybook.Lapse
	// Letters and Questions are keys that were in the ledger before it forgot, and whose outcome is unknown: those that wait for a
	// person, and those about which a far side is asked. The freeze is ended when there are none.
	Letters, Questions int
}

// Restored returns what the freeze of a ledger that forgot waits for; nil when none stands.
func (c *Control) Restored(ctx context.Context) (*Restored, error) {
	holds, err := c.s.Holds(ctx)
	if err != nil {
		return nil, err
	}
	return c.restored(ctx, holds)
}

func (c *Control) restored(ctx context.Context, holds []daybook.Hold) (*Restored, error) {
	for _, h := range holds {
		if h.Name != daybook.HoldRestored {
			continue
		}
		lapses, err := c.s.Lapses(ctx)
		if err != nil {
			return nil, err
		}
		for _, l := range lapses {
			if !l.Open() {
				continue
			}
			r := &Restored{Lapse: *l}
			r.Letters, r.Questions, err = c.s.Unsettled(ctx)
			return r, err
		}
	}
	return nil, nil
}

// PutBack records that a person put the ledger back by means of his own, so that it knows nothing of what happened since. The zero
// time: since its last sign of life. A reason is required. What may happen once only is frozen from then on.
//
// Errors: CodeInvalid; CodeConflict, nodes have written to the ledger since it was put back, and since is not given, or such a
// freeze stands that reaches as far back.
func (c *Control) PutBack(ctx context.Context, p Person, since time.Time, note string) (daybook.Lapse, error) {
	p, err := p.check()
	if err != nil {
		return daybook.Lapse{}, err
	}
	if note, err = reason(note, daybook.Say("a ledger that was put back"), true); err != nil {
		return daybook.Lapse{}, err
	}
	now := c.now()
	seen, err := c.s.Seen(ctx)
	if err != nil {
		return daybook.Lapse{}, err
	}
	nodes, err := c.s.Nodes(ctx)
	if err != nil {
		return daybook.Lapse{}, err
	}
	switch {
	case since.After(now):
		return daybook.Lapse{}, daybook.Invalid("%s is yet to come", second(since)).WithHint("name the last instant that the ledger surely knows")
	case since.IsZero():
		if since = seen.Written; anyAlive(nodes, now) {
			return daybook.Lapse{}, daybook.Conflict("nodes write to this ledger: its last sign of life says nothing").
				WithHint("say how far the copy that was put back goes: --since 2026-10-26T02:00:00Z")
		}
	}
	l := daybook.Lapse{Number: seen.Lapse + 1, Since: since, FoundAt: now, Detail: "put back by " + p.Name + ": " + note}
	put, err := c.s.PutLapse(ctx, l, daybook.Activity{At: now, Actor: p.Name, Action: "ledger put back", Note: note})
	if err == nil && !put {
		err = daybook.Conflict("another has just said so").WithHint("daybook freeze list")
	}
	c.o.Wake()
	return l, err
}

func anyAlive(nodes []daybook.Node, now time.Time) bool {
	for _, n := range nodes {
		if n.StoppedAt.IsZero() && now.Sub(n.SeenAt) <= nodeSeen {
			return true
		}
	}
	return false
}

func restoredText(r *Restored) daybook.Text {
	return daybook.Say("held: the ledger was put back and knows nothing of what happened from %s to %s: %s. What may happen once only does not start",
		second(r.Lapse.Since), second(r.Lapse.FoundAt), oneLine(r.Lapse.Detail))
}

// Do says what to do about it.
func (r *Restored) Do() daybook.Text {
	end := command("daybook freeze end %s --reason …", daybook.HoldRestored)
	switch {
	case r.Letters > 0:
		return daybook.Say("settle %s from before it, each as listed, then:  %s", daybook.Count(r.Letters, "%d unknown outcome", "%d unknown outcomes"), end)
	case r.Questions > 0:
		return daybook.Say("%s from before it are being settled: a serve that has their jobs asks the far sides. Then:  %s", daybook.Count(r.Questions, "%d run", "%d runs"), end)
	}
	return daybook.Say("all that was in it is settled:  %s   (what is held goes through its probes first)", end)
}

// second writes an instant to the second: beats are ten of them apart.
func second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
