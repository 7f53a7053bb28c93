package runner

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

var (
	_ daybook.Runner   = (*Exec)(nil)
	_ daybook.Prober   = (*Exec)(nil)
	_ daybook.Survivor = (*Exec)(nil)
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for code, result := range map[int]daybook.Result{
		0: daybook.ResultDone, 1: daybook.ResultUnclear, 2: daybook.ResultUnclear, 3: daybook.ResultUnclear,
		42: daybook.ResultPermanent, // named by the job
		64: daybook.ResultPermanent, 65: daybook.ResultPermanent, 66: daybook.ResultPermanent, 67: daybook.ResultUnclear,
		74: daybook.ResultUnclear, 75: daybook.ResultNotDone, 76: daybook.ResultUnclear,
		77: daybook.ResultPermanent, 78: daybook.ResultPermanent, 79: daybook.ResultUnclear,
		125: daybook.ResultUnclear, 126: daybook.ResultUnclear, 127: daybook.ResultUnclear, 137: daybook.ResultUnclear, 255: daybook.ResultUnclear,
	} {
		o := order(t, fmt.Sprintf("echo first; echo the last line; echo; exit %d", code))
		o.Job.Retry.PermanentExit = []int{42}
		out := run(t, o)
		if result == daybook.ResultDone {
			want(t, out, result, "")
		} else {
			want(t, out, result, fmt.Sprintf("exit %d: the last line", code))
		}
		if out.Detail != "exit "+strconv.Itoa(code) || out.Output.Text != "first\nthe last line\n\n" {
			t.Errorf("exit %d: detail %q, output %q", code, out.Detail, out.Output.Text)
		}
	}
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), "#!/bin/sh\n", 0o644)
	program(t, filepath.Join(dir, "lost"), "#!/no/such/interpreter\n")
	program(t, filepath.Join(dir, "noexec"), "this is no program\n")
	for _, c := range []struct {
		name string
		argv []string
		with func(*daybook.Job)
		text string
	}{
		{"not in PATH", []string{"no-such-program", "x"}, nil, `could not start "no-such-program": not found in PATH`},
		{"no such file", []string{"/no/such/program", "x"}, nil, `could not start "/no/such/program": no such file or directory`},
		{"not executable", []string{filepath.Join(dir, "plain"), "x"}, nil, "permission denied"},
		{"not executable in PATH", []string{"plain", "x"}, func(j *daybook.Job) { j.Env = map[string]string{"PATH": dir} }, "is not executable"},
		{"interpreter", []string{filepath.Join(dir, "lost"), "x"}, nil, "interpreter"},
		{"no program", []string{filepath.Join(dir, "noexec"), "x"}, nil, "exec format error"},
		{"a directory", []string{dir, "x"}, nil, "permission denied"},
		{"no dir", []string{"true", "x"}, func(j *daybook.Job) { j.Dir = filepath.Join(dir, "none") }, "does not exist"},
		{"dir is a file", []string{"true", "x"}, func(j *daybook.Job) { j.Dir = filepath.Join(dir, "plain") }, "is not a directory"},
		{"no user", []string{"true", "x"}, func(j *daybook.Job) { j.User = "no-such-user" }, `user "no-such-user" does not exist`},
		{"nothing", nil, nil, "the command is empty"},
		{"NUL", []string{"true", "a\x00b"}, nil, "invalid argument"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := order(t, c.argv...)
			if c.with != nil {
				c.with(o.Job)
			}
			out := run(t, o)
			want(t, out, daybook.ResultPermanent, c.text)
			if out.Detail != "not started" {
				t.Errorf("detail %q", out.Detail)
			}
		})
	}
}

func TestRelativeProgramIsFoundInDir(t *testing.T) {
	t.Parallel()
	o := order(t, "./report", "--week", "{window}")
	o.Job.Dir = t.TempDir()
	program(t, filepath.Join(o.Job.Dir, "report"), "#!/bin/sh\necho \"$0 $* $PWD\"\n")
	out := run(t, o)
	want(t, out, daybook.ResultDone, "")
	if got := out.Output.Text; got != "./report --week 2026-10-26 "+o.Job.Dir+"\n" {
		t.Errorf("output %q", got)
	}
}

