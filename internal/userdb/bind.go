package userdb

import (
	"fmt"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Args are what stands for the names of a query: a window of a job.
type Args struct {
	Date       string // business date
	Window     string // label
	Start, End time.Time
}

// Names are those that may stand in a query behind a colon.
var Names = []string{"date", "window", "window_start", "window_end"}

func (a Args) value(name string, kind Kind) any {
	instant := func(t time.Time) any {
		if kind == Postgres {
			return t.UTC()
		}
		return t.UTC().Format(time.DateTime) // as both compare instants that are kept as text or DATETIME, in UTC
	}
	switch name {
	case "date":
		return a.Date
	case "window":
		return a.Window
	case "window_start":
		return instant(a.Start)
	case "window_end":
		return instant(a.End)
	}
	return nil
}

// Check refuses a query with a :name that Daybook does not know, or that is more than one statement, whatever the kind of
// its database. Errors have CodeInvalid.
func Check(query string) error {
	_, _, err := bind(query, Postgres, Args{})
	if _, _, other := bind(query, MySQL, Args{}); other == nil {
		return nil
	}
	return err
}

// bind puts the placeholders of a database where the names stand. Text in quotes, comments and casts are left alone.
func bind(query string, kind Kind, args Args) (text string, values []any, err error) {
	query = strings.TrimRight(strings.TrimSpace(query), "; \t\r\n")
	if query == "" {
		return "", nil, daybook.Invalid("the query is empty")
	}
	var b strings.Builder
	numbers := map[string]int{}
	for i := 0; i < len(query); {
		n := skipped(query[i:], kind)
		switch {
		case n > 0:
		case query[i] == ';':
			return "", nil, daybook.Invalid("the query is more than one statement").WithHint("keep the SELECT alone")
		case query[i] == ':' && i+1 < len(query) && letter(query[i+1]):
			name := word(query[i+1:])
			if !known(name) {
				err := daybook.Invalid(":%s is no name that a query can use", daybook.Clip(name, 40))
				if near := daybook.Nearest(name, Names); near != "" {
					return "", nil, err.WithHint("did you mean :%s?", near)
				}
				return "", nil, err.WithHint("one of: %s", ":"+strings.Join(Names, " :"))
			}
			if kind == Postgres {
				if numbers[name] == 0 {
					values = append(values, args.value(name, kind))
					numbers[name] = len(values)
				}
				fmt.Fprintf(&b, "$%d", numbers[name])
			} else {
				values = append(values, args.value(name, kind))
				b.WriteByte('?')
			}
			i += 1 + len(name)
			continue
		default:
			n = 1
		}
		b.WriteString(query[i : i+n])
		i += n
	}
	return b.String(), values, nil
}

// skipped returns the length of what is no place for a name at the start of s: text in quotes, a comment, a cast. 0: it is
// none of these.
func skipped(s string, kind Kind) int {
	end := func(from int, mark string) int {
		if i := strings.Index(s[from:], mark); i >= 0 {
			return from + i + len(mark)
		}
		return len(s)
	}
	switch {
	case kind == MySQL && (s[0] == '\'' || s[0] == '"'):
		return escaped(s)
	case kind == MySQL && s[0] == '#':
		return end(1, "\n")
	case s[0] == '\'' || s[0] == '"' || s[0] == '`':
		return end(1, s[:1]) // a doubled quote begins the next text
	case strings.HasPrefix(s, "--"):
		return end(2, "\n")
	case strings.HasPrefix(s, "/*"):
		return end(2, "*/")
	case strings.HasPrefix(s, "::"):
		return 2
	}
	return 0
}

// escaped returns the length of the text in quotes at the start of s, in which a backslash takes the next byte as it is.
func escaped(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func word(s string) string {
	n := 0
	for n < len(s) && (letter(s[n]) || s[n] >= '0' && s[n] <= '9') {
		n++
	}
	return s[:n]
}

func known(name string) bool {
	for _, n := range Names {
		if n == name {
			return true
		}
	}
	return false
}
