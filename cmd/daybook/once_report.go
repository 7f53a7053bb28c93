package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/executor"
	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/runner"
)

// What a line over a server keeps in the directory of an attempt, beside what its command leaves there: the right to
// report, and the report, as long as nobody has heard it.
const (
	leftToken = "token"
	leftEnd   = "end.json"
)

// keep writes a file that only its owner reads.
func keep(dir, name, text string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
	}
	if err != nil {
		return daybook.New(daybook.CodeUnavailable, "the directory of the attempt cannot be written").Because(err).
			WithHint("XDG_STATE_HOME names another place for it")
	}
	return nil
}

// endReport is how an attempt ended, as the API takes it.
type endReport struct {
	Outcome     daybook.Result   `json:"outcome"`
	RetryAfter  string           `json:"retry_after,omitempty"`
	Effects     map[string]int64 `json:"effects,omitempty"`
	Result      json.RawMessage  `json:"result,omitempty"`
	Message     string           `json:"message,omitempty"`
	Detail      string           `json:"detail,omitempty"`
	Output      string           `json:"output,omitempty"`
	Omitted     int64            `json:"omitted,omitempty"`
	Command     string           `json:"command,omitempty"`
	Interrupted bool             `json:"interrupted,omitempty"`
}

func newEndReport(o daybook.Outcome) endReport {
	e := endReport{Outcome: o.Result, Effects: o.Counts, Result: o.Data, Message: o.Error, Detail: o.Detail, Output: o.Output.Text, Omitted: o.Output.Omitted,
		Command: o.Command, Interrupted: o.Interrupted}
	if o.RetryAfter > 0 {
		e.RetryAfter = o.RetryAfter.String()
	}
	return e
}

const endPath = "/api/v1/claims/end"

// endReply is what became of a report.
type endReply struct {
	Run *control.RunJSON `json:"run"`
}

// report tells the server how the command ended, for as long as it may be away. What it does not hear is kept for the next
// call of the line, which reports it first.
func (x *remoteLine) report(ctx context.Context, h *holding, got claimReply, dir string, out daybook.Outcome) (*control.RunJSON, error) {
	x.reportSteps(ctx, h.patience(), got.Token, dir)
	body := newEndReport(out)
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if err := keep(dir, leftEnd, string(text)); err != nil {
		x.a.say("%s  the report cannot be kept here: %s", got.Key, err)
	}
	var reply endReply
	err = x.r.post(context.WithoutCancel(ctx), h.patience(), endPath, got.Token, body, &reply)
	if f, ok := refused(err); ok && f.Code == daybook.CodeStale && f.Run != nil {
		x.a.say("%s  %s", got.Key, f.Detail)
		return f.Run, nil
	}
	if daybook.CodeOf(err) == daybook.CodeUnavailable {
		return nil, notReported(got, out, err)
	}
	return reply.Run, err
}

// leftEvery is how often it is looked whether what a command left alive has ended.
const leftEvery = 100 * time.Millisecond

// outlived waits for what the command left alive, when nobody said how its effects ended: that may yet send, or report. When ctx ends
// it is asked to end.
func (x *remoteLine) outlived(ctx context.Context, got claimReply, dir string, out daybook.Outcome) daybook.Outcome {
	once := got.Steps || got.Run != nil && got.Run.Effects == daybook.Once
	if !once || out.Result != daybook.ResultUnknown && out.Result != daybook.ResultUnclear {
		return out
	}
	alive, known := x.a.Exec.Alive(dir)
	if !known || !alive {
		return out
	}
	x.a.say("%s  the command ended (%s) and left something alive that may yet act: it is waited for", got.Key, out.Detail)
	for alive && loop.Sleep(ctx, leftEvery) {
		alive, _ = x.a.Exec.Alive(dir)
	}
	if alive {
		if err := x.a.Exec.End(context.WithoutCancel(ctx), dir); err != nil {
			x.a.tellError(err)
		}
	}
	if said, ok := x.a.Exec.Report(dir); ok {
		said.Exit, said.Output, said.Interrupted = out.Exit, out.Output, out.Interrupted
		return said
	}
	return out
}

// reportSteps tells the server the ends of steps that it did not hear while the command ran: before the end of the attempt,
// which they decide. True: something was heard.
func (x *remoteLine) reportSteps(ctx context.Context, patience time.Duration, token, dir string) (heard bool) {
	for _, e := range x.a.Exec.Steps(dir) {
		var reply stepReply
		if err := x.r.post(context.WithoutCancel(ctx), patience, stepsPath+"end", token, endBody(e), &reply); err != nil {
			x.a.tellError(err)
			continue
		}
		heard = true
		_ = runner.ForgetStepEnd(dir, e.Step) // told twice it is told once
	}
	return heard
}

