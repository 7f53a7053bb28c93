package calendar

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

func TestWindowOf(t *testing.T) {
	for _, c := range []struct {
		kind                    daybook.WindowKind
		zone, label             string
		date, start, end, hours string
	}{
		{"day", "Europe/Berlin", "2026-03-29", "2026-03-29", "2026-03-28T23:00Z", "2026-03-29T22:00Z", "23h0m0s"},
		{"day", "Europe/Berlin", "2026-10-25", "2026-10-25", "2026-10-24T22:00Z", "2026-10-25T23:00Z", "25h0m0s"},
		{"previous-day", "Asia/Shanghai", "2026-10-26", "2026-10-26", "2026-10-25T16:00Z", "2026-10-26T16:00Z", "24h0m0s"},
		{"day", "America/Sao_Paulo", "2018-11-04", "2018-11-04", "2018-11-04T03:00Z", "2018-11-05T02:00Z", "23h0m0s"},
		{"day", "America/St_Johns", "2010-11-07", "2010-11-07", "2010-11-07T02:30Z", "2010-11-08T03:30Z", "25h0m0s"},
		{"day", "Australia/Lord_Howe", "2025-10-05", "2025-10-05", "2025-10-04T13:30Z", "2025-10-05T13:00Z", "23h30m0s"},
		{"day", "Pacific/Apia", "2011-12-29", "2011-12-29", "2011-12-29T10:00Z", "2011-12-30T10:00Z", "24h0m0s"},
		{"day", "Pacific/Apia", "2011-12-31", "2011-12-31", "2011-12-30T10:00Z", "2011-12-31T10:00Z", "24h0m0s"},
		{"week", "UTC", "2026-W43", "2026-10-19", "2026-10-19T00:00Z", "2026-10-26T00:00Z", "168h0m0s"},
		{"week", "UTC", "2020-W53", "2020-12-28", "2020-12-28T00:00Z", "2021-01-04T00:00Z", "168h0m0s"},
		{"week", "UTC", "2026-W01", "2025-12-29", "2025-12-29T00:00Z", "2026-01-05T00:00Z", "168h0m0s"},
		{"week", "Pacific/Apia", "2011-W52", "2011-12-26", "2011-12-26T10:00Z", "2012-01-01T10:00Z", "144h0m0s"},
		{"month", "Europe/Berlin", "2026-10", "2026-10-01", "2026-09-30T22:00Z", "2026-10-31T23:00Z", "745h0m0s"},
		{"quarter", "UTC", "2026-Q4", "2026-10-01", "2026-10-01T00:00Z", "2027-01-01T00:00Z", "2208h0m0s"},
		{"year", "UTC", "2028", "2028-01-01", "2028-01-01T00:00Z", "2029-01-01T00:00Z", "8784h0m0s"},
		{"fire", "Europe/Berlin", "2026-10-25T02:30", "2026-10-25", "2026-10-25T00:30Z", "2026-10-25T00:31Z", "1m0s"},
		{"fire", "Europe/Berlin", "2026-10-25T23:30Z", "2026-10-26", "2026-10-25T23:30Z", "2026-10-25T23:31Z", "1m0s"},
		{"fire", "Europe/Berlin", "2026-10-25T23:30:15Z", "2026-10-26", "2026-10-25T23:30:15Z", "2026-10-25T23:30:16Z", "1s"},
	} {
		s := must(t, Spec{Zone: c.zone, Window: c.kind})
		w, err := s.WindowOf(c.label)
		want := daybook.Window{Label: c.label, Date: c.date, Start: at(t, c.start), End: at(t, c.end)}
		if err != nil || w != want || w.End.Sub(w.Start).String() != c.hours {
			t.Errorf("%s %s: %v %v, want %v", c.zone, c.label, w, err, want)
		}
	}
}

