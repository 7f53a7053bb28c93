package calendar

import (
	"errors"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

func china(t testing.TB) *Days {
	t.Helper()
	d, ok := Embedded("cn")
	if !ok {
		t.Fatal("no cn")
	}
	return d
}

func TestChina(t *testing.T) {
	d := china(t)
	if first, last := d.Horizon(); first > "2019-01-01" || last < "2027-12-31" {
		t.Errorf("horizon %s to %s", first, last)
	}
	for _, c := range []struct {
		day     string
		working bool
		reason  string
	}{
		{"2026-10-01", false, "国庆节"}, // a Thursday
		{"2026-10-07", false, "国庆节"},
		{"2026-10-08", true, ""},
		{"2026-10-10", true, "国庆节"}, // a Saturday, made up (调休)
		{"2026-10-11", false, ""},
		{"2026-02-14", true, "春节"}, // a Saturday, made up
		{"2026-02-16", false, "春节"},
		{"2026-02-24", true, ""},
		{"2024-02-18", true, "春节"}, // a Sunday, made up
		{"2026-11-30", true, ""},
	} {
		if w, err := d.Working(c.day); err != nil || w != c.working || d.Reason(c.day) != c.reason {
			t.Errorf("%s: %v %v %q", c.day, w, err, d.Reason(c.day))
		}
	}
	if w, err := d.Working("2028-01-03"); !w || !errors.Is(err, daybook.ErrConflict) || !strings.Contains(err.Error(), "calendar cn: data ends 2027-12-31") {
		t.Errorf("%v %v", w, err)
	}
	if _, err := d.Working("2001-01-01"); err == nil || !strings.Contains(err.Error(), "data begins") {
		t.Error(err)
	}
	if _, err := d.Working("2026-02-30"); !errors.Is(err, daybook.ErrInvalid) {
		t.Error(err)
	}
	if _, ok := Embedded("de"); ok {
		t.Error("de is not shipped")
	}
	// Make-up days lie on weekends; the other way round the file would say nothing.
	for on := range d.work {
		if weekday(on) {
			t.Errorf("%s is made up on a weekday", on)
		}
	}
	if first, last := d.Horizon(); !strings.Contains(string(chinaCSV), "covers,"+first+","+last) {
		t.Error("horizon")
	}
}

func TestBusinessDays(t *testing.T) {
	days := china(t)
	for _, c := range []struct {
		schedule string
		business daybook.BusinessDays
		days     *Days
		from, to string
		want     string // day of the fire, label, note, skip
	}{
		{"daily 09:00", daybook.BusinessSkip, nil, "2026-01-02T12:00Z", "2026-01-05T12:00Z",
			"3 2026-01-03  day off|4 2026-01-04  day off|5 2026-01-05  "},
		{"daily 09:00", daybook.BusinessNext, nil, "2026-01-01T12:00Z", "2026-01-06T12:00Z",
			"2 2026-01-02  |5 2026-01-03 moved |5 2026-01-04 moved |5 2026-01-05  |6 2026-01-06  "},
		{"daily 09:00", daybook.BusinessPrevious, nil, "2026-01-01T12:00Z", "2026-01-05T12:00Z",
			"2 2026-01-02  |2 2026-01-03 moved |2 2026-01-04 moved |5 2026-01-05  "},
		// 调休: National Day 2026 is off from 1 to 7 October, and Saturday 10 October is worked.
		{"daily 09:00", daybook.BusinessSkip, days, "2026-09-30T12:00Z", "2026-10-12T12:00Z",
			"1 2026-10-01  day off|2 2026-10-02  day off|3 2026-10-03  day off|4 2026-10-04  day off|5 2026-10-05  day off|6 2026-10-06  day off|7 2026-10-07  day off|8 2026-10-08  |9 2026-10-09  |10 2026-10-10  |11 2026-10-11  day off|12 2026-10-12  "},
		{"weekly fri 09:00", daybook.BusinessNext, days, "2026-09-30T12:00Z", "2026-10-12T12:00Z", "8 2026-W40 moved |9 2026-W41  "},
		{"weekly fri 09:00", daybook.BusinessPrevious, days, "2026-09-26T12:00Z", "2026-10-12T12:00Z", "30 2026-W40 moved |9 2026-W41  "},
		{"monthly 1 09:00", daybook.BusinessNext, days, "2026-09-30T12:00Z", "2026-11-30T12:00Z", "8 2026-10 moved |2 2026-11 moved "},
		{"monthly 1 09:00", daybook.BusinessPrevious, days, "2026-09-25T12:00Z", "2026-10-31T12:00Z", "30 2026-10 moved |30 2026-11 moved "},
		{"monthly last business day 18:00", "", days, "2026-01-01T00:00Z", "2026-07-01T00:00Z",
			"30 2026-01  |28 2026-02  |31 2026-03  |30 2026-04  |29 2026-05  |30 2026-06  "}, // Saturday 28 February is worked
		{"monthly last business day 18:00", "", nil, "2026-01-01T00:00Z", "2026-04-01T00:00Z", "30 2026-01  |27 2026-02  |31 2026-03  "},
		{"monthly first business day 09:00", "", days, "2026-09-30T12:00Z", "2026-11-30T12:00Z", "8 2026-10  |2 2026-11  "},
		{"every 12h", daybook.BusinessSkip, nil, "2026-01-02T12:00Z", "2026-01-05T00:00Z",
			"3 2026-01-03T00:00Z  day off|3 2026-01-03T12:00Z  day off|4 2026-01-04T00:00Z  day off|4 2026-01-04T12:00Z  day off|5 2026-01-05T00:00Z  "},
		// Beyond the data only weekends are known.
		{"daily 09:00", daybook.BusinessSkip, days, "2029-10-01T00:00Z", "2029-10-02T12:00Z", "1 2029-10-01  |2 2029-10-02  "},
	} {
		s := must(t, Spec{Schedule: c.schedule, Zone: "UTC", BusinessDays: c.business, Days: c.days})
		var got []string
		for f := range s.Between(at(t, c.from), at(t, c.to)) {
			got = append(got, f.At.Format("2")+" "+f.Window.Label+" "+string(f.Note)+" "+string(f.Skip))
		}
		if g := strings.Join(got, "|"); g != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.schedule, c.business, g, c.want)
		}
		agree(t, s, at(t, c.from), at(t, c.to))
	}
}

