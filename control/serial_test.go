package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func TestSerialKeysAreToldOf(t *testing.T) {
	each(t, func(b *bench) {
		b.at(utc("2026-03-01T12:00:00"))
		b.job(daybook.Job{Name: "renew", Window: daybook.Day, Serial: "account:7", Overlap: daybook.OverlapAllow,
			Expect: daybook.Expect{MaxRuntime: 20 * time.Minute}})
		b.beat(daybook.Node{})
		first, second := daybook.Key("renew:2026-03-01"), daybook.Key("renew:2026-02-28")
		b.trigger(control.Request{Job: "renew", Window: "2026-03-01"})
		b.claim(first)
		b.trigger(control.Request{Job: "renew", Window: "2026-02-28"})
		if runs, err := b.s.Claim(b.ctx, daybook.Claim{Node: "n1", Key: second, Limit: 1, Lease: b.now.Add(time.Minute), NewID: func() string { return "c" }}, b.now); err != nil || len(runs) != 0 {
			t.Fatalf("claimed %d beside the holder: %v", len(runs), err)
		}
		for _, k := range []daybook.Key{first, second} {
			r := b.run(k)
			l, err := b.Lock(b.ctx, r)
			if err != nil || l == nil || l.Key != first || !l.Since.Equal(b.now) || l.Waiting != 1 {
				t.Errorf("lock of %s: %+v %v", k, l, err)
			}
			if s, err := b.Key(b.ctx, k); err != nil || s.Lock == nil || s.Lock.Key != first {
				t.Errorf("story of %s: %+v %v", k, s.Lock, err)
			}
		}
		if a := b.trigger(control.Request{Job: "renew", Window: "2026-02-28"}); a.Outcome != daybook.Joined || !strings.Contains(a.Line(), "waiting for serial key") {
			t.Errorf("asked again: %s", a.Line())
		}
		b.after(20 * time.Minute)
		b.beat(daybook.Node{})
		for _, n := range b.status().NeedsYou {
			if n.Kind == "serial stuck" {
				t.Errorf("at its limit: %+v", n)
			}
		}
		b.after(time.Second)
		s := b.judged("over its limit", control.VerdictNo, "has serial key account:7 for 20 m 1 s, longer than its max_runtime 20 m; 1 run waits for it")
		if n := s.NeedsYou[0]; n.Kind != "serial stuck" || n.Key != first || n.Do.String() != "daybook run show renew:2026-03-01" {
			t.Errorf("needs: %+v", s.NeedsYou)
		}

		doctor := func() string {
			found, err := b.Doctor(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, f := range found {
				lines = append(lines, string(f.Level)+" "+f.What.String())
			}
			return strings.Join(lines, "\n")
		}
		if got := doctor(); !strings.Contains(got, "ok 1 serial key is held, by a run that needs it") {
			t.Errorf("doctor:\n%s", got)
		}
		b.sql("UPDATE daybook_locks SET key = 'renew:2026-01-01'")
		if got := doctor(); !strings.Contains(got, "bad serial key account:7 is held by renew:2026-01-01, which is not at work") {
			t.Errorf("doctor:\n%s", got)
		}
	})
}
