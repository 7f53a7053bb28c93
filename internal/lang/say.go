package lang

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/daybook-run/daybook"
)

// sentences are the Chinese sentences by their English format, a map a room. Punctuation is as in zh.go: full-width, with
// spaces between Chinese and Latin or digits but none around verbs. Verbs are those of the English; where the order
// differs they are numbered (%[2]s). Formats without a letter of their own need no entry.
var sentences = []map[string]string{zhRoot, zhControl, zhCalendar, zhRunner, zhStore, zhHelp, zhCLI, zhTables, zhConfig, zhReference, zhImporter, zhDoors, zhNodes, zhSubjects, zhRestored}

// F says a sentence: English is fmt.Sprintf. In Chinese the sentence is found by its English format, and arguments that
// are themselves words or sentences (daybook.Text, errors, states, reasons) are said in Chinese too. A format that no
// catalogue has is said in English.
func (p Printer) F(format string, args ...any) string {
	if p.Lang() == English {
		return fmt.Sprintf(format, args...)
	}
	return p.format(sentence(format), args)
}

// Phrase says a sentence that takes no arguments and is no format: help, the head of a table.
func (p Printer) Phrase(english string) string {
	if p.Lang() == English {
		return english
	}
	return sentence(english)
}

// Say says a Text.
func (p Printer) Say(t daybook.Text) string {
	if p.Lang() == English {
		return t.String()
	}
	format, args := t.Parts()
	if format == "" { // sentences: their full stops part them
		format = strings.Repeat("%s", len(args))
	}
	return p.format(sentence(format), args)
}

// Error says what err says, its causes included. What a library said stays as it is, but for the few causes that the
// operating system knows.
func (p Printer) Error(err error) string {
	if p.Lang() == English || err == nil {
		return fmt.Sprint(err)
	}
	switch e := err.(type) {
	case *daybook.Error:
		message, _ := e.Texts()
		said := p.Say(message)
		switch {
		case e.Err == nil:
			return said
		case said == "":
			return p.Error(e.Err)
		}
		return p.F("%s: %s", message, e.Err)
	case interface{ Text() daybook.Text }:
		return p.Say(e.Text())
	case interface{ Unwrap() []error }:
		return p.several(err, e.Unwrap())
	}
	if cause := errors.Unwrap(err); cause != nil { // a prefix of our own, or of a library, and what stands behind it
		if prefix, ok := strings.CutSuffix(err.Error(), cause.Error()); ok {
			return prefix + p.Error(cause)
		}
	}
	if said, ok := zhSystem[err.Error()]; ok {
		return said
	}
	return err.Error()
}

// several says errors that were joined, a line each.
func (p Printer) several(err error, joined []error) string {
	var english, said []string
	for _, e := range joined {
		english = append(english, e.Error())
		said = append(said, p.Error(e))
	}
	if strings.Join(english, "\n") != err.Error() {
		return err.Error()
	}
	return strings.Join(said, "\n")
}

// Hint says the first hint in the chain of err, or "".
func (p Printer) Hint(err error) string { return p.Say(daybook.HintText(err)) }

// sentence returns the Chinese format for an English one.
func sentence(format string) string {
	for _, room := range sentences {
		if s, ok := room[format]; ok {
			return s
		}
	}
	return format
}

// format fills a format in as fmt does, with the spaces that Chinese wants beside what is put in.
func (p Printer) format(format string, args []any) string {
	var b strings.Builder
	next, joint := 0, false
	for format != "" {
		text, v, rest := cutVerb(format)
		if text != "" {
			put(&b, text, joint)
			joint = false
		}
		if v.verb != 0 {
			if v.arg > 0 {
				next = v.arg - 1
			}
			said := "%!" + string(v.verb) + "(MISSING)" // as fmt writes it
			if next < len(args) {
				said = fmt.Sprintf("%"+v.flags+string(v.verb), p.arg(args[next]))
			}
			next++
			put(&b, said, true)
			joint = true
		}
		format = rest
	}
	return b.String()
}

// put appends a text; at a joint of a sentence and a value with the space that belongs between them.
func put(b *strings.Builder, s string, joint bool) {
	if joint && b.Len() > 0 && (apart(lastRune(b.String()), firstRune(s)) || quoted(lastRune(b.String()), firstRune(s))) {
		b.WriteByte(' ')
	}
	b.WriteString(s)
}

// quoted reports a sign of the machine's own beside Chinese, where a space makes it stand out: quotes, braces, stars, :15.
func quoted(a, b rune) bool {
	return han(a) && strings.ContainsRune(`"'{[<*:&!`, b) || strings.ContainsRune(`"'}]>*&!`, a) && han(b)
}

// arg is an argument as it is said in this language.
func (p Printer) arg(a any) any {
	switch a := a.(type) {
	case daybook.Text:
		return p.Say(a)
	case daybook.Stored:
		return p.Stored(string(a))
	case daybook.Words:
		return strings.Join(a, p.T("sep.list"))
	case daybook.Texts:
		return p.list(a)
	case daybook.State:
		return p.State(a)
	case daybook.Reason:
		return p.Reason(a, "")
	case daybook.TriggerOutcome:
		return p.Outcome(a)
	case daybook.LetterState:
		return p.Letter(a)
	case daybook.LetterKind:
		return p.LetterKind(a)
	case daybook.AlertKind:
		return p.Alert(a)
	case daybook.Source:
		return p.Source(a)
	case error:
		return p.Error(a)
	}
	return a
}

func (p Printer) list(texts daybook.Texts) string {
	said := make([]string, len(texts))
	for i := range texts {
		said[i] = p.Say(texts[i])
	}
	return strings.Join(said, p.T("sep.clause"))
}

// verb is one verb of a format: %[arg]flags and its letter. The zero verb is none.
type verb struct {
	arg   int // from 1; 0: the next one
	flags string
	verb  rune
}

// cutVerb cuts a format behind its first verb: the text before it, with %% as %, the verb, and the rest.
func cutVerb(format string) (text string, v verb, rest string) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(format, "%")
		b.WriteString(before)
		switch {
		case !found:
			return b.String(), verb{}, ""
		case strings.HasPrefix(after, "%"):
			b.WriteByte('%')
			format = after[1:]
			continue
		}
		if number, behind, ok := strings.Cut(after, "]"); ok && strings.HasPrefix(number, "[") {
			if n, err := strconv.Atoi(number[1:]); err == nil {
				v.arg, after = n, behind
			}
		}
		end := strings.IndexFunc(after, func(r rune) bool { return !strings.ContainsRune("+-# .0123456789", r) })
		if end < 0 {
			return b.String() + "%" + after, verb{}, ""
		}
		v.flags, v.verb = after[:end], rune(after[end])
		return b.String(), v, after[end+1:]
	}
}

// hasWords reports whether a format says something itself, beside its verbs.
func hasWords(format string) bool {
	for format != "" {
		text, _, rest := cutVerb(format)
		if strings.ContainsFunc(text, unicode.IsLetter) {
			return true
		}
		format = rest
	}
	return false
}
