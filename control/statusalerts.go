package control

import (
	"context"
	"slices"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// told adds the open P0 alerts of which nothing else of the status speaks, such as a drill that failed.
func (c *Control) told(ctx context.Context, s *Status, wanted func(string) bool) error {
	open, err := c.s.AlertRows(ctx, true, maxListed)
	if err != nil {
		return err
	}
	for _, r := range open {
		if r.Priority == daybook.P0 && wanted(r.Job) && !s.speaksOf(r) {
			s.NeedsYou = append(s.NeedsYou, Need{Priority: r.Priority, Kind: "alert", Job: r.Job, Key: r.Key, Text: alertText(r), Since: r.At,
				Do: alertDo(r), Alert: r.ID()})
		}
	}
	s.sort()
	return nil
}

// speaksOf reports whether what an alert is about is told already: by its letter, its hold, or what is late, silent or at fault.
func (s *Status) speaksOf(r notice.Row) bool {
	switch r.Kind {
	case daybook.AlertDeadLetter, daybook.AlertUnknownOutcome, daybook.AlertBreakerOpen, daybook.AlertClockLeap, daybook.AlertLedgerRestored:
		return true
	case daybook.AlertDrillFailed, daybook.AlertDrillDue, daybook.AlertDoneTwice, daybook.AlertOvertaken:
		return false
	}
	return slices.ContainsFunc(s.NeedsYou, func(n Need) bool {
		return n.Kind != "alert" && (r.Key != "" && n.Key == r.Key || r.Key == "" && n.Job == r.Job)
	})
}
