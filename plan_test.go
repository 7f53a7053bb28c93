package daybook

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What becomes of windows that are due. The windows are days of October 2026, whose fire is at 02:00Z; now is the 9th,
// 03:00Z. In a column of windows "m" is missed, "o" too old, "d" a day off, "g" a clock gap, and x3 stands for three fires.
// In the column of the ledger a number with a state is a window that is known, "live" says that another run is live,
// "waiting" that it has not begun.
//
// A row is its window, state, reason, +when after now it is due when that is not its fire, and how its fires are answered.
const planned = `
# job                   | ledger              | windows        | rows
catch_up                |                     | 9              | 9 scheduled: started
catch_up                |                     | 8m 9           | 8 scheduled missed +0s: started; 9 scheduled: started
catch_up                |                     | 6m 7m 8m 9     | 6 scheduled missed +0s: started; 7 scheduled missed +1m: started; 8 scheduled missed +2m: started; 9 scheduled: started
catch_up gap=10m        |                     | 6m 7m 8m       | 6 scheduled missed +0s: started; 7 scheduled missed +10m: started; 8 scheduled missed +20m: started
catch_up gap=-1s        |                     | 7m 8m          | 7 scheduled missed +0s: started; 8 scheduled missed +0s: started
catch_up                |                     | 5o 6o 7m 9     | 7 scheduled missed +0s: started; 9 scheduled: started; span 5-6 too old 2; told
catch_up                |                     | 5o 7m          | 5 skipped too old: refused; 7 scheduled missed +0s: started; told
skip                    |                     | 6m 7m 8m 9     | 9 scheduled: started; span 6-8 missed 3; told
skip                    |                     | 8m             | 8 skipped missed: refused; told
skip                    |                     | 5o 6o 7m 8m 9  | 9 scheduled: started; span 5-6 too old 2; span 7-8 missed 2; told; told
coalesce                |                     | 9              | 9 scheduled: started
coalesce                |                     | 6m 7m 8m       | 6 coalesced covered by 8: joined; 7 coalesced covered by 8: joined; 8 scheduled missed +0s covers 6-8: started
coalesce                |                     | 7m 8m 9        | 7 coalesced covered by 9: joined; 8 coalesced covered by 9: joined; 9 scheduled covers 7-9: started
coalesce                |                     | 5o 6o 7m 9     | 7 coalesced covered by 9: joined; 9 scheduled covers 7-9: started; span 5-6 too old 2; told

# Days off and gaps are rows; they end a span of others.
catch_up                |                     | 7d 8g 9        | 7 skipped day off: refused; 8 skipped clock gap: refused; 9 scheduled: started
catch_up                |                     | 6d 7d 9        | 9 scheduled: started; span 6-7 day off 2
skip                    |                     | 5m 6m 7d 8m    | 7 skipped day off: refused; 8 skipped missed: refused; span 5-6 missed 2; told; told
coalesce                |                     | 6m 7d 8m       | 6 coalesced covered by 8: joined; 7 skipped day off: refused; 8 scheduled missed +0s covers 6-8: started
catch_up                |                     | 4do            | 4 skipped day off: refused

# Paused: rows with a reason, never missed, nobody is told.
catch_up                | paused              | 9              | 9 skipped paused: refused
catch_up                | paused              | 6m 7m 9        | span 6-9 paused 3
coalesce                | paused              | 8m 9           | span 8-9 paused 2
catch_up                | paused 8=done       | 8 9            | 8 known: reused; 9 skipped paused: refused

# A window asked for several times.
catch_up                |                     | 9x3            | 9 scheduled: started,joined,joined
catch_up                | 9=running           | 9x2            | 9 known: joined,joined
catch_up                | 9=done              | 9x2            | 9 known: reused,reused
catch_up                | 9=dead              | 9x2            | 9 known: refused,refused
catch_up                | 9=dismissed         | 9              | 9 known: reused
catch_up                | 9=cancelled         | 9              | 9 known: refused
catch_up                | 9=skipped           | 9              | 9 known: reused
catch_up                | 9=coalesced         | 9              | 9 known: reused
catch_up                | 9=retryable         | 9              | 9 known: joined
skip                    |                     | 8mx2           | 8 skipped missed: refused,reused; told
catch_up                | paused              | 9x2            | 9 skipped paused: refused,reused
coalesce                |                     | 8mx2 9x2       | 8 coalesced covered by 9: joined,reused; 9 scheduled covers 8-9: started,joined
catch_up                | 7=done              | 6m 7 8m        | 6 scheduled missed +0s: started; 7 known: reused; 8 scheduled missed +1m: started

# Overlap.
catch_up                | live                | 9              | 9 scheduled: started
catch_up overlap=allow  | live                | 8m 9           | 8 scheduled missed +0s: started; 9 scheduled: started
catch_up overlap=skip   | live                | 9              | 9 skipped overlap: refused
catch_up overlap=skip   |                     | 9              | 9 scheduled: started
catch_up overlap=skip   |                     | 8m 9           | 8 scheduled missed +0s: started; 9 skipped overlap: refused
coalesce overlap=skip   | live                | 8m 9           | span 8-9 overlap 2
coalesce overlap=skip   | live waiting        | 9              | 9 skipped overlap: refused
coalesce                | live                | 9              | 9 scheduled: started
# One that waits takes in those that come.
coalesce                | live waiting        | 9              | 9 coalesced covered by 1: joined; 1 now ends 10
coalesce                | live waiting        | 7m 8m 9x2      | 7 coalesced covered by 1: joined; 8 coalesced covered by 1: joined; 9 coalesced covered by 1: joined,reused; 1 now ends 10
coalesce                | live waiting 9=done | 9              | 9 known: reused
catch_up                | live waiting        | 9              | 9 scheduled: started

# Work that lasts long skips what it missed.
skip long               | live                | 8m 9           | 8 skipped missed: refused; 9 skipped overlap: refused; told
# Starts are spread, fixed per key; the nominal start does not move.
catch_up jitter=30m     |                     | 9              | 9 scheduled -48m47.968946s: started
catch_up jitter=30m     |                     | 8m             | 8 scheduled missed +0s: started
catch_up jitter=3h      |                     | 9              | 9 scheduled +7m12.186329s: started
`

