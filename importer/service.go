package importer

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/daybook-run/daybook"
)

// service is what a timer starts.
type service struct {
	*unit
	instance string
	user     bool   // of a user's own manager
	home     string // of the user that it runs as
}

// service finds the service of a name, or the template of it.
func (t *timers) service(name string) (*service, error) {
	if path.Ext(name) != ".service" {
		return nil, daybook.Invalid("it starts %s, and only services can be imported", clip(name)).WithHint("leave it with systemd")
	}
	inst, template := instance(name)
	u, ok := t.units[name]
	if !ok && template != "" {
		u, ok = t.units[template]
	}
	if !ok {
		return nil, daybook.Invalid("%s is not in %s", clip(name), t.manager.Dir).WithHint("systemctl cat %s shows where it is: copy it there", name)
	}
	parsed, err := u.parse()
	if err != nil {
		return nil, err
	}
	parsed.name = name
	s := &service{unit: parsed, instance: inst, user: t.manager.User}
	who := parsed.last("Service", "User")
	if who == "" && !s.user {
		who = "root"
	}
	if t.o.Home != nil {
		s.home = t.o.Home(who)
	}
	return s, nil
}

// carried are the names of a service that become something, or that matter to systemd alone.
var carried = []string{"Type", "ExecStart", "ExecStartPre", "ExecStartPost", "ExecCondition", "User", "WorkingDirectory", "Environment", "EnvironmentFile", "TimeoutStartSec",
	"TimeoutSec", "RuntimeMaxSec", "StandardOutput", "StandardError", "SyslogIdentifier", "SyslogFacility", "SyslogLevel", "RemainAfterExit", "TimeoutStopSec", "KillMode"}

// fill fills in what the service does.
func (s *service) fill(j *job) error {
	user, err := s.expand(s.last("Service", "User"))
	if err != nil {
		return err
	}
	if user != "" {
		if err := checkUser(user); err != nil {
			return daybook.Invalid("User=%s can be no user", clip(user)).WithHint("systemd refuses it too")
		}
	}
	j.user = user
	if err := s.directory(j); err != nil {
		return err
	}
	if err := s.environment(j); err != nil {
		return err
	}
	s.limit(j)
	if err := s.commands(j); err != nil {
		return err
	}
	var lost []string
	for _, set := range s.settings {
		known := set.section == "Install" || set.section == "Service" && slices.Contains(carried, set.key) ||
			set.section == "Unit" && !strings.HasPrefix(set.key, "Condition") && !strings.HasPrefix(set.key, "Assert") && !strings.HasPrefix(set.key, "On")
		if entry := set.key + "=" + clip(set.value); !known && set.value != "" && !slices.Contains(lost, entry) {
			lost = append(lost, entry)
		}
	}
	if len(lost) > 0 {
		j.notes = append(j.notes, "not carried over: "+strings.Join(lost, ", "))
	}
	for _, row := range s.odd {
		j.notes = append(j.notes, "a line that systemd passes over: "+row)
	}
	return nil
}

func (s *service) directory(j *job) error {
	dir, err := s.expand(strings.TrimPrefix(s.last("Service", "WorkingDirectory"), "-"))
	if err != nil {
		return err
	}
	switch {
	case dir == "~":
		dir = s.home
	case dir == "" && s.user:
		dir = s.home
	case dir == "":
		dir = "/"
	}
	if dir = place(dir); dir == "" {
		j.notes = append(j.notes, "its directory is not known here: add dir")
	}
	j.dir = dir
	return nil
}

func (s *service) environment(j *job) error {
	j.env = map[string]string{}
	for _, set := range s.list("Service", "Environment") {
		words, err := unitWords(set.value)
		if err != nil {
			return err
		}
		for _, w := range words {
			text, err := s.expand(w.text)
			if err != nil {
				return err
			}
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				j.notes = append(j.notes, "Environment="+clip(text)+" is no assignment and is left out")
				continue
			}
			if why := settable(name, value); why != "" {
				j.notes = append(j.notes, "Environment: "+clip(name)+" is left out: "+why)
				continue
			}
			j.env[name] = value
		}
	}
	return nil
}

// limit takes the time after which systemd ends it.
func (s *service) limit(j *job) {
	kind := s.last("Service", "Type")
	keys := []string{"RuntimeMaxSec"}
	if kind == "oneshot" {
		keys = []string{"TimeoutStartSec", "TimeoutSec"}
	} else if kind != "" && kind != "simple" && kind != "exec" {
		j.notes = append(j.notes, "Type="+kind+": here a run lasts until the command has ended")
	}
	for _, key := range keys {
		v := s.last("Service", key)
		d, ok := parseSpan(v)
		switch {
		case v == "":
		case v == "infinity" || ok && d == 0:
			j.timeout = "none"
		case ok && d >= 1e9:
			j.timeout = span(d)
		default:
			j.notes = append(j.notes, key+"="+v+" cannot be read and is left out")
		}
	}
}

// command is one Exec line.
type command struct {
	words    []unitWord
	ignore   bool // its failure
	literal  bool // no variables are filled in
	variable bool // there are some
}

