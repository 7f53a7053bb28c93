package calendar

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

func spans(list []daybook.Freeze) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString(f.Name + " " + f.From.UTC().Format("01-02T15:04") + "/" + f.Until.UTC().Format("01-02T15:04") + string(f.Only) + " ")
	}
	return strings.TrimSpace(b.String())
}

func TestFreezesOfAFile(t *testing.T) {
	t.Parallel()
	f, err := CompileFreezes([]daybook.FreezeRule{
		{Name: "deploy", Schedule: "0 14 * * 1-5", For: 30 * time.Minute, Only: daybook.P0},
		{Name: "night", Schedule: "50 1 * * *", For: time.Hour},
	}, "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ at, stands, next string }{
		{"2026-03-27T12:59:59Z", "", "deploy 03-27T13:00/03-27T13:30P0 night 03-28T00:50/03-28T01:50"},
		{"2026-03-27T13:00:00Z", "deploy 03-27T13:00/03-27T13:30P0", "deploy 03-27T13:00/03-27T13:30P0 night 03-28T00:50/03-28T01:50"},
		{"2026-03-27T13:29:59Z", "deploy 03-27T13:00/03-27T13:30P0", "deploy 03-27T13:00/03-27T13:30P0 night 03-28T00:50/03-28T01:50"},
		{"2026-03-27T13:30:00Z", "", "deploy 03-30T12:00/03-30T12:30P0 night 03-28T00:50/03-28T01:50"}, // the clock went forward
		// 01:50 to 03:50 by the wall: an hour, whatever clocks do.
		{"2026-03-29T01:30:00Z", "night 03-29T00:50/03-29T01:50", "deploy 03-30T12:00/03-30T12:30P0 night 03-29T00:50/03-29T01:50"},
		{"2026-03-29T01:50:00Z", "", "deploy 03-30T12:00/03-30T12:30P0 night 03-29T23:50/03-30T00:50"},
		// 01:50 to 02:50, which comes twice that night: the first.
		{"2026-10-25T00:40:00Z", "night 10-24T23:50/10-25T00:50", "deploy 10-26T13:00/10-26T13:30P0 night 10-24T23:50/10-25T00:50"},
		{"2026-10-25T01:00:00Z", "", "deploy 10-26T13:00/10-26T13:30P0 night 10-26T00:50/10-26T01:50"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := spans(f.At(at)); got != c.stands {
			t.Errorf("at %s: %q, want %q", c.at, got, c.stands)
		}
		if got := spans(f.Next(at)); got != c.next {
			t.Errorf("next at %s: %q, want %q", c.at, got, c.next)
		}
	}
	day := time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC)
	if got := spans(f.Between(day, day.AddDate(0, 0, 1))); got != "deploy 03-27T13:00/03-27T13:30P0 night 03-27T00:50/03-27T01:50" {
		t.Errorf("of a day: %q", got)
	}
	var none *Freezes
	if len(none.At(day))+len(none.Next(day))+len(none.Names()) != 0 {
		t.Error("there are freezes without a file")
	}
}

func TestFreezesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule daybook.FreezeRule
		zone string
		want string
	}{
		{daybook.FreezeRule{Name: "a", Schedule: "0 14 * * *"}, "UTC", "outside 1s to 24h"},
		{daybook.FreezeRule{Name: "a", Schedule: "0 14 * * *", For: -time.Minute}, "UTC", "outside 1s to 24h"},
		{daybook.FreezeRule{Name: "a", Schedule: "weekly mon 09:00", For: 25 * time.Hour}, "UTC", "outside 1s to 24h"},
		{daybook.FreezeRule{Name: "a", For: time.Hour}, "UTC", "no schedule"},
		{daybook.FreezeRule{Name: "a", Schedule: "every 15m", For: 15 * time.Minute}, "UTC", "it would never end"},
		{daybook.FreezeRule{Name: "a", Schedule: "0 0 * * *", For: 24 * time.Hour}, "UTC", "it would never end"},
		{daybook.FreezeRule{Name: "a", Schedule: "nonsense", For: time.Hour}, "UTC", "nonsense"},
		{daybook.FreezeRule{Name: "a", Schedule: "0 14 * * *", For: time.Hour}, "", ""},
	} {
		_, err := CompileFreezes([]daybook.FreezeRule{c.rule}, c.zone)
		if err == nil || !strings.Contains(err.Error(), "freeze a") || !strings.Contains(err.Error(), c.want) || daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("%+v in %q: %v, want %q", c.rule, c.zone, err, c.want)
		}
	}
}
