package httpapi

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// right is what a route asks of whoever calls it.
type right string

// The rights.
const (
	anybody right = ""        // it tells nothing that is not known
	viewer  right = "view"    // a token of role view or act; see Options.OpenReads
	actor   right = "act"     // a token of role act
	worker  right = "attempt" // the token of an attempt: Daybook-Token
)

// attemptHeader brings the token of an attempt.
const attemptHeader = "Daybook-Token"

// caller is who calls.
type caller struct {
	name    string // of its token; empty: nobody in particular
	scope   string // whose Idempotency-Keys it uses
	attempt daybook.AttemptID
	command bool // the attempt is a command that this ledger's serve has started
}

// person is the caller as control records it.
func (c caller) person() control.Person {
	return control.Person{Name: c.name, Source: daybook.SourceAPI}
}

// authenticate finds out who calls, and whether that is enough. Errors have CodeDenied; one of a call without any token is
// missing.
func (a *api) authenticate(r *http.Request, needs right) (caller, error) {
	switch needs {
	case anybody:
		return caller{}, nil
	case worker:
		text, ok := oneHeader(r, attemptHeader)
		if !ok {
			return caller{}, noToken(needs)
		}
		id, err := a.c.AttemptOf(r.Context(), text)
		return caller{attempt: id, command: err == nil && a.c.OfCommand(r.Context(), text), scope: "at " + string(id.Key) + " " + strconv.FormatInt(id.Fence, 10)}, err
	}
	text, given := bearer(r)
	if !given {
		if needs == viewer && a.o.OpenReads && fromHere(r) {
			return caller{}, nil
		}
		return caller{}, noToken(needs)
	}
	tok, err := a.c.TokenOf(r.Context(), text)
	if err != nil {
		return caller{}, err
	}
	if !tok.Role.Allows(daybook.Role(needs)) {
		return caller{}, daybook.Denied("the token %s has role %s, and this needs %s", tok.ID(), tok.Role, string(needs)).
			WithHint("daybook token create --role %s makes one", string(needs))
	}
	return caller{name: tok.Name, scope: tok.ID()}, nil
}

// missing is the error of a call without any token.
type missing struct{ told *daybook.Error }

func (m missing) Error() string { return m.told.Error() }
func (m missing) Unwrap() error { return m.told }

func noToken(needs right) error {
	if needs == worker {
		return missing{daybook.Denied("the token of the attempt is missing").WithHint("send the header Daybook-Token as it was given")}
	}
	return missing{daybook.Denied("a token is missing").
		WithHint("send Authorization: Bearer with a token of role %s: daybook token create makes one", string(needs))}
}

// bearer returns the token of the header Authorization.
func bearer(r *http.Request) (string, bool) {
	text, ok := oneHeader(r, "Authorization")
	scheme, token, _ := strings.Cut(text, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", ok
	}
	return strings.TrimSpace(token), true
}

// oneHeader returns a header that is given once; one that is given twice means nothing.
func oneHeader(r *http.Request, name string) (string, bool) {
	values := r.Header.Values(name)
	if len(values) == 0 {
		return "", false
	}
	if len(values) > 1 {
		return "", true
	}
	return values[0], true
}

// proxied are headers by which a proxy says for whom it calls.
var proxied = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// fromHere reports whether a request names this machine and came through no proxy. A page of another site whose name
// leads here brings its own name along.
func fromHere(r *http.Request) bool {
	for _, name := range proxied {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
