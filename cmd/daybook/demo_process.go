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
	"github.com/daybook-run/daybook/control"
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
	c := &child{cmd: d.command(context.WithoutCancel(ctx), args...), ended: make(chan struct{})}
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

// command is this program as something else, by the clock of the demo, in a process group of its own: Ctrl-C is for the demo
// alone, which then ends it. What the environment says of other ledgers is left out.
func (d *demo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.program, append([]string{"demo-at", d.clock.path}, args...)...)
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "DAYBOOK_") && !strings.HasPrefix(name, "DAYBOOK_TEST_") || name == "USER" {
			continue
		}
		cmd.Env = append(cmd.Env, pair)
	}
	cmd.Env = append(cmd.Env, "DAYBOOK_LANG=en", "USER=you") // the demo reads what it says
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

// open starts the gateway and the shop, and writes the file that serve runs.
func (d *demo) open(ctx context.Context) (err error) {
	if d.gateway, d.gatewayAt, err = d.start(ctx, "listening on ", "demo-gateway", "-book", d.book()); err != nil {
		return err
	}
	if d.shop, d.shopAt, err = d.start(ctx, "listening on ", "demo-shop", "--gateway", d.gatewayAt, "--book", filepath.Join(d.dir, "shop.jsonl")); err != nil {
		return err
	}
	return os.WriteFile(d.config(), fmt.Appendf(nil, demoFile, d.shopAt), 0o600)
}

// serve starts a process of the real thing and waits until it works.
func (d *demo) serve(ctx context.Context) (err error) {
	if d.server, d.serverAt, err = d.start(ctx, "it answers on ", "serve", "-c", d.config(), "--listen", "127.0.0.1:0"); err != nil || d.ledger != nil {
		return err
	}
	if d.ledger, err = d.openAt(ctx, "cli", "sqlite:"+filepath.Join(d.dir, "daybook.db"), nil, false); err != nil {
		return err
	}
	_, d.token, err = d.ledger.Control().CreateToken(ctx, control.Person{Name: "you"}, daybook.RoleAct, "platform")
	return err
}

// instant is a time of the wall on a day of the demo.
func (d *demo) instant(day, at string) time.Time {
	t, err := time.ParseInLocation(time.DateTime, day+" "+at, d.zone)
	if err != nil {
		panic(err) // written here
	}
	return t
}

// jump puts the clock to a time of a day: nothing happens until then.
func (d *demo) jump(day, at string) error {
	t := d.instant(day, at)
	return d.clock.write(t, t)
}

// runTo lets the clock run to a time of a day, and returns when it has reached it.
func (d *demo) runTo(day, at string) error {
	t := d.instant(day, at)
	if err := d.clock.runTo(t); err != nil {
		return err
	}
	_, err := waitWhile(context.Background(), 5*time.Millisecond, func() (bool, error) { return d.clock.Now().Before(t), nil })
	return err
}

// second and minute are how times of the demo are told.
func (d *demo) second(t time.Time) string { return t.In(d.zone).Format(time.TimeOnly) }
func (d *demo) minute() string            { return d.clock.Now().In(d.zone).Format("15:04") }

func demoKey(day, sub string) daybook.Key {
	return daybook.KeyParts{Job: demoJob, Window: day, Subject: sub}.Key()
}

// platform asks for a day as the platform does that started the work of a deployment: by the API.
func (d *demo) platform(ctx context.Context, day string) (daybook.TriggerOutcome, error) {
	var answer answerJSON
	header := http.Header{"Authorization": {"Bearer " + d.token}, "Content-Type": {"application/json"}}
	err := d.call(ctx, http.MethodPost, d.serverAt+"/api/v1/jobs/"+demoJob+"/trigger", header, fmt.Appendf(nil, `{"window":%q}`, day), &answer)
	if err == nil && answer.Outcome != daybook.Joined {
		err = daybook.New(daybook.CodeInternal, "the platform was answered %s", answer.Message)
	}
	return answer.Outcome, err
}

// click asks for the newest window by the command line, as somebody does who looks at the day before.
func (d *demo) click(ctx context.Context, want daybook.TriggerOutcome) (daybook.TriggerOutcome, error) {
	return want, d.answer(ctx, want, "job", "trigger", demoJob, "--json")
}

// answer asks by the command line, and checks what became of it.
func (d *demo) answer(ctx context.Context, want daybook.TriggerOutcome, args ...string) error {
	var out, errs bytes.Buffer
	cmd := d.command(ctx, append(args, "-c", d.config())...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var answer answerJSON
	if json.Unmarshal(out.Bytes(), &answer) == nil && answer.Outcome == want { // refused has an exit code of its own
		return nil
	}
	return fmt.Errorf("daybook %s: %w: %s%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), out.String(), errs.String())
}

// until waits until something holds.
func (d *demo) until(ctx context.Context, what daybook.Text, holds func() (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	ok, err := waitWhile(limited, 20*time.Millisecond, func() (bool, error) {
		held, err := holds()
		return !held, err
	})
	if err == nil && !ok {
		err = errors.Join(daybook.New(daybook.CodeInternal, "%s: not within %s", what, demoPatience), ctx.Err())
	}
	return err
}

// ends waits until a renewal is in a state: of a subscription, or with none of the whole day.
func (d *demo) ends(ctx context.Context, day, sub string, want daybook.State) (r *daybook.Run, err error) {
	key := demoKey(day, sub)
	err = d.until(ctx, daybook.Say("%s is %s", key, want), func() (bool, error) {
		r, err = d.ledger.Control().Run(ctx, key)
		if daybook.CodeOf(err) == daybook.CodeNotFound {
			return false, nil
		}
		return err == nil && r.State == want, err
	})
	return r, err
}

func (d *demo) post(ctx context.Context, base, path, body string) error {
	return d.call(ctx, http.MethodPost, base+path, nil, []byte(body), nil)
}

// call makes a call that has to succeed, and reads the JSON that is answered.
func (d *demo) call(ctx context.Context, method, target string, header http.Header, body []byte, into any) error {
	status, said, err := demoCall(ctx, method, target, header, body)
	if err == nil && status >= http.StatusBadRequest {
		err = daybook.New(daybook.CodeInternal, "%s %s: %d: %s", method, target, status, said)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(said, into)
	}
	return err
}
