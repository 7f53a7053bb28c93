package calendar

import (
	"time"

	"github.com/daybook-run/daybook"
)

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// InZone returns the window of a label as a job has it in another zone, and when that opens there: at its first fire, or without one at
// its start. days is the business calendar that j.Calendar names, or nil. Errors have CodeInvalid.
func InZone(j *daybook.Job, zone, label string, days *Days) (w daybook.Window, opens time.Time, err error) {
	there := *j
	there.Timezone, there.Zone = zone, ""
	_, schedule, err := Complete(there, days)
	if err != nil {
		return w, opens, err
	}
	if w, err = schedule.WindowOf(label); err != nil {
		return w, opens, err
	}
	if first, _, ok := schedule.FiresOf(w); ok {
		return w, first.At, nil
	}
	return w, w.Start, nil
}
