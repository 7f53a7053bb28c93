package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/runner"
)

// app is one call of the program: what it may touch, and what the global flags say.
type app struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Now            func() time.Time
	LookupEnv      func(string) (string, bool)
	ReadFile       func(string) ([]byte, error)
	LocalZone      func() string // IANA name of the machine's zone, or ""
	Width          func() int    // columns of the terminal that stdout is, 0 when it is none; may be nil
	Ask            func() bool   // somebody sits before stdin and stderr and can be asked; may be nil: nobody
	Exec           runner.Exec   // how commands are run; once listens to their output

	lang          lang.Printer  // what people read is said in; JSON and logs are English
	moved         *demoClock    // of the demo: Now is read from it
	url, localURL string        // where the door of serve is reached; empty: nowhere
	lease         time.Duration // of serve; 0: the engine's own
	flags         globals
	reads         bool   // the command only looks into the ledger
	fileZone      string // IANA name of the zone of the file; empty: none was read, or it names none
	helped        error  // what was wrong with a call for help
}

// readers are the verbs that only look into the ledger.
var readers = []string{"status", "doctor", "list", "show", "find", "logs", "watch"}

// globals are the flags of every command.
type globals struct {
	config, db, lang, showTZ                    string
	json, quiet, verbose, noColor, noInput, yes bool
}

// run runs one command and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	args = a.byDemoClock(args)
	a.lang = a.language(args)
	if a.dumb() && !slices.Contains(args, "--json") {
		a.Stdout, a.Stderr = asciiWriter{a.Stdout}, asciiWriter{a.Stderr}
	}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // none at all would be taken from the process
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.helped
	}
	if err == nil {
		return 0
	}
	if slices.Contains(args, "--json") { // flags may not have been read yet
		a.flags.json = true
	}
	a.report(whatToDo(err))
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "daybook",
		Short:             textRoot,
		Long:              textRootLong,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              cobra.ArbitraryArgs, // cobra's own check would answer in its own words
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.reads = slices.Contains(readers, cmd.Name())
			return a.checkGlobals()
		},
	}
	asked := root.Flags().Bool("version", false, textFlagVersion)
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked && len(args) == 0 {
			return a.version()
		}
		return needVerb(cmd, args)
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.flags.config, "config", "c", "", textFlagConfig)
	f.StringVar(&a.flags.db, "db", "", textFlagDB)
	f.BoolVar(&a.flags.json, "json", false, textFlagJSON)
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, textFlagQuiet)
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, textFlagVerbose)
	f.BoolVar(&a.flags.noColor, "no-color", false, textFlagNoColor)
	f.BoolVar(&a.flags.noInput, "no-input", false, textFlagNoInput)
	f.BoolVarP(&a.flags.yes, "yes", "y", false, textFlagYes)
	f.StringVar(&a.flags.lang, "lang", "", textFlagLang)
	f.StringVar(&a.flags.showTZ, "show-tz", "", textFlagShowTZ)
	for _, build := range commands {
		root.AddCommand(build(a))
	}
	root.AddCommand(laterCommands()...)
	help := newHelp(a)
	a.translate(help) // cobra adds it later
	root.SetHelpCommand(help)
	root.SetHelpFunc(a.help(root.HelpFunc()))
	a.completeTree(root)
	root.SetUsageFunc(a.usage)
	a.translate(root)
	return root
}

// writing gives a command that writes the flag to show only what it would do. It is not global: -n counts elsewhere.
func writing(cmd *cobra.Command, dryRun *bool) {
	cmd.Flags().BoolVarP(dryRun, "dry-run", "n", false, textFlagDryRun)
}

// checkGlobals checks the flags that every command has, before any of them does anything.
func (a *app) checkGlobals() error {
	if _, set := a.LookupEnv("NO_COLOR"); set {
		a.flags.noColor = true
	}
	if a.flags.showTZ != "" {
		if _, err := calendar.Zone(a.flags.showTZ); err != nil {
			return flagged("--show-tz", err)
		}
	}
	if _, ok := lang.Named(a.flags.lang); a.flags.lang != "" && !ok {
		return daybook.Invalid("--lang: %q is not known", daybook.Clip(a.flags.lang, 40)).WithHint("use en or zh-CN")
	}
	if a.flags.db != "" {
		if err := config.CheckDatabase(a.flags.db, false); err != nil {
			return flagged("--db", err)
		}
	}
	return nil
}

func flagged(flag string, err error) error {
	return daybook.Invalid("%s", flag).Because(err)
}