var ninth = time.Date(2026, 10, 9, 3, 0, 0, 0, time.UTC)

func TestPlans(t *testing.T) {
	eachLine(t, planned, 4, func(t *testing.T, cells []string) {
		p := &Plan{Job: planJob(t, cells[0]), Revision: 7, Source: SourceSchedule, TZData: "2026a"}
		facts := Facts{Existing: map[Key]Standing{}}
		for word := range strings.FieldsSeq(cells[1]) {
			switch day, state, known := strings.Cut(word, "="); {
			case known:
				s := Standing{Exists: true, State: State(state), Effects: Repeatable}
				switch state {
				case "dead":
					s.LetterKind, s.LetterState = LetterFailed, LetterOpen
				case "dismissed":
					s.State, s.LetterKind, s.LetterState = Dead, LetterFailed, LetterDismissed
				}
				facts.Existing[Key("report:"+october(number(t, day)).Label)] = s
			case word == "paused":
				facts.Paused = true
			case word == "live":
				facts.LiveRun = true
			case word == "waiting":
				facts.Waiting = "report:2026-10-01"
			default:
				t.Fatalf("unknown word %q", word)
			}
		}
		for word := range strings.FieldsSeq(cells[2]) {
			p.Windows = append(p.Windows, plannedWindow(t, word))
		}
		rows := p.Rows(facts, ninth)
		if got := rowsText(p, rows); got != cells[3] {
			t.Errorf("\ngot  %s\nwant %s", got, cells[3])
		}
		for _, fault := range rowFaults(p, facts, rows) {
			t.Error(fault)
		}
	})
}

