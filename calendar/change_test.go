package calendar

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// TestConsequences is the table of changes: what each does to the promise of a key.
func TestConsequences(t *testing.T) {
	type change = func(*daybook.Job)
	daily := daybook.Job{Name: "renew", Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Window: daybook.Day}
	with := func(j daybook.Job, changes ...change) daybook.Job {
		for _, c := range changes {
			c(&j)
		}
		return j
	}
	schedule := func(text string) change { return func(j *daybook.Job) { j.Schedule = text } }
	window := func(k daybook.WindowKind) change { return func(j *daybook.Job) { j.Window = k } }
	zone := func(z string) change { return func(j *daybook.Job) { j.Timezone = z } }
	fires := with(daily, window(daybook.PerFire))
	weekly := with(daily, window(daybook.Week), schedule("0 8 * * *"))
	for _, c := range []struct {
		what          string
		before, after daybook.Job
		at            string // UTC; empty: 2026-10-26T12:00
		want          string // risks, and words of the sentences
	}{
		{what: "nothing", before: daily, after: daily},
		{what: "later", before: daily, after: with(daily, schedule("0 3 * * *"))},
		{what: "earlier, behind it already", before: with(daily, schedule("0 23 * * *")), after: daily, want: "left_out 1 2026-10-26"},
		{what: "earlier, done already", before: daily, after: with(daily, schedule("0 1 * * *"))},
		{what: "twice a day", before: daily, after: with(daily, schedule("0 2,14 * * *"))},
		{what: "once of two", before: with(daily, schedule("0 2,14 * * *")), after: daily},
		{what: "weekdays only", before: daily, after: with(daily, schedule("0 2 * * 1-5")), want: "left_out 114 2026-10-31, 2026-11-01, 2026-11-07"},
		{what: "every day again", before: with(daily, schedule("0 2 * * 1-5")), after: daily},
		{what: "once a month", before: daily, after: with(daily, schedule("0 2 1 * *")), want: "left_out"},
		{what: "written otherwise", before: daily, after: with(daily, schedule("daily 02:00"))},
		{what: "no schedule", before: daily, after: with(daily, schedule("")), want: "left_out no schedule"},
		{what: "a schedule at last", before: with(daily, schedule("")), after: daily},
		{what: "the day before", before: daily, after: with(daily, window(daybook.PreviousDay)), want: "new_keys window previous-day instead of day"},
		{what: "each fire", before: daily, after: fires, want: "new_keys"},
		{what: "a week", before: daily, after: weekly, want: "new_keys"},
		{what: "by hand, another window", before: with(daily, schedule("")), after: with(daily, schedule(""), window(daybook.Month)), want: "new_keys"},
		{what: "each fire, later", before: fires, after: with(fires, schedule("0 3 * * *")), want: "new_keys it fires at other times"},
		{what: "each fire, more", before: fires, after: with(fires, schedule("0 2,14 * * *"))},
		{what: "each fire, fewer", before: with(fires, schedule("0 2,14 * * *")), after: fires, want: "left_out 400 2026-10-26T14:00"},
		{what: "every half hour", before: with(fires, schedule("every 15m")), after: with(fires, schedule("every 30m")), want: "left_out"},
		{what: "every quarter", before: with(fires, schedule("every 30m")), after: with(fires, schedule("every 15m"))},
		{what: "every 20 minutes", before: with(fires, schedule("every 30m")), after: with(fires, schedule("every 20m")), want: "new_keys"},
		{what: "a zone with the same hours", before: daily, after: with(daily, zone("Europe/Paris"))},
		{what: "another zone", before: daily, after: with(daily, zone("Asia/Shanghai")), want: "other_hours Asia/Shanghai instead of Europe/Berlin"},
		{what: "another zone, behind it already", before: daily, after: with(daily, zone("Asia/Shanghai")), at: "2026-10-26T19:00", want: "left_out 1 2026-10-27 other_hours"},
		{what: "another zone, by hand", before: with(daily, schedule("")), after: with(daily, schedule(""), zone("Asia/Shanghai")), want: "other_hours"},
		{what: "each fire in another zone", before: fires, after: with(fires, zone("Asia/Shanghai")), want: "other_hours"},
		{what: "an interval in another zone", before: with(fires, schedule("every 15m")), after: with(fires, schedule("every 15m"), zone("Asia/Shanghai"))},
		{what: "a week that is done", before: weekly, after: with(weekly, schedule("0 8 * * 1"))},
		{what: "a week whose day has passed", before: with(weekly, schedule("0 8 * * 5")), after: with(weekly, schedule("0 8 * * 1")), want: "left_out 1 2026-W44"},
		{what: "days off are skipped", before: daily, after: with(daily, func(j *daybook.Job) { j.BusinessDays = daybook.BusinessSkip }), want: "left_out"},
		{what: "days off move", before: with(daily, schedule("monthly 15 02:00"), window(daybook.Month)), after: with(daily, schedule("monthly 15 02:00"), window(daybook.Month), func(j *daybook.Job) { j.BusinessDays = daybook.BusinessNext })},
		{what: "the hour that does not exist is skipped", before: with(daily, schedule("30 2 * * *")), after: with(daily, schedule("30 2 * * *"), func(j *daybook.Job) { j.ClockGap = daybook.GapSkip }), want: "left_out 1 2027-03-28"},
		{what: "renamed", before: daily, after: with(daily, func(j *daybook.Job) { j.Name, j.Formerly = "charge", "renew" })},
		{what: "renamed and moved", before: with(daily, schedule("0 23 * * *")), after: with(daily, func(j *daybook.Job) { j.Name, j.Formerly = "charge", "renew" }), want: "left_out 1 2026-10-26"},
		{what: "formerly gone", before: with(daily, func(j *daybook.Job) { j.Formerly = "charge" }), after: daily, want: "forgets charge"},
		{what: "formerly given", before: daily, after: with(daily, func(j *daybook.Job) { j.Formerly = "charge" })},
		{what: "another owner", before: daily, after: with(daily, func(j *daybook.Job) { j.Owner, j.Timeout = "ann", time.Minute })},
		{what: "events", before: daybook.Job{Name: "welcome", Work: daybook.Event, Timezone: "UTC"}, after: daybook.Job{Name: "welcome", Work: daybook.Event, Timezone: "Asia/Shanghai"}},
	} {
		at := c.at
		if at == "" {
			at = "2026-10-26T12:00"
		}
		now, err := time.Parse("2006-01-02T15:04", at)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range Consequences(definition(t, c.before), definition(t, c.after), now) {
			got = append(got, fmt.Sprintf("%s %d %s %s", one.Risk, one.Count, daybook.Words(one.Windows), one.Why))
		}
		text := strings.Join(got, " | ")
		rest := text
		for _, word := range strings.Fields(c.want) {
			i := strings.Index(rest, word)
			if i < 0 {
				t.Errorf("%s: %q, want %q", c.what, text, c.want)
				break
			}
			rest = rest[i+len(word):]
		}
		if c.want == "" && text != "" || strings.Count(c.want, "_") != len(got)-strings.Count(text, "forgets") {
			t.Errorf("%s: %q, want %q", c.what, text, c.want)
		}
	}
	if got := Consequences(definition(t, daily), nil, time.Now()); len(got) != 1 || got[0].Risk != RiskLeftOut {
		t.Errorf("removed: %+v", got)
	}
	if got := Consequences(definition(t, with(daily, schedule(""))), nil, time.Now()); got != nil {
		t.Errorf("removed, without a schedule: %+v", got)
	}
}

func definition(t *testing.T, j daybook.Job) *Definition {
	t.Helper()
	done, s, err := Complete(j, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Definition{Job: &done, Schedule: s}
}
