package alert

import (
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// watch is a job in Amsterdam that was first seen on 1 March 2026.
func watch(t *testing.T, schedule string, change ...func(*daybook.Job)) *Watched {
	t.Helper()
	j := daybook.Job{Name: "j", Owner: "ops", Schedule: schedule, Timezone: "Europe/Amsterdam", Command: daybook.Command{Argv: []string{"true"}}}
	for _, c := range change {
		c(&j)
	}
	j, s, err := calendar.Complete(j, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := at("2026-03-01T00:00:00Z")
	return &Watched{Job: &j, Schedule: s, State: daybook.JobState{Name: "j", FirstSeen: seen, Since: seen}}
}

func TestSilent(t *testing.T) {
	p0 := func(j *daybook.Job) { j.Priority, j.Effects = daybook.P0, daybook.Repeatable }
	limit := func(d time.Duration) func(*daybook.Job) {
		return func(j *daybook.Job) { j.Expect.MaxSilence = d }
	}
	for _, c := range []struct {
		says     string
		schedule string
		change   []func(*daybook.Job)
		good     string // the last good window
		state    func(*Watched)
		now      string
		silent   bool
	}{
		// P1, daily: two distances, so one fire may be missed, and the second one's day has passed.
		{"a good window yesterday", "0 2 * * *", nil, "2026-03-10", nil, "2026-03-11T12:00:00Z", false},
		{"one window failed", "0 2 * * *", nil, "2026-03-10", nil, "2026-03-12T00:00:00Z", false},
		{"silent for two distances", "0 2 * * *", nil, "2026-03-10", nil, "2026-03-12T01:30:00Z", true},
		{"P0: a distance and two hours", "0 2 * * *", []func(*daybook.Job){p0}, "2026-03-10", nil, "2026-03-11T02:59:00Z", false},
		{"P0: beyond", "0 2 * * *", []func(*daybook.Job){p0}, "2026-03-10", nil, "2026-03-11T03:01:00Z", true},
		{"a limit of its own", "0 2 * * *", []func(*daybook.Job){limit(30 * time.Hour)}, "2026-03-10", nil, "2026-03-11T07:01:00Z", true},
		{"never good, just seen", "0 2 * * *", nil, "", nil, "2026-03-02T00:00:00Z", false},
		{"never good", "0 2 * * *", nil, "", nil, "2026-03-03T02:00:00Z", true},
		{"a weekend without fires", "0 2 * * 1-5", nil, "2026-03-06", nil, "2026-03-09T12:00:00Z", false},
		{"silent from Monday on", "0 2 * * 1-5", nil, "2026-03-06", nil, "2026-03-10T02:00:00Z", true},
		{"a backfill of the past does not end it", "0 2 * * *", nil, "2026-01-15", nil, "2026-03-11T12:00:00Z", true},
		{"nor does it begin it", "0 2 * * *", nil, "2026-03-10", func(w *Watched) { w.LastGood.EndedAt = at("2026-03-01T00:00:00Z") }, "2026-03-11T12:00:00Z", false},
		{"paused", "0 2 * * *", nil, "2026-03-01", func(w *Watched) { w.State.Paused = true }, "2026-03-20T00:00:00Z", false},
		{"resumed a while ago", "0 2 * * *", nil, "2026-03-01", func(w *Watched) { w.State.PausedAt = at("2026-03-19T12:00:00Z") }, "2026-03-20T12:00:00Z", false},
		{"resumed long ago", "0 2 * * *", nil, "2026-03-01", func(w *Watched) { w.State.PausedAt = at("2026-03-09T12:00:00Z") }, "2026-03-20T12:00:00Z", true},
		{"changed a while ago", "0 2 * * *", nil, "2026-03-01", func(w *Watched) { w.State.Since = at("2026-03-19T12:00:00Z") }, "2026-03-20T12:00:00Z", false},
		{"retired", "0 2 * * *", nil, "2026-03-01", func(w *Watched) { w.State.RetiredAt = at("2026-03-02T00:00:00Z") }, "2026-03-20T00:00:00Z", false},
		{"run by a crontab", "0 2 * * *", nil, "2026-03-01", func(w *Watched) { w.State.Home = daybook.HomeOnce }, "2026-03-20T00:00:00Z", false},
		{"without schedule", "", nil, "2026-03-01", func(w *Watched) { w.Schedule = nil }, "2026-03-20T00:00:00Z", false},
		{"long work says it by its progress", "0 2 * * *", []func(*daybook.Job){func(j *daybook.Job) { j.Work = daybook.Long }}, "2026-03-01", nil, "2026-03-20T00:00:00Z", false},
		{"a freeze counts as nothing", "0 2 * * *", nil, "2026-03-10", func(w *Watched) {
			w.Frozen = []daybook.Bounds{{Start: at("2026-03-11T00:00:00Z"), End: at("2026-03-11T12:00:00Z")}}
		}, "2026-03-12T11:59:00Z", false},
		{"but no more than it lasted", "0 2 * * *", nil, "2026-03-10", func(w *Watched) {
			w.Frozen = []daybook.Bounds{{Start: at("2026-03-11T00:00:00Z"), End: at("2026-03-11T12:00:00Z")}}
		}, "2026-03-12T12:00:00Z", true},
		{"across a clock change", "30 2 * * *", []func(*daybook.Job){p0}, "2026-03-28", nil, "2026-03-29T02:50:00Z", false},
		{"and silent behind it", "30 2 * * *", []func(*daybook.Job){p0}, "2026-03-28", nil, "2026-03-29T03:31:00Z", true},
	} {
		w := watch(t, c.schedule, c.change...)
		if c.good != "" {
			w.LastGood.Key = daybook.Key("j:" + c.good)
		}
		if c.state != nil {
			c.state(w)
		}
		a := Silent(w, at(c.now))
		if (a != nil) != c.silent {
			t.Errorf("%s: silent %v, want %v", c.says, a != nil, c.silent)
		}
		if a != nil && (a.Kind != JobSilent || a.Key != "" || a.LastGood != c.good) {
			t.Errorf("%s: %+v", c.says, a)
		}
	}
}

// H67: a job that fires from six to eleven owes nothing at night, also in the week in which the clocks go forward.
func TestANightWithoutFiresIsNoSilence(t *testing.T) {
	w := watch(t, "*/5 6-22 * * *", func(j *daybook.Job) { j.Expect.Grace, j.Expect.MaxSilence = 15*time.Minute, 15*time.Minute })
	w.State.FirstSeen = at("2026-03-24T00:00:00Z")
	var last daybook.Fire
	raised := 0
	next, _ := w.Schedule.(*calendar.Schedule).Next(w.State.FirstSeen)
	for now := w.State.FirstSeen.Add(4 * time.Minute); now.Before(at("2026-03-31T00:00:00Z")); now = now.Add(5 * time.Minute) {
		for !next.At.After(now) { // all runs are fine and take no time
			last = next
			next, _ = w.Schedule.(*calendar.Schedule).Next(next.At)
		}
		if last.Window.Label != "" {
			w.LastGood.Key = daybook.KeyParts{Job: "j", Window: last.Window.Label}.Key()
			w.State.Cursor = now
		}
		if a := Silent(w, now); a != nil {
			raised++
			t.Errorf("silent at %s", now)
		}
		if keys, _ := Late(w, now); len(keys) > 0 {
			raised++
			t.Errorf("late at %s: %v", now, keys)
		}
		if raised > 3 {
			break
		}
	}
	if last.Window.Label == "" {
		t.Error("it never fired")
	}
}

func TestLate(t *testing.T) {
	run := func(date string, s daybook.State, change ...func(*daybook.Run)) *daybook.Run {
		r := &daybook.Run{Key: daybook.Key("j:" + date), Job: "j", State: s, Priority: daybook.P1, Lane: daybook.LaneLive, NotBefore: at(date + "T01:00:00Z")}
		for _, c := range change {
			c(r)
		}
		return r
	}
	p0 := func(r *daybook.Run) { r.Priority = daybook.P0 }
	tried := func(r *daybook.Run) { r.Attempts = 1 }
	hold := func(h daybook.Reason) func(*daybook.Run) { return func(r *daybook.Run) { r.Hold = h } }
	freeze := func(w *Watched) {
		w.Frozen = []daybook.Bounds{{Start: at("2026-03-10T00:50:00Z"), End: at("2026-03-10T01:20:00Z")}}
	}
	frozenNow := func(w *Watched) {
		w.Frozen = []daybook.Bounds{{Start: at("2026-03-10T00:50:00Z"), End: at("2026-03-10T02:10:00Z")}}
	}
	line := func(w *Watched) { w.State.Home = daybook.HomeOnce }
	due := func(r *daybook.Run) { r.Home, r.Due = daybook.HomeOnce, at("2026-03-10T03:00:00Z") }
	undecided := func(w *Watched) { w.State.Cursor = at("2026-03-09T12:00:00Z") }
	for _, c := range []struct {
		says  string
		runs  []*daybook.Run
		state func(*Watched)
		now   string
		want  string // the first key, empty: none
		n     int
	}{
		{"inside its grace", []*daybook.Run{run("2026-03-10", daybook.Scheduled)}, nil, "2026-03-10T01:30:00Z", "", 0},
		{"past it, not begun", []*daybook.Run{run("2026-03-10", daybook.Scheduled)}, nil, "2026-03-10T01:31:00Z", "j:2026-03-10", 1},
		{"past it, at work", []*daybook.Run{run("2026-03-10", daybook.Running, tried)}, nil, "2026-03-10T02:00:00Z", "", 0},
		{"P0, at work, not done", []*daybook.Run{run("2026-03-10", daybook.Running, tried, p0)}, nil, "2026-03-10T02:00:00Z", "j:2026-03-10", 1},
		{"on the ladder: its letter will tell", []*daybook.Run{run("2026-03-10", daybook.Retryable, tried)}, nil, "2026-03-10T02:00:00Z", "", 0},
		{"P0 on the ladder", []*daybook.Run{run("2026-03-10", daybook.Retryable, tried, p0)}, nil, "2026-03-10T02:00:00Z", "j:2026-03-10", 1},
		{"done", []*daybook.Run{run("2026-03-10", daybook.Done, tried)}, nil, "2026-03-10T02:00:00Z", "", 0},
		{"the oldest of several, newest first in the list", []*daybook.Run{run("2026-03-12", daybook.Scheduled), run("2026-03-11", daybook.Scheduled), run("2026-03-10", daybook.Scheduled)}, nil, "2026-03-12T02:00:00Z", "j:2026-03-10", 3},
		{"waits for the previous window", []*daybook.Run{run("2026-03-10", daybook.Scheduled, hold(daybook.ReasonPrevious))}, nil, "2026-03-10T02:00:00Z", "j:2026-03-10", 1},
		{"held by the clock", []*daybook.Run{run("2026-03-10", daybook.Scheduled, hold(daybook.ReasonClock))}, nil, "2026-03-10T02:00:00Z", "", 0},
		{"frozen now", []*daybook.Run{run("2026-03-10", daybook.Scheduled, hold(daybook.ReasonFrozen))}, frozenNow, "2026-03-10T02:00:00Z", "", 0},
		{"frozen once, and nobody claimed it then", []*daybook.Run{run("2026-03-10", daybook.Scheduled, hold(daybook.ReasonFrozen))}, freeze, "2026-03-10T01:51:00Z", "j:2026-03-10", 1},
		{"was frozen", []*daybook.Run{run("2026-03-10", daybook.Scheduled)}, freeze, "2026-03-10T01:50:00Z", "", 0},
		{"was frozen, and late all the same", []*daybook.Run{run("2026-03-10", daybook.Scheduled)}, freeze, "2026-03-10T01:51:00Z", "j:2026-03-10", 1},
		{"paused", []*daybook.Run{run("2026-03-10", daybook.Scheduled)}, func(w *Watched) { w.State.Paused = true }, "2026-03-10T02:00:00Z", "", 0},
		{"a backfill", []*daybook.Run{run("2026-03-10", daybook.Scheduled, func(r *daybook.Run) { r.Lane = daybook.LaneBackfill })}, nil, "2026-03-10T02:00:00Z", "", 0},
		{"a further attempt", []*daybook.Run{run("2026-03-10", daybook.Scheduled, func(r *daybook.Run) { r.Again = true })}, nil, "2026-03-10T02:00:00Z", "", 0},
		{"no scheduler decided it", nil, undecided, "2026-03-10T01:31:00Z", "j:2026-03-10", 1},
		{"a scheduler is about to", nil, undecided, "2026-03-10T01:10:00Z", "", 0},
		{"nobody may decide it", nil, func(w *Watched) { undecided(w); w.Held = true }, "2026-03-10T02:00:00Z", "", 0},
		{"only its line runs it, and does not come", []*daybook.Run{run("2026-03-10", daybook.Retryable, tried, due)}, line, "2026-03-10T03:31:00Z", "j:2026-03-10", 1},
		{"its next try is not long due", []*daybook.Run{run("2026-03-10", daybook.Retryable, tried, due)}, line, "2026-03-10T03:30:00Z", "", 0},
		{"its line is at work", []*daybook.Run{run("2026-03-10", daybook.Running, tried, due)}, line, "2026-03-11T00:00:00Z", "", 0},
		{"its line has not begun today", nil, func(w *Watched) { undecided(w); line(w) }, "2026-03-10T12:00:00Z", "", 0},
		{"decided by a trigger, cursor behind", []*daybook.Run{run("2026-03-10", daybook.Done)}, undecided, "2026-03-10T02:00:00Z", "", 0},
	} {
		w := watch(t, "0 2 * * *")
		w.Runs = c.runs
		if c.state != nil {
			c.state(w)
		}
		keys, a := Late(w, at(c.now))
		if len(keys) != c.n || (a != nil) != (c.n > 0) {
			t.Errorf("%s: %v, want %d", c.says, keys, c.n)
			continue
		}
		if a != nil && (string(a.Key) != c.want || a.Kind != daybook.AlertJobLate || a.LastError == "") {
			t.Errorf("%s: %+v, want %s", c.says, a, c.want)
		}
	}
}
