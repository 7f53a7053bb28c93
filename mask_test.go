package daybook_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

func TestOutcomeMask(t *testing.T) {
	secrets := []string{"s3cr3t-xyz", `a"b\c`, "12345678", "Bearer tok-en-77"}
	o := daybook.Outcome{Result: daybook.ResultPermanent, Error: "key s3cr3t-xyz refused, tok-en-77 too", Detail: "exit 65 s3cr3t-xyz",
		Data:   json.RawMessage(`{"echo":"s3cr3t-xyz","q":"a\"b\\c","n":12345678,"keep":1.50,"list":["x","S: s3cr3t-xyz"],"s3cr3t-xyz":true}`),
		Counts: map[string]int64{"s3cr3t-xyz": 1, "charges": 20}, Output: daybook.Output{Text: "one\ns3cr3t-xyz\nczNjcjN0LXh5eg==\n"}}
	got := o.Mask(secrets)
	want := daybook.Outcome{Result: daybook.ResultPermanent, Error: "key *** refused, *** too", Detail: "exit 65 ***",
		Data:   json.RawMessage(`{"***":true,"echo":"***","keep":1.50,"list":["x","S: ***"],"n":"***","q":"***"}`),
		Counts: map[string]int64{"***": 1, "charges": 20}, Output: daybook.Output{Text: "one\n***\n***\n"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\ndata %s\nwant %s", got, got.Data, want.Data)
	}
	if kept := o.Mask(nil); !reflect.DeepEqual(kept, o) {
		t.Errorf("without secrets: %+v", kept)
	}
	same := json.RawMessage(`{ "b": 1e2, "a": "<&>" }`)
	if got := daybook.MaskJSON(same, secrets); string(got) != string(same) {
		t.Errorf("changed without need: %s", got)
	}
}

// What was cut may have been cut in the middle of a secret.
func TestOutcomeMaskAtACut(t *testing.T) {
	secrets := []string{"s3cr3t-xyz"}
	o := daybook.Outcome{Output: daybook.Output{Text: "head s3cr3t\n[... 99 bytes omitted ...]\nr3t-xyz tail", Omitted: 99},
		Error: strings.Repeat("x", daybook.MaxErrorBytes-12) + "s3cr3t…"}
	got := o.Mask(secrets)
	if got.Output.Text != "head ***\n[... 99 bytes omitted ...]\n*** tail" || !strings.HasSuffix(got.Error, "x***…") {
		t.Errorf("%q %q", got.Output.Text, got.Error[len(got.Error)-20:])
	}
}
