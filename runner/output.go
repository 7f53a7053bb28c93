package runner

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

// SafeText turns what a program printed into text that can be stored and shown anywhere: valid UTF-8, one kind of line
// end, no terminal codes, no control characters but newline and tab. Invalid bytes and NUL become U+FFFD, so that their
// presence is seen; a lone carriage return, as progress bars print it, ends the line.
func SafeText(b []byte) string {
	var out bytes.Buffer
	out.Grow(len(b))
	c := cleaner{emit: func(p []byte) { out.Write(p) }}
	c.write(b)
	c.flush()
	return out.String()
}

// Capture keeps the head and the tail of what is written to it, as safe text, in bounded memory. It is an io.Writer
// that never fails. It is not safe for concurrent use.
type Capture struct {
	clean cleaner
	head  []byte
	full  bool // the head takes no more
	tail  ring
	half  int
}

// markRoom is kept free for the mark that stands where bytes were left out.
const markRoom = 64

// NewCapture returns a Capture whose text has at most limit bytes, the mark included.
func NewCapture(limit int) *Capture {
	half := max(limit-markRoom, 0) / 2
	c := &Capture{half: half, tail: ring{size: half}}
	c.clean.emit = c.keep
	return c
}

// Write takes the next part of the output.
func (c *Capture) Write(p []byte) (int, error) {
	c.clean.write(p)
	return len(p), nil
}

