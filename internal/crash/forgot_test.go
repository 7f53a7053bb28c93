package crash

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
	"github.com/daybook-run/daybook/internal/pgtest"
)

// forgotJobs differ in who can tell what happened: the far side when it is asked, its memory, nobody but a person, the far side
// about each step. The last may be repeated.
const forgotJobs = `
  probe: {priority: P0, effects: once, window: day, probe: [ME, ask], settles: 1500ms, retry: {backoff: [200ms], jitter: 0%}, run: [ME, charge, 0s, 0s]}
  memory: {priority: P0, effects: once, window: day, remembers: 24h, retry: {backoff: [200ms], jitter: 0%}, run: [ME, charge, 0s, 0s]}
  neither: {priority: P0, effects: once, window: day, retry: {backoff: [200ms], jitter: 0%}, run: [ME, charge, 0s, 0s]}
  steps: {priority: P0, effects: once, steps: true, window: day, probe: [ME, ask-book], settles: 1500ms, retry: {backoff: [200ms], jitter: 0%},
    run: [sh, -c, '"$DAYBOOK_CRASH_BINARY" effect first -- ME book first && "$DAYBOOK_CRASH_BINARY" effect second -- ME book second']}
  report: {window: day, run: [ME, idle, 0s, 0s]}
`

// The windows of the test: done before the copy was made, waiting when it was made, and asked for after it.
const (
	known     = "2026-03-02"
	waiting   = "2026-03-03"
	forgotten = "2026-03-04"
)

var forgotAll = []string{"probe", "memory", "neither", "steps", "report"}

// A way in which a ledger comes to forget.
type forgetting struct {
	name string
	kind string // of the database
	make func(w *world) (copied, putBack func())
}

var forgettings = []forgetting{
	{"a backup is restored", "sqlite", func(w *world) (func(), func()) {
		file := filepath.Join(w.dir, "backup.db")
		return func() { w.mustSay("", "db", "backup", file) }, func() {
			w.quit()
			w.mustSay("is kept as", "db", "restore", file, "--yes")
		}
	}},
	{"a backup is put in place by hand", "sqlite", func(w *world) (func(), func()) {
		file := filepath.Join(w.dir, "backup.db")
		return func() { w.mustSay("", "db", "backup", file) }, func() {
			w.quit()
			w.put(file, w.file())
		}
	}},
	{"a file is copied back by hand", "sqlite", func(w *world) (func(), func()) {
		file := filepath.Join(w.dir, "copy")
		return func() { w.put(w.file(), file) }, func() {
			w.quit()
			w.put(file, w.file())
		}
	}},
	{"a file is moved into place while serve works", "sqlite", func(w *world) (func(), func()) {
		file := filepath.Join(w.dir, "copy")
		return func() { w.put(w.file(), file) }, func() {
			s := w.alive()[0]
			w.do(os.Rename(file, w.file()))
			<-s.ended // it sees that its file has gone
			for _, log := range []string{"-wal", "-shm"} {
				if err := os.Remove(w.file() + log); !errors.Is(err, fs.ErrNotExist) {
					w.do(err)
				}
			}
		}
	}},
	{"a database is put back while serve works", "postgres", func(w *world) (func(), func()) {
		server, err := sql.Open("pgx", strings.Replace(w.url, "/daybook?", "/postgres?", 1))
		w.do(err)
		w.t.Cleanup(func() { _ = server.Close() })
		do := func(statement string) {
			w.t.Helper()
			_, err := server.ExecContext(w.t.Context(), statement)
			w.do(err)
		}
		return func() { do("CREATE DATABASE copied TEMPLATE daybook") }, func() {
			do("DROP DATABASE daybook WITH (FORCE)")
			do("ALTER DATABASE copied RENAME TO daybook")
		}
	}},
}

// TestALedgerThatForgot: whatever puts a ledger back, nothing that may happen once only happens twice by the gateway's book, a
// person is asked once about what nobody else can tell, and what may be repeated goes on meanwhile. R54.
func TestALedgerThatForgot(t *testing.T) {
	t.Parallel()
	for _, f := range forgettings {
		if testing.Short() && f.kind != "sqlite" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, f.kind, forgotJobs)
			copied, putBack := f.make(w)
			w.forgets(copied, putBack)
		})
	}
}

