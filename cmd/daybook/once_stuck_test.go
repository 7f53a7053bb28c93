package main

import "testing"

// A line that only a person lets go on does not wait for ever, where nobody sees it: it ends, as a line that is refused does, and says
// who is in its way and what is to be done. It says the same over a server, and when it would not wait in any case.
func TestALineThatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newOfficeOf(t, ledger, `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  charge: {window: day, effects: once, serial: account, run: [sh, -c, "exit 1"]}
  extend: {window: day, serial: account, run: ["true"]}
`)
		defer o.serve.end()
		o.must(1, "job", "trigger", "charge", "--date", "2026-03-01", "--wait")
		const who = "extend:2026-03-01 waits for serial key account, which charge:2026-03-01 has, and for a person: the outcome of charge:2026-03-01 is unknown"
		const do = `daybook run resolve charge:2026-03-01 --step run --as \"done|not-done\" --reason …; then start this line again`
		line := []string{"--job", "extend", "--date", "2026-03-01", "--", "sh", "-c", "echo line >> lines"}
		here := append([]string{"once", "-c", "daybook.yaml"}, line...)
		for _, more := range [][]string{nil, {"--no-retry"}} {
			o.scene.run(append(append([]string{here[0]}, more...), here[1:]...)...).is(t, 125, who).is(t, 125, do)
			o.once(append(more, line...)...).is(t, 125, who).is(t, 125, do)
		}
		if lines := o.lines(); lines != "" {
			t.Errorf("it ran: %s", lines)
		}
		o.must(0, "run", "resolve", "charge:2026-03-01", "--step", "run", "--as", "done", "--reason", "seen there", "--confirm", "charge:2026-03-01")
		o.must(0, "run", "watch", "extend:2026-03-01", "--for", "1m", "--exit-status")
	})
}