func TestNotBegunWhenAlreadyCancelled(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{daybook.ErrShutdown, daybook.ErrTimeout} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		out := quick().Run(ctx, order(t, "touch /no/such/file"))
		want(t, out, daybook.ResultNotDone, "not begun")
		if out.Interrupted != (cause == daybook.ErrShutdown) {
			t.Errorf("%v: interrupted %v", cause, out.Interrupted)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("DAYBOOK_WIRE_KEY", "of an outer attempt")
	t.Setenv("DAYBOOK_TOKEN", "of an outer attempt")
	t.Setenv("FROM_DAYBOOK", "yes")
	t.Setenv("OVERRIDDEN", "by the process")
	o := order(t, `env | grep -v '^DAYBOOK_TEST_' | grep -E '^(DAYBOOK_|FROM_|OVERRIDDEN|SECRET)' | sort; cat "$DAYBOOK_PAYLOAD_FILE"`)
	o.Run.Input = []byte(`{"cents":1500}`)
	o.Job.Env = map[string]string{"OVERRIDDEN": "by the job", "DAYBOOK_KEY": "forged", "SECRET": "file:/run/secret"}
	o.Env = map[string]string{"SECRET": "resolved"}
	want(t, run(t, o), daybook.ResultDone, "")
	expect := func(wireKey string) string {
		lines := []string{
			"DAYBOOK_ATTEMPT=2", "DAYBOOK_BUSINESS_DATE=2026-10-26", "DAYBOOK_FENCE=7", "DAYBOOK_JOB=renew",
			"DAYBOOK_KEY=renew:2026-10-26/sub_07", "DAYBOOK_PAYLOAD_FILE=" + filepath.Join(o.Dir, "payload"),
			"DAYBOOK_RESULT_FILE=" + filepath.Join(o.Dir, "result"), "DAYBOOK_SUBJECT=sub_07", "DAYBOOK_TRIGGER=schedule",
			"DAYBOOK_WINDOW=2026-10-26", "DAYBOOK_WINDOW_END=2026-10-26T16:00:00Z", "DAYBOOK_WINDOW_START=2026-10-25T16:00:00Z",
			"FROM_DAYBOOK=yes", "OVERRIDDEN=by the job", "SECRET=resolved",
		}
		if wireKey != "" {
			lines = append(lines, "DAYBOOK_WIRE_KEY="+wireKey)
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n") + "\n" + string(o.Run.Input)
	}
	for _, wireKey := range []string{"renew:2026-10-26/sub_07#run@2", ""} {
		o.WireKey = wireKey
		if got := run(t, o).Output.Text; sorted(got) != sorted(expect(wireKey)) {
			t.Errorf("got\n%s\nwant\n%s", got, expect(wireKey))
		}
	}
}

// sorted puts lines in one order, whatever the locale of sort(1).
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestNoPayloadFileWithoutPayload(t *testing.T) {
	t.Parallel()
	if got := run(t, order(t, `echo "${DAYBOOK_PAYLOAD_FILE-absent}"`)).Output.Text; got != "absent\n" {
		t.Errorf("got %q", got)
	}
}

func TestPlaceholdersInArgumentsOnly(t *testing.T) {
	t.Parallel()
	o := order(t, "printf", `%s\n`, "{key}|{wire_key}|{job}", "{date}", "{window_start}/{window_end}", "{subject}", "{print} ${job} {}{", "$(id)")
	o.WireKey = "{job}" // what is put in is not looked at again
	got := run(t, o).Output.Text
	const lines = "renew:2026-10-26/sub_07|{job}|renew\n2026-10-26\n2026-10-25T16:00:00Z/2026-10-26T16:00:00Z\nsub_07\n{print} ${job} {}{\n$(id)\n"
	if got != lines {
		t.Errorf("got %q, want %q", got, lines)
	}
	if got := run(t, order(t, "echo '{job}'")).Output.Text; got != "{job}\n" {
		t.Errorf("the text of a shell was changed: %q", got)
	}
}

func TestStdin(t *testing.T) {
	t.Parallel()
	o := order(t, "cat")
	o.Job.Stdin = "To: ops\n\nall is well\n"
	if got := run(t, o).Output.Text; got != o.Job.Stdin {
		t.Errorf("got %q", got)
	}
	if got := run(t, order(t, "cat; echo empty")).Output.Text; got != "empty\n" {
		t.Errorf("without stdin: %q", got)
	}
	o = order(t, "exit 0") // reads none of it
	o.Job.Stdin = strings.Repeat("x", 1<<20)
	want(t, run(t, o), daybook.ResultDone, "")
}

func TestUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		o := order(t, "true")
		o.Job.User = "root"
		want(t, run(t, o), daybook.ResultPermanent, "only root")
		t.Skip("the rest needs root")
	}
	o := order(t, `id -un; echo "$HOME $USER $LOGNAME"; cat "$DAYBOOK_PAYLOAD_FILE"; echo '{"result":"mine"}' > "$DAYBOOK_RESULT_FILE"; touch "${DAYBOOK_RESULT_FILE%result}lock" "${DAYBOOK_RESULT_FILE%result}new"`)
	o.Job.User = "nobody"
	o.Run.Input = []byte("{}\n")
	for d := filepath.Dir(o.Dir); len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := run(t, o)
	lines := strings.Split(out.Output.Text, "\n")
	if lines[0] != "nobody" || !strings.HasSuffix(lines[1], "nobody nobody") || strings.HasPrefix(lines[1], "/root") || lines[2] != "{}" {
		t.Errorf("output %q", out.Output.Text)
	}
	if strings.Count(out.Output.Text, "ermission denied") != 2 || string(out.Data) != `"mine"` {
		t.Errorf("the user may write its result and nothing else: %q, data %s", out.Output.Text, out.Data)
	}
}

func TestResultFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		result       daybook.Result
		errorText    string
		detail       string
	}{
		{"none", `exit 3`, daybook.ResultUnclear, "exit 3", "exit 3"},
		{"empty", `: > "$R"; exit 75`, daybook.ResultNotDone, "exit 75", "exit 75"},
		{"outcome wins over the code", `echo '{"outcome":"done"}' > "$R"; exit 1`, daybook.ResultDone, "", "exit 1"},
		{"and over code 0", `echo '{"outcome":"not_done"}' > "$R"`, daybook.ResultNotDone, "reported not_done (exit 0)", "exit 0"},
		{"unknown", `echo '{"outcome":"unknown","message":"504"}' > "$R"`, daybook.ResultUnknown, "reported unknown (exit 0): 504", "exit 0"},
		{"no outcome", `echo '{"message":"no such card"}' > "$R"; exit 65`, daybook.ResultPermanent, "exit 65: no such card", "exit 65"},
		{"message of success", `echo '{"message":"sent 20"}' > "$R"`, daybook.ResultDone, "", "exit 0: sent 20"},
		{"killed after the report", `echo '{"outcome":"done"}' > "$R"; kill -9 $$`, daybook.ResultDone, "", "signal killed"},
		{"killed within the report", `printf '{"outcome":"done"' > "$R"; kill -9 $$`, daybook.ResultUnknown, "signal killed; the report is cut off", "signal killed"},
		{"broken, code 0", `echo 'outcome: not_done' > "$R"`, daybook.ResultDone, "", "exit 0; the report is not a JSON object"},
		{"broken, code 3", `echo '[]' > "$R"; echo oops; exit 3`, daybook.ResultUnclear, "exit 3: oops; the report is not a JSON object", "exit 3"},
		{"unknown word", `echo '{"outcome":"ok"}' > "$R"; exit 75`, daybook.ResultNotDone, `exit 75; outcome "ok" is not one of`, "exit 75"},
		{"word of ours", `echo '{"outcome":"lost"}' > "$R"; exit 75`, daybook.ResultNotDone, `outcome "lost"`, "exit 75"},
		{"a slip", `echo '{"outcom":"not_done"}' > "$R"; exit 1`, daybook.ResultUnclear, `did you mean "outcome"`, "exit 1"},
		{"too big", `head -c 70000 /dev/zero | tr '\0' x > "$R"; exit 75`, daybook.ResultNotDone, "more than 65536 bytes", "exit 75"},
		{"a link", `ln -s /etc/passwd "$R"; exit 75`, daybook.ResultNotDone, "cannot be read", "exit 75"},
		{"a pipe", `mkfifo "$R"; exit 75`, daybook.ResultNotDone, "not a plain file", "exit 75"},
		{"a directory", `mkdir "$R"; exit 75`, daybook.ResultNotDone, "not a plain file", "exit 75"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := run(t, order(t, `R="$DAYBOOK_RESULT_FILE"; `+c.script))
			want(t, out, c.result, c.errorText)
			if out.Detail != c.detail {
				t.Errorf("detail %q, want %q", out.Detail, c.detail)
			}
		})
	}
	out := run(t, order(t, `echo '{"outcome":"not_done","retry_after":"90s","effects":{"charges":20},"amount":{"USD":"300.00"},"result":{ "id": 1 },"message":"later"}' > "$DAYBOOK_RESULT_FILE"`))
	want(t, out, daybook.ResultNotDone, "reported not_done (exit 0): later")
	if out.RetryAfter != 90*time.Second || out.Counts["charges"] != 20 || string(out.Data) != `{"id":1}` {
		t.Errorf("got %+v", out)
	}
}

