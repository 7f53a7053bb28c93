package daybook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	// shortestSecret is the length below which a secret is not looked for: masking every "ab" would leave nothing to read.
	shortestSecret = 4
	masked         = "***"
)

// Mask replaces every secret in a text by ***: as it is, as it stands in a URL or in JSON, and in base64. A secret of
// several lines is looked for line by line too, because errors quote one; of "Bearer x" the x alone is one as well.
func Mask(text string, secrets []string) string {
	for _, f := range forms(secrets) {
		text = strings.ReplaceAll(text, f, masked)
	}
	return text
}

// forms lists how secrets may stand in a text, the longest first: one may be the beginning of another.
func forms(secrets []string) []string {
	var list []string
	for _, s := range secrets {
		parts := append(strings.Split(s, "\n"), s)
		if _, last, ok := strings.Cut(s, " "); ok && !strings.Contains(s, "\n") {
			parts = append(parts, last)
		}
		for _, part := range parts {
			if part = strings.TrimSpace(part); len(part) < shortestSecret {
				continue
			}
			list = append(list, part, url.QueryEscape(part), url.PathEscape(part), base64.StdEncoding.EncodeToString([]byte(part)))
			if quoted, err := json.Marshal(part); err == nil {
				list = append(list, string(quoted[1:len(quoted)-1]))
			}
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(list)
}

// Mask returns o without the secrets of its job, wherever they could show: error, detail, output, the job's own result
// and the names of its counts. Whatever is kept of an attempt goes through here.
func (o Outcome) Mask(secrets []string) Outcome {
	if len(forms(secrets)) == 0 {
		return o
	}
	o.Error, o.Detail = maskCut(o.Error, secrets, len(o.Error) >= MaxErrorBytes-utf8Slack), Mask(o.Detail, secrets)
	o.Command = Mask(o.Command, secrets)
	o.Output.Text = maskOutput(o.Output, secrets)
	o.Data = MaskJSON(o.Data, secrets)
	if o.Counts != nil {
		counts := make(map[string]int64, len(o.Counts))
		for name, n := range o.Counts {
			counts[Mask(name, secrets)] += n
		}
		o.Counts = counts
	}
	return o
}

// utf8Slack is how much shorter than its limit a text may become when it is cut between characters.
const utf8Slack = 8

// maskOutput masks what was printed. Where bytes were left out, a secret may have been cut in two: what stands before
// and behind the mark is looked at as the beginning and the end of one.
func maskOutput(o Output, secrets []string) string {
	const mark = "\n[... "
	if o.Omitted == 0 {
		return Mask(o.Text, secrets)
	}
	head, rest, ok := strings.Cut(o.Text, mark)
	line, tail, found := strings.Cut(rest, "\n")
	if !ok || !found {
		return maskCut(o.Text, secrets, true)
	}
	tail = Mask(tail, secrets)
	for _, f := range forms(secrets) {
		for n := len(f) - 1; n >= shortestSecret; n-- {
			if strings.HasPrefix(tail, f[len(f)-n:]) {
				tail = masked + tail[n:]
				break
			}
		}
	}
	return maskCut(head, secrets, true) + mark + line + "\n" + tail
}

// maskCut is Mask for a text whose end may have been cut off, in the middle of a secret.
func maskCut(text string, secrets []string, cut bool) string {
	text = Mask(text, secrets)
	if !cut {
		return text
	}
	end := strings.TrimSuffix(text, "…")
	for _, f := range forms(secrets) {
		for n := len(f) - 1; n >= shortestSecret; n-- {
			if strings.HasSuffix(end, f[:n]) {
				return end[:len(end)-n] + masked + text[len(end):]
			}
		}
	}
	return text
}

// MaskJSON masks secrets within a JSON value, which stays one. What is no JSON is masked as text would be.
func MaskJSON(data json.RawMessage, secrets []string) json.RawMessage {
	if len(data) == 0 {
		return data
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		return json.RawMessage(Mask(string(data), secrets))
	}
	changed := false
	v = maskValue(v, secrets, &changed)
	if !changed {
		return data
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // what was decoded can be encoded
		panic("daybook: mask a result: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func maskValue(v any, secrets []string, changed *bool) any {
	mask := func(s string) string {
		m := Mask(s, secrets)
		*changed = *changed || m != s
		return m
	}
	switch v := v.(type) {
	case string:
		return mask(v)
	case json.Number:
		if m := mask(v.String()); m != v.String() {
			return m
		}
	case []any:
		for i := range v {
			v[i] = maskValue(v[i], secrets, changed)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			out[mask(name)] = maskValue(value, secrets, changed)
		}
		return out
	}
	return v
}
