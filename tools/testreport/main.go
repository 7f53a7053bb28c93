// Command testreport reads what go test -json prints and says in short how it went: one line for each package, and
// everything that a failed test printed, or one that came to no end. It fails when a test failed, and when a test was skipped: a suite that did not
// run proves nothing.
//
//	go test -json ./... | testreport
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	printed := map[string]*strings.Builder{} // by package and test
	said := func(e event) *strings.Builder {
		name := e.Package + e.ImportPath + " " + e.Test
		if printed[name] == nil {
			printed[name] = &strings.Builder{}
		}
		return printed[name]
	}
	passed, failed := 0, 0
	var skipped []string
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if line = strings.TrimSpace(line); line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprintln(out, line) // what the go command itself has to say
			} else {
				switch e.Action {
				case "output", "build-output":
					said(e).WriteString(e.Output)
				case "build-fail":
					failed++
					fmt.Fprint(out, said(e))
				case "pass":
					if e.Test == "" {
						fmt.Fprintf(out, "ok    %7.1fs  %s\n", e.Elapsed, e.Package)
					} else {
						passed++
					}
				case "fail":
					failed++
					if e.Test == "" {
						fmt.Fprintf(out, "FAIL  %7.1fs  %s\n", e.Elapsed, e.Package)
						for _, name := range slices.Sorted(maps.Keys(printed)) {
							if strings.HasPrefix(name, e.Package+" ") && name != e.Package+" " { // a test that came to no end: it panicked, or hung
								fmt.Fprint(out, printed[name])
							}
						}
					}
					fmt.Fprint(out, said(e))
				case "skip":
					if e.Test != "" { // without a test: a package that has none
						skipped = append(skipped, e.Package+" "+e.Test)
						fmt.Fprint(out, said(e))
					}
				}
				if e.Action == "pass" || e.Action == "skip" || e.Action == "fail" {
					delete(printed, e.Package+e.ImportPath+" "+e.Test)
				}
			}
		}
		if err == io.EOF {
			break
		}
	}
	fmt.Fprintf(out, "%d tests passed, %d failed, %d skipped\n", passed, failed, len(skipped))
	switch {
	case failed > 0:
		return fmt.Errorf("%d failed", failed)
	case len(skipped) > 0:
		return fmt.Errorf("skipped, so nothing is known: %s", strings.Join(skipped, ", "))
	case passed == 0:
		return fmt.Errorf("no test ran")
	}
	return nil
}
