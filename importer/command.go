package importer

import (
	"regexp"
	"slices"
	"strings"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// splitPercent parts what cron runs from what it gives to it on stdin: the first unescaped '%' begins that, each further
// one is a line break, and "\%" is a '%'.
func splitPercent(text string) (command, stdin string) {
	var b strings.Builder
	escaped, rest, found := false, "", false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case escaped && c == '%':
			command := b.String()
			b.Reset()
			b.WriteString(command[:len(command)-1])
			b.WriteByte('%')
			escaped = false
			continue
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '%':
			rest, found = text[i+1:], true
		}
		if found {
			break
		}
		b.WriteByte(c)
	}
	if rest == "" {
		return b.String(), ""
	}
	return b.String(), stdinOf(rest)
}

// stdinOf is what cron writes to the command: it ends with a line break.
func stdinOf(text string) string {
	var b strings.Builder
	escaped := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if escaped && c != '%' {
			b.WriteByte('\\')
		}
		if !escaped && c == '%' {
			c = '\n'
		}
		if escaped = c == '\\'; !escaped {
			b.WriteByte(c)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	if s := b.String(); strings.HasSuffix(s, "\n") {
		return s
	}
	return b.String() + "\n"
}

// builtins are words that a shell does itself, and no program of their name, or another one, does.
var builtins = []string{".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif", "else", "esac", "eval", "exec", "exit", "export",
	"fi", "fg", "for", "function", "getopts", "hash", "if", "in", "jobs", "kill", "let", "local", "printf", "pwd", "read", "readonly", "return", "select", "set", "shift", "source",
	"test", "then", "time", "times", "trap", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "[", "[[", "!"}

// plainWords returns the arguments of a command that means the same without a shell.
func plainWords(command string) ([]string, bool) {
	var words []string
	word, inWord, quote := "", false, byte(0)
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case c == '{': // Daybook would fill {date} in
			return nil, false
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '$' && c != '`' && c != '\\':
			word += string(c)
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			return nil, false
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word)
			}
			word, inWord = "", false
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_/.,:+=@%-^", c) >= 0, c >= 0x80:
			word, inWord = word+string(c), true
		default:
			return nil, false
		}
	}
	if quote != 0 {
		return nil, false
	}
	if inWord {
		words = append(words, word)
	}
	if len(words) == 0 || words[0] == "" || strings.Contains(words[0], "=") || slices.Contains(builtins, words[0]) {
		return nil, false
	}
	return words, true
}

// braces would be filled in, or refused, in an argument of run.
var braces = regexp.MustCompile(`\{[a-z_]+\}`)

// setCommand says how a command line of a shell is run.
func (j *job) setCommand(command, shell string) {
	command = strings.Trim(command, " \t")
	words, plain := plainWords(command)
	switch {
	case plain:
		j.run = words
	case shell == "" || shell == "/bin/sh" || shell == "sh" || shell == "/usr/bin/sh":
		j.shell = command
	case braces.MatchString(command):
		j.shell = shell + " -c " + quoted(command)
	default:
		j.run = []string{shell, "-c", command}
	}
}

// quoted writes a word for a shell.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_/.,:+=@%-", c))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// habits are what people put around a command because cron does not do it, with what does it here.
var habits = []struct {
	seen *regexp.Regexp
	note string
}{
	{regexp.MustCompile(`(^|[\s;&|(/])(flock|lckdo|run-one|setlock)\s`), "the lock can go: a window waits while the one before it runs, or is left out with overlap: skip"},
	{regexp.MustCompile(`(^|[\s;&|(/])(chronic|cronic)\s`), "the wrapper can go: output is kept, and only a failure alerts"},
	{regexp.MustCompile(`>\s*/dev/null`), "the redirection can go: the output of each attempt is kept, and nobody is mailed"},
	{regexp.MustCompile(`hc-ping\.com|healthchecks?[./]|/ping/|cronitor|deadmanssnitch|nosnch\.in|betteruptime|uptime\.betterstack|heartbeat`), "the ping can go: a job without a good run for too long alerts by itself (expect: max_silence)"},
	{regexp.MustCompile(`(^|[\s;&|(/])timeout\s`), "the wrapper can go: timeout does it, and ends what the command started as well"},
	{regexp.MustCompile(`sleep[\s"]+(\$\(\(|\$\{?RANDOM|` + "`" + `)`), "the sleep can go: jitter spreads starts, and a key keeps its own"},
	{regexp.MustCompile(`\|\s*(mail|mailx|sendmail|mutt)\b`), "the mail can go if it tells of failures: alerts do that, to channels"},
}

// noteHabits says what around the command is built in here.
func (j *job) noteHabits(command string) {
	for _, h := range habits {
		if h.seen.MatchString(command) {
			j.notes = append(j.notes, h.note)
		}
	}
}
