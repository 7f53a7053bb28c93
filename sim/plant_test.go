package sim

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/executor"
)

// planted is a bug, put between the rooms and the ledger, or between executor and work.
type planted struct {
	name   string
	plants Plants
	says   string // a part of what a checker says of it
}

// ledgerWith changes one call of a ledger or another.
type ledgerWith struct {
	Ledger
	w       *World
	apply   func(ctx context.Context, l Ledger, ts []daybook.Transition) ([]daybook.Applied, error)
	mark    func(ctx context.Context, l Ledger, r *daybook.Run, e *daybook.StepRecord, learned daybook.Learned) error
	markTx  func(ctx context.Context, l Ledger, tx *sql.Tx, r *daybook.Run, e *daybook.StepRecord) error
	begin   func(ctx context.Context, l Ledger, r *daybook.Run, e *daybook.StepRecord, now time.Time) error
	trigger func(ctx context.Context, l Ledger, a daybook.Ask, template *daybook.Run, now time.Time) (daybook.Reply, *daybook.Run, error)
	plan    func(ctx context.Context, l Ledger, plans []*daybook.Plan, now time.Time) ([]daybook.Planned, error)
	claim   func(ctx context.Context, l Ledger, c daybook.Claim, now time.Time) ([]*daybook.Run, error)
	list    func(ctx context.Context, l Ledger, parent *daybook.Run, children []*daybook.Run, lease time.Time) (fresh, known int, err error)
	renew   func(ctx context.Context, l Ledger, held []*daybook.Run, lease, now time.Time) ([]daybook.Notice, error)
	prune   func(ctx context.Context, l Ledger, r daybook.Retention, now time.Time, limit int, dry bool) (int, error)
}

func (l *ledgerWith) Apply(ctx context.Context, ts []daybook.Transition) ([]daybook.Applied, error) {
	if l.apply == nil {
		return l.Ledger.Apply(ctx, ts)
	}
	return l.apply(ctx, l.Ledger, slices.Clone(ts))
}

func (l *ledgerWith) MarkStep(ctx context.Context, r *daybook.Run, e *daybook.StepRecord, learned daybook.Learned) error {
	if l.mark == nil {
		return l.Ledger.MarkStep(ctx, r, e, learned)
	}
	return l.mark(ctx, l.Ledger, r, e, learned)
}

func (l *ledgerWith) MarkStepTx(ctx context.Context, tx *sql.Tx, r *daybook.Run, e *daybook.StepRecord) error {
	if l.markTx == nil {
		return l.Ledger.MarkStepTx(ctx, tx, r, e)
	}
	return l.markTx(ctx, l.Ledger, tx, r, e)
}

func (l *ledgerWith) Begin(ctx context.Context, r *daybook.Run, e *daybook.StepRecord, now time.Time) error {
	if l.begin == nil {
		return l.Ledger.Begin(ctx, r, e, now)
	}
	return l.begin(ctx, l.Ledger, r, e, now)
}

func (l *ledgerWith) Trigger(ctx context.Context, a daybook.Ask, template *daybook.Run, now time.Time) (daybook.Reply, *daybook.Run, error) {
	if l.trigger == nil {
		return l.Ledger.Trigger(ctx, a, template, now)
	}
	return l.trigger(ctx, l.Ledger, a, template, now)
}

func (l *ledgerWith) Plan(ctx context.Context, plans []*daybook.Plan, now time.Time) ([]daybook.Planned, error) {
	if l.plan == nil {
		return l.Ledger.Plan(ctx, plans, now)
	}
	return l.plan(ctx, l.Ledger, plans, now)
}

func (l *ledgerWith) Claim(ctx context.Context, c daybook.Claim, now time.Time) ([]*daybook.Run, error) {
	if l.claim == nil {
		return l.Ledger.Claim(ctx, c, now)
	}
	return l.claim(ctx, l.Ledger, c, now)
}

func (l *ledgerWith) ListChildren(ctx context.Context, parent *daybook.Run, children []*daybook.Run, lease time.Time) (fresh, known int, err error) {
	if l.list == nil {
		return l.Ledger.ListChildren(ctx, parent, children, lease)
	}
	return l.list(ctx, l.Ledger, parent, children, lease)
}

func (l *ledgerWith) Renew(ctx context.Context, held []*daybook.Run, lease, now time.Time) ([]daybook.Notice, error) {
	if l.renew == nil {
		return l.Ledger.Renew(ctx, held, lease, now)
	}
	return l.renew(ctx, l.Ledger, held, lease, now)
}

func (l *ledgerWith) Prune(ctx context.Context, r daybook.Retention, now time.Time, limit int, dry bool) (int, error) {
	if l.prune == nil {
		return l.Ledger.Prune(ctx, r, now, limit, dry)
	}
	return l.prune(ctx, l.Ledger, r, now, limit, dry)
}

// on plants a bug into a ledger.
func on(with ledgerWith) Plants {
	return Plants{Ledger: func(w *World, l Ledger) Ledger {
		with := with
		with.w, with.Ledger = w, l
		return &with
	}}
}

