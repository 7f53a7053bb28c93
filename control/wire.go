package control

import (
	"encoding/json"
	"time"

	"github.com/daybook-run/daybook"
)

// What --json and the API answer. The names and their meaning are stable: a field may be added, none changes. Instants are
// RFC 3339 in UTC; what is not known is left out.

// RunJSON is daybook/run.v1.
type RunJSON struct {
	Schema       string           `json:"schema,omitempty"`
	Key          daybook.Key      `json:"key"`
	Job          string           `json:"job"`
	Window       string           `json:"window"`
	Date         string           `json:"date,omitempty"`
	WindowStart  time.Time        `json:"window_start,omitzero"`
	WindowEnd    time.Time        `json:"window_end,omitzero"`
	Subject      string           `json:"subject,omitempty"`
	Timezone     string           `json:"timezone"`
	Priority     daybook.Priority `json:"priority"`
	State        daybook.State    `json:"state"`
	Reason       daybook.Reason   `json:"reason,omitempty"`
	Hold         daybook.Reason   `json:"hold,omitempty"`
	UndoWaits    bool             `json:"undo_waits,omitempty"`  // with the reason undoing: the undo waits for a person
	FrozenUntil  time.Time        `json:"frozen_until,omitzero"` // with the hold frozen
	Serial       string           `json:"serial,omitempty"`
	Lock         *LockJSON        `json:"lock,omitempty"`      // who has the serial key; a run that is asked for alone has it
	WaitsFor     []ObstacleJSON   `json:"waits_for,omitempty"` // who stands in its way, and whether a person must let it go on; likewise
	Lane         daybook.Lane     `json:"lane"`
	Effects      daybook.Effects  `json:"effects"`
	Revision     int64            `json:"revision"`
	Home         string           `json:"home,omitempty"`
	CoveredBy    daybook.Key      `json:"covered_by,omitempty"`
	Created      time.Time        `json:"created,omitzero"`
	Due          time.Time        `json:"due,omitzero"`
	Started      time.Time        `json:"started,omitzero"`
	Ended        time.Time        `json:"ended,omitzero"`
	Node         string           `json:"node,omitempty"`
	CancelledBy  string           `json:"cancelled_by,omitempty"`
	Attempts     int              `json:"attempts"`
	Failures     int              `json:"failures"`
	Triggers     int              `json:"triggers"`
	Refused      int              `json:"refused,omitempty"`
	FirstTrigger string           `json:"first_trigger,omitempty"`
	FirstActor   string           `json:"first_actor,omitempty"`
	Error        string           `json:"error,omitempty"`
	Counts       map[string]int64 `json:"counts,omitempty"`
	Result       json.RawMessage  `json:"result,omitempty"`
	PayloadHash  string           `json:"payload_hash,omitempty"`
	Effect       *EffectJSON      `json:"effect,omitempty"`
	Steps        []*EffectJSON    `json:"steps,omitempty"`
	Letter       *LetterJSON      `json:"letter,omitempty"`
	Parent       daybook.Key      `json:"parent,omitempty"`
	Subjects     *SubjectsJSON    `json:"subjects,omitempty"`
	Pruned       time.Time        `json:"pruned,omitzero"`
}

// SubjectsJSON says how the subjects of a run stand.
type SubjectsJSON struct {
	Of        int64  `json:"of"`
	Done      int64  `json:"done"`
	Scheduled int64  `json:"scheduled"`
	Running   int64  `json:"running"`
	Retryable int64  `json:"retryable"`
	Dead      int64  `json:"dead"`
	Cancelled int64  `json:"cancelled"`
	Letters   int64  `json:"open_letters"`
	Unknown   int64  `json:"unknown"`
	Repeated  int64  `json:"repeated,omitempty"`
	Faulty    int64  `json:"faulty,omitempty"`
	Fault     string `json:"fault,omitempty"`
	Vanished  int64  `json:"vanished,omitempty"`
	Breaker   string `json:"breaker,omitempty"` // why no more are let go
}

func newSubjectsJSON(n *daybook.SubjectCounts) *SubjectsJSON {
	if n == nil {
		return nil
	}
	s := n.States
	j := &SubjectsJSON{Of: n.Of, Done: s[daybook.Done], Scheduled: s[daybook.Scheduled], Running: s[daybook.Running], Retryable: s[daybook.Retryable], Dead: s[daybook.Dead],
		Cancelled: s[daybook.Cancelled], Letters: n.Letters, Unknown: n.Unknown, Repeated: n.Repeated, Faulty: n.Faulty, Fault: n.Fault, Vanished: n.Vanished}
	if n.Breaker != nil {
		j.Breaker = n.Breaker.Error
	}
	return j
}

