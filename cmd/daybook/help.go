package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
)

// newHelp is `daybook help`: the same as --help, for those who ask that way round.
func newHelp(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND…]", Short: textHelp, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return verbs(at), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return err
			case len(rest) > 0 && at.HasSubCommands():
				return needVerb(at, rest)
			case len(rest) > 0 && !isLater(at):
				return tooMany(at, rest[0])
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

// help wraps cobra's own help, which has no way to fail: what is asked about something that does not exist is an error,
// as it is without --help.
func (a *app) help(own func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		if a.helped = a.checkGlobals(); a.helped != nil {
			return
		}
		rest := cmd.Flags().Args()
		switch {
		case isLater(cmd):
			a.helped = notInThisVersion(cmd)
		case cmd.HasSubCommands() && len(rest) > 0:
			a.helped = needVerb(cmd, rest)
		default:
			own(cmd, args)
		}
	}
}

// verbs are the commands below one that can be used.
func verbs(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	return names
}

// later marks a command that the documentation names and this version does not have.
const later = "later"

// notYet answers a command that is known and not there yet. It is hidden: help lists what can be used.
func notYet(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, Args: cobra.ArbitraryArgs, FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		Annotations:       map[string]string{later: name},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return notInThisVersion(cmd) },
	}
}

func isLater(cmd *cobra.Command) bool { return cmd.Annotations[later] != "" }

// laterCommands are those of the first level.
func laterCommands() []*cobra.Command {
	names := []string{"checkpoint", "progress", "limit", "backfill", "reconcile", "diff", "accept", "audit", "outbox", "heartbeat"}
	list := make([]*cobra.Command, len(names))
	for i, name := range names {
		list[i] = notYet(name)
	}
	return list
}

// notInThisVersion says so, and what can be done today.
func notInThisVersion(cmd *cobra.Command) error {
	err := daybook.Invalid("%s is not available in this version", cmd.CommandPath())
	switch cmd.Annotations[later] {
	case "checkpoint", "progress", "limit":
		return err.WithHint("a run is one effect as a whole: effects: once, with probe or remembers")
	case "backfill":
		return err.WithHint("one window at a time: daybook job trigger JOB --date 2026-10-26")
	case "reconcile", "diff", "differences":
		return err.WithHint("a check of yours can be a job: one that exits 65 opens a dead letter")
	case "accept", "audit":
		return err.WithHint("daybook doctor looks at the last days")
	case "outbox":
		return err.WithHint("a message can be a job of its own, with effects: once")
	case "heartbeat":
		return err.WithHint("expect: {max_silence: 26h} watches the jobs of the file")
	case "start", "check":
		return err.WithHint("daybook job pause JOB --reason … holds one job")
	case "restore":
		return err.WithHint("stop every serve and put the copy in place of the ledger's file; it knows nothing of what was done since")
	}
	return err
}
