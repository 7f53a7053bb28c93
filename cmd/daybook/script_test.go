package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daybook-run/daybook/internal/pgtest"
)

// asProgram makes the test binary the program itself, whatever its name.
const asProgram = "DAYBOOK_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	_ = flag.Set("test.parallel", "8") // the tests wait for processes, most of the time; go test -parallel still counts
	testscript.Main(m, map[string]func(){"daybook": main})
}

// TestScript runs the scripts of testdata/script, each in a directory of its own and each command as a process of its
// own. Besides the words of testscript:
//
//	code N PROGRAM …       runs a program, which must end with the exit code N
//	until RE PROGRAM …     runs a program again and again until a line of its stdout or stderr matches, for 20 s at most
//	untilfile RE FILE      waits until a line of a file matches
//	capture NAME RE        sets a variable to what the first group matches in stdout
//	term                   sends SIGTERM to what runs in the background; wait looks at how it ends
//	sql FILE STATEMENT     runs a statement on a SQLite file
//	hup                    sends SIGHUP to it
//
// No script sleeps: what other processes do is waited for.
func TestScript(t *testing.T) {
	testscript.Run(t, params(func(*testscript.Env) error { return nil }))
}

// TestScriptPostgres runs the scripts that tell the main story with the ledger in PostgreSQL.
func TestScriptPostgres(t *testing.T) {
	p := params(func(e *testscript.Env) error {
		tb, ok := e.T().(testing.TB)
		if !ok {
			return errors.New("no testing.TB")
		}
		e.Setenv("DAYBOOK_DB", pgtest.URL(tb))
		return nil
	})
	p.Dir, p.Files = "", []string{"testdata/script/serve.txtar", "testdata/script/resolve.txtar", "testdata/script/stop.txtar", "testdata/script/steps.txtar", "testdata/script/reload.txtar", "testdata/script/accept.txtar", "testdata/script/subjects.txtar", "testdata/postgres/postgres.txtar"}
	p.Condition = func(cond string) (bool, error) { return cond == "postgres", nil }
	testscript.Run(t, p)
}

func params(ledger func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("USER", "me")
			e.Setenv("TZ", "UTC")
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			return ledger(e)
		},
		Condition: func(string) (bool, error) { return false, nil },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": scriptCode, "until": scriptUntil, "untilfile": scriptUntilFile, "capture": scriptCapture, "sql": scriptSQL,
			"term": scriptSignal(syscall.SIGTERM), "hup": scriptSignal(syscall.SIGHUP),
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	}
}

func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("code N PROGRAM …")
	}
	if got := strconv.Itoa(codeOf(ts, args[1:])); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func codeOf(ts *testscript.TestScript, args []string) int {
	run := ts.Exec // it has no context to take
	err := run(args[0], args[1:]...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	ts.Fatalf("%v", err)
	return -1
}

// Bounds of waiting for another process.
const (
	waitAtMost = 20 * time.Second
	lookEvery  = 50 * time.Millisecond
)

// waitFor looks until done says so; it is the only place that waits for other processes.
func waitFor(done func() bool) bool {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for end := time.Now().Add(waitAtMost); time.Now().Before(end); <-tick.C {
		if done() {
			return true
		}
	}
	return done()
}

func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("until RE PROGRAM …")
	}
	re := regexp.MustCompile("(?m)" + args[0])
	if !waitFor(func() bool {
		codeOf(ts, args[1:])
		return re.MatchString(ts.ReadFile("stdout")) || re.MatchString(ts.ReadFile("stderr"))
	}) {
		ts.Fatalf("%s never appeared", args[0])
	}
}

func scriptUntilFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("untilfile RE FILE")
	}
	re, path := regexp.MustCompile("(?m)"+args[0]), ts.MkAbs(args[1])
	var text []byte
	if !waitFor(func() bool {
		text, _ = os.ReadFile(path) // not there yet is no match yet
		return re.Match(text)
	}) {
		ts.Fatalf("%s never appeared in %s:\n%s", args[0], args[1], text)
	}
}

func scriptCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("capture NAME RE")
	}
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) < 2 {
		ts.Fatalf("no match")
	}
	ts.Setenv(args[0], m[1])
}

func scriptSignal(signal syscall.Signal) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 0 {
			ts.Fatalf("term, or hup")
		}
		all := ts.BackgroundCmds()
		if len(all) == 0 {
			ts.Fatalf("nothing runs in the background")
		}
		for _, cmd := range all {
			ts.Check(cmd.Process.Signal(signal))
		}
	}
}

// scriptSQL runs a statement on a SQLite file: sql FILE STATEMENT.
func scriptSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), args[1])
	ts.Check(errors.Join(err, db.Close()))
}
