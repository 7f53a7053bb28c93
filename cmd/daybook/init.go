package main

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/config"
)

//go:embed init.yaml
var initFile string

// initZone is the place of the zone in initFile.
const initZone = "@ZONE@"

// initOptions is what init was asked for.
type initOptions struct {
	zone, example       string
	fromCrontab, dryRun bool
}

func newInit(a *app) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:     "init [FILE|DIR]",
		Short:   textInit,
		Long:    textInitLong,
		Example: textInitExample,
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := a.configPath()
			if len(args) == 1 {
				path = args[0]
			}
			if o.example != "" {
				if o.fromCrontab || o.zone != "" {
					return daybook.Invalid("--example goes with neither --from-crontab nor --zone").WithHint("the example has a file and a zone of its own")
				}
				if len(args) == 0 {
					path = "."
				}
				return a.initExample(path, o)
			}
			if cmd.Flags().Changed("zone") {
				if _, err := calendar.Zone(o.zone); err != nil {
					return flagged("--zone", err)
				}
			}
			if o.fromCrontab {
				return a.initFromCrontab(cmd.Context(), path, o)
			}
			if o.zone == "" {
				if o.zone = a.LocalZone(); o.zone == "" {
					o.zone = "UTC"
				}
			}
			return a.init(path, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.zone, "zone", "", textFlagInitZone)
	f.BoolVar(&o.fromCrontab, "from-crontab", false, textFlagFromCrontab)
	f.StringVar(&o.example, "example", "", textFlagExample)
	writing(cmd, &o.dryRun)
	return cmd
}

// init writes a first file. It never touches one that is there.
func (a *app) init(path string, o initOptions) error {
	text := strings.ReplaceAll(initFile, initZone, o.zone)
	if o.dryRun {
		_, err := a.Stdout.Write([]byte(text))
		return err
	}
	if err := writeNew(path, []byte(text), 0o644); err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(map[string]string{"schema": "daybook/init.v1", "file": path, "timezone": o.zone, "next": checkCommand(path)})
	}
	a.say("wrote %s with the time zone %s: read it, change it, then:  %s", path, o.zone, checkCommand(path))
	return nil
}

// initFromCrontab writes the file that the crontab of the user becomes.
func (a *app) initFromCrontab(ctx context.Context, path string, o initOptions) error {
	if _, err := os.Lstat(path); err == nil && !o.dryRun { // before anybody is asked anything
		return fileExists(path)
	}
	r, zone, err := a.importCrontab(ctx, nil, importFlags{zone: o.zone})
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.imported(r)
	}
	if err := writeNew(path, r.YAML, 0o600); err != nil { // a crontab may hold what nobody else may read
		return err
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"schema": "daybook/init.v1", "file": path, "timezone": zone, "next": checkCommand(path), "jobs": len(r.Jobs), "not_imported": len(r.Left)})
	}
	a.tellLeft(r)
	a.say("wrote %s with %d jobs of the crontab, all paused (%d not imported): read it, then:  %s", path, len(r.Jobs), len(r.Left), checkCommand(path))
	return nil
}

// checkCommand is what to type after a file was written.
func checkCommand(path string) string {
	if path == config.DefaultPath {
		return "daybook check"
	}
	return "daybook check " + shellWord(path)
}

func fileExists(path string) error {
	return daybook.Conflict("%s exists and is left as it is", path).WithHint("daybook check %s reads it; daybook init OTHER.yaml writes another", path)
}

// writeNew writes a file that is not there yet. What it could not write whole it takes away again.
func writeNew(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fileExists(path)
	case err != nil:
		return daybook.New(daybook.CodeInvalid, "write the file %s", path).Because(plain(err)).WithHint("name a file in a directory that you may write to")
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
		return daybook.New(daybook.CodeInternal, "write the file %s", path).Because(plain(err))
	}
	return nil
}

// plain drops what the message says already.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
