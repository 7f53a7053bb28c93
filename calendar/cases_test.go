package calendar

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// caseRow is a row of testdata/calendar.tsv: the fires and keys of a schedule in (from, to].
type caseRow struct {
	id, schedule, zone string
	from, to           time.Time
	fires, keys        []string
	note               string
}

func caseRows(t testing.TB) []caseRow {
	t.Helper()
	f, err := os.Open("testdata/calendar.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []caseRow
	for _, row := range rows[1:] {
		out = append(out, caseRow{row[0], row[1], row[2], at(t, row[3]), at(t, row[4]),
			strings.Split(row[5], ","), strings.Split(row[6], ","), row[7]})
	}
	return out
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if v, err := time.Parse(layout, s); err == nil {
			return v
		}
	}
	t.Fatalf("%q is no time", s)
	return time.Time{}
}

func (c caseRow) check(t *testing.T, loc *time.Location) {
	t.Helper()
	s, err := compile(Spec{Schedule: c.schedule}, loc)
	if err != nil {
		t.Errorf("%s %s: %v", c.id, c.schedule, err)
		return
	}
	var fires, keys []string
	for f := range s.Between(c.from, c.to) {
		fires = append(fires, f.At.Format(time.RFC3339))
		keys = append(keys, f.Window.Label)
		if gap := strings.HasPrefix(c.note, "gap"); f.Note == daybook.NoteGap && !gap {
			t.Errorf("%s %s: note %s at %s", c.id, c.schedule, f.Note, f.At)
		}
		if f.Skip != "" {
			t.Errorf("%s %s: skip %s", c.id, c.schedule, f.Skip)
		}
		w, err := s.WindowOf(f.Window.Label)
		if err != nil || w != f.Window {
			t.Errorf("%s %s: WindowOf(%s) = %v, %v; want %v", c.id, c.schedule, f.Window.Label, w, err, f.Window)
		}
	}
	if got, want := strings.Join(fires, ","), strings.Join(c.fires, ","); got != want {
		t.Errorf("%s %s %s:\n got %s\nwant %s", c.id, c.schedule, c.zone, got, want)
	}
	if got, want := strings.Join(keys, ","), strings.Join(c.keys, ","); got != want {
		t.Errorf("%s %s %s:\n got %s\nwant %s", c.id, c.schedule, c.zone, got, want)
	}
	// Next and Prev tell the same story as Between.
	pos, n := c.from, 0
	for {
		f, ok := s.Next(pos)
		if !ok || f.At.After(c.to) {
			break
		}
		if p, ok := s.Prev(f.At); !ok || !p.At.Equal(f.At) {
			t.Errorf("%s: Prev(%s) = %v", c.id, f.At, p)
		}
		pos = f.At
		n++
	}
	if n != len(c.fires) {
		t.Errorf("%s: Next gives %d fires, Between %d", c.id, n, len(c.fires))
	}
}

func TestCalendarCases(t *testing.T) {
	rows := caseRows(t)
	if len(rows) != 68 {
		t.Fatalf("%d rows, want 68", len(rows))
	}
	for _, c := range rows {
		loc, err := Zone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		c.check(t, loc)
	}
}
