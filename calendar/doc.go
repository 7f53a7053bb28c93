// Package calendar is pure time: it says when a schedule fires, which business window each fire answers for, and what the
// clock and the calendar do to both. It holds no clock, no randomness and no state: now is always an argument, and a
// [Schedule] never changes once compiled. The scheduler, control, config and the command line call it; it calls nobody.
//
// What expressions mean:
//
//   - Civil dates come first. The day fields are matched on the date alone; only then is (date, hour, minute) resolved to
//     an instant. No instant is ever stepped through midnight, so a midnight that does not exist loses nothing.
//   - A wall-clock time (daily, weekly, monthly, quarterly, yearly, and cron lines whose hour field does not cover every
//     hour) that does not exist fires once, at the first instant after the gap (clock_gap: shift), or is a fire with Skip
//     set (skip). One that occurs twice fires the first time (clock_repeat: first) or the last.
//   - An interval (every N, hourly, cron lines whose hour field covers every hour) follows elapsed time: it fires in both
//     passes of a repeated hour and not in a missing one. Minute fields match the local wall clock; every N counts from
//     1970-01-01T00:00Z.
//   - A fire belongs to the window of its nominal date, never to the date of the instant. A fire that a gap or a day off
//     moves keeps its nominal time and so its key.
//   - A window exists only if it has an instant. Samoa had no 30 December 2011: no daily window, no fire. The week of that
//     Friday exists, so its fire comes at the end of the gap.
//   - Both day fields of a cron line restricted: either matches.
//   - Every search ends: at most eight civil years are looked at (from 29 February 1896 to that of 1904), and a schedule
//     that can never fire is refused when it is compiled.
//
// Where to find what: schedule.go (the type and its questions), search.go (the search for fires), cron.go and forms.go
// (the texts), rule.go and date.go (which dates, and civil dates themselves), label.go (windows and their labels), zone.go (zones and offset changes), days.go, csv.go and ics.go
// (business calendars), due.go (what the planner asks), describe.go (plain words).
package calendar
