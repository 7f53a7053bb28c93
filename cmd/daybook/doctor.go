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
	What   string        `json:"what"`
	Do     string        `json:"do,omitempty"`
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
			a.say("%s a person", wants(wanted))
			return &coded{code: daybook.ExitNeedsPerson, err: errors.New("told already"), silent: true}
		}
		return nil
	})
}

func wants(n int) string {
	if n == 1 {
		return "1 thing wants"
	}
	return fmt.Sprintf("%d things want", n)
}

// finding writes what was looked at, and beneath it what to do.
func (a *app) finding(w *bufio.Writer, f control.Finding) {
	glyph := map[control.Level]string{control.LevelOK: "✓", control.LevelWarn: "!", control.LevelBad: "✕"}[f.Level]
	lines := wrap(oneLine(f.What), a.columns()-8)
	for i, line := range lines {
		if i == 0 {
			fmt.Fprintf(w, "%s %-5s %s\n", a.mark(glyph), f.Level, line)
			continue
		}
		fmt.Fprintf(w, "        %s\n", line)
	}
	for i, line := range wrap(oneLine(f.Do), a.columns()-10) {
		switch {
		case f.Do == "":
		case i == 0:
			fmt.Fprintf(w, "        → %s\n", line)
		default:
			fmt.Fprintf(w, "          %s\n", line)
		}
	}
}
