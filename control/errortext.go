package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// The texts of control stand in the files whose names end in text.go: sentences of errors here, those of answers, acts,
// stories, status and doctor in their own, and in wordtext.go what they share. Each is a daybook.Text: whoever shows it
// chooses the language. Sentences end with a full stop; messages of errors are lower case without one. Keys, states in
// commands and the commands themselves are machine words and never translated.

// command is a line to be typed: no language changes it.
func command(line string, words ...any) daybook.Text {
	return daybook.Say("%s", fmt.Sprintf(line, words...))
}

func noJob(name string, names []string) *daybook.Error {
	e := daybook.NotFound("there is no job %s", quoted(name, daybook.MaxNameBytes))
	if near := daybook.Nearest(strings.ToLower(name), names); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	if len(names) == 0 {
		return e.WithHint("the ledger knows no job yet: daybook serve makes the jobs of daybook.yaml known")
	}
	return e.WithHint("daybook job list shows all %d", len(names))
}

// quoted writes a name as it is when it is harmless.
func quoted(s string, limit int) string {
	if s != "" && len(s) <= limit && daybook.CheckName(s) == nil {
		return s
	}
	return fmt.Sprintf("%q", daybook.Clip(s, limit))
}

// noKey names the nearest key, if there is one.
func noKey(k, near daybook.Key) *daybook.Error {
	e := daybook.NotFound("there is no run %s", k)
	if near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	return e.WithHint("daybook key show %s tells what is known about it", k)
}

// noSubjects refuses a subject of a job that does each of its windows whole.
func noSubjects(job string, parts daybook.KeyParts) *daybook.Error {
	parts.Subject = ""
	return daybook.Invalid("job %s has no subjects: %s is the whole window", job, parts.Key()).
		WithHint("leave --subject out; a job that is done for each of its subjects says so: subjects: in daybook.yaml")
}

func noHold(name string, names []string) *daybook.Error {
	e := daybook.NotFound("there is no hold %s", quoted(name, 40))
	if near := daybook.Nearest(name, names); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	if len(names) > 0 {
		return e.WithHint("there is: %s", daybook.Words(names))
	}
	return e.WithHint("nothing is held")
}

func noWindow(k known) *daybook.Error {
	name := k.job.Name
	if k.kind() == daybook.PerEvent {
		return daybook.Invalid("job %s is started by events: which one?", name).WithHint("name the event by its id: --window ID")
	}
	_, err := k.schedule.WindowOf("?")
	return daybook.Invalid("job %s has no schedule that names a window: which one?", name).
		WithHint("add --window: %s", daybook.HintText(err))
}

func noDate(job string, kind daybook.WindowKind, hint daybook.Text) *daybook.Error {
	return daybook.Invalid("job %s has windows of kind %s: a date does not name one", job, kind).WithHint("%s", hint)
}

func badResolution(as daybook.Resolution) *daybook.Error {
	return notOneOf(string(as), []string{string(daybook.AsDone), string(daybook.AsNotDone), string(daybook.AsAsk)})
}

func badState(state daybook.State) *daybook.Error {
	words := make([]string, len(daybook.States))
	for i, s := range daybook.States {
		words[i] = string(s)
	}
	return notOneOf(string(state), words)
}

func notOneOf(word string, words []string) *daybook.Error {
	e := daybook.Invalid("%q is not one of %s", daybook.Clip(word, 40), daybook.Words(words))
	if near := daybook.Nearest(word, words); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	return e
}

