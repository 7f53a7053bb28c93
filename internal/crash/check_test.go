package crash

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook/internal/gateway"
)

// What the ledger says, read by statements of our own.
type (
	runRow struct {
		key, job, label, state, reason, effects, coveredBy string
		start                                              int64 // µs
		attempts, failures, losses                         int
		live                                               bool
	}
	tryRow struct {
		key, wire, result, late string
		fence, question         int64
		number                  int
		claimed, begun, ended   int64 // µs
		lateTaken               bool
	}
	letterRow struct{ key, kind, state string }
)

// evidence is everything there is to check by.
type evidence struct {
	runs    []runRow
	byKey   map[string]*runRow
	tries   map[string][]tryRow // by key, by fence; questions apart
	asked   map[string][]tryRow
	letters map[string][]letterRow
	alerts  map[string]int // open ones by key
	diary   map[string][]entry
	charges map[string]int // by job and day, as the gateway counts
	spans   []spanRow
	seen    map[string]int64 // first seen, by job, µs
}

type spanRow struct {
	job      string
	from, to int64
}

func (c *chaos) read() *evidence {
	c.t.Helper()
	v := &evidence{byKey: map[string]*runRow{}, tries: map[string][]tryRow{}, asked: map[string][]tryRow{}, letters: map[string][]letterRow{},
		alerts: map[string]int{}, diary: map[string][]entry{}, charges: map[string]int{}, seen: map[string]int64{}}
	c.rows(`SELECT r.key, r.job, r.label, r.effects, r.covered_by, r.start_us,
  CASE WHEN r.state = '' THEN l.state ELSE r.state END, CASE WHEN r.state = '' THEN l.reason ELSE r.reason END,
  CASE WHEN r.state = '' THEN l.attempts ELSE r.attempts END, CASE WHEN r.state = '' THEN l.failures ELSE r.failures END,
  CASE WHEN r.state = '' THEN l.losses ELSE r.losses END, CASE WHEN r.state = '' THEN 1 ELSE 0 END
FROM daybook_runs r LEFT JOIN daybook_live l ON l.key = r.key ORDER BY r.start_us, r.key`, func(rows *sql.Rows) error {
		var r runRow
		var live int
		err := rows.Scan(&r.key, &r.job, &r.label, &r.effects, &r.coveredBy, &r.start, &r.state, &r.reason, &r.attempts, &r.failures, &r.losses, &live)
		r.live = live != 0
		v.runs = append(v.runs, r)
		return err
	})
	for i := range v.runs {
		v.byKey[v.runs[i].key] = &v.runs[i]
	}
	c.rows(`SELECT key, fence, question, number, wire_key, claimed_us, begun_us, ended_us, result, late_result, late_taken FROM daybook_attempts ORDER BY key, fence, question`,
		func(rows *sql.Rows) error {
			var a tryRow
			var taken int
			err := rows.Scan(&a.key, &a.fence, &a.question, &a.number, &a.wire, &a.claimed, &a.begun, &a.ended, &a.result, &a.late, &taken)
			a.lateTaken = taken != 0
			if a.question != 0 {
				v.asked[a.key] = append(v.asked[a.key], a)
			} else {
				v.tries[a.key] = append(v.tries[a.key], a)
			}
			return err
		})
	c.rows(`SELECT key, kind, state FROM daybook_letters`, func(rows *sql.Rows) error {
		var l letterRow
		err := rows.Scan(&l.key, &l.kind, &l.state)
		v.letters[l.key] = append(v.letters[l.key], l)
		return err
	})
	c.rows(`SELECT key FROM daybook_alerts WHERE closed_us = 0 AND kind IN ('dead_letter', 'unknown_outcome')`, func(rows *sql.Rows) error {
		var k string
		err := rows.Scan(&k)
		v.alerts[k]++
		return err
	})
	c.rows(`SELECT job, from_us, to_us FROM daybook_spans`, func(rows *sql.Rows) error {
		var s spanRow
		err := rows.Scan(&s.job, &s.from, &s.to)
		v.spans = append(v.spans, s)
		return err
	})
	c.rows(`SELECT name, first_seen_us FROM daybook_jobs`, func(rows *sql.Rows) error {
		var name string
		var us int64
		err := rows.Scan(&name, &us)
		v.seen[name] = us
		return err
	})
	entries, err := readDiary(c.diary)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		v.diary[e.Key] = append(v.diary[e.Key], e)
	}
	tally, err := gateway.Count(c.book)
	if err != nil {
		c.t.Fatal(err)
	}
	for who, n := range tally.ByDay {
		v.charges[who.Customer+":"+who.Day] = n
	}
	return v
}

// figures are what a check counted.
type figures struct {
	windows, done, dead, skipped, covered int
	begun, lost                           int
	charged, further, twice, forgotten    int
}

