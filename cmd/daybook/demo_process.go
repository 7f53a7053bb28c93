package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// child is a process that the demo started.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts this program as something else, and waits until it prints a line that begins with the given text. It
// returns the rest of that line. What is printed goes to a file as well.
func (d *demo) start(ctx context.Context, said string, args ...string) (*child, string, error) {
	log, err := os.OpenFile(filepath.Join(d.dir, args[0]+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, "", err
	}
	out := &head{prefix: said, found: make(chan string, 1), to: log}
	c := &child{cmd: d.command(context.WithoutCancel(ctx), "", args...), ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	if err := c.cmd.Start(); err != nil {
		return nil, "", errors.Join(err, log.Close())
	}
	go func() {
		_ = c.cmd.Wait() // that it ended says enough: the demo is over
		_ = log.Close()
		close(c.ended)
	}()
	timer := time.NewTimer(demoPatience)
	defer timer.Stop()
	select {
	case line := <-out.found:
		return c, line, nil
	case <-c.ended:
		err = daybook.New(daybook.CodeInternal, "%s ended: %s", args[0], out.all())
	case <-timer.C:
		err = daybook.New(daybook.CodeInternal, "%s is not ready after %s", args[0], demoPatience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.kill()
	return nil, "", err
}

// command is this program as something else, in a process group of its own: Ctrl-C is for the demo alone, which then
// ends it. What the environment says of other ledgers is left out.
func (d *demo) command(ctx context.Context, user string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.program, args...)
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "DAYBOOK_") && !strings.HasPrefix(name, "DAYBOOK_TEST_") || user != "" && name == "USER" {
			continue
		}
		cmd.Env = append(cmd.Env, pair)
	}
	cmd.Env = append(cmd.Env, "DAYBOOK_LANG=en") // the demo reads what it says
	if user != "" {
		cmd.Env = append(cmd.Env, "USER="+user)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// kill kills it with SIGKILL and waits for its end.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// stop asks it to end, and kills it if it does not. Nil is nobody.
func (c *child) stop(ctx context.Context) error {
	if c == nil {
		return nil
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, daybook.TerminationGrace+5*time.Second)
	defer cancel()
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		c.kill()
		return daybook.New(daybook.CodeInternal, "process %d had to be killed", c.cmd.Process.Pid)
	}
}

// head passes on what is printed, and looks for one line.
type head struct {
	prefix string
	found  chan string
	to     io.Writer

	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text.Len() < 64<<10 {
		h.text.Write(p)
		for line := range strings.Lines(h.text.String()) {
			if rest, ok := strings.CutPrefix(line, h.prefix); ok && strings.HasSuffix(rest, "\n") {
				select {
				case h.found <- strings.TrimSpace(rest):
				default: // it was found before
				}
				break
			}
		}
	}
	return h.to.Write(p)
}

func (h *head) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.TrimSpace(h.text.String())
}

func (d *demo) startGateway(ctx context.Context) (err error) {
	d.gateway, d.address, err = d.start(ctx, "listening on ", "demo-gateway", "-book", d.book())
	return err
}

// run runs this program as something else and returns its exit code.
func (d *demo) run(ctx context.Context, args ...string) int {
	cmd := d.command(ctx, "", args...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// trigger asks for a day by the command line, as a user; empty is whoever plays.
func (d *demo) trigger(ctx context.Context, user, day string) (daybook.TriggerOutcome, error) {
	return d.triggerJob(ctx, demoJob, user, day)
}

func (d *demo) triggerJob(ctx context.Context, job, user, day string) (daybook.TriggerOutcome, error) {
	return d.answer(ctx, user, "job", "trigger", job, "--window", day, "--json")
}

// answer returns what became of a trigger.
func (d *demo) answer(ctx context.Context, user string, args ...string) (daybook.TriggerOutcome, error) {
	var out, errs bytes.Buffer
	cmd := d.command(ctx, user, append(args, "-c", d.config())...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var answer answerJSON
	if json.Unmarshal(out.Bytes(), &answer) == nil && answer.Outcome != "" { // refused has an exit code of its own
		return answer.Outcome, nil
	}
	return "", fmt.Errorf("daybook %s: %w: %s", strings.Join(args, " "), errors.Join(err, ctx.Err()), errs.String())
}

// until waits until something holds.
func (d *demo) until(ctx context.Context, what daybook.Text, holds func() (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	ok, err := waitWhile(limited, 30*time.Millisecond, func() (bool, error) {
		held, err := holds()
		return !held, err
	})
	if err == nil && !ok {
		err = errors.Join(daybook.New(daybook.CodeInternal, "%s: not within %s", what, demoPatience), ctx.Err())
	}
	return err
}

// ends waits until the renewal of a day is in a state.
func (d *demo) ends(ctx context.Context, day string, want daybook.State) (*daybook.Run, error) {
	return d.endsOf(ctx, demoJob, day, want)
}

func (d *demo) endsOf(ctx context.Context, job, day string, want daybook.State) (r *daybook.Run, err error) {
	key := daybook.KeyParts{Job: job, Window: day}.Key()
	err = d.until(ctx, daybook.Say("%s is %s", key, want), func() (bool, error) {
		r, err = d.ledger.Control().Run(ctx, key)
		return err == nil && r.State == want, err
	})
	return r, err
}

// fires tells how the schedule was answered: the first time, and from then on.
func (d *demo) fires(ctx context.Context, day string) (first daybook.TriggerOutcome, more daybook.Text, err error) {
	key := daybook.KeyParts{Job: demoJob, Window: day}.Key()
	var answers []daybook.TriggerOutcome
	err = d.until(ctx, daybook.Say("the schedule asks again"), func() (bool, error) {
		triggers, err := d.ledger.Store().Triggers(ctx, key)
		answers = answers[:0]
		for _, t := range triggers {
			if t.Source == daybook.SourceSchedule || t.Source == daybook.SourceCatchup {
				answers = append(answers, t.Outcome)
			}
		}
		return len(answers) > 1 && answers[len(answers)-1] == daybook.Reused, err
	})
	if err != nil {
		return "", daybook.Text{}, err
	}
	more = daybook.Say("%s", answers[1])
	for _, o := range answers[2:] {
		more = daybook.Say("%v, %v", more, o)
	}
	return answers[0], more, nil
}

// charged and requested count lines of the gateway's book for a day. A book that cannot be read counts none.
func (d *demo) charged(day string) int {
	return d.lines(func(l gateway.Line) bool {
		return l.Kind == gateway.KindCharge && l.Status == gateway.Charged && l.Day == day
	})
}

func (d *demo) requested(day string) int {
	return d.lines(func(l gateway.Line) bool { return l.Kind == gateway.KindRequest && l.Day == day })
}

func (d *demo) lines(which func(gateway.Line) bool) (n int) {
	lines, err := gateway.ReadBook(d.book())
	if err != nil {
		return 0
	}
	for _, l := range lines {
		if which(l) {
			n++
		}
	}
	return n
}

// fault makes the gateway fail once; card makes the card of the customer good or bad.
func (d *demo) fault(ctx context.Context, text string) error { return d.post(ctx, "/faults", text) }

func (d *demo) card(ctx context.Context, ok bool) error {
	return d.post(ctx, "/cards", fmt.Sprintf(`{"customer":%q,"ok":%t}`, demoCustomer, ok))
}

func (d *demo) post(ctx context.Context, path, body string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.address+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := demoClient.Do(r)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusNoContent {
		err = daybook.New(daybook.CodeInternal, "gateway: %s: %s", path, answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// demoClient talks to the gateway. A charge may be slow; whoever asks for it is ended from outside.
var demoClient = &http.Client{Timeout: 2 * time.Minute}