func planJob(t *testing.T, words string) *Job {
	j := Job{Name: "report", Owner: "ops", Timezone: "UTC", Schedule: "0 2 * * *", Window: Day}
	for word := range strings.FieldsSeq(words) {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "catch_up", "coalesce", "skip":
			j.Missed = Missed(name)
		case "long":
			j.Work = Long
		case "overlap":
			j.Overlap = Overlap(value)
		case "gap":
			j.CatchupGap = duration(t, value)
		case "jitter":
			j.Jitter = duration(t, value)
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
	j = j.WithDefaults(24*time.Hour, 24*time.Hour)
	return &j
}

func october(day int) Window {
	start := time.Date(2026, 10, day, 0, 0, 0, 0, time.UTC)
	return Window{Label: start.Format(time.DateOnly), Date: start.Format(time.DateOnly), Start: start, End: start.AddDate(0, 0, 1)}
}

func plannedWindow(t *testing.T, word string) PlannedWindow {
	word, times, several := strings.Cut(word, "x")
	fires := 1
	if several {
		fires = number(t, times)
	}
	marks := strings.TrimLeft(word, "0123456789")
	w := PlannedWindow{Window: october(number(t, strings.TrimSuffix(word, marks)))}
	w.FireAt = w.Window.Start.Add(2 * time.Hour)
	w.Last = w.FireAt.Add(time.Duration(fires-1) * time.Minute)
	for i := range fires {
		w.Fires = append(w.Fires, w.FireAt.Add(time.Duration(i)*time.Minute).Format("2006-01-02T15:04"))
	}
	for _, mark := range marks {
		switch mark {
		case 'm':
			w.Missed = true
		case 'o':
			w.Missed, w.TooOld = true, true
		case 'd':
			w.Skip = ReasonDayOff
		case 'g':
			w.Skip = ReasonClockGap
		}
	}
	return w
}

// rowsText writes decided rows as the table has them.
func rowsText(p *Plan, rows Rows) string {
	day := func(label string) string { return strings.TrimLeft(label[max(len(label)-2, 0):], "0") }
	var parts []string
	for _, w := range p.Windows {
		key := Key(p.Job.Name + ":" + w.Window.Label)
		text := "known"
		made := false
		for _, r := range rows.Runs {
			if r.Key != key {
				continue
			}
			made = true
			text = string(r.State)
			if r.Reason != "" {
				text += " " + string(r.Reason)
			}
			if r.CoveredBy != "" {
				text += " " + day(string(r.CoveredBy))
			}
			if r.State == Scheduled && !r.Due.Equal(w.FireAt) {
				text += " " + short(r.Due.Sub(ninth))
			}
			if days := int(r.Cover.End.Sub(r.Cover.Start).Hours() / 24); days > 1 {
				text += fmt.Sprintf(" covers %s-%d", day(r.Cover.Start.Format(time.DateOnly)), r.Cover.End.Day()-1)
			}
		}
		var answers []string
		for _, g := range rows.Triggers {
			if g.Key == key {
				answers = append(answers, string(g.Outcome))
			}
		}
		if made || len(answers) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s: %s", day(w.Window.Label), text, strings.Join(answers, ",")))
		}
	}
	for _, s := range rows.Spans {
		parts = append(parts, fmt.Sprintf("span %s-%s %s %d", day(s.FromLabel), day(s.ToLabel), s.Reason, s.Count))
	}
	if rows.Extend != "" {
		parts = append(parts, fmt.Sprintf("%s now ends %d", day(string(rows.Extend)), rows.ExtendBy.End.Day()))
	}
	for range rows.Alerts {
		parts = append(parts, "told")
	}
	return strings.Join(parts, "; ")
}

