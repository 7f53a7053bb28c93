package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/daybook-run/daybook"

// source is one Go file of the module.
type source struct {
	path string // relative to the module, with slashes
	text []byte
	fset *token.FileSet
	file *ast.File
	// imports maps the name that a package has in this file to its path.
	imports map[string]string
}

// parse reads one file. Its path decides which rules apply.
func parse(name string, text []byte) (*source, error) {
	s := &source{path: name, text: text, fset: token.NewFileSet(), imports: map[string]string{}}
	var err error
	if s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments); err != nil {
		return nil, err
	}
	for _, spec := range s.file.Imports {
		p := importPath(spec)
		name := lastElement(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		s.imports[name] = p
	}
	return s, nil
}

func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value) // the parser has accepted it
	return p
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// lastElement returns the name a package usually has.
func lastElement(p string) string {
	if version.MatchString(path.Base(p)) {
		p = path.Dir(p)
	}
	return path.Base(p)
}

// dir is the folder of the file; "." is the root package.
func (s *source) dir() string { return path.Dir(s.path) }

func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// under reports whether the file lies in one of the folders, or below.
func (s *source) under(folders ...string) bool { return in(s.dir(), folders) }

func in(dir string, folders []string) bool {
	for _, f := range folders {
		if dir == f || strings.HasPrefix(dir, f+"/") {
			return true
		}
	}
	return false
}

// at returns a position as an editor understands it.
func (s *source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// root returns the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// sources returns every Go file of the module. Folders that are modules of their own are not part of it.
func sources(t *testing.T) []*source {
	t.Helper()
	top := root(t)
	var all []*source
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == top {
				return nil
			}
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if base := d.Name(); err == nil || base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), text)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d Go files found below %s", len(all), top)
	}
	return all
}

// report fails the test with every fault.
func report(t *testing.T, faults []string) {
	t.Helper()
	for _, f := range faults {
		t.Error(f)
	}
}
