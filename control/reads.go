package control

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Run returns the record of a key with its effect and its newest letter. Errors: CodeInvalid for what is no key;
// CodeNotFound, with the nearest job name when there is no such job.
func (c *Control) Run(ctx context.Context, key daybook.Key) (*daybook.Run, error) {
	r, err := c.runOf(ctx, key)
	if err != nil {
		return nil, err
	}
	return r, c.readAround(ctx, r)
}

// Runs lists runs: those of one job newest window first, others in the order of their keys. At most 1,000 come at once;
// Filter.After continues behind a key. Errors: CodeInvalid, no such state; CodeNotFound, no such job, with the nearest
// name.
func (c *Control) Runs(ctx context.Context, f daybook.Filter) ([]*daybook.Run, error) {
	if f.State != "" && !slices.Contains(daybook.States, f.State) {
		return nil, badState(f.State)
	}
	if f.Job != "" {
		if err := c.mustKnow(ctx, f.Job); err != nil {
			return nil, err
		}
	}
	f.Limit = min(f.Limit, maxListed)
	runs, err := c.s.Runs(ctx, f)
	if err != nil {
		return nil, err
	}
	return runs, c.readAround(ctx, runs...)
}

// Find lists the runs whose key begins with a text, in the order of their keys. When the text names a job, those under its
// earlier names come behind.
func (c *Control) Find(ctx context.Context, prefix string, limit int) ([]*daybook.Run, error) {
	limit = min(limit, maxListed)
	runs, err := c.s.Runs(ctx, daybook.Filter{Prefix: prefix, Limit: limit})
	name, rest, whole := strings.Cut(prefix, ":")
	if err != nil || !whole {
		return runs, err
	}
	st, _, err := c.s.JobState(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, n := range st.Formerly {
		earlier, err := c.s.Runs(ctx, daybook.Filter{Prefix: n + ":" + rest, Limit: limit})
		if err != nil {
			return nil, err
		}
		runs = append(runs, earlier...)
	}
	if limit > 0 && len(runs) > limit {
		runs = runs[:limit]
	}
	return runs, nil
}

// Letters lists dead letters: the open ones by priority and age, or all, newest first.
func (c *Control) Letters(ctx context.Context, openOnly bool, limit int) ([]daybook.Letter, error) {
	return c.s.Letters(ctx, openOnly, min(limit, maxListed))
}

// Activities lists who did what, newest first.
func (c *Control) Activities(ctx context.Context, since time.Time, actor string, limit int) ([]daybook.Activity, error) {
	return c.s.Activities(ctx, since, actor, min(limit, maxListed))
}

// EachActivity calls with each act since an instant, oldest first, however many there are. It ends with the first error of
// with.
func (c *Control) EachActivity(ctx context.Context, since time.Time, with func(daybook.Activity) error) error {
	at, id := since, "" // no act has an empty id: those of this very instant are among them
	for {
		acts, err := c.s.ActivitiesAfter(ctx, at, id, maxListed)
		if err != nil {
			return err
		}
		for _, a := range acts {
			if err := with(a); err != nil {
				return err
			}
			at, id = a.At, a.ID
		}
		if len(acts) < maxListed {
			return nil
		}
	}
}

// Attempts lists the tries of a key, and the questions about it, oldest first. Errors as for Run.
func (c *Control) Attempts(ctx context.Context, key daybook.Key) ([]daybook.Attempt, error) {
	r, err := c.runOf(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.s.Attempts(ctx, r.Key)
}

// Output returns what an attempt printed. Errors as for Run.
func (c *Control) Output(ctx context.Context, key daybook.Key, fence int64) (daybook.Output, error) {
	r, err := c.runOf(ctx, key)
	if err != nil {
		return daybook.Output{}, err
	}
	return c.s.Output(ctx, r.Key, fence)
}

// Printed opens what an attempt under way has printed so far: whole lines, without the secrets of its job. It may grow while
// the attempt lives; what is kept of it in the end is Output. Errors: CodeNotFound, it cannot be read here, as it runs on
// another host, is no command, or has ended; CodeUnavailable, it may not be read by who asks.
func (c *Control) Printed(key daybook.Key, fence int64) (io.ReadCloser, error) {
	return c.o.Printed(key, fence)
}

// Nodes lists the processes that work on the ledger, the one seen last first.
func (c *Control) Nodes(ctx context.Context) ([]daybook.Node, error) { return c.s.Nodes(ctx) }

// Doer says who a node is, for people: a program and its machine. Of a holder that is no node it is the name that it gave itself.
func (c *Control) Doer(ctx context.Context, node string) (daybook.Text, error) {
	nodes, err := c.s.Nodes(ctx)
	for _, n := range nodes {
		if n.ID == node {
			return doerText(n), err
		}
	}
	return daybook.Say("%s", whoever(oneLine(node))), err
}

// hosts are the names of machines by the ids of nodes.
type hosts map[string]string

// of is the machine of a node. Of a holder that is no node it is what stands in the row: the name that it gave itself.
func (h hosts) of(node string) string {
	if host := h[node]; host != "" {
		return host
	}
	return node
}

func hostsOf(nodes []daybook.Node) hosts {
	h := make(hosts, len(nodes))
	for _, n := range nodes {
		h[n.ID] = n.Host
	}
	return h
}

// Executing reports whether anybody executes what is at a home: a serve, or the application, that was seen in the last 30 s.
func (c *Control) Executing(ctx context.Context, home string) (bool, error) {
	nodes, err := c.s.Nodes(ctx)
	return len(aliveNodes(nodes, home, c.now())) > 0, err
}

// Info describes the ledger itself.
func (c *Control) Info(ctx context.Context) (daybook.LedgerInfo, error) { return c.s.Info(ctx) }
