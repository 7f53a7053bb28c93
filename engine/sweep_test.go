package engine

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/daybook-run/daybook/runner"
)

// living is a runner that finds something alive in one directory.
type living struct {
	*runner.Exec
	in string
}

func (l living) Alive(dir string) (alive, known bool) {
	if filepath.Base(dir) == l.in {
		return true, true
	}
	return l.Exec.Alive(dir)
}

// What nobody asks for any more is removed after a day, and only what was dead for an hour before.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"old-1": 25 * time.Hour, "alive-1": 25 * time.Hour, "empty-1": 25 * time.Hour, "new-1": time.Hour} {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name != "empty-1" {
			for _, file := range []string{"lock", "payload"} {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	s := &sweep{dir: root, exec: living{&runner.Exec{}, "alive-1"}, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{0, []string{"alive-1", "empty-1", "new-1", "old-1"}},
		{30 * time.Minute, []string{"alive-1", "empty-1", "new-1", "old-1"}},
		{time.Hour, []string{"alive-1", "new-1"}},
		{24 * time.Hour, []string{"alive-1", "new-1"}},
		{26 * time.Hour, []string{"alive-1"}},
	} {
		if _, err := s.Tick(t.Context(), now.Add(step.after)); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if !slices.Equal(left, step.want) {
			t.Errorf("after %s: %v, want %v", step.after, left, step.want)
		}
	}
	if _, err := (&sweep{dir: filepath.Join(root, "none"), log: s.log}).Tick(t.Context(), now); err != nil {
		t.Errorf("no directory: %v", err)
	}
}
