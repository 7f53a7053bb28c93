package main

import (
	"path/filepath"
	"strings"
	_ "time/tzdata" // images without zone data must know every zone

	"github.com/daybook-run/daybook/calendar"
)

// machineZone returns the IANA name of the machine's time zone, or "" when it has none that can be told. It is proposed
// by init, which writes it down; nothing else asks it.
func machineZone() string {
	target, err := filepath.EvalSymlinks("/etc/localtime")
	if err != nil {
		return ""
	}
	_, name, ok := strings.Cut(target, "zoneinfo/")
	if !ok {
		return ""
	}
	if name == "Etc/UTC" {
		return "UTC"
	}
	if _, err := calendar.Zone(name); err != nil {
		return ""
	}
	return name
}
