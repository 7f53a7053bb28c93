package daybook

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a job means that says little: one line a kind, with what is filled in.
const defaults = `
# the job says            | distance | priority effects  | work missed overlap      | timeout | look-back | max_silence
                          | 24h      | P1 repeatable     | timed catch_up wait      | 1h      | 168h      | 48h
                          | 23h      | P1 repeatable     | timed catch_up wait      | 1h      | 168h      | 46h
                          | 1h       | P1 repeatable     | timed coalesce wait      | 1h      | 168h      | 2h
                          | 1m       | P1 repeatable     | timed coalesce wait      | 1h      | 168h      | 2m
                          | 672h     | P1 repeatable     | timed catch_up wait      | 1h      | 672h      | 1344h
                          | 672h..744h | P1 repeatable   | timed catch_up wait      | 1h      | 744h      | 1344h
                          | 1h..14h  | P1 repeatable     | timed coalesce wait      | 1h      | 168h      | 2h
                          | 35064h   | P1 repeatable     | timed catch_up wait      | 1h      | 8784h     | 70128h
                          |          | P1 repeatable     | timed catch_up wait      | 1h      | 168h      |
once                      | 24h      | P1 once           | timed catch_up wait      | 1h      | 168h      | 48h
once                      | 1h       | P1 once           | timed coalesce wait      | 1h      | 168h      | 2h
P0 repeatable             | 24h      | P0 repeatable     | timed catch_up wait      | 1h      | 168h      | 26h
P0 repeatable             | 1h       | P0 repeatable     | timed coalesce wait      | 1h      | 168h      | 3h
P0 once                   | 24h      | P0 once           | timed catch_up wait      | 1h      | 168h      | 26h
P0 once                   | 1m       | P0 once           | timed catch_up wait      | 1h      | 168h      | 2h1m
P0 once                   | 8784h    | P0 once           | timed catch_up wait      | 1h      | 8784h     | 8786h
                          | 8784h    | P1 repeatable     | timed catch_up wait      | 1h      | 8784h     | 17568h
long                      | 24h      | P1 repeatable     | long skip skip           | 0s      | 168h      | 48h
long                      | 1h       | P1 repeatable     | long skip skip           | 0s      | 168h      | 2h
long once                 | 24h      | P1 once           | long skip skip           | 0s      | 168h      | 48h
long P0 once              | 24h      | P0 once           | long catch_up wait       | 0s      | 168h      | 26h
long P0 repeatable        | 24h      | P0 repeatable     | long skip skip           | 0s      | 168h      | 26h
event                     |          | P1 repeatable     | event never wait         | 1h      | 168h      |
event P0 once             |          | P0 once           | event never wait         | 1h      | 168h      |
missed=skip overlap=allow | 24h      | P1 repeatable     | timed skip allow         | 1h      | 168h      | 48h
`

