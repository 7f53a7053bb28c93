package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
)

func TestNodesAndTheirDifferences(t *testing.T) {
	each(t, func(b *bench) {
		here, source := calendar.TZData()
		beat := func(host string, ago time.Duration, change func(n *daybook.Node)) {
			t.Helper()
			n := daybook.Node{ID: "node-" + host, Host: host, PID: 7, Role: "serve", Version: "v1", TZData: here + " " + source, StartedAt: b.now.Add(-time.Hour)}
			if change != nil {
				change(&n)
			}
			if err := b.s.Beat(b.ctx, n, b.now.Add(-ago)); err != nil {
				t.Fatal(err)
			}
		}
		beat("gone", 2*time.Minute, func(n *daybook.Node) { n.Overtaken = 1 })
		beat("stopped", time.Minute, func(n *daybook.Node) { n.StoppedAt = b.now.Add(-time.Minute) })
		beat("old", 9*time.Second, func(n *daybook.Node) { n.Version, n.TZData = "v0", "2019a system" })
		beat("drift", 8*time.Second, func(n *daybook.Node) { n.Offset = -1500 * time.Millisecond })
		beat("far", 7*time.Second, func(n *daybook.Node) { n.Offset = 6 * time.Second })
		beat("behind", 6*time.Second, func(n *daybook.Node) { n.Overtaken = 2 })
		beat("deaf", 5*time.Second, func(n *daybook.Node) { n.Calls = daybook.CallsLost })
		beat("sound", time.Second, func(n *daybook.Node) { n.Calls = daybook.CallsCome })
		views, err := b.NodeViews(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range views {
			line := string(v.State) + " " + v.Host
			for _, f := range v.Findings {
				line += "; " + string(f.Level) + " " + f.What.String()
				if f.Do.IsZero() {
					t.Errorf("%s: nothing to do about %s", v.Host, f.What)
				}
			}
			got = append(got, line)
		}
		want := []string{
			"alive sound",
			"alive deaf; warn node deaf hears no NOTIFY",
			"alive behind; bad node behind: 2 jobs are planned there no more, as another node loaded newer definitions",
			"alive far; bad node far: its clock is off by 6s",
			"alive drift; warn node drift: its clock is off by -1.5s",
			"alive old; warn node old has zone data 2019a system, this program has " + here + "; warn node old runs v0, node sound runs v1",
			"stopped stopped",
			"gone gone",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("nodes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		j := control.NewNodesJSON(views)
		if n := j.Nodes[1]; j.Schema != "daybook/nodes.v1" || n.ID != "node-deaf" || n.PID != 7 || n.Calls != daybook.CallsLost || len(n.Findings) != 1 || n.State != control.NodeAlive {
			t.Errorf("as told: %+v", n)
		}
		found, err := b.Doctor(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, f := range found {
			if strings.HasPrefix(f.What.String(), "node ") {
				n++
			}
		}
		if n != 6 {
			t.Errorf("the doctor tells %d of 6 findings", n)
		}
	})
}
