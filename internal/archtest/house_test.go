package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The house: what each folder may import of this module, besides itself. They share the words of the root package and
// meet in rows of the database, so that a crash between any two of them is harmless. "." is the root package; what holds
// for a folder holds for those below it.
var (
	rooms = []string{"scheduler", "executor", "fanout", "outbox", "reconcile", "backfill", "heartbeat", "alert", "pruner", "control"}

	house = map[string][]string{
		".":        {},
		"calendar": {"."},
		"store":    {"."},
		"postgres": {"."}, // what database/sql has not
		"runner":   {"."},
		// each of the rooms: ".", "calendar"
		"httpapi":  {".", "control"},
		"web":      {".", "control"},
		"config":   {".", "calendar", "runner", "alert", "reconcile", "outbox"},
		"importer": {".", "calendar"}, // reads other schedulers' tables and writes a file; it knows no ledger
		"engine":   slices.Concat([]string{".", "calendar", "store", "runner", "internal/loop"}, rooms),

		"internal/loop":      {"."},
		"internal/outhttp":   {"."},
		"internal/userdb":    {"."},
		"internal/lang":      {"."},
		"internal/notice":    {"."}, // rows that store and alert share
		"internal/crash":     {},    // tests of the binary
		"internal/gateway":   {},    // the far side of the demo knows nothing of Daybook
		"internal/golden":    {},
		"internal/memdir":    {},
		"internal/pgtest":    {},
		"internal/mariatest": {},
		"internal/archtest":  {},
	}

	// Every folder but the root and internal may import these.
	furniture = []string{"internal/outhttp", "internal/userdb", "internal/lang", "internal/notice"}

	// These may import everything, but only cmd may import cmd.
	everything = []string{"cmd", "daybooktest", "sim", "examples"}

	// Only tests, and each other, import these; the first ones only tests of ours, so that they may bring a driver.
	ourTests = []string{"internal/pgtest", "internal/mariatest", "internal/memdir", "internal/golden", "internal/archtest", "store/storetest", "store/faultstore", "sim"}
	forTests = append([]string{"daybooktest"}, ourTests...)
)

// The driver of SQLite and the command line belong to the binary. Who uses the library brings a driver of their own: two
// copies of SQLite in one process break each other's locks.
var (
	sqliteDrivers = []string{"modernc.org/sqlite", "github.com/ncruces/go-sqlite3", "github.com/mattn/go-sqlite3", "github.com/glebarez/go-sqlite"}
	binaryOnly    = slices.Concat(sqliteDrivers, []string{"modernc.org", "github.com/spf13"})
)

// Tools of tests never reach a program that links the library.
var testTools = []string{"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "github.com/santhosh-tekuri/jsonschema", "pgregory.net/rapid"}

// folder returns the line of the house that holds for a directory.
func folder(dir string) (name string, known bool) {
	if dir == "." {
		return ".", true
	}
	for name := range house {
		if in(dir, []string{name}) {
			return name, true
		}
	}
	for _, name := range slices.Concat(rooms, everything) {
		if in(dir, []string{name}) {
			return name, true
		}
	}
	return "", false
}

// allowed reports whether a file that is no test may import a directory of this module.
func allowed(from, to string) bool {
	own, _ := folder(from)
	target, _ := folder(to)
	switch {
	case in(to, forTests):
		return in(from, forTests) || in(from, []string{"examples"})
	case target == "cmd":
		return own == "cmd"
	case slices.Contains(everything, own), own == target:
		return true
	case slices.Contains(furniture, target):
		return own != "." && !strings.HasPrefix(own, "internal/")
	case slices.Contains(rooms, own):
		return target == "." || target == "calendar"
	default:
		return slices.Contains(house[own], target)
	}
}

// imports returns the faults in what a file imports.
func imports(s *source) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	own, known := folder(s.dir())
	if !known {
		fault("%s: the house has no folder %s; give it a place in the table of internal/archtest and an ADR", s.path, s.dir())
		return faults
	}
	for _, spec := range s.file.Imports {
		p := importPath(spec)
		if spec.Name != nil && spec.Name.Name == "." {
			fault("%s: dot import of %s; write the name of the package at each use", s.at(spec), p)
		}
		if to, ours := inModule(p); ours {
			switch {
			case s.test() && in(to, []string{"cmd"}) && own != "cmd":
				fault("%s: a test outside cmd imports %s; run the binary instead", s.at(spec), to)
			case !s.test() && !allowed(s.dir(), to):
				fault("%s: %s may not import %s; meet in rows of the database, or move the shared words to the root package", s.at(spec), s.dir(), to)
			}
			continue
		}
		if s.test() {
			continue
		}
		if own == "." && strings.Contains(strings.Split(p, "/")[0], ".") {
			fault("%s: the root package imports %s; it has the standard library only", s.at(spec), p)
		}
		if in(p, testTools) && own != "." && !in(s.dir(), ourTests) {
			fault("%s: %s is a tool of tests", s.at(spec), p)
		}
		if in(p, sqliteDrivers) && !in(s.dir(), []string{"cmd/daybook"}) && !in(s.dir(), ourTests) {
			fault("%s: %s is imported by cmd/daybook only; take the caller's *sql.DB", s.at(spec), p)
		}
	}
	return faults
}

