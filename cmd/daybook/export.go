package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
)

func newExport(a *app) *cobra.Command {
	return noun("export", textExport, newExportJobs(a), newExportActivity(a), notYet("differences"))
}

func newExportJobs(a *app) *cobra.Command {
	var asCSV bool
	cmd := &cobra.Command{
		Use: "jobs", Short: textExportJobs, Long: textExportJobsLong, Args: exactly(),
		Example: "  daybook export jobs > jobs.jsonl\n  daybook export jobs --csv > jobs.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.export(cmd.Context(), asCSV, jobColumns, func(ctx context.Context, c *control.Control, out *exporter) error {
				views, err := c.Jobs(ctx)
				if err != nil {
					return err
				}
				for _, v := range views {
					if err := out.put(jobShowJSON{newJobViewJSON(v), v.Words, newDefinitionJSON(v.Job)}, func() []string { return jobCells(v) }); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asCSV, "csv", false, textFlagCSV)
	return cmd
}

func newExportActivity(a *app) *cobra.Command {
	var asCSV bool
	var since string
	cmd := &cobra.Command{
		Use: "activity", Short: textExportActivity, Long: textExportActivityLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var from time.Time
			if since != "" {
				d, err := config.ParseDuration(since)
				if err != nil {
					return flagged("--since", err)
				}
				from = a.Now().Add(-time.Duration(d))
			}
			return a.export(cmd.Context(), asCSV, activityColumns, func(ctx context.Context, c *control.Control, out *exporter) error {
				return c.EachActivity(ctx, from, func(t daybook.Activity) error {
					return out.put(newActivityJSON(t), func() []string { return activityCells(t) })
				})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "how far back: 90m, 26h, 7d (default: all)")
	f.BoolVar(&asCSV, "csv", false, textFlagCSV)
	return cmd
}

// exporter writes what is exported, one object a line, or as CSV.
type exporter struct {
	w   *bufio.Writer
	csv *csv.Writer // nil: JSON
}

func (e *exporter) put(v any, cells func() []string) error {
	if e.csv == nil {
		return writeJSON(e.w, v)
	}
	row := cells()
	for i := range row {
		row[i] = noFormula(row[i])
	}
	return e.csv.Write(row)
}

// noFormula keeps a spreadsheet from calculating a text that somebody wrote.
func noFormula(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// export writes what do puts, to the end, or fails: a part is never all.
func (a *app) export(ctx context.Context, asCSV bool, columns []string, do func(context.Context, *control.Control, *exporter) error) error {
	if asCSV && a.flags.json {
		return daybook.Invalid("--csv and --json are two answers").WithHint("leave one out: without --csv it is JSON")
	}
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		out := &exporter{w: bufio.NewWriter(a.Stdout)}
		if asCSV {
			out.csv = csv.NewWriter(io.Writer(out.w))
			if err := out.csv.Write(columns); err != nil {
				return err
			}
		}
		if err := do(ctx, c, out); err != nil {
			return err
		}
		if out.csv != nil {
			if out.csv.Flush(); out.csv.Error() != nil {
				return out.csv.Error()
			}
		}
		return out.w.Flush()
	})
}

// jobColumns are those of export jobs --csv. New ones come behind them.
var jobColumns = []string{"job", "priority", "owner", "schedule", "timezone", "window", "effects", "state", "last_good", "last_good_ended", "next", "next_window", "runbook"}

func jobCells(v control.JobView) []string {
	j := v.Job
	if j == nil {
		j = &daybook.Job{}
	}
	state := ""
	switch {
	case v.Retired():
		state = "retired"
	case v.Fault != "":
		state = "fault"
	case v.State.Paused:
		state = "paused"
	case v.Last != nil:
		state = string(v.Last.State)
	}
	return []string{v.Name, string(j.Priority), j.Owner, strings.ReplaceAll(j.Schedule, "\n", "; "), j.Timezone, string(j.Window), string(j.Effects),
		cmp.Or(state, "never ran"), v.LastGood.Key.Parts().Window, instantCell(v.LastGood.EndedAt), instantCell(v.Next.At), v.NextKey.Parts().Window, j.Runbook}
}

// activityColumns are those of export activity --csv. New ones come behind them.
var activityColumns = []string{"at", "actor", "action", "job", "key", "before", "after", "reason"}

func activityCells(t daybook.Activity) []string {
	return []string{instantCell(t.At), t.Actor, t.Action, cmp.Or(t.Job, t.Key.Job()), string(t.Key), t.Before, t.After, t.Note}
}

// instantCell writes an instant as JSON has it; none is empty.
func instantCell(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
