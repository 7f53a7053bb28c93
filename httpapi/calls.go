package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/daybook-run/daybook"
)

// The header Idempotency-Key guards a call as a whole: made again with the same key it is given the same answer, for 24
// hours, and nothing is done. Keys of one token do not meet those of another. The key of a run is not this one: it is made
// of job and window, and guards the work.
const idempotencyHeader = "Idempotency-Key"

const maxIdempotencyKey = 255

// idempotencyKey reads the header: a Structured-Field String, or bare as most programs send it. Errors have CodeInvalid.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return "", nil
	}
	text := strings.Trim(values[0], " \t")
	bad := func(why string) (string, error) {
		return "", daybook.Invalid("the header Idempotency-Key is %s", why).
			WithHint("send 1 to %d visible ASCII characters, in double quotes or bare, such as a random UUID", maxIdempotencyKey)
	}
	if len(values) > 1 {
		return bad("given twice")
	}
	key := text
	if strings.HasPrefix(text, `"`) {
		var ok bool
		if key, ok = unquoted(text); !ok {
			return bad("not a whole string in quotes")
		}
	} else if strings.ContainsAny(text, "\" \t,;") {
		return bad("not one word")
	}
	switch {
	case key == "":
		return bad("empty")
	case len(key) > maxIdempotencyKey:
		return bad("too long")
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return bad("not visible ASCII")
		}
	}
	return key, nil
}

// unquoted reads a Structured-Field String (RFC 9651).
func unquoted(text string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", false
			}
			b.WriteByte(text[i])
		case '"':
			return b.String(), i == len(text)-1
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// once does what a call asks for, unless its Idempotency-Key says that it was made before.
func (a *api) once(c *call, do func() answer) answer {
	key, err := idempotencyKey(c.Request)
	if err != nil {
		return a.failed(c.Request, err)
	}
	if key == "" || c.who.scope == "" {
		return do()
	}
	sum := sha256.Sum256([]byte(c.Method + " " + c.URL.EscapedPath() + "\n" + string(c.body)))
	made := daybook.Call{Caller: c.who.scope, Key: key, Fingerprint: hex.EncodeToString(sum[:])}
	begun, was, err := a.c.BeginCall(c.Context(), made)
	switch {
	case err != nil:
		return a.failed(c.Request, err)
	case begun:
		return a.kept(c, made, do)
	case was.Fingerprint != made.Fingerprint:
		return problem(http.StatusUnprocessableEntity, "this Idempotency-Key was used for another request", "use a new key for each thing that is asked for")
	case was.Status == 0:
		ans := problem(http.StatusConflict, "the first request with this Idempotency-Key is still under way", "ask again in a moment")
		ans.header = map[string]string{"Retry-After": strconv.Itoa(retrySeconds)}
		return ans
	}
	return given(was)
}

// kept does what a call asks for and keeps the answer, if anything was decided; else the call may be made again.
func (a *api) kept(c *call, made daybook.Call, do func() answer) (ans answer) {
	defer func() {
		if ans.final { // of a panic, nothing is
			text, kind, err := ans.text()
			header := map[string]string{"Content-Type": kind}
			for name, value := range ans.header {
				header[name] = value
			}
			b, herr := json.Marshal(header)
			if err == nil && herr == nil {
				made.Status, made.Header, made.Body = ans.status, string(b), text
			}
		}
		if err := a.c.EndCall(context.WithoutCancel(c.Context()), made); err != nil {
			a.o.Log.Warn("the answer to a call could not be kept", "path", c.URL.Path, "err", err)
		}
	}()
	return do()
}

// given is the answer that was given before.
func given(was daybook.Call) answer {
	header := map[string]string{}
	_ = json.Unmarshal([]byte(was.Header), &header) // what we wrote ourselves
	kind := header["Content-Type"]
	delete(header, "Content-Type")
	header[replayed] = "true"
	return answer{status: was.Status, kind: kind, header: header, body: was.Body}
}
