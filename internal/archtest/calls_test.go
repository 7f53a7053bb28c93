package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// rule bans names of a package.
type rule struct {
	pkg     string
	names   []string // empty: all of them
	not     []string // but these
	where   []string // folders or files where they are allowed
	inTests bool     // banned in tests too
	instead string
}

var rules = []rule{
	{
		pkg: "time", names: []string{"Now", "Since", "Until"},
		where:   []string{"engine", "internal/loop", "cmd", "internal/pgtest", "internal/mariatest", "internal/gateway", "examples/saas", "sim/clock.go"}, // the last has the clock of a bubble
		instead: "take now time.Time as an argument; the clock is read in engine, internal/loop and cmd",
	},
	{
		pkg: "time", names: []string{"Sleep"},
		where:   []string{"cmd", "sim/clock.go"},
		instead: "return from Tick and be called again, or wait for a channel, a timer and ctx.Done()",
	},
	{
		pkg: "math/rand", not: []string{"New", "NewSource", "NewZipf", "Rand", "Source", "Zipf"},
		where:   []string{"engine", "internal/loop", "cmd"},
		instead: "take a seed as an argument: rand.New(rand.NewPCG(seed, 0)) of math/rand/v2",
	},
	{
		pkg: "math/rand/v2", not: []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"},
		where:   []string{"engine", "internal/loop", "cmd"},
		instead: "take a seed as an argument: rand.New(rand.NewPCG(seed, 0))",
	},
	{
		pkg:     "crypto/rand",
		where:   []string{"engine", "internal/loop", "cmd"},
		instead: "take the random bytes, or the function that makes them, as an argument",
	},
	{
		pkg: "github.com/google/uuid", not: []string{"UUID", "Parse", "Nil"},
		where:   []string{"engine", "internal/loop", "cmd"},
		instead: "take the id, or newID func() string, as an argument",
	},
	{
		pkg: "fmt", names: []string{"Print", "Printf", "Println"},
		where:   []string{"cmd", "examples"},
		instead: "write to an io.Writer that is an argument, or log with slog",
	},
	{
		pkg:     "log",
		instead: "log with log/slog; where *log.Logger is wanted, slog.NewLogLogger makes one",
	},
	{
		pkg: "net/http", names: []string{"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
		inTests: true,
		instead: "it has no timeout and no address guard: use internal/outhttp, in a test the client of its httptest.Server",
	},
	{
		pkg: "net/http", names: []string{"DefaultServeMux", "Handle", "HandleFunc", "ListenAndServe", "ListenAndServeTLS", "Serve"},
		inTests: true,
		instead: "make an http.ServeMux, and an http.Server with its timeouts set",
	},
	{
		pkg: "os", names: []string{"Exit"},
		where:   []string{"cmd/daybook/main.go", "internal/pgtest", "examples"},
		instead: "return an error; main turns it into an exit code",
	},
	{
		pkg: "context", names: []string{"Background", "TODO"},
		where:   []string{"cmd", "engine", "internal/pgtest", "examples"},
		instead: "take the caller's ctx; context.WithoutCancel(ctx) outlives its cancellation",
	},
}

// calls returns the uses of banned names in a file.
func calls(s *source) (faults []string) {
	fault := func(n ast.Node, format string, args ...any) {
		faults = append(faults, s.at(n)+": "+fmt.Sprintf(format, args...))
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			// A value counts like a call: Now: time.Now reads the clock as well.
			x, ok := n.X.(*ast.Ident)
			if !ok || x.Obj != nil { // a variable that is called like a package
				return true
			}
			for _, r := range rules {
				if s.imports[x.Name] == r.pkg && r.bans(n.Sel.Name) && !r.allows(s) {
					fault(n, "%s.%s: %s", x.Name, n.Sel.Name, r.instead)
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Obj == nil && !s.test() && (f.Name == "print" || f.Name == "println") {
				fault(n, "%s: it is for debugging; log with slog", f.Name)
			}
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				fault(n, "init(): what it registers belongs into an explicit table, which a reader can see")
			}
		}
		return true
	})
	return faults
}

func (r rule) bans(name string) bool {
	return (len(r.names) == 0 || slices.Contains(r.names, name)) && !slices.Contains(r.not, name)
}

func (r rule) allows(s *source) bool {
	return s.under(r.where...) || slices.Contains(r.where, s.path) || s.test() && !r.inTests
}

// withContext maps the methods of database/sql that exist twice to the one that takes a context.
var withContext = map[string]string{
	"Exec": "ExecContext", "Query": "QueryContext", "QueryRow": "QueryRowContext",
	"Prepare": "PrepareContext", "Begin": "BeginTx", "Ping": "PingContext",
}

// queries returns the calls of a database that cannot be cancelled. It knows no types: in a package that works with a
// database, a call by one of these names must have something as its first argument that looks like a context.
func queries(s *source) (faults []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || withContext[f.Sel.Name] == "" {
			return true
		}
		if x, ok := f.X.(*ast.Ident); ok && x.Obj == nil && s.imports[x.Name] != "" {
			return true // a function of another package
		}
		// Begin and Ping take nothing, the others a text; anything else is not database/sql, such as url.URL.Query().
		bare := f.Sel.Name == "Begin" || f.Sel.Name == "Ping"
		if bare == (len(call.Args) == 0) && (bare || !isContext(call.Args[0])) {
			faults = append(faults, fmt.Sprintf("%s: %s without a context; use %s: a call that cannot be cancelled outlives its lease",
				s.at(call), types.ExprString(f), withContext[f.Sel.Name]))
		}
		return true
	})
	return faults
}

