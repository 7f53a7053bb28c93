package main

import (
	"bufio"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// shells are those that a completion script is written for, with what writes it.
var shells = []struct {
	name  string
	write func(root *cobra.Command, w io.Writer) error
}{
	{"bash", func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
	{"zsh", (*cobra.Command).GenZshCompletion},
	{"fish", func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
	{"powershell", (*cobra.Command).GenPowerShellCompletionWithDesc},
}

func newCompletion(a *app) *cobra.Command {
	names := make([]string, len(shells))
	for i, s := range shells {
		names[i] = s.name
	}
	return &cobra.Command{
		Use: "completion " + strings.Join(names, "|"), Short: textCompletion, Long: textCompletionLong, Example: textCompletionExample,
		Args: exactly("SHELL"), ValidArgsFunction: words(names...),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range shells {
				if s.name != args[0] {
					continue
				}
				w := bufio.NewWriter(a.Stdout)
				if err := s.write(cmd.Root(), w); err != nil {
					return err
				}
				return w.Flush()
			}
			err := daybook.Invalid("completion: shell %q is not known", daybook.Clip(args[0], 40))
			if near := daybook.Nearest(args[0], names); near != "" {
				return err.WithHint("did you mean %s?", near)
			}
			return err.WithHint("one of: %s", strings.Join(names, " "))
		},
	}
}

// words completes to one of some words, for the first argument.
func words(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(list, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// value completes the value of a flag to one of some words.
func value(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return beginning(list, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(list []string, prefix string) (found []string) {
	for _, word := range list {
		if strings.HasPrefix(word, prefix) {
			found = append(found, word)
		}
	}
	return found
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// files are the flags and arguments that name a file: there the shell completes by itself.
var (
	fileFlags = []string{"config", "payload", "token-file"}
	fileArgs  = []string{"daybook check", "daybook init", "daybook db backup", "daybook man", "daybook once", "daybook import crontab", "daybook import systemd"}
)

// completeTree gives each flag and each argument its completion: by its name where it is always the same, else none. A
// shell that is told nothing would offer the files of the directory.
func (a *app) completeTree(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.completeTree(sub)
	}
	complete := func(f *pflag.Flag) {
		if _, set := cmd.GetFlagCompletionFunc(f.Name); set || f.Value.Type() == "bool" {
			return
		}
		if fn := a.completionOf(f.Name); fn != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, fn) // the flag is there, and has none yet
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(complete)
	cmd.PersistentFlags().VisitAll(complete)
	if cmd.ValidArgsFunction == nil && !isOneOf(fileArgs, cmd.CommandPath()) {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

func isOneOf(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}

// completionOf is the completion of a flag's value, nil where the shell's own is right.
func (a *app) completionOf(flag string) cobra.CompletionFunc {
	switch flag {
	case "job":
		return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.completeJobs(cmd, nil, prefix)
		}
	case "state":
		return value(texts(daybook.States)...)
	case "effects":
		return value(string(daybook.Once), string(daybook.Repeatable))
	case "as":
		return value(string(daybook.AsDone), string(daybook.AsNotDone), string(daybook.AsAsk))
	case "step":
		return value(daybook.StepRun)
	case "group":
		return value("error")
	case "example":
		return value(exampleNames...)
	case "lang":
		return value("en", "zh-CN")
	case "tz", "zone", "show-tz":
		return value(calendar.Zones()...)
	}
	if isOneOf(fileFlags, flag) {
		return nil
	}
	return cobra.NoFileCompletions
}
