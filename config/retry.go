package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

var retryNames = []name[draft]{
	{"backoff", func(r *reader, d *draft, _, v *node) {
		steps, ok := r.backoff(v, d.what+": retry: backoff")
		if ok {
			d.job.Retry.Backoff = steps
		}
		d.note("retry.backoff", v.pos, ok)
	}},
	{"jitter", func(r *reader, d *draft, _, v *node) {
		share, ok := r.percent(v, d.what+": retry: jitter")
		if ok {
			d.job.Retry.Jitter = share
			if share == 0 { // the zero value of a Job means the default
				d.job.Retry.Jitter = -1
			}
		}
		d.note("retry.jitter", v.pos, ok)
	}},
	{"permanent_exit", func(r *reader, d *draft, _, v *node) {
		codes, ok := r.codes(v, d.what+": retry: permanent_exit", 1, 255)
		if ok {
			d.job.Retry.PermanentExit = codes
		}
		d.note("retry.permanent_exit", v.pos, ok)
	}},
	{"permanent_status", func(r *reader, d *draft, _, v *node) {
		codes, ok := r.codes(v, d.what+": retry: permanent_status", 300, 599)
		if ok {
			d.job.Retry.PermanentStatus = codes
		}
		d.note("retry.permanent_status", v.pos, ok)
	}},
}

var expectNames = []name[draft]{
	expectation("grace", atLeast(time.Second), func(e *daybook.Expect, v time.Duration) { e.Grace = v }),
	expectation("max_silence", atLeast(time.Second), func(e *daybook.Expect, v time.Duration) { e.MaxSilence = v }),
	expectation("max_runtime", orNone, func(e *daybook.Expect, v time.Duration) { e.MaxRuntime = v }),
}

func expectation(word string, read func(*reader, *node, string) (time.Duration, bool), set func(*daybook.Expect, time.Duration)) name[draft] {
	return name[draft]{word, func(r *reader, d *draft, _, v *node) {
		value, ok := read(r, v, d.what+": expect: "+word)
		if ok {
			set(&d.job.Expect, value)
		}
		d.note("expect."+word, v.pos, ok)
	}}
}

// backoff reads a ladder: a list of delays, or {first, factor, max, times}. An empty list is a ladder without steps.
func (r *reader) backoff(n *node, what string) ([]time.Duration, bool) {
	switch n.kind {
	case isMap:
		return r.growth(n, what)
	case isList:
	default:
		r.wrong(n, what, "a list of delays", "write [1m, 5m, 25m], or {first: 1m, factor: 5, max: 1h, times: 3}")
		return nil, false
	}
	if len(n.items) > daybook.MaxLadderSteps {
		r.fault(n.pos, "retries are never unlimited: end in a dead letter that a person sees", "%s has %d steps: at most %d are allowed", what, len(n.items), daybook.MaxLadderSteps)
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
	what       string
	first, max time.Duration
	factor     float64
	times      int
	bad        bool
}

var growingNames = []name[growing]{
	{"first", func(r *reader, g *growing, _, v *node) {
		d, ok := r.duration(v, g.what+": first", time.Millisecond)
		g.first, g.bad = d, g.bad || !ok
	}},
	{"factor", func(r *reader, g *growing, _, v *node) {
		f, err := strconv.ParseFloat(v.text, 64)
		if v.kind != isNumber || !plainDecimal.MatchString(v.text) || err != nil || f < 1 || f > 100 {
			r.fault(v.pos, "write a number from 1 to 100, such as 2", "%s: factor must be a number, not %s", g.what, v.shown())
			g.bad = true
			return
		}
		g.factor = f
	}},
	{"max", func(r *reader, g *growing, _, v *node) {
		d, ok := r.duration(v, g.what+": max", time.Millisecond)
		g.max, g.bad = d, g.bad || !ok
	}},
	{"times", func(r *reader, g *growing, _, v *node) {
		n, ok := r.integer(v, g.what+": times", 0, daybook.MaxLadderSteps)
		g.times, g.bad = n, g.bad || !ok
	}},
}

// growth works a growing ladder out: each delay is the one before times the factor, at most max.
func (r *reader) growth(n *node, what string) ([]time.Duration, bool) {
	g := growing{what: what, factor: 2, max: daybook.MaxDelay, times: -1}
	before := r.count()
	readMap(r, n, what, growingNames, nil, &g)
	switch {
	case g.bad || r.count() > before:
		return nil, false
	case g.first == 0 || g.times < 0:
		r.fault(n.pos, "write {first: 1m, factor: 5, max: 1h, times: 3}; factor is 2 if left out", "%s needs first and times", what)
		return nil, false
	case g.first > g.max:
		r.fault(n.pos, "make first the smaller one", "%s: first %s is longer than max %s", what, Duration(g.first), Duration(g.max))
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
func (r *reader) percent(n *node, what string) (float64, bool) {
	digits, ok := strings.CutSuffix(n.text, "%")
	if n.kind == isText && ok && plainDecimal.MatchString(digits) {
		if v, err := strconv.ParseFloat(digits, 64); err == nil && v >= 0 && v <= 100 {
			return v / 100, true
		}
	}
	hint := "write a share from 0% to 100%, such as 10%"
	if v, err := strconv.ParseFloat(n.text, 64); n.kind == isNumber && err == nil && v > 0 && v <= 1 {
		hint = "write " + strconv.FormatFloat(v*100, 'f', -1, 64) + "%"
	}
	r.fault(n.pos, hint, "%s must be a share in percent, not %s", what, n.shown())
	return 0, false
}

// codes reads a list of numbers.
func (r *reader) codes(n *node, what string, low, high int) ([]int, bool) {
	if n.kind != isList {
		r.wrong(n, what, "a list of numbers", "write it in brackets: [3, 4]")
		return nil, false
	}
	out, ok := make([]int, 0, len(n.items)), true
	for _, item := range n.items {
		v, good := r.integer(item, what, low, high)
		out, ok = append(out, v), ok && good
	}
	return out, ok
}
