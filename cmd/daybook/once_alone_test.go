package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/daybook-run/daybook"
)

const onceBesideFile = `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  report: {window: day, shell: 'echo server >> lines', overlap: allow}
  slow: {window: day, shell: 'echo server >> slow; until test -e go; do sleep 0.05; done'}
`

// onceDates are windows that lines ask for side by side.
var onceDates = []string{"2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05", "2026-03-06", "2026-03-07", "2026-03-08"}

// A line runs its own command, whoever else could: a serve that is alive never takes what the line made.
func TestALineDoesWhatItMade(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		s := newScene(t, ledger, onceBesideFile)
		s.must(0, "db", "migrate")
		d := s.door()
		var lines sync.WaitGroup
		for _, date := range onceDates {
			lines.Go(func() {
				s.run("once", "-c", "daybook.yaml", "--job", "report", "--date", date, "--", "sh", "-c", "echo line >> lines; exit 65").is(t, 65, "exit 65")
			})
		}
		lines.Wait()
		if got, err := os.ReadFile(filepath.Join(s.dir, "lines")); err != nil || string(got) != strings.Repeat("line\n", len(onceDates)) {
			t.Errorf("%v\n%s", err, got)
		}
		d.end()
	})
}

// Of a key that a serve is at work on, a line says who does it, and that is all it does.
func TestALineSaysWhoDoesIt(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		s := newScene(t, ledger, onceBesideFile)
		s.must(0, "db", "migrate")
		d := s.door()
		s.must(0, "job", "trigger", "slow", "--date", "2026-03-02")
		slow := filepath.Join(s.dir, "slow")
		if !waitFor(func() bool { text, _ := os.ReadFile(slow); return len(text) > 0 }) {
			t.Fatal("serve never ran it")
		}
		line := []string{"once", "-c", "daybook.yaml", "--job", "slow", "--date", "2026-03-02", "--", "sh", "-c", "echo line >> slow"}
		s.run(line...).is(t, 75, "by serve on ")
		if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.must(0, "run", "watch", "slow:2026-03-02", "--exit-status")
		s.run(line...).is(t, 0, "already done")
		if text, err := os.ReadFile(slow); err != nil || string(text) != "server\n" {
			t.Errorf("%v\n%s", err, text)
		}
		d.end()
	})
}

// Over a server it is the same.
func TestALineDoesWhatItMadeOverAServer(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newOfficeOf(t, ledger, onceBesideFile)
		var lines sync.WaitGroup
		for _, date := range onceDates {
			lines.Go(func() {
				o.once("--job", "report", "--date", date, "--", "sh", "-c", "echo line >> lines; exit 65").is(t, 65, "exit 65")
			})
		}
		lines.Wait()
		if got := o.lines(); got != strings.Repeat("line\n", len(onceDates)) {
			t.Errorf("here:\n%s", got)
		}
		if got, err := os.ReadFile(filepath.Join(o.dir, "lines")); err == nil {
			t.Errorf("the server ran\n%s", got)
		}
		o.must(0, "job", "trigger", "slow", "--date", "2026-03-02")
		if !waitFor(func() bool { text, _ := os.ReadFile(filepath.Join(o.dir, "slow")); return len(text) > 0 }) {
			t.Fatal("serve never ran it")
		}
		o.once("--job", "slow", "--date", "2026-03-02", "--", "sh", "-c", "echo line >> lines").is(t, 75, "by serve on ")
		if err := os.WriteFile(filepath.Join(o.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		o.serve.end()
	})
}

// What the file of the machine says of a job counts on a server that knows nothing of it: P0, and that it marks its own steps.
func TestTheFileOfALineOverAServer(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newOffice(t, ledger)
		o.write("daybook.yaml", `version: 1
timezone: Europe/Berlin
defaults: {owner: ops}
jobs:
  renew: {window: day, priority: P0, effects: once, steps: true, remembers: forever, run: ["true"], retry: {backoff: [1s, 2s], jitter: 0%}}
  report: {window: day, timezone: UTC, run: ["true"]}
`)
		line := []string{"--job", "renew", "--date", "2026-03-02", "--", "sh", "-c", `test -n "$DAYBOOK_TOKEN" && echo ran >> lines`}
		o.once(line...).is(t, 0, "")
		r := o.run("renew:2026-03-02")
		if r.Priority != daybook.P0 || r.Effects != daybook.Once || r.Timezone != "Europe/Berlin" || r.State != daybook.Done || o.lines() != "ran\n" {
			t.Errorf("%+v, lines %q", r, o.lines())
		}
		o.once(line...).is(t, 0, "already done")
		// The server's own file has another ladder and another timeout: they count, and are no reason to refuse.
		o.once("--job", "report", "--date", "2026-03-02", "--", "sh", "-c", "exit 0").is(t, 0, "")
		o.serve.end()
	})
}

