package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/daybook-run/daybook"
)

// interactive reports whether somebody can be asked.
func (a *app) interactive() bool { return !a.flags.noInput && !a.flags.json && a.Ask != nil && a.Ask() }

// plan shows what is about to be confirmed: also with --quiet, as nobody can answer a question about nothing.
func (a *app) plan(format string, args ...any) {
	if !a.flags.json && !(a.flags.quiet && a.flags.yes) {
		fmt.Fprintln(a.Stderr, a.lang.F(format, args...))
	}
}

// proceed asks whether to do what was just shown. --yes answers; without anybody to ask it is refused, naming the flag.
func (a *app) proceed(what daybook.Text) error {
	if a.flags.yes {
		return nil
	}
	if !a.interactive() {
		return daybook.Conflict("%s asks for a confirmation, and nobody can be asked here", what).WithHint("add --yes (-y)")
	}
	answer, err := a.ask(a.lang.F("Proceed? [y/N] "))
	if err != nil {
		return err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	return notConfirmed()
}

// confirmed asks for what is done to a run by a person's word: where it touches money by its key, else by a yes. A key that is
// given is looked at in any case.
func (a *app) confirmed(what daybook.Text, p daybook.Priority, key daybook.Key, given string) error {
	if p == daybook.P0 || given != "" {
		return a.typed(what, key, given)
	}
	return a.proceed(what)
}

// typed asks for the key of what touches money to be typed. given is what --confirm says; --yes is not enough.
func (a *app) typed(what daybook.Text, key daybook.Key, given string) error {
	switch {
	case given == string(key):
		return nil
	case given != "":
		return daybook.Conflict("--confirm=%s is not %s", daybook.Clip(given, daybook.MaxKeyBytes), key).WithHint("nothing was done; the key is confirmed letter by letter")
	case !a.interactive():
		return daybook.Conflict("%s touches money (P0) and is confirmed by its key", what).WithHint("add --confirm=%s", key)
	}
	answer, err := a.ask(a.lang.F("Type %s to confirm: ", key))
	if err != nil {
		return err
	}
	if answer != string(key) {
		return notConfirmed()
	}
	return nil
}

func notConfirmed() error { return daybook.Conflict("not confirmed: nothing was done") }

// ask puts a question on stderr and reads one line.
func (a *app) ask(question string) (string, error) {
	fmt.Fprint(a.Stderr, question)
	line, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", daybook.New(daybook.CodeInternal, "read the answer").Because(err)
	}
	return strings.TrimSpace(line), nil
}

// dryRun ends a call that only showed what it would do.
func (a *app) dryRun() { a.say("dry run: nothing was written") }

// needReason tells that a reason is missing before anybody is asked anything else.
func needReason(note string, act daybook.Text) error {
	if !strings.ContainsFunc(note, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }) {
		return daybook.Invalid("%s needs a reason", act).WithHint("add --reason, a sentence for whoever reads the record later")
	}
	return nil
}
