package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/runner"
	"github.com/daybook-run/daybook/scheduler"
)

// lease is that of all nodes.
const lease = 30 * time.Second

// spec is a job of a seed, and what its far side is like.
type spec struct {
	daybook.Job
	kind      string // once, steps, repeatable
	asks      bool   // the job brings a probe
	stepAsks  bool   // its effects do
	undoes    bool   // its effects can be taken back
	leaves    bool   // but one
	calls     int    // of repeatable work
	fans      int    // subjects of a window; 0: none
	remembers time.Duration
	versions  []func(*daybook.Job) // what each deployment changes
}

// definition is how a process does a job.
type definition struct {
	executor.Work
	schedule scheduler.Schedule
}

// zones in which clocks change, in both hemispheres, by an hour and by half of one.
var zones = []string{"Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana", "Asia/Shanghai", "UTC"}

// makeJobs makes the jobs of a seed. One of them touches money in every seed.
func (w *World) makeJobs() {
	kinds := []string{"once", "steps"}
	w.rng.Shuffle(2, func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	kinds = append(kinds[:1+w.rng.IntN(2)], w.oneOf("repeatable", "repeatable", "fan", "fan", "event", "weekly"))
	serial := w.rng.IntN(3) == 0
	shared := kinds[len(kinds)-1] == "fan" && w.rng.IntN(3) == 0 // two jobs with the same subjects, who have serial keys of their own
	if shared {
		kinds = []string{kinds[0], "fan", "fan"}
	}
	for i, kind := range kinds {
		s := &spec{kind: kind, Job: daybook.Job{Name: fmt.Sprintf("%s%d", kind, i), Owner: "ops", Priority: daybook.P1, Timezone: w.zone, Window: daybook.Day,
			Effects: daybook.Once, Schedule: w.daily(), Settles: []time.Duration{shortLook, 0, 8 * time.Minute}[w.rng.IntN(3)]}}
		if w.rng.IntN(2) == 0 {
			s.Priority = daybook.P0
		}
		w.terms(s)
		switch kind {
		case "event":
			s.kind, s.Schedule, s.Window, s.Work = "once", "", daybook.PerEvent, daybook.Event
		case "weekly":
			s.kind, s.Window = "once", daybook.Week
		case "steps":
			s.Steps = true
			if w.rng.IntN(3) == 0 {
				s.Schedule, s.Window = fmt.Sprintf("%d */8 * * *", w.rng.IntN(60)), daybook.PerFire
			}
			s.stepAsks, s.leaves = w.rng.IntN(2) == 0, w.rng.IntN(4) == 0
		case "fan":
			s.kind = w.oneOf("once", "steps")
			s.Steps, s.fans, s.HasSubjects, w.fans = s.kind == "steps", 2+w.rng.IntN(7), true, true
			if w.rng.IntN(3) == 0 {
				s.Zone = daybook.ZoneOfSubject
			}
			if shared {
				s.Serial, s.Overlap = "sub:{subject}", daybook.Overlap(w.oneOf("wait", "allow"))
			}
			if shared && i == 2 && w.rng.IntN(2) == 0 { // at the same time
				s.Schedule = w.specs[1].Schedule
			}
		case "repeatable":
			s.Effects, s.Priority, s.calls, s.Window = daybook.Repeatable, daybook.P1, 1+w.rng.IntN(5), ""
			s.Schedule = w.oneOf("every 3h", "every 6h", "15 */4 * * *", s.Schedule)
			s.Missed = daybook.Missed(w.oneOf("", "coalesce", "skip", "catch_up"))
			s.Overlap = daybook.Overlap(w.oneOf("", "wait", "skip", "allow"))
		}
		if s.Serial == "" && (serial && s.kind != "repeatable" || w.rng.IntN(8) == 0) {
			s.Serial = "account"
		}
		w.specs = append(w.specs, s)
	}
}

// daily is a time of the day, often within the hours in which clocks change.
func (w *World) daily() string {
	hour := w.rng.IntN(24)
	if w.rng.IntN(2) == 0 {
		hour = w.rng.IntN(4)
	}
	return fmt.Sprintf("%d %d * * *", w.rng.IntN(60), hour)
}

// terms are what far side and ladder of a job are like.
func (w *World) terms(s *spec) {
	s.asks = w.rng.IntN(2) == 0
	s.undoes = w.rng.IntN(3) > 0
	s.Remembers = []time.Duration{0, 0, 2 * time.Hour, 2 * time.Hour, 24 * time.Hour, daybook.Forever}[w.rng.IntN(6)]
	s.remembers = s.Remembers
	s.Timeout = []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute}[w.rng.IntN(3)]
	s.Retry.Backoff = [][]time.Duration{{time.Minute, 5 * time.Minute, 25 * time.Minute}, {30 * time.Second}, {time.Minute, 70 * time.Minute, 80 * time.Minute}, {}}[w.rng.IntN(4)]
	s.versions = []func(*daybook.Job){func(*daybook.Job) {}}
	for range 2 {
		s.versions = append(s.versions, w.change(s))
	}
}

// change is what a deployment does to a job. The meaning of its keys stays.
func (w *World) change(s *spec) func(*daybook.Job) {
	at, rung := w.daily(), w.span(time.Second, 10*time.Minute)
	switch w.rng.IntN(4) {
	case 0:
		return func(j *daybook.Job) {
			if j.Window == daybook.Day {
				j.Schedule = at
			}
		}
	case 1:
		return func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{rung, 2 * rung} }
	case 2:
		return func(j *daybook.Job) { j.Timeout += time.Minute }
	}
	return func(*daybook.Job) {}
}

