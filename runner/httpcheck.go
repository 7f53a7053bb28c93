package runner

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/daybook-run/daybook"
)

// CheckHTTP returns everything wrong with what a job says about HTTP, by itself: http, probe_url and undo_url. References to
// secrets are taken for what they stand for.
func CheckHTTP(j *daybook.Job) []daybook.Fault {
	var faults []daybook.Fault
	bad := func(field string, err *daybook.Error) {
		faults = append(faults, daybook.Fault{Field: field, Err: err})
	}
	if j.ProbeURL != "" {
		if err := CheckURL(j.ProbeURL); err != nil {
			bad("probe_url", err)
		}
		if !j.Probe.IsZero() {
			bad("probe_url", daybook.Invalid("job %s has both probe and probe_url", j.Name).WithHint("keep one"))
		}
	}
	if j.UndoURL != "" {
		if err := CheckURL(j.UndoURL); err != nil {
			bad("undo_url", err)
		}
		if !j.Undo.IsZero() {
			bad("undo_url", daybook.Invalid("job %s has both undo and undo_url", j.Name).WithHint("keep one"))
		}
	}
	call := j.HTTP
	if call == nil {
		return faults
	}
	if !j.Command.IsZero() {
		bad("http", daybook.Invalid("job %s has both a command and http", j.Name).WithHint("keep one"))
	}
	if err := CheckURL(call.URL); err != nil {
		bad("http.url", err)
	}
	if call.Method != "" && (!isToken(call.Method) || call.Method != strings.ToUpper(call.Method) || slices.Contains(badMethods, call.Method)) {
		bad("http.method", daybook.Invalid("method %q cannot be sent", daybook.Clip(call.Method, 40)).
			WithHint("one of GET, POST, PUT, PATCH, DELETE, in capitals"))
	}
	seen := make(map[string]string)
	for name, value := range call.Headers {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			bad("http.headers", daybook.Invalid("%q is not the name of a header", daybook.Clip(name, 40)).
				WithHint("letters, digits and '-'"))
		case reserved(name):
			bad("http.headers", daybook.Invalid("header %s is set by daybook", name).WithHint("remove it"))
		case seen[canonical] != "":
			bad("http.headers", daybook.Invalid("headers %s and %s are the same", min(name, seen[canonical]), max(name, seen[canonical])).WithHint("keep one"))
		case !validHeaderValue(value):
			bad("http.headers", daybook.Invalid("header %s has a line break or a control character in its value", name).
				WithHint("write it on one line"))
		}
		seen[canonical] = name
	}
	slices.SortFunc(faults, func(a, b daybook.Fault) int { // a map has no order
		return strings.Compare(a.Field+a.Err.Message, b.Field+b.Err.Message)
	})
	return faults
}

var badMethods = []string{http.MethodConnect, http.MethodTrace}

// CheckURL refuses a URL of the file that cannot be called: http or https, a host, and placeholders behind it only, since
// a subject given by others must not choose who is called. Errors have CodeInvalid.
func CheckURL(text string) *daybook.Error {
	if isReference(text) {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" && u.Scheme != "":
		return daybook.Invalid("%q is not a URL", daybook.Clip(text, 80)).
			WithHint("such as http://127.0.0.1:3000/jobs/renew; placeholders stand behind the host")
	case u.Scheme != "http" && u.Scheme != "https":
		return daybook.Invalid("%q does not begin with http:// or https://", daybook.Clip(text, 80)).
			WithHint(`such as http://127.0.0.1:3000/jobs/renew, or a reference: "${NAME}" or "file:/path"`)
	case u.User != nil:
		return daybook.Invalid("the URL of %s has a user or password in it", u.Host).
			WithHint(`put it into headers, as Authorization: "file:/…", or make the whole URL a reference`)
	}
	var fault *daybook.Error
	daybook.EachPlaceholder(text, func(name string) (string, bool) {
		if fault == nil && !slices.Contains(daybook.Placeholders, name) {
			fault = daybook.Invalid("{%s} is no placeholder", daybook.Clip(name, 40))
			if near := daybook.Nearest(name, daybook.Placeholders); near != "" {
				_ = fault.WithHint("did you mean {%s}?", near)
			} else {
				_ = fault.WithHint("there are {%s}", strings.Join(daybook.Placeholders, "}, {"))
			}
		}
		return "", false
	})
	return fault
}

// address puts the values of an order into a URL, percent-encoded.
func address(template string, o daybook.Order) (string, error) {
	if _, err := url.Parse(template); err != nil {
		return "", badURL(err)
	}
	full := daybook.EachPlaceholder(template, func(name string) (string, bool) {
		value, ok := o.Run.Placeholder(name, o.WireKey)
		return percent(value), ok
	})
	// A dot cannot be encoded away: %2E is a dot to whoever resolves paths.
	if dotSegment(full) && !dotSegment(template) {
		return "", permanent(nil, "could not send: a placeholder would be a dot in the path of the URL, and lead elsewhere")
	}
	return full, nil
}

func badURL(err error) error {
	if u, ok := err.(*url.Error); ok { //nolint:errorlint // it is what url.Parse returns; it names the URL, which may hold a secret
		err = u.Err
	}
	return permanent(err, "could not send: the URL is not one")
}

// percent encodes everything but letters, digits and -._~ so that it stands for itself anywhere in a URL.
func percent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func dotSegment(text string) bool {
	path, _, _ := strings.Cut(text, "?")
	for _, segment := range strings.Split(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// reserved reports whether a header is ours, or the connection's, to set.
func reserved(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "idempotency-key", "traceparent", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
		"expect", "proxy-connection", "accept-encoding":
		return true
	}
	return strings.HasPrefix(name, "daybook-") || strings.HasPrefix(name, "webhook-")
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}

func validHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
