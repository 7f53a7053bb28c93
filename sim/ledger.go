package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/scheduler"
)

// Ledger is the store as all rooms together need it.
type Ledger interface {
	daybook.Claimer
	scheduler.Store
	control.Store
	daybook.PruneStore
	daybook.FanStore
}

// gated is the ledger as one process reaches it: each call stands at the gate first.
type gated struct {
	Ledger
	p *process
}

func about(what string, r *daybook.Run) string { return fmt.Sprintf("%s %s %d", what, r.Key, r.Fence) }

// Apply carries transitions out in an order that does not depend on who of several ended first in one instant.
func (l *gated) Apply(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	order := make([]int, len(ts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ts[a].Key, ts[b].Key) })
	sorted, name := make([]daybook.Transition, len(ts)), "apply"
	for i, at := range order {
		sorted[i] = ts[at]
		name += fmt.Sprintf(" %s %d %s→%s", ts[at].Key, ts[at].Fence, ts[at].On, ts[at].To)
	}
	if len(ts) == 0 {
		return nil, nil
	}
	applied, err := callOf(ctx, l, ts[0].Key, name, func(ctx context.Context) ([]daybook.Applied, error) { return l.Ledger.Apply(ctx, sorted) })
	if err != nil || len(applied) != len(ts) {
		return applied, err
	}
	back := make([]daybook.Applied, len(ts))
	for i, at := range order {
		back[at] = applied[i]
	}
	return back, nil
}

// Renew renews in an order that does not depend on a map. What the ledger then knows to be lost, it has told.
func (l *gated) Renew(ctx context.Context, held []*daybook.Run, lease, now time.Time) ([]daybook.Notice, error) {
	held = slices.Clone(held)
	slices.SortFunc(held, func(a, b *daybook.Run) int { return cmp.Compare(a.Key, b.Key) })
	notices, err := call(ctx, l, fmt.Sprintf("renew %d", len(held)), func(ctx context.Context) ([]daybook.Notice, error) {
		return l.Ledger.Renew(ctx, held, lease, now)
	})
	for _, r := range held {
		row := l.p.w.history.live[string(r.Key)]
		if err == nil && r.Asking == "" && (row == nil || row.state != "running" || row.fence != r.Fence) {
			l.p.told[attempt{string(r.Key), r.Fence}] = true
		}
	}
	return notices, err
}

// Trigger has three results.
func (l *gated) Trigger(ctx context.Context, a daybook.Ask, template *daybook.Run, now time.Time) (daybook.Reply, *daybook.Run, error) {
	type answer struct {
		reply daybook.Reply
		run   *daybook.Run
	}
	got, err := call(ctx, l, fmt.Sprintf("trigger %s %s", a.Source, a.Key), func(ctx context.Context) (answer, error) {
		reply, run, err := l.Ledger.Trigger(ctx, a, template, now)
		return answer{reply, run}, err
	})
	return got.reply, got.run, err
}

func (l *gated) Plan(ctx context.Context, plans []*daybook.Plan, now time.Time) ([]daybook.Planned, error) {
	return call(ctx, l, "plan", func(ctx context.Context) ([]daybook.Planned, error) { return l.Ledger.Plan(ctx, plans, now) })
}

func (l *gated) TakeRevisions(ctx context.Context, changes []daybook.Revision, retireOthers bool, now time.Time) ([]daybook.JobState, error) {
	return call(ctx, l, "take revisions", func(ctx context.Context) ([]daybook.JobState, error) {
		return l.Ledger.TakeRevisions(ctx, changes, retireOthers, now)
	})
}

func (l *gated) Claim(ctx context.Context, c daybook.Claim, now time.Time) ([]*daybook.Run, error) {
	return call(ctx, l, "claim "+string(c.Lane), func(ctx context.Context) ([]*daybook.Run, error) { return l.Ledger.Claim(ctx, c, now) })
}

func (l *gated) Pause(ctx context.Context, job string, act daybook.Activity) (bool, error) {
	return call(ctx, l, "pause "+job, func(ctx context.Context) (bool, error) { return l.Ledger.Pause(ctx, job, act) })
}

func (l *gated) Resume(ctx context.Context, job string, act daybook.Activity) (bool, error) {
	return call(ctx, l, "resume "+job, func(ctx context.Context) (bool, error) { return l.Ledger.Resume(ctx, job, act) })
}

func (l *gated) Prune(ctx context.Context, r daybook.Retention, now time.Time, limit int, dry bool) (int, error) {
	return call(ctx, l, "prune", func(ctx context.Context) (int, error) { return l.Ledger.Prune(ctx, r, now, limit, dry) })
}

func (l *gated) JobStates(ctx context.Context) ([]daybook.JobState, error) {
	return look(ctx, l, "job states", func(ctx context.Context) ([]daybook.JobState, error) { return l.Ledger.JobStates(ctx) })
}

func (l *gated) JobState(ctx context.Context, job string) (daybook.JobState, bool, error) {
	known := false
	st, err := look(ctx, l, "job state "+job, func(ctx context.Context) (st daybook.JobState, err error) {
		st, known, err = l.Ledger.JobState(ctx, job)
		return st, err
	})
	return st, known, err
}

func (l *gated) Definitions(ctx context.Context, job string, from time.Time) ([]daybook.JobState, error) {
	return look(ctx, l, "definitions "+job, func(ctx context.Context) ([]daybook.JobState, error) { return l.Ledger.Definitions(ctx, job, from) })
}

