package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/internal/outhttp"
	"github.com/daybook-run/daybook/runner"
)

// told is what work that came to a step does next, as a desk says it.
type told struct {
	do      daybook.StepDo
	wireKey string
	ask     []string        // wire keys to ask the far side about, newest first
	try     int             // to be told with its end
	data    json.RawMessage // of a step that is done
	err     error           // why the attempt ends
}

// stepDesk keeps the steps of one attempt. A call that was not answered may be made again: it is the same call.
type stepDesk interface {
	comeTo(ctx context.Context, ask daybook.StepAsk) (told, error)
	ended(ctx context.Context, e daybook.StepEnd) (told, error)
	found(ctx context.Context, step string, found []daybook.Finding, askedAt time.Time) (told, error)
}

// ownDesk is the desk of a ledger that this program opened.
type ownDesk struct {
	*control.Control
	id daybook.AttemptID
}

func (d ownDesk) comeTo(ctx context.Context, ask daybook.StepAsk) (told, error) {
	return toldBy(d.ComeTo(ctx, d.id, ask))
}

func (d ownDesk) ended(ctx context.Context, e daybook.StepEnd) (told, error) {
	return toldBy(d.StepEnded(ctx, d.id, e))
}

func (d ownDesk) found(ctx context.Context, step string, found []daybook.Finding, askedAt time.Time) (told, error) {
	return toldBy(d.StepFound(ctx, d.id, step, found, askedAt))
}

func toldBy(a daybook.StepAnswer, err error) (told, error) {
	t := told{do: a.Do, err: a.Err}
	if e := a.Record; e != nil {
		t.wireKey, t.ask, t.try, t.data = e.WireKey(), e.WireKeys(), e.Tries, e.Data
	}
	return t, err
}

// farDesk is the desk of a server, which knows the attempt by its token.
type farDesk struct {
	*remote
	token string
}

// stepReply is daybook/step.v1.
type stepReply struct {
	State   daybook.EffectState `json:"state"`
	WireKey string              `json:"wire_key"`
	Try     int                 `json:"try"`
	Ask     []string            `json:"ask"`
	Result  json.RawMessage     `json:"result"`
	Message string              `json:"message"`
}

func (d farDesk) comeTo(ctx context.Context, ask daybook.StepAsk) (told, error) {
	body := map[string]any{"step": ask.Step, "effect": !ask.Plain, "asks": ask.Says.Asks, "call": ask.Call}
	if ask.Says.Optional {
		body["optional"] = true
	}
	if ask.Fault != "" {
		body["fault"] = ask.Fault
	}
	if ask.Says.Undo != "" {
		body["undo"] = ask.Says.Undo
	}
	for name, d := range map[string]time.Duration{"remembers": ask.Says.Remembers, "settles": ask.Says.Settles} {
		if d != 0 {
			body[name] = durationText(d)
		}
	}
	return d.post(ctx, "begin", body)
}

func (d farDesk) ended(ctx context.Context, e daybook.StepEnd) (told, error) {
	return d.post(ctx, "end", endBody(e))
}

func (d farDesk) found(ctx context.Context, step string, found []daybook.Finding, askedAt time.Time) (told, error) {
	answers := make([]map[string]any, len(found))
	for i, f := range found {
		answers[i] = answerBody(f)
	}
	return d.post(ctx, "found", map[string]any{"step": step, "asked_at": askedAt, "answers": answers})
}

// endBody is the end of a step as the API takes it.
func endBody(e daybook.StepEnd) map[string]any {
	body := map[string]any{"step": e.Step, "effect": !e.Plain, "try": e.Try, "call": e.Call, "wire_key": e.WireKey, "outcome": e.Outcome.Result, "message": e.Outcome.Error}
	if len(e.Outcome.Data) > 0 {
		body["result"] = e.Outcome.Data
	}
	return body
}

// answerBody is what the far side said, as the API takes it.
func answerBody(f daybook.Finding) map[string]any {
	answer := map[string]any{"wire_key": f.WireKey, "answer": f.Answer, "message": f.Error}
	if len(f.Data) > 0 {
		answer["result"] = f.Data
	}
	return answer
}

func (d farDesk) post(ctx context.Context, what string, body any) (told, error) {
	var r stepReply
	if err := d.remote.post(ctx, 0, stepsPath+what, d.token, body, &r); err != nil {
		return told{}, err
	}
	t := told{wireKey: r.WireKey, try: r.Try, ask: r.Ask, data: r.Result}
	switch {
	case r.State == daybook.EffectBegun && what != "end": // also after a no, in a ledger that forgot
		t.do = daybook.StepBegin
	case r.State == daybook.EffectDone:
		t.do = daybook.StepSkip
	case r.State == daybook.EffectUnknown && len(r.Ask) > 0:
		t.do = daybook.StepAsks
	default:
		t.do, t.err = daybook.StepStop, daybook.Conflict("%s", r.Message)
	}
	return t, nil
}

const stepsPath = "/api/v1/steps/"

// durationText writes a duration as the API and the file have it.
func durationText(d time.Duration) string {
	if d == daybook.Forever {
		return "forever"
	}
	return d.String()
}

