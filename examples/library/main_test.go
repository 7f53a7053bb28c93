package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

// The test binary is its own worker: with dirVar set it is the shop, in that directory; with hangVar too, the answers of the
// gateway never arrive.
const (
	dirVar  = "SHOP_DIR"
	hangVar = "SHOP_HANG"
)

var options = engine.Options{App: "shop", Lease: 3 * time.Second}

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVar); dir != "" {
		os.Exit(worker(dir))
	}
	os.Exit(m.Run())
}

func worker(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pay := book(dir)
	if os.Getenv(hangVar) != "" {
		pay.after = func(ctx context.Context) error {
			fmt.Println("charged")
			<-ctx.Done()
			return ctx.Err()
		}
	}
	if err := run(ctx, dir, pay, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func book(dir string) *gateway { return &gateway{dir: filepath.Join(dir, "book")} }

// start starts a worker process.
func start(t *testing.T, dir string, more ...string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), self)
	cmd.Env = append(append(os.Environ(), dirVar+"="+dir), more...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// One day is asked for three times, the worker is killed in the middle of the charge, another one is started, and the day is
// asked for once more: one charge.
func TestOneChargeUnderThreeTriggersAndAKill(t *testing.T) {
	const day = "2025-10-26"
	dir := t.TempDir()
	db, err := handles(filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Write.Close()
	defer db.Read.Close()
	door, err := engine.Open(t.Context(), db, options) // asks, and does nothing itself
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	register(door, book(dir))
	trigger := func(want ...daybook.TriggerOutcome) daybook.Key {
		t.Helper()
		a, err := door.Trigger(t.Context(), "renew", daybook.At(day))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if a.Outcome == w {
				return a.Key
			}
		}
		t.Fatalf("%s, want one of %v: %s", a.Outcome, want, a.Line())
		return ""
	}

	trigger(daybook.Started)
	first, lines := start(t, dir, hangVar+"=1")
	if !lines.Scan() || lines.Text() != "charged" {
		t.Fatalf("the worker said %q %v", lines.Text(), lines.Err())
	}
	trigger(daybook.Joined)
	if err := first.Process.Kill(); err != nil { // kill -9
		t.Fatal(err)
	}
	_ = first.Wait()

	second, _ := start(t, dir)
	key := trigger(daybook.Joined, daybook.Reused)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var r *daybook.Run
	for r == nil || r.State != daybook.Done {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not done in time: %s %s %s", r.State, r.Reason, r.LastError)
		}
		if r, err = door.Control().Run(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	trigger(daybook.Reused)
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the worker did not stop gracefully: %v", err)
	}
	pages, err := book(dir).pages("")
	if err != nil || len(pages) != 1 {
		t.Errorf("the book has %q %v", pages, err)
	}
	if r.Effect == nil || r.Effect.SettledBy != "probe" || r.Attempts != 1 {
		t.Errorf("%d attempts, effect %+v", r.Attempts, r.Effect)
	}
}

func TestDrill(t *testing.T) {
	dir := t.TempDir()
	db, err := handles(filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Write.Close()
	defer db.Read.Close()
	e := daybooktest.New(t, db)
	pay := book(dir)
	register(e.Engine, pay)
	daybooktest.Drill(t, e, "renew", "2026-10-26", func() int {
		pages, err := pay.pages("")
		if err != nil {
			t.Fatal(err)
		}
		return len(pages)
	})
}

// The library brings no SQLite driver (two copies of SQLite in one process break each other's locks), no command line and no
// browser, and no test framework into a program.
func TestWhatTheLibraryBrings(t *testing.T) {
	banned := []string{"modernc.org/", "github.com/mattn/go-sqlite3", "github.com/ncruces/", "github.com/glebarez/", "github.com/spf13/", "github.com/chromedp/", "github.com/go-rod/", "zombiezen.com/"}
	for _, c := range []struct {
		pkg  string
		also []string
	}{
		{"github.com/daybook-run/daybook/engine", []string{"testing", "github.com/daybook-run/daybook/daybooktest"}},
		{"github.com/daybook-run/daybook/daybooktest", nil},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", c.pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		deps := strings.Fields(string(out))
		if len(deps) < 50 {
			t.Errorf("%s: only %d dependencies are listed", c.pkg, len(deps))
		}
		for _, dep := range deps {
			for _, b := range banned {
				if strings.HasPrefix(dep, b) {
					t.Errorf("%s brings %s", c.pkg, dep)
				}
			}
			for _, b := range c.also {
				if dep == b {
					t.Errorf("%s brings %s", c.pkg, dep)
				}
			}
		}
	}
}
