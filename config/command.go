package config

import (
	"regexp"
	"strings"

	"github.com/daybook-run/daybook"
)

// argv reads a command without a shell.
func (r *reader) argv(n *node, what daybook.Text) ([]string, bool) {
	if n.kind == isText {
		err := r.wrong(n, what, aList)
		if strings.ContainsAny(n.text, "|&;<>$`*?\"'") {
			_ = err.WithHint("use shell in place of run: the line has a shell's syntax")
		} else {
			_ = err.WithHint("write a list, one item an argument, such as %s, or use shell for a line with a shell's syntax", asList(n.text))
		}
		return nil, false
	}
	list, ok := r.texts(n, what)
	if !ok {
		return nil, false
	}
	if len(list) == 0 || list[0] == "" {
		r.fault(n.pos, daybook.Invalid("%s names no program", what).WithHint("write the program first, then its arguments"))
		return nil, false
	}
	for i, arg := range list {
		if err := daybook.CheckPlaceholders(arg); err != nil {
			r.failed(n.items[i].pos, what, err)
			ok = false
		}
	}
	return list, ok
}

// asList writes a line as the list that was probably meant.
func asList(line string) string {
	return "[" + strings.Join(strings.Fields(daybook.Clip(line, 60)), ", ") + "]"
}

// script reads a text for a shell.
func (r *reader) script(n *node, what daybook.Text) (string, bool) {
	if n.kind == isList {
		_ = r.wrong(n, what, aText).WithHint("write one text, or use run for a list")
		return "", false
	}
	s, ok := r.textual(n, what, false)
	if ok && strings.TrimSpace(s) == "" {
		r.fault(n.pos, daybook.Invalid("%s is empty", what).WithHint("write a command, or remove the line"))
		return "", false
	}
	return s, ok
}

// command reads a list as a command and a text as a line for the shell.
func (r *reader) command(n *node, what daybook.Text) (daybook.Command, bool) {
	if n.kind == isText {
		s, ok := r.script(n, what)
		return daybook.Command{Shell: s}, ok
	}
	list, ok := r.argv(n, what)
	return daybook.Command{Argv: list}, ok
}

// envShape is a map of variables.
var envShape = shape{words: "map of texts", rule: object{{"type", "object"},
	{"propertyNames", object{{"pattern", envName.String()}, {"not", object{{"pattern", "^DAYBOOK_"}}}}}, {"additionalProperties", argument}}}

// likeReference is what other programs write for a reference.
var likeReference = regexp.MustCompile(`^(\$[A-Za-z_][A-Za-z0-9_]*|env:.+|file:[^/].*|\$\$\{.*|\{\{.*\}\})$`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readEnv adds to the environment of the defaults.
func readEnv(r *reader, d *draft, _, v *node) {
	d.at["env"] = v.pos
	for name, value := range r.environment(v, d.what) {
		if d.job.Env == nil {
			d.job.Env = map[string]string{}
		}
		d.job.Env[name] = value
	}
}

// environment reads the variables of a command.
func (r *reader) environment(v *node, whose daybook.Text) map[string]string {
	if v.kind != isMap {
		err := r.wrong(v, in(whose, "env"), aMap).WithHint("write NAME: value lines below it, indented")
		if len(v.items) > 0 {
			if name, _, ok := strings.Cut(v.items[0].text, "="); ok && envName.MatchString(name) {
				_ = err.WithHint("write %s: and the value, a line each, without - and =", name)
			}
		}
		return nil
	}
	env, seen := map[string]string{}, map[string]bool{}
	for _, p := range v.pairs {
		name := p.key.text
		what := in(whose, "env", daybook.Clip(name, 60))
		switch {
		case seen[name]:
			r.fault(p.key.pos, daybook.Invalid("%s stands twice", what).WithHint("keep one"))
			continue
		case !envName.MatchString(name):
			r.fault(p.key.pos, daybook.Invalid("%s: env: %s cannot name a variable", whose, quoted(name)).WithHint("a name is letters, digits and '_', and does not begin with a digit"))
			continue
		case strings.HasPrefix(name, "DAYBOOK_"):
			r.fault(p.key.pos, daybook.Invalid("%s: names with DAYBOOK_ are given by Daybook", what).WithHint("choose another name"))
			continue
		}
		seen[name] = true
		value, ok := "", true
		if p.value.kind == isNull {
			r.fault(p.key.pos, daybook.Invalid("%s has no value", what).WithHint(`write "" for an empty value, or remove the line`))
			continue
		}
		if value, ok = r.textual(p.value, what, true); !ok || !r.wholeReference(p.value, what) {
			continue
		}
		env[name] = value
		if likeReference.MatchString(value) {
			r.warn(p.value.pos, daybook.Invalid("%s: %q is a text of its own here, no reference", what, Mask(daybook.Clip(value, 40))).
				WithHint(`a variable of daybook's environment is "${NAME}", a secret file "file:/path"; what the command's own environment holds is put together by the command`))
		}
		if !isReference(value) && value != "" && soundsSecret.MatchString(name) {
			r.warn(p.value.pos, daybook.Invalid("%s: a secret seems to stand in the file", what).WithHint(`write "${%s}" or "file:/path" and keep the value there`, name))
		}
	}
	return env
}

// wholeReference refuses a reference that is only a part of a value.
func (r *reader) wholeReference(n *node, what daybook.Text) bool {
	if isReference(n.text) || !strings.Contains(n.text, "${") {
		return true
	}
	r.fault(n.pos, daybook.Invalid("%s: a reference stands for a whole value", what).WithHint(`write "${NAME}" alone as the whole value; other texts are built in the command itself`))
	return false
}