// EffectJSON is where an effect, or a step, of a run stands.
type EffectJSON struct {
	Step      string              `json:"step"`
	State     daybook.EffectState `json:"state"`
	Plain     bool                `json:"plain,omitempty"` // it touches nothing outside
	WireKey   string              `json:"wire_key,omitempty"`
	Tries     int                 `json:"tries"`
	Error     string              `json:"error,omitempty"`
	First     time.Time           `json:"first,omitzero"`
	Ended     time.Time           `json:"ended,omitzero"`
	SettledBy string              `json:"settled_by,omitempty"`
	Result    json.RawMessage     `json:"result,omitempty"`
}

// NewRunJSON returns a run as it is answered; nil for none.
func NewRunJSON(r *daybook.Run) *RunJSON {
	if r == nil {
		return nil
	}
	j := &RunJSON{Schema: "daybook/run.v1", Key: r.Key, Job: r.Job, Window: r.Window.Label, Date: r.Window.Date, WindowStart: r.Window.Start, WindowEnd: r.Window.End,
		Subject: r.Subject, Timezone: r.Zone, Priority: r.Priority, State: r.State, Reason: r.Reason, Hold: r.Hold, UndoWaits: r.UndoWaits, Serial: r.Serial, Lane: r.Lane, Effects: r.Effects,
		Revision: r.Revision, Home: r.Home, CoveredBy: r.CoveredBy, Created: r.CreatedAt, Ended: r.EndedAt, Node: r.Node, CancelledBy: r.CancelledBy,
		Attempts: r.Attempts, Failures: r.Failures, Triggers: r.Triggers, Refused: r.Refused, FirstTrigger: string(r.FirstSource), FirstActor: r.FirstActor,
		Error: r.LastError, Counts: r.Counts, Result: r.Result, PayloadHash: r.PayloadHash, Pruned: r.PrunedAt, Parent: r.SubjectOf(), Subjects: newSubjectsJSON(r.Subjects)}
	if r.Hold == daybook.ReasonFrozen {
		j.FrozenUntil = r.FrozenUntil
	}
	j.Started = StartedAt(r)
	if r.State.Live() {
		j.Due = r.Due
	}
	if e := r.Effect; e != nil {
		j.Effect = newEffectJSON(e)
	}
	for _, e := range r.Records {
		j.Steps = append(j.Steps, newEffectJSON(e))
	}
	if r.Letter != nil {
		j.Letter = NewLetterJSON(*r.Letter)
		j.Letter.Schema = ""
	}
	return j
}

func newEffectJSON(e *daybook.StepRecord) *EffectJSON {
	j := &EffectJSON{Step: e.Step, Plain: e.Plain, State: e.State, Tries: e.Tries, First: e.FirstAt, Ended: e.EndedAt, SettledBy: e.SettledBy, Error: e.Error, Result: e.Data}
	if !e.Plain {
		j.WireKey = e.WireKey()
	}
	return j
}

// StartedAt is when the attempt began that runs, or that ended the run.
func StartedAt(r *daybook.Run) time.Time {
	if r.State == daybook.Running {
		if r.BegunAt.IsZero() {
			return r.ClaimedAt
		}
		return r.BegunAt
	}
	return r.StartedAt
}

// LetterJSON is daybook/letter.v1.
type LetterJSON struct {
	Schema   string              `json:"schema,omitempty"`
	ID       string              `json:"id"`
	Key      daybook.Key         `json:"key"`
	Job      string              `json:"job"`
	Priority daybook.Priority    `json:"priority"`
	Kind     daybook.LetterKind  `json:"kind"`
	State    daybook.LetterState `json:"state"`
	Error    string              `json:"error"`
	Opened   time.Time           `json:"opened"`
	Closed   time.Time           `json:"closed,omitzero"`
	ClosedBy string              `json:"closed_by,omitempty"`
	Reason   string              `json:"reason,omitempty"`
	Refused  int                 `json:"refused"`
}

// NewLetterJSON returns a letter as it is answered.
func NewLetterJSON(l daybook.Letter) *LetterJSON {
	return &LetterJSON{Schema: "daybook/letter.v1", ID: l.ID, Key: l.Key, Job: l.Job, Priority: l.Priority, Kind: l.Kind, State: l.State, Error: l.Error,
		Opened: l.OpenedAt, Closed: l.ClosedAt, ClosedBy: l.ClosedBy, Reason: l.Note, Refused: l.Refused}
}

