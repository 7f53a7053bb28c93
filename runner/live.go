package runner

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/daybook-run/daybook"
)

// liveFile is what a command has printed so far, for whoever follows it on this host. What is kept of the output when the
// attempt ends does not come from here.
const liveFile = "output"

const (
	maxLive     = 1 << 20  // bytes of the file: who prints more is followed no further
	maxLiveLine = 16 << 10 // a line is written whole, or not at all: half a secret would not be masked
)

// Marks of what is not in the live file.
const (
	markLiveFull = "[... followed no further: the output is kept when the attempt ends ...]\n"
	markLiveLine = "[... a line that is too long to follow ...]\n"
)

// live is an io.Writer that writes the lines of an output to the live file as they come: safe text, without secrets. That
// it cannot must not end the command: then it stops.
type live struct {
	file    *os.File
	clean   cleaner
	secrets []string
	line    []byte // what waits for the end of its line
	long    bool   // the line is passed over to its end
	ready   bytes.Buffer
	left    int
}

// newLive returns the live file of an attempt, nil when it has no directory that outlives it or none can be made.
func newLive(o daybook.Order, p *place) *live {
	if p.temp {
		return nil
	}
	f, err := os.OpenFile(p.path(liveFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil
	}
	l := &live{file: f, secrets: o.Secrets, left: maxLive}
	l.clean.emit = l.keep
	return l
}

// Write takes the next part of the output.
func (l *live) Write(p []byte) (int, error) {
	if l.file != nil {
		l.clean.write(p)
		l.put()
	}
	return len(p), nil
}

// close writes what waits for the end of its line.
func (l *live) close() {
	if l == nil || l.file == nil {
		return
	}
	l.clean.flush()
	l.endLine()
	l.put()
	if l.file != nil {
		_ = l.file.Close()
	}
}

func (l *live) keep(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i+1]
		}
		p = p[len(part):]
		if l.long = l.long || len(l.line)+len(part) > maxLiveLine; !l.long {
			l.line = append(l.line, part...)
		}
		if i >= 0 {
			l.endLine()
		}
	}
}

func (l *live) endLine() {
	if l.long {
		l.ready.WriteString(markLiveLine)
	} else {
		l.ready.Write(l.line)
	}
	l.line, l.long = l.line[:0], false
}

// put writes the lines that are ready.
func (l *live) put() {
	if l.ready.Len() == 0 || l.file == nil {
		return
	}
	text := daybook.Mask(l.ready.String(), l.secrets)
	l.ready.Reset()
	full := len(text) > l.left
	if full {
		text = markLiveFull
	}
	l.left -= len(text)
	if _, err := l.file.WriteString(text); err != nil || full {
		_ = l.file.Close()
		l.file = nil
	}
}

// Output opens what the work in dir has printed so far. It may grow while the work lives.
func (e *Exec) Output(dir string) (io.ReadCloser, error) {
	return os.OpenFile(filepath.Join(dir, liveFile), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
}
