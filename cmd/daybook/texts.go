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
overwritten. The time zone of this machine is written down as a proposal. With --from-crontab the file has your
crontab's jobs, all paused: daybook import crontab tells more. With --example the argument is a directory (default .),
and what is written there runs as it stands: its README has the commands.`
	textInitExample     = "  daybook init\n  daybook init --zone Asia/Shanghai\n  daybook init -n\n  daybook init --from-crontab\n  daybook init --example saas shop"
	textFlagExample     = "write an example into a directory: saas, six jobs with a server to call"
	textFlagFromCrontab = "write the jobs of your crontab (crontab -l), all paused"
	textFlagInitZone    = "time zone to write (default: that of this machine, else UTC)"

	textCheck     = "Check the file; show the next fires and their keys"
	textCheckLong = `Reads the file and tells all its faults at once, each with its place and its remedy (exit 2), or shows, for
each job, the next three fires and the keys they answer for, and what the file changes against the ledger, if that is there
and can be read: what is new, gone or changed, and the keys of the next fires before and after. Nothing is written.

A change that would give the same business of a P0 job new keys, or leave one of its windows out, is refused by serve (exit
4 here) until --accept-keys --reason records that somebody means it.`
	textCheckExample = "  daybook check\n  daybook check other.yaml --json\n  daybook check --schema > daybook.schema.json"
	textFlagAccept   = "accept what the file changes about keys of P0 jobs, of exactly these definitions; needs --reason"
	textFlagSchema   = "print the JSON Schema of the file, for editors"

	textSchedule  = "Try schedules out"
	textFires     = "List the fires of a schedule and the windows they answer for"
	textFiresLong = `Lists the fires in (from, to]. A note says where the clock moved one: gap (the time does not exist and fires at
the end of the gap) or repeat (the time occurs twice and fires once).`
	textFiresExample = `  daybook schedule fires "daily 02:30" --zone Europe/Berlin --from 2026-03-28T00:00:00Z --to 2026-03-30T12:00:00Z --json`
	textFlagZone     = "IANA time zone (required)"
	textFlagFrom     = "after this instant, RFC 3339 (required)"
	textFlagTo       = "up to and with this instant, RFC 3339 (required)"
	textFlagWindow   = "kind of window: day, previous-week, fire … (default: by the schedule)"

	textVersion     = "Show the versions of Daybook, Go, SQLite and the time zone data"
	textFlagVersion = "the same as daybook version"

	textHelp = "Show the help of a command"

	textCompletion     = "Write the completion script of a shell"
	textCompletionLong = `Once it is loaded, the Tab key completes commands, flags, job names and keys. It asks the ledger by reading only,
gives up after less than a second, and says nothing when there is no ledger.`
	textCompletionExample = `  source <(daybook completion bash)                                        # bash, for now
  daybook completion bash > /etc/bash_completion.d/daybook                 # bash, every session
  daybook completion zsh > "${fpath[1]}/_daybook"                          # zsh
  daybook completion fish > ~/.config/fish/completions/daybook.fish        # fish
  daybook completion powershell | Out-String | Invoke-Expression           # PowerShell, for now`

	textMan        = "Write the manual pages into a directory"
	textManLong    = `One page for each command, from the same texts as --help. Pages that are there are replaced.`
	textManExample = `  daybook man ~/.local/share/man/man1 && man daybook-job-trigger`
)

