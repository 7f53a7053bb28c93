package control

import (
	"context"

	"github.com/daybook-run/daybook"
)

// drills tells of drills that failed: asking again did something, and a next time will, too.
func (d *doctor) drills(ctx context.Context) error {
	open, err := d.c.s.AlertRows(ctx, true, maxListed)
	if err != nil {
		return err
	}
	for _, r := range open {
		if r.Kind == daybook.AlertDrillFailed {
			d.add(LevelBad, about(r.Key, alertText(r)), alertDo(r))
		}
	}
	return nil
}
