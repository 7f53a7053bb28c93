package archtest

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"
	"strings"
	"testing"
)

// linesMax is counsel, not a rule: a longer file asks what wants to leave.
const linesMax = 600

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{} // folders with a file that is no test
	for _, s := range sources(t) {
		if !s.test() {
			documented[s.dir()] = documented[s.dir()] || hasDoc(s)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment: what it does, what it must not do, who calls it", dir)
		}
	}
}

// hasDoc reports whether a file has the comment that go doc shows for its package.
func hasDoc(s *source) bool {
	doc, name := strings.TrimSpace(s.file.Doc.Text()), s.file.Name.Name
	return strings.HasPrefix(doc, "Package "+name+" ") || name == "main" && doc != ""
}

func TestFormat(t *testing.T) {
	for _, s := range sources(t) {
		want, err := format.Source(s.text)
		if err != nil {
			t.Errorf("%s: %v", s.path, err)
		} else if !bytes.Equal(s.text, want) {
			t.Errorf("%s is not formatted; gofmt -w %s", s.path, s.path)
		}
	}
}

// leftover matches the words by which somebody put work off. (They are written apart so that this file may hold them.)
var leftover = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func leftovers(s *source) (faults []string) {
	if s.test() {
		return nil
	}
	for i, line := range strings.Split(string(s.text), "\n") {
		if m := leftover.FindString(line); m != "" {
			faults = append(faults, fmt.Sprintf("%s:%d: %s; do it, or say in the comment what remains wrong and why", s.path, i+1, m))
		}
	}
	return faults
}

func TestNothingIsPutOff(t *testing.T) {
	for _, s := range sources(t) {
		report(t, leftovers(s))
	}
}

func TestLongFiles(t *testing.T) {
	for _, s := range sources(t) {
		if n := bytes.Count(s.text, []byte("\n")); n > linesMax && !s.test() {
			t.Logf("%s has %d lines: is it one thing?", s.path, n)
		}
	}
}

func TestFilesSeesViolations(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"a.go", "package p // TO" + "DO: later", "do it"},
		{"a.go", "package p // XX" + "X", "do it"},
		{"a.go", "package p // todo and TO" + "DOS are words", ""},
		{"a_test.go", "package p // TO" + "DO: later", ""},
	} {
		s, err := parse(c.path, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.text, leftovers(s), c.want)
	}
	for text, want := range map[string]bool{
		"// Package p is one.\npackage p":    true,
		"// Some words.\npackage p":          false,
		"package p":                          false,
		"// Package p is not\n\npackage p":   false,
		"// Command x does.\npackage main":   true,
		"//go:build unix\n\npackage p":       false,
		"/* Package p is one. */\npackage p": true,
	} {
		s, err := parse("p/a.go", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := hasDoc(s); got != want {
			t.Errorf("%q: has a package comment: %v, want %v", text, got, want)
		}
	}
}
