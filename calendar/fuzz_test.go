package calendar

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

func seeds(f *testing.F, table string) {
	for _, row := range strings.Split(strings.TrimSpace(table), "\n") {
		f.Add(strings.TrimSpace(strings.Split(row, " | ")[0]))
	}
}

// FuzzSchedule covers cron and all forms: whatever compiles fires forward, agrees with itself and describes itself; what
// does not is refused with a code and a hint.
func FuzzSchedule(f *testing.F) {
	seeds(f, goodForms)
	seeds(f, badForms)
	loc, err := time.LoadLocation("Australia/Lord_Howe")
	if err != nil {
		f.Fatal(err)
	}
	from := time.Date(2026, 4, 3, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := compile(Spec{Schedule: text}, loc)
		if err != nil {
			var e *daybook.Error
			if !errors.As(err, &e) || e.Code != daybook.CodeInvalid || e.Hint == "" || len(e.Message) > 1000 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if len(s.lines) == 0 {
			return
		}
		first, ok := s.Next(from)
		if !ok || !first.At.After(from) {
			t.Fatalf("%q: Next %v %v", text, first, ok)
		}
		if p, ok := s.Prev(first.At); !ok || !p.At.Equal(first.At) {
			t.Fatalf("%q: Prev %v, Next %v", text, p, first)
		}
		n, last := 0, daybook.Fire{}
		for g := range s.Between(from, from.AddDate(0, 0, 4)) {
			if n == 0 && g != first || n > 0 && g.At.Before(last.At) {
				t.Fatalf("%q: %v after %v", text, g, last)
			}
			last = g
			if n++; n == 50 {
				break
			}
		}
		if s.Describe() == "" || s.Window() == "" {
			t.Fatalf("%q: no words", text)
		}
		again, err := compile(Spec{Schedule: strings.ToUpper(text)}, loc)
		if err != nil || again.Describe() != s.Describe() {
			t.Fatalf("%q: case matters: %v", text, err)
		}
	})
}

// FuzzCronField covers one field alone, with every value it can hold.
func FuzzCronField(f *testing.F) {
	for _, s := range []string{"*", "*/5", "1-5", "1,3,5-9/2", "jan-mar", "7", "sun", "", "-", "/", "1-", "*/", ",", "L", "1#2"} {
		f.Add(s, uint8(0))
		f.Add(s, uint8(4))
	}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		field := cronFields[which%5]
		set, err := field.parse(word{text, 1})
		if err == nil && (set == 0 || set>>(field.max+1) != 0 || set&(1<<field.min-1) != 0) {
			t.Fatalf("%s %q: %b", field.name, text, set)
		}
	})
}

// FuzzLabel: what WindowOf takes is a window that begins before it ends and whose label is the text itself.
func FuzzLabel(f *testing.F) {
	for _, s := range []string{"2026-10-26", "2026-W43", "2026-10", "2026-Q4", "2026", "2026-03-08T02:00", "2026-10-25T01:00Z", "2026-10-25T01:00:30Z", "2011-12-30", "2026-W54", "", "evt_1%2F2"} {
		for kind := range daybook.WindowKinds {
			f.Add(s, uint8(kind))
		}
	}
	loc, err := time.LoadLocation("Pacific/Apia")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, label string, which uint8) {
		kind := daybook.WindowKinds[int(which)%len(daybook.WindowKinds)]
		s, err := compile(Spec{Window: kind}, loc)
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.WindowOf(label)
		if err != nil {
			if !errors.Is(err, daybook.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if w.Label != label {
			t.Fatalf("%q: label %q", label, w.Label)
		}
		if kind == daybook.PerEvent {
			return
		}
		if !w.Start.Before(w.End) || len(w.Date) != 10 {
			t.Fatalf("%q: %v", label, w)
		}
		if dated(kind) {
			k, before := base(kind)
			if got := s.Current(w.Start); before == 0 && got != w {
				t.Fatalf("%q (%s): the window at its start is %v", label, k, got)
			}
		}
	})
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"2026-10-01,off,x\n2026-10-10,work", "date,kind\n", "covers,2026-01-01,2026-12-31", "weekend,fri,sat\n2026-01-01,off", "#", "\"", "\ufeffdate"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkDays(t, text, ParseCSV) })
}

func FuzzICS(f *testing.F) {
	f.Add(sampleICS)
	f.Add("BEGIN:VEVENT\nDTSTART:20260101\nEND:VEVENT")
	f.Add("BEGIN:VEVENT\nDTSTART:20260101\nDURATION:P2W\n END:VEVENT")
	f.Fuzz(func(t *testing.T, text string) { checkDays(t, text, ParseICS) })
}

func checkDays(t *testing.T, text string, parse func(string, []byte) (*Days, error)) {
	d, err := parse("x", []byte(text))
	if err != nil {
		if !errors.Is(err, daybook.ErrInvalid) {
			t.Fatal(err)
		}
		return
	}
	first, last := d.Horizon()
	if first > last {
		t.Fatalf("horizon %s to %s", first, last)
	}
	for _, day := range []string{first, last} {
		if _, err := d.Working(day); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := Compile(Spec{Schedule: "daily 09:00", Zone: "UTC", Days: d, BusinessDays: daybook.BusinessNext}); err == nil {
		if _, ok := s.Next(d.first.time()); !ok {
			t.Fatal("no fire")
		}
	}
}

func (d date) time() time.Time { return instant(d.seconds()) }

func FuzzZoneName(f *testing.F) {
	for _, s := range []string{"Europe/Berlin", "CEST", "", "Local", "../x", "UTC+8", "Europe/", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		loc, err := Zone(name)
		if err == nil && loc.String() != name {
			t.Fatalf("%q is %s", name, loc)
		}
		if err != nil && (!errors.Is(err, daybook.ErrInvalid) || daybook.HintOf(err) == "") {
			t.Fatalf("%q: %v", name, err)
		}
	})
}