// commands makes one command out of all.
func (s *service) commands(j *job) error {
	var parts []string
	var only *command
	n := 0
	for _, key := range []string{"ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost"} {
		for _, set := range s.list("Service", key) {
			list, err := s.parseExec(set.value, j)
			if err != nil {
				return err
			}
			for _, c := range list {
				n++
				only = c
				text := c.shell()
				switch {
				case key == "ExecCondition":
					text, c.ignore = "{ "+text+" || exit 0; }", true
					j.notes = append(j.notes, "what ExecCondition refuses counts as done here")
				case c.ignore:
					text = "{ " + text + " || true; }"
				}
				parts = append(parts, text)
			}
		}
	}
	if len(s.list("Service", "ExecStart")) == 0 {
		return daybook.Invalid("%s has no ExecStart", clip(s.name)).WithHint("there is nothing to run")
	}
	before := s.environmentFiles(j)
	switch {
	case before == "" && n == 1 && !only.ignore && !only.variable && !only.braced():
		for _, w := range only.words {
			j.run = append(j.run, w.text)
		}
	default:
		j.shell = before + strings.Join(parts, " && ")
	}
	if n > 1 {
		j.notes = append(j.notes, counted(n, "command")+" become one line: the first that fails ends it")
	}
	return holdable(j.shell)
}

func (c *command) braced() bool {
	return slices.ContainsFunc(c.words, func(w unitWord) bool { return braces.MatchString(w.text) })
}

// environmentFiles lets the shell read them.
func (s *service) environmentFiles(j *job) string {
	var b strings.Builder
	for _, set := range s.list("Service", "EnvironmentFile") {
		file, optional := strings.CutPrefix(set.value, "-")
		file, err := s.expand(file)
		if err != nil || !path.IsAbs(file) || strings.ContainsAny(file, "*?[") || strings.ContainsFunc(file, hidden) {
			j.notes = append(j.notes, "EnvironmentFile="+clip(set.value)+" is left out: it is no path of one file")
			continue
		}
		if optional {
			b.WriteString("[ ! -e " + quoted(file) + " ] || ")
		}
		b.WriteString(". " + quoted(file) + "; ")
	}
	if b.Len() == 0 {
		return ""
	}
	j.notes = append(j.notes, "EnvironmentFile is read by the shell here, which expands $ in it")
	return "set -a; " + b.String() + "set +a; "
}

var (
	bracedName = regexp.MustCompile(`\$\$|\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
	plainName  = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*$`)
)

// parseExec reads a command line, or several with ';' between them.
func (s *service) parseExec(value string, j *job) (list []*command, err error) {
	c, renamed := &command{}, false
	value = strings.TrimSpace(value)
	for value != "" && strings.IndexByte("@-:+!|", value[0]) >= 0 {
		switch value[0] {
		case '-':
			c.ignore = true
		case ':':
			c.literal = true
		default:
			renamed = renamed || value[0] == '@'
			j.notes = append(j.notes, "the '"+value[:1]+"' before "+clip(value[1:])+" is left out")
		}
		value = strings.TrimSpace(value[1:])
	}
	words, err := unitWords(value)
	if err != nil {
		return nil, err
	}
	if renamed && len(words) > 1 { // the second word is a name for ps to show
		words = slices.Delete(words, 1, 2)
	}
	for _, w := range words {
		if w.text == ";" && !w.quoted {
			list = append(list, c)
			c = &command{ignore: c.ignore, literal: c.literal}
			continue
		}
		if w.text, err = s.expand(w.text); err != nil {
			return nil, err
		}
		if !c.literal && (bracedName.MatchString(w.text) || plainName.MatchString(w.text)) {
			c.variable = true
		}
		c.words = append(c.words, w)
	}
	list = append(list, c)
	list = slices.DeleteFunc(list, func(c *command) bool { return len(c.words) == 0 })
	if len(list) == 0 || slices.ContainsFunc(list, func(c *command) bool { return c.words[0].text == "" }) {
		return nil, daybook.Invalid("a command is empty in %s", clip(s.name)).WithHint("systemd refuses it too")
	}
	return list, nil
}

// shell writes the command for a shell. ${NAME} stays one word, $NAME by itself is split, as systemd does; any other '$'
// is a '$'.
func (c *command) shell() string {
	words := make([]string, len(c.words))
	for i, w := range c.words {
		switch {
		case c.literal:
			words[i] = quoted(w.text)
		case plainName.MatchString(w.text):
			words[i] = w.text
		default:
			words[i] = withNames(w.text)
		}
	}
	return strings.Join(words, " ")
}

// withNames writes a word in which ${NAME} is filled in.
func withNames(text string) string {
	if !bracedName.MatchString(text) {
		return quoted(text)
	}
	var b strings.Builder
	rest := text
	for {
		at := bracedName.FindStringIndex(rest)
		if at == nil {
			break
		}
		if at[0] > 0 {
			b.WriteString(quoted(rest[:at[0]]))
		}
		if name := rest[at[0]:at[1]]; name == "$$" {
			b.WriteString(`'$'`)
		} else {
			b.WriteString(`"` + name + `"`)
		}
		rest = rest[at[1]:]
	}
	if rest != "" {
		b.WriteString(quoted(rest))
	}
	return b.String()
}
