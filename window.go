package daybook

import "time"

// WindowKind says which business period a fire of a schedule answers for. The zero value lets the schedule decide: see
// DefaultWindow of package calendar.
type WindowKind string

// The kinds of window. Labels in brackets.
const (
	Day             WindowKind = "day"              // the nominal date of the fire (2026-10-26)
	PreviousDay     WindowKind = "previous-day"     // the date before
	Week            WindowKind = "week"             // the ISO 8601 week of the nominal date (2026-W43)
	PreviousWeek    WindowKind = "previous-week"    // the week before
	Month           WindowKind = "month"            // the month of the nominal date (2026-10)
	PreviousMonth   WindowKind = "previous-month"   // the month before
	Quarter         WindowKind = "quarter"          // the quarter of the nominal date (2026-Q4)
	PreviousQuarter WindowKind = "previous-quarter" // the quarter before
	Year            WindowKind = "year"             // the year of the nominal date (2026)
	PreviousYear    WindowKind = "previous-year"    // the year before
	PerFire         WindowKind = "fire"             // each fire: nominal local time (2026-03-08T02:00) or, for intervals, the UTC instant (2026-10-25T01:00Z)
	PerEvent        WindowKind = "event"            // each event: its id, encoded like a subject
)

// WindowKinds lists all kinds, in the order of the documentation.
var WindowKinds = []WindowKind{Day, PreviousDay, Week, PreviousWeek, Month, PreviousMonth, Quarter, PreviousQuarter, Year, PreviousYear, PerFire, PerEvent}

// Window is the business period one run answers for.
type Window struct {
	Label string    // the part of the key: 2026-10-26, 2026-W43, 2026-10, 2026-Q4, 2026, 2026-03-08T02:00, 2026-10-25T01:00Z, an event id
	Date  string    // the business date: the first local date of the window, YYYY-MM-DD
	Start time.Time // the first instant, UTC
	End   time.Time // the first instant after, UTC
}

// BusinessDays says what happens to a fire on a day off of the job's calendar.
type BusinessDays string

// What happens to a fire on a day off. The zero value ignores days off.
const (
	BusinessSkip     BusinessDays = "skip"     // it does not fire; the window is a row: skipped, day off
	BusinessNext     BusinessDays = "next"     // it fires on the next working day; the key does not move
	BusinessPrevious BusinessDays = "previous" // it fires on the working day before; the key does not move
)

// ClockGap says what happens to a wall-clock time that does not exist because the clock goes forward.
type ClockGap string

// ClockRepeat says which of two equal wall-clock times counts when the clock goes back.
type ClockRepeat string

// Clock changes.
const (
	GapShift    ClockGap    = "shift" // fires once, at the first instant after the gap (the default)
	GapSkip     ClockGap    = "skip"  // does not fire; the window is a row: skipped, clock gap
	RepeatFirst ClockRepeat = "first" // fires in the first pass (the default)
	RepeatLast  ClockRepeat = "last"  // fires in the second pass
)

// FireNote marks a fire that clock or calendar changed.
type FireNote string

// Notes on fires.
const (
	NoteGap    FireNote = "gap"    // the nominal time does not exist; fired at the end of the gap
	NoteRepeat FireNote = "repeat" // the nominal time occurs twice
	NoteMoved  FireNote = "moved"  // moved off a day off by business_days
)

// Fire is one moment of a schedule: when, and for which window.
type Fire struct {
	At      time.Time // the instant, UTC; for a skipped fire the instant at which it would have been decided
	Nominal string    // the wall-clock time that was asked for (2026-03-29T02:30), or the UTC instant of an interval; unique within a job
	Window  Window
	Note    FireNote
	Skip    Reason // not empty: it does not fire, for this reason (ReasonClockGap, ReasonDayOff)
}
