package httpapi

import (
	"net/http"
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// status tells both verdicts and what they rest on.
func (a *api) status(c *call) (answer, error) {
	s, err := a.c.Status(c.Context())
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: control.NewStatusJSON(s)}, nil
}

// statusText is for monitors that look at a status and a word.
func (a *api) statusText(c *call) (answer, error) {
	s, err := a.c.Status(c.Context())
	if err != nil {
		return answer{}, err
	}
	if s.Exit() == daybook.ExitOK {
		return answer{status: 200, body: "OK\n"}, nil
	}
	word, lines := "UNKNOWN", []string{}
	for _, why := range append(s.Ran.Because, s.Money.Because...) {
		lines = append(lines, why.String())
	}
	if s.Ran.Verdict == control.VerdictNo || s.Money.Verdict == control.VerdictNo {
		word = "NOT OK"
	}
	return answer{status: http.StatusServiceUnavailable, body: word + "\n" + strings.Join(lines, "\n") + "\n"}, nil
}

// nodes lists the processes on the ledger.
func (a *api) nodes(c *call) (answer, error) {
	views, err := a.c.NodeViews(c.Context())
	if err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: control.NewNodesJSON(views)}, nil
}

// healthz says that the process lives. It asks nothing of the ledger.
func (a *api) healthz(*call) (answer, error) { return answer{status: 200, body: "OK\n"}, nil }

// readyz says whether the ledger answers.
func (a *api) readyz(c *call) (answer, error) {
	if _, err := a.c.Nodes(c.Context()); err != nil {
		return answer{}, err
	}
	return answer{status: 200, body: "OK\n"}, nil
}