// rowFaults returns what no decided plan may be: every window is accounted for exactly once.
func rowFaults(p *Plan, f Facts, rows Rows) (faults []string) {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	made := map[Key]*Run{}
	for _, r := range rows.Runs {
		if made[r.Key] != nil {
			bad("%s is made twice", r.Key)
		}
		made[r.Key] = r
		if r.Revision != p.Revision || r.TZData != p.TZData || r.Job != p.Job.Name || r.CreatedAt != ninth || r.Fire == "" {
			bad("%+v", r)
		}
		if (r.State == Coalesced) != (r.CoveredBy != "") {
			bad("%s is %s, covered by %q", r.Key, r.State, r.CoveredBy)
		}
		if (r.State == Scheduled) != (r.Due.Sub(r.NotBefore) >= 0 && r.State == Scheduled) {
			bad("%s is due before its nominal start", r.Key)
		}
	}
	spanned := 0
	for _, s := range rows.Spans {
		spanned += s.Count
		if s.Revision != p.Revision || s.DecidedAt != ninth || s.From.After(s.To) || s.Reason == "" {
			bad("%+v", s)
		}
	}
	answers := map[Key]int{}
	for _, g := range rows.Triggers {
		answers[g.Key]++
		if g.Fire == "" || g.At != ninth || g.Job != p.Job.Name {
			bad("%+v", g)
		}
	}
	left := 0
	for _, w := range p.Windows {
		key := Key(p.Job.Name + ":" + w.Window.Label)
		_, known := f.Existing[key]
		switch r := made[key]; {
		case known && r != nil:
			bad("%s is known and made", key)
		case !known && r == nil:
			left++
			continue
		case r != nil:
			source := p.Source
			if w.Missed {
				source = SourceCatchup
			}
			if r.FirstSource != source || r.Triggers != len(w.Fires) || r.Fire != w.Fires[0] {
				bad("%s came by %s with %d fires", key, r.FirstSource, r.Triggers)
			}
			if covering := made[r.CoveredBy]; r.CoveredBy != "" && r.CoveredBy != f.Waiting && (covering == nil || covering.State != Scheduled || covering.Cover.End.Before(w.Window.End)) {
				bad("%s is covered by %s, which does not", key, r.CoveredBy)
			}
		}
		if answers[key] != len(w.Fires) {
			bad("%d of %d fires of %s are answered", answers[key], len(w.Fires), key)
		}
	}
	if left != spanned {
		bad("%d windows have no row, and %d lie in spans", left, spanned)
	}
	return faults
}

// Any mixture of windows and facts is accounted for.
func TestEveryWindowIsAccountedFor(t *testing.T) {
	marks := []string{"", "m", "o", "d", "g", "do", "x2", "mx2"}
	facts := []string{"", "live", "live waiting", "paused"}
	for _, job := range []string{"catch_up", "coalesce", "skip", "catch_up overlap=skip", "coalesce overlap=skip", "skip overlap=allow", "skip long"} {
		for _, fact := range facts {
			for n := range len(marks) * len(marks) * len(marks) {
				p := &Plan{Job: planJob(t, job), Revision: 7, Source: SourceSchedule, TZData: "2026a"}
				f := Facts{Existing: map[Key]Standing{}, Paused: fact == "paused", LiveRun: strings.HasPrefix(fact, "live")}
				if strings.HasSuffix(fact, "waiting") {
					f.Waiting = "report:2026-10-01"
				}
				for i, d := 0, n; i < 3; i, d = i+1, d/len(marks) {
					w := plannedWindow(t, strconv.Itoa(6+i)+marks[d%len(marks)])
					p.Windows = append(p.Windows, w)
					if n%5 == i {
						f.Existing[Key("report:"+w.Window.Label)] = Standing{Exists: true, State: States[n%len(States)]}
					}
				}
				if faults := rowFaults(p, f, p.Rows(f, ninth)); len(faults) > 0 {
					t.Fatalf("%s, %s, %d: %s", job, fact, n, strings.Join(faults, "; "))
				}
			}
		}
	}
}

