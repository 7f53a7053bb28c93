package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/importer"
)

func newImport(a *app) *cobra.Command {
	return noun("import", textImport, newImportCrontab(a), newImportSystemd(a))
}

// importFlags are those of both imports.
type importFlags struct {
	zone     string
	system   bool
	obeyZone bool
}

func newImportCrontab(a *app) *cobra.Command {
	var o importFlags
	cmd := &cobra.Command{
		Use: "crontab [FILE|-]", Short: textImportCrontab, Long: textImportCrontabLong, Example: textImportCrontabExample, Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, _, err := a.importCrontab(cmd.Context(), args, o)
			if err != nil {
				return err
			}
			return a.imported(r)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.system, "system", false, textFlagSystem)
	f.StringVar(&o.zone, "zone", "", textFlagImportZone)
	f.BoolVar(&o.obeyZone, "obey-cron-tz", false, textFlagObeyZone)
	return cmd
}

func newImportSystemd(a *app) *cobra.Command {
	var o importFlags
	cmd := &cobra.Command{
		Use: "systemd [DIR]", Short: textImportSystemd, Long: textImportSystemdLong, Example: textImportSystemdExample, Args: atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := systemdDir
			if len(args) > 0 {
				dir = args[0]
			}
			r, err := a.importSystemd(dir, o)
			if err != nil {
				return err
			}
			return a.imported(r)
		},
	}
	cmd.Flags().StringVar(&o.zone, "zone", "", textFlagImportZone)
	return cmd
}

// Places of other schedulers.
const (
	systemTable  = "/etc/crontab"
	systemTables = "/etc/cron.d"
	systemdDir   = "/etc/systemd/system"
	maxTable     = 1 << 20 // bytes
)

// systemdOthers are where packages put units.
var systemdOthers = []string{"/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// imported writes the file on stdout and says what is not in it.
func (a *app) imported(r importer.Result) error {
	if a.flags.json {
		return a.printJSON(newImportJSON(r))
	}
	if _, err := a.Stdout.Write(r.YAML); err != nil {
		return err
	}
	a.tellImport(r)
	return nil
}

// importJSON is daybook/import.v1.
type importJSON struct {
	Schema string     `json:"schema"`
	Jobs   []string   `json:"jobs"`
	Left   []leftJSON `json:"not_imported"`
	YAML   string     `json:"yaml"`
}

type leftJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func newImportJSON(r importer.Result) importJSON {
	out := importJSON{Schema: "daybook/import.v1", Jobs: r.Jobs, Left: []leftJSON{}, YAML: string(r.YAML)}
	for _, l := range r.Left {
		out.Left = append(out.Left, leftJSON{l.File, l.Line, l.Column, l.Err.Error(), daybook.HintOf(l.Err)})
	}
	return out
}

// tellImport says what came out and what did not.
func (a *app) tellImport(r importer.Result) {
	a.tellLeft(r)
	a.say("%s", daybook.Count(len(r.Jobs), "%d job, all paused; %d not imported", "%d jobs, all paused; %d not imported", len(r.Left)))
	if others := a.otherUsers(r); len(others) > 0 {
		a.say("jobs run as %s: daybook serve must run as root for that", daybook.Words(others))
	}
	a.next("daybook check")
}

func (a *app) tellLeft(r importer.Result) {
	for _, l := range r.Left {
		a.say("%s: %s", l.Place(), l.Err)
		if hint := a.lang.Hint(l.Err); hint != "" {
			a.say("  → %s", hint)
		}
	}
}

// otherUsers are the users that only root may run jobs as.
func (a *app) otherUsers(r importer.Result) []string {
	me, err := user.Current()
	if err != nil || me.Uid == "0" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Users), func(name string) bool { return name == me.Username })
}

