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
	callText("url", readCallURL, func(c *daybook.HTTPCall, v string) { c.URL = v }),
	callText("method", (*reader).word, func(c *daybook.HTTPCall, v string) { c.Method = v }),
	{"headers", readHeaders},
	callText("secret", (*reader).secretReference, func(c *daybook.HTTPCall, v string) { c.Secret = v }),
	{"idempotency_key_format", func(r *reader, d *callDraft, _, v *node) {
		format, ok := choice(r, v, d.what+": http: idempotency_key_format", "bare", "quoted")
		d.call.Quoted = format == "quoted"
		d.note("http.idempotency_key_format", v.pos, ok)
	}},
}

func callText(word string, read func(*reader, *node, string) (string, bool), set func(*daybook.HTTPCall, string)) name[callDraft] {
	return name[callDraft]{word, func(r *reader, d *callDraft, _, value *node) {
		v, ok := read(r, value, d.what+": http: "+word)
		if ok {
			set(&d.call, v)
		}
		d.note("http."+word, value.pos, ok)
	}}
}

// readHTTP reads an HTTP call. What is wrong with its values is found by the runner's own check.
func readHTTP(r *reader, d *draft, _, v *node) {
	before := r.count()
	c := &callDraft{draft: d}
	what := d.what + ": http"
	if v.kind == isText {
		r.wrong(v, what, "a map", "write {url: "+daybook.Clip(v.text, 60)+"}")
	} else {
		readMap(r, v, what, callNames, nil, c)
	}
	if given := func(p pair) bool { return p.key.text == "url" }; r.count() == before && !slices.ContainsFunc(v.pairs, given) {
		r.fault(v.pos, "add url, such as url: http://127.0.0.1:3000/jobs/renew", "%s has no url", what)
	}
	d.note("http", v.pos, r.count() == before)
	d.job.HTTP = &c.call
}

// readCallURL reads a URL that is called, or a reference to one. What it may be is the runner's to say.
func readCallURL(r *reader, n *node, what string) (string, bool) {
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
func (r *reader) secretReference(n *node, what string) (string, bool) {
	s, ok := r.word(n, what)
	if ok && !isReference(s) {
		r.fault(n.pos, `write "${NAME}" or "file:/path" and keep the value there`, "%s: a secret cannot stand in the file", what)
		return "", false
	}
	return s, ok
}

// secretHeader are headers whose value lets the one in who has it.
var secretHeader = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|.*(api-?key|token|secret|password))$`)

func readHeaders(r *reader, d *callDraft, _, v *node) {
	what := d.what + ": http: headers"
	before := r.count()
	d.note("http.headers", v.pos, false)
	if v.kind != isMap {
		r.wrong(v, what, "a map", "write Name: value lines below it, indented")
		return
	}
	d.call.Headers = make(map[string]string, len(v.pairs))
	seen := map[string]bool{}
	for _, p := range v.pairs {
		word := p.key.text
		one := what + ": " + daybook.Clip(word, 60)
		var value string
		ok := false
		switch {
		case seen[word]:
			r.fault(p.key.pos, "keep one", "%s stands twice", one)
			continue
		case p.value.kind == isNull:
			r.fault(p.key.pos, "give it a value, or remove the line", "%s has no value", one)
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
