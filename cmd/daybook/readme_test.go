package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A block of the README that is preceded by this mark is run, and what it prints is compared with the lines behind "#>".
const runMark = "<!-- run -->\n```sh\n"

// TestDocumentsAreTrue runs the marked blocks of each document in one shell and one empty directory, one after the other.
// Lines behind "#>" are what the commands before them print, on either stream; times, dates and sizes may differ, and
// "…" stands for anything. A Chinese page, whose blocks are those of the English one, is followed by who has a Chinese system:
// every command ends, and every wait.
func TestDocumentsAreTrue(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, p := range pages(t) {
		for _, name := range p {
			parts := readmeParts(page(t, name))
			if len(parts) == 0 {
				continue
			}
			ran++
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				isTrue(t, name, parts)
			})
		}
	}
	if ran < 4 {
		t.Errorf("only %d documents have blocks to run", ran)
	}
}

// isTrue runs the parts of a document. Where they say 127.0.0.1:7070, they get a port that is free here.
func isTrue(t *testing.T, name string, parts []part) {
	t.Helper()
	port := strconv.Itoa(freePort(t))
	for i := range parts {
		parts[i].commands = strings.ReplaceAll(parts[i].commands, "127.0.0.1:7070", "127.0.0.1:"+port)
	}
	var script strings.Builder
	script.WriteString("trap 'test -z \"$!\" || { kill $!; wait $!; } 2>/dev/null' EXIT\nexec 2>&1\n") // whatever happens, what it started ends with it
	for _, p := range parts {
		script.WriteString(p.commands + "\nprintf '\\036'\n")
	}
	var env []string
	if chinese(name) {
		env = append(env, "LANG=zh_CN.UTF-8")
	}
	got := strings.Split(shell(t, script.String(), env...), "\036")
	if len(got) != len(parts)+1 {
		t.Fatalf("%d parts ended of %d:\n%s", len(got)-1, len(parts), strings.Join(got, ""))
	}
	for i, p := range parts {
		if !chinese(name) && p.prints != "" && !printed(p.prints).MatchString(stable(got[i])) {
			t.Errorf("%s\nprinted\n%s\n%s says\n%s", p.commands, got[i], name, p.prints)
		}
	}
}

// TestTheReadmeShowsTheDemo plays the demo and looks for each line that the README shows of it. How often the schedule
// knocked meanwhile differs.
func TestTheReadmeShowsTheDemo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it plays the demo")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "<!-- demo -->\n```text\n")
	block, _, closed := strings.Cut(block, "\n```")
	if !ok || !closed {
		t.Fatal("README.md shows no demo")
	}
	got := knocks.ReplaceAllString(stable(shell(t, "exec 2>&1\ndaybook demo --fast")), "Triggers ∗")
	for line := range strings.Lines(block) {
		if line = knocks.ReplaceAllString(stable(line), "Triggers ∗"); !strings.Contains(got, line) {
			t.Errorf("the demo does not print %q:\n%s", line, got)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

var knocks = regexp.MustCompile(`Triggers \d+`)

// part is some commands and what the README says they print; empty: nothing is said.
type part struct{ commands, prints string }

func readmeParts(text string) (parts []part) {
	for _, block := range strings.Split(text, runMark)[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		var p part
		for _, line := range strings.Split(block, "\n") {
			if said, ok := strings.CutPrefix(line, "#>"); ok {
				p.prints += strings.TrimPrefix(said, " ") + "\n"
				continue
			}
			if p.prints != "" {
				parts, p = append(parts, p), part{}
			}
			p.commands += line + "\n"
		}
		parts = append(parts, p)
	}
	return parts
}

// shell runs a script in an empty directory, where the program is daybook.
func shell(t *testing.T, script string, env ...string) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, dir, home := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "daybook")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "USER=me", "TZ=UTC", asProgram + "=1"}
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

var unstable = regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?|\d{4}-\d\d-\d\d|\d{4}-W\d\d|\d\d:\d\d(:\d\d)?|[+-]\d\d:\d\d|\b\d+(\.\d+)? (ms|s|KiB|MiB)\b|  +`)

// stable replaces what differs from day to day, an instant with its date as one without: whether it is told depends on the hour; and the space that only lays out.
func stable(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			lines = append(lines, line)
		}
	}
	return unstable.ReplaceAllStringFunc(strings.Join(lines, "\n"), func(m string) string {
		if strings.TrimSpace(m) == "" {
			return "  "
		}
		return "∗"
	})
}

func printed(said string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(stable(said))
	return regexp.MustCompile(`(?s)^` + strings.ReplaceAll(pattern, "…", ".*") + `$`)
}
