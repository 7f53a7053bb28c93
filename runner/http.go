package runner

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/outhttp"
)

// HTTP does the work of `http` jobs: one request an attempt, sent once, its answer read. It is a daybook.Runner and a
// daybook.Prober and may be used by many at once.
//
// What an attempt says follows from how far it came. Nothing happened when no byte was sent; a whole answer is read by
// its status, or by the outcome it names; what was cut off after sending was reported by nobody. Redirects are answers
// and are never followed.
//
// Secrets are not in a definition. An order brings them, resolved, in its Env under the names of [EnvSecret] and its kin;
// they are sent, and masked in whatever is kept of the answer.
type HTTP struct {
	// Clock dates signatures and is what dates in Retry-After are compared with. Required.
	Clock func() time.Time
	// Callbacks takes the reports of work that answers 202. Nil: nothing does, and such an answer is unclear.
	Callbacks Callbacks
	// Grace is how long an answer is still waited for when Daybook stops while the request is under way, so that a
	// deployment does not make an unknown of it; 0: daybook.TerminationGrace.
	Grace time.Duration
}

// Names in the Env of an order. The engine puts there what the references of a definition stand for, and only those: the
// values are treated as secrets.
const (
	envOfHTTP   = "http:"
	EnvSecret   = envOfHTTP + "secret"    // HTTPCall.Secret
	EnvURL      = envOfHTTP + "url"       // HTTPCall.URL, if it is a reference
	EnvProbeURL = envOfHTTP + "probe_url" // Job.ProbeURL, if it is a reference
	EnvUndoURL  = envOfHTTP + "undo_url"  // Job.UndoURL likewise
	EnvHeader   = envOfHTTP + "header:"   // and the name as in HTTPCall.Headers
)

// Callbacks takes the one report of work that goes on after its answer, or that reports before it answers. Whatever is
// reported is in the ledger before anybody here hears of it: the runner only learns that the attempt is over.
type Callbacks interface {
	// Open makes a token ready for an attempt before its request is sent, since the report may overtake the answer. The
	// request carries both: the URL as Daybook-Callback, the token as Daybook-Token.
	Open(ctx context.Context, o daybook.Order) (url, token string, err error)
	// Look returns whether the end of the attempt was recorded, and what was reported as far as that is known here.
	Look(ctx context.Context, token string) (said daybook.Result, recorded bool)
	// Wait returns when the end of the attempt was recorded, or ctx is done.
	Wait(ctx context.Context, token string)
	// Close says that nobody waits for the token any more.
	Close(token string)
}

// Run sends the request of the job and says how it ended.
func (h *HTTP) Run(ctx context.Context, o daybook.Order) daybook.Outcome {
	if ctx.Err() != nil {
		return notBegun(context.Cause(ctx))
	}
	req, secrets, err := request(o, h.Clock())
	if err != nil {
		return notStarted(err)
	}
	token := ""
	if h.Callbacks != nil {
		var url string
		if url, token, err = h.Callbacks.Open(ctx, o); err != nil {
			return notStarted(err)
		}
		defer h.Callbacks.Close(token)
		req.Header.Set("Daybook-Callback", url)
		req.Header.Set("Daybook-Token", token)
		secrets = append(secrets, token)
	}
	a, err := h.send(ctx, req)
	out := reading{job: o.Job, answer: masked(a, secrets), err: err, cause: context.Cause(ctx), now: h.Clock()}.outcome()
	if h.Callbacks != nil {
		out = h.completed(ctx, token, out)
	}
	if out.Result == resultAccepted {
		out = h.unfinished(ctx, out)
	}
	out.Error = mask(out.Error, secrets)
	out.Interrupted = causedBy(context.Cause(ctx), daybook.ErrShutdown)
	return out
}

// send makes the exchange. It lasts as long as ctx, and through the grace when Daybook stops.
func (h *HTTP) send(ctx context.Context, r outhttp.Request) (*outhttp.Answer, error) {
	var sent atomic.Bool
	r.Started = func() { sent.Store(true) }
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	if d, ok := ctx.Deadline(); ok {
		var release context.CancelFunc
		own, release = context.WithDeadlineCause(own, d, daybook.ErrTimeout)
		defer release()
	}
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if sent.Load() && causedBy(cause, daybook.ErrShutdown) {
			timer := time.NewTimer(cmp.Or(h.Grace, daybook.TerminationGrace))
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-own.Done():
			}
		}
		cancel(cause)
	})
	defer stop()
	// A client for each request: nothing of one is left for the next.
	return outhttp.New(outhttp.Options{}).Do(own, r)
}

// lookTime bounds the last look whether an attempt was reported.
const lookTime = 5 * time.Second

// completed waits for the report of work that answered 202. What was reported by then, before the answer included, is the
// end of the attempt; an answer that says otherwise is handed on, and kept as evidence.
func (h *HTTP) completed(ctx context.Context, token string, out daybook.Outcome) daybook.Outcome {
	if out.Result == resultAccepted {
		h.Callbacks.Wait(ctx, token)
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	said, recorded := h.Callbacks.Look(look, token)
	if recorded && (out.Result == resultAccepted || out.Result == daybook.ResultUnknown || out.Result == said) {
		out.Result, out.Recorded = cmp.Or(said, daybook.ResultUnknown), true
	}
	return out
}

// unfinished is the outcome of work that answered 202 and of which no more was heard.
func (h *HTTP) unfinished(ctx context.Context, out daybook.Outcome) daybook.Outcome {
	if h.Callbacks == nil {
		out.Result = daybook.ResultUnclear
		out.Error = out.Detail + ": the work goes on, and nothing here takes its report"
		return out
	}
	out.Result = daybook.ResultUnknown
	out.Error = why(context.Cause(ctx)) + ": " + out.Detail + ", and no report came to the callback"
	return out
}