// A line does a job of the file by its own command, whatever the file says of how it is done otherwise; one that is done for each of its
// subjects it does not do.
func TestALineOfAJobThatIsNoCommand(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		called := make(chan string, 10)
		far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called <- r.Method }))
		t.Cleanup(far.Close)
		s := newScene(t, ledger, `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  call: {window: day, http: {url: "`+far.URL+`"}}
  many: {window: day, subjects: {url: "`+far.URL+`"}, shell: 'echo server >> lines'}
`)
		s.run("once", "-c", "daybook.yaml", "--job", "call", "--date", "2026-03-02", "--", "sh", "-c", "echo line >> lines").is(t, 0, "")
		s.run("once", "-c", "daybook.yaml", "--job", "many", "--date", "2026-03-02", "--", "sh", "-c", "echo many >> lines").is(t, 125, "is done for each of its subjects")
		if got, err := os.ReadFile(filepath.Join(s.dir, "lines")); err != nil || string(got) != "line\n" || len(called) > 0 {
			t.Errorf("%v, lines %q, %d calls", err, got, len(called))
		}
		o := newOffice(t, ledger)
		o.write("daybook.yaml", "version: 1\ntimezone: UTC\ndefaults: {owner: ops}\njobs:\n  many: {window: day, subjects: {url: \""+far.URL+"\"}, shell: 'true'}\n")
		o.once("--job", "many", "--date", "2026-03-03", "--", "sh", "-c", "echo many >> lines").is(t, 125, "is done for each of its subjects")
		if o.lines() != "" {
			t.Errorf("over a server: %q", o.lines())
		}
		o.serve.end()
	})
}

// The file of the machine also says where, and with what, a command of its job runs: here and over a server.
func TestTheEnvironmentOfALineOverAServer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "sqlite:"+filepath.Join(t.TempDir(), "daybook.db"))
	o.write("key", "s3cret-value")
	if err := os.Mkdir(filepath.Join(o.machine, "place"), 0o700); err != nil {
		t.Fatal(err)
	}
	o.write("daybook.yaml", `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  pull: {window: day, dir: place, env: {API_KEY: "file:`+filepath.Join(o.machine, "key")+`", REGION: eu}, run: ["true"], retry: {backoff: [], jitter: 0%}}
`)
	o.once("--job", "pull", "--date", "2026-03-02", "--", "sh", "-c", `echo "$REGION $API_KEY" > ../lines; pwd >> ../lines; echo "key $API_KEY"; exit 65`).is(t, 65, "")
	if want := "eu s3cret-value\n" + filepath.Join(o.machine, "place") + "\n"; o.lines() != want {
		t.Errorf("%q, want %q", o.lines(), want)
	}
	if text := o.must(0, "run", "show", "pull:2026-03-02", "--json"); strings.Contains(text, "s3cret") {
		t.Errorf("the secret is in the ledger: %s", text)
	}
	if err := os.Remove(filepath.Join(o.machine, "key")); err != nil {
		t.Fatal(err)
	}
	o.once("--job", "pull", "--date", "2026-03-03", "--no-retry", "--", "sh", "-c", "echo ran >> ../lines").is(t, 1, "read the secrets of the job")
	o.serve.end()
}

// A line that does not wait says for what it would: another run of its job is under way. It says the same over a server.
func TestALineThatDoesNotWait(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		o := newOfficeOf(t, ledger, `version: 1
timezone: UTC
defaults: {owner: ops}
jobs:
  slow: {window: day, shell: 'echo server >> slow; until test -e go; do sleep 0.05; done'}
`)
		o.must(0, "job", "trigger", "slow", "--date", "2026-03-02")
		if !waitFor(func() bool { text, _ := os.ReadFile(filepath.Join(o.dir, "slow")); return len(text) > 0 }) {
			t.Fatal("serve never ran it")
		}
		line := []string{"--job", "slow", "--date", "2026-03-03", "--no-retry", "--", "sh", "-c", "echo line >> lines"}
		o.scene.run(append([]string{"once", "-c", "daybook.yaml"}, line...)...).is(t, 75, "slow:2026-03-03  waits: another run of its job is under way")
		o.once(line...).is(t, 75, "slow:2026-03-03  waits: another run of its job is under way")
		if err := os.WriteFile(filepath.Join(o.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		o.serve.end()
	})
}