// configPath returns the file to read: --config, DAYBOOK_CONFIG, or daybook.yaml.
func (a *app) configPath() string {
	if a.flags.config != "" {
		return a.flags.config
	}
	if path, ok := a.LookupEnv("DAYBOOK_CONFIG"); ok && path != "" {
		return path
	}
	return config.DefaultPath
}

// vault is where references to secrets are looked up.
func (a *app) vault() config.Vault {
	return config.Vault{LookupEnv: a.LookupEnv, ReadFile: a.ReadFile}
}

// databaseURL returns the ledger of this call, secrets included: --db, DAYBOOK_DB, or what the file says. Without a file
// (nil) and without either of them it is an error.
func (a *app) databaseURL(f *config.File) (string, error) {
	text := a.flags.db
	if env, ok := a.LookupEnv("DAYBOOK_DB"); text == "" && ok && env != "" {
		if err := config.CheckDatabase(env, true); err != nil {
			return "", flagged("DAYBOOK_DB", err)
		}
		text = env
	}
	if text == "" {
		if f == nil {
			return "", a.noLedger()
		}
		return f.DatabaseURL(a.vault())
	}
	return (&config.File{Database: config.NewSecret(text)}).DatabaseURL(a.vault())
}

// noLedger says which ledgers could have been meant.
func (a *app) noLedger() error {
	err := daybook.Invalid("no ledger is named, and there is no %s here", config.DefaultPath)
	if own := onceLedger(); isFile(own) {
		return err.WithHint("that of daybook once is --db sqlite:%s; -c FILE names another file, daybook init writes a first one", own)
	}
	return err.WithHint("daybook init writes a first file; -c FILE names one, --db sqlite:PATH a ledger")
}

// displayZone returns the zone to show times in: --show-tz, or the given one.
func (a *app) displayZone(own *time.Location) *time.Location {
	if a.flags.showTZ != "" {
		if loc, err := calendar.Zone(a.flags.showTZ); err == nil {
			return loc
		}
	}
	return own
}

// say writes talk, which is not data, to stderr, unless --quiet or --json.
func (a *app) say(format string, args ...any) {
	if !a.flags.quiet && !a.flags.json {
		fmt.Fprintln(a.Stderr, a.lang.F(format, args...))
	}
}

// printJSON writes one value on one line. Signs such as < stay as they are: a terminal is no web page.
func (a *app) printJSON(v any) error { return writeJSON(a.Stdout, v) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// coded is an error with an exit code of its own; silent ones were told already.
type coded struct {
	code   int
	err    error
	silent bool
	// oneLine: the last line that is printed says what went wrong, as the last line of a command is taken for its reason.
	oneLine bool
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// exitCode maps an error to the exit code that scripts rely on.
func exitCode(err error) int {
	var c *coded
	if errors.As(err, &c) {
		return c.code
	}
	switch daybook.CodeOf(err) {
	case daybook.CodeInvalid:
		return 2
	case daybook.CodeConflict:
		return 4
	case daybook.CodeNotFound:
		return 5
	case daybook.CodeUnavailable:
		return 6
	}
	return 1
}

// report writes an error for people, or as one JSON object. Passwords in what a library said are masked.
func (a *app) report(err error) {
	var c *coded
	if errors.As(err, &c) && c.silent {
		return
	}
	var faults config.Errors
	isFile := errors.As(err, &faults)
	if a.flags.json {
		var v any = errorJSON{"daybook/error.v1", string(daybook.CodeOf(err)), config.Mask(err.Error()), daybook.HintOf(err), nil}
		if isFile {
			v = errorJSON{"daybook/error.v1", string(daybook.CodeInvalid), tellFaults(faults).String(), "", faults}
		}
		_ = writeJSON(a.Stderr, v) // nobody is left to tell
		return
	}
	if isFile {
		fmt.Fprintf(a.Stderr, "%s\ndaybook: %s\n", faults.In(a.lang), a.lang.Say(tellFaults(faults)))
		return
	}
	if c != nil && c.oneLine {
		fmt.Fprintf(a.Stderr, "daybook: %s\n", inOneLine(severalLines.Replace(config.Mask(a.lang.Error(err))), a.lang.Hint(err)))
		return
	}
	a.tellError(err)
	if hint := a.lang.Hint(err); hint != "" {
		fmt.Fprintf(a.Stderr, "  → %s\n", hint)
	}
}

// tellError says on one line what went wrong, secrets masked.
func (a *app) tellError(err error) {
	fmt.Fprintf(a.Stderr, "daybook: %s\n", severalLines.Replace(config.Mask(a.lang.Error(err))))
}

// inOneLine puts what to do behind what went wrong.
func inOneLine(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + " (" + hint + ")"
}

// severalLines brings what a library, or several errors, said in lines onto one.
var severalLines = strings.NewReplacer("\n\t", " ", "\n", "; ", "\t", " ")

type errorJSON struct {
	Schema  string         `json:"schema"`
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Hint    string         `json:"hint,omitempty"`
	Faults  []config.Fault `json:"faults,omitempty"`
}

func tellFaults(faults config.Errors) daybook.Text {
	return daybook.Count(len(faults), "%d fault in %s", "%d faults in %s", faults[0].File)
}

// noun makes a command that only holds others.
func noun(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: needVerb}
	cmd.AddCommand(verbs...)
	return cmd
}

// needVerb answers a call that names no command of ours: help for a bare one, else what was probably meant.
func needVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !cmd.HasParent() {
		return cmd.Help()
	}
	names := verbs(cmd)
	if len(args) == 0 {
		return daybook.Invalid("%s what?", cmd.CommandPath()).WithHint("one of: %s", strings.Join(names, " "))
	}
	err := daybook.Invalid("unknown command %q for %q", daybook.Clip(args[0], 40), cmd.CommandPath())
	if near := daybook.Nearest(args[0], names); near != "" {
		return err.WithHint("did you mean %s %s?", cmd.CommandPath(), near)
	}
	if !cmd.HasParent() {
		if path := soleVerb(cmd, args[0]); path != "" {
			return err.WithHint("did you mean %s?", path)
		}
	}
	return err.WithHint("one of: %s", strings.Join(names, " "))
}