const (
	textServe     = "Run the jobs of the file: schedule, execute, look after the ledger"
	textServeLong = `Runs until it is asked to stop (SIGTERM, Ctrl-C); then nothing new starts, commands are asked to end, and every
end is written. Several may run on one ledger: a key is still run once.`
	textFlagLease  = "how long a run stays with a process that does not renew it; for tests and the demo (default 30s)"
	textFlagListen = "address of the HTTP door, such as 127.0.0.1:7070: the API, callbacks of HTTP jobs, /healthz (default none)"

	textToken           = "Make, list and revoke the tokens of programs and people"
	textTokenList       = "List every token there ever was"
	textTokenCreate     = "Make a token and show it once"
	textTokenCreateLong = `The token is shown once: the ledger keeps its fingerprint only. view looks, act changes, ping sends signs of life.
The name says whose it is, and stands in every record of what is done with it.`
	textTokenCreateExample = `  daybook token create --role act --name deploy > deploy.token
  curl -H "Authorization: Bearer $(cat deploy.token)" -X POST http://127.0.0.1:7070/api/v1/jobs/renew/trigger`
	textTokenRevoke = "End the rights of a token, at once and for good"

	textOnce     = "Guard one line of a crontab: key, log, lease, retries and dead letter, without a server"
	textOnceLong = `Runs the command under the key of its window, unless that key is done already or under way. Without a file the
ledger is sqlite:~/.local/state/daybook/daybook.db. Exit codes are those of the command; 124 when it was ended
at its timeout, 128+n by a signal, 75 when the key is running elsewhere (or, with --no-retry, a later try may
succeed), and 125 when Daybook itself refused or failed, or only a person lets the run go on: JSON on stderr says why.`
	textOnceExample = `  daybook once --job backup --schedule "0 2 * * *" --tz Europe/Berlin -- restic backup /home
  daybook once --job report --window week --tz Asia/Shanghai --effects once -- ./report`
)

