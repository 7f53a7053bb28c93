package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// write writes what was found: results.json and a plot for each scenario in benchmarks/, and a page in each language.
func write(r *results, out string, log io.Writer) error {
	pictures := filepath.Join(out, "benchmarks")
	for _, dir := range []string{pictures, filepath.Join(out, "zh-CN")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	all, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	files := map[string]string{
		filepath.Join(pictures, "results.json"):      string(all) + "\n",
		filepath.Join(out, "benchmarks.md"):          page{r, english}.write(),
		filepath.Join(out, "zh-CN", "benchmarks.md"): page{r, chinese}.write(),
	}
	for _, s := range scenarios {
		if r.has(s) {
			files[filepath.Join(pictures, s.Name+".svg")] = plot(r, s)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(log, "\n%s\nreport: %s\n", strings.Join(summary(r), "\n"), filepath.Join(out, "benchmarks.md"))
	return err
}

// has reports whether a scenario was measured.
func (r *results) has(s *scenario) bool {
	return slices.ContainsFunc(r.Samples, func(v sample) bool { return v.Scenario == s.Name })
}

// rounds returns what a peer reached, by round.
func (r *results) rounds(s *scenario, m measure, peer string) map[int]float64 {
	found := make(map[int]float64)
	for _, v := range r.Samples {
		if v.Scenario == s.Name && v.Measure == m.Name && v.Peer == peer {
			found[v.Round] = v.Value
		}
	}
	return found
}

// reached is the spread of what a peer reached; false: it was not measured.
func (r *results) reached(s *scenario, m measure, peer string) (spread, bool) {
	var values []float64
	for _, v := range r.rounds(s, m, peer) {
		values = append(values, v)
	}
	return spreadOf(values), len(values) > 0
}

// lead is by how many times one peer does better than another, of the same rounds: above 1 it is ahead, whether more is better
// or less.
func (r *results) lead(s *scenario, m measure, one, other string) (spread, bool) {
	var ratios []float64
	mine := r.rounds(s, m, one)
	for round, theirs := range r.rounds(s, m, other) {
		v, both := mine[round]
		if m.Less {
			v, theirs = theirs, v
		}
		if both && theirs > 0 {
			ratios = append(ratios, v/theirs)
		}
	}
	return spreadOf(ratios), len(ratios) > 0
}

// ours is Daybook on each store.
var ours = map[store]string{onPostgres: "daybook-postgres", onSQLite: "daybook-sqlite"}

// beside lists who is compared on a store: those on it, and those on Redis.
func (r *results) beside(s store) (list []string) {
	for _, e := range peersAll {
		if _, had := r.Peers[e.name]; had && (e.store == s || e.store == onRedis) {
			list = append(list, e.name)
		}
	}
	return list
}

// isBare reports whether a peer is the ceiling.
func isBare(peer string) bool { return strings.HasPrefix(peer, "bare-") }

// loss is something that a peer does better.
type loss struct {
	Scenario *scenario
	Measure  measure
	Store    store
	Peer     string
	Lead     spread
}

// losses are all of them, the worst first.
func (r *results) losses() (list []loss) {
	r.each(func(l loss) {
		if !isBare(l.Peer) && l.Lead.Median < 1 {
			list = append(list, l)
		}
	})
	slices.SortStableFunc(list, func(a, b loss) int {
		return int(1000 * (a.Lead.Median - b.Lead.Median))
	})
	return list
}

// each calls f for every comparison of Daybook with another.
func (r *results) each(f func(loss)) {
	for _, s := range scenarios {
		for _, st := range []store{onPostgres, onSQLite} {
			for _, m := range s.Measures {
				for _, p := range r.beside(st) {
					if lead, ok := r.lead(s, m, ours[st], p); ok && p != ours[st] {
						f(loss{s, m, st, p, lead})
					}
				}
			}
		}
	}
}

// foreign is how many cores others kept busy while figures were taken.
func (r *results) foreign() spread {
	var values []float64
	for _, v := range r.Samples {
		values = append(values, v.Foreign)
	}
	return spreadOf(values)
}

// quiet is how much of a core others may have kept busy, at the median, in a run whose figures are worth anything.
const quiet = 0.15

// summary is what a run says at its end: how each aim stands, and what is behind.
func summary(r *results) (lines []string) {
	for _, a := range aims {
		for _, s := range scenarios {
			for _, m := range s.Measures {
				lead, ok := r.lead(s, m, a.one, a.other)
				if s.Name != a.scenario || m.Name != a.measure || !ok {
					continue
				}
				mark := "reached"
				if lead.Median < a.least {
					mark = "MISSED "
				}
				lines = append(lines, fmt.Sprintf("%s  %s/%s %s : %s  %s, aim %s", mark, a.scenario, a.measure, a.one, a.other, leadText(lead), number(a.least)))
			}
		}
	}
	for _, l := range r.losses() {
		lines = append(lines, fmt.Sprintf("behind   %s/%s %s : %s  %s", l.Scenario.Name, l.Measure.Name, ours[l.Store], l.Peer, leadText(l.Lead)))
	}
	if f := r.foreign(); f.Median > quiet {
		lines = append(lines, fmt.Sprintf("NOT QUIET: others kept %.2f cores busy at the median (%.2f to %.2f): these figures are worth little", f.Median, f.Min, f.Max))
	}
	return lines
}

// aims are what Daybook wants to be ahead by.
var aims = []struct {
	scenario, measure, one, other string
	least                         float64
}{
	{"drain", "drain", "daybook-postgres", "river-postgres", 2.5},
	{"drain", "drain", "daybook-postgres", "graphile-worker", 2.2},
	{"drain", "drain", "daybook-sqlite", "river-sqlite", 18},
	{"latency", "p50", "daybook-postgres", "river-postgres", 1 / 0.65},
	{"latency", "p99", "daybook-postgres", "river-postgres", 1 / 0.6},
	{"once", "drain", "daybook-postgres", "dbos-postgres", 5},
	{"again", "read", "daybook-postgres", "bare-postgres", 0.6},
	{"again", "read", "daybook-sqlite", "bare-sqlite", 0.6},
}

// number writes a figure with as many digits as it deserves.
func number(v float64) string {
	switch {
	case v >= 100:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func thousands(digits string) string {
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func spreadText(s spread) string {
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Min), number(s.Max))
}

func leadText(s spread) string {
	return fmt.Sprintf("%s × (%s–%s)", number(s.Median), number(s.Min), number(s.Max))
}
