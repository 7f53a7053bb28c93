package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newRunLogs(a *app) *cobra.Command {
	var try int
	var follow bool
	cmd := &cobra.Command{
		Use: "logs KEY", Short: textRunLogs, Long: textRunLogsLong, Args: exactly("KEY"), ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if follow && try != 0 {
				return daybook.Invalid("both --follow and --attempt are given").WithHint("give one: what runs is followed, an attempt that has ended is shown")
			}
			if follow {
				return a.runFollow(cmd.Context(), daybook.Key(args[0]))
			}
			return a.runLogs(cmd.Context(), daybook.Key(args[0]), try)
		},
	}
	cmd.Flags().IntVar(&try, "attempt", 0, "of this attempt (default: the newest that has ended)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until the run has ended")
	return cmd
}

// logsJSON is daybook/output.v1.
type logsJSON struct {
	Schema  string      `json:"schema"`
	Key     daybook.Key `json:"key"`
	Attempt attemptJSON `json:"attempt"`
	Omitted int64       `json:"omitted"`
	Output  string      `json:"output"`
}

func (a *app) runLogs(ctx context.Context, key daybook.Key, number int) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		r, err := c.Run(ctx, key)
		if err != nil {
			return err
		}
		all, err := c.Attempts(ctx, key)
		if err != nil {
			return err
		}
		var try *daybook.Attempt
		for i := range all {
			if t := &all[i]; !t.Probe && (number == 0 && t.Result != "" || t.Number == number) {
				try = t
			}
		}
		switch {
		case try == nil && r.PrunedAt.IsZero() && number == 0 && r.State == daybook.Running:
			return daybook.NotFound("%s: attempt %d is running, and its output is kept when it ends", key, r.Attempts).WithHint("daybook run logs %s -f", key)
		case try == nil && !r.PrunedAt.IsZero():
			return daybook.NotFound("%s: its log was emptied %s", key, stamp(r.PrunedAt, a.zoneOf(r.Zone))).WithHint("daybook key show %s", key)
		case try == nil && number != 0:
			return daybook.NotFound("%s has no attempt %d", key, number).WithHint("daybook run show %s", key)
		case try == nil:
			return daybook.NotFound("%s has no attempt yet: it is %s", key, r.State).WithHint("daybook key show %s", key)
		}
		out, err := c.Output(ctx, key, try.Fence)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(logsJSON{"daybook/output.v1", key, newAttemptJSON(*try), out.Omitted, out.Text})
		}
		text := out.Text
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(a.Stdout, text); err != nil {
			return err
		}
		a.sayAttempt(r, *try)
		if text == "" {
			a.say("it printed nothing")
		}
		return nil
	})
}

// sayAttempt says how an attempt ended.
func (a *app) sayAttempt(r *daybook.Run, try daybook.Attempt) {
	a.say("%s  attempt %d of %d: %s%s, ended %s", r.Key, try.Number, r.Attempts, control.ResultText(try.Result), detail(try.Detail), stamp(try.EndedAt, a.zoneOf(r.Zone)))
}

func detail(s string) daybook.Text {
	if s == "" {
		return daybook.Text{}
	}
	return daybook.Say(" (%s)", oneLine(s))
}

// pieceJSON is daybook/output-piece.v1: what came since the piece before it.
type pieceJSON struct {
	Schema  string      `json:"schema"`
	Key     daybook.Key `json:"key"`
	Attempt int         `json:"attempt"`
	Text    string      `json:"text"`
}

// tail follows the output of a run, attempt after attempt.
type tail struct {
	a *app
	c *control.Control

	standing string // of the run when it was looked at last
	seen     int64  // the fence of the attempt that was shown last, or is followed
	number   int    // of the attempt that is followed; 0: none is
	since    time.Time
	file     io.ReadCloser // nil: not open yet, or it cannot be read here
	told     bool          // that it cannot
	half     bool          // what was shown last did not end its line
}

// patience is how long a command may take from its claim to its first line before it is said that there is none to read.
const patience = 2 * time.Second

