package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-run/daybook"
)

// pos is a place in the source: line and column from 1. The zero value is the file as a whole.
type pos struct{ line, column int }

type kind int

const (
	isNull kind = iota
	isText
	isNumber
	isBool
	isList
	isMap
)

// What a node is, in words.
var (
	aText    = daybook.Say("a text")
	aNumber  = daybook.Say("a number")
	aBool    = daybook.Say("true or false")
	aList    = daybook.Say("a list")
	aMap     = daybook.Say("a map")
	aNothing = daybook.Say("nothing")

	aDuration = daybook.Say("a duration")
	aLadder   = daybook.Say("a list of delays")
	aFactor   = daybook.Say("a number from 1 to 100")
)

func (n *node) is() daybook.Text {
	switch n.kind {
	case isText:
		return aText
	case isNumber:
		return aNumber
	case isBool:
		return aBool
	case isList:
		return aList
	case isMap:
		return aMap
	}
	return aNothing
}

// node is a value of the file.
type node struct {
	pos
	kind   kind
	text   string // of scalars: the text, or the source of a number or bool
	quoted bool
	items  []*node
	pairs  []pair
}

type pair struct{ key, value *node }

// reader collects the faults of one file while it is read.
type reader struct {
	path     string
	lines    []string
	readFile func(string) ([]byte, error) // of business calendars
	faults   []Fault
	more     int // faults beyond maxFaults
	warnings []Fault
	listings map[string]daybook.Listing // of subjects, by name; empty: one with a fault
	renames  []rename                   // jobs that had another name
}

// fault records what is wrong at a place.
func (r *reader) fault(at pos, err *daybook.Error) {
	if len(r.faults) >= maxFaults {
		r.more++
		return
	}
	r.faults = append(r.faults, Fault{File: r.path, Line: at.line, Column: at.column, Err: err})
}

// count returns how many faults there are so far.
func (r *reader) count() int { return len(r.faults) + r.more }

// warn records what is allowed and surprises people.
func (r *reader) warn(at pos, err *daybook.Error) {
	if len(r.warnings) < maxFaults {
		r.warnings = append(r.warnings, Fault{File: r.path, Line: at.line, Column: at.column, Err: err})
	}
}

// failed records an error, with its hint. what names whose it is and is left out where the message says so already.
func (r *reader) failed(at pos, what daybook.Text, err error) {
	if what.IsZero() || strings.HasPrefix(err.Error(), what.String()) {
		r.fault(at, (&daybook.Error{Code: daybook.CodeInvalid}).Because(err))
		return
	}
	r.fault(at, daybook.Invalid("%s", what).Because(err))
}

// name is one name that a map may have: what it is, and how its value is read.
type name[T any] struct {
	about
	read func(r *reader, into *T, key, value *node)
}

// readMap reads a map strictly: names that are unknown, repeated or not available yet are faults. what names the map in
// messages, such as "job renew"; the top of the file has no name.
func readMap[T any](r *reader, n *node, what daybook.Text, names []name[T], later []string, into *T) {
	if n.kind != isMap {
		r.wrong(n, what, aMap).WithHint("write name: value lines below it, indented")
		return
	}
	seen := map[string]pos{}
	for _, p := range n.pairs {
		word := p.key.text
		if first, twice := seen[word]; twice {
			r.fault(p.key.pos, daybook.Invalid("%s stands twice", in(what, quoted(word))).WithHint("keep one; the first is in line %d", first.line))
			continue
		}
		seen[word] = p.key.pos
		i := slices.IndexFunc(names, func(f name[T]) bool { return f.word == word })
		switch {
		case i < 0 && slices.Contains(later, word):
			r.fault(p.key.pos, daybook.Invalid("%s is not available in this version", in(what, word)).WithHint("remove it"))
		case i < 0:
			r.unknown(p.key, what, meant(word, names, later), words(names))
		case p.value.kind == isNull:
			r.fault(p.key.pos, r.hinted(p.key, daybook.Invalid("%s has no value", in(what, word)).WithHint("give it a value, or remove the line")))
		default:
			names[i].read(r, into, p.key, p.value)
		}
	}
}

// here names something in messages by the words of the file.
func here(words ...string) daybook.Text { return daybook.Say("%s", strings.Join(words, ": ")) }

// hinted gives a value that is missing another hint where the rest of its line is a comment.
func (r *reader) hinted(key *node, err *daybook.Error) *daybook.Error {
	_, rest, _ := strings.Cut(r.line(key.line), key.text)
	if strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(rest, ":"), " "), "#") {
		return err.WithHint("a # behind a space begins a comment: put a value that begins with one in quotes")
	}
	return err
}

// in names something in a map that has a name itself.
func in(what daybook.Text, words ...string) daybook.Text {
	if what.IsZero() {
		return here(words...)
	}
	return daybook.Say("%v: %v", what, strings.Join(words, ": ")) // %v: a place in the file, no clause
}

func quoted(word string) string { return strconv.Quote(daybook.Clip(word, 60)) }

func words[T any](names []name[T]) []string {
	list := make([]string, len(names))
	for i, f := range names {
		list[i] = f.word
	}
	return list
}

// unknown records a name that is not known, with the one that was probably meant.
func (r *reader) unknown(key *node, what daybook.Text, m meaning, known []string) {
	if at, err := r.oddSpace(key.line); err != nil {
		r.fault(at, err)
		return
	}
	err := daybook.Invalid("unknown name %s", quoted(key.text))
	if !what.IsZero() {
		err = daybook.Invalid("%s: unknown name %s", what, quoted(key.text))
	}
	switch {
	case m.word == "":
		_ = err.WithHint("known here: %s", strings.Join(known, " "))
	case m.inner != "" && flat(m.inner) == flat(key.text):
		_ = err.WithHint("it stands in %s: write %s: {%s: …}", m.word, m.word, m.inner)
	case m.inner != "":
		_ = err.WithHint("did you mean %s? it stands in %s", m.inner, m.word)
	case m.example != "":
		_ = err.WithHint("did you mean %s? write %s", m.word, m.example)
	default:
		_ = err.WithHint("did you mean %s?", m.word)
	}
	r.fault(key.pos, err)
}

// meaning is the name that an unknown word probably stands for.
type meaning struct {
	word    string // empty: none is near
	inner   string // the name in the map that word is
	example string
}

func meant[T any](word string, names []name[T], later []string) meaning {
	all := append(words(names), later...)
	for _, w := range all {
		if flat(w) == flat(word) {
			return meaning{word: w}
		}
	}
	if m, ok := otherWords[flat(word)]; ok && slices.Contains(all, m.word) {
		return m
	}
	if near := daybook.Nearest(word, all); near != "" {
		return meaning{word: near}
	}
	others := slices.Sorted(maps.Keys(otherWords))
	if m := otherWords[daybook.Nearest(flat(word), others)]; len(word) > 5 && slices.Contains(all, m.word) { // a short word is near to too many
		return m
	}
	return meaning{}
}

// flat drops case and separators, which are slips of habit, not of the hand: catchUpWindow, catchup-window.
func flat(word string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(word))
}