// inModule returns the directory of an import path of this module.
func inModule(p string) (dir string, ours bool) {
	if p == module {
		return ".", true
	}
	return strings.CutPrefix(p, module+"/")
}

func TestImports(t *testing.T) {
	drivers := map[string]bool{} // files that are no tests and import a driver of SQLite
	for _, s := range sources(t) {
		report(t, imports(s))
		for _, spec := range s.file.Imports {
			if in(importPath(spec), sqliteDrivers) && !s.test() && !in(s.dir(), ourTests) {
				drivers[s.path] = true
			}
		}
	}
	if len(drivers) > 1 {
		t.Errorf("the driver of SQLite is imported by %d files, so that it cannot be changed in one place: %v", len(drivers), drivers)
	}
}

// TestDependencies looks at everything a package brings with it, not only at what it imports itself.
func TestDependencies(t *testing.T) {
	type pkg struct {
		ImportPath string
		Deps       []string
	}
	// -e: a package that does not build at the moment is another test's business.
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Deps", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	n := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; n++ {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		dir, ours := inModule(p.ImportPath)
		if !ours || in(dir, []string{"cmd"}) || in(dir, ourTests) {
			continue
		}
		for _, dep := range p.Deps {
			if in(dep, binaryOnly) {
				t.Errorf("%s depends on %s, which belongs to cmd/daybook: whoever imports the library would inherit it", dir, dep)
			}
		}
	}
	if n < 5 {
		t.Errorf("go list names %d packages only", n)
	}
}

func TestImportsSeesViolations(t *testing.T) {
	for _, c := range []struct{ path, imports, want string }{
		{"key.go", module + "/calendar", ". may not import calendar"},
		{"key.go", "github.com/google/go-cmp/cmp", "standard library only"},
		{"key_test.go", "github.com/google/go-cmp/cmp", ""},
		{"config/a.go", "github.com/santhosh-tekuri/jsonschema/v6", "a tool of tests"},
		{"config/a_test.go", "github.com/santhosh-tekuri/jsonschema/v6", ""},
		{"calendar/a.go", module, ""},
		{"calendar/a.go", module + "/store", "calendar may not import store"},
		{"calendar/a.go", module + "/internal/lang", ""},
		{"store/a.go", module + "/calendar", "store may not import calendar"},
		{"store/a.go", module + "/store/storetest", "may not import"},
		{"store/a_test.go", module + "/store/storetest", ""},
		{"store/storetest/a.go", module + "/store", ""},
		{"scheduler/a.go", module + "/calendar", ""},
		{"scheduler/a.go", module + "/executor", "scheduler may not import executor"},
		{"scheduler/a.go", module + "/store", "scheduler may not import store"},
		{"scheduler/a_test.go", module + "/store", ""},
		{"scheduler/a.go", module + "/internal/loop", "may not import internal/loop"},
		{"outbox/a.go", module + "/internal/outhttp", ""},
		{"reconcile/a.go", module + "/internal/userdb", ""},
		{"runner/a.go", module + "/internal/outhttp", ""},
		{"internal/loop/a.go", module + "/internal/lang", "may not import"},
		{"httpapi/a.go", module + "/control", ""},
		{"httpapi/a.go", module + "/engine", "httpapi may not import engine"},
		{"web/a.go", module + "/httpapi", "web may not import httpapi"},
		{"config/a.go", module + "/alert", ""},
		{"config/a.go", module + "/control", "config may not import control"},
		{"importer/a.go", module + "/calendar", ""},
		{"importer/a.go", module + "/config", "importer may not import config"},
		{"engine/a.go", module + "/internal/loop", ""},
		{"engine/a.go", module + "/heartbeat", ""},
		{"engine/a.go", module + "/config", "engine may not import config"},
		{"engine/a.go", module + "/internal/pgtest", "may not import internal/pgtest"},
		{"engine/a.go", module + "/daybooktest", "may not import daybooktest"},
		{"sim/a.go", module + "/web", ""},
		{"sim/a.go", module + "/cmd/daybook", "may not import cmd/daybook"},
		{"sim/a_test.go", module + "/cmd/daybook", "a test outside cmd"},
		{"cmd/daybook/main.go", module + "/engine", ""},
		{"cmd/daybook/sqlite.go", "modernc.org/sqlite", ""},
		{"store/sqlite.go", "modernc.org/sqlite", "take the caller's *sql.DB"},
		{"store/sqlite_test.go", "modernc.org/sqlite", ""},
		{"store/storetest/a.go", "modernc.org/sqlite", ""},
		{"daybooktest/a.go", "modernc.org/sqlite", "take the caller's *sql.DB"},
		{"util/a.go", "fmt", "no folder util"},
		{"calendarx/a.go", "fmt", "no folder calendarx"},
	} {
		s, err := parse(c.path, []byte("package p\n\nimport _ \""+c.imports+"\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.path+" imports "+c.imports, imports(s), c.want)
	}
	s, err := parse("calendar/a.go", []byte("package p\n\nimport . \"time\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "a dot import", imports(s), "dot import of time")
}

// expect checks what a rule says of a planted source: nothing if want is empty, else one fault with these words.
func expect(t *testing.T, what string, faults []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(faults) > 0:
		t.Errorf("%s: refused: %q", what, faults)
	case want != "" && (len(faults) != 1 || !strings.Contains(faults[0], want)):
		t.Errorf("%s: got %q, want one fault with %q", what, faults, want)
	}
}
