package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
)

// Fault is one thing wrong with a file, or, as a warning, one thing that is allowed and surprises people.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`   // from 1; 0: the file as a whole
	Column  int    `json:"column,omitempty"` // from 1, in characters
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`    // the remedy
	Excerpt string `json:"excerpt,omitempty"` // the source line and, below it, a caret; secrets are masked
	// Err is what Message and Hint are made of.
	Err *daybook.Error `json:"-"`
}

// NewFault returns a fault without an excerpt.
func NewFault(file string, line, column int, err *daybook.Error) Fault {
	return Fault{File: file, Line: line, Column: column, Message: err.Error(), Hint: daybook.HintOf(err), Err: err}
}

// Place returns file:line:column, as editors and terminals know it.
func (f Fault) Place() string {
	if f.Line == 0 {
		return f.File
	}
	return f.File + ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column)
}

// String returns the fault over several lines: place and message, excerpt, remedy.
func (f Fault) String() string { return f.In(lang.For(lang.English)) }

// In is String in a language.
func (f Fault) In(p lang.Printer) string {
	s := f.Place() + ": " + p.Error(f.Err)
	if f.Excerpt != "" {
		s += "\n" + f.Excerpt
	}
	if hint := p.Hint(f.Err); hint != "" {
		s += "\n  → " + hint
	}
	return s
}

// Errors are all faults of one file, sorted by position. Its code is daybook.CodeInvalid.
type Errors []Fault

// maxShown bounds what one broken file prints: nobody reads more, and 5 MB of faults help nobody.
const maxShown = 100

func (e Errors) Error() string { return e.In(lang.For(lang.English)) }

// In is Error in a language.
func (e Errors) In(p lang.Printer) string {
	var b strings.Builder
	for i, f := range e[:min(len(e), maxShown)] {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(f.In(p))
	}
	if more := len(e) - maxShown; more > 0 {
		b.WriteString("\n" + p.F("… and %d more", more))
	}
	return b.String()
}

// Unwrap makes daybook.CodeOf and errors.Is see CodeInvalid.
func (e Errors) Unwrap() error { return daybook.ErrInvalid }

// MarshalJSON writes {"schema":"daybook/faults.v1","faults":[…]}.
func (e Errors) MarshalJSON() ([]byte, error) {
	faults := []Fault(e)
	if faults == nil {
		faults = []Fault{}
	}
	return json.Marshal(struct {
		Schema string  `json:"schema"`
		Faults []Fault `json:"faults"`
	}{"daybook/faults.v1", faults})
}

// maxFaults bounds the faults that are kept of one file.
const maxFaults = 1000

// finish orders faults by position, drops what is said twice and adds the excerpts.
func (r *reader) finish(faults []Fault) []Fault {
	for i, f := range faults { // hints were given after the fault was recorded
		faults[i] = NewFault(f.File, f.Line, f.Column, f.Err)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	faults = slices.CompactFunc(faults, func(a, b Fault) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
	line, masked := 0, []rune(nil) // a line may be megabytes long and have a thousand faults
	for i := range faults {
		f := &faults[i]
		if f.Line < 1 || f.Line > len(r.lines) {
			continue
		}
		if f.Line != line {
			line, masked = f.Line, []rune(maskLine(r.lines[f.Line-1]))
		}
		f.Excerpt = excerpt(masked, f.Line, f.Column)
	}
	return faults
}

// excerptWidth is how many characters of a line are shown.
const excerptWidth = 100

// excerpt shows one line of the source and a caret below the column.
func excerpt(runes []rune, line, column int) string {
	at := min(max(column-1, 0), len(runes))
	from := 0
	if at > excerptWidth*3/4 {
		from = at - excerptWidth/2
	}
	to := min(len(runes), from+excerptWidth)
	number := strconv.Itoa(line)
	var text, pad strings.Builder
	if from > 0 {
		text.WriteString("…")
		pad.WriteByte(' ')
	}
	for i := from; i < to; i++ {
		r := runes[i]
		switch {
		case r == '\t':
			r = ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || invisible(r):
			r = '�'
		}
		text.WriteRune(r)
		if i < at {
			pad.WriteByte(' ')
			if wide(r) {
				pad.WriteByte(' ')
			}
		}
	}
	if to < len(runes) {
		text.WriteString("…")
	}
	return fmt.Sprintf("  %s | %s\n  %s | %s^", number, text.String(), strings.Repeat(" ", len(number)), pad.String())
}

// invisible tells characters that turn or hide the text around them: what a terminal shows would not be what is read.
func invisible(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}

// wide tells characters that take two columns of a terminal.
func wide(r rune) bool {
	return r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf && r != 0x303f || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 ||
		r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd
}

var (
	urlPassword = regexp.MustCompile(`(://[^\s:/@"']*:)([^\s"']*)(@)`)
	namedSecret = regexp.MustCompile(`(?i)([a-z0-9_-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|private_?key|credential)[a-z0-9_-]*["']?\s*[:=]\s*)("[^"]*"?|'[^']*'?|[^\s,}&"']+)()`)
	headerLine  = regexp.MustCompile(`(?i)((?:authorization|cookie)["']?\s*:\s*)("[^"]*"?|'[^']*'?|[^,}"']+)()`)
)

// maskLine replaces what looks like a secret in a line of the source by stars, one a character, so that a caret below
// the line stays right. References stay.
func maskLine(line string) string {
	return maskWith(namedSecret, maskWith(headerLine, maskWith(urlPassword, line)))
}

func maskWith(re *regexp.Regexp, line string) string {
	var b strings.Builder
	end := 0
	for _, m := range re.FindAllStringSubmatchIndex(line, -1) {
		value := line[m[4]:m[5]]
		b.WriteString(line[end:m[4]])
		if bare := strings.Trim(value, `"'`); isReference(bare) {
			b.WriteString(value)
		} else {
			b.WriteString(strings.Repeat("*", len([]rune(value))))
		}
		end = m[5]
	}
	return b.String() + line[end:]
}
