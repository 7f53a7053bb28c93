package config

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// Kinds of values.
var (
	aWord      = value[string]{wordShape, (*reader).word}
	anyText    = value[string]{textShape, func(r *reader, n *node, what daybook.Text) (string, bool) { return r.textual(n, what, false) }}
	yesOrNo    = value[bool]{boolShape, (*reader).boolean}
	zoneName   = value[string]{zoneShape, (*reader).zoneName}
	webAddress = value[string]{urlShape, (*reader).webAddress}
	aSecret    = value[string]{secretShape, (*reader).secretReference}
	callURL    = value[string]{callShape, (*reader).callURL}
	argv       = value[[]string]{argvShape, (*reader).argv}
	script     = value[string]{wordShape, (*reader).script}
	command    = value[daybook.Command]{shape{words: "list of texts, or text for the shell", rule: object{{"anyOf", []any{argvShape.rule, wordShape.rule}}}}, (*reader).command}
	share      = value[float64]{shape{words: "share in percent", rule: object{{"type", "string"}, {"pattern", `^(0|[1-9][0-9]*)(\.[0-9]+)?%$`}}}, (*reader).percent}
)

// duration is a duration of at least low.
func duration(low time.Duration) value[time.Duration] { return durationOr(low, "", 0) }

// durationOr is a duration of at least low, or a word that stands for another value.
func durationOr(low time.Duration, word string, meaning time.Duration) value[time.Duration] {
	return value[time.Duration]{durationShape(low, word), func(r *reader, n *node, what daybook.Text) (time.Duration, bool) {
		if word != "" && n.kind == isText && n.text == word {
			return meaning, true
		}
		return r.duration(n, what, low)
	}}
}

func number(low, high int) value[int] {
	return value[int]{numberShape(low, high), func(r *reader, n *node, what daybook.Text) (int, bool) { return r.integer(n, what, low, high) }}
}

func numbers(low, high int) value[[]int] {
	is := shape{words: "list of numbers", rule: object{{"type", "array"}, {"items", numberShape(low, high).rule}}}
	return value[[]int]{is, func(r *reader, n *node, what daybook.Text) ([]int, bool) { return r.integers(n, what, low, high) }}
}

// choice is one of a few words; later ones are known and not available yet.
func choice[T ~string](allowed []T, later ...T) value[T] {
	return value[T]{oneWord(allowed), func(r *reader, n *node, what daybook.Text) (T, bool) {
		if n.kind == isText && slices.Contains(later, T(n.text)) {
			r.fault(n.pos, daybook.Invalid("%s is not available in this version", in(what, n.text)).WithHint("one of: %s", joined(allowed)))
			return "", false
		}
		return chosen(r, n, what, allowed)
	}}
}

// wrong records a value of another type than needed, to be given a hint.
func (r *reader) wrong(n *node, what daybook.Text, need daybook.Text) *daybook.Error {
	err := daybook.Invalid("%s must be %s, not %s", what, need, n.is())
	r.fault(n.pos, err)
	return err
}

