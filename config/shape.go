package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/daybook-run/daybook"
)

// about says what one name of the file is, once: the reader's tables, the reference and the JSON Schema are made of it.
type about struct {
	word    string
	is      shape
	unless  string // what counts when it is left out; required where the file does not do without
	meaning string
}

// required stands for a default that a name does not have.
const required = "required"

// shape is what may stand somewhere: a value, a map of names, or a map of names that the writer chooses.
type shape struct {
	words string // the type, in words
	// rule is the JSON Schema of a value; nil: only a map may stand there.
	rule  object
	names []about
	// own says that the names in the map are the writer's, each for a map of names. def and from are for the schema: the map is
	// written once and referred to, or its names are those of another one.
	own bool
	// list says that a list of such maps may stand there.
	list      bool
	def, from string
}

// value is a kind of value: what may stand there, and how it is read.
type value[V any] struct {
	is   shape
	read func(r *reader, n *node, what daybook.Text) (V, bool)
}

// named is the shape of a map with the names of a table.
func named[T any](names []name[T]) shape {
	s := shape{words: "map"}
	for _, n := range names {
		s.names = append(s.names, n.about)
	}
	return s
}

// object is a JSON object whose names keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// Shapes of values.
var (
	textShape   = shape{words: "text", rule: object{{"type", "string"}}}
	wordShape   = shape{words: "text", rule: object{{"type", "string"}, {"minLength", 1}}}
	boolShape   = shape{words: "true or false", rule: object{{"type", "boolean"}}}
	zoneShape   = shape{words: "IANA name", rule: object{{"type", "string"}, {"minLength", 1}}}
	urlShape    = shape{words: "URL", rule: object{{"type", "string"}, {"pattern", "^https?://"}}}
	secretShape = shape{words: `secret: "${NAME}" or "file:/path"`, rule: object{{"type", "string"}, {"pattern", referencePattern}}}
	callShape   = shape{words: "URL or secret", rule: object{{"type", "string"}, {"pattern", "^https?://|" + referencePattern}}}
	argvShape   = shape{words: "list of texts", rule: object{{"type", "array"}, {"items", argument}, {"minItems", 1}}}
	namesShape  = shape{words: "list of names", rule: object{{"type", "array"}, {"items", object{{"type", "string"}}}, {"minItems", 1}}}

	// argument is a text that may be written as a plain number.
	argument = object{{"type", []string{"string", "number"}}}
)

const referencePattern = `^\$\{[A-Za-z_][A-Za-z0-9_]*\}$|^file:/`

const durationPattern = `^(0|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$`

// oneWord is the shape of a choice.
func oneWord[T ~string](allowed []T) shape {
	s := shape{}
	for i, w := range allowed {
		if i > 0 {
			s.words += " | "
		}
		s.words += string(w)
	}
	s.rule = object{{"enum", allowed}}
	return s
}

func numberShape(low, high int) shape {
	return shape{words: "whole number", rule: object{{"type", "integer"}, {"minimum", low}, {"maximum", high}}}
}

// durationShape is a duration, and perhaps a word in place of one.
func durationShape(low time.Duration, word string) shape {
	s := shape{words: "duration"}
	any := []any{object{{"type", "string"}, {"minLength", 1}, {"pattern", durationPattern}}}
	switch word { // whole phrases: they are said in other languages too
	case "forever":
		s = shape{words: "duration or forever"}
	case "none":
		s = shape{words: "duration or none"}
	}
	if word != "" {
		any = append(any, object{{"const", word}})
	}
	if low == 0 {
		any = append(any, object{{"const", 0}})
	}
	if s.rule = any[0].(object); len(any) > 1 {
		s.rule = object{{"anyOf", any}}
	}
	return s
}
