package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
)

// Exit codes that a command reports with, from sysexits.h.
const (
	exitUsage    = 64
	exitData     = 65
	exitNoInput  = 66
	exitTempFail = 75
	exitPerm     = 77
	exitConfig   = 78
)

// ResultOfExit reads the exit code of a command. Codes in permanent are read as permanent, whatever else they mean.
func ResultOfExit(code int, permanent []int) daybook.Result {
	switch {
	case code == 0:
		return daybook.ResultDone
	case slices.Contains(permanent, code):
		return daybook.ResultPermanent
	}
	switch code {
	case exitTempFail:
		return daybook.ResultNotDone
	case exitUsage, exitData, exitNoInput, exitPerm, exitConfig:
		return daybook.ResultPermanent
	}
	return daybook.ResultUnclear
}

var (
	reportNames = []string{"outcome", "retry_after", "effects", "amount", "result", "message"}
	reportWords = []string{string(daybook.ResultDone), string(daybook.ResultNotDone), string(daybook.ResultPermanent),
		string(daybook.ResultUnclear), string(daybook.ResultUnknown)}
)

// ParseReport reads what work says of its own end: one JSON object in the form
//
//	{"outcome":"done","retry_after":"90s","effects":{"charges":20},"amount":{"USD":"300.00"},"result":{},"message":"…"}
//
// in which every name may be missing. It is strict in what it believes and kind in what it keeps: the error tells
// everything that is wrong, and the Outcome holds whatever is right beside it. Result is empty when no outcome is
// given, or one that is not a word for it. The message, whatever the outcome, is in Error. Errors have CodeInvalid.
func ParseReport(b []byte) (daybook.Outcome, error) {
	var out daybook.Outcome
	if len(b) > daybook.MaxResultBytes {
		return out, daybook.Invalid("the report has more than %d bytes", daybook.MaxResultBytes)
	}
	fields, err := reportFields(b)
	if err != nil {
		return out, err
	}
	var faults []error
	for name, raw := range fields {
		if string(raw) == "null" {
			continue
		}
		if err := setField(&out, name, raw); err != nil {
			faults = append(faults, err)
		}
	}
	// In the order of their text: a map has none.
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(faults) > 0 {
		return out, daybook.Invalid("%s", daybook.Clip(joinErrors(faults), daybook.MaxErrorBytes))
	}
	return out, nil
}

func joinErrors(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// reportFields splits the one JSON object. A name given twice is an error: which of two outcomes holds is not for us to
// guess.
func reportFields(b []byte) (map[string]json.RawMessage, error) {
	b = bytes.ToValidUTF8(b, []byte(replacement))
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, daybook.Invalid("the report is not a JSON object")
	}
	fields := make(map[string]json.RawMessage)
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, brokenReport(err)
		}
		s, _ := name.(string)
		if _, twice := fields[s]; twice {
			return nil, daybook.Invalid("the report has %q twice", daybook.Clip(SafeText([]byte(s)), 40))
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, brokenReport(err)
		}
		fields[s] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, brokenReport(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, daybook.Invalid("the report has more than one JSON object")
	}
	return fields, nil
}

func brokenReport(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return daybook.Invalid("the report is cut off")
	}
	return daybook.Invalid("the report is not JSON: %s", SafeText([]byte(err.Error())))
}

func setField(out *daybook.Outcome, name string, raw json.RawMessage) error {
	switch name {
	case "outcome":
		var word string
		if err := json.Unmarshal(raw, &word); err != nil || !slices.Contains(reportWords, word) {
			return unknownWord(daybook.Say("%s", "outcome"), string(raw), word, reportWords)
		}
		out.Result = daybook.Result(word)
	case "retry_after":
		d, err := parseRetryAfter(raw)
		if err != nil {
			return err
		}
		out.RetryAfter = min(d, daybook.MaxRetryAfter)
	case "effects":
		return setCounts(out, raw)
	case "amount":
		var amount map[string]string
		if err := json.Unmarshal(raw, &amount); err != nil {
			return daybook.Invalid(`amount is not a map of currencies to decimals in quotes, such as {"USD":"300.00"}`)
		}
	case "result":
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return daybook.Invalid("result is not JSON")
		}
		out.Data = compact.Bytes()
	case "message":
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return daybook.Invalid("message is not text")
		}
		out.Error = daybook.Clip(strings.TrimSpace(SafeText([]byte(text))), daybook.MaxErrorBytes)
	default:
		return unknownWord(daybook.Say("name"), strconv.Quote(name), name, reportNames)
	}
	return nil
}

func unknownWord(what daybook.Text, shown, word string, words []string) error {
	shown = daybook.Clip(SafeText([]byte(shown)), 60)
	if near := daybook.Nearest(word, words); near != "" && near != word {
		return daybook.Invalid("%s %s: did you mean %q?", what, shown, near)
	}
	return daybook.Invalid("%s %s is not one of %s", what, shown, daybook.Words(words))
}

func setCounts(out *daybook.Outcome, raw json.RawMessage) error {
	var numbers map[string]json.Number
	if err := json.Unmarshal(raw, &numbers); err != nil {
		return daybook.Invalid(`effects is not a map of names to whole numbers, such as {"charges":20}`)
	}
	counts := make(map[string]int64, len(numbers))
	for name, number := range numbers {
		n, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil || n < 0 {
			return daybook.Invalid("effects: %s is not a whole number from 0 on", daybook.Clip(SafeText([]byte(name)), 40))
		}
		counts[SafeText([]byte(name))] = n
	}
	if len(counts) > 0 {
		out.Counts = counts
	}
	return nil
}

// parseRetryAfter reads "90s", "26h", "7d", or a number of seconds.
func parseRetryAfter(raw json.RawMessage) (time.Duration, error) {
	fault := daybook.Invalid("retry_after %s is not a duration such as \"90s\"", daybook.Clip(SafeText(raw), 40))
	var seconds float64
	if json.Unmarshal(raw, &seconds) == nil {
		return durationOf(seconds, time.Second, fault)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return 0, fault
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fault
		}
		return durationOf(float64(n), 24*time.Hour, fault)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fault
	}
	return d, nil
}

func durationOf(n float64, unit time.Duration, fault error) (time.Duration, error) {
	if !(n >= 0) {
		return 0, fault
	}
	if n > float64(math.MaxInt64/int64(unit)) {
		return math.MaxInt64, nil
	}
	return time.Duration(n * float64(unit)), nil
}

// readReport reads a result file. A file that is missing or empty is no report and no fault. It was left by a program
// that may run as another user, so only a plain file is read, and no link is followed.
func readReport(path string) (daybook.Outcome, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return daybook.Outcome{}, nil
	}
	if err != nil {
		return daybook.Outcome{}, daybook.Invalid("the result file cannot be read: %s", reason(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return daybook.Outcome{}, daybook.Invalid("the result file is not a plain file")
	}
	b, err := io.ReadAll(io.LimitReader(f, daybook.MaxResultBytes+1))
	if err != nil {
		return daybook.Outcome{}, daybook.Invalid("the result file cannot be read: %s", reason(err))
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return daybook.Outcome{}, nil
	}
	return ParseReport(b)
}

// reason returns the innermost cause of a file or process error, without the path that its caller names better.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
