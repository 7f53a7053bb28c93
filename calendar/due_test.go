package calendar

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// due writes windows in short: label, fires, and where it differs from the last of them the last instant.
func due(s *Schedule, from, to time.Time) string {
	var out []string
	for d := range s.Due(from, to) {
		text := d.Window.Label + ":"
		for i, f := range d.Fires {
			if i > 0 {
				text += ","
			}
			text += f.At.Format("2T15:04")
		}
		if !d.Last.Equal(d.Fires[len(d.Fires)-1].At) {
			text += " last " + d.Last.Format("2T15:04")
		}
		if d.Skip != "" {
			text += " " + string(d.Skip)
		}
		out = append(out, text)
	}
	return strings.Join(out, "|")
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		spec           Spec
		from, to, want string
	}{
		{Spec{Schedule: "daily 02:30"}, "2026-03-28T00:00:00Z", "2026-03-30T12:00:00Z", "2026-03-28:28T01:30|2026-03-29:29T01:00|2026-03-30:30T00:30"},
		{Spec{Schedule: "daily 02:30", Gap: daybook.GapSkip}, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", "2026-03-29:29T01:00 clock gap|2026-03-30:30T00:30"},
		// Three fires a day answer for one window; the last lies behind the span.
		{Spec{Schedule: "0 8,12,18 * * *", Window: daybook.Day}, "2026-01-01T00:00:00Z", "2026-01-02T12:00:00Z", "2026-01-01:1T07:00,1T11:00,1T17:00|2026-01-02:2T07:00,2T11:00 last 2T17:00"},
		// The fire in the gap is skipped; the window has another, which brings it when it comes.
		{Spec{Schedule: "30 2,12 * * *", Window: daybook.Day, Gap: daybook.GapSkip}, "2026-03-28T12:00:00Z", "2026-03-29T02:00:00Z", ""},
		{Spec{Schedule: "30 2,12 * * *", Window: daybook.Day, Gap: daybook.GapSkip}, "2026-03-28T12:00:00Z", "2026-03-29T11:00:00Z", "2026-03-29:29T10:30"},
		{Spec{Schedule: "30 2,12 * * *", Window: daybook.Day, Gap: daybook.GapSkip}, "2026-03-29T02:00:00Z", "2026-03-29T11:00:00Z", "2026-03-29:29T10:30"},
		{Spec{Schedule: "30 2,12 * * *", Window: daybook.Day, BusinessDays: daybook.BusinessSkip}, "2026-01-03T00:00:00Z", "2026-01-03T05:00:00Z", "2026-01-03:3T01:30 last 3T11:30 day off"},
		{Spec{Schedule: "0 8 * * *", Window: daybook.PreviousWeek}, "2026-01-04T00:00:00Z", "2026-01-06T12:00:00Z", "2025-W52:4T07:00|2026-W01:5T07:00,6T07:00 last 11T07:00"},
		{Spec{Schedule: "every 6h"}, "2026-01-04T00:00:00Z", "2026-01-04T12:00:00Z", "2026-01-04T06:00Z:4T06:00|2026-01-04T12:00Z:4T12:00"},
		{Spec{Schedule: "daily 09:00", BusinessDays: daybook.BusinessNext}, "2026-01-02T12:00:00Z", "2026-01-05T12:00:00Z", "2026-01-03:5T08:00|2026-01-04:5T08:00|2026-01-05:5T08:00"},
		{Spec{}, "2026-01-04T00:00:00Z", "2026-01-04T12:00:00Z", ""},
		{Spec{Schedule: "daily 02:30"}, "2026-03-30T12:00:00Z", "2026-03-28T00:00:00Z", ""},
	} {
		c.spec.Zone = "Europe/Berlin"
		if got := due(must(t, c.spec), at(t, c.from), at(t, c.to)); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.spec, got, c.want)
		}
	}
}

func TestMissedAfter(t *testing.T) {
	for _, c := range []struct {
		schedule   string
		configured time.Duration
		want       time.Duration
	}{
		{"daily 02:00", 0, 10 * time.Minute},
		{"every 1m", 0, 30 * time.Second},
		{"every 15m", 0, 450 * time.Second},
		{"every 1m", time.Hour, time.Hour},
	} {
		s := must(t, Spec{Schedule: c.schedule, Zone: "UTC"})
		f, _ := s.Next(at(t, "2026-01-01T00:00:00Z"))
		if got := s.MissedAfter(f, c.configured); got != c.want {
			t.Errorf("%s: %s, want %s", c.schedule, got, c.want)
		}
	}
}

