package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
)

// guardEvery is how often serve looks whether the file of its ledger is still the one that it opened.
const guardEvery = time.Second

// guardFile returns a context that ends when the file of a SQLite ledger is removed, another one stands in its place, or an older
// one was written into it. SQLite notices none of that: it would go on with a file that has no name, and a serve started later
// would make an empty ledger that knows of nothing done; or it would mix pages of two times. The function ends the guard and
// returns what it found.
func guardFile(ctx context.Context, text string, l *ledger) (context.Context, func() error) {
	path, lite := strings.CutPrefix(text, "sqlite:")
	opened, err := os.Stat(path)
	if !lite || err != nil {
		return ctx, func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	base := &base{path: path, ledger: l}
	go func() {
		defer close(ended)
		_, _ = waitWhile(ctx, guardEvery, func() (bool, error) {
			now, err := os.Stat(path)
			switch {
			case errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(opened, now):
				cancel(errFileGone(path))
			case base.writtenOver(ctx):
				cancel(l.Mixed())
			}
			return true, nil
		})
	}()
	return ctx, func() error {
		cancel(nil)
		<-ended
		if err := context.Cause(ctx); daybook.CodeOf(err) == daybook.CodeUnavailable {
			return err
		}
		return nil
	}
}

func errFileGone(path string) error {
	return daybook.New(daybook.CodeUnavailable, "the ledger %s was removed or replaced while serve worked on it: what was recorded since may not be in it", path).
		WithHint("put the file or the newest backup back before serve is started again: an empty ledger knows of nothing done")
}

// base is the file of a SQLite ledger without its log. What a checkpoint brings into it is newer than what was there: how far the
// ledger had come, as the file alone has it, only rises. It falls when somebody writes an older copy into the file.
type base struct {
	path   string
	ledger *ledger
	file   int      // open for as long as the process lives, 0: not yet. Closing it would drop the locks that SQLite has on it
	root   int64    // page of the ledger's one row
	had    [2]int64 // lapse and sequence, the furthest that was seen
	fell   bool     // at the last look: once may be a page that was being written
}

func (b *base) writtenOver(ctx context.Context) bool {
	if b.file == 0 {
		file, err := syscall.Open(b.path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		b.file = file
	}
	now, ok := b.look()
	if !ok { // the table has moved, as by a VACUUM, or was not looked for yet
		if err := b.ledger.db.Read.QueryRowContext(ctx, "SELECT rootpage FROM sqlite_schema WHERE name = 'daybook_ledger'").Scan(&b.root); err != nil {
			return false
		}
		if now, ok = b.look(); !ok {
			return false
		}
	}
	fell := now[0] < b.had[0] || now[0] == b.had[0] && now[1] < b.had[1]
	if !fell {
		b.had = now
	}
	sure := fell && b.fell
	b.fell = fell
	return sure
}

// look reads the row as https://sqlite.org/fileformat.html has it: the one cell of a leaf of a table.
func (b *base) look() (at [2]int64, ok bool) {
	if b.root < 2 {
		return at, false
	}
	var head [100]byte
	if n, err := syscall.Pread(b.file, head[:], 0); err != nil || n < len(head) {
		return at, false
	}
	size := int64(binary.BigEndian.Uint16(head[16:]))
	if size == 1 {
		size = 65536
	}
	page := make([]byte, size)
	if n, err := syscall.Pread(b.file, page, (b.root-1)*size); err != nil || n < len(page) || n < 512 {
		return at, false
	}
	const leaf = 0x0d
	if page[0] != leaf || binary.BigEndian.Uint16(page[3:]) != 1 {
		return at, false
	}
	row, ok := cells(page, int(binary.BigEndian.Uint16(page[8:])))
	if !ok || len(row) < 3 {
		return at, false
	}
	if len(row) > 6 { // the columns of the migrations, in their order; those of a later one may not have been written yet
		at[0] = row[6]
	}
	at[1] = row[2]
	return at, true
}

// cells reads the whole numbers of a record; what is no number counts as 0.
func cells(page []byte, at int) (row []int64, ok bool) {
	varint := func() (v int64) {
		for n := 0; n < 9 && at < len(page); n++ {
			c := page[at]
			at++
			if n == 8 {
				return v<<8 | int64(c)
			}
			if v = v<<7 | int64(c&0x7f); c < 0x80 {
				return v
			}
		}
		return v
	}
	varint() // bytes of the record
	varint() // rowid
	start := at
	head := varint()
	if head < 1 || head > int64(len(page)-start) {
		return nil, false
	}
	body := start + int(head)
	for at < start+int(head) {
		kind, bytes, v := varint(), 0, int64(0)
		switch {
		case kind == 9:
			v = 1
		case kind >= 1 && kind <= 6:
			bytes = []int{0, 1, 2, 3, 4, 6, 8}[kind]
		case kind == 7:
			bytes = 8
		case kind >= 12:
			bytes = int(min((kind-12)/2, int64(len(page))))
		}
		if body+bytes > len(page) {
			return nil, false
		}
		if kind >= 1 && kind <= 6 {
			v = int64(int8(page[body]))
			for _, c := range page[body+1 : body+bytes] {
				v = v<<8 | int64(c)
			}
		}
		row = append(row, v)
		body += bytes
	}
	return row, true
}
