// Package httpapi is the HTTP door of a ledger: ask for keys, claim them and report their ends, take the callbacks of HTTP
// jobs, tell how things stand. `daybook serve --listen` has it, and a program that links the library may mount [Handler] in
// a server of its own. It calls control and nothing below it; it decides nothing, keeps no clock and starts nothing.
//
// Where to find what: routes.go (the table of routes, which the OpenAPI document is made of), auth.go (who may do what),
// call.go (a request from its body to its answer), calls.go (Idempotency-Key), body.go (strict JSON), problem.go (errors),
// openapi.go, and a file for each group of routes.
package httpapi

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/daybook-run/daybook/control"
)

// Options of Handler. The zero value is the safe one.
type Options struct {
	// OpenReads lets those look who show no token, from this machine. It is for a listener that nobody else reaches; what
	// comes by the name of another host, or through a proxy, needs a token all the same.
	OpenReads bool
	Version   string // of the program, for the OpenAPI document
	Log       *slog.Logger
}

// Handler returns the HTTP door of a ledger. It may be mounted below a prefix: http.StripPrefix("/daybook", Handler(c)).
// The server around it sets the timeouts against slow clients. At most one Options is given.
func Handler(c *control.Control, options ...Options) http.Handler {
	a := &api{c: c, mux: http.NewServeMux(), routes: routes}
	for _, o := range options {
		a.o = o
	}
	if a.o.Log == nil {
		a.o.Log = slog.Default()
	}
	byPath := make(map[string]methods)
	for _, r := range routes {
		if byPath[r.path] == nil {
			byPath[r.path] = make(methods)
		}
		byPath[r.path][r.method] = r
	}
	for path, m := range byPath {
		a.mux.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, m) }))
	}
	return a
}

// api is the door of one ledger.
type api struct {
	c       *control.Control
	o       Options
	mux     *http.ServeMux
	routes  []*route
	foreign http.CrossOriginProtection
}

// ServeHTTP implements http.Handler. Whatever a request brings, it is answered.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // that very value is meant
				panic(p)
			}
			a.o.Log.Error("a request was not understood", "method", r.Method, "path", r.URL.Path, "panic", p)
			a.write(w, r, problem(http.StatusInternalServerError, "an unexpected error", "it is in the log of the server"))
		}
	}()
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	if err := a.foreign.Check(r); err != nil {
		a.write(w, r, problem(http.StatusForbidden, "another site asks for a change", "call the API from a program, or from a page of its own"))
		return
	}
	if _, pattern := a.mux.Handler(r); pattern == "" {
		a.write(w, r, problem(http.StatusNotFound, "there is nothing here", "GET /api/v1/openapi.json lists what there is"))
		return
	}
	a.mux.ServeHTTP(w, r)
}

// methods are the routes of one path.
type methods map[string]*route

// allowed lists the methods as the header Allow has them.
func (m methods) allowed() string {
	names := []string{http.MethodOptions}
	for name := range m {
		names = append(names, name)
		if name == http.MethodGet {
			names = append(names, http.MethodHead)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// dispatch finds the route of a method. HEAD is answered as GET, without its body.
func (a *api) dispatch(w http.ResponseWriter, r *http.Request, m methods) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	route, ok := m[method]
	switch {
	case ok:
		a.write(w, r, a.handle(w, r, route))
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", m.allowed())
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", m.allowed())
		a.write(w, r, problem(http.StatusMethodNotAllowed, "this address does not answer "+safe(r.Method, 20), "it answers "+m.allowed()))
	}
}
