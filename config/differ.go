package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Difference is one name of a job that two definitions give another value. Values are as the file writes them, and hold no
// secret: of what may hold one, only that it differs is told.
type Difference struct {
	Name string `json:"name"` // as in the file, such as retry.backoff
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Hidden stands for a value that is not shown.
const hiddenValue = "***"

// Differences lists what two completed definitions of a job say differently, in the order of the reference. A nil definition
// says nothing.
func Differences(before, after *daybook.Job) []Difference {
	a, b := said(before), said(after)
	var list []Difference
	for i, name := range a {
		if other := b[i]; name.value != other.value {
			d := Difference{Name: name.word, Old: name.value, New: other.value}
			if name.hidden { // what it is may be a secret
				d.Old, d.New = shownAs(name.value), shownAs(other.value)
			}
			list = append(list, d)
		}
	}
	return list
}

func shownAs(value string) string {
	if value == "" {
		return ""
	}
	return hiddenValue
}

// saying is one name of a job with what a definition says.
type saying struct {
	word, value string
	hidden      bool
}

// said lists every name of a job with its value, those of maps one by one.
func said(j *daybook.Job) []saying {
	if j == nil {
		j = &daybook.Job{}
	}
	call := cmp.Or(j.HTTP, &daybook.HTTPCall{})
	format := ""
	if j.HTTP != nil {
		format = map[bool]string{true: "quoted", false: "bare"}[call.Quoted]
	}
	return []saying{
		{word: "priority", value: string(j.Priority)}, {word: "owner", value: j.Owner}, {word: "runbook", value: Mask(j.Runbook)},
		{word: "schedule", value: forms(j.Schedule)}, {word: "timezone", value: j.Timezone}, {word: "window", value: string(j.Window)},
		{word: "calendar", value: j.Calendar}, {word: "business_days", value: string(j.BusinessDays)},
		{word: "clock_gap", value: string(j.ClockGap)}, {word: "clock_repeat", value: string(j.ClockRepeat)}, {word: "jitter", value: spell(j.Jitter)},
		{word: "run", value: listed(masked(j.Command.Argv))}, {word: "shell", value: oneLine(Mask(j.Command.Shell))},
		{word: "http.url", value: Mask(call.URL)}, {word: "http.method", value: call.Method}, {word: "http.headers", value: pairs(call.Headers), hidden: true},
		{word: "http.secret", value: NewSecret(call.Secret).String()}, {word: "http.idempotency_key_format", value: format},
		{word: "env", value: pairs(j.Env), hidden: true}, {word: "dir", value: j.Dir}, {word: "user", value: j.User}, {word: "stdin", value: j.Stdin, hidden: true},
		{word: "timeout", value: spell(j.Timeout)}, {word: "work", value: string(j.Work)}, {word: "effects", value: string(j.Effects)},
		{word: "steps", value: yes(j.Steps)}, {word: "probe", value: oneLine(Mask(j.Probe.String()))}, {word: "probe_url", value: Mask(j.ProbeURL)}, {word: "probe_undo", value: yes(j.ProbeUndo)},
		{word: "undo", value: oneLine(Mask(j.Undo.String()))}, {word: "undo_url", value: Mask(j.UndoURL)}, {word: "remembers", value: spell(j.Remembers)}, {word: "settles", value: spell(j.Settles)},
		{word: "missed", value: string(j.Missed)}, {word: "missed_after", value: spell(j.MissedAfter)}, {word: "catchup_window", value: spell(j.CatchupWindow)},
		{word: "catchup_gap", value: spell(j.CatchupGap)}, {word: "overlap", value: string(j.Overlap)}, {word: "serial", value: j.Serial}, {word: "subjects", value: listing(j.Subjects)}, {word: "zone", value: j.Zone},
		{word: "retry.backoff", value: ladder(j.Retry.Backoff)}, {word: "retry.jitter", value: inPercent(j.Retry.Jitter)},
		{word: "retry.permanent_exit", value: numbered(j.Retry.PermanentExit)}, {word: "retry.permanent_status", value: numbered(j.Retry.PermanentStatus)},
		{word: "expect.grace", value: spell(j.Expect.Grace)}, {word: "expect.max_silence", value: spell(j.Expect.MaxSilence)}, {word: "expect.max_runtime", value: spell(j.Expect.MaxRuntime)},
		{word: "formerly", value: j.Formerly}, {word: "paused", value: yes(j.Paused)},
	}
}

// listing writes a listing of subjects by its name, and in full.
func listing(l daybook.Listing) string {
	return oneLine(strings.Join([]string{l.Name, Mask(l.DSN), l.SQL, Mask(l.URL)}, " "))
}

func spell(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 0:
		return "none"
	}
	return Duration(d).String()
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// forms writes a schedule as the file does.
func forms(schedule string) string {
	lines := strings.Split(schedule, "\n")
	if len(lines) == 1 {
		return schedule
	}
	for i, line := range lines {
		lines[i] = strconv.Quote(line)
	}
	return "[" + strings.Join(lines, ", ") + "]"
}

func masked(argv []string) []string {
	list := make([]string, len(argv))
	for i, arg := range argv {
		list[i] = Mask(arg)
	}
	return list
}

// listed writes a list as YAML does, on one line.
func listed(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "[" + oneLine(strings.Join(list, ", ")) + "]"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func ladder(steps []time.Duration) string {
	if steps == nil {
		return ""
	}
	list := make([]string, len(steps))
	for i, d := range steps {
		list[i] = Duration(d).String()
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func inPercent(share float64) string {
	if share == 0 {
		return ""
	}
	return strconv.FormatFloat(max(share, 0)*100, 'f', -1, 64) + "%"
}

func numbered(list []int) string {
	if len(list) == 0 {
		return ""
	}
	return strings.ReplaceAll(fmt.Sprint(list), " ", ", ")
}

// pairs writes a map so that equal ones are equal; it is not shown.
func pairs(m map[string]string) string {
	var list []string
	for name, value := range m {
		list = append(list, fmt.Sprintf("%q: %q", name, value))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// String writes the difference on one line.
func (d Difference) String() string { return d.Text().String() }

// Text is the difference in words.
func (d Difference) Text() daybook.Text {
	if d.Old == hiddenValue || d.New == hiddenValue {
		return daybook.Say("%s changed", d.Name)
	}
	return daybook.Say("%s %s → %s", d.Name, shownValue(d.Old), shownValue(d.New))
}

// shownValue quotes what a reader could take for something else.
func shownValue(value string) string {
	switch {
	case value == "":
		return "–"
	case strings.ContainsAny(value, " *#:") && value[0] != '[' && value[0] != '{':
		return strconv.Quote(value)
	}
	return value
}

// SettingDifferences lists what two files say differently beside their jobs: at the top, and of channels and alerts.
func SettingDifferences(before, after *File) []Difference {
	var list []Difference
	add := func(name, a, b string) {
		if a != b {
			list = append(list, Difference{Name: name, Old: a, New: b})
		}
	}
	add("name", before.Name, after.Name)
	add("url", before.URL, after.URL)
	add("lang", before.Lang, after.Lang)
	add("slots.live", strconv.Itoa(before.Slots.Live), strconv.Itoa(after.Slots.Live))
	add("slots.backfill", strconv.Itoa(before.Slots.Backfill), strconv.Itoa(after.Slots.Backfill))
	add("retention.log", spell(before.Retention.Log), spell(after.Retention.Log))
	add("retention.log_runs", orNoLimit(before.Retention.LogRuns), orNoLimit(after.Retention.LogRuns))
	add("retention.activity", spell(before.Retention.Activity), spell(after.Retention.Activity))
	add("freeze", freezesText(before), freezesText(after))
	a, b := channelsOf(before), channelsOf(after)
	for _, name := range slices.Sorted(maps.Keys(merged(a, b))) {
		if a[name] != b[name] { // it may hold a secret
			list = append(list, Difference{Name: "channels." + name, Old: shownAs(a[name]), New: shownAs(b[name])})
		}
	}
	for _, p := range []daybook.Priority{daybook.P0, daybook.P1} {
		add("alerts."+string(p), routeText(before, p), routeText(after, p))
	}
	add("alerts.fallback", listed(before.Alerts.Fallback), listed(after.Alerts.Fallback))
	return list
}

func freezesText(f *File) string {
	var list []string
	for _, r := range f.Freezes {
		text := fmt.Sprintf("%s: %s for %s", r.Name, r.Schedule, spell(r.For))
		if r.Only != "" {
			text += " only " + string(r.Only)
		}
		list = append(list, text)
	}
	return listed(list)
}

func orNoLimit(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

func channelsOf(f *File) map[string]string {
	m := make(map[string]string, len(f.Channels))
	for _, c := range f.Channels {
		c.Line, c.Column = 0, 0
		m[c.Name] = fmt.Sprintf("%s %s %s %s %q %s %s %s", c.Type, c.Lang, c.URL.text, c.Secret.text, c.Run, pairs(c.Env), c.Path, c.Timeout)
	}
	return m
}

func merged(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

func routeText(f *File, p daybook.Priority) string {
	r, ok := f.Alerts.Routes[p]
	if !ok {
		return ""
	}
	return "{to: " + listed(r.To) + ", remind: " + cmp.Or(spell(r.Remind), "–") + "}"
}
