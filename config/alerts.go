package config

import (
	"cmp"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
)

// Channel is a way to tell people, with references instead of secrets.
type Channel struct {
	Name    string
	Type    string
	Lang    string // of its texts
	URL     Secret
	Secret  Secret
	Run     []string
	Env     map[string]string
	Path    string
	Timeout time.Duration // 0: the default
	Line    int           // where it begins in the file
	Column  int
}

// Alerts says who is told.
type Alerts struct {
	Routes   map[daybook.Priority]alert.Route
	Fallback []string // channels that are told what another one could not tell
}

// Settings returns the channel as the room that sends wants it, secrets looked up and paths found from where the file
// lies, and the secrets. Errors are those of Secret.Resolve.
func (f *File) Settings(c *Channel, v Vault) (alert.Settings, []string, error) {
	s := alert.Settings{Name: c.Name, Type: c.Type, Lang: cmp.Or(c.Lang, f.Lang), Run: slices.Clone(c.Run), Path: f.Locate(c.Path), Timeout: c.Timeout}
	if len(s.Run) > 0 && strings.Contains(s.Run[0], "/") && !filepath.IsAbs(s.Run[0]) {
		at, err := filepath.Abs(f.Locate(s.Run[0]))
		if err != nil {
			return s, nil, daybook.Invalid("channel %s: find %s", c.Name, s.Run[0]).Because(err)
		}
		s.Run[0] = at
	}
	var secrets []string
	resolve := func(what string, ref Secret) (string, error) {
		value, err := ref.Resolve(v)
		if err != nil {
			return "", daybook.New(daybook.CodeOf(err), "%s of channel %s", what, c.Name).Because(err)
		}
		if ref.IsReference() {
			secrets = append(secrets, value)
		}
		return value, nil
	}
	var err error
	if s.URL, err = resolve("url", c.URL); err != nil {
		return s, nil, err
	}
	if s.Secret, err = resolve("secret", c.Secret); err != nil {
		return s, nil, err
	}
	if len(c.Env) > 0 {
		s.Env = make(map[string]string, len(c.Env))
	}
	for name, text := range c.Env {
		if s.Env[name], err = resolve("env "+name, Secret{text}); err != nil {
			return s, nil, err
		}
	}
	return s, secrets, nil
}

// channelDraft is a channel while it is read.
type channelDraft struct {
	Channel
	what daybook.Text
}

// typeShape are the types of channels that there are.
func typeShape() shape {
	var known []string
	for _, t := range alert.Types {
		known = append(known, t.Name)
	}
	return oneWord(known)
}

var channelNames = []name[channelDraft]{
	{about{"type", typeShape(), required, "how it tells; the other names are what the type takes"}, func(*reader, *channelDraft, *node, *node) {}}, // read before all others
	channelPart("lang", "that of the file", "language of its texts", choice([]string{"en", "zh-CN"}), func(c *Channel, v string) { c.Lang = v }),
	channelPart("url", "required by webhook", "where alerts are posted to", value[Secret]{callShape, (*reader).channelURL}, func(c *Channel, v Secret) { c.URL = v }),
	channelPart("secret", "required by webhook", "signs what is posted as Standard Webhooks does", aSecret, func(c *Channel, v string) { c.Secret = Secret{v} }),
	channelPart("run", "required by exec", "program and arguments; it reads the alert as JSON", value[[]string]{argvShape, (*reader).channelRun}, func(c *Channel, v []string) { c.Run = v }),
	{about{"env", envShape, "none", `variables of the command; a secret is "${NAME}" or "file:/path" as the whole value`}, func(r *reader, c *channelDraft, _, v *node) { c.Env = r.environment(v, c.what) }},
	channelPart("path", "required by file", "file that alerts are added to", aWord, func(c *Channel, v string) { c.Path = v }),
	{about{"timeout", durationShape(time.Second, ""), "20s", "how long one telling may take"}, func(r *reader, c *channelDraft, _, v *node) {
		c.Timeout, _ = r.duration(v, in(c.what, "timeout"), time.Second)
		if c.Timeout > alert.MaxTimeout {
			r.fault(v.pos, daybook.Invalid("%s: timeout: %s is too long", c.what, Duration(c.Timeout)).WithHint("write at most %s", Duration(alert.MaxTimeout)))
		}
	}},
}

