package alert

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// WatchStore is the ledger as the watcher sees it.
type WatchStore interface {
	JobStates(ctx context.Context) ([]daybook.JobState, error)
	LastGood(ctx context.Context) (map[string]daybook.Good, error)
	Holds(ctx context.Context) ([]daybook.Hold, error)
	Freezes(ctx context.Context, after time.Time) ([]daybook.Freeze, error)
	// Runs returns the newest windows of a job, newest first.
	Runs(ctx context.Context, f daybook.Filter) ([]*daybook.Run, error)
	Run(ctx context.Context, k daybook.Key) (*daybook.Run, error)
	AlertRows(ctx context.Context, openOnly bool, limit int) ([]notice.Row, error)
	Alert(ctx context.Context, a *daybook.Alert) error
	RecoverAlert(ctx context.Context, id string, now time.Time) (bool, error)
}

// WatchOptions of NewWatcher.
type WatchOptions struct {
	// Compile completes a stored definition.
	Compile func(daybook.Job) (*daybook.Job, Schedule, error)
	// Freezes returns those of the file that end after one instant and begin before another; nil: there is no file.
	Freezes func(ends, begins time.Time) []daybook.Freeze
	Every   time.Duration // between rounds; default: a minute
	Log     *slog.Logger
}

const (
	watchEvery = time.Minute
	frozenBack = 8 * 24 * time.Hour // how far back a freeze still excuses what is late or silent
	watchRuns  = 30                 // newest windows of a job that are looked at
	openMax    = 5000               // open alerts that are compared
)

// Watcher is a daybook.Service: it raises the alerts that come from nothing happening, silent and late, and ends them when
// it happens. Several may share a ledger: an alert stands open once.
type Watcher struct {
	store    WatchStore
	o        WatchOptions
	next     time.Time
	compiled map[string]compiled // by job
}

type compiled struct {
	revision int64
	job      *daybook.Job
	schedule Schedule
	fault    bool
}

// NewWatcher returns a watcher that begins with the first Tick.
func NewWatcher(store WatchStore, o WatchOptions) *Watcher {
	if o.Every <= 0 {
		o.Every = watchEvery
	}
	if o.Freezes == nil {
		o.Freezes = func(_, _ time.Time) []daybook.Freeze { return nil }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Watcher{store: store, o: o, compiled: make(map[string]compiled)}
}

// Wait implements loop.Waiter.
func (w *Watcher) Wait(now time.Time) time.Duration { return max(w.next.Sub(now), 0) }

// Tick implements daybook.Service: one look at every job, once a minute.
func (w *Watcher) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	if now.Before(w.next) && w.next.Sub(now) <= w.o.Every {
		return false, nil
	}
	states, err := w.store.JobStates(ctx)
	if err != nil {
		return false, err
	}
	good, err := w.store.LastGood(ctx)
	if err != nil {
		return false, err
	}
	open, err := w.store.AlertRows(ctx, true, openMax)
	if err != nil {
		return false, err
	}
	holds, err := w.store.Holds(ctx)
	if err != nil {
		return false, err
	}
	freezes, err := w.store.Freezes(ctx, now.Add(-frozenBack))
	if err != nil {
		return false, err
	}
	ofFile := append(w.o.Freezes(now.Add(-frozenBack), now), freezes...)
	stands := map[string]bool{} // silent jobs
	late := map[daybook.Key]bool{}
	seen := map[string]bool{} // jobs that could be looked at
	for _, st := range states {
		c := w.compile(st)
		if c.fault {
			continue
		}
		seen[st.Name] = true
		runs, err := w.store.Runs(ctx, daybook.Filter{Job: st.Name, Limit: watchRuns})
		if err != nil {
			return false, err
		}
		hold := freezes
		if st.Home == "" { // else those of the file do not hold it
			hold = ofFile
		}
		job := &Watched{Job: c.job, Schedule: c.schedule, State: st, LastGood: good[st.Name], Runs: runs, Frozen: daybook.FrozenSpans(hold, c.job.Priority),
			Held: c.job.Effects == daybook.Once && len(holds) > 0}
		if a := Silent(job, now); a != nil {
			stands[st.Name] = true
			if err := w.raise(ctx, a, open); err != nil {
				return false, err
			}
		}
		keys, a := Late(job, now)
		for _, k := range keys {
			late[k] = true
		}
		if a != nil {
			if err := w.raise(ctx, a, open); err != nil {
				return false, err
			}
		}
	}
	for _, r := range open {
		if !seen[r.Job] {
			continue
		}
		over := r.Kind == JobSilent && !stands[r.Job]
		if r.Kind == daybook.AlertJobLate && r.Alert.Key != "" && !late[r.Alert.Key] {
			if over, err = w.arrived(ctx, r.Alert.Key); err != nil {
				return false, err
			}
		}
		if over {
			if _, err := w.store.RecoverAlert(ctx, r.Alert.ID, now); err != nil {
				return false, err
			}
		}
	}
	w.next = now.Add(w.o.Every)
	return false, nil
}

// compile completes a definition once a revision.
func (w *Watcher) compile(st daybook.JobState) compiled {
	if c, ok := w.compiled[st.Name]; ok && c.revision == st.Revision {
		return c
	}
	c := compiled{revision: st.Revision}
	definition, err := daybook.JobFromCanonical(st.Definition)
	if err == nil {
		c.job, c.schedule, err = w.o.Compile(definition)
	}
	if c.fault = err != nil; c.fault {
		w.o.Log.Warn("a job is not watched: its definition cannot be worked out", "job", st.Name, "err", err)
	}
	w.compiled[st.Name] = c
	return c
}

// raise writes an alert unless one of its kind stands open: for a late window unless one of the same job does, because one
// cause makes many windows late.
func (w *Watcher) raise(ctx context.Context, a *daybook.Alert, open []notice.Row) error {
	if slices.ContainsFunc(open, func(r notice.Row) bool {
		if a.Kind == JobSilent || a.Key == "" {
			return r.Kind == a.Kind && r.Job == a.Job
		}
		return r.Kind == a.Kind && r.Alert.Key == a.Key // whose job may have another name since
	}) {
		return nil
	}
	return w.store.Alert(ctx, a)
}

// arrived reports whether a window that was late is not any more: done, covered by another, given up by a person, dead,
// which is told by itself, or at work. One that was skipped is told until a person has seen it, and one that waits for
// `daybook once` until it is done.
func (w *Watcher) arrived(ctx context.Context, k daybook.Key) (bool, error) {
	r, err := w.store.Run(ctx, k)
	if daybook.CodeOf(err) == daybook.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case r.State == daybook.Skipped:
		return false, nil
	case r.State.Live():
		return r.Home != daybook.HomeOnce && r.Attempts > 0, nil
	}
	return true, nil
}
