package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// Programs that keep their own scheduler claim a key, do the work, renew the lease meanwhile and report the end. The
// claim is the door, the ledger is the same: what is done is not done again, what nobody reports is settled.

// claimBody asks for a key and for the right to do its work.
type claimBody struct {
	Key        string          `json:"key,omitempty" doc:"the key, such as backup:2026-10-26; or give job with window or date"`
	Job        string          `json:"job,omitempty"`
	Window     string          `json:"window,omitempty" doc:"label of the window, perhaps with ~2; default, with a schedule: that of the latest fire already past"`
	Date       string          `json:"date,omitempty" doc:"names the window of a job whose windows are days"`
	Subject    string          `json:"subject,omitempty" doc:"one business object inside the window"`
	Payload    json.RawMessage `json:"payload,omitempty" doc:"any JSON; another one under the same key is refused"`
	Lease      *duration       `json:"lease,omitempty" doc:"how long the key stays with a holder that does not renew it; default 30s, at most 1m"`
	Holder     string          `json:"holder,omitempty" doc:"where the work is done, for people"`
	Again      bool            `json:"again,omitempty" doc:"a further attempt of a done run of repeatable work"`
	Early      bool            `json:"early,omitempty" doc:"the window is not open yet; needs reason"`
	RunSkipped bool            `json:"run_skipped,omitempty" doc:"a window that was skipped runs after all"`
	Reason     string          `json:"reason,omitempty" doc:"a sentence for whoever reads the record later"`
	Source     string          `json:"source,omitempty" doc:"api (the default) or once"`
	Resume     bool            `json:"resume,omitempty" doc:"go on with the run of key, which was asked for before; no trigger is recorded"`
	Asks       bool            `json:"asks,omitempty" doc:"with resume: a question to the far side may be given instead of a try"`

	// What follows says what the job is, where no file does.
	Timezone  string      `json:"timezone,omitempty" doc:"IANA name; needed when the job is new"`
	Schedule  string      `json:"schedule,omitempty" doc:"when the program itself fires, so that a late one keeps its key"`
	Kind      string      `json:"kind,omitempty" doc:"kind of window, such as day or previous-week; default: by the schedule, or by the form of the label"`
	Effects   string      `json:"effects,omitempty" doc:"once or repeatable (the default)"`
	Priority  string      `json:"priority,omitempty" doc:"P0 or P1 (the default)"`
	Overlap   string      `json:"overlap,omitempty" doc:"wait (the default): one run of the job at a time; allow: any number, such as subjects side by side"`
	Remembers *duration   `json:"remembers,omitempty" doc:"how long the far side answers a repeated wire key: 24h, forever"`
	Settles   *duration   `json:"settles,omitempty" doc:"a probe's no counts only this long after the last try ended; default 5m"`
	Timeout   *duration   `json:"timeout,omitempty" doc:"how long a try may last; the holder ends it"`
	Backoff   *[]duration `json:"backoff,omitempty" doc:"delays before the second, third … try; an empty list: the first failure is a dead letter"`
	Probe     string      `json:"probe,omitempty" doc:"command by which the holder asks the far side, for people; such a job is settled by questions"`
	Steps     bool        `json:"steps,omitempty" doc:"the work marks its own steps"`
	File      bool        `json:"file,omitempty" doc:"a file of the holder says this of the job: where the job is defined elsewhere, another ladder, probe or timeout there is not refused, and counts"`
	Run       []string    `json:"run,omitempty" doc:"the command, for people"`
}

// define is the definition in a claim; nil when it says nothing of the job.
func (b *claimBody) define() *daybook.Job {
	j := daybook.Job{Schedule: b.Schedule, Timezone: b.Timezone, Window: daybook.WindowKind(b.Kind), Effects: daybook.Effects(b.Effects),
		Priority: daybook.Priority(b.Priority), Overlap: daybook.Overlap(b.Overlap), Remembers: b.Remembers.or0(), Settles: b.Settles.or0(), Timeout: b.Timeout.or0(), Steps: b.Steps}
	said := j.Schedule != "" || j.Timezone != "" || j.Window != "" || j.Effects != "" || j.Priority != "" || j.Overlap != "" || j.Remembers != 0 || j.Settles != 0 || j.Timeout != 0 || j.Steps
	if b.Backoff != nil {
		said, j.Retry.Backoff = true, []time.Duration{}
		for _, d := range *b.Backoff {
			j.Retry.Backoff = append(j.Retry.Backoff, time.Duration(d))
		}
	}
	if b.Probe != "" {
		said, j.Probe = true, daybook.Command{Shell: b.Probe}
	}
	if !said {
		return nil
	}
	j.Command.Argv = b.Run
	return &j
}

