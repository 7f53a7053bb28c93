package calendar

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// Each line: text, then the words of Describe, the default window, and the first fires after Thursday 2026-10-01T00:00Z.
const goodForms = `
0 2 * * *                       | at 02:00 every day, UTC time | day | 10-01T02:00 10-02T02:00
30 6 * * 1-5                    | at 06:30 every Monday, Tuesday, Wednesday, Thursday and Friday, UTC time | day | 10-01T06:30 10-02T06:30 10-05T06:30
0 9,17 * * *                    | at 09:00 and 17:00 every day, UTC time | fire | 10-01T09:00 10-01T17:00
*/20 9-10 * * *                 | at 09:00, 09:20, 09:40, 10:00, 10:20 and 10:40 every day, UTC time | fire | 10-01T09:00 10-01T09:20
*/15 * * * *                    | every hour at :00, :15, :30 and :45 every day, UTC time | fire | 10-01T00:15 10-01T00:30
* * * * *                       | every minute every day, UTC time | fire | 10-01T00:01 10-01T00:02
5 0-23 * * *                    | every hour at :05 every day, UTC time | fire | 10-01T00:05 10-01T01:05
0 */1 * * *                     | every hour at :00 every day, UTC time | fire | 10-01T01:00
0 9 * * 0                       | at 09:00 every Sunday, UTC time | day | 10-04T09:00 10-11T09:00
0 9 * * 7                       | at 09:00 every Sunday, UTC time | day | 10-04T09:00 10-11T09:00
0 9 * * 5-7                     | at 09:00 every Friday, Saturday and Sunday, UTC time | day | 10-02T09:00 10-03T09:00 10-04T09:00 10-09T09:00
0 9 * * 0-7                     | at 09:00 every day, UTC time | day | 10-01T09:00
0 9 * JAN,mar Mon-WED           | at 09:00 every Monday, Tuesday and Wednesday in January and March, UTC time | day | 2027-01-04T09:00
0 0 1 */3 *                     | at 00:00 on day 1 of January, April, July and October, UTC time | day | 2027-01-01T00:00
0 9 1 * 1                       | at 09:00 on day 1 of every month and every Monday, UTC time | day | 10-01T09:00 10-05T09:00
10-50/20 3 * * *                | at 03:10, 03:30 and 03:50 every day, UTC time | fire | 10-01T03:10 10-01T03:30
0 9 31 * *                      | at 09:00 on day 31 of every month, UTC time | day | 10-31T09:00 12-31T09:00
@hourly                         | every hour at :00 every day, UTC time | fire | 10-01T01:00
@daily                          | at 00:00 every day, UTC time | day | 10-02T00:00
@midnight                       | at 00:00 every day, UTC time | day | 10-02T00:00
@weekly                         | at 00:00 every Sunday, UTC time | week | 10-04T00:00
@monthly                        | at 00:00 on day 1 of every month, UTC time | month | 11-01T00:00
@yearly                         | at 00:00 on day 1 of January, UTC time | year | 2027-01-01T00:00
@annually                       | at 00:00 on day 1 of January, UTC time | year | 2027-01-01T00:00
every 15m                       | every 15 minutes | fire | 10-01T00:15 10-01T00:30
every 1h30m                     | every 1 hour and 30 minutes | fire | 10-01T01:30 10-01T03:00
every 1d                        | every day | fire | 10-02T00:00
every 30s                       | every 30 seconds | fire | 10-01T00:00:30 10-01T00:01
hourly                          | every hour at :00 every day, UTC time | fire | 10-01T01:00
hourly :15                      | every hour at :15 every day, UTC time | fire | 10-01T00:15 10-01T01:15
daily 02:00                     | at 02:00 every day, UTC time | day | 10-01T02:00
Daily 2:00                      | at 02:00 every day, UTC time | day | 10-01T02:00
weekly mon 09:00                | at 09:00 every Monday, UTC time | week | 10-05T09:00
weekly Monday 09:00             | at 09:00 every Monday, UTC time | week | 10-05T09:00
monthly 15 09:00                | at 09:00 on day 15 of every month, UTC time | month | 10-15T09:00 11-15T09:00
monthly last day 18:00          | at 18:00 on the last day of every month, UTC time | month | 10-31T18:00 11-30T18:00
monthly first day 18:00         | at 18:00 on day 1 of every month, UTC time | month | 10-01T18:00 11-01T18:00
monthly last business day 18:00 | at 18:00 on the last working day of every month, UTC time | month | 10-30T18:00 11-30T18:00
monthly first business day 8:00 | at 08:00 on the first working day of every month, UTC time | month | 10-01T08:00 11-02T08:00
monthly first mon 09:00         | at 09:00 on the first Monday of every month, UTC time | month | 10-05T09:00 11-02T09:00
monthly fourth fri 09:00        | at 09:00 on the fourth Friday of every month, UTC time | month | 10-23T09:00 11-27T09:00
monthly last fri 09:00          | at 09:00 on the last Friday of every month, UTC time | month | 10-30T09:00 11-27T09:00
quarterly first day 09:00       | at 09:00 on day 1 of January, April, July and October, UTC time | quarter | 10-01T09:00 2027-01-01T09:00
quarterly last day 18:00        | at 18:00 on the last day of March, June, September and December, UTC time | quarter | 12-31T18:00 2027-03-31T18:00
quarterly last business day 18:00 | at 18:00 on the last working day of March, June, September and December, UTC time | quarter | 12-31T18:00 2027-03-31T18:00 2027-06-30T18:00
quarterly first mon 09:00       | at 09:00 on the first Monday of January, April, July and October, UTC time | quarter | 10-05T09:00 2027-01-04T09:00
yearly 03-01 09:00              | at 09:00 on day 1 of March, UTC time | year | 2027-03-01T09:00
yearly last day 18:00           | at 18:00 on the last day of December, UTC time | year | 12-31T18:00
yearly 02-29 09:00              | at 09:00 on day 29 of February, UTC time | year | 2028-02-29T09:00 2032-02-29T09:00
weekly mon 09:00; weekly thu 10:00 | at 09:00 every Monday; and at 10:00 every Thursday, UTC time | week | 10-01T10:00 10-05T09:00
0 9 * * 1-5; 0 11 * * 6,0       | at 09:00 every Monday, Tuesday, Wednesday, Thursday and Friday; and at 11:00 every Saturday and Sunday, UTC time | day | 10-01T09:00 10-02T09:00 10-03T11:00
daily 09:00; 0 9 * * 1          | at 09:00 every day; and at 09:00 every Monday, UTC time | day | 10-01T09:00 10-02T09:00
daily 09:00; weekly mon 10:00   | at 09:00 every day; and at 10:00 every Monday, UTC time | fire | 10-01T09:00
monthly 1 09:00; weekly mon 09:00 | at 09:00 on day 1 of every month; and at 09:00 every Monday, UTC time | day | 10-01T09:00 10-05T09:00
hourly; daily 02:30             | every hour at :00 every day; and at 02:30 every day, UTC time | fire | 10-01T01:00 10-01T02:00 10-01T02:30
`