func TestLeftOut(t *testing.T) {
	for _, c := range []struct {
		before, after Spec
		at, want      string
	}{
		// At noon the time moves from 18:00 to 09:00: today's window has lost its fire.
		{Spec{Schedule: "daily 18:00"}, Spec{Schedule: "daily 09:00"}, "2026-10-26T12:00:00Z", "2026-10-26"},
		{Spec{Schedule: "daily 18:00"}, Spec{Schedule: "daily 09:00"}, "2026-10-26T19:00:00Z", ""},
		{Spec{Schedule: "daily 18:00"}, Spec{Schedule: "daily 09:00"}, "2026-10-26T08:00:00Z", ""},
		{Spec{Schedule: "daily 09:00"}, Spec{Schedule: "daily 18:00"}, "2026-10-26T12:00:00Z", ""},
		{Spec{Schedule: "0 6,18 * * *", Window: daybook.Day}, Spec{Schedule: "daily 09:00"}, "2026-10-26T12:00:00Z", ""},
		{Spec{Schedule: "weekly fri 09:00"}, Spec{Schedule: "weekly mon 09:00"}, "2026-10-27T12:00:00Z", "2026-W44"},
		{Spec{Schedule: "monthly 28 09:00"}, Spec{Schedule: "monthly 1 09:00"}, "2026-10-27T12:00:00Z", "2026-10"},
		{Spec{Schedule: "yearly 12-31 09:00", Window: daybook.PreviousYear}, Spec{Schedule: "yearly 02-01 09:00", Window: daybook.PreviousYear}, "2026-10-27T12:00:00Z", "2025"},
		{Spec{Schedule: "0 8,20 * * *"}, Spec{Schedule: "0 8,21 * * *"}, "2026-10-27T12:00:00Z", ""},
		{Spec{Schedule: "daily 18:00"}, Spec{Schedule: "weekly mon 09:00"}, "2026-10-26T12:00:00Z", ""},
		{Spec{Schedule: "every 1s"}, Spec{Schedule: "every 2s"}, "2026-10-26T12:00:00Z", ""},
		{Spec{Schedule: "daily 18:00", BusinessDays: daybook.BusinessNext}, Spec{Schedule: "daily 09:00"}, "2026-10-25T12:00:00Z", "2026-10-24 2026-10-25"},
		{Spec{}, Spec{Schedule: "daily 09:00"}, "2026-10-26T12:00:00Z", ""},
	} {
		c.before.Zone, c.after.Zone = "UTC", "UTC"
		var got []string
		for _, w := range LeftOut(must(t, c.before), must(t, c.after), at(t, c.at)) {
			got = append(got, w.Label)
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s → %s at %s: %q, want %q", c.before.Schedule, c.after.Schedule, c.at, g, c.want)
		}
	}
	// Another zone may do it too: the new one has the date's fire behind it already.
	west := must(t, Spec{Schedule: "daily 09:00", Zone: "America/Los_Angeles"})
	east := must(t, Spec{Schedule: "daily 09:00", Zone: "Asia/Shanghai"})
	if w := LeftOut(west, east, at(t, "2026-10-26T12:00:00Z")); len(w) != 1 || w[0].Label != "2026-10-26" {
		t.Error(w)
	}
}

func TestSpanAt(t *testing.T) {
	for _, c := range []struct {
		schedule string
		length   time.Duration
		now      string
		want     string
	}{
		{"0 14 * * 1-5", 30 * time.Minute, "2026-10-26T14:10:00Z", "26T14:00 26T14:30"},
		{"0 14 * * 1-5", 30 * time.Minute, "2026-10-26T14:00:00Z", "26T14:00 26T14:30"},
		{"0 14 * * 1-5", 30 * time.Minute, "2026-10-26T14:30:00Z", "none"},
		{"0 14 * * 1-5", 30 * time.Minute, "2026-10-26T13:59:59Z", "none"},
		{"0 14 * * 1-5", 30 * time.Minute, "2026-10-25T14:10:00Z", "none"},
		{"0 14 * * *\n20 14 * * *", 30 * time.Minute, "2026-10-26T14:10:00Z", "26T14:00 26T14:50"},
		{"0 14 * * *\n20 14 * * *", 30 * time.Minute, "2026-10-26T14:40:00Z", "26T14:00 26T14:50"},
		{"0 22 * * *", 10 * time.Hour, "2026-10-26T03:00:00Z", "25T22:00 26T08:00"},
		{"", time.Hour, "2026-10-26T03:00:00Z", "none"},
		{"daily 14:00", 0, "2026-10-26T14:00:00Z", "none"},
	} {
		got := "none"
		if start, end, ok := must(t, Spec{Schedule: c.schedule, Zone: "UTC"}).SpanAt(at(t, c.now), c.length); ok {
			got = start.Format("2T15:04") + " " + end.Format("2T15:04")
		}
		if got != c.want {
			t.Errorf("%q for %s at %s: %s, want %s", c.schedule, c.length, c.now, got, c.want)
		}
	}
}
