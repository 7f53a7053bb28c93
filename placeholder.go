package daybook

import (
	"slices"
	"strings"
	"time"
)

// Placeholders are the names that stand in braces within an argument of `run`, an address of `http` and a serial key.
var Placeholders = []string{"key", "wire_key", "job", "date", "window", "window_start", "window_end", "subject"}

// environmentOnly lists what a command finds in its environment and might look for in braces.
var environmentOnly = []string{"attempt", "fence", "trigger", "business_date", "payload_file", "result_file", "token", "server", "db"}

// CheckPlaceholders refuses a text with a name in braces that looks like a placeholder and is none: one letter off a known
// one, or something that only the environment has. Other text in braces is no business of ours (awk '{print}' is an honest
// argument) and is left as it is. Errors have CodeInvalid.
func CheckPlaceholders(text string) error {
	var fault error
	EachPlaceholder(text, func(name string) (string, bool) {
		if fault != nil || slices.Contains(Placeholders, name) {
			return "", false
		}
		if slices.Contains(environmentOnly, name) {
			fault = Invalid("{%s} is no placeholder", name).
				WithHint("the command finds it in its environment, as DAYBOOK_%s", strings.ToUpper(name))
		} else if near := Nearest(name, Placeholders); near != "" {
			fault = Invalid("{%s} is no placeholder", Clip(name, 40)).WithHint("did you mean {%s}?", near)
		}
		return "", false
	})
	return fault
}

// Placeholder returns what stands for a name in braces, and false for a name that is no placeholder.
func (r *Run) Placeholder(name, wireKey string) (string, bool) {
	switch b := r.Given(); name {
	case "key":
		return string(r.Key), true
	case "wire_key":
		return wireKey, true
	case "job":
		return r.Job, true
	case "date":
		return r.Window.Date, true
	case "window":
		return r.Window.Label, true
	case "window_start":
		return bound(b.Start), true
	case "window_end":
		return bound(b.End), true
	case "subject":
		return r.Subject, true
	}
	return "", false
}

// Given returns the bounds that the attempts of a run are given: those of all it covers, or its own window's.
func (r *Run) Given() Bounds {
	b := r.Cover
	if b.Start.IsZero() {
		b.Start = r.Window.Start
	}
	if b.End.IsZero() {
		b.End = r.Window.End
	}
	return b
}

// bound writes a bound of a window; one that is not set is empty.
func bound(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// EachPlaceholder returns text with its placeholders replaced: it calls replace for every {name} made of small letters and '_', and puts what it returns in its place
// when it says so. ${name} belongs to another language and is passed over.
func EachPlaceholder(arg string, replace func(name string) (string, bool)) string {
	if !strings.Contains(arg, "{") {
		return arg
	}
	var b strings.Builder
	for i := 0; i < len(arg); {
		n := placeholderLen(arg[i:])
		if n == 0 || i > 0 && arg[i-1] == '$' {
			b.WriteByte(arg[i])
			i++
			continue
		}
		if value, ok := replace(arg[i+1 : i+n-1]); ok {
			b.WriteString(value)
		} else {
			b.WriteString(arg[i : i+n])
		}
		i += n
	}
	return b.String()
}

// placeholderLen returns the length of the {name} at the start of s, 0 if there is none.
func placeholderLen(s string) int {
	if s[0] != '{' {
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c == '_':
		case c == '}' && i > 1:
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

// MaxSerialBytes bounds the template of a serial key.
const MaxSerialBytes = 100

// checkSerial refuses a template whose braces hold anything but a placeholder: left as it is, it would be one lock for all.
func checkSerial(template string) *Error {
	if len(template) > MaxSerialBytes {
		return Invalid("serial has %d bytes: at most %d are allowed", len(template), MaxSerialBytes)
	}
	if strings.ContainsFunc(template, func(r rune) bool { return r <= ' ' || r == 0x7f }) || strings.ToValidUTF8(template, "") != template {
		return Invalid("serial has a space or a control character in it").WithHint("such as serial: \"subscription:{subject}\"")
	}
	var fault *Error
	EachPlaceholder(template, func(name string) (string, bool) {
		if fault == nil && !slices.Contains(Placeholders, name) {
			fault = Invalid("{%s} is no placeholder", Clip(name, 40))
			if near := Nearest(name, Placeholders); near != "" {
				_ = fault.WithHint("did you mean {%s}?", near)
			} else {
				_ = fault.WithHint("there are {%s}", strings.Join(Placeholders, "}, {"))
			}
		}
		return "", false
	})
	return fault
}

// SerialKey returns the serial key that a template gives r: runs with one value are never at work at once, whatever their
// job. A template that names the subject gives none to a run without one.
func (r *Run) SerialKey(template string) string {
	none := false
	key := EachPlaceholder(template, func(name string) (string, bool) {
		none = none || name == "subject" && r.Subject == ""
		return r.Placeholder(name, r.WireKey())
	})
	if none {
		return ""
	}
	return key
}
