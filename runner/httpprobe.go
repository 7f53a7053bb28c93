package runner

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/outhttp"
)

// Probe asks probe_url about a wire key. The far side answers 200 and {"answer":"yes|no|cannot_tell","result":{…}};
// anything else cannot tell. It only asks, so it is cut off when ctx ends.
func (h *HTTP) Probe(ctx context.Context, o daybook.Order, wireKey string) daybook.Finding {
	found := daybook.Finding{Answer: daybook.CannotTell, WireKey: wireKey}
	if ctx.Err() != nil {
		found.Error = "not asked: " + why(context.Cause(ctx))
		return found
	}
	if o.Job.ProbeURL == "" {
		found.Error = "job " + o.Job.Name + " has no probe_url"
		return found
	}
	req, secrets, err := question(o, wireKey, h.Clock())
	if err != nil {
		found.Error = notStarted(err).Error
		return found
	}
	a, err := outhttp.New(outhttp.Options{MaxBytes: daybook.MaxResultBytes + 1<<10}).Do(ctx, req)
	if err != nil {
		found.Error = exchangeError(err)
	} else {
		found = readFinding(found, masked(a, secrets))
	}
	found.Error = daybook.Clip(mask(SafeText([]byte(found.Error)), secrets), daybook.MaxErrorBytes)
	return found
}

func readFinding(found daybook.Finding, a *outhttp.Answer) daybook.Finding {
	cannot := func(why string) daybook.Finding {
		found.Error = "the probe answered " + a.StatusLine() + why
		return found
	}
	switch {
	case a.Status != http.StatusOK:
		return cannot("")
	case a.Truncated:
		return cannot(" and more than it may")
	}
	fields, err := reportFields(trimBOM(a.Body))
	if err != nil {
		return cannot(" and no JSON object")
	}
	var word string
	_ = json.Unmarshal(fields["answer"], &word) // what is not text is none of the three
	switch daybook.Answer(word) {
	case daybook.Yes:
		found.Answer = daybook.Yes
		if raw := fields["result"]; len(raw) > 0 && string(raw) != "null" {
			said := limited{max: daybook.MaxResultBytes}
			_, _ = said.Write(raw)
			found.Data = said.json()
		}
	case daybook.No:
		found.Answer = daybook.No
	case daybook.CannotTell:
		found.Error = "the probe cannot tell"
	default:
		return cannot(` and no "answer" of yes, no or cannot_tell`)
	}
	return found
}