// minutes returns the windows of a job that fires every minute, all missed, the first at the given instant.
func minutes(first time.Time, n int) []PlannedWindow {
	windows := make([]PlannedWindow, n)
	for i := range windows {
		at := first.Add(time.Duration(i) * time.Minute)
		label := at.Format("2006-01-02T15:04Z")
		windows[i] = PlannedWindow{Window: Window{Label: label, Date: at.Format(time.DateOnly), Start: at, End: at.Add(time.Minute)},
			Fires: []string{label}, FireAt: at, Last: at, Missed: true}
	}
	return windows
}

func states(rows Rows) map[State]int {
	n := map[State]int{}
	for _, r := range rows.Runs {
		n[r.State]++
	}
	return n
}

// Ten hours down, a fire a minute: 600 windows are decided by the policy of the job.
func TestH23TooManyMissedStarts(t *testing.T) {
	now := time.Date(2026, 10, 26, 10, 0, 30, 0, time.UTC)
	first := now.Add(-10 * time.Hour).Truncate(time.Minute).Add(time.Minute)
	plan := func(m Missed, tooOld int) Rows {
		j := Job{Name: "poll", Owner: "ops", Timezone: "UTC", Schedule: "* * * * *", Window: PerFire, Missed: m}.WithDefaults(time.Minute, time.Minute)
		p := &Plan{Job: &j, Revision: 1, Source: SourceSchedule, From: now.Add(-10 * time.Hour), To: now, Windows: minutes(first, 600)}
		for i := range tooOld {
			p.Windows[i].TooOld = true
		}
		return p.Rows(Facts{}, now)
	}
	t.Run("skip", func(t *testing.T) {
		rows := plan(SkipMissed, 0)
		if len(rows.Runs) != 0 || len(rows.Spans) != 1 || len(rows.Alerts) != 1 {
			t.Fatalf("%d runs, %d spans, %d alerts", len(rows.Runs), len(rows.Spans), len(rows.Alerts))
		}
		s := rows.Spans[0]
		if s.Count != 600 || s.Reason != ReasonMissed || !s.From.Equal(first) || !s.To.Equal(first.Add(599*time.Minute)) {
			t.Errorf("%+v", s)
		}
	})
	t.Run("latest", func(t *testing.T) {
		rows := plan(Coalesce, 0)
		if n := states(rows); n[Scheduled] != 1 || n[Coalesced] != 599 || len(rows.Runs) != 600 || len(rows.Spans) != 0 {
			t.Fatalf("%v, %d spans", n, len(rows.Spans))
		}
		newest := rows.Runs[599]
		if newest.State != Scheduled || !newest.Due.Equal(now) || !newest.Cover.Start.Equal(first) || !newest.Cover.End.Equal(first.Add(600*time.Minute)) {
			t.Errorf("%+v", newest)
		}
		for _, r := range rows.Runs[:599] {
			if r.CoveredBy != newest.Key || r.Reason != ReasonCovered {
				t.Fatalf("%+v", r)
			}
		}
	})
	t.Run("all, 50 minutes back", func(t *testing.T) {
		rows := plan(CatchUp, 550)
		if n := states(rows); n[Scheduled] != 50 || len(rows.Runs) != 50 || len(rows.Spans) != 1 {
			t.Fatalf("%v, %d spans", n, len(rows.Spans))
		}
		if s := rows.Spans[0]; s.Count != 550 || s.Reason != ReasonTooOld || !s.To.Equal(first.Add(549*time.Minute)) {
			t.Errorf("%+v", s)
		}
		for i, r := range rows.Runs {
			if want := now.Add(time.Duration(i) * DefaultGap); !r.Due.Equal(want) || !r.Window.Start.Equal(first.Add(time.Duration(550+i)*time.Minute)) || r.Line != "poll" {
				t.Fatalf("%d of 50: %s due %s, want %s", i, r.Key, r.Due, want)
			}
		}
	})
}

