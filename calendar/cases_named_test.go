package calendar

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// rowsNamed checks rows of testdata/calendar.tsv by their names.
func rowsNamed(t *testing.T, ids ...string) {
	t.Helper()
	rows := map[string]caseRow{}
	for _, c := range caseRows(t) {
		rows[c.id] = c
	}
	for _, id := range ids {
		c, ok := rows[id]
		if !ok {
			t.Fatalf("no row %s", id)
		}
		loc, err := Zone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		c.check(t, loc)
	}
}

func must(t testing.TB, spec Spec) *Schedule {
	t.Helper()
	s, err := Compile(spec)
	if err != nil {
		t.Fatalf("%+v: %v", spec, err)
	}
	return s
}

func next(t testing.TB, s *Schedule, after string) string {
	t.Helper()
	f, ok := s.Next(at(t, after))
	if !ok {
		return "never"
	}
	return f.At.Format(time.RFC3339)
}

func TestH01WallTimeMissingInSpring(t *testing.T) { rowsNamed(t, "CH02", "CH01") }

func TestH02DailyFileMissingOnceAYear(t *testing.T) { rowsNamed(t, "CH66") }

func TestH03WallTimeTwiceInAutumn(t *testing.T) { rowsNamed(t, "CH15", "CH14", "CH60") }

func TestH04HalfHourShift(t *testing.T) { rowsNamed(t, "CH16", "CH06") }

func TestH05MidnightDoesNotExist(t *testing.T) { rowsNamed(t, "CH03", "CH05") }

func TestH06LaterTimeOnADayWithoutMidnight(t *testing.T) {
	rowsNamed(t, "CH63")
	// The Friday that other libraries lose: its midnight does not exist, 09:00 does.
	for _, schedule := range []string{"0 9 * * 5", "0 9 24 4 *", "weekly fri 09:00"} {
		s := must(t, Spec{Schedule: schedule, Zone: "Africa/Cairo"})
		if got := next(t, s, "2026-04-20T00:00:00Z"); got != "2026-04-24T06:00:00Z" {
			t.Errorf("%s: %s", schedule, got)
		}
	}
}

func TestH07MidnightAfterARepeatedHour(t *testing.T) { rowsNamed(t, "CH18", "CH17") }

func TestH08IntervalInTheRepeatedHour(t *testing.T) { rowsNamed(t, "CH27", "CH25", "CH29") }

func TestH09ZonesNotOnTheHour(t *testing.T) { rowsNamed(t, "CH31", "CH32") }

func TestH10DayAfterAChange(t *testing.T) { rowsNamed(t, "CH64") }

func TestH11OffsetOverAMonthJump(t *testing.T) { rowsNamed(t, "CH65") }

