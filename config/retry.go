package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

var retryNames = []name[draft]{
	oneIn("retry", "backoff", "[1m, 5m, 25m]", "delays before the second, third, … try, at most 50; after the last one: a dead letter and an alert; [] is no retry",
		value[[]time.Duration]{ladderShape, (*reader).backoff}, func(j *daybook.Job, v []time.Duration) { j.Retry.Backoff = v }),
	oneIn("retry", "jitter", "10%", "share of a delay that is added to it at most", share, func(j *daybook.Job, v float64) {
		j.Retry.Jitter = v
		if v == 0 { // the zero value of a Job means the default
			j.Retry.Jitter = -1
		}
	}),
	oneIn("retry", "permanent_exit", "none", "exit codes that are not tried again, beside 64 65 66 77 78", numbers(1, 255), func(j *daybook.Job, v []int) { j.Retry.PermanentExit = v }),
	oneIn("retry", "permanent_status", "none", "HTTP statuses that are not tried again, beside 400 to 499 without 408 409 425 429",
		numbers(300, 599), func(j *daybook.Job, v []int) { j.Retry.PermanentStatus = v }),
}

var expectNames = []name[draft]{
	oneIn("expect", "grace", "30m", "how late a window may be done before it alerts", duration(time.Second), func(j *daybook.Job, v time.Duration) { j.Expect.Grace = v }),
	oneIn("expect", "max_silence", "P0: one distance between windows and 2h; P1: two distances", "how long no window may be good before it alerts",
		duration(time.Second), func(j *daybook.Job, v time.Duration) { j.Expect.MaxSilence = v }),
	oneIn("expect", "max_runtime", "timeout", "how long an attempt may take before it alerts", durationOr(time.Second, "none", -1), func(j *daybook.Job, v time.Duration) { j.Expect.MaxRuntime = v }),
}

// oneIn makes a name of a map in a job.
func oneIn[V any](within, word, unless, meaning string, v value[V], set func(*daybook.Job, V)) name[draft] {
	return name[draft]{about{word, v.is, unless, meaning}, func(r *reader, d *draft, _, n *node) {
		got, ok := v.read(r, n, in(d.what, within, word))
		if ok {
			set(&d.job, got)
		}
		d.note(within+"."+word, n.pos, ok)
	}}
}

func readRetry(r *reader, d *draft, _, v *node) {
	d.at["retry"] = v.pos
	what := in(d.what, "retry")
	switch v.kind {
	case isMap:
		readMap(r, v, what, retryNames, nil, d)
	case isList:
		_ = r.wrong(v, what, aMap).WithHint("write retry: {backoff: [1m, 5m, 25m]}, with your delays")
	default:
		_ = r.wrong(v, what, aMap).WithHint("write retry: {backoff: [1m, 5m, 25m]}: one delay before each further try")
	}
}

// ladderShape is a list of delays, or a growing ladder.
var ladderShape = shape{words: "list of durations, or map", names: named(growingNames).names,
	rule: object{{"type", "array"}, {"items", durationShape(0, "").rule}, {"maxItems", daybook.MaxLadderSteps}}}

// backoff reads a ladder: a list of delays, or {first, factor, max, times}. An empty list is a ladder without steps.
func (r *reader) backoff(n *node, what daybook.Text) ([]time.Duration, bool) {
	switch n.kind {
	case isMap:
		return r.growth(n, what)
	case isList:
	default:
		_ = r.wrong(n, what, aLadder).WithHint("write [1m, 5m, 25m], or {first: 1m, factor: 5, max: 1h, times: 3}")
		return nil, false
	}
	if len(n.items) > daybook.MaxLadderSteps {
		r.fault(n.pos, daybook.Invalid("%s has %d steps: at most %d are allowed", what, len(n.items), daybook.MaxLadderSteps).WithHint("retries are never unlimited: end in a dead letter that a person sees"))
		return nil, false
	}
	steps, ok := make([]time.Duration, 0, len(n.items)), true
	for _, item := range n.items {
		d, good := r.duration(item, what, 0)
		steps, ok = append(steps, d), ok && good
	}
	return steps, ok
}

