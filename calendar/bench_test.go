package calendar

import (
	"testing"
	"time"
)

var benchSchedules = []struct{ name, schedule, zone string }{
	{"daily", "daily 02:30", "Europe/Berlin"},
	{"dense", "*/5 9-17 * * 1-5", "Europe/Berlin"},
	{"minutes", "*/15 * * * *", "America/New_York"},
	{"every", "every 15m", "UTC"},
	{"weekly", "weekly mon 09:00", "Asia/Shanghai"},
	{"monthly", "monthly last business day 18:00", "Europe/Berlin"},
	{"yearly", "yearly 03-01 09:00", "Europe/Berlin"},
	{"leap", "0 9 29 2 *", "America/New_York"},
}

func BenchmarkNext(b *testing.B) {
	for _, c := range benchSchedules {
		b.Run(c.name, func(b *testing.B) {
			s := must(b, Spec{Schedule: c.schedule, Zone: c.zone})
			u := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				f, _ := s.Next(u)
				u = u.Add(7*time.Hour + 11*time.Minute)
				if u.Year() > 2036 {
					u = u.AddDate(-10, 0, 0)
				}
				_ = f
			}
		})
	}
}

func BenchmarkPrev(b *testing.B) {
	s := must(b, Spec{Schedule: "daily 02:30", Zone: "Europe/Berlin"})
	u := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		s.Prev(u)
	}
}

func BenchmarkBetweenYear(b *testing.B) {
	s := must(b, Spec{Schedule: "0 */2 * * *", Zone: "Europe/Berlin"})
	u := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		n := 0
		for range s.Between(u, u.AddDate(1, 0, 0)) {
			n++
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		must(b, Spec{Schedule: "0 2 * * *", Zone: "Europe/Berlin"})
	}
}
