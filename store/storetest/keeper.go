package storetest

import (
	"time"

	"github.com/daybook-run/daybook"
)

var keeperCases = []example{
	{"a node that beats is listed, and forgotten long after it was seen last", func(k *kit) {
		n := daybook.Node{ID: "n1", Host: "a", PID: 7, Role: "serve", Version: "v1", TZData: "2026a", StartedAt: k.now, Offset: -3 * time.Millisecond, BootID: "b", BootClock: time.Hour}
		k.ok(k.s.Beat(k.ctx, n, k.now))
		n.StoppedAt, n.Offset = k.now.Add(time.Minute), time.Millisecond
		k.ok(k.s.Beat(k.ctx, n, k.now.Add(time.Minute)))
		nodes, err := k.s.Nodes(k.ctx)
		k.ok(err)
		n.SeenAt = k.now.Add(time.Minute)
		equal(k, "nodes", len(nodes), 1)
		equal(k, "node", nodes[0], n)
		k.ok(k.s.Beat(k.ctx, daybook.Node{ID: "n2", StartedAt: k.now.AddDate(0, 0, 20)}, k.now.AddDate(0, 0, 20)))
		nodes, err = k.s.Nodes(k.ctx)
		k.ok(err)
		equal(k, "nodes after twenty days", len(nodes), 2)
		equal(k, "the one seen last", nodes[0].ID, "n2")
		k.ok(k.s.Beat(k.ctx, daybook.Node{ID: "n3", StartedAt: k.now.AddDate(0, 0, 40)}, k.now.AddDate(0, 0, 40)))
		nodes, err = k.s.Nodes(k.ctx)
		k.ok(err)
		equal(k, "nodes after forty days", len(nodes), 2)
	}},
	{"the ledger has an id of its own, a birth and a sequence that only rises", func(k *kit) {
		info, err := k.s.Info(k.ctx)
		k.ok(err)
		equal(k, "born", info.CreatedAt, Birth)
		if info.ID == "" || info.Schema < 1 || info.Bytes == 0 || info.Database == "" || info.Place == "" {
			k.Errorf("info %+v", info)
		}
		for range 3 {
			k.ok(k.s.Beat(k.ctx, daybook.Node{ID: "n1", StartedAt: k.now}, k.now))
			next, err := k.s.Info(k.ctx)
			k.ok(err)
			equal(k, "id", next.ID, info.ID)
			if next.Sequence <= info.Sequence {
				k.Errorf("sequence %d after %d", next.Sequence, info.Sequence)
			}
			info = next
		}
		again, err := ledgerOn(k, k.db.Name, k.db.Open(k)).Info(k.ctx)
		k.ok(err)
		equal(k, "id, opened again", again.ID, info.ID)
	}},
	{"the database's clock is measured around one round trip", func(k *kit) {
		// A clock that stands still an hour behind: only PostgreSQL has one of its own.
		offset, err := k.s.ClockOffset(k.ctx, func() time.Time { return Birth })
		k.ok(err)
		if zero := offset == 0; zero != (k.db.Name == "sqlite") {
			k.Errorf("offset %s", offset)
		}
	}},
}
