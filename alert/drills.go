package alert

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// DrillStore is the ledger as the one who reminds of drills sees it.
type DrillStore interface {
	JobStates(ctx context.Context) ([]daybook.JobState, error)
	// LastDrills returns when each job was drilled last; one that never was is missing.
	LastDrills(ctx context.Context) (map[string]time.Time, error)
	// FirstDone returns when the oldest window of a job was done; zero: none was.
	FirstDone(ctx context.Context, job string) (time.Time, error)
	AlertRows(ctx context.Context, openOnly bool, limit int) ([]notice.Row, error)
	Alert(ctx context.Context, a *daybook.Alert) error
	RecoverAlert(ctx context.Context, id string, now time.Time) (bool, error)
}

// Drills is a daybook.Service: it reminds, once a quarter, of each job that touches money and was not drilled meanwhile.
type Drills struct {
	Store DrillStore
	first map[string]time.Time // when each job was done first: that does not change
}

// Tick implements daybook.Service: one look at every job.
func (s *Drills) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	states, err := s.Store.JobStates(ctx)
	if err != nil {
		return false, err
	}
	last, err := s.Store.LastDrills(ctx)
	if err != nil {
		return false, err
	}
	open, err := s.Store.AlertRows(ctx, true, openMax)
	if err != nil {
		return false, err
	}
	for _, st := range states {
		due, err := s.due(ctx, st, last)
		if err != nil {
			return false, err
		}
		stands := slices.IndexFunc(open, func(r notice.Row) bool { return r.Kind == daybook.AlertDrillDue && r.Job == st.Name })
		switch over := due.IsZero() || due.After(now); {
		case over && stands >= 0:
			_, err = s.Store.RecoverAlert(ctx, open[stands].Alert.ID, now)
		case !over && stands < 0:
			err = s.Store.Alert(ctx, daybook.NewAlert(daybook.AlertDrillDue, "", st.Name, daybook.P1, since(last[st.Name]), "", now))
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// due is when a job is to be drilled; zero: it is not.
func (s *Drills) due(ctx context.Context, st daybook.JobState, last map[string]time.Time) (time.Time, error) {
	j, err := daybook.JobFromCanonical(st.Definition)
	if err != nil || j.Priority != daybook.P0 || !st.RetiredAt.IsZero() {
		return time.Time{}, nil
	}
	newest := last[st.Name]
	for _, name := range st.Formerly { // a rename carries its drills over
		if at := last[name]; at.After(newest) {
			newest = at
		}
	}
	last[st.Name] = newest
	if s.first[st.Name].IsZero() && newest.IsZero() {
		at, err := s.Store.FirstDone(ctx, st.Name)
		if err != nil {
			return time.Time{}, err
		}
		if s.first == nil {
			s.first = make(map[string]time.Time)
		}
		s.first[st.Name] = at
	}
	return daybook.DrillDue(newest, s.first[st.Name]), nil
}

// since says for how long a job was not drilled.
func since(last time.Time) string {
	if last.IsZero() {
		return "it touches money, and was never drilled"
	}
	return fmt.Sprintf("it touches money, and was drilled last on %s", last.UTC().Format(time.DateOnly))
}
