package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// scansPerTick bounds the jobs whose look-back is compared in one piece of work. Those without a hole are recorded together.
const scansPerTick = 100

// scanSome compares the look-back of some jobs with their rows and decides the holes by the missed policy. After a hole it stops.
func (s *Scheduler) scanSome(ctx context.Context, now time.Time) (more bool, err error) {
	var whole []string
	for n := 0; n < scansPerTick && len(s.scans) > 0 && !s.scans[0].scan.After(now) && err == nil && ctx.Err() == nil; n++ {
		if n == 0 {
			if err := s.frozen(ctx, now); err != nil {
				return false, err
			}
		}
		more = true
		e := s.scans[0]
		if e.overtaken {
			s.scans = s.scans[1:]
			continue
		}
		holes, decided := 0, false
		if holes, decided, err = s.scan(ctx, e, now); err == nil && decided {
			whole = append(whole, e.Name)
			s.scanAt(e, now.Add(scanEvery))
		} else {
			s.scanAt(e, now.Add(scanPause))
		}
		if holes > 0 {
			break
		}
	}
	if len(whole) > 0 {
		err = errors.Join(err, s.store.Scanned(ctx, whole, now))
	}
	return more, err
}

// scanAt says when the look-back of a job is compared next. Most come to the end: nothing is moved for those.
func (s *Scheduler) scanAt(e *entry, at time.Time) {
	if len(s.scans) > 0 && s.scans[0] == e {
		s.scans = s.scans[1:]
	} else {
		had := len(s.scans)
		s.scans = slices.DeleteFunc(s.scans, func(o *entry) bool { return o == e })
		if len(s.scans) == had { // not loaded: its definition ends now
			return
		}
	}
	e.scan = at
	if n := len(s.scans); n == 0 || !s.scans[n-1].scan.After(at) {
		s.scans = append(s.scans, e)
		return
	}
	i, _ := slices.BinarySearchFunc(s.scans, at, func(o *entry, at time.Time) int {
		if o.scan.After(at) {
			return 1
		}
		return -1
	})
	s.scans = slices.Insert(s.scans, i, e)
}

// scan reports how many holes it found, and whether every one is decided.
func (s *Scheduler) scan(ctx context.Context, e *entry, now time.Time) (missing int, decided bool, err error) {
	from := calendar.Later(e.since, now.Add(-e.CatchupWindow))
	definitions, err := s.store.Definitions(ctx, e.Name, from)
	if err != nil {
		return 0, false, err
	}
	var holes []daybook.PlannedWindow
	for i, d := range definitions {
		until := e.cursor
		if i+1 < len(definitions) && definitions[i+1].Since.Before(until) {
			until = definitions[i+1].Since
		}
		found, err := s.holes(ctx, e, d, calendar.Later(from, d.Since), until, now)
		if daybook.CodeOf(err) == daybook.CodeUnavailable {
			return 0, false, err
		}
		if err != nil {
			s.o.Log.Warn("scan", "job", e.Name, "revision", d.Revision, "err", err)
			continue
		}
		holes = append(holes, found...)
	}
	if len(holes) > 0 {
		if decided, err = s.decide(ctx, e, holes, now); err != nil || !decided {
			return len(holes), false, err
		}
	}
	return len(holes), true, nil
}

// decide decides holes, which all lie behind the cursor. False: another scheduler was first, or nothing of their kind
// starts now.
func (s *Scheduler) decide(ctx context.Context, e *entry, holes []daybook.PlannedWindow, now time.Time) (bool, error) {
	s.o.Log.Warn("windows without a row are decided now", "job", e.Name, "windows", len(holes), "first", holes[0].Window.Label)
	p := &daybook.Plan{Job: e.Job.Job, Home: e.home, Revision: e.revision, Source: daybook.SourceCatchup, From: e.cursor, To: e.cursor, Windows: holes, TZData: s.o.TZData}
	if f, ok, err := s.nextFire(e); err == nil && ok {
		p.Next, p.NextFire = f.At, f.Nominal
	}
	done, err := s.store.Plan(ctx, []*daybook.Plan{p}, now)
	switch {
	case err != nil || done[0].Held != "":
		return false, err
	case done[0].Stale && done[0].Revision != e.revision:
		s.overtaken(ctx, e, done[0], now)
		return false, nil
	case done[0].Stale:
		e.cursor = done[0].Cursor
		s.requeue(ctx, e, now)
		return false, nil
	}
	if done[0].Started > 0 {
		s.o.Woke()
	}
	return true, s.store.Note(ctx, daybook.Activity{At: now, Actor: "daybook", Action: "scan", Job: e.Name,
		Note: fmt.Sprintf("%d windows had no row, the first %s", len(holes), holes[0].Window.Label)})
}

// holes returns the windows that a revision owed in (from, until] and that have no row.
func (s *Scheduler) holes(ctx context.Context, e *entry, d daybook.JobState, from, until, now time.Time) ([]daybook.PlannedWindow, error) {
	if !until.After(from) {
		return nil, nil
	}
	under := e
	if d.Name != e.Name || d.Revision != e.revision {
		definition, err := daybook.JobFromCanonical(d.Definition)
		if err != nil {
			return nil, err
		}
		j, err := s.o.Compile(definition)
		if err != nil {
			return nil, err
		}
		under = &entry{Job: j}
	}
	if under.Job.Job.Schedule == "" {
		return nil, nil
	}
	var holes, part []daybook.PlannedWindow
	look := func() error {
		found, err := s.store.Unaccounted(ctx, e.Name, part)
		holes, part = append(holes, found...), part[:0]
		return err
	}
	var failed error
	err := guarded(func() {
		for w := range under.Schedule.Due(from, until) {
			part = append(part, s.window(under, w, now))
			if len(part) == windowsPerPlan {
				if failed = look(); failed != nil {
					return
				}
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return holes, look()
}
