package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/outhttp"
)

// resultAccepted stands for the outcome of work that answered 202 until its report comes. It leaves this package never.
const resultAccepted daybook.Result = "accepted"

// reading is what is known of an exchange. Its outcome follows from this alone.
type reading struct {
	job    *daybook.Job
	answer *outhttp.Answer // nil: none
	err    error           // nil: the answer is whole
	cause  error           // why the attempt was asked to end, if it was
	now    time.Time
}

// outcome reads it by the table of the manual: how far it came, then the outcome that the answer names, then its status.
func (r reading) outcome() daybook.Outcome {
	if r.err != nil {
		return r.failed()
	}
	a := r.answer
	detail := strconv.Itoa(a.Status)
	out := daybook.Outcome{Detail: detail, Output: show(a)}
	if a.Truncated {
		out.Result = daybook.ResultUnclear
		out.Error = fmt.Sprintf("%s: the answer cannot be read: it has more than %d bytes", a.StatusLine(), len(a.Body))
		return out
	}
	report, fault, readable := readBody(a)
	output := out.Output
	out = report
	out.Output, out.Detail = output, detail
	if !readable {
		out.Result = daybook.ResultUnclear
		out.Error = daybook.Clip(a.StatusLine()+": the answer cannot be read: "+fault.Error(), daybook.MaxErrorBytes)
		return out
	}
	byStatus := r.byStatus()
	if out.Result == "" {
		out.Result = byStatus
	}
	if out.RetryAfter == 0 {
		out.RetryAfter = a.RetryAfter(r.now)
	}
	if fault != nil {
		out.Detail += "; " + fault.Error()
	}
	switch out.Result {
	case daybook.ResultDone, resultAccepted:
		out.Detail, out.Error, out.RetryAfter = withMessage(out.Detail, report.Error), "", 0
	default:
		out.Error = r.errorText(out.Result, byStatus, report.Error, fault)
	}
	return out
}

func (r reading) byStatus() daybook.Result {
	if r.answer.Status == http.StatusAccepted {
		return resultAccepted
	}
	return outhttp.ResultOfStatus(r.answer.Status, r.job.Retry.PermanentStatus)
}

// failed is the outcome of an exchange without a whole answer.
func (r reading) failed() daybook.Outcome {
	out := daybook.Outcome{Result: daybook.ResultUnknown, Detail: "no answer"}
	if f, ok := errors.AsType[*outhttp.Failure](r.err); ok {
		out.Result, out.Detail = f.Result(), string(f.Phase)
		if f.Phase == outhttp.Ended {
			out.Detail = why(f.Err)
		}
		if f.Sent {
			out.Detail += ", sent"
		} else {
			out.Detail += ", not sent"
		}
	}
	text := exchangeError(r.err)
	if a := r.answer; a != nil {
		out.Output = show(a)
		text = "answered " + a.StatusLine() + ", then " + text
		out.Detail = strconv.Itoa(a.Status) + ", then " + out.Detail
	}
	out.Error = daybook.Clip(SafeText([]byte(text)), daybook.MaxErrorBytes)
	return out
}

// exchangeError is the error of an exchange, for people.
func exchangeError(err error) string {
	f, ok := errors.AsType[*outhttp.Failure](err)
	switch {
	case ok && f.Phase == outhttp.Ended && f.Sent:
		return why(f.Err) + " after sending"
	case ok && f.Phase == outhttp.Ended:
		return why(f.Err) + " before sending"
	}
	return err.Error()
}

// errorText is the line for people: what was answered, and the far side's own words.
func (r reading) errorText(result, byStatus daybook.Result, message string, fault error) string {
	a := r.answer
	head := a.StatusLine()
	if result != byStatus {
		head = "reported " + string(result) + " (" + head + ")"
	}
	if to := a.Header.Get("Location"); to != "" && a.Status >= 300 && a.Status <= 399 {
		head += " to " + place3xx(to) + ", which is not followed"
	}
	if result == daybook.ResultBusy {
		head += ": the far side is at work under this wire key"
	}
	if message == "" {
		message = words(a)
	}
	text := withMessage(head, message)
	if fault != nil {
		text += "; " + fault.Error()
	}
	return daybook.Clip(SafeText([]byte(text)), daybook.MaxErrorBytes)
}