func (f figures) String() string {
	return fmt.Sprintf("%d windows: %d done, %d dead, %d skipped, %d covered; %d tries of which %d lost; charged %d; %d begun under a further wire key; duplicates %d, lost %d",
		f.windows, f.done, f.dead, f.skipped, f.covered, f.begun, f.lost, f.charged, f.further, f.twice, f.forgotten)
}

// check looks for what must never be, by the rows, the gateway's book and the diary of the commands.
func (c *chaos) check() figures {
	c.t.Helper()
	v := c.read()
	f := figures{}
	f.forgotten = c.checkWindows(v)
	for i := range v.runs {
		r := &v.runs[i]
		f.windows++
		switch r.state {
		case "done":
			f.done++
		case "dead":
			f.dead++
		case "skipped":
			f.skipped++
		case "coalesced":
			f.covered++
		}
		c.checkRows(v, r)
		if !strings.HasPrefix(r.job, renewals) {
			c.checkLetter(v, r)
		}
		c.checkAlone(v, r)
		if r.effects == "once" && !strings.HasPrefix(r.job, renewals) {
			f.twice += c.checkOnce(v, r)
		}
	}
	for key, n := range v.charges {
		if strings.Contains(key, "/") {
			continue // of a renewal
		}
		f.charged += n
		if v.byKey[key] == nil {
			c.t.Errorf("%s was charged and is not in the ledger", key)
		}
	}
	for _, list := range v.tries {
		for _, a := range list {
			f.begun++
			if a.result == "lost" {
				f.lost++
			}
			if strings.Contains(a.wire, "#") {
				f.further++
			}
		}
	}
	c.checkLines(v)
	return f
}

// Of the jobs: the length of their windows, and when a probe's no counts.
const (
	period  = 2 * time.Second
	settles = 1500 * time.Millisecond
)

// checkWindows looks for windows that were owed and are in no row and no span. It returns how many.
func (c *chaos) checkWindows(v *evidence) (forgotten int) {
	for job, first := range v.seen {
		period := period
		switch {
		case job == fan:
			period = fanPeriod
		case strings.HasPrefix(job, renewals):
			period = renewalPeriod
		}
		at := time.UnixMicro(first).UTC().Truncate(period).Add(period)
		for ; !at.After(c.over); at = at.Add(period) {
			label := at.Format("2006-01-02T15:04Z")
			if at.Second() != 0 {
				label = at.Format("2006-01-02T15:04:05Z")
			}
			if v.byKey[job+":"+label] == nil && !v.inSpan(job, at.UnixMicro()) {
				c.t.Errorf("%s:%s is in no row and no span", job, label)
				forgotten++
			}
		}
	}
	return forgotten
}

func (v *evidence) inSpan(job string, at int64) bool {
	return slices.ContainsFunc(v.spans, func(s spanRow) bool { return s.job == job && s.from <= at && at <= s.to })
}

// checkRows looks whether the rows of a run agree with each other.
func (c *chaos) checkRows(v *evidence, r *runRow) {
	tries := v.tries[r.key]
	open := 0
	if r.state == "running" {
		open = 1
	}
	if len(tries)+open != r.attempts {
		c.t.Errorf("%s: %s with %d attempts, and %d rows", r.key, r.state, r.attempts, len(tries))
	}
	for i, a := range tries {
		if a.number != i+1 {
			c.t.Errorf("%s: attempt row %d has number %d", r.key, i+1, a.number)
		}
	}
	switch r.state {
	case "done":
		if len(tries) == 0 {
			c.t.Errorf("%s is done without a try", r.key)
		}
	case "coalesced":
		if cover := v.byKey[r.coveredBy]; cover == nil || cover.state == "skipped" || cover.state == "coalesced" {
			c.t.Errorf("%s is covered by %q, which covers nothing", r.key, r.coveredBy)
		}
	}
	if r.effects == "repeatable" && r.state == "dead" && r.losses < 3 {
		for _, a := range tries {
			if a.result != "lost" {
				return // the ladder was used up
			}
		}
		c.t.Errorf("%s is dead after %d losses", r.key, r.losses)
	}
	if r.losses > 3 || r.losses == 3 && r.live { // done is possible: a late report settles a dead run
		c.t.Errorf("%s is %s after %d losses in a row", r.key, r.state, r.losses)
	}
}

// checkLetter looks whether a dead run, and no other, has an open letter and an alert.
func (c *chaos) checkLetter(v *evidence, r *runRow) {
	open := 0
	for _, l := range v.letters[r.key] {
		if l.state == "open" {
			open++
		}
	}
	want := 0
	if r.state == "dead" || r.live && open == 1 { // asked again by a person
		want = 1
	}
	if open != want || r.state == "dead" && v.alerts[r.key] != 1 || r.state == "done" && v.alerts[r.key] != 0 {
		c.t.Errorf("%s is %s with %d open letters and %d open alerts", r.key, r.state, open, v.alerts[r.key])
	}
}

