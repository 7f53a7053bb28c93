package alert

import (
	"strings"
	"unicode"
)

// oneLine keeps a text in the line it stands in: no line breaks, no control characters, nothing that turns the direction
// of writing. What is removed leaves a space, and runs of spaces become one.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\uFEFF' ||
			r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' || r == '\u200E' || r == '\u200F'
	}), " ")
}