func channelPart[V any](word, unless, meaning string, v value[V], set func(*Channel, V)) name[channelDraft] {
	return name[channelDraft]{about{word, v.is, unless, meaning}, func(r *reader, c *channelDraft, _, n *node) {
		got, _ := v.read(r, n, in(c.what, word))
		set(&c.Channel, got)
	}}
}

func (r *reader) readChannels(n *node, t *topLevel) {
	before := r.count()
	defer func() { t.badChannels = r.count() > before }()
	if n.kind != isMap {
		_ = r.wrong(n, here("channels"), aMap).WithHint("write the name of a channel and below it, indented, its type")
		return
	}
	first := map[string]pos{}
	for _, p := range n.pairs {
		word := p.key.text
		if at, twice := first[word]; twice {
			r.fault(p.key.pos, daybook.Invalid("%s stands twice", in(here("channels"), quoted(word))).WithHint("keep one; the first is in line %d", at.line))
			continue
		}
		first[word] = p.key.pos
		if daybook.CheckName(word) != nil {
			r.fault(p.key.pos, daybook.Invalid("channels: %s cannot name a channel", quoted(word)).WithHint("1 to 64 lower-case letters, digits, '_' and '-'"))
			continue
		}
		if c, ok := r.readChannel(p.key, p.value); ok {
			t.file.Channels = append(t.file.Channels, c)
		}
	}
}

func (r *reader) readChannel(key, value *node) (Channel, bool) {
	before := r.count()
	what := daybook.Say("channel %s", key.text)
	if value.kind != isMap {
		at := value
		if value.kind == isNull {
			at = key
		}
		r.fault(at.pos, daybook.Invalid("%s must be %s, not %s", what, aMap, value.is()).WithHint("write its type below it, indented, or {type: file, path: alerts.log}"))
		return Channel{}, false
	}
	t, ok := r.channelType(value, what)
	if !ok {
		return Channel{}, false
	}
	c := channelDraft{Channel: Channel{Name: key.text, Type: t.Name, Line: key.line, Column: key.column}, what: what}
	readMap(r, value, what, channelNames, nil, &c)
	given := map[string]bool{}
	for _, p := range value.pairs {
		word := p.key.text
		given[word] = true
		known := slices.ContainsFunc(channelNames, func(f name[channelDraft]) bool { return f.word == word })
		if known && word != "type" && word != "lang" && !slices.Contains(t.Takes, word) {
			r.fault(p.key.pos, daybook.Invalid("%s: type %s takes no %s", what, t.Name, word).WithHint("it takes lang %s", strings.Join(t.Takes, " ")))
		}
	}
	for _, word := range t.Takes[:t.Needs] {
		if !given[word] && r.count() == before {
			r.fault(key.pos, daybook.Invalid("%s: type %s needs %s", what, t.Name, word).WithHint("add %s", word))
		}
	}
	return c.Channel, r.count() == before
}

// channelType reads which type a channel is of: it decides what else may stand there.
func (r *reader) channelType(n *node, what daybook.Text) (alert.Type, bool) {
	var known []string
	for _, t := range alert.Types {
		known = append(known, t.Name)
	}
	for _, p := range n.pairs {
		if p.key.text != "type" {
			continue
		}
		if p.value.kind == isText && slices.Contains(laterChannels, p.value.text) {
			r.fault(p.value.pos, daybook.Invalid("%s: type %s is not available in this version", what, p.value.text).WithHint("one of: %s", joined(known)))
			return alert.Type{}, false
		}
		if p.value.kind == isNull {
			r.fault(p.key.pos, daybook.Invalid("%s: type has no value", what).WithHint("one of: %s", joined(known)))
			return alert.Type{}, false
		}
		word, ok := chosen(r, p.value, in(what, "type"), known)
		if !ok {
			return alert.Type{}, false
		}
		return alert.Types[slices.Index(known, word)], true
	}
	r.fault(n.pos, daybook.Invalid("%s has no type", what).WithHint("add type, one of: %s", joined(known)))
	return alert.Type{}, false
}

// channelURL reads where a channel posts to: an address without a password, or a reference.
func (r *reader) channelURL(n *node, what daybook.Text) (Secret, bool) {
	s, ok := r.word(n, what)
	if !ok || !r.wholeReference(n, what) || isReference(s) {
		return Secret{s}, ok
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		r.fault(n.pos, daybook.Invalid("%s is no web address", what).WithHint(`write it with http:// or https://, or as a reference: "${NAME}" or "file:/path"`))
	case u.User != nil:
		r.fault(n.pos, daybook.Invalid("%s holds a user or password", what).WithHint(`write "${NAME}" or "file:/path" and keep the address there`))
	}
	return Secret{s}, true
}

