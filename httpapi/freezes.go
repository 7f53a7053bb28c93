package httpapi

import (
	"strconv"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// freezeBody is what begins a freeze.
type freezeBody struct {
	For    *duration        `json:"for" doc:"how long, such as 30m: at most 24h"`
	Only   daybook.Priority `json:"only,omitempty" doc:"P0: it holds nothing else"`
	Name   string           `json:"name,omitempty" doc:"to end it by; default: freeze, or the next of freeze-2, freeze-3"`
	Reason string           `json:"reason" doc:"a sentence for whoever reads the record later"`
}

// reasonBody is the reason of an act.
type reasonBody struct {
	Reason string `json:"reason" doc:"a sentence for whoever reads the record later"`
}

// endedJSON is daybook/freeze-end.v1.
type endedJSON struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Ended  bool   `json:"ended"`
}

// freezes lists what keeps runs from starting.
func (a *api) freezes(c *call) (answer, error) {
	list, err := a.c.Freezes(c.Context())
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: control.NewFreezesJSON(list)}, nil
}

// startFreeze begins a freeze.
func (a *api) startFreeze(c *call) (answer, error) {
	var b freezeBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	f, err := a.c.StartFreeze(c.Context(), c.who.person(), control.FreezeRequest{For: b.For.or0(), Only: b.Only, Name: b.Name, Note: b.Reason})
	if err != nil {
		return answer{}, err
	}
	return answer{status: 201, body: control.NewFreezeJSON(f, f.From), final: true}, nil
}

// endFreeze ends a freeze, or a hold.
func (a *api) endFreeze(c *call) (answer, error) {
	var b reasonBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	name, err := a.c.EndFreeze(c.Context(), c.who.person(), c.PathValue("name"), b.Reason)
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: endedJSON{"daybook/freeze-end.v1", name, true}, final: true}, nil
}

// checkFreeze tells whether P0 work is under way, or comes within a span.
func (a *api) checkFreeze(c *call) (answer, error) {
	var span duration
	if err := span.UnmarshalJSON([]byte(strconv.Quote(c.URL.Query().Get("for")))); err != nil {
		return answer{}, err
	}
	f, err := a.c.CheckFreeze(c.Context(), span.or0())
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: control.NewFreezeCheckJSON(f)}, nil
}
