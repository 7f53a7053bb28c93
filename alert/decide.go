package alert

import (
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// Route says who is told of the alerts of a priority.
type Route struct {
	To     []string      // names of channels
	Remind time.Duration // told again until acknowledged; 0: P0 DefaultRemind, others once
}

const (
	// DefaultRemind is how often a P0 alert is repeated when its route does not say.
	DefaultRemind = time.Hour
	// letterOpenFor is how long a letter stands open before it is told once more, whatever its priority.
	letterOpenFor = 24 * time.Hour
)

// decision is what is to be told about an alert now, and when it is to be looked at again.
type decision struct {
	purpose  notice.Purpose // empty: nothing
	to       []string
	next     time.Time // zero: never, until it ends
	remind   time.Time // the next reminder, for the text
	repeated bool
	finished bool
}

// decide works out what an alert wants at an instant. Each row says one thing and when it is to be asked again:
//
//	ended, never told            nothing, for good
//	ended                        recovered, to those who have it, for good
//	its job is muted             nothing; again when the mute ends
//	no channel for its priority  nothing; again after a while: the file may name one by then
//	never told                   first
//	a letter, open for 24 h      still open, once, also when it was acknowledged
//	acknowledged                 nothing
//	a reminder is due            remind
//
// A mute keeps the end from being told, too; what began and ended within it is never told.
func decide(r notice.Row, route Route, now time.Time) decision {
	d := decision{repeated: r.Repeated}
	muted := r.MutedUntil.After(now)
	remind := route.Remind
	if remind <= 0 && r.Priority == daybook.P0 {
		remind = DefaultRemind
	}
	letter := r.Kind == daybook.AlertDeadLetter || r.Kind == daybook.AlertUnknownOutcome
	repeatAt := r.At.Add(letterOpenFor)
	switch {
	case !r.ClosedAt.IsZero() && len(r.Reached) == 0:
		d.finished = true
		return d
	case muted:
		d.next = r.MutedUntil
		return d
	case !r.ClosedAt.IsZero():
		d.purpose, d.to, d.finished = notice.Recovered, r.Reached, true
		return d
	case len(route.To) == 0:
		d.next = now.Add(DefaultRemind)
		return d
	case r.ToldAt.IsZero():
		d.purpose = notice.First
		if letter && !now.Before(repeatAt) { // whoever is told now is told of the 24 hours as well
			d.purpose, d.repeated = notice.StillOpen, true
		}
	case letter && !r.Repeated && !now.Before(repeatAt):
		d.purpose, d.repeated = notice.StillOpen, true
	case r.AckedAt.IsZero() && remind > 0 && !now.Before(r.ToldAt.Add(remind)):
		d.purpose = notice.Remind
	}
	told := r.ToldAt
	if d.purpose != "" {
		d.to, told = route.To, now
	}
	if r.AckedAt.IsZero() && remind > 0 {
		d.remind = told.Add(remind)
		d.next = d.remind
	}
	if letter && !d.repeated && (d.next.IsZero() || repeatAt.Before(d.next)) {
		d.next = repeatAt
	}
	return d
}

// ladder returns when a send that failed is made again, or false when it is given up.
func ladder(failures int, after time.Duration, now time.Time) (time.Time, bool) {
	if failures < 1 || failures > len(daybook.DefaultBackoff) {
		return time.Time{}, false
	}
	return now.Add(max(daybook.DefaultBackoff[failures-1], min(after, daybook.MaxRetryAfter))), true
}
