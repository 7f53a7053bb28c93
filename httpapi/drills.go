package httpapi

import (
	"strconv"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// drillBody asks for a drill.
type drillBody struct {
	Job     string           `json:"job"`
	Window  string           `json:"window,omitempty" doc:"label of a window that is done; default: that of the latest fire already past"`
	Date    string           `json:"date,omitempty" doc:"names the window of a job whose windows are days"`
	Subject string           `json:"subject,omitempty" doc:"one business object inside the window"`
	Doors   []daybook.Source `json:"doors,omitempty" doc:"schedule, manual, replay (the default), and catchup, api, event, once, backfill"`
	Times   int              `json:"times,omitempty" doc:"how often by each door, 1 to 20; default 3"`
}

// drillsJSON is a list of drills, newest first.
type drillsJSON struct {
	Schema string              `json:"schema"`
	Drills []control.DrillJSON `json:"drills"`
}

// drill asks for a done key again by several doors.
func (a *api) drill(c *call) (answer, error) {
	var b drillBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	d, err := a.c.Drill(c.Context(), c.who.person(), control.DrillRequest{Job: b.Job, Window: b.Window, Date: b.Date, Subject: b.Subject, Doors: b.Doors, Times: b.Times})
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: control.NewDrillJSON(d), final: true}, nil
}

// listedDrills is how many drills are listed unless more are asked for.
const listedDrills = 100

// drills lists what was drilled: ?job=J&limit=N.
func (a *api) drills(c *call) (answer, error) {
	q := c.URL.Query()
	limit := listedDrills
	if text := q.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil {
			return answer{}, daybook.Invalid("limit %q is no number", safe(text, 20))
		}
	}
	list, err := a.c.Drills(c.Context(), q.Get("job"), limit)
	if err != nil {
		return answer{}, err
	}
	j := drillsJSON{Schema: "daybook/drills.v1", Drills: make([]control.DrillJSON, len(list))}
	for i := range list {
		j.Drills[i] = control.NewDrillJSON(&list[i])
	}
	return answer{status: 200, body: j}, nil
}
