package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// call is one request on its way to its answer.
type call struct {
	*http.Request
	who  caller
	body []byte
}

// answer is what a request is answered with.
type answer struct {
	status int
	kind   string // of the body; empty: JSON
	header map[string]string
	body   any // text as it is, anything else as JSON
	// final: what was asked for has been decided and is recorded, so that the same call later is given the same answer.
	final bool
}

// handle brings one request to its answer.
func (a *api) handle(w http.ResponseWriter, r *http.Request, route *route) answer {
	c := &call{Request: r}
	var err error
	if c.who, err = a.authenticate(r, route.needs); err != nil {
		return a.failed(r, err)
	}
	if route.limit > 0 {
		if c.body, err = readBody(w, r, route.limit); err != nil {
			return a.failedBody(r, err)
		}
	}
	if r.Method == http.MethodPost {
		return a.once(c, func() answer { return a.answer(route, c) })
	}
	return a.answer(route, c)
}

func (a *api) answer(route *route, c *call) answer {
	ans, err := route.do(a, c)
	if err != nil {
		return a.failed(c.Request, err)
	}
	return ans
}

// readBody reads at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
}

func (a *api) failedBody(r *http.Request, err error) answer {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem(http.StatusRequestEntityTooLarge, "the body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes",
			"keep the data where it is and pass its id")
	}
	return problem(http.StatusBadRequest, "the body could not be read", "send it whole")
}

// write sends an answer. Nobody is left to tell when that fails.
func (a *api) write(w http.ResponseWriter, r *http.Request, ans answer) {
	text, kind, err := ans.text()
	if err != nil {
		a.o.Log.Error("an answer could not be written", "path", r.URL.Path, "err", err)
		text, kind, ans.status = "", problemType, http.StatusInternalServerError
	}
	for name, value := range ans.header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(ans.status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, text)
	}
}

// text is the body as it is sent.
func (ans answer) text() (text, kind string, err error) {
	if s, ok := ans.body.(string); ok {
		if kind = ans.kind; kind == "" {
			kind = "text/plain; charset=utf-8"
		}
		return s, kind, nil
	}
	b, err := json.Marshal(ans.body)
	if kind = ans.kind; kind == "" {
		kind = "application/json"
	}
	return string(b) + "\n", kind, err
}

// asked is the answer to a trigger, or why it was refused.
func asked(an control.Answer) answer {
	j := control.NewAnswerJSON(an)
	if an.Outcome == daybook.Refused {
		ans := problem(an.HTTP, j.Message, j.Next)
		p := ans.body.(*problemJSON)
		p.Code, p.Key, p.Run, p.Outcome, p.Because, p.Difference = daybook.CodeOf(an.Err()), an.Key, j.Run, an.Outcome, an.Because, an.Difference
		ans.final = an.HTTP != http.StatusNotFound
		return ans
	}
	ans := answer{status: an.HTTP, body: j, final: true}
	if an.Outcome == daybook.Reused {
		ans.header = map[string]string{replayed: "true"}
	}
	return ans
}

// replayed is the header that says that nothing was done for this answer: it was known.
const replayed = "Idempotent-Replayed"