// runFollow shows the newest attempt that has ended, or what the one under way prints as it comes, and goes on until the
// run has ended.
func (a *app) runFollow(ctx context.Context, key daybook.Key) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		t := &tail{a: a, c: c, seen: -1}
		defer t.close()
		var looked time.Time
		var run *daybook.Run
		whole, err := waitWhile(ctx, followEvery, func() (bool, error) {
			r, err := c.Run(ctx, key)
			if err != nil {
				return false, err
			}
			run = r
			if r.State == daybook.Coalesced && r.CoveredBy != "" {
				a.say("%s", a.stepLine(r))
				key = r.CoveredBy
				return true, nil
			}
			if err := t.look(ctx, r); err != nil || !r.State.Live() {
				return false, err
			}
			if now := a.Now(); now.Sub(looked) >= aliveEvery {
				looked = now
				return true, executing(ctx, c, r, now)
			}
			return true, nil
		})
		switch {
		case err != nil:
			return err
		case !whole:
			return &coded{code: daybook.ExitFailed, err: daybook.New(daybook.CodeInternal, "no longer followed: %s goes on and is %s", run.Key, run.State)}
		case a.flags.json:
			return a.printJSON(control.NewRunJSON(run))
		}
		a.say("%s", a.stepLine(run))
		if run.State == daybook.Dead {
			a.next(afterRun(run))
		}
		return nil
	})
}

// look shows what is new: the end of the attempt that is followed, attempts that ended meanwhile, and what the one under
// way prints.
func (t *tail) look(ctx context.Context, r *daybook.Run) error {
	if now := standing(r) + fmt.Sprint(r.Fence); now != t.standing {
		t.standing = now
		tries, err := t.c.Attempts(ctx, r.Key)
		if err != nil {
			return err
		}
		if err := t.ended(ctx, r, tries); err != nil {
			return err
		}
		if r.State == daybook.Running && r.Fence > t.seen {
			t.close()
			t.seen, t.number, t.since, t.told = r.Fence, r.Attempts, t.a.Now(), false
			t.a.say("%s", t.a.stepLine(r))
		}
	}
	if t.number == 0 {
		return nil
	}
	return t.read(ctx, r)
}

// ended shows the attempts that have ended since; of those that had ended before, the newest, unless there is one to follow.
func (t *tail) ended(ctx context.Context, r *daybook.Run, tries []daybook.Attempt) error {
	tries = slices.DeleteFunc(tries, func(try daybook.Attempt) bool {
		followed := try.Fence == t.seen && t.number > 0
		return try.Probe || try.Result == "" || try.Fence <= t.seen && !followed
	})
	if t.seen < 0 && len(tries) > 1 {
		tries = tries[len(tries)-1:]
	}
	if t.seen < 0 && r.State == daybook.Running {
		return nil
	}
	for _, try := range tries {
		if try.Fence == t.seen {
			if err := t.read(ctx, r); err != nil { // what it printed last
				return err
			}
		}
		if try.Fence > t.seen || t.file == nil {
			out, err := t.c.Output(ctx, r.Key, try.Fence)
			if err != nil {
				return err
			}
			if err := t.show(r.Key, try.Number, out.Text); err != nil {
				return err
			}
		}
		t.close()
		t.seen, t.number = try.Fence, 0
		if t.half && !t.a.flags.json {
			if err := t.show(r.Key, try.Number, "\n"); err != nil {
				return err
			}
		}
		t.a.sayAttempt(r, try)
	}
	return nil
}

// read shows what the attempt that is followed has printed since.
func (t *tail) read(ctx context.Context, r *daybook.Run) error {
	if t.file == nil {
		f, err := t.c.Printed(r.Key, t.seen)
		if err != nil {
			return t.cannot(ctx, r, err)
		}
		t.file = f
	}
	b, err := io.ReadAll(t.file)
	if err != nil {
		return daybook.New(daybook.CodeUnavailable, "read what %s prints", r.Key).Because(err)
	}
	return t.show(r.Key, t.number, string(b))
}

// cannot says once why what is printed cannot be followed here. It is shown when the attempt ends.
func (t *tail) cannot(ctx context.Context, r *daybook.Run, err error) error {
	early := daybook.CodeOf(err) == daybook.CodeNotFound && t.a.Now().Sub(t.since) < patience
	if t.told || early || r.State != daybook.Running {
		return nil
	}
	t.told = true
	nodes, nerr := t.c.Nodes(ctx)
	if nerr != nil {
		return nerr
	}
	here, _ := os.Hostname() // "" is no host of a node
	for _, n := range nodes {
		if n.ID == r.Node && n.Host != here {
			t.a.say("it runs on %s: there its output can be followed; here it is shown when the attempt ends", n.Host)
			return nil
		}
	}
	if daybook.CodeOf(err) != daybook.CodeNotFound {
		t.a.say("%s; it is shown when the attempt ends", err)
		return nil
	}
	t.a.say("nothing of it can be read yet; its output is shown when the attempt ends")
	return nil
}

func (t *tail) show(key daybook.Key, number int, text string) error {
	if text == "" {
		return nil
	}
	if t.a.flags.json {
		return t.a.printJSON(pieceJSON{"daybook/output-piece.v1", key, number, text})
	}
	t.half = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(t.a.Stdout, text)
	return err
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close() // it was only read
		t.file = nil
	}
}