// growing is a ladder of delays that grow.
type growing struct {
	what       daybook.Text
	first, max time.Duration
	factor     float64
	times      int
	bad        bool
}

var growingNames = []name[growing]{
	growingPart("first", required, "the first delay", duration(time.Millisecond), func(g *growing, v time.Duration) { g.first = v }),
	{about{"factor", shape{words: "number", rule: object{{"type", "number"}, {"minimum", 1}, {"maximum", 100}}}, "2", "by what each delay is longer than the one before"},
		func(r *reader, g *growing, _, v *node) {
			f, err := strconv.ParseFloat(v.text, 64)
			if v.kind != isNumber || !plainDecimal.MatchString(v.text) || err != nil || f < 1 || f > 100 {
				r.fault(v.pos, daybook.Invalid("%s: factor must be %s, not %s", g.what, aFactor, v.shown()).WithHint("write a number from 1 to 100, such as 2"))
				g.bad = true
				return
			}
			g.factor = f
		}},
	growingPart("max", "366d", "the longest delay", duration(time.Millisecond), func(g *growing, v time.Duration) { g.max = v }),
	growingPart("times", required, "how many delays", number(0, daybook.MaxLadderSteps), func(g *growing, v int) { g.times = v }),
}

func growingPart[V any](word, unless, meaning string, v value[V], set func(*growing, V)) name[growing] {
	return name[growing]{about{word, v.is, unless, meaning}, func(r *reader, g *growing, _, n *node) {
		got, ok := v.read(r, n, in(g.what, word))
		g.bad = g.bad || !ok
		set(g, got)
	}}
}

// growth works a growing ladder out: each delay is the one before times the factor, at most max.
func (r *reader) growth(n *node, what daybook.Text) ([]time.Duration, bool) {
	g := growing{what: what, factor: 2, max: daybook.MaxDelay, times: -1}
	before := r.count()
	readMap(r, n, what, growingNames, nil, &g)
	switch {
	case g.bad || r.count() > before:
		return nil, false
	case g.first == 0 || g.times < 0:
		r.fault(n.pos, daybook.Invalid("%s needs first and times", what).WithHint("write {first: 1m, factor: 5, max: 1h, times: 3}; factor is 2 if left out"))
		return nil, false
	case g.first > g.max:
		r.fault(n.pos, daybook.Invalid("%s: first %s is longer than max %s", what, Duration(g.first), Duration(g.max)).WithHint("make first the smaller one"))
		return nil, false
	}
	steps := make([]time.Duration, 0, g.times)
	d := float64(g.first)
	for range g.times {
		steps = append(steps, min(time.Duration(min(d, float64(g.max))), g.max).Round(time.Millisecond))
		d = min(d*g.factor, float64(g.max))
	}
	return steps, true
}

// percent reads a share such as 10%.
func (r *reader) percent(n *node, what daybook.Text) (float64, bool) {
	digits, ok := strings.CutSuffix(n.text, "%")
	if n.kind == isText && ok && plainDecimal.MatchString(digits) {
		if v, err := strconv.ParseFloat(digits, 64); err == nil && v >= 0 && v <= 100 {
			return v / 100, true
		}
	}
	err := daybook.Invalid("%s must be a share in percent, not %s", what, n.shown()).WithHint("write a share from 0%% to 100%%, such as 10%%")
	if v, bad := strconv.ParseFloat(n.text, 64); n.kind == isNumber && bad == nil && v > 0 && v <= 1 {
		_ = err.WithHint("write %s%%", strconv.FormatFloat(v*100, 'f', -1, 64))
	} else if n.kind == isNumber && bad == nil && v > 1 && v <= 100 {
		_ = err.WithHint("write %s%%", n.text)
	}
	r.fault(n.pos, err)
	return 0, false
}
