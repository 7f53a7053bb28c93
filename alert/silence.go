package alert

import (
	"fmt"
	"iter"
	"time"

	"github.com/daybook-run/daybook"
)

// Schedule is what silence asks of a compiled schedule; *calendar.Schedule is one.
type Schedule interface {
	Between(from, to time.Time) iter.Seq[daybook.Fire]
	FiresOf(w daybook.Window) (first, last daybook.Fire, ok bool)
	WindowOf(label string) (daybook.Window, error)
	Distance() time.Duration
}

// Watched is a job as it stands.
type Watched struct {
	Job      *daybook.Job // completed
	Schedule Schedule     // nil: it has none, or it cannot be worked out, which is told as a fault
	State    daybook.JobState
	LastGood daybook.Good     // its newest window that is done
	Runs     []*daybook.Run   // those that are live, and the newest of the others
	Frozen   []daybook.Bounds // spans in which nothing of its priority started: none touches another
	Held     bool             // a hold keeps windows of its kind from being decided: that is told by itself
}

// watched reports whether anything is owed: not while a job is paused, retired, without schedule, or run by a crontab.
func (w *Watched) watched() bool {
	return w.Schedule != nil && w.Job.Schedule != "" && !w.State.Paused && w.State.RetiredAt.IsZero() && w.State.Home != daybook.HomeOnce
}

// frozen is how much of a span lay within freezes: nothing started then because a person wanted it so.
func (w *Watched) frozen(from, to time.Time) (d time.Duration) {
	for _, f := range w.Frozen {
		start, end := f.Start, f.End
		if start.Before(from) {
			start = from
		}
		if end.After(to) {
			end = to
		}
		if end.After(start) {
			d += end.Sub(start)
		}
	}
	return d
}

// Silent returns the alert that a job is silent, or nil. Silence is measured in business windows: it begins with the first
// fire behind the last good window, so that a night or a weekend without fires is none, and a backfill of the past does
// not end it. A job that was never good counts from when it was first seen, and one that was changed or resumed counts
// from then.
func Silent(w *Watched, now time.Time) *daybook.Alert {
	if !w.watched() || w.Job.Work != daybook.Timed || w.Job.Expect.MaxSilence <= 0 {
		return nil
	}
	base := w.State.FirstSeen
	for _, at := range []time.Time{w.State.Since, w.State.PausedAt} {
		if at.After(base) {
			base = at
		}
	}
	good := ""
	if w.LastGood.Key != "" {
		good = w.LastGood.Key.Parts().Window
		if win, err := w.Schedule.WindowOf(good); err == nil {
			if _, last, ok := w.Schedule.FiresOf(win); ok && last.At.After(base) {
				base = last.At
			}
		}
	}
	slack := max(w.Job.Expect.MaxSilence-w.Schedule.Distance(), 0)
	for f := range w.Schedule.Between(base, now.Add(-slack)) {
		if f.Skip != "" {
			continue
		}
		if now.Sub(f.At)-w.frozen(f.At, now) < slack {
			return nil // the later ones are younger still
		}
		text := "no good window for too long"
		if good == "" {
			text = "no window has succeeded yet"
		}
		return daybook.NewAlert(JobSilent, "", w.Job.Name, w.Job.Priority, text, good, now)
	}
	return nil
}

// Late returns the keys of a job's windows that are late past its grace, the oldest first, and the alert about the oldest;
// the others have the same cause, and one alert is enough. A P0 window is late until it is done; any other one until it
// began, for what fails after that ends as a dead letter with an alert of its own. Windows that a hold of the whole ledger
// keeps are not late: the hold is told.
func Late(w *Watched, now time.Time) (keys []daybook.Key, alert *daybook.Alert) {
	left := w.State.Home == daybook.HomeOnce && !w.State.Paused // nobody goes on with these by himself
	if !w.watched() && !left {
		return nil, nil
	}
	grace := w.Job.Expect.Grace
	if grace <= 0 {
		grace = daybook.DefaultGrace
	}
	var oldest time.Time
	text := ""
	late := func(k daybook.Key, since time.Time, why string) {
		if now.Sub(since)-w.frozen(since, now) <= grace {
			return
		}
		if oldest.IsZero() || since.Before(oldest) {
			oldest, text = since, fmt.Sprintf("due %s, %s", since.UTC().Format(time.RFC3339), why)
			keys = append([]daybook.Key{k}, keys...)
			return
		}
		keys = append(keys, k)
	}
	known := make(map[string]bool, len(w.Runs)) // labels of windows that have a row, perhaps under an earlier name of the job
	for _, r := range w.Runs {
		if p := r.Key.Parts(); p.Subject == "" && p.N == 1 {
			known[p.Window] = true
		}
		switch {
		case left && r.State.Live() && r.State != daybook.Running && r.HeldAt(now) == "":
			late(r.Key, r.Due, "and nobody has claimed it: start its line, or its program, again")
		case !r.State.Live(), r.Rests, r.Reason == daybook.ReasonNextZone, r.FannedOut() && w.Job.Zone == daybook.ZoneOfSubject, r.Again, r.Lane == daybook.LaneBackfill, r.Home == daybook.HomeOnce:
		case r.Hold == daybook.ReasonPaused, r.Hold == daybook.ReasonClock, r.Hold == daybook.ReasonRestored, r.Hold == daybook.ReasonNoDefinition:
		case r.Priority != daybook.P0 && r.Attempts > 0:
		case r.HeldAt(now) != "":
			late(r.Key, r.NotBefore, string(r.Hold))
		default:
			late(r.Key, r.NotBefore, string(r.State))
		}
	}
	if !left && !w.State.Cursor.IsZero() && !w.Held { // fires that no scheduler has decided
		for f := range w.Schedule.Between(w.State.Cursor, now) {
			k := daybook.KeyParts{Job: w.Job.Name, Window: f.Window.Label}.Key()
			if f.Skip == "" && !known[f.Window.Label] {
				late(k, f.At, "no scheduler has decided it")
				break
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return keys, daybook.NewAlert(daybook.AlertJobLate, keys[0], w.Job.Name, w.Job.Priority, text, "", now)
}
