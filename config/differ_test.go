package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// TestEveryNameOfAJobIsCompared sets each field of a definition by itself: none may change unseen.
func TestEveryNameOfAJobIsCompared(t *testing.T) {
	var set func(v reflect.Value, name string)
	seen := map[string]bool{}
	base := func() *daybook.Job { return &daybook.Job{HTTP: &daybook.HTTPCall{}} }
	var path []int
	set = func(v reflect.Value, name string) {
		for i := range v.NumField() {
			path = append(path, i)
			f, field := v.Field(i), v.Type().Field(i)
			if f.Kind() == reflect.Pointer {
				f = f.Elem()
			}
			if f.Kind() == reflect.Struct {
				set(f, name+field.Name+".")
				path = path[:len(path)-1]
				continue
			}
			j := base()
			other := reflect.ValueOf(j).Elem()
			for _, step := range path {
				if other.Kind() == reflect.Pointer {
					other = other.Elem()
				}
				other = other.Field(step)
			}
			switch other.Kind() {
			case reflect.String:
				other.SetString("x")
			case reflect.Bool:
				other.SetBool(true)
			case reflect.Int64:
				other.SetInt(int64(time.Minute))
			case reflect.Float64:
				other.SetFloat(0.5)
			case reflect.Slice:
				if other.Type().Elem().Kind() == reflect.String {
					other.Set(reflect.ValueOf([]string{"x"}))
				} else {
					other.Set(reflect.MakeSlice(other.Type(), 1, 1))
				}
			case reflect.Map:
				other.Set(reflect.ValueOf(map[string]string{"A": "b"}))
			default:
				t.Fatalf("%s is a %s", field.Name, other.Kind())
			}
			d := Differences(base(), j)
			if n := len(d); n != 1 && field.Name != "Name" && field.Name != "HasProbe" && field.Name != "HasSubjects" {
				t.Errorf("%s%s: %d differences", name, field.Name, n)
			}
			for _, one := range d {
				seen[one.Name] = true
			}
			path = path[:len(path)-1]
		}
	}
	set(reflect.ValueOf(base()).Elem(), "")
	var names []string
	for _, section := range []struct {
		in    string
		words []string
	}{{"", words(jobNames)}, {"http.", words(callNames)}, {"retry.", words(retryNames)}, {"expect.", words(expectNames)}} {
		for _, w := range section.words {
			if w != "http" && w != "retry" && w != "expect" {
				names = append(names, section.in+w)
			}
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(said(nil), func(s saying) bool { return s.word == name }) {
			t.Errorf("%s of the file is not compared", name)
		}
	}
}

// H66: what a definition holds in clear is not told by what changed.
func TestH66DifferencesHoldNoSecret(t *testing.T) {
	const secret = "hunter2"
	one := func(value string) *daybook.Job {
		return &daybook.Job{Env: map[string]string{"API_TOKEN": value}, Stdin: value, Runbook: "https://me:" + value + "@wiki.example",
			Command: daybook.Command{Argv: []string{"curl", "--password=" + value, "https://me:" + value + "@shop.example"}},
			Probe:   daybook.Command{Shell: "TOKEN=" + value + " ./ask"}, ProbeURL: "https://me:" + value + "@shop.example",
			HTTP: &daybook.HTTPCall{URL: "https://me:" + value + "@shop.example", Headers: map[string]string{"X-Key": value}, Secret: "${SECRET}"}}
	}
	differences := Differences(one(secret), one("other"))
	text := fmt.Sprint(differences)
	for _, d := range differences {
		text += d.String()
	}
	if strings.Contains(text, secret) || !strings.Contains(text, "env changed") || !strings.Contains(text, "stdin changed") || !strings.Contains(text, "http.headers changed") {
		t.Error(text)
	}
	a, b := mustParse(t, told), mustParse(t, strings.ReplaceAll(strings.ReplaceAll(told, `REGION: eu`, `REGION: `+secret), "path: alerts.log", "path: other.log"))
	list := SettingDifferences(a, b)
	if text := fmt.Sprint(list); strings.Contains(text, secret) || len(list) != 2 || list[0].String() != "channels.log changed" || list[1].String() != "channels.phone changed" {
		t.Error(text)
	}
}

func TestDifferences(t *testing.T) {
	parse := func(lines string) *daybook.Job { j := oneJob(t, lines); return &j.Job }
	before := parse("schedule: 0 2 * * *\nrun: [./a, \"{date}\"]\ntimeout: 5m\nretry: {backoff: [1m]}")
	after := parse("schedule: [0 3 * * *, daily 09:00]\nwindow: day\nshell: ./b\ntimeout: none\nretry: {backoff: [], jitter: 0%, permanent_exit: [3, 4]}\npaused: true\nformerly: old\nexpect: {max_runtime: none, max_silence: 48h}")
	var got []string
	for _, d := range Differences(before, after) {
		got = append(got, d.String())
	}
	want := []string{`schedule "0 2 * * *" → ["0 3 * * *", "daily 09:00"]`, `run [./a, {date}] → –`, `shell – → ./b`, `timeout 5m → none`,
		`retry.backoff [1m] → []`, `retry.jitter 10% → 0%`, `retry.permanent_exit – → [3, 4]`, `expect.max_runtime 5m → none`, `formerly – → old`, `paused – → true`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if list := Differences(nil, before); len(list) == 0 || list[0].Old != "" {
		t.Errorf("%v", list)
	}
	if list := Differences(before, before); list != nil {
		t.Errorf("%v", list)
	}
	f := mustParse(t, told)
	g := mustParse(t, strings.Replace(told, "P0: {to: [phone, hook], remind: 15m}", "P0: {to: [phone]}", 1)+"name: acme\nslots: {live: 3}\nretention: {log_runs: 5, activity: 90d}\n")
	got = nil
	for _, d := range SettingDifferences(f, g) {
		got = append(got, d.String())
	}
	want = []string{"name – → acme", "slots.live 16 → 3", "retention.log_runs none → 5", "retention.activity forever → 90d", "alerts.P0 {to: [phone, hook], remind: 15m} → {to: [phone], remind: –}"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}
