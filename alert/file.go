package alert

import (
	"context"
	"os"
	"strings"
	"time"
)

// fileChannel appends each text to a file.
type fileChannel struct{ path string }

func newFile(s Settings) (Channel, error) { return &fileChannel{path: s.Path}, nil }

// Send implements Channel. A text is one write, so that two programs do not mix theirs; it is on the disk when Send
// returns.
func (c *fileChannel) Send(_ context.Context, m Message) (err error) {
	f, err := os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	text := m.Now.UTC().Format(time.RFC3339) + "  " + oneLine(m.Key) + "\n" + strings.TrimRight(m.Body, "\n") + "\n\n"
	if _, err = f.WriteString(text); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