func TestOldResultIsNotTakenForANewOne(t *testing.T) {
	t.Parallel()
	o := order(t, `echo '{"outcome":"done"}' > "$DAYBOOK_RESULT_FILE"`)
	want(t, run(t, o), daybook.ResultDone, "")
	o.Job.Command.Shell = "kill -9 $$"
	want(t, run(t, o), daybook.ResultUnknown, "signal killed")
}

func TestWithoutDirNothingIsLeft(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	o := order(t, `cat "$DAYBOOK_PAYLOAD_FILE"; echo '{"result":1}' > "$DAYBOOK_RESULT_FILE"`)
	o.Dir, o.Run.Input = "", []byte(`{"a":1}`)
	out := run(t, o)
	want(t, out, daybook.ResultDone, "")
	left, _ := os.ReadDir(temp)
	if out.Output.Text != `{"a":1}` || string(out.Data) != "1" || len(left) > 0 {
		t.Errorf("output %q, data %s, left %v", out.Output.Text, out.Data, left)
	}
}

func TestH49NULInOutput(t *testing.T) {
	t.Parallel()
	out := run(t, order(t, `printf 'a\000b'`))
	want(t, out, daybook.ResultDone, "")
	if out.Output.Text != "a\uFFFDb" {
		t.Errorf("output %q", out.Output.Text)
	}
}

func TestH51TimeoutWithGrandchild(t *testing.T) {
	t.Parallel()
	timeout := 3 * time.Second
	if testing.Short() {
		timeout = 300 * time.Millisecond
	}
	limit, stop := context.WithTimeout(t.Context(), timeout+5*time.Second)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, daybook.ErrTimeout)
	defer cancel()
	o := order(t, "sh", "-c", "echo before; sleep 30 & sleep 20")
	out := (&Exec{}).Run(ctx, o) // with the grace and drain of a real one
	if limit.Err() != nil {
		t.Error("not ended 5 s after the timeout")
	}
	want(t, out, daybook.ResultUnknown, "timed out: signal terminated: before")
	if out.Output.Text != "before\n" || out.Interrupted {
		t.Errorf("got %+v", out)
	}
	wantGroupGone(t, o)
}

