package control

import (
	"context"
	"strings"

	"github.com/daybook-run/daybook"
)

// nearLimit bounds how many subjects of a window are looked at for the nearest one.
const nearLimit = 1000

// named looks whether a new key's subject is one that somebody named. A job whose subjects are listed knows them by the
// listing of the window; one that does each of its windows whole, by a schedule, has none: a subject beside the window would
// do it once more. A job without a schedule is done for whatever is asked for, such as what mends one item.
func (c *Control) named(ctx context.Context, t *target, parts daybook.KeyParts, unlisted bool) error {
	if parts.Subject == "" || t.template == nil || t.kind() == daybook.PerEvent || t.state.Home == daybook.HomeOnce ||
		t.ask.Source == daybook.SourceOnce {
		return nil
	}
	if r, err := c.underAnyName(ctx, t.ask.Key, t.state.Formerly); err != nil || r != nil {
		return err
	}
	switch {
	case t.job.Fans():
		t.ask.NotListed, t.ask.Unlisted = true, unlisted
		return nil
	case t.job.Schedule == "":
		return nil
	}
	return noSubjects(t.job.Name, parts)
}

// listing counts the subjects of the window of a key, and finds the nearest one to the key's; nil: nothing was listed yet.
func (c *Control) listing(ctx context.Context, k daybook.Key) (*daybook.SubjectCounts, daybook.Key, error) {
	parts := k.Parts()
	parts.Subject, parts.Undo = "", false
	parent, err := c.s.Run(ctx, parts.Key())
	if daybook.CodeOf(err) == daybook.CodeNotFound {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	n, err := c.subjectsOf(ctx, parent)
	if err != nil || n == nil {
		return n, "", err
	}
	near, err := c.nearest(ctx, k)
	return n, near, err
}

// nearest returns the key of the same window whose subject is a slip of the hand away from that of k, empty when there is
// none. Of many it looks at the first ones, and at those that begin alike.
func (c *Control) nearest(ctx context.Context, k daybook.Key) (daybook.Key, error) {
	parts := k.Parts()
	if parts.Subject == "" {
		return "", nil
	}
	all := parts
	all.Subject, all.Undo = "", false
	window := string(all.Key()) + "/"
	var names []string
	for _, prefix := range []string{window, window + parts.Subject[:(len(parts.Subject)+1)/2]} {
		runs, err := c.s.Runs(ctx, daybook.Filter{Prefix: prefix, Limit: nearLimit})
		if err != nil {
			return "", err
		}
		for _, r := range runs {
			if !r.Key.IsUndo() {
				names = append(names, strings.TrimPrefix(string(r.Key), window))
			}
		}
		if len(runs) < nearLimit {
			break
		}
	}
	near := daybook.Nearest(parts.Subject, names)
	if near == "" || near == parts.Subject {
		return "", nil
	}
	return daybook.Key(window + near), nil
}