// checkAlone looks whether a try began while an earlier one of the same key was alive on this host.
func (c *chaos) checkAlone(v *evidence, r *runRow) {
	ended := map[int64]time.Time{}
	began := map[int64]entry{}
	for _, e := range v.diary[r.key] {
		switch e.What {
		case "begin":
			if other, twice := began[e.Fence]; twice {
				c.t.Errorf("%s: two commands under fence %d: pids %d and %d", r.key, e.Fence, other.Pid, e.Pid)
			}
			began[e.Fence] = e
		case "end":
			ended[e.Fence] = e.At
		}
	}
	for fence, at := range ended {
		for other, e := range began {
			if other > fence && e.At.Before(at) {
				c.t.Errorf("%s: fence %d began %s before fence %d had ended", r.key, other, at.Sub(e.At), fence)
			}
		}
	}
}

// checkOnce looks whether work that may be done once was begun again only after somebody said that it had not happened.
// It returns how often it was charged too often.
func (c *chaos) checkOnce(v *evidence, r *runRow) (twice int) {
	charged := v.charges[r.key]
	if charged > 1 {
		c.t.Errorf("%s was charged %d times", r.key, charged)
		twice = charged - 1
	}
	letter := ""
	for _, l := range v.letters[r.key] {
		if l.state == "open" {
			letter = l.kind
		}
	}
	switch {
	case r.state == "done" && charged != 1:
		c.t.Errorf("%s is done and was charged %d times", r.key, charged)
	case r.state == "dead" && letter == "failed" && charged != 0:
		c.t.Errorf("%s has a letter that says it did not happen, and was charged", r.key)
	case (r.state == "skipped" || r.state == "coalesced") && !r.live:
		c.t.Errorf("%s may not be left out, and is %s", r.key, r.state)
	}
	begins := slices.DeleteFunc(slices.Clone(v.diary[r.key]), func(e entry) bool { return e.What != "begin" })
	slices.SortFunc(begins, func(a, b entry) int { return cmp.Compare(a.Fence, b.Fence) })
	for i := 1; i < len(begins); i++ {
		if why := c.mayBegin(v, r, begins[:i], begins[i]); why != "" {
			c.t.Errorf("%s: begun again under fence %d as %s: %s", r.key, begins[i].Fence, begins[i].Wire, why)
		}
	}
	return twice
}

// mayBegin says what is wrong with a further beginning of once-only work; nothing, if it was allowed.
func (c *chaos) mayBegin(v *evidence, r *runRow, before []entry, again entry) string {
	last := before[len(before)-1]
	if again.Wire != last.Wire { // only after a no that counts: asked when the last try that might have sent it had been over for long enough
		var fence, over int64
		for _, a := range v.tries[r.key] { // one that was killed before its first line is in no diary
			if a.fence < again.Fence && (a.fence == last.Fence || a.wire == last.Wire && a.begun > 0) {
				fence, over = a.fence, a.ended
			}
		}
		for _, q := range v.asked[r.key] {
			if q.wire == last.Wire && q.result == "no" && q.fence == fence && over > 0 && q.claimed >= over+settles.Microseconds() && q.claimed <= again.At.UnixMicro() {
				return ""
			}
		}
		c.story(r.key)
		return fmt.Sprintf("no probe's no counted about %s of fence %d, which was over at %s: %+v", last.Wire, fence, time.UnixMicro(over).UTC().Format("15:04:05.000"), v.asked[r.key])
	}
	if r.job == "pay-memory" {
		return "" // the same wire key again, which the far side remembers
	}
	for _, e := range before {
		if e.Wire != again.Wire {
			continue
		}
		reported := false
		for _, a := range v.tries[r.key] {
			if a.fence == e.Fence {
				reported = a.result == "not_done" || a.late == "not_done" && a.lateTaken
			}
		}
		if !reported {
			return fmt.Sprintf("fence %d, the try before, did not say that it is not done", e.Fence)
		}
	}
	return ""
}

// checkLines looks whether two windows of a job that waits for its previous one ran at once.
func (c *chaos) checkLines(v *evidence) {
	for _, job := range []string{"pay-line", "newest", "slow"} {
		type span struct {
			key      string
			from, to time.Time
		}
		var spans []span
		for key, entries := range v.diary {
			if v.byKey[key] == nil || v.byKey[key].job != job {
				continue
			}
			for _, b := range entries {
				for _, e := range entries {
					if b.What == "begin" && e.What == "end" && b.Fence == e.Fence {
						spans = append(spans, span{key, b.At, e.At})
					}
				}
			}
		}
		slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
		for i := 1; i < len(spans); i++ {
			if a, b := spans[i-1], spans[i]; a.key != b.key && b.from.Before(a.to) {
				c.t.Errorf("%s began %s before %s had ended", b.key, a.to.Sub(b.from), a.key)
				c.story(a.key)
				c.story(b.key)
			}
		}
	}
}
