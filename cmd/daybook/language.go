package main

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
)

// language chooses the language of a call: --lang, DAYBOOK_LANG, then the locale of the machine (LC_ALL, LC_MESSAGES,
// LANG, the first that is set), else English. It reads the arguments before the flags are parsed, because help and what is
// wrong with a flag are said in it too. An unknown --lang is told later; an unknown DAYBOOK_LANG, which may stand in a
// crontab, must not keep a job from running.
func (a *app) language(args []string) lang.Printer {
	if l, ok := lang.Named(flagValue(args, "--lang")); ok {
		return lang.For(l)
	}
	env := func(name string) string {
		value, _ := a.LookupEnv(name)
		return value
	}
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale = env(name); locale != "" {
			break
		}
	}
	return lang.For(lang.Match(env("DAYBOOK_LANG"), locale))
}

// flagValue returns the last value that a flag has among arguments; behind -- stand the words of another program.
func flagValue(args []string, flag string) (value string) {
	for i, arg := range args {
		switch {
		case arg == "--":
			return value
		case arg == flag && i+1 < len(args):
			value = args[i+1]
		case strings.HasPrefix(arg, flag+"="):
			value = arg[len(flag)+1:]
		}
	}
	return value
}

// translate puts the help of all commands into the language of the call.
func (a *app) translate(cmd *cobra.Command) {
	if a.lang.Lang() == lang.English {
		return
	}
	cmd.Short, cmd.Long = a.lang.Phrase(cmd.Short), a.lang.Phrase(cmd.Long)
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) { f.Usage = a.lang.Phrase(f.Usage) })
	}
	for _, c := range cmd.Commands() {
		a.translate(c)
	}
}

// useLine is how a command is written. Names of what stands there are the same in every language; that there are flags is said.
func useLine(cmd *cobra.Command) daybook.Text {
	before, after, found := strings.Cut(cmd.UseLine(), "[flags]")
	if !found {
		return daybook.Say("%s", before)
	}
	return daybook.Say("%s%s%s", before, daybook.Say("[flags]"), after)
}

// usage writes how a command is used, in place of cobra's own, which is in one language.
func (a *app) usage(cmd *cobra.Command) error {
	w := bufio.NewWriter(cmd.OutOrStdout())
	head := func(text string) { fmt.Fprintf(w, "\n\n%s", text) }
	fmt.Fprint(w, a.lang.F("Usage:"))
	if cmd.Runnable() {
		fmt.Fprintf(w, "\n  %s", a.lang.Say(useLine(cmd)))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n  %s", a.lang.F("%s [command]", cmd.CommandPath()))
	}
	if cmd.HasExample() {
		head(a.lang.F("Examples:"))
		fmt.Fprintf(w, "\n%s", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		head(a.lang.F("Available Commands:"))
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(w, "\n  %s %s", pad(c.Name(), c.NamePadding()), c.Short)
			}
		}
	}
	if f := cmd.Flags().Lookup("help"); f != nil {
		f.Usage = a.lang.F("help for %s", cmd.Name())
	}
	if cmd.HasAvailableLocalFlags() {
		head(a.lang.F("Flags:"))
		fmt.Fprintf(w, "\n%s", a.flagUsages(cmd.LocalFlags()))
	}
	if cmd.HasAvailableInheritedFlags() {
		head(a.lang.F("Global Flags:"))
		fmt.Fprintf(w, "\n%s", a.flagUsages(cmd.InheritedFlags()))
	}
	if cmd.HasAvailableSubCommands() {
		head(a.lang.F("Use \"%s [command] --help\" for more information about a command.", cmd.CommandPath()))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// defaultValue is what pflag says of the default of a flag.
var defaultValue = regexp.MustCompile(`(?m) \(default (.+)\)$`)

func (a *app) flagUsages(flags *pflag.FlagSet) string {
	text := strings.TrimRight(flags.FlagUsages(), " \n")
	return defaultValue.ReplaceAllStringFunc(text, func(found string) string {
		return a.lang.F(" (default %s)", defaultValue.FindStringSubmatch(found)[1])
	})
}
