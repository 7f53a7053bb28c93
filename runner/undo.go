package runner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/outhttp"
)

// Undoer returns what takes back the effects of a job: its undo_url, its undo command or those of its effects, or its
// function; nil when there is none.
func Undoer(job *daybook.Job, o Options) daybook.Undoer {
	if f, ok := o.Funcs[job.Name]; ok && f.Do != nil {
		return &f
	}
	switch {
	case job.UndoURL != "":
		h := o.HTTP
		return &h
	case !job.Undo.IsZero() || !job.Command.IsZero(): // its effects may bring undos
		e := o.Exec
		return &e
	}
	return nil
}

// CanUndo implements daybook.Undoer.
func (e *Exec) CanUndo(o daybook.Order, effect *daybook.StepRecord) bool {
	return !undoCommand(o.Job, effect).IsZero()
}

// undoCommand is that of the effect itself, else that of its job.
func undoCommand(job *daybook.Job, effect *daybook.StepRecord) daybook.Command {
	if effect.Says.Undo != "" && !job.Command.IsZero() { // only what runs here anyway may say what else runs here
		return daybook.Command{Shell: effect.Says.Undo}
	}
	return job.Undo
}

// Undo runs the undo command of the effect, else of the job. It has the environment of an attempt, its own wire key in DAYBOOK_WIRE_KEY, and what it
// takes back in DAYBOOK_EFFECT_KEY, DAYBOOK_EFFECT_STEP and DAYBOOK_EFFECT_RESULT; it says how it ended as an attempt does.
func (e *Exec) Undo(ctx context.Context, o daybook.Order, effect *daybook.StepRecord) daybook.Outcome {
	job := *o.Job
	job.Command, job.Stdin = undoCommand(o.Job, effect), ""
	job.Env = maps.Clone(job.Env)
	if job.Env == nil {
		job.Env = make(map[string]string)
	}
	job.Env["DAYBOOK_EFFECT_KEY"] = effect.WireKey()
	job.Env["DAYBOOK_EFFECT_STEP"] = effect.Step
	if len(effect.Data) > 0 {
		job.Env["DAYBOOK_EFFECT_RESULT"] = string(effect.Data)
	}
	o.Job = &job
	return e.Run(ctx, o)
}

// CanUndo implements daybook.Undoer.
func (h *HTTP) CanUndo(o daybook.Order, _ *daybook.StepRecord) bool { return o.Job.UndoURL != "" }

// Undo posts to undo_url, with the wire key of the undo as Idempotency-Key, and reads the answer as that of an attempt. An
// undo is answered at once: 202 is unclear.
func (h *HTTP) Undo(ctx context.Context, o daybook.Order, effect *daybook.StepRecord) daybook.Outcome {
	if ctx.Err() != nil {
		return notBegun(context.Cause(ctx))
	}
	req, secrets, err := undoRequest(o, effect, h.Clock())
	if err != nil {
		return notStarted(err)
	}
	a, err := h.send(ctx, req)
	out := reading{job: o.Job, answer: masked(a, secrets), err: err, cause: context.Cause(ctx), now: h.Clock()}.outcome()
	if out.Result == resultAccepted {
		out.Result, out.Error = daybook.ResultUnclear, out.Detail+": an undo is answered when it is done"
	}
	out.Error = mask(out.Error, secrets)
	out.Interrupted = causedBy(context.Cause(ctx), daybook.ErrShutdown)
	return out
}

// undoRequest makes the request of an undo. It carries the headers of the job where they are sent anyway, as a probe does.
func undoRequest(o daybook.Order, effect *daybook.StepRecord, now time.Time) (outhttp.Request, []string, error) {
	if err := daybook.CheckWireKey(o.WireKey); err != nil {
		return outhttp.Request{}, nil, err
	}
	v := values{env: o.Env}
	target, err := address(v.get(daybook.Say("%s", "undo_url"), EnvUndoURL, o.Job.UndoURL), o)
	if err != nil {
		return outhttp.Request{}, nil, err
	}
	r := outhttp.Request{Method: http.MethodPost, URL: target, Header: make(http.Header)}
	if r.Body, err = undoBody(o.Run, effect); err != nil {
		return r, nil, err
	}
	call := cmp.Or(o.Job.HTTP, &daybook.HTTPCall{})
	u, err := url.Parse(target)
	if err != nil {
		return r, nil, badURL(err)
	}
	if sameOrigin(u, v.get(daybook.Say("%s", "url"), EnvURL, call.URL)) {
		v.headers(r.Header, call)
	}
	r.Header.Set("Content-Type", "application/json")
	tell(r.Header, o)
	r.Header.Set("Idempotency-Key", idempotencyKey(o.WireKey, call.Quoted))
	if call.Secret != "" {
		if err := v.sign(r, call, outhttp.WebhookID(o.WireKey), now); err != nil {
			return r, nil, err
		}
	}
	return r, v.secrets, v.fault
}

// undoBody is made of the run and its effect alone: the same bytes in every try.
func undoBody(r *daybook.Run, effect *daybook.StepRecord) ([]byte, error) {
	whole, err := body(r)
	if err != nil {
		return nil, err
	}
	what, err := json.Marshal(struct {
		Step   string          `json:"step"`
		Effect string          `json:"effect_key"`
		Result json.RawMessage `json:"result,omitempty"`
	}{effect.Step, effect.WireKey(), effect.Data})
	if err != nil {
		return nil, permanent(err, "could not send: the result of step %s is not JSON", effect.Step)
	}
	return bytes.Join([][]byte{bytes.TrimSuffix(whole, []byte("}")), bytes.TrimPrefix(what, []byte("{"))}, []byte(",")), nil
}
