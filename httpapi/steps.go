package httpapi

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/daybook-run/daybook"
)

// stepBody begins a step.
type stepBody struct {
	Key       daybook.Key `json:"key,omitempty" doc:"of the run; the token says it too"`
	Step      string      `json:"step" doc:"its name"`
	Effect    bool        `json:"effect,omitempty" doc:"it touches the outside world: marked before it begins, and never done twice"`
	Asks      bool        `json:"asks,omitempty" doc:"the caller can ask the far side itself whether the effect happened"`
	Undo      string      `json:"undo,omitempty" doc:"a line for the shell that takes it back; from commands that serve has started only"`
	Call      string      `json:"call,omitempty" doc:"made up anew each time the work comes to a step, at most 64 bytes: when the same call is made again, because its answer was lost, it is told again that it may begin"`
	Remembers *duration   `json:"remembers,omitempty" doc:"how long the far side answers a repeated wire key: 24h, forever; default: what the job says"`
	Optional  bool        `json:"optional,omitempty" doc:"the work does without it when it does not happen: the run may be done all the same"`
	Fault     string      `json:"fault,omitempty" doc:"what is wrong with how the work wanted to begin it: it is not begun, and the attempt is not done"`
	Settles   *duration   `json:"settles,omitempty" doc:"a no of the far side counts only this long after the last try ended; default: what the job says"`
}

// stepEndBody tells how a step ended.
type stepEndBody struct {
	Key     daybook.Key     `json:"key,omitempty" doc:"of the run; the token says it too"`
	Step    string          `json:"step" doc:"its name"`
	Effect  bool            `json:"effect,omitempty" doc:"as it was begun"`
	Try     int             `json:"try,omitempty" doc:"as begin gave it: a report that is late is not taken for one of a later try"`
	Call    string          `json:"call,omitempty" doc:"by which it was begun"`
	WireKey string          `json:"wire_key,omitempty" doc:"as begin gave it: people are told when it was done under an earlier one too"`
	Outcome daybook.Result  `json:"outcome,omitempty" doc:"done, not_done, permanent, unclear or unknown; default: done"`
	Result  json.RawMessage `json:"result,omitempty" doc:"any JSON, handed back whenever a later attempt comes to the step"`
	Message string          `json:"message,omitempty" doc:"for people"`
}

// stepFoundBody tells what the far side said of an open effect.
type stepFoundBody struct {
	Key     daybook.Key   `json:"key,omitempty" doc:"of the run; the token says it too"`
	Step    string        `json:"step" doc:"its name"`
	AskedAt time.Time     `json:"asked_at" doc:"when it was asked, RFC 3339"`
	Answers []findingBody `json:"answers" doc:"one for every wire key, newest first"`
}

// stepJSON is what the work does next. State is begun: do it, under the wire key; done: it is done, with that result; unknown:
// whether it happened is open, so ask about the wire keys if there are any, else end the attempt; not_done and refused: it did
// not happen, end the attempt.
type stepJSON struct {
	Schema  string              `json:"schema"`
	Key     daybook.Key         `json:"key"`
	Step    string              `json:"step"`
	State   daybook.EffectState `json:"state"`
	WireKey string              `json:"wire_key,omitempty"`
	Try     int                 `json:"try,omitempty"` // to be told with its end
	Ask     []string            `json:"ask,omitempty"`
	Result  json.RawMessage     `json:"result,omitempty"`
	Message string              `json:"message,omitempty"`
}

// isOfRun refuses a body that names another run than the token.
func (c *call) isOfRun(key daybook.Key) error {
	if key == "" || key == c.who.attempt.Key {
		return nil
	}
	return daybook.Denied("the token is not one of %s", safe(string(key), daybook.MaxKeyBytes)).
		WithHint("send the Daybook-Token that came with this run")
}

