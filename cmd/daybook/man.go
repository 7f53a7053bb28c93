package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-run/daybook"
)

func newMan(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "man DIR", Short: textMan, Long: textManLong, Example: textManExample, Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.man(cmd.Root(), args[0], dry) },
	}
	writing(cmd, &dry)
	return cmd
}

// manJSON is daybook/man.v1.
type manJSON struct {
	Schema string   `json:"schema"`
	Dir    string   `json:"dir"`
	Pages  []string `json:"pages"`
	DryRun bool     `json:"dry_run,omitempty"`
}

// man writes a page for each command that can be used.
func (a *app) man(root *cobra.Command, dir string, dry bool) error {
	j := manJSON{Schema: "daybook/man.v1", Dir: dir, DryRun: dry}
	if !dry {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return daybook.Invalid("make the directory %s", dir).Because(plain(err))
		}
	}
	version, _ := build()
	for _, cmd := range tree(root) {
		name := manName(cmd) + ".1"
		j.Pages = append(j.Pages, name)
		if dry {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(a.manPage(cmd, version)), 0o644); err != nil {
			return daybook.Invalid("write the file %s", filepath.Join(dir, name)).Because(plain(err))
		}
	}
	if a.flags.json {
		return a.printJSON(j)
	}
	if dry {
		_, err := fmt.Fprintln(a.Stdout, strings.Join(j.Pages, "\n"))
		a.dryRun()
		return err
	}
	err := a.line("%s", daybook.Count(len(j.Pages), "%d page in %s", "%d pages in %s", dir))
	if len(j.Pages) == 0 {
		return errors.Join(err, daybook.New(daybook.CodeInternal, "no command has a page"))
	}
	a.next("man -l " + shellWord(filepath.Join(dir, j.Pages[0])))
	return err
}

// tree lists a command and those below it that can be used.
func tree(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, tree(c)...)
		}
	}
	return list
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage writes the page of a command, in the macros of man(7). It bears no date: the same program writes the same pages.
func (a *app) manPage(cmd *cobra.Command, version string) string {
	var w strings.Builder
	title := strings.ToUpper(manName(cmd))
	fmt.Fprintf(&w, ".TH %s 1 \"\" %s \"Daybook\"\n.nh\n", roffWord(title), roffWord("daybook "+version))
	fmt.Fprintf(&w, ".SH %s\n%s \\- %s\n", a.lang.F("NAME"), roff(manName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&w, ".SH %s\n.B %s\n", a.lang.F("SYNOPSIS"), roffWord(a.lang.Say(useLine(cmd))))
	if cmd.Long != "" {
		fmt.Fprintf(&w, ".SH %s\n%s", a.lang.F("DESCRIPTION"), paragraphs(cmd.Long))
	}
	a.manCommands(&w, cmd)
	a.manFlags(&w, a.lang.F("OPTIONS"), cmd.LocalFlags())
	a.manFlags(&w, a.lang.F("GLOBAL OPTIONS"), cmd.InheritedFlags())
	if !cmd.HasParent() {
		a.manTable(&w, a.lang.F("ENVIRONMENT"), environment)
		a.manTable(&w, a.lang.F("EXIT STATUS"), exitCodes)
	}
	if cmd.Example != "" {
		fmt.Fprintf(&w, ".SH %s\n.EX\n%s\n.EE\n", a.lang.F("EXAMPLES"), roff(cmd.Example))
	}
	a.manSeeAlso(&w, cmd)
	return w.String()
}

func (a *app) manCommands(w *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", a.lang.F("COMMANDS"))
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roffWord(c.Name()), roff(c.Short))
		}
	}
}

func (a *app) manFlags(w *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			name, usage := a.flagText(f)
			fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roffWord(name), roff(usage))
		}
	})
}

// flagText is how a flag is written, and what it means.
func (a *app) flagText(f *pflag.Flag) (name, usage string) {
	kind, usage := pflag.UnquoteUsage(f)
	name = "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "0s" && d != "[]" {
		usage += a.lang.F(" (default %s)", d)
	}
	return name, usage
}

func (a *app) manTable(w *strings.Builder, title string, rows []entry) {
	fmt.Fprintf(w, ".SH %s\n", title)
	for _, r := range rows {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roffWord(r.Name), roff(a.lang.Say(r.Text)))
	}
}

func (a *app) manSeeAlso(w *strings.Builder, cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, manName(cmd.Parent()))
		for _, c := range cmd.Parent().Commands() {
			if c != cmd && c.IsAvailableCommand() && cmd.Parent().HasParent() {
				names = append(names, manName(c))
			}
		}
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, manName(c))
		}
	}
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		names[i] = "\\fB" + roff(name) + "\\fR(1)"
	}
	fmt.Fprintf(w, ".SH %s\n%s\n", a.lang.F("SEE ALSO"), strings.Join(names, ", "))
}

// paragraphs writes a text whose paragraphs are apart by an empty line.
func paragraphs(s string) string {
	return roff(strings.ReplaceAll(s, "\n\n", "\n\x00")) + "\n"
}

var roffSigns = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n\x00", "\n.PP\n")

// roff writes a text so that each sign is itself, and no line of it is a request.
func roff(s string) string {
	lines := strings.Split(roffSigns.Replace(s), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") && line != ".PP" {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// roffWord writes a text as one argument of a request.
func roffWord(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `""`) + `"` }
