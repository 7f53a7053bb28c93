package config

import (
	"regexp"

	"github.com/daybook-run/daybook/calendar"
)

var (
	databaseLine = regexp.MustCompile(`(?m)^database:[ \t]*["']?([^"'#\s]+)`)
	timezoneLine = regexp.MustCompile(`(?m)^timezone:[ \t]*["']?([^"'#\s]+)`)
)

// PlaceOf reads of a file that has faults where its ledger is, and its zone, as far as its own lines say so: a look into the
// ledger need not wait until the file is mended. Nothing else of the file is in what it returns.
func PlaceOf(path string, text []byte) *File {
	f := &File{Path: path, Database: Secret{DefaultDatabase}}
	if m := databaseLine.FindSubmatch(text); m != nil {
		f.Database = NewSecret(string(m[1]))
	}
	if m := timezoneLine.FindSubmatch(text); m != nil {
		if _, err := calendar.Zone(string(m[1])); err == nil {
			f.Timezone = string(m[1])
		}
	}
	return f
}
