package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/faultstore"
	"github.com/daybook-run/daybook/store/storetest"
)

// A line whose ledger takes nothing any more does not wait for ever: it says how its command ended, and what is to be done. The command
// is not run again: its end is kept beside it, and recorded by the next call of the line.
func TestALineWhoseLedgerTakesNoMore(t *testing.T) {
	t.Parallel()
	for _, open := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		kind := open(t)
		for _, c := range troubles[kind.Name] {
			t.Run(kind.Name+": "+c.name, func(t *testing.T) {
				t.Parallel()
				c.ofALine(t, open(t))
			})
		}
	}
}

func (c trouble) ofALine(t *testing.T, db storetest.Database) {
	handles := db.Open(t)
	aside := handles
	if db.Name == "postgres" {
		aside = db.Open(t)
		aside.Write.SetMaxOpenConns(1)
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	o := engine.Options{Role: "once", Lease: 3 * time.Second, Slots: map[daybook.Lane]int{}, Dir: path("attempts")}
	d := job("pay", daybook.Once, nil, func(j *daybook.Job) {
		j.Command = daybook.Command{Shell: fmt.Sprintf("cd '%s'; echo ran >> lines; until test -e go; do sleep 0.02; done; head -c 50000 /dev/zero | tr '\\0' x", dir)}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	line := func(e *engine.Engine) (control.Answer, *daybook.Run, error) {
		return e.Foreground(ctx, ops, control.Request{Job: "pay", Window: "2026-03-02", Source: daybook.SourceOnce, Define: &d.Job}, func(*daybook.Run) {})
	}
	over := make(chan error, 1)
	e := open(t, handles, o, d)
	go func() {
		_, _, err := line(e)
		over <- err
	}()
	lines := func() string { text, _ := os.ReadFile(path("lines")); return string(text) }
	until(t, "the command", func() bool { return lines() != "" })
	c.begin(t, aside)
	if err := os.WriteFile(path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := comes(t, "the end of the line", over)
	// A ledger that takes a little still may have taken it by way of what was kept beside the attempt.
	if err != nil && (daybook.CodeOf(err) != daybook.CodeUnavailable || !strings.Contains(err.Error(), "pay:2026-03-02: the command ended (exit 0), and the ledger cannot be written") ||
		!strings.Contains(err.Error(), c.says) || !strings.Contains(daybook.HintOf(err), "start this line again on this machine")) {
		t.Errorf("the line says %v (%s)", err, daybook.HintOf(err))
	}
	c.over(t, aside)
	var r *daybook.Run
	until(t, "the next call of the line", func() bool {
		a, got, err := line(open(t, db.Open(t), o, d))
		if r = got; r == nil {
			r = a.Run
		}
		return err == nil && r.State != daybook.Running // its lease is over
	})
	if r.State != daybook.Done || r.Attempts != 1 || lines() != "ran\n" {
		t.Errorf("%s: %s, %d attempts, the command ran %q", r.State, r.LastError, r.Attempts, lines())
	}
}

// A line that has claimed what it asked for does it, also when the words of the answer could not be found: nobody else would before its
// lease is over.
func TestALineDoesWhatItClaimed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := faultstore.New(1)
		f.Add(faultstore.Rule{Contains: "FROM daybook_nodes ORDER BY", Nth: 2, Err: errors.New("no words")}) // the first is for its clock
		c := answering(nil)
		d := job("pay", daybook.Once, c.do)
		e := open(t, db.Faulty(t, f), engine.Options{Role: "once", Slots: map[daybook.Lane]int{}}, d)
		_, r, err := e.Foreground(t.Context(), ops, control.Request{Job: "pay", Window: "2026-03-02", Source: daybook.SourceOnce, Define: &d.Job}, nil)
		if err != nil || r.State != daybook.Done || c.n.Load() != 1 || f.Failed() != 1 {
			t.Errorf("%+v %v, %d calls, %d faults", r, err, c.n.Load(), f.Failed())
		}
	})
}
