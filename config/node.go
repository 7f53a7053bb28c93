package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/daybook-run/daybook"
)

// pos is a place in the source: line and column from 1. The zero value is the file as a whole.
type pos struct{ line, column int }

type kind int

const (
	isNull kind = iota
	isText
	isNumber
	isBool
	isList
	isMap
)

// is says in words what a node is.
func (n *node) is() string {
	switch n.kind {
	case isText:
		return "a text"
	case isNumber:
		return "a number"
	case isBool:
		return "true or false"
	case isList:
		return "a list"
	case isMap:
		return "a map"
	}
	return "nothing"
}

// node is a value of the file.
type node struct {
	pos
	kind   kind
	text   string // of scalars: the text, or the source of a number or bool
	quoted bool
	items  []*node
	pairs  []pair
}

type pair struct{ key, value *node }

// reader collects the faults of one file while it is read.
type reader struct {
	path     string
	lines    []string
	readFile func(string) ([]byte, error) // of business calendars
	faults   []Fault
	more     int // faults beyond maxFaults
	warnings []Fault
}

func (r *reader) fault(at pos, hint, format string, args ...any) {
	if len(r.faults) >= maxFaults {
		r.more++
		return
	}
	r.faults = append(r.faults, r.at(at, hint, fmt.Sprintf(format, args...)))
}

// count returns how many faults there are so far.
func (r *reader) count() int { return len(r.faults) + r.more }

func (r *reader) warn(at pos, hint, format string, args ...any) {
	if len(r.warnings) >= maxFaults {
		return
	}
	r.warnings = append(r.warnings, r.at(at, hint, fmt.Sprintf(format, args...)))
}

// failed records an error, with its hint. what names whose it is and is left out where the message says so already.
func (r *reader) failed(at pos, what string, err error) {
	message := err.Error()
	if what != "" && !strings.HasPrefix(message, what) {
		message = what + ": " + message
	}
	r.fault(at, daybook.HintOf(err), "%s", message)
}

func (r *reader) at(at pos, hint, message string) Fault {
	return Fault{File: r.path, Line: at.line, Column: at.column, Message: message, Hint: hint}
}

// name is one name that a map may have: its word and how its value is read.
type name[T any] struct {
	word string
	read func(r *reader, into *T, key, value *node)
}

// readMap reads a map strictly: names that are unknown, repeated or not available yet are faults. what names the map in
// messages, such as "job renew".
func readMap[T any](r *reader, n *node, what string, names []name[T], later []string, into *T) {
	if n.kind != isMap {
		r.wrong(n, what, "a map", "write name: value lines below it, indented")
		return
	}
	seen := map[string]pos{}
	for _, p := range n.pairs {
		word := p.key.text
		if first, twice := seen[word]; twice {
			r.fault(p.key.pos, fmt.Sprintf("keep one; the first is in line %d", first.line), "%s%q stands twice", prefix(what), daybook.Clip(word, 60))
			continue
		}
		seen[word] = p.key.pos
		i := slices.IndexFunc(names, func(f name[T]) bool { return f.word == word })
		switch {
		case i < 0 && slices.Contains(later, word):
			r.fault(p.key.pos, "remove it", "%s%s is not available in this version", prefix(what), word)
		case i < 0:
			r.fault(p.key.pos, unknownHint(word, names, later), "%sunknown name %q", prefix(what), daybook.Clip(word, 60))
		case p.value.kind == isNull:
			r.fault(p.key.pos, "give it a value, or remove the line", "%s%s has no value", prefix(what), word)
		default:
			names[i].read(r, into, p.key, p.value)
		}
	}
}

func prefix(what string) string {
	if what == "" {
		return ""
	}
	return what + ": "
}

func unknownHint[T any](word string, names []name[T], later []string) string {
	if m := meant(word, names, later); m != "" {
		return "did you mean " + m + "?"
	}
	words := make([]string, len(names))
	for i, f := range names {
		words[i] = f.word
	}
	return "known here: " + strings.Join(words, " ")
}

// meant returns the name that an unknown word probably stands for, perhaps with a remark in brackets, or "".
func meant[T any](word string, names []name[T], later []string) string {
	all := slices.Clone(later)
	for _, f := range names {
		all = append(all, f.word)
	}
	for _, w := range all {
		if flat(w) == flat(word) {
			return w
		}
	}
	if w, ok := otherWords[flat(word)]; ok && slices.Contains(all, strings.Fields(w)[0]) {
		return w
	}
	return daybook.Nearest(word, all)
}

// flat drops case and separators, which are slips of habit, not of the hand: catchUpWindow, catchup-window.
func flat(word string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(word))
}

// wrong records a value of another type than needed.
func (r *reader) wrong(n *node, what, need, hint string) {
	r.fault(n.pos, hint, "%s must be %s, not %s", what, need, n.is())
}

