package calendar

import (
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// agree checks that Next, Prev and Between tell one story in a span.
func agree(t testing.TB, s *Schedule, from, to time.Time) {
	t.Helper()
	var all []daybook.Fire
	seen := map[string]bool{}
	for f := range s.Between(from, to) {
		if seen[f.Nominal] {
			t.Fatalf("%s %s: %s twice", s.text, s.zone.loc, f.Nominal)
		}
		seen[f.Nominal] = true
		if !f.At.After(from) || f.At.After(to) {
			t.Fatalf("%s %s: %s outside of the span", s.text, s.zone.loc, f.At)
		}
		if n := len(all); n > 0 && f.At.Before(all[n-1].At) {
			t.Fatalf("%s %s: %s goes back", s.text, s.zone.loc, f.At)
		}
		all = append(all, f)
	}
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].At.Equal(all[i].At) {
			j++
		}
		if f, ok := s.Next(all[i].At.Add(-time.Second)); !ok || f != all[i] {
			t.Fatalf("%s %s: Next %v, Between %v", s.text, s.zone.loc, f, all[i])
		}
		if f, ok := s.Prev(all[i].At); !ok || f != all[j-1] {
			t.Fatalf("%s %s: Prev %v, Between %v", s.text, s.zone.loc, f, all[j-1])
		}
		if j < len(all) {
			if f, ok := s.Next(all[i].At); !ok || f != all[j] {
				t.Fatalf("%s %s: Next %v, Between %v", s.text, s.zone.loc, f, all[j])
			}
		}
		i = j
	}
}

func TestNextPrevAndBetweenAgree(t *testing.T) {
	days := china(t)
	for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/Nuuk", "America/St_Johns", "Antarctica/Troll"} {
		for _, spec := range []Spec{
			{Schedule: "0 */3 * * *"}, {Schedule: "*/40 0-4,22,23 * * *", Repeat: daybook.RepeatLast}, {Schedule: "30 * * * *"},
			{Schedule: "daily 09:00", Days: days, BusinessDays: daybook.BusinessNext},
			{Schedule: "daily 23:45", Days: days, BusinessDays: daybook.BusinessPrevious, Gap: daybook.GapSkip},
			{Schedule: "every 100m\ndaily 02:30\nweekly sun 02:30"},
		} {
			spec.Zone = zone
			s := must(t, spec)
			for _, span := range [][2]string{{"2024-03-29T00:00Z", "2024-04-09T00:00Z"}, {"2024-10-26T00:00Z", "2024-10-28T00:00Z"},
				{"2011-12-29T00:00Z", "2012-01-02T00:00Z"}, {"2010-11-06T00:00Z", "2010-11-08T00:00Z"}} {
				agree(t, s, at(t, span[0]), at(t, span[1]))
			}
		}
	}
}

// Instants outside of any sensible time end at once and do not panic.
func TestExtremeInstants(t *testing.T) {
	for _, text := range []string{"daily 02:30", "every 7m", "hourly", "0 9 29 2 *"} {
		s := must(t, Spec{Schedule: text, Zone: "Europe/Berlin"})
		for _, u := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<40, 0), time.Unix(1<<62, 0), time.Unix(-1<<62, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
			s.Next(u)
			s.Prev(u)
			for range s.Between(u, u.Add(-time.Hour)) {
				t.Error("a fire in an empty span")
			}
			s.Current(u)
		}
	}
	if f, ok := must(t, Spec{Schedule: "daily 02:30", Zone: "UTC"}).Next(time.Time{}); !ok || f.Nominal != "0001-01-01T02:30" {
		t.Error(f)
	}
}