func TestParseCSV(t *testing.T) {
	d, err := ParseDays("x.csv", []byte("\ufeffdate,kind,name\r\n# a comment\r\n2026-10-01,off,\"National Day, 1st\"\r\n\r\n 2026-10-10 , WORK\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if first, last := d.Horizon(); first != "2026-01-01" || last != "2026-12-31" || d.Name() != "x.csv" {
		t.Error(first, last)
	}
	if w, _ := d.Working("2026-10-10"); !w || d.Reason("2026-10-01") != "National Day, 1st" {
		t.Error(w)
	}
	d, err = ParseCSV("gulf", []byte("covers,2026-01-01,2026-06-30\nweekend,fri,Saturday\n2026-03-01,off\n2026-03-06,work\n"))
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[string]bool{"2026-03-01": false, "2026-03-06": true, "2026-03-07": false, "2026-03-08": true, "2026-03-13": false} {
		if w, err := d.Working(day); w != want || err != nil {
			t.Error(day, w, err)
		}
	}
	for text, want := range map[string]string{
		"":                                    "names no day",
		"# nothing":                           "names no day",
		"2026-02-30,off":                      `line 1: "2026-02-30" is no date`,
		"date,kind\n01.10.2026,off":           `line 2: "01.10.2026" is no date`,
		"2026-10-01":                          "neither off nor work",
		"2026-10-01,offf":                     `"offf" is neither off nor work`,
		"2026-10-01,off\n2026-10-01,work":     "line 2: 2026-10-01 is said to be off and to be work",
		"covers,2026-01-01":                   "covers wants two dates",
		"covers,2026-01-01,2025-01-01":        "no span of dates",
		"covers,0026-01-01,2025-01-01":        "outside 1900 to 2199",
		"weekend,frei":                        `"frei" is not a weekday`,
		"weekend,mon,tue,wed,thu,fri,sat,sun": "no working day",
		"2026-10-01,\"off":                    "calendar x",
		"0206-10-01,off":                      "outside 1900 to 2199",
	} {
		if _, err := ParseCSV("x", []byte(text)); !errors.Is(err, daybook.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ParseCSV("x", make([]byte, maxDaysBytes+1)); err == nil {
		t.Error("too large")
	}
	long := strings.Builder{}
	for d := newDate(2026, 1, 1); d < newDate(2026, 7, 1); d++ {
		long.WriteString(d.String() + ",off\n")
	}
	closed, err := ParseCSV("closed", []byte(long.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(Spec{Schedule: "daily 09:00", Zone: "UTC", Days: closed, BusinessDays: daybook.BusinessNext}); err == nil || !strings.Contains(err.Error(), "no working day for 181 days from 2026-01-01 on") {
		t.Error(err)
	}
	// Skipping needs no working day nearby, and a month without one has no last of them.
	s := must(t, Spec{Schedule: "monthly last business day 09:00", Zone: "UTC", Days: closed})
	if f, ok := s.Next(at(t, "2026-01-01T00:00Z")); !ok || f.Window.Label != "2026-07" {
		t.Error(f)
	}
}

const sampleICS = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" +
	"BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261001\r\nDTEND;VALUE=DATE:20261008\r\nSUMMARY:国庆节（休\r\n ）\r\nEND:VEVENT\r\n" +
	"BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261010\r\nSUMMARY:国庆节（班）\r\nEND:VEVENT\r\n" +
	"BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20260214\r\nX-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY\r\nSUMMARY:春节\r\nEND:VEVENT\r\n" +
	"BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20260228\r\nDURATION:P1D\r\nCATEGORIES:office,work\r\nBEGIN:VALARM\r\nDTSTART;VALUE=DATE:20200101\r\nEND:VALARM\r\nEND:VEVENT\r\n" +
	"BEGIN:VEVENT\r\nDTSTART;TZID=\"Asia/Shanghai:x\":20261102T090000\r\nDTEND:20261102T100000\r\nSUMMARY:meeting\r\nEND:VEVENT\r\n" +
	"BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261103\r\nSTATUS:CANCELLED\r\nEND:VEVENT\r\n" +
	"END:VCALENDAR\r\n"

func TestParseICS(t *testing.T) {
	d, err := ParseDays("cn.ics", []byte(sampleICS))
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[string]bool{"2026-10-01": false, "2026-10-07": false, "2026-10-08": true, "2026-10-10": true,
		"2026-02-14": true, "2026-02-28": true, "2026-11-02": true, "2026-11-03": true} {
		if w, err := d.Working(day); w != want || err != nil {
			t.Error(day, w, err)
		}
	}
	if first, last := d.Horizon(); first != "2026-01-01" || last != "2026-12-31" || d.Reason("2026-10-03") != "国庆节（休）" {
		t.Error(first, last, d.Reason("2026-10-03"))
	}
	event := func(body string) string {
		return "BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + body + "\nEND:VEVENT\nEND:VCALENDAR\n"
	}
	for text, want := range map[string]string{
		"BEGIN:VCALENDAR\nEND:VCALENDAR":                                                                             "names no day",
		"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261001":                                                 "in the middle of an event",
		event("DTSTART;VALUE=DATE:20260230"):                                                                         `line 3: DTSTART "20260230" is no date`,
		event("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY"):                                                      "line 4: a recurring event",
		event("DTSTART;VALUE=DATE:20260101\nDTEND;VALUE=DATE:20290101"):                                              "an event of 1096 days",
		event("DTSTART;VALUE=DATE:02060101"):                                                                         "outside 1900 to 2199",
		event("DTSTART;VALUE=DATE:20260101\nEND:VEVENT\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20260101\nCATEGORIES:WORK"): "said to be off and to be work",
	} {
		if _, err := ParseICS("x", []byte(text)); !errors.Is(err, daybook.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