var (
	plainDecimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	exponent     = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+$`)
)

// word reads a text on one line, without control characters: names, paths, choices.
func (r *reader) word(n *node, what daybook.Text) (string, bool) {
	s, ok := r.textual(n, what, false)
	if !ok {
		return "", false
	}
	for _, c := range s {
		if unicode.IsControl(c) || invisible(c) {
			r.fault(n.pos, daybook.Invalid("%s holds the character %U", what, c).WithHint("write it on one line, without control characters"))
			return "", false
		}
	}
	if strings.TrimSpace(s) == "" {
		r.fault(n.pos, daybook.Invalid("%s is empty", what).WithHint("give it a value, or remove it"))
		return "", false
	}
	return s, true
}

// textual reads any text. With numbers, plain decimal numbers are taken as they are written, as arguments of commands
// are; numbers that other readers of YAML would change (010, 1e3, 0x10) never are.
func (r *reader) textual(n *node, what daybook.Text, numbers bool) (string, bool) {
	switch {
	case n.kind == isText:
		if strings.ContainsRune(n.text, 0) {
			r.fault(n.pos, daybook.Invalid("%s holds a NUL byte", what).WithHint("remove it: no command and no database takes one"))
			return "", false
		}
		if i := strings.IndexFunc(n.text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' }); i >= 0 {
			r.fault(n.pos, daybook.Invalid("%s holds the character %U", what, rune(n.text[i])).
				WithHint(`in double quotes a \ begins an escape: write the text in single quotes`))
			return "", false
		}
		return n.text, true
	case n.kind == isNumber && numbers && plainDecimal.MatchString(n.text):
		return n.text, true
	case n.kind == isNumber || n.kind == isBool:
		_ = r.wrong(n, what, aText).WithHint("write it in quotes: %q", daybook.Clip(n.text, 40))
	case n.kind == isMap && len(n.pairs) == 1 && n.pairs[0].value.kind == isNull:
		_ = r.wrong(n, what, aText).WithHint("write it in quotes: \"{%s}\"", daybook.Clip(n.pairs[0].key.text, 40))
	default:
		_ = r.wrong(n, what, aText).WithHint("write one value, not several")
	}
	return "", false
}

// texts reads a list of texts.
func (r *reader) texts(n *node, what daybook.Text) ([]string, bool) {
	if n.kind != isList {
		_ = r.wrong(n, what, aList).WithHint("write [one, two]")
		return nil, false
	}
	out, ok := make([]string, 0, len(n.items)), true
	for i, item := range n.items {
		s, good := r.textual(item, daybook.Say("%s[%d]", what, i+1), true)
		out, ok = append(out, s), ok && good
	}
	return out, ok
}

func (r *reader) boolean(n *node, what daybook.Text) (value, ok bool) {
	if n.kind == isBool && (n.text == "true" || n.text == "false") {
		return n.text == "true", true
	}
	err := daybook.Invalid("%s must be true or false, not %s", what, n.shown())
	switch strings.ToLower(n.text) {
	case "yes", "on", "y", "true":
		_ = err.WithHint("write true")
	case "no", "off", "n", "false":
		_ = err.WithHint("write false")
	default:
		_ = err.WithHint("write true or false")
	}
	r.fault(n.pos, err)
	return false, false
}

// shown is the value in a message if it is short, else its kind.
func (n *node) shown() any {
	if n.kind == isList || n.kind == isMap || n.kind == isNull || n.text == "" {
		return n.is()
	}
	return strconv.Quote(daybook.Clip(n.text, 40))
}

// integer reads a whole decimal number.
func (r *reader) integer(n *node, what daybook.Text, low, high int) (int, bool) {
	v, err := strconv.Atoi(n.text)
	decimal := n.kind == isNumber && plainDecimal.MatchString(n.text) && err == nil
	if decimal && v >= low && v <= high {
		return v, true
	}
	fault := daybook.Invalid("%s must be a whole number, not %s", what, n.shown())
	if decimal {
		fault = daybook.Invalid("%s: %d is outside %d to %d", what, v, low, high)
	}
	_ = fault.WithHint("write a whole number from %d to %d", low, high)
	switch {
	case n.kind == isText && exponent.MatchString(n.text):
		if f, err := strconv.ParseFloat(n.text, 64); err == nil && f == float64(int64(f)) {
			_ = fault.WithHint("write %d", int64(f))
		}
	case n.kind == isText && plainDecimal.MatchString(n.text):
		_ = fault.WithHint("write it without quotes")
	case n.kind == isNumber && len(n.text) > 1 && n.text[0] == '0' && err == nil:
		_ = fault.WithHint("write %d: a leading 0 means octal to some readers of YAML", v)
	}
	r.fault(n.pos, fault)
	return 0, false
}

// integers reads a list of numbers.
func (r *reader) integers(n *node, what daybook.Text, low, high int) ([]int, bool) {
	if n.kind != isList {
		err := r.wrong(n, what, aList)
		if n.kind == isNumber {
			_ = err.WithHint("write it in brackets: [%s]", daybook.Clip(n.text, 20))
		} else {
			_ = err.WithHint("write numbers in brackets, such as [3, 4]")
		}
		return nil, false
	}
	out, ok := make([]int, 0, len(n.items)), true
	for _, item := range n.items {
		v, good := r.integer(item, what, low, high)
		out, ok = append(out, v), ok && good
	}
	return out, ok
}

// duration reads a duration of at least low.
func (r *reader) duration(n *node, what daybook.Text, low time.Duration) (time.Duration, bool) {
	if n.kind != isText && n.kind != isNumber {
		_ = r.wrong(n, what, aDuration).WithHint("write a whole number and a unit of s, m, h or d, such as 10m")
		return 0, false
	}
	d, err := ParseDuration(n.text)
	if err != nil {
		r.failed(n.pos, what, err)
		return 0, false
	}
	if time.Duration(d) < low {
		r.fault(n.pos, daybook.Invalid("%s: %s is too short", what, d).WithHint("write at least %s", Duration(low)))
		return 0, false
	}
	if time.Duration(d) > daybook.MaxDelay {
		r.fault(n.pos, daybook.Invalid("%s: %s is too long", what, d).WithHint("write at most %s", Duration(daybook.MaxDelay)))
		return 0, false
	}
	return time.Duration(d), true
}

// chosen reads one of a few words.
func chosen[T ~string](r *reader, n *node, what daybook.Text, allowed []T) (T, bool) {
	words := strings.Fields(joined(allowed))
	if n.kind == isText && slices.Contains(words, n.text) {
		return T(n.text), true
	}
	near := daybook.Nearest(strings.ToLower(strings.ReplaceAll(n.text, "-", "_")), words)
	if near == "" {
		near = daybook.Nearest(strings.ToLower(n.text), words)
	}
	if w := otherChoices[strings.ToLower(strings.ReplaceAll(n.text, "-", "_"))]; near == "" && slices.Contains(words, w) {
		near = w
	}
	for _, w := range words {
		if strings.EqualFold(w, n.text) {
			near = w
		}
	}
	err := daybook.Invalid("%s cannot be %s", what, n.shown())
	if near != "" {
		_ = err.WithHint("did you mean %s? one of: %s", near, joined(allowed))
	} else {
		_ = err.WithHint("one of: %s", joined(allowed))
	}
	r.fault(n.pos, err)
	return "", false
}

// joined lists words for a hint.
func joined[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// jobName reads what can be the name of a job.
func (r *reader) jobName(n *node, what daybook.Text) (string, bool) {
	s, ok := r.textual(n, what, false)
	if !ok {
		return "", false
	}
	if err := daybook.CheckName(s); err != nil {
		r.failed(n.pos, what, err)
		return "", false
	}
	return s, true
}

// zoneName reads the name of a time zone that exists.
func (r *reader) zoneName(n *node, what daybook.Text) (string, bool) {
	s, ok := r.textual(n, what, false)
	if !ok {
		return "", false
	}
	if _, err := calendar.Zone(s); err != nil {
		r.failed(n.pos, what, err)
		return "", false
	}
	return s, true
}

// webAddress reads an absolute http or https URL.
func (r *reader) webAddress(n *node, what daybook.Text) (string, bool) {
	s, ok := r.word(n, what)
	if !ok {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		r.fault(n.pos, daybook.Invalid("%s is no web address", what).WithHint("write it with http:// or https://"))
		return "", false
	}
	if _, secret := u.User.Password(); secret {
		r.fault(n.pos, daybook.Invalid("%s holds a password", what).WithHint("leave it out: this address is shown in alerts"))
		return "", false
	}
	return s, true
}
