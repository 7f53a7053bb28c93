package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: textDoctor, Long: textDoctorLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

// findingJSON is daybook/finding.v1.
type findingJSON struct {
	Schema string        `json:"schema"`
	Level  control.Level `json:"level"`
	What   daybook.Text  `json:"what"`
	Do     daybook.Text  `json:"do,omitzero"`
}

func (a *app) doctor(ctx context.Context) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		found, err := c.Doctor(ctx)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(a.Stdout)
		wanted := 0
		for _, f := range found {
			if f.Level != control.LevelOK {
				wanted++
			}
			if a.flags.json {
				if err := writeJSON(w, findingJSON{"daybook/finding.v1", f.Level, f.What, f.Do}); err != nil {
					return err
				}
				continue
			}
			a.finding(w, f)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if wanted > 0 {
			a.say("%s", daybook.Count(wanted, "%d thing wants a person", "%d things want a person"))
			return &coded{code: daybook.ExitNeedsPerson, err: errors.New("told already"), silent: true}
		}
		return nil
	})
}

// levelText is the word for how bad it is.
func levelText(l control.Level) daybook.Text {
	switch l {
	case control.LevelOK:
		return daybook.Say("ok")
	case control.LevelWarn:
		return daybook.Say("warn")
	}
	return daybook.Say("bad")
}

// finding writes what was looked at, and beneath it what to do.
func (a *app) finding(w *bufio.Writer, f control.Finding) {
	glyph := map[control.Level]string{control.LevelOK: "✓", control.LevelWarn: "!", control.LevelBad: "✕"}[f.Level]
	lines := wrap(oneLine(a.lang.Say(f.What)), a.columns()-8)
	for i, line := range lines {
		if i == 0 {
			fmt.Fprintf(w, "%s %s %s\n", a.mark(glyph), pad(a.lang.Say(levelText(f.Level)), 5), line)
			continue
		}
		fmt.Fprintf(w, "        %s\n", line)
	}
	for i, line := range wrap(oneLine(a.lang.Say(f.Do)), a.columns()-10) {
		switch {
		case f.Do.IsZero():
		case i == 0:
			fmt.Fprintf(w, "        → %s\n", line)
		default:
			fmt.Fprintf(w, "          %s\n", line)
		}
	}
}