func TestWindowOfRefused(t *testing.T) {
	for _, c := range []struct {
		kind            daybook.WindowKind
		schedule, label string
		message, hint   string
	}{
		{"day", "", "2026-13-01", "no such date", "2026-10-26"},
		{"day", "", "2026-02-29", "no such date", "2026-10-26"},
		{"day", "", "26-10-2026", "not the form of a day", "2026-10-26"},
		{"day", "", "2026-W43", "not the form of a day", "2026-10-26"},
		{"day", "", "2026-10-26~2", "not the form of a day", "2026-10-26"},
		{"day", "", "", "not the form of a day", "2026-10-26"},
		{"day", "", "0206-10-26", "outside 1900 to 2199", "2026-10-26"},
		{"day", "", "2011-12-30", "did not exist in Pacific/Apia", "before or after"},
		{"week", "", "2026-43", "not the form of a week", "2026-W43"},
		{"week", "", "2025-W53", "2025 has no week 53", "2026-W43"},
		{"week", "", "2026-W00", "has no week 0", "2026-W43"},
		{"week", "", "2026-W4", "not the form of a week", "2026-W43"},
		{"month", "", "2026-13", "no month 13", "2026-10"},
		{"month", "", "2026-10-26", "not the form of a month", "2026-10"},
		{"quarter", "", "2026-Q5", "Q1 to Q4", "2026-Q4"},
		{"quarter", "", "2026-q1", "not the form of a quarter", "2026-Q4"},
		{"year", "", "2026-01", "not the form of a year", "2026"},
		{"previous-week", "", "2026-10-26", "not the form of a week", "names the period itself"},
		{"fire", "", "2026-10-25", "not the form of a fire", "2026-03-08T02:00"},
		{"fire", "", "2026-10-25T01:00:00Z", "not the form of a fire", "2026-03-08T02:00"},
		{"fire", "", "2026-10-25T24:00", "not the form of a fire", "2026-03-08T02:00"},
		{"fire", "", "2026-10-25T01:00+01:00", "not the form of a fire", "2026-03-08T02:00"},
		{"fire", "every 15m", "2026-10-25T01:07Z", "does not fire then", "2026-10-25T01:00Z and 2026-10-25T01:15Z"},
		{"fire", "0 */2 * * *", "2026-10-25T03:00", "does not fire then", "2026-10-25T02:00 and 2026-10-25T04:00"},
		{"event", "", "a b", "not allowed", ""},
		{"event", "", "", "empty", ""},
	} {
		s := must(t, Spec{Schedule: c.schedule, Zone: "Pacific/Apia", Window: c.kind})
		w, err := s.WindowOf(c.label)
		if !errors.Is(err, daybook.ErrInvalid) || !strings.Contains(err.Error(), c.message) || !strings.Contains(daybook.HintOf(err), c.hint) {
			t.Errorf("%s %q: %v %v (%s)", c.kind, c.label, w, err, daybook.HintOf(err))
		}
	}
	s := must(t, Spec{Zone: "Europe/Berlin", Window: daybook.PerFire})
	if _, err := s.WindowOf("2026-03-29T02:30"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Error(err)
	}
	if w, err := must(t, Spec{Window: daybook.PerEvent}).WindowOf("evt_1%2F2"); err != nil || w.Label != "evt_1%2F2" {
		t.Error(w, err)
	}
}

func TestCurrentAndOfDate(t *testing.T) {
	for _, c := range []struct{ kind, zone, now, current, date, ofDate string }{
		{"day", "Asia/Shanghai", "2026-10-25T17:00Z", "2026-10-26", "2026-10-26", "2026-10-26"},
		{"previous-day", "Asia/Shanghai", "2026-10-25T17:00Z", "2026-10-25", "2026-10-26", "2026-10-25"},
		{"week", "UTC", "2026-10-26T08:00Z", "2026-W44", "2026-10-26", "2026-W44"},
		{"previous-week", "UTC", "2026-10-26T08:00Z", "2026-W43", "2026-10-26", "2026-W43"},
		{"previous-month", "UTC", "2026-01-05T08:00Z", "2025-12", "2026-01-05", "2025-12"},
		{"quarter", "UTC", "2026-10-26T08:00Z", "2026-Q4", "2026-10-26", "2026-Q4"},
		{"previous-quarter", "UTC", "2026-01-31T08:00Z", "2025-Q4", "2026-03-31", "2025-Q4"},
		{"previous-year", "UTC", "2026-10-26T08:00Z", "2025", "2026-10-26", "2025"},
		{"fire", "Europe/Berlin", "2026-10-25T00:30:59Z", "2026-10-25T02:30", "", ""},
		{"previous-day", "Pacific/Apia", "2011-12-30T11:00Z", "2011-12-29", "", ""},
		{"event", "UTC", "2026-10-25T00:30:59Z", "", "", ""},
	} {
		s := must(t, Spec{Zone: c.zone, Window: daybook.WindowKind(c.kind)})
		w := s.Current(at(t, c.now))
		if w.Label != c.current || w.Label != "" && !w.Start.Before(w.End) {
			t.Errorf("%s %s %s: %v, want %s", c.kind, c.zone, c.now, w, c.current)
		}
		if w, err := s.OfDate(c.date); c.date != "" && (err != nil || w.Label != c.ofDate) {
			t.Errorf("%s %s: %v %v, want %s", c.kind, c.date, w, err, c.ofDate)
		}
	}
	for _, kind := range []daybook.WindowKind{"fire", "event"} {
		if _, err := must(t, Spec{Zone: "UTC", Window: kind}).OfDate("2026-10-26"); err == nil {
			t.Error(kind)
		}
	}
}

