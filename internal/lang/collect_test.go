package lang

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
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
	functions map[string]params  // import path + "." + name of functions that take a format
	methods   map[string]params  // the same for methods; those that are not exported with their package
}

type source struct {
	path      string
	files     []*ast.File
	constants map[string]ast.Expr
}

const module = "github.com/daybook-run/daybook"

// unread are the folders whose texts are not for the readers of the product, or are in one language for a reason.
var unread = []string{"tools", "examples", "bench", "internal/archtest", "internal/crash", "internal/pgtest", "internal/gateway", "store/storetest", "store/faultstore", "sim", "httpapi", "testdata", ".git"} // programs read httpapi: it is English

// readHouse parses the module.
func readHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, fset: token.NewFileSet(), packages: map[string]*source{}, functions: map[string]params{}, methods: map[string]params{}}
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
				if says, ok := paramsOf(n.Type); ok && n.Recv == nil {
					h.functions[p.path+"."+n.Name.Name] = says
				} else if ok {
					h.methods[methodName(p, n.Name.Name)] = says
				}
			case *ast.AssignStmt: // row := func(label, format string, args ...any)
				if len(n.Lhs) == 1 && len(n.Rhs) == 1 {
					if lit, ok := n.Rhs[0].(*ast.FuncLit); ok {
						if says, ok := paramsOf(lit.Type); ok {
							h.functions[p.path+"."+n.Lhs[0].(*ast.Ident).Name] = says
						}
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

// reference returns what config says of the names of the file: their types, their defaults, their meanings.
func (h *house) reference() (all []found) {
	p := h.packages[module+"/config"]
	add := func(e ast.Expr, value bool) {
		s, ok := h.constant(p, nil, e)
		if ok && s != "" && (!value || strings.Contains(s, " ") && !strings.ContainsAny(s[:1], "{[")) { // one word is a value of the file
			all = append(all, found{s, -1, h.fset.Position(e.Pos()).String()})
		}
	}
	explains := map[string][]int{} // name of a function → where it takes default and meaning
	for _, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				names := paramNames(fn.Type)
				if i := slices.Index(names, "meaning"); i >= 0 {
					explains[fn.Name.Name] = []int{slices.Index(names, "unless"), i}
				}
			}
		}
	}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && explains[id.Name] != nil {
					if at := explains[id.Name]; at[0] >= 0 {
						add(n.Args[at[0]], true)
					}
					add(n.Args[explains[id.Name][1]], false)
				}
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "about" && len(n.Elts) == 4 {
					add(n.Elts[2], true)
					add(n.Elts[3], false)
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "words" {
					add(n.Value, false)
				}
			}
			return true
		})
	}
	return all
}

func paramNames(f *ast.FuncType) (names []string) {
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// params are the indices of the parameters that are sentences: the format, which the arguments follow, and before it perhaps
// a label, or the format for one; -1: there is none.
type params struct{ format, label, one int }

// paramsOf returns the sentences among the parameters of a function whose last ones are format string, args ...any.
func paramsOf(f *ast.FuncType) (params, bool) {
	names, variadic := paramNames(f), false
	for _, field := range f.Params.List {
		_, variadic = field.Type.(*ast.Ellipsis)
	}
	n := len(names)
	if !variadic || n < 2 || names[n-1] != "args" || names[n-2] != "format" && names[n-2] != "more" {
		return params{}, false
	}
	return params{n - 2, slices.Index(names, "label"), slices.Index(names, "one")}, true
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
						says, ok := h.says(p, imports, n)
						if !ok || len(n.Args) <= says.format {
							return true
						}
						if id, isName := n.Args[says.format].(*ast.Ident); isName && own[id.Name] {
							return true
						}
						at := h.fset.Position(n.Pos()).String()
						format, constant := h.constant(p, local, n.Args[says.format])
						args := len(n.Args) - says.format - 1
						if n.Ellipsis.IsValid() {
							args = -1
						}
						if says.one >= 0 { // what is counted is the first argument of both
							args++
							one, also := h.constant(p, local, n.Args[says.one])
							constant = constant && also
							if also && !slices.Equal(verbsOf(one), verbsOf(format)) {
								faults = append(faults, at+": the format for one has other verbs")
							}
						}
						if says.label >= 0 {
							label, also := h.constant(p, local, n.Args[says.label])
							constant = constant && also
							all = append(all, found{label, -1, at})
						}
						if !constant {
							faults = append(faults, at+": the format is not a constant")
							return true
						}
						all = append(all, found{format, args, at})
					}
					return true
				})
			}
		}
	}
	return slices.Concat(all, h.help(), h.reference()), faults
}

// help returns what the commands say of themselves: texts of commands and flags, heads of tables.
func (h *house) help() (all []found) {
	p := h.packages[module+"/cmd/daybook"]
	add := func(e ast.Expr) {
		if s, ok := h.constant(p, nil, e); ok && s != "" {
			all = append(all, found{s, -1, h.fset.Position(e.Pos()).String()})
		}
	}
	for name, value := range p.constants {
		if strings.HasPrefix(name, "text") && !strings.HasSuffix(name, "Example") {
			add(value)
		}
	}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				// f.StringVar(&x, "name", "", "what it is"), and kin
				s, ok := n.Fun.(*ast.SelectorExpr)
				if ok && len(n.Args) >= 3 && flagMaker.MatchString(s.Sel.Name) {
					add(n.Args[len(n.Args)-1])
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok {
					switch list, isList := n.Value.(*ast.CompositeLit); {
					case key.Name == "head" && isList:
						for _, e := range list.Elts {
							add(e)
						}
					case key.Name == "Short", key.Name == "Long":
						add(n.Value)
					}
				}
			}
			return true
		})
	}
	return all
}

var flagMaker = regexp.MustCompile(`^((String|Bool|Int|Duration|StringArray|StringSlice)(Var)?|Var)P?$`)

func ownFormat(f *ast.FuncType, own map[string]bool) {
	if _, ok := paramsOf(f); !ok {
		return
	}
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			if slices.Contains([]string{"format", "more", "one"}, name.Name) {
				own[name.Name] = true
			}
		}
	}
}

// says reports which arguments of a call are sentences, if some are.
func (h *house) says(p *source, imports map[string]string, call *ast.CallExpr) (says params, ok bool) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		says, ok = h.functions[p.path+"."+f.Name]
	case *ast.SelectorExpr:
		if x, isName := f.X.(*ast.Ident); isName && imports[x.Name] != "" {
			says, ok = h.functions[imports[x.Name]+"."+f.Sel.Name]
		} else {
			says, ok = h.methods[methodName(p, f.Sel.Name)]
		}
	}
	return says, ok
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
