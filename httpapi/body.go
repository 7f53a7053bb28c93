package httpapi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

// decode reads the one JSON object of a body into v, a pointer to a struct. It is strict: a name that is not one of ours,
// or that is given twice anywhere, is an error, since what was meant is not for us to guess. No body at all is an object
// without names. Errors have CodeInvalid.
func decode(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if !utf8.Valid(body) {
		return daybook.Invalid("the body is not UTF-8 text")
	}
	if err := daybook.CheckJSON(body); err != nil {
		return err
	}
	if err := checkNames(body, reflect.TypeOf(v).Elem(), ""); err != nil {
		return err
	}
	return explained(json.Unmarshal(body, v))
}

func notAnObject() error {
	return daybook.Invalid("the body is not a JSON object").WithHint(`such as {"window":"2026-10-26"}`)
}

// checkNames refuses names that a struct does not have, with the nearest one that it has.
func checkNames(text []byte, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(text, &given) != nil || given == nil {
		if path == "" {
			return notAnObject()
		}
		return nil // null, or another kind of value: told when it is read
	}
	known := fieldsOf(t)
	names := make([]string, 0, len(known))
	for _, f := range known {
		names = append(names, f.name)
	}
	slices.Sort(names)
	var unknown []string
	for name, raw := range given {
		i := slices.IndexFunc(known, func(f field) bool { return f.name == name })
		if i < 0 {
			unknown = append(unknown, name)
			continue
		}
		if err := checkNames(raw, known[i].of, path+name+"."); err != nil {
			return err
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	err := daybook.Invalid("there is no name %q", path+safe(unknown[0], 60))
	if near := daybook.Nearest(unknown[0], names); near != "" {
		return err.WithHint("did you mean %q?", path+near)
	}
	return err.WithHint("there are: %s", strings.Join(names, ", "))
}

// field is one name of a struct, as JSON has it.
type field struct {
	name     string
	of       reflect.Type
	doc      string // what it means, from the tag "doc"
	optional bool
}

// fieldsOf lists the names of a struct, those of embedded structs included.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			list = append(list, fieldsOf(inner)...)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		list = append(list, field{name, f.Type, f.Tag.Get("doc"), strings.Contains(rest, "omit")})
	}
	return list
}

// explained says what is wrong with JSON in plain words.
func explained(err error) error {
	if err == nil {
		return nil
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return daybook.Invalid("the value of %s cannot be a %s", safe(kind.Field, 60), kind.Value).WithHint("it is %s", wanted(kind.Type))
	}
	var told *daybook.Error
	if errors.As(err, &told) {
		return err
	}
	return daybook.Invalid("the body is not understood: %s", safe(err.Error(), 200))
}

// wanted names a kind of value.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text in quotes"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
