package config

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
	"github.com/goccy/go-yaml/token"
)

// What is told of more than one slip.
var (
	errTab    = daybook.Invalid("a tab indents this line").WithHint("indent with spaces: YAML forbids tabs there")
	errColon  = daybook.Invalid("a second ':' in one value").WithHint(`put the text in quotes if it holds ": "`)
	errName   = daybook.Invalid("a line without a ':'").WithHint("write name: value")
	errIndent = daybook.Invalid("a value or an indentation that does not fit").WithHint("names of one map stand below each other, in the same column")
	errList   = daybook.Invalid("a list that is not closed").WithHint(`put a , between its items and close it with ]; texts with { } [ ] or , in them are put in quotes, such as "{date}"`)
	errMap    = daybook.Invalid("a map that is not closed").WithHint(`put a , between its parts and close it with }; texts with { } [ ] or , in them are put in quotes, such as "{date}"`)
)

// syntaxWords puts what the parser says into words with a remedy. The first match counts.
var syntaxWords = []struct {
	part string
	err  *daybook.Error
}{
	{"found character '\t'", errTab},
	{"tab character", errTab},
	{"mapping value is not allowed", errColon},
	{"non-map value is specified", errName},
	{"unexpected key name", errName},
	{"',' or ']' must be specified", errList},
	{"sequence end token ']' not found", errList},
	{"',' or '}' must be specified", errMap},
	{"mapping end token '}' not found", errMap},
	{"could not find end character of", daybook.Invalid("a text in quotes that is not closed").WithHint("close it with the same quote")},
	{"unknown escape character", daybook.Invalid("an unknown escape in a text in double quotes").WithHint(`write \\ for a backslash, or use single quotes`)},
	{"is a reserved character", daybook.Invalid("a text begins with a reserved character").WithHint("put it in quotes")},
	{"value is not allowed in this context", errIndent},
}

// syntax records an error of the parser.
func (r *reader) syntax(err error) {
	at := pos{1, 1}
	message := err.Error()
	var t *token.Token
	var se interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &se) {
		message = se.GetMessage()
		if t = se.GetToken(); t != nil {
			at = positionOf(t)
		}
	}
	for n := at.line; n > 0 && n >= at.line-1; n-- {
		if p, err := r.oddSpace(n); err != nil {
			r.fault(p, err)
			return
		}
	}
	for _, w := range syntaxWords {
		if strings.Contains(message, w.part) {
			r.fault(r.slip(w.err, at, t))
			return
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	r.fault(at, daybook.Invalid("not valid YAML: %s", message).WithHint(quoteHint))
}

var (
	colonWithoutSpace = regexp.MustCompile(`^\s*(- )?([A-Za-z_][A-Za-z0-9_-]*):\S`)
	wideColon         = regexp.MustCompile(`^\s*(?:- )?([A-Za-z_][A-Za-z0-9_-]*)\s*：`)
	dashWithoutSpace  = regexp.MustCompile(`^\s*-[^\s-]`)
)

// slip finds, where the parser has lost its way, the slip of the hand that led it there.
func (r *reader) slip(err *daybook.Error, at pos, t *token.Token) (pos, *daybook.Error) {
	line := r.line(at.line)
	switch {
	case err == errIndent && t != nil && t.Prev != nil && (t.Prev.Type == token.DoubleQuoteType || t.Prev.Type == token.SingleQuoteType):
		begin := positionOf(t.Prev)
		return begin, daybook.Invalid("the text in quotes that begins here ends in line %d, column %d, and something follows", at.line, at.column).
			WithHint(`close it with the same quote where it should end; a quote in it is written twice in single quotes, and \" in double ones`)
	case err == errName && colonWithoutSpace.MatchString(line):
		return at, daybook.Invalid("no space behind the ':' of %s", colonWithoutSpace.FindStringSubmatch(line)[2]).WithHint("write a space between the ':' and the value")
	case err == errName && wideColon.MatchString(line):
		return at, daybook.Invalid("the ':' of %s is a full-width one", wideColon.FindStringSubmatch(line)[1]).WithHint("write a plain ':' and a space in place of ：")
	case err == errName && dashWithoutSpace.MatchString(line):
		return at, daybook.Invalid("no space behind the '-' of an item").WithHint("write a space between the '-' and the item")
	case err == errColon && indent(r.line(at.line+1)) > indent(line) && strings.Contains(r.line(at.line+1), ":"):
		return pos{at.line + 1, indent(r.line(at.line+1)) + 1}, daybook.Invalid("this line is indented deeper than the one before it, which has a value").
			WithHint("names of one map stand below each other, in the same column")
	}
	return at, err
}

// oddSpace finds a space in the indentation of a line that looks like one and is none for YAML.
func (r *reader) oddSpace(n int) (pos, *daybook.Error) {
	line := r.line(n)
	at := indent(line)
	odd, _ := utf8.DecodeRuneInString(line[at:])
	if !unicode.Is(unicode.Zs, odd) && odd != '\u200b' && odd != '\ufeff' {
		return pos{}, nil
	}
	return pos{n, at + 1}, daybook.Invalid("a character that only looks like a space indents this line: %U", odd).WithHint("indent with plain spaces: delete what stands before the name, and type them")
}

// line returns a line of the source, from 1; there is nothing behind the last one.
func (r *reader) line(n int) string {
	if n < 1 || n > len(r.lines) {
		return ""
	}
	return r.lines[n-1]
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
