package main

// The texts of help stand together, so that another language is another file. Messages stand where they are said.
const (
	textRoot     = "Cron that knows which day it is for, and will not do that day twice"
	textRootLong = `Daybook runs scheduled work and keeps a ledger of it: each run has a key made of the job and the business
window it answers for, such as renew:2026-10-26, and whatever asks again (the schedule, a retry, a person)
finds that key instead of doing it twice.

Exit codes: 0 done or already done, 1 it failed, 2 usage or file, 3 a person is needed, 4 refused by a rule,
5 not found, 6 the ledger or the server is out of reach.`

	textFlagConfig  = "the file (DAYBOOK_CONFIG; default daybook.yaml)"
	textFlagDB      = "the ledger: sqlite:PATH, postgres://user@host/name, or a reference (DAYBOOK_DB; default: what the file says)"
	textFlagJSON    = "answer in JSON; lists are one object a line"
	textFlagQuiet   = "only data and errors"
	textFlagVerbose = "more detail"
	textFlagNoColor = "no colours (NO_COLOR)"
	textFlagNoInput = "never ask; refuse instead"
	textFlagYes     = "answer yes to questions"
	textFlagLang    = "language: en or zh-CN (DAYBOOK_LANG)"
	textFlagShowTZ  = "show times in this time zone; keys do not change"
	textFlagDryRun  = "show what would be done, and do nothing"

	textInit     = "Write a first daybook.yaml, with comments"
	textInitLong = `Writes a file that passes check: one harmless job, and examples to uncomment. A file that is there is never
overwritten. The time zone of this machine is written down as a proposal.`
	textInitExample  = "  daybook init\n  daybook init --zone Asia/Shanghai\n  daybook init -n"
	textFlagInitZone = "time zone to write (default: that of this machine, else UTC)"

	textCheck     = "Check the file; show the next fires and their keys"
	textCheckLong = `Reads the file and tells all its faults at once, each with its place and its remedy (exit 2), or shows, for
each job, the next three fires and the keys they answer for. Nothing is started, no secret is looked up.`
	textCheckExample = "  daybook check\n  daybook check other.yaml --json"

	textSchedule  = "Try schedules out"
	textFires     = "List the fires of a schedule and the windows they answer for"
	textFiresLong = `Lists the fires in (from, to]. A note says where the clock moved one: gap (the time does not exist and fires at
the end of the gap) or repeat (the time occurs twice and fires once).`
	textFiresExample = `  daybook schedule fires "daily 02:30" --zone Europe/Berlin --from 2026-03-28T00:00:00Z --to 2026-03-30T12:00:00Z --json`
	textFiresHead    = "FIRE\tLOCAL\tWINDOW\tNOTE"
	textFlagZone     = "IANA time zone (required)"
	textFlagFrom     = "after this instant, RFC 3339 (required)"
	textFlagTo       = "up to and with this instant, RFC 3339 (required)"
	textFlagWindow   = "kind of window: day, previous-week, fire … (default: by the schedule)"

	textVersion = "Show the versions of Daybook, Go, SQLite and the time zone data"
)

const (
	textServe     = "Run the jobs of the file: schedule, execute, look after the ledger"
	textServeLong = `Runs until it is asked to stop (SIGTERM, Ctrl-C); then nothing new starts, commands are asked to end, and every
end is written. Several may run on one ledger: a key is still run once.`
	textFlagLease  = "how long a run stays with a process that does not renew it; for tests and the demo (default 30s)"
	textFlagListen = "address to answer /healthz on; this version serves nothing else"

	textOnce     = "Guard one line of a crontab: key, log, lease, retries and dead letter, without a server"
	textOnceLong = `Runs the command under the key of its window, unless that key is done already or under way. Without a file the
ledger is sqlite:~/.local/state/daybook/daybook.db. Exit codes are those of the command; 124 when it was ended
at its timeout, 128+n by a signal, 75 when the key is running elsewhere (or, with --no-retry, a later try may
succeed), and 125 when Daybook itself refused or failed: JSON on stderr says why.`
	textOnceExample = `  daybook once --job backup --schedule "0 2 * * *" --tz Europe/Berlin -- restic backup /home
  daybook once --job report --window week --tz Asia/Shanghai --effects once -- ./report`
)