// Down over the minute of the fire: it runs when up again, late by three minutes, under the key of its date.
func TestH24RestartLosesTheDueMinute(t *testing.T) {
	now := time.Date(2026, 10, 26, 15, 3, 0, 0, time.UTC)
	j := Job{Name: "daily", Owner: "ops", Timezone: "UTC", Schedule: "daily 15:00", Window: Day, Missed: Coalesce}.WithDefaults(24*time.Hour, 24*time.Hour)
	fire := now.Add(-3 * time.Minute)
	p := &Plan{Job: &j, Revision: 1, Source: SourceSchedule, From: now.Add(-6 * time.Minute), To: now,
		Windows: []PlannedWindow{{Window: october(26), Fires: []string{"2026-10-26T15:00"}, FireAt: fire, Last: fire}}}
	rows := p.Rows(Facts{}, now)
	if len(rows.Runs) != 1 {
		t.Fatalf("%d runs", len(rows.Runs))
	}
	if r := rows.Runs[0]; r.Key != "daily:2026-10-26" || r.State != Scheduled || r.Due.After(now) || now.Sub(r.NotBefore) != 3*time.Minute {
		t.Errorf("%+v", r)
	}
}

// 47 minutes asleep, a fire a minute, the default policy: one run catches up.
func TestH26BurstAfterSleep(t *testing.T) {
	now := time.Date(2026, 10, 26, 9, 47, 0, 0, time.UTC)
	j := Job{Name: "tick", Owner: "ops", Timezone: "UTC", Schedule: "every 1m", Window: PerFire}.WithDefaults(time.Minute, time.Minute)
	if j.Missed != Coalesce {
		t.Fatalf("the default below a day is %s", j.Missed)
	}
	windows := minutes(time.Date(2026, 10, 26, 9, 1, 0, 0, time.UTC), 47)
	windows[46].Missed = false // the fire of this very minute
	p := &Plan{Job: &j, Revision: 1, Source: SourceSchedule, Windows: windows}
	if n := states(p.Rows(Facts{}, now)); n[Scheduled] != 1 || n[Coalesced] != 46 {
		t.Errorf("%v", n)
	}
}

// A body of three and a half minutes, a fire a minute, for ten minutes.
func TestH27RunPileUp(t *testing.T) {
	start := time.Date(2026, 10, 26, 9, 0, 0, 0, time.UTC)
	play := func(o Overlap, m Missed) (started, skipped, coalesced, most int) {
		j := Job{Name: "tick", Owner: "ops", Timezone: "UTC", Schedule: "every 1m", Window: PerFire, Overlap: o, Missed: m}.WithDefaults(time.Minute, time.Minute)
		var waiting []*Run
		var busyUntil time.Time
		for i := range 10 {
			now := start.Add(time.Duration(i) * time.Minute)
			w := minutes(now, 1)
			w[0].Missed = false
			begin := func() {
				if len(waiting) > 0 && !busyUntil.After(now) {
					started++
					waiting, busyUntil = waiting[1:], now.Add(210*time.Second)
				}
			}
			begin()
			f := Facts{LiveRun: busyUntil.After(now) || len(waiting) > 0}
			if len(waiting) > 0 {
				f.Waiting = waiting[0].Key
			}
			rows := (&Plan{Job: &j, Revision: 1, Source: SourceSchedule, Windows: w}).Rows(f, now)
			for _, r := range rows.Runs {
				switch r.State {
				case Scheduled:
					waiting = append(waiting, r)
				case Skipped:
					skipped++
				case Coalesced:
					coalesced++
				}
			}
			begin()
			most = max(most, len(waiting))
		}
		return started, skipped, coalesced, most
	}
	if started, skipped, _, waiting := play(OverlapSkip, SkipMissed); started != 3 || skipped != 7 || waiting != 0 {
		t.Errorf("overlap: skip: %d runs, %d skipped, %d waiting", started, skipped, waiting)
	}
	if started, skipped, coalesced, waiting := play(OverlapWait, Coalesce); started != 3 || skipped != 0 || waiting != 1 || coalesced == 0 {
		t.Errorf("overlap: wait, missed: coalesce: %d runs, %d skipped, %d coalesced, at most %d waiting", started, skipped, coalesced, waiting)
	}
}

