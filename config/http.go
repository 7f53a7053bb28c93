package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/runner"
)

// callDraft is the map http of a job while it is read.
type callDraft struct {
	*draft
	call daybook.HTTPCall
}

var callNames = []name[callDraft]{
	callPart("url", required, "where the request goes; placeholders are percent-encoded", callURL, func(c *daybook.HTTPCall, v string) { c.URL = v }),
	callPart("method", "POST", "GET, POST, PUT, PATCH or DELETE", aWord, func(c *daybook.HTTPCall, v string) { c.Method = v }),
	{about{"headers", shape{words: "map of texts", rule: object{{"type", "object"}, {"additionalProperties", argument}}}, "none",
		`further headers; a secret is "${NAME}" or "file:/path" as the whole value`}, readHeaders},
	callPart("secret", "none", "signs the request as Standard Webhooks does", aSecret, func(c *daybook.HTTPCall, v string) { c.Secret = v }),
	callPart("idempotency_key_format", "bare", "how the header Idempotency-Key is written: bare, or quoted as a Structured Field", choice([]string{"bare", "quoted"}),
		func(c *daybook.HTTPCall, v string) { c.Quoted = v == "quoted" }),
}

func callPart[V any](word, unless, meaning string, v value[V], set func(*daybook.HTTPCall, V)) name[callDraft] {
	return name[callDraft]{about{word, v.is, unless, meaning}, func(r *reader, d *callDraft, _, n *node) {
		got, ok := v.read(r, n, in(d.what, "http", word))
		if ok {
			set(&d.call, got)
		}
		d.note("http."+word, n.pos, ok)
	}}
}

// readHTTP reads an HTTP call. What is wrong with its values is found by the runner's own check.
func readHTTP(r *reader, d *draft, _, v *node) {
	before := r.count()
	c := &callDraft{draft: d}
	what := in(d.what, "http")
	if v.kind == isText {
		_ = r.wrong(v, what, aMap).WithHint("write {url: %s}", daybook.Clip(v.text, 60))
	} else {
		readMap(r, v, what, callNames, nil, c)
	}
	if given := func(p pair) bool { return p.key.text == "url" }; r.count() == before && !slices.ContainsFunc(v.pairs, given) {
		r.fault(v.pos, daybook.Invalid("%s has no url", what).WithHint("add url, such as url: http://127.0.0.1:3000/jobs/renew"))
	}
	d.note("http", v.pos, r.count() == before)
	d.job.HTTP = &c.call
}

// callURL reads a URL that is called, or a reference to one. What it may be is the runner's to say.
func (r *reader) callURL(n *node, what daybook.Text) (string, bool) {
	s, ok := r.word(n, what)
	if !ok || !r.wholeReference(n, what) {
		return "", false
	}
	if err := runner.CheckURL(s); err != nil {
		if strings.Contains(err.Message, s) && maskLine(s) != s {
			err.Message = "the URL holds a password"
		}
		r.failed(n.pos, what, err)
		return "", false
	}
	return s, true
}

// secretReference reads a secret, which never stands in the file itself.
func (r *reader) secretReference(n *node, what daybook.Text) (string, bool) {
	s, ok := r.word(n, what)
	if ok && !isReference(s) {
		r.fault(n.pos, daybook.Invalid("%s: a secret cannot stand in the file", what).WithHint(`write "${NAME}" or "file:/path" and keep the value there`))
		return "", false
	}
	return s, ok
}

// secretHeader are headers whose value lets the one in who has it.
var secretHeader = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|.*(api-?key|token|secret|password))$`)

func readHeaders(r *reader, d *callDraft, _, v *node) {
	what := in(d.what, "http", "headers")
	before := r.count()
	d.note("http.headers", v.pos, false)
	if v.kind != isMap {
		_ = r.wrong(v, what, aMap).WithHint("write Name: value lines below it, indented")
		return
	}
	d.call.Headers = make(map[string]string, len(v.pairs))
	seen := map[string]bool{}
	for _, p := range v.pairs {
		word := p.key.text
		one := in(what, daybook.Clip(word, 60))
		var value string
		ok := false
		switch {
		case seen[word]:
			r.fault(p.key.pos, daybook.Invalid("%s stands twice", one).WithHint("keep one"))
			continue
		case p.value.kind == isNull:
			r.fault(p.key.pos, daybook.Invalid("%s has no value", one).WithHint("give it a value, or remove the line"))
			continue
		case secretHeader.MatchString(word):
			value, ok = r.secretReference(p.value, one)
		default:
			value, ok = r.textual(p.value, one, true)
			ok = ok && r.wholeReference(p.value, one)
		}
		if seen[word] = true; ok {
			d.call.Headers[word] = value
		}
	}
	// Where each stands: the runner's check speaks of all of them at once.
	for _, p := range v.pairs {
		if value, ok := d.call.Headers[p.key.text]; ok {
			alone := daybook.Job{HTTP: &daybook.HTTPCall{URL: "http://localhost", Headers: map[string]string{p.key.text: value}}}
			for _, f := range runner.CheckHTTP(&alone) {
				r.failed(p.key.pos, what, f.Err)
			}
		}
	}
	d.note("http.headers", v.pos, r.count() == before)
}

// References returns what the definition of a job says instead of secrets that its HTTP calls need, under the names by
// which its runner wants the values.
func (j *Job) References() map[string]string {
	refs := map[string]string{}
	add := func(name, text string) {
		if isReference(text) {
			refs[name] = text
		}
	}
	add(runner.EnvProbeURL, j.ProbeURL)
	add(runner.EnvUndoURL, j.UndoURL)
	if c := j.HTTP; c != nil {
		add(runner.EnvURL, c.URL)
		add(runner.EnvSecret, c.Secret)
		for name, value := range c.Headers {
			add(runner.EnvHeader+name, value)
		}
	}
	return refs
}

// Environment returns everything that an attempt of a job needs and the definition only refers to: its variables, and the
// secrets of its calls. Errors are those of Secret.Resolve.
func (j *Job) Environment(v Vault) (map[string]string, error) {
	all := maps.Clone(j.Env)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, j.References())
	return ResolveEnv(all, v)
}
