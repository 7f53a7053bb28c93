package control

import (
	"context"

	"github.com/daybook-run/daybook"
)

// doneBy is the home of whoever does a run: undos are done by a serve also where lines do the rest.
func doneBy(r *daybook.Run) string {
	if r.Key.IsUndo() && r.Home == daybook.HomeOnce {
		return ""
	}
	return r.Home
}

// unattended finds runs that are due and that nobody does: undos without a serve, and runs whose line has to be started again.
func (c *Control) unattended(ctx context.Context, s *Status, live []*daybook.Run, wanted func(string) bool) error {
	for _, r := range live {
		if r.Home != daybook.HomeOnce || r.State == daybook.Running || r.Hold != "" || !wanted(r.Job) || !r.Key.IsUndo() && s.At.Sub(r.Due) <= onTime {
			continue
		}
		n := Need{Priority: r.Priority, Kind: "nobody executes", Job: r.Job, Key: r.Key, Since: r.Due, Run: r}
		switch {
		case r.Key.IsUndo() && len(s.Serves) > 0:
			continue
		case r.Key.IsUndo():
			n.Text, n.Do = daybook.Say("waits: no serve is there that takes back"), serveDo
		default:
			line, err := c.lineOf(ctx, r)
			if err != nil {
				return err
			}
			n.Text, n.Do = daybook.Say("waits for its line, which nobody has started since it was due"), onceCommand(line, r)
		}
		s.NeedsYou = append(s.NeedsYou, n)
	}
	return nil
}