// Late is late, not lost.
func TestH30OneSecondGrace(t *testing.T) {
	fire := time.Date(2026, 10, 26, 0, 30, 0, 0, time.UTC)
	plan := func(m Missed, late time.Duration) Rows {
		j := Job{Name: "report", Owner: "ops", Timezone: "UTC", Schedule: "daily 00:30", Window: Day, Missed: m, MissedAfter: 10 * time.Minute}.WithDefaults(24*time.Hour, 24*time.Hour)
		w := PlannedWindow{Window: october(26), Fires: []string{"2026-10-26T00:30"}, FireAt: fire, Last: fire, Missed: late > j.MissedAfter}
		return (&Plan{Job: &j, Revision: 1, Source: SourceSchedule, Windows: []PlannedWindow{w}}).Rows(Facts{}, fire.Add(late))
	}
	for _, c := range []struct {
		missed Missed
		late   time.Duration
		state  State
		reason Reason
		alerts int
	}{
		{SkipMissed, 1776 * time.Millisecond, Scheduled, ReasonNone, 0},
		{SkipMissed, 11 * time.Minute, Skipped, ReasonMissed, 1},
		{"", 11 * time.Minute, Scheduled, ReasonMissed, 0},
	} {
		rows := plan(c.missed, c.late)
		if len(rows.Runs) != 1 || rows.Runs[0].State != c.state || rows.Runs[0].Reason != c.reason || len(rows.Alerts) != c.alerts {
			t.Errorf("%+v: %+v, %d alerts", c, rows.Runs[0], len(rows.Alerts))
		}
		for _, a := range rows.Alerts {
			if a.Kind != AlertJobLate || a.Key != "report:2026-10-26" || !strings.Contains(a.LastError, "missed") {
				t.Errorf("%+v", a)
			}
		}
	}
}

// Killed at every try: the third loss in a row is a dead letter, which is not live and so does not block the next window.
func TestH34DuplicateAfterARestartInMidRun(t *testing.T) {
	r := runFrom(t, "repeatable")
	for i := range MaxLosses {
		m := r.Next(Outcome{Result: ResultLost}, policyFrom(t, ""), noon)
		if last := i == MaxLosses-1; last != (m.To == Dead) || m.Failures != 0 {
			t.Fatalf("loss %d: %s", i+1, moveText(m))
		}
		r.Losses, r.State = m.Losses, Running
		if m.To == Dead && m.To.Live() {
			t.Error("dead is live")
		}
	}
	p := &Plan{Job: planJob(t, "catch_up"), Revision: 7, Source: SourceSchedule, TZData: "2026a", Windows: []PlannedWindow{plannedWindow(t, "9")}}
	if rows := p.Rows(Facts{Existing: map[Key]Standing{"report:2026-10-08": {Exists: true, State: Dead}}}, ninth); len(rows.Runs) != 1 {
		t.Errorf("%d rows for the next window", len(rows.Runs))
	}
}

func TestNewRun(t *testing.T) {
	j := planJob(t, "catch_up")
	r := NewRun(j, 3, october(9), 2, "sub_42", ninth)
	if r.Key != "report:2026-10-09~2/sub_42" || r.Line != "report" || r.State != Scheduled || r.Lane != LaneLive || r.Revision != 3 {
		t.Errorf("%+v", r)
	}
	for _, words := range []string{"catch_up overlap=allow", "catch_up overlap=skip"} {
		if r := NewRun(planJob(t, words), 3, october(9), 1, "", ninth); r.Line != "" {
			t.Errorf("%s: a line %q", words, r.Line)
		}
	}
	event := Job{Name: "welcome", Window: PerEvent}.WithDefaults(0, 0)
	if r := NewRun(&event, 1, Window{Label: "u_9"}, 1, "", ninth); r.Line != "" || r.Key != "welcome:u_9" {
		t.Errorf("%+v", r)
	}
}
