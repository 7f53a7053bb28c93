package daybook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// decodeStrict reads one JSON value and nothing behind it. Numbers keep their digits.
func decodeStrict(p []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(p))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Invalid("there is more than one value")
	}
	return nil
}

// CheckJSON refuses what two readers of one JSON text could take for different things: a name that stands twice in one
// object, and a number that is too large for a float. What is no JSON is refused as well. Errors have CodeInvalid and name
// the line and the column.
func CheckJSON(p []byte) error {
	c := jsonCheck{text: p, d: json.NewDecoder(bytes.NewReader(p))}
	c.d.UseNumber()
	var whole json.RawMessage
	if err := json.Unmarshal(p, &whole); err != nil {
		return c.noJSON(err)
	}
	return c.value()
}

// jsonCheck walks through a text token by token.
type jsonCheck struct {
	text []byte
	d    *json.Decoder
}

// value reads one value.
func (c *jsonCheck) value() error {
	from := c.start(c.d.InputOffset())
	t, err := c.d.Token()
	if err != nil {
		return c.noJSON(err)
	}
	switch t := t.(type) {
	case json.Number:
		if _, err := strconv.ParseFloat(t.String(), 64); err != nil {
			line, column := c.place(from)
			return Invalid("line %d, column %d: the number %s is too large: some readers would take it for another", line, column, Clip(t.String(), 40))
		}
	case json.Delim:
		if t == '{' {
			return c.object()
		}
		for c.d.More() {
			if err := c.value(); err != nil {
				return err
			}
		}
		return c.end()
	}
	return nil
}

// object reads what stands behind its brace.
func (c *jsonCheck) object() error {
	seen := map[string]bool{}
	for c.d.More() {
		from := c.start(c.d.InputOffset())
		t, err := c.d.Token()
		if err != nil {
			return c.noJSON(err)
		}
		name, _ := t.(string)
		if seen[name] {
			line, column := c.place(from)
			return Invalid("line %d, column %d: the name %q stands twice in one object", line, column, Clip(name, 40))
		}
		seen[name] = true
		if err := c.value(); err != nil {
			return err
		}
	}
	return c.end()
}

// end reads a closing brace or bracket.
func (c *jsonCheck) end() error {
	if _, err := c.d.Token(); err != nil {
		return c.noJSON(err)
	}
	return nil
}

func (c *jsonCheck) noJSON(err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Error() == "unexpected end of JSON input" {
		line, column := c.place(int64(len(c.text)))
		return Invalid("line %d, column %d: the text ends too soon", line, column)
	}
	line, column := c.place(syntax.Offset - 1)
	return Invalid("line %d, column %d: %s", line, column, syntax.Error())
}

// start is where the token begins that follows an offset.
func (c *jsonCheck) start(offset int64) int64 {
	for offset < int64(len(c.text)) && strings.IndexByte(" \t\r\n,:", c.text[offset]) >= 0 {
		offset++
	}
	return offset
}

// place is a place in the text as people count: from 1, columns in bytes.
func (c *jsonCheck) place(offset int64) (line, column int) {
	before := c.text[:min(offset, int64(len(c.text)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}