// A fire's window is the one its label names, and a fire per window leads back to it.
func TestFiresAndWindowsAgree(t *testing.T) {
	days, _ := Embedded("cn")
	for _, spec := range []Spec{
		{Schedule: "daily 02:30", Zone: "Europe/Berlin"},
		{Schedule: "0 8 * * *", Zone: "Europe/Berlin", Window: daybook.PreviousWeek},
		{Schedule: "0 8,20 * * 1-5", Zone: "America/New_York", Window: daybook.Day},
		{Schedule: "*/30 * * * *", Zone: "Australia/Lord_Howe"},
		{Schedule: "*/30 * * * *", Zone: "Europe/Berlin", Window: daybook.PreviousDay},
		{Schedule: "0 */2 * * *", Zone: "America/New_York"},
		{Schedule: "monthly last business day 18:00", Zone: "Asia/Shanghai", Days: days},
		{Schedule: "daily 09:00", Zone: "Asia/Shanghai", Days: days, BusinessDays: daybook.BusinessNext},
		{Schedule: "daily 09:00", Zone: "Asia/Shanghai", Days: days, BusinessDays: daybook.BusinessPrevious},
		{Schedule: "0 9 15 * *", Zone: "Asia/Shanghai", Days: days, BusinessDays: daybook.BusinessSkip, Window: daybook.PreviousMonth},
		{Schedule: "quarterly last day 23:45", Zone: "America/Nuuk"},
		{Schedule: "daily 23:45", Zone: "America/Nuuk", Repeat: daybook.RepeatLast},
		{Schedule: "hourly\ndaily 02:30", Zone: "Europe/Berlin"},
	} {
		s := must(t, spec)
		type pair struct{ first, last daybook.Fire }
		got := map[string]*pair{}
		var order []string
		from, to := at(t, "2026-01-01T00:00:00Z"), at(t, "2026-04-20T00:00:00Z")
		for f := range s.Between(from, to) {
			if w, err := s.WindowOf(f.Window.Label); err != nil || w != f.Window {
				t.Fatalf("%s: %v, %v; want %v", s.text, w, err, f.Window)
			}
			p := got[f.Window.Label]
			if p == nil {
				p = &pair{first: f}
				got[f.Window.Label] = p
				order = append(order, f.Window.Label)
			}
			p.last = f
		}
		for _, label := range order[min(1, len(order)-1):max(1, len(order)-1)] { // the outer windows are cut off
			w, _ := s.WindowOf(label)
			if w.Start.Before(from.AddDate(0, 0, 20)) || w.End.After(to.AddDate(0, 0, -20)) {
				continue
			}
			first, last, ok := s.FiresOf(w)
			if p := got[label]; !ok || first != p.first || last != p.last {
				t.Fatalf("%s %s:\n got %v %v\nwant %v %v", s.text, label, first, last, p.first, p.last)
			}
		}
		// Due tells the same windows, cut anywhere.
		seen := map[string]int{}
		for step := from; step.Before(to); step = step.Add(61 * time.Hour) {
			end := step.Add(61 * time.Hour)
			if end.After(to) {
				end = to
			}
			for d := range s.Due(step, end) {
				for _, f := range d.Fires {
					if f.At.After(d.Last) || f.Skip != "" && d.Skip == "" || !f.At.After(step) || f.At.After(end) {
						t.Fatalf("%s: %v of %+v", s.text, f, d)
					}
				}
				seen[d.Window.Label]++
			}
		}
		for _, label := range order {
			if seen[label] == 0 {
				t.Errorf("%s: Due left out %s", s.text, label)
			}
		}
	}
	s := must(t, Spec{Zone: "UTC"})
	if _, _, ok := s.FiresOf(daybook.Window{Label: "2026-10-26"}); ok {
		t.Error("a manual job fires")
	}
	s = must(t, Spec{Schedule: "0 9 * * 1-5", Zone: "UTC"})
	if _, _, ok := s.FiresOf(daybook.Window{Label: "2026-10-25"}); ok {
		t.Error("a Sunday fires")
	}
}
