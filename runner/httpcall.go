package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/outhttp"
)

// request makes the request of an attempt, and lists the secrets in it. An error with CodePermanent says that it can
// never be sent so; any other, that it cannot be now.
func request(o daybook.Order, now time.Time) (outhttp.Request, []string, error) {
	call := o.Job.HTTP
	if err := daybook.CheckWireKey(o.WireKey); err != nil {
		return outhttp.Request{}, nil, err
	}
	v := values{env: o.Env}
	target, err := address(v.get(daybook.Say("%s", "url"), EnvURL, call.URL), o)
	if err != nil {
		return outhttp.Request{}, nil, err
	}
	r := outhttp.Request{Method: cmp.Or(call.Method, http.MethodPost), URL: target, Header: make(http.Header)}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if r.Body, err = body(o.Run); err != nil {
			return r, nil, err
		}
		r.Header.Set("Content-Type", "application/json")
	}
	v.headers(r.Header, call)
	tell(r.Header, o)
	if o.WireKey != "" {
		r.Header.Set("Idempotency-Key", idempotencyKey(o.WireKey, call.Quoted))
	}
	if call.Secret != "" {
		// With steps there is no wire key of the attempt: what is repeated is the run.
		id := outhttp.WebhookID(cmp.Or(o.WireKey, string(o.Run.Key)))
		if err := v.sign(r, call, id, now); err != nil {
			return r, nil, err
		}
	}
	return r, v.secrets, v.fault
}

// question makes the request of a probe. It carries the headers of the job only where they are sent anyway: a probe may
// be another service, whose business they are not.
func question(o daybook.Order, wireKey string, now time.Time) (outhttp.Request, []string, error) {
	v := values{env: o.Env}
	target, err := address(v.get(daybook.Say("%s", "probe_url"), EnvProbeURL, o.Job.ProbeURL), o)
	if err != nil {
		return outhttp.Request{}, nil, err
	}
	u, err := url.Parse(target)
	if err != nil {
		return outhttp.Request{}, nil, badURL(err)
	}
	ask := "key=" + percent(wireKey) + "&run=" + percent(string(o.Run.Key.Base())) + "&step=" + percent(stepOf(o.Run.Key, wireKey))
	if o.Run.Key.IsUndo() {
		ask += "&undo=true"
	}
	if u.RawQuery != "" {
		ask = u.RawQuery + "&" + ask
	}
	u.RawQuery, u.Fragment = ask, ""
	r := outhttp.Request{Method: http.MethodGet, URL: u.String(), Header: make(http.Header)}
	call := o.Job.HTTP
	if call != nil && sameOrigin(u, v.get(daybook.Say("%s", "url"), EnvURL, call.URL)) {
		v.headers(r.Header, call)
		r.Header.Del("Content-Type")
	}
	tell(r.Header, o)
	if call != nil && call.Secret != "" {
		// An id of its own for each question: a receiver that has seen the id of the effect, or of an earlier question,
		// may think that it has answered already.
		id := outhttp.WebhookID(wireKey + "#probe " + strconv.FormatInt(now.UnixNano(), 10))
		if err := v.sign(r, call, id, now); err != nil {
			return r, nil, err
		}
	}
	return r, v.secrets, v.fault
}

// stepOf returns the step that a wire key of k is for.
func stepOf(k daybook.Key, wireKey string) string {
	_, step, ok := strings.Cut(strings.TrimPrefix(wireKey, string(k.Base())), "#")
	if !ok {
		return daybook.StepRun
	}
	step, _, _ = strings.Cut(step, "@")
	return step
}

// idempotencyKey writes a wire key bare, as services do, or as the string of a structured field. A wire key holds nothing
// that would have to be escaped there.
func idempotencyKey(wireKey string, quoted bool) string {
	if quoted {
		return `"` + wireKey + `"`
	}
	return wireKey
}

// body is what an HTTP job is given. It is made of the run alone, so that every try under one wire key sends the same
// bytes: payment services refuse a key that comes with others.
func body(r *daybook.Run) ([]byte, error) {
	b := r.Given()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(struct {
		Key     daybook.Key     `json:"key"`
		Job     string          `json:"job"`
		Subject string          `json:"subject,omitempty"`
		Window  string          `json:"window,omitempty"`
		Start   string          `json:"window_start,omitempty"`
		End     string          `json:"window_end,omitempty"`
		Date    string          `json:"date,omitempty"`
		Payload json.RawMessage `json:"payload,omitempty"`
	}{r.Key, r.Job, r.Subject, r.Window.Label, instant(b.Start), instant(b.End), r.Window.Date, r.Input}); err != nil {
		return nil, permanent(nil, "could not send: the payload is not JSON")
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// tell sets the headers that speak of an attempt. What is empty is absent.
func tell(h http.Header, o daybook.Order) {
	b := o.Run.Given()
	for name, value := range map[string]string{
		"Daybook-Job":           o.Run.Job,
		"Daybook-Key":           string(o.Run.Key),
		"Daybook-Subject":       o.Run.Subject,
		"Daybook-Trigger":       string(o.Run.FirstSource),
		"Daybook-Window":        o.Run.Window.Label,
		"Daybook-Window-Start":  instant(b.Start),
		"Daybook-Window-End":    instant(b.End),
		"Daybook-Business-Date": o.Run.Window.Date,
		"Daybook-Attempt":       strconv.Itoa(o.Attempt),
		"Daybook-Fence":         strconv.FormatInt(o.Fence, 10),
		"traceparent":           traceparent(o),
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
}

// values resolves what a definition refers to.
type values struct {
	env     map[string]string
	secrets []string
	fault   error // a reference that nobody resolved
}

// get returns the value of a text of the definition: what the order brings for it, or the text itself.
func (v *values) get(what daybook.Text, name, text string) string {
	if value, ok := v.env[name]; ok {
		v.secrets = append(v.secrets, value)
		return value
	}
	if isReference(text) && v.fault == nil {
		v.fault = unavailable(nil, "could not send: %s refers to %s, which was not looked up", what, quote(text))
	}
	return text
}

// isReference recognises "file:/path" and "${NAME}".
func isReference(text string) bool {
	return strings.HasPrefix(text, "file:/") || strings.HasPrefix(text, "${")
}

// headers sets those of the definition over what we would send of our own accord.
func (v *values) headers(h http.Header, call *daybook.HTTPCall) {
	h.Set("Accept", "application/json, */*;q=0.5")
	h.Set("User-Agent", "daybook")
	for name, text := range call.Headers {
		value := v.get(daybook.Say("header %s", name), EnvHeader+name, text)
		if reserved(name) || !validHeaderValue(value) {
			if v.fault == nil {
				v.fault = permanent(nil, "could not send: header %s cannot be set to that", quote(name))
			}
			continue
		}
		h.Set(name, value)
	}
}

func (v *values) sign(r outhttp.Request, call *daybook.HTTPCall, id string, now time.Time) error {
	secret := v.get(daybook.Say("secret"), EnvSecret, call.Secret)
	if v.fault != nil {
		return v.fault
	}
	if err := outhttp.Sign(r.Header, secret, id, now, r.Body); err != nil {
		return permanent(err, "could not send")
	}
	v.secrets = append(v.secrets, strings.Fields(secret)...)
	return nil
}

// sameOrigin reports whether a URL is of the service that another one names.
func sameOrigin(u *url.URL, other string) bool {
	before, _, _ := strings.Cut(other, "{") // the host comes before the first placeholder
	o, err := url.Parse(before)
	return err == nil && o.Host != "" && u.Scheme == o.Scheme && strings.EqualFold(u.Host, o.Host)
}
