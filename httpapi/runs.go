package httpapi

import (
	"encoding/json"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// triggerBody is what a trigger says.
type triggerBody struct {
	Window     string          `json:"window,omitempty" doc:"label of the window, such as 2026-10-26, perhaps with ~2; default: that of the latest fire already past"`
	Date       string          `json:"date,omitempty" doc:"names the window of a job whose windows are days"`
	Subject    string          `json:"subject,omitempty" doc:"one business object inside the window"`
	Payload    json.RawMessage `json:"payload,omitempty" doc:"any JSON, handed to the work; another one under the same key is refused"`
	Again      bool            `json:"again,omitempty" doc:"a further attempt of a done run of repeatable work"`
	Early      bool            `json:"early,omitempty" doc:"the window is not open yet; needs reason"`
	RunSkipped bool            `json:"run_skipped,omitempty" doc:"a window that was skipped runs after all"`
	Unlisted   bool            `json:"unlisted,omitempty" doc:"a subject that the listing of its window did not name"`
	Reason     string          `json:"reason,omitempty" doc:"a sentence for whoever reads the record later"`
}

// trigger asks for a key.
func (a *api) trigger(c *call) (answer, error) {
	var b triggerBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	an, err := a.c.Trigger(c.Context(), c.who.person(), control.Request{Job: c.PathValue("job"), Window: b.Window, Date: b.Date, Subject: b.Subject,
		Payload: payloadOf(b.Payload), Again: b.Again, Early: b.Early, RunSkipped: b.RunSkipped, Unlisted: b.Unlisted, Note: b.Reason})
	if err != nil {
		return answer{}, err
	}
	return located(asked(an), "../../runs/", an.Key), nil
}

// payloadOf is the payload of a body: null is none.
func payloadOf(p json.RawMessage) json.RawMessage {
	if string(p) == "null" {
		return nil
	}
	return p
}

// located names the address of a run that was made, as seen from the address that was called.
func located(ans answer, runs string, k daybook.Key) answer {
	if ans.status == 201 || ans.status == 202 {
		if ans.header == nil {
			ans.header = map[string]string{}
		}
		ans.header["Location"] = runs + control.PathOf(k)
	}
	return ans
}

// run tells the record of a key.
func (a *api) run(c *call) (answer, error) {
	r, err := a.c.Run(c.Context(), daybook.Key(c.PathValue("key")))
	if err != nil {
		return answer{}, err
	}
	lock, err := a.c.Lock(c.Context(), r)
	if err != nil {
		return answer{}, err
	}
	waits, err := a.c.Obstacles(c.Context(), r)
	if err != nil {
		return answer{}, err
	}
	j := control.NewRunJSON(r)
	j.Lock, j.WaitsFor = control.NewLockJSON(lock), control.NewObstaclesJSON(waits)
	return answer{status: 200, body: j}, nil
}