// TestAStandbyThatLaggedIsPromoted: the primary is gone for good, and the URL that names both servers leads to a standby that does
// not know the last of it. R54.
func TestAStandbyThatLaggedIsPromoted(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts servers of its own")
	}
	t.Parallel()
	primary := pgtest.Server(t)
	standby := primary.Standby()
	w := newWorld(t, pgtest.Both(t, primary, standby), forgotJobs)
	w.forgets(func() { primary.Leave(standby) }, func() {
		primary.Stop(pgtest.Crash)
		standby.Start()
		standby.Promote()
	})
}

// forgets tells the story of a ledger that forgets: it is copied, goes on, and is put back.
func (w *world) forgets(copied, putBack func()) {
	w.t.Helper()
	w.db.SetMaxIdleConns(0) // what looks at the ledger does not have it open in between
	w.served()
	w.asks(known, forgotAll...)
	w.done(known, forgotAll...)
	w.quit()
	w.asks(waiting, forgotAll...)
	copied()
	w.served()
	w.done(waiting, forgotAll...)
	w.asks(forgotten, forgotAll...)
	w.done(forgotten, forgotAll...)
	w.once()
	reports := len(w.entries("report:"+forgotten, "begin"))

	putBack()
	if len(w.alive()) == 0 {
		w.served()
	}
	w.until("it is found", func() bool { out, _ := w.say("freeze", "list", "--json"); return strings.Contains(out, `"restored"`) })
	w.asks(forgotten, forgotAll...)

	// While the freeze stands, work goes on that may be repeated, and far sides are asked about what was in the ledger.
	w.done(waiting, "report", "probe")
	w.done(forgotten, "report")
	if n := len(w.entries("report:"+forgotten, "begin")); n != reports+1 {
		w.t.Errorf("report was done %d times", n)
	}
	w.ends("neither:"+waiting, daybook.Dead)
	if out, code := w.say("freeze", "end", "restored", "--reason", "too early", "--yes"); code != 4 || !strings.Contains(out, "1 unknown outcome") {
		w.t.Errorf("the freeze is ended: %d %s", code, out)
	}
	w.once()
	for _, key := range []string{"probe:" + forgotten, "memory:" + forgotten, "neither:" + forgotten, "steps:" + forgotten, "memory:" + waiting, "steps:" + waiting} {
		if state, _ := w.state(key); state != daybook.Scheduled && state != daybook.Retryable {
			w.t.Errorf("%s is %s while the freeze stands", key, state)
		}
	}
	w.resolve("neither:" + waiting)
	w.mustSay("restored has ended", "freeze", "end", "restored", "--reason", "settled", "--yes")

	// Each goes through its probe, the memory of its far side, or a person.
	w.ends("neither:"+forgotten, daybook.Dead)
	w.resolve("neither:" + forgotten)
	for _, d := range []string{waiting, forgotten} {
		w.done(d, forgotAll...)
	}
	w.once()
	w.rows(`SELECT COUNT(*), COALESCE(SUM(CASE WHEN state = 'open' THEN 1 ELSE 0 END), 0) FROM daybook_letters`, func(rows *sql.Rows) error {
		var letters, open int
		err := rows.Scan(&letters, &open)
		if letters != 2 || open != 0 {
			w.t.Errorf("%d letters, %d of them open", letters, open)
		}
		return err
	})

	// It knows everything now, and a new start finds nothing.
	w.quit()
	w.served()
	w.asks("2026-03-05", "report")
	w.done("2026-03-05", "report")
	w.rows(`SELECT COUNT(*) FROM daybook_lapses`, func(rows *sql.Rows) error {
		var n int
		err := rows.Scan(&n)
		if n != 1 {
			w.t.Errorf("the ledger was found to have forgotten %d times", n)
		}
		return err
	})
}

// TestALedgerThatForgotNothing: what happens to a ledger every day is no forgetting, also with the witness of two processes.
func TestALedgerThatForgotNothing(t *testing.T) {
	onBoth(t, forgotJobs, func(w *world) {
		first := w.served()
		second := w.served()
		w.asks(known, forgotAll...)
		w.kill(first, true)
		w.served()
		w.asks(waiting, "memory", "report")
		w.kill(second, true)
		w.served()
		w.quit()
		if path, lite := strings.CutPrefix(w.url, "sqlite:"); lite { // it is moved, with all that is beside it
			moved := filepath.Join(w.dir, "moved")
			w.do(os.Mkdir(moved, 0o700))
			files, err := filepath.Glob(path + "*")
			w.do(err)
			for _, f := range files {
				w.do(os.Rename(f, filepath.Join(moved, filepath.Base(f))))
			}
			w.url = "sqlite:" + filepath.Join(moved, filepath.Base(path))
		}
		w.served()
		w.asks(forgotten, "memory", "report")
		out, _ := w.say("freeze", "list", "--json")
		if strings.Contains(out, "restored") {
			w.t.Error(out)
		}
	})
}

