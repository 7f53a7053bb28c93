// Package lang has every text that people read in more than one language. What stands in alerts and on pages, and the words
// for states, has a name, and a catalogue a language with the same names. What the code says where it happens (errors, the
// answers of the command line, its help) is named by its English format: the code has the English, and the files zh_*.go
// have the Chinese beside it. Plurals, and what terminals and lock screens need to cut a text, are here too. It decides nothing, knows no
// clock and formats no dates: those are values by the time they come here. Rooms, pages and the command line call it.
//
// Machine words (keys, states in JSON, flags, commands) are never translated; a catalogue has the words shown beside them.
package lang

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The languages.
const (
	English = "en"
	Chinese = "zh-CN"
)

// Languages lists them, the default first.
var Languages = []string{English, Chinese}

// catalogues has one map a language; each stands in a file of its own, in the same order, to be read side by side.
var catalogues = map[string]map[string]string{English: en, Chinese: zh}

// Printer writes texts in one language. The zero value writes English.
type Printer struct{ lang string }

// For returns the printer of a language; any other name than those of Languages means English. Match finds a name for
// what a person or a browser prefers.
func For(lang string) Printer {
	if _, ok := catalogues[lang]; !ok {
		lang = English
	}
	return Printer{lang: lang}
}

// Lang returns the name of the language.
func (p Printer) Lang() string {
	if p.lang == "" {
		return English
	}
	return p.lang
}

// T returns the text of a name. The arguments come in pairs, the name of a placeholder and its value: T("letters", "n", 3).
// A text with plurals has no entry under its own name but one under name/other and, in English, name/one; the value of
// the placeholder n, an int, chooses between them. A name that no catalogue has comes back as it is, a placeholder without
// a value stays as it stands: both are mistakes of the programmer that a person can still read around.
func (p Printer) T(name string, args ...any) string {
	c := catalogues[p.Lang()]
	text, ok := c[name]
	if !ok {
		if text, ok = c[name+"/"+p.plural(args)]; !ok {
			return name
		}
	}
	return p.fill(text, args)
}

// Has reports whether there is a text of this name.
func (p Printer) Has(name string) bool {
	c := catalogues[p.Lang()]
	_, plain := c[name]
	_, plural := c[name+"/other"]
	return plain || plural
}

// plural is the plural form that the placeholder n asks for.
func (p Printer) plural(args []any) string {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == "n" && p.Lang() == English {
			if n, ok := args[i+1].(int); ok && n == 1 {
				return "one"
			}
		}
	}
	return "other"
}

// fill puts the values in. Values are never read for placeholders again. In Chinese a space comes between a Chinese
// character and a Latin letter or a digit, so a catalogue writes none around placeholders: only here is it known on which
// side of one there will be which.
func (p Printer) fill(text string, args []any) string {
	var b strings.Builder
	put := func(s string, joint bool) {
		if joint && p.Lang() == Chinese && apart(lastRune(b.String()), firstRune(s)) {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	joint := false
	for {
		open := strings.IndexByte(text, '{')
		end := -1
		if open >= 0 {
			end = strings.IndexByte(text[open:], '}')
		}
		if end < 0 {
			put(text, joint)
			return b.String()
		}
		if open > 0 {
			put(text[:open], joint)
		}
		name := text[open+1 : open+end]
		text = text[open+end+1:]
		put(value(name, args), true)
		joint = true
	}
}

func value(name string, args []any) string {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == name {
			return fmt.Sprint(args[i+1])
		}
	}
	return "{" + name + "}"
}

func firstRune(s string) rune { r, _ := utf8.DecodeRuneInString(s); return r }
func lastRune(s string) rune  { r, _ := utf8.DecodeLastRuneInString(s); return r }

// apart reports whether a space belongs between two neighbours in Chinese text.
func apart(a, b rune) bool { return han(a) && latin(b) || latin(a) && han(b) }

func han(r rune) bool { return unicode.Is(unicode.Han, r) }

// latin is what is set apart from Chinese characters: letters and digits, and the signs with which keys and commands begin
// and end.
func latin(r rune) bool {
	return r > ' ' && r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("#@/$~_-+%", r))
}
