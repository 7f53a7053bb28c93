package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook/calendar"
)

// version is set by the release build: -ldflags "-X main.version=1.2.3".
var version = ""

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: textVersion,
		Args:  atMost(0),
		RunE:  func(*cobra.Command, []string) error { return a.version() },
	}
}

// versionJSON is the answer of version --json.
type versionJSON struct {
	Schema     string `json:"schema"`
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	SQLite     string `json:"sqlite"`
	TZData     string `json:"tzdata"`
	TZDataFrom string `json:"tzdata_from"`
}

func (a *app) version() error {
	v := versionJSON{Schema: "daybook/version.v1", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, SQLite: sqliteVersion}
	v.Version, v.Commit = build()
	v.TZData, v.TZDataFrom = calendar.TZData()
	if a.flags.json {
		return a.printJSON(v)
	}
	commit := ""
	if v.Commit != "" {
		commit = " (" + v.Commit + ")"
	}
	_, err := fmt.Fprintf(a.Stdout, "daybook %s%s\n%s %s, sqlite %s, tzdata %s from %s\n", v.Version, commit, v.Go, v.Platform, v.SQLite, v.TZData, v.TZDataFrom)
	return err
}

// build returns the version and the commit this binary was built from, as far as they are known.
func build() (number, commit string) {
	number = version
	info, ok := debug.ReadBuildInfo()
	if ok {
		if number == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
			number = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	if number == "" {
		number = "devel"
	}
	return number, commit
}
