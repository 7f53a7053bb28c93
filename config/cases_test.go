package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
)

// refused parses a file with a job of that name and returns the one fault it must have.
func refused(t *testing.T, name string) config.Fault {
	t.Helper()
	_, err := config.Parse("daybook.yaml", []byte("version: 1\ntimezone: UTC\njobs:\n  "+name+": {owner: ops, run: [\"true\"]}\n"))
	var faults config.Errors
	if !errors.As(err, &faults) || len(faults) != 1 || daybook.CodeOf(err) != daybook.CodeInvalid {
		t.Fatalf("name %s: %v", name, err)
	}
	return faults[0]
}

func TestH48NamesPutIntoSQL(t *testing.T) {
	for _, name := range []string{`"a\"; drop table runs; --"`, `"Order Items"`, `"a'b"`, `"runs;--"`} {
		if f := refused(t, name); f.Line != 4 || f.Column == 0 || f.Hint == "" {
			t.Errorf("name %s: %+v", name, f)
		}
	}
}

func TestH62LineBreakInAName(t *testing.T) {
	f := refused(t, `"x\r\nBcc: a@b.test"`)
	if f.Line != 4 || strings.ContainsAny(f.Message+f.Hint, "\r\n") {
		t.Errorf("%+v", f)
	}
}