func TestForms(t *testing.T) {
	for _, row := range strings.Split(strings.TrimSpace(goodForms), "\n") {
		f := strings.Split(row, " | ")
		text := strings.ReplaceAll(strings.TrimSpace(f[0]), "; ", "\n")
		s, err := Compile(Spec{Schedule: text, Zone: "UTC"})
		if err != nil {
			t.Errorf("%s: %v (%s)", text, err, daybook.HintOf(err))
			continue
		}
		if got := s.Describe(); got != strings.TrimSpace(f[1]) {
			t.Errorf("%s: %s", text, got)
		}
		if got := string(s.Window()); got != strings.TrimSpace(f[2]) {
			t.Errorf("%s: window %s, want %s", text, got, f[2])
		}
		pos := at(t, "2026-10-01T00:00:00Z")
		for _, want := range strings.Fields(f[3]) {
			fire, ok := s.Next(pos)
			layout := "01-02T15:04"
			if strings.Count(want, "-") == 2 {
				layout = "2006-" + layout
			}
			if fire.At.Second() != 0 {
				layout += ":05"
			}
			if got := fire.At.Format(layout); !ok || got != want {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
			pos = fire.At
		}
	}
}

// Each line: text, then what the message and the hint say.
const badForms = `
0 2 * *                  | 4 fields, where five are needed | minute, hour
0 0 2 * * *              | six fields | every 30s
0 0 2 * * * 2026         | 7 fields | minute, hour
61 * * * *               | minute 61 at column 1 is outside 0 to 59 | 0 to 59
0 24 * * *               | hour 24 at column 3 is outside 0 to 23 | midnight is 0
0 0 0 * *                | day of month 0 at column 5 is outside 1 to 31 | 1 to 31
0 0 * 13 *               | month 13 at column 7 is outside | jan to dec
0 0 * * 8                | weekday 8 at column 9 | Sunday
0 0 * * mno              | weekday "mno" at column 9 | did you mean mon?
0 0 * jna *              | month "jna" at column 7 | did you mean jan?
0 22-2 * * *             | hour "22-2" at column 3 runs backwards | write 22-23,0-2
0 9 * * fri-mon          | runs backwards | write 5-6,0-1
0 9 * * fri-sun          | runs backwards | write 5-7
50-10 * * * *            | runs backwards | write 50-59,0-10
0 9 ? * 1                | '?' is not part of cron | write *
0 9 L * *                | 'L' is not part of cron | monthly last day 18:00
0 9 15W * *              | 'W' is not part of cron | business_days
0 9 * * 5L               | 'L' is not part of cron | last fri
0 9 * * 1#2              | '#' is not part of cron | monthly first mon
H 9 * * *                | 'H' is not part of cron | jitter
0~30 9 * * *             | random ranges | jitter
5/15 * * * *             | a step needs a range or a star | write 5-59/15
*/0 * * * *              | step "0" is not a number from 1 on | */5
*/5/5 * * * *            | is not a number | one '/'
*/90 * * * *             | a step of 90 leaves one value | every 90m
0 */48 * * *             | a step of 48 leaves one value | every 48h
1,,2 * * * *             | has an empty item | commas
1, 2 * * * *             | six fields | five fields
-1 * * * *               | minute "" at column 1 is not a value | 0 to 59
0 0 30 2 *               | never comes | monthly last day 00:00
0 0 31 2,4,6 *           | never comes |
99999999999 * * * *      | is not a value | 0 to 59
TZ=UTC 0 2 * * *         | time zone does not stand in the schedule | set timezone
CRON_TZ=UTC 0 2 * * *    | time zone does not stand in the schedule | set timezone
@reboot                  | names no time | by hand
@every 5m                | without the '@' | every 15m
@dayly                   | "@dayly" is unknown | did you mean @daily?
@daily 02:00             | nothing may follow | daily 02:00
dialy 02:00              | begins no form | did you mean daily?
at noon                  | begins no form | daily 02:00
0 2 * * * ä              | 'ä' at column 11 is not allowed | plain letters
every                    | every what? | every 15m
every 0s                 | shorter than a second | every 1s
every 500ms              | not a whole number of seconds | every 1s
every 1.5h               | not a whole number | every 1s
every 15                 | not a distance | every 15m
every m                  | not a distance | every 15m
every 15x                | not a distance | every 15m
every 367d               | more than 366 days | yearly
every 999999999d         | more than 366 days | yearly
every 5 m                | nothing may follow | every 15m
hourly 15                | not a minute of the hour | hourly :00
hourly :60               | not a minute of the hour | hourly :00
daily                    | time of day is missing | daily 02:00
daily 25:00              | not a time of day | 00 to 23
daily 24:00              | not a time of day | 00:00 of the next day
daily 9                  | not a time of day | daily 09:00
daily 9:00pm             | not a time of day | daily 21:00
daily 09:00,17:00        | not a time of day | one time a line
daily 09:00 17:00        | nothing may follow the time | further line
weekly                   | weekday is missing | weekly mon 09:00
weekly mno 09:00         | not a weekday | did you mean mon?
weekly mon,thu 09:00     | not a weekday | 0 9 * * 1,4
weekly mon               | time of day is missing | weekly mon 09:00
monthly 32 09:00         | outside 1 to 31 | monthly 15 09:00
monthly lsat day 09:00   | not a day | did you mean last?
monthly fifth mon 09:00  | "fifth" at column 9 is not a day | first mon
monthly second day 09:00 | only the first and the last day | last day
monthly last business 09:00 | wants the word day | last business day
monthly last             | last what? | last day
monthly last month 09:00 | not a weekday | mon
quarterly 15 09:00       | of which month of the quarter? | 0 9 15 1,4,7,10 *
quarterly                | day of the quarter is missing | first day
yearly                   | day of the year is missing | 03-01
yearly 3-1 09:00         | not a day of the year | 03-01
yearly 02-30 09:00       | never comes | 03-01
yearly 13-01 09:00       | never comes | 03-01
`

func TestFormsRefused(t *testing.T) {
	for _, row := range strings.Split(strings.TrimSpace(badForms), "\n") {
		f := strings.SplitN(row, " | ", 3)
		text, message, hint := strings.TrimSpace(f[0]), strings.TrimSpace(f[1]), ""
		if len(f) > 2 {
			hint = strings.TrimSpace(f[2])
		}
		message = strings.TrimSuffix(message, " |")
		_, err := Compile(Spec{Schedule: text, Zone: "UTC"})
		var e *daybook.Error
		if !errors.As(err, &e) || e.Code != daybook.CodeInvalid {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !strings.Contains(e.Message, message) || !strings.Contains(e.Hint, hint) || e.Hint == "" {
			t.Errorf("%s: %s (%s)", text, e.Message, e.Hint)
		}
	}
}

func TestFormsSayWhichLine(t *testing.T) {
	_, err := Compile(Spec{Schedule: "daily 02:00\n\nweekly mno 09:00", Zone: "UTC"})
	if err == nil || !strings.HasPrefix(err.Error(), `schedule line 3 "weekly mno 09:00": "mno" at column 8`) {
		t.Error(err)
	}
	if _, err := Compile(Spec{Schedule: strings.Repeat("daily 02:00\n", 65), Zone: "UTC"}); err == nil {
		t.Error("65 lines")
	}
	if _, err := Compile(Spec{Schedule: "0 " + strings.Repeat("1,", 500) + "1 * * *", Zone: "UTC"}); err == nil || len(err.Error()) > 300 {
		t.Error(err)
	}
}

func TestPoliciesRefused(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Schedule: "daily 02:00", Window: "dya"}, `window: "dya" is not one of day`},
		{Spec{Schedule: "daily 02:00", Gap: "shfit"}, "clock_gap"},
		{Spec{Schedule: "daily 02:00", Repeat: "both"}, "clock_repeat"},
		{Spec{Schedule: "daily 02:00", BusinessDays: "nxt"}, "business_days"},
		{Spec{Schedule: "hourly", BusinessDays: daybook.BusinessNext}, "would move every fire"},
		{Spec{Schedule: "daily 02:00", Window: daybook.PerEvent}, "no windows of kind event"},
	} {
		c.spec.Zone = "UTC"
		if _, err := Compile(c.spec); !errors.Is(err, daybook.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
}

func TestGapAndRepeat(t *testing.T) {
	for _, c := range []struct {
		spec     Spec
		from, to string
		want     string // at label note skip
	}{
		{Spec{Schedule: "daily 02:30", Gap: daybook.GapSkip}, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z",
			"03-29T01:00 2026-03-29 gap clock gap|03-30T00:30 2026-03-30  "},
		{Spec{Schedule: "daily 02:30", Repeat: daybook.RepeatLast}, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z",
			"10-25T01:30 2026-10-25 repeat |10-26T01:30 2026-10-26  "},
		{Spec{Schedule: "daily 02:30", Repeat: daybook.RepeatFirst}, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z",
			"10-25T00:30 2026-10-25 repeat "},
		{Spec{Schedule: "weekly sun 02:30", Gap: daybook.GapSkip}, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z",
			"03-29T01:00 2026-W13 gap clock gap"},
		// Three nominal times fall on the end of the gap, in their own order, each with its key.
		{Spec{Schedule: "*/30 1-3 * * *"}, "2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z",
			"03-29T00:00 2026-03-29T01:00  |03-29T00:30 2026-03-29T01:30  |03-29T01:00 2026-03-29T02:00 gap |03-29T01:00 2026-03-29T02:30 gap |03-29T01:00 2026-03-29T03:00  |03-29T01:30 2026-03-29T03:30  "},
	} {
		c.spec.Zone = "Europe/Berlin"
		s := must(t, c.spec)
		from := at(t, c.from)
		if strings.HasPrefix(c.spec.Schedule, "*/30") {
			from = from.Add(-time.Second)
		}
		var got []string
		for f := range s.Between(from, at(t, c.to)) {
			got = append(got, f.At.Format("01-02T15:04")+" "+f.Window.Label+" "+string(f.Note)+" "+string(f.Skip))
		}
		if g := strings.Join(got, "|"); g != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.spec, g, c.want)
		}
	}
	// Prev gives the last of several at one instant, Next the first.
	s := must(t, Spec{Schedule: "*/30 1-3 * * *", Zone: "Europe/Berlin"})
	if f, _ := s.Prev(at(t, "2026-03-29T01:00:00Z")); f.Nominal != "2026-03-29T03:00" {
		t.Error(f)
	}
	if f, _ := s.Next(at(t, "2026-03-29T00:30:00Z")); f.Nominal != "2026-03-29T02:00" || f.Window.End != at(t, "2026-03-29T01:30:00Z") {
		t.Error(f)
	}
}