// notReported says what is not known there, and that it is known here.
func notReported(got claimReply, out daybook.Outcome, err error) error {
	ended := out.Detail
	if ended == "" {
		ended = string(out.Result)
	}
	e := daybook.New(daybook.CodeUnavailable, "%s: the command ended (%s), and the server does not know it: there it counts as lost", got.Key, ended).Because(err)
	if got.Run != nil && got.Run.Effects == daybook.Once {
		return e.WithHint("when the server is back, start this line again: it reports the end; or say it by hand: daybook run resolve %s --step run --as %s --reason …", got.Key, out.Result.Word())
	}
	return e.WithHint("when the server is back, start this line again: it reports the end before it asks for the key")
}

// handBack gives a claim back before anything was started.
func (x *remoteLine) handBack(ctx context.Context, got claimReply) (*control.RunJSON, error) {
	var reply endReply
	err := x.r.post(context.WithoutCancel(ctx), claimPatience, endPath, got.Token, endReport{Outcome: daybook.ResultInterrupted}, &reply)
	return reply.Run, err
}

// question asks the far side, and tells the server what it said.
func (x *remoteLine) question(ctx context.Context, got claimReply) (*control.RunJSON, error) {
	h := x.hold(ctx, got)
	defer h.stop()
	job, run := x.orderOf(got)
	env, secrets, unreadable := x.environment()
	answers := []map[string]any{}
	for _, wireKey := range got.Questions {
		f := daybook.Finding{Answer: daybook.CannotTell, WireKey: wireKey}
		if unreadable != nil {
			f.Error = unreadable.Error()
		} else {
			asking, cancel := context.WithTimeoutCause(h.ctx, daybook.ProbeTimeout, daybook.ErrTimeout)
			f = x.a.Exec.Probe(asking, daybook.Order{Run: run, Job: job, Attempt: got.Attempt, Fence: got.Fence, WireKey: wireKey, Env: env}, wireKey)
			cancel()
			f.Error, f.Data = daybook.Mask(f.Error, secrets), daybook.MaskJSON(f.Data, secrets)
		}
		answers = append(answers, answerBody(f))
	}
	var reply endReply
	err := x.r.post(context.WithoutCancel(ctx), h.patience(), endPath, got.Token, map[string]any{"answers": answers}, &reply)
	if f, ok := refused(err); ok && f.Code == daybook.CodeStale && f.Run != nil {
		return f.Run, nil
	}
	return reply.Run, err
}

// reportLeft reports what attempts of a key left on this host and nobody has heard: the end that could not be reported, or
// the result file of a command that outlived its daybook. True: something was heard, so the key may stand otherwise now.
func (x *remoteLine) reportLeft(ctx context.Context, key daybook.Key) (heard bool) {
	dirs, err := executor.AttemptDirs(x.base, key)
	if err != nil {
		return false
	}
	for _, dir := range dirs {
		token, err := os.ReadFile(filepath.Join(dir, leftToken))
		if alive, _ := x.a.Exec.Alive(dir); err != nil || alive {
			continue
		}
		heard = x.reportSteps(ctx, claimPatience, string(token), dir) || heard
		var body endReport
		if text, err := os.ReadFile(filepath.Join(dir, leftEnd)); err != nil || json.Unmarshal(text, &body) != nil {
			out, ok := x.a.Exec.Report(dir)
			if !ok {
				continue // it is known to nobody
			}
			body = newEndReport(out)
		}
		var reply endReply
		err = x.r.post(ctx, claimPatience, endPath, string(token), body, &reply)
		f, ok := refused(err)
		if err != nil && (!ok || f.Code != daybook.CodeStale) {
			continue
		}
		heard = heard || err == nil
		x.remove(dir)
	}
	return heard
}

// clean removes what the attempts of a key up to this one left here, once its end is recorded.
func (x *remoteLine) clean(got claimReply) {
	dirs, err := executor.AttemptDirs(x.base, got.Key)
	if err != nil {
		return
	}
	for _, dir := range dirs {
		fence, err := strconv.ParseInt(dir[strings.LastIndexByte(dir, '-')+1:], 10, 64)
		if alive, _ := x.a.Exec.Alive(dir); err == nil && fence <= got.Fence && !alive {
			x.remove(dir)
		}
	}
}

func (x *remoteLine) remove(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		x.a.logger().Warn("remove the directory of an attempt", "err", err)
	}
}
