package httpapi

import (
	"encoding/json"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// resolveBody is the word of a person about an effect whose outcome is unknown.
type resolveBody struct {
	Key     daybook.Key        `json:"key"`
	Step    string             `json:"step" doc:"the effect; run is the whole run as one effect"`
	As      daybook.Resolution `json:"as" doc:"done: it happened; not-done: it did not, and is tried again; ask: the probe is asked again"`
	Attempt int                `json:"attempt,omitempty" doc:"the attempt that was looked into; required for not-done once there are several"`
	Result  json.RawMessage    `json:"result,omitempty" doc:"with done: what the far side handed back; what goes on with it, and an undo, are given that"`
	Reason  string             `json:"reason,omitempty" doc:"a sentence for whoever reads the record later; required for done and not-done"`
}

// resolve settles an effect by the word of a person.
func (a *api) resolve(c *call) (answer, error) {
	var b resolveBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	done, err := a.c.Resolve(c.Context(), c.who.person(), b.Key, control.Word{Step: b.Step, As: b.As, Attempt: b.Attempt, Result: payloadOf(b.Result)}, b.Reason)
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: control.NewActedJSON(done), final: true}, nil
}

// replayBody names a plan.
type replayBody struct {
	Plan   string `json:"plan" doc:"its id: exactly the letters that it showed are replayed"`
	Job    string `json:"job,omitempty" doc:"of the plan, if it was made for one job"`
	Reason string `json:"reason,omitempty" doc:"a sentence for whoever reads the record later"`
}

// replayedJSON is daybook/replay.v1.
type replayedJSON struct {
	Schema   string `json:"schema"`
	Plan     string `json:"plan"`
	Replayed int    `json:"replayed"`
}

// replayPlan tells which letters can be replayed: ?job=J.
func (a *api) replayPlan(c *call) (answer, error) {
	p, err := a.c.PlanReplay(c.Context(), c.URL.Query().Get("job"))
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: control.NewReplayPlanJSON(p)}, nil
}

// replay replays the letters of a plan.
func (a *api) replay(c *call) (answer, error) {
	var b replayBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	n, err := a.c.StartReplay(c.Context(), c.who.person(), b.Plan, b.Job, b.Reason)
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: replayedJSON{"daybook/replay.v1", b.Plan, n}, final: true}, nil
}