// isContext reports whether an argument looks like a context: ctx, s.ctx, t.Context(), context.WithoutCancel(ctx).
func isContext(arg ast.Expr) bool {
	return strings.Contains(strings.ToLower(types.ExprString(arg)), "ctx") || strings.Contains(types.ExprString(arg), "ontext")
}

// database reports whether a file imports a way to talk to one.
func database(s *source) bool {
	for _, spec := range s.file.Imports {
		if p := importPath(spec); p == "database/sql" || strings.HasPrefix(p, "github.com/jackc/pgx/") {
			return true
		}
	}
	return false
}

func TestCalls(t *testing.T) {
	all := sources(t)
	databases := map[string]bool{} // folders
	for _, s := range all {
		if database(s) {
			databases[s.dir()] = true
		}
	}
	for _, s := range all {
		report(t, calls(s))
		if databases[s.dir()] {
			report(t, queries(s))
		}
	}
}

func TestCallsSeesViolations(t *testing.T) {
	for _, c := range []struct{ path, imports, body, want string }{
		{"executor/a.go", "time", "var t = time.Now()", "take now time.Time"},
		{"executor/a.go", "time", "var now = time.Now", "take now time.Time"},
		{"executor/a.go", "time", "func f(t time.Time) { _ = time.Since(t) }", "take now time.Time"},
		{"executor/a_test.go", "time", "var t = time.Now()", ""},
		{"engine/a.go", "time", "var t = time.Now()", ""},
		{"enginex/a.go", "time", "var t = time.Now()", "take now time.Time"},
		{"executor/a.go", "time", "func f(time struct{ Now int }) { _ = time.Now }", ""},
		{"executor/a.go", "time", "func f() { time.Sleep(1) }", "wait for a channel"},
		{"ladder.go", "math/rand", "var n = rand.Intn(3)", "take a seed"},
		{"ladder.go", "math/rand/v2", "var n = rand.IntN(3)", "take a seed"},
		{"sim/a.go", "math/rand/v2", "var r = rand.New(rand.NewPCG(1, 2))", ""},
		{"web/a.go", "crypto/rand", "var r = rand.Reader", "as an argument"},
		{"control/a.go", "github.com/google/uuid", "var r = uuid.NewString()", "newID"},
		{"control/a.go", "fmt", "func f() { fmt.Println() }", "io.Writer"},
		{"control/a.go", "fmt", "var s = fmt.Sprintln()", ""},
		{"control/a.go", "", "func f() { println() }", "for debugging"},
		{"control/a.go", "log", "func f() { log.Print() }", "log/slog"},
		{"control/a.go", "log/slog", "func f() { log := 1; _ = log; slog.Info(``) }", ""},
		{"control/a_test.go", "net/http", "var c = http.DefaultClient", "httptest.Server"},
		{"cmd/daybook/a.go", "net/http", "func f() { http.Get(``) }", "internal/outhttp"},
		{"web/a.go", "net/http", "func f() { http.ListenAndServe(``, nil) }", "timeouts"},
		{"cmd/daybook/run.go", "os", "func f() { os.Exit(1) }", "return an error"},
		{"cmd/daybook/main.go", "os", "func f() { os.Exit(1) }", ""},
		{"runner/a.go", "context", "var c = context.Background()", "WithoutCancel"},
		{"engine/a.go", "context", "var c = context.Background()", ""},
		{"alert/a_test.go", "", "func init() {}", "explicit table"},
		{"alert/a.go", "", "type t int; func (t) init() {}", ""},
	} {
		src := "package p\n"
		if c.imports != "" {
			src += "import \"" + c.imports + "\"\n"
		}
		s, err := parse(c.path, []byte(src+c.body))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.path+": "+c.body, calls(s), c.want)
	}
}

func TestQueriesSeesViolations(t *testing.T) {
	for _, c := range []struct{ call, want string }{
		{"db.Exec(`DELETE FROM runs`)", "use ExecContext"},
		{"s.db.QueryRow(text, 1)", "use QueryRowContext"},
		{"db.Begin()", "use BeginTx"},
		{"db.Ping()", "use PingContext"},
		{"tx.Prepare(text)", "use PrepareContext"},
		{"rows(db.Query(text))", "use QueryContext"},
		{"db.ExecContext(ctx, text)", ""},
		{"conn.Exec(ctx, text)", ""},
		{"conn.Exec(t.Context(), text)", ""},
		{"store.Begin(cctx, run)", ""},
		{"r.URL.Query()", ""},
		{"run.Begin(policy, now)", ""},
		{"sql.Query(1)", ""},
	} {
		s, err := parse("store/a.go", []byte("package p\nimport \"database/sql\"\nfunc f() { "+c.call+" }"))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.call, queries(s), c.want)
	}
}
