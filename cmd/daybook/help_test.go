package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpOfWhatIsNotThere: a call for help about nothing is an error, as the call itself would be.
func TestHelpOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    []string
		message string
	}{
		{[]string{"zone", "--help"}, `unknown command "zone" for "daybook"`},
		{[]string{"schedule", "fire", "--help"}, "did you mean daybook schedule fires?"},
		{[]string{"help", "zone"}, `unknown command "zone" for "daybook"`},
		{[]string{"help", "job", "lst"}, "did you mean daybook job list?"},
		{[]string{"help", "check", "x"}, `"x" is one argument too many`},
		{[]string{"check", "--help", "--lang", "de"}, `"de" is not known`},
	} {
		r := call(t, nil, c.args...)
		if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, c.message) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	for _, args := range [][]string{{"help"}, {"--help"}, {"help", "job"}, {"job", "trigger", "--help"}, {"help", "job", "trigger"}, {"job", "trigger", "renew", "--help"}} {
		if r := call(t, nil, args...); r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, "Usage:") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// How a command is written is said in the language of the reader, but for what is typed.
func TestUsageInChinese(t *testing.T) {
	t.Parallel()
	zh := map[string]string{"DAYBOOK_LANG": "zh-CN"}
	for line, want := range map[string]string{
		"run show --help": "用法：\n  daybook run show KEY [选项]\n", "run --help": "\n  daybook run [命令]\n", "once --help": "daybook once --job J [选项] -- COMMAND…\n",
	} {
		if r := call(t, zh, strings.Fields(line)...); r.code != 0 || !strings.Contains(r.stdout, want) || strings.Contains(r.stdout, "[flags]") || strings.Contains(r.stdout, "[command]") {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if r := call(t, zh, "run", "show"); r.code != 2 || !strings.Contains(r.stderr, "daybook run show KEY [选项]") {
		t.Errorf("%+v", r)
	}
	if r := call(t, nil, "run", "show", "--help"); !strings.Contains(r.stdout, "Usage:\n  daybook run show KEY [flags]\n") {
		t.Errorf("%+v", r)
	}
}

// TestWhatALaterVersionBrings is answered where somebody would look for it, and is offered nowhere.
func TestWhatALaterVersionBrings(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"checkpoint get", "progress 1/2", "limit gateway", "backfill plan renew --from 2026-01-01",
		"reconcile run", "diff replay 1", "accept --days 30", "audit --example", "outbox list", "heartbeat add x --every 24h",
		"export differences",
		"backfill --help", "help backfill plan"} {
		r := call(t, nil, strings.Fields(line)...)
		message, hint, _ := strings.Cut(r.stderr, "\n  → ")
		if r.code != 2 || r.stdout != "" || !strings.HasSuffix(message, "is not available in this version") || hint == "" {
			t.Errorf("%s: %+v", line, r)
		}
	}
	offered := call(t, nil).stdout + call(t, nil, "__complete", "").stdout + call(t, nil, "backfil").stderr
	if word := regexp.MustCompile(`(?m)^ *(backfill|outbox)\b`).FindString(offered); word != "" || strings.Contains(offered, "did you mean daybook backfill") {
		t.Errorf("offered: %q\n%s", word, offered)
	}
}

// TestEachCommandOnce: no command or flag stands twice, each has its words, and no flag is left to a shell that would
// offer files for it.
func TestEachCommandOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if seen[cmd.CommandPath()] {
			t.Errorf("%s stands twice", cmd.CommandPath())
		}
		seen[cmd.CommandPath()] = true
		if cmd.Short == "" && !isLater(cmd) {
			t.Errorf("%s says nothing", cmd.CommandPath())
		}
		// Who writes can be asked what it would do. serve, once, steps and the demo run things: that is no act on the ledger.
		if words := strings.Fields(cmd.CommandPath()); !slices.Contains([]string{"import", "export"}, words[min(1, len(words)-1)]) && cmd.Flags().Lookup("dry-run") == nil && !cmd.HasSubCommands() && !isLater(cmd) &&
			!slices.Contains([]string{"status", "list", "show", "logs", "watch", "find", "next", "fires", "info", "check", "doctor", "version", "help", "completion",
				"serve", "once", "step", "effect", "demo", "demo-gateway", "demo-shop"}, words[len(words)-1]) {
			t.Errorf("%s has no --dry-run", cmd.CommandPath())
		}
		if cmd.ValidArgsFunction == nil && !slices.Contains(fileArgs, cmd.CommandPath()) {
			t.Errorf("%s offers files", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk((&app{}).root())
	if len(seen) < 50 {
		t.Errorf("%d commands", len(seen))
	}
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--json"}} {
		a, b := call(t, nil, append([]string{"--version"}, more...)...), call(t, nil, append([]string{"version"}, more...)...)
		if a != b || a.code != 0 || a.stdout == "" {
			t.Errorf("%+v, %+v", a, b)
		}
	}
}

// TestCompletionScripts: each shell gets one, bash finds no fault in its own, and it asks this program.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, s := range shells {
		r := call(t, nil, "completion", s.name)
		if r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, "__complete") || !strings.Contains(r.stdout, "daybook") {
			t.Errorf("%s: exit %d, %s", s.name, r.code, r.stderr)
		}
		shell, err := exec.LookPath(s.name)
		if err != nil || s.name != "bash" {
			continue
		}
		cmd := exec.CommandContext(t.Context(), shell, "-n")
		cmd.Stdin = strings.NewReader(r.stdout)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if r := call(t, nil, "completion", "bsh"); r.code != 2 || !strings.Contains(r.stderr, "did you mean bash?") {
		t.Errorf("%+v", r)
	}
}

// TestManPages: one for each command, all text, with every flag, and nothing that the formatter would take for itself.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if r := call(t, nil, "man", dir, "-n"); r.code != 0 || !strings.Contains(r.stdout, "daybook-job-trigger.1\n") || !strings.Contains(r.stderr, "dry run") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a dry run has written")
	}
	r := call(t, nil, "man", dir, "--json")
	var j manJSON
	if err := json.Unmarshal([]byte(r.stdout), &j); err != nil || r.code != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	cmds := tree((&app{}).root())
	if len(j.Pages) != len(cmds) {
		t.Fatalf("%d pages of %d commands", len(j.Pages), len(cmds))
	}
	request := regexp.MustCompile(`^\.(TH|SH|PP|TP|B|EX|EE|nh)\b`)
	for i, cmd := range cmds {
		b, err := os.ReadFile(filepath.Join(dir, j.Pages[i]))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !request.MatchString(line) {
				t.Errorf("%s: a request that is none: %s", j.Pages[i], line)
			}
		}
		if !strings.Contains(string(b), roff(cmd.Short)) || !strings.Contains(string(b), `\-\-json`) || strings.Contains(string(b), "backfill plan") {
			t.Errorf("%s:\n%s", j.Pages[i], b)
		}
	}
	root, err := os.ReadFile(filepath.Join(dir, "daybook.1"))
	if err != nil || !strings.Contains(string(root), "DAYBOOK_CONFIG") || !strings.Contains(string(root), `.B "75"`) {
		t.Errorf("%v\n%s", err, root)
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	if got := roff(".a\\b\n'c -d"); got != "\\&.a\\eb\n\\(aqc \\-d" {
		t.Errorf("%q", got)
	}
	if got := paragraphs("a\n\nb"); got != "a\n.PP\nb\n" {
		t.Errorf("%q", got)
	}
}
