package importer

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// bare matches texts that every reader of YAML takes for the text that they are.
var bare = regexp.MustCompile(`^(-{0,2}[A-Za-z/_]|\.[/A-Za-z])[A-Za-z0-9/_.+@-]*$`)

// notBare are words that some reader of YAML takes for something else than a text.
var notBare = map[string]bool{"true": true, "false": true, "null": true, "yes": true, "no": true, "on": true, "off": true, "y": true, "n": true, ".inf": true, ".nan": true, "inf": true, "nan": true}

// scalar writes a text as a value.
func scalar(s string) string {
	switch {
	case bare.MatchString(s) && !notBare[strings.ToLower(s)]:
		return s
	case strings.ContainsFunc(s, hidden) || !strings.ContainsAny(s, `"\`):
		return double(s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// double writes a text in double quotes.
func double(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case hidden(c) && c > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, c)
		case hidden(c):
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// hidden reports whether a character is not seen, or breaks a line: it is written by its number.
func hidden(c rune) bool {
	switch {
	case c < ' ', c >= 0x7f && c < 0xa0, c == 0xad, c == 0xfeff, c == utf8.RuneError:
		return true
	case c >= 0x200b && c <= 0x200f, c >= 0x2028 && c <= 0x202e, c >= 0x2060 && c <= 0x2069, c >= 0xfff0 && c <= 0xffff:
		return true
	}
	return false
}

// list writes texts in a row.
func list(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = scalar(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// comment makes a text fit for a comment: one line, with nothing hidden in it.
func comment(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t' || c == '\n':
			return ' '
		case hidden(c):
			return '\ufffd'
		}
		return c
	}, strings.ToValidUTF8(s, "\ufffd"))
}