// work plants a bug into how jobs are done.
func work(change func(*executor.Work)) Plants {
	return Plants{OfWork: func(k executor.Work) executor.Work { change(&k); return k }}
}

// asItStands lets a transition compare what is there, whatever it was decided from.
func asItStands(ctx context.Context, l Ledger, t *daybook.Transition, state bool) {
	r, err := l.Run(ctx, t.Key)
	if err != nil || r.State != t.From && !state {
		return
	}
	t.From, t.Fence, t.Claim, t.Asking, t.CancelledBy, t.Marks, t.Lease = r.State, r.Fence, r.Claim, r.Asking, r.CancelledBy, r.Marks, r.Lease
	if t.On == daybook.OnLost {
		t.Began = r.BegunAt
	}
}

// eachEffect changes every effect that a transition writes.
func eachEffect(ts []daybook.Transition, change func(*daybook.Transition, daybook.StepRecord) daybook.StepRecord) {
	for i := range ts {
		t := &ts[i]
		if t.Effect != nil {
			e := change(t, *t.Effect)
			t.Effect = &e
		}
		t.Steps = slices.Clone(t.Steps)
		for j, s := range t.Steps {
			e := change(t, *s)
			t.Steps[j] = &e
		}
	}
}

// twiceUndone is work whose undo is sent twice.
type twiceUndone struct{ daybook.Undoer }

func (u twiceUndone) Undo(ctx context.Context, o daybook.Order, e *daybook.StepRecord) daybook.Outcome {
	out := u.Undoer.Undo(ctx, o, e)
	o.WireKey += "@2"
	return errorsFirst(out, u.Undoer.Undo(ctx, o, e))
}

func errorsFirst(a, b daybook.Outcome) daybook.Outcome {
	if a.Result != daybook.ResultDone {
		return a
	}
	return b
}

