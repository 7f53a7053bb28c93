package runner

import (
	"time"

	"github.com/daybook-run/daybook"
)

// expand replaces the placeholders in one argument. What is put in is not looked at again.
func expand(arg string, o daybook.Order) string {
	return daybook.EachPlaceholder(arg, func(name string) (string, bool) { return o.Run.Placeholder(name, o.WireKey) })
}

// instant writes a bound of a window; one that is not set is empty.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