const (
	textFlagReason  = "why, for whoever reads the record later"
	textFlagConfirm = "the key, in place of typing it: for what touches money"

	textJob         = "List, show, pause and trigger jobs"
	textJobList     = "List all jobs: the next fire and its key, the last good window, the state"
	textJobListLong = `The inventory. STATE is that of the newest window; NEXT is the next fire that really fires, and KEY the key it
leads to.`
	textJobShow      = "Show one job: what it means, how it stands"
	textJobNext      = "Show the next fires of a job beside their keys"
	textJobNextLong  = `Fires and the keys they lead to, side by side. A note says where the clock or a day off changes one.`
	textJobPause     = "Let nothing new of a job start"
	textJobPauseLong = `Nothing new starts, what waits is held, and windows that become due are rows: skipped, paused. What runs goes
on. The pause lasts until job resume.`
	textJobResume      = "End a pause: what was held may start"
	textJobTrigger     = "Ask for the run of a window; a window that is done is not done again"
	textJobTriggerLong = `Looks the key up first. A new key is started; one under way is joined; one that is done is answered with when,
by whom and its result, and nothing is repeated. Every trigger is recorded, whatever the answer.

Without --window and --date it is the window of the latest fire already past, never the wall date.

Exit codes: 0 started, joined or done already, 1 it ended otherwise, 3 with --wait: only a person lets it go on, 4 refused by a
rule, 5 no such job.`
	textJobTriggerExample = `  daybook job trigger renew
  daybook job trigger renew --date 2026-10-26 --wait
  daybook job trigger invoice --window 2026-10 --subject "acct 42" --payload order.json
  daybook job trigger renew --window 2026-10-26~2 --reason "the bank asked for a second file"`

	textRun         = "List, show, follow and settle runs"
	textRunList     = "List runs"
	textRunListLong = `Runs in the order of their keys; with --job alone the newest windows first.`
	textRunShow     = "Show the record of a key, with its attempts"
	textRunLogs     = "Show what an attempt printed"
	textRunLogsLong = `The output of the newest attempt that has ended: its head and its tail, with a mark where bytes were left out.
With -f what a command prints on this host is shown line by line as it comes, attempt after attempt, until the run has
ended; of what runs elsewhere, or is no command, the output is shown when an attempt ends.`
	textRunWatch     = "Follow a run to its end"
	textRunWatchLong = `A line for every change until the run has ended. Exit 0 however it ends; with --exit-status 1 unless it is done.
Exit 3 when only a person lets it go on, 6 when nobody executes.`
	textRunCancel     = "End a run that waits, or ask the executor of one under way to end it"
	textRunCancelLong = `A run that waits is cancelled. One under way is asked to end; an effect it has begun is settled first, never
cancelled. One of which an effect has happened becomes a dead letter, to be replayed, undone or dismissed.`
	textRunReopen      = "Take a cancelled run back, or open a dismissed letter again"
	textRunReopenLong  = `A cancelled run is scheduled again; a dismissed letter is open again, and can be replayed.`
	textRunResolve     = "Say what happened to an effect whose outcome is unknown"
	textRunResolveLong = `Look at the far side first: the wire key is what it got as idempotency key. done: the effect is never begun
again. not-done: it is begun again, under the next wire key. ask: the probe is asked once more.
With done, --result '{"id": "ch_9a1"}' says what the far side handed back: what goes on with it, and an undo, are given
that, and nothing without it.
What touches money (P0) is confirmed by typing its key, or with --confirm=KEY.`

	textKey         = "All that is known about a key"
	textKeyShow     = "Tell the story of a key, line by line"
	textKeyShowLong = `Every trigger and its outcome, attempts, questions to the far side, letters, and what people did, in the order
of time. A key without a record is explained: its window was skipped, is not open yet, or is none of the job's.
Exit 5 when nothing is known about it.`
	textKeyFind = "List the keys that begin with a text"

	textDead           = "Dead letters: runs that a person must look at"
	textDeadList       = "List open dead letters, P0 first, then the oldest"
	textDeadShow       = "Show a dead letter: error, effect, output, and what a replay would do"
	textDeadReplay     = "Run dead runs again: the same keys, failures reset"
	textDeadReplayLong = `Steps that are done stay done. An unknown outcome must be settled first: daybook run resolve. For a job that no
file defines, the line to run is printed.`
	textDeadDismiss     = "Close a dead letter without doing anything about it"
	textDeadDismissLong = `An unknown outcome cannot be dismissed: it is resolved. run reopen opens the letter again.`

	textStatus     = "Did everything run? Is the money right? What needs you?"
	textStatusLong = `Both verdicts with their reasons, what needs a person, how the newest window of each job stands, what comes
next. Exit 0: yes; 3: a person is needed, or it is not known yet; 6: nobody executes, or the ledger is out of reach.`

	textActivity     = "Who did what, and why"
	textActivityList = "List the acts of people, newest first"

	textDoctor     = "Look at the installation and say what is wrong with it"
	textDoctorLong = `Ledger, serves, clocks, zone data, business calendars, and whether every window of the last days is accounted
for. Exit 0 when all is sound, 3 when something wants a person.`

	textAlert        = "Who is told when something goes wrong"
	textAlertList    = "List open alerts, P0 first, then the oldest"
	textAlertAck     = "Acknowledge an alert: it is not repeated"
	textAlertAckLong = `It stays open until what it is about ends, and its end is told. A dead letter that stays open for 24 h is told once
more all the same.`
	textAlertTest     = "Send a test on a channel of the file, or on each"
	textAlertTestLong = `At once, past the ledger, whether or not serve runs. Exit 1 when a channel could not send.`
	textAlertMute     = "Keep the alerts of a job from being sent for a while"
	textAlertMuteLong = `It hides nothing: they stand open, and those that are open when the mute ends are sent then.`

	textDrill        = "Ask for a done key again, and expect nothing"
	textDrillRun     = "Ask for a done key again by several doors, and count what comes of it"
	textDrillRunLong = `By each door as often as --times says, the last time by all of them at once. What is recorded of the key before
and after is compared, and what --count prints. The record is kept: exit 0 when nothing came of it, 3 when something did,
with an alert, 4 when the key is not done. A job that touches money is reminded of once a quarter.`
	textDrillRunExample = `  daybook drill run renew --date 2026-10-26 --count 'grep -c "$DAYBOOK_KEY" gateway.jsonl'`
	textDrillList       = "List what was drilled, newest first"

	textFreeze          = "Spans in which nothing starts"
	textFreezeStart     = "Let nothing start from now on, for a while"
	textFreezeStartLong = `No run starts, no retry lands, no probe or undo is sent. What runs goes on, and a report that arrives is taken. All
machines on the ledger see it at once. What is held starts spread out after the end. It always has an end, within a day.`
	textFreezeList    = "List what holds runs, what comes, and what is held"
	textFreezeEnd     = "End a freeze, or a hold: what was held may start"
	textFreezeEndLong = `Without a name it is the one that stands. clock is put up by Daybook itself when the clock of a machine leapt ahead:
its end confirms the time. restored is put up when the ledger was put back to an earlier state: its end is refused while an
outcome from before is unknown. A freeze of the file ends by itself.`
	textFreezeCheck     = "Tell a deployment whether it would meet P0 work"
	textFreezeCheckLong = `Exit 0 when no run and no ladder of P0 is under way or due within the span, else 4 with the list. It holds nothing:
daybook freeze start does.`

	textDB            = "Look after the ledger"
	textDBMigrate     = "Make the ledger, or bring its schema up to date"
	textDBMigrateLong = `Forward only. serve does it too; this is for those who want to see it done, or to do it themselves: --print
writes the statements, from the schema that is there.`
	textDBBackup     = "Copy a SQLite ledger, also while serve works on it"
	textDBBackupLong = `The copy is that of one instant, readable by its owner only, read back before it has its name. A file that is
there is never overwritten. A PostgreSQL ledger is backed up with pg_dump: the line is shown.`
	textDBInfo        = "Show which ledger this is, where, and how large"
	textDBRestore     = "Put a backup in the place of a SQLite ledger"
	textDBRestoreLong = `The backup is checked, the file that is there is kept beside it, and nobody may work on the ledger meanwhile. The
ledger knows nothing of what happened after the backup was made. So what may happen once only is frozen, until
probes or a person have said what happened.

A ledger that was put back by other means, such as those of PostgreSQL, is found by what serve has kept beside it or
on this host. Where there is none of that, as on a new machine, --by-hand says so.`
	textFlagByHand    = "the ledger was put back by other means: say so, and change nothing else"
	textFlagSinceBack = "with --by-hand: the last instant that the copy surely knows, such as 2026-10-26T02:00:00Z"
	textDBPrune       = "Empty the logs of old runs now"
	textDBPruneLong   = `What serve does every hour: attempts, output, payloads and results older than retention.log of the file (default
30d) are emptied. Keys, states, counts and letters stay for good: a pruned key is never run again.`
)