// Output returns what was kept. Nothing may be written afterwards.
func (c *Capture) Output() daybook.Output {
	c.clean.flush()
	tail, omitted := c.tail.bytes()
	if omitted == 0 {
		return daybook.Output{Text: string(c.head) + string(tail)}
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) { // the ring may have cut a character
		tail, omitted = tail[1:], omitted+1
	}
	var b strings.Builder
	b.Grow(len(c.head) + len(tail) + markRoom)
	b.Write(c.head)
	if n := len(c.head); n > 0 && c.head[n-1] != '\n' {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[... %d bytes omitted ...]\n", omitted)
	b.Write(tail)
	return daybook.Output{Text: b.String(), Omitted: omitted}
}

func (c *Capture) keep(p []byte) {
	if !c.full {
		n := min(c.half-len(c.head), len(p))
		if n < len(p) {
			c.full = true
			for n > 0 && !utf8.RuneStart(p[n]) {
				n--
			}
		}
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > 0 {
		c.tail.write(p)
	}
}

// ring keeps the last size bytes.
type ring struct {
	size  int
	buf   []byte
	next  int   // where the next byte goes, once buf is full
	total int64 // bytes ever written
}

func (r *ring) write(p []byte) {
	r.total += int64(len(p))
	if len(p) > r.size {
		p = p[len(p)-r.size:]
	}
	if room := r.size - len(r.buf); room > 0 {
		n := min(room, len(p))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		r.next = (r.next + n) % r.size
		p = p[n:]
	}
}

// bytes returns what is kept, in order, and how many bytes are not.
func (r *ring) bytes() ([]byte, int64) {
	out := make([]byte, 0, len(r.buf))
	out = append(out, r.buf[r.next:]...)
	out = append(out, r.buf[:r.next]...)
	return out, r.total - int64(len(out))
}

// LastLine returns the last line of text that is not blank, without white space around it.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// cleaner is the machine behind SafeText. Its state survives the borders of the parts it is fed, since a pipe cuts
// characters and terminal codes anywhere.
type cleaner struct {
	emit  func([]byte)
	state cleanState
	cr    bool                  // a carriage return waits for what follows it
	part  [utf8.UTFMax]byte     // the beginning of a character
	held  int                   // bytes in part
	code  int                   // bytes of the terminal code so far
	small [utf8.UTFMax + 1]byte // room for what is emitted one by one
}

type cleanState byte

const (
	plain       cleanState = iota
	afterEsc               // ESC
	inEscape               // ESC and intermediate bytes
	inCSI                  // ESC [
	inString               // ESC ] and kin, to BEL or ESC \
	inStringEsc            // ESC within such a string
)

// maxCode ends a terminal code that does not end by itself; otherwise one stray byte would swallow the whole output.
const maxCode = 1024

const replacement = "\uFFFD"

func (c *cleaner) write(p []byte) {
	for len(p) > 0 {
		if c.state == plain && c.held == 0 && !c.cr {
			if n := plainPrefix(p); n > 0 {
				c.emit(p[:n])
				p = p[n:]
				continue
			}
		}
		c.byte(p[0])
		p = p[1:]
	}
}

// flush ends the text: what waits for more is settled as it stands.
func (c *cleaner) flush() {
	c.dropPart()
	c.state, c.code = plain, 0
	c.endCR()
}

// plainPrefix returns how many bytes at the start of p are ASCII that needs no change: nearly everything, so that a
// gigabyte passes at the speed of this loop.
func plainPrefix(p []byte) int {
	for i, b := range p {
		if (b < ' ' && b != '\n' && b != '\t') || b >= 0x7f {
			return i
		}
	}
	return len(p)
}

func (c *cleaner) byte(b byte) {
	if c.state != plain {
		if c.code++; c.code > maxCode {
			c.state, c.code = plain, 0
		} else if c.inCode(b) {
			return
		}
	}
	if c.held > 0 || b >= utf8.RuneSelf {
		c.wide(b)
		return
	}
	c.ascii(b)
}

// inCode takes a byte of a terminal code. False: the code is over and the byte is not part of it.
func (c *cleaner) inCode(b byte) bool {
	state := c.state
	c.state = plain
	switch state {
	case afterEsc:
		switch {
		case b == '[':
			c.state = inCSI
		case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
			c.state = inString
		case b >= 0x20 && b <= 0x2f:
			c.state = inEscape
		default:
			return b >= 0x30 && b <= 0x7e
		}
	case inEscape:
		if b < 0x20 || b > 0x7e {
			return false
		}
		if b <= 0x2f {
			c.state = inEscape
		}
	case inCSI:
		if b < 0x20 || b > 0x7e {
			return false
		}
		if b <= 0x3f {
			c.state = inCSI
		}
	case inString:
		switch {
		case b == 0x07: // BEL ends it
		case b == 0x1b:
			c.state = inStringEsc
		case b < 0x20: // a title has one line; without this a missing end would cost more than the line
			return false
		default:
			c.state = inString
		}
	case inStringEsc:
		return b == '\\'
	}
	return true
}

func (c *cleaner) ascii(b byte) {
	switch {
	case b == '\r':
		c.cr = true
	case b == '\n':
		c.cr = false
		c.one("\n")
	case b == 0x1b:
		c.state, c.code = afterEsc, 0
	case b == 0:
		c.text(replacement)
	case b < ' ' && b != '\t', b == 0x7f:
	default:
		c.small[0] = b
		c.endCR()
		c.emit(c.small[:1])
	}
}

// wide takes a byte of a character outside ASCII, or one that should have been.
func (c *cleaner) wide(b byte) {
	c.part[c.held] = b
	c.held++
	for c.held > 0 {
		if !utf8.FullRune(c.part[:c.held]) {
			return
		}
		r, n := utf8.DecodeRune(c.part[:c.held])
		switch {
		case r == utf8.RuneError && n == 1:
			c.text(replacement)
		case n == 1: // ASCII after a broken character
			rest := c.part[0]
			c.held = 0
			c.ascii(rest)
			return
		case r >= 0x80 && r <= 0x9f: // C1 control characters
		default:
			c.endCR()
			c.emit(append(c.small[:0], c.part[:n]...))
		}
		c.held = copy(c.part[:], c.part[n:c.held])
	}
}

func (c *cleaner) dropPart() {
	for range c.held {
		c.text(replacement)
	}
	c.held = 0
}

func (c *cleaner) text(s string) {
	c.endCR()
	c.one(s)
}

func (c *cleaner) one(s string) { c.emit(append(c.small[:0], s...)) }

// endCR writes the line end that a carriage return turned out to be.
func (c *cleaner) endCR() {
	if c.cr {
		c.cr = false
		c.emit([]byte{'\n'})
	}
}
