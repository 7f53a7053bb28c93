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

// Join puts sentences one behind the other. Those that are zero are left out.
func Join(sentences ...Text) Text {
	t := Text{}
	for _, s := range sentences {
		if !s.IsZero() {
			t.args = append(t.args, s)
		}
	}
	return t
}

// String says the sentence in English.
func (t Text) String() string {
	format := t.format
	switch {
	case t.one != "":
		format = t.one
	case format == "":
		format = strings.TrimSuffix(strings.Repeat("%s ", len(t.args)), " ")
	}
	return fmt.Sprintf(format, t.args...)
}

// Parts returns the name of the sentence, its English format, and its arguments; without a name these are sentences that
// stand one behind the other.
func (t Text) Parts() (format string, args []any) { return t.format, t.args }

// IsZero reports whether there is no sentence.
func (t Text) IsZero() bool { return t.format == "" && len(t.args) == 0 }

// MarshalText writes the English sentence: what programs read is in one language.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a finished English sentence.
func (t *Text) UnmarshalText(b []byte) error {
	*t = literal(string(b))
	return nil
}

// literal makes a Text of a finished English text.
func literal(s string) Text { return Text{format: strings.ReplaceAll(s, "%", "%%")} }

// Stored is what a row says in English of why something ended as it did: as an argument of a Text it is said in the language of
// the Text where it is a sentence of Daybook's own.
type Stored string

// Words are machine words (names, keys, commands) one after the other: a, b, c.
type Words []string

// String joins the words as English does.
func (w Words) String() string { return strings.Join(w, ", ") }

// Texts are parts of a sentence, one after the other: a; b; c.
type Texts []Text

// String joins the texts as English does.
func (t Texts) String() string {
	said := make([]string, len(t))
	for i := range t {
		said[i] = t[i].String()
	}
	return strings.Join(said, "; ")
}
