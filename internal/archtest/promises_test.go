package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The promises in force, and the cases from the field that have come up so far: each is a row of its document, and each
// row names what shows it.
var (
	promises = numbers("R", span{1, 6}, span{9, 15}, span{17, 24}, span{28, 28}, span{39, 39}, span{50, 50}, span{53, 53})
	cases    = numbers("H", span{1, 31}, span{33, 36}, span{39, 42}, span{45, 46}, span{48, 57}, span{62, 62}, span{64, 66})
)

type span struct{ first, last int }

func numbers(letter string, spans ...span) (names []string) {
	for _, s := range spans {
		for n := s.first; n <= s.last; n++ {
			if letter == "H" {
				names = append(names, fmt.Sprintf("H%02d", n))
			} else {
				names = append(names, letter+strconv.Itoa(n))
			}
		}
	}
	return names
}

func TestPromisesAreShown(t *testing.T) {
	checkDocument(t, "docs/internals/promises.md", promises)
}

func TestFieldCasesAreShown(t *testing.T) {
	checkDocument(t, "docs/internals/field-cases.md", cases)
}

func checkDocument(t *testing.T, file string, want []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range shown(string(text), want, testsOf(t)) {
		t.Errorf("%s: %s", file, f)
	}
}

var (
	row = regexp.MustCompile(`(?m)^\| ([RH][0-9]+) \|(.*)\|$`)
	// A test stands in backticks: package.TestName, with a path of ours before it and perhaps a subtest behind it, or
	// "storetest: the sentence of a case".
	named = regexp.MustCompile("`(?:([a-z/]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]*)(?:/([^`]+))?|storetest: ([^`]+))`")
)

// shown returns what is wrong with a document: a row that is missing, stands twice or names nothing, and a test that
// does not exist.
func shown(text string, want []string, have tests) (faults []string) {
	seen := map[string]bool{}
	for _, r := range row.FindAllStringSubmatch(text, -1) {
		name, rest := r[1], r[2]
		if seen[name] {
			faults = append(faults, name+" stands twice")
		}
		seen[name] = true
		found := named.FindAllStringSubmatch(rest, -1)
		if len(found) == 0 {
			faults = append(faults, name+" names no test that shows it")
		}
		for _, f := range found {
			if fault := have.lacks(f[1], f[2], f[3], f[4]); fault != "" {
				faults = append(faults, name+": "+fault)
			}
		}
	}
	for _, name := range want {
		if !seen[name] {
			faults = append(faults, name+" has no row")
		}
	}
	return faults
}

// tests are the tests of the module as their source has them.
type tests struct {
	functions map[string]bool     // folder.TestName; the root package is "daybook"
	texts     map[string][]string // by folder: the sources of its tests, for subtests
	suite     string              // the sources of store/storetest
	scripts   map[string]bool     // folder/name, of files in folders of testdata that are a subtest each
}

var function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]*)\(`)

func testsOf(t *testing.T) tests {
	t.Helper()
	have := tests{functions: map[string]bool{}, texts: map[string][]string{}, scripts: map[string]bool{}}
	for _, s := range sources(t) {
		dir := s.dir()
		if dir == "store/storetest" {
			have.suite += string(s.text)
		}
		if !s.test() {
			continue
		}
		if dir == "." {
			dir = "daybook"
		}
		have.texts[dir] = append(have.texts[dir], string(s.text))
		for _, f := range function.FindAllStringSubmatch(string(s.text), -1) {
			have.functions[dir+"."+f[1]] = true
		}
	}
	for dir := range have.texts {
		scripts, err := filepath.Glob(filepath.Join(root(t), dir, "testdata", "*", "*.*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range scripts {
			have.scripts[dir+"/"+strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))] = true
		}
	}
	return have
}

// lacks says what does not exist of a named test; empty when all does.
func (have tests) lacks(dir, name, sub, sentence string) string {
	switch {
	case sentence != "":
		if !strings.Contains(have.suite, strconv.Quote(sentence)) {
			return "store/storetest has no case " + strconv.Quote(sentence)
		}
	case !have.functions[dir+"."+name]:
		return "there is no test " + dir + "." + name
	case sub != "" && !have.scripts[dir+"/"+sub] && !slices.ContainsFunc(have.texts[dir], func(text string) bool {
		return strings.Contains(text, strconv.Quote(sub)) || strings.Contains(text, strconv.Quote(strings.ReplaceAll(sub, "_", " ")))
	}):
		return dir + "." + name + " has no subtest " + sub
	}
	return ""
}

// link matches a link of a document to a file of ours.
var link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)\s]*)?\)`)

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	top := root(t)
	documents, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(filepath.Join(top, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			documents = append(documents, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, path := range documents {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(l[1]))); err != nil {
				t.Errorf("%s links to %s: %v", path, l[1], err)
			}
		}
	}
}

func TestShownSeesViolations(t *testing.T) {
	have := tests{functions: map[string]bool{"store.TestSQLite": true, "daybook.TestPlans": true, "cmd/daybook.TestScript": true},
		texts: map[string][]string{"daybook": {`{"a missed window", 1}`}}, suite: `{"a key once", f}`,
		scripts: map[string]bool{"cmd/daybook/once": true}}
	for _, c := range []struct{ text, want string }{
		{"| R1 | a | `store.TestSQLite` |", ""},
		{"| R1 | a | `daybook.TestPlans/a_missed_window`, `daybook.TestPlans/a missed window` |", ""},
		{"| R1 | a | `cmd/daybook.TestScript/once` |", ""},
		{"| R1 | a | `storetest: a key once` |", ""},
		{"", "R1 has no row"},
		{"| R1 | a | later |", "names no test"},
		{"| R1 | a | `store.TestNothing` |", "there is no test store.TestNothing"},
		{"| R1 | a | `daybook.TestPlans/other` |", "has no subtest other"},
		{"| R1 | a | `cmd/daybook.TestScript/twice` |", "has no subtest twice"},
		{"| R1 | a | `storetest: a key twice` |", "has no case"},
		{"| R1 | a | `store.TestSQLite` |\n| R1 | b | `store.TestSQLite` |", "stands twice"},
	} {
		expect(t, c.text, shown(c.text, []string{"R1"}, have), c.want)
	}
}