// claimJSON is daybook/claim.v1.
type claimJSON struct {
	Schema    string                 `json:"schema"`
	Key       daybook.Key            `json:"key"`
	Outcome   daybook.TriggerOutcome `json:"outcome"`
	Because   string                 `json:"because,omitempty"`
	Exit      int                    `json:"exit" doc:"what daybook once exits with when there is nothing to do"`
	Message   string                 `json:"message,omitempty"`
	Next      string                 `json:"next,omitempty" doc:"a command for a person"`
	Fence     int64                  `json:"fence,omitempty" doc:"rises with every claim: guard your own writes with it"`
	Token     string                 `json:"token,omitempty" doc:"the right to renew and to end: send it as Daybook-Token"`
	WireKey   string                 `json:"wire_key,omitempty" doc:"idempotency key for the far side"`
	Lease     string                 `json:"lease,omitempty" doc:"how long it is held; renew each third of it"`
	Until     time.Time              `json:"lease_until,omitzero" doc:"renew before, or it is declared lost"`
	Attempt   int                    `json:"attempt,omitempty"`
	Trigger   daybook.Source         `json:"trigger,omitempty" doc:"the door by which the run was started"`
	Payload   json.RawMessage        `json:"payload,omitempty"`
	Timeout   string                 `json:"timeout,omitempty" doc:"how long this try may last"`
	Permanent []int                  `json:"permanent_exit,omitempty" doc:"exit codes that are read as permanent beside the usual ones"`
	Steps     bool                   `json:"steps,omitempty" doc:"the work marks its own steps, with the token: /api/v1/steps"`
	Questions []string               `json:"questions,omitempty" doc:"no try: ask the far side about these wire keys and end the claim with answers"`
	Doer      string                 `json:"doer,omitempty" doc:"without a token: which program is at work on it, or was last, and on which machine"`
	Stuck     *control.ObstacleJSON  `json:"stuck,omitempty" doc:"without a token: nothing but a person lets it go on; why, and what he does"`
	Run       *control.RunJSON       `json:"run,omitempty"`
}

// claim asks for a key and claims it.
func (a *api) claim(c *call) (answer, error) {
	var b claimBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	switch daybook.Source(b.Source) {
	case "", daybook.SourceAPI, daybook.SourceOnce:
	default:
		return answer{}, daybook.Invalid("source %q is not one of api, once", safe(b.Source, 40))
	}
	q := control.ClaimRequest{Key: daybook.Key(b.Key), Lease: b.Lease.or0(), Holder: b.Holder, Call: callID(c), Resume: b.Resume, Asks: b.Asks, File: b.File,
		Request: control.Request{Job: b.Job, Window: b.Window, Date: b.Date, Subject: b.Subject, Payload: payloadOf(b.Payload), Again: b.Again, Early: b.Early,
			RunSkipped: b.RunSkipped, Note: b.Reason, Source: daybook.Source(b.Source), Define: b.define()}}
	got, err := a.c.Claim(c.Context(), c.who.person(), q)
	if err != nil {
		return answer{}, err
	}
	return claimed(got, b.Resume), nil
}

// callID names a call that was made with an Idempotency-Key: made again after a crash it finds the claim that it has.
func callID(c *call) string {
	key, err := idempotencyKey(c.Request)
	if err != nil || key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.who.scope + "\n" + key + "\n" + string(c.body)))
	return "call-" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// claimed is the answer to a claim: 201 with the right to do it, else that of the trigger. A right ends with its lease, so
// it is not kept as an answer: the same call made again finds it while it is held, and else how the run stands.
func claimed(got control.Claimed, resumed bool) answer {
	ans := answer{status: 201}
	switch {
	case got.Repeated:
		ans.header = map[string]string{replayed: "true"}
	case got.Token != "":
	case resumed && got.Run.State.Live():
		ans.status, ans.final = 202, false
	case resumed:
		ans.status, ans.final = 200, false
	default:
		if ans = asked(got.Answer); got.Outcome == daybook.Refused {
			return ans
		}
		if ans.status == 201 { // made, and not to be tried now
			ans.status, got.Outcome = 202, daybook.Joined
		}
	}
	j := claimJSON{Schema: "daybook/claim.v1", Key: got.Key, Outcome: got.Outcome, Because: got.Because, Exit: got.Exit, Doer: got.Doer.String(), Stuck: control.NewObstacleJSON(got.Stuck), Run: control.Nested(got.Run)}
	if !resumed {
		j.Message, j.Next = got.Line(), got.Next()
	}
	if r := got.Run; got.Token != "" {
		j.Outcome, j.Exit = daybook.Started, daybook.ExitOK
		j.Fence, j.Token, j.Lease, j.Until, j.Attempt = r.Fence, got.Token, got.Lease.String(), got.LeaseUntil, r.Attempts
		j.Trigger, j.Payload, j.Questions = r.FirstSource, r.Input, got.Questions
		if j.Steps = r.Steps; !r.Steps {
			j.WireKey = r.WireKey()
		}
		if got.Job.Timeout > 0 {
			j.Timeout = got.Job.Timeout.String()
		}
		j.Permanent = got.Job.Retry.PermanentExit
	}
	ans.body = j
	return located(ans, "runs/", got.Key)
}