// place3xx is where a redirect leads, without what may be secret in it.
func place3xx(location string) string {
	if u, err := url.Parse(location); err == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		location = u.String()
	}
	return daybook.Clip(SafeText([]byte(location)), 200)
}

const maxWords = 300

// words are the beginning of a body that is meant for people or says what is wrong.
func words(a *outhttp.Answer) string {
	if kind := a.MediaType(); !a.IsJSON() && kind != "text/plain" && kind != "" {
		return ""
	}
	text := strings.Join(strings.Fields(SafeText(a.Body[:min(len(a.Body), 4*maxWords)])), " ")
	return daybook.Clip(text, maxWords)
}

// show is what is kept of an answer.
func show(a *outhttp.Answer) daybook.Output {
	c := NewCapture(daybook.MaxOutputBytes)
	_, _ = c.Write([]byte(a.StatusLine() + "\n"))
	if len(a.Body) > 0 {
		_, _ = c.Write([]byte("\n"))
		_, _ = c.Write(a.Body)
	}
	if a.Truncated {
		_, _ = c.Write([]byte("\n[... the rest was not read ...]\n"))
	}
	return c.Output()
}

// readBody reads the report in an answer, if it has one. A body says that it is a report by the name "outcome", whatever type it
// is given (many servers call everything text), or as JSON by any other name of a report; any other body is the far side's own.
// Not readable is what says that it is a report, or that it is JSON, and cannot be understood: then the status is not believed
// either, since the outcome might have been another. A fault beside a readable report tells what else is wrong with it.
func readBody(a *outhttp.Answer) (report daybook.Outcome, fault error, readable bool) {
	text := bytes.TrimSpace(trimBOM(a.Body))
	if len(text) == 0 || !a.IsJSON() && (text[0] != '{' || !bytes.Contains(text, []byte(`"outcome"`))) {
		return report, nil, true
	}
	fields, err := reportFields(text)
	if err != nil {
		if text[0] != '{' && json.Valid(text) { // a list, a number, a text
			return report, nil, true
		}
		return report, err, false
	}
	if _, ok := fields["outcome"]; ok {
		report, err = ParseReport(text)
		unread := report.Result == "" && string(fields["outcome"]) != "null"
		return report, err, !unread
	}
	if name := misspelt(fields); name != "" {
		return report, daybook.Invalid("name %q: did you mean %q?", daybook.Clip(SafeText([]byte(name)), 40), "outcome"), false
	}
	ours := 0
	for name := range fields {
		if slices.Contains(reportNames, name) {
			ours++
		}
	}
	if ours == 0 {
		return report, nil, true
	}
	report, err = ParseReport(text)
	if ours < len(fields) {
		err = nil // somebody else's JSON, which shares a word with ours
	}
	return report, err, true
}

// misspelt returns the name of a field that was meant to be "outcome": nearly that name, with one of its words.
func misspelt(fields map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var word string
		if json.Unmarshal(fields[name], &word) == nil && slices.Contains(reportWords, word) && daybook.Nearest(name, []string{"outcome"}) != "" {
			return name
		}
	}
	return ""
}

func trimBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\uFEFF")) }

// minSecret is the length below which a secret is not looked for: masking every "on" would tell more than it hides.
const minSecret = 6

// masked returns an answer without the secrets of its request: pages of errors like to show what was sent.
func masked(a *outhttp.Answer, secrets []string) *outhttp.Answer {
	if a == nil || len(secrets) == 0 {
		return a
	}
	b := *a
	b.Body, b.Line = []byte(mask(string(a.Body), secrets)), mask(a.Line, secrets)
	if to := a.Header.Get("Location"); to != "" {
		b.Header = a.Header.Clone()
		b.Header.Set("Location", mask(to, secrets))
	}
	return &b
}

func mask(text string, secrets []string) string {
	for _, secret := range secrets {
		for _, s := range []string{secret, secret[strings.LastIndexByte(secret, ' ')+1:]} { // also without "Bearer"
			if len(s) >= minSecret {
				text = strings.ReplaceAll(text, s, "***")
			}
		}
	}
	return text
}