// AnswerJSON is daybook/trigger.v1: what became of a trigger.
type AnswerJSON struct {
	Schema         string                 `json:"schema"`
	Key            daybook.Key            `json:"key"`
	Outcome        daybook.TriggerOutcome `json:"outcome"`
	Because        string                 `json:"because"`
	Exit           int                    `json:"exit"`
	HTTP           int                    `json:"http"`
	Message        string                 `json:"message"`
	Next           string                 `json:"next,omitempty"`
	Opens          time.Time              `json:"opens,omitzero"`
	Difference     daybook.Texts          `json:"difference,omitempty"`
	NobodyExecutes bool                   `json:"nobody_executes,omitempty"`
	DryRun         bool                   `json:"dry_run,omitempty"`
	Run            *RunJSON               `json:"run,omitempty"`
	Cover          *RunJSON               `json:"cover,omitempty"`
}

// NewAnswerJSON returns the answer to a trigger.
func NewAnswerJSON(an Answer) *AnswerJSON {
	j := &AnswerJSON{Schema: "daybook/trigger.v1", Key: an.Key, Outcome: an.Outcome, Because: an.Because, Exit: an.Exit, HTTP: an.HTTP, Message: an.Line(), Next: an.Next(),
		Difference: an.Difference, NobodyExecutes: an.NobodyExecutes, Run: Nested(an.Run), Cover: Nested(an.Cover)}
	if an.Because == daybook.BecauseNotOpen || an.Ask.Early {
		j.Opens = an.Opens
	}
	return j
}

// Nested is a run inside another answer, whose schema says what it is.
func Nested(r *daybook.Run) *RunJSON {
	j := NewRunJSON(r)
	if j != nil {
		j.Schema = ""
	}
	return j
}

// ActedJSON is daybook/act.v1: what became of an act on a run.
type ActedJSON struct {
	Schema         string        `json:"schema"`
	Key            daybook.Key   `json:"key"`
	Act            string        `json:"act"`
	From           daybook.State `json:"from"`
	To             daybook.State `json:"to"`
	Asked          bool          `json:"asked,omitempty"`
	Message        string        `json:"message"`
	Next           string        `json:"next,omitempty"`
	NobodyExecutes bool          `json:"nobody_executes,omitempty"`
	DryRun         bool          `json:"dry_run,omitempty"`
	Run            *RunJSON      `json:"run,omitempty"`
}

// NewActedJSON returns what became of an act.
func NewActedJSON(a Acted) ActedJSON {
	return ActedJSON{Schema: "daybook/act.v1", Key: a.Key, Act: a.Act, From: a.From, To: a.Run.State, Asked: a.Asked, Message: a.Line(), Next: a.Next(),
		NobodyExecutes: a.NobodyExecutes, Run: Nested(a.Run)}
}

// ReplayPlanJSON is daybook/replay_plan.v1.
type ReplayPlanJSON struct {
	Schema   string              `json:"schema"`
	ID       string              `json:"id,omitempty"`
	Job      string              `json:"job,omitempty"`
	Letters  int                 `json:"letters"`
	Subjects map[daybook.Key]int `json:"subjects,omitempty"`
	First    []*LetterJSON       `json:"first"`
}

// NewReplayPlanJSON returns a plan as it is answered.
func NewReplayPlanJSON(p ReplayPlan) ReplayPlanJSON {
	j := ReplayPlanJSON{Schema: "daybook/replay_plan.v1", ID: p.ID, Job: p.Job, Letters: p.Letters, Subjects: p.Subjects, First: []*LetterJSON{}}
	for _, l := range p.First {
		j.First = append(j.First, NewLetterJSON(l))
	}
	return j
}

// StatusJSON is daybook/status.v1.
type StatusJSON struct {
	Schema   string        `json:"schema"`
	At       time.Time     `json:"at"`
	Exit     int           `json:"exit"`
	Ran      JudgementJSON `json:"ran"`
	Money    JudgementJSON `json:"money"`
	NeedsYou []NeedJSON    `json:"needs_you"`
	Late     []LateJSON    `json:"late"`
	Today    []TodayJSON   `json:"today"`
	Done     int           `json:"done"`
	Of       int           `json:"of"`
	Next     []ComingJSON  `json:"next"`
	Live     LiveJSON      `json:"live"`
	Letters  int           `json:"open_letters"`
	Unknown  int           `json:"unknown"`
	Holds    []string      `json:"holds"`
	Freezes  []string      `json:"freezes,omitempty"` // that stand
	Frozen   int           `json:"frozen,omitempty"`  // runs that they put off
	Serves   int           `json:"serves"`
	SeenAt   time.Time     `json:"serve_seen,omitzero"`
}

