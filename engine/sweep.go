package engine

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/daybook-run/daybook"
)

// Times of the sweep.
const (
	sweepEvery = time.Hour
	sweepAge   = 24 * time.Hour // of what is removed: its run has been rescued by then
)

// cleaner removes the directory of an attempt in which nothing is alive; *runner.Exec is one.
type cleaner interface {
	Alive(dir string) (alive, known bool)
	Clean(dir string) error
}

// sweep removes what attempts left on this host and nobody asks for any more: a crash came between the writing of their
// end and the removal. Payloads lie there, so nothing stays for good.
type sweep struct {
	dir  string
	exec cleaner
	log  *slog.Logger
	dead map[string]time.Time // since when this process knows that nothing there is alive
}

// Tick implements daybook.Service.
func (s *sweep) Tick(_ context.Context, now time.Time) (more bool, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, daybook.New(daybook.CodeUnavailable, "look for what attempts left").Because(err)
	}
	was := s.dead
	s.dead = make(map[string]time.Time, len(entries))
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() || now.Sub(info.ModTime()) < sweepAge {
			continue
		}
		if alive, _ := s.exec.Alive(path); alive {
			continue
		}
		since, seen := was[e.Name()]
		if !seen {
			s.dead[e.Name()] = now
			continue
		}
		s.dead[e.Name()] = since
		if now.Sub(since) < sweepEvery {
			continue
		}
		err = s.exec.Clean(path)
		if errors.Is(err, daybook.ErrInvalid) { // made, and then nothing came: it is empty
			err = os.Remove(path)
		}
		if err != nil {
			s.log.Warn("remove what an attempt left", "dir", path, "err", err)
			continue
		}
		delete(s.dead, e.Name())
	}
	return false, nil
}
