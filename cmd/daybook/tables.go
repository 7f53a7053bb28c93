package main

import (
	"fmt"

	"github.com/daybook-run/daybook"
)

// entry is a name with what it means, in a table that the manual and the reference show.
type entry struct {
	Name string
	Text daybook.Text
}

// environment is what the program itself reads of its environment.
var environment = []entry{
	{"DAYBOOK_CONFIG", daybook.Say("the file, as --config")},
	{"DAYBOOK_DB", daybook.Say("the ledger, as --db; unlike the flag it may hold a password")},
	{"DAYBOOK_SERVER", daybook.Say("the serve that keeps the ledger of once, as --server")},
	{"DAYBOOK_TOKEN_FILE", daybook.Say("the file with the token for it, as --token-file")},
	{"DAYBOOK_LANG", daybook.Say("the language, as --lang: en or zh-CN")},
	{"LC_ALL, LC_MESSAGES, LANG", daybook.Say("the language where nothing else says it, by the first that is set")},
	{"NO_COLOR", daybook.Say("set to anything: no colours, as --no-color")},
	{"TERM", daybook.Say("dumb: plain ASCII on the terminal")},
	{"USER", daybook.Say("the name under which acts are recorded")},
	{"XDG_STATE_HOME", daybook.Say("where the ledger of once lies when nothing names one, in daybook/; default ~/.local/state")},
}

// exitCodes are those that scripts rely on.
var exitCodes = []entry{
	{code(daybook.ExitOK), daybook.Say("done, or done already")},
	{code(daybook.ExitFailed), daybook.Say("it ran and failed, or an unexpected error")},
	{code(daybook.ExitUsage), daybook.Say("what was asked, or the file, cannot be right")},
	{code(daybook.ExitNeedsPerson), daybook.Say("it worked, and a person is needed")},
	{code(daybook.ExitRefused), daybook.Say("refused by a rule as things stand now")},
	{code(daybook.ExitNotFound), daybook.Say("no such job or key")},
	{code(daybook.ExitUnreachable), daybook.Say("the ledger is out of reach, or nobody executes")},
	{code(daybook.ExitElsewhere), daybook.Say("once only: the key is running elsewhere, or a later try may succeed")},
	{code(daybook.ExitTimeout), daybook.Say("once: the command was ended at its timeout; job trigger --wait=D, run watch --for D: the run goes on")},
	{code(daybook.ExitDaybook), daybook.Say("once, step, effect: Daybook itself refused or failed; any other code is that of the command")},
}

func code(n int) string { return fmt.Sprint(n) }
