package control

import (
	"context"

	"github.com/daybook-run/daybook"
)

// subjects looks at runs whose subjects have runs of their own, and that do not come to their end by themselves.
func (d *doctor) subjects(ctx context.Context) error {
	runs, err := d.c.s.Runs(ctx, daybook.Filter{State: daybook.Running, Limit: maxListed})
	if err != nil {
		return err
	}
	looked := 0
	for _, r := range runs {
		if !r.FannedOut() || looked == countedRuns {
			continue
		}
		looked++
		n, err := d.c.subjectsOf(ctx, r)
		if err != nil {
			return err
		}
		switch {
		case n.Breaker != nil:
			d.add(LevelBad, daybook.Say("%s: %s", r.Key, subjectsText(n)), command("daybook run show %s", r.Key))
		case n.UnderWay() == 0 && n.ForPerson() > 0:
			d.add(LevelWarn, daybook.Say("%s does not end by itself: %s", r.Key, subjectsText(n)), command("daybook dead list"))
		case n.Waiting+n.Held < n.UnderWay() || d.now.Sub(r.ClaimedAt) <= plannedWithin:
		case n.Waiting > 0:
			d.add(LevelWarn, daybook.Say("%s: %d subjects wait for their turn, and none is under way", r.Key, n.Waiting), command("daybook run show %s", r.Key))
		case n.Held > 0:
			d.add(LevelWarn, daybook.Say("%s: %s that another run has, and none is under way", r.Key,
				daybook.Count(int(n.Held), "%d subject waits for a serial key", "%d subjects wait for a serial key")), command("daybook run show %s", r.Key))
		}
	}
	return nil
}
