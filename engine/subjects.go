package engine

import (
	"context"
	"iter"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/fanout"
)

// portionSlots is how many times the slots of a process the runs of subjects are that one run lets go at a time: enough that
// no slot waits, and few enough that other jobs come to their turn.
const portionSlots = 4

// looksEvery is how often it is asked which runs of subjects ended elsewhere; those that ended here are heard at once, and
// other nodes call.
const looksEvery = 10 * time.Second

func (e *Engine) portion() int {
	return max(portionSlots*e.settings().Slots[daybook.LaneLive], daybook.BreakerSubjects)
}

// wake is for whoever acts: there may be something to claim, or a run whose subjects ended.
func (e *Engine) wake() {
	e.exec.Wake()
	e.fans.Wake()
}

// listOf returns how the subjects of a job are listed.
func (e *Engine) listOf(d Definition) executor.ListFunc {
	switch {
	case d.List != nil:
		return func(ctx context.Context, w daybook.Window, _ daybook.Order) iter.Seq2[daybook.Subject, error] {
			return d.List(ctx, w)
		}
	case !d.Job.Fans():
		return nil
	}
	return func(ctx context.Context, w daybook.Window, _ daybook.Order) iter.Seq2[daybook.Subject, error] {
		l, err := d.Job.Subjects, error(nil)
		if d.Listing != nil {
			l, err = d.Listing()
		}
		if err == nil && l.SQL != "" && e.o.UserDB == nil {
			err = daybook.Permanent(daybook.Invalid("this program can ask no database for subjects"))
		}
		if err != nil {
			return func(yield func(daybook.Subject, error) bool) { yield(daybook.Subject{}, err) }
		}
		return fanout.Source{SQL: l.SQL, DSN: l.DSN, URL: l.URL, Open: e.o.UserDB}.List(ctx, w)
	}
}

// inZone works out the window of a label as a job has it in another zone.
func (e *Engine) inZone(j *daybook.Job, zone, label string) (daybook.Window, time.Time, error) {
	days, err := e.days(j.Calendar)
	if err != nil {
		return daybook.Window{}, time.Time{}, err
	}
	return calendar.InZone(j, zone, label, days)
}
