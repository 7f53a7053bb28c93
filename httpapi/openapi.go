package httpapi

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The OpenAPI 3.1 document is made of the table of routes and of the types of its bodies: what is not in it cannot be
// called, and what can be called is in it.

// object is a JSON object of the document. json.Marshal writes its names in order.
type object = map[string]any

// openAPI answers with the document.
func (a *api) openAPI(*call) (answer, error) {
	return answer{status: 200, body: document(a.routes, a.o.Version)}, nil
}

func document(routes []*route, version string) object {
	if version == "" {
		version = "0"
	}
	s := &schemas{named: object{}}
	problems := s.of(reflect.TypeFor[problemJSON]())
	paths := object{}
	for _, r := range routes {
		path := strings.ReplaceAll(r.path, "...}", "}")
		at, ok := paths[path].(object)
		if !ok {
			at = object{}
			paths[path] = at
		}
		at[strings.ToLower(r.method)] = operation(r, s, problems)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "Daybook", "version": version,
			"description": "Cron that knows which day it is for, and will not do that day twice. Keys are percent-encoded in paths."},
		"servers": []object{{"url": "../.."}},
		"paths":   paths,
		"components": object{"schemas": s.named, "securitySchemes": object{
			"token":   object{"type": "http", "scheme": "bearer", "description": "daybook token create --role view or act"},
			"attempt": object{"type": "apiKey", "in": "header", "name": attemptHeader, "description": "the right to speak for one attempt, given with it"},
		}},
	}
}

func operation(r *route, s *schemas, problems object) object {
	op := object{"summary": r.does, "operationId": operationID(r)}
	var parameters []object
	for _, part := range strings.Split(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			parameters = append(parameters, object{"name": strings.TrimRight(name, ".}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	if r.method == "POST" {
		parameters = append(parameters, object{"name": idempotencyHeader, "in": "header", "required": false, "schema": object{"type": "string", "maxLength": maxIdempotencyKey},
			"description": "made again with the same key and body within 24 hours, the call is given the same answer and does nothing"})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	switch r.needs {
	case worker:
		op["security"] = []object{{"attempt": []string{}}}
	case actor, viewer:
		op["security"] = []object{{"token": []string{}}}
		op["description"] = "Needs a token of role " + string(r.needs) + "."
	}
	if r.body != nil {
		op["requestBody"] = object{"required": false, "content": object{"application/json": object{"schema": s.of(reflect.TypeOf(r.body))}}}
	}
	answers := object{"default": object{"description": "What went wrong, and what to do.", "content": object{problemType: object{"schema": problems}}}}
	for status, v := range r.answers {
		kind, schema := "application/json", s.of(reflect.TypeOf(v))
		if _, text := v.(string); text {
			kind = "text/plain"
		}
		answers[strconv.Itoa(status)] = object{"description": meaning[status], "content": object{kind: object{"schema": schema}}}
	}
	op["responses"] = answers
	return op
}

// meaning says what a status stands for.
var meaning = map[int]string{200: "Known, or done.", 201: "Started.", 202: "Under way."}

// operationID names an operation: its method and its path in one word.
func operationID(r *route) string {
	word := strings.ToLower(r.method)
	for _, part := range strings.FieldsFunc(r.path, func(c rune) bool { return strings.ContainsRune("/{}._", c) }) {
		word += strings.ToUpper(part[:1]) + part[1:]
	}
	return word
}

// schemas collects the types that have a name.
type schemas struct{ named object }

// of returns the schema of a type: a reference where it has a name.
func (s *schemas) of(t reflect.Type) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem())
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[duration]():
		return object{"type": []string{"string", "number"}}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return object{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		name := strings.TrimSuffix(strings.TrimSuffix(t.Name(), "JSON"), "Body")
		name = strings.ToUpper(name[:1]) + name[1:]
		if _, ok := s.named[name]; !ok {
			s.named[name] = object{} // one type may hold itself
			s.named[name] = s.properties(t)
		}
		return object{"$ref": "#/components/schemas/" + name}
	}
	panic("httpapi: no schema for " + t.String()) // a test makes the document
}

func (s *schemas) properties(t reflect.Type) object {
	properties := object{}
	required := []string{}
	for _, f := range fieldsOf(t) {
		schema := s.of(f.of)
		if f.doc != "" {
			if _, named := schema["$ref"]; named {
				schema = object{"allOf": []object{schema}}
			}
			schema["description"] = f.doc
		}
		properties[f.name] = schema
		if !f.optional {
			required = append(required, f.name)
		}
	}
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}
