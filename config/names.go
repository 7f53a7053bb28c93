package config

// Every name of the file stands here or in the table beside its reader. A name that is documented and not built yet is
// refused by name: silence would be read as consent.
var (
	laterTop      = []string{"limits", "outbox", "heartbeats"}
	laterJob      = []string{"reconcile", "on_dead", "limit", "dry_run"}
	laterAlerts   = []string{"all_clear", "watchdog"}
	laterChannels = []string{"smtp", "alertmanager", "telegram", "ntfy", "bark", "serverchan", "slack", "discord", "dingtalk", "wecom", "feishu"}
)

// notInDefaults are the per-job names that a default would make dangerous: they are the meaning of a key and of a loss.
var notInDefaults = []string{"window", "effects", "formerly"}

// otherWords are what other tools call a name, lower case, without separators.
var otherWords = map[string]meaning{
	"cron": {word: "schedule"}, "when": {word: "schedule"}, "at": {word: "schedule"}, "interval": {word: "schedule"},
	"every": {word: "schedule", example: "schedule: every 15m"},
	"tz":    {word: "timezone"}, "timezonename": {word: "timezone"}, "command": {word: "run"}, "cmd": {word: "run"}, "exec": {word: "run"},
	"script": {word: "shell"}, "args": {word: "run"},
	"retries": {word: "retry", example: "retry: {backoff: [1m, 5m, 25m]}"}, "attempts": {word: "retry", example: "retry: {backoff: [1m, 5m, 25m]}"},
	"maxretries": {word: "retry", example: "retry: {backoff: [1m, 5m, 25m]}"}, "backofflimit": {word: "retry", example: "retry: {backoff: [1m, 5m, 25m]}"},
	"backoff": {word: "retry", inner: "backoff"}, "environment": {word: "env"}, "cwd": {word: "dir"}, "workdir": {word: "dir"}, "workingdirectory": {word: "dir"},
	"concurrency": {word: "overlap"}, "concurrencypolicy": {word: "overlap"}, "deadline": {word: "timeout"}, "activedeadlineseconds": {word: "timeout"},
	"disabled": {word: "paused"}, "enabled": {word: "paused", example: "paused: true for enabled: false"}, "suspend": {word: "paused"},
	"db": {word: "database"}, "idempotent": {word: "effects"}, "maxruntime": {word: "expect", inner: "max_runtime"},
	"maxsilence": {word: "expect", inner: "max_silence"}, "grace": {word: "expect", inner: "grace"}, "workers": {word: "slots"}, "tasks": {word: "jobs"},
	"catchup": {word: "missed"}, "misfire": {word: "missed"}, "team": {word: "owner"}, "level": {word: "priority"},
	"notify": {word: "alerts"}, "notifications": {word: "alerts"}, "alerting": {word: "alerts"}, "receivers": {word: "channels"},
	"webhook": {word: "http", inner: "url"}, "url": {word: "http", inner: "url"}, "header": {word: "headers"}, "verb": {word: "method"}, "uri": {word: "url"}, "endpoint": {word: "url"},
	"repeat": {word: "remind"}, "repeatinterval": {word: "remind"}, "renamedfrom": {word: "formerly"}, "previousname": {word: "formerly"}, "oldname": {word: "formerly"},
}

// otherChoices are what other tools call a choice.
var otherChoices = map[string]string{
	"daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter", "yearly": "year", "annual": "year", "yesterday": "previous-day",
	"hour": "fire", "hourly": "fire", "minute": "fire", "exactly_once": "once", "at_most_once": "once", "at_least_once": "repeatable", "run_all": "catch_up",
	"queue": "wait", "forbid": "skip", "replace": "wait", "all": "catch_up", "latest": "coalesce", "never": "skip", "ignore": "skip",
	"high": "P0", "critical": "P0", "low": "P1", "normal": "P1", "idempotent": "repeatable", "zh": "zh-CN", "cn": "zh-CN",
}
