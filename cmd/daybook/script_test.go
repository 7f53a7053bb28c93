package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// asProgram makes the test binary the program itself, for the scripts.
const asProgram = "DAYBOOK_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestScript runs the scripts of testdata/script, each in a directory of its own and each command as a process of its
// own. They are written for rogpeppe/go-internal/testscript and use a part of its language; that package needs a
// module that go.mod does not have yet.
//
//	[!] exec daybook …     runs the program; it must succeed (fail)
//	code N daybook …       runs it; it must end with the exit code N
//	[!] stdout|stderr RE   (no) line of what the last command wrote matches
//	cmp A B                two files, or stdout or stderr and a file, are equal
//	[!] exists F           a file is (not) there
//	cp A B, env NAME=VALUE
func TestScript(t *testing.T) {
	paths, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d scripts, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{t: t, dir: t.TempDir(), env: map[string]string{"HOME": "/no-home", "PATH": os.Getenv("PATH"), asProgram: "1"}}
			commands, files := unpack(string(text))
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for i, line := range strings.Split(commands, "\n") {
				s.at = path + ":" + strconv.Itoa(i+1) + ": " + line
				if words := split(line); len(words) > 0 {
					s.do(words)
				}
			}
		})
	}
}

// script is one script while it runs.
type script struct {
	t              *testing.T
	dir, at        string
	env            map[string]string
	stdout, stderr string
}

func (s *script) fatal(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s\n"+format+"\n--- stdout\n%s--- stderr\n%s", append(append([]any{s.at}, args...), s.stdout, s.stderr)...)
}

func (s *script) do(words []string) {
	s.t.Helper()
	not := words[0] == "!"
	if not {
		words = words[1:]
	}
	switch verb, args := words[0], words[1:]; verb {
	case "exec":
		if code := s.exec(args); (code != 0) != not {
			s.fatal("exit code %d", code)
		}
	case "code":
		if code := s.exec(args[1:]); strconv.Itoa(code) != args[0] {
			s.fatal("exit code %d", code)
		}
	case "stdout", "stderr":
		if regexp.MustCompile("(?m)"+args[0]).MatchString(s.text(verb)) == not {
			s.fatal("match: %v", !not)
		}
	case "cmp":
		if got, want := s.text(args[0]), s.text(args[1]); got != want {
			s.fatal("got\n%s\nwant\n%s", got, want)
		}
	case "exists":
		if _, err := os.Stat(filepath.Join(s.dir, args[0])); (err == nil) == not {
			s.fatal("%v", err)
		}
	case "cp":
		if err := os.WriteFile(filepath.Join(s.dir, args[1]), []byte(s.text(args[0])), 0o600); err != nil {
			s.fatal("%v", err)
		}
	case "env":
		name, value, _ := strings.Cut(args[0], "=")
		s.env[name] = value
	default:
		s.fatal("unknown command")
	}
}

func (s *script) exec(args []string) int {
	s.t.Helper()
	if len(args) == 0 || args[0] != "daybook" {
		s.fatal("only daybook can be run")
	}
	program, err := os.Executable()
	if err != nil {
		s.fatal("%v", err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), program, args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &out, &errs
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	err = cmd.Run()
	s.stdout, s.stderr = out.String(), errs.String()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.fatal("%v", err)
	}
	return cmd.ProcessState.ExitCode()
}

// text returns what the last command wrote, or a file.
func (s *script) text(name string) string {
	s.t.Helper()
	switch name {
	case "stdout":
		return s.stdout
	case "stderr":
		return s.stderr
	}
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.fatal("%v", err)
	}
	return string(b)
}

// unpack splits an archive into the commands at its head and the files behind "-- name --" lines.
func unpack(text string) (commands string, files map[string]string) {
	files = map[string]string{}
	name, into := "", &strings.Builder{}
	end := func() {
		if name == "" {
			commands = into.String()
		} else {
			files[name] = into.String()
		}
	}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(rest, " --\n") {
			end()
			name, into = strings.TrimSuffix(rest, " --\n"), &strings.Builder{}
			continue
		}
		into.WriteString(line)
	}
	end()
	return commands, files
}

// split splits a line at spaces. Single quotes hold words together; two of them within quotes are one. A # begins a
// comment.
func split(line string) (words []string) {
	word, inWord, quoted := strings.Builder{}, false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\'' && i+1 < len(line) && line[i+1] == '\'':
			word.WriteByte(c)
			i++
		case c == '\'':
			quoted, inWord = !quoted, true
		case !quoted && c == '#' && !inWord:
			return words
		case !quoted && c == ' ':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}
