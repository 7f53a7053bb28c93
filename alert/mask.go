package alert

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// shortestSecret is the length below which a secret is not looked for: masking every "ab" would leave nothing to read.
const shortestSecret = 4

// Mask replaces every secret in a text by ***: as it is, as it stands in a URL, and in base64. A secret of several lines is
// looked for line by line too, because errors quote one.
func Mask(text string, secrets []string) string {
	var forms []string
	for _, s := range secrets {
		for _, part := range append(strings.Split(s, "\n"), s) {
			part = strings.TrimSpace(part)
			if len(part) < shortestSecret {
				continue
			}
			forms = append(forms, part, url.QueryEscape(part), url.PathEscape(part), base64.StdEncoding.EncodeToString([]byte(part)))
		}
	}
	// The longest first: one secret may be the beginning of another.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	for _, f := range forms {
		text = strings.ReplaceAll(text, f, "***")
	}
	return text
}

// oneLine keeps a text in the line it stands in: no line breaks, no control characters, nothing that turns the direction
// of writing. What is removed leaves a space, and runs of spaces become one.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\uFEFF' ||
			r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' || r == '\u200E' || r == '\u200F'
	}), " ")
}