// TestALedgerIsWrittenOver: a copy is written into the file of a ledger while serve works on it, which SQLite does not notice. serve
// does, ends, and does not begin again before a whole copy is there.
func TestALedgerIsWrittenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite", forgotJobs)
	w.db.SetMaxIdleConns(0)
	w.served()
	w.asks(known, "neither")
	w.done(known, "neither")
	w.quit()
	backup, copied := filepath.Join(w.dir, "backup.db"), filepath.Join(w.dir, "copy")
	w.mustSay("", "db", "backup", backup)
	w.put(w.file(), copied)
	s := w.served()
	w.asks(waiting, "neither")
	w.done(waiting, "neither")
	db := w.handles() // as the next backup, or the checkpoint of a busier hour, brings what is in the log into the file
	w.until("the log is in the file", func() bool {
		var busy, left, moved int
		w.do(db.Write.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &left, &moved))
		return busy == 0
	})
	w.do(errors.Join(db.Write.Close(), db.Read.Close()))
	<-time.After(2 * time.Second) // serve has seen it
	b, err := os.ReadFile(copied)
	w.do(err)
	w.do(os.WriteFile(w.file(), b, 0o600))
	const says = "was written over while it was worked on"
	<-s.ended
	for _, s := range []*served{s, w.serve()} {
		<-s.ended
		if code := s.cmd.ProcessState.ExitCode(); code != 6 {
			t.Errorf("serve exited with %d", code)
		}
	}
	if text, err := os.ReadFile(w.log.Name()); err != nil || strings.Count(string(text), says) < 2 {
		t.Errorf("it is not said: %v", err)
	}
	w.mustSay("is kept as", "db", "restore", backup, "--yes")
	w.served()
	w.asks(waiting, "neither")
	w.mustSay("restored has ended", "freeze", "end", "restored", "--reason", "settled", "--yes")
	w.ends("neither:"+waiting, daybook.Dead)
	if n := w.booked("neither"); n != 2 {
		t.Errorf("charged %d times", n)
	}
}

func (w *world) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// file is the ledger, as SQLite has it.
func (w *world) file() string { return strings.TrimPrefix(w.url, "sqlite:") }

// put copies a file by hand.
func (w *world) put(from, to string) {
	w.t.Helper()
	b, err := os.ReadFile(from)
	w.do(err)
	if _, err := os.Stat(from + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatalf("%s has a log beside it: %v", from, err)
	}
	w.do(os.WriteFile(to, b, 0o600))
}

// quit lets every process stop.
func (w *world) quit() {
	w.t.Helper()
	for _, s := range w.alive() {
		if code := w.terminate(s); code != 0 {
			w.t.Errorf("serve exited with %d", code)
		}
	}
}

// say says something on the command line.
func (w *world) say(args ...string) (out string, code int) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), binary, append(args, "-c", w.config, "--lang", "en")...)
	cmd.Env = w.env()
	text, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func (w *world) mustSay(want string, args ...string) {
	w.t.Helper()
	if out, code := w.say(args...); code != 0 || !strings.Contains(out, want) {
		w.t.Fatalf("%v: %d %s", args, code, out)
	}
}

// resolve says that it happened, as the gateway's book has it.
func (w *world) resolve(key string) {
	w.t.Helper()
	w.mustSay("", "run", "resolve", key, "--step", "run", "--as", "done", "--reason", "the gateway has it", "--confirm="+key)
}

func (w *world) asks(day string, jobs ...string) {
	w.t.Helper()
	for _, j := range jobs {
		out, code := w.say("job", "trigger", j, "--window", day, "--confirm="+j+":"+day, "--reason", "test")
		if code != 0 {
			w.t.Fatalf("%s: %d %s", j, code, out)
		}
	}
}

func (w *world) done(day string, jobs ...string) {
	w.t.Helper()
	for _, j := range jobs {
		w.ends(j+":"+day, daybook.Done)
	}
}

// once looks into the gateway's book: each was charged once for each day.
func (w *world) once() {
	w.t.Helper()
	tally, err := gateway.Count(w.book)
	w.do(err)
	for who, n := range tally.ByDay {
		if n != 1 {
			w.t.Errorf("%s was charged %d times for %s", who.Customer, n, who.Day)
		}
	}
	if len(tally.ByDay) != 5*3 {
		w.t.Errorf("charged: %v", tally.ByDay)
	}
}
