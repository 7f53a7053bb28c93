package daybook

import (
	"strings"
	"testing"
	"time"
)

func TestCheckPlaceholders(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--week={window} {key}{wire_key}{job}{date}{window_start}{window_end}{subject}": "",
		"{print}":       "",
		"{}":            "",
		"{":             "",
		`{"a":1}`:       "",
		"${windw}":      "",
		"{Window}":      "",
		"{windw}":       "did you mean {window}?",
		"{wirekey}":     "did you mean {wire_key}?",
		"a{fence}b":     "DAYBOOK_FENCE",
		"{window}{dat}": "did you mean {date}?",
	} {
		err := CheckPlaceholders(arg)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(HintOf(err), want) {
			t.Errorf("%s: %v, hint %q, want %q", arg, err, HintOf(err), want)
		}
	}
}

func TestSerialKey(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	w := Window{Label: "2026-03-29", Date: "2026-03-29", Start: day, End: day.AddDate(0, 0, 1)}
	for _, c := range []struct{ template, subject, want string }{
		{"", "sub_42", ""},
		{"gateway", "", "gateway"},
		{"subscription:{subject}", "sub_42", "subscription:sub_42"},
		{"subscription:{subject}", "", ""}, // without one there is no object
		{"{job}/{date}/{window}", "a", "renew/2026-03-29/2026-03-29"},
		{"{key}", "a", "renew:2026-03-29/a"},
		{"{window_start}", "", "2026-03-29T00:00:00Z"},
		{"{subject}{subject}", "{job}", "{job}{job}"}, // what is put in is not looked at again
	} {
		r := NewRun(&Job{Name: "renew", Serial: c.template}, 1, w, 1, c.subject, day)
		if r.Serial != c.want {
			t.Errorf("%s of %q: %q, want %q", c.template, c.subject, r.Serial, c.want)
		}
	}
	fans := &Job{Name: "renew", Serial: "gateway", HasSubjects: true}
	if list, one := NewRun(fans, 1, w, 1, "", day), NewRun(fans, 1, w, 1, "a", day); list.Serial != "" || one.Serial != "gateway" {
		t.Errorf("of a listing %q, of a subject %q", list.Serial, one.Serial)
	}
	undone := Run{Key: "renew:2026-03-29", State: Done, Serial: "x", Effect: &StepRecord{Step: StepRun, State: EffectDone}}
	if m, err := undone.Undo("ops", "", day); err != nil || m.Make.Serial != "x" {
		t.Errorf("its undo: %q, %v", m.Make.Serial, err)
	}
}

func TestSerialTemplates(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"":                       "",
		"subscription:{subject}": "",
		"a{b":                    "",
		"{user}":                 "{user} is no placeholder",
		"{subjct}":               "{subjct} is no placeholder",
		"two words":              "space",
		"line\nbreak":            "space",
		strings.Repeat("x", 101): "101 bytes",
	} {
		j := Job{Name: "a", Owner: "ops", Serial: template}
		got := ""
		for _, f := range j.Check() {
			if f.Field == "serial" {
				got = f.Err.Error()
			}
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", template, got, want)
		}
	}
}
