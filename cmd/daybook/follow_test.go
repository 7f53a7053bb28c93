package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook/control"
)

// TestWhoFollowsIsToldThatAPersonIsNeeded: what only a person lets go on is not waited for.
func TestWhoFollowsIsToldThatAPersonIsNeeded(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		s := newScene(t, ledger, `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  charge: {window: day, effects: once, serial: account, run: [sh, -c, "exit 1"]}
  extend: {window: day, serial: account, run: ["true"]}
`)
		s.must(0, "db", "migrate")
		defer s.serve()()
		s.must(1, "job", "trigger", "charge", "--date", "2026-03-01", "--wait")
		wants := []string{"extend:2026-03-01 waits for serial key account, which charge:2026-03-01 has, and for a person: the outcome of charge:2026-03-01 is unknown",
			`daybook run resolve charge:2026-03-01 --step run --as "done|not-done" --reason`}
		for _, args := range [][]string{{"job", "trigger", "extend", "--date", "2026-03-01", "--wait=1m"}, {"run", "watch", "extend:2026-03-01", "--for", "1m"}} {
			began := time.Now()
			r := s.run(args...)
			for _, want := range wants {
				if !strings.Contains(r.stderr, want) {
					t.Errorf("%v: it does not say %q", args, want)
				}
			}
			if took := time.Since(began); r.code != 3 || took > 30*time.Second {
				t.Errorf("%v: exit %d after %s\n%s%s", args, r.code, took, r.stdout, r.stderr)
			}
		}
		shown := s.must(0, "run", "show", "extend:2026-03-01")
		for _, want := range append(wants[1:], "held by charge:2026-03-01 since", "needs you") {
			if !strings.Contains(shown, want) {
				t.Errorf("run show does not say %q:\n%s", want, shown)
			}
		}
		if said := s.must(0, "run", "show", "extend:2026-03-01", "--lang", "zh-CN"); !strings.Contains(said, "需要你") || !strings.Contains(said, "charge:2026-03-01 的结果未知") {
			t.Errorf("in Chinese:\n%s", said)
		}
		if said := s.must(0, "key", "show", "extend:2026-03-01"); !strings.Contains(said, "needs you  the outcome of charge:2026-03-01 is unknown") {
			t.Errorf("key show:\n%s", said)
		}
		var j control.RunJSON
		if err := json.Unmarshal([]byte(s.must(0, "run", "show", "extend:2026-03-01", "--json")), &j); err != nil || len(j.WaitsFor) != 1 || !j.WaitsFor[0].Person || j.WaitsFor[0].Serial != "account" {
			t.Errorf("%+v %v", j.WaitsFor, err)
		}
		s.must(0, "run", "resolve", "charge:2026-03-01", "--step", "run", "--as", "done", "--reason", "seen there", "--confirm", "charge:2026-03-01")
		s.must(0, "run", "watch", "extend:2026-03-01", "--for", "1m", "--exit-status")
	})
}