func TestDefaults(t *testing.T) {
	eachLine(t, defaults, 7, func(t *testing.T, cells []string) {
		j := Job{Name: "report", Owner: "ops", Timezone: "UTC", Schedule: "0 2 * * *", Window: Day, Steps: true}
		for word := range strings.FieldsSeq(cells[0]) {
			switch name, value, _ := strings.Cut(word, "="); name {
			case "P0":
				j.Priority = P0
			case "once", "repeatable":
				j.Effects = Effects(name)
			case "long":
				j.Work = Long
			case "event":
				j.Window, j.Schedule = PerEvent, ""
			case "missed":
				j.Missed = Missed(value)
			case "overlap":
				j.Overlap = Overlap(value)
			}
		}
		from, to, different := strings.Cut(cells[1], "..")
		if !different {
			to = from
		}
		shortest, longest := duration(t, from), duration(t, to)
		d := j.WithDefaults(shortest, longest)
		got := []string{fmt.Sprint(d.Priority, " ", d.Effects), fmt.Sprint(d.Work, " ", d.Missed, " ", d.Overlap)}
		if !slices.Equal(got, cells[2:4]) || d.Timeout != duration(t, cells[4]) || d.CatchupWindow != duration(t, cells[5]) || d.Expect.MaxSilence != duration(t, cells[6]) {
			t.Errorf("%s, timeout %s, look-back %s, silence %s", strings.Join(got, " | "), d.Timeout, d.CatchupWindow, d.Expect.MaxSilence)
		}
		if d.ClockGap != GapShift || d.ClockRepeat != RepeatFirst || d.Settles != 5*time.Minute || d.CatchupGap != time.Minute || d.Expect.Grace != 30*time.Minute ||
			!slices.Equal(d.Retry.Backoff, []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute}) || d.Retry.Jitter != 0.10 ||
			d.Jitter != 0 || d.Remembers != 0 || d.MissedAfter != 0 || d.Expect.MaxRuntime != d.Timeout {
			t.Errorf("%+v", d)
		}
		if again := d.WithDefaults(shortest, longest); !reflect.DeepEqual(again, d) {
			t.Errorf("defaults of defaults differ: %+v", again)
		}
		if faults := d.Check(); len(faults) > 0 {
			t.Errorf("the defaults do not pass the check: %s: %v", faults[0].Field, faults[0].Err)
		}
	})
}

func TestDefaultsKeepWhatIsSaid(t *testing.T) {
	j := Job{Timeout: -1, Settles: time.Minute, CatchupWindow: time.Hour, CatchupGap: -1, Retry: Retry{Backoff: []time.Duration{}, Jitter: -1},
		Expect: Expect{Grace: time.Second, MaxSilence: time.Minute, MaxRuntime: time.Hour}, ClockGap: GapSkip, ClockRepeat: RepeatLast,
		Priority: P0, Effects: Once, Work: Long, Missed: CatchUp, Overlap: OverlapAllow}
	if d := j.WithDefaults(time.Hour, time.Hour); !reflect.DeepEqual(d, j) {
		t.Errorf("%+v", d)
	}
}

func good() Job {
	return Job{Name: "renew", Owner: "ops", Timezone: "Europe/Berlin", Schedule: "0 2 * * *", Window: Day, Priority: P0, Effects: Once}
}

