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

// Forms that the API has too.
type (
	runJSON    = control.RunJSON
	letterJSON = control.LetterJSON
	answerJSON = control.AnswerJSON
	actedJSON  = control.ActedJSON
)

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
	ProbeUndo     bool                 `json:"probe_undo,omitempty"`
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
		Work: j.Work, Steps: j.Steps, Probe: probeText(j), ProbeUndo: j.ProbeUndo, Remembers: span(j.Remembers), Settles: span(j.Settles), Missed: j.Missed,
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
