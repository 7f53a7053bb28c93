// Package runner is the ways to do work: commands, HTTP calls, and functions registered in Go. It starts what an order
// says, waits for it, ends it when it is asked to, and says how it ended; what follows from that is decided elsewhere. It
// writes no row, keeps no clock and retries nothing. The executor calls it, and configuration reads its table.
//
// A new way to do work is one file here and one line in Kinds.
package runner

import (
	"github.com/daybook-run/daybook"
)

// Kind is a way to do work.
type Kind struct {
	Name string // as in the file
	File string // that has it
	// Does reports whether the job says that it is done in this way.
	Does func(*daybook.Job) bool
	// New returns the runner for such a job.
	New func(*daybook.Job, Options) (daybook.Runner, error)
}

// Kinds is the table of the ways to do work, in the order in which they are tried. It is never changed.
var Kinds = []Kind{
	{Name: "run", File: "exec.go", Does: func(j *daybook.Job) bool { return len(j.Command.Argv) > 0 }, New: newExec},
	{Name: "shell", File: "exec.go", Does: func(j *daybook.Job) bool { return j.Command.Shell != "" }, New: newExec},
	{Name: "http", File: "http.go", Does: func(j *daybook.Job) bool { return j.HTTP != nil }, New: newHTTP},
	{Name: "go", File: "gofunc.go", Does: func(j *daybook.Job) bool { return j.Command.IsZero() }, New: newGoFunc},
}

// Options is what runners are made of.
type Options struct {
	Exec  Exec              // for commands
	HTTP  HTTP              // for HTTP calls
	Funcs map[string]GoFunc // registered functions, by the name of their job
}

// For returns the runner of a job. Errors have CodeInvalid: the job says no way to do it, or one that is not there.
func For(job *daybook.Job, o Options) (daybook.Runner, error) {
	for _, k := range Kinds {
		if k.Does(job) {
			r, err := k.New(job, o)
			if err != nil {
				return nil, err
			}
			return asked(r, job, o)
		}
	}
	return nil, daybook.Invalid("job %s does not say what to do", job.Name)
}

// asking is a runner whose far side is asked in another way than the work is done.
type asking struct {
	daybook.Runner
	daybook.Prober
}

// asked gives a runner the prober that its job names, if that is another than its own.
func asked(r daybook.Runner, job *daybook.Job, o Options) (daybook.Runner, error) {
	if f, ok := r.(*GoFunc); ok && f.Ask != nil {
		return r, nil
	}
	_, isHTTP := r.(*HTTP)
	_, isExec := r.(*Exec)
	switch {
	case job.ProbeURL != "" && !isHTTP:
		h, err := newHTTP(job, o)
		if err != nil {
			return nil, err
		}
		return asking{r, h.(*HTTP)}, nil
	case job.ProbeURL == "" && !job.Probe.IsZero() && !isExec:
		e := o.Exec
		return asking{r, &e}, nil
	}
	return r, nil
}

func newExec(_ *daybook.Job, o Options) (daybook.Runner, error) {
	e := o.Exec
	return &e, nil
}

func newHTTP(job *daybook.Job, o Options) (daybook.Runner, error) {
	if o.HTTP.Clock == nil {
		return nil, daybook.Invalid("job %s calls over HTTP, and there is no clock for that", job.Name)
	}
	h := o.HTTP
	return &h, nil
}

func newGoFunc(job *daybook.Job, o Options) (daybook.Runner, error) {
	f, ok := o.Funcs[job.Name]
	if !ok || f.Do == nil {
		return nil, daybook.Invalid("job %s does not say what to do", job.Name).
			WithHint("set run, shell or http, or register a Go function under this name")
	}
	f.at = &atWork{calls: make(map[daybook.Key]int)}
	return &f, nil
}