func TestH52TermBeforeKill(t *testing.T) {
	t.Parallel()
	const script = `trap 'echo cleaned up; exit %d' TERM; sleep 60 & touch ready; wait`
	for _, c := range []struct {
		code        int
		cause       error
		result      daybook.Result
		text        string
		interrupted bool
	}{
		{75, daybook.ErrShutdown, daybook.ResultNotDone, "daybook is stopping: exit 75: cleaned up", true},
		{0, daybook.ErrShutdown, daybook.ResultDone, "", true},
		{1, daybook.ErrShutdown, daybook.ResultUnclear, "daybook is stopping: exit 1: cleaned up", true},
		{75, daybook.ErrTimeout, daybook.ResultNotDone, "timed out: exit 75", false},
		{65, daybook.ErrCancelled, daybook.ResultPermanent, "cancelled by a person: exit 65", false},
		{75, daybook.ErrLeaseLost, daybook.ResultNotDone, "the lease was lost: exit 75", false},
	} {
		o := order(t, fmt.Sprintf(script, c.code))
		out := during(t, &Exec{}, o, c.cause)
		want(t, out, c.result, c.text)
		if out.Interrupted != c.interrupted || !strings.Contains(out.Output.Text, "cleaned up\n") { // beside the shell's own "Terminated"
			t.Errorf("%d, %v: got %+v", c.code, c.cause, out)
		}
		wantGroupGone(t, o)
	}
}

func TestH52KillAfterGrace(t *testing.T) {
	t.Parallel()
	o := order(t, `trap '' TERM; touch ready; sleep 60`)
	out := during(t, quick(), o, daybook.ErrShutdown)
	want(t, out, daybook.ResultUnknown, "daybook is stopping: signal killed")
	if !out.Interrupted {
		t.Error("not marked as interrupted")
	}
	wantGroupGone(t, o)
}

func TestTermAloneIsUnknown(t *testing.T) {
	t.Parallel()
	o := order(t, `touch ready; exec sleep 60`)
	out := during(t, &Exec{}, o, daybook.ErrShutdown)
	want(t, out, daybook.ResultUnknown, "daybook is stopping: signal terminated")
}

func TestStoppedCommandIsEnded(t *testing.T) {
	t.Parallel()
	o := order(t, `touch ready; kill -STOP $$`)
	out := during(t, &Exec{}, o, daybook.ErrTimeout)
	want(t, out, daybook.ResultUnknown, "timed out: signal terminated")
}

func TestWholeGroupIsEndedWithItsLeader(t *testing.T) {
	t.Parallel()
	// The leader reports at once; its child ignores TERM.
	o := order(t, `sh -c 'trap "" TERM; touch ready; sleep 60' & trap 'exit 75' TERM; wait`)
	out := during(t, quick(), o, daybook.ErrCancelled)
	want(t, out, daybook.ResultNotDone, "cancelled by a person: exit 75")
	wantGroupGone(t, o)
}

func TestReportOfAKilledCommand(t *testing.T) {
	t.Parallel()
	o := order(t, `trap '' TERM; echo '{"outcome":"done","effects":{"charges":1}}' > "$DAYBOOK_RESULT_FILE"; touch ready; sleep 60`)
	out := during(t, quick(), o, daybook.ErrTimeout)
	want(t, out, daybook.ResultDone, "")
	if out.Counts["charges"] != 1 || out.Detail != "signal killed after being asked to end: timed out" {
		t.Errorf("got %+v", out)
	}
}

