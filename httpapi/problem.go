package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// problemJSON is an error as RFC 9457 has it, with what Daybook adds.
type problemJSON struct {
	Type   string `json:"type"` // about:blank: the title says what the status says
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	Code       daybook.Code           `json:"code,omitempty"` // what kind of error, for a program
	Key        daybook.Key            `json:"key,omitempty"`
	Run        *control.RunJSON       `json:"run,omitempty"`
	Outcome    daybook.TriggerOutcome `json:"outcome,omitempty"`
	Because    string                 `json:"because,omitempty"`
	Difference daybook.Texts          `json:"difference,omitempty"`
	Next       string                 `json:"next,omitempty"` // what to do, often a command
}

// problem is the answer that says what went wrong, and what to do.
func problem(status int, detail, next string) answer {
	return answer{status: status, kind: problemType, body: &problemJSON{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Next: next}}
}

const problemType = "application/problem+json"

// statusOf maps an error to the status of its answer.
func statusOf(err error) int {
	if _, ok := errors.AsType[missing](err); ok {
		return http.StatusUnauthorized
	}
	switch daybook.CodeOf(err) {
	case daybook.CodeInvalid:
		return http.StatusBadRequest
	case daybook.CodeNotFound:
		return http.StatusNotFound
	case daybook.CodeConflict, daybook.CodeStale:
		return http.StatusConflict
	case daybook.CodeDenied:
		return http.StatusForbidden
	case daybook.CodePermanent:
		return http.StatusUnprocessableEntity
	case daybook.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// failed is the answer to a request that met an error. What is nobody's fault but ours is told in the log only.
func (a *api) failed(r *http.Request, err error) answer {
	status := statusOf(err)
	detail, next := err.Error(), daybook.HintOf(err)
	if status >= http.StatusInternalServerError {
		a.o.Log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "err", err)
		detail = "the ledger cannot be reached"
		if status == http.StatusInternalServerError {
			detail, next = "an unexpected error", "it is in the log of the server"
		}
	}
	ans := problem(status, safe(detail, daybook.MaxErrorBytes), next)
	ans.body.(*problemJSON).Code = daybook.CodeOf(err)
	switch status {
	case http.StatusServiceUnavailable:
		ans.header = map[string]string{"Retry-After": strconv.Itoa(retrySeconds)}
	case http.StatusUnauthorized:
		ans.header = map[string]string{"WWW-Authenticate": `Bearer realm="daybook"`}
	}
	return ans
}

// retrySeconds is when to ask again.
const retrySeconds = 1

// safe is text that came from outside, for a message.
func safe(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
	return daybook.Clip(s, limit)
}
