package engine

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/runner"
)

// callbackPath is where httpapi takes the reports of attempts, before the key.
const callbackPath = "/api/v1/callbacks/"

// reports tells the HTTP jobs of this process where to report, and waits for it. The report itself goes through control
// into the ledger, on whichever node it is heard; here only the end is noticed.
type reports struct {
	e *Engine

	mu   sync.Mutex
	open map[daybook.AttemptID]*awaited
	ids  map[string]daybook.AttemptID // by token
}

// awaited is an attempt that may be reported.
type awaited struct {
	said daybook.Result // empty: nothing was, to this process
	came chan struct{}  // closed when it was
}

func newReports(e *Engine) *reports {
	return &reports{e: e, open: make(map[daybook.AttemptID]*awaited), ids: make(map[string]daybook.AttemptID)}
}

// callbacks is what runners are given: nil, no interface around it, where nobody could report.
func (e *Engine) callbacks(s Settings) runner.Callbacks {
	if s.URL == "" && s.LocalURL == "" {
		return nil
	}
	return e.reports
}

// Open implements runner.Callbacks.
func (r *reports) Open(ctx context.Context, o daybook.Order) (callback, token string, err error) {
	id := o.Run.ID()
	if token, err = r.e.control.AttemptToken(ctx, id); err != nil {
		return "", "", err
	}
	r.mu.Lock()
	r.open[id], r.ids[token] = &awaited{came: make(chan struct{})}, id
	r.mu.Unlock()
	return r.e.base(o.Job) + callbackPath + control.PathOf(id.Key), token, nil
}

// base is where a job reaches this engine: a job on this machine by the address on this machine.
func (e *Engine) base(j *daybook.Job) string {
	s := e.settings()
	base := s.URL
	if s.LocalURL != "" && (base == "" || local(j)) {
		base = s.LocalURL
	}
	return strings.TrimRight(base, "/")
}

// local reports whether a job is called on this very machine. A URL that is a reference is taken for one elsewhere.
func local(j *daybook.Job) bool {
	if j.HTTP == nil {
		return false
	}
	before, _, _ := strings.Cut(j.HTTP.URL, "{") // the host comes before the first placeholder
	u, err := url.Parse(before)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// came notes a report that was taken.
func (r *reports) came(id daybook.AttemptID, said daybook.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := r.open[id]; ok && a.said == "" {
		a.said = said
		close(a.came)
	}
}

func (r *reports) find(token string) (daybook.AttemptID, *awaited, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.ids[token]
	return id, r.open[id], ok
}

// Look implements runner.Callbacks. A report that another node heard is seen in the run, which is under way no more.
func (r *reports) Look(ctx context.Context, token string) (daybook.Result, bool) {
	id, a, ok := r.find(token)
	if !ok {
		return "", false
	}
	select {
	case <-a.came:
		r.mu.Lock()
		defer r.mu.Unlock()
		return a.said, true
	default:
	}
	run, err := r.e.store.Run(ctx, id.Key)
	return "", err == nil && (run.ID() != id || run.State != daybook.Running)
}

// reportPoll is how often it is looked whether another node heard a report.
const reportPoll = time.Second

// Wait implements runner.Callbacks.
func (r *reports) Wait(ctx context.Context, token string) {
	_, a, ok := r.find(token)
	for ok {
		timer := time.NewTimer(reportPoll)
		select {
		case <-a.came:
			ok = false
		case <-ctx.Done():
			ok = false
		case <-timer.C:
			_, recorded := r.Look(ctx, token)
			ok = !recorded
		}
		timer.Stop()
	}
}

// Close implements runner.Callbacks.
func (r *reports) Close(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, r.ids[token])
	delete(r.ids, token)
}

// rights lets a command with steps speak for its attempt: to the ledger itself, and to the server of this program for what
// does not reach the ledger, such as a container. A command of another user may not read the ledger: it is told the server
// alone, where there is one.
func (e *Engine) rights(ctx context.Context, r *daybook.Run, j *daybook.Job) (env map[string]string, token string, err error) {
	if j.Command.IsZero() {
		return nil, "", nil
	}
	if token, err = e.control.CommandToken(ctx, r.ID()); err != nil {
		return nil, "", err
	}
	env = map[string]string{"DAYBOOK_TOKEN": token}
	s := e.settings()
	if server := strings.TrimRight(cmp.Or(s.LocalURL, s.URL), "/"); server != "" {
		env["DAYBOOK_SERVER"] = server
		if j.User != "" {
			return env, token, nil
		}
	}
	if e.o.Ledger != "" {
		env["DAYBOOK_DB"] = e.o.Ledger
	}
	return env, token, nil
}