// soleVerb finds the one command of that name among the verbs of the groups; empty: there is none, or more than one.
func soleVerb(root *cobra.Command, name string) (path string) {
	for _, group := range root.Commands() {
		for _, verb := range group.Commands() {
			if verb.Name() != name || verb.Hidden {
				continue
			}
			if path != "" {
				return ""
			}
			path = verb.CommandPath()
		}
	}
	return path
}

// flagError says what is wrong with a flag, and which one was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	// The flags of a misspelt command are not known to its group: the command is the slip.
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return needVerb(cmd, words)
	}
	out := badFlag(err).WithHint("%s --help lists the flags", cmd.CommandPath())
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if unknown.GetSpecifiedName() == "confirm" {
			return out.WithHint("this is confirmed with --yes (-y), where it asks at all")
		}
		var names []string
		add := func(f *pflag.Flag) { names = append(names, f.Name) }
		cmd.Flags().VisitAll(add)
		cmd.InheritedFlags().VisitAll(add)
		if near := daybook.Nearest(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
			return out.WithHint("did you mean --%s?", near)
		}
	}
	return out
}

// badFlag says in our words what pflag says in its own.
func badFlag(err error) *daybook.Error {
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return daybook.Invalid("unknown shorthand flag: %q in -%s", unknown.GetSpecifiedName()[0], unknown.GetSpecifiedShortnames())
	case errors.As(err, &unknown):
		return daybook.Invalid("unknown flag: --%s", unknown.GetSpecifiedName())
	case errors.As(err, &empty) && empty.GetSpecifiedShortnames() != "":
		return daybook.Invalid("flag needs an argument: %q in -%s", empty.GetSpecifiedName()[0], empty.GetSpecifiedShortnames())
	case errors.As(err, &empty):
		return daybook.Invalid("flag needs an argument: --%s", empty.GetSpecifiedName())
	case errors.As(err, &wrong):
		return daybook.Invalid("invalid argument %q for %q flag", daybook.Clip(wrong.GetValue(), 60), "--"+wrong.GetFlag().Name).Because(plainValue(errors.Unwrap(wrong)))
	case errors.As(err, &syntax):
		return daybook.Invalid("bad flag syntax: %s", syntax.GetSpecifiedFlag())
	}
	return daybook.Invalid("%s", err)
}

// plainValue leaves out of an error what people did not write: which function refused the value.
func plainValue(err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) {
		return number.Err
	}
	if err != nil && strings.HasPrefix(err.Error(), "time: ") {
		return daybook.Invalid("a duration is written 90s, 10m or 1h30m")
	}
	return err
}

// exactly checks the number of arguments and names them when some are missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return daybook.Invalid("%s: %s is missing", cmd.CommandPath(), names[len(args)]).WithHint("%s", useLine(cmd))
		case len(args) > len(names):
			return tooMany(cmd, args[len(names)])
		}
		return nil
	}
}

// atMost checks the number of arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return tooMany(cmd, args[n])
		}
		return nil
	}
}

func tooMany(cmd *cobra.Command, arg string) error {
	return daybook.Invalid("%s: %q is one argument too many", cmd.CommandPath(), daybook.Clip(arg, 40)).
		WithHint("%s; a text with spaces is put in quotes", useLine(cmd))
}
