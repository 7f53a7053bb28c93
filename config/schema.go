package config

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of the file, made of the tables by which it is read. It knows every name and
// the form of every value, so that an editor can help; what needs a calendar, another file or the rest of the job is for
// daybook check.
func Schema() []byte {
	b := &schemaBuilder{}
	root := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "daybook.yaml"},
		{"description", "the jobs of a daybook serve"},
	}
	root = append(root, b.names(named(topNames))...)
	root = append(root, member{"$defs", b.defs})
	text, err := json.Marshal(root)
	if err != nil {
		panic("config: the schema cannot be written: " + err.Error()) // it holds constants only
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		panic("config: the schema cannot be written: " + err.Error())
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// schemaBuilder collects the maps that are written once.
type schemaBuilder struct{ defs object }

// names is a map with exactly these names.
func (b *schemaBuilder) names(s shape) object {
	var properties object
	var needed []string
	for _, n := range s.names {
		if s.from != "" {
			properties = append(properties, member{n.word, object{{"$ref", "#/$defs/" + s.from + "/properties/" + n.word}}})
			continue
		}
		properties = append(properties, member{n.word, append(object{{"description", n.text()}}, b.value(n.is)...)})
		if n.unless == required && n.word != "owner" { // which may stand in defaults
			needed = append(needed, n.word)
		}
	}
	out := object{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if len(needed) > 0 {
		out = append(out, member{"required", needed})
	}
	return out
}

// value is what may stand behind a name.
func (b *schemaBuilder) value(s shape) object {
	switch {
	case len(s.names) == 0:
		return s.rule
	case s.list:
		return object{{"type", "array"}, {"items", b.names(s)}}
	case s.own:
		one, least := b.names(shape{names: s.names}), 0
		if s.def != "" {
			b.defs = append(b.defs, member{s.def, one})
			one, least = object{{"$ref", "#/$defs/" + s.def}}, 1
		}
		return object{{"type", "object"}, {"minProperties", least}, {"propertyNames", object{{"pattern", namePattern}}}, {"additionalProperties", one}}
	case s.rule != nil:
		return object{{"anyOf", []any{s.rule, b.names(s)}}}
	}
	return b.names(s)
}

// namePattern is what daybook.CheckName takes.
const namePattern = "^[a-z0-9][a-z0-9_-]{0,63}$"

// text is what an editor shows.
func (a about) text() string {
	if strings.HasPrefix(a.unless, required) {
		return a.meaning + ". R" + a.unless[1:] + "."
	}
	return a.meaning + ". Default: " + a.unless + "."
}

// Section is one map of the file, for the reference.
type Section struct {
	Path  string // where it stands: "" is the top, NAME a name that the writer chooses, as in jobs.NAME.retry
	Names []Name
}

// Name is one name of the file. Type, Default and Meaning are texts in English, to be shown in the language of the reader.
type Name struct {
	Word    string
	Type    string
	Default string // "required" where the file does not do without
	Meaning string
}

// Reference returns every name of the file, in the order in which they are explained. Sections with the same names stand
// once: alerts.P0 speaks for alerts.P1 too. The names of defaults are those of jobs.NAME.
func Reference() []Section {
	var list []Section
	var add func(path string, s shape)
	add = func(path string, s shape) {
		at := len(list)
		list = append(list, Section{Path: path})
		for _, n := range s.names {
			list[at].Names = append(list[at].Names, Name{Word: n.word, Type: n.is.words, Default: n.unless, Meaning: n.meaning})
			if len(n.is.names) > 0 && n.is.from == "" && n.word != "P1" {
				inner := n.word
				if path != "" {
					inner = path + "." + n.word
				}
				if n.is.own {
					inner += ".NAME"
				}
				add(inner, n.is)
			}
		}
	}
	add("", named(topNames))
	return list
}