// importCrontab reads the tables that a call names and returns what they become, and the zone.
func (a *app) importCrontab(ctx context.Context, args []string, o importFlags) (importer.Result, string, error) {
	tables, what, err := a.tables(ctx, args, o.system)
	if err != nil {
		return importer.Result{}, "", err
	}
	options, err := a.importOptions(o)
	if err != nil {
		return importer.Result{}, "", err
	}
	if len(args) > 0 && !isSystemTable(args[0]) { // it may be of another machine, whose directories have other programs
		options.Scripts = nil
	}
	if !options.ObeyZone && a.interactive() && slices.ContainsFunc(tables, func(t importer.Table) bool { return cronZone.Match(t.Text) }) {
		answer, err := a.ask(a.lang.F("CRON_TZ moves the fires of cronie (Fedora, RHEL, Arch); Debian's cron ignores it, and has been firing in %s. Was it cronie? [y/N] ", options.Zone))
		if err != nil {
			return importer.Result{}, "", err
		}
		options.ObeyZone = strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
	}
	r := importer.Crontab(tables, what, options)
	return r, options.Zone, a.nothing(r, what)
}

func isSystemTable(path string) bool {
	return path == systemTable || filepath.Dir(path) == systemTables
}

var cronZone = regexp.MustCompile(`(?m)^[ \t]*["']?CRON_TZ["']?[ \t]*=`)

// nothing is the error of an import without a job.
func (a *app) nothing(r importer.Result, what string) error {
	if len(r.Jobs) > 0 {
		return nil
	}
	a.tellLeft(r)
	if len(r.Left) > 0 {
		return daybook.Invalid("%s: nothing could be imported", what).WithHint("each place is named above; daybook init writes a first file")
	}
	return daybook.Invalid("%s: there is nothing to import", what).WithHint("daybook init writes a first file")
}

// importOptions are what the machine adds.
func (a *app) importOptions(o importFlags) (importer.Options, error) {
	options := importer.Options{Zone: o.zone, Owner: a.person().Name, ObeyZone: o.obeyZone, Home: homeOf, Scripts: scriptsOf, Now: a.Now()}
	if o.zone != "" {
		if _, err := calendar.Zone(o.zone); err != nil {
			return options, flagged("--zone", err)
		}
	} else if options.Zone = a.LocalZone(); options.Zone == "" {
		options.Zone = "UTC"
	}
	return options, nil
}

func homeOf(name string) string {
	u, err := user.Lookup(name)
	if name == "" {
		u, err = user.Current()
	}
	if err != nil {
		return ""
	}
	return u.HomeDir
}

var scriptName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// scriptsOf lists what run-parts would start.
func scriptsOf(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && scriptName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// tables reads what a call names: a file, stdin, the tables of the system, or that of the user.
func (a *app) tables(ctx context.Context, args []string, system bool) ([]importer.Table, string, error) {
	me := a.person().Name
	what := "daybook import crontab"
	switch {
	case len(args) == 0 && system:
		tables, err := a.systemTables()
		return tables, what + " --system", err
	case len(args) == 0:
		text, err := a.ownTable(ctx, me)
		return []importer.Table{{Name: "crontab", Text: text, User: me, Edit: "crontab -e"}}, what, err
	}
	path := args[0]
	table := importer.Table{Name: path, System: system, User: me, Edit: "sudoedit " + path}
	if isSystemTable(path) {
		table.System = true
	}
	if table.System {
		table.User = ""
	}
	var err error
	if !table.System {
		table.Edit = "edit " + path
	}
	if path == "-" {
		table.Name, table.Edit = "crontab", "crontab -e"
		if table.Text, err = io.ReadAll(io.LimitReader(a.Stdin, maxTable+1)); err != nil {
			return nil, what, daybook.New(daybook.CodeInvalid, "read stdin").Because(err)
		}
	} else if table.Text, err = a.ReadFile(path); err != nil {
		return nil, what, daybook.New(daybook.CodeInvalid, "read %s", path).Because(plain(err)).WithHint("without a FILE the table of the user is read, with - stdin")
	}
	if len(table.Text) > maxTable {
		return nil, what, daybook.Invalid("%s has more than %d bytes", path, maxTable).WithHint("a crontab is small: is it the right file?")
	}
	return []importer.Table{table}, what + " " + path, nil
}

// systemTables reads /etc/crontab and /etc/cron.d, as cron does: no names with dots there.
func (a *app) systemTables() (tables []importer.Table, err error) {
	paths := []string{systemTable}
	entries, err := os.ReadDir(systemTables)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, daybook.New(daybook.CodeInvalid, "read %s", systemTables).Because(plain(err))
	}
	for _, e := range entries {
		if !e.IsDir() && scriptName.MatchString(e.Name()) {
			paths = append(paths, filepath.Join(systemTables, e.Name()))
		}
	}
	for _, path := range paths {
		text, err := a.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, daybook.New(daybook.CodeInvalid, "read %s", path).Because(plain(err))
		default:
			tables = append(tables, importer.Table{Name: path, Text: text, System: true, Edit: "sudoedit " + path})
		}
	}
	if len(tables) == 0 {
		return nil, daybook.Invalid("there is neither %s nor %s", systemTable, systemTables).WithHint("without --system the table of the user is read")
	}
	return tables, nil
}

