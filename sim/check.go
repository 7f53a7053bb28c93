package sim

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// take holds one change of a row against the promises, and takes it into the picture.
func (h *history) take(c change, during string) {
	switch c.table {
	case "live":
		h.takeLive(c, during)
	case "runs":
		h.takeRun(c, during)
	case "steps":
		h.takeStep(c, during)
	case "letters":
		h.takeLetter(c)
	case "alerts":
		h.alerts[c.c[1]] = &alertRow{key: c.c[0], kind: c.c[2], open: c.op != "DELETE" && c.c[3] == "0"}
	case "jobs":
		if was, ok := h.cursor[c.c[0]]; ok && c.n(1) < was {
			h.w.fault("the cursor of %s goes back", c.c[0])
		}
		h.cursor[c.c[0]], h.paused[c.c[0]] = c.n(1), c.c[3] == "1"
	case "spans":
		h.spans[c.c[0]] = append(h.spans[c.c[0]], span{time.UnixMicro(c.n(1)), time.UnixMicro(c.n(2))})
	case "triggers":
		if fire := c.c[1] + " " + c.c[2]; c.op == "INSERT" && c.c[2] != "" {
			if h.fires[fire] {
				h.w.fault("fire %s is recorded twice", fire)
			}
			h.fires[fire] = true
		}
	}
}

// takeLive: fences rise with every claim and never fall; runs of one line do not run beside each other.
func (h *history) takeLive(c change, during string) {
	k := c.c[0]
	was := h.live[k]
	if was != nil && was.line != "" && h.lines[was.line] == k {
		delete(h.lines, was.line)
	}
	if was != nil && was.state == "running" {
		h.fenced(k, was, during)
	}
	if c.op == "DELETE" {
		delete(h.live, k)
		return
	}
	l := &liveRow{key: k, state: c.c[1], reason: c.c[2], fence: c.n(3), claim: c.c[4], asking: c.c[5], due: c.n(6), line: c.c[7], hold: c.c[8], process: c.c[9], lease: c.n(10)}
	h.live[k] = l
	h.fannedOut(l)
	switch {
	case l.fence < h.fences[k]:
		h.w.fault("the fence of %s falls from %d to %d", k, h.fences[k], l.fence)
	case was != nil && l.state == "running" && was.state != "running" && l.fence != was.fence+1:
		h.w.fault("%s runs, and its fence did not rise by one: %d, %d", k, was.fence, l.fence)
	case was != nil && l.claim != was.claim && l.fence == was.fence:
		h.w.fault("%s has another claim under fence %d", k, l.fence)
	}
	if was != nil && was.state == "running" && strings.Contains(during, fmt.Sprintf("%s %d lost→", k, was.fence)) {
		h.lost(was)
	}
	h.fences[k] = max(h.fences[k], l.fence)
	if l.line == "" || l.state != "running" {
		return
	}
	if other := h.lines[l.line]; other != "" {
		h.w.fault("%s runs beside %s, and they wait for each other", k, other)
	}
	h.lines[l.line] = k
}

// fenced: nobody writes about an attempt but who holds it, by its fence. A batch of several reports about a run may have a stale
// one beside that of its holder.
func (h *history) fenced(k string, l *liveRow, during string) {
	words := strings.Fields(during)
	var by []string
	for i := range words[:max(len(words)-1, 0)] {
		if words[i] == k {
			by = append(by, words[i+1])
		}
	}
	if len(by) == 0 || slices.Contains(by, strconv.FormatInt(l.fence, 10)) {
		return
	}
	if _, err := strconv.ParseInt(by[0], 10, 64); err == nil {
		h.w.fault("%s is held under fence %d, and is written by fence %s: %s", k, l.fence, strings.Join(by, ", "), during)
	}
}

// lost: what a process holds that is well is not declared over.
func (h *history) lost(l *liveRow) {
	for _, p := range h.w.nodes {
		if p.name == l.process && !p.dead && now().Sub(p.well) > 3*lease {
			h.w.fault("%s is declared over, and %s is well since %s", l.key, p.name, now().Sub(p.well))
		}
	}
}

// passed: a cursor never passes a window that has no row.
func (h *history) passed(job string, from int64) {
	var text string
	var since int64
	h.w.query("SELECT definition, since_us FROM daybook_jobs WHERE name = '"+job+"'", func(rows *sql.Rows) error { return rows.Scan(&text, &since) })
	for _, f := range readDefinition(text).fires(time.UnixMicro(max(from, since)), time.UnixMicro(h.cursor[job])) {
		if !h.accounted(job, f) {
			h.w.fault("the cursor of %s passes its window %s, which has neither a row nor a span", job, f.label)
		}
	}
}

// takeRun: a key stands for ever; what is done stays done; nobody but a window, a person or an event makes one.
func (h *history) takeRun(c change, during string) {
	k := c.c[0]
	was := h.runs[k]
	if c.op == "DELETE" {
		h.w.fault("the key %s is free again", k)
		delete(h.runs, k)
		return
	}
	r := &runRow{k, c.c[1], c.c[2], c.c[3], c.c[4], c.c[5], c.c[6], c.c[7], c.c[8]}
	h.runs[k] = r
	if c.op == "INSERT" {
		h.w.report.Runs++
		if was != nil {
			h.w.fault("the key %s stands there twice", k)
		}
		h.mayBe(r, during)
		return
	}
	if _, _, child := subject(k); r.state == "done" && was != nil && was.state != "done" && !child {
		h.endOfParent(k)
	}
	if was == nil || was.state != "done" || r.state == "done" {
		return
	}
	if was.effects == "once" || r.state != "" {
		h.w.fault("%s was done, and is %q", k, r.state)
	}
}

