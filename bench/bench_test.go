package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fixed are results of two rounds in which everything is known.
func fixed() *results {
	r := &results{At: time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), Stores: map[store]string{onSQLite: "WAL"}, Peers: map[string]about{
		"daybook-sqlite": {Name: "Daybook", Store: onSQLite}, "river-sqlite": {Name: "River", Store: onSQLite}, "bare-sqlite": {Name: "bare driver loop", Store: onSQLite},
	}, Missing: []missing{{"asynq-always", "", "redis-server is not installed\nat all"}}}
	add := func(scenario, measure, peer string, values ...float64) {
		for i, v := range values {
			r.Samples = append(r.Samples, sample{scenario, measure, peer, i + 1, v, 0.01})
		}
	}
	add("drain", "drain", "daybook-sqlite", 20_000, 24_000)
	add("drain", "drain", "river-sqlite", 1000, 2000)
	add("drain", "drain", "bare-sqlite", 100_000, 120_000)
	add("latency", "p50", "daybook-sqlite", 4, 4)
	add("latency", "p50", "river-sqlite", 2, 1)
	return r
}

func TestALeadIsTakenWithinARound(t *testing.T) {
	r := fixed()
	for _, c := range []struct {
		s    *scenario
		m    measure
		want spread
	}{
		{&draining, draining.Measures[1], spread{12, 16, 20}},
		{&waiting, waiting.Measures[0], spread{0.25, 0.375, 0.5}}, // less is better: it is behind
	} {
		got, ok := r.lead(c.s, c.m, "daybook-sqlite", "river-sqlite")
		if !ok || got != c.want {
			t.Errorf("%s: %v %v, want %v", c.s.Name, got, ok, c.want)
		}
	}
	if _, ok := r.lead(&draining, draining.Measures[1], "daybook-sqlite", "asynq-always"); ok {
		t.Error("there is a lead over who was not measured")
	}
	r.Samples = r.Samples[1:] // the first round of Daybook's is gone
	if got, _ := r.lead(&draining, draining.Measures[1], "daybook-sqlite", "river-sqlite"); got != (spread{12, 12, 12}) {
		t.Errorf("rounds of one alone count: %v", got)
	}
}

func TestWhatIsLostIsTold(t *testing.T) {
	losses := fixed().losses()
	if len(losses) != 1 || losses[0].Peer != "river-sqlite" || losses[0].Scenario != &waiting {
		t.Errorf("%+v: the ceiling is no loss, and the latency is one", losses)
	}
	all := strings.Join(summary(fixed()), "\n")
	for _, want := range []string{"MISSED   drain/drain daybook-sqlite : river-sqlite  16.0 × (12.0–20.0), aim 18.0", "behind   latency/p50"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s\nlacks %s", all, want)
		}
	}
}

func TestBothPagesSayTheSame(t *testing.T) {
	dir := t.TempDir()
	if err := write(fixed(), dir, t.Output()); err != nil {
		t.Fatal(err)
	}
	en, zh := read(t, dir, "benchmarks.md"), read(t, dir, "zh-CN/benchmarks.md")
	for _, want := range []string{"| River | ", "22,000 (20,000–24,000)", "16.0 × (12.0–20.0)", "**0.38 × (0.25–0.50)**", "benchmarks/drain.svg", "redis-server is not installed\n"} {
		if !strings.Contains(en, want) || !strings.Contains(zh, want) {
			t.Errorf("a page lacks %s", want)
		}
	}
	if strings.Contains(en, "Preliminary") {
		t.Error("a quiet machine is called noisy")
	}
	shape := func(s string) (lines []string) {
		for line := range strings.Lines(s) {
			if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "```") {
				lines = append(lines, line[:1])
			}
		}
		return lines
	}
	if !slices.Equal(shape(en), shape(zh)) {
		t.Error("headings, tables and blocks differ")
	}
	var back results
	if err := json.Unmarshal([]byte(read(t, dir, "benchmarks/results.json")), &back); err != nil || len(back.Samples) != len(fixed().Samples) {
		t.Errorf("results.json: %d samples, %v", len(back.Samples), err)
	}
}

func TestANoisyMachineIsTold(t *testing.T) {
	r := fixed()
	for i := range r.Samples {
		r.Samples[i].Foreign = 1.7
	}
	if !strings.Contains(page{r, english}.write(), "Preliminary") || !strings.Contains(strings.Join(summary(r), "\n"), "NOT QUIET") {
		t.Error("the noise is not told")
	}
}

func TestEveryTextIsInBothLanguages(t *testing.T) {
	for _, s := range scenarios {
		for _, x := range append([]text{s.Title, s.What}, texts(s)...) {
			if x.EN == "" || x.ZH == "" {
				t.Errorf("%s: %+v", s.Name, x)
			}
		}
	}
}

func texts(s *scenario) (all []text) {
	for _, m := range s.Measures {
		all = append(all, m.What)
	}
	return all
}

func TestTurnsRotate(t *testing.T) {
	all := []string{"a", "b", "c"}
	for round, want := range []string{"abc", "bca", "cab", "abc"} {
		if got := strings.Join(turns(all, round), ""); got != want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
	}
	if turns(nil, 1) != nil {
		t.Error("nobody has a turn")
	}
}

func TestQuantile(t *testing.T) {
	s := []float64{1, 2, 3, 4}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4} {
		if got := quantile(s, q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0.123: "0.12", 12.34: "12.3", 123.4: "123", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestTheWorkerOfNodeIsHeard(t *testing.T) {
	var got []time.Time
	hear("+3", func(began time.Time) { got = append(got, began) })
	if len(got) != 3 || !got[0].IsZero() {
		t.Errorf("%v: three that carry nothing", got)
	}
	got = nil
	hear("1000 5000", func(began time.Time) { got = append(got, began) })
	if len(got) != 1 || time.Since(got[0]).Round(time.Millisecond) != 4*time.Millisecond {
		t.Errorf("%v: it started 4 ms after it was asked for", got)
	}
}

// What needs no server and no registry is measured for real, in a second.
func TestAShortRunIsWhole(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	if err := run(t.Context(), []string{"-tiny", "-only", "insert,drain,once,steps,again,start", "-peers", "daybook-sqlite,bare-sqlite", "-out", dir}, &log); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "MISSING") {
		t.Error(log.String())
	}
	var r results
	if err := json.Unmarshal([]byte(read(t, dir, "benchmarks/results.json")), &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*scenario{&inserting, &draining, &onceOnly, &stepping, &asking, &starting} {
		for _, m := range s.Measures {
			if lead, ok := r.lead(s, m, "daybook-sqlite", "bare-sqlite"); !ok || lead.Median <= 0 {
				t.Errorf("%s, %s: %v", s.Name, m.Name, lead)
			}
		}
	}
}

func TestAPeerThatCannotBeHadIsNamed(t *testing.T) {
	t.Setenv("PATH", "")
	b := &bench{terms: terms{place: &place{dir: t.TempDir()}}, log: t.Output(), open: make(map[string]peer), found: &results{Stores: make(map[store]string), Peers: make(map[string]about)}}
	b.enlist(t.Context(), []string{"asynq-always"})
	if len(b.found.Missing) != 1 || !strings.Contains(b.found.Missing[0].Why, "redis-server is not installed") {
		t.Errorf("%+v", b.found.Missing)
	}
}

func TestWhatIsChosenExists(t *testing.T) {
	for _, args := range [][]string{{"-only", "nothing"}, {"-peers", "nobody"}, {"-only", "drain,"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
