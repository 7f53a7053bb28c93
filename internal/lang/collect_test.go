package lang

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// found is a sentence of the source: its English format and one place where it is said.
type found struct {
	format string
	args   int // how many arguments it is given; -1: not known
	at     string
}

// house is the source of the module, as far as people read what it says.
type house struct {
	t         *testing.T
	fset      *token.FileSet
	packages  map[string]*source // by import path
	functions map[string]int     // import path + "." + name of functions that take a format → index of its parameter
	methods   map[string]int     // the same for methods; those that are not exported with their package
}

type source struct {
	path      string
	files     []*ast.File
	constants map[string]ast.Expr
}

const module = "github.com/daybook-run/daybook"

// unread are the folders whose texts are not for the readers of the product, or are in one language for a reason.
var unread = []string{"tools", "examples", "internal/archtest", "internal/crash", "internal/pgtest", "internal/gateway", "store/storetest", "store/faultstore", "testdata", ".git"}

// readHouse parses the module.
func readHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, fset: token.NewFileSet(), packages: map[string]*source{}, functions: map[string]int{}, methods: map[string]int{}}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains(unread, rel) || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(h.fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name := path.Join(module, path.Dir(rel))
		if h.packages[name] == nil {
			h.packages[name] = &source{path: name, constants: map[string]ast.Expr{}}
		}
		h.packages[name].files = append(h.packages[name].files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range h.packages {
		h.declarations(p)
	}
	return h
}

// declarations notes the constants of a package and the functions that take a format with its arguments.
func (h *house) declarations(p *source) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			if _, ok := d.(*ast.GenDecl); ok {
				maps.Copy(p.constants, constantsIn(d))
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if i := formatParam(n.Type); i >= 0 && n.Recv == nil {
					h.functions[p.path+"."+n.Name.Name] = i
				} else if i >= 0 {
					h.methods[methodName(p, n.Name.Name)] = i
				}
			case *ast.AssignStmt: // row := func(name, format string, args ...any)
				if len(n.Lhs) == 1 && len(n.Rhs) == 1 {
					if lit, ok := n.Rhs[0].(*ast.FuncLit); ok && formatParam(lit.Type) >= 0 {
						h.functions[p.path+"."+n.Lhs[0].(*ast.Ident).Name] = formatParam(lit.Type)
					}
				}
			}
			return true
		})
	}
}

// constantsIn returns the constants that a declaration declares, inside of functions too.
func constantsIn(d ast.Decl) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	ast.Inspect(d, func(n ast.Node) bool {
		if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.CONST {
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i := range min(len(v.Names), len(v.Values)) {
					found[v.Names[i].Name] = v.Values[i]
				}
			}
		}
		return true
	})
	return found
}

// formatParam returns the index of the parameter format, if the next and last is args ...any, else -1.
func formatParam(f *ast.FuncType) int {
	var names []string
	variadic := false
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
		_, variadic = field.Type.(*ast.Ellipsis)
	}
	if n := len(names); variadic && n >= 2 && names[n-1] == "args" && (names[n-2] == "format" || names[n-2] == "more") {
		return n - 2
	}
	return -1
}

// sentences returns every sentence that the module says, and the places where a format is not a constant.
func (h *house) sentences() (all []found, faults []string) {
	for _, p := range h.packages {
		for _, f := range p.files {
			imports := importsOf(f)
			for _, d := range f.Decls {
				own := map[string]bool{} // formats handed on by a function that takes one itself
				local := constantsIn(d)
				ast.Inspect(d, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.FuncDecl:
						ownFormat(n.Type, own)
					case *ast.FuncLit:
						ownFormat(n.Type, own)
					case *ast.CallExpr:
						i, ok := h.takesFormat(p, imports, n)
						if !ok || len(n.Args) <= i {
							return true
						}
						if id, isName := n.Args[i].(*ast.Ident); isName && own[id.Name] {
							return true
						}
						at := h.fset.Position(n.Pos()).String()
						format, constant := h.constant(p, local, n.Args[i])
						if !constant {
							faults = append(faults, at+": the format is not a constant")
							return true
						}
						args := len(n.Args) - i - 1
						if n.Ellipsis.IsValid() {
							args = -1
						} else if i > 1 && calleeName(n) == "Count" {
							args++
						}
						all = append(all, found{format, args, at})
					}
					return true
				})
			}
		}
	}
	for name, value := range h.packages[module+"/cmd/daybook"].constants {
		if s, ok := h.constant(h.packages[module+"/cmd/daybook"], nil, value); ok && strings.HasPrefix(name, "text") {
			all = append(all, found{s, -1, name})
		}
	}
	return all, faults
}

func ownFormat(f *ast.FuncType, own map[string]bool) {
	if formatParam(f) < 0 {
		return
	}
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			if name.Name == "format" || name.Name == "more" || name.Name == "one" {
				own[name.Name] = true
			}
		}
	}
}

func calleeName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// takesFormat reports which argument of a call is a format, if one is.
func (h *house) takesFormat(p *source, imports map[string]string, call *ast.CallExpr) (int, bool) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		i, ok := h.functions[p.path+"."+f.Name]
		return i, ok
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && imports[x.Name] != "" {
			i, ok := h.functions[imports[x.Name]+"."+f.Sel.Name]
			return i, ok
		}
		i, ok := h.methods[methodName(p, f.Sel.Name)]
		return i, ok
	}
	return 0, false
}

// methodName is the name of a method among those of the module: only exported ones are called from other packages.
func methodName(p *source, name string) string {
	if ast.IsExported(name) {
		return name
	}
	return p.path + "." + name
}

// constant works a constant string out.
func (h *house) constant(p *source, local map[string]ast.Expr, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return h.constant(p, local, e.X)
	case *ast.BinaryExpr:
		a, oka := h.constant(p, local, e.X)
		b, okb := h.constant(p, local, e.Y)
		return a + b, oka && okb && e.Op == token.ADD
	case *ast.Ident:
		if value, ok := local[e.Name]; ok {
			return h.constant(p, local, value)
		}
		if value, ok := p.constants[e.Name]; ok {
			return h.constant(p, nil, value)
		}
	}
	return "", false
}

// importsOf returns the packages of this module that a file imports, by the name they have in it.
func importsOf(f *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		local := path.Base(name)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		imports[local] = name
	}
	return imports
}
