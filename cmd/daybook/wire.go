package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// What --json answers. The names and their meaning are stable: a field may be added, none changes. Instants are RFC 3339
// in UTC; what is not known is left out.

// runJSON is daybook/run.v1.
type runJSON struct {
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
	Effect       *effectJSON      `json:"effect,omitempty"`
	Letter       *letterJSON      `json:"letter,omitempty"`
	Pruned       time.Time        `json:"pruned,omitzero"`
}

// effectJSON is where the effect of a run stands.
type effectJSON struct {
	Step      string              `json:"step"`
	State     daybook.EffectState `json:"state"`
	WireKey   string              `json:"wire_key"`
	Tries     int                 `json:"tries"`
	First     time.Time           `json:"first,omitzero"`
	Ended     time.Time           `json:"ended,omitzero"`
	SettledBy string              `json:"settled_by,omitempty"`
	Result    json.RawMessage     `json:"result,omitempty"`
}

func newRunJSON(r *daybook.Run) *runJSON {
	if r == nil {
		return nil
	}
	j := &runJSON{Schema: "daybook/run.v1", Key: r.Key, Job: r.Job, Window: r.Window.Label, Date: r.Window.Date, WindowStart: r.Window.Start, WindowEnd: r.Window.End,
		Subject: r.Subject, Timezone: r.Zone, Priority: r.Priority, State: r.State, Reason: r.Reason, Hold: r.Hold, Lane: r.Lane, Effects: r.Effects,
		Revision: r.Revision, Home: r.Home, CoveredBy: r.CoveredBy, Created: r.CreatedAt, Ended: r.EndedAt, Node: r.Node, CancelledBy: r.CancelledBy,
		Attempts: r.Attempts, Failures: r.Failures, Triggers: r.Triggers, Refused: r.Refused, FirstTrigger: string(r.FirstSource), FirstActor: r.FirstActor,
		Error: r.LastError, Counts: r.Counts, Result: r.Result, PayloadHash: r.PayloadHash, Pruned: r.PrunedAt}
	j.Started = startedAt(r)
	if r.State.Live() {
		j.Due = r.Due
	}
	if e := r.Effect; e != nil {
		j.Effect = &effectJSON{Step: e.Step, State: e.State, WireKey: r.Key.WireKey(e.Step, e.Generation), Tries: e.Tries, First: e.FirstAt, Ended: e.EndedAt,
			SettledBy: e.SettledBy, Result: e.Data}
	}
	if r.Letter != nil {
		j.Letter = newLetterJSON(*r.Letter)
		j.Letter.Schema = ""
	}
	return j
}

// startedAt is when the attempt began that runs, or that ended the run.
func startedAt(r *daybook.Run) time.Time {
	if r.State == daybook.Running {
		if r.BegunAt.IsZero() {
			return r.ClaimedAt
		}
		return r.BegunAt
	}
	return r.StartedAt
}