// renewBody keeps a claim.
type renewBody struct {
	Lease *duration `json:"lease,omitempty" doc:"for how long; default 30s, at most 1m"`
}

// renewedJSON is daybook/lease.v1.
type renewedJSON struct {
	Schema      string      `json:"schema"`
	Key         daybook.Key `json:"key"`
	LeaseUntil  time.Time   `json:"lease_until"`
	CancelledBy string      `json:"cancelled_by,omitempty" doc:"a person asked for the end: end the work and report how"`
}

// renew keeps a claim for another lease.
func (a *api) renew(c *call) (answer, error) {
	var b renewBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	told, err := a.c.Renew(c.Context(), c.who.attempt, b.Lease.or0())
	if err != nil {
		return a.notReported(c, err), nil
	}
	return answer{status: 200, body: renewedJSON{"daybook/lease.v1", c.who.attempt.Key, told.LeaseUntil, told.CancelledBy}}, nil
}

// endBody says how a claimed try ended, or what the far side answered to a question.
type endBody struct {
	Outcome     string            `json:"outcome,omitempty" doc:"done, not_done, permanent, unclear, unknown; or interrupted: handed back before the work began, not counted"`
	RetryAfter  json.RawMessage   `json:"retry_after,omitempty" doc:"not to be tried again before, such as 90s"`
	Effects     map[string]int64  `json:"effects,omitempty" doc:"what was done, counted"`
	Amount      map[string]string `json:"amount,omitempty" doc:"decimals in quotes, by currency"`
	Result      json.RawMessage   `json:"result,omitempty" doc:"any JSON, kept as the result of the run"`
	Message     string            `json:"message,omitempty" doc:"for people"`
	Detail      string            `json:"detail,omitempty" doc:"such as exit 75"`
	Output      string            `json:"output,omitempty" doc:"what the work printed: the head and the tail"`
	Omitted     int64             `json:"omitted,omitempty" doc:"bytes left out of output"`
	Command     string            `json:"command,omitempty" doc:"as started, for people"`
	Interrupted bool              `json:"interrupted,omitempty" doc:"a shutdown asked the work to end: what is not done is not counted"`
	Answers     []findingBody     `json:"answers,omitempty" doc:"to a question, instead of an outcome"`
}

// findingBody is what the far side said about one wire key.
type findingBody struct {
	WireKey string          `json:"wire_key"`
	Answer  string          `json:"answer" doc:"yes, no or cannot_tell"`
	Result  json.RawMessage `json:"result,omitempty" doc:"what the far side has, when yes"`
	Message string          `json:"message,omitempty" doc:"why it cannot tell"`
}

// end reports the end of a claimed try, or the answers to a question.
func (a *api) end(c *call) (answer, error) {
	var b endBody
	if err := decode(c.body, &b); err != nil {
		return answer{}, err
	}
	if b.Answers != nil {
		if b.Outcome != "" {
			return answer{}, daybook.Invalid("both an outcome and answers are given").WithHint("a try ends with an outcome, a question with answers")
		}
		return a.settled(c, b.Answers)
	}
	if b.Outcome == "" {
		return answer{}, daybook.Invalid("the outcome is missing").WithHint("done, not_done, permanent, unclear, unknown or interrupted")
	}
	interrupted := daybook.Result(b.Outcome) == daybook.ResultInterrupted
	if interrupted {
		b.Outcome = ""
	}
	report, err := json.Marshal(reportBody{Outcome: b.Outcome, RetryAfter: b.RetryAfter, Effects: b.Effects, Amount: b.Amount, Result: b.Result, Message: b.Message})
	if err != nil {
		return answer{}, daybook.Invalid("the report is not understood: %s", safe(err.Error(), 200))
	}
	o, err := a.c.ReadReport(report)
	if err != nil {
		return answer{}, err
	}
	if interrupted {
		o.Result = daybook.ResultInterrupted
	}
	o.Detail, o.Command = a.c.SafeText(b.Detail, maxDetail), a.c.SafeText(b.Command, daybook.MaxErrorBytes)
	o.Output, o.Interrupted = daybook.Output{Text: a.c.SafeText(b.Output, daybook.MaxOutputBytes), Omitted: max(b.Omitted, 0)}, b.Interrupted
	return a.reported(c, o)
}

// maxDetail bounds the detail of an end.
const maxDetail = 200

// settled takes the answers to a question.
func (a *api) settled(c *call, answers []findingBody) (answer, error) {
	done, err := a.c.Settle(c.Context(), c.who.attempt, a.findings(answers))
	if err != nil {
		return a.notReported(c, err), nil
	}
	return reportedAnswer(c, "", done), nil
}

// findings is what a far side said, as the rules read it.
func (a *api) findings(answers []findingBody) []daybook.Finding {
	found := make([]daybook.Finding, len(answers))
	for i, f := range answers {
		found[i] = daybook.Finding{Answer: daybook.Answer(f.Answer), WireKey: f.WireKey, Data: payloadOf(f.Result), Error: a.c.SafeText(f.Message, daybook.MaxErrorBytes)}
	}
	return found
}
