package main

import (
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

func newInit(a *app) *cobra.Command {
	var zone string
	var dryRun bool
	cmd := &cobra.Command{
		Use:     "init [FILE]",
		Short:   textInit,
		Long:    textInitLong,
		Example: textInitExample,
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := a.configPath()
			if len(args) == 1 {
				path = args[0]
			}
			if cmd.Flags().Changed("zone") {
				if _, err := calendar.Zone(zone); err != nil {
					return flagged("--zone", err)
				}
			} else if zone = a.LocalZone(); zone == "" {
				zone = "UTC"
			}
			return a.init(path, zone, dryRun)
		},
	}
	cmd.Flags().StringVar(&zone, "zone", "", textFlagInitZone)
	writing(cmd, &dryRun)
	return cmd
}

// init writes a first file. It never touches one that is there.
func (a *app) init(path, zone string, dryRun bool) error {
	text := strings.ReplaceAll(initFile, initZone, zone)
	if dryRun {
		_, err := a.Stdout.Write([]byte(text))
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return daybook.Conflict("%s exists and is left as it is", path).WithHint("daybook check %s reads it; daybook init OTHER.yaml writes another", path)
	case err != nil:
		return &daybook.Error{Code: daybook.CodeInvalid, Message: "write " + path, Err: plain(err), Hint: "name a file in a directory that you may write to"}
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return &daybook.Error{Code: daybook.CodeInternal, Message: "write " + path, Err: plain(err)}
	}
	next := "daybook check"
	if path != config.DefaultPath {
		next += " " + path
	}
	if a.flags.json {
		return a.printJSON(map[string]string{"schema": "daybook/init.v1", "file": path, "timezone": zone, "next": next})
	}
	a.say("wrote %s with the time zone %s: read it, change it, then:  %s", path, zone, next)
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
