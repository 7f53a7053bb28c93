package control

import (
	"context"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// NodeState says whether a node lives.
type NodeState string

// The states of a node.
const (
	NodeAlive   NodeState = "alive"
	NodeStopped NodeState = "stopped" // on purpose
	NodeGone    NodeState = "gone"    // not seen for more than 30 s
)

// NodeView is a process that works, or worked, on the ledger.
type NodeView struct {
	daybook.Node
	State NodeState
	// Findings is what is wrong with a node that lives, and in what it differs from the others.
	Findings []Finding
}

// NodeViews lists the processes that work on the ledger and those of the last 30 days, the one seen last first.
func (c *Control) NodeViews(ctx context.Context) ([]NodeView, error) {
	nodes, err := c.s.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	now := c.now()
	views := make([]NodeView, len(nodes))
	var alive []daybook.Node
	for i, n := range nodes {
		views[i] = NodeView{Node: n, State: stateOf(n, now)}
		if views[i].State == NodeAlive {
			alive = append(alive, n)
		}
	}
	for i, v := range views {
		if v.State == NodeAlive {
			views[i].Findings = differences(v.Node, alive)
		}
	}
	return views, nil
}

func stateOf(n daybook.Node, now time.Time) NodeState {
	switch {
	case !n.StoppedAt.IsZero():
		return NodeStopped
	case now.Sub(n.SeenAt) > nodeSeen:
		return NodeGone
	}
	return NodeAlive
}

// differences are what is wrong with a node that lives among the others that do.
func differences(n daybook.Node, alive []daybook.Node) (found []Finding) {
	add := func(level Level, what, do daybook.Text) {
		found = append(found, Finding{Level: level, What: what, Do: do})
	}
	here, _ := calendar.TZData()
	switch off := n.Offset.Abs(); {
	case off > offsetMax:
		add(LevelBad, offsetText(n), offsetDo)
	case off > offsetTold:
		add(LevelWarn, offsetText(n), driftDo)
	}
	if version, _, _ := strings.Cut(n.TZData, " "); version != "" && version != here {
		add(LevelWarn, tzdataText(n, here), tzdataDo)
	}
	if n.Version != alive[0].Version {
		add(LevelWarn, versionText(n, alive[0]), versionDo)
	}
	if n.Overtaken > 0 {
		add(LevelBad, overtakenText(n), overtakenDo)
	}
	if n.Calls == daybook.CallsLost {
		add(LevelWarn, deafText(n), deafDo)
	}
	return found
}

// NodesJSON is daybook/nodes.v1.
type NodesJSON struct {
	Schema string     `json:"schema"`
	Nodes  []NodeJSON `json:"nodes"`
}

// NodeJSON is one node.
type NodeJSON struct {
	ID        string            `json:"id"`
	Host      string            `json:"host"`
	PID       int               `json:"pid"`
	Role      string            `json:"role"`
	Version   string            `json:"version"`
	TZData    string            `json:"tzdata"`
	State     NodeState         `json:"state"`
	Started   time.Time         `json:"started"`
	Seen      time.Time         `json:"seen"`
	Stopped   time.Time         `json:"stopped,omitzero"`
	OffsetMS  int64             `json:"offset_ms"`
	Overtaken int               `json:"overtaken"`
	Calls     daybook.NodeCalls `json:"calls"`
	Findings  []NodeFindingJSON `json:"findings"`
}

// NodeFindingJSON is what is wrong with a node, and what to do about it.
type NodeFindingJSON struct {
	Level Level        `json:"level"`
	What  daybook.Text `json:"what"`
	Do    daybook.Text `json:"do,omitzero"`
}

// NewNodesJSON returns nodes as they are told.
func NewNodesJSON(views []NodeView) NodesJSON {
	j := NodesJSON{Schema: "daybook/nodes.v1", Nodes: []NodeJSON{}}
	for _, v := range views {
		n := NodeJSON{v.ID, v.Host, v.PID, v.Role, v.Version, v.TZData, v.State, v.StartedAt, v.SeenAt, v.StoppedAt, v.Offset.Milliseconds(),
			v.Overtaken, v.Calls, []NodeFindingJSON{}}
		for _, f := range v.Findings {
			n.Findings = append(n.Findings, NodeFindingJSON(f))
		}
		j.Nodes = append(j.Nodes, n)
	}
	return j
}