func (l *gated) Unaccounted(ctx context.Context, job string, windows []daybook.PlannedWindow) ([]daybook.PlannedWindow, error) {
	return look(ctx, l, "unaccounted "+job, func(ctx context.Context) ([]daybook.PlannedWindow, error) {
		return l.Ledger.Unaccounted(ctx, job, windows)
	})
}

func (l *gated) Expired(ctx context.Context, now, ahead time.Time, limit int) ([]*daybook.Run, error) {
	return look(ctx, l, "expired", func(ctx context.Context) ([]*daybook.Run, error) { return l.Ledger.Expired(ctx, now, ahead, limit) })
}

func (l *gated) NextDue(ctx context.Context, home string) (map[daybook.Lane]time.Time, error) {
	return look(ctx, l, "next due", func(ctx context.Context) (map[daybook.Lane]time.Time, error) { return l.Ledger.NextDue(ctx, home) })
}

func (l *gated) Definition(ctx context.Context, job string) (*daybook.Job, error) {
	return look(ctx, l, "definition "+job, func(ctx context.Context) (*daybook.Job, error) { return l.Ledger.Definition(ctx, job) })
}

func (l *gated) Run(ctx context.Context, k daybook.Key) (*daybook.Run, error) {
	return look(ctx, l, "run "+string(k), func(ctx context.Context) (*daybook.Run, error) { return l.Ledger.Run(ctx, k) })
}

func (l *gated) HighestN(ctx context.Context, job, window, subject string) (int, error) {
	return look(ctx, l, "highest n", func(ctx context.Context) (int, error) { return l.Ledger.HighestN(ctx, job, window, subject) })
}

func (l *gated) Scanned(ctx context.Context, jobs []string, now time.Time) error {
	return do(ctx, l, "scanned "+strings.Join(jobs, " "), func(ctx context.Context) error { return l.Ledger.Scanned(ctx, jobs, now) })
}

func (l *gated) Fault(ctx context.Context, job string, p daybook.Priority, text string, now time.Time) error {
	return do(ctx, l, "fault "+job, func(ctx context.Context) error { return l.Ledger.Fault(ctx, job, p, text, now) })
}

func (l *gated) Alert(ctx context.Context, a *daybook.Alert) error {
	return do(ctx, l, "alert "+a.Job, func(ctx context.Context) error { return l.Ledger.Alert(ctx, a) })
}

func (l *gated) Note(ctx context.Context, a daybook.Activity) error {
	return do(ctx, l, "note "+a.Job, func(ctx context.Context) error { return l.Ledger.Note(ctx, a) })
}

func (l *gated) Begin(ctx context.Context, r *daybook.Run, e *daybook.StepRecord, now time.Time) error {
	_, err := callOf(ctx, l, r.Key, about("begin", r), func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Ledger.Begin(ctx, r, e, now) })
	return err
}

func (l *gated) ReleaseAsking(ctx context.Context, runs []*daybook.Run, now time.Time) error {
	return do(ctx, l, "release questions", func(ctx context.Context) error { return l.Ledger.ReleaseAsking(ctx, runs, now) })
}

func (l *gated) MarkStep(ctx context.Context, r *daybook.Run, e *daybook.StepRecord, learned daybook.Learned) error {
	_, err := callOf(ctx, l, r.Key, about("mark "+e.Step+" "+string(e.State), r), func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Ledger.MarkStep(ctx, r, e, learned) })
	return err
}

func (l *gated) Evidence(ctx context.Context, a daybook.Attempt, twice *daybook.Twice) error {
	return do(ctx, l, fmt.Sprintf("evidence %s %d %s", a.Key, a.Fence, a.WireKey), func(ctx context.Context) error { return l.Ledger.Evidence(ctx, a, twice) })
}

func (l *gated) CancelRunning(ctx context.Context, k daybook.Key, fence int64, act daybook.Activity) error {
	return do(ctx, l, "cancel "+string(k), func(ctx context.Context) error { return l.Ledger.CancelRunning(ctx, k, fence, act) })
}

func (l *gated) Unpark(ctx context.Context, now time.Time) (bool, error) {
	return call(ctx, l, "unpark", func(ctx context.Context) (bool, error) { return l.Ledger.Unpark(ctx, now) })
}

func (l *gated) Locks(ctx context.Context, limit int) ([]daybook.Lock, error) {
	return look(ctx, l, "locks", func(ctx context.Context) ([]daybook.Lock, error) { return l.Ledger.Locks(ctx, limit) })
}

// ListChildren has three results.
func (l *gated) ListChildren(ctx context.Context, parent *daybook.Run, children []*daybook.Run, lease time.Time) (fresh, known int, err error) {
	got, err := call(ctx, l, about(fmt.Sprintf("list %d", len(children)), parent), func(ctx context.Context) ([2]int, error) {
		fresh, known, err := l.Ledger.ListChildren(ctx, parent, children, lease)
		return [2]int{fresh, known}, err
	})
	return got[0], got[1], err
}

func (l *gated) Vanished(ctx context.Context, parent *daybook.Run) (int64, error) {
	return look(ctx, l, about("vanished", parent), func(ctx context.Context) (int64, error) { return l.Ledger.Vanished(ctx, parent) })
}

func (l *gated) Fanouts(ctx context.Context, now time.Time, limit int) ([]daybook.Key, error) {
	return look(ctx, l, "fanouts", func(ctx context.Context) ([]daybook.Key, error) { return l.Ledger.Fanouts(ctx, now, limit) })
}

// Look shares its name with what looks.
func (l *gated) Look(ctx context.Context, k daybook.Key, p daybook.Policy, portion int, now time.Time) error {
	return do(ctx, l, "look at "+string(k), func(ctx context.Context) error { return l.Ledger.Look(ctx, k, p, portion, now) })
}
