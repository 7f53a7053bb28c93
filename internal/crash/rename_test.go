package crash

import (
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// Killed in the middle of charges, renamed in the file, and started again: what was begun under the old name is settled under
// it, with its wire key, and whoever asks by the new one is answered from it. Nobody is charged twice.
func TestARenameChargesNobodyTwice(t *testing.T) {
	const jobs = `
  paid: {effects: once, window: day, FORMERLY retry: {backoff: [], jitter: 0%}, run: [ME, charge, 0s, 0s]}
  probe: {effects: once, window: day, FORMERLY probe: [ME, ask], settles: 1s, retry: {backoff: [], jitter: 0%}, run: [ME, charge-hang]}
  memory: {effects: once, window: day, FORMERLY remembers: 24h, retry: {backoff: [100ms], jitter: 0%}, run: [ME, charge-hang]}
  neither: {effects: once, window: day, FORMERLY retry: {backoff: [], jitter: 0%}, run: [ME, charge-hang]}
`
	names := []string{"paid", "probe", "memory", "neither"}
	onBoth(t, strings.ReplaceAll(jobs, "FORMERLY", ""), func(w *world) {
		s := w.served()
		w.trigger("paid", day)
		w.ends("paid:"+day, daybook.Done)
		for _, j := range names[1:] {
			w.trigger(j, day)
		}
		charged := func(n int) func() bool {
			return func() bool {
				tally, err := gateway.Count(w.book)
				return err == nil && tally.Charges == n
			}
		}
		w.until("all are charged", charged(len(names)))
		w.kill(s, true)

		text, err := os.ReadFile(w.config)
		if err != nil {
			w.t.Fatal(err)
		}
		renamed := string(text)
		for _, j := range names {
			renamed = strings.Replace(renamed, "\n  "+j+": {", "\n  new-"+j+": {formerly: "+j+", ", 1)
		}
		if err := os.WriteFile(w.config, []byte(renamed), 0o600); err != nil {
			w.t.Fatal(err)
		}
		w.served()
		for _, j := range names { // while some of them are being settled
			if a := w.trigger("new-"+j, day); a.Key != daybook.Key(j+":"+day) {
				w.t.Errorf("new-%s:%s is answered by %s: %s", j, day, a.Key, a.Line())
			}
		}
		for j, state := range map[string]daybook.State{"paid": daybook.Done, "probe": daybook.Done, "memory": daybook.Done, "neither": daybook.Dead} {
			w.ends(j+":"+day, state)
			if a := w.trigger("new-"+j, day); a.Outcome == daybook.Started {
				w.t.Errorf("new-%s: another trigger is %s", j, a.Outcome)
			}
		}
		w.rows(`SELECT key FROM daybook_runs WHERE key LIKE 'new-%'`, func(rows *sql.Rows) error {
			var key string
			err := rows.Scan(&key)
			w.t.Errorf("%s was made", key)
			return err
		})
		w.rows(`SELECT wire_key, key FROM daybook_attempts WHERE wire_key <> ''`, func(rows *sql.Rows) error {
			var wire, key string
			err := rows.Scan(&wire, &key)
			if wire != key {
				w.t.Errorf("%s was sent as %s", key, wire)
			}
			return err
		})
		if !charged(len(names))() {
			w.t.Error("somebody was charged again")
		}
		w.noDirectories()
	})
}