const (
	textDemo     = "See it: the night of 29 March, a kill -9 in mid-charge, a declined card, one charge a day"
	textDemoLong = `Plays a shop with twenty subscriptions and a payment gateway over four nights, offline and in a directory of its own,
in less than a minute: real processes of this program, really killed, by a clock that runs sixty times as fast and
jumps over idle hours. What it says of money is counted from the book of the gateway, which is another process.
Ctrl-C ends everything; nothing is left, unless --keep.`
	textDemoGateway = "The payment gateway of the demo"
	textDemoShop    = "The shop of the demo"
)

const (
	textImport            = "Write a daybook.yaml that says what another scheduler does"
	textImportCrontab     = "From a crontab: yours, a file, or those of the machine"
	textImportCrontabLong = `Prints a file on stdout: a job for each line, with the same fires and the same command, each paused, and a comment
wherever cron is odd. What cannot be said stands there as a comment, and on stderr. The crontab is not changed; how
to switch over, job by job, stands at the end of the file.`
	textImportCrontabExample = "  daybook import crontab > daybook.yaml && daybook check\n  daybook import crontab --system\n  ssh old crontab -l | daybook import crontab - --zone Europe/Berlin"
	textImportSystemd        = "From systemd timers and their services"
	textImportSystemdLong    = `Prints a file on stdout: a job for each timer of the directory (default /etc/systemd/system), with what its service
starts; drop-ins are read. What cannot be carried over is said in a comment. Nothing is changed.`
	textImportSystemdExample = "  daybook import systemd > daybook.yaml && daybook check\n  daybook import systemd ~/.config/systemd/user"
	textFlagSystem           = "the tables of the machine, /etc/crontab and /etc/cron.d; of FILE: its sixth field is the user"
	textFlagImportZone       = "time zone in which it has fired (default: that of this machine)"
	textFlagObeyZone         = "CRON_TZ moved the fires, as with cronie; Debian's cron ignores it"
)