func (a *api) stepBegin(c *call) (answer, error) {
	var b stepBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	if err := c.isOfRun(b.Key); err != nil {
		return answer{}, err
	}
	if b.Undo != "" && !c.who.command { // it would be run on the machine of the ledger, for whoever has a token
		return answer{}, daybook.Denied("an undo command is taken from commands that serve has started, and this attempt is none").
			WithHint("set undo, or undo_url, in the job")
	}
	if len(b.Call) > daybook.MaxNameBytes {
		return answer{}, daybook.Invalid("call has %d bytes: at most %d are allowed", len(b.Call), daybook.MaxNameBytes).WithHint("such as a random UUID")
	}
	ask := daybook.StepAsk{Step: b.Step, Plain: !b.Effect, Call: b.Call, Fault: b.Fault, Says: daybook.StepPolicy{Asks: b.Asks, Undo: b.Undo, Remembers: b.Remembers.or0(), Settles: b.Settles.or0(), Optional: b.Optional}}
	s, err := a.c.ComeTo(c.Context(), c.who.attempt, ask)
	return stepAnswer(c, b.Step, s, err)
}

func (a *api) stepEnd(c *call) (answer, error) {
	var b stepEndBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	if err := c.isOfRun(b.Key); err != nil {
		return answer{}, err
	}
	o := daybook.Outcome{Result: b.Outcome, Data: bytes.TrimSpace(b.Result), Error: daybook.Clip(b.Message, daybook.MaxErrorBytes)}
	switch {
	case o.Result == "":
		o.Result = daybook.ResultDone
	case !o.Result.Reported():
		return answer{}, daybook.Invalid("%q is no outcome of a step", safe(string(o.Result), 40)).WithHint("one of done, not_done, permanent, unclear, unknown")
	}
	if len(o.Data) > daybook.MaxResultBytes {
		return answer{}, daybook.Invalid("result of %d bytes: at most %d are kept", len(o.Data), daybook.MaxResultBytes).WithHint("keep its id, and the rest elsewhere")
	}
	s, err := a.c.StepEnded(c.Context(), c.who.attempt, daybook.StepEnd{Step: b.Step, Plain: !b.Effect, Try: b.Try, Call: daybook.Clip(b.Call, daybook.MaxNameBytes), WireKey: b.WireKey, Outcome: o})
	return stepAnswer(c, b.Step, s, err)
}

func (a *api) stepFound(c *call) (answer, error) {
	var b stepFoundBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	if err := c.isOfRun(b.Key); err != nil {
		return answer{}, err
	}
	if b.AskedAt.IsZero() {
		return answer{}, daybook.Invalid("asked_at is missing").WithHint("when the far side was asked, such as 2026-10-26T02:00:00Z")
	}
	s, err := a.c.StepFound(c.Context(), c.who.attempt, b.Step, a.findings(b.Answers), b.AskedAt)
	return stepAnswer(c, b.Step, s, err)
}

// stepAnswer says in JSON what the work does next. What a rule refuses is a problem; that an outcome is open is an answer.
func stepAnswer(c *call, step string, s daybook.StepAnswer, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	j := stepJSON{Schema: "daybook/step.v1", Key: c.who.attempt.Key, Step: step}
	switch s.Do {
	case daybook.StepBegin:
		j.State = daybook.EffectBegun
	case daybook.StepSkip:
		j.State, j.Result = daybook.EffectDone, s.Record.Data
	case daybook.StepAsks:
		j.State, j.Ask = daybook.EffectUnknown, s.Record.WireKeys()
	case daybook.StepStop:
		switch {
		case s.Denied, s.Record == nil, s.Record.State == daybook.EffectBegun, s.Record.Tries == 0:
			return answer{}, s.Err
		}
		j.State, j.Message = s.Record.State, s.Err.Error()
	}
	if s.Record != nil && !s.Record.Plain {
		j.WireKey, j.Try = s.Record.WireKey(), s.Record.Tries
	}
	// That it may begin is said once: who asks again, under whatever Idempotency-Key, is told how it stands. Only the very
	// call that was told, named by its call, is told again.
	return answer{status: 200, body: j, final: s.Do != daybook.StepBegin}, nil
}