// A schedule that cannot be read harms its own job: Compile returns an error and nothing panics.
func TestH12FaultIsLocal(t *testing.T) {
	for _, text := range []string{"every 1m", "61 * * * *", "every 1m"} {
		_, err := Compile(Spec{Schedule: text, Zone: "UTC"})
		if (err != nil) != (text == "61 * * * *") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestH13Day31SkipsShortMonths(t *testing.T) {
	rowsNamed(t, "CH47", "CH44", "CH45")
	s := must(t, Spec{Schedule: "0 9 31 * *", Zone: "Asia/Shanghai"})
	if r := s.Remarks(); len(r) != 1 || !strings.Contains(r[0].String(), "months without a day 31") {
		t.Errorf("remarks %q", r)
	}
	if r := must(t, Spec{Schedule: "monthly last day 09:00", Zone: "Asia/Shanghai"}).Remarks(); r != nil {
		t.Errorf("remarks %q", r)
	}
}

func TestH14LastDayOfAnyLength(t *testing.T) { rowsNamed(t, "CH46", "CH22", "CH48") }

func TestH15ISOWeekWithItsYear(t *testing.T) {
	rowsNamed(t, "CH40", "CH43", "CH37", "CH38", "CH39")
	s := must(t, Spec{Schedule: "weekly mon 09:00", Zone: "Europe/Berlin"})
	seen, n := map[string]bool{}, 0
	for f := range s.Between(at(t, "2000-01-01T00:00:00Z"), at(t, "2039-01-01T00:00:00Z")) {
		if seen[f.Window.Label] {
			t.Fatalf("twice: %s", f.Window.Label)
		}
		seen[f.Window.Label] = true
		y, w := f.At.In(s.Location()).ISOWeek()
		if want := itoa(y) + "-W" + string([]byte{byte('0' + w/10), byte('0' + w%10)}); f.Window.Label != want {
			t.Fatalf("%s: label %s, want %s", f.At, f.Window.Label, want)
		}
		n++
	}
	if n != 2035 {
		t.Errorf("%d weeks", n)
	}
}

func TestH16DateThatCannotExist(t *testing.T) {
	for _, text := range []string{"0 0 31 4 *", "0 0 30 2 *", "0 0 31 2,4,6 *", "yearly 02-30 09:00"} {
		start := time.Now()
		_, err := Compile(Spec{Schedule: text, Zone: "UTC"})
		if !errors.Is(err, daybook.ErrInvalid) || !strings.Contains(err.Error(), "never comes") {
			t.Errorf("%s: %v", text, err)
		}
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("%s took %s", text, d)
		}
	}
	s := must(t, Spec{Schedule: "0 0 31 4,5 *", Zone: "UTC"})
	if got := next(t, s, "2026-01-01T00:00:00Z"); got != "2026-05-31T00:00:00Z" {
		t.Error(got)
	}
}

func TestH17PreviousOfARareDate(t *testing.T) {
	s := must(t, Spec{Schedule: "0 9 29 2 *", Zone: "UTC"})
	for _, c := range [][3]string{
		{"prev", "2027-06-01T00:00:00Z", "2024-02-29T09:00:00Z"},
		{"next", "2026-06-01T00:00:00Z", "2028-02-29T09:00:00Z"},
		{"next", "1896-02-29T09:00:00Z", "1904-02-29T09:00:00Z"}, // 1900 was no leap year
		{"next", "2096-02-29T09:00:00Z", "2104-02-29T09:00:00Z"}, // nor will 2100 be
		{"prev", "1904-02-29T08:59:59Z", "1896-02-29T09:00:00Z"},
		{"prev", "2104-02-29T08:59:59Z", "2096-02-29T09:00:00Z"},
		{"prev", "2024-02-29T09:00:00Z", "2024-02-29T09:00:00Z"}, // at is before
	} {
		var f daybook.Fire
		if c[0] == "prev" {
			f, _ = s.Prev(at(t, c[1]))
		} else {
			f, _ = s.Next(at(t, c[1]))
		}
		if got := f.At.Format(time.RFC3339); got != c[2] {
			t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

func TestH18DayOfMonthAndWeekday(t *testing.T) {
	rowsNamed(t, "CH50", "CH51")
	s := must(t, Spec{Schedule: "0 9 */10 * 1", Zone: "UTC"})
	if r := s.Remarks(); len(r) != 1 || !strings.Contains(r[0].String(), "*/10 counts as a restriction") {
		t.Errorf("remarks %q", r)
	}
	var days []string
	for f := range s.Between(at(t, "2026-06-01T12:00:00Z"), at(t, "2026-06-22T12:00:00Z")) {
		days = append(days, f.Window.Label[8:])
	}
	if got := strings.Join(days, " "); got != "08 11 15 21 22" {
		t.Error(got)
	}
}

func TestH19OffByOneDay(t *testing.T) { rowsNamed(t, "CH67") }

func TestH20ZoneNames(t *testing.T) {
	for _, c := range []struct{ name, message, hint string }{
		{"Europe/Luxembourg", "", ""},
		{"UTC", "", ""},
		{"Etc/GMT+5", "", ""},
		{"", "empty", "Europe/Berlin"},
		{"Local", "server", "IANA"},
		{"local", "server", "IANA"},
		{"Europe/Luxemburg", "unknown", "Europe/Luxembourg"},
		{"CEST", "abbreviation", "Europe/Berlin"},
		{"EST", "abbreviation", "America/New_York"},
		{"europe/berlin", "unknown", "did you mean Europe/Berlin?"},
		{"Shanghai", "unknown", "did you mean Asia/Shanghai?"},
		{"Beijing", "unknown", "Asia/Shanghai"},
		{"UTC+8", "unknown", ""},
		{"+08:00", "unknown", "place"},
		{"Europe", "unknown", ""},
		{"../etc/passwd", "unknown", ""},
		{"/etc/localtime", "unknown", ""},
		{"right/UTC", "variant", "use UTC"},
		{"Factory", "unknown", ""},
		{strings.Repeat("x", 5000), "unknown", ""},
	} {
		_, err := Zone(c.name)
		if c.message == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.Is(err, daybook.ErrInvalid) || !strings.Contains(err.Error(), c.message) || !strings.Contains(daybook.HintOf(err), c.hint) || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v (%s)", c.name, err, daybook.HintOf(err))
		}
	}
	_, _, err := Complete(daybook.Job{Name: "renew", Schedule: "daily 02:00", Timezone: "Europe/Luxemburg"}, nil)
	if err == nil || !strings.Contains(err.Error(), "renew") || !strings.Contains(err.Error(), "Europe/Luxemburg") {
		t.Errorf("Complete: %v", err)
	}
}

// The fires come from the rules in use, never from a stored instant: with other rules for the same zone the window keeps
// its key and moves.
func TestH21RuleChange(t *testing.T) {
	rowsNamed(t, "CH52", "CH56")
	from, to := at(t, "2022-10-29T12:00:00Z"), at(t, "2022-10-30T12:00:00Z")
	old := time.FixedZone("Asia/Amman", 2*3600) // what tables from before the decree said for that day
	for _, c := range []struct {
		loc  *time.Location
		want string
	}{{old, "2022-10-30T07:00:00Z"}, {nil, "2022-10-30T06:00:00Z"}} {
		if c.loc == nil {
			c.loc, _ = Zone("Asia/Amman")
		}
		s, err := compile(Spec{Schedule: "daily 09:00"}, c.loc)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for f := range s.Between(from, to) {
			if n++; f.At.Format(time.RFC3339) != c.want || f.Window.Label != "2022-10-30" {
				t.Errorf("%s: %s %s", c.loc, f.At, f.Window.Label)
			}
		}
		if n != 1 {
			t.Errorf("%d fires", n)
		}
	}
}

// ZoneBounds of embedded data stands still on 31 December of leap years, and names ends of years where nothing changes.
// Both ways of meeting them end soon: asking for the next change, and walking a schedule over such a day.
func TestH22ZoneBoundsDoesNotAdvance(t *testing.T) {
	rowsNamed(t, "CH68")
	for _, c := range caseRows(t) {
		if c.id == "CH68" {
			c.check(t, embedded(t, "Europe/Berlin"))
		}
	}
	quickest := time.Hour
	for range 3 { // a busy machine may take a slice in between
		start := time.Now()
		for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Nuuk", "Asia/Tokyo"} {
			aroundLeapYears(t, embedded(t, name))
		}
		quickest = min(quickest, time.Since(start))
	}
	if quickest > time.Second {
		t.Errorf("took %s", quickest)
	}
}

// aroundLeapYears searches around the last day of each leap year, where nothing changes.
func aroundLeapYears(t *testing.T, loc *time.Location) {
	t.Helper()
	s, err := compile(Spec{Schedule: "daily 09:00"}, loc)
	if err != nil {
		t.Fatal(err)
	}
	z := zone{loc}
	for year := 2028; year <= 2100; year += 4 {
		from, to := newDate(year, 12, 30).seconds(), newDate(year+1, 1, 2).seconds()
		for u := from; u < to; u += 1800 {
			if _, change, ok := z.change(u, to); ok {
				t.Fatalf("%s: a change at %d", loc, change)
			}
		}
		n := 0
		for range s.Between(time.Unix(from, 0), time.Unix(to, 0)) {
			n++
		}
		if n != 3 {
			t.Errorf("%s: %d fires at the end of %d", loc, n, year)
		}
	}
}

// The part of H23 that is the calendar's: 600 missed windows are counted without effort.
func TestH23SixHundredMissedWindows(t *testing.T) {
	s := must(t, Spec{Schedule: "*/1 * * * *", Zone: "Europe/Berlin"})
	n := 0
	for d := range s.Due(at(t, "2026-10-24T20:00:00Z"), at(t, "2026-10-25T06:00:00Z")) {
		if n++; len(d.Fires) != 1 || !d.Last.Equal(d.Fires[0].At) || d.Skip != "" {
			t.Fatalf("%+v", d)
		}
	}
	if n != 600 {
		t.Error(n)
	}
}

// A distance counts from the Unix epoch, so restarts change nothing.
func TestH25LongIntervalFrequentRestarts(t *testing.T) {
	var keys []string
	for day := at(t, "2026-01-01T12:00:00Z"); day.Before(at(t, "2026-01-16T12:00:00Z")); day = day.Add(24 * time.Hour) {
		s := must(t, Spec{Schedule: "every 168h", Zone: "Europe/Berlin"}) // a new process
		for f := range s.Between(day, day.Add(24*time.Hour)) {
			keys = append(keys, f.Window.Label)
		}
	}
	if got := strings.Join(keys, " "); got != "2026-01-08T00:00Z 2026-01-15T00:00Z" {
		t.Error(got)
	}
}

// A new job has no past: what comes first after its first sight is the next month's window.
func TestH31NewJobHasNoPast(t *testing.T) {
	s := must(t, Spec{Schedule: "monthly 1 09:00", Zone: "UTC"})
	for range s.Between(at(t, "2026-05-20T00:00:00Z"), at(t, "2026-06-01T08:59:59Z")) {
		t.Error("a run before 2026-06-01")
	}
	if got := next(t, s, "2026-05-20T00:00:00Z"); got != "2026-06-01T09:00:00Z" {
		t.Error(got)
	}
}

// Nuuk's gap of 2024 runs from 23:00 to 24:00: 23:45 fires at 00:00 of the next date, for the old business date.
func TestNuukGapEndsOnTheNextDate(t *testing.T) {
	s := must(t, Spec{Schedule: "daily 23:45", Zone: "America/Nuuk"})
	var got []string
	for f := range s.Between(at(t, "2024-03-29T12:00:00Z"), at(t, "2024-04-01T12:00:00Z")) {
		got = append(got, f.At.Format("01-02T15:04Z")+" "+f.Window.Label+" "+string(f.Note)+" "+f.Window.End.Sub(f.Window.Start).String())
	}
	want := "03-30T01:45Z 2024-03-29  24h0m0s|03-31T01:00Z 2024-03-30 gap 23h0m0s|04-01T00:45Z 2024-03-31  24h0m0s"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("\n got %s\nwant %s", s, want)
	}
}