func TestDistance(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		schedule string
		window   daybook.WindowKind
		want     time.Duration
		longest  time.Duration // 0: the same
	}{
		{"", "", 0, 0},
		{"daily 02:30", "", day, 0},
		{"0 9 * * 1-5", "", day, 3 * day},
		{"0 9 * * 1", "", 7 * day, 0},
		{"*/15 * * * *", "", 15 * time.Minute, 0},
		{"*/15 * * * *", daybook.Day, day, 0},
		{"every 90s", "", 90 * time.Second, 0},
		{"every 7d", "", 7 * day, 0},
		{"0 9,17 * * *", "", 8 * time.Hour, 16 * time.Hour},
		{"0 9,17 * * *", daybook.Day, day, 0},
		{"0 8 * * *", daybook.PreviousWeek, 7 * day, 0},
		{"weekly mon 09:00", "", 7 * day, 0},
		{"monthly 15 09:00", "", 28 * day, 31 * day},
		{"quarterly last day 18:00", "", 90 * day, 92 * day},
		{"yearly 03-01 09:00", "", 365 * day, 366 * day},
		{"yearly 02-29 09:00", "", 1461 * day, 0},
	} {
		s := must(t, Spec{Schedule: c.schedule, Window: c.window, Zone: "Europe/Berlin"})
		start := time.Now()
		if c.longest == 0 {
			c.longest = c.want
		}
		if shortest, longest := s.distances(); shortest != c.want || longest != c.longest || s.Distance() != shortest {
			t.Errorf("%s %s: %s to %s, want %s to %s", c.schedule, c.window, shortest, longest, c.want, c.longest)
		}
		if d := time.Since(start); d > 200*time.Millisecond {
			t.Errorf("%s took %s", c.schedule, d)
		}
	}
}

