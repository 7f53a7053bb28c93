package runner

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// crash runs o in a Daybook of its own, kills that one with KILL once the command is ready, and returns when it is gone.
// The command finds a directory of its own as working directory, and makes the file `ready` there.
func crash(t *testing.T, o daybook.Order) {
	t.Helper()
	o.Job.Dir = t.TempDir()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	helper := exec.Command(self)
	helper.Env = append(os.Environ(), helperVar+"="+string(text))
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = (&Exec{Grace: time.Millisecond}).End(context.Background(), o.Dir) })
	eventually(t, "the command to be ready", exists(filepath.Join(o.Job.Dir, "ready")))
	eventually(t, "the process to be written down", func() bool { m, _ := readMeta(o.Dir); return m.Pid > 0 })
	_ = helper.Process.Kill()
	_ = helper.Wait()
}

func TestSurvivorIsFoundAndItsReportTaken(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	o := order(t, `touch ready; read go < `+gate+`; echo '{"outcome":"done","effects":{"charges":1},"message":"late"}' > "$DAYBOOK_RESULT_FILE"`)
	crash(t, o)
	e := quick()
	if alive, known := e.Alive(o.Dir); !alive || !known {
		t.Fatalf("alive %v, known %v", alive, known)
	}
	if _, ok := e.Report(o.Dir); ok {
		t.Error("a report was found before there was one")
	}
	if out := e.Run(t.Context(), o); out.Result != daybook.ResultNotDone || !strings.Contains(out.Error, "still alive") {
		t.Errorf("started beside it: %+v", out)
	}
	if err := e.Clean(o.Dir); !errors.Is(err, daybook.ErrConflict) {
		t.Errorf("cleaned below it: %v", err)
	}
	write(t, gate, "go\n", 0o600)
	eventually(t, "its end", func() bool { alive, known := e.Alive(o.Dir); return !alive && known })
	out, ok := e.Report(o.Dir)
	if !ok || out.Result != daybook.ResultDone || out.Counts["charges"] != 1 || out.Error != "" || out.Detail != "result file: late" {
		t.Errorf("report %+v, %v", out, ok)
	}
	if err := e.Clean(o.Dir); err != nil {
		t.Error(err)
	}
	if alive, known := e.Alive(o.Dir); alive || known {
		t.Errorf("after cleaning: alive %v, known %v", alive, known)
	}
}

func TestSurvivingChildOfADeadCommand(t *testing.T) {
	t.Parallel()
	// The command itself ends with Daybook; a child lives on in the background and holds the lock.
	o := order(t, `sleep 60 & touch ready; read forever < /dev/zero`)
	crash(t, o)
	m, _ := readMeta(o.Dir)
	_ = syscall.Kill(m.Pid, syscall.SIGKILL)
	eventually(t, "the command to be gone", func() bool { return !sameProcess(m.Pid, m.Start, m.Boot) })
	e := quick()
	if alive, known := e.Alive(o.Dir); !alive || !known {
		t.Fatalf("alive %v, known %v", alive, known)
	}
	if err := e.End(t.Context(), o.Dir); err != nil {
		t.Fatal(err)
	}
	wantGroupGone(t, o)
}

func TestSurvivorIsEnded(t *testing.T) {
	t.Parallel()
	setsid := "setsid"
	if _, err := exec.LookPath(setsid); err != nil {
		setsid = ""
	}
	for name, script := range map[string]string{
		"by TERM":              `touch ready; sleep 60`,
		"by KILL":              `trap '' TERM; touch ready; sleep 60`,
		"that left its group":  setsid + ` sh -c 'touch ready; sleep 60'`,
		"that closed its lock": `exec 3>&-; touch ready; sleep 60`,
	} {
		t.Run(name, func(t *testing.T) {
			o := order(t, script)
			crash(t, o)
			e := quick()
			if alive, known := e.Alive(o.Dir); !alive || !known {
				t.Fatalf("alive %v, known %v", alive, known)
			}
			if err := e.End(t.Context(), o.Dir); err != nil {
				t.Fatal(err)
			}
			if alive, known := e.Alive(o.Dir); alive || !known {
				t.Errorf("alive %v, known %v", alive, known)
			}
			if _, ok := e.Report(o.Dir); ok {
				t.Error("a report was found where none was written")
			}
			wantGroupGone(t, o)
		})
	}
}

func TestEndTouchesNobodyElse(t *testing.T) {
	t.Parallel()
	// A stranger has the pid that was written down, and somebody unknown holds the lock.
	stranger := exec.Command("sleep", "60")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	dir := t.TempDir()
	start, boot := processIdentity(stranger.Process.Pid)
	p := &place{dir: dir}
	if err := p.writeMeta(meta{Pid: stranger.Process.Pid, Pgid: stranger.Process.Pid, Start: start + 1, Boot: boot}); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := quick().End(t.Context(), dir); !errors.Is(err, daybook.ErrConflict) {
		t.Errorf("got %v", err)
	}
	if !sameProcess(stranger.Process.Pid, start, boot) {
		t.Error("a stranger was ended")
	}
}

// Another Daybook asks at the same moment whether the work is alive: it has the lock file open, and must live.
func TestEndSparesThoseWhoAsk(t *testing.T) {
	t.Parallel()
	o := order(t, `touch ready; sleep 60`)
	crash(t, o)
	asker := exec.Command("sh", "-c", `exec 9< "$1"; echo; exec sleep 60`, "sh", filepath.Join(o.Dir, lockFile))
	out, err := asker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := asker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = asker.Process.Kill(); _ = asker.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	start, boot := processIdentity(asker.Process.Pid)
	if err := quick().End(t.Context(), o.Dir); err != nil {
		t.Fatal(err)
	}
	wantGroupGone(t, o)
	if !sameProcess(asker.Process.Pid, start, boot) {
		t.Error("whoever had the file open was ended, too")
	}
}