// withSteps opens the desk of the attempt that a token speaks for: the ledger itself where the call or the environment names
// it, else the server that the attempt was told.
func (a *app) withSteps(ctx context.Context, token string, do func(stepDesk) error) error {
	named, _ := a.LookupEnv("DAYBOOK_DB")
	server, _ := a.LookupEnv("DAYBOOK_SERVER")
	if a.flags.db == "" && a.flags.config == "" && named == "" && server != "" {
		base, err := serverBase(server)
		if err != nil {
			return err
		}
		r := &remote{base: base, client: outhttp.New(outhttp.Options{Timeout: callTimeout})}
		defer r.client.Close()
		return do(farDesk{r, token})
	}
	opened := false
	try := func() error {
		return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
			id, err := c.AttemptOf(ctx, token)
			if err != nil {
				return err
			}
			opened = true
			return do(ownDesk{c, id})
		})
	}
	until := time.Now().Add(claimPatience)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		if err := try(); err == nil || opened || daybook.CodeOf(err) != daybook.CodeUnavailable || time.Now().After(until) || !loop.Sleep(ctx, pause) {
			return err
		}
	}
}

// Patience with a ledger, or a server, that does not answer.
const (
	beginPatience = 30 * time.Second // before the command of a step is started: then nothing was done
	endPatience   = 2 * time.Minute  // after it has ended: what is known of it is known here only
)

// patiently makes a call again until it is answered, for as long as patience lasts.
func patiently(ctx context.Context, patience time.Duration, call func(context.Context) (told, error)) (t told, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		t, err = call(ctx)
		if daybook.CodeOf(err) != daybook.CodeUnavailable || !loop.Sleep(ctx, pause) {
			return t, err
		}
	}
}

// doStep comes to a step and does what it is told, until it is done or may not be done now. answered is called with the first answer.
func (a *app) doStep(ctx context.Context, d stepDesk, ask daybook.StepAsk, probe string, argv []string, answered func()) (code int, err error) {
	ask.Call = uuid.NewString()
	t, err := patiently(ctx, beginPatience, func(ctx context.Context) (told, error) { return d.comeTo(ctx, ask) })
	if daybook.CodeOf(err) != daybook.CodeUnavailable {
		answered()
	}
	for ran := false; err == nil; {
		switch t.do {
		case daybook.StepSkip:
			if ran {
				return 0, nil
			}
			e := &daybook.StepRecord{Step: ask.Step, Plain: ask.Plain, Data: t.data}
			if why := e.Lacks(); why != "" {
				return 0, daybook.Conflict("%s is done, and its result was not kept: %s", e.Named(), why).
					WithHint("it is not done again; let it print an id, and send the rest elsewhere")
			}
			return 0, a.printStored(t.data)
		case daybook.StepAsks:
			asked := a.Now()
			found := a.askFar(ctx, t.ask, probe)
			t, err = patiently(context.WithoutCancel(ctx), endPatience, func(ctx context.Context) (told, error) { return d.found(ctx, ask.Step, found, asked) })
			if err == nil && t.do == daybook.StepSkip {
				code = 0
			}
		case daybook.StepBegin:
			ran = true
			var o daybook.Outcome
			o, code = a.runStep(t.wireKey, ask, argv)
			t, err = a.tellEnd(ctx, d, daybook.StepEnd{Step: ask.Step, Plain: ask.Plain, Try: t.try, Call: ask.Call, WireKey: t.wireKey, Outcome: o}, code)
		default:
			if ran && code != 0 { // its own code tells the script why, and its own words, the last ones, tell people
				return code, nil
			}
			return 0, t.err
		}
	}
	return 0, err
}

// tellEnd tells how a step ended. As long as nobody hears it, it also lies in the directory of the attempt, for whoever ends
// that: it is all that is known of it.
func (a *app) tellEnd(ctx context.Context, d stepDesk, e daybook.StepEnd, code int) (told, error) {
	ctx = context.WithoutCancel(ctx)
	t, err := d.ended(ctx, e)
	if daybook.CodeOf(err) != daybook.CodeUnavailable {
		return t, err
	}
	result, _ := a.LookupEnv("DAYBOOK_RESULT_FILE")
	kept := errors.New("the attempt has no directory")
	if result != "" {
		kept = runner.KeepStepEnd(filepath.Dir(result), e)
	}
	t, err = patiently(ctx, endPatience, func(ctx context.Context) (told, error) { return d.ended(ctx, e) })
	if daybook.CodeOf(err) == daybook.CodeUnavailable {
		return t, notHeard(e, code, kept, err)
	}
	if kept == nil {
		_ = runner.ForgetStepEnd(filepath.Dir(result), e.Step) // told twice it is told once
	}
	return t, err
}

// notHeard says what is known here, and who else will know it.
func notHeard(e daybook.StepEnd, code int, kept, err error) error {
	out := daybook.New(daybook.CodeUnavailable, "%s ended (exit %d), and the ledger does not know it", (&daybook.StepRecord{Step: e.Step, Plain: e.Plain}).Named(), code).Because(err)
	switch {
	case kept == nil:
		return out.WithHint("it is kept, and told with the end of the attempt")
	case e.Plain:
		return out.WithHint("the next attempt does it again")
	default:
		return out.WithHint("its outcome (%s) counts as unknown there: once the ledger is back, it is asked for, or say it by hand: daybook run resolve", e.Outcome.Result)
	}
}