// ownTable asks crontab for the table of the user.
func (a *app) ownTable(ctx context.Context, me string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "crontab", "-l")
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return text, nil
	case errors.As(err, &exit) && strings.Contains(said.String(), "no crontab"):
		return nil, daybook.Invalid("%s has no crontab", me).WithHint("name a file, or --system for those of the machine; daybook init writes a first file")
	case errors.As(err, &exit):
		return nil, daybook.Invalid("crontab -l: %s", oneLine(said.String())).WithHint("daybook import crontab FILE reads a file, - reads stdin")
	}
	return nil, daybook.Invalid("crontab cannot be started: %s", err).WithHint("is cron installed? daybook import crontab FILE reads a file, - reads stdin")
}

// importSystemd reads the timers of a directory.
func (a *app) importSystemd(dir string, o importFlags) (importer.Result, error) {
	options, err := a.importOptions(o)
	if err != nil {
		return importer.Result{}, err
	}
	units, err := a.units(dir, ".timer", ".service")
	if err != nil {
		return importer.Result{}, err
	}
	if dir == systemdDir { // a timer there may start a service that a package brought
		for _, other := range systemdOthers {
			services, err := a.units(other, ".service")
			if err != nil {
				continue // not there
			}
			units = append(units, slices.DeleteFunc(services, func(u importer.Unit) bool {
				return slices.ContainsFunc(units, func(known importer.Unit) bool { return known.Name == u.Name })
			})...)
		}
	}
	m := importer.Manager{Dir: dir, User: strings.Contains(filepath.ToSlash(dir), "systemd/user"), Enabled: func(timer string) bool {
		found, err := filepath.Glob(filepath.Join(dir, "*.wants", timer))
		return err != nil || len(found) > 0
	}}
	what := "daybook import systemd " + dir
	r := importer.Systemd(units, m, what, options)
	return r, a.nothing(r, what)
}

// units reads the units of some kinds of a directory, each with its drop-ins.
func (a *app) units(dir string, kinds ...string) (units []importer.Unit, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, daybook.New(daybook.CodeInvalid, "read %s", dir).Because(plain(err)).WithHint("name the directory with the .timer and .service files")
	}
	paths := map[string]string{}
	for _, e := range entries {
		paths[e.Name()] = filepath.Join(dir, e.Name())
	}
	enabled, err := filepath.Glob(filepath.Join(dir, "*.wants", "*@?*.timer")) // instances of templates
	if err != nil {
		return nil, err
	}
	for _, path := range enabled {
		paths[filepath.Base(path)] = path
	}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		if !slices.Contains(kinds, filepath.Ext(name)) {
			continue
		}
		drops, err := filepath.Glob(filepath.Join(dir, name+".d", "*.conf"))
		if err != nil {
			return nil, err
		}
		u := importer.Unit{Name: name}
		for _, path := range append([]string{paths[name]}, drops...) {
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || info.Size() > maxTable { // a link to nothing, or to /dev/null: masked
				continue
			}
			text, err := a.ReadFile(path)
			if err != nil {
				return nil, daybook.New(daybook.CodeInvalid, "read %s", path).Because(plain(err))
			}
			u.Files = append(u.Files, importer.UnitFile{Path: path, Text: text})
		}
		if len(u.Files) > 0 {
			units = append(units, u)
		}
	}
	return units, nil
}