var (
	plainDecimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	exponent     = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+$`)
)

// word reads a text on one line, without control characters: names, paths, choices.
func (r *reader) word(n *node, what string) (string, bool) {
	s, ok := r.textual(n, what, false)
	if !ok {
		return "", false
	}
	for _, c := range s {
		if unicode.IsControl(c) || invisible(c) {
			r.fault(n.pos, "write it on one line, without control characters", "%s holds the character %U", what, c)
			return "", false
		}
	}
	if strings.TrimSpace(s) == "" {
		r.fault(n.pos, "give it a value, or remove it", "%s is empty", what)
		return "", false
	}
	return s, true
}

// textual reads any text. With numbers, plain decimal numbers are taken as they are written, as arguments of commands
// are; numbers that other readers of YAML would change (010, 1e3, 0x10) never are.
func (r *reader) textual(n *node, what string, numbers bool) (string, bool) {
	switch {
	case n.kind == isText:
		if strings.ContainsRune(n.text, 0) {
			r.fault(n.pos, "remove it: no command and no database takes one", "%s holds a NUL byte", what)
			return "", false
		}
		return n.text, true
	case n.kind == isNumber && numbers && plainDecimal.MatchString(n.text):
		return n.text, true
	case n.kind == isNumber || n.kind == isBool:
		r.wrong(n, what, "a text", fmt.Sprintf("write it in quotes: %q", daybook.Clip(n.text, 40)))
	case n.kind == isMap && len(n.pairs) == 1 && n.pairs[0].value.kind == isNull:
		r.wrong(n, what, "a text", fmt.Sprintf("write it in quotes: \"{%s}\"", daybook.Clip(n.pairs[0].key.text, 40)))
	default:
		r.wrong(n, what, "a text", "write one value, not several")
	}
	return "", false
}

// texts reads a list of texts.
func (r *reader) texts(n *node, what string) ([]string, bool) {
	if n.kind != isList {
		r.wrong(n, what, "a list", "write [one, two]")
		return nil, false
	}
	out, ok := make([]string, 0, len(n.items)), true
	for _, item := range n.items {
		s, good := r.textual(item, what+": an item", true)
		out, ok = append(out, s), ok && good
	}
	return out, ok
}

func (r *reader) boolean(n *node, what string) (value, ok bool) {
	if n.kind == isBool && (n.text == "true" || n.text == "false") {
		return n.text == "true", true
	}
	hint := "write true or false"
	switch strings.ToLower(n.text) {
	case "yes", "on", "y", "true":
		hint = "write true"
	case "no", "off", "n", "false":
		hint = "write false"
	}
	r.fault(n.pos, hint, "%s must be true or false, not %s", what, n.shown())
	return false, false
}

// shown is the value in a message if it is short, else its kind.
func (n *node) shown() string {
	if n.kind == isList || n.kind == isMap || n.kind == isNull || n.text == "" {
		return n.is()
	}
	return strconv.Quote(daybook.Clip(n.text, 40))
}

// integer reads a whole decimal number.
func (r *reader) integer(n *node, what string, low, high int) (int, bool) {
	hint := fmt.Sprintf("write a whole number from %d to %d", low, high)
	v, err := strconv.Atoi(n.text)
	switch {
	case n.kind == isText && exponent.MatchString(n.text):
		if f, err := strconv.ParseFloat(n.text, 64); err == nil && f == float64(int64(f)) {
			hint = fmt.Sprintf("write %d", int64(f))
		}
	case n.kind == isText && plainDecimal.MatchString(n.text):
		hint = "write it without quotes"
	case n.kind == isNumber && len(n.text) > 1 && n.text[0] == '0' && err == nil:
		hint = fmt.Sprintf("write %d: a leading 0 means octal to some readers of YAML", v)
	case n.kind == isNumber && plainDecimal.MatchString(n.text) && err == nil:
		if v < low || v > high {
			r.fault(n.pos, hint, "%s: %d is outside %d to %d", what, v, low, high)
			return 0, false
		}
		return v, true
	}
	r.fault(n.pos, hint, "%s must be a whole number, not %s", what, n.shown())
	return 0, false
}

// duration reads a duration of at least low.
func (r *reader) duration(n *node, what string, low time.Duration) (time.Duration, bool) {
	if n.kind != isText && n.kind != isNumber {
		r.wrong(n, what, "a duration", "write a whole number and a unit of s, m, h or d, such as 10m")
		return 0, false
	}
	d, err := ParseDuration(n.text)
	if err != nil {
		r.failed(n.pos, what, err)
		return 0, false
	}
	if time.Duration(d) < low {
		r.fault(n.pos, fmt.Sprintf("write at least %s", Duration(low)), "%s: %s is too short", what, d)
		return 0, false
	}
	if time.Duration(d) > daybook.MaxDelay {
		r.fault(n.pos, fmt.Sprintf("write at most %s", Duration(daybook.MaxDelay)), "%s: %s is too long", what, d)
		return 0, false
	}
	return time.Duration(d), true
}

// choice reads one of a few words.
func choice[T ~string](r *reader, n *node, what string, allowed ...T) (T, bool) {
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	if n.kind == isText && slices.Contains(words, n.text) {
		return T(n.text), true
	}
	near := daybook.Nearest(strings.ToLower(strings.ReplaceAll(n.text, "-", "_")), words)
	if near == "" {
		near = daybook.Nearest(strings.ToLower(n.text), words)
	}
	if w := otherChoices[strings.ToLower(n.text)]; near == "" && slices.Contains(words, w) {
		near = w
	}
	for _, w := range words {
		if strings.EqualFold(w, n.text) {
			near = w
		}
	}
	hint := "one of: " + strings.Join(words, " ")
	if near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	r.fault(n.pos, hint, "%s cannot be %s", what, n.shown())
	return "", false
}