const (
	textExport         = "Write what the ledger knows for other programs"
	textExportJobs     = "The inventory: every job with window, owner, priority, last good and next window"
	textExportJobsLong = `One JSON object a line, or CSV with --csv; by name, jobs that no definition names any more included. References to
secrets stay references, values of env are left out.`
	textExportActivity     = "The whole record of who did what, and why"
	textExportActivityLong = `One JSON object a line, or CSV with --csv; oldest first, so that what comes later is added at the end.`
	textFlagCSV            = "CSV with a head instead of JSON"
)

const (
	textStep     = "Do a named part of a run once: inside a command of a job with steps"
	textStepLong = `Runs the command, and keeps that it is done and what it printed. When the run is tried again it is not done again:
what it printed is printed. It touches nothing outside; what does is an effect. A step that failed is done again.`
	textStepExample = "  daybook step list -- ./due --date \"$DAYBOOK_BUSINESS_DATE\""

	textEffect     = "Touch the outside world once: inside a command of a job with steps"
	textEffectLong = `Marks that it begins, runs the command with a wire key of its own in DAYBOOK_WIRE_KEY, and marks how it ended, by its
exit code: 0 done; 75 it did not happen; 64, 65, 66, 77, 78 it never will; anything else, or a signal: it may have
happened. When the run is tried again, what is done is not done again: what it printed is printed. What may have
happened is asked for by the probe, repeated under the same wire key while the far side remembers it, or left to a
person. Until then the effect may not begin, and exits 125; let the script end with it (set -e). A run with an
effect that did not happen, or might not begin, is not done, whatever its script says.`
	textEffectExample = `  daybook effect charge --probe './charged "$DAYBOOK_WIRE_KEY"' --undo './refund "$DAYBOOK_EFFECT_RESULT"' -- ./charge sub_42 1500`

	textFlagDrillDate    = "business date of the done key"
	textFlagDrillWindow  = "its label, where windows are no days (default: that of the latest fire already past)"
	textFlagDrillSubject = "one business object inside the window"
	textFlagDrillDoors   = "doors to come by, of those that a trigger has"
	textFlagDrillTimes   = "how often by each of them"
	textFlagDrillCount   = "line for the shell that counts on the far side: it is run before and after, and must print the same"
	textFlagDrillJob     = "of one job"
	textFlagDrillLimit   = "at most so many"

	textFlagStepProbe     = "a line for the shell that asks whether it happened: exit 0 yes, 1 no, else it cannot tell"
	textFlagStepUndo      = "a line for the shell that takes it back"
	textFlagStepRemembers = "how long the far side answers a repeated wire key: 24h, forever (default: what the job says)"
	textFlagStepSettles   = "a no of the probe counts only this long after the last try ended (default: what the job says, 5m)"
	textFlagStepOptional  = "the script does without it when it does not happen: the run may be done all the same"
)

const (
	textRunUndo  = "Take back what a run did, once and for good"
	textDeadUndo = "Take back what a dead run did, once and for good"
	textUndoLong = `Takes back each effect that is done, the newest first, by the undo of the effect or of its job, under a wire key of its
own. From then on nothing of the run is done again, and that is final. It is done by a run of its own, under the key
with ~undo behind it: that one is watched, and replayed when it fails. Refused while an outcome is unknown.
What touches money (P0) is confirmed by typing its key, or with --confirm=KEY.`
)
