package control

import (
	"time"

	"github.com/daybook-run/daybook"
)

// FreezeJSON is daybook/freeze.v1: what keeps runs from starting.
type FreezeJSON struct {
	Schema string           `json:"schema,omitempty"`
	Name   string           `json:"name"`
	Kind   string           `json:"kind"` // freeze: a person began it; file: it comes by its schedule; hold: Daybook put it up, and a person ends it
	Since  time.Time        `json:"since"`
	Until  time.Time        `json:"until,omitzero"`
	Only   daybook.Priority `json:"only,omitempty"`
	Coming bool             `json:"coming,omitempty"` // it does not stand yet
	By     string           `json:"by"`
	Detail string           `json:"detail,omitempty"`
	Node   string           `json:"node,omitempty"`
}

// HeldJSON is daybook/held.v1: a run that a freeze put off.
type HeldJSON struct {
	Schema   string           `json:"schema,omitempty"`
	Key      daybook.Key      `json:"key"`
	Priority daybook.Priority `json:"priority"`
	State    daybook.State    `json:"state"`
	Meant    time.Time        `json:"meant,omitzero"` // it would have been due
	Until    time.Time        `json:"until"`          // the freeze is over
	Due      time.Time        `json:"due"`            // it starts
}

// FreezesJSON is daybook/freezes.v1.
type FreezesJSON struct {
	Schema  string       `json:"schema"`
	Freezes []FreezeJSON `json:"freezes"`
	Held    []HeldJSON   `json:"held"`  // the first 1,000
	Total   int          `json:"total"` // of what is held
}

// NewFreezeJSON returns a freeze as it is answered.
func NewFreezeJSON(f daybook.Freeze, now time.Time) FreezeJSON {
	j := FreezeJSON{Schema: "daybook/freeze.v1", Name: f.Name, Kind: "freeze", Since: f.From, Until: f.Until, Only: f.Only, Coming: f.From.After(now), By: f.Actor, Detail: f.Note}
	if f.OfFile {
		j.Kind, j.By = "file", "file"
	}
	return j
}

// JSON returns everything that is listed, as it is answered one by one.
func (l FreezeList) JSON() ([]FreezeJSON, []HeldJSON) {
	list := make([]FreezeJSON, 0, len(l.Holds)+len(l.Freezes)+len(l.Coming))
	for _, h := range l.Holds {
		list = append(list, FreezeJSON{Schema: "daybook/freeze.v1", Name: h.Name, Kind: "hold", Since: h.Since, By: "daybook", Detail: h.Detail, Node: h.Node})
	}
	for _, f := range append(append([]daybook.Freeze{}, l.Freezes...), l.Coming...) {
		list = append(list, NewFreezeJSON(f, l.At))
	}
	held := make([]HeldJSON, 0, len(l.Held))
	for _, r := range l.Held {
		held = append(held, HeldJSON{Schema: "daybook/held.v1", Key: r.Key, Priority: r.Priority, State: r.State, Meant: r.Meant, Until: r.FrozenUntil, Due: r.Due})
	}
	return list, held
}

// NewFreezesJSON returns the list as one answer.
func NewFreezesJSON(l FreezeList) FreezesJSON {
	j := FreezesJSON{Schema: "daybook/freezes.v1", Total: l.Total}
	j.Freezes, j.Held = l.JSON()
	for i := range j.Freezes {
		j.Freezes[i].Schema = ""
	}
	for i := range j.Held {
		j.Held[i].Schema = ""
	}
	return j
}

// FreezeCheckJSON is daybook/freeze-check.v1.
type FreezeCheckJSON struct {
	Schema string         `json:"schema"`
	Clear  bool           `json:"clear"` // nothing of P0 is under way or comes
	Until  time.Time      `json:"until"`
	Coming []ComingP0JSON `json:"coming"`
}

// ComingP0JSON is P0 work that a deployment would meet.
type ComingP0JSON struct {
	Key   daybook.Key   `json:"key"`
	Job   string        `json:"job"`
	State daybook.State `json:"state,omitempty"` // absent: its fire is still to come
	At    time.Time     `json:"at"`
}

// NewFreezeCheckJSON returns the answer of a check.
func NewFreezeCheckJSON(f FreezeCheck) FreezeCheckJSON {
	j := FreezeCheckJSON{Schema: "daybook/freeze-check.v1", Clear: len(f.Coming) == 0, Until: f.Until, Coming: []ComingP0JSON{}}
	for _, n := range f.Coming {
		one := ComingP0JSON{Key: n.Key, Job: n.Job, At: n.At}
		if n.Run != nil {
			one.State = n.Run.State
		}
		j.Coming = append(j.Coming, one)
	}
	return j
}
