package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/daybook-run/daybook"
)

// stepEndFile is the name of a file in which `daybook effect` leaves the end of a step that nobody has heard.
const stepEndFile = "step-*.json"

// stepEnd is a daybook.StepEnd as it is kept.
type stepEnd struct {
	Step    string          `json:"step"`
	Plain   bool            `json:"plain,omitempty"`
	Try     int             `json:"try"`
	WireKey string          `json:"wire_key,omitempty"`
	Outcome daybook.Result  `json:"outcome"`
	Error   string          `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// KeepStepEnd leaves the end of a step in the directory of its attempt, whole and durably, for whoever ends the attempt.
func KeepStepEnd(dir string, e daybook.StepEnd) error {
	b, err := json.Marshal(stepEnd{e.Step, e.Plain, e.Try, e.WireKey, e.Outcome.Result, e.Outcome.Error, e.Outcome.Data})
	if err != nil {
		return err
	}
	return writeWhole(dir, filepath.Base(pathOfStepEnd(dir, e.Step)), b)
}

// ForgetStepEnd removes it again, once it was heard.
func ForgetStepEnd(dir, step string) error { return os.Remove(pathOfStepEnd(dir, step)) }

func pathOfStepEnd(dir, step string) string {
	return filepath.Join(dir, strings.Replace(stepEndFile, "*", step, 1))
}

// Steps returns the ends of steps that the work left in dir, because nobody heard them. What is not understood is none.
func (e *Exec) Steps(dir string) []daybook.StepEnd {
	paths, err := filepath.Glob(filepath.Join(dir, stepEndFile))
	if err != nil {
		return nil
	}
	var ends []daybook.StepEnd
	for _, path := range paths {
		var s stepEnd
		b, err := os.ReadFile(path)
		if err != nil || len(b) > 4*daybook.MaxResultBytes || json.Unmarshal(b, &s) != nil || daybook.CheckStep(s.Step) != nil || !s.Outcome.Reported() || s.Try < 0 {
			continue
		}
		o := daybook.Outcome{Result: s.Outcome, Error: daybook.Clip(SafeText([]byte(s.Error)), daybook.MaxErrorBytes)}
		if len(s.Result) <= daybook.MaxResultBytes && json.Valid(s.Result) {
			o.Data = s.Result
		}
		ends = append(ends, daybook.StepEnd{Step: s.Step, Plain: s.Plain, Try: s.Try, WireKey: s.WireKey, Outcome: o})
	}
	return ends
}

// unbegunFile is the name of a file that lies in the directory of an attempt while `daybook step` or `effect` has had no answer.
const unbegunFile = "unbegun-*.txt"

// KeepUnbegun notes in the directory of an attempt that its work comes to a step: what says which. As long as that stands, the
// attempt is not done, whatever its command says: it went on without the step. ForgetUnbegun is for whoever was answered.
func KeepUnbegun(dir, step, what string) error {
	return os.WriteFile(pathOfUnbegun(dir, step), []byte(what), 0o600)
}

// ForgetUnbegun removes the note again, if it is there.
func ForgetUnbegun(dir, step string) { _ = os.Remove(pathOfUnbegun(dir, step)) }

func pathOfUnbegun(dir, step string) string {
	return filepath.Join(dir, strings.Replace(unbegunFile, "*", step, 1))
}

// heedUnbegun is how an attempt ended that says that it is done, and whose work came to a step and was not answered: that did not
// happen, and is tried again.
func heedUnbegun(dir string, out daybook.Outcome) daybook.Outcome {
	if out.Result != daybook.ResultDone {
		return out
	}
	paths, err := filepath.Glob(filepath.Join(dir, unbegunFile))
	if err != nil || len(paths) == 0 {
		return out
	}
	what, _ := os.ReadFile(paths[0]) // that it is there is enough
	out.Result, out.Data = daybook.ResultNotDone, nil
	out.Error = daybook.Clip(SafeText(what)+" did not begin: the ledger did not answer", daybook.MaxErrorBytes)
	return out
}
