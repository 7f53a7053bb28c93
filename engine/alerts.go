package engine

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/store"
)

// tellEvery is how often the sender looks for alerts that other processes wrote; what this one writes wakes it.
const tellEvery = 10 * time.Second

// ringing is the store as those write to it who bring alerts: the sender need not wait for its next poll.
type ringing struct {
	*store.Store
	bell chan struct{}
}

func (s ringing) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// Apply implements daybook.Mover.
func (s ringing) Apply(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	applied, err := s.Store.Apply(ctx, ts)
	for i := range ts {
		if err == nil && len(ts[i].Alerts) > 0 {
			s.ring()
			break
		}
	}
	return applied, err
}

// Alert writes an alert.
func (s ringing) Alert(ctx context.Context, a *daybook.Alert) error {
	err := s.Store.Alert(ctx, a)
	if err == nil {
		s.ring()
	}
	return err
}

// KeepDrill implements daybook.Driller.
func (s ringing) KeepDrill(ctx context.Context, d *daybook.Drill, failed *daybook.Alert, act daybook.Activity) error {
	err := s.Store.KeepDrill(ctx, d, failed, act)
	if err == nil && failed != nil {
		s.ring()
	}
	return err
}

// telling are the loops that tell people: what stands in the rows is sent, and what does not happen gets a row.
func (e *Engine) telling() []loop.Item {
	watcher := alert.NewWatcher(e.rows, alert.WatchOptions{Compile: e.watched, Freezes: e.between, Log: e.o.Log})
	return []loop.Item{
		{Name: "alerts", Service: &e.sender, Every: tellEvery, Wake: e.rows.bell},
		{Name: "silence", Service: e.believing(watcher), Every: time.Minute},
		{Name: "drills", Service: e.believing(&alert.Drills{Store: e.rows}), Every: time.Hour},
	}
}

// believing calls a service only while the wall clock is believed: by one that leapt everything is late and silent.
func (e *Engine) believing(s daybook.Service) daybook.Service {
	return service(func(ctx context.Context, now time.Time) (bool, error) {
		if !e.clock.believed() {
			return false, nil
		}
		return s.Tick(ctx, now)
	})
}

func (e *Engine) alerts(s Settings) alert.Options {
	o := s.Alerts
	o.NewID, o.Log = newID, e.o.Log
	return o
}

// watched works out a stored definition for the watcher.
func (e *Engine) watched(j daybook.Job) (*daybook.Job, alert.Schedule, error) {
	days, err := e.days(j.Calendar)
	if err != nil {
		return nil, nil, err
	}
	j, schedule, err := calendar.Complete(j, days)
	if err != nil || schedule == nil {
		return &j, nil, err // a nil *Schedule would be no nil alert.Schedule
	}
	return &j, schedule, nil
}

// told returns the channels that are told of a priority; not known: nothing was said of alerts at all.
func (e *Engine) told(p daybook.Priority) (channels []string, known bool) {
	routes := e.settings().Alerts.Routes
	return routes[p].To, routes != nil
}
