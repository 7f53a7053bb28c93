package fanout

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/outhttp"
	"github.com/daybook-run/daybook/internal/userdb"
)

// Source says where the subjects of a job come from, once what its definition refers to is known.
type Source struct {
	SQL, DSN string
	URL      string
	// Open opens the database of a DSN, to be read only. Required with SQL.
	Open func(dsn string) (*sql.DB, error)
}

// maxItem bounds one subject of an answer, in bytes.
const maxItem = 1 << 20

// List names the subjects of a window, as they come. An error names the source.
func (s Source) List(ctx context.Context, w daybook.Window) iter.Seq2[daybook.Subject, error] {
	list := s.get(ctx, w)
	if s.SQL != "" {
		list = s.query(ctx, w)
	}
	return func(yield func(daybook.Subject, error) bool) {
		for subject, err := range list {
			if err != nil {
				err = fmt.Errorf("%s: %w", s.Name(), err)
			}
			if !yield(subject, err) {
				return
			}
		}
	}
}

// Name says where the subjects come from, without what may be a secret: user, password, and the query of an address.
func (s Source) Name() string {
	if kind, err := userdb.KindOf(s.DSN); err == nil && kind == userdb.SQLite {
		return s.DSN
	}
	text := s.URL
	if s.SQL != "" {
		text = s.DSN
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return "the source"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (s Source) query(ctx context.Context, w daybook.Window) iter.Seq2[daybook.Subject, error] {
	return func(yield func(daybook.Subject, error) bool) {
		kind, err := userdb.KindOf(s.DSN)
		if err != nil {
			yield(daybook.Subject{}, daybook.Permanent(err))
			return
		}
		db, err := s.Open(s.DSN)
		if err != nil {
			yield(daybook.Subject{}, userdb.Masked(err, s.DSN))
			return
		}
		defer db.Close()
		for row, err := range userdb.Rows(ctx, db, kind, s.SQL, userdb.Args{Date: w.Date, Window: w.Label, Start: w.Start, End: w.End}) {
			var subject daybook.Subject
			if err == nil {
				subject, err = fromColumns(row)
			}
			if !yield(subject, userdb.Masked(err, s.DSN)) || err != nil {
				return
			}
		}
	}
}

// fromColumns makes a subject of named values: subject, an optional zone, and the rest is its payload.
func fromColumns(row map[string]any) (daybook.Subject, error) {
	id, ok := row["subject"]
	if !ok {
		return daybook.Subject{}, daybook.Permanent(daybook.Invalid("there is no column subject").WithHint("name one with AS: SELECT id AS subject"))
	}
	var s daybook.Subject
	switch id := id.(type) {
	case nil:
	case string:
		s.ID = id
	case json.Number:
		s.ID = id.String()
	case int64, uint64, int32, bool:
		s.ID = fmt.Sprint(id)
	default: // what is no text and no whole number names nothing for sure; it is told as what is no subject
	}
	if zone, ok := row["zone"].(string); ok {
		s.Zone = zone
	} else if v, given := row["zone"]; given && v != nil {
		s.Zone = fmt.Sprint(v)
	}
	rest := make(map[string]any, len(row))
	for name, v := range row {
		if name != "subject" && name != "zone" {
			rest[name] = v
		}
	}
	if len(rest) > 0 {
		s.Payload = rest
	}
	return s, nil
}

// expand puts the window into a URL, percent-encoded.
func expand(text string, w daybook.Window) string {
	e := url.QueryEscape
	return strings.NewReplacer("{date}", e(w.Date), "{window}", e(w.Label), "{window_start}", e(w.Start.UTC().Format(time.RFC3339)),
		"{window_end}", e(w.End.UTC().Format(time.RFC3339))).Replace(text)
}

func (s Source) get(ctx context.Context, w daybook.Window) iter.Seq2[daybook.Subject, error] {
	return func(yield func(daybook.Subject, error) bool) {
		client := outhttp.New(outhttp.Options{})
		defer client.Close()
		a, body, err := client.Stream(ctx, outhttp.Request{Method: http.MethodGet, URL: expand(s.URL, w),
			Header: http.Header{"Accept": {"application/x-ndjson, application/json"}}})
		if err == nil {
			defer body.Close()
			if r := outhttp.ResultOfStatus(a.Status, nil); r != daybook.ResultDone {
				err = errors.New("the listing was answered with " + a.StatusLine())
				if r == daybook.ResultPermanent {
					err = daybook.Permanent(err)
				}
			}
		}
		if err != nil {
			yield(daybook.Subject{}, err)
			return
		}
		read(body, yield)
	}
}

// read reads JSON lines or one JSON array, one subject at a time.
func read(body io.Reader, yield func(daybook.Subject, error) bool) {
	limited := &perItem{r: bufio.NewReader(body)}
	d := json.NewDecoder(limited)
	d.UseNumber()
	array, err := limited.array()
	if err == nil && array {
		_, err = d.Token()
	}
	for err == nil {
		limited.left = maxItem
		if array && !d.More() {
			_, err = d.Token() // the end of the array, or that it is missing
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			break
		}
		var item any
		if err = d.Decode(&item); err != nil {
			if errors.Is(err, io.EOF) && !array {
				return
			}
			break
		}
		s, bad := fromItem(item)
		if !yield(s, bad) || bad != nil {
			return
		}
	}
	if err != nil {
		yield(daybook.Subject{}, fmt.Errorf("read the answer: %w", err))
	}
}

func fromItem(item any) (daybook.Subject, error) {
	switch item := item.(type) {
	case map[string]any:
		s, err := fromColumns(item)
		if err != nil {
			err = daybook.Permanent(daybook.Invalid("an item has no name subject").WithHint(`answer {"subject": "sub_1"}, one a line, or a JSON array of these`))
		}
		return s, err
	case string:
		return daybook.Subject{ID: item}, nil
	case json.Number:
		return daybook.Subject{ID: item.String()}, nil
	}
	return daybook.Subject{}, nil // told as what is no subject
}

// perItem bounds how much is read for one item.
type perItem struct {
	r    *bufio.Reader
	left int
}

// array reports whether the body is one array.
func (p *perItem) array() (bool, error) {
	p.left = maxItem
	for range maxItem {
		c, err := p.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c == '[', p.r.UnreadByte()
		}
	}
	return false, errors.New("it begins with too much white space")
}

// Read implements io.Reader.
func (p *perItem) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, fmt.Errorf("a subject has more than %d bytes", maxItem)
	}
	n, err := p.r.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}
