package alert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
)

// execChannel starts a command for each text: the body on its standard input, what a program wants to know in its
// environment. It is no shell: the first word is the program, every other one is one argument.
type execChannel struct {
	run     []string
	env     map[string]string
	timeout time.Duration
}

func newExec(s Settings) (Channel, error) {
	if s.Run[0] == "" {
		return nil, daybook.Invalid("channel %s: the command is empty", s.Name)
	}
	return &execChannel{run: s.Run, env: s.Env, timeout: s.Timeout}, nil
}

const (
	outputBytes = 2000            // of what the command prints that are kept, the last ones
	pipesWait   = 2 * time.Second // for a child that outlives the command and holds its output open
)

// permanentExits say that trying again cannot help, as for jobs.
var permanentExits = []int{64, 65, 66, 77, 78, 126, 127}

// Send implements Channel. Exit 0: sent. 64 65 66 77 78 126 127, or a command that cannot be started: for good not. Any
// other end: again later. At the timeout the whole process group is killed.
func (c *execChannel) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.run[0], c.run[1:]...)
	cmd.Env = c.environment(m)
	cmd.Stdin = strings.NewReader(m.Body)
	out := &tail{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipesWait
	if err := cmd.Start(); err != nil {
		return daybook.Permanent(fmt.Errorf("could not start %s: %w", c.run[0], err))
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s was ended: %w", c.run[0], ctx.Err())
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return nil
	case !errors.As(err, &exit):
		return fmt.Errorf("%s: %w", c.run[0], err)
	}
	err = fmt.Errorf("%s: %s%s", c.run[0], exit, out.said())
	if slices.Contains(permanentExits, exit.ExitCode()) {
		return daybook.Permanent(err)
	}
	return err
}

// inherited is what a command gets of our own environment: not the rest, which may hold the secrets of others.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "XDG_RUNTIME_DIR"}

func (c *execChannel) environment(m Message) []string {
	var env []string
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range c.env {
		env = append(env, name+"="+v)
	}
	d := m.Details
	for _, v := range [][2]string{
		{"ID", d.ID}, {"SEND", m.Key}, {"KIND", string(d.Kind)}, {"PURPOSE", strings.ReplaceAll(string(d.Purpose), " ", "_")}, {"PRIORITY", string(d.Priority)},
		{"JOB", d.Job}, {"KEY", string(d.Key)}, {"SUBJECT", m.Subject}, {"SHORT", m.Short}, {"ERROR", d.Error}, {"LAST_GOOD", d.LastGood},
		{"STATE", string(d.State)}, {"ATTEMPTS", strconv.Itoa(d.Attempts)}, {"OWNER", d.Owner}, {"RUNBOOK", d.Runbook}, {"URL", d.URL}, {"LANG", m.Lang},
		{"DATA", m.Data},
	} {
		env = append(env, "DAYBOOK_ALERT_"+v[0]+"="+strings.ReplaceAll(v[1], "\x00", ""))
	}
	return env
}

// tail keeps the last bytes written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > outputBytes {
		t.b = slices.Clone(t.b[len(t.b)-outputBytes:])
	}
	return len(p), nil
}

func (t *tail) said() string {
	if s := oneLine(strings.ToValidUTF8(string(t.b), "\uFFFD")); s != "" {
		return ": " + lang.CutChars(s, 300)
	}
	return ""
}
