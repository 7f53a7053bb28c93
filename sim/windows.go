package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// fire is a moment at which a schedule fires, and the label of its window, worked out by the standard library alone.
type fire struct {
	at    time.Time
	label string
}

// written is what the checkers read of a definition: the form in which it is stored.
type written struct {
	Schedule, Timezone, Window, Zone string
}

// first is the zone in which a date begins first of all: that of a job whose subjects each have their own.
var first = time.FixedZone("UTC+14", 14*60*60)

func readDefinition(text string) (d written) {
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		panic(err)
	}
	return d
}

// fires lists what a definition fires in (from, to].
func (d written) fires(from, to time.Time) (list []fire) {
	if every, ok := strings.CutPrefix(d.Schedule, "every "); ok {
		step, err := time.ParseDuration(every)
		if err != nil {
			panic(err)
		}
		for at := from.Truncate(step); !at.After(to); at = at.Add(step) {
			if at.After(from) {
				list = append(list, fire{at, at.UTC().Format("2006-01-02T15:04Z")})
			}
		}
		return list
	}
	loc, err := time.LoadLocation(d.Timezone)
	if err != nil {
		panic(err)
	}
	if d.Zone == "subject" {
		loc = first
	}
	f := strings.Fields(d.Schedule)
	if len(f) == 0 {
		return nil
	}
	minute, err := strconv.Atoi(f[0])
	if err != nil {
		panic(err)
	}
	var hours []int
	if step, ok := strings.CutPrefix(f[1], "*/"); ok {
		n, _ := strconv.Atoi(step)
		for h := 0; h < 24; h += n {
			hours = append(hours, h)
		}
	} else {
		h, _ := strconv.Atoi(f[1])
		hours = []int{h}
	}
	for day := from.In(loc).AddDate(0, 0, -2); day.Before(to.Add(48 * time.Hour)); day = day.AddDate(0, 0, 1) {
		y, m, dd := day.Date()
		for _, h := range hours {
			at := meant(loc, y, m, dd, h, minute)
			if !at.After(from) || at.After(to) {
				continue
			}
			list = append(list, fire{at, d.label(y, m, dd, h, minute)})
		}
	}
	return list
}

func (d written) label(y int, m time.Month, day, h, minute int) string {
	date := time.Date(y, m, day, 12, 0, 0, 0, time.UTC)
	switch d.Window {
	case "day":
		return date.Format(time.DateOnly)
	case "week":
		year, week := date.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", year, week)
	}
	return fmt.Sprintf("%sT%02d:%02d", date.Format(time.DateOnly), h, minute)
}

// meant is the instant of a wall-clock time: the first of two, and the end of the gap where there is none. Clocks change at full
// quarters of an hour.
func meant(loc *time.Location, y int, m time.Month, d, h, minute int) time.Time {
	want := time.Date(y, m, d, h, minute, 0, 0, time.UTC)
	reached := func(at time.Time) bool { // the wall clock is not before it
		l := at.In(loc)
		return !time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC).Before(want)
	}
	const quarter = 15
	for at := want.Add(-15 * time.Hour).Truncate(quarter * time.Minute); at.Before(want.Add(15 * time.Hour)); at = at.Add(quarter * time.Minute) {
		if !reached(at.Add((quarter - 1) * time.Minute)) {
			continue
		}
		for !reached(at) {
			at = at.Add(time.Minute)
		}
		return at
	}
	panic("sim: no such time: " + want.String())
}