func TestCheck(t *testing.T) {
	j := good()
	if faults := j.Check(); len(faults) != 0 {
		t.Fatalf("%+v", faults)
	}
	for _, c := range []struct {
		name   string
		change func(*Job)
		fields string // what is told, in order
	}{
		{"no name", func(j *Job) { j.Name = "" }, "name"},
		{"a name with a capital", func(j *Job) { j.Name = "Renew" }, "name"},
		{"a long name", func(j *Job) { j.Name = strings.Repeat("x", 65) }, "name"},
		{"no owner", func(j *Job) { j.Owner = "" }, "owner"},
		{"no zone", func(j *Job) { j.Timezone = "" }, "timezone"},
		{"no zone, manual only", func(j *Job) { j.Timezone, j.Schedule = "", "" }, ""},
		{"priority", func(j *Job) { j.Priority = "P2" }, "priority"},
		{"work", func(j *Job) { j.Work = "batch" }, "work"},
		{"effects", func(j *Job) { j.Effects = "twice" }, "effects"},
		{"window", func(j *Job) { j.Window = "hour" }, "window"},
		{"business_days", func(j *Job) { j.BusinessDays = "after" }, "business_days"},
		{"clock_gap", func(j *Job) { j.ClockGap = "jump" }, "clock_gap"},
		{"clock_repeat", func(j *Job) { j.ClockRepeat = "both" }, "clock_repeat"},
		{"missed", func(j *Job) { j.Priority, j.Missed = P1, "all" }, "missed"},
		{"overlap", func(j *Job) { j.Overlap = "queue" }, "overlap"},
		{"P0 without effects", func(j *Job) { j.Effects = "" }, "effects"},
		{"P1 without effects", func(j *Job) { j.Priority, j.Effects = P1, "" }, ""},
		{"once without a window", func(j *Job) { j.Window = "" }, "window"},
		{"once without a window or a schedule", func(j *Job) { j.Window, j.Schedule = "", "" }, ""},
		{"repeatable without a window", func(j *Job) { j.Window, j.Effects = "", Repeatable }, ""},
		{"P0 once that coalesces", func(j *Job) { j.Missed = Coalesce }, "missed"},
		{"P0 once that skips", func(j *Job) { j.Missed = SkipMissed }, "missed"},
		{"P0 once that catches up", func(j *Job) { j.Missed = CatchUp }, ""},
		{"P0 repeatable that skips", func(j *Job) { j.Missed, j.Effects = SkipMissed, Repeatable }, ""},
		{"P1 once that skips", func(j *Job) { j.Missed, j.Priority = SkipMissed, P1 }, ""},
		{"never missed without events", func(j *Job) { j.Missed, j.Priority = NeverMissed, P1 }, "missed"},
		{"P0 once, overlapping windows skipped", func(j *Job) { j.Overlap = OverlapSkip }, "overlap"},
		{"P0 once, overlapping windows allowed", func(j *Job) { j.Overlap = OverlapAllow }, ""},
		{"events with a schedule", func(j *Job) { j.Work = Event }, "schedule"},
		{"event windows with a schedule", func(j *Job) { j.Window = PerEvent }, "schedule"},
		{"events", func(j *Job) { j.Window, j.Schedule = PerEvent, "" }, ""},
		{"long, once, no steps", func(j *Job) { j.Work = Long }, "steps"},
		{"long, once, steps", func(j *Job) { j.Work, j.Steps = Long, true }, ""},
		{"long, repeatable", func(j *Job) { j.Work, j.Effects = Long, Repeatable }, ""},
		{"remembers less than two hours", func(j *Job) { j.Remembers = 2*time.Hour - 1 }, "remembers"},
		{"remembers two hours", func(j *Job) { j.Remembers = 2 * time.Hour }, ""},
		{"remembers for ever", func(j *Job) { j.Remembers = Forever }, ""},
		{"remembers less than nothing", func(j *Job) { j.Remembers = -1 }, "remembers"},
		{"run and shell", func(j *Job) { j.Command = Command{Argv: []string{"a"}, Shell: "a"} }, "run"},
		{"an empty command", func(j *Job) { j.Command.Argv = []string{""} }, "run"},
		{"a ladder of 50", func(j *Job) { j.Retry.Backoff = make([]time.Duration, 50) }, ""},
		{"a ladder of 51", func(j *Job) { j.Retry.Backoff = make([]time.Duration, 51) }, "retry.backoff"},
		{"a delay into the past", func(j *Job) { j.Retry.Backoff = []time.Duration{time.Minute, -1} }, "retry.backoff"},
		{"a delay of years", func(j *Job) { j.Retry.Backoff = []time.Duration{MaxDelay + 1} }, "retry.backoff"},
		{"jitter above all", func(j *Job) { j.Retry.Jitter = 1.01 }, "retry.jitter"},
		{"jitter that is no number", func(j *Job) { j.Retry.Jitter = math.NaN() }, "retry.jitter"},
		{"jitter without end", func(j *Job) { j.Retry.Jitter = math.Inf(-1) }, "retry.jitter"},
		{"no jitter", func(j *Job) { j.Retry.Jitter = -1 }, ""},
		{"exit code 0 as permanent", func(j *Job) { j.Retry.PermanentExit = []int{1, 0} }, "retry.permanent_exit"},
		{"exit code 256", func(j *Job) { j.Retry.PermanentExit = []int{256} }, "retry.permanent_exit"},
		{"status 200 as permanent", func(j *Job) { j.Retry.PermanentStatus = []int{409, 200} }, "retry.permanent_status"},
		{"status 600", func(j *Job) { j.Retry.PermanentStatus = []int{600} }, "retry.permanent_status"},
		{"spread below nothing", func(j *Job) { j.Jitter = -1 }, "jitter"},
		{"settles below nothing", func(j *Job) { j.Settles = -1 }, "settles"},
		{"missed after a year", func(j *Job) { j.MissedAfter = MaxDelay + 1 }, "missed_after"},
		{"a look-back below nothing", func(j *Job) { j.CatchupWindow = -1 }, "catchup_window"},
		{"grace below nothing", func(j *Job) { j.Expect.Grace = -1 }, "expect.grace"},
		{"silence below nothing", func(j *Job) { j.Expect.MaxSilence = -1 }, "expect.max_silence"},
		{"silence for ten years", func(j *Job) { j.Expect.MaxSilence = 9*MaxDelay + 1 }, "expect.max_silence"},
		{"no limit of the run time", func(j *Job) { j.Expect.MaxRuntime = -1 }, ""},
		{"a run time of years", func(j *Job) { j.Expect.MaxRuntime = MaxDelay + 1 }, "expect.max_runtime"},
		{"everything at once", func(j *Job) { *j = Job{Priority: P0, Schedule: "* * * * *", Retry: Retry{Jitter: 2}} }, "name owner timezone effects retry.jitter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := good()
			c.change(&j)
			var fields []string
			for _, f := range j.Check() {
				fields = append(fields, f.Field)
				if f.Err.Code != CodeInvalid || f.Err.Message == "" {
					t.Errorf("%s: %+v", f.Field, f.Err)
				}
			}
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("told %q, want %q", got, c.fields)
			}
		})
	}
}

