package main

import (
	"fmt"

	"github.com/daybook-run/daybook"
)

// entry is a name with what it means, in a table that the manual and the reference show.
type entry struct{ Name, Text string }

// environment is what the program itself reads of its environment.
var environment = []entry{
	{"DAYBOOK_CONFIG", "the file, as --config"},
	{"DAYBOOK_DB", "the ledger, as --db; unlike the flag it may hold a password"},
	{"DAYBOOK_LANG", "the language, as --lang: en or zh-CN"},
	{"NO_COLOR", "set to anything: no colours, as --no-color"},
	{"TERM", "dumb: plain ASCII on the terminal"},
	{"USER", "the name under which acts are recorded"},
	{"XDG_STATE_HOME", "where the ledger of once lies when nothing names one, in daybook/; default ~/.local/state"},
}

// exitCodes are those that scripts rely on.
var exitCodes = []entry{
	{code(daybook.ExitOK), "done, or done already"},
	{code(daybook.ExitFailed), "it ran and failed, or an unexpected error"},
	{code(daybook.ExitUsage), "what was asked, or the file, cannot be right"},
	{code(daybook.ExitNeedsPerson), "it worked, and a person is needed"},
	{code(daybook.ExitRefused), "refused by a rule as things stand now"},
	{code(daybook.ExitNotFound), "no such job or key"},
	{code(daybook.ExitUnreachable), "the ledger is out of reach, or nobody executes"},
	{code(daybook.ExitElsewhere), "once only: the key is running elsewhere, or a later try may succeed"},
	{code(daybook.ExitTimeout), "once: the command was ended at its timeout; job trigger --wait=D, run watch --for D: the run goes on"},
	{code(daybook.ExitDaybook), "once only: Daybook itself refused or failed; any other code is that of the command"},
}

func code(n int) string { return fmt.Sprint(n) }