// Commands are started all the time while others are ended: none of them may be hit.
func TestEndHitsNothingThatIsBeingStarted(t *testing.T) {
	t.Parallel()
	o := order(t, `trap '' TERM; touch ready; sleep 60`)
	crash(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	hit := make(chan daybook.Outcome, 1)
	go func() {
		defer close(hit)
		bystander := order(t, "exit 75")
		bystander.Dir = ""
		for ctx.Err() == nil {
			if out := (&Exec{}).Run(t.Context(), bystander); out.Result != daybook.ResultNotDone {
				hit <- out
				return
			}
		}
	}()
	for range 50 {
		if err := signalSurvivors(o.Dir, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if alive, _ := quick().Alive(o.Dir); !alive {
			t.Error("it should be alive: it ignores TERM")
		}
	}
	cancel()
	if out, ok := <-hit; ok {
		t.Errorf("a bystander was hit: %+v", out)
	}
}

func TestEndStopsWaitingWithItsContext(t *testing.T) {
	t.Parallel()
	o := order(t, `trap '' TERM; touch ready; sleep 60`)
	crash(t, o)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(daybook.ErrShutdown)
	if err := (&Exec{}).End(ctx, o.Dir); !errors.Is(err, daybook.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if alive, _ := quick().Alive(o.Dir); !alive {
		t.Error("it should be alive: it ignores TERM")
	}
}

func TestNothingIsKnownOfAnotherDirectory(t *testing.T) {
	t.Parallel()
	e, dir := quick(), t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		if alive, known := e.Alive(d); alive || known {
			t.Errorf("%s: alive %v, known %v", d, alive, known)
		}
		if _, ok := e.Report(d); ok {
			t.Errorf("%s: a report", d)
		}
		if err := e.End(t.Context(), d); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
	if err := e.Clean(filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
	if err := e.Clean(dir); !errors.Is(err, daybook.ErrInvalid) {
		t.Errorf("cleaned a directory that is no attempt's: %v", err)
	}
}

func TestReportNeedsAnOutcome(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"":                           false,
		`{"message":"half way"}`:     false,
		`{"outcome":"done"`:          false,
		`{"outcome":"fine"}`:         false,
		`{"outcome":"not_done"}`:     true,
		`{"outcome":"done","wat":1}`: true,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, resultFile), text, 0o600)
		if _, got := quick().Report(dir); got != ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestLockIsNotInheritedByOthers(t *testing.T) {
	t.Parallel()
	// Many commands start while others start and end. Each holds its own lock and no other's.
	const n = 8
	e := quick()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var orders [n]daybook.Order
	ended := make(chan daybook.Outcome, n)
	for i := range n {
		orders[i] = order(t, `touch ready; exec sleep 60`)
		orders[i].Job.Dir = t.TempDir()
		go func() { ended <- e.Run(ctx, orders[i]) }()
	}
	for _, o := range orders {
		eventually(t, "the command to be ready", exists(filepath.Join(o.Job.Dir, "ready")))
		eventually(t, "the process to be written down", func() bool { m, _ := readMeta(o.Dir); return m.Pid > 0 })
	}
	for i, o := range orders {
		eventually(t, "one holder of the lock", func() bool { return len(holders(filepath.Join(o.Dir, lockFile))) == 1 }) // touch may be ending
		m, _ := readMeta(o.Dir)
		if held := holders(filepath.Join(o.Dir, lockFile)); held[m.Pid] == 0 {
			t.Errorf("lock %d is held by %v, not by %d", i, held, m.Pid)
		}
		_ = syscall.Kill(m.Pid, syscall.SIGKILL)
		eventually(t, "the lock to be free while others run", func() bool { alive, known := e.Alive(o.Dir); return !alive && known })
		<-ended
	}
}

func TestAskersDoNotTakeEachOtherForTheWork(t *testing.T) {
	t.Parallel()
	o := order(t, "true")
	run(t, o)
	seen := make(chan bool, 8)
	for range cap(seen) {
		go func() {
			any := false
			for range 500 {
				alive, known := quick().Alive(o.Dir)
				any = any || alive || !known
			}
			seen <- any
		}()
	}
	for range cap(seen) {
		if <-seen {
			t.Error("a finished attempt was said to be alive")
		}
	}
}

func TestWhatIsWrittenDown(t *testing.T) {
	t.Parallel()
	o := order(t, `echo $$; stat -c %a . ; ls; cat meta.json`)
	if err := os.MkdirAll(filepath.Dir(o.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	o.Run.Input = []byte(`{}`)
	o.Job.Command.Shell = `cd "${DAYBOOK_RESULT_FILE%/*}" && ` + o.Job.Command.Shell
	lines := strings.Split(run(t, o).Output.Text, "\n")
	m, ok := readMeta(o.Dir)
	if !ok || strconv.Itoa(m.Pid) != lines[0] || m.Pgid != m.Pid || m.Start == 0 || m.Boot == "" || m.Key != o.Run.Key || m.Fence != 7 || m.Attempt != 2 {
		t.Errorf("written down: %+v of %q", m, lines)
	}
	if lines[1] != "700" {
		t.Errorf("the directory has mode %s", lines[1])
	}
}
