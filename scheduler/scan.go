package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// scanOne compares the look-back of one job with its rows and decides the holes by the missed policy.
func (s *Scheduler) scanOne(ctx context.Context, now time.Time) (more bool, err error) {
	if len(s.scans) == 0 || s.scans[0].scan.After(now) {
		return false, nil
	}
	e := s.scans[0]
	if e.overtaken {
		s.scans = s.scans[1:]
		return true, nil
	}
	decided, err := s.scan(ctx, e, now)
	if decided && err == nil {
		s.scanAt(e, now.Add(scanEvery))
	} else {
		s.scanAt(e, now.Add(scanPause))
	}
	return true, err
}

// scanAt says when the look-back of a job is compared next.
func (s *Scheduler) scanAt(e *entry, at time.Time) {
	had := len(s.scans)
	s.scans = slices.DeleteFunc(s.scans, func(o *entry) bool { return o == e })
	if len(s.scans) == had { // not loaded: its definition ends now
		return
	}
	e.scan = at
	i, _ := slices.BinarySearchFunc(s.scans, at, func(o *entry, at time.Time) int {
		if o.scan.After(at) {
			return 1
		}
		return -1
	})
	s.scans = slices.Insert(s.scans, i, e)
}

// scan reports whether every hole that it found is decided.
func (s *Scheduler) scan(ctx context.Context, e *entry, now time.Time) (decided bool, err error) {
	if err := s.frozen(ctx, now); err != nil {
		return false, err
	}
	from := calendar.Later(e.since, now.Add(-e.CatchupWindow))
	definitions, err := s.store.Definitions(ctx, e.Name, from)
	if err != nil {
		return false, err
	}
	var holes []daybook.PlannedWindow
	for i, d := range definitions {
		until := e.cursor
		if i+1 < len(definitions) && definitions[i+1].Since.Before(until) {
			until = definitions[i+1].Since
		}
		found, err := s.holes(ctx, e, d, calendar.Later(from, d.Since), until, now)
		if daybook.CodeOf(err) == daybook.CodeUnavailable {
			return false, err
		}
		if err != nil {
			s.o.Log.Warn("scan", "job", e.Name, "revision", d.Revision, "err", err)
			continue
		}
		holes = append(holes, found...)
	}
	if len(holes) > 0 {
		if decided, err = s.decide(ctx, e, holes, now); err != nil || !decided {
			return false, err
		}
	}
	return true, s.store.Scanned(ctx, e.Name, now)
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
