package runner

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

func TestParseReport(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		want  daybook.Outcome
		fault string
	}{
		{in: `{}`},
		{in: " {\"outcome\":\"done\"}\n", want: daybook.Outcome{Result: daybook.ResultDone}},
		{in: `{"outcome":"permanent","message":" card\u0000 declined\u001b[0m "}`, want: daybook.Outcome{Result: daybook.ResultPermanent, Error: "card\uFFFD declined"}},
		{in: "{\n\"outcome\": \"unclear\"\n}", want: daybook.Outcome{Result: daybook.ResultUnclear}},
		{in: `{"outcome":null,"effects":null,"result":null}`},
		{in: `{"result":{ "a": [1, 2.50] }}`, want: daybook.Outcome{Data: json.RawMessage(`{"a":[1,2.50]}`)}},
		{in: `{"effects":{"charges":20,"mails":0}}`, want: daybook.Outcome{Counts: map[string]int64{"charges": 20, "mails": 0}}},
		{in: `{"retry_after":"90s"}`, want: daybook.Outcome{RetryAfter: 90 * time.Second}},
		{in: `{"retry_after":90}`, want: daybook.Outcome{RetryAfter: 90 * time.Second}},
		{in: `{"retry_after":"1d"}`, want: daybook.Outcome{RetryAfter: 24 * time.Hour}},
		{in: `{"retry_after":"7d"}`, want: daybook.Outcome{RetryAfter: daybook.MaxRetryAfter}},
		{in: `{"retry_after":1e300}`, want: daybook.Outcome{RetryAfter: daybook.MaxRetryAfter}},
		{in: `{"amount":{"USD":"300.00"}}`},

		{in: ``, fault: "not a JSON object"},
		{in: `done`, fault: "not a JSON object"},
		{in: `[]`, fault: "not a JSON object"},
		{in: `{"outcome":"done"`, fault: "cut off"},
		{in: `{"outcome":"do`, fault: "cut off"},
		{in: `{"outcome":`, fault: "cut off"},
		{in: `{"outcome" "done"}`, fault: "not JSON"},
		{in: `{"outcome":"done"}{"outcome":"not_done"}`, fault: "more than one"},
		{in: `{"outcome":"done"} x`, fault: "more than one"},
		{in: `{"outcome":"done","outcome":"not_done"}`, fault: `"outcome" twice`},
		{in: `{"outcome":"Done","message":"m"}`, want: daybook.Outcome{Error: "m"}, fault: `did you mean "done"?`},
		{in: `{"outcome":1}`, fault: "outcome 1 is not one of done"},
		{in: `{"outcome":"interrupted"}`, fault: "is not one of"},
		{in: `{"outcome":"done","effect":{"charges":1}}`, want: daybook.Outcome{Result: daybook.ResultDone}, fault: `name "effect": did you mean "effects"?`},
		{in: `{"Outcome":"done"}`, fault: `did you mean "outcome"?`},
		{in: `{"outcome":"done","effects":{"charges":1.5}}`, want: daybook.Outcome{Result: daybook.ResultDone}, fault: "whole number"},
		{in: `{"effects":{"charges":-1}}`, fault: "whole number"},
		{in: `{"effects":{"charges":99999999999999999999}}`, fault: "whole number"},
		{in: `{"effects":[]}`, fault: "effects is not a map"},
		{in: `{"amount":{"USD":300}}`, fault: "amount is not a map"},
		{in: `{"retry_after":"soon"}`, fault: "retry_after"},
		{in: `{"retry_after":"-5s"}`, fault: "retry_after"},
		{in: `{"retry_after":-5}`, fault: "retry_after"},
		{in: `{"message":{}}`, fault: "message is not text"},
		{in: `{"message":"` + strings.Repeat("x", daybook.MaxResultBytes) + `"}`, fault: "more than 65536 bytes"},
		{in: "{\"message\":\"\xff\"}", want: daybook.Outcome{Error: "\uFFFD"}},
	} {
		got, err := ParseReport([]byte(c.in))
		if (err == nil) != (c.fault == "") || err != nil && (!strings.Contains(err.Error(), c.fault) || daybook.CodeOf(err) != daybook.CodeInvalid) {
			t.Errorf("%.80s: fault %v, want %q", c.in, err, c.fault)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%.80s: got %+v, want %+v", c.in, got, c.want)
		}
	}
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte(`{"outcome":"done","retry_after":"90s","effects":{"charges":20},"amount":{"USD":"300.00"},"result":{"a":[1]},"message":"m"}`))
	f.Add([]byte(`{"outcome":"x","retry_after":1e400,"effects":{"":-0},"result":"` + "\xff" + `"} `))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := ParseReport(b)
		switch out.Result {
		case "", daybook.ResultDone, daybook.ResultNotDone, daybook.ResultPermanent, daybook.ResultUnclear, daybook.ResultUnknown:
		default:
			t.Fatalf("result %q", out.Result)
		}
		if err == nil && !json.Valid(b) && utf8.Valid(b) {
			t.Fatalf("took what is not JSON: %q", b)
		}
		if out.Data != nil && (!json.Valid(out.Data) || !utf8.Valid(out.Data)) {
			t.Fatalf("data %q", out.Data)
		}
		if out.RetryAfter < 0 || out.RetryAfter > daybook.MaxRetryAfter || len(out.Error) > daybook.MaxErrorBytes || out.Error != SafeText([]byte(out.Error)) {
			t.Fatalf("got %+v", out)
		}
		if err != nil && (len(err.Error()) > daybook.MaxErrorBytes || err.Error() != SafeText([]byte(err.Error()))) {
			t.Fatalf("error %q", err)
		}
		for name, n := range out.Counts {
			if n < 0 || name != SafeText([]byte(name)) {
				t.Fatalf("counts %v", out.Counts)
			}
		}
	})
}
