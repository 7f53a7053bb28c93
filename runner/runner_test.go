package runner

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

func TestFor(t *testing.T) {
	t.Parallel()
	funcs := map[string]GoFunc{"renew": {Do: func(context.Context, *daybook.Run) error { return nil }}, "empty": {}}
	for _, c := range []struct {
		job  daybook.Job
		want string
	}{
		{daybook.Job{Name: "backup", Command: daybook.Command{Argv: []string{"true"}}}, "exec"},
		{daybook.Job{Name: "renew", Command: daybook.Command{Shell: "true"}}, "exec"},
		{daybook.Job{Name: "renew"}, "go"},
		{daybook.Job{Name: "renew", HTTP: &daybook.HTTPCall{URL: "http://127.0.0.1/"}}, "http"},
		{daybook.Job{Name: "empty"}, ""},
		{daybook.Job{Name: "nobody"}, ""},
	} {
		r, err := For(&c.job, Options{Funcs: funcs, HTTP: *atNoon()})
		got := ""
		switch r.(type) {
		case *Exec:
			got = "exec"
		case *GoFunc:
			got = "go"
		case *HTTP:
			got = "http"
		}
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, daybook.ErrInvalid) {
			t.Errorf("%s: got %q, %v", c.job.Name, got, err)
		}
	}
}

// A file that has a runner and is not in the table would be a way to do work that no definition can ask for.
func TestEveryRunnerIsInTheTable(t *testing.T) {
	t.Parallel()
	inTable := make(map[string]bool)
	for _, k := range Kinds {
		inTable[k.File] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if has := hasRunner(f); has != inTable[name] {
			t.Errorf("%s: has a runner: %v; in the table: %v", name, has, inTable[name])
		}
	}
}

// hasRunner reports whether the file has a method Run(ctx, order).
func hasRunner(f *ast.File) bool {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Recv != nil && fn.Name.Name == "Run" && fn.Type.Params.NumFields() == 2 {
			return true
		}
	}
	return false
}
