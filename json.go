package daybook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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
