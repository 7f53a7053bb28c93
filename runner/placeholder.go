package runner

import (
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// placeholders lists the names that stand in braces within an argument of `run`.
var placeholders = []string{"key", "wire_key", "job", "date", "window", "window_start", "window_end", "subject"}

// environmentOnly lists what a command finds in its environment and might look for in braces.
var environmentOnly = []string{"attempt", "fence", "trigger", "business_date", "payload_file", "result_file", "token", "server", "db"}

// CheckPlaceholders refuses an argument with a name in braces that looks like a placeholder and is none: one letter
// off a known one, or something that only the environment has. Other text in braces is no business of ours
// (awk '{print}' is an honest argument) and is left as it is. Errors have CodeInvalid.
func CheckPlaceholders(arg string) error {
	var fault error
	eachPlaceholder(arg, func(name string) (string, bool) {
		if fault != nil || contains(placeholders, name) {
			return "", false
		}
		if contains(environmentOnly, name) {
			fault = daybook.Invalid("{%s} is no placeholder", name).
				WithHint("the command finds it in its environment, as DAYBOOK_%s", strings.ToUpper(name))
		} else if near := daybook.Nearest(name, placeholders); near != "" {
			fault = daybook.Invalid("{%s} is no placeholder", daybook.Clip(name, 40)).WithHint("did you mean {%s}?", near)
		}
		return "", false
	})
	return fault
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

// expand replaces the placeholders in one argument. What is put in is not looked at again.
func expand(arg string, o daybook.Order) string {
	return eachPlaceholder(arg, func(name string) (string, bool) { return placeholder(name, o) })
}

func placeholder(name string, o daybook.Order) (string, bool) {
	switch w, b := o.Run.Window, given(o.Run); name {
	case "key":
		return string(o.Run.Key), true
	case "wire_key":
		return o.WireKey, true
	case "job":
		return o.Run.Job, true
	case "date":
		return w.Date, true
	case "window":
		return w.Label, true
	case "window_start":
		return instant(b.Start), true
	case "window_end":
		return instant(b.End), true
	case "subject":
		return o.Run.Subject, true
	}
	return "", false
}

// given returns the bounds that the attempts of a run are given: those of all it covers, or its own window's.
func given(r *daybook.Run) daybook.Bounds {
	b := r.Cover
	if b.Start.IsZero() {
		b.Start = r.Window.Start
	}
	if b.End.IsZero() {
		b.End = r.Window.End
	}
	return b
}

// instant writes a bound of a window; one that is not set is empty.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// eachPlaceholder calls replace for every {name} made of small letters and '_', and puts what it returns in its place
// when it says so. ${name} belongs to another language and is passed over.
func eachPlaceholder(arg string, replace func(name string) (string, bool)) string {
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
