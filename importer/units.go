package importer

import (
	"path"
	"strings"

	"github.com/daybook-run/daybook"
)

// Unit is one unit of systemd with its drop-ins, in the order in which they are read.
type Unit struct {
	Name  string // backup.timer
	Files []UnitFile
}

// UnitFile is one file of a unit.
type UnitFile struct {
	Path string
	Text []byte
}

// setting is one NAME=value.
type setting struct {
	section, key, value string
	file                string
	line                int
}

// unit is a unit that was read.
type unit struct {
	name     string
	settings []setting
	odd      []string // lines that systemd passes over
}

// parse reads the files of a unit.
func (u Unit) parse() (*unit, error) {
	out := &unit{name: u.Name}
	for _, f := range u.Files {
		if err := holdable(string(f.Text)); err != nil {
			return nil, err
		}
		out.read(f)
	}
	return out, nil
}

func (u *unit) read(f UnitFile) {
	section, pending, begun := "", "", 0
	for i, row := range strings.Split(strings.TrimPrefix(string(f.Text), "\ufeff"), "\n") {
		row = strings.TrimSpace(row)
		if row != "" && (row[0] == '#' || row[0] == ';') { // also in the middle of a line that goes on
			continue
		}
		if pending == "" {
			begun = i + 1
		}
		if cut, on := strings.CutSuffix(row, `\`); on {
			pending += cut + " "
			continue
		}
		row, pending = strings.TrimSpace(pending+row), ""
		key, value, ok := strings.Cut(row, "=")
		switch {
		case row == "":
		case row[0] == '[' && strings.HasSuffix(row, "]"):
			section = row[1 : len(row)-1]
		case !ok || section == "":
			u.odd = append(u.odd, clip(row))
		default:
			u.settings = append(u.settings, setting{section, strings.TrimSpace(key), strings.TrimSpace(value), f.Path, begun})
		}
	}
}

// list returns the values of a name that may stand several times; an empty one takes back those before it.
func (u *unit) list(section, key string) (values []setting) {
	for _, s := range u.settings {
		switch {
		case s.section != section || s.key != key:
		case s.value == "":
			values = nil
		default:
			values = append(values, s)
		}
	}
	return values
}

// last returns the value of a name of which the last one counts.
func (u *unit) last(section, key string) string {
	value := ""
	for _, s := range u.settings {
		if s.section == section && s.key == key {
			value = s.value
		}
	}
	return value
}

// truth reads a boolean of systemd.
func truth(value string) bool {
	switch strings.ToLower(value) {
	case "1", "yes", "y", "true", "t", "on":
		return true
	}
	return false
}

// instance returns what stands behind the '@' of a name, and the name of the template.
func instance(name string) (inst, template string) {
	ext := path.Ext(name)
	head, inst, ok := strings.Cut(strings.TrimSuffix(name, ext), "@")
	if !ok {
		return "", ""
	}
	return inst, head + "@" + ext
}

// places are directories of the system's own manager, by their specifiers.
var places = map[byte]string{'t': "/run", 'S': "/var/lib", 'C': "/var/cache", 'L': "/var/log", 'E': "/etc", 'T': "/tmp", 'V': "/var/tmp"}

// expand fills the specifiers of a value in.
func (s *service) expand(value string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '%' {
			b.WriteByte(value[i])
			continue
		}
		i++
		if i == len(value) {
			b.WriteByte('%')
			break
		}
		stem := strings.TrimSuffix(s.name, path.Ext(s.name))
		prefix, _, _ := strings.Cut(stem, "@")
		place, isPlace := places[value[i]]
		switch {
		case value[i] == '%':
			b.WriteByte('%')
		case value[i] == 'i':
			b.WriteString(s.instance)
		case value[i] == 'I':
			b.WriteString(strings.ReplaceAll(s.instance, "-", "/"))
		case value[i] == 'n':
			b.WriteString(s.name)
		case value[i] == 'N':
			b.WriteString(stem)
		case value[i] == 'p':
			b.WriteString(prefix)
		case value[i] == 'h' && s.home != "":
			b.WriteString(s.home)
		case isPlace && !s.user:
			b.WriteString(place)
		default:
			return "", daybook.Invalid("the specifier %%%c cannot be filled in here", value[i]).WithHint("put what systemd makes of it into the unit: systemctl show %s", s.name)
		}
	}
	return b.String(), nil
}

// unitWords splits a value as systemd does: quotes of both kinds, and escapes with a backslash.
func unitWords(value string) (words []unitWord, err error) {
	var w unitWord
	in, quote := false, byte(0)
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '\\' && i+1 < len(value):
			i++
			r, used, ok := unescape(value[i:])
			if !ok {
				return nil, daybook.Invalid("an unknown escape, \\%c", value[i]).WithHint("systemd refuses it too")
			}
			i += used - 1
			w.text, in = w.text+r, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			w.text += string([]byte{c})
		case c == '\'' || c == '"':
			quote, in, w.quoted = c, true, true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				words = append(words, w)
			}
			w, in = unitWord{}, false
		default:
			w.text, in = w.text+string([]byte{c}), true
		}
	}
	if quote != 0 {
		return nil, daybook.Invalid("a quote that is not closed").WithHint("systemd refuses it too")
	}
	if in {
		words = append(words, w)
	}
	return words, nil
}

// unitWord is one argument.
type unitWord struct {
	text   string
	quoted bool
}

// unescape reads what stands behind a backslash.
func unescape(s string) (text string, used int, ok bool) {
	if i := strings.IndexByte(`abfnrtv\"'s`, s[0]); i >= 0 {
		return string("\a\b\f\n\r\t\v\\\"' "[i]), 1, true
	}
	digits, base := 0, 0
	switch s[0] {
	case 'x':
		digits, base = 2, 16
	case '0', '1', '2', '3', '4', '5', '6', '7':
		digits, base = 3, 8
	default:
		return "", 0, false
	}
	start := map[int]int{16: 1, 8: 0}[base]
	if len(s) < start+digits {
		return "", 0, false
	}
	n := 0
	for _, c := range s[start : start+digits] {
		v := strings.IndexRune("0123456789abcdef", c)
		if v < 0 {
			v = strings.IndexRune("0123456789ABCDEF", c)
		}
		if v < 0 || v >= base {
			return "", 0, false
		}
		n = n*base + v
	}
	if n == 0 || n > 127 {
		return "", 0, false
	}
	return string(rune(n)), start + digits, true
}