var bugs = []planted{
	{"no fence", on(ledgerWith{
		apply: func(ctx context.Context, l Ledger, ts []daybook.Transition) ([]daybook.Applied, error) {
			for i := range ts {
				asItStands(ctx, l, &ts[i], false)
			}
			return l.Apply(ctx, ts)
		},
		mark: func(ctx context.Context, l Ledger, r *daybook.Run, e *daybook.StepRecord, learned daybook.Learned) error {
			if was, err := l.Run(ctx, r.Key); err == nil {
				c := *r
				c.Fence, c.Claim, c.Marks = was.Fence, was.Claim, was.Marks
				r = &c
			}
			return l.MarkStep(ctx, r, e, learned)
		},
	}), "is written by fence"},
	{"no unique key", on(ledgerWith{
		trigger: func(ctx context.Context, l Ledger, a daybook.Ask, template *daybook.Run, now time.Time) (daybook.Reply, *daybook.Run, error) {
			reply, run, err := l.Trigger(ctx, a, template, now)
			if err != nil || template == nil || reply.Outcome == daybook.Started || strings.Contains(string(a.Key), "~") {
				return reply, run, err
			}
			a.Key += "~2"
			c := *template
			c.Key = a.Key
			return l.Trigger(ctx, a, &c, now)
		},
	}), "nobody asked for it"},
	{"unknown read as not done", on(ledgerWith{
		apply: func(ctx context.Context, l Ledger, ts []daybook.Transition) ([]daybook.Applied, error) {
			eachEffect(ts, func(t *daybook.Transition, e daybook.StepRecord) daybook.StepRecord {
				if e.State == daybook.EffectUnknown {
					e.State, e.Open = daybook.EffectNotDone, false
					t.To, t.Reason, t.Due, t.Letter, t.Alerts = daybook.Retryable, daybook.ReasonRetry, t.At, nil, nil
				}
				return e
			})
			return l.Apply(ctx, ts)
		},
	}), "said not to have happened"},
	{"stale transition applied", on(ledgerWith{
		apply: func(ctx context.Context, l Ledger, ts []daybook.Transition) ([]daybook.Applied, error) {
			applied, err := l.Apply(ctx, ts)
			for i := range applied {
				if err == nil && applied[i].Stale {
					asItStands(ctx, l, &ts[i], true)
					if again, err := l.Apply(ctx, ts[i:i+1]); err == nil {
						applied[i] = again[0]
					}
				}
			}
			return applied, err
		},
	}), "is written by fence"},
	{"wire key renewed after unknown", on(ledgerWith{
		apply: func(ctx context.Context, l Ledger, ts []daybook.Transition) ([]daybook.Applied, error) {
			eachEffect(ts, func(_ *daybook.Transition, e daybook.StepRecord) daybook.StepRecord {
				if e.State == daybook.EffectUnknown {
					e.Generation++
				}
				return e
			})
			return l.Apply(ctx, ts)
		},
	}), "next wire key"},
	{"probe believed at once", work(func(k *executor.Work) {
		j := *k.Job
		j.Settles = time.Nanosecond
		k.Job = &j
	}), "on its way"},
	{"cursor moved without rows", on(ledgerWith{
		plan: func(ctx context.Context, l Ledger, plans []*daybook.Plan, now time.Time) ([]daybook.Planned, error) {
			for i, p := range plans {
				c := *p
				if c.Source == daybook.SourceSchedule && len(c.Windows) > 0 {
					c.Windows = c.Windows[1:]
				}
				plans[i] = &c
			}
			return l.Plan(ctx, plans, now)
		},
	}), "passes its window"},
	{"prune frees a key", Plants{Ledger: func(w *World, l Ledger) Ledger {
		return &ledgerWith{Ledger: l, w: w, prune: func(ctx context.Context, l Ledger, r daybook.Retention, now time.Time, limit int, dry bool) (int, error) {
			n, err := l.Prune(ctx, r, now, limit, dry)
			if err == nil && n > 0 {
				_, err = w.db.Write.ExecContext(ctx, "DELETE FROM daybook_runs WHERE pruned_us > 0")
			}
			return n, err
		}}
	}}, "is free again"},
	{"a lost lease noticed late", on(ledgerWith{
		renew: func(ctx context.Context, l Ledger, held []*daybook.Run, lease, now time.Time) ([]daybook.Notice, error) {
			_, err := l.Renew(ctx, held, lease, now)
			return nil, err
		},
	}), "goes on with"},
	{"leases not renewed", on(ledgerWith{
		renew: func(context.Context, Ledger, []*daybook.Run, time.Time, time.Time) ([]daybook.Notice, error) {
			return nil, nil
		},
	}), "is declared over"},
	{"undo run twice", work(func(k *executor.Work) { k.Undoer = twiceUndone{k.Undoer} }), "a second time"},
	{"an undo that is unknown begun anew", on(ledgerWith{
		mark: func(ctx context.Context, l Ledger, r *daybook.Run, e *daybook.StepRecord, learned daybook.Learned) error {
			if c := *e; r.Key.IsUndo() && e.State == daybook.EffectUnknown {
				c.State, c.Generation = daybook.EffectNotDone, c.Generation+1
				e = &c
			}
			return l.MarkStep(ctx, r, e, learned)
		},
	}), "~undo"},
	{"a dead letter not announced", on(ledgerWith{
		apply: func(ctx context.Context, l Ledger, ts []daybook.Transition) ([]daybook.Applied, error) {
			for i := range ts {
				ts[i].Alerts = nil
			}
			return l.Apply(ctx, ts)
		},
	}), "is not announced"},
	{"begun without a mark", on(ledgerWith{
		begin: func(_ context.Context, _ Ledger, r *daybook.Run, e *daybook.StepRecord, now time.Time) error {
			r.BegunAt, r.Effect = now, e
			return nil
		},
	}), "a second time"},
	{"a step that is done is not marked", on(ledgerWith{
		markTx: func(context.Context, Ledger, *sql.Tx, *daybook.Run, *daybook.StepRecord) error { return nil },
	}), "its own transaction wrote"},
	{"memory relied on too long", work(func(k *executor.Work) {
		if j := *k.Job; j.Remembers > 0 {
			j.Remembers = daybook.Forever
			k.Job = &j
		}
	}), "a second time"},
	{"serial lock missing", Plants{Ledger: func(w *World, l Ledger) Ledger {
		return &ledgerWith{Ledger: l, w: w, claim: func(ctx context.Context, l Ledger, c daybook.Claim, now time.Time) ([]*daybook.Run, error) {
			for _, text := range []string{"DELETE FROM daybook_locks", "UPDATE daybook_live SET hold = '' WHERE hold = 'waiting for serial key'"} {
				if _, err := w.db.Write.ExecContext(ctx, text); err != nil {
					return nil, err
				}
			}
			return l.Claim(ctx, c, now)
		}}
	}}, "serial key"},
	{"child listed twice", on(ledgerWith{
		list: func(ctx context.Context, l Ledger, parent *daybook.Run, children []*daybook.Run, lease time.Time) (fresh, known int, err error) {
			list := slices.Clone(children)
			for _, c := range children {
				twin := *c
				twin.Key, twin.Subject = c.Key+".", c.Subject+"."
				list = append(list, &twin)
			}
			return l.ListChildren(ctx, parent, list, lease)
		},
	}), "no listing named it"},
	{"an act of a person lost", on(ledgerWith{
		apply: func(ctx context.Context, l Ledger, ts []daybook.Transition) ([]daybook.Applied, error) {
			if len(ts) == 1 && ts[0].On == daybook.OnResolve {
				return []daybook.Applied{{}}, nil
			}
			return l.Apply(ctx, ts)
		},
	}), "never settled"},
}

// within is how many seeds a bug may stay unseen.
const within = 200

// TestPlantedBugs: every bug that is put in is seen by a checker that looks for it.
func TestPlantedBugs(t *testing.T) {
	tpl := newTemplate(t)
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			var others []string
			for seed := range uint64(within) {
				r := tpl.run(t, seed, b.plants)
				for _, f := range r.Faults {
					if strings.Contains(f, b.says) {
						t.Logf("seed %d: %s", seed, f)
						return
					}
				}
				others = append(others, r.Faults...)
			}
			t.Errorf("%d seeds do not show it; what they say instead: %q", within, others[:min(len(others), 5)])
		})
	}
}
