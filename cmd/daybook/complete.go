package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
)

// Completion is asked for between two key strokes: it is quick, and silent when it does not know.
const (
	completeWithin = 700 * time.Millisecond
	completeMost   = 100
)

// completing asks the ledger for words, for the first argument only unless many is set.
func (a *app) completing(many bool, find func(ctx context.Context, c *control.Control, prefix string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completeWithin)
		defer cancel()
		quiet := *a
		quiet.Stderr = io.Discard
		quiet.flags.quiet = true
		var words []string
		err := quiet.withControl(ctx, func(_ *ledger, c *control.Control) (err error) {
			words, err = find(ctx, c, toComplete)
			return err
		})
		if err != nil {
			slog.Debug("completion", "err", err)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeJobs knows the jobs of the ledger and those of the file, which it may not know yet.
func (a *app) completeJobs(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	list, directive := a.completing(false, jobNames)(cmd, args, toComplete)
	if f, err := config.Load(a.configPath()); err == nil && len(args) == 0 {
		for i := range f.Jobs {
			if name := f.Jobs[i].Name; strings.HasPrefix(name, toComplete) {
				list = append(list, name)
			}
		}
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return list, directive
}

func jobNames(ctx context.Context, c *control.Control, prefix string) ([]string, error) {
	views, err := c.Jobs(ctx)
	var names []string
	for _, v := range views {
		if strings.HasPrefix(v.Name, prefix) && !v.Retired() {
			names = append(names, v.Name)
		}
	}
	return names, err
}

func (a *app) completeKeys(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.completing(false, keys)(cmd, args, toComplete)
}

// keys completes the job first: the keys of all jobs are too many to choose from.
func keys(ctx context.Context, c *control.Control, prefix string) ([]string, error) {
	job, _, ok := strings.Cut(prefix, ":")
	if !ok {
		names, err := jobNames(ctx, c, job)
		for i := range names {
			names[i] += ":"
		}
		if len(names) != 1 {
			return names, err
		}
		prefix = names[0]
	}
	runs, err := c.Find(ctx, prefix, completeMost)
	list := make([]string, len(runs))
	for i, r := range runs {
		list[i] = string(r.Key)
	}
	return list, err
}

func (a *app) completeLetters(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.completing(true, letterKeys)(cmd, args, toComplete)
}

func letterKeys(ctx context.Context, c *control.Control, prefix string) ([]string, error) {
	letters, err := c.Letters(ctx, true, completeMost)
	var list []string
	for _, l := range letters {
		if strings.HasPrefix(string(l.Key), prefix) {
			list = append(list, string(l.Key))
		}
	}
	return list, err
}