// mayBe: a replay makes no key, and no door makes another one for what has one.
func (h *history) mayBe(r *runRow, during string) {
	base, undo := strings.CutSuffix(r.key, "~undo")
	parent, _, child := subject(r.key)
	switch {
	case undo && !h.w.asks.undone[base]:
		h.w.fault("%s is made, and nobody asked for it", r.key)
	case undo:
	case strings.HasPrefix(during, "trigger replay"):
		h.w.fault("a replay made the key %s", r.key)
	case child && !h.w.asks.listed[r.key]:
		h.w.fault("%s is made, and no listing named it", r.key)
	case strings.Contains(parent, "~") && !h.w.asks.further[parent]:
		h.w.fault("%s is a second effect for one window, and nobody asked for it", r.key)
	}
}

// takeStep: what is done stays done and is in the book; what is said not to have happened is not, and is not on its way; a wire
// key changes only then.
func (h *history) takeStep(c change, during string) {
	k, name := c.c[0], c.c[1]
	if c.op == "DELETE" {
		h.w.fault("step %s of %s is forgotten", name, k)
		return
	}
	e := &stepRow{step: name, state: c.c[2], generation: int(c.n(3)), open: c.c[4] == "1", effect: c.c[5] == "1", fence: c.n(6), tries: int(c.n(7)), first: c.n(8)}
	if l := h.live[k]; l != nil && l.state == "running" {
		h.fenced(k, l, during)
	}
	if h.steps[k] == nil {
		h.steps[k] = map[string]*stepRow{}
	}
	was := h.steps[k][name]
	h.steps[k][name] = e
	if was != nil && was.state == "done" && (e.state != "done" || e.generation != was.generation) {
		h.w.fault("step %s of %s was done, and is %s", name, k, e.state)
	}
	if !e.effect {
		return
	}
	x := wireOf(k, name)
	booked, coming := h.w.far.happened(x), h.w.far.coming(x)
	switch {
	case e.state == "done" && len(booked) == 0:
		h.w.fault("step %s of %s is said to be done, and the far side does not have it", name, k)
	case e.state != "not_done" && e.state != "refused":
	case len(booked) > 0:
		h.w.fault("step %s of %s is said not to have happened, and the far side has it", name, k)
	case coming:
		h.w.fault("step %s of %s is said not to have happened, and it is on its way", name, k)
	}
	switch {
	case was == nil, e.generation <= was.generation:
	case len(booked) > 0, coming:
		h.w.fault("step %s of %s gets the next wire key, and it did happen under the one before, or is on its way", name, k)
	case e.state == "unknown", e.state == "begun" && (was.state == "unknown" || was.open):
		h.w.fault("step %s of %s gets the next wire key while its outcome is open", name, k)
	}
}

// takeLetter keeps the letters.
func (h *history) takeLetter(c change) {
	l := &letterRow{c.c[0], c.c[1], c.c[2], c.c[3], c.c[4], c.c[5]}
	if was := h.letter[l.id]; (was == nil || was.state != "open") && l.state == "open" {
		h.w.report.Letter++
	}
	h.letter[l.id] = l
	h.byHand[l.key] = h.byHand[l.key] || l.state == "dismissed" && strings.HasSuffix(l.key, "~undo")
	if newest := h.last[l.key]; newest == nil || newest.id <= l.id {
		h.last[l.key] = l
	}
}

// together holds what changed in one transaction against each other: a dead letter is announced when it is opened, and no
// announcement is taken back while it is open.
func (h *history) together(changes []change, during string) {
	moved := false
	for _, c := range changes {
		moved = moved || c.table == "live" || c.table == "steps"
		if c.table == "letters" || c.table == "alerts" {
			h.announced(c.c[0], during)
		}
	}
	if moved {
		h.serials(during)
	}
}

// announced: every open letter of a run, or of its subjects, is.
func (h *history) announced(key, during string) {
	for _, l := range h.letter {
		if l.state != "open" || l.key != key && l.tells() != key {
			continue
		}
		ok := false
		for _, a := range h.alerts {
			ok = ok || a.key == l.tells() && a.open && (a.kind == "unknown_outcome") == (l.kind == "unknown")
		}
		if !ok {
			h.w.fault("the dead letter of %s (%s) is not announced, at %s", l.key, l.kind, during)
		}
	}
}

// booked holds a new entry of the far side against the promises, whatever the rows say.
func (w *World) booked(e entry) {
	x := readWire(e.wireKey)
	switch {
	case e.kind == called:
		return
	case len(w.far.happened(x)) > 0:
		w.fault("%s of %s %s a second time, as %s", e.kind, x.run, x.step, e.wireKey)
	}
	if e.kind == charge {
		if n := len(w.far.happened(wire{x.run, x.step, true})); n > 0 {
			w.fault("%s happens after it was taken back", e.wireKey)
		}
		return
	}
	if !w.asks.undone[x.run] {
		w.fault("%s is given back, and nobody asked for it", x.run)
	}
	if len(w.far.happened(wire{x.run, x.step, false})) == 0 {
		w.fault("%s %s is given back, and it did not happen", x.run, x.step)
	}
	if s := w.history.steps[x.run][x.step]; s == nil || s.state != "done" {
		w.fault("%s %s is given back, and is not known to be done", x.run, x.step)
	}
}
