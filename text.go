package daybook

import (
	"fmt"
	"strings"
)

// Text is a sentence for people, not yet in any language: its English format, which is also its name in the catalogues of
// other languages, and what goes into it. Whoever shows it chooses the language (internal/lang); String is the English that
// logs, JSON and programs get. An argument may be a Text, an error or one of the words of this package (State, Reason …):
// it is then said in the same language. The zero Text is no sentence.
type Text struct {
	format, one string
	args        []any
}

// Say makes a Text. The format is a constant: a test collects all of them and wants each in every language. It is a whole
// sentence, or a part that stands alone (a cause, a list): languages differ in what they put first.
func Say(format string, args ...any) Text {
	if false {
		_ = fmt.Sprintf(format, args...) // go vet then checks the arguments
	}
	return Text{format: format, args: args}
}

// Count makes a Text that counts: one is its English format for n = 1, more for any other number. The first verb of both
// is n. Other languages know it by more.
func Count(n int, one, more string, args ...any) Text {
	t := Text{format: more, args: append([]any{n}, args...)}
	if n == 1 {
		t.one = one
	}
	return t
}

// String says the sentence in English.
func (t Text) String() string {
	format := t.format
	if t.one != "" {
		format = t.one
	}
	return fmt.Sprintf(format, t.args...)
}

// Parts returns the name of the sentence, its English format, and its arguments.
func (t Text) Parts() (format string, args []any) { return t.format, t.args }

// IsZero reports whether there is no sentence.
func (t Text) IsZero() bool { return t.format == "" }

// MarshalText writes the English sentence: what programs read is in one language.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// literal makes a Text of a finished English text.
func literal(s string) Text { return Text{format: strings.ReplaceAll(s, "%", "%%")} }

// Words are machine words (names, keys, commands) one after the other: a, b, c.
type Words []string

// String joins the words as English does.
func (w Words) String() string { return strings.Join(w, ", ") }