// JudgementJSON is one verdict.
type JudgementJSON struct {
	Verdict Verdict        `json:"verdict"`
	Because []daybook.Text `json:"because"`
}

// NeedJSON is one thing that needs a person.
type NeedJSON struct {
	Priority daybook.Priority `json:"priority"`
	Kind     string           `json:"kind"`
	Job      string           `json:"job,omitempty"`
	Key      daybook.Key      `json:"key,omitempty"`
	Text     daybook.Text     `json:"text"`
	Do       daybook.Text     `json:"do"`
	Since    time.Time        `json:"since,omitzero"`
	WireKey  string           `json:"wire_key,omitempty"` // of an unknown outcome
	Alert    string           `json:"alert,omitempty"`
}

// LateJSON is a window that is late.
type LateJSON struct {
	Key      daybook.Key      `json:"key"`
	Priority daybook.Priority `json:"priority"`
	Since    time.Time        `json:"since"`
	Over     bool             `json:"over_grace"`
}

// TodayJSON is a job on today's page.
type TodayJSON struct {
	Job      string           `json:"job"`
	Priority daybook.Priority `json:"priority,omitempty"`
	Key      daybook.Key      `json:"key,omitempty"`
	State    string           `json:"state"`
	Started  time.Time        `json:"started,omitzero"`
	Ended    time.Time        `json:"ended,omitzero"`
	Triggers int              `json:"triggers"`
	Ran      int              `json:"ran"`
	Counts   map[string]int64 `json:"counts,omitempty"`
}

// ComingJSON is a fire to come.
type ComingJSON struct {
	Fire time.Time   `json:"fire"`
	Job  string      `json:"job"`
	Key  daybook.Key `json:"key"`
}

// LiveJSON counts what is not at rest.
type LiveJSON struct {
	Scheduled int `json:"scheduled"`
	Running   int `json:"running"`
	Retryable int `json:"retryable"`
}

// NewStatusJSON returns both verdicts with what they rest on.
func NewStatusJSON(s Status) StatusJSON {
	because := func(j Judgement) JudgementJSON {
		return JudgementJSON{j.Verdict, append([]daybook.Text{}, j.Because...)}
	}
	j := StatusJSON{Schema: "daybook/status.v1", At: s.At, Exit: s.Exit(), Ran: because(s.Ran), Money: because(s.Money), NeedsYou: []NeedJSON{}, Late: []LateJSON{},
		Today: []TodayJSON{}, Done: s.Done, Of: s.Of, Next: []ComingJSON{}, Letters: s.Counts.OpenLetters, Unknown: s.Counts.Unknown, Holds: []string{},
		Live:   LiveJSON{s.Counts.Live[daybook.Scheduled], s.Counts.Live[daybook.Running], s.Counts.Live[daybook.Retryable]},
		Serves: len(s.Serves), SeenAt: s.SeenAt, Frozen: s.Frozen}
	for _, n := range s.NeedsYou {
		j.NeedsYou = append(j.NeedsYou, NeedJSON{n.Priority, n.Kind, n.Job, n.Key, n.Text, n.Do, n.Since, n.WireKey, n.Alert})
	}
	for _, l := range s.Late {
		j.Late = append(j.Late, LateJSON{l.Key, l.Priority, l.Since, l.Over})
	}
	for _, v := range s.Jobs {
		t := TodayJSON{Job: v.Name, State: v.Standing()}
		if v.Job != nil {
			t.Priority = v.Job.Priority
		}
		if r := v.Last; r != nil {
			t.Key, t.Started, t.Ended, t.Triggers, t.Ran, t.Counts = r.Key, StartedAt(r), r.EndedAt, r.Triggers, r.Attempts, r.Counts
		}
		j.Today = append(j.Today, t)
	}
	for _, n := range s.Next {
		j.Next = append(j.Next, ComingJSON{n.Fire.At, n.Job, n.Key})
	}
	for _, h := range s.Holds {
		j.Holds = append(j.Holds, h.Name)
	}
	for _, f := range s.Freezes {
		j.Freezes = append(j.Freezes, f.Name)
	}
	return j
}

// Standing is the state of a job's newest window, or why there is none.
func (v JobView) Standing() string {
	switch {
	case v.Fault != "":
		return "fault"
	case v.State.Paused:
		return "paused"
	case v.Last == nil:
		return "never ran"
	}
	return string(v.Last.State)
}
