package control

import (
	"context"
	"strings"

	"github.com/daybook-run/daybook"
)

// underAnyName returns the run of a key, or of the same one under an earlier name of its job, which answers for it. Nil:
// there is none.
func (c *Control) underAnyName(ctx context.Context, k daybook.Key, formerly []string) (*daybook.Run, error) {
	_, rest, _ := strings.Cut(string(k), ":")
	for _, name := range append([]string{k.Job()}, formerly...) {
		r, err := c.s.Run(ctx, daybook.Key(name+":"+rest))
		if daybook.CodeOf(err) != daybook.CodeNotFound {
			return r, err
		}
	}
	return nil, nil
}

// answers reports whether a run is the one of a window as such, under whatever name of its job.
func answers(r *daybook.Run, label string) bool {
	p := r.Key.Parts()
	return p.Window == label && p.Subject == "" && p.N == 1
}

// current returns the state of the job that a name stands for now: of one that was renamed, that of its new name.
func current(states []daybook.JobState, name string) (daybook.JobState, bool) {
	st, _, ok := find(states, name)
	if ok && st.RenamedTo != "" {
		if now, _, known := find(states, st.RenamedTo); known {
			return now, true
		}
	}
	return st, ok
}

// underOldName gives the state of a renamed job, as a file defines it, the names that it will carry on.
func (c *Control) underOldName(ctx context.Context, j *daybook.Job, st *daybook.JobState, write bool) error {
	if j.Formerly == "" {
		return nil
	}
	old, ok, err := c.s.JobState(ctx, j.Formerly)
	if err != nil || !ok {
		return err
	}
	if len(st.Formerly) == 0 {
		st.Formerly = old.Names()
	}
	if !write {
		return nil
	}
	return c.mayTakeOver(ctx, j, old)
}

// mayTakeOver refuses to make a renamed job known while a process works under the old name: it would go on planning nothing,
// and nobody would plan the new one.
func (c *Control) mayTakeOver(ctx context.Context, j *daybook.Job, old daybook.JobState) error {
	if !old.RetiredAt.IsZero() {
		return nil
	}
	nodes, err := c.s.Nodes(ctx)
	if err != nil || len(aliveNodes(nodes, old.Home, c.now())) == 0 {
		return err
	}
	return daybook.Conflict("job %s is still called %s in the ledger", j.Name, old.Name).
		WithHint("let whoever works on it take the rename: start daybook serve again, or send it SIGHUP")
}

// carriedOn refuses a new key of a job that has another name now.
func carriedOn(name, now string, window string) *daybook.Error {
	return daybook.Conflict("job %s is called %s now", name, now).
		WithHint("ask for %s", daybook.KeyParts{Job: now, Window: window}.Key())
}
