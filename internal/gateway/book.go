package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Kind says what a line of the book records.
type Kind string

// The kinds of lines.
const (
	KindRequest Kind = "request" // somebody asked for a charge or a refund, whatever came of it
	KindCharge  Kind = "charge"  // money was taken, or the card refused; Status says which
	KindRefund  Kind = "refund"  // money was given back
	KindFailure Kind = "failure" // the gateway failed after it had begun: no money moved, and the answer is saved
	KindCard    Kind = "card"    // the customer's card works, or works no more
	KindClock   Kind = "clock"   // the clock was set
)

// Status of a charge or refund.
const (
	Charged  = "charged"
	Declined = "declined"
	Refunded = "refunded"
)

// Line is one line of the book. Amounts are in minor units.
type Line struct {
	Time     time.Time `json:"ts"`
	Kind     Kind      `json:"kind"`
	ID       string    `json:"id,omitempty"` // ch_001, re_001
	Key      string    `json:"key,omitempty"`
	Customer string    `json:"customer,omitempty"`
	Day      string    `json:"day,omitempty"` // the business day the caller named
	Amount   int64     `json:"amount,omitempty"`
	Currency string    `json:"currency,omitempty"`
	Status   string    `json:"status,omitempty"`
	Charge   string    `json:"charge,omitempty"` // the charge that a refund gives back
	Path     string    `json:"path,omitempty"`   // where a request was sent
	Request  int       `json:"request,omitempty"`
	OK       bool      `json:"ok,omitempty"`   // the card works
	Real     time.Time `json:"real,omitzero"`  // what the real clock said when the clock was set to Time
	Rate     float64   `json:"rate,omitempty"` // and how fast it runs since
}

// book is the file that outlives the gateway. Every line that says something about money is on disk before the gateway
// answers.
type book struct {
	file *os.File
	size int64 // of the whole lines
}

// openBook opens the book at a path and returns what stands in it.
func openBook(path string) (*book, []Line, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, err
	}
	lines, whole, err := read(f)
	if err == nil {
		// Half a line is what a crash cut short. Nobody was told of it, so it did not happen.
		err = f.Truncate(whole)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("open book %s: %w", path, err)
	}
	return &book{file: f, size: whole}, lines, nil
}

// write appends a line.
func (b *book) write(l Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err := b.file.Write(text); err != nil {
		// A full disk may have taken half of it, and the next line must not be glued to that.
		return errors.Join(err, b.file.Truncate(b.size))
	}
	b.size += int64(len(text))
	if l.Kind == KindRequest {
		return nil // evidence, not money: it survives the process, and need not survive the machine
	}
	return b.file.Sync()
}

func (b *book) close() error { return b.file.Close() }

// read returns the lines of a book and the length of the whole ones.
func read(r io.Reader) (lines []Line, whole int64, err error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, 0, err
	}
	for n := 1; ; n++ {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return lines, whole, nil
		}
		var l Line
		if err := json.Unmarshal(text[:end], &l); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", n, err)
		}
		lines = append(lines, l)
		whole += int64(end) + 1
		text = text[end+1:]
	}
}

// ReadBook returns the lines of the book at a path, oldest first. It may be read while a gateway writes it; half a line
// at its end is left out. A book that does not exist yet is empty.
func ReadBook(path string) ([]Line, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, _, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("read book %s: %w", path, err)
	}
	return lines, nil
}

// Tally is what a book comes to.
type Tally struct {
	Requests int // for a charge
	Charges  int // that took money
	Declined int
	Refunds  int
	Twice    int // charges beyond the first for the same customer and business day
	ByDay    map[CustomerDay]int
	Amounts  map[string]int64 // taken less given back, in minor units, by currency
}

// CustomerDay is what must be charged at most once.
type CustomerDay struct {
	Customer string
	Day      string // as the caller named it, else the date of the charge in UTC
}

// Count reads the book at a path and adds it up.
func Count(path string) (Tally, error) {
	lines, err := ReadBook(path)
	if err != nil {
		return Tally{}, err
	}
	t := Tally{ByDay: map[CustomerDay]int{}, Amounts: map[string]int64{}}
	for _, l := range lines {
		switch {
		case l.Kind == KindRequest && l.Path == pathCharges:
			t.Requests++
		case l.Kind == KindCharge && l.Status == Declined:
			t.Declined++
		case l.Kind == KindCharge:
			t.Charges++
			t.Amounts[l.Currency] += l.Amount
			day := l.Day
			if day == "" {
				day = l.Time.UTC().Format(time.DateOnly)
			}
			t.ByDay[CustomerDay{l.Customer, day}]++
		case l.Kind == KindRefund:
			t.Refunds++
			t.Amounts[l.Currency] -= l.Amount
		}
	}
	for _, n := range t.ByDay {
		t.Twice += n - 1
	}
	return t, nil
}