// A command that says it is done while a step that it came to had no answer went on without that step.
func TestAStepThatHadNoAnswer(t *testing.T) {
	t.Parallel()
	const asks = `printf 'effect charge' > "$(dirname "$DAYBOOK_RESULT_FILE")/unbegun-charge.txt"; `
	const missing = "effect charge did not begin: the ledger did not answer"
	want(t, run(t, order(t, asks)), daybook.ResultNotDone, missing)
	want(t, run(t, order(t, asks+`echo '{"outcome":"done"}' > "$DAYBOOK_RESULT_FILE"`)), daybook.ResultNotDone, missing)
	want(t, run(t, order(t, asks+"exit 65")), daybook.ResultPermanent, "exit 65")
	want(t, run(t, order(t, asks+`rm "$(dirname "$DAYBOOK_RESULT_FILE")"/unbegun-*`)), daybook.ResultDone, "")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, resultFile), []byte(`{"outcome":"done"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, ok := new(Exec).Report(dir); !ok || out.Result != daybook.ResultDone {
		t.Errorf("%+v", out)
	}
	if err := KeepUnbegun(dir, "charge", "effect charge"); err != nil {
		t.Fatal(err)
	}
	if out, ok := new(Exec).Report(dir); !ok || out.Result != daybook.ResultNotDone || out.Error != missing {
		t.Errorf("of a survivor: %+v", out)
	}
	ForgetUnbegun(dir, "charge")
	if out, _ := new(Exec).Report(dir); out.Result != daybook.ResultDone {
		t.Errorf("answered: %+v", out)
	}
}

func TestH53PipeHidesExitCode(t *testing.T) {
	t.Parallel()
	want(t, run(t, order(t, "false | cat")), daybook.ResultDone, "") // documented at Exec
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	want(t, run(t, order(t, bash, "-o", "pipefail", "-c", "false | cat")), daybook.ResultUnclear, "exit 1")
}

func TestH54HugeOutput(t *testing.T) {
	n := 1_000_000_000
	if testing.Short() || flag.Lookup("test.count").Value.String() != "1" {
		n = 50_000_000
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := run(t, order(t, fmt.Sprintf("yes | head -c %d", n)))
	runtime.ReadMemStats(&after)
	want(t, out, daybook.ResultDone, "")
	// Everything ever allocated, freed or not.
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("allocated %d bytes", got)
	}
	wantShortened(t, out.Output, int64(n))
}

func wantShortened(t *testing.T, out daybook.Output, n int64) {
	t.Helper()
	if len(out.Text) > daybook.MaxOutputBytes || len(out.Text) < daybook.MaxOutputBytes-2*markRoom {
		t.Errorf("kept %d bytes", len(out.Text))
	}
	mark := fmt.Sprintf("[... %d bytes omitted ...]\n", out.Omitted)
	head, tail, ok := strings.Cut(out.Text, mark)
	head = strings.TrimSuffix(head, "\n")
	if !ok || strings.HasSuffix(head, "y") { // the head ends in the middle of "y\n" or after it
		head += "\n"
	}
	if diff := int64(len(head)+len(tail)) + out.Omitted - n; !ok || diff < -1 || diff > 1 {
		t.Errorf("mark found: %v, head %d + tail %d + omitted %d, of %d", ok, len(head), len(tail), out.Omitted, n)
	}
}

func TestOutputWithoutNewline(t *testing.T) {
	t.Parallel()
	out := run(t, order(t, "head -c 20000000 /dev/zero | tr '\\0' x; exit 3"))
	want(t, out, daybook.ResultUnclear, "exit 3: xxx")
	if len(out.Output.Text) > daybook.MaxOutputBytes || len(out.Error) > daybook.MaxErrorBytes || out.Output.Omitted < 19_900_000 {
		t.Errorf("text %d bytes, error %d bytes, omitted %d", len(out.Output.Text), len(out.Error), out.Output.Omitted)
	}
}

func TestBinaryOutputStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	out := run(t, order(t, "head -c 300000 /dev/urandom"))
	want(t, out, daybook.ResultDone, "")
	if len(out.Output.Text) > daybook.MaxOutputBytes || !utf8.ValidString(out.Output.Text) {
		t.Errorf("text of %d bytes, valid %v", len(out.Output.Text), utf8.ValidString(out.Output.Text))
	}
}

func TestChildrenOutliveANormalEnd(t *testing.T) {
	t.Parallel()
	o := order(t, "echo ok; sleep 60 &")
	e := quick()
	out := e.Run(t.Context(), o)
	want(t, out, daybook.ResultDone, "")
	if out.Detail != "exit 0, a child kept the output open" || out.Output.Text != "ok\n" {
		t.Errorf("got %+v", out)
	}
	if alive, known := e.Alive(o.Dir); !alive || !known {
		t.Errorf("the child was ended: alive %v, known %v", alive, known)
	}
	m, _ := readMeta(o.Dir)
	_ = syscall.Kill(-m.Pgid, syscall.SIGKILL)
	wantGroupGone(t, o)
}

// Not parallel: it counts what the whole process has open.
func TestNothingLeaks(t *testing.T) {
	count := func() (files, routines int) {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries), runtime.NumGoroutine()
	}
	round := func() {
		o := order(t, "cat; sleep 60 & exit 3") // a child holds the output
		o.Job.Stdin = strings.Repeat("x", 1<<20)
		e := &Exec{Grace: time.Millisecond, Drain: time.Millisecond}
		e.Run(t.Context(), o)
		m, _ := readMeta(o.Dir)
		_ = syscall.Kill(-m.Pgid, syscall.SIGKILL)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		e.Run(ctx, order(t, "sleep 60"))
		o = order(t, "/no/such/program", "x")
		o.Job.Stdin, o.Job.Probe = "x", daybook.Command{Argv: []string{"false"}}
		e.Run(t.Context(), o)
		e.Probe(t.Context(), o, "k")
	}
	round()
	files, routines := count()
	for range 5 {
		round()
	}
	eventually(t, "everything to be closed", func() bool {
		f, r := count()
		return f <= files && r <= routines
	})
}

func TestProbe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		probe  daybook.Command
		answer daybook.Answer
		data   string
		text   string
	}{
		{"yes, JSON", shell(`echo '{ "id": "ch_9a1" }'; echo noise >&2`), daybook.Yes, `{"id":"ch_9a1"}`, ""},
		{"yes, text", shell(`echo "$DAYBOOK_WIRE_KEY"`), daybook.Yes, `"renew:2026-10-26/sub_07#charge"`, ""},
		{"yes, nothing", shell(`true`), daybook.Yes, "", ""},
		{"yes, placeholder", daybook.Command{Argv: []string{"echo", "{wire_key}!"}}, daybook.Yes, `"renew:2026-10-26/sub_07#charge!"`, ""},
		{"yes, payload", shell(`cat "$DAYBOOK_PAYLOAD_FILE"`), daybook.Yes, `{"cents":1500}`, ""},
		{"yes, NUL", shell(`printf 'a\000b'`), daybook.Yes, "\"a\uFFFDb\"", ""},
		{"no", shell(`echo '{"id":1}'; exit 1`), daybook.No, "", ""},
		{"cannot tell", shell(`echo looking >&2; echo no route >&2; exit 2`), daybook.CannotTell, "", "exit 2: no route"},
		{"not found by the shell", shell(`no-such-program-of-ours`), daybook.CannotTell, "", "exit 127"},
		{"killed", shell(`kill -9 $$`), daybook.CannotTell, "", "signal killed"},
		{"not started", daybook.Command{Argv: []string{"/no/such/probe"}}, daybook.CannotTell, "", "could not start"},
		{"none", daybook.Command{}, daybook.CannotTell, "", "has no probe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := order(t, "true")
			o.Job.Probe, o.Run.Input, o.WireKey = c.probe, []byte(`{"cents":1500}`), ""
			got := quick().Probe(t.Context(), o, "renew:2026-10-26/sub_07#charge")
			if got.Answer != c.answer || string(got.Data) != c.data || !strings.Contains(got.Error, c.text) || c.text == "" && got.Error != "" ||
				got.WireKey != "renew:2026-10-26/sub_07#charge" {
				t.Errorf("got %+v, data %s", got, got.Data)
			}
		})
	}
}

// A probe that is asked about an undo is told so, whatever this process was started with.
func TestAProbeIsToldOfAnUndo(t *testing.T) {
	t.Setenv("DAYBOOK_UNDO", "1")
	for _, undo := range []bool{false, true} {
		o := order(t, "true")
		o.Job.Probe = shell(`echo "${DAYBOOK_UNDO-charge}"`)
		want := `"charge"`
		if undo {
			o.Run.Key, want = o.Run.Key.Undo(), "1"
		}
		if got := quick().Probe(t.Context(), o, "k#charge"); string(got.Data) != want {
			t.Errorf("undo %t: %s %s", undo, got.Data, got.Error)
		}
	}
}

func TestProbeThatHangs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	o := order(t, "true")
	pidFile := filepath.Join(t.TempDir(), "pid")
	o.Job.Probe = shell(`echo $$ > ` + pidFile + `; trap '' TERM; sleep 60 & wait; exit 0`)
	got := quick().Probe(ctx, o, "k")
	if got.Answer != daybook.CannotTell || !strings.HasPrefix(got.Error, "timed out") {
		t.Errorf("got %+v", got)
	}
	if b, err := os.ReadFile(pidFile); err == nil { // it may have been killed before it wrote
		if pid, _ := strconv.Atoi(strings.TrimSpace(string(b))); pid > 0 {
			eventually(t, "the probe's group to be gone", func() bool { return !groupAlive(pid) })
		}
	}
}

func TestProbeWithMuchToSay(t *testing.T) {
	t.Parallel()
	o := order(t, "true")
	o.Job.Probe = shell(`head -c 1000000 /dev/zero | tr '\0' 1; head -c 1000000 /dev/zero >&2`)
	got := quick().Probe(t.Context(), o, "k")
	if got.Answer != daybook.Yes || len(got.Data) > daybook.MaxResultBytes {
		t.Errorf("got %s with %d bytes", got.Answer, len(got.Data))
	}
}

func TestCausesAreToldApart(t *testing.T) {
	t.Parallel()
	causes := []*daybook.Error{daybook.ErrLeaseLost, daybook.ErrShutdown, daybook.ErrTimeout, daybook.ErrCancelled}
	for i, a := range causes {
		for j, b := range causes {
			if got := causedBy(fmt.Errorf("stop: %w", a), b); got != (i == j) {
				t.Errorf("%v by %v: %v", a, b, got)
			}
		}
	}
	if causedBy(nil, daybook.ErrTimeout) || causedBy(context.Canceled, daybook.ErrTimeout) {
		t.Error("a cause was found where there is none")
	}
}

func TestStartsAtOnce(t *testing.T) {
	t.Parallel()
	const n = 12
	results := make(chan daybook.Outcome, n)
	for i := range n {
		o := order(t, fmt.Sprintf("echo %d; exit 75", i))
		go func() { results <- quick().Run(t.Context(), o) }()
	}
	seen := make(map[string]bool)
	for range n {
		out := <-results
		want(t, out, daybook.ResultNotDone, "exit 75")
		seen[out.Output.Text] = true
	}
	if len(seen) != n {
		t.Errorf("outputs were mixed: %v", reflect.ValueOf(seen).MapKeys())
	}
}

func shell(text string) daybook.Command { return daybook.Command{Shell: text} }

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// program makes a program. It is written by another process: while this one has a file open for writing, a command that
// is just being started has it open, too, and the program would be "text file busy".
func program(t *testing.T, path, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `printf %s "$2" > "$1" && chmod 755 "$1"`, "sh", path, text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A lease that is over by the time the directory is locked starts nothing: whoever declares the attempt over once it is locked finds it
// alive, and whoever did before has the run.
func TestNothingIsStartedWhenTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	o := order(t, "touch "+mark)
	o.Lapsed = func() bool {
		if alive, known := quick().Alive(o.Dir); !alive || !known {
			t.Errorf("asked while it is not locked: alive %v, known %v", alive, known)
		}
		return true
	}
	out := run(t, o)
	want(t, out, daybook.ResultNotDone, "not begun: the lease was lost")
	if _, err := os.Stat(mark); err == nil || !out.Interrupted {
		t.Errorf("it was started, or counts: %v, interrupted %v", err, out.Interrupted)
	}
	if alive, known := quick().Alive(o.Dir); alive || !known {
		t.Errorf("afterwards: alive %v, known %v", alive, known)
	}
	o.Lapsed = func() bool { return false }
	want(t, run(t, o), daybook.ResultDone, "")
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
}