// definitions are the jobs as a process does them from a version on. A fault of one would be a fault of the simulator.
func (w *World) definitions(p *process, version int) []definition {
	var list []definition
	for _, s := range w.specs {
		j := s.Job
		for v := 1; v <= version; v++ {
			s.versions[(v-1)%len(s.versions)](&j)
		}
		j.HasProbe, j.ProbeUndo = s.asks, s.asks // the far side has both books
		if s.undoes && s.kind == "once" {
			j.UndoURL = "http://127.0.0.1/undo" // the worker says how, in its place
		}
		j, schedule, err := calendar.Complete(j, nil)
		if err != nil {
			panic(err)
		}
		if faults := j.Check(); len(faults) > 0 {
			panic(faults[0].Err)
		}
		do := &worker{w: w, p: p, spec: s}
		do.GoFunc = runner.GoFunc{Do: do.once, Grace: 1000 * time.Hour}
		switch s.kind {
		case "steps":
			do.Do = do.steps
		case "repeatable":
			do.Do = do.repeatable
		}
		k := executor.Work{Job: &j, Runner: do, Undoer: do, List: s.listing(w, p)}
		if s.asks {
			do.Ask = func(ctx context.Context, wireKey string) (any, daybook.Answer, error) {
				return w.far.probe(ctx, p, wireKey)
			}
			k.Prober = do
		}
		list = append(list, definition{w.plants.Work(k), schedule})
	}
	return list
}

// worker does a job in a process.
type worker struct {
	runner.GoFunc
	w    *World
	p    *process
	spec *spec
}

func (k *worker) message(kind, wireKey string, r *daybook.Run) *request {
	return &request{entry: entry{kind: kind, wireKey: wireKey, fence: r.Fence}, remembers: k.spec.remembers}
}

// once is work whose whole attempt is one effect.
func (k *worker) once(ctx context.Context, r *daybook.Run) error {
	id, err := k.w.far.request(ctx, k.p, k.message(charge, r.WireKey(), r))
	if err == nil {
		r.Return(id)
	}
	return err
}

// repeatable work calls the far side a few times, and counts nothing.
func (k *worker) repeatable(ctx context.Context, r *daybook.Run) error {
	for i := range k.spec.calls {
		m := k.message(called, fmt.Sprintf("%s#call%d", r.Key, i), r)
		m.remembers = 0
		if _, err := k.w.far.request(ctx, k.p, m); err != nil {
			return err
		}
	}
	return nil
}

// steps charges, writes to the ledger's database, and sends a receipt.
func (k *worker) steps(ctx context.Context, r *daybook.Run) error {
	if _, err := daybook.Effect(ctx, r, "charge", k.effect(r, k.spec.undoes)); err != nil {
		return err
	}
	if err := k.extend(ctx, r); err != nil {
		return err
	}
	_, err := daybook.Effect(ctx, r, "receipt", k.effect(r, k.spec.undoes && !k.spec.leaves))
	return err
}

func (k *worker) effect(r *daybook.Run, undoes bool) daybook.EffectOf[string] {
	e := daybook.EffectOf[string]{Do: func(ctx context.Context, wireKey string) (string, error) {
		return k.w.far.request(ctx, k.p, k.message(charge, wireKey, r))
	}}
	if k.spec.stepAsks {
		e.Probe = func(ctx context.Context, wireKey string) (string, daybook.Answer, error) {
			return k.w.far.probe(ctx, k.p, wireKey)
		}
	}
	if undoes {
		e.Undo = func(ctx context.Context, undoKey string, _ string) error {
			m := k.message(refund, undoKey, r)
			_, err := k.w.far.request(ctx, k.p, m)
			return err
		}
	}
	return e
}

// extend is a step in a transaction of the caller's own, on the ledger's database.
func (k *worker) extend(ctx context.Context, r *daybook.Run) error {
	_, err := call(ctx, &gated{p: k.p}, "extend "+string(r.Key), func(ctx context.Context) (struct{}, error) {
		tx, err := k.w.db.Write.BeginTx(ctx, nil)
		if err != nil {
			return struct{}{}, err
		}
		done, err := daybook.StepTx(ctx, tx, r, "extend")
		if err != nil || done {
			return struct{}{}, errors.Join(err, tx.Rollback())
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO sim_extended (run) VALUES (?)", string(r.Key)); err != nil {
			return struct{}{}, errors.Join(err, tx.Rollback())
		}
		return struct{}{}, tx.Commit()
	})
	return err
}

// CanUndo and Undo take back a whole attempt too.
func (k *worker) CanUndo(o daybook.Order, e *daybook.StepRecord) bool {
	return e.Step == daybook.StepRun && k.spec.undoes || k.GoFunc.CanUndo(o, e)
}

// Undo implements daybook.Undoer.
func (k *worker) Undo(ctx context.Context, o daybook.Order, e *daybook.StepRecord) daybook.Outcome {
	if e.Step != daybook.StepRun {
		return k.GoFunc.Undo(ctx, o, e)
	}
	_, err := k.w.far.request(ctx, k.p, k.message(refund, o.WireKey, o.Run))
	return daybook.OutcomeOf(err)
}

func (w *World) spec(job string) *spec {
	if i := slices.IndexFunc(w.specs, func(s *spec) bool { return s.Name == job }); i >= 0 {
		return w.specs[i]
	}
	return nil
}