func TestCheckSuggests(t *testing.T) {
	j := good()
	j.Window = "previous-weak"
	faults := j.Check()
	if len(faults) != 1 || faults[0].Err.Hint != "did you mean previous-week?" {
		t.Errorf("%+v", faults)
	}
}

func TestCanonical(t *testing.T) {
	j := good()
	j.Env, j.Remembers, j.Probe = map[string]string{"B": "2", "A": "1"}, Forever, Command{Argv: []string{"ask", "{wire_key}"}}
	j.Retry.Backoff = []time.Duration{}
	j = j.WithDefaults(24*time.Hour, 24*time.Hour)
	back, err := JobFromCanonical(j.Canonical())
	if err != nil || !reflect.DeepEqual(back, j) || string(back.Canonical()) != string(j.Canonical()) {
		t.Errorf("%+v, %v", back, err)
	}
	if back.Retry.Backoff == nil {
		t.Error("no retries became the default ladder")
	}
	if _, err := JobFromCanonical([]byte("{")); CodeOf(err) != CodeInternal {
		t.Error(err)
	}
	other := j
	other.Settles++
	if string(other.Canonical()) == string(j.Canonical()) {
		t.Error("different definitions have the same bytes")
	}
}

func TestPolicyOfAJob(t *testing.T) {
	j := good()
	j.Remembers = 24 * time.Hour
	j = j.WithDefaults(24*time.Hour, 24*time.Hour)
	if p := j.Policy(); p.Asks || p.Remembers != 24*time.Hour || p.Settles != DefaultSettles || len(p.Retry.Backoff) != 3 {
		t.Errorf("%+v", p)
	}
	j.Probe.Shell = "ask"
	if !j.Policy().Asks {
		t.Error("a probe is not asked")
	}
	if j.Policy().AsksUndo {
		t.Error("a probe that knows of charges is asked about an undo")
	}
	if j.ProbeUndo = true; !j.Policy().AsksUndo {
		t.Error("a probe that knows of undos is not asked about one")
	}
	j.Probe, j.ProbeURL = Command{}, "http://127.0.0.1/probe"
	if !j.Policy().Asks {
		t.Error("a URL is not asked")
	}
	j.ProbeURL, j.HasProbe = "", true
	if !j.Policy().Asks {
		t.Error("a Go function is not asked")
	}
}
