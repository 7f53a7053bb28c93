package importer

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Words that stand before the program that a line is about, by what follows them.
var (
	preludes     = []string{"cd", "test", "[", "export", "set", "source", ".", "umask", "ulimit", "sleep", "true", ":", "echo", "date", "mkdir", "exit", "if", "then", "fi", "done", "ping", "rm", "touch", "mv", "cp", "logger", "kill", "pkill"}
	wrappers     = []string{"chronic", "cronic", "nohup", "time", "exec", "setsid", "sudo", "env", "nice", "ionice", "chrt", "stdbuf", "command", "run-one", "unbuffer", "systemd-cat", "doas", "npx"}
	withArgument = []string{"flock", "lckdo", "timeout", "setlock", "su"} // and one word more
	interpreters = []string{"sh", "bash", "dash", "zsh", "ksh", "python", "perl", "ruby", "node", "php", "pypy", "deno", "bun", "java"}
	manyVerbs    = []string{"artisan", "manage", "rake", "rails", "console", "npm", "yarn", "pnpm", "make", "wp", "drush", "occ", "restic", "borg", "certbot", "git", "docker", "podman", "kubectl", "bundle", "aws", "gsutil", "rclone"}
	verbFlags    = []string{"-r", "-f", "-C", "-H", "--repo", "--profile"}                            // before a verb: they take the next word
	runners      = map[string]string{"bundle": "exec", "poetry": "run", "pipenv": "run", "uv": "run"} // with what follows them
	valueFlags   = map[string]string{"flock": "-w -E", "timeout": "-k -s", "nice": "-n", "ionice": "-c -n -p", "env": "-u -C", "sudo": "-u -g", "doas": "-u", "stdbuf": "-i -o -e"}
	operators    = regexp.MustCompile(`^(;|&&|\|\||\||&|\(|\)|\{|\}|;;)$`)
	version      = regexp.MustCompile(`[0-9.]+$`)
	extension    = regexp.MustCompile(`\.(sh|bash|py|php|pl|rb|js|mjs|ts|jar|cgi|zsh)$`)
	assignment   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	spaced       = regexp.MustCompile(`(&&|\|\||[;|()&])`)
)

// nameOf calls a command by the program it is about: backup of "cd /app && flock -n l python3 bin/backup.py --all".
func nameOf(command string) string {
	words := strings.Fields(spaced.ReplaceAllString(strings.NewReplacer("'", " ", `"`, " ", "2>&1", " ", "&>", " > ").Replace(command), " $1 "))
	for rest := words; len(rest) > 0; {
		end := slices.IndexFunc(rest, operators.MatchString)
		if end < 0 {
			end = len(rest)
		}
		if name := nameOfWords(rest[:end]); name != "" {
			return name
		}
		rest = rest[min(end+1, len(rest)):]
	}
	for _, w := range words { // nothing but what usually only leads to something
		if !assignment.MatchString(w) && !operators.MatchString(w) {
			return path.Base(w)
		}
	}
	return "job"
}

// nameOfWords is nameOf for one simple command; empty: it is not what the line is about.
func nameOfWords(words []string) string {
	for len(words) > 0 {
		w := words[0]
		base := strings.ToLower(path.Base(w))
		switch {
		case assignment.MatchString(w), strings.HasPrefix(w, "-"):
			words = words[1:]
		case slices.Contains(preludes, base):
			return ""
		case slices.Contains(wrappers, base):
			words = skipFlags(base, words[1:])
		case slices.Contains(withArgument, base):
			if words = skipFlags(base, words[1:]); len(words) > 1 {
				words = words[1:]
			}
		case len(words) > 2 && words[1] == runners[base] && words[1] != "":
			words = words[2:]
		case slices.Contains(interpreters, version.ReplaceAllString(base, "")):
			rest := words[1:]
			for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "-m" && rest[0] != "-c" && rest[0] != "-jar" {
				rest = rest[1:]
			}
			if len(rest) > 1 && (rest[0] == "-m" || rest[0] == "-c" || rest[0] == "-jar") {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return base
			}
			words = rest
		case base == "curl" || base == "wget":
			return nameOfURL(words[1:], base)
		default:
			if !strings.ContainsFunc(base, func(c rune) bool { return c >= 'a' && c <= 'z' }) {
				return ""
			}
			return withVerb(extension.ReplaceAllString(base, ""), words[1:])
		}
	}
	return ""
}

func skipFlags(wrapper string, words []string) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if slices.Contains(strings.Fields(valueFlags[wrapper]), words[0]) && len(words) > 1 {
			words = words[1:]
		}
		words = words[1:]
	}
	return words
}

// withVerb adds what a program with many verbs is asked to do.
func withVerb(name string, rest []string) string {
	if !slices.Contains(manyVerbs, name) {
		return name
	}
	for i, w := range rest {
		if i > 0 && slices.Contains(verbFlags, rest[i-1]) {
			continue
		}
		if !strings.HasPrefix(w, "-") && !strings.ContainsAny(w, "/=<>$") {
			return name + "-" + w
		}
	}
	return name
}

// nameOfURL calls a request by the end of its address.
func nameOfURL(words []string, program string) string {
	for _, w := range words {
		_, rest, ok := strings.Cut(w, "://")
		if !ok {
			continue
		}
		rest, _, _ = strings.Cut(rest, "?")
		if name := path.Base(strings.TrimRight(rest, "/")); name != "." && name != "/" {
			return extension.ReplaceAllString(name, "")
		}
	}
	return program
}

var notInName = regexp.MustCompile(`[^a-z0-9_]+`)

// sanitize makes a name of a job out of a text.
func sanitize(s string) string {
	s = strings.Trim(notInName.ReplaceAllString(strings.ToLower(s), "-"), "-_")
	if len(s) > 40 {
		s = strings.TrimRight(s[:40], "-_")
	}
	if s == "" {
		return "job"
	}
	return s
}
