package httpapi

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// reportBody is what work says of its own end. control reads it; here it is for the document.
type reportBody struct {
	Outcome    string            `json:"outcome,omitempty" doc:"done, not_done, permanent, unclear or unknown; default: done"`
	RetryAfter json.RawMessage   `json:"retry_after,omitempty" doc:"not to be tried again before, such as 90s"`
	Effects    map[string]int64  `json:"effects,omitempty" doc:"what was done, counted"`
	Amount     map[string]string `json:"amount,omitempty" doc:"decimals in quotes, by currency"`
	Result     json.RawMessage   `json:"result,omitempty" doc:"any JSON, kept as the result of the run"`
	Message    string            `json:"message,omitempty" doc:"for people"`
}

// reportedJSON is daybook/report.v1: what became of a report.
type reportedJSON struct {
	Schema  string           `json:"schema"`
	Key     daybook.Key      `json:"key"`
	Outcome daybook.Result   `json:"outcome,omitempty" doc:"as it was understood"`
	Late    bool             `json:"late,omitempty" doc:"it settled what had been left open"`
	State   daybook.State    `json:"state" doc:"of the run, afterwards"`
	Reason  daybook.Reason   `json:"reason,omitempty"`
	Due     time.Time        `json:"due,omitzero" doc:"when it is tried, or asked for, next"`
	Run     *control.RunJSON `json:"run,omitempty"`
}

// callback takes the report of an attempt whose HTTP job answered 202.
func (a *api) callback(c *call) (answer, error) {
	if key := daybook.Key(c.PathValue("key")); key != c.who.attempt.Key {
		return answer{}, daybook.Denied("the token is not one of %s", safe(string(key), daybook.MaxKeyBytes)).
			WithHint("call the address of Daybook-Callback with the Daybook-Token that came with it")
	}
	o := daybook.Outcome{Result: daybook.ResultDone}
	if len(bytes.TrimSpace(c.body)) > 0 {
		var err error
		if o, err = a.c.ReadReport(c.body); err != nil {
			return answer{}, err
		}
	}
	return a.reported(c, o)
}

// reported takes a report and tells how the run stands then.
func (a *api) reported(c *call, o daybook.Outcome) (answer, error) {
	done, err := a.c.Report(c.Context(), c.who.attempt, o)
	if err != nil {
		return a.notReported(c, err), nil
	}
	return reportedAnswer(c, o.Result, done), nil
}

func reportedAnswer(c *call, said daybook.Result, done control.Reported) answer {
	j := reportedJSON{Schema: "daybook/report.v1", Key: c.who.attempt.Key, Outcome: said, Late: done.Late, State: done.Run.State, Reason: done.Run.Reason, Run: control.Nested(done.Run)}
	if done.Run.State.Live() {
		j.Due = done.Run.Due
	}
	return answer{status: 200, body: j, final: true}
}

// notReported says why a report changed nothing, and how the run stands.
func (a *api) notReported(c *call, err error) answer {
	ans := a.failed(c.Request, err)
	p := ans.body.(*problemJSON)
	p.Key = c.who.attempt.Key
	if r, rerr := a.c.Run(c.Context(), p.Key); rerr == nil && daybook.CodeOf(err) == daybook.CodeStale {
		p.Run = control.Nested(r)
	}
	return ans
}
