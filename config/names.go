package config

// Every name of the file stands here or in the table beside its reader. A name that is documented and not built yet is
// refused by name: silence would be read as consent.
var (
	laterTop = []string{"limits", "freeze", "subjects", "outbox", "heartbeats"}
	laterJob = []string{"reconcile", "steps", "undo", "undo_url", "on_dead", "serial", "limit",
		"subjects", "zone", "formerly", "dry_run"}
	laterAlerts   = []string{"all_clear", "watchdog"}
	laterChannels = []string{"smtp", "alertmanager", "telegram", "ntfy", "bark", "serverchan", "slack", "discord", "dingtalk", "wecom", "feishu"}
)

// notInDefaults are the per-job names that a default would make dangerous: they are the meaning of a key and of a loss.
var notInDefaults = []string{"window", "effects"}

// otherWords are what other tools call a name, lower case, without separators.
var otherWords = map[string]string{
	"cron": "schedule", "when": "schedule", "at": "schedule", "interval": "schedule", "every": "schedule (such as schedule: every 15m)",
	"tz": "timezone", "timezonename": "timezone", "command": "run", "cmd": "run", "exec": "run", "script": "shell", "args": "run",
	"retries": "retry", "backoff": "retry (backoff stands in it)", "environment": "env", "cwd": "dir", "workdir": "dir", "workingdirectory": "dir",
	"concurrency": "overlap", "concurrencypolicy": "overlap", "deadline": "timeout", "disabled": "paused", "enabled": "paused (paused: true is the opposite)",
	"suspend": "paused", "db": "database", "idempotent": "effects", "maxruntime": "expect (max_runtime stands in it)",
	"maxsilence": "expect (max_silence stands in it)", "grace": "expect (grace stands in it)", "workers": "slots", "tasks": "jobs",
	"catchup": "missed", "misfire": "missed", "team": "owner", "level": "priority",
	"notify": "alerts", "notifications": "alerts", "alerting": "alerts", "receivers": "channels", "webhook": "http (url stands in it)",
	"header": "headers", "verb": "method", "uri": "url", "endpoint": "url", "repeat": "remind", "repeatinterval": "remind",
}

// otherChoices are what other tools call a choice.
var otherChoices = map[string]string{
	"daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter", "yearly": "year", "annual": "year", "yesterday": "previous-day",
	"queue": "wait", "forbid": "skip", "replace": "wait", "all": "catch_up", "latest": "coalesce", "never": "skip", "ignore": "skip",
	"high": "P0", "critical": "P0", "low": "P1", "normal": "P1", "exactly_once": "once", "idempotent": "repeatable", "zh": "zh-CN", "cn": "zh-CN",
}
