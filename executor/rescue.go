package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-run/daybook"
)

// Rescue is the service that declares over what nobody renews.
type Rescue struct {
	*Executor
	last  time.Time // the last Tick
	quiet time.Time // nothing is rescued before
	ahead map[daybook.Key]ahead
	told  map[daybook.Lock]bool // serial keys whose long holding was told
}

// ahead is a lease that ends too late to be true.
type ahead struct {
	fence       int64
	lease, seen time.Time
}

// Tick implements daybook.Service.
func (s *Rescue) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	if s.jumped(now) {
		return false, nil
	}
	freed, err := s.store.Unpark(ctx, now)
	if err != nil {
		return false, err
	}
	thawed, err := s.store.Thaw(ctx, s.o.Home, s.freezes, now)
	if err != nil {
		return false, err
	}
	if freed || thawed {
		s.Wake()
	}
	if err := s.stuck(ctx, now); err != nil {
		s.o.Log.Warn("look for serial keys that are held too long", "err", err)
	}
	runs, err := s.store.Expired(ctx, now, now.Add(2*s.o.Lease), rescueBatch)
	if err != nil {
		return false, err
	}
	var moves []daybook.Transition
	var questions []*daybook.Run
	var faults []error // one that cannot be decided keeps nobody else waiting
	waiting := make(map[daybook.Key]ahead)
	for _, r := range runs {
		switch {
		case s.flying(r):
		case r.Lease.After(now) && !s.stood(r, now, waiting):
		case s.leaves(r, now):
		case r.Asking != "":
			questions = append(questions, r)
		default:
			m, ok, err := s.rescue(ctx, r, now)
			if err != nil {
				faults = append(faults, fmt.Errorf("rescue %s: %w", r.Key, err))
			}
			if ok {
				s.outside(&m)
				moves = append(moves, m)
			}
		}
	}
	s.ahead = waiting
	if len(questions) > 0 {
		if err := s.store.ReleaseAsking(ctx, questions, now); err != nil {
			return false, err
		}
	}
	if len(moves) > 0 {
		applied, err := s.store.Apply(ctx, moves)
		if err != nil {
			return false, err
		}
		for i, m := range moves {
			if !applied[i].Stale { // else it is alive, and needs what it keeps there
				s.clean(m.Key, m.Fence)
				s.announce(m)
			}
		}
	}
	if len(moves)+len(questions) > 0 {
		s.Wake()
		s.o.Ended()
	}
	return len(runs) == rescueBatch && len(moves) > 0, errors.Join(faults...)
}

// jumped reports whether the clock, or this process, was elsewhere since the last Tick: stopped, suspended, or set. Then
// leases look over that are renewed as soon as their holders wake, so nothing is rescued for the length of a lease.
func (s *Rescue) jumped(now time.Time) bool {
	gap := now.Sub(s.last)
	first := s.last.IsZero()
	s.last = now
	if !first && (gap > s.o.Lease || gap < -time.Second) {
		s.quiet = now.Add(s.o.Lease)
		if gap > 0 {
			s.quiet = now.Add(s.o.Lease / 2)
		}
	}
	return now.Before(s.quiet)
}

// flying reports whether the run is in the hands of this very process.
func (s *Rescue) flying(r *daybook.Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.flights[r.Key]
	return ok && f.run.Fence == r.Fence && f.run.Claim == r.Claim && (f.ended.IsZero() || s.last.Sub(f.ended) < s.o.Lease)
}

// leaves reports whether others are waited for, another lease long, who can see whether the command of the run lives: this process has
// no directory of this host, and the run would not be claimed here anyway.
func (s *Rescue) leaves(r *daybook.Run, now time.Time) bool {
	over := now.Sub(r.Lease)
	return s.o.Dir == "" && r.Home != s.o.Home && over >= 0 && over < s.o.Lease
}

// stood reports whether a lease that ends too late has stood unrenewed for the length of a true one.
func (s *Rescue) stood(r *daybook.Run, now time.Time, waiting map[daybook.Key]ahead) bool {
	seen, ok := s.ahead[r.Key]
	if !ok || seen.fence != r.Fence || !seen.lease.Equal(r.Lease) {
		seen = ahead{fence: r.Fence, lease: r.Lease, seen: now}
	}
	waiting[r.Key] = seen
	return now.Sub(seen.seen) >= s.o.Lease
}

// rescue decides what becomes of one expired run: a survivor on this host is waited for, a report that it left is its
// report, else its end was reported by nobody.
func (s *Rescue) rescue(ctx context.Context, r *daybook.Run, now time.Time) (daybook.Transition, bool, error) {
	outcome := daybook.Outcome{Result: daybook.ResultLost}
	if dir := s.dir(r.Key, r.Fence); dir != "" {
		alive, known := s.o.Survivor.Alive(dir)
		switch {
		case known && alive:
			s.adopt(r, dir, now)
			return daybook.Transition{}, false, nil
		case known:
			outcome = s.reportOf(r, dir)
			var err error
			if r, err = s.hearSteps(ctx, r, dir); err != nil {
				return daybook.Transition{}, false, err
			}
		}
	}
	p, err := s.policy(ctx, r)
	if err != nil {
		return daybook.Transition{}, false, err
	}
	s.o.Log.Warn("nobody has reported how it ended: it is decided from what is known", "job", r.Job, "key", r.Key, "attempt", r.Attempts, "node", r.Node, "result", outcome.Result)
	m := r.Next(outcome, p, now)
	s.tellLeft(r, &m)
	return m, true, nil
}

// tellLeft alerts that a run is to be tried again, and that nobody does it by himself.
func (x *Executor) tellLeft(r *daybook.Run, m *daybook.Transition) {
	if x.goesOn(r) || m.To != daybook.Retryable {
		return
	}
	m.Alerts = append(m.Alerts, daybook.NewAlert(daybook.AlertJobLate, r.Key, r.Job, r.Priority,
		fmt.Sprintf("attempt %d was lost, and no file defines this job: start its line, or its program, again", r.Attempts), "", m.At))
}

// adopt takes a survivor over: its lease is renewed from here, under the fence and the claim it had.
func (s *Rescue) adopt(r *daybook.Run, dir string, now time.Time) {
	s.o.Log.Warn("an attempt outlived its daybook: it is waited for", "job", r.Job, "key", r.Key, "attempt", r.Attempts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	s.flights[r.Key] = &flight{run: r, cancel: func(error) {}, renewed: now, adopted: dir}
}