// letterJSON is daybook/letter.v1.
type letterJSON struct {
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

func newLetterJSON(l daybook.Letter) *letterJSON {
	return &letterJSON{Schema: "daybook/letter.v1", ID: l.ID, Key: l.Key, Job: l.Job, Priority: l.Priority, Kind: l.Kind, State: l.State, Error: l.Error,
		Opened: l.OpenedAt, Closed: l.ClosedAt, ClosedBy: l.ClosedBy, Reason: l.Note, Refused: l.Refused}
}

// answerJSON is daybook/trigger.v1: what became of a trigger.
type answerJSON struct {
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
	Run            *runJSON               `json:"run,omitempty"`
	Cover          *runJSON               `json:"cover,omitempty"`
}

func newAnswerJSON(an control.Answer) *answerJSON {
	j := &answerJSON{Schema: "daybook/trigger.v1", Key: an.Key, Outcome: an.Outcome, Because: an.Because, Exit: an.Exit, HTTP: an.HTTP, Message: an.Line(), Next: an.Next(),
		Difference: an.Difference, NobodyExecutes: an.NobodyExecutes, Run: nested(an.Run), Cover: nested(an.Cover)}
	if an.Because == daybook.BecauseNotOpen || an.Ask.Early {
		j.Opens = an.Opens
	}
	return j
}

// nested is a run inside another answer, whose schema says what it is.
func nested(r *daybook.Run) *runJSON {
	j := newRunJSON(r)
	if j != nil {
		j.Schema = ""
	}
	return j
}

// actedJSON is daybook/act.v1: what became of an act on a run.
type actedJSON struct {
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
	Run            *runJSON      `json:"run,omitempty"`
}

// attemptJSON is one try of a run, or one question about it.
type attemptJSON struct {
	Number     int             `json:"number"`
	Fence      int64           `json:"fence"`
	Question   bool            `json:"question,omitempty"`
	Node       string          `json:"node,omitempty"`
	WireKey    string          `json:"wire_key,omitempty"`
	Command    string          `json:"command,omitempty"`
	Revision   int64           `json:"revision,omitempty"`
	Claimed    time.Time       `json:"claimed,omitzero"`
	Begun      time.Time       `json:"begun,omitzero"`
	Ended      time.Time       `json:"ended,omitzero"`
	Outcome    daybook.Result  `json:"outcome,omitempty"`
	Detail     string          `json:"detail,omitempty"`
	Error      string          `json:"error,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Late       daybook.Result  `json:"late,omitempty"`
	LateAt     time.Time       `json:"late_at,omitzero"`
	LateTaken  bool            `json:"late_taken,omitempty"`
	LateReason string          `json:"late_error,omitempty"`
}

func newAttemptJSON(t daybook.Attempt) attemptJSON {
	return attemptJSON{Number: t.Number, Fence: t.Fence, Question: t.Probe, Node: t.Node, WireKey: t.WireKey, Command: t.Command, Revision: t.Revision,
		Claimed: t.ClaimedAt, Begun: t.BegunAt, Ended: t.EndedAt, Outcome: t.Result, Detail: t.Detail, Error: t.Error, Result: t.Data,
		Late: t.LateResult, LateAt: t.LateAt, LateTaken: t.LateTaken, LateReason: t.LateError}
}

// triggerJSON is one knock at the door of a key.
type triggerJSON struct {
	At      time.Time              `json:"at"`
	Source  daybook.Source         `json:"source"`
	Actor   string                 `json:"actor,omitempty"`
	Outcome daybook.TriggerOutcome `json:"outcome"`
	Fire    string                 `json:"fire,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
}

// activityJSON is daybook/activity.v1.
type activityJSON struct {
	Schema string      `json:"schema,omitempty"`
	At     time.Time   `json:"at"`
	Actor  string      `json:"actor"`
	Action string      `json:"action"`
	Key    daybook.Key `json:"key,omitempty"`
	Job    string      `json:"job,omitempty"`
	Reason string      `json:"reason,omitempty"`
	Before string      `json:"before,omitempty"`
	After  string      `json:"after,omitempty"`
}

func newActivityJSON(t daybook.Activity) activityJSON {
	return activityJSON{Schema: "daybook/activity.v1", At: t.At, Actor: t.Actor, Action: t.Action, Key: t.Key, Job: t.Job, Reason: t.Note, Before: t.Before, After: t.After}
}

// definitionJSON is a definition with the names of the file. Durations are written as there; secrets stay references.
type definitionJSON struct {
	Run           []string             `json:"run,omitempty"`
	Shell         string               `json:"shell,omitempty"`
	HTTP          string               `json:"http,omitempty"` // method and URL
	Env           []string             `json:"env,omitempty"`  // the names
	Dir           string               `json:"dir,omitempty"`
	User          string               `json:"user,omitempty"`
	Timeout       string               `json:"timeout"`
	Calendar      string               `json:"calendar,omitempty"`
	BusinessDays  daybook.BusinessDays `json:"business_days,omitempty"`
	ClockGap      daybook.ClockGap     `json:"clock_gap"`
	ClockRepeat   daybook.ClockRepeat  `json:"clock_repeat"`
	Jitter        string               `json:"jitter"`
	Work          daybook.Work         `json:"work"`
	Steps         bool                 `json:"steps,omitempty"`
	Probe         string               `json:"probe,omitempty"`
	Undo          string               `json:"undo,omitempty"`
	Remembers     string               `json:"remembers"`
	Settles       string               `json:"settles"`
	Missed        daybook.Missed       `json:"missed"`
	CatchupWindow string               `json:"catchup_window"`
	CatchupGap    string               `json:"catchup_gap"`
	Overlap       daybook.Overlap      `json:"overlap"`
	Serial        string               `json:"serial,omitempty"`
	Backoff       []string             `json:"backoff"`
	Grace         string               `json:"grace"`
	MaxSilence    string               `json:"max_silence"`
	MaxRuntime    string               `json:"max_runtime"`
	Runbook       string               `json:"runbook,omitempty"`
	Formerly      string               `json:"formerly,omitempty"`
}

func newDefinitionJSON(j *daybook.Job) *definitionJSON {
	if j == nil {
		return nil
	}
	d := &definitionJSON{Run: j.Command.Argv, Shell: j.Command.Shell, HTTP: httpText(j), Env: slices.Sorted(maps.Keys(j.Env)), Dir: j.Dir, User: j.User,
		Timeout: span(j.Timeout), Calendar: j.Calendar, BusinessDays: j.BusinessDays, ClockGap: j.ClockGap, ClockRepeat: j.ClockRepeat, Jitter: span(j.Jitter),
		Work: j.Work, Steps: j.Steps, Probe: probeText(j), Remembers: span(j.Remembers), Settles: span(j.Settles), Missed: j.Missed,
		CatchupWindow: span(j.CatchupWindow), CatchupGap: span(j.CatchupGap), Overlap: j.Overlap, Serial: j.Serial, Backoff: []string{},
		Grace: span(j.Expect.Grace), MaxSilence: span(j.Expect.MaxSilence), MaxRuntime: span(j.Expect.MaxRuntime), Runbook: j.Runbook, Formerly: j.Formerly}
	if !j.Undo.IsZero() {
		d.Undo = j.Undo.String()
	}
	for _, b := range j.Retry.Backoff {
		d.Backoff = append(d.Backoff, span(b))
	}
	return d
}

// probeText is what asks the far side, or "".
func probeText(j *daybook.Job) string {
	switch {
	case j.ProbeURL != "":
		return j.ProbeURL
	case !j.Probe.IsZero():
		return j.Probe.String()
	}
	return ""
}

// httpText is the request of an HTTP job without its headers, or "".
func httpText(j *daybook.Job) string {
	if j.HTTP == nil {
		return ""
	}
	return cmp.Or(j.HTTP.Method, "POST") + " " + j.HTTP.URL
}
