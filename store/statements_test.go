package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/daybook-run/daybook/store"
)

// verb is how a whole statement begins; what begins otherwise is a part of one.
var verb = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)

// statements are all statements of the store, by the name of their constant, as the source of this package has them: one that is
// new is looked at without being entered anywhere.
func statements(t *testing.T) map[string]string {
	t.Helper()
	constants := make(map[string]ast.Expr)
	for _, f := range sources(t) {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, s := range g.Specs {
					if v := s.(*ast.ValueSpec); len(v.Values) == len(v.Names) {
						for i, n := range v.Names {
							constants[n.Name] = v.Values[i]
						}
					}
				}
			}
		}
	}
	found := make(map[string]string)
	for name, e := range constants {
		if text, ok := textOf(e, constants); ok && verb.MatchString(text) {
			found[name] = text
		}
	}
	if len(found) < 200 {
		t.Fatalf("only %d statements were found", len(found))
	}
	return found
}

// sources are the files of the store, parsed, by name.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]*ast.File)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// textOf works out a constant text.
func textOf(e ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.Ident:
		if of, ok := constants[e.Name]; ok {
			return textOf(of, constants)
		}
	case *ast.ParenExpr:
		return textOf(e.X, constants)
	case *ast.BinaryExpr:
		left, ok1 := textOf(e.X, constants)
		right, ok2 := textOf(e.Y, constants)
		return left + right, ok1 && ok2
	}
	return "", false
}

// TestEachStatementIsAConstant: what is put together while the program runs would not be looked at.
func TestEachStatementIsAConstant(t *testing.T) {
	for name, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				return n.Tok != token.CONST
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && verb.MatchString(s) && strings.Contains(s, "daybook_") {
					t.Errorf("%s has a statement that is no constant: %s", name, s)
				}
			}
			return true
		})
	}
}

// SQLite plans a statement again each time that a limit is bound which stands by itself.
func TestNoLimitIsPlannedAgain(t *testing.T) {
	seen := 0
	for name, text := range statements(t) {
		if !strings.Contains(text, "LIMIT $") {
			continue
		}
		seen++
		if got := store.Rewritten("sqlite", text); strings.Contains(got, "LIMIT ?") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if seen < 10 {
		t.Errorf("only %d statements have a limit", seen)
	}
}