// channelRun reads the command of a channel. It has no placeholders.
func (r *reader) channelRun(n *node, what daybook.Text) ([]string, bool) {
	if n.kind == isText {
		_ = r.wrong(n, what, aList).WithHint("write a list, one item an argument, such as %s", asList(n.text))
		return nil, false
	}
	list, ok := r.texts(n, what)
	if ok && (len(list) == 0 || list[0] == "") {
		r.fault(n.pos, daybook.Invalid("%s names no program", what).WithHint("write the program first, then its arguments"))
	}
	return list, ok
}

var alertNames = []name[topLevel]{
	alertRoute(daybook.P0, "who is told of P0 jobs"), alertRoute(daybook.P1, "who is told of P1 jobs"),
	{about{"fallback", namesShape, "none", "channels that are told what another one could not tell"},
		func(r *reader, t *topLevel, _, v *node) {
			t.file.Alerts.Fallback = r.told(v, here("alerts", "fallback"), t)
		}},
}

func alertRoute(p daybook.Priority, meaning string) name[topLevel] {
	return name[topLevel]{about{string(p), named(routeNames), "nobody", meaning}, func(r *reader, t *topLevel, _, v *node) {
		route := &routeDraft{t: t, what: here("alerts", string(p))}
		readMap(r, v, route.what, routeNames, nil, route)
		if v.kind == isMap && !slices.ContainsFunc(v.pairs, func(p pair) bool { return p.key.text == "to" }) {
			r.fault(v.pos, daybook.Invalid("%s does not say to whom", route.what).WithHint("add to: [channel]"))
		}
		if t.file.Alerts.Routes == nil {
			t.file.Alerts.Routes = map[daybook.Priority]alert.Route{}
		}
		t.file.Alerts.Routes[p] = route.Route
	}}
}

// routeDraft is one route while it is read.
type routeDraft struct {
	alert.Route
	t    *topLevel
	what daybook.Text
}

var routeNames = []name[routeDraft]{
	{about{"to", namesShape, required, "the channels that are told"}, func(r *reader, d *routeDraft, _, v *node) { d.To = r.told(v, in(d.what, "to"), d.t) }},
	{about{"remind", durationShape(time.Second, ""), "P0: 1h; P1: not again", "how often an alert that nobody acknowledged is told again"}, func(r *reader, d *routeDraft, _, v *node) {
		d.Remind, _ = r.duration(v, in(d.what, "remind"), time.Second)
	}},
}

// told reads a list of channels. Whether they are there is known when the whole top was read.
func (r *reader) told(n *node, what daybook.Text, t *topLevel) []string {
	if n.kind == isText {
		_ = r.wrong(n, what, aList).WithHint("write [%s]", daybook.Clip(n.text, 64))
		return nil
	}
	list, ok := r.texts(n, what)
	if !ok {
		return nil
	}
	if len(list) == 0 {
		r.fault(n.pos, daybook.Invalid("%s is empty", what).WithHint("name a channel, or remove the line"))
	}
	for i, word := range list {
		if slices.Contains(list[:i], word) {
			r.fault(n.items[i].pos, daybook.Invalid("%s stands twice", in(what, quoted(word))).WithHint("keep one"))
			continue
		}
		t.toldOn = append(t.toldOn, reference{pos: n.items[i].pos, name: word, what: what})
	}
	return list
}

// checkTold refuses channels that are not there.
func (r *reader) checkTold(t *topLevel) {
	if t.badChannels {
		return
	}
	names := make([]string, len(t.file.Channels))
	for i, c := range t.file.Channels {
		names[i] = c.Name
	}
	for _, ref := range t.toldOn {
		if slices.Contains(names, ref.name) {
			continue
		}
		err := daybook.Invalid("%s: there is no channel %s", ref.what, quoted(ref.name)).WithHint("define it under channels")
		if near := daybook.Nearest(ref.name, names); near != "" {
			_ = err.WithHint("did you mean %s?", near)
		} else if len(names) > 0 {
			_ = err.WithHint("one of: %s; or define it under channels", joined(names))
		}
		r.fault(ref.pos, err)
	}
}