// CheckOpenStep returns an error unless step names an effect of r, with the nearest name, or those that are open.
func CheckOpenStep(r *daybook.Run, step string) *daybook.Error {
	if !r.Steps && step == daybook.StepRun { // whether it began is for the rule to say
		return nil
	}
	var names, open daybook.Words
	for _, e := range r.Marked() {
		if e.Plain {
			continue
		}
		if e.Step == step {
			return nil
		}
		names = append(names, e.Step)
		if e.State == daybook.EffectUnknown || e.State == daybook.EffectBegun {
			open = append(open, e.Step)
		}
	}
	e := daybook.NotFound("%s has no effect %s", r.Key, step)
	switch err := daybook.CheckStep(step); {
	case step == "":
		e = daybook.Invalid("--step is missing: it names the effect that is settled")
	case !r.Steps, err != nil && step != daybook.StepRun:
		e = daybook.Invalid("there is no step %q", daybook.Clip(step, 40))
	}
	if near := daybook.Nearest(strings.ToLower(step), names); near != "" && step != "" {
		return e.WithHint("did you mean --step %s?", near)
	}
	switch {
	case len(open) == 1:
		return e.WithHint("--step %s is the one whose outcome is unknown: look at the far side for %s", open[0], r.OpenWireKey())
	case len(open) > 1:
		return e.WithHint("the outcome of these is unknown: %s", open)
	case !r.Steps:
		return e.WithHint("--step %s is the whole run as one effect", daybook.StepRun)
	}
	return e.WithHint("daybook run show %s lists its effects", r.Key)
}

func letterClosed(r *daybook.Run) *daybook.Error {
	l := r.Letter
	e := daybook.Conflict("%s has no open letter: it was %s %s by %s", r.Key, l.State, clock(l.ClosedAt, time.Time{}, location(r.Zone)), whoever(l.ClosedBy))
	if l.State == daybook.LetterDismissed {
		return e.WithHint("daybook run reopen %s --reason … opens it again", r.Key)
	}
	return e
}

func changesAllTheTime(k daybook.Key) *daybook.Error {
	return daybook.New(daybook.CodeStale, "%s changes all the time: nothing was done", k).WithHint("look at it again and repeat the command")
}

// withHint tells what can be done instead of an act that a rule refused. asks says whether the far side can be asked.
func withHint(err error, r *daybook.Run, asks bool) error {
	e, ok := err.(*daybook.Error)
	if !ok || e.Hint != "" {
		return err
	}
	letter := daybook.LetterState("")
	if r.State == daybook.Dead && r.Letter != nil {
		letter = r.Letter.State
	}
	switch {
	case letter == daybook.LetterOpen && r.Letter.Kind == daybook.LetterUnknown:
		return e.WithHint("%s", letterDo(*r.Letter, r, asks))
	case letter == daybook.LetterOpen && r.Letter.ByHand():
		return e.WithHint("%s", letterDo(*r.Letter, r, asks))
	case letter == daybook.LetterOpen:
		return e.WithHint("daybook dead replay %s, or daybook dead dismiss %s --reason …", r.Key, r.Key)
	case letter == daybook.LetterDismissed, r.State == daybook.Cancelled:
		return e.WithHint("%s", command("daybook run reopen %s --reason …", r.Key))
	case r.State.Live():
		return e.WithHint("daybook run watch %s follows it", r.Key)
	}
	return e.WithHint("daybook run show %s tells what happened", r.Key)
}

// resolveCommand settles the effect of r that is settled first; the far side is asked only where it can be.
func resolveCommand(k daybook.Key, r *daybook.Run, asks bool) daybook.Text {
	as := "done|not-done"
	if asks {
		as = "done|not-done|ask"
	}
	if r.Attempts > 1 {
		return command("daybook run resolve %s --step %s --as \"%s\" --attempt %d --reason …", k, r.OpenStep(), as, r.Attempts)
	}
	return command("daybook run resolve %s --step %s --as \"%s\" --reason …", k, r.OpenStep(), as)
}

// resolveDo says under which wire key to look, and then what to say.
func resolveDo(k daybook.Key, r *daybook.Run, asks bool) daybook.Text {
	if r == nil {
		return command("daybook run show %s", k)
	}
	return daybook.Say("look at the far side for %s, then: %s", r.OpenWireKey(), resolveCommand(k, r, asks))
}