// Where it is plain that fires come again at the same distances, a shorter look finds the same.
func TestDistanceOfOnePeriod(t *testing.T) {
	short := 0
	for _, row := range append(strings.Split(strings.TrimSpace(goodForms), "\n"), "every 1d\ndaily 13:37", "0 9 * * 6", "0 9-17 * * 1-5\nhourly", "every 7m\n0 0 * * *", "every 8h\n30 4 * * 0", "59 23 * * 5\n0 0 * * 6") {
		text := strings.TrimSpace(strings.Split(row, " | ")[0])
		for _, kind := range append([]daybook.WindowKind{""}, daybook.WindowKinds...) {
			s, err := Compile(Spec{Schedule: text, Window: kind, Zone: "Europe/Berlin"})
			if err != nil || s.repeats() == irregular {
				continue
			}
			short++
			a, b := s.distances()
			if c, d := s.distancesWithin(9 * 366); a != c || b != d || a == 0 {
				t.Errorf("%q %s: %s to %s, want %s to %s", text, kind, a, b, c, d)
			}
		}
	}
	if short < 50 {
		t.Errorf("only %d schedules repeat plainly", short)
	}
}

func TestComplete(t *testing.T) {
	j, s, err := Complete(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Timezone: "Asia/Shanghai", Priority: daybook.P0, Effects: daybook.Once}, nil)
	if err != nil || s.Window() != daybook.Day || j.Window != daybook.Day || j.Missed != daybook.CatchUp || j.Expect.MaxSilence != 26*time.Hour {
		t.Errorf("%+v %v", j, err)
	}
	if j, _, err = Complete(daybook.Job{Name: "sync", Schedule: "every 15m", Timezone: "UTC"}, nil); err != nil || j.Missed != daybook.Coalesce {
		t.Errorf("%+v %v", j, err)
	}
	if j, _, err = Complete(daybook.Job{Name: "mail", Work: daybook.Event}, nil); err != nil || j.Window != daybook.PerEvent {
		t.Errorf("%+v %v", j, err)
	}
	if j, _, err = Complete(daybook.Job{Name: "fix", Timezone: "UTC"}, nil); err != nil || j.Window != daybook.Day || j.Expect.MaxSilence != 0 {
		t.Errorf("%+v %v", j, err)
	}
	if _, _, err = Complete(daybook.Job{Name: "fix"}, nil); err == nil {
		t.Error("no zone")
	}
}

func TestRemarks(t *testing.T) {
	for text, want := range map[string]string{
		"daily 02:00":           "",
		"0 9 31 1,3 *":          "",
		"0 9 30 * *":            "months without a day 30",
		"monthly 31 09:00":      "months without a day 31",
		"yearly 02-29 09:00":    "years without a 29 February",
		"0 9 1 * 1":             "either of them fires",
		"hourly\ndaily 02:00":   "hourly: every hour, so it follows elapsed time",
		"0 9 15,31 * *":         "", // a fire in every month
		"*/15 * * * *":          "",
		"monthly last day 9:00": "",
	} {
		got := daybook.Texts(must(t, Spec{Schedule: text, Zone: "UTC"}).Remarks()).String()
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
